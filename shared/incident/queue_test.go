package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// waitsInQueue reads the order of every slice that a creation of ours has begun, and which has waited since then.
func (n *story) waitsInQueue(change ...func(*evidence.Read)) *story {
	n.Helper()
	x := n.w.Effects[n.effect(events.ActionCreate, n.w.Slices[0].Name)]
	for i := range n.w.Slices {
		s := &n.w.Slices[i]
		e := n.read(s, evidence.Creating, events.Incarnation{})
		e.Zone, e.State, e.Ordered, e.Incident = x.Zone, "WAITING_FOR_RESOURCES", x.Begun, n.w.Incident.ID
		for _, f := range change {
			f(&e)
		}
		n.give(e)
	}
	return n
}

func granted(e *evidence.Read) { e.Granted, e.State = true, "PROVISIONING" }

// untilWithdrawn lets the order wait until its deletion is asked for, for a day at most, and says how long that took.
func (n *story) untilWithdrawn(change ...func(*evidence.Read)) time.Duration {
	n.Helper()
	first := n.now
	for n.w.Incident != nil && !n.isWanted(events.ActionDelete) && n.now.Sub(first) < day {
		n.later(time.Minute).waitsInQueue(change...).give(evidence.Ticked{Origin: n.reading()})
	}
	return n.now.Sub(first).Round(5 * time.Minute)
}

const day = 24 * time.Hour

// ordersAgain has the withdrawn order be gone, and says where it is ordered next.
func (n *story) ordersAgain() (at string) {
	n.Helper()
	n.play("do")
	for i := range n.w.Slices {
		n.later(time.Second).give(n.read(&n.w.Slices[i], evidence.Gone, events.Incarnation{}))
		at += n.places()
	}
	n.goes("do, done create")
	return at
}

// inQueueUnder is a lost queued resource that was ordered again: with these zones, and what else its policy names.
func inQueueUnder(t *testing.T, zones []string, places ...policy.Alternative) *story {
	n := newStory(t, true, "llama-8b").with(inQueue).shaped(places...)
	n.p.Zones, n.p.GiveUpAfter = zones, 0
	return n.goes(created + ", do, done create")
}

// TestAnOrderLeavesItsQueueForThePlaceWhoseTurnHasCome: to wait is to be refused. What was not asked before has a few minutes, and the last place keeps
// its turn in the queue.
func TestAnOrderLeavesItsQueueForThePlaceWhoseTurnHasCome(t *testing.T) {
	t.Parallel()
	later := demand
	later.After = 2 * time.Hour
	small := policy.Alternative{Accelerator: "v5litepod-8", Zones: []string{"us-central1-a"}, After: 5 * time.Hour}
	n := inQueueUnder(t, []string{"us-west4-b"}, later, small)
	for i, want := range []struct {
		waits time.Duration
		next  string
	}{
		{2 * time.Hour, "llama-8b in us-west4-b"},
		{bounds.QueueFor, "llama-8b in us-west4-a on demand"},
		{170 * time.Minute, "llama-8b in us-west4-b on demand"},
		{bounds.QueueFor, "llama-8b in us-central1-a as v5litepod-8"},
	} {
		if i == 2 {
			if text := n.waitsInQueue().w.Shown(n.now).Wait.Text; !strings.Contains(text, "us-central1-a as v5litepod-8 may be asked from 2026-11-12 ") {
				t.Errorf("the wait is told as %q", text)
			}
		}
		if took := n.untilWithdrawn(); took != want.waits {
			t.Fatalf("it waits for %s, want %s:\n%s", took, want.waits, n.tale())
		}
		if got := n.ordersAgain(); got != want.next {
			t.Fatalf("it is ordered %q, want %q:\n%s", got, want.next, n.tale())
		}
	}
	if took := n.untilWithdrawn(); took != day || n.w.Incident == nil {
		t.Errorf("the last place is left after %s:\n%s", took, n.tale())
	}
	if !strings.Contains(n.tale(), "the turn of us-west4-a on demand has come: the order in us-west4-a has waited since ") {
		t.Errorf("the story does not say why:\n%s", n.tale())
	}
}

// TestWhatWasGrantedStays: it is not withdrawn, whether that is known before the deletion is asked for or shows right before its call. What waits again
// leaves its queue.
func TestWhatWasGrantedStays(t *testing.T) {
	t.Parallel()
	later := demand
	later.After = 2 * time.Hour
	if n := inQueueUnder(t, nil, later); n.untilWithdrawn(granted) != day {
		t.Errorf("it is withdrawn:\n%s", n.tale())
	}
	n := inQueueUnder(t, nil, later)
	n.untilWithdrawn()
	if n.later(time.Second).waitsInQueue(granted); n.isWanted(events.ActionDelete) || n.stands(nil) != "creating" {
		t.Errorf("it is withdrawn right after it was granted:\n%s", n.tale())
	}
	if n.later(time.Second).waitsInQueue(); !n.isWanted(events.ActionDelete) {
		t.Errorf("it waits again:\n%s", n.tale())
	}
	n.goes("intend delete, not_in_state delete").later(time.Second).waitsInQueue(granted)
	if n.passes(time.Hour); n.isWanted(events.ActionDelete) {
		t.Errorf("nobody can delete what is being made:\n%s", n.tale())
	}
	if n.goes("read ours, do, started, 1m, steps"); n.ended().Outcome != view.Resumed || !n.w.Slices[0].AsOrdered() {
		t.Errorf("it has come:\n%s", n.tale())
	}
}

// TestAnOrderThatCannotBeWithdrawnWaitsOn: it may still bring the slice, and people are told once why it stays.
func TestAnOrderThatCannotBeWithdrawnWaitsOn(t *testing.T) {
	t.Parallel()
	later := demand
	later.After = 2 * time.Hour
	for _, class := range []string{"invalid", "permission"} {
		n := inQueueUnder(t, nil, later)
		n.untilWithdrawn()
		if n.goes(class + " delete"); n.stands(nil) != "creating" || n.isWanted(events.ActionDelete) || n.untilWithdrawn() != day {
			t.Errorf("%s: it stands at %q:\n%s", class, n.stands(nil), n.tale())
		}
		if told := strings.Count(n.tale(), "the call failed | "+class); told != 1 {
			t.Errorf("%s: it is told %d times:\n%s", class, told, n.tale())
		}
		if n.goes("read ours, do, started, 1m, steps"); n.ended().Outcome != view.Resumed {
			t.Errorf("%s: it has come:\n%s", class, n.tale())
		}
	}
}

// TestAnOrderThatHasBroughtASliceStays: its other slice was last read while all of it waited.
func TestAnOrderThatHasBroughtASliceStays(t *testing.T) {
	t.Parallel()
	later := demand
	later.After = 2 * time.Hour
	n := queued(t, true).shaped(later).goes("a read lost, b read lost, do, a read gone, b read gone, do, done create").waitsInQueue()
	n.later(119 * time.Minute).waitsInQueue().goes("a read ours made")
	if n.passes(10 * time.Minute); n.isWanted(events.ActionDelete) {
		t.Errorf("it is withdrawn:\n%s", n.tale())
	}
}

// TestWhatKeepsItsTurnInTheQueue: without another place that has a time, an order waits for as long as it takes.
func TestWhatKeepsItsTurnInTheQueue(t *testing.T) {
	t.Parallel()
	for name, places := range map[string][]policy.Alternative{"zones alone": nil, "a place without a time": {demand}} {
		if n := inQueueUnder(t, []string{"us-west4-b"}, places...); n.untilWithdrawn() != day {
			t.Errorf("%s: it is withdrawn:\n%s", name, n.tale())
		}
	}
}

// TestAnOrderOfSeveralSlicesIsWithdrawnAsAWhole, and ordered again as one.
func TestAnOrderOfSeveralSlicesIsWithdrawnAsAWhole(t *testing.T) {
	t.Parallel()
	later := demand
	later.After = 2 * time.Hour
	n := queued(t, true).shaped(later).goes("a read lost, b read lost, do, a read gone, b read gone, do, done create")
	if took := n.untilWithdrawn(); took != 2*time.Hour {
		t.Fatalf("it waits for %s:\n%s", took, n.tale())
	}
	if got := n.ordersAgain(); got != "a in us-west4-b" {
		t.Errorf("it is ordered %q:\n%s", got, n.tale())
	}
}

// TestAQueueIsLeftUnderTheSwitchOfItsReplacement: an order on demand has the time of all its places, too.
func TestAQueueIsLeftUnderTheSwitchOfItsReplacement(t *testing.T) {
	t.Parallel()
	other := policy.Alternative{Capacity: events.Reserved, After: 60 * time.Hour}
	n := newStory(t, false, "llama-8b").with(inQueue, func(w *incident.Workload) { w.Slices[0].Capacity = events.FlexStart }).shaped(other)
	n.p.Switches.RecreateNonSpot, n.p.Zones, n.p.GiveUpAfter = policy.Yes, nil, 0
	n.goes("read lost, later, do, read gone, do, done create")
	first := n.now
	for n.w.Incident != nil && !n.isWanted(events.ActionDelete) && n.now.Sub(first) < 4*day {
		n.later(10 * time.Minute).waitsInQueue().give(evidence.Ticked{Origin: n.reading()})
	}
	if took := n.now.Sub(first).Round(time.Hour); took != 60*time.Hour || n.w.Incident == nil {
		t.Errorf("it waits for %s:\n%s", took, n.tale())
	}
}
