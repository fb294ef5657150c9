// Package clock is virtual time. It advances only when no handler runs and nothing can be delivered at the present moment, to
// the next moment at which something is due. One handler runs at a time, so the same scenario always makes the same story.
package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Clock is the one clock of a scenario.
type Clock struct {
	mu      sync.Mutex
	idle    sync.Cond
	now     time.Time
	timers  timers
	seq     int
	running int
	// turn is that of a run.
	turn turn
}

// NewClock returns a clock that stands at start.
func NewClock(start time.Time) *Clock {
	c := &Clock{now: start, turn: turn{pass: make(chan struct{})}}
	c.idle.L = &c.mu
	return c
}

// Now is the present moment.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// At makes f run when the clock reaches t; a past t is now. Functions due at the same moment run in the order of their
// registration.
func (c *Clock) At(t time.Time, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.now) {
		t = c.now
	}
	c.seq++
	heap.Push(&c.timers, timer{t, c.seq, f})
}

// Go runs a handler: the clock stands still until it returns or sleeps.
func (c *Clock) Go(f func()) {
	if c.underRun() {
		c.inTurn(f)
		return
	}
	c.Add(1)
	go func() {
		defer c.Add(-1)
		f()
	}()
}

// Sleep is how a handler waits: by this clock. One whose context has ended meanwhile, or before, is woken at its time all
// the same, and told: only so does it not depend on which of the two it sees first.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if c.underRun() {
		c.sleepInTurn(d)
		return ctx.Err()
	}
	woken := make(chan struct{})
	c.At(c.Now().Add(d), func() {
		c.Add(1) // the sleeper runs again before the clock goes on
		close(woken)
	})
	c.Add(-1)
	<-woken
	return ctx.Err()
}

// Add counts a handler that begins, or with -1 one that ends.
func (c *Clock) Add(n int) {
	c.mu.Lock()
	c.running += n
	c.mu.Unlock()
	c.idle.Broadcast()
}

// Step waits until no handler runs and goes on to the next due function, but not past the limit. It reports whether there
// was one.
func (c *Clock) Step(limit time.Time) bool {
	c.mu.Lock()
	for c.running > 0 {
		c.idle.Wait()
	}
	return c.next(limit)
}

// next runs the next due function at its time, unless that is past the limit. It takes the lock over and gives it back.
func (c *Clock) next(limit time.Time) bool {
	if len(c.timers) == 0 || c.timers[0].at.After(limit) {
		c.mu.Unlock()
		return false
	}
	next, _ := heap.Pop(&c.timers).(timer)
	if next.at.After(c.now) {
		c.now = next.at
	}
	c.mu.Unlock()
	next.f()
	return true
}

// Quiet reports whether no handler runs.
func (c *Clock) Quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running == 0
}

// StepBefore goes on to the next due function, but not past the limit, without waiting for handlers. It reports whether
// there was one.
func (c *Clock) StepBefore(limit time.Time) bool {
	c.mu.Lock()
	return c.next(limit)
}

// Advance sets the time, which never goes back.
func (c *Clock) Advance(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// Settle waits until no handler runs.
func (c *Clock) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 {
		c.idle.Wait()
	}
}

type timer struct {
	at  time.Time
	seq int
	f   func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if !t[i].at.Equal(t[j].at) {
		return t[i].at.Before(t[j].at)
	}
	return t[i].seq < t[j].seq
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any) {
	if x, ok := x.(timer); ok {
		*t = append(*t, x)
	}
}

func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = timer{} // or the array would keep everything alive that a function of the past reaches
	*t = old[:len(old)-1]
	return last
}
