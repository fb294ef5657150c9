package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/view"
)

// approved records a person's yes to the question that is open.
func (f *facts) approved(e evidence.Approved) bool {
	in := f.w.Incident
	if in == nil || in.ID != e.Incident || in.Status.Asks == "" || in.Status.Asks != e.Action || in.isGranted() {
		return false
	}
	for _, q := range in.Status.Questions {
		if !slices.Contains(in.Approved, q) {
			in.Approved = append(in.Approved, q)
		}
	}
	f.keepWord(evidence.VerbApprove, e.Word, f.w.asks(e.Action, in.Status.Questions).String())
	return true
}

// cancelled records that a person handles the incident from now on. They let announced maintenance come, unless its window moves.
func (f *facts) cancelled(e evidence.Cancelled) bool {
	in := f.w.Incident
	if in == nil || in.ID != e.Incident || in.Ending != nil {
		return false
	}
	f.keepWord(evidence.VerbCancel, e.Word, "")
	remember(f.w, Told{Of: ToldFailed, At: f.now})
	switch label := in.Status.Label; {
	case in.isPrepared() && (label == view.Approving || label == view.Watching), label == view.Saving, label == view.Maintaining, label == view.Window:
		for i := range f.w.Slices {
			if s := &f.w.Slices[i]; s.Notice.stands() || !s.Ends.IsZero() {
				s.Notice.Declined = f.now
			}
		}
	}
	return true
}

// retried records that an obstacle is removed: what was refused is asked for again, and what was given up is tried again.
func (f *facts) retried(e evidence.Retried) bool {
	said := func(o view.Spoken) bool { return o.Verb == evidence.VerbRetry && o.Word == e.Word && o.At.Equal(f.now) }
	if f.w.NothingToRetry(f.now) != "" || slices.ContainsFunc(f.w.Orders, said) {
		return false
	}
	f.keepWord(evidence.VerbRetry, e.Word, "")
	f.w.Told = slices.DeleteFunc(f.w.Told, func(t Told) bool { return t.Of == ToldEnd || t.Of == ToldAbuse || t.Of == ToldFailed })
	for i := range f.w.Slices { // no reading of what is not usable takes a suspicion back
		if s := &f.w.Slices[i]; s.Suspected && s.Condition != evidence.Ready {
			s.Suspected, s.SuspectedAt = false, f.now
		}
	}
	if f.w.Incident != nil {
		f.retryCalls()
		return true
	}
	for i := range f.w.Charges {
		f.w.Charges[i].Void = true
	}
	f.suspicion = f.toRetry(e.By + " says that it may be tried again")
	return true
}

// toRetry is the trouble that a person wants to be tried again: of what cannot be used, else of what waits to be let in, else of the training.
func (f *facts) toRetry(text string) *Trouble {
	t := Trouble{Cause: events.CauseCrash, At: f.now, Text: text}
	for i := range f.w.Slices {
		s := &f.w.Slices[i]
		broken := s.Condition != evidence.Ready && s.Condition != evidence.Creating
		switch {
		case !s.Released.IsZero() || !s.Incarnation.Known() || !broken && (f.w.admits(s) || t.Slice != ""):
			continue
		case broken:
			t.Text += ": " + f.w.Words().Slice + " " + s.Name + " is " + s.State
		}
		if t.Cause, t.Slice, t.Life = events.CauseUnknown, s.Name, s.Incarnation.ID; broken {
			break
		}
	}
	return &t
}

// paused records a pause, or its end.
func (f *facts) paused(e evidence.Paused) bool {
	if e.Lift {
		if f.w.Pause == nil {
			return false
		}
		f.w.Pause = nil
		f.keepWord(evidence.VerbResume, e.Word, "")
		return true
	}
	next := &evidence.Pause{By: e.By, Why: e.Why, At: f.now, Until: e.Until}
	if p := f.w.Pause; p != nil && p.By == next.By && p.Why == next.Why && p.Until.Equal(next.Until) {
		return false
	}
	f.w.Pause = next
	until := ""
	if !e.Until.IsZero() {
		until = "until " + e.Until.UTC().Format(time.RFC3339)
	}
	f.keepWord(evidence.VerbPause, e.Word, until)
	return true
}

// ordered records an order that did not go through the document.
func (f *facts) ordered(e evidence.Ordered) bool {
	f.keepWord(e.Verb, e.Word, e.Text)
	return true
}

func (f *facts) keepWord(verb evidence.Verb, by evidence.Word, text string) {
	o := view.Spoken{Word: by, At: f.now, Verb: verb, Text: text}
	if f.w.Incident != nil {
		o.Incident = f.w.Incident.ID
	}
	f.w.Orders = append(f.w.Orders, o)
	if n := len(f.w.Orders); n > bounds.MaxOrders {
		f.w.Orders = f.w.Orders[n-bounds.MaxOrders:]
	}
}
