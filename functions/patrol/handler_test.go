package patrol_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

const (
	id    = fleettest.Project + "/llama"
	zone  = fleettest.Zone
	other = fleettest.OtherZone
	slice = "llama"
	group = "t1v-n-0a1b2c3d"
)

// bench is one instance of the function.
type bench struct {
	*fleettest.Bench
	handle trigger.Handle
	// waited are the waits of the ticks.
	waited []time.Duration
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t)}
	b.handle = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: b.Cloud, Audit: b.AuditLog, Publisher: b.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: []string{fleettest.Us}},
		Sleep: func(ctx context.Context, d time.Duration) error {
			b.waited = append(b.waited, d)
			return b.Sleep(ctx, d)
		},
	})
	return b
}

// training is the bench with a slice that trains.
func training(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Clock.Advance(time.Minute)
	return b
}

// tick delivers a tick that was published now.
func (b *bench) tick() string {
	b.T.Helper()
	return b.Deliver(b.handle, fleettest.Message([]byte("{}"), b.Clock.Now()))
}

// minutes lets ticks pass that find nothing wrong.
func (b *bench) minutes(n int) {
	b.T.Helper()
	for range n {
		b.Clock.Advance(time.Minute)
		b.Want(b.tick(), fleettest.Handled)
	}
}

// listed are the zones of which the nodes were listed since the last time.
func (b *bench) listed() []string {
	var zones []string
	for _, call := range b.Calls() {
		if z, ok := strings.CutPrefix(call, "ListNodes "); ok {
			zones = append(zones, z)
		}
	}
	return zones
}

func (b *bench) sent() []string { return fleettest.Types(b.Sender.Sent()) }

// carriesOut has the deletions that were asked for be accepted, each by an operation that goes as the fault says.
func (b *bench) carriesOut(requests []events.Envelope, f cloudtputest.Fault) {
	b.T.Helper()
	f.Method, f.Slow = "DeleteNode", f.Slow-cloudtputest.DefaultTiming.Delete
	for _, env := range requests {
		r, err := events.DecodeRecreateRequested(env.Data)
		b.Must(err)
		requestID := ledger.RequestID(r.Request, zone)
		w, err := b.Fleet.Advancer.Begin(b.T.Context(), r.Request, requestID)
		b.Must(err)
		b.API.Inject(f)
		op, err := b.Cloud.Delete(b.T.Context(), fleet.Ref(w, w.Slices[0]), requestID)
		b.Must(err)
		_, err = b.Fleet.Advancer.Answer(b.T.Context(), r.Request, op, "accepted", nil)
		b.Must(err)
	}
	b.Calls()
	b.waited = nil
}

// park leaves an entry about a worker with the ledger.
func (b *bench) park(z, workers string, of time.Time) {
	b.T.Helper()
	entry := fleettest.SystemEvent("compute.instances.hostError", "zones/"+z+"/instances/"+workers+"-w-1", of, nil)
	_, err := b.Ledger.Park(b.T.Context(), fleettest.Project, z, ledger.ParkedEntry{Key: "k", Raw: entry, At: b.Clock.Now()})
	b.Must(err)
}

func TestATickThatIsTooOldIsAcknowledgedUnread(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		want string
	}{
		"just in time":    {2 * time.Minute, fleettest.Handled},
		"too old":         {2*time.Minute + time.Second, fleettest.Ignored},
		"of a fast clock": {-time.Hour, fleettest.Handled},
	} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			b.Want(b.Deliver(b.handle, fleettest.Message([]byte("{}"), b.Clock.Now().Add(-c.age))), c.want)
			b.Want(len(b.Calls()) > 0, c.want == fleettest.Handled)
		})
	}
}

func TestATickWhileAnotherIsUnderWayIsAcknowledgedUnread(t *testing.T) {
	b := training(t)
	b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Before: func() { b.Want(b.tick(), fleettest.Ignored) }})
	b.Want(b.tick(), fleettest.Handled)
	b.Want(b.listed(), []string{zone, other})
	b.minutes(1)

	var ticks sync.WaitGroup
	tick := fleettest.Message([]byte("{}"), b.Clock.Now())
	for range 20 {
		ticks.Go(func() {
			if err := b.handle(t.Context(), tick); err != nil && !fault.IsIgnored(err) {
				t.Error(err)
			}
		})
	}
	ticks.Wait()
}

// TestEveryTickThatEndsIsSaid: an alert fires when this line is missing, so a tick that was only acknowledged must not write
// it.
func TestEveryTickThatEndsIsSaid(t *testing.T) {
	b := training(t)
	var l log
	b.Fleet.Log = slog.New(slog.NewTextHandler(&l, nil))
	said := func() string {
		b.T.Helper()
		_, line, _ := strings.Cut(l.String(), `msg="tick done" `)
		b.Want(strings.Count(l.String(), "tick done") <= 1, true)
		l.Reset()
		return strings.TrimSuffix(line, "\n")
	}
	b.Want(b.tick(), fleettest.Handled)
	b.Want(said(), "open=0 project=demo zones=2 workloads=0 faults=0 seconds=0")

	b.Want(b.Deliver(b.handle, fleettest.Message([]byte("{}"), b.Clock.Now().Add(-3*time.Minute))), fleettest.Ignored)
	b.Want(said(), "")

	b.Clock.Advance(15 * time.Minute)
	b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Code: 7, Message: "not here"})
	b.Want(b.tick(), fleettest.Rejected)
	b.Want(said(), "open=0 project=demo zones=1 workloads=0 faults=1 seconds=0")
}

// TestATickSaysHowManyIncidentsAreOpen, for the dashboard. A ledger that cannot be read says nothing: a zero would look like peace.
func TestATickSaysHowManyIncidentsAreOpen(t *testing.T) {
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Want(b.tick(), fleettest.Handled) // it opens the incident
	var l log
	b.Fleet.Log = slog.New(slog.NewTextHandler(&l, nil))
	b.Clock.Advance(time.Minute)
	b.Want(b.tick(), fleettest.Handled)
	b.Want(strings.Contains(l.String(), `msg="tick done" open=1 `), true)

	l.Reset()
	b.Clock.Advance(time.Minute)
	d := b.Delivery(id, b.handle, fleettest.Message([]byte("{}"), b.Clock.Now()))
	d.Tap.Before = func(context.Context, ledgertest.Call) error { return errors.New("the database is away") }
	b.Want(d.Deliver(), fleettest.Rejected)
	b.Want(strings.Contains(l.String(), `msg="tick done" project=`), true)
}

func TestZonesWithKnownSlicesAreListedEveryMinuteAndAllEveryFifteen(t *testing.T) {
	b := training(t)
	b.Want(b.tick(), fleettest.Handled)
	b.Want(b.listed(), []string{zone, other})
	for range 14 {
		b.minutes(1)
		b.Want(b.listed(), []string{zone})
	}
	b.minutes(1)
	b.Want(b.listed(), []string{zone, other})
}

func TestASliceThatNobodyKnowsIsIntroducedByASweep(t *testing.T) {
	b := newBench(t)
	b.Want(b.tick(), fleettest.Handled)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: other, Name: slice, Group: group})
	b.Must(err)
	b.minutes(14)
	b.Want(b.Workloads(), []string(nil))
	b.minutes(1)
	b.Want(b.Workloads(), []string{id})
	b.Want(b.Workload(id).Slices[0].Hosts, group)
	b.Calls()
	b.minutes(1)
	b.Want(b.listed(), []string{other})
	b.Want(b.sent(), []string(nil))
}

func TestWhatDoesNotChangeIsNotWritten(t *testing.T) {
	b := training(t)
	b.Want(b.tick(), fleettest.Handled)
	b.Fleet.Advancer.Saved = func(_ context.Context, s ledger.Step) { t.Errorf("%s was written", s.After.ID) }
	b.minutes(20)
}

// TestAReadingThatIsNotBelievedIsReadAgain: the ledger was written by a clock ahead of ours.
func TestAReadingThatIsNotBelievedIsReadAgain(t *testing.T) {
	b := training(t)
	b.Want(b.tick(), fleettest.Handled)
	b.Change(id, func(w *incident.Workload) { w.Slices[0].Since = b.Clock.Now().Add(90 * time.Second) })
	b.Must(b.API.HostError(zone, slice, time.Hour))
	b.minutes(1)
	b.Want(b.Workload(id).Slices[0].Condition, evidence.Ready)
	b.minutes(1)
	b.Want(b.Workload(id).Slices[0].Condition, evidence.Unhealthy)
}

// TestANodeWhoseNameIsWantedElsewhereKeepsItsWorkload: another workload may ask for a slice of that name in its zone.
func TestANodeWhoseNameIsWantedElsewhereKeepsItsWorkload(t *testing.T) {
	b := training(t)
	theirs := b.Slice(cloudtputest.NodeConfig{Zone: other, Spot: true}).ID
	b.elsewhere()
	b.minutes(1)
	b.Must(b.API.Vanish(other, slice))
	b.minutes(1)
	b.Want(b.Workload(theirs).Slices[0].Condition, evidence.Gone)
}

func TestAListingThatIsNotCompleteProvesNoAbsence(t *testing.T) {
	for _, method := range []string{"ListNodes", "ListQueuedResources"} {
		t.Run(method, func(t *testing.T) {
			b := training(t)
			b.Want(b.tick(), fleettest.Handled)
			b.Must(b.API.Vanish(zone, slice))
			withdraw := b.API.Inject(cloudtputest.Fault{Method: method, Unreachable: true, Times: -1})
			b.minutes(20)
			b.Want(b.Workload(id).Slices[0].Condition, evidence.Ready)
			withdraw()
			b.minutes(1)
			b.Want(b.Workload(id).Slices[0].Condition, evidence.Gone)
			b.Want(b.sent(), []string(nil))
		})
	}
}

func TestWhatTheOwnerDeletedIsForgotten(t *testing.T) {
	b := training(t)
	b.Want(b.tick(), fleettest.Handled)
	b.Must(b.API.OwnerDelete(zone, slice, fleettest.Owner))
	b.Give(b.Workload(id), evidence.Called{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
	})
	b.minutes(59)
	b.Want(b.sent(), []string(nil))
	b.Want(b.Workload(id).Slices[0].Condition, evidence.Gone)
	b.Calls()
	b.minutes(1)
	b.Want(b.listed(), []string{zone, other}) // a sweep
	b.minutes(1)
	b.Want(b.listed(), []string(nil))
}

func TestANoticeIsToldUntilItIsKnown(t *testing.T) {
	b := training(t)
	n := events.Notice{Status: events.NoticePending, WindowStart: fleettest.Start.Add(24 * time.Hour), WindowEnd: fleettest.Start.Add(28 * time.Hour)}
	b.Must(b.API.Announce(zone, slice, n))
	b.Sender.Fail(errors.New("Pub/Sub is away"))
	b.Want(b.tick(), fleettest.Rejected) // acknowledged: the next tick takes it up
	b.Sender.Fail(nil)
	b.Clock.Advance(time.Minute)
	b.Want(b.tick(), fleettest.Handled)
	got, env := fleettest.One(t, b.Bench, events.DecodeMaintenanceNotified)
	want := events.MaintenanceNotified{
		Schema: events.Schema, Project: fleettest.Project, Node: slice, Incarnation: b.API.Incarnation(zone, slice), Notice: n, Read: b.Clock.Now(),
	}
	b.Want(got, want)
	env.Data = nil
	b.Want(env, events.Envelope{
		ID: want.EventID(), Type: events.TypeMaintenanceNotified, Source: fleettest.Source, Time: b.Clock.Now(), Cause: fleettest.Cause,
		Subject: "projects/demo/locations/us-west4-a/nodes/llama",
	})
	b.minutes(10)
	b.Want(b.sent(), []string(nil))

	// A sweep tells it again while the ledger does not have it, or not from the API, and not once it has.
	noticed := evidence.Noticed{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankReading}, Slice: slice, Incarnation: want.Incarnation, Notice: n,
	}
	b.minutes(5)
	b.Want(b.sent(), []string{events.TypeMaintenanceNotified})
	b.Give(b.Workload(id), noticed)
	b.minutes(15)
	b.Want(b.sent(), []string{events.TypeMaintenanceNotified, events.TypeMaintenanceNotified}) // one as the crew is listened for
	noticed.InAPI = true
	b.Give(b.Workload(id), noticed)
	b.minutes(30)
	b.Want(b.sent(), []string(nil))
}

func TestAnOutboxThatWasLeftFullIsSent(t *testing.T) {
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Sender.Fail(errors.New("Pub/Sub is away"))
	b.Want(b.tick(), fleettest.Handled)
	left := b.Workload(id).Outbox
	b.Want(fleettest.Types(left), []string{events.TypeRecreateRequested})
	b.Sender.Fail(nil)
	b.minutes(1)
	b.Want(b.Sender.Sent(), left)
	b.Want(b.Workload(id).Outbox, []events.Envelope(nil))
	b.minutes(1)
	b.Want(b.sent(), []string(nil))
}

// deleting is the bench with a deletion of ours that goes so.
func deleting(t *testing.T, f cloudtputest.Fault) *bench {
	t.Helper()
	b := training(t)
	b.Must(b.API.Preempt(zone, slice))
	b.Want(b.tick(), fleettest.Handled)
	b.carriesOut(b.Sender.Sent(), f)
	return b
}

// TestOperationsOfOursAreFollowedForMostOfATick, and the time counts that the tick takes itself.
func TestOperationsOfOursAreFollowedForMostOfATick(t *testing.T) {
	for itself, c := range map[time.Duration]struct {
		took  time.Duration
		waits int
	}{0: {50 * time.Second, 10}, 37 * time.Second: {52 * time.Second, 3}} { // the last wait begins before 50 s
		b := deleting(t, cloudtputest.Fault{Slow: time.Hour})
		b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Before: func() { b.Clock.Advance(itself) }})
		start := b.Clock.Now()
		b.Want(b.tick(), fleettest.Handled)
		b.Want(b.Clock.Now().Sub(start), c.took)
		b.Want(b.waited, slices.Repeat([]time.Duration{5 * time.Second}, c.waits))
		b.Want(fleettest.Count(b.Calls(), "ListOperations"), c.waits)
		b.Want(b.sent(), []string(nil))
	}
}

func TestWhatFollowsFromTheEndOfAnOperationFollowsAtOnce(t *testing.T) {
	b := deleting(t, cloudtputest.Fault{Slow: 12 * time.Second})
	b.Want(b.tick(), fleettest.Handled)
	b.Want(len(b.waited), 3)
	got, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	b.Want(got.Action, events.ActionCreate)
	calls := b.Calls()
	if fleettest.Count(calls, "ListNodes") != 2 {
		t.Errorf("the end of an operation is no proof: it has to be looked: %q", calls)
	}
	if fleettest.Count(calls, "GetNode") != 0 {
		t.Error("a slice is read by itself, and its zone has pages of them")
	}
}

// elsewhere has the slice lost in its zone, which has no room for another one, and returns the request to create it in the other zone.
func (b *bench) elsewhere() events.RecreateRequested {
	b.T.Helper()
	var err error
	b.Policies.File, err = policy.Parse([]byte("policies: {night: {preset: spot, zones: [" + other + "]}}"))
	b.Must(err)
	b.Must(b.API.SetLabel(zone, slice, events.LabelPolicy, "night", fleettest.Owner))
	b.Want(b.tick(), fleettest.Handled)
	b.Must(b.API.Preempt(zone, slice))
	b.minutes(1)
	b.Must(b.API.Vanish(zone, slice))
	b.Sender.Sent()
	b.minutes(1)
	r, _ := fleettest.One(b.T, b.Bench, events.DecodeRecreateRequested)
	b.Want(r.Zone, zone)
	_, err = b.Fleet.Advancer.Begin(b.T.Context(), r.Request, "first")
	b.Must(err)
	_, err = b.Fleet.Advancer.Answer(b.T.Context(), r.Request, "", "", &evidence.Failure{Class: reason.Stockout, Message: "no room"})
	b.Must(err)
	r, _ = fleettest.One(b.T, b.Bench, events.DecodeRecreateRequested)
	b.Want(r.Action, events.ActionCreate)
	b.Want(r.Zone, other)
	return r
}

// creating is a lost slice that is created again in another zone, which no sweep has told of. The operation takes a while; one that
// takes no time is called done, and brings nothing.
func creating(t *testing.T, takes time.Duration) *bench {
	t.Helper()
	b := training(t)
	r := b.elsewhere()
	w := b.Workload(id)
	requestID := ledger.RequestID(r.Request, other)
	_, err := b.Fleet.Advancer.Begin(t.Context(), r.Request, requestID)
	b.Must(err)
	op := ""
	if takes > 0 {
		spec, err := b.Ledger.Spec(t.Context(), w.Slices[0].Spec)
		b.Must(err)
		values, err := b.Secrets.Of(t.Context(), w.Slices[0].Spec)
		b.Must(err)
		spec, err = cloudtpu.Whole(spec, values)
		b.Must(err)
		b.API.Inject(cloudtputest.Fault{Method: "CreateNode", Slow: takes - cloudtputest.DefaultTiming.Create})
		ref := fleet.Ref(w, w.Slices[0])
		ref.Zone = other
		op, err = b.Cloud.Create(t.Context(), ref, spec, map[string]string{events.LabelWorkload: slice, events.LabelIncident: w.Incident.ID}, requestID)
		b.Must(err)
	}
	_, err = b.Fleet.Advancer.Answer(t.Context(), r.Request, op, "accepted", nil)
	b.Must(err)
	b.listed()
	return b
}

// TestACreationElsewhereIsWatchedFromTheNextMinuteOn: its zone is listed with those where slices are known, between two sweeps too, and at
// once when it ends. One that is called done and that its zone does not show is asked for again.
func TestACreationElsewhereIsWatchedFromTheNextMinuteOn(t *testing.T) {
	for takes, minutes := range map[time.Duration]int{130 * time.Second: 3, 72 * time.Second: 1, 0: int(bounds.SickFor/time.Minute) + 1} {
		b := creating(t, takes)
		b.minutes(1)
		if zones := b.listed(); !slices.Contains(zones, other) {
			t.Errorf("listed are %q", zones)
		}
		if b.minutes(minutes - 1); takes == 0 {
			r, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
			b.Want(string(r.Action)+" in "+r.Zone, "create in "+other)
			continue
		}
		s := b.Workload(id).Slices[0]
		b.Want(s.Zone, other)
		b.Want(s.Incarnation, b.API.Incarnation(other, slice))
		b.Want(s.Condition, evidence.Ready)
	}
}

// TestTheEndOfManyDeletionsIsNotReadSliceBySlice has deletions end together: one page of their zone shows the rest.
func TestTheEndOfManyDeletionsIsNotReadSliceBySlice(t *testing.T) {
	b := newBench(t)
	const many = 5
	for i := range many {
		name := fmt.Sprintf("n%d", i)
		b.Slice(cloudtputest.NodeConfig{Name: name, Spot: true, Group: fmt.Sprintf("t1v-n-0000000%d", i)})
		b.Must(b.API.Preempt(zone, name))
	}
	b.Want(b.tick(), fleettest.Handled)
	requests := b.Sender.Sent()
	b.Want(len(requests), many)
	b.carriesOut(requests, cloudtputest.Fault{Slow: 12 * time.Second})
	b.Want(b.tick(), fleettest.Handled)
	calls := b.Calls()
	b.Want(fleettest.Count(calls, "GetNode"), 0)
	b.Want(fleettest.Count(calls, "ListNodes"), 2)
	b.Want(len(b.sent()), many)
}

func TestAnOperationThatFailedIsTriedAgain(t *testing.T) {
	b := deleting(t, cloudtputest.Fault{LateCode: 13, LateMessage: "internal", Slow: 8 * time.Second})
	b.Want(b.tick(), fleettest.Handled)
	task := b.Shown(id).Requests[0]
	b.Want(task.Failure, "internal")
	b.Want(task.Failures, 1)
	b.minutes(2)
	got, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	b.Want(got.Attempt, 2)
}

func TestWithoutOperationsOfOursNothingIsWaitedFor(t *testing.T) {
	b := training(t)
	b.Must(b.API.OwnerDelete(zone, slice, fleettest.Owner))
	b.Want(b.tick(), fleettest.Handled)
	b.Want(b.waited, []time.Duration(nil))
}

func TestAtMostSixtyGuestAttributesAreReadInATick(t *testing.T) {
	b := newBench(t)
	for i := range 130 {
		_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: fmt.Sprintf("n%03d", i)})
		b.Must(err)
	}
	for _, want := range []int{60, 60, 10, 0} {
		b.minutes(1)
		b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), want)
	}
}

func TestGuestAttributesThatAreNotToBeHadAreNotAskedForEveryMinute(t *testing.T) {
	b := newBench(t)
	b.API.BlockGuestAttributes(true)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice})
	b.Must(err)
	b.minutes(10)
	b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), 1)
}

func TestAParkedEntryIsTakenUpWhenItsSliceIsKnown(t *testing.T) {
	b := newBench(t)
	b.park(zone, group, b.Clock.Now())
	b.Want(b.tick(), fleettest.Handled)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Labels: fleettest.Label("spot"), Group: group, Created: fleettest.Start.Add(-time.Hour)})
	b.Must(err)
	b.minutes(15)
	b.Want(b.Shown(id).Incident.Cause, events.CauseHostError)
	b.Want(len(b.Parked(zone, b.Clock.Now())), 0)
}

// TestALineWithoutALookIsTakenUpWithItsSlice: it came in the shadow of another line's look, and the next tick finds the slice.
func TestALineWithoutALookIsTakenUpWithItsSlice(t *testing.T) {
	b := training(t)
	b.minutes(1)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: "gemma", Labels: fleettest.Label("spot")})
	b.Must(err)
	h := logevent.New(logevent.Deps{Fleet: b.Fleet, Projects: []string{fleettest.Project}, Accounts: events.Accounts{Ours: []string{fleettest.Us}}})
	for _, node := range []string{"invented", "gemma"} {
		r := events.CrewReport{Schema: events.Schema, Report: events.ReportStarted, Attempt: 2, Project: fleettest.Project, Zone: zone, Node: node}
		b.Want(b.Deliver(h, fleettest.Message(trainingtest.CrewEntry(r, b.Clock.Now(), 1), b.Clock.Now())), fleettest.Handled)
	}
	b.Want(b.Workloads(), []string{id})
	b.minutes(1)
	b.Want(b.Shown("demo/gemma").Training.Attempt, 2)
	b.Want(len(b.Parked(zone, b.Clock.Now())), 0)
}

// TestLinesUseHalfOfATicksReads: lines say of seventy trainings that they are over, or that maintenance is announced. The workers of a new
// slice are asked for their names all the same, and a hang is listened for.
func TestLinesUseHalfOfATicksReads(t *testing.T) {
	for name, report := range map[string]events.CrewReport{
		"finished": {Report: events.ReportFinished, Attempt: 1},
		"gave up":  {Report: events.ReportGaveUp, Attempt: 1},
		"maintenance": {Report: events.ReportNotice, Notice: &events.Notice{
			Status: events.NoticePending, WindowStart: fleettest.Start.Add(48 * time.Hour), WindowEnd: fleettest.Start.Add(50 * time.Hour),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i := range 70 {
				node := fmt.Sprintf("n%03d", i)
				w := b.Slice(cloudtputest.NodeConfig{Name: node})
				b.Report(w, node, fleettest.Progress(1000))
			}
			b.minutes(2) // the names of all workers are known
			b.Clock.Advance(time.Second)
			for i := range 70 {
				node := fmt.Sprintf("n%03d", i)
				b.Report(b.Workload("demo/"+node), node, report)
			}
			b.Slice(cloudtputest.NodeConfig{Name: "new", Group: group})
			b.Calls()
			b.minutes(1)
			b.Want(b.Workload("demo/new").Slices[0].ProvenHosts(), group)
			b.Want(fleettest.Count(b.Calls(), "GetGuestAttributes"), 31)
		})
	}
}

// TestAParkedEntryThatConcernsNobodyExpires, also in a zone without slices: nothing else would ever forget it.
func TestAParkedEntryThatConcernsNobodyExpires(t *testing.T) {
	for _, z := range []string{zone, other} {
		b := training(t)
		at := b.Clock.Now()
		b.park(z, "t1v-n-ffffffff", at)
		b.minutes(30)
		b.Want(len(b.Parked(z, at)), 1)
		b.minutes(1)
		b.Want(len(b.Parked(z, at)), 0)
		b.Want(strings.Count(b.Logged(), "parked entry matched no slice"), 1)
		b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
	}
}

// TestALogEntryMeetsTheDocumentAsItIsNow: the tick has read the document before, and another function has written it since. A log
// entry does not come again, so it must not count as known because of the old document.
func TestALogEntryMeetsTheDocumentAsItIsNow(t *testing.T) {
	b := training(t)
	b.Want(b.tick(), fleettest.Handled) // which maps the workers
	b.Must(b.API.HostError(zone, slice, 2*time.Hour))
	struck := b.Clock.Now()
	b.park(zone, group, struck)
	b.minutes(2)
	b.Want(b.Shown(id).Incident.Cause, events.CauseHostError)
	b.park(zone, group, struck)
	b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Before: func() {
		b.Change(id, func(w *incident.Workload) { w.Incident = nil })
	}})
	b.minutes(1)
	b.Want(len(b.Parked(zone, b.Clock.Now())), 0)
	if in := b.Shown(id).Incident; in == nil || in.Cause != events.CauseHostError {
		t.Errorf("the incident is %+v, want one from the entry", in)
	}
}

func TestOneThingThatFailsKeepsNothingElseFromBeingDone(t *testing.T) {
	for name, fail := range map[string]func(b *bench){
		"a zone that cannot be listed": func(b *bench) {
			b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Zone: other, Code: 14, Times: -1})
		},
		"zones that cannot be listed":   func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "ListLocations", Code: 14, Times: -1}) },
		"a document of a newer release": func(b *bench) { b.Newer("demo/a-first") },
	} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			b.Slice(cloudtputest.NodeConfig{Name: "a-first", Zone: other})
			b.Want(b.tick(), fleettest.Handled)
			b.Clock.Advance(15 * time.Minute) // so that it sweeps
			b.Must(b.API.Preempt(zone, slice))
			fail(b)
			b.Want(b.tick(), fleettest.Rejected)
			b.Want(b.sent(), []string{events.TypeRecreateRequested})
		})
	}
}

func TestASweepThatMeetsOneBadDocumentStillKnowsTheOthers(t *testing.T) {
	b := training(t)
	b.Slice(cloudtputest.NodeConfig{Name: "a-first", Zone: other})
	b.Newer("demo/a-first")
	b.Must(b.API.Vanish(zone, slice))
	b.Want(b.tick(), fleettest.Rejected)
	b.Want(b.Workload(id).Slices[0].Condition, evidence.Gone)
	b.Clock.Advance(time.Minute)
	b.Calls()
	b.tick()
	b.Want(fleettest.Count(b.Calls(), "ListLocations"), 0)
}

func TestWhatIsNoTickIsIgnored(t *testing.T) {
	b := training(t)
	b.Want(b.Deliver(b.handle, fleettest.Request(events.RecreateRequested{})), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil))
}

// TestACrewIsListenedForWhenItIsInDoubt: once maintenance is announced, and while its training does no steps.
func TestACrewIsListenedForWhenItIsInDoubt(t *testing.T) {
	running := func(now, last time.Time) *events.CrewState {
		return &events.CrewState{Schema: events.Schema, Seen: now, Phase: "running", Attempt: 7, Step: 1000, StepAt: last, RequestReadAt: now}
	}
	for name, c := range map[string]struct {
		announced bool
		writes    func(now, last time.Time) *events.CrewState
		deny      bool
		// deaf is what is said of the way to the crew, and opens that the training is said to hang.
		deaf  string
		opens bool
	}{
		"the crew writes": {true, running, false, "", false},
		"it cannot read the bucket": {true, func(now, last time.Time) *events.CrewState {
			s := running(now, last)
			s.RequestReadAt = now.Add(-2 * time.Hour)
			return s
		}, false, "the crew cannot read what is left beside the checkpoints, for 2 h 0 m by now: the node's metadata alone may reach it", false},
		"it wrote hours ago": {true, func(now, _ time.Time) *events.CrewState {
			return &events.CrewState{Schema: events.Schema, Seen: now.Add(-3 * time.Hour), Phase: "running"}
		}, false, "the crew was heard 42 m 0 s ago for the last time", false},
		"it writes nothing":             {true, func(_, _ time.Time) *events.CrewState { return nil }, false, "", false}, // which proves nothing
		"what it writes cannot be read": {true, running, true, "", false},
		"it does no steps":              {false, running, false, "", true},
		"it does steps without lines": {false, func(now, _ time.Time) *events.CrewState {
			return &events.CrewState{Schema: events.Schema, Seen: now, Phase: "running", Attempt: 7, Step: 1100, StepAt: now}
		}, false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			b.Report(b.Workload(id), slice, fleettest.Progress(1000))
			last := b.Clock.Now()
			b.Want(b.tick(), fleettest.Handled)
			b.minutes(40) // not long enough for its training to be taken to hang meanwhile
			b.API.OnGuests(func(_, _ string, worker int) (string, bool) {
				state := c.writes(b.Clock.Now(), last)
				if state == nil || worker != 0 {
					return "", false
				}
				raw, err := json.Marshal(state)
				b.Must(err)
				return string(raw), true
			})
			b.API.BlockGuestAttributes(c.deny)
			within := 120
			if c.announced {
				within = 1
				n := events.Notice{Status: events.NoticePending, WindowStart: fleettest.Start.Add(24 * time.Hour), WindowEnd: fleettest.Start.Add(28 * time.Hour)}
				b.Must(b.API.Announce(zone, slice, n))
				b.Give(b.Workload(id), evidence.Noticed{
					Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankReading}, Slice: slice, Incarnation: b.API.Incarnation(zone, slice), Notice: n, InAPI: true,
				})
			}
			b.Calls()
			b.minutes(within)
			n := fleettest.Count(b.Calls(), "GetGuestAttributes")
			if w := b.Workload(id); n == 0 || n > 1 && c.announced || n > 20 || w.Deaf(slice) != c.deaf || w.Incident != nil != c.opens {
				t.Errorf("listened for %d times: %+v, deaf: %q, incident %v", n, w.Slices[0].Notice, w.Deaf(slice), w.Incident)
			}
			b.Want(b.sent(), []string(nil))
		})
	}
}

// TestAMoveBetweenTwoTicksIsAdmittedInTheEnd: its owner deletes a slice in one zone and creates it in another within a minute, and the entry
// of the deletion is late. The zone in which it lives now is listed before the other.
func TestAMoveBetweenTwoTicksIsAdmittedInTheEnd(t *testing.T) {
	b := newBench(t)
	labels := map[string]string{events.LabelPolicy: "spot", events.LabelWorkload: "llama"}
	w := b.Slice(cloudtputest.NodeConfig{Zone: other, Spot: true, Group: group, Labels: labels})
	b.Slice(cloudtputest.NodeConfig{Zone: zone, Name: "another", Spot: true}) // so that zone a is listed each minute
	b.Report(w, slice, fleettest.Progress(1000))
	b.minutes(2)
	w = b.Report(b.Workload(id), slice, events.CrewReport{Schema: events.Schema, Report: events.ReportGaveUp, Attempt: 1, Reason: "exit code 1"})
	b.Sender.Sent()
	b.Confirm(w, slice, 1, false)
	b.GoesOn(recovery.New(recovery.Deps{Fleet: b.Fleet, Provider: b.Cloud, Store: b.Store}), id, slice) // a lease of ours leads it
	b.minutes(2)
	b.Sender.Sent()
	deleted := b.Clock.Now()
	b.Must(b.API.Vanish(other, slice))
	b.Clock.Advance(20 * time.Second)
	meta := map[string]string{events.MetadataCheckpointDir: fleettest.Directory, "startup-script": "train"}
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true, Labels: labels, Metadata: meta, Created: b.Clock.Now(), Group: "t1v-n-11111111"})
	b.Must(err)
	b.minutes(20)
	b.Give(b.Workload(id), evidence.Called{
		Origin: evidence.Origin{ID: "e", Time: deleted, Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com",
	})
	b.minutes(100)
	w = b.Workload(id)
	if s := w.Slices[0]; !slices.Contains(b.sent(), events.TypeRecoveryRequested) || s.Zone != zone {
		t.Errorf("two hours later it is %s in %s; open is %v", s.State, s.Zone, w.Incident)
	}
}

// TestPatrolKeepsTheValuesOfMetadata: it stores what an owner has changed at the next tick, and keeps what waits.
func TestPatrolKeepsTheValuesOfMetadata(t *testing.T) {
	b := training(t)
	b.tick()
	name := b.Workload(id).Slices[0].Spec
	token := func(name string) string {
		t.Helper()
		values, err := b.Secrets.Of(t.Context(), name)
		b.Must(err)
		return values["startup-script"]
	}
	b.Want(token(name), "export TOKEN=secret")

	b.Must(b.API.SetMetadata(zone, slice, "startup-script", "export TOKEN=new", fleettest.Owner))
	b.minutes(1)
	b.Want(b.Workload(id).Slices[0].Spec, name)
	b.Want(token(name), "export TOKEN=new")

	b.Clock.Advance(24 * time.Hour)
	b.minutes(1)
	b.Want(b.Document(ledger.Values, name).Expires, b.Clock.Now().Add(ledger.KeepValues))
}
