package gke_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/reason"
)

const project = "demo"

// clusters is a provider of the cluster alone.
func (c *cluster) clusters(namespaces ...string) (p *gke.Clusters, opened *int) {
	opened = new(int)
	return gke.New([]gke.Cluster{{Project: project, Location: "us-east5", Name: "research", Namespaces: namespaces}}, func(context.Context, gke.Cluster) (gke.Client, error) {
		*opened++
		return c.Client, nil
	}, c.clock.Now), opened
}

func TestAClusterProvidesItsSlices(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	c.do(http.MethodPost, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", `{"metadata":{"name":"big","labels":{"pitstop-workload":"pretrain"}},"spec":{"replicatedJobs":[{"name":"s","replicas":2,"template":{"spec":`+
		`{"completionMode":"Indexed","parallelism":1,"completions":1,"backoffLimit":0,"template":{"spec":{"restartPolicy":"Never","nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},`+
		`"containers":[{"name":"training","env":[{"name":"A","value":"b"}],"resources":{"limits":{"google.com/tpu":4}}}]}}}}}]}}`)
	p, _ := c.clusters()
	zones, err := p.Zones(t.Context(), project)
	if err != nil || !slices.Equal(zones, []string{"us-east5/research"}) {
		t.Fatalf("%q, %v", zones, err)
	}
	l, err := p.List(t.Context(), project, zones[0])
	if err != nil || l.Partial || len(l.Slices) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	s := l.Slices[0]
	want := provider.Ref{Project: project, Zone: "us-east5/research/default", Name: "big-s-0", QueuedResource: "big", Life: s.Life}
	if s.Life == "" || s.Life == s.Incarnation.ID || s.Ref != want || !slices.Equal(s.With, []string{"big-s-1"}) || s.Labels["pitstop-workload"] != "pretrain" || s.Ordered.IsZero() || s.SpecHash == "" || s.SpecHash != l.Slices[1].SpecHash || len(s.Values) != 1 {
		t.Errorf("%+v", s)
	}
	if one, err := p.Read(t.Context(), s.Ref); err != nil || cmp.Diff(s, one) != "" {
		t.Errorf("read alone it differs: %v\n%s", err, cmp.Diff(s, one))
	}
	want.Name = "other"
	if none, err := p.Read(t.Context(), want); err != nil || none.Condition != evidence.Gone {
		t.Errorf("%+v, %v", none, err)
	}
}

// TestAClusterOfNamespaces: each is read by itself, and one that may not be read is missing and not empty.
func TestAClusterOfNamespaces(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"teams"}}`)
	c.node("a")
	c.node("b")
	c.job("llama", "")
	c.clock.Advance(time.Minute)
	p, opened := c.clusters("default", "teams")
	c.Calls()
	if l, err := p.List(t.Context(), project, "us-east5/research"); err != nil || l.Partial || len(l.Slices) != 1 || len(c.Calls()) != 7 {
		t.Errorf("%+v, %v", l, err)
	}
	c.Inject(gketest.Fault{Verb: "list", Resource: "pods", Code: http.StatusForbidden, Message: "pods is forbidden in teams"})
	if l, err := p.List(t.Context(), project, "us-east5/research"); err != nil || l.Unread == nil || !strings.Contains(l.Unread.Error(), "forbidden") || l.Misses("us-east5/research/default") || !l.Misses("us-east5/research/teams") {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := p.List(t.Context(), project, "us-east5/research"); err != nil || *opened != 2 {
		t.Errorf("after a failed call it was opened %d times, %v", *opened, err)
	}
}

// TestTheSlicesOfATPU7xAreRead: in a fifth list, only where there is TPU7x. A cluster that has no Slices, or shows none, is read all the same.
func TestTheSlicesOfATPU7xAreRead(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	c.job("llama", "")
	c.do(http.MethodPost, "/apis/accelerator.gke.io/v1beta1/slices", `{"metadata":{"name":"cube","annotations":{"slice.accelerator.gke.io/owner-workload-namespace":"default",`+
		`"slice.accelerator.gke.io/owner-workload-name":"llama"}},"spec":{"type":"tpu7x","topology":"2x2x2","partitionIds":["a"]}}`)
	c.do(http.MethodPatch, "/apis/accelerator.gke.io/v1beta1/slices/cube/status", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"FAILED"}]}}`)
	c.clock.Advance(time.Minute)
	for _, namespaces := range [][]string{nil, {"default"}} {
		p, opened := c.clusters(namespaces...)
		read := func(state string, calls int) {
			t.Helper()
			c.Calls()
			l, err := p.List(t.Context(), project, "us-east5/research")
			if err != nil || l.Partial || len(l.Slices) != 1 || l.Slices[0].State != state || len(c.Calls()) != calls || *opened != 1 {
				t.Errorf("namespaces %q: %+v, %v, opened %d times; want %q in %d calls", namespaces, l, err, *opened, state, calls)
			}
		}
		read(string(gke.Ready), 4)
		c.do(http.MethodPost, "/api/v1/nodes", `{"metadata":{"name":"ironwood","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu7x"}}}`)
		read(string(gke.Unhealthy)+": its Slice cube is FAILED", 5)
		for _, code := range []int{http.StatusNotFound, http.StatusForbidden} {
			c.Inject(gketest.Fault{Verb: "list", Resource: "slices", Code: code})
			read(string(gke.Ready), 5)
		}
		c.Inject(gketest.Fault{Verb: "list", Resource: "slices", Code: http.StatusServiceUnavailable})
		if l, err := p.List(t.Context(), project, "us-east5/research"); err == nil || !strings.Contains(err.Error(), "list /apis/accelerator.gke.io/v1beta1/slices") {
			t.Errorf("%+v, %v", l, err)
		}
		c.do(http.MethodDelete, "/api/v1/nodes/ironwood", "")
	}
	c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"gemma"},"spec":`+strings.Replace(jobSpec(""), "tpu-v6e-slice", "tpu7x", 1)+`}`)
	if o, err := c.List(t.Context()); err != nil || len(o.Slices) != 1 {
		t.Errorf("no machine, and a Job that asks for one: %d Slices, %v", len(o.Slices), err)
	}
}

// hangs is a server of which one API never answers.
type hangs struct {
	http.RoundTripper

	api string
}

func (h hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, h.api) {
		<-r.Context().Done()
	}
	if err := r.Context().Err(); err != nil { // as http.Transport does
		return nil, err
	}
	return h.RoundTripper.RoundTrip(r)
}

// TestWhatOnlyExplainsStopsNothing: the slices and their machines are read though Kueue, whose objects a webhook converts, never answers.
func TestWhatOnlyExplainsStopsNothing(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"default", "other"}} {
		c := newCluster(t)
		c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
		c.node("a")
		c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"waits"},"spec":`+jobSpec(`,"suspend":true`)+`}`)
		c.do(http.MethodPost, "/apis/batch/v1/namespaces/other/jobs", `{"metadata":{"name":"trains"},"spec":`+jobSpec("")+`}`)
		c.HTTP = &http.Client{Transport: hangs{c.HTTP.Transport, "/apis/kueue.x-k8s.io/"}}
		c.Client.HTTP = c.HTTP
		p, _ := c.clusters(namespaces...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		l, err := p.List(ctx, project, "us-east5/research")
		cancel()
		if err != nil || l.Unread != nil || len(l.Slices) != 2 {
			t.Fatalf("namespaces %q: %d slices, %v, %v", namespaces, len(l.Slices), l.Unread, err)
		}
		if no := l.Unexplained; no == nil || !strings.Contains(no.Error(), "workloads") {
			t.Errorf("namespaces %q: nobody hears that it could not be read: %v", namespaces, no)
		}
	}
}

// TestInWhatAJobWaits is read where one waits, and only there: by the newest version that the cluster has. Where it cannot be read, the
// listing is whole without it.
func TestInWhatAJobWaits(t *testing.T) {
	const (
		suspended = "it is suspended, and a label names the queue night"
		kueue     = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
	)
	for _, namespaces := range [][]string{nil, {"default"}} {
		c := newCluster(t)
		c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"llama","labels":{"kueue.x-k8s.io/queue-name":"night"}},"spec":`+jobSpec(`,"suspend":true`)+`}`)
		job, err := c.List(t.Context())
		if err != nil || len(job.Jobs) != 1 {
			t.Fatal(err)
		}
		c.do(http.MethodPost, kueue, `{"metadata":{"name":"job-llama","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"llama","uid":"`+job.Jobs[0].UID+`","controller":true}]}}`)
		c.do(http.MethodPatch, kueue+"/job-llama/status", `{"status":{"conditions":[{"type":"QuotaReserved","status":"False","message":"no quota left"}]}}`)
		p, opened := c.clusters(namespaces...)
		read := func(state string, calls int, unread string) {
			t.Helper()
			c.Calls()
			l, err := p.List(t.Context(), project, "us-east5/research")
			if err != nil || l.Partial || l.Unread != nil || len(l.Slices) != 1 || l.Slices[0].State != state || len(c.Calls()) != calls || *opened != 1 {
				t.Errorf("namespaces %q: %+v, %v, opened %d times; want %q in %d calls", namespaces, l, err, *opened, state, calls)
			}
			if no := l.Unexplained; (no == nil) != (unread == "") || no != nil && !strings.Contains(no.Error(), unread) {
				t.Errorf("namespaces %q: %v, want %q", namespaces, no, unread)
			}
		}
		told := string(gke.Creating) + ": " + suspended + "; its Workload job-llama has no quota: no quota left"
		read(told, 6, "")
		c.Inject(gketest.Fault{Verb: "list", Resource: "workloads", Code: http.StatusForbidden, Message: "workloads is forbidden"})
		read(string(gke.Creating)+": "+suspended, 6, "workloads is forbidden")
		for _, resource := range []string{"provisioningrequests", "workloads"} { // the newer version, and the older one, which this cluster does not serve
			c.Inject(gketest.Fault{Verb: "list", Resource: resource, Code: http.StatusNotFound})
		}
		read(string(gke.Creating)+": "+suspended, 8, "")
		c.Inject(gketest.Fault{Verb: "list", Resource: "provisioningrequests", Code: http.StatusServiceUnavailable, Message: "not now"})
		read(told, 6, "not now")
		c.do(http.MethodPatch, "/apis/batch/v1/namespaces/default/jobs/llama", `{"spec":{"suspend":false}}`)
		c.node("a")
		c.node("b")
		c.clock.Advance(time.Minute)
		read(string(gke.Ready), 4, "")
	}
}

// TestAClusterThatChangesWhileItIsListed: the lists are made one after the other. A Job that is made or deleted in between is as it was at
// the first, and its Pods are not left of a former one.
func TestAClusterThatChangesWhileItIsListed(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	p, _ := c.clusters()
	states := func(calls int) (all []string) {
		t.Helper()
		c.Calls()
		l, err := p.List(t.Context(), project, "us-east5/research")
		if err != nil || l.Partial {
			t.Fatalf("%+v, %v", l, err)
		}
		for _, s := range l.Slices {
			all = append(all, string(s.Condition))
		}
		if n := len(c.Calls()); n != calls {
			t.Errorf("%d calls, want %d", n, calls)
		}
		return all
	}
	c.Inject(gketest.Fault{Verb: "list", Resource: "jobsets", Before: func() { c.job("llama", "") }})
	if got := states(6); len(got) != 0 { // one of them made the Job, and one listed the Jobs again
		t.Errorf("made in between: %q", got)
	}
	c.clock.Advance(time.Minute)
	if got := states(4); !slices.Equal(got, []string{"ready"}) {
		t.Errorf("it runs: %q", got)
	}
	c.Inject(gketest.Fault{Verb: "list", Resource: "pods", Before: func() {
		c.do(http.MethodDelete, "/apis/batch/v1/namespaces/default/jobs/llama", `{"propagationPolicy":"Background"}`)
	}})
	if got := states(5); !slices.Equal(got, []string{"unhealthy"}) {
		t.Errorf("deleted in between: %q", got)
	}
	if got := states(4); !slices.Equal(got, []string{"deleting"}) {
		t.Errorf("its Pods have not ended: %q", got)
	}
	c.clock.Advance(time.Minute)
	if got := states(4); len(got) != 0 {
		t.Errorf("its Pods have ended: %q", got)
	}
}

// TestOnlyNamedClustersAreRead: nothing is known about any other.
func TestOnlyNamedClustersAreRead(t *testing.T) {
	p, opened := newCluster(t).clusters()
	if l, err := p.List(t.Context(), "other", "us-east5/research"); err != nil || !l.Partial || len(l.Slices) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: "us-east5/elsewhere/default", Name: "x"}); err == nil || !strings.Contains(err.Error(), "CLUSTERS does not name") {
		t.Errorf("%v", err)
	}
	if zones, err := p.Zones(t.Context(), "other"); err != nil || len(zones) > 0 || *opened != 0 {
		t.Errorf("%q, %v, opened %d times", zones, err, *opened)
	}
}

// TestWhatJobsDoNotHaveIsRefused: a call that Pitstop does not make reaches no cluster.
func TestWhatJobsDoNotHaveIsRefused(t *testing.T) {
	c := newCluster(t)
	p, _ := c.clusters()
	ctx, r := t.Context(), provider.Ref{Project: project, Zone: "us-east5/research/default", Name: "llama"}
	one := func(_ string, err error) error { return err }
	for what, err := range map[string]error{
		"start": one(p.Start(ctx, r)), "set": p.SetMetadata(ctx, r, "a", "b"),
	} {
		var e *provider.Error
		if !errors.As(err, &e) || e.Class != reason.Invalid || !strings.Contains(err.Error(), "do it with kubectl") || !strings.Contains(err.Error(), "llama") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if calls := c.Calls(); len(calls) > 0 {
		t.Errorf("%+v", calls)
	}
}

// TestANamespaceThatIsNotReadMissesNothing: a Job of a namespace that the configuration named once is not gone.
func TestANamespaceThatIsNotReadMissesNothing(t *testing.T) {
	c := newCluster(t)
	c.job("llama", "")
	p, _ := c.clusters("teams")
	l, err := p.List(t.Context(), project, "us-east5/research")
	if err != nil || l.Partial || l.Misses("us-east5/research/default") || !l.Misses("us-east5/research/teams") {
		t.Errorf("%+v, %v", l, err)
	}
	if s, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: "us-east5/research/default", Name: "llama"}); err == nil || !strings.Contains(err.Error(), "does not name its namespace") {
		t.Errorf("%+v, %v", s, err)
	}
	p, _ = c.clusters()
	if l, err := p.List(t.Context(), project, "us-east5/research"); err != nil || !l.Misses("us-east5/research/default") {
		t.Errorf("all namespaces: %+v, %v", l, err)
	}
}

// TestASilentClusterIsGivenUp: however many of its namespaces are read.
func TestASilentClusterIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.HTTP = &http.Client{Transport: silent{}}
		p, _ := c.clusters("default", "teams", "more")
		begun := time.Now()
		if _, err := p.List(t.Context(), project, "us-east5/research"); provider.Failure(err).Class != reason.Transient {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// silent never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
