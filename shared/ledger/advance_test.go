package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestAdvancerInMemory and TestAdvancerOnFirestore run the loop around the decision on both stores.
func TestAdvancerInMemory(t *testing.T) { advancing(t, memory) }

func TestAdvancerOnFirestore(t *testing.T) { advancing(t, firestore) }

func advancing(t *testing.T, s store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, l *loop)
	}{
		{"what follows from evidence is stored and sent, and the outbox is empty", sendsAndClears},
		{"evidence that teaches nothing is not written", nothingNew},
		{"an event reads a document once", holds},
		{"a decision on a held document that is old is made again", holdsOld},
		{"a document is not held after a write that failed", holdsNoFailure},
		{"documents that a query found are held", holdsFound},
		{"another decision takes the place of the usual one", decidesOtherwise},
		{"a lost swap advances again on what the winner wrote", lostSwap},
		{"swaps that are lost again and again leave the message for redelivery", lostSwaps},
		{"of many that say the same, one is stored and one request sent", sameAtOnce},
		{"a write whose answer was lost sends the same request at the redelivery", lostAnswer},
		{"what could not be sent stays due and is sent later under the same ID", leftInOutbox},
		{"an outbox that could not be cleared is sent again under the same ID", notCleared},
		{"a workload that is not there is introduced once, and advanced never", introduces},
		{"an incident that ended goes to the archive and not to a topic", archives},
		{"what was left to people costs until the training is back", costsOn},
		{"updates for people are sent only where notify is deployed, after all requests", tells},
		{"of what people were not told yet the newest stays", tellsTheNewest},
		{"a request that is current begins with its intent saved", begins},
		{"a request that is not current is refused and writes nothing", refusesStale},
		{"a pause holds, with the reason stored", holdsOnPause},
		{"a pause asks for no other look at what stands still", looksNotWhilePaused},
		{"an unreadable policy holds", holdsOnPolicy},
		{"a policy that was tightened ends the request", forbids},
		{"a label that was changed before the intent was saved holds", holdsOnLabel},
		{"the brake holds until the next hour", brakes},
		{"a slot that nothing was begun with comes back", slotComesBack},
		{"an answer is stored though the caller has left", answersAnyway},
		{"an unreadable ledger is no reason to go on", unreadable},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newLoop(t, s)) })
	}
}

const workload = "demo/llama-8b"

// loop is an advancer on a ledger, with everything around it held still.
type loop struct {
	*suite
	*ledger.Advancer
	policies policies
	sent     *sent
	now      time.Time
	slept    []time.Duration
	limits   ledger.Limits
}

type policies struct{ policy.Policy }

func (p *policies) For(context.Context, string) policy.Policy { return p.Policy }

// sent records published events, and fails on demand.
type sent struct {
	mu     sync.Mutex
	events []events.Envelope
	err    error
}

func (s *sent) Publish(_ context.Context, e events.Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.events = append(s.events, e)
	return nil
}

func newLoop(t *testing.T, s store) *loop {
	t.Helper()
	l := &loop{
		suite: newSuite(t, s), sent: &sent{}, now: start, limits: ledger.DefaultLimits,
		policies: policies{policy.Policy{Name: "night", Switches: policy.Everything()}},
	}
	l.Advancer = &ledger.Advancer{
		Ledger: l.suite.Ledger, Policies: &l.policies, Publisher: l.sent, Now: func() time.Time { return l.now }, Source: "//pitstop/functions/test",
		Cause: func(context.Context) string { return "m1" }, Log: slog.New(slog.DiscardHandler),
		Sleep: func(_ context.Context, d time.Duration) error { l.slept = append(l.slept, d); return nil },
	}
	l.mustSave(t, quiet(), ledger.Revision{})
	return l
}

// preempted is the first evidence of a loss; lost is the reading that proves it.
func (l *loop) preempted() evidence.Evidence {
	return evidence.Interrupted{
		Origin: evidence.Origin{ID: "3f2a9c", Time: l.now, Rank: events.RankAudit}, Slice: "llama-8b", Cause: events.CausePreemption, Text: "worker 2 was preempted",
	}
}

func (l *loop) lost() evidence.Evidence {
	w := quiet()
	return evidence.Read{
		Origin: evidence.Origin{Time: l.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: evidence.Lost, State: "PREEMPTED",
		Incarnation: w.Slices[0].Incarnation,
		Facts: evidence.Facts{
			Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "abc", Label: w.Label,
		},
		Directory: w.Directory,
	}
}

// requested loses the slice and returns the request to delete it.
func (l *loop) requested(t *testing.T) events.Request {
	t.Helper()
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatal(err)
	}
	if len(l.sent.events) != 1 || l.sent.events[0].Type != events.TypeRecreateRequested {
		t.Fatalf("sent: %v, want one request to recreate", typesOf(l.sent.events))
	}
	r, err := events.DecodeRecreateRequested(l.sent.events[0].Data)
	must(t, err)
	return r.Request
}

func typesOf(sent []events.Envelope) string {
	var types []string
	for _, e := range sent {
		types = append(types, e.Type+" "+e.ID)
	}
	return strings.Join(types, ", ")
}

func (l *loop) wantOutbox(t *testing.T, want int) incident.Workload {
	t.Helper()
	w, _ := l.mustLoad(t, workload)
	if len(w.Outbox) != want {
		t.Errorf("the outbox holds %d events, want %d", len(w.Outbox), want)
	}
	return w
}

func wantIgnored(t *testing.T, err error, want string) {
	t.Helper()
	if !fault.IsIgnored(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want one to ignore that says %q", err, want)
	}
}

func sendsAndClears(t *testing.T, l *loop) {
	r := l.requested(t)
	w := l.wantOutbox(t, 0)
	if w.Incident == nil || w.Incident.ID != r.Incident || r.Epoch != w.Epoch || r.Action != events.ActionDelete {
		t.Errorf("the request %+v does not fit the incident %+v in epoch %d", r, w.Incident, w.Epoch)
	}
	e := l.sent.events[0]
	if e.Source != "//pitstop/functions/test" || e.Cause != "m1" || e.Correlation != r.Incident || e.Subject != workload || !e.Time.Equal(start) {
		t.Errorf("the envelope %+v does not say where the event comes from", e)
	}
}

func nothingNew(t *testing.T, l *loop) {
	writes := l.tap.Writes()
	tick := evidence.Ticked{Origin: evidence.Origin{Time: l.now}}
	if _, changed, err := l.AdvanceChanged(t.Context(), workload, tick); changed || err != nil {
		t.Errorf("a tick at which nothing is due changed something: %v, %v", changed, err)
	}
	l.wantWrites(t, &writes, 0, "a tick at which nothing is due")
	if _, changed, err := l.AdvanceChanged(t.Context(), workload, l.preempted()); !changed || err != nil {
		t.Errorf("a preemption changed something: %v, %v; want true", changed, err)
	}
	writes = l.tap.Writes()
	if _, changed, err := l.AdvanceChanged(t.Context(), workload, l.preempted()); changed || err != nil {
		t.Errorf("the same preemption again changed something: %v, %v", changed, err)
	}
	l.wantWrites(t, &writes, 0, "the same evidence again")
}

func decidesOtherwise(t *testing.T, l *loop) {
	l.Decide = func(_ policy.Policy, w incident.Workload, _ evidence.Evidence, _ time.Time) (incident.Workload, []events.Event, bool) {
		w.Directory = "elsewhere"
		return w, nil, true
	}
	w, changed, err := l.AdvanceChanged(t.Context(), workload, l.preempted())
	if err != nil || !changed || w.Directory != "elsewhere" || w.Incident != nil {
		t.Errorf("the decision was not taken as it was set: changed %v, directory %s, incident %v, %v", changed, w.Directory, w.Incident, err)
	}
}

// shown is what is shown of the workload now.
func (l *loop) shown(t *testing.T) view.Workload {
	t.Helper()
	w, _ := l.mustLoad(t, workload)
	return w.Shown(l.now)
}

// rival writes the document before the next n writes of the loop.
func (l *loop) rival(t *testing.T, n int) {
	t.Helper()
	l.between(t, n, func(w *incident.Workload) { w.Orders = append(w.Orders, view.Spoken{}) })
}

// between has another writer come before each of the next n writes of the workload.
func (l *loop) between(t *testing.T, n int, change func(*incident.Workload)) {
	t.Helper()
	rival := ledger.New(l.open) // it shares the collections of the test, which closes them
	l.tap.Before = func(_ context.Context, c ledgertest.Call) error {
		if c.Write && c.Collection == ledger.Workloads && n > 0 {
			n--
			w, rev, err := rival.Workload(t.Context(), workload)
			if err != nil {
				return err
			}
			change(&w)
			_, err = rival.Save(t.Context(), w, rev)
			return err
		}
		return nil
	}
}

func lostSwap(t *testing.T, l *loop) {
	l.rival(t, 2)
	l.requested(t)
	w := l.wantOutbox(t, 0)
	if len(w.Orders) != 2 || w.Incident == nil {
		t.Errorf("orders %v and incident %v, want what both sides wrote", w.Orders, w.Incident)
	}
	if len(l.slept) != 2 {
		t.Errorf("slept %v, want a while before each of 2 new tries", l.slept)
	}
}

func lostSwaps(t *testing.T, l *loop) {
	l.rival(t, 100)
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); !errors.Is(err, ledger.ErrConflict) || fault.IsIgnored(err) || fault.IsPermanent(err) {
		t.Errorf("the error is %v, want a conflict that leaves the message for redelivery", err)
	}
	if len(l.slept) != 4 || len(l.sent.events) != 0 {
		t.Errorf("slept %v and sent %s, want 5 tries and nothing sent", l.slept, typesOf(l.sent.events))
	}
	for i, d := range l.slept {
		if most := 10 * time.Millisecond << (i + 1); d < 10*time.Millisecond || d > most {
			t.Errorf("slept %v before try %d, want 10 ms to %v", d, i+2, most)
		}
	}
}

func sameAtOnce(t *testing.T, l *loop) {
	const n = 64
	// The loop waits in vain as often as it takes: what counts is how often the same is stored.
	l.Sleep = func(context.Context, time.Duration) error { return nil }
	changed := make([]bool, n)
	together(n, func(i int) {
		for {
			_, did, err := l.AdvanceChanged(t.Context(), workload, l.preempted(), l.lost())
			if errors.Is(err, ledger.ErrConflict) {
				continue // redelivered
			}
			if err != nil {
				t.Error(err)
			}
			changed[i] = did
			return
		}
	})
	if got := count(changed); got != 1 {
		t.Errorf("%d of %d stored the same evidence, want 1", got, n)
	}
	if len(l.sent.events) != 1 {
		t.Errorf("sent %s, want one request", typesOf(l.sent.events))
	}
}

func lostAnswer(t *testing.T, l *loop) {
	errLost := errors.New("the connection broke")
	l.tap.After = func(_ context.Context, c ledgertest.Call, err error) error {
		if c.Write && err == nil {
			return errLost
		}
		return err
	}
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); !errors.Is(err, errLost) {
		t.Fatalf("the error is %v, want that the write may have failed", err)
	}
	l.tap.After = nil
	stored := l.wantOutbox(t, 1)
	// The redelivery learns nothing new; patrol empties the outbox.
	if _, changed, err := l.AdvanceChanged(t.Context(), workload, l.preempted(), l.lost()); changed || err != nil {
		t.Errorf("the redelivery changed something: %v, %v", changed, err)
	}
	must(t, l.Flush(t.Context(), workload))
	l.wantOutbox(t, 0)
	if len(l.sent.events) != 1 || l.sent.events[0].ID != stored.Outbox[0].ID {
		t.Errorf("sent %s, want %s once", typesOf(l.sent.events), stored.Outbox[0].ID)
	}
}

func leftInOutbox(t *testing.T, l *loop) {
	l.sent.err = errors.New("Pub/Sub is not to be reached")
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatalf("%v; what follows is stored, so the message may be acknowledged", err)
	}
	w := l.wantOutbox(t, 1)
	if due, err := l.due(t, l.now); err != nil || !slices.Contains(due, workload) {
		t.Errorf("due are %v, %v; want the workload whose outbox is full", due, err)
	}
	must(t, l.Flush(t.Context(), workload))
	l.wantOutbox(t, 1)
	l.sent.err = nil
	for range 2 {
		must(t, l.Flush(t.Context(), workload))
	}
	l.wantOutbox(t, 0)
	if len(l.sent.events) != 1 || l.sent.events[0].ID != w.Outbox[0].ID {
		t.Errorf("sent %s, want %s once", typesOf(l.sent.events), w.Outbox[0].ID)
	}
}

func notCleared(t *testing.T, l *loop) {
	writes := 0
	l.tap.Before = func(_ context.Context, c ledgertest.Call) error {
		if c.Write && c.Collection == ledger.Workloads {
			if writes++; writes == 2 {
				return errors.New("Firestore is not to be reached")
			}
		}
		return nil
	}
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatal(err)
	}
	l.wantOutbox(t, 1)
	must(t, l.Flush(t.Context(), workload))
	l.wantOutbox(t, 0)
	if s := l.sent.events; len(s) != 2 || s[0].ID != s[1].ID || string(s[0].Data) != string(s[1].Data) {
		t.Errorf("sent %s, want the same event twice", typesOf(s))
	}
}

func introduces(t *testing.T, l *loop) {
	if _, err := l.Advance(t.Context(), "demo/unknown", l.preempted()); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the error is %v, want that it is not there", err)
	}
	fresh := incident.New("demo", "fresh", "tpu")
	var saved int
	l.Saved = func(context.Context, ledger.Step) { saved++ }
	read := evidence.Read{
		Origin: evidence.Origin{Time: l.now, Rank: events.RankReading}, Slice: "fresh", Zone: "us-west4-a", Condition: evidence.Ready, State: "READY",
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "1", Created: l.now.Add(-time.Hour)},
		Facts:       evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "abc"},
	}
	for range 2 {
		w, err := l.Introduce(t.Context(), fresh, read)
		if err != nil || w.ID != "demo/fresh" || w.Slice("fresh") == nil {
			t.Fatalf("introduced %+v, %v; want the workload with its slice", w, err)
		}
	}
	if saved != 1 {
		t.Errorf("%d writes took effect, want 1: the second reading teaches nothing", saved)
	}
}

// costsOn leaves a loss to people. The record in the archive says what it costs until a crew does steps again, or its owner has made another slice.
func costsOn(t *testing.T, l *loop) {
	l.policies.Switches = policy.Switches{RequestCheckpoint: policy.Yes}
	advance := func(all ...evidence.Evidence) incident.Workload {
		t.Helper()
		if _, err := l.Advance(t.Context(), workload, all...); err != nil {
			t.Fatal(err)
		}
		w, _ := l.mustLoad(t, workload)
		return w
	}
	w := advance(l.preempted(), l.lost())
	if w.Closed == nil || w.Closed.Ending.Outcome != view.Escalated {
		t.Fatalf("a loss whose replacement is forbidden is not left to people: %+v", w.Incident)
	}
	id, lost := w.Closed.ID, l.now
	cost := func() events.Cost {
		t.Helper()
		in, err := l.Closed(t.Context(), workload, id)
		if err != nil {
			t.Fatal(err)
		}
		return w.ShownIncident(in, l.now).Cost.Cost
	}
	l.now = lost.Add(3 * time.Hour)
	if c := cost(); !c.AtLeast || c.Away() < 3*time.Hour {
		t.Errorf("after three hours it costs %+v", c)
	}
	usable, ok := l.lost().(evidence.Read)
	if !ok {
		t.Fatal("a loss is shown by another kind of evidence")
	}
	usable.Condition, usable.State = evidence.Ready, "READY"
	w = advance(usable)
	step := evidence.Reported{
		Origin: evidence.Origin{Time: l.now.Add(10 * time.Minute), Rank: events.RankUser}, Slice: "llama-8b",
		Report: events.CrewReport{
			Report: events.ReportProgress, Attempt: 2, Step: 48190, FirstStep: 48001, FirstStepAt: l.now.Add(5 * time.Minute), Hostname: "t1v-n-3f2a9c01-w-0",
		},
	}
	back := l.now.Add(5 * time.Minute)
	l.now = l.now.Add(10 * time.Minute)
	w = advance(step)
	l.now = l.now.Add(5 * time.Hour)
	if c := cost(); c.AtLeast || c.Away() < back.Sub(lost) || c.Away() > back.Sub(lost)+5*time.Minute {
		t.Errorf("hours after the training is back it costs %+v, want %s", c, back.Sub(lost))
	}
}

func archives(t *testing.T, l *loop) {
	l.policies.Switches = policy.Switches{} // what would have been done is all that happens
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatal(err)
	}
	for range 48 * 60 { // a watched incident ends by the owner's progress or by its deadline
		if w, _ := l.mustLoad(t, workload); w.Incident == nil {
			break
		}
		l.now = l.now.Add(time.Minute)
		if _, err := l.Advance(t.Context(), workload, evidence.Ticked{Origin: evidence.Origin{Time: l.now}}); err != nil {
			t.Fatal(err)
		}
	}
	w := l.wantOutbox(t, 0)
	if w.Incident != nil || w.Closed == nil {
		t.Fatalf("the incident has not ended within two days: %+v", w.Incident)
	}
	in, err := l.Closed(t.Context(), workload, w.Closed.ID)
	if v := w.ShownIncident(in, l.now); err != nil || v.Outcome != view.Observed || len(v.Timeline) == 0 {
		t.Errorf("archived: %v %q with %d lines, want the whole incident, observed", err, v.Outcome, len(v.Timeline))
	}
	if len(l.sent.events) != 0 {
		t.Errorf("sent %s, want nothing on a topic", typesOf(l.sent.events))
	}
}

func begins(t *testing.T, l *loop) {
	r := l.requested(t)
	w, id, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	if err != nil || id != ledger.RequestID(r, "us-west4-a") {
		t.Fatalf("%v, %v; want the request's own ID", id, err)
	}
	stored, _ := l.mustLoad(t, workload)
	for _, w := range []incident.Workload{w, stored} {
		if effect := w.Effects[0]; effect.RequestID != id || !effect.Begun.Equal(l.now) {
			t.Errorf("the effect is %+v, want the intent saved", effect)
		}
	}
	if project, zone, err := l.Slots(t.Context(), "demo", "us-west4-a", l.now); err != nil || project != 1 || zone != 1 {
		t.Errorf("%d and %d slots are taken, %v; want 1 and 1", project, zone, err)
	}
	// A parallel delivery leaves the call to it; the redelivery after a crash makes the same call, on the same slot.
	if _, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits); !fault.IsBusy(err) {
		t.Errorf("a delivery beside the first: %v, want it left for later", err)
	}
	l.now = l.now.Add(bounds.CallFor)
	if _, again, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits); err != nil || again != id {
		t.Errorf("the redelivery begins %v, %v; want %v again", again, err, id)
	}
	if project, _, err := l.Slots(t.Context(), "demo", "us-west4-a", l.now); err != nil || project != 1 {
		t.Errorf("%d slots are taken after the redelivery, %v; want 1", project, err)
	}
	for what, other := range map[string]events.Request{
		"attempt": with(r, func(r *events.Request) { r.Attempt++ }), "epoch": with(r, func(r *events.Request) { r.Epoch++ }),
		"slice": with(r, func(r *events.Request) { r.Slice = "x" }), "incident": with(r, func(r *events.Request) { r.Incident = "x" }),
		"action": with(r, func(r *events.Request) { r.Action = events.ActionCreate }), "workload": with(r, func(r *events.Request) { r.Workload = "x" }),
	} {
		if ledger.RequestID(other, "us-west4-a") == id {
			t.Errorf("a request with another %s has the same ID", what)
		}
	}
	if ledger.RequestID(r, "us-west4-b") == id {
		t.Error("a request in another zone has the same ID")
	}
}

func with(r events.Request, change func(*events.Request)) events.Request {
	change(&r)
	return r
}

func refusesStale(t *testing.T, l *loop) {
	r := l.requested(t)
	writes := l.tap.Writes()
	for name, stale := range map[string]events.Request{
		"the epoch is":              with(r, func(r *events.Request) { r.Epoch-- }),
		"the open incident is":      with(r, func(r *events.Request) { r.Incident = "llama-8b-20261101-1" }),
		"not in the ledger":         with(r, func(r *events.Request) { r.Workload = "demo/unknown" }),
		"nothing waits for restart": with(r, func(r *events.Request) { r.Action = events.ActionRestart }),
	} {
		_, _, err := l.Check(t.Context(), stale.Pointer())
		wantIgnored(t, err, name)
		_, err = l.Begin(t.Context(), stale, "id")
		wantIgnored(t, err, name)
		_, _, err = l.BeginDestructive(t.Context(), stale, l.now, "us-west4-a", l.limits)
		wantIgnored(t, err, name)
	}
	l.now = l.now.Add(bounds.RequestFor + time.Second)
	_, _, err := l.Check(t.Context(), r.Pointer())
	wantIgnored(t, err, "it expired at")
	l.wantWrites(t, &writes, 0, "refused requests")
}

func holdsOnPause(t *testing.T, l *loop) {
	r := l.requested(t)
	must(t, l.SetPause(t.Context(), &evidence.Pause{By: "ann@example.com", At: l.now, Until: l.now.Add(time.Hour)}))
	_, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	wantIgnored(t, err, "paused by ann@example.com")
	if w := l.shown(t); !strings.Contains(w.Wait.Held, "paused by ann@example.com") {
		t.Errorf("the incident is held by %q, want the pause", w.Wait.Held)
	}
}

// looksNotWhilePaused: an intent may lead to another look, and each look would be told anew.
func looksNotWhilePaused(t *testing.T, l *loop) {
	r := l.requested(t)
	must(t, l.SetPause(t.Context(), &evidence.Pause{By: "ann@example.com", At: l.now}))
	_, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	wantIgnored(t, err, "paused by ann@example.com")
	w := l.shown(t)
	if w.Incident.Phase != view.PhaseDeleting || len(w.Requests) != 1 || w.Requests[0].Action != events.ActionDelete {
		t.Errorf("in %s, with %+v, want the deletion to wait", w.Incident.Phase, w.Requests)
	}
}

func holdsOnPolicy(t *testing.T, l *loop) {
	r := l.requested(t)
	l.policies.Unreadable = "gs://b/policy.yaml: 503"
	_, err := l.Begin(t.Context(), r, "id")
	wantIgnored(t, err, "gs://b/policy.yaml: 503")
	w := l.shown(t)
	begun := slices.ContainsFunc(w.Requests, func(r view.Request) bool { return !r.Begun.IsZero() })
	if !strings.Contains(w.Wait.Held, "503") || begun {
		t.Errorf("held by %q with the requests %+v, want the policy's fault and nothing begun", w.Wait.Held, w.Requests)
	}
}

func forbids(t *testing.T, l *loop) {
	r := l.requested(t)
	l.policies.Switches.Recreate = policy.No
	_, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	wantIgnored(t, err, "the switch recreate is no")
	w := l.shown(t)
	if w.Incident != nil && w.Incident.Phase == view.PhaseDeleting {
		t.Errorf("the incident stays in phase %v, as if nothing had been forbidden", w.Incident.Phase)
	}
	if _, zone, err := l.Slots(t.Context(), "demo", "us-west4-a", l.now); err != nil || zone != 0 {
		t.Errorf("%d slots are taken, %v; want none", zone, err)
	}
}

// holdsOnLabel: the policy checked belongs to the former label. The next delivery checks the policy of the new one.
func holdsOnLabel(t *testing.T, l *loop) {
	r := l.requested(t)
	l.between(t, 1, func(w *incident.Workload) { w.Label = "no such policy" })
	_, id, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	wantIgnored(t, err, `the label pitstop-policy is now "no such policy"`)
	w, _ := l.mustLoad(t, workload)
	if effect := w.Effects[0]; !effect.Begun.IsZero() || !effect.Retry.After(l.now) || effect.RequestID == id {
		t.Errorf("the effect is %+v, want one that is not begun and is asked for again", effect)
	}
	if _, zone, err := l.Slots(t.Context(), "demo", "us-west4-a", l.now); err != nil || zone != 0 {
		t.Errorf("%d slots are taken, %v; want none", zone, err)
	}
}

func brakes(t *testing.T, l *loop) {
	r := l.requested(t)
	l.limits = ledger.Limits{Project: 30, Zone: 1}
	must(t, l.Take(t.Context(), "demo", "us-west4-a", "another", l.limits, l.now))
	_, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	wantIgnored(t, err, "the brake holds")
	w := l.shown(t)
	effect := w.Requests[0]
	if !strings.Contains(w.Wait.Held, "the brake holds") || !effect.Begun.IsZero() || !effect.Retry.Equal(ledger.NextHour(l.now)) {
		t.Errorf("held by %q with the effect %+v, want the brake, nothing begun, and a new try in the next hour", w.Wait.Held, effect)
	}
}

func slotComesBack(t *testing.T, l *loop) {
	r := l.requested(t)
	w, id, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits)
	must(t, err)
	for _, c := range []struct {
		class reason.FailureClass
		want  int
	}{{reason.Transient, 1}, {reason.Permission, 0}} {
		must(t, l.Refused(t.Context(), w, "us-west4-a", id, &evidence.Failure{Class: c.class}))
		if _, zone, err := l.Slots(t.Context(), "demo", "us-west4-a", l.now); err != nil || zone != c.want {
			t.Errorf("after the failure %s %d slots are taken, %v; want %d", c.class, zone, err, c.want)
		}
	}
}

func answersAnyway(t *testing.T, l *loop) {
	r := l.requested(t)
	if _, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.Answer(gone, r, "operation-1", "delete accepted", nil); err != nil {
		t.Fatal(err)
	}
	if w, _ := l.mustLoad(t, workload); w.Effects[0].Operation != "operation-1" || w.Effects[0].Answered.IsZero() {
		t.Errorf("the effect is %+v, want the operation kept", w.Effects[0])
	}
}

func unreadable(t *testing.T, l *loop) {
	r := l.requested(t)
	errDown := errors.New("Firestore is not to be reached")
	for _, collection := range []string{ledger.Workloads, ledger.Brake, ledger.Pauses} {
		l.tap.Before = func(_ context.Context, c ledgertest.Call) error {
			if !c.Write && c.Collection == collection {
				return errDown
			}
			return nil
		}
		if _, _, err := l.BeginDestructive(t.Context(), r, l.now, "us-west4-a", l.limits); !errors.Is(err, errDown) || fault.IsIgnored(err) {
			t.Errorf("without %s the error is %v, want one that leaves the message for redelivery", collection, err)
		}
	}
}

// telling is sent with somewhere to bring what people have to hear.
type telling struct {
	*sent
	takes bool
}

func (s *telling) Takes(eventType string) bool {
	return s.takes && eventType == events.TypeIncidentUpdated
}

func tells(t *testing.T, l *loop) {
	l.Publisher = &telling{l.sent, true}
	w, err := l.Advance(t.Context(), workload, l.preempted(), l.lost())
	must(t, err)
	if len(l.sent.events) != 2 || l.sent.events[0].Type != events.TypeRecreateRequested || l.sent.events[1].Type != events.TypeIncidentUpdated || len(w.Outbox) != 0 {
		t.Fatalf("sent %s, and %d wait; want the request, then the update", typesOf(l.sent.events), len(w.Outbox))
	}
	e := l.sent.events[1]
	u, err := events.DecodeIncidentUpdated(e.Data)
	if err != nil || e.Correlation != w.Incident.ID || u.Phase != string(view.PhaseDeleting) || u.Number != l.shown(t).Incident.Lines() {
		t.Errorf("update %+v of %s (%v), want how %s stands", u, e.Correlation, err, w.Incident.ID)
	}
}

func tellsTheNewest(t *testing.T, l *loop) {
	p := &telling{l.sent, true}
	l.Publisher, l.sent.err = p, errors.New("away")
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatal(err)
	}
	gone := l.lost().(evidence.Read) //nolint:forcetypeassert // it was made here
	gone.Condition, gone.State = evidence.Gone, "gone"
	w, err := l.Advance(t.Context(), workload, gone)
	must(t, err)
	updates := slices.DeleteFunc(slices.Clone(w.Outbox), func(e events.Envelope) bool { return e.Type != events.TypeIncidentUpdated })
	if len(updates) != 1 {
		t.Fatalf("%d updates wait, want the newest alone", len(updates))
	}
	if u, err := events.DecodeIncidentUpdated(updates[0].Data); err != nil || u.Phase != string(view.PhaseCreating) {
		t.Errorf("%+v waits (%v), want the newest", u, err)
	}
	// Once this deployment no longer notifies anybody, the update holds nothing up.
	l.sent.err, p.takes = nil, false
	must(t, l.Flush(t.Context(), workload))
	if w = l.wantOutbox(t, 0); len(l.sent.events) != 2 {
		t.Errorf("sent %s, want the two requests of %s alone", typesOf(l.sent.events), w.ID)
	}
}
