package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/shared/policy"
)

// Rates are how often what happens to a fleet happens. The zero value has the built-in ones.
type Rates struct {
	causes map[string]rate
	// alone has nothing happen that is not named.
	alone bool
}

// rate is how often one cause happens: times per slice and day, or times per day for a cause without a single slice. Nil
// keeps the built-in rate.
type rate struct{ spot, other *float64 }

// gap is the time between two happenings, in units of its mean.
func gap(r *rand.Rand) float64 { return -math.Log(1 - r.Float64()) }

// causeKey is the name of a cause in files.
func causeKey(name string) string {
	return strings.NewReplacer(", ", "_", " ", "_", "-", "_").Replace(strings.ToLower(name))
}

// Causes are the names of what may happen, as files write them: to a slice, and to everything at once.
func Causes() (slice, all []string) {
	for _, h := range happenings {
		slice = append(slice, causeKey(h.name))
	}
	for _, e := range elsewheres {
		all = append(all, causeKey(e.name))
	}
	return slice, all
}

// JobCauses are the names of what may happen to a Job, as files write them.
func JobCauses() (all []string) {
	for _, h := range jobHappenings {
		all = append(all, causeKey(h.name))
	}
	return all
}

// of is how often something happens to a Spot slice, or to another one, in times per day.
func (r Rates) of(h happening, spot bool) float64 {
	named, ok := r.causes[causeKey(h.name)]
	built, own := h.other, named.other
	if spot {
		built, own = h.spot, named.spot
	}
	switch {
	case !ok && r.alone, !h.befalls(spot):
		return 0
	case own != nil:
		return *own
	}
	return built
}

// ofAll is how often something happens to everything, in times per day.
func (r Rates) ofAll(e elsewhere) float64 {
	named, ok := r.causes[causeKey(e.name)]
	switch {
	case named.spot != nil:
		return *named.spot
	case !ok && r.alone:
		return 0
	}
	return e.often
}

// befalls reports whether something can happen to a Spot slice, or to another one.
func (h happening) befalls(spot bool) bool { return spot && h.spot > 0 || !spot && h.other > 0 }

// mostPerDay bounds what a file of rates may say.
const mostPerDay = 1000

// ParseRates reads a file of rates. Its error is one line that lists every fault with its line.
//
//	unnamed: none                           # what is not named does not happen; without this line it happens as often as built in
//	causes:
//	  preempted: 1.2                        # times per slice and day
//	  host_error_repaired: {spot: 0.1, other: 0.2}
//	  stockout: 2                           # of what concerns no single slice, times per day
func ParseRates(data []byte) (Rates, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return Rates{}, nil
	} else if err != nil {
		return Rates{}, fmt.Errorf("rates: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	r := Rates{causes: map[string]rate{}}
	var f ratesFile
	f.fields(&doc, "a file of rates", map[string]func(*yaml.Node){
		"unnamed": func(n *yaml.Node) {
			if r.alone = n.Value == "none"; !r.alone {
				f.fault(n, "unnamed is %.40q; it can be none", n.Value)
			}
		},
		"causes": func(n *yaml.Node) {
			known := map[string]func(*yaml.Node){}
			for _, h := range happenings {
				known[causeKey(h.name)] = func(n *yaml.Node) { r.causes[causeKey(h.name)] = f.rate(n, h) }
			}
			for _, h := range jobHappenings {
				known[causeKey(h.name)] = func(n *yaml.Node) { r.causes[causeKey(h.name)] = f.rate(n, h.happening) }
			}
			for _, e := range elsewheres {
				known[causeKey(e.name)] = func(n *yaml.Node) { r.causes[causeKey(e.name)] = rate{spot: f.perDay(n)} }
			}
			f.fields(n, "causes", known)
		},
	})
	var more yaml.Node
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		f.faults = append(f.faults, "there is more than one document in it")
	}
	if len(f.faults) > 0 {
		return Rates{}, errors.New("rates: " + strings.Join(f.faults, "; "))
	}
	return r, nil
}

// ratesFile is a file of rates as it is read, with its faults.
type ratesFile struct{ faults []string }

func (f *ratesFile) fault(n *yaml.Node, format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf("line %d: ", n.Line)+fmt.Sprintf(format, args...))
}

// fields returns the known fields of a mapping.
func (f *ratesFile) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.fault(n, "%s has to be a mapping of %s", what, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		take, ok := known[key.Value]
		switch {
		case !ok:
			f.fault(key, "%s has no %.40q; %s", what, key.Value, policy.Nearest(key.Value, slices.Sorted(maps.Keys(known))))
		case seen[key.Value]:
			f.fault(key, "%s is there twice", key.Value)
		default:
			seen[key.Value] = true
			take(value)
		}
	}
}

func (f *ratesFile) rate(n *yaml.Node, h happening) (r rate) {
	name := causeKey(h.name)
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		r.spot = f.perDay(n)
		r.other = r.spot
		return r
	}
	only := func(n *yaml.Node, spot bool, whom string) *float64 {
		v := f.perDay(n)
		if *v != 0 && !h.befalls(spot) {
			f.fault(n, "%s does not happen to %s", name, whom)
		}
		return v
	}
	f.fields(n, name, map[string]func(*yaml.Node){
		"spot":  func(n *yaml.Node) { r.spot = only(n, true, "Spot slices") },
		"other": func(n *yaml.Node) { r.other = only(n, false, "slices that are not Spot") },
	})
	return r
}

func (f *ratesFile) perDay(n *yaml.Node) *float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= 0 && v <= mostPerDay) {
		f.fault(n, "%.40q is no number of times per day from 0 to %d", n.Value, mostPerDay)
		v = 0
	}
	return &v
}

// File writes the rates in force, each by name, so that the file means the same when other causes are built in.
func (r Rates) File() ([]byte, error) {
	causes := map[string]any{}
	all := slices.Clone(happenings)
	for _, h := range jobHappenings {
		all = append(all, h.happening)
	}
	for _, h := range all {
		causes[causeKey(h.name)] = map[string]float64{"spot": r.of(h, true), "other": r.of(h, false)}
	}
	for _, e := range elsewheres {
		causes[causeKey(e.name)] = r.ofAll(e)
	}
	return yaml.Marshal(map[string]any{"unnamed": "none", "causes": causes})
}
