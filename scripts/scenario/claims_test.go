package scenario

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/tpu/tputest"
)

// TestStepsWithoutACrewAreNobodysProgress: a forged line opens an incident about a Multislice. One of its slices has no crew, and its
// training is much further and has stopped. Whether the incident may end resumed hangs on the steps of the other one alone.
func TestStepsWithoutACrewAreNobodysProgress(t *testing.T) {
	for name, trains := range map[string]bool{"the other one does steps": true, "neither does": false} {
		t.Run(name, func(t *testing.T) {
			clock := NewClock(time.Date(2026, 1, 21, 19, 50, 0, 0, time.UTC))
			bucket := buckettest.New(clock.Now, "checkpoints")
			fleet := []SliceConfig{
				{Name: "twin-0", Workload: "twin", Directory: "gs://checkpoints/twin"},
				{Name: "twin-1", Workload: "twin", Crew: CrewConfig{Absent: true}},
			}
			w := &world{clock: clock, trainings: map[string]*tputest.Training{}}
			c := &checks{world: w, fleetOf: map[string][]SliceConfig{"demo/twin": fleet}, past: map[string][]deed{}, of: map[string]*record{}}
			for i, f := range fleet {
				w.trainings[f.Name] = tputest.NewTraining(tputest.TrainingConfig{
					Project: "demo", Slice: f.Name, Workload: "demo/twin", Clock: clock, Bucket: bucket, Directory: f.Directory, NoCrew: f.Crew.Absent,
					Emit: func([]byte) {}, Step: int64(1000 + 100_000*i),
				}, events.Incarnation{Zone: "us-west4-a", ID: f.Name, Created: clock.Now()}, f.Name, 4)
			}
			pass := func(d time.Duration) {
				end := clock.Now().Add(d)
				for clock.Step(end) {
				}
				clock.advance(end)
			}
			r := c.record("demo/twin")
			r.closed, r.baseline = clock.Now(), 1000
			pass(time.Hour)
			w.trainings["twin-1"].Die()
			c.past["twin-1"] = append(c.past["twin-1"], deed{at: clock.Now(), kind: broken})
			pass(time.Hour)
			if !trains {
				w.trainings["twin-0"].Hang()
			}
			r.at = c.step("demo/twin")
			in := &incident.Incident{Opened: clock.Now(), ConfirmedBy: incident.ByStep}
			pass(10 * time.Minute)
			why := c.wronglyResumed(end{r, incident.Workload{ID: "demo/twin"}, in})
			if (why == "") != trains {
				t.Errorf("wrong is %q, at step %d, then %d", why, r.at, c.step("demo/twin"))
			}
		})
	}
}
