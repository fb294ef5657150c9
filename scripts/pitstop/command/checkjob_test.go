package main

import (
	"strings"
	"testing"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger/ledgertest"
)

// TestCheckRehearsesTheDeathOfAJob: what Kubernetes does, what a person has to do, and what would be called.
func TestCheckRehearsesTheDeathOfAJob(t *testing.T) {
	const scope = "us-east5/research/teams"
	for name, c := range map[string]struct {
		spec, directory string
		says            []string
	}{
		"a bare Job": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":0,"template":{"spec":{"containers":[{"command":["python3","train.py"]}]}}}}`,
			says: []string{"fails with its first failure, and stays failed", "runs without pitcrew", "pitstop-checkpoint-dir is missing", "kubectl annotate job llama-8b --namespace teams"},
		},
		"with a crew": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":2,"template":{"spec":{"containers":[{"command":["pitcrew","run","--","python3"]}]}}}}`, directory: "gs://ckpt/llama",
			says: []string{"bears 2 failures, each of one Pod; it restarts no gang", "its manifest starts pitcrew"},
		},
		"that bears a loss": {
			spec: `{"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":0,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}}}`, directory: "gs://ckpt/llama",
			says: []string{"makes only the Pod anew that its machine took along, and the others run on"},
		},
		"nothing that can be read": {spec: `{"kind":"Pod"}`, directory: "gs://ckpt/llama", says: []string{`its kind is "Pod", and neither Job nor JobSet`}},
	} {
		w := trains("llama-8b")
		w.Provider, w.Directory, w.Label = "gke", c.directory, "spot"
		w.Slices[0].Zone, w.Slices[0].Incarnation.Zone, w.Slices[0].Group, w.Slices[0].Healing = scope, scope, "", incident.HealsNever
		b := deployedWith(t, ledgertest.NewStore().Open, w)
		if err := b.ledger.SaveSpec(t.Context(), w.Slices[0].Spec, []byte(c.spec)); err != nil {
			t.Fatal(err)
		}
		b.bucket()
		out, err := b.call("check", "llama-8b")
		if err == nil {
			t.Errorf("%s: training would come back", name)
		}
		for _, want := range append(c.says, "Pitstop only watches Jobs of GKE", "kubectl delete job llama-8b --namespace teams",
			"would be io.k8s.batch.v1.jobs.create projects/demo/locations/us-east5/clusters/research/k8s/namespaces/teams/jobs/llama-8b") {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, out)
			}
		}
	}
}
