package clock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var begin = time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)

// diary notes what happens, and when by the clock. One thing happens at a time, so it needs no lock.
type diary struct {
	*Clock
	lines []string
}

func newDiary(t *testing.T) *diary {
	t.Helper()
	return &diary{Clock: newClock(t)}
}

// newClock returns a clock that is closed at the end of the test.
func newClock(t *testing.T) *Clock {
	t.Helper()
	c := NewClock(begin)
	t.Cleanup(c.Close)
	return c
}

func (d *diary) note(what string) {
	d.lines = append(d.lines, fmt.Sprint(d.Now().Sub(begin), " ", what))
}

// at has something noted after a while.
func (d *diary) at(after time.Duration, what string) {
	d.At(begin.Add(after), func() { d.note(what) })
}

// play lets the clock go on until nothing is due.
func (d *diary) play() {
	for d.Step(begin.Add(24 * time.Hour)) {
	}
}

func (d *diary) holds(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClockRunsWhatIsDueInTheOrderOfTimeAndOfAsking(t *testing.T) {
	d := newDiary(t)
	d.at(3*time.Second, "late")
	d.at(2*time.Second, "first of two")
	d.at(2*time.Second, "second of two")
	d.at(-time.Hour, "past")
	d.At(begin.Add(time.Second), func() {
		d.note("asks for more")
		d.at(2*time.Second, "third of two")
		d.at(0, "past by now")
		d.at(time.Second, "at this very moment")
	})
	d.play()
	d.holds(t, "0s past", "1s asks for more", "1s past by now", "1s at this very moment",
		"2s first of two", "2s second of two", "2s third of two", "3s late")
}

// TestClockNeverGoesBack draws a thousand moments, of which many ask for more.
func TestClockNeverGoesBack(t *testing.T) {
	const total = 1000
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same thousand every time
	c := newClock(t)
	type moment struct {
		due time.Time
		seq int
	}
	var asked, ran []moment
	var ask func()
	ask = func() {
		due := c.Now().Add(time.Duration(random.IntN(20)-5) * time.Second)
		m := moment{due, len(asked)}
		if due.Before(c.Now()) {
			m.due = c.Now()
		}
		asked = append(asked, m)
		c.At(due, func() {
			if !c.Now().Equal(m.due) {
				t.Errorf("due at %s, runs at %s", m.due, c.Now())
			}
			ran = append(ran, m)
			for range random.IntN(4) {
				if len(asked) < total {
					ask()
				}
			}
		})
	}
	for len(asked) < total {
		ask()
		for c.Step(c.Now().Add(3 * time.Second)) {
		}
	}
	for c.Step(begin.Add(240 * time.Hour)) {
	}
	slices.SortFunc(asked, func(a, b moment) int {
		if n := a.due.Compare(b.due); n != 0 {
			return n
		}
		return a.seq - b.seq
	})
	if len(ran) != total || !slices.Equal(asked, ran) {
		t.Errorf("%d of %d ran, in the order of their time and of asking: %v", len(ran), total, slices.Equal(asked, ran))
	}
}

func TestClockStopsAtItsLimit(t *testing.T) {
	d := newDiary(t)
	d.at(time.Minute, "at the limit")
	d.at(time.Minute+1, "behind it")
	limit := begin.Add(time.Minute)
	if !d.Step(limit) || d.Step(limit) || !d.Now().Equal(limit) {
		t.Errorf("it is %s", d.Now())
	}
	d.holds(t, "1m0s at the limit")
}

func TestClockStandsStillWhileAHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t)
		release := make(chan struct{})
		d.at(time.Second, "due")
		d.Go(func() {
			<-release
			d.note("handler ends")
		})
		go d.Step(begin.Add(time.Hour))
		synctest.Wait()
		if d.Quiet() || len(d.lines) > 0 || !d.Now().Equal(begin) {
			t.Errorf("the clock went on to %s, past a running handler: %q", d.Now(), d.lines)
		}
		close(release)
		synctest.Wait()
		d.holds(t, "0s handler ends", "1s due")
		if !d.Quiet() {
			t.Error("a handler still counts as running")
		}
	})
}

func TestSettleWaitsForEveryHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(t)
		release := make(chan struct{})
		settled := false
		for range 3 {
			c.Go(func() { <-release })
		}
		go func() {
			c.Settle()
			settled = true
		}()
		for range 3 {
			synctest.Wait()
			if settled {
				t.Fatal("settled while a handler runs")
			}
			release <- struct{}{}
		}
		synctest.Wait()
		if !settled {
			t.Error("not settled though no handler runs")
		}
	})
}

func TestASleeperWakesAtItsTimeBeforeTheClockGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t)
		for _, name := range []string{"a", "b"} {
			d.Go(func() {
				for i := range 3 {
					if err := d.Sleep(t.Context(), 5*time.Second); err != nil {
						t.Error(err)
					}
					d.note(fmt.Sprint(name, i))
				}
			})
			synctest.Wait() // a asks first
		}
		d.at(5*time.Second, "due with them")
		d.at(7*time.Second, "between")
		d.play()
		d.holds(t, "5s a0", "5s b0", "5s due with them", "7s between", "10s a1", "10s b1", "15s a2", "15s b2")
	})
}

func TestASleepOfNothingEndsBehindWhatIsDueNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, nothing := range []time.Duration{0, -time.Hour} {
			d := newDiary(t)
			d.at(0, "due now")
			d.at(1, "due later")
			d.Go(func() {
				if err := d.Sleep(t.Context(), nothing); err != nil {
					t.Error(err)
				}
				d.note("awake")
			})
			synctest.Wait()
			d.play()
			d.holds(t, "0s due now", "0s awake", "1ns due later")
		}
	})
}

// TestASleeperThatIsCancelledKeepsItsPlace holds the order even then: it wakes when it was to, with the reason.
func TestASleeperThatIsCancelledKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t)
		ctx, cancel := context.WithCancel(t.Context())
		d.at(time.Second, "before")
		d.Go(func() {
			if err := d.Sleep(ctx, 2*time.Second); !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled sleep ends with %v", err)
			}
			d.note("awake")
		})
		synctest.Wait()
		d.at(2*time.Second, "with it")
		cancel()
		synctest.Wait()
		d.holds(t)
		d.play()
		d.holds(t, "1s before", "2s awake", "2s with it")
		d.Settle()
		if !d.Quiet() {
			t.Error("the sleeper still counts as running")
		}
	})
}

func TestAClockLedFromOutsideNeitherWaitsNorGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t)
		release := make(chan struct{})
		d.Go(func() { <-release })
		d.at(time.Second, "due")
		d.at(3*time.Second, "later")
		if !d.StepBefore(begin.Add(2*time.Second)) || d.StepBefore(begin.Add(2*time.Second)) {
			t.Error("it waits for a handler, or runs a function past its limit")
		}
		d.Advance(begin.Add(5 * time.Second))
		d.Advance(begin.Add(4 * time.Second))
		if !d.StepBefore(begin.Add(10 * time.Second)) {
			t.Error("an overdue function does not run")
		}
		d.at(4*time.Second, "asked for in the past")
		close(release)
		d.play()
		d.holds(t, "1s due", "5s later", "5s asked for in the past")
	})
}

func TestStepDoesNotGoBackToWhatIsOverdue(t *testing.T) {
	d := newDiary(t)
	d.at(time.Second, "overdue")
	d.Advance(begin.Add(time.Minute))
	d.play()
	d.holds(t, "1m0s overdue")
}

// seenLate is a context that is done, and whose end a sleeper sees only after it has been woken, as on a busy machine.
type seenLate struct {
	context.Context //nolint:containedctx // it is one
	woken           <-chan struct{}
}

func (s seenLate) Done() <-chan struct{} {
	<-s.woken
	return s.Context.Done()
}

func TestASleeperWhoseContextHasEndedIsAlwaysTold(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // each would be told by chance
		c := newClock(t)
		woken := make(chan struct{})
		var err error
		c.Go(func() { err = c.Sleep(seenLate{ended, woken}, time.Second) })
		c.Step(begin.Add(time.Minute))
		close(woken)
		c.Settle()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
	}
}
