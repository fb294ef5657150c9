package oracle

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// trainsInPods is what the judge knows of a Job that trains with a crew.
func trainsInPods() (*Checks, *gang, *clock.Clock) {
	now := clock.NewClock(time.Date(2026, 1, 21, 19, 50, 0, 0, time.UTC))
	g := &gang{planned: map[time.Time]time.Time{}, Gang: &world.Gang{Scope: "us-east5/research/teams", Slice: "set-slice-0"}}
	g.Training = trainingtest.New(trainingtest.Config{
		Project: "demo", Slice: g.Slice, Workload: "demo/set", Clock: now, Bucket: buckettest.New(now.Now, "checkpoints"), Directory: "gs://checkpoints/set",
		Emit: func([]byte) {}, Step: 1000,
	}, events.Incarnation{Zone: g.Scope, ID: "a", Created: now.Now()}, "", 1)
	c := &Checks{World: &world.World{Clock: now}, jobs: jobs{of: map[string][]*gang{"demo/set": {g}}}, of: map[string]*record{}}
	return c, g, now
}

func pass(now *clock.Clock, d time.Duration) {
	end := now.Now().Add(d)
	for now.Step(end) {
	}
	now.Advance(end)
}

// TestAHangOfAJobIsTrue where its training does no step, and where nobody has heard of one.
func TestAHangOfAJobIsTrue(t *testing.T) {
	for name, c := range map[string]struct {
		hangs bool
		heard time.Duration
		want  bool
	}{
		"it does steps": {false, time.Minute, false},
		"it does steps, and no line of them came": {false, incident.HangFor, true},
		"it hangs": {true, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			checks, g, now := trainsInPods()
			pass(now, time.Hour)
			line := events.Entry{Time: now.Now(), Crew: &events.CrewReport{Report: events.ReportProgress, Node: g.Slice, Zone: g.Scope}}
			checks.spoke(line)
			if c.hangs {
				g.Hang()
			}
			pass(now, c.heard)
			if got := checks.jobStandsOrUnheard(checks.record("demo/set"), "demo/set"); got != c.want {
				t.Errorf("true is %v", got)
			}
		})
	}
}

// TestAnEndThatWasAnnouncedIsNear until its time has come, though the last machine that is left announces a later one.
func TestAnEndThatWasAnnouncedIsNear(t *testing.T) {
	_, g, now := trainsInPods()
	from := now.Now()
	g.planned[from.Add(time.Hour)] = from
	g.planned[from.Add(20*time.Hour)] = from.Add(time.Minute)
	for name, c := range map[string]struct {
		from, now time.Duration
		want      bool
	}{
		"an hour before":                    {0, 0, true},
		"soon after":                        {0, 2 * time.Hour, true},
		"it came before the incident":       {2 * time.Hour, 2 * time.Hour, false},
		"no machine announced it since":     {time.Second, time.Minute, false},
		"only the later one, far too early": {2 * time.Minute, 3 * time.Minute, false},
	} {
		if got := g.endsNear(from.Add(c.from), from.Add(c.now)); got != c.want {
			t.Errorf("%s: near is %v", name, got)
		}
	}
}
