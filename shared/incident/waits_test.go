package incident_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// waitsIn has a quiet Job read in a condition, in which it is since a time by its own objects.
func waitsIn(j *job, c incident.Condition, state string, since time.Time) {
	e := found(j.w, c, state, j.now.Add(time.Minute))
	e.Facts.WaitsSince = since
	j.learns(e)
}

// TestALongWaitIsTold: once after an hour, and then every six hours for as long as it lasts. Nothing is asked for, and no incident opens.
func TestALongWaitIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		condition incident.Condition
		state     string
	}{
		"it waits for machines":    {incident.Creating, "creating: its Pod llama-8b-0 waits for a machine: Unschedulable: Insufficient google.com/tpu"},
		"nobody lets its Job go":   {incident.Deleting, "deleting: the Job is being deleted, and the finalizer acme.dev/archive holds it"},
		"it is stopped since then": {incident.Stopped, "stopped: it is suspended, and no label names a queue"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, policies["everything"])
			since := start.Add(-10 * time.Minute)
			waitsIn(j, c.condition, c.state, since)
			var told []string
			for j.now.Sub(since) < 14*time.Hour {
				before := j.w
				due := due(j.w)
				if asked := j.learns(incident.Ticked{}); asked != "" {
					t.Fatalf("%s is asked for", asked)
				}
				for _, u := range incident.Updates(before, j.w) {
					told = append(told, events.Span(j.now.Sub(since)))
					if due.IsZero() || due.After(j.now) {
						t.Errorf("it is told at %v, and was due at %v", j.now, due)
					}
					if err := u.Validate(); err != nil || u.Step() != "waiting/waiting" || !u.Waiting.Equal(since) || !strings.Contains(strings.Join(u.Happened, ""), c.state) {
						t.Errorf("told is %+v (%v)", u, err)
					}
					if again, waits := j.w.Shown(time.Time{}).WaitUpdate(u.Incident); !waits || again.Incident != u.Incident {
						t.Errorf("the document tells %+v", again)
					}
				}
			}
			want := "[1 h 0 m 6 h 0 m 12 h 0 m]"
			if c.condition == incident.Stopped {
				want = "[]"
			}
			if got := fmt.Sprint(told); got != want || c.condition != incident.Stopped && j.w.Incident != nil {
				t.Errorf("told after %s, want %s; incident %+v", got, want, j.w.Incident)
			}
		})
	}
}

// TestAWaitEnds: what no longer waits is not told of, and the next wait is told like the first.
func TestAWaitEnds(t *testing.T) {
	j := newJob(t, policies["everything"])
	waitsIn(j, incident.Creating, "creating: its Pod llama-8b-0 waits for a machine", start.Add(-2*time.Hour))
	if j.learns(incident.Ticked{Unread: true}); !j.w.WaitTold.IsZero() {
		t.Error("nobody could read whether it still waits")
	}
	j.learns(incident.Ticked{})
	told := j.w.WaitTold
	u := incident.Updates(incident.Workload{}, j.w)
	if told.IsZero() || len(u) != 1 {
		t.Fatalf("told are %+v", u)
	}
	j.learns(found(j.w, incident.Ready, "ready", j.now.Add(time.Minute)))
	if _, waits := j.w.Shown(time.Time{}).WaitUpdate(u[0].Incident); waits || !due(j.w).IsZero() {
		t.Errorf("it is usable, waits %v, and is due at %v", waits, due(j.w))
	}
	since := j.now
	waitsIn(j, incident.Creating, "creating: its Pod llama-8b-0 waits for a machine", since)
	if due := due(j.w); !due.Equal(since.Add(incident.RemindFirst)) {
		t.Errorf("the next wait is due at %v", due)
	}
}

// TestOneWordTellsOfAllSlicesThatWait, and the longest wait counts.
func TestOneWordTellsOfAllSlicesThatWait(t *testing.T) {
	j := newJob(t, policies["everything"])
	first := j.w.Slices[0]
	for i := range 40 {
		s := first
		s.Name = fmt.Sprintf("llama-8b-%d", i)
		s.Condition, s.State, s.WaitsSince = incident.Creating, "creating: its Pod waits", start.Add(-time.Duration(40+i)*time.Minute)
		j.w.Slices = append(j.w.Slices, s)
	}
	before := j.w
	j.learns(incident.Ticked{})
	u := incident.Updates(before, j.w)
	if len(u) != 1 || len(u[0].Happened) != 6 || u[0].Happened[0] != "Job llama-8b-39 is creating: its Pod waits" || u[0].Happened[5] != "and 35 more of its slices wait" {
		t.Errorf("told are %+v", u)
	}
	if !strings.Contains(u[0].Advice, "kubectl describe job llama-8b-39 --zone us-west4-a") {
		t.Errorf("the advice is %s", u[0].Advice)
	}
}
