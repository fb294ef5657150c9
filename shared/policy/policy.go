// Package policy holds the owner's permissions: six switches, the presets that set them, the file that names more policies, and
// the ceiling of the deployment over all of them. An action without an explicit yes is not allowed.
package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
)

// Level is how far a switch allows something.
type Level int

// The levels, lowest first: the lower of two always holds.
const (
	No Level = iota
	Ask
	Yes
)

var levelNames = [...]string{No: "no", Ask: "ask", Yes: "yes"}

// String is the level's name in a policy file.
func (l Level) String() string {
	if l < No || l > Yes {
		return "no"
	}
	return levelNames[l]
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads no, ask or yes.
func (l *Level) UnmarshalText(text []byte) error {
	for level, name := range levelNames {
		if string(text) == name {
			*l = Level(level)
			return nil
		}
	}
	return fmt.Errorf("%.20q is none of no, ask, yes", text)
}

// Switch names one thing that an owner may allow.
type Switch string

// The switches, in the order of the presets.
const (
	RequestCheckpoint Switch = "request_checkpoint"
	EarlyMaintenance  Switch = "early_maintenance"
	Restart           Switch = "restart"
	Recreate          Switch = "recreate"
	RecreateNonSpot   Switch = "recreate_non_spot"
	StartStopped      Switch = "start_stopped"
)

// Replaces is the switch for the replacement of a slice whose owner ordered it so, wherever it stands.
func Replaces(ordered events.Capacity) Switch {
	if ordered == events.Spot {
		return Recreate
	}
	return RecreateNonSpot
}

// All lists the switches.
func All() []Switch {
	return []Switch{RequestCheckpoint, EarlyMaintenance, Restart, Recreate, RecreateNonSpot, StartStopped}
}

// Switches holds a level for each switch.
type Switches struct {
	RequestCheckpoint Level `json:"request_checkpoint" yaml:"request_checkpoint"`
	EarlyMaintenance  Level `json:"early_maintenance" yaml:"early_maintenance"`
	Restart           Level `json:"restart" yaml:"restart"`
	Recreate          Level `json:"recreate" yaml:"recreate"`
	RecreateNonSpot   Level `json:"recreate_non_spot" yaml:"recreate_non_spot"`
	StartStopped      Level `json:"start_stopped" yaml:"start_stopped"`
}

// at is the place of a switch, nil for a name that is none.
func (s *Switches) at(name Switch) *Level {
	switch name {
	case RequestCheckpoint:
		return &s.RequestCheckpoint
	case EarlyMaintenance:
		return &s.EarlyMaintenance
	case Restart:
		return &s.Restart
	case Recreate:
		return &s.Recreate
	case RecreateNonSpot:
		return &s.RecreateNonSpot
	case StartStopped:
		return &s.StartStopped
	}
	return nil
}

// Level is what the switches say of one; a name that is no switch is not allowed.
func (s Switches) Level(name Switch) Level {
	if l := s.at(name); l != nil {
		return *l
	}
	return No
}

// Lower is the lower level of each switch.
func (s Switches) Lower(o Switches) Switches {
	return Switches{
		RequestCheckpoint: min(s.RequestCheckpoint, o.RequestCheckpoint),
		EarlyMaintenance:  min(s.EarlyMaintenance, o.EarlyMaintenance),
		Restart:           min(s.Restart, o.Restart),
		Recreate:          min(s.Recreate, o.Recreate),
		RecreateNonSpot:   min(s.RecreateNonSpot, o.RecreateNonSpot),
		StartStopped:      min(s.StartStopped, o.StartStopped),
	}
}

// WatchOnly reports whether nothing at all is allowed.
func (s Switches) WatchOnly() bool { return s == Switches{} }

// The presets need no file.
var presets = map[string]Switches{
	"watch":    {},
	"spot":     {RequestCheckpoint: Yes, Restart: Yes, Recreate: Yes},
	"reserved": {RequestCheckpoint: Yes, EarlyMaintenance: Yes, Restart: Yes, StartStopped: Yes},
}

// Everything is the ceiling that takes nothing away.
func Everything() Switches {
	return Switches{Yes, Yes, Yes, Yes, Yes, Yes}
}

// Allow reads the deployment's ceiling: a switch on the list is yes, any other is no. The list is separated by commas; its error
// names every unknown switch.
func Allow(list string) (Switches, error) {
	var s Switches
	var unknown []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		l := s.at(Switch(name))
		if l == nil {
			unknown = append(unknown, name)
			continue
		}
		*l = Yes
	}
	if unknown != nil {
		return Switches{}, fmt.Errorf("allow: %q is no switch; the switches are %q", unknown, All())
	}
	return s, nil
}

// Limits says of switches who keeps them where they are.
type Limits map[Switch]string

// MarshalJSON writes them in order: the same document is the same bytes.
func (l Limits) MarshalJSON() ([]byte, error) { return json.Marshal(map[Switch]string(l)) }

// String is the list that Allow reads: what is yes.
func (s Switches) String() string {
	var names []string
	for _, name := range All() {
		if s.Level(name) == Yes {
			names = append(names, string(name))
		}
	}
	return strings.Join(names, ",")
}

// Policy holds for one workload at one moment: it is the lower of the owner's policy and the deployment's ceiling.
type Policy struct {
	// Name is what the label names: a preset, a name of the file, or nothing.
	Name string
	// Switches are effective. Limits says of each that is not yes who has to allow more: the deployment, a policy, a preset.
	Switches Switches
	Limits   Limits
	// Zones are tried in this order when a slice cannot be created where it was.
	Zones []string
	// LeaveZoneFor is for how long a zone that preempted the workload twice within an hour is asked after the others; 0 is never.
	LeaveZoneFor time.Duration
	// Places are tried in this order when no zone gives a slice as it was ordered.
	Places []Alternative
	// BackToFirst says whether a training that stands in one of them is moved back before its next loss.
	BackToFirst BackToFirst
	// Lead is how long before a maintenance window the save is requested; 0 is measured.
	Lead time.Duration
	// Save is how the training is asked to save.
	Save events.SaveMode
	// Hang is the reaction when the training makes no steps any more: HangRestart where Restart is allowed, else HangReport.
	Hang Hang
	// RestartsPerDay bounds the requests for a restart within 24 hours; 0 is DefaultRestartsPerDay. See DailyRestarts.
	RestartsPerDay int
	// GiveUpAfter ends the wait for Spot capacity; 0 waits for as long as it takes.
	GiveUpAfter time.Duration
	// Subnetworks are those of a slice that is created in another region, by region: short names, or whole ones.
	Subnetworks map[string]string
	// OtherRegions allows a slice to be created in another region than its checkpoints are in. EgressPrice is what a GiB
	// costs that is read from there, in dollars; 0 is unknown.
	OtherRegions bool
	EgressPrice  float64
	// ChipHourPrice is in dollars; 0 is unknown.
	ChipHourPrice float64
	// SpendAtMost is what the chips of the workload may cost before a replacement has to be approved; zero is any amount.
	SpendAtMost Budget
	// Autocheckpoint says whether a slice is created again with Google's autocheckpoint on.
	Autocheckpoint Autocheckpoint
	// Unreadable is why the policy could not be read. Pitstop decides nothing and does nothing until it can be read.
	Unreadable string
	// Unknown says that the label names no policy: Pitstop only watches the workload, and reports that.
	Unknown bool
	// Hash names the content that this was read from.
	Hash string
}

// Alternative is another shape, or another capacity, in which a slice may be created.
type Alternative struct {
	// Accelerator is its type, such as v5litepod-8; empty is that of the slice.
	Accelerator string
	// RuntimeVersion is the software version that its machines boot; empty is that of the slice, which another generation cannot
	// boot.
	RuntimeVersion string
	// Capacity is what it is taken from; empty is that of the slice. Reservation names the one that is used, where Capacity is events.Reserved.
	Capacity    events.Capacity
	Reservation string
	// Zones are where it is asked for; none are the zones in which the slice itself is asked for.
	Zones []string
	// After is for how long all places before it must have refused.
	After time.Duration
	// ChipHourPrice is in dollars; 0 is that of the policy.
	ChipHourPrice float64
}

// Budget is an amount of money in a time: the last 24 hours, or the last 7 days. Without a time there is none.
type Budget struct {
	Dollars float64
	Per     time.Duration
}

// String is the budget as a policy file has it.
func (b Budget) String() string {
	per := "week"
	if b.Per == 24*time.Hour {
		per = "day"
	}
	return strconv.FormatFloat(b.Dollars, 'f', -1, 64) + " USD a " + per
}

// BackToFirst says whether a training is moved back to its first place before its next loss.
type BackToFirst string

// BackNo leaves it where it stands. BackAfterSave moves it once a save is verified.
const (
	BackNo        BackToFirst = "no"
	BackAfterSave BackToFirst = "save"
)

// MaxAfter is the longest time for which the places before one must have refused.
const MaxAfter = 7 * 24 * time.Hour

// LastTurn is for how long the other places must have refused before each place has had its turn.
func (p Policy) LastTurn() (last time.Duration) {
	for _, a := range p.Places {
		last = max(last, a.After)
	}
	return last
}

// Hang is the reaction when a training makes no steps any more.
type Hang string

// HangReport only reports it. HangRestart asks the crew for another attempt, which ends the hanging one.
const (
	HangReport  Hang = "report"
	HangRestart Hang = "restart"
)

// Autocheckpoint says whether a slice is created again with Google's autocheckpoint on. The API sets it only at a creation.
type Autocheckpoint string

// AutocheckpointKeep keeps it as the slice was ordered, AutocheckpointOn turns it on.
const (
	AutocheckpointKeep Autocheckpoint = "keep"
	AutocheckpointOn   Autocheckpoint = "on"
)

// DefaultLead is the lead of a policy that names none while nothing is measured; MinLead and MaxLead bound what one may name.
const (
	DefaultLead = 20 * time.Minute
	MinLead     = time.Minute
	MaxLead     = 24 * time.Hour
)

// DefaultRestartsPerDay is the bound of a policy that names none, MaxRestartsPerDay the highest that one may name.
const (
	DefaultRestartsPerDay = 12
	MaxRestartsPerDay     = 100
)

// DefaultLeaveZoneFor is the time of a policy that names none, MaxLeaveZoneFor the longest that one may name.
const (
	DefaultLeaveZoneFor = 6 * time.Hour
	MaxLeaveZoneFor     = 7 * 24 * time.Hour
)

// DailyRestarts is how often a restart of the training may be asked for within 24 hours.
func (p Policy) DailyRestarts() int {
	if p.RestartsPerDay == 0 {
		return DefaultRestartsPerDay
	}
	return p.RestartsPerDay
}

// Preset reports whether a name is a preset's.
func Preset(name string) bool {
	_, ok := presets[name]
	return ok
}

func preset(name string) (Policy, bool) {
	s, ok := presets[name]
	p := Policy{Name: name, Switches: s, Save: events.SaveNatural, LeaveZoneFor: DefaultLeaveZoneFor}
	if ok {
		p.limitedBy("preset " + name)
	}
	return p, ok
}

// limitedBy says who keeps the switches where they are.
func (p *Policy) limitedBy(who string) {
	p.Limits = Limits{}
	for _, s := range All() {
		p.limit(s, p.Switches.Level(s), who)
	}
}

// limit notes who sets a switch to a level: it counts as far as nobody else allows less.
func (p *Policy) limit(s Switch, l Level, who string) {
	at, by := p.Switches.at(s), p.Limits[s]
	switch {
	case l == Yes || l > *at:
	case l == *at && by != "":
		p.Limits[s] = by + " and " + who
	default:
		*at, p.Limits[s] = l, who
	}
}

// Without is the policy where these switches are off, whatever it allows, because of who.
func (p Policy) Without(who string, switches ...Switch) Policy {
	p.Limits = maps.Clone(p.Limits)
	if p.Limits == nil {
		p.Limits = Limits{}
	}
	for _, s := range switches {
		p.limit(s, No, who)
	}
	return p
}

// under is the policy under the ceiling of a deployment.
func (p Policy) under(ceiling Switches) Policy {
	p.Limits = maps.Clone(p.Limits)
	for _, s := range All() {
		p.limit(s, ceiling.Level(s), "the deployment")
	}
	return p
}
