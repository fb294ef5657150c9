package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
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
		n := newStory(t, true, "a").allowing(c.p).with(c.w).goes("a log ongoing, " + steps)
		shown := n.w.ShownIncident(*n.about(), n.now).Save
		says := c.want != reason.SaveVerified && c.want != reason.SaveLate && c.want != reason.SaveOvertaken
		if shown.Result != c.want || (shown.Failed != "") != says {
			t.Errorf("%s: shown is %+v, want %q:\n%s", steps, shown, c.want, n.tale())
		}
	}
}

// TestALateSaveThatIsTornIsNotLookedForForEver, and it costs nobody a call at night: the maintenance comes all the same.
func TestALateSaveThatIsTornIsNotLookedForForEver(t *testing.T) {
	t.Parallel()
	n, looked := at(t, "everything", true, "ongoing, does save, later, tick, saved"), 0
	for range 120 {
		if n.goes("1m"); n.isWanted(events.ActionVerify) && n.w.Effects[0].Stage() == view.StageWanted {
			n.goes("torn verify")
			looked++
		}
	}
	save := n.w.Shown(n.now).Incident.Save
	if n.is("window"); n.isWanted(events.ActionVerify) || looked > int(bounds.CheckFor/bounds.LookEvery) || !strings.HasSuffix(save.Failed, "torn") {
		t.Errorf("after two hours it was looked for %d times: %s\n%s", looked, save.Failed, n.tale())
	}
}

// announces has the API show what is announced for a slice.
func (n *story) announces(slice string, notice events.Notice) *story {
	return n.give(evidence.Noticed{
		Origin: n.reading(), Slice: slice, Incarnation: n.w.Slice(slice).Incarnation, Notice: notice, InAPI: notice.Status != events.NoticeGone, Text: "notice",
	})
}

// TestTheLeadIsMeasured: the save before a window is asked for in time for what saving takes this training.
func TestTheLeadIsMeasured(t *testing.T) {
	t.Parallel()
	seconds := func(n int, d time.Duration) []int64 { return slices.Repeat([]int64{int64(d.Seconds())}, n) }
	const natural, signal = events.SaveNatural, events.SaveSignal
	for name, c := range map[string]struct {
		named       time.Duration
		mode        events.SaveMode
		gaps, saves []int64
		made        events.SaveMode
		want        time.Duration
	}{
		"nothing is measured":                  {want: policy.DefaultLead},
		"too little is":                        {gaps: seconds(4, time.Hour), saves: seconds(4, time.Hour), made: natural, want: policy.DefaultLead},
		"the policy names it":                  {named: 7 * time.Minute, gaps: seconds(20, time.Hour), want: 7 * time.Minute},
		"checkpoints are an hour apart":        {mode: natural, gaps: seconds(5, time.Hour), want: 65 * time.Minute},
		"a signal does not wait for the next":  {mode: signal, gaps: seconds(5, time.Hour), want: policy.DefaultLead},
		"saves by signal take a while":         {mode: signal, saves: seconds(5, 12*time.Minute), made: signal, want: 17 * time.Minute},
		"they were made in another mode":       {mode: signal, saves: seconds(5, 12*time.Minute), made: natural, want: policy.DefaultLead},
		"one of twenty took long":              {gaps: append(seconds(19, 10*time.Minute), 7000), want: 15 * time.Minute},
		"two of twenty did":                    {gaps: append(seconds(18, 10*time.Minute), 3000, 7000), want: 55 * time.Minute},
		"one of five saves did":                {mode: signal, saves: append(seconds(4, 10*time.Minute), 3000), made: signal, want: 55 * time.Minute},
		"what takes seconds":                   {gaps: seconds(9, 20*time.Second), want: 10 * time.Minute},
		"what takes a day":                     {gaps: seconds(9, 24*time.Hour), want: 2 * time.Hour},
		"saves that took longer than the gaps": {gaps: seconds(9, 20*time.Minute), saves: seconds(5, 40*time.Minute), made: natural, want: 45 * time.Minute},
	} {
		n := newStory(t, false, "a")
		n.p.Lead, n.p.Save = c.named, c.mode
		n.w.Training.GapsBetween, n.w.Training.SaveSeconds, n.w.Training.SaveMode = c.gaps, c.saves, c.made
		n.announces("a", notices["moved"])
		if shown := n.w.Shown(n.now).Slices[0].LastNotice; shown == nil || notices["moved"].WindowStart.Sub(shown.Due) != c.want {
			t.Errorf("%s: shown is %+v, want the save %v before the window", name, shown, c.want)
		}
	}
}

// TestThePaceIsThatOfTheTraining: measured between two checkpoints of one attempt, or from a request to the end of its checkpoint.
func TestThePaceIsThatOfTheTraining(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.w.Training = incident.Training{}
	tell := func(minutes, attempt int, step int64) {
		n.later(time.Duration(minutes)*time.Minute).line("a", events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: step / 100 * 100})
	}
	for _, c := range [][3]int{
		{5, 1, 10},
		{5, 1, 110},
		{5, 1, 120},
		{5, 1, 210},
		{30, 1, 310},
		{300, 2, 311},
		{5, 2, 410},
		{10, 2, 510},      // after a restart
		{25 * 60, 2, 610}, // longer than anybody waits
	} {
		tell(c[0], c[1], int64(c[2]))
	}
	if want := []int64{10 * 60, 30 * 60, 10 * 60}; !slices.Equal(n.w.Training.GapsBetween, want) {
		t.Errorf("the gaps are %v, want %v", n.w.Training.GapsBetween, want)
	}
	for i := range int64(30) {
		tell(1, 2, 710+100*i)
	}
	if got := len(n.w.Training.GapsBetween); got != 20 {
		t.Errorf("%d gaps are kept", got)
	}
	n = newStory(t, false, "a").goes("a log ongoing, does save, 20s, saved, 10s, found verify")
	if tr := n.w.Training; len(tr.SaveSeconds) != 1 || tr.SaveMode != events.SaveNatural || tr.SaveSeconds[0] < 10 || tr.SaveSeconds[0] > 20 {
		t.Errorf("a save took %v in the mode %q", tr.SaveSeconds, tr.SaveMode)
	}
}

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
		if n.w.Incident == nil || !n.down().IsZero() {
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
	spot := func(w *incident.Workload) { w.Slices[0].Capacity = events.Spot }
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
	for i, at := range []time.Duration{10 * time.Hour, 5 * time.Hour, 10 * time.Hour} {
		told := []events.Notice{window(events.NoticePending, true, 20*time.Hour), window(events.NoticePending, true, 5*time.Hour), {Status: events.NoticeGone}}[i]
		n.later(time.Minute).announces("a", told)
		if a := n.announced("a"); a.End != (at == 10*time.Hour) || !a.WindowStart.Equal(start.Add(at)) {
			t.Errorf("after %+v announced is %+v", told, a)
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
