package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// answered records the answer to a call. The record of calls takes it even when nothing waits for it any more.
func (f *facts) answered(e evidence.Answered) bool {
	news := f.callAnswered(e)
	x := f.asked(e.Request)
	switch {
	case x == nil:
		return news
	case e.NoCall == evidence.Unbegun && x.UnderWay(f.now): // another instance makes the call, and answers
		return news
	case e.Failure != nil:
		if e.NoCall != evidence.Unbegun && e.Failure.Class != reason.Transient {
			f.w.Lease.unmade(x)
		}
		f.fails(x, *e.Failure)
		return true
	}
	x.Answered, x.Operation = f.now, e.Operation
	if e.Operation == "" { // else its end shows whether it has failed once more
		x.Failures, x.Last, x.Barred = 0, Failure{}, time.Time{}
	}
	f.accepted(x)
	return true
}

// accepted records what is known as soon as a call is accepted: that a lease was written, or that maintenance starts.
func (f *facts) accepted(x *Effect) {
	switch x.Action {
	case events.ActionAdmit, events.ActionRestart:
		f.w.Lease.made(x.Lease, f.now)
		for _, a := range x.Lease.Lives {
			if l := f.w.life(a.Slice); l != nil && l.Incarnation.Same(a.Incarnation) {
				l.Maker = ""
			}
		}
		f.settle(x)
	case events.ActionMaintain:
		for _, name := range append([]string{x.Slice}, f.w.group(x.Slice)...) {
			f.w.life(name).Notice.Started = f.now
		}
	default:
	}
}

// ended records the end of one of the provider's operations. Success proves nothing by itself: a reading does.
func (f *facts) ended(e evidence.Ended) bool {
	i := slices.IndexFunc(f.w.Effects, func(x Effect) bool { return e.Operation != "" && x.Operation == e.Operation })
	if i < 0 {
		return f.operationFailed(e)
	}
	x := &f.w.Effects[i]
	x.Operation = ""
	if e.Failure != nil {
		f.operationFailed(e)
		f.fails(x, *e.Failure)
	}
	return true
}

// fails records a failure. Which place is asked next, and when it is for a person, the rules say.
func (f *facts) fails(x *Effect, failure evidence.Failure) {
	if c := failure.Class; f.moves(x) && (c == reason.Invalid || c == reason.NotFound) {
		failure.Class, failure.Code = reason.CannotMove, "" // the order was valid in its own zone: this zone lacks something
	}
	begun, unknown := x.Begun, failure.Class == reason.Transient && x.Answered.IsZero()
	x.Last, x.Answered = Failure{Class: failure.Class, Code: failure.Reason(), Text: failure.Message}, time.Time{}
	switch {
	case x.Action == events.ActionDelete && failure.Class == reason.NotInState:
		x.Barred = cmp.Or(x.Barred, f.now) // a time limit ends the wait for another state, not a number of tries
		x.again(f.now.Add(bounds.BarredEvery))
	case x.Action == events.ActionCreate && isOfPlace(failure.Class):
		f.refused(x, failure)
	default:
		x.Failures++
		x.again(f.now.Add(backoff(x.Failures)))
	}
	if unknown {
		x.Begun = begun // it may have been made
	}
	f.cannot(x)
}

// cannot records what a failure says beyond its call: that the lease is implausible, that an order cannot be withdrawn, or that no request for a save
// can be delivered.
func (f *facts) cannot(x *Effect) {
	if x.Action == events.ActionDelete && x.refusedForGood() {
		for _, name := range x.all() {
			if l := f.w.life(name); !l.exists() {
				l.Unwithdrawn = l.Ordered
			}
		}
	}
	if x.Last.Code == reason.CodeLeaseDoubted {
		f.w.Lease.Doubted = f.now
	}
	if in := f.w.Incident; in != nil && x.Action == events.ActionSave && x.refusedForGood() {
		in.Save.Refused = "the request could not be delivered: " + x.Last.Text
	}
}

// refused records that a place refused to give a slice. The next place is asked at once.
func (f *facts) refused(x *Effect, failure evidence.Failure) {
	if in := f.w.Incident; in != nil {
		r := view.Refusal{
			Place: x.Place, Since: f.now, At: f.now, Until: f.now.Add(f.againIn(x, failure.Class)), Tries: 1, Never: isForGood(failure.Class),
			Text: failure.Message, Code: failure.Reason(),
		}
		if s := f.w.Slice(x.Slice); !s.Ordered.IsZero() { // it waited in a queue
			r.Since = later(s.Ordered, in.Opened)
		}
		if last := in.refusal(x.Place); last.Tries > 0 && !last.At.Before(f.w.wantedSince(x.Action, f.now)) { // else it is another wait
			r.Since, r.Tries = last.Since, last.Tries+1
		}
		in.Refusals = append(slices.DeleteFunc(in.Refusals, func(o view.Refusal) bool { return o.Place == r.Place }), r)
	}
	for _, name := range x.all() { // what has shown for a moment was not made after all
		s := f.w.Slice(name)
		if s.Maker == f.w.Incident.ID {
			s.EndedBy, s.Condition, s.State, s.Since = f.w.Incident.ID, evidence.Gone, "gone", f.now
		}
		s.Ordered, s.Granted = time.Time{}, time.Time{}
	}
	x.Place, x.Failures, x.Last, x.Answered = view.Place{}, 0, Failure{}, time.Time{}
	x.again(f.now)
}

// moves reports whether a creation asks another place than the one in which the specification of the slice was read.
func (f *facts) moves(x *Effect) bool {
	s := f.w.Slice(x.Slice)
	return x.Action == events.ActionCreate && s != nil && x.Place != s.stands()
}

// isOfPlace reports whether another place may do what this one refuses.
func isOfPlace(c reason.FailureClass) bool {
	return isForGood(c) || slices.Contains([]reason.FailureClass{reason.Stockout, reason.Quota, reason.ReservationFull}, c)
}

// isForGood reports whether a place that refuses so never gives this slice.
func isForGood(c reason.FailureClass) bool {
	return slices.Contains([]reason.FailureClass{reason.WrongZone, reason.NoQuota, reason.CannotMove, reason.OtherRegion}, c)
}

// againIn is after what time a place that refused so is asked again: one to two minutes where capacity is missing. The spread follows from
// the effect and not from chance, so that the same evidence makes the same decision.
func (f *facts) againIn(x *Effect, c reason.FailureClass) time.Duration {
	if c == reason.Quota {
		return bounds.QuotaEvery
	}
	h := events.ID(f.w.ID, f.w.Incident.ID, x.Slice, x.Place.String(), events.Number(int64(x.Attempt)))
	var n int
	fmt.Sscanf(h[:4], "%x", &n) //nolint:errcheck // four hexadecimal digits of a hash
	return bounds.CapacityEvery + bounds.CapacityEvery*time.Duration(n)/0x10000
}

// backoff is the wait after so many failures in a row.
func backoff(failures int) time.Duration {
	const longest = 10 * time.Minute
	return min(time.Minute<<min(failures-1, 4), longest)
}

// heldMore is the time within which a held request is sent again after its hold ends: the next tick sends it.
const heldMore = 2 * time.Minute

// held records that a function may not act now. Waiting is no failure, and no deadline runs in the meantime.
func (f *facts) held(e evidence.Held) bool {
	news := f.notCalled(e)
	x := f.asked(e.Request)
	if x == nil {
		return news
	}
	until := f.now.Add(time.Minute)
	if e.Until.After(until) && e.Code != reason.CodePaused { // a person may lift a pause at any time
		until = e.Until
	}
	begun := x.Begun
	x.again(until)
	f.open(e.Request, func(*view.Call) { x.Begun = begun }) // nobody knows yet whether that call was made
	if e.Begun {
		f.w.Lease.unmade(x)
	}
	f.w.hold(Hold{From: f.now, Until: until.Add(heldMore), Code: e.Code, Why: e.Why}, bounds.RequestFor) // met again soon, it has lasted since
	return true
}

// retryCalls asks again at once for what has failed, and asks every place again: a person says that the obstacle is removed.
func (f *facts) retryCalls() {
	f.w.Incident.Refusals = nil
	for i := range f.w.Effects {
		if x := &f.w.Effects[i]; !x.Retry.IsZero() || x.Failures > 0 {
			x.Failures, x.Last = 0, Failure{}
			if !x.Retry.IsZero() {
				x.Retry = f.now
			}
		}
	}
}

// settle forgets an effect that is done.
func (f *facts) settle(x *Effect) {
	action, slice := x.Action, x.Slice
	f.w.Effects = slices.DeleteFunc(f.w.Effects, func(o Effect) bool { return o.Action == action && o.Slice == slice })
}
