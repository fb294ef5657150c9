package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// unheard is a Job whose lines have ended and of which no crew can be heard; what is asked for then, and when its last step was.
func unheard(t *testing.T, policy string, change ...func(*story)) (n *story, asked string, last time.Time) {
	t.Helper()
	n = newJob(t).under(policy)
	n.p = n.w.Limited(n.p)
	for _, f := range change {
		f(n)
	}
	for i := range int64(30) {
		n.says("7711", events.ReportProgress, func(r *events.CrewReport) { r.Step = 60_000 + 10*i })
	}
	last = n.w.Training.StepAt
	for range 120 {
		if n.w.Incident != nil {
			break
		}
		if n.later(time.Minute).listens(nothing); len(n.sent) > 0 {
			asked = n.sent[0]
		}
	}
	n.is("watching")
	return n, asked, last
}

// asks lets time pass in which no crew can be heard, until something is asked for or the incident ends.
func (n *story) asks() string {
	for range 20 * 60 {
		if n.w.Incident == nil {
			break
		}
		if n.later(time.Minute).listens(nothing); len(n.sent) > 0 {
			return n.sent[0]
		}
	}
	return ""
}

// old is a look that finds three checkpoints from before a time, so far apart.
func old(last time.Time, apart time.Duration) evidence.Checked {
	return evidence.Checked{
		Stale: true, Text: "the newest is older", Saves: []time.Time{last.Add(-3 * apart), last.Add(-2 * apart), last.Add(-apart)},
		Step: 3000, At: last.Add(-apart), URI: "gs://b/3000", Bytes: 1,
	}
}

// looks answers the request for a new checkpoint, a minute later, and returns what is asked for then.
func (n *story) looks(e evidence.Checked) string {
	n.Helper()
	e.Request = n.request(events.ActionVerify, "")
	if n.later(time.Minute).give(e); len(n.sent) > 0 {
		return n.sent[0]
	}
	return ""
}

// unsaved is such a Job that has saved nothing for so long that another attempt is asked for.
func unsaved(t *testing.T) *story {
	t.Helper()
	n, _, last := unheard(t, "everything")
	if asked := n.looks(old(last, 10*time.Minute)); asked != "restart llama-8b=7711" {
		t.Fatalf("%q is asked for:\n%s", asked, n.tale())
	}
	return n
}

// TestATrainingThatNobodyHearsIsBegunAgainOnceItSavesNothing: the silence of its lines alone proves nothing.
func TestATrainingThatNobodyHearsIsBegunAgainOnceItSavesNothing(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{10 * time.Minute, time.Hour, 3 * time.Hour} {
		n, asked, last := unheard(t, "everything")
		newer := last.Add(bounds.ResumeFor)
		x, err := n.w.Fence(n.request(events.ActionVerify, "").Pointer(), n.now)
		if err != nil {
			t.Fatal(err)
		}
		look, is := n.w.Request(x).(events.CheckpointRequested)
		if asked != "verify" || !is || !look.Since.Equal(newer) || !look.Any || look.MoreThan != 0 { // a save that began with the last step may end later
			t.Fatalf("%v: %q is asked for: %+v", apart, asked, look)
		}
		if asked = n.looksOn(asked, last, apart); asked != "restart llama-8b=7711" || n.now.Sub(last) < bounds.ResumeFor+2*apart || n.now.Sub(last) > bounds.ResumeFor+2*apart+2*time.Minute {
			t.Errorf("%v: after %v %q is asked for:\n%s", apart, n.now.Sub(last), asked, n.tale())
		}
		n.goes("does restart").says("7711", events.ReportProgress, ofSecond(60_400))
		if n.ended().By != view.ByStep || n.w.Spent(events.ActionRestart) != 1 {
			t.Errorf("%v: it does steps again, charged is %+v:\n%s", apart, n.w.Charges, n.tale())
		}
	}
}

// TestWhatOfASilentTrainingIsNotBegunAgain: what may train, and what its owner does not want. The watch over it ends by itself.
func TestWhatOfASilentTrainingIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*story)
		look   func(n *story, e *evidence.Checked) // nil where nobody looks
	}{
		"it saves": {nil, func(n *story, e *evidence.Checked) {
			*e = evidence.Checked{Found: true, Step: 4000, At: n.now, URI: "gs://b/4000"}
		}},
		"nothing was ever saved":             {nil, func(_ *story, e *evidence.Checked) { *e = evidence.Checked{None: true, Text: "nothing is there"} }},
		"it has saved twice":                 {nil, func(_ *story, e *evidence.Checked) { e.Saves = e.Saves[:2] }},
		"what it writes cannot be looked at": {nil, func(_ *story, e *evidence.Checked) { e.Stale = false }},
		"a former release looks":             {nil, func(_ *story, e *evidence.Checked) { e.Saves = nil }},
		"a former life has saved": {func(n *story) { n.w.Slices[0].Incarnation.Created = start.Add(-3 * time.Hour) }, func(n *story, e *evidence.Checked) {
			*e = old(n.w.Slices[0].Incarnation.Created, 10*time.Minute)
		}},
		"it has told of a step meanwhile": {nil, func(n *story, _ *evidence.Checked) { n.says("7711", events.ReportProgress, ofSecond(2000)) }},
		"a crew speaks whose life is not known": {nil, func(n *story, _ *evidence.Checked) {
			n.says("uid-of-nobody", events.ReportProgress, func(r *events.CrewReport) { r.Step = 60_400 })
		}},
		"the policy forbids everything meanwhile": {nil, func(n *story, _ *evidence.Checked) { n.p.Switches = policy.Switches{} }},
		"the policy cannot be read meanwhile":     {nil, func(n *story, _ *evidence.Checked) { n.p.Unreadable = "it is empty" }},
		"the policy only reports hangs":           {func(n *story) { n.p.Hang = policy.HangReport }, nil},
		"the policy forbids a restart":            {func(n *story) { n.p.Switches.Restart = policy.No }, nil},
		"a person would be asked first":           {func(n *story) { n.p.Switches.Restart = policy.Ask }, nil},
		"it has no directory":                     {func(n *story) { n.w.Directory = "" }, nil},
	} {
		if c.before == nil {
			c.before = func(*story) {}
		}
		n, asked, last := unheard(t, "everything", c.before)
		if (asked == "verify") != (c.look != nil) {
			t.Errorf("%s: %q is asked for:\n%s", name, asked, n.tale())
		}
		for asked == "verify" {
			e := old(last, 10*time.Minute)
			if c.look(n, &e); n.isWanted(events.ActionVerify) { // it is still looked for
				asked = n.looks(e)
			}
			if asked == "" || !n.isWanted(events.ActionVerify) {
				asked = n.asks()
			}
		}
		for range 4 { // a policy that cannot be read stops the clock for days
			n.asks()
		}
		if asked != "" || n.ended().Outcome != view.Observed || len(n.w.Charges) > 0 {
			t.Errorf("%s: %q is asked for:\n%s", name, asked, n.tale())
		}
	}
}

// TestAMomentOfSicknessDelaysTheLookAtWhatIsSaved and does not end it: no step was done. What was saved before that does not show that it goes on.
func TestAMomentOfSicknessDelaysTheLookAtWhatIsSaved(t *testing.T) {
	t.Parallel()
	n, _, last := unheard(t, "everything")
	n.looks(old(last, time.Hour))
	back := n.goes("a minute, read unhealthy, a minute, read ready").now
	if asked, after := n.looksOn("", last, time.Hour), n.now.Sub(back); asked != "restart llama-8b=7711" || after < bounds.ResumeFor+2*time.Hour || after > 3*time.Hour {
		t.Errorf("after %v %q is asked for:\n%s", after, asked, n.tale())
	}
	n, _, _ = unheard(t, "everything")
	r := n.begins(events.ActionVerify, "")
	n.later(time.Minute).reads("llama-8b", evidence.Unhealthy)
	n.give(evidence.Checked{Origin: n.reading(), Request: r, Found: true, Step: 4000, At: n.now.Add(-10 * time.Minute), URI: "gs://b/4000"}).is("healing")
	n.breaks("").wants("delete llama-8b")
}

// TestWhatIsHeardBeforeTheCallEndsTheRequestForAnotherAttempt that was made because no line came, until the lease may have been written.
func TestWhatIsHeardBeforeTheCallEndsTheRequestForAnotherAttempt(t *testing.T) {
	t.Parallel()
	line := func(kind events.Report, life string) func(*story) {
		return func(n *story) {
			n.says(life, kind, func(r *events.CrewReport) { r.Step = n.w.Training.Step })
		}
	}
	asked := func(n *story) {
		n.fails(n.begins(events.ActionRestart, ""), reason.Transient).passes(2 * time.Minute)
		n.p.Switches.Restart = policy.Ask
		n.give(evidence.Ticked{Origin: n.reading()})
		n.asked(events.ActionRestart)
		n.later(bounds.SavedFor)
	}
	held := func(n *story) {
		n.give(evidence.Held{
			Origin: n.reading(), Request: n.request(events.ActionRestart, ""), Code: reason.CodePaused, Why: "paused", Until: n.now.Add(time.Minute), Begun: true,
		}).passes(5 * time.Minute)
	}
	for name, c := range map[string]struct {
		then  func(*story)
		begun bool // the call is, before that; else after it
		want  string
	}{
		"soon":                                {func(*story) {}, false, "restarting"},
		"two days later":                      {func(n *story) { n.later(48 * time.Hour) }, false, "watching: verify"},
		"its owner wants to be told only":     {func(n *story) { n.p.Hang = policy.HangReport }, false, "watching"},
		"its owner wants to be asked first":   {func(n *story) { n.p.Switches.Restart = policy.Ask }, false, "watching"},
		"it saves":                            {line(events.ReportSaved, "7711"), false, "watching"},
		"its attempt began":                   {line(events.ReportStarted, "7711"), false, "watching"},
		"a step that is not past the last":    {line(events.ReportProgress, "7711"), false, "watching"},
		"a line of a life that nobody knows":  {line(events.ReportSaved, "9999"), false, "watching"},
		"it saves in the call":                {line(events.ReportSaved, "7711"), true, "restarting"},
		"an unknown life saves in the call":   {line(events.ReportSaved, "9999"), true, "restarting"},
		"it saves in a call that is not made": {func(n *story) { line(events.ReportSaved, "7711")(n); held(n) }, true, "watching"},
		"an unknown life does":                {func(n *story) { line(events.ReportSaved, "9999")(n); held(n) }, true, "watching"},
		"a person says yes":                   {func(n *story) { asked(n); n.goes("approved, does restart") }, true, "resuming"},
		"a person is asked, and it is lost":   {func(n *story) { asked(n); n.breaks(events.CausePreemption) }, true, "deleting: delete llama-8b"},
	} {
		n := unsaved(t)
		r := n.request(events.ActionRestart, "")
		if c.begun {
			n.intends(r)
		}
		if c.then(n); !c.begun {
			n.intends(r)
		}
		if got := n.stands(n.sent); got != c.want || !c.begun && n.w.Spent(events.ActionRestart) != map[string]int{"restarting": 1}[got] {
			t.Errorf("%s: it stands at %s, want %s; charged is %+v:\n%s", name, got, c.want, n.w.Charges, n.tale())
		}
	}
}

// TestNoSecondAttemptIsAskedForUnheard: without a line nobody knows whether the attempt that was asked for trains.
func TestNoSecondAttemptIsAskedForUnheard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts bool
		look   evidence.Checked
		asked  string
		end    view.Outcome
	}{
		"a line tells of its start": {true, evidence.Checked{}, "restart llama-8b=7711", ""},
		"no line, and it saves":     {false, evidence.Checked{Found: true, Step: 4000, URI: "gs://b/4000"}, "verify", view.Resumed},
		"no line and no save":       {false, evidence.Checked{Stale: true}, "verify", view.Escalated},
	} {
		n := unsaved(t)
		r := n.request(events.ActionRestart, "")
		n.give(evidence.Intended{Origin: n.reading(), Request: r, RequestID: "restart", Lease: evidence.Lease{Attempt: n.w.Training.Attempt}}).answers("accepted", r)
		if c.starts {
			n.says("7711", events.ReportStarted, ofSecond(0))
		}
		asked := n.asks()
		if asked != c.asked {
			t.Errorf("%s: %q is asked for:\n%s", name, asked, n.tale())
		}
		for c.look.At = n.now; c.end != "" && asked == "verify"; { // it is looked for until the time is up
			if asked = n.looks(c.look); asked == "" {
				asked = n.asks()
			}
		}
		if c.end != "" && (asked != "" || n.ended().Outcome != c.end || n.w.Spent(events.ActionRestart) > 1) {
			t.Errorf("%s: %q is asked for:\n%s", name, asked, n.tale())
		}
	}
}

// looksOn answers each request for a new checkpoint by the old ones, until something else is asked for or half a day has passed.
func (n *story) looksOn(asked string, last time.Time, apart time.Duration) string {
	for end := n.now.Add(12 * time.Hour); n.now.Before(end) && (asked == "verify" || asked == ""); {
		if asked == "verify" {
			asked = n.looks(old(last, apart))
		} else {
			asked = n.asks()
		}
	}
	return asked
}
