package oracle

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// TestPlacesAreAskedInTheirOrder: the story of a Spot slice in zone a is told as deeds, each some minutes after noon; then a place is asked.
func TestPlacesAreAskedInTheirOrder(t *testing.T) {
	t.Parallel()
	const spotA, spotB, demandA, demandB, smallB, elsewhere = "a spot v5litepod-16", "b spot v5litepod-16", "a on_demand v5litepod-16", "b on_demand v5litepod-16", "b spot v5litepod-8", "c spot v5litepod-16"
	p := policy.Policy{Zones: []string{"b"}, LeaveZoneFor: 6 * time.Hour, Places: []policy.Alternative{
		{Capacity: events.OnDemand, After: 2 * time.Hour}, {Accelerator: "v5litepod-8", Zones: []string{"b"}, After: 3 * time.Hour},
	}}
	for name, c := range map[string]struct {
		past  string
		after int
		asked string
		want  string
	}{
		"the first place":                             {"", 0, spotA, ""},
		"the second, before the first":                {"", 0, spotB, "a Spot as v5litepod-16 comes before it and was not asked"},
		"the second, after the first":                 {"1 refused " + spotA, 2, spotB, ""},
		"a zone that nobody names":                    {"1 refused " + spotA, 2, elsewhere, "neither"},
		"a capacity that nobody names":                {"1 refused " + spotA, 2, "a reserved v5litepod-16", "neither"},
		"a shape in a zone that is not named for it":  {"1 refused " + spotA + ", 2 refused " + spotB, 300, "a spot v5litepod-8", "neither"},
		"on demand, too early":                        {"1 refused " + spotA + ", 30 refused " + spotB, 60, demandA, "refused for 59 m 0 s of 2 h 0 m"},
		"on demand, one of them never asked":          {"1 refused " + spotA, 130, demandA, "b Spot as v5litepod-16 comes before it"},
		"on demand, in time":                          {"1 refused " + spotA + ", 30 refused " + spotB, 150, demandA, ""},
		"another shape, in the time of on demand":     {"1 refused " + spotA + ", 2 refused " + spotB + ", 130 refused " + demandA + ", 131 refused " + demandB, 140, smallB, "refused for 2 h 19 m of 3 h 0 m"},
		"another shape, in time":                      {"1 refused " + spotA + ", 2 refused " + spotB + ", 130 refused " + demandA + ", 131 refused " + demandB, 182, smallB, ""},
		"an old refusal":                              {"-15 refused " + spotA, 1, spotB, "a Spot as v5litepod-16 comes before it"},
		"lost on demand, and on demand again":         {"1 refused " + spotA + ", 2 refused " + spotB + ", 130 usable " + demandA + ", 300 lost " + demandA, 310, demandA, "Spot as v5litepod-16 comes before it"},
		"lost on demand, and back to the first place": {"1 refused " + spotA + ", 2 refused " + spotB + ", 130 usable " + demandA + ", 300 lost " + demandA, 310, spotA, ""},
		"another workload has just been refused":      {"1 other " + spotA, 5, spotB, ""},
		"another workload was refused long ago":       {"-15 other " + spotA, 1, spotB, "was not asked"},
		"the zone preempts again and again":           {"1 lost " + spotA + ", 2 removed " + spotA + ", 9 usable " + spotA + ", 30 lost " + spotA + ", 31 removed " + spotA, 33, spotA, "b Spot as v5litepod-16 comes before it"},
		"so it does, and the other one is asked":      {"1 lost " + spotA + ", 2 removed " + spotA + ", 9 usable " + spotA + ", 30 lost " + spotA + ", 31 removed " + spotA, 33, spotB, ""},
		"it did so long ago":                          {"1 lost " + spotA + ", 2 removed " + spotA + ", 9 usable " + spotA + ", 30 lost " + spotA + ", 31 removed " + spotA, 400, spotA, ""},
		"two losses far apart":                        {"1 lost " + spotA + ", 2 removed " + spotA + ", 9 usable " + spotA + ", 90 lost " + spotA + ", 91 removed " + spotA, 93, spotA, ""},
		"made in vain by the incident before":         {"-30 ordered " + spotB, 5, spotB, ""},
		"made in vain before it was usable":           {"-90 ordered " + spotB + ", -45 usable " + spotA, 5, spotB, "a Spot as v5litepod-16 comes before it"},
		"an order of before that waits still":         {"-30 ordered " + spotA, 5, spotB, ""},
		"an order of before that was withdrawn":       {"-30 ordered " + spotA + ", -20 removed " + spotA, 5, spotB, "a Spot as v5litepod-16 comes before it"},
		"an order of before that was refused":         {"-30 ordered " + spotA + ", -20 refused " + spotA, 5, spotB, "a Spot as v5litepod-16 comes before it"},
		"an order of before, and too early":           {"-130 ordered " + spotA + ", 2 refused " + spotB, 60, demandA, "refused for 1 h 0 m of 2 h 0 m"},
		"one loss, shown twice":                       {"1 lost " + spotA + ", 2 lost " + spotA + ", 3 removed " + spotA, 5, spotA, ""},
	} {
		t.Run(name, func(t *testing.T) {
			noon := time.Date(2026, time.January, 5, 12, 0, 0, 0, time.UTC)
			now := clock.NewClock(noon)
			f := world.SliceConfig{Name: "llama", Zone: "a", Accelerator: "v5litepod-16", Spot: true, Batch: 1024}
			other := world.SliceConfig{Name: "other", Zone: "a", Accelerator: "v5litepod-16", Spot: true}
			zones := map[string]int{"a": -1, "b": -1, "c": -1}
			checks := &Checks{
				World: &world.World{
					Clock: now, Scenario: world.Scenario{Project: "demo", Fleet: []world.SliceConfig{f, other}, Capacity: zones},
					API: cloudtputest.New(cloudtputest.Config{Zones: zones}),
				},
				fleetOf: map[string][]world.SliceConfig{"demo/llama": {f}, "demo/other": {other}}, shape: map[string]string{"llama": f.Accelerator},
				past: map[string][]deed{"llama": {{at: noon.Add(-3 * time.Hour), kind: usable, zone: "a", place: placeOf(t, spotA)}}}, of: map[string]*record{},
			}
			checks.record("demo/llama").opened = noon
			checks.happened(t, noon, c.past)
			now.Advance(noon.Add(time.Duration(c.after) * time.Minute))
			at, got := placeOf(t, c.asked), ""
			if got = checks.tooEarly(f, p, at); !checks.names(f, p, at) {
				got = "neither"
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// happened tells the judge of deeds such as "1 refused a spot v5litepod-16", in minutes after a time.
func (c *Checks) happened(t *testing.T, since time.Time, told string) {
	t.Helper()
	life := events.Incarnation{ID: "0", Created: since.Add(-time.Hour)}
	for _, one := range strings.Split(told, ", ") {
		if one == "" {
			continue
		}
		words := strings.SplitN(one, " ", 3)
		minutes, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		d := deed{at: since.Add(time.Duration(minutes) * time.Minute), by: world.Ours(c.Project), place: placeOf(t, words[2]), life: life}
		d.zone = d.place.Zone
		slice := "llama"
		switch words[1] {
		case "other":
			slice, d.kind = "other", turnedOff
		case "refused":
			d.kind = turnedOff
		case "removed":
			d.kind = removed
		case "ordered":
			d.kind = ordered
		case "usable":
			life = events.Incarnation{ID: words[0], Created: d.at.Add(-time.Minute)}
			d.kind, d.life = usable, life
		case "lost":
			d.kind, d.cause, d.by = broken, events.CausePreemption, faults.Owner
		default:
			t.Fatalf("%q is nothing that happens", one)
		}
		c.past[slice] = append(c.past[slice], d)
	}
}

func placeOf(t *testing.T, text string) view.Place {
	t.Helper()
	at, err := cloudtputest.ParsePlace(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestTheOwnersOrderIsWhatIsAllowed, wherever the slice stands.
func TestTheOwnersOrderIsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for f, want := range map[world.SliceConfig]policy.Switch{
		{Spot: true}: policy.Recreate, {}: policy.RecreateNonSpot, {Reservation: "block"}: policy.RecreateNonSpot,
	} {
		if got := replaces(f); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
}
