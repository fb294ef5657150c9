package incident

import "pitstop.internal/events"

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

// byProvider are the words of each provider. A workload of another provider gets the words of the Cloud TPU API.
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
}}

const cloudTPU = "cloud-tpu"

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

// recovery is the provider's own recovery, for people.
func (w Workload) recovery() string { return w.Words().Healer + "'s own recovery" }
