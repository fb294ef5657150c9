package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func everyID(string) bool { return true }

// counts counts the reads and writes of workloads from now on.
func (l *loop) counts(t *testing.T) func(reads, writes int, what string) {
	t.Helper()
	var reads, writes int
	l.tap.Before = func(_ context.Context, c ledgertest.Call) error {
		switch {
		case c.Collection != ledger.Workloads:
		case c.Write:
			writes++
		default:
			reads++
		}
		return nil
	}
	return func(wantReads, wantWrites int, what string) {
		t.Helper()
		if reads != wantReads || writes != wantWrites {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", what, reads, writes, wantReads, wantWrites)
		}
		reads, writes = 0, 0
	}
}

// other is another function's advancer on the same documents.
func (l *loop) other() *ledger.Advancer {
	a := *l.Advancer
	a.Ledger = ledger.New(l.open)
	return &a
}

func holds(t *testing.T, l *loop) {
	tick := evidence.Ticked{Origin: evidence.Origin{Time: l.now}}
	wants := l.counts(t)
	held := &ledger.Held{}
	one := l.Holding(held)
	advance := func(e evidence.Evidence) bool {
		t.Helper()
		_, changed, err := one.AdvanceChanged(t.Context(), workload, e)
		must(t, err)
		return changed
	}
	if w, err := one.Workload(t.Context(), workload); err != nil || w.ID != workload {
		t.Errorf("the workload is %s, %v", w.ID, err)
	}
	wants(1, 0, "a first reading")
	for range 2 {
		if advance(tick) {
			t.Error("a tick at which nothing is due changed something")
		}
	}
	wants(0, 0, "evidence that teaches a held document nothing")
	if !advance(l.preempted()) || !advance(l.lost()) || len(l.sent.events) != 1 {
		t.Errorf("sent is %s, want one request", typesOf(l.sent.events))
	}
	wants(0, 3, "evidence that changes a held document, and clears its outbox")
	if advance(l.preempted()) {
		t.Error("the same again changed something: the held document is not the one that was written")
	}
	wants(0, 0, "the same evidence again")
	if err := one.Flush(t.Context(), workload); err != nil {
		t.Error(err)
	}
	wants(1, 0, "an outbox is looked at in the ledger, because others send too")
	if _, err := l.Advance(t.Context(), workload, tick); err != nil {
		t.Error(err)
	}
	wants(1, 0, "an advancer that holds nothing")
	held.Forget(workload)
	advance(tick)
	wants(1, 0, "a document that was forgotten")
	if n := len(slices.Collect(held.All())); n != 1 {
		t.Errorf("%d documents are held, want 1", n)
	}
}

// holdsOld has another function write a document that is held.
func holdsOld(t *testing.T, l *loop) {
	one := l.Holding(&ledger.Held{})
	if _, err := one.Workload(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	if _, err := l.other().Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatal(err)
	}
	requests := len(l.sent.events)
	wants := l.counts(t)
	w, changed, err := one.AdvanceChanged(t.Context(), workload, l.preempted(), l.lost())
	if err != nil || changed || w.Incident == nil || len(l.sent.events) != requests {
		t.Errorf("changed %v, incident %v, sent %s, %v; want what the other function decided", changed, w.Incident, typesOf(l.sent.events), err)
	}
	wants(1, 1, "a decision on an old document loses its swap, and is made again")
	if w, err := one.Workload(t.Context(), workload); err != nil || w.Incident == nil {
		t.Errorf("held is %+v, %v; want the document of the other function", w, err)
	}
	wants(0, 0, "the document that was read again")
}

// holdsNoFailure has a write fail of which nobody knows whether it took effect.
func holdsNoFailure(t *testing.T, l *loop) {
	one := l.Holding(&ledger.Held{})
	if _, err := one.Workload(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the answer is lost")
	l.tap.After = func(_ context.Context, c ledgertest.Call, err error) error {
		if c.Write && err == nil {
			l.tap.After = nil
			return lost
		}
		return err
	}
	if _, err := one.Advance(t.Context(), workload, l.preempted(), l.lost()); !errors.Is(err, lost) {
		t.Fatalf("the error is %v", err)
	}
	if w, err := one.Workload(t.Context(), workload); err != nil || w.Incident == nil {
		t.Errorf("the document is %+v, %v; want the one that was written", w, err)
	}
}

// holdsFound has documents come from queries.
func holdsFound(t *testing.T, l *loop) {
	r := l.requested(t)
	quiet := quiet()
	quiet.ID = "demo/quiet"
	l.mustSave(t, quiet, ledger.Revision{})
	l.create(t, ledger.Workloads, "demo/newer", incident.Schema+1, "{}")
	l.create(t, ledger.Workloads, "others/newer", incident.Schema+1, "{}")
	wants := l.counts(t)
	ids := func(all []incident.Workload) (ids []string) {
		for _, w := range all {
			ids = append(ids, w.ID)
		}
		return ids
	}
	one := l.Holding(&ledger.Held{})
	due, err := one.Due(t.Context(), everyID)
	if got := ids(due); err != nil || !slices.Equal(got, []string{workload}) {
		t.Errorf("due are %q, %v", got, err)
	}
	wants(1, 0, "what is due")
	if _, changed, err := one.AdvanceChanged(t.Context(), workload, evidence.Intended{Origin: evidence.Origin{Time: l.now}, Request: r, RequestID: "id"}); !changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	wants(0, 1, "a document that a query found is written with its revision")

	all, err := one.Workloads(t.Context(), func(id string) bool { return id != "others/newer" && id != "demo/quiet" })
	if got := ids(all); err == nil || !slices.Equal(got, []string{workload}) {
		t.Errorf("all are %q, %v; want an error for the newer one of ours alone", got, err)
	}
	if all, err = one.Workloads(t.Context(), func(id string) bool { return id == "demo/quiet" }); err != nil || !slices.Equal(ids(all), []string{"demo/quiet"}) {
		t.Errorf("ours are %q, %v", ids(all), err)
	}
	if none, err := one.Workloads(t.Context(), func(string) bool { return false }); none == nil || err != nil {
		t.Errorf("of none there are %v, %v; want an empty list, because they could be read", none, err)
	}
	l.tap.Before = func(context.Context, ledgertest.Call) error { return errors.New("the database is away") }
	if none, err := one.Workloads(t.Context(), everyID); none != nil || err == nil {
		t.Errorf("of a ledger that is away there are %v, %v", none, err)
	}
	l.tap.Before = nil
}
