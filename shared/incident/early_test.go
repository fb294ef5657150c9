package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestALongNoticeIsNotSatOut where it may be started early: of all slices, and of a Job only where somebody may bring it back.
func TestALongNoticeIsNotSatOut(t *testing.T) {
	t.Parallel()
	const early, alone, late = 0, bounds.NoticeFor, 48*time.Hour - 10*time.Minute
	movable, fixed := notices["movable"], window(events.NoticePending, false, 48*time.Hour)
	levels := func(spot, other policy.Level) func(*policy.Policy) {
		return func(p *policy.Policy) { p.Switches.Recreate, p.Switches.RecreateNonSpot = spot, other }
	}
	spot := func(w *incident.Workload) { w.Slices[0].Reclaimable = true }
	one := []events.Notice{movable}
	for name, c := range map[string]struct {
		job     bool
		notices []events.Notice
		p       func(*policy.Policy)
		w       func(*incident.Workload)
		save    time.Duration
	}{
		"it may":                              {notices: one, save: early},
		"the policy says no":                  {notices: one, p: forbids(policy.EarlyMaintenance), save: late},
		"it cannot be moved":                  {notices: []events.Notice{fixed}, save: late},
		"the slice is too small":              {notices: one, w: func(w *incident.Workload) { w.Slices[0].Accelerator = "v6e-4" }, save: late},
		"nobody knows its size":               {notices: one, w: func(w *incident.Workload) { w.Slices[0].Accelerator = "" }, save: late},
		"without a directory none is sure":    {notices: one, w: bare, save: late},
		"both are announced":                  {notices: []events.Notice{movable, movable}, save: early},
		"one later than the other":            {notices: []events.Notice{movable, window(events.NoticePending, true, 72*time.Hour)}, save: early},
		"one alone is waited for":             {notices: []events.Notice{movable, {}}, save: alone},
		"one of them cannot be moved":         {notices: []events.Notice{movable, fixed}, save: late},
		"one of them is too small":            {notices: []events.Notice{movable, movable}, w: func(w *incident.Workload) { w.Slices[1].Accelerator = "v5litepod-4" }, save: late},
		"a Job may be replaced":               {job: true, p: levels(policy.No, policy.Yes), save: early},
		"a Spot Job may be":                   {job: true, p: levels(policy.Yes, policy.No), w: spot, save: early},
		"the policy forbids it":               {job: true, p: levels(policy.Yes, policy.No), save: late},
		"a person would be asked about a Job": {job: true, p: levels(policy.Yes, policy.Ask), save: late},
		"a Spot Job may not be":               {job: true, p: levels(policy.No, policy.Yes), w: spot, save: late},
		"something else made the Job":         {job: true, w: func(w *incident.Workload) { w.Slices[0].Kept = "a CronJob made it" }, save: late},
		"nobody has read its manifest":        {job: true, w: func(w *incident.Workload) { w.Slices[0].Spec = "" }, save: late},
		"its replacements are spent":          {job: true, w: spent(events.ActionDelete), save: late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newStory(t, false, []string{"a", "b"}[:max(len(c.notices), 1)]...)
			if c.job {
				n, c.notices = newJob(t), one
			}
			if c.p != nil {
				c.p(&n.p)
			}
			if c.w != nil {
				c.w(&n.w)
			}
			for i, notice := range c.notices {
				if notice.Status != "" {
					n.announces(n.w.Slices[i].Name, notice)
				}
			}
			if c.save > early {
				n.now = start.Add(c.save - 2*time.Minute)
				n.passes(time.Minute)
				n.wants()
			}
			n.passes(time.Minute)
			n.wants("save")
		})
	}
}

// TestAPolicyThatCanBeReadAgainStartsItEarly, and no sooner.
func TestAPolicyThatCanBeReadAgainStartsItEarly(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a").under("unreadable")
	n.history("a log movable", "peace", "29m", "peace")
	n.under("everything").history("1m", "saving: save")
}

// TestAJobThatStaysAwayByNowIsNotMaintained: what was true at the request need not be true at the call.
func TestAJobThatStaysAwayByNowIsNotMaintained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		but  func(*story)
		want string
	}{
		"it is as it was":          {func(*story) {}, "maintaining"},
		"the policy forbids it":    {func(n *story) { n.p.Switches.RecreateNonSpot = policy.No }, "window"},
		"something else took over": {func(n *story) { n.w.Slices[0].Kept = "a queue holds it" }, "window"},
	} {
		n := newJob(t)
		n.announces("llama-8b", notices["movable"]).goes("1m, do, saved, found verify")
		if got := n.stands(n.sent); got != "maintaining: maintain llama-8b" {
			t.Fatalf("%s: it stands at %s:\n%s", name, got, n.tale())
		}
		if c.but(n); n.stands(n.play("intend maintain")) != c.want {
			t.Errorf("%s: it stands at %s, want %s", name, n.stands(nil), c.want)
		}
	}
}

// TestAnEarlyStartEndsWithItsSwitch: a policy that was tightened once one of two was started binds the call for the other, which comes in its window.
func TestAnEarlyStartEndsWithItsSwitch(t *testing.T) {
	t.Parallel()
	for level, begins := range map[policy.Level]bool{policy.Yes: true, policy.No: false} {
		n := newStory(t, false, "a", "b").under("everything").goes("a log movable, b log movable, 1m, does save, saved, found verify, does maintain a")
		r := n.request(events.ActionMaintain, "b")
		n.p.Switches.EarlyMaintenance = level
		n.intends(r)
		if x := n.effect(events.ActionMaintain, "b"); begins != (x >= 0 && !n.w.Effects[x].Begun.IsZero()) {
			t.Errorf("%s: want it begun %v:\n%s", level, begins, n.tale())
		}
	}
}
