package incident_test

import (
	"testing"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestTheStateOfAWorkloadInAWord: each state has its word, and says whether a person is needed.
func TestTheStateOfAWorkloadInAWord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change       func(*incident.Workload)
		policy, path string
		want         view.State
		need         string
	}{
		"it trains":                                   {path: "tick", want: view.Trains},
		"no crew is known":                            {change: crewless, path: "tick", want: view.Trains},
		"no step is known yet":                        {change: func(w *incident.Workload) { w.Training = incident.Training{Seen: start} }, path: "tick", want: view.Beginning},
		"a slice cannot be used":                      {path: "read unhealthy", want: view.Unusable},
		"the owner has it":                            {path: "owner deletes, read gone", want: view.Left},
		"it is finished":                              {path: "finished, its verdict", want: view.Finished},
		"an incident keeps it away":                   {path: "read lost", want: view.Recovers},
		"an incident while it trains":                 {path: "shows movable, tick", want: view.Prepares},
		"an incident is only watched":                 {policy: "watch", path: "read lost", want: view.Watched},
		"an incident asks for a yes":                  {policy: "ask", path: "read lost", want: view.Recovers, need: "pitstop approve "},
		"an incident was given up":                    {policy: "seldom", path: "read lost", want: view.GivenUp, need: "pitstop incident "},
		"it trains again after that":                  {policy: "seldom", path: "read lost, read ready, steps", want: view.Trains},
		"its crew gave up while Pitstop only watched": {policy: "watch", path: "exit 139, gave up, its verdict, tick", want: view.GivenUp, need: "pitstop retry llama-8b"},
		"its crew goes on after that":                 {policy: "watch", path: "exit 139, gave up, its verdict, tick, a minute, started, steps", want: view.Trains},
	} {
		n := newStory(t, true, "llama-8b")
		if c.policy != "" {
			n.under(c.policy)
		}
		if c.change != nil {
			c.change(&n.w)
		}
		n.goes(c.path)
		if c.need == "pitstop approve " {
			c.need += n.w.Incident.ID
		} else if c.need == "pitstop incident " {
			c.need += n.w.Closed.ID
		}
		v, need := n.w.Shown(n.now), ""
		if v.Need != nil {
			need = v.Need.Command
		}
		if v.State != c.want || need != c.need || (v.Wait != nil) != (n.w.Incident != nil) {
			t.Errorf("%s: %s, needs %q; want %s, %q:\n%s", name, v.State, need, c.want, c.need, n.tale())
		}
	}
}
