// Package metadatatest is a metadata server in one process: values with etags, hanging requests, recursive directories,
// guest attributes with their limit, and faults.
package metadatatest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// perMinute is how many queries of guest attributes a machine may make.
// https://cloud.google.com/compute/docs/metadata/manage-guest-attributes
const perMinute = 10

// Server is a simulated metadata server. It is safe for concurrent use.
type Server struct {
	now func() time.Time

	mu      sync.Mutex
	values  map[string]string // by path, without computeMetadata/v1
	changed chan struct{}
	fault   Fault
	guest   []time.Time
	refused int
	answers []Answered
	waiting int
}

// Fault is how the server misbehaves.
type Fault struct {
	// Status answers every request with it, Slow delays each, Gone closes the connection without a word.
	Status int
	Slow   time.Duration
	Gone   bool
}

// Answered is an answer that told of a change.
type Answered struct {
	Path string
	At   time.Time
}

// New makes a server of a machine in this project and zone.
func New(project, zone, host string, now func() time.Time) *Server {
	return &Server{now: now, changed: make(chan struct{}), values: map[string]string{
		"project/project-id":                      project,
		"instance/id":                             "4711",
		"instance/name":                           host,
		"instance/hostname":                       host + ".c." + project + ".internal",
		"instance/zone":                           "projects/1234/zones/" + zone,
		"instance/maintenance-event":              "NONE",
		"instance/preempted":                      "FALSE",
		"instance/service-accounts/default/email": "crew@" + project + ".iam.gserviceaccount.com",
	}}
}

// Start serves on a loopback address, and returns it.
func (s *Server) Start() (host string, stop func()) {
	h := httptest.NewServer(s)
	return strings.TrimPrefix(h.URL, "http://"), func() { h.CloseClientConnections(); h.Close() }
}

// TPU makes the machine a worker of a TPU.
func (s *Server) TPU(node, accelerator string, worker int, peers ...string) {
	endpoints := make([]string, len(peers))
	for i, p := range peers {
		endpoints[i] = "unknown:unknown:" + p
	}
	s.Set("instance/attributes/instance-id", node)
	s.Set("instance/attributes/accelerator-type", accelerator)
	s.Set("instance/attributes/agent-worker-number", strconv.Itoa(worker))
	s.Set("instance/attributes/worker-network-endpoints", strings.Join(endpoints, ","))
	s.Set("instance/attributes/tpu-env", fmt.Sprintf("ACCELERATOR_TYPE: '%s'\nNODE_ID: '%s'\nWORKER_ID: '%d'\n", accelerator, node, worker))
}

// Set changes a value, and answers every request that waits for a change.
func (s *Server) Set(path, value string) { s.change(func() { s.values[path] = value }) }

// Remove removes a value.
func (s *Server) Remove(path string) { s.change(func() { delete(s.values, path) }) }

// Break makes the server misbehave; the zero fault mends it.
func (s *Server) Break(f Fault) { s.change(func() { s.fault = f }) }

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Guest is a guest attribute, and how many queries were refused.
func (s *Server) Guest(namespace, key string) (value string, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values["instance/guest-attributes/"+namespace+"/"+key], s.refused
}

// Answers are the answers that told of a change, in their order.
func (s *Server) Answers() []Answered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

// Waiting is how many requests wait for a change.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.fault
	s.mu.Unlock()
	if f.Slow > 0 {
		t := time.NewTimer(f.Slow)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
	if f.Gone {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Metadata-Flavor", "Google")
	path, ok := strings.CutPrefix(r.URL.Path, "/computeMetadata/v1/")
	switch {
	case f.Status != 0:
		http.Error(w, "injected", f.Status)
	case r.Header.Get("Metadata-Flavor") != "Google":
		http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
	case !ok:
		http.NotFound(w, r)
	case strings.HasPrefix(path, "instance/guest-attributes"):
		s.guestAttributes(w, r, path)
	case r.Method != http.MethodGet:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	default:
		s.get(w, r, path)
	}
}

// get answers with a value, when it has changed if that is asked for.
func (s *Server) get(w http.ResponseWriter, r *http.Request, path string) {
	q := r.URL.Query()
	waits, last := q.Get("wait_for_change") == "true", q.Get("last_etag")
	var over <-chan time.Time
	if n, err := strconv.Atoi(q.Get("timeout_sec")); err == nil {
		t := time.NewTimer(time.Duration(n) * time.Second)
		defer t.Stop()
		over = t.C
	}
	timedOut := false
	for {
		s.mu.Lock()
		text, found := s.render(path, q.Get("recursive") == "true")
		changed, fault := s.changed, s.fault
		s.mu.Unlock()
		switch etag := etagOf(text); {
		case fault.Gone:
			panic(http.ErrAbortHandler)
		case fault.Status != 0:
			http.Error(w, "injected", fault.Status)
			return
		case !found:
			http.Error(w, "Not Found", http.StatusNotFound)
			return
		case !waits || etag != last || timedOut:
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Type", "application/text")
			if waits && !timedOut {
				s.mu.Lock()
				s.answers = append(s.answers, Answered{Path: path, At: time.Now()})
				s.mu.Unlock()
			}
			_, _ = io.WriteString(w, text) //nolint:errcheck // the client has left
			return
		}
		if timedOut = s.wait(r, changed, over); r.Context().Err() != nil {
			return
		}
	}
}

// wait waits for a change, for the end of the time that the client gave, or for the client to leave.
func (s *Server) wait(r *http.Request, changed <-chan struct{}, over <-chan time.Time) (timedOut bool) {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting += n
	}
	count(1)
	defer count(-1)
	select {
	case <-changed:
	case <-over:
		return true
	case <-r.Context().Done():
	}
	return false
}

func etagOf(text string) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) //nolint:errcheck // a hash takes everything
	return strconv.FormatUint(h.Sum64(), 16)
}

// render is a value, or a directory as JSON. The lock is held.
func (s *Server) render(path string, recursive bool) (text string, found bool) {
	if v, ok := s.values[path]; ok {
		return v, true
	}
	dir := path
	if dir != "" && !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	if !recursive {
		return "", false
	}
	tree := map[string]any{}
	for p, v := range s.values {
		rest, ok := strings.CutPrefix(p, dir)
		if !ok || strings.HasPrefix(p, "instance/guest-attributes/") {
			continue
		}
		found = true
		insert(tree, strings.Split(rest, "/"), v, strings.HasPrefix(p, "instance/attributes/"), path == "instance/attributes/")
	}
	if !found && path != "instance/attributes/" && path != "" {
		return "", false
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return "", false
	}
	return string(raw), true
}

// insert puts a value into a tree. The names of the server's own values are written in camel case, those of attributes as
// their owner wrote them, and a number is a number.
func insert(tree map[string]any, names []string, value string, attribute, asWritten bool) {
	name := names[0]
	if !asWritten {
		name = camel(name)
	}
	if len(names) > 1 {
		sub, ok := tree[name].(map[string]any)
		if !ok {
			sub = map[string]any{}
			tree[name] = sub
		}
		insert(sub, names[1:], value, attribute, asWritten || attribute && name == "attributes")
		return
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && !attribute {
		tree[name] = n
		return
	}
	var object map[string]any
	if !attribute && json.Unmarshal([]byte(value), &object) == nil {
		tree[name] = object
		return
	}
	tree[name] = value
}

func camel(name string) string {
	parts := strings.Split(name, "-")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

func (s *Server) guestAttributes(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.guest = slices.DeleteFunc(s.guest, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(s.guest) >= perMinute {
		s.refused++
		http.Error(w, "too many queries", http.StatusTooManyRequests)
		return
	}
	s.guest = append(s.guest, now)
	switch r.Method {
	case http.MethodPut:
		body, err := io.ReadAll(io.LimitReader(r.Body, 256<<10))
		if err != nil || len(strings.Split(path, "/")) != 4 {
			http.Error(w, "a guest attribute is namespace/key", http.StatusBadRequest)
			return
		}
		s.values[path] = string(body)
	case http.MethodGet:
		v, ok := s.values[path]
		if !ok {
			http.Error(w, "Not Found", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, v) //nolint:errcheck // the client has left
	default:
		http.Error(w, "only GET and PUT", http.StatusMethodNotAllowed)
	}
}
