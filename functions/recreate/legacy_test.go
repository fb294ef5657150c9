package recreate_test

import (
	"testing"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// legacyToDelete is a legacy node that was preempted, and the request to delete it.
func legacyToDelete(t *testing.T, label string) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	b.Legacy(zone)
	b.policy("policies: {night: {preset: spot, zones: [" + fleettest.OtherZone + "]}}")
	w := b.Slice(cloudtputest.NodeConfig{
		Spot: true, Accelerator: "v3-8", Labels: map[string]string{events.LabelPolicy: label},
		Legacy: &tpupb.Node{TensorflowVersion: "2.12.0", CidrBlock: "10.240.1.0/29"},
	})
	if s := w.Slices[0]; !s.Legacy || w.Directory != "" {
		t.Fatalf("%+v", w)
	}
	b.Clock.Advance(time.Minute)
	b.Must(b.API.Preempt(zone, slice))
	b.looks(0, zone)
	return b
}

// TestALegacyNodeIsNotDeletedOrCreatedTwice though its calls carry no ID by which the API would know them again: both times
// the answer is lost together with the instance.
func TestALegacyNodeIsNotDeletedOrCreatedTwice(t *testing.T) {
	b := legacyToDelete(t, "spot")
	was := b.API.Incarnation(zone, slice)
	lost := func(method string) {
		t.Helper()
		b.Calls()
		b.API.Inject(cloudtputest.Fault{Method: method, Legacy: true, LoseAnswer: true, Before: func() { b.Break(ledger.Workloads) }})
		b.Want(b.deliver(), fleettest.Redelivered)
		b.Mend()
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(fleettest.Count(b.Calls(), method), 1)
	}
	lost("DeleteNode")
	b.looks(2*time.Minute, zone)
	lost("CreateNode")
	is := b.API.Incarnation(zone, slice)
	w := b.Shown(id)
	b.Want(w.Slices[0].Incarnation, is)
	b.Want(w.Incident.Phase, view.PhaseCreating)
	if n := b.API.Node(zone, slice); is.Same(was) || n.ApiVersion != "V1" || n.CidrBlock != "10.240.1.0/29" || !n.SchedulingConfig.Preemptible {
		t.Errorf("it came back as %+v", n)
	}
}

// TestALegacyNodeComesBackNowhereElseThanWhereTheyAreLookedFor has no room in its zone, and a policy that names another one.
func TestALegacyNodeComesBackNowhereElseThanWhereTheyAreLookedFor(t *testing.T) {
	b := legacyToDelete(t, "night")
	b.deletes(zone)
	b.moves()
	b.Want(b.request.Zone, fleettest.OtherZone)
	b.Calls()
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(fleettest.Count(b.Calls(), "CreateNode"), 0)
	b.Want(b.API.Node(fleettest.OtherZone, slice) == nil, true)
	b.Want(b.asked().Zone, zone)
}
