package clock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// played plays the same day by steps or in a run, and returns what was noted.
func played(t *testing.T, run bool) []string {
	t.Helper()
	d := newDiary(t)
	d.At(begin.Add(time.Second), func() {
		d.Go(func() {
			d.note("one begins")
			_ = d.Sleep(context.Background(), 5*time.Second) //nolint:errcheck // nobody cancels it
			d.note("one wakes")
			_ = d.Sleep(context.Background(), 0) //nolint:errcheck // likewise
			d.note("one ends")
		})
	})
	d.At(begin.Add(2*time.Second), func() {
		d.Go(func() {
			d.note("two begins")
			_ = d.Sleep(context.Background(), time.Hour) //nolint:errcheck // likewise
			d.note("two ends")
		})
	})
	d.At(begin.Add(3*time.Second), func() {
		d.Go(func() {
			defer d.note("three crashes")
			_ = d.Sleep(context.Background(), time.Second) //nolint:errcheck // likewise
			runtime.Goexit()
		})
	})
	d.at(4*time.Second, "at the time of the crash")
	d.at(6*time.Second, "as one wakes")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	d.At(begin.Add(7*time.Second), func() {
		d.Go(func() {
			err := d.Sleep(ended, time.Second)
			d.note(fmt.Sprint("four is told: ", errors.Is(err, context.Canceled)))
		})
	})
	for i := range 20 {
		d.At(begin.Add(time.Duration(10+i)*time.Second), func() {
			d.Go(func() {
				_ = d.Sleep(context.Background(), time.Duration(20-i)*time.Second) //nolint:errcheck // nobody cancels it
				d.note(fmt.Sprint("sleeper ", i))
			})
		})
	}
	steps := 0
	step := func() bool {
		steps++
		return d.Now().Before(begin.Add(2 * time.Hour))
	}
	if run {
		for _, limit := range []time.Time{begin.Add(3 * time.Second), begin.Add(3 * time.Hour)} { // asleep between two runs
			d.Run(func() time.Time { return limit }, step)
		}
	} else {
		for d.Step(begin.Add(3 * time.Hour)) {
			d.Settle()
			if !step() {
				break
			}
		}
	}
	return append(d.lines, fmt.Sprint(steps, " steps"))
}

// TestARunIsTheSameAsItsSteps: handlers that sleep, crash and overlap are handled at the same times and in the same order.
func TestARunIsTheSameAsItsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps, run := played(t, false), played(t, true)
		if d := cmp.Diff(steps, run); d != "" || len(run) != 30 {
			t.Errorf("%d lines; steps and run differ (-steps +run):\n%s", len(run), d)
		}
	})
}

// TestARunEndsWhenItIsTold, in the middle of what is due, and the next one goes on from there.
func TestARunEndsWhenItIsTold(t *testing.T) {
	d := newDiary(t)
	for i := range 6 {
		d.at(time.Duration(i)*time.Second, fmt.Sprint(i))
	}
	limit := func() time.Time { return begin.Add(4 * time.Second) }
	left := 2
	d.Run(limit, func() bool { left--; return left > 0 })
	d.holds(t, "0s 0", "1s 1")
	d.Run(limit, func() bool { return true })
	d.holds(t, "0s 0", "1s 1", "2s 2", "3s 3", "4s 4")
}
