package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider"
)

// sweeps is a ledger into which sweeps write what they found, one after the other.
type sweeps struct {
	*ledger.Ledger

	t      *testing.T
	at     time.Time
	writes int
}

func newSweeps(t *testing.T) *sweeps {
	s := &sweeps{t: t, at: time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)}
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		if c.Write {
			s.writes++
		}
		return nil
	}}
	s.Ledger = ledger.New(tap.On(ledgertest.NewStore().Open))
	return s
}

// in are node pools of a zone or scope.
func in(zone string, names ...string) (all []provider.Leftover) {
	for _, name := range names {
		all = append(all, provider.Leftover{Kind: "node pool", Zone: zone, Name: name})
	}
	return all
}

// sweep saves what is found after a time, and wants these, each with since when it is found and for how long: ZONE NAME HH:MM DURATION.
func (s *sweeps) sweep(after time.Duration, project string, found map[string][]provider.Leftover, unread, zones []string, want ...string) {
	s.t.Helper()
	s.at = s.at.Add(after)
	if _, err := s.SaveLeftovers(s.t.Context(), project, ledger.Sweep{At: s.at, Found: found, Unread: unread, Zones: zones}); err != nil {
		s.t.Fatal(err)
	}
	all, err := s.Leftovers(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, o := range all {
		got = append(got, fmt.Sprintf("%s %s %s %v", o.Zone, o.Name, o.Since.Format("15:04"), o.Seen.Sub(o.Since)))
		if o.Stays() != (o.Seen.Sub(o.Since) >= 2*time.Hour) {
			s.t.Errorf("%+v: it stays: %v", o, o.Stays())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s (-want +left):\n%s", project, diff)
	}
}

type found = map[string][]provider.Leftover

// TestLeftoversAreThoseOfTheLastSweep: of what could not be read, those found before; of a zone that is no longer there, none. Nothing is
// written where there is none.
func TestLeftoversAreThoseOfTheLastSweep(t *testing.T) {
	s := newSweeps(t)
	s.sweep(0, "b", found{"z": nil}, nil, []string{"z"})
	if s.writes != 0 {
		t.Errorf("nothing is left over, and it was written %d times", s.writes)
	}
	s.sweep(0, "b", found{"z": in("z", "1"), "y": in("y", "1")}, nil, []string{"y", "z"}, "y 1 02:00 0s", "z 1 02:00 0s")
	s.sweep(0, "a", found{"z": in("z", "2")}, nil, []string{"z"}, "z 2 02:00 0s", "y 1 02:00 0s", "z 1 02:00 0s")
	const minutes = 15 * time.Minute
	s.sweep(minutes, "b", found{"y": in("y", "1")}, nil, []string{"y", "z"}, "z 2 02:00 0s", "y 1 02:00 15m0s", "z 1 02:00 0s") // z could not be read
	s.sweep(minutes, "b", found{"y": in("y", "1")}, nil, []string{"y"}, "z 2 02:00 0s", "y 1 02:00 30m0s")                      // z is not listed any more
	s.sweep(minutes, "b", found{"y": nil}, nil, []string{"y"}, "z 2 02:00 0s")
	s.sweep(minutes, "a", found{"z": nil}, nil, []string{"z"})
}

// TestSomethingIsLeftOverSinceASweepFoundIt, as long as each one does: neither a sweep that found it gone counts, nor hours without one. What
// is made anew under its name is another one.
func TestSomethingIsLeftOverSinceASweepFoundIt(t *testing.T) {
	s := newSweeps(t)
	zones := []string{"z"}
	there := found{"z": in("z", "1")}
	s.sweep(0, "p", there, nil, zones, "z 1 02:00 0s")
	for i := range 4 {
		s.sweep(30*time.Minute, "p", there, nil, zones, fmt.Sprintf("z 1 02:00 %v", time.Duration(i+1)*30*time.Minute))
	}
	s.sweep(time.Minute, "p", found{"z": nil}, nil, zones)
	s.sweep(time.Minute, "p", there, nil, zones, "z 1 04:02 0s")
	s.sweep(61*time.Minute, "p", there, nil, zones, "z 1 05:03 0s")
	anew := in("z", "1")
	anew[0].Made = time.Date(2026, 11, 12, 5, 13, 0, 0, time.UTC)
	for _, since := range []string{"05:33 0s", "05:33 30m0s", "05:33 1h0m0s"} {
		s.sweep(30*time.Minute, "p", found{"z": anew}, nil, zones, "z 1 "+since)
	}
}

// TestANamespaceThatCannotBeRead, or one kind in it, keeps what was found in it, and is in the way of no other.
func TestANamespaceThatCannotBeRead(t *testing.T) {
	s := newSweeps(t)
	zones := []string{"r/c"}
	both := append(in("r/c/a", "1"), in("r/c/b", "1")...)
	s.sweep(0, "p", found{"r/c": both}, nil, zones, "r/c/a 1 02:00 0s", "r/c/b 1 02:00 0s")
	s.sweep(30*time.Minute, "p", found{"r/c": in("r/c/b", "1")}, []string{"r/c/a"}, zones, "r/c/a 1 02:00 0s", "r/c/b 1 02:00 30m0s")
	s.sweep(30*time.Minute, "p", found{"r/c": nil}, []string{"r/c/a"}, zones, "r/c/a 1 02:00 0s")
	s.sweep(0, "p", found{"r/c": both}, nil, zones, "r/c/a 1 02:00 1h0m0s", "r/c/b 1 03:00 0s")
	s.sweep(30*time.Minute, "p", found{"r/c": nil}, []string{provider.Part("r/c/a", "Workload"), provider.Part("r/c/b", "node pool")}, zones, "r/c/b 1 03:00 0s")
}

// TestNoNoiseHidesWhatWasFoundBefore: a zone keeps the names of 100, and counts the others.
func TestNoNoiseHidesWhatWasFoundBefore(t *testing.T) {
	s := newSweeps(t)
	s.sweep(0, "p", found{"z": in("z", "zzz")}, nil, []string{"z"}, "z zzz 02:00 0s")
	noise := in("z", "zzz")
	for i := range 150 {
		noise = append(noise, in("z", fmt.Sprintf("n%03d", i))...)
	}
	for range 2 {
		kept, err := s.SaveLeftovers(t.Context(), "p", ledger.Sweep{At: s.at.Add(time.Minute), Found: found{"z": noise}, Zones: []string{"z"}})
		if err != nil || len(kept) != 100 || kept[0].Name != "zzz" || kept[0].More != 0 || kept[99].Name != "n098" || kept[99].More != 51 {
			t.Fatalf("%d kept, the first %+v, the last %+v: %v", len(kept), kept[0], kept[len(kept)-1], err)
		}
	}
	s.sweep(2*time.Minute, "p", found{"z": in("z", "n098", "zzz")}, nil, []string{"z"}, "z zzz 02:00 2m0s", "z n098 02:01 1m0s")
	if all, err := s.Leftovers(t.Context()); err != nil || all[1].More != 0 {
		t.Errorf("%+v: %v", all, err)
	}
}

// TestASweepThatIsNotStoredChangesNothing: readers share the value that was read before.
func TestASweepThatIsNotStoredChangesNothing(t *testing.T) {
	down := errors.New("the ledger is down")
	broken := false
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		if c.Write && broken {
			return down
		}
		return nil
	}}
	l := ledger.New(tap.On(ledgertest.NewStore().Open))
	s := ledger.Sweep{At: time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC), Found: found{"a": in("a", "one")}, Zones: []string{"a"}}
	if _, err := l.SaveLeftovers(t.Context(), "demo", s); err != nil {
		t.Fatal(err)
	}
	before, err := l.Leftovers(t.Context())
	if err != nil || len(before) != 1 {
		t.Fatalf("%v, %v", before, err)
	}
	broken, s.Found = true, found{"a": nil}
	if _, err := l.SaveLeftovers(t.Context(), "demo", s); !errors.Is(err, down) {
		t.Errorf("the write ends with %v", err)
	}
	after, err := l.Leftovers(t.Context())
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("after a sweep that was not stored (-before +after): %v\n%s", err, diff)
	}
}
