package recovery_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// TestALeaseAdmitsAJobAsPatrolReadIt: this function reaches no cluster, and needs none to write a lease.
func TestALeaseAdmitsAJobAsPatrolReadIt(t *testing.T) {
	b := &bench{Bench: fleettest.New(t)}
	b.Fleet.Provider = provider.Set{provider.CloudTPU: b.Cloud}
	const scope, job = "us-east5/trainers/default", "mixtral"
	uid := ""
	read := func(c evidence.Condition, label string) incident.Workload {
		t.Helper()
		b.Clock.Advance(time.Minute)
		s := provider.Slice{
			Ref: provider.Ref{Project: fleettest.Project, Zone: scope, Name: job}, At: b.Clock.Now(), Condition: c, State: string(c), Capacity: events.Spot, Healing: evidence.HealsNever,
			Labels: map[string]string{events.LabelPolicy: "spot", events.LabelIncident: label}, Directory: fleettest.Directory + "-job", Workers: 2, Chips: 8, Spec: []byte("{}"), SpecHash: "spec",
		}
		if c == evidence.Gone {
			s = provider.Slice{Ref: s.Ref, At: s.At, Condition: c}
		} else {
			s.Incarnation = events.Incarnation{Zone: scope, ID: uid, Created: b.Clock.Now().Add(-time.Second)}
		}
		w, err := b.Fleet.Observe(t.Context(), s)
		b.Must(err)
		return w
	}
	uid = "uid-1"
	w := read(evidence.Ready, "")
	life := w.Slices[0].Incarnation
	lost := evidence.Read{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankReading}, Slice: job, Zone: scope, Condition: evidence.Lost, State: "lost", Incarnation: life, Facts: w.Slices[0].Facts,
	}
	_, err := b.Fleet.Advancer.Advance(t.Context(), w.ID, lost)
	b.Must(err)
	remove, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	_, err = b.Fleet.Advancer.Begin(t.Context(), remove.Request, "request-id-0")
	b.Must(err)
	_, err = b.Fleet.Advancer.Answer(t.Context(), remove.Request, "", "accepted", nil)
	b.Must(err)
	read(evidence.Gone, "")
	create, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	_, err = b.Fleet.Advancer.Begin(t.Context(), create.Request, "request-id")
	b.Must(err)
	uid = "uid-2"
	read(evidence.Ready, create.Incident)
	b.request = b.next()
	b.Want(b.deliver(), "handled")
	content, _, ok := b.Storage.Get(fleettest.Bucket, "run-job/"+checkpoint.LeaseName)
	if !ok {
		t.Fatal("no lease is written")
	}
	lease, err := checkpoint.DecodeLease(content)
	b.Must(err)
	if len(lease.Admitted) != 1 || lease.Admitted[0].Slice != job || lease.Admitted[0].Incarnation.ID != "uid-2" {
		t.Errorf("the lease admits %+v", lease.Admitted)
	}
}
