//go:build unix

package crew

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/report"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/checkpoint"
)

const livesDirectory = "gs://b/run"

var livesLease = checkpoint.Join(livesDirectory, checkpoint.LeaseName)

// world is one checkpoint directory and the lives of a slice that want to train into it.
type world struct {
	t      *testing.T
	bucket *memory
	chance *rand.Rand
	state  string

	mu    sync.Mutex
	lives []*life
	log   []string
	// second says how two trainings wrote at once.
	second string
	// slice is the place of a life in a Multislice of two; nil is no Multislice.
	slice func(name string) int
	// dress changes a life before its crew starts.
	dress func(*life)
}

// life is one life of the slice: the real crew over a training that writes until it is killed, and never ends by itself.
type life struct {
	*crew
	w       *world
	name    string
	store   *far
	end     context.CancelFunc
	died    chan struct{} // closed when the crew has ended
	trained bool
	// until is when the training ends: nobody knows as long as it is zero and trained. led is when its parent heard last that
	// the lease names it.
	until, led, named time.Time
}

func (w *world) note(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%v %s", time.Since(w.epoch()).Round(time.Millisecond), fmt.Sprintf(format, a...)))
}

// epoch is when time begins in a bubble.
func (w *world) epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// born starts a crew on a new machine.
func (w *world) born(name string) *life {
	m := metadata.Machine{Project: "demo", Zone: "us-west4-a", Node: "llama", Host: "t1v-n-" + strings.Repeat(name, 8) + "-w-0", Workers: 1, Slices: 1}
	if w.slice != nil {
		m.Slice, m.Slices = w.slice(name), 2
		m.Node = fmt.Sprintf("llama-%d", m.Slice)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	f := &far{memory: w.bucket, chance: rand.New(rand.NewPCG(w.chance.Uint64(), 1))} //nolint:gosec // a test's
	l := &life{w: w, name: name, store: f, end: cancel, died: make(chan struct{})}
	state, err := os.MkdirTemp(w.state, name)
	if err != nil {
		w.t.Fatal(err)
	}
	l.crew = made(ctx, Options{
		Command: []string{"train"}, State: state, Machine: m, Workload: "demo/llama", Directory: livesDirectory, Store: f, Booted: time.Now(),
		Times: DefaultTimes(), Rules: restart.Defaults(), StayAfterGivingUp: true, Note: func(string, ...any) {},
		Say: func(format string, a ...any) { w.note("%s: %s", name, fmt.Sprintf(format, a...)) },
	})
	l.crew.life, l.keeper = Life(m), l
	if w.dress != nil {
		w.dress(l)
	}
	l.status = agree.Status{Host: m.Host, Phase: agree.Idle}
	l.memory = agree.Memory{Budget: restart.NewBudget()}
	if l.spool, err = report.Open(state+"/reports.jsonl", name, nil); err != nil {
		w.t.Fatal(err)
	}
	l.leader = agree.New(agree.Config{
		Workers: 1, Slice: m.Slice, Slices: m.Slices, Life: l.admission(), Policy: l.Rules, Silence: l.Times.Silent, Finish: l.Times.Finish, StayAfterGivingUp: true, Number: number,
	}, l.memory, name, time.Now())
	w.mu.Lock()
	w.lives = append(w.lives, l)
	w.mu.Unlock()
	w.note("%s: its machine starts", name)
	go l.loop()
	return l
}

// loop is that of Run.
func (l *life) loop() {
	defer close(l.died)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for l.ctx.Err() == nil {
		l.wake = time.Now().Add(time.Minute)
		l.advance(time.Now())
		l.train(time.Now())
		timer.Reset(max(0, time.Until(l.wake)))
		select {
		case f := <-l.do:
			f()
			l.train(time.Now())
		case <-timer.C:
		case <-l.ctx.Done():
		}
	}
}

// noProcess is the number of no process.
const noProcess = 1 << 30

// Start implements keeper.
func (l *life) Start(s child.Spec, _ func() (*os.File, error)) (*child.Child, error) {
	now := time.Now()
	l.w.note("%s: training begins as attempt %d", l.name, s.Attempt)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, o := range l.w.lives {
		if o != l && o.Machine.Slice == l.Machine.Slice && o.trained && (o.until.IsZero() || o.until.After(now)) && l.w.second == "" {
			l.w.second = fmt.Sprintf("%s begins at %v while the training of %s writes", l.name, now.Sub(l.w.epoch()), o.name)
		}
	}
	l.trained, l.until, l.led, l.named = true, time.Time{}, s.Named, l.lease.named
	return &child.Child{Record: child.Record{Attempt: s.Attempt, Began: now, Training: child.Identity{PID: noProcess}, Parent: child.Identity{PID: noProcess}}}, nil
}

// Close implements keeper.
func (l *life) Close() {}

// train has the training end as a real one that ignores every signal but SIGKILL.
func (l *life) train(now time.Time) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.child == nil {
		return
	}
	if l.lease.named != l.named {
		l.named, l.led = l.lease.named, now // the parent hears of it
	}
	end := l.led.Add(l.Times.Last())
	if s := l.stopping; s != nil && s.stage > 0 && !s.sentAt.IsZero() {
		if killed := s.sentAt.Add(l.Times.Stop + l.Times.Dump); killed.Before(end) {
			end = killed
		}
	}
	l.until = end
	if l.stopping == nil && now.Before(end) {
		l.until = time.Time{}
	}
	if now.Before(end) {
		l.at(end)
		return
	}
	e := restart.Exit{Attempt: l.child.Attempt, Signal: "SIGKILL", Began: l.child.Began, Ended: now}
	l.child, l.stopping, l.until = nil, nil, now
	l.exited(e, restart.Circumstances{Stopped: true})
}

// fail has the training end by itself.
func (l *life) fail() {
	if l.child == nil {
		return
	}
	e := restart.Exit{Attempt: l.child.Attempt, Code: 1, Began: l.child.Began, Ended: time.Now()}
	l.w.mu.Lock()
	l.child, l.stopping, l.until = nil, nil, time.Now()
	l.w.mu.Unlock()
	l.exited(e, restart.Circumstances{})
}

// lose kills the crew; its training goes on until its parent ends it. Or the machine is lost with both.
func (l *life) lose(machine bool) {
	l.end()
	<-l.died
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	switch {
	case l.child == nil:
	case machine:
		l.until = time.Now()
	default:
		if end := l.led.Add(l.Times.Last()); l.until.IsZero() || end.Before(l.until) {
			l.until = end
		}
	}
}

// close ends all crews.
func (w *world) close() {
	for _, l := range w.lives {
		l.end()
		<-l.died
	}
}

// alive are the lives whose crew runs.
func (w *world) alive() (alive []*life) {
	for _, l := range w.lives {
		if l.ctx.Err() == nil {
			alive = append(alive, l)
		}
	}
	return alive
}

// trains is the life that trains, or nil.
func (w *world) trains() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lives {
		if l.ctx.Err() == nil && l.trained && l.until.IsZero() {
			return l
		}
	}
	return nil
}

// between is a random span.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.chance.Int64N(int64(most-least)))
}

// garbage is what stands in the place of the lease where a person, a program or a torn write left it.
func (w *world) garbage() []byte {
	o, err := w.bucket.Get(context.Background(), livesLease)
	kinds := [][]byte{{}, []byte("{}"), []byte("<html>"), []byte(`{"schema":1,"workload":"demo/llama"}`), []byte(`[1]`)}
	if err == nil && len(o.Content) > 2 {
		kinds = append(kinds, o.Content[:w.chance.IntN(len(o.Content)-1)], []byte(strings.Replace(string(o.Content), `"written"`, `"x"`, 1)))
	}
	return kinds[w.chance.IntN(len(kinds))]
}

// trouble is one thing that goes wrong, and returns when it is over.
func (w *world) trouble() {
	pick := func(from []*life) *life {
		if len(from) == 0 {
			return nil
		}
		return from[w.chance.IntN(len(from))]
	}
	owner := w.trains()
	switch n := w.chance.IntN(12); {
	case n < 3:
		w.note("the lease is deleted")
		w.bucket.put(livesLease, nil)
	case n < 5:
		w.note("the lease is garbage")
		w.bucket.put(livesLease, w.garbage())
	case n < 6: // a rule or a program deletes it again and again
		every := w.between(time.Second, 15*time.Second)
		times := 1 + w.chance.IntN(60)
		w.note("the lease is deleted %d times, every %v", times, every)
		for range times {
			w.bucket.put(livesLease, nil)
			time.Sleep(every)
		}
	case n < 8 && owner != nil && len(w.alive()) > 1:
		machine := w.chance.IntN(2) == 0
		w.note("%s dies, its machine too: %t", owner.name, machine)
		if owner.lose(machine); w.chance.IntN(2) == 0 {
			w.bucket.put(livesLease, nil)
			w.note("and the lease is deleted")
		}
	case n < 9 && len(w.lives) < 3:
		w.born("abc"[len(w.lives):][:1])
	default:
		l := pick(w.alive())
		readOnly := w.chance.IntN(3) == 0
		span := w.between(time.Second, 8*time.Minute)
		w.note("%s cannot reach the bucket for %v, or not write: %t", l.name, span, readOnly)
		l.store.set(func(f *far) { f.cut, f.noWrite = !readOnly, readOnly })
		if w.chance.IntN(2) == 0 {
			time.Sleep(w.between(0, span))
			w.note("the lease is deleted")
			w.bucket.put(livesLease, nil)
		}
		time.Sleep(span)
		l.store.set(func(f *far) { f.cut, f.noWrite = false, false })
	}
}

// play has the lives of a slice fight for one lease while things go wrong, and then leaves them alone. It returns what broke a law.
func (w *world) play() string {
	first := w.born("a")
	if w.chance.IntN(3) == 0 {
		w.admit(first, 7, 4)
	}
	time.Sleep(w.between(0, 2*time.Minute))
	w.born("b")
	for range 2 + w.chance.IntN(5) {
		time.Sleep(w.between(time.Second, 7*time.Minute))
		w.trouble()
	}
	w.note("nothing goes wrong any more")
	t := DefaultTimes()
	time.Sleep(2*t.TakeOver + t.Unread + 3*time.Minute)
	waits := ""
	l, _, err := checkpoint.ReadLease(w.t.Context(), w.bucket, livesDirectory)
	// Where Pitstop's lease names a life that is lost, Pitstop admits the next.
	lost := func(o *life) bool { return err == nil && l.Epoch > 0 && o.ctx.Err() != nil && o.admits(l) }
	if w.trains() == nil && !slices.ContainsFunc(w.lives, lost) {
		waits = fmt.Sprintf("everybody waits; the lease is %+v, %v", l, err)
	}
	w.close()
	if w.second != "" {
		return w.second
	}
	return waits
}

// place plays one scene of lives in a checkpoint directory, in virtual time.
func place(t *testing.T, scene func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, bucket: newMemory(), chance: rand.New(rand.NewPCG(1, 0)), state: t.TempDir()} //nolint:gosec // a test's
		scene(t, w)
		w.close()
		if w.second != "" {
			t.Error(w.second)
		}
		if t.Failed() {
			t.Log(strings.Join(w.log, "\n"))
		}
	})
}

// said counts the lines that hold a text.
func (w *world) said(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(strings.Join(w.log, "\n"), text)
}

// lease is what stands in the place of the lease.
func (w *world) lease() string {
	o, err := w.bucket.Get(context.Background(), livesLease)
	if err != nil {
		return ""
	}
	return string(o.Content)
}

// admit has Pitstop admit a life.
func (w *world) admit(l *life, epoch int64, attempt int) {
	w.t.Helper()
	err := checkpoint.WriteLease(w.t.Context(), w.bucket, livesDirectory, checkpoint.Lease{
		Workload: "demo/llama", Incident: "i1", Epoch: epoch, Attempt: attempt, Written: time.Now(), By: "pitstop",
		Admitted: []events.Admission{l.admission()},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestTheCrewThatTheLeaseNamesWritesItAgain: an age rule of the bucket, or a person who cleans up, removes Pitstop's lease while the training
// runs. The same lease stands again, the training goes on, and nobody else gets the place.
func TestTheCrewThatTheLeaseNamesWritesItAgain(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		a := w.born("a")
		w.admit(a, 7, 4)
		time.Sleep(time.Minute)
		w.born("b")
		time.Sleep(time.Minute)
		want := w.lease()
		for _, instead := range []string{"", "{}", want[:len(want)/2], "<html>"} {
			if w.bucket.put(livesLease, nil); instead != "" {
				w.bucket.put(livesLease, []byte(instead))
			}
			time.Sleep(20 * time.Second)
			if got := w.lease(); got != want {
				t.Errorf("in the place of %q stands %s, want %s", instead, got, want)
			}
			time.Sleep(10 * time.Minute)
		}
		if w.trains() != a || w.said("training begins") != 1 {
			t.Errorf("%v trains, and %d trainings began", w.trains(), w.said("training begins"))
		}
	})
}

// TestAMissingLeaseRenewsNothing: it cannot be written again, and the training ends when no lease was read for so long.
func TestAMissingLeaseRenewsNothing(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		a := w.born("a")
		w.admit(a, 7, 4)
		time.Sleep(time.Minute)
		a.store.set(func(f *far) { f.noWrite = true })
		w.bucket.put(livesLease, nil)
		time.Sleep(a.Times.Unread - 15*time.Second)
		if w.trains() != a {
			t.Error("the training ended early")
		}
		time.Sleep(15*time.Second + a.Times.Stop + a.Times.Dump)
		if w.trains() != nil || w.said("the lease was not read for 5m0s") == 0 {
			t.Error("the training goes on without a lease")
		}
		a.store.set(func(f *far) { f.noWrite = false })
		time.Sleep(a.Times.TakeOver + time.Minute)
		l, _, err := checkpoint.ReadLease(t.Context(), w.bucket, livesDirectory)
		if err != nil || l.Epoch != 7 || l.Attempt != 5 || w.trains() != a {
			t.Errorf("the next lease is %+v, %v", l, err)
		}
	})
}

// TestAnotherCrewWaitsForAMissingLease as long as the last training may write, whether it has read one or only finds what crews leave.
func TestAnotherCrewWaitsForAMissingLease(t *testing.T) {
	for name, c := range map[string]struct {
		read    bool   // the other crew has read the lease that is missing
		left    string // what crews have left
		pulse   bool   // somebody gives signs of life for another three minutes
		waits   bool
		epoch   int64
		attempt int
	}{
		"it has read one":               {read: true, waits: true, epoch: 7, attempt: 5},
		"a verdict":                     {left: "attempt-000012/verdict.json", waits: true, attempt: 13},
		"an attempt beyond belief":      {left: "attempt-1000000/verdict.json", waits: true, attempt: 1},
		"a sign of life":                {left: "holder.json", waits: true, attempt: 1},
		"signs of life":                 {left: "holder.json", pulse: true, waits: true, attempt: 1},
		"a speed":                       {left: "speed.json", waits: true, attempt: 1},
		"nothing":                       {attempt: 1},
		"the key of crews that start":   {left: "key.json", attempt: 1},
		"a lock":                        {left: "crew-host-0-0.lock", attempt: 1},
		"a slice that waits for others": {left: "attempt-000001/ready-1.json", attempt: 1},
	} {
		place(t, func(t *testing.T, w *world) {
			leave := func() {
				if c.left != "" {
					w.bucket.put(checkpoint.Join(livesDirectory, peers.Folder+"/"+c.left), []byte("{}"))
				}
			}
			leave()
			if c.read {
				a := w.born("a")
				w.admit(a, 7, 4)
				time.Sleep(time.Minute)
				w.born("b")
				time.Sleep(time.Minute)
				a.lose(true)
				w.bucket.put(livesLease, nil)
			} else {
				w.born("b")
			}
			wait := 15 * time.Second
			if c.pulse {
				for range 6 {
					time.Sleep(30 * time.Second)
					leave()
				}
			}
			if c.waits {
				time.Sleep(DefaultTimes().TakeOver - 5*time.Second)
				if w.trains() != nil {
					t.Errorf("%s: it did not wait", name)
				}
			}
			time.Sleep(wait + 10*time.Second)
			l, _, err := checkpoint.ReadLease(t.Context(), w.bucket, livesDirectory)
			if err != nil || l.Epoch != c.epoch || l.Attempt != c.attempt || w.trains() == nil {
				t.Errorf("%s: the lease is %+v, %v", name, l, err)
			}
		})
	}
}

// TestTheSlicesOfAMultisliceComeToOneAttempt though no lease stands, and one slice has read one that the other has never seen.
func TestTheSlicesOfAMultisliceComeToOneAttempt(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		w.slice = func(name string) int { return strings.Count("b", name) } // c and e are the next lives of a
		a, b := w.born("a"), w.born("b")
		time.Sleep(time.Minute)
		first := w.said("training begins")
		w.bucket.put(livesLease, nil) // while they train
		time.Sleep(time.Minute)
		if first != 2 || w.said("training begins") != 2 || w.lease() == "" {
			t.Errorf("%d trainings, the lease is %s", w.said("training begins"), w.lease())
		}
		for range 3 { // the attempt rises
			b.do <- func() { b.fail() }
			time.Sleep(5 * time.Minute)
		}
		b.store.set(func(f *far) { f.cut = true }) // so it does not write the lease again
		a.lose(true)
		w.bucket.put(livesLease, nil)
		w.born("c")
		time.Sleep(7 * time.Minute)
		w.lives[2].lose(true) // it was ready for the next attempt
		e := w.born("e")
		time.Sleep(time.Minute)
		b.store.set(func(f *far) { f.cut = false })
		time.Sleep(25 * time.Minute)
		l, _, err := checkpoint.ReadLease(t.Context(), w.bucket, livesDirectory)
		if err != nil || len(l.Admitted) != 2 || e.child == nil || b.child == nil || e.child.Attempt != b.child.Attempt {
			t.Errorf("the lease is %+v, %v; %v and %v train", l, err, b.child, e.child)
		}
	})
}

// TestTheFirstStartOfAMultisliceIsItsFirstAttempt: the slices look, say that they are ready and give signs of life in any order.
func TestTheFirstStartOfAMultisliceIsItsFirstAttempt(t *testing.T) {
	for seed := range breadth.Of(200/breadth.Every(5), 10) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, bucket: newMemory(), chance: rand.New(rand.NewPCG(uint64(seed), 0)), state: t.TempDir()} //nolint:gosec // a test's
			w.slice = func(name string) int { return strings.Count("b", name) }
			w.born("a")
			time.Sleep(w.between(0, time.Second))
			w.born("b")
			time.Sleep(2 * time.Minute)
			w.close()
			if n := w.said("training begins as attempt 1"); n != 2 || w.said("training begins") != 2 || w.said("nobody saw how") > 0 {
				t.Errorf("seed %d: %s", seed, strings.Join(w.log, "\n"))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestAWriteThatFailsIsSaidOnce: the lease can be read and not written. That it works again is said after a write that worked.
func TestAWriteThatFailsIsSaidOnce(t *testing.T) {
	const fails, works = "write of the lease: ", "write of the lease: it works again"
	place(t, func(t *testing.T, w *world) {
		a := w.born("a")
		a.store.set(func(f *far) { f.noWrite = true })
		time.Sleep(10 * time.Minute)
		if w.said(fails) != 1 || w.said("works again") != 0 {
			t.Errorf("said %d times that it fails, %d times that it works", w.said(fails), w.said("works again"))
		}
		a.store.set(func(f *far) { f.noWrite = false })
		time.Sleep(time.Minute)
		if w.said(works) != 1 || w.said(fails) != 2 || w.trains() != a {
			t.Errorf("said %d times that it works", w.said(works))
		}
	})
	// Another one takes a lease over, and cannot write it.
	place(t, func(t *testing.T, w *world) {
		a := w.born("a")
		time.Sleep(time.Minute)
		b := w.born("b")
		b.store.set(func(f *far) { f.noWrite = true })
		time.Sleep(time.Minute)
		a.lose(true)
		time.Sleep(20 * time.Minute)
		if w.said("taking the lease over") != 1 || w.said(fails) != 1 {
			t.Errorf("said %d times that it takes over, %d times that it fails", w.said("taking the lease over"), w.said(fails))
		}
		b.store.set(func(f *far) { f.noWrite = false })
		time.Sleep(time.Minute)
		if w.trains() != b {
			t.Error("it waits for ever")
		}
	})
}

// TestNoAttemptBeyondBeliefIsNamed: every later lease would be older, and nobody could write one.
func TestNoAttemptBeyondBeliefIsNamed(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		b := w.born("b")
		w.admit(b, 8, events.MaxAttempt)
		time.Sleep(time.Minute)
		b.do <- func() { b.crew.name(events.MaxAttempt+1, false) }
		time.Sleep(time.Minute)
		l, _, err := checkpoint.ReadLease(t.Context(), w.bucket, livesDirectory)
		if err != nil || l.Attempt != events.MaxAttempt || w.said("pitstop retry") != 1 {
			t.Errorf("the lease is %+v, %v", l, err)
		}
	})
}

// TestACrewWhoseSignsOfLifeFailEndsItsTraining: it reads the lease that it wrote, and another crew sees no sign of life and takes it over.
func TestACrewWhoseSignsOfLifeFailEndsItsTraining(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		a := w.born("a")
		time.Sleep(time.Minute)
		w.born("b")
		time.Sleep(time.Minute)
		a.store.set(func(f *far) { f.noWrite = true })
		time.Sleep(7 * time.Minute)
		if w.said("no sign of life could be written for 5m0s") == 0 || w.said("training begins") != 2 {
			t.Error("the other did not get the lease")
		}
	})
}

// TestASliceThatTheLeaseDoesNotNameJoinsNoMissingLease: Pitstop's lease admits the slice of a alone. When it vanishes, b waits for the next.
func TestASliceThatTheLeaseDoesNotNameJoinsNoMissingLease(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		a := w.born("a")
		w.admit(a, 7, 4)
		time.Sleep(time.Minute)
		w.dress = func(l *life) { l.Machine.Node = "other" }
		b := w.born("b")
		time.Sleep(time.Minute)
		a.store.set(func(f *far) { f.cut = true })
		w.bucket.put(livesLease, nil)
		time.Sleep(7 * time.Minute)
		a.store.set(func(f *far) { f.cut = false })
		time.Sleep(5 * time.Minute)
		if b.child != nil {
			t.Error("it trains, and nobody admitted its slice")
		}
	})
}

// TestADirectoryIsEmptyOnlyUntilSomebodyCame: b looked before anybody had trained, and could not write. Then a trained, whose crew died and
// whose lease vanished while b was cut off.
func TestADirectoryIsEmptyOnlyUntilSomebodyCame(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		w.dress = func(l *life) { l.store.set(func(f *far) { f.noWrite = true }) }
		b := w.born("b")
		w.dress = nil
		time.Sleep(20 * time.Second)
		b.store.set(func(f *far) { f.cut = true })
		a := w.born("a")
		time.Sleep(40 * time.Second)
		if w.trains() != a {
			t.Fatal("a does not train")
		}
		a.lose(false)
		w.bucket.put(livesLease, nil)
		b.store.set(func(f *far) { f.cut, f.noWrite = false, false })
		time.Sleep(3 * time.Minute)
		if b.child != nil {
			t.Error("it trains as if nobody had trained there")
		}
	})
}

// TestAForeignLeaseThatComesBeforeTheWriteStays: the look before saw none.
func TestAForeignLeaseThatComesBeforeTheWriteStays(t *testing.T) {
	place(t, func(t *testing.T, w *world) {
		b := w.born("b")
		b.end()
		<-b.died
		w.bucket.put(livesLease, nil)
		if err := checkpoint.WriteLease(t.Context(), w.bucket, livesDirectory, checkpoint.Lease{
			Workload: "dev/llama", Attempt: 4, Written: time.Now(), By: "crew", Admitted: []events.Admission{{Slice: "llama", Workers: "x"}},
		}); err != nil {
			t.Fatal(err)
		}
		wrote, err := b.write(t.Context(), draft{attempt: 5, takeOver: true, last: checkpoint.Lease{Workload: "demo/llama"}})
		if wrote || err != nil || !strings.Contains(w.lease(), "dev/llama") || !strings.Contains(w.lease(), `"attempt":4`) {
			t.Errorf("wrote %t, %v: %s", wrote, err, w.lease())
		}
	})
}

// TestAForeignLeaseIsLeftAlone: two workloads share a directory by mistake, and the other one has its lease. It may stop to stir for hours.
func TestAForeignLeaseIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		theirs  string
		epoch   int64
		own     string // the workload as the user named it
		foreign bool
	}{
		"a workload of another project, by Pitstop":   {"dev/llama", 7, "prod/llama", true},
		"a workload of another project, by its crew":  {"dev/llama", 0, "prod/llama", true},
		"another workload of this project":            {"demo/other", 7, "demo/llama-8b", true},
		"another project, and the machine knows it":   {"dev/llama", 7, "", true},
		"the node's other name, which Pitstop knows":  {"demo/llama-8b", 7, "", false},
		"this workload, and its user has it named so": {"demo/llama-8b", 7, "demo/llama-8b", false},
	} {
		place(t, func(t *testing.T, w *world) {
			var a *life
			w.dress = func(l *life) {
				if c.own != "" {
					l.Workload, l.Named = c.own, true
				}
			}
			a = w.born("a")
			l := checkpoint.Lease{
				Workload: c.theirs, Epoch: c.epoch, Attempt: 4, Written: time.Now(), By: "pitstop", Admitted: []events.Admission{a.admission()},
			}
			if err := checkpoint.WriteLease(t.Context(), w.bucket, livesDirectory, l); err != nil {
				t.Fatal(err)
			}
			before := w.lease()
			time.Sleep(time.Hour)
			if trains := w.trains() != nil; trains == c.foreign {
				t.Errorf("%s: it trains: %t", name, trains)
			}
			if !c.foreign {
				return
			}
			text := fmt.Sprintf("the lease in %s belongs to %s, and this is %s", livesDirectory, c.theirs, a.Workload)
			if w.lease() != before || w.said(text) != 1 {
				t.Errorf("%s: said %d times: %s; the lease is %s", name, w.said(text), text, w.lease())
			}
			w.bucket.put(livesLease, nil) // the way out
			time.Sleep(a.Times.TakeOver + time.Minute)
			if l, _, err := checkpoint.ReadLease(t.Context(), w.bucket, livesDirectory); err != nil || l.Workload != a.Workload || l.Epoch != 0 || w.trains() == nil {
				t.Errorf("%s: once it is removed, the lease is %+v, %v", name, l, err)
			}
		})
	}
}

// TestOneLifeWritesAndNobodyWaitsForEver plays the lives of a slice against each other: the lease is deleted, again and again or once, or
// garbage; its owner is lost with its machine, or its crew alone; a crew is cut off from the bucket, or cannot write; a new machine comes.
func TestOneLifeWritesAndNobodyWaitsForEver(t *testing.T) {
	seeds := breadth.Of(20, 3)
	if breadth.Full() {
		seeds = 1000
	}
	for seed := range seeds {
		broken := ""
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, bucket: newMemory(), chance: rand.New(rand.NewPCG(uint64(seed), 0)), state: t.TempDir()} //nolint:gosec // a test's
			if broken = w.play(); broken != "" {
				broken += "\n" + strings.Join(w.log, "\n")
			}
		})
		if broken != "" {
			t.Fatalf("seed %d: %s", seed, broken)
		}
	}
}
