//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
)

// manifest is a Job or a JobSet. Reading an example fails on a field that is not here: it is misspelt, or it has to be added.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec struct {
		jobFields     `yaml:",inline"`
		FailurePolicy struct {
			MaxRestarts int `yaml:"maxRestarts"`
			Rules       []struct {
				Name     string
				Action   string
				Reasons  []string `yaml:"onJobFailureReasons"`
				Patterns []string `yaml:"onJobFailureMessagePatterns"`
			}
		} `yaml:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string
			Replicas int
			Template struct{ Spec jobFields }
		} `yaml:"replicatedJobs"`
	}
}

type jobFields struct {
	Suspend           bool
	CompletionMode    string `yaml:"completionMode"`
	Parallelism       int
	Completions       int
	BackoffLimit      int    `yaml:"backoffLimit"`
	ReplacementPolicy string `yaml:"podReplacementPolicy"`
	PodFailurePolicy  struct {
		Rules []struct {
			Action      string
			OnExitCodes struct {
				ContainerName string `yaml:"containerName"`
				Operator      string
				Values        []int
			} `yaml:"onExitCodes"`
			OnPodConditions []struct{ Type, Status string } `yaml:"onPodConditions"`
		}
	} `yaml:"podFailurePolicy"`
	Template struct{ Spec podFields }
}

type podFields struct {
	RestartPolicy      string            `yaml:"restartPolicy"`
	ServiceAccountName string            `yaml:"serviceAccountName"`
	Grace              int               `yaml:"terminationGracePeriodSeconds"`
	NodeSelector       map[string]string `yaml:"nodeSelector"`
	Containers         []struct {
		Name            string
		Image           string
		Command         []string
		SecurityContext struct{ Privileged bool } `yaml:"securityContext"`
		Ports           []struct {
			ContainerPort int `yaml:"containerPort"`
		}
		Env []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		Resources struct{ Requests, Limits map[string]int }
	}
}

// manifests are the examples for Kubernetes, by name.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	files, err := filepath.Glob("examples/job*.yaml")
	must(t, err)
	all := map[string]manifest{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		must(t, err)
		d := yaml.NewDecoder(bytes.NewReader(raw))
		d.KnownFields(true)
		var m manifest
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := d.Decode(&m); !errors.Is(err, io.EOF) {
			t.Errorf("%s holds a second object: %v", name, err)
		}
		all[filepath.Base(name)] = m
	}
	if len(all) != 3 {
		t.Fatalf("the examples are %v", files)
	}
	return all
}

// job is the Job, or the only child Job of a JobSet.
func (m manifest) job() jobFields {
	if m.Kind == "JobSet" {
		return m.Spec.ReplicatedJobs[0].Template.Spec
	}
	return m.Spec.jobFields
}

// TestManifestsTellACrewWhereItRuns: they set every variable that a crew reads, by the downward API, so that it knows its Job.
func TestManifestsTellACrewWhereItRuns(t *testing.T) {
	want := map[string]string{
		metadata.VariableCluster: "", metadata.VariableNamespace: "metadata.namespace", metadata.VariablePod: "metadata.name",
		metadata.VariableJob:    "metadata.labels['batch.kubernetes.io/job-name']",
		metadata.VariableJobUID: "metadata.labels['batch.kubernetes.io/controller-uid']",
	}
	for name, m := range manifests(t) {
		paths := map[string]string{}
		for _, v := range m.job().Template.Spec.Containers[0].Env {
			paths[v.Name] = v.ValueFrom.FieldRef.FieldPath
			if v.Name == metadata.VariableCluster != (v.Value == "LOCATION/CLUSTER") {
				t.Errorf("%s: %s is %q", name, v.Name, v.Value)
			}
		}
		if dir := m.Metadata.Annotations[events.MetadataCheckpointDir]; dir == "" || !slices.Contains(m.job().Template.Spec.Containers[0].Command, "--checkpoint-dir="+dir) {
			t.Errorf("%s: Pitstop looks for checkpoints in %q, and pitcrew does not save there", name, dir)
		}
		whole := maps.Clone(want)
		if m.Kind == "JobSet" {
			whole[metadata.VariableJobSet] = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
		}
		if diff := cmp.Diff(whole, paths); diff != "" {
			t.Errorf("%s (-want +set):\n%s", name, diff)
		}
	}
}

// TestManifestsFitTheirMachines: one Pod with all chips on each machine of the topology, on the ports of the TPU.
func TestManifestsFitTheirMachines(t *testing.T) {
	for name, c := range map[string]struct {
		kind, accelerator, topology string
		pods, chips                 int
		queue                       string
	}{
		"job.yaml":          {"Job", "tpu-v6e-slice", "2x4", 1, 8, ""},
		"jobset.yaml":       {"JobSet", "tpu-v5-lite-podslice", "4x4", 4, 4, ""},
		"jobset-kueue.yaml": {"JobSet", "tpu-v5-lite-podslice", "4x4", 4, 4, "QUEUE"},
	} {
		m := manifests(t)[name]
		j := m.job()
		pod := j.Template.Spec
		box := pod.Containers[0]
		chips := map[string]int{"google.com/tpu": c.chips}
		if m.Kind != c.kind || j.Parallelism != c.pods || j.Completions != c.pods || c.pods > 1 != (j.CompletionMode == "Indexed") {
			t.Errorf("%s: %s with %d and %d Pods, %q", name, m.Kind, j.Parallelism, j.Completions, j.CompletionMode)
		}
		if !cmp.Equal(box.Resources.Requests, chips) || !cmp.Equal(box.Resources.Limits, chips) || !box.SecurityContext.Privileged ||
			len(box.Ports) != 2 || box.Ports[0].ContainerPort != 8471 || box.Ports[1].ContainerPort != 8431 {
			t.Errorf("%s: %+v", name, box)
		}
		if !cmp.Equal(pod.NodeSelector, map[string]string{
			"cloud.google.com/gke-tpu-accelerator": c.accelerator, "cloud.google.com/gke-tpu-topology": c.topology,
		}) || pod.RestartPolicy != "Never" || pod.ServiceAccountName == "" {
			t.Errorf("%s: %+v", name, pod)
		}
		if j.ReplacementPolicy != "Failed" {
			t.Errorf("%s: a Pod comes anew before the former one has ended: podReplacementPolicy %q", name, j.ReplacementPolicy)
		}
		if m.Metadata.Labels["kueue.x-k8s.io/queue-name"] != c.queue || m.Spec.Suspend != (c.queue != "") {
			t.Errorf("%s: queue %q, suspended %t", name, m.Metadata.Labels, m.Spec.Suspend)
		}
		if box.Name != metadata.Container {
			t.Errorf("%s: the lines name the container %s, and it is %s", name, metadata.Container, box.Name)
		}
		if !slices.Equal(box.Command[:2], []string{"pitcrew", "run"}) {
			t.Errorf("%s: pitcrew is not the command: %q", name, box.Command)
		}
	}
}

// ended is how a Pod ended: with a code, and because of its machine or not.
type ended struct {
	code     int
	machine  bool
	pod, job string // what follows for the Job, and for the JobSet
}

// follows does what the Job controller and JobSet do with a Pod that ended, by the rules of the manifest: the first rule that fits
// counts. The messages are those of the Job controller.
func (m manifest) follows(t *testing.T, e ended) (job, jobSet string) {
	t.Helper()
	reason, message := "BackoffLimitExceeded", "Job has reached the specified backoff limit"
	job = "counted"
	for i, r := range m.job().PodFailurePolicy.Rules {
		byCode := r.OnExitCodes.Operator == "In" && r.OnExitCodes.ContainerName == "training" && slices.Contains(r.OnExitCodes.Values, e.code)
		byMachine := len(r.OnPodConditions) > 0 && r.OnPodConditions[0].Type == "DisruptionTarget" && r.OnPodConditions[0].Status == "True" && e.machine
		if !byCode && !byMachine {
			continue
		}
		if job = r.Action; job == "FailJob" {
			reason = "PodFailurePolicy"
			message = fmt.Sprintf("Pod default/llama-0 has condition DisruptionTarget matching FailJob rule at index %d", i)
			if byCode {
				message = fmt.Sprintf("Container training for pod default/llama-0 failed with exit code %d matching FailJob rule at index %d", e.code, i)
			}
		}
		break
	}
	if m.Kind != "JobSet" {
		return job, ""
	}
	for _, r := range m.Spec.FailurePolicy.Rules {
		fits := func(p string) bool { return regexp.MustCompile(p).MatchString(message) }
		if slices.Contains(r.Reasons, reason) && (len(r.Patterns) == 0 || slices.ContainsFunc(r.Patterns, fits)) {
			return job, r.Action
		}
	}
	return job, "RestartJobSet" // within maxRestarts
}

// TestExitCodesMeanToKubernetesWhatTheyMean: a lost machine costs no restart, a wrong call ends everything at once, and what
// pitcrew gave up is tried again within a bound.
func TestExitCodesMeanToKubernetesWhatTheyMean(t *testing.T) {
	const lost, again, over = "RestartJobSetAndIgnoreMaxRestarts", "RestartJobSet", "FailJobSet"
	for name, m := range manifests(t) {
		for _, e := range []ended{
			{crew.CodeUsage, false, "FailJob", over},
			{126, false, "FailJob", over},
			{127, false, "FailJob", over},
			{1, false, "counted", again},
			{crew.CodeFailed, false, "counted", again},
			{137, false, "counted", again},
			{143, false, "counted", again},
			{143, true, "Ignore", lost},
			{137, true, "Ignore", lost},
			{1, true, "Ignore", lost},
		} {
			job, jobSet := m.follows(t, e)
			wantJob, wantSet := e.pod, ""
			if m.Kind == "JobSet" {
				wantSet = e.job
				if wantJob == "Ignore" {
					wantJob = "FailJob" // so that JobSet begins again with all Pods
				}
			}
			if job != wantJob || jobSet != wantSet {
				t.Errorf("%s: code %d, machine lost %t: %s and %q, want %s and %q", name, e.code, e.machine, job, jobSet, wantJob, wantSet)
			}
		}
		if m.Kind == "JobSet" && (m.job().BackoffLimit != 0 || m.Spec.FailurePolicy.MaxRestarts < 1) || m.Kind == "Job" && m.job().BackoffLimit < 1 {
			t.Errorf("%s: backoffLimit %d, maxRestarts %d", name, m.job().BackoffLimit, m.Spec.FailurePolicy.MaxRestarts)
		}
	}
}

// TestAJobOutlivesAMachineThatRefusesItsPods: each Pod that a machine without healthy chips refuses counts as a failure. The Job makes the
// next one after 10 seconds, then after twice as long, and so on up to six minutes. A machine takes most of an hour to be repaired.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
func TestAJobOutlivesAMachineThatRefusesItsPods(t *testing.T) {
	for name, m := range manifests(t) {
		if m.Kind != "Job" {
			continue
		}
		outlives, wait := time.Duration(0), 10*time.Second
		for range m.job().BackoffLimit {
			outlives += wait
			wait = min(2*wait, 6*time.Minute)
		}
		if outlives < 45*time.Minute {
			t.Errorf("%s: after %s of refusals the Job has failed", name, outlives)
		}
	}
}
