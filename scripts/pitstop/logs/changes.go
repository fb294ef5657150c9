package logs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/shared/interval"
	"pitstop.internal/shared/saving"
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
	// prompt is how long after a loss new machines are asked for at the earliest.
	prompt = time.Minute
	// fewestWaits is from how many waits on the mean wait of a zone is believed.
	fewestWaits = 10
)

// changesOf are the changes that gain something, by the record.
func (t *goodputTeller) changesOf(a account) (all []change) {
	var wanted, announced, spot time.Duration
	more, priced := 0.0, true
	for _, w := range a.Workloads {
		wanted += w.Time() - w.Time(goodput.Stopped)
		if h, ok := habitOf(w); ok && h.Advises() {
			all = append(all, change{w.Name, h.Change(), h.GainLeast, h.GainMost, 0})
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
	longer, zone := longerThanIn(a.Losses)
	for _, c := range []struct {
		gains   time.Duration
		text    string
		dollars float64
	}{
		{unaskedFor(a.Losses), "notice a loss and ask for new machines within " + events.Span(prompt), 0},
		{longer, "ask for capacity in " + zone + " first", 0},
		{spot, "run on demand in the place of Spot", more},
		{announced, "save when maintenance is announced: a crew and request_checkpoint, or autocheckpoint", 0},
	} {
		if points := hundredths(100 * c.gains.Seconds() / max(wanted, 1).Seconds()); points >= saving.Worthwhile {
			all = append(all, change{Change: c.text, PointsAtMost: points, DollarsMore: hundredths(c.dollars)})
		}
	}
	return all
}

// wait is a time in which a workload waits.
type wait struct {
	workload string
	from, to time.Time
}

// once are these waits, those together that a workload had at once, as for several slices.
func once(all []wait) (out []wait) {
	slices.SortFunc(all, func(w, v wait) int { return cmp.Or(cmp.Compare(w.workload, v.workload), w.from.Compare(v.from)) })
	for _, w := range all {
		if n := len(out) - 1; n < 0 || out[n].workload != w.workload || w.from.After(out[n].to) {
			out = append(out, w)
		} else if w.to.After(out[n].to) {
			out[n].to = w.to
		}
	}
	return out
}

// unaskedFor is how long workloads waited, and nobody asked for what they had lost.
func unaskedFor(losses []goodput.Loss) (sum time.Duration) {
	var all []wait
	for _, l := range losses {
		if until := l.At.Add(time.Duration(l.Unasked * float64(time.Second))); l.Workload != "" && until.Sub(l.At) > prompt {
			all = append(all, wait{l.Project + "/" + l.Workload, l.At.Add(prompt), until})
		}
	}
	for _, w := range once(all) {
		sum += w.to.Sub(w.from)
	}
	return sum
}

// longerThanIn is the zone in which slices came back soonest after somebody had asked for them, and how much longer that took in the others.
// A zone of few waits says nothing.
func longerThanIn(losses []goodput.Loss) (longer time.Duration, zone string) {
	waits := map[string][]wait{}
	for _, l := range losses {
		z := cmp.Or(l.BackZone, l.Zone)
		if job := strings.Contains(z, "/"); l.Outcome == goodput.Back && !l.Asked.IsZero() && !l.BackAt.Before(l.Asked) && l.RecreatedBy != goodput.ByGoogle && !job {
			waits[z] = append(waits[z], wait{l.Project + "/" + l.Workload, l.Asked, l.BackAt})
		}
	}
	sum, mean := map[string]time.Duration{}, map[string]time.Duration{}
	for _, z := range slices.Sorted(maps.Keys(waits)) {
		waits[z] = once(waits[z])
		if len(waits[z]) < fewestWaits {
			continue
		}
		for _, w := range waits[z] {
			sum[z] += w.to.Sub(w.from)
		}
		mean[z] = sum[z] / time.Duration(len(waits[z]))
		if zone == "" || mean[z] < mean[zone] {
			zone = z
		}
	}
	for z := range sum {
		longer += sum[z] - mean[zone]*time.Duration(len(waits[z]))
	}
	return longer, zone
}

// habitOf is how a workload saves; false where its crew does not tell of saves.
func habitOf(w goodput.Workload) (h saving.Habit, ok bool) {
	spent := w.Time(goodput.Saving)
	if w.Unsplit || spent == 0 || w.SaveSteps == 0 || w.Stepped == 0 || w.Pace == 0 {
		return h, false
	}
	saves := max(1, w.Stepped/w.SaveSteps)
	save := spent / time.Duration(saves)
	every := time.Duration(w.SaveSteps)*w.Pace + save
	return saving.Weigh(interval.Record{
		Losses: w.Unsaved, Trained: w.Time(goodput.Productive, goodput.Saving, goodput.Again), Back: w.Away / time.Duration(max(1, w.Stops)), Save: save, Every: every,
	}, int(saves), every.Seconds()/float64(w.SaveSteps)), true
}
