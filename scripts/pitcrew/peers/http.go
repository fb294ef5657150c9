// Package peers moves what crews say to each other: between the workers of a slice over its network, between the slices
// of a Multislice through objects beside the checkpoints.
//
// Over the network a crew believes only messages that are signed with the Key that the crews of the slice share. A worker's
// question is signed as a whole. Worker 0's answer is signed together with the signature of the question, so that it
// answers no other. Worker 0 gives each voice a challenge, random and never given before, and hears only questions that
// bear the last one that it gave to that worker, each with a higher word than the one before: a question that was heard
// once is never heard again.
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
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
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

// signatureHeader bears the signature of a question or an answer.
const signatureHeader = "Pitcrew-Signature"

// message is a worker's question: how it is, the version of the plan that it has, and which wait of worker 0 it knows of;
// a crew of an older release does not say the last. Workload keeps crews apart that met by a wrong address. Voice is random and names one life of a crew; Word counts its questions. Challenge is worker
// 0's last one.
type message struct {
	Workload  string       `json:"workload"`
	Knows     string       `json:"knows,omitzero"`
	Waits     *string      `json:"waits,omitempty"`
	Voice     string       `json:"voice,omitzero"`
	Word      int          `json:"word,omitzero"`
	Challenge string       `json:"challenge,omitzero"`
	Status    agree.Status `json:"status"`
}

// Server is worker 0's ear.
type Server struct {
	// Hold is how long a worker that has the plan waits for another; it has to be shorter than what counts as silence.
	Hold time.Duration
	// Refused gets messages about words that are not signed with the key, few of them; it may be nil.
	Refused func(error)

	workload string
	peers    []string
	hear     func(agree.Status)
	// life is the secret from which this server's challenges come.
	life Key

	mu      sync.Mutex
	key     Key
	plan    agree.Plan
	changed chan struct{}
	workers map[int]contact
	// refused are the addresses whose words were refused and told of since a moment, and doubted says that words were
	// signed with another key.
	refused map[string]bool
	since   time.Time
	doubted bool
}

// contact is the last word of one worker. Challenge is the one that its questions bear.
type contact struct {
	status    agree.Status
	knows     string
	challenge string
	word      int
	at        time.Time
}

// same reports whether a worker repeats its last status; the other fields of a status do not change on their own.
func (c contact) same(s agree.Status) bool {
	return !c.at.IsZero() && c.status.Phase == s.Phase && c.status.Attempt == s.Attempt && c.status.Host == s.Host && c.status.Leaving == s.Leaving
}

// NewServer makes a server that hears only the workers at these addresses. Without addresses it hears every sender. It
// believes nobody until it has a key.
func NewServer(workload string, peers []string, hear func(agree.Status)) *Server {
	return &Server{
		Hold: holds, workload: workload, peers: peers, hear: hear, life: NewKey(),
		changed: make(chan struct{}), workers: map[int]contact{}, refused: map[string]bool{},
	}
}

// SetKey gives it the key.
func (s *Server) SetKey(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = k
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

// Seen is when each worker was heard last. A status is passed on only when it changes: a slice may have 1,536
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
	question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err != nil {
		http.Error(w, "that is no status", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	key := s.key
	s.mu.Unlock()
	// A refusal is not signed: an unsigned question gets no signature.
	signature := r.Header.Get(signatureHeader)
	switch {
	case signature == "":
		s.refuse(r.RemoteAddr, "speaks unsigned, and is not heard: its pitcrew is older than this one, or it is another program")
		http.Error(w, "worker 0 hears only signed words: this pitcrew is older than its own", http.StatusUnauthorized)
		return
	case !key.signed(signature, questionDomain, question):
		s.mu.Lock()
		s.doubted = true
		s.mu.Unlock()
		s.refuse(r.RemoteAddr, "does not sign with the key of this worker, and is not heard until both have the same")
		http.Error(w, "worker 0 has another key", http.StatusForbidden)
		return
	}
	code, answer := s.answer(r.Context(), question)
	if code == 0 {
		return // nobody waits for it
	}
	w.Header().Set(signatureHeader, key.sign(answerDomain, []byte(signature), []byte(strconv.Itoa(code)), answer))
	w.WriteHeader(code)
	_, _ = w.Write(answer) //nolint:errcheck // the worker asks again
}

// Doubted reports whether words were signed with another key since it was asked last: this one may have been replaced.
func (s *Server) Doubted() (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.doubted = s.doubted, false
	return was
}

// The bounds of messages about refused words: so many addresses, once each, in so long.
const (
	refusedMost  = 16
	refusedEvery = 10 * time.Minute
)

// refuse tells of words that are not believed.
func (s *Server) refuse(remote, why string) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	s.mu.Lock()
	if now := time.Now(); now.Sub(s.since) > refusedEvery {
		clear(s.refused)
		s.since = now
	}
	tells := s.Refused != nil && len(s.refused) < refusedMost && !s.refused[host]
	s.refused[host] = s.refused[host] || tells
	s.mu.Unlock()
	if tells {
		s.Refused(fmt.Errorf("%s %s", host, why))
	}
}

// answer hears a signed question and returns the answer; code 0 is none, because the asker has gone.
func (s *Server) answer(ctx context.Context, question []byte) (code int, answer []byte) {
	var m message
	if err := json.Unmarshal(question, &m); err != nil {
		return http.StatusBadRequest, []byte("that is no status")
	}
	if m.Workload != s.workload {
		return http.StatusConflict, fmt.Appendf(nil, "this is the crew of %s", s.workload)
	}
	if worker := m.Status.Worker; worker < 1 || len(s.peers) > 0 && worker >= len(s.peers) {
		return http.StatusConflict, fmt.Appendf(nil, "worker %d: there are %d, and 0 hears the others", worker, len(s.peers))
	}
	s.mu.Lock()
	before := s.workers[m.Status.Worker]
	next := s.challenge(m.Status.Worker, before)
	known := before.challenge != "" && m.Challenge == before.challenge
	switch {
	case !known && m.Challenge != next: // another life of the crew, or words from before
		s.mu.Unlock()
		return http.StatusUnauthorized, []byte(next)
	case known && m.Word <= before.word:
		s.mu.Unlock()
		return http.StatusConflict, []byte("you have said something else since") // it was overtaken on its way
	}
	same := before.same(m.Status)
	s.workers[m.Status.Worker] = contact{
		status: m.Status, knows: m.Knows, challenge: m.Challenge, word: m.Word, at: time.Now(),
	}
	s.mu.Unlock()
	if !same {
		s.hear(m.Status)
	}
	s.mu.Lock()
	over := s.plan.Over && s.plan.Version == m.Knows || m.Status.Gone()
	s.mu.Unlock()
	if over { // there is nothing to wait for
		return http.StatusNoContent, nil
	}
	return s.hold(ctx, m.Knows, m.Waits)
}

// challenge is what the next life of a worker's crew has to say. It follows from this server's secret and from the last
// challenge that was taken, so it was never given before, and nothing has to be kept for those who only ask for it.
func (s *Server) challenge(worker int, before contact) string {
	return s.life.sign(challengeDomain, []byte(strconv.Itoa(worker)), []byte(before.challenge))
}

// hold answers as soon as there is another plan than the worker knows, or another wait.
func (s *Server) hold(ctx context.Context, knows string, waits *string) (code int, answer []byte) {
	over := time.NewTimer(s.Hold)
	defer over.Stop()
	for late := false; ; {
		s.mu.Lock()
		plan, changed := s.plan, s.changed
		s.mu.Unlock()
		if plan.Version != "" && (plan.Version != knows || late) || waits != nil && *waits != plan.Waits {
			answer, err := json.Marshal(plan)
			if err != nil {
				return http.StatusInternalServerError, []byte(err.Error())
			}
			return http.StatusOK, answer
		}
		if late {
			return http.StatusNoContent, nil
		}
		select {
		case <-changed:
		case <-over.C:
			late = true
		case <-ctx.Done():
			return 0, nil
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
	address  string
	workload string
	voice    string
	http     *http.Client
	// Retry is the wait after a failure.
	Retry time.Duration

	mu        sync.Mutex
	key       Key
	status    agree.Status
	word      int
	challenge string
	waits     string // what worker 0 waits for, as it said it last
	heard     time.Time
	answered  bool
	changed   chan struct{}
}

// NewClient makes a client that speaks to the worker 0 at this address, host:port. It says nothing until it has a key.
func NewClient(workload, address string) *Client {
	return &Client{
		address: address, workload: workload, voice: rand.Text(), Retry: time.Second,
		heard: time.Now(), changed: make(chan struct{}),
		http: &http.Client{Timeout: holds + 15*time.Second, Transport: &http.Transport{
			Proxy: nil, DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, MaxIdleConnsPerHost: 2,
		}},
	}
}

// SetKey gives it the key.
func (c *Client) SetKey(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key = k
}

// Say changes what the worker says; it is sent at once.
func (c *Client) Say(s agree.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = s
	close(c.changed)
	c.changed = make(chan struct{})
}

// Heard is when worker 0 answered last, or when nobody had spoken to it yet.
func (c *Client) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Run speaks until ctx ends. Tell gets every plan, and again when worker 0 waits for something else; fail gets the first
// failure of a row, the first answer in it that is not believed, and nil at its end.
func (c *Client) Run(ctx context.Context, tell func(agree.Plan), fail func(error)) {
	knows, over, failed, doubted := "", false, false, false
	for ctx.Err() == nil {
		c.mu.Lock()
		gone, changed := c.status.Gone(), c.changed
		c.mu.Unlock()
		call, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-changed:
				cancel()
			case <-call.Done():
			}
		}()
		p, err := c.ask(call, knows)
		interrupted := call.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			c.mu.Lock()
			c.heard, c.answered = time.Now(), true
			news := p.Waits != c.waits
			c.waits = p.Waits
			c.mu.Unlock()
			if failed {
				failed, doubted = false, false
				fail(nil)
			}
			if p.Version != "" && p.Version != knows {
				knows = p.Version
				if over = p.Over; over { // there may be nobody to ask again
					c.part(ctx, knows)
				}
				news = true
			}
			if news {
				tell(p)
			}
			if over || gone { // worker 0 has nothing more to say
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
		case interrupted: // there is something new to say
		default:
			if doubts := errors.Is(err, ErrUnsigned); !failed || doubts && !doubted {
				failed, doubted = true, doubts
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
	_, _ = c.ask(ctx, knows) //nolint:errcheck // worker 0 may be gone as well
}

// question is the next message, signed. No two are the same: each has a word of its own.
func (c *Client) question(knows string) (key Key, question []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.key) == 0 {
		return nil, nil, errNoKey
	}
	c.word++
	waits := c.waits
	question, err = json.Marshal(message{
		Workload: c.workload, Knows: knows, Waits: &waits, Voice: c.voice, Word: c.word, Challenge: c.challenge, Status: c.status,
	})
	return c.key, question, err
}

// ErrUnsigned says that an answer does not bear the signature that it should.
var ErrUnsigned = errors.New("its answer is not believed")

var errNoKey = errors.New("worker 0: there is no key to speak to it")

// ask says what there is to say. Worker 0 answers with a challenge where it does not know this voice yet: then the
// question is sent again.
func (c *Client) ask(ctx context.Context, knows string) (p agree.Plan, err error) {
	for range 3 { // another life of this worker's crew may speak at the same time
		key, question, err := c.question(knows)
		if err != nil {
			return p, err
		}
		code, answer, err := c.post(ctx, key, question)
		switch {
		case errors.Is(err, ErrUnsigned):
			return p, fmt.Errorf("worker 0: %w", err)
		case err != nil:
			return p, c.gone(err)
		case code == http.StatusUnauthorized:
			c.mu.Lock()
			c.challenge = string(answer)
			c.mu.Unlock()
			continue
		case code == http.StatusNoContent: // nothing is new
			c.mu.Lock()
			p.Waits = c.waits
			c.mu.Unlock()
			return p, nil
		case code != http.StatusOK:
			return p, fmt.Errorf("worker 0: answer %d: %.200s", code, answer)
		}
		if err := json.Unmarshal(answer, &p); err != nil {
			return p, fmt.Errorf("worker 0: %w", err)
		}
		return p, nil
	}
	return p, errors.New("worker 0: another pitcrew speaks as this worker")
}

// GoneError says that worker 0 does not answer.
type GoneError struct {
	// Address is worker 0's, Since when it was heard last; it is zero if worker 0 was never heard.
	Address string
	Since   time.Time
	Err     error
}

// Error says it in words: people read it who never saw the protocol.
func (e *GoneError) Error() string {
	since := "has not been heard yet"
	if !e.Since.IsZero() {
		since = "is gone since " + e.Since.UTC().Format("15:04:05Z")
	}
	return fmt.Sprintf("worker 0 (%s) %s: %s", e.Address, since, e.how())
}

// Unwrap returns the cause.
func (e *GoneError) Unwrap() error { return e.Err }

func (e *GoneError) how() string {
	var timeout net.Error
	var name *net.DNSError
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "no pitcrew listens there"
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF),
		errors.Is(e.Err, syscall.ECONNRESET), errors.Is(e.Err, syscall.EPIPE):
		return "its pitcrew has ended"
	case errors.As(e.Err, &name) && name.IsNotFound:
		return "no machine has the name " + name.Name
	case errors.As(e.Err, &name):
		return "the name " + name.Name + " cannot be looked up now"
	case errors.Is(e.Err, syscall.EHOSTUNREACH), errors.Is(e.Err, syscall.ENETUNREACH):
		return "the network has no way to its machine"
	case errors.Is(e.Err, context.DeadlineExceeded), errors.As(e.Err, &timeout) && timeout.Timeout():
		return "its machine does not answer"
	}
	err := e.Err
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// gone describes a failure to reach worker 0. A broken connection was whole until now; a silent one was last heard earlier.
func (c *Client) gone(err error) error {
	e := &GoneError{Address: c.address, Err: err}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		e.Since = c.heard
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			e.Since = time.Now()
		}
	}
	return e
}

// post sends a question and returns the answer, if it is worker 0's answer to that question.
func (c *Client) post(ctx context.Context, key Key, question []byte) (code int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+path, bytes.NewReader(question))
	if err != nil {
		return 0, nil, err
	}
	signature := key.sign(questionDomain, question)
	req.Header.Set(signatureHeader, signature)
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	if answer, err = io.ReadAll(io.LimitReader(res.Body, maxBytes)); err != nil {
		return 0, nil, err
	}
	switch signed := res.Header.Get(signatureHeader); {
	case signed == "":
		return 0, nil, fmt.Errorf(
			"%w: it is not signed: at %s is an older pitcrew, one with another key, or another program (answer %d: %.100q)",
			ErrUnsigned, c.address, res.StatusCode, bytes.TrimSpace(answer))
	case !key.signed(signed, answerDomain, []byte(signature), []byte(strconv.Itoa(res.StatusCode)), answer):
		return 0, nil, fmt.Errorf(
			"%w: it is not signed for this question with this worker's key: at %s is another pitcrew, or another program",
			ErrUnsigned, c.address)
	}
	return res.StatusCode, answer, nil
}
