package show

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
)

// TestCheckRehearsesTheDeathOfAJob: what Kubernetes does, what a person has to do, and what would be called.
func TestCheckRehearsesTheDeathOfAJob(t *testing.T) {
	const scope = "us-east5/research/teams"
	for name, c := range map[string]struct {
		spec, directory, label, policy string
		says                           []string
		// comes says that nothing is in the way of the training's return.
		comes bool
	}{
		"a bare Job": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":0,"template":{"spec":{"containers":[{"command":["python3","train.py"]}]}}}}`,
			says: []string{"fails with its first failure", "runs without pitcrew", "pitstop-checkpoint-dir is missing", "kubectl annotate job llama-8b --namespace teams"}, comes: true,
		},
		"with a crew": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":2,"template":{"spec":{"containers":[{"command":["pitcrew","run","--","python3"]}]}}}}`, directory: "gs://ckpt/llama",
			says: []string{
				"bears 2 failures, each of one Pod; it restarts no gang", "its manifest starts pitcrew",
			},
		},
		"that bears a loss": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":0,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}}}`, directory: "gs://ckpt/llama",
			says: []string{"makes only the Pod anew that its machine took along, and the others run on"},
		},
		"that nobody may replace": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":0}}`, directory: "gs://ckpt/llama", label: "reserved",
			says: []string{
				"the switch recreate is no, limited by preset reserved: Pitstop says what happens", "kubectl delete job llama-8b --namespace teams",
				"announced maintenance comes in its window: ",
			},
		},
		"nothing that can be read": {spec: `{"kind":"Pod"}`, directory: "gs://ckpt/llama", says: []string{`its kind is "Pod", and neither Job nor JobSet`}},
	} {
		w := deploymenttest.Trains("llama-8b", func(s *deploymenttest.Story) {
			s.Provider, s.Slice.Zone, s.Slice.Directory = "gke", scope, c.directory
			s.Slice.Facts.Label, s.Slice.Facts.Healing = cmp.Or(c.label, "spot"), evidence.HealsNever
		})
		b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
		if err := b.Ledger.SaveSpec(t.Context(), w.Shown(deploymenttest.Noon).Slices[0].Spec, []byte(c.spec)); err != nil {
			t.Fatal(err)
		}
		if c.policy != "" {
			if err := b.Ledger.SaveSettings(t.Context(), ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml", Allow: "recreate,release"}}); err != nil {
				t.Fatal(err)
			}
			b.ReadFile = func(context.Context, string) ([]byte, error) {
				return []byte("policies: {night: {" + c.policy + "}}"), nil
			}
		}
		b.Bucket()
		out, err := b.Call("check", "llama-8b")
		if (err == nil) != c.comes {
			t.Errorf("%s: training would come back is %t: %v", name, err == nil, err)
		}
		if c.label == "" {
			c.says = append(c.says, "once it has failed for good, Pitstop deletes job llama-8b and creates it again from its stored manifest")
		}
		for _, want := range append(c.says,
			"would be io.k8s.batch.v1.jobs.create projects/demo/locations/us-east5/clusters/research/k8s/namespaces/teams/jobs/llama-8b") {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, out)
			}
		}
	}
}

// TestAWaitingJobIsShown with the cluster's words, and since when by its own objects, however late Pitstop read it.
func TestAWaitingJobIsShown(t *testing.T) {
	w := deploymenttest.Begin("llama-8b")
	w.Provider, w.Slice.Zone, w.Slice.Facts.WaitsSince = "gke", "us-east5/research/teams", deploymenttest.Noon.Add(-3*time.Hour)
	w.Before(0).Reads(deploymenttest.Is(evidence.Creating, "creating: its Pod llama-8b-0 waits for a machine: Unschedulable: Insufficient google.com/tpu"))
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w.Workload)
	b.Want([]string{"status", "llama-8b"}, "Unschedulable: Insufficient google.com/tpu, waiting since 2026-11-21T09:00:00Z, for 3 h 0 m")
	out, err := b.Call("check", "llama-8b")
	for _, want := range []string{"Insufficient google.com/tpu, waiting since 2026-11-21T09:00:00Z; nothing follows but reminders", "kubectl describe job llama-8b --namespace teams"} {
		if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%v: %q is missing in\n%s", err, want, out)
		}
	}
}
