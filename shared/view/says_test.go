package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// TestSightSaysWhatIsWrongAndWhatToDo in one line each; while all is well there is one quiet line.
func TestSightSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ticked := now.Add(-30 * time.Second)
	for name, c := range map[string]struct {
		sight view.Sight
		want  []view.SightLine
	}{
		"all is well": {
			view.Sight{
				Project: "p", Ticked: ticked, CanaryReturned: now.Add(-2 * time.Hour),
				Queues: []view.Queue{{Topic: "log-events", Oldest: ticked.Add(-time.Minute)}, {Topic: "recovery-requests"}},
			},
			[]view.SightLine{{Text: "patrol ticked 30 s ago, and a canary came back 2 h 0 m ago"}},
		},
		"a function is dead": {
			view.Sight{Project: "p", Ticked: ticked, Queues: []view.Queue{{Topic: "recreate-requests", Oldest: ticked.Add(-5 * time.Minute), DeadLetters: 2}}},
			[]view.SightLine{
				{Text: "patrol ticked 30 s ago"},
				{"STUCK", "the function that reads recreate-requests does not answer; its oldest message has waited 5 m 30 s", "see that function's log"},
				{
					"NOT HANDLED", "2 of the messages on recreate-requests failed again and again, and lie aside",
					"see its function's log, remove the cause, then pitstop redrive recreate-requests",
				},
			},
		},
		"what a blind patrol read of queues says nothing": {
			view.Sight{Project: "p", Ticked: now.Add(-time.Hour), Blind: true, Queues: []view.Queue{{Topic: "recreate-requests", DeadLetters: 2}}},
			[]view.SightLine{{
				"BLIND for 1 h 0 m", "patrol's last tick was at 2026-03-01T11:00:00Z, and what follows is as of then",
				"see the log of the function patrol, and Cloud Scheduler's job",
			}},
		},
	} {
		if diff := cmp.Diff(c.want, c.sight.Lines(now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatPitstopWouldHaveDone is one sentence, and none where it would have done nothing.
func TestWhatPitstopWouldHaveDone(t *testing.T) {
	t.Parallel()
	node := "projects/p/locations/us-west4-a/nodes/llama"
	in := view.Incident{PlannedCalls: []view.Planned{
		{Action: events.ActionVerify},
		{Action: events.ActionDelete, Resource: node},
		{Action: events.ActionCreate, Resource: node, Slice: "llama", Zones: []view.ZoneFit{{Place: view.Place{Zone: "us-west4-b", Capacity: events.OnDemand}}, {}}},
		{Action: events.ActionAdmit},
		{Action: events.ActionAdmit},
	}}
	if got, want := in.WouldText(), "Pitstop would have deleted llama, created llama in us-west4-b on demand and let the training run there"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	in.PlannedCalls = in.PlannedCalls[1:2]
	if got, want := in.WouldText(), "Pitstop would have deleted llama"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (view.Incident{PlannedCalls: []view.Planned{{Action: events.ActionHear}}}).WouldText(); got != "" {
		t.Errorf("%q, want nothing", got)
	}
}
