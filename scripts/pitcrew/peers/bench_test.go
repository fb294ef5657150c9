package peers_test

import (
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/peers"
)

// BenchmarkWord measures what a restart waits for: a worker says that its training ended, worker 0 answers with a plan.
func BenchmarkWord(b *testing.B) {
	var s *peers.Server
	n := 0
	s = peers.NewServer("demo/llama", []string{"127.0.0.1:1", "127.0.0.1:2"}, func(st agree.Status) {
		s.Publish(agree.Plan{Version: strconv.Itoa(st.Attempt), Attempt: st.Attempt, Run: true})
	})
	s.SetKey(key)
	h := httptest.NewServer(s)
	defer h.Close()
	c := peers.NewClient("demo/llama", strings.TrimPrefix(h.URL, "http://"))
	c.SetKey(key)
	told := make(chan agree.Plan, 1)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	c.Say(agree.Status{Worker: 1, Phase: agree.Ended})
	go func() {
		defer close(done)
		c.Run(ctx, func(p agree.Plan) { told <- p }, func(err error) { b.Error(err) })
	}()
	<-told
	for b.Loop() {
		n++
		c.Say(agree.Status{Worker: 1, Phase: agree.Ended, Attempt: n})
		for p := <-told; p.Attempt != n; p = <-told {
			continue
		}
	}
	cancel()
	<-done
}
