package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish/publishtest"
)

// start has microseconds, because that is what every store keeps.
var start = time.Date(2026, 11, 12, 2, 14, 7, 123456000, time.UTC)

// TestMemory runs the suite on the store of local runs.
func TestMemory(t *testing.T) { conformance(t, memory) }

// TestSimulated runs the suite on the store of simulations.
func TestSimulated(t *testing.T) { conformance(t, simulated) }

// TestFirestore runs the suite on Google's own emulator of the store of a deployment.
func TestFirestore(t *testing.T) {
	publishtest.Emulator(t, publishtest.Firestore)
	conformance(t, firestore)
}

// suite is one ledger on an empty store.
type suite struct {
	*ledger.Ledger
	tap *ledgertest.Tap
	// open opens the store itself, behind the ledger's back.
	open ledger.Opener
}

func newSuite(t testing.TB, s store) *suite {
	t.Helper()
	open, through := s(t), &ledgertest.Tap{}
	l := ledger.New(through.On(open))
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &suite{Ledger: l, tap: through, open: open}
}

// raw reads a document as the store has it.
func (s *suite) raw(t *testing.T, collection, id string) ledger.Record {
	t.Helper()
	r, err := s.collection(t, collection).Get(t.Context(), url.PathEscape(id))
	must(t, err)
	return r
}

func (s *suite) collection(t *testing.T, name string) ledger.Collection {
	t.Helper()
	c, err := s.open(t.Context(), name)
	must(t, err)
	return c
}

// create writes a document as another release may.
func (s *suite) create(t *testing.T, collection, id string, schema int, body string) {
	t.Helper()
	must(t, s.collection(t, collection).Put(t.Context(), &ledger.Record{ID: url.PathEscape(id), Schema: schema, Body: body}))
}

// mustSave saves a workload that has to be savable.
func (s *suite) mustSave(t *testing.T, w incident.Workload, rev ledger.Revision) ledger.Revision {
	t.Helper()
	rev, err := s.Save(t.Context(), w, rev)
	must(t, err)
	return rev
}

func (s *suite) mustLoad(t *testing.T, id string) (incident.Workload, ledger.Revision) {
	t.Helper()
	w, rev, err := s.Workload(t.Context(), id)
	must(t, err)
	return w, rev
}

// wantWrites checks how many writes took effect since the last time it was asked.
func (s *suite) wantWrites(t *testing.T, since *int, want int, what string) {
	t.Helper()
	now := s.tap.Writes()
	if got := now - *since; got != want {
		t.Errorf("%s: %d writes, want %d", what, got, want)
	}
	*since = now
}

// conformance is what every store has to keep for the ledger.
func conformance(t *testing.T, s store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"a document comes back exactly as it was saved", roundTrip},
		{"a missing document is not found", notThere},
		{"a document is created once", createdOnce},
		{"a stale revision is refused and writes nothing", staleRevision},
		{"a document that vanished is not written again", vanished},
		{"the largest body is stored, and one byte more is refused for good", largestBody},
		{"a document of a newer release is left to that", newerRelease},
		{"a body that is not JSON is an error, not a missing document", brokenBody},
		{"only documents due by the time are found", due},
		{"every workload is found, and none in an empty ledger", all},
		{"an ID of any characters survives", oddIDs},
		{"a name finds its subject", subjects},
		{"a name that is mapped to the same again is not written", mappedAgain},
		{"the workers of a former life keep theirs", formerLives},
		{"entries of a zone cause one look in a while", parkedLooks},
		{"entries of a zone that come at once cause one look and one write", parkedAtOnce},
		{"parked entries are bounded in number and in bytes", parkedBounds},
		{"parked entries expire", parkedExpire},
		{"the audit log is asked about a zone once a minute", askedOnce},
		{"lines share their looks and their room", linesShare},
		{"parked entries that have expired give way to new ones", parkedGiveWay},
		{"the brake bounds the zone and the project of an hour", brakeBounds},
		{"the brake never gives more slots than there are", brakeAtOnce},
		{"a slot comes back when the project refuses the call", brakeReturns},
		{"everything is paused until that is lifted", pause},
		{"a specification is written once", specs},
		{"an incident is archived, and rewritten only by a later attribution", archive},
		{"workloads are read by their rank, the worst first", worst},
		{"closed incidents are read by their rows, what ended last first", past},
		{"every project whose patrol ticked is known", sights},
		{"a canary is missed until it comes back", canary},
		{"a stockout is remembered for its kind of slice, and not for long", stockout},
		{"the record of notifications is kept for each target, and written by the last reader", whatWasTold},
		{"an older document becomes one of this release", underThisSchema},
		{"a closed ledger opens its collections again", closed},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newSuite(t, s)) })
	}
}

func roundTrip(t *testing.T, s *suite) {
	want := full()
	rev := s.mustSave(t, want, ledger.Revision{})
	got, read := s.mustLoad(t, want.ID)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-saved +loaded):\n%s", d)
	}
	// Both revisions are those of the document: the one that the write told and the one that was read.
	want.Epoch++
	rev = s.mustSave(t, want, rev)
	if _, err := s.Save(t.Context(), want, read); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("a write with the revision before: %v, want a conflict", err)
	}
	want.Epoch++
	s.mustSave(t, want, rev)
	got, _ = s.mustLoad(t, want.ID)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("third write (-saved +loaded):\n%s", d)
	}
}

func notThere(t *testing.T, s *suite) {
	ctx := t.Context()
	_, _, noWorkload := s.Workload(ctx, "demo/llama-8b")
	_, noSubject := s.Subject(ctx, "demo", "us-west4-a", ledger.Node, "llama-8b")
	_, noSpec := s.Spec(ctx, "abc")
	_, notClosed := s.Closed(ctx, "demo/llama-8b", "i-1")
	for what, err := range map[string]error{"a workload": noWorkload, "a subject": noSubject, "a specification": noSpec, "an incident": notClosed} {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", what, err)
		}
	}
	if p, err := s.Pause(ctx); p != nil || err != nil {
		t.Errorf("pause: %v, %v", p, err)
	}
	if p, z, err := s.Slots(ctx, "demo", "us-west4-a", start); p != 0 || z != 0 || err != nil {
		t.Errorf("slots: %d, %d, %v", p, z, err)
	}
	if parked, err := s.parkedIn(t, "us-west4-a", start); parked != nil || err != nil {
		t.Errorf("parked: %v, %v", parked, err)
	}
}

func createdOnce(t *testing.T, s *suite) {
	w := quiet()
	s.mustSave(t, w, ledger.Revision{})
	other := w
	other.Epoch = 7
	if _, err := s.Save(t.Context(), other, ledger.Revision{}); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("second creation: %v, want a conflict", err)
	}
	if got, _ := s.mustLoad(t, w.ID); got.Epoch != w.Epoch {
		t.Error("the refused creation was written")
	}
	if n := s.tap.Writes(); n != 1 {
		t.Errorf("%d writes took effect, want 1", n)
	}
}

func staleRevision(t *testing.T, s *suite) {
	w := quiet()
	s.mustSave(t, w, ledger.Revision{})
	mine, rev := s.mustLoad(t, w.ID)
	theirs, otherRev := s.mustLoad(t, w.ID)
	theirs.Epoch = 5
	s.mustSave(t, theirs, otherRev)
	mine.Epoch = 9
	for range 2 { // a conflict does not wear off
		if _, err := s.Save(t.Context(), mine, rev); !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("a stale write: %v, want a conflict", err)
		}
	}
	if got, _ := s.mustLoad(t, w.ID); got.Epoch != 5 {
		t.Errorf("epoch %d, want that of the faster writer, 5", got.Epoch)
	}
}

func vanished(t *testing.T, s *suite) {
	w := quiet()
	rev := s.mustSave(t, w, ledger.Revision{})
	remove(t, s.collection(t, ledger.Workloads), url.PathEscape(w.ID))
	if _, err := s.Save(t.Context(), w, rev); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("a write over a document that is gone: %v, want a conflict", err)
	}
	if _, _, err := s.Workload(t.Context(), w.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the refused write brought it back: %v", err)
	}
}

func largestBody(t *testing.T, s *suite) {
	w := quiet()
	w.Slices[0].State = "x"
	body, err := json.Marshal(w)
	must(t, err)
	w.Slices[0].State += strings.Repeat("x", ledger.MaxBody-len(body))
	rev := s.mustSave(t, w, ledger.Revision{})
	calls := 0
	s.tap.Before = func(context.Context, ledgertest.Call) error {
		calls++
		return nil
	}
	larger := w
	larger.Slices = slices.Clone(w.Slices)
	larger.Slices[0].State += "x"
	for what, r := range map[string]ledger.Revision{"written": rev, "created": {}} {
		if _, err := s.Save(t.Context(), larger, r); !fault.IsPermanent(err) {
			t.Errorf("a body that is too large, %s: %v, want a permanent fault", what, err)
		}
	}
	if calls != 0 {
		t.Errorf("the store was called %d times", calls)
	}
	if got, _ := s.mustLoad(t, w.ID); got.Slices[0].State != w.Slices[0].State {
		t.Error("the largest body came back changed")
	}
}

func newerRelease(t *testing.T, s *suite) {
	const body = `{"workload":"of another time","entries":"none","taken":7}`
	hour := start.UTC().Format("2006010215")
	for collection, id := range map[string]string{
		ledger.Workloads: "demo/llama-8b",
		ledger.Subjects:  "demo/us-west4-a/node/llama-8b",
		ledger.Parked:    "demo/us-west4-a",
		ledger.Brake:     "demo/us-west4-a/" + hour,
		ledger.Pauses:    "all",
		ledger.Specs:     "abc",
		ledger.Archive:   "demo/llama-8b/i-1",
	} {
		s.create(t, collection, id, 3, body)
	}
	ctx := t.Context()
	writes := s.tap.Writes()
	_, _, workload := s.Workload(ctx, "demo/llama-8b")
	_, subject := s.Subject(ctx, "demo", "us-west4-a", ledger.Node, "llama-8b")
	_, park := s.Park(ctx, "demo", "us-west4-a", ledger.ParkedEntry{Key: "k", At: start})
	_, unpark := s.Unpark(ctx, "demo", "us-west4-a", []string{"k"}, start)
	_, _, slots := s.Slots(ctx, "demo", "us-west4-a", start)
	_, paused := s.Pause(ctx)
	_, spec := s.Spec(ctx, "abc")
	_, archived := s.Closed(ctx, "demo/llama-8b", "i-1")
	for what, err := range map[string]error{
		"Workload":   workload,
		"Subject":    subject,
		"Map":        s.Map(ctx, "demo", "us-west4-a", ledger.Node, "llama-8b", ledger.Subject{Workload: "w"}),
		"Park":       park,
		"Unpark":     unpark,
		"Take":       s.Take(ctx, "demo", "us-west4-a", "c", ledger.DefaultLimits, start),
		"GiveBack":   s.GiveBack(ctx, "demo", "us-west4-a", "c", start),
		"Slots":      slots,
		"Pause":      paused,
		"SetPause":   s.SetPause(ctx, &evidence.Pause{By: "ann", At: start}),
		"Spec":       spec,
		"Closed":     archived,
		"SaveClosed": s.SaveClosed(ctx, incident.Workload{ID: "demo/llama-8b"}, incident.Incident{ID: "i-1", Revision: 9}),
	} {
		if !fault.IsBusy(err) || !errors.Is(err, events.ErrNewer) {
			t.Errorf("%s: %v, want one that a newer release has to deal with", what, err)
		}
	}
	s.wantWrites(t, &writes, 0, "over documents of a newer release")
	if got := s.raw(t, ledger.Workloads, "demo/llama-8b").Body; got != body {
		t.Errorf("body = %v", got)
	}
}

func brokenBody(t *testing.T, s *suite) {
	s.create(t, ledger.Workloads, "demo/llama-8b", 1, `{"id":"demo/lla`)
	_, _, err := s.Workload(t.Context(), "demo/llama-8b")
	if err == nil || errors.Is(err, ledger.ErrNotFound) || !strings.Contains(err.Error(), "demo/llama-8b") {
		t.Errorf("%v, want an error that names the document", err)
	}
}

func due(t *testing.T, s *suite) {
	at := func(name string, due time.Time) {
		w := quiet()
		w.Name, w.ID = name, "demo/"+name
		w.Slices[0].Notice = incident.Notice{Notice: events.Notice{Status: events.NoticePending}, Due: due}
		s.mustSave(t, w, ledger.Revision{})
	}
	at("past", start.Add(-time.Hour))
	at("now", start)
	at("soon", start.Add(time.Microsecond))
	at("later", start.Add(time.Hour))
	at("never", time.Time{})
	// Times of a store end at the microsecond. A document due within a microsecond is found too early rather than too late.
	at("within", start.Add(900*time.Nanosecond))
	for _, c := range []struct {
		at   time.Time
		want []string
	}{
		{start.Add(-2 * time.Hour), nil},
		{start.Add(-time.Hour), []string{"demo/past"}},
		{start, []string{"demo/now", "demo/past", "demo/within"}},
		{start.Add(time.Microsecond), []string{"demo/now", "demo/past", "demo/soon", "demo/within"}},
		{start.Add(100 * 365 * 24 * time.Hour), []string{"demo/later", "demo/now", "demo/past", "demo/soon", "demo/within"}},
		{start.In(time.FixedZone("", -5*3600)), []string{"demo/now", "demo/past", "demo/within"}},
	} {
		got, err := s.due(t, c.at)
		must(t, err)
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("due by %s (-want +got):\n%s", c.at, d)
		}
	}
	// A document that is no longer due leaves the query, and one that becomes due enters it.
	w, rev := s.mustLoad(t, "demo/past")
	w.Slices = slices.Clone(w.Slices)
	w.Slices[0].Notice = incident.Notice{}
	s.mustSave(t, w, rev)
	w, rev = s.mustLoad(t, "demo/never")
	w.Incident = &incident.Incident{ID: "i", Opened: start.Add(-time.Minute)}
	s.mustSave(t, w, rev)
	got, err := s.due(t, start.Add(-time.Second))
	if err != nil || !cmp.Equal(got, []string{"demo/never"}) {
		t.Errorf("due = %v, %v; want demo/never alone", got, err)
	}
}

// due are the IDs of the documents due by then.
func (s *suite) due(t *testing.T, at time.Time) (ids []string, err error) {
	due, err := s.Due(t.Context(), at)
	for _, w := range due {
		if stored, _ := s.mustLoad(t, w.ID); !cmp.Equal(stored, w) {
			t.Errorf("%s is due as %+v, and stored as %+v", w.ID, w, stored)
		}
		ids = append(ids, w.ID)
	}
	return ids, err
}

func all(t *testing.T, s *suite) {
	if got, err := s.All(t.Context()); got != nil || err != nil {
		t.Errorf("an empty ledger: %v, %v", got, err)
	}
	var want []string
	for i := range 120 { // more than a page of any store
		w := quiet()
		w.ID = fmt.Sprintf("demo/w%03d", i)
		s.mustSave(t, w, ledger.Revision{})
		want = append(want, w.ID)
	}
	got, err := s.All(t.Context())
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// odd are IDs that a store might make something of.
var odd = []string{
	"demo/llama-8b", "demo/llama-8b.us-west4-a", "example.com:demo/w", "demo/a/b//c/", "/", "demo%2Fllama", "100%", "%", "demo/ü-日本-🚦",
	"demo/with space", "a?b#c&d=e+f", "`quoted` \\ \"both\"", ".", "..", "...", "./..", "__all__", "__x", "_", "ALL", "all",
}

func oddIDs(t *testing.T, s *suite) {
	var want []string
	for _, id := range odd {
		w := quiet()
		w.ID = id
		w.Outbox = []events.Envelope{{ID: "e", Time: start}}
		s.mustSave(t, w, ledger.Revision{})
		want = append(want, id)
	}
	for _, id := range odd {
		if got, _ := s.mustLoad(t, id); got.ID != id {
			t.Errorf("%q came back as %q", id, got.ID)
		}
		if err := s.SaveSpec(t.Context(), id, []byte(id)); err != nil {
			t.Errorf("specification %q: %v", id, err)
		}
		if got, err := s.Spec(t.Context(), id); string(got) != id {
			t.Errorf("specification %q came back as %q, %v", id, got, err)
		}
	}
	slices.Sort(want)
	for what, find := range map[string]func() ([]string, error){
		"all": func() ([]string, error) { return s.All(t.Context()) },
		"due": func() ([]string, error) { return s.due(t, start) },
	} {
		got, err := find()
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, d)
		}
	}
	// A store that is given no key makes one up, and every write would be another document.
	nameless := quiet()
	nameless.ID = ""
	if _, err := s.Save(t.Context(), nameless, ledger.Revision{}); err == nil {
		t.Error("a workload without an ID was saved")
	}
}

func subjects(t *testing.T, s *suite) {
	ctx := t.Context()
	life := events.Incarnation{Zone: "us-west4-a", ID: "7711", Created: start}
	of := func(name string) ledger.Subject {
		return ledger.Subject{Workload: "demo/" + name, Slice: name, Incarnation: life}
	}
	for _, m := range []struct {
		project, zone string
		kind          ledger.SubjectKind
		name          string
	}{
		{"demo", "us-west4-a", ledger.Node, "one"},
		{"demo", "us-west4-b", ledger.Node, "one"},
		{"other", "us-west4-a", ledger.Node, "one"},
		{"demo", "us-west4-a", ledger.QueuedResource, "one"},
		{"demo", "us-west4-a", ledger.Worker, "t1v-n-3f2a9c01"},
	} {
		must(t, s.Map(ctx, m.project, m.zone, m.kind, m.name, of(m.project+m.zone+string(m.kind)+m.name)))
	}
	for name, c := range map[string]struct {
		subject events.Subject
		want    string
	}{
		"a node":                                     {events.Subject{Project: "demo", Zone: "us-west4-a", Node: "one"}, "demous-west4-anodeone"},
		"the node of that name in another zone":      {events.Subject{Project: "demo", Zone: "us-west4-b", Node: "one"}, "demous-west4-bnodeone"},
		"the node of that name in another project":   {events.Subject{Project: "other", Zone: "us-west4-a", Node: "one"}, "otherus-west4-anodeone"},
		"a queued resource":                          {events.Subject{Project: "demo", Zone: "us-west4-a", QueuedResource: "one"}, "demous-west4-aqueuedResourceone"},
		"a node before its queued resource":          {events.Subject{Project: "demo", Zone: "us-west4-a", Node: "one", QueuedResource: "one"}, "demous-west4-anodeone"},
		"a worker, whichever it is":                  {events.Subject{Project: "demo", Zone: "us-west4-a", Worker: "t1v-n-3f2a9c01-w-3"}, "demous-west4-aworkert1v-n-3f2a9c01"},
		"a worker with its domain":                   {events.Subject{Project: "demo", Zone: "us-west4-a", Worker: "t1v-n-3f2a9c01-w-0.us-west4-a.c.demo.internal"}, "demous-west4-aworkert1v-n-3f2a9c01"},
		"no node of that name":                       {events.Subject{Project: "demo", Zone: "us-west4-a", Node: "two"}, ""},
		"no node of that name, but a worker's group": {events.Subject{Project: "demo", Zone: "us-west4-a", Node: "two", Worker: "t1v-n-3f2a9c01-w-0"}, ""},
		"a worker of nobody":                         {events.Subject{Project: "demo", Zone: "us-west4-a", Worker: "t1v-n-00000000-w-0"}, ""},
		"a machine that is no worker":                {events.Subject{Project: "demo", Zone: "us-west4-a", Worker: "bastion"}, ""},
		"nothing at all":                             {events.Subject{}, ""},
	} {
		got, err := s.Find(ctx, c.subject)
		if c.want == "" {
			if !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%s: %v, %v; want ErrNotFound", name, got, err)
			}
			continue
		}
		if d := cmp.Diff(of(c.want), got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
}

func mappedAgain(t *testing.T, s *suite) {
	life := func(id string) events.Incarnation {
		return events.Incarnation{Zone: "us-west4-a", ID: id, Created: start}
	}
	writes := 0
	for _, c := range []struct {
		name    string
		subject ledger.Subject
		writes  int
	}{
		{"first", ledger.Subject{Workload: "demo/a", Slice: "a", Incarnation: life("1")}, 1},
		{"the same", ledger.Subject{Workload: "demo/a", Slice: "a", Incarnation: life("1")}, 0},
		{"another life", ledger.Subject{Workload: "demo/a", Slice: "a", Incarnation: life("2")}, 1},
		{"another workload", ledger.Subject{Workload: "demo/b", Slice: "a", Incarnation: life("2")}, 1},
		{"another slice", ledger.Subject{Workload: "demo/b", Slice: "b", Incarnation: life("2")}, 1},
		{"the same after all that", ledger.Subject{Workload: "demo/b", Slice: "b", Incarnation: life("2")}, 0},
		{"no life yet", ledger.Subject{Workload: "demo/b", Slice: "b"}, 1},
		{"still no life", ledger.Subject{Workload: "demo/b", Slice: "b"}, 0},
	} {
		must(t, s.Map(t.Context(), "demo", "us-west4-a", ledger.Node, "n", c.subject))
		s.wantWrites(t, &writes, c.writes, c.name)
		got, err := s.Subject(t.Context(), "demo", "us-west4-a", ledger.Node, "n")
		if d := cmp.Diff(c.subject, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, d)
		}
	}
}

func formerLives(t *testing.T, s *suite) {
	ctx := t.Context()
	first := ledger.Subject{Workload: "demo/a", Slice: "a", Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "1", Created: start}}
	second := first
	second.Incarnation.ID, second.Incarnation.Created = "2", start.Add(time.Hour)
	for _, m := range []struct {
		group string
		of    ledger.Subject
	}{{"t1v-n-00000001", first}, {"t1v-n-00000002", second}} {
		must(t, errors.Join(s.Map(ctx, "demo", "us-west4-a", ledger.Node, "a", m.of), s.Map(ctx, "demo", "us-west4-a", ledger.Worker, m.group, m.of)))
	}
	for subject, want := range map[events.Subject]ledger.Subject{
		{Project: "demo", Zone: "us-west4-a", Node: "a"}:                    second,
		{Project: "demo", Zone: "us-west4-a", Worker: "t1v-n-00000002-w-1"}: second,
		{Project: "demo", Zone: "us-west4-a", Worker: "t1v-n-00000001-w-1"}: first,
	} {
		if got, err := s.Find(ctx, subject); !cmp.Equal(want, got) || err != nil {
			t.Errorf("%v: %v, %v; want life %s", subject, got, err, want.Incarnation.ID)
		}
	}
}

func parkedLooks(t *testing.T, s *suite) {
	writes := 0
	for _, c := range []struct {
		name   string
		after  time.Duration
		key    string
		look   bool
		writes int
		parked int
	}{
		{"the first entry looks", 0, "a", true, 1, 1},
		{"the same entry at once says nothing new", 0, "a", false, 0, 1},
		{"another entry is kept and looks no more", time.Second, "b", false, 1, 2},
		{"an old entry just before the time", 5*time.Second - time.Microsecond, "a", false, 0, 2},
		{"the time is over", 5 * time.Second, "a", true, 1, 2},
		{"and begins anew", 6 * time.Second, "b", false, 0, 2},
		{"with another new entry", 10 * time.Second, "c", true, 1, 3},
	} {
		look, err := s.Park(t.Context(), "demo", "us-west4-a", ledger.ParkedEntry{Key: c.key, Raw: []byte(c.name), At: start.Add(c.after)})
		if err != nil || look != c.look {
			t.Errorf("%s: look %v, %v", c.name, look, err)
		}
		s.wantWrites(t, &writes, c.writes, c.name)
		parked, err := s.parkedIn(t, "us-west4-a", start.Add(c.after))
		if err != nil || len(parked) != c.parked {
			t.Errorf("%s: %d parked, %v; want %d", c.name, len(parked), err, c.parked)
		}
	}
	parked, err := s.parkedIn(t, "us-west4-a", start)
	want := []ledger.ParkedEntry{
		{Key: "a", Raw: []byte("the first entry looks"), At: start},
		{Key: "b", Raw: []byte("another entry is kept and looks no more"), At: start.Add(time.Second)},
		{Key: "c", Raw: []byte("with another new entry"), At: start.Add(10 * time.Second)},
	}
	if d := cmp.Diff(want, parked); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	// Zones know nothing of each other.
	if look, err := s.Park(t.Context(), "demo", "us-west4-b", ledger.ParkedEntry{Key: "a", At: start.Add(10 * time.Second)}); !look || err != nil {
		t.Errorf("another zone: look %v, %v", look, err)
	}
}

// parkedIn are the entries that wait in a zone.
func (s *suite) parkedIn(t *testing.T, zone string, at time.Time) ([]ledger.ParkedEntry, error) {
	t.Helper()
	var waiting []ledger.ParkedEntry
	parked, err := s.ParkedZones(t.Context(), "demo", at)
	for _, z := range parked {
		if z.Zone == zone {
			waiting = z.Waiting
		}
	}
	return waiting, err
}

func parkedAtOnce(t *testing.T, s *suite) {
	const workers = 256
	looks := make([]bool, workers)
	errs := make([]error, workers)
	together(workers, func(i int) {
		looks[i], errs[i] = s.Park(t.Context(), "demo", "us-west4-a", ledger.ParkedEntry{Key: "t1v-n-00000001 loss", Raw: fmt.Append(nil, i), At: start})
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if n := count(looks); n != 1 {
		t.Errorf("%d of %d workers look, want 1", n, workers)
	}
	if n := s.tap.Writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func parkedBounds(t *testing.T, s *suite) {
	ctx := t.Context()
	park := func(zone string, i int, raw []byte) bool {
		look, err := s.Park(ctx, "demo", zone, ledger.ParkedEntry{Key: fmt.Sprintf("k%03d", i), Raw: raw, At: start})
		if err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		return look
	}
	for i := range 300 {
		if look := park("us-west4-a", i, []byte("{}")); look != (i == 0) {
			t.Errorf("entry %d: look %v", i, look)
		}
	}
	parked, err := s.parkedIn(t, "us-west4-a", start)
	if err != nil || len(parked) != 256 {
		t.Errorf("%d parked, %v; want 256", len(parked), err)
	}
	writes := s.tap.Writes()
	park("us-west4-a", 301, []byte("{}"))
	s.wantWrites(t, &writes, 0, "an entry for which there is no place")
	// A look is due all the same, whether or not there is a place for the entry that causes it.
	if look, err := s.Park(ctx, "demo", "us-west4-a", ledger.ParkedEntry{Key: "late", At: start.Add(ledger.LookEvery)}); !look || err != nil {
		t.Errorf("look %v, %v", look, err)
	}
	// Entries of Cloud Logging may be large. What would not fit into the document is not kept, and fails nobody.
	for i := range 20 {
		park("us-west4-b", i, bytes.Repeat([]byte("x"), 100<<10))
	}
	parked, err = s.parkedIn(t, "us-west4-b", start)
	if err != nil || len(parked) != 5 {
		t.Errorf("%d large entries parked, %v; want the 5 that fit", len(parked), err)
	}
	park("us-west4-b", 999, []byte("{}"))
	parked, err = s.parkedIn(t, "us-west4-b", start)
	if err != nil || keysOf(parked) != "k000 k001 k002 k003 k004 k999" {
		t.Errorf("behind the large entries a small one finds its place: %s, %v", keysOf(parked), err)
	}
}

// linesShare has anybody's lines share their looks and their room, apart from the entries of Google.
func linesShare(t *testing.T, s *suite) {
	ctx := t.Context()
	for _, c := range []struct {
		name        string
		after       time.Duration
		zone        string
		may, shared bool
		times       int
	}{
		{"the first looks", 0, "us-west4-a", true, false, 1},
		{"the next is in its shadow", 5*time.Second - time.Microsecond, "us-west4-a", false, true, 100},
		{"another zone has its own", 5*time.Second - time.Microsecond, "us-west4-b", true, false, 1},
		{"the time is over", 5 * time.Second, "us-west4-a", true, false, 1},
		{"a minute has a bound", 6 * time.Second, "", true, false, ledger.LineLooks - 3},
		{"which is reached", 6 * time.Second, "us-west4-c", false, false, 100},
		{"as long as the first looks are not a minute old", time.Minute - time.Microsecond, "us-west4-c", false, false, 1},
		{"and then there is one more", time.Minute, "us-west4-c", true, false, 1},
		{"and no other", time.Minute, "us-west4-d", false, false, 1},
	} {
		for i := range c.times {
			zone := c.zone
			if zone == "" {
				zone = fmt.Sprintf("nowhere%d-a", i)
			}
			may, shared, err := s.LookForLine(ctx, "demo", zone, start.Add(c.after))
			if err != nil || may != c.may || shared != c.shared {
				t.Fatalf("%s: line %d may look %v, in a shadow %v, %v", c.name, i, may, shared, err)
			}
		}
	}
	if may, _, err := s.LookForLine(ctx, "other", "us-west4-a", start); !may || err != nil {
		t.Errorf("another project: %v, %v", may, err)
	}

	park := func(zone, key string, line bool, bytes int) bool {
		look, err := s.Park(ctx, "demo", zone, ledger.ParkedEntry{Key: key, Raw: make([]byte, bytes), At: start, Line: line})
		must(t, err)
		return look
	}
	for i := range 100 {
		if park("us-west4-a", fmt.Sprintf("line %d", i), true, 10) || park("us-west4-b", fmt.Sprintf("line %d", i), true, 20<<10) {
			t.Error("a line has taken the look of an entry")
		}
	}
	if !park("us-west4-a", "loss", false, 10) || !park("us-west4-b", "loss", false, 100<<10) {
		t.Error("lines have taken the look of an entry")
	}
	for zone, want := range map[string]int{"us-west4-a": 33, "us-west4-b": 4} {
		if parked, err := s.parkedIn(t, zone, start); err != nil || len(parked) != want || parked[want-1].Key != "loss" {
			t.Errorf("%d entries wait in %s, want %d with the loss: %v", len(parked), zone, want, err)
		}
	}
}

// parkedGiveWay has entries expire in a zone in which nobody takes them up.
func parkedGiveWay(t *testing.T, s *suite) {
	park := func(i int, at time.Time) {
		t.Helper()
		if _, err := s.Park(t.Context(), "demo", "us-west4-a", ledger.ParkedEntry{Key: fmt.Sprintf("k%03d", i), At: at}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 256 {
		park(i, start)
	}
	park(256, start.Add(ledger.ParkFor))
	later := start.Add(ledger.ParkFor + time.Microsecond)
	park(257, later)
	park(3, later)
	parked, err := s.parkedIn(t, "us-west4-a", later)
	if err != nil || keysOf(parked) != "k257 k003" {
		t.Errorf("parked: %s, %v; want the two that came when the others had expired", keysOf(parked), err)
	}
	writes := s.tap.Writes()
	park(3, later)
	s.wantWrites(t, &writes, 0, "an entry that is parked already")
}

// askedOnce has many instances want to ask, and entries be parked in between.
func askedOnce(t *testing.T, s *suite) {
	for _, c := range []struct {
		zone  string
		after time.Duration
		want  int
	}{
		{"us-west4-a", 0, 1},
		{"us-west4-b", 0, 1},
		{"us-west4-a", 59 * time.Second, 0},
		{"us-west4-a", time.Minute, 1},
		{"us-west4-a", 61 * time.Second, 0},
		{"us-west4-a", -time.Minute, 0},
		{"us-west4-a", time.Hour, 1},
	} {
		at := start.Truncate(time.Minute).Add(c.after)
		const instances = 16
		may, errs := make([]bool, instances), make([]error, instances)
		together(instances, func(i int) { may[i], errs[i] = s.Ask(t.Context(), "demo", c.zone, at) })
		if err := errors.Join(errs...); err != nil || count(may) != c.want {
			t.Errorf("%s after %v: %d of %d may ask, %v; want %d", c.zone, c.after, count(may), instances, err, c.want)
		}
		if look, err := s.Park(t.Context(), "demo", c.zone, ledger.ParkedEntry{Key: "k", At: at}); err != nil || c.after == 0 && !look {
			t.Errorf("look %v, %v: to ask is no look", look, err)
		}
	}
}

func parkedExpire(t *testing.T, s *suite) {
	ctx := t.Context()
	for i, key := range []string{"a", "b", "c", "d"} {
		if _, err := s.Park(ctx, "demo", "us-west4-a", ledger.ParkedEntry{Key: key, At: start.Add(time.Duration(i) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(at time.Time) string {
		parked, err := s.parkedIn(t, "us-west4-a", at)
		must(t, err)
		return keysOf(parked)
	}
	if got := keys(start.Add(ledger.ParkFor)); got != "a b c d" {
		t.Errorf("after %s: %q", ledger.ParkFor, got)
	}
	if got := keys(start.Add(ledger.ParkFor + time.Microsecond)); got != "b c d" {
		t.Errorf("just after %s: %q", ledger.ParkFor, got)
	}
	writes := s.tap.Writes()
	for _, c := range []struct {
		name    string
		keys    []string
		at      time.Duration
		expired string
		left    string
		writes  int
	}{
		{"nothing to forget", nil, 0, "", "a b c d", 0},
		{"a key that nobody parked", []string{"z"}, 0, "", "a b c d", 0},
		{"one is understood", []string{"c"}, 0, "", "a b d", 1},
		{"one has waited too long", nil, ledger.ParkFor + time.Second, "a", "b d", 1},
		{"one is understood at last, one has waited too long", []string{"b"}, ledger.ParkFor + time.Hour, "d", "", 1},
	} {
		expired, err := s.Unpark(ctx, "demo", "us-west4-a", c.keys, start.Add(c.at))
		if got := keysOf(expired); got != c.expired || err != nil {
			t.Errorf("%s: expired %q, %v; want %q", c.name, got, err, c.expired)
		}
		s.wantWrites(t, &writes, c.writes, c.name)
		if got := keys(start.Add(c.at)); got != c.left {
			t.Errorf("%s: %q left, want %q", c.name, got, c.left)
		}
	}
	if expired, err := s.Unpark(ctx, "demo", "nowhere", []string{"a"}, start); expired != nil || err != nil {
		t.Errorf("a zone without entries: %v, %v", expired, err)
	}
	s.wantWrites(t, &writes, 0, "a zone without entries")
}

func keysOf(entries []ledger.ParkedEntry) string {
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return strings.Join(keys, " ")
}

func brakeBounds(t *testing.T, s *suite) {
	limits := ledger.Limits{Project: 3, Zone: 2}
	before := start.Truncate(time.Hour).Add(time.Hour - time.Microsecond)
	next := ledger.NextHour(start)
	for _, c := range []struct {
		name, project, zone, call string
		at                        time.Time
		braked                    bool
		inProject, inZone         int
	}{
		{"the first call", "demo", "a", "c1", start, false, 1, 1},
		{"the same call again takes no other slot", "demo", "a", "c1", start.Add(time.Second), false, 1, 1},
		{"the second call of the zone", "demo", "a", "c2", start, false, 2, 2},
		{"the third call of the zone is refused", "demo", "a", "c3", start, true, 2, 2},
		{"a call that has its slot passes at the bound", "demo", "a", "c2", start, false, 2, 2},
		{"another zone has its own bound", "demo", "b", "c4", start, false, 3, 1},
		{"the bound of the project holds for every zone", "demo", "c", "c5", start, true, 3, 0},
		{"another project has its own", "other", "a", "c6", start, false, 1, 1},
		{"the last moment of the hour", "demo", "a", "c7", before, true, 3, 2},
		{"the next hour is free", "demo", "a", "c7", next, false, 1, 1},
		{"the hour is the same everywhere", "demo", "a", "c8", start.In(time.FixedZone("", 5*3600+1800)), true, 3, 2},
	} {
		err := s.Take(t.Context(), c.project, c.zone, c.call, limits, c.at)
		if errors.Is(err, ledger.ErrBraked) != c.braked || err != nil && !c.braked {
			t.Errorf("%s: %v, want braked: %v", c.name, err, c.braked)
		}
		p, z, err := s.Slots(t.Context(), c.project, c.zone, c.at)
		if p != c.inProject || z != c.inZone || err != nil {
			t.Errorf("%s: %d in the project, %d in the zone, %v; want %d, %d", c.name, p, z, err, c.inProject, c.inZone)
		}
	}
	expires := s.raw(t, ledger.Brake, "demo/a/"+start.Format("2006010215")).Expires
	if want := start.Add(ledger.KeepSlots); !expires.Equal(want) {
		t.Errorf("the hour is kept until %s, want %s", expires, want)
	}
	// A returned slot is free for another call, and returning it again frees no other.
	for range 2 {
		if err := s.GiveBack(t.Context(), "demo", "a", "c1", start); err != nil {
			t.Error(err)
		}
	}
	if p, z, err := s.Slots(t.Context(), "demo", "a", start); p != 2 || z != 1 || err != nil {
		t.Errorf("after giving back: %d, %d, %v; want 2, 1", p, z, err)
	}
	if err := s.Take(t.Context(), "demo", "a", "c9", limits, start); err != nil {
		t.Errorf("a slot that was given back: %v", err)
	}
	if err := s.GiveBack(t.Context(), "demo", "z", "nobody's", start); err != nil {
		t.Errorf("a slot that nobody took: %v", err)
	}
}

func brakeAtOnce(t *testing.T, s *suite) {
	const calls = 48
	limits := ledger.Limits{Project: 12, Zone: 8}
	errs := make([]error, calls)
	zones := []string{"a", "b", "c"}
	together(calls, func(i int) {
		errs[i] = s.Take(t.Context(), "demo", zones[i%len(zones)], fmt.Sprint("c", i), limits, start)
	})
	taken := map[string]int{}
	for i, err := range errs {
		switch {
		case err == nil:
			taken[zones[i%len(zones)]]++
		case !errors.Is(err, ledger.ErrBraked) && !errors.Is(err, ledger.ErrConflict):
			t.Error(err)
		}
	}
	sum := 0
	for _, zone := range zones {
		p, z, err := s.Slots(t.Context(), "demo", zone, start)
		if err != nil || p > limits.Project || z > limits.Zone || taken[zone] > z {
			t.Errorf("zone %s: %d slots for %d calls, %d in the project, %v", zone, z, taken[zone], p, err)
		}
		sum += taken[zone]
	}
	if sum == 0 {
		t.Error("nobody got a slot")
	}
}

func brakeReturns(t *testing.T, s *suite) {
	limits := ledger.Limits{Project: 1, Zone: 5}
	ctx := t.Context()
	must(t, s.Take(ctx, "demo", "a", "c1", limits, start))
	if err := s.Take(ctx, "demo", "b", "c2", limits, start); !errors.Is(err, ledger.ErrBraked) {
		t.Fatalf("%v, want the brake", err)
	}
	if _, z, err := s.Slots(ctx, "demo", "b", start); z != 0 || err != nil {
		t.Errorf("the refused call holds %d slots of its zone, %v", z, err)
	}
	// A call that has its slots keeps them when the store fails while they are looked for again.
	broken := errors.New("the store is away")
	s.tap.Before = func(_ context.Context, c ledgertest.Call) error {
		if strings.HasPrefix(c.About, "demo%2F%2F") {
			return broken
		}
		return nil
	}
	if err := s.Take(ctx, "demo", "a", "c1", limits, start); err == nil {
		t.Error("nothing failed")
	}
	s.tap.Before = nil
	if p, z, err := s.Slots(ctx, "demo", "a", start); p != 1 || z != 1 || err != nil {
		t.Errorf("%d in the project, %d in the zone, %v; want 1, 1", p, z, err)
	}
}

func pause(t *testing.T, s *suite) {
	ctx := t.Context()
	for name, want := range map[string]*evidence.Pause{
		"with all that it says":     {By: "ann@example.com", Why: "a drill", At: start, Until: start.Add(time.Hour)},
		"without an end":            {By: "ann@example.com", At: start},
		"without its own beginning": {By: "ann@example.com"},
	} {
		must(t, s.SetPause(ctx, want))
		got, err := s.Pause(ctx)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	for range 2 {
		must(t, s.SetPause(ctx, nil))
		if got, err := s.Pause(ctx); got != nil || err != nil {
			t.Errorf("lifted: %v, %v", got, err)
		}
	}
}

func specs(t *testing.T, s *suite) {
	ctx := t.Context()
	spec := []byte("{\"acceleratorType\":\"v5litepod-16\",\"startup\":\"#!/bin/sh\\necho ü \\u0000\"}\n")
	for range 3 {
		must(t, s.SaveSpec(ctx, "abc", spec))
	}
	if n := s.tap.Writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	if got, err := s.Spec(ctx, "abc"); !bytes.Equal(got, spec) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// Firestore gives way when many write at once, and then nothing is written: nothing may be deleted on that.
	s.tap.Before = func(context.Context, ledgertest.Call) error {
		s.tap.Before = nil
		return status.Error(codes.Aborted, "too much contention on these documents")
	}
	if err := s.SaveSpec(ctx, "contended", spec); err == nil {
		t.Error("a specification that was not written counts as saved")
	}
	if err := s.SaveSpec(ctx, "contended", spec); err != nil {
		t.Errorf("written again: %v", err)
	}
	if got, err := s.Spec(ctx, "abc@life"); !bytes.Equal(got, spec) || err != nil {
		t.Errorf("with the name of its values: %q, %v", got, err)
	}
	calls := 0
	s.tap.Before = func(context.Context, ledgertest.Call) error { calls++; return nil }
	if err := s.SaveSpec(ctx, "contended@life", spec); err != nil || calls != 0 {
		t.Errorf("saved again by the same process: %v, with %d calls, want none", err, calls)
	}
	if err := ledger.New(s.open).SaveSpec(ctx, "contended", spec); err != nil {
		t.Errorf("saved again by another process: %v", err)
	}
	s.tap.Before = nil
	if err := s.SaveSpec(ctx, "large", make([]byte, ledger.MaxBody+1)); !fault.IsPermanent(err) {
		t.Errorf("a specification that is too large: %v, want a permanent fault", err)
	}
}

func archive(t *testing.T, s *suite) {
	ctx := t.Context()
	in := *full().Closed
	in.Revision = 2
	writes := 0
	for _, c := range []struct {
		name     string
		revision int
		policy   string
		want     string
		writes   int
	}{
		{"first", 2, "a", "a", 1},
		{"the same again", 2, "b", "a", 0},
		{"an earlier one that came late", 1, "c", "a", 0},
		{"a later attribution", 3, "d", "d", 1},
	} {
		in.Revision, in.Policy = c.revision, c.policy
		must(t, s.SaveClosed(ctx, incident.Workload{ID: "demo/llama-8b"}, in))
		s.wantWrites(t, &writes, c.writes, c.name)
		if got, err := s.Closed(ctx, "demo/llama-8b", in.ID); got.Policy != c.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", c.name, got.Policy, err, c.want)
		}
	}
	got, err := s.Closed(ctx, "demo/llama-8b", in.ID)
	if d := cmp.Diff(in, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	expires := s.raw(t, ledger.Archive, "demo/llama-8b/"+in.ID).Expires
	if want := in.Closed.Add(ledger.KeepArchive).Truncate(time.Microsecond); !expires.Equal(want) {
		t.Errorf("it is kept until %s, want %s", expires, want)
	}
	for _, id := range []string{"llama-8b-20261101-4", "llama-8b-20261103-9", "llama-8b-20261103-12"} {
		must(t, s.SaveClosed(ctx, incident.Workload{ID: "demo/llama-8b"}, incident.Incident{ID: id}))
	}
	ids, err := s.Archived(ctx)
	want := map[string][]string{"demo/llama-8b": {"llama-8b-20261103-12", "llama-8b-20261103-9", "llama-8b-20261101-4"}}
	ids["demo/llama-8b"] = slices.DeleteFunc(ids["demo/llama-8b"], func(id string) bool { return id == in.ID })
	if d := cmp.Diff(want, ids); d != "" || err != nil {
		t.Errorf("the archive: %v (-want +got):\n%s", err, d)
	}
	// Another workload may have had an incident of the same ID.
	if _, err := s.Closed(ctx, "demo/other", in.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("another workload: %v, want ErrNotFound", err)
	}
}

func underThisSchema(t *testing.T, s *suite) {
	s.create(t, ledger.Workloads, "demo/w", 0, `{"id":"demo/w"}`)
	w, rev := s.mustLoad(t, "demo/w")
	s.mustSave(t, w, rev)
	if w, _ = s.mustLoad(t, "demo/w"); w.Schema != incident.Schema {
		t.Errorf("the body has schema %d, want %d", w.Schema, incident.Schema)
	}
	if got := s.raw(t, ledger.Workloads, "demo/w").Schema; got != incident.Schema {
		t.Errorf("the column has schema %v, want %d", got, incident.Schema)
	}
}

func closed(t *testing.T, s *suite) {
	w := quiet()
	s.mustSave(t, w, ledger.Revision{})
	must(t, s.Close())
	if s.tap.Closed() != 1 {
		t.Errorf("%d collections were closed, want the one that was open", s.tap.Closed())
	}
	if got, _ := s.mustLoad(t, w.ID); got.ID != w.ID {
		t.Errorf("%q", got.ID)
	}
}

// TestAFailedConnectionIsTriedAgain: an instance whose very first call for credentials failed must not stay without a
// ledger for the rest of its life.
func TestAFailedConnectionIsTriedAgain(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/missing.json")
	open := ledger.Firestore("demo", ledger.Database)
	if _, err := open(t.Context(), ledger.Workloads); err == nil {
		t.Fatal("credentials that are not there were good enough")
	}
	t.Setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1") // to open a connection nobody has to listen
	c, err := open(t.Context(), ledger.Workloads)
	if err != nil {
		t.Fatalf("the second try: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestAFailedOpeningIsTriedAgain is the same one level up: a collection that could not be opened is opened at the next
// call.
func TestAFailedOpeningIsTriedAgain(t *testing.T) {
	open, failing := new(ledgertest.Tap).On(memory(t)), true
	l := ledger.New(func(ctx context.Context, name string) (ledger.Collection, error) {
		if failing {
			return nil, errors.New("not now")
		}
		return open(ctx, name)
	})
	w := quiet()
	for _, fails := range []bool{true, false} {
		failing = fails
		_, err := l.Save(t.Context(), w, ledger.Revision{})
		_, _, read := l.Workload(t.Context(), w.ID)
		_, due := l.Due(t.Context(), start)
		_, all := l.All(t.Context())
		for what, err := range map[string]error{"Save": err, "Workload": read, "Due": due, "All": all} {
			if (err != nil) != fails {
				t.Errorf("%s while the store is away (%v): %v", what, fails, err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzDecode reads any bytes as the document of a workload: that never panics, and what can be read can be written and
// is the same then.
func FuzzDecode(f *testing.F) {
	whole, err := json.Marshal(full())
	must(f, err)
	for _, seed := range []string{
		string(frozen(f)), string(whole), "", "{}", "null", "[]", `{"id":1}`, `{"slices":[null,{}],"incident":null}`,
		`{"incident":{"switches":{"restart":"maybe"}}}`, `{"outbox":[{"data":"%%"}]}`, `{"schema":2}`, `{"id":"a","id":"b"}`, "{\"id\":\"\xff\"}",
		`{"budgets":{"restarts":1e99}}`, `{"progress":{"at":"9999-12-31T23:59:59.999999999Z"}}`,
	} {
		f.Add(seed, 1)
		f.Add(seed, incident.Schema)
	}
	f.Add("{}", -1)
	f.Add("{}", 1<<40)
	f.Fuzz(func(t *testing.T, body string, schema int) {
		s := newSuite(t, memory)
		s.create(t, ledger.Workloads, "demo/w", schema, body)
		w, rev, err := s.Workload(t.Context(), "demo/w")
		if err != nil {
			return
		}
		if schema > incident.Schema {
			t.Errorf("schema %d was read", schema)
		}
		w.ID = "demo/w"
		if _, err := s.Save(t.Context(), w, rev); err != nil {
			if fault.IsPermanent(err) {
				return // larger than it was, by what JSON escapes
			}
			t.Fatalf("the document that was read cannot be written: %v", err)
		}
		again, _ := s.mustLoad(t, "demo/w")
		w.Schema = incident.Schema // the written document has this release's schema
		if d := cmp.Diff(w, again, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-read +written and read again):\n%s", d)
		}
	})
}

// together runs f many times at once.
func together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}

func count(flags []bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// quiet is a workload of one Spot slice that trains and has a crew.
func quiet() incident.Workload {
	life := events.Incarnation{Zone: "us-west4-a", ID: "7711", Created: start.Add(-10 * 24 * time.Hour)}
	began := start.Add(-time.Hour)
	w := incident.New("demo", "llama-8b", "tpu")
	give := func(e evidence.Evidence, at time.Time) {
		w, _, _ = incident.Advance(policy.Policy{Name: "night", Switches: policy.Everything()}, w, e, at)
	}
	give(evidence.Read{
		Origin: evidence.Origin{Time: began, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: evidence.Ready, State: "READY",
		Incarnation: life, Directory: "gs://ckpt/llama-8b",
		Facts: evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "abc", Label: "night"},
	}, began)
	give(evidence.Mapped{Origin: evidence.Origin{Time: began, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: life, Group: "t1v-n-3f2a9c01"}, began)
	for _, step := range []int64{48000, 48180} {
		ago := 10 * time.Minute
		if step > 48000 {
			ago = 2 * time.Minute
		}
		give(evidence.Reported{
			Origin: evidence.Origin{Time: start.Add(-ago), Rank: events.RankUser}, Slice: "llama-8b",
			Report: events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: step, CheckpointStep: 48000, Hostname: "t1v-n-3f2a9c01-w-0"},
		}, start.Add(-ago))
	}
	return w
}

// full is a document in which every field is set, to something else each.
func full() incident.Workload {
	var w incident.Workload
	n := 0
	fill(reflect.ValueOf(&w).Elem(), &n)
	w.ID, w.Schema = "demo/full", incident.Schema
	return w
}

// fill sets a value and everything in it.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * 1000001 * time.Microsecond)))
		return
	case policy.Level:
		v.SetInt(int64(*n%2) + 1)
		return
	case policy.Limits:
		v.Set(reflect.ValueOf(policy.Limits{policy.Recreate: fmt.Sprintf("text %d", *n), policy.Restart: "the deployment"}))
		return
	case jsontext.Value:
		v.SetBytes(fmt.Appendf(nil, `{"line":%d}`, *n))
		return
	case []byte:
		v.SetBytes(fmt.Appendf(nil, "bytes %d \x00\xff", *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d <&> \"ü\u2028\n", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) + 1<<53) // more than a float holds
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" { // it is not stored
				fill(v.Field(i), n)
			}
		}
	default:
		panic(fmt.Sprintf("a document holds a %s", v.Type()))
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
