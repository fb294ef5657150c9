//go:build unix

package crew

import (
	"context"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/shared/topology"
)

// speed measures how fast one attempt trains. The first step that is seen begins the measurement, because it includes the
// compilation and the restore.
type speed struct {
	attempt      int
	first, last  int64
	since, until time.Time
	// restore is how many seconds the training loaded its checkpoint, as its progress file tells; 0 is not told.
	restore float64
	// said is what the output said in the mean; 0 is nothing.
	said float64
	// inSteps and inSaves are the time inside steps, and that in which saves blocked the training, since the first step. What is in
	// neither is a time without a step, as of an evaluation. The newest gaps between two looks at the step, and how long one step took
	// in each, tell them apart.
	inSteps, inSaves time.Duration
	gaps             []gap
	// saving is the step of a checkpoint that was found and whose save is not counted yet; 0 is none.
	saving int64
}

// gap is the time between two steps that were seen. Counted is what of it counts as steps.
type gap struct {
	from, to      int64
	took, counted time.Duration
	saved         bool
}

const (
	// mostGaps is how many gaps are remembered: a checkpoint is found some time after its step.
	mostGaps = 64
	// pause is how much longer than usual a gap is in which the training stood still for something else than a step, and at least a minute.
	pause = 10
)

// pace is how long a step usually takes: the median, because a few gaps hold more than steps.
func (s *speed) pace() time.Duration {
	var all []time.Duration
	for _, g := range s.gaps {
		all = append(all, g.took/time.Duration(g.to-g.from))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// passed takes the time in which steps were done.
func (s *speed) passed(g gap) {
	usual := s.pace() * time.Duration(g.to-g.from)
	if g.counted = g.took; usual > 0 && g.took > max(pause*usual, time.Minute) {
		g.counted = usual
	}
	s.inSteps += g.counted
	if s.gaps = append(s.gaps, g); len(s.gaps) > mostGaps {
		s.gaps = slices.Delete(s.gaps, 0, 1)
	}
}

// saved takes the step of a checkpoint that was found.
func (s *speed) saved(step int64) {
	s.saving = step
	s.countSave()
}

// countSave counts the save of the checkpoint that was found last. It blocked the training for as long as the gap around its step is longer
// than its steps. Some trainings tell a step before its save, and others after it: only the next step shows which.
func (s *speed) countSave() {
	step := s.saving
	if step == 0 || s.last <= step {
		return
	}
	s.saving = 0
	var longest *gap
	var blocked time.Duration
	pace := s.pace()
	for i := range s.gaps {
		g := &s.gaps[i]
		if g.from > step || g.to < step {
			continue
		}
		if g.saved && g.to > step {
			return // the checkpoint was found before
		}
		if more := g.took - pace*time.Duration(g.to-g.from); !g.saved && more > blocked {
			longest, blocked = g, more
		}
	}
	if longest != nil {
		s.inSteps -= longest.counted - (longest.took - blocked)
		s.inSaves += blocked
		longest.saved = true
	}
}

// step takes a step that was done.
func (s *speed) step(n int64, at time.Time) {
	if s.first < 0 || n < s.last { // it went back to an older checkpoint
		s.first, s.since = n, at
		s.inSteps, s.inSaves, s.gaps, s.saving = 0, 0, nil, 0
	} else if n > s.last {
		s.passed(gap{from: s.last, to: n, took: max(0, at.Sub(s.until))})
	}
	s.last, s.until = n, at
	s.countSave()
}

// printed takes what the output has said so far. A parent of the release before tells no number of lines, and not the mean.
func (s *speed) printed(o child.Output) {
	if o.Lines > 0 {
		s.said = o.Examples
	}
}

// measured are the steps after the first, and how long they took. Where no step was seen, there are none.
func (s *speed) measured() (steps int64, took time.Duration) {
	if s.first < 0 {
		return 0, 0
	}
	return s.last - s.first, s.until.Sub(s.since)
}

// examples is how many examples a second the attempt has trained with this batch; 0 is not known.
func (s *speed) examples(batch int64) float64 {
	if s.said > 0 {
		return s.said
	}
	if steps, took := s.measured(); steps > 0 && took > 0 {
		return float64(steps*batch) / took.Seconds()
	}
	return 0
}

// Digits writes a number with four digits, or as a whole one.
func Digits(f float64) string {
	if f >= 1000 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// batchOf is how many examples a step has; 0 is not known.
func batchOf(o Options) int64 {
	if o.Scale != nil {
		return o.Scale.Batch
	}
	return o.Batch
}

func (c *crew) examplesPerSecond() float64 { return c.speed.examples(batchOf(c.Options)) }

// measured says what the speed of the attempt was measured on.
func (c *crew) measured() events.Measured {
	steps, took := c.speed.measured()
	return events.Measured{
		Accelerator: c.Machine.Accelerator, Slices: c.Machine.Slices, GlobalBatch: batchOf(c.Options), Steps: steps, Seconds: took.Seconds(),
	}
}

// speedObject names the object with the speeds in the crew's messages.
const speedObject = "speed beside the checkpoints"

// keepSpeed says how fast an attempt trains, and keeps that beside the checkpoints. The primary alone does so.
func (c *crew) keepSpeed(now time.Time, attempt int) {
	rate := c.examplesPerSecond()
	if rate == 0 || c.speed.attempt != attempt || !c.primary() {
		return
	}
	c.Note("attempt %d trains %s examples a second", attempt, Digits(rate))
	if c.Directory == "" {
		return
	}
	s := peers.Speed{Attempt: attempt, Measured: c.measured(), ExamplesPerSecond: rate, At: now.UTC()}
	if shape, err := topology.Parse(c.Machine.Accelerator); err == nil {
		s.Chips = shape.Chips * c.Machine.Slices
	}
	c.once(speedObject, func(ctx context.Context) func() {
		err := c.board.SetSpeed(ctx, s)
		return func() { c.fault(speedObject, err) }
	})
}
