package trainingtest_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/api/option"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// TestMaintenanceWaitsForAProcessThatCheckpointsItself begins maintenance without a notice. If the node has autocheckpoint,
// its process gets SIGTERM first, and maintenance waits up to five minutes until it exits.
func TestMaintenanceWaitsForAProcessThatCheckpointsItself(t *testing.T) {
	const step = 10 * time.Second
	for name, c := range map[string]struct {
		off      bool
		training trainingtest.Config
		begins   time.Duration
		saved    int64
		finished bool
	}{
		"saved in time":               {training: trainingtest.Config{}, begins: 40 * time.Second, saved: 90, finished: true},
		"saved in time, without crew": {training: trainingtest.Config{NoCrew: true}, begins: 40 * time.Second, saved: 90},
		"too late":                    {training: trainingtest.Config{SaveTakes: 7 * time.Minute}, begins: 5 * time.Minute, saved: 60},
		"the signal is not handled":   {training: trainingtest.Config{OnSignal: trainingtest.Dies}, begins: 0, saved: 60},
		"the signal is ignored":       {training: trainingtest.Config{OnSignal: trainingtest.IgnoresSignal}, begins: 5 * time.Minute, saved: 60},
		"autocheckpoint is off":       {off: true, begins: 0, saved: 60},
	} {
		t.Run(name, func(t *testing.T) {
			clock := cloudtputest.NewManualClock(start)
			bucket := buckettest.New(clock.Now, "ckpt")
			store := checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: bucket.Transport()}))
			var began time.Time
			var training *trainingtest.Training
			cloud := cloudtputest.New(cloudtputest.Config{Clock: clock})
			cloud.Observe(func(e cloudtputest.Event) {
				if e.Kind == cloudtputest.Unhealthy {
					began = clock.Now()
				}
				if training != nil {
					training.Observe(e)
				}
			})
			life, err := cloud.AddNode(cloudtputest.NodeConfig{
				Zone: home, Name: "llama", Group: "t1v-n-00000001", Order: &api.Node{RuntimeVersion: "v2-alpha-tpuv5-lite", AutocheckpointEnabled: !c.off},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.training.Project, c.training.Slice, c.training.Workload, c.training.Clock = "demo", "llama", trained, clock
			c.training.Bucket, c.training.Directory, c.training.StepTakes = bucket, directory, step
			c.training.Emit = func([]byte) {}
			c.training.Exited = func() {
				if err := cloud.Exited(home, "llama"); err != nil {
					t.Error(err)
				}
			}
			training = trainingtest.New(c.training, life, "t1v-n-00000001", 4)
			clock.Advance(15*time.Minute + step/2) // step 90, and the checkpoint of step 60 is complete
			if c.training.SaveTakes > 0 {
				clock.Advance(c.training.SaveTakes - 5*time.Minute) // it takes longer too
				c.saved = 60
			}
			at := clock.Now()
			if err := cloud.Maintain(home, "llama", 20*time.Minute); err != nil {
				t.Fatal(err)
			}
			clock.Advance(6 * time.Minute)
			if began.Sub(at) != c.begins {
				t.Errorf("maintenance begins after %v, want %v", began.Sub(at), c.begins)
			}
			found, err := checkpoint.Verify(t.Context(), store, directory, checkpoint.Want{})
			if err != nil || found.Step != c.saved {
				t.Errorf("saved is %+v, %v; want step %d", found, err, c.saved)
			}
			v, err := checkpoint.ReadVerdict(t.Context(), store, directory, 1)
			if finished := err == nil && v.Finished; finished != c.finished {
				t.Errorf("the crew calls it finished: %v (%+v, %v), want %v", finished, v, err, c.finished)
			}
			clock.Advance(30 * time.Minute) // it is usable again, and the start-up script runs
			if again, running := training.Running(); !running || !again.Same(life) {
				t.Error("the training does not go on")
			}
		})
	}
}

// TestAGuestAttributeHasTheVerdict: it is read where there is no directory, until another attempt begins.
func TestAGuestAttributeHasTheVerdict(t *testing.T) {
	r := train(t, trainingtest.Config{})
	r.to(10 * time.Minute)
	if s, ok := r.State(); !ok || s.Verdict != nil {
		t.Fatalf("while it runs: %+v, %v", s, ok)
	}
	r.Finish()
	s, ok := r.State()
	want := events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: home}, Workers: "t1v-n-00000001"}
	if !ok || s.Verdict == nil || !s.Verdict.Finished || s.Verdict.Life != want {
		t.Errorf("when it is done: %+v, %v", s.Verdict, ok)
	}
}
