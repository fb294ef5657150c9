package checkpoint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
)

// TestTheFirstVerdictHolds creates a verdict twice and reads the first one.
func TestTheFirstVerdictHolds(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	store := checkpoint.NewFiles(dir, time.Now)
	uri := "file://" + dir
	life := events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: "t1v-n-1234"}
	first := events.CrewVerdict{Schema: events.Schema, Attempt: 3, Life: life, Finished: true, Ended: time.Unix(100, 0).UTC(), Reason: "exit code 0"}
	if _, err := checkpoint.ReadVerdict(ctx, store, uri, 3); !errors.Is(err, checkpoint.ErrNotExist) {
		t.Fatalf("before there is one: %v", err)
	}
	if err := checkpoint.CreateVerdict(ctx, store, uri, first); err != nil {
		t.Fatal(err)
	}
	second := first
	second.Finished = false
	if err := checkpoint.CreateVerdict(ctx, store, uri, second); !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("a second one: %v", err)
	}
	got, err := checkpoint.ReadVerdict(ctx, store, uri, 3)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
}

// TestAVerdictIsReadOnlyAsWhatItIs reads objects that are no verdict of the attempt.
func TestAVerdictIsReadOnlyAsWhatItIs(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	store := checkpoint.NewFiles(dir, time.Now)
	uri := "file://" + dir
	for attempt, c := range map[int]struct {
		content string
		want    error
	}{
		1: {`{"attempt":1,"restart":false,"finished":true}`, checkpoint.ErrMalformed}, // of the release before
		2: {`{"schema":2,"attempt":2}`, events.ErrNewer},
		3: {`{"schema":1,"attempt":4,"life":{"slice":"a","incarnation":{}},"restart":false}`, checkpoint.ErrMalformed},
		4: {`not JSON`, checkpoint.ErrMalformed},
		5: {`{"schema":1,"attempt":5,"life":{"slice":"a","incarnation":{}},"restart":true,"finished":true}`, checkpoint.ErrMalformed},
	} {
		if _, err := store.Put(ctx, checkpoint.Join(uri, events.VerdictObject(attempt)), []byte(c.content), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.ReadVerdict(ctx, store, uri, attempt); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.content, err, c.want)
		}
	}
}

// TestALeaseConfirmsOnlyItsOwnVerdict matches verdicts with a lease.
func TestALeaseConfirmsOnlyItsOwnVerdict(t *testing.T) {
	at := func(slice, zone, workers string) events.Admission {
		return events.Admission{Slice: slice, Incarnation: events.Incarnation{Zone: zone}, Workers: workers}
	}
	lease := checkpoint.Lease{Attempt: 3, Admitted: []events.Admission{at("a", "us-west4-a", "w1"), at("b", "us-west4-a", "")}}
	for _, c := range []struct {
		name string
		v    events.CrewVerdict
		want bool
	}{
		{"its attempt and life", events.CrewVerdict{Attempt: 3, Life: at("a", "us-west4-a", "w1")}, true},
		{"workers that the lease does not name", events.CrewVerdict{Attempt: 3, Life: at("b", "us-west4-a", "w9")}, true},
		{"an earlier attempt", events.CrewVerdict{Attempt: 2, Life: at("a", "us-west4-a", "w1")}, false},
		{"a later attempt", events.CrewVerdict{Attempt: 4, Life: at("a", "us-west4-a", "w1")}, false},
		{"workers of another life", events.CrewVerdict{Attempt: 3, Life: at("a", "us-west4-a", "w0")}, false},
		{"another zone", events.CrewVerdict{Attempt: 3, Life: at("a", "us-west4-b", "w1")}, false},
		{"another slice", events.CrewVerdict{Attempt: 3, Life: at("c", "us-west4-a", "w1")}, false},
	} {
		if got := lease.Confirms(c.v); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
