package world

import (
	"cmp"
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/flex"
)

// ClusterConfig is a cluster of GKE, and the Jobs in it.
type ClusterConfig struct {
	Name string `yaml:"name"`
	// Location is that of the cluster: a region or a zone. Zone is where its machines are, without it the region's zone a.
	Location string `yaml:"location"`
	Zone     string `yaml:"zone,omitempty"`
	// Pools are its node pools.
	Pools []PoolConfig `yaml:"pools"`
	// Jobs are the Jobs and JobSets in it.
	Jobs []JobConfig `yaml:"jobs"`
}

// PoolConfig is a node pool.
type PoolConfig struct {
	Name string `yaml:"name"`
	// Machine is the machine type, as in ct6e-standard-4t, and Topology that of a slice; without it a machine is a slice.
	Machine  string `yaml:"machine"`
	Topology string `yaml:"topology,omitempty"`
	// FlexStart machines live for seven days at most, or as long as RunsFor says, and Spot machines may be taken away at any moment.
	FlexStart bool     `yaml:"flex_start,omitempty"`
	Spot      bool     `yaml:"spot,omitempty"`
	RunsFor   Duration `yaml:"runs_for,omitempty"`
	// SaysEnd has each machine say in an annotation when it ends.
	SaysEnd bool `yaml:"says_end,omitempty"`
	// Machines is how many there are. Another one comes in the place of one that is lost.
	Machines int `yaml:"machines"`
}

// JobConfig is a Job, or a JobSet with one Job for each slice.
type JobConfig struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"` // default
	// Pool is a node pool whose machines its Pods select. Each Pod takes a whole machine, and each slice as many as the topology has.
	Pool string `yaml:"pool"`
	// Slices is how many child Jobs a JobSet has; 0 is a Job of its own.
	Slices int `yaml:"slices,omitempty"`
	// Retries is the Job's backoffLimit, and Restarts the JobSet's maxRestarts.
	Retries  int `yaml:"retries,omitempty"`
	Restarts int `yaml:"restarts,omitempty"`
	// BearsLoss has the pod failure policy ignore Pods that their machine took along.
	BearsLoss bool `yaml:"bears_loss,omitempty"`
	// Expires is how long after its end the Job is deleted; without it, it stays.
	Expires *Duration `yaml:"expires,omitempty"`
	// Queue is the value of Kueue's label.
	Queue string `yaml:"queue,omitempty"`
	// Policy is the value of the label pitstop-policy, Workload that of pitstop-workload, and Directory the checkpoint directory.
	Policy    string `yaml:"policy,omitempty"`
	Workload  string `yaml:"workload,omitempty"`
	Directory string `yaml:"directory,omitempty"`
	// Secret is the value of an environment variable of its containers.
	Secret string `yaml:"secret,omitempty"`
	// Waits has the Pods of a gang wait for one that was made anew, and never end. Without it they end some minutes after the loss.
	Waits   bool          `yaml:"waits,omitempty"`
	Crew    CrewConfig    `yaml:"crew,omitempty"`
	Trainer TrainerConfig `yaml:"trainer,omitempty"`
}

// Path is LOCATION/CLUSTER.
func (c ClusterConfig) Path() string { return c.Location + "/" + c.Name }

// zone is where the machines are.
func (c ClusterConfig) zone() string { return cmp.Or(c.Zone, c.Location+"-a") }

// In is the namespace.
func (j JobConfig) In() string { return cmp.Or(j.Namespace, "default") }

// Names are the names of the Jobs: a slice each.
func (j JobConfig) Names() []string {
	if j.Slices == 0 {
		return []string{j.Name}
	}
	var names []string
	for i := range j.Slices {
		names = append(names, fmt.Sprintf("%s-%s-%d", j.Name, replicated, i))
	}
	return names
}

// replicated is the name of the replicated Job of each JobSet.
const replicated = "slice"

// WorkloadName is the name of what trains in it.
func (j JobConfig) WorkloadName() string { return cmp.Or(j.Workload, j.Name) }

// pool is a node pool by its name.
func (c ClusterConfig) pool(name string) (p PoolConfig, slice flex.Slice, err error) {
	for _, p := range c.Pools {
		if p.Name == name {
			slice, err = flex.SliceOf(p.Machine, p.Topology)
			return p, slice, err
		}
	}
	return p, slice, fmt.Errorf("there is no pool %.40q", name)
}

// faults are what is wrong with a cluster.
func (c ClusterConfig) faults() (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("scenario: cluster %s: "+format, append([]any{c.Name}, args...)...))
	}
	if c.Name == "" || c.Location == "" {
		fault("it has no name or no location")
	}
	pools := map[string]bool{}
	for _, p := range c.Pools {
		if pools[p.Name] || p.Name == "" {
			fault("pool %.40q: each pool has a name of its own", p.Name)
		}
		pools[p.Name] = true
		if _, err := flex.SliceOf(p.Machine, p.Topology); err != nil {
			fault("pool %s: %v", p.Name, err)
		}
		if p.Machines < 0 || p.Machines > mostMachines {
			fault("pool %s: %d machines; it has 0 to %d", p.Name, p.Machines, mostMachines)
		}
		if d := p.RunsFor; d < 0 || d > LongestRun || d > 0 && !p.FlexStart {
			fault("pool %s: runs_for is at most 168h, and only flex-start machines have it", p.Name)
		}
		if p.FlexStart && p.Spot {
			fault("pool %s: it is flex_start or spot, and not both", p.Name)
		}
	}
	names := map[string]bool{}
	for _, j := range c.Jobs {
		if _, _, err := c.pool(j.Pool); err != nil {
			fault("job %s: %v", j.Name, err)
		}
		if j.Slices < 0 || j.Slices > mostMachines || j.Retries < 0 || j.Restarts < 0 || j.Restarts > 0 && j.Slices == 0 {
			fault("job %s: slices, retries and restarts are not below 0, and only a JobSet, which has slices, has restarts", j.Name)
		}
		if d := j.Expires; d != nil && *d < 0 {
			fault("job %s: expires is below 0", j.Name)
		}
		for _, name := range j.Names() {
			if name = j.In() + "/" + name; j.Name == "" || names[name] {
				fault("job %.40q: each Job of a namespace has a name of its own", j.Name)
			} else {
				names[name] = true
			}
		}
	}
	return faults
}

// mostMachines bounds a pool, and the slices of a JobSet.
const mostMachines = 256

type object = map[string]any

// manifest is the Job or JobSet as its owner applies it.
func (c ClusterConfig) manifest(j JobConfig) (object, error) {
	pool, slice, err := c.pool(j.Pool)
	if err != nil {
		return nil, err
	}
	selector := object{"cloud.google.com/gke-tpu-accelerator": slice.Machine.Accelerator, "cloud.google.com/gke-tpu-topology": slice.Topology}
	if pool.FlexStart {
		selector["cloud.google.com/gke-flex-start"] = "true"
	}
	if pool.Spot {
		selector["cloud.google.com/gke-spot"] = "true"
	}
	chips := object{"google.com/tpu": fmt.Sprint(slice.Machine.Chips)}
	container := object{
		"name": "training", "image": "us-docker.pkg.dev/demo/training:1", "command": []any{"pitcrew", "run", "--", "python3", "train.py"},
		"resources": object{"requests": chips, "limits": chips},
	}
	if j.Directory != "" && !j.Crew.Absent {
		container["command"] = []any{"pitcrew", "run", "--checkpoint-dir=" + j.Directory, "--", "python3", "train.py"}
	}
	if j.Secret != "" {
		container["env"] = []any{object{"name": "API_TOKEN", "value": j.Secret}}
	}
	spec := object{
		"completionMode": "Indexed", "parallelism": slice.Nodes, "completions": slice.Nodes, "backoffLimit": j.Retries,
		"template": object{"spec": object{"restartPolicy": "Never", "nodeSelector": selector, "containers": []any{container}}},
	}
	if j.BearsLoss {
		spec["podFailurePolicy"] = object{"rules": []any{object{"action": "Ignore", "onPodConditions": []any{object{"type": "DisruptionTarget", "status": "True"}}}}}
	}
	meta := object{"name": j.Name, "namespace": j.In(), "labels": object{}, "annotations": object{}}
	put := func(where, key, value string) {
		if m, ok := meta[where].(object); ok && value != "" {
			m[key] = value
		}
	}
	put("labels", events.LabelPolicy, j.Policy)
	put("labels", events.LabelWorkload, j.Workload)
	put("labels", queueLabel, j.Queue)
	put("annotations", events.MetadataCheckpointDir, j.Directory)
	if j.Slices == 0 {
		if j.Expires != nil {
			spec["ttlSecondsAfterFinished"] = int(time.Duration(*j.Expires).Seconds())
		}
		return object{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}, nil
	}
	set := object{
		"failurePolicy":  object{"maxRestarts": j.Restarts},
		"replicatedJobs": []any{object{"name": replicated, "replicas": j.Slices, "template": object{"spec": spec}}},
	}
	return object{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": set}, nil
}

// queueLabel is the label by which Kueue takes care of a Job.
const queueLabel = "kueue.x-k8s.io/queue-name"
