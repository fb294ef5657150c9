package ledger

import (
	"context"
	"log/slog"
	"path"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// tell logs what a write decided, now that it is stored. The deployment's metrics count these lines and read their
// attributes, so messages and keys are part of what a release promises.
func (a *Advancer) tell(ctx context.Context, before, after incident.Workload, sent []events.Envelope, now time.Time) {
	open, closed := idOf(after.Incident), idOf(after.Closed)
	if closed == idOf(before.Closed) {
		closed = "" // it was attributed anew, which ends nothing
	}
	for _, in := range []*incident.Incident{after.Closed, after.Incident} {
		if id := idOf(in); id != "" && id != idOf(before.Incident) && (id == open || id == closed) {
			shown := after.ShownIncident(*in, now)
			a.Log.InfoContext(ctx, "incident opened", "workload", after.ID, "incident", id, "cause", string(shown.Cause), "policy", shown.Policy,
				"found_by", path.Base(a.Source), "loss", isLoss(shown))
		}
	}
	if closed != "" {
		in := after.ShownIncident(*after.Closed, now)
		level := slog.LevelInfo
		if in.Outcome == view.Escalated {
			level = slog.LevelWarn
		}
		line := a.Log
		if !in.Down.IsZero() { // where the training never stopped, nothing is lost
			line = line.With("away_seconds", in.Cost.AwaySeconds, "chip_hours", in.Cost.ChipHours)
		}
		line.Log(ctx, level, "incident closed", "workload", after.ID, "incident", in.ID, "outcome", string(in.Outcome),
			"cause", string(in.Cause), "seconds", in.Closed.Sub(in.Opened).Seconds(), "advice", in.Advice, "code", string(in.Code))
	}
	for i := range after.Slices {
		n, slice := after.Slices[i].Notice, after.Slices[i].Name
		if deaf := after.Deaf(slice); deaf != "" && n.Status == events.NoticePending && (before.Notice(slice) == nil || before.Deaf(slice) == "") {
			a.Log.WarnContext(ctx, "a request to save may not be heard", "workload", after.ID, "slice", slice, "reason", deaf,
				"window_start", n.WindowStart)
		}
	}
	for _, e := range sent {
		if e.Type == events.TypeIncidentClosed || after.Incident == nil {
			continue
		}
		line := a.Log.With("workload", after.ID, "incident", e.Correlation, "event_type", e.Type, "event_id", e.ID)
		if took, ok := reaction(before, *after.Incident, now); ok {
			line = line.With("reaction_seconds", took.Seconds())
		}
		line.InfoContext(ctx, "request decided")
	}
}

func idOf(in *incident.Incident) string {
	if in == nil {
		return ""
	}
	return in.ID
}

// isLoss reports whether an incident began with a machine that failed: training that failed by itself, maintenance that was announced,
// and an end that was planned are no loss.
func isLoss(in view.Incident) bool {
	return in.Cause != events.CauseEnd && in.Cause.Infrastructure() && len(in.Troubles) > 0 && !in.Troubles[0].Announced
}

// reaction is how long after the trouble the first request of an incident was decided. What is only announced has
// happened at no time yet, and is reacted to when it is time.
func reaction(before incident.Workload, in incident.Incident, now time.Time) (took time.Duration, ok bool) {
	if idOf(before.Incident) == in.ID && len(before.Effects) > 0 || len(in.Troubles) == 0 {
		return 0, false
	}
	first := in.Troubles[0]
	if first.Announced || first.At.IsZero() || first.At.After(now) {
		return 0, false
	}
	return now.Sub(first.At), true
}
