package incident

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/view"
)

// TestWhatAnIncidentCost: from the last step before the loss to the first one after it, and the steps in between again.
func TestWhatAnIncidentCost(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	// A step takes a minute. The first run did steps 100 to 160 until noon.
	before := Run{Attempt: 1, From: at(-60), First: 100, Until: noon, Last: 160}
	after := Run{Attempt: 2, From: at(30), First: 150, Until: at(40), Last: 160}
	slow := Run{Attempt: 1, From: at(-60), First: 100, Until: noon, Last: 103} // a step takes twenty minutes
	found := func(r Run, m int) Run { r.Over, r.Late = at(m), true; return r }
	ended := func(r Run, m int) Run { r.Over = at(m); return r }
	loss := func(m int, rank events.Rank) Trouble {
		return Trouble{Cause: events.CausePreemption, Slice: "a", At: at(m), Rank: rank}
	}
	hang := Trouble{Cause: events.CauseHang, Slice: "a", At: at(5), Rank: events.RankAudit}
	closes := func(o view.Outcome, m int) Incident { return Incident{Closed: at(m), Ending: &End{Outcome: o}} }
	for name, c := range map[string]struct {
		in      Incident
		runs    runs
		trouble Trouble
		minutes float64
		again   int64
		atLeast bool
	}{
		"it never stopped":                          {runs: runs{before}, trouble: loss(1, events.RankUser)},
		"a crash, until the next attempt":           {runs: runs{ended(before, 1), after}, trouble: loss(1, events.RankUser), minutes: 29, again: 11},
		"it still stands, for two hours":            {runs: runs{ended(before, 1)}, trouble: loss(1, events.RankUser), minutes: 119, atLeast: true},
		"found a minute later":                      {runs: runs{found(before, 3), after}, trouble: loss(3, events.RankReading), minutes: 27, again: 13},
		"found later, but a log tells when":         {runs: runs{found(before, 20), after}, trouble: loss(4, events.RankAudit), minutes: 26, again: 14},
		"found later, and nobody tells when":        {runs: runs{found(before, 20), after}, trouble: loss(20, events.RankReading), minutes: 23, again: 17, atLeast: true},
		"silent for long before the log's loss":     {runs: runs{found(before, 30), after}, trouble: loss(20, events.RankAudit), minutes: 10, again: 30, atLeast: true},
		"no step of it was due before it was found": {runs: runs{found(slow, 20), after}, trouble: loss(20, events.RankReading), minutes: 10},
		"it hung":                                   {runs: runs{found(before, 20), after}, trouble: hang, minutes: 30, again: 10},
		"it hung before it crashed":                 {runs: runs{ended(before, 20), after}, trouble: loss(20, events.RankUser), minutes: 30, again: 10},
		"steps in between":                          {runs: runs{ended(before, 1), ended(after, 40), {Attempt: 3, From: at(50), First: 155, Until: at(55), Last: 160}}, trouble: loss(1, events.RankUser), minutes: 39, again: 16},
		"nobody tells when it went on":              {runs: runs{ended(before, 1), {From: at(10), Early: true}}, trouble: loss(1, events.RankUser), minutes: 9, atLeast: true},
		"it was the last one's until then":          {in: Incident{After: at(10)}, runs: runs{ended(before, 1), after}, trouble: loss(12, events.RankUser), minutes: 20, again: 11},
		"left to people, and not back":              {in: closes(view.Escalated, 20), runs: runs{ended(before, 1)}, trouble: loss(1, events.RankUser), minutes: 119, atLeast: true},
		"left to people, and back":                  {in: closes(view.Escalated, 20), runs: runs{ended(before, 1), after}, trouble: loss(1, events.RankUser), minutes: 29, again: 11},
		"left to people, and taken over":            {in: Incident{Closed: at(20), Ending: &End{Outcome: view.Escalated}, Taken: at(25)}, runs: runs{ended(before, 1), after}, trouble: loss(1, events.RankUser), minutes: 24},
		"its owner has it, who brings it back":      {in: closes(view.Released, 20), runs: runs{ended(before, 1), after}, trouble: loss(1, events.RankUser), minutes: 19},
		"only watched, and not back":                {in: closes(view.Observed, 20), runs: runs{ended(before, 1)}, trouble: loss(1, events.RankUser), minutes: 19, atLeast: true},
		"resumed, and what the next incident stops": {in: closes(view.Resumed, 42), runs: runs{ended(before, 1), ended(after, 43)}, trouble: loss(1, events.RankUser), minutes: 29, again: 11},
	} {
		in := c.in
		in.Opened, in.Runs, in.Troubles, in.ChipHourPrice = at(1), c.runs, []Trouble{c.trouble}, 2
		w := Workload{Slices: []Slot{{Name: "a", Life: Life{Facts: evidence.Facts{Chips: 16}}}}}
		got := w.ShownIncident(in, at(120)).Cost
		hours := 16 * (c.minutes + float64(c.again)) / 60
		want := events.Cost{AwaySeconds: 60 * c.minutes, AgainSteps: c.again, AgainSeconds: 60 * float64(c.again), AtLeast: c.atLeast, ChipHours: hours, Dollars: 2 * hours}
		got.ChipHours, got.Dollars = float64(int(100*got.ChipHours+0.5))/100, float64(int(100*got.Dollars+0.5))/100
		want.ChipHours, want.Dollars = float64(int(100*want.ChipHours+0.5))/100, float64(int(100*want.Dollars+0.5))/100
		if got.Cost != want {
			t.Errorf("%s: %+v, want %+v", name, got.Cost, want)
		}
	}
}
