package incident_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// wrote gives a line that a crew wrote at another time, and what it lets be bound. What it names itself stays.
func (n *story) wrote(at time.Time, slice string, r events.CrewReport) *story {
	s := n.w.Slice(slice)
	r.Schema, r.Node, r.Zone, r.Hostname = 1, slice, cmp.Or(r.Zone, s.Zone), cmp.Or(r.Hostname, s.Hosts+"-w-0")
	id := fmt.Sprint(at, r.Report, r.Attempt, r.Hostname)
	n.give(evidence.Reported{Origin: evidence.Origin{ID: id, Time: at, Rank: events.RankUser}, Slice: slice, Report: r})
	return n.binds()
}

// binds gives the lines that were kept, and whose life is known by now.
func (n *story) binds() *story {
	for _, line := range n.w.Bound() {
		n.give(line)
	}
	return n
}

// about is the incident that is open, or the one that closed last.
func (n *story) about() *incident.Incident {
	if n.w.Incident != nil {
		return n.w.Incident
	}
	return n.w.Closed
}

// spent is a workload that has no call of these kinds left.
func spent(actions ...events.Action) func(*incident.Workload) {
	return func(w *incident.Workload) {
		for _, a := range actions {
			w.Charges = append(w.Charges, slices.Repeat([]incident.Charge{{Action: a, Incident: "before", At: start}}, max(bounds.MaxRecreates, bounds.MaxRestarts))...)
		}
	}
}

// notes is a word of the maintenance of the first slice: what the API shows, or what a line says.
func (n *story) notes(inAPI bool, notice events.Notice) *story {
	if inAPI {
		return n.announces(n.w.Slices[0].Name, notice)
	}
	return n.line(n.w.Slices[0].Name, events.CrewReport{Report: events.ReportNotice, Notice: &notice})
}

// obeys has the training side do what it was asked for: it saves, and looks in vain for a verdict. It counts the saves.
func (n *story) obeys() (saves int) {
	for i := 0; i < len(n.w.Effects); i++ {
		switch x := n.w.Effects[i]; {
		case x.Dropped() || x.Stage() != view.StageWanted:
		case x.Action == events.ActionSave:
			saves++
			n.begins(x.Action, "")
			n.line(n.w.Slices[0].Name, events.CrewReport{Report: events.ReportSaved, SaveID: n.w.Incident.SaveID(), CheckpointStep: 48200})
		case x.Action == events.ActionVerify:
			n.give(evidence.Checked{Origin: n.reading(), Request: n.begins(x.Action, ""), Found: true, Step: 48200, At: n.now})
		case x.Action == events.ActionHear:
			n.give(evidence.VerdictRead{Origin: n.reading(), Request: n.begins(x.Action, ""), Text: "there is none"})
		}
	}
	return saves
}

// goesOn has the training do a step that ends the open incident, ten minutes later.
func (n *story) goesOn() {
	n.Helper()
	n.now = n.now.Add(10 * time.Minute)
	n.reads(n.w.Slices[0].Name, evidence.Ready)
	n.passes(time.Minute)
	if n.steps(n.w.Training.Attempt, max(n.w.Training.Step, n.w.Training.Saved.Step)+1000); n.w.Incident != nil {
		n.Fatalf("a step ends nothing:\n%s", n.tale())
	}
	n.now = n.now.Add(time.Minute)
}
