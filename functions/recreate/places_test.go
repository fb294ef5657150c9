package recreate_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

const (
	scaling = "pitcrew run --scale-from=v5litepod-16 --global-batch=1024 --steps=100 -- python3 train.py"
	named   = "policies: {night: {preset: spot, places: [{accelerator: v5litepod-8, zones: [" + fleettest.OtherZone + "]}]}}"
)

// inAnotherShape is a request to create a slice in another shape, because its zone has no capacity for its own.
func inAnotherShape(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	b.policy(named)
	w := b.Slice(cloudtputest.NodeConfig{
		Spot: true, Labels: map[string]string{events.LabelPolicy: "night", "team": "a"},
		Metadata: map[string]string{events.MetadataCheckpointDir: fleettest.Directory, "startup-script": script},
	})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Clock.Advance(time.Minute)
	b.lose(zone)
	b.moves()
	b.Want(b.request.Zone+" "+b.request.Accelerator, fleettest.OtherZone+" v5litepod-8")
	b.Calls()
	return b
}

func (b *bench) policy(text string) {
	b.T.Helper()
	var err error
	b.Policies.File, err = policy.Parse([]byte(text))
	b.Must(err)
}

// lose preempts and deletes the slice: the request is to create it again.
func (b *bench) lose(where string) {
	b.T.Helper()
	b.Must(b.API.Preempt(where, slice))
	b.looks(0, where)
	b.deletes(where)
}

// trains lets the training into the slice. It goes on in the next attempt.
func (b *bench) trains() {
	b.T.Helper()
	b.GoesOn(recovery.New(recovery.Deps{Fleet: b.Fleet, Provider: b.Cloud, Store: b.Store}), id, slice)
	b.Want(b.closed().Outcome, view.Resumed)
}

// TestASliceIsCreatedInAShapeOfItsPolicy, and as its owner ordered it when it is lost again, with its owner's changes since.
func TestASliceIsCreatedInAShapeOfItsPolicy(t *testing.T) {
	b := inAnotherShape(t, scaling)
	b.Want(b.deliver(), fleettest.Handled)
	n := b.API.Node(fleettest.OtherZone, slice)
	b.Want(n.AcceleratorType, "v5litepod-8")
	b.Want(n.Metadata["startup-script"], scaling)
	b.Want(n.Labels["team"], "a")
	b.Clock.Advance(10 * time.Minute)
	b.Look(fleettest.OtherZone, slice)
	s := b.Workload(id).Slices[0]
	b.Want(s.Chips, 8)
	b.Want(s.Order.Accelerator, "v5litepod-16")
	b.Want(b.Shown(id).Incident.Cost.Slices[0].Chips, 16)

	b.trains()
	b.Must(b.API.SetLabel(fleettest.OtherZone, slice, "team", "b", fleettest.Owner))
	b.Clock.Advance(time.Minute)
	b.Look(fleettest.OtherZone, slice)
	b.Clock.Advance(time.Hour)
	b.Sender.Sent()
	b.lose(fleettest.OtherZone)
	b.Want(b.request.Zone+" "+b.request.Accelerator, zone+" ")
	b.Want(b.deliver(), fleettest.Handled)
	n = b.API.Node(zone, slice)
	b.Want(n.AcceleratorType, "v5litepod-16")
	b.Want(n.Labels["team"], "b")
	b.Clock.Advance(10 * time.Minute)
	b.Look(zone, slice)
	b.Want(b.Workload(id).Slices[0].AsOrdered(), true)
}

// TestNothingIsCreatedInAShapeThatDoesNotFit: the training's numbers do not, or the policy does not name it any more.
func TestNothingIsCreatedInAShapeThatDoesNotFit(t *testing.T) {
	const other = "policies: {night: {preset: spot, places: [{accelerator: v6e-8}]}}"
	for want, c := range map[string]struct{ script, policy string }{
		"its start-up script gives pitcrew no --scale-from, so batch and steps would stay those of the other shape": {"python3 train.py", named},
		"a global batch of 1000 cannot be divided evenly among 16 devices": {
			"pitcrew run --scale-from=v5litepod-16 --global-batch=1000 --steps=100 -- python3 train.py", named,
		},
		"the policy does not name v5litepod-8": {scaling, other},
	} {
		b := inAnotherShape(t, c.script)
		b.policy(c.policy)
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(fleettest.Count(b.Calls(), "CreateNode"), 0)
		w := b.Shown(id)
		for _, r := range w.Incident.Zones {
			if r.Accelerator != "" {
				b.Want(r.Text, want)
				b.Want(r.Code, reason.CodeOtherShape)
				b.Want(r.Never, true)
			}
		}
		b.Want(w.Incident.Zones[1].Accelerator, "v5litepod-8")
	}
}

// TestAShapeOfWhichAnotherWorkloadWasJustToldIsNotAskedFor, and a refusal of one shape says nothing about another.
func TestAShapeOfWhichAnotherWorkloadWasJustToldIsNotAskedFor(t *testing.T) {
	for kind, asked := range map[string]int{"v5litepod-8": 0, "v5litepod-16": 1} {
		b := inAnotherShape(t, scaling)
		b.Must(b.Ledger.RememberStockout(
			t.Context(), fleettest.Project, fleettest.OtherZone, incident.Slot{Life: incident.Life{
				Facts: evidence.Facts{Accelerator: kind, Capacity: events.Spot},
			}}, "demo/mixtral", b.Clock.Now(),
		))
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(fleettest.Count(b.Calls(), "CreateNode"), asked)
	}
}

// TestASpotSliceIsCreatedOnDemand where its policy says so, and as Spot again when it is lost again, though the policy allows no other replacement.
func TestASpotSliceIsCreatedOnDemand(t *testing.T) {
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	b.policy("policies: {night: {preset: spot, places: [{capacity: on_demand, zones: [" + fleettest.OtherZone + "]}]}}")
	w := b.Slice(cloudtputest.NodeConfig{
		Spot: true, Labels: map[string]string{events.LabelPolicy: "night"},
		Metadata: map[string]string{events.MetadataCheckpointDir: fleettest.Directory, "startup-script": scaling},
	})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Clock.Advance(time.Minute)
	b.lose(zone)
	b.moves()
	b.Want(b.request.Zone+" "+string(b.request.Capacity), fleettest.OtherZone+" on_demand")
	b.Want(b.deliver(), fleettest.Handled)
	b.Clock.Advance(10 * time.Minute)
	b.Look(fleettest.OtherZone, slice)
	s := b.Workload(id).Slices[0]
	b.Want([]events.Capacity{s.Capacity, s.Order.Capacity}, []events.Capacity{events.OnDemand, events.Spot})
	b.Want(b.API.Reclaimable(fleettest.OtherZone, slice), false)
	b.trains()
	b.Clock.Advance(time.Hour)
	b.Sender.Sent()
	b.Must(b.API.Preempt(fleettest.OtherZone, slice))
	b.Look(fleettest.OtherZone, slice)
	b.Clock.Advance(bounds.HealFor) // Google may bring back what it did not take back
	b.looks(0, fleettest.OtherZone)
	b.deletes(fleettest.OtherZone)
	b.Want(b.request.Zone+" "+string(b.request.Capacity), zone+" ")
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.API.Reclaimable(zone, slice), true)
}
