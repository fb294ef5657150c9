package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// Two callers of a cluster: a tool that keeps what its owner declared, and the garbage collector.
const (
	tool      = "system:serviceaccount:argocd:argocd-application-controller"
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// does is word that somebody did something to the slice a minute from now.
func (j *job) does(who string, act events.Act, whole bool) incident.Called {
	at := j.now.Add(time.Minute)
	return incident.Called{
		Origin: incident.Origin{ID: "log-" + string(act) + at.String(), Time: at, Rank: events.RankAudit}, Slice: "llama-8b", Act: act, Whole: whole,
		Method: "io.k8s.batch.v1.jobs." + string(act), Principal: who, Automatic: who != ann.By, Orphaned: who == collector,
	}
}

// shows is a reading of a life that somebody else created.
func (j *job) shows(life string, c incident.Condition, created time.Time) incident.Read {
	e := found(j.w, c, string(c), j.now.Add(time.Minute))
	e.Slice, e.Incarnation = "llama-8b", events.Incarnation{Zone: e.Zone, ID: life, Created: created}
	e.Facts = incident.Facts{
		Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "spec1", Label: "night", Healing: incident.HealsNever, Group: j.w.Slice("llama-8b").Group,
		Controlled: j.w.Slice("llama-8b").Controlled,
	}
	return e
}

// TestWhatAToolCreatesAgainAnswersOurCreation: Pitstop has deleted the failed Job, and the tool that keeps it as declared creates it before
// Pitstop does. That is the new life of the slice: Pitstop waits for it, admits training there, and makes no further call.
func TestWhatAToolCreatesAgainAnswersOurCreation(t *testing.T) {
	for name, c := range map[string]struct {
		gone, entryFirst, begun bool
		late                    bool
	}{
		"it was seen gone, and the entry comes first":              {gone: true, entryFirst: true},
		"it was seen gone, and the reading comes first":            {gone: true},
		"it was seen gone, and the creation was refused as taken":  {gone: true, begun: true},
		"it was never seen gone, and the entry comes first":        {entryFirst: true},
		"it was never seen gone, and the reading comes first":      {},
		"it was seen gone, and the entry comes after its training": {gone: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, policies["everything"])
			j.fails(events.CauseTerminated)
			j.call(events.ActionDelete)
			if c.gone {
				j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
			}
			entry := j.does(tool, events.ActCreated, false)
			if c.entryFirst {
				j.learns(entry)
			}
			if c.begun {
				effect := j.w.Effects[0]
				r := events.Request{Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt, Slice: effect.Slice}
				j.learns(incident.Intended{Request: r, RequestID: "request-create"})
				j.learns(incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.Exists, Message: "jobs.batch \"llama-8b\" already exists"}})
			}
			asked := j.learns(j.shows("theirs", incident.Creating, entry.Time))
			if !c.entryFirst && !c.late {
				asked += j.learns(entry)
			}
			for range 60 { // its machines come late
				asked += j.learns(incident.Ticked{})
				asked += j.learns(j.shows("theirs", incident.Creating, entry.Time))
			}
			if strings.Contains(asked, "delete") || j.w.Incident == nil || j.w.Incident.Phase != incident.PhaseCreating {
				t.Fatalf("it waits for its machines, and %q is asked for: %s", asked, tale(j.w))
			}
			asked = j.learns(j.shows("theirs", incident.Ready, entry.Time))
			if !strings.Contains(asked, either("admit llama-8b=theirs", "", "its crew")) {
				t.Fatalf("it is usable, and %q is asked for: %s", asked, tale(j.w))
			}
			if asked != "" {
				j.call(events.ActionAdmit)
			}
			if c.late {
				j.learns(entry)
			}
			j.learns(incident.Reported{
				Origin: incident.Origin{ID: "crew", Time: j.now.Add(time.Minute), Rank: events.RankUser}, Slice: "llama-8b",
				Report: events.CrewReport{Schema: events.Schema, Report: events.ReportProgress, Zone: "a/b/c", Life: "theirs", Attempt: j.w.Crew.LeaseAttempt, Step: 1 << 30, CheckpointStep: 1},
			})
			if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Resumed {
				t.Errorf("its training goes on: %s", tale(j.w))
			}
			if s := j.w.Slices[0]; s.Maker != "" || s.IsReleased() {
				t.Errorf("the slice is %+v", s)
			}
		})
	}
}

// TestWhoeverCreatesWhatPitstopDidNotDeleteTakesItOver, and so does a person at any time.
func TestWhoeverCreatesWhatPitstopDidNotDeleteTakesItOver(t *testing.T) {
	for name, c := range map[string]struct {
		who     string
		deleted bool
	}{
		"a tool, before Pitstop has deleted it":  {tool, false},
		"a person, after Pitstop has deleted it": {ann.By, true},
	} {
		for _, readFirst := range []bool{true, false} {
			j := newJob(t, policies["everything"])
			j.fails(events.CauseTerminated)
			if c.deleted {
				j.call(events.ActionDelete)
				j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
			}
			entry := j.does(c.who, events.ActCreated, false)
			if readFirst {
				j.learns(j.shows("theirs", incident.Creating, entry.Time))
			}
			j.learns(entry)
			if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Released || in.Code != incident.CodeTakenOver {
				t.Errorf("%s, read first %t: %s", name, readFirst, tale(j.w))
			}
		}
	}
}

// TestAToolsDeletionReleases: of a healthy Job nothing follows, and an incident ends with it.
func TestAToolsDeletionReleases(t *testing.T) {
	for name, failed := range map[string]bool{"healthy": false, "failed": true} {
		j := newJob(t, policies["everything"])
		if failed {
			j.fails(events.CauseTerminated)
		}
		asked := j.learns(j.does(tool, events.ActDeleted, false))
		in := j.w.Closed
		for range 90 {
			asked += j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
			asked += j.learns(incident.Ticked{})
		}
		if asked != "" || j.w.Incident != nil || !j.w.Slices[0].IsReleased() || failed != (in != nil && in.Outcome == incident.Released) {
			t.Errorf("%s: %q is asked for: %s", name, asked, tale(j.w))
		}
	}
}

// TestAnOwnedJobIsJudgedByItsOwner: whatever is done to the Job of a JobSet, or to one that another object of the cluster makes, its
// controller makes it anew. It is given up once its owner is: by word on the JobSet, or by the garbage collector.
func TestAnOwnedJobIsJudgedByItsOwner(t *testing.T) {
	for name, c := range map[string]struct {
		group      string
		controlled bool
		who        string
		act        events.Act
		whole      bool
		released   bool
	}{
		"a Job of a JobSet, by a controller that is not known": {group: "set", who: tool, act: events.ActDeleted},
		"a Job of a JobSet, by a person":                       {group: "set", who: ann.By, act: events.ActDeleted},
		"a Job of a JobSet, collected":                         {group: "set", who: collector, act: events.ActDeleted},
		"a Job of a JobSet, made by a controller":              {group: "set", who: tool, act: events.ActCreated},
		"a Job of a JobSet, suspended by a controller":         {group: "set", who: tool, act: events.ActStopped},
		"a JobSet, by a tool":                                  {group: "set", who: tool, act: events.ActDeleted, whole: true, released: true},
		"the Job of another object, by its controller":         {controlled: true, who: tool, act: events.ActDeleted},
		"the Job of another object, collected":                 {controlled: true, who: collector, act: events.ActDeleted, released: true},
		"the JobSet of another object, by its controller":      {group: "set", controlled: true, who: tool, act: events.ActDeleted, whole: true},
		"the JobSet of another object, collected":              {group: "set", controlled: true, who: collector, act: events.ActDeleted, whole: true, released: true},
		"a Job of its own, collected":                          {who: collector, act: events.ActDeleted},
	} {
		for _, open := range []bool{false, true} {
			j := newJob(t, policies["everything"])
			j.w.Slices[0].Group, j.w.Slices[0].Controlled = c.group, c.controlled
			if open {
				j.learns(found(j.w, incident.Unhealthy, "unhealthy: a machine is gone", j.now.Add(time.Minute)))
				j.now = j.now.Add(incident.SickFor)
				j.learns(incident.Ticked{})
			}
			if opened := j.w.Incident != nil; opened != open {
				t.Fatalf("%s: an incident is open %t: %s", name, opened, tale(j.w))
			}
			j.learns(j.does(c.who, c.act, c.whole))
			if s := j.w.Slices[0]; s.IsReleased() != c.released || s.Stop.By != "" || open && (j.w.Incident == nil) != c.released {
				t.Errorf("%s, incident open %t: released %t, %+v, %s", name, open, s.IsReleased(), s.Stop, tale(j.w))
			}
		}
	}
}

// TestAControllerThatMakesItsJobAnewTakesNothingOver, in the middle of an incident.
func TestAControllerThatMakesItsJobAnewTakesNothingOver(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Controlled = true
	j.learns(found(j.w, incident.Unhealthy, "unhealthy: a machine is gone", j.now.Add(time.Minute)))
	j.now = j.now.Add(incident.SickFor)
	j.learns(incident.Ticked{})
	if j.w.Incident == nil {
		t.Fatalf("no incident is open: %s", tale(j.w))
	}
	j.learns(j.does(tool, events.ActDeleted, false))
	j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute)))
	j.learns(j.shows("anew", incident.Ready, j.now))
	if in := j.w.Incident; in == nil || j.w.Slices[0].Incarnation.ID != "anew" || j.w.Slices[0].IsReleased() {
		t.Errorf("it was made anew: %s", tale(j.w))
	}
}
