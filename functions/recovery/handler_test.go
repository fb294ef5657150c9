package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	id    = fleettest.Project + "/llama"
	zone  = fleettest.Zone
	slice = "llama"
	group = "t1v-n-0a1b2c3d"
	read  = "GetNode " + zone + "/" + slice
)

// bench has one request to carry out.
type bench struct {
	*fleettest.Bench
	request events.RecoveryRequested
}

// toRestart is a training whose crew has given up at its third attempt, and the request for a fourth.
func toRestart(t *testing.T) *bench {
	t.Helper()
	return toRestartAfter(t, func(*bench) {})
}

// toRestartAfter is toRestart after something has happened.
func toRestartAfter(t *testing.T, before func(b *bench)) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t)}
	before(b)
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group, Created: b.Clock.Now()})
	w, err := b.Fleet.MapGroup(t.Context(), w, w.Slices[0], group)
	b.Must(err)
	b.Clock.Advance(time.Minute)
	w = b.Report(w, slice, events.CrewReport{
		Schema: events.Schema, Report: events.ReportGaveUp, Attempt: 3, Hostname: group + "-w-0", Reason: "exit code 1",
	})
	b.Sender.Sent() // the crew's verdict is asked for, and its guest attribute was faster
	b.Confirm(w, slice, 3, false)
	b.request = b.next()
	return b
}

// toAdmit is a slice that was recreated after a preemption, and the request to admit training to it.
func toAdmit(t *testing.T) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t)}
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Group: group})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Clock.Advance(time.Minute)
	b.Must(b.API.Preempt(zone, slice))
	b.Look(zone, slice)
	b.Sender.Sent()
	b.Must(b.API.Vanish(zone, slice))
	b.Look(zone, slice)
	create, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	_, err := b.Fleet.Advancer.Begin(t.Context(), create.Request, "request-id")
	b.Must(err)
	b.Clock.Advance(time.Minute)
	labels := map[string]string{events.LabelPolicy: "spot", events.LabelIncident: create.Incident}
	b.Slice(cloudtputest.NodeConfig{Spot: true, Labels: labels, Created: b.Clock.Now()})
	b.request = b.next()
	return b
}

func (b *bench) next() events.RecoveryRequested {
	b.T.Helper()
	r, _ := fleettest.One(b.T, b.Bench, events.DecodeRecoveryRequested)
	return r
}

func (b *bench) handle() trigger.Handle {
	return recovery.New(recovery.Deps{Fleet: b.Fleet, Provider: b.Cloud, Store: b.Store})
}

func (b *bench) deliver() string {
	b.T.Helper()
	return b.Deliver(b.handle(), fleettest.Request(b.request))
}

// lease is the lease in place, and whether there is one.
func (b *bench) lease() (checkpoint.Lease, bool) {
	b.T.Helper()
	content, _, ok := b.Storage.Get(fleettest.Bucket, "run/"+checkpoint.LeaseName)
	if !ok {
		return checkpoint.Lease{}, false
	}
	l, err := checkpoint.DecodeLease(content)
	b.Must(err)
	return l, true
}

func (b *bench) open() view.Incident {
	b.T.Helper()
	in := b.Shown(id).Incident
	if in == nil {
		b.T.Fatal("no incident is open")
	}
	return *in
}

func TestTheLeaseNamesTheNextAttempt(t *testing.T) {
	b := toRestart(t)
	b.request.Reason = ""
	admit := []events.Admission{{Slice: slice, Incarnation: b.API.Incarnation(zone, slice), Workers: group}}
	b.Want(b.request, events.RecoveryRequested{
		Request: events.Request{
			Schema: events.Schema, Workload: id, Incident: "llama-20260301-1", Epoch: 3, Action: events.ActionRestart, Attempt: 1,
			Expires: b.Clock.Now().Add(bounds.RequestFor),
		},
		TrainingAttempt: 4, Admit: admit, Directory: fleettest.Directory,
	})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Calls(), []string{read})
	l, _ := b.lease()
	b.Want(l, checkpoint.Lease{
		Schema: events.Schema, Workload: id, Incident: b.request.Incident, Epoch: 3, Attempt: 4, Admitted: admit, Written: b.Clock.Now(), By: "pitstop",
	})
	b.Want(b.open().Phase, view.Resuming)
	b.Want(len(b.Sender.Sent()), 0)

	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.Storage.Calls(buckettest.MethodInsert), 1)
}

func TestTheLeaseAdmitsTheNewIncarnation(t *testing.T) {
	b := toAdmit(t)
	life := b.API.Incarnation(zone, slice)
	b.Want(b.request.Action, events.ActionAdmit)
	b.Want(b.request.Admit, []events.Admission{{Slice: slice, Incarnation: life}})
	// The names of the hosts are learned on the way.
	w := b.Workload(id)
	_, err := b.Fleet.MapGroup(t.Context(), w, w.Slices[0], group)
	b.Must(err)
	b.Want(b.deliver(), fleettest.Handled)
	l, _ := b.lease()
	b.Want(l.Admitted, []events.Admission{{Slice: slice, Incarnation: life, Workers: group}})
	b.Want(b.Shown(id).Slices[0].Admitted, true)
	b.Want(b.open().Phase, view.Resuming)
}

func TestALeaseIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench)
		calls  []string
		phase  view.Phase
		held   string
	}{
		"for an epoch that is over": {change: func(b *bench) { b.request.Epoch-- }, phase: view.Restarting},
		"for a slice that is lost":  {change: func(b *bench) { b.Must(b.API.Preempt(zone, slice)) }, calls: []string{read}, phase: view.PhaseDeleting},
		"for a slice under repair":  {change: func(b *bench) { b.Must(b.API.HostError(zone, slice, time.Hour)) }, calls: []string{read}, phase: view.Healing},
		"for a slice that is gone":  {change: func(b *bench) { b.Must(b.API.Vanish(zone, slice)) }, calls: []string{read}, phase: view.PhaseGrace},
		"when the switch is ask":    {change: func(b *bench) { b.Policies.Ceiling.Restart = policy.Ask }, calls: []string{read}, phase: view.Approving},
		"when the switch is no":     {change: func(b *bench) { b.Policies.Ceiling.Restart = policy.No }, calls: []string{read}},
		"when nothing is allowed":   {change: func(b *bench) { b.Policies.Ceiling = policy.Switches{} }, calls: []string{read}},
		"when the workload is paused": {change: func(b *bench) {
			b.Change(id, func(w *incident.Workload) { w.Pause = &evidence.Pause{By: "grace"} })
		}, calls: []string{read}, phase: view.Restarting, held: "paused by grace"},
	} {
		t.Run(name, func(t *testing.T) {
			b := toRestart(t)
			c.change(b)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.Calls(), c.calls)
			if l, ok := b.lease(); ok {
				t.Errorf("lease %+v", l)
			}
			if c.phase == "" {
				b.Want(b.Workload(id).Incident, (*incident.Incident)(nil))
				return
			}
			b.Want(b.open().Phase, c.phase)
			b.Want(b.Shown(id).Wait.Held, c.held)
		})
	}
}

// TestAFailureOfTheBucketIsEvidence covers what keeps a lease from being written: it is stored with a time for the next
// try, or handed to a person, and the message is acknowledged.
func TestAFailureOfTheBucketIsEvidence(t *testing.T) {
	theirs := []byte(`{"schema":1,"workload":"demo/other","epoch":1,"attempt":1,"admitted":[],"written":"2026-03-01T00:00:00Z"}`)
	for name, c := range map[string]struct {
		bucket    func(b *bench)
		escalates bool
		unknown   int // the tries that may have written the lease
	}{
		"it is away": {func(b *bench) { b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodInsert, Status: 503}) }, false, 1},
		"it is away for reading": {func(b *bench) {
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodGet, Status: 503})
		}, false, 0},
		"it is forbidden": {func(b *bench) {
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodInsert, Status: 403})
		}, true, 0},
		"it is forbidden to read": {func(b *bench) {
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodGet, Status: 403})
		}, true, 0},
		"another workload holds the lease": {func(b *bench) { b.Storage.Put(fleettest.Bucket, "run/"+checkpoint.LeaseName, theirs) }, true, 0},
		"there is no directory": {func(b *bench) {
			b.Change(id, func(w *incident.Workload) { w.Directory = "" })
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := toRestart(t)
			c.bucket(b)
			b.Want(b.deliver(), fleettest.Handled)
			w := b.Shown(id)
			if c.escalates {
				if w.Incident != nil || w.Closed.Outcome != view.Escalated {
					t.Errorf("open %+v, closed %+v, want it escalated", w.Incident, w.Closed)
				}
				return
			}
			b.Want(b.Shown(id).Requests[0].Retry, b.Clock.Now().Add(time.Minute))
			b.Want(len(b.Workload(id).Lease.Maybe), c.unknown)
			b.Want(b.deliver(), fleettest.Ignored)

			b.Clock.Advance(time.Minute)
			b.Give(b.Workload(id), evidence.Ticked{})
			b.request = b.next()
			b.Want(b.deliver(), fleettest.Handled)
			l, _ := b.lease()
			b.Want(l.Attempt, 4+c.unknown)
		})
	}
}

func TestALeaseWhoseAnswerWasLostIsNotWrittenTwice(t *testing.T) {
	b := toRestart(t)
	b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodInsert, LoseAnswer: true})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.Storage.Calls(buckettest.MethodInsert), 1)
	b.Want(b.open().Phase, view.Resuming)
}

func TestACrashIsMadeGood(t *testing.T) {
	t.Run("between the intent and the lease", func(t *testing.T) {
		b := toRestart(t)
		b.CrashAfter(fleettest.Begun)
		b.Want(b.deliver(), fleettest.Redelivered)
		b.Want(b.Storage.Calls(buckettest.MethodInsert), 0)
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(b.Storage.Calls(buckettest.MethodInsert), 1)
	})
	t.Run("behind the lease", func(t *testing.T) {
		b := toRestart(t)
		b.Storage.OnChange(func(string, string, bool) { b.Break(ledger.Workloads) })
		b.Want(b.deliver(), fleettest.Redelivered)
		b.Mend()
		b.Clock.Advance(10 * time.Second)
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(b.Storage.Calls(buckettest.MethodInsert), 1)
		b.Want(b.open().Phase, view.Resuming)
	})
}

// TestALeaseIsNotWrittenOnALookThatFailed: the slice to be admitted is gone again, and the API cannot be read.
func TestALeaseIsNotWrittenOnALookThatFailed(t *testing.T) {
	b := toAdmit(t)
	b.Must(b.API.Vanish(zone, slice)) // the life that is to be admitted is gone again
	b.API.Inject(cloudtputest.Fault{Method: "GetNode", Times: -1, Code: 14, Message: "away"})
	outcome := b.deliver()
	if l, ok := b.lease(); ok {
		t.Errorf("%s; the API could not be read, and the lease names a life that is gone: %+v", outcome, l.Admitted)
	}
}

// TestALeaseThatComesTooLateEndsNoTraining: the function stalls after it stored its intent, for less than its timeout of 300
// s. Meanwhile a person takes the incident over, deletes the slice and creates it again in the same zone; its crew takes the
// lease over and trains. The old lease must not end that training.
func TestALeaseThatComesTooLateEndsNoTraining(t *testing.T) {
	b := toAdmit(t)
	var theirs checkpoint.Lease
	b.Fleet.Advancer.Saved = func(_ context.Context, s ledger.Step) {
		if !fleettest.Begun(s.After) {
			return
		}
		b.Fleet.Advancer.Saved = nil
		b.Clock.Advance(time.Minute)
		w := b.Workload(id)
		b.Give(w, evidence.Cancelled{Word: evidence.Word{By: "ann", Why: "mine"}, Incident: w.Incident.ID})
		b.Give(b.Workload(id), evidence.Called{
			Origin: evidence.Origin{ID: "e", Time: b.Clock.Now(), Rank: events.RankAudit}, Slice: slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com",
		})
		b.Must(b.API.Vanish(zone, slice))
		b.Look(zone, slice)
		b.Clock.Advance(time.Minute)
		b.Slice(cloudtputest.NodeConfig{Spot: true, Created: b.Clock.Now(), Group: "t1v-n-99999999"})
		theirs = checkpoint.Lease{
			Schema: events.Schema, Workload: id, Epoch: 1, Attempt: 2, Written: b.Clock.Now(), By: "crew",
			Admitted: []events.Admission{{Slice: slice, Incarnation: b.API.Incarnation(zone, slice), Workers: "t1v-n-99999999"}},
		}
		b.Must(checkpoint.WriteLease(t.Context(), b.Store, fleettest.Directory, theirs))
		b.Clock.Advance(2 * time.Minute)
	}
	outcome := b.deliver()
	l, _ := b.lease()
	life := b.API.Incarnation(zone, slice)
	if !l.Admits(slice, life, "t1v-n-99999999", 0) {
		t.Errorf("%s; incident %v is over, and the lease that was written after that names %+v, while %v trains", outcome, b.Shown(id).Closed.Outcome, l.Admitted, life)
	}
}

// TestALeaseBeyondBeliefIsReplacedOnAPersonsWord puts a lease with impossibly high numbers in place. Pitstop reports it and
// leaves it; after a person says retry, Pitstop replaces it.
func TestALeaseBeyondBeliefIsReplacedOnAPersonsWord(t *testing.T) {
	for name, there := range map[string]string{
		"epoch 9000000000000000000":   `{"schema":1,"workload":"demo/llama","epoch":9000000000000000000,"attempt":1}`,
		"attempt 9000000000000000000": `{"schema":1,"workload":"demo/llama","epoch":1,"attempt":9000000000000000000}`,
		"schema 9000000000000000000":  `{"schema":9000000000000000000}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := toRestart(t)
			b.Storage.Put(fleettest.Bucket, "run/"+checkpoint.LeaseName, []byte(there))
			retry := func() incident.Workload {
				b.Clock.Advance(time.Minute)
				return b.Give(b.Workload(id), evidence.Retried{Word: evidence.Word{By: "ann@example.com", Why: "it is nobody's"}})
			}
			retry() // before the doubtful lease was reported, so this retry does not cover it
			b.Want(b.deliver(), fleettest.Handled)
			in := b.Shown(id).Closed
			if in == nil || in.Outcome != view.Escalated || in.Code != reason.CodeLeaseDoubted {
				t.Fatalf("closed %+v, want it escalated as %s", in, reason.CodeLeaseDoubted)
			}
			for _, want := range []string{"pitstop-lease.json", name, "nothing gets above"} {
				if !strings.Contains(in.Reason, want) || strings.Contains(in.Reason, "\n") {
					t.Errorf("%q is not said in one line: %s", want, in.Reason)
				}
			}
			if !strings.Contains(in.Advice, "pitstop retry llama") {
				t.Errorf("the way out is not said: %s", in.Advice)
			}
			content, _, _ := b.Storage.Get(fleettest.Bucket, "run/"+checkpoint.LeaseName)
			b.Want(string(content), there)

			b.Sender.Sent()
			b.Clock.Advance(time.Hour)
			w := retry()
			w = b.Give(w, evidence.Ticked{})
			b.request = b.next()
			b.Want(b.deliver(), fleettest.Handled)
			l, _ := b.lease()
			b.Want(l.Incident, w.Incident.ID)
			told := fmt.Sprint(b.open().Timeline)
			for _, want := range []string{"ann@example.com", "it is nobody's", "it replaces the implausible lease"} {
				if !strings.Contains(told, want) {
					t.Errorf("%q is not in the timeline: %s", want, told)
				}
			}
		})
	}
}
