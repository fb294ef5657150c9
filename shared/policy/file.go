package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// MaxFileBytes is the largest policy file that is read.
const MaxFileBytes = 1 << 20

// File is a policy file, valid as a whole.
type File struct {
	policies map[string]Policy
	hash     string
}

// file is the shape of a policy file.
type file struct {
	Policies map[string]entry `yaml:"policies"`
}

// entry is a policy as it is written. The nodes know their lines.
type entry struct {
	Preset         yaml.Node            `yaml:"preset"`
	Switches       map[string]yaml.Node `yaml:"switches"`
	Zones          []yaml.Node          `yaml:"zones"`
	LeaveZoneFor   yaml.Node            `yaml:"leave_zone_for"`
	Places         []yaml.Node          `yaml:"places"`
	BackToFirst    yaml.Node            `yaml:"back_to_first"`
	Lead           yaml.Node            `yaml:"lead"`
	Save           yaml.Node            `yaml:"save"`
	GiveUpAfter    yaml.Node            `yaml:"give_up_after"`
	Hang           yaml.Node            `yaml:"hang"`
	RestartsADay   yaml.Node            `yaml:"restarts_per_day"`
	Autocheckpoint yaml.Node            `yaml:"autocheckpoint"`
	ChipHourPrice  yaml.Node            `yaml:"chip_hour_price"`
	SpendAtMost    yaml.Node            `yaml:"spend_at_most"`
	Subnetworks    map[string]yaml.Node `yaml:"subnetworks"`
	OtherRegions   yaml.Node            `yaml:"other_regions"`
	EgressPrice    yaml.Node            `yaml:"egress_price"`
}

// place is another place as it is written.
type place struct {
	Capacity       yaml.Node   `yaml:"capacity"`
	Reservation    yaml.Node   `yaml:"reservation"`
	Accelerator    yaml.Node   `yaml:"accelerator"`
	RuntimeVersion yaml.Node   `yaml:"runtime_version"`
	Zones          []yaml.Node `yaml:"zones"`
	After          yaml.Node   `yaml:"after"`
	ChipHourPrice  yaml.Node   `yaml:"chip_hour_price"`
}

// zoneName is the form of a zone's name; only the cloud knows whether the zone exists.
var zoneName = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$`)

// acceleratorType is the form of an accelerator type; no schema can list the sizes.
var acceleratorType = regexp.MustCompile("^(" + strings.Join(topology.Generations(), "|") + ")-[1-9][0-9]*$")

// runtimeVersion is the form of a TPU software version, such as v2-alpha-tpuv5-lite.
var runtimeVersion = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// reservationName is short, or says the project and the zone too.
var reservationName = regexp.MustCompile(`^(?:projects/[a-z0-9.:-]+/(?:locations|zones)/[a-z0-9-]+/reservations/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$`)

var (
	regionName = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
	// subnetworkName is short, or says the project and the region too.
	subnetworkName = regexp.MustCompile(`^(?:projects/[a-z0-9.:-]+/regions/([a-z0-9-]+)/subnetworks/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$`)
)

// Parse reads a policy file. Its error is a FileError: every fault with its own place. A fault of the YAML itself, or a key that
// is there twice, hides the values after it or below it.
func Parse(data []byte) (*File, error) {
	if len(data) > MaxFileBytes {
		return nil, FileError{{Text: fmt.Sprintf("%d bytes are more than the %d that are read", len(data), MaxFileBytes)}}
	}
	var f file
	var doc, second yaml.Node
	var faults FileError
	d := yaml.NewDecoder(bytes.NewReader(data))
	faults.yaml(d.Decode(&doc))
	if faults == nil && len(doc.Content) > 0 {
		o := outline{faults: &faults, seen: map[seen]bool{}}
		o.file(doc.Content[0])
		faults.yaml(doc.Decode(&f))
		if err := d.Decode(&second); err == nil {
			faults.add(&second, "a second document; a policy file is one")
		} else {
			faults.yaml(err)
		}
	}
	out := &File{policies: make(map[string]Policy, len(f.Policies)), hash: events.ID("policy", string(data))}
	for _, name := range sortedKeys(f.Policies) {
		p := f.Policies[name].policy(name, &faults)
		p.Hash = out.hash
		out.policies[name] = p
	}
	if faults != nil {
		slices.SortStableFunc(faults, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, slices.Compact(faults)
	}
	return out, nil
}

// Fault is one fault of a policy file.
type Fault struct {
	// Line and Column count from 1; 0 is not known.
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// String is the fault with its place.
func (f Fault) String() string {
	switch {
	case f.Line == 0:
		return f.Text
	case f.Column == 0:
		return fmt.Sprintf("line %d: %s", f.Line, f.Text)
	}
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Text)
}

// FileError are the faults of a policy file, in the order of their places, so that one run shows them all.
type FileError []Fault

// Error is one line.
func (f FileError) Error() string {
	all := make([]string, len(f))
	for i := range f {
		all[i] = f[i].String()
	}
	return "policy file: " + strings.Join(all, "; ")
}

// add notes a fault at a node.
func (f *FileError) add(n *yaml.Node, format string, args ...any) {
	*f = append(*f, Fault{n.Line, n.Column, oneLine(fmt.Sprintf(format, args...))})
}

// decoded is an error of the decoder: it has only a line, and Go types that mean nothing to the file's author.
var decoded = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*?)(?: (?:in type|into) \S+)?$`)

// yaml adds the faults that the decoder found, except at lines with a fault already.
func (f *FileError) yaml(err error) {
	all := []string{}
	var many *yaml.TypeError
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case errors.As(err, &many):
		all = many.Errors
	default:
		all = []string{err.Error()}
	}
	for _, text := range all {
		says := decoded.FindStringSubmatch(oneLine(text))
		line, _ := strconv.Atoi(says[1]) //nolint:errcheck // without a line it is 0
		if !slices.ContainsFunc(*f, func(known Fault) bool { return line > 0 && known.Line == line }) {
			*f = append(*f, Fault{Line: line, Text: says[2]})
		}
	}
}

// oneLine is a text without line breaks: a quoted part of the file may have some.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// quoted is a name as faults print it.
func quoted(s string) string { return fmt.Sprintf("%.40q", s) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// target is the node that an alias stands for: the alias itself has its name for a value.
func target(n yaml.Node) yaml.Node {
	if n.Kind == yaml.AliasNode {
		return *n.Alias
	}
	return n
}

// policy is the policy of an entry. It adds the entry's faults to f.
func (e entry) policy(name string, f *FileError) Policy {
	r := reader{policy: name, faults: f}
	p := r.preset(e.Preset)
	p.Name = name
	r.switches(&p, e)
	p.Zones = r.zones("zones", e.Zones)
	for _, n := range e.Places {
		r.place(&p, n)
	}
	if s, ok := r.oneOf("back_to_first", e.BackToFirst, backs...); ok {
		p.BackToFirst = BackToFirst(s)
	}
	r.subnetworks(&p, e.Subnetworks)
	if d, ok := r.span("lead", e.Lead, MinLead, MaxLead); ok {
		p.Lead = d
	}
	if d, ok := r.span("leave_zone_for", e.LeaveZoneFor, 0, MaxLeaveZoneFor); ok {
		p.LeaveZoneFor = d
	}
	if d, ok := r.span("give_up_after", e.GiveUpAfter, 0, math.MaxInt64); ok {
		p.GiveUpAfter = d
	}
	if s, ok := r.oneOf("save", e.Save, string(events.SaveNatural), string(events.SaveSignal)); ok {
		p.Save = events.SaveMode(s)
	}
	if s, ok := r.oneOf("hang", e.Hang, string(HangReport), string(HangRestart)); ok {
		p.Hang = Hang(s)
	}
	if n, ok := r.number("restarts_per_day", e.RestartsADay, 1, MaxRestartsPerDay); ok {
		p.RestartsPerDay = n
	}
	if s, ok := r.oneOf("autocheckpoint", e.Autocheckpoint, string(AutocheckpointKeep), string(AutocheckpointOn)); ok {
		p.Autocheckpoint = Autocheckpoint(s)
	}
	p.ChipHourPrice, p.EgressPrice = r.price("chip_hour_price", e.ChipHourPrice), r.price("egress_price", e.EgressPrice)
	if p.SpendAtMost = r.amount("spend_at_most", e.SpendAtMost); p.SpendAtMost.Per > 0 && p.ChipHourPrice == 0 {
		r.fault(e.SpendAtMost, "spend_at_most needs chip_hour_price")
	}
	if s, ok := r.oneOf("other_regions", e.OtherRegions, "no", "yes"); ok {
		p.OtherRegions = s == "yes"
	}
	return p
}

// reader reads the fields of one entry, and notes their faults.
type reader struct {
	policy string
	faults *FileError
}

func (r reader) fault(n yaml.Node, format string, args ...any) {
	r.faults.add(&n, "policy %s: %s", quoted(r.policy), fmt.Sprintf(format, args...))
}

// word is the single value at a node; ok is false where there is none.
func (r reader) word(field string, n yaml.Node) (s string, ok bool) {
	switch t := target(n); {
	case isNull(&t):
		return "", false
	case t.Kind != yaml.ScalarNode:
		r.fault(n, "%s is not a single value", field)
		return "", false
	default:
		return t.Value, true
	}
}

// oneOf is a word out of some.
func (r reader) oneOf(field string, n yaml.Node, words ...string) (s string, ok bool) {
	s, ok = r.word(field, n)
	switch {
	case !ok || slices.Contains(words, s):
	case len(words) == 2:
		r.fault(n, "%s %.40q is neither %s nor %s", field, s, words[0], words[1])
	default:
		r.fault(n, "%s %.40q is none of %s", field, s, strings.Join(words, ", "))
	}
	return s, ok
}

// span is a duration within bounds.
func (r reader) span(field string, n yaml.Node, least, most time.Duration) (d time.Duration, ok bool) {
	s, ok := r.word(field, n)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		r.fault(n, "%s %.40q is no duration such as 10m or 48h", field, s)
		return 0, false
	case d < 0 && least == 0:
		r.fault(n, "%s %v is negative", field, d)
	case d < least || d > most:
		r.fault(n, "%s %v is not between %v and %v", field, d, least, most)
	}
	return d, true
}

// number is a whole number within bounds.
func (r reader) number(field string, n yaml.Node, least, most int) (i int, ok bool) {
	s, ok := r.word(field, n)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(s)
	if err != nil || i < least || i > most {
		r.fault(n, "%s %.40q is no number from %d to %d", field, s, least, most)
	}
	return i, true
}

// price is in dollars; 0 where there is none.
func (r reader) price(field string, n yaml.Node) float64 {
	s, ok := r.word(field, n)
	if !ok {
		return 0
	}
	price, err := strconv.ParseFloat(s, 64)
	if err != nil || !(price >= 0 && price <= math.MaxFloat64) {
		r.fault(n, "%s %.40q is no price in dollars", field, s)
	}
	return price
}

// amountForm is the form of an amount of money in a time.
var amountForm = regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,6})?) ([A-Z]{3}) a (day|week)$`)

// amount is what may be spent within a day or a week; nothing where there is none.
func (r reader) amount(field string, n yaml.Node) (b Budget) {
	s, ok := r.word(field, n)
	if !ok {
		return b
	}
	is := amountForm.FindStringSubmatch(s)
	switch {
	case is == nil:
		r.fault(n, "%s %.40q is no amount such as 200 USD a week or 30 USD a day", field, s)
	case is[2] != "USD":
		r.fault(n, "%s %.40q is not in USD, as prices are", field, s)
	default:
		b.Dollars, _ = strconv.ParseFloat(is[1], 64) //nolint:errcheck // its form is checked
		b.Per = map[string]time.Duration{"day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[is[3]]
	}
	return b
}

func (r reader) zones(field string, nodes []yaml.Node) (all []string) {
	for _, n := range nodes {
		z := target(n).Value
		if !zoneName.MatchString(z) {
			r.fault(n, "%s: %.40q is no zone", field, z)
		}
		all = append(all, z)
	}
	return all
}

// preset is the preset that a policy starts from: without one, it only watches.
func (r reader) preset(n yaml.Node) Policy {
	p, _ := preset("watch")
	s, named := r.word("preset", n)
	if named {
		known := false
		if p, known = preset(s); !known {
			r.fault(n, "preset %.40q is none of %s", s, strings.Join(presetNames, ", "))
		}
	}
	return p
}

// switches sets what the entry itself says, and who limits what.
func (r reader) switches(p *Policy, e entry) {
	who := "policy " + r.policy
	if e.Preset.Value != "" {
		p.limitedBy(fmt.Sprintf("%s (preset %s)", who, target(e.Preset).Value))
	} else {
		p.limitedBy(who)
	}
	for _, s := range sortedKeys(e.Switches) {
		n := e.Switches[s]
		l := p.Switches.at(Switch(s))
		if l == nil {
			continue // the outline has reported it
		}
		if err := l.UnmarshalText([]byte(target(n).Value)); err != nil {
			r.fault(n, "%s: %v", s, err)
		}
		delete(p.Limits, Switch(s))
		p.limit(Switch(s), *l, who)
	}
}

func (r reader) place(p *Policy, n yaml.Node) {
	var at place
	r.faults.yaml(n.Decode(&at))
	if isNull(&at.Accelerator) && isNull(&at.Capacity) && isNull(&at.Reservation) {
		r.fault(n, "places: a place has to name its capacity, its reservation or its accelerator")
		return
	}
	a := Alternative{Zones: r.zones("places: zones", at.Zones), ChipHourPrice: r.price("places: chip_hour_price", at.ChipHourPrice)}
	if s, ok := r.oneOf("places: capacity", at.Capacity, capacities...); ok {
		a.Capacity = events.Capacity(s)
	}
	if s, ok := r.word("places: reservation", at.Reservation); ok {
		a.Reservation, a.Capacity = s, cmp.Or(a.Capacity, events.Reserved)
		switch {
		case a.Capacity != events.Reserved:
			r.fault(at.Reservation, "places: a reservation has no capacity %s", a.Capacity)
		case !reservationName.MatchString(s):
			r.fault(at.Reservation, "places: %.120q is no reservation", s)
		}
	}
	if s, ok := r.word("places: accelerator", at.Accelerator); ok {
		a.Accelerator = s
		if _, err := topology.Parse(s); err != nil || !acceleratorType.MatchString(s) {
			r.fault(at.Accelerator, "places: %.40q is no accelerator type such as v5litepod-8", s)
		}
	}
	if s, ok := r.word("places: runtime_version", at.RuntimeVersion); ok {
		a.RuntimeVersion = s
		if !runtimeVersion.MatchString(s) {
			r.fault(at.RuntimeVersion, "places: %.40q is no runtime version", s)
		}
	}
	if d, ok := r.span("places: after", at.After, 0, MaxAfter); ok {
		a.After = d
	}
	if slices.ContainsFunc(p.Places, a.overlaps) {
		r.fault(n, "places: the same place is there twice")
	}
	p.Places = append(p.Places, a)
}

// overlaps reports whether another alternative is the same in one of its zones.
func (a Alternative) overlaps(o Alternative) bool {
	anywhere := a.Zones == nil || o.Zones == nil
	return a.Accelerator == o.Accelerator && a.Capacity == o.Capacity &&
		(anywhere || slices.ContainsFunc(o.Zones, func(zone string) bool { return slices.Contains(a.Zones, zone) }))
}

func (r reader) subnetworks(p *Policy, nodes map[string]yaml.Node) {
	for _, region := range sortedKeys(nodes) {
		n := nodes[region]
		name := target(n).Value
		switch of := subnetworkName.FindStringSubmatch(name); {
		case !regionName.MatchString(region):
			r.fault(n, "subnetworks: %.40q is no region", region)
		case of == nil:
			r.fault(n, "subnetworks: %.80q is no subnetwork", name)
		case of[1] != "" && of[1] != region:
			r.fault(n, "subnetworks: %.120q is not in %s", name, region)
		}
		if p.Subnetworks == nil {
			p.Subnetworks = map[string]string{}
		}
		p.Subnetworks[region] = name
	}
}

// Names lists the policies of the file.
func (f *File) Names() []string { return sortedKeys(f.policies) }

// For resolves the value of the label pitstop-policy under a ceiling. Without a label, or with an unknown one, Pitstop only
// watches; the latter is marked. A nil file has the presets alone.
func (f *File) For(label string, ceiling Switches) Policy {
	unnamed := label == ""
	if unnamed {
		label = "watch"
	}
	p, ok := preset(label)
	if f != nil {
		p.Hash = f.hash
		if named, found := f.policies[label]; found {
			p, ok = named, true
		}
	}
	if p.Unknown = !ok; p.Unknown {
		p.limitedBy("a label that names no policy")
	} else if unnamed {
		p.limitedBy("the missing label pitstop-policy")
	}
	return p.under(ceiling)
}
