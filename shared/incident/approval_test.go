package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

const failing = "exit 139, gave up, its verdict"

// asked fails unless the story waits for a person.
func (n *story) asked(about events.Action) {
	n.Helper()
	if in := n.w.Incident; in == nil || in.Status.Label != view.Approving || in.Status.Asks != about || n.isWanted(about) {
		n.Fatalf("nobody is asked about %s:\n%s", about, n.tale())
	}
}

// TestAYesIsToOneCall: the next one is asked about anew. One to a replacement covers its creation, and one to maintenance the save before it.
func TestAYesIsToOneCall(t *testing.T) {
	t.Parallel()
	for about, c := range map[events.Action]struct {
		path  string
		steps []string
		again string
	}{
		events.ActionRestart: {failing, []string{"approved", "restarting: restart a=7711", "do", "resuming"}, "started, 1m, exit 1, gave up, its verdict"},
		events.ActionDelete: {"read lost", []string{
			"approved", "deleting: delete a", "do", "deleting", "read gone", "creating: create a", "stockout create", "creating: create a", "does create", "creating",
			"read ours made", "creating", "read ready", "",
		}, "read lost"},
		events.ActionStart: {"read stopped, later, unsaid, tick", []string{"approved", "starting: start a", "do", "starting", "read ready", ""}, "read stopped, later, unsaid, tick"},
		events.ActionMaintain: {"pending, later, tick", []string{
			"approved", "saving: save", "do", "saving", "saved", "saving: verify", "found verify", "maintaining: maintain a",
		}, ""},
	} {
		n := newStory(t, true, "a").under("ask")
		n.w.Slices[0].Workers = 1 // one that may be started
		n.goes(c.path).asked(about)
		if n.history(c.steps...); c.again != "" {
			n.goes(c.again).asked(about)
		}
	}
}

// TestAQuestionStandsUntilItsAnswer: a claim of an end that nothing confirms is not read again and again while a person is asked. Their yes has it read.
func TestAQuestionStandsUntilItsAnswer(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.p.Switches.Restart = policy.Ask
	n.goes("host error, unhealthy, ready, finished")
	for range 60 {
		for n.play("1m"); n.isWanted(events.ActionHear); {
			n.play("no verdict hear")
		}
	}
	n.asked(events.ActionRestart)
	since := n.w.Incident.Status.Since
	if sent := n.passes(55 * time.Minute); sent != nil || !n.w.Incident.Status.Since.Equal(since) {
		t.Errorf("%v is asked for while a person is asked:\n%s", sent, n.tale())
	}
	if sent := n.play("approved"); !slices.Equal(sent, []string{"hear"}) {
		t.Errorf("after the yes, %v is asked for:\n%s", sent, n.tale())
	}
	if n.play("no verdict hear"); !n.isWanted(events.ActionRestart) {
		t.Errorf("the training is not begun again:\n%s", n.tale())
	}
}

// gaveUp has the crew give up after an attempt, with its verdict.
func (n *story) gaveUp(attempt int, said string) *story {
	return n.exits(attempt, said).later(time.Second).beats(n.verdict(attempt, false))
}

// TestAPolicyThatIsTightenedWaitsForWhoeverDeletes one slice when the other is found lost.
func TestAPolicyThatIsTightenedWaitsForWhoeverDeletes(t *testing.T) {
	t.Parallel()
	n := multi(t, true).goes("a read lost, intend delete").under("watch").history("b read lost", "deleting")
	if !n.isWanted(events.ActionDelete) || n.planned() != "" {
		t.Fatalf("it waits for no deletion, and would have %q", n.planned())
	}
	n.history("an hour", "", "b read lost", "watching")
}

// TestWhatIsWatchedMayGoOn: the policy was tightened when a slice was about to be replaced, and it came back by itself.
func TestWhatIsWatchedMayGoOn(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", false, "host error, read unhealthy, later").under("watch")
	if n.history("tick", "watching", "1m", "watching", "read ready", "watching", "progress", "observed"); n.ended().By != view.ByStep {
		t.Errorf("it ended by %q", n.ended().By)
	}
}

// TestWhatIsApprovedIsChargedOnce: the policy asks by the time of the call for what it allowed when it was decided.
func TestWhatIsApprovedIsChargedOnce(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		action events.Action
		before int // a replacement is charged with its deletion
	}{
		failing: {events.ActionRestart, 0}, "preempted, read lost": {events.ActionDelete, 0}, "preempted, read lost, do, read gone": {events.ActionCreate, 1},
	} {
		n := at(t, "everything", true, path).under("ask").goes("forbidden " + string(c.action))
		if spent := len(n.w.Charges); n.stands(nil) != "approving" || spent != c.before {
			t.Errorf("%s: while nobody has approved it stands at %s, charged %d times:\n%s", path, n.stands(nil), spent, n.tale())
		}
		sent := slices.Clone(n.goes("approved").sent)
		if n.goes("intend " + string(c.action)); len(sent) != 1 || len(n.w.Charges) != 1 {
			t.Errorf("%s: approved, asked for is %q, charged %v:\n%s", path, sent, n.w.Charges, n.tale())
		}
	}
}

// TestProgressEndsWhatWaitsForApproval, unless what tells of it is no slice any more, or the maintenance is still to come.
func TestProgressEndsWhatWaitsForApproval(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{failing: "resumed", "preempted, read lost": "approving", "pending, later, tick": "approving"} {
		if n := at(t, "ask", true, path); n.stands(nil) != "approving" || n.goes("progress").stands(nil) != want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}

// TestOfAnApprovalThatDoesNotComeIsReminded after an hour, and every six hours.
func TestOfAnApprovalThatDoesNotComeIsReminded(t *testing.T) {
	t.Parallel()
	want := []time.Duration{bounds.RemindFirst, bounds.RemindEvery, 2 * bounds.RemindEvery, 3 * bounds.RemindEvery, 4 * bounds.RemindEvery}
	for _, path := range []string{failing, "preempted, read lost"} {
		n := at(t, "ask", true, path)
		since, lines := n.w.Incident.Status.Since, len(n.w.Incident.Lines)
		n.passes(24*time.Hour + time.Minute)
		var after []time.Duration
		for _, l := range n.w.Incident.Lines[lines:] {
			if after = append(after, l.At.Sub(since)); l.Label != view.Approving || !strings.HasPrefix(l.What.String(), "still wait for approval: ") {
				t.Errorf("%s: reminded by %q", path, l.What)
			}
		}
		if !slices.Equal(after, want) {
			t.Errorf("%s: reminded after %v, want %v", path, after, want)
		}
	}
}

// TestAClosedSwitchSaysWhoClosedIt: a policy allows less, as much and more than it did before.
func TestAClosedSwitchSaysWhoClosedIt(t *testing.T) {
	t.Parallel()
	now := policy.Policy{
		Switches: policy.Switches{Recreate: policy.Yes, Restart: policy.Ask}, Limits: policy.Limits{policy.Restart: "policy night", policy.StartStopped: "the deployment"},
	}
	w := incident.Workload{Incident: &incident.Incident{Ceiling: policy.Switches{Restart: policy.Yes}, Limits: policy.Limits{policy.Recreate: "preset reserved"}}}
	for s, want := range map[policy.Switch]string{
		policy.Recreate:        "the switch recreate is no, limited by what held before, preset reserved",
		policy.StartStopped:    "the switch start_stopped is no, limited by the deployment",
		policy.Restart:         "the switch restart is ask, limited by policy night",
		policy.RecreateNonSpot: "the switch recreate_non_spot is no",
	} {
		if got := w.Forbids(s, min(now.Switches.Level(s), w.Incident.Ceiling.Level(s)), now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestALooserPolicyCountsAtTheNextIncident: the lowest policy since the opening counts, and one that cannot be read lowers nothing.
func TestALooserPolicyCountsAtTheNextIncident(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ opening, then, last, stands string }{
		{"everything", "watch", "everything", "watching"},
		{"everything", "unreadable", "everything", "deleting: delete llama-8b"},
		{"unreadable", "watch", "everything", "watching"},
		{"unreadable", "spot", "everything", "deleting"},
	} {
		n := at(t, c.opening, true, "preempted").under(c.then).goes("read lost").under(c.last)
		if got := n.stands(n.play("2m")); got != c.stands {
			t.Errorf("%s: it stands at %q\n%s", c, got, n.tale())
		}
	}
}
