//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/checkpoint"
)

func TestTheTrainingsEndIsPitcrews(t *testing.T) {
	t.Parallel()
	service := []string{"--service-rules", "--backoff=10s", "--backoff-max=5m"} // without the short waits of the other tests
	for _, c := range some(2, []struct {
		name    string
		flags   []string
		trainer []string
		code    int
		starts  int
	}{
		{name: "finished", trainer: []string{"-steps=3"}, code: 0, starts: 1},
		{name: "fails for good", flags: []string{"--restarts=2", "--job-tries=1"}, trainer: []string{"-at=2", "-exit=7"}, code: 7, starts: 6},
		{name: "aborts", flags: []string{"--job-tries=1"}, trainer: []string{"-at=2", "-die=6"}, code: 134, starts: 2},
		{name: "a crash behind a shell", flags: []string{"--job-tries=2"}, trainer: []string{"-at=2", "-exit=139"}, code: 139, starts: 3},
		{name: "killed by somebody", flags: []string{"--interruptions=3", "--restarts=0", "--job-tries=0"}, trainer: []string{"-at=2", "-die=9"}, code: 137, starts: 4},
		{name: "fails once", trainer: []string{"-at=2", "-exit=1", "-once", "-steps=5"}, code: 0, starts: 2},
		{name: "an exception by the service's rules", flags: service, trainer: []string{"-at=2", "-exit=1"}, code: 1, starts: 1},
		{name: "an abort by the service's rules", flags: service, trainer: []string{"-at=2", "-exit=6"}, code: 6, starts: 4},
	}) {
		dir := t.TempDir()
		p := launch(t, c.flags, train(t, append(c.trainer, "-log="+dir)...))
		if code := p.code(); code != c.code || trainer.Count(dir, "began") != c.starts {
			t.Errorf("%s: code %d after %d starts, want %d after %d", c.name, code, trainer.Count(dir, "began"), c.code, c.starts)
		}
		if gave := regexp.MustCompile(fmt.Sprintf(`attempt %d ended on worker 0: .*; gave up; ending with exit code %d\. `, c.starts, c.code)).FindString(p.output()); (gave == "") != (c.code == 0) {
			t.Errorf("%s: it says %q", c.name, gave)
		}
		nobodyLeft(t, dir)
	}
}

func TestEachAttemptKnowsItsNumberAndWhatItResumesFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := fmt.Sprintf(`env | grep ^PITCREW_ | sort > %s/$PITCREW_ATTEMPT; mkdir -p %s/40; echo x > %s/40/data; test $PITCREW_ATTEMPT = 2`, dir, dir, dir)
	p := launch(t, []string{"--checkpoint-dir=file://" + dir, "--scale-from=v2-8", "--accelerator=v2-32", "--global-batch=1024", "--steps=1000"}, []string{"sh", "-c", script})
	if code := p.code(); code != 0 {
		t.Fatal(code)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "2"))
	must(t, err)
	for _, want := range []string{
		"PITCREW_ATTEMPT=2\n", "PITCREW_RESUME_STEP=40\n", "PITCREW_CHECKPOINT=file://" + dir + "/40\n", "PITCREW_CHECKPOINT_DIR=file://" + dir + "\n",
		"PITCREW_GLOBAL_BATCH=4096\n", "PITCREW_STEPS=250\n", "PITCREW_WORKER=0\n", "PITCREW_WORKERS=1\n",
		"PITCREW_NUM_HOSTS=1\n", "PITCREW_HOST_INDEX=0\n", "PITCREW_SERVER_ADDR=127.0.0.1:",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q lacks %q", raw, want)
		}
	}
}

// TestTheHostsOfATrainingAgreeWhereTheyMeet: all of them, in each attempt, on one slice and across a Multislice.
func TestTheHostsOfATrainingAgreeWhereTheyMeet(t *testing.T) {
	t.Parallel()
	for _, slices := range []int{1, 2} {
		dir, told := t.TempDir(), t.TempDir()
		hosts := 2 * slices
		// Each attempt ends when all hosts have begun it: the first one fails, and the second one is the last.
		// What a host writes is there as a whole before another one counts it.
		script := fmt.Sprintf(`cd %[1]s; me=$PITCREW_ATTEMPT-$PITCREW_HOST_INDEX
echo $PITCREW_NUM_HOSTS $PITCREW_HOST_INDEX $PITCREW_SERVER_ADDR > new-$me && mv new-$me $me
until [ $(ls %[1]s/$PITCREW_ATTEMPT-* | wc -l) = %[2]d ]; do sleep 0.02; done; exit $((2 - PITCREW_ATTEMPT))`, told, hosts)
		var crews []*crewProcess
		for s := range slices {
			peers := fmt.Sprintf("--peers=127.0.0.%d:%d,127.0.0.1:%d", s+1, freePort(t), freePort(t))
			for w := range 2 {
				crews = append(crews, launch(t, []string{
					"--checkpoint-dir=file://" + dir, "--workload=demo/llama", fmt.Sprintf("--node=llama-%d", s), "--zone=us-west4-a", peers,
					fmt.Sprintf("--host=t1v-n-0000000%d-w-%d", s, w), fmt.Sprintf("--slice=%d", s), fmt.Sprintf("--slices=%d", slices), fmt.Sprintf("--worker=%d", w),
				}, []string{"sh", "-c", script}))
			}
		}
		for i, p := range crews {
			if code := p.code(); code != 0 {
				t.Errorf("%d slices, crew %d: code %d: %s", slices, i, code, p.output())
			}
		}
		for attempt := 1; attempt <= 2; attempt++ {
			server := ""
			for host := range hosts {
				raw, err := os.ReadFile(filepath.Join(told, fmt.Sprintf("%d-%d", attempt, host)))
				must(t, err)
				f := strings.Fields(string(raw))
				if len(f) != 3 || f[0] != fmt.Sprint(hosts) || f[1] != fmt.Sprint(host) || server != "" && f[2] != server {
					t.Fatalf("%d slices, attempt %d, host %d: %q, and another host met at %q", slices, attempt, host, raw, server)
				}
				server = f[2]
			}
			if at, port, err := net.SplitHostPort(server); err != nil || at != "127.0.0.1" || port == "0" {
				t.Errorf("%d slices, attempt %d: they meet at %q, which is not worker 0 of slice 0", slices, attempt, server)
			}
		}
	}
}

// TestATrainingThatMovesToOtherHardwareSeesAsManyExamples: the steps that it has done there were of another batch.
func TestATrainingThatMovesToOtherHardwareSeesAsManyExamples(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, accelerator, steps, after string
	}{
		"nobody noted its batch":        {"", "v2-32", "280", `[{"from":0,"global_batch":1024},{"from":40,"global_batch":4096}]`},
		"it comes from what it is for":  {`[{"from":0,"global_batch":1024}]`, "v2-32", "280", `[{"from":0,"global_batch":1024},{"from":40,"global_batch":4096}]`},
		"it comes from larger hardware": {`[{"from":0,"global_batch":2048}]`, "v2-8", "960", `[{"from":0,"global_batch":2048},{"from":40,"global_batch":1024}]`},
		"a device of v4 is a chip":      {`[{"from":0,"global_batch":2048}]`, "v4-32", "500", `[{"from":0,"global_batch":2048}]`},
		"it was here before":            {`[{"from":0,"global_batch":1024},{"from":20,"global_batch":4096}]`, "v2-32", "265", `[{"from":0,"global_batch":1024},{"from":20,"global_batch":4096}]`},
		"it goes on from before it came": {
			`[{"from":0,"global_batch":1024},{"from":60,"global_batch":2048}]`, "v2-8", "1000", `[{"from":0,"global_batch":1024}]`,
		},
	} {
		dir := t.TempDir()
		noted := filepath.Join(dir, "pitstop-crew", "batches.json")
		for file, content := range map[string]string{filepath.Join(dir, "40", "data"): "x", noted: c.before} {
			if content == "" {
				continue
			}
			must(t, os.MkdirAll(filepath.Dir(file), 0o700))
			must(t, os.WriteFile(file, []byte(content), 0o600))
		}
		p := launch(t, []string{
			"--checkpoint-dir=file://" + dir, "--scale-from=v2-8", "--accelerator=" + c.accelerator, "--global-batch=1024", "--steps=1000",
			// Each attempt waits that long, because somebody has trained there before.
			"--lease-take-over=2500ms", "--lease-unread=600ms", "--stop-grace=200ms", "--dump-grace=100ms",
		}, []string{"sh", "-c", "echo $PITCREW_STEPS > " + dir + "/told"})
		if code := p.code(); code != 0 {
			t.Fatalf("%s: exit code %d", name, code)
		}
		for file, want := range map[string]string{filepath.Join(dir, "told"): c.steps + "\n", noted: c.after} {
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("%s: %s says %q, %v; want %q", name, filepath.Base(file), got, err, want)
			}
		}
	}
}

// TestATrainingWhoseStepsNobodyKnowsIsNotScaled: the number of a TensorFlow checkpoint may be a count of checkpoints. With one batch
// from first to last that makes no difference.
func TestATrainingWhoseStepsNobodyKnowsIsNotScaled(t *testing.T) {
	t.Parallel()
	for accelerator, want := range map[string]int{"v2-8": 0, "v2-32": 125} {
		dir := t.TempDir()
		for _, name := range []string{"ckpt-5.data-00000-of-00001", "ckpt-5.index", "checkpoint"} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		}
		p := launch(t, []string{
			"--checkpoint-dir=file://" + dir, "--scale-from=v2-8", "--accelerator=" + accelerator, "--global-batch=1024", "--steps=100", "--restarts=0", "--job-tries=0",
		}, []string{"sh", "-c", "echo $PITCREW_RESUME_STEP $PITCREW_STEPS > " + dir + "/told"})
		if code := p.code(); code != want {
			t.Errorf("%s: exit code %d, want %d", accelerator, code, want)
		}
		told, err := os.ReadFile(filepath.Join(dir, "told"))
		if want == 0 && string(told) != "5 100\n" || want != 0 && (err == nil || !strings.Contains(p.output(), "may be a count of checkpoints")) {
			t.Errorf("%s: it was told %q, %v", accelerator, told, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "pitstop-crew", "batches.json")); want != 0 && err == nil {
			t.Errorf("%s: a batch is noted with which nothing was trained", accelerator)
		}
	}
}

func TestAStopIsPassedOnAndIsNoEndOfTheJob(t *testing.T) {
	t.Parallel()
	for _, c := range some(2, []struct {
		name    string
		signal  syscall.Signal
		trainer []string
		code    int
	}{
		{name: "saves and stops with 0", signal: syscall.SIGTERM, trainer: []string{"-on-term=save-stop"}, code: 143},
		{name: "would go on for ever", signal: syscall.SIGTERM, trainer: []string{"-on-term=save"}, code: 137},
		{name: "ignores it", signal: syscall.SIGTERM, trainer: []string{"-on-term=ignore"}, code: 137},
		{name: "hangs", signal: syscall.SIGTERM, trainer: []string{"-on-term=save-stop", "-at=1", "-hang"}, code: 137},
		{name: "dies of it", signal: syscall.SIGHUP, trainer: nil, code: 129},
	}) {
		dir := t.TempDir()
		grace := "--stop-grace=20s"
		if c.code == 137 { // it does not end by itself
			grace = "--stop-grace=300ms"
		}
		p := launch(t, []string{grace}, train(t, append(c.trainer, "-log="+dir, "-children=2", "-detached")...))
		journal(t, dir, "began", 1)
		until(t, "children", func() bool { return len(trainer.Read(dir)) >= 3 })
		if c.name == "hangs" {
			journal(t, dir, "hangs", 1)
		}
		p.signal(c.signal)
		if code := p.code(); code != c.code {
			t.Errorf("%s: code %d, want %d", c.name, code, c.code)
		}
		if n := trainer.Count(dir, "began"); n != 1 {
			t.Errorf("%s: started %d times", c.name, n)
		}
		nobodyLeft(t, dir)
	}
}

// TestASecondSignalKillsAtOnce, and pitcrew names the signal and its own act.
func TestASecondSignalKillsAtOnce(t *testing.T) {
	t.Parallel()
	for sig, name := range map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "Ctrl-C (SIGINT)"} {
		p := launch(t, []string{"--stop-grace=1h", "--dump-grace=1h"}, []string{"sh", "-c", "trap '' INT TERM; echo ready; sleep 600"})
		p.says(t, "ready")
		p.signal(sig)
		p.says(t, name+": passed on to the training, which has 1h0m0s to end; a second signal, at least a second later, kills it at once")
		until(t, "it is killed", func() bool {
			_ = p.Process.Signal(sig) //nolint:errcheck // it may just have ended
			return !p.running()
		})
		if code := p.code(); code != 137 {
			t.Errorf("%s: code %d", name, code)
		}
		p.says(t, name+" again, ")
		p.says(t, " after the first signal: killing the training (SIGKILL)")
		p.says(t, " after the signal: SIGKILL")
		if strings.Contains(p.output(), "SIGQUIT") {
			t.Errorf("%s: it speaks of a signal that was not sent: %s", name, p.output())
		}
	}
}

// TestTheLineAboutASlowEndIsTrue: it names the signal that was sent, and how long pitcrew waited.
func TestTheLineAboutASlowEndIsTrue(t *testing.T) {
	t.Parallel()
	p := launch(t, []string{"--stop-grace=300ms"}, []string{"sh", "-c", "trap '' INT TERM QUIT; echo ready; sleep 600"})
	p.says(t, "ready")
	p.signal(syscall.SIGINT)
	if code := p.code(); code != 137 {
		t.Errorf("code %d", code)
	}
	line := regexp.MustCompile(`the training has not ended (\S+) after Ctrl-C \(SIGINT\); sending SIGQUIT for its stacks, and SIGKILL in 200ms`)
	found := line.FindStringSubmatch(p.output())
	if found == nil || strings.Contains(p.output(), "SIGTERM") {
		t.Fatalf("%q", p.output())
	}
	if waited, err := time.ParseDuration(found[1]); err != nil || waited < 300*time.Millisecond || waited > deadline {
		t.Errorf("it says that it waited %s", found[1])
	}
}

// TestAWorkerSaysThatWorker0IsGone in words: who, since when, and what follows.
func TestAWorkerSaysThatWorker0IsGone(t *testing.T) {
	t.Parallel()
	dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	crews := slice(t, 2, []string{"--lease-unread=1m", "--lease-take-over=2m", "--worker-silence=1m"}, train(t, "-dir="+dir, "-done="+done))
	leader, _, _ := strings.Cut(flagOf(crews[0], "peers"), ",")
	journal(t, dir, "began", 2)
	crews[0].signal(syscall.SIGKILL)
	crews[0].code()
	gone := regexp.MustCompile(`worker 0 \(` + leader + `\) is gone since \d\d:\d\d:\d\dZ: (its pitcrew has ended|no pitcrew listens there); ` +
		`asking every second; the training here goes on, and ends if worker 0 is still silent at \d\d:\d\d:\d\dZ\n`)
	until(t, "it says so", func() bool { return gone.MatchString(crews[1].output()) })
	crews[0] = relaunch(t, crews[0])
	crews[0].says(t, "adopted attempt 1, process ")
	crews[1].says(t, "pitcrew: worker 0 answers\n")
	touch(t, done)
	for w, p := range crews {
		if code := p.code(); code != 0 || strings.Contains(p.output(), "http://") || strings.Contains(p.output(), "EOF") {
			t.Errorf("worker %d: code %d, %s", w, code, p.output())
		}
	}
}

func TestAWorkerSaysThatItWaitsForWorker0(t *testing.T) {
	t.Parallel()
	leader := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p := launch(t, []string{"--worker=1", "--peers=" + leader + ",127.0.0.1", "--peer-key=" + keyFileOf(t, aKey, 0o600)}, []string{"true"})
	p.says(t, "started as worker 1 of 2 for local/")
	p.says(t, "worker 0 ("+leader+") has not been heard yet: no pitcrew listens there; asking every second; the training starts when worker 0 answers\n")
}

// TestWorker0SaysWhoIsSilent before the silence ends the attempt.
func TestWorker0SaysWhoIsSilent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crews := slice(t, 2, []string{"--worker-silence=3s", "--lease-unread=30s", "--lease-take-over=1m"}, train(t, "-dir="+dir))
	journal(t, dir, "began", 2)
	crews[1].signal(syscall.SIGKILL)
	crews[1].code()
	crews[0].says(t, "no word from worker 1 (")
	crews[0].says(t, "after 3s of silence a worker counts as lost, and the attempt ends everywhere")
	crews[0].says(t, "ending attempt 1: worker 1 was lost")
}

func TestAKilledPitcrewIsReplacedWithoutTheTrainingNoticing(t *testing.T) {
	t.Parallel()
	for _, read := range some(2, []string{"--read-output=false", "--step-pattern=maxtext"}) {
		dir, state := t.TempDir(), t.TempDir()
		flags := []string{"--state=" + state, read, "--checkpoint-dir=file://" + filepath.Join(dir, "checkpoints"), "--restarts=1", "--job-tries=0"}
		command := train(t, "-log="+dir, "-dir="+filepath.Join(dir, "checkpoints"), "-print-steps", "-at=400", "-exit=5", "-children=1")
		p := launch(t, flags, command)
		journal(t, dir, "began", 1)
		for range 2 {
			p.signal(syscall.SIGKILL)
			p.code()
			pid := trainer.Read(dir)[0].PID
			if !alive(pid) {
				t.Fatalf("%s: the training died with pitcrew", read)
			}
			p = launch(t, flags, command)
			until(t, "adopted", func() bool { return strings.Contains(p.output(), "adopted attempt 1") })
		}
		// The exit code comes from the parent, and the budget has outlived pitcrew: one restart, then the end.
		if code := p.code(); code != 5 || trainer.Count(dir, "began") != 2 {
			t.Errorf("%s: code %d after %d starts", read, code, trainer.Count(dir, "began"))
		}
		if _, err := os.Stat(filepath.Join(dir, "checkpoints", trainer.TwoWriters)); err == nil {
			t.Errorf("%s: two trainings wrote at once", read)
		}
		nobodyLeft(t, dir)
	}
}

func TestAnEndThatNobodySawIsChargedToTheMachine(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	flags := []string{"--state=" + state, "--restarts=0", "--job-tries=0", "--interruptions=1"}
	command := train(t, "-log="+dir, "-at=5", "-once", "-hang", "-steps=50")
	p := launch(t, flags, command)
	journal(t, dir, "hangs", 1)
	p.signal(syscall.SIGKILL)
	p.code()
	first := trainer.Read(dir)[0].PID
	parent := parentOf(t, first)
	must(t, syscall.Kill(parent, syscall.SIGKILL))
	until(t, "the parent is gone", func() bool { return !alive(parent) })
	p = launch(t, flags, command)
	until(t, "adopted", func() bool { return strings.Contains(p.output(), "adopted attempt 1") })
	must(t, syscall.Kill(first, syscall.SIGKILL))
	if code := p.code(); code != 0 || !strings.Contains(p.output(), "interrupted: nobody saw how") {
		t.Errorf("code %d", code)
	}
}

func parentOf(t testing.TB, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	var ppid int
	if _, err := fmt.Sscanf(string(raw[strings.LastIndexByte(string(raw), ')')+1:]), " %s %d", new(string), &ppid); err != nil {
		t.Fatal(err)
	}
	return ppid
}

func TestATrainingWithoutACrewEndsBeforeAnotherMayTakeOver(t *testing.T) {
	t.Parallel()
	for _, stops := range some(2, []string{"-on-term=save-stop", "-on-term=ignore"}) {
		dir, state := t.TempDir(), t.TempDir()
		flags := []string{"--state=" + state, "--checkpoint-dir=file://" + dir}
		command := train(t, "-dir="+dir, "-every=100", stops)
		p := launch(t, flags, command)
		journal(t, dir, "saved", 15) // longer than --lease-unread: a crew that lives keeps it alive
		if n := trainer.Count(dir, "began"); n != 1 {
			t.Fatalf("%s: %d starts", stops, n)
		}
		p.signal(syscall.SIGKILL)
		p.code()
		pid := trainer.Read(dir)[0].PID
		until(t, "the training ends", func() bool { return !alive(pid) })
		if n := trainer.Count(dir, "stopped"); stops == "-on-term=save-stop" && n != 1 {
			t.Errorf("it was not asked: %v", trainer.Read(dir))
		}
		// The exit 0 of one that had to end is no end of the job.
		p = launch(t, flags, command)
		journal(t, dir, "began", 2)
		p.says(t, "no crew read the lease")
	}
}

// TestATrainingWhoseParentAndCrewWereKilledEndsBeforeAnotherMayTakeOver: a crew that sees its parent killed starts another process instead, which ends the
// training when the crew is killed as well.
func TestATrainingWhoseParentAndCrewWereKilledEndsBeforeAnotherMayTakeOver(t *testing.T) {
	t.Parallel()
	for _, adopted := range some(2, []bool{false, true}) {
		dir, state := t.TempDir(), t.TempDir()
		flags := []string{"--state=" + state, "--checkpoint-dir=file://" + dir}
		command := train(t, "-dir="+dir, "-every=100", "-on-term=save-stop")
		p := launch(t, flags, command)
		journal(t, dir, "saved", 1)
		pid := trainer.Read(dir)[0].PID
		parent := parentOf(t, pid)
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent)); err != nil || string(name) != "training-parent\n" {
			t.Errorf("%q, %v: who kills pitcrew by its name kills its parent, too", name, err)
		}
		if adopted { // both are killed at once, and the next crew finds a training that nobody cares for
			p.signal(syscall.SIGKILL)
			p.code()
		}
		must(t, syscall.Kill(parent, syscall.SIGKILL))
		if adopted {
			p = launch(t, flags, command)
		}
		until(t, "another takes its place", func() bool {
			var r struct{ Parent struct{ PID int } }
			raw, err := os.ReadFile(filepath.Join(state, "training.json"))
			return err == nil && json.Unmarshal(raw, &r) == nil && r.Parent.PID != parent && alive(r.Parent.PID)
		})
		journal(t, dir, "saved", 15) // longer than --lease-unread: a crew that lives keeps it alive
		if !alive(pid) || trainer.Count(dir, "began") != 1 {
			t.Fatalf("%v", trainer.Read(dir))
		}
		p.signal(syscall.SIGKILL)
		p.code()
		until(t, "the training ends", func() bool { return !alive(pid) })
		p = launch(t, flags, command)
		journal(t, dir, "began", 2)
		p.says(t, "interrupted: no")
		if _, err := os.Stat(filepath.Join(dir, trainer.TwoWriters)); err == nil {
			t.Error("two trainings wrote at once")
		}
	}
}

func TestAnEndThatCannotBeWrittenDownIsSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how  string
		code int
	}{{"exit 0", 0}, {"exit 7", 7}, {"kill -6 $$", 134}} {
		state := filepath.Join(t.TempDir(), "state")
		count := filepath.Join(t.TempDir(), "count")
		script := fmt.Sprintf("echo x >> %s; rm -rf %s; ulimit -c 0; %s", count, state, c.how)
		p := launch(t, []string{"--state=" + state, "--restarts=0", "--job-tries=0"}, []string{"sh", "-c", script})
		if code := p.code(); code != c.code {
			t.Errorf("%s: code %d", c.how, code)
		}
		if raw, err := os.ReadFile(count); err != nil || string(raw) != "x\n" {
			t.Errorf("%s: %q, %v", c.how, raw, err)
		}
	}
}

func TestStateThatACrashToreIsPutAside(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", `{"leader":{"at`} {
		dir, folder := t.TempDir(), t.TempDir()
		for _, name := range []string{"memory.json", "training.json", "exit.json", "reports.jsonl"} {
			must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		p := launch(t, []string{"--state=" + folder}, train(t, "-log="+dir, "-steps=3"))
		if code := p.code(); code != 0 || trainer.Count(dir, "began") != 1 || strings.Count(p.output(), ".unreadable; ") != 2 {
			t.Errorf("%q: code %d", content, code)
		}
	}
}

func TestBudgetsOutlivePitcrew(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	flags := []string{"--state=" + state, "--restarts=3", "--job-tries=0", "--backoff=1h", "--backoff-max=1h"}
	for n := 1; n <= 4; n++ {
		p := launch(t, flags, train(t, "-log="+dir, "-at=1", "-exit=4"))
		if n == 4 {
			if code := p.code(); code != 4 || !strings.Contains(p.output(), "all restarts are spent") {
				t.Errorf("code %d", code)
			}
			break
		}
		until(t, "waiting", func() bool { return strings.Contains(p.output(), fmt.Sprintf("restart %d of 3", n)) })
		p.signal(syscall.SIGTERM)
		if code := p.code(); code != 4 && code != 143 {
			t.Errorf("told to end while it waits: code %d", code)
		}
	}
	if n := trainer.Count(dir, "began"); n != 4 {
		t.Errorf("started %d times", n)
	}
}

func TestAnotherPitcrewIsRefused(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	launch(t, []string{"--state=" + state}, train(t, "-log="+dir))
	journal(t, dir, "began", 1)
	p := launch(t, []string{"--state=" + state}, train(t, "-log="+dir))
	if code := p.code(); code != 125 || !strings.Contains(p.output(), "another pitcrew supervises here already") {
		t.Errorf("code %d", code)
	}
}

func TestAnotherPitcrewIsRefusedByWhateverPathItComes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	launch(t, []string{"--checkpoint-dir=file://" + dir}, train(t, "-dir="+dir))
	journal(t, dir, "began", 1)
	p := launch(t, []string{"--checkpoint-dir=file://" + link}, train(t, "-dir="+link))
	if code := p.code(); code != 125 || !strings.Contains(p.output(), "another pitcrew supervises here already") {
		t.Errorf("code %d", code)
	}
	if l, ok := lease(t, dir); !ok || l.Attempt != 1 || trainer.Count(dir, "began") != 1 {
		t.Errorf("%+v, %v", l, trainer.Read(dir))
	}
}

// TestPitcrewIsTheFirstProcessOfAContainer, as Docker and Kubernetes start it.
func TestPitcrewIsTheFirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	inside := []string{"--fork", "--pid", "--mount-proc"}
	if out, err := exec.CommandContext(t.Context(), "unshare", append(inside, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no container of its own can be made here: %v %s", err, out)
	}
	for name, c := range map[string]struct {
		train []string
		told  bool // to end, from outside, once a training runs
		code  int
		last  string // what the training wrote at its end
	}{
		"the training's exit code":      {[]string{"-children=3", "-detached", "-at=5", "-exit=6"}, false, 6, "exits"},
		"a save at the end by a signal": {[]string{"-on-term=save-stop"}, true, 143, "stopped"},
	} {
		dir := t.TempDir()
		args := slices.Concat(inside, []string{self(t), "run", "--metadata=none", "--state=" + t.TempDir(), "--restarts=0", "--job-tries=0"},
			quick, []string{"--"}, train(t, append([]string{"-log=" + dir}, c.train...)...))
		var out strings.Builder
		cmd := exec.CommandContext(t.Context(), "unshare", args...)
		cmd.Env = append(os.Environ(), asPitcrew+"=1")
		cmd.Stdout, cmd.Stderr = &out, &out
		must(t, cmd.Start())
		if c.told {
			journal(t, dir, "began", 1)
			first := 0
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", cmd.Process.Pid))
			if _, serr := fmt.Sscan(string(raw), &first); err != nil || serr != nil {
				t.Fatal(err, serr)
			}
			must(t, syscall.Kill(first, syscall.SIGTERM))
		}
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.code || trainer.Count(dir, c.last) != 1 {
			t.Errorf("%s: code %d, want %d; %v: %s\n%v", name, code, c.code, err, out.String(), trainer.Read(dir))
		}
	}
}

func TestMuchOutputNeitherStopsNorFills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := 128 << 20 // the benchmark passes the whole gigabyte
	if testing.Short() {
		size = 8 << 20
	}
	p := launch(t, []string{"--step-pattern=maxtext"}, train(t, "-log="+dir, fmt.Sprintf("-print=%d", size), "-print-steps", "-steps=3"))
	// The copy in the file is not looked at; the bytes have all gone through.
	if code := p.code(); code != 0 || trainer.Count(dir, "printed") != 1 || trainer.Count(dir, "finished") != 1 {
		t.Errorf("code %d: %v", code, trainer.Read(dir))
	}
	f, ok := p.Stdout.(*os.File)
	if !ok {
		t.Fatal("no file")
	}
	if info, err := f.Stat(); err != nil || info.Size() < int64(size) {
		t.Errorf("%v, %v", info.Size(), err)
	}
	if err := f.Truncate(0); err != nil {
		t.Error(err)
	}
}

// lease reads the lease of a directory on this machine.
func lease(t testing.TB, dir string) (checkpoint.Lease, bool) {
	t.Helper()
	l, _, err := checkpoint.ReadLease(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir)
	return l, err == nil
}

func TestTheCrewsOwnLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := launch(t, []string{"--checkpoint-dir=file://" + dir, "--workload=demo/llama", "--node=llama", "--zone=us-west4-a", "--host=t1v-n-0123abcd-w-0"},
		train(t, "-dir="+dir, "-at=5", "-exit=1", "-once", "-steps=2000000"))
	journal(t, dir, "began", 2)
	l, ok := lease(t, dir)
	want := events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: "t1v-n-0123abcd"}
	if !ok || l.Epoch != 0 || l.Attempt != 2 || l.Workload != "demo/llama" || l.By != "crew" || !slices.Equal(l.Admitted, []events.Admission{want}) {
		t.Errorf("%+v", l)
	}
	// Pitstop asks for a new attempt: the training is ended and begun as that one.
	l.Epoch, l.Attempt, l.By, l.Incident = 3, 5, "pitstop", "i1"
	must(t, checkpoint.WriteLease(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir, l))
	until(t, "attempt 5", func() bool {
		all := trainer.Read(dir)
		return all[len(all)-1].Attempt == "5"
	})
	// Pitstop admits another life: the training ends, and does not begin again.
	l.Epoch, l.Attempt, l.Admitted = 4, 6, []events.Admission{{Slice: "llama", Incarnation: events.Incarnation{Zone: "us-west4-b", ID: "9"}, Workers: "t1v-n-ffffffff"}}
	must(t, checkpoint.WriteLease(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir, l))
	until(t, "nobody trains", func() bool {
		all := trainer.Read(dir)
		return !alive(all[len(all)-1].PID)
	})
	p.says(t, "the lease names another life of llama")
	if !p.running() {
		t.Error("the crew has ended too")
	}
	if n := trainer.Count(dir, "began"); n != 3 {
		t.Errorf("started %d times", n)
	}
}

func TestTwoIncarnationsFightForOneLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := func(host string) *crewProcess {
		return launch(t, []string{"--checkpoint-dir=file://" + dir, "--workload=demo/llama", "--node=llama", "--zone=us-west4-a", "--host=" + host},
			train(t, "-dir="+dir, "-every=20", "-on-term=save-stop"))
	}
	first := one("t1v-n-aaaaaaaa-w-0")
	journal(t, dir, "began", 1)
	second := one("t1v-n-bbbbbbbb-w-0")
	until(t, "the second waits", func() bool { return strings.Contains(second.output(), "names another life of llama; waiting") })
	// As long as the first stirs, the second gets nothing: it beats more often than the second would wait.
	journal(t, dir, "saved", 10)
	if n := trainer.Count(dir, "began"); n != 1 {
		t.Fatalf("%d trainings", n)
	}
	first.signal(syscall.SIGKILL)
	first.code()
	pid := trainer.Read(dir)[0].PID
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	journal(t, dir, "began", 2)
	l, _ := lease(t, dir)
	if l.Attempt != 2 || l.Admitted[0].Workers != "t1v-n-bbbbbbbb" {
		t.Errorf("%+v", l)
	}
	if _, err := os.Stat(filepath.Join(dir, trainer.TwoWriters)); err == nil {
		t.Error("two trainings wrote at once")
	}
}

func TestFourCrewsOfOneSliceRestartTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fail, done := filepath.Join(t.TempDir(), "fail"), filepath.Join(t.TempDir(), "done")
	crews := slice(t, 4, nil, train(t, "-dir="+dir, "-when="+fail, "-exit=1", "-only-worker=2", "-done="+done, "-every=50"))
	journal(t, dir, "began", 4)
	touch(t, fail+"1")
	journal(t, dir, "began", 8)
	touch(t, done)
	for w, p := range crews {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
	}
	starts := map[string]int{}
	for _, e := range trainer.Read(dir) {
		if e.What == "began" {
			starts[e.Worker+" "+e.Attempt]++
		}
	}
	for w := range 4 {
		for _, attempt := range []string{"1", "2"} {
			if n := starts[fmt.Sprint(w, " ", attempt)]; n != 1 {
				t.Errorf("worker %d began attempt %s %d times", w, attempt, n)
			}
		}
	}
	if len(starts) != 8 {
		t.Errorf("%v", starts)
	}
	for w, p := range crews { // each says what happened, and why
		p.says(t, "attempt 1 ended on worker 2: exit code 1; restart 1 of 5; starting again")
		p.says(t, "attempt 2 began, process ")
		want := "ending attempt 1: it ended on worker 2: exit code 1\n"
		if w == 2 {
			want = "attempt 1 ended here: exit code 1\n"
		}
		p.says(t, want)
	}
	nobodyLeft(t, dir)
}

func touch(t testing.TB, path string) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o600))
}

// slice launches the crews of a slice.
func slice(t testing.TB, workers int, flags []string, command []string) []*crewProcess {
	t.Helper()
	addresses := make([]string, workers)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	}
	var crews []*crewProcess
	var dir string
	for _, a := range command {
		if d, ok := strings.CutPrefix(a, "-dir="); ok {
			dir = d
		}
	}
	for w := range workers {
		crews = append(crews, launch(t, append([]string{
			"--checkpoint-dir=file://" + dir, "--node=llama", "--workload=demo/llama", "--zone=us-west4-a", fmt.Sprintf("--worker=%d", w),
			fmt.Sprintf("--host=t1v-n-0123abcd-w-%d", w), "--peers=" + strings.Join(addresses, ","),
		}, flags...), command))
	}
	return crews
}

func TestWorkersOfASliceWithoutANameTrainTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	peers := fmt.Sprintf("--peers=127.0.0.1:%d,127.0.0.1:%d", freePort(t), freePort(t))
	for w := range 2 { // as in the Pods of a Job: each has a host name of its own, and none a TPU's
		p := launch(t, []string{"--checkpoint-dir=file://" + dir, peers, fmt.Sprintf("--worker=%d", w), fmt.Sprintf("--host=llama-slice-0-%d", w)}, train(t, "-dir="+dir, "-steps=20"))
		defer p.code()
	}
	journal(t, dir, "began", 2)
	if l, ok := lease(t, dir); !ok || l.Workload != "local/127.0.0.1" || l.Attempt != 1 || l.Admitted[0].Slice != "127.0.0.1" {
		t.Errorf("%+v", l)
	}
}

func TestABrokenPipeDoesNotEndPitcrew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, w, err := os.Pipe()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self(t), slices.Concat([]string{"run", "--metadata=none", "-v", "--state=" + t.TempDir()}, quick, []string{"--"},
		train(t, "-log="+dir, "-at=5", "-exit=1", "-once", "-steps=20"))...)
	cmd.Env, cmd.Stderr = append(os.Environ(), asPitcrew+"=1"), w
	must(t, errors.Join(r.Close(), cmd.Start(), w.Close()))
	if err := cmd.Wait(); err != nil || trainer.Count(dir, "began") != 2 {
		t.Errorf("%v: %v", err, trainer.Read(dir))
	}
}

func TestTheTrainingGetsTheFilesThatPitcrewWasStartedWith(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"3", "4"} {
		f, err := os.Create(filepath.Join(dir, name))
		must(t, err)
		defer f.Close() //nolint:errcheck // a test's
		files = append(files, f)
	}
	script := "echo three >&3; echo four >&4"
	cmd := exec.CommandContext(t.Context(), self(t), slices.Concat([]string{"run", "--metadata=none", "--state=" + t.TempDir(), "--checkpoint-dir=file://" + t.TempDir()}, quick, []string{"--", "sh", "-c", script})...)
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), asPitcrew+"=1"), files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{"3": "three\n", "4": "four\n"} {
		if raw, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(raw) != want {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
}

func TestTheWholeSliceEndsWithItsPrimary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Worker 0 is done after a while; the others would go on for ever.
	done := filepath.Join(t.TempDir(), "done")
	crews := slice(t, 3, []string{"--finish-grace=200ms"}, train(t, "-dir="+dir, "-when="+done, "-only-worker=0", "-exit=0"))
	journal(t, dir, "began", 3)
	touch(t, done+"1")
	for w, p := range crews {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
	}
	if n := trainer.Count(dir, "began"); n != 3 {
		t.Errorf("%d starts", n)
	}
	nobodyLeft(t, dir)
}

// TestWhoIsToldToEndTellsTheOthers: they would wait for it in the middle of a step, as long as a silent worker is waited for.
func TestWhoIsToldToEndTellsTheOthers(t *testing.T) {
	t.Parallel()
	for _, told := range some(2, []int{0, 1}) {
		dir := t.TempDir()
		crews := slice(t, 2, []string{"--worker-silence=10m", "--lease-unread=4m", "--lease-take-over=6m"}, train(t, "-dir="+dir))
		journal(t, dir, "began", 2)
		tellToEnd(t, dir, crews[told], crews[1-told])
	}
}

func TestASliceThatIsToldToEndTellsTheOtherSlices(t *testing.T) {
	t.Parallel()
	for _, told := range some(2, []int{0, 1}) {
		dir := t.TempDir()
		var crews []*crewProcess
		for s := range 2 {
			crews = append(crews, launch(t, []string{
				"--checkpoint-dir=file://" + dir, "--workload=demo/llama", fmt.Sprintf("--node=llama-%d", s), "--zone=us-west4-a",
				fmt.Sprintf("--host=t1v-n-0000000%d-w-0", s), fmt.Sprintf("--slice=%d", s), "--slices=2",
			}, train(t, "-dir="+filepath.Join(dir, fmt.Sprint("s", s)), "-log="+dir)))
		}
		journal(t, dir, "began", 2)
		tellToEnd(t, dir, crews[told], crews[1-told])
	}
}

// tellToEnd has one crew of two told to end: the other's training ends with its own, the other waits, and when the first is back
// both train.
func tellToEnd(t *testing.T, dir string, told, other *crewProcess) {
	t.Helper()
	told.signal(syscall.SIGTERM)
	if code := told.code(); code != 143 {
		t.Errorf("code %d", code)
	}
	nobodyTrains(t, dir)
	if !other.running() {
		t.Error("the other pitcrew has ended")
	}
	relaunch(t, told)
	journal(t, dir, "began", 4)
}

// nobodyTrains waits until no training of the journal runs.
func nobodyTrains(t testing.TB, dir string) {
	t.Helper()
	until(t, "nobody trains", func() bool {
		return !slices.ContainsFunc(trainer.Read(dir), func(e trainer.Entry) bool { return alive(e.PID) })
	})
}

// TestWorkersEndWithoutWorker0: it alone gives the sign of life that keeps others from taking over the lease.
func TestWorkersEndWithoutWorker0(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crews := slice(t, 2, nil, train(t, "-dir="+dir))
	journal(t, dir, "began", 2)
	crews[0].signal(syscall.SIGKILL)
	crews[0].code()
	nobodyTrains(t, dir)
	crews[1].says(t, "worker 0 was not heard for 2s")
	until(t, "the parent has written the end down", func() bool {
		_, err := os.Stat(filepath.Join(flagOf(crews[0], "state"), "exit.json"))
		return err == nil
	})
	if !crews[1].running() {
		t.Error("the crew of worker 1 has ended too")
	}
}

// TestEveryWorkerSaysForWhomTheSliceWaits: a person may read the output of any of them.
func TestEveryWorkerSaysForWhomTheSliceWaits(t *testing.T) {
	t.Parallel()
	third := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	peers := fmt.Sprintf("--peers=127.0.0.1:%d,127.0.0.1:%d,%s", freePort(t), freePort(t), third)
	key := "--peer-key=" + keyFileOf(t, aKey, 0o600)
	var crews []*crewProcess
	for w := range 2 {
		crews = append(crews, launch(t, []string{fmt.Sprintf("--worker=%d", w), "--worker-silence=400ms", peers, key}, []string{"true"}))
	}
	for _, p := range crews {
		p.says(t, "the training starts when all workers are here; waiting for 1 of 3: worker 2 ("+third+"), not heard yet\n")
	}
}

// TestNobodyHasToReadWhatPitcrewSays: the reader of its output may be stuck, and a training that has to end does.
func TestNobodyHasToReadWhatPitcrewSays(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		dir := t.TempDir()
		r, w, err := os.Pipe()
		must(t, err)
		defer r.Close() //nolint:errcheck // a test's
		defer w.Close() //nolint:errcheck // likewise
		fill(t, w)
		cmd := exec.CommandContext(t.Context(), self(t), slices.Concat([]string{"run", "--metadata=none", "-v", "--state=" + t.TempDir(), "--checkpoint-dir=file://" + dir}, quick,
			[]string{"--stop-grace=300ms", "--"}, train(t, "-dir="+dir, "-on-term=ignore"))...)
		cmd.Env, cmd.Stderr = append(os.Environ(), asPitcrew+"=1"), w
		must(t, cmd.Start())
		journal(t, dir, "began", 1)
		pid := trainer.Read(dir)[0].PID
		parent := parentOf(t, pid)
		sig := syscall.SIGTERM
		if killed {
			sig = syscall.SIGKILL
		}
		must(t, cmd.Process.Signal(sig))
		// Its parent writes down how, where a folder of this test is.
		until(t, "the training has ended", func() bool { return !alive(pid) && !alive(parent) })
		_ = cmd.Wait() //nolint:errcheck // the training is looked at
	}
}

// TestATrainingWhoseOutputNobodyTakesEnds: where pitcrew reads the output, a reader that is stuck must not keep the end back.
func TestATrainingWhoseOutputNobodyTakesEnds(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close() //nolint:errcheck // a test's, and never read
	defer w.Close() //nolint:errcheck // likewise
	fill(t, w)
	begun := filepath.Join(t.TempDir(), "begun")
	cmd := exec.CommandContext(t.Context(), self(t), slices.Concat([]string{"run", "--metadata=none", "--state=" + t.TempDir(), "--read-output", "--restarts=1", "--job-tries=0"}, quick,
		[]string{"--", "sh", "-c", "head -c 60000 /dev/zero; echo x >> " + begun + "; exit 7"})...)
	cmd.Env, cmd.Stdout = append(os.Environ(), asPitcrew+"=1"), w
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() //nolint:errcheck // the code is looked at
	}()
	select {
	case <-ended:
	case <-time.After(deadline):
		t.Error("it has not ended")
		_ = cmd.Process.Kill() //nolint:errcheck // its parent sees the end of the pipe
		return
	}
	if raw, err := os.ReadFile(begun); cmd.ProcessState.ExitCode() != 7 || err != nil || string(raw) != "x\nx\n" {
		t.Errorf("code %d, %q, %v", cmd.ProcessState.ExitCode(), raw, err)
	}
}

// fill fills a pipe.
func fill(t testing.TB, w *os.File) {
	t.Helper()
	err := w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	must(t, err)
	for err == nil {
		_, err = w.Write(make([]byte, 1<<10))
	}
}

// TestWhatAnotherCrewToldIsNotPassedOn: a training may start pitcrew, and a person in the terminal of a training.
func TestWhatAnotherCrewToldIsNotPassedOn(t *testing.T) {
	code, out := pitcrew(t, []string{"PITCREW_ATTEMPT=9", "PITCREW_RESUME_STEP=40", "PITCREW_CHECKPOINT=/x", "PITCREW_RUN=y", "PITCREW_OWN=z", "PITCREW_NUM_HOSTS=8", "PITCREW_SERVER_ADDR=10.0.0.1:1"},
		"run", "--metadata=none", "--state="+t.TempDir(), "--", "env")
	var got []string
	for line := range strings.Lines(out) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), "="); strings.HasPrefix(name, "PITCREW_") && name != asPitcrew && name != "PITCREW_RUN" {
			if name == "PITCREW_SERVER_ADDR" {
				value, _, _ = strings.Cut(value, ":") // its port is any free one
			}
			got = append(got, name+"="+value)
		}
	}
	slices.Sort(got)
	want := []string{
		"PITCREW_ATTEMPT=1", "PITCREW_HOST_INDEX=0", "PITCREW_NUM_HOSTS=1", "PITCREW_OWN=z", "PITCREW_SERVER_ADDR=127.0.0.1", "PITCREW_SLICE=0",
		"PITCREW_SLICES=1", "PITCREW_WORKER=0", "PITCREW_WORKERS=1",
	}
	if code != 0 || !slices.Equal(got, want) || strings.Count(out, "PITCREW_RUN=") != 1 {
		t.Errorf("%d: %q", code, got)
	}
}

func TestAWorkersPitcrewIsReplaced(t *testing.T) {
	t.Parallel()
	for _, killed := range some(2, []int{0, 1}) {
		dir := t.TempDir()
		crews := slice(t, 2, nil, train(t, "-dir="+dir))
		journal(t, dir, "began", 2)
		old := crews[killed]
		old.signal(syscall.SIGKILL)
		old.code()
		again := relaunch(t, old)
		until(t, "adopted", func() bool { return strings.Contains(again.output(), "adopted attempt 1") })
		crews[killed] = again
		// The slice still is one: what ends worker 1 ends and restarts both.
		for _, e := range trainer.Read(dir) {
			if e.Worker == "1" {
				must(t, syscall.Kill(e.PID, syscall.SIGABRT))
			}
		}
		journal(t, dir, "began", 4)
	}
}

// TestAnAttemptResumesFromWhatTheLastWorkerSaved: worker 0 ends first, and looked at the checkpoints when it did.
func TestAnAttemptResumesFromWhatTheLastWorkerSaved(t *testing.T) {
	t.Parallel()
	dir, said := t.TempDir(), t.TempDir()
	// Worker 0 fails once worker 1 is ready to save, or worker 1 dies of the signal that asks it to. It is ready when its crew has had the time to say
	// that it trains: of a worker that has not said so, worker 0 awaits no end.
	script := fmt.Sprintf(`case $PITCREW_ATTEMPT.$PITCREW_WORKER in
1.0) until [ -e %[2]s/ready ]; do sleep 0.02; done; exit 1 ;;
1.1) trap 'sleep 0.3; mkdir %[1]s/40; echo x > %[1]s/40/data; exit 1' TERM; sleep 0.5; touch %[2]s/ready; while :; do sleep 0.02; done ;;
*.0) echo "$PITCREW_RESUME_STEP" > %[2]s/resumed.0; until [ -e %[2]s/resumed.1 ]; do sleep 0.02; done ;; # the job ends with worker 0
*) echo "$PITCREW_RESUME_STEP" > %[2]s/resumed.$PITCREW_WORKER ;;
esac`, dir, said)
	addresses := fmt.Sprintf("--peers=127.0.0.1:%d,127.0.0.1:%d", freePort(t), freePort(t))
	var crews []*crewProcess
	for w := range 2 {
		crews = append(crews, launch(t, []string{"--checkpoint-dir=file://" + dir, addresses, fmt.Sprintf("--worker=%d", w), "--look-every=1h"}, []string{"sh", "-c", script}))
	}
	for w, p := range crews {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
		if raw, err := os.ReadFile(filepath.Join(said, fmt.Sprint("resumed.", w))); err != nil || string(raw) != "40\n" {
			t.Errorf("worker %d resumes from %q, %v", w, raw, err)
		}
	}
}

// relaunch starts a pitcrew as another one was started.
func relaunch(t testing.TB, p *crewProcess) *crewProcess {
	t.Helper()
	i := slices.Index(p.Args, "--")
	return launch(t, p.Args[2:i], p.Args[i+1:])
}

// TestANewLifeOfASliceJoinsThoughTheOthersHang: without Pitstop nobody else ends their attempt, and they keep the lease alive.
func TestANewLifeOfASliceJoinsThoughTheOthersHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crew := func(slice int, host string) *crewProcess {
		return launch(t, []string{
			"--checkpoint-dir=file://" + dir, "--workload=demo/llama", fmt.Sprintf("--node=llama-%d", slice), "--zone=us-west4-a",
			"--host=" + host, fmt.Sprintf("--slice=%d", slice), "--slices=2",
		}, train(t, "-dir="+filepath.Join(dir, fmt.Sprint("s", slice)), "-log="+filepath.Join(dir, fmt.Sprint("s", slice)), "-at=1", "-hang"))
	}
	crew(0, "t1v-n-00000000-w-0")
	old := crew(1, "t1v-n-11111111-w-0")
	journal(t, filepath.Join(dir, "s0"), "hangs", 1)
	journal(t, filepath.Join(dir, "s1"), "hangs", 1)
	old.signal(syscall.SIGKILL) // its machine is gone, with all that ran there
	old.code()
	old.sweep()
	again := crew(1, "t1v-n-22222222-w-0")
	again.says(t, "names another life of llama-1; waiting")
	journal(t, filepath.Join(dir, "s1"), "hangs", 2)
	l, ok := lease(t, dir)
	if !ok || len(l.Admitted) != 2 || l.Admitted[1].Workers != "t1v-n-22222222" {
		t.Errorf("%+v", l)
	}
	for s, p := range []string{"s0", "s1"} {
		if _, err := os.Stat(filepath.Join(dir, p, trainer.TwoWriters)); err == nil {
			t.Errorf("slice %d: two trainings wrote at once", s)
		}
	}
}

func TestTheSlicesOfAMultisliceRestartTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fail, done := filepath.Join(t.TempDir(), "fail"), filepath.Join(t.TempDir(), "done")
	var crews []*crewProcess
	for s := range 3 {
		crews = append(crews, launch(t, []string{
			"--checkpoint-dir=file://" + dir, "--workload=demo/llama", fmt.Sprintf("--node=llama-%d", s), "--zone=us-west4-a",
			fmt.Sprintf("--host=t1v-n-0000000%d-w-0", s), fmt.Sprintf("--slice=%d", s), "--slices=3",
		}, train(t, "-dir="+filepath.Join(dir, fmt.Sprint("s", s)), "-log="+dir, fmt.Sprintf("-when=%s%d-", fail, s), "-exit=1", fmt.Sprintf("-done=%s%d", done, s))))
	}
	journal(t, dir, "began", 3)
	touch(t, fail+"2-1")
	journal(t, dir, "began", 6)
	touch(t, done+"0")
	for s, p := range crews {
		if code := p.code(); code != 0 {
			t.Errorf("slice %d: code %d", s, code)
		}
	}
	starts := map[string]int{}
	for _, e := range trainer.Read(dir) {
		if e.What == "began" {
			starts[e.Attempt]++
		}
	}
	if starts["1"] != 3 || starts["2"] != 3 || len(starts) != 2 {
		t.Errorf("starts by attempt: %v", starts)
	}
	l, ok := lease(t, dir)
	if !ok || l.Attempt != 2 || len(l.Admitted) != 3 {
		t.Errorf("%+v", l)
	}
	if v := verdictIn(t, dir, 1); !v.Restart || v.Life.Slice != "llama-0" {
		t.Errorf("%+v", v)
	}
	if v := verdictIn(t, dir, 2); !v.Finished || !l.Confirms(v) || v.Ended.IsZero() {
		t.Errorf("%+v", v)
	}
	nobodyLeft(t, dir)
}

// TestRestartsOfATrainingThatDoesNotResumeAreNotSpentInSilence: each attempt and the last word say why it comes no further.
func TestRestartsOfATrainingThatDoesNotResumeAreNotSpentInSilence(t *testing.T) {
	t.Parallel()
	dir, step := t.TempDir(), filepath.Join(t.TempDir(), "step")
	script := fmt.Sprintf("sleep 0.1; echo $((PITCREW_ATTEMPT == 1 ? 30 : 3)) > %s; mkdir -p %[2]s/30; echo x > %[2]s/30/data; exit 7", step, dir)
	p := launch(t, []string{"--checkpoint-dir=file://" + dir, "--progress-file=" + step, "--no-progress=2"}, []string{"sh", "-c", script})
	if code := p.code(); code != 7 {
		t.Errorf("code %d", code)
	}
	attempts := strings.Count(p.output(), " began, process ")
	for n := 2; n <= attempts; n++ {
		for _, want := range []string{
			"WARNING: attempt %d: it does not resume: it was given step 30 and is at step 3. ",
			"attempt %d ended on worker 0: .*; it does not resume: it was given step 30 and is at step 3; ",
		} {
			if found := regexp.MustCompile(fmt.Sprintf(want, n)).FindAllString(p.output(), -1); len(found) != 1 {
				t.Errorf("attempt %d: %q", n, found)
			}
		}
	}
	if attempts < 3 || !strings.Contains(p.output(), "is at step 3; gave up") {
		t.Errorf("%d attempts", attempts)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
