package cloudtputest_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestManualClock(t *testing.T) {
	c := cloudtputest.NewManualClock(start)
	var got []string
	say := func(what string) func() {
		return func() { got = append(got, what+c.Now().Sub(start).String()) }
	}
	c.At(start.Add(2*time.Second), say("third "))
	c.At(start.Add(time.Second), say("first "))
	c.At(start.Add(time.Second), func() {
		say("second ")()
		c.At(start.Add(3*time.Second), say("fourth "))
		c.At(start, say("past "))
		c.At(start.Add(time.Hour), say("never "))
	})
	if _, ok := c.Next(); !ok {
		t.Error("nothing is due")
	}
	c.Advance(0)
	if len(got) > 0 {
		t.Errorf("%q ran before its time", got)
	}
	c.Advance(5 * time.Second)
	want := []string{"first 1s", "second 1s", "past 1s", "third 2s", "fourth 3s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if now := c.Now(); !now.Equal(start.Add(5 * time.Second)) {
		t.Errorf("it is %s", now)
	}
	if next, ok := c.Next(); !ok || !next.Equal(start.Add(time.Hour)) {
		t.Errorf("next is %s, %v", next, ok)
	}
}

// TestManualClockRunsEverythingOnceAndInOrder draws a thousand moments, of which many ask for more.
func TestManualClockRunsEverythingOnceAndInOrder(t *testing.T) {
	const total = 1000
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same thousand every time
	c := cloudtputest.NewManualClock(start)
	var asked, ran int
	var last, now time.Time
	var ask func()
	ask = func() {
		due := c.Now().Add(time.Duration(random.IntN(60)-10) * time.Second)
		asked++
		c.At(due, func() {
			ran++
			last, now = now, c.Now()
			if now.Before(last) || now.Before(due) {
				t.Errorf("due at %s, runs at %s, after what ran at %s", due, now, last)
			}
			for range random.IntN(4) {
				if asked < total {
					ask()
				}
			}
		})
	}
	for asked < total {
		ask()
		before := c.Now()
		c.Advance(7 * time.Second)
		if !c.Now().Equal(before.Add(7 * time.Second)) {
			t.Fatalf("7 s from %s are %s", before, c.Now())
		}
		if next, ok := c.Next(); ok && !next.After(c.Now()) {
			t.Fatalf("at %s something waits that was due at %s", c.Now(), next)
		}
	}
	c.Advance(24 * time.Hour)
	if _, ok := c.Next(); ok || ran != asked {
		t.Errorf("%d of %d ran, and more is due: %v", ran, asked, ok)
	}
}

func TestManualClockTakesOrdersWhileItRuns(t *testing.T) {
	c := cloudtputest.NewManualClock(start)
	var ran atomic.Int32
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for i := range 100 {
				c.At(start.Add(time.Duration(i)*time.Second), func() { ran.Add(1) })
			}
		})
	}
	for range 10 {
		c.Advance(10 * time.Second)
	}
	asking.Wait()
	c.Advance(0)
	if n := ran.Load(); n != 800 {
		t.Errorf("%d of 800 ran", n)
	}
}
