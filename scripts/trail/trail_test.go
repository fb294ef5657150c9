package trail_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitstop.internal/scripts/trail"
)

var start = time.Date(2026, 1, 5, 4, 0, 0, 0, time.UTC)

func after(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

// night is a run in which a slice is lost and comes back, and which leaves another workload alone.
func night(run string) trail.Trail {
	return trail.Trail{
		Run: run, Days: 1, Read: after(30), Broken: []trail.Broken{},
		Workloads: []trail.Workload{
			{ID: "demo/gemma", Steps: []trail.Step{}, Document: []byte(`{"schema":1,"slices":[{"name":"gemma"}]}`)},
			{
				ID: "demo/llama", Document: []byte(`{"schema":1,"epoch":3,"slices":[{"name":"llama","zone":"us-west4-a"}],"closed":{"reason":"step 9 > 8"}}`),
				Steps: []trail.Step{
					{Kind: trail.Request, At: after(0), Method: "pitstop.recreate.requested.v1", Action: "delete", Slice: "llama", Epoch: 1, Reason: "preempted"},
					{Kind: trail.Call, At: after(1), Method: "DeleteNode", Resource: "nodes/llama", Action: "delete", Slice: "llama", Epoch: 1, Reason: "preempted"},
					{Kind: trail.Request, At: after(4), Method: "pitstop.recreate.requested.v1", Action: "create", Slice: "llama", Epoch: 2, Reason: "gone"},
					{Kind: trail.Call, At: after(5), Method: "CreateNode", Resource: "nodes/llama", Action: "create", Slice: "llama", Epoch: 2, Reason: "gone"},
					{
						Kind: trail.End, At: after(20), Incident: "llama-1", Revision: 1, Outcome: "resumed", Cause: "preemption", ConfirmedBy: "step",
						Opened: after(0), Ended: after(20), Reason: "step 9 > 8",
					},
				},
			},
		},
	}
}

func edited(edit func(*trail.Trail)) trail.Trail {
	t := night("seed 1")
	edit(&t)
	return t
}

// llama edits the actions for one workload.
func llama(edit func(*trail.Workload)) trail.Trail {
	return edited(func(t *trail.Trail) { edit(&t.Workloads[1]) })
}

func written(t *testing.T, trails ...trail.Trail) string {
	t.Helper()
	var b bytes.Buffer
	for _, one := range trails {
		if err := trail.Write(&b, one); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// compared compares runs of this build with what another one wrote.
func compared(this []trail.Trail, other string) (found []trail.Divergence, s trail.Summary, err error) {
	c := trail.NewComparison(trail.NewReader(strings.NewReader(other)), func(d trail.Divergence) { found = append(found, d) })
	for _, t := range this {
		if err := c.Add(t); err != nil {
			return found, s, err
		}
	}
	s, err = c.End()
	return found, s, err
}

// TestEachKindOfDifference edits the trail of the other build, and names the first difference.
func TestEachKindOfDifference(t *testing.T) {
	broken := trail.Broken{Rule: "8 progress", Workload: "demo/llama", At: after(6), Text: "deleted without a checkpoint"}
	for name, c := range map[string]struct {
		this, other trail.Trail
		want        string
	}{
		"nothing": {this: night("seed 1"), other: night("seed 1"), want: ""},
		"another method": {
			other: llama(func(w *trail.Workload) { w.Steps[1].Method = "StopNode" }),
			want:  "call at 1 m after 1: DeleteNode, StopNode",
		},
		"another resource": {
			other: llama(func(w *trail.Workload) { w.Steps[3].Resource = "nodes/other" }),
			want:  "call at 5 m after 3: CreateNode, CreateNode",
		},
		"refused": {
			other: llama(func(w *trail.Workload) { w.Steps[3].Code = "ResourceExhausted" }),
			want:  "call at 5 m after 3: CreateNode, CreateNode",
		},
		"a call is missing": {
			other: llama(func(w *trail.Workload) { w.Steps = append(w.Steps[:1:1], w.Steps[2:]...) }),
			want:  "call at 1 m after 1: DeleteNode, pitstop.recreate.requested.v1",
		},
		"a call more": {
			this:  llama(func(w *trail.Workload) { w.Steps = append(w.Steps[:1:1], w.Steps[2:]...) }),
			other: night("seed 1"),
			want:  "call at 1 m after 1: pitstop.recreate.requested.v1, DeleteNode",
		},
		"another request": {
			other: llama(func(w *trail.Workload) { w.Steps[2].Epoch = 3 }),
			want:  "request at 4 m after 2: pitstop.recreate.requested.v1, pitstop.recreate.requested.v1",
		},
		"another end": {
			other: llama(func(w *trail.Workload) { w.Steps[4].Outcome, w.Steps[4].Code = "escalated", "budget" }),
			want:  "end at 20 m after 3: resumed, escalated",
		},
		"no end": {
			other: llama(func(w *trail.Workload) { w.Steps = w.Steps[:4] }),
			want:  "end at 20 m after 3: resumed, nothing",
		},
		"another cause": {
			other: llama(func(w *trail.Workload) { w.Steps[4].Cause = "host_error" }),
			want:  "cause at 20 m after 3: resumed, resumed",
		},
		"later": {
			other: llama(func(w *trail.Workload) { w.Steps[3].At = after(6) }),
			want:  "time at 5 m after 3: CreateNode, CreateNode",
		},
		"opened earlier": {
			other: llama(func(w *trail.Workload) { w.Steps[4].Opened = after(-1) }),
			want:  "time at 20 m after 3: resumed, resumed",
		},
		"another document": {
			other: llama(func(w *trail.Workload) {
				w.Document = []byte(`{"closed":{"reason":"other words"},"schema":1,"epoch":4,"slices":[{"name":"llama"},{"name":"more"}]}`)
			}),
			want: `document at 30 m after 3: epoch 3 4, slices[0].zone "us-west4-a" null, slices[1] null {"name":"more"}`,
		},
		"a workload more": {
			other: edited(func(t *trail.Trail) {
				t.Workloads = append(t.Workloads, trail.Workload{ID: "demo/new", Document: []byte(`1`)})
			}),
			want: "document at 30 m after 0:  null 1",
		},
		"a rule broken by the other build": {
			other: edited(func(t *trail.Trail) { t.Broken = append(t.Broken, broken) }),
			want:  "violation at 6 m after 0: other 8 progress",
		},
		"a rule broken by this build": {
			this:  edited(func(t *trail.Trail) { t.Broken = append(t.Broken, broken) }),
			other: night("seed 1"),
			want:  "violation at 6 m after 0: this 8 progress",
		},
		"a rule broken by both": {
			this: edited(func(t *trail.Trail) { t.Broken = append(t.Broken, broken) }),
			other: edited(func(t *trail.Trail) {
				t.Broken = append(t.Broken, trail.Broken{Rule: broken.Rule, Workload: broken.Workload, Text: "again"})
			}),
			want: "",
		},
		"other words, and then another call": {
			other: llama(func(w *trail.Workload) { w.Steps[0].Reason, w.Steps[1].Slice = "taken back", "other" }),
			want:  "call at 1 m after 1: DeleteNode, DeleteNode",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.this.Run == "" {
				c.this = night("seed 1")
			}
			found, s, err := compared([]trail.Trail{c.this}, written(t, c.other))
			if err != nil {
				t.Fatal(err)
			}
			if got := told(found); got != c.want {
				t.Errorf("found %s\nwant  %s", got, c.want)
			}
			if differs := s.DifferingWorkloads > 0; differs != (c.want != "") || s.Runs != 1 {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

// told is a short form of the findings.
func told(found []trail.Divergence) string {
	var all []string
	for _, d := range found {
		text := string(d.Kind)
		if !d.At.IsZero() {
			text += fmt.Sprintf(" at %.0f m", d.At.Sub(start).Minutes())
		}
		text += fmt.Sprintf(" after %d: ", len(d.Before))
		what := func(s *trail.Step) string {
			if s == nil {
				return "nothing"
			}
			return s.Method + s.Outcome
		}
		var paths []string
		for _, p := range d.Paths {
			paths = append(paths, fmt.Sprintf("%s %s %s", p.Path, p.This, p.Other))
		}
		switch {
		case d.ThisBroke != nil:
			text += "this " + d.ThisBroke.Rule
		case d.OtherBroke != nil:
			text += "other " + d.OtherBroke.Rule
		case d.Paths != nil:
			text += strings.Join(paths, ", ")
		default:
			text += what(d.This) + ", " + what(d.Other)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// TestOtherWordsAreNoDifference: they are counted, and so are documents of another form.
func TestOtherWordsAreNoDifference(t *testing.T) {
	for name, c := range map[string]struct {
		other trail.Trail
		want  trail.Kind
	}{
		"of a step": {llama(func(w *trail.Workload) { w.Steps[4].Reason = "step 9 is past step 8" }), trail.Wording},
		"of a document": {llama(func(w *trail.Workload) {
			w.Document = bytes.Replace(w.Document, []byte("step 9 > 8"), []byte("step 9 is past step 8"), 1)
		}), trail.Wording},
		"another form": {llama(func(w *trail.Workload) { w.Document = []byte(`{"schema":2,"slots":[]}`) }), trail.Schema},
	} {
		t.Run(name, func(t *testing.T) {
			found, s, err := compared([]trail.Trail{night("seed 1")}, written(t, c.other))
			if err != nil {
				t.Fatal(err)
			}
			want := trail.Summary{
				Runs: 1, Workloads: 2, Kinds: map[trail.Kind]trail.Count{c.want: {Workloads: 1, Runs: 1}},
				Effects: trail.Effects{Incidents: 1, Calls: 2, Kinds: map[trail.Kind]trail.EffectCount{}},
			}
			if d := cmp.Diff(want, s); d != "" || len(found) > 0 {
				t.Errorf("%s found, summary (-want +got):\n%s", told(found), d)
			}
		})
	}
}

// TestTheSummaryCountsWorkloadsAndRunsOnce: a workload may differ in more than one way.
func TestTheSummaryCountsWorkloadsAndRunsOnce(t *testing.T) {
	this := []trail.Trail{night("seed 1"), night("seed 2"), night("seed 3")}
	other := []trail.Trail{night("seed 1"), night("seed 2"), night("seed 3")}
	for i := range 2 {
		other[i].Workloads[1].Steps = other[i].Workloads[1].Steps[:4]
		other[i].Broken = []trail.Broken{{Rule: "10 nothing lost", Workload: "demo/llama"}, {Rule: "10 nothing lost", Workload: "demo/gemma"}}
	}
	_, s, err := compared(this, written(t, other...))
	if err != nil {
		t.Fatal(err)
	}
	want := trail.Summary{
		Runs: 3, Workloads: 6, DifferingRuns: 2, DifferingWorkloads: 4,
		Kinds: map[trail.Kind]trail.Count{trail.End: {Workloads: 2, Runs: 2}, trail.Rule: {Workloads: 4, Runs: 2}},
		Effects: trail.Effects{Incidents: 3, Calls: 6, Kinds: map[trail.Kind]trail.EffectCount{
			trail.Incident: {Count: trail.Count{Workloads: 2, Runs: 2}, Differences: 2, First: 2},
		}},
	}
	if d := cmp.Diff(want, s, cmpopts.IgnoreFields(trail.EffectCount{}, "Example")); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
}

// TestASeedWithTooFewIncidentsIsRunAgain: the other build may have enough after the shorter run, in which they differ then.
func TestASeedWithTooFewIncidentsIsRunAgain(t *testing.T) {
	longer := night("seed 1")
	longer.Days = 2
	fewer := llama(func(w *trail.Workload) { w.Steps = w.Steps[:4] })
	const want = "end at 20 m after 3: resumed, nothing"
	for name, c := range map[string]struct{ this, other []trail.Trail }{
		"by the other build":         {[]trail.Trail{night("seed 1"), night("seed 2")}, []trail.Trail{fewer, longer, night("seed 2")}},
		"by the other build, at end": {[]trail.Trail{night("seed 1")}, []trail.Trail{fewer, longer}},
	} {
		t.Run(name, func(t *testing.T) {
			found, s, err := compared(c.this, written(t, c.other...))
			if got := told(found); err != nil || got != want || s.DifferingRuns != 1 || s.Runs != len(c.this) {
				t.Errorf("%v: found %s, summary %+v", err, got, s)
			}
			found, s, err = compared(c.other, written(t, c.this...))
			if got := told(found); err != nil || !strings.Contains(got, "nothing, resumed") || s.DifferingRuns != 1 || s.Runs != len(c.this) {
				t.Errorf("the other way round: %v: found %s, summary %+v", err, got, s)
			}
		})
	}
	for _, c := range [][2][]trail.Trail{{{night("seed 1"), longer}, {night("seed 1")}}, {{night("seed 1")}, {night("seed 1"), longer}}} {
		if _, _, err := compared(c[0], written(t, c[1]...)); err == nil || !strings.Contains(err.Error(), "ran seed 1 again for 2 days, though both did the same before") {
			t.Errorf("error %v", err)
		}
	}
}

// TestATrailThatIsNotWhole: runs that are missing, or that nobody asked for, are no runs in which both do the same.
func TestATrailThatIsNotWhole(t *testing.T) {
	this := []trail.Trail{night("seed 1"), night("seed 2")}
	whole := written(t, this...)
	for name, c := range map[string]struct {
		other string
		is    error
		says  string
	}{
		"nothing":                  {"", trail.ErrEnded, "before seed 1"},
		"the last run is missing":  {written(t, this[0]), trail.ErrEnded, "before seed 2"},
		"cut off":                  {whole[:len(whole)-20], trail.ErrEnded, "in the middle of a run"},
		"the first run is missing": {written(t, this[1]), nil, "goes on with seed 2 of 1 days, and this one with seed 1"},
		"a run more":               {written(t, this[0], this[1], night("seed 3")), nil, "goes on with seed 3, and this one has ended"},
		"no JSON":                  {"hello\n", trail.ErrUnknown, "it is no JSON"},
		"no trail":                 {"{}\n", trail.ErrUnknown, "it has no version"},
		"another version":          {strings.Replace(whole, `"trail":1`, `"trail":2`, 1), trail.ErrUnknown, "it has version 2, and this build reads version 1"},
		"another form":             {`{"trail":1,"workloads":7}`, trail.ErrUnknown, "workloads"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := compared(this, c.other)
			if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v; want one that says %q", err, c.says)
			}
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := night("seed 1")
	want.Broken = []trail.Broken{{Rule: "9 brake", At: after(1), Text: "31 slots"}}
	r := trail.NewReader(strings.NewReader(written(t, want)))
	got, err := r.Next()
	want.Version = trail.Version
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("error %v behind the last one", err)
	}
}
