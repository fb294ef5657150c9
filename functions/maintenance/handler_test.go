package maintenance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/maintenance"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	id    = fleettest.Project + "/llama"
	zone  = fleettest.Zone
	slice = "llama"
	group = "t1v-n-0a1b2c3d"
)

// tomorrow is when the announced maintenance begins.
var tomorrow = fleettest.Start.Add(24 * time.Hour)

// bench is a reserved slice that trains, and the function.
type bench struct {
	*fleettest.Bench
	handle trigger.Handle
	writes int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t)}
	b.handle = maintenance.New(maintenance.Deps{Fleet: b.Fleet, Projects: []string{fleettest.Project}})
	return b
}

// training is the bench with a slice whose workers are known.
func training(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Labels: fleettest.Label("reserved"), Group: group})
	w = b.Report(w, slice, fleettest.Progress(1000))
	_, err := b.Fleet.MapGroup(t.Context(), w, w.Slices[0], group)
	b.Must(err)
	b.Clock.Advance(time.Minute)
	b.Fleet.Advancer.Saved = func(context.Context, ledger.Step) { b.writes++ }
	return b
}

func (b *bench) deliver(entry []byte) string {
	b.T.Helper()
	return b.Deliver(b.handle, fleettest.Message(entry, b.Clock.Now()))
}

// nothingSent checks that no message was sent, and which calls were made.
func (b *bench) nothingSent(calls ...string) {
	b.T.Helper()
	b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
	b.Want(b.Calls(), calls)
}

// entry is what Compute Engine logs about a worker: maintenance that is PENDING or ONGOING.
func (b *bench) entry(worker int, status string, start time.Time) []byte {
	resource := fmt.Sprintf("zones/%s/instances/%s-w-%d", zone, group, worker)
	return fleettest.SystemEvent("compute.instances.upcomingMaintenance", resource, b.Clock.Now(), map[string]any{
		"type": "SCHEDULED", "maintenanceStatus": status, "canReschedule": true,
		"windowStartTime": start.Format(time.RFC3339), "windowEndTime": start.Add(4 * time.Hour).Format(time.RFC3339),
	})
}

// notified is patrol's word that a reading of the API shows a notice.
func (b *bench) notified(status events.NoticeStatus) events.MaintenanceNotified {
	return events.MaintenanceNotified{
		Schema: events.Schema, Project: fleettest.Project, Node: slice, Incarnation: b.API.Incarnation(zone, slice), Read: b.Clock.Now(),
		Notice: events.Notice{Status: status, CanReschedule: true, WindowStart: tomorrow, WindowEnd: tomorrow.Add(4 * time.Hour)},
	}
}

func (b *bench) notice() incident.Notice {
	b.T.Helper()
	n := b.Workload(id).Slices[0].Notice
	if n.Status == "" {
		b.T.Fatal("no notice is kept")
	}
	return n
}

func TestANoticeOfAllWorkersIsKeptOnceUntilItsSaveIsDue(t *testing.T) {
	b := training(t)
	b.Policies.Ceiling.EarlyMaintenance = policy.No
	for worker := range 4 {
		b.Want(b.deliver(b.entry(worker, "PENDING", tomorrow)), fleettest.Handled)
	}
	b.Want(b.writes, 1)
	b.nothingSent()
	b.Want(b.notice(), incident.Notice{
		LastWord: b.Clock.Now(), Due: tomorrow.Add(-policy.DefaultLead),
		Notice: events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: tomorrow, WindowEnd: tomorrow.Add(4 * time.Hour)},
	})
	b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
}

func TestTheSaveIsDueAtTheNoticeWhereMaintenanceMayBeStartedEarly(t *testing.T) {
	b := training(t)
	b.Want(b.deliver(b.entry(0, "PENDING", tomorrow)), fleettest.Handled)
	b.Want(b.notice().Due, b.Clock.Now())
	b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
}

func TestANoticeThatMovesMovesTheSave(t *testing.T) {
	b := training(t)
	b.Policies.Ceiling.EarlyMaintenance = policy.No
	b.Want(b.deliver(b.entry(0, "PENDING", tomorrow)), fleettest.Handled)
	b.Clock.Advance(time.Hour)
	later := tomorrow.Add(12 * time.Hour)
	b.Want(b.deliver(b.entry(0, "PENDING", later)), fleettest.Handled)
	b.Want(b.notice().Due, later.Add(-policy.DefaultLead))
}

func TestMaintenanceThatIsUnderWayAsksForASaveAtOnce(t *testing.T) {
	b := training(t)
	for worker := range 4 {
		b.Want(b.deliver(b.entry(worker, "ONGOING", b.Clock.Now())), fleettest.Handled)
	}
	want := events.CheckpointRequested{
		Request: events.Request{
			Schema: events.Schema, Workload: id, Incident: "llama-20260301-1", Epoch: 2, Action: events.ActionSave, Attempt: 1,
			Expires: b.Clock.Now().Add(bounds.RequestFor),
		},
		SaveID: b.Shown(id).Incident.Save.ID, Mode: events.SaveNatural, By: b.Clock.Now().Add(bounds.SaveFor), Directory: fleettest.Directory,
	}
	got, env := fleettest.One(t, b.Bench, events.DecodeCheckpointRequested)
	got.Reason = ""
	b.Want(got, want)
	env.Data = nil
	b.Want(env, events.Envelope{
		ID: want.EventID(), Type: events.TypeCheckpointRequested, Source: fleettest.Source, Subject: id, Time: b.Clock.Now(),
		Cause: fleettest.Cause, Correlation: want.Incident,
	})
	b.nothingSent()
}

func TestWhatMayNotBeAskedForIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		policies fleettest.Policies
		phase    view.Phase
		held     string
	}{
		"under watch":                    {fleettest.Policies{}, view.Watching, ""},
		"without the switch":             {fleettest.Policies{Ceiling: policy.Switches{Restart: policy.Yes}}, view.Window, ""},
		"where a person is asked":        {fleettest.Policies{Ceiling: policy.Switches{RequestCheckpoint: policy.Ask}}, view.Approving, ""},
		"with a policy that is not read": {fleettest.Policies{Unreadable: "away"}, view.Saving, "the policy cannot be read: away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			*b.Policies = c.policies
			b.Want(b.deliver(b.entry(0, "ONGOING", b.Clock.Now())), fleettest.Handled)
			b.nothingSent()
			b.Want(b.Shown(id).Incident.Phase, c.phase)
			b.Want(b.Shown(id).Wait.Held, c.held)
		})
	}
}

func TestANoticeThatIsTakenBackOpensNothing(t *testing.T) {
	b := training(t)
	b.Want(b.deliver(b.entry(0, "PENDING", tomorrow)), fleettest.Handled)
	b.Clock.Advance(time.Hour)
	over := strings.Replace(string(b.entry(0, "", tomorrow)), `"methodName"`, `"status":{"message":"Maintenance window has completed for this instance."},"methodName"`, 1)
	b.Want(b.deliver([]byte(over)), fleettest.Handled)
	b.Want(b.notice().Status, events.NoticeGone)
	b.Want(b.notice().Due, time.Time{})
	b.Clock.Advance(48 * time.Hour)
	b.Give(b.Workload(id), evidence.Ticked{})
	b.nothingSent()
	b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
}

func TestAReadingOfTheAPIConfirmsANotice(t *testing.T) {
	b := training(t)
	b.Want(b.deliver(b.entry(0, "PENDING", tomorrow)), fleettest.Handled)
	for range 2 {
		b.Want(b.Deliver(b.handle, fleettest.Request(b.notified(events.NoticePending))), fleettest.Handled)
	}
	b.Want(b.notice().InAPI, true)
	b.Want(b.writes, 2) // the entry, and the first reading of two
	b.nothingSent()
}

func TestAReadingOfAnotherLifeOrOfNobodyIsNotKept(t *testing.T) {
	b := training(t)
	other := b.notified(events.NoticeOngoing)
	other.Incarnation.ID = "0"
	b.Want(b.Deliver(b.handle, fleettest.Request(other)), fleettest.Handled)
	nobody := b.notified(events.NoticeOngoing)
	nobody.Node = "nobody"
	b.Want(b.Deliver(b.handle, fleettest.Request(nobody)), fleettest.Ignored)
	b.Want(b.writes, 0)
	b.nothingSent()
}

func TestAWorkerThatNobodyKnowsIsParkedWithOneLook(t *testing.T) {
	b := newBench(t)
	for worker := range 8 {
		b.Want(b.deliver(b.entry(worker, "ONGOING", b.Clock.Now())), fleettest.Handled)
	}
	b.nothingSent("ListQueuedResources "+zone, "ListNodes "+zone)
	parked := b.Parked(zone, b.Clock.Now())
	b.Want(len(parked), 1)
	b.Want(b.Workloads(), []string(nil))
}

func TestWhatIsNoneOfOurConcernIsNotActedOn(t *testing.T) {
	b := training(t)
	notice := string(b.entry(0, "ONGOING", b.Clock.Now()))
	for name, c := range map[string]struct {
		entry string
		want  string
	}{
		"another project":     {strings.ReplaceAll(notice, "projects/demo", "projects/other"), fleettest.Ignored},
		"another method":      {strings.ReplaceAll(notice, "upcomingMaintenance", "preempted"), fleettest.Ignored},
		"another status":      {strings.ReplaceAll(notice, "ONGOING", "DREAMING"), fleettest.Ignored},
		"no worker of a TPU":  {strings.ReplaceAll(notice, group+"-w-0", "web-1"), fleettest.Ignored},
		"a time that is none": {strings.ReplaceAll(notice, "windowStartTime\":\"2026", "windowStartTime\":\"soon"), fleettest.Rejected},
		"no JSON":             {notice[:40], fleettest.Rejected},
	} {
		if got := b.deliver([]byte(c.entry)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	forged := `{"data":{"schema":1,"project":"demo","node":"llama","incarnation":{"zone":"us-west4-a","id":"1"},"notice":{"status":"ongoing"},"read":"2026-03-01T00:00:00Z"},
"attributes":{"ce-type":"pitstop.maintenance.notified.v1"}}`
	b.Want(b.deliver([]byte(forged)), fleettest.Ignored)
	faulty, newer := b.notified("soon"), b.notified(events.NoticeOngoing)
	newer.Schema++
	b.Want(b.Deliver(b.handle, fleettest.Request(faulty)), fleettest.Rejected)
	b.Want(b.Deliver(b.handle, fleettest.Request(newer)), fleettest.Later)
	b.Want(b.Deliver(b.handle, fleettest.Request(events.RecoveryRequested{})), fleettest.Ignored)
	b.Want(b.writes, 0)
	b.nothingSent()
}
