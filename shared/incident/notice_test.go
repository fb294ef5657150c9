package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
)

// TestNoticesOfAllWaysAreOne: the API, a worker's log and a machine's metadata tell one maintenance, and none tells all that the others do.
func TestNoticesOfAllWaysAreOne(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		n, requests := newStory(t, true, "a"), 0
		n.p.Switches.EarlyMaintenance = policy.No
		for i, full := range []events.Notice{window(events.NoticePending, true, 2*time.Hour), window(events.NoticeOngoing, true, 2*time.Hour)} {
			full.LatestWindowStart = start.Add(4 * time.Hour)
			bare := full
			bare.WindowEnd, bare.LatestWindowStart = time.Time{}, time.Time{}
			n.now = start.Add(time.Duration(i) * 2 * time.Hour)
			for _, way := range order {
				n.later(10*time.Second).notes(way == 0, []events.Notice{full, bare, {Status: full.Status}}[way])
				requests += len(n.sent)
			}
			if got := n.w.Slices[0].Notice; !got.Equal(full) || requests != i || (n.w.Incident != nil) != (i == 1) {
				t.Fatalf("%v: known is %+v, and %d calls are asked for:\n%s", order, got, requests, n.tale())
			}
		}
	}
}

// TestANoticeThatCouldNotBeReadIsNotGone: the reading of the slice succeeds, that of what is announced does not.
func TestANoticeThatCouldNotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	for unread, want := range map[bool]events.NoticeStatus{true: events.NoticePending, false: events.NoticeGone} {
		n := newStory(t, true, "a")
		n.goes("a shows pending, 10s")
		n.reads("a", evidence.Ready, func(e *evidence.Read) { e.NoticeUnread = unread })
		if got := n.w.Slices[0].Notice.Status; got != want {
			t.Errorf("unread %v: it is %s, want %s", unread, got, want)
		}
	}
}

// TestANoticeThatIsShownForEverIsWaitedForOnce: the slice was broken when it would have begun. Nobody is asked to save for it again and again.
func TestANoticeThatIsShownForEverIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	n, opened := newStory(t, false, "a"), map[string]bool{}
	notice := window(events.NoticePending, false, time.Hour)
	for n.now.Before(start.Add(48 * time.Hour)) {
		n.now = n.now.Add(10 * time.Minute)
		n.announces("a", notice).reads("a", evidence.Ready, func(e *evidence.Read) { e.Notice = &notice })
		n.goes("steps, tick")
		if n.w.Incident != nil {
			opened[n.w.Incident.ID] = true
		}
	}
	if len(opened) != 1 || n.w.Incident != nil || !n.w.Due().IsZero() {
		t.Errorf("for one window there are %v, and at %s something is due:\n%s", opened, n.w.Due(), n.tale())
	}
}

// TestSilenceIsToldWhereItProvesSomething, in quiet times and at the opening of the incident.
func TestSilenceIsToldWhereItProvesSomething(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Hour)
	for name, c := range map[string]struct {
		but          func(*story)
		seen, looked time.Time
		want         string
	}{
		"it wrote just now":                          {seen: now.Add(-time.Minute)},
		"it wrote just now, and reads the bucket":    {seen: now.Add(-time.Minute), looked: now.Add(-2 * time.Minute)},
		"it wrote just now, and cannot read it":      {seen: now.Add(-time.Minute), looked: start, want: "the crew cannot read what is left beside the checkpoints, for 59 m 0 s by now"},
		"it wrote hours ago":                         {seen: start.Add(-time.Hour), looked: start.Add(-2 * time.Hour), want: "ago for the last time"},
		"it wrote hours ago, and a line came":        {but: func(n *story) { n.w.Training.StepAt = now.Add(-time.Minute) }, seen: start.Add(-time.Hour)},
		"nothing can be read":                        {},
		"there never was one":                        {but: func(n *story) { n.with(crewless) }, want: "no crew has been heard that could answer"},
		"there never was one, and none is asked for": {but: func(n *story) { n.with(crewless).p.Switches = policy.Switches{} }},
	} {
		n := newStory(t, true, "a")
		n.p.Switches.EarlyMaintenance = policy.No
		if c.but != nil {
			c.but(n)
		}
		n.goes("a log movable, tick")
		epoch := n.w.Epoch
		n.now = now
		n.give(evidence.Beat{Origin: n.reading(), Slice: "a", Incarnation: n.w.Slices[0].Incarnation, Seen: c.seen, Looked: c.looked})
		shown := n.w.Shown(now).Slices[0].LastNotice
		if !strings.Contains(shown.Deaf, c.want) || (shown.Deaf == "") != (c.want == "") || n.w.Incident != nil || len(n.sent) > 0 || n.w.Epoch != epoch {
			t.Errorf("%s: shown is %q, want %q; asked for is %q", name, shown.Deaf, c.want, n.sent)
		}
		n.now = shown.Due
		if n.goes("tick"); strings.Contains(n.tale(), "a request to save may not") != (c.want != "") {
			t.Errorf("%s: at the time of the save it tells\n%s", name, n.tale())
		}
	}
}

// TestMaintenanceThatIsOverOpensNothing, though word of it comes late. Where it still goes on, the next reading opens an incident.
func TestMaintenanceThatIsOverOpensNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		inAPI bool
		opens bool
	}{
		"from before the end": {-time.Minute, false, false}, "at the end": {0, false, false}, "from after the end": {time.Minute, false, true},
		"read of the API before the end": {-time.Minute, true, false}, "read of the API after the end": {time.Minute, true, true},
	} {
		n := newStory(t, true, "a").goes("a shows pending")
		n.w.Ended, n.now = start.Add(2*time.Minute), start.Add(2*time.Hour)
		n.give(evidence.Noticed{
			Origin: evidence.Origin{ID: "late", Time: n.w.Ended.Add(c.after), Rank: events.RankAudit}, Slice: "a", Incarnation: n.w.Slices[0].Incarnation,
			Notice: notices["ongoing"], InAPI: c.inAPI, Text: "unscheduled maintenance of worker 0 is under way",
		})
		if opened := n.w.Incident != nil; opened != c.opens || len(n.sent) > 0 != c.opens {
			t.Errorf("%s: it opens an incident %v, want %v; asked for is %q", name, opened, c.opens, n.sent)
		}
		n.later(time.Minute).announces("a", notices["ongoing"]).goes("tick").opens(true)
	}
}

// TestTheDateOfTheLastMaintenanceExplains what nothing better explains, of that life and of that time.
func TestTheDateOfTheLastMaintenanceExplains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps  string
		before time.Duration
		want   events.Cause
	}{
		"a training that was ended":                  {"exit 139", 2 * time.Minute, events.CauseMaintenance},
		"one that gave up, and was charged for it":   {"exit 139, gave up, its verdict, does restart", 2 * time.Minute, events.CauseMaintenance},
		"a slice that is not usable":                 {"a unhealthy, 6m", time.Minute, events.CauseMaintenance},
		"an incident that is over":                   {"exit 139, started, steps", 2 * time.Minute, events.CauseMaintenance},
		"maintenance of an hour before explains not": {"exit 139", time.Hour, events.CauseCrash},
		"nor does that of a life before":             {"exit 139", 400 * time.Hour, events.CauseCrash},
		"nor that beside what is explained":          {"preempted, a lost", 2 * time.Minute, events.CausePreemption},
	} {
		n := newStory(t, false, "a")
		n.goes(c.steps)
		date := func(e *evidence.Read) { e.Maintained = n.about().Troubles[0].At.Add(-c.before) }
		n.reads("a", n.w.Slices[0].Condition, date)
		if got := n.about().Cause(); got != c.want {
			t.Errorf("%s: it is put down to %s, want %s:\n%s", name, got, c.want, n.tale())
		}
		if c.want == events.CauseMaintenance && n.w.Spent(events.ActionRestart) != 0 {
			t.Errorf("%s: the training is charged for it: %+v", name, n.w.Charges)
		}
		troubles := len(n.about().Troubles)
		if n.reads("a", n.w.Slices[0].Condition, date); len(n.about().Troubles) != troubles {
			t.Errorf("%s: it is told again with the next reading", name)
		}
	}
}

// TestMaintenanceBesideAStoppedSliceWaits until that runs again. Then it opens one incident, unless something came after its last word.
func TestMaintenanceBesideAStoppedSliceWaits(t *testing.T) {
	t.Parallel()
	const pending, ongoing = events.NoticePending, events.NoticeOngoing
	for name, c := range map[string]struct {
		status events.NoticeStatus
		policy string
		change func(*story)
		want   string
	}{
		"announced":               {pending, "everything", nil, "saving: save"},
		"announced, and watched":  {pending, "watch", nil, "watching"},
		"under way":               {ongoing, "everything", nil, "saving: save"},
		"an incident has ended":   {ongoing, "everything", func(n *story) { n.w.Ended = n.now }, "peace"},
		"the training does steps": {ongoing, "everything", func(n *story) { n.w.Training.StepAt = n.now }, "peace"},
		"a person cancelled it":   {ongoing, "everything", func(n *story) { n.w.Slices[0].Notice.Declined = n.now }, "peace"},
		"its window is long over": {ongoing, "everything", func(n *story) { n.w.Slices[0].Notice.WindowEnd = n.now.Add(-bounds.HealFor) }, "peace"},
		"the slice is gone":       {ongoing, "everything", func(n *story) { n.reads("a", evidence.Gone) }, "peace"},
	} {
		n := multi(t, false).under(c.policy)
		b := &n.w.Slices[1]
		b.Condition, b.State, b.Since, b.Stop.By, b.Stop.At = evidence.Stopped, "STOPPED", start.Add(-time.Hour), ann.By, start.Add(-time.Hour)
		epoch, notice := n.w.Epoch, window(c.status, false, 30*time.Minute)
		for range 25 {
			n.announces("a", notice).goes("stopped for, 1m")
		}
		if n.about() != nil || n.w.Epoch != epoch {
			t.Fatalf("%s: beside what its owner stopped, it opens one:\n%s", name, n.tale())
		}
		if c.change != nil {
			c.change(n)
		}
		if n.goes("b ready"); n.stands(n.play("1m")) != c.want {
			t.Fatalf("%s: b runs again, and it stands at %q, want %q:\n%s", name, n.stands(nil), c.want, n.tale())
		}
		for range 300 { // its incident ends, and what still stands opens no other one
			n.announces("a", notice).goes("1m")
		}
		if in := n.w.Incident; n.w.Epoch > epoch+30 || in != nil && in.Opened.Sub(start) > time.Hour {
			t.Errorf("%s: it opens one after the other, by epoch %d:\n%s", name, n.w.Epoch, n.tale())
		}
	}
}
