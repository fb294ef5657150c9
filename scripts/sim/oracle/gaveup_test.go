package oracle

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
)

// TestAnOrderThatCameToNothingMovesNothing: the slice belongs where its owner ordered it before.
func TestAnOrderThatCameToNothingMovesNothing(t *testing.T) {
	t.Parallel()
	w := &world.World{Scenario: world.Scenario{Project: "demo"}}
	f := world.SliceConfig{Name: "twin-0", Zone: "us-west4-a"}
	of := func(by string, kind deedKind, zone string) deed { return deed{by: by, kind: kind, zone: zone} }
	for name, c := range map[string]struct {
		past []deed
		want string
	}{
		"as the fleet has it":             {nil, "us-west4-a"},
		"moved by its owner":              {[]deed{of("ann", ordered, "us-west4-b")}, "us-west4-b"},
		"moved, and moved back in vain":   {[]deed{of("ann", ordered, "us-west4-b"), of("ann", ordered, "us-west4-a"), of("ann", turnedOff, "us-west4-a")}, "us-west4-b"},
		"moved, and ours refused there":   {[]deed{of("ann", ordered, "us-west4-b"), of(world.Ours("demo"), turnedOff, "us-west4-b")}, "us-west4-b"},
		"refused elsewhere at once":       {[]deed{of("ann", ordered, "us-west4-b"), of("ann", turnedOff, "us-west4-c")}, "us-west4-b"},
		"ours is no word of the owner's":  {[]deed{of(world.Ours("demo"), ordered, "us-west4-b")}, "us-west4-a"},
		"Google's own is no word of it":   {[]deed{of("", ordered, "us-west4-b")}, "us-west4-a"},
		"the first order of all, in vain": {[]deed{of("ann", ordered, "us-west4-b"), of("ann", turnedOff, "us-west4-b")}, "us-west4-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks := &Checks{World: w, past: map[string][]deed{"twin-0": c.past}}
			if got := checks.orderedIn(f); got != c.want {
				t.Errorf("it belongs in %s, want %s", got, c.want)
			}
		})
	}
}

// TestASliceThatAPersonOrderedMeanwhile was refused to us before, and the incident was decided on that.
func TestASliceThatAPersonOrderedMeanwhile(t *testing.T) {
	t.Parallel()
	w := &world.World{Scenario: world.Scenario{Project: "demo"}}
	f := world.SliceConfig{Name: "pair-1", Zone: "us-west4-a"}
	opened := time.Date(2026, 1, 5, 3, 50, 0, 0, time.UTC)
	ours, theirs := world.Ours("demo"), "ann@example.com"
	for name, c := range map[string]struct {
		past []deed
		want bool
	}{
		"a moment after the refusal":     {[]deed{{by: ours, kind: turnedOff, at: opened.Add(time.Hour)}, {by: theirs, kind: ordered, at: opened.Add(time.Hour + 3*time.Second)}}, true},
		"long after it":                  {[]deed{{by: ours, kind: turnedOff, at: opened}, {by: theirs, kind: ordered, at: opened.Add(time.Hour)}}, false},
		"before the incident":            {[]deed{{by: ours, kind: turnedOff, at: opened.Add(-time.Minute)}, {by: theirs, kind: ordered, at: opened}}, false},
		"by nobody":                      {[]deed{{by: ours, kind: turnedOff, at: opened}}, false},
		"by ours":                        {[]deed{{by: ours, kind: turnedOff, at: opened}, {by: ours, kind: ordered, at: opened.Add(time.Second)}}, false},
		"and the person was refused too": {[]deed{{by: ours, kind: turnedOff, at: opened}, {by: theirs, kind: ordered, at: opened}, {by: theirs, kind: turnedOff, at: opened.Add(time.Second)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks := &Checks{World: w, past: map[string][]deed{"pair-1": c.past}}
			if got := checks.cameSince(f, opened); got != c.want {
				t.Errorf("it came since: %v, want %v", got, c.want)
			}
		})
	}
}

// TestAReplacementInItsZoneMovesNothing: whoever brought the slice there has put it where it is.
func TestAReplacementInItsZoneMovesNothing(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	w := &world.World{Scenario: world.Scenario{Project: "demo"}}
	f := world.SliceConfig{Name: "duo-0", Zone: "us-west4-a"}
	ours := world.Ours("demo")
	n := 0
	comes := func(by, zone string) []deed {
		n++
		life := events.Incarnation{ID: strconv.Itoa(n), Created: start.Add(time.Duration(n) * time.Hour), Zone: zone}
		return []deed{{by: by, kind: ordered, zone: zone}, {kind: usable, zone: zone, life: life}}
	}
	fails := func(zone string) []deed {
		return []deed{{by: ours, kind: ordered, zone: zone}, {by: ours, kind: turnedOff, zone: zone}}
	}
	for name, c := range map[string]struct {
		past [][]deed
		want string
	}{
		"as the fleet has it":                {nil, faults.Owner},
		"replaced by us in the fleet's zone": {[][]deed{comes(ours, "us-west4-a")}, faults.Owner},
		"moved by us":                        {[][]deed{comes(ours, "us-west4-b")}, ours},
		"moved by us, and replaced there":    {[][]deed{comes(ours, "us-west4-b"), comes(ours, "us-west4-b")}, ours},
		"moved by its owner":                 {[][]deed{comes("ada", "us-west4-b")}, "ada"},
		"moved by its owner, replaced there": {[][]deed{comes("ada", "us-west4-b"), comes(ours, "us-west4-b")}, "ada"},
		"not moved, for want of room":        {[][]deed{comes("ada", "us-west4-b"), fails("us-west4-a"), comes(ours, "us-west4-b")}, "ada"},
		"moved on by us":                     {[][]deed{comes("ada", "us-west4-b"), comes(ours, "us-west4-a")}, ours},
		"moved by us, then by its owner":     {[][]deed{comes(ours, "us-west4-b"), comes("ada", "us-west4-b")}, "ada"},
	} {
		checks := &Checks{World: w, past: map[string][]deed{"duo-0": slices.Concat(c.past...)}}
		if got := checks.placer(f, events.Incarnation{Created: start.Add(24 * time.Hour)}); got != c.want {
			t.Errorf("%s: %q brought it there, want %q", name, got, c.want)
		}
	}
}

// TestWhatWaitsInLine: the queued resource of ours that was ordered last, until a zone refuses it or somebody else orders another.
func TestWhatWaitsInLine(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, time.January, 5, 15, 0, 0, 0, time.UTC)
	w := &world.World{Scenario: world.Scenario{Project: "demo"}}
	ours := world.Ours("demo")
	of := func(by string, kind deedKind) deed { return deed{by: by, kind: kind, at: opened.Add(time.Minute)} }
	for name, c := range map[string]struct {
		queue string
		past  []deed
		want  bool
	}{
		"nothing was ordered":         {"trio", nil, false},
		"ours waits":                  {"trio", []deed{of(ours, ordered)}, true},
		"ours was refused":            {"trio", []deed{of(ours, ordered), of(ours, turnedOff)}, false},
		"another's was, for ours":     {"trio", []deed{of(ours, ordered), of("ada", turnedOff)}, true},
		"another's was, after ours":   {"trio", []deed{of(ours, ordered), of(ours, turnedOff), of("ada", turnedOff)}, false},
		"another's waits":             {"trio", []deed{of(ours, ordered), of("ada", ordered)}, false},
		"of the incident before":      {"trio", []deed{{by: ours, kind: ordered, at: opened.Add(-time.Minute)}}, false},
		"no queued resource holds it": {"", []deed{of(ours, ordered)}, false},
	} {
		checks := &Checks{World: w, past: map[string][]deed{"trio-0": c.past}}
		e := end{in: &seenIncident{Opened: opened}}
		if got := checks.inLine(e, world.SliceConfig{Name: "trio-0", QueuedResource: c.queue}); got != c.want {
			t.Errorf("%s: it is %v that ours waits, want %v", name, got, c.want)
		}
	}
}
