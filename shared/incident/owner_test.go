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
	"pitstop.internal/shared/view"
)

// TestWhatIsOlderThanTheTroubleTakesNothingOver: a creation's entry may come half an hour late, and what it made may be read late.
func TestWhatIsOlderThanTheTroubleTakesNothingOver(t *testing.T) {
	t.Parallel()
	for ago, takes := range map[time.Duration]bool{20 * time.Minute: false, 30 * time.Second: true} {
		n := at(t, "ask", true, "preempted, read lost, a minute").owner(events.ActCreated, "llama-8b", ago)
		if took := n.w.Incident == nil; took != takes {
			t.Errorf("an entry of %v ago takes it over: %v:\n%s", ago, took, n.tale())
		}
		n = multi(t, true).goes("b owner deletes, b read gone, an hour, a preempted, a minute")
		n.reads("b", evidence.Ready, func(e *evidence.Read) {
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "9100", Created: n.now.Add(-ago)}
		})
		if took, b := n.w.Incident == nil, n.w.Slices[1]; took != takes || !took && (b.IsReleased() || n.w.AdmittedIn("b").ID != "9100") {
			t.Errorf("a life of %v ago takes it over: %v, and is %+v:\n%s", ago, took, b.Life, n.tale())
		}
	}
}

// TestAnOrderOfTheOwnersThatCameToNothingStaysTheirs: what they order again and never get was never there. Pitstop does not create it in their place.
func TestAnOrderOfTheOwnersThatCameToNothingStaysTheirs(t *testing.T) {
	t.Parallel()
	for path, opens := range map[string]bool{
		"owner deletes, read gone, an hour, read foreign made, read gone, 4h":             false,
		"owner deletes, read gone, an hour, read foreign made, read lost, 4h":             false,
		"owner deletes, read gone, an hour, read foreign made, read ready, read gone, 4h": true,
		// They take back at once what they have just made, and it is first read while it goes.
		"read gone, owner deletes, read foreign going, read gone, 4h":                                        false,
		"owner deletes, read gone, an hour, owner creates, owner deletes, read foreign going, read gone, 4h": false,
	} {
		n := at(t, "everything", true, path)
		if due := n.w.Due(); (n.about() != nil) != opens || !opens && !due.IsZero() {
			t.Errorf("%s: an incident opens: %v, and due is %v:\n%s", path, !opens, due, n.tale())
		}
		if n.play("read foreign"); n.w.Slices[0].IsReleased() { // what they create and keep is looked after again
			t.Errorf("%s: what its owner has created again is not looked after", path)
		}
	}
	n := newStory(t, true)
	life := events.Incarnation{Zone: "us-west4-a", ID: "9001", Created: start}
	e := evidence.Read{Slice: "llama-8b", Zone: life.Zone, Incarnation: life, State: "CREATING", Facts: evidence.Facts{Capacity: events.Spot}}
	for _, e.Condition = range []evidence.Condition{evidence.Creating, evidence.Gone} {
		e.Origin = n.reading()
		n.give(e).passes(2 * time.Hour)
	}
	n.is("peace") // what nobody has seen before is not made again
}

// TestTrainingFollowsWhatItsOwnerCreatesElsewhere: the lease names the life of another zone, and no crew may put itself into its place.
func TestTrainingFollowsWhatItsOwnerCreatesElsewhere(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"owner deletes, read gone, read elsewhere made, read ready":              "admit llama-8b=7712",
		"owner deletes, read deleting, read elsewhere":                           "admit llama-8b=7712",
		"owner deletes, read lost, read elsewhere":                               "admit llama-8b=7712",
		"owner deletes, read gone, read elsewhere made, read gone, read foreign": "admit llama-8b=7713",
		"owner deletes, read gone, read foreign":                                 "",
		"read elsewhere":                                                         "",
	} {
		n := at(t, "everything", true, path, led)
		sent := slices.Clone(n.sent)
		if sent = append(sent, n.passes(10*time.Minute)...); strings.Join(sent, ", ") != want {
			t.Errorf("%s: asked for is %q, want %q:\n%s", path, sent, want, n.tale())
		}
	}
}

// TestALossThatItsOwnerTookInHandIsNotOpenedAgain. A loss after the slice was usable is another one, and so is what befalls the next life.
func TestALossThatItsOwnerTookInHandIsNotOpenedAgain(t *testing.T) {
	t.Parallel()
	at(t, "everything", true, "tick").history(
		"preempted", "looking", "owner creates", "released", "a minute", "", "read lost", "released", "a minute", "", "read ready", "released", "preempted", "looking",
	)
	multi(t, true).under("spot").history(
		"a preempted", "looking", "a read lost", "deleting: delete a", "a read ready", "resuming", "b owner creates", "released", "10m", "", "a read lost", "deleting: delete a",
	)
	for _, anew := range []string{"tick", "owner deletes, read gone, owner creates, read foreign"} {
		n := at(t, "spot", true, "gave up, cancelled").goes(anew).goes("10m, gave up anew")
		if opened := n.w.Incident != nil; opened != (anew != "tick") {
			t.Errorf("%s: the training fails, and that opens an incident: %v:\n%s", anew, opened, n.tale())
		}
	}
}

// TestWhatItsOwnerHasTakenAwayNamesNoPolicy: the label of a slice that they deleted is not held against that of the others.
func TestWhatItsOwnerHasTakenAwayNamesNoPolicy(t *testing.T) {
	t.Parallel()
	n := multi(t, true)
	n.w.Slices[0].Label, n.w.Slices[1].Label, n.w.Label = "night", "night", "night"
	for _, want := range []string{"day,night", "day", "day,night"} { // where all is its owner's, what was said last
		n.reads("b", evidence.Ready, func(e *evidence.Read) { e.Facts.Label = "day" })
		if n.w.Label != want {
			t.Errorf("labelled %q, want %q", n.w.Label, want)
		}
		n.play(map[string]string{"day,night": "a owner deletes", "day": "b owner deletes"}[want])
	}
}

// TestNobodyWaitsForWhatItsOwnerHasDeleted: that it is still gone is no news at any moment of an incident about another slice.
func TestNobodyWaitsForWhatItsOwnerHasDeleted(t *testing.T) {
	t.Parallel()
	n := multi(t, true).goes("b owner deletes, b read gone, an hour")
	for _, step := range [][2]string{
		{"a preempted", "looking"},
		{"a read lost", "deleting"},
		{"do", "deleting"},
		{"a read gone", "creating"},
		{"do", "creating"},
		{"a read ours made", "creating"},
		{"a read ours", "admitting"},
		{"do", "resuming"},
		{"later", "resuming"},
		{"tick", "resuming"},
		{"later", "resuming"},
		{"tick", "restarting"},
		{"do", "resuming"},
	} {
		n.play(step[0])
		epoch := n.w.Epoch
		if n.history("b read gone", step[1]); n.w.Epoch != epoch {
			t.Fatalf("after %s that is news:\n%s", step[0], n.tale())
		}
	}
	n.goes("a progress").is("resumed")
}

// TestWhatWaitsForThePolicyIsTold by an incident, and admitted by the same one once the policy is mended.
func TestWhatWaitsForThePolicyIsTold(t *testing.T) {
	t.Parallel()
	n := at(t, "unreadable", true, "owner deletes, read gone, read elsewhere, 1m", led)
	n.opens(false)
	n.passes(bounds.Grace + time.Minute)
	n.is("admitting")
	opened := n.w.Incident.ID
	for end := n.now.Add(10 * time.Hour); n.now.Before(end); {
		n.passes(time.Minute)
		if n.isWanted(events.ActionAdmit) && n.w.Effects[0].Stage() == view.StageWanted {
			n.play("held admit")
		}
	}
	sent := n.under("everything").passes(5 * time.Minute)
	if n.w.Incident == nil || n.w.Incident.ID != opened || !slices.Equal(sent, []string{"admit llama-8b=7712"}) {
		t.Errorf("asked for is %q:\n%s", sent, n.tale())
	}
}

// TestAWordEndsTheWaitForOne: a slice is gone, and somebody says why before the wait for that is over.
func TestAWordEndsTheWaitForOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, want string
		cause      events.Cause
	}{
		"preempted, in the grace":          {"stopped for, read gone, preempted, read gone", "creating", events.CauseMaintenance},
		"preempted, in quiet times":        {"read gone, preempted, read gone", "creating", events.CausePreemption},
		"deleted, in the grace":            {"stopped for, read gone, owner deletes", "released", ""},
		"deleted, in quiet times":          {"read gone, owner deletes", "peace", ""},
		"lost and deleted, in this order":  {"read gone, preempted, owner deletes", "released", ""},
		"deleted and lost, in this order":  {"read gone, owner deletes, preempted", "peace", ""},
		"not a word":                       {"read gone", "peace", ""},
		"a line of a user is no such word": {"read gone, crew notice, read gone", "grace", events.CausePreemption},
		"repaired, broken and gone":        {"host error, read unhealthy, read ready, host error, read gone", "creating", events.CauseHostError},
		"repaired, and then gone":          {"host error, read unhealthy, read ready, read gone", "grace", events.CauseHostError},
	} {
		n := at(t, "everything", true, c.path)
		if got := n.stands(nil); got != c.want {
			t.Errorf("%s: %s leads to %s, want %s:\n%s", name, c.path, got, c.want, n.tale())
		} else if n.w.Incident != nil && n.w.Incident.Cause() != c.cause {
			t.Errorf("%s: the cause is %s, want %s", name, n.w.Incident.Cause(), c.cause)
		}
	}
}

// TestWhoDeletedItIsAsked of the audit log where nothing explains that a slice is gone, and once it is left to a person for a while only.
func TestWhoDeletedItIsAsked(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"stopped for, read gone":                            true,
		"stopped for, read gone, preempted":                 false,
		"crew notice, read gone":                            true,
		"preempted, read gone":                              false,
		"host error, read unhealthy, read ready, read gone": true,
		"preempted, read lost, do, read gone":               false,
	} {
		n := at(t, "everything", true, path)
		if got := n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("%s: it is asked %v, want %v", path, got, want)
		}
	}
	n := at(t, "everything", true, "read gone").leftToAPerson(0)
	for after, want := range map[time.Duration]bool{0: true, 2*bounds.Grace - time.Minute: true, 2 * bounds.Grace: false} {
		if got := n.w.Reads(n.w.Slices[0].Since.Add(after)).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("left to a person, and gone for %s: it is asked %v, want %v", after, got, want)
		}
	}
}

// TestALateDeletionOfAFormerLifeEndsNothing where training ran in the next one. It counts where nothing has come of a creation yet.
func TestALateDeletionOfAFormerLifeEndsNothing(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"preempted, read gone, do, read ours, do, started, read lost, do, read gone, a minute": "creating",
		"preempted, read gone, do, read ours made, a minute, late transient create, read gone": "released",
	} {
		n := at(t, "everything", true, path)
		if n.owner(events.ActDeleted, "llama-8b", n.now.Sub(n.w.Slices[0].Incarnation.Created)+time.Millisecond); n.stands(nil) != want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}

// TestWhatItsOwnerOrderedInTheMiddle of an incident: what was lost of it is replaced like any other, and what is theirs is not waited for.
func TestWhatItsOwnerOrderedInTheMiddle(t *testing.T) {
	t.Parallel()
	ordered := []string{"b owner deletes", "peace", "b read gone", "peace", "b read foreign made", "peace"}
	healed := []string{"a host error", "looking", "a read unhealthy", "healing"}
	playAll(t, map[string]history{
		"it is lost on demand before it was usable, and gone": {names: both, w: single, steps: slices.Concat(ordered, []string{
			"a ongoing", "saving: save", "b read lost", "healing", "b read gone", "creating: create b",
		})},
		"it is lost before it was usable, and deleted": {names: both, w: single, spot: true, steps: slices.Concat(ordered, []string{
			"a ongoing", "saving: save", "b read lost", "deleting: delete b", "do", "deleting", "b read gone", "creating: create b",
		})},
		"it is lost before it was usable, and gone before a person has said yes": {names: both, w: single, spot: true, policy: "ask", steps: slices.Concat(ordered, []string{
			"a host error", "looking", "b read lost", "approving", "b read gone", "approving", "approved", "creating: create b",
		})},
		"it comes to nothing":  {names: both, w: single, steps: slices.Concat(ordered, healed, []string{"b read gone", "healing", "a read ready", "resuming"})},
		"it is made for hours": {names: both, w: single, steps: slices.Concat(ordered, healed, []string{"a read ready", "healing", "later", "healing", "tick", "escalated"})},
		"they are deleting it, and it is sick": {names: both, w: single, steps: slices.Concat([]string{"b owner deletes", "peace"}, healed, []string{
			"a read ready", "resuming", "b read unhealthy", "resuming", "b read lost", "resuming",
		})},
	})
}

// TestAnIncidentAboutOneSliceForgetsNothingOfAnother, which is just coming, in vain: if it was left to a person, it stays so.
func TestAnIncidentAboutOneSliceForgetsNothingOfAnother(t *testing.T) {
	t.Parallel()
	for _, left := range []bool{true, false} {
		n := multi(t, true)
		n.w.Slices[0].Condition, n.w.Slices[0].State = evidence.Creating, "CREATING"
		if left {
			n.leftToAPerson(0)
		}
		n.history("b preempted", "", "b owner deletes", "released", "a read gone", "released", "a while", "", "tick", "")
		if opened := n.w.Incident != nil; opened == left {
			t.Errorf("left to a person %v, and an incident opens: %v\n%s", left, opened, n.tale())
		}
	}
}

// leftToAPerson says that people were told of the end of a slice.
func (n *story) leftToAPerson(i int) *story {
	s := n.w.Slices[i]
	n.w.Told = append(n.w.Told, incident.Told{Of: incident.ToldEnd, Slice: s.Name, Life: s.Incarnation.ID, At: s.Since})
	return n
}

// TestWhatItsOwnerOrdersDuringTheCleanUpStaysTheirs: what we had asked for is awaited, and there is no capacity for what they ordered.
func TestWhatItsOwnerOrdersDuringTheCleanUpStaysTheirs(t *testing.T) {
	t.Parallel()
	n := multi(t, true).leftToAPerson(1)
	n.w.Slices[1].Condition, n.w.Slices[1].State = evidence.Gone, "gone"
	n.history(
		"a preempted", "", "a read gone", "creating: create a", "intend create", "creating", "b owner creates", "clearing", "16m", "", "b read foreign made", "",
		"a read gone", "released", "b read gone", "released", "2h", "", "tick", "",
	)
	if n.w.Incident != nil {
		t.Errorf("it opens an incident:\n%s", n.tale())
	}
}

// TestAMultisliceThatItsOwnerMovesIsAdmittedOnce, whatever slices are read again behind it.
func TestAMultisliceThatItsOwnerMovesIsAdmittedOnce(t *testing.T) {
	t.Parallel()
	n := multi(t, true).with(led).goes("a owner deletes, b owner deletes, a read gone, b read gone, an hour").history("a read elsewhere", "peace", "b read elsewhere", "peace")
	if due := n.w.Due(); due.IsZero() || due.After(n.now) {
		t.Errorf("due at %v, want now", due)
	}
	n.history("tick", "admitting: admit a=7712 b=7761", "do", "resuming", "a read ready", "resuming", "b read ready", "resuming", "tick", "resuming")
}

// TestWhatItsOwnerOrdersInAnotherZoneIsWaitedForThere. The zone that it has left says each minute that it is gone, which is no loss.
func TestWhatItsOwnerOrdersInAnotherZoneIsWaitedForThere(t *testing.T) {
	t.Parallel()
	for _, begins := range []string{"read gone", "stopped for, read gone"} {
		n := at(t, "everything", true, begins, inQueue, led)
		ordered, home := n.now.Add(-time.Second), n.w.Slices[0].Zone
		there := func(c evidence.Condition, life events.Incarnation) []string {
			n.reads("llama-8b", c, func(e *evidence.Read) { e.Zone, e.Ordered, e.Incarnation = "us-west4-b", ordered, life })
			return append(slices.Clone(n.sent), n.passes(0)...)
		}
		var asked []string
		for range 4 * int(bounds.Grace/time.Minute) {
			asked = append(asked, there(evidence.Creating, events.Incarnation{Zone: "us-west4-b"})...)
			n.reads("llama-8b", evidence.Gone, func(e *evidence.Read) { e.Zone, e.Incarnation, e.Facts = home, events.Incarnation{}, evidence.Facts{} })
			asked = append(append(asked, n.sent...), n.passes(time.Minute)...)
		}
		if len(asked) > 0 || n.w.Incident != nil {
			t.Fatalf("%s: asked for is %q:\n%s", begins, asked, n.tale())
		}
		asked = there(evidence.Ready, events.Incarnation{Zone: "us-west4-b", ID: "9001", Created: n.now})
		if asked = append(asked, n.passes(time.Minute)...); strings.Join(asked, ", ") != "admit llama-8b=9001" {
			t.Errorf("%s: asked for is %q:\n%s", begins, asked, n.tale())
		}
	}
}
