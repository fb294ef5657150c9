package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// seenTraining is a workload of one slice that trains.
func seenTraining() incident.Workload {
	w := incident.New("demo", "llama", "cloud-tpu")
	w.Slices = []incident.Slot{{Name: "llama", Life: incident.Life{
		Zone: "us-west4-a", Condition: incident.Ready, State: "READY", Since: start, Admission: incident.Admitted,
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "1"}, Facts: incident.Facts{Chips: 16, Accelerator: "v5litepod-16", Reclaimable: true, Spec: "s"},
	}}}
	w.Crew = incident.Crew{Seen: start, Started: start, Attempt: 1}
	w.Progress = incident.Progress{Step: 10, At: start.Add(time.Minute)}
	return w
}

// TestTheStateOfAWorkloadInAWord: each state has its word, since when it lasts, and whether a person is needed.
func TestTheStateOfAWorkloadInAWord(t *testing.T) {
	hour := start.Add(time.Hour)
	interrupted := func(change func(*incident.Incident)) func(*incident.Workload) {
		return func(w *incident.Workload) {
			w.Incident = &incident.Incident{ID: "llama-1", Cause: events.CausePreemption, Opened: start, Phase: incident.PhaseCreating, Since: start, Down: start}
			change(w.Incident)
		}
	}
	for name, c := range map[string]struct {
		change func(*incident.Workload)
		want   view.State
		since  time.Time
		need   string
	}{
		"it trains":                    {func(*incident.Workload) {}, view.Trains, start, ""},
		"no crew is known":             {func(w *incident.Workload) { w.Crew, w.Progress = incident.Crew{}, incident.Progress{} }, view.Trains, start, ""},
		"no step is known yet":         {func(w *incident.Workload) { w.Progress = incident.Progress{} }, view.Beginning, start, ""},
		"a slice cannot be used":       {func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].Since = incident.Unhealthy, hour }, view.Unusable, hour, ""},
		"the owner has it":             {func(w *incident.Workload) { w.Slices[0].End.Released, w.Ended = start, hour }, view.Left, hour, ""},
		"it is finished":               {func(w *incident.Workload) { w.Crew.Finished, w.Crew.FinishedAt = true, hour }, view.Finished, hour, ""},
		"an incident keeps it away":    {interrupted(func(*incident.Incident) {}), view.Recovers, start, ""},
		"an incident while it trains":  {interrupted(func(in *incident.Incident) { in.Down = time.Time{} }), view.Prepares, start, ""},
		"an incident is only watched":  {interrupted(func(in *incident.Incident) { in.OnlyWatched = true }), view.Watched, start, ""},
		"an incident asks for a yes":   {interrupted(func(in *incident.Incident) { in.Asked = events.ActionRestart }), view.Recovers, start, "pitstop approve llama-1"},
		"an incident was given up":     {left(start.Add(2 * time.Minute)), view.GivenUp, start.Add(2 * time.Minute), "pitstop incident llama-1"},
		"it trains again after giving": {left(start), view.Trains, start, ""},
		"it never stood still": {func(w *incident.Workload) {
			left(hour)(w)
			w.Closed.Down = time.Time{}
		}, view.Trains, hour, "pitstop incident llama-1"},
		"its crew gave up while Pitstop only watched": {func(w *incident.Workload) {
			left(hour)(w)
			w.Closed.Outcome, w.Crew.GaveUp = incident.Observed, 1
		}, view.GivenUp, hour, "pitstop retry llama"},
		"its crew gave up long ago":         {func(w *incident.Workload) { w.Crew.GaveUp, w.Ended = 1, hour }, view.GivenUp, hour, "pitstop retry llama"},
		"its crew goes on after it gave up": {func(w *incident.Workload) { w.Crew.GaveUp, w.Crew.Attempt = 1, 2 }, view.Trains, start, ""},
	} {
		w := seenTraining()
		c.change(&w)
		v := w.Shown(hour)
		got := ""
		if v.Need != nil {
			got = v.Need.Command
		}
		if v.State != c.want || !v.Since.Equal(c.since) || got != c.need {
			t.Errorf("%s: %s since %s, needs %q; want %s since %s, %q", name, v.State, v.Since, got, c.want, c.since, c.need)
		}
		if (v.Wait != nil) != (w.Incident != nil) {
			t.Errorf("%s: waits for %+v", name, v.Wait)
		}
	}
}

// left has the last incident left to a person at a time.
func left(at time.Time) func(*incident.Workload) {
	return func(w *incident.Workload) {
		w.Closed = &incident.Incident{ID: "llama-1", Opened: start, Down: start, Closed: at, Outcome: incident.Escalated, Advice: "look at it"}
		w.Ended = at
	}
}

// TestAViewOfAnIncident: what it waits for, what it has tried, what it costs, and what would follow.
func TestAViewOfAnIncident(t *testing.T) {
	w, now := seenTraining(), start.Add(30*time.Minute)
	p := spot(t)
	lost := start.Add(5 * time.Minute)
	w, _, _ = advance(p, w, incident.Read{
		Origin: incident.Origin{Time: lost, Rank: events.RankReading}, Slice: "llama", Zone: "us-west4-a", Condition: incident.Lost, State: "PREEMPTED",
		Incarnation: w.Slices[0].Incarnation, Facts: w.Slices[0].Facts,
	}, lost)
	v := incident.View(p, w, now)
	if v.State != view.Recovers || v.Wait == nil || v.Wait.For != v.Incident.Phase || v.IfLost != nil || len(v.Requests) != 1 || v.Requests[0].Stage != view.StageWanted {
		t.Fatalf("%+v, waits for %+v, requests %+v", v.State, v.Wait, v.Requests)
	}
	want := view.Cost{
		AwaySeconds: now.Sub(v.Incident.Down).Seconds(), ChipHours: now.Sub(v.Incident.Down).Hours() * 16, ChargedTo: v.Incident.Cost.ChargedTo,
		Slices: []view.IdleSlice{{Slice: "llama", Accelerator: "v5litepod-16", Chips: 16, Reclaimable: true}},
	}
	if d := cmp.Diff(want, v.Incident.Cost); d != "" || v.Incident.Cost.ChargedTo == "" {
		t.Errorf("cost (-want +got):\n%s", d)
	}
	quiet := incident.View(p, seenTraining(), now)
	if quiet.IfLost == nil || quiet.IfLost.Slice != "llama" || len(quiet.IfLost.Calls) == 0 {
		t.Errorf("if it died now: %+v", quiet.IfLost)
	}
	p.Unreadable = "no file"
	if unread := incident.View(p, seenTraining(), now); unread.IfLost != nil {
		t.Errorf("under a policy that cannot be read: %+v", unread.IfLost)
	}
}

// TestLinesAfterWhatWasTold: lines that are not stored any more count as told or as lost, and no line comes twice.
func TestLinesAfterWhatWasTold(t *testing.T) {
	in := view.Incident{LeftOut: 2, Timeline: []view.Line{{Text: "c"}, {Text: "d"}}}
	for told, want := range map[int]string{0: "cd", 2: "cd", 3: "d", 4: "", 9: ""} {
		var got strings.Builder
		for _, l := range in.LinesAfter(told) {
			got.WriteString(l.Text)
		}
		if got.String() != want {
			t.Errorf("after %d: %q, want %q", told, got.String(), want)
		}
	}
}

// spot is the preset spot with everything that it allows.
func spot(t *testing.T) policy.Policy {
	t.Helper()
	return policy.NewSource("", nil, policy.Everything(), time.Now).For(t.Context(), "spot")
}
