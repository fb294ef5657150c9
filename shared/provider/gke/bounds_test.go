package gke_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
)

// crowd is a cluster in which somebody has made many objects of one kind in the namespace eve. Lists have them first, as many as the limit
// says.
type crowd struct {
	http.RoundTripper

	plural string
	object string // one of them, with %d for its number
	n      int
	// endless ignores the limit of a list, and deaf its field selector.
	endless, deaf bool

	lists int
	bytes int
}

// RoundTrip implements http.RoundTripper.
func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	first, more := strings.CutPrefix(q.Get("continue"), "eve-")
	leftOut := slices.Contains(strings.Split(q.Get("fieldSelector"), ","), "metadata.namespace!=eve") && !c.deaf
	elsewhere := strings.Contains(r.URL.Path, "/namespaces/") && !strings.Contains(r.URL.Path, "/namespaces/eve/")
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+c.plural) || q.Get("continue") != "" && !more || leftOut || elsewhere {
		return c.RoundTripper.RoundTrip(r)
	}
	c.lists++
	from, to := 0, c.n
	if more {
		from, _ = strconv.Atoi(first) //nolint:errcheck // it is this server's own
	}
	if from == c.n { // the others
		q.Del("continue")
		r.URL.RawQuery = q.Encode()
		return c.RoundTripper.RoundTrip(r)
	}
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil && !c.endless {
		to = min(c.n, from+limit)
	}
	text := []io.Reader{strings.NewReader(fmt.Sprintf(`{"kind":"List","metadata":{"continue":"eve-%d"},"items":[`, to))}
	for i := from; i < to; i++ {
		if i > from {
			text = append(text, strings.NewReader(","))
		}
		before, after, _ := strings.Cut(c.object, "%d")
		text = append(text, strings.NewReader(before), strings.NewReader(strconv.Itoa(i)), strings.NewReader(after))
	}
	text = append(text, strings.NewReader("]}"))
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(io.TeeReader(io.MultiReader(text...), (*counted)(&c.bytes))),
	}, nil
}

// counted counts what is written.
type counted int

func (n *counted) Write(p []byte) (int, error) {
	*n += counted(len(p))
	return len(p), nil
}

// fat is an object with as many annotations as Kubernetes takes.
func fat(more string) string {
	return `{"metadata":{"name":"eve-%d","namespace":"eve","uid":"eve-%d","labels":{"batch.kubernetes.io/job-name":"x"},"annotations":{"a":"` +
		strings.Repeat("x", 256<<10-100) + `"}}` + more + `}`
}

const pending = `,"spec":{"containers":[]},"status":{"phase":"Pending"}`

// TestACrowdCostsItsNamespaceAlone: what somebody makes in a namespace, however much and however large, keeps nobody from the others.
func TestACrowdCostsItsNamespaceAlone(t *testing.T) {
	const others, eves = "us-east5/research/default", "us-east5/research/eve"
	for name, is := range map[string]struct {
		crowd
		unread string // why the namespace is not read; empty where it is
	}{
		"a page that is too large is read in halves": {crowd{plural: "pods", object: fat(pending), n: 130}, ""},
		"more than can be kept":                      {crowd{plural: "pods", object: fat(pending), n: 10_000}, "list /api/v1/pods: the answer cannot be read: namespace eve: what is kept of the cluster takes more than 96 MiB"},
		"a server that does not heed the limit":      {crowd{plural: "pods", object: fat(pending), n: 130, endless: true}, "list /api/v1/pods: namespace eve: the answer has more than 32 MiB"},
		"Jobs":                                       {crowd{plural: "jobs", object: fat(""), n: 10_000}, "namespace eve: what is kept of the cluster takes more than 96 MiB"},
		"JobSets":                                    {crowd{plural: "jobsets", object: fat(""), n: 10_000}, "namespace eve: what is kept of the cluster takes more than 96 MiB"},
		"an object that is none":                     {crowd{plural: "jobsets", object: `{"metadata":{"name":"eve-%d","namespace":"eve"},"spec":{"replicatedJobs":[{"replicas":1e30}]}}`, n: 1}, `namespace eve: the object "eve-0": json: `},
		"an object that is no Pod":                   {crowd{plural: "pods", object: `{"metadata":{"name":"eve-%d","namespace":"eve"},"status":"none"}`, n: 1}, `namespace eve: the object "eve-0": json: `},
		"an object that is no Job":                   {crowd{plural: "jobs", object: `{"metadata":{"name":"eve-%d","namespace":"eve","annotations":[]}}`, n: 1}, `namespace eve: the object "eve-0": json: `},
	} {
		t.Run(name, func(t *testing.T) {
			for i, namespaces := range [][]string{nil, {"default", "eve"}} {
				if i%breadth.Every(2) != 0 {
					continue
				}
				c := newCluster(t)
				c.node("a")
				c.node("b")
				c.job("llama", "")
				c.clock.Advance(time.Minute)
				eve := is.crowd
				eve.RoundTripper = c.HTTP.Transport
				c.HTTP = &http.Client{Transport: &eve}
				c.Client.HTTP = c.HTTP
				p, _ := c.clusters(namespaces...)
				l, err := p.List(t.Context(), project, "us-east5/research")
				if err != nil || len(l.Slices) != 1 || l.Slices[0].State != string(gke.Ready) {
					t.Fatalf("namespaces %q: %+v, %v", namespaces, l.Slices, err)
				}
				said := ""
				if l.Unread != nil {
					said = strings.ReplaceAll(l.Unread.Error(), "/namespaces/eve", "")
				}
				if (said == "") != (is.unread == "") || !strings.Contains(said, is.unread) {
					t.Errorf("namespaces %q: %q, want %q", namespaces, said, is.unread)
				}
				if !l.Misses(others) || l.Misses(eves) != (is.unread == "") {
					t.Errorf("namespaces %q: what is not listed: gone %t, and of eve %t", namespaces, l.Misses(others), l.Misses(eves))
				}
				if eve.lists > 12 || eve.bytes > 256<<20 {
					t.Errorf("namespaces %q: it took %d lists with %d MiB", namespaces, eve.lists, eve.bytes>>20)
				}
			}
		})
	}
}

// TestASliceOfAnUnreadNamespaceIsNotGone, and one of another namespace is.
func TestASliceOfAnUnreadNamespaceIsNotGone(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"default", "eve"}} {
		c := newCluster(t)
		c.Client.HTTP = &http.Client{Transport: &crowd{RoundTripper: c.HTTP.Transport, plural: "jobs", object: `{"metadata":{"name":"eve-%d","namespace":"eve","uid":1}}`, n: 1}}
		p, _ := c.clusters(namespaces...)
		if s, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: "us-east5/research/default", Name: "llama"}); err != nil || s.Condition != evidence.Gone {
			t.Errorf("namespaces %q: of another: %+v, %v", namespaces, s, err)
		}
		if s, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: "us-east5/research/eve", Name: "eve-0"}); err == nil || !strings.Contains(err.Error(), `namespace eve: the object "eve-0"`) {
			t.Errorf("namespaces %q: of eve: %+v, %v", namespaces, s, err)
		}
	}
}

// TestAServerThatHeedsNothingIsGivenUp: one that ignores what a list leaves out is not asked for ever.
func TestAServerThatHeedsNothingIsGivenUp(t *testing.T) {
	c := newCluster(t)
	eve := &crowd{RoundTripper: c.HTTP.Transport, plural: "pods", object: fat(pending), n: 130, endless: true, deaf: true}
	c.Client.HTTP = &http.Client{Transport: eve}
	p, _ := c.clusters()
	if _, err := p.List(t.Context(), project, "us-east5/research"); err == nil || !strings.Contains(err.Error(), "namespace eve") || eve.lists > 12 {
		t.Errorf("%v after %d lists", err, eve.lists)
	}
}

// TestPagesGrowAgain once what made one too large is behind.
func TestPagesGrowAgain(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	for i := range 40 {
		c.pod("default", fmt.Sprintf("small-%d", i), "a", `,"labels":{"batch.kubernetes.io/job-name":"x"}`, "")
	}
	eve := &crowd{RoundTripper: c.HTTP.Transport, plural: "pods", object: fat(pending), n: 130}
	c.Client.HTTP, c.Page = &http.Client{Transport: eve}, 200
	c.Calls()
	o, err := c.List(t.Context())
	if n := len(slices.DeleteFunc(o.Pods, func(p gke.Pod) bool { return p.Namespace == "eve" })); err != nil || n != 40 {
		t.Errorf("%d of the others, %v", n, err)
	}
	if calls := len(c.Calls()); calls > 8 {
		t.Errorf("%d lists beside those of eve", calls)
	}
}

// TestACrowdHidesNothingLeftOver of another namespace.
func TestACrowdHidesNothingLeftOver(t *testing.T) {
	for _, plural := range []string{"workloads", "provisioningrequests", "pods"} {
		c := newCluster(t)
		c.node("a")
		c.workload("default", "tpu", "false", "google.com/tpu")
		c.Client.HTTP = &http.Client{Transport: &crowd{RoundTripper: c.HTTP.Transport, plural: plural, object: fat(""), n: 10_000}}
		p, _ := c.clusters()
		all, unread, err := p.Leftovers(t.Context(), project, "us-east5/research")
		if len(all) != 1 || all[0].Name != "tpu" || err == nil || !strings.Contains(err.Error(), "namespace eve") {
			t.Errorf("%s: %+v, %v", plural, all, err)
		}
		if want := []string{"us-east5/research/eve", "us-east5/research node pool"}; !slices.Equal(unread, want) {
			t.Errorf("%s: unread %q, want %q", plural, unread, want)
		}
	}
}

// TestACrowdHidesNoWait: in what the Jobs of other namespaces wait is told all the same.
func TestACrowdHidesNoWait(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"llama","labels":{"kueue.x-k8s.io/queue-name":"night"}},"spec":`+jobSpec(`,"suspend":true`)+`}`)
	o, err := c.List(t.Context())
	if err != nil || len(o.Jobs) != 1 {
		t.Fatal(err)
	}
	c.do(http.MethodPost, workloadsPath, `{"metadata":{"name":"job-llama","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"llama","uid":"`+o.Jobs[0].UID+`","controller":true}]},"spec":{"active":false}}`)
	c.Client.HTTP = &http.Client{Transport: &crowd{RoundTripper: c.HTTP.Transport, plural: "workloads", object: fat(""), n: 10_000}}
	p, _ := c.clusters()
	l, err := p.List(t.Context(), project, "us-east5/research")
	if err != nil || l.Unread != nil || len(l.Slices) != 1 || !strings.Contains(l.Slices[0].State, "its Workload job-llama is inactive") {
		t.Errorf("%+v, %v", l, err)
	}
	if l.Unexplained == nil || !strings.Contains(l.Unexplained.Error(), "namespace eve") {
		t.Errorf("nobody hears of eve: %v", l.Unexplained)
	}
}
