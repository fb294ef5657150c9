package replay_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/publish/publishtest"
)

// TestRecordedIncidentsOnEmulator plays every recorded incident over Google's Pub/Sub emulator: real pushes through the
// functions framework, in an order and at times of its own. The ends are the same. The emulator looks for messages ten times
// a second, so nearly all of the time is spent waiting, and the incidents wait together. An incident that stays open for
// many hours is left to the embedded broker.
func TestRecordedIncidentsOnEmulator(t *testing.T) {
	emulator := publishtest.Emulator(t, publishtest.PubSub)
	framework, err := world.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const longest = 8 * time.Hour // open that long an incident has a tick each minute
	all := slices.DeleteFunc(recorded(t), func(r replay.Recorded) bool {
		var open time.Duration
		for _, i := range played(t, r).story.Ended {
			open += i.Closed.Sub(i.Opened)
		}
		t.Logf("%s: open for %v", r.Name, open)
		return open > longest
	})
	type played struct {
		story *world.Story
		err   error
	}
	stories := make([]chan played, len(all))
	atOnce := make(chan struct{}, 12)
	for i, r := range all {
		stories[i] = make(chan played, 1)
		go func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			s, err := replay.Run(t.Context(), r.Name, r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy, Framework: framework}, Emulator: emulator})
			stories[i] <- played{s, err}
		}()
	}
	for i, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			p := <-stories[i]
			if p.err != nil {
				t.Fatal(p.err)
			}
			ended(t, p.story)
			if d := cmp.Diff(r.Want.Incidents, ends(p.story)); d != "" {
				t.Errorf("ends (-want +got):\n%s%s", d, tail(p.story))
			}
		})
	}
}
