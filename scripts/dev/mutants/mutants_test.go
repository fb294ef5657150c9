package main

import (
	"context"
	"errors"
	"io"
	"log"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/dev/deployment/terraform"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // as the command does
	m.Run()
}

func TestEveryRuleIsBrokenInTwoWays(t *testing.T) {
	rules, names := map[string]int{}, map[string]bool{}
	for _, m := range mutants {
		rule, _, _ := strings.Cut(m.rule, " ")
		rules[rule]++
		if names[m.name] {
			t.Errorf("there are two mutants %q", m.name)
		}
		names[m.name] = true
		if (m.hooks == nil) != (m.faults == static) || (m.grant == nil) != (m.faults != static) {
			t.Errorf("%s: it breaks the pipeline or the deployment, and its faults are %s", m.name, m.faults)
		}
	}
	for _, rule := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		if rules[rule] < 2 {
			t.Errorf("rule %s is broken in %d ways, want two at least", rule, rules[rule])
		}
	}
}

// TestEveryMutantOfADecisionChangesSomething: one that does not would survive for want of an occasion, or be caught by chance.
// All of them are asked about each decision of a run that is whole.
func TestEveryMutantOfADecisionChangesSomething(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays some seeds")
	}
	h := ofAll(t)
	for _, faults := range []degree{heavy, hostile} {
		left := map[string]ledger.Decision{}
		for _, m := range some(mutants) {
			if m.faults == faults && onlyDecides(m.hooks(func() {})) {
				left[m.name] = m.hooks(func() {}).Decide
			}
		}
		for seed := uint64(1); seed <= most && len(left) > 0; seed++ {
			one, err := h.settings[faults].Simulation(seed)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			one.Hooks.Decide = func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
				next, send, changed := incident.Advance(p, w, e, now)
				for name, decide := range left {
					other, sends, changes := decide(p, w, e, now)
					if changed != changes || !reflect.DeepEqual(next, other) || !reflect.DeepEqual(send, sends) {
						delete(left, name)
					}
				}
				if len(left) == 0 {
					cancel()
				}
				return next, send, changed
			}
			if _, err := sim.Simulate(ctx, one); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			cancel()
		}
		for name := range left {
			t.Errorf("%s changes no decision in %d seeds under %s faults", name, most, faults)
		}
	}
}

// TestEveryMutantAtAnotherHookFires: likewise, each in a run of its own, up to where it does.
func TestEveryMutantAtAnotherHookFires(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays some seeds for each mutant")
	}
	h := ofAll(t)
	for _, m := range some(mutants) {
		if m.hooks == nil || onlyDecides(m.hooks(func() {})) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var did atomic.Bool
			for seed := uint64(1); seed <= most && !did.Load(); seed++ {
				one, err := h.settings[m.faults].Simulation(seed)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				one.Hooks = m.hooks(func() {
					did.Store(true)
					cancel()
				})
				if _, err := sim.Simulate(ctx, one); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				cancel()
			}
			if !did.Load() {
				t.Errorf("it never fires in %d seeds under %s faults", most, m.faults)
			}
		})
	}
}

// ofAll plays whole fleets, so that there is an occasion for everything.
func ofAll(t *testing.T) hunt {
	t.Helper()
	h, err := newHunt("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range h.settings {
		if !s.Jobs { // every run has all Jobs, and faults of Jobs need no fleet
			s.Slices = 0
		}
		h.settings[name] = s
	}
	return h
}

// some are all mutants in full, and otherwise every tenth: each plays fleets until it fires.
func some(all []mutant) (chosen []mutant) {
	for i := 0; i < len(all); i += breadth.Every(10) {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// onlyDecides reports whether no other hook than the decision is broken.
func onlyDecides(s world.Hooks) bool {
	s.Decide = nil
	return reflect.ValueOf(s).IsZero()
}

// most is how many seeds a mutant may leave as they are. The rarest is a label for maintenance asked for twice: seed 7.
const most = 7

func TestChecksOfTheDeploymentNotice(t *testing.T) {
	for _, m := range mutants {
		if m.grant == nil {
			continue
		}
		d, err := terraform.Parse("../../../terraform")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.grant(d); err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if len(d.Faults()) == 0 {
			t.Errorf("%s: no check notices", m.name)
		}
	}
}

// TestTheLowestSeedCatches: the table names the same seed however many run at a time.
func TestTheLowestSeedCatches(t *testing.T) {
	h, err := newHunt("../../..")
	if err != nil {
		t.Fatal(err)
	}
	ms, err := named([]string{"nothing is read before a deletion"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := h.hunt(t.Context(), ms[0], 3)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(found.by, "seed ") || found.text == "" {
		t.Errorf("caught by %q: %q", found.by, found.text)
	}
	if _, err := named([]string{"no such mutant"}); err == nil {
		t.Error("a mutant is run that there is not")
	}
}

// TestTheWorstPipelinesAreCaughtAtOnce: each of them would cost its users most, and a rule about it has to speak within five seeds.
func TestTheWorstPipelinesAreCaughtAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays a few nights")
	}
	h, err := newHunt("../../..")
	if err != nil {
		t.Fatal(err)
	}
	worst := map[string]string{
		"no incident is ever opened":             "no trouble untold: ",
		"the first stockout is given up on":      "ends: ",
		"every lost slice counts as its owner's": "what is said is so: ",
	}
	if !breadth.Full() {
		worst = map[string]string{"no incident is ever opened": "no trouble untold: "}
	}
	for name, rule := range worst {
		i := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })
		if i < 0 {
			t.Errorf("there is no mutant %q", name)
			continue
		}
		if got, err := h.hunt(t.Context(), mutants[i], 5); err != nil || !strings.HasPrefix(got.text, rule) {
			t.Errorf("%s: %s %q (%v), want the rule %q", name, got.by, got.text, err, rule)
		}
	}
}
