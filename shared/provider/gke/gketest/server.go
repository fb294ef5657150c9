// Package gketest is the API server of a GKE cluster in one process: an http.Handler with the objects of a training on TPUs. These are
// Jobs, JobSets, Pods, Nodes, Services, Namespaces, Slices of TPU7x, ProvisioningRequests with their PodTemplates, Workloads of Kueue, and
// quotas of how many Jobs there may be. Pods are placed and run, Jobs and JobSets follow their failure policies, and nodes are lost. What owns
// is deleted with what it owns. A Slice, a ProvisioningRequest, a PodTemplate and a Workload stay what their callers write. Objects live in
// memory and on a given clock. It is for tests, replays and simulations, never for production.
//
// It knows what Kubernetes 1.36 and JobSet 0.12 do, as far as somebody who watches such trainings sees it. There is no watch, no
// admission policy, no strategic merge patch, no dry run but of a creation, and no right of a user; a refusal for lack of a right is a Fault. A server is
// deterministic: the same calls at the same times, on the same seed, give the same names and answers. It is safe for concurrent use.
package gketest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Clock is the time that a server lives by. The clock of cloudtputest is one.
type Clock interface {
	// Now is the present.
	Now() time.Time
	// At runs f when the clock reaches t, or as soon as it moves at all when t has passed.
	At(t time.Time, f func())
}

// Config is how a server begins.
type Config struct {
	Clock Clock
	// Token is the bearer token that a caller needs. Empty takes every caller.
	Token string
	// Seed makes UIDs and the ends of names.
	Seed   uint64
	Timing Timing
}

// Timing is how long things take. Zero means the duration in DefaultTiming; a negative duration takes no time.
type Timing struct {
	// Start is how long a Pod takes to be ready once it has a machine. Stop is how long one takes to end that is asked to, if its grace
	// is not over before.
	Start, Stop time.Duration
	// Missed is how long a node may be silent until it counts as unreachable; Evict is how long its Pods stay after that.
	Missed, Evict time.Duration
	// Collect is how long the Pods of a node that is gone stay.
	Collect time.Duration
	// Backoff is how long a Job waits before it makes the next Pod in the place of one that failed.
	Backoff time.Duration
	// Page is how long the rest of a list can be read.
	Page time.Duration
}

// DefaultTiming is what a control plane of Kubernetes 1.36 takes.
var DefaultTiming = Timing{
	Start: 2 * time.Second, Stop: time.Second, Missed: 50 * time.Second, Evict: 300 * time.Second, Collect: 40 * time.Second,
	Backoff: 10 * time.Second, Page: 5 * time.Minute,
}

func (t Timing) or(d Timing) Timing {
	for _, p := range []struct {
		of *time.Duration
		or time.Duration
	}{
		{&t.Start, d.Start},
		{&t.Stop, d.Stop},
		{&t.Missed, d.Missed},
		{&t.Evict, d.Evict},
		{&t.Collect, d.Collect},
		{&t.Backoff, d.Backoff},
		{&t.Page, d.Page},
	} {
		switch {
		case *p.of == 0:
			*p.of = p.or
		case *p.of < 0:
			*p.of = 0
		}
	}
	return t
}

// resource is a kind of object that the server has.
type resource struct {
	group, version, plural, kind string
	namespaced                   bool
	// custom is a resource that a definition brought: its lists name the kind of every item, and a change of one names the version
	// that it is of.
	custom bool
}

func (r resource) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

var (
	namespaces = resource{"", "v1", "namespaces", "Namespace", false, false}
	nodes      = resource{"", "v1", "nodes", "Node", false, false}
	pods       = resource{"", "v1", "pods", "Pod", true, false}
	services   = resource{"", "v1", "services", "Service", true, false}
	templates  = resource{"", "v1", "podtemplates", "PodTemplate", true, false}
	jobs       = resource{"batch", "v1", "jobs", "Job", true, false}
	jobSets    = resource{"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true, true}
	tpuSlices  = resource{"accelerator.gke.io", "v1beta1", "slices", "Slice", false, true}
	quotas     = resource{"", "v1", "resourcequotas", "ResourceQuota", true, false}
	requests   = resource{"autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", true, true}
	workloads  = resource{"kueue.x-k8s.io", "v1beta2", "workloads", "Workload", true, true}

	resources = []resource{namespaces, nodes, pods, services, templates, quotas, jobs, jobSets, tpuSlices, requests, workloads}
)

// Server is the API server of one cluster.
type Server struct {
	clock  Clock
	token  string
	seed   uint64
	timing Timing

	mu      sync.Mutex
	count   uint64 // of names and UIDs
	version uint64 // of the last change
	stored  map[resource]map[string]object
	byUID   map[string]object
	kinds   map[string]resource        // by UID
	owns    map[string]map[string]bool // the UIDs of what an object owns, by its UID
	faults  []*Fault
	calls   []Call
	pages   map[string]page
	texts   map[string]listed // by UID
	wakes   []wake
	// run is what the machines know of the Pods on them, by UID; silent are the nodes that say nothing any more, and since when.
	run    map[string]*process
	silent map[string]time.Time
	// lost is since when a node is gone on which Pods were.
	lost map[string]time.Time
	// retry is when a Job may make the next Pod.
	retry   map[string]time.Time
	changed map[string]bool // UIDs whose owners have to look
	busy    bool
	// told is called when something has changed since seen, the version of then.
	told func()
	seen uint64
}

type page struct {
	rest [][]byte
	of   resource
	at   uint64
	ends time.Time
}

type wake struct {
	at time.Time
	f  func()
}

// Call is a call that came, with the status that it was answered with. Zero says that no answer was sent.
type Call struct {
	Method, Path string
	Status       int
}

// New makes a cluster without nodes, with the namespace default.
func New(c Config) *Server {
	s := &Server{
		clock: c.Clock, token: c.Token, seed: c.Seed, timing: c.Timing.or(DefaultTiming), stored: map[resource]map[string]object{},
		byUID: map[string]object{}, kinds: map[string]resource{}, owns: map[string]map[string]bool{}, pages: map[string]page{}, texts: map[string]listed{}, run: map[string]*process{}, silent: map[string]time.Time{},
		lost: map[string]time.Time{}, retry: map[string]time.Time{}, changed: map[string]bool{},
	}
	for _, r := range resources {
		s.stored[r] = map[string]object{}
	}
	s.add(namespaces, object{"metadata": object{"name": "default"}})
	return s
}

// Fault is what goes wrong with some calls. A call meets the first fault that fits it.
type Fault struct {
	// Verb, Resource and Name select the calls: get, list, create, update, patch or delete; pods; a name. An empty field fits all.
	Verb, Resource, Name string
	// Times is how many calls meet it: one when zero, all when below zero.
	Times int
	// Before runs before the call is looked at, for what another caller does in between.
	Before func()
	// Code and Message refuse the call, which then has no effect: 401 for a token that has expired, 403, 429, 5xx. RetryAfter is how
	// many seconds the caller is told to wait.
	Code, RetryAfter int
	Message          string
	// LoseRequest loses the call before it takes effect, LoseAnswer the answer after that. To the caller they look alike.
	LoseRequest, LoseAnswer bool
	// Slow is how long the answer takes; the call has its effect at once.
	Slow time.Duration
}

// Inject adds a fault after the existing ones. The returned function removes it again.
func (s *Server) Inject(f Fault) (withdraw func()) {
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(g *Fault) bool { return g == &f })
	}
}

// meet is the fault that a call meets, if any.
func (s *Server) meet(verb string, r resource, name string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.Verb != "" && f.Verb != verb || f.Resource != "" && f.Resource != r.plural || f.Name != "" && f.Name != name {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		return *f
	}
	return Fault{}
}

// Renew replaces the token: callers with the former one are refused.
func (s *Server) Renew(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// OnChange calls a function each time after something has changed in the cluster. It may call the server.
func (s *Server) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = f
}

// Calls are the calls since it was last asked.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.calls = nil }()
	return s.calls
}

// Transport reaches the server without a socket.
func (s *Server) Transport() http.RoundTripper { return transport{s} }

type transport struct{ s *Server }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (res *http.Response, err error) {
	w := &answer{header: http.Header{}}
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // it is the very value
				panic(p)
			}
			res, err = nil, io.ErrUnexpectedEOF
		}
	}()
	t.s.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.code, Status: http.StatusText(w.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// maxBody bounds a request, as an API server does.
const maxBody = 3 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1)); err != nil {
			return
		}
	}
	to, ok := route(r.URL.Path)
	verb := to.verb(r.Method)
	f := Fault{}
	if ok {
		f = s.meet(verb, to.resource, to.name)
	}
	if f.Before != nil {
		f.Before()
	}
	var code int
	var result object
	var no *refusal
	switch {
	case f.LoseRequest:
		s.note(r, 0)
		panic(http.ErrAbortHandler)
	case f.Code != 0:
		no = faulty(f.Code, f.Message, f.RetryAfter)
	default:
		code, result, no = s.serve(r, to, ok, verb, body)
	}
	if f.Slow > 0 {
		s.sleep(r, f.Slow)
	}
	if f.LoseAnswer {
		s.note(r, 0)
		panic(http.ErrAbortHandler)
	}
	if no != nil {
		code, result = no.code, no.status()
		if no.after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(no.after))
		}
	}
	s.note(r, code)
	raw := encoded(result)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw) //nolint:errcheck,gosec // the caller may have gone; it is JSON, and no page
}

func (s *Server) note(r *http.Request, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, Call{r.Method, r.URL.RequestURI(), code})
}

// sleep waits by the clock, and no longer than the caller.
func (s *Server) sleep(r *http.Request, d time.Duration) {
	over := make(chan struct{})
	s.clock.At(s.clock.Now().Add(d), func() { close(over) })
	select {
	case <-over:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// target is what a path names.
type target struct {
	resource        resource
	namespace, name string
	sub             string
}

// route reads a path.
func route(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[2:]
	default:
		return t, false
	}
	version, parts := parts[0], parts[1:]
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" {
		t.namespace, parts = parts[1], parts[2:]
	}
	i := slices.IndexFunc(resources, func(r resource) bool {
		return r.group == group && r.version == version && r.plural == parts[0] && (t.namespace == "" || r.namespaced)
	})
	if i < 0 || len(parts) > 3 {
		return t, false
	}
	t.resource = resources[i]
	named := append(parts[1:], "", "")
	t.name, t.sub = named[0], named[1]
	if t.sub != "" && t.sub != "status" || t.name != "" && t.resource.namespaced && t.namespace == "" {
		return t, false
	}
	return t, true
}

func (t target) verb(method string) string {
	switch method {
	case http.MethodGet:
		if t.name == "" {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	}
	return strings.ToLower(method)
}

// serve does what a call asks for, under the lock.
func (s *Server) serve(r *http.Request, to target, ok bool, verb string, body []byte) (int, object, *refusal) {
	s.mu.Lock()
	defer s.release()
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		return 0, nil, &refusal{code: http.StatusUnauthorized, reason: "Unauthorized", message: "Unauthorized"}
	}
	if !ok {
		return 0, nil, &refusal{code: http.StatusNotFound, reason: "NotFound", message: "the server could not find the requested resource", details: object{}}
	}
	return s.carryOut(r, to, verb, body)
}

// carryOut does what a call asks for that may be made here.
func (s *Server) carryOut(r *http.Request, to target, verb string, body []byte) (int, object, *refusal) {
	if len(body) > maxBody {
		return 0, nil, &refusal{code: http.StatusRequestEntityTooLarge, reason: "RequestEntityTooLarge", message: "limit is 3145728"}
	}
	var sent object
	if err := json.Unmarshal(body, &sent); len(body) > 0 && err != nil {
		return 0, nil, badRequest("the object provided is unrecognized: %v", err)
	}
	answer := func(o object, no *refusal) (int, object, *refusal) { return http.StatusOK, shown(to.resource, o), no }
	dry := r.URL.Query().Has("dryRun")
	switch {
	case dry && (verb != "create" || r.URL.Query().Get("dryRun") != "All"):
		return 0, nil, badRequest("this server knows no dry run but All, of a creation")
	case verb == "list":
		o, no := s.list(to, r)
		return http.StatusOK, o, no
	case verb == "get":
		return answer(s.find(to))
	case verb == "create" && to.name == "":
		o, no := s.create(to, sent, dry)
		return http.StatusCreated, shown(to.resource, o), no
	case verb == "update" && to.name != "":
		return answer(s.update(to, sent))
	case verb == "patch" && to.name != "":
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/merge-patch+json" {
			return 0, nil, &refusal{
				code: http.StatusUnsupportedMediaType, reason: "UnsupportedMediaType",
				message: "the body of the request was in an unknown format - accepted media types include: application/merge-patch+json",
			}
		}
		return answer(s.patch(to, sent))
	case verb == "delete" && to.name != "" && to.sub == "":
		o, no := s.delete(to, sent)
		return http.StatusOK, o, no
	}
	return 0, nil, &refusal{
		code: http.StatusMethodNotAllowed, reason: "MethodNotAllowed", message: "the server does not allow this method on the requested resource", details: object{},
	}
}

// shown is an object as an answer has it.
func shown(r resource, o object) object {
	if o == nil {
		return nil
	}
	o = clone(o)
	o["apiVersion"], o["kind"] = r.apiVersion(), r.kind
	return o
}

func (s *Server) find(to target) (object, *refusal) {
	o := s.stored[to.resource][to.namespace+"/"+to.name]
	if o == nil {
		return nil, to.resource.notFound(to.name)
	}
	return o, nil
}

// list answers with a page of a list, in the order of namespace and name.
func (s *Server) list(to target, r *http.Request) (object, *refusal) {
	q := r.URL.Query()
	limit := 0
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, badRequest("limit: Invalid value: %q", v)
		}
		limit = n
	}
	p := page{of: to.resource, at: s.version}
	if token := q.Get("continue"); token != "" {
		kept, ok := s.pages[token]
		if !ok || kept.ends.Before(s.clock.Now()) {
			return nil, &refusal{
				code: http.StatusGone, reason: "Expired",
				message: "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
			}
		}
		p = kept
	} else {
		by, ok := parseSelector(q.Get("labelSelector"))
		if !ok {
			return nil, badRequest("unable to parse requirement: %q", q.Get("labelSelector"))
		}
		if !to.resource.namespaced && strings.Contains(q.Get("fieldSelector"), "metadata.namespace") {
			return nil, badRequest("field label not supported: metadata.namespace")
		}
		for _, key := range slices.Sorted(maps.Keys(s.stored[to.resource])) {
			o := s.stored[to.resource][key]
			if to.namespace != "" && text(o, "metadata", "namespace") != to.namespace {
				continue
			}
			fits, known := fieldsFit(o, q.Get("fieldSelector"))
			if !known {
				return nil, badRequest("%q: field label not supported", q.Get("fieldSelector"))
			}
			if fits && by.fits(field(o, "metadata", "labels")) {
				p.rest = append(p.rest, s.item(to.resource, o))
			}
		}
	}
	meta := object{"resourceVersion": strconv.FormatUint(p.at, 10)}
	items := p.rest
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		token := s.identifier("continue")
		s.pages[token] = page{p.rest[limit:], p.of, p.at, s.clock.Now().Add(s.timing.Page)}
		meta["continue"] = token
		if q.Get("labelSelector")+q.Get("fieldSelector") == "" {
			meta["remainingItemCount"] = len(p.rest) - limit
		}
	}
	return object{"kind": to.resource.kind + "List", "apiVersion": to.resource.apiVersion(), "metadata": meta, "items": items}, nil
}

// encoded is an answer as JSON. The items of a list are encoded already, and json.Marshal would read each of them again.
func encoded(o object) []byte {
	items, list := o["items"].([][]byte)
	if list {
		o = maps.Clone(o)
		delete(o, "items")
	}
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // what was decoded can be encoded
	}
	if list {
		raw = append(raw[:len(raw)-1], `,"items":[`...)
		raw = append(append(raw, bytes.Join(items, []byte(","))...), "]}"...)
	}
	return raw
}

// listed is the text of an object in a list, and its version then.
type listed struct {
	version string
	text    []byte
}

// item is an object as a list has it. Most are as they were when they were listed last.
func (s *Server) item(r resource, o object) []byte {
	version := text(o, "metadata", "resourceVersion")
	if kept := s.texts[uidOf(o)]; kept.version == version {
		return kept.text
	}
	shows := maps.Clone(o)
	delete(shows, "apiVersion")
	delete(shows, "kind")
	if r.custom {
		shows["apiVersion"], shows["kind"] = r.apiVersion(), r.kind
	}
	raw := encoded(shows)
	s.texts[uidOf(o)] = listed{version, raw}
	return raw
}

// identifier makes a UID, or the like.
func (s *Server) identifier(what string) string {
	s.count++
	x := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s|%d|%d", what, s.seed, s.count)))
	return x[:8] + "-" + x[8:12] + "-4" + x[13:16] + "-8" + x[17:20] + "-" + x[20:32]
}

// generate makes a name that is free.
func (s *Server) generate(r resource, namespace, prefix string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	for {
		id := s.identifier("name")
		b := make([]byte, 5)
		for i := range b {
			b[i] = letters[int(id[i]+id[24+i])%len(letters)]
		}
		if name := prefix + string(b); s.stored[r][namespace+"/"+name] == nil {
			return name
		}
	}
}

func (s *Server) now() string { return s.clock.Now().UTC().Format(time.RFC3339) }

// wakeAt has the cluster look again at that time.
func (s *Server) wakeAt(t time.Time) { s.wakes = append(s.wakes, wake{t, s.look}) }

// release lets the controllers work, and then gives the server free. It asks its clock for nothing while it holds the lock.
func (s *Server) release() {
	s.settle()
	wakes := s.wakes
	s.wakes = nil
	told := s.told
	if s.version == s.seen {
		told = nil
	}
	s.seen = s.version
	s.mu.Unlock()
	for _, w := range wakes {
		s.clock.At(w.at, w.f)
	}
	if told != nil {
		told()
	}
}

// look is what the clock calls.
func (s *Server) look() {
	s.mu.Lock()
	s.release()
}
