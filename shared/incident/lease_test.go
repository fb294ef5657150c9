package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// admission is a workload whose owner has made its slice anew in another zone than the lease names: it is asked for that the lease names it.
type admission struct {
	w    incident.Workload
	p    policy.Policy
	now  time.Time
	asks events.Request
}

func (o *admission) give(e evidence.Evidence) {
	var sent []events.Event
	o.w, sent, _ = incident.Advance(o.p, o.w, e, o.now)
	for _, e := range sent {
		if r, is := e.(events.RecoveryRequested); is {
			o.asks = r.Request
		}
	}
}

func (o *admission) read(zone string, c evidence.Condition, life events.Incarnation) {
	o.give(evidence.Read{Origin: evidence.Origin{Time: o.now, Rank: events.RankReading}, Slice: "a", Zone: zone, Condition: c, State: string(c), Incarnation: life})
}

func newAdmission(t *testing.T) *admission {
	t.Helper()
	o := &admission{
		w: incident.New("p", "llama", "cloud-tpu"), p: policy.Policy{Name: "everything", Switches: policy.Everything()},
		now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	}
	o.w.Directory = "gs://llama"
	first := events.Incarnation{Zone: "z1", ID: "1", Created: o.now}
	o.w.Lease.Sure = incident.Write{At: o.now, Attempt: 3, Lives: []events.Admission{{Slice: "a", Incarnation: first}}}
	o.read("z1", evidence.Ready, first)
	o.now = o.now.Add(time.Hour)
	o.give(evidence.Called{Origin: evidence.Origin{Time: o.now, Rank: events.RankAudit}, Slice: "a", Zone: "z1", Act: events.ActDeleted, Principal: "ann@example.com"})
	o.read("z1", evidence.Gone, events.Incarnation{})
	o.now = o.now.Add(time.Minute)
	o.read("z2", evidence.Ready, events.Incarnation{Zone: "z2", ID: "2", Created: o.now})
	o.now = o.now.Add(time.Minute)
	if o.give(evidence.Ticked{}); o.asks.Action != events.ActionAdmit {
		t.Fatalf("its admission is not asked for: %+v", o.w.Incident)
	}
	return o
}

// TestTheNextAttemptIsCountedFromTheLeaseThatIsRead and from nothing else.
func TestTheNextAttemptIsCountedFromTheLeaseThatIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		read evidence.Lease
		want int
	}{
		"the one that Pitstop wrote":              {evidence.Lease{Attempt: 3, Incident: "old"}, 4},
		"crews have begun anew since":             {evidence.Lease{Attempt: 9}, 10},
		"it names the life already":               {evidence.Lease{Attempt: 9, Names: true}, 9},
		"it is gone, and crews have left files":   {evidence.Lease{Left: 6}, 7},
		"it is gone, and nobody has left a thing": {evidence.Lease{}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			o := newAdmission(t)
			o.give(evidence.Intended{Request: o.asks, RequestID: "r", Lease: c.read})
			if x := o.w.Effects[0]; x.RequestID != "r" || x.Lease.Attempt != c.want {
				t.Errorf("the lease is to name attempt %d, want %d", x.Lease.Attempt, c.want)
			}
		})
	}
}

// TestATryOfUnknownOutcomeLeavesADoubt until a lease is written, and only as long as nobody knows that none was.
func TestATryOfUnknownOutcomeLeavesADoubt(t *testing.T) {
	fails := func(no evidence.NoCall, c reason.FailureClass) func(o *admission) evidence.Evidence {
		return func(o *admission) evidence.Evidence {
			return evidence.Answered{Request: o.asks, NoCall: no, Failure: &evidence.Failure{Class: c}}
		}
	}
	begins := func(o *admission) evidence.Evidence {
		return evidence.Intended{Request: o.asks, RequestID: "r", Lease: evidence.Lease{Attempt: 3}}
	}
	for name, c := range map[string]struct {
		story []func(*admission) evidence.Evidence
		doubt int
	}{
		"nobody has begun":                  {nil, 0},
		"begun":                             {[]func(*admission) evidence.Evidence{begins}, 1},
		"begun, and no answer came":         {[]func(*admission) evidence.Evidence{begins, fails("", reason.Transient)}, 1},
		"refused":                           {[]func(*admission) evidence.Evidence{begins, fails("", reason.Permission)}, 0},
		"not called":                        {[]func(*admission) evidence.Evidence{begins, fails(evidence.Uncalled, reason.NotInState)}, 0},
		"delivered twice, and refused once": {[]func(*admission) evidence.Evidence{begins, begins, fails("", reason.NotInState)}, 1},
		"held behind its intent": {[]func(*admission) evidence.Evidence{begins, func(o *admission) evidence.Evidence {
			return evidence.Held{Request: o.asks, Code: reason.CodePaused, Begun: true}
		}}, 0},
		"no answer, and then it was written": {[]func(*admission) evidence.Evidence{begins, begins, func(o *admission) evidence.Evidence { return evidence.Answered{Request: o.asks} }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newAdmission(t)
			for _, e := range c.story {
				o.give(e(o))
			}
			if n := len(o.w.Lease.Maybe); n != c.doubt {
				t.Errorf("%d leases may stand there beside the sure one, want %d: %+v", n, c.doubt, o.w.Lease)
			}
		})
	}
}

// TestAfterTheLeaseHasVanishedNobodyIsLetInBesideALife that still runs, though the last lease that Pitstop wrote does not name that life: its
// crew may have put itself into the lease before it vanished.
func TestAfterTheLeaseHasVanishedNobodyIsLetInBesideALife(t *testing.T) {
	t.Parallel()
	o := &admission{
		w: incident.New("p", "llama", "cloud-tpu"), p: policy.Policy{Name: "everything", Switches: policy.Everything()},
		now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	}
	o.w.Directory = "gs://llama"
	made := func(zone, id string) events.Incarnation {
		life := events.Incarnation{Zone: zone, ID: id, Created: o.now}
		o.now = o.now.Add(time.Minute)
		o.read(zone, evidence.Ready, life)
		return life
	}
	made("z1", "1")
	named := []events.Admission{{Slice: "a", Incarnation: made("z2", "2")}}
	o.w.Lease.Sure = incident.Write{At: o.now, Attempt: 3, Lives: named}
	o.now = o.now.Add(time.Hour)
	made("z3", "3")
	o.read("z2", evidence.Gone, events.Incarnation{})
	o.give(evidence.Ticked{})

	begin := func(l evidence.Lease) bool {
		o.give(evidence.Intended{Request: o.asks, RequestID: "r", Lease: l})
		return slices.ContainsFunc(o.w.Effects, func(x incident.Effect) bool { return x.Action == events.ActionAdmit && x.RequestID == "r" })
	}
	asked := *o
	if o.asks.Action != events.ActionAdmit || !begin(evidence.Lease{Attempt: 3, Lives: named}) {
		t.Fatalf("while the lease stands, nobody is let in beside what it does not name: %+v", o.w.Effects)
	}
	if *o = asked; begin(evidence.Lease{Left: 3}) {
		t.Error("a lease is written beside a life whose crew may have taken over the one that vanished")
	}
	o.asks = events.Request{}
	o.now = o.now.Add(time.Minute)
	o.read("z1", evidence.Gone, events.Incarnation{})
	if o.give(evidence.Ticked{}); o.asks.Action != events.ActionAdmit || !begin(evidence.Lease{Left: 3}) {
		t.Errorf("that life is over, and nobody is let in: %+v", o.w.Incident)
	}
}

// TestADoubtedLeaseIsReplacedAtAPersonsWord and not before.
func TestADoubtedLeaseIsReplacedAtAPersonsWord(t *testing.T) {
	o := newAdmission(t)
	o.give(evidence.Intended{Request: o.asks, RequestID: "r", Lease: evidence.Lease{Attempt: 2_000_000}})
	o.give(evidence.Answered{Request: o.asks, Failure: &evidence.Failure{Class: reason.Invalid, Code: reason.CodeLeaseDoubted, Message: "attempt 2,000,000"}})
	if o.w.Incident != nil || o.w.Closed.Ending.Code != reason.CodeLeaseDoubted || o.w.OverrulesLease() {
		t.Fatalf("the incident is %+v, and the lease %+v", o.w.Incident, o.w.Lease)
	}
	o.asks = events.Request{}
	for range 3 {
		o.now = o.now.Add(time.Hour)
		o.give(evidence.Ticked{})
	}
	if o.asks.Action != "" {
		t.Errorf("%s is asked for without a word", o.asks.Action)
	}
	o.give(evidence.Retried{Word: evidence.Word{By: "ann"}})
	if o.asks.Action != events.ActionAdmit || !o.w.OverrulesLease() {
		t.Errorf("a person's word asks for %q, and the lease is %+v", o.asks.Action, o.w.Lease)
	}
}

// TestNoLeaseNamesWhatHasJoinedAlone: the crews lead the lease by themselves, and training may run on in the life that its owner has moved from.
// Another attempt in the slice that has joined would write beside it.
func TestNoLeaseNamesWhatHasJoinedAlone(t *testing.T) {
	t.Parallel()
	o := &admission{
		w: incident.New("p", "llama", "cloud-tpu"), p: policy.Policy{Name: "everything", Switches: policy.Everything()},
		now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	}
	o.w.Directory = "gs://llama"
	o.read("z1", evidence.Ready, events.Incarnation{Zone: "z1", ID: "1", Created: o.now})
	o.now = o.now.Add(time.Minute)
	o.read("z2", evidence.Ready, events.Incarnation{Zone: "z2", ID: "2", Created: o.now})
	c := events.Incarnation{Zone: "z1", ID: "3", Created: o.now}
	o.give(evidence.Read{Origin: evidence.Origin{Time: o.now, Rank: events.RankReading}, Slice: "c", Zone: "z1", Condition: evidence.Ready, State: "READY", Incarnation: c})
	o.now = o.now.Add(time.Hour)
	o.give(evidence.Beat{Origin: evidence.Origin{Time: o.now, Rank: events.RankUser}, Slice: "c", Incarnation: c, Seen: o.now, Attempt: 1, Verdict: &events.CrewVerdict{
		Schema: 1, Attempt: 1, Ended: o.now, Reason: "it says so", Life: events.Admission{Slice: "c", Incarnation: c},
	}})
	for range 120 {
		o.now = o.now.Add(time.Minute)
		o.give(evidence.Ticked{})
	}
	if o.w.Incident == nil && o.w.Closed == nil && o.w.Ended.IsZero() || o.asks.Action != "" {
		t.Errorf("asked for is %q: %+v", o.asks.Action, o.w.Incident)
	}
}

// TestNoRestartNamesAnAttemptThatIsOver though the request was delivered before, or the lease names an attempt of this incident.
func TestNoRestartNamesAnAttemptThatIsOver(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "gave up, its verdict", led)
	counts := func(l evidence.Lease, want int) {
		t.Helper()
		r := n.request(events.ActionRestart, "")
		l.Lives, l.Names = n.w.Lease.Sure.Lives, true
		n.give(evidence.Intended{Origin: n.reading(), Request: r, RequestID: "r", Lease: l})
		if x, err := n.w.Fence(r.Pointer(), n.now); err != nil || x.Lease.Attempt != want {
			t.Errorf("the lease names attempt %d, and the restart %d, want %d; %v", l.Attempt, x.Lease.Attempt, want, err)
		}
	}
	counts(evidence.Lease{Attempt: 3}, 4)
	counts(evidence.Lease{Attempt: 6, Began: start.Add(-time.Hour)}, 7)
	n = at(t, "everything", true, "gave up, its verdict, read lost, do, read gone, do, read ours, does admit, started, gave up, its verdict", led)
	counts(evidence.Lease{Attempt: 4, Incident: n.w.Incident.ID}, 5)
}

// TestNoLeaseNamesWhatNeverCame: what its owner ordered in vain has no life, and the others train without it.
func TestNoLeaseNamesWhatNeverCame(t *testing.T) {
	t.Parallel()
	at(t, "everything", true, "gave up, its verdict", func(w *incident.Workload) {
		w.Slices = append(w.Slices, incident.Slot{Name: "c", Life: incident.Life{Zone: "us-west4-a", Condition: evidence.Gone, Unused: true}})
	}).wants("restart llama-8b=7711")
}

// TestALeaseIsOfItsDirectory: what a call writes into the directory before leads nobody in the present one; and it stands there still when the
// workload names that directory again.
func TestALeaseIsOfItsDirectory(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost, do, read gone, do, read ours", led)
	first, r := n.w.Directory, n.request(events.ActionAdmit, "")
	n.intends(r)
	shows := func(directory string) {
		n.now = n.now.Add(time.Minute)
		n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) { e.Directory = directory })
	}
	shows("gs://trial")
	n.give(evidence.Answered{Origin: n.reading(), Request: r})
	if n.w.Lease.Attempt > 0 || !n.isWanted(events.ActionAdmit) {
		t.Errorf("in the new directory stands %+v:\n%s", n.w.Lease, n.tale())
	}

	n = at(t, "everything", true, "owner deletes, read gone, read elsewhere", led)
	shows("gs://trial")
	if sent := n.passes(time.Hour); sent != nil {
		t.Errorf("asked for is %q: in the new directory the crews lead the lease", sent)
	}
	shows(first)
	if n.passes(2 * time.Minute); !n.isWanted(events.ActionAdmit) {
		t.Errorf("the lease that stands there names another life, and nobody is let in: %+v", n.w.Lease)
	}
}
