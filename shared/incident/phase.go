//go:build !heart

package incident

import (
	"time"

	"pitstop.internal/events"
)

// phase is what the open incident waits for. It follows from the known facts. Incident.Phase stores only its name, for
// people.
func (w Workload) phase() Phase {
	in := w.Incident
	switch {
	case in == nil:
		return ""
	case in.Clearing != "":
		return Clearing
	case in.OnlyWatched:
		return Watching
	case in.Asked != "":
		return Approving
	case !in.Unexplained.IsZero():
		return Looking
	}
	for _, under := range []struct {
		action events.Action
		phase  Phase
	}{
		{events.ActionDelete, PhaseDeleting},
		{events.ActionCreate, PhaseCreating},
		{events.ActionMaintain, Maintaining},
		{events.ActionAdmit, Admitting},
		{events.ActionRestart, Restarting},
		{events.ActionStart, Starting},
	} {
		if w.has(func(effect Effect) bool { return effect.Action == under.action }) {
			return under.phase
		}
	}
	switch {
	case in.Announced && in.Save.Pending:
		return Saving
	case in.Announced:
		return Window
	}
	waits := Resuming
	for i := range w.Slices {
		switch s := &w.Slices[i]; {
		case !s.isMissed():
		case s.Condition == Gone:
			return PhaseGrace
		default:
			waits = Healing
		}
	}
	return waits
}

// lasts is how long each phase lasts by itself. The other phases wait for a window, a slice, an owner or a person.
var lasts = map[Phase]time.Duration{
	Maintaining: MaintainFor, Looking: LookFor, PhaseDeleting: RemoveFor, PhaseCreating: RecreateFor, Admitting: AdmitFor, Resuming: ResumeFor,
	Restarting: RestartFor, Starting: StartFor, Watching: WatchFor, Clearing: ClearFor,
}

// backoff is the pause of an effect after its nth failure in a row, n from 1.
func backoff(n int) time.Duration {
	return min(time.Minute<<min(n-1, 4), 10*time.Minute)
}
