package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/view"
)

var at = time.Date(2026, 11, 12, 2, 14, 8, 0, time.UTC)

// in is a workload of three slices in that phase of an incident. Its owner has the third one.
func in(phase view.Phase, change ...func(*view.Workload, *view.Incident)) view.Workload {
	i := &view.Incident{
		ID: "llama-1", Cause: events.CausePreemption, Opened: at, Phase: phase, Policy: "spot", Down: at, LeftOut: 8,
		Troubles: []view.Trouble{{Slice: "a", Text: "worker 2 was preempted"}, {Slice: "a", Text: "node a is PREEMPTED"}, {Slice: "b", Text: "worker 2 was preempted"}},
		Timeline: []view.Line{
			{Kind: view.LineSeen, Text: "worker 2 was preempted"},
			{Kind: view.LineDecided, Text: "delete a", Reason: "Spot, loss proven"},
			{Kind: view.LineCame, Text: "accepted", At: at},
		},
		Cost: view.Cost{Slices: []view.IdleSlice{{Slice: "a", Chips: 16}, {Slice: "b", Chips: 16}, {Slice: "c", Chips: 4}}},
	}
	w := view.Workload{ID: "demo/llama", Wait: &view.Wait{For: phase}, Slices: []view.Slice{
		{Name: "a", Zone: "us-west4-a", Accelerator: "v5litepod-16", Capacity: events.Spot, Chips: 16, Condition: evidence.Gone},
		{Name: "b", Zone: "us-west4-a", Accelerator: "v5litepod-16", Chips: 16, Condition: evidence.Ready},
		{Name: "c", Chips: 4, Condition: evidence.Ready, Released: true},
	}}
	if w.Incident = i; phase == view.Closed {
		w.Incident, w.Closed, w.Wait, i.Closed = nil, i, nil, at
	}
	for _, f := range change {
		f(&w, i)
	}
	return w
}

// TestPeopleAreToldOfEachPlaceInTheCourseOfAnIncident, and of what passes in seconds not.
func TestPeopleAreToldOfEachPlaceInTheCourseOfAnIncident(t *testing.T) {
	asks := func(a events.Action) func(*view.Workload, *view.Incident) {
		return func(_ *view.Workload, i *view.Incident) { i.Asked = a }
	}
	ends := func(o view.Outcome) func(*view.Workload, *view.Incident) {
		return func(_ *view.Workload, i *view.Incident) { i.Outcome = o }
	}
	waits := func(w *view.Workload, _ *view.Incident) { w.Wait.Since, w.Wait.Reminded = at, at }
	revised := func(_ *view.Workload, i *view.Incident) { i.Revision = 2 }
	next := func(w *view.Workload, _ *view.Incident) {
		w.Incident = &view.Incident{ID: "llama-2", Phase: view.Healing}
	}
	none, resumed := view.Workload{}, in(view.Closed, ends(view.Resumed))
	for name, c := range map[string]struct {
		before, after view.Workload
		steps         string
	}{
		"nothing is open":                   {none, none, ""},
		"it opens, and is looked at":        {none, in(view.Looking), ""},
		"it is known what to do":            {in(view.Looking), in(view.PhaseDeleting), "deleting"},
		"it opens with that":                {none, in(view.PhaseDeleting), "deleting"},
		"nothing has moved":                 {in(view.PhaseDeleting), in(view.PhaseDeleting), ""},
		"it goes on":                        {in(view.PhaseDeleting), in(view.PhaseCreating), "creating"},
		"capacity is missing for long":      {in(view.PhaseCreating), in(view.PhaseCreating, waits), "creating/waiting"},
		"a person is asked":                 {in(view.Window), in(view.Approving, asks(events.ActionMaintain)), "approving/maintain"},
		"a person is asked something else":  {in(view.Approving, asks(events.ActionMaintain)), in(view.Approving, asks(events.ActionDelete)), "approving/delete"},
		"it ends":                           {in(view.Resuming), resumed, "resumed"},
		"it is attributed anew":             {resumed, in(view.Closed, ends(view.Resumed), revised), ""},
		"it opens and ends at once":         {none, in(view.Closed, ends(view.Observed)), "observed"},
		"one is over, and the next is open": {resumed, in(view.Closed, ends(view.Resumed), next), "healing"},
	} {
		var steps []string
		for _, u := range view.Updates(c.before, c.after) {
			steps = append(steps, u.Step())
		}
		if got := strings.Join(steps, ", "); got != c.steps {
			t.Errorf("%s: told is %q, want %q", name, got, c.steps)
		}
	}
	left := in(view.Closed, ends(view.Escalated), func(_ *view.Workload, i *view.Incident) {
		i.Advice, i.Code, i.Cost.ChipHourPrice = "create it", "gave_up", 1.2
	})
	want := []events.IncidentUpdated{{
		Schema: events.Schema, Workload: "demo/llama", Incident: "llama-1", Number: 11, At: at, Opened: at, Cause: events.CausePreemption, Policy: "spot",
		Slices: []events.Affected{{Name: "a", Zone: "us-west4-a", Accelerator: "v5litepod-16", Spot: true}, {Name: "b", Zone: "us-west4-a", Accelerator: "v5litepod-16"}},
		Chips:  36, Phase: "closed", Outcome: "escalated", Code: "gave_up", Happened: []string{"worker 2 was preempted", "node a is PREEMPTED"},
		Doing: "delete a", Why: "Spot, loss proven", Advice: "create it", IdleChips: 16, ChipHourPrice: 1.2,
	}}
	if d := cmp.Diff(want, view.Updates(none, left)); d != "" {
		t.Errorf("what is told (-want +got):\n%s", d)
	}
	if next(&left, nil); slices.ContainsFunc(view.Updates(none, left), func(u events.IncidentUpdated) bool { return u.IdleChips > 0 }) {
		t.Error("chips stand idle, though another incident is open")
	}
}

// TestLinesAfterWhatWasTold: lines that are not stored any more count as told or as lost, and no line comes twice.
func TestLinesAfterWhatWasTold(t *testing.T) {
	lost := view.Incident{LeftOut: 2, Timeline: []view.Line{{Text: "c"}, {Text: "d"}}}
	for told, want := range map[int]string{0: "cd", 2: "cd", 3: "d", 4: "", 9: ""} {
		got := ""
		for _, l := range lost.LinesAfter(told) {
			got += l.Text
		}
		if got != want {
			t.Errorf("after %d: %q, want %q", told, got, want)
		}
	}
}
