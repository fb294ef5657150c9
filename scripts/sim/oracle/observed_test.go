package oracle

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
)

// TestAHangIsNotOnlyWatched where its policy has it begun again, its crew can be asked, and somebody knew that it stood still.
func TestAHangIsNotOnlyWatched(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		hang, directory string
		deaf, wrong     bool
	}{
		"it may be begun again":   {"restart", "gs://checkpoints/llama", false, true},
		"it is only reported":     {"report", "gs://checkpoints/llama", false, false},
		"nobody could be asked":   {"restart", "", false, false},
		"nobody knew that it did": {"restart", "gs://checkpoints/llama", true, false},
	} {
		checks := &Checks{
			World:    &world.World{Clock: clock.NewClock(at)},
			releases: faults.NewReleases(), of: map[string]*record{}, past: map[string][]deed{},
			policies: []inForce{putInForce(at.Add(-time.Hour), []byte("policies: {night: {preset: spot, hang: "+c.hang+"}}"))},
			fleetOf:  map[string][]world.SliceConfig{"demo/llama": {{Name: "llama", Policy: "night", Directory: c.directory}}},
		}
		r := checks.record("demo/llama")
		r.openedFor, r.deaf = events.CauseHang, c.deaf
		if why := checks.wronglyObserved(end{r, seen{ID: "demo/llama"}, &seenIncident{Opened: at}}); (why != "") != c.wrong {
			t.Errorf("%s: wrong is %q", name, why)
		}
	}
}
