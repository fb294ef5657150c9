package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestDoneIsTheEndOfTheTraining: once the provider says that the work of every slice is complete, no slice is missed, until another
// life begins.
func TestDoneIsTheEndOfTheTraining(t *testing.T) {
	w := quiet(false)
	second := w.Slices[0]
	second.Name += "-1"
	w.Slices = append(w.Slices, second)
	now := start
	read := func(slice int, c incident.Condition, state string) {
		now = now.Add(time.Minute)
		e := found(w, c, state, now)
		e.Slice = w.Slices[slice].Name
		w, _, _ = advance(policies["everything"], w, e, now)
	}
	read(0, incident.Done, "done")
	if w.Crew.Finished || w.Incident != nil {
		t.Errorf("one slice of two is done, and the training finished: %t, %v", w.Crew.Finished, w.Incident)
	}
	read(0, incident.Gone, "gone")
	read(1, incident.Done, "done")
	if !w.Crew.Finished || w.Slices[0].Condition != incident.Done {
		t.Errorf("both slices are done: %+v, %s", w.Crew, w.Slices[0].Condition)
	}
	read(1, incident.Gone, "gone")
	now = now.Add(time.Hour)
	w, _, _ = advance(policies["everything"], w, incident.Ticked{}, now)
	if w.Incident != nil || !due(w).IsZero() {
		t.Errorf("an incident is open, or due at %s: %v", due(w), w.Incident)
	}
	e := found(w, incident.Ready, "ready", now)
	e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "next", Created: now}
	w, _, _ = advance(policies["everything"], w, e, now)
	if w.Crew.Finished || w.Crew.Certain || !w.Crew.FinishedAt.IsZero() {
		t.Errorf("another life trains, and the training counts as finished: %+v", w.Crew)
	}
}

// TestAGroupIsDoneAsAWhole: a JobSet that its owner deletes while one of its Jobs is complete, and another still waits for its machines, has
// not done its work. A slice of another group is no part of it.
func TestAGroupIsDoneAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		group string
		want  bool
	}{
		"the same group": {"set", false},
		"another one":    {"other", true},
		"none":           {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(false)
			second := w.Slices[0]
			second.Name += "-1"
			second.Used, second.Condition, second.NeverUsable = time.Time{}, incident.Creating, true
			w.Slices = append(w.Slices, second)
			now := start
			read := func(slice int, group string, c incident.Condition) {
				now = now.Add(time.Minute)
				e := found(w, c, string(c), now)
				e.Slice, e.Facts.Group = w.Slices[slice].Name, group
				w, _, _ = advance(policies["everything"], w, e, now)
			}
			read(0, "set", incident.Ready)
			read(1, c.group, incident.Creating)
			read(0, "set", incident.Done)
			read(1, c.group, incident.Gone)
			if s := w.Slices[1]; !s.IsReleased() || w.Crew.Finished != c.want || w.Incident != nil {
				t.Errorf("what came to nothing is released: %t; the training is finished: %t; the incident: %v", s.IsReleased(), w.Crew.Finished, w.Incident)
			}
		})
	}
}

// TestDoneEndsAnIncident: what is done needs nobody any more.
func TestDoneEndsAnIncident(t *testing.T) {
	for name, c := range map[string]struct {
		policy policy.Policy
		want   incident.Outcome
	}{
		"watched": {policies["watch"], incident.Observed},
		"helped":  {policies["everything"], incident.Resumed},
	} {
		w, now := quiet(false), start
		for _, step := range []incident.Condition{incident.Unhealthy, incident.Unread, incident.Done} {
			now = now.Add(incident.SickFor)
			var e incident.Evidence = incident.Ticked{}
			if step != incident.Unread {
				e = found(w, step, string(step), now)
			}
			w, _, _ = advance(c.policy, w, e, now)
			if step == incident.Unread && w.Incident == nil {
				t.Fatalf("%s: no incident is open", name)
			}
		}
		if w.Closed == nil || w.Closed.Outcome != c.want || w.Closed.ConfirmedBy != incident.ByHealth {
			t.Errorf("%s: %+v", name, w.Closed)
		}
	}
}

// TestThePlanOfAJobHasItsOwnWords: what would be called is named as the audit log of a cluster names it.
func TestThePlanOfAJobHasItsOwnWords(t *testing.T) {
	const scope = "us-east5/trainers/default"
	w := quiet(true)
	w.Provider, w.Slices[0].Zone, w.Slices[0].Incarnation.Zone = "gke", scope, scope
	w.Slices[0].Healing = incident.HealsNever
	name := w.Slices[0].Name
	plan := w.IfLost(policies["everything"], name, start)
	var calls []string
	for _, c := range plan.Calls {
		calls = append(calls, c.Method+" "+c.Resource)
	}
	job := "projects/" + w.Project + "/locations/us-east5/clusters/trainers/k8s/namespaces/default/jobs/" + name
	for _, want := range []string{"io.k8s.batch.v1.jobs.delete " + job, "io.k8s.batch.v1.jobs.create " + job} {
		if !strings.Contains(strings.Join(calls, "\n"), want) {
			t.Errorf("no %s among %q", want, calls)
		}
	}
	for _, line := range plan.Decisions {
		if strings.Contains(line.Text, "node "+name) {
			t.Errorf("a Job is called a node: %s", line.Text)
		}
	}
}
