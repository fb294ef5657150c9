package peers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/shared/checkpoint"
)

// key is the one that the crews of these tests share.
var key = peers.NewKey()

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("not received: " + what)
		panic("unreachable")
	}
}

// listens has a worker's client take plans until end is called.
func listens(t *testing.T, c *peers.Client, told chan<- agree.Plan) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx, func(p agree.Plan) { told <- p }, func(error) {})
	}()
	return func() {
		cancel()
		receive(t, done, "the end of the client")
	}
}

func TestStatusesAndPlansPassAtOnce(t *testing.T) {
	heard, told := make(chan agree.Status, 100), make(chan agree.Plan, 100)
	s := peers.NewServer("demo/llama", []string{"127.0.0.1:1", "127.0.0.1:2"}, func(st agree.Status) { heard <- st })
	s.SetKey(key)
	h := httptest.NewServer(s)
	defer h.Close()
	c := peers.NewClient("demo/llama", strings.TrimPrefix(h.URL, "http://"))
	c.SetKey(key)
	c.Say(agree.Status{Worker: 1, Phase: agree.Idle})
	end := listens(t, c, told)
	if st := receive(t, heard, "a status"); st.Phase != agree.Idle {
		t.Errorf("%+v", st)
	}
	s.Publish(agree.Plan{Version: "a.1", Attempt: 1, Run: true})
	if p := receive(t, told, "a plan"); !p.Run || p.Attempt != 1 {
		t.Errorf("%+v", p)
	}
	c.Say(agree.Status{Worker: 1, Phase: agree.Ended, Attempt: 1, Exit: restart.Exit{Code: 3}})
	for receive(t, heard, "the end").Exit.Code != 3 {
		continue // it said the old before
	}
	// The server knows that the worker has the last plan before the worker acts on it.
	s.Publish(agree.Plan{Version: "a.2", Over: true})
	if p := receive(t, told, "the last plan"); !p.Over || s.Known() != 1 {
		t.Errorf("%+v, known to %d", p, s.Known())
	}
	end()
}

// TestWhatWorker0WaitsForIsTold at once and once, also before there is a plan.
func TestWhatWorker0WaitsForIsTold(t *testing.T) {
	told := make(chan agree.Plan, 100)
	var asked atomic.Int32
	s := peers.NewServer("demo/llama", nil, func(agree.Status) {})
	s.SetKey(key)
	s.Hold = time.Hour
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		s.ServeHTTP(w, r)
	}))
	defer h.Close()
	c := peers.NewClient("demo/llama", strings.TrimPrefix(h.URL, "http://"))
	c.SetKey(key)
	c.Say(agree.Status{Worker: 1, Phase: agree.Idle})
	end := listens(t, c, told)
	for _, p := range []agree.Plan{
		{Waits: "worker 2 and worker 3"},
		{Waits: "worker 3"},
		{},
		{Waits: "worker 3"},
		{Version: "a.1", Attempt: 1, Waits: "worker 3"},
		{Version: "a.1", Attempt: 1},
		{Version: "a.2", Attempt: 2, Run: true},
	} {
		s.Publish(p)
		if got := receive(t, told, "the plan"); got != p {
			t.Errorf("told %+v, want %+v", got, p)
		}
	}
	end()
	// The first question meets a challenge; each other one brings the answer, and the last one waits.
	if n := asked.Load(); len(told) != 0 || n > 9 {
		t.Errorf("%d plans more, %d questions", len(told), n)
	}
}

// TestTheLastWordOfWhoLeavesIsHeard, and it is not kept waiting for a plan.
func TestTheLastWordOfWhoLeavesIsHeard(t *testing.T) {
	var heard []agree.Status
	s := peers.NewServer("demo/llama", nil, func(st agree.Status) { heard = append(heard, st) })
	s.SetKey(key)
	s.Hold = time.Hour
	h := httptest.NewServer(s)
	defer h.Close()
	c := peers.NewClient("demo/llama", strings.TrimPrefix(h.URL, "http://"))
	c.SetKey(key)
	s.Publish(agree.Plan{Version: "a.1", Attempt: 1, Run: true})
	said := []agree.Status{
		{Worker: 1, Phase: agree.Running, Attempt: 1},
		{Worker: 1, Phase: agree.Running, Attempt: 1, Leaving: true},
		{Worker: 1, Phase: agree.Ended, Attempt: 1, Leaving: true},
	}
	for _, st := range said {
		if c.Say(st); st.Phase == agree.Ended {
			s.Publish(agree.Plan{}) // there is nothing to tell
		}
		c.Part(t.Context())
	}
	if !slices.Equal(phases(heard), phases(said)) {
		t.Errorf("heard %+v", heard)
	}
	// It does not need the next plan: nobody waits for it to have it.
	if s.Publish(agree.Plan{Version: "a.2", Over: true}); s.Known() != 1 {
		t.Errorf("known to %d", s.Known())
	}
}

// TestWhoKnowsTheEndAsksNoMore: its training may have to be ended yet, and worker 0 has nothing else to say.
func TestWhoKnowsTheEndAsksNoMore(t *testing.T) {
	heard, told := make(chan int, 10), make(chan agree.Plan, 1)
	s := peers.NewServer("demo/llama", nil, func(st agree.Status) { heard <- st.Attempt })
	s.SetKey(key)
	s.Publish(agree.Plan{Version: "a.1", Over: true})
	var asked atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			asked.Add(1)
		}
		s.ServeHTTP(w, r)
	}))
	defer h.Close()
	c := peers.NewClient("demo/llama", strings.TrimPrefix(h.URL, "http://"))
	c.SetKey(key)
	c.Say(agree.Status{Worker: 1, Phase: agree.Running, Attempt: 1})
	end := listens(t, c, told)
	receive(t, told, "the end")
	for range 100 { // meanwhile it could have asked without end
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Its status is sent all the same.
	c.Say(agree.Status{Worker: 1, Phase: agree.Ended, Attempt: 2})
	for receive(t, heard, "a status") != 2 {
		continue
	}
	end()
	if n := asked.Load(); n > 6 { // one of them for the challenge
		t.Errorf("it asked %d times", n)
	}
}

func phases(all []agree.Status) (says []string) {
	for _, s := range all {
		says = append(says, fmt.Sprint(s.Worker, s.Phase, s.Attempt, s.Leaving))
	}
	return says
}

func TestABoardIsWrittenOnce(t *testing.T) {
	b := peers.Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + t.TempDir()}
	ctx := t.Context()
	if o, ready, err := b.Look(ctx, 1); err != nil || o != (agree.Outside{Attempt: 1}) || ready != nil {
		t.Fatal(o, ready, err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	admission := func(workers string) events.Admission { return events.Admission{Slice: "llama-1", Workers: workers} }
	first0 := events.Admission{Slice: "llama-0", Workers: "a"}
	must(b.Ready(ctx, 1, 0, first0, "10.0.0.1:40001"))
	must(b.Ready(ctx, 1, 0, first0, "10.0.0.1:40002")) // another crew of this life
	must(b.Ready(ctx, 1, 1, admission("b"), ""))
	must(b.Ready(ctx, 1, 1, admission("c"), "")) // a new life of it
	must(b.End(ctx, agree.Cause{Attempt: 1, Slice: 1, Exit: restart.Exit{Code: 4}}))
	must(b.End(ctx, agree.Cause{Attempt: 1, Slice: 0, Exit: restart.Exit{Code: 5}}))
	must(b.Judge(ctx, agree.Verdict{CrewVerdict: events.CrewVerdict{Attempt: 1, Restart: true}}))
	must(b.Judge(ctx, agree.Verdict{CrewVerdict: events.CrewVerdict{Attempt: 1}}))
	o, ready, err := b.Look(ctx, 1)
	if err != nil || o.Ready != 2 || o.Ended == nil || o.Ended.Exit.Code != 4 || o.Verdict == nil || !o.Verdict.Restart || ready[1].Workers != "c" || o.Server != "10.0.0.1:40001" {
		t.Errorf("%+v, %+v, %v", o, ready, err)
	}
	// What crews write beside the checkpoints is none of them.
	if _, err := checkpoint.Verify(ctx, b.Store, b.Directory, checkpoint.Want{}); err == nil || !strings.Contains(err.Error(), "only Pitstop's own objects") {
		t.Error(err)
	}
	must(b.Ready(ctx, 2, 0, admission("b"), ""))
	must(b.Ready(ctx, 2, 0, admission("b"), "10.0.0.1:40003"))
	if o, _, err := b.Look(ctx, 2); err != nil || o.Server != "10.0.0.1:40003" {
		t.Errorf("it says again where the hosts meet: %+v, %v", o, err)
	}
	must(b.Ready(ctx, 2, 0, first0, "10.0.0.2:40004"))
	if o, _, err := b.Look(ctx, 2); err != nil || o.Server != "10.0.0.2:40004" {
		t.Errorf("the server of an earlier life stays: %+v, %v", o, err)
	}
	for claims := range 2 { // a claim after it is ready changes nothing
		must(b.Claim(ctx, 3, 0, first0))
		if o, ready, err := b.Look(ctx, 3); err != nil || o.Claimed != (claims == 0) || ready[0] != first0 {
			t.Errorf("it claims its place: %+v, %+v, %v", o, ready, err)
		}
		must(b.Ready(ctx, 3, 0, first0, "10.0.0.1:40005"))
		if o, _, err := b.Look(ctx, 3); err != nil || o.Claimed || o.Server != "10.0.0.1:40005" {
			t.Errorf("what claimed its place is ready: %+v, %v", o, err)
		}
	}
	must(b.Ready(ctx, 5, 0, admission("b"), ""))
	must(b.Clear(ctx, 2))
	if o, _, err := b.Look(ctx, 2); err != nil || o.Ready != 0 {
		t.Errorf("an attempt between is not cleared: %+v, %v", o, err)
	}
	if o, _, err := b.Look(ctx, 5); err != nil || o.Ready != 1 {
		t.Errorf("a later attempt is cleared: %+v, %v", o, err)
	}
	if o, _, err := b.Look(ctx, 1); err != nil || o.Ready != 0 || o.Ended != nil {
		t.Errorf("%+v, %v", o, err)
	}
	must(b.Clear(ctx, 1))
	before, err := b.Pulse(ctx)
	must(err)
	must(b.Beat(ctx, "one", time.Now()))
	first, err := b.Pulse(ctx)
	must(err)
	if err := b.Succeed(ctx, "another", time.Now(), before.Generation); !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("it succeeds one that is not the last: %v", err)
	}
	must(b.Succeed(ctx, "another", time.Now(), first.Generation))
	second, err := b.Pulse(ctx)
	must(err)
	must(b.Succeed(ctx, "another", time.Now(), first.Generation)) // its own is none of others
	if before.Generation != 0 || first.Life != "one" || second.Life != "another" || second.Generation <= first.Generation {
		t.Errorf("%+v, %+v, %+v", before, first, second)
	}
}

func TestTheSpeedOfEachAttemptIsKept(t *testing.T) {
	b := peers.Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + t.TempDir()}
	ctx := t.Context()
	if all, err := b.Speeds(ctx); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	for attempt := 1; attempt <= 60; attempt++ {
		for _, rate := range []float64{1, float64(attempt)} {
			if err := b.SetSpeed(ctx, peers.Speed{Attempt: attempt, Measured: events.Measured{Accelerator: "v2-8", Slices: 1}, Chips: 4, ExamplesPerSecond: rate}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := b.Speeds(ctx)
	if err != nil || len(all) != 50 {
		t.Fatalf("%d attempts, %v", len(all), err)
	}
	for i, s := range all {
		if s.Attempt != 11+i || s.ExamplesPerSecond != float64(11+i) || s.Chips != 4 {
			t.Errorf("%d: %+v", i, s)
		}
	}
}
