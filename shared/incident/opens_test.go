package incident

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
)

// TestTheFirstOpeningDecides, and says its name.
func TestTheFirstOpeningDecides(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	word := &Trouble{Slice: "a", Cause: events.CauseUnknown, At: now}
	for name, c := range map[string]struct {
		condition evidence.Condition
		change    func(*Workload)
		suspicion *Trouble
		want      string
	}{
		"all is well":                      {condition: evidence.Ready},
		"a person's word":                  {condition: evidence.Lost, suspicion: word, want: "somebody tells of it"},
		"a loss":                           {condition: evidence.Lost, want: "a slice cannot be used"},
		"a loss after the training":        {condition: evidence.Lost, change: func(w *Workload) { w.Training.Verdict = Verdict{Finished: true, Certain: true} }},
		"a loss of what its owner has":     {condition: evidence.Lost, change: func(w *Workload) { w.Slices[0].Released = now }},
		"what an incident ordered is left": {condition: evidence.Ready, change: func(w *Workload) { w.Slices[0].Ordered = now }, want: "something is left behind"},
		"the crew gave up": {condition: evidence.Ready, want: "the training has failed", change: func(w *Workload) {
			w.Training.Verdict = Verdict{Attempt: 1, GaveUp: true, At: now}
		}},
	} {
		w := Workload{Slices: []Slot{{Name: "a", Life: Life{
			Incarnation: events.Incarnation{Zone: "z", ID: "1", Created: now.Add(-2 * time.Hour)}, Zone: "z", Condition: c.condition, Since: now.Add(-time.Hour),
		}}}}
		if c.change != nil {
			c.change(&w)
		}
		if trouble, opened := diagnose(policy.Policy{Switches: policy.Everything()}, &w, now).opens(c.suspicion, true); opened != c.want || (trouble == nil) != (c.want == "") {
			t.Errorf("%s: %q opens an incident, want %q", name, opened, c.want)
		}
	}
}
