//go:build !heart

package incident

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
)

// Fitted says how a slice's order fits the zones that would be asked for it. No decision rests on it.
type Fitted struct {
	Origin
	Slice string
	Zones []ZoneFit
}

// IfLost is the plan for the case that the API showed a slice lost now.
func (w Workload) IfLost(p policy.Policy, slice string, now time.Time) Plan {
	s := w.Slice(slice)
	if s == nil {
		return Plan{}
	}
	w.Pause = nil // a pause holds calls, and no decision
	o := w.outlook(p, now)
	o.read(s, Lost, s.Incarnation, "")
	plan := o.plan()
	if plan.Phase == "" && plan.Outcome == "" {
		plan.Reason = w.whyLeftAlone(s)
	}
	return plan
}

// AtDeadline is the plan for the case that only time passed until the open incident's deadline. It goes on from there only where
// the deadline leads to a new request.
func (w Workload) AtDeadline(p policy.Policy) Plan {
	if w.Incident == nil || w.Incident.Deadline.IsZero() {
		return Plan{}
	}
	o := w.outlook(p, w.Incident.Deadline)
	o.learn(Ticked{})
	if o.m.w.Epoch == w.Epoch {
		return o.seen()
	}
	return o.plan()
}

// IfAllowed is the plan for one more piece of evidence, if the policy allowed everything. Where the evidence opens no incident yet,
// time passes until one opens.
func (w Workload) IfAllowed(p policy.Policy, e Evidence, now time.Time) Plan {
	o := w.outlook(permitting(p), now)
	o.agrees = true
	o.learn(e)
	o.inPeace()
	return o.plan()
}

// PlacesFor are the places in which a slice may be created, in the order in which Pitstop asks them.
func (w Workload) PlacesFor(p policy.Policy, slice string) []Place {
	s := w.Slice(slice)
	if s == nil {
		return nil
	}
	if w.Incident == nil {
		w.Incident = &Incident{}
	}
	return (&machine{p: p, w: w}).candidates(s)
}

// permitting is the same policy with everything allowed.
func permitting(p policy.Policy) policy.Policy {
	p.Switches, p.Limits, p.Unreadable, p.Unknown, p.Hang = policy.Everything(), nil, "", false, policy.HangRestart
	return p
}

// outlook is a hypothetical workload that Pitstop plays forward.
type outlook struct {
	m *machine
	// agrees answers every question with yes. Otherwise the outlook ends at a question.
	agrees bool
	// when is the wait before the next call, by slice; the wait that counts for every slice is under the empty name.
	when map[string]string
	// looked says that this look has read the slices.
	looked bool
	// unknown says that what follows depends on what a look finds.
	unknown bool
	calls   []Planned
	// told is the number of timeline lines that the open incident had at the beginning, and over the ID of the incident that closed
	// last.
	told int
	over string
}

func (w Workload) outlook(p policy.Policy, now time.Time) *outlook {
	return (&machine{p: p, w: w, now: now}).outlook()
}

// outlook begins at a machine's present state, and plays that machine forward from then on.
func (m *machine) outlook() *outlook {
	o := &outlook{m: m, when: map[string]string{}}
	if in := m.w.Incident; in != nil {
		o.told = len(in.Timeline) + in.LeftOut
	}
	if m.w.Closed != nil {
		o.over = m.w.Closed.ID
	}
	return o
}

func (o *outlook) learn(e Evidence) { o.m.learn(e) }

// passes lets time pass until then.
func (o *outlook) passes(until time.Time) { o.m.now = later(o.m.now, until) }

// origin is the origin of a reading that the API would give now.
func (o *outlook) origin() Origin { return Origin{Time: o.m.now, Rank: events.RankReading} }

// read plays a reading of a slice. The slice's notices stay as they are.
func (o *outlook) read(s *Slot, c Condition, life events.Incarnation, maker string) {
	e := Read{
		Origin: o.origin(), Slice: s.Name, Zone: life.Zone, Condition: c, Incarnation: life, State: s.State, NoticeUnread: true, Incident: maker,
		Abuse: s.Abuse.Suspected,
	}
	if e.Zone == "" {
		e.Zone = s.Zone
	}
	if c != s.Condition {
		e.State = o.m.w.Words().States[c]
	}
	o.learn(e)
}

// mostSteps bounds an outlook. Each step carries out requests, or ends a wait.
const mostSteps = 200

// plan plays the open incident forward until it has ended, its training goes on, it waits for maintenance, or it asks a person.
func (o *outlook) plan() Plan {
	for range mostSteps {
		if !o.next() || o.unknown {
			break
		}
	}
	return o.seen()
}

// next carries out the calls that are wanted, or ends the wait. It reports whether anything may follow.
func (o *outlook) next() bool {
	in, effects := o.m.w.Incident, o.m.w.Effects
	if in == nil {
		return false
	}
	if len(effects) == 0 {
		return o.wait()
	}
	effects = slices.DeleteFunc(slices.Clone(effects), in.unwanted) // nobody knows their outcome, and nobody wants it
	for _, effect := range effects {
		if effect.Answered.IsZero() {
			o.calls = append(o.calls, o.m.plannedCalls(o.m.w.governs(effect.Action), o.whenFor(effect), effect)...)
		}
	}
	for _, effect := range effects {
		o.carryOut(effect)
	}
	return len(effects) > 0
}

// whenFor names the waits before the call of an effect.
func (o *outlook) whenFor(effect Effect) string {
	var all []string
	for _, slice := range append([]string{"", effect.Slice}, effect.With...) {
		if when := o.when[slice]; when != "" && !slices.Contains(all, when) {
			all = append(all, when)
		}
	}
	return strings.Join(all, ", and ")
}

// inPeace lets time pass until an incident opens, unless one has just ended.
func (o *outlook) inPeace() {
	if c := o.m.w.Closed; o.m.w.Incident != nil || c != nil && c.ID != o.over {
		return
	}
	var due []time.Time
	for i := range o.m.w.Slices {
		s := &o.m.w.Slices[i]
		due = append(due, s.Notice.Due)
		if s.Condition != Ready {
			due = append(due, s.Since.Add(SickFor))
		}
	}
	slices.SortFunc(due, time.Time.Compare)
	for _, at := range due {
		if o.passes(at); !at.IsZero() && o.m.w.Incident == nil {
			o.learn(Ticked{})
		}
	}
	if o.m.w.Incident == nil {
		o.askOwner()
	}
}

// carryOut plays the full success of a requested effect.
func (o *outlook) carryOut(effect Effect) {
	if effect = o.again(effect); o.m.w.Incident == nil {
		return
	}
	r := events.Request{
		Workload: o.m.w.ID, Incident: effect.Maker, Epoch: effect.Epoch, Action: effect.Action, Slice: effect.Slice, Incarnation: effect.Incarnation,
		Attempt: effect.Attempt,
	}
	if effect.Begun.IsZero() {
		o.learn(Intended{Origin: o.origin(), Request: r, RequestID: "planned"})
	}
	switch effect.Action {
	case events.ActionVerify:
		o.verified(r)
		return
	case events.ActionHear:
		o.heard(r)
		return
	case events.ActionSave, events.ActionMaintain, events.ActionAdmit, events.ActionRestart, events.ActionStart, events.ActionDelete, events.ActionCreate:
	}
	if effect.Action != events.ActionDelete { // a deleted slice is created again without another wait
		clear(o.when)
	}
	if effect.Answered.IsZero() {
		o.learn(Answered{Origin: o.origin(), Request: r})
	}
	concerned := append([]string{effect.Slice}, effect.With...)
	switch effect.Action {
	case events.ActionSave:
		o.saved()
	case events.ActionStart:
		o.shows(concerned, func(s *Slot) { o.read(s, Ready, s.Incarnation, "") })
	case events.ActionDelete:
		o.shows(concerned, func(s *Slot) { o.read(s, Gone, s.Incarnation, "") })
	case events.ActionCreate:
		o.m.now = o.m.now.Add(time.Second) // its life begins after the incident
		made := events.Incarnation{Zone: effect.Zone, ID: "planned", Created: o.m.now}
		o.shows(concerned, func(s *Slot) { o.read(s, Ready, made, effect.Maker) })
	case events.ActionMaintain, events.ActionAdmit, events.ActionRestart, events.ActionVerify, events.ActionHear:
	}
}

// verified plays the find of the complete checkpoint that this plan has requested. What another look would find nobody knows, and the plan
// ends there.
func (o *outlook) verified(r events.Request) {
	if phase := o.m.phase(); phase != Saving && phase != Window {
		o.unknown = true
		return
	}
	step := max(o.m.w.verifyPast()+1, o.m.w.Incident.Save.Step)
	o.learn(Checked{Origin: o.origin(), Request: r, Found: true, Step: step, At: o.m.now, URI: o.m.w.Directory})
	o.when[""] = "once the save is verified"
}

// heard plays the reading of the crew's verdict and of the saved progress: a checkpoint that was reported complete is found
// complete.
func (o *outlook) heard(r events.Request) {
	e := VerdictRead{Origin: o.origin(), Request: r, Verdict: o.verdict(), Text: "none is known"}
	if saved := o.m.w.Progress.CheckpointStep; saved > 0 {
		e.Saved, e.SavedAt, e.SavedURI = saved, o.m.now, o.m.w.Directory
	}
	o.learn(e)
}

// again returns an effect that waits for its next try, once the time of that try has come.
func (o *outlook) again(effect Effect) Effect {
	if !effect.Retry.IsZero() {
		o.passes(effect.Retry)
		o.learn(Ticked{})
	}
	if now := o.m.w.effect(effect.Action, effect.Slice); now != nil {
		return *now
	}
	return effect
}

// shows plays the readings of slices after a call.
func (o *outlook) shows(names []string, as func(*Slot)) {
	for _, name := range names {
		if s := o.m.w.Slice(name); s != nil {
			as(s)
		}
	}
}

// saved plays the crew's acknowledgement of the requested save.
func (o *outlook) saved() {
	if in := o.m.w.Incident; in != nil {
		o.m.from = o.origin()
		o.m.saveAcked(events.CrewReport{Report: events.ReportSaved, SaveID: in.Save.ID, CheckpointStep: max(o.m.w.Progress.High, o.m.w.Progress.Verified)})
	}
}

// verdict is the verdict that the crew would have left beside the checkpoints: that it gave up, where a line says so.
func (o *outlook) verdict() *events.CrewVerdict {
	c := o.m.w.Crew.Claim
	if c.Finished || c.Attempt <= o.m.w.Crew.GaveUp || len(o.m.w.Slices) == 0 {
		return nil
	}
	return &events.CrewVerdict{Attempt: c.Attempt, Ended: c.At, Life: events.Admission{Slice: o.m.w.Slices[0].Name}, Reason: "no restarts are left"}
}

// wait ends the incident's wait by letting time pass. It reports whether anything follows.
func (o *outlook) wait() bool {
	in := o.m.w.Incident
	o.looked = o.looked && o.m.phase() == Looking
	switch o.m.phase() {
	case Looking:
		if !o.looked {
			o.looked = true
			o.readAll()
			return true
		}
	case PhaseGrace, Healing:
		if o.askOwner() {
			return true
		}
		o.notHealed()
	case Approving:
		if !o.agrees {
			return false
		}
		o.learn(Approved{Origin: o.origin(), Word: Word{By: "a person"}, Incident: in.ID, Action: in.Asked})
		o.when[""] = "if a person says yes"
		return true
	case Saving:
	case Window:
		return o.endAsPlanned()
	case Resuming:
		if o.m.now.Before(in.Deadline) {
			return false
		}
	case Maintaining, PhaseDeleting, PhaseCreating, Admitting, Restarting, Starting, Watching, Clearing, Closed:
		return false
	}
	o.passes(in.Deadline)
	o.learn(Ticked{})
	return true
}

// endAsPlanned plays the planned end of a slice, where the incident waits for one. It reports whether it did.
func (o *outlook) endAsPlanned() (ended bool) {
	for i := range o.m.w.Slices {
		s := o.m.w.Slices[i]
		if !s.Notice.End || !s.announced() || o.m.now.Before(s.Notice.Due) || s.Condition == Lost || s.Condition == Gone || o.m.w.Incident == nil {
			continue
		}
		o.passes(s.Ends)
		o.when[s.Name], ended = "once it has ended", true
		o.read(&s, Lost, s.Incarnation, "")
	}
	return ended
}

// readAll plays a reading of every slice in its last read state.
func (o *outlook) readAll() {
	for i := range o.m.w.Slices {
		s := o.m.w.Slices[i]
		if s.Condition != Unread && o.m.w.Incident != nil {
			o.read(&s, s.Condition, s.Incarnation, "")
		}
	}
}

// notHealed notes for each unusable slice that its provider has not brought it back.
func (o *outlook) notHealed() {
	for i := range o.m.w.Slices {
		if s := &o.m.w.Slices[i]; o.m.phase() == Healing && s.Condition != Ready && s.Condition != Gone && !s.IsReleased() {
			o.when[s.Name] = "if " + o.m.w.Words().Healer + " has not brought it back within " + events.Span(HealFor)
		}
	}
}

// askOwner plays the audit log's answer for each slice whose deleter or stopper nobody has named: the log names nobody either. It
// reports whether there was such a slice.
func (o *outlook) askOwner() (asked bool) {
	for i := range o.m.w.Slices {
		s := o.m.w.Slices[i]
		if s.IsReleased() || !s.Stop.Unsaid.IsZero() || s.Condition != Gone && !s.unaccounted() {
			continue
		}
		o.passes(s.Since.Add(Grace))
		o.learn(Unsaid{Origin: o.origin(), Slice: s.Name, Incarnation: s.Incarnation})
		if o.m.w.Slices[i].Stop.Unsaid.IsZero() {
			continue // no log names a slice that was never seen alive
		}
		did := "stopped"
		if s.Condition == Gone {
			did = "deleted"
		}
		asked, o.when[s.Name] = true, "if nobody says within "+events.Span(Grace)+" that its owner "+did+" it"
	}
	if asked {
		o.learn(Ticked{})
	}
	return asked
}

// seen returns the plan so far.
func (o *outlook) seen() Plan {
	plan := Plan{Calls: o.calls}
	in := o.m.w.Incident
	if c := o.m.w.Closed; in == nil && c != nil && c.ID != o.over {
		in = c // it would have ended
	}
	if in == nil {
		return plan
	}
	for _, l := range in.Timeline[min(max(0, o.told-in.LeftOut), len(in.Timeline)):] {
		if l.Kind == LineDecided {
			plan.Decisions = append(plan.Decisions, l)
		}
	}
	if o.m.w.Incident != nil {
		plan.Phase = o.m.phase()
		return plan
	}
	plan.Outcome, plan.Reason, plan.Advice = in.Outcome, in.Reason, in.Advice
	return plan
}

// takeOrWatch takes a step, or keeps the calls that would follow from it where nothing is allowed. Instead describes a step that
// makes no call.
func (m *machine) takeOrWatch(seen, instead string, step func(*machine)) {
	if m.watched() {
		m.watch(seen, instead, step)
		return
	}
	step(m)
}

// rehearse keeps the calls that would follow from a step, were everything allowed, or the reason why there would be none. When is
// the condition for the first of them. It returns the kept texts, for people.
func (m *machine) rehearse(when string, step func(*machine)) (texts []string) {
	f := &machine{p: permitting(m.p), w: m.w, now: m.now, from: m.from, reading: m.reading, opens: m.opens, entered: m.entered}
	in := *m.w.Incident
	in.Switches = policy.Everything()
	f.w.Incident = &in
	step(f)
	o := f.outlook()
	o.agrees = true
	if when != "" {
		o.when[""] = when
	}
	plan := o.plan()
	m.keepPlan(plan.Calls)
	if plan.Outcome == Escalated && plan.Calls == nil {
		texts = []string{"nothing: " + plan.Reason}
		m.keepText(texts[0])
	}
	for _, c := range plan.Calls {
		texts = append(texts, c.String())
	}
	return texts
}

// keepPlan replaces the calls that an earlier step would have led to. Calls that request a save, or start maintenance, stay.
func (m *machine) keepPlan(calls []Planned) {
	before := func(c Planned) bool {
		return c.Action != events.ActionSave && c.Action != events.ActionMaintain
	}
	same := func(a, b Planned) bool { return a.Resource == b.Resource && a.Method == b.Method && a.When == b.When }
	old := slices.DeleteFunc(slices.Clone(m.w.Incident.PlannedCalls), func(c Planned) bool { return !before(c) })
	if slices.EqualFunc(old, calls, same) {
		return
	}
	in := m.inc()
	in.PlannedCalls = slices.DeleteFunc(slices.Clone(in.PlannedCalls), before)
	m.keepCalls(calls...)
}

// keepCalls keeps calls that would be made: each once, however often it comes up.
func (m *machine) keepCalls(calls ...Planned) {
	for _, c := range calls {
		same := func(o Planned) bool { return o.Method == c.Method && o.Resource == c.Resource && o.When == c.When }
		if len(m.w.Incident.PlannedCalls) < MaxCalls && !slices.ContainsFunc(m.w.Incident.PlannedCalls, same) {
			in := m.inc()
			in.PlannedCalls = append(in.PlannedCalls, c)
		}
	}
}

// keepText keeps a consequence that is no call, once.
func (m *machine) keepText(text string) {
	if !slices.Contains(m.w.Incident.Would, text) {
		in := m.inc()
		in.Would = append(in.Would, text)
	}
}

// plannedCalls turns effects into the calls that they would make.
func (m *machine) plannedCalls(sw policy.Switch, when string, effects ...Effect) (all []Planned) {
	for _, effect := range effects {
		for _, c := range m.w.calls(effect) {
			p := Planned{Function: c.Function, Method: c.Method, Resource: c.Resource, Action: effect.Action, Switch: sw, When: when}
			if effect.Action == events.ActionCreate {
				p.Slice, p.Zones = effect.Slice, m.zonesInOrder(m.w.Slice(effect.Slice))
				if at := slices.IndexFunc(p.Zones, func(z ZoneFit) bool { return z.Place() == effect.Place() }); at > 0 {
					p.Zones = p.Zones[at:] // those before have refused
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// zonesInOrder are the zones that would be asked for a slice.
func (m *machine) zonesInOrder(s *Slot) (zones []ZoneFit) {
	for _, at := range m.candidates(s) {
		z := ZoneFit{Zone: at.Zone, Accelerator: at.Accelerator, Checked: at == s.place()}
		if topology.Region(at.Zone) != topology.Region(s.Zone) && strings.HasPrefix(m.w.Directory, "gs://") && !m.p.OtherRegions {
			z.Text = "if the checkpoints' bucket is there too"
		}
		zones = append(zones, z)
	}
	return zones
}

// rehearseLost keeps the calls that would follow from the slices' present state, where that has changed.
func (m *machine) rehearseLost() {
	if m.w.Crew.Finished || !m.changed {
		return
	}
	m.rehearse("", func(m *machine) { m.enter(Looking) })
}

// rehearseRestart keeps the call that would ask the crew for another attempt.
func (m *machine) rehearseRestart() {
	if m.w.Directory == "" {
		m.keepText("nothing: without a checkpoint directory there is no lease through which a crew could be asked")
		return
	}
	when := ""
	if m.w.Incident.Cause == events.CauseHang && m.p.Hang != policy.HangRestart {
		when = "if the policy's hang were restart"
	}
	m.rehearse(when, func(m *machine) { m.sendRestart("") })
}

// Unfitted are the zones in which a slice would be created and that were not yet compared with its order. It returns them for the
// first such slice that but does not list.
func (in *Incident) Unfitted(but ...string) (slice string, places []Place) {
	for _, c := range in.PlannedCalls {
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

// fitted stores the result of comparing a specification with zones. The result may come right after the incident's end.
func (m *machine) fitted(e Fitted) {
	old := m.w.Incident
	if old == nil {
		old = m.w.Closed
	}
	if old == nil {
		return
	}
	in := *old
	in.PlannedCalls = slices.Clone(in.PlannedCalls)
	for i := range in.PlannedCalls {
		c := &in.PlannedCalls[i]
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
