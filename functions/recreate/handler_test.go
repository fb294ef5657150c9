package recreate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint/buckettest"
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
	at    = " " + zone + "/" + slice
	there = " " + fleettest.OtherZone + "/" + slice
)

// bench has one request to carry out.
type bench struct {
	*fleettest.Bench
	limits  ledger.Limits
	request events.RecreateRequested
}

// lost is a slice that trained under a policy of these words, and was preempted. The request is to delete it.
func lost(t *testing.T, words string, c cloudtputest.NodeConfig, before ...func(*bench)) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	if words != "" {
		b.policy("policies: {night: {preset: spot, " + words + "}}")
		c.Labels = fleettest.Label("night")
	}
	w := b.Slice(c)
	b.Report(w, slice, fleettest.Progress(1000))
	for _, do := range before {
		do(b)
	}
	b.Clock.Advance(time.Minute)
	b.Must(b.API.Preempt(zone, slice))
	b.looks(0, zone)
	return b
}

func toDelete(t *testing.T) *bench {
	t.Helper()
	return lost(t, "", cloudtputest.NodeConfig{Spot: true})
}

// toCreate is a slice that was preempted and deleted, and the request to create it again.
func toCreate(t *testing.T) *bench {
	t.Helper()
	b := toDelete(t)
	b.deletes(zone)
	b.Calls()
	return b
}

// inTwoZones is toCreate under a policy that names another zone too.
func inTwoZones(t *testing.T) *bench {
	t.Helper()
	b := lost(t, "zones: ["+fleettest.OtherZone+"]", cloudtputest.NodeConfig{Spot: true})
	b.deletes(zone)
	b.Calls()
	return b
}

// next is the request that was sent last, and alone.
func (b *bench) next() events.RecreateRequested {
	b.T.Helper()
	r, _ := fleettest.One(b.T, b.Bench, events.DecodeRecreateRequested)
	return r
}

// does carries the request out, and takes up the one that follows.
func (b *bench) does() {
	b.T.Helper()
	b.Want(b.deliver(), fleettest.Handled)
	b.request = b.next()
}

// looks lets time pass, and takes up the request that a look at the slice leads to.
func (b *bench) looks(after time.Duration, where string) {
	b.T.Helper()
	b.Clock.Advance(after)
	b.Look(where, slice)
	b.request = b.next()
}

// deletes carries the deletion out. Then the request is to create the slice again.
func (b *bench) deletes(where string) {
	b.T.Helper()
	b.Want(b.deliver(), fleettest.Handled)
	b.looks(2*time.Minute, where)
}

// moves has the zone refuse the slice for capacity. Then the request is to ask another.
func (b *bench) moves() {
	b.T.Helper()
	b.API.Inject(noCapacity)
	b.does()
}

// reason takes the reason, which is for people alone, out of the request.
func (b *bench) reason() (why string) {
	why, b.request.Reason = b.request.Reason, ""
	return why
}

// deliver hands the request to a freshly deployed function.
func (b *bench) deliver() string {
	b.T.Helper()
	return b.Deliver(b.handle(), fleettest.Request(b.request))
}

func (b *bench) handle() trigger.Handle {
	return recreate.New(recreate.Deps{Fleet: b.Fleet, Provider: b.Cloud, Buckets: b.Buckets, Limits: b.limits})
}

// call is a call that carries the ID of the request.
func (b *bench) call(method string) string {
	return method + " " + b.request.Zone + "/" + slice + " as " + ledger.RequestID(b.request.Request, b.request.Zone)
}

// methods are the methods that were called since the last time.
func (b *bench) methods() (all []string) {
	for _, call := range b.Calls() {
		method, _, _ := strings.Cut(call, " ")
		all = append(all, method)
	}
	return all
}

// bothWays are the two kinds of requests, with the method that each calls.
var bothWays = map[string]struct {
	bench  func(*testing.T) *bench
	method string
}{"delete": {toDelete, "DeleteNode"}, "create": {toCreate, "CreateNode"}}

// ended checks how the incident ended.
func ended(o view.Outcome) func(*bench) {
	return func(b *bench) { b.Want(b.closed().Outcome, o) }
}

// asked is the only request that is open.
func (b *bench) asked() view.Request {
	b.T.Helper()
	all := b.Shown(id).Requests
	if len(all) != 1 {
		b.T.Fatalf("requests %+v, want one", all)
	}
	return all[0]
}

// closed is the incident that ended.
func (b *bench) closed() view.Incident {
	b.T.Helper()
	w := b.Shown(id)
	if w.Incident != nil || w.Closed == nil {
		b.T.Fatalf("open incident %+v, closed %+v", w.Incident, w.Closed)
	}
	return *w.Closed
}

// tick lets time pass for the workload, as patrol does.
func (b *bench) tick(d time.Duration) {
	b.T.Helper()
	b.Clock.Advance(d)
	b.Give(b.Workload(id), evidence.Ticked{})
}

func TestALostSliceIsReadAndThenDeletedOnce(t *testing.T) {
	b := toDelete(t)
	b.Want(b.reason() != "", true)
	b.Want(b.request, events.RecreateRequested{
		Request: events.Request{
			Schema: events.Schema, Workload: id, Incident: "llama-20260301-1", Epoch: 2, Action: events.ActionDelete, Slice: slice,
			Incarnation: b.API.Incarnation(zone, slice), Attempt: 1, Expires: b.Clock.Now().Add(bounds.RequestFor),
		},
		Zone: zone, Spec: b.Workload(id).Slices[0].Spec,
	})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{"GetNode" + at, b.call("DeleteNode")})
	effect := b.asked()
	if effect.Begun != b.Clock.Now() || effect.At != b.Clock.Now() || effect.Stage != view.StageAccepted {
		t.Errorf("request %+v, want it begun and answered with its operation", effect)
	}
	b.Want(b.Slots(zone), 1)
	b.Want(len(b.Sender.Sent()), 0)

	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil))
}

// TestWhatIsNotWantedAnyMoreIsNotDeleted goes through what may have changed between the decision and the call. What makes a request
// outdated, and what holds it, is asserted of every function where the ledger is.
func TestWhatIsNotWantedAnyMoreIsNotDeleted(t *testing.T) {
	read := []string{"GetNode"}
	shown := func(change func(w *incident.Workload)) func(*bench) {
		return func(b *bench) { b.Change(id, change) }
	}
	// held is a reason that only delays the call: it is stored, and the call is tried again.
	held := func(by string, again func(time.Time) time.Time) func(*bench) {
		return func(b *bench) {
			b.Want(b.Shown(id).Wait.Held, by)
			b.Want(b.asked().Retry, again(b.Clock.Now()))
			b.Want(b.asked().Begun, time.Time{})
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), []string(nil))
		}
	}
	minute := func(now time.Time) time.Time { return now.Add(time.Minute) }
	for name, c := range map[string]struct {
		change func(b *bench)
		calls  []string
		stands func(b *bench)
		next   events.Action
	}{
		"the epoch is over":      {change: func(b *bench) { b.request.Epoch-- }},
		"another slice is meant": {change: func(b *bench) { b.request.Slice += "0" }},
		"another life is meant":  {change: shown(func(w *incident.Workload) { w.Slices[0].Incarnation.ID += "0" })},
		"it is gone":             {change: func(b *bench) { b.Must(b.API.Vanish(zone, slice)) }, calls: read, next: events.ActionCreate},
		"it cannot be read": {
			change: func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "GetNode", Code: 14, Message: "try later"}) }, calls: read,
			stands: func(b *bench) {
				b.Want(b.asked().Failure, "try later")
				b.Want(b.asked().Retry, minute(b.Clock.Now()))
			},
		},
		"Google has healed the slice": {change: func(b *bench) {
			b.Must(b.API.SetState(zone, slice, "READY"))
			b.Report(b.Workload(id), slice, fleettest.Progress(2000))
		}, calls: read},
		"another life has the name now": {change: (*bench).replaceByOwner, calls: read, stands: ended(view.Released)},
		// The ledger was written by a clock ahead of ours, and takes the reading for an older one.
		"another life has the name, unknown to the ledger": {change: func(b *bench) {
			b.replaceByOwner()
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Since = b.Clock.Now().Add(time.Minute) })
		}, calls: read},
		"Google suspects abuse":   {change: func(b *bench) { b.Must(b.API.AddSymptom(zone, slice, "PROJECT_ABUSE", 0)) }, calls: read, stands: ended(view.Escalated)},
		"the switch is no by now": {change: func(b *bench) { b.Policies.Ceiling.Recreate = policy.No }, calls: read, stands: ended(view.Escalated)},
		"the switch is ask by now": {change: func(b *bench) { b.Policies.Ceiling.Recreate = policy.Ask }, calls: read, stands: func(b *bench) {
			b.Want(b.Shown(id).Incident.Asked, events.ActionDelete)
		}},
		"nothing at all is allowed by now": {change: func(b *bench) { b.Policies.Ceiling = policy.Switches{} }, calls: read, stands: func(b *bench) {
			w := b.Shown(id)
			b.Want(w.Incident != nil && w.Incident.OnlyWatched || w.Closed != nil && w.Closed.Outcome == view.Observed, true)
		}},
		"the owner has deleted it": {change: func(b *bench) {
			b.Give(b.Workload(id), evidence.Called{
				Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
			})
		}, stands: ended(view.Released)},
		"the workload is paused": {
			change: shown(func(w *incident.Workload) { w.Pause = &evidence.Pause{By: "ada"} }), calls: read, stands: held("paused by ada", minute),
		},
		"everything is paused for an hour": {change: func(b *bench) {
			b.Must(b.Ledger.SetPause(b.T.Context(), &evidence.Pause{By: "grace", Until: b.Clock.Now().Add(time.Hour)}))
		}, calls: read, stands: held("paused by grace", minute)}, // because it may be lifted before
		"the project's brake holds": {change: func(b *bench) {
			b.limits.Project = 1
			b.Must(b.Ledger.Take(b.T.Context(), fleettest.Project, fleettest.OtherZone, "another", b.limits, b.Clock.Now()))
		}, calls: read, stands: held("the brake holds: 1 destructive calls in this hour is the limit of demo//2026030112", ledger.NextHour)},
	} {
		t.Run(name, func(t *testing.T) {
			b := toDelete(t)
			c.change(b)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.methods(), c.calls)
			b.Want(b.Slots(zone), 0)
			if c.stands != nil {
				c.stands(b)
			}
			if c.next != "" {
				b.Want(b.next().Action, c.next)
			}
			b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
		})
	}
	b := toDelete(t)
	b.Must(b.API.OwnerDelete(zone, slice, fleettest.Owner))
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{"GetNode" + at})
	b.Want(b.asked().Stage, view.StageDone) // by no operation of ours
}

// replaceByOwner has the owner put another node in the place of the one that was lost.
func (b *bench) replaceByOwner() {
	b.Must(b.API.OwnerDelete(zone, slice, fleettest.Owner))
	b.Clock.Advance(2 * time.Minute)
	b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true}, fleettest.Owner))
}

// TestAFailureOfTheAPIIsEvidence covers what the API answers to a deletion: it is stored with a time for the next try,
// and the message is acknowledged.
func TestAFailureOfTheAPIIsEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		fault cloudtputest.Fault
		// begun says that the call may have taken effect all the same: then its slot stays taken.
		begun bool
		// retry is when the call is made again; where a person has to cure it first, never.
		retry time.Duration
	}{
		"unavailable":           {cloudtputest.Fault{Code: 14, Message: "try later"}, true, time.Minute},
		"no answer":             {cloudtputest.Fault{LoseRequest: true}, true, time.Minute},
		"another update":        {cloudtputest.Fault{Code: 10, Message: "unable to queue the operation"}, false, time.Minute},
		"it is not there":       {cloudtputest.Fault{Code: 5, Message: "Resource 'llama' was not found"}, false, time.Minute},
		"a page of some proxy":  {cloudtputest.Fault{HTTP: 502}, true, time.Minute},
		"too many calls":        {cloudtputest.Fault{Code: 8, Message: "Quota exceeded for quota metric 'calls' and limit 'calls per minute'"}, true, time.Minute},
		"an answer of the dark": {cloudtputest.Fault{Code: 2, Message: "?"}, true, time.Minute},
		// That is no failure, and the state passes.
		"not in its state": {cloudtputest.Fault{Code: 9, Message: "DeleteQueuedResource is not supported when state is PROVISIONING"}, false, bounds.BarredEvery},
		"not permitted":    {cloudtputest.Fault{Code: 7, Message: "Permission 'tpu.nodes.delete' denied"}, false, 0},
		"wrong":            {cloudtputest.Fault{Code: 3, Message: "bad"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := toDelete(t)
			c.fault.Method = "DeleteNode"
			b.API.Inject(c.fault)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.Calls(), []string{"GetNode" + at, b.call("DeleteNode")})
			b.Want(b.Slots(zone) == 1, c.begun)
			if c.retry == 0 {
				b.Want(b.closed().Outcome, view.Escalated)
			} else if effect := b.asked(); effect.Failures > 0 == (c.retry == bounds.BarredEvery) || effect.Failure == "" ||
				effect.Retry != b.Clock.Now().Add(c.retry) || effect.Begun.IsZero() == c.begun {
				t.Errorf("effect %+v, want a failure and a time for the next try, begun %t", effect, c.begun)
			}
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), []string(nil))
		})
	}
}

// TestACrashBehindTheCallIsLookedInto: the call takes effect, and what came back can neither be received nor stored.
func TestACrashBehindTheCallIsLookedInto(t *testing.T) {
	for name, c := range bothWays {
		t.Run(name, func(t *testing.T) {
			b := c.bench(t)
			b.API.Inject(cloudtputest.Fault{Method: c.method, LoseAnswer: true, Before: func() { b.Break(ledger.Workloads) }})
			b.Want(b.deliver(), fleettest.Redelivered)
			b.Want(b.Calls(), []string{"GetNode" + at, b.call(c.method)})
			b.Mend()
			b.Want(b.asked().Begun, b.Clock.Now())
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.Calls(), []string{"GetNode" + at})
			b.Want(b.Slots(zone), 1)
			b.Want(b.Workload(id).Slices[0].Incarnation, b.API.Incarnation(zone, slice))
		})
	}
}

func TestACrashBetweenTheIntentAndTheCallIsMadeGood(t *testing.T) {
	for name, c := range bothWays {
		t.Run(name, func(t *testing.T) {
			b := crashed(t, c.bench)
			b.Want(b.Calls(), []string{"GetNode" + at})
			// Nobody can tell a crash from an instance that is slow, until its time is over.
			b.Clock.Advance(bounds.CallFor - 1)
			b.Want(b.deliver(), fleettest.Later)
			b.Want(b.Calls(), []string{"GetNode" + at})
			b.Clock.Advance(1)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.Calls(), []string{"GetNode" + at, b.call(c.method)})
			b.Want(b.asked().Begun.IsZero(), false)
			b.Want(b.Slots(zone), 1)
		})
	}
}

// crashed has the instance that took the request die between its intent and its call.
func crashed(t *testing.T, bench func(*testing.T) *bench) *bench {
	t.Helper()
	b := bench(t)
	b.CrashAfter(fleettest.Begun)
	b.Want(b.deliver(), fleettest.Redelivered)
	return b
}

// TestAReadingFromWhileAnotherMayHaveBeenAtItDeletesNothing: an instance died with a claim, and Google heals the slice while
// the claim stands. The instance that takes the claim over deletes nothing, however long it takes from its reading to the
// call.
func TestAReadingFromWhileAnotherMayHaveBeenAtItDeletesNothing(t *testing.T) {
	b := crashed(t, toDelete)
	b.Must(b.API.SetState(zone, slice, "READY"))
	b.Must(b.API.SetHealth(zone, slice, "HEALTHY"))
	b.Clock.Advance(bounds.CallFor - time.Second)
	b.SlowAfter(func(w incident.Workload) bool { return w.Slices[0].Condition == evidence.Ready }, time.Minute)
	b.Want(b.deliver(), fleettest.Later)
	b.Want(b.deliver(), fleettest.Ignored) // this reading counts, and says that it lives
	b.Want(fleettest.Count(b.Calls(), "DeleteNode"), 0)
}

// TestWhatCannotBeReadIsNoAnswerToACallThatIsUnderWay: another delivery is about to make it, and the incident must not end
// before.
func TestWhatCannotBeReadIsNoAnswerToACallThatIsUnderWay(t *testing.T) {
	b := crashed(t, toDelete)
	denied := cloudtputest.Fault{Method: "GetNode", Code: 7, Message: "denied"}
	b.API.Inject(denied)
	b.Want(b.deliver(), fleettest.Later)
	if effect := b.asked(); effect.Failures > 0 || effect.Failure != "" {
		t.Errorf("the effect is %+v, want it left to the instance that has begun it", effect)
	}
	b.Clock.Advance(bounds.CallFor)
	b.API.Inject(denied)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.closed().Outcome, view.Escalated)
}

func TestACallThatAnEarlierDeliveryMayHaveMadeKeepsItsSlot(t *testing.T) {
	b := crashed(t, toDelete)
	b.Must(b.Ledger.SetPause(t.Context(), &evidence.Pause{By: "ada"}))
	b.Clock.Advance(bounds.CallFor)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Slots(zone), 1)
}

// TestWhoeverIsTooSlowForACallDoesNotMakeIt: between the intent and the call others decide, and nobody would see it.
func TestWhoeverIsTooSlowForACallDoesNotMakeIt(t *testing.T) {
	for name, c := range bothWays {
		for took, want := range map[time.Duration]string{bounds.CallWithin: fleettest.Handled, bounds.CallWithin + 1: fleettest.Later} {
			t.Run(name+" after "+took.String(), func(t *testing.T) {
				b := c.bench(t)
				b.SlowAfter(fleettest.Begun, took)
				b.Want(b.deliver(), want)
				b.Want(fleettest.Count(b.Calls(), c.method) == 1, want == fleettest.Handled)
			})
		}
	}
}

func TestTheIntentAndTheSpecificationAreStoredBeforeAnythingIsDeleted(t *testing.T) {
	b := toDelete(t)
	called := false
	b.API.Inject(cloudtputest.Fault{Method: "DeleteNode", Before: func() {
		called = true
		spec, err := b.Ledger.Spec(t.Context(), b.request.Spec)
		if err != nil || !strings.Contains(string(spec), "startup-script") {
			t.Errorf("specification %q, %v", spec, err)
		}
		if values, err := b.Secrets.Of(t.Context(), b.request.Spec); err != nil || values["startup-script"] != "export TOKEN=secret" {
			t.Errorf("values %q, %v", values, err)
		}
		if effect := b.asked(); effect.Begun.IsZero() || effect.RequestID != ledger.RequestID(b.request.Request, zone) {
			t.Errorf("effect %+v, want the intent of this very call", effect)
		}
		b.Want(b.Slots(zone), 1)
	}})
	b.Want(b.deliver(), fleettest.Handled)
	if !called {
		t.Error("nothing was deleted")
	}
}

func TestASpecificationThatCannotBeStoredKeepsTheSlice(t *testing.T) {
	b := toDelete(t)
	b.Change(id, func(w *incident.Workload) { w.Slices[0].Spec = "that of an earlier release" })
	b.Break(ledger.Specs)
	b.Want(b.deliver(), fleettest.Redelivered)
	b.Want(b.Calls(), []string{"GetNode" + at})
}

func TestASliceIsCreatedOnceFromWhatWasStored(t *testing.T) {
	b := toCreate(t)
	b.API.Inject(cloudtputest.Fault{Method: "CreateNode", Before: func() {
		// Entries about the new slice may come before the answer does.
		s, err := b.Ledger.Subject(t.Context(), fleettest.Project, zone, ledger.Node, slice)
		if err != nil || s.Workload != id || s.Incarnation.Known() {
			t.Errorf("subject %+v, %v: want the workload, and no life yet", s, err)
		}
	}})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{"GetNode" + at, b.call("CreateNode")})
	n := b.API.Node(zone, slice)
	b.Want(n.Labels, map[string]string{events.LabelPolicy: "spot", events.LabelWorkload: slice, events.LabelIncident: b.request.Incident})
	b.Want(n.Metadata["startup-script"], "export TOKEN=secret")
	if !n.SchedulingConfig.Spot {
		t.Error("a Spot slice is no longer Spot")
	}
	b.Want(b.asked().Stage, view.StageAccepted)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Calls(), []string(nil))
}

// TestThePolicyTurnsAutocheckpointOnAtTheFirstRecreate, and from then on the slice itself has it.
func TestThePolicyTurnsAutocheckpointOnAtTheFirstRecreate(t *testing.T) {
	for says, on := range map[string]bool{"autocheckpoint: keep": false, "autocheckpoint: on": true, "lead: 10m": false} {
		b := lost(t, says, cloudtputest.NodeConfig{Spot: true})
		b.deletes(zone)
		b.Want(b.deliver(), fleettest.Handled)
		n := b.API.Node(zone, slice)
		b.Want(n.AutocheckpointEnabled, on)
		b.Want(n.Metadata["startup-script"], "export TOKEN=secret")
		b.Clock.Advance(10 * time.Minute)
		spec, err := b.Ledger.Spec(t.Context(), b.Look(zone, slice).Slices[0].Spec)
		b.Must(err)
		b.Want(strings.Contains(string(spec), `"autocheckpointEnabled":true`), on)
	}
}

// TestWhatMayNotBeCreatedIsOnlyRead goes through what stands against a creation.
func TestWhatMayNotBeCreatedIsOnlyRead(t *testing.T) {
	theirs := func(b *bench) {
		b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true}, fleettest.Owner))
	}
	unread := func(f cloudtputest.Fault) func(*bench) {
		f.Method = "GetNode"
		return func(b *bench) { b.API.Inject(f) }
	}
	again := func(b *bench) { b.Want(b.asked().Retry, b.Clock.Now().Add(time.Minute)) }
	for name, c := range map[string]struct {
		change, stands func(b *bench)
	}{
		"everything is paused": {
			func(b *bench) { b.Must(b.Ledger.SetPause(b.T.Context(), &evidence.Pause{By: "grace"})) },
			func(b *bench) { b.Want(b.Shown(id).Wait.Held, "paused by grace") },
		},
		"the switch is no by now":      {func(b *bench) { b.Policies.Ceiling.Recreate = policy.No }, ended(view.Escalated)},
		"the slice cannot be read":     {unread(cloudtputest.Fault{HTTP: 503}), again},
		"the slice may not be read":    {unread(cloudtputest.Fault{Code: 7, Message: "Permission 'tpu.nodes.get' denied"}), ended(view.Escalated)},
		"its order cannot be read":     {func(b *bench) { b.Break(ledger.Specs) }, again},
		"its metadata cannot be read":  {func(b *bench) { b.Break(ledger.Values) }, again},
		"somebody else has created it": {theirs, ended(view.Released)},
		"its metadata is not kept": {func(b *bench) { // values that are not kept are no empty ones
			hash, _, _ := strings.Cut(b.request.Spec, "@")
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Spec = hash + "@another" })
		}, func(*bench) {}},
		// The ledger was written by a clock ahead of ours, and does not take it for the slice.
		"somebody else has created it, unknown to the ledger": {func(b *bench) {
			theirs(b)
			b.Change(id, func(w *incident.Workload) { w.Slices[0].Since = b.Clock.Now().Add(time.Minute) })
		}, func(b *bench) { b.Want(b.asked().Stage, view.StageWanted) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := toCreate(t)
			c.change(b)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), []string{"GetNode" + at})
			c.stands(b)
		})
	}
}

// TestWhatSomebodyElseCreatedWhereItWasIsTheirs: the slice is about to be created in another zone, for the first time, or for the second
// time, where it was lost before anybody was admitted.
func TestWhatSomebodyElseCreatedWhereItWasIsTheirs(t *testing.T) {
	first := func(t *testing.T) *bench {
		t.Helper()
		b := inTwoZones(t)
		b.moves()
		return b
	}
	again := func(t *testing.T) *bench {
		t.Helper()
		b := first(t)
		b.Want(b.deliver(), fleettest.Handled)
		b.Clock.Advance(10 * time.Minute)
		b.Look(fleettest.OtherZone, slice)
		b.Sender.Sent() // it would be let in, and is lost before
		b.Must(b.API.Preempt(fleettest.OtherZone, slice))
		b.looks(0, fleettest.OtherZone)
		if b.deletes(fleettest.OtherZone); b.request.Zone == zone {
			b.moves()
		}
		return b
	}
	theirs := func(b *bench) {
		b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true}, fleettest.Owner))
	}
	for name, c := range map[string]struct {
		bench   func(*testing.T) *bench
		change  func(b *bench)
		created bool
		theirs  bool
	}{
		"nothing is":            {first, func(*bench) {}, true, false},
		"it is there":           {first, theirs, false, true},
		"nothing is, again":     {again, func(*bench) {}, true, false},
		"it is there, again":    {again, theirs, false, true},
		"nobody can say, again": {again, func(b *bench) { b.API.Inject(cloudtputest.Fault{Method: "GetNode", Zone: zone, Code: 14}) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.bench(t)
			b.Want(b.request.Zone, fleettest.OtherZone)
			c.change(b)
			b.Calls()
			b.deliver()
			calls := []string{"GetNode" + there, "GetNode" + at}
			if c.created {
				calls = append(calls, b.call("CreateNode"))
			}
			b.Want(b.Calls(), calls)
			if c.theirs {
				b.Want(b.closed().Outcome, view.Released)
			}
		})
	}
}

// TestWhatCannotBeReadMovesNoCreation has a creation take effect whose answer is lost with the instance, and then no
// reading that says so: another zone must not be asked, or there would be two slices.
func TestWhatCannotBeReadMovesNoCreation(t *testing.T) {
	for name, f := range map[string]cloudtputest.Fault{
		"too many calls":     {Code: 8, Message: "Resource has been exhausted (e.g. check quota)."},
		"our own limit":      {Code: 8, Message: "Quota limit 'X' has been exceeded. Limit: 0"},
		"no capacity":        {Code: 8, Message: "There is no more capacity in the zone"},
		"not offered":        {Code: 3, Message: "the accelerator v6e-1 was not found in zone us-west4-a"},
		"wrong":              {Code: 3, Message: "bad"},
		"not in this state":  {Code: 9, Message: "not supported while in state CREATING"},
		"nobody knows there": {HTTP: 404},
	} {
		t.Run(name, func(t *testing.T) {
			b := inTwoZones(t)
			b.API.Inject(cloudtputest.Fault{Method: "CreateNode", LoseAnswer: true, Before: func() { b.Break(ledger.Workloads) }})
			b.Want(b.deliver(), fleettest.Redelivered)
			b.Mend()
			f.Method = "GetNode"
			b.API.Inject(f)
			b.Want(b.deliver(), fleettest.Later) // the instance that has begun it may be about to call
			b.Clock.Advance(bounds.CallFor)
			b.API.Inject(f)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(fleettest.Types(b.Sender.Sent()), []string(nil))
			if effect := b.asked(); effect.Begun.IsZero() || effect.Retry != b.Clock.Now().Add(time.Minute) {
				t.Errorf("effect %+v, want it begun and tried again", effect)
			}
			b.tick(time.Minute)
			b.request = b.next()
			b.Want(b.request.Zone, zone)
			b.deliver()
			b.Want(fleettest.Count(b.Calls(), "CreateNode"), 1)
			b.Want(b.Workload(id).Slices[0].Incarnation, b.API.Incarnation(zone, slice))
		})
	}
}

var noCapacity = cloudtputest.Fault{Method: "CreateNode", Code: 8, Message: "There is no more capacity in the zone"}

// theirs is a node of that name in the other zone, of another workload.
func (b *bench) theirs() incident.Workload {
	b.T.Helper()
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Zone: fleettest.OtherZone, Labels: map[string]string{
		events.LabelPolicy: "spot", events.LabelWorkload: "another",
	}})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Calls()
	return b.Workload(w.ID)
}

// TestTheNameOfAnotherWorkloadsNodeIsTaken: nothing of the other workload may be taken for our own, whatever becomes of
// its node meanwhile.
func TestTheNameOfAnotherWorkloadsNodeIsTaken(t *testing.T) {
	elsewhere := fleettest.OtherZone
	vanish := func(b *bench) {
		b.Must(b.API.Vanish(elsewhere, slice))
		b.Look(elsewhere, slice)
	}
	for name, becomes := range map[string]func(b *bench){
		"it lives":        func(*bench) {},
		"it is preempted": func(b *bench) { b.Must(b.API.Preempt(elsewhere, slice)) },
		"it is being replaced, and gone for the moment": func(b *bench) {
			b.Must(b.API.Preempt(elsewhere, slice))
			b.Look(elsewhere, slice)
			vanish(b)
			b.Sender.Sent()
		},
		"it is gone without a word": vanish,
	} {
		t.Run(name, func(t *testing.T) {
			b := inTwoZones(t)
			other := b.theirs()
			becomes(b)
			b.moves()
			subject := func() ledger.Subject {
				s, err := b.Ledger.Subject(t.Context(), fleettest.Project, elsewhere, ledger.Node, slice)
				b.Must(err)
				return s
			}
			known := subject()
			other = b.Workload(other.ID)
			b.Calls()
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), []string(nil))
			b.Want(b.Workload(other.ID), other)
			b.Want(subject(), known)
			b.Want(b.Workload(id).Slices[0].Zone, zone)
			b.neverThere("the name is taken there by " + other.ID)
		})
	}
}

// neverThere checks that the other zone is ruled out for this reason, and that the slice's own is asked again.
func (b *bench) neverThere(why string) {
	b.T.Helper()
	refused := b.Shown(id).Incident.Zones[1]
	b.Want(refused.Never, true)
	b.Want(refused.Text, why)
	b.Want(b.asked().Zone, zone)
}

// TestNoZoneIsAskedForWhatItDoesNotHave: a reservation and a disk are in one zone. Another is not asked for them and not
// asked without them; the incident says so and goes on with the next.
func TestNoZoneIsAskedForWhatItDoesNotHave(t *testing.T) {
	for want, order := range map[string]*api.Node{
		"schedulingConfig.reservationName r is in " + zone: {
			RuntimeVersion: "r", SchedulingConfig: &api.SchedulingConfig{Reserved: true, ReservationName: "r", Spot: true},
		},
		"dataDisks.sourceDisk projects/demo/zones/" + zone + "/disks/d is in " + zone: {
			RuntimeVersion: "r", SchedulingConfig: &api.SchedulingConfig{Spot: true},
			DataDisks: []*api.AttachedDisk{{SourceDisk: "projects/demo/zones/" + zone + "/disks/d"}},
		},
	} {
		b := lost(t, "zones: ["+fleettest.OtherZone+"]", cloudtputest.NodeConfig{Order: order})
		b.deletes(zone)
		b.moves()
		b.Want(b.request.Zone, fleettest.OtherZone)
		b.Calls()
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(fleettest.Count(b.Calls(), "CreateNode"), 0)
		b.neverThere(want)
		b.tick(2 * time.Minute)
		b.request = b.next()
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(fleettest.Count(b.Calls(), "CreateNode"), 1)
	}
}

// inRegion is a request to create a slice with a subnetwork of its own in another region, under a policy with these words.
func inRegion(t *testing.T, words string, before ...func(*bench)) *bench {
	t.Helper()
	const abroad = "us-east5-a"
	b := lost(t, "zones: ["+abroad+"], "+words, cloudtputest.NodeConfig{
		Order: &api.Node{
			RuntimeVersion: "r", NetworkConfig: &api.NetworkConfig{Network: "n", Subnetwork: "home"}, SchedulingConfig: &api.SchedulingConfig{Spot: true},
		},
	}, before...)
	b.API.SetCapacity(abroad, cloudtputest.Unlimited)
	b.API.AddSubnetwork("us-east5", "tpus")
	b.deletes(zone)
	b.moves()
	b.Want(b.request.Zone, abroad)
	b.Calls()
	return b
}

func TestASubnetworkIsTheOneThatTheOwnerNames(t *testing.T) {
	b := inRegion(t, "subnetworks: {us-east5: tpus}")
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.API.Node(b.request.Zone, slice).NetworkConfig.Subnetwork, "tpus")

	b = inRegion(t, "subnetworks: {us-central1: tpus}")
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(fleettest.Count(b.Calls(), "CreateNode"), 0)
	b.Want(b.Shown(id).Incident.Zones[1].Text, "networkConfig.subnetwork home is in us-west4")
}

// TestNoTrainingReadsItsCheckpointsFromAnotherRegionUnasked has a slice that is created in us-east5 instead of us-west4.
func TestNoTrainingReadsItsCheckpointsFromAnotherRegionUnasked(t *testing.T) {
	const refused, allowed = "subnetworks: {us-east5: tpus}, egress_price: 0.02", "subnetworks: {us-east5: tpus}, egress_price: 0.02, other_regions: yes"
	const cost = "the checkpoints are in us-west4; a restore reads 3.0 GiB from there, and a save writes as much: $0.06 each at the policy's price"
	const unpriced = "subnetworks: {us-east5: tpus}"
	const nowhere = "the checkpoints are in us-west4; a restore reads 3.0 GiB from there, and a save writes as much, at a price that the policy does not name (egress_price)"
	unknown := "where the checkpoints are is not known: locate " + fleettest.Directory + ": is not permitted"
	for name, c := range map[string]struct {
		words   string
		where   buckettest.Location
		status  int
		created int
		want    string
	}{
		"the bucket is where the slice was":              {refused, buckettest.Location{Name: "US-WEST4"}, 0, 0, cost + "; the policy's other_regions is no"},
		"the policy names no price":                      {unpriced + ", other_regions: no", buckettest.Location{Name: "US-WEST4"}, 0, 0, nowhere + "; the policy's other_regions is no"},
		"the policy says nothing":                        {unpriced, buckettest.Location{Name: "US-WEST4"}, 0, 0, nowhere + "; the policy's other_regions is no"},
		"the owner allows it at any price":               {unpriced + ", other_regions: yes", buckettest.Location{Name: "US-WEST4"}, 0, 1, nowhere},
		"the owner allows it":                            {allowed, buckettest.Location{Name: "US-WEST4"}, 0, 1, cost},
		"the bucket is where the slice goes":             {refused, buckettest.Location{Name: "US-EAST5"}, 0, 1, ""},
		"the bucket is in both":                          {refused, buckettest.Location{Name: "US", Type: "multi-region"}, 0, 1, ""},
		"nobody may know where it is":                    {refused, buckettest.Location{}, 403, 0, unknown},
		"nobody may know where it is, and it is allowed": {allowed, buckettest.Location{}, 403, 1, unknown},
		"nobody knows where it is now":                   {refused, buckettest.Location{}, 503, 0, "where its checkpoints are is not readable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := inRegion(t, c.words, func(b *bench) { b.Verify(id, slice, fleettest.Directory+"/1200", 3<<30) })
			b.Storage.Place(fleettest.Bucket, c.where)
			if c.status != 0 {
				b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodLocate, Status: c.status})
			}
			b.deliver()
			b.Want(fleettest.Count(b.Calls(), "CreateNode"), c.created)
			w := b.Shown(id)
			var said string
			for _, l := range w.Incident.Timeline {
				said += l.Text + " " + l.Reason + "\n"
			}
			if !strings.Contains(said, c.want) || c.want == "" && strings.Contains(said, "checkpoints are") {
				t.Errorf("it says %s; want %s", said, c.want)
			}
			if c.status == 503 {
				b.Want(len(w.Incident.Zones), 1) // it is tried again
				b.tick(2 * time.Minute)
				b.request = b.next()
				b.Want(b.request.Zone, "us-east5-a")
				return
			}
			if never := len(w.Incident.Zones) > 1 && w.Incident.Zones[1].Never; never == (c.created > 0) {
				t.Errorf("the refusals are %+v", w.Incident.Zones)
			}
		})
	}
	// In its own region nothing is asked.
	b := toCreate(t)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Storage.Calls(buckettest.MethodLocate), 0)
}

func TestAPolicyThatCannotBeReadRulesNoZoneOut(t *testing.T) {
	b := inRegion(t, "subnetworks: {us-east5: tpus}")
	b.Policies.Unreadable = "503"
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(len(b.Shown(id).Incident.Zones), 1)
	b.Policies.Unreadable = ""
	b.tick(2 * time.Minute)
	b.request = b.next()
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(fleettest.Count(b.Calls(), "CreateNode"), 1)
}

func TestTheNameThatAnotherWorkloadsNodeHadOnceIsFree(t *testing.T) {
	b := inTwoZones(t)
	other := b.theirs()
	b.Must(b.API.OwnerDelete(fleettest.OtherZone, slice, fleettest.Owner))
	b.Give(other, evidence.Called{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: fleettest.Owner,
	})
	b.Clock.Advance(5 * time.Minute)
	b.Look(fleettest.OtherZone, slice)
	b.moves()
	b.Calls()
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(fleettest.Count(b.Calls(), "CreateNode"), 1)
}

// TestAnOlderNodeOfUnknownOwnerInTheNextZoneIsNotOurs: it was there before ours was, so it is no new life of it.
func TestAnOlderNodeOfUnknownOwnerInTheNextZoneIsNotOurs(t *testing.T) {
	b := inTwoZones(t)
	created := b.Clock.Now().Add(-100 * time.Hour)
	_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: fleettest.OtherZone, Name: slice, Created: created})
	b.Must(err)
	b.moves()
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Workload(id).Slices[0].Zone, zone)
	b.neverThere("the name is taken there by a node of " + created.Format(time.DateOnly))
}

// TestAZoneThatJustFailedIsNotAskedByTheNextWorkload: it asks where nobody knows first, and asks there itself when it comes
// back to it. A zone that can be asked alone, and capacity of one's own, are not kept from anybody.
func TestAZoneThatJustFailedIsNotAskedByTheNextWorkload(t *testing.T) {
	ordered := func(scheduling *api.SchedulingConfig) func(*testing.T) *bench {
		return func(t *testing.T) *bench {
			t.Helper()
			b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
			b.policy("policies: {night: {preset: spot, switches: {recreate_non_spot: yes}, zones: [" + fleettest.OtherZone + "]}}")
			w := b.Slice(cloudtputest.NodeConfig{Order: &api.Node{RuntimeVersion: "r", SchedulingConfig: scheduling}, Labels: fleettest.Label("night")})
			b.Report(w, slice, fleettest.Progress(1000))
			b.Clock.Advance(time.Minute)
			b.Must(b.API.SetState(zone, slice, "TERMINATED"))
			b.Look(zone, slice)
			b.tick(bounds.HealFor)
			b.request = b.next()
			b.deletes(zone)
			b.Want(b.request.Action, events.ActionCreate)
			return b
		}
	}
	otherCannot := func(t *testing.T) *bench {
		t.Helper()
		b := inTwoZones(t)
		b.moves()
		b.API.Inject(cloudtputest.Fault{Method: "CreateNode", Code: 3, Message: "the accelerator v5litepod-16 was not found in zone " + b.request.Zone})
		b.Want(b.deliver(), fleettest.Handled)
		b.tick(3 * time.Minute)
		b.request = b.next()
		b.Want(b.request.Zone, zone)
		return b
	}
	same := func(*incident.Slot) {}
	for name, c := range map[string]struct {
		of   func(*testing.T) *bench
		ago  time.Duration
		told func(*incident.Slot)
		// asked says that it asks the zone all the same.
		asked bool
	}{
		"just now":             {inTwoZones, time.Minute, same, false},
		"a while ago":          {inTwoZones, ledger.StockoutFor, same, true},
		"of another size":      {inTwoZones, time.Minute, func(s *incident.Slot) { s.Accelerator = "v5litepod-8" }, true},
		"not for Spot":         {inTwoZones, time.Minute, func(s *incident.Slot) { s.Capacity = events.OnDemand }, true},
		"on demand":            {ordered(nil), time.Minute, same, false},
		"reserved":             {ordered(&api.SchedulingConfig{Reserved: true}), time.Minute, same, true},
		"of a reservation":     {ordered(&api.SchedulingConfig{ReservationName: "projects/demo/locations/" + zone + "/reservations/r"}), time.Minute, same, true},
		"in its zone alone":    {toCreate, time.Minute, same, true},
		"the other can't give": {otherCannot, time.Minute, same, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.of(t)
			kind := b.Workload(id).Slices[0]
			c.told(&kind)
			b.Must(b.Ledger.RememberStockout(t.Context(), fleettest.Project, zone, kind, "demo/mixtral", b.Clock.Now().Add(-c.ago)))
			b.Calls()
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(fleettest.Count(b.Calls(), "CreateNode") == 1, c.asked)
			if name != "just now" {
				return
			}
			in := b.Shown(id).Incident
			b.Want(in.Zones[0].Text, "no capacity: demo/mixtral was refused there 1 m 0 s ago")
			b.Want(in.Calls[len(in.Calls)-1].NotMade, true)
			b.request = b.next()
			b.Want(b.request.Zone, fleettest.OtherZone)
			b.API.Inject(noCapacity)
			b.Want(b.deliver(), fleettest.Handled)
			b.tick(3 * time.Minute)
			if b.request = b.next(); b.request.Zone != zone { // the other's turn comes sooner again
				b.moves()
			}
			b.Want(b.request.Zone, zone) // it is still remembered, and its own turn has come
			b.Calls()
			b.API.Inject(noCapacity)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(fleettest.Count(b.Calls(), "CreateNode"), 1)
			o, _, err := b.Ledger.Stockout(t.Context(), fleettest.Project, zone, kind, b.Clock.Now())
			b.Must(err)
			b.Want(o.Workload, id)
			b.Want(o.At, b.Clock.Now())
		})
	}
}

// waiting is a slice of a queued resource that was lost and ordered again: the second order waits for capacity.
func waiting(t *testing.T) *bench {
	t.Helper()
	b := inQueue(t, slice)
	b.Must(b.API.Preempt(zone, slice))
	b.finds(5 * time.Minute)
	b.Want(b.deliver(), fleettest.Handled)
	b.API.SetCapacity(zone, 0)
	b.finds(10 * time.Minute)
	b.Want(b.deliver(), fleettest.Handled)
	b.Clock.Advance(5 * time.Minute)
	b.look()
	b.Calls()
	return b
}

// inQueue has nodes of one queued resource that live.
func inQueue(t *testing.T, names ...string) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	q := cloudtputest.QueuedConfig{Zone: zone, Name: queue, Spot: true}
	for _, name := range names {
		q.Nodes = append(q.Nodes, cloudtputest.NodeConfig{
			Zone: zone, Name: name, Spot: true, Created: b.Clock.Now().Add(-72 * time.Hour), Labels: fleettest.Label("spot"),
			Metadata: map[string]string{"name": name, "startup-script": "x"},
		})
	}
	b.Must(b.API.AddQueuedResource(q))
	for _, name := range names {
		b.Look(zone, name)
	}
	return b
}

// finds lets time pass, and takes up the request that a look at the workload leads to.
func (b *bench) finds(after time.Duration) {
	b.T.Helper()
	b.Clock.Advance(after)
	b.look()
	b.request = b.next()
}

const queue = "llama-qr"

// look reads the workload, as patrol would.
func (b *bench) look() {
	b.T.Helper()
	_, err := b.Fleet.Look(b.T.Context(), b.Workload(queued))
	b.Must(err)
}

// release lets the owner create the slice: the incident ends, and its own order is left over.
func (b *bench) release() {
	b.T.Helper()
	b.Give(b.Workload(queued), evidence.Called{
		Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActCreated, Method: "CreateNode", Principal: fleettest.Owner,
	})
	b.request = b.next()
}

const queued = fleettest.Project + "/" + queue

func TestAQueuedResourceOfOursThatNobodyWaitsForIsCancelled(t *testing.T) {
	b := waiting(t)
	b.release()
	b.Want(b.deliver(), fleettest.Handled)
	calls := b.Calls()
	b.Want(calls[len(calls)-1], "DeleteQueuedResource "+zone+"/"+queue+" as "+ledger.RequestID(b.request.Request, zone))
	b.Clock.Advance(10 * time.Minute)
	b.look()
	if w := b.Shown(queued); w.Incident != nil || w.Closed.Outcome != view.Released {
		t.Errorf("it stands at %+v, closed %+v", w.Incident, w.Closed)
	}
	b.Want(b.API.QueuedResources(zone), []string(nil))
}

// TestAnotherQueuedResourceOfThatNameIsNotCancelled: between the decision and the call somebody else has put theirs there.
func TestAnotherQueuedResourceOfThatNameIsNotCancelled(t *testing.T) {
	b := waiting(t)
	b.release()
	b.Must(b.API.OwnerDeleteQueuedResource(zone, queue, fleettest.Owner))
	b.Clock.Advance(5 * time.Minute)
	order := cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true}
	b.Must(b.API.OwnerCreateQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: queue, Spot: true, Nodes: []cloudtputest.NodeConfig{order}}, fleettest.Owner))
	b.Clock.Advance(time.Minute)
	b.Want(b.deliver(), fleettest.Ignored)
	for _, call := range b.Calls() {
		if strings.HasPrefix(call, "Delete") {
			t.Errorf("it called %s", call)
		}
	}
}

// halves are the slices of a Multislice that one queued resource holds.
var halves = []string{"llama-0", "llama-1"}

// multislice is a Multislice in one queued resource of which the service has taken the first slice, and with it the rest.
func multislice(t *testing.T) *bench {
	t.Helper()
	b := inQueue(t, halves...)
	b.Must(b.API.Preempt(zone, halves[0]))
	b.finds(10 * time.Minute)
	b.Calls()
	return b
}

// halfKnown is a Multislice that loses its first slice before anybody has seen the other.
func halfKnown(t *testing.T) *bench {
	t.Helper()
	b := multislice(t)
	b.Change(queued, func(w *incident.Workload) { w.Slices, w.Effects[0].With = w.Slices[:1], nil })
	b.request.With = nil
	return b
}

// TestWhatAnotherWorkloadHasInTheQueuedResourceIsNotDeletedWithIt: its owner may have labelled its slices apart.
func TestWhatAnotherWorkloadHasInTheQueuedResourceIsNotDeletedWithIt(t *testing.T) {
	b := halfKnown(t)
	another := b.Slice(cloudtputest.NodeConfig{Name: "other"})
	b.Must(b.Ledger.Map(t.Context(), fleettest.Project, zone, ledger.Node, halves[1], ledger.Subject{Workload: another.ID, Slice: halves[1]}))
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(len(b.mutating()), 0)
	if w := b.Shown(queued); w.Incident != nil || !strings.Contains(w.Closed.Reason, "holds llama-1 too, which belongs to demo/other") {
		t.Errorf("it stands at %+v, closed %+v", w.Incident, w.Closed)
	}
}

func TestWhatNobodyHadSeenOfAQueuedResourceIsDecidedOnFirst(t *testing.T) {
	b := halfKnown(t)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(len(b.mutating()), 0)
	b.finds(time.Minute)
	b.Want(len(b.request.With), 1)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(len(b.mutating()), 1)
}

func TestAMultisliceOfWhichOneLivesAsAnotherIsNotDeleted(t *testing.T) {
	b := multislice(t)
	b.Must(b.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: halves[1], Spot: true}, fleettest.Owner))
	b.Clock.Advance(time.Minute)
	// The ledger was written by a clock ahead of ours, and takes the reading for an older one.
	b.Change(queued, func(w *incident.Workload) { w.Slices[1].Since = b.Clock.Now().Add(time.Minute) })
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(len(b.mutating()), 0)
}

// mutating are the calls that change something.
func (b *bench) mutating() []string {
	return slices.DeleteFunc(b.Calls(), func(call string) bool { return strings.HasPrefix(call, "Get") || strings.HasPrefix(call, "List") })
}

// TestNothingIsCreatedElsewhereBesideWhatAnEarlierTryBrings: the first call timed out, and the second was refused for
// capacity. Another zone is about to be asked when the first call turns out to have brought a slice after all.
func TestNothingIsCreatedElsewhereBesideWhatAnEarlierTryBrings(t *testing.T) {
	b := inTwoZones(t)
	b.API.Inject(cloudtputest.Fault{Method: "CreateNode", LoseRequest: true})
	b.Want(b.deliver(), fleettest.Handled)
	b.tick(2 * time.Minute)
	b.request = b.next()
	b.Want(b.request.Zone, zone)
	b.moves()
	b.Want(b.request.Zone, fleettest.OtherZone)
	labels := map[string]string{events.LabelPolicy: "night", events.LabelIncident: b.request.Incident, events.LabelWorkload: "llama"}
	_, err := b.API.AddNode(cloudtputest.NodeConfig{
		Zone: zone, Name: slice, Spot: true, Labels: labels, State: "CREATING", Created: b.Clock.Now(),
		Metadata: map[string]string{events.MetadataCheckpointDir: fleettest.Directory, "startup-script": "train"},
	})
	b.Must(err)
	b.Clock.Advance(10 * time.Second)
	b.Calls()
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(fleettest.Count(b.Calls(), "CreateNode"), 0)
	b.Want(b.Workload(id).Slices[0].Maker, b.request.Incident)
}
