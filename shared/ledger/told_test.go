package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/ledger"
)

func whatWasTold(t *testing.T, s *suite) {
	j := ledger.NewJournal(s.tap.On(s.open))
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	read := func(place string) (ledger.Told, ledger.Revision) {
		t.Helper()
		got, rev, err := j.Told(t.Context(), place, workload, "llama-8b-20261112-3")
		must(t, err)
		return got, rev
	}
	save := func(told ledger.Told, rev ledger.Revision) error {
		_, err := j.Save(t.Context(), "slack-C1", workload, "llama-8b-20261112-3", told, rev, start)
		return err
	}
	nothing, none := read("slack-C1")
	if d := cmp.Diff(ledger.Told{}, nothing); d != "" {
		t.Errorf("told before anything was (-want +got):\n%s", d)
	}
	want := ledger.Told{
		Thread: "17.1", Steps: []string{"deleting"}, Number: 3, Sending: &ledger.Sending{Step: "resumed", Number: 9, At: start}, Unsure: []string{"approving/delete"},
	}
	must(t, save(want, none))
	if err := save(ledger.Told{}, none); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("who has not read it writes it: %v", err)
	}
	got, rev := read("slack-C1")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if other, _ := read("chat"); len(other.Steps) > 0 {
		t.Errorf("another target got %v", other.Steps)
	}
	got.Sending, got.Steps, got.Number = nil, append(got.Steps, "resumed"), 9
	must(t, save(got, rev))
	if err := save(got, rev); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("who read an older one writes it: %v", err)
	}
	got, _ = read("slack-C1")
	for step, c := range map[string]struct {
		number int
		has    bool
	}{"deleting": {12, true}, "creating": {6, true}, "escalated": {12, false}} {
		if got.Has(step, c.number) != c.has {
			t.Errorf("%s, number %d: told %v, want %v", step, c.number, !c.has, c.has)
		}
	}
}
