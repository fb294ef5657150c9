package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// facts takes evidence into the document. It sees neither the policy nor a plan, and decides nothing.
type facts struct {
	w    *Workload
	now  time.Time
	from evidence.Origin
	// suspicion is a trouble that the evidence tells of while no incident is open; nil for none. Revised says that the evidence has changed the
	// cause or the cost of the incident that closed last.
	suspicion *Trouble
	revised   bool
}

// learners are what facts do with each kind of evidence: with readings and what crews say, with what a log or a message says, with what came of
// Pitstop's own calls, and with orders of people.
var learners = []func(*facts, evidence.Evidence) bool{
	with((*facts).read), with((*facts).mapped), with((*facts).reported), with((*facts).beat),
	with((*facts).ticked), with((*facts).interrupted), with((*facts).back), with((*facts).called), with((*facts).unsaid), with((*facts).noticed),
	with((*facts).intended), with((*facts).answered), with((*facts).ended), with((*facts).held),
	with((*facts).checked), with((*facts).verdictRead), with((*facts).fitted),
	with((*facts).approved), with((*facts).cancelled), with((*facts).retried), with((*facts).paused), with((*facts).ordered),
}

// with is a learner of one kind of evidence: others teach it nothing.
func with[E evidence.Evidence](learn func(*facts, E) bool) func(*facts, evidence.Evidence) bool {
	return func(f *facts, e evidence.Evidence) bool {
		of, mine := e.(E)
		return mine && learn(f, of)
	}
}

// record merges evidence into the facts, and reports whether it is news.
func (f *facts) record(e evidence.Evidence) bool {
	if word, is := e.(interface{ Said() evidence.Word }); is && f.w.Heard(word.Said().ID) {
		return false
	}
	if f.from.Time.IsZero() || f.from.Time.After(f.now) {
		f.from.Time = f.now // a clock ahead of Pitstop's orders nothing
	}
	return slices.ContainsFunc(learners, func(learn func(*facts, evidence.Evidence) bool) bool { return learn(f, e) })
}

// ticked records whether the slices could be read.
func (f *facts) ticked(e evidence.Ticked) bool {
	was := f.w.Unread
	f.w.Unread = e.Unread
	return was != e.Unread
}

// intended records the lease that a function read before it writes another one.
func (f *facts) intended(e evidence.Intended) bool {
	x := f.asked(e.Request)
	return x != nil && x.writesLease() && f.w.Lease.read(e.Lease, f.now)
}

// trouble keeps a trouble with the open incident, and reports whether that is news.
func (f *facts) trouble(t Trouble) bool {
	t.Heard = f.now
	return f.w.Incident.learns(t, f.w.life(t.Slice).usable())
}

// suspect keeps a trouble with the incident that it belongs to, or as a reason to open one.
func (f *facts) suspect(t Trouble) bool {
	news, last := f.joins(t), later(f.w.Ended, f.w.Training.StepAt)
	if !news && f.w.Incident == nil && t.At.After(last) && f.now.Sub(t.At) <= bounds.Grace {
		f.suspicion = &t
	}
	return news
}

// remember keeps that people were told of something.
func remember(w *Workload, t Told) {
	w.Told = slices.DeleteFunc(w.Told, func(o Told) bool { return o.Of == t.Of && o.Slice == t.Slice && o.Life == t.Life })
	w.Told = append(w.Told, t)
}

// asked is the effect that a request asks for, or nil if it is another one by now, or has its answer.
func (f *facts) asked(r events.Request) *Effect {
	x := f.w.effect(r.Action, r.Slice)
	if x == nil || f.w.Incident.ID != r.Incident || x.Epoch != r.Epoch || x.Attempt != r.Attempt || !x.Answered.IsZero() || !x.Retry.IsZero() {
		return nil
	}
	return x
}
