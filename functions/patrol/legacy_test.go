package patrol_test

import (
	"testing"

	tpu "google.golang.org/api/tpu/v1"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/tpu/tputest"
)

// TestALegacyNodeIsNotGoneForWantOfAReading has v1 be unreadable: what it knows is left as it was, and TPU VMs are patrolled
// all the same.
func TestALegacyNodeIsNotGoneForWantOfAReading(t *testing.T) {
	b := training(t)
	b.Legacy(zone)
	b.handle = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: b.Cloud, Audit: b.AuditLog, Publisher: b.Sender, Project: fleettest.Project, Ours: []string{fleettest.Us}, Sleep: b.Sleep,
	})
	_, err := b.API.AddNode(tputest.NodeConfig{
		Zone: zone, Name: "resnet", Accelerator: "v3-8", Spot: true, Labels: map[string]string{events.LabelPolicy: "spot"}, Legacy: &tpu.Node{},
	})
	b.Must(err)
	b.minutes(1)
	resnet := func() incident.Slice { return b.Workload(fleettest.Project + "/resnet").Slices[0] }
	if s := resnet(); s.Condition != incident.Ready || !s.Legacy || !s.Spot || s.Spec == "" || !s.Incarnation.Known() {
		t.Fatalf("%+v", s)
	}
	withdraw := b.API.Inject(tputest.Fault{Method: "ListNodes", Legacy: true, Code: 7, Message: "API v1 has been turned off", Times: -1})
	b.Must(b.API.Vanish(zone, "resnet"))
	b.Must(b.API.Preempt(zone, slice))
	for range 20 {
		b.Clock.Advance(60e9)
		b.Want(b.tick(), fleettest.Rejected) // it is told
	}
	b.Want(resnet().Condition, incident.Ready)
	b.Want(b.Workload(id).Slices[0].Condition != incident.Ready, true)
	withdraw()
	b.minutes(1)
	b.Want(resnet().Condition, incident.Gone)
}

// TestALegacyNodeIsNotGoneBecauseNobodyLooksForItAnyMore: its zone was taken out of the configuration.
func TestALegacyNodeIsNotGoneBecauseNobodyLooksForItAnyMore(t *testing.T) {
	b := training(t)
	b.Legacy(zone)
	_, err := b.API.AddNode(tputest.NodeConfig{Zone: zone, Name: "resnet", Accelerator: "v3-8", Legacy: &tpu.Node{}})
	b.Must(err)
	b.Look(zone, "resnet")
	b.Legacy()
	b.minutes(40)
	b.Want(b.Workload(fleettest.Project + "/resnet").Slices[0].Condition, incident.Ready)
}
