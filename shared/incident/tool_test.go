package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
)

// Two callers of a cluster: a tool that keeps what its owner declared, and the garbage collector.
const (
	tool      = "system:serviceaccount:argocd:argocd-application-controller"
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// acted is word that somebody did something to the Job, or to its whole group, a minute from now.
func (n *story) acted(who string, act events.Act, whole bool) evidence.Called {
	n.later(time.Minute)
	return evidence.Called{
		Origin: evidence.Origin{ID: "log", Time: n.now, Rank: events.RankAudit}, Slice: "llama-8b", Act: act, Whole: whole, Method: "jobs." + string(act),
		Principal: who, Automatic: who != ann.By, Orphaned: who == collector,
	}
}

// theirs is a reading of the life that somebody else created at a time.
func (n *story) theirs(c evidence.Condition, created time.Time) *story {
	return n.later(time.Minute).reads("llama-8b", c, func(e *evidence.Read) {
		e.Incarnation, e.Facts.Cause = events.Incarnation{Zone: e.Zone, ID: "theirs", Created: created}, ""
	})
}

// TestWhatAToolCreatesAgainAnswersOurCreation: the tool that keeps a Job as declared creates it before Pitstop does. That is the new life of the slice.
func TestWhatAToolCreatesAgainAnswersOurCreation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ gone, entryFirst, begun, late bool }{
		"it was seen gone, and the entry comes first":              {gone: true, entryFirst: true},
		"it was seen gone, and the reading comes first":            {gone: true},
		"it was seen gone, and the creation was refused as taken":  {gone: true, begun: true},
		"it was never seen gone, and the entry comes first":        {entryFirst: true},
		"it was never seen gone, and the reading comes first":      {},
		"it was seen gone, and the entry comes after its training": {gone: true, late: true},
	} {
		n := newJob(t).breaks(events.CauseTerminated).does(events.ActionDelete, "llama-8b")
		if c.gone {
			n.goes("a minute, read gone")
		}
		entry := n.acted(tool, events.ActCreated, false)
		if c.entryFirst {
			n.give(entry)
		}
		if c.begun {
			n.goes("exists create")
		}
		if n.theirs(evidence.Creating, entry.Time); !c.entryFirst && !c.late {
			n.give(entry)
		}
		if sent := n.passes(time.Hour); slices.Contains(sent, "delete llama-8b") || n.stands(nil) != "creating" {
			t.Errorf("%s: it waits for its machines, and %q is asked for:\n%s", name, sent, n.tale())
		}
		if n.theirs(evidence.Ready, entry.Time).goes("do"); c.late {
			n.give(entry)
		}
		n.says("theirs", events.ReportProgress, ofSecond(60_000)).is("resumed")
		if s := n.w.Slices[0]; s.IsReleased() || len(n.w.Charges) != 1 {
			t.Errorf("%s: its training goes on, charged is %+v:\n%s", name, n.w.Charges, n.tale())
		}
	}
}

// TestWhoeverCreatesWhatPitstopDidNotDeleteTakesItOver, and so does a person at any time.
func TestWhoeverCreatesWhatPitstopDidNotDeleteTakesItOver(t *testing.T) {
	t.Parallel()
	for who, deleted := range map[string]bool{tool: false, ann.By: true} {
		for _, readFirst := range []bool{true, false} {
			n := newJob(t)
			if n.breaks(events.CauseTerminated); deleted {
				n.does(events.ActionDelete, "llama-8b").later(time.Minute).reads("llama-8b", evidence.Gone)
			}
			entry := n.acted(who, events.ActCreated, false)
			if readFirst {
				n.theirs(evidence.Creating, entry.Time)
			}
			if n.give(entry); n.ended().Code != reason.CodeTakenOver {
				t.Errorf("%s, read first %t:\n%s", who, readFirst, n.tale())
			}
		}
	}
}

// TestADeletionOfAnotherLifeHasDeletedNothing: somebody made the Job again before our call came, maybe in the very second in which its incident opened.
func TestADeletionOfAnotherLifeHasDeletedNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{300 * time.Millisecond, time.Minute} {
		for shown, want := range map[string]string{"another life": "released", "the entry of a tool": "released", "nothing": "grace"} {
			n := newJob(t).later(485 * time.Millisecond).breaks(events.CauseTerminated)
			r := n.begins(events.ActionDelete, "llama-8b")
			made := n.later(after).now.Truncate(time.Second)
			n.give(evidence.Answered{Origin: n.reading(), Request: r, Text: "delete of llama-8b failed", Failure: &evidence.Failure{
				Class: reason.NotFound, Code: reason.CodeOtherLife, Message: "it has another UID",
			}})
			switch shown {
			case "another life":
				n.theirs(evidence.Ready, made)
			case "nothing":
				n.later(time.Minute).reads("llama-8b", evidence.Gone)
			default:
				n.give(n.acted(tool, events.ActCreated, false))
			}
			if got := n.stands(nil); got != want {
				t.Errorf("refused after %s, then %s: it stands at %s, want %s:\n%s", after, shown, got, want, n.tale())
			}
		}
	}
}

// TestAnOwnedJobIsJudgedByItsOwner: its controller makes it anew, so it is given up once its owner is: by word on the JobSet, or by the garbage collector.
func TestAnOwnedJobIsJudgedByItsOwner(t *testing.T) {
	t.Parallel()
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
		"a Job of its own, by a tool":                          {who: tool, act: events.ActDeleted, released: true},
		"a Job of its own, collected":                          {who: collector, act: events.ActDeleted},
	} {
		for _, open := range []bool{false, true} {
			n := newJob(t)
			n.w.Slices[0].Group, n.w.Slices[0].Controlled = c.group, c.controlled
			if open {
				n.reads("llama-8b", evidence.Unhealthy).passes(bounds.SickFor)
				n.is("healing")
			}
			n.give(n.acted(c.who, c.act, c.whole))
			if s := n.w.Slices[0]; s.IsReleased() != c.released || s.Stop.By != "" || open && (n.w.Incident == nil) != c.released {
				t.Errorf("%s, an incident is open %t: released %t, %+v:\n%s", name, open, s.IsReleased(), s.Stop, n.tale())
			}
			if open && c.controlled && !c.released && c.group == "" { // made anew, it is nobody's but its controller's
				n.later(time.Minute).reads("llama-8b", evidence.Gone).theirs(evidence.Ready, n.now)
				n.is("resuming")
			}
		}
	}
}
