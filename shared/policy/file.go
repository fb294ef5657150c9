package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
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

type entry struct {
	Preset        string               `yaml:"preset"`
	Switches      map[string]yaml.Node `yaml:"switches"`
	Zones         []string             `yaml:"zones"`
	Lead          *duration            `yaml:"lead"`
	Save          string               `yaml:"save"`
	GiveUpAfter   *duration            `yaml:"give_up_after"`
	ChipHourPrice float64              `yaml:"chip_hour_price"`
}

// duration is a Go duration in YAML, with its line for messages.
type duration struct {
	time.Duration
	line int
}

func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %.40q is no duration such as 10m or 48h", n.Line, n.Value)
	}
	d.Duration, d.line = v, n.Line
	return nil
}

// zoneName is what a zone looks like; whether there is one of that name only the cloud knows.
var zoneName = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$`)

// Parse reads a policy file and tells every fault in it with its line where the fault has one.
func Parse(data []byte) (*File, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("policy file: %d bytes are more than the %d that are read", len(data), MaxFileBytes)
	}
	var f file
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("policy file: %s", strings.TrimPrefix(oneLine(err), "yaml: "))
	}
	out := &File{policies: make(map[string]Policy, len(f.Policies)), hash: events.ID("policy", string(data))}
	var faults []error
	for _, name := range sortedKeys(f.Policies) {
		p, err := f.Policies[name].policy(name)
		if err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", name, err))
			continue
		}
		p.Hash = out.hash
		out.policies[name] = p
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("policy file: %w", err)
	}
	return out, nil
}

// oneLine puts the faults that the decoder lists on lines of their own side by side.
func oneLine(err error) string {
	s := strings.ReplaceAll(err.Error(), "unmarshal errors:\n  ", "")
	return strings.ReplaceAll(s, "\n  ", "; ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (e entry) policy(name string) (Policy, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if _, taken := presets[name]; taken {
		fault("the name is a preset's")
	}
	if e.Preset == "" {
		e.Preset = "watch"
	}
	p, ok := preset(e.Preset)
	if !ok {
		fault("preset %q is none of watch, spot, reserved", e.Preset)
	}
	p.Name = name
	for _, s := range sortedKeys(e.Switches) {
		n := e.Switches[s]
		l := p.Switches.at(Switch(s))
		if l == nil {
			fault("line %d: %q is no switch; the switches are %q", n.Line, s, All())
			continue
		}
		if err := l.UnmarshalText([]byte(n.Value)); err != nil {
			fault("line %d: %s: %w", n.Line, s, err)
		}
	}
	for _, z := range e.Zones {
		if !zoneName.MatchString(z) {
			fault("zones: %q is no zone", z)
		}
	}
	p.Zones = e.Zones
	if e.Lead != nil {
		p.Lead = e.Lead.Duration
		if p.Lead < time.Minute || p.Lead > 24*time.Hour {
			fault("line %d: lead %v is not between 1m and 24h", e.Lead.line, p.Lead)
		}
	}
	if e.GiveUpAfter != nil {
		p.GiveUpAfter = e.GiveUpAfter.Duration
		if p.GiveUpAfter < 0 {
			fault("line %d: give_up_after %v is negative", e.GiveUpAfter.line, p.GiveUpAfter)
		}
	}
	switch m := events.SaveMode(e.Save); m {
	case "":
	case events.SaveNatural, events.SaveSignal:
		p.Save = m
	default:
		fault("save %q is neither natural nor signal", e.Save)
	}
	p.ChipHourPrice = e.ChipHourPrice
	if p.ChipHourPrice < 0 {
		fault("chip_hour_price %v is negative", e.ChipHourPrice)
	}
	return p, errors.Join(faults...)
}

// Names lists the policies of the file.
func (f *File) Names() []string { return sortedKeys(f.policies) }

// For resolves the value of the label pitstop-policy under a ceiling. No label is watched; an unknown one is watched
// and marked. A nil file has the presets alone.
func (f *File) For(label string, ceiling Switches) Policy {
	if label == "" {
		label = "watch"
	}
	p, ok := preset(label)
	if f != nil {
		p.Hash = f.hash
		if named, found := f.policies[label]; found {
			p, ok = named, true
		}
	}
	p.Unknown = !ok
	p.Switches = p.Switches.Lower(ceiling)
	return p
}
