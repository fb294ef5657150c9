package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
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

// history is what happens, each step with where the story stands after it; nothing says that this does not matter.
type history struct {
	p     func(*policy.Policy)
	w     func(*incident.Workload)
	names []string
	steps []string
}

func forbids(sw ...policy.Switch) func(*policy.Policy) {
	return func(p *policy.Policy) { *p = p.Without("the test", sw...) }
}

func asks(p *policy.Policy) {
	p.Switches.EarlyMaintenance, p.Switches.RequestCheckpoint = policy.Ask, policy.Ask
}

func chain(parts ...[]string) []string { return slices.Concat(parts...) }

var maintenances = map[string]history{
	"a save before the window, and the maintenance passes": {steps: chain([]string{
		"a log pending", "peace", "109m", "peace", "1m", "saving: save",
	}, verified, []string{
		"1s", "window", "a log ongoing", "window", "a unhealthy", "window", "a log withdrawn", "window", "a ready", "resuming", "1m", "resuming", "steps", "resumed",
	})},
	"it is started early, right after the save": {steps: chain([]string{
		"a log movable", "peace", "1m", "saving: save",
	}, verified, []string{
		"does maintain a", "window", "1h", "window", "a unhealthy", "window", "a ready", "resuming",
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
	"the crew refuses, and is asked again right before the window": {steps: []string{
		"a log movable", "peace", "1m", "saving: save", "does save", "saving", "refused", "window", "46h", "window", "110m", "saving: save",
	}},
	"the API does not let it start, so it comes in its window": {steps: chain([]string{"a log movable", "peace", "1m", "saving: save"}, verified, []string{
		"permission maintain a", "window", "1h", "window",
	})},
	"the API is busy, and is asked again": {steps: chain([]string{"a log movable", "peace", "1m", "saving: save"}, verified, []string{
		"busy maintain a", "maintaining", "2m", "maintaining: maintain a", "does maintain a", "window",
	})},
	"no crew could save, so nobody is asked": {
		w: func(w *incident.Workload) { w.Training.Seen = time.Time{} }, steps: []string{"a log movable", "peace", "47h49m", "peace", "1m", "window"},
	},
	"the policy allows no save": {p: forbids(policy.RequestCheckpoint), steps: []string{"a log movable", "peace", "47h50m", "window"}},
	"the policy allows nothing": {p: func(p *policy.Policy) { p.Switches = policy.Switches{} }, steps: []string{"a log pending", "peace", "110m", "watching", "a log withdrawn", "observed"}},
	"a person is asked while there is time, and their yes covers the save": {p: asks, steps: chain([]string{
		"a log movable", "peace", "1m", "approving", "24h", "approving", "approved", "saving: save",
	}, verified, []string{"does maintain a", "window"})},
	"nobody says yes, so it is saved before the window": {
		p: func(p *policy.Policy) { p.Switches.EarlyMaintenance = policy.Ask }, steps: []string{"a log movable", "peace", "47h", "approving", "50m", "saving: save"},
	},
	"all slices are started together, once all have their notices": {names: []string{"a", "b"}, steps: chain([]string{
		"a log movable", "peace", "9m", "peace", "b log movable", "peace", "1m", "saving: save",
	}, verified, []string{
		"does maintain a", "maintaining", "a unhealthy", "maintaining", "does maintain b", "window",
	})},
	"of a slice that never gets a notice nobody waits for it longer": {names: []string{"a", "b"}, steps: []string{
		"a log movable", "peace", "10m", "saving: save",
	}},
	"one of two was refused before anything began, so both come in their windows": {names: []string{"a", "b"}, steps: chain([]string{
		"a log movable", "peace", "b log movable", "peace", "1m", "saving: save",
	}, verified, []string{"permission maintain a", "window"})},
	"one is over, and the other is still to come": {names: []string{"a", "b"}, steps: []string{
		"a log pending", "peace", "b log moved", "peace", "110m", "saving: save", "a log ongoing", "saving", "a unhealthy", "window", "a log withdrawn", "window",
		"a ready", "resuming",
	}},
	"a machine is lost in the middle, and joins": {names: []string{"a", "b"}, steps: []string{
		"b log ongoing", "saving: save", "b unhealthy", "window", "a lost", "deleting: delete a",
	}, w: func(w *incident.Workload) {
		w.Slices[0].Reclaimable, w.Slices[1].Reclaimable = true, true
	}},
	"lines alone have it saved once, and the API once more": {steps: []string{
		"a says pending", "peace", "110m", "saving: save", "a says withdrawn", "withdrawn", "a says moved", "withdrawn", "24h", "withdrawn",
		"a shows moved", "peace", "1m", "saving: save",
	}},
	"it begins without a notice": {steps: []string{"a log ongoing", "saving: save", "a log ongoing", "saving", "6m", "window"}},
	"it never ends":              {steps: []string{"a shows ongoing", "saving: save", "a unhealthy", "window", "9h", "window", "1h", "deleting: delete a"}},
	"a person lets it come":      {steps: []string{"a log pending", "peace", "110m", "saving: save", "cancelled", "released", "a log ongoing", "released", "6h", "released"}},
	"a person let it come, and its window moves": {steps: []string{
		"a log pending", "peace", "110m", "saving: save", "cancelled", "released", "a log moved", "released", "24h", "saving: save",
	}},
	"a planned end is saved for, and replaced": {w: func(w *incident.Workload) { w.Slices[0].Ends = start.Add(2 * time.Hour) }, steps: chain([]string{
		"109m", "peace", "1m", "saving: save",
	}, verified, []string{"20m", "window", "a lost", "deleting: delete a"})},
	"an end comes before maintenance": {w: func(w *incident.Workload) { w.Slices[0].Ends = start.Add(3 * time.Hour) }, steps: []string{
		"a log moved", "peace", "169m", "peace", "1m", "saving: save",
	}},
	"the policy is tightened while slices are started, and the others come in their windows": {names: []string{"a", "b"}, steps: chain([]string{
		"a log movable", "peace", "b log movable", "peace", "1m", "saving: save",
	}, verified, []string{
		"does maintain a", "maintaining", "early maintenance is forbidden", "window",
	})},
	"maintenance that no reading shows passes with the training": {steps: []string{
		"a log ongoing", "saving: save", "6m", "window", "a log withdrawn", "resuming", "steps", "resumed",
	}},
}

// plays holds where the story stands after each step.
func (c history) plays(t *testing.T) {
	t.Helper()
	names := c.names
	if names == nil {
		names = []string{"a"}
	}
	n := newStory(t, false, names...)
	if c.p != nil {
		c.p(&n.p)
	}
	if c.w != nil {
		c.w(&n.w)
	}
	n.history(c.steps...)
}

// TestMaintenance plays histories of announced maintenance and planned ends.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	for name, c := range maintenances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.plays(t)
		})
	}
}

// TestMaintenanceBeforeItsWindowIsLookedAt: that a machine was stopped for it long before its window is not over because the last reading shows it
// usable.
func TestMaintenanceBeforeItsWindowIsLookedAt(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.play("a log pending")
	n.now = n.now.Add(time.Minute)
	struck := evidence.Interrupted{Origin: n.reading(), Slice: "a", Incarnation: n.w.Slices[0].Incarnation, Cause: events.CauseMaintenance, Text: "worker 0 was stopped"}
	struck.Rank = events.RankAudit
	n.give(struck)
	for i, want := range []string{"looking", "window", "resuming"} {
		if got := n.stands(nil); got != want {
			t.Fatalf("it stands at %s, want %s:\n%s", got, want, n.tale())
		}
		n.play([]string{"a unhealthy", "a ready", "1m"}[i])
	}
}

// TestSavesAreNotAskedForTwice: a save has one ID until its deadline, and the next one another.
func TestSavesAreNotAskedForTwice(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.play("a log movable")
	n.play("1m")
	first, id := n.w.Incident.Save, n.w.Incident.SaveID()
	n.play("30m")
	if n.w.Incident.Save != first {
		t.Errorf("it is another one: %+v, was %+v", n.w.Incident.Save, first)
	}
	n.play("does save")
	n.play("refused")
	n.play("47h40m")
	if next := n.w.Incident.Save; n.w.Incident.SaveID() == id || !next.By.Equal(start.Add(48*time.Hour)) || next.Refused != "" {
		t.Errorf("right before the window it is %+v, was %+v", next, first)
	}
}

// TestAnOldSaveIsMadeAnewBeforeTheStart: what is trained since would be lost.
func TestAnOldSaveIsMadeAnewBeforeTheStart(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	for _, step := range []string{"a log movable", "1m", "does save", "saved", "found verify"} {
		n.play(step)
	}
	r := n.request(events.ActionMaintain, "a")
	n.now = n.now.Add(11 * time.Minute)
	n.give(evidence.Intended{Origin: n.reading(), Request: r, RequestID: "1"})
	if got := n.stands(n.sent); got != "saving: save" {
		t.Errorf("it stands at %s:\n%s", got, n.tale())
	}
}

// TestWhatIsAnnouncedIsShown with the time of the save, and with why a crew may not hear of it.
func TestWhatIsAnnouncedIsShown(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.play("a log pending")
	announced := func() *view.Notice { return n.w.Shown(n.now).Slices[0].LastNotice }
	shown := announced()
	if shown == nil || !shown.Due.Equal(start.Add(110*time.Minute)) || shown.Deaf != "" || shown.Declined || shown.End {
		t.Fatalf("shown is %+v", shown)
	}
	n.now = n.now.Add(time.Hour)
	n.give(evidence.Beat{Origin: n.reading(), Slice: "a", Incarnation: n.w.Slices[0].Incarnation, Seen: start})
	if shown = announced(); !strings.Contains(shown.Deaf, "for the last time") {
		t.Errorf("a crew that is silent is shown as %+v", shown)
	}
}

// TestAPlannedEndIsForeseen: what is asked for once the slice has ended is shown before that.
func TestAPlannedEndIsForeseen(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.w.Slices[0].Ends = start.Add(time.Hour)
	n.passes(55 * time.Minute)
	for _, step := range []string{"does save", "saved", "found verify"} {
		n.play(step)
	}
	if got := n.stands(nil); got != "window" {
		t.Fatalf("before the end it stands at %s:\n%s", got, n.tale())
	}
	plan := n.w.IfAllowed(n.p, evidence.Ticked{Origin: n.reading()}, n.now)
	if len(plan.Calls) == 0 || plan.Calls[0].When != "once it has ended" {
		t.Errorf("foreseen is %+v", plan)
	}
}

// TestAPauseBeforeTheStartIsSavedAnew: once nothing holds the calls, the training saves again, and then its maintenance is started.
func TestAPauseBeforeTheStartIsSavedAnew(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	for _, step := range []string{"a log movable", "1m", "does save", "saved", "found verify"} {
		n.play(step)
	}
	first := n.w.Incident.SaveID()
	for range 9 * 60 {
		n.passes(time.Minute)
		for _, x := range n.w.Effects {
			if !x.Dropped() && x.Begun.IsZero() && x.Retry.IsZero() {
				n.give(evidence.Held{Origin: n.reading(), Request: n.request(x.Action, x.Slice), Code: reason.CodePaused, Why: "paused by ann"})
			}
		}
	}
	if got := n.stands(nil); got != "saving" || n.w.Incident.SaveID() == first {
		t.Fatalf("after the pause it stands at %s:\n%s", got, n.tale())
	}
	n.passes(2 * time.Minute)
	for _, step := range []string{"does save", "saved", "found verify"} {
		n.play(step)
	}
	if got := n.stands(n.play("does maintain a")); got != "window" {
		t.Errorf("after the second save it stands at %s:\n%s", got, n.tale())
	}
}
