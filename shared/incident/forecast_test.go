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
	const again = "recreate: delete llama-8b first; create llama-8b in us-west4-a"
	for name, c := range map[string]struct {
		policy string
		change func(*incident.Workload)
		phase  view.Phase
		want   string
	}{
		"Spot":                     {"spot", spot, view.Resuming, again + "; admit training to the new slice; wait for progress past step 48,000"},
		"another":                  {"everything", onDemand, view.Resuming, "wait for Google's own recovery; " + again},
		"a person is asked":        {"ask", spot, view.Approving, "wait for approval: recreate llama-8b"},
		"nothing is allowed":       {"watch", spot, view.Watching, "only watch"},
		"the switch is no":         {"seldom", spot, "", "escalated: node llama-8b is PREEMPTED, and the switch recreate is no"},
		"no specification":         {"spot", unspecified, "", "escalated: the specification of llama-8b was never read"},
		"the policy is unread":     {"unreadable", spot, view.PhaseDeleting, "wait for the deletion"},
		"one of a queued resource": {"spot", func(w *incident.Workload) { *w = queued(t, true).w }, view.Resuming, "recreate: delete a, b first; create a, b in us-west4-a"},
	} {
		n := newStory(t, true, "llama-8b").under(c.policy).with(c.change)
		before := marshal(n.w)
		f := n.w.IfLost(n.p, n.w.Slices[0].Name, n.now)
		if got := texts(f); !strings.Contains(got, c.want) || f.Phase != c.phase || marshal(n.w) != before {
			t.Errorf("%s: foreseen is %q, want %q; it would stand at %q, want %q", name, got, c.want, f.Phase, c.phase)
		}
	}
}

// spot changes nothing, and unspecified has no specification be known of the last slice.
func spot(*incident.Workload)          {}
func unspecified(w *incident.Workload) { w.Slices[len(w.Slices)-1].Spec = "" }

// TestWhatOpensNothingIsForeseenAsThat, and says why: not as the incident that closed last, and not as what time does to another slice.
func TestWhatOpensNothingIsForeseenAsThat(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		path   string
		change func(*incident.Workload)
	}{
		"its owner deleted a": {"a owner deletes, a read gone", spot},
		"its owner ordered a, and handles it until it is usable": {"b log moved", func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].Unused = evidence.Creating, true }},
		"the training is done":                 {"a finished, a its verdict, 1h", spot},
		"people were told that a is PREEMPTED": {"a read lost, intend delete a, permission delete a, b log moved", spot},
		"Google suspects abuse on a":           {"a abuse and lost, b log moved", spot},
	} {
		n := multi(t, true).with(c.change).goes(c.path)
		if f := n.w.IfLost(n.p, "a", n.now); f.Reason != why || len(f.Decisions) > 0 || f.Outcome != "" {
			t.Errorf("%+v, want nothing, because %s:\n%s", f, why, n.tale())
		}
		if f := n.w.IfLost(n.p, "nobody", n.now); len(f.Decisions) > 0 || f.Reason != "" {
			t.Errorf("of no slice: %+v", f)
		}
	}
}

// TestTheDeadlineIsForeseen, but no capacity that nobody has, and no checkpoint that nobody has told of.
func TestTheDeadlineIsForeseen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path   string
		change func(*incident.Workload)
		want   string
		only   bool
	}{
		{"preempted", spot, "wait for progress past step 48,000", false},
		{"host error, read unhealthy", spot, "recreate: delete llama-8b first", false},
		{"exit 139", spot, "ask the crew for another attempt", false},
		{created + ", do", spot, "clean up what our own request brought", true}, // and nobody knows what that is
		{created + ", do, read ours, do", crewless, "verify the checkpoint", true},
		{"tick", spot, "", true},
	} {
		n := at(t, "everything", true, c.path, c.change)
		got := texts(n.w.AtDeadline(n.p))
		if !strings.Contains(got, c.want) || c.only && (!strings.HasPrefix(got, c.want) || strings.Contains(got, ";")) {
			t.Errorf("%s: foreseen is %q, want %q", c.path, got, c.want)
		}
	}
}

// plannedCalls are the calls that an incident would have made, in short.
func (n *story) plannedCalls() (all []string) {
	for _, c := range n.about().Planned {
		all = append(all, c.Method+" "+c.Resource)
	}
	return all
}

// would is what an incident says that it would have done.
func (n *story) would() string {
	return strings.Join(n.w.ShownIncident(*n.about(), n.now).WouldHave(), "; ")
}

// TestWhatIsOnlyWatchedIsRehearsed: the calls that would have been made stand in the incident. A policy that allows all has the same ones made.
func TestWhatIsOnlyWatchedIsRehearsed(t *testing.T) {
	t.Parallel()
	const replaces = ", do, read gone, do, read ours, do"
	for _, c := range []struct {
		policy string
		spot   bool
		path   string
		acted  string // and then, where all is allowed
		change func(*incident.Workload)
		want   string
	}{
		{"watch", true, "preempted", "", spot, ""},
		{"watch", true, "preempted, read lost", replaces, spot, "DeleteNode N, CreateNode N, storage.objects.create LEASE"},
		{"watch", true, "preempted, read gone", "", spot, "CreateNode N, storage.objects.create LEASE"},
		{"watch", true, "preempted, read lost", "", bare, "DeleteNode N, CreateNode N"},
		{"watch", true, "preempted, read lost", replaces, inQueue, "DeleteQueuedResource Q, CreateQueuedResource Q, storage.objects.create LEASE"},
		{"watch", false, "pending, later, tick", ", do, saved, found verify, do", spot, "storage.objects.create REQUEST, UpdateNode N, PerformMaintenance N"},
		{"watch", true, "exit 139", "", spot, ""},
		{"watch", true, failing, ", do", spot, "storage.objects.create LEASE"},
		{"watch", true, failing, "", bare, ""},
		{"spot", false, "host error, read lost, later, tick", "", spot, "DeleteNode N, CreateNode N, storage.objects.create LEASE"},
		{"watch", true, "read unhealthy, later, tick", "", spot, "DeleteNode N, CreateNode N, storage.objects.create LEASE"},
		{"watch", false, "read stopped, later, unsaid, tick", ", do", single, "StartNode N"},
		{"watch", false, "read stopped, later, unsaid, tick", "", spot, ""},
	} {
		want := strings.NewReplacer(" N", " "+nodeA, " Q", " "+queueA, "LEASE", leaseObject, "REQUEST", "gs://ckpt/llama-8b/"+events.RequestObject).Replace(c.want)
		n := at(t, c.policy, c.spot, c.path, c.change)
		if got := strings.Join(n.plannedCalls(), ", "); got != want || n.would() == "" {
			t.Errorf("%s: %s: would have %q, and says %q, want %q:\n%s", c.policy, c.path, got, n.would(), want, n.tale())
		}
		if c.acted == "" {
			continue
		}
		var made []string
		for _, call := range at(t, "everything", c.spot, c.path+c.acted, c.change).w.Incident.Calls {
			made = append(made, call.Method+" "+call.Resource)
		}
		if got := strings.Join(made, ", "); got != want {
			t.Errorf("%s%s: made is %q, want %q", c.path, c.acted, got, want)
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
		{Place: view.Place{Zone: "us-west4-b"}, Checked: true},
		{Place: view.Place{Zone: "us-east5-a"}, Checked: true},
		{Place: view.Place{Zone: "us-west4-c"}, Checked: true, Code: reason.CannotMove.Code(), Text: "reservation r is in us-west4-a"},
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

// TestARehearsalIsOfEachSlice as it stands: what is lost alone is asked for beside the others. A plan that is void goes.
func TestARehearsalIsOfEachSlice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spot   bool
		change func(*incident.Workload)
		path   string
		want   string
	}{
		"one is lost":                           {true, spot, "a read lost", "DeleteNode A (recreate); CreateNode A (recreate); storage"},
		"both are lost":                         {true, spot, "a read lost, b read lost", "CreateNode A, zone after zone: us-west4-a, us-west4-b (if the order fits) (recreate)"},
		"the specification of one is not known": {true, unspecified, "b read lost", "nothing: the specification of b was never read"},
		"the plan is void":                      {true, unspecified, "a read lost, b read lost", "nothing: the specification of b was never read"},
		"on demand, one is lost":                {false, spot, "a read lost, b read gone", "CreateNode A, if Google has not brought it back within 4 h 0 m"},
		"the other one is gone":                 {false, spot, "a read lost, b read gone", "CreateNode B, if nobody says within 35 m 0 s that its owner deleted it"},
		"one was never seen alive": {true, func(w *incident.Workload) {
			w.Slices[1].Incarnation, w.Slices[1].Condition, w.Slices[1].Since = events.Incarnation{}, evidence.Gone, start.Add(-time.Hour)
		}, "a read lost", "DeleteNode A"},
		"it lives, and nothing is saved": {true, func(w *incident.Workload) {
			w.Training = incident.Training{Step: 120, StepAt: start.Add(-time.Hour), StepAttempt: 1}
		}, "a read unhealthy, 6m", "no checkpoint of its training has been verified"},
		"it is only looked at": {true, spot, "a host error", "look at the API first"},
	} {
		n := multi(t, c.spot).under("watch").with(c.change).goes(c.path)
		nodes := strings.NewReplacer("projects/demo/locations/us-west4-a/nodes/a", "A", "projects/demo/locations/us-west4-a/nodes/b", "B")
		if got := nodes.Replace(n.would()); !strings.Contains(got, c.want) || strings.HasPrefix(c.want, "nothing") && got != c.want+": it has to be made by hand" && strings.Contains(got, ";") {
			t.Errorf("%s: would have %q, want %q:\n%s", name, got, c.want, n.tale())
		}
	}
}
