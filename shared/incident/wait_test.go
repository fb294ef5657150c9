package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// told is how many lines the open incident's story has.
func told(w incident.Workload) int {
	if w.Incident == nil {
		return 0
	}
	return len(w.Incident.Timeline) + w.Incident.LeftOut
}

// asksWithin plays minutes until something is asked for, and returns that and how long it took.
func (r *tour) asksWithin(limit time.Duration, each func()) (asked string, took time.Duration) {
	for from := r.now; r.w.Incident != nil && r.now.Sub(from) < limit; {
		each()
		if asked = r.tick(time.Minute); asked != "" {
			return asked, r.now.Sub(from)
		}
	}
	return "", limit
}

// TestASliceThatComesSickHasItsTimeToHeal: it is first seen in the middle of an incident about another slice, which waits for progress.
func TestASliceThatComesSickHasItsTimeToHeal(t *testing.T) {
	r := newTour(t, multi(false), "everything")
	r.learn("a", "exit 139")
	life := events.Incarnation{Zone: "us-west4-a", ID: "9999", Created: start.Add(-time.Hour)}
	facts := r.w.Slices[0].Facts
	comes := func() {
		r.give(incident.Read{
			Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "c", Zone: life.Zone, Condition: incident.Unhealthy,
			State: "UNHEALTHY", Incarnation: life, Facts: facts, Directory: r.w.Directory,
		})
	}
	if asked, took := r.asksWithin(5*time.Hour, comes); asked != "delete c" || took < incident.HealFor-time.Minute {
		t.Errorf("asked for is %q after %v: %s", asked, took, tale(r.w))
	}
}

// TestWhatIsDoneIsNotWaitedFor: the other slice's training is asked for.
func TestWhatIsDoneIsNotWaitedFor(t *testing.T) {
	r := newTour(t, multi(false), "everything")
	done := func() { r.read("b", incident.Done, r.w.Slice("b").Incarnation) }
	done()
	r.learn("a", "exit 139")
	if asked, took := r.asksWithin(time.Hour, func() { done(); r.learn("a", "read ready") }); !strings.HasPrefix(asked, "restart") {
		t.Errorf("asked for is %q after %v: %s", asked, took, tale(r.w))
	}
}

// TestTheTimeToHealGoesOn while another slice vanishes for a moment, again and again.
func TestTheTimeToHealGoesOn(t *testing.T) {
	r := newTour(t, multi(false), "everything")
	r.learn("b", "host error", "read unhealthy")
	minute := 0
	asked, took := r.asksWithin(6*time.Hour, func() {
		r.learn("b", "read unhealthy")
		switch minute++; minute % 60 {
		case 50:
			r.learn("a", "read gone")
		case 52:
			r.learn("a", "read ready")
		}
	})
	if asked != "delete b" || took < incident.HealFor-time.Minute || took > incident.HealFor+5*time.Minute {
		t.Errorf("asked for is %q after %v: %s", asked, took, tale(r.w))
	}
}

// TestStepsBeforeARetryProveNothing: a slice has been sick for hours beside a training that did steps, and then its host failed. The
// steps before a person's retry do not end it; a step after it does, and nothing is replaced while the training may do one.
func TestStepsBeforeARetryProveNothing(t *testing.T) {
	for _, steps := range []bool{false, true} {
		w := quiet(false)
		s := &w.Slices[0].Life
		s.Condition, s.State, s.Since = incident.Unhealthy, "REPAIRING", start.Add(-2*incident.HealFor)
		w.Progress.At, w.Progress.GapSeconds = start.Add(-time.Minute), int64(time.Hour/time.Second)
		r := newTour(t, w, "everything")
		if asked := r.learn("llama-8b", "retried", "read unhealthy") + r.tick(time.Minute); asked != "" || r.w.Incident == nil {
			t.Fatalf("at once asked for is %q: %s", asked, tale(r.w))
		}
		if steps {
			r.learn("llama-8b", "progress")
		}
		asked, _ := r.asksWithin(12*time.Hour, func() { r.learn("llama-8b", "read unhealthy") })
		if resumed := r.w.Incident == nil && r.w.Closed.Outcome == incident.Resumed; resumed != steps || (asked == "delete llama-8b") == steps {
			t.Errorf("steps %v: asked for is %q: %s", steps, asked, tale(r.w))
		}
	}
}

// TestTheTimeToHealCountsFromTheEndOfTheWindow, whatever else happens meanwhile.
func TestTheTimeToHealCountsFromTheEndOfTheWindow(t *testing.T) {
	r := newTour(t, multi(false), "everything")
	r.learn("b", "host error", "read unhealthy", "ongoing")
	until := r.w.Incident.Deadline
	if r.tick(time.Minute); until.Sub(r.now) <= incident.HealFor {
		t.Fatalf("it is to heal until %v", until)
	}
	r.learn("a", "read gone")
	r.tick(time.Minute)
	r.learn("a", "read ready")
	if asked, _ := r.asksWithin(12*time.Hour, func() { r.learn("b", "read unhealthy") }); asked != "delete b" || r.now.Before(until) {
		t.Errorf("asked for is %q at %v, and it had until %v", asked, r.now, until)
	}
}

// TestAWaitIsToldOnce: readings that say the same again add nothing to the story.
func TestAWaitIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		of       func() incident.Workload
		first    [2]string
		again    [][2]string
		atMost   int
		whatever time.Duration
	}{
		"one is gone, and the other one heals": {func() incident.Workload { return multi(false) }, [2]string{"a", "stopped for"}, [][2]string{{"b", "read lost"}, {"a", "read gone"}}, 10, 30 * time.Minute},
		"the budget is spent": {func() incident.Workload {
			w := quiet(false)
			w.Budgets.Recreates, w.Budgets.Since = incident.MaxRecreates, start.Add(-time.Hour)
			return w
		}, [2]string{"llama-8b", "host error"}, [][2]string{{"llama-8b", "read lost"}}, 20, 6 * time.Hour},
	} {
		r := newTour(t, c.of(), "everything")
		r.learn(c.first[0], c.first[1])
		for end := r.now.Add(c.whatever); r.w.Incident != nil && r.now.Before(end); {
			for _, e := range c.again {
				r.learn(e[0], e[1])
			}
			r.tick(time.Minute)
		}
		if n := told(r.w); n > c.atMost {
			t.Errorf("%s: %d lines: %s", name, n, tale(r.w))
		}
	}
}

// TestAVerdictHasItsTimeInAGroupToo: another slice of the group is read meanwhile.
func TestAVerdictHasItsTimeInAGroupToo(t *testing.T) {
	w := multi(true)
	for i := range w.Slices {
		w.Slices[i].Group = "qr"
	}
	w.Budgets = incident.Budgets{Recreates: incident.MaxRecreates, Since: start}
	r := newTour(t, w, "everything")
	r.learn("a", "preempted", "read lost")
	r.learn("b", "read ready")
	for !r.w.Incident.Hearing {
		r.tick(time.Minute)
	}
	from := r.now
	r.learn("a", "read lost")
	for r.w.Incident != nil && r.w.Incident.Hearing {
		r.tick(time.Minute)
	}
	if waited := r.now.Sub(from); waited < incident.HearFor-time.Minute {
		t.Errorf("it waited for %v: %s", waited, tale(r.w))
	}
}
