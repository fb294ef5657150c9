package deploymenttest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// CanarySink brings a canary back to the ledger once it has been slept for so often.
type CanarySink struct {
	B      *Bench
	Sleeps int
	Err    error

	Project, ID string
	Written     time.Time
}

// WriteCanary implements deployment.CanaryWriter.
func (s *CanarySink) WriteCanary(_ context.Context, project, id string, at time.Time) error {
	s.Project, s.ID, s.Written = project, id, at
	return s.Err
}

// Exercise is a deployment on a clock of its own, in which time passes as it is slept.
func Exercise(t *testing.T, open ledger.Opener, happens map[int]func(*Bench), but ...func(*Story)) *Bench {
	t.Helper()
	b := New(t, open, Trains("llama-8b", but...))
	b.Bucket()
	b.PutCheckpoint("48000")
	now, sleeps := Noon, 0
	b.Now = func() time.Time { return now }
	b.Sleep = func(_ context.Context, d time.Duration) error {
		now = now.Add(d)
		sleeps++
		if f := happens[sleeps]; f != nil {
			f(b)
		}
		return nil
	}
	return b
}

// Opens opens an incident: maintenance has begun.
func Opens(b *Bench) {
	b.Tells(func(s *Story) {
		s.Announces(events.Notice{Status: events.NoticeOngoing, WindowStart: s.Now, WindowEnd: s.Now.Add(time.Hour)}).Reads(Is(evidence.Unhealthy, "REPAIRING"))
	})
}

// Resumes ends the open incident: training has done a step more.
func Resumes(b *Bench) {
	b.Tells(func(s *Story) {
		s.Now = s.Now.Add(-time.Second)
		s.Announces(events.Notice{Status: events.NoticeGone}).Reads(Is(evidence.Ready, "READY"))
		s.Now = s.Now.Add(time.Second)
		s.Writes(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 48_300, CheckpointStep: 48_000})
	})
}

// Fails ends the open incident: Google suspects abuse, which is for a person to settle.
func Fails(b *Bench) {
	b.Tells(func(s *Story) { s.Reads(func(r *evidence.Read) { r.Abuse = true }) })
}

// ByHost has each of Google's APIs answered by its own.
type ByHost map[string]http.RoundTripper

// RoundTrip implements http.RoundTripper.
func (h ByHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if t := h[r.URL.Host]; t != nil {
		return t.RoundTrip(r)
	}
	return nil, errors.New("nobody answers at " + r.URL.Host)
}

// CloudOf is a project's TPUs and its log, on a clock that passes as watch sleeps.
func CloudOf(t *testing.T) (b *Bench, api *cloudtputest.API, clock *cloudtputest.ManualClock) {
	t.Helper()
	b, api, clock, _ = LoggedCloud(t)
	return b, api, clock
}

// LoggedCloud is CloudOf with its log.
func LoggedCloud(t *testing.T) (b *Bench, api *cloudtputest.API, clock *cloudtputest.ManualClock, log *cloudlogtest.Log) {
	t.Helper()
	clock = cloudtputest.NewManualClock(Noon)
	api = cloudtputest.New(cloudtputest.Config{Clock: clock, Zones: map[string]int{"us-west4-a": cloudtputest.Unlimited, "us-west4-b": cloudtputest.Unlimited}})
	log = cloudlogtest.New("demo", clock.Now)
	api.Observe(func(e cloudtputest.Event) {
		for _, raw := range cloudtputest.SystemEntries(e) {
			log.Write(raw)
		}
	})
	b = New(t, ledgertest.NewStore().Open)
	b.Now = clock.Now
	b.Deployment.OpenReadOnly = func(ctx context.Context) (deployment.ReadOnlyClients, error) {
		through := deployment.ReadOnlyTransport{RoundTripper: ByHost{"tpu.googleapis.com": api.Transport(), "logging.googleapis.com": log.Transport()}}
		return deployment.ReadOnlyThrough(ctx, option.WithHTTPClient(&http.Client{Transport: through}))
	}
	if _, err := api.AddNode(cloudtputest.NodeConfig{
		Zone: "us-west4-a", Name: "llama-8b", Accelerator: "v5litepod-16", Spot: true, Created: Noon.Add(-48 * time.Hour),
		Labels: map[string]string{events.LabelPolicy: "spot"}, Metadata: map[string]string{"startup-script": "pitcrew run -- python3 train.py"},
	}); err != nil {
		t.Fatal(err)
	}
	return b, api, clock, log
}

// SpeedOn is the speed of an attempt as its crew keeps it.
func SpeedOn(attempt int, accelerator string, batch int64, rate float64) peers.Speed {
	return peers.Speed{
		Attempt: attempt, ExamplesPerSecond: rate, At: Noon,
		Measured: events.Measured{Accelerator: accelerator, Slices: 1, GlobalBatch: batch, Steps: 100, Seconds: 100 * float64(batch) / rate},
	}
}

// Measures keeps speeds in a directory as a crew does.
func (b *Bench) Measures(directory string, all ...peers.Speed) {
	b.T.Helper()
	for _, s := range all {
		if err := (peers.Board{Store: b.Checkpoints, Directory: directory}).SetSpeed(b.T.Context(), s); err != nil {
			b.T.Fatal(err)
		}
	}
}
