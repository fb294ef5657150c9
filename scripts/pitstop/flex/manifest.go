package flex

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	crew "pitstop.internal/scripts/pitcrew/metadata"
)

// The objects below have the fields that a plan sets, and only those, in the order in which people read them.

type object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec"`
}

type metadata struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type serviceSpec struct {
	ClusterIP string            `yaml:"clusterIP"`
	Selector  map[string]string `yaml:"selector"`
}

type jobSetSpec struct {
	FailurePolicy  failurePolicy   `yaml:"failurePolicy"`
	ReplicatedJobs []replicatedJob `yaml:"replicatedJobs"`
}

type failurePolicy struct {
	MaxRestarts int           `yaml:"maxRestarts"`
	Rules       []failureRule `yaml:"rules"`
}

type failureRule struct {
	Name                string   `yaml:"name"`
	Action              string   `yaml:"action"`
	OnJobFailureReasons []string `yaml:"onJobFailureReasons"`
	OnMessages          []string `yaml:"onJobFailureMessagePatterns,omitempty"`
}

type replicatedJob struct {
	Name     string `yaml:"name"`
	Replicas int    `yaml:"replicas"`
	Template struct {
		Spec jobSpec `yaml:"spec"`
	} `yaml:"template"`
}

type jobSpec struct {
	CompletionMode   string            `yaml:"completionMode,omitempty"`
	Parallelism      int               `yaml:"parallelism"`
	Completions      int               `yaml:"completions"`
	BackoffLimit     int               `yaml:"backoffLimit"`
	Replacement      string            `yaml:"podReplacementPolicy"`
	PodFailurePolicy *podFailurePolicy `yaml:"podFailurePolicy,omitempty"`
	Template         struct {
		Spec podSpec `yaml:"spec"`
	} `yaml:"template"`
}

type podFailurePolicy struct {
	Rules []podFailureRule `yaml:"rules"`
}

type podFailureRule struct {
	Action          string         `yaml:"action"`
	OnExitCodes     *exitCodes     `yaml:"onExitCodes,omitempty"`
	OnPodConditions []podCondition `yaml:"onPodConditions,omitempty"`
}

type exitCodes struct {
	ContainerName string `yaml:"containerName"`
	Operator      string `yaml:"operator"`
	Values        []int  `yaml:"values,flow"`
}

type podCondition struct {
	Type   string `yaml:"type"`
	Status string `yaml:"status"`
}

type podSpec struct {
	Subdomain          string            `yaml:"subdomain,omitempty"`
	ServiceAccountName string            `yaml:"serviceAccountName,omitempty"`
	RestartPolicy      string            `yaml:"restartPolicy"`
	Grace              int               `yaml:"terminationGracePeriodSeconds"`
	NodeSelector       map[string]string `yaml:"nodeSelector"`
	Containers         []podContainer    `yaml:"containers"`
}

type podContainer struct {
	Name            string          `yaml:"name"`
	Image           string          `yaml:"image"`
	SecurityContext map[string]bool `yaml:"securityContext"`
	Ports           []port          `yaml:"ports"`
	Env             []variable      `yaml:"env"`
	Command         []string        `yaml:"command,flow"`
	Resources       resources       `yaml:"resources"`
}

type port struct {
	ContainerPort int `yaml:"containerPort"`
}

type variable struct {
	Name      string     `yaml:"name"`
	Value     string     `yaml:"value,omitempty"`
	ValueFrom *valueFrom `yaml:"valueFrom,omitempty"`
}

type valueFrom struct {
	FieldRef struct {
		FieldPath string `yaml:"fieldPath"`
	} `yaml:"fieldRef"`
}

type resources struct {
	Requests map[string]int `yaml:"requests"`
	Limits   map[string]int `yaml:"limits"`
}

const (
	portTPU     = 8471 // over which the machines of a slice speak
	portMetrics = 8431 // at which the TPU's runtime shows its metrics

	// saveGrace is how long a Pod that is asked to end may take for its last save.
	saveGrace = 300
	// jobSetRestarts bounds the restarts that no lost machine explains. pitcrew restarts a training itself before it gives up.
	jobSetRestarts = 10
	// jobRetries bounds the new Pods of a Job of one machine, likewise. A Pod that a machine without healthy chips refuses counts too, and the
	// Job makes so many of them in about 45 minutes.
	jobRetries = 12
)

// The labels that GKE puts on the machines of a flex-start pool with TPUs.
const (
	labelFlex        = "cloud.google.com/gke-flex-start"
	labelAccelerator = "cloud.google.com/gke-tpu-accelerator"
	labelTopology    = "cloud.google.com/gke-tpu-topology"
	labelPool        = "cloud.google.com/gke-nodepool"
	tpuResource      = "google.com/tpu"
)

// objects are what trains on the slices.
func (o Options) objects(s Slice) []object {
	at := metadata{
		Name: o.Name, Namespace: o.Namespace,
		// Pitstop reads the policy and the checkpoint directory here.
		Labels: map[string]string{events.LabelPolicy: o.Policy}, Annotations: map[string]string{events.MetadataCheckpointDir: o.Directory},
	}
	if o.JobSet || o.Slices > 1 {
		r := replicatedJob{Name: "slice", Replicas: o.Slices}
		r.Template.Spec = o.job(s)
		// A lost machine fails the child Job with the reason PodFailurePolicy, and JobSet begins again without counting it.
		r.Template.Spec.BackoffLimit = 0
		r.Template.Spec.PodFailurePolicy = failures("FailJob")
		if o.Slices > 1 {
			at.Annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] = labelPool // each slice in a pool of its own
		}
		return []object{{"jobset.x-k8s.io/v1alpha2", "JobSet", at, jobSetSpec{
			FailurePolicy: failurePolicy{jobSetRestarts, []failureRule{
				{"wrongCall", "FailJobSet", []string{podFailed}, []string{"failed with exit code (2|126|127) "}},
				{"machineLost", "RestartJobSetAndIgnoreMaxRestarts", []string{podFailed}, nil},
			}},
			ReplicatedJobs: []replicatedJob{r},
		}}}
	}
	job := o.job(s)
	if !s.Several() {
		// One machine has no gang: the Job may put a new Pod in the place of the lost one, and the training resumes.
		job.BackoffLimit, job.PodFailurePolicy = jobRetries, failures("Ignore")
		return []object{{"batch/v1", "Job", at, job}}
	}
	service := metadata{Name: o.Name + "-workers", Namespace: o.Namespace}
	job.Template.Spec.Subdomain = service.Name
	return []object{
		{"v1", "Service", service, serviceSpec{"None", map[string]string{"batch.kubernetes.io/job-name": o.Name}}},
		{"batch/v1", "Job", at, job},
	}
}

// podFailed is the reason of a Job that its pod failure policy ended.
const podFailed = "PodFailurePolicy"

// failures ends a Job whose call is wrong, because no other try helps, and does something else where a machine was lost.
func failures(lost string) *podFailurePolicy {
	return &podFailurePolicy{[]podFailureRule{
		{Action: "FailJob", OnExitCodes: &exitCodes{crew.Container, "In", []int{2, 126, 127}}},
		{Action: lost, OnPodConditions: []podCondition{{"DisruptionTarget", "True"}}},
	}}
}

// job is a Job with one Pod on each machine of a slice.
func (o Options) job(s Slice) jobSpec {
	// A Pod comes anew only after the former one has ended. Otherwise two of them could write checkpoints.
	j := jobSpec{Parallelism: s.Nodes, Completions: s.Nodes, Replacement: "Failed"}
	if s.Several() {
		j.CompletionMode = "Indexed"
	}
	chips := map[string]int{tpuResource: s.Machine.Chips}
	j.Template.Spec = podSpec{
		ServiceAccountName: o.ServiceAccount, RestartPolicy: "Never", Grace: saveGrace,
		NodeSelector: map[string]string{labelFlex: "true", labelAccelerator: s.Machine.Accelerator, labelTopology: s.Topology},
		Containers: []podContainer{{
			Name: crew.Container, Image: o.Image, SecurityContext: map[string]bool{"privileged": true},
			Ports: []port{{portTPU}, {portMetrics}}, Env: o.identity(),
			Command:   asTyped(append([]string{"pitcrew", "run", "--checkpoint-dir=" + o.Directory, "--"}, o.Command...)),
			Resources: resources{chips, chips},
		}},
	}
	return j
}

// asTyped keeps Kubernetes from expanding $(NAME) and $$ in the words of a command.
func asTyped(words []string) (escaped []string) {
	for _, word := range words {
		escaped = append(escaped, strings.ReplaceAll(word, "$", "$$"))
	}
	return escaped
}

// identity tells pitcrew in which Job it runs, by the downward API.
func (o Options) identity() []variable {
	field := func(name, path string) variable {
		v := variable{Name: name, ValueFrom: &valueFrom{}}
		v.ValueFrom.FieldRef.FieldPath = path
		return v
	}
	all := []variable{
		{Name: crew.VariableCluster, Value: o.Location + "/" + o.Cluster},
		field(crew.VariableNamespace, "metadata.namespace"),
		field(crew.VariablePod, "metadata.name"),
		field(crew.VariableJob, "metadata.labels['batch.kubernetes.io/job-name']"),
		field(crew.VariableJobUID, "metadata.labels['batch.kubernetes.io/controller-uid']"),
	}
	if o.JobSet || o.Slices > 1 {
		all = append(all, field(crew.VariableJobSet, "metadata.labels['jobset.sigs.k8s.io/jobset-name']"))
	}
	return all
}

// yamlOf writes objects as documents of one file.
func yamlOf(objects []object) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, o := range objects {
		if err := e.Encode(o); err != nil {
			return "", fmt.Errorf("the manifest of %s %s: %w", o.Kind, o.Metadata.Name, err)
		}
	}
	if err := e.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}
