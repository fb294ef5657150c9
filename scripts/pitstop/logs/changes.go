package logs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
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
	fewestWaits = 3
)

// changesOf are the changes that gain something, by the record.
func (t *goodputTeller) changesOf(r goodput.Report) (all []change) {
	var wanted, unasked, announced, spot time.Duration
	more, waits := 0.0, map[string]time.Duration{}
	for _, w := range r.Workloads {
		wanted += w.Time() - w.Time(goodput.Stopped)
		unasked += max(0, w.Unasked-time.Duration(w.Stops)*prompt)
		if c, ok := intervalOf(w); ok {
			all = append(all, c)
		}
		for k, n := range w.Spent {
			if k.Use == goodput.Capacity {
				waits[k.Zone] += n.Time
			}
			if k.Use == goodput.Again && k.Cause == events.CauseMaintenance {
				announced += n.Time
			}
			if !k.Spot {
				continue
			}
			if isLost(k) && (k.Cause == events.CausePreemption || k.Cause == events.CauseTerminated) {
				spot += n.Time
			}
			if other, known := t.prices.Of(k.Accelerator, false); known && k.Use != goodput.Stopped {
				dollars, _ := t.prices.Of(k.Accelerator, true)
				more += (other - dollars) * n.Chips.Hours()
			}
		}
	}
	longer, zone := zoneOf(r, waits)
	for _, c := range []struct {
		gains   time.Duration
		text    string
		dollars float64
	}{
		{unasked, "notice a loss and ask for new machines within " + events.Span(prompt), 0},
		{longer, "wait for capacity in " + zone + " alone", 0},
		{spot, "run on demand in the place of Spot", more},
		{announced, "save when maintenance is announced: a crew and request_checkpoint, or autocheckpoint", 0},
	} {
		if points := hundredths(100 * c.gains.Seconds() / max(wanted, 1).Seconds()); points >= worthIt {
			all = append(all, change{Change: c.text, PointsAtMost: points, DollarsMore: hundredths(c.dollars)})
		}
	}
	return all
}

// zoneOf is the zone in which a slice waits least for capacity, and how much the waits in the others were longer.
func zoneOf(r goodput.Report, waits map[string]time.Duration) (longer time.Duration, zone string) {
	stops := map[string]int{}
	for _, g := range r.Groups {
		stops[g.Zone] += g.Losses
	}
	maps.DeleteFunc(stops, func(_ string, n int) bool { return n < fewestWaits })
	mean := func(z string) time.Duration { return waits[z] / time.Duration(stops[z]) }
	for _, z := range slices.Sorted(maps.Keys(stops)) {
		if zone == "" || mean(z) < mean(zone) {
			zone = z
		}
	}
	for z, n := range stops {
		longer += waits[z] - time.Duration(n)*mean(zone)
	}
	return longer, zone
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

// intervalOf is the time between two saves that loses least for a workload, if it surely gains something.
func intervalOf(w goodput.Workload) (c change, ok bool) {
	r, ok := savesOf(w)
	if !ok {
		return c, false
	}
	steps := bestSteps(w, r)
	a := r.Weigh(time.Duration(steps)*w.Pace + r.Save)
	return change{
		Workload: w.Name, PointsAtLeast: hundredths(a.Least), PointsAtMost: hundredths(a.Most),
		Change: fmt.Sprintf("save every %s steps (%s) instead of %s (%s)", events.Number(steps), events.Span(a.Every.Round(time.Second)),
			events.Number(w.SaveSteps), events.Span(r.Every.Round(time.Second))),
	}, a.Least > worthIt
}

// printChanges tells what may be changed.
func printChanges(p *terminal.Printer, all []change) {
	rows := [][]string{{"change", "points of goodput", "workload", "dollars more"}}
	for _, c := range all {
		gain, dollars := fmt.Sprintf("at most %.1f", c.PointsAtMost), "-"
		if c.PointsAtLeast > 0 {
			gain = fmt.Sprintf("%.1f to %.1f", c.PointsAtLeast, c.PointsAtMost)
		}
		if c.DollarsMore > 0 {
			dollars = fmt.Sprintf("%.2f", c.DollarsMore)
		}
		rows = append(rows, []string{c.Change, gain, cmp.Or(c.Workload, "-"), dollars})
	}
	printTable(p, titleChanges, mostRows, 2, rows)
}
