package cloudtpu_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest"
	"pitstop.internal/shared/reason"
)

// legacyOrder is what the legacy nodes of these tests are made of.
func legacyOrder(name string) cloudtputest.NodeConfig {
	return cloudtputest.NodeConfig{
		Zone: home, Name: name, Accelerator: "v3-32", Spot: true,
		Labels: map[string]string{events.LabelPolicy: "spot", events.LabelIncident: "i-1"},
		Legacy: &tpupb.Node{TensorflowVersion: "2.12.0", Network: "tpus", CidrBlock: "10.240.1.0/29", Description: "trains"},
	}
}

// TestLegacyNodes checks the promises about legacy nodes: those about any slice, and their own.
func TestLegacyNodes(t *testing.T) {
	for _, way := range []way{{name: "apart", both: true}, {name: "shown by both versions", both: true, mingled: true}, {name: "over sockets", socket: true, both: true}, {name: "without a wire", direct: true, both: true}} {
		t.Run(way.name, func(t *testing.T) {
			legacy := func(t *testing.T) world {
				w := newWorld(t, way)
				w.legacy = true
				return w
			}
			providertest.Run(t, func(t *testing.T) providertest.World { return legacy(t).every() })
			for _, c := range []promise{
				{"classifies failures", testFailures},
				{"reads a legacy node", testReadLegacy},
				{"lists both sorts", testListBoth},
				{"says when a listing has no legacy nodes", testListingWithoutLegacy},
				{"tells the operations that it could read", testOperationsOfOneVersion},
				{"creates from its own reading", testCreateLegacy},
				{"a block that the API chose is not asked for", testServiceNetworking},
				{"a name may come back as the other sort", testOtherSort},
				{"refuses what the version does not offer", testNotOffered},
			} {
				t.Run(c.name, func(t *testing.T) { c.run(legacy(t)) })
			}
		})
	}
}

func testReadLegacy(w world) {
	t := w.t
	life, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	// By an entry of the log nobody knows of what sort a node is.
	for _, r := range []provider.Ref{w.ref("n"), ref("n")} {
		got := read(t, w, r)
		want := provider.Slice{
			Ref: w.ref("n"), Condition: evidence.Ready, State: "READY", Incarnation: life, Labels: legacyOrder("n").Labels,
			Accelerator: "v3-32", Workers: 4, Chips: 16, Capacity: events.Spot,
			Spec: []byte(`{"legacy_node":{"acceleratorType":"v3-32","cidrBlock":"10.240.1.0/29","description":"trains",` +
				`"labels":{"pitstop-policy":"spot"},"network":"tpus","schedulingConfig":{"preemptible":true},"tensorflowVersion":"2.12.0"}}`),
		}
		want.SpecHash = events.ID("spec", string(want.Spec))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("slice (-want +got):\n%s", diff)
		}
	}
	must(t, w.api.BeginMaintenance(home, "n", time.Hour))
	if s := condition(t, w, w.ref("n"), evidence.Unhealthy); s.State != "READY, UNHEALTHY_MAINTENANCE" || s.Notice != nil {
		t.Errorf("%s, %+v", s.State, s.Notice)
	}
	w.clock.Advance(time.Hour)
	if s := condition(t, w, w.ref("n"), evidence.Ready); !s.Maintained.Equal(start) || s.Autocheckpoint {
		t.Errorf("after maintenance it is %+v", s)
	}
	must(t, w.api.AddSymptom(home, "n", "OUT_OF_MEMORY", 1))
	must(t, w.api.AddSymptom(home, "n", "PROJECT_ABUSE", 1))
	if s := read(t, w, w.ref("n")); !s.Abuse || s.State != "READY, OUT_OF_MEMORY, PROJECT_ABUSE" {
		t.Errorf("%s, abuse %v", s.State, s.Abuse)
	}
	must(t, w.api.SetHealth(home, "n", "DEPRECATED_UNHEALTHY"))
	condition(t, w, w.ref("n"), evidence.Unhealthy)
	must(t, w.api.Preempt(home, "n"))
	if s := condition(t, w, w.ref("n"), evidence.Lost); !s.Incarnation.Same(life) || len(s.Spec) == 0 {
		t.Errorf("after its loss it is %+v", s)
	}
	// Another life is another one, though v1 has no identifier for either.
	_, err = w.Delete(t.Context(), w.ref("n"), requestID(1))
	must(t, err)
	w.clock.Advance(time.Hour)
	condition(t, w, w.ref("n"), evidence.Gone)
	again, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	if s := condition(t, w, w.ref("n"), evidence.Ready); !s.Incarnation.Same(again) || s.Incarnation.ID == life.ID || s.Incarnation.ID == "" {
		t.Errorf("%v after %v", s.Incarnation, life)
	}
}

func testListBoth(w world) {
	t := w.t
	want := map[string]bool{}
	for _, name := range []string{"a", "c", "e"} {
		_, err := w.api.AddNode(legacyOrder(name))
		must(t, err)
		_, err = w.api.AddNode(order(name + "-vm"))
		must(t, err)
		want[name], want[name+"-vm"] = true, false
	}
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", State: "SUSPENDED", Nodes: []cloudtputest.NodeConfig{order("waits")}}))
	want["waits"] = false
	l := list(t, w)
	got := map[string]bool{}
	for _, s := range l.Slices {
		got[s.Name] = s.Legacy
		if diff := cmp.Diff(read(t, w, s.Ref), s); diff != "" {
			t.Errorf("%s read and listed (-read +listed):\n%s", s.Name, diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(l.Slices) != len(want) || l.Partial || !l.Legacy || l.Unread != nil {
		t.Errorf("listing %+v, which are legacy (-want +got):\n%s", l, diff)
	}
}

// testListingWithoutLegacy: v1 that cannot be read says nothing of legacy nodes, and keeps nothing of the others back.
func testListingWithoutLegacy(w world) {
	t := w.t
	_, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	_, err = w.api.AddNode(order("vm"))
	must(t, err)
	for _, c := range []struct {
		fault  cloudtputest.Fault
		unread bool
	}{
		{cloudtputest.Fault{Method: "ListNodes", Legacy: true, Code: 7, Message: "no"}, true},
		{cloudtputest.Fault{Method: "ListNodes", Legacy: true, Unreachable: true}, false},
	} {
		w.api.Inject(c.fault)
		l := list(t, w)
		if len(l.Slices) != 1 || l.Slices[0].Legacy || l.Legacy || l.Partial || (l.Unread != nil) != c.unread {
			t.Errorf("%+v", l)
		}
		if c.unread {
			class(t, l.Unread, reason.Permission)
		}
	}
	if l := list(t, w); len(l.Slices) != 2 || !l.Legacy {
		t.Errorf("%+v", l)
	}
	w.api.Inject(cloudtputest.Fault{Method: "GetNode", Legacy: true, Code: 14, Message: "later"})
	_, err = w.Read(t.Context(), w.ref("n"))
	class(t, err, reason.Transient)
}

func testOperationsOfOneVersion(w world) {
	t := w.t
	_, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	_, err = w.api.AddNode(order("vm"))
	must(t, err)
	former, err := w.Delete(t.Context(), w.ref("n"), requestID(1))
	must(t, err)
	present, err := w.Delete(t.Context(), ref("vm"), requestID(2))
	must(t, err)
	for _, c := range []struct {
		fault cloudtputest.Fault
		shows string
	}{
		{cloudtputest.Fault{Method: "ListOperations", Legacy: true, Code: 7, Message: "no"}, present},
		{cloudtputest.Fault{Method: "ListOperations", Code: 7, Message: "no"}, former}, // the present version is asked first
	} {
		w.api.Inject(c.fault)
		ops, err := w.Operations(t.Context(), project, home)
		class(t, err, reason.Permission)
		if !slices.ContainsFunc(ops, func(o provider.Operation) bool { return o.Name == c.shows }) {
			t.Errorf("%s is not among %+v", c.shows, ops)
		}
	}
	ops, err := w.Operations(t.Context(), project, home)
	must(t, err)
	if len(ops) != 2 {
		t.Errorf("%+v", ops)
	}
}

func testCreateLegacy(w world) {
	t := w.t
	_, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	old := read(t, w, w.ref("n"))
	r := w.at(away, "n")
	op, err := w.Create(t.Context(), r, old.Spec, map[string]string{events.LabelIncident: "i-2"}, requestID(1))
	must(t, err)
	if s := condition(t, w, r, evidence.Creating); !s.Incarnation.Known() || s.Incarnation.Same(old.Incarnation) || !s.Legacy {
		t.Errorf("%+v", s)
	}
	w.clock.Advance(5 * time.Minute)
	if f := ended(t, w, away, op); f != nil {
		t.Errorf("the operation failed: %+v", f)
	}
	s := condition(t, w, r, evidence.Ready)
	if string(s.Spec) != string(old.Spec) || s.Labels[events.LabelIncident] != "i-2" || s.Capacity != events.Spot {
		t.Errorf("%+v, specification %s", s, s.Spec)
	}
	_, err = w.Create(t.Context(), r, old.Spec, nil, requestID(1))
	class(t, err, reason.Exists)

	// In another region its block of addresses is for the API to choose.
	spec, err := cloudtpu.Fit(old.Spec, cloudtpu.Move{From: home, To: barren})
	must(t, err)
	if strings.Contains(string(spec), "cidrBlock") || !strings.Contains(string(spec), `"network":"tpus"`) {
		t.Errorf("specification %s", spec)
	}
	for _, c := range []struct {
		spec string
		r    provider.Ref
	}{
		{`{}`, w.ref("x")},
		{`{"node":{"acceleratorType":"v6e-8","runtimeVersion":"r"}}`, w.ref("x")},
		{`{"legacy_node":{"acceleratorType":"v3-8"}}`, w.ref("x")},
		{string(old.Spec), ref("x")},
	} {
		_, err = w.Create(t.Context(), c.r, []byte(c.spec), nil, requestID(2))
		class(t, err, reason.Invalid)
	}
}

func testServiceNetworking(w world) {
	t := w.t
	c := legacyOrder("n")
	c.Spot, c.Legacy.CidrBlock, c.Legacy.UseServiceNetworking = false, "", true
	_, err := w.api.AddNode(c)
	must(t, err)
	s := read(t, w, w.ref("n"))
	if strings.Contains(string(s.Spec), "cidrBlock") || !strings.Contains(string(s.Spec), `"useServiceNetworking":true`) || s.Capacity == events.Spot {
		t.Errorf("%+v, specification %s", s, s.Spec)
	}
	_, err = w.Create(t.Context(), w.ref("m"), s.Spec, nil, requestID(1))
	must(t, err)
}

func testOtherSort(w world) {
	t := w.t
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	if s := condition(t, w, w.ref("n"), evidence.Ready); s.Legacy {
		t.Errorf("%+v", s)
	}
	must(t, w.api.Vanish(home, "n"))
	for _, r := range []provider.Ref{w.ref("n"), ref("n")} {
		if s := condition(t, w, r, evidence.Gone); s.Ref != r {
			t.Errorf("%+v, asked as %+v", s, r)
		}
	}
	_, err = w.api.AddNode(legacyOrder("n"))
	must(t, err)
	if s := condition(t, w, ref("n"), evidence.Ready); !s.Legacy {
		t.Errorf("%+v", s)
	}
}

func testNotOffered(w world) {
	t := w.t
	_, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	_, err = w.Maintain(t.Context(), []provider.Ref{w.ref("n")})
	class(t, err, reason.Invalid)
	class(t, w.SetMetadata(t.Context(), w.ref("n"), "k", "v"), reason.Invalid)
	if hosts, err := w.Hosts(t.Context(), w.ref("n")); err != nil || hosts != nil {
		t.Errorf("hosts %v, %v", hosts, err)
	}
	if crews, err := w.Crews(t.Context(), w.ref("n")); err != nil || crews != nil {
		t.Errorf("crews %v, %v", crews, err)
	}
}

// TestALegacyNodeIsNotTouchedWhereNobodyAsksForThem: without v1 only its existence is known, and a listing without it proves
// nothing.
func TestALegacyNodeIsNotTouchedWhereNobodyAsksForThem(t *testing.T) {
	w := newWorld(t, way{mingled: true})
	w.legacy = true
	life, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	_, err = w.Read(t.Context(), w.ref("n"))
	class(t, err, reason.Invalid)
	for _, s := range append(list(t, w).Slices, read(t, w, ref("n"))) {
		if !s.Legacy || s.Spec != nil || s.SpecHash != "" || !s.Incarnation.Same(life) {
			t.Errorf("%+v", s)
		}
	}
	if l := list(t, w); l.Legacy {
		t.Errorf("%+v", l)
	}
	_, err = w.Delete(t.Context(), w.ref("n"), requestID(1))
	class(t, err, reason.Invalid)
	_, err = w.Create(t.Context(), w.ref("m"), []byte(`{"legacy_node":{}}`), nil, requestID(1))
	class(t, err, reason.Invalid)
	_, err = w.Start(t.Context(), w.ref("n"))
	class(t, err, reason.Invalid)
	if hosts, err := w.Hosts(t.Context(), w.ref("n")); err != nil || hosts != nil {
		t.Errorf("hosts %v, %v", hosts, err)
	}
}

// TestTheFormerVersionRepeatsNoSecretOfATPUVM: its listing may hold the operations of TPU VMs too, and the present version's listing,
// which comes first, may fail.
func TestTheFormerVersionRepeatsNoSecretOfATPUVM(t *testing.T) {
	const secret = "ghp_m4rk3r"
	w := newWorld(t, way{both: true, mingled: true})
	c := order("vm")
	c.Metadata = map[string]string{"startup-script": "export TOKEN=" + secret}
	_, err := w.api.AddNode(c)
	must(t, err)
	read(t, w, ref("vm"))
	w.api.Inject(cloudtputest.Fault{Method: "DeleteNode", LateCode: 13, LateMessage: "cannot stop a node with export TOKEN=" + secret})
	_, err = w.Delete(t.Context(), ref("vm"), requestID(1))
	must(t, err)
	w.clock.Advance(time.Hour)
	for _, presentFails := range []bool{false, true} {
		if presentFails {
			w.api.Inject(cloudtputest.Fault{Method: "ListOperations", Code: 7, Message: "no"})
		}
		ops, err := w.Operations(t.Context(), project, home)
		if (err != nil) != presentFails || len(ops) != 1 || ops[0].Failure == nil {
			t.Fatalf("%+v, %v", ops, err)
		}
		if f := ops[0].Failure.Message; strings.Contains(f, secret) || !strings.Contains(f, "cannot stop a node") {
			t.Errorf("the present version fails: %v; the operation failed with %q", presentFails, f)
		}
	}
}

// TestALegacyNodeIsNotMissingThatOneVersionShows: the two listings differ, and only the next one shows the truth.
func TestALegacyNodeIsNotMissingThatOneVersionShows(t *testing.T) {
	w := newWorld(t, way{both: true, mingled: true})
	_, err := w.api.AddNode(legacyOrder("n"))
	must(t, err)
	w.api.Inject(cloudtputest.Fault{Method: "ListNodes", Legacy: true, Before: func() { must(t, w.api.Vanish(home, "n")) }})
	if l := list(t, w); len(l.Slices) != 0 || l.Legacy || l.Partial || l.Unread != nil {
		t.Errorf("%+v", l)
	}
	if l := list(t, w); len(l.Slices) != 0 || !l.Legacy {
		t.Errorf("%+v", l)
	}
}

// TestNoLegacyNodeIsCreatedWhereNobodyLooksForIt: a node created there would never be seen again.
func TestNoLegacyNodeIsCreatedWhereNobodyLooksForIt(t *testing.T) {
	a := cloudtputest.New(cloudtputest.Config{Project: project, Zones: map[string]int{home: 2, away: 2}})
	p, err := cloudtpu.Config{LegacyZones: []string{home}}.OpenWith(t.Context(), clients(t, a, a.Transport()))
	must(t, err)
	_, err = a.AddNode(legacyOrder("n"))
	must(t, err)
	s, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: home, Name: "n"})
	must(t, err)
	_, err = p.Create(t.Context(), provider.Ref{Project: project, Zone: away, Name: "n", Legacy: true}, s.Spec, nil, requestID(1))
	class(t, err, reason.WrongZone)
	l, err := p.List(t.Context(), project, away)
	if err != nil || l.Legacy {
		t.Errorf("%+v, %v", l, err)
	}
	zones, err := cloudtpu.Config{LegacyZones: []string{home, foreign}}.OpenWith(t.Context(), clients(t, a, a.Transport()))
	must(t, err)
	if got, err := zones.Zones(t.Context(), project); err != nil || !slices.Contains(got, foreign) {
		t.Errorf("a zone that is named is not looked at: %v, %v", got, err)
	}
}

func TestConfigRefusesWhatIsNoZone(t *testing.T) {
	if err := (cloudtpu.Config{LegacyZones: []string{"us-central1-a"}}).Validate(); err != nil {
		t.Error(err)
	}
	err := cloudtpu.Config{LegacyZones: []string{"", "a/b"}}.Validate()
	if err == nil || strings.Count(err.Error(), "LEGACY_NODE_ZONES") != 2 {
		t.Errorf("error %v", err)
	}
}
