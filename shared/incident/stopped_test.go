package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// stopped tells how a workload of one worker came to be stopped.
type stopped struct {
	early []events.Event
	t     *testing.T
	p     policy.Policy
	w     incident.Workload
	now   time.Time
}

func (s *stopped) tell(after time.Duration, e incident.Evidence) []events.Event {
	s.t.Helper()
	s.now = s.now.Add(after)
	w, sent, _ := advance(s.p, s.w, e, s.now)
	s.w = w
	if *third && sent == nil { // what follows from silence may follow at once, and not with the next tick
		sent, s.early = s.early, nil
	}
	if _, is := e.(incident.Unsaid); is {
		s.early = sent
	}
	return sent
}

func (s *stopped) read(after time.Duration, c incident.Condition) {
	s.t.Helper()
	n := s.w.Slices[0]
	s.tell(after, incident.Read{
		Origin: incident.Origin{Time: s.now.Add(after), Rank: events.RankReading}, Slice: n.Name, Zone: n.Zone, Condition: c,
		Incarnation: n.Incarnation, State: strings.ToUpper(string(c)),
	})
}

func (s *stopped) called(method string, at time.Duration) {
	s.t.Helper()
	act, _ := events.Call{Method: method}.Act()
	s.tell(0, incident.Called{
		Origin: incident.Origin{Time: s.now.Add(at), Rank: events.RankAudit}, Slice: s.w.Slices[0].Name, Act: act, Method: method, Principal: "ann@example.com",
	})
}

// unsaid has the audit log asked, late enough.
func (s *stopped) unsaid() {
	s.t.Helper()
	s.tell(incident.Grace, incident.Unsaid{
		Origin: incident.Origin{Time: s.now.Add(incident.Grace), Rank: events.RankReading}, Slice: s.w.Slices[0].Name, Incarnation: s.w.Slices[0].Incarnation,
	})
}

// TestWhatItsOwnerStoppedIsNotStarted, whenever and in which order that is learned.
func TestWhatItsOwnerStoppedIsNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		play   func(s *stopped)
		starts bool
	}{
		"nobody says who": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.unsaid()
		}, true},
		"its owner, told before it is seen": {func(s *stopped) {
			s.called("StopNode", 0)
			s.read(time.Minute, incident.Stopped)
			s.unsaid()
		}, false},
		"its owner, told half an hour late": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.tell(30*time.Minute, incident.Ticked{})
			s.called("StopNode", -31*time.Minute)
			s.unsaid()
		}, false},
		"its owner, as the audit log says in the same answer": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.unsaid()
			s.called("StopNode", -incident.Grace-time.Minute)
		}, false},
		"the audit log could not be asked": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.tell(24*time.Hour, incident.Ticked{})
		}, false},
		"the audit log was asked too early": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.tell(time.Minute, incident.Unsaid{Slice: "llama-8b", Incarnation: s.w.Slices[0].Incarnation})
			s.tell(time.Hour, incident.Ticked{})
		}, false},
		"the audit log was asked for a former stop": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.unsaid()
			s.read(time.Second, incident.Ready)
			s.read(time.Minute, incident.Stopped)
			s.tell(time.Hour, incident.Ticked{})
		}, false},
		"it was stopped when it was first seen": {func(s *stopped) {
			s.w.Slices[0].Condition, s.w.Slices[0].State = incident.Stopped, "STOPPED"
			s.unsaid()
		}, false},
		"its owner stopped and started it the day before": {func(s *stopped) {
			s.called("StopNode", 0)
			s.read(time.Minute, incident.Stopped)
			s.called("StartNode", time.Hour)
			s.read(2*time.Hour, incident.Ready)
			s.read(24*time.Hour, incident.Stopped)
			s.unsaid()
		}, true},
		"its owner stopped and started it the day before, and the start was never told": {func(s *stopped) {
			s.called("StopNode", 0)
			s.read(time.Minute, incident.Stopped)
			s.read(2*time.Hour, incident.Ready)
			s.read(24*time.Hour, incident.Stopped)
			s.called("StopNode", -27*time.Hour) // the audit log tells of it again
			s.unsaid()
		}, true},
		"it is Pitstop's no more": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.w.Slices[0].End.Released = s.now
			s.unsaid()
		}, false},
		"the training is finished": {func(s *stopped) {
			s.read(0, incident.Stopped)
			s.w.Crew.Finished = true
			s.unsaid()
		}, false},
		"a person suspended its queued resource": {func(s *stopped) {
			s.w.Slices[0].Group = "qr"
			s.read(0, incident.Stopped)
			s.unsaid()
		}, false},
		"it has several workers": {func(s *stopped) {
			s.w.Slices[0].Workers = 4
			s.read(0, incident.Stopped)
			s.unsaid()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stopped{t: t, p: policies["everything"], w: quiet(false), now: start}
			single(&s.w)
			c.play(s)
			sent := s.tell(time.Minute, incident.Ticked{})
			starts := len(sent) == 1
			if starts {
				r, ok := sent[0].(events.RecoveryRequested)
				starts = ok && r.Action == events.ActionStart && r.Slice == "llama-8b" && r.Incarnation.Same(life(1)) && s.w.Incident.Phase == incident.Starting
			}
			if starts != c.starts {
				t.Errorf("started %v, want %v; sent %v, slice %+v, incident %+v, closed %+v", starts, c.starts, sent, s.w.Slices[0], s.w.Incident, s.w.Closed)
			}
		})
	}
}

// TestAStoppedSliceIsNotOverlooked: whatever the policy says, a training that stands still is told of once.
func TestAStoppedSliceIsNotOverlooked(t *testing.T) {
	for name, c := range map[string]struct {
		policy  string
		workers int
		phase   incident.Phase
		outcome incident.Outcome
		reason  string
	}{
		"everything": {"everything", 1, incident.Starting, "", ""},
		"ask":        {"ask", 1, incident.Approving, "", ""},
		"no":         {"spot", 1, "", incident.Escalated, "the switch start_stopped is no"},
		"watch":      {"watch", 1, incident.Watching, "", ""},
		"unreadable": {"unreadable", 1, either(incident.Healing, incident.Starting, "label"), "", ""},
		"workers":    {"everything", 4, "", incident.Escalated, "several workers"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stopped{t: t, p: policies[c.policy], w: quiet(false), now: start}
			single(&s.w)
			s.w.Slices[0].Workers = c.workers
			s.read(0, incident.Stopped)
			if due := due(s.w); !due.Equal(start.Add(incident.Grace)) {
				t.Errorf("due at %v", due)
			}
			s.unsaid()
			s.tell(time.Second, incident.Ticked{})
			in := s.w.Incident
			if c.outcome != "" {
				in = s.w.Closed
			}
			if in == nil || in.Outcome != c.outcome || c.phase != "" && in.Phase != c.phase || !strings.Contains(in.Reason, c.reason) {
				t.Fatalf("%+v, closed %+v", s.w.Incident, s.w.Closed)
			}
			if c.outcome == "" {
				return
			}
			if !strings.Contains(in.Advice, "by hand") {
				t.Errorf("advice %q", in.Advice)
			}
			for range 100 {
				s.read(time.Minute, incident.Stopped)
				s.tell(time.Minute, incident.Ticked{})
			}
			if s.w.Incident != nil || s.w.Closed != nil {
				t.Errorf("it is told again: %+v", s.w)
			}
		})
	}
}

// TestAStartIsFollowedToItsEnd: what was started trains again, or a person hears that it does not.
func TestAStartIsFollowedToItsEnd(t *testing.T) {
	begin := func() (*stopped, events.Request) {
		s := &stopped{t: t, p: policies["everything"], w: quiet(false), now: start}
		single(&s.w)
		s.read(0, incident.Stopped)
		s.unsaid()
		sent := s.tell(time.Minute, incident.Ticked{})
		asked, ok := sent[0].(events.RecoveryRequested)
		if !ok {
			t.Fatalf("sent %v", sent)
		}
		r := asked.Request
		s.tell(time.Second, incident.Intended{Request: r, RequestID: "r"})
		return s, r
	}
	s, r := begin()
	s.tell(time.Second, incident.Answered{Request: r, Operation: "op", Text: "accepted"})
	s.read(time.Minute, incident.Unhealthy)
	s.read(3*time.Minute, incident.Ready)
	if s.w.Incident == nil || s.w.Incident.Phase != incident.Resuming || !s.w.Incident.Down.Equal(start) {
		t.Fatalf("%+v", s.w.Incident)
	}
	s, r = begin()
	for s.w.Incident != nil && s.now.Before(start.Add(24*time.Hour)) {
		effect := s.w.Effects[0]
		r.Epoch, r.Attempt = effect.Epoch, effect.Attempt
		s.tell(time.Second, incident.Intended{Request: r, RequestID: "r"})
		s.tell(time.Second, incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.Stockout, Message: "no more capacity"}})
		s.read(time.Minute, incident.Stopped)
		s.tell(time.Minute, incident.Ticked{})
	}
	if c := s.w.Closed; c == nil || c.Outcome != incident.Escalated || !strings.Contains(c.Reason, "no more capacity") || !strings.Contains(c.Advice, "tpu-vm start llama-8b") {
		t.Errorf("%+v, %+v", s.w.Incident, c)
	}
}

// TestWhatItsOwnerStoppedIsNotReplaced, whatever else is learned of it before, after and beside.
func TestWhatItsOwnerStoppedIsNotReplaced(t *testing.T) {
	line := func(s *stopped, r events.CrewReport) incident.Reported {
		return incident.Reported{Origin: incident.Origin{ID: "l", Time: s.now, Rank: events.RankUser}, Slice: s.w.Slices[0].Name, Report: r}
	}
	ended := events.CrewReport{Report: events.ReportExited, Attempt: 100, Signal: "SIGTERM", ExitCode: 143, Interrupted: true}
	for name, play := range map[string]func(s *stopped){
		"its maintenance is due": func(s *stopped) {
			s.tell(0, incident.Noticed{
				Origin: incident.Origin{ID: "n", Time: s.now, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: s.w.Slices[0].Incarnation, Text: "notice",
				Notice: events.Notice{Status: events.NoticePending, WindowStart: s.now.Add(2 * time.Hour), WindowEnd: s.now.Add(6 * time.Hour)},
			})
			s.called("StopNode", 0)
			s.read(time.Minute, incident.Stopped)
		},
		"the training ended of it, and its line is late": func(s *stopped) {
			s.called("StopNode", 0)
			s.read(time.Minute, incident.Stopped)
			s.tell(5*time.Minute, line(s, ended))
		},
		"the training ended of it before it was seen": func(s *stopped) {
			s.called("StopNode", 0)
			s.tell(10*time.Second, line(s, ended))
			s.read(time.Minute, incident.Stopped)
		},
		"the guest went down of it": func(s *stopped) {
			s.called("StopNode", 0)
			s.tell(10*time.Second, incident.Interrupted{
				Origin: incident.Origin{ID: "g", Time: s.now, Rank: events.RankAudit}, Slice: "llama-8b", Cause: events.CauseGuest, Text: "guest",
			})
			s.read(time.Minute, incident.Stopped)
		},
		"another slice of its Multislice is lost": func(s *stopped) {
			other := s.w.Slices[0]
			other.Name, other.Incarnation = "b", life(50)
			s.w.Slices = append(s.w.Slices, other)
			s.called("StopNode", 0)
			s.read(time.Minute, incident.Stopped)
			s.tell(time.Minute, incident.Read{
				Origin: incident.Origin{Time: s.now.Add(time.Minute), Rank: events.RankReading}, Slice: "b", Zone: other.Zone, Condition: incident.Lost,
				Incarnation: other.Incarnation, State: "TERMINATED",
			})
		},
	} {
		for _, spot := range []bool{true, false} {
			s := &stopped{t: t, p: policies["everything"], w: quiet(spot), now: start}
			single(&s.w)
			play(s)
			for range 8 * 60 {
				for _, e := range s.tell(time.Minute, incident.Ticked{}) {
					if r, ok := e.(events.RecreateRequested); ok {
						t.Fatalf("%s, spot %v: %s later %s is asked for", name, spot, s.now.Sub(start), asks(r))
					}
				}
			}
			if s.w.Incident != nil {
				t.Errorf("%s, spot %v: the incident is open after 8 hours: %s", name, spot, s.w.Incident.Phase)
			}
			if why := s.w.NothingToRetry(s.now); !strings.Contains(why, "its owner stopped it") {
				t.Errorf("%s, spot %v: it may be retried: %q", name, spot, why)
			}
		}
	}
}

// madeStopped has a slice replaced by one that is stopped before it was seen usable.
const madeStopped = "host error, read lost, later, tick, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours stopped"

// TestWhatIsOnlyStoppedIsNeverDeleted: it is started, or left to a person, also where Google's own recovery was waited for. What
// nobody waits for any more is another matter.
func TestWhatIsOnlyStoppedIsNeverDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		play func(s *stopped)
		want string
	}{
		"a person has it tried again after six hours": {func(s *stopped) {
			s.p = policies["seldom"]
			s.read(0, incident.Stopped)
			s.unsaid()
			s.tell(time.Minute, incident.Ticked{})
			s.p = policies["everything"]
			s.tell(6*time.Hour, incident.Retried{Word: ann})
			s.read(time.Minute, incident.Stopped)
		}, "start"},
		"the policy could not be read at first": {func(s *stopped) {
			s.p = policies["unreadable"]
			s.read(0, incident.Stopped)
			s.unsaid()
			s.tell(time.Minute, incident.Ticked{})
			s.p = policies["spot"]
		}, "escalated policy_no"},
		"nobody could be asked": {func(s *stopped) {
			s.tell(0, incident.Interrupted{
				Origin: incident.Origin{ID: "h", Time: s.now, Rank: events.RankAudit}, Slice: "llama-8b", Cause: events.CauseHostError, Text: "host error",
			})
			s.read(time.Minute, incident.Stopped)
		}, "escalated unread"},
		"it was made for one that was lost, and stopped before it was seen usable": {func(s *stopped) {
			n := at(t, s.p, false, madeStopped, single)
			s.w, s.now = n.w, n.now
			s.unsaid()
		}, "start"},
		"it was made, stopped, and nobody could be asked": {func(s *stopped) {
			n := at(t, s.p, false, madeStopped, single)
			s.w, s.now = n.w, n.now
		}, "escalated unread"},
	} {
		s := &stopped{t: t, p: policies["everything"], w: quiet(false), now: start}
		single(&s.w)
		c.play(s)
		got := ""
		for range 8 * 60 {
			for _, e := range s.tell(time.Minute, incident.Ticked{}) {
				if text := asks(e); text != "" && got == "" {
					got = text
				}
			}
			if s.w.Incident == nil && got == "" && s.w.Closed != nil {
				got = string(s.w.Closed.Outcome) + " " + string(s.w.Closed.Code)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAStartBesideALoss: what is on its way up, or only stopped, is no part of what is lost, and what is lost is not forgotten
// over it.
func TestAStartBesideALoss(t *testing.T) {
	started := [][2]string{
		{"a read stopped", "peace"},
		{"later", "peace"},
		{"a unsaid", "peace"},
		{"tick", "starting: start"},
		{"do", "starting"},
	}
	for name, c := range map[string]struct {
		of     func(bool) incident.Workload
		policy string
		steps  [][2]string
	}{
		"another slice is lost while one is started": {singles, "everything", append(started[:5:5], [][2]string{
			{"b read lost", "starting"},
			{"a read unhealthy", "starting"}, // on its way
			{"a read ready", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete b"},
		}...)},
		"what is started is lost itself": {singles, "everything", append(started[:5:5], [][2]string{
			{"a read lost", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete a"},
		}...)},
		"another slice is lost, and the start comes to nothing": {singles, "everything", append(started[:5:5], [][2]string{
			{"b read lost", "starting"},
			{"later", "starting"},
			{"tick", "healing"},
			{"later", "healing"}, // four hours since it was lost
			{"tick", "deleting: delete b"},
		}...)},
		"another slice is gone, and the start comes to nothing": {singles, "everything", append(started[:5:5], [][2]string{
			{"b read gone", "starting"},
			{"later", "starting"},
			{"tick", "creating: create b"}, // for longer than anybody's word about it takes
		}...)},
		"another slice is lost while the start waits for a person": {singles, "ask", append(started[:3:3], [][2]string{
			{"tick", "approving"},
			{"b read lost", "approving"},
			{"tick", "approving"},
			{"b read gone", "approving"},
			{"tick", "approving"},
		}...)},
		"the start of one does not begin the time of the other anew": {singles, "everything", [][2]string{
			{"b read lost", "healing"},
			{"a read stopped", "healing"},
			{"a while", "healing"},
			{"a unsaid", "healing"},
			{"tick", "starting: start"},
			{"do", "starting"},
			{"a read ready", "healing"},
			{"later", "healing"},
			{"past four hours", "healing"},
			{"tick", "deleting: delete b"},
		}},
		"one is stopped by nobody knows whom, and the other is lost": {singles, "everything", [][2]string{
			{"b read lost", "healing"},
			{"a read stopped", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete b"},
		}},
		"its owner's own order is still being made when the start is done": {func(bool) incident.Workload {
			w := singles(false)
			b := &w.Slices[1]
			b.Condition, b.State, b.Since, b.NeverUsable = incident.Creating, "CREATING", start.Add(-5*time.Hour), true
			return w
		}, "everything", append(started[:5:5], [][2]string{
			{"a read ready", "healing"},
			{"tick", "healing"},
		}...)},
		"the other was found stopped, and the start comes to nothing": {func(bool) incident.Workload {
			w := singles(false)
			b := &w.Slices[1]
			b.Condition, b.State, b.Since = incident.Stopped, "STOPPED", start.Add(-time.Hour)
			return w
		}, "everything", append(started[:5:5], [][2]string{
			{"later", "starting"},
			{"tick", "escalated"},
		}...)},
		"a third is gone while one is lost and another is started": {func(bool) incident.Workload {
			w := singles(false)
			c := w.Slices[1]
			c.Name, c.Hosts, c.Incarnation = "c", "t1v-n-3f2a9c03", life(90)
			w.Slices = append(w.Slices, c)
			return w
		}, "everything", [][2]string{
			{"b read lost", "healing"},
			{"a read stopped", "healing"},
			{"a while", "healing"},
			{"a unsaid", "healing"},
			{"tick", "starting: start"},
			{"do", "starting"},
			{"c read gone", "starting"},
			{"a while", "starting"},
			{"c unsaid", "starting"},
			{"a read ready", "creating: create c"}, // Google may still bring b back
		}},
		"its owner suspends a queued resource that was lost": {func(bool) incident.Workload {
			w := queued(false)
			w.Slices = w.Slices[:1]
			return w
		}, "everything", [][2]string{
			{"a read lost", "healing"},
			{"a read stopped", "healing"},
			{"later", "healing"},
			{"tick", "escalated"},
		}},
		"it was started by hand while a person was asked": {singles, "ask", append(started[:3:3], [][2]string{
			{"tick", "approving"},
			{"b read unhealthy", "approving"},
			{"a read ready", "approving"},
			{"tick", "healing"},
		}...)},
		"the crew of a new one spoke before it was stopped": {spotSingles, "everything", [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"a read ours made", "creating"},
			{"a mapped", "creating"},
			{"a started", "creating"},
			{"a read stopped", "healing"},
		}},
		"it is only stopped when it is to be deleted": {singles, "everything", [][2]string{
			{"b read lost", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete b"},
			{"b read stopped", "healing"},
		}},
		"the other is gone, and its owner may have deleted it, when the time of the stopped one is over": {singles, "everything", [][2]string{
			{"b read lost", "healing"},
			{"b read stopped", "healing"},
			{"later", "healing"},
			{"a read gone", "grace"},
			{"tick", "grace"},
			{"a while", "grace"},
			{"a unsaid", "grace"},
			{"tick", "creating: create a"},
		}},
		"it was lost, and is shown as stopped then": {singles, "everything", [][2]string{
			{"b read lost", "healing"},
			{"b read stopped", "healing"},
			{"a while", "healing"},
			{"b unsaid", "healing"},
			{"tick", "starting: start"},
		}},
		"it is stopped once it is being deleted": {singles, "everything", [][2]string{
			{"b read lost", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete b"},
			{"do", "deleting"},
			{"b read stopped", "deleting"},
		}},
		"one is only stopped while the other is created": {spotSingles, "everything", [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"b read lost", "deleting: delete b"},
			{"b read stopped", "creating"},
			{"a read ours", "healing"},
			{"b read stopped", "healing"},
			{"a while", "healing"},
			{"b unsaid", "healing"},
			{"tick", "starting: start"},
			{"do", "starting"},
			{"b read ready", "admitting: admit a=7712 b=7760"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := node{w: c.of(false), now: start, path: name}
			rest := c.steps
			for i := range c.steps {
				if c.steps[i][0] != "past four hours" {
					continue
				}
				n = plays(t, policies[c.policy], n, c.steps[:i])
				if n.now = start.Add(incident.HealFor + time.Minute); n.w.Incident.Deadline.After(n.now) {
					t.Fatalf("%s: it is waited for until %s", n.path, n.w.Incident.Deadline)
				}
				rest = c.steps[i+1:]
			}
			n = plays(t, policies[c.policy], n, rest)
			if got := n.w.Budgets.Recreates; got > 1 {
				t.Errorf("%d replacements are charged, and there was one", got)
			}
		})
	}
}

// TestWhatWasMadeElsewhereAndStoppedIsLetIn: no crew may put itself into the place of one in another zone, so whoever starts it has
// to say so.
func TestWhatWasMadeElsewhereAndStoppedIsLetIn(t *testing.T) {
	w := quiet(true)
	single(&w)
	w.Crew.LeaseAttempt = 1
	w.Slices[0].Condition, w.Slices[0].Incarnation.Zone, w.Slices[0].Zone = incident.Stopped, far, far
	admitted(&w.Slices[0], life(1))
	w.Slices[0].Since = start
	w, _, _ = advance(policies["everything"], w, incident.Retried{Word: ann}, start.Add(time.Hour))
	for now := start.Add(time.Hour); w.Incident != nil && now.Before(start.Add(24*time.Hour)); now = now.Add(time.Minute) {
		w, _, _ = advance(policies["everything"], w, learned(w, w.Slices[0], now)["read stopped"], now)
		w, _, _ = tick(policies["everything"], w, now)
	}
	if c := w.Closed; c == nil || c.Code != incident.CodeUnread || !strings.Contains(c.Advice, "tpu-vm start llama-8b") || !strings.Contains(c.Advice, either("pitstop retry llama-8b", "", "let in")) {
		t.Errorf("%+v, %+v", w.Incident, c)
	}
	if !*third {
		return
	}
	now := start.Add(24 * time.Hour)
	w, _, _ = advance(policies["everything"], w, learned(w, w.Slices[0], now)["read ready"], now)
	_, sent, _ := tick(policies["everything"], w, now.Add(time.Minute))
	if len(sent) != 1 || asks(sent[0]) != "admit llama-8b=7711" {
		t.Errorf("it was started, and asked for is %v", sent)
	}
}

// TestAStartIsNotRepeatedForEver beside a slice that is now lost and now sick, so that its time never ends.
func TestAStartIsNotRepeatedForEver(t *testing.T) {
	n := node{w: singles(false), now: start}
	starts := 0
	for minute := range 48 * 60 {
		n.now = n.now.Add(time.Minute)
		b := "b read ready"
		switch {
		case minute > 60 && minute/60%2 == 0:
			b = "b read unhealthy"
		case minute > 60:
			b = "b read lost"
		}
		for _, what := range []string{"a read stopped", b, "a unsaid", "a tick"} {
			var sent []events.Event
			n.w, sent, _ = advance(policies["everything"], n.w, evidenceOfBoth(n.w, n.now)[what], n.now)
			for _, e := range sent {
				if asks(e) == "start" {
					starts++
				}
			}
			if n.w.Incident != nil {
				n = do(t, policies["everything"], n)
			}
		}
		if n.w.Closed != nil {
			break
		}
	}
	if c := n.w.Closed; starts == 0 || starts > incident.MaxStarts || c == nil || c.Outcome != incident.Escalated {
		t.Errorf("%d starts, and it ended %+v", starts, c)
	}
}
