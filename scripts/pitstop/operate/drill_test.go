package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func TestADrillIsFollowedToItsVerdict(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.Exercise(t, open, map[int]func(*deploymenttest.Bench, time.Time){2: deploymenttest.Opens, 8: deploymenttest.Closes(incident.Resumed)})
		b.Refused([]string{"drill", "llama-8b"}, "this interrupts the training of demo/llama-8b on llama-8b: add --yes")
		if len(b.Simulated) > 0 {
			t.Fatal("it did so all the same")
		}
		b.Want([]string{"drill", "llama-8b", "--yes", "--why", "quarterly"}, "simulate a maintenance event on llama-8b", "maintenance is under way",
			"PASSED  resumed: step 48,300 > 48,000; away 30 s, 0.1 chip-hours; charged to infrastructure", "noticed after 10 s")
		if len(b.Simulated) != 1 || b.Simulated[0] != "projects/demo/locations/us-west4-a/nodes/llama-8b" {
			t.Errorf("simulated was %v", b.Simulated)
		}
		if o := b.Workload().Orders; len(o) != 1 || o[0].Verb != incident.VerbDrill || o[0].Why != "quarterly" || o[0].By != "ada@example.com" {
			t.Errorf("recorded is %+v", o)
		}
	})
}

func TestADrillFailsWhereTrainingDoesNotComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		happens map[int]func(*deploymenttest.Bench, time.Time)
		says    string
	}{
		"nobody notices":      {nil, "Pitstop noticed nothing within 10 m 0 s"},
		"a person has to act": {map[int]func(*deploymenttest.Bench, time.Time){2: deploymenttest.Opens, 8: deploymenttest.Closes(incident.Escalated)}, "escalated: step"},
		"it does not end":     {map[int]func(*deploymenttest.Bench, time.Time){2: deploymenttest.Opens}, "the incident has not ended within 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			b := deploymenttest.Exercise(t, ledgertest.NewStore().Open, c.happens)
			got, err := b.Call("drill", "llama-8b", "--yes", "--json", "--for", "1h")
			var v verdict
			if !errors.Is(err, cli.ErrFailed) || json.Unmarshal([]byte(got), &v) != nil || v.Passed || !strings.Contains(v.Text, c.says) {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

// TestADrillOutlastsALedgerThatFails: for a moment, in two hours; one that cannot be read any more ends it.
func TestADrillOutlastsALedgerThatFails(t *testing.T) {
	for fails, passes := range map[int]bool{1: true, 5: true, 1000: false} {
		var tap ledgertest.Tap
		down := 0
		fail := func(*deploymenttest.Bench, time.Time) { down = fails }
		b := deploymenttest.Exercise(t, tap.On(ledgertest.NewStore().Open), map[int]func(*deploymenttest.Bench, time.Time){2: deploymenttest.Opens, 4: fail, 20: deploymenttest.Closes(incident.Resumed)})
		tap.Before = func(_ context.Context, c ledgertest.Call) error {
			if c.Collection == ledger.Workloads && !c.Write && down > 0 {
				down--
				return errors.New("the connection was reset")
			}
			return nil
		}
		got, err := b.Call("drill", "llama-8b", "--yes", "--json")
		var v verdict
		if passes && (err != nil || json.Unmarshal([]byte(got), &v) != nil || !v.Passed) {
			t.Errorf("%d failed reads: %v: %s", fails, err, got)
		}
		if !passes && (err == nil || !strings.Contains(err.Error(), "the connection was reset")) {
			t.Errorf("%d failed reads: %v: %s", fails, err, got)
		}
	}
}

func TestADrillIsRefusedWhereItWouldDoHarm(t *testing.T) {
	for why, but := range map[string]func(*incident.Workload){
		"a drill would make it worse": func(w *incident.Workload) { w.Incident = deploymenttest.Llama().Incident },
		"is paused":                   func(w *incident.Workload) { w.Pause = &incident.Pause{By: "ada"} },
		"the switch restart is no":    func(w *incident.Workload) { w.Label = "" },
		"its crew has sent nothing":   func(w *incident.Workload) { w.Crew = incident.Crew{} },
		"no checkpoint of demo/llama-8b is verified": func(w *incident.Workload) {
			w.Progress.CheckpointStep, w.Progress.Verified, w.Progress.VerifiedAt = 48_000, 0, time.Time{}
		},
		"its crew gave up after attempt 2": func(w *incident.Workload) { w.Crew.GaveUp = 2 },
		"is silent: it reported step 48,190 3 d 0 h ago": func(w *incident.Workload) {
			w.Progress.At, w.Progress.StallReported = deploymenttest.Noon.Add(-72*time.Hour), deploymenttest.Noon.Add(-71*time.Hour) // and somebody was told that it hangs
		},
		"has reported no step": func(w *incident.Workload) { w.Progress.At = time.Time{} },
		"left to its owner":    func(w *incident.Workload) { w.Slices[0].End.Released = deploymenttest.Noon.Add(-time.Hour) },
		"trains in a Job":      func(w *incident.Workload) { w.Provider = "gke" },
		"is PREEMPTED already": func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].State = incident.Lost, "PREEMPTED" },
	} {
		t.Run(why, func(t *testing.T) {
			b := deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
			b.Change(but)
			b.Refused([]string{"drill", "llama-8b", "--yes"}, why)
			if len(b.Simulated) > 0 {
				t.Errorf("simulated was %v", b.Simulated)
			}
		})
	}
	// In quiet times nobody has verified a checkpoint yet: it is looked for.
	b := deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
	b.Change(func(w *incident.Workload) { w.Progress.Verified, w.Progress.VerifiedAt = 0, time.Time{} })
	b.Refused([]string{"drill", "llama-8b"}, "training might begin at its first step: no checkpoint in gs://ckpt/llama-8b")
	b.PutCheckpoint("48000")
	b.Refused([]string{"drill", "llama-8b"}, "add --yes")
	// One whose steps take long is not silent; nor is one that says so on its machine alone.
	b = deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
	for _, but := range []func(*incident.Workload){
		func(w *incident.Workload) {
			w.Progress.At, w.Progress.GapSeconds = deploymenttest.Noon.Add(-100*time.Minute), 3600
		},
		func(w *incident.Workload) {
			w.Progress.At, w.Progress.Stepped = deploymenttest.Noon.Add(-5*time.Hour), deploymenttest.Noon.Add(-time.Minute)
		},
		func(w *incident.Workload) { // the first that is not left to its owner
			w.Slices = append([]incident.Slot{{Name: "llama-8b-0", Life: incident.Life{
				Condition: incident.Gone, End: incident.End{Released: deploymenttest.Noon},
			}}}, w.Slices...)
		},
	} {
		b.Change(but)
		b.Refused([]string{"drill", "llama-8b"}, "add --yes")
	}
	b = deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
	b.Refused([]string{"drill", "llama-8b", "--yes", "--slice", "other"}, `has no slice "other"`)
	b.Refuses["llama-8b"] = errors.New("simulate a maintenance event: you may not (permission)")
	if _, err := b.Call("drill", "llama-8b", "--yes"); err == nil || !strings.Contains(err.Error(), "you may not") {
		t.Errorf("one that is not permitted: %v", err)
	}
}
