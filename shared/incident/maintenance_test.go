package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestANoticeThatIsShownForEverIsWaitedForOnce: the API may show maintenance whose window is long over, because the slice was
// broken when it would have begun. Nobody is asked to save for it again and again.
func TestANoticeThatIsShownForEverIsWaitedForOnce(t *testing.T) {
	p := policies["everything"]
	now := start
	w := quiet(false)
	notice := events.Notice{
		Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour), LatestWindowStart: start.Add(time.Hour),
	}
	opened := map[string]bool{}
	for ; now.Before(start.Add(48 * time.Hour)); now = now.Add(10 * time.Minute) {
		origin := incident.Origin{Time: now, Rank: events.RankReading}
		s := w.Slices[0]
		for _, e := range []incident.Evidence{
			incident.Noticed{Origin: origin, Slice: s.Name, Incarnation: s.Incarnation, Notice: notice, InAPI: true},
			incident.Read{
				Origin: origin, Slice: s.Name, Zone: s.Zone, Condition: incident.Ready, Incarnation: s.Incarnation, State: "READY", Notice: &notice,
			},
			incident.Reported{Origin: origin, Slice: s.Name, Report: events.CrewReport{
				Report: events.ReportProgress, Attempt: max(w.Crew.Attempt, 1), Step: 10_000 + int64(now.Sub(start)/time.Second),
			}},
			incident.Ticked{Origin: incident.Origin{Rank: events.RankReading}},
		} {
			w, _, _ = incident.Advance(p, w, e, now)
			if w.Incident != nil {
				opened[w.Incident.ID] = true
			}
		}
	}
	if len(opened) != 1 {
		t.Errorf("%d incidents were opened for one window: %v", len(opened), opened)
	}
	if w.Incident != nil {
		t.Errorf("an incident is open still: %s", w.Incident.Phase)
	}
	if due := w.Due(); !due.IsZero() {
		t.Errorf("something is due at %s for ever", due)
	}
}
