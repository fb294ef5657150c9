//go:build unix

// Package child runs one training process and keeps it in good hands. Between the crew and the training stays a minimal
// parent, a process of its own. The parent reaps what the training leaves behind and writes down how it ended. It lives on
// when the crew is killed, so the next crew finds the training, or its end.
package child

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/state"
)

// parentName is what the parent is called among the processes: a person who kills pitcrew by its name does not mean this process.
const parentName = "training-parent"

// ParentCommand is the first argument under which a program that uses this package has to call Parent.
const ParentCommand = "parent"

// Spec is one attempt of a training.
type Spec struct {
	// Dir is the crew's state directory; the record of the attempt is kept there.
	Dir string `json:"dir"`
	// Attempt is its number, Command what runs, Env the environment of the training.
	Attempt int      `json:"attempt"`
	Command []string `json:"command"`
	Env     []string `json:"env"`
	// Read has the parent read the output, for the step and for the last lines; Pattern has one group, the step, and Examples one,
	// the examples a second.
	Read     bool   `json:"read,omitzero"`
	Pattern  string `json:"pattern,omitzero"`
	Examples string `json:"examples,omitzero"`
	// Leftovers is how long processes that the training leaves behind have to end by themselves.
	Leftovers time.Duration `json:"leftovers"`
	// Unled is after how long without a word of a crew (Led) the parent ends the training by itself, counted from Named at
	// first; 0 is never. It has Stop after SIGTERM and Dump after SIGQUIT then.
	Unled time.Duration `json:"unled,omitzero"`
	Stop  time.Duration `json:"stop,omitzero"`
	Dump  time.Duration `json:"dump,omitzero"`
	Named time.Time     `json:"named,omitzero"`
	// Terminal hands the terminal of the standard input to the training, as a shell does.
	Terminal bool `json:"terminal,omitzero"`
}

// Record describes the attempt that runs; it is kept in the state directory.
type Record struct {
	Attempt  int       `json:"attempt"`
	Command  []string  `json:"command"`
	Began    time.Time `json:"began"`
	Parent   Identity  `json:"parent"`
	Training Identity  `json:"training"`
	// Run marks the environment of every process of this attempt.
	Run string `json:"run"`
	// Unled, Stop and Dump are those of the Spec: who takes the place of a parent that was killed goes by them, too.
	Unled time.Duration `json:"unled,omitzero"`
	Stop  time.Duration `json:"stop,omitzero"`
	Dump  time.Duration `json:"dump,omitzero"`
}

// Identity is a process and not another one that got its number later: start is the kernel's word for when it began.
type Identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// The files of the state directory.
const (
	recordFile = "training.json"
	exitFile   = "exit.json"
	outputFile = "output.json"
)

// RunVariable marks the processes of one attempt.
const RunVariable = "PITCREW_RUN"

// StartError says that the training could not be started; Code is what a shell would have exited with.
type StartError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Look finds the program of a command as a shell does: 127 where there is none, 126 where it cannot be executed.
func Look(command []string) (string, error) {
	if len(command) == 0 {
		return "", &StartError{Code: 127, Err: errors.New("there is no command behind --")}
	}
	path, err := exec.LookPath(command[0])
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", &StartError{Code: 127, Err: fmt.Errorf("%s: it is in the working directory; call it ./%s", command[0], command[0])}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &StartError{Code: 127, Err: fmt.Errorf("%s: there is no such command", command[0])}
	}
	return "", &StartError{Code: 126, Err: fmt.Errorf("%s: it cannot be executed: %s", command[0], cause(err))}
}

func cause(err error) string {
	if p := (*exec.Error)(nil); errors.As(err, &p) {
		err = p.Err
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return "it is no program of this machine, and no script whose first line names one"
	}
	return err.Error()
}

// Child is a training that runs, or has run.
type Child struct {
	Record
	// Adopted says that an earlier crew started it.
	Adopted bool
	dir     string
	hold    func() (*os.File, error)
	done    chan struct{}
	exit    restart.Exit
	// warden is the process that took the place of a parent that was killed.
	warden atomic.Pointer[Identity]
}

// Keeper starts one training after another. Their parent stays from one to the next, so that a restart does not wait for a
// program to start.
type Keeper struct {
	parent *exec.Cmd
	orders *os.File // to the parent
	told   *os.File // from it
	order  *gob.Encoder
	words  *json.Decoder
	gone   chan struct{} // closed when the parent has ended
}

// Start starts a training, when the last one has ended. A program that cannot be executed is a *StartError. What hold
// returns is kept open as long as the parent lives; it may be nil, and is called when there is no parent.
func (k *Keeper) Start(s Spec, hold func() (*os.File, error)) (*Child, error) {
	path, err := Look(s.Command)
	if err != nil {
		return nil, err
	}
	if err := forget(s.Dir); err != nil {
		return nil, err
	}
	o := order{Spec: s, Path: path, Run: fmt.Sprintf("%s-%d-%d", filepath.Base(s.Dir), os.Getpid(), time.Now().UnixNano())}
	a, err := k.ask(o)
	if err != nil { // there is none, or it was killed meanwhile
		if k.parent != nil {
			k.Close()
			sweep(o.Run) // it may have started the training before it could tell
		}
		if err := k.begin(hold); err != nil {
			return nil, fmt.Errorf("start the parent of the training: %w", err)
		}
		if a, err = k.ask(o); err != nil {
			k.Close()
			return nil, fmt.Errorf("the parent of the training ended before it told of it: %w", err)
		}
	}
	if a.Fault != "" {
		return nil, &StartError{Code: a.Code, Err: errors.New(a.Fault)}
	}
	c := &Child{Record: a.Record, dir: s.Dir, hold: hold, done: make(chan struct{})}
	own(c.Training.PID)
	words, gone := k.words, k.gone
	go func() {
		defer close(c.done)
		defer disown(c.Training.PID)
		var a answer
		if words.Decode(&a) == nil {
			c.exit = a.Exit
			return
		}
		<-gone
		c.exit = c.end(context.Background())
	}()
	return c, nil
}

// ask has the parent start a training.
func (k *Keeper) ask(o order) (a answer, err error) {
	if k.parent == nil {
		return a, os.ErrProcessDone
	}
	if err := k.order.Encode(o); err != nil {
		return a, err
	}
	return a, k.words.Decode(&a)
}

// Close has the parent end, which it does when nothing of a training is left.
func (k *Keeper) Close() {
	if k.parent == nil {
		return
	}
	k.orders.Close() //nolint:errcheck // the parent sees its end, or has seen its own
	<-k.gone
	k.told.Close() //nolint:errcheck // it was only read
	*k = Keeper{}
}

// begin starts the parent. Its files get free numbers, so the training inherits the files that the crew was started with
// under their own numbers. Nothing else is started meanwhile, because it would inherit the parent's files.
func (k *Keeper) begin(hold func() (*os.File, error)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, orders, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close() //nolint:errcheck // the parent has its own
	told, tell, err := os.Pipe()
	if err != nil {
		return errors.Join(err, orders.Close())
	}
	defer tell.Close() //nolint:errcheck // the parent has its own
	files := []*os.File{read, tell}
	if hold != nil {
		held, err := hold()
		if err != nil {
			return errors.Join(err, orders.Close(), told.Close())
		}
		defer held.Close() //nolint:errcheck // the parent holds it from now on
		files = append(files, held)
	}
	ours.Lock()
	defer ours.Unlock()
	cmd := exec.Command(self, ParentCommand) //nolint:noctx // it outlives every context
	cmd.Args[0] = parentName
	for _, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 3)
		if err != nil {
			return errors.Join(err, orders.Close(), told.Close())
		}
		defer unix.Close(fd) //nolint:errcheck // the parent has its own
		cmd.Args = append(cmd.Args, strconv.Itoa(fd))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := begin(cmd); err != nil {
		return errors.Join(err, orders.Close(), told.Close())
	}
	*k = Keeper{parent: cmd, orders: orders, told: told, order: gob.NewEncoder(orders), words: json.NewDecoder(told), gone: make(chan struct{})}
	gone := k.gone
	go func() {
		_ = cmd.Wait() //nolint:errcheck // how a training ended it has told
		disown(cmd.Process.Pid)
		close(gone)
	}()
	return nil
}

// ours are the processes whose end somebody here waits for; what else becomes a child of this process is an orphan.
var ours = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// begin starts a command whose end is waited for; ours is locked.
func begin(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ours.pids[cmd.Process.Pid] = true
	return nil
}

func own(pid int) {
	ours.Lock()
	defer ours.Unlock()
	ours.pids[pid] = true
}

func disown(pids ...int) {
	ours.Lock()
	defer ours.Unlock()
	for _, pid := range pids {
		delete(ours.pids, pid)
	}
}

// Run runs a command of the user's to its end, such as one that saves.
func Run(cmd *exec.Cmd) error {
	ours.Lock()
	err := begin(cmd)
	ours.Unlock()
	if err != nil {
		return err
	}
	defer disown(cmd.Process.Pid)
	return cmd.Wait()
}

// forget removes what an earlier attempt left in the state directory.
func forget(dir string) error {
	for _, name := range []string{recordFile, exitFile, outputFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Forget removes the record of the last attempt, when its end has been dealt with.
func Forget(dir string) error { return forget(dir) }

// Adopt finds the training that an earlier crew started in this state directory: nil where there is none. One that has
// ended meanwhile is found, too, with its exit. Hold is that of Keeper.Start.
func Adopt(dir string, hold func() (*os.File, error)) (*Child, error) {
	var r Record
	if err := state.Read(filepath.Join(dir, recordFile), &r); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nil says that there is none
	} else if err != nil {
		return nil, err
	}
	c := &Child{Record: r, Adopted: true, dir: dir, hold: hold, done: make(chan struct{})}
	if !r.Parent.alive() && state.Read(filepath.Join(dir, exitFile), &c.exit) == nil && c.exit.Attempt == r.Attempt {
		close(c.done)
		return c, nil
	}
	ctx := context.Background()
	own(r.Parent.PID)
	own(r.Training.PID)
	go func() {
		defer close(c.done)
		defer disown(r.Parent.PID, r.Training.PID)
		waitGone(ctx, r.Parent)
		c.exit = c.end(ctx)
	}()
	return c, nil
}

// end is how the training ended, once its parent is gone. Where the parent left no word the training may still run: then
// it is waited for, and what cannot be known is unknown.
func (c *Child) end(ctx context.Context) restart.Exit {
	var e restart.Exit
	told := func() bool { return state.Read(filepath.Join(c.dir, exitFile), &e) == nil && e.Attempt == c.Attempt }
	if told() {
		return e
	}
	warden := c.watchOver()
	waitGone(ctx, c.Training)
	warden.Close()
	if told() {
		return e
	}
	e = restart.Exit{Attempt: c.Attempt, Unknown: true, Began: c.Began, Ended: time.Now()}
	if status, ok := inherited(c.Training.PID); ok {
		e.Unknown = false
		e.Code, e.Signal = outcome(status)
	}
	sweep(c.Run)
	return e
}

// watchOver has another process take the place of a parent that was killed, as long as the training runs: it cannot take its
// exit, but should this crew be killed as well, it ends the training before another machine may take the lease over.
func (c *Child) watchOver() *Keeper {
	k := &Keeper{}
	if c.Unled == 0 || !c.Training.alive() {
		return k
	}
	err := k.begin(c.hold)
	if err != nil && c.hold != nil {
		err = k.begin(nil) // somebody else holds it; without is better than nobody
	}
	if err != nil {
		return k
	}
	r := c.Record
	a, err := k.ask(order{Spec: Spec{Dir: c.dir}, Watch: &r})
	if err != nil {
		return k
	}
	c.warden.Store(&a.Record.Parent)
	return k
}

// Done is closed when the training has ended and nothing of it runs any more.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit is how it ended; only after Done.
func (c *Child) Exit() restart.Exit { return c.exit }

// Running reports whether it still runs.
func (c *Child) Running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Left reports whether the command has ended, and processes run that it has left.
func (c *Child) Left() bool { return c.Running() && !c.Training.alive() && c.Parent.alive() }

// Signal sends a signal that is to end the training to its process group, and when the command has ended to all that it has left.
// What the command leaves afterwards is no training.
func (c *Child) Signal(sig syscall.Signal) error {
	switch {
	case !c.Running():
		return os.ErrProcessDone
	case c.Left():
		return signalAll(c.Parent.PID, c.Training.PID, sig)
	}
	c.EndRest()
	return syscall.Kill(-c.Training.PID, sig)
}

// restSignal tells the parent that no training is left when the command ends.
const restSignal = syscall.SIGUSR2

// EndRest tells the parent to end what the command leaves, or has left, whatever its exit code.
func (c *Child) EndRest() {
	if c.Running() && c.Parent.alive() {
		_ = syscall.Kill(c.Parent.PID, restSignal) //nolint:errcheck // it may just have ended
	}
}

// ledSignal tells the parent that a crew has just seen the lease name this training.
const ledSignal = syscall.SIGUSR1

// Led tells the parent that the training may go on: a crew has just seen that the lease names it.
func (c *Child) Led() {
	parent := c.Parent
	if w := c.warden.Load(); w != nil {
		parent = *w
	}
	if c.Running() && parent.alive() {
		_ = syscall.Kill(parent.PID, ledSignal) //nolint:errcheck // it may just have ended
	}
}

// Output is what the parent read: the last step, and when; and the examples a second in the mean of so many Lines that told them after
// the first one. Of the lines of one read the last 50 count. A step less than 0 is none.
type Output struct {
	Step     int64     `json:"step"`
	At       time.Time `json:"at"`
	Examples float64   `json:"examples,omitzero"`
	Lines    int64     `json:"lines,omitzero"`
}

// Output returns the last step that was read from the output; ok is false when there is none.
func (c *Child) Output() (o Output, ok bool) {
	return o, state.Read(filepath.Join(c.dir, outputFile), &o) == nil
}

// order is what the crew wants of the parent: a training.
type order struct {
	Spec Spec
	// Path is its program, Run the mark of its processes.
	Path, Run string
	// Watch is a training that runs already, and whose own parent was killed.
	Watch *Record
}

// answer is what the parent tells: of a training that runs or could not be started, then of its end.
type answer struct {
	Record Record       `json:"record,omitzero"`
	Code   int          `json:"code,omitzero"`
	Fault  string       `json:"fault,omitzero"`
	Exit   restart.Exit `json:"exit,omitzero"`
}

// outcome reads a wait status: one of the two is set.
func outcome(s syscall.WaitStatus) (code int, signal string) {
	if s.Signaled() {
		return 0, SignalName(s.Signal())
	}
	return s.ExitStatus(), ""
}
