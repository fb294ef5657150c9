//go:build unix

package crew

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/child"
)

// TestAProgressFileThatDoesNotAnswerKeepsNothingBack: it may be a pipe, or lie where a storage is mounted that is not to be
// reached. The crew has to read the lease all the same.
func TestAProgressFileThatDoesNotAnswerKeepsNothingBack(t *testing.T) {
	c := crewOf(t, 1)
	c.reader = make(chan struct{}, 1)
	c.child = &child.Child{Record: child.Record{Began: time.Now()}}
	c.ProgressFile = filepath.Join(t.TempDir(), "step")
	if err := syscall.Mkfifo(c.ProgressFile, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whoever still reads it is let go
		if f, err := os.OpenFile(c.ProgressFile, os.O_RDWR, 0); err == nil {
			_ = f.Close() //nolint:errcheck // a test's
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.readStep(time.Now())
		(<-c.do)()
		c.readStep(time.Now().Add(c.Times.Step))
		(<-c.do)()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	if c.seen["progress file"] == "" {
		t.Error("nobody is told")
	}
	c.ProgressFile = filepath.Join(t.TempDir(), "step")
	<-c.reader // as if it were another crew's
	if err := os.WriteFile(c.ProgressFile, []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.readStep(time.Now().Add(2 * c.Times.Step))
	(<-c.do)()
	if c.step.n != 7 || c.seen["progress file"] != "" {
		t.Errorf("%+v, %v", c.step, c.seen)
	}
}

// TestATrainingThatDoesNotResumeIsToldOf in a line and a report of that attempt.
func TestATrainingThatDoesNotResumeIsToldOf(t *testing.T) {
	for _, c := range []struct {
		steps []int64
		at    int64 // the step that it is told of
	}{
		{[]int64{0, 1, 2}, 1},
		{[]int64{28}, 28},
		{[]int64{29}, 0},
		{[]int64{0, 31, 32}, 0}, // the bar of the Trainer
		{[]int64{30, 1, 2}, 0},  // and one of an evaluation
	} {
		d := decidingCrew(t)
		d.plan = agree.Plan{Attempt: 2, Run: true, Step: 30, Checkpoint: d.Directory + "/30"}
		for _, n := range c.steps {
			d.resumes(n)
		}
		want := fmt.Sprintf("it does not resume: it was given step 30 and is at step %d", c.at)
		said := strings.Join(d.said, "\n")
		if tells := c.at > 0; strings.HasPrefix(said, "WARNING: attempt 2: "+want) != tells || strings.Contains(d.lines(), want) != tells || len(d.said) > 1 {
			t.Errorf("steps %d: %q, %s", c.steps, said, d.lines())
		}
	}
	d := decidingCrew(t)
	d.plan = agree.Plan{Attempt: 1, Run: true}
	if d.resumes(1); len(d.said) > 0 {
		t.Errorf("without a checkpoint: %q", d.said)
	}
}

// TestAStartTellsSinceWhenTheCrewWaitedForIt in UTC.
func TestAStartTellsSinceWhenTheCrewWaitedForIt(t *testing.T) {
	d := decidingCrew(t)
	d.happened(d.now, agree.Event{Began: true, Attempt: 1, Workers: 1, Ready: d.now.Add(-time.Minute).In(time.FixedZone("", 3600))})
	if lines := d.lines(); !strings.Contains(lines, `"report":"started"`) || !strings.Contains(lines, `"ready_at":"2026-03-01T11:59:00Z"`) {
		t.Error(lines)
	}
}

// TestAnAttemptThatIsStoppedTellsHowFarItCame: the crew ends it for the lease, or with its machine. Of one that fails another report tells.
func TestAnAttemptThatIsStoppedTellsHowFarItCame(t *testing.T) {
	for stopped, want := range map[bool]int{true: 1, false: 0} {
		d := decidingCrew(t)
		d.plan = agree.Plan{Attempt: 2, Run: true}
		d.child = &child.Child{Record: child.Record{Attempt: 2, Began: d.now.Add(-time.Hour)}}
		d.ProgressFile = "step"
		for n := range int64(3) {
			d.stepOf(d.child, progressed{n: 70 + n, at: d.now.Add(time.Duration(n) * time.Minute)})
		}
		d.step.reported = 71
		if stopped {
			d.stopping = &stopping{why: "the lease names attempt 3"}
		}
		d.ended(d.child, progressed{n: 73, at: d.now.Add(3 * time.Minute)})
		told := `"report":"progress","project":"demo","zone":"us-west4-a","node":"llama","hostname":"t1v-n-bbbbbbbb-w-0","worker":0,"attempt":2,` +
			`"step":73,"step_at":"2026-03-01T12:03:00Z","first_step":70,"first_step_at":"2026-03-01T12:00:00Z","steps_seconds":180`
		if lines := d.lines(); strings.Count(lines, told) != want || strings.Count(lines, "progress") != want {
			t.Errorf("stopped %t: %s", stopped, lines)
		}
	}
}

// TestNobodyGivesUpInSilence: the first attempt of a single worker has a last word, too, which says what comes next.
func TestNobodyGivesUpInSilence(t *testing.T) {
	for stays, next := range map[bool]string{
		false: "gave up; ending with exit code 0. When the cause is mended, start pitcrew again",
		true:  "gave up; waiting until the lease names a new attempt",
	} {
		d := decidingCrew(t)
		d.StayAfterGivingUp = stays
		d.end(1, false)
		d.pass(time.Second)
		if said := strings.Join(d.said, "\n"); strings.Count(said, next) != 1 {
			t.Errorf("stays %v: %q", stays, said)
		}
	}
}
