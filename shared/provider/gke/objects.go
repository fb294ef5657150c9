// Package gke reads trainings on TPUs in clusters of GKE: their Jobs, JobSets, Pods and Nodes become readings of slices. A slice is a
// Job, and a child Job of a JobSet is one slice of a Multislice. It reads only. No function uses it yet.
//
// The objects here have the fields that a reading needs. Everything else of an object is passed over.
package gke

import (
	"strconv"
	"strings"
	"time"
)

// Meta is what every object has.
type Meta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid"`
	Created     time.Time         `json:"creationTimestamp"`
	Deleted     *time.Time        `json:"deletionTimestamp"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Owners      []Owner           `json:"ownerReferences"`
}

// Owner is an object that owns another one.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// owner is the object that takes care of this one, if it is of that kind.
func (m Meta) owner(kind string) string {
	for _, o := range m.Owners {
		if o.Controller && o.Kind == kind {
			return o.UID
		}
	}
	return ""
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
	} `json:"status"`
}

// JobSpec is what a Job asks for.
type JobSpec struct {
	Parallelism  *int `json:"parallelism"`
	BackoffLimit *int `json:"backoffLimit"`
	Suspend      bool `json:"suspend"`
	// FailurePolicy says which ends of Pods do not count.
	FailurePolicy struct {
		Rules []struct {
			Action     string      `json:"action"`
			Conditions []Condition `json:"onPodConditions"`
		} `json:"rules"`
	} `json:"podFailurePolicy"`
	Template struct {
		Spec PodSpec `json:"spec"`
	} `json:"template"`
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

// ignoresLosses reports whether a Pod that its machine took along is made anew, however often.
func (s JobSpec) ignoresLosses() bool {
	for _, r := range s.FailurePolicy.Rules {
		if len(r.Conditions) == 0 {
			continue // a rule for exit codes
		}
		if conditions(r.Conditions).of("DisruptionTarget").Type != "" {
			return r.Action == "Ignore"
		}
	}
	return false
}

// PodSpec is what a Pod asks for.
type PodSpec struct {
	NodeName     string            `json:"nodeName"`
	NodeSelector map[string]string `json:"nodeSelector"`
	Containers   []struct {
		Resources struct {
			Requests map[string]any `json:"requests"`
			Limits   map[string]any `json:"limits"`
		} `json:"resources"`
	} `json:"containers"`
}

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
				Action string `json:"action"`
			} `json:"rules"`
		} `json:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string `json:"name"`
			Replicas *int   `json:"replicas"`
			Template struct {
				Spec JobSpec `json:"spec"`
			} `json:"template"`
		} `json:"replicatedJobs"`
	} `json:"spec"`
	Status struct {
		Conditions    conditions `json:"conditions"`
		TerminalState string     `json:"terminalState"`
		// Counted is how many restarts count towards the maximum.
		Counted int `json:"restartsCountTowardsMax"`
	} `json:"status"`
}

// restarts reports whether a failed slice begins again by itself: restarts are left, or some do not count.
func (s JobSet) restarts() bool {
	p := s.Spec.FailurePolicy
	if p == nil || s.Status.TerminalState != "" {
		return false
	}
	for _, r := range p.Rules {
		if strings.HasSuffix(r.Action, "AndIgnoreMaxRestarts") {
			return true
		}
	}
	return s.Status.Counted < p.MaxRestarts
}

// Pod is a Pod of a Job.
type Pod struct {
	Meta   `json:"metadata"`
	Spec   PodSpec `json:"spec"`
	Status struct {
		Phase      string     `json:"phase"`
		Conditions conditions `json:"conditions"`
		Started    *time.Time `json:"startTime"`
	} `json:"status"`
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
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

// Objects are what a cluster lists.
type Objects struct {
	Jobs    []Job
	JobSets []JobSet
	Pods    []Pod
	Nodes   []Node
}

const tpuResource = "google.com/tpu"
