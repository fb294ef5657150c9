package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

// TestThePulseIsThatOfTheLastTick, whoever writes it last.
func TestThePulseIsThatOfTheLastTick(t *testing.T) {
	t.Parallel()
	ctx, noon := context.Background(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := ledger.New(ledgertest.NewStrictStore().Open)
	if _, err := l.Pulse(ctx, "demo"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("before the first tick: %v, want ErrNotFound", err)
	}
	last := ledger.Pulse{Ticked: noon, Swept: noon.Add(-time.Minute), Faults: []string{"a", "b", "c", "d"}}
	for _, p := range []ledger.Pulse{{Ticked: noon.Add(-2 * time.Minute)}, last, {Ticked: noon.Add(-time.Minute)}} {
		if err := l.SavePulse(ctx, "demo", p); err != nil {
			t.Fatal(err)
		}
	}
	last.Faults, last.Failed = []string{"a", "b", "c"}, 4
	got, err := l.Pulse(ctx, "demo")
	if d := cmp.Diff(last, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for age, blind := range map[time.Duration]bool{5 * time.Minute: false, 5*time.Minute + time.Second: true} {
		s, err := l.Sight(ctx, "demo", noon.Add(age))
		if err != nil || s.Blind != blind || !s.Ticked.Equal(noon) || s.Failed != 4 {
			t.Errorf("after %s: %v, %+v, want blind: %t", age, err, s, blind)
		}
	}
}
