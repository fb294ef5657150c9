package metadata

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"pitstop.internal/events"
)

// Pod says in which Job of Kubernetes this crew runs. It is zero elsewhere.
type Pod struct {
	// Location and Cluster name the cluster; Namespace and Name the Pod in it.
	Location, Cluster, Namespace, Name string
	// Job is the Job of this slice, and JobUID its life: a Job of the same name that is made again has another one.
	Job, JobUID string
	// JobSet is the JobSet that the Job belongs to, if any.
	JobSet string
}

// The variables by which a manifest tells a crew about its Pod, through the downward API.
const (
	VariableCluster   = "PITCREW_CLUSTER" // LOCATION/CLUSTER
	VariableNamespace = "PITCREW_NAMESPACE"
	VariablePod       = "PITCREW_POD"
	VariableJob       = "PITCREW_JOB"
	VariableJobUID    = "PITCREW_JOB_UID"
	VariableJobSet    = "PITCREW_JOBSET"
)

// Container is the name of the container in the manifests, in which the crew runs. The downward API does not tell it.
const Container = "training"

// Known reports whether the manifest says in which Job the crew runs.
func (p Pod) Known() bool { return p.JobUID != "" }

// Scope is where the Job is: LOCATION/CLUSTER/NAMESPACE.
func (p Pod) Scope() string { return p.Location + "/" + p.Cluster + "/" + p.Namespace }

// workload is the name of what trains together.
func (p Pod) workload() string { return first(p.JobSet, p.Job) }

// podIn reads the variables of a manifest. If none of them is there, the crew runs in no Pod, or in one whose manifest does not
// say so. If some are missing, the error names them.
func podIn(env func(string) string) (Pod, error) {
	location, cluster, whole := strings.Cut(env(VariableCluster), "/")
	p := Pod{
		Location: location, Cluster: cluster, Namespace: env(VariableNamespace), Name: env(VariablePod),
		Job: env(VariableJob), JobUID: env(VariableJobUID), JobSet: env(VariableJobSet),
	}
	if p == (Pod{}) {
		return p, nil
	}
	var missing []string
	for _, v := range []string{VariableCluster, VariableNamespace, VariablePod, VariableJob, VariableJobUID} {
		if env(v) == "" {
			missing = append(missing, v)
		}
	}
	switch {
	case len(missing) > 0:
		return Pod{}, fmt.Errorf("the manifest of this Pod does not set %s; pitcrew's examples show how", strings.Join(missing, ", "))
	case !whole || location == "" || cluster == "" || strings.Contains(cluster, "/"):
		return Pod{}, fmt.Errorf("%s=%s: it is LOCATION/CLUSTER, as in us-east5/research", VariableCluster, env(VariableCluster))
	}
	return p, nil
}

// PodError says what is wrong with the variables of this Pod's manifest.
func PodError() error {
	_, err := podIn(os.Getenv)
	return err
}

// in puts the machine into its Pod: the slice is the Job, and the worker the Pod's index in it.
func (m Machine) in(p Pod, env func(string) string) Machine {
	if !p.Known() {
		return m
	}
	m.Pod, m.Node, m.Host = p, p.Job, p.Name
	if env("TPU_WORKER_ID") == "" {
		m.Worker = number(env("JOB_COMPLETION_INDEX"), m.Worker)
	}
	return m
}

// Place is where the slice is: the scope of its Job, else its zone.
func (m Machine) Place() string {
	if m.Pod.Known() {
		return m.Pod.Scope()
	}
	return m.Zone
}

// Incarnation is the life of the slice, as far as its machines know it.
func (m Machine) Incarnation() events.Incarnation {
	return events.Incarnation{Zone: m.Place(), ID: m.Pod.JobUID}
}

// WorkloadName is the name of the workload where nobody gives one: the JobSet or Job, else the slice.
func (m Machine) WorkloadName() string { return first(m.Pod.workload(), m.SliceName()) }

// pod reads the few values that GKE's own metadata server has for Pods: it refuses the list of all.
// https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#metadata_server
func (c *Client) pod(ctx context.Context) (Machine, error) {
	project, err := c.Get(ctx, "project/project-id")
	if err != nil {
		return Machine{}, err
	}
	zone, err := c.Get(ctx, "instance/zone")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Machine{}, err
	}
	m := Machine{Project: strings.TrimSpace(project.Text), Worker: Unknown, Workers: 1, Slice: Unknown, Slices: 1, ServiceAccounts: true}
	if m.Zone = path.Base(strings.TrimSpace(zone.Text)); m.Zone == "." {
		m.Zone = ""
	}
	return m.inContainer(os.Getenv), nil
}
