package oracle

import (
	"testing"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/view"
)

// TestSinceWhenCapacityIsWaitedFor: since the first refusal, or since an order waits in a queue. What was ordered before an incident counts from
// its opening on, unless it came to an end by then.
func TestSinceWhenCapacityIsWaitedFor(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, time.January, 5, 8, 17, 0, 0, time.UTC)
	ours := world.Ours("demo")
	at := func(kind deedKind, by string, minutes time.Duration) deed {
		return deed{at: opened.Add(minutes * time.Minute), kind: kind, by: by}
	}
	never := time.Time{}
	for name, c := range map[string]struct {
		queue string
		past  []deed
		want  time.Time
	}{
		"nothing was ordered":                       {"qr", nil, never},
		"refused":                                   {"", []deed{at(turnedOff, ours, 5), at(turnedOff, ours, 9)}, opened.Add(5 * time.Minute)},
		"refused before":                            {"", []deed{at(turnedOff, ours, -5)}, never},
		"ordered where nothing waits":               {"", []deed{at(ordered, ours, 5)}, never},
		"ordered in a queue":                        {"qr", []deed{at(ordered, ours, 5), at(turnedOff, ours, 9)}, opened.Add(5 * time.Minute)},
		"ordered in a queue by somebody else":       {"qr", []deed{at(ordered, "ada", 5)}, never},
		"ordered before":                            {"qr", []deed{at(ordered, ours, -300)}, opened},
		"ordered before, and deleted in it":         {"qr", []deed{at(ordered, ours, -300), at(removed, ours, 240)}, opened},
		"ordered before, and deleted before":        {"qr", []deed{at(ordered, ours, -300), at(removed, ours, -9)}, never},
		"ordered before, and failed before":         {"qr", []deed{at(ordered, ours, -300), at(turnedOff, ours, -9)}, never},
		"what was ordered before came, and is used": {"qr", []deed{at(ordered, ours, -300), at(usable, "", -9)}, never},
	} {
		checks := &Checks{World: &world.World{Scenario: world.Scenario{Project: "demo"}}, past: map[string][]deed{"trio-0": c.past}}
		if got := checks.waitsSince(world.SliceConfig{Name: "trio-0", QueuedResource: c.queue}, opened); !got.Equal(c.want) {
			t.Errorf("%s: since %v, want %v", name, got, c.want)
		}
	}
}

// TestWhatIsSavedOfATrainingThatWentBack: an incident that ends resumed further back leaves no more saved than the checkpoint from which it went
// on, though its training does steps past that.
func TestWhatIsSavedOfATrainingThatWentBack(t *testing.T) {
	checks, g, now := trainsInPods()
	checks.jobs, checks.Trainings = jobs{}, map[string]*trainingtest.Training{"set": g.Training}
	checks.fleetOf = map[string][]world.SliceConfig{"demo/set": {{Name: "set"}}}
	checks.ends, checks.ended, checks.causes, checks.confirmed = map[string]map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	pass(now, 10*time.Minute+time.Second)
	r := checks.record("demo/set")
	r.open, r.opened, r.saved = "x", now.Now(), 9000
	checks.closed(r, seen{ID: "demo/set", Over: &seenIncident{ID: "x", Opened: now.Now(), Outcome: view.Resumed, shown: &view.Incident{}}})
	if step := checks.step("demo/set"); r.saved != g.Saved() || step <= r.saved {
		t.Errorf("saved is %d, at step %d; want %d", r.saved, step, g.Saved())
	}
}
