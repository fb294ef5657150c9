package replay_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/notify"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/jobterms"
)

// listener keeps the job of each update, and when it came.
type listener struct {
	mu    sync.Mutex
	now   func() time.Time
	heard []heard
}

type heard struct {
	at time.Time
	u  events.IncidentUpdated
}

func (l *listener) Name() string { return "listener" }
func (l *listener) Knows() bool  { return true }

func (l *listener) Send(_ context.Context, m notify.Message) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range m.Updates {
		l.heard = append(l.heard, heard{l.now(), u})
	}
	return "", nil
}

// TestTheErrorOfAJobIsToldWithinAMinute of the end of the last attempt. An incident that ends otherwise has no error.
func TestTheErrorOfAJobIsToldWithinAMinute(t *testing.T) {
	breadth.Again(t)
	ends := map[string]events.JobTerms{
		"crash-loop":          {State: events.JobFailed, Error: events.JobError{Message: "The replica worker 0 exited with a non-zero status of 1. Termination reason: Error."}},
		"crash-loop-changing": {State: events.JobFailed, Error: events.JobError{Message: "The replica worker 0 exited with a non-zero status of 23. Termination reason: Error."}},
		"queued-gave-up":      {State: events.JobFailed, Error: events.JobError{Message: "Resources are insufficient in region: us-west4."}},
		"crash":               {State: events.JobRunning},
		"preemption":          {State: events.JobRunning},
		"maintenance-early":   {State: events.JobRunning},
		"owner-deletes":       {State: events.JobCancelled},
	}
	for _, r := range recorded(t) {
		want, ok := ends[r.Name]
		if !ok {
			continue
		}
		delete(ends, r.Name)
		t.Run(r.Name, func(t *testing.T) {
			l := &listener{}
			s := run(t, r, world.Options{Hooks: world.Hooks{Tell: func(now func() time.Time) []notify.Target {
				l.now = now
				return []notify.Target{l}
			}}})
			var exited time.Time
			for _, line := range s.Lines {
				if c := line.Crew; c != nil && (c.Report == events.ReportExited || c.Report == events.ReportGaveUp) {
					exited = line.Time
				}
			}
			told := 0
			for _, h := range l.heard {
				if h.u.Outcome == "" {
					continue
				}
				told++
				if got := h.u.Job; got.State != want.State || got.Error.Message != want.Error.Message {
					t.Errorf("%s: %s, want %s", h.u.Incident, jobterms.Describe(got), jobterms.Describe(want))
				}
				if late := h.at.Sub(exited); want.State == events.JobFailed && r.Name != "queued-gave-up" && (late < 0 || late > time.Minute) {
					t.Errorf("the error is told %v after the last attempt ended", late)
				}
			}
			if told == 0 {
				t.Error("no end was told")
			}
		})
	}
	for name := range ends {
		t.Errorf("there is no recorded incident %s", name)
	}
}
