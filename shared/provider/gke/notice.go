package gke

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// What GKE and its autoscaler write on a machine.
const (
	// AnnotationMaintenance describes announced maintenance of a machine, and whether it can be moved.
	AnnotationMaintenance = "node.gke.io/upcoming-maintenance"

	labelScheduled   = "cloud.google.com/scheduled-maintenance-time"        // seconds since 1970
	labelLatest      = "cloud.google.com/scheduled-maintenance-time-latest" // likewise
	labelActive      = "cloud.google.com/active-node-maintenance"           // ONGOING
	labelSpot        = "cloud.google.com/gke-spot"
	labelFlex        = "cloud.google.com/gke-flex-start"
	labelReservation = "cloud.google.com/reservation-name"

	annotationEnd = "node.gke.io/machine-termination-datetime"

	taintEnding = "cloud.google.com/impending-node-termination"
)

// flexLife is how long a flex-start machine lives at most.
// https://cloud.google.com/kubernetes-engine/docs/concepts/dws
const flexLife = 7 * 24 * time.Hour

// notice is the maintenance that a machine announces; nil is none. The annotation says more than the labels, so it counts first.
func (n Node) notice() *events.Notice {
	if a := upcoming(n.Annotations[AnnotationMaintenance]); a != nil {
		if n.Labels[labelActive] == "ONGOING" {
			a.Status = events.NoticeOngoing
		}
		return a
	}
	start, latest := epoch(n.Labels[labelScheduled]), epoch(n.Labels[labelLatest])
	ongoing := n.Labels[labelActive] == "ONGOING"
	if start.IsZero() && !ongoing {
		return nil
	}
	m := &events.Notice{Status: events.NoticePending, WindowStart: start, LatestWindowStart: latest}
	if ongoing {
		m.Status = events.NoticeOngoing
	}
	return m
}

// upcoming reads the annotation: a JSON object whose names are in camel case or with underscores. Anything else announces nothing.
func upcoming(text string) *events.Notice {
	var raw map[string]any
	if text == "" || json.Unmarshal([]byte(text), &raw) != nil {
		return nil
	}
	get := func(names ...string) string {
		for _, name := range names {
			switch v := raw[name].(type) {
			case string:
				return v
			case bool:
				return strconv.FormatBool(v)
			}
		}
		return ""
	}
	at := func(names ...string) time.Time {
		t, err := events.ParseTime(get(names...))
		if err != nil {
			return time.Time{}
		}
		return t.UTC()
	}
	n := &events.Notice{
		Unscheduled:       strings.EqualFold(get("type", "maintenanceType", "maintenance_type"), "UNSCHEDULED"),
		CanReschedule:     strings.EqualFold(get("canReschedule", "can_reschedule"), "true"),
		WindowStart:       at("windowStartTime", "window_start_time"),
		WindowEnd:         at("windowEndTime", "window_end_time"),
		LatestWindowStart: at("latestWindowStartTime", "latest_window_start_time"),
	}
	switch strings.ToUpper(get("maintenanceStatus", "maintenance_status")) {
	case "PENDING":
		n.Status = events.NoticePending
	case "ONGOING":
		n.Status = events.NoticeOngoing
	default:
		return nil
	}
	return n
}

func epoch(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// sooner is the notice that counts of two machines of a slice: one that is under way, else the one that begins first. It can be moved
// where that of both can: the slice cannot do without one of them.
func sooner(a, b *events.Notice) *events.Notice {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	n := *first(a, b)
	n.CanReschedule = a.CanReschedule && b.CanReschedule
	return &n
}

// first is the one of two notices that is under way, else the one that begins first.
func first(a, b *events.Notice) *events.Notice {
	switch {
	case (a.Status == events.NoticeOngoing) != (b.Status == events.NoticeOngoing):
		if b.Status == events.NoticeOngoing {
			return b
		}
		return a
	case !b.WindowStart.IsZero() && (a.WindowStart.IsZero() || b.WindowStart.Before(a.WindowStart)):
		return b
	}
	return a
}

// ends is the planned end of a machine; zero is none that is known. Where a flex-start machine does not say it, it is assumed.
func (n Node) ends() (at time.Time, assumed bool) {
	text := n.Annotations[annotationEnd]
	if t, err := events.ParseTime(text); err == nil {
		return t.UTC(), false
	}
	if t := epoch(text); !t.IsZero() {
		return t, false
	}
	if n.Labels[labelFlex] == "true" && !n.Created.IsZero() {
		return n.Created.UTC().Add(flexLife), true
	}
	return time.Time{}, false
}

// answers reports whether the machine says that it can run Pods.
func (n Node) answers() bool { return n.Status.Conditions.holds("Ready") }

// maintained reports whether maintenance of a machine goes on, or may begin at any moment. Then GKE ends its Pods, though it still answers.
func (n Node) maintained() bool {
	return n.Labels[labelActive] == "ONGOING" || n.Labels[LabelMaintain] == "true"
}

// trouble says why a machine cannot be used; empty is no trouble.
func (n Node) trouble() string {
	for _, t := range n.Spec.Taints {
		if t.Key == taintEnding {
			return "its machine " + n.Name + " is about to end"
		}
	}
	if !n.answers() {
		return "its machine " + n.Name + " is not ready"
	}
	return ""
}
