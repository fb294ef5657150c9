package main

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// decides is a mutant of the decision alone.
func decides(d ledger.Decision) func(func()) world.Hooks {
	return func(func()) world.Hooks { return world.Hooks{Decide: d} }
}

// unasked is a mutant that leaves out some kinds of what somebody has to go and read.
func unasked(kinds ...incident.ReadKind) func(func()) world.Hooks {
	return func(fired func()) world.Hooks {
		return world.Hooks{Reads: func(all incident.Reads) incident.Reads {
			left := slices.DeleteFunc(slices.Clone(all), func(r incident.ToRead) bool { return slices.Contains(kinds, r.Kind) })
			if len(left) < len(all) {
				fired()
			}
			return left
		}}
	}
}

// told changes the evidence before it is decided on; nil keeps it from the decision.
func told(change func(e evidence.Evidence) evidence.Evidence) ledger.Decision {
	return func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		if e = change(e); e == nil {
			return w, nil, false
		}
		return incident.Advance(p, w, e, now)
	}
}

// reports changes what crews report.
func reports(change func(r *events.CrewReport)) func(func()) world.Hooks {
	return decides(told(func(e evidence.Evidence) evidence.Evidence {
		if r, ok := e.(evidence.Reported); ok {
			change(&r.Report)
			return r
		}
		return e
	}))
}

// reads changes what readings show.
func reads(change func(r *evidence.Read)) func(func()) world.Hooks {
	return decides(told(func(e evidence.Evidence) evidence.Evidence {
		if r, ok := e.(evidence.Read); ok {
			change(&r)
			return r
		}
		return e
	}))
}

// ruled decides under another policy.
func ruled(change func(p *policy.Policy)) func(func()) world.Hooks {
	return decides(func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		change(&p)
		return incident.Advance(p, w, e, now)
	})
}
