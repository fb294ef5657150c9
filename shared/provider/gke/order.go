package gke

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// The kinds of objects from which a slice can be created again.
const (
	kindJob    = "Job"
	kindJobSet = "JobSet"
)

var apiVersions = map[string]string{kindJob: "batch/v1", kindJobSet: jobSetAPI}

// order is what a slice, or the JobSet that it belongs to, can be created from again: its manifest as applied, in canonical form,
// without the values of environment variables. These may be secrets; each is kept under the path of its variable, which is marked. Sum
// shows whether they have changed, and name names them with the manifest.
type order struct {
	spec   []byte
	values map[string]string
	sum    string
	name   string
}

// orders are the orders of a cluster's last listing: most objects are as they were a minute ago. It is safe for concurrent use.
type orders struct {
	cluster string // PROJECT/LOCATION/CLUSTER

	mu   sync.Mutex
	turn int // counts the listings
	kept map[string]*keptOrder
}

type keptOrder struct {
	*order

	namespace, version string
	turn               int
}

// of is the order in the text of an object; nil for one that cannot be read as a manifest.
func (k *orders) of(kind string, m Meta, text []byte) *order {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.kept[m.UID]
	if known == nil || known.version != m.Version || m.Version == "" {
		o, err := orderOf(k.cluster, kind, m, text)
		if err != nil {
			return nil
		}
		if known != nil && known.name == o.name && known.sum == o.sum {
			o = known.order // only its status has changed
		}
		known = &keptOrder{order: o, namespace: m.Namespace, version: m.Version}
		if k.kept == nil {
			k.kept = map[string]*keptOrder{}
		}
		k.kept[m.UID] = known
	}
	known.turn = k.turn
	return known.order
}

// listed forgets what no listing has shown since it was last called.
func (k *orders) listed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.kept, func(_ string, o *keptOrder) bool { return o.turn != k.turn })
	k.turn++
}

// forget forgets what is kept of a namespace.
func (k *orders) forget(namespace string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.kept, func(_ string, o *keptOrder) bool { return o.namespace == namespace })
}

// What the API server, its controllers and the tools that apply manifests add to an object. The annotations repeat the manifest with its
// values.
var (
	addedMetadata = []string{
		"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"ownerReferences", "finalizers", "selfLink", "generateName",
	}
	addedLabels      = []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name", events.LabelIncident}
	addedAnnotations = []string{
		"kubectl.kubernetes.io/last-applied-configuration", "kapp.k14s.io/original", "objectset.rio.cattle.io/applied", AnnotationRequest,
	}
)

// valueApart marks a variable in a stored manifest whose value is stored apart from it.
const valueApart = "valueApart"

// orderOf makes the order in the text of an object.
func orderOf(cluster, kind string, m Meta, text []byte) (*order, error) {
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	meta, spec := object(whole["metadata"]), object(whole["spec"])
	strip(meta)
	o := &order{values: map[string]string{}}
	delete(spec, "suspend")
	parts, _ := spec["replicatedJobs"].([]any)
	for _, part := range parts {
		strip(object(object(object(part)["template"])["metadata"]))
	}
	manifest := map[string]any{"apiVersion": apiVersions[kind], "kind": kind, "metadata": meta, "spec": spec}
	for _, job := range jobsIn(manifest) {
		uncontrolled(job.spec)
		for at, variable := range job.variables() {
			if value, is := variable["value"].(string); is {
				o.values[at] = value
				delete(variable, "value")
				variable[valueApart] = true
			}
		}
	}
	var err error
	if o.spec, err = json.Marshal(manifest, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	o.name = events.ID("spec", string(o.spec))
	if len(o.values) == 0 {
		o.values = nil
		return o, nil
	}
	raw, err := json.Marshal(o.values, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	// The values are named by the life that had them. A hash of the values would let every reader test guesses.
	o.sum, o.name = events.ID(string(raw)), o.name+"@"+events.ID("values", cluster, m.Namespace, kind, m.Name, m.UID)
	return o, nil
}

// uncontrolled takes out of the specification of a Job what its controller added.
func uncontrolled(job map[string]any) {
	delete(job, "suspend")
	if job["manualSelector"] != true {
		delete(job, "selector")
	}
	strip(object(object(job["template"])["metadata"]))
}

// jobIn is the specification of a Job in a manifest, and its path there.
type jobIn struct {
	at   string
	spec map[string]any
}

// jobsIn are those of a manifest: the Job itself, or those that a JobSet makes.
func jobsIn(manifest map[string]any) []jobIn {
	spec := object(manifest["spec"])
	if manifest["kind"] != kindJobSet {
		return []jobIn{{"/spec", spec}}
	}
	var all []jobIn
	parts, _ := spec["replicatedJobs"].([]any)
	for i, part := range parts {
		all = append(all, jobIn{"/spec/replicatedJobs/" + strconv.Itoa(i) + "/template/spec", object(object(object(part)["template"])["spec"])})
	}
	return all
}

// variables are the environment variables of a Job's containers, by their paths in the manifest.
func (j jobIn) variables() iter.Seq2[string, map[string]any] {
	return func(yield func(string, map[string]any) bool) {
		pod := object(object(j.spec["template"])["spec"])
		for _, list := range []string{"containers", "initContainers"} {
			containers, _ := pod[list].([]any)
			for i, c := range containers {
				env, _ := object(c)["env"].([]any)
				for k, v := range env {
					at := strings.Join([]string{j.at, "template/spec", list, strconv.Itoa(i), "env", strconv.Itoa(k)}, "/")
					if variable := object(v); variable != nil && !yield(at, variable) {
						return
					}
				}
			}
		}
	}
}

// strip takes out of an object's metadata what was added to it.
func strip(meta map[string]any) {
	for _, name := range addedMetadata {
		delete(meta, name)
	}
	for field, added := range map[string][]string{"labels": addedLabels, "annotations": addedAnnotations} {
		words := object(meta[field])
		maps.DeleteFunc(words, func(name string, _ any) bool { return slices.Contains(added, name) })
		if len(words) == 0 {
			delete(meta, field)
		}
	}
}

// object is a JSON object, or nil.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// Manifest is what a stored manifest says of how its training comes back.
type Manifest struct {
	// Kind is Job or JobSet. Retries is how many failures a Job bears by itself, and Restarts how often a JobSet begins again.
	Kind              string
	Retries, Restarts int
	// BearsLoss says that a Pod which its machine took along is made anew, however often.
	BearsLoss bool
	// Crew says that a container starts pitcrew.
	Crew bool
}

// ReadManifest reads the specification of a slice that this package has made.
func ReadManifest(spec []byte) (m Manifest, err error) {
	var raw struct {
		Kind string `json:"kind"`
		Spec struct {
			JobSpec

			FailurePolicy struct {
				MaxRestarts int `json:"maxRestarts"`
			} `json:"failurePolicy"`
			ReplicatedJobs []struct {
				Template struct {
					Spec JobSpec `json:"spec"`
				} `json:"template"`
			} `json:"replicatedJobs"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(spec, &raw); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	if apiVersions[raw.Kind] == "" {
		return m, fmt.Errorf("manifest: its kind is %.40q, and neither Job nor JobSet", raw.Kind)
	}
	m = Manifest{Kind: raw.Kind, Crew: strings.Contains(string(spec), "pitcrew")}
	if m.Kind == kindJob {
		action, _ := raw.Spec.onLoss()
		m.Retries, m.BearsLoss = raw.Spec.retries(), action == ignore
		return m, nil
	}
	m.Restarts = raw.Spec.FailurePolicy.MaxRestarts
	for i, r := range raw.Spec.ReplicatedJobs {
		action, _ := r.Template.Spec.onLoss()
		m.BearsLoss = (i == 0 || m.BearsLoss) && action == ignore
	}
	return m, nil
}
