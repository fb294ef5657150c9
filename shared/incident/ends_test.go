package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// ending has each slice end two hours after the start, as planned.
func ending(w *incident.Workload) {
	for i := range w.Slices {
		w.Slices[i].Ends = start.Add(2 * time.Hour)
	}
}

// announced is what is announced for a slice.
func (n *story) announced(slice string) incident.Notice {
	n.Helper()
	notice := n.w.Notice(slice)
	if notice == nil {
		n.Fatalf("nothing is announced for %s", slice)
	}
	return *notice
}

// TestAPlannedEnd: the save comes the lead before the end, nobody waits for a healing after it, and nobody is charged. What is asked for then is foreseen.
func TestAPlannedEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ policy, shows, want, would, advice string }{
		"lost":                  {policy: "everything", shows: "lost", want: "deleting: delete a"},
		"gone":                  {policy: "everything", shows: "gone", want: "creating: create a"},
		"a person is asked":     {policy: "ask", shows: "lost", want: "approving"},
		"only Spot is replaced": {policy: "spot", shows: "lost", want: "escalated", advice: "allow the switch recreate_non_spot"},
		"watched":               {policy: "watch", shows: "lost", want: "watching", would: "DeleteNode"},
		"watched and gone":      {policy: "watch", shows: "gone", want: "watching", would: "CreateNode"},
	} {
		n := newStory(t, false, "a").under(c.policy).with(ending).goes("109m")
		n.is("peace")
		if a := n.announced("a"); !a.End || !a.WindowStart.Equal(start.Add(2*time.Hour)) {
			t.Fatalf("%s: announced is %+v", name, a)
		}
		saves := n.stands(n.passes(time.Minute)) == "saving: save"
		if in := n.w.Incident; in == nil || in.Cause() != events.CauseEnd || !in.Troubles[0].Announced || saves != (c.policy == "everything" || c.policy == "spot") {
			t.Fatalf("%s: once its save is due:\n%s", name, n.tale())
		}
		if saves {
			n.goes("do, saved, found verify").is("window")
		}
		if plan := n.w.IfAllowed(n.p, evidence.Ticked{Origin: n.reading()}, n.now); c.policy == "everything" && (len(plan.Calls) == 0 || plan.Calls[0].When != "once it has ended") {
			t.Errorf("%s: foreseen is %+v", name, plan)
		}
		if sent := n.passes(12 * time.Minute); len(sent) > 0 {
			t.Fatalf("%s: asked for is %q before the end", name, sent)
		}
		n.goes("read ready") // a machine lives a little longer
		if n.w.Incident == nil || !n.w.Incident.Down.IsZero() {
			t.Fatalf("%s: it is usable past its end:\n%s", name, n.tale())
		}
		if got := n.stands(n.play("read " + c.shows)); got != c.want {
			t.Fatalf("%s: it stands at %s, want %s:\n%s", name, got, c.want, n.tale())
		}
		in := n.about()
		shown := n.w.ShownIncident(*in, n.now)
		if len(in.Troubles) != 1 || in.Troubles[0].Announced || in.Cause() != events.CauseEnd || shown.Cost.ChargedTo != "nobody" || len(n.w.Charges) > 0 {
			t.Errorf("%s: charged to %s is %+v for %+v", name, shown.Cost.ChargedTo, n.w.Charges, in.Troubles)
		}
		if would := strings.Join(shown.WouldHave(), "; "); !strings.Contains(would, c.would) || strings.Contains(would, "brought it back") || !strings.Contains(shown.Advice, c.advice) {
			t.Errorf("%s: it would have %q, and advises %q", name, would, shown.Advice)
		}
	}
}

// TestHealingIsWaitedForUntilThePlannedEnd: what is lost before its planned end may come back, and after it does not.
func TestHealingIsWaitedForUntilThePlannedEnd(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a").with(ending)
	n.history("terminated", "looking", "read lost", "healing")
	n.now = start.Add(2*time.Hour - incident.EndMargin - 2*time.Second)
	n.history("read lost", "healing", "read lost", "deleting: delete a", "intend delete", "deleting")
	if in := n.w.Incident; in.Cause() != events.CauseTerminated || n.w.ShownIncident(*in, n.now).Cost.ChargedTo != "infrastructure" || n.w.Spent(events.ActionDelete) != 1 {
		t.Errorf("charged is %+v for %s", n.w.Charges, in.Cause())
	}
}

// TestAPlannedEndWithoutASave: nobody is charged, also where no budget is left. What was lost before its end did not end as planned.
func TestAPlannedEndWithoutASave(t *testing.T) {
	t.Parallel()
	spot := func(w *incident.Workload) { w.Slices[0].Reclaimable = true }
	for name, c := range map[string]struct {
		change func(*incident.Workload)
		after  time.Duration
		cause  events.Cause
	}{
		"on demand":                     {ending, 0, events.CauseEnd},
		"no replacement is left":        {spent(events.ActionDelete), 0, events.CauseEnd},
		"Spot":                          {spot, 0, events.CauseEnd},
		"Spot, preempted long before":   {spot, -time.Hour, events.CausePreemption},
		"Spot, preempted just before":   {spot, -incident.EndMargin - time.Second, events.CausePreemption},
		"its machines shut down before": {ending, -incident.EndMargin, events.CauseEnd},
		"it was read long after":        {ending, 3 * time.Hour, events.CauseEnd},
	} {
		n := newStory(t, false, "a").with(ending, c.change)
		before := n.w.Spent(events.ActionDelete)
		n.now = start.Add(2*time.Hour + c.after - time.Second)
		if got := n.stands(n.play("read lost")); got != "deleting: delete a" {
			t.Errorf("%s: it stands at %s:\n%s", name, got, n.tale())
			continue
		}
		n.goes("intend delete")
		if charged := n.w.Spent(events.ActionDelete) - before; n.w.Incident.Cause() != c.cause || (charged > 0) != (c.cause != events.CauseEnd) {
			t.Errorf("%s: charged are %d replacements for %s, want %s", name, charged, n.w.Incident.Cause(), c.cause)
		}
	}
}

// TestADeletionAroundThePlannedEnd is its owner's, whenever their word comes. What is gone before its end, with no word yet, is not replaced.
func TestADeletionAroundThePlannedEnd(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"119m, owner deletes, read gone":       "released",
		"119m, read gone":                      "creating: create a",
		"119m, read gone, owner deletes":       "released",
		"113m, read gone":                      "grace",
		"113m, read gone, owner deletes, tick": "released",
	} {
		n := newStory(t, false, "a").with(ending).goes(path)
		if got := n.stands(n.sent); got != want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, got, want, n.tale())
		}
	}
}

// TestAGroupEndsAsAWhole: of one of its slices the end is not known, but its queued resource has ended, and nobody waits for it to heal.
func TestAGroupEndsAsAWhole(t *testing.T) {
	t.Parallel()
	n := queued(t, false).with(ending)
	n.w.Slices[1].Ends = time.Time{}
	n.now = start.Add(2 * time.Hour)
	n.history("b read lost", "healing", "a read lost", "deleting: delete a with b")
}

// TestAPlannedEndAndMaintenance: whichever comes first is waited for, and the later one is no news.
func TestAPlannedEndAndMaintenance(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.p.Switches.EarlyMaintenance = policy.No
	n.w.Slices[0].Ends = start.Add(10 * time.Hour)
	for _, c := range []struct {
		told events.Notice
		end  bool
		at   time.Duration
	}{
		{window(events.NoticePending, true, 20*time.Hour), true, 10 * time.Hour},
		{window(events.NoticePending, true, 5*time.Hour), false, 5 * time.Hour},
		{events.Notice{Status: events.NoticeGone}, true, 10 * time.Hour},
	} {
		n.now = n.now.Add(time.Minute)
		n.announces("a", c.told)
		if a := n.announced("a"); a.End != c.end || !a.WindowStart.Equal(start.Add(c.at)) {
			t.Errorf("after %+v announced is %+v", c.told, a)
		}
	}
}

// TestAPlannedEndFarAwayLetsMaintenanceStartEarly: of what is announced, an end in a week concerns nobody yet.
func TestAPlannedEndFarAwayLetsMaintenanceStartEarly(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	n := queued(t, true)
	n.w.Slices[0].Ends = start.Add(week)
	n.goes("b log movable")
	due := func(i int) time.Time { return n.w.Shown(n.now).Slices[i].LastNotice.Due }
	if want := n.now.Add(bounds.NoticeFor); !due(1).Equal(want) {
		t.Errorf("the save before the maintenance is due at %s, not at %s", due(1), want)
	}
	if want := start.Add(week - n.p.Lead); !due(0).Equal(want) {
		t.Errorf("the save before the end is due at %s, not at %s", due(0), want)
	}
}

// TestASaveBeforeAPlannedEndOutlivesItsLead: another measurement, or a policy that cannot be read for a minute, withdraws no end. One that is moved away
// is withdrawn.
func TestASaveBeforeAPlannedEndOutlivesItsLead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy func(known policy.Policy) policy.Policy
		moves  time.Duration
		want   string
	}{
		"its policy cannot be read": {func(known policy.Policy) policy.Policy { return policy.Policy{Name: known.Name, Unreadable: "503"} }, 0, "saving"},
		"its lead is shortened":     {func(known policy.Policy) policy.Policy { known.Lead = 20 * time.Minute; return known }, 0, "saving"},
		"it is moved":               {func(known policy.Policy) policy.Policy { return known }, 48 * time.Hour, "withdrawn"},
	} {
		n := newStory(t, true, "a").under("everything").with(ending)
		n.p.Lead = 90 * time.Minute
		known := n.p
		n.goes("31m").is("saving")
		n.p = c.policy(known)
		n.reads("a", evidence.Ready, func(e *evidence.Read) { e.Facts.Ends = e.Facts.Ends.Add(c.moves) }).passes(time.Minute)
		n.p = known
		if n.passes(time.Minute); n.stands(nil) != c.want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", name, n.stands(nil), c.want, n.tale())
		}
	}
}
