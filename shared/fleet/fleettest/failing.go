package fleettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/trigger"
)

// Delivery is one message that is about to be delivered to a function.
type Delivery struct {
	// Tap stands between the function and its ledger.
	Tap *ledgertest.Tap
	// Deliver delivers the message and says what becomes of it; see Outcome.
	Deliver func() string
	// Stored is what is known and sent afterwards.
	Stored func() string
	// Told names a collection of which a failure is itself stored, with a time for the next try; none where it is empty.
	Told string
}

// Delivery is the delivery of a message to a function, about one workload.
func (b *Bench) Delivery(workload string, h trigger.Handle, e cloudevents.Event) Delivery {
	tap := &ledgertest.Tap{}
	l := ledger.New(tap.On(b.open))
	b.Fleet.Ledger, b.Fleet.Advancer.Ledger = l, l
	return Delivery{Tap: tap, Deliver: func() string { return b.Deliver(h, e) }, Stored: func() string { return b.stored(workload) }}
}

// stored is the document of a workload, and all that was sent or waits in its outbox.
func (b *Bench) stored(workload string) string {
	w := b.Workload(workload)
	var sent []string
	for _, e := range append(b.Sender.Sent(), w.Outbox...) {
		sent = append(sent, e.Type+" "+e.ID)
	}
	slices.Sort(sent)
	w.Outbox = nil
	doc, err := json.Marshal(w, json.Deterministic(true))
	b.Must(err)
	return fmt.Sprint(string(doc), slices.Compact(sent))
}

// WithoutLedger holds that a function acknowledges nothing that it could not store. It delivers the message that begin prepares again and
// again, each time with another call of the ledger that fails: that call alone, and with it all that follow. Each time the message has to
// be left undone, unless all is known and sent afterwards that would be without the failure.
func WithoutLedger(t *testing.T, begin func(t *testing.T) Delivery, undone ...string) {
	t.Helper()
	away := errors.New("the database is away")
	calls := 0
	whole := begin(t)
	whole.Tap.Before = func(context.Context, ledgertest.Call) error {
		calls++
		return nil
	}
	if outcome := whole.Deliver(); outcome != Handled {
		t.Fatalf("with its ledger the message is %s", outcome)
	}
	want := whole.Stored()
	if calls == 0 {
		t.Fatal("the ledger is not called")
	}
	failed := 0
	for nth := 1; nth <= calls; nth++ {
		for _, rest := range []bool{false, true} {
			d, n, about := begin(t), 0, ""
			d.Tap.Before = func(_ context.Context, c ledgertest.Call) error {
				if n++; n != nth && (!rest || n < nth) {
					return nil
				}
				if about == "" {
					about = fmt.Sprintf("%s %s (write %v)", c.Collection, c.About, c.Write)
				}
				return away
			}
			outcome := d.Deliver()
			if slices.Contains(undone, outcome) {
				failed++
				continue
			}
			if d.Told != "" && strings.HasPrefix(about, d.Told+" ") {
				continue
			}
			if d.Tap.Before = nil; outcome != Handled || d.Stored() != want {
				t.Errorf("call %d of %d fails, %s, and all that follow: %v. The message is %s, and something is missing", nth, calls, about, rest, outcome)
			}
		}
	}
	if failed == 0 {
		t.Errorf("whatever fails of %d calls, the message is acknowledged", calls)
	}
}
