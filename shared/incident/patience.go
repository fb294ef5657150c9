package incident

import (
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// patience is how long calls of a kind may take, from when the first of them was wanted, and after how many failures in a row one is left to
// a person; zero where its time alone ends it. How long a single request may wait is in bounds: RequestFor, AnswerFor, OperationFor.
var patience = map[events.Action]struct {
	span     time.Duration
	failures int
}{
	events.ActionSave:     {bounds.SaveFor, 0},
	events.ActionVerify:   {bounds.CheckFor, 0},
	events.ActionHear:     {bounds.HearFor, 0},
	events.ActionMaintain: {bounds.MaintainFor, 0},
	events.ActionAdmit:    {bounds.AdmitFor, bounds.MaxFailures},
	events.ActionRestart:  {bounds.RestartFor, bounds.MaxFailures},
	events.ActionStart:    {bounds.StartFor, bounds.MaxFailures},
	events.ActionDelete:   {bounds.RemoveFor, bounds.MaxFailures},
	events.ActionCreate:   {bounds.RecreateFor, bounds.MaxFailures},
}

// callBy is until when calls of a kind have to be done. Training is let in once every slice can be used.
func (d *diagnosis) callBy(a events.Action) time.Time {
	since := d.wantedSince(a)
	if a == events.ActionAdmit {
		for i := range d.slots {
			since = later(since, d.slots[i].usable())
		}
	}
	by := d.by(since, patience[a].span)
	if a == events.ActionDelete {
		return later(by, d.barredBy())
	}
	return by
}

// barredBy is until when deletions wait that the state of what is to be deleted forbids, or that may end every moment; zero where there are none.
func (d *diagnosis) barredBy() (by time.Time) {
	for i := range d.w.Effects {
		switch x := &d.w.Effects[i]; {
		case x.Action != events.ActionDelete || x.Dropped():
		case !x.Barred.IsZero():
			by = later(by, d.by(x.Barred, bounds.BarredFor))
		case !x.Begun.IsZero() && x.Retry.IsZero():
			by = later(by, d.by(x.Begun, bounds.AnswerFor))
		}
	}
	return by
}

// refusedForGood reports whether the provider has refused a call in a way that another try does not change.
func (x *Effect) refusedForGood() bool {
	return x.Last.Class == reason.Permission || x.Last.Class == reason.Invalid
}

// leavesToPerson is the end of the incident where a call that a step wants has failed for good, or too often. While somebody may be making another
// call, the step goes on as it is: an end that was put off would drop the call that failed, and forget why.
func (d *diagnosis) leavesToPerson(s *Step) *Step {
	if d.underWay() != nil {
		return s
	}
	for _, w := range s.Wants {
		x := d.effect(w)
		if x == nil || patience[w.Action].failures == 0 {
			continue
		}
		what, last, failures := string(w.Action), x.Last, x.Failures
		if why := d.w.unanswered(x, d.now); why != "" {
			last, failures = Failure{Code: reason.CodeUnanswered, Text: why}, failures+1
		}
		switch {
		case last.Code == reason.CodeLeaseDoubted && !d.w.OverrulesLease():
			return escalate(last.Code, story.LeaseRefused.With(last.Text), story.ReplaceLease.With(d.w.Name))
		case last.Code == reason.CodeForeign:
			return escalate(last.Code, story.LeaseRefused.With(last.Text), story.SettleDirectory.With(d.w.Directory, d.w.Name))
		case last.Class == reason.Permission:
			return escalate(last.Code, story.NotPermitted.With(what, last.Text), story.GrantIt.With(d.w.Name))
		case last.Class == reason.Invalid:
			return escalate(last.Code, story.RefusedAsWrong.With(what, last.Text), story.MendSpec.With())
		case failures < patience[w.Action].failures:
		case last.Code == reason.CodeUnanswered:
			return escalate(last.Code, story.FailedOften.With(what, strconv.Itoa(failures), last.Text), story.LookAtFunction.With(d.w.Name))
		default:
			return escalate(reason.CodeRetries, story.FailedOften.With(what, strconv.Itoa(failures), last.Text), story.LookAtMessage.With(d.w.Name))
		}
	}
	return s
}

// waitsForCall puts an end for a person off while somebody may be making a call: who has begun it cannot see this decision.
func (d *diagnosis) waitsForCall(s *Step) *Step {
	if x := d.underWay(); x != nil && s.End != nil && s.End.Outcome == view.Escalated {
		return wait(d.in.Status.Label, s.Why, d.by(x.Begun, bounds.CallFor))
	}
	return s
}

// underWay is a call that somebody may be making now; nil for none.
func (d *diagnosis) underWay() *Effect {
	if i := slices.IndexFunc(d.w.Effects, func(x Effect) bool { return x.UnderWay(d.now) }); i >= 0 {
		return &d.w.Effects[i]
	}
	return nil
}

// heldOut is the end of an incident that was held back for as long as that may last, and still is; nil for any other.
func (d *diagnosis) heldOut() *Step {
	until := d.heldBy()
	if until.IsZero() || !d.over(until) {
		return nil
	}
	last := d.w.Holds[len(d.w.Holds)-1]
	return escalate(last.Code, story.HeldTooLong.With(events.Span(bounds.HeldForMost), last.Why), story.EndHold.With(d.w.Name))
}

// barring says which state forbids a deletion; empty where none does.
func (d *diagnosis) barring() string {
	for i := range d.w.Effects {
		if x := &d.w.Effects[i]; !x.Barred.IsZero() && !x.Dropped() {
			return ": it cannot be deleted, " + x.Last.Text
		}
	}
	return ""
}
