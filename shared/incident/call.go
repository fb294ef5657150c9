//go:build !heart

package incident

import (
	"cmp"
	"slices"
	"strings"

	"pitstop.internal/events"
)

// MaxCalls bounds the record: the oldest calls of the same kind are folded into one.
const MaxCalls = 100

// methodWrite is the method of a bucket that writes an object.
const methodWrite = "storage.objects.create"

// actors are the functions that make the calls of each action.
var actors = map[events.Action]string{
	events.ActionSave: "checkpoint", events.ActionMaintain: "checkpoint", events.ActionAdmit: "recovery", events.ActionRestart: "recovery",
	events.ActionStart: "recovery", events.ActionDelete: "recreate", events.ActionCreate: "recreate",
}

// call is a call that an effect makes.
func (effect Effect) call(method, resource string) Call {
	return Call{Function: actors[effect.Action], Method: method, Resource: resource, Accelerator: effect.Accelerator, Epoch: effect.Epoch, Action: effect.Action, Slice: effect.Slice}
}

// at is the place of a zone in the name of a resource.
func (w Workload) at(zone string) string { return "projects/" + w.Project + "/" + place(zone) + "/" }

// calls are the calls that an effect makes, in their order.
func (w Workload) calls(effect Effect) []Call {
	object := func(name string) Call {
		return effect.call(methodWrite, strings.TrimRight(w.Directory, "/")+"/"+name)
	}
	// A slice is created and deleted with the group that holds it.
	words := w.Words()
	slice := func(s *Slot, zone string) Call {
		method := words.Calls[effect.Action]
		if s.Group != "" && method.Group != "" {
			return effect.call(method.Group, w.at(zone)+words.Groups+"/"+s.Group)
		}
		return effect.call(method.Slice, w.at(zone)+words.Slices+"/"+s.Name)
	}
	s := w.Slice(effect.Slice)
	switch effect.Action {
	case events.ActionSave:
		var all []Call
		if w.Directory != "" {
			all = append(all, object(events.RequestObject))
		}
		for i := range w.Slices {
			if s := w.Slices[i]; s.Condition == Ready && words.Calls[effect.Action].Slice != "" {
				all = append(all, slice(&s, s.Zone))
			}
		}
		return all
	case events.ActionMaintain, events.ActionStart:
		if s != nil {
			return []Call{slice(s, s.Zone)}
		}
	case events.ActionAdmit, events.ActionRestart:
		return []Call{object(events.LeaseObject)}
	case events.ActionDelete, events.ActionCreate:
		if s != nil {
			return []Call{slice(s, effect.Zone)}
		}
	case events.ActionVerify, events.ActionHear: // which only read
	}
	return nil
}

// record keeps the calls that an effect is about to make. Calls that an earlier delivery has begun count as begun once more. So do
// calls that this delivery leaves out: their outcome is no longer known.
func (m *machine) record(effect Effect) {
	calls := m.w.calls(effect)
	same := func(a, b Call) bool {
		return a.RequestID == effect.RequestID && a.Method == b.Method && a.Resource == b.Resource
	}
	for i, o := range m.w.Incident.Calls {
		open := o.Epoch == effect.Epoch && o.Action == effect.Action && o.Slice == effect.Slice && o.Answered.IsZero()
		if open || slices.ContainsFunc(calls, func(c Call) bool { return same(o, c) }) {
			m.call(i).Again++
		}
	}
	for _, c := range calls {
		if slices.ContainsFunc(m.w.Incident.Calls, func(o Call) bool { return same(o, c) }) {
			continue
		}
		c.At, c.RequestID = m.now, effect.RequestID
		in := m.inc()
		if len(in.Calls) >= MaxCalls {
			m.fold()
		}
		in.Calls = append(in.Calls, c)
	}
}

// call returns a call of the record to change.
func (m *machine) call(i int) *Call {
	in := m.inc()
	if !m.ownCalls {
		in.Calls = slices.Clone(in.Calls)
		m.ownCalls = true
	}
	return &in.Calls[i]
}

// fold makes room: it counts the oldest call that ended like an earlier one on that earlier call. Where no two are alike, the
// oldest call goes and is counted.
func (m *machine) fold() {
	m.call(0)
	in := m.inc()
	for j, c := range in.Calls {
		for i := range in.Calls[:j] {
			o := &in.Calls[i]
			if c.Answered.IsZero() || o.Answered.IsZero() || o.Method != c.Method || o.Resource != c.Resource ||
				o.Accelerator != c.Accelerator || o.Code != c.Code || o.NotMade != c.NotMade {
				continue
			}
			o.Folded += 1 + c.Folded
			o.Until = c.At
			if c.Until.After(o.Until) {
				o.Until = c.Until
			}
			in.Calls = slices.Delete(in.Calls, j, j+1)
			return
		}
	}
	in.CallsLeftOut += 1 + in.Calls[0].Folded
	in.Calls = slices.Delete(in.Calls, 0, 1)
}

// completed applies the outcome to each call of a request whose outcome is not known yet.
func (m *machine) completed(r events.Request, done func(c *Call)) {
	if m.w.Incident == nil || m.w.Incident.ID != r.Incident {
		return
	}
	for i, c := range m.w.Incident.Calls {
		if c.Epoch == r.Epoch && c.Action == r.Action && c.Slice == r.Slice && c.Answered.IsZero() {
			done(m.call(i))
		}
	}
}

// callAnswered keeps the answer to a call. An answer to no call leaves the outcome of an earlier delivery open.
func (m *machine) callAnswered(e Answered) {
	if e.NoCall == Unbegun {
		return
	}
	m.completed(e.Request, func(c *Call) {
		code := e.Failed[c.Resource]
		if e.Failure != nil && len(e.Failed) == 0 {
			code = e.Failure.Reason()
		}
		switch {
		case slices.Contains(e.LeftOut, c.Resource): // stays open
		case e.NoCall == "":
			c.Answered, c.Operation, c.Code = m.now, e.Operation, code
		case c.Again == 0:
			c.Answered, c.NotMade, c.Code = m.now, true, cmp.Or(code, CodeThere)
		}
	})
}

// mayHaveCalled reports whether a call of a request was begun and may or may not have been made.
func (m *machine) mayHaveCalled(r events.Request) (open bool) {
	m.completed(r, func(*Call) { open = true })
	return open
}

// notCalled keeps that a request was held back after it was begun.
func (m *machine) notCalled(e Held) {
	if !e.Begun {
		return
	}
	m.completed(e.Request, func(c *Call) {
		if c.Again == 0 {
			c.Answered, c.NotMade, c.Code = m.now, true, e.Code
		}
	})
}

// operationFailed keeps why an accepted call failed.
func (m *machine) operationFailed(e Ended) {
	if e.Failure == nil {
		return
	}
	for i, c := range m.w.Incident.Calls {
		if c.Operation == e.Operation {
			m.call(i).Code = e.Failure.Reason()
		}
	}
}
