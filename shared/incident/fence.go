package incident

import (
	"errors"
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// ErrRefused is the reason why a request must not be carried out. The request is acknowledged: Pitstop repeats the requests that it
// still wants.
var ErrRefused = errors.New("refused")

// RefusedError says why a request must not be carried out.
type RefusedError struct {
	Code reason.Code
	Text string
}

func (r *RefusedError) Error() string { return "refused: " + r.Text }

// Is makes every refusal match ErrRefused.
func (r *RefusedError) Is(target error) bool { return target == ErrRefused }

func refuse(c reason.Code, format string, args ...any) error {
	return &RefusedError{Code: c, Text: fmt.Sprintf(format, args...)}
}

// Stage says how far an effect has come.
func (x *Effect) Stage() view.Stage {
	switch {
	case !x.Retry.IsZero():
		return view.StageRefused
	case x.Operation != "":
		return view.StageAccepted
	case !x.Answered.IsZero():
		return view.StageDone
	case !x.Begun.IsZero():
		return view.StageBegun
	}
	return view.StageWanted
}

// UnderWay reports whether an instance has begun a call that must not be made twice, and may still be about to make it.
func (x *Effect) UnderWay(now time.Time) bool {
	return x.exclusive() && !x.Begun.IsZero() && x.Answered.IsZero() && x.Retry.IsZero() && now.Sub(x.Begun) < bounds.CallFor
}

// TooLate reports whether the instance that began such a call must not make it any more.
func (x *Effect) TooLate(now time.Time) bool {
	return x.exclusive() && now.Sub(x.Begun) > bounds.CallWithin
}

// Fence returns the effect that a pointer names; it may have been begun before. It refuses a pointer whose incident is not open, whose
// epoch is not the current one, or whose effect is not wanted now.
func (w *Workload) Fence(p events.Pointer, now time.Time) (Effect, error) {
	switch {
	case w.Incident == nil:
		return Effect{}, w.refuseInPeace(p.Incident)
	case w.Incident.ID != p.Incident:
		return Effect{}, refuse(reason.CodeOtherIncident, "the open incident is %s, not %s", w.Incident.ID, p.Incident)
	case w.Epoch != p.Epoch:
		return Effect{}, refuse(reason.CodeStaleEpoch, "the epoch is %d, not %d", w.Epoch, p.Epoch)
	}
	x := w.effect(p.Action, p.Slice)
	switch {
	case x == nil || x.Slice != p.Slice || x.Epoch != p.Epoch || w.Incident.unwanted(x):
		return Effect{}, refuse(reason.CodeNotWanted, "nothing waits for %s any more", p.Action)
	case now.After(x.expires()):
		return Effect{}, refuse(reason.CodeExpired, "it expired at %s", x.expires().UTC().Format(time.RFC3339))
	case !x.Answered.IsZero():
		return Effect{}, refuse(reason.CodeAnswered, "%s was carried out already", p.Action)
	case !x.Retry.IsZero():
		return Effect{}, refuse(reason.CodeNotDue, "%s is tried again at %s", p.Action, x.Retry.UTC().Format(time.RFC3339))
	}
	return *x, w.fenceSlices(x)
}

// refuseInPeace says that no incident is open, and how the one ended that a pointer names.
func (w *Workload) refuseInPeace(incident string) error {
	if c := w.Closed; c != nil && c.ID == incident {
		return refuse(reason.CodeNoIncident, "the incident %s has ended: %s", c.ID, c.Ending.Reason)
	}
	return refuse(reason.CodeNoIncident, "no incident is open on %s", w.ID)
}

// unwanted reports whether an effect is kept only because its call may have been made: what is ending creates nothing.
func (in *Incident) unwanted(x *Effect) bool {
	return in.Ending != nil && x.Action == events.ActionCreate
}

// fenceSlices is the part of the fence that is about the slices of an effect.
func (w *Workload) fenceSlices(x *Effect) error {
	for _, name := range x.all() {
		if name != "" && w.Slice(name) == nil {
			return refuse(reason.CodeNoSlice, "%s has no slice %s", w.ID, name)
		}
	}
	if l := w.life(x.Slice); l != nil && x.Life.Known() && w.lifeOf(x) == nil {
		return refuse(reason.CodeOtherLife, "%s lives as %v, not as %v", x.Slice, l.Incarnation, x.Life)
	}
	return nil
}

// expires is when a request for an effect is refused, even with a valid fence.
func (x *Effect) expires() time.Time { return x.Sent.Add(bounds.RequestFor) }
