//go:build linux

package child_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/trainer"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == child.ParentCommand {
		os.Exit(child.Parent(os.Args[2:]))
	}
	if os.Getenv(trainer.Variable) != "" {
		os.Exit(trainer.Main(os.Args[1:]))
	}
	if os.Getenv("CHILD_TEST_CREW") != "" {
		os.Exit(crewThatIsKilled())
	}
	os.Exit(m.Run())
}

func spec(t *testing.T, args ...string) child.Spec {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return child.Spec{
		Dir: t.TempDir(), Attempt: 3, Command: append([]string{self}, args...), Leftovers: 2 * time.Second,
		Env: append(os.Environ(), trainer.Variable+"=1"),
	}
}

func start(t *testing.T, s child.Spec) *child.Child {
	t.Helper()
	var k child.Keeper
	t.Cleanup(k.Close)
	c, err := k.Start(s, nil)
	must(t, err)
	t.Cleanup(func() {
		if c.Running() {
			_ = c.Signal(syscall.SIGKILL) //nolint:errcheck // it may just have ended
			<-c.Done()
		}
	})
	return c
}

func ended(t *testing.T, c *child.Child) restart.Exit {
	t.Helper()
	select {
	case <-c.Done():
		return c.Exit()
	case <-time.After(20 * time.Second):
		t.Fatal("the training has not ended")
		return restart.Exit{}
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		if f() {
			tick.Stop()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("not within 20 s: " + what)
		case <-tick.C:
		}
	}
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(raw), ") Z ")
}

func TestEveryExitCode(t *testing.T) {
	for _, code := range []int{0, 1, 2, 3, 125, 126, 127, 128, 134, 137, 139, 143, 255} {
		e := ended(t, start(t, spec(t, "-at", "1", "-step", "0", "-exit", strconv.Itoa(code))))
		if e.Code != code || e.Signal != "" || e.Unknown || e.Attempt != 3 {
			t.Errorf("exit %d came as %+v", code, e)
		}
	}
}

func TestEverySignalThatKills(t *testing.T) {
	for _, sig := range []syscall.Signal{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31} {
		if signal.Ignored(sig) { // as under nohup: then the child ignores it, too
			t.Logf("%s is ignored here", child.SignalName(sig))
			continue
		}
		// A Go program cannot die of each signal; a shell can.
		s := spec(t)
		s.Command = []string{"sh", "-c", fmt.Sprintf("ulimit -c 0; kill -%d $$; exit 77", sig)}
		e := ended(t, start(t, s))
		if e.Signal != child.SignalName(sig) || e.Code != 0 {
			t.Errorf("signal %d came as %+v", sig, e)
		}
		if n, ok := child.SignalOf(e.Signal); !ok || n != sig {
			t.Errorf("%s is %d, want %d", e.Signal, n, sig)
		}
	}
}

func TestCommandsThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"notexecutable": 0o644, "nonsense": 0o755} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("nothing that runs\n"), mode))
	}
	for command, want := range map[string]int{
		"pitcrew-no-such-command": 127, dir + "/missing": 127, dir: 126, dir + "/notexecutable": 126, dir + "/nonsense": 126,
	} {
		s := spec(t)
		s.Command = []string{command}
		_, err := new(child.Keeper).Start(s, nil)
		var failed *child.StartError
		if !errors.As(err, &failed) || failed.Code != want || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want code %d", command, err, want)
		}
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	for _, detached := range []string{"-detached=false", "-detached"} {
		dir := t.TempDir()
		s := spec(t, "-log", dir, "-children", "3", detached, "-at", "3", "-exit", "7")
		if e := ended(t, start(t, s)); e.Code != 7 {
			t.Fatalf("%+v", e)
		}
		n := 0
		for _, e := range trainer.Read(dir) {
			if text, ok := strings.CutPrefix(e.What, "forked "); ok {
				n++
				if pid, err := strconv.Atoi(text); err != nil || alive(pid) {
					t.Errorf("%s: process %s still runs", detached, text)
				}
			}
		}
		if n != 3 {
			t.Errorf("%s: %d of 3 children were forked", detached, n)
		}
	}
}

func TestOutputIsInheritedOrCopiedWhole(t *testing.T) {
	const size = 8 << 20
	for _, read := range []bool{false, true} {
		s := spec(t, "-print", strconv.Itoa(size), "-at", "1", "-print-steps")
		s.Read, s.Pattern = read, child.Patterns["maxtext"]
		out := filepath.Join(t.TempDir(), "out")
		f, err := os.Create(out)
		must(t, err)
		old := os.Stdout
		os.Stdout = f
		c, err := new(child.Keeper).Start(s, nil)
		os.Stdout = old
		must(t, err)
		e := ended(t, c)
		got, err := os.ReadFile(out)
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		want := append(bytes.Repeat(append(bytes.Repeat([]byte("x"), 127), '\n'), size/128), "completed step: 1, seconds: 0.1, loss: 1.0\n"...)
		if !bytes.Equal(got, want) {
			t.Errorf("read %v: %d bytes came through, want %d", read, len(got), len(want))
		}
		o, ok := c.Output()
		if ok != read || read && (o.Step != 1 || len(e.Tail) != 50 || !strings.HasPrefix(e.Tail[49], "completed step: 1")) {
			t.Errorf("read %v: step %+v %v, %d lines", read, o, ok, len(e.Tail))
		}
	}
}

func TestSignalsGoToWhoHandlesThem(t *testing.T) {
	for _, c := range []struct {
		name, onTerm string
		shell        bool
		want         int
	}{
		{name: "a training that would die", want: 0},
		{name: "a training that ignores it", onTerm: "ignore", want: 0},
		{name: "a training that saves", onTerm: "save", want: 1},
		{name: "a training that saves, behind a shell", onTerm: "save", shell: true, want: 1},
		{name: "a training that would die, behind a shell", shell: true, want: 0},
	} {
		dir := t.TempDir()
		// A Go program handles every signal as long as its runtime is alive: what dies has to be something else.
		s := spec(t, "-log", dir, "-on-term", c.onTerm)
		if c.onTerm == "" {
			s.Command = []string{"sleep", "60"}
		}
		if c.shell {
			s.Command = []string{"sh", "-c", strings.Join(s.Command, " ") + "; exit $?"}
		}
		h := start(t, s)
		if c.onTerm != "" {
			until(t, "began", func() bool { return trainer.Count(dir, "began") > 0 })
		}
		pids := h.Handlers(syscall.SIGTERM)
		if len(pids) != c.want {
			t.Errorf("%s: %d processes handle it, want %d", c.name, len(pids), c.want)
			continue
		}
		for _, pid := range pids {
			must(t, child.Send(pid, syscall.SIGTERM))
			until(t, "caught", func() bool { return trainer.Count(dir, "caught terminated") > 0 })
		}
		if !h.Running() {
			t.Errorf("%s: it has ended", c.name)
		}
	}
}

// crewThatIsKilled starts a training and waits to be killed.
func crewThatIsKilled() int {
	var k child.Keeper
	_, err := k.Start(child.Spec{
		Dir: os.Getenv("CHILD_TEST_CREW"), Attempt: 5, Command: os.Args[1:], Env: os.Environ(), Leftovers: time.Second,
		Read: os.Getenv("CHILD_TEST_READ") != "", Pattern: child.Patterns["maxtext"],
	}, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	select {}
}

// abandoned is a training whose crew was killed.
func abandoned(t *testing.T, read bool, args ...string) (state string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	state = t.TempDir()
	crew := exec.CommandContext(t.Context(), self, append([]string{"env", trainer.Variable + "=1", self}, args...)...)
	crew.Env = append(os.Environ(), "CHILD_TEST_CREW="+state)
	if read {
		crew.Env = append(crew.Env, "CHILD_TEST_READ=1")
	}
	out, err := crew.StdoutPipe()
	must(t, err)
	must(t, crew.Start())
	buf := make([]byte, 100)
	for said := ""; !strings.Contains(said, "started"); {
		n, err := out.Read(buf)
		if said += string(buf[:n]); err != nil {
			t.Fatal(said, err)
		}
	}
	must(t, crew.Process.Kill())
	_ = crew.Wait() //nolint:errcheck // it was killed, and its output is closed
	return state
}

func TestTheNextCrewAdopts(t *testing.T) {
	for _, read := range []bool{false, true} {
		log := t.TempDir()
		state := abandoned(t, read, "-log", log, fmt.Sprintf("-print-steps=%v", read), "-at", "300", "-exit", "9")
		c, err := child.Adopt(state, nil)
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		if !c.Running() || !c.Adopted || c.Attempt != 5 {
			t.Errorf("adopted %+v", c.Record)
		}
		e := ended(t, c)
		if e.Code != 9 || e.Unknown {
			t.Errorf("read %v: it ended with %+v", read, e)
		}
		// The output went nowhere from then on, and the training did not die of that.
		if i := slices.IndexFunc(trainer.Read(log), func(e trainer.Entry) bool { return e.What == "exits" }); i < 0 {
			t.Errorf("read %v: %v", read, trainer.Read(log))
		}
	}
}

func TestAnEndThatNobodySawIsUnknown(t *testing.T) {
	log := t.TempDir()
	state := abandoned(t, false, "-log", log, "-children", "1", "-detached")
	c, err := child.Adopt(state, nil)
	must(t, err)
	until(t, "forked", func() bool { return len(trainer.Read(log)) > 1 })
	// The parent is killed, too: the training goes on, and is still watched.
	must(t, syscall.Kill(c.Parent.PID, syscall.SIGKILL))
	until(t, "the parent is gone", func() bool { return !alive(c.Parent.PID) })
	if !alive(c.Training.PID) || !c.Running() {
		t.Fatal("the training ended with its parent")
	}
	must(t, syscall.Kill(c.Training.PID, syscall.SIGKILL))
	if e := ended(t, c); !e.Unknown {
		t.Errorf("it ended with %+v", e)
	}
	for _, e := range trainer.Read(log) {
		if text, ok := strings.CutPrefix(e.What, "forked "); ok {
			if pid, err := strconv.Atoi(text); err != nil || alive(pid) {
				t.Errorf("process %s still runs", text)
			}
		}
	}
}

// TestARecordOfAnotherLifeOfTheMachineTouchesNobody: a process of today may have the number of one from before.
func TestARecordOfAnotherLifeOfTheMachineTouchesNobody(t *testing.T) {
	dir := t.TempDir()
	other := exec.CommandContext(t.Context(), "sleep", "60")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, other.Start())
	record := fmt.Sprintf(`{"attempt": 4, "run": "before", "parent": {"pid": %d, "start": "x/1"}, "training": {"pid": %d, "start": "x/2"}}`, other.Process.Pid, other.Process.Pid)
	must(t, os.WriteFile(filepath.Join(dir, "training.json"), []byte(record), 0o600))
	c, err := child.Adopt(dir, nil)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	if e := ended(t, c); !e.Unknown || e.Attempt != 4 {
		t.Errorf("%+v", e)
	}
	if !alive(other.Process.Pid) {
		t.Error("a process that has nothing to do with it was killed")
	}
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = other.Wait() //nolint:errcheck // it was killed
}

// TestAParentThatIsKilledBeforeItTellsLeavesNoTraining: its order is given to another parent, and one training would run
// beside the other.
func TestAParentThatIsKilledBeforeItTellsLeavesNoTraining(t *testing.T) {
	var k child.Keeper
	t.Cleanup(k.Close)
	s := spec(t, "-steps=1")
	stderr, full := os.Stderr, fullPipe(t)
	os.Stderr = full
	c, err := k.Start(s, nil)
	os.Stderr = stderr
	must(t, err)
	<-c.Done()
	// It cannot write the training down, and its line about that goes into a pipe that nobody reads.
	must(t, os.MkdirAll(filepath.Join(s.Dir, fmt.Sprintf("training.json.%d", c.Parent.PID), "full"), 0o700))
	journal := t.TempDir()
	s.Command = append(s.Command[:1:1], "-log="+journal)
	started := make(chan *child.Child, 1)
	go func() {
		again, err := k.Start(s, nil)
		if err != nil {
			t.Error(err)
		}
		started <- again
	}()
	for trainer.Count(journal, "began") == 0 {
		time.Sleep(time.Millisecond)
	}
	must(t, syscall.Kill(c.Parent.PID, syscall.SIGKILL))
	again := <-started
	if again == nil {
		return
	}
	for trainer.Count(journal, "began") < 2 {
		time.Sleep(time.Millisecond)
	}
	first := trainer.Read(journal)[0].PID
	if first == again.Training.PID || alive(first) {
		t.Errorf("process %d trains beside %d", first, again.Training.PID)
	}
	_ = again.Signal(syscall.SIGKILL) //nolint:errcheck // it may just have ended
	<-again.Done()
}

// fullPipe is a pipe that takes nothing more.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) }) //nolint:errcheck // a test's
	err = w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	for err == nil {
		_, err = w.Write(make([]byte, 1<<10))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return w
}

func TestNobodyToAdopt(t *testing.T) {
	if c, err := child.Adopt(t.TempDir(), nil); c != nil || err != nil {
		t.Error(c, err)
	}
}

func TestOneParentForOneAttemptAfterTheOther(t *testing.T) {
	var k child.Keeper
	t.Cleanup(k.Close)
	holds := 0
	hold := func() (*os.File, error) {
		holds++
		return os.Open(os.DevNull)
	}
	s := spec(t, "-at", "1", "-exit", "7")
	var parents []int
	for n := range 4 {
		s.Attempt, s.Env = n, append(s.Env, "ODD=\xff\xfe")
		c, err := k.Start(s, hold)
		must(t, err)
		if e := ended(t, c); e.Code != 7 || e.Attempt != n {
			t.Errorf("attempt %d: %+v", n, e)
		}
		parents = append(parents, c.Parent.PID)
		if n == 1 { // killed between two attempts
			must(t, syscall.Kill(c.Parent.PID, syscall.SIGKILL))
			until(t, "it is gone", func() bool { return !alive(c.Parent.PID) })
		}
	}
	if parents[0] != parents[1] || parents[1] == parents[2] || parents[2] != parents[3] || holds != 2 {
		t.Errorf("parents %v, held %d times", parents, holds)
	}
	k.Close()
	if alive(parents[3]) {
		t.Error("the parent stays")
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
