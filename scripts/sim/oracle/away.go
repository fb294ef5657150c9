package oracle

import (
	"math"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/topology"
)

// Away: the time without training and its cost, as each incident tells them, beside those of the world. No rule holds them to each other.

// Away is that of all incidents that ended, while the training was not finished. Told is what they say, World how it was: from the last step before
// the trouble, in all the time in which no step was done until the end of the incident. A cost in the world counts the steps too that had to
// be done again.
type Away struct {
	Incidents      int     `json:"incidents"`
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

	toldChipHours, worldChipHours float64
}

// off is by how much it tells more than was so.
func (a AwayOf) off() time.Duration {
	return time.Duration((a.ToldSeconds - a.WorldSeconds) * float64(time.Second))
}

// isAway measures an incident that has just ended. Before is when the last one ended, whose time is not counted again, unless the incident itself
// tells it.
func (c *Checks) isAway(workload string, in *seenIncident, before time.Time) {
	if c.done(workload) {
		return
	}
	from, cost := in.Opened, in.shown.Cost
	if !in.Down.IsZero() {
		from = earlier(from, in.Down)
	}
	var away, again time.Duration
	for _, t := range c.trainings(workload) { // on the slices of a workload it stands still together
		stood, lost := stood(t.Worked(), from, before, in.Opened, c.Clock.Now())
		away, again = max(away, stood), max(again, lost)
	}
	c.away = append(c.away, AwayOf{
		Workload: workload, Incident: in.ID, Cause: in.Cause, ToldSeconds: cost.AwaySeconds, WorldSeconds: away.Seconds(),
		toldChipHours: cost.ChipHours, worldChipHours: (away + again).Hours() * float64(c.chips(workload)),
	})
}

// stood is how long no step was done until a moment, from the last step before another one on, though not from before the last incident ended. It
// returns too how long the steps had taken that had to be done again.
func stood(worked []trainingtest.Stretch, from, least, opened, until time.Time) (away, again time.Duration) {
	since := time.Time{} // the last step before
	for _, w := range worked {
		if w.From.Before(from) {
			since = later(since, earlier(w.Until, from))
		}
	}
	if since.Before(least) {
		since = opened
	}
	away = until.Sub(since)
	for _, w := range worked {
		if w.Until.Before(since) {
			continue
		}
		if w.Until.Before(until) {
			again += w.Again
		}
		away -= max(0, earlier(w.Until, until).Sub(later(w.From, since)))
	}
	return away, again
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
