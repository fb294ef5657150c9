package incident

import (
	"cmp"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// Words are a provider's names for its slices, for people. No decision rests on them. The functions make the calls in them.
type Words struct {
	// Slice, Group and Worker are nouns: for a slice, for the resource that the provider creates and deletes as a whole with all its
	// slices, and for a part of a slice.
	Slice, Group, Worker string
	// Healer names the party that brings a slice back by itself.
	Healer string
	// Slices and Groups are the collections of the provider's API, as resource names have them.
	Slices, Groups string
	// Calls are the methods of the provider's API that carry out an action on a slice, or on its group.
	Calls map[events.Action]Method
	// States are the API's words for a slice that is lost, gone or usable.
	States map[evidence.Condition]string
	// Describe, Start, Delete and DeleteGroup are commands for a person. The name follows; a command for a group ends with After.
	Describe, Start, Delete, DeleteGroup, After string
}

// Method is the method of an action on a slice, and on its group.
type Method struct{ Slice, Group string }

// provider is what Pitstop knows of an API that slices come from: the facts on which decisions rest, and its words for people.
type provider struct {
	Words
	// trainsUnasked says that a new slice trains as soon as its workers run, and does not wait to be admitted. So a slice that Pitstop
	// has created belongs to its owner once it is there, and Pitstop creates none before it knows who deleted the last one.
	trainsUnasked bool
	// trainsAgain says that the provider itself begins the training on a slice again after a failure, until it calls the slice lost.
	trainsAgain bool
	// remakesSlices says that the provider itself makes the slices of a group again.
	remakesSlices bool
	// goesOnceDone says that the provider removes a slice some time after its work is complete: one that is gone may be no loss.
	goesOnceDone bool
	// goesWithWorkers says that a slice is being deleted until its last worker has ended, which a lost machine may delay.
	goesWithWorkers bool
	// noticeSaysEarly says that a notice alone tells whether maintenance can be started early, whatever the shape of the slice.
	noticeSaysEarly bool
	// onlyLines says that a crew is heard by its lines alone: nobody can read what it writes on its machine.
	onlyLines bool
	// staysInPlace says that a slice can be created again only in its own zone and shape.
	staysInPlace bool
	// never are the switches for which there is no call, each with the reason.
	never map[policy.Switch]string
}

// providers are all of them by name. A workload whose provider is not known gets the Cloud TPU API.
var providers = map[string]*provider{cloudTPU: {Words: Words{
	Slice: "node", Group: "queued resource", Worker: "worker", Healer: "Google", Slices: "nodes", Groups: "queuedResources",
	Calls: map[events.Action]Method{
		events.ActionSave:     {Slice: "UpdateNode"},
		events.ActionMaintain: {Slice: "PerformMaintenance", Group: "PerformMaintenanceQueuedResource"},
		events.ActionStart:    {Slice: "StartNode"},
		events.ActionDelete:   {Slice: "DeleteNode", Group: "DeleteQueuedResource"},
		events.ActionCreate:   {Slice: "CreateNode", Group: "CreateQueuedResource"},
	},
	States:   map[evidence.Condition]string{evidence.Lost: "PREEMPTED", evidence.Gone: "gone", evidence.Ready: "READY"},
	Describe: "gcloud compute tpus tpu-vm describe", Start: "gcloud compute tpus tpu-vm start",
	Delete: "gcloud compute tpus tpu-vm delete", DeleteGroup: "gcloud compute tpus queued-resources delete", After: " --force",
}}, gke: {Words: Words{
	Slice: "Job", Group: "JobSet", Worker: "Pod", Healer: "Kubernetes", Slices: "jobs", Groups: "jobsets",
	// A save is asked for beside the checkpoints alone. Maintenance begins with a label on machines.
	Calls: map[events.Action]Method{
		events.ActionMaintain: {Slice: "io.k8s.core.v1.nodes.patch", Group: "io.k8s.core.v1.nodes.patch"},
		events.ActionDelete:   {Slice: "io.k8s.batch.v1.jobs.delete", Group: "io.x-k8s.jobset.v1alpha2.jobsets.delete"},
		events.ActionCreate:   {Slice: "io.k8s.batch.v1.jobs.create", Group: "io.x-k8s.jobset.v1alpha2.jobsets.create"},
	},
	States:   map[evidence.Condition]string{evidence.Lost: "lost: the Job has failed", evidence.Gone: "gone", evidence.Ready: "ready"},
	Describe: "kubectl describe job", Start: `kubectl patch job --patch '{"spec":{"suspend":false}}'`,
	Delete: "kubectl delete job", DeleteGroup: "kubectl delete jobset",
}, trainsUnasked: true, trainsAgain: true, remakesSlices: true, goesOnceDone: true, goesWithWorkers: true, noticeSaysEarly: true, onlyLines: true, staysInPlace: true, never: map[policy.Switch]string{
	policy.StartStopped: "GKE, where Pitstop never resumes a Job", // its suspension is for its queue or its owner to end
}}}

// The names of the providers in a workload's document.
const (
	cloudTPU = "cloud-tpu"
	gke      = "gke"
)

// provider is the provider that gives the workload's slices.
func (w *Workload) provider() *provider {
	if p, known := providers[w.Provider]; known {
		return p
	}
	return providers[cloudTPU]
}

// Words are the words of the provider that gives the workload's slices.
func (w *Workload) Words() Words { return w.provider().Words }

// WordsOf are the words of the provider of that name.
func WordsOf(provider string) Words { return (&Workload{Provider: provider}).Words() }

// Limited is the policy of a workload as far as Pitstop can act on its provider.
func (w *Workload) Limited(p policy.Policy) policy.Policy {
	from := w.provider()
	if from.staysInPlace {
		p.Zones, p.Places = nil, nil
	}
	for sw, why := range from.never {
		p = p.Without(why, sw)
	}
	return p
}

// location is a zone as resource names have it. The scope of a Job is LOCATION/CLUSTER/NAMESPACE.
func location(zone string) string {
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

// deletes is the command with which a person deletes a life, or the group that holds it.
func (p Words) deletes(l *Life, name string) string {
	if l.Group != "" {
		return p.DeleteGroup + " " + l.Group + p.After + inPlace(l.Zone)
	}
	return p.Delete + " " + name + inPlace(l.Zone)
}

// methodWrite is the method of a bucket that writes an object.
const methodWrite = "storage.objects.create"

// actors are the functions that make the calls of each action.
var actors = map[events.Action]string{
	events.ActionSave: "checkpoint", events.ActionMaintain: "checkpoint", events.ActionAdmit: "recovery", events.ActionRestart: "recovery",
	events.ActionStart: "recovery", events.ActionDelete: "recreate", events.ActionCreate: "recreate",
}

// call is a call that an effect makes.
func (x *Effect) call(method, resource string) view.Call {
	return view.Call{Function: actors[x.Action], Method: method, Resource: resource, Accelerator: x.Accelerator, Epoch: x.Epoch, Action: x.Action, Slice: x.Slice}
}

// calls are the calls that an effect makes, in their order.
func (w *Workload) calls(x Effect) (all []view.Call) {
	s := w.Slice(x.Slice)
	switch x.Action {
	case events.ActionSave:
		if w.Directory != "" {
			all = append(all, w.writes(x, events.RequestObject))
		}
		for i := range w.Slices {
			if s := &w.Slices[i]; s.Condition == evidence.Ready && w.Words().Calls[x.Action].Slice != "" {
				all = append(all, w.callOf(x, s))
			}
		}
	case events.ActionAdmit, events.ActionRestart:
		all = append(all, w.writes(x, events.LeaseObject))
	case events.ActionMaintain, events.ActionStart, events.ActionDelete, events.ActionCreate:
		if s != nil {
			all = append(all, w.callOf(x, s))
		}
	case events.ActionVerify, events.ActionHear: // which only read
	}
	return all
}

// writes is the call that writes an object beside the checkpoints.
func (w *Workload) writes(x Effect, name string) view.Call {
	return x.call(methodWrite, strings.TrimRight(w.Directory, "/")+"/"+name)
}

// callOf is the call on a slice, or on the group that holds it.
func (w *Workload) callOf(x Effect, s *Slot) view.Call {
	words, at := w.Words(), "projects/"+w.Project+"/"+location(cmp.Or(x.Zone, s.Zone))+"/"
	if method := words.Calls[x.Action]; s.Group == "" || method.Group == "" {
		return x.call(method.Slice, at+words.Slices+"/"+s.Name)
	}
	return x.call(words.Calls[x.Action].Group, at+words.Groups+"/"+s.Group)
}
