package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAMultisliceIsNotReplacedByHalves: a queued resource goes by one deletion and comes by one creation, whatever is lost
// of it. What the API shows of one slice proves nothing of the other, so that is read first; and it is one incident.
func TestAMultisliceIsNotReplacedByHalves(t *testing.T) {
	const gone = "creating: create a with b"
	whole := [][2]string{{"do", "deleting"}, {"a read gone", "deleting"}, {"b read gone", gone}}
	for name, c := range map[string]struct {
		onDemand bool
		but      func(w *incident.Workload)
		steps    [][2]string
		reason   string
	}{
		"both are preempted": {false, nil, append([][2]string{
			{"a preempted", "looking"},
			{"a read lost", "looking"},
			{"b read lost", "deleting: delete a with b"},
			{"a read lost", "deleting"},
			{"b preempted", "deleting"},
			{"tick", "deleting"},
		}, whole...), ""},
		"one is preempted, and the other lives": {false, nil, append([][2]string{
			{"a read lost", "looking"},
			{"a read lost", "looking"},
			{"b read ready", "deleting: delete a with b"},
			{"b read ready", "deleting"}, // it goes all the same
		}, whole...), ""},
		"one is preempted, and the other lives, and nothing is saved": {false, func(w *incident.Workload) { w.Progress.VerifiedAt = time.Time{} }, [][2]string{
			{"a read lost", "looking"},
			{"b read ready", "looking: hear"}, // a look at what is saved comes first
			{"later", "looking"},
			{"tick", "escalated"},
		}, "b still exists (READY) and no checkpoint of its training has been verified"},
		"one is preempted, and the other goes with it, and nothing is saved": {false, func(w *incident.Workload) { w.Progress.VerifiedAt = time.Time{} }, [][2]string{
			{"a read lost", "looking"},
			{"b read deleting", "looking"},
			{"later", "looking"},
			{"tick", "deleting: delete a with b"},
		}, ""},
		"one is preempted, and the other is not read": {false, nil, [][2]string{
			{"a read lost", "looking"},
			{"later", "looking"},
			{"tick", "deleting: delete a with b"}, // it is read before the call
		}, ""},
		"the other is gone": {false, nil, [][2]string{
			{"b read gone", "peace"},
			{"a read lost", "deleting: delete a with b"},
		}, ""},
		"both vanish": {false, nil, [][2]string{
			{"a read gone", "peace"},
			{"b read gone", "peace"},
			{"later", "peace"},
			{"tick", gone},
		}, ""},
		"both come back before anybody has called for it": {false, nil, [][2]string{
			{"a read lost", "looking"},
			{"b read lost", "deleting: delete a with b"},
			{"a read ready", "deleting"},
			{"b read ready", "resuming"},
		}, ""},
		"Google's own recovery does not come": {true, nil, [][2]string{
			{"a read lost", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete a with b"},
		}, ""},
		"the new one comes node by node": {false, nil, [][2]string{
			{"a read lost", "looking"},
			{"b read lost", "deleting: delete a with b"},
			{"do", "deleting"},
			{"a read gone", "deleting"},
			{"b read gone", gone},
			{"do", "creating"},
			{"a read ordered", "creating"},
			{"b read ordered", "creating"},
			{"a read ours made", "creating"},
			{"a read ready", "creating"},
			{"b read ours", "admitting: admit a=7712 b=7761"},
			{"do", "resuming"},
		}, ""},
		"one is lost again before the other has come": {false, nil, [][2]string{
			{"a read lost", "looking"},
			{"b read lost", "deleting: delete a with b"},
			{"do", "deleting"},
			{"a read gone", "deleting"},
			{"b read gone", gone},
			{"do", "creating"},
			{"a read ours", "creating"},
			{"a read lost", "deleting: delete a with b"},
			{"do", "deleting"},
			{"a read gone", "creating: create a with b"}, // of the other nothing was ever there
		}, ""},
		"the owner takes over while it waits": {false, nil, [][2]string{
			{"a read lost", "looking"},
			{"b read lost", "deleting: delete a with b"},
			{"do", "deleting"},
			{"a read gone", "deleting"},
			{"b read gone", gone},
			{"do", "creating"},
			{"a read ordered", "creating"},
			{"b owner deletes", "clearing: delete a with b"},
			{"do", "clearing"},
			{"a read gone", "clearing"},
			{"b read gone", "released"},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := node{w: queued(!c.onDemand), now: start, path: name}
			if c.but != nil {
				c.but(&n.w)
			}
			n = plays(t, policies["everything"], n, c.steps)
			if c.reason != "" && !strings.Contains(n.w.Closed.Reason, c.reason) {
				t.Errorf("reason %q, want %q in it", n.w.Closed.Reason, c.reason)
			}
		})
	}
}

// TestWhatItsOwnerDeletedOfAQueuedResourceKeepsNothingBack: what is left of it is a single slice.
func TestWhatItsOwnerDeletedOfAQueuedResourceKeepsNothingBack(t *testing.T) {
	w := queued(true)
	w.Slices[1].Condition, w.Slices[1].End.Released = incident.Gone, start
	n, sent := play(t, policies["everything"], node{w: w, now: start, path: "peace"}, "a read lost")
	if d := cmp.Diff("deleting: delete a", stands(n.w, sent)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestProgressHasToPassTheCheckpointFromBeforeTheLoss: the incident may have opened long before it, for maintenance.
func TestProgressHasToPassTheCheckpointFromBeforeTheLoss(t *testing.T) {
	for policy, path := range map[string]string{
		"spot": "pending, later, tick, intend save 0, later, tick", "watch": "pending, later, tick",
	} {
		n := at(t, policies[policy], true, path, nil)
		before := n.w.Incident.Baseline
		report := learned(n.w, n.w.Slices[0], n.now)["progress"].(incident.Reported) //nolint:forcetypeassert // it is one
		report.Report.CheckpointStep = before + 500
		report.Report.Step += 600
		n.w, _, _ = advance(policies[policy], n.w, report, n.now)
		n, _ = play(t, policies[policy], n, n.w.Slices[0].Name+" read lost")
		if got := n.w.Incident.Baseline; got != before+500 {
			t.Errorf("%s: the baseline is %d, want %d", policy, got, before+500)
		}
	}
}

// TestWhatWasNeverSeenAliveIsNotDeleted: of a queued resource that is suspended when it is first seen there is no life
// that a request could name.
func TestWhatWasNeverSeenAliveIsNotDeleted(t *testing.T) {
	lost := incident.Read{
		Origin: incident.Origin{Time: start, Rank: events.RankReading}, Slice: "b", Zone: "us-west4-a", Condition: incident.Lost, State: "SUSPENDED (queued resource)",
		Facts: incident.Facts{Group: "qr", Reclaimable: true, Spec: "spec1"},
	}
	w, sent, _ := advance(policies["everything"], quiet(true), lost, start)
	if w.Incident != nil || len(sent) > 0 || !due(w).IsZero() {
		t.Errorf("it opened %+v, sent %v, and is due at %v", w.Incident, sent, due(w))
	}
	// In an incident of another slice it is a person's.
	w, first, _ := advance(policies["everything"], w, learned(w, w.Slices[0], start)["read lost"], start)
	if w, sent, _ = advance(policies["everything"], w, lost, start); *third {
		sent = first // it was known before
	}
	if w.Incident != nil || len(asks(sent[0])) > 0 || !strings.Contains(w.Closed.Reason, "b was never seen alive") {
		t.Errorf("incident %+v, sent %v, closed %+v", w.Incident, sent, w.Closed)
	}
}

// TestASliceThatHealedBeforeItsDeletionWasCalledForIsKept: the intent is saved and the function dies before its call; the
// redelivery looks first, and what it sees decides.
func TestASliceThatHealedBeforeItsDeletionWasCalledForIsKept(t *testing.T) {
	begun := at(t, policies["spot"], true, "preempted, read lost, intend delete 0", nil)
	ready := func(at time.Time) incident.Evidence {
		e := learned(begun.w, begun.w.Slices[0], at)["read ready"].(incident.Read) //nolint:forcetypeassert // it is one
		return e
	}
	after, _, _ := advance(policies["spot"], begun.w, ready(begun.now.Add(incident.CallFor)), begun.now.Add(incident.CallFor))
	if in := after.Incident; in == nil || in.Phase != incident.Resuming || len(after.Effects) > 0 {
		t.Errorf("the incident is %+v, want one that waits for progress and asks for no deletion", in)
	}
	// A reading from when the call may still be about to be made says nothing of what comes of it.
	after, _, _ = advance(policies["spot"], begun.w, ready(begun.now.Add(time.Minute)), begun.now.Add(incident.CallFor))
	if in := after.Incident; in == nil || in.Phase != incident.PhaseDeleting || len(after.Effects) != 1 {
		t.Errorf("the incident is %+v, want the deletion to go on", in)
	}
	// One that was called for and accepted goes.
	accepted := at(t, policies["spot"], true, "preempted, read lost, intend delete 0, accepted delete 0", nil)
	after, _, _ = advance(policies["spot"], accepted.w, ready(accepted.now.Add(time.Minute)), accepted.now.Add(time.Minute))
	if in := after.Incident; in == nil || in.Phase != incident.PhaseDeleting {
		t.Errorf("the incident is %+v, want the deletion to go on", in)
	}
}

// TestAQueuedResourceOfOursThatIsSuspendedIsOrderedAnew: what it brought came and was lost while nobody looked, or it has
// FAILED. It is not what a queued resource is that still waits.
func TestAQueuedResourceOfOursThatIsSuspendedIsOrderedAnew(t *testing.T) {
	for _, c := range []struct {
		state     string
		condition incident.Condition
		phase     incident.Phase
	}{
		{"SUSPENDED (queued resource)", incident.Lost, incident.PhaseDeleting},
		{"FAILED (queued resource)", incident.Lost, incident.PhaseDeleting},
		{"WAITING_FOR_RESOURCES (queued resource)", incident.Creating, incident.PhaseCreating},
	} {
		t.Run(c.state, func(t *testing.T) {
			n := at(t, policies["spot"], true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0",
				func(w *incident.Workload) { w.Slices[0].Group = "qr" })
			now := n.now.Add(6 * time.Hour)
			w, _, _ := advance(policies["spot"], n.w, incident.Read{
				Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: c.condition, State: c.state,
				Facts: incident.Facts{Group: "qr", Reclaimable: true, Spec: "spec1"},
			}, now)
			if in := w.Incident; in == nil || in.Phase != c.phase {
				t.Fatalf("the incident is %+v, want phase %s", in, c.phase)
			}
			if c.phase == incident.PhaseDeleting && (len(w.Effects) != 1 || w.Effects[0].Action != events.ActionDelete) {
				t.Errorf("the effects are %+v, want one deletion", w.Effects)
			}
		})
	}
}

// TestWhatJoinsAReplacementIsNotChargedAgain: several slices are replaced at the price of one, and all of it is given back
// when they heal before anything is called for.
func TestWhatJoinsAReplacementIsNotChargedAgain(t *testing.T) {
	w, now := multi(true), start
	for i, c := range []struct {
		slice    int
		evidence string
		want     int
	}{{0, "read lost", either(1, 0, "begun")}, {1, "read lost", either(1, 0, "begun")}, {0, "read ready", either(1, 0, "begun")}, {1, "read ready", 0}} {
		now = now.Add(time.Minute)
		w, _, _ = advance(policies["everything"], w, learned(w, w.Slices[c.slice], now)[c.evidence], now)
		if got := w.Budgets.Recreates; got != c.want {
			t.Errorf("step %d, %s %s: %d replacements are charged, want %d", i, w.Slices[c.slice].Name, c.evidence, got, c.want)
		}
	}
}

// TestASliceThatLivesAfterAllIsNotDeletedUnsaved: it was PREEMPTED when it was decided on, and is being repaired when the
// function is about to delete it.
func TestASliceThatLivesAfterAllIsNotDeletedUnsaved(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		saved   bool
		want    incident.Phase
		charged int
	}{
		"nobody has begun":       {"preempted, read lost", false, incident.Healing, 0},
		"begun, never called":    {"preempted, read lost, intend delete 0", false, incident.Healing, either(0, 1, "begun")},
		"called for":             {"preempted, read lost, intend delete 0, accepted delete 0", false, incident.PhaseDeleting, 1},
		"a checkpoint was found": {"preempted, read lost", true, either(incident.PhaseDeleting, incident.Healing, "heals"), either(1, 0, "begun")},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["spot"], true, c.path, func(w *incident.Workload) {
				if !c.saved {
					w.Progress.Verified, w.Progress.VerifiedAt = 0, time.Time{}
				}
			})
			now := n.now.Add(incident.CallFor)
			sick := learned(n.w, n.w.Slices[0], now)["read unhealthy"]
			w, _, _ := advance(policies["spot"], n.w, sick, now)
			if in := w.Incident; in == nil || in.Phase != c.want || (in.Phase == incident.Healing) == (len(w.Effects) > 0) || w.Budgets.Recreates != c.charged {
				t.Errorf("%d charged, the incident is %+v; want phase %s, %d charged", w.Budgets.Recreates, in, c.want, c.charged)
			}
		})
	}
}

// TestWhatWeCreatedAndCannotBeUsedIsReplacedAgain: its host broke for good before it was ever READY, and the wait for capacity,
// which has no end for Spot, is over.
func TestWhatWeCreatedAndCannotBeUsedIsReplacedAgain(t *testing.T) {
	n := at(t, policies["everything"], true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours made, read unhealthy", nil)
	n.w.Progress.Verified, n.w.Progress.VerifiedAt = 0, time.Time{} // nothing is saved, and nothing is lost: it never trained
	until := n.w.Slices[0].Since.Add(incident.HealFor)
	if in := n.w.Incident; !in.Deadline.Equal(until) {
		t.Errorf("the deadline is %v, want Google's own recovery given until %v", in.Deadline, until)
	}
	w, sent, _ := tick(policies["everything"], n.w, until)
	if len(sent) != 1 || asks(sent[0]) != "delete llama-8b" || w.Incident.Phase != incident.PhaseDeleting {
		t.Fatalf("sent %v, the incident is %+v; want the deletion of the new life", sent, w.Incident)
	}
	// One that comes to life before anybody has called for its deletion is admitted, as any new one.
	now := until.Add(time.Minute)
	w, sent, _ = advance(policies["everything"], w, learned(w, w.Slices[0], now)["read ready"], now)
	if len(sent) != 1 || asks(sent[0]) != "admit llama-8b=7712" {
		t.Errorf("sent %v, the incident is %+v; want it admitted", sent, w.Incident)
	}
}

// TestWhatItsOwnerHasOrderedAgainGoesWithTheRest: of a Multislice that its owner has deleted and ordered again one slice was
// never seen alive.
func TestWhatItsOwnerHasOrderedAgainGoesWithTheRest(t *testing.T) {
	w := queued(true)
	w.Slices[1].Condition, w.Slices[1].End.Released = incident.Gone, start.Add(-time.Hour)
	n := node{w: w, now: start, path: "peace"}
	suspended := func(name string, ordered time.Time) incident.Read {
		return incident.Read{
			Origin: incident.Origin{Time: n.now, Rank: events.RankReading}, Slice: name, Zone: "us-west4-a", Condition: incident.Lost,
			State: "SUSPENDED (queued resource)", Ordered: ordered, Facts: incident.Facts{Group: "qr", Reclaimable: true, Spec: "spec1"},
		}
	}
	n, _ = play(t, policies["everything"], n, "a read lost")
	if got := n.w.Effects[0].With; got != nil {
		t.Errorf("the deletion is of %v too, which its owner has deleted", got)
	}
	n = node{w: w, now: start, path: "peace"}
	n.w, _, _ = advance(policies["everything"], n.w, suspended("b", start.Add(-time.Minute)), n.now)
	n, sent := play(t, policies["everything"], n, "a read lost")
	if d := cmp.Diff("deleting: delete a with b", stands(n.w, sent)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWhatACrewRunsInIsNoLeftover: a crew has taken the lease over by itself in what we made, and nobody admitted it. It lives, and is
// not deleted unsaved.
func TestWhatACrewRunsInIsNoLeftover(t *testing.T) {
	const group = "t1v-n-0badcafe"
	for name, c := range map[string]struct {
		report  events.Report
		host    string
		deleted bool
	}{
		"it has started":             {events.ReportStarted, group, false},
		"it does steps":              {events.ReportProgress, group, false},
		"it only sees maintenance":   {events.ReportNotice, group, true},
		"it is one of a former life": {events.ReportStarted, "t1v-n-deadbeef", true},
		"nobody knows whose it is":   {events.ReportStarted, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true,
				"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours made", nil)
			n.w.Progress.Verified, n.w.Progress.VerifiedAt = 0, time.Time{}
			s := &n.w.Slices[0]
			s.Hosts = group
			host := ""
			if c.host != "" {
				host = c.host + "-w-0"
			}
			now := n.now.Add(time.Minute)
			w, _, _ := advance(policies["everything"], n.w, incident.Reported{
				Origin: incident.Origin{Time: now, Rank: events.RankUser}, Slice: s.Name,
				Report: events.CrewReport{Report: c.report, Hostname: host, Attempt: 9, Workers: 4, Step: 48000},
			}, now)
			now = now.Add(time.Minute)
			w, _, _ = advance(policies["everything"], w, learned(w, w.Slices[0], now)["read unhealthy"], now)
			deleted := false
			for range 60 * 8 {
				now = now.Add(time.Minute)
				var sent []events.Event
				w, sent, _ = tick(policies["everything"], w, now)
				for _, e := range sent {
					deleted = deleted || asks(e) == "delete llama-8b"
				}
			}
			if deleted != c.deleted {
				t.Errorf("it is deleted: %v, want %v; %s", deleted, c.deleted, tale(w))
			}
		})
	}
}
