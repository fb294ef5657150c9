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

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
)

// Rates are how often what happens to a fleet happens, and how the gaps between are distributed. The zero value has the
// built-in ones.
type Rates struct {
	gaps   Gaps
	causes map[string]rate
	// alone has nothing happen that is not named.
	alone bool
}

// rate is how often one cause happens: times per slice and day, or times per day for a cause without a single slice. Nil
// keeps the built-in rate.
type rate struct {
	spot, other *float64
	// generations are the rates of some generations of TPUs, Spot or not.
	generations map[string]float64
	gaps        *Gaps
}

// Gaps is how the time between two happenings is distributed around its mean.
type Gaps struct {
	kind string
	// shape is that of a Weibull distribution, or the sigma of a lognormal one.
	shape float64
}

// The distributions; the empty one is exponential.
const (
	weibull   = "weibull"
	lognormal = "lognormal"
)

// String is how a file says it.
func (g Gaps) String() string {
	if g.kind == "" {
		return "exponential"
	}
	return g.kind + " " + strconv.FormatFloat(g.shape, 'g', -1, 64)
}

// draw is one gap, in units of the mean gap.
func (g Gaps) draw(r *rand.Rand) float64 {
	switch g.kind {
	case weibull:
		return math.Pow(-math.Log(1-r.Float64()), 1/g.shape) / math.Gamma(1+1/g.shape)
	case lognormal:
		return math.Exp(g.shape*r.NormFloat64() - g.shape*g.shape/2)
	}
	return -math.Log(1 - r.Float64())
}

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

// of is how often something happens to a slice, in times per day.
func (r Rates) of(h happening, c world.SliceConfig) (float64, Gaps) {
	built := h.other
	if c.Spot {
		built = h.spot
	}
	named, ok := r.causes[causeKey(h.name)]
	own := named.other
	if c.Spot {
		own = named.spot
	}
	often := built
	switch shape, err := topology.Parse(c.Accelerator); {
	case !ok && r.alone, !h.befalls(c.Spot):
		often = 0
	case err == nil && has(named.generations, shape.Generation):
		often = named.generations[shape.Generation]
	case own != nil:
		often = *own
	}
	return often, r.gapsOf(named)
}

// ofAll is how often something happens to everything, in times per day.
func (r Rates) ofAll(e elsewhere) (float64, Gaps) {
	named, ok := r.causes[causeKey(e.name)]
	switch {
	case named.spot != nil:
		return *named.spot, r.gapsOf(named)
	case !ok && r.alone:
		return 0, r.gaps
	}
	return e.often, r.gapsOf(named)
}

func (r Rates) gapsOf(named rate) Gaps {
	if named.gaps != nil {
		return *named.gaps
	}
	return r.gaps
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// befalls reports whether something can happen to a Spot slice, or to another one.
func (h happening) befalls(spot bool) bool { return spot && h.spot > 0 || !spot && h.other > 0 }

// The bounds of what a file of rates may say.
const mostPerDay = 1000

// shapes are the bounds of what shapes a distribution: beyond them everything would happen at once, after a very long time.
var shapes = map[string][2]float64{weibull: {0.3, 10}, lognormal: {0.1, 3}}

// ParseRates reads a file of rates. Its error is one line that lists every fault with its line.
//
//	gaps: weibull 0.7        # between two of the same cause: exponential, weibull SHAPE or lognormal SIGMA
//	unnamed: none            # what is not named does not happen; without this line it happens as often as built in
//	causes:
//	  preempted:
//	    per_day: 1.2         # times per slice and day; or spot: and other: apart
//	    generations: {v5p: 0.4, v6e: 3}
//	    gaps: lognormal 1.5
//	  stockout: {per_day: 2} # of what concerns no single slice, times per day
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
		"gaps": func(n *yaml.Node) { r.gaps = f.gaps(n) },
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
				known[causeKey(e.name)] = func(n *yaml.Node) { r.causes[causeKey(e.name)] = f.rateOfAll(n, e) }
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
		"per_day": func(n *yaml.Node) {
			if r.spot != nil || r.other != nil {
				f.fault(n, "%s has per_day, and spot or other as well", name)
			}
			r.spot = f.perDay(n)
			r.other = r.spot
		},
		"spot":        func(n *yaml.Node) { r.spot = only(n, true, "Spot slices") },
		"other":       func(n *yaml.Node) { r.other = only(n, false, "slices that are not Spot") },
		"generations": func(n *yaml.Node) { r.generations = f.generations(n) },
		"gaps":        func(n *yaml.Node) { g := f.gaps(n); r.gaps = &g },
	})
	return r
}

func (f *ratesFile) generations(n *yaml.Node) map[string]float64 {
	out := map[string]float64{}
	known := map[string]func(*yaml.Node){}
	for _, g := range topology.Generations() {
		known[g] = func(n *yaml.Node) { out[g] = *f.perDay(n) }
	}
	f.fields(n, "generations", known)
	return out
}

func (f *ratesFile) rateOfAll(n *yaml.Node, e elsewhere) (r rate) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		r.spot = f.perDay(n)
		return r
	}
	f.fields(n, causeKey(e.name), map[string]func(*yaml.Node){
		"per_day": func(n *yaml.Node) { r.spot = f.perDay(n) },
		"gaps":    func(n *yaml.Node) { g := f.gaps(n); r.gaps = &g },
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

func (f *ratesFile) gaps(n *yaml.Node) Gaps {
	kind, arg, more := strings.Cut(n.Value, " ")
	if kind == "exponential" && !more {
		return Gaps{}
	}
	shape, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
	bounds, known := shapes[kind]
	if !known || err != nil || !(shape >= bounds[0] && shape <= bounds[1]) {
		f.fault(n, "gaps is %.40q; it can be exponential, weibull SHAPE (0.3 to 10) or lognormal SIGMA (0.1 to 3)", n.Value)
		return Gaps{}
	}
	return Gaps{kind, shape}
}

// File writes the rates in force, each by name, so that the file means the same when other causes are built in.
func (r Rates) File() ([]byte, error) {
	type one struct {
		PerDay      *float64           `yaml:"per_day,omitempty"`
		Spot        *float64           `yaml:"spot,omitempty"`
		Other       *float64           `yaml:"other,omitempty"`
		Generations map[string]float64 `yaml:"generations,omitempty"`
		Gaps        string             `yaml:"gaps"`
	}
	causes := map[string]one{}
	all := slices.Clone(happenings)
	for _, h := range jobHappenings {
		all = append(all, h.happening)
	}
	for _, h := range all {
		named := r.causes[causeKey(h.name)]
		o := one{Generations: named.generations, Gaps: r.gapsOf(named).String()}
		// A fleet of no generation in particular has the rates that hold for those not named.
		spot, _ := r.of(h, world.SliceConfig{Spot: true})
		other, _ := r.of(h, world.SliceConfig{})
		o.Spot, o.Other = &spot, &other
		causes[causeKey(h.name)] = o
	}
	for _, e := range elsewheres {
		often, gaps := r.ofAll(e)
		causes[causeKey(e.name)] = one{PerDay: &often, Gaps: gaps.String()}
	}
	return yaml.Marshal(map[string]any{"unnamed": "none", "causes": causes})
}
