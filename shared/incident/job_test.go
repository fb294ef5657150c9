package incident_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// job is a Job of a cluster, and what its incidents ask for.
type job struct {
	*testing.T
	w    incident.Workload
	p    policy.Policy
	now  time.Time
	made int
}

func newJob(t *testing.T, p policy.Policy) *job {
	w := quiet(false)
	w.Provider = "gke"
	w.Slices[0].Healing = incident.HealsNever
	return &job{T: t, w: w, p: w.Limited(p), now: start}
}

// learns returns what is asked for then.
func (j *job) learns(e incident.Evidence) (asked string) {
	j.now = j.now.Add(time.Minute)
	var sent []events.Event
	j.w, sent, _ = advance(j.p, j.w, e, j.now)
	for _, o := range sent {
		asked += asks(o)
	}
	return asked
}

// fails has the Job fail for good, by an error of its own training or because of its machines.
func (j *job) fails(cause events.Cause) string {
	e := found(j.w, incident.Lost, "lost: the Job has failed: BackoffLimitExceeded", j.now.Add(time.Minute))
	e.Facts.Cause, e.Facts.Healing = cause, incident.HealsNever
	return j.learns(e)
}

// TestAMachineThatAJobHadLeftExplainsNothing: it was taken after the Job had failed, whether word of that comes before the reading that shows
// it, or after it. What ran on a machine may end a while before the machine is taken.
func TestAMachineThatAJobHadLeftExplainsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		taken time.Duration // after the Job failed
		first bool          // word of it comes before the reading
		cause events.Cause  // in the reading
		why   events.Cause  // in the word
		want  events.Cause
	}{
		"word first":                      {incident.NoticedFor + time.Second, true, events.CauseCrash, events.CauseHostError, events.CauseCrash},
		"word first, and no certainty":    {incident.NoticedFor + time.Second, true, events.CauseUnknown, events.CauseHostError, events.CauseUnknown},
		"the reading first":               {incident.NoticedFor + time.Second, false, events.CauseCrash, events.CauseHostError, events.CauseCrash},
		"word first, within the notice":   {incident.NoticedFor, true, events.CauseCrash, events.CauseHostError, events.CauseHostError},
		"the reading first, within it":    {incident.NoticedFor, false, events.CauseCrash, events.CauseHostError, events.CauseHostError},
		"word first, of a loss before it": {-time.Minute, true, events.CauseCrash, events.CauseHostError, events.CauseHostError},
		"word first, of maintenance":      {time.Hour, true, events.CauseCrash, events.CauseMaintenance, events.CauseMaintenance},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, policies["everything"])
			failed := j.now
			j.now = j.now.Add(max(5*time.Minute, c.taken))
			word := func() {
				j.learns(incident.Interrupted{
					Origin: incident.Origin{ID: "log-1", Time: failed.Add(c.taken), Rank: events.RankAudit}, Slice: j.w.Slices[0].Name,
					Incarnation: j.w.Slices[0].Incarnation, Cause: c.why, Text: "its machine was lost",
				})
			}
			if c.first {
				word()
			}
			e := found(j.w, incident.Lost, "lost: the Job has failed", j.now.Add(time.Minute))
			e.Facts.Cause, e.Facts.Failed, e.Facts.Healing = c.cause, failed, incident.HealsNever
			j.learns(e)
			if !c.first {
				word()
			}
			in := j.w.Incident
			if in == nil || in.Cause != c.want {
				t.Fatalf("the cause is %v, want %s", in, c.want)
			}
			if c.want == events.CauseCrash {
				j.call(events.ActionDelete)
			}
			if charged := j.w.Budgets.Restarts > 0; charged != (c.want == events.CauseCrash) {
				t.Errorf("the training is charged: %+v", j.w.Budgets)
			}
			next := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
			next.Facts.Failed, next.Incarnation = time.Time{}, events.Incarnation{Zone: next.Zone, ID: "next", Created: j.now}
			if j.learns(next); !j.w.Slices[0].Failed.IsZero() {
				t.Errorf("the next life has failed at %s", j.w.Slices[0].Failed)
			}
		})
	}
}

// call makes the call that is asked for next, which is accepted.
func (j *job) call(a events.Action) {
	j.Helper()
	effect := j.w.Effects[0]
	if effect.Action != a {
		j.Fatalf("%s is wanted, and not %s", effect.Action, a)
	}
	r := events.Request{Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: a, Attempt: effect.Attempt, Slice: effect.Slice}
	there := incident.Lease{Attempt: max(j.w.Crew.Attempt, 1)} // its crew counts its own restarts there
	j.learns(incident.Intended{Request: r, RequestID: fmt.Sprintf("request-%d-%s", j.made, a), Lease: there})
	j.learns(incident.Answered{Request: r, Text: "accepted"})
}

// replaced goes through a replacement that was asked for, up to a usable Job.
func (j *job) replaced() {
	j.Helper()
	j.call(events.ActionDelete)
	if asked := j.learns(found(j.w, incident.Deleting, "deleting: its Pod llama-8b-0 of the former Job has not ended", j.now.Add(time.Minute))); asked != "" {
		j.Errorf("a Pod is left, and %q is asked for", asked)
	}
	if asked := j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute))); asked != "create llama-8b" {
		j.Fatalf("the Job and its Pods are gone, and %q is asked for", asked)
	}
	j.call(events.ActionCreate)
	j.made++
	e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
	e.Incident, e.Facts = j.w.Incident.ID, incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "spec1", Label: "night", Healing: incident.HealsNever}
	e.Incarnation = events.Incarnation{Zone: e.Zone, ID: fmt.Sprintf("uid-%d", j.made), Created: j.now.Add(time.Minute - time.Second)}
	j.learns(e)
	for _, effect := range j.w.Effects {
		if effect.Action == events.ActionAdmit {
			j.call(events.ActionAdmit)
			return
		}
	}
}

// TestAFailedJobIsBroughtBack: what its training did is charged to the training, and what its machines did is not.
func TestAFailedJobIsBroughtBack(t *testing.T) {
	for cause, want := range map[events.Cause]struct {
		times int
		spent func(b incident.Budgets) int
	}{
		events.CauseCrash:      {incident.MaxRestarts, func(b incident.Budgets) int { return b.Restarts - b.Recreates }},
		events.CauseTerminated: {incident.MaxRecreates, func(b incident.Budgets) int { return b.Recreates - b.Restarts }},
	} {
		t.Run(string(cause), func(t *testing.T) {
			p := policies["everything"]
			p.RestartsPerDay = 100
			j := newJob(t, p)
			for n := range want.times {
				if asked := j.fails(cause); asked != "delete llama-8b" {
					t.Fatalf("it has failed for the %d. time, and %q is asked for: %s", n+1, asked, stands(j.w, nil))
				}
				j.replaced()
				if got := want.spent(j.w.Budgets); got != n+1 {
					t.Fatalf("it was brought back %d times, and %+v is spent", n+1, j.w.Budgets)
				}
			}
			for asked := j.fails(cause); asked != ""; { // whether more is saved is looked up first
				asked = j.learns(incident.Ticked{})
			}
			for range 40 {
				j.learns(incident.Ticked{})
			}
			if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Escalated || in.Code != incident.CodeBudget {
				t.Errorf("its budget is spent: %s", tale(j.w))
			}
		})
	}
}

// TestACrashedJobNeedsTheSwitchRestartToo: to begin its training again is a restart, in whatever way.
func TestACrashedJobNeedsTheSwitchRestartToo(t *testing.T) {
	for cause, want := range map[events.Cause]string{events.CauseCrash: "", events.CauseTerminated: "delete llama-8b"} {
		p := policies["everything"]
		p.Switches.Restart = policy.No
		j := newJob(t, p)
		if asked := j.fails(cause); asked != want {
			t.Errorf("%s: %q is asked for, want %q: %s", cause, asked, want, stands(j.w, nil))
		}
		if in := j.w.Closed; want == "" && (in == nil || in.Code != incident.CodePolicyNo) {
			t.Errorf("%s: %s", cause, tale(j.w))
		}
	}
}

// TestPitstopResumesNoJobAndMovesNone, whatever the policy allows.
func TestPitstopResumesNoJobAndMovesNone(t *testing.T) {
	w := quiet(false)
	w.Provider = "gke"
	p := policies["everything"]
	p.Shapes = []policy.Shape{{Accelerator: "v5litepod-8"}}
	got := w.Limited(p)
	if got.Switches.StartStopped != policy.No || got.Switches.EarlyMaintenance != policy.Yes || got.Switches.RecreateNonSpot != policy.Yes || len(got.Zones)+len(got.Shapes) > 0 {
		t.Errorf("its policy is %+v", got)
	}
}

// TestWhatNobodyCanReadIsNotHealthy: a slice that was usable when somebody read it last may have been lost since.
func TestWhatNobodyCanReadIsNotHealthy(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Crew, j.w.Directory = incident.Crew{}, ""
	j.fails(events.CauseTerminated)
	j.replaced()
	for range 60 {
		j.learns(incident.Ticked{Unread: true})
	}
	if j.w.Incident == nil {
		t.Fatalf("nobody could read it for an hour: %s", tale(j.w))
	}
	for range 10 {
		j.learns(incident.Ticked{})
	}
	if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByHealth {
		t.Errorf("it is read again: %s", tale(j.w))
	}
}

// TestAJobThatCameIsItsOwners: it trains as soon as its Pods run, so nobody takes it away when its incident ends early.
func TestAJobThatCameIsItsOwners(t *testing.T) {
	for name, before := range map[string]bool{"before the end": true, "after the end": false} {
		j := newJob(t, policies["everything"])
		j.fails(events.CauseTerminated)
		j.call(events.ActionDelete)
		j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
		j.call(events.ActionCreate)
		id := j.w.Incident.ID
		made := func(c incident.Condition) {
			e := found(j.w, c, string(c), j.now.Add(time.Minute))
			e.Incident, e.Incarnation = id, events.Incarnation{Zone: e.Zone, ID: "uid-9", Created: start.Add(10 * time.Minute)}
			e.Facts = incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "spec1", Label: "night", Healing: incident.HealsNever}
			if asked := j.learns(e); asked == "delete llama-8b" {
				t.Errorf("%s: what is %s is asked to be deleted: %s", name, c, tale(j.w))
			}
		}
		if before {
			made(incident.Creating)
		}
		j.learns(incident.Cancelled{Word: ann, Incident: id})
		if j.w.Incident != nil || j.w.Closed.Outcome != incident.Released {
			t.Fatalf("%s: a person has taken over: %s", name, tale(j.w))
		}
		made(incident.Ready)
		for range 30 {
			if asked := j.learns(incident.Ticked{}); asked == "delete llama-8b" {
				t.Errorf("%s: %q is asked for", name, asked)
			}
		}
		if s := j.w.Slices[0]; s.Maker != "" || s.ToReplace || s.Incarnation.ID != "uid-9" {
			t.Errorf("%s: the Job is still Pitstop's: %+v", name, s)
		}
	}
}

// TestAnOwnersDeletionComesBeforeOurs: the Job is gone before anybody has begun to delete it, so the log says first who did, however
// often it is found gone.
func TestAnOwnersDeletionComesBeforeOurs(t *testing.T) {
	for name, c := range map[string]struct {
		cause events.Cause
		set   bool // it is one of two Jobs of a JobSet
		heard bool // whether its training may be done is looked up first
	}{
		"its machines were lost":        {cause: events.CauseTerminated},
		"its training failed":           {cause: events.CauseCrash},
		"of a JobSet":                   {cause: events.CauseTerminated, set: true},
		"while its verdict is read":     {cause: events.CauseTerminated, heard: true},
		"of a JobSet, before a verdict": {cause: events.CauseTerminated, set: true, heard: true},
	} {
		for _, owner := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, by its owner %t", name, owner), func(t *testing.T) {
				j := newJob(t, policies["everything"])
				if c.set {
					j.w.Slices[0].Group = "set"
					other := j.w.Slices[0]
					other.Name, other.Incarnation, other.Hosts = "other", life(50), "t1v-n-3f2a9c02"
					j.w.Slices = append(j.w.Slices, other)
				}
				if c.heard {
					j.w.Crew.Claim = incident.Claim{Finished: true, Attempt: 1, At: j.now}
				}
				j.fails(c.cause)
				if c.set {
					e := found(j.w, incident.Lost, "lost: the Job has failed: another Job of its JobSet failed", j.now.Add(time.Minute))
					e.Slice, e.Incarnation, e.Facts.Healing = "other", life(50), incident.HealsNever
					j.learns(e)
				}
				gone := func() (asked string) {
					for range 3 {
						for _, s := range j.w.Slices {
							e := found(j.w, incident.Gone, "gone", j.now.Add(time.Minute))
							e.Slice = s.Name
							asked += j.learns(e) + j.learns(incident.Ticked{})
						}
					}
					return asked
				}
				if asked := gone(); asked != "" {
					t.Fatalf("nobody has said who deleted it, and %q is asked for: %s", asked, tale(j.w))
				}
				for _, s := range j.w.Slices {
					if !readsOf(j.w, j.now).Has(incident.ReadDeleter, s.Name) {
						t.Errorf("nobody asks who deleted %s: %s", s.Name, tale(j.w))
					}
				}
				if b := j.w.Budgets; b.Recreates != 0 || b.Restarts != 0 {
					t.Errorf("nothing was replaced, and %+v is spent", b)
				}
				if !owner {
					j.now = j.now.Add(incident.Grace)
					asked := ""
					for _, s := range j.w.Slices {
						asked += j.learns(learned(j.w, s, j.now.Add(time.Minute))["unsaid"])
					}
					asked += gone()
					j.now = j.now.Add(incident.HearFor)
					if asked += gone(); !strings.Contains(asked, "create llama-8b") {
						t.Errorf("the log names nobody, and %q is asked for: %s", asked, tale(j.w))
					}
					return
				}
				j.now = j.now.Add(10 * time.Minute)
				e := learned(j.w, j.w.Slices[0], j.now)["owner deletes"]
				if called, is := e.(incident.Called); is {
					called.Whole = c.set
					e = called
				}
				if asked := j.learns(e); asked != "" || j.w.Incident != nil || j.w.Closed.Outcome != incident.Released {
					t.Errorf("its owner deleted it, and %q is asked for: %s", asked, tale(j.w))
				}
			})
		}
	}
}

// TestAPodThatNeverEndsIsToldAndWaitedFor: nothing is created beside it, and once it has ended a person's word goes on.
func TestAPodThatNeverEndsIsToldAndWaitedFor(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.fails(events.CauseTerminated)
	j.call(events.ActionDelete)
	left := func() incident.Read {
		return found(j.w, incident.Deleting, "deleting: its Pod llama-8b-0 of the former Job has not ended", j.now.Add(time.Minute))
	}
	j.learns(left())
	for range 50 {
		if asked := j.learns(incident.Ticked{}); asked == "create llama-8b" {
			t.Fatal("it is created beside its Pod")
		}
	}
	in := j.w.Closed
	if j.w.Incident != nil || in.Outcome != incident.Escalated || !strings.Contains(in.Reason, "llama-8b-0 of the former Job") || !strings.Contains(in.Advice, "pitstop retry") {
		t.Fatalf("nobody is told of the Pod: %s", tale(j.w))
	}
	j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
	j.learns(incident.Retried{Word: ann})
	if j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute))); phaseOf(j.w) != "grace" {
		t.Errorf("a person has asked for it, and whether its owner deleted it is not waited for: %s", tale(j.w))
	}
}

// TestWhatStruckTheMachinesPays: the error of a training whose machine was lost is a consequence.
func TestWhatStruckTheMachinesPays(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.learns(incident.Interrupted{
		Origin: incident.Origin{ID: "entry", Time: j.now, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: j.w.Slices[0].Incarnation, Cause: events.CauseHostError, Text: "host error",
	})
	j.fails(events.CauseCrash)
	j.call(events.ActionDelete)
	if b := j.w.Budgets; b.Restarts != 0 || b.Recreates != 1 {
		t.Errorf("%+v is spent: %s", b, stands(j.w, nil))
	}
}

// TestOnlyProofGivesAChargeBack: a line that users can write says that the machines were preempted, and then an audit entry does.
func TestOnlyProofGivesAChargeBack(t *testing.T) {
	n := at(t, policies["everything"], true, "exit 139, gave up, its verdict, intend restart 0", nil)
	w := n.w
	for _, c := range []struct {
		rank     events.Rank
		restarts int
	}{{events.RankUser, 1}, {events.RankAudit, 0}} {
		w, _, _ = advance(policies["everything"], w, incident.Interrupted{
			Origin: incident.Origin{ID: fmt.Sprint(c.rank), Time: n.now, Rank: c.rank}, Slice: w.Slices[0].Name, Incarnation: w.Slices[0].Incarnation, Cause: events.CausePreemption, Text: "preempted",
		}, n.now)
		if w.Budgets.Restarts != c.restarts || w.Incident.Charged != c.restarts || w.Incident.Cause.Infrastructure() != (c.restarts == 0) {
			t.Errorf("by rank %v: %d restarts are spent, for %s", c.rank, w.Budgets.Restarts, w.Incident.Cause)
		}
	}
}

// TestMaintenanceThatBeganPays for what the training did then, whoever began it. Maintenance that is only announced does not.
func TestMaintenanceThatBeganPays(t *testing.T) {
	p := policies["everything"]
	p.Switches.Restart = policy.No
	begun, over := days, days
	begun.Status, over.Status = events.NoticeOngoing, events.NoticeGone
	for name, c := range map[string]struct {
		path string
		then []events.Notice
		want string
	}{
		"it was announced":         {"1m, do, refused", nil, ""},
		"Pitstop began it":         {"1m, " + verified + ", do", nil, "delete llama-8b"},
		"the API shows it begun":   {"1m, do, refused", []events.Notice{begun}, "delete llama-8b"},
		"it is over, and was ours": {"1m, " + verified + ", do", []events.Notice{begun, over}, "delete llama-8b"},
	} {
		j := newJob(t, p)
		n, _ := story(t, j.p, announced(j.p, j.w, days), c.path)
		j.w, j.now = n.w, n.now
		for _, notice := range c.then {
			j.learns(incident.Noticed{
				Origin: incident.Origin{Time: j.now.Add(time.Minute), Rank: events.RankReading}, Slice: "llama-8b", Incarnation: j.w.Slices[0].Incarnation, Notice: notice, InAPI: true,
			})
		}
		if asked := j.fails(events.CauseCrash); asked != c.want || j.w.Budgets.Restarts != 0 {
			t.Errorf("%s: %q is asked for, %+v is spent: %s", name, asked, j.w.Budgets, tale(j.w))
		}
	}
}

// TestALineMovesNoCharge: who may write a log does not say who pays, and so not what the policy allows.
func TestALineMovesNoCharge(t *testing.T) {
	p := policies["everything"]
	p.Switches.Restart = policy.No
	for name, life := range map[string]string{"a Pod's": "of the life", "a TPU's": ""} {
		j := newJob(t, p)
		if life != "" {
			j.w.Slices[0].Hosts, life = "", j.w.Slices[0].Incarnation.ID
		}
		j.says(life, events.ReportNotice, func(r *events.CrewReport) { r.Preempted = true })
		if life != "" && j.w.Incident != nil {
			t.Errorf("%s line: an incident is open", name)
		}
		if asked := j.fails(events.CauseCrash); asked != "" || j.w.Budgets.Recreates != 0 {
			t.Errorf("%s line: %q is asked for, %+v: %s", name, asked, j.w.Budgets, tale(j.w))
		}
	}
}

// TestAPodsLineWithdrawsNoMaintenance, and announces none: no Pod is told of it.
func TestAPodsLineWithdrawsNoMaintenance(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	life := j.w.Slices[0].Incarnation.ID
	notice := events.Notice{Status: events.NoticePending, WindowStart: j.now.Add(20 * time.Minute), WindowEnd: j.now.Add(time.Hour)}
	j.says(life, events.ReportNotice, func(r *events.CrewReport) { r.Notice = &notice })
	if n := j.w.Notice("llama-8b"); n != nil {
		t.Errorf("a line announces maintenance: %+v", n)
	}
	j.learns(incident.Noticed{Origin: incident.Origin{Time: j.now, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: j.w.Slices[0].Incarnation, Notice: notice, InAPI: true})
	for n := 0; phaseOf(j.w) != "saving"; n++ {
		if n > 20 {
			t.Fatalf("no save is asked for: %s", tale(j.w))
		}
		j.learns(incident.Ticked{})
	}
	j.says(life, events.ReportNotice, func(r *events.CrewReport) { r.Notice = &events.Notice{Status: events.NoticeGone} })
	if phaseOf(j.w) != "saving" || j.w.Notice("llama-8b").Status != events.NoticePending {
		t.Errorf("a line drops the save: %s", tale(j.w))
	}
}

// TestWhatMayComeBackIsNotDeleted, however long it takes: restarts are left.
func TestWhatMayComeBackIsNotDeleted(t *testing.T) {
	for _, c := range []incident.Condition{incident.Unhealthy, incident.Creating} {
		j := newJob(t, policies["everything"])
		for range 600 {
			e := found(j.w, c, string(c), j.now.Add(time.Minute))
			e.Facts.Healing = incident.HealsAlways
			if asked := j.learns(e) + j.learns(incident.Ticked{}); asked == "delete llama-8b" {
				t.Fatalf("%s: %s", c, tale(j.w))
			}
		}
	}
}

// TestWhatNobodySawFailIsNotCreatedAgain: a complete Job that its time to live removes between two ticks looks like a lost one.
func TestWhatNobodySawFailIsNotCreatedAgain(t *testing.T) {
	for cause, want := range map[events.Cause]string{"": "", events.CauseCrash: "create llama-8b", events.CauseTerminated: "create llama-8b"} {
		j := newJob(t, policies["everything"])
		if cause != "" {
			j.fails(cause)
		}
		j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
		j.now = j.now.Add(incident.Grace)
		asked := ""
		for range 5 {
			asked += j.learns(learned(j.w, j.w.Slices[0], j.now.Add(time.Minute))["unsaid"])
			asked += j.learns(incident.Ticked{})
		}
		if asked != want {
			t.Errorf("%q: %q is asked for, want %q: %s", cause, asked, want, tale(j.w))
		}
		if in := j.w.Closed; want == "" && (in == nil || in.Code != incident.CodeKept) {
			t.Errorf("%q: nobody is told: %s", cause, tale(j.w))
		}
	}
}

// says is a line of the crew in a Pod of the Job's life with that ID, of what happens now.
func (j *job) says(life string, kind events.Report, change func(r *events.CrewReport)) string {
	at := j.now.Add(time.Minute)
	r := events.CrewReport{Schema: 1, Report: kind, Zone: "us-west4-a", Node: "llama-8b", Hostname: "llama-8b-0", Life: life, Workers: 4, Attempt: 1}
	change(&r)
	return j.learns(incident.Reported{Origin: incident.Origin{ID: fmt.Sprintf("%s-%s", kind, at.Format(time.TimeOnly)), Time: at, Rank: events.RankUser}, Slice: "llama-8b", Report: r})
}

// mended is a Job of whose crew nothing was ever heard, and that Kubernetes has mended.
func mended(t *testing.T) *job {
	t.Helper()
	j := newJob(t, policies["everything"])
	j.w.Crew, j.w.Progress = incident.Crew{}, incident.Progress{}
	j.w.Slices[0].Healing = incident.HealsAlways
	for n := 0; n < 60 && j.w.Incident == nil; n++ {
		j.learns(found(j.w, incident.Unhealthy, "1 of 2 Pods are ready", j.now.Add(time.Minute)))
		j.learns(incident.Ticked{})
	}
	j.learns(found(j.w, incident.Ready, "ready", j.now.Add(time.Minute)))
	if phaseOf(j.w) != "resuming" {
		t.Fatal(stands(j.w, nil))
	}
	return j
}

// TestTheFirstLineOfACrewGivesATrainingItsTime: nobody expected a step of it before, so its silence until then shows nothing.
func TestTheFirstLineOfACrewGivesATrainingItsTime(t *testing.T) {
	for _, looked := range []bool{false, true} {
		j := mended(t)
		asked := ""
		for !looked && j.now.Before(j.w.Incident.Deadline.Add(-2*time.Minute)) || looked && asked == "" {
			asked = j.learns(incident.Ticked{})
		}
		asked = j.says("7711", events.ReportStarted, func(r *events.CrewReport) { r.Zone = j.w.Slices[0].Zone })
		for spoke := j.now; j.now.Sub(spoke) < incident.ResumeFor-2*time.Minute; {
			if asked += j.learns(incident.Ticked{}); asked == "verify" { // nobody has begun it
				asked = j.looks(old(start, time.Hour))
			}
			if asked != "" || phaseOf(j.w) != "resuming" {
				t.Fatalf("looked %t: %v after its first line %q is asked for: %s", looked, j.now.Sub(spoke), asked, tale(j.w))
			}
		}
	}
}

// TestALookThatIsUnderWayCountsThoughTheCrewSpeaks: a checkpoint is the better sign.
func TestALookThatIsUnderWayCountsThoughTheCrewSpeaks(t *testing.T) {
	if either(false, true, "steps") {
		return
	}
	for _, saved := range []bool{false, true} {
		j := mended(t)
		for asked := ""; asked != "verify"; {
			asked = j.learns(incident.Ticked{})
		}
		j.says("7711", events.ReportStarted, func(r *events.CrewReport) { r.Zone = j.w.Slices[0].Zone })
		asked := j.looks(incident.Checked{Found: saved, Step: 4000, At: j.now, URI: "gs://b/4000"})
		if in := j.w.Closed; saved && (j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByCheckpoint) {
			t.Errorf("it saves: %s", tale(j.w))
		}
		if !saved && (asked != "" || phaseOf(j.w) != "resuming") {
			t.Errorf("it has its time, and %q is asked for: %s", asked, tale(j.w))
		}
	}
}

// TestAJobThatCameBackIsConfirmedByAStepOfItsOwn: Pods of the former Job have the same host names, and their lines come late.
func TestAJobThatCameBackIsConfirmedByAStepOfItsOwn(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	former := j.w.Slices[0].Incarnation.ID
	j.fails(events.CauseTerminated)
	j.replaced()
	step := func(r *events.CrewReport) { r.Attempt, r.Step = 2, j.w.Progress.High+1000 }
	for _, life := range []string{former, "uid-of-nobody"} {
		if j.says(life, events.ReportProgress, step); j.w.Incident == nil {
			t.Fatalf("a line of the life %s confirms it: %s", life, tale(j.w))
		}
	}
	j.says("uid-1", events.ReportProgress, step)
	if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByStep {
		t.Errorf("its own step does not confirm it: %s", stands(j.w, nil))
	}
}

// TestALateEndOfAFormerJobOpensNothing: its training has begun again since, in another life.
func TestALateEndOfAFormerJobOpensNothing(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	former := j.w.Slices[0].Incarnation.ID
	e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
	e.Facts, e.Incarnation = incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "spec1", Label: "night"}, events.Incarnation{Zone: e.Zone, ID: "uid-1", Created: j.now}
	j.learns(e)
	fails := func(r *events.CrewReport) { r.Attempt, r.ExitCode, r.RestartsLeft = 7, 1, 4 }
	if j.says(former, events.ReportExited, fails); j.w.Incident != nil {
		t.Errorf("a former life's end opens an incident: %s", tale(j.w))
	}
	if j.says("uid-1", events.ReportExited, fails); j.w.Incident == nil {
		t.Error("the end of an attempt in its own life opens none")
	}
}

// TestAJobSavesBeforeItsPlannedEnd, and is brought back after it: nobody is charged.
func TestAJobSavesBeforeItsPlannedEnd(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	life, ends := j.w.Slices[0].Incarnation.ID, start.Add(2*time.Hour)
	e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
	e.Facts, e.Directory = j.w.Slices[0].Facts, j.w.Directory
	e.Facts.Ends = ends
	j.learns(e)
	asked := ""
	for j.now.Before(ends) && asked == "" {
		asked = j.learns(incident.Ticked{})
	}
	if !strings.HasPrefix(asked, "save") {
		t.Fatalf("its end comes at %s, and %q is asked for: %s", ends.Format(time.TimeOnly), asked, stands(j.w, nil))
	}
	id := j.w.Incident.Save.ID
	saved := func(r *events.CrewReport) { r.SaveID, r.CheckpointStep = id, 60_000 }
	if asked = j.says("uid-of-nobody", events.ReportSaved, saved); asked != "" {
		t.Errorf("a life that nobody knows has saved, and %q is asked for", asked)
	}
	if asked = j.says(life, events.ReportSaved, saved); !strings.HasPrefix(asked, "verify") {
		t.Fatalf("it has saved, and %q is asked for: %s", asked, stands(j.w, nil))
	}
	effect := j.w.Effects[0]
	r := events.Request{Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: events.ActionVerify, Attempt: effect.Attempt}
	j.learns(incident.Checked{Origin: incident.Origin{Time: j.now, Rank: events.RankReading}, Request: r, Found: true, Step: 60_000, URI: "gs://ckpt/llama-8b/60000", At: j.now})
	if s := j.w.Incident.Save; !s.Verified || phaseOf(j.w) != string(incident.Window) {
		t.Fatalf("the save is %+v in %s", s, phaseOf(j.w))
	}
	for j.now.Before(ends) {
		if asked = j.learns(incident.Ticked{}); asked != "" {
			t.Fatalf("%q is asked for before its end", asked)
		}
	}
	lost := found(j.w, incident.Lost, "lost: the Job has failed: BackoffLimitExceeded", j.now.Add(time.Minute))
	lost.Facts.Healing = incident.HealsNever
	if asked = j.learns(lost); asked != "delete llama-8b" {
		t.Fatalf("it has ended, and %q is asked for: %s", asked, stands(j.w, nil))
	}
	j.replaced()
	j.says("uid-1", events.ReportProgress, func(r *events.CrewReport) { r.Attempt, r.Step = 2, 60_001 })
	in := j.w.Closed
	if j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByStep || in.Cause != events.CauseEnd || j.w.Budgets != (incident.Budgets{}) {
		t.Errorf("it is back, %+v is charged: %s", j.w.Budgets, tale(j.w))
	}
}

// TestAYesToADeletionIsNoYesToItsOwners: a person was asked whether the failed Job is replaced, and somebody deleted it meanwhile. The log
// says first who did.
func TestAYesToADeletionIsNoYesToItsOwners(t *testing.T) {
	for _, before := range []bool{true, false} {
		j := newJob(t, policies["ask"])
		j.fails(events.CauseTerminated)
		if j.w.Incident == nil || j.w.Incident.Asked != events.ActionDelete {
			t.Fatalf("nobody is asked: %s", tale(j.w))
		}
		yes := incident.Approved{Word: ann, Incident: j.w.Incident.ID, Action: events.ActionDelete}
		gone := func() (asked string) {
			for range 3 {
				asked += j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute))) + j.learns(incident.Ticked{})
			}
			return asked
		}
		asked := ""
		if before {
			asked = gone()
		}
		asked += j.learns(yes)
		if asked += gone(); strings.Contains(asked, "create") {
			t.Errorf("nobody has said who deleted it, and %q is asked for: %s", asked, tale(j.w))
		}
		if !readsOf(j.w, j.now).Has(incident.ReadDeleter, j.w.Slices[0].Name) {
			t.Errorf("nobody asks who deleted it: %s", tale(j.w))
		}
		j.now = j.now.Add(10 * time.Minute)
		if asked := j.learns(learned(j.w, j.w.Slices[0], j.now)["owner deletes"]); asked != "" || j.w.Incident != nil || j.w.Closed.Outcome != incident.Released {
			t.Errorf("its owner deleted it, and %q is asked for: %s", asked, tale(j.w))
		}
	}
}

// TestALineOfAFormerLifeMakesNoCrew: the image of the next Job may hold none. Then a new checkpoint shows that it trains, and a restart
// is asked for only where there is none.
func TestALineOfAFormerLifeMakesNoCrew(t *testing.T) {
	for _, c := range []struct {
		what  string
		saves bool
		by    incident.Confirmation
		asked string
	}{
		{"it saves", true, incident.ByCheckpoint, ""},
		{"it does not", false, "", "restart llama-8b=uid-1"},
	} {
		j := newJob(t, policies["everything"])
		j.w.Slices[0].Hosts = ""
		j.says(j.w.Slices[0].Incarnation.ID, events.ReportStarted, func(*events.CrewReport) {})
		j.fails(events.CauseTerminated)
		j.replaced()
		asked := ""
		for n := 0; n < 60 && j.w.Incident != nil && !strings.HasPrefix(asked, "restart"); n++ {
			asked = j.learns(incident.Ticked{})
			for _, effect := range j.w.Effects {
				if effect.Action == events.ActionVerify && effect.Answered.IsZero() {
					r := events.Request{Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt}
					j.learns(incident.Intended{Request: r, RequestID: "look"})
					asked = j.learns(incident.Checked{Origin: incident.Origin{Time: j.now, Rank: events.RankReading}, Request: r, Found: c.saves, Step: 70_000, At: j.now, Text: "there is none"})
					break
				}
			}
		}
		if by := lastOf(j.w).ConfirmedBy; by != c.by || asked != c.asked {
			t.Errorf("%s: confirmed by %q, %q is asked for: %s", c.what, by, asked, tale(j.w))
		}
	}
}

// lastOf is the open incident, else the one that closed last.
func lastOf(w incident.Workload) *incident.Incident {
	if w.Incident != nil {
		return w.Incident
	}
	return w.Closed
}

// TestAKeptLineThatLostItsLifeIsOfNone: a function of the release before knows no life of a line, and drops it from the document.
func TestAKeptLineThatLostItsLifeIsOfNone(t *testing.T) {
	const place = "us-west4-a/research/teams"
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	j.fails(events.CauseTerminated)
	j.replaced()
	j.w.Slices[0].HostsAsked = true
	says := func(life string) {
		j.says(life, events.ReportProgress, func(r *events.CrewReport) { r.Zone, r.Attempt, r.Step = place, 2, 90_000 })
	}
	says("a Job that nobody knows")
	if len(j.w.Unbound) != 1 {
		t.Fatalf("%d lines are kept", len(j.w.Unbound))
	}
	j.w.Unbound[0].Report.Life = ""
	if lines := j.w.Bound(); len(lines) > 0 {
		t.Errorf("it is of the newest life: %+v", lines)
	}
	if says(""); j.w.Progress.Step == 90_000 {
		t.Error("a line in a Pod that names no life counts for the newest one")
	}
	if says(j.w.Slices[0].Incarnation.ID); j.w.Progress.Step != 90_000 {
		t.Errorf("a line of the newest life does not count: %s", tale(j.w))
	}
}

// TestALineOfAMadeUpLifePushesOutNoOther: whoever may write logs can write as many as they like, of a life that will never be read.
func TestALineOfAMadeUpLifePushesOutNoOther(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	j.says("the next Job", events.ReportSaved, func(r *events.CrewReport) { r.SaveID, r.CheckpointStep = "5f0c3a", 60_000 })
	for n := range 20 {
		j.says("made up", events.ReportProgress, func(r *events.CrewReport) { r.Step = int64(n) })
	}
	lives := map[string]int{}
	for _, k := range j.w.Unbound {
		lives[k.Report.Life]++
	}
	if lives["the next Job"] != 1 || lives["made up"] != 15 {
		t.Errorf("kept are %v", lives)
	}
}

// TestEverySliceHasRoomForALine: the slices of a JobSet begin anew at once, before any life of them is read.
func TestEverySliceHasRoomForALine(t *testing.T) {
	j := newJob(t, policies["everything"])
	for n := range 31 {
		s := j.w.Slices[0]
		s.Name, s.Hosts = fmt.Sprintf("llama-%d", n), ""
		j.w.Slices = append(j.w.Slices, s)
	}
	for range 2 {
		for _, s := range j.w.Slices[1:] {
			at := j.now.Add(time.Minute / 60)
			j.w, _, _ = advance(j.p, j.w, incident.Reported{
				Origin: incident.Origin{ID: at.Format(time.TimeOnly), Time: at, Rank: events.RankUser}, Slice: s.Name,
				Report: events.CrewReport{Schema: 1, Report: events.ReportStarted, Zone: s.Zone, Node: s.Name, Hostname: s.Name + "-0", Life: "next of " + s.Name, Attempt: 1},
			}, at)
			j.now = at
		}
	}
	kept := map[string]bool{}
	for _, k := range j.w.Unbound {
		kept[k.Slice] = true
	}
	if len(kept) != 31 {
		t.Errorf("lines of %d slices are kept, want 31", len(kept))
	}
}
