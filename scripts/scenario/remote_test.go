package scenario_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/publish/publishtest"
)

// TestRecordedIncidentsOnEmulator plays every recorded incident over Google's Pub/Sub emulator: real pushes through the
// functions framework, in an order and at times of its own. The ends are the same. The emulator looks for messages ten times
// a second, so nearly all of the time is spent waiting, and the incidents wait together. What waits for hours, and ticks each
// minute, is left to the embedded broker.
func TestRecordedIncidentsOnEmulator(t *testing.T) {
	emulator := publishtest.Emulator(t, publishtest.PubSub)
	framework, err := scenario.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const longest = 3 * time.Hour
	all := slices.DeleteFunc(recorded(t), func(r scenario.Recorded) bool {
		lines := played(t, r).story.Lines
		return lines[len(lines)-1].Time.Sub(lines[0].Time) > longest
	})
	type played struct {
		story *scenario.Story
		err   error
	}
	stories := make([]chan played, len(all))
	atOnce := make(chan struct{}, 12)
	for i, r := range all {
		stories[i] = make(chan played, 1)
		go func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			s, err := scenario.Run(t.Context(), r.Name, r.Scenario, r.Records, scenario.Options{Policy: r.Policy, Framework: framework, Emulator: emulator})
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
