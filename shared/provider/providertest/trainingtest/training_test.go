package trainingtest_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

const (
	directory = "gs://ckpt/llama"
	trained   = "demo/llama"
)

const home = "us-west4-a"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// line is what a crew's report says, with the time since the start.
type line struct {
	After time.Duration
	events.CrewReport
}

// trainer is a training run with its clock, its bucket and its crew's lines.
type trainer struct {
	*trainingtest.Training
	t      *testing.T
	clock  *cloudtputest.ManualClock
	bucket *buckettest.Server
	store  checkpoint.Store
	lines  *[]line
}

func lifeOf(id string) events.Incarnation {
	return events.Incarnation{Zone: home, ID: id, Created: start.Add(-24 * time.Hour)}
}

// train begins a run: a step takes 10 s, every 60 steps a checkpoint of 40 s, as the defaults are.
func train(t *testing.T, c trainingtest.Config) trainer {
	t.Helper()
	clock := cloudtputest.NewManualClock(start)
	r := trainer{t: t, clock: clock, bucket: buckettest.New(clock.Now, "ckpt"), lines: new([]line)}
	r.bucket.OnChange(func(bucket, name string, deleted bool) {
		if r.Training != nil {
			r.Changed(bucket, name, deleted)
		}
	})
	r.store = checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: r.bucket.Transport()}))
	c.Project, c.Slice, c.Workload, c.Clock, c.Bucket = "demo", "llama", trained, clock, r.bucket
	c.Emit = func(raw []byte) {
		e, err := events.Read(raw)
		if err != nil || e.Crew == nil {
			t.Errorf("the crew writes an unreadable line: %v, %s", err, raw)
			return
		}
		if !e.Time.Equal(clock.Now()) || e.Subject != (events.Subject{Project: "demo", Zone: home, Node: "llama"}) {
			t.Errorf("a line of %s, about %s", e.Time, e.Subject)
		}
		*r.lines = append(*r.lines, line{clock.Now().Sub(start), *e.Crew})
	}
	r.Training = trainingtest.New(c, lifeOf("1"), "t1v-n-00000001", 4)
	return r
}

// to moves the clock to a moment after the start.
func (r trainer) to(after time.Duration) { r.clock.Advance(start.Add(after).Sub(r.clock.Now())) }

// wrote checks the crew's lines since the last check. It leaves out the parts that every line has.
func (r trainer) wrote(want ...line) {
	r.t.Helper()
	for i := range *r.lines {
		l := &(*r.lines)[i]
		if l.Schema != events.Schema || l.Project != "demo" || l.Zone != home || l.Node != "llama" {
			r.t.Errorf("a line of nobody: %+v", l)
		}
		l.Schema, l.Project, l.Zone, l.Node, l.Hostname = 0, "", "", "", ""
		l.StepAt, l.FirstStep, l.FirstStepAt = time.Time{}, 0, time.Time{}
	}
	if d := cmp.Diff(want, slices.Clone(*r.lines)); d != "" {
		r.t.Errorf("lines of the crew (-want +got):\n%s", d)
	}
	*r.lines = nil
}

// complete checks whether a checkpoint is begun, and complete.
func (r trainer) complete(step int64, begun, complete bool) {
	r.t.Helper()
	dir := "llama/" + strconv.FormatInt(step, 10)
	_, _, arrays := r.bucket.Get("ckpt", dir+"/state/manifest.ocdbt")
	_, _, marker := r.bucket.Get("ckpt", dir+"/commit_success.txt")
	if arrays != begun || marker != complete {
		r.t.Errorf("%v: checkpoint %d is begun: %v, complete: %v; want %v, %v", r.clock.Now().Sub(start), step, arrays, marker, begun, complete)
	}
}

// runs checks whether steps are being done, and in which life.
func (r trainer) runs(id string, want bool) {
	r.t.Helper()
	if life, running := r.Running(); running != want || life.ID != id {
		r.t.Errorf("%v: life %s, running %v; want %s, %v", r.clock.Now().Sub(start), life.ID, running, id, want)
	}
}

// lease is what Pitstop writes beside the checkpoints.
func (r trainer) lease(epoch int64, attempt int, lives ...string) {
	r.t.Helper()
	l := checkpoint.Lease{Workload: trained, Incident: "i", Epoch: epoch, Attempt: attempt, Written: r.clock.Now(), By: "recovery"}
	for _, id := range lives {
		l.Admitted = append(l.Admitted, events.Admission{Slice: "llama", Incarnation: lifeOf(id)})
	}
	if err := checkpoint.WriteLease(r.t.Context(), r.store, directory, l); err != nil {
		r.t.Fatal(err)
	}
}

// ask asks the crew for the save s1, through the bucket or the node's metadata.
func (r trainer) ask(mode events.SaveMode, metadata bool) {
	r.t.Helper()
	req := events.CrewRequest{Schema: events.Schema, SaveID: "s1", Workload: trained, Incident: "i", Action: events.ActionSave, Mode: mode}
	if !metadata {
		if err := checkpoint.WriteRequest(r.t.Context(), r.store, directory, req, r.clock.Now()); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	raw, err := json.Marshal(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Metadata, Node: "llama", Key: events.MetadataRequest, Value: string(raw)})
}

// machine tells the training what happens to its machine.
func (r trainer) machine(k cloudtputest.Kind, id string) {
	r.Observe(cloudtputest.Event{Kind: k, Node: "llama", Zone: home, Incarnation: lifeOf(id), Group: "t1v-n-0000000" + id, Workers: 4})
}

func progress(after time.Duration, attempt int, step, saved int64) line {
	return line{after, events.CrewReport{Report: events.ReportProgress, Workers: 4, Attempt: attempt, Step: step, CheckpointStep: saved}}
}

// started is an attempt that begins at the checkpoint which was there when the run began.
func started(after time.Duration, attempt int) line {
	return line{after, events.CrewReport{Report: events.ReportStarted, Workers: 4, Attempt: attempt, Step: 60}}
}

func TestTrainingDoesStepsAndTellsThemEveryFiveMinutes(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.complete(60, true, true)
	r.to(16 * time.Minute)
	r.wrote(progress(5*time.Minute, 1, 130, 120), progress(10*time.Minute, 1, 160, 120), progress(15*time.Minute, 1, 190, 180))
	r.runs("1", true)
	if step := r.LastStep(); step != 196 {
		t.Errorf("step %d after 96 more, want 196", step)
	}
}

// TestALineSaysWhenItsStepsWereDone: the last one of a training that hangs too, which comes when the next one is due.
func TestALineSaysWhenItsStepsWereDone(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.to(7*time.Minute + 5*time.Second)
	r.Hang()
	r.to(time.Hour)
	lines := *r.lines
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one of steps and one of the last", len(lines))
	}
	for i, want := range []struct{ after, stepped time.Duration }{{5 * time.Minute, 5 * time.Minute}, {10 * time.Minute, 7 * time.Minute}} {
		l := lines[i]
		if l.After != want.after || l.Step != 100+int64(want.stepped/(10*time.Second)) || !l.StepAt.Equal(start.Add(want.stepped)) || l.FirstStep != 100 || !l.FirstStepAt.Equal(start) {
			t.Errorf("line %d: %+v", i, l)
		}
	}
}

func TestACheckpointIsIncompleteUntilItsTimeHasPassed(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	for _, c := range []struct {
		after           time.Duration
		begun, complete bool
	}{
		{199 * time.Second, false, false}, {200 * time.Second, true, false}, {239 * time.Second, true, false}, {240 * time.Second, true, true},
	} {
		r.to(c.after)
		r.complete(120, c.begun, c.complete)
	}
}

func TestAMachineThatIsLostInTheMiddleOfASaveLeavesItIncomplete(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.to(210 * time.Second)
	r.machine(cloudtputest.Lost, "1")
	r.to(20 * time.Minute)
	r.complete(120, true, false)
	r.runs("1", false)
	if step := r.LastStep(); step != 121 {
		t.Errorf("the last step is %d, want 121", step)
	}
	r.wrote()
}

func TestARequestedSaveIsAnsweredOnceItIsComplete(t *testing.T) {
	saved := func(after time.Duration, step, checkpointed int64) line {
		return line{after, events.CrewReport{
			Report: events.ReportSaved, Attempt: 1, SaveID: "s1", Step: step, CheckpointStep: checkpointed,
			CheckpointURI: directory + "/" + strconv.FormatInt(checkpointed, 10),
		}}
	}
	for name, c := range map[string]struct {
		config   trainingtest.Config
		mode     events.SaveMode
		metadata bool
		want     []line
		// step is the one that is saved.
		step  int64
		whole bool
	}{
		"naturally, with the next periodic checkpoint": {
			trainingtest.Config{}, events.SaveNatural, false, []line{saved(240*time.Second, 124, 120)}, 120, true,
		},
		"naturally, asked through metadata": {
			trainingtest.Config{}, events.SaveNatural, true, []line{saved(240*time.Second, 124, 120)}, 120, true,
		},
		// The crew looks into the bucket every ten seconds.
		"at once, on a signal": {
			trainingtest.Config{}, events.SaveSignal, false, []line{saved(90*time.Second, 109, 105)}, 105, true,
		},
		"at once, asked through metadata": {
			trainingtest.Config{}, events.SaveSignal, true, []line{saved(80*time.Second, 108, 104)}, 104, true,
		},
		"torn, and acknowledged all the same": {
			trainingtest.Config{Torn: true}, events.SaveNatural, false, []line{saved(240*time.Second, 124, 120)}, 120, false,
		},
		"torn on a signal": {
			trainingtest.Config{Torn: true}, events.SaveSignal, false, []line{saved(90*time.Second, 109, 105)}, 105, false,
		},
		"never, and refused with the reason": {
			trainingtest.Config{Refuses: "no handler"},
			events.SaveSignal, true,
			[]line{{40 * time.Second, events.CrewReport{Report: events.ReportRefused, Attempt: 1, SaveID: "s1", Step: 104, Reason: "no handler"}}},
			104, false,
		},
		"never, by a silent crew": {trainingtest.Config{Silent: true}, events.SaveSignal, true, nil, 104, false},
		"never, without a crew":   {trainingtest.Config{NoCrew: true}, events.SaveSignal, true, nil, 104, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Directory, c.config.Step = directory, 100
			r := train(t, c.config)
			r.to(40 * time.Second)
			r.ask(c.mode, c.metadata)
			r.to(52 * time.Second)
			r.ask(c.mode, true) // through the other channel too: it is the same request
			r.to(280 * time.Second)
			r.ask(c.mode, true) // and once more, when it has been answered
			r.to(299 * time.Second)
			r.wrote(c.want...)
			r.complete(c.step, c.config.Refuses == "" && !c.config.Silent && !c.config.NoCrew, c.whole)
			// The periodic checkpoints go on, and are whole.
			r.to(840 * time.Second)
			r.complete(180, true, true)
		})
	}
}

func TestACrewRestartsTheTrainingUntilItsBudgetIsSpent(t *testing.T) {
	exited := func(after time.Duration, attempt, left int) line {
		return line{after, events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 139, Step: 110, RestartsLeft: left}}
	}
	r := train(t, trainingtest.Config{Directory: directory, Step: 100, Restarts: 2, Fails: 139})
	r.to(100 * time.Second)
	r.Exit(events.CrewReport{Report: events.ReportExited, Attempt: 1, ExitCode: 139, Step: 109}) // a recorded line
	r.runs("1", false)
	r.to(time.Hour)
	r.wrote(
		started(110*time.Second, 2), exited(140*time.Second, 2, 0), // after 10 s
		started(160*time.Second, 3), exited(190*time.Second, 3, 0), // after twice as long
		line{191 * time.Second, events.CrewReport{Report: events.ReportGaveUp, Attempt: 3, Step: 110, Reason: "2 restarts without progress"}},
	)
	r.runs("1", false)

	// Only a lease that names a newer attempt starts it again, with its full budget.
	r.lease(1, 3, "1")
	r.to(time.Hour + 30*time.Second)
	r.wrote()
	r.lease(2, 4, "1")
	r.to(time.Hour + 70*time.Second)
	r.wrote(started(time.Hour+40*time.Second, 4), exited(time.Hour+70*time.Second, 4, 1))
}

func TestAFailureThatPassesLeavesTheNextAttemptRunning(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100, Fails: 1, FailsAfter: 4 * time.Minute, FailsTimes: 1})
	r.to(15 * time.Second)
	r.Exit(events.CrewReport{Report: events.ReportExited, Attempt: 1, ExitCode: 1, Step: 101})
	r.to(800 * time.Second)
	r.wrote(
		started(25*time.Second, 2), // its first step begins 3 minutes later, at 205 s
		line{265 * time.Second, events.CrewReport{Report: events.ReportExited, Attempt: 2, ExitCode: 1, Step: 101, RestartsLeft: 3}},
		started(285*time.Second, 3),
		progress(765*time.Second, 3, 90, 60),
	)
	r.runs("1", true)
	if step := r.LastStep(); step != 101 {
		t.Errorf("the last step is %d; what an earlier attempt had done is done", step)
	}
}

func TestATrainingRunsOnlyWhereTheLeaseNamesIt(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.to(10 * time.Second)
	r.lease(1, 1)
	r.to(19 * time.Second)
	r.runs("1", true) // it reads the lease every ten seconds
	r.to(20 * time.Second)
	r.runs("1", false)
	r.to(30 * time.Second)
	r.lease(2, 2, "2")
	r.to(time.Minute)
	r.runs("1", false)
	r.lease(3, 3, "1")
	r.to(70 * time.Second)
	r.runs("1", true)
	r.wrote(started(70*time.Second, 3))
	if step := r.LastStep(); step != 102 {
		t.Errorf("the last step is %d, want 102: it stopped after 20 s", step)
	}
}

func TestANewLifeTrainsWhenItIsAdmittedAndNoSooner(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.lease(1, 1, "1")
	r.to(time.Minute)
	r.machine(cloudtputest.Lost, "1")
	r.to(2 * time.Minute)
	r.machine(cloudtputest.Ready, "2")
	r.to(10 * time.Minute)
	r.runs("2", false)
	r.lease(2, 2, "2")
	r.to(10*time.Minute + 10*time.Second)
	r.runs("2", true)
	r.machine(cloudtputest.Ready, "2")     // the API says so again
	r.machine(cloudtputest.Unhealthy, "1") // and a late word of the old life
	r.to(19 * time.Minute)                 // the first step begins at 13:10
	r.wrote(started(610*time.Second, 2), progress(1090*time.Second, 2, 90, 60))
	r.runs("2", true)
	r.machine(cloudtputest.Unhealthy, "2")
	r.runs("2", false)
}

func TestACrewTakesOverALeaseThatNoPitstopHasWritten(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.machine(cloudtputest.Gone, "1")
	r.machine(cloudtputest.Ready, "2") // its crew is up after 90 s, and waits until the old one cannot write any more
	r.to(449 * time.Second)
	r.runs("2", false)
	r.to(450 * time.Second)
	r.runs("2", true)
	r.wrote(started(450*time.Second, 2))
	l, _, err := checkpoint.ReadLease(t.Context(), r.store, directory)
	if err != nil || l.By != "crew" || l.Epoch != 0 || l.Attempt != 2 || !l.Admits("llama", lifeOf("2"), "", 2) {
		t.Errorf("the lease is %+v, %v", l, err)
	}
}

func TestACrewWaitsAnewWhereALeaseIsWrittenAgain(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.machine(cloudtputest.Gone, "1")
	next := events.Incarnation{Zone: home, ID: "2", Created: start}
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Ready, Node: "llama", Zone: home, Incarnation: next, Workers: 4})
	r.to(4 * time.Minute)
	r.lease(8, 1, "1") // the same attempt, by Pitstop
	r.to(10 * time.Minute)
	r.runs("2", false)
	r.to(10*time.Minute + 10*time.Second)
	r.runs("2", true)
	l, _, err := checkpoint.ReadLease(t.Context(), r.store, directory)
	if err != nil || l.Epoch != 8 || l.Attempt != 2 || !l.Admits("llama", next, "", 2) {
		t.Errorf("the lease is %+v, %v", l, err)
	}
}

func TestWithoutALeaseTheTrainingStartsWithItsMachine(t *testing.T) {
	for name, c := range map[string]struct {
		config trainingtest.Config
		lines  []line
		step   int64
	}{
		"no crew, which nobody hears": {trainingtest.Config{Directory: directory, NoCrew: true}, nil, 100},
		"no directory, so it resumes only from the last checkpoint": {
			trainingtest.Config{}, []line{started(90*time.Second, 2), progress(570*time.Second, 2, 90, 60)}, 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Step = 100
			r := train(t, c.config)
			r.machine(cloudtputest.Lost, "1")
			r.machine(cloudtputest.Ready, "2")
			r.to(89 * time.Second)
			r.runs("2", false)
			r.to(600 * time.Second)
			r.runs("2", true)
			r.wrote(c.lines...)
			if names := r.bucket.List("ckpt", ""); c.config.Directory == "" && len(names) > 0 {
				t.Errorf("it wrote %q", names)
			}
		})
	}
}

func TestANewAttemptTakesNoStepBack(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.to(190 * time.Second)
	r.lease(1, 2, "1")
	r.to(200 * time.Second)
	r.wrote(started(200*time.Second, 2))
	if step := r.LastStep(); step != 120 {
		t.Errorf("the last step is %d; 120 were done before the new attempt", step)
	}
}

func TestTheRequestOfALifeThatIsOverIsNotAnswered(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.ask(events.SaveNatural, true)
	r.machine(cloudtputest.Lost, "1")
	r.machine(cloudtputest.Ready, "2")
	r.to(80 * time.Second)
	r.lease(1, 2, "2")
	r.to(16 * time.Minute)
	r.complete(120, true, true)
	for _, l := range *r.lines {
		if l.Report == events.ReportSaved {
			t.Errorf("%v: %s", l.After, l.Describe())
		}
	}
}

func TestATrainingMindsItsOwnMachineAlone(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Lost, Node: "other"})
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Lost, Node: "llama", Incarnation: lifeOf("0")})
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Noticed, Node: "llama"})
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Metadata, Node: "llama", Key: events.MetadataRequest, Removed: true})
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Metadata, Node: "llama", Key: "ssh-keys", Value: "x"})
	r.Observe(cloudtputest.Event{Kind: cloudtputest.Metadata, Node: "llama", Key: events.MetadataRequest, Value: "not a request"})
	r.to(6 * time.Minute)
	r.runs("1", true)
	r.wrote(progress(5*time.Minute, 1, 130, 120))
}

// TestAMultisliceTrainsWithAllItsSlices: an attempt ends with any of them, and the next one waits until all can be used.
func TestAMultisliceTrainsWithAllItsSlices(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100, With: []string{"llama-1", "llama-2"}})
	of := func(slice string, kind cloudtputest.Kind, id string) {
		r.Observe(cloudtputest.Event{Kind: kind, Node: slice, Incarnation: lifeOf(id), Workers: 4})
	}
	trains := func(want bool, step int64) {
		t.Helper()
		if _, running := r.Running(); running != want || r.LastStep() != step {
			t.Errorf("%v: trains: %v, at step %d; want %v, %d", r.clock.Now().Sub(start), running, r.LastStep(), want, step)
		}
	}
	r.to(100 * time.Second)
	of("other", cloudtputest.Lost, "9")
	trains(true, 110)
	of("llama-1", cloudtputest.Unhealthy, "2")
	trains(false, 110)
	r.to(10 * time.Minute)
	of("llama-2", cloudtputest.Gone, "3")
	of("llama-1", cloudtputest.Ready, "2")
	r.to(20 * time.Minute)
	trains(false, 110)
	of("llama-2", cloudtputest.Ready, "4")
	of("llama-2", cloudtputest.Gone, "3") // its former life, told late
	r.to(20*time.Minute + 90*time.Second)
	trains(true, 110)
	r.to(20*time.Minute + 90*time.Second + 3*time.Minute + 600*time.Second)
	trains(true, 120) // from the checkpoint of step 60

	// A crew that waits to restart waits for the others too, and one that has given up is not called back by them.
	r.Crash(1)
	of("llama-1", cloudtputest.Lost, "2")
	r.to(time.Hour)
	trains(false, 120)
	of("llama-1", cloudtputest.Ready, "5")
	r.to(time.Hour + 90*time.Second)
	trains(true, 120)
	r.Die()
	of("llama-1", cloudtputest.Gone, "5")
	of("llama-1", cloudtputest.Ready, "6")
	r.to(2 * time.Hour)
	trains(false, 120)
}
