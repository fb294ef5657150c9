package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Assumed is a workload of one slice that trains, with the slice as a reading describes it. Saved is when its last checkpoint was
// complete; zero for none.
func Assumed(project, provider string, r evidence.Read, saved time.Time) Workload {
	w := New(project, r.Slice, provider)
	life := newLife(r)
	life.Condition, life.State, life.Spec = evidence.Ready, "READY", "its own"
	if !life.Incarnation.Known() {
		life.Incarnation = events.Incarnation{Zone: r.Zone, ID: "the one that is there"}
	}
	w.Slices, w.Directory = []Slot{{Name: r.Slice, Life: life}}, r.Directory
	w.Training.Seen, w.Training.Saved.At = time.Unix(0, 0), saved
	return w
}

// IfRead is the plan for the case that the API showed a slice in another condition now, if the policy allowed everything.
func (w Workload) IfRead(p policy.Policy, slice string, c evidence.Condition, now time.Time) view.Plan {
	return w.IfAllowed(p, w.outlook(p, now).reading(w.Slice(slice), c), now)
}

// isForbidden reports whether an incident ends because its policy allows nothing, or not the next call.
func (e *End) isForbidden() bool {
	return e.Code == reason.CodePolicyNo || e.Code == reason.CodeWatchOnly && e.By == ""
}

// keepPlan keeps with an incident that its policy holds back what would follow if everything were allowed, and reports whether that has changed.
// Places that were compared with the order stay compared.
func (t *turn) keepPlan() bool {
	o := t.w.outlook(permitting(t.p), t.now)
	o.agrees, o.w.Incident.Ceiling = true, policy.Everything()
	o.tick() // what is not wanted yet is wanted now
	plan, in := o.plan(), t.w.Incident
	plan.Calls = append(in.prepared(plan.Calls), plan.Calls...)
	same := func(a, b view.Planned) bool {
		return a.Method == b.Method && a.Resource == b.Resource && a.When == b.When
	}
	would := story.Reason{}
	switch n := len(plan.Decisions); {
	case plan.Calls != nil:
	case plan.Outcome == view.Escalated:
		would = story.Nothing.With(plan.Reason)
	case n > 0:
		would = story.Said.With(plan.Decisions[n-1].Text)
	}
	if slices.EqualFunc(in.Planned, plan.Calls, same) && in.Would.Equal(would) {
		return false
	}
	in.Planned, in.Would = plan.Calls, would
	return true
}

// prepared are the calls of a kept plan that would have been made by now and that a new plan lacks: they come before what they prepare for.
func (in *Incident) prepared(calls []view.Planned) (all []view.Planned) {
	for _, c := range in.Planned {
		again := func(o view.Planned) bool { return o.Method == c.Method && o.Resource == c.Resource }
		if (c.Action == events.ActionSave || c.Action == events.ActionMaintain) && !slices.ContainsFunc(calls, again) {
			all = append(all, c)
		}
	}
	return all
}

// Fitted says how a slice's order fits the places that would be asked for it. No decision rests on it.
type Fitted struct {
	evidence.Origin
	Slice string
	Zones []view.ZoneFit
}

// Unfitted are the places in which a slice would be created and that were not yet compared with its order. It returns them for the first
// such slice that but does not list.
func (in *Incident) Unfitted(but ...string) (slice string, places []view.Place) {
	for _, c := range in.Planned {
		if slices.Contains(but, c.Slice) {
			continue
		}
		for _, z := range c.Zones {
			if !z.Checked {
				slice, places = c.Slice, append(places, z.Place)
			}
		}
		if places != nil {
			return slice, places
		}
	}
	return "", nil
}

// fitted records how an order fits places. That may come right after the incident's end.
func (f *facts) fitted(e Fitted) bool {
	in := f.w.Incident
	if in == nil {
		in = f.w.Closed
	}
	if in == nil {
		return false
	}
	news := false
	for i := range in.Planned {
		c := &in.Planned[i]
		if c.Slice != e.Slice {
			continue
		}
		c.Zones = slices.Clone(c.Zones)
		for j := range c.Zones {
			z := &c.Zones[j]
			at := slices.IndexFunc(e.Zones, func(o view.ZoneFit) bool { return o.Place == z.Place })
			if at < 0 || z.Checked {
				continue
			}
			z.Checked, news = true, true
			if e.Zones[at].Code != "" {
				z.Code, z.Text = e.Zones[at].Code, e.Zones[at].Text
			}
		}
	}
	return news
}

// isWatched reports whether an incident is open that Pitstop may only watch.
func (in *Incident) isWatched() bool { return in != nil && in.Status.Label == view.Watching }

// SaveDue is when the save before announced maintenance is due for a training that has written so many checkpoints with that time between
// them; zero for never.
func SaveDue(p policy.Policy, r evidence.Read, notice events.Notice, from evidence.Origin, every time.Duration, checkpoints int) time.Time {
	w := Assumed("", cloudTPU, r, time.Time{})
	w.Training.Seen, w.Training.GapsBetween = from.Time, slices.Repeat([]int64{int64(every.Seconds())}, checkpoints)
	noticed, _, _ := Advance(p, w, evidence.Noticed{Origin: from, Slice: r.Slice, Incarnation: r.Incarnation, Notice: notice}, from.Time)
	if n := noticed.Notice(r.Slice); n != nil {
		return n.Due
	}
	return time.Time{}
}
