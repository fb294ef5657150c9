package logevent_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/view"
)

// TestOneTroubleOfManyWorkersIsOneIncident lets all workers of a slice report its preemption, twice, each at its own time
// within 30 minutes. A seed draws the order, and the crew's exits and a host error come between. However the first entries
// are attributed, one incident covers all of them, until after its end, and the training is not charged.
func TestOneTroubleOfManyWorkersIsOneIncident(t *testing.T) {
	const workers = 1536
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b := training(t)
			happened := b.Clock.Now()
			b.Must(b.API.Preempt(zone, slice))
			entries := [][]byte{fleettest.SystemEvent("compute.instances.hostError", worker(77), happened, nil)}
			for n := range workers {
				entry := fleettest.SystemEvent("compute.instances.preempted", worker(n), happened.Add(time.Duration(n)*time.Millisecond), nil)
				entries = append(entries, entry)
				if n%8 == 0 {
					entries = append(entries, entry, b.crew(events.CrewReport{
						Report: events.ReportExited, Attempt: 1, Worker: n, Step: 1001, Signal: "SIGTERM", RestartsLeft: 3, Hostname: fmt.Sprintf("%s-w-%d", group, n),
					}))
				}
			}
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] }) //nolint:gosec // a test has to repeat itself
			for _, e := range entries {
				b.Clock.Advance(30 * time.Minute / time.Duration(len(entries)))
				if got := b.deliver(e); got != fleettest.Handled && got != fleettest.Ignored {
					t.Fatalf("%s: %s", e, got)
				}
			}
			w := b.Workload(id)
			b.Want(w.Closed, (*incident.Incident)(nil))
			b.Want(b.Shown(id).Incident.Cause.Infrastructure(), true)
			b.Want(b.Shown(id).Incident.Cost.Restarts, 0)
			b.Want(slices.Compact(fleettest.Types(b.Sender.Sent())), []string{events.TypeRecreateRequested}) // nobody carries it out

			// It ends, and the stragglers of the same life open nothing and change no word of it.
			first := w.Incident.ID
			b.Give(w, evidence.Called{Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner})
			b.Want(b.Shown(id).Closed.ID, first)
			b.Clock.Advance(time.Minute)
			for _, e := range entries[:64] {
				b.deliver(e)
			}
			b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
			b.Want(b.Shown(id).Closed.ID, first)
			b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
		})
	}
}

// TestLateEvidenceAttributesAnewAndRefunds: the crew gives up before anybody knows that its machine is gone.
func TestLateEvidenceAttributesAnewAndRefunds(t *testing.T) {
	for name, late := range map[string]time.Duration{"at once": time.Second, "half an hour later": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			b.Want(b.deliver(b.crew(events.CrewReport{Report: events.ReportGaveUp, Attempt: 1, Reason: "exit code 1"})), fleettest.Handled)
			b.Sender.Sent()
			b.Confirm(b.Workload(id), slice, 1, false)
			b.Want(b.Shown(id).Incident.Cause, events.CauseCrash)
			restart, _ := fleettest.One(t, b.Bench, events.DecodeRecoveryRequested)
			_, err := b.Fleet.Advancer.Begin(t.Context(), restart.Request, "request-id")
			b.Must(err)
			b.Want(b.Shown(id).Incident.Cost.Restarts, 1)
			entry := fleettest.SystemEvent("compute.instances.hostError", worker(1), b.Clock.Now(), nil)
			b.Clock.Advance(late)
			b.Want(b.deliver(entry), fleettest.Handled)
			w := b.Shown(id)
			in := cmp.Or(w.Incident, w.Closed) // nobody has written the lease
			b.Want(in.Cause, events.CauseHostError)
			b.Want(in.Cost.Restarts, 0)
		})
	}
}

// TestAStragglerAttributesWhatHasEndedAnewAndReopensNothing: the incident has been closed meanwhile.
func TestAStragglerAttributesWhatHasEndedAnewAndReopensNothing(t *testing.T) {
	b := training(t)
	at := b.Clock.Now()
	b.Want(b.deliver(b.crew(events.CrewReport{Report: events.ReportGaveUp, Attempt: 1, Reason: "exit code 1"})), fleettest.Handled)
	b.Confirm(b.Workload(id), slice, 1, false)
	b.Clock.Advance(time.Minute)
	b.Want(b.deliver(b.crew(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 5000, CheckpointStep: 4990})), fleettest.Handled)
	closed := b.Shown(id).Closed
	b.Want(closed.Outcome, view.Resumed)
	b.Sender.Sent()
	b.Clock.Advance(28 * time.Minute)
	b.Want(b.deliver(fleettest.SystemEvent("compute.instances.hostError", worker(1), at, nil)), fleettest.Handled)
	w := b.Shown(id)
	b.Want(w.Incident, (*view.Incident)(nil))
	b.Want(w.Closed.ID, closed.ID)
	b.Want(w.Closed.Cause, events.CauseHostError)
	b.Want(w.Closed.Revision, closed.Revision+1)
	archived, err := b.Ledger.Closed(t.Context(), id, closed.ID)
	b.Must(err)
	b.Want(b.Workload(id).ShownIncident(archived, b.Clock.Now()).Cause, events.CauseHostError)
}

func TestEveryLineOfACrewTellsWhoseWorkersTheyAre(t *testing.T) {
	const others = "t1v-n-ffffffff"
	life := fleettest.Start.Add(-time.Hour)
	for name, c := range map[string]struct {
		report   events.Report
		hostname string
		at       time.Time
		// former is the life that the workers are known to be of.
		former bool
		want   string
		group  string
	}{
		"its first line":             {events.ReportStarted, group, fleettest.Start, false, fleettest.Handled, group},
		"where that was lost":        {events.ReportProgress, group, fleettest.Start, false, fleettest.Handled, group},
		"before its life":            {events.ReportProgress, group, life.Add(-time.Second), false, fleettest.Ignored, ""},
		"of a life that is over":     {events.ReportProgress, others, life.Add(-time.Second), true, fleettest.Ignored, ""},
		"of one whose clock is fast": {events.ReportProgress, others, life.Add(4 * time.Minute), true, fleettest.Ignored, ""},
		"of names that come again":   {events.ReportProgress, others, life.Add(6 * time.Minute), true, fleettest.Handled, others},
		"of another make":            {events.ReportProgress, "web", fleettest.Start, false, fleettest.Handled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.API.BlockGuestAttributes(true)
			b.Slice(cloudtputest.NodeConfig{Created: life})
			if c.former {
				b.Must(b.Ledger.Map(t.Context(), fleettest.Project, zone, ledger.Worker, c.hostname, ledger.Subject{
					Workload: id, Slice: slice, Incarnation: events.Incarnation{Zone: zone, ID: "former", Created: life.Add(-time.Hour)},
				}))
			}
			line := events.CrewReport{
				Schema: events.Schema, Report: c.report, Project: fleettest.Project, Zone: zone, Node: slice, Attempt: 1, Step: 5, Hostname: c.hostname + "-w-0",
			}
			b.Want(b.deliver(trainingtest.CrewEntry(line, c.at, 1)), c.want)
			b.Want(b.Workload(id).Slices[0].Hosts, c.group)
			if c.group == "" {
				return
			}
			s, err := b.Ledger.Subject(t.Context(), fleettest.Project, zone, ledger.Worker, c.group)
			b.Must(err)
			b.Want(s.Incarnation, b.API.Incarnation(zone, slice))
		})
	}
}

// TestALineIsOfTheLifeThatWroteIt: a late line of a former life maps no workers, and what it says of the training counts. The first line of
// the next life counts when the API has shown that life.
func TestALineIsOfTheLifeThatWroteIt(t *testing.T) {
	const next = "t1v-n-00000009"
	line := func(group string, attempt int) events.CrewReport {
		return events.CrewReport{Report: events.ReportStarted, Attempt: attempt, Workers: 4, Hostname: group + "-w-0"}
	}
	b := training(t)
	late := b.crew(line(group, 3))
	b.Clock.Advance(time.Minute)
	b.Must(b.API.Vanish(zone, slice))
	b.Look(zone, slice)
	b.Clock.Advance(time.Minute)
	created := b.Clock.Now()
	b.Clock.Advance(30 * time.Second)
	b.Want(b.deliver(b.crew(line(next, 4))), fleettest.Handled)
	w := b.Workload(id)
	b.Want(w.Training.Attempt, 1)
	b.Want(len(w.Unbound), 1)

	w = b.Slice(cloudtputest.NodeConfig{Spot: true, Group: next, Created: created})
	b.Want(b.deliver(late), fleettest.Handled)
	w = b.Workload(id)
	b.Want(w.Training.Attempt, 3)
	b.Want(w.Slices[0].Hosts, "")

	_, err := b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
	b.Must(err)
	w = b.Workload(id)
	b.Want(w.Slices[0].Hosts, next)
	b.Want(w.Training.Attempt, 4)
	b.Want(len(w.Unbound), 0)
}

// TestAHostNameFromALineIsProvisional: a made-up name comes first. The crew of the slice is heard all the same, and the true names replace
// that one as soon as the API gives them. Where it gives none, none is known.
func TestAHostNameFromALineIsProvisional(t *testing.T) {
	const made = "t1v-n-ffffffff"
	for name, blocked := range map[string]bool{"the API gives the names": false, "the names may not be read": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.API.BlockGuestAttributes(blocked)
			b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group})
			b.Clock.Advance(time.Minute)
			line := func(group string, step int64) {
				t.Helper()
				b.Clock.Advance(time.Second)
				report := events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: step, Hostname: group + "-w-0"}
				b.Want(b.deliver(b.crew(report)), fleettest.Handled)
			}
			line(made, 5)
			line(group, 6)
			b.Want(b.Shown(id).Training.Step, int64(6))
			b.Want(b.Workload(id).Slices[0].ProvenHosts(), "")

			w := b.Workload(id)
			_, err := b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
			b.Must(err)
			b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), 1)
			line(group, 7)
			w = b.Workload(id)
			b.Want(b.Shown(id).Training.Step, int64(7))
			_, err = b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
			b.Must(err)
			b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), 0) // a life is asked once
			if blocked {
				b.Want(w.Slices[0].ProvenHosts(), "")
				return
			}
			b.Want(w.Slices[0].ProvenHosts(), group)
			line(made, 9)
			w = b.Workload(id)
			b.Want(b.Shown(id).Training.Step, int64(7))
			b.Want(w.Slices[0].ProvenHosts(), group)
		})
	}
}

// TestALineTakesNoWorkersOfAnotherSlice: whoever names the workers of another slice gets none of their entries, and the crew there is heard.
func TestALineTakesNoWorkersOfAnotherSlice(t *testing.T) {
	for name, blocked := range map[string]bool{"the API gives the names": false, "the names may not be read": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group})
			b.Slice(cloudtputest.NodeConfig{Name: "gemma", Spot: true, Group: "t1v-n-00000002"})
			if !blocked {
				w := b.Workload(id)
				_, err := b.Fleet.MapHosts(t.Context(), w, w.Slices[0])
				b.Must(err)
			}
			b.API.BlockGuestAttributes(blocked)
			b.Clock.Advance(time.Minute)
			line := func(node string, step int64) {
				t.Helper()
				b.Clock.Advance(time.Second)
				r := events.CrewReport{
					Schema: events.Schema, Report: events.ReportProgress, Project: fleettest.Project, Zone: zone, Node: node, Attempt: 1, Step: step, Hostname: group + "-w-0",
				}
				b.Want(b.deliver(trainingtest.CrewEntry(r, b.Clock.Now(), 1)), fleettest.Handled)
			}
			if blocked {
				line(slice, 4) // its crew is the first to name them
			}
			line("gemma", 5)
			s, err := b.Ledger.Subject(t.Context(), fleettest.Project, zone, ledger.Worker, group)
			b.Must(err)
			b.Want(s.Workload, id)
			line(slice, 6)
			b.Want(b.Shown(id).Training.Step, int64(6))
		})
	}
}
