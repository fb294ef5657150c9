package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// leaves puts a lease of this workload and epoch beside the checkpoints. It names our slice in this zone.
func (b *bench) leaves(workload string, epoch int64, in string) checkpoint.Lease {
	b.T.Helper()
	l := checkpoint.Lease{
		Schema: events.Schema, Workload: workload, Epoch: epoch, Attempt: 3, Written: b.Clock.Now(), By: "crew",
		Admitted: []events.Admission{{Slice: slice, Incarnation: events.Incarnation{Zone: in}, Workers: group}},
	}
	b.Must(checkpoint.WriteLease(b.T.Context(), b.Store, fleettest.Directory, l))
	return l
}

// TestALeaseOfAnotherWorkloadStays: a TPU of another project may have our slice's name and zone, and a copy of its directory.
func TestALeaseOfAnotherWorkloadStays(t *testing.T) {
	for name, c := range map[string]struct {
		workload string
		epoch    int64
		in       string
		stays    bool
	}{
		"a crew's, named after our node":                         {fleettest.Project + "/node", 0, zone, false},
		"a crew's, of our slice where it was before":             {fleettest.Project + "/node", 0, fleettest.OtherZone, false},
		"a crew's, of a slice of that name where ours never was": {fleettest.Project + "/node", 0, "us-east5-a", true},
		"a crew's, of that name and zone in another project":     {"prod/llama", 0, zone, true},
		"Pitstop's, of another project":                          {"prod/llama", 1, zone, true},
		"Pitstop's, of another workload":                         {fleettest.Project + "/other", 1, zone, true},
		"Pitstop's own":                                          {id, 1, zone, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := toRestartAfter(t, func(b *bench) { // its owner moves it
				b.Slice(cloudtputest.NodeConfig{Zone: fleettest.OtherZone, Spot: true})
				b.Must(b.API.Vanish(fleettest.OtherZone, slice))
				b.Give(b.Workload(id), evidence.Called{
					Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
				})
				b.Clock.Advance(time.Minute)
				b.Look(fleettest.OtherZone, slice)
				b.Sender.Sent()
			})
			theirs := b.leaves(c.workload, c.epoch, c.in)
			b.Want(b.deliver(), fleettest.Handled)
			l, _ := b.lease()
			if !c.stays {
				b.Want([]any{l.Workload, l.Attempt, l.By}, []any{id, 4, "pitstop"})
				return
			}
			b.Want(l, theirs)
			in := b.Shown(id).Closed
			if in == nil || in.Outcome != view.Escalated || in.Code != reason.CodeForeign {
				t.Fatalf("closed %+v, want it escalated as %s", in, reason.CodeForeign)
			}
			for _, want := range []string{"pitstop-lease.json", c.workload + " holds it since", "this is " + id, "a directory of its own", "delete this object"} {
				if !strings.Contains(in.Reason, want) || strings.Contains(in.Reason, "\n") {
					t.Errorf("%q is not said in one line: %s", want, in.Reason)
				}
			}
			if !strings.HasPrefix(in.Advice, "settle whose "+fleettest.Directory+" is, then pitstop retry llama") {
				t.Errorf("the way out is %s", in.Advice)
			}
			for _, want := range []string{"level=ERROR", "checkpoint directory of another workload", c.workload, "workload=" + id} {
				if !strings.Contains(b.Logged(), want) {
					t.Errorf("%q is not logged: %s", want, b.Logged())
				}
			}
		})
	}
}

// TestALeaseThatVanishedIsWrittenAgain: whom the last one named is known to the ledger, and the lease that cannot be parsed is no
// other's. People are told of one that is gone, and what may have deleted it.
func TestALeaseThatVanishedIsWrittenAgain(t *testing.T) {
	for name, there := range map[string]*string{
		"it is gone":                     nil,
		"it is empty":                    new(""),
		"it is not JSON":                 new("{"),
		"it is no lease":                 new(`[1]`),
		"it is torn":                     new(`{"schema":1,"workload":"` + id + `","epoch":2`),
		"it names nobody":                new(`{"schema":1,"epoch":1,"attempt":9}`),
		"it is ours, and names no slice": new(`{"schema":1,"workload":"` + id + `","epoch":1,"attempt":9}`),
	} {
		t.Run(name, func(t *testing.T) {
			b := toRestart(t)
			if there != nil {
				b.Storage.Put(fleettest.Bucket, "run/"+checkpoint.LeaseName, []byte(*there))
			}
			life := b.API.Incarnation(zone, slice)
			b.Want(b.deliver(), fleettest.Handled)
			l, _ := b.lease()
			b.Want([]any{l.Workload, l.Epoch, l.Attempt}, []any{id, b.request.Epoch, 4})
			b.Want(l.Admitted, []events.Admission{{Slice: slice, Incarnation: life, Workers: group}})
			said := fmt.Sprint(b.open().Timeline)
			if told := strings.Contains(said, "the lease names attempt 4; there was none") && strings.Contains(said, "lifecycle rule"); told != (there == nil) {
				t.Errorf("it is told that the lease had vanished: %t: %s", told, said)
			}
		})
	}
}

// TestALeaseThatComesBackIsHeeded: the crew that the last lease named writes it again while this call is held up.
func TestALeaseThatComesBackIsHeeded(t *testing.T) {
	b := toRestart(t)
	var theirs checkpoint.Lease
	b.Fleet.Advancer.Saved = func(_ context.Context, s ledger.Step) {
		if fleettest.Begun(s.After) {
			b.Fleet.Advancer.Saved = nil
			theirs = b.leaves(id, 2, zone)
		}
	}
	b.Want(b.deliver(), fleettest.Handled)
	l, _ := b.lease()
	b.Want(l, theirs)
	b.Want(b.Shown(id).Requests[0].Code, reason.CodeOvertaken)
	b.Clock.Advance(b.Shown(id).Requests[0].Retry.Sub(b.Clock.Now()))
	b.Give(b.Workload(id), evidence.Ticked{})
	b.request = b.next()
	b.Want(b.deliver(), fleettest.Handled)
	l, _ = b.lease()
	b.Want([]any{l.By, l.Attempt}, []any{"pitstop", 4})
}

// TestANewLifeIsNotAdmittedByALeaseOfAnotherWorkload: the slice that Pitstop has made stays out, and a person is told.
func TestANewLifeIsNotAdmittedByALeaseOfAnotherWorkload(t *testing.T) {
	b := toAdmit(t)
	theirs := b.leaves("prod/llama", 0, zone)
	b.Want(b.deliver(), fleettest.Handled)
	l, _ := b.lease()
	b.Want(l, theirs)
	in := b.Shown(id).Closed
	if in == nil || in.Code != reason.CodeForeign || !strings.Contains(in.Reason, "prod/llama holds it since") {
		t.Fatalf("closed %+v, want it escalated as %s", in, reason.CodeForeign)
	}
}
