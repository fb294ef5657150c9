// Package agree has the crews of a slice, and of the slices of a Multislice, run one attempt together: they start it
// together, end it together when one of them ends, and agree on the cause. It does no I/O: worker 0 of each slice leads,
// hears the statuses of the others, and returns its wishes; package crew moves the messages and carries the wishes out.
//
// The leader of slice 0 decides for all slices. Between slices there are only objects that are created once and never
// changed: of two answers to one question the first one holds.
package agree

import (
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/restart"
)

// Phase is where one worker's training is.
type Phase string

// The phases of a worker.
const (
	Idle    Phase = "idle"
	Running Phase = "running"
	Ended   Phase = "ended"
)

// Status is what a worker says.
type Status struct {
	Worker int    `json:"worker"`
	Host   string `json:"host"`
	Phase  Phase  `json:"phase"`
	// Leaving says that a signal ends the crew: its training ends, and it begins no other.
	Leaving bool `json:"leaving,omitzero"`
	// Attempt is the one that runs or ended, Exit how it ended, and When the circumstances.
	Attempt int                   `json:"attempt,omitzero"`
	Exit    restart.Exit          `json:"exit,omitzero"`
	When    restart.Circumstances `json:"when,omitzero"`
}

// Gone reports whether nothing more is to be expected of a worker, nor to be told to it.
func (s Status) Gone() bool { return s.Leaving && s.Phase != Running }

// Plan is what the leader says to all workers of its slice. They do as it says and nothing else; the lease has to name the
// attempt all the same.
type Plan struct {
	// Version names the plan: a worker that knows it waits for another.
	Version string `json:"version"`
	Attempt int    `json:"attempt"`
	// Run says that the attempt runs; otherwise whatever runs is ended, by itself within Grace or not.
	Run   bool          `json:"run"`
	Grace time.Duration `json:"grace,omitzero"`
	// Step and Checkpoint are what the attempt resumes from.
	Step       int64  `json:"step"`
	Checkpoint string `json:"checkpoint,omitzero"`
	// Save names a request to save for which each worker asks its training, whatever the request itself says.
	Save string `json:"save,omitzero"`
	// Server is where the hosts of the attempt may meet: worker 0 of slice 0, and a port that is free there. The crew of a single slice
	// chooses it when the attempt is to run.
	Server string `json:"server,omitzero"`
	// Over says that no other attempt follows, and Code what the crews exit with.
	Over bool `json:"over,omitzero"`
	Code int  `json:"code,omitzero"`
	// Reason says in words why an attempt is to end. Where Ended is set it says how the attempt ended; then the next one
	// starts After that long, or when the lease names it.
	Reason string        `json:"reason,omitzero"`
	Ended  bool          `json:"ended,omitzero"`
	After  time.Duration `json:"after,omitzero"`
	// Before says how the attempt before this one ended: a worker sees only the newest plan, and may miss the one that said it.
	Before string `json:"before,omitzero"`
	// Waits says in words what worker 0 waits for before the training starts. It comes and goes within one version, and before
	// there is a first one.
	Waits string `json:"waits,omitzero"`
}

// Cause is what ended an attempt: what happened first.
type Cause struct {
	Slice   int                   `json:"slice"`
	Worker  int                   `json:"worker"`
	Host    string                `json:"host,omitzero"`
	Attempt int                   `json:"attempt"`
	Exit    restart.Exit          `json:"exit"`
	When    restart.Circumstances `json:"when"`
	Class   restart.Class         `json:"class"`
}

// Verdict is what follows from the end of an attempt: the crew's verdict, and what only crews need to know.
type Verdict struct {
	events.CrewVerdict
	// After is how long the crews wait before they start the next attempt.
	After time.Duration `json:"after,omitzero"`
}

// Lease is what the lease says of this slice.
type Lease struct {
	// Admitted says that it was read lately and names this life of the slice.
	Admitted bool
	Attempt  int
	Epoch    int64
	// Own says that a crew wrote it.
	Own bool
	// Last is the last attempt that a lease named where none stands any more: then Attempt is 0.
	Last int
}

// Outside is what the slices of a Multislice have put into the bucket about the attempt that the leader asked for.
type Outside struct {
	Attempt int
	// Ready counts the slices that are ready for it. Server is where its hosts may meet, as slice 0 says. Claimed says that slice 0 claims its place, and does not say yet where they meet.
	Ready   int
	Server  string
	Claimed bool
	Ended   *Cause
	Verdict *Verdict
}

// View is what the leader sees beside its workers.
type View struct {
	Now     time.Time
	Lease   Lease
	Outside Outside
	// Replaced are the other slices in whose place a new life stands, with no sign of the one that the lease names.
	Replaced []int
	// Step and Checkpoint are the last complete checkpoint, Chance is between 0 and 1.
	Step       int64
	Checkpoint string
	Chance     float64
	// LastStep is the last finished step of the attempt, as far as worker 0 knows it.
	LastStep int64
	// Save names the request for which every worker has to ask its training to save; empty is none.
	Save string
	// Remark is what a person has to know of how the attempt ran, for the reason of its end.
	Remark string
	// Saved says that the last complete checkpoint came since the attempt began, or was asked to save.
	Saved bool
	// Looked is when the look began that found it, or found that there is none.
	Looked time.Time
	// Hold keeps the next attempt from starting: the machine is about to go.
	Hold bool
}

// Config is what a leader has to know.
type Config struct {
	Workers       int
	Slice, Slices int
	// Life is the life of this slice, for the verdict.
	Life   events.Admission
	Policy restart.Policy
	// Silence is after how long a worker counts as lost, Finish how long the others may take to end by themselves after one
	// has saved itself or is done.
	Silence, Finish time.Duration
	// WaitSaved has what saved itself wait for a new attempt in the lease.
	WaitSaved bool
	// StayAfterGivingUp has it wait for a new attempt in the lease where it would be over.
	StayAfterGivingUp bool
	// DoneAt is the last step of the training; nil where its owner did not name one.
	DoneAt *int64
	// Number is the number of a signal.
	Number func(signal string) int
}

// Stage is what the leader is about.
type Stage string

// The stages, in their order.
const (
	Waiting   Stage = "waiting"   // for the lease to name this slice
	Gathering Stage = "gathering" // until every worker was heard
	Admitting Stage = "admitting" // until the lease names the attempt
	Training  Stage = "training"
	Ending    Stage = "ending"   // until nobody runs any more
	Deciding  Stage = "deciding" // until it is known what follows
	Pausing   Stage = "pausing"  // the back-off
	Asking    Stage = "asking"   // for a new attempt in the lease
	Over      Stage = "over"
)

// Memory is the state of a leader that outlives its crew.
type Memory struct {
	// Attempt is the last one that was decided on, Handled the last one whose end was.
	Attempt int `json:"attempt"`
	Handled int `json:"handled"`
	// Named is the attempt that the lease was to name before its time.
	Named  int            `json:"named,omitzero"`
	Epoch  int64          `json:"epoch"`
	Budget restart.Budget `json:"budget"`
}

// Want is what the leader wants of the world, as long as it says so.
type Want struct {
	// Lease is the attempt that the lease has to name; 0 is none.
	Lease int
	// Ready is the attempt for which this slice is ready; Ended and Verdict are to be put into the bucket.
	Ready   int
	Ended   *Cause
	Verdict *Verdict
	// Fresh is the moment since which nobody may have saved any more, where the last look at the checkpoints was before it.
	Fresh time.Time
	// Look is the attempt of which it has to know what the other slices say.
	Look int
	// Wake is when it has to be asked again, if nothing happens.
	Wake time.Time
}

type member struct {
	Status
	heard time.Time
	// left is when it first said that it leaves.
	left time.Time
}

// Leader leads the workers of one slice.
type Leader struct {
	Config
	Memory
	Stage Stage

	id      string
	seq     int
	plan    Plan
	members map[int]member
	entered time.Time
	// ready is since when the leader has waited for all that the next attempt takes; zero while none could begin.
	ready   time.Time
	until   time.Time
	cause   Cause
	lost    *Cause
	verdict *Verdict
	before  string // how the last attempt ended, in words
	// quiet is since when nobody trains, and rallied the attempt for which all slices are known to be ready, so that nobody
	// trains in any of them.
	quiet   time.Time
	rallied int
	// demanded says that the lease asks for another attempt or another slice: what ended so is no failure.
	demanded bool
	want     Want
	events   []Event
	lease    Lease
}

// Event is something that the leader has to tell about: an attempt began, its end, or the end of all.
type Event struct {
	Began bool
	// Ready is since when the leader has waited for the attempt that began: since it was there, or since the back-off was over.
	Ready    time.Time
	Ended    *Cause
	Verdict  *Verdict
	Attempt  int
	Left     int
	Retries  events.JobRetries
	Workers  int
	Finished bool
	GaveUp   bool
	// Why says in words how the attempt ended, and on which worker.
	Why string
}

// New makes a leader; id tells its plans from those of an earlier life.
func New(c Config, m Memory, id string, now time.Time) *Leader {
	return &Leader{Config: c, Memory: m, Stage: Waiting, id: id, members: map[int]member{}, entered: now, ready: now, quiet: now}
}

// Hear takes what a worker says.
func (l *Leader) Hear(now time.Time, s Status) {
	if s.Worker < 0 || s.Worker >= l.Workers {
		return
	}
	if old, ok := l.members[s.Worker]; ok && old.Phase == Running && old.Attempt == l.Attempt && s.Phase == Idle {
		l.lose(now, old.Status) // a new machine is in its place, or a crew that knows nothing of what it ran
	}
	m := member{Status: s, heard: now}
	if s.Leaving {
		if m.left = l.members[s.Worker].left; m.left.IsZero() {
			m.left = now
		}
	}
	l.members[s.Worker] = m
}

// Touch notes that a worker was heard, and said nothing new.
func (l *Leader) Touch(worker int, at time.Time) {
	if m, ok := l.members[worker]; ok && at.After(m.heard) {
		m.heard = at
		l.members[worker] = m
	}
}

// lose notes that a worker ended without a word.
func (l *Leader) lose(now time.Time, s Status) {
	l.lost = &Cause{
		Slice: l.Slice, Worker: s.Worker, Host: s.Host, Attempt: l.Attempt, Class: restart.Interrupted,
		When: restart.Circumstances{Lost: true}, Exit: restart.Exit{Attempt: l.Attempt, Unknown: true, Ended: now},
	}
}

// Advance goes as far as it can and returns the plan, its wishes, and the events to report.
func (l *Leader) Advance(v View) (Plan, Want, []Event) {
	l.lease = v.Lease
	l.events = nil
	for range 20 { // more steps than there are stages
		if !l.step(v) {
			break
		}
	}
	l.wants(v)
	return l.plan, l.want, l.events
}

func (l *Leader) enter(s Stage, now time.Time) bool {
	l.Stage, l.entered = s, now
	switch s {
	case Waiting, Gathering, Admitting, Asking:
		if l.ready.IsZero() {
			l.ready = now
		}
	case Training, Ending, Deciding, Pausing, Over:
		l.ready = time.Time{}
	}
	return true
}

// announce makes the plan that all workers get.
func (l *Leader) announce(p Plan) {
	p.Version = l.plan.Version
	if p == l.plan && p.Version != "" {
		return
	}
	l.seq++
	p.Version = fmt.Sprintf("%s.%d", l.id, l.seq)
	l.plan = p
}

func (l *Leader) step(v View) bool {
	switch l.Stage {
	case Waiting:
		// No plan is made: what runs was started by an earlier leader, and is found when all were heard.
		if v.Lease.Admitted {
			return l.enter(Gathering, v.Now)
		}
	case Gathering:
		return l.gather(v)
	case Admitting:
		return l.admit(v)
	case Training:
		return l.train(v)
	case Ending:
		if l.someRun(v.Now) {
			return false
		}
		l.settle()
		l.quiet = v.Now
		return l.enter(Deciding, v.Now)
	case Deciding:
		return l.decide(v)
	case Pausing:
		if v.Hold || v.Now.Before(l.until) {
			return l.overtaken(v)
		}
		return l.enter(Gathering, v.Now)
	case Asking:
		return l.overtaken(v)
	case Over:
	}
	return false
}

// overtaken reports whether the lease asks for an attempt of its own accord.
func (l *Leader) overtaken(v View) bool {
	if v.Lease.Admitted && v.Lease.Attempt > l.Attempt && !l.self(v.Lease) {
		l.refill(v.Lease)
		l.until = v.Now
		return l.enter(Gathering, v.Now)
	}
	return false
}

// self reports whether the lease names its attempt because this leader wanted it so.
func (l *Leader) self(lease Lease) bool { return lease.Own && lease.Attempt == l.Named }

// refill gives a new attempt that Pitstop asked for a budget of its own.
func (l *Leader) refill(lease Lease) {
	if lease.Epoch > l.Epoch {
		l.Budget = l.Budget.Refill()
		l.Epoch = lease.Epoch
	}
}

// gather waits until every worker was heard, and finds out which attempts they run.
func (l *Leader) gather(v View) bool {
	if !v.Lease.Admitted {
		return l.enter(Waiting, v.Now)
	}
	running, unhandled, highest := 0, 0, max(l.Handled, v.Lease.Last)
	same := true
	for _, m := range l.members {
		highest = max(highest, m.Attempt)
		switch {
		case v.Now.Sub(m.heard) > l.Silence:
		case m.Phase == Running:
			running++
			same = same && m.Attempt == l.members[0].Attempt && l.members[0].Phase == Running
		case m.Phase == Ended && m.Attempt > l.Handled:
			unhandled++
		}
	}
	_, leaves := l.leaver()
	missing := l.Workers - l.Heard(v.Now)
	if missing > 0 && (running == 0 || !leaves && v.Now.Sub(l.entered) < l.Silence) {
		return false
	}
	if running == l.Workers && same && v.Lease.Attempt <= highest {
		l.Attempt = highest
		l.announce(Plan{Attempt: l.Attempt, Run: true, Step: v.Step, Checkpoint: v.Checkpoint})
		return l.enter(Training, v.Now)
	}
	if running > 0 || unhandled > 0 {
		l.Attempt = highest
		return l.end(v.Now, Plan{Reason: "not all workers are at the same attempt"})
	}
	if l.Slices > 1 && v.Lease.Attempt > 0 && v.Lease.Attempt > l.Handled && v.Lease.Own {
		// The other slices may be at it: they have to hear that this one is not.
		l.Attempt = v.Lease.Attempt
		l.lose(v.Now, l.members[0].Status)
		l.cause = *l.lost
		return l.enter(Deciding, v.Now)
	}
	switch {
	case v.Lease.Attempt > highest && (!v.Lease.Own || v.Lease.Attempt == l.Attempt || l.self(v.Lease)):
		l.Attempt = v.Lease.Attempt
		l.refill(v.Lease)
	default:
		l.Attempt = max(highest, v.Lease.Attempt) + 1
	}
	return l.enter(Admitting, v.Now)
}

// admit waits until the lease names the attempt.
func (l *Leader) admit(v View) bool {
	switch {
	case !v.Lease.Admitted && l.Slices > 1 && v.Lease.Attempt == 0:
		return false // the first lease is about to be written: it counts on this slice, which has said that it is ready
	case !v.Lease.Admitted:
		return l.enter(Waiting, v.Now)
	case v.Lease.Attempt > l.Attempt:
		l.Attempt = v.Lease.Attempt
		l.refill(v.Lease)
		return true
	case v.Lease.Last >= l.Attempt:
		l.Attempt = v.Lease.Last + 1
		return true
	}
	if o := v.Outside; l.Slices > 1 {
		if o.Attempt != l.Attempt || o.Ready < l.Slices {
			return false // another slice may still train
		}
		if l.rallied != l.Attempt {
			l.rallied, l.quiet = l.Attempt, v.Now
		}
	}
	if v.Lease.Attempt < l.Attempt || v.Hold || v.Looked.Before(l.quiet) {
		return false
	}
	if m, leaves := l.leaver(); leaves {
		if l.Slices > 1 { // the other slices may be at it
			l.lose(v.Now, m)
			l.cause = *l.lost
			return l.enter(Deciding, v.Now)
		}
		return false // it begins with the next crew in its place
	}
	l.announce(Plan{Attempt: l.Attempt, Run: true, Step: v.Step, Checkpoint: v.Checkpoint, Server: v.Outside.Server, Before: l.before})
	l.events = append(l.events, Event{Began: true, Ready: l.ready, Attempt: l.Attempt, Workers: l.Workers, Left: l.Budget.Left(l.Policy), Retries: l.Budget.Retries(l.Policy)})
	return l.enter(Training, v.Now)
}

// train watches over an attempt that runs.
func (l *Leader) train(v View) bool {
	if !v.Lease.Admitted {
		l.demanded = true
		return l.end(v.Now, Plan{Reason: "the lease no longer names this slice"})
	}
	if v.Lease.Attempt > l.Attempt {
		l.demanded = true
		return l.end(v.Now, Plan{Reason: fmt.Sprintf("the lease names attempt %d", v.Lease.Attempt)})
	}
	if o := v.Outside; o.Attempt == l.Attempt && o.Ended != nil {
		return l.end(v.Now, Plan{
			Grace:  l.grace(o.Ended.Class),
			Reason: fmt.Sprintf("it ended on slice %d: %s", o.Ended.Slice, o.Ended.Exit.Describe()),
		})
	}
	if v.Save != l.plan.Save {
		p := l.plan
		p.Save = v.Save
		l.announce(p)
	}
	var first *member
	for w := range l.Workers {
		m, ok := l.members[w]
		if !ok {
			continue
		}
		if m.Phase != Ended || m.Attempt != l.Attempt {
			continue
		}
		if class := restart.Classify(m.Exit, m.When); class == restart.Finished && !(w == 0 && l.Slice == 0) {
			continue // the primary says when the job is done
		}
		if first == nil || m.Exit.Ended.Before(first.Exit.Ended) {
			first = &m
		}
	}
	if first != nil {
		class := restart.Classify(first.Exit, first.When)
		if l.done(v) {
			class = restart.Finished
		}
		return l.end(v.Now, Plan{Grace: l.grace(class), Reason: fmt.Sprintf("it ended on worker %d: %s", first.Worker, first.Exit.Describe())})
	}
	if m, leaves := l.leaver(); leaves {
		return l.end(v.Now, Plan{Reason: fmt.Sprintf("the pitcrew of worker %d got a signal to end", m.Worker)})
	}
	if len(v.Replaced) > 0 {
		l.lose(v.Now, Status{})
		l.lost.Slice = v.Replaced[0]
		return l.end(v.Now, Plan{Reason: fmt.Sprintf("slice %d was lost, and a new one replaces it", l.lost.Slice)})
	}
	for _, m := range l.members {
		if v.Now.Sub(m.heard) > l.Silence {
			l.lose(v.Now, m.Status)
		}
	}
	if l.lost != nil && l.lost.Attempt == l.Attempt {
		return l.end(v.Now, Plan{Reason: fmt.Sprintf("worker %d was lost: it is silent, or a new pitcrew replaces it", l.lost.Worker)})
	}
	return false
}

// leaver is the first worker whose crew got a signal to end, until another one replaces it.
func (l *Leader) leaver() (Status, bool) {
	for w := range l.Workers {
		if m := l.members[w]; m.Leaving {
			return m.Status, true
		}
	}
	return Status{}, false
}

// grace is how long the others may take to end by themselves.
func (l *Leader) grace(c restart.Class) time.Duration {
	if c == restart.Finished || c == restart.Saved {
		return l.Finish
	}
	return 0
}

func (l *Leader) end(now time.Time, p Plan) bool {
	p.Attempt = l.Attempt
	l.announce(p)
	return l.enter(Ending, now)
}

// someRun reports whether a worker that can be heard still trains.
func (l *Leader) someRun(now time.Time) bool {
	for _, m := range l.members {
		if m.Phase == Running && now.Sub(m.heard) <= l.Silence {
			return true
		}
	}
	return false
}

// settle finds what came first; what the crews ended themselves is a consequence.
func (l *Leader) settle() {
	l.cause = Cause{Slice: l.Slice, Attempt: l.Attempt, Class: restart.Stopped, When: restart.Circumstances{Stopped: true}}
	found := false
	finished := l.Slice == 0 && l.members[0].Phase == Ended && l.members[0].Attempt == l.Attempt &&
		restart.Classify(l.members[0].Exit, l.members[0].When) == restart.Finished
	near, signalled := false, false
	for w := range l.Workers {
		m, ok := l.members[w]
		if !ok || m.Phase != Ended || m.Attempt != l.Attempt {
			continue
		}
		near, signalled = near || m.When.Maintenance, signalled || m.When.Signalled
		class := restart.Classify(m.Exit, m.When)
		switch {
		case class == restart.Stopped, finished && w != 0, class == restart.Finished && !(w == 0 && l.Slice == 0):
			continue
		case found && !m.Exit.Ended.Before(l.cause.Exit.Ended):
			continue
		}
		found = true
		l.cause = Cause{Slice: l.Slice, Worker: w, Host: m.Host, Attempt: l.Attempt, Exit: m.Exit, When: m.When, Class: class}
	}
	if !found && l.lost != nil && l.lost.Attempt == l.Attempt {
		l.cause, found = *l.lost, true
	}
	if found && !l.cause.When.Stopped {
		// A signal to one worker ends the training on all of them.
		l.cause.When.Maintenance = l.cause.When.Maintenance || near
		l.cause.When.Signalled = l.cause.When.Signalled || signalled
		l.cause.Class = restart.Classify(l.cause.Exit, l.cause.When)
	}
	if l.demanded {
		l.cause.When.Stopped, l.cause.Class = true, restart.Stopped
	}
}

// decide says what follows, or waits for the slice that does.
func (l *Leader) decide(v View) bool {
	if l.demanded {
		l.demanded = false
		l.Handled = max(l.Handled, l.Attempt)
		if v.Lease.Admitted && v.Lease.Attempt > l.Attempt {
			l.refill(v.Lease)
		}
		return l.enter(Waiting, v.Now)
	}
	cause := l.cause
	if l.Slices > 1 {
		if v.Outside.Attempt != l.Attempt || v.Outside.Ended == nil {
			return false // it is asked for
		}
		cause = *v.Outside.Ended
		if l.cause.Class == restart.Finished && l.cause.When.Done {
			cause = l.cause // the last step was reached, whatever ended another slice first
		}
	}
	if l.Slice == 0 && cause.Class != restart.Stopped && cause.Class != restart.NotRun && cause.Class != restart.Finished {
		if (l.DoneAt != nil || cause.Class == restart.Saved) && v.Looked.Before(l.quiet) {
			return false // what was saved last decides
		}
		if l.done(v) {
			cause.Class, cause.When.Done = restart.Finished, true
		}
	}
	switch {
	case l.Slices > 1 && v.Outside.Verdict != nil:
		l.verdict = v.Outside.Verdict
	case l.Slice > 0:
		if !v.Lease.Admitted || v.Lease.Attempt <= l.Attempt && v.Lease.Last < l.Attempt {
			return false
		}
		// Slice 0 has begun again, in a new life, and does not know this attempt. Or no lease stands, and nobody trains.
		l.Handled = max(l.Handled, l.Attempt)
		return l.enter(Gathering, v.Now)
	case l.verdict == nil || l.verdict.Attempt != l.Attempt:
		if l.verdict = l.judge(v, cause); l.Slices > 1 {
			return false
		}
	case l.Slices > 1:
		return false // it is on its way into the bucket
	}
	return l.follow(v, cause)
}

// done reports whether the last step that the owner named is reached, and its checkpoint complete: then the job is done, however the
// attempt ends.
func (l *Leader) done(v View) bool {
	return l.DoneAt != nil && v.Checkpoint != "" && min(v.LastStep, v.Step) >= *l.DoneAt
}

func (l *Leader) judge(v View, cause Cause) *Verdict {
	b := l.Budget.Progress(-1, v.Step)
	b, next := restart.Decide(l.Policy, b, restart.End{
		Class: cause.Class, Exit: cause.Exit, Worker: fmt.Sprintf("%d/%d", cause.Slice, cause.Worker), Lost: cause.When.Lost, Saved: v.Saved,
	}, v.Chance)
	l.Budget = b
	d := &Verdict{After: next.After, CrewVerdict: events.CrewVerdict{
		Schema: events.Schema, Attempt: l.Attempt, Life: l.Life, Restart: next.Restart, Finished: next.Finished,
		Certain: next.Finished && cause.When.Done, Ended: cause.Exit.Ended.UTC(), Step: max(0, v.LastStep),
		Reason: next.Reason,
	}}
	if v.Remark != "" && !next.Finished {
		d.Reason += "; " + v.Remark
	}
	if !next.Restart && !next.Finished {
		d.Code = cause.Exit.ShellCode(l.Number)
	}
	return d
}

// follow carries the decision out.
func (l *Leader) follow(v View, cause Cause) bool {
	d := l.verdict
	l.Handled = max(l.Handled, l.Attempt)
	e := Event{Attempt: l.Attempt, Ended: &cause, Verdict: d, Left: l.Budget.Left(l.Policy), Retries: l.Budget.Retries(l.Policy), Workers: l.Workers, Why: l.why(cause, d)}
	e.Finished = d.Finished
	e.GaveUp = !d.Restart && !d.Finished
	l.events = append(l.events, e)
	l.before = e.Why
	switch {
	case d.Restart && cause.Class == restart.Saved && l.WaitSaved:
		l.announce(Plan{Attempt: l.Attempt, Ended: true, Reason: e.Why + "; waiting until the lease names a new attempt"})
		return l.enter(Asking, v.Now)
	case d.Restart:
		l.until = v.Now.Add(d.After)
		l.announce(Plan{Attempt: l.Attempt, Ended: true, Reason: e.Why, After: d.After})
		return l.enter(Pausing, v.Now)
	case !d.Finished && l.StayAfterGivingUp:
		l.announce(Plan{Attempt: l.Attempt, Ended: true, Reason: e.Why + "; gave up; waiting until the lease names a new attempt"})
		return l.enter(Asking, v.Now)
	}
	l.announce(Plan{Attempt: l.Attempt, Over: true, Code: d.Code, Grace: l.grace(cause.Class), Reason: e.Why})
	return l.enter(Over, v.Now)
}

// why says in words how an attempt ended. An end that the crews chose has no worker as its cause.
func (l *Leader) why(cause Cause, d *Verdict) string {
	switch {
	case cause.Class == restart.Stopped:
		return fmt.Sprintf("attempt %d has ended on all workers", d.Attempt)
	case l.Slices > 1:
		return fmt.Sprintf("attempt %d ended on worker %d of slice %d: %s", d.Attempt, cause.Worker, cause.Slice, d.Reason)
	}
	return fmt.Sprintf("attempt %d ended on worker %d: %s", d.Attempt, cause.Worker, d.Reason)
}

// wants is what the stage needs of the world.
func (l *Leader) wants(v View) {
	l.want = Want{}
	multi := l.Slices > 1
	if v.Looked.Before(l.quiet) {
		l.want.Fresh = l.quiet
	}
	switch l.Stage {
	case Admitting:
		if multi {
			l.want.Ready, l.want.Look = l.Attempt, l.Attempt
		}
		if v.Lease.Admitted && v.Lease.Attempt < l.Attempt && (!multi || l.Slice == 0 && v.Outside.Attempt == l.Attempt && v.Outside.Ready == l.Slices) {
			l.want.Lease = l.Attempt
		}
	case Training:
		if multi {
			l.want.Look = l.Attempt
		}
		if v.Lease.Admitted && v.Lease.Attempt < l.Attempt && l.Slice == 0 {
			l.want.Lease = l.Attempt // a newer epoch knew no better
		}
		l.want.Wake = v.Now.Add(l.Silence / 2)
	case Ending:
		l.want.Wake = v.Now.Add(time.Second)
		if multi {
			l.want.Look = l.Attempt
		}
	case Deciding:
		if multi {
			l.want.Look = l.Attempt
			if v.Outside.Attempt != l.Attempt || v.Outside.Ended == nil {
				cause := l.cause
				l.want.Ended = &cause
			} else if l.Slice == 0 && l.verdict != nil && l.verdict.Attempt == l.Attempt {
				l.want.Verdict = l.verdict
			}
		}
	case Pausing:
		// The lease is written while there is time for it, not when the training should begin.
		if next := l.Attempt + 1; !multi && v.Lease.Admitted && v.Lease.Attempt < next {
			l.want.Lease, l.Named = next, next
		}
		l.want.Wake = l.until
		if v.Hold {
			l.want.Wake = v.Now.Add(time.Minute)
		}
	case Gathering:
		if silent := l.entered.Add(l.Silence); silent.After(v.Now) {
			l.want.Wake = silent // from then on only a worker's word changes anything
		}
	case Waiting, Asking, Over:
	}
}

// Progress takes the step and the checkpoint that training has come to.
func (l *Leader) Progress(step, saved int64) { l.Budget = l.Budget.Progress(step, saved) }

// Heard is how many workers were heard lately, and stay.
func (l *Leader) Heard(now time.Time) int { return l.Workers - len(l.Missing(now, l.Silence)) }

// Absence is a worker that is missing: it is silent since then, or first told then that it leaves. One that was never heard
// has no time.
type Absence struct {
	Worker int
	Since  time.Time
	Left   bool
}

// Missing are the workers that leave, or were not heard for longer than the silence.
func (l *Leader) Missing(now time.Time, silence time.Duration) (missing []Absence) {
	for w := range l.Workers {
		if m := l.members[w]; m.heard.IsZero() || m.Leaving || now.Sub(m.heard) > silence {
			a := Absence{Worker: w, Since: m.heard, Left: m.Leaving}
			if a.Left {
				a.Since = m.left
			}
			missing = append(missing, a)
		}
	}
	return missing
}
