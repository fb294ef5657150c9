//go:build !heart

package incident

import (
	"time"

	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// View is what is shown of a workload under its policy. What would follow is left out where the policy cannot be read.
func View(p policy.Policy, w Workload, now time.Time) view.Workload {
	v := w.Shown(now)
	if p.Unreadable != "" {
		return v
	}
	if w.Incident != nil {
		if f := w.AtDeadline(p); len(f.Decisions) > 0 || f.Outcome != "" {
			v.AtDeadline = &f
		}
		return v
	}
	for _, s := range v.Slices {
		if s.Condition == Ready && !s.Released && !v.Training.Finished {
			v.IfLost = &view.Loss{Slice: s.Name, Plan: w.IfLost(p, s.Name, now)}
			break
		}
	}
	return v
}

// Shown is what is shown of a workload, without what would follow under its policy.
func (w Workload) Shown(now time.Time) view.Workload {
	v := view.Workload{
		ID: w.ID, Project: w.Project, Name: w.Name, Provider: w.Provider, Label: w.Label, Directory: w.Directory, Seen: w.Seen,
		Slices: make([]view.Slice, len(w.Slices)), Training: w.training(), Pause: w.Pause, Orders: w.Orders, Ended: w.Ended, Due: w.Due(), Wait: w.wait(),
		Unsent: len(w.Outbox), Epoch: w.Epoch, BudgetsSince: w.Budgets.Since, WaitTold: w.WaitTold,
	}
	for i := range w.Slices {
		s := &w.Slices[i]
		v.Slices[i] = s.shown()
		v.Slices[i].Noun, v.Slices[i].Look = w.Words().Slice, w.Words().Describe+" "+s.Name+inPlace(s.Zone)
	}
	for _, effect := range w.Effects {
		v.Requests = append(v.Requests, effect.shown(now))
	}
	if w.Incident != nil {
		v.Incident = new(w.ShownIncident(*w.Incident, now))
	}
	if w.Closed != nil {
		v.Closed = new(w.ShownIncident(*w.Closed, now))
	}
	return v.Judged(w.Question())
}

// wait is what the open incident waits for.
func (w Workload) wait() *view.Wait {
	in := w.Incident
	if in == nil {
		return nil
	}
	v := &view.Wait{For: in.Phase, Since: in.Since, Until: in.Deadline, Held: in.Held, HeldCode: in.HeldCode}
	if in.Phase == PhaseCreating && in.Reminded.After(in.WaitingSince) {
		v.ToldSince = in.WaitingSince
	}
	for _, effect := range w.Effects {
		v.Tries = max(v.Tries, effect.Failures)
	}
	return v
}

func (s Slot) shown() view.Slice {
	v := view.Slice{
		Name: s.Name, Zone: s.Zone, Condition: s.Condition, State: s.State, Since: s.Since, WaitingSince: s.WaitingSince(), Incarnation: s.Incarnation,
		Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Reclaimable: s.Reclaimable, Legacy: s.Legacy, Group: s.Group, Spec: s.Spec,
		Used: s.Used, Spoke: s.Spoke, StoppedBy: s.Stop.By, Suspected: s.Abuse.Suspected, Claims: s.Claims, Admitted: s.isAdmitted(), Awaits: s.Admission == AwaitsAdmission, Released: s.IsReleased(),
	}
	if s.Reshaped() {
		v.Ordered = s.own().Accelerator
	}
	if n := s.Notice; n.Status != "" {
		v.LastNotice = &view.Notice{Notice: n.Notice, End: n.End, Due: n.Due, Declined: n.Declined, Deaf: n.Deaf}
	}
	return v
}

func (w Workload) training() view.Training {
	c, p := w.Crew, w.Progress
	v := view.Training{
		Seen: c.Seen, Spoke: later(later(c.Seen, c.Started), later(p.At, p.Stepped)), Attempt: c.Attempt, Started: c.Started, Exited: c.Exited, GaveUp: c.GaveUp,
		Finished: c.Finished, FinishedAt: c.FinishedAt, Claimed: c.Claim.Finished, Step: p.Step, StepAt: p.At, Proven: p.Proven, SteppedAt: later(p.At, p.Stepped),
		QuietSeconds: p.GapSeconds, Checkpoint: p.CheckpointStep, CheckpointAt: p.CheckpointAt, Verified: p.Verified, VerifiedAt: p.VerifiedAt,
		VerifiedURI: p.VerifiedURI, SaveSeconds: w.Pace.Saves, SaveMode: w.Pace.Mode, GapSeconds: w.Pace.Gaps,
	}
	for i := range w.Slices {
		v.Spoke = later(v.Spoke, later(w.Slices[i].Spoke, w.Slices[i].Heard.Seen))
	}
	return v
}

func (effect Effect) shown(now time.Time) view.Request {
	v := view.Request{
		Incident: effect.Maker, Reason: effect.Reason, Action: effect.Action, Slice: effect.Slice, With: effect.With, Zone: effect.Zone, Epoch: effect.Epoch,
		Attempt: effect.Attempt, Sent: effect.Sent, Stage: effect.Stage(), Begun: effect.Begun, RequestID: effect.RequestID, At: effect.Sent, Retry: effect.Retry,
		Failures: effect.Failures, Failure: effect.LastFailure, Code: effect.LastCode, UnderWay: effect.UnderWay(now),
	}
	switch v.Stage {
	case StageAccepted, StageDone:
		v.At = effect.Answered
	case StageBegun:
		v.At = effect.Begun
	case StageWanted, StageRefused:
	}
	return v
}

// ShownIncident is what is shown of an incident of the workload, open or closed. Its cost counts the chips that the workload has now.
func (w Workload) ShownIncident(in Incident, now time.Time) view.Incident {
	v := view.Incident{
		ID: in.ID, Cause: in.Cause, Opened: in.Opened, Closed: in.Closed, Phase: in.Phase, Since: in.Since, Deadline: in.Deadline, Policy: in.Policy,
		Switches: in.Switches, Limits: in.Limits, Troubles: in.Troubles, Calls: in.Calls, CallsLeftOut: in.CallsLeftOut, Zones: in.Zones, Down: in.Down,
		Asked: in.Asked, Granted: in.Granted, OnlyWatched: in.OnlyWatched, Retried: in.Retried, Attempt: in.BaseAttempt, Clears: in.Clearing, Outcome: in.Outcome,
		ConfirmedBy: in.ConfirmedBy, Reason: in.Reason, Code: in.Code, Advice: in.Advice, Would: in.Would, PlannedCalls: in.PlannedCalls,
		Timeline: in.Timeline, LeftOut: in.LeftOut, Revision: in.Revision, Error: view.Exit{Attempt: in.Error.Attempt, Exit: in.Error.Exit}, Cost: view.Cost{ChargedTo: in.Account(), Restarts: in.Charged, ChipHourPrice: in.ChipHourPrice},
	}
	if s := in.Save; !s.Requested.IsZero() {
		v.Save = view.Save{ID: s.ID, Requested: s.Requested, Verified: s.Verified, Result: s.Result, Failed: s.Failed}
	}
	if in.Down.IsZero() {
		return v
	}
	end := in.Closed
	if end.IsZero() {
		end = now
	}
	v.Cost.AwaySeconds = end.Sub(in.Down).Seconds()
	for i := range w.Slices {
		s := in.Lost(w.Slices[i])
		v.Cost.Slices = append(v.Cost.Slices, view.IdleSlice{Slice: s.Name, Accelerator: s.Accelerator, Chips: s.Chips, Reclaimable: s.Reclaimable})
		v.Cost.ChipHours += v.Cost.Away().Hours() * float64(s.Chips)
	}
	return v
}

// WouldHave lists for people the steps that Pitstop would have taken under a policy that allowed them.
func (in Incident) WouldHave() []string {
	return view.Incident{Would: in.Would, PlannedCalls: in.PlannedCalls}.WouldHave()
}
