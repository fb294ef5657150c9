package demo_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/orders"
)

// TestAnOrderOfTheConsoleCountsOnce in the whole pipeline, though every message comes twice.
func TestAnOrderOfTheConsoleCountsOnce(t *testing.T) {
	d := found(t)
	d.Broker.Duplicates = true
	const id = "demo/llama-8b"
	give := func(verb evidence.Verb, order string) {
		t.Helper()
		o := orders.Order{Word: evidence.Word{By: "ada@example.com", Why: "a look", ID: order}, Verb: verb, Workload: id, At: d.Now()}
		e, err := events.Wrap(o.Message(), "//pitstop/functions/console", "", "", d.Now())
		must(t, err)
		must(t, d.Publisher().Publish(t.Context(), e))
		d.Forward(time.Minute)
	}
	give(evidence.VerbPause, "1")
	w, _, err := d.Ledger.Workload(t.Context(), id)
	must(t, err)
	if shown := w.Shown(d.Now()); shown.Pause == nil || shown.Pause.By != "ada@example.com" || len(shown.Orders) != 1 {
		t.Errorf("pause %+v, orders %+v", shown.Pause, shown.Orders)
	}
	give(evidence.VerbResume, "2")
	w, _, err = d.Ledger.Workload(t.Context(), id)
	must(t, err)
	if shown := w.Shown(d.Now()); shown.Pause != nil || len(shown.Orders) != 2 {
		t.Errorf("pause %+v, orders %+v", shown.Pause, shown.Orders)
	}
}
