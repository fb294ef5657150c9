package logevent_test

import (
	"fmt"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// says delivers a line of the crew of any node in any zone.
func (b *bench) says(zone, node string, r events.CrewReport) {
	b.T.Helper()
	r.Schema, r.Project, r.Zone, r.Node = events.Schema, fleettest.Project, zone, node
	b.Want(b.deliver(trainingtest.CrewEntry(r, b.Clock.Now(), 1)), fleettest.Handled)
}

// started is the first line of a crew.
var started = events.CrewReport{Report: events.ReportStarted, Attempt: 1}

// TestLinesOfInventedNodesCauseOneLook: however many lines name nodes that nobody knows, one look at a zone in five seconds follows, and no
// more than a bound in a minute, in however many zones they say that they are.
func TestLinesOfInventedNodesCauseOneLook(t *testing.T) {
	for name, c := range map[string]struct {
		zone func(n int) string
		want []int // the reads of three seconds in a row, and of the five seconds after them
	}{
		"in one zone":         {func(int) string { return zone }, []int{1, 0, 0, 1}},
		"in two zones":        {func(n int) string { return []string{zone, fleettest.OtherZone}[n%2] }, []int{2, 0, 0, 2}},
		"in as many of these": {func(n int) string { return fmt.Sprintf("nowhere%d-a", n) }, []int{ledger.LineLooks, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i, want := range c.want {
				for n := range 500 {
					r := started
					r.Schema, r.Project, r.Zone, r.Node = events.Schema, fleettest.Project, c.zone(n), fmt.Sprintf("node%d", 500*i+n)
					b.deliver(trainingtest.CrewEntry(r, b.Clock.Now(), 1))
				}
				b.Want(fleettest.Count(b.Calls(), "GetNode"), want)
				b.Clock.Advance(time.Second)
				if i == 2 {
					b.Clock.Advance(ledger.LookEvery)
				}
			}
			b.Want(b.Workloads(), []string(nil))
		})
	}
}

// TestLinesHideNoLookOfGoogle: between lines of invented nodes, Google's own entries cause their looks as ever.
func TestLinesHideNoLookOfGoogle(t *testing.T) {
	b := newBench(t)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true, Labels: fleettest.Label("spot"), Group: group})
	b.Must(err)
	_, err = b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: "gemma", Spot: true, Labels: fleettest.Label("spot")})
	b.Must(err)
	for n := range 300 { // more than are parked
		b.says(zone, fmt.Sprintf("node%d", n), started)
	}
	b.Calls()
	b.Want(b.deliver(fleettest.SystemEvent("compute.instances.hostError", worker(0), b.Clock.Now(), nil)), fleettest.Handled)
	b.Want(b.Shown(id).Incident.Cause, events.CauseHostError)
	b.Want(b.deliver(b.preempted("locations/"+zone+"/nodes/other")), fleettest.Handled)
	b.Want(fleettest.Count(b.Calls(), "GetNode"), 2) // the one that broke, and the one that nobody knows

	b.Want(b.deliver(b.preempted("zones/"+zone+"/instances/t1v-n-00000009-w-0")), fleettest.Handled)
	waits := false
	for _, e := range b.Parked(zone, b.Clock.Now()) {
		waits = waits || e.Key == "t1v-n-00000009 loss preemption "
	}
	b.Want(waits, true)
}

// TestALookForAKnownSliceIsBoundedToo: crews of one zone see their preemption in the same second. The first line causes a look at once; what
// the others tell of stands in their incidents, and patrol looks.
func TestALookForAKnownSliceIsBoundedToo(t *testing.T) {
	b := training(t)
	b.Slice(cloudtputest.NodeConfig{Name: "gemma", Spot: true, Group: "t1v-n-00000002"})
	b.Slice(cloudtputest.NodeConfig{Name: "away", Zone: fleettest.OtherZone, Spot: true, Group: "t1v-n-00000003"})
	b.Clock.Advance(time.Minute)
	preempted := events.CrewReport{Report: events.ReportNotice, Preempted: true}
	b.says(zone, slice, preempted)
	b.says(zone, "gemma", preempted)
	b.says(fleettest.OtherZone, "away", preempted)
	b.Want(b.Calls(), []string{read, "GetNode " + fleettest.OtherZone + "/away"})
	w := b.Workload("demo/gemma")
	b.Want(w.Reads(b.Clock.Now()).Has(incident.ReadSlices, ""), true)
	b.Want(w.Due().After(b.Clock.Now()), false)

	b.Clock.Advance(ledger.LookEvery)
	b.says(zone, "gemma", events.CrewReport{Report: events.ReportExited, Attempt: 1, ExitCode: 1})
	b.Want(b.Calls(), []string{"GetNode " + zone + "/gemma"})
}
