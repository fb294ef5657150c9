package incident_test

import (
	"errors"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// TestNothingIsCreatedForAnIncidentThatOnlyCleansUp: what was begun may come, and nobody begins it anew.
func TestNothingIsCreatedForAnIncidentThatOnlyCleansUp(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "preempted, read lost, do, read gone, intend create")
	r, begun := n.request(events.ActionCreate, "llama-8b"), n.w.Effects[n.effect(events.ActionCreate, "llama-8b")].Begun
	n.history("owner creates", "clearing")
	n.now = n.now.Add(bounds.CallFor)
	if _, err := n.w.Fence(r.Pointer(), n.now); err == nil {
		t.Error("the fence lets a creation through")
	}
	if n.intends(r); !n.w.Effects[n.effect(events.ActionCreate, "llama-8b")].Begun.Equal(begun) {
		t.Errorf("it was begun anew:\n%s", n.tale())
	}
	if n.fails(r, reason.Stockout); n.stands(nil) != "released" {
		t.Errorf("the answer to what was begun ends nothing:\n%s", n.tale())
	}
}

// TestARequestIsMadeWholeFromWhatIsKnown: its effect says neither how a save is asked for nor which lives go together, unless it was decided on other
// lives than those of now. A fence refuses a pointer to a slice that only goes with another, and one to slices that are not there.
func TestARequestIsMadeWholeFromWhatIsKnown(t *testing.T) {
	t.Parallel()
	old, life := events.Incarnation{Zone: "us-west4-a", ID: "7711"}, events.Incarnation{Zone: "us-west4-a", ID: "7712"}
	w := incident.Workload{
		ID: "demo/m", Epoch: 3, Incident: &incident.Incident{ID: "m-1"}, Slices: []incident.Slot{{Name: "m-0"}, {Name: "m-1", Life: incident.Life{Incarnation: life}}},
	}
	if r, ok := w.Request(incident.Effect{Want: incident.Want{Action: events.ActionSave}}).(events.CheckpointRequested); !ok || r.Mode != events.SaveNatural {
		t.Errorf("a save is asked for by mode %q, want the one that kills no process", r.Mode)
	}
	x := incident.Effect{Want: incident.Want{Action: events.ActionDelete, Slice: "m-0", With: []string{"m-1"}}, Epoch: 3, Sent: start}
	for _, want := range []events.Incarnation{life, old} {
		if r, ok := w.Request(x).(events.RecreateRequested); !ok || len(r.With) != 1 || r.With[0].Incarnation != want {
			t.Errorf("what goes with it is %+v, want %v", r.With, want)
		}
		x.Lives = []events.Incarnation{old}
	}
	w.Effects = []incident.Effect{x}
	refused := func(slice string) reason.Code {
		var why *incident.RefusedError
		if _, err := w.Fence(events.Pointer{Workload: w.ID, Incident: "m-1", Epoch: 3, Action: events.ActionDelete, Slice: slice}, start); errors.As(err, &why) {
			return why.Code
		}
		return ""
	}
	if a, b := refused("m-0"), refused("m-1"); a != "" || b != reason.CodeNotWanted {
		t.Errorf("a pointer to it is refused by %q, and one to what goes with it by %q", a, b)
	}
	w.Slices = w.Slices[:1]
	if got := refused("m-0"); got != reason.CodeNoSlice {
		t.Errorf("without one of its slices it is refused by %q", got)
	}
}

// TestNoDeadlineEndsACallThatMayStillBeMade: whoever has begun it would delete what no incident asks for any more.
func TestNoDeadlineEndsACallThatMayStillBeMade(t *testing.T) {
	t.Parallel()
	for before, ends := range map[time.Duration]bool{time.Second: false, bounds.AnswerFor: true} {
		n := at(t, "everything", true, "preempted, read lost")
		deadline := n.w.Incident.Status.Until
		n.now = deadline.Add(-before)
		n.begins(events.ActionDelete, "llama-8b")
		begun := n.now
		n.now = deadline
		if n.give(evidence.Ticked{Origin: n.reading()}).opens(!ends); ends {
			continue
		}
		if until := n.w.Incident.Status.Until; !until.Equal(begun.Add(bounds.AnswerFor)) {
			t.Errorf("it waits until %v, want %v", until, begun.Add(bounds.AnswerFor))
		}
		n.passes(begun.Add(bounds.AnswerFor).Sub(n.now))
		n.opens(false)
	}
}
