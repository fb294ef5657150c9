package incident

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// end ends the incident. What its own calls made, or may still make, is cleaned up first.
func (d *diagnosis) end(x *effects, t *teller, e End) {
	w, in := d.w, d.w.Incident
	if in.Ending == nil {
		e.At = d.now
		in.Ending = &e
		if next := diagnose(d.p, w, d.now); next.leavesBehind(e) {
			plan := next.plan()
			if plan.End == nil {
				t.step(plan)
				x.follow(plan)
				return
			}
			e = *plan.End
		}
	}
	t.ended(e)
	d.close(x, e)
}

// close closes the incident. What happened until now opens no other one.
func (d *diagnosis) close(x *effects, e End) {
	w, in := d.w, d.w.Incident
	w.Epoch++
	if e.Outcome == view.Escalated {
		e.Advice = d.withCost(e.Advice)
	}
	for i := range d.slots {
		d.tellEnd(&d.slots[i], e)
	}
	in.Closed, in.Ending, in.Revision = d.now, &e, 1
	if e.Outcome == view.Resumed && !d.stepsOn() && d.isTakenBack() {
		w.Training.goesBack()
	}
	d.rememberNotices()
	if d.tellsOfStandstill(e) {
		remember(w, Told{Of: ToldStall, At: d.now})
	}
	if in.hasMade() {
		w.Made = append(w.Made, Making{Incident: in.ID, Opened: in.Opened, Closed: d.now})
	}
	w.forgetClosed()
	w.Closed, w.Incident, w.Ended, w.Effects = in, nil, d.now, nil
	x.out = []events.Event{in.end(w.ID)}
}

// withCost is an advice with the cost of the chips that stand idle until a person follows it.
func (d *diagnosis) withCost(advice story.Reason) story.Reason {
	chips := 0
	for _, s := range d.inAny(serving) {
		chips += s.Chips
	}
	if chips == 0 {
		return advice
	}
	price := ""
	if d.in.ChipHourPrice > 0 {
		price = fmt.Sprintf(", $%.2f an hour at the policy's price", d.in.ChipHourPrice*float64(chips))
	}
	return story.MeanwhileIdle.With(advice.String(), strconv.Itoa(chips), price)
}

// end is the event of the incident's end, or of another cause of it.
func (in *Incident) end(workload string) events.Event {
	return events.IncidentClosed{Schema: events.Schema, Workload: workload, Incident: in.ID, Outcome: string(in.Ending.Outcome), Revision: in.Revision}
}

// tellsOfAll reports whether an end covers every slice that is unusable then. One whose training goes on, that was withdrawn, or that was about
// a leftover, whatever came of the clean-up, covers nothing else: another loss meanwhile belongs to the next incident.
func (d *diagnosis) tellsOfAll(e End) bool {
	return e.Outcome != view.Resumed && e.Outcome != view.Withdrawn && d.in.Ending.Code != reason.CodeLeftBehind
}

// struckNow reports whether one of its troubles struck a life since that was last usable, though no reading may have shown it yet.
func (in *Incident) struckNow(s *slot) bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return t.Slice == s.Name && t.Life == s.Incarnation.ID && !t.Announced && t.Cause.Infrastructure() && !t.At.Before(s.usable())
	})
}

// tellsOf reports whether an end tells people of the end of a life, or of why it cannot be used. What the incident itself has cleaned up, nobody
// waits for.
func (d *diagnosis) tellsOf(s *slot, e End) bool {
	bad := !s.is(serving, foreign, awaited) && (s.Condition != evidence.Creating || s.replace)
	return bad && (d.tellsOfAll(e) || s.EndedBy == d.in.ID) || e.Outcome == view.Released && d.in.struckNow(s)
}

// tellEnd remembers what the end of the incident tells of a slot. Nothing of it is the incident's any more.
func (d *diagnosis) tellEnd(s *slot, e End) {
	told := Told{Slice: s.Name, Life: s.Incarnation.ID, At: d.now}
	if d.tellsOf(s, e) {
		told.Of = ToldEnd
		remember(d.w, told)
	}
	if (e.Outcome == view.Escalated || e.Code == reason.CodeCancelled) && s.is(serving) && d.awaits(s) {
		told.Of = ToldLeft
		remember(d.w, told)
	}
	if s.Suspected {
		told.Of = ToldAbuse
		remember(d.w, told)
	}
	if !s.Ordered.IsZero() || d.in.isAboutLate(s) {
		remember(d.w, Told{Of: ToldLate, Slice: s.Name, At: d.now})
	}
	s.Maker, s.Ordered = "", time.Time{}
}

// goesBack takes the present steps of a training that was taken back as its progress: what was saved later is of what it was before.
func (t *Training) goesBack() {
	t.High, t.Proven, t.Reported, t.Saved = t.Step, min(t.Proven, t.Step), Checkpoint{}, Checkpoint{}
}
