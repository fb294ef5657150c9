package gke_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/reason"
)

// cluster is a simulated cluster, and a client of it.
type cluster struct {
	*gketest.Server
	gke.Client
	t     *testing.T
	clock *cloudtputest.ManualClock
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, clock: cloudtputest.NewManualClock(time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC))}
	c.Server = gketest.New(gketest.Config{Clock: c.clock, Token: "secret", Seed: 3})
	c.Client = gke.Client{
		HTTP: &http.Client{Transport: c.Transport()}, URL: "http://cluster.invalid", Token: func(context.Context) (string, error) { return "secret", nil },
	}
	return c
}

func (c *cluster) do(method, path, body string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // the code says it
	if res.StatusCode >= 300 {
		c.t.Fatalf("%s %s: answer %d", method, path, res.StatusCode)
	}
}

func (c *cluster) node(name string) {
	c.t.Helper()
	c.do(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-flex-start":"true"}},`+
		`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, name))
}

// jobSpec is a Job of two Pods with four chips each.
func jobSpec(more string) string {
	return `{"completionMode":"Indexed","parallelism":2,"completions":2,"backoffLimit":0` + more + `,"template":{"spec":{"restartPolicy":"Never",` +
		`"nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},"containers":[{"name":"training","resources":{"limits":{"google.com/tpu":4}}}]}}}`
}

func (c *cluster) job(name, more string) {
	c.t.Helper()
	c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", fmt.Sprintf(`{"metadata":{"name":%q},"spec":%s}`, name, jobSpec(more)))
}

// reading is the reading of a slice.
func (c *cluster) reading(name string) gke.Reading {
	c.t.Helper()
	o, err := c.List(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range gke.Readings(o, "us-east5", "research", c.clock.Now()) {
		if r.Name == name {
			return r
		}
	}
	c.t.Fatalf("there is no reading of %s", name)
	return gke.Reading{}
}

// TestAJobIsToldThroughItsLife: it waits, runs, loses a machine and fails, as the readings tell it.
func TestAJobIsToldThroughItsLife(t *testing.T) {
	c := newCluster(t)
	c.job("llama", "")
	if r := c.reading("llama"); r.State != gke.Creating || !strings.Contains(r.Why, "waits for a machine: Unschedulable") {
		t.Errorf("without a machine: %+v", r)
	}
	c.node("a")
	c.node("b")
	c.clock.Advance(time.Minute)
	r := c.reading("llama")
	if r.State != gke.Ready || r.Workers != 2 || r.Chips != 8 || !r.EndsAssumed || !r.Ends.Equal(c.clock.Now().Add(7*24*time.Hour-time.Minute)) {
		t.Errorf("with machines: %+v", r)
	}
	c.do(http.MethodDelete, "/api/v1/nodes/b", "")
	if r := c.reading("llama"); r.State != gke.Unhealthy || r.Heals || !strings.Contains(r.Why, "its machine b is gone") {
		t.Errorf("a machine is gone: %+v", r)
	}
	c.clock.Advance(2 * time.Minute)
	if r := c.reading("llama"); r.State != gke.Lost || r.Heals || !strings.Contains(r.Why, "BackoffLimitExceeded") {
		t.Errorf("later: %+v", r)
	}
}

// TestAMendedGangIsReady: where losses do not count, the Job makes only the lost Pod anew, and the other one runs on.
func TestAMendedGangIsReady(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	c.job("llama", `,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}`)
	c.clock.Advance(30 * time.Minute)
	c.do(http.MethodDelete, "/api/v1/nodes/b", "")
	c.clock.Advance(2 * time.Minute)
	if r := c.reading("llama"); r.State != gke.Unhealthy || !r.Heals {
		t.Errorf("a member is missing: %+v", r)
	}
	c.node("c")
	c.clock.Advance(time.Minute)
	if r := c.reading("llama"); r.State != gke.Ready {
		t.Errorf("the member is back, and the other one never stopped: %+v", r)
	}
}

// TestASilentMachineIsTold: its Pods may still train.
func TestASilentMachineIsTold(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	c.job("llama", `,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}`)
	c.clock.Advance(time.Minute)
	c.Silence("a")
	c.clock.Advance(time.Minute)
	if r := c.reading("llama"); r.State != gke.Unhealthy || !strings.Contains(r.Why, "its machine a is not ready") || len(r.Unended) > 0 {
		t.Errorf("at first: %+v", r)
	}
	if r := c.reading("llama"); !r.Heals {
		t.Errorf("the machine may answer again: %+v", r)
	}
	c.clock.Advance(10 * time.Minute)
	if r := c.reading("llama"); r.State != gke.Unhealthy || len(r.Unended) != 1 || r.Heals {
		t.Errorf("later nobody replaces the Pod before its machine says that it has ended: %+v", r)
	}
}

// TestAJobSetIsToldThroughItsRestarts: a failed slice heals while restarts are left.
func TestAJobSetIsToldThroughItsRestarts(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	c.do(http.MethodPost, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", `{"metadata":{"name":"llama","labels":{"pitstop-policy":"spot"}},"spec":{"failurePolicy":{"maxRestarts":1},`+
		`"replicatedJobs":[{"name":"slice","replicas":1,"template":{"spec":`+jobSpec("")+`}}]}}`)
	c.clock.Advance(time.Minute)
	r := c.reading("llama-slice-0")
	if r.State != gke.Ready || r.Group != "llama" || r.Policy != "spot" {
		t.Fatalf("%+v", r)
	}
	fails := func() {
		t.Helper()
		o, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Exit("default", o.Pods[0].Name, 1)
	}
	fails()
	if r := c.reading("llama-slice-0"); r.State != gke.Unhealthy || !r.Heals {
		t.Errorf("after the first failure: %+v", r)
	}
	c.clock.Advance(time.Minute)
	if n := c.reading("llama-slice-0"); n.State != gke.Ready || n.Incarnation.ID == r.Incarnation.ID {
		t.Errorf("begun again: %+v", n)
	}
	fails()
	c.clock.Advance(time.Minute)
	if r := c.reading("llama-slice-0"); r.State != gke.Lost || !strings.Contains(r.Why, "ReachedMaxRestarts") {
		t.Errorf("after the second: %+v", r)
	}
}

// TestAClusterIsReadInFourLists: however many objects there are. Only pages add calls.
func TestAClusterIsReadInFourLists(t *testing.T) {
	c := newCluster(t)
	for i := range 7 {
		c.node(fmt.Sprintf("n-%d", i))
		c.node(fmt.Sprintf("m-%d", i))
		c.job(fmt.Sprintf("job-%d", i), "")
	}
	c.clock.Advance(time.Minute)
	c.Calls()
	o, err := c.List(t.Context())
	if err != nil || len(o.Jobs) != 7 || len(o.Pods) != 14 || len(o.Nodes) != 14 {
		t.Fatalf("%d Jobs, %d Pods, %d nodes, %v", len(o.Jobs), len(o.Pods), len(o.Nodes), err)
	}
	if calls := c.Calls(); len(calls) != 4 {
		t.Errorf("%d calls: %v", len(calls), calls)
	}
	c.Page = 4
	paged, err := c.List(t.Context())
	if err != nil || len(paged.Jobs) != 7 || len(paged.Pods) != 14 || len(paged.Nodes) != 14 {
		t.Errorf("%d Jobs, %d Pods, %d nodes, %v", len(paged.Jobs), len(paged.Pods), len(paged.Nodes), err)
	}
	c.Inject(gketest.Fault{Verb: "list", Resource: "pods", Times: 1})
	c.Inject(gketest.Fault{Verb: "list", Resource: "pods", Code: http.StatusGone})
	if again, err := c.List(t.Context()); err != nil || len(again.Pods) != 14 {
		t.Errorf("the rest of a list expired: %d Pods, %v", len(again.Pods), err)
	}
	c.Namespace = "teams"
	if other, err := c.List(t.Context()); err != nil || len(other.Jobs)+len(other.Pods) != 0 {
		t.Errorf("another namespace has %d Jobs, %v", len(other.Jobs), err)
	}
}

func TestAFailedListIsClassified(t *testing.T) {
	for name, f := range map[string]struct {
		fault gketest.Fault
		want  reason.FailureClass
		says  string
	}{
		"no right":        {gketest.Fault{Code: http.StatusForbidden, Message: "pods is forbidden"}, reason.Permission, "pods is forbidden"},
		"an old token":    {gketest.Fault{Code: http.StatusUnauthorized}, reason.Permission, "injected"},
		"too many":        {gketest.Fault{Code: http.StatusTooManyRequests, RetryAfter: 1}, reason.Transient, "injected"},
		"a broken server": {gketest.Fault{Code: http.StatusServiceUnavailable}, reason.Transient, "injected"},
		"a lost answer":   {gketest.Fault{LoseAnswer: true}, reason.Transient, "unexpected EOF"},
		"what is wrong":   {gketest.Fault{Code: http.StatusBadRequest}, reason.Invalid, "injected"},
	} {
		c := newCluster(t)
		f.fault.Resource = "pods"
		c.Inject(f.fault)
		_, err := c.List(t.Context())
		var no *provider.Error
		if !errors.As(err, &no) || no.Class != f.want || !strings.Contains(err.Error(), f.says) || !strings.Contains(err.Error(), "list /api/v1/pods") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAClusterWithoutJobSetHasNone: the API knows no such resource there.
func TestAClusterWithoutJobSetHasNone(t *testing.T) {
	c := newCluster(t)
	c.job("llama", "")
	c.Inject(gketest.Fault{Resource: "jobsets", Code: http.StatusNotFound, Message: "the server could not find the requested resource"})
	if o, err := c.List(t.Context()); err != nil || len(o.Jobs) != 1 || len(o.JobSets) != 0 {
		t.Errorf("%d Jobs, %v", len(o.Jobs), err)
	}
}

// TestAJobOfAJobSetNeedsTheJobSets: where the cluster lists no JobSets, a Job that belongs to one cannot be told, and no absence is sure.
func TestAJobOfAJobSetNeedsTheJobSets(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", `{"metadata":{"name":"llama"},"spec":{"replicatedJobs":[{"name":"slice","replicas":1,"template":{"spec":`+jobSpec("")+`}}]}}`)
	c.clock.Advance(time.Minute)
	c.Inject(gketest.Fault{Resource: "jobsets", Code: http.StatusNotFound, Message: "the server could not find the requested resource"})
	_, err := c.List(t.Context())
	var no *provider.Error
	if !errors.As(err, &no) || no.Class != reason.Transient || !strings.Contains(err.Error(), "the Job default/llama-slice-0 belongs to the JobSet llama, and this cluster lists no JobSets of jobset.x-k8s.io/v1alpha2") {
		t.Errorf("%v", err)
	}
}

// TestAnAnswerThatIsNoListIsAnError: an empty object would otherwise be a cluster in which nothing is.
func TestAnAnswerThatIsNoListIsAnError(t *testing.T) {
	for _, answer := range []string{`{}`, `{"kind":"Status","status":"Success"}`, `{"kind":"Job","items":[]}`, `<html>`, `null`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(answer)) //nolint:errcheck // the client says it
		}))
		_, err := gke.Client{HTTP: server.Client(), URL: server.URL}.List(t.Context())
		server.Close()
		var no *provider.Error
		if !errors.As(err, &no) || no.Class != reason.Transient || !strings.Contains(err.Error(), "list /apis/batch/v1/jobs") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestAListWithoutAnEndIsGivenUp: an answer that always names another page must not fill the memory.
func TestAListWithoutAnEndIsGivenUp(t *testing.T) {
	pages := 0
	c := newCluster(t)
	c.HTTP = &http.Client{Transport: answers(func() string {
		if pages++; pages > 5000 {
			t.Fatal("it goes on")
		}
		return `{"kind":"JobList","metadata":{"continue":"more"},"items":[]}`
	})}
	if _, err := c.List(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1000 pages") {
		t.Errorf("%v after %d pages", err, pages)
	}
}

// answers are those of a server that always answers well.
type answers func() string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a())), Request: r}, nil
}
