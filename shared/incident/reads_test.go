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
	"pitstop.internal/shared/reason"
)

// toRead is what has to be read, and why.
func (n *story) toRead() string {
	var all []string
	for _, r := range n.w.Reads(n.now) {
		what := strings.TrimSpace(string(r.Kind) + " " + r.Slice)
		if !r.Since.IsZero() {
			what += " since " + events.Span(n.now.Sub(r.Since))
		}
		all = append(all, what+": "+r.Why)
	}
	return strings.Join(all, "; ")
}

// TestReads: who has to go and read what. What is known, and what nobody waits for, is not read.
func TestReads(t *testing.T) {
	t.Parallel()
	const silent, nameless = "no step has been reported for longer than is usual", "hosts llama-8b: entries that name its workers are not understood"
	for path, want := range map[string]string{
		"tick":                                   "",
		"read lost":                              "",
		"preempted":                              "slices: the open incident waits for a reading of its slices",
		"half a day":                             "training: " + silent + "; crew llama-8b: " + silent,
		"half a day, a crew that waits":          "training: " + silent,
		"finished":                               "crew llama-8b: a line says that the training is over, and nothing confirms it",
		"pending":                                "saver llama-8b: maintenance is announced, and nothing shows that its crew would save",
		"pending, silence":                       "",
		"read gone":                              "deleter llama-8b since 6 h 0 m: it is gone, and nobody has said why",
		"read gone, owner deletes":               "",
		"read stopped":                           "",
		"read stopped, a while":                  "stopper llama-8b since 1 h 35 m: it is stopped, and nobody has said by whom",
		"read stopped, owner stops, a while":     "",
		"read stopped, a while, unsaid":          "",
		"preempted, read lost, do":               "operation llama-8b: it is not known to have ended",
		"preempted, read lost, do, done delete":  "",
		"unnamed, read unhealthy":                nameless,
		"unnamed, read lost":                     "",
		"unnamed, read unhealthy, read nameless": "",
	} {
		n, unnamed := at(t, "everything", true, "tick"), false
		n.now = start
		if path, unnamed = strings.CutPrefix(path, "unnamed, "); unnamed {
			n.w.Slices[0].Hosts = ""
		}
		if path, nobody := strings.CutSuffix(path, ", read nameless"); n.goes(path) != nil && nobody {
			n.give(evidence.Mapped{Origin: n.reading(), Slice: "llama-8b", Incarnation: n.w.Slices[0].Incarnation})
		}
		if got := n.toRead(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestCrewsAreListenedFor while something about the training is in doubt, as often as the doubt is worth.
func TestCrewsAreListenedFor(t *testing.T) {
	t.Parallel()
	resuming := at(t, "everything", true, "exit 139")
	unproven := at(t, "everything", true, "tick", bare, func(w *incident.Workload) {
		w.Training.Proven, w.Charges = w.Training.High-1, []incident.Charge{{Action: events.ActionRestart, At: start.Add(-time.Hour)}}
		w.Slices[0].Heard.At = start
	})
	for why, c := range map[string]struct {
		n    *story
		from time.Time
	}{
		"the incident is nearly overdue, and no progress has been reported": {resuming, resuming.w.Incident.Status.Until.Add(-bounds.ListenAgain)},
		"only lines tell of progress":                                       {unproven, start.Add(bounds.ProveEvery)},
	} {
		c.n.w.Training.GapSeconds = int64(24 * time.Hour / time.Second) // nothing hangs
		for after, want := range map[time.Duration]bool{-time.Second: false, 0: true} {
			crew := c.n.w.Reads(c.from.Add(after)).Of(incident.ReadCrew, "llama-8b")
			if got := len(crew) == 1 && crew[0].Why == why; got != want {
				t.Errorf("%s: %v after that is read %v", why, after, crew)
			}
		}
	}
}

// TestWhatWasReadIsNotReadAgainAtOnce: an answer settles it, also one that says that nothing can be read.
func TestWhatWasReadIsNotReadAgainAtOnce(t *testing.T) {
	t.Parallel()
	met := map[incident.ReadKind]bool{}
	for _, path := range []string{
		"preempted", "half a day", "finished", "pending", "read gone", "read stopped, a while", "preempted, read lost, do", "preempted, read lost, do, read gone, do",
		"exit 139, 25m", "exit 139, gave up, its verdict, do",
	} {
		n := at(t, "everything", true, path)
		n.w.Slices[0].Hosts = ""
		for _, r := range n.w.Reads(n.now) {
			met[r.Kind] = true
			switch r.Kind {
			case incident.ReadHosts:
				n.give(evidence.Mapped{Origin: n.reading(), Slice: r.Slice, Incarnation: r.Life})
			case incident.ReadCrew, incident.ReadSaver:
				n.give(evidence.Beat{Origin: n.reading(), Slice: r.Slice, Incarnation: r.Life})
			case incident.ReadStopper:
				n.give(evidence.Unsaid{Origin: n.reading(), Slice: r.Slice, Incarnation: r.Life})
			case incident.ReadOperation:
				n.give(evidence.Ended{Origin: n.reading(), Operation: r.Operation})
			case incident.ReadSlices, incident.ReadTraining, incident.ReadDeleter:
				continue
			}
			if again := n.w.Reads(n.now).Of(r.Kind, r.Slice); slices.ContainsFunc(again, func(a incident.ToRead) bool { return a.Operation == r.Operation }) {
				t.Errorf("%s: %s of %s is read again: %s", path, r.Kind, r.Slice, r.Why)
			}
		}
	}
	if len(met) != 8 {
		t.Errorf("read is %v, and there are 8 kinds", met)
	}
}

// TestNobodyListensForACrewBeforeWhatIsLongOver: maintenance may pass without a word of its end.
func TestNobodyListensForACrewBeforeWhatIsLongOver(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "log pending", crewless)
	n.w.Slices[0].Spoke = time.Time{}
	listened := 0
	for range 30 {
		for _, r := range n.w.Reads(n.now).Of(incident.ReadSaver, "") {
			n.give(evidence.Beat{Origin: n.reading(), Slice: r.Slice, Incarnation: r.Life})
			listened++
		}
		n.now = n.now.Add(bounds.ListenEvery)
	}
	n.tick()
	if due := n.w.Due(); listened < 6 || listened > 12 || !due.IsZero() || len(n.w.Reads(n.now)) > 0 {
		t.Errorf("after 30 hours it was listened for %d times, and the next time is %v:\n%v", listened, due, n.w.Reads(n.now))
	}
}

// TestTheAnswersOfTheAuditLog: a stop may have happened long before it was seen, an end not, and silence counts once late entries have come.
func TestTheAnswersOfTheAuditLog(t *testing.T) {
	t.Parallel()
	gone, stopped := at(t, "everything", true, "read gone"), at(t, "everything", true, "read stopped, a while")
	deleter, stopper := gone.w.Reads(gone.now).Of(incident.ReadDeleter, "llama-8b")[0], stopped.w.Reads(stopped.now).Of(incident.ReadStopper, "llama-8b")[0]
	turned := gone.w.Slices[0].Since
	for name, c := range map[string]struct {
		asked  incident.ToRead
		method string
		ago    time.Duration
		want   bool
	}{
		"it was deleted a moment ago":  {deleter, "DeleteNode", 0, true},
		"it was deleted six hours ago": {deleter, "DeleteNode", 6 * time.Hour, true},
		"another life was deleted":     {deleter, "DeleteNode", 6*time.Hour + time.Second, false},
		"it was preempted":             {deleter, "", 0, true},
		"it was stopped before":        {deleter, "StopNode", 0, false},
		"it was stopped":               {stopper, "StopNode", 0, true},
		"it was stopped a week ago":    {stopper, "StopNode", 7 * 24 * time.Hour, true},
		"it was started":               {stopper, "StartNode", 0, true},
		"it was started a week ago":    {stopper, "StartNode", 7 * 24 * time.Hour, false},
	} {
		e := events.Entry{Kind: events.KindCall, Time: turned.Add(-c.ago), Call: events.Call{Method: c.method}}
		if c.method == "" {
			e = events.Entry{Kind: events.KindLoss, Time: turned}
		}
		if got := c.asked.Answers(e); got != c.want {
			t.Errorf("%s: it answers: %v, want %v", name, got, c.want)
		}
	}
	for after, want := range map[time.Duration]bool{0: false, bounds.Grace - time.Second: false, bounds.Grace: true} {
		if got := deleter.Silence(turned.Add(after)); got != want {
			t.Errorf("silence after %s is an answer: %v, want %v", after, got, want)
		}
	}
	for used, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 40 * 24 * time.Hour: 30 * 24 * time.Hour} {
		stopped.w.Slices[0].Used = stopped.now.Add(-used)
		if r := stopped.w.Reads(stopped.now).Of(incident.ReadStopper, "llama-8b"); len(r) != 1 || stopped.now.Sub(r[0].Since) != want {
			t.Errorf("used %s ago: it is searched for in %v", used, r)
		}
	}
}

// TestAnEntryOfATopicProvesNoLoss: anybody may publish there. Patrol has to find the loss in the audit log itself.
func TestAnEntryOfATopicProvesNoLoss(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.play("preempted, it says")
	if n.history("read gone", "grace"); !n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b") {
		t.Error("patrol is not to ask the audit log")
	}
	n.history("preempted", "creating: create llama-8b")
}

// blind lets time pass in which nobody can read the audit log. It fails if the slice is created meanwhile.
func (n *story) blind(d time.Duration) {
	n.Helper()
	for end := n.now.Add(d); n.now.Before(end); {
		n.reads("llama-8b", evidence.Gone).wants()
		if n.passes(time.Minute); len(n.sent) > 0 {
			n.Fatalf("asked for is %q:\n%s", n.sent, n.tale())
		}
	}
}

// TestSilenceOfTheOwnerIsAskedFor: only an answer that names nobody proves it. Where the log cannot be read, a person is told, and nothing is created.
func TestSilenceOfTheOwnerIsAskedFor(t *testing.T) {
	t.Parallel()
	const told, created = "escalated " + reason.CodeAuditUnread, "creating: create llama-8b"
	end := func(n *story) reason.Code { return reason.Code(n.stands(nil)) + " " + n.ended().Code }
	for _, first := range []string{"tick", "preempted, it says"} {
		n := newStory(t, true, "llama-8b")
		n.play(first)
		n.play("read gone")
		n.blind(bounds.Grace + bounds.AuditFor - 5*time.Minute)
		asked := *n
		asked.history("tick", created)
		if n.blind(10 * time.Minute); end(n) != told {
			t.Errorf("%s: no person was told:\n%s", first, n.tale())
		}
		n.blind(24 * time.Hour)
		n.play("retried")
		if in := n.w.Incident; in == nil || !in.Status.Until.Equal(in.Opened.Add(bounds.AuditFor)) {
			t.Fatalf("%s: its word does nothing:\n%s", first, n.tale())
		}
		n.blind(bounds.AuditFor - 5*time.Minute)
		asked = *n
		asked.history("tick", created)
		if n.blind(15 * time.Minute); end(n) != told || !strings.HasPrefix(n.w.Closed.ID, "llama-8b-20261113") {
			t.Errorf("%s: nobody is told again:\n%s", first, n.tale())
		}
	}
}

// TestUnseenLifeThatIsGoneIsToldOnce: a queued resource vanished before any reading showed its node. A person hears of its end once, as of any other.
func TestUnseenLifeThatIsGoneIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"everything", "watch"} {
		n := at(t, policy, true, "tick")
		s, ended := &n.w.Slices[0].Life, map[string]bool{}
		s.Incarnation, s.Condition, s.State = events.Incarnation{}, evidence.Stopped, "SUSPENDING"
		for range 24 * 60 {
			n.reads("llama-8b", evidence.Gone)
			if n.passes(time.Minute); n.w.Closed != nil {
				ended[n.w.Closed.ID] = true
			}
		}
		if len(ended) != 1 {
			t.Errorf("policy %s: %d incidents tell of it:\n%s", policy, len(ended), n.tale())
		}
	}
}
