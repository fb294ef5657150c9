package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// standing is a workload whose slice has been so since a time.
func standing(id string, c evidence.Condition, since time.Time) incident.Workload {
	return incident.Workload{ID: id, Slices: []incident.Slot{{Name: "a", Life: incident.Life{Condition: c, Since: since}}}}
}

// worst: a page reads no more documents than it shows, in the order of what its rows say. A document of an older release comes after the others.
func worst(t *testing.T, s *suite) {
	ctx := t.Context()
	open := standing("demo/c", evidence.Ready, start)
	open.Incident = &incident.Incident{ID: "c-20261112-1", Opened: start}
	for _, w := range []incident.Workload{
		standing("demo/d", evidence.Ready, start), standing("demo/b", evidence.Lost, start), standing("demo/a", evidence.Lost, start.Add(time.Minute)), open,
	} {
		s.mustSave(t, w, ledger.Revision{})
		if want := w.Shown(start).Row().Rank(); w.Rank() != want || s.raw(t, ledger.Workloads, w.ID).Rank != want {
			t.Errorf("the rank of %s is %q, want %q", w.ID, w.Rank(), want)
		}
	}
	s.create(t, ledger.Workloads, "demo/old", 0, `{"id":"demo/old"}`)
	var pages [][]string
	after := ""
	for {
		found, next, err := s.Worst(ctx, after, 2)
		must(t, err)
		pages = append(pages, idsOf(found))
		if after = next; after == "" {
			break
		}
	}
	if d := cmp.Diff([][]string{{"demo/b", "demo/a"}, {"demo/c", "demo/d", "demo/old"}}, pages); d != "" {
		t.Errorf("the pages (-want +got):\n%s", d)
	}
	found, err := s.Open(ctx, 9)
	if ids := idsOf(found); err != nil || !slices.Contains(ids, "demo/c") || slices.Contains(ids, "demo/d") {
		t.Errorf("those that may have an open incident: %v, %v", ids, err)
	}
}

func idsOf(all []incident.Workload) (ids []string) {
	for _, w := range all {
		ids = append(ids, w.ID)
	}
	return ids
}

// past: rows of the archive are found by when they ended, in pages, and by their workload. A record of an older release has no row, and is found too.
func past(t *testing.T, s *suite) {
	ctx := t.Context()
	for hours, of := range []string{"demo/a", "demo/b", "demo/a", "demo/a.b", "demo/a"} {
		in := incident.Incident{
			ID: fmt.Sprintf("x-20261112-%d", hours), Opened: start, Closed: start.Add(time.Duration(hours) * time.Hour), Ending: &incident.End{Outcome: view.Resumed},
			Troubles: []incident.Trouble{{Cause: events.CausePreemption, Slice: "a", At: start}},
		}
		w := standing(of, evidence.Ready, start)
		w.Slices[0].Zone = "us-west4-a"
		must(t, s.SaveClosed(ctx, w, in))
	}
	s.create(t, ledger.Archive, "demo/a/x-20261101-1", 0, `{"id":"x-20261101-1","closed":"2026-11-01T00:00:00Z"}`)
	ask := func(e ledger.Ended) (ids []string, next string) {
		t.Helper()
		found, next, err := s.Past(ctx, e)
		must(t, err)
		for _, p := range found {
			ids = append(ids, p.Workload+" "+p.ID)
		}
		return ids, next
	}
	first, next := ask(ledger.Ended{Most: 3})
	rest, end := ask(ledger.Ended{Before: next, Most: 3})
	between, _ := ask(ledger.Ended{From: start.Add(time.Hour), Until: start.Add(3 * time.Hour), Most: 9})
	if d := cmp.Diff([][]string{
		{"demo/a x-20261112-4", "demo/a.b x-20261112-3", "demo/a x-20261112-2"},
		{"demo/b x-20261112-1", "demo/a x-20261112-0", "demo/a x-20261101-1"},
		{"demo/a x-20261112-2", "demo/b x-20261112-1"},
	}, [][]string{first, rest, between}); d != "" || end != "" {
		t.Errorf("what ended, and then %q (-want +got):\n%s", end, d)
	}
	of, err := s.PastOf(ctx, "demo/a")
	must(t, err)
	if len(of) != 4 || of[0].ID != "x-20261112-4" || of[3].ID != "x-20261101-1" {
		t.Errorf("of demo/a: %+v", of)
	}
	if p := of[0]; p.Cause != events.CausePreemption || !slices.Equal(p.Zones, []string{"us-west4-a"}) || p.Outcome != view.Resumed {
		t.Errorf("a row says %+v", p)
	}
}

// sights: every project whose patrol ticked is seen, and those that are asked for, the blindest first.
func sights(t *testing.T, s *suite) {
	for i, p := range []string{"near", "far"} {
		must(t, s.SavePulse(t.Context(), p, ledger.Pulse{Ticked: start.Add(-time.Duration(i) * time.Hour)}))
	}
	found, err := s.Sights(t.Context(), []string{"near", "never"}, start)
	var projects []string
	for _, f := range found {
		projects = append(projects, f.Project)
	}
	if d := cmp.Diff([]string{"never", "far", "near"}, projects); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}
