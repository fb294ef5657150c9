package oracle

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// TestHowLongATrainingStood: from its last step before an incident to the end of that, without what another one has told.
func TestHowLongATrainingStood(t *testing.T) {
	start := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	worked := func(from, until int) trainingtest.Stretch {
		return trainingtest.Stretch{From: at(from), Until: at(until), Again: time.Minute}
	}
	for name, c := range map[string]struct {
		worked             []trainingtest.Stretch
		from, least, until int
		away, again        time.Duration
	}{
		"it never stood":                     {[]trainingtest.Stretch{worked(0, 9)}, 2, 0, 9, 0, 0},
		"it stands since before":             {[]trainingtest.Stretch{worked(0, 1)}, 2, 0, 9, 8 * time.Hour, 0},
		"it went on":                         {[]trainingtest.Stretch{worked(0, 1), worked(5, 9)}, 2, 0, 9, 4 * time.Hour, time.Minute},
		"it stood later, and twice":          {[]trainingtest.Stretch{worked(0, 3), worked(4, 5), worked(7, 9)}, 2, 0, 9, 3 * time.Hour, 2 * time.Minute},
		"the incident before has told of it": {[]trainingtest.Stretch{worked(0, 1)}, 5, 4, 9, 4 * time.Hour, 0},
		"it never began":                     {nil, 2, 0, 9, 7 * time.Hour, 0},
	} {
		if away, again := stood(c.worked, at(c.from), at(c.least), at(c.until)); away != c.away || again != c.again {
			t.Errorf("%s: %s, and %s again, want %s and %s", name, away, again, c.away, c.again)
		}
	}
}

// TestTheWorstIsFurthestOff, whether it tells too much or too little.
func TestTheWorstIsFurthestOff(t *testing.T) {
	of := func(id string, told, world float64) AwayOf {
		return AwayOf{Incident: id, Cause: events.CauseCrash, ToldSeconds: told, WorldSeconds: world, toldChipHours: told / 100, worldChipHours: world / 100}
	}
	got := sumAway([]AwayOf{of("a", 3600, 3600), of("b", 3600, 3000), of("c", 0, 3600)})
	want := Away{
		Incidents: 3, Right: 1, RightCost: 1, ToldHours: 2, WorldHours: 2.8, ToldChipHours: 72, WorldChipHours: 102, Worst: of("c", 0, 3600),
		TooLong: Percentiles{P50: 600, P95: 600, P99: 600, Count: 2}, TooShort: Percentiles{P50: 3600, P95: 3600, P99: 3600, Count: 1},
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
