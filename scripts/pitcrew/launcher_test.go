//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pitstop.internal/scripts/pitcrew/trainer"
)

// launchers start a training and end with exit code 0 while it runs.
var launchers = map[string]string{
	"in the background":        `"$@" &`,
	"in a session of its own":  `setsid "$@" &`,
	"under nohup":              `nohup "$@" > /dev/null 2>&1 &`,
	"by a launcher's launcher": `setsid sh -c 'setsid "$@" &' sh "$@" &`,
}

// through is the command of a trainer that a launcher starts.
func through(t *testing.T, launcher string, args ...string) []string {
	t.Helper()
	return append([]string{"sh", "-c", launchers[launcher], "sh"}, train(t, args...)...)
}

// TestALauncherThatEndsIsNoEndOfTheTraining: what it has left is supervised, and how that ends is how the attempt does.
func TestALauncherThatEndsIsNoEndOfTheTraining(t *testing.T) {
	t.Parallel()
	for _, launcher := range some(2, slices.Sorted(maps.Keys(launchers))) {
		for _, c := range []struct {
			name  string
			end   func(dir string, p *crewProcess)
			code  int
			ended string // what the journal says of the end
		}{
			{"it finishes", func(dir string, _ *crewProcess) { touch(t, dir+"/done") }, 0, "finished"},
			{"it fails", func(dir string, _ *crewProcess) { touch(t, dir+"/fail1") }, 7, "exits"},
			{"pitcrew is told to end", func(_ string, p *crewProcess) { p.signal(syscall.SIGTERM) }, 143, "stopped"},
		} {
			dir := t.TempDir()
			p := launch(t, slices.Concat(aSlice, []string{
				"--checkpoint-dir=file://" + dir, "--leftovers-grace=100ms", "--stop-grace=3s", "--restarts=0", "--job-tries=0",
			}), through(t, launcher, "-log="+dir, "-done="+dir+"/done", "-when="+dir+"/fail", "-exit=7", "-on-term=save-stop"))
			p.says(t, "the command has ended with exit code 0, and left processes that still run: process ")
			journal(t, dir, "began", 1)
			if strings.Contains(p.output(), "finished") || !p.running() {
				t.Errorf("%s: it counts as the end of the training", launcher)
			}
			c.end(dir, p)
			if code := p.code(); code != c.code || trainer.Count(dir, "began") != 1 || trainer.Count(dir, c.ended) != 1 {
				t.Errorf("%s, %s: code %d, %v", launcher, c.name, code, trainer.Read(dir))
			}
			if n := strings.Count(p.output(), "still run"); n != 1 {
				t.Errorf("%s, %s: said %d times", launcher, c.name, n)
			}
			if c.code != 143 {
				if v := verdictIn(t, dir, 1); v.Finished != (c.code == 0) || v.Code != c.code {
					t.Errorf("%s, %s: %+v", launcher, c.name, v)
				}
			}
			nobodyLeft(t, dir)
		}
	}
}

// TestATrainingThatFailsRightAfterItsLauncherHasNotFinished, nor one whose end nobody sees, as screen keeps it to itself.
func TestATrainingThatFailsRightAfterItsLauncherHasNotFinished(t *testing.T) {
	t.Parallel()
	flags := []string{"--restarts=0", "--job-tries=0", "--interruptions=0"}
	p := launch(t, flags, []string{"sh", "-c", "(while [ -e /proc/$$/exe ]; do :; done; exit 7) &"})
	if code := p.code(); code != 7 || strings.Contains(p.output(), "finished") {
		t.Errorf("code %d", code)
	}
	dir := t.TempDir()
	must(t, os.Symlink("/bin/sh", dir+"/screen"))
	p = launch(t, flags, []string{"sh", "-c", fmt.Sprintf("%[1]s/screen -c 'until [ -e %[1]s/done ]; do sleep 0.02; done' & sleep 0.1", dir)})
	p.says(t, "still run")
	touch(t, dir+"/done")
	if code := p.code(); code != 125 || !strings.Contains(p.output(), "nobody saw how") {
		t.Errorf("code %d", code)
	}
}

// TestTheNextPitcrewAdoptsWhatALauncherLeft: it sends the signal to save to the training, and ends the attempt with it.
func TestTheNextPitcrewAdoptsWhatALauncherLeft(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	flags := []string{"--state=" + state, "--checkpoint-dir=file://" + dir, "--leftovers-grace=100ms", "--stop-grace=3s"}
	command := through(t, "in a session of its own", "-dir="+dir, "-on-term=save-stop")
	p := launch(t, flags, command)
	p.says(t, "still run")
	journal(t, dir, "began", 1)
	must(t, p.Process.Kill())
	<-p.done
	p = launch(t, flags, command)
	p.says(t, "adopted attempt 1")
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 143 || trainer.Count(dir, "began") != 1 || trainer.Count(dir, "stopped") != 1 {
		t.Errorf("code %d, %v", code, trainer.Read(dir))
	}
	nobodyLeft(t, dir)
}

// TestWhatACommandLeavesIsNamed where it has failed, or was told to end.
func TestWhatACommandLeavesIsNamed(t *testing.T) {
	t.Parallel()
	p := launch(t, []string{"--restarts=0", "--job-tries=0"}, []string{"sh", "-c", "sleep 600 & until grep -q sleep /proc/$!/cmdline; do :; done; exit 7"})
	if code := p.code(); code != 7 || strings.Count(p.output(), "ending what the command has left: process ") != 1 || !strings.Contains(p.output(), "(sleep 600)") {
		t.Errorf("code %d", code)
	}
	p = launch(t, nil, []string{"sh", "-c", "trap 'exit 0' TERM; setsid sleep 600 & until grep -q ^sleep /proc/$!/cmdline; do :; done; echo ready; wait"})
	p.says(t, "ready")
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 143 || strings.Count(p.output(), "ending what the command has left: process ") != 1 {
		t.Errorf("code %d", code)
	}
	p = launch(t, nil, []string{"sh", "-c", "trap 'exit 0' TERM; (trap '' TERM; echo ready; while :; do sleep 0.1; done) & wait"})
	p.says(t, "ready")
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 143 || strings.Count(p.output(), "killing what the command has left, 1s after SIGTERM: process ") != 1 {
		t.Errorf("code %d", code)
	}
}

// TestATrainingThatStaysAtItsLastStep is told of once. What only its launcher has left is ended.
func TestATrainingThatStaysAtItsLastStep(t *testing.T) {
	t.Parallel()
	dir, step := t.TempDir(), filepath.Join(t.TempDir(), "step")
	flags := []string{"--checkpoint-dir=file://" + dir, "--progress-file=" + step, "--done-at=10", "--finish-grace=50ms", "--leftovers-grace=100ms"}
	must(t, os.MkdirAll(dir+"/10", 0o700))
	must(t, os.WriteFile(dir+"/10/data", []byte("x"), 0o600))
	script := fmt.Sprintf("echo 10 > %s; ", step)
	p := launch(t, flags, []string{"sh", "-c", script + "exec sleep 600"})
	p.says(t, "attempt 1 reached the last step (--done-at 10) and has not ended 100ms later; waiting for the end of process ")
	p.says(t, "SIGTERM to that process ends the job")
	p.signal(syscall.SIGTERM)
	p.code()
	if n := strings.Count(p.output(), "reached the last step"); n != 1 {
		t.Errorf("said %d times", n)
	}
	p = launch(t, append(flags, "--state="+t.TempDir()), []string{"sh", "-c", script + "sleep 600 & exit 0"})
	if code := p.code(); code != 0 || !strings.Contains(p.output(), "its checkpoint is complete: ending what the command has left") {
		t.Errorf("code %d", code)
	}
}

// TestAHelperThatItsCommandEndsIsNoTraining: a shell sends SIGTERM to it as it ends, and does not wait.
func TestAHelperThatItsCommandEndsIsNoTraining(t *testing.T) {
	t.Parallel()
	p := launch(t, []string{"--restarts=0", "--job-tries=0", "--interruptions=0"},
		[]string{"sh", "-c", "sleep 600 & trap \"kill $!\" EXIT; until grep -q ^sleep /proc/$!/cmdline; do :; done"})
	if code := p.code(); code != 0 || !strings.Contains(p.output(), "finished: attempt 1 ended with exit code 0") {
		t.Errorf("code %d", code)
	}
}

// TestAHelperThatIsLeftHoldsNothingUp: what does nothing for long is no training, and what does steps is one.
func TestAHelperThatIsLeftHoldsNothingUp(t *testing.T) {
	t.Parallel()
	flags := []string{"--leftovers-grace=50ms", "--helpers-idle=600ms"}
	p := launch(t, flags, []string{"sh", "-c", "sleep 600 & exit 0"})
	if code := p.code(); code != 0 || strings.Count(p.output(), ": ending it as a helper") != 1 || !strings.Contains(p.output(), "still run: process ") {
		t.Errorf("code %d", code)
	}
	dir := t.TempDir()
	p = launch(t, append(flags, "--progress-file="+dir+"/step"), through(t, "in the background", "-log="+dir, "-progress="+dir+"/step", "-step=20ms", "-steps=100"))
	if code := p.code(); code != 0 || trainer.Count(dir, "finished") != 1 || strings.Contains(p.output(), "helper") {
		t.Errorf("code %d, %v", code, trainer.Read(dir))
	}
}

// TestATrainingThatIsLeftAndHangsIsNotFinished: it has done steps, so it is no helper, however long it does nothing.
func TestATrainingThatIsLeftAndHangsIsNotFinished(t *testing.T) {
	t.Parallel()
	step := t.TempDir() + "/step"
	train := "(for i in 1 2 3 4 5 6 7 8 9; do echo $i > %s; sleep 0.1; done; exec sleep 600) & exit 0"
	p := launch(t, []string{"--leftovers-grace=50ms", "--helpers-idle=600ms", "--progress-file=" + step}, []string{"sh", "-c", fmt.Sprintf(train, step)})
	p.says(t, "has trained, and does nothing since step 9: it may hang")
	if !p.running() || strings.Contains(p.output(), "finished") {
		t.Error("it counts as finished")
	}
}
