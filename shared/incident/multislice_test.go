package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestMultislice drives a Multislice through what may happen to one slice while the other lives, or does not.
func TestMultislice(t *testing.T) {
	t.Parallel()
	const making = "a read lost, do, a read gone, do" // a is being made
	for name, c := range map[string]struct {
		policy string
		spot   bool
		steps  []string
	}{
		"one is preempted while the other lives": {"everything", true, []string{
			"a preempted", "looking", "b read ready", "looking", "a read lost", "deleting: delete a", "do, b exit 139", "deleting", // a consequence, and no trouble of its own
			"b gave up, b read ready", "deleting", "a read gone", "creating: create a", "do, b read ready, a read ours made", "creating",
			"a read ready", "admitting: admit a=7712 b=7760", "do, b started", "resuming", "b progress", "resumed",
		}},
		"both are preempted at once": {"everything", true, []string{
			"a preempted, b preempted", "looking", "a read lost", "deleting: delete a", "b read lost", "deleting: delete a, delete b", // nobody has begun the first: it needs the new epoch
			"b read lost", "deleting", "do, a read gone", "deleting", "b read gone", "creating: create a, create b", "do, b read ours", "creating",
			"a read ours", "admitting: admit a=7712 b=7761",
		}},
		"the second goes while the first is being created": {"everything", true, []string{
			making + ", b read lost", "deleting: delete b", "a read gone", "deleting", // it is not there yet
			"a read ours made, do, a read ready", "deleting", "b read gone", "creating: create b", "do, b read ours", "admitting: admit a=7712 b=7761",
		}},
		"the second goes while the first waits for capacity": {"spot", true, []string{
			"a read lost, do, a read gone, intend create 0, stockout create 0", "creating", // where the second is
			"b read lost", "deleting: delete b", "do, b read gone", "creating: create a, create b", "intend create 0, stockout create 0", "creating", // that zone refuses again
		}},
		"the first comes while the second comes back": {"everything", true, []string{
			making + ", b read lost", "deleting: delete b", "a read ours", "deleting", "b read ready", "admitting: admit a=7712 b=7760",
		}},
		"the second is not usable when the first is there again": {"everything", true, []string{
			"a read lost, do, b read unhealthy", "deleting", "a read gone", "creating: create a", "do, a read ours", "healing", // admission waits for both
			"b read ready", "admitting: admit a=7712 b=7760",
		}},
		"the second vanishes without a word while the first is being replaced": {"everything", true, []string{
			"a read lost, do, b read gone", "deleting", "a read gone", "creating: create a", "do, a read ours", "grace", "later", "grace", "tick", "creating: create b",
			"do, b read ours", "admitting: admit a=7712 b=7761",
		}},
		"the owner deletes the second while the first is being replaced": {"everything", true, []string{"a read lost, do, b owner deletes", "released"}},
		"both vanish without a word":                                     {"everything", true, []string{"a read gone, b read gone, later", "peace", "tick", "creating: create a, create b"}},
		"on demand, Google is waited for, and then both are replaced": {"everything", false, []string{
			"a terminated", "looking", "a read lost, b read lost, later", "healing", "tick", "deleting: delete a, delete b",
		}},
		"on demand, the second vanishes while Google is waited for with the first": {"everything", false, []string{
			"a terminated, a read lost, b read gone, a read lost, later", "grace", "tick", "creating: create b", "do, b read ours, later", "healing",
			"tick", "deleting: delete a", "do, a read gone", "creating: create a",
		}},
		"on demand, the second vanishes just before Google is not waited for any more": {"everything", false, []string{
			"a terminated, a read lost, later", "healing", "b read gone", "deleting: delete a", "do, a read gone", "creating: create a",
			"do, a read ours", "grace", // its owner may have deleted the second
			"b owner deletes", "clearing: delete a", // which nobody but us wanted
		}},
		"one has a notice": {"everything", true, []string{
			"b pending, later", "peace", "tick", "saving: save", "do, saved", "saving: verify", "intend verify 0, found verify 0", "maintaining: maintain b",
			"do, a read ready", "window", // it has no maintenance, and tells nothing of the other's
			"b ongoing, b read unhealthy, a read ready", "window", "b read ready, b notice gone, a started, a progress, a progress", "resuming",
			"b progress", "resumed", // past the step that was saved
		}},
		"both have a notice, and one is over before the other": {"seldom", false, []string{
			"a pending, b pending, later, tick, do, saved, intend verify 0, found verify 0", "maintaining: maintain a, maintain b",
			"do, a read unhealthy, a read ready, a notice gone, a read ready", "window", // the other still waits for its own
			"b read unhealthy, b notice gone", "window", "b read ready", "resuming",
		}},
		"one's maintenance is over long before the other's begins": {"spot", false, []string{
			"a pending, b moved, later, tick", "saving: save", // that is a day later
			"a ongoing, a read unhealthy, b read ready, a notice gone", "window", "a read ready", "resuming", "a progress", "resumed",
		}},
		"one is preempted in the maintenance of the other": {"spot", true, []string{
			"b ongoing", "saving: save", "do, b read unhealthy", "window", "a read lost", "deleting: delete a", "do, a read gone, do, a read ours, b notice gone", "healing",
			"b read ready", "admitting: admit a=7712 b=7760",
		}},
		"under watch, both are followed": {"watch", true, []string{
			"a preempted, a read lost, b read lost, a read foreign, a progress, b read foreign", "watching", "b progress", "observed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			multi(t, c.spot).under(c.policy).history(c.steps...)
		})
	}
}

// TestAMultisliceComesBackWhateverIsLostAndInWhichOrder takes slices away at any moment of their replacement, while requests and answers are
// lost, and then takes no more: training goes on in both, in one zone. A person has to say a word only where an incident was left to them.
func TestAMultisliceComesBackWhateverIsLostAndInWhichOrder(t *testing.T) {
	t.Parallel()
	for seed := range breadth.Of[uint64](400, 20) {
		o := newWorld(seed)
		if len(o.w.Slices) < 2 || o.w.Directory == "" {
			continue
		}
		round := func() {
			o.patrol()
			for _, r := range o.w.Reads(o.now).Of(incident.ReadDeleter, "") { // nobody deleted it
				if r.Silence(o.now) {
					o.give(evidence.Unsaid{Origin: o.origin(events.RankReading), Slice: r.Slice, Incarnation: r.Life})
				}
			}
			o.steps()
			o.pass(time.Minute)
		}
		for start, losses := o.now, 5; o.now.Sub(start) < 90*time.Minute; {
			if running := o.owned(); len(running) > 0 && losses > 0 && o.chance(8) {
				losses--
				o.preempt(scene{life: running[o.IntN(len(running))]})
			}
			round()
		}
		zones := map[string]bool{}
		trains := func() bool {
			clear(zones)
			n := 0
			for _, l := range o.lives {
				if l.trains > 0 {
					n, zones[l.inc.Zone] = n+1, true
				}
			}
			return n == 2
		}
		for end := o.now.Add(48 * time.Hour); o.broken == "" && o.now.Before(end) && (o.w.Incident != nil || !trains()); round() {
			if o.w.Incident == nil && o.w.Closed != nil && o.w.Closed.Ending.Outcome == view.Escalated {
				o.retry(scene{})
			}
		}
		journal := strings.Join(o.journal, "\n")
		torn := len(zones) > 1 && !strings.Contains(journal, "unawares") // what comes of a refused creation stays where it is
		if o.broken != "" || o.w.Incident != nil || !trains() || torn {
			t.Fatalf("walk %d: %s; open %v, zones %v\n%s", seed, o.broken, o.w.Incident != nil, zones, journal)
		}
	}
}
