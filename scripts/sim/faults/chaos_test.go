package faults

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
)

// TestAFunctionCrashesWithAllThatItDoes: one of its goroutines does, and nobody hears of it again.
func TestAFunctionCrashesWithAllThatItDoes(t *testing.T) {
	made, passed := 0, 0
	var chaos *Chaos
	handler := func(function string, next http.Handler) http.Handler {
		if function != "maintenance" {
			return next
		}
		made++
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var wg sync.WaitGroup
			for range 2 { // one after the other
				wg.Go(func() {
					if chaos.effect(r.Context(), call(world.InstanceOf(r.Context()), "ledger"), "the ledger") == nil {
						passed++
					}
				})
				wg.Wait()
			}
		})
	}
	w := world.New("crash", world.Scenario{Project: "demo", Start: outset}, world.Options{Hooks: world.Hooks{Handler: handler}})
	chaos = NewChaos(w.Clock, Faults{Crash: 1}, 1, 1)
	w.Hooks.Luck = chaos.luck
	var statuses []int
	w.Hooks.Delivered = func(_ string, _ world.Message, status int) { statuses = append(statuses, status) }
	if err := w.Found(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Broker.Publish(events.TopicNotices, nil, nil)
	next := func() int {
		for n := len(statuses); len(statuses) == n; w.Clock.Settle() {
			if !w.Clock.Step(outset.Add(time.Hour)) {
				t.Fatal("nothing is delivered")
			}
		}
		return statuses[len(statuses)-1]
	}
	if status := next(); status != 0 || passed != 0 {
		t.Errorf("one that crashes answers %d, and goes on %d times", status, passed)
	}
	if status := next(); status != http.StatusOK || passed != 2 || made != 2 {
		t.Errorf("the next one answers %d behind %d of 2 effects, and is instance %d", status, passed, made)
	}
}

var outset = time.Date(2026, 11, 12, 2, 14, 7, 0, time.UTC)
