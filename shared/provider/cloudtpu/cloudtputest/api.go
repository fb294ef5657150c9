// Package cloudtputest is the Cloud TPU API in one process: an http.Handler that answers as v2alpha1 and v2 do, and for legacy
// TPU Nodes as v1 and v1alpha1 do. v1 answers by gRPC too. Nodes and queued resources live in memory and on a given clock, and
// its caller can make things go wrong in the world around them. It is for tests, replays and simulations, never for production.
//
// An API is deterministic: the same calls and acts at the same times, on the same seed, give the same names, numbers and
// answers. It is safe for concurrent use. What it tells an observer and what it asks of its clock it tells and asks in
// order, one at a time and without holding its lock, so an observer may call it back.
package cloudtputest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/grpc"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

const (
	service = "tpu.googleapis.com"
)

// Unlimited is the capacity of a zone that never refuses.
const Unlimited = -1

// Config is how an API begins.
type Config struct {
	// Project is the one whose TPUs these are: "demo" when empty. Calls about others are not permitted.
	Project string
	// Clock is the time; a ManualClock at the start of the year 2026 when nil.
	Clock Clock
	// Seed makes identifiers and host names.
	Seed uint64
	// Zones is how many slices each zone, or a place that ParsePlace reads, holds at a time, or Unlimited. A zone that is not named does not offer the
	// accelerator at all.
	Zones map[string]int
	// Principal is the default caller.
	Principal string
	// PageSize is how many items a page of a listing has at most: 100 when zero.
	PageSize int
	// Mingled has each version of the API show the nodes and the operations of the other too. Nobody says whether it does.
	Mingled bool
	// Timing is how long things take. Zero means the duration in DefaultTiming; a negative duration takes no time.
	Timing Timing
}

// Timing is how long things take.
type Timing struct {
	// Create, Delete, Stop and Start are the lives of these operations on a node.
	Create, Delete, Stop, Start time.Duration
	// Refuse is how long a creation goes on before it ends for want of capacity.
	Refuse time.Duration
	// Patch is the life of an update, Perform that of the operation that starts maintenance.
	Patch, Perform time.Duration
	// Maintenance is how long maintenance lasts that was started by a call.
	Maintenance time.Duration
	// Accept is the life of the operation that creates a queued resource; Queue is how long that waits at least; Suspend
	// is how long it takes from the loss of a node to the end of the others; Linger is how long a queued resource can
	// still be read after its deletion is done.
	Accept, Queue, Suspend, Linger time.Duration
	// Retain is how long an operation that has ended can be read, and Remember how long its request ID is known.
	Retain, Remember time.Duration
}

// DefaultTiming is what others have measured, as far as anybody has.
var DefaultTiming = Timing{
	Create: 5 * time.Minute, Delete: 110 * time.Second, Stop: time.Minute, Start: 3 * time.Minute,
	Refuse: 20 * time.Second, Patch: -1, Perform: 5 * time.Second, Maintenance: 20 * time.Minute,
	Accept: 5 * time.Second, Queue: 30 * time.Second, Suspend: 2 * time.Minute, Linger: 20 * time.Second,
	Retain: time.Hour, Remember: 24 * time.Hour,
}

// Faster is how long things take where they go so many times as fast. How long operations and request IDs are kept stays.
func (t Timing) Faster(times float64) Timing {
	for _, d := range []*time.Duration{
		&t.Create, &t.Delete, &t.Stop, &t.Start, &t.Refuse, &t.Patch, &t.Perform, &t.Maintenance, &t.Accept, &t.Queue, &t.Suspend, &t.Linger,
	} {
		if *d > 0 {
			*d = max(time.Duration(float64(*d)/times), 1) // 0 would be the default
		}
	}
	return t
}

func (t Timing) orDefault() Timing {
	for _, p := range []struct {
		d    *time.Duration
		than time.Duration
	}{
		{&t.Create, DefaultTiming.Create},
		{&t.Delete, DefaultTiming.Delete},
		{&t.Stop, DefaultTiming.Stop},
		{&t.Start, DefaultTiming.Start},
		{&t.Refuse, DefaultTiming.Refuse},
		{&t.Patch, DefaultTiming.Patch},
		{&t.Perform, DefaultTiming.Perform},
		{&t.Maintenance, DefaultTiming.Maintenance},
		{&t.Accept, DefaultTiming.Accept},
		{&t.Queue, DefaultTiming.Queue},
		{&t.Suspend, DefaultTiming.Suspend},
		{&t.Linger, DefaultTiming.Linger},
		{&t.Retain, DefaultTiming.Retain},
		{&t.Remember, DefaultTiming.Remember},
	} {
		if *p.d == 0 {
			*p.d = p.than
		}
		*p.d = max(*p.d, 0)
	}
	return t
}

// API is a Cloud TPU API and its world.
type API struct {
	project   string
	principal string
	pageSize  int
	mingled   bool
	clock     Clock
	timing    Timing

	mu       sync.Mutex
	observer func(Event)
	seed     uint64
	// made is how many numbers were made about each thing, seqs how many events there were.
	made map[string]uint64
	seqs map[eventKey]uint64
	// room is how many slices each place holds at a time; a zone that is not there is not offered.
	room map[view.Place]int
	// quota is how many chips the project may hold in a zone; a zone that is not named has none.
	quota map[string]int
	// homes says of short names in which zones or regions something is called so.
	homes    map[string][]string
	nodes    map[key]*node
	queues   map[key]*queue
	waiting  []*queue // in the order in which they came
	ops      []*operation
	past     []*operation
	opByName map[string]*operation
	requests map[string]*operation
	faults   []*Fault
	blocked  bool
	guests   func(zone, name string, worker int) (value string, ok bool)

	// stuck is how much longer queued resources are in PROVISIONING.
	stuck time.Duration
	// listed are the answers to listings since something changed last.
	listed map[string]*listing
	// formerServer serves v1.
	formerOnce   sync.Once
	formerServer *grpc.Server
	// todo are the calls to make once the lock is free; handing says that a goroutine is making them.
	todo    []func()
	handing bool
}

// key names a resource within the project.
type key struct{ zone, name string }

// New returns an empty API.
func New(c Config) *API {
	if c.Project == "" {
		c.Project = "demo"
	}
	if c.Clock == nil {
		c.Clock = NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	if c.Principal == "" {
		c.Principal = "pitstop@" + c.Project + ".iam.gserviceaccount.com"
	}
	if c.PageSize == 0 {
		c.PageSize = 100
	}
	a := &API{
		project: c.Project, principal: c.Principal, pageSize: c.PageSize, mingled: c.Mingled, clock: c.Clock, timing: c.Timing.orDefault(),
		seed: c.Seed, made: map[string]uint64{}, seqs: map[eventKey]uint64{}, room: map[view.Place]int{}, quota: map[string]int{}, homes: map[string][]string{}, nodes: map[key]*node{}, queues: map[key]*queue{},
		opByName: map[string]*operation{}, requests: map[string]*operation{},
	}
	for text, slices := range c.Zones {
		at, err := ParsePlace(text)
		if err != nil { // a log entry may name its zone as it likes; who lets a person write places checks them
			at = view.Place{Zone: text}
		}
		a.opens(at.Zone)
		a.room[at] = slices
	}
	return a
}

// Observe sets the one observer: it gets every event, in order and one at a time.
func (a *API) Observe(f func(Event)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.observer = f
}

// do changes the state and then hands out what follows.
func (a *API) do(f func()) {
	a.look(func() {
		a.listed = nil
		f()
	})
}

// look is do for calls that change nothing in a listing.
func (a *API) look(f func()) {
	func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		f()
	}()
	a.hand()
}

// hand gives events to the observer and alarms to the clock. Who finds another at it leaves it to them, so that the order
// stays.
func (a *API) hand() {
	for {
		a.mu.Lock()
		todo := a.todo
		if a.handing || len(todo) == 0 {
			a.mu.Unlock()
			return
		}
		a.todo, a.handing = nil, true
		a.mu.Unlock()
		func() {
			defer func() {
				a.mu.Lock()
				a.handing = false
				a.mu.Unlock()
			}()
			for _, f := range todo {
				f()
			}
		}()
	}
}

// eventKey is what the numbers of events are counted by.
type eventKey struct{ resource, call string }

// emit tells the observer.
func (a *API) emit(e Event) {
	e.Time, e.Project = a.clock.Now(), a.project
	k := eventKey{resource: e.Resource()}
	if e.Kind == Called {
		k.call = e.Method
	}
	a.seqs[k]++
	if e.Seq = a.seqs[k]; a.observer == nil {
		return
	}
	f := a.observer
	a.todo = append(a.todo, func() { f(e) })
}

// after changes the state when d has passed.
func (a *API) after(d time.Duration, f func()) {
	t := a.clock.Now().Add(d)
	a.todo = append(a.todo, func() { a.clock.At(t, func() { a.do(f) }) })
}

// random is the next number about a thing, and does not depend on the numbers drawn for others: FNV-1a and splitmix64.
func (a *API) random(about string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(about))
	a.made[about]++
	z := (a.seed ^ h.Sum64()) + a.made[about]*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stamp is a time as the API writes it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// status is an error of google.rpc.Status.
type status struct {
	code    int
	message string
}

// The codes of google.rpc.Code that the API uses.
const (
	cancelled          = 1
	invalidArgument    = 3
	deadlineExceeded   = 4
	notFound           = 5
	alreadyExists      = 6
	permissionDenied   = 7
	resourceExhausted  = 8
	failedPrecondition = 9
	aborted            = 10
	unimplemented      = 12
	internal           = 13
)

// codes are the names and HTTP statuses of the codes.
// https://cloud.google.com/apis/design/errors#handling_errors
var codes = map[int]struct {
	name string
	http int
}{
	cancelled: {"CANCELLED", 499}, 2: {"UNKNOWN", 500}, invalidArgument: {"INVALID_ARGUMENT", 400},
	deadlineExceeded: {"DEADLINE_EXCEEDED", 504}, notFound: {"NOT_FOUND", 404}, alreadyExists: {"ALREADY_EXISTS", 409},
	permissionDenied: {"PERMISSION_DENIED", 403}, resourceExhausted: {"RESOURCE_EXHAUSTED", 429},
	failedPrecondition: {"FAILED_PRECONDITION", 400}, aborted: {"ABORTED", 409}, 11: {"OUT_OF_RANGE", 400},
	unimplemented: {"UNIMPLEMENTED", 501}, internal: {"INTERNAL", 500}, 14: {"UNAVAILABLE", 503},
	15: {"DATA_LOSS", 500}, 16: {"UNAUTHENTICATED", 401},
}

func refuse(code int, format string, args ...any) *status {
	return &status{code, fmt.Sprintf(format, args...)}
}

// bad is the API's wording of most refusals.
func (a *API) bad(format string, args ...any) *status {
	return &status{invalidArgument, "Cloud TPU received a bad request. " + fmt.Sprintf(format, args...) + a.eid()}
}

// eid is the identifier at the end of a message; it differs each time.
func (a *API) eid() string { return fmt.Sprintf(" [EID: %#x]", a.random("EID")) }

// answer is what goes back to a caller. One to a direct call has a value in place of a body, unless the call is refused.
type answer struct {
	http  int
	body  []byte
	kind  string
	value any
	// refused is why there is no value; nil also for a page that is not the API's.
	refused *status
}

// listing is the answer to a listing, and its body once somebody has asked for it over the wire.
type listing struct {
	value any
	body  []byte
}

func (s *status) answer(httpStatus int) answer {
	c, ok := codes[s.code]
	if !ok {
		c.name, c.http = "UNKNOWN", 500
	}
	if httpStatus == 0 {
		httpStatus = c.http
	}
	body, err := json.Marshal(map[string]any{
		"error": map[string]any{"code": httpStatus, "message": s.message, "status": c.name},
	})
	if err != nil {
		panic("cloudtputest: " + err.Error())
	}
	return answer{http: httpStatus, body: body, kind: jsonKind, refused: s}
}

// ServeHTTP implements http.Handler: every version over HTTP, and v1 by gRPC too where the server speaks HTTP/2. The principal
// of a call is the bearer token that it carries, if it does.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		a.former().ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c := &request{
		path: r.URL.Path, http: r.Method, query: r.URL.Query(), raw: r.URL.RawQuery, body: body, principal: a.principal,
	}
	if p, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && p != "" {
		c.principal = p
	}
	out, lost := a.serve(c)
	if lost {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", out.kind)
	w.WriteHeader(out.http)
	_, _ = w.Write(out.body) //nolint:errcheck // the caller sees that it is short
}

// serve answers a call, or says that its answer is lost.
func (a *API) serve(c *request) (out answer, lost bool) {
	m, refused := a.route(c)
	var f *Fault
	if refused == nil && !c.owner {
		if f = a.fault(m, c); f != nil && f.Before != nil {
			f.Before()
		}
	}
	do := a.do
	if c.http == http.MethodGet {
		do = a.look
	}
	do(func() {
		e := Event{
			Kind: Called, Zone: c.zone, Method: c.called, Principal: c.principal, RequestID: c.query.Get("requestId"), Legacy: c.legacy(),
			Version: c.version,
		}
		if c.http == http.MethodPost && c.id == "" {
			at := askedPlace(c.zone, c.collection, c.body)
			e.Accelerator, e.Capacity = at.Accelerator, at.Capacity
		}
		switch c.collection {
		case "nodes":
			e.Node = c.target()
		case "queuedResources":
			e.QueuedResource = c.target()
		}
		if n := a.nodes[key{c.zone, e.Node}]; n != nil {
			e.Incarnation = n.incarnation()
		}
		switch {
		case refused != nil:
			out = refused.answer(0)
		case f != nil && f.LoseRequest:
			e.Error, lost = "the call was lost", true
			a.emit(e)
			return
		case f != nil && f.Code != 0:
			refused = &status{f.Code, f.Message}
			out = refused.answer(f.HTTP)
		case f != nil && f.HTTP != 0:
			// Not the API itself: some proxy on the way, which knows neither JSON nor codes.
			refused = refuse(2, "%s", http.StatusText(f.HTTP))
			out = answer{http: f.HTTP, body: []byte("<!DOCTYPE html><title>Error " + strconv.Itoa(f.HTTP) + "</title>"), kind: "text/html"}
		default:
			if f != nil {
				c.fault = *f
			}
			out, refused = a.answer(m, c)
			lost = c.fault.LoseAnswer
		}
		if e.Status = out.http; refused != nil {
			e.Code, e.Error = refused.code, refused.message
		}
		a.emit(e)
	})
	return out, lost
}

// answer carries a call out.
func (a *API) answer(m *method, c *request) (answer, *status) {
	a.forget()
	if !a.offers(c.zone) && c.zone != "-" && c.http == http.MethodGet && c.id == "" && c.collection != "locations" {
		refused := refuse(permissionDenied, "Permission denied on 'locations/%s' (or it may not exist).", c.zone)
		return refused.answer(0), refused
	}
	// Listings are requested again and again, mostly without a change.
	name := ""
	if (m.name == "ListNodes" || m.name == "ListQueuedResources") && !c.fault.Unreachable {
		name = c.path + "?" + c.raw
	}
	l := a.listed[name]
	if l == nil {
		v, refused := m.serve(a, c)
		if refused != nil {
			return refused.answer(0), refused
		}
		l = &listing{value: as(c.version, v)}
	}
	if name != "" {
		if a.listed == nil {
			a.listed = map[string]*listing{}
		}
		a.listed[name] = l
	}
	if c.direct {
		return answer{http: http.StatusOK, value: l.value}, nil
	}
	if l.body == nil {
		l.body = marshal(l.value)
	}
	return answer{http: http.StatusOK, body: l.body, kind: jsonKind}, nil
}

const jsonKind = "application/json; charset=UTF-8"

// Transport calls the API without a socket, as its default principal.
func (a *API) Transport() http.RoundTripper { return a.TransportAs("") }

// TransportAs calls the API without a socket, as that principal.
func (a *API) TransportAs(principal string) http.RoundTripper { return transport{a, principal} }

type transport struct {
	api       *API
	principal string
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("cloudtputest: read request: %w", err)
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	c := &request{path: r.URL.Path, http: r.Method, query: r.URL.Query(), raw: r.URL.RawQuery, body: body, principal: t.principal}
	if c.principal == "" {
		c.principal = t.api.principal
	}
	out, lost := t.api.serve(c)
	if lost {
		return nil, errLost
	}
	return &http.Response{
		Status: strconv.Itoa(out.http) + " " + http.StatusText(out.http), StatusCode: out.http,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {out.kind}, "Content-Length": {strconv.Itoa(len(out.body))}},
		ContentLength: int64(len(out.body)), Body: io.NopCloser(bytes.NewReader(out.body)),
	}, nil
}

// errLost is what a caller sees of an answer that never arrives.
var errLost = errors.New("connection reset by peer")

// Project is the project whose TPUs these are.
func (a *API) Project() string { return a.project }

// Zones are the zones that there are, in order.
func (a *API) Zones() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.zoneNames()
}

// zoneNames are the zones that there are, in order.
func (a *API) zoneNames() (zones []string) {
	for at := range a.room {
		if at == (view.Place{Zone: at.Zone}) {
			zones = append(zones, at.Zone)
		}
	}
	slices.Sort(zones)
	return zones
}

// parent is the API's name of a zone.
func (a *API) parent(zone string) string { return "projects/" + a.project + "/locations/" + zone }

// noticeAPI is a notice as the API writes it.
func noticeAPI(n *events.Notice) *api.UpcomingMaintenance {
	if n == nil {
		return nil
	}
	m := &api.UpcomingMaintenance{Type: "SCHEDULED", MaintenanceStatus: "PENDING", CanReschedule: n.CanReschedule}
	if n.Unscheduled {
		m.Type = "UNSCHEDULED"
	}
	if n.Status == events.NoticeOngoing {
		m.MaintenanceStatus = "ONGOING"
	}
	for _, t := range []struct {
		to *string
		t  time.Time
	}{{&m.WindowStartTime, n.WindowStart}, {&m.WindowEndTime, n.WindowEnd}, {&m.LatestWindowStartTime, n.LatestWindowStart}} {
		if !t.t.IsZero() {
			*t.to = stamp(t.t)
		}
	}
	return m
}
