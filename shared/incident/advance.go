package incident

import (
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// Advance is the whole decision. From the present knowledge, one piece of evidence and the time, it makes the next state of the workload
// and the events to send. It does no I/O and changes none of its arguments. Changed is false where the document need not be written.
func Advance(p policy.Policy, w Workload, e evidence.Evidence, now time.Time) (next Workload, send []events.Event, changed bool) {
	next = w.clone()
	forget(&next, now)
	t := turn{p: p, w: &next, now: now}
	if !t.take(e) { // forgetting alone is no reason to write
		return w, nil, false
	}
	return next, t.out, true
}

// turn is one decision on a document of its own.
type turn struct {
	p   policy.Policy
	w   *Workload
	now time.Time
	out []events.Event
	// looksAhead says that nothing of it comes to pass.
	looksAhead bool
}

// take records evidence, decides, and makes what follows from it. It reports whether anything has changed.
func (t *turn) take(e evidence.Evidence) (changed bool) {
	f := &facts{w: t.w, now: t.now, from: evidence.OriginOf(e)}
	news := f.record(e)
	if f.revised {
		t.out = append(t.out, t.w.Closed.end(t.w.ID))
	}
	_, ticks := e.(evidence.Ticked)
	_, begins := e.(evidence.Intended)
	switch {
	case begins && t.w.Incident == nil, !news && !ticks && !begins && f.suspicion == nil:
		return false
	case t.w.Incident == nil:
		return t.watchPeace(e, f.suspicion, ticks) || news
	}
	news = t.unread(ticks) || news
	return t.decide(e, news, false) || news
}

// watchPeace opens an incident where there is a trouble to open one for, and reports whether anything has changed.
func (t *turn) watchPeace(e evidence.Evidence, suspicion *Trouble, ticks bool) (changed bool) {
	d := diagnose(t.p, t.w, t.now)
	trouble, _ := d.opens(suspicion, ticks)
	if trouble == nil {
		waits := ticks && tellWait(t.w, t.now)
		return d.keep() || waits
	}
	if f := (&facts{w: t.w, now: t.now}); f.handsOver(t.now) {
		t.out = append(t.out, t.w.Closed.end(t.w.ID))
	}
	open(t.w, t.p, *trouble, t.now)
	t.unread(ticks)
	t.decide(e, true, true)
	return true
}

// decide makes what follows from the facts about the open incident, and reports whether anything has changed.
func (t *turn) decide(e evidence.Evidence, news, opened bool) (changed bool) {
	d := diagnose(t.p, t.w, t.now)
	kept := d.keep()
	plan, x := d.plan(), &effects{w: t.w, now: t.now}
	if intent, begins := e.(evidence.Intended); begins { // what is not wanted any more is not begun, and what is wanted instead is asked for
		news = x.begin(intent, plan) || news
		kept = kept || news
	}
	tell := &teller{w: t.w, now: t.now, source: evidence.OriginOf(e)}
	if news {
		tell.seen(e)
	}
	if opened {
		for i := range d.slots {
			tell.deaf(d.slots[i].Name, d.deaf(&d.slots[i]))
		}
	}
	return t.carryOut(d, plan, x, tell) || kept
}

// unread holds everything back while the policy cannot be read, and reports whether that is news. The next tick tries again. Other evidence holds back
// only what is not held at this moment: no decision counts the time since the last tick as time to act.
func (t *turn) unread(ticks bool) bool {
	if t.w.Incident == nil || t.p.Unreadable == "" || !ticks && t.w.holdsAt(t.now) {
		return false
	}
	return t.w.hold(Hold{From: t.now, Until: t.now.Add(time.Minute), Code: reason.CodePolicyUnreadable, Why: "the policy cannot be read: " + t.p.Unreadable}, time.Minute) // a tick may be lost
}

// carryOut makes what follows from the plan, and reports whether anything has changed.
func (t *turn) carryOut(d *diagnosis, plan Step, x *effects, tell *teller) (changed bool) {
	defer func() { t.out = append(t.out, x.out...) }()
	if plan.End != nil {
		if plan.End.isForbidden() && !t.looksAhead {
			t.keepPlan()
		}
		d.end(x, tell, *plan.End)
		return true
	}
	told := tell.step(plan)
	followed := x.follow(plan)
	if t.w.Incident.isWatched() && !t.looksAhead {
		return t.keepPlan() || told || followed
	}
	return told || followed
}

// open opens an incident.
func open(w *Workload, p policy.Policy, t Trouble, now time.Time) {
	w.Epoch++
	t.Heard = now
	w.Incident = &Incident{
		ID: w.nextID(now), Opened: now, Ceiling: p.Switches, Limits: p.Limits, Policy: p.Name, ChipHourPrice: w.priceOf(p, t.Slice),
		Runs: w.Training.runsSince(t.At), Troubles: []Trouble{t}, Baseline: w.Training.baseline(), BaseAttempt: max(w.Training.Attempt, w.Training.StepAttempt),
	}
	if c := w.Closed; c != nil && c.standsStill() {
		w.Incident.After = now // until then, it was that one's
	}
	if p.Unreadable != "" {
		w.Incident.Ceiling = policy.Everything() // the first policy that can be read counts
	}
	switch c := w.Training.Claim; {
	case t.Cause == events.CauseCrash && !c.Finished && t.At.Equal(c.At): // until a verdict confirms such a line
		remember(w, Told{Of: ToldDoubt, At: now})
	case t.Rank == events.RankUser && (t.Cause == events.CauseMaintenance || endsLife(t.Cause)): // until a reading shows what it tells of
		remember(w, Told{Of: ToldDoubt, Slice: t.Slice, Life: t.Life, At: now})
	}
}

// priceOf is what an hour of a chip costs by the policy where a slice stands, or last stood.
func (w *Workload) priceOf(p policy.Policy, slice string) float64 {
	if s := w.Slice(slice); s != nil {
		return s.PriceIn(p, s.stands())
	}
	return p.ChipHourPrice
}

// nextID is unique for a workload, and fits into the value of a label. Incidents are numbered by day. A clock that is behind goes on with the day
// of the last one: no number comes again.
func (w *Workload) nextID(now time.Time) string {
	if day := now.UTC().Format("20060102"); day > w.Opened.Day {
		w.Opened = Numbered{Day: day}
	}
	w.Opened.Last++
	return incidentsOf(w.Name) + w.Opened.Day + "-" + strconv.Itoa(w.Opened.Last)
}

// incidentsOf is the prefix of the IDs of a workload's incidents.
func incidentsOf(name string) string {
	const longest = 40
	name = strings.ReplaceAll(strings.ToLower(name), ".", "-")
	return name[:min(len(name), longest)] + "-"
}
