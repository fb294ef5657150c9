package incident_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

func TestPeopleAreToldOfEachPlaceInTheCourseOfAnIncident(t *testing.T) {
	at := time.Date(2026, 11, 12, 2, 14, 8, 0, time.UTC)
	in := func(phase incident.Phase, change ...func(*incident.Incident)) incident.Workload {
		i := &incident.Incident{
			ID: "llama-1", Cause: events.CausePreemption, Opened: at, Phase: phase, Policy: "spot", Down: at,
			Troubles: []incident.Trouble{
				{Slice: "a", Text: "worker 2 was preempted"}, {Slice: "a", Text: "node a is PREEMPTED"}, {Slice: "b", Text: "worker 2 was preempted"},
			},
			Timeline: []incident.Line{
				{Kind: incident.LineSeen, Text: "worker 2 was preempted"},
				{Kind: incident.LineDecided, Text: "delete a", Reason: "Spot, loss proven"},
				{Kind: incident.LineCame, Text: "accepted", At: at},
			},
			LeftOut: 8,
		}
		for _, c := range change {
			c(i)
		}
		w := incident.Workload{
			ID: "demo/llama", Slices: []incident.Slot{
				{Name: "a", Life: incident.Life{
					Facts: incident.Facts{Accelerator: "v5litepod-16", Reclaimable: true, Chips: 16},
					Zone:  "us-west4-a", Condition: incident.Gone,
				}},
				{Name: "b", Life: incident.Life{
					Facts: incident.Facts{Accelerator: "v5litepod-16", Chips: 16},
					Zone:  "us-west4-a", Condition: incident.Ready,
				}},
				{Name: "c", Life: incident.Life{Facts: incident.Facts{Chips: 4}, Condition: incident.Ready, End: incident.End{Released: at}}},
			},
		}
		if phase == incident.Closed {
			w.Closed = i
		} else {
			w.Incident = i
		}
		return w
	}
	asks := func(a events.Action) func(*incident.Incident) { return func(i *incident.Incident) { i.Asked = a } }
	ends := func(o incident.Outcome) func(*incident.Incident) { return func(i *incident.Incident) { i.Outcome = o } }
	waits := func(reminded time.Time) func(*incident.Incident) {
		return func(i *incident.Incident) { i.WaitingSince, i.Reminded = at, reminded }
	}
	for name, c := range map[string]struct {
		before, after incident.Workload
		steps         []string
	}{
		"nothing is open":                   {incident.Workload{}, incident.Workload{}, nil},
		"it opens, and is looked at":        {incident.Workload{}, in(incident.Looking), nil},
		"it is known what to do":            {in(incident.Looking), in(incident.PhaseDeleting), []string{"deleting"}},
		"it opens with that":                {incident.Workload{}, in(incident.PhaseDeleting), []string{"deleting"}},
		"nothing has moved":                 {in(incident.PhaseDeleting), in(incident.PhaseDeleting), nil},
		"it goes on":                        {in(incident.PhaseDeleting), in(incident.PhaseCreating), []string{"creating"}},
		"capacity is missing":               {in(incident.PhaseCreating), in(incident.PhaseCreating, waits(at)), nil},
		"capacity is missing for long":      {in(incident.PhaseCreating, waits(at)), in(incident.PhaseCreating, waits(at.Add(time.Hour))), []string{"creating/waiting"}},
		"a person is asked":                 {in(incident.Window), in(incident.Approving, asks(events.ActionMaintain)), []string{"approving/maintain"}},
		"a person is asked something else":  {in(incident.Approving, asks(events.ActionMaintain)), in(incident.Approving, asks(events.ActionDelete)), []string{"approving/delete"}},
		"it ends":                           {in(incident.Resuming), in(incident.Closed, ends(incident.Resumed)), []string{"resumed"}},
		"it is attributed anew":             {in(incident.Closed, ends(incident.Resumed)), in(incident.Closed, ends(incident.Resumed), func(i *incident.Incident) { i.Revision = 2 }), nil},
		"it opens and ends at once":         {incident.Workload{}, in(incident.Closed, ends(incident.Observed)), []string{"observed"}},
		"one is over, and the next is open": {in(incident.Closed, ends(incident.Resumed)), incident.Workload{Closed: in(incident.Closed, ends(incident.Resumed)).Closed, Incident: &incident.Incident{ID: "llama-2", Phase: incident.Healing}}, []string{"healing"}},
	} {
		var steps []string
		for _, u := range incident.Updates(c.before, c.after) {
			steps = append(steps, u.Step())
		}
		if d := cmp.Diff(c.steps, steps); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}

	escalated := in(incident.Closed, ends(incident.Escalated))
	if u, tell := updateOf(escalated, escalated.Closed); !tell || u.IdleChips != 16 {
		t.Errorf("%d chips stand idle, want those of what it left", u.IdleChips)
	}
	next := in(incident.PhaseDeleting)
	next.Ended = escalated.Closed.Closed
	if u, _ := updateOf(next, escalated.Closed); u.IdleChips != 0 {
		t.Errorf("%d chips stand idle, though another incident is open", u.IdleChips)
	}
	if _, tell := updateOf(in(incident.Looking), in(incident.Looking).Incident); tell {
		t.Error("a phase that passes in seconds is told")
	}

	priced := func(i *incident.Incident) { i.Advice, i.Code, i.ChipHourPrice = "create it", "gave_up", 1.2 }
	got := incident.Updates(incident.Workload{}, in(incident.Closed, ends(incident.Escalated), priced))
	want := []events.IncidentUpdated{{
		Schema: events.Schema, Workload: "demo/llama", Incident: "llama-1", Number: 11, At: at, Opened: at, Cause: events.CausePreemption, Policy: "spot",
		Slices: []events.Affected{{Name: "a", Zone: "us-west4-a", Accelerator: "v5litepod-16", Spot: true}, {Name: "b", Zone: "us-west4-a", Accelerator: "v5litepod-16"}},
		Chips:  36, Phase: "closed", Outcome: "escalated", Code: "gave_up", Happened: []string{"worker 2 was preempted", "node a is PREEMPTED"},
		Doing: "delete a", Why: "Spot, loss proven", Advice: "create it", Down: at, IdleChips: 16, ChipHourPrice: 1.2,
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what is told (-want +got):\n%s", d)
	}
}

func updateOf(w incident.Workload, in *incident.Incident) (events.IncidentUpdated, bool) {
	return w.Shown(time.Time{}).Update(w.ShownIncident(*in, time.Time{}))
}
