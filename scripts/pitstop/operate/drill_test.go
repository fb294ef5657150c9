package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func TestADrillIsFollowedToItsVerdict(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.Exercise(t, open, map[int]func(*deploymenttest.Bench){2: deploymenttest.Opens, 8: deploymenttest.Resumes})
		b.Refused([]string{"drill", "llama-8b"}, "this interrupts the training of demo/llama-8b on llama-8b: add --yes")
		if len(b.Simulated) > 0 {
			t.Fatal("it did so all the same")
		}
		b.Want([]string{"drill", "llama-8b", "--yes", "--why", "quarterly"}, "simulate a maintenance event on llama-8b", "maintenance is ",
			"PASSED  resumed: ", "; away >= 37 s · 381 steps again, 12 m 2 s · >= 3.4 chip-hours; charged to infrastructure", "noticed after 10 s")
		if len(b.Simulated) != 1 || b.Simulated[0] != "projects/demo/locations/us-west4-a/nodes/llama-8b" {
			t.Errorf("simulated was %v", b.Simulated)
		}
		if o := b.Workload().Orders; len(o) != 1 || o[0].Verb != evidence.VerbDrill || o[0].Why != "quarterly" || o[0].By != "ada@example.com" {
			t.Errorf("recorded is %+v", o)
		}
	})
}

func TestADrillFailsWhereTrainingDoesNotComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		happens map[int]func(*deploymenttest.Bench)
		says    string
	}{
		"nobody notices":      {nil, "Pitstop noticed nothing within 10 m 0 s"},
		"a person has to act": {map[int]func(*deploymenttest.Bench){2: deploymenttest.Opens, 8: deploymenttest.Fails}, "escalated: Google suspects abuse"},
		"it does not end":     {map[int]func(*deploymenttest.Bench){2: deploymenttest.Opens}, "the incident has not ended within 1h0m0s"},
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
		fail := func(*deploymenttest.Bench) { down = fails }
		b := deploymenttest.Exercise(t, tap.On(ledgertest.NewStore().Open), map[int]func(*deploymenttest.Bench){2: deploymenttest.Opens, 4: fail, 20: deploymenttest.Resumes})
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
	read := deploymenttest.Read
	for why, but := range map[string]func(*deploymenttest.Story){
		"the switch restart is no": read(func(r *evidence.Read) { r.Facts.Label = "" }),
		"trains in a Job":          func(s *deploymenttest.Story) { s.Provider = "gke" },
	} {
		isRefused(t, why, deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil, but))
	}
	for why, tell := range map[string]func(*deploymenttest.Story){
		"a drill would make it worse": func(s *deploymenttest.Story) {
			s.Announces(events.Notice{Status: events.NoticeOngoing, WindowStart: s.Now, WindowEnd: s.Now.Add(time.Hour)})
		},
		"is paused": func(s *deploymenttest.Story) {
			s.Learns(evidence.Paused{Origin: s.Origin(events.RankReading), Word: evidence.Word{By: "ada"}})
		},
		"its crew gave up after attempt 2": func(s *deploymenttest.Story) { s.GivesUp(2).Cancels() },
		"left to its owner":                func(s *deploymenttest.Story) { s.IsDeleted() },
		"is PREEMPTED already":             func(s *deploymenttest.Story) { s.Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Cancels() },
	} {
		b := deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
		b.Tells(tell)
		isRefused(t, why, b)
	}
	quiet := deploymenttest.Begin("llama-8b").Reads()
	isRefused(t, "its crew has sent nothing", deploymenttest.New(t, ledgertest.NewStore().Open, quiet.Workload))
	quiet.Before(time.Hour).Writes(events.CrewReport{Report: events.ReportStarted, Attempt: 1})
	isRefused(t, "has reported no step", deploymenttest.New(t, ledgertest.NewStore().Open, quiet.Workload))

	// In quiet times nobody has verified a checkpoint yet: it is looked for.
	b := deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
	b.Bucket()
	b.Refused([]string{"drill", "llama-8b"}, "no checkpoint of demo/llama-8b is verified, so training might begin at its first step: no checkpoint in gs://ckpt/llama-8b")
	b.PutCheckpoint("48000")
	b.Refused([]string{"drill", "llama-8b"}, "add --yes")
	b = deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil, deploymenttest.In("us-west4-a"))
	b.Bucket() // is empty, but Pitstop has found a checkpoint
	b.Refused([]string{"drill", "llama-8b"}, "add --yes")

	b = deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
	at := deploymenttest.Noon.Add(72 * time.Hour)
	b.Now = func() time.Time { return at }
	isRefused(t, "is silent: it reported step 48,190 3 d 0 h ago", b)
	// One whose steps take long is not silent; nor is one that says so on its machine alone.
	at = deploymenttest.Noon.Add(5 * time.Hour)
	b.Tells(func(s *deploymenttest.Story) {
		s.Writes(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 48_200, CheckpointStep: 48_000})
	})
	at = at.Add(9 * time.Hour)
	b.Refused([]string{"drill", "llama-8b"}, "add --yes")
	at = at.Add(72 * time.Hour)
	b.Tells(func(s *deploymenttest.Story) {
		s.Learns(evidence.Beat{
			Origin: s.Origin(events.RankReading), Slice: "llama-8b", Incarnation: s.Slices[0].Incarnation, Seen: s.Now, Runs: true, Attempt: 2, Step: 48_300, StepAt: s.Now,
		})
	})
	b.Refused([]string{"drill", "llama-8b"}, "add --yes")

	// The first slice that is not left to its owner is the one.
	two := func(s *deploymenttest.Story) { s.Names = []string{"llama-8b", "llama-8b-1"} }
	b = deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil, two)
	b.Tells(func(s *deploymenttest.Story) { s.IsDeleted() })
	b.Refused([]string{"drill", "llama-8b"}, "on llama-8b-1: add --yes")
	b.Refused([]string{"drill", "llama-8b", "--yes", "--slice", "other"}, `has no slice "other"`)
	b = deploymenttest.Exercise(t, ledgertest.NewStore().Open, nil)
	b.Refuses["llama-8b"] = errors.New("simulate a maintenance event: you may not (permission)")
	if _, err := b.Call("drill", "llama-8b", "--yes"); err == nil || !strings.Contains(err.Error(), "you may not") {
		t.Errorf("one that is not permitted: %v", err)
	}
}

// isRefused holds that a drill is refused for that reason, and nothing happens.
func isRefused(t *testing.T, why string, b *deploymenttest.Bench) {
	t.Helper()
	b.Refused([]string{"drill", "llama-8b", "--yes"}, why)
	if len(b.Simulated) > 0 {
		t.Errorf("%s: simulated was %v", why, b.Simulated)
	}
}
