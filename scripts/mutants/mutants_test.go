package main

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/deployment/terraform"
	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

func TestEveryRuleIsBrokenInTwoWays(t *testing.T) {
	rules, names := map[string]int{}, map[string]bool{}
	for _, m := range mutants {
		rule, _, _ := strings.Cut(m.rule, " ")
		rules[rule]++
		if names[m.name] {
			t.Errorf("there are two mutants %q", m.name)
		}
		names[m.name] = true
		if (m.seams == nil) != (m.faults == static) || (m.grant == nil) != (m.faults != static) {
			t.Errorf("%s: it breaks the pipeline or the deployment, and its faults are %s", m.name, m.faults)
		}
	}
	for _, rule := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		if rules[rule] < 2 {
			t.Errorf("rule %s is broken in %d ways, want two at least", rule, rules[rule])
		}
	}
}

// TestEveryMutantChangesSomething: one that does not would survive for want of an occasion, or be caught by chance.
func TestEveryMutantChangesSomething(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays some seeds for each mutant")
	}
	h, err := newHunt("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if m.grant == nil {
				t.Parallel()
				changes(t, h, m)
			}
		})
	}
}

// most is how many seeds a mutant may leave as they are.
const most = 20

// changes plays seeds until a mutant has changed something.
func changes(t *testing.T, h hunt, m mutant) {
	t.Helper()
	for seed := uint64(1); seed <= most; seed++ {
		ctx, cancel := context.WithCancel(t.Context())
		var did atomic.Bool
		fired := func() {
			did.Store(true)
			cancel()
		}
		sim, err := h.settings[m.faults].Simulation(seed)
		if err != nil {
			t.Fatal(err)
		}
		sim.Seams = m.seams(fired)
		if decide := sim.Seams.Decide; decide != nil {
			sim.Seams.Decide = func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
				next, send, changed := decide(p, w, e, now)
				if !did.Load() {
					same, sends, changes := incident.Advance(p, w, e, now)
					if changed != changes || !reflect.DeepEqual(next, same) || !reflect.DeepEqual(send, sends) {
						fired()
					}
				}
				return next, send, changed
			}
		}
		_, err = scenario.Simulate(ctx, sim)
		cancel()
		if did.Load() {
			return
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	t.Errorf("%s changes nothing in %d seeds", m.name, most)
}

func TestChecksOfTheDeploymentNotice(t *testing.T) {
	for _, m := range mutants {
		if m.grant == nil {
			continue
		}
		d, err := terraform.Parse("../../terraform")
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
	h, err := newHunt("../..")
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
