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

// TestWhoMeansToTrainGivesASignOfLife: another crew takes a lease over when nothing stirs behind it, and a back-off may be
// longer than it waits.
func TestWhoMeansToTrainGivesASignOfLife(t *testing.T) {
	for _, c := range []struct {
		stage  agree.Stage
		slices int
		rival  bool
		beats  bool
	}{
		{stage: agree.Pausing, slices: 1, beats: true},
		{stage: agree.Gathering, slices: 1, beats: true},
		{stage: agree.Admitting, slices: 1, beats: true},
		{stage: agree.Asking, slices: 1}, // it has given up
		{stage: agree.Waiting, slices: 1},
		{stage: agree.Pausing, slices: 1, rival: true}, // the lease names another
		{stage: agree.Admitting, slices: 2},            // it waits for the new life of another slice, which has to take the lease over
	} {
		crew := crewOf(t, c.slices)
		crew.leader.Stage = c.stage
		crew.lease.exists = true
		crew.lease.Lease = checkpoint.Lease{Attempt: 1, Admitted: []events.Admission{crew.admission()}, By: by}
		if c.rival {
			crew.lease.Admitted[0].Workers = "t1v-n-aaaaaaaa"
		}
		crew.carry(time.Now(), agree.Want{})
		if _, due := crew.next["beat"]; due {
			(<-crew.do)()
		}
		pulse, err := crew.board.Pulse(t.Context())
		if err != nil || (pulse != 0) != c.beats {
			t.Errorf("%s of %d slices: %d, %v", c.stage, c.slices, pulse, err)
		}
	}
}
