package checkpoint_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// workers is what the host names of the slice's workers have in common, in the life that the lease names.
const workers = "t1v-n-1"

// toHear is a training whose crew says in a line that it gave up after its second attempt, and the request to read its verdict. The
// lease names that attempt.
func toHear(t *testing.T) *bench {
	t.Helper()
	b := &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}
	w := b.Slice(cloudtputest.NodeConfig{Spot: true, Labels: fleettest.Label("spot")})
	b.Report(w, slice, fleettest.Progress(1000))
	b.Clock.Advance(time.Minute)
	lease := checkpoint.Lease{
		Workload: id, Attempt: 2, Written: b.Clock.Now(), By: "crew",
		Admitted: []events.Admission{{Slice: slice, Incarnation: w.Slices[0].Incarnation, Workers: workers}},
	}
	b.Must(checkpoint.WriteLease(t.Context(), b.Store, fleettest.Directory, lease))
	b.Report(w, slice, events.CrewReport{Schema: events.Schema, Report: events.ReportGaveUp, Attempt: 2, Reason: "exit code 1"})
	b.request = b.next()
	b.Calls()
	return b
}

// verdict leaves the crew's verdict beside the checkpoints.
func (b *bench) verdict(change func(*events.CrewVerdict)) {
	v := events.CrewVerdict{
		Schema: events.Schema, Attempt: 2, Ended: b.Clock.Now(), Reason: "exit code 1",
		Life: events.Admission{
			Slice: slice, Incarnation: events.Incarnation{Zone: b.Workload(id).Slices[0].Zone}, Workers: workers,
		},
	}
	if change != nil {
		change(&v)
	}
	b.Must(checkpoint.CreateVerdict(b.T.Context(), b.Store, fleettest.Directory, v))
}

// TestARestartIsSpentOnAVerdictAlone reads what the crew left. The lease confirms a verdict by attempt and life.
func TestARestartIsSpentOnAVerdictAlone(t *testing.T) {
	for name, c := range map[string]struct {
		left     func(b *bench)
		restarts int
		outcome  view.Outcome
	}{
		"it gave up":           {func(b *bench) { b.verdict(nil) }, 1, ""},
		"there is none":        {func(*bench) {}, 0, ""},
		"of another zone":      {func(b *bench) { b.verdict(func(v *events.CrewVerdict) { v.Life.Incarnation.Zone = "us-east5-a" }) }, 0, ""},
		"of another slice":     {func(b *bench) { b.verdict(func(v *events.CrewVerdict) { v.Life.Slice = "other" }) }, 0, ""},
		"on an older attempt":  {func(b *bench) { b.verdict(func(v *events.CrewVerdict) { v.Attempt = 1 }) }, 0, ""},
		"on a later attempt":   {func(b *bench) { b.verdict(func(v *events.CrewVerdict) { v.Attempt = 3 }) }, 0, ""},
		"it finished":          {func(b *bench) { b.verdict(func(v *events.CrewVerdict) { v.Finished = true }) }, 0, view.Resumed},
		"it goes on by itself": {func(b *bench) { b.verdict(func(v *events.CrewVerdict) { v.Restart = true }) }, 0, ""},
		"of another life in the same zone": {func(b *bench) {
			b.verdict(func(v *events.CrewVerdict) { v.Life.Workers = "t1v-n-2" })
		}, 0, ""},
		"not a verdict": {func(b *bench) {
			b.Storage.Put(fleettest.Bucket, "run/"+events.VerdictObject(2), []byte("forged"))
		}, 0, ""},
		"the bucket is away": {func(b *bench) {
			b.verdict(nil)
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodGet, Status: 503, Times: 20})
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := toHear(t)
			c.left(b)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.restarts(), c.restarts)
			w := b.Shown(id)
			outcome := view.Outcome("")
			if w.Closed != nil {
				outcome = w.Closed.Outcome
			}
			b.Want(outcome, c.outcome)
			b.Want(b.Calls(), []string(nil)) // it reads, and calls nothing
		})
	}
}

// TestTheLeaseSaysWhichAttemptRuns: a line of an attempt far above it was refused, and counts once the lease that names it was read.
func TestTheLeaseSaysWhichAttemptRuns(t *testing.T) {
	for _, named := range []int{2, 5000} {
		b := toHear(t)
		l, _, err := checkpoint.ReadLease(t.Context(), b.Store, fleettest.Directory)
		b.Must(err)
		l.Attempt = named
		b.Must(checkpoint.WriteLease(t.Context(), b.Store, fleettest.Directory, l))
		b.Want(b.deliver(), fleettest.Handled)
		b.Clock.Advance(time.Minute)
		line := fleettest.Progress(2000)
		line.Attempt = 5000
		b.Report(b.Workload(id), slice, line)
		b.Want(b.Shown(id).Training.Step, map[int]int64{2: 1000, 5000: 2000}[named])
	}
}

// TestWhatIsSavedIsReadBesideTheVerdict: a decision that waits for the verdict may rest on the newest complete checkpoint.
func TestWhatIsSavedIsReadBesideTheVerdict(t *testing.T) {
	b := toHear(t)
	b.commit("900")
	b.Want(b.deliver(), fleettest.Handled)
	p := b.Shown(id).Training
	b.Want(p.Verified, int64(900))
	b.Want(p.VerifiedURI, fleettest.Directory+"/900")
	b.Want(p.VerifiedAt.IsZero(), false)
}
