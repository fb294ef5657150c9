package gketest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke/gketest"
)

// bench is a server without a socket, on a clock of its own.
type bench struct {
	*gketest.Server
	t     testing.TB
	clock *cloudtputest.ManualClock
	token string
}

func newBench(t testing.TB, c gketest.Config) *bench {
	t.Helper()
	b := &bench{t: t, clock: cloudtputest.NewManualClock(start), token: c.Token}
	c.Clock = b.clock
	b.Server = gketest.New(c)
	return b
}

// call makes a call, and returns the answer's code, its headers and its body.
func (b *bench) call(ctx context.Context, method, path, body string) (int, http.Header, map[string]any, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://cluster.invalid"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if req.Header.Set("Authorization", "Bearer "+b.token); method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := b.Transport().RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		b.t.Fatalf("%s %s: %.200s: %v", method, path, raw, err)
	}
	return res.StatusCode, res.Header, o, nil
}

// answered makes a call that has to be answered.
func (b *bench) answered(ctx context.Context, method, path, body string) (int, map[string]any) {
	b.t.Helper()
	code, _, o, err := b.call(ctx, method, path, body)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
	return code, o
}

const (
	allJobs = "/apis/batch/v1/jobs"
	jobs    = "/apis/batch/v1/namespaces/default/jobs"
	idleJob = `{"metadata":{"name":"llama"},"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"training"}]}}}}`
)

func TestFaultsAreMetOnceAndThenGone(t *testing.T) {
	for _, c := range []struct {
		fault  gketest.Fault
		code   int
		reason string
		after  string
	}{
		{gketest.Fault{Code: http.StatusTooManyRequests, RetryAfter: 7}, 429, "TooManyRequests", "7"},
		{gketest.Fault{Code: http.StatusInternalServerError}, 500, "InternalError", ""},
		{gketest.Fault{Code: http.StatusServiceUnavailable, RetryAfter: 1}, 503, "ServiceUnavailable", "1"},
		{gketest.Fault{Code: http.StatusUnauthorized}, 401, "Unauthorized", ""},
		{gketest.Fault{Code: http.StatusForbidden, Message: `jobs.batch is forbidden: User "pitstop" cannot create resource "jobs"`}, 403, "Forbidden", ""},
	} {
		b := newBench(t, gketest.Config{})
		c.fault.Verb, c.fault.Resource = "create", "jobs"
		b.Inject(c.fault)
		if code, _, _, err := b.call(t.Context(), http.MethodGet, allJobs, ""); code != http.StatusOK || err != nil {
			t.Errorf("another call met it: %d, %v", code, err)
		}
		code, header, o, err := b.call(t.Context(), http.MethodPost, jobs, idleJob)
		if code != c.code || o["reason"] != c.reason || o["kind"] != "Status" || header.Get("Retry-After") != c.after || err != nil ||
			c.fault.Message != "" && o["message"] != c.fault.Message {
			t.Errorf("%d %v, retry after %q, %v; want %d %s, %q", code, o, header.Get("Retry-After"), err, c.code, c.reason, c.after)
		}
		if code, _ := b.answered(t.Context(), http.MethodPost, jobs, idleJob); code != http.StatusCreated {
			t.Errorf("the fault had an effect, or came twice: %d", code)
		}
	}
}

// TestALostAnswerAndALostRequestLookAlike: to the caller. Only the next look tells whether the Job is there.
func TestALostAnswerAndALostRequestLookAlike(t *testing.T) {
	for name, c := range map[string]struct {
		fault gketest.Fault
		there int
	}{
		"request": {gketest.Fault{LoseRequest: true}, http.StatusNotFound},
		"answer":  {gketest.Fault{LoseAnswer: true}, http.StatusOK},
	} {
		b := newBench(t, gketest.Config{})
		b.Inject(c.fault)
		if code, _, _, err := b.call(t.Context(), http.MethodPost, jobs, idleJob); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: answer %d, %v", name, code, err)
		}
		if code, _ := b.answered(t.Context(), http.MethodGet, jobs+"/llama", ""); code != c.there {
			t.Errorf("%s: then %d, want %d", name, code, c.there)
		}
		want := []gketest.Call{{Method: http.MethodPost, Path: jobs}, {Method: http.MethodGet, Path: jobs + "/llama", Status: c.there}}
		if diff := cmp.Diff(want, b.Calls()); diff != "" || len(b.Calls()) != 0 {
			t.Errorf("%s: the calls (-want +noted):\n%s", name, diff)
		}
	}
}

// TestALostAnswerIsLostOnASocketToo: the connection ends without a word.
func TestALostAnswerIsLostOnASocketToo(t *testing.T) {
	b := newBench(t, gketest.Config{})
	h := httptest.NewServer(b)
	defer h.Close()
	b.Inject(gketest.Fault{LoseAnswer: true, Times: -1})
	res, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+allJobs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := h.Client().Do(res); err == nil {
		a.Body.Close() //nolint:errcheck // it should not be there
		t.Errorf("answer %d", a.StatusCode)
	}
}

// TestASlowAnswerTakesItsTimeByTheClock, and its call has its effect at once.
func TestASlowAnswerTakesItsTimeByTheClock(t *testing.T) {
	b := newBench(t, gketest.Config{})
	b.Inject(gketest.Fault{Verb: "create", Slow: 40 * time.Second})
	done := make(chan int, 1)
	go func() {
		code, _ := b.answered(t.Context(), http.MethodPost, jobs, idleJob)
		done <- code
	}()
	for { // until the call has come, and waits for the clock
		if next, ok := b.clock.Next(); ok && next.Equal(start.Add(40*time.Second)) {
			break
		}
		runtime.Gosched()
	}
	if code, _ := b.answered(t.Context(), http.MethodGet, jobs+"/llama", ""); code != http.StatusOK {
		t.Errorf("the Job is not there: %d", code)
	}
	b.clock.Advance(39 * time.Second)
	select {
	case code := <-done:
		t.Errorf("answer %d too early", code)
	default:
	}
	b.clock.Advance(time.Second)
	if code := <-done; code != http.StatusCreated {
		t.Errorf("answer %d", code)
	}
}

// TestACallerThatLeavesIsNotWaitedFor: a slow answer ends with its caller.
func TestACallerThatLeavesIsNotWaitedFor(t *testing.T) {
	b := newBench(t, gketest.Config{})
	b.Inject(gketest.Fault{Slow: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, _, err := b.call(ctx, http.MethodGet, allJobs, ""); err == nil {
		t.Errorf("answer %d", code)
	}
}

func TestAFaultChoosesItsCalls(t *testing.T) {
	b := newBench(t, gketest.Config{})
	before := 0
	withdraw := b.Inject(gketest.Fault{Verb: "get", Resource: "jobs", Name: "llama", Times: -1, Code: 500, Before: func() { before++ }})
	for path, want := range map[string]int{jobs + "/llama": 500, jobs + "/other": 404, jobs: 200, "/api/v1/nodes/llama": 404} {
		for range 2 {
			if code, _ := b.answered(t.Context(), http.MethodGet, path, ""); code != want {
				t.Errorf("%s: %d, want %d", path, code, want)
			}
		}
	}
	withdraw()
	if code, _ := b.answered(t.Context(), http.MethodGet, jobs+"/llama", ""); code != http.StatusNotFound || before != 2 {
		t.Errorf("withdrawn it is met: %d, %d times before", code, before)
	}
}

func TestATokenExpires(t *testing.T) {
	b := newBench(t, gketest.Config{Token: "first"})
	b.Renew("second")
	if code, o := b.answered(t.Context(), http.MethodGet, allJobs, ""); code != http.StatusUnauthorized || o["reason"] != "Unauthorized" {
		t.Errorf("the former token: %d %v", code, o)
	}
	b.token = "second"
	if code, _ := b.answered(t.Context(), http.MethodGet, allJobs, ""); code != http.StatusOK {
		t.Errorf("the new token: %d", code)
	}
}

// TestTheRestOfAListExpires: after a while the caller has to begin again.
func TestTheRestOfAListExpires(t *testing.T) {
	b := newBench(t, gketest.Config{})
	for i := range 3 {
		b.answered(t.Context(), http.MethodPost, jobs, strings.Replace(idleJob, "llama", fmt.Sprintf("llama-%d", i), 1))
	}
	_, o := b.answered(t.Context(), http.MethodGet, allJobs+"?limit=2", "")
	meta, _ := o["metadata"].(map[string]any)
	token, _ := meta["continue"].(string)
	b.clock.Advance(gketest.DefaultTiming.Page + time.Second)
	if code, o := b.answered(t.Context(), http.MethodGet, allJobs+"?continue="+url.QueryEscape(token), ""); token == "" || code != http.StatusGone || o["reason"] != "Expired" {
		t.Errorf("%q: %d %v", token, code, o)
	}
}

// fleet makes nodes and Jobs, lets them run and loses some nodes. It returns everything as the API shows it.
func fleet(t *testing.T, seed uint64, n int) string {
	t.Helper()
	b := newBench(t, gketest.Config{Seed: seed})
	must := func(method, path, body string) {
		t.Helper()
		if code, _, o, err := b.call(t.Context(), method, path, body); code >= 300 || err != nil {
			t.Fatalf("%s %s: %d %v %v", method, path, code, o["message"], err)
		}
	}
	for i := range 2 * n {
		must(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":"n-%03d"},"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, i))
	}
	for i := range n {
		must(http.MethodPost, jobs, fmt.Sprintf(`{"metadata":{"name":"j-%03d"},"spec":{"completionMode":"Indexed","parallelism":2,"completions":2,"backoffLimit":0,`+
			`"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"training","resources":{"limits":{"google.com/tpu":4}}}]}}}}`, i))
	}
	b.clock.Advance(time.Minute)
	for i := 0; i < 2*n; i += 5 {
		must(http.MethodDelete, fmt.Sprintf("/api/v1/nodes/n-%03d", i), "")
	}
	b.Silence("n-001")
	b.clock.Advance(10 * time.Minute)
	var all bytes.Buffer
	for _, path := range []string{allJobs, "/api/v1/pods", "/api/v1/nodes"} {
		_, o := b.answered(t.Context(), http.MethodGet, path, "")
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

// TestOneSeedGivesOneCluster: the same calls at the same times give the same names, UIDs and states, and another seed other ones.
func TestOneSeedGivesOneCluster(t *testing.T) {
	a := fleet(t, 1, 10)
	if b := fleet(t, 1, 10); a != b {
		t.Errorf("two runs differ:\n%s", cmp.Diff(a, b))
	}
	if a == fleet(t, 2, 10) {
		t.Error("another seed makes the same cluster")
	}
	if n := strings.Count(a, `"reason":"BackoffLimitExceeded","status":"True","type":"Failed"`); n < 3 {
		t.Errorf("%d Jobs have failed, and 4 machines are gone", n)
	}
}

// TestManyCallersAtOnce: every caller finds its own Job, whatever the others do.
func TestManyCallersAtOnce(t *testing.T) {
	b := newBench(t, gketest.Config{})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			name := fmt.Sprintf("job-%d", i)
			for range 10 {
				created, _ := b.answered(context.WithoutCancel(t.Context()), http.MethodPost, jobs, strings.Replace(idleJob, "llama", name, 1))
				read, _ := b.answered(context.WithoutCancel(t.Context()), http.MethodGet, jobs+"/"+name, "")
				b.answered(context.WithoutCancel(t.Context()), http.MethodGet, allJobs, "")
				deleted, _ := b.answered(context.WithoutCancel(t.Context()), http.MethodDelete, jobs+"/"+name, `{"propagationPolicy":"Background"}`)
				if created != http.StatusCreated || read != http.StatusOK || deleted != http.StatusOK {
					t.Errorf("%s: %d, %d, %d", name, created, read, deleted)
				}
			}
		})
	}
	all.Wait()
}

// FuzzServe: whatever is sent, the answer is an object of the API, and the server goes on.
func FuzzServe(f *testing.F) {
	for _, c := range [][3]string{
		{"POST", jobs, idleJob},
		{"POST", jobs, strings.Replace(idleJob, `"suspend":true,`, `"podFailurePolicy":{"rules":[{"onExitCodes":{"values":[2]}}]},`, 1)},
		{"POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", `{"metadata":{"name":"s"},"spec":{"failurePolicy":{"rules":[{"onJobFailureMessagePatterns":["("]}]},` +
			`"replicatedJobs":[{"name":"a","template":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{}]}}}}}]}}`},
		{"PATCH", jobs + "/kept", `{"spec":{"suspend":false},"metadata":{"labels":null}}`},
		{"PATCH", jobs + "/kept/status", `{"status":{"failed":-3,"conditions":[{"type":"Complete","status":"True"}]}}`},
		{"PUT", jobs + "/kept", `{"metadata":{"name":"kept","ownerReferences":[{"uid":"x"}]}}`},
		{"DELETE", jobs + "/kept", `{"propagationPolicy":"Foreground","gracePeriodSeconds":-1}`},
		{"GET", allJobs + "?labelSelector=a+in+(b,c),!d&limit=1&fieldSelector=metadata.name!=x", ""},
		{"GET", "/api/v1/nodes?continue=x", ""},
		{"GET", "/apis//v1", ""},
		{"POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[1]}}`},
	} {
		f.Add(c[0], c[1], c[2])
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		var o any
		if json.Unmarshal([]byte(body), &o) == nil && large(o) {
			t.Skip("a thousand Pods are only slow")
		}
		b := newBench(t, gketest.Config{})
		b.answered(t.Context(), http.MethodPost, jobs, strings.Replace(idleJob, "llama", "kept", 1))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(body))
		to, err := url.Parse(path)
		if err != nil {
			t.Skip("no HTTP request has such a path")
		}
		r.Method, r.URL = method, to
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		var answer map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer["kind"] == nil || w.Code < 200 || w.Code >= 500 {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		b.clock.Advance(20 * time.Minute)
		if code, _, _, err := b.call(t.Context(), http.MethodGet, allJobs, ""); code != http.StatusOK || err != nil {
			t.Fatalf("afterwards: %d, %v", code, err)
		}
	})
}

// large reports whether a number in an object is too large to try.
func large(o any) bool {
	switch v := o.(type) {
	case float64:
		return v > 50
	case []any:
		for _, x := range v {
			if large(x) {
				return true
			}
		}
	case map[string]any:
		for _, x := range v {
			if large(x) {
				return true
			}
		}
	}
	return false
}
