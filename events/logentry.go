package events

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	Labels           entryLabels    `json:"labels"`
	Operation        operation      `json:"operation"`
	ProtoPayload     auditLog       `json:"protoPayload"`
	JSONPayload      jsontext.Value `json:"jsonPayload"`
	TextPayload      string         `json:"textPayload"`
	// Attributes and Message mark a Pub/Sub message; other tools record these next to entries.
	Attributes jsontext.Value `json:"attributes"`
	Message    jsontext.Value `json:"message"`

	raw []byte
}

type resource struct {
	Type   string `json:"type"`
	Labels struct {
		ProjectID    string `json:"project_id"`
		Zone         string `json:"zone"`
		Location     string `json:"location"`
		InstanceID   string `json:"instance_id"`
		NodeID       string `json:"node_id"`
		WorkerID     string `json:"worker_id"`
		ClusterName  string `json:"cluster_name"`
		NodePoolName string `json:"nodepool_name"`
		NodeName     string `json:"node_name"`
		JobID        string `json:"job_id"`
		TaskName     string `json:"task_name"`
	} `json:"labels"`
}

// entryLabels are the labels with which agents name their machine.
type entryLabels struct {
	ResourceName string `json:"compute.googleapis.com/resource_name"`
	InstanceName string `json:"instance_name"`
}

type operation struct {
	ID    string `json:"id"`
	First bool   `json:"first"`
	Last  bool   `json:"last"`
}

// auditLog is the part of an AuditLog that is read.
// https://cloud.google.com/logging/docs/reference/audit/auditlog/rest/Shared.Types/AuditLog
type auditLog struct {
	MethodName   string `json:"methodName"`
	ServiceName  string `json:"serviceName"`
	ResourceName string `json:"resourceName"`
	// Authentication is who called.
	Authentication authentication `json:"authenticationInfo"`
	Status         struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
	// Metadata differs with each service.
	Metadata jsontext.Value `json:"metadata"`
	Request  jsontext.Value `json:"request"`
	Response jsontext.Value `json:"response"`
}

// auditMetadata is the metadata that Compute Engine and the TPU API add to an event. The documentation calls the first field
// maintenanceType, but real entries carry type. A field of another type than documented is ignored.
// https://cloud.google.com/tpu/docs/view-maintenance-notifications
type auditMetadata struct {
	Type                  jsontext.Value `json:"type"`
	MaintenanceType       jsontext.Value `json:"maintenanceType"`
	MaintenanceStatus     jsontext.Value `json:"maintenanceStatus"`
	CanReschedule         jsontext.Value `json:"canReschedule"`
	WindowStartTime       jsontext.Value `json:"windowStartTime"`
	WindowEndTime         jsontext.Value `json:"windowEndTime"`
	LatestWindowStartTime jsontext.Value `json:"latestWindowStartTime"`
	TerminateReason       jsontext.Value `json:"terminateReason"`
}

// The system events that are read, each with its kind and cause. The function maintenance acts on upcoming ones. An "other"
// interruption is one that Google counts but does not explain. https://cloud.google.com/compute/docs/logging/audit-logging
var (
	tpuEvents = map[string]systemEvent{
		"tpu.nodes.terminate": {KindLoss, CauseTerminated},
		"tpu.nodes.restart":   {KindBack, CauseUnknown},
	}
	computeEvents = map[string]systemEvent{
		"compute.instances.preempted":                   {KindLoss, CausePreemption},
		"compute.instances.baremetalCaretakerPreempted": {KindLoss, CausePreemption},
		"compute.instances.hostError":                   {KindLoss, CauseHostError},
		"compute.instances.terminateOnHostMaintenance":  {KindLoss, CauseMaintenance},
		"compute.instances." + migrated:                 {KindLoss, CauseMaintenance},
		"compute.instances.guestTerminate":              {KindLoss, CauseGuest},
		"compute.instances.repair.recreateInstance":     {KindLoss, CauseUnknown},
		"compute.instances.automaticRestart":            {KindBack, CauseUnknown},

		"compute.instances.instanceManagerHaltForRestart":  {KindLoss, CauseUnknown},
		"compute.instances.stoppedDueToPdDoubleServe":      {KindLoss, CauseUnknown},
		"compute.instances.kmsKeyError":                    {KindLoss, CauseUnknown},
		"compute.instances.shredmillKeyError":              {KindLoss, CauseUnknown},
		"compute.instances.invalidVmImage":                 {KindLoss, CauseUnknown},
		"compute.instances.scratchDiskCreationFailed":      {KindLoss, CauseUnknown},
		"compute.instances.localSsdInitializationError":    {KindLoss, CauseUnknown},
		"compute.instances.localSsdInitializationKeyError": {KindLoss, CauseUnknown},
		"compute.instances.localSsdVerifyTarError":         {KindLoss, CauseUnknown},
		"compute.instances.localSsdRecoveryAttempting":     {KindLoss, CauseUnknown},
		"compute.instances.localSsdRecoveryTimeoutError":   {KindLoss, CauseUnknown},
		"compute.instances.localSsdRecoveryFailedError":    {KindLoss, CauseUnknown},
	}
	scheduled = map[string]systemEvent{"ScheduledVMs": {KindLimit, CauseUnknown}}
	upcoming  = map[string]systemEvent{
		"compute.instances.upcomingMaintenance":      {KindNotice, CauseMaintenance},
		"compute.instances.upcomingInfraMaintenance": {KindNotice, CauseMaintenance},
	}
	methods = merged(tpuEvents, computeEvents, scheduled, upcoming)
)

// migrated is an interruption that Google counts, although the machine goes on, on another host.
const migrated = "migrateOnHostMaintenance"

type systemEvent struct {
	kind  Kind
	cause Cause
}

func merged(ms ...map[string]systemEvent) map[string]systemEvent {
	out := map[string]systemEvent{}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}

// Read understands one log entry. There are three outcomes: an entry that Pitstop may act on; an entry whose Ignored says
// why it does not; and an error that lists every fault in a malformed entry.
func Read(raw []byte) (Entry, error) {
	if len(raw) > MaxBytes {
		return Entry{}, fmt.Errorf("log entry: %d bytes are more than the limit of %d", len(raw), MaxBytes)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return Entry{}, errors.New("log entry: it has no data")
	}
	e, inner, err := readOne(raw)
	if err == nil && inner != nil {
		e, _, err = readOne(inner)
	}
	clean(&e)
	return e, err
}

// readOne reads an entry, and unpacks one that a message of a log sink holds.
func readOne(raw []byte) (e Entry, inner []byte, err error) {
	var l logEntry
	if err := json.Unmarshal(raw, &l, lenient); err != nil {
		if form := otherForm(raw); form != nil {
			return Entry{}, nil, form
		}
		if e, ok := elsewhere(raw); ok {
			return e, nil, nil
		}
		return Entry{}, nil, fmt.Errorf("log entry: %w", plain(err))
	}
	l.raw = raw
	var f faults
	switch l.logID() {
	case "":
		if form := otherForm(raw); form != nil {
			return Entry{}, nil, form
		}
	case systemLog, activityLog:
		f.check(l.ProtoPayload.MethodName+l.ProtoPayload.ServiceName != "", "it is of an audit log, and its protoPayload names neither a service nor a method")
	}
	e = Entry{ID: l.InsertID, Time: l.time(&f), Received: f.parse("receiveTimestamp", l.ReceiveTimestamp)}
	if e.ID == "" {
		e.ID = l.Operation.ID
	}
	inner = l.classify(&e, &f)
	if err := f.err(); err != nil {
		if form := otherForm(raw); form != nil {
			return Entry{}, nil, form
		}
		return Entry{}, nil, fmt.Errorf("log entry %s: %w", shownOf(e.ID), err)
	}
	return e, inner, nil
}

// otherForm names the form of an entry that another product of Google wrote, with the way to the form that is read; nil is none.
func otherForm(raw []byte) error {
	var row struct {
		BigQuery jsontext.Value `json:"protopayload_auditlog"`
		LogName  jsontext.Value `json:"log_name"`
		Proto    jsontext.Value `json:"proto_payload"`
	}
	what := ""
	switch {
	case !peek(raw, &row):
	case len(row.BigQuery) > 0:
		what = "a row of a BigQuery export"
	case len(row.LogName)+len(row.Proto) > 0:
		what = "a row of Log Analytics"
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("log entry: it is %s; read the log itself with gcloud logging read --format=json", what)
}

// elsewhere reads an entry that does not fit because it comes from another service with its own shape.
func elsewhere(raw []byte) (Entry, bool) {
	var l struct {
		InsertID     string `json:"insertId"`
		LogName      string `json:"logName"`
		ProtoPayload struct {
			Type    string `json:"@type"`
			Service string `json:"serviceName"`
		} `json:"protoPayload"`
	}
	if !peek(raw, &l) || l.LogName == "" {
		return Entry{}, false
	}
	audit := strings.HasSuffix(l.ProtoPayload.Type, "google.cloud.audit.AuditLog") || l.ProtoPayload.Type == ""
	switch id := logID(l.LogName); {
	case l.ProtoPayload.Type != "" && !audit:
		return Entry{ID: l.InsertID, Ignored: "the payload " + name(l.ProtoPayload.Type) + " is not read"}, true
	case id == CrewLog, id == systemLog, id == activityLog && (l.ProtoPayload.Service == "tpu.googleapis.com" || l.ProtoPayload.Service == ""):
		return Entry{}, false
	default:
		return Entry{ID: l.InsertID, Ignored: "an entry of the log " + id + " in a shape that is not read"}, true
	}
}

// lenient accepts a repeated field: some exporters repeat one, and the last one counts, as in every JavaScript reader.
var lenient = jsontext.AllowDuplicateNames(true)

// peek reads a value that may have another shape.
func peek(raw []byte, into any) bool { return json.Unmarshal(raw, into, lenient) == nil }

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
		return fmt.Errorf("%s is %s, which does not fit there", where, kindWords[semantic.JSONKind])
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

// ParseTime reads a time as RFC 3339 has it: its letters may be small ones, as some exporters write them.
func ParseTime(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, strings.ToUpper(s)) }

func (f *faults) parse(name, value string) time.Time {
	if value == "" {
		return time.Time{}
	}
	t, err := ParseTime(value)
	if err != nil {
		*f = append(*f, fmt.Errorf("%s %.40q is not a time", name, value))
	}
	return t
}

// The logs that are read, by log ID, in addition to those of the training side.
const (
	systemLog   = "cloudaudit.googleapis.com/system_event"
	activityLog = "cloudaudit.googleapis.com/activity"
	readLog     = "cloudaudit.googleapis.com/data_access"
	eventLog    = "events"
	scalerLog   = "container.googleapis.com/cluster-autoscaler-visibility"
	clusterLog  = "container.googleapis.com/notifications"
	runtimeLog  = "tpu.googleapis.com/runtime_monitor"
)

// logID is the part of a log name after the project, decoded as far as needed for the logs that are read.
func logID(logName string) string {
	_, id, ok := strings.Cut(logName, "/logs/")
	if !ok {
		return ""
	}
	switch id {
	case "cloudaudit.googleapis.com%2Fsystem_event":
		return systemLog
	case "cloudaudit.googleapis.com%2Factivity":
		return activityLog
	}
	return strings.ReplaceAll(id, "%2F", "/")
}

func (l *logEntry) logID() string { return logID(l.LogName) }

// classify reads the entry by its log. It unpacks the entry that a message of a log sink holds.
func (l *logEntry) classify(e *Entry, f *faults) (inner []byte) {
	switch id := l.logID(); id {
	case systemLog:
		e.Rank = RankAudit
		l.systemEvent(e, f)
	case activityLog:
		e.Rank = RankAudit
		l.activity(e, f)
	case CrewLog:
		e.Rank = RankUser
		l.crew(e, f)
	case readLog:
		e.Ignored = "reads are not noted"
	case CanaryLog:
		e.Kind, e.Rank, e.Subject = KindCanary, RankUser, Subject{Project: l.project()}
	case eventLog:
		l.kubernetes(e)
	case scalerLog:
		l.autoscaler(e)
	case clusterLog:
		l.clusterNotification(e)
	case "":
		return l.message(e, f)
	default:
		switch {
		case l.trainingService(id):
			l.job(e, id)
		case id == runtimeLog || l.Resource.Type == "tpu_worker":
			l.line(e)
		case lineOf(l.TextPayload) != "" || l.onMachine() && lineOf(l.said().Message) != "":
			l.line(e)
		default:
			e.Ignored = "the log " + id + " is not read"
		}
	}
	return nil
}

// onMachine reports whether an agent on a possible worker wrote the entry.
func (l *logEntry) onMachine() bool {
	switch l.Resource.Type {
	case "gce_instance", "k8s_container", "k8s_node", "k8s_pod":
		return true
	}
	return false
}

func (l *logEntry) systemEvent(e *Entry, f *faults) {
	p := &l.ProtoPayload
	m, ok := methods[p.MethodName]
	if !ok {
		e.Ignored = "the system event " + name(p.MethodName) + " is not read"
		return
	}
	if m.kind == KindLimit {
		l.schedule(e)
		return
	}
	e.Kind, e.Cause = m.kind, m.cause
	e.Subject = l.subject()
	if e.Subject.Zone == "" {
		e.Missing = append(e.Missing, "resourceName")
	}
	var d auditMetadata
	if len(p.Metadata) == 0 || !peek(p.Metadata, &d) {
		d = auditMetadata{}
	}
	switch m.kind {
	case KindNotice:
		l.notice(e, &d, f)
	case KindLoss:
		e.Text = short(loose(d.TerminateReason))
		if e.Text == "" && (m.cause == CauseUnknown || strings.HasSuffix(p.MethodName, "."+migrated)) {
			e.Text = strings.TrimPrefix(p.MethodName, "compute.instances.")
		}
	default:
		// The event has no more details.
	}
	l.keptBy(e)
}

// schedule reads an action of an instance schedule. Such an entry has no resourceName: its response is the operation, which
// names the machine and says whether the schedule starts or stops it. Only a successful stop counts.
// https://cloud.google.com/compute/docs/instances/schedule-instance-start-stop
func (l *logEntry) schedule(e *Entry) {
	var r struct {
		Direction string         `json:"operationType"`
		Target    string         `json:"targetLink"`
		Error     jsontext.Value `json:"error"`
	}
	p := &l.ProtoPayload
	if len(p.Response) == 0 || !peek(p.Response, &r) || r.Direction != "stop" {
		e.Ignored = "only stops by an instance schedule are noted, and this is not a stop"
		return
	}
	if p.Status.Code != 0 || len(r.Error) > 0 {
		e.Ignored = "the stop by an instance schedule failed"
		return
	}
	e.Kind = KindLimit
	e.Subject = l.subject()
	e.Subject.path(r.Target)
	if e.Subject.Zone == "" {
		e.Missing = append(e.Missing, "response.targetLink")
	}
	e.Ignored = "only noted: its owner planned the stop, so it is not a failure"
}

// keptBy ignores events of machines that Pitstop does not look after, and says which product does.
func (l *logEntry) keptBy(e *Entry) {
	s := &e.Subject
	if e.Ignored != "" {
		return
	}
	switch s.Platform() {
	case PlatformTPU:
		return
	case PlatformGKE:
		if e.Kind == KindLoss {
			e.Text = gke(e.Cause) + strings.TrimSuffix(" "+e.Text, " ")
		}
		if e.Kind != KindLoss || strings.HasSuffix(l.ProtoPayload.MethodName, "."+migrated) { // otherwise a Job may be lost with it
			e.Ignored = onlyGKE
		}
	case PlatformGroup:
		e.Ignored = "only noted: " + s.Worker + " has a name as in " + string(PlatformGroup) + ", and Pitstop does not act on those yet"
	default:
		switch {
		case l.ProtoPayload.MethodName == "compute.instances.repair.recreateInstance":
			e.Ignored = "only noted: " + string(PlatformGroup) + " created it again, and Pitstop does not act on those yet"
		case s.Reservation != "":
			e.Ignored = "only noted: each TPU in a reservation gets a notice of its own"
		case s.Worker != "":
			e.Ignored = "the instance " + s.Worker + " is not a worker of the Cloud TPU API"
		case s.InstanceID != "":
			e.Ignored = "it gives only the number of the machine, not its name"
		default:
			e.Ignored = "it does not name the machine"
		}
	}
}

// Google's texts for a notice that is gone or present, in lower case. Such an entry has the method of the notice and may
// have no metadata. Only the statuses PENDING and ONGOING are documented; other unmistakable words count by their meaning.
var (
	goneTexts  = []string{"maintenance window has completed", "maintenance notifications on the instance have been removed"}
	goneStatus = []string{"COMPLETE", "COMPLETED", "CANCELED", "CANCELLED"}
)

const pendingText = "maintenance is scheduled for this instance"

func (l *logEntry) notice(e *Entry, m *auditMetadata, f *faults) {
	n := &e.Notice
	says := strings.ToLower(l.ProtoPayload.Status.Message)
	status := text(m.MaintenanceStatus)
	upper := strings.ToUpper(status)
	if slices.Contains(goneStatus, upper) || slices.ContainsFunc(goneTexts, func(t string) bool { return strings.Contains(says, t) }) {
		n.Status = NoticeGone
		return
	}
	if upper == "" && strings.Contains(says, pendingText) {
		upper = "PENDING"
	}
	switch upper {
	case "PENDING":
		n.Status = NoticePending
	case "ONGOING":
		n.Status = NoticeOngoing
	case "":
		e.Ignored = "the notice does not say whether maintenance is pending, under way or over"
		return
	default:
		e.Ignored = "the maintenance status " + name(status) + " is unknown"
		return
	}
	n.Unscheduled = strings.EqualFold(text(m.Type), "UNSCHEDULED") || strings.EqualFold(text(m.MaintenanceType), "UNSCHEDULED")
	n.CanReschedule = strings.EqualFold(loose(m.CanReschedule), "true") // true in entries, TRUE in the documentation
	n.WindowStart = f.parse("windowStartTime", text(m.WindowStartTime))
	n.WindowEnd = f.parse("windowEndTime", text(m.WindowEndTime))
	n.LatestWindowStart = f.parse("latestWindowStartTime", text(m.LatestWindowStartTime))
	if n.WindowStart.IsZero() {
		e.Missing = append(e.Missing, "windowStartTime")
	}
	if n.WindowEnd.IsZero() {
		e.Missing = append(e.Missing, "windowEndTime")
	}
	f.check(n.WindowEnd.IsZero() || !n.WindowEnd.Before(n.WindowStart), "the window ends before it starts")
}

// activity reads an audited call by its service.
func (l *logEntry) activity(e *Entry, f *faults) {
	p := &l.ProtoPayload
	switch {
	case tpuEvents[p.MethodName].kind != "": // the place of a TPU service event in the entry is not documented
		l.systemEvent(e, f)
	case p.ServiceName == "k8s.io" || strings.HasPrefix(p.MethodName, "io.k8s.") || strings.HasPrefix(p.MethodName, "io.x-k8s."):
		l.clusterCall(e, l.raw)
	case strings.HasSuffix(p.MethodName, ".compute.instances.delete"):
		l.removed(e)
	default:
		l.call(e)
	}
}

// removed reads the deletion of a GKE machine by its autoscaler, its repair, or a person.
func (l *logEntry) removed(e *Entry) {
	s := l.subject()
	if s.Platform() != PlatformGKE {
		e.Ignored = "the call " + name(l.ProtoPayload.MethodName) + " does not belong to the TPU API"
		return
	}
	l.inCluster(e, RankAudit, Cluster{Event: ClusterRemoved}, "by "+Call{Principal: l.ProtoPayload.Authentication.caller()}.By())
	e.Subject = s
}

func (l *logEntry) call(e *Entry) {
	p := &l.ProtoPayload
	rest, ok := strings.CutPrefix(p.MethodName, "google.cloud.tpu.")
	version, method, found := strings.Cut(rest, ".Tpu.")
	if !ok || !found {
		e.Ignored = "the call " + name(p.MethodName) + " does not belong to the TPU API"
		return
	}
	does, changes := calls[method]
	if !changes {
		e.Ignored = "the call " + short(method) + " changes no slice"
		if strings.Contains(method, "Maintenance") {
			e.Ignored = "the maintenance that " + short(method) + " starts has entries of its own"
		}
		return
	}
	e.Kind = KindCall
	e.Subject = l.subject()
	e.Call = Call{
		Method: method, Version: version, Principal: p.Authentication.caller(),
		First: l.Operation.First, Last: l.Operation.Last, Operation: l.Operation.ID,
		Code: p.Status.Code, Message: short(p.Status.Message),
	}
	unnamed := func() bool {
		return e.Subject.Zone == "" || e.Subject.Node == "" && e.Subject.QueuedResource == ""
	}
	if unnamed() {
		l.asked(&e.Subject, does.act == ActCreated)
	}
	if unnamed() {
		e.Missing = append(e.Missing, "resourceName")
		e.Ignored = "the call " + method + " does not name its resource"
		return
	}
	if does.act == ActCreated {
		e.Call.Order = order(p.Request, e.Subject.QueuedResource)
	}
}

// asked takes the subject of the call from the request, if the entry names none or only the parent.
func (l *logEntry) asked(s *Subject, create bool) {
	var r struct {
		Name       string `json:"name"`
		Parent     string `json:"parent"`
		Node       string `json:"nodeId"`
		Snake      string `json:"node_id"`
		Queue      string `json:"queuedResourceId"`
		SnakeQueue string `json:"queued_resource_id"`
	}
	if !peek(l.ProtoPayload.Request, &r) {
		return
	}
	s.path(cmp.Or(r.Name, r.Parent))
	if create && s.Node == "" && s.QueuedResource == "" {
		s.Node, s.QueuedResource = cmp.Or(r.Node, r.Snake), cmp.Or(r.Queue, r.SnakeQueue)
	}
}

func (l *logEntry) crew(e *Entry, f *faults) {
	e.Kind = KindCrew
	if len(l.JSONPayload) == 0 {
		f.check(false, "a crew line without jsonPayload")
		return
	}
	var r CrewReport
	if json.Unmarshal(l.JSONPayload, &r, lenient) != nil { // whole numbers as doubles are rare, and dear to look for
		r = CrewReport{}
		if err := json.Unmarshal(l.JSONPayload, &r, lenient, whole); err != nil {
			*f = append(*f, fmt.Errorf("jsonPayload: %w", plain(err)))
			return
		}
	}
	if r.Schema > Schema || !r.Report.Known() {
		e.Ignored = fmt.Sprintf("the crew's report %s (schema %d) is newer than this release", name(string(r.Report)), r.Schema)
		return
	}
	if err := r.Validate(); err != nil {
		*f = append(*f, err)
		return
	}
	r.Project = l.project() // the line itself may claim any project
	r.Reason, r.Signal = short(r.Reason), short(r.Signal)
	e.Crew = &r
	e.Text = r.Reason
	e.Subject = Subject{Project: r.Project, Zone: r.Zone, Node: r.Node}
	switch _, _, _, inPod := e.Subject.Scope(); {
	case inPod && r.Life == "":
		e.Ignored = crewWithoutLife
	case !inPod && strings.Contains(r.Zone, "/"): // no TPU VM is meant, even one of the same name
		e.Ignored = "only noted: the place " + name(r.Zone) + " is neither a zone nor LOCATION/CLUSTER/NAMESPACE"
	}
}

// crewWithoutLife is why Pitstop does not act on a line of the previous release's pitcrew in a Pod: a Pod of a former Job has the same
// names.
const crewWithoutLife = "only noted: the crew runs in a Pod of GKE, and the line does not say in which life of the Job; it does with this release's pitcrew in the image"

// project is the project of the entry's log, which cannot be forged from another project.
func (l *logEntry) project() string {
	rest, ok := strings.CutPrefix(l.LogName, "projects/")
	if !ok {
		return l.Resource.Labels.ProjectID
	}
	p, _, _ := strings.Cut(rest, "/")
	return p
}

// subject reads projects/P/{zones|locations}/Z/{instances|nodes|queuedResources}/N, and fills the missing parts from the
// resource's labels.
func (l *logEntry) subject() Subject {
	labels := &l.Resource.Labels
	s := Subject{Project: l.project(), Zone: cmp.Or(labels.Zone, labels.Location), Node: labels.NodeID, Cluster: labels.ClusterName}
	switch l.Resource.Type {
	case "gce_instance":
		s.InstanceID = labels.InstanceID
	case "k8s_container", "k8s_node", "k8s_pod":
		s.Worker = labels.NodeName
	}
	if name := cmp.Or(l.Labels.ResourceName, l.Labels.InstanceName); name != "" && s.Worker == "" {
		s.Worker, _, _ = strings.Cut(name, ".")
	}
	s.path(l.ProtoPayload.ResourceName)
	return s
}

// path fills a subject from a resource's name.
func (s *Subject) path(rest string) {
	if _, name, ok := strings.Cut(rest, "/projects/"); ok { // the part before is a service, or the address of its API
		rest = "projects/" + name
	}
	for rest != "" {
		var kind, value string
		kind, rest, _ = strings.Cut(rest, "/")
		value, rest, _ = strings.Cut(rest, "/")
		switch kind {
		case "zones", "locations":
			s.Zone = value
		case "instances":
			if digits(value) { // no name begins with a digit
				s.InstanceID = value
			} else {
				s.Worker = value
			}
		case "nodes":
			s.Node = value
		case "queuedResources":
			s.QueuedResource = value
		case "clusters":
			s.Cluster = value
		case "nodePools":
			s.NodePool = value
		case "reservations":
			s.Reservation = value
		}
	}
}

// name quotes a word from outside for a message, cut to fit a line.
func name(s string) string {
	if s == "" {
		return "without a name"
	}
	return fmt.Sprintf("%.80q", s)
}

// short makes one short line of a text from outside.
func short(s string) string {
	const longest = 500
	if len(s) > 4*longest {
		s = s[:4*longest]
	}
	if len(s) <= longest && shown(s) {
		return strings.TrimSpace(s)
	}
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return hidden(r) || r == ' ' }), " ")
	if len(s) <= longest {
		return s
	}
	cut := longest
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
