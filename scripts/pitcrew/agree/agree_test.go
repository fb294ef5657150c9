package agree_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/restart"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func config(workers int) agree.Config {
	return agree.Config{
		Workers: workers, Slices: 1, Policy: restart.Defaults(), Silence: 2 * time.Minute, Finish: time.Minute,
		Number: func(string) int { return 9 },
	}
}

// field is a leader with workers that follow the plan, and a lease that anybody may write.
type field struct {
	t      *testing.T
	now    time.Time
	leader *agree.Leader
	status []agree.Status
	lease  agree.Lease
	out    agree.Outside
	plan   agree.Plan
	want   agree.Want
	events []agree.Event
	deaf   map[int]bool // workers that are not to be heard
	slow   map[int]bool // workers that do not end by themselves
	// replaced are the slices of which others have a new life.
	replaced []int
	blind    bool // nobody has looked at the checkpoints yet
	// step and saved are the last step and the last complete checkpoint; less than 0 is none.
	step, saved int64
}

func newField(t *testing.T, c agree.Config, m agree.Memory) *field {
	t.Helper()
	f := &field{t: t, now: start, step: -1, saved: -1, leader: agree.New(c, m, "id", start), lease: agree.Lease{Admitted: true, Own: true}, deaf: map[int]bool{}, slow: map[int]bool{}}
	for w := range c.Workers {
		f.status = append(f.status, agree.Status{Worker: w, Host: "h", Phase: agree.Idle})
	}
	return f
}

func memory() agree.Memory { return agree.Memory{Budget: restart.NewBudget()} }

// go on for so long, a second at a time.
func (f *field) pass(d time.Duration) {
	f.t.Helper()
	for end := f.now.Add(d); ; f.now = f.now.Add(time.Second) {
		for range 4 {
			f.turn()
		}
		if !f.now.Before(end) {
			return
		}
	}
}

func (f *field) turn() {
	for w, s := range f.status {
		if !f.deaf[w] {
			f.leader.Hear(f.now, s)
		}
	}
	looked := f.now
	if f.blind {
		looked = time.Time{}
	}
	v := agree.View{Now: f.now, Lease: f.lease, Outside: f.out, Chance: 0.5, Looked: looked, Replaced: f.replaced, LastStep: f.step}
	if f.saved >= 0 {
		v.Step, v.Checkpoint = f.saved, "a checkpoint"
	}
	var happened []agree.Event
	f.plan, f.want, happened = f.leader.Advance(v)
	f.events = append(f.events, happened...)
	if w := f.want.Wake; !w.IsZero() && !w.After(f.now) {
		f.t.Fatalf("%v: %s wants to be asked again at %v, for ever", f.now.Sub(start), f.leader.Stage, w.Sub(start))
	}
	if f.want.Lease > 0 {
		f.lease.Attempt, f.lease.Own = f.want.Lease, true
	}
	for w := range f.status {
		s := &f.status[w]
		switch {
		case f.deaf[w]:
		case f.plan.Version != "" && s.Phase == agree.Running && (!f.plan.Run || f.plan.Attempt != s.Attempt) && !f.slow[w]:
			f.end(w, restart.Exit{Signal: "SIGTERM"}, restart.Circumstances{Stopped: true})
		case f.plan.Run && !s.Leaving && s.Phase != agree.Running && s.Attempt < f.plan.Attempt && f.lease.Attempt == f.plan.Attempt:
			s.Phase, s.Attempt = agree.Running, f.plan.Attempt
		}
	}
}

func (f *field) end(w int, e restart.Exit, when restart.Circumstances) {
	s := &f.status[w]
	e.Attempt, e.Ended = s.Attempt, f.now
	s.Phase, s.Exit, s.When = agree.Ended, e, when
}

func (f *field) running() (attempts []int) {
	for _, s := range f.status {
		if s.Phase == agree.Running {
			attempts = append(attempts, s.Attempt)
		}
	}
	return attempts
}

// all fails the test unless all workers run that attempt.
func (f *field) all(attempt int) {
	f.t.Helper()
	if got := f.running(); len(got) != len(f.status) || slices.Min(got) != attempt || slices.Max(got) != attempt {
		f.t.Fatalf("%v: %s, running %v, want all at %d; plan %+v", f.now.Sub(start), f.leader.Stage, got, attempt, f.plan)
	}
}

// cause is what the last attempt ended of.
func (f *field) cause() agree.Cause {
	for _, e := range slices.Backward(f.events) {
		if e.Ended != nil {
			return *e.Ended
		}
	}
	return agree.Cause{Worker: -1}
}

// TestAnAttemptTellsSinceWhenItWaited: the first one since the crew was up, the next since the back-off was over, and one that the lease
// asks for since the crew began to wait for it.
func TestAnAttemptTellsSinceWhenItWaited(t *testing.T) {
	ready := func(f *field) (at []time.Duration) {
		for _, e := range f.events {
			if e.Began {
				at = append(at, e.Ready.Sub(start))
			}
		}
		return at
	}
	c := config(2)
	c.WaitSaved = true
	f := newField(t, c, memory())
	f.deaf[1] = true
	f.lease.Admitted = false
	f.pass(time.Minute)
	f.lease.Admitted = true // Pitstop admits the slice
	f.pass(time.Minute)
	f.deaf[1] = false // the other worker is there
	f.pass(time.Minute)
	f.all(1)
	f.end(0, restart.Exit{Code: 1}, restart.Circumstances{})
	f.pass(time.Second)
	again := f.want.Wake.Sub(start)
	f.lease.Admitted = false
	f.pass(10 * time.Minute)
	f.lease.Admitted = true
	f.pass(time.Second)
	f.all(2)
	f.end(0, restart.Exit{}, restart.Circumstances{Told: true})
	f.end(1, restart.Exit{}, restart.Circumstances{Told: true})
	saved := f.now.Sub(start)
	f.pass(30 * time.Minute)
	f.lease = agree.Lease{Admitted: true, Attempt: 3, Epoch: 1}
	f.pass(time.Second)
	f.all(3)
	if got, want := ready(f), []time.Duration{0, again, saved}; !slices.Equal(got, want) {
		t.Errorf("ready at %v, want %v", got, want)
	}
}

func TestAllStartTogetherWhenAllAreThere(t *testing.T) {
	f := newField(t, config(4), memory())
	f.deaf[3] = true
	f.pass(time.Hour)
	if len(f.running()) != 0 {
		t.Fatalf("they started without worker 3: %v", f.running())
	}
	f.deaf[3] = false
	f.pass(time.Second)
	f.all(1)
	if len(f.events) != 1 || !f.events[0].Began || f.events[0].Workers != 4 {
		t.Errorf("%+v", f.events)
	}
}

func TestTheFirstToFailIsTheCause(t *testing.T) {
	f := newField(t, config(4), memory())
	f.pass(time.Second)
	// Worker 2 fails first; the leader hears earlier of the failures that it causes.
	f.deaf[2] = true
	f.end(2, restart.Exit{Code: 134}, restart.Circumstances{})
	f.now = f.now.Add(3 * time.Second)
	f.end(1, restart.Exit{Code: 1}, restart.Circumstances{})
	f.end(3, restart.Exit{Code: 1}, restart.Circumstances{})
	f.turn()
	f.deaf[2] = false
	f.pass(time.Second)
	if c := f.cause(); c.Worker != 2 || c.Class != restart.Crashed || c.Exit.Code != 134 {
		t.Errorf("%+v", c)
	}
	f.pass(20 * time.Second)
	f.all(2)
}

func TestWhatTheCrewsEndedThemselvesIsNoCause(t *testing.T) {
	f := newField(t, config(2), memory())
	f.pass(time.Second)
	f.slow[0] = true // worker 0 takes its time, and then fails on its own
	f.end(1, restart.Exit{Code: 3}, restart.Circumstances{})
	f.pass(5 * time.Second)
	if f.leader.Stage != agree.Ending {
		t.Fatal(f.leader.Stage)
	}
	f.end(0, restart.Exit{Code: 1}, restart.Circumstances{Stopped: true})
	f.pass(20 * time.Second)
	if c := f.cause(); c.Worker != 1 {
		t.Errorf("%+v", c)
	}
	f.all(2)
}

func TestThePrimaryEndsTheJob(t *testing.T) {
	f := newField(t, config(3), memory())
	f.pass(time.Second)
	f.end(1, restart.Exit{}, restart.Circumstances{}) // done before the primary: it waits
	f.pass(10 * time.Minute)
	if f.leader.Stage != agree.Training {
		t.Fatal(f.leader.Stage)
	}
	f.end(0, restart.Exit{}, restart.Circumstances{})
	f.pass(2 * time.Second)
	if !f.plan.Over || f.plan.Code != 0 || f.leader.Stage != agree.Over || len(f.running()) != 0 {
		t.Errorf("%s %+v", f.leader.Stage, f.plan)
	}
	if last := f.events[len(f.events)-1]; !last.Finished || last.GaveUp {
		t.Errorf("%+v", last)
	}
}

func TestALostWorkerIsTheMachines(t *testing.T) {
	f := newField(t, config(2), memory())
	f.pass(time.Second)
	f.deaf[1] = true
	f.pass(time.Minute)
	f.all(1)
	f.pass(2 * time.Minute)
	if c := f.cause(); c.Class != restart.Interrupted || c.Worker != 1 {
		t.Errorf("%+v", c)
	}
	// A new machine replaces it, which knows nothing.
	f.status[1] = agree.Status{Worker: 1, Host: "h2", Phase: agree.Idle}
	f.deaf[1] = false
	f.pass(time.Minute)
	f.all(2)
}

func TestANewCrewInThePlaceOfOneThatRan(t *testing.T) {
	for _, host := range []string{"h2", "h"} { // another machine, or a container that is made anew on the same one
		f := newField(t, config(2), memory())
		f.pass(time.Second)
		f.status[1] = agree.Status{Worker: 1, Host: host, Phase: agree.Idle}
		f.pass(time.Minute)
		f.all(2)
		if c := f.cause(); c.Class != restart.Interrupted {
			t.Errorf("%s: %+v", host, c)
		}
	}
}

// TestAWorkerThatLeavesIsNotWaitedForInSilence: its last word ends the attempt, and no other begins without it.
func TestAWorkerThatLeavesIsNotWaitedForInSilence(t *testing.T) {
	for leaves := range 3 {
		f := newField(t, config(3), memory())
		f.pass(time.Second)
		f.all(1)
		f.status[leaves].Leaving = true
		f.turn()
		if f.plan.Run || f.plan.Attempt != 1 || !strings.Contains(f.plan.Reason, "got a signal to end") {
			t.Fatalf("worker %d leaves: %+v", leaves, f.plan)
		}
		f.pass(10 * time.Second)
		if c, b := f.cause(), f.leader.Budget; c.Class != restart.Stopped || b.Restarts+b.Tries+b.Memory+b.Interruptions != 0 {
			t.Errorf("worker %d leaves: %+v, charged %+v", leaves, c, b)
		}
		f.deaf[leaves] = true // it is gone, and what it said last holds
		f.pass(time.Hour)
		if got := f.running(); len(got) != 0 || len(f.leader.Missing(f.now, f.leader.Silence)) != 1 ||
			f.leader.Missing(f.now, f.leader.Silence)[0].Worker != leaves || !f.leader.Missing(f.now, f.leader.Silence)[0].Left {
			t.Fatalf("worker %d leaves: running %v, missing %v", leaves, got, f.leader.Missing(f.now, f.leader.Silence))
		}
		f.deaf[leaves] = false
		f.status[leaves] = agree.Status{Worker: leaves, Host: "h", Phase: agree.Idle} // another crew in its place
		f.pass(time.Second)
		f.all(2)
	}
}

// TestAWorkerLeftWhenItFirstSaidSo, though it says it again until it has gone.
func TestAWorkerLeftWhenItFirstSaidSo(t *testing.T) {
	at := time.Date(2026, 7, 4, 9, 0, 0, 0, time.UTC)
	l := agree.New(agree.Config{Workers: 2}, agree.Memory{}, "a", at)
	s := agree.Status{Worker: 1, Phase: agree.Running, Attempt: 1}
	since := func() time.Time {
		t.Helper()
		m := l.Missing(at.Add(time.Minute), time.Hour)
		if len(m) != 2 || m[1].Worker != 1 || !m[1].Left {
			t.Fatalf("%+v", m)
		}
		return m[1].Since
	}
	l.Hear(at.Add(-time.Hour), s)
	s.Leaving = true
	l.Hear(at, s)
	l.Touch(1, at.Add(5*time.Second))
	if got := since(); !got.Equal(at) {
		t.Errorf("it spoke again: %v", got)
	}
	s.Phase = agree.Ended
	l.Hear(at.Add(10*time.Second), s)
	if got := since(); !got.Equal(at) {
		t.Errorf("its training has ended: %v", got)
	}
	l.Hear(at.Add(20*time.Second), agree.Status{Worker: 1, Phase: agree.Idle}) // another crew in its place
	l.Hear(at.Add(30*time.Second), agree.Status{Worker: 1, Phase: agree.Idle, Leaving: true})
	if got := since(); !got.Equal(at.Add(30 * time.Second)) {
		t.Errorf("the next one leaves: %v", got)
	}
}

// TestNoAttemptBeginsWithAWorkerThatLeaves, at whatever moment before the beginning the signal comes.
func TestNoAttemptBeginsWithAWorkerThatLeaves(t *testing.T) {
	for name, at := range map[string]agree.Stage{"in the back-off": agree.Pausing, "while the lease is read": agree.Admitting, "while others are waited for": agree.Gathering} {
		f := newField(t, config(3), memory())
		switch at {
		case agree.Pausing:
			f.pass(time.Second)
			f.end(0, restart.Exit{Code: 1}, restart.Circumstances{})
			f.pass(time.Second)
		case agree.Admitting:
			f.blind = true
			f.pass(time.Second)
		default:
			f.deaf[2] = true
			f.pass(time.Second)
		}
		if f.leader.Stage != at {
			t.Fatalf("%s: %s", name, f.leader.Stage)
		}
		f.status[1].Leaving = true
		f.deaf[2], f.blind, f.events = false, false, nil
		f.pass(time.Minute)
		if slices.ContainsFunc(f.events, func(e agree.Event) bool { return e.Began }) {
			t.Fatalf("%s: %+v", name, f.events)
		}
		f.status[1] = agree.Status{Worker: 1, Host: "h", Phase: agree.Idle}
		f.pass(time.Second)
		f.all(max(1, f.leader.Handled+1))
	}
}

// TestANewLeaderEndsWhatAWorkerLeaves: the leader's crew is new, and the attempt of the last one runs.
func TestANewLeaderEndsWhatAWorkerLeaves(t *testing.T) {
	f := newField(t, config(3), memory())
	f.pass(time.Second)
	f.status[1].Leaving = true
	f.leader = agree.New(config(3), f.leader.Memory, "id2", f.now)
	f.turn()
	if f.plan.Version == "" || f.plan.Run {
		t.Fatalf("%s %+v", f.leader.Stage, f.plan)
	}
	f.pass(time.Minute)
	if len(f.running()) != 0 {
		t.Errorf("running %v", f.running())
	}
}

func TestANewLeaderFindsWhatRuns(t *testing.T) {
	f := newField(t, config(3), memory())
	f.pass(time.Second)
	kept := f.leader.Memory
	f.events = nil
	f.leader = agree.New(config(3), kept, "id2", f.now)
	f.pass(time.Minute)
	f.all(1)
	if len(f.events) != 0 {
		t.Errorf("%+v", f.events)
	}
	// One whose machine is new knows nothing, and its own training is gone: all begin again.
	f.status[0] = agree.Status{Host: "h2", Phase: agree.Idle}
	f.leader = agree.New(config(3), memory(), "id3", f.now)
	f.pass(time.Minute)
	f.all(2)
}

func TestANewLeaderDoesNotDecideTwice(t *testing.T) {
	f := newField(t, config(1), memory())
	f.pass(time.Second)
	f.end(0, restart.Exit{Code: 1}, restart.Circumstances{})
	f.pass(time.Second)
	used := f.leader.Budget.Restarts
	f.leader = agree.New(config(1), f.leader.Memory, "id2", f.now)
	f.pass(time.Second)
	if f.leader.Budget.Restarts != used || used != 1 {
		t.Errorf("%d restarts are used, then %d", used, f.leader.Budget.Restarts)
	}
	f.all(2)
}

func TestTheLeaseDecidesWhereAndAsWhat(t *testing.T) {
	f := newField(t, config(2), memory())
	f.lease = agree.Lease{} // not read yet, or another life's
	f.pass(time.Minute)
	if len(f.running()) != 0 || f.want.Lease != 0 {
		t.Fatal(f.running(), f.want)
	}
	f.lease = agree.Lease{Admitted: true, Attempt: 7, Epoch: 2}
	f.pass(time.Second)
	f.all(7)
	// Pitstop asks for another attempt, with a budget of its own.
	f.leader.Budget.Restarts = 4
	f.lease.Attempt, f.lease.Epoch = 9, 3
	f.pass(time.Second)
	f.all(9)
	if f.leader.Budget.Restarts != 0 {
		t.Errorf("%+v", f.leader.Budget)
	}
	// A newer epoch that knew no better names an older attempt: the crew mends it and trains on.
	f.lease.Attempt, f.lease.Epoch = 8, 4
	f.pass(time.Second)
	f.all(9)
	if f.lease.Attempt != 9 {
		t.Errorf("%+v", f.lease)
	}
	f.lease.Admitted = false
	f.pass(time.Second)
	if len(f.running()) != 0 {
		t.Error(f.running())
	}
	f.lease.Admitted = true
	f.pass(time.Second)
	f.all(10)
}

func TestGivingUp(t *testing.T) {
	for _, stays := range []bool{false, true} {
		c := config(2)
		c.Policy.Restarts, c.Policy.Tries, c.StayAfterGivingUp = 1, 0, stays
		f := newField(t, c, memory())
		for range 2 {
			f.pass(30 * time.Second)
			f.end(1, restart.Exit{Signal: "SIGBUS"}, restart.Circumstances{})
		}
		f.pass(time.Hour)
		if last := f.events[len(f.events)-1]; !last.GaveUp || !strings.Contains(last.Verdict.Reason, "spent") || f.plan.Over == stays || !stays && f.plan.Code != 137 {
			t.Errorf("stays %v: %+v %+v", stays, last, f.plan)
		}
		f.lease.Attempt, f.lease.Epoch, f.lease.Own = 3, 5, false
		f.pass(time.Minute)
		if stays {
			f.all(3)
		} else if len(f.running()) != 0 {
			t.Error("it is over, and runs")
		}
	}
}

func TestSavedGoesOnUnlessToldToWait(t *testing.T) {
	for _, waits := range []bool{false, true} {
		c := config(2)
		c.WaitSaved = waits
		f := newField(t, c, memory())
		f.pass(time.Second)
		f.end(0, restart.Exit{}, restart.Circumstances{Told: true})
		f.slow[1] = true
		f.pass(2 * time.Second)
		if f.plan.Grace != c.Finish {
			t.Errorf("worker 1 has %v", f.plan.Grace)
		}
		f.end(1, restart.Exit{}, restart.Circumstances{Told: true})
		f.slow[1] = false
		f.pass(10 * time.Second)
		if !waits {
			f.all(2)
		} else if len(f.running()) != 0 || f.leader.Stage != agree.Asking {
			t.Errorf("%s %v", f.leader.Stage, f.running())
		}
		if f.leader.Budget.Restarts+f.leader.Budget.Tries+f.leader.Budget.Interruptions != 0 {
			t.Errorf("it was charged: %+v", f.leader.Budget)
		}
	}
}

// board is what slices put into the bucket: the first one counts.
type board struct {
	ready   map[int]map[int]bool
	ended   map[int]*agree.Cause
	verdict map[int]*agree.Verdict
}

// multislice are the leaders of its slices, with one lease.
type multislice struct {
	board
	fields []*field
	lease  int
}

func newMultislice(t *testing.T, n int) *multislice {
	t.Helper()
	ms := &multislice{board: board{map[int]map[int]bool{}, map[int]*agree.Cause{}, map[int]*agree.Verdict{}}}
	for s := range n {
		c := config(2)
		c.Slice, c.Slices = s, n
		ms.fields = append(ms.fields, newField(t, c, memory()))
	}
	return ms
}

// pass is field.pass for all of them.
func (ms *multislice) pass(seconds int) {
	for range seconds {
		for s, f := range ms.fields {
			f.lease.Attempt = ms.lease
			f.now = f.now.Add(time.Second)
			f.turn()
			ms.lease = max(ms.lease, f.want.Lease)
			w := f.want
			if w.Ready > 0 {
				if ms.ready[w.Ready] == nil {
					ms.ready[w.Ready] = map[int]bool{}
				}
				ms.ready[w.Ready][s] = true
			}
			if w.Ended != nil && ms.ended[w.Ended.Attempt] == nil {
				ms.ended[w.Ended.Attempt] = w.Ended
			}
			if w.Verdict != nil && ms.verdict[w.Verdict.Attempt] == nil {
				ms.verdict[w.Verdict.Attempt] = w.Verdict
			}
			if w.Look > 0 {
				f.out = agree.Outside{Attempt: w.Look, Ready: len(ms.ready[w.Look]), Ended: ms.ended[w.Look], Verdict: ms.verdict[w.Look]}
			}
		}
	}
}

// renew puts new machines in the place of a slice, which know nothing.
func (ms *multislice) renew(t *testing.T, slice int) {
	t.Helper()
	old := ms.fields[slice]
	f := newField(t, old.leader.Config, memory())
	f.now, f.lease = old.now, old.lease
	f.leader = agree.New(old.leader.Config, memory(), "new", f.now)
	ms.fields[slice] = f
}

func TestSlicesAgreeThroughWhatIsWrittenOnce(t *testing.T) {
	const n = 3
	ms := newMultislice(t, n)
	fields, pass := ms.fields, ms.pass
	pass(20)
	for _, f := range fields {
		f.all(1)
	}
	// Two slices fail at once: one cause, one verdict, one next attempt.
	fields[2].end(1, restart.Exit{Code: 5}, restart.Circumstances{})
	fields[1].end(0, restart.Exit{Code: 6}, restart.Circumstances{})
	pass(40)
	for _, f := range fields {
		f.all(2)
		if c := f.cause(); c.Slice != ms.ended[1].Slice || c.Exit.Code != ms.ended[1].Exit.Code {
			t.Errorf("%+v, want %+v", c, ms.ended[1])
		}
	}
	// A slice whose machines are new says that it is not at it; then all begin again.
	ms.renew(t, 1)
	pass(60)
	for _, f := range fields {
		f.all(3)
	}
	// A worker leaves: its slice ends the attempt of all, and they begin again with the next crew.
	fields[2].status[1].Leaving = true
	pass(60)
	for s, f := range fields {
		if got := f.running(); len(got) != 0 {
			t.Fatalf("slice %d runs %v", s, got)
		}
	}
	fields[2].status[1] = agree.Status{Worker: 1, Host: "h", Phase: agree.Idle}
	pass(60)
	for _, f := range fields {
		f.all(4)
	}
	// The primary is done: all are.
	fields[0].end(0, restart.Exit{}, restart.Circumstances{})
	pass(120)
	for s, f := range fields {
		if !f.plan.Over || f.plan.Code != 0 {
			t.Errorf("slice %d: %s %+v", s, f.leader.Stage, f.plan)
		}
	}
}

// TestNoSliceBeginsWhileAnotherStillTrains: Pitstop names another attempt, and not every slice ends at once.
func TestNoSliceBeginsWhileAnotherStillTrains(t *testing.T) {
	ms := newMultislice(t, 2)
	ms.pass(20)
	for _, f := range ms.fields {
		f.all(1)
		f.lease.Own, f.lease.Epoch = false, 3
	}
	ms.fields[1].slow = map[int]bool{0: true, 1: true}
	ms.lease = 5
	ms.pass(20)
	if got := ms.fields[0].running(); len(got) != 0 {
		t.Errorf("slice 0 runs %v, and slice 1 %v", got, ms.fields[1].running())
	}
	ms.fields[1].slow = map[int]bool{}
	ms.pass(5)
	for _, f := range ms.fields {
		f.all(5)
	}
}

// TestASliceThatIsReadyWaitsForTheFirstLease: slice 0 gives a sign of life before it writes the lease, and for that moment the place is not free.
func TestASliceThatIsReadyWaitsForTheFirstLease(t *testing.T) {
	c := config(2)
	c.Slice, c.Slices = 1, 2
	f := newField(t, c, memory())
	f.pass(time.Second)
	f.lease.Admitted = false
	f.pass(time.Second)
	if f.want.Ready != 1 || f.leader.Stage != agree.Admitting {
		t.Errorf("%s, ready for %d", f.leader.Stage, f.want.Ready)
	}
	f.out = agree.Outside{Attempt: 1, Ready: 2}
	f.pass(time.Second)
	if len(f.running()) > 0 {
		t.Error("it begins without a lease")
	}
	f.lease.Admitted, f.lease.Attempt = true, 1
	f.pass(time.Second)
	f.all(1)
}

// TestAHungAttemptEndsWhenANewLifeOfAnotherSliceWaits: what trains here hears nothing of the slice that is gone.
func TestAHungAttemptEndsWhenANewLifeOfAnotherSliceWaits(t *testing.T) {
	ms := newMultislice(t, 2)
	ms.pass(20)
	ms.fields[0].replaced = []int{1}
	ms.pass(5)
	if c := ms.ended[1]; c == nil || c.Slice != 1 || c.Class != restart.Interrupted || len(ms.fields[0].running()) != 0 {
		t.Errorf("%+v", c)
	}
	ms.fields[0].replaced = nil
	ms.pass(60)
	for _, f := range ms.fields {
		f.all(2)
	}
}

// TestTheOtherSlicesFollowANewLifeOfTheFirst: it decides for all, and the verdict that they wait for will never be given.
func TestTheOtherSlicesFollowANewLifeOfTheFirst(t *testing.T) {
	ms := newMultislice(t, 3)
	ms.pass(20)
	ms.fields[0].deaf = map[int]bool{0: true, 1: true}
	gone := ms.fields[0]
	ms.fields = ms.fields[1:]
	ms.fields[0].end(0, restart.Exit{Code: 5}, restart.Circumstances{}) // it is without the first slice
	ms.pass(20)
	for _, f := range ms.fields {
		if f.leader.Stage != agree.Deciding {
			t.Fatal(f.leader.Stage)
		}
	}
	// It has taken the lease over.
	ms.fields = append([]*field{gone}, ms.fields...)
	ms.renew(t, 0)
	ms.fields[0].now, ms.lease = ms.fields[1].now, 2
	ms.fields[0].leader.Attempt = 2
	ms.pass(120)
	for _, f := range ms.fields {
		f.all(3)
	}
}

func TestTheLeaseIsWrittenBeforeTheTrainingShouldBegin(t *testing.T) {
	f := newField(t, config(2), memory())
	f.pass(time.Second)
	f.all(1)
	f.end(0, restart.Exit{Code: 1}, restart.Circumstances{})
	f.pass(5 * time.Second)
	if f.leader.Stage != agree.Pausing || f.lease.Attempt != 2 || len(f.running()) != 0 {
		t.Fatalf("%s, %+v, running %v", f.leader.Stage, f.lease, f.running())
	}
	f.pass(6 * time.Second)
	f.all(2)
	// What Pitstop names meanwhile is not waited for.
	f.end(0, restart.Exit{Code: 1}, restart.Circumstances{})
	f.pass(5 * time.Second)
	f.lease = agree.Lease{Admitted: true, Attempt: 7, Epoch: 3}
	f.pass(time.Second)
	f.all(7)
	// So does a leader of a new life, which begins what the last one had named.
	f.end(0, restart.Exit{Code: 1}, restart.Circumstances{})
	f.pass(5 * time.Second)
	f.leader = agree.New(config(2), f.leader.Memory, "id2", f.now)
	f.pass(time.Second)
	f.all(8)
}

// TestOneWorkersSignalEndsTheTrainingOnAllOfThem: Google signals one worker, and the primary does not print what it
// heard of it.
func TestOneWorkersSignalEndsTheTrainingOnAllOfThem(t *testing.T) {
	f := newField(t, config(2), memory())
	f.pass(time.Second)
	f.all(1)
	f.slow[1] = true
	f.end(0, restart.Exit{}, restart.Circumstances{})
	f.pass(time.Second)
	f.end(1, restart.Exit{}, restart.Circumstances{Signalled: true})
	f.pass(30 * time.Second)
	f.all(2)
	if c := f.cause(); c.Class != restart.Saved {
		t.Errorf("%+v", c)
	}
}

// TestTheEndAfterTheLastStepWasSavedIsTheEndOfTheJob: on each worker, in each order, and however it ends.
func TestTheEndAfterTheLastStepWasSavedIsTheEndOfTheJob(t *testing.T) {
	abort, clean := restart.Exit{Signal: "SIGABRT"}, restart.Exit{}
	for _, c := range []struct {
		name        string
		step, saved int64
		ends        func(f *field)
		finished    bool
	}{
		{"worker 0 aborts", 10, 10, func(f *field) { f.end(0, abort, restart.Circumstances{}) }, true},
		{"worker 1 aborts", 10, 10, func(f *field) { f.end(1, abort, restart.Circumstances{}) }, true},
		{"an exception", 11, 10, func(f *field) { f.end(1, restart.Exit{Code: 1}, restart.Circumstances{}) }, true},
		{"worker 1 aborts before worker 0 ends", 10, 10, func(f *field) {
			f.end(1, abort, restart.Circumstances{})
			f.pass(time.Second)
			f.end(0, clean, restart.Circumstances{Done: true})
		}, true},
		{"worker 1 aborts after worker 0 ended", 10, 10, func(f *field) {
			f.end(0, clean, restart.Circumstances{Done: true})
			f.pass(time.Second)
			f.end(1, abort, restart.Circumstances{})
		}, true},
		{"a step is missing", 9, 9, func(f *field) { f.end(0, abort, restart.Circumstances{}) }, false},
		{"the last step is not saved", 10, 9, func(f *field) { f.end(0, abort, restart.Circumstances{}) }, false},
		{"nothing is saved", 10, -1, func(f *field) { f.end(0, abort, restart.Circumstances{}) }, false},
		{"the lease asks for another attempt", 10, 10, func(f *field) { f.lease = agree.Lease{Admitted: true, Attempt: 2, Epoch: 1} }, false},
	} {
		cfg, last := config(2), int64(10)
		cfg.DoneAt = &last
		cfg.Number = func(string) int { return 6 }
		f := newField(t, cfg, memory())
		f.pass(20 * time.Second)
		f.all(1)
		f.step, f.slow[0], f.slow[1], f.blind = c.step, true, true, true
		c.ends(f)
		f.pass(time.Second)
		f.slow[0], f.slow[1] = false, false
		f.pass(2 * time.Minute)
		if f.plan.Over && !f.status[0].When.Done || f.leader.Stage == agree.Deciding && f.want.Fresh.IsZero() {
			t.Errorf("%s: %s: it decides before it knows what was saved last", c.name, f.leader.Stage)
		}
		f.saved, f.blind = c.saved, false
		f.pass(5 * time.Minute)
		if f.plan.Over != c.finished || c.finished && f.plan.Code != 0 {
			t.Errorf("%s: %s %+v", c.name, f.leader.Stage, f.plan)
		}
		if last := f.events[len(f.events)-1]; c.finished && (!last.Finished || !last.Verdict.Certain || last.Ended.Class != restart.Finished) {
			t.Errorf("%s: %+v", c.name, last)
		}
	}
}

// TestTheVerdictOnTheLastStepIsCertain: the primary reached it, whatever signal another worker or slice got before.
func TestTheVerdictOnTheLastStepIsCertain(t *testing.T) {
	ms := newMultislice(t, 2)
	life := events.Admission{Slice: "llama-0", Workers: "t1v-n-0123abcd"}
	ms.fields[0].leader.Life = life
	ms.pass(20)
	for _, f := range ms.fields {
		f.all(1)
		f.slow[0], f.slow[1] = true, true
	}
	ms.fields[1].end(0, restart.Exit{}, restart.Circumstances{Maintenance: true})
	ms.fields[1].end(1, restart.Exit{}, restart.Circumstances{Maintenance: true})
	ms.pass(5)
	ended := ms.fields[0].now
	ms.fields[0].end(0, restart.Exit{}, restart.Circumstances{Done: true, Maintenance: true})
	ms.fields[0].end(1, restart.Exit{}, restart.Circumstances{Maintenance: true})
	ms.pass(60)
	if c := ms.ended[1]; c == nil || c.Slice != 1 || c.Class != restart.Saved {
		t.Fatalf("slice 1 was not first: %+v", c)
	}
	v := ms.verdict[1]
	if v == nil || v.Validate() != nil || !v.Finished || !v.Certain || v.Life != life || !v.Ended.Equal(ended) {
		t.Errorf("%+v", v)
	}
	for s, f := range ms.fields {
		if !f.plan.Over || f.plan.Code != 0 {
			t.Errorf("slice %d: %s %+v", s, f.leader.Stage, f.plan)
		}
	}
}
