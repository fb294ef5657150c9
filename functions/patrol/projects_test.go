package patrol_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestEveryWatchedProjectIsPatrolled has the same slice in two projects: what happens to one is not taken for the other's,
// and a project that cannot be read keeps no other from being patrolled.
func TestEveryWatchedProjectIsPatrolled(t *testing.T) {
	b := training(t)
	const elsewhere = "elsewhere"
	api := cloudtputest.New(cloudtputest.Config{Project: elsewhere, Principal: fleettest.Us, Clock: b.Clock, Seed: 2, Zones: map[string]int{zone: 1, other: 1}})
	_, err := api.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Accelerator: "v5litepod-16", Spot: true, Created: b.Clock.Now().Add(-time.Hour)})
	b.Must(err)
	cloud, err := cloudtpu.New(t.Context(), option.WithHTTPClient(&http.Client{Transport: api.Transport()}), option.WithoutAuthentication())
	b.Must(err)
	second := *b.Fleet
	second.Provider = cloud
	b.handle = patrol.New(
		patrol.Deps{Fleet: b.Fleet, Provider: b.Cloud, Publisher: b.Sender, Project: fleettest.Project, Sleep: b.Sleep},
		patrol.Deps{Fleet: &second, Provider: cloud, Publisher: b.Sender, Project: elsewhere, Sleep: b.Sleep},
	)
	b.minutes(1)
	condition := func(id string) evidence.Condition { return b.Workload(id).Slices[0].Condition }
	b.Want(condition(elsewhere+"/"+slice), evidence.Ready)

	b.Must(api.Preempt(zone, slice))
	b.minutes(16) // a sweep among them, which reads every workload
	b.Want(condition(elsewhere+"/"+slice), evidence.Lost)
	b.Want(condition(id), evidence.Ready)

	_, err = api.AddNode(cloudtputest.NodeConfig{Zone: other, Name: "new", Accelerator: "v5litepod-16", Created: b.Clock.Now()})
	b.Must(err)
	b.Clock.Advance(15 * time.Minute)
	b.API.Inject(cloudtputest.Fault{Method: "ListLocations", Code: 7, Message: "not here"})
	b.Want(b.tick(), fleettest.Rejected)
	b.Want(condition(elsewhere+"/new"), evidence.Ready)
}
