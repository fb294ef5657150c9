package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// RequestID is the identifier of a request's call to the provider: a redelivered request makes the same call.
func RequestID(r events.Request, zone string) string {
	name := r.Workload + "\x00" + r.Incident + "\x00" + strconv.FormatInt(r.Epoch, 10) + "\x00" + r.Slice + "\x00" + string(r.Action) +
		"\x00" + zone + "\x00" + strconv.Itoa(r.Attempt)
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
}

// Check reads the workload of a request and checks the fence. A request that is no longer wanted, or not yet known, is
// refused with fault.Ignored.
func (a *Advancer) Check(ctx context.Context, p events.Pointer) (incident.Workload, incident.Effect, error) {
	w, _, err := a.Ledger.Workload(ctx, p.Workload)
	if errors.Is(err, ErrNotFound) {
		return w, incident.Effect{}, a.refuse(ctx, p, reason.CodeUnknownWorkload, "the workload is not in the ledger")
	}
	if err != nil {
		return w, incident.Effect{}, err
	}
	t, err := w.Fence(p, a.Now())
	if err != nil {
		return w, t, a.refuse(ctx, p, codeOf(err), err.Error())
	}
	return w, t, nil
}

// Begin is the last look before a mutating call, on a request that was resolved: the fence, the policy, the intent, the
// label that the policy was found by, the pause, in this order. It returns the workload with the intent saved. Every reason
// not to call now is stored if it matters, and returned as fault.Ignored, because the request is settled. The request is
// left for redelivery if another delivery may be about to call, or if this delivery has become too slow: a decision made
// between the intent and the call would go unseen.
func (a *Advancer) Begin(ctx context.Context, r events.Request, requestID string) (incident.Workload, error) {
	return a.begin(ctx, evidence.Intended{Request: r, RequestID: requestID})
}

// BeginLease is Begin for a call that writes the lease. The intent fixes the attempt that the lease is to name, from what stands beside
// the checkpoints; a redelivery keeps that attempt, unless the lease has come to it by then. The effect that is returned names it.
func (a *Advancer) BeginLease(ctx context.Context, r events.Request, requestID string, read evidence.Lease) (incident.Workload, incident.Effect, error) {
	w, err := a.begin(ctx, evidence.Intended{Request: r, RequestID: requestID, Lease: read})
	if err != nil {
		return w, incident.Effect{}, err
	}
	t, err := w.Fence(r.Pointer(), a.Now())
	if err != nil {
		return w, t, a.refuse(ctx, r.Pointer(), codeOf(err), err.Error())
	}
	return w, t, nil
}

func (a *Advancer) begin(ctx context.Context, e evidence.Intended) (incident.Workload, error) {
	r := e.Request
	w, t, err := a.Check(ctx, r.Pointer())
	if err != nil {
		return w, err
	}
	if t.UnderWay(a.Now()) {
		return w, underWay(r, t.Begun)
	}
	label := w.Label
	p := w.Limited(a.Policies.For(ctx, label))
	if p.Unreadable != "" {
		return w, a.hold(ctx, r, reason.CodePolicyUnreadable, "the policy cannot be read: "+p.Unreadable, time.Time{}, false)
	}
	e.Origin = a.origin()
	w, mine, err := a.AdvanceChanged(ctx, w.ID, e)
	if err != nil {
		return w, err
	}
	t, err = w.Fence(r.Pointer(), a.Now())
	if err != nil { // the last look found a reason against it
		return w, a.refuse(ctx, r.Pointer(), codeOf(err), err.Error())
	}
	if t.Begun.IsZero() { // it was decided anew
		return w, a.refuse(ctx, r.Pointer(), reason.CodeNotWanted, "it is not wanted any more")
	}
	if t.RequestID != e.RequestID {
		return w, a.refuse(ctx, r.Pointer(), reason.CodeOvertaken, "another delivery was faster")
	}
	if !mine && t.UnderWay(a.Now()) {
		return w, underWay(r, t.Begun)
	}
	if w.Label != label {
		return w, a.Hold(ctx, r, reason.CodeOvertaken, fmt.Sprintf("the label %s is now %q", events.LabelPolicy, w.Label), time.Time{})
	}
	if err := a.paused(ctx, w, r); err != nil {
		return w, err
	}
	if now := a.Now(); t.TooLate(now) {
		return w, fault.Busy(fmt.Errorf("%s of %s was begun %s ago, so it is too late to call", r.Action, r.Workload, events.Span(now.Sub(t.Begun))))
	}
	return w, nil
}

// paused holds a call while a pause holds everything or its workload, and says so.
func (a *Advancer) paused(ctx context.Context, w incident.Workload, r events.Request) error {
	pause, err := a.Ledger.Pause(ctx)
	if err != nil {
		return err
	}
	for _, held := range []*evidence.Pause{pause, w.Pause} {
		if held.Holds(a.Now()) {
			return a.Hold(ctx, r, reason.CodePaused, "paused by "+held.By, held.Until)
		}
	}
	return nil
}

func underWay(r events.Request, begun time.Time) error {
	return fault.Busy(fmt.Errorf("%s of %s was begun at %s, and may still be running", r.Action, r.Workload, begun.UTC().Format(time.RFC3339)))
}

// BeginDestructive is Begin for a call that the brake counts: it takes a slot first, and gives the slot back if the call was
// not begun. It returns the ID that the call must carry. read is the time of the reading that the call rests on. A reading taken
// while another delivery may have been calling proves nothing about that call.
func (a *Advancer) BeginDestructive(ctx context.Context, r events.Request, read time.Time, zone string, limits Limits) (incident.Workload, string, error) {
	id, now := RequestID(r, zone), a.Now()
	w, t, err := a.Check(ctx, r.Pointer())
	if err != nil {
		return w, id, err
	}
	if t.UnderWay(read) {
		return w, id, underWay(r, t.Begun)
	}
	err = a.Ledger.Take(ctx, w.Project, zone, id, limits, now)
	if errors.Is(err, ErrBraked) {
		a.Log.WarnContext(ctx, "brake holds", "workload", w.ID, "incident", r.Incident, "zone", zone, "action", string(r.Action), "reason", err.Error(), "code", string(reason.CodeBraked))
		return w, id, a.hold(ctx, r, reason.CodeBraked, err.Error(), NextHour(now), false)
	}
	if err != nil {
		return w, id, err
	}
	w, err = a.begin(ctx, evidence.Intended{Request: r, RequestID: id})
	if !fault.IsIgnored(err) || t.RequestID == id {
		return w, id, err // an earlier delivery began it, and may have made the call
	}
	// The reason against the call has also taken back the intent, unless another delivery is calling: the ledger knows.
	w, _, failed := a.Ledger.Workload(ctx, r.Workload)
	if failed == nil && !begun(w, id) {
		failed = a.Ledger.GiveBack(ctx, w.Project, zone, id, now)
	}
	return w, id, errors.Join(err, failed)
}

// begun reports whether a call of this ID was begun.
func begun(w incident.Workload, id string) bool {
	return slices.ContainsFunc(w.Effects, func(e incident.Effect) bool { return e.RequestID == id && !e.Begun.IsZero() })
}

// Refused gives back the slot of a destructive call that the provider refused, because the call destroyed nothing. If the
// failure leaves that open, the slot stays taken.
func (a *Advancer) Refused(ctx context.Context, w incident.Workload, zone, id string, f *evidence.Failure) error {
	if f.Class == reason.Transient {
		return nil
	}
	return a.Ledger.GiveBack(ctx, w.Project, zone, id, a.Now())
}

// Hold stores why a request waits that was begun but not called, and returns that reason as fault.Ignored.
func (a *Advancer) Hold(ctx context.Context, r events.Request, c reason.Code, why string, until time.Time) error {
	return a.hold(ctx, r, c, why, until, true)
}

func (a *Advancer) hold(ctx context.Context, r events.Request, c reason.Code, why string, until time.Time, begun bool) error {
	if _, err := a.Advance(ctx, r.Workload, evidence.Held{Origin: a.origin(), Request: r, Code: c, Why: why, Until: until, Begun: begun}); err != nil {
		return err
	}
	return fault.Ignored(c, "%s held: %s", r.Action, why)
}

// Answer stores the result of a call. It does so even if the caller has left, because the call was made.
func (a *Advancer) Answer(ctx context.Context, r events.Request, operation, text string, failure *evidence.Failure) (incident.Workload, error) {
	return a.Conclude(ctx, evidence.Answered{Request: r, Operation: operation, Failure: failure, Text: text})
}

// Conclude is Answer for a result of no call or of several calls. A reason that kept one delivery from its call says nothing
// about the call of another delivery: then the request is left for redelivery.
func (a *Advancer) Conclude(ctx context.Context, e evidence.Answered) (incident.Workload, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	e.Origin = a.origin()
	w, err := a.Advance(ctx, e.Request.Workload, e)
	if err != nil || e.NoCall != evidence.Unbegun || e.Failure == nil {
		return w, err
	}
	if t, err := w.Fence(e.Request.Pointer(), a.Now()); err == nil && t.UnderWay(a.Now()) {
		return w, underWay(e.Request, t.Begun)
	}
	return w, nil
}

const answerTimeout = 30 * time.Second

func (a *Advancer) origin() evidence.Origin {
	return evidence.Origin{Time: a.Now(), Rank: events.RankReading}
}

// codeOf is the reason why a fence refuses.
func codeOf(err error) reason.Code {
	var refused *incident.RefusedError
	if !errors.As(err, &refused) {
		return reason.CodeNotWanted
	}
	return refused.Code
}

func (a *Advancer) refuse(ctx context.Context, p events.Pointer, c reason.Code, why string) error {
	a.Log.InfoContext(ctx, "request refused", "workload", p.Workload, "incident", p.Incident, "epoch", p.Epoch,
		"action", string(p.Action), "slice", p.Slice, "reason", why, "code", string(c))
	return fault.Ignored(c, "%s refused: %s", p.Action, why)
}
