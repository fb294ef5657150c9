package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// View is what is shown of a workload under its policy. What would follow is left out where the policy cannot be read.
func View(p policy.Policy, w Workload, now time.Time) view.Workload {
	v := w.Shown(now)
	if p.Unreadable != "" {
		return v
	}
	v.Left, v.Spending = w.LeftZones(p, now), w.Spending(p, now)
	if w.Incident != nil {
		if f := w.AtDeadline(p); len(f.Decisions) > 0 || f.Outcome != "" {
			v.AtDeadline = &f
		}
		return v
	}
	for _, s := range v.Slices {
		if s.Condition == evidence.Ready && !s.Released && !v.Training.Finished {
			v.IfLost = &view.Loss{Slice: s.Name, Plan: w.IfLost(p, s.Name, now)}
			break
		}
	}
	return v
}

// Shown is what is shown of a workload, without what would follow under its policy.
func (w Workload) Shown(now time.Time) view.Workload {
	v := view.Workload{
		ID: w.ID, Project: w.Project, Name: w.Name, Provider: w.Provider, Label: w.Label, Directory: w.Directory, Seen: w.Seen, Slices: make([]view.Slice, len(w.Slices)),
		Training: w.shownTraining(), Pause: w.Pause, Orders: w.Orders, Ended: w.Ended, Due: w.Due(), Wait: w.shownWait(now), Unsent: len(w.Outbox), Epoch: w.Epoch,
		BudgetsSince: w.spentSince(), WaitTold: w.waitTold(),
	}
	if since, usual := w.silence(); w.expectsSteps() && now.Sub(since) >= max(bounds.QuietFor, usual/2) {
		v.Training.HangsAt = since.Add(usual)
	}
	d := diagnose(policy.Policy{}, &w, now)
	for i := range d.slots {
		v.Slices[i] = w.shownSlice(d.slots[i].Slot)
		v.Slices[i].Why = d.whyNothing(&d.slots[i]).String()
	}
	for i := range w.Effects {
		if x := &w.Effects[i]; x.Attempt > 0 && !x.Dropped() {
			v.Requests = append(v.Requests, x.shown(w.Incident.ID, now))
		}
	}
	if w.Incident != nil {
		v.Incident = new(w.ShownIncident(*w.Incident, now))
	}
	if w.Closed != nil {
		v.Closed = new(w.ShownIncident(*w.Closed, now))
	}
	return v.Judged(w.Question())
}

// shownWait is what the open incident waits for. It names the hold that goes on now.
func (w *Workload) shownWait(now time.Time) *view.Wait {
	in := w.Incident
	if in == nil {
		return nil
	}
	v := &view.Wait{For: in.Status.Label, Since: in.Status.Since, Until: in.Status.Until}
	if n := len(w.Holds); n > 0 && now.Before(w.Holds[n-1].Until) {
		v.Held, v.HeldCode = w.Holds[n-1].Why, w.Holds[n-1].Code
	}
	for _, x := range w.Effects {
		v.Tries = max(v.Tries, x.Failures)
	}
	if in.Status.Label == view.PhaseCreating && w.waitsForCapacity(now) {
		w.addCapacity(v, now)
		v.Reminded = in.Status.Reminded
	}
	return v
}

func (w *Workload) shownSlice(s *Slot) view.Slice {
	v := view.Slice{
		Noun: w.Words().Slice, Look: w.Words().Describe + " " + s.Name + inPlace(s.Zone), Name: s.Name, Zone: s.Zone, Condition: s.Condition, State: s.State, Since: s.Since, WaitingSince: s.waitingSince(), Incarnation: s.Incarnation,
		Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Capacity: s.Capacity, Legacy: s.Legacy, Group: s.Group, Spec: s.Spec,
		Used: s.Used, Spoke: s.Spoke, StoppedBy: s.Stop.By, Suspected: s.Suspected, Claims: s.Claims, Admitted: w.admits(s), Awaits: !w.admits(s) && s.Condition == evidence.Ready, Released: s.IsReleased(),
	}
	if at := s.stands(); at.Accelerator != "" {
		v.Ordered = s.ownShape()
	}
	if at := s.stands(); at.Capacity != "" {
		v.OrderedCapacity = s.ownCapacity()
	}
	if n := w.announcedFor(s); n.Status != "" {
		v.LastNotice = &view.Notice{Notice: n.Notice, End: n.End, Due: n.Due, Declined: !n.Declined.IsZero(), Deaf: w.deaf(s)}
	}
	return v
}

func (w *Workload) shownTraining() view.Training {
	t := w.Training
	v := view.Training{
		Seen: t.Seen, Spoke: later(later(t.Seen, t.Began), later(t.StepAt, t.Stepped)), Attempt: t.Attempt, Started: t.Began, Exited: t.Exit.Attempt, GaveUp: t.gaveUp(),
		Finished: w.isFinished(), Claimed: t.Claim.Finished, Step: t.Step, StepAt: t.StepAt, Proven: t.Proven, SteppedAt: later(t.StepAt, t.Stepped),
		QuietSeconds: t.GapSeconds, Checkpoint: t.Reported.Step, CheckpointAt: t.Reported.At, Verified: t.Saved.Step, VerifiedAt: t.Saved.At,
		VerifiedURI: t.Saved.URI, SaveSeconds: t.SaveSeconds, SaveMode: t.SaveMode, GapSeconds: t.GapsBetween,
	}
	if v.Finished {
		v.FinishedAt = t.Verdict.At
	}
	for _, r := range t.Runs {
		if pace := r.pace(); pace > 0 && !r.Early {
			v.StepSeconds = pace.Seconds()
		}
	}
	for i := range w.Slices {
		v.Spoke = later(v.Spoke, later(w.Slices[i].Spoke, w.Slices[i].Heard.Seen))
	}
	return v
}

func (x *Effect) shown(incident string, now time.Time) view.Request {
	v := view.Request{
		Incident: incident, Reason: x.Why.String(), Action: x.Action, Slice: x.Slice, With: x.With, Zone: x.Zone, Epoch: x.Epoch, Attempt: x.Attempt, Sent: x.Sent,
		Stage: x.Stage(), Begun: x.Begun, RequestID: x.RequestID, At: x.Sent, Retry: x.Retry, Failures: x.Failures, Failure: x.Last.Text, Code: x.Last.Code, UnderWay: x.UnderWay(now),
	}
	switch v.Stage {
	case view.StageAccepted, view.StageDone:
		v.At = x.Answered
	case view.StageBegun:
		v.At = x.Begun
	case view.StageWanted, view.StageRefused:
	}
	return v
}

// Updates says what people have to hear of one step of a workload.
func Updates(before, after Workload, now time.Time) []events.IncidentUpdated {
	return view.Updates(before.Shown(now), after.Shown(now))
}

// Rank is what view.Row.Rank is of the workload, without the work of showing it.
func (w Workload) Rank() string {
	v := view.Workload{ID: w.ID, Name: w.Name, Slices: make([]view.Slice, len(w.Slices)), Training: w.shownTraining(), Ended: w.Ended}
	for i := range w.Slices {
		s := &w.Slices[i]
		v.Slices[i] = view.Slice{Condition: s.Condition, Since: s.Since, Released: s.IsReleased()}
	}
	if w.Incident != nil {
		v.Incident = new(w.Incident.outline())
	}
	if w.Closed != nil {
		v.Closed = new(w.Closed.outline())
	}
	v = v.Judged(w.Question())
	return view.Row{Workload: v.ID, State: v.State, Since: v.Since, Need: v.Need}.Rank()
}

// Past is an incident of the workload in one line, as of a time.
func (w Workload) Past(in Incident, now time.Time) view.Past {
	return w.ShownIncident(in, now).Past(w.ID, w.ZonesOf(in))
}

// OpenPast is the open incident in one line; nil without one.
func (w Workload) OpenPast(now time.Time) *view.Past {
	if w.Incident == nil {
		return nil
	}
	return new(w.Past(*w.Incident, now))
}

// outline is what of an incident says how its workload stands.
func (in *Incident) outline() view.Incident {
	st := in.Status
	v := view.Incident{ID: in.ID, Cause: in.cause(), Opened: in.Opened, Closed: in.Closed, Phase: st.Label, Since: st.Since, Deadline: st.Until, OnlyWatched: st.Label == view.Watching}
	switch e := in.Ending; {
	case e == nil:
	case in.Closed.IsZero():
		v.Clears = e.Outcome
	default:
		v.Outcome, v.ConfirmedBy, v.Reason, v.Code, v.Advice = e.Outcome, e.By, e.Reason.String(), e.Code, e.Advice.String()
		v.OnlyWatched = e.Outcome == view.Observed && e.Code == reason.CodeWatchOnly
	}
	for _, s := range in.stands() {
		v.Down = earliest(v.Down, s.from)
	}
	return v
}

// ShownIncident is what is shown of an incident of the workload, open or closed. Its cost counts the chips that the workload has now.
func (w Workload) ShownIncident(in Incident, now time.Time) view.Incident {
	v, st := in.outline(), in.Status
	v.Policy, v.Switches, v.Limits, v.Calls, v.CallsLeftOut, v.Zones, v.Taken = in.Policy, in.Ceiling, in.Limits, in.Calls, in.CallsLeftOut, in.Refusals, in.Taken
	v.Asked, v.Granted = st.Asks, st.Label == view.Approving && (st.Asks == "" || in.isGranted())
	v.Attempt, v.PlannedCalls, v.Timeline, v.LeftOut, v.Revision = in.BaseAttempt, in.Planned, make([]view.Line, 0, len(in.Lines)), in.LeftOut, in.Revision
	v.Cost = view.Cost{ChargedTo: in.Account(), Restarts: w.restartsIn(in.ID), ChipHourPrice: in.ChipHourPrice}
	for _, t := range in.Troubles {
		v.Troubles = append(v.Troubles, view.Trouble{
			Cause: t.Cause, Slice: t.Slice, At: t.At, Text: t.Text, Life: t.Life, Announced: t.Announced, Proven: t.Rank >= events.RankAudit, Claimed: t.Rank <= events.RankUser,
		})
	}
	if e := w.Training.Exit; !e.At.Before(in.Opened) && (in.Closed.IsZero() || !e.At.After(in.Closed)) {
		v.Error = view.Exit{Attempt: e.Attempt, Exit: e.Exit}
	}
	if !in.Would.IsZero() {
		v.Would = []string{in.Would.String()}
	}
	v.Save = w.shownSave(in, now)
	w.addCost(&v, &in, now)
	w.addLines(&v, in, now)
	return v
}

// addLines adds the story. An incident that was only watched names the calls that Pitstop would have made. The last wait for capacity says what
// came of it so far, and the end has the cost.
func (w *Workload) addLines(v *view.Incident, in Incident, now time.Time) {
	would := strings.Join(v.WouldHave(), "; ")
	lacked := lastOf(in.Lines, story.AwaitCapacity)
	for i, l := range in.Lines {
		shown := l.shown()
		switch {
		case i == lacked:
			shown.Reason = w.lacked(in, l.At, now)
		case l.Kind == view.LineEnded:
			shown.Text = summary(*v)
		case l.What.Sentence == story.OnlyWatch && would != "":
			shown.Text += "; would: " + would
		}
		v.Timeline = append(v.Timeline, shown)
	}
}

// lastOf is the last line that says a sentence; -1 for none.
func lastOf(lines []Line, s story.Sentence) int {
	for i, l := range slices.Backward(lines) {
		if l.What.Sentence == s {
			return i
		}
	}
	return -1
}

// summary is how an incident ended, and what it cost.
func summary(v view.Incident) string {
	parts := []string{string(v.Outcome)}
	if v.ConfirmedBy != "" {
		parts[0] += ", confirmed by " + string(v.ConfirmedBy)
	}
	would := v.WouldText()
	if v.Outcome == view.Observed && would != "" {
		parts = append(parts, would)
	}
	// Whoever only watches does not know when the training was back.
	if v.Outcome != view.Observed || would == "" || !v.Cost.AtLeast {
		parts = append(parts, v.Cost.Parts()...)
	}
	return strings.Join(append(parts, "charged to "+v.Cost.ChargedTo), " · ")
}

// ZonesOf are the zones of the lives that an incident struck, as far as they are remembered.
func (w Workload) ZonesOf(in Incident) (zones []string) {
	for _, t := range in.Troubles {
		s := w.Slice(t.Slice)
		if s == nil {
			continue
		}
		if l := cmp.Or(w.remembered(t.Slice, t.Life), &s.Life); !slices.Contains(zones, l.Zone) {
			zones = append(zones, l.Zone)
		}
	}
	return zones
}

// waitTold is when people were last told that a slice waits for long; zero for never.
func (w *Workload) waitTold() (at time.Time) {
	for _, t := range w.Told {
		if t.Of == ToldWait {
			at = later(at, t.At)
		}
	}
	return at
}

// Account names the party to which people charge the incident, by its cause. No budget follows from it.
func (in *Incident) Account() string {
	switch c := in.cause(); {
	case c == events.CauseEnd, c == events.CauseMove:
		return "nobody"
	case c.Infrastructure():
		return "infrastructure"
	}
	return "training"
}

// waitingSince is since when a life waits for its machines, or for the end of its deletion, by the provider's own objects; zero where it
// does not wait, or nothing says since when.
func (l *Life) waitingSince() time.Time {
	if l.Condition != evidence.Creating && l.Condition != evidence.Deleting {
		return time.Time{}
	}
	return l.WaitsSince
}
