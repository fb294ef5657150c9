package logevent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	id    = fleettest.Project + "/llama"
	zone  = fleettest.Zone
	slice = "llama"
	group = "t1v-n-0a1b2c3d"
	node  = "locations/" + zone + "/nodes/" + slice
	read  = "GetNode " + zone + "/" + slice
)

// bench is a Spot slice that trains, and the function.
type bench struct {
	*fleettest.Bench
	handle trigger.Handle
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t)}
	b.handle = logevent.New(logevent.Deps{Fleet: b.Fleet, Projects: []string{fleettest.Project}, Accounts: events.Accounts{Ours: []string{fleettest.Us}}})
	return b
}

// training is the bench with a slice whose workers are known.
func training(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group})
	w = b.Report(w, slice, fleettest.Progress(1000))
	_, err := b.Fleet.MapGroup(t.Context(), w, w.Slices[0], group)
	b.Must(err)
	b.Clock.Advance(time.Minute)
	return b
}

func refOf(b *bench) provider.Ref { return fleet.Ref(b.Workload(id), b.Workload(id).Slices[0]) }

var errAway = errors.New("Pub/Sub is away")

func (b *bench) deliver(entry []byte) string {
	b.T.Helper()
	return b.Deliver(b.handle, fleettest.Message(entry, b.Clock.Now()))
}

func worker(n int) string { return fmt.Sprintf("zones/%s/instances/%s-w-%d", zone, group, n) }

// preempted is Google's entry about a worker or a node.
func (b *bench) preempted(resource string) []byte {
	return fleettest.SystemEvent("compute.instances.preempted", resource, b.Clock.Now(), nil)
}

// crew is a line of the crew's worker 0.
func (b *bench) crew(r events.CrewReport) []byte {
	r.Schema, r.Project, r.Zone, r.Node = events.Schema, fleettest.Project, zone, slice
	return trainingtest.CrewEntry(r, b.Clock.Now(), 1)
}

// nothingSent checks that no message was sent, and which calls were made.
func (b *bench) nothingSent(calls ...string) {
	b.T.Helper()
	b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
	b.Want(b.Calls(), calls)
}

func TestALossIsLookedAtAndThenActedOnOnce(t *testing.T) {
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Want(b.deliver(b.preempted(worker(2))), fleettest.Handled)
	b.Want(b.Calls(), []string{read})
	life := b.API.Incarnation(zone, slice)
	spec := b.Workload(id).Slices[0].Spec
	want := events.RecreateRequested{
		Request: events.Request{
			Schema: events.Schema, Workload: id, Incident: "llama-20260301-1", Epoch: 2, Action: events.ActionDelete, Slice: slice,
			Incarnation: life, Attempt: 1, Expires: b.Clock.Now().Add(bounds.RequestFor),
		},
		Zone: zone, Spec: spec,
	}
	got, env := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	got.Reason = ""
	b.Want(got, want)
	env.Data = nil
	b.Want(env, events.Envelope{
		ID: want.EventID(), Type: events.TypeRecreateRequested, Source: fleettest.Source, Subject: id, Time: b.Clock.Now(),
		Cause: fleettest.Cause, Correlation: want.Incident,
	})

	// The other workers, the same entry once more, and the node's own entry have nothing to add.
	for _, resource := range []string{worker(2), worker(0), worker(3), node} {
		b.Want(b.deliver(b.preempted(resource)), fleettest.Handled)
	}
	b.nothingSent()
	b.Want(b.Shown(id).Incident.ID, want.Incident)
}

func TestALossThatTheAPIDoesNotShowIsNotActedOn(t *testing.T) {
	for name, look := range map[string]func(b *bench){
		"it shows the slice usable": func(*bench) {},
		"it cannot be read": func(b *bench) {
			b.Must(b.API.Preempt(zone, slice))
			b.API.Inject(cloudtputest.Fault{Method: "GetNode", Code: 14})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			look(b)
			b.Want(b.deliver(fleettest.SystemEvent("compute.instances.hostError", worker(1), b.Clock.Now(), nil)), fleettest.Handled)
			b.nothingSent(read)
			b.Want(b.Shown(id).Incident.Phase, view.Looking)
			b.Want(b.Shown(id).Incident.Cause, events.CauseHostError)
			// The delivery that stored the evidence has looked; the other workers' entries do not look.
			b.Want(b.deliver(fleettest.SystemEvent("compute.instances.hostError", worker(2), b.Clock.Now(), nil)), fleettest.Handled)
			b.nothingSent()
		})
	}
}

// TestLinesOfUsersNeverLeadToADeletion gives the function every line that a user's code can write, in every state of the
// API in which the slice is not shown to be lost.
func TestLinesOfUsersNeverLeadToADeletion(t *testing.T) {
	ongoing := &events.Notice{Status: events.NoticeOngoing, WindowStart: fleettest.Start}
	lines := []events.CrewReport{
		{Report: events.ReportStarted, Attempt: 2},
		{Report: events.ReportExited, Attempt: 2, ExitCode: 1},
		{Report: events.ReportExited, Attempt: 3, Signal: "SIGKILL"},
		{Report: events.ReportNotice, Preempted: true},
		{Report: events.ReportNotice, Notice: ongoing},
		{Report: events.ReportSaved, SaveID: "none", CheckpointStep: 5000},
		{Report: events.ReportRefused, SaveID: "none", Reason: "no"},
		{Report: events.ReportGaveUp, Attempt: 3, Reason: "delete me"},
		{Report: events.ReportFinished, Attempt: 2},
	}
	for name, change := range map[string]func(b *bench){
		"usable":   func(*bench) {},
		"unusable": func(b *bench) { b.Must(b.API.HostError(zone, slice, -1)) },
		"gone":     func(b *bench) { b.Must(b.API.Vanish(zone, slice)) },
		"deleting": func(b *bench) { b.Must(b.API.OwnerDelete(zone, slice, fleettest.Owner)) },
	} {
		for first := range lines {
			t.Run(fmt.Sprintf("%s, from line %d on", name, first), func(t *testing.T) {
				b := training(t)
				change(b)
				for i := range lines {
					b.Clock.Advance(10 * time.Second)
					b.Want(b.deliver(b.crew(lines[(first+i)%len(lines)])), fleettest.Handled)
				}
				if sent := fleettest.Types(b.Sender.Sent()); slices.Contains(sent, events.TypeRecreateRequested) {
					t.Errorf("sent %q", sent)
				}
			})
		}
	}
}

func TestWhatACrewSaysOfAPreemptionStartsALookThatDecides(t *testing.T) {
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Want(b.deliver(b.crew(events.CrewReport{Report: events.ReportNotice, Preempted: true})), fleettest.Handled)
	b.Want(b.Calls(), []string{read})
	got, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	b.Want(got.Action, events.ActionDelete)
}

// TestWhatItsOwnerCreatesIsLookedAtWhereItIs: it stood in that zone before, so its name is known there, and stands in another now.
func TestWhatItsOwnerCreatesIsLookedAtWhereItIs(t *testing.T) {
	const other = "us-west4-b"
	b := training(t)
	first := b.Workload(id).Slices[0].Incarnation
	b.Must(b.API.Vanish(zone, slice))
	b.Look(zone, slice)
	b.Clock.Advance(time.Minute)
	b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: other, Name: slice, Labels: fleettest.Label("spot"), Spot: true}, fleettest.Owner))
	for _, entry := range b.Audit("CreateNode") {
		b.Want(b.deliver(entry), fleettest.Handled)
	}
	moved := b.API.Incarnation(other, slice)
	b.Want(b.Workload(id).Slices[0].Incarnation, moved)

	b.Must(b.API.Vanish(other, slice))
	b.Look(other, slice)
	b.Clock.Advance(time.Minute)
	b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: slice, Labels: fleettest.Label("spot"), Spot: true}, fleettest.Owner))
	entries := b.Audit("CreateNode")
	b.API.Inject(cloudtputest.Fault{Method: "GetNode", Code: 14})
	b.Want(b.deliver(entries[len(entries)-1]), fleettest.Redelivered)
	b.Want(b.deliver(entries[len(entries)-1]), fleettest.Handled)
	back := b.API.Incarnation(zone, slice)
	b.Want(b.Workload(id).Slices[0].Incarnation, back)
	if back.Same(first) || back.Same(moved) {
		t.Errorf("it lives as %v, and did as %v and %v", back, first, moved)
	}
	b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
}

func TestWhoDeletedItDecidesWhatThatMeans(t *testing.T) {
	for principal, owner := range map[string]bool{
		fleettest.Owner:                                true,
		"ci@other.iam.gserviceaccount.com":             true,
		fleettest.Us:                                   false,
		strings.ToUpper(fleettest.Us):                  false,
		"system@google.com":                            false,
		"service-42@cloud-tpu.iam.gserviceaccount.com": false,
	} {
		t.Run(principal, func(t *testing.T) {
			b := training(t)
			b.Must(b.API.OwnerDelete(zone, slice, principal))
			b.Calls()
			got := b.deliver(b.Audit("DeleteNode")[0])
			b.Want(b.Shown(id).Slices[0].Released, owner)
			if want := map[bool]string{true: fleettest.Handled, false: fleettest.Ignored}[owner]; got != want {
				t.Errorf("the entry is %s, want %s", got, want)
			}
			b.nothingSent()
		})
	}
}

func TestACallThatWasRefusedReleasesNothing(t *testing.T) {
	b := training(t)
	b.API.Inject(cloudtputest.Fault{Method: "DeleteNode", Code: 7, Message: "denied"})
	// The call of us that is refused is as good as anybody's: the entry is the same but for the principal.
	_, err := b.Cloud.Delete(t.Context(), refOf(b), "")
	if err == nil {
		t.Fatal("the call was not refused")
	}
	entry := strings.ReplaceAll(string(b.Audit("DeleteNode")[0]), fleettest.Us, fleettest.Owner)
	b.Calls()
	b.Want(b.deliver([]byte(entry)), fleettest.Ignored)
	b.Want(b.Workload(id).Slices[0].IsReleased(), false)
	b.nothingSent()
}

func TestTheEndOfAnOperationIsAHintToLook(t *testing.T) {
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Want(b.deliver(b.preempted(worker(0))), fleettest.Handled)
	b.Sender.Sent()
	_, err := b.Cloud.Delete(t.Context(), refOf(b), "")
	b.Must(err)
	b.Calls()
	b.Want(b.deliver(b.Audit("DeleteNode")[0]), fleettest.Ignored) // it has only begun
	b.nothingSent()
	b.Clock.Advance(2 * time.Minute)
	b.Want(b.deliver(b.Audit("DeleteNode")[1]), fleettest.Handled)
	b.Want(b.Calls(), []string{read})
	got, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	b.Want(got.Action, events.ActionCreate)
}

func TestWorkersThatNobodyKnowsAreParkedWithOneLook(t *testing.T) {
	b := newBench(t)
	b.API.BlockGuestAttributes(true)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true, Labels: fleettest.Label("spot"), Group: group})
	b.Must(err)
	look := []string{
		"ListQueuedResources " + zone, "ListNodes " + zone, "GetGuestAttributes " + zone + "/" + slice,
	}
	for n := range 64 {
		b.Want(b.deliver(b.preempted(worker(n))), fleettest.Handled)
	}
	b.Want(b.Calls(), look)
	b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
	parked := b.Parked(zone, b.Clock.Now())
	b.Want(len(parked), 1)
	b.Want(b.Workloads(), []string{id}) // it was met on the way, and no incident was opened
	b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))

	b.Clock.Advance(ledger.LookEvery)
	b.Want(b.deliver(b.preempted(worker(0))), fleettest.Handled)
	b.Want(b.Calls(), look[:2]) // its host names may not be read, and nobody asks for them again
}

func TestAWorkerThatALookFindsIsActedOnAtOnce(t *testing.T) {
	b := newBench(t)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true, Labels: fleettest.Label("spot"), Group: group})
	b.Must(err)
	b.Want(b.deliver(fleettest.SystemEvent("compute.instances.hostError", worker(0), b.Clock.Now(), nil)), fleettest.Handled)
	b.Want(b.Shown(id).Incident.Cause, events.CauseHostError)
	b.Want(fleettest.Count(b.Calls(), "ListNodes"), 1)
}

func TestALookThatFailsLeavesTheEntryParked(t *testing.T) {
	b := newBench(t)
	b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Code: 14})
	b.Want(b.deliver(b.preempted(worker(0))), fleettest.Redelivered)
	b.Want(len(b.Parked(zone, b.Clock.Now())), 1)
}

func TestACrewsFirstLineTellsWhoseWorkersTheyAre(t *testing.T) {
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true})
	b.Clock.Advance(time.Minute)
	started := events.CrewReport{Report: events.ReportStarted, Attempt: 1, Hostname: group + "-w-0"}
	b.Want(b.deliver(b.crew(started)), fleettest.Handled)
	b.Want(b.Workload(id).Slices[0].Hosts, group)
	s, err := b.Ledger.Subject(t.Context(), fleettest.Project, zone, ledger.Worker, group)
	b.Must(err)
	b.Want(s, ledger.Subject{Workload: id, Slice: slice, Incarnation: w.Slices[0].Incarnation})

	// A crew of a life that is over says nothing about this one.
	started.Hostname = "t1v-n-ffffffff-w-0"
	b.Want(b.deliver(b.crew(started)), fleettest.Handled)
	b.Want(b.Workload(id).Slices[0].Hosts, group)
}

// TestALateLineNamesNoWorkersOfAnotherLife: the line of a former life comes when the present one has no names yet. The name of the
// node was mapped before the present life was known, or the slice has left the zone.
func TestALateLineNamesNoWorkersOfAnotherLife(t *testing.T) {
	for name, now := range map[string]string{"in the same zone": zone, "from a zone that the slice has left": "us-west4-b"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.Slice(cloudtputest.NodeConfig{Spot: true})
			late := b.crew(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Hostname: group + "-w-0"})
			former := ledger.Subject{Workload: id, Slice: slice, Incarnation: w.Slices[0].Incarnation}
			b.Must(b.Ledger.Map(t.Context(), fleettest.Project, zone, ledger.Worker, group, former))
			b.Must(b.Ledger.Map(t.Context(), fleettest.Project, zone, ledger.Node, slice, ledger.Subject{Workload: id, Slice: slice}))
			b.Clock.Advance(time.Hour)
			b.Change(id, func(w *incident.Workload) {
				s := &w.Slices[0]
				s.Zone, s.Incarnation = now, events.Incarnation{Zone: now, ID: "2", Created: b.Clock.Now()}
			})
			b.deliver(late)
			b.Want(b.Workload(id).Slices[0].Hosts, "")
		})
	}
}

func TestAnUnknownNodeIsLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		world   func(b *bench)
		outcome string
		known   []string
	}{
		"that lives": {func(b *bench) {
			_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Labels: fleettest.Label("spot"), Spot: true})
			b.Must(err)
		}, fleettest.Handled, []string{id}},
		"that is gone":           {func(*bench) {}, fleettest.Handled, nil},
		"that cannot be read":    {func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "GetNode", Code: 14}) }, fleettest.Redelivered, nil},
		"that cannot be written": {func(b *bench) { b.Break(ledger.Subjects) }, fleettest.Redelivered, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.world(b)
			b.Want(b.deliver(b.preempted(node)), c.outcome)
			b.Mend()
			b.Want(b.Workloads(), c.known)
			b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
		})
	}
}

// told is a line of JAX's on a worker.
func (b *bench) told(n int) []byte {
	return fmt.Appendf(nil, `{"insertId":"line-%d","logName":"projects/demo/logs/tpu.googleapis.com%%2Fruntime_monitor","timestamp":%q,
"resource":{"type":"tpu_worker","labels":{"project_id":"demo","zone":%q,"node_id":%q,"worker_id":"%d"}},"textPayload":"SIGTERM caught at 02:14"}`,
		n, b.Clock.Now().Format(time.RFC3339Nano), zone, slice, n)
}

func TestTrainingThatIsToldToEndIsAReasonToLook(t *testing.T) {
	b := training(t)
	b.Want(b.deliver(b.told(0)), fleettest.Handled)
	b.nothingSent()
	b.Want(b.Workload(id).Incident, (*incident.Incident)(nil)) // who writes it may be anybody

	b.Must(b.API.HostError(zone, slice, 3*time.Minute))
	b.Want(b.deliver(fleettest.SystemEvent("compute.instances.kmsKeyError", worker(1), b.Clock.Now(), nil)), fleettest.Handled)
	b.nothingSent(read)
	b.Want(b.Shown(id).Incident.Phase, view.Healing)
	b.Clock.Advance(5 * time.Minute)
	for n := range 4 {
		b.Want(b.deliver(b.told(n)), fleettest.Handled)
	}
	b.nothingSent(read) // one look for all workers
	w := b.Shown(id)
	b.Want(w.Incident.Phase, view.Resuming)
	b.Want(w.Incident.Cause, events.CauseUnknown)
}

func TestWhatIsNoneOfOurConcernIsNotActedOn(t *testing.T) {
	b := training(t)
	notice := `{"data":{"schema":1,"project":"demo","node":"llama","incarnation":{"zone":"us-west4-a","id":"1"},"notice":{"status":"ongoing"},"read":"2026-03-01T00:00:00Z"},
"attributes":{"ce-type":"pitstop.maintenance.notified.v1"}}`
	for name, c := range map[string]struct {
		entry []byte
		want  string
	}{
		"another project":                    {[]byte(strings.ReplaceAll(string(b.preempted(worker(0))), "projects/demo", "projects/other")), fleettest.Ignored},
		"another log":                        {[]byte(strings.ReplaceAll(string(b.preempted(worker(0))), "system_event", "data_access")), fleettest.Ignored},
		"another method":                     {fleettest.SystemEvent("compute.instances.insert", worker(0), b.Clock.Now(), nil), fleettest.Ignored},
		"no worker of a TPU":                 {b.preempted("zones/" + zone + "/instances/web-1"), fleettest.Ignored},
		"no entry":                           {[]byte(`{"foo":1}`), fleettest.Ignored},
		"a message that says it is patrol's": {[]byte(notice), fleettest.Ignored},
		"a machine of GKE":                   {b.preempted("zones/" + zone + "/instances/gke-tpu-2f41c6aa-bq7x"), fleettest.Ignored},
		"no JSON":                            {[]byte(`{"logName":`), fleettest.Rejected},
		"a time that is none":                {[]byte(strings.ReplaceAll(string(b.preempted(worker(0))), "2026-03-01T", "someday")), fleettest.Rejected},
		"a crew's line without a step":       {b.crew(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: -1}), fleettest.Rejected},
	} {
		if got := b.deliver(c.entry); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	b.Want(b.Deliver(b.handle, fleettest.Request(events.RecreateRequested{})), fleettest.Ignored)
	b.nothingSent()
	b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
}

func TestWhatCannotBeSentStaysInTheOutbox(t *testing.T) {
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Sender.Fail(errAway)
	b.Want(b.deliver(b.preempted(worker(0))), fleettest.Handled)
	w := b.Workload(id)
	b.Want(fleettest.Types(w.Outbox), []string{events.TypeRecreateRequested})
	due, err := b.Ledger.Due(t.Context(), b.Clock.Now())
	b.Must(err)
	if len(due) != 1 || due[0].ID != id {
		t.Errorf("due are %+v, want %s", due, id)
	}
}
