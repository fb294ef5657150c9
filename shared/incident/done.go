package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// isDone reports whether the facts show that an effect has done its work.
func (w *Workload) isDone(x *Effect) bool {
	all := func(so func(l *Life) bool) bool {
		return !slices.ContainsFunc(x.all(), func(name string) bool { l := w.life(name); return l != nil && !so(l) })
	}
	switch x.Action {
	case events.ActionDelete:
		if l := w.lifeOf(x); l != nil && l != w.life(x.Slice) {
			return !l.exists() || l.Zone == w.life(x.Slice).Zone // another life has its name there
		}
		return all(func(l *Life) bool { return !l.exists() && !l.isOurs() })
	case events.ActionCreate: // what came, and is lost again, is another's
		return !all(func(l *Life) bool { return !l.isLostSince(x.Begun) }) || all(func(l *Life) bool { return l.Maker == w.Incident.ID && arrived(l.Condition) })
	case events.ActionStart:
		return all(func(l *Life) bool { return l.Condition == evidence.Ready })
	default:
	}
	return false
}

// isLostSince reports whether a life was read as lost after a time that is known.
func (l *Life) isLostSince(t time.Time) bool {
	return !t.IsZero() && l.Condition == evidence.Lost && l.Since.After(t)
}

// arrived reports whether a creation has ended with something that is there.
func arrived(c evidence.Condition) bool {
	return c == evidence.Ready || c == evidence.Stopped || c == evidence.Lost
}
