package fleet_test

import (
	"strings"
	"testing"
	"time"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// slice is a node with the label pitstop-workload=run, as somebody orders it.
func slice(name, policy, directory, account string) cloudtputest.NodeConfig {
	c := cloudtputest.NodeConfig{Name: name, Zone: zone, Spot: true, Labels: map[string]string{events.LabelWorkload: "run"}}
	if policy != "" {
		c.Labels[events.LabelPolicy] = policy
	}
	c.Metadata = map[string]string{"startup-script": "x"}
	if directory != "" {
		c.Metadata[events.MetadataCheckpointDir] = directory
	}
	if account != "" {
		c.Order = &api.Node{RuntimeVersion: "v2-alpha-tpuv5-lite", ServiceAccount: &api.ServiceAccount{Email: account}}
	}
	return c
}

// TestACopiedLabelTakesNothingOver: while a slice of a workload lives, a newcomer with another directory, policy or service
// account becomes a workload of its own. The workload in its label stays as it was.
func TestACopiedLabelTakesNothingOver(t *testing.T) {
	const dir, us = fleettest.Directory, "train@demo.iam.gserviceaccount.com"
	for name, c := range map[string]struct {
		first, second cloudtputest.NodeConfig
		meanwhile     func(b *bench)
		want, why     string
	}{
		"a second slice":                             {slice("a", "spot", dir, us), slice("b", "spot", dir, us), nil, "demo/run", ""},
		"one that names nothing of it":               {slice("a", "spot", dir, us), slice("b", "", "", ""), nil, "demo/run", ""},
		"another directory":                          {slice("a", "spot", dir, us), slice("b", "spot", "gs://theirs/x", us), nil, "demo/b", "its checkpoint directory is gs://theirs/x"},
		"a directory where there was none":           {slice("a", "spot", "", us), slice("b", "spot", "gs://theirs/x", us), nil, "demo/b", "that of run is not known"},
		"another policy":                             {slice("a", "watch", dir, us), slice("b", "spot", dir, us), nil, "demo/b", "its policy is spot, and that of run is watch"},
		"a policy where there was none":              {slice("a", "", dir, us), slice("b", "spot", dir, us), nil, "demo/b", "its policy is spot, and that of run is none"},
		"another policy from before the first sight": {slice("a", "watch", dir, us), older(slice("b", "spot", dir, us)), nil, "demo/run", ""},
		"a directory from before the first sight":    {slice("a", "spot", "", us), older(slice("b", "spot", dir, us)), nil, "demo/run", ""},
		"another directory from before it":           {slice("a", "spot", dir, us), older(slice("b", "spot", "gs://theirs/x", us)), nil, "demo/b", "gs://theirs/x"},
		"another account from before it":             {slice("a", "spot", dir, us), older(slice("b", "spot", dir, "eve@demo.iam.gserviceaccount.com")), nil, "demo/run", ""},
		"another account":                            {slice("a", "spot", dir, us), slice("b", "spot", dir, "eve@demo.iam.gserviceaccount.com"), nil, "demo/b", "it acts as eve@"},
		"an account that cannot be told":             {slice("a", "spot", dir, ""), slice("b", "spot", dir, us), nil, "demo/run", ""},
		"the workload's own name":                    {slice("a", "spot", dir, us), slice("run", "spot", "gs://theirs/x", us), nil, "demo/run." + zone, "gs://theirs/x"},
		"it was lost, and is only watched":           {slice("a", "watch", dir, us), slice("b", "watch", "gs://new/x", us), func(b *bench) { b.Must(b.API.Preempt(zone, "a")); b.Look(zone, "a") }, "demo/run", ""},
		"its owner has deleted its one slice":        {slice("a", "spot", dir, us), slice("b", "spot", "gs://new/x", us), func(b *bench) { annDeletes(b, "a") }, "demo/run", ""},
		"it was lost, and is brought back":           {slice("a", "spot", dir, us), slice("b", "spot", "gs://new/x", us), func(b *bench) { b.Must(b.API.Preempt(zone, "a")); b.Look(zone, "a") }, "demo/b", "gs://new/x"},
		"it was lost, and nobody has looked":         {slice("a", "spot", dir, us), slice("b", "spot", "gs://new/x", us), func(b *bench) { b.Must(b.API.Preempt(zone, "a")) }, "demo/b", "gs://new/x"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.node(c.first)
			b.Look(zone, "a")
			b.Clock.Advance(time.Minute)
			if c.meanwhile != nil {
				c.meanwhile(b)
			}
			b.Clock.Advance(time.Minute)
			before := b.Workload("demo/run")
			if c.second.Created.IsZero() {
				c.second.Created = b.Clock.Now()
			}
			b.node(c.second)
			w := b.Look(zone, c.second.Name)
			b.Want(w.ID, c.want)
			b.Want(b.Look(zone, c.second.Name).ID, c.want) // it stays so
			if loud := strings.Contains(b.Logged(), "level=ERROR") && strings.Contains(b.Logged(), c.why); loud != (c.why != "") {
				t.Errorf("it is logged loudly: %v: %s", loud, b.Logged())
			}
			if c.want == "demo/run" {
				return
			}
			b.Want(w.Slices[0].Claims, "run")
			after := b.Workload("demo/run")
			b.Want([]any{after.Directory, after.Label, after.Shown(b.Clock.Now()).Training, len(after.Slices)}, []any{before.Directory, before.Label, before.Shown(b.Clock.Now()).Training, len(before.Slices)})

			// Its owner takes the label off.
			b.Must(b.API.SetLabel(zone, c.second.Name, events.LabelWorkload, "", "ann@example.com"))
			b.Want(b.Look(zone, c.second.Name).Slices[0].Claims, "")
		})
	}
}

// TestSlicesOfOneQueuedResourceBelongTogether: both were ordered at once, whatever they name.
func TestSlicesOfOneQueuedResourceBelongTogether(t *testing.T) {
	b := newBench(t)
	one, two := slice("a", "spot", fleettest.Directory, ""), slice("b", "watch", "gs://theirs/x", "")
	b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "q", Nodes: []cloudtputest.NodeConfig{one, two}}))
	b.Want(b.Look(zone, "a").ID, "demo/run")
	b.Want(b.Look(zone, "b").ID, "demo/run")
}

// TestANamesakeIsNoStranger: without a label the slice claims no workload, so no loud line is logged.
func TestANamesakeIsNoStranger(t *testing.T) {
	b := newBench(t)
	one, two := slice("a", "spot", fleettest.Directory, ""), slice("a", "spot", "gs://theirs/x", "")
	two.Zone = other
	delete(one.Labels, events.LabelWorkload)
	delete(two.Labels, events.LabelWorkload)
	b.node(one)
	b.Look(zone, "a")
	b.node(two)
	b.Want(b.Look(other, "a").ID, "demo/a."+other)
	b.Want(strings.Contains(b.Logged(), "level=ERROR"), false)
}

// TestWhatWaitsInAQueueIsANewcomer: it has no life yet, and was ordered after the workload was first seen.
func TestWhatWaitsInAQueueIsANewcomer(t *testing.T) {
	for name, c := range map[string]struct{ first, second cloudtputest.NodeConfig }{
		"another policy":                   {slice("a", "spot", fleettest.Directory, ""), slice("b", "watch", fleettest.Directory, "")},
		"a directory where there was none": {slice("a", "spot", "", ""), slice("b", "spot", "gs://theirs/x", "")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.node(c.first)
			before := b.Look(zone, "a")
			b.Clock.Advance(24 * time.Hour)
			b.Must(b.API.OwnerCreateQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "q", Spot: true, Nodes: []cloudtputest.NodeConfig{c.second}}, "eve@example.com"))
			for range 2 { // it waits, and it is there
				b.Clock.Advance(time.Hour)
				b.all(zone)
			}
			b.Want(b.Workload("demo/q").Slices[0].Name, "b")
			after := b.Workload("demo/run")
			b.Want([]string{after.Directory, after.Label}, []string{before.Directory, before.Label})
		})
	}
}

// all has every slice of a zone observed.
func (b *bench) all(zone string) {
	b.T.Helper()
	list, err := b.Fleet.List(b.T.Context(), project, zone)
	b.Must(err)
	for _, s := range list.Slices {
		_, err := b.Fleet.Observe(b.T.Context(), s)
		b.Must(err)
	}
}

// TestAMultisliceIsMovedSliceBySlice: a slice that its owner brings back elsewhere goes on in the same directory, whatever
// else they change.
func TestAMultisliceIsMovedSliceBySlice(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b"} {
		b.node(slice(name, "spot", fleettest.Directory, ""))
		b.Look(zone, name)
	}
	for _, name := range []string{"a", "b"} {
		annDeletes(b, name)
		b.Clock.Advance(time.Minute)
		c := slice(name, "watch", fleettest.Directory+"/", "")
		c.Zone = other
		b.node(c)
		b.Want(b.Look(other, name).ID, "demo/run")
		b.Clock.Advance(10 * time.Minute)
	}
	b.Want(b.Workloads(), []string{"demo/run"})
	b.Want(b.Workload("demo/run").Directory, fleettest.Directory)
}

// TestNobodyIsAStrangerUnread: a verdict is for good, so it does not rest on what could not be read.
func TestNobodyIsAStrangerUnread(t *testing.T) {
	b := newBench(t)
	b.node(slice("a", "spot", fleettest.Directory, ""))
	b.Look(zone, "a")
	b.Clock.Advance(time.Hour)
	b.Must(b.API.Vanish(zone, "a")) // word of it is late
	b.node(slice("b", "watch", "gs://new/x", ""))
	s, err := b.Fleet.Read(t.Context(), provider.Ref{Project: project, Zone: zone, Name: "b"})
	b.Must(err)
	b.API.Inject(cloudtputest.Fault{Method: "GetNode", Name: "a", Code: 14, Times: 10})
	if w, err := b.Fleet.Observe(t.Context(), s); err == nil {
		t.Errorf("it is %s, and nobody knows whether a lives", w.ID)
	}
}

// TestTheOwnerMovesTheirTraining: the name that is gone from one zone may come in another one with all else changed.
func TestTheOwnerMovesTheirTraining(t *testing.T) {
	b := newBench(t)
	b.node(slice("a", "spot", fleettest.Directory, ""))
	b.Look(zone, "a")
	annDeletes(b, "a")
	b.Clock.Advance(time.Minute)
	c := slice("a", "watch", "gs://new/x", "")
	c.Zone = other
	b.node(c)
	w := b.Look(other, "a")
	b.Want([]string{w.ID, w.Directory, w.Label, w.Slices[0].Zone}, []string{"demo/run", "gs://new/x", "watch", other})
}

// older is a node that was there long before.
func older(c cloudtputest.NodeConfig) cloudtputest.NodeConfig {
	c.Created = fleettest.Start.Add(-time.Hour)
	return c
}

// annDeletes has the owner delete a slice, of which nothing is read since.
func annDeletes(b *bench, name string) {
	b.T.Helper()
	b.Must(b.API.Vanish(zone, name))
	b.Give(b.Workload("demo/run"), evidence.Called{
		Origin: evidence.Origin{ID: "entry", Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: name, Zone: zone, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com",
	})
}
