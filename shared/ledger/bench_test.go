package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

// BenchmarkLedger measures what functions do most often, on docstore's store in memory and on that of simulations. There is a
// tap between, as in a simulation.
func BenchmarkLedger(b *testing.B) {
	for name, open := range map[string]func() ledger.Opener{
		"docstore":  func() ledger.Opener { return memory(b) },
		"simulated": func() ledger.Opener { return ledgertest.NewStore().Open },
	} {
		b.Run("on="+name, func(b *testing.B) {
			for what, run := range map[string]func(b *testing.B, l, other *ledger.Ledger){
				"read": readAgain, "read-changed": readChanged, "save": saveAgain, "due": readDue,
			} {
				b.Run(what, func(b *testing.B) {
					through := new(ledgertest.Tap).On(open())
					run(b, ledger.New(through), ledger.New(through))
				})
			}
		})
	}
}

// readAgain reads a document that does not change.
func readAgain(b *testing.B, l, _ *ledger.Ledger) {
	b.Helper()
	w := full()
	stores(b, l, &w, ledger.Revision{})
	b.ReportAllocs()
	for b.Loop() {
		reads(b, l, w.ID)
	}
}

// readChanged reads a document that another ledger has written since. The write is not measured.
func readChanged(b *testing.B, l, other *ledger.Ledger) {
	b.Helper()
	w := full()
	rev := stores(b, other, &w, ledger.Revision{})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w.Epoch++
		rev = stores(b, other, &w, rev)
		b.StartTimer()
		reads(b, l, w.ID)
	}
}

// saveAgain writes a document again and again.
func saveAgain(b *testing.B, l, _ *ledger.Ledger) {
	b.Helper()
	w := full()
	var rev ledger.Revision
	b.ReportAllocs()
	for b.Loop() {
		w.Epoch++
		rev = stores(b, l, &w, rev)
	}
}

// readDue reads the 200 due workloads of 1,000, which have not changed.
func readDue(b *testing.B, l, _ *ledger.Ledger) {
	b.Helper()
	for i := range 1000 {
		w := full()
		w.ID = fmt.Sprintf("demo/w%d", i)
		w.Outbox = nil
		if i%5 != 0 {
			w = incident.Workload{ID: w.ID, Slices: w.Slices}
		}
		stores(b, l, &w, ledger.Revision{})
	}
	b.ReportAllocs()
	for b.Loop() {
		if due, err := l.Due(b.Context(), start.Add(100*24*time.Hour)); err != nil || len(due) != 200 {
			b.Fatalf("%d are due, want 200: %v", len(due), err)
		}
	}
}

func stores(b *testing.B, l *ledger.Ledger, w *incident.Workload, rev ledger.Revision) ledger.Revision {
	b.Helper()
	rev, err := l.Save(b.Context(), *w, rev)
	must(b, err)
	return rev
}

func reads(b *testing.B, l *ledger.Ledger, id string) {
	b.Helper()
	if _, _, err := l.Workload(b.Context(), id); err != nil {
		b.Fatal(err)
	}
}
