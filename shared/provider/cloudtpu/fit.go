package cloudtpu

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
)

// Move names two zones: where a specification was read, and where a slice is to be created from it.
type Move struct {
	From, To string
	// Subnetworks are the owner's subnetworks for other regions, by region.
	Subnetworks map[string]string
}

// Fit adapts a specification to another zone than it was read in. If a field names something in another zone or region, the
// slice can neither take it along nor do without it: then the error is incident.CannotMove and names the field. The
// subnetwork becomes the owner's for the region. If an auto-mode network has one everywhere, the API chooses it.
func Fit(spec []byte, m Move) ([]byte, error) {
	if m.From == m.To {
		return spec, nil
	}
	failed := func(c reason.FailureClass, why string) error {
		return &provider.Error{Call: "fit the specification to " + m.To, Class: c, Message: why}
	}
	var whole map[string]any
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, failed(reason.Invalid, err.Error())
	}
	node, ok := whole["node"].(map[string]any)
	known := fields
	if !ok {
		node, ok = whole[legacyNode].(map[string]any)
		known = legacyFields
	}
	if !ok {
		return nil, failed(reason.Invalid, "it has no node")
	}
	if topology.Region(m.From) != topology.Region(m.To) {
		delete(node, "cidrBlock") // the API chooses another one in the other subnetwork's range
	}
	faults := m.fit(known, "Node", "", node)
	if queued, ok := whole["queued_resource"].(map[string]any); ok {
		faults = append(faults, m.fit(known, "QueuedResource", "", queued)...)
	}
	if faults != nil {
		return nil, failed(reason.CannotMove, strings.Join(faults, "; "))
	}
	spec, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return nil, failed(reason.Invalid, err.Error())
	}
	return spec, nil
}

// fit fits the fields of a value, and says which of them cannot be fitted. path is the place of the value.
func (m Move) fit(known schemas, schema, at string, v map[string]any) (faults []string) {
	if schema == "NetworkConfig" && m.reconnect(v) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		f := known[schema][name]
		switch value := v[name].(type) {
		case map[string]any:
			if f.schema != "" {
				faults = append(faults, m.fit(known, f.schema, at+name+".", value)...)
			}
		case []any:
			if f.schema == "NetworkConfig" && len(value) > 1 {
				m.Subnetworks = nil // one name cannot stand for several networks
			}
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					faults = append(faults, m.fit(known, f.schema, at+name+".", item)...)
				}
			}
		case string:
			if where := m.elsewhere(f.class, value); where != "" {
				faults = append(faults, fmt.Sprintf("%s %.200s is in %s", at+name, value, where))
			}
		}
	}
	return faults
}

// reconnect gives a network its subnetwork in the other region, and reports whether it has one: the one that the owner
// names, or the one that an auto-mode network has under its own name in every region.
func (m Move) reconnect(config map[string]any) bool {
	network, _ := config["network"].(string)
	subnetwork, _ := config["subnetwork"].(string)
	if m.elsewhere(regional, subnetwork) == "" {
		return false
	}
	region := topology.Region(m.To)
	if named := m.Subnetworks[region]; named != "" {
		if project, _, whole := strings.Cut(subnetwork, "/regions/"); whole && !strings.Contains(named, "/") {
			named = project + "/regions/" + region + "/subnetworks/" + named
		}
		config["subnetwork"] = named
		return true
	}
	if network == "" {
		network = "default"
	}
	if path.Base(network) != path.Base(subnetwork) {
		return false
	}
	delete(config, "subnetwork")
	return true
}

var (
	// place finds the zone or the region in the name of a resource.
	place = regexp.MustCompile(`(?:^|/)(?:zones|regions|locations)/([^/]+)(?:/|$)`)
	// near matches the name of a zone or a region, but neither "global" nor "us".
	near = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]`)
)

// elsewhere is the zone or the region of a name of this class, if it differs from the target's. The place in the name itself
// counts; a name without one belongs to the place where it was read.
func (m Move) elsewhere(c class, name string) string {
	if name == "" || c != zonal && c != regional {
		return ""
	}
	region := topology.Region(m.To)
	if found := place.FindStringSubmatch(name); found != nil {
		if where := found[1]; where != m.To && where != region && near.MatchString(where) {
			return where
		}
		return ""
	}
	switch home := topology.Region(m.From); {
	case c == zonal:
		return m.From
	case home != region:
		return home
	}
	return ""
}
