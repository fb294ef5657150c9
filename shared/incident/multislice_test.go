package incident_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// multi is a Multislice of two slices, a and b, that trains and has a crew.
func multi(spot bool) incident.Workload {
	w := quiet(spot)
	a, b := w.Slices[0], w.Slices[0]
	a.Name = "a"
	b.Name, b.Hosts, b.Incarnation = "b", "t1v-n-3f2a9c02", life(50)
	w.Slices = []incident.Slot{a, b}
	return w
}

// singles is a Multislice of two slices of one worker each, on demand, which can be stopped and started, spotSingles one of Spot.
func singles(bool) incident.Workload     { return ofOneWorker(multi(false)) }
func spotSingles(bool) incident.Workload { return ofOneWorker(multi(true)) }

func ofOneWorker(w incident.Workload) incident.Workload {
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Accelerator, s.Workers, s.Chips = "v5litepod-8", 1, 8
	}
	return w
}

// evidenceOfBoth is what may be learned of either slice, under its name, and what may come of what was asked for.
func evidenceOfBoth(w incident.Workload, now time.Time) map[string]incident.Evidence {
	out := answers(w, w.Slices[0], now)
	for _, s := range w.Slices {
		for name, e := range learned(w, s, now) {
			out[s.Name+" "+name] = e
		}
	}
	return out
}

// asks writes a request in few words.
func asks(e events.Event) string {
	switch e := e.(type) {
	case events.CheckpointRequested:
		return strings.TrimSpace(string(e.Action) + " " + e.Slice)
	case events.RecreateRequested:
		s := string(e.Action) + " " + e.Slice
		for _, m := range e.With {
			s += " with " + m.Slice
		}
		return s
	case events.RecoveryRequested:
		s := string(e.Action)
		for _, a := range e.Admit {
			s += " " + a.Slice + "=" + a.Incarnation.ID
		}
		return s
	}
	return ""
}

// TestMultislice drives a Multislice through what may happen to one slice while the other lives, or does not. A step
// names the evidence; "do" has every open request begun and accepted, "later" lets the time come for which the state
// waits. What is asked for follows behind the phase.
func TestMultislice(t *testing.T) {
	for name, c := range map[string]struct {
		policy   string
		onDemand bool
		// steps and what follows from each: the phase or the outcome, and the requests.
		steps [][2]string
	}{
		"one is preempted while the other lives": {"everything", false, [][2]string{
			{"a preempted", "looking"},
			{"b read ready", "looking"},
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"b exit 139", "deleting"}, // a consequence, and no trouble of its own
			{"b gave up", "deleting"},
			{"b read ready", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"b read ready", "creating"},
			{"a read ours made", "creating"},
			{"a read ready", "admitting: admit a=7712 b=7760"},
			{"do", "resuming"},
			{"b started", "resuming"},
			{"b progress", "resumed"},
		}},
		"both are preempted at once": {"everything", false, [][2]string{
			{"a preempted", "looking"},
			{"b preempted", "looking"},
			{"a read lost", "deleting: delete a"},
			{"b read lost", "deleting: delete a, delete b"}, // nobody has begun the first: it needs the new epoch
			{"b read lost", "deleting"},
			{"do", "deleting"},
			{"a read gone", "deleting"},
			{"b read gone", "creating: create a, create b"},
			{"do", "creating"},
			{"b read ours", "creating"},
			{"a read ours", "admitting: admit a=7712 b=7761"},
			{"do", "resuming"},
		}},
		"the second goes while the first is being deleted": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"b read lost", "deleting: delete b"},
			{"a read gone", "deleting"},
			{"do", "deleting"},
			{"b read gone", "creating: create a, create b"},
		}},
		"the second goes while the first is being created": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"b read lost", "deleting: delete b"},
			{"a read gone", "deleting"}, // it is not there yet
			{"a read ours made", "deleting"},
			{"do", "deleting"},
			{"a read ready", "deleting"},
			{"b read gone", "creating: create b"},
			{"do", "creating"},
			{"b read ours", "admitting: admit a=7712 b=7761"},
		}},
		"the second goes while the first waits for capacity": {"spot", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"intend create 0", "creating"},
			{"stockout create 0", "creating"}, // where the second is
			{"b read lost", "deleting: delete b"},
			{"do", "deleting"},
			{"b read gone", "creating: create a, create b"},
			{"intend create 0", "creating"},
			{"stockout create 0", "creating"}, // the zone where the first waited has just refused, too
		}},
		"the second comes back before anybody has begun to delete it": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"b read lost", "deleting: delete b"},
			{"b read ready", "creating: create a"},
		}},
		"the first comes while the second comes back": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"b read lost", "deleting: delete b"},
			{"a read ours", "deleting"},
			{"b read ready", "admitting: admit a=7712 b=7760"},
		}},
		"the second goes while the first is being admitted": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"a read ours", "admitting: admit a=7712 b=7760"},
			{"b read lost", "deleting: delete b"},
			{"do", "deleting"},
			{"b read gone", "creating: create b"},
			{"do", "creating"},
			{"b read ours", "admitting: admit a=7712 b=7761"},
		}},
		"the second is not usable when the first is there again": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"b read unhealthy", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"a read ours", "healing"}, // admission waits for both
			{"b read ready", "admitting: admit a=7712 b=7760"},
		}},
		"the second vanishes without a word while the first is being replaced": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"b read gone", "deleting"},
			{"a read gone", "creating: create a"},
			{"b read gone", "creating"},
			{"do", "creating"},
			{"a read ours", "grace"},
			{"later", "grace"},
			{"tick", "creating: create b"},
			{"do", "creating"},
			{"b read ours", "admitting: admit a=7712 b=7761"},
		}},
		"the owner deletes the second while the first is being replaced": {"everything", false, [][2]string{
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"b owner deletes", "released"},
		}},
		"both vanish without a word": {"everything", false, [][2]string{
			{"a read gone", "peace"},
			{"b read gone", "peace"},
			{"later", "peace"},
			{"tick", "creating: create a, create b"},
		}},
		"on demand, Google is waited for, and then both are replaced": {"everything", true, [][2]string{
			{"a terminated", "looking"},
			{"a read lost", "healing"},
			{"b read lost", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete a, delete b"},
			{"do", "deleting"},
			{"a read gone", "deleting"},
			{"b read gone", "creating: create a, create b"},
		}},
		"on demand, the second vanishes while Google is waited for with the first": {"everything", true, [][2]string{
			{"a terminated", "looking"},
			{"a read lost", "healing"},
			{"b read gone", "grace"},
			{"a read lost", "grace"},
			{"b read gone", "grace"},
			{"later", "grace"},
			{"tick", "creating: create b"},
			{"do", "creating"},
			{"b read ours", "healing"},
			{"later", "healing"},
			{"tick", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
		}},
		"on demand, the second vanishes just before Google is not waited for any more": {"everything", true, [][2]string{
			{"a terminated", "looking"},
			{"a read lost", "healing"},
			{"later", "healing"},
			{"b read gone", "grace"},
			{"tick", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"a read ours", "grace"},                  // its owner may have deleted the second
			{"b owner deletes", "clearing: delete a"}, // which nobody but us wanted
		}},
		"on demand, the second is waited for when the first is there again": {"everything", true, [][2]string{
			{"a read gone", "peace"},
			{"later", "peace"},
			{"tick", "creating: create a"},
			{"b read lost", "creating"},
			{"do", "creating"},
			{"a read ours", "healing"},
			{"b read ready", "admitting: admit a=7712 b=7760"},
		}},
		"one has a notice": {"everything", false, [][2]string{
			{"b pending", "peace"},
			{"later", "peace"},
			{"tick", "saving: save"},
			{"do", "saving"},
			{"saved", "saving: verify"},
			{"intend verify 0", "saving"},
			{"found verify 0", "maintaining: maintain b"},
			{"do", "window"},
			{"a read ready", "window"}, // it has no maintenance, and tells nothing of the other's
			{"b ongoing", "window"},
			{"b read unhealthy", "window"},
			{"a read ready", "window"},
			{"b read ready", "resuming"},
			{"b notice gone", "resuming"},
			{"a started", "resuming"},
			{"a progress", "resuming"},
			{"a progress", "resuming"},
			{"b progress", "resumed"}, // past the step that was saved
		}},
		"both have a notice, and one is over before the other": {"seldom", true, [][2]string{
			{"a pending", "peace"},
			{"b pending", "peace"},
			{"later", "peace"},
			{"tick", "saving: save"},
			{"do", "saving"},
			{"saved", "saving: verify"},
			{"intend verify 0", "saving"},
			{"found verify 0", "maintaining: maintain a, maintain b"},
			{"do", "window"},
			{"a read unhealthy", "window"},
			{"a read ready", "window"},
			{"a notice gone", "window"}, // the other still waits for its own
			{"a read ready", "window"},
			{"b read unhealthy", "window"},
			{"b notice gone", "window"},
			{"b read ready", "resuming"},
		}},
		"one's maintenance is over long before the other's begins": {"spot", true, [][2]string{
			{"a pending", "peace"},
			{"b moved", "peace"}, // a day later
			{"later", "peace"},
			{"tick", "saving: save"},
			{"a ongoing", "saving"},
			{"a read unhealthy", "window"},
			{"b read ready", "window"},
			{"a notice gone", "window"},
			{"a read ready", "resuming"},
			{"a progress", "resumed"},
		}},
		"one is preempted in the maintenance of the other": {"spot", false, [][2]string{
			{"b ongoing", "saving: save"},
			{"do", "saving"},
			{"b read unhealthy", "window"},
			{"a read lost", "deleting: delete a"},
			{"do", "deleting"},
			{"a read gone", "creating: create a"},
			{"do", "creating"},
			{"a read ours", "healing"},
			{"b notice gone", "healing"},
			{"b read ready", "admitting: admit a=7712 b=7760"},
		}},
		"under watch, both are followed": {"watch", false, [][2]string{
			{"a preempted", "watching"},
			{"a read lost", "watching"},
			{"b read lost", "watching"},
			{"a read foreign", "watching"},
			{"a progress", "watching"},
			{"b read foreign", "watching"},
			{"b progress", "observed"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies[c.policy]
			n := node{w: multi(!c.onDemand), now: start, path: name}
			plays(t, p, n, c.steps)
		})
	}
}

// stands says where a workload stands and what was asked for.
func stands(w incident.Workload, sent []events.Event) string {
	s := phaseOf(w)
	if w.Incident == nil && w.Closed != nil {
		s = string(w.Closed.Outcome)
	}
	var requests []string
	for _, e := range sent {
		if a := asks(e); a != "" {
			requests = append(requests, a)
		}
	}
	slices.Sort(requests)
	if requests != nil {
		s += ": " + strings.Join(requests, ", ")
	}
	return s
}

// play does one step of a story.
func play(t *testing.T, p policy.Policy, n node, what string) (node, []events.Event) {
	t.Helper()
	next := node{w: n.w, now: n.now.Add(time.Second), path: n.path + " > " + what}
	switch what {
	case "later":
		when := overdue(n.w)
		if n.w.Incident != nil {
			when = n.w.Incident.Deadline
		}
		next.now = when.Add(time.Second)
		return next, nil
	case "a minute":
		next.now = n.now.Add(time.Minute)
		return next, nil
	case "a while":
		next.now = n.now.Add(incident.Grace)
		return next, nil
	case "tick":
		w, sent, _ := tick(p, n.w, next.now)
		next.w = w
		return next, sent
	case "do":
		return do(t, p, next), nil
	}
	e, ok := evidenceOfBoth(n.w, next.now)[what]
	if !ok {
		t.Fatalf("%s: there is no such evidence in this state", next.path)
	}
	var sent []events.Event
	next.w, sent, _ = advance(p, n.w, e, next.now)
	checkDocument(t, next, next.w)
	checkSent(t, p, n, next, next.w, e, sent)
	return next, sent
}

// plays tells a whole story: each step, and what follows from it.
func plays(t *testing.T, p policy.Policy, n node, steps [][2]string) node {
	t.Helper()
	early := "" // what follows from a step although it was to follow from the next tick
	for i, s := range steps {
		var sent []events.Event
		n, sent = play(t, p, n, s[0])
		played.Add(1)
		switch got := stands(n.w, sent); {
		case got == s[1] || isAccepted(n.path, s[1], got):
			same.Add(1)
		case *third && i+1 < len(steps) && steps[i+1][0] == "tick" && got == steps[i+1][1]:
			same.Add(1)
			early = got
		case early != "" && s[1] == early && strings.HasPrefix(early, got+": "):
			same.Add(1)
		case *third:
			t.Errorf("%s: want %q, got %q", n.path, s[1], got)
		default:
			t.Fatalf("%s: want %q, got %q", n.path, s[1], got)
		}
	}
	return n
}

// do has every request that waits begun and accepted.
func do(t *testing.T, p policy.Policy, n node) node {
	t.Helper()
	for _, what := range []string{"intend", "accepted"} {
		for i, effect := range slices.Clone(n.w.Effects) {
			name := fmt.Sprintf("%s %s %d", what, effect.Action, i)
			if e, ok := answers(n.w, n.w.Slices[0], n.now)[name]; ok && effect.Answered.IsZero() {
				n.w, _, _ = advance(p, n.w, e, n.now)
			}
			if n.w.Incident == nil || len(n.w.Effects) == 0 {
				return n
			}
		}
	}
	return n
}

// reachMulti leads a Multislice to where two things go on at once.
var reachMulti = []struct {
	policy, path string
	// of is the workload in peace.
	of func(spot bool) incident.Workload
}{
	{"everything", "a pending, b ongoing", multi},
	{"everything", "b pending, later, tick, do, saved, intend verify 0, found verify 0, do", multi},
	{"everything", "a preempted, b preempted", multi},
	{"everything", "a read lost, do, b read lost", multi},
	{"everything", "a read lost, do, a read gone, do, b read lost, do", multi},
	{"everything", "a read lost, do, a read gone, do, b read gone, a read ours made", multi},
	{"everything", "a read lost, do, b read unhealthy, a read gone, do, a read ours", multi},
	{"everything", "a read lost, do, a read gone, do, a read ours, do", multi},
	{"ask", "a preempted, a read lost, b read lost, b approved, do", multi},
	{"everything", "a read lost, do, a read gone, do", multi},
	{"everything", "a read lost, do, a read gone, do, a read ours, b read unhealthy", multi},
	{"everything", "a read lost", queued},
	{"everything", "a read lost, b read lost, do, a read gone, b read gone, do", queued},
	{"everything", "a read lost, b read lost, do, a read gone, b read gone, do, a read ours", queued},
	{"everything", "a read lost, b read lost, do, a read gone, b read gone, do, a read ours, b read ours", queued},
	{"ask", "a read lost", queued},
	{"everything", "a read stopped, later, a unsaid, tick, do, b read lost", singles},
	{"everything", "a read stopped, later, a unsaid, tick, do, b read lost, later", singles},
	{"ask", "a read stopped, later, a unsaid, tick, b read lost", singles},
	{"ask", "b read lost, b approved, do, b read gone, do, a read stopped, b read ours, later, a unsaid, tick", spotSingles},
	{"everything", "a read lost, b read lost, a read stopped", func(bool) incident.Workload { return queued(false) }},
}

// exploreMulti walks the states of a Multislice.
func exploreMulti(t *testing.T) {
	for _, what := range []string{"a read gone", "a read deleting", "a read unhealthy", "a read stopped"} {
		t.Run("multislice/peace/"+what, func(t *testing.T) { // of which an incident about the other slice finds it
			t.Parallel()
			n, _ := play(t, policies["everything"], node{w: multi(true), now: start, path: "peace"}, what)
			explore(t, policies["everything"], n, 2, evidenceOfBoth)
		})
	}
	for i, r := range reachMulti {
		t.Run(fmt.Sprintf("multislice/%d", i), func(t *testing.T) {
			t.Parallel()
			n := node{w: r.of(true), now: start, path: "peace"}
			for what := range strings.SplitSeq(r.path, ", ") {
				n, _ = play(t, policies[r.policy], n, what)
			}
			explore(t, policies[r.policy], n, 2, evidenceOfBoth)
			change(t, n, evidenceOfBoth)
		})
	}
}

// cloud is a simulated provider with a crew on both slices, as far as the decision sees them.
type cloud struct {
	t    *testing.T
	p    policy.Policy
	rand *rand.Rand
	n    node
	// machines are the slices as they are, whatever anybody has read of them.
	machines map[string]*machine
	lives    int
	// waiting are the requests that nobody has carried out.
	waiting []events.Event
	// lease is where training may run, attempt and step how far it is.
	lease   []events.Admission
	attempt int
	told    int
	step    int64
	// lost says that a request was lost.
	lost bool
	// ended counts the incidents that closed.
	ended int
}

type machine struct {
	condition incident.Condition
	life      events.Incarnation
	by        string
}

func newCloud(t *testing.T, seed uint64, spot bool, p policy.Policy) *cloud {
	t.Helper()
	c := &cloud{
		t: t, p: p, rand: rand.New(rand.NewPCG(seed, 0)), lives: 100, attempt: 1, told: 1, //nolint:gosec // reproducible by its seed
		n: node{w: multi(spot), now: start, path: fmt.Sprint("seed ", seed)}, machines: map[string]*machine{},
	}
	c.step = c.n.w.Progress.Step
	for _, s := range c.n.w.Slices {
		c.machines[s.Name] = &machine{condition: incident.Ready, life: s.Incarnation}
		c.lease = append(c.lease, events.Admission{Slice: s.Name, Incarnation: s.Incarnation})
	}
	return c
}

// chance is true in one of n cases.
func (c *cloud) chance(n int) bool { return c.rand.IntN(n) == 0 }

func (c *cloud) origin(r events.Rank) incident.Origin {
	return incident.Origin{ID: "x", Time: c.n.now, Rank: r}
}

// learn advances the workload by one piece of evidence and holds the rules.
func (c *cloud) learn(e incident.Evidence) {
	c.t.Helper()
	before := c.n
	var sent []events.Event
	if _, ticks := e.(incident.Ticked); ticks {
		c.n.w, sent, _ = tick(c.p, c.n.w, c.n.now)
	} else {
		c.n.w, sent, _ = advance(c.p, c.n.w, e, c.n.now)
	}
	checkDocument(c.t, c.n, c.n.w)
	checkSent(c.t, c.p, before, c.n, c.n.w, e, sent)
	for _, s := range sent {
		if closed, ok := s.(events.IncidentClosed); ok {
			c.ended++
			if closed.Outcome != string(incident.Resumed) {
				c.t.Fatalf("%s: an incident ended in %s; %s", c.n.path, closed.Outcome, tale(c.n.w))
			}
			continue
		}
		c.waiting = append(c.waiting, s)
	}
}

// carryOut does what a function does with a request.
func (c *cloud) carryOut(e events.Event) {
	h, ok := e.(interface{ Header() events.Request })
	if !ok {
		c.t.Fatalf("%s: %s is sent to nobody", c.n.path, e.EventType())
	}
	r := h.Header()
	if _, _, err := fence(c.n.w, r.Pointer(), c.n.now); err != nil {
		return
	}
	c.learn(incident.Intended{Origin: c.origin(events.RankReading), Request: r, RequestID: "uuid"})
	begun := func(x incident.Effect) bool { return x.Action == r.Action && x.Slice == r.Slice && !x.Begun.IsZero() }
	if !slices.ContainsFunc(c.n.w.Effects, begun) {
		return // the last look found a reason against it
	}
	answer := incident.Answered{Origin: c.origin(events.RankReading), Request: r, Text: "accepted"}
	fail := func(class incident.FailureClass) {
		answer.Failure = &incident.Failure{Class: class, Message: string(class)}
	}
	m := c.machines[r.Slice]
	switch e := e.(type) {
	case events.RecoveryRequested:
		c.lease, c.attempt = e.Admit, e.TrainingAttempt
	case events.RecreateRequested:
		switch {
		case c.chance(10):
			fail(incident.Transient)
		case r.Action == events.ActionDelete && (m.condition == incident.Gone || !m.life.Same(r.Incarnation)):
			fail(incident.NotFound)
		case r.Action == events.ActionDelete:
			if m.condition == incident.Ready {
				c.t.Fatalf("%s: %s is deleted and nothing is wrong with it; %s", c.n.path, r.Slice, tale(c.n.w))
			}
			m.condition, answer.Operation = incident.Deleting, "delete-"+r.Slice
		case m.condition != incident.Gone:
			fail(incident.Exists)
		case c.chance(4):
			fail(incident.Stockout)
		default:
			c.lives++
			*m = machine{incident.Creating, events.Incarnation{Zone: e.Zone, ID: fmt.Sprint(c.lives), Created: c.n.now}, r.Incident}
			answer.Operation = "create-" + r.Slice
		}
	default:
		c.t.Fatalf("%s: nobody asked for %s", c.n.path, r.Action)
	}
	c.learn(answer)
}

// minute lets one pass: machines change, requests are carried out or lost, what there is to see is seen or missed.
func (c *cloud) minute() {
	c.n.now = c.n.now.Add(time.Minute)
	names := []string{"a", "b"}
	if c.chance(2) {
		slices.Reverse(names)
	}
	for _, name := range names {
		switch m := c.machines[name]; {
		case m.condition == incident.Creating && c.chance(3):
			m.condition = incident.Ready
		case m.condition == incident.Deleting && c.chance(2):
			m.condition = incident.Gone
		}
	}
	for _, e := range c.takeWaiting() {
		switch {
		case !c.lost && c.chance(20):
			c.lost = true // once: Pub/Sub delivers again
		case c.chance(3):
			c.waiting = append(c.waiting, e)
		default:
			c.carryOut(e)
		}
	}
	for _, name := range names {
		if !c.chance(4) {
			c.read(name)
		}
	}
	c.train()
	c.learn(incident.Ticked{})
}

func (c *cloud) takeWaiting() []events.Event {
	taken := c.waiting
	c.waiting = nil
	return taken
}

// read is a reading of a slice: where it has to be, if it is gone.
func (c *cloud) read(name string) {
	m, w := c.machines[name], c.n.w
	s := w.Slice(name)
	r := incident.Read{
		Origin: c.origin(events.RankReading), Slice: name, Zone: m.life.Zone, Condition: m.condition, Incarnation: m.life,
		State: strings.ToUpper(string(m.condition)), Incident: m.by,
		Facts: incident.Facts{Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Reclaimable: s.Reclaimable, Spec: s.Spec, Label: w.Label}, Directory: w.Directory,
	}
	if m.condition == incident.Gone {
		r.Zone = s.Zone
		if w.Incident != nil {
			for _, effect := range w.Effects {
				if effect.Action == events.ActionCreate && effect.Slice == name {
					r.Zone = effect.Zone
				}
			}
		}
	}
	c.learn(r)
}

// trains reports whether both slices are there and named by the lease.
func (c *cloud) trains() bool {
	for _, a := range c.lease {
		if m := c.machines[a.Slice]; m.condition != incident.Ready || !m.life.Same(a.Incarnation) {
			return false
		}
	}
	return len(c.lease) == len(c.machines)
}

// train does steps while both slices are there, and has the crews tell of them.
func (c *cloud) train() {
	if !c.trains() {
		return
	}
	if c.told < c.attempt {
		c.told = c.attempt
		c.report("a", events.CrewReport{Report: events.ReportStarted, Workers: 4, Step: c.step})
	}
	c.step += 6
	if c.chance(5) {
		c.report([]string{"a", "b"}[c.rand.IntN(2)], events.CrewReport{Report: events.ReportProgress, Step: c.step, CheckpointStep: c.step - c.step%100})
	}
}

func (c *cloud) report(name string, r events.CrewReport) {
	r.Schema, r.Zone, r.Node, r.Attempt = events.Schema, c.machines[name].life.Zone, name, c.attempt
	c.learn(incident.Reported{Origin: c.origin(events.RankUser), Slice: name, Report: r})
}

// lose takes a slice away, and leaves word of it or does not. The crew of the other one reports a failed exit.
func (c *cloud) lose(name, other string) {
	m := c.machines[name]
	if m.condition != incident.Ready && m.condition != incident.Creating {
		return
	}
	trained := c.trains()
	m.condition = incident.Lost
	if c.chance(8) {
		m.condition = incident.Gone
	}
	if c.chance(2) {
		c.learn(incident.Interrupted{
			Origin: c.origin(events.RankAudit), Slice: name, Incarnation: m.life, Cause: events.CausePreemption, Text: "worker 2 was preempted",
		})
	}
	if trained && c.chance(2) {
		c.report(other, events.CrewReport{Report: events.ReportExited, ExitCode: 1, Step: c.step, RestartsLeft: 4})
	}
}

// TestAMultisliceComesBackWhateverIsLostAndInWhichOrder takes slices away at any moment of their replacement, loses
// requests and readings, refuses capacity, and then lets the cloud be fair: training has to go on in both, every
// incident has to end by progress, and no slice that is there may be deleted on the way.
func TestAMultisliceComesBackWhateverIsLostAndInWhichOrder(t *testing.T) {
	for seed := range breadth.Of[uint64](1000, 20) {
		spot, p := true, policies["spot"]
		if seed%4 == 0 {
			spot, p = false, policies["everything"] // Google's own recovery is waited for, and does not come
		}
		c := newCloud(t, seed, spot, p)
		losses := 0
		for range 90 {
			if losses < 5 && c.chance(12) {
				losses++
				names := []string{"a", "b"}
				if c.chance(2) {
					slices.Reverse(names)
				}
				c.lose(names[0], names[1])
			}
			c.minute()
		}
		bound := c.n.now.Add(48 * time.Hour)
		for c.n.now.Before(bound) && (c.n.w.Incident != nil || !c.trains() || len(c.waiting) > 0) {
			c.minute()
		}
		if c.n.w.Incident != nil || !c.trains() {
			t.Fatalf("%s: after two fair days it trains: %v; %s", c.n.path, c.trains(), tale(c.n.w))
		}
		if in := c.machines["a"].life.Zone; in != c.machines["b"].life.Zone {
			t.Fatalf("%s: a is in %s and b in %s; %s", c.n.path, in, c.machines["b"].life.Zone, tale(c.n.w))
		}
		if losses > 0 && c.ended == 0 {
			t.Fatalf("%s: %d losses and no incident", c.n.path, losses)
		}
	}
}

// tale is the story of the incident that is open, or closed last.
func tale(w incident.Workload) string {
	in := w.Incident
	if in == nil {
		in = w.Closed
	}
	if in == nil {
		return "no incident"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in phase %s, effects %+v\n", in.ID, in.Phase, w.Effects)
	for _, l := range in.Timeline {
		fmt.Fprintf(&b, "%s %-9s %-11s %s | %s\n", l.At.Format("15:04:05"), l.Kind, l.Phase, l.Text, l.Reason)
	}
	return b.String()
}

// zonesOf are the zones in which creations are asked for by what is sent, by slice.
func zonesOf(sent []events.Event) map[string]string {
	zones := map[string]string{}
	for _, e := range sent {
		if r, ok := e.(events.RecreateRequested); ok && r.Action == events.ActionCreate {
			zones[r.Slice] = r.Zone
		}
	}
	return zones
}

// TestAMultisliceIsNotTornOverZones: its slices are in one zone, all or none. One that is lost alone waits for capacity
// where the others stand; when all are lost they move together.
func TestAMultisliceIsNotTornOverZones(t *testing.T) {
	const a, b = "us-west4-a", "us-west4-b"
	lost := [][2]string{{"a read lost", ""}, {"do", ""}, {"b read lost", ""}, {"do", ""}, {"a read gone", ""}, {"b read gone", "a in " + a + ", b in " + a}}
	for name, c := range map[string]struct {
		of    func(w *incident.Workload)
		steps [][2]string
	}{
		"one waits for capacity where the other stands": {nil, [][2]string{
			{"a read lost", ""},
			{"do", ""},
			{"a read gone", "a in " + a},
			{"intend create 0", ""},
			{"stockout create 0", ""},
			{"retry", "a in " + a},
			{"intend create 0", ""},
			{"stockout create 0", ""},
			{"retry", "a in " + a},
		}},
		"both move together": {nil, append(slices.Clip(lost), [][2]string{
			{"intend create 0", ""},
			{"stockout create 0", "a in " + b + ", b in " + b},
			{"intend create 1", ""},
			{"stockout create 1", ""}, // every zone refused
			{"retry", "a in " + b + ", b in " + b},
		}...)},
		"the second waits for capacity where the first is being made": {nil, append(slices.Clip(lost), [][2]string{
			{"intend create 0", ""},
			{"intend create 1", ""},
			{"stockout create 1", ""},
			{"accepted create 0", ""},
			{"retry", "b in " + a},
			{"a read ours", ""},
			{"intend create 0", ""},
			{"stockout create 0", ""},
			{"retry", "b in " + a},
		}...)},
		"when the first is not made after all they move together": {nil, append(slices.Clip(lost), [][2]string{
			{"intend create 0", ""},
			{"accepted create 0", ""},
			{"intend create 1", ""},
			{"stockout create 1", ""},
			{"late stockout create 0", "a in " + b + ", b in " + b},
		}...)},
		"when neither is made after all they move together": {nil, append(slices.Clip(lost), [][2]string{
			{"do", ""},
			{"a read ours made", ""},
			{"b read ours made", ""},
			{"late stockout create 0", ""}, // the second is being made
			{"late stockout create 1", "a in " + b + ", b in " + b},
		}...)},
		"what is on its way out stands until it is gone": {nil, [][2]string{
			{"a read lost", ""},
			{"do", ""},
			{"a read gone", "a in " + a},
			{"do", ""},
			{"b read lost", ""},
			{"late stockout create 0", ""}, // it may heal before it is deleted
			{"b read ready", ""},
			{"retry", "a in " + a},
		}},
		"and goes with the others then": {nil, [][2]string{
			{"a read lost", ""},
			{"do", ""},
			{"a read gone", "a in " + a},
			{"do", ""},
			{"b read lost", ""},
			{"late stockout create 0", ""},
			{"do", ""},
			{"b read gone", "a in " + b + ", b in " + b},
		}},
		"whose owner has put them apart each stays where it was": {
			func(w *incident.Workload) {
				w.Slices[1].Zone, w.Slices[1].Incarnation.Zone = b, b
			}, [][2]string{
				{"a read lost", ""},
				{"do", ""},
				{"b read lost", ""},
				{"do", ""},
				{"a read gone", ""},
				{"b read gone", "a in " + a + ", b in " + b},
				{"intend create 1", ""},
				{"stockout create 1", ""},
				{"retry", "a in " + a + ", b in " + b}, // nobody has begun the first
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := node{w: multi(true), now: start, path: name}
			if c.of != nil {
				c.of(&n.w)
			}
			for _, s := range c.steps {
				var sent []events.Event
				if s[0] == "retry" {
					n.now = n.now.Add(3 * time.Minute)
					n, sent = play(t, policies["spot"], n, "tick")
				} else {
					n, sent = play(t, policies["spot"], n, s[0])
				}
				var got []string
				zones := zonesOf(sent)
				for _, slice := range sorted(zones) {
					got = append(got, slice+" in "+zones[slice])
				}
				if d := cmp.Diff(s[1], strings.Join(got, ", ")); d != "" {
					t.Fatalf("%s (-want +got):\n%s%s", n.path, d, tale(n.w))
				}
			}
		})
	}
}

// TestWhatIsGoneIsNotReplacedBeforeTheAuditLogIsAsked: the end of another slice's time to heal is no word about its owner.
func TestWhatIsGoneIsNotReplacedBeforeTheAuditLogIsAsked(t *testing.T) {
	r := newTour(t, multi(false), "everything")
	r.learn("a", "terminated", "read lost")
	r.now = r.w.Incident.Deadline.Add(-time.Hour)
	r.learn("b", "read gone")
	for range 90 { // until the first slice has had its time, and the second one's hour and a half is over
		r.now = r.now.Add(time.Minute)
		var sent []events.Event
		r.w, sent, _ = advance(policies[r.policy], r.w, incident.Ticked{}, r.now)
		for _, e := range sent {
			if asked := asks(e); strings.Contains(asked, "b") && asked != "delete a" {
				t.Fatalf("asked for is %q: %s", asked, tale(r.w))
			}
		}
	}
	if s := r.w.Slice("b"); s.ToReplace || r.w.Incident == nil {
		t.Errorf("it stands at %s", tale(r.w))
	}
}
