package heart

import (
	"testing"
	"time"

	"pitstop.internal/events"
)

// TestARestartIsPaidBackByWhatNobodyKnewThen: an event of the machines explains what the training did, unless it came long after, only a line
// tells of it, or the restart was begun in the knowledge of it. Else a training that fails on and on would be begun again without end.
func TestARestartIsPaidBackByWhatNobodyKnewThen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at, heard time.Duration
		rank      events.Rank
		restart   time.Duration
		paid      bool
	}{
		"it is heard of after the restart":     {time.Minute, 10 * time.Minute, events.RankAudit, 5 * time.Minute, true},
		"it was known before":                  {time.Minute, 2 * time.Minute, events.RankAudit, 5 * time.Minute, false},
		"it came long after the training":      {20 * time.Minute, 20 * time.Minute, events.RankAudit, 5 * time.Minute, false},
		"only a line tells of it":              {time.Minute, 10 * time.Minute, events.RankUser, 5 * time.Minute, false},
		"it is heard of as the restart begins": {time.Minute, 5 * time.Minute, events.RankAudit, 5 * time.Minute, false},
	} {
		in := &Incident{ID: "x", Opened: noon, Troubles: []Trouble{
			{Cause: events.CauseCrash, At: noon, Heard: noon, Rank: events.RankUser},
			{Cause: events.CausePreemption, At: noon.Add(c.at), Heard: noon.Add(c.heard), Rank: c.rank},
		}}
		w := Workload{Incident: in, Charges: []Charge{{Action: events.ActionRestart, Incident: "x", At: noon.Add(c.restart)}}}
		if spent := w.Spent(events.ActionRestart); (spent == 0) != c.paid {
			t.Errorf("%s: %d restarts are spent", name, spent)
		}
	}
}

// TestTheSameErrorIsOneThatARestartHasAnswered: of the same kind, without a new step, and not the machines' own.
func TestTheSameErrorIsOneThatARestartHasAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Workload)
		same   bool
	}{
		"the same":                     {func(*Workload) {}, true},
		"another one":                  {func(w *Workload) { w.Training.Exit.Sign = "other" }, false},
		"after a new step":             {func(w *Workload) { w.Training.Exit.High++ }, false},
		"the crew goes on by itself":   {func(w *Workload) { w.Training.Verdict.Attempt-- }, false},
		"it is the one that was begun": {func(w *Workload) { w.Training.Exit.At = noon.Add(-time.Minute) }, false},
		"another one came in between": {func(w *Workload) {
			w.Charges = append(w.Charges, Charge{Action: events.ActionRestart, At: noon.Add(time.Minute), Error: "other"})
		}, false},
		"its machine had failed": {func(w *Workload) { w.Charges[0].Void = true }, false},
	} {
		w := Workload{Training: Training{
			Exit: Exit{Attempt: 2, At: noon.Add(time.Hour), Sign: "exit 1", High: 500}, Verdict: Verdict{Attempt: 2, GaveUp: true},
		}}
		w.Charges = []Charge{{Action: events.ActionRestart, At: noon, Error: w.Training.lastError()}}
		if c.change(&w); w.isSameError() != c.same {
			t.Errorf("%s: it is the same: %t", name, !c.same)
		}
	}
}
