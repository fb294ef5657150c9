package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

const (
	nodeA       = "projects/demo/locations/us-west4-a/nodes/llama-8b"
	queueA      = "projects/demo/locations/us-west4-a/queuedResources/qr"
	leaseObject = "gs://ckpt/llama-8b/" + events.LeaseObject
)

// texts are the decisions of a plan in short.
func texts(p view.Plan) string {
	var all []string
	for _, d := range p.Decisions {
		all = append(all, d.Text)
	}
	if p.Outcome != "" {
		all = append(all, string(p.Outcome)+": "+p.Reason)
	}
	return strings.Join(all, "; ")
}

// TestALossIsForeseenAsItWouldBeDecided, and looking ahead changes nothing.
func TestALossIsForeseenAsItWouldBeDecided(t *testing.T) {
	t.Parallel()
	unread := func(w *incident.Workload) { w.Slices[0].Spec = "" }
	for name, c := range map[string]struct {
		policy string
		spot   bool
		change func(*incident.Workload)
		phase  view.Phase
		want   []string
	}{
		"Spot":                 {"spot", true, nil, view.Resuming, []string{"recreate: delete llama-8b first", "create llama-8b in us-west4-a", "admit training to the new slice", "wait for progress past step 48,000"}},
		"another":              {"everything", false, nil, view.Resuming, []string{"wait for Google's own recovery", "recreate: delete llama-8b first", "create llama-8b in us-west4-a", "wait for progress past step 48,000"}},
		"a person is asked":    {"ask", true, nil, view.Approving, []string{"wait for approval: recreate llama-8b"}},
		"nothing is allowed":   {"watch", true, nil, view.Watching, []string{"only watch"}},
		"the switch is no":     {"seldom", true, nil, "", []string{"escalated: node llama-8b is PREEMPTED, and the switch recreate is no"}},
		"no specification":     {"spot", true, unread, "", []string{"escalated: the specification of llama-8b was never read"}},
		"the policy is unread": {"unreadable", true, nil, view.PhaseDeleting, []string{"wait for the deletion"}},
		"one of a queued resource": {"spot", true, func(w *incident.Workload) {
			*w = multi(t, true).with(inQueue).w
		}, view.Resuming, []string{"recreate: delete a, b first", "create a, b in us-west4-a"}},
	} {
		n := newStory(t, c.spot, "llama-8b").under(c.policy)
		if c.change != nil {
			c.change(&n.w)
		}
		before := marshal(n.w)
		f := n.w.IfLost(n.p, n.w.Slices[0].Name, n.now)
		for _, want := range c.want {
			if !strings.Contains(texts(f), want) {
				t.Errorf("%s: foreseen is %q, want %q", name, texts(f), want)
			}
		}
		if f.Phase != c.phase || marshal(n.w) != before {
			t.Errorf("%s: it would stand at %q, want %q; changed: %v", name, f.Phase, c.phase, marshal(n.w) != before)
		}
	}
}

// TestWhatOpensNothingIsForeseenAsThat, and says why: not as the incident that closed last, and not as what time does to another slice.
func TestWhatOpensNothingIsForeseenAsThat(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		path   string
		change func(*incident.Workload)
	}{
		"its owner deleted it or took it over":                 {"a owner deletes, a read gone", nil},
		"its owner ordered it, and it has not been usable yet": {"b log moved", func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].Unused = evidence.Creating, true }},
		"the training is finished": {"tick", func(w *incident.Workload) {
			w.Training.Verdict = incident.Verdict{Attempt: 1, Finished: true, At: start.Add(-time.Hour)}
		}},
		"an incident has told its end already": {"a read lost, intend delete a, permission delete a, b log moved", nil},
		"Google suspects abuse on a":           {"a abuse and lost, b log moved", nil},
	} {
		n := multi(t, true)
		if c.change != nil {
			c.change(&n.w)
		}
		n.goes(c.path)
		if f := n.w.IfLost(n.p, "a", n.now); f.Reason != why || len(f.Decisions) > 0 || f.Outcome != "" {
			t.Errorf("%+v, want nothing, because %s:\n%s", f, why, n.tale())
		}
	}
	n := multi(t, true)
	if f := n.w.IfLost(n.p, "nobody", n.now); len(f.Decisions) > 0 || f.Reason != "" {
		t.Errorf("of no slice: %+v", f)
	}
}

// TestTheDeadlineIsForeseen, but no capacity that nobody has, and no checkpoint that nobody has told of.
func TestTheDeadlineIsForeseen(t *testing.T) {
	t.Parallel()
	const admitted = created + ", do, read ours, do"
	for _, c := range []struct {
		path   string
		change func(*incident.Workload)
		want   string
		only   bool
	}{
		{"preempted", nil, "wait for progress past step 48,000", false},
		{"host error, read unhealthy", nil, "recreate: delete llama-8b first", false},
		{"exit 139", nil, "ask the crew for another attempt", false},
		{created + ", do", nil, "clean up what our own request brought", true}, // and nobody knows what that is
		{admitted, crewless, "verify the checkpoint", true},
		{"tick", nil, "", true},
	} {
		n := at(t, "everything", true, c.path)
		if c.change != nil {
			n = at(t, "everything", true, c.path, c.change)
		}
		before := marshal(n.w)
		got := texts(n.w.AtDeadline(n.p))
		if !strings.Contains(got, c.want) || c.only && (!strings.HasPrefix(got, c.want) || strings.Contains(got, ";")) || marshal(n.w) != before {
			t.Errorf("%s: foreseen is %q, want %q; changed: %v", c.path, got, c.want, marshal(n.w) != before)
		}
	}
}

// plannedCalls are the calls that an incident would have made, in short.
func (n *story) plannedCalls() (all []string) {
	in := n.w.Incident
	if in == nil {
		in = n.w.Closed
	}
	for _, c := range in.Planned {
		all = append(all, c.Method+" "+c.Resource)
	}
	return all
}

// would is what an incident says that it would have done.
func (n *story) would() string {
	in := n.w.Incident
	if in == nil {
		in = n.w.Closed
	}
	return strings.Join(n.w.ShownIncident(*in, n.now).WouldHave(), "; ")
}

// TestWhatIsOnlyWatchedIsRehearsed: the calls that would have been made stand in the incident, each by its name, and what would be none says so.
func TestWhatIsOnlyWatchedIsRehearsed(t *testing.T) {
	t.Parallel()
	replaced := []string{"DeleteNode " + nodeA, "CreateNode " + nodeA, "storage.objects.create " + leaseObject}
	saved := []string{"storage.objects.create gs://ckpt/llama-8b/" + events.RequestObject, "UpdateNode " + nodeA, "PerformMaintenance " + nodeA}
	for _, c := range []struct {
		policy string
		spot   bool
		path   string
		change func(*incident.Workload)
		want   []string
	}{
		{"watch", true, "preempted", nil, nil},
		{"watch", true, "preempted, read lost, read lost", nil, replaced},
		{"watch", true, "preempted, read gone", nil, replaced[1:]},
		{"watch", true, "preempted, read lost", bare, replaced[:2]},
		{"watch", true, "preempted, read lost", inQueue, []string{"DeleteQueuedResource " + queueA, "CreateQueuedResource " + queueA, replaced[2]}},
		{"watch", false, "pending, later, tick", nil, saved},
		{"watch", true, "exit 139", nil, nil},
		{"watch", true, "exit 139, gave up, its verdict", nil, replaced[2:]},
		{"watch", true, "exit 139, gave up, its verdict", bare, nil},
		{"spot", false, "host error, read lost, later, tick", nil, replaced},
		{"watch", true, "read unhealthy, later, tick", nil, replaced},
		{"watch", false, "read stopped, later, unsaid, tick", single, []string{"StartNode " + nodeA}},
		{"watch", false, "read stopped, later, unsaid, tick", nil, nil},
	} {
		n := newStory(t, c.spot, "llama-8b").under(c.policy)
		if c.change != nil {
			c.change(&n.w)
		}
		n.goes(c.path)
		if got := n.plannedCalls(); !slices.Equal(got, c.want) || n.would() == "" {
			t.Errorf("%s: %s: would have %q, and says %q, want %q:\n%s", c.policy, c.path, got, n.would(), c.want, n.tale())
		}
	}
}

// TestWhatIsRehearsedIsWhatIsCalled plays the same evidence under a policy that allows nothing and under one that allows all: what the one would have
// called, the other has called.
func TestWhatIsRehearsedIsWhatIsCalled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		watched, acted string
		spot           bool
		change         []func(*incident.Workload)
	}{
		{"preempted, read lost", ", do, read gone, do, read ours, do", true, nil},
		{"preempted, read lost", ", do, read gone, do, read ours, do", true, []func(*incident.Workload){inQueue}},
		{"exit 139, gave up, its verdict", ", do", true, nil},
		{"read stopped, later, unsaid, tick", ", do", false, []func(*incident.Workload){single}},
		{"pending, later, tick", ", do, saved, found verify, do", false, nil},
	} {
		var made []string
		for _, call := range at(t, "everything", c.spot, c.watched+c.acted, c.change...).w.Incident.Calls {
			made = append(made, call.Method+" "+call.Resource)
		}
		if dry := at(t, "watch", c.spot, c.watched, c.change...).plannedCalls(); !slices.Equal(dry, made) {
			t.Errorf("%s%s: made is %q, and rehearsed %q", c.watched, c.acted, made, dry)
		}
	}
}

// TestARehearsalAsksTheZonesOfThePolicy: in its order, with what keeps an order from one, and what decides about another region.
func TestARehearsalAsksTheZonesOfThePolicy(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("watch")
	n.p.Zones = []string{"us-west4-b", "us-east5-a", "us-west4-c"}
	n.goes("preempted, read lost")
	slice, places := n.w.Incident.Unfitted()
	if slice != "llama-8b" || !slices.EqualFunc(places, n.p.Zones, func(at view.Place, zone string) bool { return at == view.Place{Zone: zone} }) {
		t.Fatalf("unfitted are %v of %s", places, slice)
	}
	n.give(incident.Fitted{Slice: slice, Zones: []view.ZoneFit{
		{Zone: "us-west4-b", Checked: true},
		{Zone: "us-east5-a", Checked: true},
		{Zone: "us-west4-c", Checked: true, Code: reason.CannotMove.Code(), Text: "reservation r is in us-west4-a"},
	}})
	const want = "CreateNode " + nodeA + ", zone after zone: us-west4-a, us-west4-b, us-east5-a (if the checkpoints' bucket is there too), " +
		"us-west4-c is not asked (reservation r is in us-west4-a) (recreate)"
	if got := n.w.Incident.Planned[1].String(); got != want || len(n.sent) > 0 {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, left := n.w.Incident.Unfitted(); left != nil {
		t.Errorf("%v are asked for again", left)
	}
}

// TestARehearsalIsOfEachSlice as it stands: what is lost alone is asked for in the zone of the others, whatever the policy names, and what is lost
// together may move together. Each is waited for by itself, and a plan that is void goes.
func TestARehearsalIsOfEachSlice(t *testing.T) {
	t.Parallel()
	unread := func(w *incident.Workload) { w.Slices[1].Spec = "" }
	for name, c := range map[string]struct {
		spot   bool
		change func(*incident.Workload)
		path   string
		want   string
	}{
		"one is lost":                           {true, nil, "a read lost", "DeleteNode A (recreate); CreateNode A (recreate); storage"},
		"both are lost":                         {true, nil, "a read lost, b read lost", "CreateNode A, zone after zone: us-west4-a, us-west4-b (if the order fits) (recreate)"},
		"the specification of one is not known": {true, unread, "b read lost", "nothing: the specification of b was never read"},
		"the plan is void":                      {true, unread, "a read lost, b read lost", "nothing: the specification of b was never read"},
		"on demand, one is lost":                {false, nil, "a read lost, b read gone", "CreateNode A, if Google has not brought it back within 4 h 0 m"},
		"the other one is gone":                 {false, nil, "a read lost, b read gone", "CreateNode B, if nobody says within 35 m 0 s that its owner deleted it"},
		"one was never seen alive": {true, func(w *incident.Workload) {
			w.Slices[1].Incarnation, w.Slices[1].Condition, w.Slices[1].Since = events.Incarnation{}, evidence.Gone, start.Add(-time.Hour)
		}, "a read lost", "DeleteNode A"},
		"it lives, and nothing is saved": {true, func(w *incident.Workload) {
			w.Training = incident.Training{Step: 120, StepAt: start.Add(-time.Hour), StepAttempt: 1}
		}, "a read unhealthy, 6m", "no checkpoint of its training has been verified"},
		"it is only looked at": {true, nil, "a host error", "look at the API first"},
	} {
		n := multi(t, c.spot).under("watch")
		if c.change != nil {
			c.change(&n.w)
		}
		n.goes(c.path)
		nodes := strings.NewReplacer("projects/demo/locations/us-west4-a/nodes/a", "A", "projects/demo/locations/us-west4-a/nodes/b", "B")
		if got := nodes.Replace(n.would()); !strings.Contains(got, c.want) || strings.HasPrefix(c.want, "nothing") && got != c.want+": it has to be made by hand" && strings.Contains(got, ";") {
			t.Errorf("%s: would have %q, want %q:\n%s", name, got, c.want, n.tale())
		}
	}
}
