package oracle

import (
	"strconv"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
)

// TestWhoMovesASlice: an order that comes to nothing moves none, and neither does a replacement in the zone where it is.
func TestWhoMovesASlice(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	f, ours := world.SliceConfig{Name: "twin-0", Zone: "a"}, world.Ours("demo")
	type order struct {
		by, zone string
		fails    bool
	}
	for name, c := range map[string]struct {
		past         []order
		belongs, who string
	}{
		"as the fleet has it":                {nil, "a", faults.Owner},
		"replaced by us where it was":        {[]order{{ours, "a", false}}, "a", faults.Owner},
		"ordered by its owner where it was":  {[]order{{"ada", "a", false}}, "a", "ada"},
		"moved by us":                        {[]order{{ours, "b", false}}, "a", ours},
		"moved by us, and replaced there":    {[]order{{ours, "b", false}, {ours, "b", false}}, "a", ours},
		"moved by its owner":                 {[]order{{"ada", "b", false}}, "b", "ada"},
		"moved by its owner, replaced there": {[]order{{"ada", "b", false}, {ours, "b", false}}, "b", "ada"},
		"moved, and moved back in vain":      {[]order{{"ada", "b", false}, {"ada", "a", true}}, "b", "ada"},
		"moved, and ours refused there":      {[]order{{"ada", "b", false}, {ours, "b", true}}, "b", "ada"},
		"the first order of all, in vain":    {[]order{{"ada", "b", true}}, "a", faults.Owner},
	} {
		checks := &Checks{World: &world.World{Scenario: world.Scenario{Project: "demo"}}, past: map[string][]deed{}}
		for i, o := range c.past {
			end := deed{kind: usable, zone: o.zone, life: events.Incarnation{ID: strconv.Itoa(i), Created: start.Add(time.Duration(i) * time.Hour), Zone: o.zone}}
			if o.fails {
				end = deed{by: o.by, kind: turnedOff, zone: o.zone}
			}
			checks.past[f.Name] = append(checks.past[f.Name], deed{by: o.by, kind: ordered, zone: o.zone}, end)
		}
		if belongs, who := checks.orderedIn(f), checks.placer(f, events.Incarnation{Created: start.Add(24 * time.Hour)}); belongs != c.belongs || who != c.who {
			t.Errorf("%s: %q brought it there, and it belongs in %s; want %q and %s", name, who, belongs, c.who, c.belongs)
		}
	}
}
