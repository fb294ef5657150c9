package patrol_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// vanished is the bench with a slice whose workers are known and of which nothing is there any more, found out by the tick
// to come. The log tells what a test writes into it.
func vanished(t *testing.T, c cloudtputest.NodeConfig) *bench {
	t.Helper()
	b := newBench(t)
	c.Group = group
	w := b.Slice(c)
	b.Report(w, slice, fleettest.Progress(1000))
	b.Want(b.tick(), fleettest.Handled)
	b.Clock.Advance(10 * time.Minute)
	return b
}

// writes puts the entries of what happened into the log, and into nothing else.
func (b *bench) writes(happened ...cloudtputest.Event) {
	for i, e := range happened {
		e.Project, e.Zone, e.Time, e.Seq = fleettest.Project, zone, b.Clock.Now().Add(e.Time.Sub(fleettest.Start)), uint64(100+i)
		if raw := cloudtputest.AuditEntry(e); raw != nil {
			b.Log.Write(raw)
		}
		for _, raw := range cloudtputest.SystemEntries(e) {
			b.Log.Write(raw)
		}
	}
}

// What may have ended a slice, each a while before the start, which is moved to when it is written.
func deletedBy(who string, ago time.Duration) cloudtputest.Event {
	return cloudtputest.Event{Kind: cloudtputest.Started, Method: "DeleteNode", Node: slice, Operation: "o", Principal: who, Time: fleettest.Start.Add(-ago)}
}

func preempted(ago time.Duration) cloudtputest.Event {
	return cloudtputest.Event{Kind: cloudtputest.Lost, Cause: events.CausePreemption, Node: slice, Group: group, Workers: 4, Time: fleettest.Start.Add(-ago)}
}

func TestWhoEndedASliceThatIsGoneIsLookedUpBeforeAnythingElse(t *testing.T) {
	const agent = "service-1@cloud-tpu.iam.gserviceaccount.com"
	queued := deletedBy(fleettest.Owner, time.Minute)
	queued.Method, queued.Node, queued.QueuedResource = "DeleteQueuedResource", "", "llama-qr"
	refused := deletedBy(fleettest.Owner, time.Minute)
	refused.Kind, refused.Code, refused.Error = cloudtputest.Called, 7, "no"
	another := deletedBy(fleettest.Owner, time.Minute)
	another.Node = "llama-2"
	for name, c := range map[string]struct {
		happened []cloudtputest.Event
		config   cloudtputest.NodeConfig
		sent     []string
		released bool
		cause    events.Cause
	}{
		"its owner":                        {happened: []cloudtputest.Event{deletedBy(fleettest.Owner, 2*time.Minute)}, released: true},
		"its owner, with the whole queue":  {happened: []cloudtputest.Event{queued}, config: cloudtputest.NodeConfig{Name: slice}, released: true},
		"Google":                           {happened: []cloudtputest.Event{preempted(2 * time.Minute)}, sent: []string{events.TypeRecreateRequested}, cause: events.CausePreemption},
		"Google, and then its owner":       {happened: []cloudtputest.Event{preempted(3 * time.Minute), deletedBy(fleettest.Owner, time.Minute)}, released: true},
		"its owner, under watch":           {happened: []cloudtputest.Event{deletedBy(fleettest.Owner, time.Minute)}, config: cloudtputest.NodeConfig{Labels: map[string]string{"a": "b"}}, released: true},
		"Google, under watch":              {happened: []cloudtputest.Event{preempted(time.Minute)}, config: cloudtputest.NodeConfig{Labels: map[string]string{"a": "b"}}, cause: events.CausePreemption},
		"nobody":                           {},
		"Pitstop itself":                   {happened: []cloudtputest.Event{deletedBy(fleettest.Us, time.Minute)}},
		"an agent of Google":               {happened: []cloudtputest.Event{deletedBy(agent, time.Minute)}},
		"somebody who was refused":         {happened: []cloudtputest.Event{refused}},
		"somebody, in a former life":       {happened: []cloudtputest.Event{deletedBy(fleettest.Owner, 90*time.Minute)}, config: cloudtputest.NodeConfig{Created: fleettest.Start.Add(-time.Hour)}},
		"its owner, as nobody looked":      {happened: []cloudtputest.Event{deletedBy(fleettest.Owner, 2*time.Hour)}, released: true},
		"somebody, too long ago":           {happened: []cloudtputest.Event{deletedBy(fleettest.Owner, 7*time.Hour)}},
		"somebody, of a slice named alike": {happened: []cloudtputest.Event{another}},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Spot = true
			var b *bench
			if c.config.Name == "" {
				b = vanished(t, c.config)
				b.Must(b.API.Vanish(zone, slice))
			} else {
				b = newBench(t)
				c.config.Labels = fleettest.Label("spot")
				c.config.Created = b.Clock.Now().Add(-time.Hour)
				b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "llama-qr", Spot: true, Nodes: []cloudtputest.NodeConfig{c.config}}))
				b.Want(b.tick(), fleettest.Handled)
				b.Must(b.API.OwnerDeleteQueuedResource(zone, "llama-qr", fleettest.Owner))
				b.Clock.Advance(10 * time.Minute)
			}
			b.writes(c.happened...)
			b.Clock.Advance(time.Second)
			b.Want(b.tick(), fleettest.Handled)
			b.Want(len(b.Log.Filters()), 1)
			b.Want(b.sent(), c.sent)
			w := b.Shown(b.Workloads()[0])
			b.Want(w.Slices[0].Condition, evidence.Gone)
			b.Want(w.Slices[0].Released, c.released)
			cause := events.Cause("")
			if w.Incident != nil {
				cause = w.Incident.Cause
			}
			b.Want(cause, c.cause)
			b.Want(w.Closed == nil, true)
		})
	}
}

func TestTheLogIsAskedOnceAMinuteForAsLongAsNobodyHasSaidAWord(t *testing.T) {
	b := vanished(t, cloudtputest.NodeConfig{Spot: true})
	b.minutes(3)
	b.Want(len(b.Log.Filters()), 0) // it is there
	b.Must(b.API.Vanish(zone, slice))
	b.minutes(20)
	b.Want(len(b.Log.Filters()), 20)
	b.Clock.Advance(time.Second) // another instance, in the same minute
	again := patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: b.Cloud, Audit: b.AuditLog, Publisher: b.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: []string{fleettest.Us}}, Sleep: b.Sleep,
	})
	b.Want(b.Deliver(again, fleettest.Message([]byte("{}"), b.Clock.Now())), fleettest.Handled)
	b.Want(len(b.Log.Filters()), 0)

	b.writes(deletedBy(fleettest.Owner, 25*time.Minute)) // it came late into the log
	b.minutes(1)
	b.Want(len(b.Log.Filters()), 1)
	b.Want(b.Workload(id).Slices[0].IsReleased(), true)
	b.minutes(30)
	b.Want(len(b.Log.Filters()), 0)
	b.Want(b.sent(), []string(nil))
}

// TestOfWhatWasLeftToAPersonTheLogIsAskedToo, for a while: the next incident of the workload may be about it.
func TestOfWhatWasLeftToAPersonTheLogIsAskedToo(t *testing.T) {
	b := vanished(t, cloudtputest.NodeConfig{})
	b.Must(b.API.HostError(zone, slice, -1))
	b.minutes(5 * 60)
	b.Want(b.Shown(id).Closed.Outcome, view.Escalated)
	b.Want(len(b.Log.Filters()), 0)
	b.Must(b.API.Vanish(zone, slice))
	b.minutes(24 * 60)
	b.Want(len(b.Log.Filters()), 70)
	b.Want(b.Workload(id).Slices[0].IsReleased(), false)

	b = vanished(t, cloudtputest.NodeConfig{})
	b.Must(b.API.HostError(zone, slice, -1))
	b.minutes(5 * 60)
	b.Must(b.API.Vanish(zone, slice))
	b.minutes(40)
	b.writes(deletedBy(fleettest.Owner, 41*time.Minute))
	b.minutes(24 * 60)
	b.Want(len(b.Log.Filters()), 41)
	b.Want(b.Workload(id).Slices[0].IsReleased(), true)
	for _, sent := range b.sent() {
		b.Want(sent, events.TypeCheckpointRequested) // to read what the crew left, and no more
	}
}

func TestALogThatCannotBeReadIsNoWord(t *testing.T) {
	b := vanished(t, cloudtputest.NodeConfig{Spot: true})
	b.Must(b.API.Vanish(zone, slice))
	b.Log.Fail(cloudlogtest.Fault{Code: 403, Status: "PERMISSION_DENIED", Message: "no", Times: 60})
	for range 60 { // longer than the grace
		b.Clock.Advance(time.Minute)
		b.Want(b.tick(), fleettest.Rejected)
		b.Want(b.sent(), []string(nil))
	}
	b.Clock.Advance(time.Minute)
	b.Want(b.tick(), fleettest.Handled) // the log names nobody
	b.Want(b.sent(), []string{events.TypeRecreateRequested})
	b.minutes(1) // nothing is asked any more
	b.Want(b.Shown(id).Incident.Cause, events.CauseUnknown)
}

// TestAPersonIsToldThatNobodyCanReadTheLog: nothing is created as long as the owner may have deleted the slice.
func TestAPersonIsToldThatNobodyCanReadTheLog(t *testing.T) {
	b := vanished(t, cloudtputest.NodeConfig{Spot: true})
	b.Must(b.API.Vanish(zone, slice))
	b.Log.Fail(cloudlogtest.Fault{Code: 403, Status: "PERMISSION_DENIED", Message: "no", Times: 1000})
	for b.Workload(id).Closed == nil {
		b.Clock.Advance(time.Minute)
		b.Want(b.tick(), fleettest.Rejected)
	}
	b.Want(b.sent(), []string(nil))
	b.Want(b.Shown(id).Closed.Code, reason.CodeAuditUnread)
	b.Want(b.Shown(id).Closed.Outcome, view.Escalated)
}

func TestOfWhatIsExplainedNobodyIsAsked(t *testing.T) {
	b := training(t)
	b.Want(b.tick(), fleettest.Handled)
	b.Must(b.API.Preempt(zone, slice)) // the API itself says what happened
	b.minutes(2)
	b.Must(b.API.Vanish(zone, slice)) // and then it is deleted, as we asked for
	b.minutes(60)
	b.Want(len(b.Log.Filters()), 0)
}

func TestManySlicesOfAZoneAreAskedForInOneCallOrInTurns(t *testing.T) {
	b := newBench(t)
	for i := range 50 {
		b.Slice(cloudtputest.NodeConfig{Name: "n" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Spot: true})
	}
	b.Want(b.tick(), fleettest.Handled)
	for i := range 50 {
		b.Must(b.API.Vanish(zone, "n"+string(rune('a'+i/26))+string(rune('a'+i%26))))
	}
	asked := map[string]int{}
	for range 3 {
		b.minutes(1)
		filters := b.Log.Filters()
		b.Want(len(filters), 1)
		for i := range 50 {
			if name := "n" + string(rune('a'+i/26)) + string(rune('a'+i%26)); strings.Contains(filters[0], "/nodes/"+name+`"`) {
				asked[name]++
			}
		}
	}
	b.Want(len(asked), 50)
	for name, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times in three minutes", name, n)
		}
	}
}

// TestAParkedLossIsAttachedWhenTheAPIShowsIt: nobody may read whose workers they are.
func TestAParkedLossIsAttachedWhenTheAPIShowsIt(t *testing.T) {
	terminate := func(names ...string) func(b *bench) {
		return func(b *bench) {
			for _, n := range names {
				b.Must(b.API.Terminate(zone, n))
			}
		}
	}
	for name, c := range map[string]struct {
		happens func(b *bench)
		// first says that the entry is there before it happens; else it comes 25 minutes late.
		first    bool
		attached bool
		cause    events.Cause
	}{
		"the only one that is lost, before": {terminate(slice), true, true, events.CauseHostError},
		"the only one that is lost, late":   {terminate(slice), false, true, events.CauseHostError},
		"the only one that is broken":       {func(b *bench) { b.Must(b.API.HostError(zone, slice, time.Hour)) }, true, true, events.CauseHostError},
		"one of two":                        {terminate(slice, "other"), true, false, events.CauseTerminated},
		"one that is gone proves nothing":   {func(b *bench) { b.Must(b.API.Vanish(zone, slice)) }, true, false, ""},
		"one whose workers are others":      {terminate("known"), true, false, ""},
		"none":                              {func(*bench) {}, true, false, ""},
		"the only one that is lost, by us":  {func(b *bench) { terminate(slice)(b); b.minutes(1); b.Must(b.API.SetState(zone, slice, "DELETING")) }, true, true, events.CauseHostError},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Slice(cloudtputest.NodeConfig{Name: "known", Spot: true})
			w := b.Workload("demo/known")
			_, err := b.Fleet.MapGroup(t.Context(), w, w.Slices[0], "t1v-n-ffffffff")
			b.Must(err)
			b.API.BlockGuestAttributes(true)
			b.Slice(cloudtputest.NodeConfig{Group: group})
			b.Slice(cloudtputest.NodeConfig{Name: "other"})
			b.minutes(1)
			at := b.Clock.Now()
			park := func() {
				entry := fleettest.SystemEvent("compute.instances.hostError", "zones/"+zone+"/instances/"+group+"-w-1", at, nil)
				_, err := b.Ledger.Park(t.Context(), fleettest.Project, zone, ledger.ParkedEntry{Key: "k", Raw: entry, At: b.Clock.Now()})
				b.Must(err)
			}
			if c.first {
				park()
			}
			c.happens(b)
			if !c.first {
				b.minutes(25)
				park()
			}
			b.minutes(2)
			parked := b.Parked(zone, b.Clock.Now())
			b.Want(len(parked) == 0, c.attached)
			cause := events.Cause("")
			if w := b.Shown(id); w.Incident != nil {
				cause = w.Incident.Cause
				for _, trouble := range w.Incident.Troubles {
					if trouble.Cause == events.CauseHostError && trouble.Proven {
						t.Error("an entry attached to a slice only by place and time proves nothing")
					}
				}
			}
			b.Want(cause, c.cause)
			b.minutes(32)
			parked = b.Parked(zone, at)
			b.Want(len(parked), 0)
		})
	}
}

func TestWhatGoogleSuspectsOfAbuseIsNotReplaced(t *testing.T) {
	for name, end := range map[string]func(b *bench) error{
		"preempted": func(b *bench) error { return b.API.Preempt(zone, slice) },
		"vanished":  func(b *bench) error { return b.API.Vanish(zone, slice) },
		"sick":      func(b *bench) error { return b.API.HostError(zone, slice, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := training(t)
			b.Must(b.API.AddSymptom(zone, slice, "PROJECT_ABUSE", 0))
			b.minutes(3)
			b.Want(b.Workload(id).Slices[0].State, "READY, PROJECT_ABUSE")
			b.Must(end(b))
			b.minutes(60)
			b.Want(b.sent(), []string(nil))
			b.Want(b.Shown(id).Closed.Outcome, view.Escalated)
			b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
		})
	}
}

func TestANoticeThatOnlyTheQueuedResourceTellsOfIsPublished(t *testing.T) {
	b := newBench(t)
	var nodes []cloudtputest.NodeConfig
	for _, name := range []string{"a", "b"} {
		nodes = append(nodes, cloudtputest.NodeConfig{Zone: zone, Name: name, Created: fleettest.Start.Add(-time.Hour), Labels: fleettest.Label("spot")})
	}
	b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "q", Nodes: nodes}))
	b.Want(b.tick(), fleettest.Handled)
	n := events.Notice{Status: events.NoticePending, WindowStart: fleettest.Start.Add(24 * time.Hour), WindowEnd: fleettest.Start.Add(28 * time.Hour)}
	b.Must(b.API.Announce(zone, "a", n))
	b.Calls()
	b.minutes(1)
	b.Want(fleettest.Count(b.Calls(), "GetMaintenanceInfo"), 1)
	got, _ := fleettest.One(t, b.Bench, events.DecodeMaintenanceNotified)
	b.Want(got.Node, "a")
	b.Must(b.API.Announce(zone, "b", n))
	b.minutes(1)
	got, _ = fleettest.One(t, b.Bench, events.DecodeMaintenanceNotified)
	b.Want(got.Node, "b")
	b.Want(fleettest.Count(b.Calls(), "GetMaintenanceInfo"), 1)
}

// standing is a slice that stands stopped for as long as who stopped it may be told late.
func standing(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	w := b.Slice(cloudtputest.NodeConfig{Accelerator: "v5litepod-4", Labels: fleettest.Label("reserved"), Group: group})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Want(b.tick(), fleettest.Handled)
	b.minutes(5)
	b.Must(b.API.SetState(zone, slice, "STOPPED"))
	b.minutes(35)
	return b
}

// TestWhoStoppedASliceIsLookedUpBeforeItIsStarted, as far back as it was usable.
func TestWhoStoppedASliceIsLookedUpBeforeItIsStarted(t *testing.T) {
	stopBy := func(who string, ago time.Duration) cloudtputest.Event {
		e := deletedBy(who, ago)
		e.Method = "StopNode"
		return e
	}
	for name, c := range map[string]struct {
		happened []cloudtputest.Event
		fault    bool
		starts   bool
		asked    int
	}{
		"nobody":                         {nil, false, true, 1},
		"its owner, just before":         {[]cloudtputest.Event{stopBy(fleettest.Owner, 36*time.Minute)}, false, false, 1},
		"its owner, long before":         {[]cloudtputest.Event{stopBy(fleettest.Owner, 40*time.Minute)}, false, false, 1},
		"its owner, in a time before":    {[]cloudtputest.Event{stopBy(fleettest.Owner, 3*time.Hour)}, false, true, 1},
		"Google":                         {[]cloudtputest.Event{stopBy("system@google.com", 36*time.Minute)}, false, true, 1},
		"the log cannot be asked at all": {nil, true, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := standing(t)
			b.Want(len(b.Log.Filters()), 0)
			b.Want(b.sent(), []string(nil))
			b.Clock.Advance(time.Minute)
			b.writes(c.happened...)
			b.Clock.Advance(time.Second)
			if c.fault {
				b.Log.Fail(cloudlogtest.Fault{Code: 503, Status: "UNAVAILABLE", Message: "later", Times: 2})
			}
			b.tick()
			b.tick()
			b.Clock.Advance(time.Minute)
			b.tick()
			b.Want(len(b.Log.Filters()), c.asked)
			var want []string
			if c.starts {
				want = []string{events.TypeRecoveryRequested}
			}
			b.Want(b.sent(), want)
			if stop := b.Workload(id).Slices[0].Stop; !c.starts && !c.fault && stop.By != fleettest.Owner {
				t.Errorf("stopped by %+v", stop)
			}
		})
	}
}

// TestAnUnclearAnswerOfTheLogIsNoWord: only a complete answer with every entry understood proves that nobody stopped a
// slice.
func TestAnUnclearAnswerOfTheLogIsNoWord(t *testing.T) {
	stop := func(node, who string) []byte {
		return cloudtputest.AuditEntry(cloudtputest.Event{
			Kind: cloudtputest.Started, Method: "StopNode", Node: node, Operation: "o", Principal: who, Project: fleettest.Project, Zone: zone,
			Time: fleettest.Start.Add(6 * time.Minute), Seq: 100,
		})
	}
	by := func(who string) []byte { return stop(slice, who) }
	const google, unmapped = "system@google.com", "t1v-n-eeeeeeee"
	broken := func(group string) []byte {
		return fleettest.SystemEvent("compute.instances.hostError", "zones/"+zone+"/instances/"+group+"-w-0", fleettest.Start.Add(6*time.Minute), nil)
	}
	for name, c := range map[string]struct {
		entries [][]byte
		group   string
		after   int
		// starts says whether it is started at once, later whether it is a minute later.
		starts, later bool
	}{
		"what Google did":                         {entries: [][]byte{by(google)}, group: group, starts: true},
		"one that cannot be read":                 {entries: [][]byte{bytes.Replace(by(fleettest.Owner), []byte(`"status":{}`), []byte(`"status":{"code":[]}`), 1)}, group: group},
		"one of what it is not known as":          {entries: [][]byte{broken(unmapped)}, group: unmapped},
		"one of what nobody watches, named alike": {entries: [][]byte{stop(slice+"-2", fleettest.Owner)}, group: group, starts: true},
		"a page that ended early":                 {entries: [][]byte{by(google)}, group: group, after: 1, later: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := standing(t)
			for _, raw := range c.entries {
				b.Log.Write(raw)
			}
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Hosts = c.group })
			if c.after > 0 {
				b.Log.Fail(cloudlogtest.Fault{After: c.after})
			}
			started := func() bool {
				b.minutes(1)
				b.tick() // the decision follows from the learned cause
				b.Want(len(b.Log.Filters()), 1)
				return slices.Equal(b.sent(), []string{events.TypeRecoveryRequested})
			}
			if got := started(); got != c.starts {
				t.Fatalf("started: %v, want %v", got, c.starts)
			}
			if c.starts {
				return
			}
			if got := started(); got != c.later {
				t.Errorf("started a minute later: %v, want %v", got, c.later)
			}
		})
	}
}
