package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestANoticeThatIsShownForEverIsWaitedForOnce: the API may show maintenance whose window is long over, because the slice was
// broken when it would have begun. Nobody is asked to save for it again and again.
func TestANoticeThatIsShownForEverIsWaitedForOnce(t *testing.T) {
	p := policies["everything"]
	now := start
	w := quiet(false)
	notice := events.Notice{
		Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour), LatestWindowStart: start.Add(time.Hour),
	}
	opened := map[string]bool{}
	for ; now.Before(start.Add(48 * time.Hour)); now = now.Add(10 * time.Minute) {
		origin := incident.Origin{Time: now, Rank: events.RankReading}
		s := w.Slices[0]
		for _, e := range []incident.Evidence{
			incident.Noticed{Origin: origin, Slice: s.Name, Incarnation: s.Incarnation, Notice: notice, InAPI: true},
			incident.Read{
				Origin: origin, Slice: s.Name, Zone: s.Zone, Condition: incident.Ready, Incarnation: s.Incarnation, State: "READY", Notice: &notice,
			},
			incident.Reported{Origin: origin, Slice: s.Name, Report: events.CrewReport{
				Report: events.ReportProgress, Attempt: max(w.Crew.Attempt, 1), Step: 10_000 + int64(now.Sub(start)/time.Second),
			}},
			incident.Ticked{Origin: incident.Origin{Rank: events.RankReading}},
		} {
			w, _, _ = advance(p, w, e, now)
			if w.Incident != nil {
				opened[w.Incident.ID] = true
			}
		}
	}
	if len(opened) != 1 {
		t.Errorf("%d incidents were opened for one window: %v", len(opened), opened)
	}
	if w.Incident != nil {
		t.Errorf("an incident is open still: %s", w.Incident.Phase)
	}
	if due := due(w); !due.IsZero() {
		t.Errorf("something is due at %s for ever", due)
	}
}

// days is maintenance that is announced long before.
var days = events.Notice{
	Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(48 * time.Hour), WindowEnd: start.Add(52 * time.Hour),
}

// announced is a workload that has been told of maintenance.
func announced(p policy.Policy, w incident.Workload, n events.Notice) incident.Workload {
	for _, s := range w.Slices {
		w, _, _ = advance(p, w, incident.Noticed{
			Origin: incident.Origin{ID: "entry", Time: start, Rank: events.RankAudit}, Slice: s.Name, Incarnation: s.Incarnation, Notice: n, Text: "notice",
		}, start)
	}
	return w
}

// until lets a minute pass after the other, and returns the requests that were sent with the time at which each was.
func until(p policy.Policy, w incident.Workload, from, to time.Duration) (incident.Workload, map[string]time.Duration) {
	sent := map[string]time.Duration{}
	for at := from; at <= to; at += time.Minute {
		var out []events.Event
		w, out, _ = tick(p, w, start.Add(at))
		for _, e := range out {
			sent[asks(e)] = at
		}
	}
	return w, sent
}

// TestALongNoticeIsNotSatOut: where maintenance may be started early, the save is requested at the notice and not before the window.
func TestALongNoticeIsNotSatOut(t *testing.T) {
	const lead = 10 * time.Minute
	window := 48 * time.Hour
	fixed := days
	fixed.CanReschedule = false
	for name, c := range map[string]struct {
		policy string
		notice events.Notice
		but    func(*incident.Workload)
		save   time.Duration
		asked  events.Action
	}{
		"it may":                                 {"everything", days, nil, 0, ""},
		"a person is asked first":                {"ask", days, nil, -1, events.ActionMaintain},
		"the policy says no":                     {"spot", days, nil, window - lead, ""},
		"it cannot be moved":                     {"everything", fixed, nil, window - lead, ""},
		"the slice is too small":                 {"everything", days, func(w *incident.Workload) { w.Slices[0].Accelerator = "v6e-4" }, window - lead, ""},
		"nobody knows the slice's size":          {"everything", days, func(w *incident.Workload) { w.Slices[0].Accelerator = "" }, window - lead, ""},
		"without a crew there is no save":        {"everything", days, crewless, -1, ""},
		"without a directory none is verified":   {"everything", days, bare, window - lead, ""},
		"the policy cannot be read, and then is": {"unreadable", days, nil, 30 * time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, w := policies[c.policy], quiet(false)
			if c.but != nil {
				c.but(&w)
			}
			w = announced(p, w, c.notice)
			from := time.Duration(0)
			if c.policy == "unreadable" {
				var sent map[string]time.Duration
				if w, sent = until(p, w, 0, 29*time.Minute); w.Incident != nil || len(sent) > 0 {
					t.Fatalf("%v, %+v", sent, w.Incident)
				}
				p, from = policies["everything"], 30*time.Minute
			}
			if c.save < 0 {
				w, sent := until(p, w, from, 24*time.Hour)
				if in := w.Incident; c.asked == "" && in != nil || c.asked != "" && (in == nil || in.Asked != c.asked) || len(sent) > 0 {
					t.Errorf("asked for %v: %+v", sent, in)
				}
				return
			}
			w, sent := until(p, w, from, c.save+time.Minute)
			if at, ok := sent["save"]; !ok || at != c.save || len(sent) != 1 {
				t.Errorf("requests %v, want a save after %v", sent, c.save)
			}
			if in := w.Incident; in == nil || in.Phase != incident.Saving {
				t.Errorf("%+v", in)
			}
		})
	}
}

// TestMaintenanceOfAJobThatStaysAwayWaitsForItsWindow: a Job may fail for good once its maintenance begins. Where nobody may bring it
// back, Pitstop does not begin it.
func TestMaintenanceOfAJobThatStaysAwayWaitsForItsWindow(t *testing.T) {
	const early, window = 0, 48*time.Hour - 10*time.Minute
	replaces := func(spot, other policy.Level) policy.Policy {
		p := policies["everything"]
		p.Switches.Recreate, p.Switches.RecreateNonSpot = spot, other
		return p
	}
	spot := func(w *incident.Workload) { w.Slices[0].Reclaimable = true }
	for name, c := range map[string]struct {
		p    policy.Policy
		but  func(*incident.Workload)
		save time.Duration
	}{
		"it may be replaced":         {replaces(policy.No, policy.Yes), nil, early},
		"it is Spot, and may be":     {replaces(policy.Yes, policy.No), spot, early},
		"the policy forbids it":      {replaces(policy.Yes, policy.No), nil, window},
		"a person would be asked":    {replaces(policy.Yes, policy.Ask), nil, window},
		"it is Spot, and may not be": {replaces(policy.No, policy.Yes), spot, window},
		"something else made it":     {policies["everything"], func(w *incident.Workload) { w.Slices[0].Kept = "a CronJob made it" }, window},
		"nobody has read its manifest": {
			policies["everything"], func(w *incident.Workload) { w.Slices[0].Spec = "" }, window,
		},
		"its replacements are spent": {policies["everything"], func(w *incident.Workload) { w.Budgets.Recreates = incident.MaxRecreates }, window},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(false)
			w.Provider = "gke"
			if c.but != nil {
				c.but(&w)
			}
			p := w.Limited(c.p)
			w = announced(p, w, days)
			if _, sent := until(p, w, 0, c.save+time.Minute); sent["save"] != c.save || len(sent) != 1 {
				t.Errorf("requests %v, want a save after %v", sent, c.save)
			}
		})
	}
}

// TestAJobThatStaysAwayByNowIsNotMaintained: what was true at the request need not be true at the call.
func TestAJobThatStaysAwayByNowIsNotMaintained(t *testing.T) {
	for name, c := range map[string]struct {
		but   func(*incident.Workload, *policy.Policy)
		phase incident.Phase
	}{
		"it is as it was":          {func(*incident.Workload, *policy.Policy) {}, incident.Maintaining},
		"the policy forbids it":    {func(_ *incident.Workload, p *policy.Policy) { p.Switches.RecreateNonSpot = policy.No }, incident.Window},
		"something else took over": {func(w *incident.Workload, _ *policy.Policy) { w.Slices[0].Kept = "a queue holds it" }, incident.Window},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(false)
			w.Provider = "gke"
			p := w.Limited(policies["everything"])
			n, _ := story(t, p, announced(p, w, days), "1m, "+verified)
			if n.w.Incident.Phase != incident.Maintaining {
				t.Fatal(n.w.Incident.Phase)
			}
			c.but(&n.w, &p)
			n, _ = storyFrom(t, p, n, "intend maintain 0")
			if n.w.Incident.Phase != c.phase {
				t.Errorf("%s, want %s", n.w.Incident.Phase, c.phase)
			}
		})
	}
}

// TestAHeldMaintenanceIsSavedForAnew: the training goes on while a call is held, and the maintenance ends what it trains then.
func TestAHeldMaintenanceIsSavedForAnew(t *testing.T) {
	for name, provider := range map[string]string{"a TPU": "", "a Job": "gke"} {
		for held, want := range map[time.Duration]struct {
			phase incident.Phase
			again bool
		}{5 * time.Minute: {incident.Maintaining, false}, 9 * time.Hour: {incident.Saving, true}} {
			t.Run(name+" for "+held.String(), func(t *testing.T) {
				w := quiet(false)
				w.Provider = provider
				p := w.Limited(policies["everything"])
				n, _ := story(t, p, announced(p, w, days), "1m, "+verified)
				var asked []string
				for until := n.now.Add(held); n.now.Before(until) && len(asked) == 0; {
					n, asked = storyFrom(t, p, n, "held maintain 0, 3m")
					asked = slices.DeleteFunc(asked, func(a string) bool { return strings.Contains(a, "maintain") })
				}
				if !either(false, len(asked) > 0, "at once") {
					n, asked = storyFrom(t, p, n, "intend maintain 0")
				}
				if in := n.w.Incident; in.Phase != want.phase || in.Save.Verified == want.again || (len(asked) > 0) != want.again {
					t.Fatalf("%s, asked for %q; want %s", in.Phase, asked, want.phase)
				}
				if want.again {
					if n, asked = storyFrom(t, p, n, verified+", do"); n.w.Incident.Phase != incident.Window || len(asked) != 2 {
						t.Errorf("%s, asked for %q", n.w.Incident.Phase, asked)
					}
				}
			})
		}
	}
}

// story plays evidence after evidence on a workload that was told of maintenance in two days, and returns where it leads and
// what was asked for on the way. "+" and a duration let time pass, minute by minute.
func story(t *testing.T, p policy.Policy, w incident.Workload, path string) (node, []string) {
	t.Helper()
	return storyFrom(t, p, node{w: w, now: start, path: "told"}, path)
}

func storyFrom(t *testing.T, p policy.Policy, n node, path string) (node, []string) {
	t.Helper()
	var asked []string
	take := func(sent []events.Event) {
		for _, e := range sent {
			if a := asks(e); a != "" && e.EventType() != events.TypeIncidentClosed {
				asked = append(asked, n.now.Sub(start).Round(time.Minute).String()+" "+a)
			}
		}
	}
	for what := range strings.SplitSeq(path, ", ") {
		var sent []events.Event
		if d, err := time.ParseDuration(what); err == nil {
			for end := n.now.Add(d); n.now.Before(end); {
				n.now = n.now.Add(time.Minute)
				n.w, sent, _ = tick(p, n.w, n.now)
				take(sent)
			}
			continue
		}
		n, sent = play(t, p, n, what)
		take(sent)
	}
	return n, asked
}

const verified = "do, saved, intend verify 0, found verify 0"

func TestEarlyMaintenance(t *testing.T) {
	const one = "llama-8b "
	for name, c := range map[string]struct {
		policy string
		path   string
		asked  []string
		phase  incident.Phase
	}{
		"is started right after the save": {
			"everything", "1m, " + verified + ", do, 1h",
			[]string{"1m0s save", "1m0s verify", "1m0s maintain llama-8b"},
			incident.Window,
		},
		"that nobody answers is waited for in its window": {
			"everything", "1m, do, 47h30m, 25m",
			[]string{"1m0s save", either("47h51m0s save", "47h50m0s save", "at once")},
			incident.Saving,
		},
		"that the crew refuses to save for waits too": {
			"everything", "1m, do, refused, 47h30m, 25m",
			[]string{"1m0s save", "47h50m0s save"},
			incident.Saving,
		},
		"that the API refuses comes in its window, and after another save": {
			"everything", "1m, " + verified + ", intend maintain 0, permission maintain 0, 47h55m",
			[]string{"1m0s save", "1m0s verify", "1m0s maintain llama-8b", "47h50m0s save"},
			incident.Saving,
		},
		"that nobody approves waits too": {
			"ask", "48h", []string(nil), incident.Approving,
		},
		"that is approved a day later is saved for first": {
			"ask", "24h, " + one + "approved, " + verified + ", do",
			[]string{"24h0m0s save", "24h0m0s verify", "24h0m0s maintain llama-8b"},
			incident.Window,
		},
		"that was withdrawn meanwhile is not started": {
			"everything", "1m, do, " + one + "notice gone", []string{"1m0s save"}, "",
		},
		"does not wait for its window when the slice is lost": {
			"everything", "1m, do, refused, 1h, " + one + "read lost, 3h59m, " + one + "read lost, 2m",
			[]string{"1m0s save", "5h1m0s delete llama-8b"},
			incident.PhaseDeleting,
		},
		"does not hide a slice that does not come back": {
			"everything", "1m, do, refused, 1h, " + one + "read unhealthy, 3h59m, 2m",
			[]string{"1m0s save", "5h1m0s delete llama-8b"},
			incident.PhaseDeleting,
		},
		"does not hide a training that crashes": {
			"everything", "1m, do, refused, 1h, " + one + "exit 139, " + one + "gave up, " + one + "its verdict",
			[]string{"1m0s save", "1h1m0s hear", "1h1m0s restart llama-8b=7711"},
			incident.Restarting,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies[c.policy]
			n, asked := story(t, p, announced(p, quiet(false), days), c.path)
			phase := incident.Phase("")
			if n.w.Incident != nil {
				phase = n.w.Incident.Phase
			}
			if d := cmp.Diff(c.asked, asked); d != "" || phase != c.phase {
				t.Errorf("phase %s, want %s; asked (-want +got):\n%s", phase, c.phase, d)
			}
		})
	}
}

// TestTheSlicesOfAMultisliceAreMaintainedTogether, or none of them early.
func TestTheSlicesOfAMultisliceAreMaintainedTogether(t *testing.T) {
	p := policies["everything"]
	tell := func(w incident.Workload, slice string, n events.Notice, at time.Duration) incident.Workload {
		now := start.Add(at)
		w, _, _ = advance(p, w, incident.Noticed{
			Origin: incident.Origin{Time: now, Rank: events.RankAudit}, Slice: slice, Incarnation: w.Slice(slice).Incarnation, Notice: n, Text: "notice",
		}, now)
		return w
	}
	fixed, later := days, days
	fixed.CanReschedule = false
	later.WindowStart, later.WindowEnd = later.WindowStart.Add(24*time.Hour), later.WindowEnd.Add(24*time.Hour)
	for name, c := range map[string]struct {
		b    *events.Notice
		save time.Duration
		want []string
	}{
		"both are announced":            {&days, 9 * time.Minute, []string{"maintain a", "maintain b"}},
		"one later than the other":      {&later, 9 * time.Minute, []string{"maintain a", "maintain b"}},
		"one alone":                     {nil, 10 * time.Minute, []string{"maintain a"}},
		"one of them cannot be moved":   {&fixed, 48*time.Hour - 10*time.Minute, nil},
		"one of them is too small":      {&days, 48*time.Hour - 10*time.Minute, nil},
		"one of them is not usable now": {&days, 48*time.Hour - 10*time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := tell(multi(false), "a", days, 0)
			switch name {
			case "one of them is too small":
				w.Slices[1].Accelerator = "v5litepod-4"
			case "one of them is not usable now":
				w.Slices[1].Condition = incident.Stopped
			}
			w, sent := until(p, w, time.Minute, 9*time.Minute-time.Second)
			if len(sent) > 0 {
				t.Fatalf("it is not waited for the other: %v", sent)
			}
			if c.b != nil {
				w = tell(w, "b", *c.b, 9*time.Minute)
			}
			w, sent = until(p, w, 9*time.Minute, c.save)
			if at, ok := sent["save"]; !ok || at != c.save || len(sent) != 1 {
				t.Fatalf("requests %v, want a save after %v", sent, c.save)
			}
			n := node{w: w, now: start.Add(c.save), path: "saving"}
			var last []events.Event
			for what := range strings.SplitSeq(verified, ", ") {
				n, last = play(t, p, n, what)
			}
			var got []string
			for _, e := range last {
				got = append(got, asks(e))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("asked (-want +got):\n%s", d)
			}
		})
	}
}

// TestAMultisliceIsNotMaintainedByHalves: the call for one slice was accepted and that for the other was not, in either order.
func TestAMultisliceIsNotMaintainedByHalves(t *testing.T) {
	p := policies["everything"]
	const refused = "intend maintain 0, permission maintain 0"
	for path, want := range map[string]struct {
		asked []string
		phase incident.Phase
	}{
		"intend maintain 0, accepted maintain 0, intend maintain 1, not_in_state maintain 1, a read unhealthy, 1m, intend maintain 1, accepted maintain 1": {
			[]string{"12m0s maintain b"}, incident.Window,
		},
		"intend maintain 0, not_in_state maintain 0, intend maintain 1, accepted maintain 1, b read unhealthy, 1m, intend maintain 0, accepted maintain 0": {
			[]string{"12m0s maintain a"}, incident.Window,
		},
		"intend maintain 0, accepted maintain 0, intend maintain 1, permission maintain 1":                  {nil, incident.Window},
		refused + either(", intend maintain 0, accepted maintain 0", "", "none"):                            {nil, incident.Window},
		refused + either(", intend maintain 0, permission maintain 0", "", "none"):                          {nil, incident.Window},
		"intend maintain 0, accepted maintain 0, intend maintain 1, transient maintain 1, a read unhealthy": {nil, incident.Maintaining},
		"intend maintain 0, accepted maintain 0, intend maintain 1, not_in_state maintain 1, a read unhealthy, 1m, intend maintain 1, later, tick": {
			[]string{"12m0s maintain b"}, incident.Window,
		},
	} {
		n, _ := story(t, p, announced(p, multi(false), days), "11m, "+verified)
		n, asked := storyFrom(t, p, n, path)
		in := n.w.Incident
		if d := cmp.Diff(want.asked, asked); d != "" || in == nil || in.Phase != want.phase {
			t.Errorf("%s: it is %+v; asked (-want +got):\n%s", path, in, d)
			continue
		}
		accepted := strings.Contains(path, "accepted")
		if in.Phase == incident.Window && (in.Begun != accepted || accepted && in.Deadline.After(n.now.Add(incident.HealFor))) {
			t.Errorf("%s: begun %v, until %v", path, in.Begun, in.Deadline)
		}
	}
}

// TestSilenceIsToldWhereItProvesSomething, in quiet times and at the opening of the incident.
func TestSilenceIsToldWhereItProvesSomething(t *testing.T) {
	now := start.Add(time.Hour)
	for name, c := range map[string]struct {
		policy string
		but    func(*incident.Workload)
		seen   time.Time
		looked time.Time
		want   string
	}{
		"it wrote just now":                          {"spot", nil, now.Add(-time.Minute), time.Time{}, ""},
		"it wrote just now, and reads the bucket":    {"spot", nil, now.Add(-time.Minute), now.Add(-2 * time.Minute), ""},
		"it wrote just now, and cannot read it":      {"spot", nil, now.Add(-time.Minute), start.Add(-time.Minute), "the crew cannot read what is left beside the checkpoints, for 1 h 0 m by now: the node's metadata alone may reach it"},
		"it wrote hours ago":                         {"spot", nil, start.Add(-time.Hour), start.Add(-2 * time.Hour), "the crew was heard 1 h 2 m ago for the last time"},
		"it wrote hours ago, and a line came":        {"spot", func(w *incident.Workload) { w.Progress.At = now.Add(-time.Minute) }, start.Add(-time.Hour), time.Time{}, ""},
		"nothing can be read":                        {"spot", nil, time.Time{}, time.Time{}, ""},
		"there never was one":                        {"spot", crewless, time.Time{}, time.Time{}, "no crew has been heard that could answer"},
		"there never was one, and none is asked for": {"watch", crewless, time.Time{}, time.Time{}, ""},
	} {
		p, w := policies[c.policy], quiet(true)
		if c.but != nil {
			c.but(&w)
		}
		w = announced(p, w, days)
		epoch := w.Epoch
		w, sent, _ := advance(p, w, incident.Beat{Slice: w.Slices[0].Name, Incarnation: w.Slices[0].Incarnation, Seen: c.seen, Looked: c.looked}, now)
		if got := w.Slices[0].Notice.Deaf; got != c.want || w.Incident != nil || len(sent) > 0 || w.Epoch != epoch {
			t.Errorf("%s: %q, want %q; sent %v", name, got, c.want, sent)
		}
		w, _, _ = tick(p, w, w.Slices[0].Notice.Due.Add(time.Second))
		if w.Incident == nil {
			t.Errorf("%s: no incident is open at the time of the save", name)
			continue
		}
		told := slices.ContainsFunc(w.Incident.Timeline, func(l incident.Line) bool {
			return l.Reason == c.want && strings.HasPrefix(l.Text, "a request to save may not")
		})
		if told != (c.want != "") {
			t.Errorf("%s: told %v: %+v", name, told, w.Incident.Timeline)
		}
	}
}

// TestMaintenanceThatIsOverOpensNothing: word of it comes when the incident about it has ended. What was seen since then counts.
func TestMaintenanceThatIsOverOpensNothing(t *testing.T) {
	for name, c := range map[string]struct {
		at    time.Duration // before the end of the incident
		inAPI bool
		opens bool
	}{
		"from before the end":            {time.Minute, false, false},
		"at the end":                     {0, false, false},
		"from after the end":             {-time.Minute, false, true},
		"read of the API before the end": {time.Minute, true, false},
		"read of the API after the end":  {-time.Minute, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(true)
			w.Ended = start
			now := start.Add(2 * time.Hour)
			w, sent, _ := advance(policies["everything"], w, incident.Noticed{
				Origin: incident.Origin{ID: "late", Time: start.Add(-c.at), Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: w.Slices[0].Incarnation,
				Notice: events.Notice{Status: events.NoticeOngoing}, InAPI: c.inAPI, Text: "unscheduled maintenance of worker 0 is under way",
			}, now)
			if opened := w.Incident != nil; opened != c.opens || len(sent) > 0 != c.opens {
				t.Errorf("an incident was opened: %v, want %v; sent %v", opened, c.opens, sent)
			}
		})
	}
}

// TestTheDateOfTheLastMaintenanceExplains: what nothing better explains, of that life and of that time.
func TestTheDateOfTheLastMaintenanceExplains(t *testing.T) {
	p := policies["everything"]
	for _, c := range []struct {
		what, path string
		maintained time.Duration // before the crash, or the loss
		want       events.Cause
	}{
		{"a training that was ended", "exit 139", 2 * time.Minute, events.CauseMaintenance},
		{"one that gave up, and was charged for it", "exit 139, gave up, its verdict", 2 * time.Minute, events.CauseMaintenance},
		{"a slice that is not usable", "read unhealthy, later, tick", time.Minute, events.CauseMaintenance},
		{"an incident that is over", "exit 139, started, progress", 2 * time.Minute, events.CauseMaintenance},
		{"maintenance of an hour before", "exit 139", time.Hour, events.CauseCrash},
		{"maintenance of a life before", "exit 139", 400 * time.Hour, events.CauseCrash},
		{"a loss that is explained", "preempted, read lost", 2 * time.Minute, events.CausePreemption},
	} {
		n := at(t, p, false, c.path, nil)
		in := n.w.Incident
		if in == nil {
			in = n.w.Closed
		}
		read, ok := evidence(n.w, n.now)["read ready"].(incident.Read)
		if !ok || in == nil {
			t.Fatalf("%s: no incident", c.what)
		}
		read.Condition = n.w.Slices[0].Condition
		read.Maintained = in.Troubles[0].At.Add(-c.maintained)
		w, _, _ := advance(p, n.w, read, n.now)
		now := w.Incident
		if now == nil {
			now = w.Closed
		}
		if now.Cause != c.want {
			t.Errorf("%s: it is put down to %s, want %s", c.what, now.Cause, c.want)
		}
		if c.want == events.CauseMaintenance && w.Budgets.Restarts != 0 {
			t.Errorf("%s: the training is charged for it", c.what)
		}
		if again, _, changed := advance(p, w, read, n.now); changed || again.Incident != nil && len(again.Incident.Troubles) != len(now.Troubles) {
			t.Errorf("%s: it is told again with the next reading", c.what)
		}
	}
}

// TestMaintenanceThatWasToldTooLateIsReadAgain: the word of its beginning is of the incident that has just ended. If it still goes on, the
// next reading opens one.
func TestMaintenanceThatWasToldTooLateIsReadAgain(t *testing.T) {
	p := policies["everything"]
	w := quiet(false)
	n := events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour)}
	read := func(status events.NoticeStatus, at time.Time) incident.Noticed {
		n.Status = status
		return incident.Noticed{Origin: incident.Origin{Time: at, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: life(1), Notice: n, InAPI: true, Text: "notice"}
	}
	w, _, _ = advance(p, w, read(events.NoticePending, start), start)
	w.Ended = start.Add(time.Minute)
	late := read(events.NoticeOngoing, start.Add(50*time.Second))
	late.Rank, late.InAPI = events.RankAudit, false
	if w, _, _ = advance(p, w, late, start.Add(80*time.Second)); w.Incident != nil {
		t.Fatal("it opens an incident for what has ended")
	}
	if w, _, _ = advance(p, w, read(events.NoticeOngoing, start.Add(2*time.Minute)), start.Add(2*time.Minute)); w.Incident == nil {
		t.Error("nobody handles maintenance that goes on")
	}
}

// TestMaintenanceOfAReleasedSliceSteersNothing of the incident of the others.
func TestMaintenanceOfAReleasedSliceSteersNothing(t *testing.T) {
	p := policies["everything"]
	w := multi(false)
	w.Slices[1].End.Released = start
	notice := func(s int, status events.NoticeStatus, at time.Time) incident.Evidence {
		return incident.Noticed{
			Origin: incident.Origin{ID: string(status), Time: at, Rank: events.RankAudit}, Slice: w.Slices[s].Name, Incarnation: w.Slices[s].Incarnation, Text: "notice",
			Notice: events.Notice{Status: status, WindowStart: start.Add(2 * time.Hour), WindowEnd: start.Add(6 * time.Hour)},
		}
	}
	w, _, _ = advance(p, w, notice(0, events.NoticePending, start), start)
	now := start.Add(111 * time.Minute)
	w, _, _ = tick(p, w, now)
	if w.Incident == nil {
		t.Fatal("no incident")
	}
	before := *w.Incident
	w, _, _ = advance(p, w, notice(1, events.NoticeOngoing, now), now)
	if w.Incident.Begun || !w.Incident.Deadline.Equal(before.Deadline) {
		t.Errorf("begun %v, until %s, was %s", w.Incident.Begun, w.Incident.Deadline, before.Deadline)
	}
	w, _, _ = advance(p, w, notice(1, events.NoticeGone, now.Add(time.Second)), now.Add(time.Second))
	if w.Incident == nil || w.Incident.Phase != before.Phase {
		t.Errorf("it stands at %s, was %s", phaseOf(w), before.Phase)
	}
}

// TestMaintenanceBesideAStoppedSliceOpensNothing while the owner keeps another slice of the Multislice stopped. Once it runs again, what
// is due is saved.
func TestMaintenanceBesideAStoppedSliceOpensNothing(t *testing.T) {
	for name, p := range map[string]policy.Policy{"saving": policies["everything"], "watching": policies["watch"]} {
		for what, status := range map[string]events.NoticeStatus{"announced": events.NoticePending, "under way": events.NoticeOngoing, "stopped for": ""} {
			w := multi(false)
			b := &w.Slices[1]
			b.Condition, b.State, b.Since, b.Stop.By, b.Stop.At = incident.Stopped, "STOPPED", start.Add(-time.Hour), "ann@example.com", start.Add(-time.Hour)
			now := start
			tell := func(e incident.Evidence) {
				now = now.Add(time.Minute)
				w, _, _ = advance(p, w, e, now)
			}
			read := func() incident.Origin { return incident.Origin{Time: now.Add(time.Minute), Rank: events.RankReading} }
			for range 20 {
				if status == "" {
					tell(incident.Interrupted{Origin: incident.Origin{ID: "i", Time: now, Rank: events.RankAudit}, Slice: "a", Cause: events.CauseMaintenance, Text: "stopped"})
					continue
				}
				tell(incident.Noticed{
					Origin: read(), Slice: "a", Incarnation: w.Slices[0].Incarnation, InAPI: true,
					Notice: events.Notice{Status: status, WindowStart: start.Add(30 * time.Minute), WindowEnd: start.Add(3 * time.Hour)},
				})
				tell(incident.Ticked{})
			}
			if w.Incident != nil || w.Closed != nil || w.Epoch != multi(false).Epoch {
				t.Fatalf("%s, %s: epoch %d, %s, closed %+v", name, what, w.Epoch, tale(w), w.Closed)
			}
			if status == "" {
				continue
			}
			now = start.Add(25 * time.Minute)
			tell(incident.Read{Origin: read(), Slice: "b", Zone: w.Slices[1].Zone, Condition: incident.Ready, Incarnation: w.Slices[1].Incarnation, State: "READY"})
			tell(incident.Ticked{})
			if w.Incident == nil || phaseOf(w) != name {
				t.Errorf("%s, %s: it runs again: %s", name, what, tale(w))
			}
		}
	}
}

// TestStandingMaintenanceOpensOneIncident once its owner has started the slice that stopped the training: not where an incident, a step or a
// person has come after its last word, and not for a slice that cannot be used.
func TestStandingMaintenanceOpensOneIncident(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *incident.Workload, now time.Time)
		opens  bool
	}{
		"nothing has come after it": {func(*incident.Workload, time.Time) {}, true},
		"an incident has ended":     {func(w *incident.Workload, now time.Time) { w.Ended = now }, false},
		"the training does steps":   {func(w *incident.Workload, now time.Time) { w.Progress.At = now }, false},
		"it was cancelled":          {func(w *incident.Workload, _ time.Time) { w.Slices[0].Notice.Declined = true }, false},
		"its window is long over":   {func(w *incident.Workload, now time.Time) { w.Slices[0].Notice.WindowEnd = now.Add(-incident.HealFor) }, false},
		"the slice is gone": {func(w *incident.Workload, now time.Time) {
			w.Slices[0].Condition, w.Slices[0].State, w.Slices[0].Since = incident.Gone, "gone", now
		}, false},
	} {
		w, now := multi(false), start
		b := &w.Slices[1]
		b.Condition, b.State, b.Since, b.Stop.By, b.Stop.At = incident.Stopped, "STOPPED", start.Add(-time.Hour), "ann@example.com", start.Add(-time.Hour)
		tell := func(e incident.Evidence) {
			now = now.Add(time.Minute)
			w, _, _ = advance(policies["everything"], w, e, now)
		}
		word := func() incident.Noticed {
			return incident.Noticed{
				Origin: incident.Origin{Time: now.Add(time.Minute), Rank: events.RankReading}, Slice: "a", Incarnation: w.Slices[0].Incarnation, InAPI: true,
				Notice: events.Notice{Status: events.NoticeOngoing, WindowStart: start.Add(-time.Minute), WindowEnd: start.Add(3 * time.Hour)},
			}
		}
		tell(word())
		now = now.Add(20 * time.Minute)
		c.change(&w, now)
		tell(incident.Read{
			Origin: incident.Origin{Time: now.Add(time.Minute), Rank: events.RankReading}, Slice: "b", Zone: b.Zone, Condition: incident.Ready,
			Incarnation: b.Incarnation, State: "READY",
		})
		tell(incident.Ticked{})
		if opened := w.Incident != nil; opened != c.opens || opened && w.Incident.Cause != events.CauseMaintenance {
			t.Errorf("%s: an incident is open: %t: %s", name, opened, tale(w))
		}
		if !c.opens {
			continue
		}
		for range 600 { // its incident ends, and what still stands opens no other one
			tell(word())
			tell(incident.Ticked{})
		}
		if w.Epoch > 40 || w.Incident != nil && w.Incident.Opened.Sub(start) > time.Hour {
			t.Errorf("%s: epoch %d: %s", name, w.Epoch, tale(w))
		}
	}
}
