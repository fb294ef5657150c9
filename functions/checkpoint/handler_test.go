package checkpoint_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	checkpointfn "pitstop.internal/functions/checkpoint"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	id    = fleettest.Project + "/llama"
	zone  = fleettest.Zone
	slice = "llama"
	at    = " " + zone + "/" + slice
)

// window is announced so late that the save is due at once.
var window = events.Notice{
	Status: events.NoticePending, CanReschedule: true, WindowStart: fleettest.Start.Add(15 * time.Minute), WindowEnd: fleettest.Start.Add(4 * time.Hour),
}

// bench has one request to carry out.
type bench struct {
	*fleettest.Bench
	limits  ledger.Limits
	request events.CheckpointRequested
}

// toSave is a slice with announced maintenance, and the request to save before it.
func toSave(t *testing.T) *bench {
	t.Helper()
	return toSaveWith(t, nil)
}

// toSaveWith is toSave on a slice with this metadata.
func toSaveWith(t *testing.T, metadata map[string]string) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	w := b.Slice(cloudtputest.NodeConfig{Labels: fleettest.Label("reserved"), Notice: &window, Metadata: metadata})
	b.Report(w, slice, fleettest.Progress(1000))
	b.noticed(id, slice)
	b.minute(id)
	return b
}

// toVerify is a save that the crew says is done, and the request to verify it.
func toVerify(t *testing.T) *bench {
	t.Helper()
	b := toSave(t)
	b.Want(b.deliver(), fleettest.Handled)
	b.Clock.Advance(time.Minute)
	b.saved(id, slice)
	b.Calls()
	return b
}

// saved has the crew say that the save is done, and takes up the request to verify it.
func (b *bench) saved(id, slice string) {
	b.T.Helper()
	b.Report(b.Workload(id), slice, events.CrewReport{Schema: events.Schema, Report: events.ReportSaved, SaveID: b.request.SaveID, CheckpointStep: 1200})
	b.request = b.next()
}

// toMaintain is a save that was verified, and the request to start the maintenance now.
func toMaintain(t *testing.T) *bench {
	t.Helper()
	b := toVerify(t)
	b.commit("1200")
	b.Want(b.deliver(), fleettest.Handled)
	b.request = b.next()
	return b
}

// commit writes a complete checkpoint.
func (b *bench) commit(step string) {
	b.Storage.Put(fleettest.Bucket, "run/"+step+"/data", []byte("weights"))
	b.Storage.Put(fleettest.Bucket, "run/"+step+"/commit_success.txt", []byte("done"))
}

func (b *bench) next() events.CheckpointRequested {
	b.T.Helper()
	r, _ := fleettest.One(b.T, b.Bench, events.DecodeCheckpointRequested)
	return r
}

// minute lets a minute pass, and takes up the request that is sent then.
func (b *bench) minute(id string) {
	b.T.Helper()
	b.Clock.Advance(time.Minute)
	b.Give(b.Workload(id), evidence.Ticked{})
	b.request = b.next()
}

func (b *bench) handle() trigger.Handle {
	return checkpointfn.New(checkpointfn.Deps{Fleet: b.Fleet, Provider: b.Cloud, Store: b.Store, Limits: b.limits})
}

func (b *bench) deliver() string {
	b.T.Helper()
	return b.Deliver(b.handle(), fleettest.Request(b.request))
}

// open is the open incident, task its only request.
func (b *bench) open() view.Incident {
	b.T.Helper()
	in := b.Shown(id).Incident
	if in == nil {
		b.T.Fatal("no incident is open")
	}
	return *in
}

func (b *bench) task() view.Request {
	b.T.Helper()
	all := b.Shown(id).Requests
	if len(all) != 1 {
		b.T.Fatalf("requests %+v, want one", all)
	}
	return all[0]
}

// restarts is how many requests to restart the training were sent since the last time.
func (b *bench) restarts() (n int) {
	for _, e := range b.Sender.Sent() {
		if e.Type == events.TypeRecoveryRequested {
			n++
		}
	}
	return n
}

// until lets time pass until the next request is sent, which is for this action.
func (b *bench) until(a events.Action) {
	b.T.Helper()
	for range 60 {
		b.Clock.Advance(time.Minute)
		b.Give(b.Workload(id), evidence.Ticked{})
		if all := fleettest.All(b.T, b.Bench, events.DecodeCheckpointRequested); len(all) > 0 {
			b.request = all[0]
			b.Want(b.request.Action, a)
			return
		}
	}
	b.T.Fatal("no request was sent")
}

// stands checks what the incident waits for; nothing where it is over, or only watched. A maintenance that cannot be started now may be tried
// again, until it comes in its window.
func (b *bench) stands(want view.Phase) {
	b.T.Helper()
	got := view.Phase("")
	if in := b.Shown(id).Incident; in != nil && !in.OnlyWatched {
		got = in.Phase
	}
	if want == view.Window && got == view.Maintaining {
		got = want
	}
	b.Want(got, want)
}

func TestASaveIsAskedForThroughTheBucketAndTheMetadata(t *testing.T) {
	b := toSave(t)
	b.request.Reason = ""
	b.Want(b.request, events.CheckpointRequested{
		Request: events.Request{
			Schema: events.Schema, Workload: id, Incident: "llama-20260301-1", Epoch: 2, Action: events.ActionSave, Attempt: 1,
			Expires: b.Clock.Now().Add(bounds.RequestFor),
		},
		SaveID: b.open().Save.ID, Mode: events.SaveNatural, By: window.WindowStart,
		Directory: fleettest.Directory,
	})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{"GetNode" + at, "UpdateNode" + at})

	ask := events.CrewRequest{
		Schema: events.Schema, SaveID: b.request.SaveID, Workload: id, Incident: b.request.Incident, Action: events.ActionSave,
		Mode: events.SaveNatural, By: window.WindowStart,
	}
	metadata := b.API.Metadata(zone, slice)
	inMetadata, err := events.DecodeCrewRequest([]byte(metadata[events.MetadataRequest]))
	b.Must(err)
	b.Want(inMetadata, ask)
	b.Want(metadata["startup-script"], "export TOKEN=secret")
	inBucket, err := checkpoint.ReadRequest(t.Context(), b.Store, fleettest.Directory)
	b.Must(err)
	b.Want(inBucket, ask)

	b.Want(len(b.Sender.Sent()), 0)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil))
	b.Want(b.Storage.Calls(buckettest.MethodInsert), 1)
}

func TestOneChannelIsEnoughForASave(t *testing.T) {
	plain := map[string]string{}
	denied := func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "UpdateNode", Code: 7, Message: "denied"}) }
	for name, c := range map[string]struct {
		metadata map[string]string
		fail     func(b *bench)
		told     string
	}{
		"without a checkpoint directory": {plain, func(*bench) {}, "save request left in the metadata of llama"},
		"without access to the bucket": {nil, func(b *bench) {
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodInsert, Status: 403})
		}, "save request left in the metadata of llama"},
		"with a node that cannot be changed": {nil, denied, "save request left in the bucket"},
		"with a node that is not usable": {nil, func(b *bench) {
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Condition = evidence.Unhealthy })
		}, "save request left in the bucket"},
		"and with none it comes in its window": {plain, denied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := toSaveWith(t, c.metadata)
			c.fail(b)
			b.Want(b.deliver(), fleettest.Handled)
			in := b.open()
			if c.told == "" {
				b.Want(in.Phase, view.Window)
				b.Want(strings.Contains(in.Save.Failed, "denied"), true)
				return
			}
			b.Want(in.Phase, view.Saving)
			b.Want(in.Timeline[len(in.Timeline)-1].Text, c.told)
		})
	}
}

// TestABusyNodeDoesNotLoseTheSave: another update is in flight, which is normal, and for longer than a call has patience.
func TestABusyNodeDoesNotLoseTheSave(t *testing.T) {
	for name, fault := range map[string]cloudtputest.Fault{
		"another update is in flight": {Code: 10, Message: "unable to queue the operation", Times: -1},
		"the API is away":             {Code: 14, Message: "try later", Times: -1},
	} {
		t.Run(name, func(t *testing.T) {
			b := toSaveWith(t, map[string]string{})
			fault.Method = "UpdateNode"
			mend := b.API.Inject(fault)
			b.Want(b.deliver(), fleettest.Handled)
			in := b.open()
			b.Want(in.Phase, view.Saving)
			b.Want(in.Save.Failed, "")
			b.Want(b.task().Retry, b.Clock.Now().Add(time.Minute))
			b.Want(b.deliver(), fleettest.Ignored)
			b.Calls()
			mend()
			first := b.request.SaveID
			b.minute(id)
			b.Want(b.request.SaveID, first)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.Calls(), []string{"GetNode" + at, "UpdateNode" + at})
		})
	}
}

func TestASaveIsVerifiedAndThenTheMaintenanceIsAskedFor(t *testing.T) {
	b := toVerify(t)
	b.Want(b.request.MoreThan, int64(1199))
	b.commit("1200")
	b.Want(b.deliver(), fleettest.Handled)
	p := b.Shown(id).Training
	b.Want(p.Verified, int64(1200))
	b.Want(p.VerifiedURI, fleettest.Directory+"/1200")
	b.Want(b.next().Action, events.ActionMaintain)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil)) // to verify takes the bucket alone
}

func TestWhatIsNotVerifiedIsLookedForAgain(t *testing.T) {
	for name, c := range map[string]struct {
		bucket func(b *bench)
		text   string
	}{
		"there is nothing":   {func(*bench) {}, "the directory holds only Pitstop's own objects"},
		"an older one":       {func(b *bench) { b.commit("1100") }, "not past step 1199"},
		"one without an end": {func(b *bench) { b.Storage.Put(fleettest.Bucket, "run/1200/data", []byte("w")) }, "step 1200 has no commit marker"},
		"the bucket is away": {func(b *bench) { b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodList, Status: 503}) }, "does not work at the moment"},
		"it is forbidden":    {func(b *bench) { b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodList, Status: 403}) }, "is not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			b := toVerify(t)
			c.bucket(b)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.task().Retry, b.Clock.Now().Add(time.Minute))
			if told := fmt.Sprint(b.open().Save.Failed, b.open().Timeline); !strings.Contains(told, c.text) {
				t.Errorf("it says %s, want %q", told, c.text)
			}
			b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
		})
	}
}

func TestMaintenanceIsStartedOnceAfterAFreshReading(t *testing.T) {
	b := toMaintain(t)
	b.API.Inject(cloudtputest.Fault{Method: "PerformMaintenance", Before: func() {
		task := b.task()
		b.Want(task.RequestID, ledger.RequestID(b.request.Request, zone))
		b.Want(task.Begun, b.Clock.Now())
		b.Want(b.Slots(zone), 1)
	}})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{"GetNode" + at, "PerformMaintenance" + at})
	b.Want(b.open().Phase, view.Window)
	b.Want(b.Slots(zone), 1)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil))
}

func TestMaintenanceIsNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench)
		// read says that the slice is read before that is known.
		read  bool
		phase view.Phase
	}{
		"of a request whose epoch is over": {change: func(b *bench) { b.request.Epoch-- }, phase: view.Maintaining},
		"of another life": {change: func(b *bench) {
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Incarnation.ID = "0" })
		}, phase: view.Maintaining},
		"of a slice that is lost":      {change: func(b *bench) { b.Must(b.API.Preempt(zone, slice)) }, read: true, phase: view.Healing},
		"of a slice that is under way": {change: func(b *bench) { b.Must(b.API.BeginMaintenance(zone, slice, time.Hour)) }, read: true, phase: view.Window},
		"of a slice that is gone":      {change: func(b *bench) { b.Must(b.API.Vanish(zone, slice)) }, read: true, phase: view.PhaseGrace},
		// The ledger was written by a clock ahead of ours, and takes the reading for an older one.
		"of a slice that is lost, unknown to the ledger": {change: func(b *bench) {
			b.Must(b.API.Preempt(zone, slice))
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Since = b.Clock.Now().Add(time.Minute) })
		}, read: true, phase: view.Maintaining},
		// The notice came with a log entry alone, so that a reading without it does not withdraw it.
		"when the API shows no notice": {change: func(b *bench) {
			b.Must(b.API.Withdraw(zone, slice))
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Notice.InAPI = false })
		}, read: true, phase: view.Window},
		"of a legacy node": {change: func(b *bench) {
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Notice.InAPI = false })
			b.Fleet.Provider = legacyReader{b.Fleet.Provider}
		}, read: true, phase: view.Window},
		"when it was withdrawn":            {change: func(b *bench) { b.Must(b.API.Withdraw(zone, slice)) }, read: true},
		"of a slice that cannot be read":   {change: func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "GetNode", Code: 14}) }, read: true, phase: view.Maintaining},
		"when the switch is no by now":     {change: func(b *bench) { b.Policies.Ceiling.EarlyMaintenance = policy.No }, read: true, phase: view.Window},
		"when the switch is ask by now":    {change: func(b *bench) { b.Policies.Ceiling.EarlyMaintenance = policy.Ask }, read: true, phase: view.Approving},
		"when nothing is allowed by now":   {change: func(b *bench) { b.Policies.Ceiling = policy.Switches{} }, read: true},
		"when the workload is paused":      {change: func(b *bench) { b.Change(id, func(w *incident.Workload) { w.Pause = &evidence.Pause{By: "ada"} }) }, read: true, phase: view.Maintaining},
		"when the brake of the zone holds": {change: func(b *bench) { b.limits.Zone = 0 }, read: true, phase: view.Maintaining},
		"when somebody created the slice again": {change: func(b *bench) {
			b.Must(b.API.Vanish(zone, slice))
			b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: slice}, fleettest.Owner))
		}, read: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := toMaintain(t)
			c.change(b)
			if got := b.deliver(); got != fleettest.Ignored && got != fleettest.Handled {
				t.Errorf("the request is %s", got)
			}
			var read []string
			if c.read {
				read = []string{"GetNode" + at}
			}
			b.Want(b.Calls(), read)
			b.Want(b.Slots(zone), 0)
			b.stands(c.phase)
		})
	}
}

// TestMaintenanceThatTheAPIRefusesComesInItsWindow. An API that is away for a minute does not cost the early maintenance: it is called again,
// unless the lost call has begun it.
func TestMaintenanceThatTheAPIRefusesComesInItsWindow(t *testing.T) {
	read := []string{"GetNode" + at}
	called := append(read[:1:1], "PerformMaintenance"+at)
	for name, c := range map[string]struct {
		fault cloudtputest.Fault
		// again is what is called a minute later; nothing where that is of no use.
		again []string
	}{
		"refused":                     {cloudtputest.Fault{Code: 9, Message: "not supported while in state"}, nil},
		"denied":                      {cloudtputest.Fault{Code: 7, Message: "denied"}, nil},
		"late refusal":                {cloudtputest.Fault{Code: 9, Message: "has no pending maintenance"}, nil},
		"unavailable":                 {cloudtputest.Fault{Code: 14, Message: "try later"}, called},
		"another update is under way": {cloudtputest.Fault{Code: 10, Message: "unable to queue the operation"}, called},
		"lost answer":                 {cloudtputest.Fault{LoseAnswer: true}, read},
	} {
		t.Run(name, func(t *testing.T) {
			b := toMaintain(t)
			c.fault.Method = "PerformMaintenance"
			b.API.Inject(c.fault)
			b.Want(b.deliver(), fleettest.Handled)
			if c.again == nil {
				b.stands(view.Window)
				b.Want(b.Slots(zone), 0)
			} else {
				b.Want(b.open().Phase, view.Maintaining)
			}
			b.Calls()
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), []string(nil))
			if c.again != nil {
				b.minute(id)
				b.deliver()
				b.Want(b.Calls(), c.again)
				b.Want(b.open().Phase, view.Window)
			}
		})
	}
}

// TestTheSlicesOfAQueuedResourceAreMaintainedByOneCall, after each of them was read afresh.
func TestTheSlicesOfAQueuedResourceAreMaintainedByOneCall(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"all are as they were":             nil,
		"the maintenance of one has begun": func(b *bench) { b.Must(b.API.BeginMaintenance(zone, "m-1", time.Hour)) },
		"the notice of one could not be read": func(b *bench) {
			b.Must(b.API.Withdraw(zone, "m-1"))
			b.API.Inject(cloudtputest.Fault{Method: "GetMaintenanceInfo", Times: -1, Code: 14, Message: "later"})
		},
		"one cannot be moved any more": func(b *bench) {
			fixed := window
			fixed.CanReschedule = false
			b.Must(b.API.Announce(zone, "m-1", fixed))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := toMaintainQueued(t)
			want := []string{"GetNode " + zone + "/m-0", "GetNode " + zone + "/m-1"}
			if change == nil {
				want = append(want, "PerformMaintenanceQueuedResource "+zone+"/m")
			} else {
				change(b)
			}
			if got := b.deliver(); got != fleettest.Ignored && got != fleettest.Handled {
				t.Errorf("the request is %s", got)
			}
			b.Want(slices.DeleteFunc(b.Calls(), func(call string) bool {
				return strings.HasPrefix(call, "GetQueuedResource") || strings.HasPrefix(call, "GetMaintenanceInfo")
			}), want)
			if in := b.Shown(fleettest.Project + "/m").Incident; in == nil || in.Phase != view.Window && in.Phase != view.Maintaining {
				t.Errorf("the incident is %+v", in)
			}
		})
	}
}

// legacyReader reads every slice as the legacy API shows its nodes: without announced maintenance.
type legacyReader struct{ fleet.Reader }

func (l legacyReader) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	s, err := l.Reader.Read(ctx, r)
	s.Legacy, s.Notice = true, nil
	return s, err
}

// toMaintainQueued is a Multislice of two nodes in one queued resource whose save was verified.
func toMaintainQueued(t *testing.T) *bench {
	t.Helper()
	const name = fleettest.Project + "/m"
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	var nodes []cloudtputest.NodeConfig
	for _, n := range []string{"m-0", "m-1"} {
		nodes = append(nodes, cloudtputest.NodeConfig{
			Name: n, Accelerator: "v5litepod-16", Labels: fleettest.Label("reserved"), Notice: &window,
			Metadata: map[string]string{events.MetadataCheckpointDir: fleettest.Directory},
		})
	}
	b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "m", Nodes: nodes}))
	for _, n := range nodes {
		b.Look(zone, n.Name)
	}
	b.Report(b.Workload(name), "m-0", fleettest.Progress(1000))
	for _, n := range nodes {
		b.noticed(name, n.Name)
	}
	b.minute(name)
	b.Want(b.deliver(), fleettest.Handled)
	b.saved(name, "m-0")
	b.commit("1200")
	b.Want(b.deliver(), fleettest.Handled)
	b.request = b.next()
	b.Want(b.request.Slice, "m-0")
	b.Calls()
	return b
}

// noticed has a reading show the window.
func (b *bench) noticed(id, slice string) {
	b.T.Helper()
	b.Give(b.Workload(id), evidence.Noticed{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankReading}, Slice: slice, Incarnation: b.API.Incarnation(zone, slice), Notice: window, InAPI: true,
	})
}

func TestACrashBehindTheCallOfMaintenanceDoesNotCallTwice(t *testing.T) {
	b := toMaintain(t)
	b.API.Inject(cloudtputest.Fault{Method: "PerformMaintenance", Before: func() { b.Break(ledger.Workloads) }})
	b.Want(b.deliver(), fleettest.Redelivered)
	b.Mend()
	b.Clock.Advance(10 * time.Second) // by now it shows
	b.Calls()
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string{"GetNode" + at})
	b.Want(b.open().Phase, view.Window)
	b.Want(b.Slots(zone), 1)
}

// TestACallThatIsNotMadeAnyMoreIsNotToldAsMade: the instance that began the call died before it wrote to the node, or before
// it stored that, and the node is no longer usable. It is unknown whether the node got the request, also where a pause holds the second
// delivery.
func TestACallThatIsNotMadeAnyMoreIsNotToldAsMade(t *testing.T) {
	for paused, want := range map[bool]string{false: fleettest.Handled, true: fleettest.Ignored} {
		b := toSave(t)
		b.CrashAfter(fleettest.Begun)
		b.Want(b.deliver(), fleettest.Redelivered)
		b.Change(id, func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].State = evidence.Deleting, "DELETING" })
		if paused {
			b.Must(b.Ledger.SetPause(t.Context(), &evidence.Pause{By: "ann"}))
		}
		b.Want(b.deliver(), want)
		b.Want(fleettest.Count(b.Calls(), "UpdateNode"), 0)
		answered := map[string]bool{}
		for _, c := range b.open().Calls {
			answered[c.Method] = !c.Answered.IsZero()
			b.Want(c.NotMade, false)
			b.Want(c.Code, reason.Code(""))
		}
		b.Want(answered, map[string]bool{"storage.objects.create": !paused, "UpdateNode": false})
	}
}

func TestACrashBetweenTheIntentAndTheCallIsMadeGood(t *testing.T) {
	for name, c := range map[string]struct {
		bench  func(*testing.T) *bench
		before []string
		after  []string
	}{
		"save":     {toSave, nil, []string{"GetNode" + at, "UpdateNode" + at}},
		"maintain": {toMaintain, []string{"GetNode" + at}, []string{"GetNode" + at, "PerformMaintenance" + at}},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.bench(t)
			b.CrashAfter(fleettest.Begun)
			b.Want(b.deliver(), fleettest.Redelivered)
			b.Want(b.Calls(), c.before)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.Calls(), c.after)
		})
	}
}

func TestASaveIsHeldAndForbiddenToo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench)
		phase  view.Phase
		held   string
	}{
		"when everything is paused": {
			func(b *bench) { b.Must(b.Ledger.SetPause(b.T.Context(), &evidence.Pause{By: "ada"})) }, view.Saving, "paused by ada",
		},
		"when the switch is no by now": {func(b *bench) { b.Policies.Ceiling.RequestCheckpoint = policy.No }, view.Window, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := toSave(t)
			c.change(b)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), []string(nil))
			b.Want(b.Storage.Calls(buckettest.MethodInsert), 0)
			b.Want(b.open().Phase, c.phase)
			b.Want(b.Shown(id).Wait.Held, c.held)
		})
	}
}
