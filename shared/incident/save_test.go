package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestEverySaveHasItsOutcome. What is complete behind the deadline and before the maintenance is as good as what is in time.
func TestEverySaveHasItsOutcome(t *testing.T) {
	t.Parallel()
	for steps, c := range map[string]struct {
		p    func(*policy.Policy)
		w    func(*incident.Workload)
		want reason.SaveResult
	}{
		"does save, saved, found verify":                               {want: reason.SaveVerified},
		"does save, later, tick, saved, found verify":                  {want: reason.SaveVerified},
		"does save, later, tick, 1m, saved, found verify":              {want: reason.SaveLate},
		"does save, later, tick, saved, torn verify, 1m, found verify": {want: reason.SaveLate},
		"does save, saved, torn verify, later, tick, 1m, found verify": {want: reason.SaveLate},
		"does save, later, tick, 1m, saved, found verify, preempted":   {want: reason.SaveLate},
		"does save, saved, stale verify, later, tick":                  {want: reason.SaveIncomplete},
		"does save, saved, torn verify, later, tick":                   {want: reason.SaveIncomplete},
		"does save, saved, later, tick":                                {want: reason.SaveIncomplete},
		"does save, saved, torn verify, preempted, a lost":             {want: reason.SaveIncomplete},
		"does save, saved":                 {w: bare, want: reason.SaveIncomplete},
		"does save, later, tick":           {want: reason.SaveUnanswered},
		"does save, refused":               {want: reason.SaveRefused},
		"permission save":                  {want: reason.SaveUndelivered},
		"busy save, later, tick":           {want: reason.SaveUndelivered},
		"later, tick":                      {want: reason.SaveUndelivered},
		"tick":                             {p: forbids(policy.RequestCheckpoint), want: reason.SaveForbidden},
		"tick, tick":                       {w: crewless, want: reason.SaveUnheard},
		"does save, a unhealthy":           {want: reason.SaveOvertaken},
		"does save, preempted, a lost":     {want: reason.SaveOvertaken},
		"does save, finished, its verdict": {want: reason.SaveOvertaken},
	} {
		n := newStory(t, true, "a")
		if c.p != nil {
			c.p(&n.p)
		}
		if c.w != nil {
			c.w(&n.w)
		}
		n.goes("a log ongoing, " + steps)
		var shown view.Save
		if w := n.w.Shown(n.now); w.Incident != nil {
			shown = w.Incident.Save
		} else {
			shown = w.Closed.Save
		}
		says := c.want != reason.SaveVerified && c.want != reason.SaveLate && c.want != reason.SaveOvertaken
		if shown.Result != c.want || (shown.Failed != "") != says {
			t.Errorf("%s: shown is %+v, want %q:\n%s", steps, shown, c.want, n.tale())
		}
	}
}

// TestWhatIsKnownOfASaveIsKept: its step is the one that the training has to pass now, and nobody asks for it again.
func TestWhatIsKnownOfASaveIsKept(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.goes("a log ongoing, does save, later, tick, saved, found verify")
	in, saved := n.w.Incident, n.w.Training.Saved
	if in.Status.Label != view.Window || !in.Save.Found.At.Equal(saved.At) || saved.Bytes != 3<<30 || in.Baseline != 48200 || n.isWanted(events.ActionVerify) {
		t.Errorf("it stands at %s with %+v, saved is %+v, and the baseline %d", in.Status.Label, in.Save, saved, in.Baseline)
	}
	if !strings.Contains(n.tale(), "checkpoint 48,200 is complete: 3.0 GiB or more, 20 s old") {
		t.Error(n.tale())
	}
}

// TestALateSaveThatIsTornIsNotLookedForForEver, and it costs nobody a call at night: the maintenance comes all the same.
func TestALateSaveThatIsTornIsNotLookedForForEver(t *testing.T) {
	t.Parallel()
	n, looked := newStory(t, true, "a"), 0
	n.goes("a log ongoing, does save, later, tick, saved")
	for range 120 {
		n.passes(time.Minute)
		if n.isWanted(events.ActionVerify) && n.w.Effects[0].Stage() == view.StageWanted {
			n.goes("torn verify")
			looked++
		}
	}
	save := n.w.Shown(n.now).Incident.Save
	if got := n.stands(nil); got != "window" || n.isWanted(events.ActionVerify) || looked > int(bounds.CheckFor/bounds.LookEvery) || !strings.HasSuffix(save.Failed, "torn") {
		t.Errorf("after two hours it stands at %s, and was looked for %d times: %s\n%s", got, looked, save.Failed, n.tale())
	}
}
