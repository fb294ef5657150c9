//go:build unix

package crew

import (
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/agree"
)

// TestThePortIsChosenWhenTheAttemptIsToBegin: nothing holds it, and a back-off, or the wait for other slices, may take hours.
func TestThePortIsChosenWhenTheAttemptIsToBegin(t *testing.T) {
	c := crewOf(t, 1)
	for _, stage := range []agree.Stage{agree.Waiting, agree.Pausing, agree.Asking} {
		c.leader.Stage = stage
		if c.lead(time.Now()); c.meeting != "" {
			t.Errorf("%s: it has chosen %s", stage, c.meeting)
		}
	}
	c = crewOf(t, 2)
	for _, want := range []struct {
		want   agree.Want
		chosen bool
	}{
		{agree.Want{Look: 1}, false}, {agree.Want{Look: 1, Ended: &agree.Cause{Attempt: 1}}, false}, {agree.Want{Look: 2, Ready: 2}, true},
	} {
		c.ask(want.want)
		(<-c.do)()
		if (c.meeting != "") != want.chosen {
			t.Errorf("%+v: it has chosen %q", want.want, c.meeting)
		}
	}
	// What was chosen for an attempt that did not begin is not used for a later one.
	c.leader.Stage = agree.Waiting
	if c.lead(time.Now()); c.meeting != "" {
		t.Errorf("it keeps %s", c.meeting)
	}
}

// TestNoSliceBeginsBeforeSlice0SaysWhereTheHostsMeet: a life that claims its place is seen before that, and a lease that it takes over
// names the attempt.
func TestNoSliceBeginsBeforeSlice0SaysWhereTheHostsMeet(t *testing.T) {
	first, second := crewOf(t, 2), crewOf(t, 2)
	second.Machine.Slice, second.Machine.Node, second.Machine.Host = 1, "llama-1", "t1v-n-cccccccc-w-0"
	second.board = first.board
	first.claim(6)
	(<-first.do)()
	see := func(ready int, server string) {
		t.Helper()
		second.ask(agree.Want{Look: 7, Ready: 7})
		(<-second.do)()
		if v := second.out.view; v.Ready != ready || v.Server != server {
			t.Errorf("%d are ready and meet at %q; want %d, %q", v.Ready, v.Server, ready, server)
		}
	}
	see(1, "")
	if first.meeting != "" {
		t.Errorf("a claim has chosen %s", first.meeting)
	}
	first.ask(agree.Want{Look: 7, Ready: 7})
	(<-first.do)()
	see(2, first.meeting)
}
