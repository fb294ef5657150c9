package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAWordEndsTheWaitForOne: a slice is gone, and somebody says why before the wait for that is over.
func TestAWordEndsTheWaitForOne(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		want  string
		cause events.Cause
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
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true, c.path, nil)
			got := phaseOf(n.w)
			if n.w.Closed != nil {
				got = string(n.w.Closed.Outcome)
			}
			if got != c.want {
				t.Errorf("%s leads to %s, want %s", c.path, got, c.want)
			}
			if n.w.Incident != nil && n.w.Incident.Cause != c.cause {
				t.Errorf("the cause is %s, want %s", n.w.Incident.Cause, c.cause)
			}
		})
	}
}

func TestUnexplained(t *testing.T) {
	for path, want := range map[string]bool{
		"tick":                              false,
		"read lost":                         false,
		"read gone":                         true,
		"read gone, owner deletes":          false,
		"stopped for, read gone":            true,
		"stopped for, read gone, preempted": false,
		"crew notice, read gone":            true,
		"preempted, read gone":              false,
		"host error, read unhealthy, read ready, read gone":                   true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone": false,
	} {
		n := at(t, policies["everything"], true, path, nil)
		if got := readsOf(n.w, n.now).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	n := at(t, policies["everything"], true, "read gone", nil)
	if readsOf(n.w, n.now).Has(incident.ReadDeleter, "another") {
		t.Error("a slice that nobody knows is unexplained")
	}
	n.w.Slices[0].End.Reported = true
	for after, want := range map[time.Duration]bool{0: true, 2*incident.Grace - time.Minute: true, 2 * incident.Grace: false} {
		if got := readsOf(n.w, n.w.Slices[0].Since.Add(after)).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("left to a person, and gone for %s: %v, want %v", after, got, want)
		}
	}
}

// TestAbuseStopsAllAutomation: the symptom stands on a slice of which nothing else is wrong, and outlives it.
func TestAbuseStopsAllAutomation(t *testing.T) {
	for _, spot := range []bool{true, false} {
		for _, path := range []string{
			"preempted", "read lost", "host error, read unhealthy", "ongoing", "exit 139, gave up, its verdict", "pending, later, tick", "read gone, later, tick",
			"crew notice",
		} {
			for name, p := range policies {
				if p.Unreadable != "" {
					continue
				}
				n := at(t, p, spot, "abuse", nil)
				if n.w.Incident != nil || !n.w.Slices[0].Abuse.Suspected {
					t.Fatalf("abuse alone: %+v", n.w.Incident)
				}
				m := at(t, p, spot, "abuse, "+path, nil)
				if m.w.Incident != nil {
					t.Errorf("%s, %s: the incident is %s", name, path, m.w.Incident.Phase)
				}
				if c := m.w.Closed; c == nil || c.Outcome != incident.Escalated && c.Outcome != incident.Observed {
					t.Errorf("%s, %s: it ended as %+v", name, path, c)
				}
				told := m.w.Closed.ID
				for _, what := range []string{"read lost", "terminated", "ongoing", "exit 1", "gave up", "crew notice", "tick"} {
					m.now = m.now.Add(time.Minute)
					m.w, _, _ = advance(p, m.w, evidence(m.w, m.now)[what], m.now)
					if m.w.Incident != nil || m.w.Closed.ID != told {
						t.Fatalf("%s, %s, %s: a person is told again, by %+v", name, path, what, m.w.Closed)
					}
				}
				if !due(m.w).IsZero() {
					t.Errorf("%s, %s: it is still due at %v", name, path, due(m.w))
				}
			}
		}
	}

	// The reading that shows the loss may be the one that shows the symptom, and nothing leaves with it.
	n := node{w: quiet(true), now: start}
	facts := incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec1", Label: "night"}
	read := incident.Read{
		Origin: incident.Origin{Time: start, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Incarnation: life(1),
		Condition: incident.Lost, State: "PREEMPTED, PROJECT_ABUSE", Facts: facts, Abuse: true, Directory: n.w.Directory,
	}
	w, sent, _ := advance(policies["everything"], n.w, read, start)
	var types []string
	for _, e := range sent {
		types = append(types, e.EventType())
	}
	if d := cmp.Diff([]string{events.TypeIncidentClosed}, types); d != "" || w.Closed.Outcome != incident.Escalated {
		t.Errorf("%s (-want +got):\n%s", w.Closed.Outcome, d)
	}

	// What was read before takes nothing back.
	before := read
	before.Condition, before.State, before.Abuse, before.Time = incident.Ready, "READY", false, start.Add(-time.Second)
	if w, _, _ := advance(policies["everything"], w, before, start.Add(time.Second)); !w.Slices[0].Abuse.Suspected || !w.Slices[0].Abuse.Reported {
		t.Error("an older reading takes the suspicion back")
	}

	// What Google takes the symptom off again is looked after again.
	read.Condition, read.State, read.Abuse, read.Time = incident.Ready, "READY", false, start.Add(time.Minute)
	if w, _, _ = advance(policies["everything"], w, read, start.Add(time.Minute)); w.Slices[0].Abuse.Suspected {
		t.Error("the symptom is gone, and nothing is done")
	}
	read.Condition, read.State, read.Time = incident.Lost, "PREEMPTED", start.Add(time.Hour)
	if w, _, _ = advance(policies["everything"], w, read, read.Time); w.Incident == nil || w.Incident.Phase != incident.PhaseDeleting {
		t.Errorf("it is lost, and %s", tale(w))
	}
}

// TestASuspicionOfWhatIsNotUsableEndsAtAPersonsWord: no reading of a slice that is not READY takes the symptom off again, and whoever
// has settled it with Google says so. A reading that shows it stops everything again.
func TestASuspicionOfWhatIsNotUsableEndsAtAPersonsWord(t *testing.T) {
	p := policies["everything"]
	for trouble, opens := range map[string]incident.Phase{
		"read lost":                           either(incident.Looking, incident.PhaseDeleting, "read"),
		"read gone, later, tick":              either(incident.Looking, incident.PhaseCreating, "read"),
		"read unhealthy, a while, tick":       either(incident.Looking, incident.PhaseDeleting, "read"),
		"read unclear, a while, tick":         either(incident.Looking, incident.PhaseDeleting, "read"),
		"read stopped, a while, unsaid, tick": either(incident.Looking, incident.Starting, "read"),
	} {
		n := at(t, p, true, "abuse, "+trouble, func(w *incident.Workload) { ofOneWorker(*w) })
		told := n.w.Closed
		if n.w.Incident != nil || told == nil || told.Code != incident.CodeAbuse || !strings.Contains(told.Advice, "pitstop retry llama-8b") {
			t.Fatalf("%s: %+v is open, and told is %+v", trouble, n.w.Incident, told)
		}
		reading := strings.Split(trouble, ",")[0]
		for range 7 {
			n.now = n.now.Add(24 * time.Hour)
			n = at1(t, p, at1(t, p, n, reading), "tick")
		}
		if n.w.Incident != nil {
			t.Fatalf("%s: it is told again: %+v", trouble, n.w.Incident)
		}
		n = at1(t, p, n, "retried")
		if phaseOf(n.w) != string(opens) {
			t.Errorf("%s: a retry leads to %s, want %s: %s", trouble, phaseOf(n.w), opens, n.w.NothingToRetry(n.now))
			continue
		}
		if n = at1(t, p, n, "abuse and lost"); n.w.Incident != nil || n.w.Closed.ID == told.ID || n.w.Closed.Code != incident.CodeAbuse {
			t.Errorf("%s: the symptom is there again, and %s", trouble, tale(n.w))
		}
	}
	n := at(t, p, true, "abuse, exit 139, gave up, its verdict, retried", nil)
	if n.w.Incident != nil || !n.w.Slices[0].Abuse.Suspected || !strings.Contains(n.w.NothingToRetry(n.now), "PROJECT_ABUSE") {
		t.Errorf("what shows the symptom is tried again: %+v", n.w.Incident)
	}
	both := plays(t, p, node{w: multi(true), now: start, path: "peace"}, [][2]string{
		{"a abuse and lost", "escalated"}, {"b read lost", "escalated"}, {"tick", "escalated"}, {"a retried", either("looking", "deleting: delete a, delete b", "read")},
	})
	if _, sent := play(t, p, both, "b read lost"); len(sent) == 0 && !*third {
		t.Errorf("the other one is lost too, and %s", tale(both.w))
	}
}

// TestAnOlderReadingBringsNoSuspicionBack: it was read before the one that took it back, and comes behind it.
func TestAnOlderReadingBringsNoSuspicionBack(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "abuse, exit 139, gave up, its verdict", nil)
	n.now = n.now.Add(time.Minute)
	older := evidence(n.w, n.now)["abuse"]
	n = at1(t, p, at1(t, p, n, "read ready"), "preempted")
	n.w, _, _ = advance(p, n.w, older, n.now.Add(time.Second))
	if n.w.Incident == nil || n.w.Slices[0].Abuse.Suspected {
		t.Errorf("it is stopped by what was read before: %s", tale(n.w))
	}
}

// TestWhatACleanUpLeavesUnderSuspicionIsToldOnce: its end is the word, and what follows is none.
func TestWhatACleanUpLeavesUnderSuspicionIsToldOnce(t *testing.T) {
	p := policies["everything"]
	n := plays(t, p, suspectedInCleanUp(t), [][2]string{{"later", "clearing"}, {"tick", "escalated"}})
	c := n.w.Closed
	if c.Code != incident.CodeAbuse || !strings.Contains(c.Advice, "pitstop-incident="+c.ID) {
		t.Errorf("%s: %s; %s", c.Code, c.Reason, c.Advice)
	}
	n = plays(t, p, n, [][2]string{{"a abuse", "escalated"}, {"a abuse and lost", "escalated"}, {"tick", "escalated"}})
	if n.w.Closed.ID != c.ID {
		t.Errorf("it is told again: %s", tale(n.w))
	}
}

// cleansUp is a clean-up that has asked for the deletion of what its own request had brought, and nobody has begun it.
var cleansUp = [][2]string{
	{"a read lost", "deleting: delete a"},
	{"do", "deleting"},
	{"a read gone", "creating: create a"},
	{"do", "creating"},
	{"b read unhealthy", "creating"},
	{"a read ours", "healing"},
	{"b owner deletes", "clearing: delete a"},
}

// suspectedInCleanUp is a clean-up in whose middle Google suspects abuse.
func suspectedInCleanUp(t *testing.T) node {
	t.Helper()
	n := plays(t, policies["everything"], node{w: multi(true), now: start, path: "peace"}, cleansUp)
	return plays(t, policies["everything"], n, [][2]string{
		{"b abuse", "clearing"}, // which is its owner's
		{"a abuse", "clearing"},
	})
}

// TestAbuseStopsACleanUp: a deletion that nobody has begun is not made, as long as the symptom is there.
func TestAbuseStopsACleanUp(t *testing.T) {
	p := policies["everything"]
	suspected := suspectedInCleanUp(t)
	if effects := suspected.w.Effects; len(effects) > 0 {
		t.Fatalf("%+v is still to be done", effects)
	}
	t.Run("it is cleaned up when the symptom is gone", func(t *testing.T) {
		plays(t, p, suspected, [][2]string{{"tick", "clearing"}, {"a read ready", "clearing"}, {"tick", "clearing: delete a"}})
	})
	t.Run("it is cleaned up at a person's word, where no reading can take the symptom back", func(t *testing.T) {
		plays(t, p, suspected, [][2]string{{"a read lost", "clearing"}, {"tick", "clearing"}, {"a retried", "clearing"}, {"tick", "clearing: delete a"}})
	})
	t.Run("a call that is under way is waited for", func(t *testing.T) {
		n := plays(t, p, node{w: multi(true), now: start, path: "peace"}, cleansUp)
		n = plays(t, p, n, [][2]string{{"intend delete 0", "clearing"}, {"a abuse", "clearing"}})
		if len(n.w.Effects) != 1 {
			t.Errorf("nobody waits for the answer: %s", tale(n.w))
		}
	})
}
