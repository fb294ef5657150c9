//go:build unix

// Package trainer is a training run without a model: it behaves towards its supervisor as real ones do, the bad ones
// among them, so that the crew is proved on real processes, real signals and real files. A test program becomes a trainer
// when it finds Variable in its environment.
package trainer

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Variable makes a trainer of a test program.
const Variable = "PITCREW_TRAINER"

// The names of what a trainer leaves in its directory.
const (
	// Journal has a line for everything that happens: attempt, process, what.
	Journal = "journal"
	// TwoWriters is there when a trainer met another one that still wrote.
	TwoWriters = "two-writers"
	writer     = "writer"
)

type config struct {
	dir, onTerm, progress, die, log string
	step, takes, begins             time.Duration
	steps, every, at                int64
	exit, children                  int
	print                           int64
	prints, detached, hang          bool
	crashSaving, once               bool
	failWorker, when, done          string
}

// Main trains as args say and returns the code to exit with.
func Main(args []string) int {
	var c config
	f := flag.NewFlagSet("trainer", flag.ContinueOnError)
	f.StringVar(&c.dir, "dir", "", "the checkpoint directory")
	f.StringVar(&c.log, "log", "", "the directory of the journal, if it is another")
	f.StringVar(&c.onTerm, "on-term", "", "on SIGTERM: save (and go on), save-stop, stop, ignore; nothing: die of it")
	f.StringVar(&c.progress, "progress", "", "the file for the step")
	f.StringVar(&c.die, "die", "", "the signal to die of")
	f.DurationVar(&c.step, "step", 2*time.Millisecond, "the time of a step")
	f.DurationVar(&c.takes, "save-takes", 0, "the time of a save")
	f.DurationVar(&c.begins, "begins", 0, "the time before the first step")
	f.Int64Var(&c.steps, "steps", 0, "the step after which the job is done; 0 is never")
	f.Int64Var(&c.every, "every", 0, "the steps between two checkpoints")
	f.Int64Var(&c.at, "at", 0, "the step of this attempt at which it exits, dies or hangs")
	f.IntVar(&c.exit, "exit", 0, "the code to exit with")
	f.IntVar(&c.children, "children", 0, "how many processes it forks that outlive it")
	f.BoolVar(&c.detached, "detached", false, "each of them in a session of its own")
	f.Int64Var(&c.print, "print", 0, "how many bytes it prints first")
	f.BoolVar(&c.prints, "print-steps", false, "tell each step on the output as MaxText does")
	f.BoolVar(&c.hang, "hang", false, "hang instead of ending")
	f.BoolVar(&c.crashSaving, "crash-saving", false, "crash while saving")
	f.BoolVar(&c.once, "once", false, "end so in the first attempt only")
	f.StringVar(&c.when, "when", "", "end so when this file and the number of the attempt are there, in place of -at")
	f.StringVar(&c.done, "done", "", "the job is done when this file is there")
	f.StringVar(&c.failWorker, "only-worker", "", "end so on this worker only")
	sleep := f.Bool("sleep", false, "be one of the forked processes")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if *sleep {
		select {}
	}
	return run(c)
}

type training struct {
	config
	step    int64
	attempt string
}

func run(c config) int {
	t := &training{config: c, attempt: os.Getenv("PITCREW_ATTEMPT")}
	asked := make(chan os.Signal, 4)
	switch c.onTerm {
	case "":
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
	default:
		signal.Notify(asked, syscall.SIGTERM, syscall.SIGUSR1)
	}
	signal.Ignore(syscall.SIGQUIT) // a dump of its stacks would be long
	t.journal("began")
	if err := t.open(); err != nil {
		fmt.Fprintln(os.Stderr, "trainer:", err)
		return 3
	}
	for range c.children {
		t.fork()
	}
	t.chatter()
	time.Sleep(c.begins)
	first := t.step
	for {
		select {
		case s := <-asked:
			t.journal("caught " + s.String())
			if t.onSignal() {
				return 0
			}
		case <-time.After(c.step):
		}
		t.step++
		t.tell()
		if c.every > 0 && t.step%c.every == 0 {
			t.save()
		}
		if c.steps > 0 && t.step >= c.steps {
			t.journal("finished")
			return 0
		}
		if c.done != "" && exists(c.done) {
			t.journal("finished")
			return 0
		}
		if (c.at > 0 && t.step-first >= c.at || c.when != "" && exists(c.when+t.attempt)) && t.ends() {
			return t.end()
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (t *training) ends() bool {
	if t.failWorker != "" && os.Getenv("PITCREW_WORKER") != t.failWorker {
		return false
	}
	return !t.once || t.attempt == "" || t.attempt == "1"
}

func (t *training) end() int {
	switch {
	case t.hang:
		t.journal("hangs")
		select {}
	case t.die != "":
		n, err := strconv.Atoi(t.die)
		if err != nil {
			return 2
		}
		t.journal("dies")
		// The runtime of a Go program does not die of each signal as others do; a shell in its place does.
		script := fmt.Sprintf("ulimit -c 0; kill -%d $$; exit 77", n)
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ()) //nolint:errcheck // it does not return
		return 2
	}
	t.journal("exits")
	return t.exit
}

func (t *training) onSignal() (done bool) {
	switch t.onTerm {
	case "save":
		t.save()
	case "save-stop":
		t.save()
		t.journal("stopped")
		return true
	case "stop":
		t.journal("stopped")
		return true
	}
	return false
}

// open finds the last complete checkpoint, and looks whether another trainer still writes.
func (t *training) open() error {
	if t.dir == "" {
		return nil
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil { //nolint:gosec // a test's
		return err
	}
	names, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if step, err := strconv.ParseInt(n.Name(), 10, 64); err == nil {
			t.step = max(t.step, step)
		}
	}
	path := filepath.Join(t.dir, writer+os.Getenv("PITCREW_WORKER"))
	if raw, err := os.ReadFile(path); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && pid != os.Getpid() && lives(pid) {
			t.journal("two writers: " + strconv.Itoa(pid))
			if err := os.WriteFile(filepath.Join(t.dir, TwoWriters), raw, 0o600); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600)
}

// lives reports whether a process lives; a zombie does not.
func lives(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(raw), ") Z ")
}

func (t *training) fork() {
	cmd := exec.Command(os.Args[0], "-sleep") //nolint:gosec,noctx // this program, and it outlives everything
	cmd.Env = os.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: t.detached}
	if err := cmd.Start(); err != nil {
		t.journal("cannot fork: " + err.Error())
		return
	}
	t.journal("forked " + strconv.Itoa(cmd.Process.Pid))
}

func (t *training) chatter() {
	if t.print == 0 {
		return
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<16)
	line := []byte(strings.Repeat("x", 127) + "\n")
	for n := int64(0); n < t.print; n += int64(len(line)) {
		if _, err := w.Write(line); err != nil {
			t.journal("output broken: " + err.Error())
			return
		}
	}
	if err := w.Flush(); err != nil {
		t.journal("output broken: " + err.Error())
	}
	t.journal("printed")
}

func (t *training) tell() {
	if t.prints {
		if _, err := fmt.Printf("completed step: %d, seconds: 0.1, loss: 1.0\n", t.step); err != nil {
			t.journal("output broken: " + err.Error())
		}
	}
	if t.progress != "" {
		_ = os.WriteFile(t.progress, []byte(strconv.FormatInt(t.step, 10)), 0o600) //nolint:errcheck // the next step writes again
	}
}

var saves atomic.Int64

// save writes a checkpoint as Orbax does on a file system: under a temporary name, renamed when it is complete.
func (t *training) save() {
	if t.dir == "" || os.Getenv("PITCREW_WORKER") != "" && os.Getenv("PITCREW_WORKER") != "0" {
		return
	}
	final := filepath.Join(t.dir, strconv.FormatInt(t.step, 10))
	temp := fmt.Sprintf("%s.orbax-checkpoint-tmp-%d", final, saves.Add(1))
	if err := os.MkdirAll(temp, 0o755); err != nil { //nolint:gosec // a test's
		t.journal("cannot save: " + err.Error())
		return
	}
	if err := os.WriteFile(filepath.Join(temp, "manifest.ocdbt"), []byte("arrays"), 0o600); err != nil {
		t.journal("cannot save: " + err.Error())
	}
	time.Sleep(t.takes)
	if t.crashSaving && t.ends() {
		t.journal("crashes while saving")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // it cannot fail on itself
		select {}
	}
	if err := os.Rename(temp, final); err != nil && !errors.Is(err, fs.ErrExist) {
		t.journal("cannot save: " + err.Error())
		return
	}
	t.journal("saved")
}

// journal adds a line to the journal.
func (t *training) journal(what string) {
	dir := t.log
	if dir == "" {
		dir = t.dir
	}
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, Journal), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()                                                                                             //nolint:errcheck // a line more or less
	_, _ = io.WriteString(f, Entry{t.attempt, os.Getenv("PITCREW_WORKER"), os.Getpid(), t.step, what}.String()) //nolint:errcheck // likewise
}

// Entry is a line of the journal.
type Entry struct {
	Attempt, Worker string
	PID             int
	Step            int64
	What            string
}

// String is the line.
func (e Entry) String() string {
	return fmt.Sprintf("%s|%s|%d|%d|%s\n", e.Attempt, e.Worker, e.PID, e.Step, e.What)
}

// Read returns the journal in a directory, as far as it goes.
func Read(dir string) []Entry {
	raw, err := os.ReadFile(filepath.Join(dir, Journal))
	if err != nil {
		return nil
	}
	var all []Entry
	for line := range strings.Lines(string(raw)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 5)
		if len(f) != 5 {
			continue
		}
		pid, perr := strconv.Atoi(f[2])
		step, serr := strconv.ParseInt(f[3], 10, 64)
		if perr == nil && serr == nil {
			all = append(all, Entry{f[0], f[1], pid, step, f[4]})
		}
	}
	return all
}

// Count is how many lines of the journal say what.
func Count(dir, what string) int {
	return len(slices.DeleteFunc(Read(dir), func(e Entry) bool { return e.What != what }))
}
