package patrol_test

import (
	"testing"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// beside is a slice that trains, and a legacy node in the same zone.
func beside(t *testing.T) *bench {
	t.Helper()
	b := training(t)
	b.Legacy(zone)
	b.handle = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: b.Cloud, Audit: b.AuditLog, Publisher: b.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: []string{fleettest.Us}}, Sleep: b.Sleep,
	})
	_, err := b.API.AddNode(cloudtputest.NodeConfig{
		Zone: zone, Name: "resnet", Accelerator: "v3-8", Spot: true, Labels: map[string]string{events.LabelPolicy: "spot"}, Legacy: &tpupb.Node{},
	})
	b.Must(err)
	b.minutes(1)
	return b
}

// TestALegacyNodeIsNotGoneForWantOfAReading makes v1 unreadable: its nodes stay as they were in the ledger, and patrol still
// reads TPU VMs.
func TestALegacyNodeIsNotGoneForWantOfAReading(t *testing.T) {
	b := beside(t)
	resnet := func() incident.Slot { return b.Workload(fleettest.Project + "/resnet").Slices[0] }
	if s := resnet(); s.Condition != evidence.Ready || !s.Legacy || !s.Reclaimable() || s.Spec == "" || !s.Incarnation.Known() {
		t.Fatalf("%+v", s)
	}
	withdraw := b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Legacy: true, Code: 7, Message: "API v1 has been turned off", Times: -1})
	b.Must(b.API.Vanish(zone, "resnet"))
	b.Must(b.API.Preempt(zone, slice))
	for range 20 {
		b.Clock.Advance(60e9)
		b.Want(b.tick(), fleettest.Rejected) // it is told
	}
	b.Want(resnet().Condition, evidence.Ready)
	b.Want(b.Workload(id).Slices[0].Condition != evidence.Ready, true)
	withdraw()
	b.minutes(1)
	b.Want(resnet().Condition, evidence.Gone)
}

// TestOperationsOfOneVersionAreFollowedWithoutTheOther has the operations of v1 be unreadable: those of TPU VMs are followed to their
// end, and one that is not shown for want of a reading has not ended.
func TestOperationsOfOneVersionAreFollowedWithoutTheOther(t *testing.T) {
	b := beside(t)
	b.sent()
	for _, name := range []string{slice, "resnet"} {
		b.Must(b.API.Preempt(zone, name))
	}
	b.Want(b.tick(), fleettest.Handled)
	b.carriesOut(b.Sender.Sent(), cloudtputest.Fault{Slow: 12 * time.Second})
	withdraw := b.API.Inject(cloudtputest.Fault{Method: "ListOperations", Legacy: true, Code: 7, Message: "API v1 has been turned off", Times: -1})
	b.Want(b.tick(), fleettest.Rejected) // it is told
	sent := b.Sender.Sent()
	b.Want(len(sent), 1)
	r, err := events.DecodeRecreateRequested(sent[0].Data)
	b.Must(err)
	b.Want([]string{r.Workload, string(r.Action)}, []string{id, string(events.ActionCreate)})
	if task := b.Shown(fleettest.Project + "/resnet").Requests[0]; task.Stage != view.StageAccepted {
		t.Errorf("an operation that nobody read has ended: %+v", task)
	}
	withdraw()
	b.minutes(1)
	r, _ = fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	b.Want([]string{r.Workload, string(r.Action)}, []string{fleettest.Project + "/resnet", string(events.ActionCreate)})
}

// TestALegacyNodeIsNotGoneBecauseNobodyLooksForItAnyMore: its zone was taken out of the configuration.
func TestALegacyNodeIsNotGoneBecauseNobodyLooksForItAnyMore(t *testing.T) {
	b := training(t)
	b.Legacy(zone)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: "resnet", Accelerator: "v3-8", Legacy: &tpupb.Node{}})
	b.Must(err)
	b.Look(zone, "resnet")
	b.Legacy()
	b.minutes(40)
	b.Want(b.Workload(fleettest.Project + "/resnet").Slices[0].Condition, evidence.Ready)
}

// TestNoLogSpeaksOfTheMachinesOfALegacyNode: one breaks while the zone has an entry about a worker that nobody knows.
func TestNoLogSpeaksOfTheMachinesOfALegacyNode(t *testing.T) {
	b := beside(t)
	b.Must(b.API.HostError(zone, "resnet", -1))
	b.minutes(10)
	at := b.Clock.Now()
	entry := fleettest.SystemEvent("compute.instances.preempted", "zones/"+zone+"/instances/t1v-n-0000000f-w-3", at, nil)
	_, err := b.Ledger.Park(t.Context(), fleettest.Project, zone, ledger.ParkedEntry{Key: "k", Raw: entry, At: at})
	b.Must(err)
	b.minutes(2)
	b.Want(len(b.Parked(zone, b.Clock.Now())), 1)
	b.Want(b.Shown(fleettest.Project+"/resnet").Incident.Cause, events.CauseUnknown)
}
