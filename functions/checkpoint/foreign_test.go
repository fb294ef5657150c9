package checkpoint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// relates has the lease in the directory belong to another workload.
func (b *bench) relates(workload string, epoch int64) {
	b.T.Helper()
	l, _, err := checkpoint.ReadLease(b.T.Context(), b.Store, fleettest.Directory)
	b.Must(err)
	b.Storage.Delete(fleettest.Bucket, "run/"+checkpoint.LeaseName)
	l.Workload, l.Epoch = workload, epoch
	b.Must(checkpoint.WriteLease(b.T.Context(), b.Store, fleettest.Directory, l))
}

// TestWhatIsBesideTheLeaseOfAnotherWorkloadSaysNothing: neither its verdict nor its checkpoints are ours.
func TestWhatIsBesideTheLeaseOfAnotherWorkloadSaysNothing(t *testing.T) {
	for name, c := range map[string]struct {
		workload string
		epoch    int64
		counts   bool
	}{
		"our lease":                               {id, 1, true},
		"a crew's, named after our node":          {fleettest.Project + "/node", 0, true},
		"Pitstop's, of another workload":          {fleettest.Project + "/other", 1, false},
		"a crew's, of a namesake in a project":    {"prod/llama", 0, false},
		"Pitstop's, of a namesake in a project":   {"prod/llama", 1, false},
		"a crew's, named after it in the project": {"prod/node", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := toHear(t)
			b.relates(c.workload, c.epoch)
			b.verdict(nil)
			b.commit("900")
			b.Want(b.deliver(), fleettest.Handled)
			if counts := b.restarts() == 1; counts != c.counts {
				t.Errorf("the verdict counts: %t", counts)
			}
			if counts := b.Shown(id).Training.Verified == 900; counts != c.counts {
				t.Errorf("the checkpoint counts: %t", counts)
			}
			said := strings.Contains(fmt.Sprint(b.open().Timeline), c.workload+" holds it since")
			logged := strings.Contains(b.Logged(), "level=ERROR") && strings.Contains(b.Logged(), "checkpoint directory of another workload")
			if said == c.counts || logged == c.counts {
				t.Errorf("it is told: %t, %t: %+v\n%s", said, logged, b.open().Timeline, b.Logged())
			}
		})
	}
}

// TestACheckpointBesideTheLeaseOfAnotherWorkloadVerifiesNoSave, so no maintenance begins after it, and no slice is deleted for it.
func TestACheckpointBesideTheLeaseOfAnotherWorkloadVerifiesNoSave(t *testing.T) {
	for workload, want := range map[string]int64{"prod/llama": 0, id: 1200} {
		b := toVerify(t)
		b.Storage.Delete(fleettest.Bucket, "run/"+checkpoint.LeaseName)
		b.Must(checkpoint.WriteLease(t.Context(), b.Store, fleettest.Directory, checkpoint.Lease{
			Schema: events.Schema, Workload: workload, Epoch: 4, Attempt: 2, Written: b.Clock.Now(), By: "pitstop",
			Admitted: []events.Admission{{Slice: slice, Incarnation: events.Incarnation{Zone: zone, ID: "77", Created: b.Clock.Now().Add(-time.Hour)}}},
		}))
		b.commit("1200")
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(b.Shown(id).Training.Verified, want)
		b.Want(strings.Contains(b.Logged(), "checkpoint directory of another workload"), want == 0)
	}
}

// TestALeaseThatIsNotThereConfirmsNothing: the crew that it named writes it again, and until then no budget is spent.
func TestALeaseThatIsNotThereConfirmsNothing(t *testing.T) {
	for name, there := range map[string]*string{"it is gone": nil, "it is empty": new(""), "it is not JSON": new("{"), "it is torn": new(`{"schema":1,"workload":"` + id + `"}`)} {
		t.Run(name, func(t *testing.T) {
			b := toHear(t)
			l, _, err := checkpoint.ReadLease(t.Context(), b.Store, fleettest.Directory)
			b.Must(err)
			b.Storage.Delete(fleettest.Bucket, "run/"+checkpoint.LeaseName)
			if there != nil {
				b.Storage.Put(fleettest.Bucket, "run/"+checkpoint.LeaseName, []byte(*there))
			}
			b.verdict(nil)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.restarts(), 0)
			if told := strings.Contains(fmt.Sprint(b.open().Timeline), "lifecycle rule of the bucket"); told != (there == nil) {
				t.Errorf("it is told what may have deleted it: %t: %+v", told, b.open().Timeline)
			}
			b.Must(checkpoint.WriteLease(t.Context(), b.Store, fleettest.Directory, l))
			b.until(events.ActionHear)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.restarts(), 1)
		})
	}
}

// TestASaveRequestOfAnotherWorkloadStays: with a node, the metadata is enough. Without, it is tried again, since the other's
// request has a deadline.
func TestASaveRequestOfAnotherWorkloadStays(t *testing.T) {
	for name, with := range map[string]bool{"with a node": true, "without a usable node": false} {
		t.Run(name, func(t *testing.T) {
			b := toSave(t)
			if !with {
				b.Change(id, func(w *incident.Workload) { w.Slices[0].Condition = evidence.Unhealthy })
			}
			until := b.Clock.Now().Add(90 * time.Second)
			theirs := events.CrewRequest{
				Schema: events.Schema, SaveID: "theirs", Workload: fleettest.Project + "/other", Action: events.ActionSave, Mode: events.SaveNatural, By: until,
			}
			b.Must(checkpoint.WriteRequest(t.Context(), b.Store, fleettest.Directory, theirs, b.Clock.Now()))
			b.Want(b.deliver(), fleettest.Handled)
			there, err := checkpoint.ReadRequest(t.Context(), b.Store, fleettest.Directory)
			b.Must(err)
			b.Want(there, theirs)
			in := b.open()
			b.Want(in.Phase, view.Saving)
			told := fmt.Sprint(in.Timeline)
			for _, want := range []string{"pitstop-request.json", "demo/other waits for a save until", "this is " + id, "a directory of its own"} {
				if !strings.Contains(told, want) || !strings.Contains(b.Logged(), want) {
					t.Errorf("%q is not told and logged: %s\n%s", want, told, b.Logged())
				}
			}
			i := slices.IndexFunc(in.Calls, func(c view.Call) bool { return strings.HasSuffix(c.Resource, checkpoint.RequestName) })
			if i < 0 || in.Calls[i].Code != reason.CodeForeign {
				t.Errorf("the record says %+v", in.Calls)
			}
			if with {
				return
			}
			for range 2 {
				b.Clock.Advance(time.Minute)
				b.Give(b.Workload(id), evidence.Ticked{})
			}
			b.request = b.next()
			b.Want(b.deliver(), fleettest.Handled)
			there, err = checkpoint.ReadRequest(t.Context(), b.Store, fleettest.Directory)
			b.Must(err)
			b.Want(there.SaveID, b.request.SaveID)
		})
	}
}
