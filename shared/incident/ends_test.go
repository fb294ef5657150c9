package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// ending is a workload of one slice on demand whose life ends after so long, as planned.
func ending(after time.Duration) incident.Workload {
	w := quiet(false)
	w.Slices[0].Ends = start.Add(after)
	return w
}

// found is a reading of a workload's slice.
func found(w incident.Workload, c incident.Condition, state string, now time.Time) incident.Read {
	s := w.Slices[0]
	read := incident.Read{
		Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: c, Incarnation: s.Incarnation, State: state, Facts: s.Facts,
	}
	if c == incident.Gone {
		read.Incarnation, read.Facts = events.Incarnation{}, incident.Facts{}
	}
	return read
}

// saves has the crew answer the save that is asked for, and the checkpoint be found complete.
func saves(t *testing.T, p policy.Policy, w incident.Workload, now time.Time) incident.Workload {
	t.Helper()
	n := node{w: w, now: now}
	for _, what := range []string{"intend save 0", "accepted save 0", "saved", "intend verify 0", "found verify 0"} {
		e, ok := evidence(n.w, n.now)[what]
		if !ok {
			t.Fatalf("there is no %q", what)
		}
		n.w, _, _ = advance(p, n.w, e, n.now)
	}
	return n.w
}

// TestAPlannedEnd: the save comes the lead before the end, nobody waits for a healing after it, and nobody is charged.
func TestAPlannedEnd(t *testing.T) {
	const end = 2 * time.Hour
	for name, c := range map[string]struct {
		policy   string
		now      incident.Condition
		state    string
		phase    incident.Phase
		outcome  incident.Outcome
		request  string
		plan     string
		advice   string
		requests int
	}{
		"preempted":             {policy: "everything", now: incident.Lost, state: "PREEMPTED", phase: incident.PhaseDeleting, request: "delete llama-8b"},
		"terminated":            {policy: "everything", now: incident.Lost, state: "TERMINATED", phase: incident.PhaseDeleting, request: "delete llama-8b"},
		"gone":                  {policy: "everything", now: incident.Gone, state: "gone", phase: incident.PhaseCreating, request: "create llama-8b"},
		"a person is asked":     {policy: "ask", now: incident.Lost, state: "TERMINATED", phase: incident.Approving},
		"only Spot is replaced": {policy: "spot", now: incident.Lost, state: "TERMINATED", outcome: incident.Escalated, advice: "allow the switch recreate_non_spot"},
		"watched":               {policy: "watch", now: incident.Lost, state: "TERMINATED", phase: incident.Watching, plan: "DeleteNode"},
		"watched and gone":      {policy: "watch", now: incident.Gone, state: "gone", phase: incident.Watching, plan: "CreateNode"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies[c.policy]
			due := end - p.Lead
			w, sent := until(p, ending(end), 0, due-time.Minute)
			if w.Incident != nil || len(sent) > 0 {
				t.Fatalf("before the save is due: %+v, sent %v", w.Incident, sent)
			}
			if n := w.Notice("llama-8b"); n == nil || !n.End || !n.WindowStart.Equal(start.Add(end)) || p.Unreadable == "" && !n.Due.Equal(start.Add(due)) {
				t.Fatalf("the planned end is kept as %+v", n)
			}
			w, sent = until(p, w, due, due)
			if w.Incident == nil || w.Incident.Cause != events.CauseEnd || w.Incident.Troubles[0].Text != "planned end at 2026-11-12T04:00:00Z" {
				t.Fatalf("when the save is due: %+v", w.Incident)
			}
			switch c.policy {
			case "everything", "spot":
				if at, ok := sent["save"]; !ok || at != due {
					t.Fatalf("asked for %v", sent)
				}
				if w = saves(t, p, w, start.Add(due+time.Minute)); w.Incident.Phase != incident.Window || !w.Incident.Save.Verified {
					t.Fatalf("the save: %s, %+v", w.Incident.Phase, w.Incident.Save)
				}
			}
			if w, sent = until(p, w, due+2*time.Minute, end); len(sent) > 0 {
				t.Fatalf("asked for %v before the end", sent)
			}
			budgets := w.Budgets
			now := start.Add(end + 90*time.Second)
			w, _, _ = advance(p, w, found(w, incident.Ready, "READY", now), now) // a machine lives a little longer
			if w.Incident == nil || !w.Incident.Down.IsZero() {
				t.Fatalf("usable past its end: %+v", w.Incident)
			}
			now = now.Add(time.Minute)
			w, out, _ := advance(p, w, found(w, c.now, c.state, now), now)
			in := w.Incident
			if c.outcome != "" {
				in = w.Closed
			}
			switch {
			case in == nil:
				t.Fatal("there is no incident")
			case in.Outcome != c.outcome || c.outcome == "" && in.Phase != c.phase:
				t.Errorf("%s %s: %s", in.Phase, in.Outcome, in.Reason)
			case !strings.Contains(in.Advice, c.advice):
				t.Errorf("advice %q", in.Advice)
			case len(in.Troubles) != 1 || in.Troubles[0].Announced || !in.Troubles[0].Proven:
				t.Errorf("troubles %+v", in.Troubles)
			case in.Cause != events.CauseEnd || in.Account() != "nobody" || w.Budgets != budgets:
				t.Errorf("cause %s, charged to %s, budgets %+v", in.Cause, in.Account(), w.Budgets)
			}
			if c.plan != "" && (len(in.PlannedCalls) == 0 || !strings.Contains(strings.Join(in.WouldHave(), "; "), c.plan) || strings.Contains(strings.Join(in.WouldHave(), "; "), "brought it back")) {
				t.Errorf("would have %q", in.WouldHave())
			}
			if c.request != "" && (len(out) != 1 || asks(out[0]) != c.request) {
				t.Errorf("asked for %v", out)
			}
			told := in.Timeline[len(in.Timeline)-1].Text + " " + in.Timeline[len(in.Timeline)-1].Reason + in.Reason
			if c.request != "" && !strings.Contains(told, either(c.state+", as planned for 2026-11-12T04:00:00Z", "llama-8b", "text")) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// TestHealingIsWaitedForUntilThePlannedEnd: what is lost before its planned end may come back, and after it does not.
func TestHealingIsWaitedForUntilThePlannedEnd(t *testing.T) {
	p := policies["everything"]
	w := ending(2 * time.Hour)
	now := start.Add(time.Minute)
	w, _, _ = advance(p, w, found(w, incident.Lost, "TERMINATED", now), now)
	if w.Incident.Phase != incident.Healing || w.Incident.Cause != events.CauseTerminated {
		t.Fatalf("%s, %s", w.Incident.Phase, w.Incident.Cause)
	}
	now = start.Add(2*time.Hour - incident.EndMargin - time.Second)
	if w, _, _ = advance(p, w, found(w, incident.Lost, "TERMINATED", now), now); w.Incident.Phase != incident.Healing {
		t.Fatalf("before its end: %s", w.Incident.Phase)
	}
	now = now.Add(time.Second)
	w, _, _ = advance(p, w, found(w, incident.Lost, "TERMINATED", now), now)
	w, _, _ = advance(p, w, evidence(w, now)["intend delete 0"], now)
	if in := w.Incident; in.Phase != incident.PhaseDeleting || in.Cause != events.CauseTerminated || in.Account() != "infrastructure" || w.Budgets.Recreates != 1 {
		t.Errorf("%s, %s, charged to %s, %d replacements", in.Phase, in.Cause, in.Account(), w.Budgets.Recreates)
	}
}

// TestAPlannedEndWithoutASave: it is replaced and charged to nobody, also where no budget is left and no save was asked for.
func TestAPlannedEndWithoutASave(t *testing.T) {
	p := policies["everything"]
	for name, c := range map[string]struct {
		but     func(*incident.Workload)
		missed  time.Duration
		cause   events.Cause
		charged int
	}{
		"nobody looked before":          {nil, 0, events.CauseEnd, 0},
		"no replacement is left":        {func(w *incident.Workload) { w.Budgets.Recreates = incident.MaxRecreates }, 0, events.CauseEnd, 0},
		"Spot":                          {func(w *incident.Workload) { w.Slices[0].Reclaimable = true }, 0, events.CauseEnd, 0},
		"Spot, preempted long before":   {func(w *incident.Workload) { w.Slices[0].Reclaimable = true }, -time.Hour, events.CausePreemption, 1},
		"Spot, preempted just before":   {func(w *incident.Workload) { w.Slices[0].Reclaimable = true }, -incident.EndMargin - time.Second, events.CausePreemption, 1},
		"its machines shut down before": {nil, -incident.EndMargin, events.CauseEnd, 0},
		"it was read long after":        {nil, 3 * time.Hour, events.CauseEnd, 0},
	} {
		w := ending(2 * time.Hour)
		if c.but != nil {
			c.but(&w)
		}
		before, now := w.Budgets.Recreates, start.Add(2*time.Hour+c.missed)
		w, _, _ = advance(p, w, found(w, incident.Lost, "TERMINATED", now), now)
		w, _, _ = advance(p, w, evidence(w, now)["intend delete 0"], now)
		if in := w.Incident; in == nil || in.Phase != incident.PhaseDeleting || in.Cause != c.cause || w.Budgets.Recreates != before+c.charged {
			t.Errorf("%s: %+v, %d replacements", name, in, w.Budgets.Recreates)
		}
	}
}

// TestTheOwnerDeletesAtThePlannedEnd: it is theirs, in whatever order that is learned.
func TestTheOwnerDeletesAtThePlannedEnd(t *testing.T) {
	p := policies["everything"]
	now := start.Add(2 * time.Hour)
	for name, late := range map[string]bool{"their word comes first": false, "it is read to be gone first": true} {
		w := ending(2 * time.Hour)
		word := incident.Called{
			Origin: incident.Origin{ID: "d", Time: now.Add(-time.Minute), Rank: events.RankAudit}, Slice: "llama-8b", Zone: "us-west4-a", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com",
		}
		gone := found(w, incident.Gone, "gone", now)
		all := []incident.Evidence{word, gone}
		if late {
			all = []incident.Evidence{gone, word}
		}
		for _, e := range all {
			w, _, _ = advance(p, w, e, now)
		}
		if !w.Slices[0].IsReleased() || w.Incident != nil && w.Incident.Phase != incident.Clearing {
			t.Errorf("%s: released %t, incident %+v", name, w.Slices[0].IsReleased(), w.Incident)
		}
	}
}

// TestADeletionBeforeThePlannedEndIsNone: what is gone before its end is its owner's until nobody has said so in time.
func TestADeletionBeforeThePlannedEndIsNone(t *testing.T) {
	p := policies["everything"]
	w, _ := until(p, ending(2*time.Hour), 0, 2*time.Hour-p.Lead)
	now := start.Add(2*time.Hour - incident.EndMargin - time.Second)
	w, out, _ := advance(p, w, found(w, incident.Gone, "gone", now), now)
	if w.Incident == nil || w.Incident.Phase != incident.PhaseGrace || len(out) > 0 {
		t.Errorf("%+v, asked for %v", w.Incident, out)
	}
}

// TestAGroupEndsAsAWhole: of a slice whose life was never read the end is not known, but its queued resource has ended.
func TestAGroupEndsAsAWhole(t *testing.T) {
	p := policies["everything"]
	w := queued(false)
	now := start.Add(2 * time.Hour)
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Condition, s.ToReplace, s.Spec, s.Ends = incident.Ready, false, "", now
	}
	w.Slices[1].Incarnation, w.Slices[1].Ends = events.Incarnation{}, time.Time{}
	w.Incident = nil
	for minute := range 3 * 60 {
		at := now.Add(time.Duration(minute) * time.Minute)
		for _, s := range w.Slices {
			w, _, _ = advance(p, w, incident.Read{
				Origin: incident.Origin{Time: at, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: incident.Lost, Incarnation: s.Incarnation,
				State: "SUSPENDED (queued resource)", Facts: s.Facts,
			}, at)
		}
		w, _, _ = tick(p, w, at)
		if w.Incident != nil && w.Incident.Phase == incident.Healing {
			t.Fatalf("after %d minutes healing is waited for: %+v", minute, w.Incident.Timeline)
		}
	}
	if in := w.Incident; in != nil {
		t.Fatalf("it does not end: %s, %+v", in.Phase, in.Timeline[max(0, len(in.Timeline)-4):])
	}
	if c := w.Closed; c == nil && w.Ended.IsZero() {
		t.Error("no incident was opened")
	}
}

// TestAPlannedEndAndMaintenance: whichever comes first is waited for, and the later one is no news.
func TestAPlannedEndAndMaintenance(t *testing.T) {
	p := policies["everything"]
	p.Switches.EarlyMaintenance = policy.No
	notice := func(at time.Duration) events.Notice {
		return events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(at), WindowEnd: start.Add(at + time.Hour)}
	}
	tells := func(w incident.Workload, n events.Notice) incident.Workload {
		w, _, _ = advance(p, w, incident.Noticed{
			Origin: incident.Origin{ID: "n", Time: start, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: w.Slices[0].Incarnation, Notice: n, InAPI: true,
		}, start)
		return w
	}
	w, _ := until(p, ending(10*time.Hour), 0, 0)
	w = tells(w, notice(20*time.Hour))
	if n := w.Notice("llama-8b"); !n.End || !n.Tells(notice(20*time.Hour)) || n.Tells(notice(5*time.Hour)) {
		t.Errorf("after the end: %+v", n)
	}
	w = tells(w, notice(5*time.Hour))
	if n := w.Notice("llama-8b"); n.End || !n.WindowStart.Equal(start.Add(5*time.Hour)) {
		t.Errorf("before the end: %+v", n)
	}
	w = tells(w, events.Notice{Status: events.NoticeGone})
	if n := w.Notice("llama-8b"); n == nil || !n.End || !n.WindowStart.Equal(start.Add(10*time.Hour)) {
		t.Errorf("withdrawn: %+v", n)
	}
}

// TestAPlannedEndFarAwayLetsMaintenanceStartEarly: of what is announced, an end in a week concerns nobody yet.
func TestAPlannedEndFarAwayLetsMaintenanceStartEarly(t *testing.T) {
	p := policies["everything"]
	w := queued(true)
	w.Slices[0].Ends = start.Add(7 * 24 * time.Hour)
	w.Crew.Seen, w.Directory = start.Add(-time.Hour), "gs://ckpt/run"
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Condition, s.Accelerator, s.Workers = incident.Ready, "v5litepod-16", 4
	}
	w, _ = until(p, w, 0, 0)
	early := days
	w, _, _ = advance(p, w, incident.Noticed{
		Origin: incident.Origin{ID: "entry", Time: start, Rank: events.RankAudit}, Slice: w.Slices[1].Name, Incarnation: w.Slices[1].Incarnation, Notice: early, Text: "notice",
	}, start)
	if due := w.Notice(w.Slices[1].Name).Due; !due.Equal(start.Add(incident.NoticeFor)) {
		t.Errorf("the save before the maintenance is due %v, not %v", due, start.Add(incident.NoticeFor))
	}
	if due := w.Notice(w.Slices[0].Name).Due; !due.Equal(start.Add(7*24*time.Hour - p.Lead)) {
		t.Errorf("the save before the end is due %v", due)
	}
}
