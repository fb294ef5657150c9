package logs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/shared/saving"
	"pitstop.internal/shared/view"
)

// TestGoodputSaysOfSavesWhatCheckSays, of the same losses and saves: 120 steps of 10 s, and a save of 20 s.
func TestGoodputSaysOfSavesWhatCheckSays(t *testing.T) {
	t.Parallel()
	const every, saves = 1220, 1000
	for losses, want := range map[int]string{0: "save every 350 steps (1 h 0 m) instead of 120 steps (20 m 20 s)", 30: "", 2000: "save every 18 steps (3 m 0 s) instead of 120 steps (20 m 20 s)"} {
		w := goodput.Workload{Name: "llama", Pace: 10 * time.Second, SaveSteps: 120, Stepped: 120 * saves, Unsaved: losses, Stops: losses, Away: time.Duration(losses) * time.Minute, Spent: map[goodput.Kind]*goodput.Amount{
			{Use: goodput.Productive}: {Time: 120 * saves * 10 * time.Second}, {Use: goodput.Saving}: {Time: saves * 20 * time.Second},
		}}
		shown := view.Workload{Training: view.Training{StepSeconds: every / 120.0, SaveMode: events.SaveSignal, SaveSeconds: []int64{20}}}
		checked := saving.Of(shown, every*time.Second, false, saving.History{Losses: losses, Trained: saves * every * time.Second, Back: w.Away / time.Duration(max(1, losses))}, 0)
		var told, said []change
		if told = (&goodputTeller{}).changesOf(account{Report: goodput.Report{Workloads: []goodput.Workload{w}}}); checked.Advises() {
			said = []change{{"llama", checked.Change(), checked.GainLeast, checked.GainMost, 0}}
		}
		if d := cmp.Diff(said, told); d != "" || (len(told) > 0) != (want != "") || want != "" && told[0].Change != want {
			t.Errorf("%d losses: want %q (-check +goodput):\n%s%v", losses, want, d, told)
		}
	}
}
