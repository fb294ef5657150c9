package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// shownSave is how the save of an incident stands: its result is a question of the facts.
func (w *Workload) shownSave(in Incident, now time.Time) view.Save {
	s, at := in.Save, cmp.Or(in.Closed, now)
	v := view.Save{ID: in.SaveID(), Requested: s.Asked, Verified: !s.Found.At.IsZero()}
	switch goesOn := in.Closed.IsZero() && in.Status.Label == view.Saving && at.Before(s.By); {
	case !in.isPrepared() || !v.Verified && goesOn:
	case v.Verified && s.Found.At.After(s.By):
		v.Result = reason.SaveLate
	case v.Verified:
		v.Result = reason.SaveVerified
	default:
		result, why := w.failedSave(in, at)
		v.Result, v.Failed = result, why.String()
	}
	return v
}

// failedSave is why an incident has no verified save at a time.
func (w *Workload) failedSave(in Incident, at time.Time) (reason.SaveResult, story.Reason) {
	s := in.Save
	if s.Asked.IsZero() {
		return w.unaskedSave(in)
	}
	switch {
	case !s.Acked.IsZero():
		return reason.SaveIncomplete, story.SaveUnverified.With(s.Refused)
	case s.Refused != "" && in.isDelivered():
		return reason.SaveRefused, story.SaveRefused.With(s.Refused)
	case s.Refused == "" && at.Before(s.By):
		return reason.SaveOvertaken, story.Reason{}
	case in.isDelivered():
		return reason.SaveUnanswered, story.SaveUnanswered.With()
	}
	why := in.Save.Refused
	if i := slices.IndexFunc(w.Effects, func(x Effect) bool { return x.Action == events.ActionSave }); why == "" && i >= 0 && in.ID == w.Incident.ID {
		why = w.Effects[i].Last.Text
	}
	return reason.SaveUndelivered, story.SaveUndelivered.With(why)
}

// unaskedSave is why an incident has asked for no save; nothing where there is time, or where there was none.
func (w *Workload) unaskedSave(in Incident) (reason.SaveResult, story.Reason) {
	switch {
	case w.Training.Seen.IsZero():
		return reason.SaveUnheard, story.NobodyToSave.With()
	case in.Ceiling.RequestCheckpoint == policy.No:
		return reason.SaveForbidden, story.SwitchOff.With(string(policy.RequestCheckpoint))
	}
	return "", story.Reason{}
}

// isDelivered reports whether the request for the save is known to have reached the machines.
func (in *Incident) isDelivered() bool {
	return slices.ContainsFunc(in.Calls, func(c view.Call) bool {
		return c.Action == events.ActionSave && !c.At.Before(in.Save.Asked) && !c.Answered.IsZero() && c.Code == ""
	})
}
