package incident

import (
	"cmp"

	"pitstop.internal/events"
)

// Request is the event that requests an effect. It is made from the document alone, so that the acting function can make it again. The
// slices that the effect names must exist in the document.
func (w *Workload) Request(x Effect) events.Event {
	r := events.Request{
		Schema: events.Schema, Workload: w.ID, Incident: w.Incident.ID, Epoch: x.Epoch, Action: x.Action, Slice: x.Slice, Incarnation: x.Life,
		Attempt: x.Attempt, Expires: x.expires(), Reason: x.Why.String(),
	}
	switch x.Action {
	case events.ActionSave, events.ActionVerify, events.ActionHear, events.ActionMaintain:
		return w.checkpointRequest(r, x)
	case events.ActionAdmit, events.ActionRestart:
		return events.RecoveryRequested{Request: r, TrainingAttempt: x.Lease.Attempt, Admit: x.Lease.Lives, Directory: w.Directory}
	case events.ActionStart:
		return events.RecoveryRequested{Request: r}
	case events.ActionDelete, events.ActionCreate:
	}
	l := w.life(x.Slice)
	e := events.RecreateRequested{Request: r, Zone: x.Zone, Accelerator: x.Accelerator, Capacity: x.Capacity, Spec: l.Spec, QueuedResource: l.Group, Ordered: x.Ordered}
	for i, name := range x.With {
		m := events.Member{Slice: name, Spec: w.life(name).Spec}
		if x.Action == events.ActionDelete {
			m.Incarnation = w.life(name).Incarnation
			if len(x.Lives) == len(x.With) {
				m.Incarnation = x.Lives[i]
			}
		}
		e.With = append(e.With, m)
	}
	return e
}

// checkpointRequest is the request for a save, a look for it, a verdict, or the start of maintenance.
func (w *Workload) checkpointRequest(r events.Request, x Effect) events.CheckpointRequested {
	e := events.CheckpointRequested{Request: r, Directory: w.Directory}
	switch x.Action {
	case events.ActionSave:
		// Without a mode, a signal may kill a process that does not handle it.
		e.SaveID, e.Mode, e.By = w.Incident.SaveID(), cmp.Or(x.Mode, events.SaveNatural), x.By
	case events.ActionVerify:
		e.SaveID, e.Since = w.Incident.SaveID(), x.By
		if e.Any = w.Incident.cause() == events.CauseHang; !e.Any { // somebody may have taken it back to an older step
			e.MoreThan = max(w.Training.Saved.Step, w.Incident.Save.Step-1)
		}
	case events.ActionMaintain:
		e.Directory = ""
	default:
	}
	return e
}
