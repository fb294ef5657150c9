//go:build !heart

package incident

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Effect is one change that an incident wants outside, from the first request for it until a reading shows it.
type Effect struct {
	// Maker is the incident that wants the effect: only evidence for that incident counts.
	Maker  string        `json:"maker"`
	Action events.Action `json:"action"`
	// Slice is empty for an effect on the whole workload.
	Slice string `json:"slice,omitzero"`
	// With are the other slices of a queued resource that is deleted or created as a whole.
	With []string `json:"with,omitempty"`
	Zone string   `json:"zone,omitzero"`
	// Accelerator is the shape to create, where the owner ordered another one.
	Accelerator string             `json:"accelerator,omitzero"`
	Incarnation events.Incarnation `json:"incarnation,omitzero"`
	// Ordered is the creation time of the queued resource that is to be deleted before it brings any node.
	Ordered time.Time `json:"ordered,omitzero"`
	Epoch   int64     `json:"epoch"`
	Attempt int       `json:"attempt"`
	Reason  string    `json:"reason,omitzero"`
	// LeaseAttempt is the training attempt that the lease is to name, and Admit are the lives that it is to name; both only for
	// effects that write the lease. Maybe says that an earlier try may have done so, or have made its call.
	LeaseAttempt int                `json:"names,omitzero"`
	Admit        []events.Admission `json:"admit,omitempty"`
	Maybe        bool               `json:"maybe,omitzero"`
	Sent         time.Time          `json:"sent"`
	// Begun is when the intent was saved, with the ID that the call carries: its outcome is unknown until answered.
	Begun     time.Time `json:"begun,omitzero"`
	RequestID string    `json:"request_id,omitzero"`
	// Answered is when the call was accepted; Operation names the provider's operation that carries it out.
	Answered  time.Time `json:"answered,omitzero"`
	Operation string    `json:"operation,omitzero"`
	// Retry is when the request is sent again after a failure.
	Retry time.Time `json:"retry,omitzero"`
	// Barred is since when the state of the slice, or of its queued resource, forbids the call.
	Barred time.Time `json:"barred,omitzero"`
	// Failures counts the failures in a row, LastFailure is the latest.
	Failures    int    `json:"failures,omitzero"`
	LastFailure string `json:"last_failure,omitzero"`
	LastCode    Code   `json:"last_code,omitzero"`
	// By is the deadline of a save. For a verification, the checkpoint must be newer than By. Since By, the lease names no life of a slice
	// that is released.
	By time.Time `json:"by,omitzero"`
	// Mode says how the save is requested. Lives are the incarnations of With at the decision to delete, in the order of With.
	Mode  events.SaveMode      `json:"mode,omitzero"`
	Lives []events.Incarnation `json:"lives,omitempty"`
	// Digest is the digest of the body that was sent.
	Digest string `json:"digest,omitzero"`
}

// Stage says how far the effect has come.
func (effect Effect) Stage() Stage {
	switch {
	case !effect.Retry.IsZero():
		return StageRefused
	case effect.Operation != "":
		return StageAccepted
	case !effect.Answered.IsZero():
		return StageDone
	case !effect.Begun.IsZero():
		return StageBegun
	}
	return StageWanted
}

// send sends requests under one new epoch. It sends a request of an earlier epoch that no function has begun again under the new
// epoch, because its fence would refuse it otherwise.
func (m *machine) send(effects ...Effect) {
	m.raise()
	for i := range m.effects() {
		if effect := &m.w.Effects[i]; effect.Stage() == StageWanted {
			m.emit(effect)
		}
	}
	for _, effect := range effects {
		effect.Attempt++
		m.wants(effect)
		m.emit(&m.w.Effects[len(m.w.Effects)-1])
	}
}

// wants stores effects of the open incident without requesting them yet.
func (m *machine) wants(all ...Effect) {
	for _, effect := range all {
		effect.Maker = m.w.Incident.ID
		m.w.Effects = append(m.effects(), effect)
	}
}

// resend requests an effect once more, as a new attempt. The effect must be a copy that may change; see effects.
func (m *machine) resend(effect *Effect) {
	effect.Attempt++
	effect.Begun, effect.RequestID, effect.Answered, effect.Operation, effect.Retry = time.Time{}, "", time.Time{}, "", time.Time{}
	m.raise()
	for i := range m.w.Effects {
		if o := &m.w.Effects[i]; o == effect || o.Stage() == StageWanted {
			m.emit(o)
		}
	}
	m.changed = true
}

// raise begins a new epoch. The new fence would refuse the requests that were about to go out under the old one, so they are not
// sent.
func (m *machine) raise() {
	m.w.Epoch++
	m.out = slices.DeleteFunc(m.out, func(e events.Event) bool {
		_, request := e.(interface{ Header() events.Request })
		return request
	})
}

// emit makes the request of an effect under the current epoch.
func (m *machine) emit(effect *Effect) {
	effect.Epoch, effect.Sent = m.w.Epoch, m.now
	if effect.Action == events.ActionAdmit || effect.Action == events.ActionRestart {
		// A repeated request asks for the same attempt. The lease that is read before the write decides.
		if effect.LeaseAttempt == 0 {
			effect.LeaseAttempt = m.w.trainingAttempt()
		}
		m.w.Crew.LeaseAttempt = effect.LeaseAttempt
		effect.Admit = m.w.livesForLease()
		for i := range m.w.Slices {
			if s := m.w.Slices[i]; s.Admission == AwaitsAdmission && effect.admits(s) {
				m.slice(s.Name).Admission = "" // the request covers it with the others
			}
		}
	}
	if effect.Action == events.ActionSave {
		effect.Mode = m.saveMode()
	}
	if effect.Action == events.ActionDelete {
		effect.Lives = m.w.lives(effect.With)
	}
	e := m.w.Request(*effect)
	effect.Digest = events.Digest(e)
	m.out = append(m.out, e)
}

// lives are the incarnations of slices, in their order.
func (w Workload) lives(names []string) []events.Incarnation {
	var all []events.Incarnation
	for _, name := range names {
		all = append(all, w.Slice(name).Incarnation)
	}
	return all
}

// markLeaseMayName notes the doubt that begins once a function has begun to write the lease. Of a slice that it leaves out, the
// lease may still name the last life, or none. Of a slice that it names in another zone than before, the lease may name either
// zone.
func (m *machine) markLeaseMayName(effect Effect) {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		switch named := effect.admits(*s); {
		case named && s.Leased == 0:
			s = m.slice(s.Name)
			s.Leased = effect.LeaseAttempt
			fallthrough
		case named:
			if zone := s.Admitted().Zone; zone != "" && zone != s.Incarnation.Zone {
				m.slice(s.Name).exclude()
			}
		case s.IsReleased() && (s.Leased != 0 || s.Admitted().Known()):
			m.slice(s.Name).exclude()
			m.slice(s.Name).Leased = 0
		}
	}
}

// unmarkLease withdraws the note that the lease may name these lives, because the lease was not written.
func (m *machine) unmarkLease(effect Effect) {
	if effect.Maybe {
		return
	}
	m.leads(func(s Slot) int {
		if s.Leased == effect.LeaseAttempt {
			return 0
		}
		return s.Leased
	})
}

// admits reports whether the requested lease names the current life of a slice.
func (effect Effect) admits(s Slot) bool {
	return slices.ContainsFunc(effect.Admit, func(a events.Admission) bool {
		return a.Slice == s.Name && a.Incarnation.Same(s.Incarnation) && !s.IsReleased()
	})
}

// leads notes for each slice the attempt with which the lease first named it.
func (m *machine) leads(attempt func(Slot) int) {
	for i := range m.w.Slices {
		if s := m.w.Slices[i]; s.Leased != attempt(s) {
			m.slice(s.Name).Leased = attempt(s)
		}
	}
}

// Request is the event that requests an effect. It is made from the document alone, so that the acting function can make it again.
// The slices that the effect names must exist in the document.
func (w Workload) Request(effect Effect) events.Event {
	r := events.Request{
		Schema: events.Schema, Workload: w.ID, Incident: effect.Maker, Epoch: effect.Epoch, Action: effect.Action, Slice: effect.Slice,
		Incarnation: effect.Incarnation, Attempt: effect.Attempt, Expires: effect.expires(), Reason: effect.Reason,
	}
	switch effect.Action {
	case events.ActionSave:
		// Without a mode, a signal may kill a process that does not handle it.
		mode := cmp.Or(effect.Mode, events.SaveNatural)
		return events.CheckpointRequested{Request: r, SaveID: w.Incident.Save.ID, Mode: mode, By: effect.By, Directory: w.Directory}
	case events.ActionVerify:
		e := events.CheckpointRequested{Request: r, SaveID: w.Incident.Save.ID, Since: effect.By, Directory: w.Directory}
		e.MoreThan, e.Any = w.counts()
		return e
	case events.ActionHear:
		return events.CheckpointRequested{Request: r, Directory: w.Directory}
	case events.ActionMaintain:
		return events.CheckpointRequested{Request: r}
	case events.ActionAdmit, events.ActionRestart:
		return events.RecoveryRequested{Request: r, TrainingAttempt: effect.LeaseAttempt, Admit: effect.Admit, Directory: w.Directory}
	case events.ActionStart:
		return events.RecoveryRequested{Request: r}
	case events.ActionDelete, events.ActionCreate:
	}
	s := w.Slice(effect.Slice)
	e := events.RecreateRequested{Request: r, Zone: effect.Zone, Accelerator: effect.Accelerator, Spec: s.Spec, QueuedResource: s.Group, Ordered: effect.Ordered}
	lives := effect.Lives
	if effect.Action == events.ActionDelete && len(lives) != len(effect.With) { // it does not say which
		lives = w.lives(effect.With)
	}
	for i, name := range effect.With {
		m := events.Member{Slice: name, Spec: w.Slice(name).Spec}
		if effect.Action == events.ActionDelete {
			m.Incarnation = lives[i]
		}
		e.With = append(e.With, m)
	}
	return e
}

// verifyPast is the step that a checkpoint must pass to count as the requested save.
func (w Workload) verifyPast() int64 {
	return max(w.Progress.Verified, w.Incident.Save.Step-1)
}

// trainingAttempt is the attempt after the last one that Pitstop has put into a lease, or has read there or in a verdict. What lines tell
// does not count.
func (w Workload) trainingAttempt() int { return max(w.Crew.Confirmed, w.Crew.LeaseAttempt) + 1 }

// countAttempt fixes the attempt that an effect puts into the lease: the one after that in the lease which was read. It stays where the
// lease names it already: an earlier try has written it, or a crew has begun it in the lives that are to be named.
func (m *machine) countAttempt(effect *Effect, l Lease) {
	c := &m.w.Crew
	begun := effect.Action == events.ActionAdmit || l.Incident == effect.Maker && l.Attempt == effect.LeaseAttempt ||
		l.Attempt > c.GaveUp && l.Began.After(m.w.Incident.Since)
	switch {
	case l.Attempt == 0:
		effect.LeaseAttempt = max(effect.LeaseAttempt, l.Left+1)
	case l.Names && begun:
		effect.LeaseAttempt = l.Attempt
	default:
		effect.LeaseAttempt = l.Attempt + 1
	}
	if l.Attempt > 0 {
		m.leaseNames(l.Attempt)
	}
	c.LeaseAttempt = effect.LeaseAttempt
}

// livesForLease are the lives that the next lease will name.
func (w Workload) livesForLease() []events.Admission {
	var a []events.Admission
	for i := range w.Slices {
		if s := &w.Slices[i]; !s.IsReleased() {
			a = append(a, events.Admission{Slice: s.Name, Incarnation: s.Incarnation, Workers: s.ProvenHosts()})
		}
	}
	return a
}

// effect returns an effect to change, or nil.
func (m *machine) effect(a events.Action, slice string) *Effect {
	m.effects()
	return m.w.effect(a, slice)
}

// dropEffects forgets the effects that match. It also takes back the requests for them that this step was about to send.
func (m *machine) dropEffects(so func(Effect) bool) {
	m.out = slices.DeleteFunc(m.out, func(e events.Event) bool {
		request, is := e.(interface{ Header() events.Request })
		if !is {
			return false
		}
		effect := m.asked(request.Header())
		return effect != nil && so(*effect)
	})
	m.w.Effects = slices.DeleteFunc(m.effects(), so)
}

// drop forgets an effect that has ended.
func (m *machine) drop(a events.Action, slice string) {
	m.dropEffects(func(effect Effect) bool { return effect.Action == a && effect.Concerns(slice) })
}

// dropDone forgets an effect that is done for a slice, once it is done for all its slices.
func (m *machine) dropDone(a events.Action, slice string) {
	effect := m.w.effect(a, slice)
	if effect == nil {
		return
	}
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		open := a == events.ActionCreate && s.ToReplace || a == events.ActionDelete && (s.Condition != Gone || s.leftBehind())
		if effect.Concerns(s.Name) && open {
			return
		}
	}
	m.drop(a, slice)
}

// ErrRefused is the reason why a request must not be carried out. The request is acknowledged: Pitstop repeats the requests that it
// still wants.
var ErrRefused = errors.New("refused")

func refuse(c Code, format string, args ...any) error {
	return &RefusedError{Code: c, Text: fmt.Sprintf(format, args...)}
}

// Fence returns the effect that a pointer names; the effect may have been begun before. Fence refuses a pointer whose incident is
// not open, whose epoch is not the current one, or whose effect is not wanted now.
func (w Workload) Fence(p events.Pointer, now time.Time) (Effect, error) {
	switch {
	case w.Incident == nil:
		return Effect{}, refuse(CodeNoIncident, "no incident is open on %s", w.ID)
	case w.Incident.ID != p.Incident:
		return Effect{}, refuse(CodeOtherIncident, "the open incident is %s, not %s", w.Incident.ID, p.Incident)
	case w.Epoch != p.Epoch:
		return Effect{}, refuse(CodeStaleEpoch, "the epoch is %d, not %d", w.Epoch, p.Epoch)
	}
	return w.fenceEffect(p, now)
}

// fenceEffect is the part of the fence that concerns the effect and its slices.
func (w Workload) fenceEffect(p events.Pointer, now time.Time) (Effect, error) {
	effect := w.effect(p.Action, p.Slice)
	switch {
	case effect == nil || effect.Maker != p.Incident || effect.Slice != p.Slice || effect.Epoch != p.Epoch || w.Incident.unwanted(*effect):
		return Effect{}, refuse(CodeNotWanted, "nothing waits for %s any more", p.Action)
	case now.After(effect.expires()):
		return Effect{}, refuse(CodeExpired, "it expired at %s", effect.expires().UTC().Format(time.RFC3339))
	case !effect.Answered.IsZero():
		return Effect{}, refuse(CodeAnswered, "%s was carried out already", p.Action)
	case !effect.Retry.IsZero():
		return Effect{}, refuse(CodeNotDue, "%s is tried again at %s", p.Action, effect.Retry.UTC().Format(time.RFC3339))
	}
	for _, name := range append([]string{effect.Slice}, effect.With...) {
		if name != "" && w.Slice(name) == nil {
			return Effect{}, refuse(CodeNoSlice, "%s has no slice %s", w.ID, name)
		}
	}
	if s := w.Slice(effect.Slice); s != nil && effect.Incarnation.Known() && !effect.Incarnation.Same(s.Incarnation) {
		return Effect{}, refuse(CodeOtherLife, "%s lives as %v, not as %v", effect.Slice, s.Incarnation, effect.Incarnation)
	}
	return *effect, nil
}

// expires is when a request for the effect is refused, even with a valid fence.
func (effect Effect) expires() time.Time { return effect.Sent.Add(RequestFor) }

// unwanted reports whether an effect is kept only because its call may have been made.
func (in *Incident) unwanted(effect Effect) bool {
	return in.Clearing != "" && effect.Action == events.ActionCreate
}

// Allowed says how far a policy allows an action of the open incident now, and which switch limits it. A function asks right before
// its call, so a policy that was tightened after the request counts.
func (w Workload) Allowed(a events.Action, p policy.Policy) (policy.Level, policy.Switch) {
	s := p.Switches
	if w.Incident != nil {
		s = s.Lower(w.Incident.Switches)
	}
	sw := w.governs(a)
	switch {
	case s.WatchOnly():
		return policy.No, sw
	case sw == "":
		return policy.Yes, sw
	case s.Level(sw) == policy.Ask && w.Incident != nil && w.Incident.covers(a):
		return policy.Yes, sw
	}
	return s.Level(sw), sw
}

// Limit names who holds a switch at its level for the open incident; empty where nobody limits it, or nobody is known.
func (w Workload) Limit(s policy.Switch, p policy.Policy) string {
	if in := w.Incident; in != nil && in.Switches.Level(s) < p.Switches.Level(s) {
		return strings.TrimSuffix("what held at the opening, "+in.Limits[s], ", ")
	}
	return p.Limits[s]
}

// Forbids says in words that a switch does not allow something, and who limits it.
func (w Workload) Forbids(s policy.Switch, l policy.Level, p policy.Policy) string {
	if s == "" {
		return "the policy allows nothing any more"
	}
	text := "the switch " + string(s) + " is " + l.String()
	if who := w.Limit(s, p); who != "" {
		text += ", limited by " + who
	}
	return text
}

// no is the text for a switch that does not allow the next step.
func (m *machine) no(s policy.Switch) string { return m.w.Forbids(s, policy.No, m.p) }

// governs is the switch of an action; empty for an action that only completes an allowed one.
func (w Workload) governs(a events.Action) policy.Switch {
	switch a {
	case events.ActionSave:
		return policy.RequestCheckpoint
	case events.ActionMaintain:
		return policy.EarlyMaintenance
	case events.ActionRestart:
		return policy.Restart
	case events.ActionStart:
		return policy.StartStopped
	case events.ActionDelete, events.ActionCreate:
		if w.Incident != nil && w.phase() == Clearing {
			return "" // Pitstop's own leftovers, in which training never ran
		}
		for i := range w.Slices {
			if s := &w.Slices[i]; !s.Reclaimable && s.ToReplace {
				return policy.RecreateNonSpot
			}
		}
		return policy.Recreate
	case events.ActionAdmit, events.ActionVerify, events.ActionHear:
	}
	return ""
}

// covers reports whether an action was approved: approving early maintenance also approves the save before it.
func (in *Incident) covers(a events.Action) bool {
	return in.Approved == questionFor(a) || a == events.ActionSave && in.Approved == events.ActionMaintain
}

// questionFor is the question behind an action: deletion and creation are one question.
func questionFor(a events.Action) events.Action {
	if a == events.ActionCreate {
		return events.ActionDelete
	}
	return a
}

// begun finds the effect that a function's evidence concerns.
func (m *machine) begun(r events.Request) *Effect {
	if effect := m.asked(r); effect != nil && effect.Stage() != StageRefused {
		return effect
	}
	return nil
}

// asked finds the effect whose last attempt carried a request, even if that attempt has failed since.
func (m *machine) asked(r events.Request) *Effect {
	effect := m.w.effect(r.Action, r.Slice)
	if effect == nil || effect.Maker != r.Incident || effect.Epoch != r.Epoch || effect.Attempt != r.Attempt {
		return nil
	}
	return effect
}

// intended saves the intent before the call. From here on the outcome is unknown until it is answered. The instance that saved the
// intent must make a call that creates or deletes a slice. Another instance takes the call over once the first one would be too
// late.
func (m *machine) intended(e Intended) {
	effect := m.begun(e.Request)
	if effect == nil || m.w.Incident.unwanted(*effect) || !effect.Begun.IsZero() && effect.UnderWay(m.now) {
		return
	}
	if !effect.Begun.IsZero() && !effect.exclusive() {
		m.record(*effect) // another delivery may call once more
		m.effect(effect.Action, effect.Slice).Maybe = true
		return
	}
	if m.thinksAgain(effect) {
		return
	}
	effect = m.effect(effect.Action, effect.Slice)
	effect.Begun, effect.RequestID = m.now, e.RequestID
	m.record(*effect)
	if effect.LeaseAttempt > 0 {
		m.countAttempt(effect, e.Lease)
		m.markLeaseMayName(*effect)
	}
	if effect.Action == events.ActionAdmit {
		m.markAdopted()
	}
	if effect.Action == events.ActionCreate {
		m.inc().Created = true
		m.reshapes(*effect)
	}
	if m.w.Incident.Held != "" {
		m.inc().Held, m.inc().HeldCode = "", ""
	}
}

// exclusive reports whether the call of an effect must not be made twice: nobody could tell its result from that of another
// creation or deletion in between. The other calls only write the same content again.
func (effect Effect) exclusive() bool {
	return effect.Action == events.ActionCreate || effect.Action == events.ActionDelete
}

// UnderWay reports whether an instance has begun such a call and may still be about to make it.
func (effect Effect) UnderWay(now time.Time) bool {
	return effect.exclusive() && !effect.Begun.IsZero() && now.Sub(effect.Begun) < CallFor
}

// TooLate reports whether the instance that began such a call must not make it any more.
func (effect Effect) TooLate(now time.Time) bool {
	return effect.exclusive() && now.Sub(effect.Begun) > CallWithin
}

// answered takes the answer to the call of an effect.
func (m *machine) answered(e Answered) {
	m.callAnswered(e)
	effect := m.begun(e.Request)
	if effect == nil || !effect.Answered.IsZero() || e.NoCall == Unbegun && effect.UnderWay(m.now) { // another instance makes the call, and answers
		return
	}
	effect = m.effect(effect.Action, effect.Slice)
	if e.Failure != nil {
		m.line(LineCame, e.Text, e.Failure.Message)
		m.coded(e.Failure.Reason())
		m.failed(effect, *e.Failure)
		return
	}
	again := effect.Failures > 0
	effect.Answered, effect.Operation = m.now, e.Operation
	if e.Operation == "" { // else its end shows whether it has failed once more
		effect.Failures, effect.Barred = 0, time.Time{}
	}
	if e.Text != "" {
		m.line(LineCame, e.Text, "")
	}
	m.accepted(effect, again)
}

// accepted goes on after the call of an effect that was not refused. Again says that it had failed before.
func (m *machine) accepted(effect *Effect, again bool) {
	if effect.LeaseAttempt > 0 {
		m.w.Crew.Confirmed = effect.LeaseAttempt
	}
	switch effect.Action {
	case events.ActionSave:
		m.inc().Save.Left = m.now
	case events.ActionMaintain:
		m.maintained()
	case events.ActionAdmit:
		if m.w.Crew.Finished {
			m.admittedFinished(*effect)
			return
		}
		m.leased(*effect, "the lease names the new slice")
	case events.ActionRestart:
		m.leased(*effect, "the lease names the next attempt")
	case events.ActionCreate:
		if s := m.w.Slice(effect.Slice); m.phase() == PhaseCreating && !(again && s.Condition == Creating) { // its time counts from its first answer
			m.renew() // the wait for capacity is over
		}
	case events.ActionDelete, events.ActionVerify, events.ActionHear, events.ActionStart:
		// The API's own reading shows when it has happened.
	}
}

// admittedFinished ends the incident once the slices of a finished training are admitted: its owner may use them as they like, and
// nobody waits for a step.
func (m *machine) admittedFinished(effect Effect) {
	m.markAllAdmitted(effect.admits)
	if m.w.Crew.FinishedAt.After(m.w.Incident.Opened) {
		m.resumed(ByStep, "the training is finished")
		return
	}
	m.finish(Released, "", CodeFinished, "the lease names the new slice; the training was finished before", "")
}

// leased goes on once the lease is known to name the lives that may run.
func (m *machine) leased(effect Effect, why string) {
	m.w.LeaseDoubted = time.Time{}
	m.markAllAdmitted(effect.admits)
	m.resume(why)
}

// operationEnded takes the end of one of Pitstop's operations. Success proves nothing by itself: the slice is read.
func (m *machine) operationEnded(e Ended) {
	if m.w.Incident == nil || e.Operation == "" {
		return
	}
	m.operationFailed(e)
	for i := range m.w.Effects {
		if m.w.Effects[i].Operation != e.Operation {
			continue
		}
		effect := &m.effects()[i]
		effect.Operation = ""
		if e.Failure != nil {
			m.line(LineCame, string(effect.Action)+" of "+effect.sliceList()+" in "+effect.Place().String()+" failed", e.Failure.Message)
			m.coded(e.Failure.Reason())
			m.failed(effect, *e.Failure)
		}
		return
	}
}

// failed decides what a failure means for its effect.
func (m *machine) failed(effect *Effect, f Failure) {
	m.noteFailure(effect, f)
	switch deletes := effect.Action == events.ActionDelete; {
	case deletes && f.Class == NotInState:
		m.waitForState(effect, f.Message)
	case f.Class == Busy && m.groupGrew(effect):
		m.decideDeletionAnew(effect, f.Message)
	case m.phase() == Clearing:
		m.failedClearing(effect, f)
	case effect.Action == events.ActionSave && (f.Class == Permission || f.Class == Invalid):
		m.noSave(SaveUndelivered, "the request could not be delivered: "+f.Message)
	case effect.Action == events.ActionSave:
		effect.Failures++
		effect.Retry = m.now.Add(backoff(effect.Failures)) // there is time until the phase's deadline, and no other bound
	case effect.Action == events.ActionMaintain:
		m.notMaintained(effect, f)
	default:
		m.failedFor(effect, f)
	}
}

// noteFailure keeps a failure on its effect, and notes whether the call may have taken effect all the same.
func (m *machine) noteFailure(effect *Effect, f Failure) {
	effect.LastFailure, effect.LastCode = f.Message, f.Reason()
	if f.Code == CodeLeaseDoubted {
		m.w.LeaseDoubted = m.now
	}
	if f.Class != Transient || effect.Operation == "" && !effect.Answered.IsZero() {
		// The provider has refused: this call cannot take effect any more. A transient failure of the call itself leaves that open.
		effect.Begun, effect.RequestID = time.Time{}, ""
		m.unmarkLease(*effect)
	} else if !effect.Begun.IsZero() {
		effect.Maybe = true
	}
	effect.Answered = time.Time{}
}

// failedFor goes on by the class of a failure: with another zone, with another try, or with a person.
func (m *machine) failedFor(effect *Effect, f Failure) {
	if m.moves(*effect) && (f.Class == Invalid || f.Class == NotFound) {
		f.Class = CannotMove // the order was valid in its own zone: this zone lacks something that it needs
	}
	switch f.Class {
	case Stockout, Quota, NoQuota, ReservationFull, WrongZone, CannotMove, OtherRegion:
		if effect.Action == events.ActionCreate {
			m.zoneRefused(*effect, f)
			return
		}
	case Permission:
		if !m.othersDelete(effect) {
			m.escalate(f.Reason(), string(effect.Action)+" is not permitted: "+f.Message, "grant the function's account what it asks for, then start the recovery again by hand")
			return
		}
	case Invalid:
		m.refusedAsWrong(effect, f)
		return
	case NotFound, Exists:
		// The change may have happened already: the next reading shows it.
		m.inc().Look = true
	case Transient, Busy, NotInState:
		m.rejoins(effect)
	}
	m.retryLater(effect, f.Message)
}

// refusedAsWrong leaves a failure to a person where another try would change nothing.
func (m *machine) refusedAsWrong(effect *Effect, f Failure) {
	switch {
	case f.Code == CodeLeaseDoubted:
		m.escalate(f.Code, "the lease was not written: "+f.Message,
			"see who wrote it, for it may be somebody else's; if nobody needs it, pitstop retry "+m.w.Name+" replaces it")
	case f.Code == CodeForeign:
		m.escalate(f.Code, "the lease was not written: "+f.Message, "settle whose "+m.w.Directory+" is, then pitstop retry "+m.w.Name)
	case effect.Action == events.ActionStart:
		m.escalate(f.Reason(), "the start was refused as wrong: "+f.Message, m.byHandStart())
	default:
		m.escalate(f.Reason(), string(effect.Action)+" was refused as wrong: "+f.Message, "mend the specification and recreate the slice by hand")
	}
}

// othersDelete reports whether another instance is calling the deletion of another slice right now. The incident must not end in
// the middle of that call.
func (m *machine) othersDelete(effect *Effect) bool {
	return m.w.has(func(o Effect) bool {
		return o.Action == events.ActionDelete && !o.Concerns(effect.Slice) && o.Answered.IsZero() && o.Operation == "" && o.UnderWay(m.now)
	})
}

// waitForState waits for the slice to leave a state that forbids deletion. A time limit ends the wait, not a number of tries.
func (m *machine) waitForState(effect *Effect, why string) {
	if effect.Barred.IsZero() {
		effect.Barred = m.now
		m.decided("wait up to "+events.Span(BarredFor)+" for "+m.w.holder(effect.Slice)+" to leave its state", "it cannot be deleted in it: "+why)
		m.coded(NotInState.Code())
		if until := m.now.Add(BarredFor); m.w.Incident.Deadline.Before(until) {
			m.inc().Deadline = until
		}
	}
	effect.Retry = m.now.Add(BarredEvery)
}

// holder names the resource whose deletion deletes a slice.
func (w Workload) holder(slice string) string {
	if s := w.Slice(slice); s.Group != "" {
		return w.group(s.Group)
	}
	return w.noun(slice)
}

// retryLater schedules another try of an effect, up to its bound.
func (m *machine) retryLater(effect *Effect, why string) {
	effect.Failures++
	if effect.Failures >= MaxFailures {
		m.escalate(CodeRetries, fmt.Sprintf("%s failed %d times in a row, last: %s", effect.Action, effect.Failures, why), "look at the message, then start the recovery again by hand")
		return
	}
	effect.Retry = m.now.Add(backoff(effect.Failures))
}

// askedWithin is the time within which a held request is sent again after its hold ends: the next tick sends it.
const askedWithin = 2 * time.Minute

// held waits with an effect that may not be begun now. Waiting is no failure.
func (m *machine) held(e Held) {
	m.notCalled(e)
	effect := m.begun(e.Request)
	if effect == nil || !effect.Answered.IsZero() {
		return
	}
	effect = m.effect(effect.Action, effect.Slice)
	if !m.mayHaveCalled(e.Request) {
		effect.Begun, effect.RequestID = time.Time{}, ""
		m.unmarkLease(*effect)
	}
	effect.Retry = m.now.Add(time.Minute)
	if e.Until.After(effect.Retry) && e.Code != CodePaused { // a person may lift a pause at any time
		effect.Retry = e.Until
	}
	m.hold(e.Code, e.Why, effect.Retry.Add(askedWithin))
}

// forbidden ends an effect that the policy no longer allows.
func (m *machine) forbidden(e Forbidden) {
	effect := m.begun(e.Request)
	if effect == nil || m.phase() == Clearing && e.Request.Action == events.ActionCreate {
		return
	}
	if m.othersDelete(effect) {
		effect = m.effect(effect.Action, effect.Slice)
		effect.Begun, effect.RequestID, effect.Retry = time.Time{}, "", m.now.Add(CallFor)
		return
	}
	if m.watchesAgain(effect) {
		return
	}
	would := m.plannedCalls(m.w.governs(effect.Action), "", *effect)
	if effect.Action == events.ActionDelete {
		m.effect(effect.Action, effect.Slice).Begun = time.Time{} // nobody calls it any more
	}
	if m.watchOnly() && m.phase() != Clearing {
		m.keepCalls(would...)
		m.finish(Observed, "", e.Code, e.Why, "")
		return
	}
	if m.level(m.w.governs(e.Request.Action)) == policy.Ask {
		m.uncharge(questionFor(e.Request.Action))
		m.ask(questionFor(e.Request.Action))
		return
	}
	if p := m.phase(); p == Saving || p == Maintaining || p == Window {
		m.drop(e.Request.Action, e.Request.Slice)
		if p != Window {
			m.enterWindow(e.Code, e.Why) // the maintenance comes all the same
		}
		return
	}
	m.keepCalls(would...)
	m.escalate(e.Code, e.Why, "do by hand what the policy forbids now: "+string(e.Request.Action))
}

// uncharge gives the charge of an action back that is dropped, or that a person is asked about first.
func (m *machine) uncharge(a events.Action) {
	in, b := m.inc(), &m.w.Budgets
	switch {
	case a == events.ActionDelete && in.Payer == Nobody:
	case (a == events.ActionRestart || a == events.ActionDelete && in.Payer == Training) && in.Charged > 0:
		in.Charged--
		b.Restarts = max(0, b.Restarts-1)
		if n := len(m.w.Crew.Restarted); n > 0 {
			m.w.Crew.Restarted = m.w.Crew.Restarted[:n-1]
		}
	case a == events.ActionDelete && in.Payer == Infrastructure:
		b.Recreates = max(0, b.Recreates-1)
	}
}

// ask waits for a person's approval, for as long as it takes.
func (m *machine) ask(a events.Action) {
	m.enter(Approving)
	m.inc().Asked = a
	why, code := "the policy says ask", CodePolicyAsk
	if bare := m.bare(); a == events.ActionDelete && bare != "" {
		why, code = bare+" has no start-up script: what comes back is an empty machine, and nothing trains there by itself", CodeEmptyMachine
	}
	m.decided("wait for approval: "+m.asks(a), why)
	m.coded(code)
}

func (m *machine) asks(a events.Action) string {
	switch a {
	case events.ActionDelete:
		return "recreate " + strings.Join(m.toBeReplaced(), ", ")
	case events.ActionMaintain:
		if m.w.Incident.saved(m.now) {
			return "start the maintenance now"
		}
		return "save, and start the maintenance now"
	case events.ActionRestart:
		return "restart the training"
	case events.ActionStart:
		return "start " + strings.Join(m.startable(), ", ")
	default:
		return string(a)
	}
}
