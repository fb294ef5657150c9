package policy

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
)

// key is one setting of a policy. The reader of the file, the schema and the example all come from these rows.
type key struct {
	name, about string
	// kind is the form of the value; the reader checks the value itself.
	kind kind
	// values are the only words that are allowed, where there are only some.
	values []string
	// example is a value as YAML, which the schema gives too. Switches, places and subnetworks are written out in the example.
	example string
	// begins says that the example of a list begins another item with it.
	begins bool
}

// kind is the form of a value.
type kind int

const (
	word kind = iota
	span
	price
	count
	amount
	zones
	places
	switches
	subnetworks
)

// keys are the settings of a policy, in the order of the documentation.
func keys() []key {
	return []key{
		{name: "preset", kind: word, values: presetNames, example: "spot", about: "the switches to start from; without a preset Pitstop only watches"},
		{name: "switches", kind: switches, about: "the switches that differ from the preset, each yes, ask or no"},
		{name: "zones", kind: zones, example: "[us-west4-a, us-west4-b]", about: "Pitstop tries these in order when it cannot create a slice where it was"},
		{
			name: "leave_zone_for", kind: span, example: "6h",
			about: "for how long a zone that preempted the workload twice within an hour is asked after the others, up to 168h; by default 6h, with 0 never",
		},
		{
			name: "places", kind: places,
			about: "Pitstop tries these in order, zone after zone, when no zone has the slice as it was ordered",
		},
		{
			name: "back_to_first", kind: word, values: backs, example: "no",
			about: "whether Pitstop moves a training back from another capacity or shape: at its next loss, or already after a verified save",
		},
		{
			name: "lead", kind: span, example: "10m",
			about: "how long before a maintenance window Pitstop requests the save, from 1m to 24h; by default as measured, 20m at first",
		},
		{name: "save", kind: word, values: saveModes, example: "natural", about: "how Pitstop asks the training to save: natural, by its own next checkpoint if that comes in time and else by a signal that it handles; or signal, at once"},
		{
			name: "give_up_after", kind: span, example: "48h",
			about: "ends the wait for Spot capacity; without it, or with 0, the wait has no end",
		},
		{
			name: "hang", kind: word, values: hangs, example: "report",
			about: "what Pitstop does when the training makes no steps any more: report it, or also ask for another attempt",
		},
		{
			name: "restarts_per_day", kind: count, example: "24",
			about: "how often Pitstop asks for another attempt of the training within 24 hours, from 1 to 100; by default 12",
		},
		{
			name: "autocheckpoint", kind: word, values: autocheckpoints, example: "keep",
			about: "whether a slice comes back with Google's autocheckpoint: as it was ordered, or on, which needs a training that saves on SIGTERM",
		},
		{name: "chip_hour_price", kind: price, example: "1.20", about: "dollars for an hour of one chip, for the cost of idle chips"},
		{
			name: "spend_at_most", kind: amount, example: "200 USD a week",
			about: "what the chips of the workload may cost within 7 days, or within 24 hours, by chip_hour_price; when it would be passed, Pitstop asks before it replaces a slice",
		},
		{name: "subnetworks", kind: subnetworks, about: "the subnetwork of each region other than the slice's own"},
		{name: "other_regions", kind: word, values: []string{"no", "yes"}, example: "no", about: "whether Pitstop may create a slice in another region than its checkpoints are in"},
		{name: "egress_price", kind: price, example: "0.02", about: "dollars per GiB, for the cost of reading checkpoints from another region"},
	}
}

// placeKeys are the settings of a place. Those that begin one say what it is: a place has one of them at least.
func placeKeys() []key {
	return []key{
		{name: "capacity", kind: word, values: capacities, example: "on_demand", begins: true, about: "what it is taken from; by default as the slice was ordered"},
		{name: "zones", kind: zones, example: "[us-east5-b]", about: "the zones that Pitstop asks for it; by default the slice's own zones"},
		{name: "after", kind: span, example: "2h", about: "for how long all places before it must have refused, or an order has waited in a queue, up to 168h; by default it is asked at once, and leaves a queue alone"},
		{name: "chip_hour_price", kind: price, example: "2.40", about: "dollars for an hour of one chip there; by default the policy's"},
		{name: "reservation", kind: word, example: "tpus-2026", begins: true, about: "the reservation that it is taken from; its capacity is reserved"},
		{
			name: "accelerator", kind: word, example: "v6e-8", begins: true,
			about: "the accelerator type; by default as the slice was ordered. The training's batch and steps must follow",
		},
		{name: "runtime_version", kind: word, example: "v2-alpha-tpuv6e", about: "the software version that its machines boot; another generation than the slice's own needs it"},
	}
}

// presetNames are the presets, the one that allows least first.
var presetNames = []string{"watch", "spot", "reserved"}

var saveModes = []string{string(events.SaveNatural), string(events.SaveSignal)}

var hangs = []string{string(HangReport), string(HangRestart)}

var backs = []string{string(BackNo), string(BackAfterSave)}

var capacities = []string{string(events.OnDemand), string(events.Reserved), string(events.Spot)}

var autocheckpoints = []string{string(AutocheckpointKeep), string(AutocheckpointOn)}

// names are the names of keys.
func names(all []key) (out []string) {
	for _, k := range all {
		out = append(out, k.name)
	}
	return out
}

// switchNames are the names of the switches.
func switchNames() (out []string) {
	for _, s := range All() {
		out = append(out, string(s))
	}
	return out
}

// outline checks the structure of a file: whether a mapping is one, and whether its keys are known and appear once. The values
// are read later.
type outline struct {
	faults *FileError
	// seen are the mappings that were checked, and as which kind: an alias may lead to one again and again.
	seen map[seen]bool
}

type seen struct {
	node *yaml.Node
	as   string
}

// file checks a whole file.
func (o *outline) file(n *yaml.Node) {
	o.mapping(n, "file", "a policy file", []string{"policies"}, func(_, policies *yaml.Node) {
		o.mapping(policies, "policies", "policies", nil, func(name, p *yaml.Node) {
			if Preset(name.Value) {
				o.faults.add(name, "policy %.40q: the name is a preset's", name.Value)
			}
			o.policy(name.Value, p)
		})
	})
}

func (o *outline) policy(name string, n *yaml.Node) {
	all := keys()
	o.mapping(n, "policy", "policy "+quoted(name), names(all), func(k, value *yaml.Node) {
		i := slices.IndexFunc(all, func(known key) bool { return known.name == k.Value })
		what := "policy " + quoted(name) + ": " + k.Value
		switch all[i].kind {
		case switches:
			o.mapping(value, "switches", what, switchNames(), func(_, _ *yaml.Node) {})
		case subnetworks:
			o.mapping(value, "subnetworks", what, nil, func(_, _ *yaml.Node) {})
		case zones:
			o.list(value, what)
		case places:
			for _, s := range o.list(value, what) {
				o.mapping(s, "place", what, names(placeKeys()), func(k, value *yaml.Node) {
					if k.Value == "zones" {
						o.list(value, what+": zones")
					}
				})
			}
		case word, span, price, count, amount: // its reader checks it
		}
	})
}

// list is the content of a list.
func (o *outline) list(at *yaml.Node, what string) []*yaml.Node {
	n := aim(at)
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	if !isNull(n) {
		o.faults.add(at, "%s is no list", what)
	}
	return nil
}

// mapping hands on the value of each key of a mapping, merged ones too. known are its keys; nil allows any.
func (o *outline) mapping(at *yaml.Node, as, what string, known []string, each func(key, value *yaml.Node)) {
	n := aim(at)
	if isNull(n) || o.seen[seen{n, as}] {
		return
	}
	o.seen[seen{n, as}] = true
	if n.Kind != yaml.MappingNode {
		o.faults.add(at, "%s has to be a mapping", what)
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.ShortTag() == "!!merge" {
			from := []*yaml.Node{value}
			if t := aim(value); t.Kind == yaml.SequenceNode {
				from = t.Content
			}
			for _, m := range from {
				o.mapping(m, as, what, known, each)
			}
			continue
		}
		name := aim(k)
		line, twice := first[name.Value]
		switch {
		case name.Kind != yaml.ScalarNode:
			o.faults.add(k, "%s has a key that is no word", what)
		case twice:
			o.faults.add(k, "%s has %.40q twice; it is at line %d already", what, name.Value, line)
		case known != nil && !slices.Contains(known, name.Value):
			o.faults.add(k, "%s has no %.40q; %s", what, name.Value, wayOut(name.Value, known))
		default:
			first[name.Value] = k.Line
			each(name, value)
		}
	}
}

// aim is the node that an alias stands for.
func aim(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.IsZero() || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// wayOut says what to write in the place of a key that there is not.
func wayOut(name string, known []string) string {
	if name == "shapes" && slices.Contains(known, "places") {
		return "places lists other shapes"
	}
	return Nearest(name, known)
}

// Nearest corrects a mistyped name: it suggests the nearest known name, or lists them all.
func Nearest(name string, known []string) string {
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	if distance(name, best) <= max(2, len(best)/3) {
		return "did you mean " + best + "?"
	}
	return "there are " + strings.Join(known, ", ")
}

// distance is the number of letters to add, remove or change to turn one name into the other.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
