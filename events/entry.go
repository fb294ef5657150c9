package events

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the topic of an entry of Cloud Logging.
type Kind string

// The kinds of entries. A new source gets a row in methods (system events) or its own file next to crew.go. It gets a new
// kind only if Pitstop acts on it in a new way.
const (
	KindNotice  Kind = "maintenance_notice" // maintenance is announced, begins, or is over
	KindLoss    Kind = "loss"               // something ended or broke a machine
	KindBack    Kind = "back"               // Google says that a machine was restarted
	KindCall    Kind = "api_call"           // somebody called the TPU API
	KindCrew    Kind = "crew_report"        // the training side speaks
	KindCanary  Kind = "canary"             // our own entry came back through a log sink
	KindLine    Kind = "training_line"      // a framework or the TPU runtime speaks of the training
	KindJob     Kind = "training_job"       // Google's training service speaks of one of its jobs
	KindCluster Kind = "cluster"            // GKE speaks of one of its clusters
	KindLimit   Kind = "run_time_limit"     // an instance schedule stops a machine at the end of its time: no failure
	KindForeign Kind = "foreign"            // well-formed JSON, but no log entry
)

// Known reports whether Pitstop understands the entry, whether or not it acts on it.
func (k Kind) Known() bool { return k != "" && k != KindForeign }

// Rank is how far an entry is believed.
type Rank int

// The ranks, lowest first. Anyone who may write logs can write a user line. Only Google writes audit logs, but anyone who
// may publish on the topic can forge an entry of one. Pitstop's own readings decide: of the API, or of the audit log that
// patrol queries.
const (
	RankUser Rank = iota + 1
	RankAudit
	RankReading
)

// String is the rank's name in reports.
func (r Rank) String() string {
	switch r {
	case RankUser:
		return "user_line"
	case RankAudit:
		return "audit_log"
	case RankReading:
		return "api_reading"
	}
	return ""
}

// Cause is why training was interrupted, according to Google or the crew.
type Cause string

// The causes. An interruption may get another cause when better evidence arrives late.
const (
	CauseUnknown     Cause = "unknown"
	CauseMaintenance Cause = "maintenance"
	CausePreemption  Cause = "preemption"
	CauseHostError   Cause = "host_error"
	CauseTerminated  Cause = "terminated"
	CauseGuest       Cause = "guest_shutdown"
	CauseCrash       Cause = "training_crash"
	CauseHang        Cause = "training_hang"
	CauseEnd         Cause = "planned_end"
	CauseMove        Cause = "moved_back"
)

// Causes are all causes.
func Causes() []Cause {
	return []Cause{CauseUnknown, CauseMaintenance, CausePreemption, CauseHostError, CauseTerminated, CauseGuest, CauseCrash, CauseHang, CauseEnd, CauseMove}
}

// Infrastructure reports whether the cause lies with the machines and not with the training.
func (c Cause) Infrastructure() bool { return c != CauseCrash && c != CauseHang }

// Subject is the resource that an entry names, as far as it does.
type Subject struct {
	Project string
	// Zone is where the slice is: a zone, a location, or LOCATION/CLUSTER/NAMESPACE for a Job of GKE.
	Zone string
	// Node is the node of the Cloud TPU API or the Job of GKE, and QueuedResource what holds it: a queued resource or a JobSet.
	Node           string
	QueuedResource string
	// Worker is the Compute Engine instance name of one worker; InstanceID its number. On GKE it is the node's name too.
	Worker     string
	InstanceID string
	// Cluster and NodePool belong to GKE, Job to the training service.
	Cluster, NodePool string
	Job               string
	// Reservation gets its own announcement of All-Capacity maintenance, in addition to its machines.
	Reservation string
}

// Platform is the product that manages a machine.
type Platform string

// The platforms, as far as a machine's name shows them.
const (
	PlatformTPU   Platform = "the Cloud TPU API"
	PlatformGKE   Platform = "GKE"
	PlatformGroup Platform = "a managed instance group"
)

// Platform is the product that manages the subject's machine; empty if its name does not show it. The workers of the Cloud
// TPU API and the nodes of GKE have names of their own; a managed instance group appends four characters to a name that its
// owner chose, so other machines may have such names too.
// https://cloud.google.com/compute/docs/instance-groups/working-with-managed-instances
func (s Subject) Platform() Platform {
	if _, _, _, ok := s.Scope(); ok {
		return PlatformGKE
	}
	if s.Node != "" || s.QueuedResource != "" {
		return PlatformTPU
	}
	if s.Cluster != "" || strings.HasPrefix(s.Worker, "gke-") || strings.HasPrefix(s.Worker, "gk3-") {
		return PlatformGKE
	}
	if _, _, ok := s.Group(); ok {
		return PlatformTPU
	}
	if i := len(s.Worker) - len("-abcd"); i > 0 && s.Worker[i] == '-' && !strings.ContainsFunc(s.Worker[i+1:], notInSuffix) {
		return PlatformGroup
	}
	return ""
}

func notInSuffix(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }

// Group splits the instance name of a worker of the Cloud TPU API, t1v-n-<8 hex>-w-<index>, into the part that all workers
// of the slice share and the index. Any other name is not such a worker.
func (s Subject) Group() (group string, worker int, ok bool) { return WorkerGroup(s.Worker) }

// WorkerGroup splits a worker's host or instance name; a domain after the first dot is dropped.
func WorkerGroup(host string) (group string, worker int, ok bool) {
	host, _, _ = strings.Cut(host, ".")
	rest, ok := strings.CutPrefix(host, "t1v-n-")
	if !ok || len(rest) < len("00000000-w-0") || rest[8:11] != "-w-" {
		return "", 0, false
	}
	for _, c := range []byte(rest[:8]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", 0, false
		}
	}
	n, err := strconv.ParseUint(rest[11:], 10, 16)
	if err != nil {
		return "", 0, false
	}
	return host[:len("t1v-n-00000000")], int(n), true
}

// String names the subject in the API's own form.
func (s Subject) String() string {
	var b strings.Builder
	add := func(name, value string) {
		if value == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(name)
		b.WriteByte('/')
		b.WriteString(value)
	}
	add("projects", s.Project)
	if location, cluster, namespace, ok := s.Scope(); ok {
		add("locations", location)
		add("clusters", cluster)
		add("k8s/namespaces", namespace)
		add("jobsets", s.QueuedResource)
		add("jobs", s.Node)
		return b.String()
	}
	if s.Cluster == "" && s.Worker+s.InstanceID+s.Reservation != "" {
		add("zones", s.Zone)
	} else {
		add("locations", s.Zone)
	}
	add("reservations", s.Reservation)
	add("clusters", s.Cluster)
	add("nodePools", s.NodePool)
	add("queuedResources", s.QueuedResource)
	add("nodes", s.Node)
	switch {
	case s.Cluster != "":
		add("nodes", s.Worker)
	case s.Worker != "":
		add("instances", s.Worker)
	default:
		add("instances", s.InstanceID)
	}
	add("jobs", s.Job)
	return b.String()
}

// Call is one audited call of the TPU API, or of a cluster.
type Call struct {
	// Method is the call's short name, DeleteNode; Version is v1, v2 or v2alpha1. Of a call to a cluster it is the whole name, as in
	// io.k8s.batch.v1.jobs.delete.
	Method  string
	Version string
	// Principal is who called: an e-mail address, or the subject of an identity without one. It is empty where the log names nobody.
	Principal string
	// First and Last mark the two entries of a long-running operation; both are false if the log does not say.
	First, Last bool
	// Operation is the log's identifier of the operation.
	Operation string
	// Code and Message are the failure, in gRPC's codes; 0 is success.
	Code    int
	Message string
	// Suspend is what a call to a cluster sets the field suspend of a Job or a JobSet to; nil if it does not set it.
	Suspend *bool
	// Order is the content of a creation request, if the log has it.
	Order Order
}

func digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// Entry is a log entry, understood.
type Entry struct {
	Kind Kind
	// ID identifies the entry for people and in timelines: its insert ID, else its operation's.
	ID string
	// Time is when it happened and Received when Cloud Logging got it; either may be missing. They order and attribute entries,
	// and are never compared with Pitstop's own clock.
	Time, Received time.Time
	Rank           Rank
	Subject        Subject
	// Cause is set for KindLoss, Notice for KindNotice, Call for KindCall, and each of the others for its own kind.
	Cause   Cause
	Notice  Notice
	Call    Call
	Crew    *CrewReport
	Line    Line
	Job     *Job
	Cluster *Cluster
	// Text is the entry's message in Google's or the crew's own words.
	Text string
	// Missing lists fields of this kind of entry that this one lacks.
	Missing []string
	// PubSub says that it is a bare Pub/Sub message that no log sink sent.
	PubSub bool
	// Ignored is why Pitstop does not act on the entry, in plain words; empty if it may act.
	Ignored string
}

// Noted describes an ignored entry, as far as it is understood, and says why Pitstop does not act on it.
func (e Entry) Noted() string {
	if tells := e.Describe(); tells != "" {
		return tells + "; " + e.Ignored
	}
	return e.Ignored
}

// Describe sums up the entry in a few words.
func (e Entry) Describe() string {
	who := e.who()
	switch e.Kind {
	case KindNotice:
		return e.describeNotice(who)
	case KindLoss:
		if strings.HasSuffix(e.Text, migrated) {
			return who + " was moved to another host for maintenance" + e.quoted()
		}
		return who + lossText[e.Cause] + e.quoted()
	case KindBack:
		return who + " was restarted by Google" + e.quoted()
	case KindCall:
		return e.describeCall(who)
	case KindCrew:
		if e.Crew == nil {
			return "crew: a report of a newer release"
		}
		return e.Crew.Describe()
	case KindLine:
		return who + lineText[e.Line]
	case KindJob:
		return who + ": " + e.Job.Describe() + e.quoted()
	case KindCluster:
		return e.Cluster.describe(who) + e.quoted()
	case KindLimit:
		return who + " is stopped by its instance schedule"
	case KindCanary:
		return "the canary came back"
	case KindForeign:
	}
	return ""
}

var lossText = map[Cause]string{
	CausePreemption:  " was preempted",
	CauseHostError:   " lost its host: host error",
	CauseMaintenance: " was stopped for host maintenance",
	CauseTerminated:  " was terminated",
	CauseGuest:       " was shut down from inside",
	CauseUnknown:     " was interrupted",
}

func (e Entry) who() string {
	s := e.Subject
	if _, n, ok := s.Group(); ok {
		return "worker " + strconv.Itoa(n)
	}
	if _, _, in, ok := s.Scope(); ok {
		if s.Node+s.QueuedResource == "" {
			return "namespace " + in
		}
		if s.Node == "" {
			return "JobSet " + s.QueuedResource
		}
		return "Job " + s.Node
	}
	switch {
	case s.Job != "":
		return "job " + s.Job
	case s.Cluster != "" && s.Worker != "":
		return "node " + s.Worker + " of cluster " + s.Cluster
	case s.NodePool != "":
		return "node pool " + s.NodePool + " of cluster " + s.Cluster
	case s.Cluster != "":
		return "cluster " + s.Cluster
	case s.Reservation != "":
		return "reservation " + s.Reservation
	case s.Node != "":
		return "node " + s.Node
	case s.QueuedResource != "":
		return "queued resource " + s.QueuedResource
	case s.Worker != "":
		return "instance " + s.Worker
	case s.InstanceID != "":
		return "instance " + s.InstanceID
	}
	return "an unnamed machine"
}

func (e Entry) quoted() string {
	if e.Text == "" {
		return ""
	}
	return " (" + e.Text + ")"
}

func (e Entry) describeNotice(who string) string {
	n := e.Notice
	sort := "maintenance"
	if n.Unscheduled {
		sort = "unscheduled maintenance"
	}
	switch n.Status {
	case NoticeOngoing:
		return sort + " of " + who + " is under way"
	case NoticeGone:
		return who + " no longer has announced maintenance"
	case NoticePending:
		if n.WindowStart.IsZero() {
			return sort + " of " + who + " announced, without a time"
		}
		return fmt.Sprintf("%s of %s announced for %s", sort, who, Window(n.WindowStart, n.WindowEnd))
	}
	return "something about " + sort + " of " + who
}

// Window is the short form of a maintenance window, in UTC.
func Window(start, end time.Time) string {
	const day, clock = "Jan 2 15:04", "15:04"
	start, end = start.UTC(), end.UTC()
	switch {
	case end.IsZero():
		return start.Format(day)
	case start.YearDay() == end.YearDay() && start.Year() == end.Year():
		return start.Format(day) + "-" + end.Format(clock)
	}
	return start.Format(day) + " - " + end.Format(day)
}

func (e Entry) describeCall(who string) string {
	c, by := e.Call, e.Call.By()
	switch {
	case c.Code != 0:
		return fmt.Sprintf("%s of %s by %s failed: %s", c.Method, who, by, c.Message)
	case c.Last && !c.First:
		return fmt.Sprintf("%s of %s by %s is done", c.Method, who, by)
	}
	return fmt.Sprintf("%s of %s by %s", c.Method, who, by)
}

// Describe sums up the crew's report in a few words.
func (r CrewReport) Describe() string {
	switch r.Report {
	case ReportStarted:
		return fmt.Sprintf("crew: attempt %d runs on %s from step %s", r.Attempt, plural(max(r.Workers, 1), "worker"), Number(r.Step))
	case ReportProgress:
		text := "crew: step " + Number(r.Step) + ", last checkpoint " + Number(r.CheckpointStep)
		return strings.TrimSuffix(text+"; "+r.Reason, "; ")
	case ReportSaved:
		return "crew: saved step " + Number(r.CheckpointStep)
	case ReportRefused:
		return "crew: cannot save: " + r.Reason
	case ReportExited:
		return fmt.Sprintf("crew: training ended on worker %d with %s at step %s", r.Worker, r.exit(), Number(r.Step))
	case ReportGaveUp:
		return "crew: gave up: " + r.Reason
	case ReportFinished:
		return "crew: training is finished at step " + Number(r.Step)
	case ReportNotice:
		if r.Preempted {
			return fmt.Sprintf("crew: worker %d got notice of its preemption", r.Worker)
		}
		return fmt.Sprintf("crew: worker %d got notice of maintenance", r.Worker)
	}
	return "crew: " + string(r.Report)
}

// Sign identifies the error of an attempt: how it ended and the last line that it wrote, without numbers, which differ each
// time. It is empty if the training did not end by itself.
func (r CrewReport) Sign() string {
	if r.Report != ReportExited || r.Interrupted {
		return ""
	}
	said := r.LastWords()
	if said == nil {
		return r.exit()
	}
	const longest = 160
	text := numbers.ReplaceAllString(said[0], "#")
	return r.exit() + ": " + strings.ToValidUTF8(text[:min(len(text), longest)], "")
}

// LastWords are the last line of the tail that is not blank, in single spaces and at most 400 bytes long: what an error is told by.
func (r CrewReport) LastWords() []string {
	const longest = 400
	for _, line := range slices.Backward(r.Tail) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return []string{strings.ToValidUTF8(line[:min(len(line), longest)], "")}
		}
	}
	return nil
}

// numbers are the parts that differ each time: counts, times, addresses, and identifiers in hexadecimal.
var numbers = regexp.MustCompile(`0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*\b|[0-9]+`)

func (r CrewReport) exit() string {
	if r.Signal != "" {
		return "signal " + r.Signal
	}
	return "exit code " + strconv.Itoa(r.ExitCode)
}

// Span writes a duration as people say it, in its two greatest units.
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d m %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d m", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Number writes a step with its thousands set apart.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
