package logs

import (
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/view"
)

// kindReading is the kind of a description of a TPU, beside those of log entries.
const kindReading = "reading"

// explainReading says what a description of a TPU means, if training runs there.
func explainReading(n int, s provider.Slice, p policy.Policy) explained {
	x := explained{
		Index: n, Kind: kindReading, Rank: events.RankReading.String(), Reason: readingText(s),
		Subject: events.Subject{Project: s.Project, Zone: s.Zone, Node: s.Name}.String(),
	}
	x.LeadsTo, x.Code = weighed(p, func(does does) string { return readingLeadsTo(s, does) })
	if s.Name == "" {
		return x
	}
	x.Calls = decided(readingCalls(s, p), p)
	return x
}

// readingText is what the API says of a TPU.
func readingText(s provider.Slice) string {
	text := "node " + s.Name
	if s.Name == "" {
		text = "a TPU that is not named"
	}
	if s.Accelerator != "" {
		text += ", " + s.Accelerator
	}
	if s.Capacity == events.Spot {
		text += " spot"
	}
	text += ": " + s.State
	if s.Incarnation.Known() {
		text += ", life " + s.Incarnation.String()
	}
	if !s.Ends.IsZero() {
		text += "; planned end at " + s.Ends.Format(time.RFC3339)
	}
	if n := s.Notice; n != nil {
		text += "; maintenance " + strings.ToLower(string(n.Status))
		if !n.WindowStart.IsZero() {
			text += ", window from " + n.WindowStart.UTC().Format(time.RFC3339)
		}
	}
	if !s.Maintained.IsZero() {
		text += "; " + terminal.LastMaintenance(s.Maintained)
	}
	switch {
	case s.Legacy, s.Name == "":
	case s.Autocheckpoint:
		text += "; autocheckpoint is on: " + deployment.AutocheckpointDoes
	default:
		text += "; autocheckpoint is off: " + deployment.AutocheckpointCost
	}
	return text
}

// readingLeadsTo says what follows from a reading of a slice that an incident has not told of yet.
func readingLeadsTo(s provider.Slice, does does) string {
	const again = "delete it and create it again"
	replace := policy.RecreateNonSpot
	if s.Capacity == events.Spot {
		replace = policy.Recreate
	}
	if s.Abuse {
		return "Google suspects abuse: an open incident ends escalated, and Pitstop does nothing by itself while the node shows it"
	}
	switch s.Condition {
	case evidence.Lost:
		if s.Capacity == events.Spot {
			return "an incident: the API shows the loss; " + does(replace, again)
		}
		if !s.Ends.IsZero() {
			return "an incident: wait for Google's own recovery, not past its planned end at " + s.Ends.Format(time.RFC3339) + ", then " + does(replace, again)
		}
		return "an incident: wait for Google's own recovery, then " + does(replace, again)
	case evidence.Unhealthy:
		if s.Name == "" {
			return "an incident, if its state is READY: wait until Google brings it back; if that takes too long, " + does(replace, again)
		}
		return "an incident: wait until Google brings it back; if that takes too long, " + does(replace, again)
	case evidence.Stopped:
		return "an incident, unless its owner stopped it: " + does(policy.StartStopped, "start it")
	case evidence.Ready:
		n := s.Notice
		switch {
		case s.Name == "":
			return "nothing by itself: the lines do not show its state. The whole description does"
		case n == nil && !s.Ends.IsZero():
			return "before its planned end at " + s.Ends.Format(time.RFC3339) + ": " + does(policy.RequestCheckpoint, "ask the training to save") +
				"; once it has ended: " + does(replace, again)
		case n == nil:
			return "nothing: the API says that it is usable. Whether the training goes on there shows by its progress alone"
		case n.Status == events.NoticeOngoing:
			return "an incident: " + does(policy.RequestCheckpoint, "ask the training to save at once, then wait for Google and for progress")
		case n.WindowStart.IsZero():
			return "Pitstop keeps the notice; it names no time, so Pitstop asks for nothing before the maintenance begins"
		}
		return "Pitstop keeps the notice; before the window at " + n.WindowStart.UTC().Format("2006-01-02 15:04 UTC") + ": " +
			does(policy.RequestCheckpoint, "ask the training to save")
	case evidence.Done:
		return "nothing: the training is finished, by the API"
	case evidence.Creating, evidence.Deleting, evidence.Gone, evidence.Unclear, evidence.Unread:
	}
	return "nothing by itself: Pitstop reads it again within a minute"
}

// readingCalls are the calls to which a reading would lead if the policy allowed them all.
func readingCalls(s provider.Slice, p policy.Policy) []view.Planned {
	if s.Abuse {
		return nil
	}
	now := s.Incarnation.Created // whenever that was, what follows is the same
	if now.IsZero() {
		now = time.Unix(0, 0)
	}
	lost := s.Condition == evidence.Lost || s.Condition == evidence.Unhealthy
	saved := time.Time{}
	if lost {
		saved = now // the reading does not tell what is saved
	}
	w := incident.Assumed(s.Project, cloudtpu.Name, evidence.Read{
		Slice: s.Name, Zone: s.Zone, Incarnation: s.Incarnation, Directory: s.Directory,
		Facts: evidence.Facts{Group: s.QueuedResource, Legacy: s.Legacy, Accelerator: s.Accelerator, Capacity: s.Capacity, Healing: s.Healing, Ends: s.Ends},
	}, saved)
	switch {
	case lost:
		return w.IfRead(p, s.Name, s.Condition, now).Calls
	case s.Condition != evidence.Ready:
		return nil
	case s.Notice != nil:
		return w.IfAllowed(p, evidence.Noticed{Slice: s.Name, Notice: *s.Notice}, now).Calls
	case !s.Ends.IsZero():
		return w.IfAllowed(p, evidence.Ticked{}, now).Calls
	}
	return nil
}
