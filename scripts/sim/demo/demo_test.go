package demo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/sim/demo"
	"pitstop.internal/scripts/sim/world"
)

// noon is when the demos of these tests begin.
var noon = time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC)

// found is a demo whose clock moves when somebody waits by it.
func found(t *testing.T) *demo.Demo {
	t.Helper()
	d := foundWith(t, demo.Config{Start: noon})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func foundWith(t *testing.T, c demo.Config) *demo.Demo {
	t.Helper()
	var d *demo.Demo
	c.Sleep = func(ctx context.Context, long time.Duration) error {
		d.Forward(long)
		return ctx.Err()
	}
	d, err := demo.New(t.Context(), c)
	must(t, err)
	return d
}

// told is what the story says from a place on, without what happens all the time.
func told(d *demo.Demo, from int) string {
	var b strings.Builder
	for _, l := range d.Lines(from) {
		if !l.Routine {
			b.WriteString(l.Time.Format("15:04:05 ") + string(l.Kind) + " " + l.Workload + ": " + l.Text + " (" + l.Reason + ") " + l.Outcome + "\n")
		}
	}
	return b.String()
}

// TestTroubleEndsWithTheTrainingBack has each sort of trouble happen to a slice, and waits for the end of the incident.
func TestTroubleEndsWithTheTrainingBack(t *testing.T) {
	for _, c := range []struct {
		name, workload string
		within         time.Duration
		trouble        func(ctx context.Context, d *demo.Demo) error
	}{
		{"a preemption", "demo/llama-8b", time.Hour, func(ctx context.Context, d *demo.Demo) error { return d.Preempt(ctx, "llama-8b") }},
		{"a preemption with the zone full", "demo/llama-8b", time.Hour, func(ctx context.Context, d *demo.Demo) error {
			if err := d.Stockout(ctx, "us-west4-a", "", 0); err != nil {
				return err
			}
			return d.Preempt(ctx, "llama-8b")
		}},
		{"a preempted queued resource", "demo/mixtral", time.Hour, func(ctx context.Context, d *demo.Demo) error { return d.Preempt(ctx, "mixtral") }},
		{"a preempted legacy node", "demo/resnet", time.Hour, func(ctx context.Context, d *demo.Demo) error { return d.Preempt(ctx, "resnet") }},
		{"a host error in a Multislice", "demo/gemma-27b", 2 * time.Hour, func(ctx context.Context, d *demo.Demo) error {
			return d.HostError(ctx, "gemma-27b-1", 10*time.Minute)
		}},
		{"maintenance of a Multislice", "demo/gemma-27b", 5 * time.Hour, func(ctx context.Context, d *demo.Demo) error {
			return d.Maintain(ctx, "gemma-27b-0", 2*time.Hour)
		}},
		{"a hang", "demo/llama-8b", 4 * time.Hour, func(ctx context.Context, d *demo.Demo) error { return d.Hang(ctx, "llama-8b") }},
		{"a crash", "demo/llama-8b", time.Hour, func(ctx context.Context, d *demo.Demo) error { return d.Crash(ctx, "llama-8b", 1, 1) }},
		{"a preemption while Pub/Sub delivers nothing", "demo/llama-8b", 2 * time.Hour, func(ctx context.Context, d *demo.Demo) error {
			if err := d.Hold(ctx, "pubsub", 15*time.Minute); err != nil {
				return err
			}
			return d.Preempt(ctx, "llama-8b")
		}},
		{"a preemption while recreate is dead", "demo/llama-8b", 2 * time.Hour, func(ctx context.Context, d *demo.Demo) error {
			if err := d.Kill(ctx, "recreate", 5*time.Minute); err != nil {
				return err
			}
			return d.Preempt(ctx, "llama-8b")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := found(t)
			from := len(d.Lines(0))
			must(t, c.trouble(t.Context(), d))
			for until := d.Now().Add(c.within); d.Now().Before(until); d.Forward(10 * time.Second) {
				for _, l := range d.Lines(from) {
					if l.Kind == world.End && l.Workload == c.workload {
						if l.Outcome != "resumed" {
							t.Errorf("it ended %s: %s\n%s", l.Outcome, l.Text, told(d, from))
						}
						t.Logf("resumed after %s", d.Now().Sub(noon))
						return
					}
				}
			}
			t.Errorf("it has not ended within %s\n%s", c.within, told(d, from))
		})
	}
}

// TestAFolderKeepsTheDemo ends a demo after a preemption and goes on with it: the incident is there, nothing is taken for trouble, and
// the next preemption is resumed, too.
func TestAFolderKeepsTheDemo(t *testing.T) {
	dir := t.TempDir()
	start := noon
	var step int64
	for life := range 3 {
		d := foundWith(t, demo.Config{Start: start, Dir: dir})
		if life > 0 {
			before := len(d.Lines(0))
			d.Forward(2 * time.Hour)
			if w, _, err := d.Ledger.Workload(t.Context(), "demo/llama-8b"); err != nil || w.Incident != nil {
				t.Fatalf("demo %d begins with an incident, %v:\n%s", life, err, told(d, before))
			}
			if now := d.Trainings["llama-8b"].LastStep(); now <= step {
				t.Errorf("demo %d: the training is at step %d, and was at %d", life, now, step)
			}
		}
		before := len(d.Lines(0))
		must(t, d.Preempt(t.Context(), "llama-8b"))
		d.Forward(2 * time.Hour)
		w, _, err := d.Ledger.Workload(t.Context(), "demo/llama-8b")
		if err != nil || w.Incident != nil {
			t.Fatalf("demo %d: the training has not come back, %v\n%s", life, err, told(d, before))
		}
		past, err := d.Ledger.Archived(t.Context())
		if err != nil || len(past["demo/llama-8b"]) != life+1 {
			t.Errorf("demo %d: the ledger has %v, %v, want %d incidents of llama-8b", life, past, err, life+1)
		}
		step = d.Trainings["llama-8b"].LastStep()
		must(t, d.Close())
		start = start.Add(time.Minute) // the machine's clock is behind that of the demo
	}
}

// TestWhatAnOwnerDeletesComesBackWhenTheOwnerCreatesIt: Pitstop leaves both to the owner.
func TestWhatAnOwnerDeletesComesBackWhenTheOwnerCreatesIt(t *testing.T) {
	for _, slice := range []string{"llama-8b", "mixtral", "resnet"} {
		d := found(t)
		before := len(d.Lines(0))
		if err := d.Create(t.Context(), slice); err == nil || !strings.Contains(err.Error(), slice+" is there already") {
			t.Errorf("%s: %v", slice, err)
		}
		must(t, d.Delete(t.Context(), slice))
		d.Forward(time.Hour)
		if err := d.Preempt(t.Context(), slice); err == nil || !strings.Contains(err.Error(), "pitstop demo create "+slice+" makes one") {
			t.Errorf("%s: %v", slice, err)
		}
		must(t, d.Create(t.Context(), slice))
		d.Forward(time.Hour)
		if _, runs := d.Trainings[slice].Running(); !runs {
			t.Errorf("the training of %s does not run\n%s", slice, told(d, before))
		}
		w, _, err := d.Ledger.Workload(t.Context(), "demo/"+slice)
		if err != nil || w.Incident != nil || w.Closed != nil {
			t.Errorf("%s has an incident, %v\n%s", slice, err, told(d, before))
		}
	}
}

// TestAFolderKeepsThatATPUIsGone: what its owner has deleted is not there in the next demo either, until its owner creates it.
func TestAFolderKeepsThatATPUIsGone(t *testing.T) {
	dir := t.TempDir()
	gone := []string{"llama-8b", "mixtral", "resnet"}
	d := foundWith(t, demo.Config{Start: noon, Dir: dir})
	for _, slice := range gone {
		must(t, d.Delete(t.Context(), slice))
	}
	d.Forward(time.Hour)
	for life := range 2 {
		must(t, d.Close())
		d = foundWith(t, demo.Config{Start: noon.Add(time.Hour), Dir: dir})
		before := len(d.Lines(0))
		d.Forward(time.Hour)
		for _, slice := range gone {
			for _, zone := range d.API.Zones() {
				if state, _ := d.API.State(zone, slice); state != "" {
					t.Errorf("demo %d: %s is %s", life, slice, state)
				}
			}
			if _, runs := d.Trainings[slice].Running(); runs {
				t.Errorf("demo %d: the training of %s runs", life, slice)
			}
		}
		if state, _ := d.API.State("us-east5-a", "gemma-27b-0"); state != "READY" {
			t.Errorf("demo %d: gemma-27b-0 is %q", life, state)
		}
		if story := told(d, before); strings.Contains(story, "decision") {
			t.Errorf("demo %d: something is decided\n%s", life, story)
		}
	}
	before := len(d.Lines(0))
	for _, slice := range gone {
		must(t, d.Create(t.Context(), slice))
	}
	d.Forward(time.Hour)
	for _, slice := range gone {
		if _, runs := d.Trainings[slice].Running(); !runs {
			t.Errorf("the training of %s does not run\n%s", slice, told(d, before))
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestAFolderThatCannotBeReadSaysTheWayOut, and a demo that ends leaves only its two files there.
func TestAFolderThatCannotBeReadSaysTheWayOut(t *testing.T) {
	dir := t.TempDir()
	must(t, foundWith(t, demo.Config{Start: noon, Dir: dir}).Close())
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 || files[0].Name() != "fleet.json" || files[1].Name() != "ledger.jsonl" {
		t.Errorf("the folder has %v, %v", files, err)
	}
	for _, c := range []struct {
		name    string
		destroy func(file string) error
	}{
		{"ledger.jsonl", os.Remove},
		{"ledger.jsonl", func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) }},
		{"fleet.json", func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) }},
	} {
		file := filepath.Join(dir, c.name)
		must(t, c.destroy(file))
		_, err := demo.New(t.Context(), demo.Config{Start: noon, Dir: dir})
		if err == nil || !strings.HasPrefix(err.Error(), file+": ") || !strings.HasSuffix(err.Error(), "; remove the folder "+dir+" to begin anew") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFunctionThatDoesNotAnswerIsSeen kills the function that makes TPUs, and takes one back: its request waits, and then is handled.
func TestAFunctionThatDoesNotAnswerIsSeen(t *testing.T) {
	d := found(t)
	must(t, d.Kill(t.Context(), "recreate", 15*time.Minute))
	must(t, d.Preempt(t.Context(), "llama-8b"))
	for _, look := range []struct {
		after time.Duration
		want  string
	}{{2 * time.Minute, ""}, {8 * time.Minute, "recreate-requests"}, {time.Hour, ""}} {
		d.Forward(noon.Add(look.after).Sub(d.Now()))
		s, err := d.Ledger.Sight(t.Context(), "demo", d.Now())
		must(t, err)
		stuck := ""
		for _, l := range s.Lines(d.Now()) {
			if l.Loud != "" {
				stuck += l.Loud + ": " + l.Text
			}
		}
		if (stuck == "") != (look.want == "") || !strings.Contains(stuck, look.want) {
			t.Errorf("after %s: %q, want %q in it", look.after, stuck, look.want)
		}
	}
}
