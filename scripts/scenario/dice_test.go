package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/tpu/tputest"
)

// TestWhatIsLeftOutShiftsNothing: a call that a handling does not make, and a message that nobody publishes, change no fault of the
// others. It plays handlings of ten messages, each of which reads nodes and documents.
func TestWhatIsLeftOutShiftsNothing(t *testing.T) {
	// run returns the faults of calls, and when which message was handled.
	run := func(leftOut string) (faults, handled []string) {
		clock := clock.NewClock(began)
		w := &world{clock: clock, idle: map[string][]http.Handler{}, make: map[string]func() http.Handler{}}
		chaos := newChaos(clock, Faults{APIRefused: 0.2, APILost: 0.2, APIAnswerLost: 0.2, LedgerDown: 0.2, Delayed: 0.2, Twice: 0.2, Again: 0.2}, 1, NoLimit)
		w.broker = NewBroker(clock)
		w.broker.luck = chaos.luck
		api := tputest.New(tputest.Config{Clock: clock})
		cloud, _ := api.Direct(chaos.provider(api, func(context.Context, tputest.Request) {}, func(tputest.Request, refusal) {}))
		tap := chaos.tap(func(context.Context, ledgertest.Call, error) {}, func(ledgertest.Call) {})
		documents := ledger.New(tap.On(ledgertest.NewStore().Open))
		handling := ""
		tell := func(what string) { faults = append(faults, handling+": "+what) }
		w.make["F"] = func() http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var body struct {
					Message struct{ Attributes map[string]string }
				}
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				handling = clock.Now().Format(time.TimeOnly) + " " + body.Message.Attributes["ce-id"]
				handled = append(handled, handling)
				for _, name := range []string{"a", "b", "c", "b"} {
					if name == leftOut {
						continue
					}
					before := len(chaos.told)
					_, _ = cloud.Node(r.Context(), "projects/demo/locations/z/nodes/"+name) //nolint:errcheck // there is none
					_, _, _ = documents.Workload(r.Context(), name)                         //nolint:errcheck // there is none
					for _, told := range chaos.told[before:] {
						tell(name + told[4:])
					}
				}
			})
		}
		b := w.broker
		b.Subscribe(Subscription{Topic: "T", Push: func(ctx context.Context, body []byte) int { return w.post(ctx, "F", body) }})
		for i := range 10 {
			if id := fmt.Sprintf("event %d", i); id != leftOut {
				clock.At(began.Add(time.Duration(i)*time.Minute), func() { b.Publish("T", nil, map[string]string{"ce-id": id}) })
			}
		}
		for clock.Step(began.Add(24 * time.Hour)) {
			clock.Settle()
		}
		return faults, handled
	}
	faults, handled := run("")
	if len(faults) < 20 || len(handled) < 12 {
		t.Fatalf("%d faults in %d handlings are too few to tell", len(faults), len(handled))
	}
	for _, call := range []string{"a", "b"} {
		rest, again := run(call)
		concerned := func(f string) bool { return strings.Contains(f, ": "+call) }
		if d := cmp.Diff(slices.DeleteFunc(slices.Clone(faults), concerned), rest); d != "" {
			t.Errorf("without the calls about %s other calls have other faults (-with +without):\n%s", call, d)
		}
		if d := cmp.Diff(handled, again); d != "" {
			t.Errorf("without the calls about %s messages come at other times (-with +without):\n%s", call, d)
		}
	}
	rest, again := run("event 3")
	concerned := func(of string) bool { return strings.Contains(of, "event 3") }
	if d := cmp.Diff(slices.DeleteFunc(slices.Clone(faults), concerned), rest); d != "" {
		t.Errorf("without a message the others meet other faults (-with +without):\n%s", d)
	}
	if d := cmp.Diff(slices.DeleteFunc(slices.Clone(handled), concerned), again); d != "" {
		t.Errorf("without a message the others come at other times (-with +without):\n%s", d)
	}
}

// TestOneReadMoreShiftsNothing plays whole simulations in which each tick reads one node more: the same troubles strike, and all other
// calls and messages meet the same faults, at the same times. Nothing hangs or crashes at that read, which would be another run.
func TestOneReadMoreShiftsNothing(t *testing.T) {
	Beside(t)
	t.Parallel()
	faults := faultsNamed["heavy"]
	faults.Crash, faults.Timeout, faults.Slow = 0, 0, 0
	// run returns what went wrong, but for the read more.
	run := func(t *testing.T, seed uint64, node string) []string {
		fleet, policy := MixedFleet(seed)
		sim := Simulation{Seed: seed, Days: 0.5, World: Few(fleet, seed, 4), Policy: policy, Faults: faults, Limit: NoLimit}
		w, err := sim.world(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cloud, _ := w.api.Direct(w.chaos.provider(w.api, func(context.Context, tputest.Request) {}, func(tputest.Request, refusal) {}))
		patrol := w.make["HandlePatrol"]
		w.idle["HandlePatrol"] = nil
		w.make["HandlePatrol"] = func() http.Handler {
			h := patrol()
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if node != "" {
					_, _ = cloud.Node(r.Context(), node) //nolint:errcheck // it is read for nothing
				}
				h.ServeHTTP(rw, r)
			})
		}
		// Every tick is sent: else a fault more could make for one more.
		for minute := range 12 * 60 {
			w.clock.At(w.Start.Add(time.Duration(minute)*time.Minute), func() { w.dirty = true })
		}
		r, err := w.simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, line := range r.Told {
			if !strings.Contains(line, "nobody") {
				told = append(told, line[4:])
			}
		}
		if node != "" && len(told) == len(r.Told) {
			t.Error("the read more met no fault, and proves nothing")
		}
		return told
	}
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			with, without := run(t, seed, "projects/demo/locations/us-west4-a/nodes/nobody"), run(t, seed, "")
			if d := cmp.Diff(without, with); d != "" || len(without) < 200 {
				t.Errorf("of %d faults and troubles others are left (-without +with):\n%.3000s", len(without), d)
			}
		})
	}
}

// TestTroublesComeWhateverThePolicyIs: a trouble comes when the seed says, whether Pitstop recovers a slice or only watches it. One
// that finds its slice not READY strikes nothing and shifts no other.
func TestTroublesComeWhateverThePolicyIs(t *testing.T) {
	Beside(t)
	t.Parallel()
	fleet, policy := MixedFleet(2)
	sim := Simulation{Seed: 2, Days: 1, World: Few(fleet, 2, 4), Policy: policy, Faults: Faults{Troubles: 5}, Limit: NoLimit}
	w, err := sim.world(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	come, always := map[string]bool{}, map[string]bool{}
	troubles := newTroubles(w.world, w.chaos, w.releases, w.checks, sim.draws())
	comes := func(in map[string]bool, what string) func(dice) {
		return func(dice) { in[w.clock.Now().Format("Jan 2 15:04:05  ")+what] = true }
	}
	for _, c := range w.Fleet {
		for _, h := range happenings {
			often, gaps := sim.Rates.of(h, c)
			troubles.again(h.name, c.Name, often, gaps, 0, comes(come, h.name+": "+c.Name))
		}
	}
	for _, e := range elsewheres {
		often, gaps := sim.Rates.ofAll(e)
		troubles.again(e.name, "", often, gaps, 0, comes(always, e.name))
	}
	for w.clock.Step(w.Start.Add(24 * time.Hour)) {
		continue
	}
	struck := map[string]int{}
	for name, policy := range map[string][]byte{"recovers": policy, "watches": []byte("policies: {}\n")} {
		sim.Policy = policy
		r, err := Simulate(t.Context(), sim)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, line := range r.Told {
			told := strings.TrimSpace(line[4:])
			told, _, _ = strings.Cut(told, " in us-") // where its slice was
			all[told] = true
			if !come[told] && !always[told] {
				t.Errorf("%s: it did not have to come: %s", name, line)
			}
			struck[told]++
		}
		for what := range always {
			if !all[what] {
				t.Errorf("%s: it did not come: %s", name, what)
			}
		}
	}
	both, one := 0, 0
	for _, n := range struck {
		if n == 2 {
			both++
		} else {
			one++
		}
	}
	if both < 20 || one == 0 {
		t.Errorf("%d troubles struck under both policies, %d under one: that proves nothing", both, one)
	}
}
