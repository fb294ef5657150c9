package patrol_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

const (
	scope  = "us-east5/trainers/default"
	secret = "hunter2-hunter2"
	jobs   = "/apis/batch/v1/namespaces/default/jobs"
)

// clusterBench is a bench with a cluster that has two machines of four chips.
type clusterBench struct {
	*bench
	cluster *gketest.Server
	http    *http.Client
}

func newClusterBench(t *testing.T) *clusterBench {
	t.Helper()
	b := &clusterBench{bench: newBench(t)}
	b.cluster = gketest.New(gketest.Config{Clock: b.Clock, Seed: 1})
	b.http = &http.Client{Transport: b.cluster.Transport()}
	open := func(context.Context, gke.Cluster) (gke.Client, error) {
		return gke.Client{HTTP: b.http, URL: "http://cluster.invalid"}, nil
	}
	clusters := gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "trainers"}}, open, b.Clock.Now)
	providers := provider.Set{provider.CloudTPU: b.Cloud, provider.GKE: clusters}
	b.Fleet.Provider = providers
	b.handle = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: providers, Audit: b.AuditLog, Publisher: b.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: []string{fleettest.Us}}, Sleep: b.Sleep,
	})
	for _, name := range []string{"n1", "n2"} {
		b.call(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"cloud.google.com/gke-nodepool":"spot","cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4","cloud.google.com/gke-spot":"true"}},`+
			`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, name))
	}
	return b
}

func (b *clusterBench) call(method, path, body string) {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), method, "http://cluster.invalid"+path, strings.NewReader(body))
	b.Must(err)
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := b.http.Do(req)
	b.Must(err)
	b.Must(res.Body.Close())
	if res.StatusCode >= 300 {
		b.T.Fatalf("%s %s: answer %d", method, path, res.StatusCode)
	}
}

// TestWaitsThatCannotBeExplainedAreToldOnce, with the way out, and the Jobs are read all the same.
func TestWaitsThatCannotBeExplainedAreToldOnce(t *testing.T) {
	b := newClusterBench(t)
	var out bytes.Buffer
	b.Fleet.Log = slog.New(slog.NewTextHandler(&out, nil))
	b.job(`,"suspend":true`)
	b.cluster.Inject(gketest.Fault{Verb: "list", Resource: "workloads", Code: http.StatusForbidden, Message: "workloads is forbidden", Times: -1})
	b.Want(b.tick(), fleettest.Handled)
	b.minutes(20) // past a sweep
	if n := strings.Count(out.String(), "it cannot be read in what Jobs wait"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if !strings.Contains(out.String(), `way_out="apply again what pitstop gke rbac prints"`) || b.workload().Slices[0].Condition != evidence.Stopped {
		t.Errorf("%s\n%+v", out.String(), b.workload().Slices)
	}
}

// job makes a Job of two Pods, which fails with its first loss.
func (b *clusterBench) job(more string) {
	b.T.Helper()
	b.named("llama", more)
}

func (b *clusterBench) named(name, more string) {
	b.T.Helper()
	b.call(http.MethodPost, jobs, `{"metadata":{"name":"`+name+`","labels":{"pitstop-policy":"spot"},"annotations":{"pitstop-checkpoint-dir":"gs://ckpt/llama"}},`+
		`"spec":{"completionMode":"Indexed","parallelism":2,"completions":2,"backoffLimit":0`+more+`,"template":{"spec":{"restartPolicy":"Never","nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4"},`+
		`"containers":[{"name":"train","image":"train:1","env":[{"name":"TOKEN","value":"`+secret+`"}],"resources":{"limits":{"google.com/tpu":4},"requests":{"google.com/tpu":4}}}]}}}}`)
}

func (b *clusterBench) workload() incident.Workload {
	b.T.Helper()
	w, err := b.Fleet.Advancer.Workload(b.T.Context(), id)
	b.Must(err)
	return w
}

// TestAFailedJobIsToBeBroughtBack: it becomes a workload like a TPU VM, its loss opens an incident, and its policy lets it be replaced.
func TestAFailedJobIsToBeBroughtBack(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(2)
	w := b.workload()
	s := w.Slices[0]
	if w.Provider != "gke" || w.Label != "spot" || w.Directory != "gs://ckpt/llama" || w.Incident != nil || w.Closed != nil {
		t.Errorf("the workload: %+v", w)
	}
	if s.Name != slice || s.Zone != scope || s.Condition != evidence.Ready || s.Workers != 2 || s.Chips != 8 || !s.Reclaimable() || s.Healing != evidence.HealsNever || s.Spec == "" {
		t.Errorf("the slice: %+v", s)
	}
	spec, err := b.Ledger.Spec(t.Context(), s.Spec)
	b.Must(err)
	if !strings.Contains(string(spec), `"image":"train:1"`) || strings.Contains(string(spec), secret) {
		t.Errorf("the manifest: %s", spec)
	}
	b.call(http.MethodDelete, "/api/v1/nodes/n2", "")
	b.minutes(3)
	if w = b.workload(); w.Incident == nil || b.Shown(w.ID).Incident.Phase != view.PhaseDeleting || w.Slices[0].Condition != evidence.Lost {
		t.Fatalf("a Job without retries lost a machine: %+v", w)
	}
	if sent := b.sent(); !slices.Contains(sent, "pitstop.recreate.requested.v1") {
		t.Errorf("its deletion is not asked for: %q", sent)
	}
	b.Want(strings.Contains(b.Logged(), secret), false)
}

// TestAClusterThatIsNotReadLeavesItsJobsUnread: the clock says so to their workloads.
func TestAClusterThatIsNotReadLeavesItsJobsUnread(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(2)
	b.call(http.MethodDelete, "/api/v1/nodes/n2", "")
	b.minutes(3)
	var unread []bool
	b.Fleet.Advancer.Decide = func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		if tick, ok := e.(evidence.Ticked); ok {
			unread = append(unread, tick.Unread)
		}
		return incident.Advance(p, w, e, now)
	}
	b.minutes(1)
	heals := b.cluster.Inject(gketest.Fault{Verb: "list", Times: -1, Code: http.StatusServiceUnavailable})
	b.Clock.Advance(time.Minute)
	b.Want(b.tick(), fleettest.Rejected) // the fault is logged
	heals()
	set, ok := b.Fleet.Provider.(provider.Set)
	b.Want(ok, true)
	set[provider.GKE] = gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "trainers", Namespaces: []string{"teams"}}},
		func(context.Context, gke.Cluster) (gke.Client, error) {
			return gke.Client{HTTP: b.http, URL: "http://cluster.invalid"}, nil
		}, b.Clock.Now)
	b.minutes(1) // the configuration does not name its namespace any more
	b.Want(unread, []bool{false, true, true})
}

// spoilt is a cluster whose namespace eve has a JobSet that nobody can decode.
type spoilt struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s spoilt) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/jobsets") || r.URL.Query().Get("fieldSelector") == "metadata.namespace!=eve" {
		return s.RoundTripper.RoundTrip(r)
	}
	list := `{"kind":"JobSetList","items":[{"metadata":{"name":"none","namespace":"eve"},"spec":{"replicatedJobs":[{"replicas":1e30}]}}]}`
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(list)), Request: r}, nil
}

// TestANamespaceThatIsNotReadKeepsNobodyWaiting: its own Jobs are unread, and not gone, which is told; those of other namespaces go on as
// before.
func TestANamespaceThatIsNotReadKeepsNobodyWaiting(t *testing.T) {
	b := newClusterBench(t)
	b.call(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"eve"}}`)
	b.job(`,"suspend":true`)
	theirs := strings.Replace(jobs, "default", "eve", 1)
	b.call(http.MethodPost, theirs, `{"metadata":{"name":"bert"},"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"train","image":"train:1","resources":{"limits":{"google.com/tpu":4},"requests":{"google.com/tpu":4}}}]}}}}`)
	b.minutes(2)
	for _, path := range []string{jobs + "/llama", theirs + "/bert"} {
		b.call(http.MethodDelete, path, "")
	}
	b.http.Transport = spoilt{b.http.Transport}
	for range 2 {
		b.Clock.Advance(time.Minute)
		err := b.handle(t.Context(), fleettest.Message([]byte("{}"), b.Clock.Now()))
		if fleettest.Outcome(err) != fleettest.Rejected || !strings.Contains(err.Error(), `namespace eve: the object "none"`) { // it is logged
			t.Errorf("nobody is told: %v", err)
		}
	}
	bert := b.Workload(fleettest.Project + "/bert")
	if is, was := b.workload().Slices[0].Condition, bert.Slices[0].Condition; is != evidence.Gone || was != evidence.Stopped {
		t.Errorf("llama is %s, and bert, which nobody could read, %s", is, was)
	}
	b.http.Transport = b.http.Transport.(spoilt).RoundTripper //nolint:forcetypeassert // it was just set
	b.minutes(1)
	if is := b.Workload(fleettest.Project + "/bert").Slices[0].Condition; is != evidence.Gone {
		t.Errorf("once it can be read, bert is %s", is)
	}
}

// TestAClusterIsReadWithFourLists: however many Jobs it has and whatever they are in.
func TestAClusterIsReadWithFourLists(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(1)
	b.cluster.Calls()
	for _, change := range []func(){func() {}, func() { b.call(http.MethodDelete, "/api/v1/nodes/n2", "") }, func() {}, func() {}} {
		change()
		b.cluster.Calls()
		b.minutes(1)
		var lists []string
		for _, c := range b.cluster.Calls() {
			path, _, _ := strings.Cut(c.Path, "?")
			lists = append(lists, c.Method+" "+path)
		}
		b.Want(lists, []string{"GET /apis/batch/v1/jobs", "GET /apis/jobset.x-k8s.io/v1alpha2/jobsets", "GET /api/v1/pods", "GET /api/v1/nodes"})
	}
}

// TestAJobThatIsGone: a Failed Job that its time to live removed was lost; a complete one was not; and a list that failed proves nothing.
func TestAJobThatIsGone(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		b := newClusterBench(t)
		b.job(`,"ttlSecondsAfterFinished":300`)
		b.minutes(2)
		b.call(http.MethodDelete, "/api/v1/nodes/n2", "")
		b.minutes(10)
		w := b.workload()
		if w.Incident == nil || w.Slices[0].Condition != evidence.Gone || b.Shown(w.ID).Incident.Cause != events.CausePreemption {
			t.Errorf("%+v", w)
		}
	})
	t.Run("crashed", func(t *testing.T) {
		b := newClusterBench(t)
		b.job("")
		b.minutes(2)
		b.cluster.Exit("default", b.pods()[0], 1)
		b.minutes(2)
		if w := b.workload(); w.Incident == nil || b.Shown(w.ID).Incident.Cause != events.CauseCrash || !strings.Contains(w.Slices[0].State, "exit code 1") {
			t.Errorf("%+v", w)
		}
	})
	t.Run("complete", func(t *testing.T) {
		b := newClusterBench(t)
		b.job(`,"ttlSecondsAfterFinished":300`)
		b.minutes(2)
		for _, pod := range b.pods() {
			b.cluster.Exit("default", pod, 0)
		}
		b.minutes(60)
		if w := b.workload(); w.Incident != nil || w.Closed != nil || !b.Shown(w.ID).Training.Finished {
			t.Errorf("%+v", w)
		}
	})
	t.Run("not listed", func(t *testing.T) {
		b := newClusterBench(t)
		b.job("")
		b.minutes(2)
		b.cluster.Inject(gketest.Fault{Resource: "jobs", Code: http.StatusInternalServerError, Times: -1})
		for range 3 {
			b.Clock.Advance(time.Minute)
			b.tick()
		}
		if s := b.workload().Slices[0]; s.Condition != evidence.Ready {
			t.Errorf("%+v", s)
		}
	})
}

// TestAJobIsGoneOnceItsPodsHaveEnded: until then it is being deleted, and everything that is known of it stays known. A cluster that Pitstop
// sees for the first time then has no such workload.
func TestAJobIsGoneOnceItsPodsHaveEnded(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(2)
	before := b.workload()
	pods := b.pods()
	b.cluster.Silence("n1")
	b.cluster.Silence("n2")
	b.call(http.MethodDelete, "/apis/batch/v1/namespaces/default/jobs/llama", "")
	b.minutes(3)
	w := b.workload()
	s, was := w.Slices[0], before.Slices[0]
	if s.Condition != evidence.Deleting || !strings.Contains(s.State, "its Pod "+pods[0]+" of the former Job has not ended") || !s.Incarnation.Same(was.Incarnation) {
		t.Errorf("its Pods run on: %+v", s)
	}
	b.Want(s.Facts, was.Facts)
	b.Want(w.Label+" "+w.Directory, before.Label+" "+before.Directory)

	other := newClusterBench(t)
	other.job("")
	other.Clock.Advance(time.Minute)
	other.cluster.Silence("n1")
	other.cluster.Silence("n2")
	other.call(http.MethodDelete, "/apis/batch/v1/namespaces/default/jobs/llama", "")
	other.minutes(2)
	other.Want(other.Workloads(), []string(nil))

	for _, pod := range pods {
		b.call(http.MethodPatch, "/api/v1/namespaces/default/pods/"+pod+"/status", `{"status":{"phase":"Failed"}}`)
	}
	b.minutes(2)
	b.Want(b.workload().Slices[0].Condition, evidence.Gone)
}

// pods are the names of the Pods.
func (b *clusterBench) pods() (names []string) {
	b.T.Helper()
	o, err := gke.Client{HTTP: b.http, URL: "http://cluster.invalid"}.List(b.T.Context())
	b.Must(err)
	for _, p := range o.Pods {
		names = append(names, p.Name)
	}
	return names
}

// TestANoticeOfAMachineReachesTheFunctionMaintenance: as that of a TPU VM does.
func TestANoticeOfAMachineReachesTheFunctionMaintenance(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(2)
	b.sent()
	at := b.Clock.Now().Add(3 * time.Hour)
	b.call(http.MethodPatch, "/api/v1/nodes/n1", fmt.Sprintf(`{"metadata":{"labels":{"cloud.google.com/scheduled-maintenance-time":"%d"}}}`, at.Unix()))
	b.minutes(1)
	var notices []events.MaintenanceNotified
	for _, env := range b.Sender.Sent() {
		if env.Type == events.TypeMaintenanceNotified {
			n, err := events.DecodeMaintenanceNotified(env.Data)
			b.Must(err)
			notices = append(notices, n)
		}
	}
	if len(notices) != 1 || notices[0].Node != slice || notices[0].Incarnation.Zone != scope || !notices[0].Notice.WindowStart.Equal(at.Truncate(time.Second)) {
		t.Errorf("%+v", notices)
	}
}

// TestAJobNeverJoinsATPUVM: of the same name it gets another one, and the TPU VM keeps its workload.
func TestAJobNeverJoinsATPUVM(t *testing.T) {
	b := newClusterBench(t)
	b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group})
	b.job("")
	b.minutes(2)
	if w := b.workload(); w.Provider != provider.CloudTPU || len(w.Slices) != 1 || w.Slices[0].Zone != zone {
		t.Errorf("the TPU VM: %+v", w)
	}
	w, err := b.Fleet.Advancer.Workload(t.Context(), id+".us-east5.trainers.default")
	b.Must(err)
	if w.Provider != provider.GKE || len(w.Slices) != 1 || w.Slices[0].Zone != scope {
		t.Errorf("the Job: %+v", w)
	}
}

// TestMachinesOfAJobAreMapped: an entry of Compute Engine names a machine alone, so patrol keeps which Job is on it, and writes that once.
func TestMachinesOfAJobAreMapped(t *testing.T) {
	b := newClusterBench(t)
	machine := func(n int) string { return fmt.Sprintf("gke-trainers-tpu-2f41c6aa-%04d", n) }
	for _, name := range []string{"n1", "n2"} {
		b.call(http.MethodDelete, "/api/v1/nodes/"+name, "")
	}
	node := func(name string) {
		b.call(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"cloud.google.com/gke-nodepool":"spot","cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4"}},`+
			`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, name))
	}
	node(machine(1))
	node(machine(2))
	b.job("")
	b.minutes(2)
	on := func(name string) string {
		s, err := b.Ledger.Find(t.Context(), events.Subject{Project: fleettest.Project, Zone: "us-east5-a", Worker: name})
		if err != nil {
			return err.Error()
		}
		return s.Workload + " " + s.Slice + " " + s.Incarnation.ID
	}
	want := id + " " + slice + " " + b.workload().Slices[0].Incarnation.ID
	b.Want([]string{on(machine(1)), on(machine(2))}, []string{want, want})
	again := 0
	b.Tapped().Before = func(_ context.Context, c ledgertest.Call) error {
		if c.Collection == ledger.Subjects && strings.Contains(c.About, "gke-") {
			again++
		}
		return nil
	}
	b.minutes(2)
	b.Want(again, 0)
	if got := on(machine(3)); !strings.Contains(got, ledger.ErrNotFound.Error()) {
		t.Errorf("a machine that nobody trains on belongs to %s", got)
	}
}

// TestMachinesAreGivenBack: other Jobs use a machine after this one, and what happens to it then does not concern this one.
func TestMachinesAreGivenBack(t *testing.T) {
	machine := func(n int) string { return fmt.Sprintf("gke-trainers-tpu-2f41c6aa-%04d", n) }
	gone := func(b *clusterBench) { b.call(http.MethodDelete, jobs+"/llama", "") }
	for name, c := range map[string]struct {
		happens func(b *clusterBench)
		// now is whose the machines are at the end, by the name of a Job and whether that lived at the beginning.
		now   string
		first bool
	}{
		"nothing happens":            {func(*clusterBench) {}, "llama", true},
		"the Job is suspended":       {func(b *clusterBench) { b.call(http.MethodPatch, jobs+"/llama", `{"spec":{"suspend":true}}`) }, "", true},
		"the Job is deleted":         {gone, "", true},
		"a machine is lost":          {func(b *clusterBench) { b.call(http.MethodDelete, "/api/v1/nodes/"+machine(1), "") }, "", true},
		"the Job is made anew":       {func(b *clusterBench) { gone(b); b.job("") }, "llama", false},
		"another one takes them":     {func(b *clusterBench) { gone(b); b.named("gemma", "") }, "gemma", false},
		"the Job is made anew later": {func(b *clusterBench) { gone(b); b.minutes(3); b.job("") }, "llama", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newClusterBench(t)
			for i, name := range []string{"n1", "n2"} {
				b.call(http.MethodDelete, "/api/v1/nodes/"+name, "")
				b.call(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"cloud.google.com/gke-nodepool":"spot","cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4"}},`+
					`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, machine(i+1)))
			}
			b.job("")
			b.minutes(2)
			began, life := b.Clock.Now(), b.workload().Slices[0].Incarnation
			c.happens(b)
			b.minutes(20) // sweeps among them
			for n := range 2 {
				s, err := b.Ledger.Find(t.Context(), events.Subject{Project: fleettest.Project, Zone: "us-east5-a", Worker: machine(n + 1)})
				b.Must(err)
				now := ""
				if s.At(b.Clock.Now()) {
					now = s.Slice
				}
				b.Want(now, c.now)
				b.Want([]bool{s.Incarnation.Same(life), s.At(began)}, []bool{c.first, c.first})
			}
		})
	}
}

// TestClustersDoNotWaitForTheCloudTPUAPI: in a project without it, the clusters are listed all the same.
func TestClustersDoNotWaitForTheCloudTPUAPI(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	set, _ := b.Fleet.Provider.(provider.Set)
	set[provider.CloudTPU] = zoneless{b.Cloud}
	b.Clock.Advance(time.Minute)
	b.tick()
	if s := b.workload().Slices[0]; s.Zone != scope {
		t.Errorf("%+v", s)
	}
}

// zoneless names no zones.
type zoneless struct{ provider.Provider }

func (zoneless) Zones(context.Context, string) ([]string, error) {
	return nil, &provider.Error{Call: "list zones", Class: reason.Permission, Message: "the Cloud TPU API is not enabled"}
}

// TestTPUsAreListedBeforeClusters: a cluster that does not answer keeps none waiting, wherever it is.
func TestTPUsAreListedBeforeClusters(t *testing.T) {
	b := newClusterBench(t)
	set, _ := b.Fleet.Provider.(provider.Set)
	var listed []string
	for name, p := range set {
		set[name] = noting{p, &listed}
	}
	b.Slice(cloudtputest.NodeConfig{Zone: "us-west4-b"})
	b.Clock.Advance(time.Minute)
	b.tick()
	if last := len(listed) - 1; last < 1 || listed[last] != "us-east5/trainers" || slices.Index(listed, "us-east5/trainers") != last {
		t.Errorf("%q", listed)
	}
}

// noting notes what is listed.
type noting struct {
	provider.Provider
	listed *[]string
}

func (n noting) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	*n.listed = append(*n.listed, zone)
	return n.Provider.List(ctx, project, zone)
}

// TestAJobOfANamespaceThatIsNoLongerReadIsNotLost: the configuration named the whole cluster, and now names one namespace.
func TestAJobOfANamespaceThatIsNoLongerReadIsNotLost(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(2)
	set, _ := b.Fleet.Provider.(provider.Set)
	set[provider.GKE] = gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "trainers", Namespaces: []string{"teams"}}},
		func(context.Context, gke.Cluster) (gke.Client, error) {
			return gke.Client{HTTP: b.http, URL: "http://cluster.invalid"}, nil
		}, b.Clock.Now)
	b.minutes(3)
	if w := b.workload(); w.Incident != nil || w.Slices[0].Condition != evidence.Ready {
		t.Errorf("%+v", w)
	}
}

// TestAJobThatWaitsForLongIsTold: since when and why, by the cluster's own words. No call follows.
func TestAJobThatWaitsForLongIsTold(t *testing.T) {
	b := newClusterBench(t)
	for _, name := range []string{"n1", "n2"} {
		b.call(http.MethodDelete, "/api/v1/nodes/"+name, "")
	}
	b.job("")
	since := b.Clock.Now()
	var told []events.IncidentUpdated
	b.Fleet.Advancer.Saved = func(_ context.Context, s ledger.Step) {
		told = append(told, incident.Updates(s.Before, s.After, s.At)...)
	}
	b.minutes(50)
	if s := b.workload().Slices[0]; s.Condition != evidence.Creating || !s.WaitsSince.Equal(since.Truncate(time.Second)) || !strings.Contains(s.State, "Unschedulable: no node has what the Pod asks for") {
		t.Errorf("it is %+v, and waits since %v", s, since)
	}
	b.Want(len(told), 0)
	b.minutes(20)
	b.Want(len(told), 1)
	b.minutes(60)
	b.Want(len(told), 1)
	w := b.workload()
	if u, waits := w.Shown(time.Time{}).WaitUpdate(told[0].Incident); !waits || !u.Waiting.Equal(w.Slices[0].WaitsSince) || w.Incident != nil || w.Closed != nil || len(b.sent()) > 0 {
		t.Errorf("told is %+v of %+v", u, w)
	}
}
