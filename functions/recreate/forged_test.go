package recreate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestARequestIsAPointer: whatever else the body of a request to delete or create says, the function obeys the ledger.
func TestARequestIsAPointer(t *testing.T) {
	for name, arrange := range map[string]func(*testing.T) *bench{
		"delete": toDelete, "create": toCreate, "delete a queued resource": multislice,
		"create a queued resource": func(t *testing.T) *bench {
			t.Helper()
			b := multislice(t)
			b.Want(b.deliver(), fleettest.Handled)
			b.finds(10 * time.Minute)
			return b
		},
		"create in another shape": func(t *testing.T) *bench { t.Helper(); return inAnotherShape(t, scaling) },
		"cancel a queued resource": func(t *testing.T) *bench {
			t.Helper()
			b := waiting(t)
			b.release()
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "delete" {
				breadth.Again(t)
			}
			fleettest.ObeysPointersAlone(t, func(t *testing.T) fleettest.Acting {
				t.Helper()
				b := arrange(t)
				return fleettest.Acting{Bench: b.Bench, Request: b.request, Handle: b.handle()}
			})
		})
	}
}

// TestAPointerToAnotherTaskMakesItsCalls, and none of the effect that the rest of the body describes.
func TestAPointerToAnotherTaskMakesItsCalls(t *testing.T) {
	calls := func(forge bool) []string {
		names := []string{"llama-a", "llama-b"}
		b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
		for _, name := range names {
			w := b.Slice(cloudtputest.NodeConfig{Name: name, Spot: true, Labels: map[string]string{events.LabelPolicy: "spot", events.LabelWorkload: slice}})
			b.Report(w, name, fleettest.Progress(1000))
		}
		b.Clock.Advance(time.Minute)
		for _, name := range names {
			b.Must(b.API.Preempt(zone, name))
			b.Look(zone, name)
		}
		requests := fleettest.All(t, b.Bench, events.DecodeRecreateRequested)[1:] // the second loss has the first one asked for anew
		b.request = requests[1]
		if forge {
			b.request = requests[0]
			b.request.Slice = requests[1].Slice
		}
		b.Calls()
		b.Outside()
		b.Want(b.deliver(), fleettest.Handled)
		return b.Outside()
	}
	if d := cmp.Diff(calls(false), calls(true)); d != "" {
		t.Errorf("(-its own request +forged):\n%s", d)
	}
}
