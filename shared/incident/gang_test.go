package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// restarting is the policy under which a training that hangs is brought back.
func restarting() policy.Policy {
	p := policies["everything"]
	p.Hang = policy.HangRestart
	return p
}

// newGang is a Job that no crew tells of.
func newGang(t *testing.T, p policy.Policy) *job {
	j := newJob(t, p)
	j.w.Crew, j.w.Progress = incident.Crew{}, incident.Progress{}
	j.w.Slices[0].Incarnation.Created = j.now.Add(-48 * time.Hour)
	j.w.Slices[0].Healing = incident.HealsAlways
	return j
}

// reads reads the Job as usable: torn since a time, or whole.
func (j *job) reads(torn time.Time) string {
	e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
	e.Facts = j.w.Slices[0].Facts
	e.Facts.Torn = torn
	return j.learns(e)
}

// old is a look that finds three checkpoints from before a tear, so far apart.
func old(tear time.Time, apart time.Duration) incident.Checked {
	return incident.Checked{
		Stale: true, Text: "the newest is older", Saves: []time.Time{tear.Add(-3 * apart), tear.Add(-2 * apart), tear.Add(-apart)},
		Step: 3000, At: tear.Add(-apart), URI: "gs://b/3000", Bytes: 1,
	}
}

// stood is a gang that has stood still for so long that its replacement is asked for, or a person about it.
func stood(t *testing.T, p policy.Policy) (j *job, torn time.Time) {
	t.Helper()
	j = newGang(t, p)
	torn = j.now.Add(time.Minute)
	if asked := j.waits(torn); asked != "verify" {
		t.Fatalf("%q is asked for: %s", asked, stands(j.w, nil))
	}
	j.looks(old(torn, 20*time.Minute))
	return j, torn
}

// looks answers the request for a new checkpoint.
func (j *job) looks(e incident.Checked) string {
	j.Helper()
	for _, effect := range j.w.Effects {
		if effect.Action == events.ActionVerify {
			e.Request = j.request(effect)
			return j.learns(e)
		}
	}
	j.Fatalf("no checkpoint is looked for: %s", tale(j.w))
	return ""
}

// request is the request for an effect.
func (j *job) request(effect incident.Effect) events.Request {
	return events.Request{
		Schema: events.Schema, Workload: j.w.ID, Incident: j.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Slice: effect.Slice, Attempt: effect.Attempt,
	}
}

// deletion is the request for the deletion that is wanted.
func (j *job) deletion() events.Request {
	j.Helper()
	for _, effect := range j.w.Effects {
		if effect.Action == events.ActionDelete {
			return j.request(effect)
		}
	}
	j.Fatalf("no deletion is wanted: %s", tale(j.w))
	return events.Request{}
}

// waits lets time pass until something is asked for, or the incident has ended.
func (j *job) waits(torn time.Time) (asked string) {
	for range 240 {
		if asked = j.reads(torn) + j.learns(incident.Ticked{}); asked != "" || j.w.Closed != nil && j.w.Incident == nil {
			return asked
		}
	}
	return ""
}

// TestATornGangThatStandsStillIsBroughtBack: one of its Pods was made anew while the others ran on, and nothing is saved any more.
func TestATornGangThatStandsStillIsBroughtBack(t *testing.T) {
	j := newGang(t, restarting())
	torn := j.now.Add(time.Minute)
	j.reads(torn)
	if due := j.w.Due(); !due.Equal(torn.Add(incident.ResumeFor)) { // patrol ticks no workload before that
		t.Errorf("it is due at %v", due)
	}
	if asked := j.waits(torn); asked != "verify" || j.now.Sub(torn) < incident.NoGapFor {
		t.Fatalf("after %v %q is asked for: %s", j.now.Sub(torn), asked, stands(j.w, nil))
	}
	look, is := j.w.Request(j.w.Effects[0]).(events.CheckpointRequested)
	if !is || !look.Since.Equal(torn.Add(incident.ResumeFor)) || !look.Any || look.MoreThan != 0 { // what the lost Pod saved may be complete later
		t.Errorf("every checkpoint counts that was written half an hour after %v: %+v", torn, look)
	}
	if asked := j.looks(old(torn, 20*time.Minute)); asked != "delete llama-8b" || phaseOf(j.w) != "deleting" {
		t.Fatalf("nothing new is saved, and %q is asked for: %s", asked, tale(j.w))
	}
	if in := j.w.Incident; in.Cause != events.CauseHang || j.w.Budgets.Restarts != 1 || j.w.Budgets.Recreates != 0 || j.w.Progress.Verified != 3000 {
		t.Errorf("%s, %+v, %+v", in.Cause, j.w.Budgets, j.w.Progress)
	}
	for range 2 { // its readings show what they have shown
		if asked := j.reads(torn) + j.learns(incident.Ticked{}); strings.Contains(asked, "verify") || phaseOf(j.w) != "deleting" {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
	}
	j.replaced()
	for j.w.Incident != nil {
		if asked := j.waits(time.Time{}); asked != "verify" {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		j.looks(incident.Checked{Found: true, Step: 4000, At: j.now, URI: "gs://b/4000"})
	}
	if in := j.w.Closed; in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByCheckpoint || len(j.w.Crew.Restarted) != 1 {
		t.Errorf("it saves again: %s", tale(j.w))
	}
}

// TestWhatOfATornGangIsNotBroughtBack: what may train, and what nothing brings back. It is told once.
func TestWhatOfATornGangIsNotBroughtBack(t *testing.T) {
	ever, no, never, report := restarting(), restarting(), restarting(), restarting()
	no.Switches.Restart = policy.No
	never.Switches.Recreate, never.Switches.RecreateNonSpot = policy.No, policy.No
	report.Hang = policy.HangReport
	stale := func(torn time.Time) incident.Checked { return old(torn, 20*time.Minute) }
	look := func(e incident.Checked) func(time.Time) incident.Checked {
		return func(time.Time) incident.Checked { return e }
	}
	nearly := func(torn time.Time) incident.Checked {
		e := old(torn, time.Minute)
		e.Saves = e.Saves[:2]
		return e
	}
	for name, c := range map[string]struct {
		p       policy.Policy
		change  func(*job)
		look    func(torn time.Time) incident.Checked
		outcome incident.Outcome
		code    incident.Code
	}{
		"it saves":               {ever, nil, look(incident.Checked{Found: true, Step: 4000, URI: "gs://b/4000"}), incident.Resumed, ""},
		"it saves an older step": {ever, func(j *job) { j.w.Progress.Verified = 9000 }, look(incident.Checked{Found: true, Step: 4000, URI: "gs://b/4000"}), incident.Resumed, ""},
		"nothing was ever saved": {ever, nil, look(incident.Checked{None: true, Text: "nothing is there"}), incident.Escalated, incident.CodeNoCheckpoint},
		"it has saved twice":     {ever, nil, nearly, incident.Escalated, incident.CodeSavesUnknown},
		"a former life has saved": {ever, func(j *job) {
			j.w.Slices[0].Incarnation.Created = j.now.Add(-time.Minute)
		}, stale, incident.Escalated, incident.CodeSavesUnknown},
		"it had only begun": {ever, func(j *job) {
			j.w.Slices[0].Incarnation.Created = j.now.Add(-incident.NoGapFor + 10*time.Minute)
		}, stale, incident.Escalated, incident.CodeSavesUnknown},
		"the policy only reports hangs":    {report, nil, stale, incident.Escalated, incident.CodeHangReport},
		"the policy forbids a restart":     {no, nil, stale, incident.Escalated, incident.CodePolicyNo},
		"the policy forbids a replacement": {never, nil, stale, incident.Escalated, incident.CodePolicyNo},
		"the budget is spent":              {ever, func(j *job) { j.w.Budgets.Restarts, j.w.Progress.Proven = incident.MaxRestarts, 3000 }, stale, incident.Escalated, incident.CodeBudget},
		"another controller owns it":       {ever, func(j *job) { j.w.Slices[0].Kept = "a RayJob makes it" }, stale, incident.Escalated, incident.CodeKept},
	} {
		j := newGang(t, c.p)
		if c.change != nil {
			c.change(j)
		}
		asked, torn := "", j.now.Add(time.Minute)
		for n := 0; j.w.Closed == nil && n < 10; n++ {
			if asked != "verify" {
				asked = j.waits(torn)
			}
			switch asked {
			case "verify":
				e := c.look(torn)
				if e.Found {
					e.At = j.now
				}
				asked = j.looks(e)
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
			j.reads(torn)
			j.learns(incident.Ticked{})
		}
		if j.w.Incident != nil || j.w.Closed != nil && j.w.Closed.ID != closed {
			t.Errorf("%s: it is told again: %s", name, tale(j.w))
		}
	}
}

// TestATornGangWithoutADirectoryIsLeft: nobody could ever tell whether it trains, so nobody is woken.
func TestATornGangWithoutADirectoryIsLeft(t *testing.T) {
	j := newGang(t, restarting())
	j.w.Directory = ""
	if asked := j.waits(j.now.Add(time.Minute)); asked != "" || j.w.Closed != nil || j.w.Incident != nil {
		t.Errorf("%q: %s", asked, tale(j.w))
	}
}

// TestATornGangHasTwiceTheTimeInWhichItSaves before it is brought back.
func TestATornGangHasTwiceTheTimeInWhichItSaves(t *testing.T) {
	for _, apart := range []time.Duration{20 * time.Minute, 3 * time.Hour, 10 * time.Hour} {
		j := newGang(t, restarting())
		torn := j.now.Add(time.Minute)
		looks, asked := 0, ""
		for range 20 {
			if asked = j.waits(torn); asked == "verify" {
				looks++
				asked = j.looks(old(torn, apart))
			}
			if asked != "" {
				break
			}
		}
		want := max(incident.NoGapFor, 2*apart)
		if waited := j.now.Sub(torn); asked != "delete llama-8b" || waited < want || waited > want+15*time.Minute || looks > 2 {
			t.Errorf("it saves each %v, and after %v and %d looks %q is asked for: %s", apart, waited, looks, asked, tale(j.w))
		}
	}
}

// TestOnlyAWholeLookShowsAStandstill: what cannot be read, or is being written, may be newer. A former release does not look at all of it.
func TestOnlyAWholeLookShowsAStandstill(t *testing.T) {
	for name, e := range map[string]incident.Checked{
		"a step is being written":     {Text: "step 4000 has no commit marker", Saves: old(start, 20*time.Minute).Saves},
		"a former release has looked": {Stale: true, Text: "the newest is older"},
	} {
		j := newGang(t, restarting())
		torn := j.now.Add(time.Minute)
		looks := 0
		for n := 0; n < 400 && j.w.Closed == nil; n++ {
			if asked := j.waits(torn); asked == "verify" {
				looks++
				j.looks(e)
			} else if asked != "" {
				t.Fatalf("%s: %q is asked for: %s", name, asked, stands(j.w, nil))
			}
		}
		if in := j.w.Closed; in == nil || in.Code != incident.CodeOverdue || looks < 3 {
			t.Errorf("%s: %d looks: %s", name, looks, tale(j.w))
		}
	}
}

// TestALateReplacementOfAStandstillIsLookedAtAnew: a function begins it long after the look, or a pause has held it.
func TestALateReplacementOfAStandstillIsLookedAtAnew(t *testing.T) {
	for name, late := range map[string]func(j *job, r events.Request){
		"it is late": func(j *job, _ events.Request) { j.now = j.now.Add(incident.SavedFor) },
		"nobody has begun it": func(j *job, _ events.Request) {
			j.now = j.now.Add(max(incident.RequestFor, incident.SavedFor))
			j.learns(incident.Ticked{})
		},
		"it was held": func(j *job, r events.Request) {
			j.learns(incident.Held{Request: r, Code: incident.CodePaused, Why: "paused", Until: j.now.Add(2 * time.Minute)})
			for range 12 {
				j.learns(incident.Ticked{})
			}
		},
	} {
		for _, saved := range []bool{true, false} {
			j, torn := stood(t, restarting())
			late(j, j.deletion())
			if asked := j.learns(incident.Intended{Request: j.deletion(), RequestID: "request-1"}); asked != "verify" || j.w.Budgets.Restarts != 0 || len(j.w.Crew.Restarted) != 0 {
				t.Fatalf("%s: %q is asked for: %s", name, asked, tale(j.w))
			}
			if saved {
				if j.looks(incident.Checked{Found: true, Step: 10, At: j.now}); j.w.Incident != nil {
					t.Errorf("%s, and it saves: %s", name, tale(j.w))
				}
				continue
			}
			if asked := j.looks(old(torn, 20*time.Minute)); asked != "delete llama-8b" || j.w.Budgets.Restarts != 1 || len(j.w.Crew.Restarted) != 1 {
				t.Errorf("%s: %q is asked for: %s, %+v", name, asked, tale(j.w), j.w.Budgets)
			}
			if asked := j.learns(incident.Intended{Request: j.deletion(), RequestID: "request-2"}); asked != "" || phaseOf(j.w) != "deleting" {
				t.Errorf("%s: it is begun in time, and %q is asked for: %s", name, asked, tale(j.w))
			}
		}
	}
}

// TestAPauseAsksForNoLookAfterLook: each look would tell people anew.
func TestAPauseAsksForNoLookAfterLook(t *testing.T) {
	j, torn := stood(t, restarting())
	for range 12 * 60 {
		if r := j.deletion(); r.Attempt > 0 {
			j.learns(incident.Held{Request: r, Code: incident.CodePaused, Why: "paused", Until: j.now.Add(time.Minute)})
		}
		j.reads(torn)
		if asked := j.learns(incident.Ticked{}); strings.Contains(asked, "verify") {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		if j.w.Incident == nil {
			break
		}
	}
	if lines := len(j.w.Incident.Timeline); lines > 12 {
		t.Errorf("it has %d lines: %s", lines, tale(j.w))
	}
}

// TestAnApprovedReplacementOfAStandstillIsLookedAtAnew: a person may answer a day later. It is not asked about twice, and counts once.
func TestAnApprovedReplacementOfAStandstillIsLookedAtAnew(t *testing.T) {
	p := restarting()
	p.Switches.Restart = policy.Ask
	for _, saved := range []bool{true, false} {
		j, torn := stood(t, p)
		for range 24 * 60 {
			asked := j.reads(torn) + j.learns(incident.Ticked{})
			if asked == "verify" { // with each reminder
				asked = j.looks(old(torn, 20*time.Minute))
			}
			if asked != "" || phaseOf(j.w) != "approving" {
				t.Fatalf("%q is asked for: %s", asked, tale(j.w))
			}
		}
		yes := incident.Approved{Incident: j.w.Incident.ID, Action: events.ActionDelete, Word: incident.Word{By: "ada"}}
		if asked := j.learns(yes); asked != "verify" || j.w.Budgets.Restarts != 0 {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		if saved {
			if j.looks(incident.Checked{Found: true, Step: 10, At: j.now}); j.w.Incident != nil {
				t.Errorf("it saves: %s", tale(j.w))
			}
			continue
		}
		if asked := j.looks(old(torn, 20*time.Minute)); asked != "delete llama-8b" || j.w.Budgets.Restarts != 1 || len(j.w.Crew.Restarted) != 1 {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
	}
}

// TestAQuestionAboutAStandstillIsTakenBackWhenTheTrainingSaves: with each reminder Pitstop looks once more.
func TestAQuestionAboutAStandstillIsTakenBackWhenTheTrainingSaves(t *testing.T) {
	p := restarting()
	p.Switches.Restart = policy.Ask
	j, torn := stood(t, p)
	for looks := range 3 {
		if asked := j.waits(torn); asked != "verify" || phaseOf(j.w) != "approving" {
			t.Fatalf("look %d: %q is asked for: %s", looks, asked, tale(j.w))
		}
		look, is := j.w.Request(j.w.Effects[0]).(events.CheckpointRequested)
		if !is || !look.Since.Equal(torn.Add(incident.ResumeFor)) || !look.Any {
			t.Errorf("every checkpoint counts that was written half an hour after %v: %+v", torn, look)
		}
		if asked := j.looks(old(torn, 20*time.Minute)); asked != "" || j.w.Question() == "" || j.w.Incident.Approved != "" {
			t.Fatalf("look %d: nothing new is saved, and %q is asked for: %s", looks, asked, tale(j.w))
		}
	}
	lines := len(j.w.Incident.Timeline)
	for range 4 { // nobody answers, and only a reminder looks again
		for range 3 * 60 { // two minutes each
			j.reads(torn)
			j.learns(incident.Ticked{})
		}
		lines++
		if len(j.w.Effects) != 1 || phaseOf(j.w) != "approving" || len(j.w.Incident.Timeline) > lines {
			t.Fatalf("nobody answers: %s", tale(j.w))
		}
	}
	late := j.w.Incident
	if j.looks(incident.Checked{Found: true, Step: 10, At: torn.Add(incident.ResumeFor), URI: "gs://b/10"}); late.ID != j.w.Incident.ID || !j.w.Incident.Deadline.IsZero() {
		t.Fatalf("what was saved by then proves nothing: %s", tale(j.w))
	}
	j.waits(torn)
	j.looks(incident.Checked{Found: true, Step: 10, At: j.now, URI: "gs://b/10"})
	if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByCheckpoint || j.w.Budgets.Restarts != 0 {
		t.Errorf("it saves: %s", tale(j.w))
	}
}

// TestAYesDuringALookCounts: the person did not know that Pitstop looks.
func TestAYesDuringALookCounts(t *testing.T) {
	p := restarting()
	p.Switches.Restart = policy.Ask
	j, torn := stood(t, p)
	j.waits(torn)
	yes := incident.Approved{Incident: j.w.Incident.ID, Action: events.ActionDelete, Word: incident.Word{By: "ada"}}
	if asked := j.learns(yes); asked != "verify" { // what was decided is old
		t.Fatalf("%q is asked for: %s", asked, tale(j.w))
	}
	if asked := j.looks(old(torn, 20*time.Minute)); asked != "delete llama-8b" {
		t.Errorf("%q is asked for: %s", asked, tale(j.w))
	}
}

// TestRetryLooksAgainAtATornGang that was left to a person, under the policy of today.
func TestRetryLooksAgainAtATornGang(t *testing.T) {
	report := restarting()
	report.Hang = policy.HangReport
	left := func(e incident.Checked) (j *job, torn time.Time) {
		j = newGang(t, report)
		torn = j.now.Add(time.Minute)
		if e.Saves == nil && !e.None {
			e = old(torn, 20*time.Minute)
		}
		j.waits(torn)
		if j.looks(e); j.w.Incident != nil || j.w.Closed.Outcome != incident.Escalated {
			t.Fatalf("it is not left to a person: %s", tale(j.w))
		}
		if why := j.w.NothingToRetry(j.now); why != "" {
			t.Fatalf("nothing is to be retried: %s", why)
		}
		j.now = j.now.Add(10 * time.Minute)
		j.p = restarting()
		if asked := j.learns(incident.Retried{Word: ann}); asked != "" || !j.w.Incident.Retried || j.w.Incident.Cause != events.CauseUnknown {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		if asked := j.learns(incident.Ticked{}); asked != "verify" {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		return j, torn
	}

	j, torn := left(incident.Checked{})
	if asked := j.looks(old(torn, 20*time.Minute)); asked != "delete llama-8b" || j.w.Incident.Cause != events.CauseHang {
		t.Errorf("the policy allows it now, and %q is asked for: %s", asked, tale(j.w))
	}
	j, _ = left(incident.Checked{None: true, Text: "nothing is there"})
	if j.looks(incident.Checked{Found: true, Step: 10, At: j.now, URI: "gs://b/10"}); j.w.Incident != nil || j.w.Closed.Outcome != incident.Resumed {
		t.Errorf("it saves: %s", tale(j.w))
	}
	j, _ = left(incident.Checked{None: true, Text: "nothing is there"})
	if j.looks(incident.Checked{None: true, Text: "nothing is there"}); j.w.Incident != nil || j.w.Closed.Code != incident.CodeNoCheckpoint {
		t.Errorf("nothing is saved still: %s", tale(j.w))
	}

	if in := j.w.Closed; !in.Down.IsZero() {
		t.Errorf("nothing shows that it stood still, and it counts from %v", in.Down)
	}

	for name, c := range map[string]struct {
		change func(*job)
		want   string
	}{
		"without a directory": {func(j *job) { j.w.Directory = "" }, "checkpoint directory"},
		"it has saved since": {func(j *job) {
			j.w.Progress.Verified, j.w.Progress.VerifiedAt = 9000, j.now.Add(incident.ResumeFor+time.Second)
		}, "9,000"},
		"it has saved until then": {func(j *job) { j.w.Progress.Verified, j.w.Progress.VerifiedAt = 9000, j.now.Add(incident.ResumeFor) }, ""},
	} {
		j = newGang(t, report)
		j.w.Slices[0].Since = j.now
		c.change(j)
		j.reads(j.now)
		if why := j.w.NothingToRetry(j.now); !strings.Contains(why, c.want) || c.want == "" && why != "" {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestTheFirstLineOfACrewGivesATrainingItsTime: nobody expected a step of it before, so its silence until then shows nothing.
func TestTheFirstLineOfACrewGivesATrainingItsTime(t *testing.T) {
	started := func(j *job) string {
		return j.says("7711", events.ReportStarted, func(r *events.CrewReport) { r.Zone = j.w.Slices[0].Zone })
	}
	for name, path := range map[string]func(j *job, torn time.Time){
		"a person has just said retry": func(j *job, _ time.Time) { j.learns(incident.Retried{Word: ann}) },
		"it waits for another look": func(j *job, torn time.Time) {
			j.learns(incident.Retried{Word: ann})
			j.learns(incident.Ticked{})
			j.looks(old(torn, 2*time.Hour))
		},
		"the look is under way": func(j *job, _ time.Time) {
			j.learns(incident.Retried{Word: ann})
			j.learns(incident.Ticked{})
		},
		"it has been torn for half an hour": func(j *job, _ time.Time) {
			j.w.Incident, j.w.Closed, j.w.TornSeen = nil, nil, time.Time{}
			j.w.Slices[0].Torn, j.w.Slices[0].Since = j.now.Add(-incident.ResumeFor), j.now.Add(-incident.ResumeFor)
			j.learns(incident.Ticked{})
		},
	} {
		j := newGang(t, restarting())
		torn := j.now.Add(time.Minute)
		j.waits(torn)
		j.looks(incident.Checked{None: true, Text: "nothing is there"})
		path(j, torn)
		if j.w.Incident == nil || phaseOf(j.w) != "resuming" {
			t.Fatalf("%s: it stands at %s", name, tale(j.w))
		}
		due := j.w.Incident.Deadline
		asked, spoke := started(j), j.now
		if j.w.Incident.Deadline.Before(due) {
			t.Errorf("%s: its time is cut: %s", name, tale(j.w))
		}
		for j.now.Sub(spoke) < incident.ResumeFor-2*time.Minute { // two minutes each
			asked += j.reads(torn) + j.learns(incident.Ticked{})
			if asked == "verify" && name == "the look is under way" { // nobody has begun it
				asked = j.looks(old(torn, 2*time.Hour))
			}
			if asked != "" || phaseOf(j.w) != "resuming" {
				t.Fatalf("%s: %v after its first line %q is asked for: %s", name, j.now.Sub(spoke), asked, tale(j.w))
			}
		}
	}
}

// TestALookThatIsUnderWayCountsThoughTheCrewSpeaks: a checkpoint is the better sign.
func TestALookThatIsUnderWayCountsThoughTheCrewSpeaks(t *testing.T) {
	j := newGang(t, restarting())
	j.waits(j.now.Add(time.Minute))
	j.says("7711", events.ReportStarted, func(r *events.CrewReport) { r.Zone = j.w.Slices[0].Zone })
	j.looks(incident.Checked{Found: true, Step: 4000, At: j.now, URI: "gs://b/4000"})
	if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByCheckpoint {
		t.Errorf("it saves: %s", tale(j.w))
	}
}

// TestAGangThatNobodyCanCreateAgainIsLeft to a person at once, and not looked at without an end.
func TestAGangThatNobodyCanCreateAgainIsLeft(t *testing.T) {
	j := newGang(t, restarting())
	j.w.Slices[0].Spec = ""
	torn := j.now.Add(time.Minute)
	read := func() string {
		e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
		e.Facts = j.w.Slices[0].Facts
		e.Facts.Torn = torn
		return j.learns(e) + j.learns(incident.Ticked{})
	}
	asked := ""
	for n := 0; n < 240 && asked == ""; n++ {
		asked = read()
	}
	if asked = j.looks(old(torn, 20*time.Minute)); asked != "" || j.w.Incident != nil || j.w.Closed.Code != incident.CodeNoSpec {
		t.Errorf("%q is asked for: %s", asked, tale(j.w))
	}
}

// TestAnApprovalCoversOneTear: a later standstill is another one.
func TestAnApprovalCoversOneTear(t *testing.T) {
	p := restarting()
	p.Switches.Restart = policy.Ask
	j, _ := stood(t, p)
	j.now = j.now.Add(time.Hour)
	j.learns(incident.Approved{Incident: j.w.Incident.ID, Action: events.ActionDelete, Word: incident.Word{By: "ada"}})
	later := j.now
	j.reads(later) // before the look is answered
	e := old(later, 20*time.Minute)
	for n := 0; n < 10 && phaseOf(j.w) != "approving"; n++ {
		if asked := j.looks(e); strings.Contains(asked, "delete") {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		if phaseOf(j.w) == "resuming" {
			j.waits(later)
		}
	}
	if phaseOf(j.w) != "approving" || j.w.Incident.Approved != "" {
		t.Errorf("a person is to be asked again: %s", tale(j.w))
	}
}

// TestTheReplacementOfAStandstillEndsWithTheTear, and so does the question about it: somebody has mended the gang, or a crew speaks.
func TestTheReplacementOfAStandstillEndsWithTheTear(t *testing.T) {
	ask := restarting()
	ask.Switches.Restart = policy.Ask
	line := func(life string) func(j *job) string {
		return func(j *job) string {
			return j.says(life, events.ReportStarted, func(r *events.CrewReport) { r.Zone = "us-east5/trainers/default" })
		}
	}
	for name, then := range map[string]func(j *job) string{
		"it is whole":               func(j *job) string { return j.reads(time.Time{}) },
		"another Pod was made anew": func(j *job) string { return j.reads(j.now) },
		"a Pod does not run": func(j *job) string {
			return j.learns(found(j.w, incident.Unhealthy, "1 of 2 Pods are ready", j.now.Add(time.Minute)))
		},
		"it has failed":               func(j *job) string { return j.fails(events.CausePreemption) },
		"its crew speaks":             line("7711"),
		"a crew of an unknown life":   line(""),
		"a crew of a life never seen": line("9999"),
	} {
		for _, p := range []policy.Policy{restarting(), ask} {
			j, _ := stood(t, p)
			j.now = j.now.Add(time.Minute)
			then(j)
			in := j.w.Incident
			failed := name == "it has failed" // then it is a loss, and its machines pay
			if in != nil && !in.StoodAt.IsZero() || (j.w.Incident != nil && j.w.Incident.Approved != "") || j.w.Budgets.Restarts != 0 || len(j.w.Crew.Restarted) != 0 {
				t.Errorf("%s: %s", name, tale(j.w))
			}
			if is := phaseOf(j.w); !failed && (is == "deleting" || is == "approving") {
				t.Errorf("%s: %s", name, tale(j.w))
			}
		}
	}
}

// TestADeletionOfAStandstillThatMayBeMadeIsFollowedToItsEnd: its slices train together.
func TestADeletionOfAStandstillThatMayBeMadeIsFollowedToItsEnd(t *testing.T) {
	j, _ := stood(t, restarting())
	j.learns(incident.Intended{Request: j.deletion(), RequestID: "request-1"})
	j.reads(time.Time{})
	if phaseOf(j.w) != "deleting" || j.w.Incident.StoodAt.IsZero() {
		t.Errorf("%s", tale(j.w))
	}
}

// TestAllSlicesOfAStandstillAreReplacedByOneCall: those that run on wait for the others without an end. Where it takes several calls, a
// refusal of the second would leave a part, so a person is told.
func TestAllSlicesOfAStandstillAreReplacedByOneCall(t *testing.T) {
	for group, want := range map[string]string{"set": "delete llama-8b", "": ""} {
		j := newGang(t, restarting())
		torn := j.now.Add(time.Minute)
		j.w.Slices[0].Group = group
		other := j.w.Slices[0]
		other.Name, other.Incarnation.ID = "llama-8b-1", "7712"
		j.w.Slices = append(j.w.Slices, other)
		j.waits(torn)
		if asked := j.looks(old(torn, 20*time.Minute)); !strings.HasPrefix(asked, want) || strings.Count(asked, "delete") != len(want)/len("delete llama-8b") {
			t.Errorf("%q: %q is asked for: %s", group, asked, tale(j.w))
		}
		if in := j.w.Closed; group == "" && (in == nil || in.Code != incident.CodeKept) {
			t.Errorf("%s", tale(j.w))
		}
	}
}

// TestALostAnswerToADeletionOfAStandstill: the call may have been made, though it is to be made once more. Whoever forgets that takes the Job
// for its owner's deletion.
func TestALostAnswerToADeletionOfAStandstill(t *testing.T) {
	j, _ := stood(t, restarting())
	r := j.deletion()
	j.learns(incident.Intended{Request: r, RequestID: "request-1"})
	j.learns(incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.Transient, Message: "503"}})
	for range 5 {
		j.learns(incident.Ticked{})
	}
	if asked := j.learns(found(j.w, incident.Gone, "gone", j.now.Add(time.Minute))); asked != "create llama-8b" {
		t.Errorf("%q is asked for: %s", asked, tale(j.w))
	}
}

// TestATighterPolicyKeepsAStandstill: between the decision and the call, and after an approval.
func TestATighterPolicyKeepsAStandstill(t *testing.T) {
	for name, tighten := range map[string]func(p *policy.Policy){
		"hang: report":  func(p *policy.Policy) { p.Hang = policy.HangReport },
		"restart: no":   func(p *policy.Policy) { p.Switches.Restart = policy.No },
		"restart: ask":  func(p *policy.Policy) { p.Switches.Restart = policy.Ask },
		"not even read": func(p *policy.Policy) { p.Hang, p.Unreadable = "", "gs://b/policy.yaml: 503" },
	} {
		j, torn := stood(t, restarting())
		r := j.deletion()
		tighten(&j.p)
		if asked := j.learns(incident.Intended{Request: r, RequestID: "request-1"}); asked != "verify" {
			t.Errorf("%s: %q is asked for: %s", name, asked, tale(j.w))
			continue
		}
		for n := 0; n < 5 && j.w.Incident != nil && phaseOf(j.w) == "resuming"; n++ {
			if asked := j.looks(old(torn, 20*time.Minute)); strings.Contains(asked, "delete") {
				t.Errorf("%s: %q is asked for: %s", name, asked, tale(j.w))
			}
		}
		if unread := name == "not even read"; unread != (j.w.Incident != nil && phaseOf(j.w) == "resuming") {
			t.Errorf("%s: %s", name, tale(j.w))
		}
	}
}

// TestATornGangOpensNothingWhereItIsKnownToTrain, and where it becomes whole by itself in time.
func TestATornGangOpensNothingWhereItIsKnownToTrain(t *testing.T) {
	j := newGang(t, restarting())
	j.w.Crew.Seen, j.w.Progress.At, j.w.Progress.Step = j.now, j.now, 100
	torn := j.now.Add(time.Minute)
	for range 90 {
		j.w.Progress.At = j.now
		if asked := j.reads(torn) + j.learns(incident.Ticked{}); asked != "" || j.w.Incident != nil {
			t.Fatalf("its crew does steps: %q, %s", asked, tale(j.w))
		}
	}
	j = newGang(t, restarting())
	for range 10 {
		j.reads(torn)
		j.learns(incident.Ticked{})
	}
	for range 200 {
		if asked := j.reads(time.Time{}) + j.learns(incident.Ticked{}); asked != "" || j.w.Incident != nil {
			t.Fatalf("it is whole: %q, %s", asked, tale(j.w))
		}
	}
}

// TestWhereACrewWasHeardNothingIsDeletedForAHang: anybody may write its lines. Its crews are asked for another attempt, and that alone,
// however torn the gang is and whatever the lines say.
func TestWhereACrewWasHeardNothingIsDeletedForAHang(t *testing.T) {
	for _, torn := range []time.Time{{}, start} {
		j := newJob(t, restarting())
		j.reads(torn)
		j.w.Progress.Verified, j.w.Progress.VerifiedAt = 900, start
		all := ""
		for range 1200 {
			for i := range j.w.Slices {
				j.w.Slices[i].Heard = incident.Heard{At: j.now, Seen: j.now, Runs: true, Attempt: 1}
			}
			asked := j.reads(torn) + j.learns(incident.Ticked{})
			if all += asked; strings.Contains(asked, "restart") {
				j.call(events.ActionRestart)
			}
		}
		if !strings.Contains(all, "restart llama-8b=7711") || strings.Contains(all, "delete") {
			t.Errorf("it does no steps, and %q is asked for: %s", all, stands(j.w, nil))
		}
	}
}
