package oracle

import (
	"math"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// Away: the time without training and its cost, as each incident tells them, beside those of the world.

// Away is that of all incidents that ended, while the training was not finished. Told is what they say, World how it was: from the last step before
// the trouble, in all the time in which no step was done until the end of the incident. A cost in the world counts the steps too that had to
// be done again.
type Away struct {
	Incidents int `json:"incidents"`
	// Right are those that tell the time to a minute and 1 %, RightCost those that tell the chip-hours so, or a bound that holds. AtLeast are those
	// that tell a bound.
	Right          int     `json:"right"`
	RightCost      int     `json:"right_cost"`
	AtLeast        int     `json:"at_least"`
	ToldHours      float64 `json:"told_hours"`
	WorldHours     float64 `json:"world_hours"`
	ToldChipHours  float64 `json:"told_chip_hours"`
	WorldChipHours float64 `json:"world_chip_hours"`
	// TooLong and TooShort are by how much incidents tell more, and less, than was so. Worst is the one that is furthest off.
	TooLong  Percentiles `json:"too_long_seconds"`
	TooShort Percentiles `json:"too_short_seconds"`
	Worst    AwayOf      `json:"worst"`
}

// AwayOf is that of one incident.
type AwayOf struct {
	Workload     string       `json:"workload"`
	Incident     string       `json:"incident"`
	Cause        events.Cause `json:"cause"`
	ToldSeconds  float64      `json:"told_seconds"`
	WorldSeconds float64      `json:"world_seconds"`
	// AtLeast says that it tells no more than a bound.
	AtLeast bool `json:"at_least,omitzero"`

	toldChipHours, worldChipHours, chips float64
}

// off is by how much it tells more than was so.
func (a AwayOf) off() time.Duration {
	return time.Duration((a.ToldSeconds - a.WorldSeconds) * float64(time.Second))
}

// costs is what an incident that has ended was told last to have cost.
type costs struct {
	in *seenIncident
	// before is when the last incident ended. Done says that the training was finished at its end.
	before time.Time
	done   bool
}

// isRight reports whether a figure is as it was in the world to within a minute and 1 %, which is slack for a minute, or no more than that where it
// is a bound.
func (a AwayOf) isRight(told, world, slack float64) bool {
	slack += world / 100
	return told <= world+slack && (a.AtLeast || told >= world-slack)
}

// settled measures an incident once nothing changes any more what it cost: what was left to people goes on until the training is back.
func (c *Checks) settled(r *record, after seen) {
	over := after.Over
	if k := r.costs; k != nil && (over == nil || over.ID != k.in.ID) {
		c.isAway(after.ID, *k)
		r.costs = nil
	}
	switch {
	case over == nil:
	case r.costs == nil:
		r.costs = &costs{in: over, before: r.closed, done: c.done(after.ID)}
	default:
		r.costs.in = over
	}
}

// isAway measures an incident. The time before it is not counted again that an incident before has told.
func (c *Checks) isAway(workload string, k costs) {
	in, cost := k.in, k.in.shown.Cost
	if k.done || c.record(workload).skewed.After(in.Opened.Add(-time.Hour)) { // when that began which a wrong clock tells of, nobody knows
		return
	}
	from := in.Opened
	if !in.Down.IsZero() {
		from = earlier(from, in.Down)
	}
	worked := c.worked(workload)
	away, again := stood(worked, from, k.before, k.until(worked, c.Clock.Now()))
	c.away = append(c.away, AwayOf{
		Workload: workload, Incident: in.ID, Cause: in.Cause, ToldSeconds: cost.AwaySeconds, WorldSeconds: away.Seconds(), AtLeast: cost.AtLeast,
		toldChipHours: cost.ChipHours, worldChipHours: (away + again).Hours() * float64(c.chips(workload)), chips: float64(c.chips(workload)),
	})
}

// worked are the stretches in which steps were done on any slice of a workload: on all of them it stands still together. Where one has a crew, the
// others are only its machines.
func (c *Checks) worked(workload string) (all []trainingtest.Stretch) {
	trainings := c.trainings(workload)
	crewed := slices.ContainsFunc(trainings, func(t *trainingtest.Training) bool { return !t.NoCrew })
	for _, t := range trainings {
		if !crewed || !t.NoCrew {
			all = append(all, t.Worked()...)
		}
	}
	slices.SortStableFunc(all, func(a, b trainingtest.Stretch) int { return a.From.Compare(b.From) })
	merged := all[:0]
	for _, w := range all {
		if n := len(merged); n > 0 && !w.From.After(merged[n-1].Until) {
			last := &merged[n-1]
			last.Until, last.Again = later(last.Until, w.Until), max(last.Again, w.Again)
			continue
		}
		merged = append(merged, w)
	}
	return merged
}

// until is until when an incident counts: until its end or, where it was left to people, until the training is back or somebody has taken it over.
func (k costs) until(worked []trainingtest.Stretch, now time.Time) time.Time {
	switch {
	case k.in.Outcome != view.Escalated:
		return k.in.Closed
	case !k.in.shown.Taken.IsZero():
		return k.in.shown.Taken
	}
	for _, w := range worked {
		if w.Until.After(k.in.Closed) {
			return later(w.From, k.in.Closed)
		}
	}
	return now
}

// stood is how long no step was done until a moment, from the last step before another one on. Where no step was done since the last incident had
// ended, it begins with that other one. It returns too how long the steps had taken that had to be done again.
func stood(worked []trainingtest.Stretch, from, least, until time.Time) (away, again time.Duration) {
	since := time.Time{} // the last step before
	for _, w := range worked {
		if w.From.Before(from) {
			since = later(since, earlier(w.Until, from))
		}
	}
	if since.Before(least) || since.IsZero() {
		since = later(from, least)
	}
	away = until.Sub(since)
	for i, w := range worked {
		if i+1 < len(worked) && worked[i+1].From.After(since) && !worked[i+1].From.After(until) {
			again += w.Again // it came back in this incident
		}
		if w.Until.Before(since) {
			continue
		}
		away -= max(0, earlier(w.Until, until).Sub(later(w.From, since)))
	}
	return max(0, away), again
}

// chips are those of a workload, as its owner ordered it.
func (c *Checks) chips(workload string) (n int) {
	for _, f := range c.slicesOf(workload) {
		if a, err := topology.Parse(f.Accelerator); err == nil {
			n += a.Chips
		}
	}
	for _, g := range c.gangs(workload) {
		n += g.Chips()
	}
	return n
}

// sumAway is that of several incidents.
func sumAway(all []AwayOf) (sum Away) {
	var long, short []time.Duration
	for _, a := range all {
		sum.ToldHours += a.ToldSeconds / 3600
		sum.WorldHours += a.WorldSeconds / 3600
		sum.ToldChipHours += a.toldChipHours
		sum.WorldChipHours += a.worldChipHours
		for _, n := range []struct {
			of *int
			is bool
		}{
			{&sum.Right, a.isRight(a.ToldSeconds, a.WorldSeconds, 60)},
			{&sum.RightCost, a.isRight(a.toldChipHours, a.worldChipHours, a.chips/60)},
			{&sum.AtLeast, a.AtLeast},
		} {
			if n.is {
				*n.of++
			}
		}
		switch off := a.off(); {
		case off < 0:
			short = append(short, -off)
		default:
			long = append(long, off)
		}
		if sum.Incidents == 0 || a.off().Abs() > sum.Worst.off().Abs() {
			sum.Worst = a
		}
		sum.Incidents++
	}
	for _, n := range []*float64{&sum.ToldHours, &sum.WorldHours, &sum.ToldChipHours, &sum.WorldChipHours} {
		*n = math.Round(10**n) / 10
	}
	sum.TooLong, sum.TooShort = percentiles(long), percentiles(short)
	return sum
}
