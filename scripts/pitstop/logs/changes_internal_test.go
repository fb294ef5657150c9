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

// TestEachWaitOfAWorkloadCountsOnce, though several of its slices are lost together.
func TestEachWaitOfAWorkloadCountsOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 12, 3, 0, 0, 0, time.UTC)
	w := goodput.Workload{Project: "mine", Name: "q", Spent: map[goodput.Kind]*goodput.Amount{{Use: goodput.Capacity}: {Time: 5 * time.Hour}, {Use: goodput.Stopped}: {Time: 100 * time.Hour}}}
	a := account{Report: goodput.Report{Workloads: []goodput.Workload{w}}}
	for i := range 2 * 8 { // two losses of 8 slices each
		lost := at.Add(time.Duration(i%8)*time.Second + time.Duration(i/8)*10*time.Hour)
		a.Losses = append(a.Losses, goodput.Loss{Project: "mine", Workload: "q", Zone: "us-west4-a", Outcome: goodput.Back, At: lost, Unasked: 61 * 60, Asked: lost.Add(61 * time.Minute), BackAt: lost.Add(66 * time.Minute)})
	}
	got := (&goodputTeller{}).changesOf(a)
	if len(got) != 1 || got[0].PointsAtMost != 40.08 { // twice an hour and 7 seconds, of five hours
		t.Errorf("%+v", got)
	}
	if _, zone := longerThanIn(a.Losses); zone != "" {
		t.Errorf("two waits name the zone %s", zone)
	}
}
