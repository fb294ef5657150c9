package incident

import (
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Words are a provider's names for its slices, for people. No decision rests on them, and the functions make the calls that they
// name.
type Words struct {
	// Slice and Group are nouns: for a slice, and for the resource that the provider creates and deletes as a whole with all its
	// slices.
	Slice, Group string
	// Healer names the party that brings a slice back by itself.
	Healer string
	// Slices and Groups are the collections of the provider's API, as resource names have them.
	Slices, Groups string
	// Calls are the methods of the provider's API that carry out an action on a slice, or on its group.
	Calls map[events.Action]Method
	// States are the API's words for a slice that is lost, gone or usable.
	States map[Condition]string
	// Stops is the method with which an owner stops a slice.
	Stops string
	// Describe, Start, Delete and DeleteGroup are commands for a person. The name follows; a command for a group ends with After.
	Describe, Start, Delete, DeleteGroup, After string
}

// Method is the method of an action on a slice, and on its group.
type Method struct{ Slice, Group string }

// byProvider are the words of each provider. A workload whose provider is not known gets the words of the Cloud TPU API.
var byProvider = map[string]Words{cloudTPU: {
	Slice: "node", Group: "queued resource", Healer: "Google", Slices: "nodes", Groups: "queuedResources",
	Calls: map[events.Action]Method{
		events.ActionSave:     {Slice: "UpdateNode"},
		events.ActionMaintain: {Slice: "PerformMaintenance", Group: "PerformMaintenanceQueuedResource"},
		events.ActionStart:    {Slice: "StartNode"},
		events.ActionDelete:   {Slice: "DeleteNode", Group: "DeleteQueuedResource"},
		events.ActionCreate:   {Slice: "CreateNode", Group: "CreateQueuedResource"},
	},
	States: map[Condition]string{Lost: "PREEMPTED", Gone: "gone", Ready: "READY"},
	Stops:  "StopNode", Describe: "gcloud compute tpus tpu-vm describe", Start: "gcloud compute tpus tpu-vm start",
	Delete: "gcloud compute tpus tpu-vm delete", DeleteGroup: "gcloud compute tpus queued-resources delete", After: " --force",
}, gke: {
	Slice: "Job", Group: "JobSet", Healer: "Kubernetes", Slices: "jobs", Groups: "jobsets",
	// A save is asked for beside the checkpoints alone.
	Calls: map[events.Action]Method{
		events.ActionDelete: {Slice: "io.k8s.batch.v1.jobs.delete", Group: "io.x-k8s.jobset.v1alpha2.jobsets.delete"},
		events.ActionCreate: {Slice: "io.k8s.batch.v1.jobs.create", Group: "io.x-k8s.jobset.v1alpha2.jobsets.create"},
	},
	States: map[Condition]string{Lost: "lost: the Job has failed", Gone: "gone", Ready: "ready"},
	Stops:  "suspension", Describe: "kubectl describe job", Start: `kubectl patch job --patch '{"spec":{"suspend":false}}'`,
	Delete: "kubectl delete job", DeleteGroup: "kubectl delete jobset",
}}

// The names of the providers in a workload's document.
const (
	cloudTPU = "cloud-tpu"
	gke      = "gke"
)

// Words are the words of the provider that gives the workload's slices.
func (w Workload) Words() Words {
	if words, known := byProvider[w.Provider]; known {
		return words
	}
	return byProvider[cloudTPU]
}

// noun names a slice for people, and group names the resource that holds it.
func (w Workload) noun(slice string) string  { return w.Words().Slice + " " + slice }
func (w Workload) group(group string) string { return w.Words().Group + " " + group }

// Limited is the policy of a workload as far as Pitstop can act on its provider. A Job stays in its cluster and its namespace, on the
// machines that its manifest selects, and its suspension belongs to its queue or its owner.
func (w Workload) Limited(p policy.Policy) policy.Policy {
	if w.Provider != gke {
		return p
	}
	p.Zones, p.Shapes = nil, nil
	return p.Without("GKE, where Pitstop never resumes a Job", policy.StartStopped).Without("GKE, where maintenance waits for its window", policy.EarlyMaintenance)
}

// place is a zone as resource names have it. The scope of a Job is LOCATION/CLUSTER/NAMESPACE.
func place(zone string) string {
	if in := strings.Split(zone, "/"); len(in) == 3 {
		return "locations/" + in[0] + "/clusters/" + in[1] + "/k8s/namespaces/" + in[2]
	}
	return "locations/" + zone
}

// inPlace is the flag of a command for a slice in a zone.
func inPlace(zone string) string {
	if in := strings.Split(zone, "/"); len(in) == 3 {
		return " --namespace " + in[2]
	}
	return " --zone " + zone
}

// recovery is the provider's own recovery, for people.
func (w Workload) recovery() string { return w.Words().Healer + "'s own recovery" }
