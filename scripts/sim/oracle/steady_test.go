package oracle

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// step is a document that an incident leaves after so many seconds: what it wants, and the words that it adds to its story.
type step struct {
	after int
	wants []incident.Effect
	told  string
	// seen is evidence that its story tells.
	seen  string
	until int
	lost  bool
	// tightened says that another policy is in force.
	tightened bool
}

// TestNothingIsGivenUpAndWantedAgain: without news, within a minute, before anybody had begun it.
func TestNothingIsGivenUpAndWantedAgain(t *testing.T) {
	start := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	wanted := incident.Effect{Want: incident.Want{Action: events.ActionDelete, Slice: "a"}, Epoch: 1, Attempt: 1, Sent: start}
	dropped, begun, others := wanted, wanted, wanted
	dropped.Epoch, begun.Begun, others.Slice, others.With = 0, start, "b", []string{"a"}
	one := func(x incident.Effect) []incident.Effect { return []incident.Effect{x} }
	for name, c := range map[string]struct {
		steps []step
		want  int
	}{
		"wanted all the time":                   {[]step{{wants: one(wanted)}, {after: 30, wants: one(wanted)}}, 0},
		"given up and wanted again":             {[]step{{wants: one(wanted)}, {after: 1, wants: one(dropped)}, {after: 61, wants: one(wanted)}}, 1},
		"likewise, and forgotten":               {[]step{{wants: one(wanted)}, {after: 1}, {after: 2, wants: one(wanted)}}, 1},
		"wanted again with others":              {[]step{{wants: one(wanted)}, {after: 1}, {after: 2, wants: one(others)}}, 1},
		"wanted with others alone":              {[]step{{wants: one(wanted)}, {after: 1, wants: one(others)}, {after: 2, wants: one(wanted)}}, 0},
		"wanted again later":                    {[]step{{wants: one(wanted)}, {after: 1, wants: one(dropped)}, {after: 62, wants: one(wanted)}}, 0},
		"somebody had begun it":                 {[]step{{wants: one(begun)}, {after: 1}, {after: 2, wants: one(wanted)}}, 0},
		"given up since its slice was lost":     {[]step{{wants: one(wanted)}, {after: 1, lost: true}, {after: 2, wants: one(wanted), lost: true}}, 0},
		"wanted again since it was lost":        {[]step{{wants: one(wanted)}, {after: 1}, {after: 2, wants: one(wanted), lost: true}}, 0},
		"wanted again since something was seen": {[]step{{wants: one(wanted)}, {after: 1}, {after: 2, wants: one(wanted), seen: "it was heard"}}, 0},
		"given up since something was seen":     {[]step{{wants: one(wanted)}, {after: 1, seen: "it failed"}, {after: 2, wants: one(wanted)}}, 1},
		"wanted again under another policy":     {[]step{{wants: one(wanted)}, {after: 1}, {after: 2, wants: one(wanted), tightened: true}}, 0},
		"a wait is told":                        {[]step{{told: "wait", until: 9}}, 0},
		"and told again":                        {[]step{{told: "wait", until: 9}, {after: 1, told: "another", until: 9}, {after: 2, told: "wait", until: 9}}, 1},
		"and told again with another end":       {[]step{{told: "wait", until: 9}, {after: 1, told: "wait", until: 10}}, 0},
		"and told again when a slice is lost":   {[]step{{told: "wait", until: 9}, {after: 1, told: "wait", until: 9, lost: true}}, 0},
	} {
		checks := &Checks{World: &world.World{Clock: clock.NewClock(start)}, of: map[string]*record{}, chaos: &faults.Chaos{}}
		w, p := incident.New("demo", "a", "tpu"), policy.Policy{}
		w.Slices = []incident.Slot{{Name: "a"}}
		for _, s := range c.steps {
			before := see(w, w.Shown(start))
			in := incident.Incident{ID: "a-1"}
			if w.Incident != nil {
				in = *w.Incident
			}
			if w.Effects, in.Status.Until = s.wants, start.Add(time.Duration(s.until)*time.Hour); s.told != "" {
				in.Lines = append(in.Lines, incident.Line{Kind: view.LineDecided, What: story.Said.With(s.told)})
			}
			if s.seen != "" {
				in.Lines = append(in.Lines, incident.Line{Kind: view.LineSeen, What: story.Said.With(s.seen)})
			}
			if w.Incident = &in; s.lost {
				w.Slices = []incident.Slot{{Name: "a", Life: incident.Life{Condition: evidence.Lost}}}
			}
			if s.tightened {
				p.Name = "tight"
			}
			checks.steady(ledger.Step{Policy: p, At: start.Add(time.Duration(s.after) * time.Second)}, before, see(w, w.Shown(start)))
		}
		if got := len(checks.Violations); got != c.want {
			t.Errorf("%s: %d violations, want %d: %v", name, got, c.want, checks.Violations)
		}
	}
}
