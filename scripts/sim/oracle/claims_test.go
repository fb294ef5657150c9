package oracle

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/view"
)

// TestStepsWithoutACrewAreNobodysProgress: a forged line opens an incident about a Multislice. One of its slices has no crew, and its
// training is much further and has stopped. Whether the incident may end resumed hangs on the steps of the other one alone.
func TestStepsWithoutACrewAreNobodysProgress(t *testing.T) {
	for name, trains := range map[string]bool{"the other one does steps": true, "neither does": false} {
		t.Run(name, func(t *testing.T) {
			now := clock.NewClock(time.Date(2026, 1, 21, 19, 50, 0, 0, time.UTC))
			bucket := buckettest.New(now.Now, "checkpoints")
			fleet := []world.SliceConfig{
				{Name: "twin-0", Workload: "twin", Directory: "gs://checkpoints/twin"},
				{Name: "twin-1", Workload: "twin", Crew: world.CrewConfig{Absent: true}},
			}
			w := &world.World{Clock: now, Trainings: map[string]*trainingtest.Training{}}
			c := &Checks{World: w, fleetOf: map[string][]world.SliceConfig{"demo/twin": fleet}, past: map[string][]deed{}, of: map[string]*record{}}
			for i, f := range fleet {
				w.Trainings[f.Name] = trainingtest.New(trainingtest.Config{
					Project: "demo", Slice: f.Name, Workload: "demo/twin", Clock: now, Bucket: bucket, Directory: f.Directory, NoCrew: f.Crew.Absent,
					Emit: func([]byte) {}, Step: int64(1000 + 100_000*i),
				}, events.Incarnation{Zone: "us-west4-a", ID: f.Name, Created: now.Now()}, f.Name, 4)
			}
			pass := func(d time.Duration) {
				end := now.Now().Add(d)
				for now.Step(end) {
				}
				now.Advance(end)
			}
			r := c.record("demo/twin")
			r.closed, r.baseline = now.Now(), 1000
			pass(time.Hour)
			w.Trainings["twin-1"].Die()
			c.past["twin-1"] = append(c.past["twin-1"], deed{at: now.Now(), kind: broken})
			pass(time.Hour)
			if !trains {
				w.Trainings["twin-0"].Hang()
			}
			r.at = c.step("demo/twin")
			in := &seenIncident{Opened: now.Now(), ConfirmedBy: view.ByStep}
			pass(10 * time.Minute)
			why := c.wronglyResumed(end{r, seen{ID: "demo/twin"}, in})
			if (why == "") != trains {
				t.Errorf("wrong is %q, at step %d, then %d", why, r.at, c.step("demo/twin"))
			}
		})
	}
}
