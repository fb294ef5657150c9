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

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
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
		but    func(*deploymenttest.Story)
	}{
		"no start-up script": {
			spec: `{"node":{"runtimeVersion":"v2"}}`,
			says: []string{"llama-8b has no start-up script: a new slice would be empty, at 16 chip-hours an hour, $8.00 an hour", "you: start training in the metadata key"},
		},
		"no permission": {breaks: func(_ *deploymenttest.Bench, g *deploymenttest.Granted, _ *buckettest.Server) {
			g.Lacks["pitstop-recreate@demo.iam.gserviceaccount.com"] = []string{"tpu.nodes.create", "iam.serviceAccounts.actAs"}
		}, says: []string{"recreate lacks tpu.nodes.create on demo", "roles/tpu.admin", "recreate lacks iam.serviceAccounts.actAs on tpu@demo.iam.gserviceaccount.com"}},
		"no checkpoint": {breaks: func(_ *deploymenttest.Bench, _ *deploymenttest.Granted, s *buckettest.Server) {
			s.Delete("ckpt", "llama-8b/48000/commit_success.txt")
		}, says: []string{"stop      checkpoint: no checkpoint in gs://ckpt/llama-8b"}},
		"no policy": {
			but:  deploymenttest.Read(func(r *evidence.Read) { r.Facts.Label = "" }),
			says: []string{"without the label pitstop-policy", "pitstop attach llama-8b"},
		},
		"a policy that cannot be read": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.ReadFile = func(context.Context, string) ([]byte, error) { return nil, errors.New("403") }
		}, says: []string{"check cannot read it: gs://ops/policy.yaml: 403"}},
		"no specification": {
			but:  deploymenttest.Read(func(r *evidence.Read) { r.Facts.Spec = "another" }),
			says: []string{"Pitstop has never read llama-8b, so it cannot create it again"},
		},
		"a slice that is lost already, as an incident has told": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Tells(func(s *deploymenttest.Story) { s.Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Cancels() })
		}, says: []string{"if llama-8b died now: nothing: people were told that llama-8b is PREEMPTED", "stop      decision: Pitstop would do nothing: people were told that llama-8b is PREEMPTED", "stop      slice: llama-8b is PREEMPTED already", "you: pitstop retry llama-8b"}},
		"a slice that is not usable": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Tells(func(s *deploymenttest.Story) { s.Reads(deploymenttest.Is(evidence.Unhealthy, "REPAIRING")) })
		}, says: []string{"stop      slice: llama-8b is REPAIRING already"}},
		"a slice that the API does not show": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Absent = []string{"llama-8b"}
		}, says: []string{"stop      the API: it shows no llama-8b in us-west4-a, and Pitstop knows it as READY", "pitstop status says whether it does"}},
		"a slice that somebody has created anew": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Shown = []provider.Slice{{Ref: provider.Ref{Project: "demo", Zone: "us-west4-a", Name: "llama-8b"}, State: "READY", Incarnation: events.Incarnation{ID: "another"}}}
		}, says: []string{"stop      the API: it shows another llama-8b than the one that Pitstop knows"}},
		"a slice that is no longer usable": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			is := b.Workload().Shown(deploymenttest.Noon).Slices[0]
			b.Shown = []provider.Slice{{Ref: provider.Ref{Project: "demo", Zone: "us-west4-a", Name: "llama-8b"}, State: "PREEMPTED", Incarnation: is.Incarnation}}
		}, says: []string{"stop      the API: it shows llama-8b as PREEMPTED, and Pitstop knows it as READY"}},
		"a pause": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Tells(func(s *deploymenttest.Story) { s.IsPaused(time.Time{}) })
		}, says: []string{"stop      pause: it is paused by ada: a look", "you: pitstop resume llama-8b"}},
		"a pause of everything": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			if err := b.Ledger.SetPause(b.T.Context(), &evidence.Pause{By: "ada", Until: deploymenttest.Noon.Add(time.Hour)}); err != nil {
				b.T.Error(err)
			}
		}, says: []string{"stop      pause: everything is paused by ada until 2026-11-21T13:00:00Z", "you: pitstop resume --all"}},
		"an open incident": {breaks: func(b *deploymenttest.Bench, _ *deploymenttest.Granted, _ *buckettest.Server) {
			b.Tells(func(s *deploymenttest.Story) { s.Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")) })
		}, says: []string{"stop      incident: llama-8b-20261121-1 is open: preemption, deleting", "you: pitstop incident llama-8b-20261121-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.spec == "" {
				c.spec = deploymenttest.StartsCrew
			}
			b, g, s := deploymenttest.Healthy(t, c.spec, c.but)
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
	other := deploymenttest.Trains("newcomer", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Claims = "llama-8b" }))
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

// TestCheckHoldsTheOrderAgainstOtherPlaces, before it comes to that.
func TestCheckHoldsTheOrderAgainstOtherPlaces(t *testing.T) {
	shaped := strings.Replace(deploymenttest.StartsCrew, `{"runtimeVersion"`, `{"acceleratorType":"v5litepod-16","runtimeVersion"`, 1)
	scales := strings.Replace(shaped, "pitcrew run", "pitcrew run --scale-from=v5litepod-16 --global-batch=1024 --steps=100", 1)
	for spec, want := range map[string][]string{
		shaped: {"warn      zone us-west4-b as v5litepod-8: its start-up script gives pitcrew no --scale-from", "you: add the missing part, or remove the shape from the policy"},
		scales: {
			"zone us-west4-a: Pitstop may create it there, at $8.00 an hour\n", "zone us-west4-b as v5litepod-8: Pitstop may create it there, at $4.00 an hour\n",
			"zone us-west4-a on demand: Pitstop may create it there, at $20.00 an hour, once all places before it have refused for 2 h 0 m\n", "call 4    create node llama-8b in us-west4-b as v5litepod-8, if the one before refuses",
			"zone us-west4-b as v6e-8: v6e boots another runtime version than v5litepod, and the policy names none",
		},
	} {
		b, _, _ := deploymenttest.Healthy(t, spec)
		b.ReadFile = func(context.Context, string) ([]byte, error) {
			return []byte("policies: {night: {preset: spot, chip_hour_price: 0.5, places: [{accelerator: v5litepod-8, zones: [us-west4-b]}, " +
				"{accelerator: v6e-8, zones: [us-west4-b]}, {capacity: on_demand, after: 2h, chip_hour_price: 1.25}]}}"), nil
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
	const spec = `{"legacy_node":{"acceleratorType":"v3-32","tensorflowVersion":"2.12.0","schedulingConfig":{"preemptible":true}}}`
	legacy := deploymenttest.Read(func(r *evidence.Read) { r.Facts.Legacy, r.Facts.Accelerator, r.Directory = true, "v3-32", "" })
	b, _, _ := deploymenttest.Healthy(t, spec, legacy)
	got, err := b.Call("check", "llama-8b")
	if err != nil {
		t.Errorf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, "call 3    create node llama-8b in us-west4-a", "start-up: llama-8b is a legacy node: training runs on your own machine",
		"checkpoint: a legacy node names no directory")
	b, _, _ = deploymenttest.Healthy(t, spec, legacy, deploymenttest.Read(func(r *evidence.Read) { r.Facts.Label = "" }))
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
	for name, tell := range map[string]func(*deploymenttest.Story){
		"a pause that is over": func(s *deploymenttest.Story) {
			s.Before(2 * time.Hour).IsPaused(deploymenttest.Noon.Add(-time.Hour))
		},
		"finished": func(s *deploymenttest.Story) { s.Finishes(2) },
	} {
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.Tells(tell)
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
	b.Tells(func(s *deploymenttest.Story) {
		s.Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Does("delete-1").Reads(deploymenttest.Is(evidence.Deleting, "DELETING"))
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

// TestCheckOffersNoZoneToASwitchThatIsOff: the order fits there, and Pitstop creates nothing.
func TestCheckOffersNoZoneToASwitchThatIsOff(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.Read(func(r *evidence.Read) { r.Facts.Label = "day" }))
	b.ReadFile = func(context.Context, string) ([]byte, error) {
		return []byte("policies:\n  day: {preset: spot, zones: [us-west4-a], recreate: \"no\"}\n"), nil
	}
	got, err := b.Call("check", "llama-8b")
	if !errors.Is(err, cli.ErrFailed) {
		t.Errorf("nothing stops it: %v", err)
	}
	deploymenttest.WantText(t, got, "zone us-west4-a: the order fits, but the switch recreate is no")
	if strings.Contains(got, "Pitstop may create it there") {
		t.Errorf("it offers a zone:\n%s", got)
	}
}
