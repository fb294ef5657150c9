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

// plans are the calls that an incident would have made, in short.
func plans(w incident.Workload) (all []string) {
	in := w.Incident
	if in == nil {
		in = w.Closed
	}
	for _, c := range in.PlannedCalls {
		all = append(all, c.Method+" "+c.Resource)
	}
	return all
}

// TestWhatIsOnlyWatchedIsRehearsed: the calls that would have been made stand in the incident, each by its name, and what would
// be none says so.
func TestWhatIsOnlyWatchedIsRehearsed(t *testing.T) {
	replaced := []string{"DeleteNode " + nodeA, "CreateNode " + nodeA, "storage.objects.create " + lease}
	saved := []string{"storage.objects.create " + saving, "UpdateNode " + nodeA}
	for _, c := range []struct {
		policy, path string
		spot         bool
		but          func(*incident.Workload)
		want         []string
	}{
		{"watch", "preempted", true, nil, nil},
		{"watch", "preempted, read lost", true, nil, replaced},
		{"watch", "preempted, read lost, read lost", true, nil, replaced},
		{"watch", "preempted, read gone", true, nil, replaced[1:]},
		{"watch", "preempted, read lost", true, bare, replaced[:2]},
		{"watch", "preempted, read lost", true, inQueue, []string{
			"DeleteQueuedResource projects/demo/locations/us-west4-a/queuedResources/qr",
			"CreateQueuedResource projects/demo/locations/us-west4-a/queuedResources/qr", "storage.objects.create " + lease,
		}},
		{"watch", "pending, later, tick", false, nil, append(slices.Clone(saved), "PerformMaintenance "+nodeA)},
		{"watch", "pending, later, tick", false, crewless, nil},
		{"watch", "exit 139", true, nil, nil},
		{"watch", "exit 139, gave up, its verdict", true, nil, []string{"storage.objects.create " + lease}},
		{"watch", "exit 139, gave up, its verdict", true, bare, nil},
		{"spot", "host error, read lost, later, tick", false, nil, replaced},
		{"watch", "read unhealthy, later, tick", true, nil, replaced},
		{"watch", "read stopped, later, unsaid, tick", false, single, []string{"StartNode " + nodeA}},
		{"watch", "read stopped, later, unsaid, tick", false, nil, nil},
		{"spot", "preempted, read lost, forbidden delete 0", true, nil, replaced[:1]},
	} {
		if strings.HasSuffix(c.path, "forbidden delete 0") && either(false, true, "own policy") {
			continue
		}
		n := at(t, policies[c.policy], c.spot, c.path, c.but)
		if d := cmp.Diff(c.want, plans(n.w)); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.policy, c.path, d)
		}
		in := n.w.Incident
		if in == nil {
			in = n.w.Closed
		}
		if len(in.WouldHave()) == 0 || len(in.Calls) > 0 {
			t.Errorf("%s: %s: would have %q, and %d calls were made", c.policy, c.path, in.WouldHave(), len(in.Calls))
		}
	}
}

// TestARehearsalAsksTheZonesOfThePolicy: in its order, with what keeps an order from one, and what decides about another region.
func TestARehearsalAsksTheZonesOfThePolicy(t *testing.T) {
	p := policies["watch"]
	p.Zones = []string{"us-west4-b", "us-east5-a", "us-west4-c"}
	n := at(t, p, true, "preempted, read lost", nil)
	slice, places := n.w.Incident.Unfitted()
	if slice != "llama-8b" || !slices.EqualFunc(places, p.Zones, func(at incident.Place, zone string) bool { return at == incident.Place{Zone: zone} }) {
		t.Fatalf("unfitted are %v of %s", places, slice)
	}
	fits := []incident.ZoneFit{
		{Zone: "us-west4-b", Checked: true},
		{Zone: "us-east5-a", Checked: true},
		{Zone: "us-west4-c", Checked: true, Code: incident.CannotMove.Code(), Text: "reservation r is in us-west4-a"},
	}
	w, sent, changed := advance(p, n.w, incident.Fitted{Slice: slice, Zones: fits}, n.now)
	if !changed || len(sent) > 0 {
		t.Errorf("changed %v, sent %v", changed, sent)
	}
	const want = "CreateNode " + nodeA + ", zone after zone: us-west4-a, us-west4-b, us-east5-a (if the checkpoints' bucket is there too), " +
		"us-west4-c is not asked (reservation r is in us-west4-a) (recreate)"
	if got := w.Incident.PlannedCalls[1].String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, left := w.Incident.Unfitted(); left != nil {
		t.Errorf("%v are asked for again", left)
	}
	if _, before := n.w.Incident.Unfitted(); len(before) != 3 {
		t.Error("Advance changed what it was given")
	}
}

// TestWhatIsRehearsedIsWhatIsCalled plays the same evidence under a policy that allows nothing and under one that allows all:
// what the one would have called, the other has called.
func TestWhatIsRehearsedIsWhatIsCalled(t *testing.T) {
	ready := ", read gone, intend create 0, accepted create 0, read ours, intend admit 0, accepted admit 0"
	for _, c := range []struct {
		watched, acted string
		spot           bool
		but            func(*incident.Workload)
	}{
		{"preempted, read lost", "preempted, read lost, intend delete 0, accepted delete 0" + ready, true, nil},
		{"preempted, read lost", "preempted, read lost, intend delete 0, accepted delete 0" + ready, true, inQueue},
		{"exit 139, gave up, its verdict", "exit 139, gave up, its verdict, intend restart 0, accepted restart 0", true, nil},
		{"read stopped, later, unsaid, tick", "read stopped, later, unsaid, tick, intend start 0, accepted start 0", false, single},
		{
			"pending, later, tick",
			"pending, later, tick, intend save 0, accepted save 0, saved, found verify 0, intend maintain 0, accepted maintain 0", false, nil,
		},
	} {
		dry := at(t, policies["watch"], c.spot, c.watched, c.but)
		var made []string
		for _, call := range at(t, policies["everything"], c.spot, c.acted, c.but).w.Incident.Calls {
			made = append(made, call.Method+" "+call.Resource)
		}
		if d := cmp.Diff(made, plans(dry.w)); d != "" {
			t.Errorf("%s (-made +rehearsed):\n%s", c.acted, d)
		}
	}
}

// TestAMultisliceIsRehearsedWhereItStands: what is lost alone is asked for in the zone of the others, whatever the policy names. What is
// lost together may move together.
func TestAMultisliceIsRehearsedWhereItStands(t *testing.T) {
	w := quiet(true)
	w.Label, w.Slices = "pair", append(slices.Clone(w.Slices), w.Slices[0])
	w.Slices[1].Name = "llama-8b-1"
	p := policy.Policy{Switches: policies["watch"].Switches, Zones: []string{"us-west4-b"}}
	lost := func(w incident.Workload, slice string) incident.Workload {
		w, _, _ = advance(p, w, incident.Read{
			Origin: incident.Origin{Time: start, Rank: events.RankReading}, Slice: slice, Zone: "us-west4-a", Condition: incident.Lost,
			Incarnation: w.Slice(slice).Incarnation, State: "PREEMPTED",
		}, start)
		return w
	}
	one := lost(w, "llama-8b")
	if plan := one.Incident.PlannedCalls; len(plan) != 3 || len(plan[1].Zones) != 1 {
		t.Errorf("one is lost: %v", plan)
	}
	both := lost(one, "llama-8b-1")
	if plan := both.Incident.PlannedCalls; len(plan) != 5 || len(plan[2].Zones) != 2 {
		t.Errorf("both are lost: %v", plan)
	}
	w.Slices[0].Spec = ""
	if in := lost(w, "llama-8b").Incident; len(in.PlannedCalls) > 0 || !strings.HasPrefix(in.Would[0], "nothing: the specification of llama-8b") {
		t.Errorf("without a specification: %v", in.WouldHave())
	}
}

// TestWhatLivesAndIsSavedNowhereIsNotRehearsedAway: the rehearsal of a deletion rests on the same proof as the deletion.
func TestWhatLivesAndIsSavedNowhereIsNotRehearsedAway(t *testing.T) {
	unsaved := func(w *incident.Workload) {
		w.Progress = incident.Progress{Step: 120, At: start.Add(-time.Hour), Attempt: 1}
	}
	in := at(t, policies["watch"], true, "read unhealthy, later, tick", unsaved).w.Incident
	if len(in.PlannedCalls) > 0 || !strings.Contains(in.Would[0], "no checkpoint of its training has been verified") {
		t.Errorf("would have %q", in.WouldHave())
	}
}

// lossOf is a reading that shows a slice of a workload lost, or gone.
func lossOf(w incident.Workload, slice string, c incident.Condition) incident.Read {
	return incident.Read{
		Origin: incident.Origin{Time: start, Rank: events.RankReading}, Slice: slice, Zone: "us-west4-a", Condition: c,
		Incarnation: w.Slice(slice).Incarnation, State: "TERMINATED",
	}
}

// TestAPlanThatIsVoidGoes: what would have been called before is not kept beside why nothing would be called any more.
func TestAPlanThatIsVoidGoes(t *testing.T) {
	w := multi(true)
	w.Slices[1].Spec = ""
	w, _, _ = advance(policies["watch"], w, lossOf(w, "a", incident.Lost), start)
	if len(w.Incident.PlannedCalls) == 0 {
		t.Fatal("nothing is planned for a")
	}
	w, _, _ = advance(policies["watch"], w, lossOf(w, "b", incident.Lost), start)
	if would := w.Incident.WouldHave(); len(would) != 1 || !strings.HasPrefix(would[0], "nothing: the specification of b was never read") {
		t.Errorf("would have %q", would)
	}
}

// TestAWaitBelongsToItsSlice: each slice of a Multislice is waited for as it is.
func TestAWaitBelongsToItsSlice(t *testing.T) {
	w := multi(false)
	for _, e := range []incident.Read{lossOf(w, "a", incident.Lost), lossOf(w, "b", incident.Gone)} {
		w, _, _ = advance(policies["watch"], w, e, start)
	}
	for _, c := range w.Incident.PlannedCalls {
		if c.Action != events.ActionCreate {
			continue
		}
		want := map[string]string{
			"a": "if Google has not brought it back within 4 h 0 m", "b": "if nobody says within 35 m 0 s that its owner deleted it",
		}[c.Slice]
		if c.When != want {
			t.Errorf("%s is created %q, want %q", c.Slice, c.When, want)
		}
	}
}

// TestWhatIsOnlyLookedAtIsNotRehearsed: how a slice was before says nothing about what a look will show.
func TestWhatIsOnlyLookedAtIsNotRehearsed(t *testing.T) {
	for _, c := range either([]incident.Condition{incident.Creating, incident.Deleting, incident.Unhealthy}, []incident.Condition{incident.Ready}, "read") {
		before := func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].State = c, strings.ToUpper(string(c)) }
		in := at(t, policies["watch"], true, "host error", before).w.Incident
		if would := in.WouldHave(); len(would) != 1 || !strings.HasPrefix(would[0], "look at the API") {
			t.Errorf("%s: would have %q", c, would)
		}
	}
}

// TestNothingIsMadeUpForWhatNobodyWants: a creation that was given up brings nothing in a plan.
func TestNothingIsMadeUpForWhatNobodyWants(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0", nil)
	n.w.Incident.Deadline = n.now.Add(time.Hour)
	got := texts(n.w.AtDeadline(policies["everything"]))
	if !strings.Contains(got, "clean up what our own request brought") || strings.Contains(got, "delete llama-8b") {
		t.Errorf("at its deadline: %s", got)
	}
}

// TestADeadlinePromisesNoCapacity: a creation that was accepted is waited for longer, and nobody knows what comes of it.
func TestADeadlinePromisesNoCapacity(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0", nil)
	if got := texts(n.w.AtDeadline(policies["everything"])); !strings.HasPrefix(got, "wait for llama-8b for") || strings.Contains(got, ";") {
		t.Errorf("at its deadline: %s", got)
	}
}

// TestALossOpensNothingOfAnother: what would follow from a loss that is told already is not what the clock does about another slice.
func TestALossOpensNothingOfAnother(t *testing.T) {
	w := multi(true)
	w.Slices[0].End.Reported = true
	w.Slices[1].Notice = incident.Notice{
		Notice: events.Notice{Status: events.NoticePending, WindowStart: start.Add(48 * time.Hour)}, LastWord: start, Due: start.Add(47 * time.Hour),
	}
	if plan := w.IfLost(policies["everything"], "a", start); len(plan.Decisions) > 0 || plan.Reason == "" {
		t.Errorf("%+v", plan)
	}
}

// TestWhatWasNeverSeenAliveIsNotAskedAboutForEver: no audit log tells who deleted what never lived.
func TestWhatWasNeverSeenAliveIsNotAskedAboutForEver(t *testing.T) {
	w := multi(true)
	w.Slices[1].Incarnation, w.Slices[1].Condition, w.Slices[1].Since = events.Incarnation{}, incident.Gone, start.Add(-time.Hour)
	w, _, _ = advance(policies["watch"], w, lossOf(w, "a", incident.Lost), start)
	if plan := w.Incident.PlannedCalls; len(plan) == 0 || plan[0].Method != "DeleteNode" {
		t.Errorf("would have %q", w.Incident.WouldHave())
	}
}
