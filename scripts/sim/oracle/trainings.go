package oracle

import (
	"slices"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// trainings are those of a workload, on slices and in Pods.
func (c *Checks) trainings(workload string) (all []*trainingtest.Training) {
	for _, f := range c.slicesOf(workload) {
		if t := c.Trainings[f.Name]; t != nil {
			all = append(all, t)
		}
	}
	for _, g := range c.gangs(workload) {
		all = append(all, g.Training)
	}
	return all
}

// steppingFor is how long a training must have done steps again before it is wrong to report a hang: the crew's state is
// read every five minutes, and a write there may have been lost.
const steppingFor = 20 * time.Minute

// steps names a slice of a workload on which steps have been done for a while, as a crew may tell, if there is one.
func (c *Checks) steps(workload string) string {
	for _, t := range c.trainings(workload) {
		if since := t.Stepping(); !t.NoCrew && !since.IsZero() && c.Clock.Now().Sub(since) > steppingFor {
			return t.Slice
		}
	}
	return ""
}

// step is the last step of the attempts on a workload that run, or ran last, as far as a crew tells of them.
func (c *Checks) step(workload string) (step int64) {
	for _, t := range c.trainings(workload) {
		if !t.NoCrew {
			step = max(step, t.Reached(t.Began().Add(-time.Nanosecond)))
		}
	}
	return step
}

// highest is the last step that was done on a workload, or saved by a zombie.
func (c *Checks) highest(workload string) (step int64) {
	for _, t := range c.trainings(workload) {
		step = max(step, t.LastStep(), c.savedTo[t.Directory])
	}
	return step
}

// truly is the step of a workload's last complete checkpoint in the world.
func (c *Checks) truly(workload string) (step int64) {
	for _, t := range c.trainings(workload) {
		step = max(step, t.Saved())
	}
	return step
}

// done reports whether the work of one of the trainings of a workload is done, as far as anybody can know: a new training
// becomes known with its first step.
func (c *Checks) done(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		t := c.Trainings[f.Name]
		return t.Finished() || !t.FinishedAt().IsZero() && !c.record(workload).heard.After(t.FinishedAt())
	}) || slices.ContainsFunc(c.gangs(workload), func(g *gang) bool { return len(g.complete) > 0 || !g.FinishedAt().IsZero() })
}

// runs reports whether a process of a training is there: without one nothing hangs any more.
func (c *Checks) runs(workload string) bool {
	return slices.ContainsFunc(c.trainings(workload), func(t *trainingtest.Training) bool {
		_, runs := t.Running()
		return runs
	})
}

// standsOrUnheard reports whether no step has been done of a training for a while, or nobody could know of one.
func (c *Checks) standsOrUnheard(workload string) bool {
	return c.steps(workload) == "" || c.unheard(workload)
}

// unheard reports whether nobody has learned for a while what a training does: on slices by what the crews write on their machines, in Pods by
// their lines alone.
func (c *Checks) unheard(workload string) bool {
	r := c.record(workload)
	if len(c.gangs(workload)) > 0 {
		return c.Clock.Now().Sub(r.heard) >= bounds.HangFor
	}
	return c.unlistened(r)
}

// mute reports whether the crew of a slice has written nothing on its machine.
func (c *Checks) mute(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		t := c.Trainings[f.Name]
		if t == nil {
			return true
		}
		_, wrote := t.State()
		return !wrote
	})
}

// standsStill reports whether a training of a workload does nothing, and nobody says so.
func (c *Checks) standsStill(workload string) bool {
	return slices.ContainsFunc(c.trainings(workload), func(t *trainingtest.Training) bool { return !t.Still().IsZero() })
}

// crewed are the slices of a workload whose crews tell of steps. What trains without a crew counts steps of its own.
func (c *Checks) crewed(workload string) []world.SliceConfig {
	return slices.DeleteFunc(slices.Clone(c.slicesOf(workload)), func(f world.SliceConfig) bool { return c.Trainings[f.Name].NoCrew })
}

// unlistened reports whether nobody has read for a while what the crews of a workload write on their machines.
func (c *Checks) unlistened(r *record) bool { return c.Clock.Now().Sub(r.listened) > bounds.HearFor }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
