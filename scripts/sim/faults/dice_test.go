package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestWhatIsLeftOutShiftsNothing: a call that a handling does not make, and a message that nobody publishes, change no fault of the
// others. It plays handlings of ten messages, each of which reads nodes and documents.
func TestWhatIsLeftOutShiftsNothing(t *testing.T) {
	// run returns the faults of calls, and when which message was handled.
	run := func(leftOut string) (faults, handled []string) {
		var w *world.World
		var chaos *Chaos
		var cloud cloudtpu.Methods
		var documents *ledger.Ledger
		handling := ""
		tell := func(what string) { faults = append(faults, handling+": "+what) }
		handler := func(function string, next http.Handler) http.Handler {
			if function != "maintenance" {
				return next
			}
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var body struct {
					Message struct{ Attributes map[string]string }
				}
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				handling = w.Clock.Now().Format(time.TimeOnly) + " " + body.Message.Attributes["ce-id"]
				handled = append(handled, handling)
				for _, name := range []string{"a", "b", "c", "b"} {
					if name == leftOut {
						continue
					}
					before := len(chaos.Told)
					_, _ = cloud.Node(r.Context(), "projects/demo/locations/z/nodes/"+name) //nolint:errcheck // there is none
					_, _, _ = documents.Workload(r.Context(), name)                         //nolint:errcheck // there is none
					for _, told := range chaos.Told[before:] {
						tell(name + told[4:])
					}
				}
			})
		}
		w = world.New("left out", world.Scenario{Project: "demo", Start: outset}, world.Options{Hooks: world.Hooks{Handler: handler}})
		chaos = NewChaos(w.Clock, Faults{
			APIRefused: 0.2, APILost: 0.2, APIAnswerLost: 0.2, LedgerDown: 0.2, Delayed: 0.2, Twice: 0.2, Again: 0.2,
		}, 1, math.MaxInt)
		w.Hooks.Luck = chaos.luck
		api := cloudtputest.New(cloudtputest.Config{Clock: w.Clock})
		cloud, _ = api.Direct(chaos.provider(api, func(context.Context, cloudtputest.Request) {}, func(cloudtputest.Request, world.Refusal) {}))
		tap := chaos.tap(func(context.Context, ledgertest.Call, error) {}, func(ledgertest.Call) {})
		documents = ledger.New(tap.On(ledgertest.NewStore().Open))
		if err := w.Found(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if id := fmt.Sprintf("event %d", i); id != leftOut {
				w.Clock.At(outset.Add(time.Duration(i)*time.Minute), func() {
					w.Broker.Publish(events.TopicNotices, nil, map[string]string{"ce-id": id})
				})
			}
		}
		for w.Clock.Step(outset.Add(24 * time.Hour)) {
			w.Clock.Settle()
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

// TestARefusalIsAnAnswer in both versions of the API, with a wire and without. A broken connection is none, nor is a call that its
// caller ended.
func TestARefusalIsAnAnswer(t *testing.T) {
	api := cloudtputest.New(cloudtputest.Config{})
	present, former := api.Direct(nil)
	conn, err := api.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wired := tpupb.NewTpuClient(conn)
	const name = "projects/demo/locations/z/nodes/n"
	ways := map[string]func(context.Context) error{
		"the present version": func(ctx context.Context) error { _, err := present.Node(ctx, name); return err },
		"the former version":  func(ctx context.Context) error { _, err := former.Node(ctx, name); return err },
		"the former version, by gRPC": func(ctx context.Context) error {
			_, err := wired.GetNode(ctx, &tpupb.GetNodeRequest{Name: name})
			return err
		},
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for of, read := range ways {
		for _, c := range []struct {
			what  string
			ctx   context.Context //nolint:containedctx // of one case
			fault *cloudtputest.Fault
			want  bool
		}{
			{"not found", t.Context(), nil, true},
			{"unavailable", t.Context(), &cloudtputest.Fault{Code: 14, Message: "later"}, true},
			{"not permitted", t.Context(), &cloudtputest.Fault{Code: 7, Message: "no"}, true},
			{"lost", t.Context(), &cloudtputest.Fault{LoseRequest: true}, false},
			{"lost answer", t.Context(), &cloudtputest.Fault{LoseAnswer: true}, false},
			{"canceled", canceled, nil, false},
			{"late", late, nil, false},
		} {
			if c.fault != nil {
				api.Inject(*c.fault)
			}
			if err := read(c.ctx); err == nil || answered(err) != c.want {
				t.Errorf("%s, %s: %v is an answer: %v", of, c.what, err, !c.want)
			}
		}
	}
	if !answered(refusals[0]) || answered(errDown) {
		t.Error("a simulated refusal is no answer, or a broken connection is one")
	}
	for _, f := range createRefusals {
		if s := f.GRPCStatus(); s.Code() == 0 || s.Message() != f.message {
			t.Errorf("%v is %v", f, s)
		}
	}
}
