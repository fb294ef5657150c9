package fleet_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/google/go-cmp/cmp"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

const (
	project = fleettest.Project
	zone    = fleettest.Zone
	other   = fleettest.OtherZone
	group   = "t1v-n-0a1b2c3d"
)

type bench struct {
	*fleettest.Bench
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{fleettest.New(t)}
}

// node puts a node there that nobody has looked at.
func (b *bench) node(c cloudtputest.NodeConfig) {
	b.T.Helper()
	if c.Zone == "" {
		c.Zone = zone
	}
	if c.Name == "" {
		c.Name = "llama"
	}
	_, err := b.API.AddNode(c)
	b.Must(err)
}

func (b *bench) subject(kind ledger.SubjectKind, name string) ledger.Subject {
	b.T.Helper()
	s, err := b.Ledger.Subject(b.T.Context(), project, zone, kind, name)
	b.Must(err)
	return s
}

// worker is an entry about a worker of the group.
func worker(n int) events.Entry {
	return events.Entry{Kind: events.KindLoss, Cause: events.CauseHostError, Subject: events.Subject{
		Project: project, Zone: zone, Worker: fmt.Sprintf("%s-w-%d", group, n),
	}}
}

func TestASliceIsIntroducedWithEverythingThatIsNeededToMakeItAgain(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Accelerator: "v5litepod-16"})
	life := b.API.Incarnation(zone, "llama")
	spec := w.Slices[0].Spec
	v := w.Shown(b.Clock.Now())
	b.Want([]string{v.ID, v.Project, v.Name, v.Provider, v.Label, v.Directory}, []string{"demo/llama", project, "llama", cloudtpu.Name, "spot", fleettest.Directory})
	b.Want(v.Seen, b.Clock.Now())
	s := v.Slices[0]
	b.Want(s.Spec != "", true)
	s.Used, s.Noun, s.Look = time.Time{}, "", "" // what is said of it in words is asserted where the words are
	b.Want(s, view.Slice{
		Name: "llama", Zone: zone, Condition: evidence.Ready, State: "READY", Since: b.Clock.Now(), Incarnation: life, Accelerator: "v5litepod-16",
		Workers: 4, Chips: 16, Capacity: events.Spot, Spec: spec, Admitted: true,
	})
	b.Want(w.Slices[0].SpecIn(), zone)
	b.Want(b.Workload(w.ID), w)
	stored, err := b.Ledger.Spec(t.Context(), spec)
	b.Must(err)
	b.Want(strings.Contains(string(stored), "TOKEN"), false)
	values, err := b.Secrets.Of(t.Context(), spec)
	b.Must(err)
	b.Want(values, map[string]string{events.MetadataCheckpointDir: fleettest.Directory, "startup-script": "export TOKEN=secret"})
	b.Want(b.subject(ledger.Node, "llama"), ledger.Subject{Workload: w.ID, Slice: "llama", Incarnation: life})
}

func TestWithoutItsSpecificationStoredNothingIsDecidedOnASlice(t *testing.T) {
	for _, collection := range []string{ledger.Specs, ledger.Subjects, ledger.Workloads} {
		t.Run(collection, func(t *testing.T) {
			b := newBench(t)
			b.node(cloudtputest.NodeConfig{Metadata: map[string]string{"k": "v"}})
			s, err := b.Cloud.Read(t.Context(), provider.Ref{Project: project, Zone: zone, Name: "llama"})
			b.Must(err)
			b.Break(collection)
			if _, err := b.Fleet.Observe(t.Context(), s); err == nil {
				t.Error("no error")
			}
			b.Mend()
			b.Want(b.Workloads(), []string(nil))
		})
	}
}

// TestAnOrderIsMovedFromWhereItWasRead: what our own call made elsewhere may be lost before its own order is read.
func TestAnOrderIsMovedFromWhereItWasRead(t *testing.T) {
	const away = "us-central1-a"
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Order: &api.Node{RuntimeVersion: "v2-alpha-tpuv5-lite", NetworkConfig: &api.NetworkConfig{Network: "tpus", Subnetwork: "west"}}})
	b.Want(w.Slices[0].SpecIn(), zone)
	w.Slices[0].Zone = away
	spec, unfit, err := fleet.Order(t.Context(), b.Ledger, w, w.Slices[0], view.Place{Zone: away}, policy.Policy{Subnetworks: map[string]string{"us-central1": "central"}})
	b.Must(err)
	b.Must(unfit)
	if text := string(spec); !strings.Contains(text, "central") || strings.Contains(text, "west\"") {
		t.Errorf("ordered is %s", text)
	}
}

// TestAPolicyTurnsAutocheckpointOn in what a slice is created from again, and changes nothing else of it. A legacy node has none.
func TestAPolicyTurnsAutocheckpointOn(t *testing.T) {
	b := newBench(t)
	b.Legacy(zone)
	for name, c := range map[string]struct {
		config cloudtputest.NodeConfig
		on     bool
	}{
		"off":    {cloudtputest.NodeConfig{Spot: true, Metadata: map[string]string{"startup-script": "TOKEN=s3cret pitcrew run"}}, true},
		"on":     {cloudtputest.NodeConfig{Spot: true, Order: &api.Node{RuntimeVersion: "v2-alpha-tpuv5-lite", AutocheckpointEnabled: true}}, true},
		"queued": {cloudtputest.NodeConfig{Order: &api.Node{RuntimeVersion: "v2-alpha-tpuv5-lite"}}, true},
		"former": {cloudtputest.NodeConfig{Spot: true, Accelerator: "v3-8", Legacy: &tpupb.Node{}}, false},
	} {
		c.config.Zone, c.config.Name = zone, name
		if name == "queued" {
			b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "q", Nodes: []cloudtputest.NodeConfig{c.config}}))
		} else {
			_, err := b.API.AddNode(c.config)
			b.Must(err)
		}
		w := b.Look(zone, name)
		order := func(p policy.Policy) map[string]any {
			t.Helper()
			spec, unfit, err := fleet.Order(t.Context(), b.Ledger, w, w.Slices[0], view.Place{Zone: zone}, p)
			b.Must(err)
			b.Must(unfit)
			var whole map[string]any
			b.Must(json.Unmarshal(spec, &whole))
			return whole
		}
		keep, on := order(policy.Policy{Autocheckpoint: policy.AutocheckpointKeep}), order(policy.Policy{Autocheckpoint: policy.AutocheckpointOn})
		b.Want(keep, order(policy.Policy{}))
		node, _ := on["node"].(map[string]any)
		b.Want(node["autocheckpointEnabled"] == true, c.on)
		if was, _ := keep["node"].(map[string]any); was != nil {
			was["autocheckpointEnabled"] = true
		}
		b.Want(on, keep)
	}
}

// TestASliceIsWatchedThoughItsValuesCannotBeKept: its order is not known then, and all else is.
func TestASliceIsWatchedThoughItsValuesCannotBeKept(t *testing.T) {
	b := newBench(t)
	b.Break(ledger.Values)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true})
	b.Want([]any{w.Slices[0].Spec, w.Slices[0].Condition}, []any{"", evidence.Ready})
	b.Want(strings.Contains(b.Logged(), "level=ERROR msg=\"metadata values not stored"), true)
	b.Mend()
	ordered := b.Look(zone, "llama").Slices[0].Spec
	b.Want(ordered != "", true)

	// Another life, whose values cannot be kept, is not taken for the order of the one before.
	b.Break(ledger.Values)
	b.Must(b.API.Vanish(zone, "llama"))
	b.Clock.Advance(time.Minute)
	w = b.Slice(cloudtputest.NodeConfig{Spot: true, Accelerator: "v5litepod-64", Created: b.Clock.Now()})
	b.Want([]string{w.Slices[0].Accelerator, w.Slices[0].Spec}, []string{"v5litepod-64", ""})
	// Earlier knowledge stays while the same life goes on.
	b.Mend()
	ordered = b.Look(zone, "llama").Slices[0].Spec
	b.Break(ledger.Values)
	b.Must(b.API.Preempt(zone, "llama"))
	b.Want(b.Look(zone, "llama").Slices[0].Spec, ordered)
}

// TestWhoKeepsNoValuesNamesNone: a function without the second database teaches everything else of a slice.
func TestWhoKeepsNoValuesNamesNone(t *testing.T) {
	b := newBench(t)
	b.Fleet.Secrets = nil
	w := b.Slice(cloudtputest.NodeConfig{Spot: true})
	b.Want([]any{w.Slices[0].Spec, w.Slices[0].Condition, w.Slices[0].Capacity}, []any{"", evidence.Ready, events.Spot})
	b.Fleet.Secrets = b.Secrets
	w = b.Look(zone, "llama")
	if _, err := b.Secrets.Of(t.Context(), w.Slices[0].Spec); err != nil {
		t.Errorf("once one that keeps them has looked: %v", err)
	}
	b.Fleet.Secrets = nil
	b.Want(b.Look(zone, "llama").Slices[0].Spec, w.Slices[0].Spec)
}

// TestValuesAreNotForgottenWhileTheyMayBeNeeded: they are kept from the last day on which a workload named them.
func TestValuesAreNotForgottenWhileTheyMayBeNeeded(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true})
	kept := func() time.Time { return b.Document(ledger.Values, w.Slices[0].Spec).Expires }
	b.Want(kept(), b.Clock.Now().Add(ledger.KeepValues))
	b.Must(b.API.Vanish(zone, "llama"))
	w = b.Look(zone, "llama")
	b.Want(w.Slices[0].Condition, evidence.Gone)
	for range 40 { // it waits
		b.Clock.Advance(24 * time.Hour)
		b.Must(b.Fleet.RenewValues(t.Context(), w))
	}
	last := b.Clock.Now().Add(ledger.KeepValues)
	b.Want(kept(), last)
	w = b.Give(w, evidence.Called{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: "llama", Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
	})
	b.Clock.Advance(24 * time.Hour)
	b.Must(b.Fleet.RenewValues(t.Context(), w))
	b.Want(kept(), last)
}

// ownerDeletes has the owner begin to delete a node.
func ownerDeletes(a *cloudtputest.API, zone, name string) error {
	return a.OwnerDelete(zone, name, "ann@example.com")
}

// TestTheNameOfAWorkloadIsFixedAtFirstSight introduces slices one after another; each row says whose they are.
func TestTheNameOfAWorkloadIsFixedAtFirstSight(t *testing.T) {
	labelled := map[string]string{events.LabelWorkload: "run"}
	type sight struct {
		node  cloudtputest.NodeConfig
		queue string
		// ends has the slice end in a way before the next one comes; unseen, nobody looks at it then.
		ends   func(a *cloudtputest.API, zone, name string) error
		unseen bool
		want   string
	}
	for name, sights := range map[string][]sight{
		"the label goes first":     {{node: cloudtputest.NodeConfig{Name: "a", Labels: labelled}, queue: "q", want: "demo/run"}},
		"then the queued resource": {{node: cloudtputest.NodeConfig{Name: "a"}, queue: "q", want: "demo/q"}},
		"then the node":            {{node: cloudtputest.NodeConfig{Name: "a"}, want: "demo/a"}},
		"slices of one label are one Multislice": {
			{node: cloudtputest.NodeConfig{Name: "a", Labels: labelled}, want: "demo/run"},
			{node: cloudtputest.NodeConfig{Name: "b", Labels: labelled, Zone: other}, want: "demo/run"},
		},
		"a namesake in another zone is another workload": {
			{node: cloudtputest.NodeConfig{Name: "a"}, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Zone: other}, want: "demo/a.us-west4-b"},
		},
		"a node named as the queued resource of another zone is another workload": {
			{node: cloudtputest.NodeConfig{Name: "a"}, queue: "q", want: "demo/q"},
			{node: cloudtputest.NodeConfig{Name: "q", Zone: other}, want: "demo/q.us-west4-b"},
		},
		"a namesake of one that is gone takes its place": {
			{node: cloudtputest.NodeConfig{Name: "a"}, ends: (*cloudtputest.API).Vanish, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Zone: other}, want: "demo/a"},
		},
		"and of one whose end nobody has read yet": {
			{node: cloudtputest.NodeConfig{Name: "a"}, ends: (*cloudtputest.API).Vanish, unseen: true, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Zone: other}, want: "demo/a"},
		},
		"and of one that is being deleted": {
			{node: cloudtputest.NodeConfig{Name: "a"}, ends: ownerDeletes, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Zone: other}, want: "demo/a"},
		},
		"and of one that nobody knows yet to be": {
			{node: cloudtputest.NodeConfig{Name: "a"}, ends: ownerDeletes, unseen: true, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Zone: other}, want: "demo/a"},
		},
		"an older namesake in another zone is another workload": {
			{node: cloudtputest.NodeConfig{Name: "a", Created: fleettest.Start.Add(-time.Hour)}, ends: (*cloudtputest.API).Vanish, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Zone: other, Created: fleettest.Start.Add(-2 * time.Hour)}, want: "demo/a.us-west4-b"},
		},
		"a slice created again instead of it keeps the name, whatever its label says": {
			{node: cloudtputest.NodeConfig{Name: "a"}, ends: (*cloudtputest.API).Vanish, want: "demo/a"},
			{node: cloudtputest.NodeConfig{Name: "a", Labels: labelled}, want: "demo/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for _, s := range sights {
				if s.node.Zone == "" {
					s.node.Zone = zone
				}
				if s.queue == "" {
					b.node(s.node)
				} else {
					b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: s.node.Zone, Name: s.queue, Nodes: []cloudtputest.NodeConfig{s.node}}))
				}
				b.Want(b.Look(s.node.Zone, s.node.Name).ID, s.want)
				b.Want(b.Look(s.node.Zone, s.node.Name).ID, s.want)
				if s.ends == nil {
					continue
				}
				b.Must(s.ends(b.API, s.node.Zone, s.node.Name))
				if !s.unseen {
					b.Look(s.node.Zone, s.node.Name)
				}
			}
		})
	}
}

func TestWhatAQueuedResourceHoldsIsReadTogetherAndGoesInOneIncident(t *testing.T) {
	b := newBench(t)
	var nodes []cloudtputest.NodeConfig
	for _, name := range []string{"a", "b"} {
		nodes = append(nodes, cloudtputest.NodeConfig{Name: name, Spot: true, Labels: fleettest.Label("spot"), Metadata: map[string]string{"startup-script": "x"}})
	}
	b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "q", Spot: true, Nodes: nodes}))
	b.Look(zone, "a")
	b.Look(zone, "b")
	b.Clock.Advance(time.Minute)
	b.Must(b.API.Preempt(zone, "a"))
	b.Must(b.API.Preempt(zone, "b"))
	w := b.Look(zone, "a")
	b.Want(b.Shown(w.ID).Incident.Phase, view.Looking)
	b.Want(w.Reads(b.Clock.Now()).Has(incident.ReadSlices, ""), true)
	for range 10 {
		var err error
		w, err = b.Fleet.Look(t.Context(), w)
		b.Must(err)
		b.Clock.Advance(time.Minute)
	}
	b.Want(w.Incident.ID, "q-20260301-1")
	b.Want(b.Shown(w.ID).Incident.Phase, view.PhaseDeleting)
	requests := b.Shown(w.ID).Requests
	b.Want(len(requests), 1)
	b.Want(requests[0].Slice, "a")
	b.Want(requests[0].With, []string{"b"})
}

func TestAQueuedResourceThatIsFirstSeenWithoutItsSliceIsIntroduced(t *testing.T) {
	b := newBench(t)
	for range 3 {
		w, err := b.Fleet.Observe(t.Context(), provider.Slice{
			Ref: provider.Ref{Project: project, Zone: zone, Name: "a", QueuedResource: "q"}, At: b.Clock.Now(), Condition: evidence.Lost,
			State: "SUSPENDED (queued resource)", Capacity: events.Spot, Labels: fleettest.Label("spot"), Spec: []byte("{}"), SpecHash: "h",
		})
		b.Must(err)
		b.Want(w.Label, "spot")
		b.Want(w.Incident, (*incident.Incident)(nil))
		b.Want(w.Closed, (*incident.Incident)(nil))
		b.Clock.Advance(time.Minute)
	}
}

func TestASliceThatIsFirstSeenLostIsDecidedOnByItsOwnPolicy(t *testing.T) {
	for policy, want := range map[string]view.Phase{"spot": view.PhaseDeleting, "watch": view.Watching, "": view.Watching} {
		b := newBench(t)
		b.node(cloudtputest.NodeConfig{Spot: true, Labels: fleettest.Label(policy), Metadata: map[string]string{"startup-script": "x"}})
		b.Must(b.API.Preempt(zone, "llama"))
		w := b.Look(zone, "llama")
		b.Want(w.Label, policy)
		b.Want(b.Shown(w.ID).Incident.Phase, want)
	}
}

func TestAQueuedResourceIsASubjectToo(t *testing.T) {
	b := newBench(t)
	b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "q", Nodes: []cloudtputest.NodeConfig{{Name: "a"}}}))
	w := b.Look(zone, "a")
	want := ledger.Subject{Workload: "demo/q", Slice: "a", Incarnation: w.Slices[0].Incarnation}
	b.Want(b.subject(ledger.QueuedResource, "q"), want)
	b.Want(b.subject(ledger.Node, "a"), want)
}

func TestALookReadsEverySliceWhereItHasToBe(t *testing.T) {
	b := newBench(t)
	labels := map[string]string{events.LabelWorkload: "run", events.LabelPolicy: "spot"}
	b.Slice(cloudtputest.NodeConfig{Name: "a", Labels: labels, Spot: true})
	w := b.Slice(cloudtputest.NodeConfig{Name: "b", Labels: labels, Spot: true})
	_, err := b.Fleet.Look(t.Context(), w)
	b.Must(err)
	b.Want(b.Calls(), []string{"GetNode us-west4-a/a", "GetNode us-west4-a/b"})

	// A slice that is being created elsewhere is looked for there.
	b.Must(b.API.Preempt(zone, "b"))
	b.Look(zone, "b")
	b.Must(b.API.Vanish(zone, "b"))
	w = b.Look(zone, "b")
	b.Want(b.Shown(w.ID).Incident.Phase, view.PhaseCreating)
	b.Change(w.ID, func(w *incident.Workload) { w.Effects[0].Zone = other })
	_, err = b.Fleet.Look(t.Context(), b.Workload(w.ID))
	b.Must(err)
	b.Want(b.Calls(), []string{"GetNode us-west4-a/a", "GetNode us-west4-b/b"})
}

func TestWhatCannotBeReadIsLeftForTheNextLook(t *testing.T) {
	b := newBench(t)
	labels := map[string]string{events.LabelWorkload: "run"}
	b.Slice(cloudtputest.NodeConfig{Name: "a", Labels: labels})
	w := b.Slice(cloudtputest.NodeConfig{Name: "b", Labels: labels})
	b.Must(b.API.HostError(zone, "a", time.Hour))
	b.Must(b.API.HostError(zone, "b", time.Hour))
	b.API.Inject(cloudtputest.Fault{Method: "GetNode", Name: "a", Code: 14})
	w, err := b.Fleet.Look(t.Context(), w)
	b.Must(err)
	b.Want(w.Slice("a").Condition, evidence.Ready)
	b.Want(w.Slice("b").Condition, evidence.Unhealthy)

	b.Break(ledger.Workloads)
	if _, err := b.Fleet.Look(t.Context(), w); err == nil {
		t.Error("a look whose readings cannot be stored returned no error")
	}
}

func TestAReadingIsAsOldAsItsCall(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{})
	slow := func(method string) time.Time {
		b.API.Inject(cloudtputest.Fault{Method: method, Before: func() { b.Clock.Advance(10 * time.Second) }})
		return b.Clock.Now()
	}
	asked := slow("GetNode")
	s, err := b.Fleet.Read(t.Context(), fleet.Ref(w, w.Slices[0]))
	b.Must(err)
	b.Want(s.At, asked)
	asked = slow("ListNodes")
	list, err := b.Fleet.List(t.Context(), project, zone)
	b.Must(err)
	b.Want(list.At, asked)
	b.Want(list.Slices[0].At, asked)
	b.Want(s.Evidence("").Time, s.At)
}

// TestAReadingThatIsOlderThanAnotherUndoesNothing has patrol come to a slice of its listing after somebody else has
// looked at it.
func TestAReadingThatIsOlderThanAnotherUndoesNothing(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"it was preempted": func(b *bench) { b.Must(b.API.Preempt(zone, "llama")) },
		"it vanished":      func(b *bench) { b.Must(b.API.Vanish(zone, "llama")) },
		"it lives again": func(b *bench) {
			b.Must(b.API.Vanish(zone, "llama"))
			b.node(cloudtputest.NodeConfig{Created: b.Clock.Now(), Spot: true, Labels: fleettest.Label("spot")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.Slice(cloudtputest.NodeConfig{Spot: true})
			b.Report(w, "llama", fleettest.Progress(1000))
			b.Clock.Advance(time.Minute)
			list, err := b.Fleet.List(t.Context(), project, zone)
			b.Must(err)
			b.Clock.Advance(5 * time.Second)
			change(b)
			want, subject := b.Look(zone, "llama"), b.subject(ledger.Node, "llama")
			b.Clock.Advance(5 * time.Second)
			got, err := b.Fleet.Observe(t.Context(), list.Slices[0])
			b.Must(err)
			b.Want(got, want)
			b.Want(b.subject(ledger.Node, "llama"), subject)
		})
	}
}

// TestAReadingOfAFormerLifeReleasesNothing: even where a clock behind ours has read it.
func TestAReadingOfAFormerLifeReleasesNothing(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true})
	former, err := b.Fleet.Read(t.Context(), fleet.Ref(w, w.Slices[0]))
	b.Must(err)
	b.Must(b.API.Vanish(zone, "llama"))
	b.Clock.Advance(time.Minute)
	want := b.Slice(cloudtputest.NodeConfig{Created: b.Clock.Now(), Spot: true})
	b.Clock.Advance(time.Minute)
	former.At = b.Clock.Now()
	got, err := b.Fleet.Observe(t.Context(), former)
	b.Must(err)
	b.Want(got, want)
	b.Want(b.subject(ledger.Node, "llama").Incarnation, want.Slices[0].Incarnation)
}

func TestALookIgnoresWhatIsAnotherWorkloads(t *testing.T) {
	b := newBench(t)
	b.Slice(cloudtputest.NodeConfig{Spot: true})
	theirs := b.Slice(cloudtputest.NodeConfig{Spot: true, Zone: other})
	b.Want(theirs.ID, "demo/llama."+other)
	b.Must(b.API.Preempt(zone, "llama"))
	b.Look(zone, "llama")
	b.Must(b.API.Vanish(zone, "llama"))
	w := b.Look(zone, "llama")
	b.Change(w.ID, func(w *incident.Workload) { w.Effects[0].Zone = other })
	b.Calls()
	w = b.Workload(w.ID)
	got, err := b.Fleet.Look(t.Context(), w)
	b.Must(err)
	b.Want(got, w)
	b.Want(b.Workload(theirs.ID), theirs)
	b.Want(b.Calls(), []string(nil))

	// It is read once the name is free.
	b.Must(b.API.Vanish(other, "llama"))
	b.Give(theirs, evidence.Called{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: "llama", Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
	})
	b.Look(other, "llama")
	_, err = b.Fleet.Look(t.Context(), w)
	b.Must(err)
	b.Want(b.Calls(), []string{"GetNode " + other + "/llama"})
}

func TestAReadingOfWhatIsGoneMapsNothing(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{})
	before := b.subject(ledger.Node, "llama")
	b.Must(b.API.Vanish(zone, "llama"))
	w, err := b.Fleet.LookAt(t.Context(), w, fleet.Ref(w, w.Slices[0]))
	b.Must(err)
	b.Want(w.Slices[0].Condition, evidence.Gone)
	b.Want(b.subject(ledger.Node, "llama"), before)
}

// TestASliceGoesHomeFromAnotherRegion as its owner ordered it, though its order names a network that exists only there.
func TestASliceGoesHomeFromAnotherRegion(t *testing.T) {
	const (
		away  = "us-central1-a"
		order = `{"node":{"acceleratorType":"v5litepod-16","cidrBlock":"10.0.0.0/29","labels":{"team":"a"},` +
			`"metadata":{"startup-script":"pitcrew run --scale-from=v5litepod-16 --global-batch=1024 --steps=100 -- t"},` +
			`"networkConfig":{"network":"tpus","subnetwork":"tpu-west"}}}`
	)
	b := newBench(t)
	p := policy.Policy{
		Zones: []string{other}, Subnetworks: map[string]string{"us-central1": "tpu-central"},
		Places: []policy.Alternative{{Accelerator: "v5litepod-8", Zones: []string{away}}},
	}
	b.Must(b.Ledger.SaveSpec(t.Context(), "own", []byte(order)))
	s := incident.Slot{Name: "llama", Life: incident.Life{Facts: evidence.Facts{Accelerator: "v5litepod-16", Spec: "own"}, Zone: zone}}
	w := incident.Workload{Slices: []incident.Slot{s}}
	small, unfit, err := fleet.Order(t.Context(), b.Ledger, w, s, view.Place{Zone: away, Accelerator: "v5litepod-8"}, p)
	b.Must(err)
	b.Must(unfit)
	if !strings.Contains(string(small), "tpu-central") || strings.Contains(string(small), "cidrBlock") {
		t.Fatalf("it is created as %s", small)
	}
	b.Must(b.Ledger.SaveSpec(t.Context(), "small", []byte(strings.Replace(string(small), `"team":"a"`, `"team":"b"`, 1))))
	s = incident.Slot{Name: "llama", Order: incident.Order{Accelerator: "v5litepod-16", Spec: "own"}, Life: incident.Life{
		Facts: evidence.Facts{Accelerator: "v5litepod-8", Spec: "small"},
		Zone:  away,
	}}
	for name, c := range map[string]struct {
		at       view.Place
		specZone string
		want     string
	}{
		"where it was ordered": {view.Place{Zone: zone}, zone, strings.Replace(order, `"team":"a"`, `"team":"b"`, 1)},
		"in that region":       {view.Place{Zone: other}, zone, strings.Replace(order, `"team":"a"`, `"team":"b"`, 1)},
		"where it is now":      {view.Place{Zone: away, Accelerator: "v5litepod-8"}, zone, strings.Replace(string(small), `"team":"a"`, `"team":"b"`, 1)},
		"where its order was not read": {
			view.Place{Zone: zone}, "us-east5-b", "cannot_move: create",
		},
	} {
		s.Order.SpecZone = c.specZone
		got, unfit, err := fleet.Order(t.Context(), b.Ledger, w, s, c.at, p)
		b.Must(err)
		if unfit != nil {
			got = []byte(string(provider.Failure(unfit).Class) + ": create")
		}
		if d := cmp.Diff(c.want, string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestATrainingWhoseStepsNobodyKnowsKeepsItsShape: with another batch it would not see as many examples.
func TestATrainingWhoseStepsNobodyKnowsKeepsItsShape(t *testing.T) {
	const order = `{"node":{"acceleratorType":"v5litepod-16","metadata":{"startup-script":"pitcrew run --scale-from=v5litepod-16 --global-batch=1024 --steps=100 -- t"}}}`
	p := policy.Policy{Places: []policy.Alternative{{Accelerator: "v5litepod-8"}}}
	s := incident.Slot{Name: "llama", Life: incident.Life{Facts: evidence.Facts{Accelerator: "v5litepod-16", Spec: "own"}, Zone: zone}}
	for uri, want := range map[string]string{"gs://b/run/40": "", "gs://b/run/ckpt-5": "may be a count of checkpoints"} {
		b := newBench(t)
		b.Must(b.Ledger.SaveSpec(t.Context(), "own", []byte(order)))
		w := b.Slice(cloudtputest.NodeConfig{Spot: true})
		b.Report(w, "llama", fleettest.Progress(1000))
		b.Verify(w.ID, "llama", uri, 1)
		w = b.Workload(w.ID)
		for at, want := range map[view.Place]string{{Zone: zone, Accelerator: "v5litepod-8"}: want, {Zone: other}: ""} {
			_, unfit, err := fleet.Order(t.Context(), b.Ledger, w, s, at, p)
			b.Must(err)
			f := provider.Failure(unfit)
			if (f == nil) != (want == "") || f != nil && (f.Reason() != reason.CodeOtherShape || !strings.Contains(f.Message, want)) {
				t.Errorf("%s from %s: %+v", at, uri, f)
			}
		}
	}
}

func TestANewLifeIsMappedAndTheWorkersOfTheFormerKeepTheirs(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Group: group})
	former := w.Slices[0].Incarnation
	w, err := b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
	b.Must(err)
	b.Want(w.Slices[0].Hosts, group)
	b.Must(b.API.Vanish(zone, "llama"))
	b.Clock.Advance(time.Minute)
	w = b.Slice(cloudtputest.NodeConfig{Created: b.Clock.Now(), Group: "t1v-n-ffffffff"})
	life := w.Slices[0].Incarnation
	b.Want(former.Same(life), false)
	b.Want(w.Slices[0].Hosts, "")
	b.Want(b.subject(ledger.Node, "llama").Incarnation, life)
	b.Want(b.subject(ledger.Worker, group).Incarnation, former)
}

func TestHostNamesThatAreNotToBeHadMapNothing(t *testing.T) {
	sick := func(b *bench) { b.Must(b.API.SetHealth(zone, "llama", "TIMEOUT")) }
	for name, c := range map[string]struct {
		fail func(b *bench)
		// asked is how often a life is asked in three looks, and warned how often a warning is logged.
		asked, warned int
		group         string
	}{
		"forbidden":                   {func(b *bench) { b.API.BlockGuestAttributes(true) }, 1, 1, ""},
		"forbidden, of a sick slice":  {func(b *bench) { sick(b); b.API.BlockGuestAttributes(true) }, 1, 1, ""},
		"unavailable for a moment":    {func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "GetGuestAttributes", Code: 14}) }, 2, 1, group},
		"unavailable":                 {func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "GetGuestAttributes", Code: 14, Times: -1}) }, 3, 3, ""},
		"not there yet":               {func(b *bench) { b.Must(b.API.SetState(zone, "llama", "STARTING")) }, 3, 0, ""},
		"to be had from a sick slice": {sick, 1, 0, group},
		"of another make": {func(b *bench) {
			for n := range 4 {
				b.Must(b.API.SetGuestAttribute(zone, "llama", n, "hostkeys", "hostname", "web-1"))
			}
		}, 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var log strings.Builder
			b.Fleet.Log = slog.New(slog.NewTextHandler(&log, nil))
			b.node(cloudtputest.NodeConfig{Group: group})
			c.fail(b)
			w := b.Look(zone, "llama")
			for range 3 {
				var err error
				w, err = b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
				b.Must(err)
			}
			b.Want(w.Slices[0].Hosts, c.group)
			b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), c.asked)
			b.Want(strings.Count(log.String(), "level=WARN"), c.warned)

			// Another life is another question.
			b.API.BlockGuestAttributes(false)
			b.Must(b.API.Vanish(zone, "llama"))
			b.Clock.Advance(time.Minute)
			w = b.Slice(cloudtputest.NodeConfig{Created: b.Clock.Now(), Group: "t1v-n-ffffffff"})
			w, err := b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
			b.Must(err)
			if c.warned < 3 { // else it is unavailable still
				b.Want(w.Slices[0].Hosts, "t1v-n-ffffffff")
			}
		})
	}
}

func TestAGroupIsMappedToOneLife(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{})
	s := w.Slices[0]
	w, err := b.Fleet.MapGroup(t.Context(), w, s, group)
	b.Must(err)
	b.Want(w.Slices[0].Hosts, group)
	b.Want(b.subject(ledger.Worker, group), ledger.Subject{Workload: w.ID, Slice: "llama", Incarnation: s.Incarnation})

	s.Incarnation.ID = "former"
	w, err = b.Fleet.MapGroup(t.Context(), w, s, "t1v-n-ffffffff")
	b.Must(err)
	b.Want(w.Slices[0].Hosts, group) // the group of a former life is not this one's

	b.Break(ledger.Subjects)
	if _, err := b.Fleet.MapGroup(t.Context(), w, s, group); err == nil {
		t.Error("a group that was not stored returned no error")
	}
}

func TestFind(t *testing.T) {
	nobody := events.Entry{Kind: events.KindCall, Subject: events.Subject{Project: project, Zone: zone, Node: "llama"}}
	look := []string{"ListQueuedResources " + zone, "ListNodes " + zone}
	for name, c := range map[string]struct {
		world func(b *bench)
		entry events.Entry
		found bool
		fails bool
		calls []string
		// parked is how many entries wait for somebody.
		parked int
	}{
		"a node that is known": {world: func(b *bench) { b.Slice(cloudtputest.NodeConfig{}) }, entry: nobody, found: true},
		"a worker that is known": {world: func(b *bench) {
			w := b.Slice(cloudtputest.NodeConfig{Group: group})
			_, err := b.Fleet.MapGroup(b.T.Context(), w, w.Slices[0], group)
			b.Must(err)
		}, entry: worker(3), found: true},
		"a node that is met":                        {world: func(b *bench) { b.node(cloudtputest.NodeConfig{}) }, entry: nobody, found: true, calls: []string{"GetNode us-west4-a/llama"}},
		"a node that went before its workload came": {world: half(ledger.Node, "llama"), entry: nobody, calls: []string{"GetNode us-west4-a/llama"}},
		"a node whose workload did not come": {
			world: func(b *bench) { half(ledger.Node, "llama")(b); b.node(cloudtputest.NodeConfig{}) }, entry: nobody, found: true, calls: []string{"GetNode us-west4-a/llama"},
		},
		"a worker whose workload did not come": {world: half(ledger.Worker, group), entry: worker(0), calls: look, parked: 1},
		"with workloads that are away":         {world: func(b *bench) { b.Slice(cloudtputest.NodeConfig{}); b.Break(ledger.Workloads) }, entry: nobody, fails: true},
		"a node that is gone":                  {entry: nobody, calls: []string{"GetNode us-west4-a/llama"}},
		"a node that cannot be read":           {world: func(b *bench) { b.API.Inject(cloudtputest.Fault{Code: 14}) }, entry: nobody, fails: true, calls: []string{"GetNode us-west4-a/llama"}},
		"a node without a zone":                {entry: events.Entry{Subject: events.Subject{Project: project, Node: "llama"}}},
		"a machine without a project":          {entry: events.Entry{Subject: events.Subject{Zone: zone, Worker: group + "-w-0"}}},
		"a machine of another make":            {entry: events.Entry{Subject: events.Subject{Project: project, Zone: zone, Worker: "web-1"}}},
		"a queued resource of which one slice did not come": {world: func(b *bench) {
			b.Slice(cloudtputest.NodeConfig{})
			b.Change("demo/llama", func(w *incident.Workload) { w.Slices[0].Group = "q" })
			b.Must(b.Ledger.Map(b.T.Context(), project, zone, ledger.QueuedResource, "q", ledger.Subject{Workload: "demo/llama", Slice: "another"}))
		}, entry: events.Entry{Subject: events.Subject{Project: project, Zone: zone, QueuedResource: "q"}}, found: true},
		"a node that its workload did not come to know": {world: func(b *bench) {
			b.Slice(cloudtputest.NodeConfig{})
			b.Must(b.Ledger.Map(b.T.Context(), project, zone, ledger.Node, "another", ledger.Subject{Workload: "demo/llama", Slice: "another"}))
		}, entry: events.Entry{Subject: events.Subject{Project: project, Zone: zone, Node: "another"}}, calls: []string{"GetNode us-west4-a/another"}},
		"a Job of nobody":              {entry: events.Entry{Subject: events.Subject{Project: project, Zone: "us-east5/research/train", Node: "llama"}}},
		"a JobSet of nobody":           {entry: events.Entry{Subject: events.Subject{Project: project, Zone: "us-east5/research/train", QueuedResource: "q"}}},
		"a queued resource of nobody":  {entry: events.Entry{Subject: events.Subject{Project: project, Zone: zone, QueuedResource: "q"}}},
		"a worker that is met":         {world: func(b *bench) { b.node(cloudtputest.NodeConfig{Group: group}) }, entry: worker(0), found: true, calls: append(look[:2:2], "GetGuestAttributes us-west4-a/llama"), parked: 1},
		"a worker of nobody":           {entry: worker(0), calls: look, parked: 1},
		"a worker of nobody, just now": {world: func(b *bench) { b.find(worker(1)) }, entry: worker(0), parked: 1},
		"a worker of nobody, again":    {world: func(b *bench) { b.find(worker(1)); b.Clock.Advance(ledger.LookEvery) }, entry: worker(0), calls: look, parked: 1},
		"a worker, and the zone fails": {world: func(b *bench) { b.API.Inject(cloudtputest.Fault{Code: 14}) }, entry: worker(0), fails: true, calls: look[:1], parked: 1},
		"a worker that is not parked":  {world: func(b *bench) { b.Break(ledger.Parked) }, entry: worker(0), fails: true},
		"with a ledger that is away":   {world: func(b *bench) { b.Break(ledger.Subjects) }, entry: worker(0), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if c.world != nil {
				c.world(b)
			}
			b.Calls()
			s, found, err := b.Fleet.Find(t.Context(), c.entry, []byte("raw"))
			if found != c.found || (err != nil) != c.fails {
				t.Errorf("found %t, %v; want %t, an error: %t", found, err, c.found, c.fails)
			}
			if found {
				b.Want(s, ledger.Subject{Workload: "demo/llama", Slice: "llama", Incarnation: b.API.Incarnation(zone, "llama")})
			}
			b.Want(b.Calls(), c.calls)
			parked := b.Parked(zone, b.Clock.Now())
			b.Want(len(parked), c.parked)
		})
	}
}

// half is a slice of which the subject was stored and the workload was not.
func half(kind ledger.SubjectKind, name string) func(b *bench) {
	return func(b *bench) {
		b.Must(b.Ledger.Map(b.T.Context(), project, zone, kind, name, ledger.Subject{Workload: "demo/llama", Slice: "llama"}))
	}
}

func (b *bench) find(e events.Entry) {
	_, _, err := b.Fleet.Find(b.T.Context(), e, []byte("raw"))
	b.Must(err)
}

func TestALookForTheSakeOfAnEntryReadsAtMostSixtyGuestAttributes(t *testing.T) {
	b := newBench(t)
	for i := range 70 {
		b.node(cloudtputest.NodeConfig{Name: fmt.Sprintf("n%02d", i)})
	}
	for _, want := range []int{60, 10, 0} {
		b.find(worker(0))
		b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), want)
		b.Clock.Advance(ledger.LookEvery)
	}
}

func TestEvidence(t *testing.T) {
	life := events.Incarnation{Zone: zone, ID: "1", Created: fleettest.Start}
	subject := ledger.Subject{Workload: "demo/llama", Slice: "llama", Incarnation: life}
	when := fleettest.Start.Add(time.Hour)
	origin := evidence.Origin{ID: "entry", Time: when, Rank: events.RankAudit}
	entry := func(e events.Entry) events.Entry {
		e.ID, e.Time, e.Rank = "entry", when, events.RankAudit
		e.Subject.Project, e.Subject.Zone = project, zone
		return e
	}
	aboutWorker, aboutNode := events.Subject{Worker: group + "-w-2"}, events.Subject{Node: "llama"}
	notice := events.Notice{Status: events.NoticeOngoing, WindowStart: when}
	report := &events.CrewReport{Report: events.ReportFinished, Attempt: 1, Step: 7}
	call := func(principal string, code int) events.Entry {
		return entry(events.Entry{Kind: events.KindCall, Subject: aboutNode, Call: events.Call{Method: "DeleteNode", Principal: principal, Code: code}})
	}
	for name, c := range map[string]struct {
		entry events.Entry
		want  evidence.Evidence
	}{
		"a loss of a worker is that of its life": {
			entry(events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption, Subject: aboutWorker}),
			evidence.Interrupted{Origin: origin, Slice: "llama", Incarnation: life, Cause: events.CausePreemption, Text: "worker 2 was preempted"},
		},
		"a loss of a node names no life": {
			entry(events.Entry{Kind: events.KindLoss, Cause: events.CauseTerminated, Subject: aboutNode}),
			evidence.Interrupted{Origin: origin, Slice: "llama", Cause: events.CauseTerminated, Text: "node llama was terminated"},
		},
		"a restart": {
			entry(events.Entry{Kind: events.KindBack, Subject: aboutWorker}),
			evidence.Back{Origin: origin, Slice: "llama", Incarnation: life, Text: "worker 2 was restarted by Google"},
		},
		"a line of the training": {
			entry(events.Entry{Kind: events.KindLine, Line: events.LineCaught, Subject: aboutNode}),
			evidence.Back{Origin: origin, Slice: "llama", Text: "node llama: the training caught a SIGTERM"},
		},
		"a notice": {
			entry(events.Entry{Kind: events.KindNotice, Notice: notice, Subject: aboutWorker}),
			evidence.Noticed{Origin: origin, Slice: "llama", Incarnation: life, Notice: notice, Text: "maintenance of worker 2 is under way"},
		},
		"a crew's line": {
			entry(events.Entry{Kind: events.KindCrew, Crew: report, Subject: aboutNode}),
			evidence.Reported{Origin: origin, Slice: "llama", Report: *report},
		},
		"an owner's call": {call(fleettest.Owner, 0), evidence.Called{
			Origin: origin, Slice: "llama", Zone: "us-west4-a", Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
		}},
		"an owner's call that failed": {call(fleettest.Owner, 7), nil},
		"a call of ours":              {call(fleettest.Us, 0), nil},
		"a call of Google":            {call("system@google.com", 0), nil},
		"a call of nobody who is named": {call("", 0), evidence.Called{
			Origin: origin, Slice: "llama", Zone: "us-west4-a", Act: events.ActDeleted, Method: "DeleteNode", Principal: "somebody whom the log does not name",
		}},
		"the end of an operation of nobody who is named": {
			entry(events.Entry{Kind: events.KindCall, Subject: aboutNode, Call: events.Call{Method: "DeleteNode", Last: true}}), nil,
		},
		"a call of a tool": {call("system:serviceaccount:argocd:argocd-application-controller", 0), evidence.Called{
			Origin: origin, Slice: "llama", Zone: "us-west4-a", Act: events.ActDeleted, Method: "DeleteNode",
			Principal: "system:serviceaccount:argocd:argocd-application-controller", Automatic: true,
		}},
		"a deletion of what lost its owner": {call("system:serviceaccount:kube-system:generic-garbage-collector", 0), evidence.Called{
			Origin: origin, Slice: "llama", Zone: "us-west4-a", Act: events.ActDeleted, Method: "DeleteNode",
			Principal: "system:serviceaccount:kube-system:generic-garbage-collector", Automatic: true, Orphaned: true,
		}},
		"a call of a controller":        {call("system:serviceaccount:kube-system:ttl-after-finished-controller", 0), nil},
		"a job of the training service": {entry(events.Entry{Kind: events.KindJob}), nil},
		"a word of GKE":                 {entry(events.Entry{Kind: events.KindCluster}), nil},
		"something else":                {entry(events.Entry{Kind: events.KindForeign}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := fleet.Evidence(c.entry, subject, events.Accounts{Ours: []string{"other@demo.iam.gserviceaccount.com", fleettest.Us}})
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestALabelHoldsTheNameOfAnyWorkload(t *testing.T) {
	for name, want := range map[string]string{
		"llama-8b_2":               "llama-8b_2",
		"llama.us-west4-b":         "llama-us-west4-b",
		"Llama":                    "llama",
		"größe":                    "gr--e",
		"":                         "",
		strings.Repeat("a", 63):    strings.Repeat("a", 63),
		strings.Repeat("a", 64):    strings.Repeat("a", 63),
		strings.Repeat("ä", 64):    strings.Repeat("-", 63),
		"../../etc/passwd; rm -rf": "------etc-passwd--rm--rf",
	} {
		if got := fleet.LabelValue(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
