package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestLateWordExplainsAnIncidentThatItsOwnerEnded: the owner has deleted the slice since, and the archive names the cause all the same.
func TestLateWordExplainsAnIncidentThatItsOwnerEnded(t *testing.T) {
	n := at(t, policies["everything"], true, "read unhealthy, a while, tick, owner deletes", nil)
	if n.w.Incident != nil || n.w.Closed == nil || n.w.Closed.Outcome != incident.Released || n.w.Closed.Cause != events.CauseUnknown {
		t.Fatalf("it stands at %s, closed %+v", phaseOf(n.w), n.w.Closed)
	}
	said := func(at time.Time) incident.Evidence {
		return incident.Interrupted{
			Origin: incident.Origin{ID: "late", Time: at, Rank: events.RankAudit}, Slice: n.w.Slices[0].Name, Incarnation: n.w.Slices[0].Incarnation,
			Cause: events.CauseHostError, Text: "host error",
		}
	}
	after, out, changed := incident.Advance(policies["everything"], n.w, said(n.w.Closed.Opened), n.now.Add(10*time.Minute))
	if !changed || after.Incident != nil || after.Closed.Cause != events.CauseHostError || after.Closed.Revision != 2 || len(out) != 1 {
		t.Errorf("late word of the loss: changed %v, incident %v, closed for %s, revision %d, %d events", changed, after.Incident != nil, after.Closed.Cause, after.Closed.Revision, len(out))
	}
	if after, _, _ := incident.Advance(policies["everything"], n.w, said(n.w.Closed.Opened.Add(-2*time.Hour)), n.now.Add(10*time.Minute)); after.Closed.Cause != events.CauseUnknown {
		t.Errorf("word of what happened two hours before is taken for the cause: %s", after.Closed.Cause)
	}
	if after, _, changed := incident.Advance(policies["everything"], n.w, said(n.w.Closed.Closed.Add(time.Minute)), n.now.Add(10*time.Minute)); changed {
		t.Errorf("word of what came after its owner had deleted it changes the document: %s, %s", phaseOf(after), after.Closed.Cause)
	}
}

// TestAReadingFromBeforeItsFailureShowsOurOwnCreation: a reading may be under way while a creation fails. What it shows is ours, and not
// somebody else's.
func TestAReadingFromBeforeItsFailureShowsOurOwnCreation(t *testing.T) {
	one := policies["everything"]
	one.Zones, one.Shapes = nil, nil
	n := at(t, one, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0", nil)
	made := evidence(n.w, n.now)["read ours made"]
	full := at(t, one, true, n.path+", late stockout create 0", nil)
	full.w, _, _ = incident.Advance(one, full.w, made, full.now)
	if full.w.Incident == nil || !strings.HasPrefix(phaseOf(full.w), string(incident.PhaseCreating)) {
		t.Fatalf("it stands at %s, closed %+v", phaseOf(full.w), full.w.Closed)
	}
	if s := full.w.Slices[0]; s.Maker != full.w.Incident.ID || s.NeverUsable {
		t.Errorf("what was read is made by %q, unused %v; it is ours", s.Maker, s.NeverUsable)
	}
}

// TestCapacityThatComesAfterAllIsKept: the policy has given up, and the queued resource brings the slice before anybody begins to delete it.
func TestCapacityThatComesAfterAllIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		deletes string
		// reads is how much later than after a minute it is read again.
		reads time.Duration
		want  string
	}{
		"nobody has begun to delete it":      {"", 0, "admitting"},
		"ticks have come close together":     {"", -20 * time.Second, "admitting"},
		"one tick has read it twice":         {"", -55 * time.Second, "clearing"},
		"its deletion was called":            {"intend delete 0, accepted delete 0", incident.CallFor, "clearing"},
		"its deletion was begun a while ago": {"intend delete 0", incident.CallFor, "admitting"},
		"its deletion was begun just now":    {"intend delete 0", 0, "clearing"},
		"it has outlived a call that failed": {"intend delete 0, transient delete 0", incident.CallFor, "admitting"},
		"a call has just failed":             {"intend delete 0, transient delete 0", 0, "clearing"},
	} {
		t.Run(name, func(t *testing.T) {
			p, n := givenUp(t)
			for answer := range strings.SplitSeq(c.deletes, ", ") {
				if e := evidence(n.w, n.now)[answer]; e != nil {
					n.w, _, _ = incident.Advance(p, n.w, e, n.now)
				}
			}
			for _, after := range []time.Duration{time.Minute, time.Minute + c.reads} {
				n.now = n.now.Add(after)
				n.w, _, _ = incident.Advance(p, n.w, evidence(n.w, n.now)["read ready"], n.now)
			}
			if got := phaseOf(n.w); got != c.want {
				t.Errorf("it stands at %s, want %s", got, c.want)
			}
		})
	}
}

// TestGivenUpButThere: what was given up and can be used is not asked to be deleted in the minute before another tick reads it.
func TestGivenUpButThere(t *testing.T) {
	p, n := givenUp(t)
	for _, answer := range []string{"intend delete 0", "transient delete 0"} {
		n.w, _, _ = incident.Advance(p, n.w, evidence(n.w, n.now)[answer], n.now)
	}
	n.now = n.w.Effects[0].Retry // the very minute in which it is asked for again
	for range 4 {
		n.w, _, _ = incident.Advance(p, n.w, evidence(n.w, n.now)["read ready"], n.now)
		var sent []events.Event
		if n.w, sent, _ = tick(p, n.w, n.now); len(sent) > 0 && phaseOf(n.w) == "clearing" {
			t.Fatalf("%+v is sent while a reading shows it usable", sent)
		}
		n.now = n.now.Add(time.Minute)
	}
	if got := phaseOf(n.w); got != "admitting" {
		t.Errorf("it stands at %s, want admitting", got)
	}
}

// TestADeletionThatIsCalledIsNotSpared: its answer counts, and what the provider deletes is not let in.
func TestADeletionThatIsCalledIsNotSpared(t *testing.T) {
	p, n := givenUp(t)
	for _, learned := range []string{"intend delete 0", "read ready", "accepted delete 0"} {
		n.w, _, _ = incident.Advance(p, n.w, evidence(n.w, n.now)[learned], n.now)
		n.now = n.now.Add(5 * time.Second)
	}
	if all := n.w.Effects; len(all) != 1 || all[0].Answered.IsZero() {
		t.Fatalf("the answer to the call is lost: %+v", all)
	}
	for range 5 {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = incident.Advance(p, n.w, evidence(n.w, n.now)["read ready"], n.now)
	}
	if got := phaseOf(n.w); got != "clearing" {
		t.Errorf("it stands at %s, while the provider deletes it", got)
	}
}

// givenUp is a workload that cleans up what it has ordered, because capacity did not come within an hour.
func givenUp(t *testing.T) (policy.Policy, node) {
	t.Helper()
	p := policies["everything"]
	p.GiveUpAfter = time.Hour
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, done create 0", inQueue)
	n.w, _, _ = incident.Advance(p, n.w, evidence(n.w, n.now)["read ours made"], n.now)
	n.w.Incident.WaitingSince = n.now // the queued resource was read as waiting before
	for end := n.now.Add(3 * time.Hour); n.now.Before(end) && phaseOf(n.w) != "clearing"; n.now = n.now.Add(time.Minute) {
		n.w, _, _ = tick(p, n.w, n.now)
	}
	if phaseOf(n.w) != "clearing" || n.w.Incident.Code != incident.CodeGaveUp {
		t.Fatalf("it stands at %s", phaseOf(n.w))
	}
	return p, n
}
