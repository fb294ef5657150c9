package oracle

import (
	"fmt"
	"slices"
	"sync"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// repeater makes every decision again: a decision depends on its evidence alone, and nobody changes that. It works on another
// processor while the run goes on, except in a run that ends with the first violation.
type repeater struct {
	decide ledger.Decision
	// steps takes decisions, many at a time: to wake the other processor takes longer than most of them. It is nil where each is
	// made again at once. next are those that wait to be handed over. stop waits for the last one.
	steps chan []repeat
	next  []repeat
	stop  func()

	// transitions counts the transitions that were taken, late are the violations. Nobody else touches them before stop.
	transitions map[string]int
	late        []foundLate
}

// repeat is a decision to be made again, and the violation if it comes out otherwise.
type repeat struct {
	ledger.Step
	foundLate
}

// foundLate is a violation that is found after others. It belongs before the one with this number.
type foundLate struct {
	Violation
	before int
}

// handedOver is how many decisions are handed over at once, and waiting how often that may be ahead.
const handedOver, waiting = 64, 4

func newRepeater(decide ledger.Decision, transitions map[string]int, atOnce bool) *repeater {
	r := &repeater{decide: decide, transitions: transitions, stop: func() {}}
	if atOnce {
		return r
	}
	r.steps = make(chan []repeat, waiting)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for steps := range r.steps {
			for _, s := range steps {
				r.repeat(s)
			}
		}
	}()
	r.stop = sync.OnceFunc(func() {
		r.steps <- r.next
		close(r.steps)
		<-ended
	})
	return r
}

// repeats checks that the same evidence makes the same decision.
func (c *Checks) repeats(s ledger.Step, workload string) {
	if len(s.Evidence) == 0 {
		return
	}
	if c.again == nil {
		c.again = newRepeater(c.Opts.Seams.Decision(), c.transitions, c.atOnce)
	}
	again := repeat{s, foundLate{c.violation("history", workload, ""), len(c.Violations)}}
	if c.again.steps == nil {
		c.again.repeat(again)
		c.CaughtUp()
		return
	}
	if c.again.next = append(c.again.next, again); len(c.again.next) == handedOver {
		c.again.steps <- c.again.next
		c.again.next = nil
	}
}

// CaughtUp waits for the decisions that are still made again, and puts the violations in the places that they would have had at once.
func (c *Checks) CaughtUp() {
	if c.again == nil {
		return
	}
	c.again.stop()
	for _, l := range slices.Backward(c.again.late) { // the last one first, so that the places of the others stay
		c.Violations = slices.Insert(c.Violations, l.before, l.Violation)
	}
	c.again.late = nil
	c.Violations = c.Violations[:min(len(c.Violations), mostViolations)]
}

func (r *repeater) repeat(s repeat) {
	again := s.Before
	for _, e := range s.Evidence {
		was := again
		again, _, _ = r.decide(s.Policy, again, e, s.At)
		r.stepped(s.foundLate, see(was), see(again))
	}
	if same, err := alike(again, s.After); !same || err != nil {
		r.violated(s.foundLate, "the same evidence makes another document: %v", err)
	}
}

var transitions = incident.Transitions()

// stepped counts what one piece of evidence did, as the table of transitions names it.
func (r *repeater) stepped(l foundLate, before, after seen) {
	from, to := before.phase(), after.phase()
	if from == to && (before.Open == nil || before.Open.ID == after.Open.ID) {
		return
	}
	if after.Open == nil {
		to = string(after.Over.Outcome)
	}
	r.transitions[from+" -> "+to]++
	if !slices.Contains(transitions, [2]string{from, to}) {
		r.violated(l, "the table of transitions does not know %s -> %s", from, to)
	}
}

func (r *repeater) violated(l foundLate, format string, args ...any) {
	l.Text = fmt.Sprintf(format, args...)
	r.late = append(r.late, l)
}
