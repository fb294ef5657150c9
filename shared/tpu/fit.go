package tpu

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/topology"
)

// Move is where a specification was read, and where a slice is to be created from it: two zones.
type Move struct {
	From, To string
	// Subnetworks are those that the owner names for other regions, by region.
	Subnetworks map[string]string
}

// Fit makes a specification fit another zone than it was read in. A field that names something of another zone or region
// cannot go along, and the slice must not come without it: then the error is incident.CannotMove and says which. A
// subnetwork is the one that the owner names for the region; one that an auto-mode network has everywhere is left to the
// API to choose.
func Fit(spec []byte, m Move) ([]byte, error) {
	if m.From == m.To {
		return spec, nil
	}
	failed := func(c incident.FailureClass, why string) error {
		return &Error{Call: "fit the specification to " + m.To, Class: c, Message: why}
	}
	var whole map[string]any
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, failed(incident.Invalid, err.Error())
	}
	node, ok := whole["node"].(map[string]any)
	known := fields
	if !ok {
		node, ok = whole[legacyNode].(map[string]any)
		known = legacyFields
	}
	if !ok {
		return nil, failed(incident.Invalid, "it has no node")
	}
	if topology.Region(m.From) != topology.Region(m.To) {
		delete(node, "cidrBlock") // the API chooses another in the range of the other subnetwork
	}
	faults := m.fit(known, "Node", "", node)
	if queued, ok := whole["queued_resource"].(map[string]any); ok {
		faults = append(faults, m.fit(known, "QueuedResource", "", queued)...)
	}
	if faults != nil {
		return nil, failed(incident.CannotMove, strings.Join(faults, "; "))
	}
	spec, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return nil, failed(incident.Invalid, err.Error())
	}
	return spec, nil
}

// fit fits the fields of a value, and says which of them cannot be fitted. The path tells where the value stands.
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
				m.Subnetworks = nil // one name cannot be that of several networks
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

// reconnect gives a network its subnetwork in the other region, and reports whether it has one: that which the owner names,
// or the one of its own name that a network in auto mode has in every region.
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
	// near is what a zone or a region is called, and neither "global" nor "us".
	near = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]`)
)

// elsewhere is the zone or the region that a name of this class belongs to, where that is not where it is to be used. What
// the name itself says counts; one that says nothing belongs to where it was read.
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
