package incident

import (
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
)

// Planned is a call that would be made, had the policy allowed it.
type Planned struct {
	Function string        `json:"function"`
	Method   string        `json:"method"`
	Resource string        `json:"resource"`
	Action   events.Action `json:"action"`
	// Slice is the one that a creation is of, or the first of those that come with it.
	Slice string `json:"slice,omitzero"`
	// Switch is what would have to allow it.
	Switch policy.Switch `json:"switch,omitzero"`
	// When says what would have to be so before it is made, beside that the call before it has come to its end.
	When string `json:"when,omitzero"`
	// Zones are those that a creation asks, one after the other, until one gives the slice; the resource is in the first.
	Zones []ZoneFit `json:"zones,omitempty"`
}

// ZoneFit says whether the order of a slice fits a zone.
type ZoneFit struct {
	Zone string `json:"zone"`
	// Accelerator is the shape, where that is not the one that the owner ordered.
	Accelerator string `json:"accelerator,omitzero"`
	// Checked says that the specification was held against the zone. Code and Text say why the zone is not asked.
	Checked bool   `json:"checked,omitzero"`
	Code    Code   `json:"code,omitzero"`
	Text    string `json:"text,omitzero"`
}

// String is the call for people: method, resource, and in which order zones are asked.
func (c Planned) String() string {
	text := c.Method + " " + c.Resource
	if len(c.Zones) > 0 && (len(c.Zones) > 1 || c.Zones[0].Code != "" || c.Zones[0].Accelerator != "") {
		var zones []string
		for _, z := range c.Zones {
			switch at := z.Place().String(); {
			case z.Code != "":
				zones = append(zones, at+" is not asked ("+z.Text+")")
			case z.Text != "":
				zones = append(zones, at+" ("+z.Text+")")
			case !z.Checked:
				zones = append(zones, at+" (if the order fits)")
			default:
				zones = append(zones, at)
			}
		}
		text += ", zone after zone: " + strings.Join(zones, ", ")
	}
	if c.When != "" {
		text += ", " + c.When
	}
	if c.Switch != "" {
		text += " (" + string(c.Switch) + ")"
	}
	return text
}

// WouldHave is what would have been done, had the policy allowed it, for people: each call, and what is none.
func (in Incident) WouldHave() []string {
	all := slices.Clone(in.Would)
	for _, c := range in.Plan {
		all = append(all, c.String())
	}
	return all
}

// Replacement are the calls that would replace slices, were it allowed: all that would be deleted, then what would be created,
// then the lease that lets training in. Why says why there would be none.
func (w Workload) Replacement(p policy.Policy, names ...string) (calls []Planned, why string) {
	m := machine{p: p, w: w}
	return m.wouldReplace(names, "")
}

// Saving are the calls that would ask the training to save, were it allowed.
func (w Workload) Saving() []Planned {
	m := machine{w: w}
	return m.wouldSave()
}

// Maintaining is the call that would start the maintenance of a slice before its window.
func (w Workload) Maintaining(slice string) []Planned {
	m := machine{w: w}
	return m.would(policy.EarlyMaintenance, "once the save is verified", Effect{Action: events.ActionMaintain, Slice: slice})
}

// Restarting is the call that would ask the crew for another attempt.
func (w Workload) Restarting() []Planned {
	m := machine{w: w}
	return m.would(policy.Restart, "", Effect{Action: events.ActionRestart})
}

// would makes the calls of effects into what would be called.
func (m *machine) would(sw policy.Switch, when string, effects ...Effect) (all []Planned) {
	for _, effect := range effects {
		for _, c := range m.w.calls(effect) {
			p := Planned{Function: c.Function, Method: c.Method, Resource: c.Resource, Action: effect.Action, Switch: sw, When: when}
			if effect.Action == events.ActionCreate {
				p.Slice, p.Zones = effect.Slice, m.wouldAsk(m.w.Slice(effect.Slice))
				if at := slices.IndexFunc(p.Zones, func(z ZoneFit) bool { return z.Place() == effect.Place() }); at > 0 {
					p.Zones = p.Zones[at:] // those before have refused
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// wouldAsk are the zones that would be asked for a slice.
func (m *machine) wouldAsk(s *Slot) (zones []ZoneFit) {
	for _, at := range m.candidates(s) {
		z := ZoneFit{Zone: at.Zone, Accelerator: at.Accelerator, Checked: at == s.place()}
		if topology.Region(at.Zone) != topology.Region(s.Zone) && strings.HasPrefix(m.w.Directory, "gs://") && !m.p.OtherRegions {
			z.Text = "if the checkpoints' bucket is there too"
		}
		zones = append(zones, z)
	}
	return zones
}

func (m *machine) wouldSave() []Planned {
	return m.would(policy.RequestCheckpoint, "", Effect{Action: events.ActionSave})
}

// wouldMaintain are the calls that would start the announced maintenance behind the save; none where that is not possible.
func (m *machine) wouldMaintain() (all []Planned) {
	if m.notEarly() != "" || m.w.Directory == "" || m.w.Crew.Seen.IsZero() {
		return nil
	}
	return m.would(policy.EarlyMaintenance, "once the save is verified", m.earlyMaintenance()...)
}

// wouldStart are the calls that would start slices that are stopped.
func (m *machine) wouldStart(names ...string) (all []Planned) {
	for _, name := range names {
		all = append(all, m.would(policy.StartStopped, "", Effect{Action: events.ActionStart, Slice: name})...)
	}
	return all
}

// wouldReplace are the calls that would replace these slices, with all that their queued resources hold.
func (m *machine) wouldReplace(names []string, when string) (all []Planned, why string) {
	replaced := machine{p: m.p, w: m.w, now: m.now}
	replaced.w.Incident = &Incident{Troubles: []Trouble{{}}}
	if m.w.Incident != nil {
		in := *m.w.Incident
		replaced.w.Incident = &in
	}
	replaced.w.Slices = slices.Clone(m.w.Slices)
	for _, name := range names {
		s := replaced.w.Slice(name)
		for _, o := range append([]string{name}, replaced.beside(s)...) {
			replaced.w.Slice(o).Replace = true
		}
	}
	sw := replaced.w.governs(events.ActionDelete)
	var deletions, creations []Effect
	for _, name := range replaced.replacing() {
		s := replaced.w.Slice(name)
		if _, fault, _ := replaced.irreplaceable(s); fault != "" {
			return nil, fault
		}
		concerned := func(effect Effect) bool { return effect.Concerns(name) }
		with := replaced.beside(s)
		if s.Condition != Gone && !slices.ContainsFunc(deletions, concerned) {
			deletions = append(deletions, Effect{Action: events.ActionDelete, Slice: name, With: with, Zone: s.Zone})
		}
		if !slices.ContainsFunc(creations, concerned) {
			at := replaced.candidates(s)[0]
			creations = append(creations, Effect{Action: events.ActionCreate, Slice: name, With: with, Zone: at.Zone, Accelerator: at.Accelerator})
		}
	}
	all = append(replaced.would(sw, when, deletions...), replaced.would(sw, when, creations...)...)
	if m.w.Directory != "" {
		all = append(all, replaced.would("", "", Effect{Action: events.ActionAdmit})...)
	}
	return all, ""
}

// rehearse keeps what would be called: once, however often it is met.
func (m *machine) rehearse(calls ...Planned) {
	for _, c := range calls {
		same := func(o Planned) bool { return o.Method == c.Method && o.Resource == c.Resource && o.When == c.When }
		if len(m.w.Incident.Plan) < MaxCalls && !slices.ContainsFunc(m.w.Incident.Plan, same) {
			in := m.inc()
			in.Plan = append(in.Plan, c)
		}
	}
}

// rehearseReplacement keeps the calls that would replace slices, in the place of those that would have replaced fewer, or why there
// would be none.
func (m *machine) rehearseReplacement(names []string, when string) {
	calls, why := m.wouldReplace(names, when)
	if text := "nothing: " + why; why != "" && !slices.Contains(m.w.Incident.Would, text) {
		in := m.inc()
		in.Would = append(in.Would, text)
	}
	before := func(c Planned) bool {
		return c.Action == events.ActionDelete || c.Action == events.ActionCreate || c.Action == events.ActionAdmit
	}
	old := slices.DeleteFunc(slices.Clone(m.w.Incident.Plan), func(c Planned) bool { return !before(c) })
	if slices.EqualFunc(old, calls, func(a, b Planned) bool { return a.Resource == b.Resource && a.Method == b.Method && a.When == b.When }) {
		return
	}
	in := m.inc()
	in.Plan = slices.DeleteFunc(slices.Clone(in.Plan), before)
	m.rehearse(calls...)
}

// notHealed is when what Google may bring back is replaced.
func (m *machine) notHealed() string {
	return "if " + m.w.Words().Healer + " has not brought it back within " + events.Span(HealFor)
}

// rehearseLost keeps the calls that would replace all that is lost by now. What is gone without a word is so only if nobody says
// that its owner deleted it.
func (m *machine) rehearseLost() {
	var names []string
	when := ""
	for i := range m.w.Slices {
		switch s := &m.w.Slices[i]; {
		case s.IsReleased() || m.w.Crew.Finished:
			continue
		case s.Condition == Gone && !m.w.Incident.proves(s):
			when = "if nobody says within " + events.Span(Grace) + " that its owner deleted it"
		case s.Condition == Lost && s.Heals():
			when = m.notHealed()
		case s.Condition != Lost && s.Condition != Gone:
			continue
		}
		names = append(names, m.w.Slices[i].Name)
	}
	if names != nil {
		m.rehearseReplacement(names, when)
	}
}

// rehearseRestart keeps the call that would ask the crew for another attempt.
func (m *machine) rehearseRestart() {
	if m.w.Directory == "" {
		in := m.inc()
		in.Would = append(in.Would, "nothing: without a checkpoint directory there is no lease through which a crew could be asked")
		return
	}
	calls := m.w.Restarting()
	if m.w.Incident.Cause == events.CauseHang && m.p.Hang != policy.HangRestart {
		for i := range calls {
			calls[i].When = "if the policy's hang were restart"
		}
	}
	m.rehearse(calls...)
}

// Unfitted are the zones of a slice that would be created of which nobody has said yet whether its order fits them; of the first
// that is none of those left out.
func (in *Incident) Unfitted(but ...string) (slice string, places []Place) {
	for _, c := range in.Plan {
		if slices.Contains(but, c.Slice) {
			continue
		}
		for _, z := range c.Zones {
			if !z.Checked {
				slice = c.Slice
				places = append(places, z.Place())
			}
		}
		if places != nil {
			return slice, places
		}
	}
	return "", nil
}

// fitted keeps what holding a specification against zones has come to. It may come right behind the end.
func (m *machine) fitted(e Fitted) {
	old := m.w.Incident
	if old == nil {
		old = m.w.Closed
	}
	if old == nil {
		return
	}
	in := *old
	in.Plan = slices.Clone(in.Plan)
	for i := range in.Plan {
		c := &in.Plan[i]
		if c.Slice != e.Slice {
			continue
		}
		c.Zones = slices.Clone(c.Zones)
		for j := range c.Zones {
			at := slices.IndexFunc(e.Zones, func(z ZoneFit) bool { return z.Place() == c.Zones[j].Place() })
			if at < 0 || c.Zones[j].Checked {
				continue
			}
			if c.Zones[j].Checked = true; e.Zones[at].Code != "" {
				c.Zones[j].Code, c.Zones[j].Text = e.Zones[at].Code, e.Zones[at].Text
			}
		}
	}
	m.changed = true
	if m.w.Incident != nil {
		m.w.Incident, m.ownIncident = &in, false
		return
	}
	m.w.Closed = &in
}
