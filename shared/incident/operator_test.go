package incident_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestACancelledIncidentIsAPersons: nothing more is asked for, whatever time and readings show, until the slice is usable again.
func TestACancelledIncidentIsAPersons(t *testing.T) {
	p := policies["everything"]
	for path, want := range map[string]struct {
		outcome incident.Outcome
		shows   string
	}{
		"preempted":                                        {incident.Released, "read lost"},
		"preempted, read lost":                             {incident.Released, "read lost"},
		"preempted, read lost, intend delete 0":            {incident.Released, "read lost"},
		"host error, read unhealthy":                       {incident.Released, "read unhealthy"},
		"stopped for, read gone":                           {incident.Released, "read gone"},
		"exit 139, gave up, its verdict":                   {incident.Released, "read ready"},
		"exit 139, gave up, its verdict, intend restart 0": {incident.Released, "read ready"},
		"ongoing, intend save 0, accepted save 0":          {incident.Released, "ongoing"},
	} {
		n := at(t, p, true, path, nil)
		id := n.w.Incident.ID
		n = at1(t, p, n, "cancelled")
		if n.w.Incident != nil || n.w.Closed.ID != id || n.w.Closed.Outcome != want.outcome || !strings.Contains(n.w.Closed.Reason, ann.By) {
			t.Errorf("%s: it ended as %+v", path, n.w.Closed)
			continue
		}
		if o := n.w.Orders; len(o) != 1 || o[0].Verb != incident.VerbCancel || o[0].Word != ann || o[0].Incident != id {
			t.Errorf("%s: recorded is %+v", path, o)
		}
		for range 48 * 60 {
			n.now = n.now.Add(time.Minute)
			for _, e := range []incident.Evidence{evidence(n.w, n.now)[want.shows], incident.Ticked{}} {
				var sent []events.Event
				if n.w, sent, _ = advance(p, n.w, e, n.now); n.w.Incident != nil || len(sent) > 0 {
					t.Fatalf("%s: %s later %+v is open, and %d events are sent", path, n.now.Sub(start), n.w.Incident, len(sent))
				}
			}
		}
	}
}

// TestWhatTheTrainingMeetsAfterACancelIsAPersons, until there is a new step: neither its crew's last word nor its silence opens
// anything, and no other attempt is asked for.
func TestWhatTheTrainingMeetsAfterACancelIsAPersons(t *testing.T) {
	p := policies["everything"]
	for _, path := range []string{"exit 139", "exit 139, gave up, its verdict", "exit 139, gave up, its verdict, intend restart 0"} {
		n := at1(t, p, at(t, p, true, path, nil), "cancelled")
		tell := func(after time.Duration, e incident.Evidence) {
			t.Helper()
			n.now = n.now.Add(after)
			var sent []events.Event
			if n.w, sent, _ = advance(p, n.w, e, n.now); n.w.Incident != nil || len(sent) > 0 {
				t.Fatalf("%s: %s later %+v is open, and %d events are sent", path, n.now.Sub(start), n.w.Incident, len(sent))
			}
		}
		line := func(kind events.Report, attempt int) incident.Reported {
			r := events.CrewReport{Report: kind, Attempt: attempt, Step: n.w.Progress.Step}
			if kind == events.ReportExited {
				r.ExitCode = 139
			}
			return incident.Reported{Origin: incident.Origin{ID: "l", Time: n.now, Rank: events.RankUser}, Slice: "llama-8b", Report: r}
		}
		tell(time.Minute, line(events.ReportExited, n.w.Crew.Attempt+1))
		tell(time.Minute, line(events.ReportGaveUp, n.w.Crew.Attempt))
		for range 48 * 60 {
			tell(time.Minute, incident.Ticked{})
			tell(0, beat(n.now, 0, never))
		}
		step := line(events.ReportProgress, n.w.Crew.Attempt)
		step.Report.Step += 10_000
		tell(time.Minute, step)
		exit := line(events.ReportExited, n.w.Crew.Attempt+1)
		exit.Time = n.now.Add(time.Minute)
		if w, _, _ := advance(p, n.w, exit, exit.Time); w.Incident == nil {
			t.Errorf("%s: a failure behind a new step opens nothing", path)
		}
	}
}

// TestAnIncidentEndsWithTheLastSliceThatItIsAbout: what its owner orders in the middle of it, and in vain, is theirs.
func TestAnIncidentEndsWithTheLastSliceThatItIsAbout(t *testing.T) {
	for name, want := range map[string]incident.Outcome{"everything": incident.Released, "watch": incident.Observed} {
		p := policies[name]
		w := quiet(true)
		s := &w.Slices[0]
		s.Condition, s.State, s.End.Reported = incident.Gone, "gone", true
		now := start.Add(8 * time.Hour)
		w, _, _ = advance(p, w, incident.Retried{Word: ann}, now)
		theirs := events.Incarnation{Zone: s.Zone, ID: "9000", Created: now.Add(-time.Second)}
		read := func(after time.Duration, c incident.Condition, life events.Incarnation) {
			now = now.Add(after)
			w, _, _ = advance(p, w, incident.Read{
				Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: c, Incarnation: life, State: string(c),
			}, now)
		}
		read(time.Second, incident.Creating, theirs)
		if w.Incident == nil {
			t.Fatalf("%s: it has ended before", name)
		}
		read(20*time.Second, incident.Gone, events.Incarnation{})
		if w.Incident != nil || w.Closed.Outcome != want || w.Closed.Code != incident.CodeOwner {
			t.Errorf("%s: open is %+v, closed %+v; want it %s", name, w.Incident, w.Closed, want)
		}
	}
}

// at1 gives one more piece of evidence a second later.
func at1(t *testing.T, p policy.Policy, n node, name string) node {
	t.Helper()
	n.now = n.now.Add(time.Second)
	e, ok := evidence(n.w, n.now)[name]
	if !ok {
		t.Fatalf("%s: there is no %q in this state", n.path, name)
	}
	n.w, _, _ = advance(p, n.w, e, n.now)
	return n
}

func TestWhatACancelledIncidentHasOrderedIsCleanedUp(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0", nil)
	n = at1(t, p, n, "cancelled")
	if n.w.Incident == nil || n.w.Incident.Phase != incident.Clearing || n.w.Incident.Clearing != incident.Released {
		t.Fatalf("the incident is %+v", n.w.Incident)
	}
	if after := at1(t, p, n, "cancelled"); len(after.w.Orders) != 1 {
		t.Errorf("a clean-up was cancelled: %+v", after.w.Orders)
	}
}

// TestMaintenanceThatIsCancelledComesUnasked: nobody is asked to save before its window, unless that moves.
func TestMaintenanceThatIsCancelledComesUnasked(t *testing.T) {
	p := policies["spot"]
	n := at(t, p, false, "pending, later, tick, cancelled", nil)
	if n.w.Incident != nil {
		t.Fatalf("it is %s still", n.w.Incident.Phase)
	}
	from := n.now.Sub(start)
	w, sent := until(p, n.w, from, 4*time.Hour)
	if len(sent) > 0 || w.Incident != nil {
		t.Errorf("in its window: %v, %+v", sent, w.Incident)
	}
	n = at1(t, p, n, "moved")
	if _, sent = until(p, n.w, from, 26*time.Hour); len(sent) != 1 {
		t.Errorf("when it has moved: %v", sent)
	}
	n = at(t, p, false, "pending, later, tick, cancelled, ongoing", nil)
	if n.w.Incident != nil {
		t.Errorf("under way it opens %+v", n.w.Incident)
	}
}

// TestAnAnswerIsForItsQuestionAlone: what is asked since, or of another incident, is not approved with it.
func TestAnAnswerIsForItsQuestionAlone(t *testing.T) {
	n := at(t, policies["ask"], true, "preempted, read lost", nil)
	in := n.w.Incident
	for name, e := range map[string]incident.Approved{
		"another incident": {Word: ann, Incident: "llama-8b-20261101-1", Action: in.Asked},
		"another question": {Word: ann, Incident: in.ID, Action: events.ActionMaintain},
	} {
		if _, _, changed := advance(policies["ask"], n.w, e, n.now); changed {
			t.Errorf("%s: it counts", name)
		}
	}
	if q := question(n.w); q != "recreate llama-8b" {
		t.Errorf("it asks %q", q)
	}
	w, sent, _ := advance(policies["ask"], n.w, incident.Approved{Word: ann, Incident: in.ID, Action: in.Asked}, n.now)
	if len(sent) != 1 || asks(sent[0]) != "delete llama-8b" {
		t.Errorf("sent is %v", sent)
	}
	if tl := w.Incident.Timeline; !says(tl, "ann@example.com: approve recreate llama-8b", ann.Why) {
		t.Errorf("the story is %+v", tl)
	}
}

// TestAYesWaitsForAPolicyThatCanBeRead: what is approved is done in the policy's own way, by whoever can read it.
func TestAYesWaitsForAPolicyThatCanBeRead(t *testing.T) {
	for path, want := range map[string]string{"preempted, read lost": "delete llama-8b", "exit 139, gave up, its verdict": "restart llama-8b=7711", "pending, later, tick": "save"} {
		n := at(t, policies["ask"], true, path, nil)
		e := incident.Approved{Word: ann, Incident: n.w.Incident.ID, Action: n.w.Incident.Asked}
		w, sent, _ := advance(policies["unreadable"], n.w, e, n.now)
		if len(sent) > 0 || w.Incident.Phase != incident.Approving || question(w) != "" {
			t.Fatalf("%s: sent is %v, in phase %s", path, sent, w.Incident.Phase)
		}
		if _, _, changed := advance(policies["ask"], w, e, n.now); changed {
			t.Errorf("%s: it is approved twice", path)
		}
		if w, sent, _ = tick(policies["ask"], w, n.now.Add(time.Minute)); len(sent) != 1 || asks(sent[0]) != want {
			t.Errorf("%s: sent is %v, want %s", path, sent, want)
		}
		if in := w.Incident; in.Granted || in.Asked != "" {
			t.Errorf("%s: it is asked still: %+v", path, in)
		}
	}
}

// TestAnEmptyMachineIsNotCreatedUnasked: without a start-up script nothing trains on what comes back, whatever the policy says.
func TestAnEmptyMachineIsNotCreatedUnasked(t *testing.T) {
	lose := func(p policy.Policy, bare bool) node {
		n := at(t, p, true, "preempted", nil)
		e, ok := evidence(n.w, n.now)["read lost"].(incident.Read)
		if !ok {
			t.Fatal("there is no reading of a loss")
		}
		e.Facts.Bare = bare
		n.w, _, _ = advance(p, n.w, e, n.now)
		return n
	}
	n := lose(policies["spot"], true)
	if in := n.w.Incident; in == nil || in.Phase != incident.Approving || in.Asked != events.ActionDelete {
		t.Fatalf("it stands at %+v", in)
	}
	last := n.w.Incident.Timeline[len(n.w.Incident.Timeline)-1]
	if !strings.Contains(last.Reason, "llama-8b has no start-up script") {
		t.Errorf("it says %+v", last)
	}
	e := evidence(n.w, n.now)["approved"]
	w, sent, _ := advance(policies["spot"], n.w, e, n.now)
	if len(sent) != 1 || asks(sent[0]) != "delete llama-8b" {
		t.Errorf("approved, sent is %v", sent)
	}
	if level, _ := w.Allowed(events.ActionDelete, policies["spot"]); level != policy.Yes {
		t.Errorf("the call is allowed: %v", level)
	}
	quiet := quiet(true)
	quiet.Slices[0].Bare = true
	if f := quiet.IfLost(policies["spot"], "llama-8b", start); f.Phase != incident.Approving {
		t.Errorf("foreseen is %+v", f)
	}
	if n := lose(policies["spot"], false); n.w.Incident.Phase != incident.PhaseDeleting {
		t.Errorf("with a script it stands at %+v", n.w.Incident)
	}
	// What may not be replaced at all, or is only watched, is not asked for.
	if n := lose(policies["seldom"], true); n.w.Incident != nil || n.w.Closed.Outcome != incident.Escalated {
		t.Errorf("forbidden, it stands at %+v", n.w.Incident)
	}
	if n := lose(policies["watch"], true); n.w.Incident.Phase != incident.Watching {
		t.Errorf("watched, it stands at %+v", n.w.Incident)
	}
}

func says(tl []incident.Line, text, reason string) bool {
	for _, l := range tl {
		if l.Text == text && l.Reason == reason {
			return true
		}
	}
	return false
}

// TestRetryTriesAgainWhatWasGivenUp: the next reading, or the next tick, asks for it, whatever was spent before.
func TestRetryTriesAgainWhatWasGivenUp(t *testing.T) {
	spent := func(w *incident.Workload) {
		w.Budgets = incident.Budgets{Restarts: incident.MaxRestarts, Recreates: incident.MaxRecreates, Since: start.Add(time.Hour)}
	}
	for name, c := range map[string]struct {
		policy, path string
		spot         bool
		next         string
		want         string
	}{
		"a Spot slice that may not be replaced": {"seldom", "preempted, read lost", true, "read lost", "delete llama-8b"},
		"one that was replaced too often":       {"everything", "preempted, read lost, no verdict hear 0", true, "read lost", "delete llama-8b"},
		"one that is gone":                      {"seldom", "preempted, read gone", true, "35m, read gone, tick", "create llama-8b"},
		"one that Google has not healed":        {"seldom", "host error, read unhealthy, later, tick", false, "1m, read unhealthy, tick", "delete llama-8b"},
		"one that is lost and not Spot":         {"seldom", "host error, read lost, later, tick", false, "1m, read lost, tick", "delete llama-8b"},
		"a training of which the crew gave up":  {"everything", "exit 139, gave up, spent hear 0", true, "tick", "restart llama-8b=7711"},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies[c.policy], c.spot, c.path, spent)
			if n.w.Incident != nil || n.w.Closed.Outcome != incident.Escalated {
				t.Fatalf("it is not escalated: %+v, %+v", n.w.Incident, n.w.Closed)
			}
			old := n.w.Closed.ID
			n.now = n.now.Add(10 * time.Minute)
			n.now = n.now.Add(time.Second)
			var sent []events.Event // at once, where it is asked for on any news
			n.w, sent, _ = advance(policies["everything"], n.w, evidence(n.w, n.now)["retried"], n.now)
			in := n.w.Incident
			if in == nil || in.ID == old || !in.Retried || !in.Down.Equal(n.now) || n.w.Budgets != (incident.Budgets{}) {
				t.Fatalf("after retry: %+v, budgets %+v", in, n.w.Budgets)
			}
			for what := range strings.SplitSeq(c.next, ", ") {
				if d, err := time.ParseDuration(what); err == nil {
					n.now = n.now.Add(d)
					continue
				}
				n.now = n.now.Add(time.Second)
				var out []events.Event
				if what == "tick" {
					n.w, out, _ = tick(policies["everything"], n.w, n.now)
				} else {
					n.w, out, _ = advance(policies["everything"], n.w, evidence(n.w, n.now)[what], n.now)
				}
				sent = append(sent, out...)
			}
			if len(sent) != 1 || asks(sent[0]) != c.want {
				t.Errorf("sent is %v, want %s; the story:\n%s", sent, c.want, tale(n.w))
			}
		})
	}
}

// TestRetryDecidesNothingByItself: whoever gives the word need not know the policy.
func TestRetryDecidesNothingByItself(t *testing.T) {
	for path, next := range map[string]string{"preempted, read lost": "read lost", "exit 139, gave up, its verdict": "tick"} {
		n := at(t, policies["seldom"], true, path, nil)
		n.now = n.now.Add(time.Second)
		w, sent, _ := advance(policies["unreadable"], n.w, evidence(n.w, n.now)["retried"], n.now)
		if w.Incident == nil || len(sent) > 0 {
			t.Fatalf("%s: %+v, sent %v", path, w.Incident, sent)
		}
		n.w = w
		if n = at1(t, policies["seldom"], n, next); n.w.Incident != nil || n.w.Closed.Outcome != incident.Escalated {
			t.Errorf("%s: under a policy that forbids it: %+v", path, n.w.Incident)
		}
	}
}

func TestRetryAsksForCapacityAtOnce(t *testing.T) {
	p := policies["spot"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, read gone, intend create 0, stockout create 0, intend create 0, stockout create 0", nil)
	if in := n.w.Incident; len(in.Zones) != 2 || !n.w.Effects[0].Retry.After(n.now) {
		t.Fatalf("it does not wait: %+v", in)
	}
	n.now = n.now.Add(time.Second)
	w, sent, _ := advance(p, n.w, evidence(n.w, n.now)["retried"], n.now)
	if len(sent) != 1 || asks(sent[0]) != "create llama-8b" || len(w.Incident.Zones) != 0 {
		t.Errorf("sent is %v, refused have %v", sent, w.Incident.Zones)
	}
}

func TestNothingIsRetriedThatGoesOn(t *testing.T) {
	for path, why := range map[string]string{
		"":                         "training goes on: step 48,180",
		"pending, later, tick":     "waits for a person",
		"preempted, read lost":     "waits for a person",
		"preempted":                "is under way (looking)",
		"finished, its verdict":    "the training is finished",
		"abuse":                    "Google suspects abuse",
		"owner deletes, read gone": "its owner deleted every slice",
		"crewless":                 "no crew has been heard",
	} {
		n := node{w: quiet(true), now: start}
		switch path {
		case "":
		case "crewless":
			crewless(&n.w)
		default:
			n = at(t, policies["ask"], true, path, nil)
		}
		if got := nothingToRetry(n.w, n.now); !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", path, got, why)
		}
		if _, _, changed := advance(policies["ask"], n.w, incident.Retried{Word: ann}, n.now); changed {
			t.Errorf("%s: it is retried", path)
		}
	}
	silent := quiet(true)
	silent.Progress.At = start.Add(-incident.ResumeFor)
	if why := silent.NothingToRetry(start); why != "" {
		t.Errorf("a training that is silent: %q", why)
	}
}

func TestEveryWordIsRecorded(t *testing.T) {
	p, w := policies["spot"], quiet(true)
	say := func(e incident.Evidence) {
		t.Helper()
		var sent []events.Event
		if w, sent, _ = advance(p, w, e, start); len(sent) > 0 {
			t.Errorf("%+v sends %v", e, sent)
		}
	}
	say(incident.Paused{Word: ann, Lift: true})
	if len(w.Orders) != 0 {
		t.Errorf("what was not paused was lifted: %+v", w.Orders)
	}
	say(incident.Paused{Word: ann, Until: start.Add(time.Hour)})
	if !w.Pause.Holds(start) || w.Pause.Holds(start.Add(time.Hour+incident.PauseMargin)) || w.Pause.By != ann.By || w.Pause.Why != ann.Why {
		t.Errorf("the pause is %+v", w.Pause)
	}
	say(incident.Paused{Word: ann, Lift: true})
	if w.Pause != nil {
		t.Errorf("the pause is %+v", w.Pause)
	}
	say(incident.Ordered{Word: ann, Verb: incident.VerbAttach, Text: "to policy spot"})
	var got []string
	for _, o := range w.Orders {
		got = append(got, fmt.Sprint(o.Verb, " ", o.Text))
	}
	if s := strings.Join(got, "; "); s != "pause until 2026-11-12T03:00:00Z; resume ; attach to policy spot" {
		t.Errorf("recorded is %q", s)
	}
	for range 2 * incident.MaxOrders {
		say(incident.Ordered{Word: ann, Verb: incident.VerbAttach})
	}
	if len(w.Orders) != incident.MaxOrders {
		t.Errorf("%d orders are kept", len(w.Orders))
	}
}
