package recovery_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// TestARequestIsAPointer: whatever else the body of a request to admit, restart or start says, the function obeys the
// ledger.
func TestARequestIsAPointer(t *testing.T) {
	for name, arrange := range map[string]func(*testing.T) *bench{
		"admit": toAdmit, "restart": toRestart, "start": toStart,
	} {
		t.Run(name, func(t *testing.T) {
			fleettest.ObeysPointersAlone(t, func(t *testing.T) fleettest.Acting {
				t.Helper()
				b := arrange(t)
				return fleettest.Acting{Bench: b.Bench, Request: b.request, Handle: b.handle()}
			})
		})
	}
}

// TestALeaseNamesNoHostOfALine: a line with a made-up host name comes before a lease is written, whether or not the names of the hosts can be
// read. The true crew is admitted, and its verdict counts.
func TestALeaseNamesNoHostOfALine(t *testing.T) {
	const made = "t1v-n-ffffffff"
	for name, blocked := range map[string]bool{"the API gives the names": false, "the names may not be read": true} {
		t.Run(name, func(t *testing.T) {
			b := toAdmit(t)
			b.API.BlockGuestAttributes(blocked)
			b.Clock.Advance(time.Second)
			h := logevent.New(logevent.Deps{Fleet: b.Fleet, Projects: []string{fleettest.Project}, Accounts: events.Accounts{Ours: []string{fleettest.Us}}})
			line := events.CrewReport{
				Schema: events.Schema, Report: events.ReportProgress, Project: fleettest.Project, Zone: zone, Node: slice, Attempt: 1, Step: 5, Hostname: made + "-w-0",
			}
			b.Want(b.Deliver(h, fleettest.Message(trainingtest.CrewEntry(line, b.Clock.Now(), 1), b.Clock.Now())), fleettest.Handled)
			b.Want(b.deliver(), fleettest.Handled)
			l, _ := b.lease()
			life := b.API.Incarnation(zone, slice)
			b.Want(l.Admitted, []events.Admission{{Slice: slice, Incarnation: life}})

			w := b.Workload(id)
			w, err := b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
			b.Must(err)
			workers, _, _ := events.WorkerGroup(b.API.Hosts(zone, slice)[0])
			v := &events.CrewVerdict{Attempt: l.Attempt, Finished: true, Certain: true, Life: events.Admission{Slice: slice, Workers: workers}}
			b.Want(l.Confirms(*v), true)
			now := b.Clock.Now()
			b.Give(w, evidence.Beat{Origin: evidence.Origin{Time: now, Rank: events.RankUser}, Slice: slice, Incarnation: life, Seen: now, Attempt: l.Attempt, Verdict: v})
			b.Want(b.Shown(id).Training.Finished, true)
		})
	}
}
