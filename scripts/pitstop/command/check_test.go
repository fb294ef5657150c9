package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
)

// granted is an access under which accounts lack some permissions, or cannot be asked as.
type granted struct {
	lacks map[string][]string
	err   error
	asked []string
}

func (g *granted) has(account, on string, permissions []string) ([]string, error) {
	g.asked = append(g.asked, account+" on "+on+": "+strings.Join(permissions, " "))
	return slices.DeleteFunc(slices.Clone(permissions), func(p string) bool { return slices.Contains(g.lacks[account], p) }), g.err
}

func (g *granted) OnProject(_ context.Context, account, on string, p []string) ([]string, error) {
	return g.has(account, on, p)
}

func (g *granted) OnBucket(_ context.Context, account, on string, p []string) ([]string, error) {
	return g.has(account, on, p)
}

func (g *granted) OnAccount(_ context.Context, account, on string, p []string) ([]string, error) {
	return g.has(account, on, p)
}

// healthy is a deployment with one workload of which everything is as it has to be.
func healthy(t *testing.T, spec string) (*bench, *granted, *buckettest.Server) {
	t.Helper()
	w := trains("llama-8b")
	w.Label = "night"
	b := deployedWith(t, ledgertest.NewStore().Open, w)
	if err := b.ledger.SaveSpec(t.Context(), "spec1", []byte(spec)); err != nil {
		t.Fatal(err)
	}
	if err := b.ledger.SaveSettings(t.Context(), ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml", Allow: "request_checkpoint,restart,recreate"}}); err != nil {
		t.Fatal(err)
	}
	b.read = func(context.Context, string) ([]byte, error) {
		return []byte("policies:\n  night: {preset: spot, zones: [us-west4-b, us-central1-a], chip_hour_price: 0.5}\n"), nil
	}
	bucket := b.bucket()
	b.saves("48000")
	g := &granted{lacks: map[string][]string{}}
	b.access, b.grants = g, readGrants
	return b, g, bucket
}

// bucket is the one for the checkpoints, which is empty.
func (b *bench) bucket() *buckettest.Server {
	bucket := buckettest.New(func() time.Time { return noon.Add(-20 * time.Minute) }, "ckpt")
	bucket.Place("ckpt", buckettest.Location{Name: "US-WEST4"})
	b.store = checkpoint.Mux{"gs": checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: bucket.Transport()}), option.WithoutAuthentication())}
	return bucket
}

// saves puts a complete checkpoint of a step there.
func (b *bench) saves(step string) {
	b.t.Helper()
	for _, name := range []string{"/params/0", "/commit_success.txt"} {
		if _, err := b.store.Put(b.t.Context(), "gs://ckpt/llama-8b/"+step+name, []byte("x"), 0); err != nil {
			b.t.Fatal(err)
		}
	}
}

const startsCrew = `{"node":{"runtimeVersion":"v2","metadata":{"startup-script":"#!/bin/sh\nTOKEN=s3cret pitcrew run -- python3 train.py"},"serviceAccount":{"email":"tpu@demo.iam.gserviceaccount.com"}}}`

func TestCheckRehearsesADeath(t *testing.T) {
	b, g, _ := healthy(t, startsCrew)
	got, err := b.call("check", "llama-8b")
	if err != nil {
		t.Fatalf("%v:\n%s", err, got)
	}
	wants(t, got, "if llama-8b died now: recreate: delete llama-8b first; then create llama-8b in us-west4-a",
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
	for _, a := range g.asked {
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
		breaks func(*bench, *granted, *buckettest.Server)
		says   []string
	}{
		"no start-up script": {
			`{"node":{"runtimeVersion":"v2"}}`, nil,
			[]string{"llama-8b has no start-up script: a new slice would be empty, at 16 chip-hours an hour, $8.00 an hour", "you: start training in the metadata key"},
		},
		"no permission": {startsCrew, func(_ *bench, g *granted, _ *buckettest.Server) {
			g.lacks["pitstop-recreate@demo.iam.gserviceaccount.com"] = []string{"tpu.nodes.create", "iam.serviceAccounts.actAs"}
		}, []string{"recreate lacks tpu.nodes.create on demo", "roles/tpu.admin", "recreate lacks iam.serviceAccounts.actAs on tpu@demo.iam.gserviceaccount.com"}},
		"no checkpoint": {startsCrew, func(_ *bench, _ *granted, s *buckettest.Server) {
			s.Delete("ckpt", "llama-8b/48000/commit_success.txt")
		}, []string{"stop      checkpoint: no checkpoint in gs://ckpt/llama-8b"}},
		"no policy": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) { w.Label = "" })
		}, []string{"without the label pitstop-policy", "pitstop attach llama-8b"}},
		"a policy that cannot be read": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.read = func(context.Context, string) ([]byte, error) { return nil, errors.New("403") }
		}, []string{"check cannot read it: gs://ops/policy.yaml: 403"}},
		"no specification": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) { w.Slices[0].Spec = "another" })
		}, []string{"Pitstop has never read llama-8b, so it cannot create it again"}},
		"a slice that is lost already, as an incident has told": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) {
				s := &w.Slices[0]
				s.Condition, s.State, s.End.Reported = incident.Lost, "PREEMPTED", true
			})
		}, []string{"if llama-8b died now: nothing: an incident has told its end already", "stop      decision: Pitstop would do nothing: an incident has told its end already", "stop      slice: llama-8b is PREEMPTED already", "you: pitstop retry llama-8b"}},
		"what the last incident decided is over": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) {
				s, last := &w.Slices[0], *llama().Incident
				s.Condition, s.State, s.End.Reported = incident.Lost, "PREEMPTED", true
				last.Phase, last.Outcome, last.Reason, last.Closed = incident.Closed, incident.Released, "cancelled", noon.Add(-time.Minute)
				w.Closed = &last
			})
		}, []string{"if llama-8b died now: nothing", "stop      decision: Pitstop would do nothing"}},
		"a slice that is not usable": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].State = incident.Unhealthy, "REPAIRING" })
		}, []string{"stop      slice: llama-8b is REPAIRING already"}},
		"a pause": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) { w.Pause = &incident.Pause{By: "ada", Why: "a look"} })
		}, []string{"stop      pause: it is paused by ada: a look", "you: pitstop resume llama-8b"}},
		"a pause of everything": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			if err := b.ledger.SetPause(b.t.Context(), &incident.Pause{By: "ada", Until: noon.Add(time.Hour)}); err != nil {
				b.t.Error(err)
			}
		}, []string{"stop      pause: everything is paused by ada until 2026-11-21T13:00:00Z", "you: pitstop resume --all"}},
		"an open incident": {startsCrew, func(b *bench, _ *granted, _ *buckettest.Server) {
			b.change(func(w *incident.Workload) { w.Incident = llama().Incident })
		}, []string{"stop      incident: llama-8b-20261121-3 is open: preemption, deleting", "you: pitstop incident llama-8b-20261121-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, g, s := healthy(t, c.spec)
			if c.breaks != nil {
				c.breaks(b, g, s)
			}
			got, err := b.call("check", "llama-8b")
			if !errors.Is(err, errFailed) {
				t.Errorf("it ends with %v", err)
			}
			wants(t, got, c.says...)
		})
	}
}

// TestCheckTellsOfACopiedLabel: to whoever has it, and to the workload that it names.
func TestCheckTellsOfACopiedLabel(t *testing.T) {
	b, _, _ := healthy(t, startsCrew)
	other := trains("newcomer")
	other.Slices[0].Claims = "llama-8b"
	if _, err := b.ledger.Save(t.Context(), other, ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string][]string{
		"llama-8b": {"warn      label: the label of newcomer in us-west4-a names this workload, but it belongs to demo/newcomer", "you: pitstop check newcomer"},
		"newcomer": {"warn      label: newcomer has the label pitstop-workload=llama-8b, but does not belong to that workload", "you: remove the label"},
	} {
		got, err := b.call("check", name)
		if err != nil && !errors.Is(err, errFailed) {
			t.Fatalf("%v:\n%s", err, got)
		}
		wants(t, got, says...)
	}
	b.want([]string{"status", "newcomer"}, "but its label pitstop-workload names llama-8b, which it does not belong to")
}

// TestCheckHoldsTheOrderAgainstOtherShapes, before it comes to that.
func TestCheckHoldsTheOrderAgainstOtherShapes(t *testing.T) {
	shaped := strings.Replace(startsCrew, `{"runtimeVersion"`, `{"acceleratorType":"v5litepod-16","runtimeVersion"`, 1)
	scales := strings.Replace(shaped, "pitcrew run", "pitcrew run --scale-from=v5litepod-16 --global-batch=1024 --steps=100", 1)
	for spec, want := range map[string][]string{
		shaped: {"warn      zone us-west4-b as v5litepod-8: its start-up script gives pitcrew no --scale-from", "you: add the missing part, or remove the shape from the policy"},
		scales: {
			"zone us-west4-b as v5litepod-8: Pitstop may create it there", "call 4    create node llama-8b in us-west4-b as v5litepod-8, if the one before refuses",
			"zone us-west4-b as v6e-8: v6e boots another runtime version than v5litepod, and the policy names none",
		},
	} {
		b, _, _ := healthy(t, spec)
		b.read = func(context.Context, string) ([]byte, error) {
			return []byte("policies: {night: {preset: spot, shapes: [{accelerator: v5litepod-8, zones: [us-west4-b]}, {accelerator: v6e-8, zones: [us-west4-b]}]}}"), nil
		}
		got, err := b.call("check", "llama-8b")
		if err != nil {
			t.Errorf("%v:\n%s", err, got)
		}
		wants(t, got, want...)
	}
}

// TestCheckOfALegacyNode: it runs no script and has no metadata, so no finding asks its owner for either.
func TestCheckOfALegacyNode(t *testing.T) {
	b, _, _ := healthy(t, `{"legacy_node":{"acceleratorType":"v3-32","tensorflowVersion":"2.12.0","schedulingConfig":{"preemptible":true}}}`)
	legacy := func(w *incident.Workload) {
		w.Slices[0].Legacy, w.Slices[0].Accelerator, w.Directory, w.Crew, w.Progress = true, "v3-32", "", incident.Crew{}, incident.Progress{}
	}
	b.change(legacy)
	got, err := b.call("check", "llama-8b")
	if err != nil {
		t.Errorf("%v:\n%s", err, got)
	}
	wants(t, got, "call 3    create node llama-8b in us-west4-a", "start-up: llama-8b is a legacy node: training runs on your own machine",
		"checkpoint: a legacy node names no directory")
	b.change(func(w *incident.Workload) { w.Label = "" })
	unlabelled, err := b.call("check", "llama-8b")
	if !errors.Is(err, errFailed) {
		t.Errorf("it ends with %v", err)
	}
	wants(t, unlabelled, "you: create it again with the label pitstop-policy=spot")
	for _, not := range []string{"metadata key", "startup-script", "pitcrew", "pitstop attach"} {
		if strings.Contains(got+unlabelled, not) {
			t.Errorf("%q is asked for of a legacy node:\n%s\n%s", not, got, unlabelled)
		}
	}
}

// TestCheckGoesByWhatHoldsNow: a pause that is over keeps nothing, and a training that is finished is none to bring back.
func TestCheckGoesByWhatHoldsNow(t *testing.T) {
	for name, but := range map[string]func(*incident.Workload){
		"a pause that is over": func(w *incident.Workload) { w.Pause = &incident.Pause{By: "ada", Until: noon.Add(-time.Hour)} },
		"finished":             func(w *incident.Workload) { w.Crew.Finished = true },
	} {
		b, _, _ := healthy(t, startsCrew)
		b.change(but)
		if got, err := b.call("check", "llama-8b"); err != nil {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestCheckKeepsWhereAStartUpScriptIs: a signed URL carries its signature, and no value of the metadata is shown.
func TestCheckKeepsWhereAStartUpScriptIs(t *testing.T) {
	b, _, _ := healthy(t, `{"node":{"runtimeVersion":"v2","metadata":{"startup-script-url":"https://storage.example/b/o?X-Goog-Signature=s3cret"}}}`)
	for _, args := range [][]string{{"check", "llama-8b"}, {"check", "llama-8b", "--json"}} {
		got, err := b.call(args...)
		if err != nil || strings.Contains(got, "s3cret") || strings.Contains(got, "storage.example") {
			t.Errorf("%v: %s", err, got)
		}
		wants(t, got, "startup-script-url names its start-up script")
	}
}

func TestCheckSaysWhatItMayNotLookAt(t *testing.T) {
	b, g, _ := healthy(t, startsCrew)
	g.err = errors.New("Permission 'iam.serviceAccounts.getAccessToken' denied")
	got, err := b.call("check", "llama-8b", "--json")
	var r rehearsal
	if err != nil || json.Unmarshal([]byte(got), &r) != nil || r.Slice != "llama-8b" || len(r.Would.Calls) != 3 {
		t.Fatalf("%v: %s", err, got)
	}
	i := slices.IndexFunc(r.Findings, func(f finding) bool { return f.About == "permissions" && f.Level == warn })
	if i < 0 || !strings.Contains(r.Findings[i].WayOut, "roles/iam.serviceAccountTokenCreator") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestPermissionsAreAskedOfGoogle holds the calls against Google's paths.
func TestPermissionsAreAskedOfGoogle(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // what was sent is compared
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.URL.RawQuery+" "+strings.TrimSpace(string(body)))
		if strings.Contains(r.URL.Path, "forbidden") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":{"code":403,"message":"you may\n not"}}`)) //nolint:errcheck // the client tells
			return
		}
		_, _ = w.Write([]byte(`{"permissions":["a"]}`)) //nolint:errcheck // likewise
	}))
	defer server.Close()
	a := iamAccess{opts: []option.ClientOption{option.WithEndpoint(server.URL + "/"), option.WithoutAuthentication()}}
	for name, ask := range map[string]func(context.Context, string, string, []string) ([]string, error){"demo": a.OnProject, "ckpt": a.OnBucket, "tpu@demo": a.OnAccount} {
		if has, err := ask(t.Context(), "robot", name, []string{"a", "b"}); err != nil || !slices.Equal(has, []string{"a"}) {
			t.Errorf("%s: %v, %v", name, has, err)
		}
	}
	slices.Sort(asked)
	want := []string{
		`GET /b/ckpt/iam/testPermissions alt=json&permissions=a&permissions=b&prettyPrint=false `,
		`POST /v1/projects/-/serviceAccounts/tpu@demo:testIamPermissions alt=json&prettyPrint=false {"permissions":["a","b"]}`,
		`POST /v1/projects/demo:testIamPermissions alt=json&prettyPrint=false {"permissions":["a","b"]}`,
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if _, err := a.OnProject(t.Context(), "robot", "forbidden", []string{"a"}); err == nil || err.Error() != "you may not" {
		t.Errorf("a refusal is %v", err)
	}
}

// TestCheckPlansWhatIsLeft: a deletion that the provider has accepted is not called again.
func TestCheckPlansWhatIsLeft(t *testing.T) {
	b, _, _ := healthy(t, startsCrew)
	b.change(func(w *incident.Workload) {
		w.Incident, w.Effects = llama().Incident, llama().Effects
		w.Effects[0].Answered = noon.Add(-60 * time.Second)
		w.Slices[0].Condition, w.Slices[0].State, w.Slices[0].ToReplace = incident.Deleting, "DELETING", true
	})
	got, err := b.call("check", "llama-8b")
	if !errors.Is(err, errFailed) {
		t.Errorf("an open incident stops nothing: %v", err)
	}
	wants(t, got, "call 1    create node llama-8b in us-west4-a")
	if strings.Contains(got, "delete node llama-8b") {
		t.Errorf("it would delete once more:\n%s", got)
	}
}
