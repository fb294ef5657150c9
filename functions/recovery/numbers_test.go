package recovery_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// says writes a line into the log of the slice's crew, as every account of a TPU may, and hands it to the function logevent.
func (b *bench) says(r events.CrewReport) {
	b.T.Helper()
	b.Clock.Advance(time.Second)
	h := logevent.New(logevent.Deps{Fleet: b.Fleet, Projects: []string{fleettest.Project}, Accounts: events.Accounts{Ours: []string{fleettest.Us}}})
	r.Schema, r.Project, r.Zone, r.Node, r.Hostname = events.Schema, fleettest.Project, zone, slice, group+"-w-0"
	b.Deliver(h, fleettest.Message(trainingtest.CrewEntry(r, b.Clock.Now(), 1), b.Clock.Now()))
}

// named puts the lease of a crew in place that trains in the slice's life of the moment.
func (b *bench) named(attempt int) {
	b.T.Helper()
	b.Must(checkpoint.WriteLease(b.T.Context(), b.Store, fleettest.Directory, checkpoint.Lease{
		Schema: events.Schema, Workload: id, Attempt: attempt, Written: b.Clock.Now(), By: "crew",
		Admitted: []events.Admission{{Slice: slice, Incarnation: events.Incarnation{Zone: zone}, Workers: group}},
	}))
}

// follow carries out the requests for recovery of so many minutes, and calls after each minute.
func (b *bench) follow(minutes int, after func()) {
	b.T.Helper()
	for range minutes {
		b.Clock.Advance(time.Minute)
		b.Look(zone, slice)
		b.Give(b.Workload(id), evidence.Ticked{})
		for _, env := range b.Sender.Sent() {
			if env.Type == events.TypeRecoveryRequested {
				r, err := events.DecodeRecoveryRequested(env.Data)
				b.Must(err)
				b.request = r
				b.deliver()
			}
		}
		after()
	}
}

// TestALineSetsNoAttempt: the next attempt follows from the lease in the bucket, or from what stands beside it. What lines tell counts for
// nothing, however high it is.
func TestALineSetsNoAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		stands func(b *bench)
		want   int
	}{
		"a lease":                            {func(b *bench) { b.named(7) }, 8},
		"no lease, and files of 12 attempts": {func(b *bench) { b.left(3, 12, events.MaxAttempt) }, 13},
		"no lease, and no file":              {func(*bench) {}, 4},
		"a lease that cannot be parsed": {func(b *bench) {
			b.Storage.Put(fleettest.Bucket, "run/"+checkpoint.LeaseName, []byte("garbage"))
			b.left(6)
		}, 7},
	} {
		for _, told := range []int{900, events.MaxAttempt} {
			t.Run(fmt.Sprintf("%s, told %d", name, told), func(t *testing.T) {
				b := toRestart(t)
				c.stands(b)
				for _, kind := range []events.Report{events.ReportStarted, events.ReportExited} {
					b.says(events.CrewReport{Report: kind, Attempt: told, Step: 1, ExitCode: 1})
				}
				b.deliver()
				b.follow(20, func() {})
				if l, _ := b.lease(); l.Attempt != c.want {
					t.Errorf("the lease names attempt %d, want %d", l.Attempt, c.want)
				}
			})
		}
	}
}

// TestTheLeaseThatIsReadSaysWhichAttemptRuns: a crew has begun its training that often, so its lines count from then on.
func TestTheLeaseThatIsReadSaysWhichAttemptRuns(t *testing.T) {
	b := toRestart(t)
	b.named(5000)
	b.Want(b.deliver(), fleettest.Handled)
	b.says(events.CrewReport{Report: events.ReportProgress, Attempt: 5001, Step: 7000})
	b.Want(b.Shown(id).Training.Step, int64(7000))
}

// left puts files of crews beside the checkpoints, as attempts leave them.
func (b *bench) left(attempts ...int) {
	for _, n := range attempts {
		b.Storage.Put(fleettest.Bucket, "run/"+events.VerdictObject(n), []byte("{}"))
	}
}

// TestARedeliveryKeepsTheAttempt that the first delivery has counted, unless crews have passed it by themselves: no attempt comes back.
func TestARedeliveryKeepsTheAttempt(t *testing.T) {
	for stands, want := range map[int]int{7: 8, 8: 8, 9: 9} {
		b := toRestart(t)
		b.named(7)
		b.CrashAfter(fleettest.Begun)
		b.Want(b.deliver(), fleettest.Redelivered)
		if b.Clock.Advance(time.Second); stands > 7 {
			b.named(stands)
		}
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(len(b.Shown(id).Requests), 0)
		l, _ := b.lease()
		b.Want(l.Attempt, want)
		b.Want(l.By, "pitstop")
	}
}

// TestAnAnswerThatWasLostAsksForNoFurtherAttempt: the request comes again under a new epoch, and the lease names its attempt already.
func TestAnAnswerThatWasLostAsksForNoFurtherAttempt(t *testing.T) {
	b := toRestart(t)
	b.named(7)
	b.Storage.OnChange(func(string, string, bool) { b.Break(ledger.Workloads) })
	b.Want(b.deliver(), fleettest.Redelivered)
	b.Mend()
	b.Storage.OnChange(nil)
	b.follow(20, func() {})
	l, _ := b.lease()
	b.Want(l.Attempt, 8)
	b.Want(l.Epoch > 3, true)
}

// TestAStartedLineVoidsNoRequest: somebody writes once a minute that the next attempt has started. Only the lease in the bucket says so.
func TestAStartedLineVoidsNoRequest(t *testing.T) {
	for name, begin := range map[string]func(*testing.T) *bench{"to admit": toAdmit, "to restart": toRestart} {
		t.Run(name, func(t *testing.T) {
			b := begin(t)
			_, err := b.Fleet.MapGroup(t.Context(), b.Workload(id), b.Workload(id).Slices[0], group)
			b.Must(err)
			forge := func() { b.says(events.CrewReport{Report: events.ReportStarted, Attempt: b.request.TrainingAttempt}) }
			forge()
			b.deliver()
			b.follow(5, forge)
			l, ok := b.lease()
			if life := b.API.Incarnation(zone, slice); !ok || !l.Admits(slice, life, group, 0) {
				t.Errorf("the lease was not written: %+v", l)
			}
		})
	}
}

// TestAnAttemptThatRunsIsNotEnded: a crew has taken the lease over, or has begun the next attempt by itself. The lease that Pitstop writes
// names that attempt, so its training goes on.
func TestAnAttemptThatRunsIsNotEnded(t *testing.T) {
	t.Run("to admit", func(t *testing.T) {
		b := toAdmit(t)
		_, err := b.Fleet.MapGroup(t.Context(), b.Workload(id), b.Workload(id).Slices[0], group)
		b.Must(err)
		b.named(5)
		b.Want(b.deliver(), fleettest.Handled)
		l, _ := b.lease()
		b.Want(l.Attempt, 5)
		b.Want(b.open().Phase, view.Resuming)
	})
	t.Run("to restart", func(t *testing.T) {
		for _, told := range []bool{true, false} { // which changes nothing
			for since, want := range map[time.Duration]int{0: 5, time.Second: 4} {
				b := toRestart(t)
				b.Clock.Advance(since)
				b.named(4)
				if told {
					b.says(events.CrewReport{Report: events.ReportStarted, Attempt: 4})
				}
				b.Want(b.deliver(), fleettest.Handled)
				l, _ := b.lease()
				b.Want(l.Attempt, want)
			}
		}
	})
}

// TestLinesKeepNoAttemptInTheLease: they say that the next attempt began, and then that the former one does steps.
func TestLinesKeepNoAttemptInTheLease(t *testing.T) {
	b := toRestart(t)
	b.named(3)
	b.says(events.CrewReport{Report: events.ReportStarted, Attempt: 4})
	b.says(events.CrewReport{Report: events.ReportProgress, Attempt: 3})
	b.Want(b.deliver(), fleettest.Handled)
	l, _ := b.lease()
	b.Want(l.Attempt, 4)
}

// TestRetryPutsAnImplausibleAttemptRight: the lease names attempt 1,000,000 or 1,000,001, and no attempt can follow.
func TestRetryPutsAnImplausibleAttemptRight(t *testing.T) {
	for _, stands := range []int{events.MaxAttempt, events.MaxAttempt + 1} {
		b := toRestart(t)
		b.Storage.Put(fleettest.Bucket, "run/"+checkpoint.LeaseName, fmt.Appendf(nil, `{"schema":1,"workload":"%s","epoch":1,"attempt":%d,`+
			`"admitted":[],"written":"2026-03-01T00:00:00Z","by":"pitstop"}`, id, stands))
		b.left(5, stands)
		b.deliver()
		b.follow(20, func() {})
		in := b.Shown(id).Closed
		if in == nil || in.Code != reason.CodeLeaseDoubted || !strings.Contains(in.Advice, "pitstop retry llama") {
			t.Fatalf("%d: closed %+v, want %s and the way out", stands, in, reason.CodeLeaseDoubted)
		}
		b.Clock.Advance(time.Hour)
		b.Give(b.Workload(id), evidence.Retried{Word: evidence.Word{By: "ann@example.com", Why: "nobody trained that often"}})
		b.follow(5, func() {})
		l, _ := b.lease()
		if l.Attempt != 6 && l.Attempt != 7 {
			t.Errorf("the lease names attempt %d, want one after the 5 that have left files", l.Attempt)
		}
		b.says(events.CrewReport{Report: events.ReportProgress, Attempt: l.Attempt, Step: 5000, CheckpointStep: 4990})
		b.Want(b.Shown(id).Training.Step, int64(5000))
	}
}
