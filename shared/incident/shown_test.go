package incident_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// waiting has a reading show the Job in a condition, in which it is since a time by its own objects.
func (n *story) waiting(c evidence.Condition, state string, since time.Time) {
	n.reads("llama-8b", c, func(e *evidence.Read) { e.State, e.Facts.WaitsSince = state, since })
}

// TestALongWaitIsTold: once after an hour, and then every six hours for as long as it lasts. Nothing is asked for, and no incident opens.
func TestALongWaitIsTold(t *testing.T) {
	t.Parallel()
	for state, condition := range map[string]evidence.Condition{
		"creating: its Pod llama-8b-0 waits for a machine: Unschedulable": evidence.Creating,
		"deleting: the finalizer acme.dev/archive holds it":               evidence.Deleting,
		"stopped: it is suspended, and no label names a queue":            evidence.Stopped, // its owner's wait
	} {
		n, since := newJob(t), start.Add(-10*time.Minute)
		n.waiting(condition, state, since)
		var told []time.Duration
		for n.now.Sub(since) < 14*time.Hour {
			before, due := n.w, n.w.Due()
			if sent := n.passes(time.Minute); len(sent) > 0 || condition != evidence.Stopped && n.w.Incident != nil {
				t.Fatalf("%s: %q is asked for:\n%s", state, sent, n.tale())
			}
			for _, u := range incident.Updates(before, n.w, n.now) {
				if u.Step() != "waiting/waiting" {
					continue
				}
				told = append(told, n.now.Sub(since))
				again, waits := n.w.Shown(time.Time{}).WaitUpdate(u.Incident)
				if err := u.Validate(); err != nil || !u.Waiting.Equal(since) || !strings.Contains(strings.Join(u.Happened, ""), state) || due.IsZero() || due.After(n.now) || !waits || again.Incident != u.Incident {
					t.Errorf("%s: due at %v, people hear %+v (%v), and the document tells %+v", state, due, u, err, again)
				}
			}
		}
		if want := []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour}; slices.Equal(told, want) != (condition != evidence.Stopped) || condition == evidence.Stopped && told != nil {
			t.Errorf("%s: it is told after %v", state, told)
		}
	}
}

// TestAWaitEnds: what no longer waits is not told of, and the next wait is told like the first.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	const pod = "creating: its Pod llama-8b-0 waits for a machine"
	n := newJob(t)
	n.waiting(evidence.Creating, pod, start.Add(-2*time.Hour))
	if n.later(time.Minute).give(evidence.Ticked{Unread: true}); len(incident.Updates(incident.Workload{}, n.w, n.now)) > 0 {
		t.Error("nobody could read whether it still waits")
	}
	n.passes(time.Minute)
	u := incident.Updates(incident.Workload{}, n.w, n.now)
	if len(u) != 1 {
		t.Fatalf("told are %+v", u)
	}
	n.reads("llama-8b", evidence.Ready)
	if _, waits := n.w.Shown(time.Time{}).WaitUpdate(u[0].Incident); waits || !n.w.Due().IsZero() {
		t.Errorf("it is usable, waits %v, and is due at %v", waits, n.w.Due())
	}
	n.later(time.Hour).waiting(evidence.Creating, pod, n.now)
	if due := n.w.Due(); !due.Equal(n.now.Add(bounds.RemindFirst)) {
		t.Errorf("the next wait, since %v, is due at %v", n.now, due)
	}
}

// TestOneWordTellsOfAllSlicesThatWait, and the longest wait counts.
func TestOneWordTellsOfAllSlicesThatWait(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	for i := range 40 {
		s := n.w.Slices[0]
		s.Name += "-" + events.Number(int64(i))
		s.Condition, s.State, s.WaitsSince = evidence.Creating, "creating: its Pod waits", start.Add(-time.Duration(40+i)*time.Minute)
		n.w.Slices = append(n.w.Slices, s)
	}
	before := n.w
	n.passes(time.Minute)
	u := incident.Updates(before, n.w, n.now)
	if len(u) != 1 || len(u[0].Happened) != 6 || u[0].Happened[0] != "Job llama-8b-39 is creating: its Pod waits" || u[0].Happened[5] != "and 35 more of its slices wait" {
		t.Fatalf("told are %+v", u)
	}
	if !strings.Contains(u[0].Advice, "kubectl describe job llama-8b-39 --namespace default") {
		t.Errorf("the advice is %s", u[0].Advice)
	}
}

// TestTheStateOfAWorkloadInAWord: each state has its word, and says whether a person is needed.
func TestTheStateOfAWorkloadInAWord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change       func(*incident.Workload)
		policy, path string
		want         view.State
		need         string
	}{
		"it trains":                                   {path: "tick", want: view.Trains},
		"no crew is known":                            {change: crewless, path: "tick", want: view.Trains},
		"no step is known yet":                        {change: func(w *incident.Workload) { w.Training = incident.Training{Seen: start} }, path: "tick", want: view.Beginning},
		"a slice cannot be used":                      {path: "read unhealthy", want: view.Unusable},
		"the owner has it":                            {path: "owner deletes, read gone", want: view.Left},
		"it is finished":                              {path: "finished, its verdict", want: view.Finished},
		"an incident keeps it away":                   {path: "read lost", want: view.Recovers},
		"an incident while it trains":                 {path: "shows movable, tick", want: view.Prepares},
		"an incident is only watched":                 {policy: "watch", path: "read lost", want: view.Watched},
		"an incident asks for a yes":                  {policy: "ask", path: "read lost", want: view.Recovers, need: "pitstop approve "},
		"an incident was given up":                    {policy: "seldom", path: "read lost", want: view.GivenUp, need: "pitstop incident "},
		"it trains again after that":                  {policy: "seldom", path: "read lost, read ready, steps", want: view.Trains},
		"its crew gave up while Pitstop only watched": {policy: "watch", path: "exit 139, gave up, its verdict, tick", want: view.GivenUp, need: "pitstop retry llama-8b"},
		"its crew goes on after that":                 {policy: "watch", path: "exit 139, gave up, its verdict, tick, a minute, started, steps", want: view.Trains},
	} {
		n := newStory(t, true, "llama-8b").under(cmp.Or(c.policy, "everything")).with(c.change)
		if n.goes(c.path); strings.HasSuffix(c.need, " ") {
			c.need += n.about().ID
		}
		v, need := n.w.Shown(n.now), ""
		if v.Need != nil {
			need = v.Need.Command
		}
		if next := v.Row().Next; v.State == view.Unusable && !strings.Contains(next, "an incident opens at ") {
			t.Errorf("%s: it does not say what follows: %q", name, next)
		}
		if v.State != c.want || need != c.need || (v.Wait != nil) != (n.w.Incident != nil) {
			t.Errorf("%s: %s, needs %q; want %s, %q:\n%s", name, v.State, need, c.want, c.need, n.tale())
		}
	}
}

// TestWhyNothingIsDone: each slice that cannot be used, and for which nothing is under way, says why.
func TestWhyNothingIsDone(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"1m":                        "",
		"read unhealthy":            "an incident opens at 2026-11-12T02:05:01Z, unless it passes by itself",
		"read unhealthy, 6m":        "Google may bring it back until 2026-11-12T06:05:01Z",
		"owner stops, read stopped": "ann@example.com",
		"read lost":                 "", // a deletion is under way
		"seldom, read lost, 2h":     "told",
	} {
		policy := "everything"
		if path != strings.TrimPrefix(path, "seldom, ") {
			policy = "seldom"
		}
		n := at(t, policy, true, strings.TrimPrefix(path, "seldom, "))
		if why := n.w.Shown(n.now).Slices[0].Why; want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s: it says %q, want %q:\n%s", path, why, want, n.tale())
		}
	}
}

// TestADeletionThatSomebodyElseBeganIsAskedForAgain once a reading shows that the slice is there all the same.
func TestADeletionThatSomebodyElseBeganIsAskedForAgain(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost, read deleting")
	n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "llama-8b"), NoCall: evidence.Uncalled, Text: "it is already being deleted"})
	n.history("a minute", "deleting", "read deleting", "deleting", "a minute", "deleting", "read lost", "deleting: delete llama-8b")
}

// TestADocumentSaysWhenItIsDue: an open incident is looked at at each tick; else the least time counts at which time alone changes something.
func TestADocumentSaysWhenItIsDue(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]time.Duration{"tick": -1, "read unhealthy": bounds.SickFor, "read lost": 0} {
		n := at(t, "everything", true, path)
		if due := n.w.Due(); due.IsZero() != (want < 0) || want >= 0 && (!due.Equal(n.now.Add(want)) || !n.w.HasDue(n.now)) {
			t.Errorf("%s: it is due at %v, want %v from %v", path, due, want, n.now)
		}
	}
}

// TestAReadingThatNobodyWaitsForIsNotWritten: it shows what is known, or only calls it by another word.
func TestAReadingThatNobodyWaitsForIsNotWritten(t *testing.T) {
	t.Parallel()
	for path, state := range map[string]string{"read unhealthy, 6m": "UNHEALTHY", "read lost, a minute, read gone": "not found"} {
		n := at(t, "everything", true, path)
		n.opens(true)
		s := n.w.Slices[0]
		again := n.read(&s, s.Condition, s.Incarnation)
		again.State = state
		if _, sent, changed := incident.Advance(n.p, n.w, again, n.now); changed || sent != nil {
			t.Errorf("it is %s still: changed %v, and %v is sent", s.Condition, changed, sent)
		}
	}
}

// TestAQuestionIsShownWithItsCost, and with the call that is wanted once it is approved.
func TestAQuestionIsShownWithItsCost(t *testing.T) {
	t.Parallel()
	n := at(t, "ask", true, "read lost").later(time.Hour)
	if v := n.w.Shown(n.now); v.Wait.For != view.Approving || v.Incident.Granted || v.Incident.Cost.Away() != time.Hour || v.Incident.Cost.ChipHours <= 0 || v.Incident.Cost.ChargedTo != "infrastructure" {
		t.Errorf("it waits for %+v, and an hour costs %+v", v.Wait, v.Incident.Cost)
	}
	if v := n.goes("approved").w.Shown(n.now); v.Need != nil || len(v.Requests) != 1 || v.Requests[0].Stage != view.StageWanted {
		t.Errorf("once it is approved it needs %+v, and asks for %+v", v.Need, v.Requests)
	}
	for step, stage := range map[string]view.Stage{"intend delete": view.StageBegun, "does delete": view.StageAccepted} {
		o := *n
		if r := o.goes(step).w.Shown(o.now).Requests; len(r) != 1 || r[0].Stage != stage || !r[0].At.Equal(o.now) {
			t.Errorf("after %s shown is %+v", step, r)
		}
	}
}

// TestWordsAreThoseOfTheProvider, by default those of the Cloud TPU API. Calls are recorded as an audit log names them.
func TestWordsAreThoseOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"cloud-tpu", "", "unknown", "gke"} {
		words := incident.WordsOf(provider)
		if isTPU := words.Slice == "node" && words.Group == "queued resource" && words.Healer == "Google" && strings.HasSuffix(words.DeleteGroup, "queued-resources delete"); isTPU == (provider == "gke") {
			t.Errorf("%q: %+v", provider, words)
		}
		for action, act := range map[events.Action]events.Act{events.ActionCreate: events.ActCreated, events.ActionDelete: events.ActDeleted, events.ActionStart: events.ActStarted} {
			method, known := words.Calls[action]
			if got, whole := (events.Call{Method: method.Slice}).Act(); known && (got != act || whole) {
				t.Errorf("%q: %s is %q, whole %t", provider, method.Slice, got, whole)
			}
			if got, whole := (events.Call{Method: method.Group}).Act(); known && method.Group != "" && (got != act || !whole) {
				t.Errorf("%q: %s is %q, whole %t", provider, method.Group, got, whole)
			}
		}
	}
}
