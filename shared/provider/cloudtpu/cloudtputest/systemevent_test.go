package cloudtputest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestSystemEntriesAreReadAsWhatHappened holds the entries of the simulated cloud against the reader of real ones.
func TestSystemEntriesAreReadAsWhatHappened(t *testing.T) {
	window := events.Notice{
		Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour), LatestWindowStart: start.Add(time.Hour), CanReschedule: true,
	}
	ongoing := window
	ongoing.Status = events.NoticeOngoing
	type read struct {
		Kind   events.Kind
		Cause  events.Cause
		Worker int
		Node   string
		Rank   events.Rank
		Status events.NoticeStatus
	}
	workers := func(r read) []read {
		a, b := r, r
		a.Worker, b.Worker = 0, 1
		return []read{a, b}
	}
	for _, c := range []struct {
		name  string
		event cloudtputest.Event
		want  []read
	}{
		{
			"a preemption",
			cloudtputest.Event{Kind: cloudtputest.Lost, Cause: events.CausePreemption},
			append(workers(read{Kind: events.KindLoss, Cause: events.CausePreemption, Rank: events.RankAudit}),
				read{Kind: events.KindLoss, Cause: events.CauseTerminated, Worker: -1, Node: "llama", Rank: events.RankAudit}),
		},
		{
			"a termination",
			cloudtputest.Event{Kind: cloudtputest.Lost, Cause: events.CauseTerminated},
			[]read{{Kind: events.KindLoss, Cause: events.CauseTerminated, Worker: -1, Node: "llama", Rank: events.RankAudit}},
		},
		{
			"a host error",
			cloudtputest.Event{Kind: cloudtputest.Unhealthy, Cause: events.CauseHostError, Seq: 3},
			[]read{{Kind: events.KindLoss, Cause: events.CauseHostError, Worker: 1, Rank: events.RankAudit}},
		},
		{
			"maintenance that begins",
			cloudtputest.Event{Kind: cloudtputest.Unhealthy, Cause: events.CauseMaintenance},
			workers(read{Kind: events.KindLoss, Cause: events.CauseMaintenance, Rank: events.RankAudit}),
		},
		{
			"maintenance announced",
			cloudtputest.Event{Kind: cloudtputest.Noticed, Notice: &window},
			workers(read{Kind: events.KindNotice, Cause: events.CauseMaintenance, Rank: events.RankAudit, Status: events.NoticePending}),
		},
		{
			"maintenance under way",
			cloudtputest.Event{Kind: cloudtputest.Noticed, Notice: &ongoing},
			workers(read{Kind: events.KindNotice, Cause: events.CauseMaintenance, Rank: events.RankAudit, Status: events.NoticeOngoing}),
		},
		{
			"a notice taken back",
			cloudtputest.Event{Kind: cloudtputest.Noticed},
			workers(read{Kind: events.KindNotice, Cause: events.CauseMaintenance, Rank: events.RankAudit, Status: events.NoticeGone}),
		},
		{"a call", cloudtputest.Event{Kind: cloudtputest.Called, Method: "GetNode"}, nil},
		{"a machine that is ready", cloudtputest.Event{Kind: cloudtputest.Ready}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.event
			e.Time, e.Project, e.Zone, e.Node, e.Group, e.Workers = start, "demo", home, "llama", "t1v-n-3f2a9c01", 2
			var got []read
			ids := map[string]bool{}
			for _, raw := range cloudtputest.SystemEntries(e) {
				entry, err := events.Read(raw)
				if err != nil || entry.Ignored != "" {
					t.Fatalf("%s is not read: %v %s", raw, err, entry.Ignored)
				}
				if len(entry.Missing) > 0 && entry.Kind != events.KindNotice {
					t.Errorf("%s misses %v", raw, entry.Missing)
				}
				if !entry.Time.Equal(start) {
					t.Errorf("it happened at %v, want %v", entry.Time, start)
				}
				ids[entry.ID] = true
				r := read{Kind: entry.Kind, Cause: entry.Cause, Worker: -1, Node: entry.Subject.Node, Rank: entry.Rank, Status: entry.Notice.Status}
				if _, worker, ok := entry.Subject.Group(); ok {
					r.Worker = worker
				}
				got = append(got, r)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(ids) != len(got) {
				t.Errorf("%d entries have %d IDs", len(got), len(ids))
			}
		})
	}
}
