package cloudtputest

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is the time that an API lives by.
type Clock interface {
	// Now is the present.
	Now() time.Time
	// At runs f when the clock reaches t, or as soon as it moves at all when t has passed.
	At(t time.Time, f func())
}

// ManualClock is a clock that moves only when its caller moves it. Due functions run in the goroutine that moves the clock.
// They run in the order of their times, and at the same time in the order of their registration.
type ManualClock struct {
	mu    sync.Mutex
	now   time.Time
	order uint64
	due   dues
}

// NewManualClock returns a clock that stands at start.
func NewManualClock(start time.Time) *ManualClock { return &ManualClock{now: start} }

// Now implements Clock.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// At implements Clock.
func (c *ManualClock) At(t time.Time, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order++
	heap.Push(&c.due, due{at: t, order: c.order, f: f})
}

// Advance moves the clock by d and runs everything that becomes due on the way, each at its own time. What that asks
// for runs too if it falls within d. It must not be called from something that runs.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for len(c.due) > 0 && !c.due[0].at.After(end) {
		next, _ := heap.Pop(&c.due).(due)
		if next.at.After(c.now) {
			c.now = next.at
		}
		c.mu.Unlock()
		next.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// Next is when something is due next, and whether anything is.
func (c *ManualClock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.due) == 0 {
		return time.Time{}, false
	}
	return c.due[0].at, true
}

type due struct {
	at    time.Time
	order uint64
	f     func()
}

type dues []due

func (d dues) Len() int { return len(d) }

func (d dues) Less(i, j int) bool {
	if !d[i].at.Equal(d[j].at) {
		return d[i].at.Before(d[j].at)
	}
	return d[i].order < d[j].order
}

func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *dues) Push(x any) {
	if x, ok := x.(due); ok {
		*d = append(*d, x)
	}
}

// Pop implements heap.Interface.
func (d *dues) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = due{}
	*d = (*d)[:last]
	return x
}
