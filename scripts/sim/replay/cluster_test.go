package replay

import (
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/view"
)

// cluster is a scenario with one Job on flex-start machines.
const cluster = `
project: demo
clusters:
  - name: research
    location: us-east5
    pools: [{name: flex, machine: ct6e-standard-4t, topology: 2x4, flex_start: true, machines: 2, runs_for: 20h}]
    jobs: [{name: llama, pool: flex, directory: "gs://checkpoints/llama", trainer: {step: 1000}}]
`

func replayed(t *testing.T, acts string) *world.Story {
	t.Helper()
	s, err := world.Parse([]byte(cluster + acts))
	if err != nil {
		t.Fatal(err)
	}
	story, err := Run(t.Context(), "cluster", s, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(story.Faults) > 0 || len(story.Calls) > 0 || len(story.Open) > 0 {
		t.Errorf("faults %v, calls %v, open %v", story.Faults, story.Calls, story.Open)
	}
	return story
}

// TestAJobIsReplayed: what happens to it is told, and how its incident ends. Without a policy nothing is done.
func TestAJobIsReplayed(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	// Of a machine that is gone the cluster does not say why.
	for does, cause := range map[string]events.Cause{"preempt": "", "fail, code: 3": events.CauseCrash, "silence": events.CauseUnknown, "break": ""} {
		t.Run(does, func(t *testing.T) {
			story := replayed(t, `acts: [{at: 2026-11-12T02:00:00Z, job: llama, does: `+does+`}, {at: 2026-11-12T06:00:00Z, job: llama, does: delete, by: ada@example.com}]`)
			if len(story.Ended) != 1 || story.Ended[0].Outcome != view.Observed && story.Ended[0].Outcome != view.Released {
				t.Fatalf("%d incidents ended: %+v", len(story.Ended), story.Ended)
			}
			if got := story.Ended[0].Cause; cause != "" && got != cause {
				t.Errorf("the cause is %s, want %s", got, cause)
			}
			told := false
			for _, l := range story.Lines {
				told = told || l.Kind == world.Acted && strings.Contains(l.Text, "Job llama")
			}
			if !told {
				t.Error("no line tells what happened")
			}
		})
	}
}

// TestTheEndOfFlexStartIsReplayed, though nothing else happens.
func TestTheEndOfFlexStartIsReplayed(t *testing.T) {
	t.Parallel()
	story := replayed(t, "")
	if len(story.Ended) != 1 || story.Ended[0].Cause != "planned_end" {
		t.Errorf("%+v", story.Ended)
	}
}

func TestActsOnJobsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := world.Parse([]byte(cluster + `acts: [{at: 2026-11-12T02:00:00Z, job: none, does: explode}, {at: 2026-11-12T02:00:00Z, job: llama, does: delete}, {at: 2026-11-12T02:00:00Z, job: llama, does: announce}]`))
	for _, want := range []string{`"none", which is in no cluster`, `"explode" with a Job; it can be announce,`, "by does not say who", "starts does not say when"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
