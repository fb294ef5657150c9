package oracle

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
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

// givenUp is a call that was given up before anybody had begun it, and what was known before and after that.
type givenUp struct {
	at            time.Time
	before, after view.Workload
}

// toldWait is a wait of which people were told: another end makes it another one.
type toldWait struct {
	what, why string
	needs     view.Need
	until     time.Time
}

// steady follows what one decision wants, and what it tells. Another policy is news.
func (c *Checks) steady(s ledger.Step, before, after seen) {
	r, was, is := c.record(after.ID), before.shown, after.shown
	if was.Incident == nil || is.Incident == nil || was.Incident.ID != is.Incident.ID || !reflect.DeepEqual(r.policy, s.Policy) {
		r.policy = s.Policy
		r.givenUp, r.waits = map[wanted]givenUp{}, map[toldWait]view.Workload{}
	}
	if is.Incident == nil {
		return
	}
	c.toldOnce(r, was.Incident, is)
	then, now := before.wants(), after.wants()
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

// wants are the calls that its incident wants, and whether each was begun.
func (w seen) wants() map[wanted]bool {
	all := make(map[wanted]bool, len(w.Requests))
	for _, r := range w.Requests {
		for _, slice := range append([]string{r.Slice}, r.With...) {
			all[wanted{r.Action, slice}] = r.Begun
		}
	}
	return all
}

// wantedAgain checks that there was news where a call is wanted anew that was given up shortly before.
func (c *Checks) wantedAgain(r *record, want wanted, s ledger.Step, now view.Workload) {
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

// facts is what is known of the world, without what Pitstop's own decisions have made of it and when somebody looked.
func facts(w view.Workload) view.Workload {
	w = view.Workload{Label: w.Label, Directory: w.Directory, Slices: slices.Clone(w.Slices), Training: w.Training, Pause: w.Pause, Orders: w.Orders, Incident: w.Incident}
	w.Training.Spoke = time.Time{}
	for i := range w.Slices {
		w.Slices[i].Spoke, w.Slices[i].Why = time.Time{}, ""
	}
	if in := w.Incident; in != nil {
		w.Incident = &view.Incident{ID: in.ID, Troubles: in.Troubles, Calls: in.Calls, Save: in.Save, Zones: in.Zones, Granted: in.Granted, Error: in.Error}
	}
	return w
}

// toldOnce checks that nobody is told twice of a wait of an incident, unless there was news in between. Evidence that its story tells is news, for
// the calls that were given up before it, too. A reminder is no second word, and neither is a hold.
func (c *Checks) toldOnce(r *record, before *view.Incident, w view.Workload) {
	in, known := w.Incident, 0
	if before != nil && before.ID == in.ID {
		known = before.Lines()
	}
	still, _, _ := strings.Cut(string(story.Still), "%")
	for _, l := range in.LinesAfter(known) {
		if l.Kind == view.LineSeen {
			clear(r.waits)
			clear(r.givenUp)
		}
		if l.Kind != view.LineDecided || strings.HasPrefix(l.Text, still) || l.Text == string(story.Hold) {
			continue
		}
		wait := toldWait{what: l.Text, why: l.Reason, until: in.Deadline}
		if w.Need != nil {
			wait.needs = *w.Need
		}
		if then, again := r.waits[wait]; again && alike(facts(then), facts(w)) {
			c.Violated("no wait told twice", w.ID, "%s says again, and nothing has happened since: %s, since %s", in.ID, wait.what, wait.why)
		}
		r.waits[wait] = w
	}
}
