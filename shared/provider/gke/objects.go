// Package gke reads trainings on TPUs in clusters of GKE: their Jobs, JobSets, Pods and Nodes become readings of slices. A slice is a
// Job, and a child Job of a JobSet is one slice of a Multislice. Clusters makes them slices of a provider, and makes Pitstop's calls.
//
// The objects here have the fields that a reading needs. Everything else of an object is passed over.
package gke

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Meta is what every object has.
type Meta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid"`
	Version     string            `json:"resourceVersion"`
	Created     time.Time         `json:"creationTimestamp"`
	Deleted     *time.Time        `json:"deletionTimestamp"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Finalizers  []string          `json:"finalizers"`
	Owners      []Owner           `json:"ownerReferences"`
}

// Owner is an object that owns another one.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// owner is the UID of the object that takes care of this one, if it is of that kind.
func (m Meta) owner(kind string) string { return m.controller(kind).UID }

func (m Meta) controller(kind string) Owner {
	for _, o := range m.Owners {
		if o.Controller && o.Kind == kind {
			return o
		}
	}
	return Owner{}
}

// Condition is a condition of an object.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"lastTransitionTime"`
}

type conditions []Condition

// of is the condition of that type; the zero condition is none.
func (c conditions) of(typ string) Condition {
	for _, x := range c {
		if x.Type == typ {
			return x
		}
	}
	return Condition{}
}

func (c conditions) holds(typ string) bool { return c.of(typ).Status == "True" }

// Job is a Job of batch/v1.
type Job struct {
	Meta   `json:"metadata"`
	Spec   JobSpec `json:"spec"`
	Status struct {
		Conditions conditions `json:"conditions"`
		Started    *time.Time `json:"startTime"`
		Failed     int        `json:"failed"`
		Succeeded  int        `json:"succeeded"`
	} `json:"status"`

	order *order // its manifest; nil where it was not asked for
}

// JobSpec is what a Job asks for.
type JobSpec struct {
	Parallelism  *int `json:"parallelism"`
	Completions  *int `json:"completions"`
	BackoffLimit *int `json:"backoffLimit"`
	Suspend      bool `json:"suspend"`
	// FailurePolicy says which ends of Pods do not count.
	FailurePolicy struct {
		Rules []struct {
			Action     string      `json:"action"`
			Conditions []Condition `json:"onPodConditions"`
		} `json:"rules"`
	} `json:"podFailurePolicy"`
	Template Template `json:"template"`
}

// Template is what the Pods of a Job are made from.
type Template struct {
	Meta struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec PodSpec `json:"spec"`
}

// pods is how many Pods run at a time.
func (s JobSpec) pods() int {
	if s.Parallelism == nil {
		return 1
	}
	return *s.Parallelism
}

// retries is how many failures a Job bears.
func (s JobSpec) retries() int {
	if s.BackoffLimit == nil {
		return 6
	}
	return *s.BackoffLimit
}

// What a Job does where a Pod's machine took it along.
const (
	ignore  = "Ignore"  // it makes the Pod anew, however often
	failJob = "FailJob" // it fails at once
)

// onLoss is what the pod failure policy says of a Pod that its machine took along: the action and the place of the rule. An empty action
// is none, and the loss counts as a failure like any other.
func (s JobSpec) onLoss() (action string, index int) {
	for i, r := range s.FailurePolicy.Rules {
		if c := conditions(r.Conditions).of("DisruptionTarget"); c.Type != "" && (c.Status == "" || c.Status == "True") {
			return r.Action, i
		}
	}
	return "", 0
}

// losing is the failure of the Job after a loss that it does not bear, as the Job controller words it.
func (j Job) losing() Condition {
	if action, i := j.Spec.onLoss(); action == failJob {
		return Condition{Reason: "PodFailurePolicy", Message: fmt.Sprintf("Pod %s/%s has condition DisruptionTarget matching FailJob rule at index %d", j.Namespace, j.Name, i)}
	}
	return failing
}

// gaveUp is when the Job made no more Pods because it has failed; zero is not known.
func (j Job) gaveUp() time.Time {
	if at := j.Status.Conditions.of("FailureTarget").Since; !at.IsZero() {
		return at
	}
	return j.Status.Conditions.of("Failed").Since
}

// failing is the failure of a Job without retries.
var failing = Condition{Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}

// bears reports whether the Job itself makes a Pod anew: one that its machine took along, or one that ended for an unknown reason.
func (j Job) bears(loss bool) bool {
	action, _ := j.Spec.onLoss()
	return action == ignore || j.Status.Failed < j.Spec.retries() && (!loss || action != failJob)
}

// PodSpec is what a Pod asks for.
type PodSpec struct {
	NodeName     string            `json:"nodeName"`
	NodeSelector map[string]string `json:"nodeSelector"`
	Containers   []struct {
		Command   []string `json:"command"`
		Args      []string `json:"args"`
		Resources struct {
			Requests map[string]any `json:"requests"`
			Limits   map[string]any `json:"limits"`
		} `json:"resources"`
	} `json:"containers"`
	InitContainers []initContainer `json:"initContainers"`
}

// initContainer runs beside the containers if it restarts always, and before them otherwise.
// https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
type initContainer struct {
	RestartPolicy string `json:"restartPolicy"`
}

// trains reports whether a Pod is for TPUs.
func (s PodSpec) trains() bool { return s.chips() > 0 || s.NodeSelector[LabelAccelerator] != "" }

// chips is how many TPU chips a Pod asks for.
func (s PodSpec) chips() (n int) {
	for _, c := range s.Containers {
		n += max(quantity(c.Resources.Requests[tpuResource]), quantity(c.Resources.Limits[tpuResource]))
	}
	return n
}

// quantity reads a whole number as Kubernetes writes it.
func quantity(v any) int {
	switch v := v.(type) {
	case string:
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return 0
		}
		return n
	case float64:
		return max(0, int(v))
	}
	return 0
}

// JobSet is a JobSet of jobset.x-k8s.io/v1alpha2.
type JobSet struct {
	Meta `json:"metadata"`
	Spec struct {
		Suspend       bool `json:"suspend"`
		FailurePolicy *struct {
			MaxRestarts int `json:"maxRestarts"`
			Rules       []struct {
				Action   string   `json:"action"`
				Reasons  []string `json:"onJobFailureReasons"`
				Patterns []string `json:"onJobFailureMessagePatterns"`
				Targets  []string `json:"targetReplicatedJobs"`
			} `json:"rules"`
		} `json:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string `json:"name"`
			Replicas *int   `json:"replicas"`
			Template struct {
				Spec JobSpec `json:"spec"`
			} `json:"template"`
		} `json:"replicatedJobs"`
		// Volumes are those that JobSet makes, and by default deletes with it.
		Volumes []struct {
			Retention struct {
				WhenDeleted string `json:"whenDeleted"`
			} `json:"retentionPolicy"`
		} `json:"volumeClaimPolicies"`
	} `json:"spec"`
	Status struct {
		Conditions    conditions `json:"conditions"`
		TerminalState string     `json:"terminalState"`
		// Counted is how many restarts of the whole JobSet count towards the maximum. Restarts of single Jobs count there, too.
		Counted int `json:"restartsCountTowardsMax"`
		Parts   []struct {
			Counted []int `json:"jobRestartsCountTowardsMax"`
		} `json:"replicatedJobsStatus"`
	} `json:"status"`

	order *order // likewise
}

// restarts says why a slice that failed so may begin again by itself; empty if it does not. Part is the replicated Job that it belongs to.
// The first rule that fits counts, and without one each restart counts towards the maximum. What an action does that is not known here,
// JobSet alone knows.
func (s JobSet) restarts(part string, failed Condition) (why string) {
	p := s.Spec.FailurePolicy
	if p == nil || s.Status.TerminalState != "" {
		return ""
	}
	action := "RestartJobSet"
	for _, r := range p.Rules {
		fits := func(pattern string) bool {
			found, err := regexp.MatchString(pattern, failed.Message)
			return err == nil && found // JobSet passes over a pattern that is none
		}
		if (len(r.Reasons) == 0 || slices.Contains(r.Reasons, failed.Reason)) &&
			(len(r.Patterns) == 0 || slices.ContainsFunc(r.Patterns, fits)) &&
			(len(r.Targets) == 0 || slices.Contains(r.Targets, part)) {
			action = r.Action
			break
		}
	}
	const left = "its JobSet has restarts left"
	switch action {
	case "FailJobSet":
		return ""
	case "RestartJobSetAndIgnoreMaxRestarts", "RestartJobAndIgnoreMaxRestarts":
		return left
	case "RestartJobSet", "RestartJob":
		counted := s.Status.Counted
		for _, part := range s.Status.Parts {
			for _, n := range part.Counted {
				counted += n
			}
		}
		if counted < p.MaxRestarts {
			return left
		}
		return ""
	}
	return "its JobSet has yet to say what follows from the action " + action
}

// Pod is a Pod of a Job.
type Pod struct {
	Meta   `json:"metadata"`
	Spec   PodSpec `json:"spec"`
	Status struct {
		Phase      string     `json:"phase"`
		Reason     string     `json:"reason"`
		Conditions conditions `json:"conditions"`
		Started    *time.Time `json:"startTime"`
		Containers []struct {
			State struct {
				Waiting *struct {
					Reason string `json:"reason"`
				} `json:"waiting"`
				Terminated *struct {
					Code   int       `json:"exitCode"`
					Reason string    `json:"reason"`
					At     time.Time `json:"finishedAt"`
				} `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// crashed says how the first container ended that failed by itself; empty where none did, or where the machine took the Pod along.
func (p Pod) crashed() string {
	if p.Status.Phase != "Failed" || p.Status.Conditions.holds("DisruptionTarget") {
		return ""
	}
	for _, c := range p.Status.Containers {
		if t := c.State.Terminated; t != nil && t.Code != 0 {
			return fmt.Sprintf("its Pod %s ended with exit code %d (%s)", p.Name, t.Code, cmp.Or(t.Reason, "no reason"))
		}
	}
	return ""
}

// refused reports whether its machine did not let the Pod in: what the machine had when the Pod was placed on it, it no longer has, as a TPU
// without healthy chips. No container has run, and the Job counts it as a failure.
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins
func (p Pod) refused() bool {
	why := p.Status.Reason
	return p.Status.Phase == "Failed" && (why == "UnexpectedAdmissionError" || strings.HasPrefix(why, "OutOf"))
}

// job names the Job that the Pod is of, by its owner, or by its labels where that was deleted without it.
func (p Pod) job() (uid, name string) {
	owner := p.controller(kindJob)
	return cmp.Or(owner.UID, p.Labels[labelJobUID]), cmp.Or(owner.Name, p.Labels[labelJobName])
}

// over is when the last container ended, or when the machine took the Pod along or refused it; zero is not known.
func (p Pod) over() (at time.Time) {
	if p.refused() {
		return p.Created
	}
	at = p.Status.Conditions.of("DisruptionTarget").Since
	for _, c := range p.Status.Containers {
		if t := c.State.Terminated; t != nil && t.At.After(at) {
			at = t.At
		}
	}
	return at
}

func (p Pod) ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// Node is a machine.
type Node struct {
	Meta `json:"metadata"`
	Spec struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions conditions     `json:"conditions"`
		Capacity   map[string]any `json:"capacity"`
	} `json:"status"`
}

// Objects are what a cluster lists.
type Objects struct {
	Jobs    []Job
	JobSets []JobSet
	Pods    []Pod
	Nodes   []Node
	// Slices are listed only where a TPU7x machine or a Job for one is among the objects, and where the cluster lets them be listed.
	Slices []Slice
	// Requests and Workloads are listed only where a Job waits, and where the cluster has them.
	Requests  []ProvisioningRequest
	Workloads []Workload
	// Unexplained is why they could not be listed, if they should be.
	Unexplained error
	// Unread are the namespaces of which nothing is among the objects, though it should be.
	Unread []Unread
}

const tpuResource = "google.com/tpu"
