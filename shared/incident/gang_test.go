package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// newGang is a Job that no crew tells of.
func newGang(t *testing.T, p policy.Policy) *job {
	j := newJob(t, p)
	j.w.Crew, j.w.Progress = incident.Crew{}, incident.Progress{}
	j.w.Slices[0].Restartable = true
	return j
}

// reads reads the Job as usable: torn since a time, or whole.
func (j *job) reads(torn time.Time, restartable bool) string {
	e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
	e.Facts.Torn, e.Facts.Restartable, e.Facts.Healing = torn, restartable, incident.HealsAlways
	return j.learns(e)
}

// looks answers the request for a new checkpoint.
func (j *job) looks(e incident.Checked) string {
	j.Helper()
	for _, effect := range j.w.Effects {
		if effect.Action == events.ActionVerify {
			e.Request = events.Request{Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt}
			return j.learns(e)
		}
	}
	j.Fatalf("no checkpoint is looked for: %s", tale(j.w))
	return ""
}

// waits lets time pass until something is asked for, or the incident has ended.
func (j *job) waits(torn time.Time, restartable bool) (asked string) {
	for range 240 {
		if asked = j.reads(torn, restartable) + j.learns(incident.Ticked{}); asked != "" || j.w.Closed != nil && j.w.Incident == nil {
			return asked
		}
	}
	return ""
}

// TestATornGangIsRestarted: one of its Pods was made anew while the others ran on, and nothing is saved any more.
func TestATornGangIsRestarted(t *testing.T) {
	j := newGang(t, policies["everything"])
	torn := j.now.Add(time.Minute)
	if asked := j.waits(torn, true); asked != "verify" || j.now.Sub(torn) < incident.NoGapFor {
		t.Fatalf("after %v %q is asked for: %s", j.now.Sub(torn), asked, stands(j.w, nil))
	}
	if by := j.w.Effects[0].By; by.Before(torn.Add(incident.SaveFor)) {
		t.Errorf("what the others were saving at %v counts: newer than %v", torn, by)
	}
	if asked := j.looks(incident.Checked{Stale: true, Text: "the newest is older"}); asked != "renew llama-8b=7711" || phaseOf(j.w) != "restarting" {
		t.Fatalf("nothing new is saved, and %q is asked for: %s", asked, stands(j.w, nil))
	}
	effect := j.w.Effects[0]
	if len(effect.Admit) != 1 || !effect.Admit[0].Incarnation.Same(j.w.Slices[0].Incarnation) || effect.By.Before(torn) || j.w.Budgets.Restarts != 1 {
		t.Errorf("%+v, %+v", effect, j.w.Budgets)
	}
	j.call(events.ActionRenew)
	if len(j.w.Effects) != 0 || phaseOf(j.w) != "resuming" {
		t.Fatalf("its Pods are deleted: %s", stands(j.w, nil))
	}
	j.learns(found(j.w, incident.Creating, "creating", j.now.Add(time.Minute)))
	for j.w.Incident != nil {
		if asked := j.waits(time.Time{}, true); asked != "verify" {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		j.looks(incident.Checked{Found: true, Step: 4000, At: j.now, URI: "gs://b/4000"})
	}
	if in := j.w.Closed; in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByCheckpoint {
		t.Errorf("it saves again: %s", tale(j.w))
	}
}

// TestWhatOfATornGangIsNotRestarted: what may train, and what nothing begins again.
func TestWhatOfATornGangIsNotRestarted(t *testing.T) {
	no, report := policies["everything"], policies["everything"]
	no.Switches.Restart = policy.No
	report.Hang = policy.HangReport
	stale := incident.Checked{Stale: true, Text: "the newest is older"}
	for name, c := range map[string]struct {
		p        policy.Policy
		restarts bool
		change   func(*job)
		look     *incident.Checked
		outcome  incident.Outcome
		code     incident.Code
	}{
		"it saves":                    {policies["everything"], true, nil, &incident.Checked{Found: true, Step: 4000, URI: "gs://b/4000"}, incident.Resumed, ""},
		"no restart is left":          {policies["everything"], false, nil, &stale, incident.Escalated, incident.CodeNoRestart},
		"nothing was ever saved":      {policies["everything"], true, nil, &incident.Checked{None: true, Text: "nothing is there"}, incident.Escalated, incident.CodeNoCheckpoint},
		"where it saves is not known": {policies["everything"], true, func(j *job) { j.w.Directory = "" }, nil, incident.Escalated, incident.CodeNoLease},
		"the policy forbids it":       {no, true, nil, &stale, incident.Escalated, incident.CodePolicyNo},
		"the budget is spent":         {policies["everything"], true, func(j *job) { j.w.Budgets.Restarts = incident.MaxRestarts }, &stale, incident.Escalated, incident.CodeBudget},
	} {
		j := newGang(t, c.p)
		if c.change != nil {
			c.change(j)
		}
		asked, torn := "", j.now.Add(time.Minute)
		for n := 0; j.w.Closed == nil && n < 10; n++ {
			if asked != "verify" {
				asked = j.waits(torn, c.restarts)
			}
			switch asked = strings.ReplaceAll(asked, "hear", ""); asked { // whether more was saved, which nobody answers here
			case "verify":
				look := *c.look
				look.At = j.now
				asked = j.looks(look)
			case "":
			default:
				t.Fatalf("%s: %q is asked for: %s", name, asked, stands(j.w, nil))
			}
		}
		if in := j.w.Closed; in == nil || in.Outcome != c.outcome || in.Code != c.code {
			t.Errorf("%s: %s", name, tale(j.w))
			continue
		}
		closed := j.w.Closed.ID
		for range 60 { // it is told once
			j.reads(torn, c.restarts)
			j.learns(incident.Ticked{})
		}
		if j.w.Incident != nil || j.w.Closed != nil && j.w.Closed.ID != closed {
			t.Errorf("%s: it is told again: %s", name, tale(j.w))
		}
	}
}

// TestATornGangIsLeftWhereItsCrewDoesSteps, and where it becomes whole by itself in time.
func TestATornGangOpensNothingWhereItIsKnownToTrain(t *testing.T) {
	j := newGang(t, policies["everything"])
	j.w.Crew.Seen, j.w.Progress.At, j.w.Progress.Step = j.now, j.now, 100
	torn := j.now.Add(time.Minute)
	for range 90 {
		j.w.Progress.At = j.now
		if asked := j.reads(torn, true) + j.learns(incident.Ticked{}); asked != "" || j.w.Incident != nil {
			t.Fatalf("its crew does steps: %q, %s", asked, tale(j.w))
		}
	}
	j = newGang(t, policies["everything"])
	for range 10 {
		j.reads(torn, true)
		j.learns(incident.Ticked{})
	}
	for range 200 {
		if asked := j.reads(time.Time{}, true) + j.learns(incident.Ticked{}); asked != "" || j.w.Incident != nil {
			t.Fatalf("it is whole: %q, %s", asked, tale(j.w))
		}
	}
}

// TestARestartOfPodsIsNotRepeated: a second call would end what the first one has begun.
func TestARestartOfPodsIsNotRepeated(t *testing.T) {
	for name, then := range map[string]func(j *job, r events.Request) incident.Evidence{
		"nobody answers": func(*job, events.Request) incident.Evidence { return incident.Ticked{} },
		"it is refused": func(_ *job, r events.Request) incident.Evidence {
			return incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.NotInState, Message: "no restart is left"}}
		},
		"it is another life": func(_ *job, r events.Request) incident.Evidence {
			return incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.NotFound, Code: incident.CodeOtherLife, Message: "another one"}}
		},
	} {
		j := newGang(t, policies["everything"])
		torn := j.now.Add(time.Minute)
		j.waits(torn, true)
		j.looks(incident.Checked{Stale: true})
		effect := j.w.Effects[0]
		r := events.Request{Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: events.ActionRenew, Attempt: effect.Attempt}
		j.learns(incident.Intended{Request: r, RequestID: "request-1"})
		for range 20 {
			if asked := j.learns(then(j, r)); asked != "" {
				t.Fatalf("%s: %q is asked for: %s", name, asked, stands(j.w, nil))
			}
		}
		if phaseOf(j.w) != "resuming" {
			t.Errorf("%s: %s", name, stands(j.w, nil))
		}
	}
}

// TestWhereTheCrewsDoNotHelpThePodsAreRestarted: the crews of a training that hangs are asked first.
func TestWhereTheCrewsDoNotHelpThePodsAreRestarted(t *testing.T) {
	for name, restartable := range map[string]bool{"renew llama-8b=7711": true, "restart llama-8b=7711": false} {
		p := policies["everything"]
		p.Hang = policy.HangRestart
		j := newJob(t, p)
		j.reads(time.Time{}, restartable)
		j.w.Progress.Verified, j.w.Progress.VerifiedAt = 900, start
		asked := ""
		for range 600 {
			for i := range j.w.Slices {
				j.w.Slices[i].Heard = incident.Heard{At: j.now, Seen: j.now, Runs: true, Attempt: 1}
			}
			if asked = j.reads(time.Time{}, restartable) + j.learns(incident.Ticked{}); asked != "" {
				break
			}
		}
		if asked != "restart llama-8b=7711" {
			t.Fatalf("%s: it does no steps, and %q is asked for: %s", name, asked, stands(j.w, nil))
		}
		j.call(events.ActionRestart)
		for range 60 {
			if asked = j.reads(time.Time{}, restartable) + j.learns(incident.Ticked{}); asked != "" {
				break
			}
		}
		if asked != name {
			t.Errorf("the crews were asked, and %q is asked for, want %q: %s", asked, name, stands(j.w, nil))
		}
	}
}
