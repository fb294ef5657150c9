package view

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// maxHappened bounds the troubles in an update: the first and the last of them stay.
const maxHappened = 6

// passing are the phases that last for seconds when there is no obstacle.
var passing = []Phase{Looking, Maintaining, Admitting, Restarting}

// Updates says what people have to hear of one step of a workload: nothing, unless an incident has moved on in its course. What passes in
// seconds is not reported; the next update covers it.
func Updates(before, after Workload) (updates []events.IncidentUpdated) {
	told := map[string]string{}
	for _, in := range before.incidents() {
		u, _ := before.Update(in)
		told[in.ID] = u.Step()
	}
	for _, in := range after.incidents() {
		if u, tell := after.Update(in); tell && told[in.ID] != u.Step() {
			updates = append(updates, u)
		}
	}
	if at := after.WaitTold; !at.IsZero() && !at.Equal(before.WaitTold) {
		if u, waits := after.WaitUpdate(after.waitID()); waits {
			updates = append(updates, u)
		}
	}
	return updates
}

// incidents are the one that closed last, and the open one.
func (w Workload) incidents() (all []Incident) {
	for _, in := range []*Incident{w.Closed, w.Incident} {
		if in != nil {
			all = append(all, *in)
		}
	}
	return all
}

// Update is what people hear of an incident of the workload as it stands, so that it can be repeated. Tell is false in a phase that passes in
// seconds: the next one reports.
func (w Workload) Update(in Incident) (u events.IncidentUpdated, tell bool) {
	u = events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: in.ID, Number: in.Lines(), At: in.lastAt().UTC(), Opened: in.Opened, Cause: in.Cause,
		Policy: in.Policy, Chips: w.chips(in), Phase: string(in.Phase), Asked: in.Asked, Outcome: string(in.Outcome), ConfirmedBy: string(in.ConfirmedBy),
		Code: string(in.Code), Advice: in.Advice, Cost: in.Cost.Cost, ChipHourPrice: in.Cost.ChipHourPrice,
	}
	u.Slices, u.Happened = w.happened(in)
	for _, l := range slices.Backward(in.Timeline) {
		if l.Kind == LineDecided || l.Kind == LineEnded {
			u.Doing, u.Why = l.Text, l.Reason
			break
		}
	}
	if wait := w.Wait; in.Closed.IsZero() && wait != nil && !wait.Reminded.IsZero() {
		u.Waiting = wait.Since
		if wait.Reminded.After(u.At) {
			u.At = wait.Reminded.UTC()
		}
	}
	if in.Outcome == Escalated && w.Incident == nil && !w.Ended.After(in.Closed) {
		u.IdleChips = w.idleChips()
	}
	return u, !slices.Contains(passing, in.Phase)
}

// happened is which slices were struck, and what by.
func (w Workload) happened(in Incident) (struck []events.Affected, texts []string) {
	for _, t := range in.Troubles {
		if s := w.Slice(t.Slice); s != nil && !slices.ContainsFunc(struck, func(a events.Affected) bool { return a.Name == s.Name }) {
			struck = append(struck, s.affected())
		}
		if t.Text != "" && !slices.Contains(texts, t.Text) {
			texts = append(texts, t.Text)
		}
	}
	if n := len(texts); n > maxHappened {
		texts = append(texts[:maxHappened/2:maxHappened/2], texts[n-maxHappened/2:]...)
	}
	return struck, texts
}

// lastAt is when the incident ended, or when its last line was written.
func (in Incident) lastAt() time.Time {
	if n := len(in.Timeline); in.Closed.IsZero() && n > 0 {
		return in.Timeline[n-1].At
	}
	return cmp.Or(in.Closed, in.Opened)
}

// chips are those that stand still in an incident: of every slice, as it was at its loss.
func (w Workload) chips(in Incident) (n int) {
	for _, s := range in.Cost.Slices {
		n += s.Chips
	}
	if in.Cost.Slices == nil {
		for _, s := range w.Slices {
			n += s.Chips
		}
	}
	return n
}

// idleChips are the usable chips that do nothing once an incident is left to a person.
func (w Workload) idleChips() (n int) {
	for _, s := range w.Slices {
		if s.Condition == evidence.Ready && !s.Released {
			n += s.Chips
		}
	}
	return n
}

// waitID names the word of a long wait that people heard last. Each such word has its own name, and no incident has one like it.
func (w Workload) waitID() string {
	return "wait-" + events.ID(w.ID, "wait", w.WaitTold.UTC().Format(time.RFC3339))[:8]
}

// WaitUpdate is what people hear of a long wait in quiet times: of the one of which they were told last, if that word has this name and the wait
// still lasts.
func (w Workload) WaitUpdate(id string) (u events.IncidentUpdated, waits bool) {
	all := slices.DeleteFunc(slices.Clone(w.Slices), func(s Slice) bool { return s.WaitingSince.IsZero() })
	slices.SortStableFunc(all, func(a, b Slice) int { return a.WaitingSince.Compare(b.WaitingSince) })
	if w.WaitTold.IsZero() || id != w.waitID() || len(all) == 0 || w.Incident != nil {
		return u, false
	}
	since := all[0].WaitingSince
	u = events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: id, Number: 1, At: w.WaitTold.UTC(), Opened: since, Waiting: since, Policy: w.Label,
		Phase: string(PhaseWaits), Chips: w.chips(Incident{}), Doing: "nothing: Pitstop waits with it, and makes no call", Advice: "look at it: " + all[0].Look,
	}
	const most = maxHappened - 1
	for _, s := range all[:min(most, len(all))] {
		u.Slices = append(u.Slices, s.affected())
		u.Happened = append(u.Happened, s.Noun+" "+s.Name+" is "+s.State)
	}
	if more := len(all) - most; more > 0 {
		u.Happened = append(u.Happened, "and "+events.Number(int64(more))+" more of its slices wait")
	}
	return u, true
}

func (s Slice) affected() events.Affected {
	return events.Affected{Name: s.Name, Zone: s.Zone, Accelerator: s.Accelerator, Spot: s.Capacity == events.Spot}
}
