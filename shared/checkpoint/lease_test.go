package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// life is an incarnation of the slice llama-8b.
func life(id string) events.Incarnation {
	return events.Incarnation{Zone: "us-west4-a", ID: id, Created: start.Add(-time.Hour)}
}

// lease is the lease of an epoch and attempt, in which one life of the slice is admitted.
func lease(epoch int64, attempt int, id string) Lease {
	return Lease{
		Schema: events.Schema, Workload: "demo/llama-8b", Incident: "3f2a9c", Epoch: epoch, Attempt: attempt,
		Admitted: []events.Admission{{Slice: "llama-8b", Incarnation: life(id), Workers: "t1v-n-" + id}},
		Written:  start, By: "recovery",
	}
}

func TestWriteLease(t *testing.T) {
	t.Parallel()
	two := func(epoch int64, attempt int, order ...int) Lease {
		l := lease(epoch, attempt, "7711")
		both := []events.Admission{l.Admitted[0], {Slice: "llama-8b-1", Workers: "t1v-n-99"}}
		l.Admitted = nil
		for _, i := range order {
			l.Admitted = append(l.Admitted, both[i])
		}
		return l
	}
	foreign := lease(1, 1, "7711")
	foreign.Workload = "demo/other"
	crews := lease(0, 3, "7711")
	crews.Workload, crews.Incident, crews.By = "demo/a-node", "", "crew"
	abroad := crews
	abroad.Workload = "prod/llama-8b"
	elsewhere := lease(4, 4, "7711")
	elsewhere.Admitted = []events.Admission{{Slice: "another", Incarnation: life("7711")}}
	namesake := lease(4, 4, "7712")
	namesake.Admitted = []events.Admission{{Slice: "llama-8b", Incarnation: events.Incarnation{Zone: "us-west4-b", ID: "7712", Created: start}}}
	for _, tt := range []struct {
		name  string
		first any // a Lease, or the object as it is
		then  Lease
		want  error
	}{
		{"a newer epoch wins", lease(4, 2, "7711"), lease(5, 3, "7712"), nil},
		{"a newer epoch wins with an older attempt", lease(4, 2, "7711"), lease(5, 1, "7712"), nil},
		{"a newer attempt of the same epoch wins", lease(4, 2, "7711"), lease(4, 3, "7711"), nil},
		{"an older epoch is refused", lease(4, 2, "7711"), lease(3, 3, "7712"), ErrStale},
		{"an older attempt of the same epoch is refused", lease(4, 2, "7711"), lease(4, 1, "7712"), ErrStale},
		{"another one of the same epoch and attempt is refused", lease(4, 2, "7711"), lease(4, 2, "7712"), ErrStale},
		{"Pitstop takes over from a crew", lease(0, 7, "7711"), lease(1, 1, "7711"), nil},
		{"a crew takes nothing over from Pitstop", lease(1, 1, "7711"), lease(0, 7, "7711"), ErrStale},
		{"a lease that ends all training", lease(4, 2, "7711"), two(5, 2), nil},
		{"the order of slices means nothing", two(4, 2, 0, 1), two(4, 2, 1, 0), nil},
		{"another workload's lease stays", foreign, lease(9, 9, "7711"), ErrForeign},
		{"a crew's own lease gives way to Pitstop's for its slice", crews, lease(4, 4, "7712"), nil},
		{"a crew's own lease of another slice stays", crews, elsewhere, ErrForeign},
		{"a crew's own lease of a slice of that name in another zone stays", crews, namesake, ErrForeign},
		{"a crew's own lease of a slice of that name in another project stays", abroad, lease(4, 4, "7712"), ErrForeign},
		{"a torn one of another project stays", `{"schema": 1, "workload": "prod/llama-8b", "epoch": 0}`, lease(4, 2, "7711"), ErrForeign},
		{"a crew's own lease gives way to no other crew's", crews, lease(0, 9, "7711"), ErrForeign},
		{"a newer release's lease stays", `{"schema": 2, "workload": ["x"]}`, lease(9, 9, "7711"), events.ErrNewer},
		{"an epoch beyond belief stays", `{"schema": 1, "workload": "demo/llama-8b", "epoch": 1000000001, "attempt": 1}`, lease(9, 9, "7711"), ErrBeyondBelief},
		{"an attempt beyond belief stays", `{"schema": 1, "workload": "demo/llama-8b", "epoch": 1, "attempt": 1000001}`, lease(9, 9, "7711"), ErrBeyondBelief},
		{"a schema beyond belief stays", `{"schema": 1001, "workload": "demo/llama-8b"}`, lease(9, 9, "7711"), ErrBeyondBelief},
		{"another's lease beyond belief stays", `{"schema": 1, "workload": "demo/other", "epoch": 1000000001}`, lease(9, 9, "7711"), ErrForeign},
		{"the highest plausible number is newer", lease(MaxLeaseEpoch, events.MaxAttempt, "7711"), lease(9, 9, "7711"), ErrStale},
		{"an object that is not JSON is replaced", `{"schema": 1`, lease(1, 1, "7711"), nil},
		{"an empty object is replaced", ``, lease(1, 1, "7711"), nil},
		{"an object that is not a lease is replaced", `{"schema": 1, "epoch": "four"}`, lease(1, 1, "7711"), nil},
		{
			"a torn lease is replaced",
			`{"schema": 1, "workload": "demo/llama-8b", "epoch": 4, "attempt": 2}`, lease(4, 2, "7711"), nil,
		},
		{
			"a torn newer lease stays",
			`{"schema": 1, "workload": "demo/llama-8b", "epoch": 5, "attempt": 2}`, lease(4, 2, "7711"), ErrStale,
		},
		{
			"a torn lease of another workload stays",
			`{"schema": 1, "workload": "demo/other", "epoch": 1}`, lease(4, 2, "7711"), ErrForeign,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds {
				r := k.make(t)
				var before []byte
				switch first := tt.first.(type) {
				case Lease:
					must(t, WriteLease(t.Context(), r.store, r.dir, first))
				case string:
					before = []byte(first)
					r.seed(t, LeaseName, before, start)
				}
				o, err := r.store.Get(t.Context(), Join(r.dir, LeaseName))
				must(t, err)
				err = WriteLease(t.Context(), r.store, r.dir, tt.then)
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Fatalf("%s: error %v, want %v", k.name, err, tt.want)
				}
				if errors.Is(tt.want, ErrForeign) {
					wantSaid(t, err, LeaseName, "this is "+tt.then.Workload, "a directory of its own", "delete this object")
				}
				if err != nil {
					after, gerr := r.store.Get(t.Context(), Join(r.dir, LeaseName))
					if gerr != nil || after.Generation != o.Generation || strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: refused with %q, and generation %d became %d, %v", k.name, err, o.Generation, after.Generation, gerr)
					}
					continue
				}
				got, _, err := ReadLease(t.Context(), r.store, r.dir)
				if err != nil || !got.same(tt.then) {
					t.Errorf("%s: read %+v, %v; want %+v", k.name, got, err, tt.then)
				}
			}
		})
	}
}

// TestAForeignLeaseIsKnownByProjectAndWorkload compares a lease with a training. Our slice is llama-8b in us-west4-a.
func TestAForeignLeaseIsKnownByProjectAndWorkload(t *testing.T) {
	t.Parallel()
	ours := events.Admission{Slice: "llama-8b", Incarnation: events.Incarnation{Zone: "us-west4-a"}}
	for _, tt := range []struct {
		name, theirs, workload string
		epoch                  int64
		certain                bool
		slice, zone            string
		want                   bool
	}{
		{"the same name", "demo/llama", "demo/llama", 4, true, "llama-8b", "us-west4-a", false},
		{"the same name, of slices that we do not have", "demo/llama", "demo/llama", 4, true, "other", "us-east5-a", false},
		{"no name", "", "demo/llama", 4, true, "llama-8b", "us-west4-a", false},
		{"Pitstop's, of another workload", "demo/other", "demo/llama", 4, true, "llama-8b", "us-west4-a", true},
		{"Pitstop's, of another project", "dev/llama", "demo/llama", 4, true, "llama-8b", "us-west4-a", true},
		{"a crew's, named after our slice", "demo/llama-8b", "demo/llama", 0, true, "llama-8b", "us-west4-a", false},
		{"a crew's, named after our slice in another project", "dev/llama-8b", "demo/llama", 0, true, "llama-8b", "us-west4-a", true},
		{"a crew's, of that slice's name in another zone", "demo/llama-8b", "demo/llama", 0, true, "llama-8b", "us-west4-b", true},
		{"a crew's, of another slice", "demo/other", "demo/llama", 0, true, "other", "us-west4-a", true},
		{"Pitstop's, and we know our machine alone", "demo/llama", "demo/llama-8b", 4, false, "llama-8b", "us-west4-a", false},
		{"a crew's, and we know our machine alone", "demo/before", "demo/llama-8b", 0, false, "before", "us-west4-a", false},
		{"of another project, and we know our machine alone", "dev/llama", "demo/llama-8b", 4, false, "llama-8b", "us-west4-a", true},
		{"of a project whose name begins alike", "demo-2/llama", "demo/llama-8b", 4, false, "llama-8b", "us-west4-a", true},
	} {
		l := Lease{Workload: tt.theirs, Epoch: tt.epoch, Admitted: []events.Admission{{Slice: tt.slice, Incarnation: events.Incarnation{Zone: tt.zone, ID: "7711"}}}}
		if got := l.Foreign(tt.workload, tt.certain, ours); got != tt.want {
			t.Errorf("%s: foreign %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestLeaseReadsAsItWasWritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		_, _, err := ReadLease(t.Context(), r.store, r.dir)
		wantErr(t, err, ErrNotExist)
		want := lease(4, 2, "7711")
		want.Written = start.Add(123456789 * time.Nanosecond)
		must(t, WriteLease(t.Context(), r.store, r.dir, want))
		got, generation, err := ReadLease(t.Context(), r.store, r.dir)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, the lease differs (-want +got):\n%s", err, diff)
		}
		// The same once more, by somebody else and later: a success that writes nothing.
		again := want
		again.By, again.Written = "patrol", start.Add(time.Hour)
		must(t, WriteLease(t.Context(), r.store, r.dir, again))
		if got, g, err := ReadLease(t.Context(), r.store, r.dir); err != nil || g != generation || got.By != "recovery" {
			t.Errorf("generation %d became %d by %s, %v", generation, g, got.By, err)
		}
		r.clock.set(start.Add(time.Minute))
		r.seed(t, LeaseName, []byte(`{"schema": 2}`), start.Add(time.Minute))
		if _, _, err := ReadLease(t.Context(), r.store, r.dir); !errors.Is(err, events.ErrNewer) {
			t.Errorf("a newer release's lease gives %v", err)
		}
		r.seed(t, LeaseName, []byte("\x00"), start.Add(2*time.Minute))
		if _, _, err := ReadLease(t.Context(), r.store, r.dir); !errors.Is(err, ErrMalformed) {
			t.Errorf("a malformed lease gives %v", err)
		}
	})
}

func TestWriteLeaseRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	for name, spoil := range map[string]func(*Lease){
		"workload is missing":             func(l *Lease) { l.Workload = "" },
		"attempt 0: the first is 1":       func(l *Lease) { l.Attempt = 0 },
		"epoch -1: the first is 0":        func(l *Lease) { l.Epoch = -1 },
		"written is missing":              func(l *Lease) { l.Written = time.Time{} },
		`slice "llama-8b" is named twice`: func(l *Lease) { l.Admitted = append(l.Admitted, l.Admitted[0]) },
		`slice "" has no incarnation`:     func(l *Lease) { l.Admitted[0].Slice = "" },
		`slice "llama-8b" has no incarnation; admitt`: func(l *Lease) {
			l.Admitted = []events.Admission{{Slice: "llama-8b"}, {Slice: "z"}}
		},
	} {
		l := lease(1, 1, "7711")
		spoil(&l)
		err := WriteLease(t.Context(), r.store, r.dir, l)
		wantErr(t, err, ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %s", err, name)
		}
	}
	if n := r.server.Calls(buckettest.MethodInsert); n != 0 {
		t.Errorf("%d writes of a malformed lease", n)
	}
}

func TestWriteLeaseThroughFailures(t *testing.T) {
	t.Parallel()
	insert, get := buckettest.MethodInsert, buckettest.MethodGet
	for _, tt := range []struct {
		name   string
		faults []buckettest.Fault
		want   error
		there  bool
		writes int
	}{
		{"an answer that is lost after the write", []buckettest.Fault{{Method: insert, LoseAnswer: true}}, nil, true, 1},
		{"a write that fails is left for redelivery", []buckettest.Fault{{Method: insert, Status: 503}}, ErrTransient, false, 1},
		{"a conflict decides again", []buckettest.Fault{{Method: insert, Status: 412, Times: 3}}, nil, true, 4},
		{"endless conflicts end", []buckettest.Fault{{Method: insert, Status: 412, Times: 100}}, ErrConflict, false, maxTries},
		{"no permission to write", []buckettest.Fault{{Method: insert, Status: 403}}, ErrPermission, false, 1},
		{"no permission to read", []buckettest.Fault{{Method: get, Status: 403}}, ErrPermission, false, 0},
		{"no reading, no write", []buckettest.Fault{{Method: get, Status: 503}}, ErrTransient, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds[:2] {
				r := k.make(t)
				for _, f := range tt.faults {
					r.server.Inject(f)
				}
				wantErr(t, WriteLease(t.Context(), r.store, r.dir, lease(1, 1, "7711")), tt.want)
				if n := r.server.Calls(insert); n != tt.writes {
					t.Errorf("%s: %d writes, want %d", k.name, n, tt.writes)
				}
				if _, _, ok := r.server.Get("ckpt", "llama-8b/"+LeaseName); ok != tt.there {
					t.Errorf("%s: the lease is there: %v, want %v", k.name, ok, tt.there)
				}
			}
		})
	}
}

// TestWriteLeaseRaces lets writers of the same epoch and attempt admit different lives: exactly one may win, or two
// lives would train.
func TestWriteLeaseRaces(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		for epoch := range int64(3) {
			var (
				wg   sync.WaitGroup
				mu   sync.Mutex
				wins []string
			)
			for i := range 4 {
				id := fmt.Sprintf("%d-%d", epoch, i)
				for range 2 { // each of them is delivered twice
					wg.Go(func() {
						err := WriteLease(t.Context(), r.store, r.dir, lease(epoch, 1, id))
						if err != nil {
							if !errors.Is(err, ErrStale) {
								t.Errorf("error %v, want %v", err, ErrStale)
							}
							return
						}
						mu.Lock()
						defer mu.Unlock()
						wins = append(wins, id)
					})
				}
			}
			wg.Wait()
			if len(wins) != 2 || wins[0] != wins[1] {
				t.Errorf("epoch %d: %v won, want one lease twice", epoch, wins)
			}
			l, _, err := ReadLease(t.Context(), r.store, r.dir)
			if err != nil || l.Admitted[0].Incarnation.ID != wins[0] {
				t.Errorf("epoch %d: %v is in place, %v; %v won", epoch, l.Admitted, err, wins)
			}
		}
	})
}

// TestWriteLeaseEndsWithTheNewest lets writers of different epochs race: whichever comes last, the newest lease stays.
func TestWriteLeaseEndsWithTheNewest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		var wg sync.WaitGroup
		for epoch := range int64(6) {
			wg.Go(func() {
				err := WriteLease(t.Context(), r.store, r.dir, lease(epoch, 1, fmt.Sprint(epoch)))
				if err != nil && !errors.Is(err, ErrStale) {
					t.Errorf("epoch %d: %v", epoch, err)
				}
			})
		}
		wg.Wait()
		if l, _, err := ReadLease(t.Context(), r.store, r.dir); err != nil || l.Epoch != 5 {
			t.Errorf("epoch %d is in place, %v; want 5", l.Epoch, err)
		}
	})
}

func TestLeaseAdmits(t *testing.T) {
	t.Parallel()
	l := Lease{Attempt: 3, Admitted: []events.Admission{
		{Slice: "full", Incarnation: life("7711"), Workers: "t1v-n-7711"},
		{Slice: "created", Incarnation: events.Incarnation{Zone: "us-west4-a", Created: start}, Workers: "t1v-n-2"},
		{Slice: "workers", Workers: "t1v-n-3"},
		{Slice: "nothing", Incarnation: events.Incarnation{ID: "5"}},
	}}
	id := func(id string) events.Incarnation { return events.Incarnation{ID: id} }
	for _, tt := range []struct {
		name    string
		slice   string
		inc     events.Incarnation
		workers string
		attempt int
		want    bool
	}{
		{"the very life", "full", life("7711"), "t1v-n-7711", 3, true},
		{"one that has no attempt yet", "full", life("7711"), "", 0, true},
		{"an older attempt", "full", life("7711"), "t1v-n-7711", 2, false},
		{"a newer attempt", "full", life("7711"), "t1v-n-7711", 4, false},
		{"another slice", "other", life("7711"), "t1v-n-7711", 3, false},
		{"no slice", "", life("7711"), "t1v-n-7711", 3, false},
		{"another life", "full", life("7712"), "t1v-n-7711", 3, false},
		{"the ID alone", "full", id("7711"), "", 3, true},
		{"another ID alone", "full", id("7712"), "t1v-n-7711", 3, false},
		{"the ID in another zone", "full", events.Incarnation{ID: "7711", Zone: "us-west4-b"}, "", 3, false},
		{"the workers alone", "full", events.Incarnation{}, "t1v-n-7711", 3, true},
		{"other workers alone", "full", events.Incarnation{}, "t1v-n-7712", 3, false},
		{"nothing known of itself", "full", events.Incarnation{}, "", 3, false},
		{"the creation time", "created", events.Incarnation{ID: "9", Created: start.In(time.FixedZone("", 3600))}, "", 3, true},
		{"another creation time", "created", events.Incarnation{Created: start.Add(1)}, "t1v-n-2", 3, false},
		{"the workers where the lease knows nothing else", "workers", life("7711"), "t1v-n-3", 3, true},
		{"other workers", "workers", life("7711"), "t1v-n-4", 3, false},
		{"no workers", "workers", life("7711"), "", 3, false},
		{"no workers on either side", "nothing", events.Incarnation{}, "", 3, false},
	} {
		if got := l.Admits(tt.slice, tt.inc, tt.workers, tt.attempt); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if (Lease{}).Admits("", events.Incarnation{}, "", 0) {
		t.Error("a lease that says nothing admits")
	}
}

func crewRequest(save string) events.CrewRequest {
	return events.CrewRequest{
		Schema: events.Schema, SaveID: save, Workload: "demo/llama-8b", Incident: "3f2a9c", Action: events.ActionSave,
		Mode: events.SaveNatural, By: start.Add(time.Hour),
	}
}

func TestWriteRequest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		ctx, uri := t.Context(), Join(r.dir, RequestName)
		_, err := ReadRequest(ctx, r.store, r.dir)
		wantErr(t, err, ErrNotExist)
		must(t, WriteRequest(ctx, r.store, r.dir, crewRequest("a"), start))
		got, err := ReadRequest(ctx, r.store, r.dir)
		if diff := cmp.Diff(crewRequest("a"), got); err != nil || diff != "" {
			t.Errorf("%v, the request differs (-want +got):\n%s", err, diff)
		}
		first, err := r.store.Get(ctx, uri)
		must(t, err)
		again := crewRequest("a")
		again.By = again.By.Add(time.Hour)
		must(t, WriteRequest(ctx, r.store, r.dir, again, start))
		if o, err := r.store.Get(ctx, uri); err != nil || o.Generation != first.Generation {
			t.Errorf("generation %d became %d, %v", first.Generation, o.Generation, err)
		}
		must(t, WriteRequest(ctx, r.store, r.dir, crewRequest("b"), start))
		if got, err := ReadRequest(ctx, r.store, r.dir); err != nil || got.SaveID != "b" {
			t.Errorf("read %s, %v; want b", got.SaveID, err)
		}
		r.seed(t, RequestName, []byte("{"), start.Add(time.Minute))
		if _, err := ReadRequest(ctx, r.store, r.dir); !errors.Is(err, ErrMalformed) {
			t.Errorf("a malformed request gives %v", err)
		}
		must(t, WriteRequest(ctx, r.store, r.dir, crewRequest("c"), start))
		r.seed(t, RequestName, []byte(`{"schema":2,"save_id":{}}`), start.Add(2*time.Minute))
		if _, err := ReadRequest(ctx, r.store, r.dir); !errors.Is(err, events.ErrNewer) {
			t.Errorf("a newer release's request gives %v", err)
		}
		if err := WriteRequest(ctx, r.store, r.dir, crewRequest("d"), start); !errors.Is(err, events.ErrNewer) {
			t.Errorf("replacing a newer release's request gives %v", err)
		}
		wantErr(t, WriteRequest(ctx, r.store, r.dir, events.CrewRequest{}, start), ErrInvalid)
	})
}

// TestARequestOfAnotherWorkloadStays until its deadline: its crew may still save for it.
func TestARequestOfAnotherWorkloadStays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, of string
		by       time.Time
		want     error
	}{
		{"our own", "demo/llama-8b", start.Add(time.Hour), nil},
		{"another workload's", "demo/other", start.Add(time.Hour), ErrForeign},
		{"another project's", "prod/llama-8b", start.Add(time.Hour), ErrForeign},
		{"another workload's, without a deadline", "demo/other", time.Time{}, ErrForeign},
		{"another workload's, whose deadline is over", "demo/other", start.Add(-time.Second), nil},
		{"nobody's", "", start.Add(time.Hour), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds {
				r := k.make(t)
				theirs := crewRequest("theirs")
				theirs.Workload, theirs.By = tt.of, tt.by
				must(t, WriteRequest(t.Context(), r.store, r.dir, theirs, start))
				err := WriteRequest(t.Context(), r.store, r.dir, crewRequest("ours"), start)
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("%s: error %v, want %v", k.name, err, tt.want)
				}
				id := "ours"
				if tt.want != nil {
					id = "theirs"
					wantSaid(t, err, RequestName, tt.of, "this is demo/llama-8b", "a directory of its own", "delete this object")
				}
				if got, err := ReadRequest(t.Context(), r.store, r.dir); err != nil || got.SaveID != id {
					t.Errorf("%s: the request is %s, %v; want %s", k.name, got.SaveID, err, id)
				}
			}
		})
	}
}

// wantSaid checks that an error says all of these, in one line.
func wantSaid(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is not said in one line: %v", word, err)
		}
	}
}

func TestWriteRequestThroughALostAnswer(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	r.server.Inject(buckettest.Fault{Method: buckettest.MethodInsert, LoseAnswer: true})
	if err := WriteRequest(t.Context(), r.store, r.dir, crewRequest("a"), start); err != nil {
		t.Error(err)
	}
	if n := r.server.Calls(buckettest.MethodInsert); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func FuzzLease(f *testing.F) {
	valid, err := json.Marshal(lease(4, 2, "7711"))
	must(f, err)
	for _, data := range [][]byte{
		valid, bytes.Replace(valid, []byte(`"schema":1`), []byte(`"schema":2`), 1), valid[:len(valid)/2], nil,
		[]byte(`{}`), []byte(`[]`),
		[]byte(`{"schema":1,"epoch":-1,"admitted":[{"slice":"a"},{"slice":"a"}]}`),
		[]byte(`{"schema":1e99}`), []byte(`{"schema":1,"schema":1}`),
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := DecodeLease(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, events.ErrNewer) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("a wrong lease was read: %v", err)
		}
		for _, a := range l.Admitted {
			if !l.Admits(a.Slice, a.Incarnation, a.Workers, l.Attempt) {
				t.Errorf("%+v does not admit %+v", l, a)
			}
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatalf("a lease that was read cannot be written: %v", err)
		}
		if l2, err := DecodeLease(again); err != nil || !l2.same(l) {
			t.Errorf("read %+v, written and read again %+v, %v", l, l2, err)
		}
	})
}

func FuzzRequest(f *testing.F) {
	valid, err := json.Marshal(crewRequest("a"))
	must(f, err)
	for _, data := range [][]byte{
		valid, bytes.Replace(valid, []byte(`"schema":1`), []byte(`"schema":2`), 1), valid[:len(valid)/2], nil,
		[]byte(`{}`), []byte("null"),
		[]byte(`{"schema":1,"save_id":"a","action":"delete","mode":"natural"}`),
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRequest(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, events.ErrNewer) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if r.SaveID == "" || r.Action != events.ActionSave {
			t.Errorf("a wrong request was read: %+v", r)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("a request that was read cannot be written: %v", err)
		}
		if r2, err := decodeRequest(again); err != nil || !r2.By.Equal(r.By) || r2.SaveID != r.SaveID {
			t.Errorf("read %+v, written and read again %+v, %v", r, r2, err)
		}
	})
}

func FuzzVerdict(f *testing.F) {
	for _, data := range []string{
		`{"schema":1,"attempt":3,"life":{"slice":"a","incarnation":{"zone":"z"},"workers":"w"},"restart":false,"finished":true}`,
		`{"schema":1,"attempt":3,"life":{"slice":"a","incarnation":{}},"restart":true,"finished":true}`,
		`{"attempt":1,"restart":true,"after":5000000000}`, `{"schema":2}`, `{}`, `null`, ``,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decodeVerdict(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, events.ErrNewer) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if v.Attempt < 1 || v.Finished && v.GaveUp() {
			t.Errorf("a wrong verdict was read: %+v", v)
		}
		mine := Lease{Attempt: v.Attempt, Admitted: []events.Admission{v.Life}}
		next := Lease{Attempt: v.Attempt + 1, Admitted: mine.Admitted}
		if !mine.Confirms(v) || next.Confirms(v) {
			t.Errorf("%+v: its lease confirms it: %v, the next one: %v", v, mine.Confirms(v), next.Confirms(v))
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("a verdict that was read cannot be written: %v", err)
		}
		if v2, err := decodeVerdict(again); err != nil || v2.Attempt != v.Attempt || v2.Finished != v.Finished || !v2.Ended.Equal(v.Ended) {
			t.Errorf("read %+v, written and read again %+v, %v", v, v2, err)
		}
	})
}

// TestOverruleLease replaces, on a person's order, only an implausible lease: not another workload's lease, not one of a
// newer release, and not one written since the order.
func TestOverruleLease(t *testing.T) {
	t.Parallel()
	const doubted = `{"schema": 1, "workload": "demo/llama-8b", "epoch": 9000000000000000000, "attempt": 1}`
	for name, c := range map[string]struct {
		first string
		since int64
		want  error
	}{
		"an epoch beyond belief":    {first: doubted},
		"an attempt beyond belief":  {first: `{"schema": 1, "workload": "demo/llama-8b", "epoch": 1, "attempt": 9000000000000000000}`},
		"a schema beyond belief":    {first: `{"schema": 9000000000000000000, "workload": ["x"]}`},
		"written anew meanwhile":    {first: doubted, since: 1, want: ErrOvertaken},
		"of another workload":       {first: `{"schema": 1, "workload": "demo/other", "epoch": 9000000000000000000}`, want: ErrForeign},
		"of a newer release":        {first: `{"schema": 2}`, want: events.ErrNewer},
		"newer, and to be believed": {first: `{"schema": 1, "workload": "demo/llama-8b", "epoch": 10, "attempt": 1}`, want: ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r rig) {
				t.Helper()
				r.seed(t, LeaseName, []byte(c.first), start)
				o, err := r.store.Get(t.Context(), Join(r.dir, LeaseName))
				must(t, err)
				err = OverruleLease(t.Context(), r.store, r.dir, lease(4, 2, "7711"), o.Generation-c.since)
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Fatalf("error %v, want %v", err, c.want)
				}
				got, _, err := ReadLease(t.Context(), r.store, r.dir)
				if replaced := err == nil && got.same(lease(4, 2, "7711")); replaced != (c.want == nil) {
					t.Errorf("replaced: %t; %+v, %v", replaced, got, err)
				}
			})
		})
	}
}
