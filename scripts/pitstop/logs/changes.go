package logs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/shared/interval"
)

// change is something that a person may change, and what that gains. Pitstop changes none of it by itself.
type change struct {
	Workload string `json:"workload,omitzero"`
	Change   string `json:"change"`
	// PointsAtLeast and PointsAtMost of goodput are what it gains.
	PointsAtLeast float64 `json:"points_at_least"`
	PointsAtMost  float64 `json:"points_at_most"`
	// DollarsMore is what it costs in the time of the record, where the prices tell.
	DollarsMore float64 `json:"dollars_more,omitzero"`
}

const (
	// worthIt is the gain in points that a change has to reach to be told: surely, where it is a time between saves.
	worthIt = 0.3
	// prompt is how long after a loss new machines are asked for at the earliest.
	prompt = time.Minute
	// fewestWaits is from how many waits on the mean wait of a zone is believed.
	fewestWaits = 10
)

// changesOf are the changes that gain something, by the record.
func (t *goodputTeller) changesOf(a account) (all []change) {
	var wanted, unasked, announced, spot time.Duration
	more, priced := 0.0, true
	for _, w := range a.Workloads {
		wanted += w.Time() - w.Time(goodput.Stopped)
		if r, ok := savesOf(w); ok {
			steps := bestSteps(w, r)
			if a := r.Weigh(time.Duration(steps)*w.Pace + r.Save); a.Least > worthIt {
				text := fmt.Sprintf("save every %s steps (%s) instead of %s (%s)", events.Number(steps), events.Span(a.Every.Round(time.Second)), events.Number(w.SaveSteps), events.Span(r.Every.Round(time.Second)))
				all = append(all, change{w.Name, text, hundredths(a.Least), hundredths(a.Most), 0})
			}
		}
		for k, n := range w.Spent {
			if k.Use == goodput.Again && k.Cause == events.CauseMaintenance {
				announced += n.Time
			}
			if !k.Spot {
				continue
			}
			if isLost(k.Use) && (k.Cause == events.CausePreemption || k.Cause == events.CauseTerminated) {
				spot += n.Time
			}
			if k.Use != goodput.Stopped {
				dollars, known := t.prices.Of(k.Accelerator, true)
				other, too := t.prices.Of(k.Accelerator, false)
				priced = priced && known && too
				more += (other - dollars) * n.Chips.Hours()
			}
		}
	}
	if !priced {
		more = 0
	}
	for _, l := range a.Losses {
		unasked += max(0, time.Duration(l.Unasked*float64(time.Second))-prompt)
	}
	longer, zone := longerThanIn(a.Losses)
	for _, c := range []struct {
		gains   time.Duration
		text    string
		dollars float64
	}{
		{unasked, "notice a loss and ask for new machines within " + events.Span(prompt), 0},
		{longer, "ask for capacity in " + zone + " first", 0},
		{spot, "run on demand in the place of Spot", more},
		{announced, "save when maintenance is announced: a crew and request_checkpoint, or autocheckpoint", 0},
	} {
		if points := hundredths(100 * c.gains.Seconds() / max(wanted, 1).Seconds()); points >= worthIt {
			all = append(all, change{Change: c.text, PointsAtMost: points, DollarsMore: hundredths(c.dollars)})
		}
	}
	return all
}

// longerThanIn is the zone in which slices came back soonest after somebody had asked for them, and how much longer that took in the others.
// A zone of few waits says nothing.
func longerThanIn(losses []goodput.Loss) (longer time.Duration, zone string) {
	waits := map[string][]float64{}
	for _, l := range losses {
		z := cmp.Or(l.BackZone, l.Zone)
		if job := strings.Contains(z, "/"); l.Outcome == goodput.Back && l.RecreatedBy != goodput.ByGoogle && !job {
			waits[z] = append(waits[z], l.Gap-l.Unasked)
		}
	}
	maps.DeleteFunc(waits, func(_ string, all []float64) bool { return len(all) < fewestWaits })
	sum := func(z string) (sum float64) {
		for _, w := range waits[z] {
			sum += w
		}
		return sum
	}
	mean := func(z string) float64 { return sum(z) / float64(len(waits[z])) }
	seconds := 0.0
	for _, z := range slices.Sorted(maps.Keys(waits)) {
		if zone == "" || mean(z) < mean(zone) {
			zone = z
		}
	}
	for z, all := range waits {
		seconds += sum(z) - mean(zone)*float64(len(all))
	}
	return time.Duration(seconds * float64(time.Second)), zone
}

// savesOf is what a workload's saves and losses say; false where its crew does not tell of saves.
func savesOf(w goodput.Workload) (r interval.Record, ok bool) {
	saving := w.Time(goodput.Saving)
	if w.Unsplit || saving == 0 || w.SaveSteps == 0 || w.Stepped == 0 || w.Pace == 0 {
		return r, false
	}
	save := time.Duration(float64(saving) * float64(w.SaveSteps) / float64(w.Stepped))
	return interval.Record{
		Losses: w.Unsaved, Trained: w.Time(goodput.Productive, goodput.Saving, goodput.Again), Back: w.Away / time.Duration(max(1, w.Stops)),
		Save: save, Every: time.Duration(w.SaveSteps)*w.Pace + save,
	}, true
}

// bestSteps is from how many steps to save on a workload loses least.
func bestSteps(w goodput.Workload, r interval.Record) int64 {
	return max(1, int64(math.Round(float64(interval.Best(r.Save, interval.BetweenLosses(r.Losses, r.Trained)))/float64(w.Pace))))
}
