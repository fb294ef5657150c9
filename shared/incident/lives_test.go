package incident_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestALifeTakesItsFactsWithIt: the life that comes next has none of what was known of the one before.
func TestALifeTakesItsFactsWithIt(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	l := &n.w.Slices[0].Life
	last := l.Incarnation
	l.Condition, l.State, l.Used, l.Over, l.HostsAsked, l.Cause, l.Failed = evidence.Gone, "gone", start.Add(-2*time.Hour), start, true, events.CauseCrash, start
	l.Stop, l.Heard = incident.Stop{By: ann.By, At: start.Add(-time.Hour)}, incident.Heard{At: start.Add(-time.Hour)}
	l.Suspected, l.SuspectedAt, l.EndedBy, l.Released = true, start.Add(-time.Hour), "before", start
	l.Notice = incident.Notice{Notice: events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour)}, LastWord: start, InAPI: true, Due: start}
	n.now = n.now.Add(time.Minute)
	next := events.Incarnation{Zone: "us-west4-a", ID: "8000", Created: start.Add(time.Second)}
	e := n.read(&n.w.Slices[0], evidence.Ready, next)
	e.Facts = evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "spec2"}
	n.give(e)
	want := incident.Life{Incarnation: next, Zone: next.Zone, Facts: e.Facts, SpecZone: next.Zone, Condition: evidence.Ready, State: "READY", Since: n.now, Read: n.now, Standing: next.Created}
	if got := n.w.Slices[0]; !reflect.DeepEqual(got.Life, want) || len(got.Former) != 1 || !got.Former[0].Incarnation.Same(last) {
		t.Errorf("the next life is %+v, want %+v; before it %+v", got.Life, want, got.Former)
	}
}

// TestASlotKeepsTheLifeInWhichTrainingMayRun: however many come and go after it, and few others.
func TestASlotKeepsTheLifeInWhichTrainingMayRun(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a").under("watch").with(led)
	first := n.w.Slices[0].Incarnation
	for i := range 5 {
		n.now = n.now.Add(time.Hour)
		next := events.Incarnation{Zone: "us-west4-b", ID: fmt.Sprint(9000 + i), Created: n.now.Add(-time.Minute)}
		n.play("read gone")
		n.give(n.read(&n.w.Slices[0], evidence.Ready, next))
		if s := n.w.Slices[0]; !s.Incarnation.Same(next) || !n.w.AdmittedIn("a").Same(first) || len(s.Former) > 2 {
			t.Fatalf("after life %d training may run in %v, and the lives are %v before %v", i, n.w.AdmittedIn("a"), s.Former, s.Incarnation)
		}
	}
}

// TestANoticeIsOfItsLife: one that was written before a life began is of the life before.
func TestANoticeIsOfItsLife(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago   time.Duration
		id    string
		known bool
	}{
		"of this life": {0, "7711", true}, "of no life that it names": {0, "", true}, "of another life": {0, "7712", false},
		"of none, from before this one began": {201 * time.Hour, "", false},
	} {
		n := newStory(t, true, "a")
		e := evidence.Noticed{Origin: n.log(), Slice: "a", Notice: notices["moved"]}
		if e.Time = n.now.Add(-c.ago); c.id != "" {
			e.Incarnation = n.w.Slices[0].Incarnation
			e.Incarnation.ID = c.id
		}
		if n.give(e); (n.w.Notice("a") != nil) != c.known {
			t.Errorf("%s: known is %v", name, !c.known)
		}
	}
}

// TestWhoDeletedTheLifeBeforeHasGivenUpTheSlice: what was made in its place is gone. What its owner has made since is theirs.
func TestWhoDeletedTheLifeBeforeHasGivenUpTheSlice(t *testing.T) {
	t.Parallel()
	for maker, released := range map[string]bool{"llama-8b-1": true, "": false} {
		n := newStory(t, true, "a").with(led)
		s := &n.w.Slices[0]
		last := s.Life
		last.Condition = evidence.Gone
		s.Former, s.Incarnation = []incident.Life{last}, events.Incarnation{Zone: "us-west4-b", ID: "9000", Created: start.Add(-time.Minute)}
		s.Zone, s.Condition, s.State, s.Maker = "us-west4-b", evidence.Gone, "gone", maker
		n.give(evidence.Called{
			Origin: evidence.Origin{ID: "entry", Time: start.Add(-10 * time.Minute), Rank: events.RankAudit}, Slice: "a", Zone: last.Zone, Act: events.ActDeleted, Principal: ann.By,
		})
		if n.w.Slices[0].IsReleased() != released {
			t.Errorf("made by %q it is released: %v, want %v", maker, !released, released)
		}
	}
}

// TestOnlyTheProviderHealsItsOwn: what cannot be taken back, unless the slice itself says otherwise.
func TestOnlyTheProviderHealsItsOwn(t *testing.T) {
	t.Parallel()
	for heal, want := range map[evidence.Heal][2]bool{evidence.HealsUnlessReclaimable: {true, false}, evidence.HealsAlways: {true, true}, evidence.HealsNever: {}} {
		if got := [2]bool{evidence.Facts{Healing: heal}.Heals(), evidence.Facts{Healing: heal, Capacity: events.Spot}.Heals()}; got != want {
			t.Errorf("healing %q: heals %v, want %v", heal, got, want)
		}
	}
}

// TestWhatTheProviderMakesAnewIsNobodyElses: a JobSet that begins again makes its Jobs anew, and no owner has taken anything over.
func TestWhatTheProviderMakesAnewIsNobodyElses(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		n := newJob(t)
		read := func(c evidence.Condition, id string) {
			n.later(bounds.SickFor).reads("llama-8b", c, func(e *evidence.Read) {
				e.Facts.Group, e.Facts.Healing, e.Ordered = "set", evidence.HealsAlways, n.w.Slices[0].Incarnation.Created
				if id != "" && !same {
					e.Ordered = n.now.Add(-time.Second)
				}
				if id != "" {
					e.Incarnation = events.Incarnation{Zone: e.Zone, ID: id, Created: n.now.Add(-time.Second)}
				}
			})
		}
		read(evidence.Ready, "")
		read(evidence.Unhealthy, "")
		n.passes(bounds.SickFor)
		n.opens(true)
		if read(evidence.Ready, "next"); (n.ended().Outcome == view.Released) == same {
			t.Errorf("the same JobSet makes it anew %v, and it stands at %q:\n%s", same, n.stands(nil), n.tale())
		}
	}
}

// TestTheCauseOfALossIsKept: the Pod that shows it may be deleted before the Job is. Another life has no cause of it.
func TestTheCauseOfALossIsKept(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a").under("watch").reads("a", evidence.Lost, func(e *evidence.Read) { e.Facts.Cause = events.CauseCrash }).later(time.Minute)
	n.reads("a", evidence.Lost, func(e *evidence.Read) { e.Facts.Cause = "" }).later(time.Minute)
	if got := n.w.Slices[0].Cause; got != events.CauseCrash || n.w.Incident == nil || n.w.Incident.Cause() != events.CauseCrash {
		t.Errorf("the cause is %q:\n%s", got, n.tale())
	}
	n.reads("a", evidence.Lost, func(e *evidence.Read) {
		e.Facts.Cause, e.Incarnation = "", events.Incarnation{Zone: e.Zone, ID: "next", Created: n.now.Add(-time.Second)}
	})
	if got := n.w.Slices[0].Cause; got != "" {
		t.Errorf("another life is lost, and its cause is %q", got)
	}
}

// TestWhatAReadingLacksStays where an unusable slice may not show it any more.
func TestWhatAReadingLacksStays(t *testing.T) {
	t.Parallel()
	for c, want := range map[evidence.Condition]evidence.Facts{
		evidence.Lost:  {Accelerator: "v5e", Spec: "spec1", Capacity: events.Spot, Ends: start.Add(time.Hour)},
		evidence.Ready: {Accelerator: "v5e", Spec: "spec1"},
	} {
		n := newStory(t, true, "a")
		n.w.Slices[0].Ends = start.Add(time.Hour)
		if f := n.reads("a", c, func(e *evidence.Read) { e.Facts = evidence.Facts{Accelerator: "v5e"} }).w.Slices[0].Facts; f != want {
			t.Errorf("%s, it is %+v, want %+v", c, f, want)
		}
	}
}

// TestASaveStaysASave: an exit with 0 near a strike was one, however many strikes come after it. Who deletes a slice strikes nothing.
func TestASaveStaysASave(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a").under("watch").goes("read unhealthy, finished, its verdict")
	for range 9 {
		n.goes("an hour, read ready, an hour, read unhealthy")
	}
	if n.finished() {
		t.Errorf("the save has become an end: %+v", n.w.Training)
	}
	n = newStory(t, true, "a").goes("finished, its verdict, read gone")
	struck := !n.finished()
	n.give(evidence.Called{Origin: evidence.Origin{Time: n.now.Add(-time.Minute), Rank: events.RankAudit}, Slice: "a", Act: events.ActDeleted})
	if !struck || !n.finished() {
		t.Errorf("it is struck at first %v, and its owner has deleted it: %+v", struck, n.w.Training)
	}
}

// TestACheckpointThatIsGoneSavesNothing: a look at the directory that finds none takes back what an earlier one found.
func TestACheckpointThatIsGoneSavesNothing(t *testing.T) {
	t.Parallel()
	if c := at(t, "everything", true, "exit 139, gave up, no verdict hear").w.Training.Saved; !c.At.IsZero() {
		t.Errorf("saved is %+v", c)
	}
}

// TestAnUnchangedReadingIsNewsOnceItIsAwaited: the first one of an open incident, and of its trouble.
func TestAnUnchangedReadingIsNewsOnceItIsAwaited(t *testing.T) {
	t.Parallel()
	n, news := at(t, "watch", true, "host error"), ""
	for minute := range 12 {
		w, _, changed := incident.Advance(n.p, n.w, n.read(&n.w.Slices[0], evidence.Ready, n.w.Slices[0].Incarnation), n.now)
		if n.w = w; changed {
			news += fmt.Sprint(minute, " ")
		}
		n.later(time.Minute)
	}
	if news != "0 5 " {
		t.Errorf("news are those of minutes %s", news)
	}
}
