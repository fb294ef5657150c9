package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
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
	e := evidence.Read{Slice: "llama-8b", Zone: life.Zone, Incarnation: life, State: "CREATING", Facts: evidence.Facts{Reclaimable: true}}
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
