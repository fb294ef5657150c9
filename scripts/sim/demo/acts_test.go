package demo_test

import (
	"strings"
	"testing"
	"time"
)

// TestAnOwnerCreatesAgainWhatIsLeftAsAnEmptyQueuedResource deletes a TPU as gcloud does: its queued resource stays, SUSPENDED.
func TestAnOwnerCreatesAgainWhatIsLeftAsAnEmptyQueuedResource(t *testing.T) {
	for _, after := range []time.Duration{2*time.Minute + time.Second, time.Hour} {
		d := found(t)
		before := len(d.Lines(0))
		must(t, d.API.OwnerDelete("us-central1-a", "mixtral", d.Owner()))
		if err := d.Create(t.Context(), "mixtral"); err == nil || err.Error() != "mixtral is DELETING; wait until it is gone" {
			t.Errorf("while it is deleted: %v", err)
		}
		d.Forward(after)
		if err := d.Create(t.Context(), "mixtral"); err != nil {
			t.Fatalf("after %s: %v\n%s", after, err, told(d, before))
		}
		d.Forward(time.Hour)
		if _, runs := d.Trainings["mixtral"].Running(); !runs {
			t.Errorf("after %s: the training does not run\n%s", after, told(d, before))
		}
	}
}

// TestAnOwnerDeletesAnEmptyQueuedResource: it goes, and there is nothing to delete after that.
func TestAnOwnerDeletesAnEmptyQueuedResource(t *testing.T) {
	d := found(t)
	must(t, d.API.OwnerDelete("us-central1-a", "mixtral", d.Owner()))
	d.Forward(time.Hour)
	must(t, d.Delete(t.Context(), "mixtral"))
	d.Forward(time.Hour)
	if q := d.API.QueuedResource("us-central1-a", "mixtral-qr"); q != nil {
		t.Errorf("mixtral-qr is %s", q.State.State)
	}
	if err := d.Delete(t.Context(), "mixtral"); err == nil || !strings.Contains(err.Error(), "mixtral has no queued resource at the moment") {
		t.Errorf("the second time: %v", err)
	}
}

// TestARefusalOfTheAPINamesNoPackage: a queued resource cannot be deleted while its TPU is made.
func TestARefusalOfTheAPINamesNoPackage(t *testing.T) {
	d := found(t)
	must(t, d.Delete(t.Context(), "mixtral"))
	d.Forward(time.Hour)
	must(t, d.Create(t.Context(), "mixtral"))
	d.Forward(time.Minute)
	err := d.Delete(t.Context(), "mixtral")
	if err == nil || !strings.HasPrefix(err.Error(), "the simulated Cloud TPU API refuses that: ") || strings.Contains(err.Error(), "cloudtputest") {
		t.Error(err)
	}
}

// TestWhatFailsIsNotTold: the story has what was done alone.
func TestWhatFailsIsNotTold(t *testing.T) {
	d := found(t)
	before := len(d.Lines(0))
	must(t, d.HostError(t.Context(), "gemma-27b-1", time.Hour))
	if err := d.Maintain(t.Context(), "gemma-27b-0", time.Hour); err == nil || err.Error() != "gemma-27b-1 is REPAIRING at the moment; wait until it is READY" {
		t.Errorf("maintenance of a Multislice under repair: %v", err)
	}
	if n := d.API.Node("us-east5-a", "gemma-27b-0"); n.UpcomingMaintenance != nil {
		t.Error("maintenance of gemma-27b-0 alone is announced")
	}
	if err := d.Hold(t.Context(), "pubsub", 0); err != nil {
		t.Error(err)
	}
	if err := d.Kill(t.Context(), "recreate", 0); err != nil {
		t.Error(err)
	}
	d.Forward(time.Minute)
	for _, never := range []string{"you have Google announce", "delivers again", "recreate starts again"} {
		if strings.Contains(told(d, before), never) {
			t.Errorf("it tells %q, which did not happen\n%s", never, told(d, before))
		}
	}
	must(t, d.Hang(t.Context(), "llama-8b"))
	if err := d.Crash(t.Context(), "llama-8b", 1, 1); err == nil || !strings.Contains(err.Error(), "the training of llama-8b hangs at step ") {
		t.Errorf("a crash of what hangs: %v", err)
	}
}
