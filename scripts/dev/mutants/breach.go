package main

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// decides is a mutant of the decision alone.
func decides(d ledger.Decision) func(func()) world.Seams {
	return func(func()) world.Seams { return world.Seams{Decide: d} }
}

// unasked is a mutant that leaves out some kinds of what somebody has to go and read.
func unasked(kinds ...incident.ReadKind) func(func()) world.Seams {
	return func(fired func()) world.Seams {
		return world.Seams{Reads: func(all incident.Reads) incident.Reads {
			left := slices.DeleteFunc(slices.Clone(all), func(r incident.ToRead) bool { return slices.Contains(kinds, r.Kind) })
			if len(left) < len(all) {
				fired()
			}
			return left
		}}
	}
}

// told changes the evidence before it is decided on; nil keeps it from the decision.
func told(change func(w incident.Workload, e incident.Evidence, now time.Time) incident.Evidence) ledger.Decision {
	return func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		if e = change(w, e, now); e == nil {
			return w, nil, false
		}
		return incident.Advance(p, w, e, now)
	}
}

// ruled decides under another policy.
func ruled(change func(p *policy.Policy)) ledger.Decision {
	return func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		change(&p)
		return incident.Advance(p, w, e, now)
	}
}

// shown decides on another document. If restore is set, the false document is replaced by the true one afterwards.
func shown(change func(w *incident.Workload, e incident.Evidence, now time.Time), restore func(was incident.Workload, next *incident.Workload)) ledger.Decision {
	return func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		other := own(w)
		change(&other, e, now)
		next, send, changed := incident.Advance(p, other, e, now)
		if !changed {
			return w, nil, false
		}
		if restore != nil {
			next = own(next)
			restore(w, &next)
		}
		return next, send, true
	}
}

// answered changes the document that was decided.
func answered(change func(was incident.Workload, next *incident.Workload, e incident.Evidence, now time.Time)) ledger.Decision {
	return func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		next, send, changed := incident.Advance(p, w, e, now)
		if !changed {
			return w, nil, false
		}
		next = own(next)
		change(w, &next, e, now)
		return next, send, true
	}
}

// unopened decides nothing where an incident would be opened that must not be.
func unopened(not func(w incident.Workload, in *incident.Incident) bool) ledger.Decision {
	return func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		next, send, changed := incident.Advance(p, w, e, now)
		in := next.Incident
		if in == nil && next.Closed != nil && (w.Closed == nil || w.Closed.ID != next.Closed.ID) {
			in = next.Closed // it has ended at once
		}
		if w.Incident == nil && in != nil && changed && !(next.Incident == nil && w.Closed != nil && w.Closed.ID == in.ID) && not(w, in) {
			return w, nil, false
		}
		return next, send, changed
	}
}

// own is a copy of a workload of which slices, incidents, effects and calls may be changed.
func own(w incident.Workload) incident.Workload {
	w.Slices, w.Effects = slices.Clone(w.Slices), slices.Clone(w.Effects)
	for _, in := range []**incident.Incident{&w.Incident, &w.Closed} {
		if *in != nil {
			c := **in
			c.Calls = slices.Clone(c.Calls)
			*in = &c
		}
	}
	return w
}

// phase is where a workload stands; empty in quiet times.
func phase(w incident.Workload) incident.Phase {
	if w.Incident == nil {
		return ""
	}
	return w.Incident.Phase
}

// same is an incident as it is after a decision, open or just closed; nil where there is none.
func same(was, next incident.Workload) *incident.Incident {
	for _, in := range []*incident.Incident{next.Incident, next.Closed} {
		if was.Incident != nil && in != nil && in.ID == was.Incident.ID {
			return in
		}
	}
	return nil
}

// later follows evidence with other evidence in the same step. Requests that the later decision overtakes are not sent.
func later(p policy.Policy, w incident.Workload, send []events.Event, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	next, more, changed := incident.Advance(p, w, e, now)
	if !changed {
		return w, send, true
	}
	if next.Epoch > w.Epoch {
		send = slices.DeleteFunc(slices.Clone(send), func(e events.Event) bool {
			_, request := e.(interface{ Header() events.Request })
			return request
		})
	}
	return next, append(send, more...), true
}
