package orders_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestAnOrderIsCarriedOutOnce however often it comes, and whatever came between.
func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	b := fleettest.New(t)
	w := b.Slice(cloudtputest.NodeConfig{Name: "llama", Spot: true})
	order := func(verb evidence.Verb, id string) orders.Order {
		return orders.Order{Word: evidence.Word{By: "ada@example.com", Why: "a look", ID: id}, Verb: verb, Workload: w.ID, At: b.Clock.Now()}
	}
	pause, resume := order(evidence.VerbPause, "1"), order(evidence.VerbResume, "2")
	for _, o := range []orders.Order{pause, pause, resume, pause, resume} {
		if _, err := orders.Apply(t.Context(), b.Fleet.Advancer, o); err != nil && !errors.Is(err, orders.ErrTaken) {
			t.Fatal(err)
		}
	}
	if w := b.Workload(w.ID); len(w.Orders) != 2 || w.Pause != nil {
		t.Errorf("orders %+v, pause %+v", w.Orders, w.Pause)
	}
}

// TestAnOlderOrderDoesNotUndoALaterOne: messages arrive in any order, and the last word of people counts.
func TestAnOlderOrderDoesNotUndoALaterOne(t *testing.T) {
	t.Parallel()
	b := fleettest.New(t)
	w := b.Slice(cloudtputest.NodeConfig{Name: "llama", Spot: true})
	order := func(verb evidence.Verb, by, id string) orders.Order {
		b.Clock.Advance(time.Second)
		return orders.Order{Word: evidence.Word{By: by, Why: "a look", ID: id}, Verb: verb, Workload: w.ID, At: b.Clock.Now()}
	}
	refuses := func(o orders.Order, why string) {
		t.Helper()
		var refused orders.RefusedError
		if _, err := orders.Apply(t.Context(), b.Fleet.Advancer, o); why == "" && err != nil || why != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Error(), why)) {
			t.Fatalf("%s: %v", o.ID, err)
		}
	}
	refuses(order(evidence.VerbPause, "ada", "1"), "")
	resume, pause := order(evidence.VerbResume, "ada", "2"), order(evidence.VerbPause, "bob", "3")
	refuses(pause, "")
	refuses(resume, "bob has given the order pause since")
	again := order(evidence.VerbPause, "bob", "4")
	refuses(again, "")
	refuses(order(evidence.VerbResume, "bob", "5"), "")
	refuses(again, "bob has given the order resume since")
	if w := b.Workload(w.ID); w.Pause != nil {
		t.Errorf("pause %+v", w.Pause)
	}
}

// TestAnOrderThatComesTooLateIsRefused, and the workload keeps that, once.
func TestAnOrderThatComesTooLateIsRefused(t *testing.T) {
	t.Parallel()
	b := fleettest.New(t)
	w := b.Slice(cloudtputest.NodeConfig{Name: "llama", Spot: true})
	o := orders.Order{Word: evidence.Word{By: "ada@example.com", Why: "a look", ID: "1"}, Verb: evidence.VerbPause, Workload: w.ID, At: b.Clock.Now()}
	b.Clock.Advance(orders.LateAfter + time.Second)
	var refused orders.RefusedError
	if _, err := orders.Apply(t.Context(), b.Fleet.Advancer, o); !errors.As(err, &refused) || !strings.Contains(refused.Error(), "given 10 m 1 s ago") {
		t.Fatalf("%v", err)
	}
	for range 2 {
		b.Must(orders.Note(t.Context(), b.Fleet.Advancer, o, refused))
	}
	if w := b.Workload(w.ID); w.Pause != nil || len(w.Orders) != 1 || w.Orders[0].Verb != evidence.VerbRefused || !strings.HasPrefix(w.Orders[0].Text, "pause: it was given") {
		t.Errorf("orders %+v, pause %+v", w.Orders, w.Pause)
	}
}

// TestAMessageIsTheOrder that was given.
func TestAMessageIsTheOrder(t *testing.T) {
	t.Parallel()
	o := orders.Order{
		Word: evidence.Word{By: "ada@example.com", Why: "a look", ID: "1"}, Verb: evidence.VerbApprove, Workload: "demo/llama", Incident: "llama-1", Action: events.ActionCreate,
		At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
	if back := orders.FromMessage(o.Message()); back != o || o.Message().Validate() != nil {
		t.Errorf("%+v", back)
	}
}
