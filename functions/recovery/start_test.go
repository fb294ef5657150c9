package recovery_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

const start = "StartNode " + zone + "/" + slice

// toStart is a bench on which a slice of one worker was stopped, and the audit log names nobody.
func toStart(t *testing.T) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t)}
	w := b.Slice(cloudtputest.NodeConfig{Accelerator: "v5litepod-4", Labels: fleettest.Label("reserved")})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Clock.Advance(time.Minute)
	b.Must(b.API.SetState(zone, slice, "STOPPED"))
	b.Look(zone, slice)
	b.Clock.Advance(bounds.Grace)
	b.Give(w, evidence.Unsaid{Origin: evidence.Origin{Time: b.Clock.Now()}, Slice: slice, Incarnation: b.API.Incarnation(zone, slice)})
	b.Give(w, evidence.Ticked{})
	b.request = b.next()
	b.Calls()
	return b
}

func TestWhatWasStoppedIsStarted(t *testing.T) {
	b := toStart(t)
	b.Want(b.request.Action, events.ActionStart)
	b.Want(b.request.Incarnation, b.API.Incarnation(zone, slice))
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{read, start})
	b.Want(b.open().Phase, view.Starting)
	if b.Shown(id).Requests[0].Stage != view.StageAccepted {
		t.Error("the operation is not followed")
	}
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil))
	b.Clock.Advance(10 * time.Minute)
	b.Look(zone, slice)
	b.Want(b.open().Phase, view.Resuming)
}

func TestWhatMustNotBeStartedIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench)
		calls  []string
		phase  view.Phase // empty for any
		closed bool
	}{
		"for another life": {func(b *bench) {
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Incarnation.ID = "1" })
		}, nil, view.Starting, false},
		"what runs again":      {func(b *bench) { b.Must(b.API.SetState(zone, slice, "READY")) }, []string{read}, view.Resuming, false},
		"what somebody starts": {func(b *bench) { b.Must(b.API.SetState(zone, slice, "STARTING")) }, []string{read}, "", false},
		"what is gone":         {func(b *bench) { b.Must(b.API.Vanish(zone, slice)) }, []string{read}, view.PhaseGrace, false},
		"its owner stopped it, and the entry came late": {func(b *bench) { b.Give(b.Workload(id), owners(b)) }, nil, "", true},
		"when the switch is ask":                        {func(b *bench) { b.Policies.Ceiling.StartStopped = policy.Ask }, []string{read}, view.Approving, false},
		"when the switch is no":                         {func(b *bench) { b.Policies.Ceiling.StartStopped = policy.No }, []string{read}, "", true},
		"when everything is paused": {func(b *bench) {
			b.Must(b.Ledger.SetPause(b.T.Context(), &evidence.Pause{By: "ada"}))
		}, []string{read}, view.Starting, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := toStart(t)
			c.change(b)
			b.Calls()
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), c.calls)
			if c.phase != "" {
				b.Want(b.open().Phase, c.phase)
			}
			b.Want(b.Shown(id).Incident == nil, c.closed)
		})
	}
}

func owners(b *bench) evidence.Called {
	return evidence.Called{
		Origin: evidence.Origin{Time: b.Clock.Now().Add(-40 * time.Minute), Rank: events.RankAudit}, Slice: slice, Act: events.ActStopped, Method: "StopNode",
		Principal: fleettest.Owner,
	}
}

// TestAFailureOfTheStartIsEvidence: it is stored with a time for the next try, or handed to a person.
func TestAFailureOfTheStartIsEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		fault  cloudtputest.Fault
		closed bool
	}{
		"the API is away":      {cloudtputest.Fault{Method: "StartNode", Code: 14, Message: "later"}, false},
		"there is no capacity": {cloudtputest.Fault{Method: "StartNode", Code: 8, Message: "There is no more capacity in the zone"}, false},
		"it may not":           {cloudtputest.Fault{Method: "StartNode", Code: 7, Message: "denied"}, true},
		"it cannot be read":    {cloudtputest.Fault{Method: "GetNode", Code: 14, Message: "later"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := toStart(t)
			b.API.Inject(c.fault)
			b.Want(b.deliver(), fleettest.Handled)
			if c.closed {
				b.Want(b.Shown(id).Closed.Outcome, view.Escalated)
				return
			}
			b.Want(b.Shown(id).Requests[0].Retry, b.Clock.Now().Add(time.Minute))
			b.Clock.Advance(time.Minute)
			b.Give(b.Workload(id), evidence.Ticked{})
			b.request = b.next()
			b.Want(b.deliver(), fleettest.Handled)
			if b.Shown(id).Requests[0].Stage != view.StageAccepted {
				t.Error("it is not started then")
			}
		})
	}
}
