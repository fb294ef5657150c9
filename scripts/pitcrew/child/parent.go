//go:build unix

package child

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/state"
)

// Parent is the minimal parent: args are the numbers of the files on which it is told what to start and tells of it, and of
// one that it keeps open. It starts a training, waits for it, writes down how it ended, ends what the training left behind,
// and does so again until its crew has ended. It catches every signal that would end it and obeys none: what ends the
// training is sent to the training.
func Parent(args []string) int {
	var files []*os.File
	for _, arg := range args {
		if fd, err := strconv.Atoi(arg); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), arg))
		}
	}
	if len(files) < 2 {
		fmt.Fprintln(os.Stderr, "pitcrew: parent is the crew's own command; call run")
		return 2
	}
	debug.SetGCPercent(50)
	callItself(parentName)
	outlive()
	catchAll()
	led, rest := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(led, ledSignal)
	signal.Notify(rest, restSignal)
	orders, words := gob.NewDecoder(files[0]), json.NewEncoder(files[1])
	say := func(a answer) {
		if err := words.Encode(a); err != nil {
			return // the crew is gone; the next one reads what was written down
		}
	}
	for first := true; ; first = false {
		var o order
		if err := orders.Decode(&o); err != nil {
			runtime.KeepAlive(files)
			return 0 // the crew has ended
		}
		if o.Watch != nil {
			t := o.watch()
			say(answer{Record: t.record})
			go t.guard(led)
			go Slim()
			say(answer{Exit: t.outlast()})
			continue
		}
		said(rest) // of the last training
		t, err := o.start()
		if err != nil {
			say(answer{Code: 126, Fault: fmt.Sprintf("%s: it cannot be executed: %s", o.Spec.Command[0], cause(err))})
			continue
		}
		say(answer{Record: t.record})
		if first {
			go Slim() // the training may end meanwhile
		}
		if o.Spec.Unled > 0 {
			go t.guard(led)
		}
		say(answer{Exit: t.wait(rest)})
	}
}

// said takes a signal that has come, and reports whether one had.
func said(by <-chan os.Signal) bool {
	select {
	case <-by:
		return true
	default:
		return false
	}
}

// Slim gives back what the start of a program took.
func Slim() {
	debug.FreeOSMemory()
	unmapCode()
}

// catchAll catches every signal that can be caught, so that none ends the parent. The training then ignores only what the
// crew was started to ignore, as under nohup.
func catchAll() {
	caught := make(chan os.Signal, 8)
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGPIPE,
	} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	go func() {
		for range caught { // they mean nothing here
			continue
		}
	}()
}

// Prefix begins each line that pitcrew prints.
func Prefix(now time.Time) string { return now.UTC().Format("2006-01-02T15:04:05Z") + " pitcrew: " }

// tell prints a line.
func tell(format string, a ...any) {
	_, _ = fmt.Fprintf(os.Stderr, Prefix(time.Now())+format+"\n", a...)
}

// unwritten tells of what could not be written into the state directory. Of a full disk the crew tells, once.
func unwritten(format string, err error) {
	if !errors.Is(err, syscall.ENOSPC) {
		tell(format, err)
	}
}

// training is the parent's view of the process that it started.
type training struct {
	spec   Spec
	pid    int
	record Record
	ooms   int64
	output *output
	tty    bool
	over   chan struct{} // closed when the training has ended
	unled  atomic.Bool
	left   atomic.Bool // the command has ended
}

func (o order) start() (*training, error) {
	s := o.Spec
	t := &training{spec: s, ooms: oomKills(), over: make(chan struct{})}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	var ends []*os.File
	if s.Read {
		t.output = newOutput(filepath.Join(s.Dir, outputFile), s.Pattern, s.Examples)
		for _, to := range []*os.File{os.Stdout, os.Stderr} {
			r, w, err := os.Pipe()
			if err != nil {
				return nil, err
			}
			t.output.copy(r, to)
			files[to.Fd()], ends = w, append(ends, w)
		}
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	if s.Terminal {
		signal.Ignore(syscall.SIGTTOU) // to hand the terminal over is done from the background
		attr.Foreground, attr.Ctty = true, 0
		t.tty = true
	}
	t.record = Record{Attempt: s.Attempt, Command: s.Command, Began: time.Now().UTC(), Run: o.Run, Unled: s.Unled, Stop: s.Stop, Dump: s.Dump}
	p, err := os.StartProcess(o.Path, s.Command, &os.ProcAttr{Files: files, Env: append(s.Env, RunVariable+"="+o.Run), Sys: attr})
	for _, w := range ends {
		w.Close() //nolint:errcheck // the training has its own
	}
	if err != nil {
		return nil, err
	}
	t.pid = p.Pid
	t.record.Parent, t.record.Training = identify(os.Getpid()), identify(t.pid)
	if err := state.Write(filepath.Join(s.Dir, recordFile), t.record); err != nil {
		unwritten("the training cannot be adopted if pitcrew is killed: %v", err)
	}
	return t, nil
}

// watch takes the place of a parent that was killed.
func (o order) watch() *training {
	r := *o.Watch
	r.Parent = identify(os.Getpid())
	if err := state.Write(filepath.Join(o.Spec.Dir, recordFile), r); err != nil {
		unwritten("the training cannot be adopted if pitcrew is killed: %v", err)
	}
	return &training{
		spec: Spec{Dir: o.Spec.Dir, Attempt: r.Attempt, Unled: r.Unled, Stop: r.Stop, Dump: r.Dump, Named: time.Now()},
		pid:  r.Training.PID, record: r, over: make(chan struct{}),
	}
}

// outlast waits until a training has ended that is no child of this process. The process that
// inherited it knows how it ended, unless this one ended it.
func (t *training) outlast() restart.Exit {
	waitGone(context.Background(), t.record.Training)
	close(t.over)
	e := restart.Exit{Attempt: t.spec.Attempt, Unknown: true, Unled: t.unled.Load(), Began: t.record.Began, Ended: time.Now().UTC()}
	if e.Unled {
		sweep(t.record.Run)
		t.finish(e)
	}
	return e
}

// guard ends the training when no crew has said for too long that the lease names it: its crew was killed, and another
// machine may train into the same directory soon.
func (t *training) guard(led <-chan os.Signal) {
	timer := time.NewTimer(time.Until(t.spec.Named.Add(t.spec.Unled)))
	for waiting := true; waiting; {
		select {
		case <-t.over:
			return
		case <-led:
			timer.Reset(t.spec.Unled)
		case <-timer.C:
			waiting = false
		}
	}
	t.unled.Store(true)
	// In a goroutine: the reader may be stuck, and the training has to end all the same.
	go tell("no crew has read the lease for %v: ending the training", t.spec.Unled)
	for _, stage := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGTERM, t.spec.Stop}, {syscall.SIGQUIT, t.spec.Dump}, {syscall.SIGKILL, 0}} {
		if t.left.Load() {
			_ = signalAll(os.Getpid(), t.pid, stage.sig) //nolint:errcheck // it may have ended just now
		} else {
			_ = syscall.Kill(-t.pid, stage.sig) //nolint:errcheck // likewise
		}
		timer.Reset(stage.wait)
		select {
		case <-t.over:
			return
		case <-timer.C:
		}
	}
}

// wait reaps until the training has ended and nothing of it is left, and returns how it ended. On rest comes what EndRest says.
func (t *training) wait(rest <-chan os.Signal) restart.Exit {
	e := restart.Exit{Attempt: t.spec.Attempt, Began: t.record.Began}
	var behind func(e *restart.Exit) (failed bool) // the first one that ended right behind the command, and was reaped before it
	for {
		var s syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &s, 0, &used)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid == t.pid {
			e.Code, e.Signal = outcome(s)
			e.MaxRSS = used.Maxrss << 10
			break
		}
		if err == nil && behind == nil && s != 0 && !t.record.Training.alive() {
			behind = func(e *restart.Exit) bool { return failed(e, pid, s, used, true) }
		}
		if err != nil {
			tell("the training cannot be waited for: %v", err)
			close(t.over)
			e.Unknown, e.Ended = true, time.Now().UTC()
			return e
		}
	}
	if t.tty {
		reclaim()
	}
	t.left.Store(true)
	told := e.Clean() && (behind == nil || !behind(&e)) && t.stay(&e, rest) || said(rest)
	close(t.over)
	e.Unled, e.OOMKilled, e.Ended = t.unled.Load(), oomKills() > t.ooms, time.Now().UTC()
	t.finish(e)
	end(t.pid, t.spec.Leftovers, told)
	if t.output != nil {
		t.output.wait(max(t.spec.Leftovers, time.Second))
		e.Tail, e.SignalAt = t.output.tail()
		t.finish(e)
	}
	return e
}

func (t *training) finish(e restart.Exit) {
	if err := state.Write(filepath.Join(t.spec.Dir, exitFile), e); err != nil {
		unwritten("the exit of the training cannot be written down: %v", err)
	}
}

// failed takes the end of a process that the command had left for that of the attempt, and reports whether it has failed. One that
// SIGTERM ends soon after the command was no training: a command ends its helpers so as it ends.
func failed(e *restart.Exit, pid int, s syscall.WaitStatus, used syscall.Rusage, soon bool) bool {
	code, sig := outcome(s)
	if soon && sig == "SIGTERM" {
		return false
	}
	e.Code, e.Signal = code, sig
	e.MaxRSS = max(e.MaxRSS, used.Maxrss<<10)
	if e.Clean() {
		return false
	}
	tell("process %d, which the command had left, has ended: %s", pid, e.Describe())
	return true
}

// stay goes on while processes run that the command has left: one that ends with exit code 0 may only have launched the training.
// How they end is then how the attempt does, and so does what they leave in turn. It ends early, and returns true, when the crew
// knows that no training is left.
func (t *training) stay(e *restart.Exit, rest <-chan os.Signal) bool {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	left := map[int]bool{} // whether their exit codes tell how the training ended
	add := func() {
		for _, pid := range children() {
			left[pid] = !hides(pid)
		}
	}
	add()
	soon, named := true, time.After(t.spec.Leftovers)
	for {
		var s syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &s, syscall.WNOHANG, &used)
		tells, counts := left[pid]
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return false // nothing runs any more
		case counts:
			if failed(e, pid, s, used, soon) {
				return false
			}
			e.Unknown = !tells
			delete(left, pid)
			add()
			continue
		case pid > 0:
			continue
		}
		select {
		case <-rest:
			return true
		case <-ended:
		case <-named:
			soon = false
			tell("the command has ended with exit code 0, and left processes that still run: %s. The attempt goes on until they end. "+
				"If none of them trains, end them with the command", names(children()))
		}
	}
}

// reap takes the children that have ended, and reports whether others are left.
func reap() (left bool) {
	for {
		switch pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		}
	}
}

// end ends what the training left behind: the rest of its process group, and whatever was left to this process by a
// parent that ended. They are asked first. They are named; but where the training was told to end, so was its process group.
func end(group int, grace time.Duration, told bool) {
	alive := func() bool {
		left := reap()
		return left || syscall.Kill(-group, 0) == nil
	}
	if !alive() {
		return
	}
	left := children()
	if told {
		left = slices.DeleteFunc(left, func(pid int) bool { return belongs(pid, group) })
	}
	if !told || len(left) > 0 {
		tell("ending what the command has left: %s", names(left))
	}
	deadline := time.Now().Add(grace)
	send := func(sig syscall.Signal) {
		for _, pid := range append(children(), -group) {
			_ = syscall.Kill(pid, sig) //nolint:errcheck // it may have ended just now
		}
	}
	send(syscall.SIGTERM)
	send(syscall.SIGCONT)
	for wait := time.Millisecond; alive(); wait = min(2*wait, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			if told {
				told = false
				tell("killing what the command has left, %v after SIGTERM: %s", grace, names(children()))
			}
			send(syscall.SIGKILL)
		}
		time.Sleep(wait)
	}
}

// output copies the output of a training and keeps of it the last lines and the last step.
type output struct {
	path    string
	pattern *pattern
	rate    *pattern // of examples a second
	done    sync.WaitGroup
	passed  atomic.Int64 // bytes that somebody took

	mu      sync.Mutex
	lines   []string // a ring
	next    int
	last    Output
	rated   bool // the first line with examples a second has come
	written time.Time
	// signalled is when the output last told of a received signal.
	signalled time.Time
	over      bool // what comes now is too late to count
}

// The bounds of the kept output: lines of that length, so many of them, and how often the step is written down.
const (
	tailLines = 50
	tailWidth = 400
	writeStep = time.Second
)

func newOutput(path, step, rate string) *output {
	o := &output{path: path, last: Output{Step: -1}}
	if step != "" {
		o.pattern = compile(step)
	}
	if rate != "" {
		o.rate = compile(rate)
	}
	return o
}

// copy carries one stream. When nobody takes it any more it is read on, so that the training does not die of it.
func (o *output) copy(from, to *os.File) {
	o.done.Go(func() {
		defer from.Close() //nolint:errcheck // it was only read
		buf := make([]byte, 64<<10)
		var rest []byte
		open := true
		for {
			n, err := from.Read(buf)
			if n > 0 && open {
				if _, werr := to.Write(buf[:n]); werr != nil {
					open = false
				}
				o.passed.Add(int64(n))
			}
			rest = o.take(rest, buf[:n])
			if err != nil {
				o.add(rest)
				return
			}
		}
	})
}

// take looks at one piece of output: at all of it for a received signal, at its last lines for the tail, and from its
// end on for a step, because only the last one counts. It returns the beginning of a line that is not complete yet.
func (o *output) take(rest, piece []byte) []byte {
	if tellsOfSignal(rest, piece) {
		o.mu.Lock()
		o.signalled = time.Now().UTC()
		o.mu.Unlock()
	}
	cut := bytes.LastIndexAny(piece, lineEnds)
	if cut < 0 {
		return keep(append(rest, piece...))
	}
	lines := piece[:cut]
	var first []byte
	if len(rest) > 0 {
		n := bytes.IndexAny(piece, lineEnds)
		first, lines = append(rest, piece[:n]...), piece[min(n+1, cut):cut]
	}
	var tail [][]byte
	step, rates := int64(-1), []float64(nil)
	look := func(line []byte) (enough bool) {
		if len(line) > 0 && len(tail) < tailLines {
			tail = append(tail, line)
		}
		if o.pattern != nil && step < 0 {
			step = o.pattern.step(line)
		}
		if rate := o.rate.value(line); rate >= 0 {
			rates = append(rates, rate)
		}
		return len(tail) == tailLines && (o.pattern == nil || step >= 0) && (o.rate == nil || len(rates) > 0)
	}
	for end := len(lines); end >= 0; {
		start := bytes.LastIndexAny(lines[:end], lineEnds) + 1
		if look(lines[start:end]) {
			break
		}
		end = start - 1
	}
	if len(first) > 0 {
		look(first)
	}
	o.mu.Lock()
	for _, line := range slices.Backward(tail) {
		o.push(line)
	}
	slices.Reverse(rates)
	o.note(step, rates)
	o.mu.Unlock()
	return keep(append([]byte(nil), piece[cut+1:]...))
}

// lineEnds end a line: progress bars begin theirs again with the second.
const lineEnds = "\n\r"

// keep bounds the beginning of a line: progress bars never end theirs.
func keep(rest []byte) []byte {
	if len(rest) > 4*tailWidth {
		rest = append(rest[:0], rest[len(rest)-2*tailWidth:]...)
	}
	return rest
}

// add takes the last line, which nothing ends. take has searched it for a received signal.
func (o *output) add(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.push(line)
	var rates []float64
	if rate := o.rate.value(line); rate >= 0 {
		rates = append(rates, rate)
	}
	o.note(o.pattern.step(line), rates)
}

func (o *output) push(line []byte) {
	if len(line) == 0 {
		return
	}
	line = line[:min(len(line), tailWidth)]
	text := strings.ToValidUTF8(string(line), "?")
	if len(o.lines) < tailLines {
		o.lines = append(o.lines, text)
		return
	}
	o.lines[o.next] = text
	o.next = (o.next + 1) % tailLines
}

// note writes the step and what lines said of examples a second down, at most once a second: the crew looks seldom. A step less than 0
// is none.
func (o *output) note(step int64, rates []float64) {
	if step < 0 && len(rates) == 0 || o.over {
		return
	}
	now := time.Now()
	if step >= 0 {
		o.last.Step, o.last.At = step, now.UTC()
	}
	for _, rate := range rates {
		if !o.rated { // the compilation slows the first one down
			o.rated = true
			continue
		}
		o.last.Lines++
		o.last.Examples += (rate - o.last.Examples) / float64(o.last.Lines)
	}
	if now.Sub(o.written) < writeStep {
		return
	}
	o.written = now
	_ = state.Write(o.path, o.last) //nolint:errcheck // the next one may be written
}

// wait waits for the rest of the output as long as somebody takes it: who has stopped to for that long does not keep back how
// the training ended.
func (o *output) wait(idle time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.done.Wait()
	}()
	timer := time.NewTicker(idle)
	defer timer.Stop()
	for waiting, passed := true, int64(-1); waiting; {
		select {
		case <-done:
			waiting = false
		case <-timer.C:
			n := o.passed.Load()
			waiting, passed = n != passed, n
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	if o.last.Step >= 0 || o.last.Lines > 0 {
		_ = state.Write(o.path, o.last) //nolint:errcheck // the step is then an older one
	}
}

// tail returns the last lines, and when one last told of a received signal.
func (o *output) tail() (lines []string, signalled time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append(slices.Clone(o.lines[o.next:]), o.lines[:o.next]...), o.signalled
}
