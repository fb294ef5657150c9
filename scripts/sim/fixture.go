package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
)

// Fixture is a simulation in a folder, with the rule that it broke: it runs the same again when seeds draw something else.
type Fixture struct {
	Simulation
	// Rule and Text describe the broken rule, and Workload the workload; empty for a night that is kept because it is hard.
	Rule, Workload, Text string
}

// night is simulation.yaml. The faults are written as numbers and the rates by name, so that later built-in values do not
// shift the draws.
type night struct {
	Seed   uint64        `yaml:"seed"`
	Days   float64       `yaml:"days"`
	Slices int           `yaml:"slices"`
	Allow  *string       `yaml:"allow,omitempty"`
	Limit  *int          `yaml:"limit,omitempty"`
	Faults faults.Faults `yaml:"faults"`
	Traces []nightTrace  `yaml:"traces,omitempty"`
	// What was broken.
	Rule     string `yaml:"rule,omitempty"`
	Workload string `yaml:"workload,omitempty"`
	Text     string `yaml:"text,omitempty"`
}

type nightTrace struct {
	File string `yaml:"file"`
}

// The files of a fixture.
const (
	nightFile  = "simulation.yaml"
	fleetFile  = "fleet.yaml"
	policyFile = "policy.yaml"
	ratesName  = "rates.yaml"
	storyFile  = "story.txt"
)

// Save writes a fixture into a folder, which is made when it is not there; story is for people.
func (f Fixture) Save(dir string, story []byte) error {
	n := night{
		Seed: f.Seed, Days: f.Days, Slices: len(f.World.Fleet), Faults: f.Faults, Rule: f.Rule, Workload: f.Workload, Text: f.Text,
	}
	if f.Limit != NoLimit {
		n.Limit = &f.Limit
	}
	if f.Allow != nil {
		list := f.Allow.String()
		n.Allow = &list
	}
	files := map[string][]byte{policyFile: f.Policy, storyFile: story}
	for i, t := range f.Traces {
		one := nightTrace{File: fmt.Sprintf("%d-%s", i+1, t.Name)}
		n.Traces = append(n.Traces, one)
		files[one.File] = t.Data
	}
	var errs [3]error
	files[nightFile], errs[0] = yaml.Marshal(n)
	files[fleetFile], errs[1] = yaml.Marshal(f.World)
	files[ratesName], errs[2] = f.Rates.File()
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("fixture %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("fixture: %w", err)
	}
	for name, data := range files {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("fixture: %w", err)
		}
	}
	return nil
}

// LoadFixture reads a fixture from its folder.
func LoadFixture(dir string) (Fixture, error) {
	fail := func(err error) (Fixture, error) { return Fixture{}, fmt.Errorf("fixture %s: %w", dir, err) }
	files := map[string][]byte{}
	for _, name := range []string{nightFile, fleetFile, policyFile, ratesName} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && (name == nightFile || name == fleetFile || !errors.Is(err, fs.ErrNotExist)) {
			return fail(err)
		}
		files[name] = data
	}
	var n night
	d := yaml.NewDecoder(bytes.NewReader(files[nightFile]))
	d.KnownFields(true)
	if err := d.Decode(&n); err != nil {
		return fail(fmt.Errorf("%s: %s", nightFile, strings.Join(strings.Fields(err.Error()), " ")))
	}
	f := Fixture{
		Simulation: Simulation{Seed: n.Seed, Days: n.Days, Policy: files[policyFile], Faults: n.Faults, Limit: NoLimit},
		Rule:       n.Rule, Workload: n.Workload, Text: n.Text,
	}
	if n.Limit != nil {
		f.Limit = *n.Limit
	}
	var err error
	if n.Allow != nil {
		allowed, err := policy.Allow(*n.Allow)
		if err != nil {
			return fail(err)
		}
		f.Allow = &allowed
	}
	if f.World, err = world.Parse(files[fleetFile]); err != nil {
		return fail(err)
	}
	if f.Rates, err = faults.ParseRates(files[ratesName]); err != nil {
		return fail(err)
	}
	for _, t := range n.Traces {
		data, err := os.ReadFile(filepath.Join(dir, t.File))
		if err != nil {
			return fail(err)
		}
		trace, err := faults.ParseTrace(t.File, data)
		if err == nil {
			err = trace.Fits(f.World)
		}
		if err != nil {
			return fail(err)
		}
		f.Traces = append(f.Traces, trace)
	}
	if f.Days <= 0 || f.Days > faults.Longest.Hours()/24 || n.Slices != len(f.World.Fleet) {
		return fail(fmt.Errorf("%s: %g days, %d slices; the days have to be more than 0 and at most 3650, and %s has %d slices", nightFile, f.Days, n.Slices, fleetFile, len(f.World.Fleet)))
	}
	return f, nil
}

// Breaks reports whether a run breaks the rule of the fixture.
func (f Fixture) Breaks(r *oracle.Result) bool {
	for _, v := range r.Violations {
		if v.Rule == f.Rule {
			return true
		}
	}
	return false
}
