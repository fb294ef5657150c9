package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// deletions are the requests among events that delete.
func deletions(sent []events.Event) (all []events.RecreateRequested) {
	for _, e := range sent {
		if r, ok := e.(events.RecreateRequested); ok && r.Action == events.ActionDelete {
			all = append(all, r)
		}
	}
	return all
}

// escalatedAt is a training that its crew has given up on twice, with the same error: a person's turn.
func escalatedAt(t *testing.T, p policy.Policy, but func(*incident.Workload)) node {
	t.Helper()
	n := at(t, p, true, "exit 1, gave up, its verdict, "+again+"exit 1, gave up, its verdict", but)
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Escalated {
		t.Fatalf("it is %+v, not escalated", n.w.Incident)
	}
	return n
}

// pass lets time pass, up to the end of an incident, with a crew that writes on its machine what it does, and returns what was asked
// to be deleted.
func pass(p policy.Policy, n node, d time.Duration, crew func(now time.Time) incident.Beat) (node, []events.RecreateRequested) {
	var all []events.RecreateRequested
	for until := n.now.Add(d); n.now.Before(until); {
		n.now = n.now.Add(time.Minute)
		var sent []events.Event
		open := n.w.Incident != nil
		if n.w.Reads(n.now).Has(incident.ReadCrew, "llama-8b") {
			n.w, _, _ = incident.Advance(p, n.w, crew(n.now), n.now)
		}
		n.w, sent, _ = tick(p, n.w, n.now)
		all = append(all, deletions(sent)...)
		if open && n.w.Incident == nil {
			break
		}
		if e, ok := evidence(n.w, n.now)["found verify 0"]; ok {
			n.w, _, _ = incident.Advance(p, n.w, e, n.now)
		}
	}
	return n, all
}

// waiting is a crew that runs nothing.
func waiting(now time.Time) incident.Beat {
	b := beat(now, 0, 40*24*time.Hour)
	b.Runs = false
	return b
}

// TestIdleSlicesAreDeletedWhereThePolicySaysSo: an hour behind the escalation, once the crew says that it runs nothing and the last
// checkpoint is verified; a person is told before and after, and has it brought back with one word.
func TestIdleSlicesAreDeletedWhereThePolicySaysSo(t *testing.T) {
	p := policies["everything"]
	n := escalatedAt(t, p, nil)
	first := n.w.Closed
	if idle := n.w.Idle; idle == nil || idle.Incident != first.ID || !idle.Due.Equal(n.now.Add(time.Hour)) {
		t.Fatalf("left to be deleted is %+v", n.w.Idle)
	}
	if !strings.Contains(first.Advice, "deleted in 1 h") || !strings.Contains(first.Advice, "pitstop cancel "+first.ID) {
		t.Errorf("a person is not told of it: %s", first.Advice)
	}
	if us := incident.Updates(at(t, p, true, "exit 1", nil).w, n.w); len(us) != 1 || !us[0].DeleteAt.Equal(n.w.Idle.Due) {
		t.Errorf("told is %+v", us)
	}
	early, asked := pass(p, n, 59*time.Minute, waiting)
	if len(asked) > 0 || early.w.Incident != nil {
		t.Fatalf("within the hour %+v is open, and %d deletions are asked for", early.w.Incident, len(asked))
	}
	n, asked = pass(p, early, 10*time.Minute, waiting)
	if len(asked) != 1 || !asked[0].Incarnation.Same(life(1)) || asked[0].Zone != "us-west4-a" || asked[0].Incident == first.ID {
		t.Fatalf("asked for is %+v; the incident is %+v", asked, n.w.Incident)
	}
	for _, what := range []string{"intend delete 0", "accepted delete 0", "read deleting", "read gone"} {
		n = at1(t, p, n, what)
	}
	if in := n.w.Closed; n.w.Incident != nil || in.Outcome != incident.Escalated || in.Code != incident.CodeIdleDeleted ||
		!strings.Contains(in.Reason, "when_escalated is delete") || !strings.Contains(in.Advice, "pitstop retry llama-8b") {
		t.Fatalf("it ended as %+v", in)
	}
	n, asked = pass(p, n, 48*time.Hour, waiting)
	if n.w.Incident != nil || len(asked) > 0 || n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b") {
		t.Fatalf("what was deleted on purpose is missed: %+v", n.w.Incident)
	}
	n = at1(t, p, at1(t, p, n, "retried"), "read gone")
	if in := n.w.Incident; in == nil || in.Phase != incident.PhaseCreating || len(n.w.Effects) != 1 || n.w.Effects[0].Action != events.ActionCreate {
		t.Errorf("retry does not bring it back: %+v", in)
	}
}

// TestASliceThatWasDeletedForBeingIdleIsBroughtBackAtOnce: the audit log has nothing to say of it that Pitstop does not know.
func TestASliceThatWasDeletedForBeingIdleIsBroughtBackAtOnce(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, idle+", "+waits+", found verify 0, tick, intend delete 0, accepted delete 0, read gone, retried, read gone", nil)
	if n.w.Incident == nil || n.w.Incident.Phase != incident.PhaseCreating {
		t.Errorf("it is %+v", n.w.Incident)
	}
}

// TestAnyWordKeepsWhatIsIdle: of a person, of the owner, or of the training itself; before the hour is over, and while what
// speaks against the deletion is looked for.
func TestAnyWordKeepsWhatIsIdle(t *testing.T) {
	p := policies["everything"]
	words := map[string]func(n node) incident.Evidence{
		"pause":  func(node) incident.Evidence { return incident.Paused{Word: ann} },
		"drill":  func(node) incident.Evidence { return incident.Ordered{Word: ann, Verb: incident.VerbDrill} },
		"attach": func(node) incident.Evidence { return incident.Ordered{Word: ann, Verb: incident.VerbAttach} },
		"retry":  func(node) incident.Evidence { return incident.Retried{Word: ann} },
		"cancel": func(n node) incident.Evidence { return incident.Cancelled{Word: ann, Incident: n.w.Idle.Incident} },
	}
	for _, what := range []string{"owner deletes", "owner creates", "owner stops", "owner starts", "read foreign", "read elsewhere", "started", "progress", "finished", "preempted", "ongoing"} {
		words[what] = func(n node) incident.Evidence { return evidence(n.w, n.now)[what] }
	}
	for what, word := range words {
		n, _ := pass(p, escalatedAt(t, p, nil), 50*time.Minute, waiting)
		n.now = n.now.Add(time.Second)
		if n.w, _, _ = incident.Advance(p, n.w, word(n), n.now); n.w.Idle != nil {
			t.Errorf("%s: it is still to be deleted: %+v", what, n.w.Idle)
		}
	}
	for what, code := range map[string]incident.Code{
		"cancelled": incident.CodeCancelled, "owner deletes": incident.CodeOwner, "owner creates": incident.CodeTakenOver, "owner stops": incident.CodeOwner,
		"read foreign": incident.CodeTakenOver, "read gone": incident.CodeTakenOver, "started": incident.CodeMayTrain, "old steps": incident.CodeMayTrain, "another attempt runs": incident.CodeMayTrain,
		"progress": "", "finished": incident.CodeMayTrain, "abuse": incident.CodeAbuse, "read stopped": incident.CodeNotReady, "read unhealthy": incident.CodeNotReady,
		"held delete 0": incident.CodePaused, "forbidden delete 0": incident.CodePolicyNo,
	} {
		for _, path := range []string{"", ", tick, found verify 0", ", tick, found verify 0, tick"} {
			n := at(t, p, true, idle+", a crew that waits"+path, nil)
			n.now = n.now.Add(time.Second)
			e := evidence(n.w, n.now)[what]
			if what == "another attempt runs" {
				e = incident.Beat{Slice: "llama-8b", Incarnation: n.w.Slices[0].Incarnation, Seen: n.now, Runs: true, Attempt: n.w.Crew.Attempt + 1}
			}
			if what == "old steps" {
				e = incident.Reported{Origin: incident.Origin{Time: n.now, Rank: events.RankUser}, Slice: "llama-8b", Report: events.CrewReport{
					Report: events.ReportProgress, Attempt: n.w.Crew.Attempt + 1, Step: 10,
				}}
			}
			if e == nil {
				continue // nothing of that is asked for yet
			}
			if n.w, _, _ = incident.Advance(p, n.w, e, n.now); n.w.Incident != nil || n.w.Closed.Code != code || n.w.Idle != nil {
				t.Errorf("%s behind %q: %+v is open, %+v is over, and left is %+v", what, path, n.w.Incident, n.w.Closed, n.w.Idle)
			}
		}
	}
}

// TestAnyWordKeepsIdleSlicesWhileTheyAreBeingDeleted: until a deletion is called, each of them counts that counts before.
func TestAnyWordKeepsIdleSlicesWhileTheyAreBeingDeleted(t *testing.T) {
	p := policies["everything"]
	line := func(n node, r events.CrewReport) incident.Evidence {
		return incident.Reported{Origin: incident.Origin{Time: n.now, Rank: events.RankUser}, Slice: "llama-8b", Report: r}
	}
	call := func(n node, method string, ago time.Duration) incident.Evidence {
		act, _ := events.Call{Method: method}.Act()
		return incident.Called{Origin: incident.Origin{Time: n.now.Add(-ago), Rank: events.RankAudit}, Slice: "llama-8b", Act: act, Method: method, Principal: ann.By}
	}
	for what, c := range map[string]struct {
		word func(n node) incident.Evidence
		code incident.Code
	}{
		"pause":          {func(node) incident.Evidence { return incident.Paused{Word: ann} }, incident.CodePaused},
		"attach":         {func(node) incident.Evidence { return incident.Ordered{Word: ann, Verb: incident.VerbAttach} }, incident.CodeCancelled},
		"detach":         {func(node) incident.Evidence { return incident.Ordered{Word: ann, Verb: incident.VerbDetach} }, incident.CodeCancelled},
		"drill":          {func(node) incident.Evidence { return incident.Ordered{Word: ann, Verb: incident.VerbDrill} }, incident.CodeCancelled},
		"owner reimages": {func(n node) incident.Evidence { return call(n, "ReimageNode", 0) }, incident.CodeOwner},
		"owner starts":   {func(n node) incident.Evidence { return call(n, "StartNode", 0) }, incident.CodeOwner},
		"started before": {func(n node) incident.Evidence { return call(n, "StartNode", 2*time.Hour) }, ""},
		"a new one ended": {func(n node) incident.Evidence {
			return line(n, events.CrewReport{Report: events.ReportExited, Attempt: 3, ExitCode: 1})
		}, incident.CodeMayTrain},
		"it ended well": {func(n node) incident.Evidence {
			return line(n, events.CrewReport{Report: events.ReportExited, Attempt: 3})
		}, incident.CodeMayTrain},
		"a new one is up": {func(n node) incident.Evidence {
			return line(n, events.CrewReport{Report: events.ReportGaveUp, Attempt: 3})
		}, incident.CodeMayTrain},
		"the old one": {func(n node) incident.Evidence {
			return line(n, events.CrewReport{Report: events.ReportExited, Attempt: 2, ExitCode: 1})
		}, ""},
	} {
		for _, path := range []string{"", ", tick, found verify 0", ", tick, found verify 0, tick"} {
			n := at(t, p, true, idle+", a crew that waits"+path, nil)
			n.now = n.now.Add(time.Second)
			n.w, _, _ = incident.Advance(p, n.w, c.word(n), n.now)
			if kept := n.w.Incident == nil; kept != (c.code != "") || kept && (n.w.Closed.Outcome != incident.Escalated || n.w.Closed.Code != c.code || n.w.Idle != nil) {
				t.Errorf("%s behind %q: %+v is open, %+v is over", what, path, n.w.Incident, n.w.Closed)
			}
		}
		n := at(t, p, true, idle+", "+waits+", found verify 0, tick, intend delete 0", nil)
		if n.w, _, _ = incident.Advance(p, n.w, c.word(n), n.now); n.w.Incident == nil {
			t.Errorf("%s ends what is being called", what)
		}
	}
}

// TestRetryTakesTheDeletionBack: training is asked for on what was about to be deleted.
func TestRetryTakesTheDeletionBack(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, idle+", "+waits+", found verify 0, tick", nil)
	first := n.w.Incident.ID
	n.now = n.now.Add(time.Second)
	n.w, _, _ = incident.Advance(p, n.w, incident.Retried{Word: ann}, n.now)
	if in := n.w.Incident; in == nil || in.ID == first || in.Phase != incident.Resuming || n.w.Closed.ID != first || n.w.Closed.Code != incident.CodeCancelled {
		t.Errorf("open is %+v, over is %+v", n.w.Incident, n.w.Closed)
	}
	n = at(t, p, true, idle+", "+waits+", found verify 0, tick, intend delete 0", nil)
	if why := n.w.NothingToRetry(n.now); !strings.Contains(why, "once it is over") {
		t.Errorf("what is being called is said to be tried again: %q", why)
	}
}

// TestTheIncidentThatPeopleWereToldOfCanBeCancelledToTheLast: nobody has to know the one that deletes.
func TestTheIncidentThatPeopleWereToldOfCanBeCancelledToTheLast(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, idle+", "+waits+", found verify 0, tick", nil)
	told := n.w.Incident.Of
	if told == "" || told == n.w.Incident.ID || !n.w.LeftIdle(told) || n.w.LeftIdle("another") {
		t.Fatalf("it deletes what %q left idle", told)
	}
	n.now = n.now.Add(time.Second)
	n.w, _, _ = incident.Advance(p, n.w, incident.Cancelled{Word: ann, Incident: told}, n.now)
	if in := n.w.Closed; n.w.Incident != nil || in.Outcome != incident.Released || in.Code != incident.CodeCancelled || n.w.Idle != nil {
		t.Errorf("open is %+v, over is %+v", n.w.Incident, in)
	}
}

// TestWhatKeepsIdleSlices: each reason is told, and none of them is waited out for ever.
func TestWhatKeepsIdleSlices(t *testing.T) {
	everything := policies["everything"]
	usual := func(w *incident.Workload) { w.Progress.GapSeconds = 300 }
	runs := func(attempt int) func(time.Time) incident.Beat {
		return func(now time.Time) incident.Beat {
			b := beat(now, 0, never)
			b.Attempt = attempt
			return b
		}
	}
	with := func(change func(*policy.Policy)) policy.Policy {
		p := everything
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		p    policy.Policy
		but  func(*incident.Workload)
		crew func(time.Time) incident.Beat
		// code is that of the incident's end an hour later; none is opened where the escalation itself tells that it is kept.
		code incident.Code
		says string
	}{
		"the policy says keep":            {p: with(func(p *policy.Policy) { p.WhenEscalated = policy.KeepIdle })},
		"recreate is no":                  {p: with(func(p *policy.Policy) { p.Switches.Recreate = policy.No }), says: "the switch recreate is no"},
		"recreate is ask":                 {p: with(func(p *policy.Policy) { p.Switches.Recreate = policy.Ask }), says: "the switch recreate is ask"},
		"not Spot":                        {p: with(func(p *policy.Policy) { p.Switches.RecreateNonSpot = policy.No }), but: func(w *incident.Workload) { w.Slices[0].Reclaimable = false }, says: "recreate_non_spot is no"},
		"no start-up script":              {p: everything, but: func(w *incident.Workload) { w.Slices[0].Bare = true }, says: "has no start-up script"},
		"no specification":                {p: everything, but: func(w *incident.Workload) { w.Slices[0].Spec = "" }, says: "was never read"},
		"the crew does steps":             {p: everything, crew: func(now time.Time) incident.Beat { return beat(now, 0, time.Minute) }, code: incident.CodeMayTrain},
		"the crew begins to train":        {p: everything, but: usual, crew: runs(3), code: incident.CodeMayTrain},
		"the last attempt runs after all": {p: everything, but: usual, crew: runs(2), code: incident.CodeMayTrain},
		"the crew cannot be read":         {p: everything, crew: func(now time.Time) incident.Beat { return beat(now, never, never) }, code: incident.CodeMayTrain},
	} {
		n := escalatedAt(t, c.p, c.but)
		if c.code == "" {
			if n.w.Idle != nil || c.says != "" && !strings.Contains(n.w.Closed.Advice, "does not delete them: ") || !strings.Contains(n.w.Closed.Advice, c.says) {
				t.Errorf("%s: left is %+v, and told %q", name, n.w.Idle, n.w.Closed.Advice)
			}
			continue
		}
		n, asked := pass(c.p, n, 6*time.Hour, c.crew)
		if in := n.w.Closed; len(asked) > 0 || n.w.Incident != nil || in == nil || in.Outcome != incident.Escalated || in.Code != c.code {
			t.Errorf("%s: %+v is open, %+v is over, %d deletions", name, n.w.Incident, in, len(asked))
		}
	}
}

// TestAnAttemptThatHangsKeepsNothing: it was told of, and it does no step for longer than is usual, whatever its crew says.
func TestAnAttemptThatHangsKeepsNothing(t *testing.T) {
	p := policies["everything"]
	n := escalatedAt(t, p, func(w *incident.Workload) { w.Progress.GapSeconds = 300 })
	n.w.Crew.Attempt++ // it has begun, and not ended
	hung := func(now time.Time) incident.Beat {
		b := beat(now, 0, never)
		b.Attempt = n.w.Crew.Attempt
		return b
	}
	if n, asked := pass(p, n, 70*time.Minute, hung); len(asked) != 1 {
		t.Errorf("%d deletions are asked for, and open is %+v", len(asked), n.w.Incident)
	}
}

// TestNothingIsDeletedWithoutItsLastCheckpoint: what the crew told of last has to be there, complete.
func TestNothingIsDeletedWithoutItsLastCheckpoint(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, idle+", "+waits, nil)
	r := verification(t, n)
	if r.MoreThan != 47_999 || !r.Since.IsZero() {
		t.Errorf("looked for is %+v, and the last one is 48000", r)
	}
	for n.w.Incident != nil {
		for what, e := range evidence(n.w, n.now) {
			if what == "torn verify 0" || what == "a crew that waits" {
				n.w, _, _ = incident.Advance(p, n.w, e, n.now)
			}
		}
		n.now = n.now.Add(time.Minute)
		var sent []events.Event
		if n.w, sent, _ = tick(p, n.w, n.now); len(deletions(sent)) > 0 {
			t.Fatal("it is deleted though its last checkpoint is torn")
		}
	}
	if in := n.w.Closed; in.Code != incident.CodeUnverified || !strings.Contains(in.Reason, "no commit marker") || !strings.Contains(in.Advice, "delete llama-8b by hand") {
		t.Errorf("it ended as %+v", in)
	}
	never := func(w *incident.Workload) {
		w.Progress = incident.Progress{}
	}
	for what, c := range map[string]struct {
		but  func(*incident.Workload)
		want int
	}{
		"none verify 0": {never, 1}, "torn verify 0": {never, 0},
		"none verify 0 of what was trained": {nil, 0}, // somebody has emptied the directory
	} {
		n, _ := pass(p, escalatedAt(t, p, c.but), 60*time.Minute, waiting)
		n.w, _, _ = incident.Advance(p, n.w, waiting(n.now), n.now)
		for _, e := range []string{"tick", strings.TrimSuffix(what, " of what was trained"), "tick"} {
			n.now = n.now.Add(time.Second)
			var sent []events.Event
			n.w, sent, _ = incident.Advance(p, n.w, evidence(n.w, n.now)[e], n.now)
			c.want -= len(deletions(sent))
		}
		if c.want != 0 {
			t.Errorf("%s: %d deletions too few are asked for", what, c.want)
		}
	}
}

// TestACheckpointThatIsNewerThanTheEscalationKeepsIdleSlices: somebody trains there without a crew. What was still being written when
// the incident escalated is no such sign.
func TestACheckpointThatIsNewerThanTheEscalationKeepsIdleSlices(t *testing.T) {
	p := policies["everything"]
	for after, kept := range map[time.Duration]bool{-time.Minute: false, incident.SaveFor: false, incident.SaveFor + time.Minute: true, 50 * time.Minute: true} {
		n := at(t, p, true, idle+", "+waits, nil)
		e, ok := evidence(n.w, n.now)["found verify 0"].(incident.Checked)
		if !ok {
			t.Fatal("nothing is looked for")
		}
		e.At = n.w.Incident.Down.Add(after)
		n.w, _, _ = incident.Advance(p, n.w, e, n.now)
		n, asked := pass(p, n, 5*time.Minute, waiting)
		if kept != (len(asked) == 0) || kept && (n.w.Incident != nil || n.w.Closed.Code != incident.CodeMayTrain || !strings.Contains(n.w.Closed.Reason, "checkpoint 48,200")) {
			t.Errorf("%s behind the escalation: %d deletions are asked for, open is %+v, over %+v", after, len(asked), n.w.Incident, n.w.Closed)
		}
	}
}

func verification(t *testing.T, n node) events.CheckpointRequested {
	t.Helper()
	for _, effect := range n.w.Effects {
		if effect.Action == events.ActionVerify {
			_, sent, _ := tick(policies["everything"], n.w, effect.Sent.Add(incident.RequestFor))
			for _, e := range sent {
				if r, ok := e.(events.CheckpointRequested); ok {
					return r
				}
			}
		}
	}
	t.Fatal("nothing is looked for")
	return events.CheckpointRequested{}
}

// TestADeletionOfIdleSlicesThatFailsEnds: it is told, nothing is tried for ever, and nothing else is opened for it.
func TestADeletionOfIdleSlicesThatFailsEnds(t *testing.T) {
	p := policies["everything"]
	for _, class := range []incident.FailureClass{incident.Transient, incident.Busy, incident.NotInState, incident.Permission, incident.Invalid} {
		n := at(t, p, true, idle+", "+waits+", found verify 0, tick", nil)
		id := n.w.Incident.ID
		calls := 0
		for until := n.now.Add(48 * time.Hour); n.w.Incident != nil && n.now.Before(until); n.now = n.now.Add(time.Minute) {
			n.w, _, _ = incident.Advance(p, n.w, waiting(n.now), n.now)
			for _, effect := range n.w.Effects {
				r := events.Request{Schema: 1, Workload: n.w.ID, Incident: id, Epoch: effect.Epoch, Action: effect.Action, Slice: effect.Slice, Incarnation: effect.Incarnation, Attempt: effect.Attempt, Expires: n.now.Add(time.Hour)}
				if _, err := n.w.Fence(r.Pointer(), n.now); err == nil {
					calls++
					n.w, _, _ = incident.Advance(p, n.w, incident.Intended{Request: r, RequestID: "uuid"}, n.now)
					n.w, _, _ = incident.Advance(p, n.w, incident.Answered{Request: r, Failure: &incident.Failure{Class: class, Message: "the API says no"}}, n.now)
				}
			}
			if n.w.Incident != nil {
				n.w, _, _ = tick(p, n.w, n.now)
			}
		}
		in := n.w.Closed
		if n.w.Incident != nil || in.ID != id || in.Outcome != incident.Escalated || !strings.Contains(in.Reason+in.Advice, "the API says no") || !strings.Contains(in.Advice, "delete llama-8b by hand") {
			t.Errorf("%s: after %d calls %+v is open, and over is %+v", class, calls, n.w.Incident, in)
		}
		if calls == 0 || calls > 100 || n.w.Idle != nil {
			t.Errorf("%s: %d calls, and left is %+v", class, calls, n.w.Idle)
		}
	}
}

// TestALongerTimeCounts: a policy that gives a person more time meanwhile does so, and one that keeps has the last word.
func TestALongerTimeCounts(t *testing.T) {
	p := policies["everything"]
	longer, keep := p, p
	longer.DeleteAfter, keep.WhenEscalated = 3*time.Hour, policy.KeepIdle
	n := escalatedAt(t, p, nil)
	if m, asked := pass(longer, n, 179*time.Minute, waiting); len(asked) > 0 || m.w.Incident != nil || m.w.Idle == nil {
		t.Errorf("within three hours %+v is open", m.w.Incident)
	}
	if _, asked := pass(longer, n, 190*time.Minute, waiting); len(asked) != 1 {
		t.Errorf("after three hours %d deletions are asked for", len(asked))
	}
	if m, asked := pass(keep, n, 190*time.Minute, waiting); len(asked) > 0 || m.w.Incident != nil || m.w.Idle != nil {
		t.Errorf("under a policy that keeps %+v is open", m.w.Incident)
	}
	m := at(t, p, true, idle+", "+waits+", found verify 0, tick", nil)
	if l, sw := m.w.Allowed(events.ActionDelete, keep); l != policy.No || !strings.Contains(m.w.Forbids(sw, l, keep), "when_escalated is keep") {
		t.Errorf("right before the call %s is %v", sw, l)
	}
	if l, _ := m.w.Allowed(events.ActionDelete, p); l != policy.Yes {
		t.Errorf("right before the call it is %v", l)
	}
	if m, asked := pass(keep, at(t, p, true, idle+", "+waits+", found verify 0", nil), 190*time.Minute, waiting); len(asked) > 0 || m.w.Closed.Code != incident.CodePolicyNo {
		t.Errorf("under a policy that keeps by then it ended as %+v", m.w.Closed)
	}
}

// twoIdle are two slices that are about to be deleted, for all that is known of them.
func twoIdle(t *testing.T, p policy.Policy) node {
	t.Helper()
	n := at(t, p, true, idle+", "+waits+", found verify 0", nil)
	other := n.w.Slices[0]
	other.Name, other.Hosts = "llama-8b-1", "t1v-n-00000009"
	n.w.Slices = append(n.w.Slices, other)
	return n
}

// TestTheEndTellsWhatWasDeletedAndWhatIsKept, and what a person does about each.
func TestTheEndTellsWhatWasDeletedAndWhatIsKept(t *testing.T) {
	p := policies["everything"]
	n := twoIdle(t, p)
	for _, what := range []string{"tick", "intend delete 0", "accepted delete 0", "read gone"} {
		n = at1(t, p, n, what)
	}
	n.w, _, _ = incident.Advance(p, n.w, incident.Paused{Word: ann}, n.now)
	in := n.w.Closed
	if n.w.Incident != nil || !strings.HasPrefix(in.Reason, "llama-8b was deleted, llama-8b-1 is kept, though") {
		t.Errorf("it ended as %+v", in)
	}
	if !strings.HasPrefix(in.Advice, "delete llama-8b-1 by hand; pitstop retry llama-8b brings back llama-8b;") {
		t.Errorf("a person is told: %s", in.Advice)
	}
	for what, advice := range map[string]string{
		"read stopped": "pitstop retry llama-8b brings back what cannot be used",
		"owner starts": "delete llama-8b by hand; pitstop retry llama-8b asks its crew for another attempt;",
	} {
		if kept := at1(t, p, at(t, p, true, idle+", "+waits, nil), what).w.Closed; !strings.HasPrefix(kept.Advice, advice) {
			t.Errorf("%s: a person is told: %s", what, kept.Advice)
		}
	}
}

// TestAWordKeepsWhatIsNotBeingDeletedYet: of two slices one is being deleted, and the other waits for its turn.
func TestAWordKeepsWhatIsNotBeingDeletedYet(t *testing.T) {
	p := policies["everything"]
	n := twoIdle(t, p)
	for _, what := range []string{"tick", "intend delete 0"} {
		n = at1(t, p, n, what)
	}
	if len(n.w.Effects) != 2 {
		t.Fatalf("it stands as %s, want two deletions asked for", stands(n.w, nil))
	}
	n.w, _, _ = incident.Advance(p, n.w, incident.Paused{Word: ann}, n.now)
	if in := n.w.Incident; in == nil || len(n.w.Effects) != 1 || n.w.Effects[0].Slice != "llama-8b" {
		t.Fatalf("it stands as %s, want the one that is being called alone", stands(n.w, nil))
	}
	for _, what := range []string{"accepted delete 0", "tick", "read gone", "tick"} {
		if n.w.Incident == nil {
			t.Fatalf("it ended before %s", what)
		}
		n = at1(t, p, n, what)
	}
	in := n.w.Closed
	if n.w.Incident != nil || in.Code != incident.CodePaused || !strings.HasPrefix(in.Reason, "llama-8b was deleted, llama-8b-1 is kept, though") {
		t.Errorf("it ended as %+v", in)
	}
}

// TestASliceThatCouldNotBeUsedBeforeKeepsNoOther: it did not stand idle, and how it is says nothing of those that do.
func TestASliceThatCouldNotBeUsedBeforeKeepsNoOther(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, idle+", a crew that waits", nil)
	other := n.w.Slices[0]
	other.Name, other.Condition, other.State, other.End.Reported = "llama-8b-1", incident.Unhealthy, "UNHEALTHY", true
	n.w.Slices = append(n.w.Slices, other)
	n.w, _, _ = incident.Advance(p, n.w, learned(n.w, other, n.now)["read unhealthy"], n.now)
	if _, asked := pass(p, n, 5*time.Minute, waiting); len(asked) != 1 || asked[0].Slice != "llama-8b" {
		t.Errorf("asked for is %+v", asked)
	}
}

// TestTheSlicesOfAQueuedResourceGoTogetherOrStay.
func TestTheSlicesOfAQueuedResourceGoTogetherOrStay(t *testing.T) {
	p := policies["everything"]
	trio := func(c incident.Condition) func(*incident.Workload) {
		return func(w *incident.Workload) {
			w.Slices[0].Group = "qr"
			other := w.Slices[0]
			other.Name, other.Condition, other.State, other.Hosts = "llama-8b-1", c, strings.ToUpper(string(c)), "t1v-n-00000009"
			w.Slices = append(w.Slices, other)
		}
	}
	listen := func(n node) node {
		for _, s := range n.w.Slices {
			b := waiting(n.now)
			b.Slice, b.Incarnation = s.Name, s.Incarnation
			n.w, _, _ = incident.Advance(p, n.w, b, n.now)
		}
		return n
	}
	for c, want := range map[incident.Condition]int{incident.Ready: 1, incident.Lost: 1, incident.Stopped: 0, incident.Unhealthy: 0} {
		n := at(t, p, true, idle, nil)
		trio(c)(&n.w)
		n = listen(n)
		n, asked := pass(p, n, 5*time.Minute, waiting)
		if len(asked) != want || want == 1 && (len(asked[0].With) != 1 || asked[0].QueuedResource != "qr") {
			t.Errorf("%s: asked for is %+v", c, asked)
		}
		if want == 0 && n.w.Closed.Code != incident.CodeHoldsMore {
			t.Errorf("%s: it ended as %+v", c, n.w.Closed)
		}
	}
}

// TestAnIdleDeletionOfUnknownOutcomeIsNotForgotten: the call failed in passing, or was never answered, and may have taken effect. What
// it deletes is not missed, and nobody is told that it is kept.
func TestAnIdleDeletionOfUnknownOutcomeIsNotForgotten(t *testing.T) {
	p := policies["everything"]
	const called = idle + ", " + waits + ", found verify 0, tick, intend delete 0, transient delete 0"
	for path, code := range map[string]incident.Code{
		", read gone": incident.CodeIdleDeleted, ", read deleting, tick, read gone": incident.CodeIdleDeleted,
		", cancelled": incident.CodeCancelled, ", owner starts": incident.CodeOwner,
	} {
		n := at(t, p, true, called+path, nil)
		if n.w.Incident != nil || n.w.Closed.Code != code || strings.Contains(n.w.Closed.Reason, "is kept") {
			t.Errorf("%s: %+v is open, told is %s: %s", path, n.w.Incident, n.w.Closed.Code, n.w.Closed.Reason)
			continue
		}
		n = at1(t, p, n, "read gone")
		n.now = n.now.Add(2 * incident.Grace)
		if n = at1(t, p, n, "tick"); n.w.Incident != nil {
			t.Errorf("%s: what our own call deleted is missed: %s", path, tale(n.w))
		}
	}
	n := at(t, p, true, called+", read deleting, tick", nil)
	if n.w.Incident == nil {
		t.Errorf("it is on its way out, and told is %s: %s", n.w.Closed.Code, n.w.Closed.Reason)
	}
}

// TestADeletionIsPromisedOnlyWhereItComes: what a training that is done leaves is its owner's.
func TestADeletionIsPromisedOnlyWhereItComes(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "progress", "finished", "its verdict", "owner deletes", "read gone")
	r.read("llama-8b", incident.Ready, r.made(far, "9001"))
	r.tick(time.Minute)
	r.w.Slices[0].Spec = "spec1"
	r.learn("", "intend admit 0", "permission admit 0")
	if c := r.w.Closed; r.w.Incident != nil || r.w.Idle != nil || !strings.HasSuffix(c.Advice, "does not delete them: the training is finished") {
		t.Errorf("left to be deleted is %+v, and told is %q", r.w.Idle, c.Advice)
	}
}
