package trail_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/trail"
)

// inEffect compares this build with another one in effect.
func inEffect(t *testing.T, this, other trail.Trail) (found []string, s trail.Summary) {
	t.Helper()
	c := trail.NewComparison(trail.NewReader(strings.NewReader(written(t, other))), func(trail.Divergence) {})
	c.Differs = func(d trail.Difference) {
		what := func(s *trail.Step) string {
			if s == nil {
				return "nothing"
			}
			return s.Method + s.Outcome
		}
		found = append(found, fmt.Sprintf("%s at %.0f m in %q: %s, %s", d.Kind, d.At.Sub(start).Minutes(), d.Incident, what(d.This), what(d.Other)))
	}
	if err := c.Add(this); err != nil {
		t.Fatal(err)
	}
	s, err := c.End()
	if err != nil {
		t.Fatal(err)
	}
	return found, s
}

// jobs is a night in which a Job is lost and comes back, and is lost again.
func jobs(edit func(*trail.Workload)) trail.Trail {
	const job = "projects/demo/locations/us-east5/clusters/research/k8s/namespaces/ml/jobs/gpt"
	w := trail.Workload{ID: "demo/gpt", Steps: []trail.Step{
		{Kind: trail.Call, At: after(1), Method: "io.k8s.batch.v1.jobs.delete", Resource: job, Action: "delete", Slice: "gpt", Epoch: 1},
		{Kind: trail.Call, At: after(3), Method: "io.k8s.batch.v1.jobs.create", Resource: job, Action: "create", Slice: "gpt", Epoch: 2, Code: "429"},
		{Kind: trail.Call, At: after(4), Method: "io.k8s.batch.v1.jobs.create", Resource: job, Action: "create", Slice: "gpt", Epoch: 2, Code: "429"},
		{Kind: trail.Call, At: after(9), Method: "io.k8s.batch.v1.jobs.create", Resource: job, Action: "create", Slice: "gpt", Epoch: 2},
		{Kind: trail.End, At: after(20), Incident: "gpt-1", Revision: 1, Outcome: "resumed", Cause: "unknown", ConfirmedBy: "step", Opened: after(0), Ended: after(20)},
		{Kind: trail.End, At: after(25), Incident: "gpt-1", Revision: 2, Outcome: "resumed", Cause: "preemption", ConfirmedBy: "step", Opened: after(0), Ended: after(20)},
		{Kind: trail.Call, At: after(61), Method: "io.k8s.batch.v1.jobs.delete", Resource: job, Action: "delete", Slice: "gpt", Epoch: 4},
		{Kind: trail.Call, At: after(65), Method: "io.k8s.batch.v1.jobs.create", Resource: job, Action: "create", Slice: "gpt", Epoch: 5},
		{Kind: trail.End, At: after(80), Incident: "gpt-2", Revision: 1, Outcome: "resumed", Cause: "preemption", ConfirmedBy: "step", Opened: after(60), Ended: after(80)},
	}}
	if edit != nil {
		edit(&w)
	}
	return trail.Trail{Run: "seed 1", Days: 1, Read: after(90), Workloads: []trail.Workload{w}, Broken: []trail.Broken{}}
}

// TestEachKindOfDifferenceInEffect edits what the other build did.
func TestEachKindOfDifferenceInEffect(t *testing.T) {
	later := func(d time.Duration, steps ...int) func(*trail.Workload) {
		return func(w *trail.Workload) {
			for _, i := range steps {
				s := &w.Steps[i]
				for _, at := range []*time.Time{&s.At, &s.Opened, &s.Ended} {
					if !at.IsZero() {
						*at = at.Add(d)
					}
				}
			}
		}
	}
	whole := []int{0, 1, 2, 3, 4, 5}
	without := func(i int) func(*trail.Workload) {
		return func(w *trail.Workload) { w.Steps = append(w.Steps[:i:i], w.Steps[i+1:]...) }
	}
	const (
		deletes = "io.k8s.batch.v1.jobs.delete"
		creates = "io.k8s.batch.v1.jobs.create"
	)
	for name, c := range map[string]struct {
		other func(*trail.Workload)
		want  []string
	}{
		"nothing": {nil, nil},
		"requests, epochs, reasons and documents": {func(w *trail.Workload) {
			w.Steps[0].Epoch, w.Steps[3].Reason, w.Document = 7, "gone", []byte(`{"schema":3}`)
			w.Steps = append(w.Steps, trail.Step{Kind: trail.Request, At: after(82), Method: "pitstop.recreate.requested.v1", Epoch: 9})
		}, nil},
		"the other order":                {func(w *trail.Workload) { w.Steps[0], w.Steps[3] = w.Steps[3], w.Steps[0] }, nil},
		"all two minutes later":          {later(2*time.Minute, whole...), nil},
		"an end later":                   {later(2*time.Minute+time.Second, 4, 5), []string{`time at 25 m in "gpt-1": resumed, resumed`}},
		"an incident under another name": {func(w *trail.Workload) { w.Steps[8].Incident = "gpt-3" }, nil},
		"a call later":                   {later(3*time.Minute, 3), []string{`time at 9 m in "gpt-1": ` + creates + ", " + creates}},
		"a call after its incident": {later(15*time.Minute, 3), []string{
			`call at 9 m in "gpt-1": ` + creates + ", nothing", `call at 24 m in "": nothing, ` + creates,
		}},
		"a call is missing": {without(0), []string{`call at 1 m in "gpt-1": ` + deletes + ", nothing"}},
		"a call twice": {func(w *trail.Workload) { w.Steps = append(w.Steps, w.Steps[6]) }, []string{
			`call at 61 m in "gpt-2": nothing, ` + deletes,
		}},
		"on another Job": {func(w *trail.Workload) { w.Steps[7].Resource += "-b" }, []string{
			`call at 65 m in "gpt-2": ` + creates + ", nothing", `call at 65 m in "gpt-2": nothing, ` + creates,
		}},
		"in another shape": {func(w *trail.Workload) { w.Steps[7].Accelerator = "v5p-8" }, []string{
			`call at 65 m in "gpt-2": ` + creates + ", nothing", `call at 65 m in "gpt-2": nothing, ` + creates,
		}},
		"refused once and not twice": {without(1), nil},
		"refused in another way": {func(w *trail.Workload) { w.Steps[1].Code, w.Steps[2].Code = "403", "403" }, []string{
			`refused at 3 m in "gpt-1": ` + creates + ", nothing", `refused at 3 m in "gpt-1": nothing, ` + creates,
		}},
		"another end":            {func(w *trail.Workload) { w.Steps[8].Outcome, w.Steps[8].Code = "escalated", "budget" }, []string{`end at 80 m in "gpt-2": resumed, escalated`}},
		"another proof":          {func(w *trail.Workload) { w.Steps[8].ConfirmedBy = "health" }, []string{`end at 80 m in "gpt-2": resumed, resumed`}},
		"another cause at first": {func(w *trail.Workload) { w.Steps[4].Cause = "hang" }, nil},
		"another cause":          {func(w *trail.Workload) { w.Steps[5].Cause = "hang" }, []string{`cause at 25 m in "gpt-1": resumed, resumed`}},
		"opened five minutes later": {func(w *trail.Workload) { w.Steps[8].Opened = after(65) }, []string{
			`time at 80 m in "gpt-2": resumed, resumed`,
		}},
		"an incident more": {func(w *trail.Workload) {
			w.Steps = append(w.Steps, trail.Step{Kind: trail.End, At: after(50), Incident: "gpt-9", Revision: 1, Outcome: "observed", Opened: after(40), Ended: after(50)})
		}, []string{`incident at 50 m in "gpt-9": nothing, observed`}},
		"an incident less, and its calls": {func(w *trail.Workload) { w.Steps = w.Steps[:6] }, []string{
			`call at 61 m in "gpt-2": ` + deletes + ", nothing", `call at 65 m in "gpt-2": ` + creates + ", nothing", `incident at 80 m in "gpt-2": resumed, nothing`,
		}},
		"after a difference": {func(w *trail.Workload) {
			w.Steps[8].Cause = "hang"
			without(0)(w)
		}, []string{`call at 1 m in "gpt-1": ` + deletes + ", nothing", `cause at 80 m in "gpt-2": resumed, resumed`}},
	} {
		t.Run(name, func(t *testing.T) {
			found, s := inEffect(t, jobs(nil), jobs(c.other))
			if got, want := strings.Join(found, "\n"), strings.Join(c.want, "\n"); got != want {
				t.Errorf("found\n%s\nwant\n%s", got, want)
			}
			differences, first := 0, 0
			for _, n := range s.Effects.Kinds {
				differences, first = differences+n.Differences, first+n.First
			}
			if differences != len(c.want) || first != min(1, len(c.want)) || s.Effects.Incidents != 2 || s.Effects.Calls != 4 {
				t.Errorf("summary %+v", s.Effects)
			}
			// The other way round each build did what the other one did.
			if back, _ := inEffect(t, jobs(c.other), jobs(nil)); len(back) != len(found) {
				t.Errorf("the other way round\n%s\nand not\n%s", strings.Join(back, "\n"), strings.Join(found, "\n"))
			}
		})
	}
}

// TestARunThatIsMadeAgainIsCountedOnce: the longer run begins with the shorter one.
func TestARunThatIsMadeAgainIsCountedOnce(t *testing.T) {
	fewer := func(w *trail.Workload) { w.Steps = w.Steps[1:] }
	longer, other := jobs(nil), jobs(fewer)
	longer.Days, other.Days = 2, 2
	found := 0
	c := trail.NewComparison(trail.NewReader(strings.NewReader(written(t, jobs(fewer), other))), func(trail.Divergence) {})
	c.Differs = func(trail.Difference) { found++ }
	for _, this := range []trail.Trail{jobs(nil), longer} {
		if err := c.Add(this); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.End()
	if n := s.Effects.Kinds[trail.Call]; err != nil || found != 1 || n.Differences != 1 || s.Effects.Calls != 4 {
		t.Errorf("%v: %d differences, summary %+v", err, found, s.Effects)
	}
}
