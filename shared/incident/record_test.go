package incident

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// log is a workload that learns facts, and decides nothing.
type log struct {
	*testing.T
	w   Workload
	now time.Time
}

var noon = time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC)

// newLog is a workload of one slice in its second life, with known hosts.
func newLog(t *testing.T) *log {
	t.Helper()
	l := &log{T: t, w: New("p", "llama", "cloud-tpu"), now: noon}
	l.w.Directory = "gs://ckpt/llama"
	former := Life{Incarnation: lifeNo(1), Zone: "z", Hosts: "t1v-n-00000001", Over: noon.Add(-2 * time.Hour)}
	l.w.Slices = []Slot{{Name: "a", Former: []Life{former}, Life: Life{
		Incarnation: lifeNo(2), Zone: "z", Hosts: "t1v-n-00000002", Condition: evidence.Ready, State: "READY", Since: noon.Add(-time.Hour),
		Facts: evidence.Facts{Spec: "spec", Reclaimable: true},
	}}}
	return l
}

// lifeNo is a life: the first began three hours before noon, and each other one two hours after the one before.
func lifeNo(n int) events.Incarnation {
	return events.Incarnation{Zone: "z", ID: fmt.Sprint(n), Created: noon.Add(time.Duration(2*n-5) * time.Hour)}
}

// learn records evidence, and reports whether it is news. The same evidence is none then.
func (l *log) learn(e evidence.Evidence) bool {
	l.Helper()
	f := &facts{w: &l.w, now: l.now, from: evidence.OriginOf(e)}
	news := f.record(e)
	if again := (&facts{w: &l.w, now: l.now, from: evidence.OriginOf(e)}); again.record(e) {
		l.Errorf("%T is news the second time", e)
	}
	return news
}

func read(at time.Time) evidence.Origin {
	return evidence.Origin{ID: at.String(), Time: at, Rank: events.RankReading}
}

func (l *log) reads(c evidence.Condition, change ...func(*evidence.Read)) bool {
	l.Helper()
	s := &l.w.Slices[0]
	e := evidence.Read{Origin: read(l.now), Slice: "a", Zone: s.Zone, Condition: c, Incarnation: s.Incarnation, State: string(c), Facts: s.Facts}
	if c == evidence.Gone {
		e.Incarnation, e.Facts = events.Incarnation{}, evidence.Facts{}
	}
	for _, f := range change {
		f(&e)
	}
	return l.learn(e)
}

func (l *log) line(at time.Time, r events.CrewReport) {
	l.Helper()
	r.Schema, r.Node, r.Zone = 1, "a", "z"
	l.learn(evidence.Reported{Origin: evidence.Origin{ID: fmt.Sprint(at, r.Hostname, r.Attempt), Time: at, Rank: events.RankUser}, Slice: "a", Report: r})
}

// TestALineIsOfTheLifeThatWroteIt: by the life or the workers that it names, or else by its time.
func TestALineIsOfTheLifeThatWroteIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r     events.CrewReport
		hours float64 // after noon
		want  string
	}{
		"it names the newest life":         {events.CrewReport{Life: "2"}, -3, "2"},
		"it names the life before":         {events.CrewReport{Life: "1"}, 0, "1"},
		"it names a life of which is none": {events.CrewReport{Life: "3"}, 0, ""},
		"in a Pod, it names none":          {events.CrewReport{Zone: "l/c/n"}, 0, ""},
		"the workers of the newest":        {events.CrewReport{Hostname: "t1v-n-00000002-w-0"}, -3, "2"},
		"the workers of the one before":    {events.CrewReport{Hostname: "t1v-n-00000001-w-0"}, 0, "1"},
		"workers that nobody has seen":     {events.CrewReport{Hostname: "t1v-n-00000009-w-0"}, 0, ""},
		"other hosts, now":                 {events.CrewReport{Hostname: "trainer"}, 0, "2"},
		"other hosts, then":                {events.CrewReport{Hostname: "trainer"}, -2, "1"},
		"other hosts, before all":          {events.CrewReport{Hostname: "trainer"}, -9, ""},
	} {
		l, got := newLog(t), ""
		if who := l.w.Slices[0].speaker(c.r, noon.Add(time.Duration(c.hours*float64(time.Hour)))); who != nil {
			got = who.Incarnation.ID
		}
		if got != c.want {
			t.Errorf("%s: it is of %q, want %q", name, got, c.want)
		}
	}
}

// TestALineWaitsForItsLife: it is kept, within bounds, until a reading shows whose it is, and is handed back then.
func TestALineWaitsForItsLife(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	of := func(n int) events.CrewReport {
		return events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: int64(n), Hostname: fmt.Sprintf("t1v-n-%08x-w-0", n)}
	}
	l.now = noon.Add(2 * time.Minute)
	l.line(noon.Add(time.Minute), of(3))
	for i := range 2 * maxUnbound {
		l.line(noon.Add(time.Duration(i)*time.Second), of(9))
	}
	if n := len(l.w.Unbound); n != maxUnbound || len(l.w.Bound()) != 0 {
		t.Fatalf("%d lines are kept, and %d handed back", n, len(l.w.Bound()))
	}
	l.reads(evidence.Ready, func(e *evidence.Read) {
		e.Incarnation = events.Incarnation{Zone: "z", ID: "3", Created: noon.Add(30 * time.Second)}
	})
	l.learn(evidence.Mapped{Origin: read(l.now), Slice: "a", Incarnation: l.w.Slices[0].Incarnation, Group: "t1v-n-00000003"})
	bound := l.w.Bound()
	if len(bound) != 1 {
		t.Fatalf("handed back are %d lines, of %+v", len(bound), l.w.Unbound)
	}
	l.learn(bound[0])
	if l.w.Training.Step != 3 || len(l.w.Bound()) != 0 {
		t.Errorf("the step is %d, and %d lines are still handed back", l.w.Training.Step, len(l.w.Bound()))
	}
}

// TestAnAttemptThatIsTooFarWaitsForTheLease: anyone may write a number.
func TestAnAttemptThatIsTooFarWaitsForTheLease(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Lease.Attempt = 4
	far := events.CrewReport{Report: events.ReportProgress, Attempt: 5 + FarAttempt, Step: 10, Hostname: "t1v-n-00000002-w-0"}
	l.line(noon, far)
	l.line(noon, events.CrewReport{Report: events.ReportProgress, Attempt: 5, Step: 20, Hostname: "t1v-n-00000002-w-0"})
	if l.w.Training.Attempt != 5 || !l.w.toldFar().Equal(noon) || len(l.w.Bound()) != 0 {
		t.Errorf("the attempt is %d, told of another at %v", l.w.Training.Attempt, l.w.toldFar())
	}
	(&facts{w: &l.w, now: noon}).leaseNames(far.Attempt)
	if len(l.w.Bound()) != 1 || !l.w.toldFar().IsZero() {
		t.Errorf("the lease names it, and %d lines are handed back", len(l.w.Bound()))
	}
}

// TestExit0NearAStrikeIsASave, whichever is learned first; and it stays one when the strike is forgotten.
func TestExit0NearAStrikeIsASave(t *testing.T) {
	t.Parallel()
	verdict := func(l *log, certain bool) {
		l.learn(evidence.Beat{Origin: read(l.now), Slice: "a", Incarnation: lifeNo(2), Seen: l.now, Attempt: 1, Verdict: &events.CrewVerdict{
			Attempt: 1, Life: events.Admission{Slice: "a"}, Finished: true, Certain: certain, Ended: noon.Add(-time.Minute),
		}})
	}
	breaks := func(l *log) { l.reads(evidence.Unhealthy) }
	for name, c := range map[string]struct {
		does func(l *log)
		want bool
	}{
		"nothing strikes":     {func(l *log) { verdict(l, false) }, true},
		"a strike comes late": {func(l *log) { verdict(l, false); breaks(l) }, false},
		"a strike came first": {func(l *log) { breaks(l); verdict(l, false) }, false},
		"the end is certain":  {func(l *log) { breaks(l); verdict(l, true) }, true},
		"it strikes long after": {func(l *log) {
			verdict(l, false)
			l.now = l.now.Add(time.Hour)
			breaks(l)
		}, true},
		"it was repaired since": {func(l *log) {
			breaks(l)
			verdict(l, false)
			l.now = l.now.Add(time.Minute)
			l.reads(evidence.Ready)
		}, false},
		"many strikes since": {func(l *log) {
			breaks(l)
			verdict(l, false)
			for range maxStrikes {
				l.now = l.now.Add(time.Hour)
				l.reads(evidence.Ready)
				l.now = l.now.Add(time.Hour)
				breaks(l)
			}
		}, false},
		"a line tells of a later attempt": {func(l *log) {
			verdict(l, false)
			l.line(noon, events.CrewReport{Report: events.ReportStarted, Attempt: 2, Hostname: "t1v-n-00000002-w-0"})
		}, false},
	} {
		l := newLog(t)
		if c.does(l); l.w.isFinished() != c.want {
			t.Errorf("%s: finished is %t", name, !c.want)
		}
	}
}

// TestAnOwnersDeletionIsNoStrike: a slice that is gone because its owner deleted it, as told later, makes no save of an exit.
func TestAnOwnersDeletionIsNoStrike(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.reads(evidence.Gone)
	if len(l.w.Training.Strikes) != 1 {
		t.Fatalf("the strikes are %v", l.w.Training.Strikes)
	}
	l.learn(evidence.Called{Origin: evidence.Origin{Time: noon.Add(-time.Minute), Rank: events.RankAudit}, Slice: "a", Act: events.ActDeleted})
	if len(l.w.Training.Strikes) != 0 || l.w.Slices[0].Released.IsZero() {
		t.Errorf("the strikes are %v", l.w.Training.Strikes)
	}
}

// TestLateEvidenceJoinsTheClosedIncident: a better cause is told again, and pays back what was charged to the training. What it pays back is
// decided for good when the incident is forgotten.
func TestLateEvidenceJoinsTheClosedIncident(t *testing.T) {
	t.Parallel()
	w := newLog(t).w
	w.Closed = &Incident{
		ID: "llama-1", Opened: noon.Add(-20 * time.Minute), Closed: noon.Add(-5 * time.Minute), Revision: 1, Ending: &End{Outcome: view.Resumed},
		Troubles: []Trouble{{Cause: events.CauseCrash, Slice: "a", Life: "2", At: noon.Add(-20 * time.Minute), Rank: events.RankUser}},
	}
	w.Ended = w.Closed.Closed
	w.Charges = []Charge{{Action: events.ActionRestart, Incident: "llama-1", At: noon.Add(-15 * time.Minute)}}
	late := evidence.Interrupted{
		Origin: evidence.Origin{ID: "entry", Time: noon.Add(-21 * time.Minute), Rank: events.RankAudit}, Slice: "a", Cause: events.CausePreemption, Text: "preempted",
	}
	next, sent, changed := Advance(policy.Policy{}, w, late, noon)
	if !changed || len(sent) != 1 || next.Incident != nil || next.Closed.cause() != events.CausePreemption || next.Closed.Revision != 2 {
		t.Fatalf("it sends %v, and the cause is %s", sent, next.Closed.cause())
	}
	if !next.isPaidBack(next.Charges[0]) || w.isPaidBack(w.Charges[0]) || w.Closed.Revision != 1 {
		t.Error("the charge of the training is not paid back, or that of the argument is")
	}
	if _, sent, changed := Advance(policy.Policy{}, next, late, noon); changed || len(sent) != 0 {
		t.Errorf("the same evidence sends %v", sent)
	}
	forget(&next, noon.Add(bounds.Linger))
	if next.Closed != nil || !next.Charges[0].Void {
		t.Errorf("what is forgotten is not frozen: %+v", next.Charges)
	}
}

// TestWhatIsOrderedIsOfWhoOrderedIt: an order of an incident's call is its own, that of anybody else is a life that has not come yet.
func TestWhatIsOrderedIsOfWhoOrderedIt(t *testing.T) {
	t.Parallel()
	order := func(incident string) func(*evidence.Read) {
		return func(e *evidence.Read) {
			e.Zone, e.Incarnation, e.Ordered, e.Incident, e.Facts = "other", events.Incarnation{}, noon, incident, evidence.Facts{Group: "q", Accelerator: "v6e-4"}
		}
	}
	l := newLog(t)
	l.w.Made = []Making{{Incident: "llama-1", Opened: noon.Add(-time.Hour), Closed: noon}}
	if l.reads(evidence.Creating, order("")) {
		t.Error("somebody orders another one elsewhere, and the slice is where it was")
	}
	l.reads(evidence.Gone)
	l.now = noon.Add(time.Minute)
	l.reads(evidence.Creating, order("llama-1"))
	if s := l.w.Slices[0]; !s.Ordered.Equal(noon) || s.Zone != "other" || s.Condition != evidence.Gone {
		t.Errorf("ours is %+v", s.Life)
	}
	l = newLog(t)
	l.reads(evidence.Gone)
	l.now = noon.Add(time.Minute)
	l.reads(evidence.Creating, order(""))
	if s := l.w.Slices[0]; !s.Unused || s.Zone != "other" || s.Condition != evidence.Creating || s.Accelerator != "v6e-4" || len(s.Former) != 2 {
		t.Errorf("theirs is %+v", s.Life)
	}
	if l.w.Slices[0].Spec != "" {
		t.Error("the specification of the life before is not theirs")
	}
}

// TestAnOrderThatBroughtALifeTellsOfThatLife: what is lost of it shows as its order alone, and that order brings no next life.
func TestAnOrderThatBroughtALifeTellsOfThatLife(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Made = []Making{{Incident: "llama-1", Opened: noon.Add(-2 * time.Hour), Closed: noon}}
	order := func(e *evidence.Read) {
		e.Incarnation, e.Incident, e.Ordered = events.Incarnation{}, "llama-1", l.w.Slices[0].Incarnation.Created.Add(-time.Minute)
	}
	if !l.reads(evidence.Lost, order) {
		t.Error("the loss is no news")
	}
	if s := l.w.Slices[0]; s.Condition != evidence.Lost || !s.Ordered.IsZero() {
		t.Errorf("the slice is %s, ordered at %v", s.Condition, s.Ordered)
	}
}

// TestWhatAReadingLacksStays where an unusable slice may not show it any more.
func TestWhatAReadingLacksStays(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Slices[0].Ends = noon.Add(time.Hour)
	l.reads(evidence.Lost, func(e *evidence.Read) { e.Facts = evidence.Facts{Accelerator: "v5e"} })
	if f := l.w.Slices[0].Facts; f.Spec != "spec" || !f.Reclaimable || f.Ends.IsZero() || f.Accelerator != "v5e" {
		t.Errorf("it is %+v", f)
	}
	l.now = noon.Add(time.Minute)
	l.reads(evidence.Ready, func(e *evidence.Read) { e.Facts = evidence.Facts{Accelerator: "v5e"} })
	if f := l.w.Slices[0].Facts; f.Spec != "spec" || f.Reclaimable || !f.Ends.IsZero() {
		t.Errorf("usable, it is %+v", f)
	}
}

// TestACheckpointThatIsGoneSavesNothing: a look at the directory that finds none takes back what an earlier one found.
func TestACheckpointThatIsGoneSavesNothing(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Training.Saved = Checkpoint{Step: 48000, At: noon.Add(-time.Hour)}
	l.w.Incident = &Incident{ID: "llama-1", Opened: noon}
	l.w.Effects = []Effect{{Want: Want{Action: events.ActionHear}, Epoch: 1, Attempt: 1, Sent: noon}}
	l.learn(evidence.VerdictRead{Origin: read(noon), Request: events.Request{Workload: l.w.ID, Incident: "llama-1", Action: events.ActionHear, Epoch: 1, Attempt: 1}})
	if c := l.w.Training.Saved; !c.At.IsZero() {
		t.Errorf("saved is %+v", c)
	}
}

// TestWhatWasLostBeforeItsPlannedEndDidNotEndAsPlanned, though its rest is gone only after that.
func TestWhatWasLostBeforeItsPlannedEndDidNotEndAsPlanned(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Slices[0].Ends, l.w.Slices[0].Healing = noon.Add(time.Hour), evidence.HealsAlways
	l.reads(evidence.Lost)
	l.now = noon.Add(59 * time.Minute)
	l.reads(evidence.Deleting)
	l.now = noon.Add(2 * time.Hour)
	l.reads(evidence.Gone)
	if s := l.w.Slices[0]; s.endedAsPlanned() {
		t.Errorf("it was lost at %s, and is said to have ended as planned for %s", s.Over, s.Ends)
	}
}

// TestAnotherDirectoryIsAnotherTraining: it has its own lease, attempts and steps.
func TestAnotherDirectoryIsAnotherTraining(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Training = Training{Seen: noon, Attempt: 3, Step: 100, High: 100, Saved: Checkpoint{Step: 90, At: noon}}
	l.w.Lease.Attempt, l.w.Charges = 3, []Charge{{Action: events.ActionRestart, At: noon}}
	l.reads(evidence.Ready, func(e *evidence.Read) { e.Directory = "gs://ckpt/other" })
	if tr := l.w.Training; tr.Attempt+int(tr.Step)+int(tr.Saved.Step)+l.w.Lease.Attempt+len(l.w.Charges) != 0 || tr.Seen.IsZero() {
		t.Errorf("the training is %+v", tr)
	}
	if l.reads(evidence.Ready, func(e *evidence.Read) { e.Directory = "gs://ckpt/other/" }) {
		t.Error("another name of the same directory is news")
	}
}

// TestAnUnchangedReadingIsNewsOnceItIsAwaited: the first one of an open incident, and of its trouble.
func TestAnUnchangedReadingIsNewsOnceItIsAwaited(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.w.Slices[0].State = "ready"
	l.w.Incident = &Incident{ID: "llama-1", Opened: noon, Troubles: []Trouble{{Cause: events.CauseUnknown, Slice: "a", Life: "2", At: noon, Heard: noon}}}
	var news []int
	for minute := range 12 {
		l.now = noon.Add(time.Duration(minute) * time.Minute)
		if l.reads(evidence.Ready) {
			news = append(news, minute)
		}
	}
	if want := []int{0, 5}; !slices.Equal(news, want) {
		t.Errorf("news are those of minutes %v, want %v", news, want)
	}
}
