package incident

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// outlook plays a workload forward: the rules run on assumed facts. Each call does its work, and each wait runs to its end.
type outlook struct {
	turn
	// agrees answers every question with yes; else the outlook ends at a question.
	agrees bool
	// when is the wait before the next call, by slice; the wait that counts for every slice is under the empty name.
	when map[string]string
	// unknown says that nobody knows what follows.
	unknown bool
	calls   []view.Planned
	// lines is how many lines the open incident had at the beginning, and over the ID of the incident that had closed.
	lines int
	over  string
}

// longestOutlook bounds how far an outlook goes.
const longestOutlook = 64

// IfLost is the plan for the case that the API showed a slice lost now.
func (w Workload) IfLost(p policy.Policy, slice string, now time.Time) view.Plan {
	s := w.Slice(slice)
	if s == nil {
		return view.Plan{}
	}
	o := w.outlook(p, now)
	o.take(o.reading(s, evidence.Lost))
	plan := o.plan()
	if d := diagnose(p, o.w, o.now); d.in == nil && plan.Outcome == "" {
		plan.Reason = d.whyNothing(d.slot(slice)).String()
	}
	return plan
}

// AtDeadline is the plan for the case that only time passed until the end of the open incident's wait.
func (w Workload) AtDeadline(p policy.Policy) view.Plan {
	if w.Incident == nil || w.Incident.Status.Until.IsZero() {
		return view.Plan{}
	}
	o := w.outlook(p, w.Incident.Status.Until)
	o.tick()
	if o.w.Epoch == w.Epoch {
		return o.seen()
	}
	return o.plan()
}

// IfAllowed is the plan for one more piece of evidence, if the policy allowed everything and a person said yes to every question.
func (w Workload) IfAllowed(p policy.Policy, e evidence.Evidence, now time.Time) view.Plan {
	o := w.outlook(permitting(p), now)
	o.agrees = true
	if o.w.Incident != nil {
		o.w.Incident.Ceiling = policy.Everything()
	}
	o.take(e)
	o.waitInPeace()
	return o.plan()
}

func (w *Workload) outlook(p policy.Policy, now time.Time) *outlook {
	next := w.clone()
	next.Pause = nil // a pause holds calls, and no decision
	o := &outlook{turn: turn{p: p, w: &next, now: now, looksAhead: true}, when: map[string]string{}}
	if in := next.Incident; in != nil {
		o.lines = len(in.Lines) + in.LeftOut
	}
	if next.Closed != nil {
		o.over = next.Closed.ID
	}
	return o
}

// plan plays on to the end, or to where nobody knows what follows.
func (o *outlook) plan() view.Plan {
	for range longestOutlook {
		if o.w.Incident == nil || o.unknown || !o.next() {
			break
		}
	}
	return o.seen()
}

// next plays the next step, and reports whether anything may follow.
func (o *outlook) next() bool {
	step := diagnose(o.p, o.w, o.now).plan()
	switch {
	case step.End != nil:
		o.tick()
		return true
	case step.Asks != "":
		if o.agrees {
			o.take(evidence.Approved{Origin: o.origin(), Word: evidence.Word{By: "a person"}, Incident: o.w.Incident.ID, Action: step.Asks})
			o.when[""] = "if a person says yes"
		}
		return o.agrees
	case len(step.Wants) > 0:
		o.makeCalls(step)
		return true
	}
	return o.wait(step)
}

// makeCalls plays the full success of the calls that a step wants.
func (o *outlook) makeCalls(step Step) {
	d := diagnose(o.p, o.w, o.now)
	for _, want := range step.Wants {
		x := o.w.effect(want.Action, want.Slice)
		if x == nil {
			o.unknown = true
			return
		}
		if x.Answered.IsZero() {
			o.keepCalls(d, step, *x)
		}
		if o.now = later(o.now, x.Retry); !x.Retry.IsZero() {
			o.tick()
			d = diagnose(o.p, o.w, o.now)
		}
	}
	if o.w.Incident == nil {
		return
	}
	step = diagnose(o.p, o.w, o.now).plan()
	for _, want := range step.Wants {
		if x := o.w.effect(want.Action, want.Slice); x != nil {
			o.assume(step, *x)
		}
	}
	o.tick()
}

// keepCalls keeps the calls of an effect, with the waits before them.
func (o *outlook) keepCalls(d *diagnosis, step Step, x Effect) {
	var when []string
	for _, slice := range append([]string{""}, x.all()...) {
		if w := o.when[slice]; w != "" && !slices.Contains(when, w) {
			when = append(when, w)
		}
	}
	for _, c := range o.w.calls(x) {
		p := view.Planned{Function: c.Function, Method: c.Method, Resource: c.Resource, Action: x.Action, Switch: step.Switch, When: strings.Join(when, ", and ")}
		if x.Action == events.ActionCreate {
			p.Slice, p.Zones = x.Slice, d.placesFrom(x)
		}
		o.calls = append(o.calls, p)
	}
	if x.Action != events.ActionDelete { // a deleted slice is created again without another wait
		clear(o.when)
	}
}

// placesFrom are the places that a creation asks, from its own on.
func (d *diagnosis) placesFrom(x Effect) (all []view.ZoneFit) {
	s := d.slot(x.Slice)
	places := d.placesOf(s, d.isApart())
	left := d.leftAmong(s, places)
	for _, at := range places {
		z := view.ZoneFit{Place: at, AfterSeconds: s.After(d.p, at).Seconds(), Checked: at == view.Place{Zone: s.Zone}}
		for _, l := range left {
			if l.Zone == at.Zone {
				z.Text = l.Words()
			}
		}
		if topology.Region(at.Zone) != topology.Region(s.Zone) && strings.HasPrefix(d.w.Directory, "gs://") && !d.p.OtherRegions {
			z.Text = "if the checkpoints' bucket is there too"
		}
		all = append(all, z)
	}
	if at := slices.IndexFunc(all, func(z view.ZoneFit) bool { return z.Place == x.Place }); at > 0 {
		return all[at:] // those before have refused
	}
	return all
}

// assume plays that a call did its work.
func (o *outlook) assume(step Step, x Effect) {
	o.now = o.now.Add(time.Second) // a call takes its time: a life begins after the incident, and is let in after it has begun
	r := events.Request{Workload: o.w.ID, Incident: o.w.Incident.ID, Epoch: x.Epoch, Action: x.Action, Slice: x.Slice, Incarnation: x.Life, Attempt: x.Attempt}
	if o.w.Incident.Calls = nil; x.Begun.IsZero() { // nobody looks at the record of assumed calls
		(&effects{w: o.w, now: o.now}).begin(evidence.Intended{Origin: o.origin(), Request: r, RequestID: "planned"}, step)
	}
	switch x.Action {
	case events.ActionVerify:
		o.assumeFound(r)
	case events.ActionHear:
		o.facts().record(o.heard(r))
	default:
		o.facts().record(evidence.Answered{Origin: o.origin(), Request: r})
		o.assumeRead(x)
	}
}

// facts takes evidence of now into the assumed document.
func (o *outlook) facts() *facts { return &facts{w: o.w, now: o.now, from: o.origin()} }

// assumeRead plays the readings that show what a call did, or the answer of the crew.
func (o *outlook) assumeRead(x Effect) {
	f := o.facts()
	for _, name := range x.all() {
		s := o.w.Slice(name)
		switch x.Action {
		case events.ActionDelete:
			f.record(o.reading(s, evidence.Gone))
		case events.ActionStart:
			f.record(o.reading(s, evidence.Ready))
		case events.ActionCreate:
			e := o.reading(s, evidence.Ready)
			e.Zone, e.Incident = x.Zone, o.w.Incident.ID
			e.Incarnation = events.Incarnation{Zone: x.Zone, ID: "planned " + name, Created: o.now}
			f.record(e)
		default:
		}
	}
	if x.Action == events.ActionSave {
		f.saved(events.CrewReport{Report: events.ReportSaved, SaveID: o.w.Incident.SaveID(), CheckpointStep: max(o.w.Training.High, o.w.Training.Saved.Step)})
	}
}

// assumeFound plays the find of the save that this incident has asked for. What another look would find nobody knows.
func (o *outlook) assumeFound(r events.Request) {
	if o.w.Incident.Save.Acked.IsZero() {
		o.unknown = true
		return
	}
	step := max(o.w.Training.Saved.Step+1, o.w.Incident.Save.Step)
	o.facts().record(evidence.Checked{Origin: o.origin(), Request: r, Found: true, Step: step, At: o.now, URI: o.w.Directory})
	o.when[""] = "once the save is verified"
}

// heard plays the reading of the crew's verdict: a line that it gave up is true, and a checkpoint that was reported complete is found.
func (o *outlook) heard(r events.Request) evidence.VerdictRead {
	t := o.w.Training
	e := evidence.VerdictRead{Origin: o.origin(), Request: r, Text: "none is known"}
	if c := t.Claim; !c.Finished && c.Attempt > t.Verdict.Attempt {
		e.Verdict = &events.CrewVerdict{Attempt: c.Attempt, Life: events.Admission{Slice: o.w.Slices[0].Name}, Ended: c.At, Reason: "no restarts are left"}
	}
	if t.Reported.Step > 0 {
		e.Saved, e.SavedAt, e.SavedURI = t.Reported.Step, o.now, o.w.Directory
	}
	return e
}

// wait ends a wait by letting time pass, and reports whether anything follows.
func (o *outlook) wait(step Step) bool {
	switch step.Label {
	case view.Looking:
		if o.unknown = diagnose(o.p, o.w, o.now).look() != nil; o.unknown {
			return false
		}
	case view.PhaseGrace, view.Healing:
		if o.nobodySays() {
			return true
		}
		if step.Label == view.Healing {
			o.notHealed()
		}
	case view.Window:
		return o.endsAsPlanned()
	case view.Saving:
	default:
		return false
	}
	o.now = later(o.now, step.Until)
	o.tick()
	return true
}

// endsAsPlanned plays the planned end of a slice, where the incident waits for one.
func (o *outlook) endsAsPlanned() (ended bool) {
	for i := range o.w.Slices {
		s := &o.w.Slices[i]
		if o.w.announcedFor(s).End && s.Condition == evidence.Ready && o.w.Incident != nil {
			o.now = later(o.now, s.Ends)
			o.when[s.Name], ended = "once it has ended", true
			o.take(o.reading(s, evidence.Lost))
		}
	}
	return ended
}

// notHealed notes for each slice whose provider has not brought it back.
func (o *outlook) notHealed() {
	d := diagnose(o.p, o.w, o.now)
	for _, s := range d.inAny(sick, lost, stopped, moving) {
		if !s.healsBy.IsZero() {
			o.when[s.Name] = "if " + o.w.Words().Healer + " has not brought it back within " + events.Span(d.healFor())
		}
	}
}

// nobodySays plays that the audit log names nobody who deleted or stopped a slice, and reports whether there was such a slice.
func (o *outlook) nobodySays() (asked bool) {
	d := diagnose(o.p, o.w, o.now)
	for _, s := range d.inAny(vanished, stopped) {
		if !s.Stop.Unsaid.IsZero() {
			continue
		}
		o.now = later(o.now, d.saidBy(&s.Life))
		if !o.facts().record(evidence.Unsaid{Origin: o.origin(), Slice: s.Name, Incarnation: s.Incarnation}) {
			continue // no log names a slice that was never seen alive
		}
		did := "stopped"
		if s.is(vanished) {
			did = "deleted"
		}
		asked, o.when[s.Name] = true, "if nobody says within "+events.Span(bounds.Grace)+" that its owner "+did+" it"
	}
	if asked {
		o.tick()
	}
	return asked
}

// waitInPeace lets time pass until an incident opens, unless one has just ended.
func (o *outlook) waitInPeace() {
	if c := o.w.Closed; o.w.Incident != nil || c != nil && c.ID != o.over {
		return
	}
	d := diagnose(o.p, o.w, o.now)
	var due []time.Time
	for i := range d.slots {
		s := &d.slots[i]
		if due = append(due, d.saveDue(s)); !s.is(serving) {
			due = append(due, d.sickBy(&s.Life))
		}
	}
	slices.SortFunc(due, time.Time.Compare)
	for _, at := range due {
		if o.now = later(o.now, at); !at.IsZero() && o.w.Incident == nil {
			o.tick()
		}
	}
	if o.w.Incident == nil {
		o.nobodySays()
	}
}

func (o *outlook) origin() evidence.Origin {
	return evidence.Origin{Time: o.now, Rank: events.RankReading}
}

func (o *outlook) tick() { o.take(evidence.Ticked{Origin: o.origin()}) }

// reading is a reading of a slot as it is known, in some condition.
func (o *outlook) reading(s *Slot, c evidence.Condition) evidence.Read {
	return evidence.Read{
		Origin: o.origin(), Slice: s.Name, Zone: s.Zone, Condition: c, Incarnation: s.Incarnation, State: o.w.Words().States[c], Facts: s.Facts,
		Directory: o.w.Directory,
	}
}

// seen is the plan so far.
func (o *outlook) seen() view.Plan {
	plan, in := view.Plan{Calls: o.calls}, o.w.Incident
	if c := o.w.Closed; in == nil && c != nil && c.ID != o.over {
		in = c // it would have ended
	}
	if in == nil {
		return plan
	}
	for _, l := range in.Lines[min(max(0, o.lines-in.LeftOut), len(in.Lines)):] {
		if l.Kind == view.LineDecided {
			plan.Decisions = append(plan.Decisions, l.shown())
		}
	}
	if o.w.Incident != nil {
		plan.Phase = in.Status.Label
		return plan
	}
	plan.Outcome, plan.Reason, plan.Advice = in.Ending.Outcome, in.Ending.Reason.String(), in.Ending.Advice.String()
	return plan
}
