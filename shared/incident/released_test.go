package incident_test

import (
	"slices"
	"strconv"
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
	after, out, changed := advance(policies["everything"], n.w, said(n.w.Closed.Opened), n.now.Add(10*time.Minute))
	if !changed || after.Incident != nil || after.Closed.Cause != events.CauseHostError || after.Closed.Revision != 2 || len(out) != 1 {
		t.Errorf("late word of the loss: changed %v, incident %v, closed for %s, revision %d, %d events", changed, after.Incident != nil, after.Closed.Cause, after.Closed.Revision, len(out))
	}
	if after, _, _ := advance(policies["everything"], n.w, said(n.w.Closed.Opened.Add(-2*time.Hour)), n.now.Add(10*time.Minute)); after.Closed.Cause != events.CauseUnknown {
		t.Errorf("word of what happened two hours before is taken for the cause: %s", after.Closed.Cause)
	}
	if after, _, changed := advance(policies["everything"], n.w, said(n.w.Closed.Closed.Add(time.Minute)), n.now.Add(10*time.Minute)); changed {
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
	full.w, _, _ = advance(one, full.w, made, full.now)
	if full.w.Incident == nil || !strings.HasPrefix(phaseOf(full.w), string(incident.PhaseCreating)) {
		t.Fatalf("it stands at %s, closed %+v", phaseOf(full.w), full.w.Closed)
	}
	if s := full.w.Slices[0]; s.Maker != full.w.Incident.ID || s.NeverUsable {
		t.Errorf("what was read is made by %q, unused %v; it is ours", s.Maker, s.NeverUsable)
	}
}

// TestCapacityThatComesAfterAllIsGivenBack: the policy has given up, and the queued resource brings the slice before anybody begins to delete
// it.
func TestCapacityThatComesAfterAllIsGivenBack(t *testing.T) {
	p, n := givenUp(t)
	for range 2 {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)["read ready"], n.now)
	}
	if got := phaseOf(n.w); got != "clearing" || n.w.Effects[0].Action != events.ActionDelete {
		t.Errorf("it stands at %s, and asks for %+v", got, n.w.Effects)
	}
}

// TestADeletionThatIsCalledIsNotSpared: its answer counts, and what the provider deletes is not let in.
func TestADeletionThatIsCalledIsNotSpared(t *testing.T) {
	p, n := givenUp(t)
	deletion := func() int {
		return slices.IndexFunc(n.w.Effects, func(x incident.Effect) bool { return x.Action == events.ActionDelete })
	}
	for _, learned := range []string{"intend delete %d", "read ready", "accepted delete %d"} {
		n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)[strings.Replace(learned, "%d", strconv.Itoa(deletion()), 1)], n.now)
		n.now = n.now.Add(5 * time.Second)
	}
	if i := deletion(); i < 0 || n.w.Effects[i].Answered.IsZero() {
		t.Fatalf("the answer to the call is lost: %+v", n.w.Effects)
	}
	for range 5 {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)["read ready"], n.now)
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
	n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)["read ours made"], n.now)
	n.w.Incident.WaitingSince = n.now // the queued resource was read as waiting before
	for end := n.now.Add(3 * time.Hour); n.now.Before(end) && phaseOf(n.w) != "clearing"; n.now = n.now.Add(time.Minute) {
		n.w, _, _ = tick(p, n.w, n.now)
	}
	if phaseOf(n.w) != "clearing" || n.w.Incident.Code != incident.CodeGaveUp {
		t.Fatalf("it stands at %s", phaseOf(n.w))
	}
	return p, n
}
