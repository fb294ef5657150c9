// Package peers moves what crews say to each other: between the workers of a slice over its network, between the slices
// of a Multislice through objects beside the checkpoints.
package peers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pitstop.internal/scripts/pitcrew/agree"
)

// DefaultPort is where worker 0 listens; it is none that libtpu or JAX use.
const DefaultPort = 8791

const (
	path     = "/pitcrew/v1/status"
	holds    = 20 * time.Second
	maxBytes = 256 << 10
)

// message is what a worker sends: how it is, and the version of the plan that it has. Workload keeps crews apart that met
// by a wrong address. Voice is one life of a crew, and Word counts what it has said.
type message struct {
	Workload string       `json:"workload"`
	Knows    string       `json:"knows,omitzero"`
	Voice    string       `json:"voice,omitzero"`
	Word     int          `json:"word,omitzero"`
	Status   agree.Status `json:"status"`
}

// Server is worker 0's ear.
type Server struct {
	// Hold is how long a worker that has the plan waits for another; it has to be shorter than what counts as silence.
	Hold time.Duration

	workload string
	peers    []string
	hear     func(agree.Status)

	mu      sync.Mutex
	plan    agree.Plan
	changed chan struct{}
	workers map[int]contact
}

// contact is what was heard of one worker.
type contact struct {
	status agree.Status
	knows  string
	voice  string
	word   int
	at     time.Time
}

// same reports whether a worker says what it said before; what else stands in a status does not change on its own.
func (c contact) same(s agree.Status) bool {
	return !c.at.IsZero() && c.status.Phase == s.Phase && c.status.Attempt == s.Attempt && c.status.Host == s.Host && c.status.Leaving == s.Leaving
}

// NewServer makes a server that hears the workers at these addresses and, where there are none, whoever speaks.
func NewServer(workload string, peers []string, hear func(agree.Status)) *Server {
	return &Server{Hold: holds, workload: workload, peers: peers, hear: hear, changed: make(chan struct{}), workers: map[int]contact{}}
}

// Publish gives the plan to every worker.
func (s *Server) Publish(p agree.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == s.plan {
		return
	}
	s.plan = p
	close(s.changed)
	s.changed = make(chan struct{})
}

// Known is how many workers have the plan, or need none any more.
func (s *Server) Known() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.workers {
		if c.knows == s.plan.Version || c.status.Gone() {
			n++
		}
	}
	return n
}

// Seen is when each worker was heard last. What it said is told when it says something else: a slice may have 1,536
// workers, and most of the time they have nothing to say.
func (s *Server) Seen() map[int]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[int]time.Time, len(s.workers))
	for w, c := range s.workers {
		seen[w] = c.at
	}
	return seen
}

// Serve answers on l until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() }) //nolint:errcheck // nobody waits for it
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != path || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	if !s.peer(r.RemoteAddr) {
		http.Error(w, "you are no worker of this slice", http.StatusForbidden)
		return
	}
	var m message
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		http.Error(w, "that is no status", http.StatusBadRequest)
		return
	}
	if m.Workload != s.workload {
		http.Error(w, fmt.Sprintf("this is the crew of %s", s.workload), http.StatusConflict)
		return
	}
	if worker := m.Status.Worker; worker < 1 || len(s.peers) > 0 && worker >= len(s.peers) {
		http.Error(w, fmt.Sprintf("worker %d: there are %d, and 0 hears the others", worker, len(s.peers)), http.StatusConflict)
		return
	}
	s.mu.Lock()
	before := s.workers[m.Status.Worker]
	if m.Voice == before.voice && m.Word < before.word {
		s.mu.Unlock()
		http.Error(w, "you have said something else since", http.StatusConflict) // it was overtaken on its way
		return
	}
	same := before.same(m.Status)
	s.workers[m.Status.Worker] = contact{status: m.Status, knows: m.Knows, voice: m.Voice, word: m.Word, at: time.Now()}
	s.mu.Unlock()
	if !same {
		s.hear(m.Status)
	}
	s.mu.Lock()
	over := s.plan.Over && s.plan.Version == m.Knows || m.Status.Gone()
	s.mu.Unlock()
	if over { // there is nothing to wait for
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.hold(w, r, m)
}

// hold answers as soon as there is another plan than the worker knows.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, m message) {
	over := time.NewTimer(s.Hold)
	defer over.Stop()
	for late := false; ; {
		s.mu.Lock()
		plan, changed := s.plan, s.changed
		if plan.Version != "" && (plan.Version != m.Knows || late) {
			s.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(plan) //nolint:errcheck // the worker asks again
			return
		}
		s.mu.Unlock()
		if late {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		select {
		case <-changed:
		case <-over.C:
			late = true
		case <-r.Context().Done():
			return
		}
	}
}

// peer reports whether an address is one of a worker. Names of workers, as a container knows them, are looked up.
func (s *Server) peer(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap()
	if len(s.peers) == 0 {
		return true
	}
	return slices.ContainsFunc(s.peers, func(p string) bool {
		if host, _, err := net.SplitHostPort(p); err == nil {
			p = host
		}
		if a, err := netip.ParseAddr(p); err == nil {
			return a.Unmap() == ip
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p)
		return err == nil && slices.ContainsFunc(all, func(a netip.Addr) bool { return a.Unmap() == ip })
	})
}

// Client is the voice of a worker.
type Client struct {
	url      string
	workload string
	voice    string
	http     *http.Client
	// Retry is the wait after a failure.
	Retry time.Duration

	mu      sync.Mutex
	status  agree.Status
	word    int
	heard   time.Time
	changed chan struct{}
}

// NewClient makes a client that speaks to the worker 0 at this address, host:port.
func NewClient(workload, address string) *Client {
	return &Client{
		url: "http://" + address + path, workload: workload, voice: rand.Text(), Retry: time.Second, heard: time.Now(), changed: make(chan struct{}),
		http: &http.Client{Timeout: holds + 15*time.Second, Transport: &http.Transport{
			Proxy: nil, DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, MaxIdleConnsPerHost: 2,
		}},
	}
}

// Say changes what the worker says; it is sent at once.
func (c *Client) Say(s agree.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = s
	c.word++
	close(c.changed)
	c.changed = make(chan struct{})
}

// Heard is when worker 0 answered last, or when nobody had spoken to it yet.
func (c *Client) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Run speaks until ctx ends. Tell gets every plan, fail the first failure of a row and nil at its end.
func (c *Client) Run(ctx context.Context, tell func(agree.Plan), fail func(error)) {
	knows, over, failed := "", false, false
	for ctx.Err() == nil {
		c.mu.Lock()
		m, changed := c.message(knows), c.changed
		c.mu.Unlock()
		call, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-changed:
				cancel()
			case <-call.Done():
			}
		}()
		p, err := c.ask(call, m)
		interrupted := call.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			c.mu.Lock()
			c.heard = time.Now()
			c.mu.Unlock()
			if failed {
				failed = false
				fail(nil)
			}
			if p.Version != "" && p.Version != knows {
				knows = p.Version
				if over = p.Over; over { // there may be nobody to ask again
					c.part(ctx, knows)
				}
				tell(p)
			}
			if over || m.Status.Gone() { // worker 0 has nothing more to say
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
		case interrupted: // there is something new to say
		default:
			if !failed {
				failed = true
				fail(err)
			}
			t := time.NewTimer(c.Retry)
			select {
			case <-ctx.Done():
			case <-t.C:
			}
			t.Stop()
		}
	}
}

// Part says once more what the worker says, for the last time, and waits until that is heard.
func (c *Client) Part(ctx context.Context) { c.part(ctx, "") }

func (c *Client) part(ctx context.Context, knows string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c.mu.Lock()
	m := c.message(knows)
	c.mu.Unlock()
	_, _ = c.ask(ctx, m) //nolint:errcheck // worker 0 may be gone as well
}

// message is what is to be said now; c is locked.
func (c *Client) message(knows string) message {
	return message{Workload: c.workload, Knows: knows, Voice: c.voice, Word: c.word, Status: c.status}
}

func (c *Client) ask(ctx context.Context, m message) (p agree.Plan, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return p, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return p, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return p, fmt.Errorf("worker 0: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBytes))
	switch {
	case err != nil:
		return p, fmt.Errorf("worker 0: %w", err)
	case res.StatusCode == http.StatusNoContent:
		return p, nil
	case res.StatusCode != http.StatusOK:
		return p, fmt.Errorf("worker 0: answer %d: %.200s", res.StatusCode, bytes.TrimSpace(text))
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("worker 0: %w", err)
	}
	return p, nil
}
