package events

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// kubernetesKind is a kind of object that trains: a Job, which is a slice, or a JobSet, which holds the Jobs of a Multislice.
type kubernetesKind struct {
	// resource is the plural name of the kind, and noun its name for people.
	resource, noun string
	// whole says that an act on it is one on all its slices.
	whole bool
	// groups are the spellings of its API group in the name of a method. Kubernetes reverses it; no entry of a JobSet was seen yet, so the
	// other order counts too.
	groups []string
}

var kubernetesKinds = []kubernetesKind{
	{resource: "jobs", noun: "Job", groups: []string{"io.k8s.batch", "batch"}},
	{resource: "jobsets", noun: "JobSet", whole: true, groups: []string{"io.x-k8s.jobset", "jobset.x-k8s.io"}},
}

// kubernetesVerbs are the calls that change a Job or a JobSet, with the act of each. A patch or an update is an act where it sets the
// field suspend.
var kubernetesVerbs = map[string]Act{"create": ActCreated, "delete": ActDeleted, "patch": "", "update": ""}

// kubernetesCall takes the name of a method apart, as in io.k8s.batch.v1.jobs.delete. ok is false for a call that changes neither a Job
// nor a JobSet, and for one on their status alone.
func kubernetesCall(method string) (kind kubernetesKind, version, verb string, ok bool) {
	rest, verb := cutLast(method)
	if _, known := kubernetesVerbs[verb]; !known {
		return kubernetesKind{}, "", "", false
	}
	rest, resource := cutLast(rest)
	group, version := cutLast(rest)
	for _, k := range kubernetesKinds {
		for _, g := range k.groups {
			if k.resource == resource && g == group {
				return k, version, verb, true
			}
		}
	}
	return kubernetesKind{}, "", "", false
}

func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '.')
	return s[:max(i, 0)], s[i+1:]
}

// kubernetesAct is what a call to a cluster does to a slice, and whether it does so to all slices of a JobSet.
func kubernetesAct(c Call) (act Act, whole bool) {
	kind, _, verb, ok := kubernetesCall(c.Method)
	switch {
	case c.Method == namespaceDeletion:
		return ActDeleted, true
	case !ok:
		return "", false
	case c.Suspend == nil:
		return kubernetesVerbs[verb], kind.whole
	case verb == "create":
		return ActCreated, kind.whole
	case *c.Suspend:
		return ActStopped, kind.whole
	}
	return ActStarted, kind.whole
}

// scope is where the Jobs of a namespace are: LOCATION/CLUSTER/NAMESPACE, in the place of a zone.
func scope(location, cluster, namespace string) string {
	return location + "/" + cluster + "/" + namespace
}

// Scope takes the zone of a Job apart, which is LOCATION/CLUSTER/NAMESPACE. ok is false for every other zone.
func (s Subject) Scope() (location, cluster, namespace string, ok bool) {
	in := strings.Split(s.Zone, "/")
	if len(in) != 3 {
		return "", "", "", false
	}
	return in[0], in[1], in[2], true
}

// jobCall reads an audited call that changes a Job or a JobSet of a cluster. The entry names the object, and for a creation with a name
// that Kubernetes makes up the answer does.
func (l *logEntry) jobCall(e *Entry, kind kubernetesKind, version, verb string) {
	p, labels := &l.ProtoPayload, &l.Resource.Labels
	e.Kind = KindCall
	e.Call = Call{
		Method: p.MethodName, Version: version, Principal: p.Authentication.caller(),
		First: l.Operation.First, Last: l.Operation.Last, Operation: l.Operation.ID,
		Code: p.Status.Code, Message: short(WithoutValue(p.Status.Message)),
	}
	var asked, made kubernetesObject
	if !peek(p.Request, &asked) {
		asked = kubernetesObject{}
	}
	if !peek(p.Response, &made) {
		made = kubernetesObject{}
	}
	namespace, name := objectName(p.ResourceName, kind.resource)
	for _, o := range []kubernetesObject{made, asked} {
		if o.Kind == kind.noun {
			namespace, name = cmp.Or(namespace, o.Metadata.Namespace), cmp.Or(name, o.Metadata.Name)
		}
	}
	if asked.DryRun.count > 0 {
		e.Ignored = "the call " + short(p.MethodName) + " is a dry run, which changes nothing"
	}
	if verb != "delete" {
		e.Call.Suspend = asked.Spec.Suspend
	}
	if kubernetesVerbs[verb] == "" && e.Call.Suspend == nil {
		e.Ignored = "the call " + short(p.MethodName) + " neither suspends a " + kind.noun + " nor resumes it"
	}
	e.Subject = Subject{Project: l.project()}
	if labels.Location == "" || labels.ClusterName == "" || namespace == "" || name == "" || strings.Contains(namespace+labels.Location+labels.ClusterName, "/") {
		e.Missing = append(e.Missing, "resourceName")
		e.Ignored = "the call " + short(p.MethodName) + " does not name its " + kind.noun
		return
	}
	e.Subject.Zone = scope(labels.Location, labels.ClusterName, namespace)
	if kind.whole {
		e.Subject.QueuedResource = name
	} else {
		e.Subject.Node = name
	}
	if verb == "create" {
		e.Call.Order = asked.order(name)
	}
}

// namespaceDeletion is the call that deletes a namespace, and everything in it.
const namespaceDeletion = "io.k8s.core.v1.namespaces.delete"

// namespaceGone reads the deletion of a namespace. Its subject is a scope without a name: all Jobs there.
func (l *logEntry) namespaceGone(e *Entry) {
	p, labels := &l.ProtoPayload, &l.Resource.Labels
	_, namespace, ok := strings.Cut(p.ResourceName, "/namespaces/")
	e.Kind = KindCall
	e.Call = Call{
		Method: p.MethodName, Version: "v1", Principal: p.Authentication.caller(), First: l.Operation.First, Last: l.Operation.Last,
		Operation: l.Operation.ID, Code: p.Status.Code, Message: short(p.Status.Message),
	}
	e.Subject = Subject{Project: l.project(), Zone: scope(labels.Location, labels.ClusterName, namespace)}
	if !ok || namespace == "" || labels.Location == "" || labels.ClusterName == "" || strings.Contains(namespace+labels.Location+labels.ClusterName, "/") {
		e.Subject.Zone = ""
		e.Missing = append(e.Missing, "resourceName")
		e.Ignored = "the call " + p.MethodName + " does not name its namespace"
	}
}

// Everything reports whether the entry is about all Jobs of a namespace.
func (e Entry) Everything() bool { return e.Kind == KindCall && e.Call.Method == namespaceDeletion }

// refusedValue matches what stands before the value that an API server refuses.
// https://pkg.go.dev/k8s.io/apimachinery/pkg/util/validation/field#ErrorType
var refusedValue = regexp.MustCompile(`(?:Invalid|Unsupported|Duplicate) value`)

// WithoutValue is the message of an API server that refuses a call, up to the value that it refuses: it may repeat that, as the whole
// template of a Job with its arguments and the values of its environment variables.
func WithoutValue(message string) string {
	if at := refusedValue.FindStringIndex(message); at != nil {
		return message[:at[1]]
	}
	return message
}

// objectName takes the name of an object out of batch/v1/namespaces/NAMESPACE/jobs/NAME. Both are empty where it has another form.
func objectName(resourceName, resource string) (namespace, name string) {
	_, rest, ok := strings.Cut("/"+resourceName, "/namespaces/")
	parts := strings.Split(rest, "/")
	switch {
	case !ok || len(parts) < 2 || parts[1] != resource:
		return "", ""
	case len(parts) == 2:
		return parts[0], ""
	}
	return parts[0], parts[2]
}

// kubernetesObject is the part of a Job, or a JobSet, or a patch of one, that is read. A patch in the form of a list is not read.
type kubernetesObject struct {
	Kind string `json:"kind"`
	// DryRun is a word of the options of a deletion.
	DryRun   few[string] `json:"dryRun"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		jobSpec
		Suspend *bool `json:"suspend"`
		Jobs    few[struct {
			Name     string `json:"name"`
			Replicas *int   `json:"replicas"`
			Template struct {
				Spec jobSpec `json:"spec"`
			} `json:"template"`
		}] `json:"replicatedJobs"`
	} `json:"spec"`
}

type jobSpec struct {
	Template struct {
		Spec struct {
			NodeSelector struct {
				Accelerator string `json:"cloud.google.com/gke-tpu-accelerator"`
				Topology    string `json:"cloud.google.com/gke-tpu-topology"`
			} `json:"nodeSelector"`
		} `json:"spec"`
	} `json:"template"`
}

// gkeAccelerators are GKE's names of the TPUs that have accelerator types, each with the type's prefix and what its suffix counts for
// each chip. https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
var gkeAccelerators = map[string]struct {
	prefix  string
	perChip int
}{
	"tpu-v4-podslice": {"v4", 2}, "tpu-v5-lite-podslice": {"v5litepod", 1}, "tpu-v5p-slice": {"v5p", 2}, "tpu-v6e-slice": {"v6e", 1},
}

// accelerator is the accelerator type of a slice, as the Cloud TPU API names it, or GKE's own name where that has none.
func (s jobSpec) accelerator() string {
	at := &s.Template.Spec.NodeSelector
	chips := 1
	for side := range strings.SplitSeq(at.Topology, "x") {
		n, err := strconv.Atoi(side)
		if err != nil || n < 1 || n > mostChips {
			return short(at.Accelerator)
		}
		chips *= n
		if chips > mostChips {
			return short(at.Accelerator)
		}
	}
	g, ok := gkeAccelerators[at.Accelerator]
	if !ok {
		return short(at.Accelerator)
	}
	return g.prefix + "-" + strconv.Itoa(chips*g.perChip)
}

// mostChips is more than the largest slice has.
const mostChips = 1 << 16

// order is what a creation asks for: the accelerator type, and the Jobs of a JobSet, as JobSet names them.
func (o kubernetesObject) order(name string) (order Order) {
	order.Accelerator = o.Spec.accelerator()
	for _, j := range o.Spec.Jobs.first {
		order.Accelerator = cmp.Or(order.Accelerator, j.Template.Spec.accelerator())
		replicas := 1
		if j.Replicas != nil {
			replicas = *j.Replicas
		}
		for i := range max(0, min(replicas, maxNodes-len(order.Nodes))) {
			order.Nodes = append(order.Nodes, name+"-"+short(j.Name)+"-"+strconv.Itoa(i))
		}
	}
	return order
}
