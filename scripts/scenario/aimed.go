package scenario

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
)

// marksman has troubles strike a workload in the middle of what is done about it: what comes by the day alone hardly ever hits a
// phase that lasts minutes.
type marksman struct {
	*troubles
	rand *rand.Rand
	// favourite is the phase that is spared least: a run in which all are struck alike never comes far.
	favourite string
}

func newMarksman(t *troubles) *marksman {
	m := &marksman{troubles: t, rand: stream(t.sim.Seed, "aimed")}
	m.favourite = transitions[m.rand.IntN(len(transitions))][0]
	return m
}

// Aimed troubles strike so long after an incident has entered a phase, each magnitude as often as another, and every other time
// once more so much later.
const (
	soonest = time.Second
	latest  = 3 * time.Hour
	again   = time.Minute
)

// entered is told of each phase that an incident enters.
func (m *marksman) entered(w incident.Workload) {
	aim := m.sim.Faults.Aimed
	if string(w.Incident.Phase) == m.favourite {
		aim *= 4
	}
	if m.rand.Float64() < aim {
		m.aim(w, time.Duration(float64(soonest)*math.Pow(float64(latest)/float64(soonest), m.rand.Float64())))
	}
}

// aim has something strike a workload some time from now, if its incident is in the same phase then.
func (m *marksman) aim(w incident.Workload, wait time.Duration) {
	id, phase := w.Incident.ID, w.Incident.Phase
	m.after(wait, func() {
		doc, _, err := m.ledger.Workload(context.Background(), w.ID)
		if m.over || fault.IsBusy(err) {
			return // the newer release has it
		}
		m.must(err)
		if in := doc.Incident; in == nil || in.ID != id || in.Phase != phase {
			return
		}
		var of []SliceConfig
		for _, c := range m.Fleet {
			if m.checks.workload(c.Name) == w.ID {
				of = append(of, c)
			}
		}
		if len(of) == 0 {
			return
		}
		m.strike(doc, of[m.rand.IntN(len(of))])
		if m.rand.IntN(2) == 0 {
			m.aim(w, m.between(soonest, again))
		}
	})
}

// strike lets something happen to a slice, whatever state it is in, or has somebody say something about its workload.
func (m *marksman) strike(w incident.Workload, c SliceConfig) {
	zone := m.whereIs(c.Name)
	state, _ := m.api.State(zone, c.Name)
	shots := m.words(w, c, zone)
	switch state {
	case "READY":
		for _, h := range happenings {
			if h.befalls(c.Spot) {
				shots = append(shots, shot{h.name, func() error { return h.strike(m.troubles, c, zone) }})
			}
		}
		shots = append(shots, shot{"the training is done", func() error {
			m.trainings[c.Name].Finish()
			return nil
		}})
		if c.Spot {
			shots = append(shots, shot{"preempted, and gone at once", func() error {
				return errors.Join(m.api.Preempt(zone, c.Name), m.api.Vanish(zone, c.Name))
			}}, shot{"stopped by nobody that the log knows", func() error { return m.stoppedSilently(c, zone) }})
		}
	case "":
		shots = append(shots, shot{"created by its owner", func() error {
			m.create(c, c.Zone, c.Accelerator)
			return nil
		}})
	default:
		lost := shot{"terminated", func() error { return m.api.Terminate(zone, c.Name) }}
		if c.Spot {
			lost = shot{"preempted", func() error { return m.api.Preempt(zone, c.Name) }}
		}
		shots = append(shots, lost, shot{"owner deletes", func() error { return m.deleted(c, zone) }})
	}
	switch state {
	case "STOPPED":
		shots = append(shots, shot{"started by its owner", func() error {
			m.try(m.api.Start(zone, c.Name, owner))
			return nil
		}})
	case "PREEMPTED", "REPAIRING":
		shots = append(shots, shot{"usable again", func() error {
			return errors.Join(m.api.SetState(zone, c.Name, "READY"), m.api.SetHealth(zone, c.Name, "HEALTHY"))
		}})
	}
	s := shots[m.rand.IntN(len(shots))]
	if m.chaos.strikes("%s, in the middle of %s: %s in %s, %s", s.name, w.Incident.Phase, c.Name, zone, cmp.Or(state, "gone")) {
		m.checks.happened(s.name, c.Name)
		m.must(s.strike())
	}
}

// shot is one thing that may happen to a slice in the state that it is in.
type shot struct {
	name   string
	strike func() error
}

// words are what somebody may say about a workload in the middle of an incident.
func (m *marksman) words(w incident.Workload, c SliceConfig, zone string) []shot {
	origin := incident.Origin{ID: approvalID, Time: m.clock.Now()}
	word := incident.Word{By: owner, Why: "in the middle of it"}
	said := func(e incident.Evidence) func() error {
		return func() error {
			m.orders(w, e, "somebody says so")
			return nil
		}
	}
	shots := []shot{
		{"another policy named", func() error {
			label := []string{"watch", "asking", "careful", "planned", "night"}[m.rand.IntN(5)]
			m.after(m.between(time.Minute, 6*time.Hour), func() {
				if z := m.whereIs(c.Name); z != "" {
					m.try(m.api.SetLabel(z, c.Name, events.LabelPolicy, c.Policy, owner))
				}
			})
			m.try(m.api.SetLabel(zone, c.Name, events.LabelPolicy, label, owner))
			return nil
		}},
		{"policy changed", func() error {
			m.enforce([]byte("policies: {}\n"))
			m.after(m.between(time.Minute, 2*time.Hour), func() { m.enforce(m.sim.Policy) })
			return nil
		}},
		{"approved", func() error {
			m.approveAll()
			return nil
		}},
		{"incident cancelled", said(incident.Cancelled{Origin: origin, Word: word, Incident: w.Incident.ID})},
	}
	if w.NothingToRetry(m.clock.Now()) == "" {
		shots = append(shots, shot{"retried", said(incident.Retried{Origin: origin, Word: word})})
	}
	return shots
}
