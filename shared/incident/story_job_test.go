package incident_test

import (
	"fmt"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// newJob is the Job of a cluster that trains and has a crew. Once it is lost, its cluster brings it back no more.
func newJob(t *testing.T) *story {
	const cluster = "us-west4/trainers/default"
	n := newStory(t, false, "llama-8b")
	n.w.Provider = "gke"
	n.p = n.w.Limited(n.p)
	s := &n.w.Slices[0]
	s.Zone, s.Incarnation.Zone, s.Hosts, s.Healing = cluster, cluster, "", evidence.HealsNever
	return n
}

// later lets time pass, and nothing happen.
func (n *story) later(d time.Duration) *story {
	n.now = n.now.Add(d)
	return n
}

// is fails unless the story stands there.
func (n *story) is(at string) {
	n.Helper()
	if got := n.stands(nil); got != at {
		n.Fatalf("it stands at %s, want %s:\n%s", got, at, n.tale())
	}
}

// says is a line of the crew in a Pod of the life with that ID, a minute later.
func (n *story) says(life string, kind events.Report, change ...func(*events.CrewReport)) *story {
	n.now = n.now.Add(time.Minute)
	s := n.w.Slices[0]
	r := events.CrewReport{Schema: 1, Report: kind, Zone: s.Zone, Node: s.Name, Hostname: s.Name + "-0", Life: life, Workers: 4, Attempt: 1}
	for _, f := range change {
		f(&r)
	}
	return n.give(evidence.Reported{Origin: evidence.Origin{ID: fmt.Sprint(kind, n.now), Time: n.now, Rank: events.RankUser}, Slice: s.Name, Report: r})
}

// breaks has a reading show, a minute later, that the slice is lost for that cause.
func (n *story) breaks(cause events.Cause) *story {
	return n.later(time.Minute).reads("llama-8b", evidence.Lost, func(e *evidence.Read) { e.Facts.Cause = cause })
}

// does begins a call, which is accepted.
func (n *story) does(a events.Action, slice string) *story {
	n.Helper()
	r := n.begins(a, slice)
	return n.give(evidence.Answered{Origin: n.reading(), Request: r, Text: "accepted"})
}

// replaces goes through a replacement of a Job that is asked for, up to its next life.
func (n *story) replaces(life string) *story {
	n.Helper()
	n.does(events.ActionDelete, "llama-8b")
	n.later(time.Minute).reads("llama-8b", evidence.Gone).wants("create llama-8b")
	n.does(events.ActionCreate, "llama-8b")
	n.later(time.Minute).reads("llama-8b", evidence.Ready, func(e *evidence.Read) {
		e.Incident, e.Incarnation = n.w.Incident.ID, events.Incarnation{Zone: e.Zone, ID: life, Created: n.now.Add(-time.Second)}
		e.Facts.Cause, e.Facts.Failed = "", time.Time{}
	})
	if n.isWanted(events.ActionAdmit) {
		n.does(events.ActionAdmit, "")
	}
	return n
}
