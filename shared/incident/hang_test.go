package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// steps has the training report so many steps, so far apart, and returns when the last one was.
func steps(p policy.Policy, w incident.Workload, n int, apart time.Duration) (incident.Workload, time.Time) {
	now := start
	w.Progress.At = start
	for i := range n {
		now = now.Add(apart)
		w, _, _ = advance(p, w, incident.Reported{
			Origin: incident.Origin{ID: "line", Time: now, Rank: events.RankUser}, Slice: "llama-8b",
			Report: events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 48_200 + 10*int64(i), CheckpointStep: 48_000},
		}, now)
	}
	return w, now
}

const never = -1

// beat is what the crew wrote on its machine: so long ago, and a step so long ago.
func beat(now time.Time, seen, step time.Duration) incident.Beat {
	b := incident.Beat{Origin: incident.Origin{Time: now, Rank: events.RankUser}, Slice: "llama-8b", Incarnation: life(1), Runs: true}
	if seen != never {
		b.Seen = now.Add(-seen)
	}
	if step != never {
		b.StepAt = now.Add(-step)
	}
	return b
}

// silent passes the time without a line, listens as patrol does, and returns when an incident was opened; 0 is never.
func silent(p policy.Policy, w incident.Workload, last time.Time, d time.Duration, seen, step func(now time.Time) time.Duration) (incident.Workload, time.Duration) {
	for now := last; now.Sub(last) <= d; now = now.Add(time.Minute) {
		if readsOf(w, now).Has(incident.ReadCrew, "llama-8b") {
			w, _, _ = advance(p, w, beat(now, seen(now), step(now)), now)
		}
		if w, _, _ = tick(p, w, now); w.Incident != nil {
			return w, now.Sub(last)
		}
	}
	return w, 0
}

func ago(d time.Duration) func(time.Time) time.Duration {
	return func(time.Time) time.Duration { return d }
}

// TestNoHangGoesUnseen: it is told after three times the longest gap that was seen, and never twice.
func TestNoHangGoesUnseen(t *testing.T) {
	p := policies["spot"]
	for _, c := range []struct {
		name  string
		n     int
		apart time.Duration
		seen  time.Duration
		want  time.Duration
	}{
		{"reports each five minutes", 5, 5 * time.Minute, 0, 15 * time.Minute},
		{"a short gap", 5, time.Minute, 0, 15 * time.Minute},
		{"a long gap", 3, 40 * time.Minute, 0, 2 * time.Hour},
		{"no gap at all", 0, 0, 0, incident.NoGapFor},
		{"the crew is dead", 5, 5 * time.Minute, 5 * time.Hour, 15*time.Minute + incident.Grace},
		{"nothing can be read", 5, 5 * time.Minute, never, 15*time.Minute + incident.Grace},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, last := steps(p, quiet(true), c.n, c.apart)
			if c.n == 0 {
				last = w.Progress.At
			}
			step := ago(never)
			if c.seen != never {
				step = func(now time.Time) time.Duration { return now.Sub(last) }
			}
			w, after := silent(p, w, last, 24*time.Hour, ago(c.seen), step)
			if after != c.want || w.Incident.Cause != events.CauseHang || w.Incident.Phase != incident.Watching || !w.Incident.Down.Equal(last) {
				t.Fatalf("after %v, want %v: %+v", after, c.want, w.Incident)
			}
			now := last.Add(after)
			for range 24 * 60 {
				now = now.Add(time.Minute)
				w, _, _ = advance(p, w, beat(now, c.seen, step(now)), now)
				w, _, _ = tick(p, w, now)
			}
			if w.Incident != nil || w.Epoch != quiet(true).Epoch+2 {
				t.Errorf("it is told again: %+v", w.Incident)
			}
			if due := due(w); !due.IsZero() {
				t.Errorf("due at %v", due)
			}
		})
	}
}

// TestASlowTrainingIsNoHang: what takes long and is no standstill.
func TestASlowTrainingIsNoHang(t *testing.T) {
	p := policies["spot"]
	for name, c := range map[string]struct {
		but  func(w *incident.Workload, last time.Time)
		d    time.Duration
		step time.Duration
	}{
		"steps of forty minutes":                  {func(w *incident.Workload, _ time.Time) { w.Progress.GapSeconds = 2400 }, 119 * time.Minute, time.Hour},
		"an attempt that compiles":                {func(w *incident.Workload, last time.Time) { w.Crew.Attempt, w.Crew.Started = 2, last }, 29 * time.Minute, time.Hour},
		"the log is silent, the crew writes":      {nil, 24 * time.Hour, time.Minute},
		"a crew's clock that is ahead":            {nil, 24 * time.Hour, -time.Hour},
		"a crew that never told of a step":        {func(w *incident.Workload, _ time.Time) { w.Progress = incident.Progress{} }, 24 * time.Hour, 48 * time.Hour},
		"no crew":                                 {func(w *incident.Workload, _ time.Time) { w.Crew = incident.Crew{} }, 24 * time.Hour, 48 * time.Hour},
		"a training that is finished":             {func(w *incident.Workload, _ time.Time) { w.Crew.Finished = true }, 24 * time.Hour, 48 * time.Hour},
		"a slice that its owner has taken":        {func(w *incident.Workload, last time.Time) { w.Slices[0].End.Released = last }, 24 * time.Hour, 48 * time.Hour},
		"a standstill that was told":              {func(w *incident.Workload, last time.Time) { w.Progress.StallReported = last }, 24 * time.Hour, 48 * time.Hour},
		"a machine that came back ten minutes on": {func(w *incident.Workload, last time.Time) { w.Slices[0].Since = last.Add(10 * time.Minute) }, 24 * time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w, last := steps(p, quiet(true), 5, 5*time.Minute)
			if c.but != nil {
				c.but(&w, last)
			}
			if w, after := silent(p, w, last, c.d, ago(0), ago(c.step)); after != 0 {
				t.Errorf("after %v: %+v", after, w.Incident.Timeline)
			}
		})
	}
}

// TestALostLineIsNoHang: silence of the log proves nothing, and nothing is decided before the crew was listened for.
func TestALostLineIsNoHang(t *testing.T) {
	p := policies["everything"]
	w, last := steps(p, quiet(true), 5, 5*time.Minute)
	now := last.Add(20 * time.Minute)
	w, sent, _ := tick(p, w, now)
	if w.Incident != nil || len(sent) > 0 {
		t.Fatalf("unheard: %+v", w.Incident)
	}
	w, _, _ = advance(p, w, beat(now, 0, 2*time.Minute), now)
	w, _, _ = tick(p, w, now)
	if w.Incident != nil || w.Progress.Step != 48_240 || !due(w).IsZero() {
		t.Fatalf("%+v, progress %+v, due at %v", w.Incident, w.Progress, due(w))
	}
	// And what then stands still is found from the step on that the crew told of.
	if w, after := silent(p, w, now.Add(-2*time.Minute), time.Hour, ago(0), func(at time.Time) time.Duration { return at.Sub(now.Add(-2 * time.Minute)) }); after != 15*time.Minute {
		t.Errorf("after %v: %+v", after, w.Incident)
	}
}

// TestAHangIsEndedOnlyIfItsOwnerSaysSo, and only where there is something to go on from.
func TestAHangIsEndedOnlyIfItsOwnerSaysSo(t *testing.T) {
	restart := policies["spot"]
	restart.Hang = policy.HangRestart
	nobody := restart
	nobody.Switches.Restart = policy.No
	for name, c := range map[string]struct {
		p      policy.Policy
		seen   time.Duration
		but    func(*incident.Workload)
		phase  incident.Phase
		reason string
	}{
		"report":              {policies["spot"], 0, nil, incident.Watching, ""},
		"restart":             {restart, 0, nil, incident.Restarting, ""},
		"restart, as watched": {policies["watch"], 0, nil, incident.Watching, ""},
		"restart, unread":     {restart, never, nil, incident.Watching, ""},
		"policy unreadable":   {policies["unreadable"], 0, nil, incident.Watching, ""},
		"restart, switch no":  {nobody, 0, nil, "", "the switch restart is no"},
		"no checkpoint": {restart, 0, func(w *incident.Workload) {
			w.Progress.Verified, w.Progress.CheckpointStep = 0, 0
		}, "", "no checkpoint"},
		"three times already": {restart, 0, func(w *incident.Workload) { w.Budgets.Restarts = incident.MaxRestarts }, "", "3 restarts"},
	} {
		t.Run(name, func(t *testing.T) {
			w, last := steps(c.p, quiet(true), 5, 5*time.Minute)
			if c.but != nil {
				c.but(&w)
			}
			step := ago(never)
			if c.seen != never {
				step = func(now time.Time) time.Duration { return now.Sub(last) }
			}
			var after time.Duration
			for at := last; at.Sub(last) < 2*time.Hour && w.Incident == nil && w.Closed == nil; at = at.Add(time.Minute) {
				w, after = silent(c.p, w, at, 0, ago(c.seen), step)
			}
			in := w.Incident
			for i := 0; in != nil && i < len(w.Effects); i++ {
				if w.Effects[i].Action == events.ActionHear { // which nobody answers
					w, _, _ = tick(c.p, w, in.Deadline)
					in = w.Incident
				}
			}
			if c.phase == "" {
				in = w.Closed
			}
			if in == nil || c.phase != "" && in.Phase != c.phase || !strings.Contains(in.Reason, c.reason) {
				t.Errorf("after %v: open %+v, closed %+v", after, w.Incident, w.Closed)
			}
		})
	}
}

// TestAHangIsNotHiddenByWhatIsToldOfSomethingElse: maintenance that was withdrawn says nothing of the training.
func TestAHangIsNotHiddenByWhatIsToldOfSomethingElse(t *testing.T) {
	p := policies["spot"]
	w, last := steps(p, quiet(true), 5, 5*time.Minute)
	now := last.Add(time.Minute)
	n := events.Notice{Status: events.NoticePending, WindowStart: now.Add(5 * time.Minute), WindowEnd: now.Add(4 * time.Hour)}
	word := func(status events.NoticeStatus) {
		n.Status = status
		w, _, _ = advance(p, w, incident.Noticed{
			Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: life(1), Notice: n, InAPI: true,
		}, now)
		w, _, _ = tick(p, w, now)
	}
	word(events.NoticePending)
	if w.Incident == nil || w.Incident.Cause != events.CauseMaintenance {
		t.Fatalf("no save was asked for: %+v", w.Incident)
	}
	now = now.Add(3 * time.Minute)
	word(events.NoticeGone)
	if w.Closed == nil || w.Closed.Outcome != incident.Withdrawn {
		t.Fatalf("open %+v, closed %+v", w.Incident, w.Closed)
	}
	w, _ = silent(p, w, now, time.Hour, ago(0), func(at time.Time) time.Duration { return at.Sub(last) })
	if w.Incident == nil || w.Incident.Cause != events.CauseHang || !w.Incident.Down.Equal(last) {
		t.Errorf("it is not told: open %+v", w.Incident)
	}
}

// TestAHangIsNotEndedWhenItsOwnerHasTakenTheWordBack: a tightened policy counts at the next step.
func TestAHangIsNotEndedWhenItsOwnerHasTakenTheWordBack(t *testing.T) {
	p := policies["spot"]
	p.Hang = policy.HangRestart
	w, last := steps(p, quiet(true), 5, 5*time.Minute)
	w, after := silent(p, w, last, time.Hour, ago(0), func(at time.Time) time.Duration { return at.Sub(last) })
	if w.Incident == nil || w.Incident.Phase != incident.Restarting {
		t.Fatalf("after %v: %+v", after, w.Incident)
	}
	now := last.Add(after)
	do := func(what string) {
		w, _, _ = advance(p, w, evidence(w, now)[what], now)
	}
	do("intend restart 0")
	do("accepted restart 0")
	p.Hang = policy.HangReport
	for range 60 {
		now = now.Add(time.Minute)
		w, _, _ = tick(p, w, now)
	}
	if w.Incident != nil || w.Closed.Outcome != incident.Escalated || !strings.Contains(w.Closed.Reason, "hang is report") || w.Budgets.Restarts != 1 {
		t.Errorf("open %+v, closed %+v", w.Incident, w.Closed)
	}
}

// TestATrainingThatGoesOnIsNotRestartedForLinesThatAreLate: before another attempt is asked for, which would end the one that
// runs, its crew is listened for.
func TestATrainingThatGoesOnIsNotRestartedForLinesThatAreLate(t *testing.T) {
	for name, c := range map[string]struct {
		step  time.Duration // ago, each time that it is listened for
		lasts time.Duration
		phase incident.Phase
	}{
		"steps are done":              {time.Minute, 2 * time.Hour, incident.Resuming},
		"for hours, and no line":      {time.Minute, 6 * time.Hour, incident.Restarting},
		"the last one is of before":   {3 * time.Hour, 40 * time.Minute, incident.Restarting},
		"the crew tells of none":      {never, 40 * time.Minute, incident.Restarting},
		"steps that have ended again": {25 * time.Minute, 40 * time.Minute, incident.Restarting},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies["spot"]
			n := at(t, p, true, "exit 139", nil)
			began, listened := n.now, 0
			for n.now.Sub(began) < c.lasts && n.w.Incident.Phase == incident.Resuming {
				n.now = n.now.Add(time.Minute)
				if readsOf(n.w, n.now).Has(incident.ReadCrew, "llama-8b") {
					listened++
					n.w, _, _ = advance(p, n.w, beat(n.now, 0, c.step), n.now)
				}
				n.w, _, _ = tick(p, n.w, n.now)
			}
			if n.w.Incident.Phase != c.phase || listened == 0 || listened > 17 {
				t.Errorf("%s after %v, listened for %d times\n%s", n.w.Incident.Phase, n.now.Sub(began), listened, tale(n.w))
			}
		})
	}
}

// TestAHangThatGoesOnBehindAStepIsToldAgain: the step ended what was told, however late its line came.
func TestAHangThatGoesOnBehindAStepIsToldAgain(t *testing.T) {
	p := policies["spot"]
	w, last := steps(p, quiet(true), 5, 5*time.Minute)
	w, after := silent(p, w, last, 24*time.Hour, ago(0), func(now time.Time) time.Duration { return now.Sub(last) })
	if after == 0 {
		t.Fatal("the first standstill was not told")
	}
	step := last.Add(after).Add(30 * time.Minute)
	now := step.Add(5 * time.Second)
	w, _, _ = advance(p, w, incident.Reported{
		Origin: incident.Origin{ID: "line", Time: step, Rank: events.RankUser}, Slice: "llama-8b",
		Report: events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 49_000, CheckpointStep: 48_000},
	}, now)
	if w.Incident != nil || w.Closed.ConfirmedBy != incident.ByStep {
		t.Fatalf("the step did not end it: %+v", w.Closed)
	}
	if _, again := silent(p, w, now, 72*time.Hour, ago(0), func(n time.Time) time.Duration { return n.Sub(step) }); again == 0 {
		t.Error("the second standstill was not told")
	}
}

// restarting is the policy under which a training that hangs is begun again.
func restarting() policy.Policy {
	p := policies["everything"]
	p.Hang = policy.HangRestart
	return p
}

// old is a look that finds three checkpoints from before a time, so far apart.
func old(last time.Time, apart time.Duration) incident.Checked {
	return incident.Checked{
		Stale: true, Text: "the newest is older", Saves: []time.Time{last.Add(-3 * apart), last.Add(-2 * apart), last.Add(-apart)},
		Step: 3000, At: last.Add(-apart), URI: "gs://b/3000", Bytes: 1,
	}
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

// unheard is a Job of which nobody knows whether it trains: its lines have ended, and no crew of it can be heard. It returns what is asked
// for then, and the time of the last step.
func unheard(t *testing.T, p policy.Policy, but ...func(*job)) (j *job, asked string, last time.Time) {
	j = newJob(t, p)
	j.w.Slices[0].Hosts = ""
	j.w.Slices[0].Incarnation.Created = j.now.Add(-48 * time.Hour)
	for _, change := range but {
		change(j)
	}
	for n := range 30 {
		j.says(j.w.Slices[0].Incarnation.ID, events.ReportProgress, func(r *events.CrewReport) { r.Step = 60_000 + 10*int64(n) })
	}
	last = j.w.Progress.At
	for n := 0; n < 120 && j.w.Incident == nil; n++ {
		asked = j.learns(incident.Ticked{})
		j.listens()
	}
	if phaseOf(j.w) != "watching" {
		t.Fatal(tale(j.w))
	}
	return j, asked, last
}

// hung is such a Job that has never saved, an hour later.
func hung(t *testing.T, p policy.Policy) *job {
	j, asked, _ := unheard(t, p)
	if asked != "" {
		j.looks(incident.Checked{None: true, Text: "nothing is there"})
	}
	for range 60 {
		if asked := j.learns(incident.Ticked{}); asked != "" {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		j.listens()
	}
	return j
}

// passes lets time pass in which no crew can be heard, until something is asked for or the incident ends.
func (j *job) passes() (asked string) {
	for range 20 * 60 {
		if asked = j.learns(incident.Ticked{}); asked != "" || j.w.Incident == nil {
			return asked
		}
		if asked = j.listens(); asked != "" {
			return asked
		}
	}
	return ""
}

// TestATrainingThatNobodyHearsIsBegunAgainOnceItSavesNothing: the silence of its lines alone proves nothing.
func TestATrainingThatNobodyHearsIsBegunAgainOnceItSavesNothing(t *testing.T) {
	for _, apart := range []time.Duration{10 * time.Minute, time.Hour, 3 * time.Hour} {
		j, asked, last := unheard(t, restarting())
		newer := last.Add(incident.ResumeFor)
		request, _, err := fence(j.w, j.request(j.w.Effects[0]).Pointer(), j.now)
		if err != nil {
			t.Fatal(err)
		}
		look, is := request.(events.CheckpointRequested)
		if asked != "verify" || !is || !look.Since.Equal(newer) || !look.Any || look.MoreThan != 0 { // a save that began with the last step may end later
			t.Fatalf("%v: %q is asked for: %+v", apart, asked, look)
		}
		asked = j.looks(old(last, apart))
		for asked != "restart llama-8b=7711" {
			if j.now.After(newer.Add(2*apart)) || phaseOf(j.w) != "watching" {
				t.Fatalf("%v: %q is asked for after %v: %s", apart, asked, j.now.Sub(last), stands(j.w, nil))
			}
			if asked = j.passes(); asked == "verify" {
				asked = j.looks(old(last, apart))
			}
		}
		if after := j.now.Sub(last); phaseOf(j.w) != "restarting" || after < incident.ResumeFor+2*apart || j.w.Budgets.Restarts != either(1, 0, "begun") {
			t.Errorf("%v: after %v: %+v, %s", apart, after, j.w.Budgets, tale(j.w))
		}
		j.call(events.ActionRestart)
		if j.w.Budgets.Restarts != 1 {
			t.Errorf("%v: %+v is spent", apart, j.w.Budgets)
		}
		j.says(j.w.Slices[0].Incarnation.ID, events.ReportProgress, func(r *events.CrewReport) { r.Attempt, r.Step = 2, 60_400 })
		if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Resumed || in.ConfirmedBy != incident.ByStep {
			t.Errorf("%v: it does steps again: %s", apart, stands(j.w, nil))
		}
	}
}

// TestWhatOfASilentTrainingIsNotBegunAgain: what may train, and what its owner does not want. The watch over it ends by itself.
func TestWhatOfASilentTrainingIsNotBegunAgain(t *testing.T) {
	p, no, ask, report := restarting(), restarting(), restarting(), restarting()
	no.Switches.Restart, ask.Switches.Restart = policy.No, policy.Ask
	report.Hang = policy.HangReport
	const looked = "verify"
	for name, c := range map[string]struct {
		p      policy.Policy
		before func(j *job)
		asked  string
		look   func(j *job, e *incident.Checked)
	}{
		"it saves": {p, nil, looked, func(j *job, e *incident.Checked) {
			*e = incident.Checked{Found: true, Step: 4000, At: j.now, URI: "gs://b/4000"}
		}},
		"nothing was ever saved":             {p, nil, looked, func(_ *job, e *incident.Checked) { *e = incident.Checked{None: true, Text: "nothing is there"} }},
		"it has saved twice":                 {p, nil, looked, func(_ *job, e *incident.Checked) { e.Saves = e.Saves[:2] }},
		"what it writes cannot be looked at": {p, nil, looked, func(_ *job, e *incident.Checked) { e.Stale = false }},
		"a former release looks":             {p, nil, looked, func(_ *job, e *incident.Checked) { e.Saves = nil }},
		"a former life has saved":            {p, func(j *job) { j.w.Slices[0].Incarnation.Created = j.now.Add(-time.Minute) }, looked, func(*job, *incident.Checked) {}},
		"it has told of a step meanwhile": {p, nil, looked, func(j *job, _ *incident.Checked) {
			j.says(j.w.Slices[0].Incarnation.ID, events.ReportProgress, func(r *events.CrewReport) { r.Attempt, r.Step = 2, 2000 })
		}},
		"a crew speaks whose life is not known": {p, nil, looked, func(j *job, _ *incident.Checked) {
			j.says("uid-of-nobody", events.ReportProgress, func(r *events.CrewReport) { r.Step = 60_400 })
		}},
		"the policy forbids everything meanwhile": {p, nil, looked, func(j *job, _ *incident.Checked) { j.p.Switches = policies["watch"].Switches }},
		"the policy cannot be read meanwhile":     {p, nil, looked, func(j *job, _ *incident.Checked) { j.p.Unreadable = "it is empty" }},
		"the policy only reports hangs":           {report, nil, "", nil},
		"the policy forbids a restart":            {no, nil, "", nil},
		"a person would be asked first":           {ask, nil, "", nil},
		"the policy reports hangs meanwhile":      {p, nil, looked, func(j *job, _ *incident.Checked) { j.p.Hang = policy.HangReport }},
		"it has no directory":                     {p, func(j *job) { j.w.Directory = "" }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := func(*job) {}
			if c.before != nil {
				before = c.before
			}
			j, asked, last := unheard(t, c.p, before)
			if asked != c.asked {
				t.Fatalf("%q is asked for: %s", asked, stands(j.w, nil))
			}
			for ; asked == looked; asked = j.passes() {
				e := old(last, 10*time.Minute)
				if c.look(j, &e); len(j.w.Effects) == 0 {
					continue // it is not looked for any more
				}
				if asked = j.looks(e); asked != "" {
					break
				}
			}
			if asked != "" {
				t.Fatalf("%q is asked for: %s", asked, stands(j.w, nil))
			}
			j.passes()
			if in := j.w.Closed; j.w.Incident != nil || in.Outcome != incident.Observed || j.w.Budgets.Restarts != 0 {
				t.Errorf("%s", stands(j.w, nil))
			}
		})
	}
}

// TestASaveEndsNoWatchOverASliceThatCannotBeUsed: what it saved before that does not show that it goes on.
func TestASaveEndsNoWatchOverASliceThatCannotBeUsed(t *testing.T) {
	j, _, _ := unheard(t, restarting())
	e := found(j.w, incident.Unhealthy, "unhealthy", j.now.Add(time.Minute))
	j.learns(e)
	if len(j.w.Effects) > 0 {
		j.looks(incident.Checked{Found: true, Step: 4000, At: j.now.Add(-10 * time.Minute), URI: "gs://b/4000"})
	}
	if phaseOf(j.w) != either("watching", "healing", "at once") {
		t.Fatalf("it cannot be used: %s", tale(j.w))
	}
	e = found(j.w, incident.Lost, "lost", j.now.Add(time.Minute))
	e.Facts.Healing = incident.HealsNever
	if asked := j.learns(e); asked != "delete llama-8b" {
		t.Errorf("it is lost, and %q is asked for: %s", asked, tale(j.w))
	}
}

// TestAMomentOfSicknessDelaysTheLookAtWhatIsSaved, and does not end it: no step was done.
func TestAMomentOfSicknessDelaysTheLookAtWhatIsSaved(t *testing.T) {
	j, _, last := unheard(t, restarting())
	j.looks(old(last, time.Hour))
	for _, condition := range []incident.Condition{incident.Unhealthy, incident.Ready} {
		j.learns(found(j.w, condition, string(condition), j.now.Add(time.Minute)))
	}
	back, asked := j.now, ""
	for n := 0; n < 5 && asked != "restart llama-8b=7711"; n++ {
		if asked = j.passes(); asked == "verify" {
			asked = j.looks(old(last, time.Hour))
		}
	}
	if after := j.now.Sub(back); asked != "restart llama-8b=7711" || after < incident.ResumeFor+2*time.Hour || after > 3*time.Hour {
		t.Errorf("after %v %q is asked for: %s", after, asked, stands(j.w, nil))
	}
}

// TestAnotherAttemptIsNotAskedForLongAfterTheLook: a pause may have come between, and it may save again.
func TestAnotherAttemptIsNotAskedForLongAfterTheLook(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		change func(*policy.Policy)
		asked  string
		phase  string
	}{
		"soon":                              {0, func(*policy.Policy) {}, "", "restarting"},
		"two days later":                    {48 * time.Hour, func(*policy.Policy) {}, "verify", "watching"},
		"its owner wants to be told only":   {0, func(p *policy.Policy) { p.Hang = policy.HangReport }, "", "watching"},
		"its owner wants to be asked first": {0, func(p *policy.Policy) { p.Switches.Restart = policy.Ask }, "", "watching"},
	} {
		j, _, last := unheard(t, restarting())
		if asked := j.looks(old(last, 10*time.Minute)); asked != "restart llama-8b=7711" {
			t.Fatalf("%q is asked for: %s", asked, tale(j.w))
		}
		c.change(&j.p)
		j.now = j.now.Add(c.after)
		asked := j.learns(incident.Intended{Request: j.request(j.w.Effects[0]), RequestID: "late"})
		if asked != c.asked || phaseOf(j.w) != c.phase || (j.w.Budgets.Restarts == 1) != (c.phase == "restarting") {
			t.Errorf("%s: %q is asked for, %+v is spent: %s", name, asked, j.w.Budgets, tale(j.w))
		}
	}
}

// TestAPolicyThatAsksIsHeededBeforeTheCall: while a person is asked, a training whose lines are lost may go on.
func TestAPolicyThatAsksIsHeededBeforeTheCall(t *testing.T) {
	j, _, last := unheard(t, restarting())
	j.looks(old(last, 10*time.Minute))
	j.p.Switches.Restart = policy.Ask
	if asked := j.learns(incident.Forbidden{Request: j.request(j.w.Effects[0]), Code: incident.CodePolicyAsk, Why: "the switch is ask"}); asked != "" || phaseOf(j.w) != "watching" || j.w.Budgets.Restarts != 0 {
		t.Errorf("%q is asked for, %+v is spent: %s", asked, j.w.Budgets, tale(j.w))
	}
}

// TestALineEndsTheRequestForAnotherAttempt that was made because no line came, until the lease may have been written. Lines may be lost again, so
// what it saves is watched on.
func TestALineEndsTheRequestForAnotherAttempt(t *testing.T) {
	for name, what := range map[string]events.Report{"it saves": events.ReportSaved, "its attempt began": events.ReportStarted, "a step that is not past the last one": events.ReportProgress} {
		for _, begun := range []bool{false, true} {
			j, _, last := unheard(t, restarting())
			j.looks(old(last, 10*time.Minute))
			if begun {
				j.learns(incident.Intended{Request: j.request(j.w.Effects[0]), RequestID: "request-1"})
			}
			asked := j.says(j.w.Slices[0].Incarnation.ID, what, func(r *events.CrewReport) { r.Attempt, r.Step = j.w.Crew.Attempt, j.w.Progress.Step })
			want := map[bool]string{false: "watching " + either("verify", "", "spoke"), true: "restarting "}[begun]
			if phaseOf(j.w)+" "+asked != want || j.w.Budgets.Restarts != map[bool]int{false: 0, true: 1}[begun] {
				t.Errorf("%s, begun %v: %q is asked for, %+v is spent: %s", name, begun, asked, j.w.Budgets, tale(j.w))
			}
		}
	}
}

// TestALineThatCameDuringACallIsHeededBeforeTheNext: the call may not have been made. So is a line of a life that nobody knows.
func TestALineThatCameDuringACallIsHeededBeforeTheNext(t *testing.T) {
	for name, life := range map[string]string{"its crew": "", "an unknown life": "9999"} {
		j, _, last := unheard(t, restarting())
		j.looks(old(last, 10*time.Minute))
		r := j.request(j.w.Effects[0])
		j.learns(incident.Intended{Request: r, RequestID: "request-1"})
		if life == "" {
			life = j.w.Slices[0].Incarnation.ID
		}
		j.says(life, events.ReportSaved, func(r *events.CrewReport) { r.Attempt = j.w.Crew.Attempt })
		j.learns(incident.Held{Request: r, Code: incident.CodePaused, Why: "paused", Until: j.now.Add(time.Minute)})
		for n := 0; n < 5 && len(j.w.Effects) > 0 && j.request(j.w.Effects[0]).Attempt == r.Attempt; n++ {
			j.learns(incident.Ticked{})
		}
		asked := ""
		if len(j.w.Effects) > 0 {
			asked = j.learns(incident.Intended{Request: j.request(j.w.Effects[0]), RequestID: "request-2"})
		}
		if asked != either("verify", "", "spoke") || phaseOf(j.w) != "watching" {
			t.Errorf("%s: %q is asked for: %s", name, asked, tale(j.w))
		}
	}
}

// TestAQuestionAboutAnotherAttemptRestsOnNoLook: a yes is carried out, and a Job that is lost meanwhile is replaced at once. The call before the
// question may have been made.
func TestAQuestionAboutAnotherAttemptRestsOnNoLook(t *testing.T) {
	for _, lost := range []bool{false, true} {
		j, _, last := unheard(t, restarting())
		j.looks(old(last, 10*time.Minute))
		r := j.request(j.w.Effects[0])
		j.learns(incident.Intended{Request: r, RequestID: "request-1"})
		j.learns(incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.Transient, Message: "503"}, Text: "failed"})
		for n := 0; n < 5 && j.request(j.w.Effects[0]).Attempt == r.Attempt; n++ {
			j.learns(incident.Ticked{})
		}
		j.p.Switches.Restart = policy.Ask
		j.learns(incident.Forbidden{Request: j.request(j.w.Effects[0]), Code: incident.CodePolicyAsk, Why: "the switch is ask"})
		if phaseOf(j.w) != "approving" || j.w.Incident.Asked != events.ActionRestart {
			t.Fatalf("nobody is asked: %s", tale(j.w))
		}
		j.now = j.now.Add(incident.SavedFor)
		if lost {
			if asked := j.fails(events.CausePreemption); asked != "delete llama-8b" {
				t.Errorf("the Job is lost, and %q is asked for: %s", asked, tale(j.w))
			}
			continue
		}
		j.learns(incident.Approved{Word: ann, Incident: j.w.Incident.ID, Action: events.ActionRestart})
		if asked := j.learns(incident.Intended{Request: j.request(j.w.Effects[0]), RequestID: "request-2"}); asked != "" || phaseOf(j.w) != "restarting" {
			t.Errorf("ann says yes, and %q is asked for: %s", asked, tale(j.w))
		}
	}
}

// TestNoSecondAttemptIsAskedForUnheard: without a line nobody knows whether the attempt that was asked for trains.
func TestNoSecondAttemptIsAskedForUnheard(t *testing.T) {
	for name, c := range map[string]struct {
		starts bool
		look   incident.Checked
		asked  string
		end    incident.Outcome
	}{
		"a line tells of its start": {true, incident.Checked{}, "restart llama-8b=7711", ""},
		"no line, and it saves":     {false, incident.Checked{Found: true, Step: 4000, URI: "gs://b/4000"}, "verify", incident.Resumed},
		"no line and no save":       {false, incident.Checked{Stale: true}, "verify", incident.Escalated},
	} {
		t.Run(name, func(t *testing.T) {
			j, _, last := unheard(t, restarting())
			j.looks(old(last, 10*time.Minute))
			j.call(events.ActionRestart)
			if c.starts {
				j.says(j.w.Slices[0].Incarnation.ID, events.ReportStarted, func(r *events.CrewReport) { r.Attempt = 2 })
			}
			if asked := j.passes(); asked != c.asked {
				t.Fatalf("%q is asked for: %s", asked, stands(j.w, nil))
			}
			if c.end == "" {
				return
			}
			c.look.At = j.now
			asked := j.looks(c.look)
			for n := 0; n < 20 && j.w.Incident != nil && asked == ""; n++ {
				asked = j.learns(incident.Ticked{})
				if asked == "verify" { // it is looked for once more
					asked = j.looks(c.look)
				}
			}
			if in := j.w.Closed; asked != "" || j.w.Incident != nil || in.Outcome != c.end || j.w.Budgets.Restarts > 1 {
				t.Errorf("%q is asked for: %s", asked, stands(j.w, nil))
			}
		})
	}
}

// listens has patrol listen for the Job's crews, which it cannot.
func (j *job) listens() (asked string) {
	s := j.w.Slices[0]
	return j.learns(incident.Beat{Origin: incident.Origin{Time: j.now, Rank: events.RankUser}, Slice: s.Name, Incarnation: s.Incarnation})
}

// TestNothingIsDeletedForAHang: anybody may write the lines of a crew. It is asked for another attempt, and that alone, whatever its lines say.
func TestNothingIsDeletedForAHang(t *testing.T) {
	j := newJob(t, restarting())
	j.w.Progress.Verified, j.w.Progress.VerifiedAt = 900, start
	all := ""
	for range 1200 {
		for i := range j.w.Slices {
			j.w.Slices[i].Heard = incident.Heard{At: j.now, Seen: j.now, Runs: true, Attempt: 1}
		}
		asked := j.learns(found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))) + j.learns(incident.Ticked{})
		if all += asked; strings.Contains(asked, "restart") {
			j.call(events.ActionRestart)
		}
	}
	if !strings.Contains(all, "restart llama-8b=7711") || strings.Contains(all, "delete") {
		t.Errorf("it does no steps, and %q is asked for: %s", all, stands(j.w, nil))
	}
}

// TestAHangStopsNoCare: the switches decide what becomes of a slice that cannot be used, or saves before maintenance, while the
// training is only watched for standing still.
func TestAHangStopsNoCare(t *testing.T) {
	for name, c := range map[string]struct {
		now   incident.Condition
		phase string
	}{
		"lost":      {incident.Lost, "deleting"},
		"gone":      {incident.Gone, "grace"},
		"unhealthy": {incident.Unhealthy, "healing"},
	} {
		for allowed, p := range map[string]policy.Policy{c.phase: policies["everything"], "watching": policies["watch"], c.phase + ", and a look is open": restarting()} {
			j := hung(t, p)
			if name, open := strings.CutSuffix(allowed, ", and a look is open"); open {
				allowed = name
				j, _, _ = unheard(t, p)
			}
			e := found(j.w, c.now, name, j.now.Add(time.Minute))
			e.Facts.Healing = incident.HealsNever
			j.learns(e)
			if c.now == incident.Unhealthy { // that passes, often
				if phaseOf(j.w) != either("watching", allowed, "at once") {
					t.Errorf("unhealthy for a moment, %s: %s", allowed, tale(j.w))
				}
				j.now = j.now.Add(incident.SickFor)
				e.Time = j.now.Add(time.Minute)
				j.learns(e)
			}
			if phaseOf(j.w) != allowed {
				t.Errorf("%s, %s: %s", name, allowed, tale(j.w))
			}
		}
	}
	for allowed, p := range map[string]policy.Policy{"saving": policies["everything"], "watching": policies["watch"]} {
		for _, status := range []events.NoticeStatus{events.NoticePending, events.NoticeOngoing} {
			j := hung(t, p)
			first := j.w.Incident.ID
			n := events.Notice{Status: status, WindowStart: j.now.Add(30 * time.Minute), WindowEnd: j.now.Add(time.Hour)}
			asked := j.learns(j.notice(n))
			for n := 0; n < 25 && asked == ""; n++ {
				asked += j.learns(incident.Ticked{})
			}
			if asked == "" && allowed == "saving" || phaseOf(j.w) != allowed || (j.w.Incident.ID == first) != either(allowed == "watching", true, "one") {
				t.Errorf("%s: %q is asked for: %s", status, asked, tale(j.w))
			}
			if c := j.w.Closed; !*third && allowed == "saving" && (c == nil || c.ID != first || c.Outcome != incident.Observed) {
				t.Errorf("%s: the watch over the hang has not ended: %+v", status, c)
			}
		}
	}
}

// notice is a reading of announced maintenance.
func (j *job) notice(n events.Notice) incident.Noticed {
	return incident.Noticed{
		Origin: incident.Origin{Time: j.now.Add(time.Minute), Rank: events.RankReading}, Slice: "llama-8b", Incarnation: j.w.Slices[0].Incarnation, Notice: n, InAPI: true,
	}
}

// TestNoWordOfMaintenanceEndsAWatchOverAHang, or lengthens it: a hang has nothing to do with maintenance that is far away.
func TestNoWordOfMaintenanceEndsAWatchOverAHang(t *testing.T) {
	for _, p := range []policy.Policy{policies["everything"], policies["watch"]} {
		p.Switches.EarlyMaintenance = policy.No
		j := hung(t, p)
		first, deadline := j.w.Incident.ID, j.w.Incident.Deadline
		n := events.Notice{Status: events.NoticePending, WindowStart: j.now.Add(48 * time.Hour), WindowEnd: j.now.Add(50 * time.Hour)}
		j.learns(j.notice(n))
		n.WindowStart, n.WindowEnd = n.WindowStart.Add(time.Hour), n.WindowEnd.Add(time.Hour)
		j.learns(j.notice(n))
		n.Status = events.NoticeGone
		j.learns(j.notice(n))
		j.learns(incident.Ticked{})
		if in := j.w.Incident; in == nil || in.ID != first || !in.Deadline.Equal(deadline) {
			t.Errorf("%s: %s", p.Name, tale(j.w))
		}
	}
}

// TestACrewThatGivesUpHangsNoMore: the switch restart decides then, and the crew's verdict confirms it.
func TestACrewThatGivesUpHangsNoMore(t *testing.T) {
	nobody := policies["spot"]
	nobody.Switches.Restart = policy.No
	for name, c := range map[string]struct {
		p      policy.Policy
		answer string
		phase  string
		reason string
	}{
		"the verdict says so":       {policies["spot"], "spent hear 0", "restarting", ""},
		"restart is not allowed":    {nobody, "spent hear 0", "", "the switch restart is no"},
		"only a line says so":       {policies["spot"], "no verdict hear 0", "watching", ""},
		"nothing at all is allowed": {policies["watch"], "", "", "the policy allows nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			w, last := steps(c.p, quiet(true), 5, 5*time.Minute)
			w, after := silent(c.p, w, last, time.Hour, ago(0), func(at time.Time) time.Duration { return at.Sub(last) })
			if phaseOf(w) != "watching" {
				t.Fatal(tale(w))
			}
			now := last.Add(after)
			tell := func(e incident.Evidence) {
				now = now.Add(time.Minute)
				w, _, _ = advance(c.p, w, e, now)
			}
			tell(incident.Reported{
				Origin: incident.Origin{ID: "line", Time: now, Rank: events.RankUser}, Slice: "llama-8b",
				Report: events.CrewReport{Report: events.ReportGaveUp, Attempt: 1, Reason: "five times"},
			})
			for n := 0; n < 120 && w.Incident != nil && phaseOf(w) != "restarting"; n++ {
				if e := answers(w, w.Slices[0], now)[c.answer]; e != nil {
					tell(e)
				}
				tell(incident.Ticked{})
			}
			in := w.Incident
			if c.phase == "" {
				in = w.Closed
			}
			if in == nil || c.phase != "" && phaseOf(w) != c.phase || !strings.Contains(in.Reason, c.reason) {
				t.Errorf("open %s, closed %+v", tale(w), w.Closed)
			}
		})
	}
}

// TestAStepThatNobodyDidHidesNoStep: the training's true steps are far behind it, and newer.
func TestAStepThatNobodyDidHidesNoStep(t *testing.T) {
	j := newJob(t, policies["everything"])
	j.w.Slices[0].Hosts = ""
	says := func(step int64) {
		j.says(j.w.Slices[0].Incarnation.ID, events.ReportProgress, func(r *events.CrewReport) { r.Step = step })
	}
	for n := range 30 {
		says(60_000 + 10*int64(n))
	}
	says(1 << 50)
	for n := range 120 {
		says(60_300 + 10*int64(n))
		j.learns(incident.Ticked{})
		j.listens()
	}
	if p := j.w.Progress; j.w.Incident != nil || p.Step != 61_490 || p.High != p.Step {
		t.Errorf("step %d of %d: %s", p.Step, p.High, tale(j.w))
	}
	says(61_480) // a line of another slice, a little behind
	if p := j.w.Progress; p.Step != 61_490 {
		t.Errorf("step %d", p.Step)
	}
}

// TestAHangIsNotExplainedByWhatCameBeforeItsLastStep, though the entry about that comes late: the training went on after it.
func TestAHangIsNotExplainedByWhatCameBeforeItsLastStep(t *testing.T) {
	for after, want := range map[time.Duration]events.Cause{-10 * time.Minute: events.CauseHang, 10 * time.Minute: events.CausePreemption} {
		w, last := steps(policies["spot"], quiet(true), 5, 5*time.Minute)
		w, hung := silent(policies["spot"], w, last, time.Hour, ago(0), func(at time.Time) time.Duration { return at.Sub(last) })
		now := last.Add(hung)
		for n := 0; n < 300 && w.Incident != nil; n++ {
			now = now.Add(time.Minute)
			w, _, _ = advance(policies["spot"], w, incident.Ticked{}, now)
		}
		if w.Closed == nil || w.Closed.Cause != events.CauseHang {
			t.Fatal(tale(w))
		}
		w, _, _ = advance(policies["spot"], w, incident.Interrupted{
			Origin: incident.Origin{ID: "entry", Time: last.Add(after), Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: life(1), Cause: events.CausePreemption, Text: "it was preempted",
		}, now.Add(time.Minute))
		if got := w.Closed.Cause; got != want {
			t.Errorf("preempted %v after its last step: archived as %s, want %s", after, got, want)
		}
	}
}
