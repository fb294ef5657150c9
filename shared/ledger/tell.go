package ledger

import (
	"context"
	"log/slog"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// tell logs the decisions of a stored write. The deployment's metrics count these lines and read their attributes, so
// messages and keys are part of what a release promises.
func (a *Advancer) tell(ctx context.Context, before, after incident.Workload, sent []events.Envelope, now time.Time) {
	open, closed := idOf(after.Incident), idOf(after.Closed)
	if closed == idOf(before.Closed) {
		closed = "" // the incident got another cause, which ends nothing
	}
	for _, in := range []*incident.Incident{after.Closed, after.Incident} {
		if id := idOf(in); id != "" && id != idOf(before.Incident) && (id == open || id == closed) {
			a.Log.InfoContext(ctx, "incident opened", "workload", after.ID, "incident", id, "cause", string(in.Cause), "policy", in.Policy)
		}
	}
	if closed != "" {
		in := after.Closed
		level := slog.LevelInfo
		if in.Outcome == incident.Escalated {
			level = slog.LevelWarn
		}
		a.Log.Log(ctx, level, "incident closed", "workload", after.ID, "incident", in.ID, "outcome", string(in.Outcome),
			"cause", string(in.Cause), "seconds", in.Closed.Sub(in.Opened).Seconds(), "advice", in.Advice, "code", string(in.Code))
	}
	for _, n := range after.Notices {
		if was := before.Notice(n.Slice); n.Deaf != "" && n.Status == events.NoticePending && (was == nil || was.Deaf == "") {
			a.Log.WarnContext(ctx, "a save request may not be heard", "workload", after.ID, "slice", n.Slice, "reason", n.Deaf,
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

// reaction is the time from the trouble to the decision on the incident's first request. Announced maintenance has not
// happened yet, and Pitstop reacts to it in due time, so it has no reaction time.
func reaction(before incident.Workload, in incident.Incident, now time.Time) (took time.Duration, ok bool) {
	if idOf(before.Incident) == in.ID && len(before.Incident.Tasks) > 0 || len(in.Troubles) == 0 {
		return 0, false
	}
	first := in.Troubles[0]
	if first.Announced || first.At.IsZero() || first.At.After(now) {
		return 0, false
	}
	return now.Sub(first.At), true
}
