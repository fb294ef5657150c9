package scenario

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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
	var phases []string
	for _, step := range transitions {
		if step[0] != "peace" && !slices.Contains(phases, step[0]) {
			phases = append(phases, step[0])
		}
	}
	m.favourite = phases[m.rand.IntN(len(phases))]
	return m
}

// drawn is a time between two others, each magnitude as likely as another.
func (m *marksman) drawn(low, high time.Duration) time.Duration {
	return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), m.rand.Float64()))
}

// entered is told of each phase that an incident enters.
func (m *marksman) entered(w incident.Workload) {
	aim := m.sim.Faults.Aimed
	if string(w.Incident.Phase) == m.favourite {
		aim *= 4
	}
	if m.rand.Float64() < aim {
		m.aim(w, m.drawn(time.Second, 3*time.Hour))
	}
}

// aim has something strike a workload some time from now if its incident is in the same phase then, and now and then once more,
// and again, shortly after that.
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
			m.aim(w, m.drawn(time.Second, time.Minute))
		}
	})
}

// shot is one thing that may happen in the state in which a slice is. Its error says that nothing came of it.
type shot struct {
	name   string
	strike func() error
}

// strike lets something happen to a slice, whatever state it is in, or has somebody say something about its workload.
func (m *marksman) strike(w incident.Workload, c SliceConfig) {
	zone := m.whereIs(c.Name)
	state, _ := m.api.State(zone, c.Name)
	shots := append(m.mishaps(c, zone, state), m.words(w, c, zone)...)
	s := shots[m.rand.IntN(len(shots))]
	if !m.chaos.strikes("%s, in the middle of %s: %s in %s, %s", s.name, w.Incident.Phase, c.Name, zone, cmp.Or(state, "gone")) {
		return
	}
	if err := s.strike(); err != nil {
		m.try(err)
		return
	}
	m.checks.happened(s.name, c.Name)
}

// mishaps are what Google, the training, and whoever else may touch a slice do to it.
func (m *marksman) mishaps(c SliceConfig, zone, state string) (shots []shot) {
	switch state {
	case "":
		return []shot{{"created by its owner", func() error { return m.create(c, c.Zone, c.Accelerator) }}}
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
			}})
		}
		if c.Spot && len(m.api.Hosts(zone, c.Name)) == 1 {
			shots = append(shots, shot{"stopped by nobody that the log knows", func() error { return m.stoppedSilently(c, zone) }})
		}
		return shots
	case "STOPPED":
		shots = append(shots, shot{"started by its owner", func() error { return m.api.Start(zone, c.Name, owner) }})
	case "PREEMPTED", "REPAIRING":
		shots = append(shots, shot{"usable again", func() error {
			return errors.Join(m.api.SetState(zone, c.Name, "READY"), m.api.SetHealth(zone, c.Name, "HEALTHY"))
		}})
	}
	if c.Spot {
		shots = append(shots, shot{"preempted", func() error { return m.api.Preempt(zone, c.Name) }})
	} else {
		shots = append(shots, shot{"terminated", func() error { return m.api.Terminate(zone, c.Name) }})
	}
	return append(shots, shot{"owner deletes", func() error { return m.deleted(c, zone) }})
}

// words are what somebody may say about a workload.
func (m *marksman) words(w incident.Workload, c SliceConfig, zone string) []shot {
	said := func(e incident.Evidence) func() error {
		return func() error {
			m.clock.Go(func() { m.says(w.ID, e) })
			m.clock.Settle()
			return nil
		}
	}
	origin := incident.Origin{ID: approvalID, Time: m.clock.Now()}
	word := incident.Word{By: owner, Why: "in the middle of it"}
	shots := []shot{
		{"another policy named", func() error {
			labels := []string{"watch"}
			for _, o := range m.Fleet {
				if o.Policy != "" && !slices.Contains(labels, o.Policy) {
					labels = append(labels, o.Policy)
				}
			}
			var back func()
			back = func() {
				if z := m.whereIs(c.Name); z == "" || m.api.SetLabel(z, c.Name, events.LabelPolicy, c.Policy, owner) != nil {
					m.after(time.Hour, back) // it is not there at the moment, or something else is under way
				}
			}
			m.after(m.drawn(time.Minute, 6*time.Hour), back)
			return m.api.SetLabel(zone, c.Name, events.LabelPolicy, labels[m.rand.IntN(len(labels))], owner)
		}},
		{"policy changed", func() error {
			m.enforce([]byte("policies: {}\n"))
			m.after(m.drawn(time.Minute, 2*time.Hour), func() { m.enforce(m.sim.Policy) })
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
