package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// record is what the crew's record on its machine says when it is read: when it was written, and when the last step was.
type record func(now time.Time) (seen, step time.Time)

func nothing(time.Time) (seen, step time.Time) { return }

// written is a record that was written so long ago, with a last step at that time.
func written(ago time.Duration, step time.Time) record {
	return func(now time.Time) (time.Time, time.Time) { return now.Add(-ago), step }
}

// working is a record of a crew whose last step is always so long ago.
func working(ago time.Duration) record {
	return func(now time.Time) (seen, step time.Time) { return now, now.Add(-ago) }
}

// trains has the training tell of so many steps, so far apart, and returns when the last one was.
func (n *story) trains(steps int64, apart time.Duration) (last time.Time) {
	n.w.Training.StepAt = start
	for i := range steps {
		n.later(apart).steps(1, 48_200+10*i)
	}
	return n.now
}

// silent lets time pass without a line, has the crew listened for, and returns when an incident opens after the last step; 0 for never.
func (n *story) silent(last time.Time, d time.Duration, says record) time.Duration {
	for end := n.now.Add(d); !n.now.After(end); n.later(time.Minute) {
		if n.listens(says).w.Incident != nil {
			return n.now.Sub(last)
		}
	}
	return 0
}

// listens has patrol listen for the crew if somebody has to, and then tick.
func (n *story) listens(says record) *story {
	var sent []string
	if s := n.w.Slices[0]; n.w.Reads(n.now).Has(incident.ReadCrew, s.Name) {
		seen, step := says(n.now)
		sent = n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Runs: true, Seen: seen, StepAt: step}).sent
	}
	n.give(evidence.Ticked{Origin: n.reading()})
	n.sent = append(sent, n.sent...)
	return n
}

// hangs is a training whose steps have ended, until that is seen, and the time of the last step.
func hangs(t *testing.T, policy string) (n *story, last time.Time) {
	n = newStory(t, true, "llama-8b").under(policy)
	last = n.trains(5, 5*time.Minute)
	if after := n.silent(last, time.Hour, written(0, last)); after != bounds.HangFor || n.w.Incident.Cause() != events.CauseHang || !n.down().Equal(last) {
		t.Fatalf("it is seen after %v:\n%s", after, n.tale())
	}
	return n, last
}

// TestNoHangGoesUnseen: it is told after three times the longest gap that was seen, and once.
func TestNoHangGoesUnseen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps int64
		apart time.Duration
		says  record
		want  time.Duration
	}{
		"reports each five minutes": {5, 5 * time.Minute, nil, 15 * time.Minute},
		"a short gap":               {5, time.Minute, nil, bounds.HangFor},
		"a long gap":                {3, 40 * time.Minute, nil, 2 * time.Hour},
		"no gap at all":             {0, 0, nil, bounds.NoGapFor},
		"the crew is dead":          {5, 5 * time.Minute, written(5*time.Hour, start), 15*time.Minute + bounds.Grace},
		"nothing can be read":       {5, 5 * time.Minute, nothing, 15*time.Minute + bounds.Grace},
	} {
		n := newStory(t, true, "llama-8b")
		n.p.Hang = policy.HangReport
		last := n.trains(c.steps, c.apart)
		if c.says == nil {
			c.says = written(0, last)
		}
		if after := n.silent(last, 5*time.Hour, c.says); after != c.want || n.stands(nil) != "watching" {
			t.Errorf("%s: it is seen after %v, want %v:\n%s", name, after, c.want, n.tale())
			continue
		}
		for first := n.w.Incident.ID; n.now.Sub(last) < 12*time.Hour; n.later(time.Minute) {
			if n.listens(c.says); n.w.Incident == nil && n.w.Closed.ID != first || n.w.Incident != nil && n.w.Incident.ID != first {
				t.Fatalf("%s: it is told again:\n%s", name, n.tale())
			}
		}
	}
}

// TestASlowTrainingIsNoHang: what takes long and is no standstill, and what nobody expects to do steps.
func TestASlowTrainingIsNoHang(t *testing.T) {
	t.Parallel()
	const long = 6 * time.Hour
	last, hours := start.Add(25*time.Minute), working(time.Hour)
	for name, c := range map[string]struct {
		is   func(w *incident.Workload)
		d    time.Duration
		says record
	}{
		"steps of forty minutes":                  {func(w *incident.Workload) { w.Training.GapSeconds = 2400 }, 119 * time.Minute, hours},
		"an attempt that compiles":                {func(w *incident.Workload) { w.Training.Attempt, w.Training.Began = 2, last }, 29 * time.Minute, hours},
		"a machine that came back ten minutes on": {func(w *incident.Workload) { w.Slices[0].Since = last.Add(10 * time.Minute) }, 24 * time.Minute, hours},
		"the log is silent, the crew writes":      {func(*incident.Workload) {}, long, working(time.Minute)},
		"a crew that never told of a step":        {func(w *incident.Workload) { w.Training = incident.Training{Seen: start, Attempt: 1} }, long, hours},
		"no crew":                                 {crewless, long, hours},
		"a training that is finished": {func(w *incident.Workload) {
			w.Training.Verdict = incident.Verdict{Attempt: 1, Finished: true, At: last}
		}, long, hours},
		"a slice that its owner has taken": {func(w *incident.Workload) { w.Slices[0].Released = last }, long, hours},
		"a standstill that was told":       {func(w *incident.Workload) { w.Told = []incident.Told{{Of: incident.ToldStall, At: last}} }, long, hours},
	} {
		n := newStory(t, true, "llama-8b")
		n.trains(5, 5*time.Minute)
		if after := n.with(c.is).silent(last, c.d, c.says); after != 0 {
			t.Errorf("%s: it is seen after %v:\n%s", name, after, n.tale())
		}
	}
}

// TestALostLineIsNoHang: nothing is decided before the crew was listened for. What then stands still is found from its record's step on.
func TestALostLineIsNoHang(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.trains(5, 5*time.Minute)
	if sent := n.passes(2 * time.Hour); n.w.Incident != nil || len(sent) > 0 {
		t.Fatalf("nobody has listened:\n%s", n.tale())
	}
	step := n.now.Add(-2 * time.Minute)
	if n.listens(written(0, step)); n.w.Incident != nil || n.w.Training.Step != 48_240 || !n.w.Due().IsZero() {
		t.Fatalf("due at %v, the training is %+v:\n%s", n.w.Due(), n.w.Training, n.tale())
	}
	if after := n.silent(step, time.Hour, written(0, step)); after != 15*time.Minute {
		t.Errorf("it is seen after %v:\n%s", after, n.tale())
	}
}

// TestAHangIsEndedOnlyIfItsOwnerSaysSo, and only where there is something to go on from.
func TestAHangIsEndedOnlyIfItsOwnerSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*story)
		at     string
		code   reason.Code
	}{
		"restart":             {func(*story) {}, "restarting", ""},
		"report":              {func(n *story) { n.p.Hang = policy.HangReport }, "watching", ""},
		"restart, as watched": {func(n *story) { n.p.Switches = policy.Switches{} }, "watching", ""},
		"policy unreadable":   {func(n *story) { n.p.Unreadable = "503" }, "watching", ""},
		"restart, switch no":  {func(n *story) { n.p.Switches.Restart = policy.No }, "escalated", reason.CodePolicyNo},
		"no checkpoint": {func(n *story) {
			n.w.Training.Saved, n.w.Training.Reported = incident.Checkpoint{}, incident.Checkpoint{}
		}, "escalated", reason.CodeNoCheckpoint},
		"three times already": {func(n *story) { n.with(spent(events.ActionRestart)) }, "escalated", reason.CodeBudget},
	} {
		n := newStory(t, true, "llama-8b")
		last := n.trains(5, 5*time.Minute)
		for c.change(n); n.stands(nil) == "peace" || n.isWanted(events.ActionHear); { // which nobody answers
			n.later(time.Minute).listens(written(0, last))
		}
		if n.stands(nil) != c.at || n.ended().Code != c.code {
			t.Errorf("%s: want %s %s:\n%s", name, c.at, c.code, n.tale())
		}
	}
}

// TestAHangIsNotEndedWhenItsOwnerHasTakenTheWordBack: a tightened policy counts at the next step.
func TestAHangIsNotEndedWhenItsOwnerHasTakenTheWordBack(t *testing.T) {
	t.Parallel()
	n, _ := hangs(t, "everything")
	n.goes("does restart")
	n.p.Hang = policy.HangReport
	if n.passes(time.Hour); n.ended().Code != reason.CodeHangReport || n.w.Spent(events.ActionRestart) != 1 {
		t.Errorf("charged is %+v:\n%s", n.w.Charges, n.tale())
	}
}

// TestAHangThatGoesOnBehindAStepIsToldAgain: the step ended what was told, however late its line came.
func TestAHangThatGoesOnBehindAStepIsToldAgain(t *testing.T) {
	t.Parallel()
	n, _ := hangs(t, "spot")
	n.later(30*time.Minute).steps(1, 49_000)
	n.is("observed")
	if again := n.silent(n.now, 72*time.Hour, written(0, n.now)); again == 0 {
		t.Error("the second standstill is not told")
	}
}

// TestAHangIsNotExplainedByWhatCameBeforeItsLastStep, though the entry about that comes late: the training went on after it.
func TestAHangIsNotExplainedByWhatCameBeforeItsLastStep(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]events.Cause{-10 * time.Minute: events.CauseHang, 10 * time.Minute: events.CausePreemption} {
		n, last := hangs(t, "spot")
		n.passes(bounds.WatchFor)
		n.is("observed")
		n.later(time.Minute)
		if n.give(interrupted(events.CausePreemption, "late", events.RankAudit, n.now.Sub(last)-after)(n, &n.w.Slices[0])); n.w.Closed.Cause() != want {
			t.Errorf("preempted %v after its last step, it is archived as %s, want %s", after, n.w.Closed.Cause(), want)
		}
	}
}

// TestACrewThatGivesUpHangsNoMore: the switch restart decides then, and the crew's verdict confirms it.
func TestACrewThatGivesUpHangsNoMore(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		policy, want string
		restart      policy.Level
		code         reason.Code
	}{
		"gave up, spent hear, 2m":      {"spot", "restarting", policy.Yes, ""},
		"gave up, spent hear, 3m":      {"spot", "escalated", policy.No, reason.CodePolicyNo},
		"gave up, no verdict hear, 2m": {"spot", "watching", policy.Yes, ""}, // only a line says so
		"gave up, 2m":                  {"watch", "observed", policy.No, reason.CodeWatchOnly},
	} {
		n, _ := hangs(t, c.policy)
		n.p.Switches.Restart = c.restart
		if n.goes(path); n.stands(nil) != c.want || n.ended().Code != c.code {
			t.Errorf("%s: want %s %s:\n%s", path, c.want, c.code, n.tale())
		}
	}
}

// TestATrainingThatGoesOnIsNotRestartedForLinesThatAreLate: before another attempt is asked for, its crew is listened for.
func TestATrainingThatGoesOnIsNotRestartedForLinesThatAreLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says  record
		lasts time.Duration
		want  string
	}{
		"steps are done":              {working(time.Minute), 2 * time.Hour, "resuming"},
		"for hours, and no line":      {working(time.Minute), 6 * time.Hour, "restarting"},
		"the last one is of before":   {working(3 * time.Hour), 40 * time.Minute, "restarting"},
		"the crew tells of none":      {func(now time.Time) (seen, step time.Time) { return now, step }, 40 * time.Minute, "restarting"},
		"steps that have ended again": {working(25 * time.Minute), 40 * time.Minute, "restarting"},
	} {
		n := at(t, "spot", true, "exit 139")
		listened := 0
		says := func(now time.Time) (seen, step time.Time) { listened++; return c.says(now) }
		for end := n.now.Add(c.lasts); n.now.Before(end) && n.stands(nil) == "resuming"; {
			n.later(time.Minute).listens(says)
		}
		if n.stands(nil) != c.want || listened == 0 || listened > 17 {
			t.Errorf("%s: want %s, listened for %d times:\n%s", name, c.want, listened, n.tale())
		}
	}
}

// TestAHangStopsNoCare: a loss is handled, and maintenance saved for, while a hang is watched, which itself deletes nothing: anybody may write a crew's lines.
func TestAHangStopsNoCare(t *testing.T) {
	t.Parallel()
	for word, allowed := range map[string]string{
		"read ready": "watching", "read lost": "deleting: delete llama-8b", "read gone": "grace", "read unhealthy": "healing",
		"shows pending": "saving: save", "shows ongoing": "saving: save",
	} {
		for policy, want := range map[string]string{"everything": allowed, "watch": "watching"} {
			n, asked, _ := unheard(t, policy)
			if asked == "verify" {
				n.goes("none verify").passes(time.Hour)
			}
			n.history("1m", "watching", word, want)
		}
	}
}

// TestNoWordOfMaintenanceEndsAWatchOverAHang, or lengthens it: a hang has nothing to do with maintenance that is far away.
func TestNoWordOfMaintenanceEndsAWatchOverAHang(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"everything", "watch"} {
		n, _, _ := unheard(t, policy)
		n.p.Switches.EarlyMaintenance = 0
		first, until := n.w.Incident.ID, n.w.Incident.Status.Until
		if in := n.goes("shows movable, a minute, shows moved, a minute, shows withdrawn, 1m").w.Incident; in == nil || in.ID != first || !in.Status.Until.Equal(until) {
			t.Errorf("under %s:\n%s", policy, n.tale())
		}
	}
}

// TestASilenceIsShownBeforeItIsAHang: with the time at which it is taken for one, from the second line on that does not come.
func TestASilenceIsShownBeforeItIsAHang(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	last := n.trains(8, 5*time.Minute)
	for ago, shown := range map[time.Duration]bool{9 * time.Minute: false, 11 * time.Minute: true} {
		v := n.w.Shown(last.Add(ago))
		text, at := v.Row().Next, v.Row().At
		if got := v.Training.HangsAt; got.IsZero() == shown || shown && (!got.After(last.Add(ago)) || !at.Equal(got) || text == "") {
			t.Errorf("after %s: %q at %s, hangs at %s", ago, text, at, got)
		}
	}
}
