package incident_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestALifeTakesItsFactsWithIt: the life that comes next has none of what was known of the one before, and that one keeps it.
func TestALifeTakesItsFactsWithIt(t *testing.T) {
	w := quiet(true)
	s := &w.Slices[0]
	s.Condition, s.State, s.Used = incident.Gone, "gone", start.Add(-2*time.Hour)
	s.HostsAsked, s.Stop, s.Heard = true, incident.Stop{By: "ann@example.com", At: start.Add(-time.Hour)}, incident.Heard{At: start.Add(-time.Hour)}
	s.Abuse = incident.Abuse{Suspected: true, At: start.Add(-time.Hour), Reported: true}
	s.Notice = incident.Notice{Notice: events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour)}, LastWord: start, InAPI: true, Due: start}
	s.NeverUsable, s.Leased = false, 3
	s.End = incident.End{Reported: true}
	before := *s

	next := life(2)
	next.Created = start // the name is free by then
	read := incident.Read{
		Origin: incident.Origin{Time: start.Add(time.Minute), Rank: events.RankReading}, Slice: s.Name, Zone: next.Zone, Condition: incident.Ready,
		State: "READY", Incarnation: next, Facts: incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec2"},
	}
	w, _, _ = advance(policies["everything"], w, read, start.Add(time.Minute))
	got := w.Slices[0]
	want := incident.Life{
		Incarnation: next, Zone: next.Zone, Facts: read.Facts, SpecZone: next.Zone, Condition: incident.Ready, State: "READY",
		Since: start.Add(time.Minute), Admission: incident.Admitted,
	}
	if d := cmp.Diff(want, got.Life); d != "" {
		t.Errorf("the next life (-want +got):\n%s", d)
	}
	before.Admission = "" // training runs in one life alone
	if *third {           // of a life that is over it keeps less
		before.Life, got.Former = incident.Life{Incarnation: before.Incarnation}, []incident.Life{{Incarnation: got.Former[0].Incarnation}}
	}
	if d := cmp.Diff([]incident.Life{before.Life}, got.Former); d != "" {
		t.Errorf("the lives before (-want +got):\n%s", d)
	}
}

// TestASlotKeepsTheLifeInWhichTrainingMayRun: however many come and go after it, and no other that is older than the last.
func TestASlotKeepsTheLifeInWhichTrainingMayRun(t *testing.T) {
	w := quiet(true)
	w.Crew.LeaseAttempt = 1
	for i := range 5 {
		next := life(10 + i)
		next.Zone = "us-west4-b"
		for _, c := range []incident.Condition{incident.Gone, incident.Ready} {
			read := incident.Read{
				Origin: incident.Origin{Time: start.Add(time.Duration(i)*time.Hour + time.Minute), Rank: events.RankReading}, Slice: w.Slices[0].Name,
				Zone: w.Slices[0].Zone, Condition: c, State: string(c),
			}
			if c == incident.Ready {
				read.Zone, read.Incarnation = next.Zone, next
			}
			w, _, _ = advance(policies["watch"], w, read, read.Time)
		}
		s := w.Slices[0]
		if runs := mayTrainIn(w, s); !s.Incarnation.Same(next) || !runs.Same(life(1)) || len(s.Former) > 2 {
			t.Fatalf("after life %d training may run in %v, and the lives are %v before %v", i, runs, s.Former, s.Incarnation)
		}
	}
}

// TestANoticeIsOfItsLife: one that was written before a life began is of the life before.
func TestANoticeIsOfItsLife(t *testing.T) {
	w := quiet(true)
	began := w.Slices[0].Incarnation.Created
	for name, c := range map[string]struct {
		at    time.Time
		life  events.Incarnation
		known bool
	}{
		"of this life":                        {start, life(1), true},
		"of no life that it names":            {start, events.Incarnation{}, true},
		"of another life":                     {start, life(2), false},
		"of none, from before this one began": {began.Add(-time.Second), events.Incarnation{}, false},
	} {
		got, _, _ := advance(policies["everything"], w, incident.Noticed{
			Origin: incident.Origin{ID: "entry", Time: c.at, Rank: events.RankAudit}, Slice: w.Slices[0].Name, Incarnation: c.life,
			Notice: events.Notice{Status: events.NoticePending, WindowStart: start.Add(3 * time.Hour)},
		}, start)
		if known := got.Notice(w.Slices[0].Name) != nil; known != c.known {
			t.Errorf("%s: known is %v", name, known)
		}
	}
}

// TestWhoDeletedTheLifeBeforeHasGivenUpTheSlice: what we made in its place is gone, and it makes no difference whether anybody was
// told that it waits.
func TestWhoDeletedTheLifeBeforeHasGivenUpTheSlice(t *testing.T) {
	for admission, released := range map[incident.Admission]bool{"": true, incident.LeftToPerson: either(true, false, "closed"), incident.AwaitsAdmission: false} {
		w := quiet(true)
		w.Crew.LeaseAttempt = 1
		s := &w.Slices[0]
		before := s.Incarnation
		s.Incarnation = events.Incarnation{Zone: "us-west4-b", ID: "9000", Created: start.Add(-time.Minute)}
		s.Zone, s.Condition, s.State = "us-west4-b", incident.Gone, "gone"
		admitted(s, before)
		if s.Admission = admission; admission == "" {
			s.Maker = "llama-8b-1"
		}
		w, _, _ = advance(policies["everything"], w, incident.Called{
			Origin: incident.Origin{ID: "late", Time: start.Add(-10 * time.Minute), Rank: events.RankAudit}, Slice: s.Name, Zone: before.Zone,
			Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com",
		}, start)
		if got := w.Slices[0].IsReleased(); got != released {
			t.Errorf("with admission %q it is released: %v, want %v", admission, got, released)
		}
	}
}

// TestNothingWaitsWhereNoLeaseIsOurs: a slice whose deletion did not happen waits to be admitted only where a lease leads.
func TestNothingWaitsWhereNoLeaseIsOurs(t *testing.T) {
	for named, waits := range map[int]bool{0: false, 1: true} {
		w := quiet(true)
		w.Crew.LeaseAttempt = named
		s := &w.Slices[0]
		s.Admission, s.End.Released = incident.AwaitsAdmission, start.Add(-incident.UnreleaseAfter-time.Minute)
		if *third && named == 0 { // its document cannot say so: whether a slice waits follows from the lease
			s.Admission = incident.Admitted
		}
		w, _, _ = advance(policies["everything"], w, learned(w, *s, start)["read ready"], start)
		_, sent, _ := tick(policies["everything"], w, start.Add(time.Minute))
		if got := w.Slices[0]; len(sent) > 0 != waits || got.IsReleased() {
			t.Errorf("with lease %d asked for is %v, released: %v; it waits: %v", named, sent, got.IsReleased(), waits)
		}
	}
}

func TestHeals(t *testing.T) {
	for _, c := range []struct {
		reclaimable bool
		heal        incident.Heal
		want        bool
	}{
		{false, incident.HealsUnlessReclaimable, true},
		{true, incident.HealsUnlessReclaimable, false},
		{false, incident.HealsAlways, true},
		{true, incident.HealsAlways, true},
		{false, incident.HealsNever, false},
		{true, incident.HealsNever, false},
	} {
		if got := (incident.Facts{Reclaimable: c.reclaimable, Healing: c.heal}).Heals(); got != c.want {
			t.Errorf("reclaimable %t, healing %q: heals %t", c.reclaimable, c.heal, got)
		}
	}
}
