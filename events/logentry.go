package events

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// logEntry is the part of a LogEntry that is read, in Google's own field names.
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
type logEntry struct {
	InsertID         string         `json:"insertId"`
	LogName          string         `json:"logName"`
	Timestamp        string         `json:"timestamp"`
	ReceiveTimestamp string         `json:"receiveTimestamp"`
	Resource         resource       `json:"resource"`
	Operation        operation      `json:"operation"`
	ProtoPayload     auditLog       `json:"protoPayload"`
	JSONPayload      jsontext.Value `json:"jsonPayload"`
	// Attributes and Data mark a bare Pub/Sub message, which other tools record side by side with entries.
	Attributes jsontext.Value `json:"attributes"`
	Data       jsontext.Value `json:"data"`
}

type resource struct {
	Type   string `json:"type"`
	Labels struct {
		ProjectID  string `json:"project_id"`
		Zone       string `json:"zone"`
		InstanceID string `json:"instance_id"`
		NodeID     string `json:"node_id"`
	} `json:"labels"`
}

type operation struct {
	ID    string `json:"id"`
	First bool   `json:"first"`
	Last  bool   `json:"last"`
}

// auditLog is the part of an AuditLog that is read.
// https://cloud.google.com/logging/docs/reference/audit/auditlog/rest/Shared.Types/AuditLog
type auditLog struct {
	MethodName     string `json:"methodName"`
	ServiceName    string `json:"serviceName"`
	ResourceName   string `json:"resourceName"`
	Authentication struct {
		PrincipalEmail string `json:"principalEmail"`
	} `json:"authenticationInfo"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
	Metadata auditMetadata `json:"metadata"`
}

// auditMetadata is what Compute Engine and the TPU API put beside an event. The documentation calls the first field
// maintenanceType, real entries carry type.
// https://cloud.google.com/tpu/docs/view-maintenance-notifications
type auditMetadata struct {
	Type                  string         `json:"type"`
	MaintenanceType       string         `json:"maintenanceType"`
	MaintenanceStatus     string         `json:"maintenanceStatus"`
	CanReschedule         jsontext.Value `json:"canReschedule"`
	WindowStartTime       string         `json:"windowStartTime"`
	WindowEndTime         string         `json:"windowEndTime"`
	LatestWindowStartTime string         `json:"latestWindowStartTime"`
	TerminateReason       string         `json:"terminateReason"`
}

// methods are the system events that are read: what each is about and why it happens.
var methods = map[string]struct {
	kind  Kind
	cause Cause
}{
	"tpu.nodes.terminate": {KindLoss, CauseTerminated},
	"tpu.nodes.restart":   {KindBack, CauseUnknown},

	"compute.instances.preempted":                   {KindLoss, CausePreemption},
	"compute.instances.hostError":                   {KindLoss, CauseHostError},
	"compute.instances.terminateOnHostMaintenance":  {KindLoss, CauseMaintenance},
	"compute.instances.guestTerminate":              {KindLoss, CauseGuest},
	"compute.instances.baremetalCaretakerPreempted": {KindLoss, CausePreemption},
	"compute.instances.automaticRestart":            {KindBack, CauseUnknown},
	"compute.instances.upcomingMaintenance":         {KindNotice, CauseMaintenance},
	"compute.instances.upcomingInfraMaintenance":    {KindNotice, CauseMaintenance},
}

// calls are the calls of the TPU API that change a slice. Reads are not ours to note: the pipeline makes them itself.
var calls = map[string]bool{
	"CreateNode": true, "DeleteNode": true, "StartNode": true, "StopNode": true, "ReimageNode": true,
	"CreateQueuedResource": true, "DeleteQueuedResource": true, "ResetQueuedResource": true,
}

// Read understands one log entry. There are three outcomes: an entry from which something may follow; an entry whose
// Ignored says why nothing does; and an error that lists every fault of what is no sound entry at all.
func Read(raw []byte) (Entry, error) {
	if len(raw) > MaxBytes {
		return Entry{}, fmt.Errorf("log entry: %d bytes are more than the %d that are read", len(raw), MaxBytes)
	}
	var l logEntry
	if err := json.Unmarshal(raw, &l, lenient); err != nil {
		return Entry{}, fmt.Errorf("log entry: %w", plain(err))
	}
	var f faults
	e := Entry{ID: l.InsertID, Time: l.time(&f), Received: f.parse("receiveTimestamp", l.ReceiveTimestamp)}
	if e.ID == "" {
		e.ID = l.Operation.ID
	}
	l.classify(&e, &f)
	if err := f.err(); err != nil {
		return Entry{}, fmt.Errorf("log entry %s: %w", e.ID, err)
	}
	return e, nil
}

// lenient takes a field twice: some exporters repeat one, and the last one counts, as in every JavaScript reader.
var lenient = jsontext.AllowDuplicateNames(true)

// plain takes the library's own prefix off its message.
func plain(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON at byte %d: %w", syntax.ByteOffset, syntax.Err)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		where := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
		if where == "" {
			where = "the whole"
		}
		return fmt.Errorf("%s is %s where none fits", where, kindWords[semantic.JSONKind])
	}
	return err
}

var kindWords = map[jsontext.Kind]string{
	'n': "a null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

func (l *logEntry) time(f *faults) time.Time {
	if l.Timestamp == "" {
		return f.parse("receiveTimestamp", l.ReceiveTimestamp)
	}
	return f.parse("timestamp", l.Timestamp)
}

func (f *faults) parse(name, value string) time.Time {
	if value == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		*f = append(*f, fmt.Errorf("%s %.40q is no time", name, value))
	}
	return t
}

// logID is the part of a log name behind the project, decoded as far as the logs that are read need it.
func (l *logEntry) logID() string {
	_, id, ok := strings.Cut(l.LogName, "/logs/")
	if !ok {
		return ""
	}
	switch id {
	case "cloudaudit.googleapis.com%2Fsystem_event":
		return "cloudaudit.googleapis.com/system_event"
	case "cloudaudit.googleapis.com%2Factivity":
		return "cloudaudit.googleapis.com/activity"
	}
	return id
}

func (l *logEntry) classify(e *Entry, f *faults) {
	switch id := l.logID(); id {
	case "cloudaudit.googleapis.com/system_event":
		e.Rank = RankAudit
		l.systemEvent(e, f)
	case "cloudaudit.googleapis.com/activity":
		e.Rank = RankAudit
		l.call(e)
	case CrewLog:
		e.Rank = RankUser
		l.crew(e, f)
	case CanaryLog:
		e.Kind, e.Rank, e.Subject = KindCanary, RankUser, Subject{Project: l.project()}
	case "":
		e.Kind = KindForeign
		if l.Attributes != nil {
			e.PubSub = true
			e.Ignored = "a Pub/Sub message that no log sink sent"
		} else {
			e.Ignored = "not a log entry: it has no logName"
		}
	default:
		e.Ignored = "the log " + id + " is not one that is read"
	}
}

func (l *logEntry) systemEvent(e *Entry, f *faults) {
	p := &l.ProtoPayload
	m, ok := methods[p.MethodName]
	if !ok {
		e.Ignored = "the system event " + name(p.MethodName) + " is not one that is read"
		return
	}
	e.Kind, e.Cause = m.kind, m.cause
	e.Subject = l.subject()
	s := e.Subject
	if s.Zone == "" {
		e.Missing = append(e.Missing, "resourceName")
	}
	if s.Node == "" {
		if _, _, tpu := s.Group(); !tpu && s.Worker != "" {
			e.Ignored = "the instance " + s.Worker + " is no worker of the Cloud TPU API"
			return
		}
	}
	switch m.kind {
	case KindNotice:
		l.notice(e, f)
	case KindLoss:
		e.Text = p.Metadata.TerminateReason
	case KindBack, KindCall, KindCrew, KindCanary, KindForeign:
	}
}

// completed is how Google says that a notice is gone; the entry has the method of the notice and no metadata.
const completed = "maintenance window has completed"

func (l *logEntry) notice(e *Entry, f *faults) {
	m := &l.ProtoPayload.Metadata
	n := &e.Notice
	if strings.Contains(strings.ToLower(l.ProtoPayload.Status.Message), completed) {
		n.Status = NoticeGone
		return
	}
	switch m.MaintenanceStatus {
	case "PENDING":
		n.Status = NoticePending
	case "ONGOING":
		n.Status = NoticeOngoing
	case "":
		e.Ignored = "the notice says neither that maintenance is pending nor that it is under way nor that it is over"
		return
	default:
		e.Ignored = "the maintenance status " + name(m.MaintenanceStatus) + " is not one that is known"
		return
	}
	n.Unscheduled = m.Type == "UNSCHEDULED" || m.MaintenanceType == "UNSCHEDULED"
	n.CanReschedule = isTrue(m.CanReschedule, f)
	n.WindowStart = f.parse("windowStartTime", m.WindowStartTime)
	n.WindowEnd = f.parse("windowEndTime", m.WindowEndTime)
	n.LatestWindowStart = f.parse("latestWindowStartTime", m.LatestWindowStartTime)
	if n.WindowStart.IsZero() {
		e.Missing = append(e.Missing, "windowStartTime")
	}
	if n.WindowEnd.IsZero() {
		e.Missing = append(e.Missing, "windowEndTime")
	}
	f.check(n.WindowEnd.IsZero() || !n.WindowEnd.Before(n.WindowStart), "the window ends before it starts")
}

// isTrue reads a boolean that Google writes as true in entries and as TRUE in its documentation.
func isTrue(v jsontext.Value, f *faults) bool {
	switch s := strings.ToLower(strings.Trim(string(v), `"`)); s {
	case "true":
		return true
	case "false", "", "null":
	default:
		*f = append(*f, fmt.Errorf("canReschedule %.20q is neither true nor false", s))
	}
	return false
}

func (l *logEntry) call(e *Entry) {
	p := &l.ProtoPayload
	rest, ok := strings.CutPrefix(p.MethodName, "google.cloud.tpu.")
	version, method, found := strings.Cut(rest, ".Tpu.")
	if !ok || !found {
		e.Ignored = "the call " + name(p.MethodName) + " is not one of the TPU API"
		return
	}
	if !calls[method] {
		e.Ignored = "the call " + method + " changes no slice"
		return
	}
	e.Kind = KindCall
	e.Subject = l.subject()
	if e.Subject.Zone == "" || e.Subject.Node == "" && e.Subject.QueuedResource == "" {
		e.Missing = append(e.Missing, "resourceName")
		e.Ignored = "the call " + method + " does not say of what"
		return
	}
	e.Call = Call{
		Method: method, Version: version, Principal: p.Authentication.PrincipalEmail,
		First: l.Operation.First, Last: l.Operation.Last, Operation: l.Operation.ID,
		Code: p.Status.Code, Message: p.Status.Message,
	}
}

func (l *logEntry) crew(e *Entry, f *faults) {
	e.Kind = KindCrew
	if len(l.JSONPayload) == 0 {
		f.check(false, "a crew line without jsonPayload")
		return
	}
	var r CrewReport
	if err := json.Unmarshal(l.JSONPayload, &r, lenient); err != nil {
		*f = append(*f, fmt.Errorf("jsonPayload: %w", plain(err)))
		return
	}
	if r.Schema > Schema || !r.Report.Known() {
		e.Ignored = fmt.Sprintf("the crew's report %s (schema %d) is newer than this release", name(string(r.Report)), r.Schema)
		return
	}
	if err := r.Validate(); err != nil {
		*f = append(*f, err)
		return
	}
	r.Project = l.project() // whatever the line claims
	e.Crew = &r
	e.Text = r.Reason
	e.Subject = Subject{Project: r.Project, Zone: r.Zone, Node: r.Node}
}

// project is the one whose log the entry is in: that one cannot be forged from another project.
func (l *logEntry) project() string {
	rest, ok := strings.CutPrefix(l.LogName, "projects/")
	if !ok {
		return l.Resource.Labels.ProjectID
	}
	p, _, _ := strings.Cut(rest, "/")
	return p
}

// subject reads projects/P/{zones|locations}/Z/{instances|nodes|queuedResources}/N, and fills from the resource's
// labels what the name does not say.
func (l *logEntry) subject() Subject {
	s := Subject{Project: l.project(), Zone: l.Resource.Labels.Zone, Node: l.Resource.Labels.NodeID}
	if l.Resource.Type == "gce_instance" {
		s.InstanceID = l.Resource.Labels.InstanceID
	}
	rest := l.ProtoPayload.ResourceName
	if full, ok := strings.CutPrefix(rest, "//"); ok { // a full resource name begins with its service
		_, rest, _ = strings.Cut(full, "/")
	}
	for rest != "" {
		var kind, value string
		kind, rest, _ = strings.Cut(rest, "/")
		value, rest, _ = strings.Cut(rest, "/")
		switch kind {
		case "zones", "locations":
			s.Zone = value
		case "instances":
			s.Worker = value
		case "nodes":
			s.Node = value
		case "queuedResources":
			s.QueuedResource = value
		}
	}
	return s
}

// name quotes a word from outside for a message, cut to what a line can hold.
func name(s string) string {
	if s == "" {
		return "without a name"
	}
	return fmt.Sprintf("%.80q", s)
}
