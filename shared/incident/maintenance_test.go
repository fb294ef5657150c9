package incident_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// window is maintenance in two hours, whose save is due ten minutes before.
func window(status events.NoticeStatus, early bool, in time.Duration) events.Notice {
	return events.Notice{Status: status, CanReschedule: early, WindowStart: start.Add(in), WindowEnd: start.Add(in + 4*time.Hour)}
}

// notices are words of maintenance.
var notices = map[string]events.Notice{
	"pending": window(events.NoticePending, false, 2*time.Hour), "movable": window(events.NoticePending, true, 48*time.Hour),
	"moved": window(events.NoticePending, false, 26*time.Hour), "ongoing": window(events.NoticeOngoing, false, 2*time.Hour),
	"begins": window(events.NoticeOngoing, true, 48*time.Hour), "withdrawn": {Status: events.NoticeGone},
}

// verified brings a verified save from the request on.
var verified = []string{"does save", "", "saved", "", "found verify", ""}

// history is a story of slice a, unless it says otherwise, by its steps, each with where it stands after it; nothing says that this does not matter.
type history struct {
	policy string
	p      func(*policy.Policy)
	spot   bool
	names  []string
	w      func(*incident.Workload)
	steps  []string
}

// allowing changes the policy.
func (n *story) allowing(change func(*policy.Policy)) *story {
	if change != nil {
		change(&n.p)
	}
	return n
}

// playAll tells every story.
func playAll(t *testing.T, all map[string]history) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.names == nil {
				c.names = []string{"a"}
			}
			newStory(t, c.spot, c.names...).under(cmp.Or(c.policy, "everything")).allowing(c.p).with(c.w).history(c.steps...)
		})
	}
}

func forbids(sw ...policy.Switch) func(*policy.Policy) {
	return func(p *policy.Policy) { *p = p.Without("the test", sw...) }
}

func chain(parts ...[]string) []string { return slices.Concat(parts...) }

var (
	both   = []string{"a", "b"}
	early  = chain([]string{"a log movable", "peace", "1m", "saving: save"}, verified)
	early2 = chain([]string{"b log movable", "peace"}, early)
	denied = []string{"a log movable", "peace", "1m", "saving: save", "do", "saving", "refused", "window", "1h", "window"}
)

// TestMaintenance plays histories of announced maintenance, which may be started before its window where it is movable.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	playAll(t, map[string]history{
		"a save before the window, and the maintenance passes": {steps: chain([]string{
			"a log pending", "peace", "109m", "peace", "1m", "saving: save",
		}, verified, []string{
			"1s", "window", "a log ongoing", "window", "a unhealthy", "window", "a log withdrawn", "window", "a ready", "resuming", "1m", "resuming", "steps", "resumed",
		})},
		"it is started early though the save takes long to be complete": {steps: []string{
			"a log movable", "peace", "1m", "saving: save", "does save", "", "saved", "saving: verify", "16m", "", "found verify", "maintaining: maintain a", "5m", "maintaining",
		}},
		"what is only announced and withdrawn ends so": {steps: []string{
			"a log movable", "peace", "1m", "saving: save", "a log withdrawn", "withdrawn", "1h", "withdrawn",
		}},
		"it is withdrawn before its save, and announced again": {steps: []string{
			"a log pending", "peace", "10m", "peace", "a log withdrawn", "peace", "2h", "peace", "a log moved", "peace", "23h40m", "saving: save",
		}},
		"its window moves away after the save: there is another one before it": {steps: chain([]string{
			"a log pending", "peace", "110m", "saving: save",
		}, verified, []string{"a log moved", "window", "24h", "saving: save"})},
		"the API does not let it start, so it comes in its window": {steps: chain(early, []string{"permission maintain", "window", "47h45m", "window", "5m", "saving: save"})},
		"the API is busy, and is asked again":                      {steps: chain(early, []string{"busy maintain a", "maintaining", "2m", "maintaining: maintain a", "does maintain a", "window"})},
		"no crew could save, so nobody is asked":                   {w: crewless, steps: []string{"a log movable", "peace", "47h49m", "peace", "1m", "window"}},
		"nobody answers":                                           {steps: []string{"a log movable", "peace", "1m", "saving: save", "do", "", "47h48m", "saving", "1m", "saving: save"}},
		"nobody ever says yes":                                     {policy: "ask", steps: []string{"a log movable", "peace", "48h", "approving"}},
		"nobody says yes, so it is saved before the window": {
			p: func(p *policy.Policy) { p.Switches.EarlyMaintenance = policy.Ask }, steps: []string{"a log movable", "peace", "47h", "approving", "50m", "saving: save"},
		},
		"the policy allows nothing": {policy: "watch", steps: []string{"a log pending", "peace", "110m", "watching", "a log withdrawn", "observed"}},
		"the slice is lost meanwhile": {steps: chain(denied, []string{
			"a lost", "healing", "3h59m", "healing", "a lost", "healing", "2m", "deleting: delete a",
		})},
		"the slice does not come back":                                   {steps: chain(denied, []string{"a unhealthy", "window", "3h59m", "window", "2m", "deleting: delete a"})},
		"the training crashes meanwhile":                                 {steps: chain(denied, []string{"exit 139", "", "gave up", "", "its verdict", "restarting: restart a=7711"})},
		"of a slice that never gets a notice nobody waits for it longer": {names: both, steps: []string{"a log movable", "peace", "10m", "saving: save"}},
		"one of them cannot be used for a moment": {names: both, steps: []string{
			"b log movable", "peace", "a log movable", "peace", "b unhealthy", "peace", "1m", "peace", "b ready", "peace", "1m", "saving: save",
		}},
		"one has begun, and the other follows": {names: both, steps: chain(early2, []string{
			"does maintain a", "maintaining", "not_in_state maintain b", "maintaining", "a unhealthy", "maintaining", "2m", "maintaining: maintain b",
			"does maintain b", "window",
		})},
		"one has begun, and the other is refused": {names: both, steps: chain(early2, []string{
			"does maintain a", "maintaining", "permission maintain b", "window", "3h59m", "window", "2m", "restarting: restart a=7711 b=7760",
		})},
		"one has begun, and the other is not answered": {names: both, steps: chain(early2, []string{
			"does maintain a", "maintaining", "not_in_state maintain b", "maintaining", "a unhealthy", "maintaining", "2m", "maintaining: maintain b",
			"intend maintain b", "maintaining", "15m", "window",
		})},
		"one was refused before anything began, so both come in their windows": {names: both, steps: chain(early2, []string{"permission maintain a", "window"})},
		"the policy is tightened while slices are started, and the others come in their windows": {names: both, steps: chain(early2, []string{
			"does maintain a", "maintaining", "early maintenance is forbidden", "window",
		})},
		"lines alone have it saved once, and the API once more": {steps: []string{
			"a says pending", "peace", "110m", "saving: save", "a says withdrawn", "withdrawn", "a says moved", "withdrawn", "24h", "withdrawn",
			"a shows moved", "peace", "1m", "saving: save",
		}},
		"it begins without a notice": {steps: []string{"a log ongoing", "saving: save", "a log ongoing", "saving", "6m", "window"}},
		"it never ends":              {steps: []string{"a shows ongoing", "saving: save", "a unhealthy", "window", "9h", "window", "1h", "deleting: delete a"}},
		"a person let it come, and its window moves": {steps: []string{
			"a log pending", "peace", "110m", "saving: save", "cancelled", "released", "a log moved", "released", "24h", "saving: save",
		}},
		"a person lets a planned end come": {w: ending, steps: []string{"109m", "peace", "1m", "saving: save", "cancelled", "released", "5m", "released"}},
		"maintenance that no reading shows passes with the training": {steps: []string{
			"a log ongoing", "saving: save", "6m", "window", "a log withdrawn", "resuming", "steps", "resumed",
		}},
		"maintenance of a slice that its owner has is nobody's": {names: both, w: func(w *incident.Workload) { w.Slices[1].Released = start }, steps: []string{
			"a log pending", "peace", "110m", "saving: save", "b log ongoing", "saving", "b log withdrawn", "saving",
		}},
		"a machine is stopped for it long before its window": {steps: []string{
			"a log pending", "peace", "1m", "peace", "a stopped for", "looking", "a unhealthy", "window", "a ready", "resuming",
		}},
	})
}

// TestSavesAreNotAskedForTwice: a save has one ID until its deadline, and the next one another.
func TestSavesAreNotAskedForTwice(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a").goes("a log movable, 1m")
	first, id := n.w.Incident.Save, n.w.Incident.SaveID()
	if n.goes("30m"); n.w.Incident.Save != first {
		t.Errorf("it is another one: %+v, was %+v", n.w.Incident.Save, first)
	}
	n.goes("does save, refused, 47h40m")
	if next := n.w.Incident.Save; n.w.Incident.SaveID() == id || !next.By.Equal(start.Add(48*time.Hour)) || next.Refused != "" {
		t.Errorf("right before the window it is %+v, was %+v", next, first)
	}
}

// TestAnOldSaveIsMadeAnewBeforeTheStart: what is trained since would be lost.
func TestAnOldSaveIsMadeAnewBeforeTheStart(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a").goes("a log movable, 1m, does save, saved, found verify")
	n.later(11 * time.Minute).intends(n.request(events.ActionMaintain, "a")).wants("save")
}

// TestAPauseBeforeTheStartIsSavedAnew: once nothing holds the calls, the training saves again, and then its maintenance is started.
func TestAPauseBeforeTheStartIsSavedAnew(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a").goes("a log movable, 1m, does save, saved, found verify")
	first := n.w.Incident.SaveID()
	for range 9 * 60 {
		n.passes(time.Minute)
		for _, x := range n.w.Effects {
			if !x.Dropped() && x.Begun.IsZero() && x.Retry.IsZero() {
				n.answers("held", n.request(x.Action, x.Slice))
			}
		}
	}
	if n.is("saving"); n.w.Incident.SaveID() == first {
		t.Errorf("after the pause it is the same save:\n%s", n.tale())
	}
	n.goes("2m, does save, saved, found verify, does maintain a").is("window")
}

// TestALongNoticeIsNotSatOut where it may be started early: of all slices, and of a Job only where somebody may bring it back.
func TestALongNoticeIsNotSatOut(t *testing.T) {
	t.Parallel()
	const early, alone, late = 0, bounds.NoticeFor, 48*time.Hour - 10*time.Minute
	movable, fixed := notices["movable"], window(events.NoticePending, false, 48*time.Hour)
	levels := func(spot, other policy.Level) func(*policy.Policy) {
		return func(p *policy.Policy) { p.Switches.Recreate, p.Switches.RecreateNonSpot = spot, other }
	}
	spot := func(w *incident.Workload) { w.Slices[0].Capacity = events.Spot }
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
		n := newStory(t, false, []string{"a", "b"}[:max(len(c.notices), 1)]...)
		if c.job {
			n, c.notices = newJob(t), one
		}
		n.allowing(c.p).with(c.w)
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
		if n.passes(time.Minute); n.stands(n.sent) != "saving: save" {
			t.Errorf("%s: its save is not asked for after %v:\n%s", name, c.save, n.tale())
		}
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
