package oracle

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
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
		"it does steps, and no line of them came": {false, bounds.HangFor, true},
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
			if got := checks.standsOrUnheard("demo/set"); got != c.want {
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

// TestAMachineMayEndAPodBeforeItIsTaken, where Google says so before: it does of Spot machines that it takes back.
func TestAMachineMayEndAPodBeforeItIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		machine string
		why     events.Cause
		after   time.Duration
		want    bool
	}{
		"the Pod is on it":                      {"next", events.CauseHostError, time.Hour, true},
		"it ended within the longest notice":    {"former", events.CausePreemption, 80 * time.Second, true},
		"it ended before that":                  {"former", events.CausePreemption, 3 * time.Minute, false},
		"it ended, and nobody says host errors": {"former", events.CauseHostError, 16 * time.Second, false},
		"it was never on this one":              {"other", events.CausePreemption, time.Second, false},
		"it is on it again":                     {"back", events.CausePreemption, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, now := trainsInPods()
			g.left = map[string]time.Time{}
			g.follows([]string{"former"}, now.Now())
			g.follows([]string{"former", "back"}, now.Now())
			g.follows([]string{"former"}, now.Now())
			pass(now, time.Hour)
			g.follows([]string{"next", "back"}, now.Now())
			pass(now, c.after)
			if got := g.mayHaveEnded(c.machine, c.why, now.Now()); got != c.want {
				t.Errorf("%s may have ended its Pod is %v", c.machine, got)
			}
		})
	}
}

// TestAPodThatFailsIsACrash, though its Job may be gone before anybody sees it as failed, and no machine explains it.
func TestAPodThatFailsIsACrash(t *testing.T) {
	for name, c := range map[string]struct {
		what  string
		since time.Duration
		want  bool
	}{
		"it fails before the incident":      {podFails, 10 * time.Minute, true},
		"it failed long before":             {podFails, 24 * time.Hour, false},
		"the training under the crew fails": {"training in a Job crashes", 10 * time.Minute, false}, // the training itself says when
	} {
		t.Run(name, func(t *testing.T) {
			checks, g, now := trainsInPods()
			checks.releases = faults.NewReleases()
			g.befell = []happened{{now.Now(), c.what}}
			pass(now, c.since)
			all := checks.strucks("demo/set", now.Now())
			if all[events.CauseCrash] != c.want || all[events.CauseUnknown] != c.want || all[events.CausePreemption] {
				t.Errorf("what struck it is %v", all)
			}
		})
	}
}

// TestAStepOfAJobCountsInTheLifeThatIsKnown: it is done since the trouble, by any attempt of that life, whether or not one runs now. What a
// former life did before or after is nobody's progress.
func TestAStepOfAJobCountsInTheLifeThatIsKnown(t *testing.T) {
	lose := func(g *gang) {
		g.Observe(cloudtputest.Event{Kind: cloudtputest.Lost, Zone: g.Scope, Node: g.Slice, Incarnation: g.Life()})
	}
	for name, c := range map[string]struct {
		after func(g *gang, now *clock.Clock)
		known string
		want  bool
	}{
		"nothing happened since":        {func(*gang, *clock.Clock) {}, "a", false},
		"the same attempt went on":      {func(_ *gang, now *clock.Clock) { pass(now, time.Minute) }, "a", true},
		"it went on, and has ended":     {func(g *gang, now *clock.Clock) { pass(now, time.Minute); g.Crash(1); pass(now, time.Minute) }, "a", true},
		"the next attempt did steps":    {func(g *gang, now *clock.Clock) { g.Crash(1); pass(now, time.Hour) }, "a", true},
		"it did, and has ended":         {func(g *gang, now *clock.Clock) { g.Crash(1); pass(now, time.Hour); g.Crash(1) }, "a", true},
		"the next attempt did none yet": {func(g *gang, now *clock.Clock) { g.Crash(1); pass(now, time.Minute) }, "a", false},
		"another life did": {func(g *gang, now *clock.Clock) {
			g.Crash(1)
			pass(now, time.Hour)
			lose(g)
			g.Observe(cloudtputest.Event{
				Kind: cloudtputest.Ready, Zone: g.Scope, Node: g.Slice, Incarnation: events.Incarnation{Zone: g.Scope, ID: "b", Created: now.Now()}, Workers: 1,
			})
			pass(now, time.Minute)
		}, "b", false},
		"nobody knows yet that it is over": {func(g *gang, now *clock.Clock) {
			g.Crash(1)
			pass(now, time.Hour)
			lose(g)
		}, "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			checks, g, now := trainsInPods()
			pass(now, time.Hour)
			r := checks.record("demo/set")
			r.at, g.opened = checks.step("demo/set"), g.Began()
			r.baseline, r.closed = g.Saved(), now.Now().Add(-time.Minute)
			in := &seenIncident{Opened: now.Now().Add(-time.Second)}
			c.after(g, now)
			w := seen{ID: "demo/set", Slices: []seenSlice{{Name: g.Slice, Life: events.Incarnation{ID: c.known}}}}
			if got := checks.jobGoesPast(end{r, w, in}); got != c.want {
				t.Errorf("goes past step %d is %v", r.baseline, got)
			}
		})
	}
}

// TestACheckpointThatConfirmsWasCompleteSinceTheTrouble: one that was there before shows nothing.
func TestACheckpointThatConfirmsWasCompleteSinceTheTrouble(t *testing.T) {
	checks, g, now := trainsInPods()
	checks.Bucket = buckettest.New(now.Now, "checkpoints")
	checks.Bucket.Put("checkpoints", "set/1000/commit_success.txt", nil)
	checks.Bucket.Put("checkpoints", "setter/9000/commit_success.txt", nil)
	began := now.Now()
	pass(now, time.Hour)
	checks.Bucket.Put("checkpoints", "set/2000/state", nil)
	for at, want := range map[time.Time]bool{began: true, began.Add(time.Second): false} {
		if got := checks.savedSince("gs://checkpoints/set", at); got != want {
			t.Errorf("%s has saved since %s: %v", g.Slice, at, got)
		}
	}
}

// TestAJobWasDownLastBeforeItsIncident: an incident may be opened long after a worker was made anew.
func TestAJobWasDownLastBeforeItsIncident(t *testing.T) {
	checks, g, now := trainsInPods()
	began := now.Now()
	for name, c := range map[string]struct {
		downs []time.Duration
		want  time.Duration
	}{
		"it never was":           {nil, 4 * time.Hour},
		"it was twice":           {[]time.Duration{time.Hour, 2 * time.Hour}, 2 * time.Hour},
		"it was once more since": {[]time.Duration{time.Hour, 5 * time.Hour}, time.Hour},
		"it is as it opens":      {[]time.Duration{4 * time.Hour}, 4 * time.Hour},
	} {
		g.downs = nil
		for _, after := range c.downs {
			g.downs = append(g.downs, began.Add(after))
		}
		if got := checks.jobDown("demo/set", began.Add(4*time.Hour)).Sub(began); got != c.want {
			t.Errorf("%s: it was down last after %v, want %v", name, got, c.want)
		}
	}
}

// TestATrainingThatDoesStepsIsNotBegunAgain for a hang that is only watched, and what follows from that request is as after a crash.
func TestATrainingThatDoesStepsIsNotBegunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		watched bool
		cause   events.Cause
		asks    events.Action
		want    int
	}{
		"another attempt":    {true, events.CauseHang, events.ActionRestart, 1},
		"the Job is lost":    {true, events.CauseHang, events.ActionDelete, 0},
		"it was not watched": {false, events.CauseHang, events.ActionRestart, 0},
		"it has crashed":     {true, events.CauseCrash, events.ActionRestart, 0},
	} {
		t.Run(name, func(t *testing.T) {
			checks, g, now := trainsInPods()
			checks.releases, checks.chaos, checks.actions = faults.NewReleases(), &faults.Chaos{}, map[string]int{}
			checks.policies = []inForce{putInForce(now.Now(), []byte("{policies: {night: {preset: spot, hang: restart}}}"))}
			g.JobConfig.Policy = "night"
			pass(now, time.Hour)
			before := seen{ID: "demo/set", Open: &seenIncident{Cause: c.cause, Watches: c.watched}}
			after := seen{ID: "demo/set", Open: &seenIncident{Cause: c.cause}, Requests: []seenRequest{{Action: c.asks}}}
			checks.restarted(before, after)
			if got := len(checks.Violations); got != c.want {
				t.Errorf("%s: %v, want %d", g.Slice, checks.Violations, c.want)
			}
		})
	}
}

// TestALifeIsLostWithItsJobSet: the controller deletes the Jobs that have not ended when their JobSet fails. What was to come of that JobSet
// has no life yet, and is lost only as long as nobody has made the JobSet anew.
func TestALifeIsLostWithItsJobSet(t *testing.T) {
	now := time.Date(2026, 1, 21, 19, 50, 0, 0, time.UTC)
	lost := map[string]time.Time{"a": now.Add(-time.Hour)}
	for name, c := range map[string]struct {
		gang gang
		life string
		want bool
	}{
		"its Job has failed":                    {gang{failed: lost}, "a", true},
		"another Job of its name has":           {gang{failed: lost}, "b", false},
		"another Job had before the JobSet did": {gang{failed: lost, over: true, wasOver: now}, "b", false},
		"it was to come":                        {gang{over: true, wasOver: now.Add(-time.Hour)}, "", true},
		"a reading is as old as that":           {gang{wasOver: now.Add(-latelyRead)}, "", true},
		"the JobSet has been made anew since":   {gang{wasOver: now.Add(-latelyRead - 1)}, "", false},
		"its JobSet has never failed":           {gang{failed: lost}, "", false},
	} {
		if got := c.gang.isLost(c.life, now); got != c.want {
			t.Errorf("%s: lost is %v", name, got)
		}
	}
}

// TestEveryLifeOfAJobSetThatFailsIsLost: nobody may have read the last one, so a document may name the one before.
func TestEveryLifeOfAJobSetThatFailsIsLost(t *testing.T) {
	now := time.Date(2026, 1, 21, 19, 50, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		fails string
		later time.Duration
		want  string
	}{
		"its JobSet":               {"new", latelyRead + time.Second, "b c"},
		"its JobSet, which is new": {"new", latelyRead, "a b c"},
		"a former JobSet":          {"old", 0, ""},
		"one that was unseen":      {"newest", 0, ""},
	} {
		g := gang{failed: map[string]time.Time{}}
		g.makes("old", "a", now.Add(-time.Hour))
		for _, job := range []string{"b", "c", "c"} {
			g.makes("new", job, now)
		}
		now := now.Add(c.later)
		last, lost := g.goesWith(c.fails, now), []string{}
		for _, life := range []string{"a", "b", "c"} {
			if g.isLost(life, now) {
				lost = append(lost, life)
			}
		}
		if got := strings.Join(lost, " "); got != c.want || last != "c" {
			t.Errorf("%s fails: lost are %q, and %s was the last", name, got, last)
		}
	}
}

// TestTheFirstSliceOfAMultisliceSpeaksForAll, in lives that are older than the attempt of which it speaks.
func TestTheFirstSliceOfAMultisliceSpeaksForAll(t *testing.T) {
	for name, c := range map[string]struct {
		crashes bool
		noCrew  bool
		want    bool
	}{
		"it has begun another attempt since": {true, true, true},
		"it has begun none since":            {false, true, false},
		"the other has a crew of its own":    {true, false, false},
	} {
		checks, first, now := trainsInPods()
		second := &gang{Gang: &world.Gang{Scope: first.Scope, Slice: "set-slice-1"}}
		second.Training = trainingtest.New(trainingtest.Config{
			Project: "demo", Slice: second.Slice, Workload: "demo/set", Clock: now, Bucket: buckettest.New(now.Now, "checkpoints"), Emit: func([]byte) {}, NoCrew: c.noCrew,
		}, events.Incarnation{Zone: first.Scope, ID: "b", Created: now.Now()}, "", 1)
		checks.jobs.of["demo/set"] = append(checks.jobs.of["demo/set"], second)
		pass(now, time.Hour)
		next := events.Incarnation{Zone: first.Scope, ID: "c", Created: now.Now()}
		if c.crashes {
			pass(now, time.Minute)
			first.Crash(1)
			pass(now, time.Minute)
		}
		if got := checks.speaksIn("demo/set", second, next); got != c.want {
			t.Errorf("%s: its crew may have spoken: %v", name, got)
		}
	}
}

// TestAJobIsItsOwnersOnceTheyHaveDeletedIt, or the life that Pitstop replaced by this one, in whatever order that is told.
func TestAJobIsItsOwnersOnceTheyHaveDeletedIt(t *testing.T) {
	made := time.Date(2026, 1, 5, 13, 22, 19, 0, time.UTC)
	acted := func(at time.Duration, what, by string) act { return act{made.Add(at), what, by} }
	ours := acted(time.Second/2, world.Applied, "pitstop")
	for name, c := range map[string]struct {
		acts []act
		want bool
	}{
		"nobody has done anything":                     {nil, false},
		"Pitstop replaced it":                          {[]act{acted(-time.Minute, world.Deleted, "pitstop"), ours}, false},
		"they deleted it before Pitstop made it":       {[]act{acted(-time.Minute, world.Deleted, faults.Owner), ours}, true},
		"and Pitstop asked for that too":               {[]act{acted(-2, world.Deleted, faults.Owner), acted(-1, world.Deleted, "pitstop"), ours}, true},
		"they deleted an earlier one and made it anew": {[]act{acted(-3, world.Deleted, faults.Owner), acted(-2, world.Applied, faults.Owner), acted(-1, world.Deleted, "pitstop"), ours}, false},
		"they deleted it, and another life was made":   {[]act{acted(-time.Hour, world.Deleted, faults.Owner), acted(-time.Minute, world.Applied, "pitstop")}, false},
		"they suspended it before Pitstop made it":     {[]act{acted(-time.Minute, world.Suspended, faults.Owner), ours}, false},
		"they deleted it since":                        {[]act{ours, acted(time.Minute, world.Deleted, faults.Owner)}, true},
		"they made it anew since":                      {[]act{ours, acted(time.Minute, world.Applied, faults.Owner)}, true},
		"Pitstop deleted it since":                     {[]act{ours, acted(time.Minute, world.Deleted, "pitstop")}, false},
	} {
		g := gang{acts: c.acts}
		if got := g.isOwners(events.Incarnation{ID: "b", Created: made}); got != c.want {
			t.Errorf("%s: it is theirs: %v", name, got)
		}
	}
}
