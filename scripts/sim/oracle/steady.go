package oracle

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// Steady: without news, no call is given up and wanted again, and nobody is told the same again.

// steadyFor is for how long a call that was given up stays so without news.
const steadyFor = time.Minute

// wanted is a call that an incident wants.
type wanted struct {
	action events.Action
	slice  string
}

// givenUp is a call that was given up before anybody had begun it, and the documents before and after that.
type givenUp struct {
	at            time.Time
	before, after incident.Workload
}

// toldWait is a wait of which people were told: another end makes it another one.
type toldWait struct {
	what, why, asks string
	until           time.Time
}

// steady follows what one decision wants, and what it tells. Another policy is news.
func (c *Checks) steady(s ledger.Step, before, after seen) {
	r, was, is := c.record(after.ID), before.document, after.document
	if was.Incident == nil || is.Incident == nil || was.Incident.ID != is.Incident.ID || !reflect.DeepEqual(r.policy, s.Policy) {
		r.policy = s.Policy
		r.givenUp, r.waits = map[wanted]givenUp{}, map[toldWait]incident.Workload{}
	}
	if is.Incident == nil {
		return
	}
	c.toldOnce(r, was.Incident, is)
	if slices.EqualFunc(was.Effects, is.Effects, func(a, b incident.Effect) bool {
		return a.Action == b.Action && a.Slice == b.Slice && a.Dropped() == b.Dropped()
	}) {
		return
	}
	then, now := wantsOf(was), wantsOf(is)
	for want, begun := range then {
		if _, stays := now[want]; !stays && !begun {
			r.givenUp[want] = givenUp{s.At, was, is}
		}
	}
	for want := range now {
		if _, stays := then[want]; !stays {
			c.wantedAgain(r, want, s, is)
		}
	}
}

// wantsOf are the calls that the incident of a document wants, and whether each was begun.
func wantsOf(w incident.Workload) map[wanted]bool {
	all := make(map[wanted]bool, len(w.Effects))
	for i := range w.Effects {
		if x := &w.Effects[i]; !x.Dropped() {
			for _, slice := range append([]string{x.Slice}, x.With...) {
				all[wanted{x.Action, slice}] = !x.Begun.IsZero()
			}
		}
	}
	return all
}

// wantedAgain checks that there was news where a call is wanted anew that was given up shortly before.
func (c *Checks) wantedAgain(r *record, want wanted, s ledger.Step, now incident.Workload) {
	was, known := r.givenUp[want]
	delete(r.givenUp, want)
	after := s.At.Sub(was.at)
	if !known || after > steadyFor {
		return
	}
	if then := facts(was.after); alike(facts(was.before), then) && alike(then, facts(now)) {
		c.Violated("no want comes and goes", now.ID, "%s %s was given up before anybody began it, and is wanted again after %s without any news", want.action, want.slice, after)
	}
}

// facts is what a document knows of the world, without what its own decisions have made of it and when somebody looked.
func facts(w incident.Workload) incident.Workload {
	w.Epoch, w.Effects, w.Outbox, w.Told = 0, nil, nil, nil
	w.Training.HeardAt, w.Training.Looked = time.Time{}, time.Time{}
	w.Slices = slices.Clone(w.Slices)
	for i := range w.Slices {
		l := &w.Slices[i].Life
		l.Read, l.Spoke, l.Heard = time.Time{}, time.Time{}, incident.Heard{}
	}
	if w.Incident != nil {
		in := *w.Incident
		in.Status, in.Lines, in.LeftOut, in.Planned = incident.Status{}, nil, 0, nil
		w.Incident = &in
	}
	return w
}

// toldOnce checks that nobody is told twice of a wait of an incident, unless there was news in between. A reminder is no second word, and neither is
// a hold.
func (c *Checks) toldOnce(r *record, before *incident.Incident, w incident.Workload) {
	in, known := w.Incident, 0
	if before != nil && before.ID == in.ID {
		known = len(before.Lines) + before.LeftOut - in.LeftOut
	}
	for _, l := range in.Lines[min(max(known, 0), len(in.Lines)):] {
		if l.Kind != view.LineDecided || l.What.Sentence == story.Still || l.What.Sentence == story.Hold {
			continue
		}
		wait := toldWait{l.What.String(), l.Why.String(), strings.Join(in.Status.Questions, "; "), in.Status.Until}
		if then, again := r.waits[wait]; again && alike(facts(then), facts(w)) {
			c.Violated("no wait told twice", w.ID, "%s says again, and nothing has happened since: %s, since %s", in.ID, wait.what, wait.why)
		}
		r.waits[wait] = w
	}
}
