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
	"pitstop.internal/shared/view"
)

// owner is what an owner did with a slice some time ago, as the audit log tells now.
func (n *story) owner(act events.Act, slice string, ago time.Duration) *story {
	at := evidence.Origin{ID: "late", Time: n.now.Add(-ago), Rank: events.RankAudit}
	return n.give(evidence.Called{Origin: at, Slice: slice, Act: act, Method: string(act), Principal: ann.By})
}

// TestWhatItsOwnerStoppedIsNotStarted, whenever and in which order that is learned.
func TestWhatItsOwnerStoppedIsNotStarted(t *testing.T) {
	t.Parallel()
	const silence = "a while, unsaid, tick"
	found := func(w *incident.Workload) { w.Slices[0].Condition = evidence.Stopped }
	four := func(w *incident.Workload) { w.Slices[0].Workers = 4 }
	for name, c := range map[string]struct {
		path   string
		ago    time.Duration // when its owner stopped it, as is told behind that path
		then   string
		change func(w *incident.Workload)
		starts bool
	}{
		"nobody says who":                                     {path: "read stopped", then: silence, starts: true},
		"its owner, told before it is seen":                   {path: "owner stops, read stopped", then: silence},
		"its owner, told half an hour late":                   {path: "read stopped, 30m", ago: 31 * time.Minute, then: silence},
		"its owner, as the audit log says in the same answer": {path: "read stopped, a while, unsaid", ago: bounds.Grace + time.Minute, then: "tick"},
		"the audit log could not be asked":                    {path: "read stopped", then: "24h"},
		"the audit log was asked too early":                   {path: "read stopped, a minute, unsaid", then: "an hour, tick"},
		"the audit log was asked for a former stop":           {path: "read stopped, a while, unsaid, read ready, read stopped", then: "an hour, tick"},
		"it was stopped when it was first seen":               {path: "a while, unsaid", then: "tick", change: found},
		"its owner stopped and started it the day before":     {path: "owner stops, read stopped, an hour, owner starts, read ready, 24h, read stopped", then: silence, starts: true},
		"its owner stopped it before it was last usable, and that is told late": {
			path: "read stopped, read ready, 24h, read stopped", ago: 24*time.Hour + 20*time.Minute, then: silence, starts: true,
		},
		"its owner has it":                       {path: "owner deletes, read stopped", then: silence},
		"the training is finished":               {path: "finished, its verdict, an hour, read stopped", then: silence},
		"a person suspended its queued resource": {path: "read stopped", then: silence, change: inQueue},
		"it has several workers":                 {path: "read stopped", then: silence, change: four},
	} {
		n := newStory(t, false, "llama-8b").with(single, c.change)
		if n.goes(c.path); c.ago > 0 {
			n.owner(events.ActStopped, "llama-8b", c.ago)
		}
		if n.goes(c.then); n.isWanted(events.ActionStart) != c.starts {
			t.Errorf("%s: it is started: %v:\n%s", name, !c.starts, n.tale())
		}
	}
}

// TestAStoppedSliceIsNotOverlooked: whatever the policy says, a training that stands still is told of once.
func TestAStoppedSliceIsNotOverlooked(t *testing.T) {
	t.Parallel()
	for policy, c := range map[string]struct{ stands, reason string }{
		"everything": {"starting: start llama-8b", ""}, "ask": {"approving", ""}, "watch": {"watching", ""}, "unreadable": {"starting", ""},
		"spot": {"escalated", "the switch start_stopped is no"}, "reserved": {"escalated", "several workers"},
	} {
		n := at(t, policy, false, "read stopped", single)
		if due := n.w.Due(); !due.Equal(n.now.Add(bounds.Grace)) {
			t.Errorf("%s: due at %v", policy, due)
		}
		if policy == "reserved" {
			n.w.Slices[0].Workers = 4
		}
		n.goes("a while, unsaid, tick")
		if got, e := n.stands(n.sent), n.ended(); got != c.stands || !strings.Contains(e.Reason.String(), c.reason) || c.reason != "" && !strings.Contains(e.Advice.String(), "by hand") {
			t.Errorf("%s: it stands at %s, %+v:\n%s", policy, got, e, n.tale())
		}
		if c.reason != "" {
			n.toldOnce(t, policy, "1m, read stopped")
		}
	}
}

// TestAStartIsFollowedToItsEnd: what was started trains again, or a person hears why not, also where it is stopped again each time.
func TestAStartIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	const begun = "read stopped, a while, unsaid, tick"
	n := at(t, "everything", false, begun+", do, read unhealthy, read ready", single)
	if down := n.down(); n.stands(nil) != "resuming" || !down.Equal(start.Add(time.Second)) {
		t.Errorf("it stands still since %v:\n%s", down, n.tale())
	}
	for n = at(t, "everything", false, begun, single); n.w.Incident != nil && n.now.Before(start.Add(24*time.Hour)); n.goes("read stopped, 1m") {
		if n.w.Effects[0].Stage() == view.StageWanted {
			n.play("stockout start")
		}
	}
	if e := n.ended(); e.Outcome != view.Escalated || !strings.Contains(e.Reason.String(), "stockout") || !strings.Contains(e.Advice.String(), "tpu-vm start llama-8b") {
		t.Errorf("it ends with %s, %s:\n%s", e.Reason, e.Advice, n.tale())
	}
	n = multi(t, false).with(single)
	starts := 0
	for ; starts <= bounds.MaxStarts && n.w.Closed == nil; starts++ {
		n.goes("a read ready, b read ready, b read unhealthy, a read stopped, a while, a unsaid, tick, do")
	}
	if code := n.ended().Code; starts-1 != bounds.MaxStarts || code != reason.CodeOverdue {
		t.Errorf("after %d starts it ended by %q:\n%s", starts-1, code, n.tale())
	}
}

// TestWhatItsOwnerStoppedIsNotReplaced, whatever else is learned of it before, after and beside.
func TestWhatItsOwnerStoppedIsNotReplaced(t *testing.T) {
	t.Parallel()
	for path, slices := range map[string][]string{
		"log pending, owner stops, read stopped":               {"a"},
		"owner stops, read stopped, 5m, killed":                {"a"},
		"owner stops, killed, a minute, read stopped":          {"a"},
		"owner stops, guest down, a minute, read stopped":      {"a"},
		"a owner stops, a read stopped, b read lost, a minute": both,
	} {
		for _, spot := range []bool{true, false} {
			n := newStory(t, spot, slices...).with(single).goes(path)
			for _, asked := range n.passes(8 * time.Hour) {
				if strings.HasPrefix(asked, "delete") || strings.HasPrefix(asked, "create") {
					t.Fatalf("%s, spot %v: asked for is %s:\n%s", path, spot, asked, n.tale())
				}
			}
			if why := n.w.NothingToRetry(n.now); n.w.Incident != nil || !strings.Contains(why, "its owner stopped it") {
				t.Errorf("%s, spot %v: it may be retried: %q\n%s", path, spot, why, n.tale())
			}
		}
	}
}

// TestWhatIsOnlyStoppedIsNeverDeleted: it is started, or left to a person, also where its provider's own recovery was waited for.
func TestWhatIsOnlyStoppedIsNeverDeleted(t *testing.T) {
	t.Parallel()
	const unsaid = "read stopped, a while, unsaid, tick"
	const madeStopped = "host error, read lost, later, tick, do, read gone, do, read ours stopped"
	for name, c := range map[string]struct{ first, path, policy, then, want string }{
		"a person has it tried again after six hours":     {"seldom", unsaid, "everything", "6h, retried, read stopped", "start llama-8b"},
		"the policy could not be read at first":           {"unreadable", unsaid, "spot", "tick", "escalated policy_no"},
		"nobody could be asked":                           {"everything", "host error, a minute", "everything", "read stopped", "escalated unread"},
		"it was made for one that was lost, and stopped":  {"everything", madeStopped + ", a while", "everything", "unsaid", "start llama-8b"},
		"it was made, stopped, and nobody could be asked": {"everything", madeStopped, "everything", "tick", "escalated unread"},
	} {
		n := at(t, c.first, false, c.path, single).under(c.policy).goes(c.then)
		asked := n.sent
		if asked = slices.Compact(append(asked, n.passes(8*time.Hour)...)); len(asked) == 0 {
			asked = []string{string(n.ended().Outcome) + " " + string(n.ended().Code)}
		}
		if strings.Join(asked, ", ") != c.want {
			t.Errorf("%s: %q, want %q:\n%s", name, asked, c.want, n.tale())
		}
	}
}

// TestWhatWasMadeElsewhereAndStoppedIsLetIn once a person has started it: no crew may put itself into the place of one in another zone.
func TestWhatWasMadeElsewhereAndStoppedIsLetIn(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "tick", single)
	s := &n.w.Slices[0]
	former := s.Life
	former.Condition, former.Released = evidence.Gone, start.Add(-2*time.Hour)
	s.Former = []incident.Life{former}
	s.Zone, s.Incarnation = "us-west4-b", events.Incarnation{Zone: "us-west4-b", ID: "7720", Created: start.Add(-90 * time.Minute)}
	s.Condition, s.State, s.Since = evidence.Stopped, "STOPPED", start
	n.w.Lease.Attempt = 1
	n.w.Lease.Sure = incident.Write{At: start.Add(-3 * time.Hour), Attempt: 1, Lives: []events.Admission{{Slice: s.Name, Incarnation: former.Incarnation, Workers: s.Hosts}}}
	n.goes("an hour, retried")
	for n.w.Incident != nil && n.now.Before(start.Add(24*time.Hour)) {
		n.goes("1m, read stopped")
	}
	if e := n.ended(); e.Code != reason.CodeUnread || !strings.Contains(e.Advice.String(), "tpu-vm start llama-8b") {
		t.Fatalf("it ends with %s, %s:\n%s", e.Reason, e.Advice, n.tale())
	}
	if sent := n.goes("read ready").passes(time.Minute); len(sent) != 1 || sent[0] != "admit llama-8b=7720" {
		t.Errorf("it was started, and asked for is %v:\n%s", sent, n.tale())
	}
}

// toldOnce holds that what goes on for hours opens no other incident.
func (n *story) toldOnce(t *testing.T, name, path string) {
	t.Helper()
	for id, end := n.w.Closed.ID, n.now.Add(4*time.Hour); n.now.Before(end); {
		if n.goes(path); n.about() != nil && n.about().ID != id {
			t.Fatalf("%s: it is told again:\n%s", name, n.tale())
		}
	}
}

// TestAStartBesideALoss: what is on its way up, or only stopped, is no part of what is lost, and what is lost is not forgotten over it.
func TestAStartBesideALoss(t *testing.T) {
	t.Parallel()
	type steps = []string
	asked := steps{"a read stopped", "peace", "later", "peace", "a unsaid", "peace"}
	started := slices.Concat(asked, steps{"tick", "starting: start a", "do", "starting"})
	ended := steps{"later", "starting", "tick", "healing", "later", "healing", "tick", "deleting: delete b"} // four hours since b was lost
	replaced := steps{"a read lost", "deleting: delete a", "do", "deleting", "a read gone", "creating: create a", "do", "creating"}
	unsaid := func(slice, want string) steps {
		return steps{slice + " read stopped", "healing", "a while", "healing", slice + " unsaid", want}
	}
	all := map[string]history{
		"another slice is lost while one is started": {steps: slices.Concat(started, steps{
			"b read lost", "starting", "a read unhealthy", "starting", "a read ready", "healing", "later", "healing", "tick", "deleting: delete b",
		})},
		"what is started is lost itself":                        {steps: slices.Concat(started, steps{"a read lost", "healing", "later", "healing", "tick", "deleting: delete a"})},
		"another slice is lost, and the start comes to nothing": {steps: slices.Concat(started, steps{"b read lost", "starting"}, ended)},
		"another slice is gone, and the start comes to nothing": {steps: slices.Concat(started, steps{
			"b read gone", "starting", "later", "starting", "tick", "creating: create b", // for longer than anybody's word about it takes
		})},
		"another slice is lost while the start waits for a person": {policy: "ask", steps: slices.Concat(asked, steps{
			"tick", "approving", "b read lost", "approving", "tick", "approving", "b read gone", "approving", "tick", "approving",
		})},
		"the start of one does not begin the time of the other anew": {steps: slices.Concat(steps{"b read lost", "healing"}, unsaid("a", "starting: start a"), steps{
			"do", "starting", "a read ready", "healing", "later", "healing", "tick", "deleting: delete b",
		})},
		"one is stopped by nobody knows whom, and the other is lost": {steps: steps{
			"b read lost", "healing", "a read stopped", "healing", "later", "healing", "tick", "deleting: delete b",
		}},
		"its owner's own order is still being made when the start is done": {w: func(w *incident.Workload) {
			single(w)
			b := &w.Slices[1]
			b.Condition, b.State, b.Since, b.Unused = evidence.Creating, "CREATING", start.Add(-5*time.Hour), true
		}, steps: slices.Concat(started, steps{"a read ready", "healing", "tick", "healing"})},
		"the other was found stopped, and the start comes to nothing": {w: func(w *incident.Workload) {
			single(w)
			b := &w.Slices[1]
			b.Condition, b.State = evidence.Stopped, "STOPPED"
		}, steps: slices.Concat(started, steps{"later", "starting", "tick", "escalated"})},
		"a third is gone while one is lost and another is started": {w: func(w *incident.Workload) {
			single(w)
			c := w.Slices[1]
			c.Name, c.Hosts, c.Incarnation.ID = "c", "t1v-n-3f2a9c03", "7800"
			w.Slices = append(w.Slices, c)
		}, steps: slices.Concat(steps{"b read lost", "healing"}, unsaid("a", "starting: start a"), steps{
			"do", "starting", "c read gone", "starting", "a while", "starting", "c unsaid", "creating: create c", "a read ready", "creating", // b may still come back
		})},
		"its owner suspends a queued resource that was lost": {w: func(w *incident.Workload) {
			single(w)
			inQueue(w)
			w.Slices = w.Slices[:1]
		}, steps: steps{"a read lost", "healing", "a read stopped", "healing", "later", "healing", "tick", "escalated"}},
		"it was started by hand while a person was asked": {policy: "ask", steps: slices.Concat(asked, steps{
			"tick", "approving", "b read unhealthy", "approving", "a read ready", "healing",
		})},
		"the crew of a new one spoke before it was stopped": {spot: true, steps: slices.Concat(replaced, steps{
			"a read ours made", "creating", "a mapped", "creating", "a started", "creating", "a read stopped", "healing",
		})},
		"it is only stopped when it is to be deleted": {steps: steps{
			"b read lost", "healing", "later", "healing", "tick", "deleting: delete b", "b read stopped", "healing",
		}},
		"the other is gone, and its owner may have deleted it, when the time of the stopped one is over": {steps: steps{
			"b read lost", "healing",
			"b read stopped", "healing",
			"later", "healing",
			"a read gone", "grace",
			"tick", "grace",
			"a while", "grace",
			"a unsaid", "creating: create a",
		}},
		"it was lost, and is shown as stopped then": {steps: slices.Concat(steps{"b read lost", "healing"}, unsaid("b", "starting: start b"))},
		"it is stopped once it is being deleted": {steps: steps{
			"b read lost", "healing", "later", "healing", "tick", "deleting: delete b", "do", "deleting", "b read stopped", "deleting",
		}},
		"one is only stopped while the other is created": {spot: true, steps: slices.Concat(replaced, steps{
			"b read lost", "deleting: delete b", "b read stopped", "creating", "a read ours", "healing",
		}, unsaid("b", "starting: start b"), steps{"do", "starting", "b read ready", "admitting: admit a=7712 b=7760"})},
	}
	for name, c := range all {
		if c.names = both; c.w == nil {
			c.w = single
		}
		all[name] = c
	}
	playAll(t, all)
}
