//go:build unix

package crew

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/shared/checkpoint"
)

// crewOf is a crew of slice llama over a folder, without a loop.
func crewOf(t *testing.T, slices int) *crew {
	t.Helper()
	m := metadata.Machine{Project: "demo", Zone: "us-west4-a", Node: "llama", Host: "t1v-n-bbbbbbbb-w-0", Workers: 1, Slices: slices}
	c := &crew{
		Options: Options{
			Machine: m, Workload: "demo/llama", Directory: "file://" + t.TempDir(), Store: checkpoint.NewFiles("/", time.Now),
			Times: DefaultTimes(), Say: func(string, ...any) {}, Note: func(string, ...any) {},
		},
		ctx: t.Context(), do: make(chan func(), 8), clock: time.Now, seen: map[string]string{}, next: map[string]time.Time{},
		life: Life(m), leader: &agree.Leader{},
	}
	c.board = peers.Board{Store: c.Store, Directory: c.Directory}
	return c
}

// TestALeaseThatIsTakenOverNamesNobodyElse: the other crew may only have been cut off from the bucket. Were it still named
// when it reads the lease again, it would train beside this one.
func TestALeaseThatIsTakenOverNamesNobodyElse(t *testing.T) {
	other := events.Admission{Slice: "other", Incarnation: events.Incarnation{Zone: "us-west4-b"}, Workers: "t1v-n-aaaaaaaa"}
	for _, c := range []struct {
		name   string
		slices int
		epoch  int64
		want   []string
	}{
		{"one slice", 1, 0, []string{"llama"}},
		{"a Multislice, whose other slices stay", 2, 0, []string{"llama", "other"}},
		{"Pitstop's lease, which says what belongs together", 1, 3, []string{"llama", "other"}},
	} {
		crew := crewOf(t, c.slices)
		l := checkpoint.Lease{Workload: "demo/llama", Epoch: c.epoch, Attempt: 3, Admitted: []events.Admission{other}, Written: time.Now(), By: by}
		if err := checkpoint.WriteLease(t.Context(), crew.Store, crew.Directory, l); err != nil {
			t.Fatal(err)
		}
		if err := crew.write(t.Context(), 4, true, []events.Admission{crew.admission()}); err != nil {
			t.Fatal(err)
		}
		l, _, err := checkpoint.ReadLease(t.Context(), crew.Store, crew.Directory)
		var named []string
		for _, a := range l.Admitted {
			named = append(named, a.Slice)
		}
		if err != nil || l.Attempt != 4 || !slices.Equal(named, c.want) {
			t.Errorf("%s: %+v, %v", c.name, l, err)
		}
	}
}
