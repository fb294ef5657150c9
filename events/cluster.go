package events

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Cluster is an event of a GKE cluster, which Pitstop notes without acting. GKE itself recreates a whole TPU node pool when one of its
// machines is lost, and patrol reads the Jobs. https://cloud.google.com/kubernetes-engine/docs/how-to/handle-disruption-gpu-tpu
type Cluster struct {
	Event ClusterEvent
	// At is when maintenance is scheduled.
	At time.Time
	// State is GKE's or Kubernetes' own name of the state.
	State string
}

// ClusterEvent is the kind of event in a cluster.
type ClusterEvent string

// The events of a cluster. The three interruptions have GKE's own names.
const (
	ClusterNotReady    ClusterEvent = "node_not_ready"
	ClusterScheduled   ClusterEvent = "maintenance_scheduled"
	ClusterMaintained  ClusterEvent = "maintenance_active"
	ClusterEnding      ClusterEvent = "termination_impending"
	ClusterTermination ClusterEvent = "TerminationEvent"
	ClusterMaintenance ClusterEvent = "MaintenanceEvent"
	ClusterPreemption  ClusterEvent = "PreemptionEvent"
	ClusterRemoved     ClusterEvent = "node_removed"
	ClusterProvisions  ClusterEvent = "provisioning_request"
	ClusterUpgrade     ClusterEvent = "upgrade"
	ClusterDisruption  ClusterEvent = "disruption"
	ClusterTold        ClusterEvent = "notification"
	ClusterFailed      ClusterEvent = "job_failed"
	ClusterCompleted   ClusterEvent = "job_completed"
	ClusterEvicted     ClusterEvent = "workload_evicted"
	ClusterRefused     ClusterEvent = "pod_refused"
)

var clusterText = map[ClusterEvent]string{
	ClusterNotReady:    " is not ready",
	ClusterScheduled:   " has maintenance scheduled",
	ClusterMaintained:  " is under maintenance",
	ClusterEnding:      " is about to be terminated",
	ClusterTermination: " was interrupted by a TerminationEvent",
	ClusterMaintenance: " was interrupted by a MaintenanceEvent",
	ClusterPreemption:  " was interrupted by a PreemptionEvent",
	ClusterRemoved:     " is removed",
	ClusterProvisions:  ": a ProvisioningRequest is ",
	ClusterUpgrade:     " is upgraded",
	ClusterDisruption:  " is being drained against a disruption budget",
	ClusterTold:        ": GKE sends a ",
	ClusterFailed:      " has failed: ",
	ClusterCompleted:   " is complete",
	ClusterEvicted:     ": Kueue evicts a workload: ",
	ClusterRefused:     " refused a Pod",
}

func (c Cluster) describe(who string) string {
	says := who + clusterText[c.Event]
	switch {
	case c.Event == ClusterProvisions, c.Event == ClusterTold, c.Event == ClusterFailed, c.Event == ClusterEvicted:
		return says + c.State
	case !c.At.IsZero():
		return says + " for " + Window(c.At, time.Time{})
	}
	return says
}

// onlyGKE is why Pitstop does not act on GKE's events.
const onlyGKE = "only noted: GKE recreates its node pools itself, and patrol reads the machines of watched Jobs"

// onlyJob is why Pitstop does not act on an event of a Job: anybody who may write events in the cluster can forge it.
const onlyJob = "only noted: patrol reads the Job itself each minute"

// gke is GKE's own name of an interruption.
func gke(c Cause) string {
	switch c {
	case CausePreemption:
		return string(ClusterPreemption)
	case CauseMaintenance:
		return string(ClusterMaintenance)
	default:
		return string(ClusterTermination)
	}
}

// inCluster begins an entry about a cluster.
func (l *logEntry) inCluster(e *Entry, rank Rank, c Cluster, text string) {
	labels := &l.Resource.Labels
	e.Kind, e.Rank, e.Cluster, e.Text, e.Ignored = KindCluster, rank, &c, short(text), onlyGKE
	e.Subject = Subject{Project: l.project(), Zone: labels.Location, Cluster: labels.ClusterName, NodePool: labels.NodePoolName, Worker: labels.NodeName}
}

// kubernetes reads an event of Kubernetes. Anybody who may write events in the cluster can forge one.
func (l *logEntry) kubernetes(e *Entry) {
	var p struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Object  struct {
			Kind      string `json:"kind"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"involvedObject"`
		Source struct {
			Host string `json:"host"`
		} `json:"source"`
	}
	if len(l.JSONPayload) == 0 || !peek(l.JSONPayload, &p) {
		e.Ignored = "an event of Kubernetes in a shape that Pitstop does not read"
		return
	}
	c := kubernetesEvent(p.Reason, p.Message, p.Object.Kind)
	if c.Event == "" {
		e.Ignored = "the event of Kubernetes " + name(p.Reason) + " is not read"
		return
	}
	l.inCluster(e, RankUser, c, p.Message)
	if p.Object.Kind == "Node" && e.Subject.Worker == "" {
		e.Subject.Worker = p.Object.Name
	}
	switch c.Event {
	case ClusterFailed, ClusterCompleted:
		e.Ignored = onlyJob
	case ClusterRefused:
		e.Ignored, e.Subject.Worker = onlyJob, cmp.Or(e.Subject.Worker, p.Source.Host)
		return
	default:
		return
	}
	if s := e.Subject; s.Zone != "" && s.Cluster != "" && p.Object.Namespace != "" && !strings.Contains(s.Zone+s.Cluster+p.Object.Namespace, "/") {
		e.Subject = Subject{Project: s.Project, Zone: scope(s.Zone, s.Cluster, p.Object.Namespace)}
		if p.Object.Kind == "Job" {
			e.Subject.Node = p.Object.Name
		} else {
			e.Subject.QueuedResource = p.Object.Name
		}
	}
}

// The reasons with which the controllers of Jobs and JobSets say that one is over, by the kind of object. The reason of a failure is
// that of the condition Failed, too.
var (
	failedReasons = map[string][]string{
		"Job":    {"BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"},
		"JobSet": {"FailedJobs", "ReachedMaxRestarts"},
	}
	completedReasons = map[string][]string{"Job": {"Completed"}, "JobSet": {"AllJobsCompleted"}}
)

// evictedReason begins the reason with which Kueue says that it takes a workload's machines.
const evictedReason = "EvictedDueTo"

// refusedReason is the reason with which a machine says that it refused a Pod, as one without healthy chips does. The Pod has it, too.
const refusedReason = "UnexpectedAdmissionError"

func kubernetesEvent(reason, message, object string) Cluster {
	switch reason {
	case "NodeNotReady", "NodeStatusUnknown":
		if object == "Node" { // the pod's event repeats the node's own
			return Cluster{Event: ClusterNotReady}
		}
		return Cluster{}
	case "TerminationEvent", "MaintenanceEvent", "PreemptionEvent":
		return Cluster{Event: ClusterEvent(reason)}
	case refusedReason:
		return Cluster{Event: ClusterRefused}
	case "ScaleDown":
		if object == "Node" {
			return Cluster{Event: ClusterRemoved, State: "autoscaler"}
		}
	}
	switch {
	case slices.Contains(failedReasons[object], reason):
		return Cluster{Event: ClusterFailed, State: reason}
	case slices.Contains(completedReasons[object], reason):
		return Cluster{Event: ClusterCompleted}
	case object == "Workload" && strings.HasPrefix(reason, evictedReason):
		return Cluster{Event: ClusterEvicted, State: short(reason)}
	case object == "ProvisioningRequest":
		return Cluster{Event: ClusterProvisions, State: short(reason)}
	case object == "Node" && (strings.Contains(message, "Kubelet stopped posting node status") || strings.Contains(message, "status is now: NodeNotReady")):
		return Cluster{Event: ClusterNotReady}
	}
	return Cluster{}
}

// The marks that GKE puts on a node.
const (
	markScheduled = "cloud.google.com/scheduled-maintenance-time"
	markActive    = "cloud.google.com/active-node-maintenance"
	markEnding    = "cloud.google.com/impending-node-termination"
	markOperation = "gke-current-operation"
)

// kubernetesNode is the part of a node object that is read.
type kubernetesNode struct {
	Metadata struct {
		Labels struct {
			Scheduled string  `json:"cloud.google.com/scheduled-maintenance-time"` // seconds since 1970
			Active    *string `json:"cloud.google.com/active-node-maintenance"`
		} `json:"labels"`
		Annotations struct {
			Operation string `json:"gke-current-operation"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Taints few[struct {
			Key string `json:"key"`
		}] `json:"taints"`
	} `json:"spec"`
}

func (n *kubernetesNode) marked() Cluster {
	for _, t := range n.Spec.Taints.first {
		if t.Key == markEnding {
			return Cluster{Event: ClusterEnding}
		}
	}
	labels := &n.Metadata.Labels
	if labels.Active != nil {
		return Cluster{Event: ClusterMaintained, State: short(*labels.Active)}
	}
	if at := labels.Scheduled; at != "" {
		c := Cluster{Event: ClusterScheduled}
		if seconds, err := strconv.ParseInt(at, 10, 64); err == nil && seconds > 0 && seconds < 1<<36 {
			c.At = time.Unix(seconds, 0).UTC()
		}
		return c
	}
	if strings.Contains(n.Metadata.Annotations.Operation, "UPGRADE_NODES") {
		return Cluster{Event: ClusterUpgrade}
	}
	return Cluster{}
}

// clusterCall reads an audited call to a cluster: one that changes a Job or a JobSet, or an update of a node that carries GKE's marks.
func (l *logEntry) clusterCall(e *Entry, raw []byte) {
	if kind, version, verb, ok := kubernetesCall(l.ProtoPayload.MethodName); ok {
		l.jobCall(e, kind, version, verb)
		return
	}
	if l.ProtoPayload.MethodName == namespaceDeletion {
		l.namespaceGone(e)
		return
	}
	method := strings.TrimPrefix(l.ProtoPayload.MethodName, "io.k8s.core.v1.nodes.")
	if method != "update" && method != "patch" {
		e.Ignored = "the call " + name(l.ProtoPayload.MethodName) + " does not belong to the TPU API"
		return
	}
	// Request and response are large and rarely read.
	var both struct {
		ProtoPayload struct {
			Request  jsontext.Value `json:"request"`
			Response jsontext.Value `json:"response"`
		} `json:"protoPayload"`
	}
	var c Cluster
	if peek(raw, &both) {
		for _, v := range []jsontext.Value{both.ProtoPayload.Request, both.ProtoPayload.Response} {
			var n kubernetesNode
			if c.Event == "" && len(v) > 0 && peek(v, &n) {
				c = n.marked()
			}
		}
	}
	if c.Event == "" {
		e.Ignored = "an update of a GKE node that says nothing about maintenance"
		return
	}
	l.inCluster(e, RankAudit, c, "")
	if _, node, ok := strings.Cut(l.ProtoPayload.ResourceName, "/nodes/"); ok {
		e.Subject.Worker, _, _ = strings.Cut(node, "/")
	}
}

// few reads the first elements of a list and its length, however long the list is. Any other value is an empty list.
type few[T any] struct {
	first []T
	count int
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *few[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	const most = 64
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if len(f.first) == most {
			if err := d.SkipValue(); err != nil {
				return err
			}
		} else {
			var x T
			if err := json.UnmarshalDecode(d, &x); err != nil {
				return err
			}
			f.first = append(f.first, x)
		}
		f.count++
	}
	_, err := d.ReadToken()
	return err
}

// autoscaler reads which nodes the cluster autoscaler takes away.
func (l *logEntry) autoscaler(e *Entry) {
	var p struct {
		Decision struct {
			ScaleDown struct {
				Nodes few[struct {
					Node struct {
						Name  string `json:"name"`
						Group struct {
							NodePool string `json:"nodepool"`
						} `json:"mig"`
					} `json:"node"`
				}] `json:"nodesToBeRemoved"`
			} `json:"scaleDown"`
		} `json:"decision"`
	}
	if len(l.JSONPayload) == 0 || !peek(l.JSONPayload, &p) || p.Decision.ScaleDown.Nodes.count == 0 {
		e.Ignored = "a line of the cluster autoscaler that removes no node"
		return
	}
	nodes := p.Decision.ScaleDown.Nodes
	text := "by the cluster autoscaler"
	if nodes.count > 1 {
		text += ", with " + plural(nodes.count-1, "other node")
	}
	l.inCluster(e, RankUser, Cluster{Event: ClusterRemoved, State: "autoscaler"}, text)
	e.Subject.Worker, e.Subject.NodePool = nodes.first[0].Node.Name, nodes.first[0].Node.Group.NodePool
}

// notification is the body of a cluster notification: the payload of a message's attributes, or an entry's.
// https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-notifications
type notification struct {
	Type          string `json:"@type"`
	Resource      string `json:"resource"`
	TargetVersion string `json:"targetVersion"`
	EventType     string `json:"eventType"`
	State         string `json:"state"`
	Disruption    struct {
		Type string `json:"disruptionType"`
		Node string `json:"pdbBlockedNode"`
	} `json:"disruptionEvent"`
}

// cluster reads a notification: the event and its subject.
func (n *notification) cluster() (c Cluster, text string) {
	_, kind, _ := strings.Cut(n.Type, "google.container.")
	if i := strings.LastIndexByte(kind, '.'); i >= 0 {
		kind = kind[i+1:]
	}
	switch {
	case kind == "UpgradeEvent":
		return Cluster{Event: ClusterUpgrade, State: n.State}, n.TargetVersion
	case n.EventType == "DISRUPTION_EVENT":
		return Cluster{Event: ClusterDisruption, State: n.State}, n.Disruption.Type
	}
	return Cluster{Event: ClusterTold, State: short(kind)}, n.EventType
}

// about fills a subject from the notification's resource.
func (n *notification) about(s *Subject) {
	s.path(n.Resource)
	if s.Worker == "" {
		s.Worker = n.Disruption.Node
	}
}

func (l *logEntry) clusterNotification(e *Entry) {
	var n notification
	if len(l.JSONPayload) == 0 || !peek(l.JSONPayload, &n) || !strings.Contains(n.Type, "google.container.") {
		e.Ignored = "a cluster notification in a shape that Pitstop does not read"
		return
	}
	c, text := n.cluster()
	l.inCluster(e, RankUser, c, text)
	n.about(&e.Subject)
}
