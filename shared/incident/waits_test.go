package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// waiting has a reading show the Job in a condition, in which it is since a time by its own objects.
func (n *story) waiting(c evidence.Condition, state string, since time.Time) *story {
	return n.reads("llama-8b", c, func(e *evidence.Read) { e.State, e.Facts.WaitsSince = state, since })
}

// TestALongWaitIsTold: once after an hour, and then every six hours for as long as it lasts. Nothing is asked for, and no incident opens.
func TestALongWaitIsTold(t *testing.T) {
	t.Parallel()
	for state, c := range map[string]struct {
		condition evidence.Condition
		told      []time.Duration
	}{
		"creating: its Pod llama-8b-0 waits for a machine: Unschedulable": {evidence.Creating, []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour}},
		"deleting: the finalizer acme.dev/archive holds it":               {evidence.Deleting, []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour}},
		"stopped: it is suspended, and no label names a queue":            {evidence.Stopped, nil}, // its owner's wait
	} {
		n := newJob(t)
		since := start.Add(-10 * time.Minute)
		n.waiting(c.condition, state, since)
		var told []time.Duration
		for n.now.Sub(since) < 14*time.Hour {
			before, due := n.w, n.w.Due()
			if sent := n.passes(time.Minute); len(sent) > 0 || c.told != nil && n.w.Incident != nil {
				t.Fatalf("%s: %q is asked for:\n%s", state, sent, n.tale())
			}
			for _, u := range incident.Updates(before, n.w) {
				if u.Step() != "waiting/waiting" {
					continue
				}
				told = append(told, n.now.Sub(since))
				if err := u.Validate(); err != nil || !u.Waiting.Equal(since) || !strings.Contains(strings.Join(u.Happened, ""), state) || due.IsZero() || due.After(n.now) {
					t.Errorf("%s: due at %v, people hear %+v (%v)", state, due, u, err)
				}
				if again, waits := n.w.Shown(time.Time{}).WaitUpdate(u.Incident); !waits || again.Incident != u.Incident {
					t.Errorf("%s: the document tells %+v", state, again)
				}
			}
		}
		if !slices.Equal(told, c.told) {
			t.Errorf("%s: it is told after %v, want %v", state, told, c.told)
		}
	}
}

// TestAWaitEnds: what no longer waits is not told of, and the next wait is told like the first.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	const pod = "creating: its Pod llama-8b-0 waits for a machine"
	n := newJob(t)
	n.waiting(evidence.Creating, pod, start.Add(-2*time.Hour))
	if n.later(time.Minute).give(evidence.Ticked{Unread: true}); len(incident.Updates(incident.Workload{}, n.w)) > 0 {
		t.Error("nobody could read whether it still waits")
	}
	n.passes(time.Minute)
	u := incident.Updates(incident.Workload{}, n.w)
	if len(u) != 1 {
		t.Fatalf("told are %+v", u)
	}
	n.reads("llama-8b", evidence.Ready)
	if _, waits := n.w.Shown(time.Time{}).WaitUpdate(u[0].Incident); waits || !n.w.Due().IsZero() {
		t.Errorf("it is usable, waits %v, and is due at %v", waits, n.w.Due())
	}
	n.later(time.Hour).waiting(evidence.Creating, pod, n.now)
	if due := n.w.Due(); !due.Equal(n.now.Add(bounds.RemindFirst)) {
		t.Errorf("the next wait, since %v, is due at %v", n.now, due)
	}
}

// TestOneWordTellsOfAllSlicesThatWait, and the longest wait counts.
func TestOneWordTellsOfAllSlicesThatWait(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	for i := range 40 {
		s := n.w.Slices[0]
		s.Name += "-" + events.Number(int64(i))
		s.Condition, s.State, s.WaitsSince = evidence.Creating, "creating: its Pod waits", start.Add(-time.Duration(40+i)*time.Minute)
		n.w.Slices = append(n.w.Slices, s)
	}
	before := n.w
	n.passes(time.Minute)
	u := incident.Updates(before, n.w)
	if len(u) != 1 || len(u[0].Happened) != 6 || u[0].Happened[0] != "Job llama-8b-39 is creating: its Pod waits" || u[0].Happened[5] != "and 35 more of its slices wait" {
		t.Fatalf("told are %+v", u)
	}
	if !strings.Contains(u[0].Advice, "kubectl describe job llama-8b-39 --namespace default") {
		t.Errorf("the advice is %s", u[0].Advice)
	}
}
