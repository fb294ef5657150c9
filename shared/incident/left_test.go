package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// back is the path from a loss to a step of the next life.
const back = created + ", do, read ours, do, started, steps"

// leaves is a story under a policy that leaves a zone for six hours and names three.
func leaves(t *testing.T, names ...string) *story {
	n := newStory(t, true, names...).under("spot")
	n.p.Zones = []string{"us-west4-a", "us-west4-b", "us-west4-c"}
	return n
}

// TestAZoneThatPreemptsTwiceIsAskedAfterTheOthers for as long as the policy says, whatever holds calls meanwhile.
func TestAZoneThatPreemptsTwiceIsAskedAfterTheOthers(t *testing.T) {
	t.Parallel()
	const twice = back + ", 30m, " + created
	for name, c := range map[string]struct {
		path   string
		change func(*policy.Policy)
		want   string
	}{
		"one preemption":                     {created, nil, "us-west4-a"},
		"two within an hour":                 {twice, nil, "us-west4-b"},
		"two with more between":              {back + ", 61m, " + created, nil, "us-west4-a"},
		"a failure of the host, and one":     {strings.Replace(back, created, "read unhealthy, 50m, do, read gone", 1) + ", 10m, " + created, nil, "us-west4-a"},
		"the zone refuses that is asked now": {twice + ", stockout create", nil, "us-west4-c"},
		"both others refuse":                 {twice + ", stockout create, stockout create", nil, "us-west4-a"},
		"five hours later":                   {back + ", 30m, " + back + ", 5h, " + created + ", stockout create", nil, "us-west4-c"},
		"seven hours later":                  {back + ", 30m, " + back + ", 7h, " + created + ", stockout create", nil, "us-west4-a"},
		"no zone is left":                    {twice, func(p *policy.Policy) { p.LeaveZoneFor = 0 }, "us-west4-a"},
		"no other zone":                      {twice, func(p *policy.Policy) { p.Zones = nil }, "us-west4-a"},
		"on demand nothing is preempted": {twice + ", stockout create, stockout create, stockout create", func(p *policy.Policy) {
			p.Places = []policy.Alternative{{Capacity: events.OnDemand}}
		}, "us-west4-a on demand"},
		"other shapes come after all zones": {twice + ", stockout create, stockout create, stockout create", func(p *policy.Policy) {
			p.Places = []policy.Alternative{{Accelerator: "v5litepod-8"}}
		}, "us-west4-b as v5litepod-8"},
	} {
		n := leaves(t, "llama-8b")
		if c.change != nil {
			c.change(&n.p)
		}
		if got := n.goes(c.path).places(); got != "llama-8b in "+c.want {
			t.Errorf("%s: asked for is %q, want %s:\n%s", name, got, c.want, n.tale())
		}
	}
}

// TestSlicesThatGoTogetherAreOneBlow: a new life that goes within the hour is the second.
func TestSlicesThatGoTogetherAreOneBlow(t *testing.T) {
	t.Parallel()
	const lost = "a read lost, do, b read lost, do, a read gone, b read gone"
	n := leaves(t, "a", "b").goes(lost)
	if got, want := n.places(), "a in us-west4-a, b in us-west4-a"; got != want {
		t.Errorf("asked for is %q, want %q:\n%s", got, want, n.tale())
	}
	n.goes("do, a read ours, b read ours, do, started, steps, 30m, " + lost)
	if got, want := n.places(), "a in us-west4-b, b in us-west4-b"; got != want {
		t.Errorf("asked for is %q, want %q:\n%s", got, want, n.tale())
	}
}

// TestPeopleReadWhichZoneIsLeft in the story, in the plan, and in what is shown, until it is over.
func TestPeopleReadWhichZoneIsLeft(t *testing.T) {
	t.Parallel()
	n := leaves(t, "llama-8b").goes(back + ", 30m, " + created)
	const says = "us-west4-a is asked after the others until 2026-11-12 08:30 UTC: it preempted twice within an hour"
	if !strings.Contains(n.tale(), "create llama-8b in us-west4-b | llama-8b is gone; "+says) {
		t.Errorf("the story does not say it:\n%s", n.tale())
	}
	n.goes("do, read ours, do, started, steps, 10m")
	v := incident.View(n.p, n.w, n.now)
	if len(v.Left) != 1 || v.Left[0].String() != says {
		t.Errorf("shown is %v", v.Left)
	}
	if calls := v.IfLost.Calls; len(calls) < 2 || !strings.Contains(calls[1].String(), "us-west4-a ("+v.Left[0].Words()+")") {
		t.Errorf("the plan is %+v\n%s", v.IfLost, n.tale())
	}
	n.now = n.now.Add(6 * time.Hour)
	if v := incident.View(n.p, n.w, n.now); v.Left != nil {
		t.Errorf("shown is %v after its time", v.Left)
	}
}
