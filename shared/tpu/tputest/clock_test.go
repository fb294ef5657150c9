package tputest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/tpu/tputest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestManualClock(t *testing.T) {
	c := tputest.NewManualClock(start)
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
