package show

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

func TestCheckRehearsesADeath(t *testing.T) {
	b, g, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	got, err := b.Call("check", "llama-8b")
	if err != nil {
		t.Fatalf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, "if llama-8b died now: recreate: delete llama-8b first; then create llama-8b in us-west4-a",
		"call 2    delete node llama-8b in us-west4-a\n", "call 3    create node llama-8b in us-west4-a\n", "call 4    create node llama-8b in us-west4-b, if the one before refuses",
		"call 5    write the lease gs://ckpt/llama-8b/",
		"zone us-central1-a: the checkpoints are in us-west4", "you: set other_regions: yes",
		"the last complete one is step 48,000, 20 m 0 s old", "its start-up script starts pitcrew", "recreate has all")
	if strings.Contains(got, "s3cret") || strings.Contains(got, "stop  ") {
		t.Errorf("it says:\n%s", got)
	}
	want := []string{
		"pitstop-recreate@demo.iam.gserviceaccount.com on demo: tpu.nodes.get tpu.nodes.delete tpu.nodes.create",
		"pitstop-recreate@demo.iam.gserviceaccount.com on ckpt: storage.buckets.get",
		"pitstop-recreate@demo.iam.gserviceaccount.com on tpu@demo.iam.gserviceaccount.com: iam.serviceAccounts.actAs",
	}
	var asked []string
	for _, a := range g.Asked {
		if strings.Contains(a, "recreate") {
			asked = append(asked, a)
		}
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("permissions asked for (-want +got):\n%s", d)
	}
}

func TestCheckFindsWhatWouldKeepTrainingFromComingBack(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		breaks func(*deploymenttest.Bench, *deploymenttest.Granted, *buckettest.Server)
		says   []string
	}{
		"no start-up script": {
			`{"node":{"runtimeVersion":"v2"}}`, nil,
			[]string{"llama-8b has no start-up script: a new slice would be empty, at 16 chip-hours an hour, $8.00 an hour", "you: start training in the metadata key"},
		},
		"no permission": {deploymenttest.StartsCrew, func(_ *deploymenttest.Bench, g *deploymenttest.Granted, _ *buckettest.Server) {
			g.Lacks["pitstop-recreate@demo.iam.gserviceaccount.com"] = []string{"tpu.nodes.create", "iam.serviceAccounts.actAs"}
		}, []string{"recreate lacks tpu.nodes.create on demo", "roles/tpu.admin", "recreate lacks iam.serviceAccounts.actAs on tpu@demo.iam.gserviceaccount.com"}},
		"no checkpoint": {deploymenttest.StartsCrew, func(_ *deploymenttest.Bench, _ *deploymenttest.Granted, s *buckettest.Server) {
			s.Delete("ckpt", "llama-8b/48000/commit_success.txt")
		}, []string{"stop      checkpoint: no checkpoint in gs://ckpt/llama-8b"}},
		"no policy": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) { w.Label = "" })
		}, []string{"without the label pitstop-policy", "pitstop attach llama-8b"}},
		"a policy that cannot be read": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.ReadFile = func(context.Context, string) ([]byte, error) { return nil, errors.New("403") }
		}, []string{"check cannot read it: gs://ops/policy.yaml: 403"}},
		"no specification": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) { w.Slices[0].Spec = "another" })
		}, []string{"Pitstop has never read llama-8b, so it cannot create it again"}},
		"a slice that is lost already, as an incident has told": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) {
				s := &w.Slices[0]
				s.Condition, s.State, s.End.Reported = incident.Lost, "PREEMPTED", true
			})
		}, []string{"if llama-8b died now: nothing: an incident has told its end already", "stop      decision: Pitstop would do nothing: an incident has told its end already", "stop      slice: llama-8b is PREEMPTED already", "you: pitstop retry llama-8b"}},
		"what the last incident decided is over": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) {
				s, last := &w.Slices[0], *deploymenttest.Llama().Incident
				s.Condition, s.State, s.End.Reported = incident.Lost, "PREEMPTED", true
				last.Phase, last.Outcome, last.Reason, last.Closed = incident.Closed, incident.Released, "cancelled", deploymenttest.Noon.Add(-time.Minute)
				w.Closed = &last
			})
		}, []string{"if llama-8b died now: nothing", "stop      decision: Pitstop would do nothing"}},
		"a slice that is not usable": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].State = incident.Unhealthy, "REPAIRING" })
		}, []string{"stop      slice: llama-8b is REPAIRING already"}},
		"a pause": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) { w.Pause = &incident.Pause{By: "ada", Why: "a look"} })
		}, []string{"stop      pause: it is paused by ada: a look", "you: pitstop resume llama-8b"}},
		"a pause of everything": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			if err := b.Ledger.SetPause(b.T.Context(), &incident.Pause{By: "ada", Until: deploymenttest.Noon.Add(time.Hour)}); err != nil {
				b.T.Error(err)
			}
		}, []string{"stop      pause: everything is paused by ada until 2026-11-21T13:00:00Z", "you: pitstop resume --all"}},
		"an open incident": {deploymenttest.StartsCrew, func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Change(func(w *incident.Workload) { w.Incident = deploymenttest.Llama().Incident })
		}, []string{"stop      incident: llama-8b-20261121-3 is open: preemption, deleting", "you: pitstop incident llama-8b-20261121-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, g, s := deploymenttest.Healthy(t, c.spec)
			if c.breaks != nil {
				c.breaks(b, g, s)
			}
			got, err := b.Call("check", "llama-8b")
			if !errors.Is(err, cli.ErrFailed) {
				t.Errorf("it ends with %v", err)
			}
			deploymenttest.WantText(t, got, c.says...)
		})
	}
}

// TestCheckTellsOfACopiedLabel: to whoever has it, and to the workload that it names.
func TestCheckTellsOfACopiedLabel(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	other := deploymenttest.Trains("newcomer")
	other.Slices[0].Claims = "llama-8b"
	if _, err := b.Ledger.Save(t.Context(), other, ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string][]string{
		"llama-8b": {"warn      label: the label of newcomer in us-west4-a names this workload, but it belongs to demo/newcomer", "you: pitstop check newcomer"},
		"newcomer": {"warn      label: newcomer has the label pitstop-workload=llama-8b, but does not belong to that workload", "you: remove the label"},
	} {
		got, err := b.Call("check", name)
		if err != nil && !errors.Is(err, cli.ErrFailed) {
			t.Fatalf("%v:\n%s", err, got)
		}
		deploymenttest.WantText(t, got, says...)
	}
	b.Want([]string{"status", "newcomer"}, "but its label pitstop-workload names llama-8b, which it does not belong to")
}

// TestCheckHoldsTheOrderAgainstOtherShapes, before it comes to that.
func TestCheckHoldsTheOrderAgainstOtherShapes(t *testing.T) {
	shaped := strings.Replace(deploymenttest.StartsCrew, `{"runtimeVersion"`, `{"acceleratorType":"v5litepod-16","runtimeVersion"`, 1)
	scales := strings.Replace(shaped, "pitcrew run", "pitcrew run --scale-from=v5litepod-16 --global-batch=1024 --steps=100", 1)
	for spec, want := range map[string][]string{
		shaped: {"warn      zone us-west4-b as v5litepod-8: its start-up script gives pitcrew no --scale-from", "you: add the missing part, or remove the shape from the policy"},
		scales: {
			"zone us-west4-b as v5litepod-8: Pitstop may create it there", "call 4    create node llama-8b in us-west4-b as v5litepod-8, if the one before refuses",
			"zone us-west4-b as v6e-8: v6e boots another runtime version than v5litepod, and the policy names none",
		},
	} {
		b, _, _ := deploymenttest.Healthy(t, spec)
		b.ReadFile = func(context.Context, string) ([]byte, error) {
			return []byte("policies: {night: {preset: spot, shapes: [{accelerator: v5litepod-8, zones: [us-west4-b]}, {accelerator: v6e-8, zones: [us-west4-b]}]}}"), nil
		}
		got, err := b.Call("check", "llama-8b")
		if err != nil {
			t.Errorf("%v:\n%s", err, got)
		}
		deploymenttest.WantText(t, got, want...)
	}
}

// TestCheckOfALegacyNode: it runs no script and has no metadata, so no finding asks its owner for either.
func TestCheckOfALegacyNode(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, `{"legacy_node":{"acceleratorType":"v3-32","tensorflowVersion":"2.12.0","schedulingConfig":{"preemptible":true}}}`)
	legacy := func(w *incident.Workload) {
		w.Slices[0].Legacy, w.Slices[0].Accelerator, w.Directory, w.Crew, w.Progress = true, "v3-32", "", incident.Crew{}, incident.Progress{}
	}
	b.Change(legacy)
	got, err := b.Call("check", "llama-8b")
	if err != nil {
		t.Errorf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, "call 3    create node llama-8b in us-west4-a", "start-up: llama-8b is a legacy node: training runs on your own machine",
		"checkpoint: a legacy node names no directory")
	b.Change(func(w *incident.Workload) { w.Label = "" })
	unlabelled, err := b.Call("check", "llama-8b")
	if !errors.Is(err, cli.ErrFailed) {
		t.Errorf("it ends with %v", err)
	}
	deploymenttest.WantText(t, unlabelled, "you: create it again with the label pitstop-policy=spot")
	for _, not := range []string{"metadata key", "startup-script", "pitcrew", "pitstop attach"} {
		if strings.Contains(got+unlabelled, not) {
			t.Errorf("%q is asked for of a legacy node:\n%s\n%s", not, got, unlabelled)
		}
	}
}

// TestCheckGoesByWhatHoldsNow: a pause that is over keeps nothing, and a training that is finished is none to bring back.
func TestCheckGoesByWhatHoldsNow(t *testing.T) {
	for name, but := range map[string]func(*incident.Workload){
		"a pause that is over": func(w *incident.Workload) {
			w.Pause = &incident.Pause{By: "ada", Until: deploymenttest.Noon.Add(-time.Hour)}
		},
		"finished": func(w *incident.Workload) { w.Crew.Finished = true },
	} {
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.Change(but)
		if got, err := b.Call("check", "llama-8b"); err != nil {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestCheckKeepsWhereAStartUpScriptIs: a signed URL carries its signature, and no value of the metadata is shown.
func TestCheckKeepsWhereAStartUpScriptIs(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, `{"node":{"runtimeVersion":"v2","metadata":{"startup-script-url":"https://storage.example/b/o?X-Goog-Signature=s3cret"}}}`)
	for _, args := range [][]string{{"check", "llama-8b"}, {"check", "llama-8b", "--json"}} {
		got, err := b.Call(args...)
		if err != nil || strings.Contains(got, "s3cret") || strings.Contains(got, "storage.example") {
			t.Errorf("%v: %s", err, got)
		}
		deploymenttest.WantText(t, got, "startup-script-url names its start-up script")
	}
}

func TestCheckSaysWhatItMayNotLookAt(t *testing.T) {
	b, g, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	g.Err = errors.New("Permission 'iam.serviceAccounts.getAccessToken' denied")
	got, err := b.Call("check", "llama-8b", "--json")
	var r Rehearsal
	if err != nil || json.Unmarshal([]byte(got), &r) != nil || r.Slice != "llama-8b" || len(r.Would.Calls) != 3 {
		t.Fatalf("%v: %s", err, got)
	}
	i := slices.IndexFunc(r.Findings, func(f finding) bool { return f.About == "permissions" && f.Level == Warn })
	if i < 0 || !strings.Contains(r.Findings[i].WayOut, "roles/iam.serviceAccountTokenCreator") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestCheckPlansWhatIsLeft: a deletion that the provider has accepted is not called again.
func TestCheckPlansWhatIsLeft(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	b.Change(func(w *incident.Workload) {
		w.Incident, w.Effects = deploymenttest.Llama().Incident, deploymenttest.Llama().Effects
		w.Effects[0].Answered = deploymenttest.Noon.Add(-60 * time.Second)
		w.Slices[0].Condition, w.Slices[0].State, w.Slices[0].ToReplace = incident.Deleting, "DELETING", true
	})
	got, err := b.Call("check", "llama-8b")
	if !errors.Is(err, cli.ErrFailed) {
		t.Errorf("an open incident stops nothing: %v", err)
	}
	deploymenttest.WantText(t, got, "call 1    create node llama-8b in us-west4-a")
	if strings.Contains(got, "delete node llama-8b") {
		t.Errorf("it would delete once more:\n%s", got)
	}
}
