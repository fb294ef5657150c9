package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident/story"
)

// whyNothing says why nothing is done about a slot that cannot be used; nothing where it serves the training, or where something is under way: then
// the story of the open incident says what.
func (d *diagnosis) whyNothing(s *slot) story.Reason {
	switch left := d.leftAlone(s); {
	case s.is(serving) || s.create != nil || s.delete != nil || d.w.effect(events.ActionStart, s.Name) != nil:
		return story.Reason{}
	case d.knowsAbuse():
		return story.Abused.With(d.suspected()[0].Name)
	case d.isFinished():
		return story.TrainingDone.With()
	case !left.IsZero():
		return left
	}
	return d.waitsUntil(s)
}

// waitsUntil says until when a slot that cannot be used is waited for: to be healed in an open incident, or to pass by itself before one opens.
func (d *diagnosis) waitsUntil(s *slot) story.Reason {
	switch at := d.opensAt(s); {
	case d.in.isWatched():
		return story.AllowsNothing.With()
	case d.in != nil && d.now.Before(s.healsBy):
		return story.HealsUntil.With(s.Name, s.State, d.w.Words().Healer, s.healsBy.UTC().Format(time.RFC3339))
	case d.in == nil && !at.IsZero():
		return story.OpensAt.With(s.Name, s.State, at.UTC().Format(time.RFC3339))
	}
	return story.Reason{}
}
