package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAZoneThatDoesNotTakeTheOrderEndsNothing: what another zone refuses of an order that was taken where the slice was is
// that zone's, and not the order's. The next zone is asked, and never that one again.
func TestAZoneThatDoesNotTakeTheOrderEndsNothing(t *testing.T) {
	const created = "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0"
	p := policies["spot"]
	p.Zones = []string{"us-west4-b", "us-central1-a"}
	for class, want := range map[incident.FailureClass]string{
		incident.CannotMove: "us-central1-a", incident.Invalid: "us-central1-a", incident.NotFound: "us-central1-a", incident.WrongZone: "us-central1-a",
		incident.OtherRegion: "us-central1-a",
		incident.Permission:  "",
	} {
		for _, operation := range []bool{false, true} {
			n := at(t, p, true, created+", stockout create 0, intend create 0, accepted create 0", nil)
			if zone := n.w.Effects[0].Zone; zone != "us-west4-b" {
				t.Fatalf("the second zone is %s", zone)
			}
			failure := &incident.Failure{Class: class, Message: "bad"}
			var e incident.Evidence = incident.Ended{Operation: n.w.Effects[0].Operation, Failure: failure}
			if !operation {
				n = at(t, p, true, created+", stockout create 0, intend create 0", nil)
				e = incident.Answered{Request: asked(n.w, n.now), Failure: failure}
			}
			w, sent, _ := advance(p, n.w, e, n.now)
			var zones []string
			for _, s := range sent {
				if r, ok := s.(events.RecreateRequested); ok {
					zones = append(zones, r.Zone)
				}
			}
			switch {
			case want == "":
				if w.Incident != nil || w.Closed.Outcome != incident.Escalated {
					t.Errorf("%s: it goes on", class)
				}
			case w.Incident == nil:
				t.Errorf("%s: it ended: %s", class, w.Closed.Reason)
			case !cmp.Equal(zones, []string{want}) || !w.Incident.Zones[1].Never:
				t.Errorf("%s: asked %v next, refusals %+v", class, zones, w.Incident.Zones)
			}
		}
	}
	// Where it was itself, what is wrong is wrong everywhere.
	n := at(t, p, true, created, nil)
	w, _, _ := advance(p, n.w, incident.Answered{Request: asked(n.w, n.now), Failure: &incident.Failure{Class: incident.Invalid, Message: "bad"}}, n.now)
	if w.Incident != nil {
		t.Error("a specification that is refused where it was read is asked for again")
	}
}

// TestAZoneThatJustFailedIsNotAskedForTheNextLoss: what has just refused one slice refuses another; and the story says when
// capacity was found.
func TestAZoneThatJustFailedIsNotAskedForTheNextLoss(t *testing.T) {
	const created = "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, stockout create 0, intend create 0, accepted create 0"
	p := policies["spot"]
	n := at(t, p, true, created+", read ours made", nil)
	n.now = n.now.Add(20 * time.Second)
	learn := func(what string) {
		e := evidence(n.w, n.now)[what]
		if e == nil {
			t.Fatalf("there is no %s in %s", what, tale(n.w))
		}
		n.w, _, _ = advance(p, n.w, e, n.now)
	}
	learn("read lost")
	for _, what := range []string{"intend delete 0", "accepted delete 0", "read gone"} {
		learn(what)
	}
	var asked []string
	for _, effect := range n.w.Effects {
		asked = append(asked, string(effect.Action)+" in "+effect.Zone)
	}
	if d := cmp.Diff([]string{"create in us-west4-b"}, asked); d != "" {
		t.Errorf("asked next (-want +got):\n%s\n%s", d, tale(n.w))
	}
	for _, what := range []string{"intend create 0", "accepted create 0", "read ours"} {
		learn(what)
	}
	if said := tale(n.w); !strings.Contains(said, "capacity was found in us-west4-") {
		t.Errorf("nothing says that capacity was found:\n%s", said)
	}
}

// TestAWaitForCapacityIsToldOf: at its start, after an hour, every six hours, and when it is over.
func TestAWaitForCapacityIsToldOf(t *testing.T) {
	p := policies["spot"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone", nil)
	began := n.now
	var told []string
	note := func() {
		for _, l := range n.w.Incident.Timeline {
			if l.At.Equal(n.now) && (strings.HasPrefix(l.Text, either("keep asking", "still create", "words")) || strings.HasPrefix(l.Text, "capacity")) {
				told = append(told, n.now.Sub(began).Round(10*time.Minute).String()+" "+l.Text)
			}
		}
	}
	refuse := func() {
		if e := evidence(n.w, n.now)["intend create 0"]; e != nil && n.w.Effects[0].Retry.IsZero() {
			n.w, _, _ = advance(p, n.w, e, n.now)
			n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)["stockout create 0"], n.now)
		}
	}
	for n.now.Sub(began) < 14*time.Hour {
		refuse()
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = tick(p, n.w, n.now)
		note()
	}
	if first := tale(n.w); !strings.Contains(first, either("every zone refused: no capacity", "create llama-8b in us-west4-b", "words")) || either(0, strings.Count(first, "failed"), "words") > 4 {
		t.Errorf("the start is not told: %s", first)
	}
	for n.w.Effects[0].Begun.IsZero() || !n.w.Effects[0].Retry.IsZero() {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = tick(p, n.w, n.now)
		if e := evidence(n.w, n.now)["intend create 0"]; e != nil {
			n.w, _, _ = advance(p, n.w, e, n.now)
		}
	}
	for _, what := range []string{"accepted create 0", "read ours"} {
		n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)[what], n.now)
	}
	note()
	waits := either("keep asking for capacity", "still create llama-8b in us-west4-a", "words")
	want := []string{"1h0m0s " + waits, "6h0m0s " + waits, "12h0m0s " + waits, "14h0m0s capacity was found in us-west4-a"}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}
