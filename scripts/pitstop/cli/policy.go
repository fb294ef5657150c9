package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// ChosenPolicy is the policy that --policy names.
type ChosenPolicy struct {
	// Label is the assumed value of the label pitstop-policy.
	Label string
	File  []byte
	// Allow is the ceiling of the deployment; nil takes nothing away.
	Allow *policy.Switches
	// assumed says that --policy names none.
	assumed bool
}

// AllowFlag is the deployment's list as --allow has it.
type AllowFlag struct {
	list string
	c    *cobra.Command
}

// AddTo adds the flag to a command.
func (a *AllowFlag) AddTo(c *cobra.Command) {
	a.c = c
	c.Flags().StringVar(&a.list, "allow", "", "the deployment's list of switches, a ceiling over all policies, separated by commas; without it nothing is taken away")
}

// Switches are those of the list; nil where there is none.
func (a *AllowFlag) Switches() (*policy.Switches, error) {
	if a.c == nil || !a.c.Flags().Changed("allow") {
		return nil, nil
	}
	s, err := policy.Allow(a.list)
	if err != nil {
		return nil, Usage("--%w", err)
	}
	return &s, nil
}

// Args hand the list on to another build.
func (a *AllowFlag) Args() []string {
	if a.c == nil || !a.c.Flags().Changed("allow") {
		return nil
	}
	return []string{"--allow=" + a.list}
}

// Ceiling is a ceiling of which nil takes nothing away.
func Ceiling(allow *policy.Switches) policy.Switches {
	if allow == nil {
		return policy.Everything()
	}
	return *allow
}

// Policy is the chosen policy under the ceiling of the deployment.
func (c ChosenPolicy) Policy() policy.Policy {
	var f *policy.File
	if c.File != nil {
		f, _ = policy.Parse(c.File) //nolint:errcheck // ReadPolicy has parsed it
	}
	return f.For(c.Label, Ceiling(c.Allow))
}

// For is the policy of a TPU whose label is shown: the chosen one, and that of the label where none is chosen.
func (c ChosenPolicy) For(label string) policy.Policy {
	if !c.assumed {
		return c.Policy()
	}
	c.Label = label
	p := c.Policy()
	if p.Unknown {
		for s := range p.Limits {
			p.Limits[s] = "the policy " + label + ", which --policy FILE:" + label + " shows"
		}
	}
	return p
}

// ReadPolicy reads --policy: a preset, a file with one policy, or FILE:NAME. Without it Pitstop only watches.
func ReadPolicy(flag string) (ChosenPolicy, error) {
	if flag == "" {
		return ChosenPolicy{Label: "watch", assumed: true}, nil
	}
	if policy.Preset(flag) {
		return ChosenPolicy{Label: flag}, nil
	}
	name := ""
	raw, err := os.ReadFile(flag)
	if err != nil {
		file, after, ok := cutLast(flag, ":")
		if !ok {
			return ChosenPolicy{}, Usage("--policy %s: it is neither a preset (watch, spot, reserved) nor a file that can be read", flag)
		}
		if raw, err = os.ReadFile(file); err != nil {
			return ChosenPolicy{}, Usage("--policy: %w", err)
		}
		flag, name = file, after
	}
	f, err := policy.Parse(raw)
	if err != nil {
		return ChosenPolicy{}, Usage("--policy %s: %w", flag, err)
	}
	names := f.Names()
	switch {
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return ChosenPolicy{}, Usage("--policy %s: it holds %d policies (%s); name one with --policy %s:NAME", flag, len(names), strings.Join(names, ", "), flag)
	case f.For(name, policy.Everything()).Unknown:
		return ChosenPolicy{}, Usage("--policy %s: it holds no policy %q but %s", flag, name, strings.Join(names, ", "))
	}
	return ChosenPolicy{Label: name, File: raw}, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// PolicyInEffect is a policy as JSON: each of its switches, and what limits it.
type PolicyInEffect struct {
	Name     string           `json:"name"`
	Switches []SwitchInEffect `json:"switches"`
	// Places are those in which a slice is asked for, in their order, where the policy names any beside its zones.
	Places []PlaceInEffect `json:"places,omitempty"`
}

// PlaceInEffect is a place that a policy names: as the slice was ordered, or in another capacity or shape.
type PlaceInEffect struct {
	What  string   `json:"what"`
	Zones []string `json:"zones,omitempty"`
	// After is for how long all places before it must have refused; empty where it is asked at once. ChipHourPrice is in dollars; 0 is not known.
	After         string  `json:"after,omitzero"`
	ChipHourPrice float64 `json:"chip_hour_price,omitzero"`
}

// String is the place for people.
func (p PlaceInEffect) String() string {
	text := p.What
	if p.Zones != nil {
		text += " in " + strings.Join(p.Zones, ", ")
	}
	if p.After != "" {
		text += ", once all places before it have refused for " + p.After
	}
	if p.ChipHourPrice > 0 {
		text += fmt.Sprintf(", at $%.2f a chip-hour", p.ChipHourPrice)
	}
	return text
}

// placesInEffect are the places of a policy, in their order.
func placesInEffect(p policy.Policy) []PlaceInEffect {
	if p.Places == nil {
		return nil
	}
	all := []PlaceInEffect{{What: "as ordered, in its own zone", ChipHourPrice: p.ChipHourPrice}}
	if p.Zones != nil {
		all[0] = PlaceInEffect{What: "as ordered, in its own zone, then", Zones: p.Zones, ChipHourPrice: p.ChipHourPrice}
	}
	for _, a := range p.Places {
		at := PlaceInEffect{
			What: view.Place{Capacity: a.Capacity, Accelerator: a.Accelerator}.Kind(), Zones: a.Zones, ChipHourPrice: cmp.Or(a.ChipHourPrice, p.ChipHourPrice),
		}
		if a.Reservation != "" {
			at.What += " (" + a.Reservation + ")"
		}
		if a.After > 0 {
			at.After = events.Span(a.After)
		}
		all = append(all, at)
	}
	return all
}

// PolicyInEffectOf is a policy in effect.
func PolicyInEffectOf(name string, p policy.Policy) PolicyInEffect {
	return PolicyInEffect{Name: name, Switches: inEffect(p), Places: placesInEffect(p)}
}

// SwitchInEffect is a switch in effect; LimitedBy is empty for one that is yes.
type SwitchInEffect struct {
	Switch    policy.Switch `json:"switch"`
	Level     string        `json:"level"`
	LimitedBy string        `json:"limited_by"`
}

// inEffect are the switches of a policy, in their order.
func inEffect(p policy.Policy) (all []SwitchInEffect) {
	for _, s := range policy.All() {
		all = append(all, SwitchInEffect{s, p.Switches.Level(s).String(), p.Limits[s]})
	}
	return all
}

// LimitsText lists in one line the switches that are allowed in effect, and the limit of each other one.
func LimitsText(s policy.Switches, by policy.Limits) string {
	groups := []string{"allowed: "}
	at := map[string]int{groups[0]: 0}
	for _, name := range policy.All() {
		head := "allowed: "
		if l := s.Level(name); l != policy.Yes {
			head = l.String()
			if who := by[name]; who != "" {
				head += ", limited by " + who
			}
			head += ": "
		}
		i, ok := at[head]
		if !ok {
			i = len(groups)
			at[head] = i
			groups = append(groups, head)
		}
		if strings.HasSuffix(groups[i], ": ") {
			groups[i] += string(name)
		} else {
			groups[i] += ", " + string(name)
		}
	}
	if groups[0] == "allowed: " {
		groups[0] += "nothing"
	}
	return strings.Join(groups, " · ")
}
