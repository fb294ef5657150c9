package scenario

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"pitstop.internal/scripts/sim/clock"
)

// TestAFunctionCrashesWithAllThatItDoes: one of its goroutines does, and nobody hears of it again.
func TestAFunctionCrashesWithAllThatItDoes(t *testing.T) {
	clock := clock.NewClock(began)
	w := &world{clock: clock, idle: map[string][]http.Handler{}, make: map[string]func() http.Handler{}}
	chaos := newChaos(clock, Faults{Crash: 1}, 1, 1)
	w.broker = NewBroker(clock)
	w.broker.luck = chaos.luck
	made, passed := 0, 0
	w.make["F"] = func() http.Handler {
		made++
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var wg sync.WaitGroup
			for range 2 { // one after the other
				wg.Go(func() {
					if chaos.effect(r.Context(), call(instanceOf(r.Context()), "ledger"), "the ledger") == nil {
						passed++
					}
				})
				wg.Wait()
			}
		})
	}
	calls := func() (status int) {
		clock.Go(func() {
			status = w.handle("F", httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
		})
		clock.Settle()
		return status
	}
	if status := calls(); status != 0 || passed != 0 {
		t.Errorf("one that crashes answers %d, and goes on %d times", status, passed)
	}
	if status := calls(); status != http.StatusOK || passed != 2 || made != 2 {
		t.Errorf("the next one answers %d behind %d of 2 effects, and is instance %d", status, passed, made)
	}
}
