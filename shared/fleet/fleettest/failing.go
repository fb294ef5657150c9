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

	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/trigger"
)

// Delivery is one message to be delivered to a function.
type Delivery struct {
	// Tap stands between the function and its ledger.
	Tap *ledgertest.Tap
	// Deliver delivers the message and returns its outcome; see Outcome.
	Deliver func() string
	// Stored is the ledger's content and the sent messages afterwards.
	Stored func() string
	// Later lets the time pass after which nobody else may still be at it, before the message is delivered again.
	Later func()
	// Told names a collection whose failures are themselves stored, with a time for the next try; empty is none.
	Told string
}

// Delivery is the delivery of a message to a function, about one workload.
func (b *Bench) Delivery(workload string, h trigger.Handle, e cloudevents.Event) Delivery {
	tap := &ledgertest.Tap{}
	l := ledger.New(tap.On(b.open))
	b.Fleet.Ledger, b.Fleet.Advancer.Ledger = l, l
	return Delivery{
		Tap: tap, Deliver: func() string { return b.Deliver(h, e) }, Stored: func() string { return b.stored(workload) },
		Later: func() { b.Clock.Advance(bounds.CallFor) },
	}
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

// WithoutLedger checks that a function acknowledges no message whose effect it could not store. It delivers the message of
// begin again and again. Each time another call of the ledger fails, alone or with all later ones. Each time the message
// must stay unacknowledged, unless the ledger and the sent messages are the same as without the failure. Delivered again, it is carried out.
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
				if d.Tap.Before = nil; d.Later != nil {
					d.Later()
					if outcome := d.Deliver(); outcome != Handled && outcome != Ignored {
						t.Errorf("call %d of %d fails, %s, and all that follow: %v. Delivered again, the message is %s", nth, calls, about, rest, outcome)
					}
				}
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
