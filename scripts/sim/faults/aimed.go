package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// Marksman lets troubles strike a workload in the middle of its incident. Troubles drawn per day hardly ever hit a phase
// that lasts minutes.
type Marksman struct {
	*Troubles
	dice Dice
	// occasions counts how often an incident came to the same point.
	occasions turns
	// favourite is the phase that is spared least: a run in which all are struck alike never comes far.
	favourite string
	// watching is a policy file under which everything is only watched, asking one under which it is asked about.
	watching, asking []byte
}

// NewMarksman aims the troubles at incidents.
func NewMarksman(t *Troubles) *Marksman {
	m := &Marksman{Troubles: t, dice: NewDice(t.sim.Seed).Of("aimed"), occasions: turns{}, watching: []byte("policies: {}\n"), asking: asking(t.Fleet)}
	phases := view.Phases()
	m.favourite = string(phases[m.dice.Of("favourite").intN(len(phases))])
	return m
}

// asking writes a policy file under which everything is asked about that may be done to a fleet.
func asking(fleet []world.SliceConfig) []byte {
	named := map[string]bool{}
	file := []byte("policies:\n")
	for _, c := range fleet {
		if c.Policy == "" || named[c.Policy] {
			continue
		}
		named[c.Policy] = true
		file = fmt.Appendf(file, "  %s:\n    switches:\n", c.Policy)
		for _, s := range policy.All() {
			file = fmt.Appendf(file, "      %s: ask\n", s)
		}
	}
	return file
}

// weight is how much likelier a trouble is in this run than another: two that have to come together hardly ever do where all are
// alike.
func (m *Marksman) weight(name string) float64 {
	if m.dice.Of("weight", name).float() < 0.15 {
		return 10
	}
	return 1
}

// pick draws one of the troubles that are possible.
func (m *Marksman) pick(d Dice, shots []shot) shot {
	var sum float64
	for _, s := range shots {
		sum += m.weight(s.name)
	}
	at := d.float() * sum
	for _, s := range shots {
		if at -= m.weight(s.name); at < 0 {
			return s
		}
	}
	return shots[len(shots)-1]
}

// occasion are the dice of what an incident comes to, once more.
func (m *Marksman) occasion(what string, w view.Workload) Dice {
	return m.occasions.next(m.dice.Of(what, w.ID, w.Incident.ID, string(w.Incident.Phase)))
}

// Entered is called for each phase that an incident enters.
func (m *Marksman) Entered(w view.Workload) {
	if d := m.occasion("entered", w); d.Of("struck").float() < m.aimed(w) {
		m.aim(d, w, d.Of("when").magnitude(soon, 3*time.Hour))
	}
}

// Asked is called for each request that an incident sends in the middle of a phase. Now and then a policy is tightened
// before the request arrives, or a trouble strikes while it is carried out.
func (m *Marksman) Asked(w view.Workload) {
	d := m.occasion("asked", w)
	if d.Of("struck").float() < m.aimed(w)/2 {
		m.aim(d, w, d.Of("when").magnitude(soon, 10*time.Minute))
	}
	file, phase, likely := m.watching, w.Incident.Phase, m.aimed(w)/10
	if d.Of("file").intN(2) == 0 {
		file = m.asking
	}
	if d.Of("tightened").float() >= likely {
		return
	}
	m.after(d.Of("when tightened").magnitude(soon, time.Second), func() {
		if !m.over && m.chaos.strikes("policy changed, while a request of %s is under way in %s", w.ID, phase) {
			m.checks.Happened("policy changed", "")
			m.enforced(d, file)
		}
	})
}

// aimed is how likely an incident is struck where it stands.
func (m *Marksman) aimed(w view.Workload) float64 {
	if string(w.Incident.Phase) == m.favourite {
		return 4 * m.sim.Faults.Aimed
	}
	return m.sim.Faults.Aimed
}

// soon is before a request that was sent with the last step arrives.
const soon = 10 * time.Millisecond

// aim lets a trouble strike a workload some time from now, if its incident is still in the same phase. Now and then one or
// two more follow shortly after.
func (m *Marksman) aim(d Dice, w view.Workload, wait time.Duration) {
	id, phase := w.Incident.ID, w.Incident.Phase
	m.after(wait, func() {
		doc, _, err := m.Ledger.Workload(context.Background(), w.ID)
		if m.over || fault.IsBusy(err) {
			return // the newer release has it
		}
		m.Must(err)
		if in := doc.Shown(m.Clock.Now()).Incident; in == nil || in.ID != id || in.Phase != phase {
			return
		}
		var of []world.SliceConfig
		for _, c := range m.Fleet {
			if m.checks.Workload(c.Name) == w.ID {
				of = append(of, c)
			}
		}
		if len(of) == 0 {
			return
		}
		m.strike(d, doc, of[d.Of("slice").intN(len(of))])
		if next := d.Of("next"); next.Of("struck").intN(2) == 0 {
			m.aim(next, w, next.Of("when").magnitude(soon, time.Minute))
		}
	})
}

// shot is one thing that may happen in the state in which a slice is. Its error says that nothing came of it.
type shot struct {
	name   string
	strike func() error
}

// strike lets something happen to a slice, whatever state it is in, or has somebody say something about its workload.
func (m *Marksman) strike(d Dice, doc incident.Workload, c world.SliceConfig) {
	zone := m.whereIs(c.Name)
	state, _ := m.API.State(zone, c.Name)
	shots := append(m.mishaps(d, c, zone, state), m.words(d, doc, c, zone)...)
	s := m.pick(d.Of("shot"), shots)
	if !m.chaos.strikes("%s, in the middle of %s: %s in %s, %s", s.name, doc.Shown(m.Clock.Now()).Incident.Phase, c.Name, zone, cmp.Or(state, "gone")) {
		return
	}
	if err := s.strike(); err != nil {
		m.Try(err)
		return
	}
	m.checks.Happened(s.name, c.Name)
}

// mishaps are the troubles that Google, the training or anybody else may cause on a slice.
func (m *Marksman) mishaps(d Dice, c world.SliceConfig, zone, state string) (shots []shot) {
	spot := m.API.Reclaimable(zone, c.Name)
	switch state {
	case "":
		return []shot{{"created by its owner", func() error { return m.create(c, c.Zone, c.Accelerator) }}}
	case "READY":
		for _, h := range happenings {
			if h.befalls(spot) {
				shots = append(shots, shot{h.name, func() error { return h.strike(m.Troubles, d.Of(h.name), c, zone) }})
			}
		}
		training := m.Trainings[c.Name]
		shots = append(shots, shot{"the training is done", func() error {
			training.Finish()
			return nil
		}}, shot{"the training is done, and the slice gone at once", func() error {
			training.Finish()
			return m.API.Vanish(zone, c.Name)
		}}, shot{"started anew by its owner", func() error {
			training.Reboot()
			return nil
		}}, shot{"moved by its owner", func() error { return m.moved(d, c, zone) }})
		if spot {
			shots = append(shots, shot{"preempted, and gone at once", func() error {
				return errors.Join(m.API.Preempt(zone, c.Name), m.API.Vanish(zone, c.Name))
			}})
		}
		if len(m.API.Hosts(zone, c.Name)) == 1 {
			shots = append(shots, shot{"the training is done, and the slice stopped", func() error {
				training.Finish()
				return m.stoppedSilently(d, c, zone)
			}})
		}
		if spot && len(m.API.Hosts(zone, c.Name)) == 1 {
			shots = append(shots, shot{"stopped by nobody that the log knows", func() error { return m.stoppedSilently(d, c, zone) }})
		}
		return append(shots, m.suspected(d, c, zone))
	case "STOPPED":
		shots = append(shots, shot{"started by its owner", func() error { return m.API.Start(zone, c.Name, Owner) }})
	case "PREEMPTED", "REPAIRING", "TERMINATED":
		shots = append(shots, m.suspected(d, c, zone), shot{"usable again", func() error {
			return errors.Join(m.API.SetState(zone, c.Name, "READY"), m.API.SetHealth(zone, c.Name, "HEALTHY"))
		}})
	}
	if spot {
		shots = append(shots, shot{"preempted", func() error { return m.API.Preempt(zone, c.Name) }})
	} else {
		shots = append(shots, shot{"terminated", func() error { return m.API.Terminate(zone, c.Name) }})
	}
	return append(shots, shot{"owner deletes", func() error { return m.deleted(d, c, zone) }})
}

// suspected is that Google takes a slice for which it suspects abuse, and that its owner allows nothing any more since a moment ago.
func (m *Marksman) suspected(d Dice, c world.SliceConfig, zone string) shot {
	return shot{"lost, suspected of abuse, and only watched", func() error {
		m.enforced(d, m.watching)
		take := m.API.Terminate
		if m.API.Reclaimable(zone, c.Name) {
			take = m.API.Preempt
		}
		return errors.Join(m.Troubles.suspected(d.Of("suspected"), c, zone), take(zone, c.Name))
	}}
}

// moved has the owner of a slice take it to another zone: they delete it here, and create it there shortly after that, maybe before its
// end was seen.
func (m *Marksman) moved(d Dice, c world.SliceConfig, zone string) error {
	there := slices.DeleteFunc(m.Zones(), func(z string) bool { return z == zone })
	if c.QueuedResource != "" || len(there) == 0 {
		return nil
	}
	err := m.API.OwnerDelete(zone, c.Name, Owner)
	if err == nil {
		m.after(d.Of("moves").magnitude(time.Second, 10*time.Minute), func() {
			m.Try(m.create(c, there[d.Of("zone").intN(len(there))], c.Accelerator))
		})
	}
	return m.took(c, err)
}

// words are the orders that a person may give about a workload.
func (m *Marksman) words(d Dice, doc incident.Workload, c world.SliceConfig, zone string) []shot {
	w := doc.Shown(m.Clock.Now())
	said := func(e evidence.Evidence) func() error {
		return func() error {
			m.Clock.Go(func() { m.Says(w.ID, e) })
			m.Clock.Settle()
			return nil
		}
	}
	origin := evidence.Origin{ID: world.ApprovalID, Time: m.Clock.Now()}
	word := evidence.Word{By: Owner, Why: "in the middle of it"}
	shots := []shot{
		{"another policy named", func() error {
			labels := []string{"watch"}
			for _, o := range m.Fleet {
				if o.Policy != "" && !slices.Contains(labels, o.Policy) {
					labels = append(labels, o.Policy)
				}
			}
			m.after(d.Of("lasts").magnitude(time.Minute, 6*time.Hour), func() { m.labelAgain(c) })
			return m.API.SetLabel(zone, c.Name, events.LabelPolicy, labels[d.Of("label").intN(len(labels))], Owner)
		}},
		{"policy changed", func() error {
			m.enforced(d, m.watching)
			return nil
		}},
		{"policy changed to ask", func() error {
			m.enforced(d, m.asking)
			return nil
		}},
		{"approved", func() error {
			m.approveAll()
			return nil
		}},
		{"a function broken by a deployment", func() error {
			m.breaks(d, d.Of("lasts").magnitude(time.Minute, 20*time.Minute))
			return nil
		}},
		{"the training proves to be done", func() error {
			m.Trainings[c.Name].ProveFinished()
			return nil
		}},
		{"incident cancelled", said(evidence.Cancelled{Origin: origin, Word: word, Incident: w.Incident.ID})},
	}
	if doc.NothingToRetry(m.Clock.Now()) == "" {
		shots = append(shots, shot{"retried", said(evidence.Retried{Origin: origin, Word: word})})
	}
	return shots
}

// enforced puts another policy file there for some time.
func (m *Marksman) enforced(d Dice, file []byte) {
	m.enforce(file)
	m.after(d.Of("lasts").magnitude(time.Minute, 2*time.Hour), func() { m.enforce(m.sim.Policy) })
}
