package incident

import (
	"cmp"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// MaxCalls bounds the record of calls: the oldest calls of the same kind are folded into one.
const MaxCalls = 100

// record keeps the calls that an effect is about to make. Calls that an earlier delivery has begun count as begun once more. So do calls
// that this delivery leaves out: their outcome is no longer known.
func (x *effects) record(effect Effect) {
	in, calls := x.w.Incident, x.w.calls(effect)
	same := func(a, b view.Call) bool {
		return a.RequestID == effect.RequestID && a.Method == b.Method && a.Resource == b.Resource
	}
	for i := range in.Calls {
		o := &in.Calls[i]
		open := o.Epoch == effect.Epoch && o.Action == effect.Action && o.Slice == effect.Slice && o.Answered.IsZero()
		if open || slices.ContainsFunc(calls, func(c view.Call) bool { return same(*o, c) }) {
			o.Again++
		}
	}
	for _, c := range calls {
		if slices.ContainsFunc(in.Calls, func(o view.Call) bool { return same(o, c) }) {
			continue
		}
		if len(in.Calls) >= MaxCalls {
			in.fold()
		}
		c.At, c.RequestID = x.now, effect.RequestID
		in.Calls = append(in.Calls, c)
	}
}

// fold makes room: it counts the oldest call that ended like an earlier one on that earlier call. Where no two are alike, the oldest call
// goes and is counted.
func (in *Incident) fold() {
	for j, c := range in.Calls {
		for i := range in.Calls[:j] {
			if o := &in.Calls[i]; alike(*o, c) {
				o.Folded += 1 + c.Folded
				o.Until = later(c.At, c.Until)
				in.Calls = slices.Delete(in.Calls, j, j+1)
				return
			}
		}
	}
	in.CallsLeftOut += 1 + in.Calls[0].Folded
	in.Calls = slices.Delete(in.Calls, 0, 1)
}

// alike reports whether two calls did the same with the same outcome.
func alike(a, b view.Call) bool {
	return !a.Answered.IsZero() && !b.Answered.IsZero() && a.Method == b.Method && a.Resource == b.Resource &&
		a.Accelerator == b.Accelerator && a.Code == b.Code && a.NotMade == b.NotMade
}

// open are the calls of a request whose outcome is not known yet.
func (f *facts) open(r events.Request, do func(c *view.Call)) {
	if in := f.w.Incident; in != nil && in.ID == r.Incident {
		for i := range in.Calls {
			if c := &in.Calls[i]; c.Epoch == r.Epoch && c.Action == r.Action && c.Slice == r.Slice && c.Answered.IsZero() {
				do(c)
			}
		}
	}
}

// callAnswered keeps the answer to a call, and reports whether one waited for it. An answer to no call leaves the outcome of an earlier
// delivery open.
func (f *facts) callAnswered(e evidence.Answered) (news bool) {
	if e.NoCall == evidence.Unbegun {
		return false
	}
	f.open(e.Request, func(c *view.Call) {
		code := e.Failed[c.Resource]
		if e.Failure != nil && len(e.Failed) == 0 {
			code = e.Failure.Reason()
		}
		switch {
		case slices.Contains(e.LeftOut, c.Resource): // stays open
		case e.NoCall == "":
			c.Answered, c.Operation, c.Code, news = f.now, e.Operation, code, true
		case c.Again == 0:
			c.Answered, c.NotMade, c.Code, news = f.now, true, cmp.Or(code, reason.CodeThere), true
		}
	})
	return news
}

// notCalled keeps that a request was held back after it was begun, and reports whether that is news.
func (f *facts) notCalled(e evidence.Held) (news bool) {
	f.open(e.Request, func(c *view.Call) {
		if e.Begun && c.Again == 0 {
			c.Answered, c.NotMade, c.Code, news = f.now, true, e.Code, true
		}
	})
	return news
}

// operationFailed keeps why an accepted call failed, and reports whether that is news.
func (f *facts) operationFailed(e evidence.Ended) (news bool) {
	in := f.w.Incident
	if in == nil || e.Failure == nil || e.Operation == "" {
		return false
	}
	for i := range in.Calls {
		if c := &in.Calls[i]; c.Operation == e.Operation && c.Code != e.Failure.Reason() {
			c.Code, news = e.Failure.Reason(), true
		}
	}
	return news
}
