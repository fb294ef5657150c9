package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// TestARestartIsRefundedOnce: however many better causes are learned, and whatever has been paid in the meantime.
func TestARestartIsRefundedOnce(t *testing.T) {
	t.Parallel()
	for path, left := range map[string]int{
		"its causes": 1, "do, 1m, resumes, its causes": 1, "its causes, its causes": 1, "its causes, cancelled, 1m, retried": 0, "a record proves a step, its causes": 0,
	} {
		n := at(t, "everything", true, "tick", func(w *incident.Workload) {
			w.Charges = []incident.Charge{{Action: events.ActionRestart, Incident: "before", At: start.Add(-time.Hour)}}
		})
		opened := n.now
		n.goes(failing + ", intend restart")
		if spent := n.w.Spent(events.ActionRestart); spent != 2 {
			t.Fatalf("charged is %d:\n%s", spent, n.tale())
		}
		for step := range strings.SplitSeq(path, ", ") {
			switch step {
			case "its causes":
				for _, c := range []events.Cause{events.CauseUnknown, events.CauseGuest, events.CauseTerminated, events.CausePreemption, events.CauseHostError} {
					s := n.w.Slices[0]
					n.give(evidence.Interrupted{Origin: evidence.Origin{ID: string(c), Time: opened, Rank: events.RankAudit}, Slice: s.Name, Incarnation: s.Incarnation, Cause: c, Text: string(c)})
				}
			case "resumes":
				if n.steps(2, 48_300); n.w.Incident != nil {
					t.Fatalf("it is open:\n%s", n.tale())
				}
			case "a record proves a step":
				n.proves(48_300, n.now)
			default:
				n.play(step)
			}
		}
		if got := n.w.Spent(events.ActionRestart); got != left {
			t.Errorf("%s: two were spent, and left are %d of them, want %d: %+v", path, got, left, n.w.Charges)
		}
	}
}

// proves has a crew's record on its machine show a step that was done at a time.
func (n *story) proves(step int64, at time.Time) *story {
	s := n.w.Slices[0]
	return n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now, Runs: true, Attempt: 2, Step: step, StepAt: at})
}

// TestAStepPaysWhatWasSpentBeforeIt: one that was done between two restarts pays the first of them back, and not the second.
func TestAStepPaysWhatWasSpentBeforeIt(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, failing+", do, 10m")
	between := n.now
	n.goes("started, exit 1, gave up, its verdict, intend restart")
	if spent := n.w.Spent(events.ActionRestart); spent != 2 {
		t.Fatalf("charged is %d:\n%s", spent, n.tale())
	}
	if n.proves(48_300, between); n.w.Spent(events.ActionRestart) != 1 {
		t.Errorf("charged is %+v", n.w.Charges)
	}
}

// TestTheStorySaysWhyNoVerdictWasRead: who has to mend the bucket finds the reason there, whatever waited for the verdict.
func TestTheStorySaysWhyNoVerdictWasRead(t *testing.T) {
	t.Parallel()
	const why = "gs://ckpt/llama-8b: 403, storage.objects.get is denied"
	for name, c := range map[string]struct {
		spot   bool
		path   string
		charge int
	}{
		"a lost Spot slice": {true, "finished", 0}, "a lost slice on demand": {false, "finished", 0}, "no replacements left": {true, "tick", bounds.MaxRecreates},
	} {
		n := at(t, "everything", c.spot, c.path, func(w *incident.Workload) {
			for range c.charge {
				w.Charges = append(w.Charges, incident.Charge{Action: events.ActionDelete, Incident: "before", At: start.Add(-time.Hour)})
			}
		}).goes("2h, read lost")
		told := ""
		for end := n.now.Add(bounds.HealFor + bounds.HearFor + 5*time.Minute); n.w.Incident != nil && n.now.Before(end); n.goes("1m, read lost") {
			if i := n.effect(events.ActionHear, ""); i >= 0 && n.w.Effects[i].Retry.IsZero() {
				n.give(evidence.VerdictRead{Origin: n.reading(), Request: n.begins(events.ActionHear, ""), Failure: &evidence.Failure{Class: "transient", Message: why}})
			}
			told += n.tale()
		}
		if !strings.Contains(told+n.tale(), why) {
			t.Errorf("%s: the story does not say why:\n%s", name, n.tale())
		}
	}
}
