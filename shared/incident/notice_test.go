package incident_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// words are one maintenance as the log of each worker, a reading of the API and the machine's own metadata tell it. None
// of them tells all that the others do.
func words(w incident.Workload, status events.NoticeStatus, at time.Time) map[string]incident.Evidence {
	full := events.Notice{
		Status: status, CanReschedule: true, WindowStart: start.Add(2 * time.Hour), WindowEnd: start.Add(6 * time.Hour),
		LatestWindowStart: start.Add(4 * time.Hour),
	}
	bare, short := full, events.Notice{Status: status}
	bare.WindowEnd, bare.LatestWindowStart = time.Time{}, time.Time{}
	s := w.Slices[0]
	out := map[string]incident.Evidence{
		"api": incident.Noticed{
			Origin: incident.Origin{ID: "read", Time: at.Add(5 * time.Second), Rank: events.RankReading}, Slice: s.Name, Incarnation: s.Incarnation, Notice: full, InAPI: true, Text: "api",
		},
		"crew": incident.Reported{Origin: incident.Origin{ID: "line", Time: at, Rank: events.RankUser}, Slice: s.Name, Report: events.CrewReport{
			Schema: 1, Report: events.ReportNotice, Zone: s.Zone, Node: s.Name, Hostname: s.Hosts + "-w-0", Notice: &bare,
		}},
		"crew, without a window": incident.Reported{Origin: incident.Origin{ID: "line", Time: at, Rank: events.RankUser}, Slice: s.Name, Report: events.CrewReport{
			Schema: 1, Report: events.ReportNotice, Zone: s.Zone, Node: s.Name, Hostname: s.Hosts + "-w-3", Notice: &short,
		}},
	}
	for i := range 3 {
		out[fmt.Sprintf("log %d", i)] = incident.Noticed{
			Origin: incident.Origin{ID: "entry", Time: at.Add(time.Duration(i) * time.Second), Rank: events.RankAudit}, Slice: s.Name, Incarnation: s.Incarnation, Notice: full, Text: "log",
		}
	}
	return out
}

// TestNoticesOfAllWaysAreOne tells one maintenance in every order, pending and then under way: there is one notice with all
// that is known, one incident, and one request to save.
func TestNoticesOfAllWaysAreOne(t *testing.T) {
	names := sorted(words(quiet(true), events.NoticePending, start))
	permutations(names, func(order []string) {
		w, now := quiet(true), start
		incidents, requests := map[string]bool{}, 0
		tell := func(status events.NoticeStatus) {
			at := now
			for _, name := range order {
				now = now.Add(10 * time.Second)
				var sent []events.Event
				w, sent, _ = advance(policies["spot"], w, words(w, status, at)[name], now)
				if w.Incident != nil {
					incidents[w.Incident.ID] = true
				}
				for _, e := range sent {
					if e.EventType() == events.TypeCheckpointRequested {
						requests++
					}
				}
			}
		}
		tell(events.NoticePending)
		want := events.Notice{
			Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(2 * time.Hour), WindowEnd: start.Add(6 * time.Hour),
			LatestWindowStart: start.Add(4 * time.Hour),
		}
		if n := w.Slices[0].Notice; !n.Equal(want) || !n.InAPI || !n.Due.Equal(start.Add(110*time.Minute)) || !n.Tells(events.Notice{Status: events.NoticePending}) {
			t.Fatalf("%v: %+v", order, n)
		}
		if len(incidents) != 0 || requests != 0 {
			t.Fatalf("%v: a notice alone opened %v and sent %d requests", order, incidents, requests)
		}
		now = start.Add(2 * time.Hour)
		tell(events.NoticeOngoing)
		want.Status = events.NoticeOngoing
		if n := w.Slices[0].Notice; !n.Equal(want) || len(incidents) != 1 || requests != 1 {
			t.Fatalf("%v: %+v, incidents %v, %d requests", order, n, incidents, requests)
		}
	})
}

// permutations calls f with every order of the names.
func permutations(names []string, f func([]string)) {
	var rec func(k int)
	rec = func(k int) {
		if k == len(names) {
			f(names)
			return
		}
		for i := k; i < len(names); i++ {
			names[k], names[i] = names[i], names[k]
			rec(k + 1)
			names[k], names[i] = names[i], names[k]
		}
	}
	rec(0)
}

// TestANoticeThatCouldNotBeReadIsNotGone: the reading of the slice succeeds, that of what is announced does not.
func TestANoticeThatCouldNotBeReadIsNotGone(t *testing.T) {
	for _, unread := range []bool{true, false} {
		w, now := quiet(true), start
		w, _, _ = advance(policies["spot"], w, words(w, events.NoticePending, now)["api"], now)
		s := w.Slices[0]
		now = now.Add(time.Minute)
		w, _, _ = advance(policies["spot"], w, incident.Read{
			Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: incident.Ready, Incarnation: s.Incarnation,
			State: "READY", NoticeUnread: unread,
		}, now)
		want := events.NoticeGone
		if unread {
			want = events.NoticePending
		}
		if d := cmp.Diff(want, w.Slices[0].Notice.Status); d != "" {
			t.Errorf("unread %v (-want +got):\n%s", unread, d)
		}
	}
}
