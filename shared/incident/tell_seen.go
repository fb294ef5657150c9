package incident

import (
	"cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// seen tells the evidence that was news to the open incident.
func (t *teller) seen(e evidence.Evidence) {
	if a, is := e.(evidence.Answered); is {
		defer t.noted(a.Note)
	}
	if t.w.isTry(e, t.now) {
		return
	}
	t.saw(whatHappened(e))
	switch e := e.(type) {
	case evidence.Read:
		t.sawReading(e)
	case evidence.VerdictRead:
		t.came(e.Text, e.Failure)
	case evidence.Checked:
		t.found(e)
	case evidence.Answered:
		t.came(e.Text, e.Failure)
	case evidence.Ended:
		if e.Failure != nil {
			t.came(story.CallFailed.With(e.Operation).String(), e.Failure)
		}
	case evidence.Held:
		t.held(e.Why, e.Code)
	}
	t.ordered(e)
}

// whatHappened is what evidence says of the machines or of the training; empty for any other.
func whatHappened(e evidence.Evidence) string {
	switch e := e.(type) {
	case evidence.Interrupted:
		return e.Text
	case evidence.Back:
		return e.Text
	case evidence.Noticed:
		return e.Text
	case evidence.Called:
		return cmp.Or(e.Method, string(e.Act)) + " of " + e.Slice + " by " + e.Principal
	case evidence.Reported:
		return e.Report.Describe()
	}
	return ""
}

// held tells why calls are held back; once, if nothing else has happened since.
func (t *teller) held(why string, c reason.Code) {
	l, known := Line{Kind: view.LineDecided, What: story.Hold.With(), Why: story.Said.With(why), Code: c}, t.w.Incident.Lines
	if n := len(known); n == 0 || !known[n-1].What.Equal(l.What) || !known[n-1].Why.Equal(l.Why) {
		t.line(l)
	}
}

// ordered tells a person's order.
func (t *teller) ordered(e evidence.Evidence) {
	by := func(w evidence.Word, verb evidence.Verb, about string) {
		t.line(Line{Kind: view.LineSeen, What: story.Order.With(w.By, string(verb), about), Why: story.Said.With(w.Why)})
	}
	switch e := e.(type) {
	case evidence.Approved:
		by(e.Word, evidence.VerbApprove, t.w.asks(e.Action, t.w.Incident.Status.Questions).String())
	case evidence.Cancelled:
		by(e.Word, evidence.VerbCancel, "")
	case evidence.Retried:
		by(e.Word, evidence.VerbRetry, "")
	case evidence.Paused:
		verb := evidence.VerbPause
		if e.Lift {
			verb = evidence.VerbResume
		}
		by(e.Word, verb, "")
	case evidence.Ordered:
		by(e.Word, e.Verb, e.Text)
	}
}

func (t *teller) saw(text string) {
	if text != "" {
		t.line(Line{Kind: view.LineSeen, What: story.Said.With(text)})
	}
}

// sawReading tells a condition that was read, a life that has begun, or that a place gives what others had refused.
func (t *teller) sawReading(e evidence.Read) {
	noun, in := t.w.noun(e.Slice), t.w.Incident
	line := Line{Kind: view.LineSeen, What: story.IsNow.With(noun, cmp.Or(e.State, string(e.Condition)))}
	switch l := t.w.life(e.Slice); {
	case l == nil:
	case e.Condition == evidence.Creating && l.Incarnation.Created.After(in.Opened):
		line.What, line.Why = story.LivesIn.With(noun, e.Zone), story.IsIncarnation.With(e.Incarnation.String())
	case e.Condition == evidence.Ready && l.Maker == in.ID && l.Since.Equal(l.Read) && t.w.waitsForCapacity(t.now):
		line.What, line.Why = t.w.capacityFound(t.w.Slice(e.Slice), t.now), line.What
	}
	t.line(line)
}

func (t *teller) came(text string, failure *evidence.Failure) {
	l := Line{Kind: view.LineCame, What: story.Said.With(text)}
	if failure != nil {
		l.Why, l.Code = story.Said.With(failure.Message), failure.Reason()
	}
	again := func(o Line) bool { return failure != nil && o.What.Equal(l.What) && o.Why.Equal(l.Why) }
	if (text != "" || failure != nil) && !t.isTold(again) {
		t.line(l)
	}
}

// noted tells what else people should know of a call.
func (t *teller) noted(note string) {
	l := Line{Kind: view.LineCame, What: story.Said.With(note)}
	if note != "" && !t.isTold(func(o Line) bool { return o.What.Equal(l.What) }) {
		t.line(l)
	}
}

// found tells of the checkpoint that a look has found, or why there is none.
func (t *teller) found(e evidence.Checked) {
	if !e.Found {
		t.came(e.Text, nil)
		return
	}
	most := size(e.Bytes)
	if e.More {
		most += " or more"
	}
	t.came(story.IsComplete.With(events.Number(e.Step), most, events.Span(t.now.Sub(e.At))).String(), nil)
}

// deaf tells why the crew of a slice may not hear a request to save.
func (t *teller) deaf(slice, why string) {
	if why != "" {
		t.line(Line{Kind: view.LineSeen, What: story.MayNotHear.With(slice), Why: story.Said.With(why)})
	}
}
