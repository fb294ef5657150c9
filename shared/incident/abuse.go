//go:build !heart

package incident

import (
	"slices"

	"pitstop.internal/events"
)

// stopAbused ends all automation where Google suspects abuse. Requests that were decided in the same step are not sent. A clean-up
// waits for its calls that are under way.
func (m *machine) stopAbused() {
	if m.w.Incident == nil || !m.abused() {
		return
	}
	m.out = slices.DeleteFunc(m.out, func(e events.Event) bool { return e.EventType() != events.TypeIncidentClosed })
	const why = "Google suspects abuse on this slice (symptom PROJECT_ABUSE)"
	if m.phase() == Clearing {
		idle := func(effect Effect) bool { return effect.Action == events.ActionDelete && !effect.UnderWay(m.now) }
		if m.w.has(idle) {
			m.dropEffects(idle)
			m.decided("delete nothing for now", why)
			m.stillClearing()
		}
		return
	}
	m.tellAbuse()
	if m.phase() == Watching {
		m.finish(Observed, "", CodeAbuse, why, "answer Google's notification")
		return
	}
	m.escalate(CodeAbuse, why, "answer Google's notification; Pitstop does nothing here before that is settled; then pitstop retry "+m.w.Name)
}

// tellAbuse notes that a person has heard of Google's suspicion.
func (m *machine) tellAbuse() {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Abuse.Suspected {
			m.slice(s.Name).Abuse.Reported = true
		}
	}
}

// settleAbuse records a person's word that Google's suspicion is settled, for slices that are not READY: no reading of such a slice
// removes the symptom. The next reading that shows it stops everything again.
func (m *machine) settleAbuse() {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.abuseUnsettled() {
			s = m.slice(s.Name)
			s.Abuse.Suspected, s.Abuse.At, s.Abuse.Reported = false, m.now, false
		}
	}
}

// abuseUnsettled reports whether Google suspected abuse on a slice when it was last READY, or when it was lost, and only a person
// can settle that.
func (l Life) abuseUnsettled() bool {
	return l.Abuse.Suspected && l.Condition != Ready && !l.IsReleased()
}

// abused reports whether Google suspects abuse on a slice.
func (m *machine) abused() bool {
	return slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.Abuse.Suspected && !s.IsReleased() })
}

// abuseReported reports whether a person has heard that Google suspects abuse, and Google still does.
func (w Workload) abuseReported() bool {
	return slices.ContainsFunc(w.Slices, func(s Slot) bool { return s.Abuse.Suspected && s.Abuse.Reported && !s.IsReleased() })
}
