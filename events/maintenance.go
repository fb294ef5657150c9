package events

import (
	"strconv"
	"time"
)

// NoticeStatus is the state of an announced maintenance.
type NoticeStatus string

// The states of a notice. Google has the first two as statuses (PENDING, ONGOING), and the third as a text.
const (
	NoticePending NoticeStatus = "pending"
	NoticeOngoing NoticeStatus = "ongoing"
	// NoticeGone means that the maintenance is over, or was withdrawn before it began: the notice no longer exists.
	NoticeGone NoticeStatus = "gone"
)

// Notice is maintenance that Google announced for a machine, in Google's own terms.
// https://cloud.google.com/tpu/docs/view-maintenance-notifications
type Notice struct {
	Status NoticeStatus `json:"status"`
	// Unscheduled maintenance is critical. Its notice may come later than the seven days ahead of the scheduled sort.
	Unscheduled bool `json:"unscheduled,omitzero"`
	// CanReschedule says that it may be started by hand while it is pending.
	CanReschedule     bool      `json:"can_reschedule,omitzero"`
	WindowStart       time.Time `json:"window_start,omitzero"`
	WindowEnd         time.Time `json:"window_end,omitzero"`
	LatestWindowStart time.Time `json:"latest_window_start,omitzero"`
}

// Equal reports whether both announce the same maintenance.
func (n Notice) Equal(o Notice) bool {
	return n.Status == o.Status && n.Unscheduled == o.Unscheduled && n.CanReschedule == o.CanReschedule &&
		n.WindowStart.Equal(o.WindowStart) && n.WindowEnd.Equal(o.WindowEnd) &&
		n.LatestWindowStart.Equal(o.LatestWindowStart)
}

// MaintenanceNotified says that a reading of the API shows a notice. Patrol publishes it; the function maintenance reacts as
// to the log entry of the same notice. A repetition changes nothing.
type MaintenanceNotified struct {
	Schema      int         `json:"schema"`
	Project     string      `json:"project"`
	Node        string      `json:"node"`
	Incarnation Incarnation `json:"incarnation"`
	Notice      Notice      `json:"notice"`
	// Read is when the API was read.
	Read time.Time `json:"read"`
}

// EventType implements Event.
func (MaintenanceNotified) EventType() string { return TypeMaintenanceNotified }

// EventID implements Event.
func (e MaintenanceNotified) EventID() string {
	i, n := e.Incarnation, e.Notice
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return ID(TypeMaintenanceNotified, e.Project, i.Zone, e.Node, i.ID, stamp(i.Created), string(n.Status),
		strconv.FormatBool(n.Unscheduled), strconv.FormatBool(n.CanReschedule),
		stamp(n.WindowStart), stamp(n.WindowEnd), stamp(n.LatestWindowStart))
}

// EventSubject implements Event.
func (e MaintenanceNotified) EventSubject() string {
	return "projects/" + e.Project + "/locations/" + e.Incarnation.Zone + "/nodes/" + e.Node
}

// Validate implements Event.
func (e MaintenanceNotified) Validate() error {
	var f faults
	f.schema(e.Schema)
	f.require("project", e.Project)
	f.require("node", e.Node)
	f.require("incarnation.zone", e.Incarnation.Zone)
	f.check(e.Incarnation.Known(), "incarnation is missing")
	f.check(!e.Read.IsZero(), "read is missing")
	switch e.Notice.Status {
	case NoticePending, NoticeOngoing, NoticeGone:
	default:
		f.check(false, "notice.status %q is not pending, ongoing or gone", e.Notice.Status)
	}
	return f.err()
}

// DecodeMaintenanceNotified reads the body of a notice.
func DecodeMaintenanceNotified(data []byte) (e MaintenanceNotified, err error) {
	err = decode(data, TypeMaintenanceNotified, &e)
	return e, err
}
