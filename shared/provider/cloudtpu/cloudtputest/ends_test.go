package cloudtputest_test

import (
	"testing"
	"time"

	tpuapi "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestANodeEndsWhenItsRunDurationIsOver: in one of three ways, and every life anew.
func TestANodeEndsWhenItsRunDurationIsOver(t *testing.T) {
	for id, want := range map[int64]string{3: "PREEMPTED", 4: "TERMINATED", 5: ""} {
		for _, queued := range []bool{false, true} {
			clock := cloudtputest.NewManualClock(start)
			a := cloudtputest.New(cloudtputest.Config{Clock: clock})
			n := cloudtputest.NodeConfig{Zone: home, Name: "n", ID: id, Created: start.Add(-time.Hour)}
			var err error
			if queued {
				err = a.AddQueuedResource(cloudtputest.QueuedConfig{
					Zone: home, Name: "q", Nodes: []cloudtputest.NodeConfig{n},
					Order: &tpuapi.QueuedResource{ProvisioningModel: "FLEX_START", RunDuration: &tpuapi.RunDuration{MaxRunDuration: "7200s"}},
				})
			} else {
				n.RunsFor = 2 * time.Hour
				_, err = a.AddNode(n)
			}
			must(t, err)
			clock.Advance(time.Hour - time.Second)
			if n := a.Node(home, "n"); n == nil || n.State != "READY" {
				t.Fatalf("%d, queued %t: before its end it is %+v", id, queued, n)
			}
			clock.Advance(time.Second)
			got := ""
			if n := a.Node(home, "n"); n != nil {
				got = n.State
			}
			if got != want {
				t.Errorf("%d, queued %t: at its end it is %q, not %q", id, queued, got, want)
			}
		}
	}
}
