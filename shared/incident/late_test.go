package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// TestASecondLifeGoesUnlessTrainingMayRunThere: a call of an incident that is over has made a slice once more, in another zone.
func TestASecondLifeGoesUnlessTrainingMayRunThere(t *testing.T) {
	t.Parallel()
	for _, directory := range []string{"gs://ckpt/llama-8b", ""} {
		n := newStory(t, true, "llama-8b")
		n.w.Directory = directory
		n.w.Made = []incident.Making{{Incident: "x", Opened: start.Add(-2 * time.Hour), Closed: start.Add(-time.Hour)}}
		var told []string
		var sent []string
		for range 90 {
			n.now = n.now.Add(time.Minute)
			n.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: n.w.Training.Step + 10})
			n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) {
				e.Zone, e.Incident = "us-west4-b", "x"
				e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "9002", Created: start.Add(-90 * time.Minute)}
			})
			sent = append(sent, n.sent...)
			sent = append(sent, n.passes(0)...)
			if c := n.w.Closed; c != nil && n.ended().Code == reason.CodeLeftBehind && n.ended().Advice.IsZero() == (directory != "") && !slices.Contains(told, c.ID) {
				told = append(told, c.ID)
			}
		}
		deletes := slices.Contains(sent, "delete llama-8b")
		if deletes != (directory != "") || directory == "" && len(told) != 1 {
			t.Errorf("directory %q: asked for is %v, and told are %v:\n%s", directory, sent, told, n.tale())
		}
		if s := n.w.Slice("llama-8b"); s.Zone != "us-west4-a" {
			t.Errorf("the slice is %+v", s.Life)
		}
	}
}

// TestASecondLifeIsTheSliceOnceTheFirstIsGone: nothing is made again for it.
func TestASecondLifeIsTheSliceOnceTheFirstIsGone(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.reads("llama-8b", evidence.Lost)
	n.begins(events.ActionDelete, "llama-8b")
	n.reads("llama-8b", evidence.Gone)
	n.fails(n.begins(events.ActionCreate, "llama-8b"), reason.Transient)
	n.now = n.now.Add(2 * time.Minute)
	n.give(evidence.Ticked{Origin: n.reading()})
	id := n.w.Incident.ID
	made := func(c evidence.Condition, zone, life string) {
		n.now = n.now.Add(time.Second)
		n.reads("llama-8b", c, func(e *evidence.Read) {
			e.Zone, e.Incident, e.Incarnation = zone, id, events.Incarnation{Zone: zone, ID: life, Created: n.now}
		})
	}
	made(evidence.Creating, "us-west4-a", "9001")
	made(evidence.Ready, "us-west4-b", "9002")
	n.now = n.now.Add(time.Minute)
	n.reads("llama-8b", evidence.Gone)
	if s := n.w.Slice("llama-8b"); s.Incarnation.ID != "9002" || n.isWanted(events.ActionCreate) || !n.isWanted(events.ActionAdmit) {
		t.Errorf("the slice is %v, and wanted are %+v", s.Incarnation, n.w.Effects)
	}
}
