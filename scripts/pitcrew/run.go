//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/report"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/state"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/topology"
)

// flags are what the command line says.
type flags struct {
	directory, workload, state, metadata, node, host, project, zone, accelerator string
	worker, slice, slices, port                                                  int
	peers                                                                        []string
	peerKey                                                                      string
	rules                                                                        restart.Policy
	service                                                                      bool
	times                                                                        crew.Times
	signal, saveCommand, onMaintenance, afterSave, giveUp                        string
	pattern, progress, rate                                                      string
	examples                                                                     int64
	read, verbose                                                                bool
	report, storage, logs                                                        string
	from                                                                         string
	batch, steps                                                                 int64
	doneAt                                                                       *int64
}

// define gives a command the flags of run, in their groups.
func (f *flags) define(c *cobra.Command) {
	f.rules, f.times = restart.Defaults(), crew.DefaultTimes()
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.directory, "checkpoint-dir", "",
		"the `DIR` of the checkpoints, gs:// or file://; by default the node's metadata key "+events.MetadataCheckpointDir)
	s.StringVar(&f.progress, "progress-file", "", "a `FILE` into which the training writes its step, as a number or as JSON with \"step\"")
	s.StringVar(&f.pattern, "step-pattern", "",
		"read the step from the output: maxtext, pax, levanter, hf, or a regular `EXPRESSION` with one group")
	s.BoolVar(&f.read, "read-output", false,
		"read the output for received signals and for the last lines before a crash; the patterns include it")
	s.Int64Var(&f.examples, "examples-per-step", 0, "the global batch `N` of the training, to report examples a second; --scale-from knows it")
	s.StringVar(&f.rate, "examples-pattern", "", "read the examples a second from the output by a regular `EXPRESSION` with one group")
	s.Func("done-at", "the training's last `STEP`: exit 0 before that step is no end of the job", f.setDoneAt)
	s.StringVar(&f.workload, "workload", "", "the training's `PROJECT/NAME` in Pitstop; by default the node's")
	mark(c, "Checkpoints and steps")

	s.StringVar(&f.signal, "save-signal", "SIGTERM", "the `SIGNAL` on which the training saves")
	s.StringVar(&f.saveCommand, "save-command", "", "a `COMMAND` for sh that makes the training save, instead of the signal")
	s.StringVar(&f.onMaintenance, "on-maintenance", "signal",
		"`HOW` to save when maintenance or a preemption begins: signal, natural (the next checkpoint if it comes in time, else as signal), none")
	s.StringVar(&f.afterSave, "after-save", "restart",
		"`WHAT` to do when the training saved and ended: restart, or wait for a new attempt in the lease")
	mark(c, "Saving")

	s.IntVar(&f.rules.Restarts, "restarts", f.rules.Restarts, "`N` restarts until the whole job counts as failed once")
	s.IntVar(&f.rules.Tries, "job-tries", f.rules.Tries, "`N` further tries of the whole job")
	s.IntVar(&f.rules.Memory, "memory-restarts", f.rules.Memory, "`N` restarts after the training ran out of memory (default 0)")
	s.IntVar(&f.rules.Interruptions, "interruptions", f.rules.Interruptions,
		"`N` restarts without progress after interruptions that are not the training's fault")
	s.IntVar(&f.rules.NoProgress, "no-progress", f.rules.NoProgress, "`N` restarts in a row without a new highest step; 0 is no limit")
	s.DurationVar(&f.rules.First, "backoff", f.rules.First, "the `WAIT` before the first restart; it doubles each time")
	s.DurationVar(&f.rules.Longest, "backoff-max", f.rules.Longest, "the longest `WAIT` before a restart")
	s.Float64Var(&f.rules.Jitter, "backoff-jitter", f.rules.Jitter, "the random `PART` of a wait, 0 to 1")
	s.BoolVar(&f.service, "service-rules", false,
		"restart exactly as Google's training service does, instead of by the numbers above; the README compares the two")
	s.StringVar(&f.giveUp, "give-up", "auto",
		"`WHAT` to do when all restarts are used up: exit, wait (for a new attempt in the lease), or auto: wait on a TPU VM with a lease")
	mark(c, "Restarts")

	for _, d := range f.spans() {
		s.DurationVar(d.into, d.name, *d.into, d.what)
	}
	mark(c, timings)

	s.StringVar(&f.from, "scale-from", "",
		"the accelerator `TYPE` that --global-batch and --steps are for, such as v4-8 or 2xv4-8; the training gets them rescaled")
	s.Int64Var(&f.batch, "global-batch", 0, "the global batch `N` on that type")
	s.Int64Var(&f.steps, "steps", 0, "the `N` steps on that type")
	mark(c, "Other hardware")

	s.IntVar(&f.worker, "worker", -1, "the index `N` of this worker, from 0; -1 asks the metadata server")
	s.StringSliceVar(&f.peers, "peers", nil, "the `ADDRESSES` of all workers, worker 0 first, with a port or without")
	s.IntVar(&f.slice, "slice", -1, "the index `N` of this slice in a Multislice, from 0; -1 asks the metadata server")
	s.IntVar(&f.slices, "slices", 0, "the number `N` of slices")
	s.StringVar(&f.accelerator, "accelerator", "", "the accelerator `TYPE`, such as v5litepod-16")
	s.StringVar(&f.host, "host", "", "the `NAME` of this machine")
	s.StringVar(&f.node, "node", "", "the `NAME` of the TPU")
	s.StringVar(&f.zone, "zone", "", "the `ZONE` of the TPU")
	s.StringVar(&f.project, "project", "", "the Google Cloud `PROJECT`")
	s.StringVar(&f.metadata, "metadata", "auto", "the metadata `SERVER`: auto, none, or HOST:PORT")
	mark(c, "This machine (the metadata server of a TPU VM knows all of these)")

	s.IntVar(&f.port, "peer-port", peers.DefaultPort, "the `PORT` of worker 0, to which the other workers connect")
	s.StringVar(&f.peerKey, "peer-key", "", "a `FILE` with the key that signs messages between workers; by default \"key\" in "+
		"the folder of the state directories, else the key beside the checkpoints")
	s.StringVar(&f.state, "state", "", "the `DIR` for what pitcrew must remember; by default one for each checkpoint directory or command")
	s.StringVar(&f.report, "report", "auto", "`WHERE` reports go: cloud (Cloud Logging), none, or auto: cloud if there is a metadata server")
	s.BoolVarP(&f.verbose, "verbose", "v", false, "print more")
	s.StringVar(&f.storage, "storage-endpoint", "", "another Cloud Storage, for tests")
	s.StringVar(&f.logs, "logging-endpoint", "", "another Cloud Logging, for tests")
	for _, name := range []string{"storage-endpoint", "logging-endpoint"} {
		_ = s.MarkHidden(name) //nolint:errcheck // it is defined above
	}
	mark(c, "pitcrew itself")
	takesCommand(c)
}

func (f *flags) setDoneAt(value string) error {
	step, err := strconv.ParseInt(value, 10, 64)
	if err != nil || step < 0 {
		return errors.New("it is the number of a step, 0 or more")
	}
	f.doneAt = &step
	return nil
}

// span is a time of the command line.
type span struct {
	name, what string
	into       *time.Duration
	// grace says that it may be zero: what recurs may not.
	grace bool
}

func (f *flags) spans() []span {
	t := &f.times
	return []span{
		{"lease-every", "read the lease and the request beside the checkpoints this often", &t.Lease, false},
		{"lease-unread", "end the training when the lease could not be read, or no sign of life be written, for so long", &t.Unread, false},
		{"lease-take-over", "take over the lease of another crew, or one that is missing, after so long without a sign of life", &t.TakeOver, false},
		{"stop-grace", "the time between SIGTERM and SIGQUIT for a training that has to end", &t.Stop, true},
		{"dump-grace", "the time between SIGQUIT, for its stacks, and SIGKILL", &t.Dump, true},
		{"leftovers-grace", "the time for processes that the training leaves behind", &t.Leftovers, true},
		{"helpers-idle", "what an ended command has left, and has done nothing for so long, is ended: it has only helped", &t.Idle, false},
		{"finish-grace", "the time for the other workers, and for the verdict, when the training is done or saved", &t.Finish, true},
		{"worker-silence", "a worker that is silent for so long counts as lost", &t.Silent, false},
		{"save-within", "the time for a save before maintenance", &t.Save, false},
		{"saved-window", "for so long after a signal or maintenance, exit 0 is a save and no end of the job", &t.Recent, true},
		{"look-every", "look at the checkpoint directory this often", &t.Look, false},
		{"hurry-every", "look at it this often while a save is under way", &t.Hurry, false},
		{"step-every", "read the step this often", &t.Step, false},
		{"board-every", "the slices of a Multislice look at each other this often", &t.Board, false},
		{"report-every", "report progress this often", &t.Report, false},
	}
}

func runCommand() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a training, restart it, ask it to save, and exit with its code",
		Long: "Runs COMMAND, restarts it when it ends before it is done, and exits with its exit code. When Pitstop or a person asks for a " +
			"save, or when maintenance begins, it asks the training to save. Run the same line on every worker of a slice.\n\n" +
			"The output of the training stays as it is. Lines of pitcrew go to standard error; each begins with a time and " +
			"\"pitcrew:\". Ctrl-C, or SIGTERM, asks the training to end; a second one, at least a second later, kills it at once. " +
			"At a terminal, Ctrl-C goes to the training itself, and Ctrl-\\ ends one that does not react.\n\n" +
			"Exit codes: the training's own; 128+N if signal N ended it; 143 if a signal ended pitcrew and the training saved itself " +
			"(0 would mean " +
			"that the job is done); 127 if COMMAND does not exist, 126 if it cannot be executed; 125 if pitcrew cannot do its work; " +
			"2 for wrong usage.\n\n" +
			"pitcrew doctor finds problems on this worker before you start.",
		Example: "  pitcrew run -- python3 train.py\n" +
			"  pitcrew run --checkpoint-dir gs://BUCKET/run --progress-file /tmp/step -- \\\n    python3 train.py\n" +
			"  pitcrew run --checkpoint-dir gs://BUCKET/maxtext/RUN/checkpoints \\\n" +
			"    --step-pattern maxtext -- \\\n    python3 -m maxtext.trainers.pre_train.train run_name=RUN \\\n" +
			"    base_output_directory=gs://BUCKET/maxtext enable_autocheckpoint=true",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := command(c, args)
			if err != nil {
				return err
			}
			code, err := f.run(c.Context(), args)
			if err != nil {
				return err
			}
			if code != 0 {
				return exit{code: code}
			}
			return nil
		},
	}
	f.define(c)
	return c
}

// check returns every fault of the command line, in one line.
func (f *flags) check(args []string) error {
	var all faults
	f.checkRules(&all)
	f.checkSaving(&all)
	f.checkSteps(&all)
	f.checkTimes(&all)
	if f.worker < -1 || f.slice < -1 || f.slices < 0 || f.port < 1 || f.port > 65535 {
		all.add("--worker %d, --slice %d, --slices %d, --peer-port %d: they count from 0, and ports from 1 to 65535", f.worker, f.slice, f.slices, f.port)
	}
	if f.workload != "" && (strings.Count(f.workload, "/") != 1 || strings.HasPrefix(f.workload, "/") || strings.HasSuffix(f.workload, "/")) {
		all.add("--workload %s: it is PROJECT/NAME", f.workload)
	}
	if why := endsEarly(args); why != "" {
		all.add("%s", why)
	}
	if len(all) > 0 {
		return exit{crew.CodeUsage, errors.New(strings.Join(all, "; "))}
	}
	return nil
}

// faults are those of a command line.
type faults []string

func (all *faults) add(format string, a ...any) { *all = append(*all, fmt.Sprintf(format, a...)) }

// choice is a fault if a flag has none of these values.
func (all *faults) choice(name, value string, of ...string) {
	if !slices.Contains(of, value) {
		all.add("--%s %s: it is one of %s", name, value, strings.Join(of, ", "))
	}
}

func (f *flags) checkRules(all *faults) {
	if err := f.rules.Validate(); err != nil {
		all.add("%v", err)
	}
	if f.service && f.rules != restart.Defaults() {
		all.add("--service-rules has numbers of its own: leave out --restarts, --job-tries, --memory-restarts, --interruptions, --no-progress and --backoff")
	}
}

func (f *flags) checkSaving(all *faults) {
	if f.directory != "" && !strings.HasPrefix(f.directory, "gs://") && !strings.HasPrefix(f.directory, "file:///") {
		all.add("--checkpoint-dir %s: it begins with gs:// or file:///", f.directory)
	}
	if sig, ok := child.SignalOf(f.signal); !ok || sig == syscall.SIGKILL || sig == syscall.SIGSTOP {
		all.add("--save-signal %s: no signal of that name can be handled", f.signal)
	}
	all.choice("on-maintenance", f.onMaintenance, "signal", "natural", "none")
	all.choice("after-save", f.afterSave, "restart", "wait")
	all.choice("give-up", f.giveUp, "auto", "exit", "wait")
	all.choice("report", f.report, "auto", "cloud", "none")
}

// checkSteps looks at what says how far the training is, and how fast.
func (f *flags) checkSteps(all *faults) {
	if f.pattern != "" {
		if _, err := child.PatternOf(f.pattern); err != nil {
			all.add("%v", err)
		}
	}
	if f.rate != "" {
		if err := child.CheckExamples(f.rate); err != nil {
			all.add("%v", err)
		}
	}
	if f.examples < 0 || f.examples > 0 && f.from != "" {
		all.add("--examples-per-step %d: it is more than 0, and --scale-from says it already", f.examples)
	}
	switch given := (f.from != "") || f.batch != 0 || f.steps != 0; {
	case given && (f.from == "" || f.batch == 0 || f.steps == 0):
		all.add("--scale-from, --global-batch and --steps belong together")
	case f.batch < 0 || f.steps < 0:
		all.add("--global-batch %d, --steps %d: they count from 1", f.batch, f.steps)
	}
}

func (f *flags) checkTimes(all *faults) {
	for _, d := range f.spans() {
		if *d.into < 0 || *d.into == 0 && !d.grace {
			all.add("--%s %v: it is longer", d.name, *d.into)
		}
	}
	if f.times.Unread < 2*f.times.Lease || f.times.TakeOver <= f.times.Unread {
		all.add("--lease-every %v, --lease-unread %v, --lease-take-over %v: each has to be longer than the one before", f.times.Lease, f.times.Unread, f.times.TakeOver)
	}
	if f.directory != "" {
		if err := f.fence(); err != nil {
			all.add("%v", err)
		}
	}
}

// follow tells the crew how it learns how far the training is, and how fast.
func (f *flags) follow(o *crew.Options) {
	o.Pattern, _ = child.PatternOf(f.pattern) //nolint:errcheck // check has refused what is none
	o.Read = f.read || f.pattern != "" || f.rate != ""
	o.ProgressFile, o.Batch, o.Examples = f.progress, f.examples, f.rate
}

// fence returns an error if a training could still write when another may begin: one whose lease this crew's kind takes
// over, or one that Pitstop admits, which waits as long as crews do by default.
func (f *flags) fence() error {
	if most, last := min(f.times.TakeOver, crew.DefaultTimes().TakeOver), f.times.Last(); last >= most {
		return fmt.Errorf("--lease-unread %v and a twentieth, --stop-grace %v, --dump-grace %v and --leftovers-grace %v: together %v, and after %v another training may write; lower --lease-unread",
			f.times.Unread, f.times.Stop, f.times.Dump, f.times.Leftovers, last, most)
	}
	return nil
}

func (f *flags) run(ctx context.Context, args []string) (int, error) {
	if err := f.check(args); err != nil {
		return 0, err
	}
	if f.service {
		f.rules = restart.ServiceRules()
	}
	if _, err := child.Look(args); err != nil {
		e := (*child.StartError)(nil)
		if errors.As(err, &e) {
			return 0, exit{e.Code, err}
		}
		return 0, exit{crew.CodeFailed, err}
	}
	// A crew holds little, and should take little from the training.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(24 << 20)
	signals := make(chan os.Signal, 16)
	ours := []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
	}
	for _, s := range ours {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	if !signal.Ignored(syscall.SIGPIPE) {
		// The reader of the lines may have ended. The training goes on.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	orphaned := make(chan os.Signal, 1)
	signal.Notify(orphaned, syscall.SIGCHLD)
	go child.Reap(ctx, orphaned)

	say, said := speak(os.Stderr, time.Now, columns(os.Stderr))
	defer said()
	note := func(string, ...any) {}
	if f.verbose {
		note = say
	}
	o := crew.Options{Command: args, Rules: f.rules, Times: f.times, Say: say, Note: note, Booted: booted()}
	if err := f.identify(ctx, &o, signals); err != nil {
		return 0, err
	}
	unlock, err := f.settle(&o)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return crew.Run(ctx, o, signals), nil
}

// narrowest is the width below which lines are not wrapped: the time alone takes half of it.
const narrowest = 60

// columns is the width of a terminal now; 0 is no terminal.
func columns(f *os.File) func() int {
	return func() int {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0
		}
		return int(size.Col)
	}
}

// speak prints lines in their order, each with its time. It never makes the crew wait, because the reader of the lines may
// be stuck. Said waits a moment for the last lines. On a terminal long lines are wrapped between words.
func speak(to io.Writer, now func() time.Time, width func() int) (say func(format string, a ...any), said func()) {
	lines, done := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(done)
		for line := range lines {
			_, _ = io.WriteString(to, line) //nolint:errcheck // nobody else could be told
		}
	}()
	say = func(format string, a ...any) {
		line := child.Prefix(now()) + strings.ReplaceAll(fmt.Sprintf(format, a...), "\n", "; ")
		if w := width(); w >= narrowest {
			line = hang(line, w-1, 4)
		}
		select {
		case lines <- line + "\n":
		default: // nobody reads
		}
	}
	return say, func() {
		close(lines)
		select {
		case <-done:
		case <-time.After(time.Second):
		}
	}
}

// identify finds out which machine this is. On a machine of Google's it waits for the metadata server: without it the crew
// does not know which worker it is, unless an earlier crew wrote it down on this machine.
func (f *flags) identify(ctx context.Context, o *crew.Options, signals <-chan os.Signal) error {
	host := f.server()
	if err := metadata.PodError(); err != nil {
		return exit{crew.CodeUsage, err}
	}
	o.Machine = metadata.Local()
	if host != "" {
		o.Metadata = metadata.New(host)
		m, err := f.ask(ctx, o, signals)
		if err != nil {
			return err
		}
		o.Machine = m
	} else {
		o.Machine.MachineID = metadata.MachineID()
	}
	m := &o.Machine
	for value, into := range map[string]*string{
		f.project: &m.Project, f.zone: &m.Zone, f.node: &m.Node, f.host: &m.Host, f.accelerator: &m.Accelerator,
	} {
		if value != "" {
			*into = value
		}
	}
	f.place(m)
	if err := m.Unsure(); err != nil {
		return usage("%v: give --worker and --slice", err)
	}
	m.Worker, m.Slice = max(0, m.Worker), max(0, m.Slice)
	if m.Worker >= m.Workers || m.Slice >= m.Slices {
		return usage("worker %d of %d, slice %d of %d: they count from 0", m.Worker, m.Workers, m.Slice, m.Slices)
	}
	return nil
}

// place takes what the flags say of the place among the others.
func (f *flags) place(m *metadata.Machine) {
	if len(f.peers) > 0 {
		m.Peers, m.Workers = f.peers, len(f.peers)
	}
	if f.worker >= 0 {
		m.Worker = f.worker
	}
	if f.slices > 0 {
		m.Slices = f.slices
	}
	if f.slice >= 0 {
		m.Slice = f.slice
	}
	m.Workers, m.Slices = max(1, m.Workers), max(1, m.Slices)
}

// server is the metadata server; empty is none.
func (f *flags) server() string {
	switch f.metadata {
	case "auto":
		return metadata.Host()
	case "none":
		return ""
	}
	return f.metadata
}

// identityWait is how long the metadata server may keep a crew waiting that knows its machine from before. Tests shorten it.
var identityWait = 5 * time.Second

// memory is the machine as an earlier crew wrote it down, with what that crew knew without the metadata server.
type memory struct {
	Machine metadata.Machine `json:"machine"`
	Host    string           `json:"host"`
	ID      string           `json:"id"`
	Pod     metadata.Pod     `json:"pod"`
}

func memoryOf(m metadata.Machine) memory {
	local := metadata.Local()
	return memory{Machine: m, Host: local.Host, ID: metadata.MachineID(), Pod: local.Pod}
}

// remembered is the machine as an earlier crew wrote it down. One of another machine or Pod does not count: a volume may outlive both.
func remembered(path string) (m metadata.Machine, ok bool) {
	var last memory
	ok = state.Read(path, &last) == nil && last.Machine.Workers > 0
	this := memoryOf(last.Machine)
	return last.Machine, ok && last.Host == this.Host && last.ID == this.ID && last.Pod == this.Pod
}

// unsure says what the metadata server does not tell yet: a machine that has just started may not know all of its neighbours.
func (f *flags) unsure(m metadata.Machine) error {
	f.place(&m)
	if m.Worker >= m.Workers && f.worker < 0 {
		return fmt.Errorf("the metadata server says worker %d of %d", m.Worker, m.Workers)
	}
	return m.Unsure()
}

// ask asks the metadata server who this machine is, until it answers. In a container nobody else knows either.
func (f *flags) ask(ctx context.Context, o *crew.Options, signals <-chan os.Signal) (metadata.Machine, error) {
	dir := firstOf(f.state, home())
	path := filepath.Join(dir, "machine.json")
	said := false
	for began, wait := time.Now(), 100*time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		m, err := o.Metadata.Machine(call)
		cancel()
		if err == nil {
			err = f.unsure(m)
		}
		if err == nil {
			if os.MkdirAll(dir, 0o700) == nil {
				_ = state.Write(path, memoryOf(m)) //nolint:errcheck // it only helps the next crew
			}
			return m, nil
		}
		if time.Since(began) > identityWait {
			if m, ok := remembered(path); ok {
				o.Say("%v; going on as worker %d of %s, as last time", err, m.Worker, m.Node)
				return m, nil
			}
			if !said {
				said = true
				o.Say("%v; waiting, because only the metadata server knows which worker this is (--metadata none goes on without it)", err)
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case s := <-signals:
			t.Stop()
			if n, ok := s.(syscall.Signal); ok && (n == syscall.SIGTERM || n == syscall.SIGINT || n == syscall.SIGHUP || n == syscall.SIGQUIT) {
				return m, exit{128 + int(n), nil}
			}
		}
	}
}

// settle prepares everything else that the crew works with.
func (f *flags) settle(o *crew.Options) (unlock func(), err error) {
	m := o.Machine
	if o.Directory = strings.TrimRight(firstOf(f.directory, m.Directory), "/"); o.Directory != "" {
		if err := f.fence(); err != nil {
			return nil, exit{crew.CodeUsage, err}
		}
		if err := makeFolder(o.Directory); err != nil {
			return nil, err
		}
		if o.Store, err = f.store(o.Directory); err != nil {
			return nil, err
		}
	}
	if m.Slices > 1 && o.Directory == "" {
		return nil, usage("the %d slices of a Multislice agree beside their checkpoints: give --checkpoint-dir or the node's metadata key %s", m.Slices, events.MetadataCheckpointDir)
	}
	o.Workload = firstOf(f.workload, firstOf(m.Project, "local")+"/"+m.WorkloadName())
	o.Named = f.workload != ""
	if err := f.settleSaving(o); err != nil {
		return nil, err
	}
	f.follow(o)
	o.DoneAt = f.doneAt
	o.Terminal = child.Terminal()
	if o.Scale, err = f.scaled(m); err != nil {
		return nil, err
	}
	if err := f.settleReports(o); err != nil {
		return nil, err
	}
	if m.Workers > 1 {
		if o.Key, err = f.key(m, o.Directory); err != nil {
			return nil, exit{crew.CodeUsage, err}
		}
	}
	if unlock, err = f.seat(o); err != nil {
		return nil, err
	}
	if o.Directory != "" {
		o.Lock = func() (*os.File, error) { return hold(o.Directory, m, "training") }
	}
	return unlock, f.network(o)
}

// settleSaving prepares how the training is asked to save, and what follows when it has saved or given up.
func (f *flags) settleSaving(o *crew.Options) error {
	o.Signal, _ = child.SignalOf(f.signal)
	if f.saveCommand != "" {
		o.SaveCommand = []string{"sh", "-c", f.saveCommand}
	}
	if f.onMaintenance != "none" {
		o.OnMaintenance = events.SaveMode(f.onMaintenance)
	}
	o.WaitSaved = f.afterSave == "wait"
	o.StayAfterGivingUp = f.giveUp == "wait" ||
		f.giveUp == "auto" && o.Metadata != nil && o.Machine.Node != "" && o.Directory != "" && !contained()
	if (o.WaitSaved || f.giveUp == "wait") && o.Directory == "" {
		return usage("to wait for a new attempt in the lease takes a checkpoint directory: there is none")
	}
	return nil
}

// settleReports prepares where reports go. Without a place in Google Cloud, auto sends none.
func (f *flags) settleReports(o *crew.Options) error {
	m := o.Machine
	placed := m.Project != "" && m.Place() != "" && m.Node != ""
	switch {
	case f.report == "cloud" && !placed:
		return usage("--report cloud takes a project, a zone and a node: give --project, --zone and --node")
	case f.report == "cloud", f.report == "auto" && o.Metadata != nil && placed:
		o.Send = report.NewCloud(m, f.logging()...).Send
	}
	return nil
}

// makeFolder makes the folder of a first run. What lies above it is there, or its name is misspelt.
func makeFolder(dir string) error {
	path, ok := strings.CutPrefix(dir, "file://")
	if !ok {
		return nil
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // others read checkpoints
		return exit{crew.CodeFailed, fmt.Errorf("checkpoint directory: %w", err)}
	}
	return nil
}

// store is the storage of the checkpoint directory. A folder of this machine has to be readable now.
func (f *flags) store(dir string) (checkpoint.Store, error) {
	if path, ok := strings.CutPrefix(dir, "file://"); ok {
		if _, err := os.ReadDir(path); err != nil {
			return nil, exit{crew.CodeFailed, fmt.Errorf("checkpoint directory: %w", err)}
		}
	}
	var opts []option.ClientOption
	if f.storage != "" {
		opts = []option.ClientOption{option.WithEndpoint(f.storage), option.WithoutAuthentication()}
	}
	files := checkpoint.NewFiles("/", time.Now)
	files.Behind = true // a restart does not wait for the disk; a lease that a crash of the machine loses is written anew
	return checkpoint.Mux{"gs": checkpoint.NewBucket(opts...), "file": files}, nil
}

func (f *flags) logging() []option.ClientOption {
	if f.logs == "" {
		return nil
	}
	return []option.ClientOption{
		option.WithEndpoint(f.logs), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}

// network opens worker 0's ear, or finds worker 0.
func (f *flags) network(o *crew.Options) error {
	m := o.Machine
	if m.Workers == 1 {
		return nil
	}
	at := func(peer string) string {
		if _, _, err := net.SplitHostPort(peer); err == nil {
			return peer
		}
		return net.JoinHostPort(peer, strconv.Itoa(f.port))
	}
	if m.Worker > 0 {
		o.Leader = at(m.Peers[0])
		return nil
	}
	_, port, err := net.SplitHostPort(at(m.Peers[0]))
	if err != nil {
		return usage("--peers %s: %v", m.Peers[0], err)
	}
	var lc net.ListenConfig
	if o.Listener, err = lc.Listen(context.Background(), "tcp", ":"+port); err != nil {
		return exit{crew.CodeFailed, fmt.Errorf("the other workers could not be heard: %w (--peer-port)", err)}
	}
	return nil
}

// scaled are the training's numbers on this hardware.
func (f *flags) scaled(m metadata.Machine) (*crew.Scale, error) {
	if f.from == "" {
		return nil, nil //nolint:nilnil // a training may have no numbers of the crew
	}
	if m.Accelerator == "" {
		return nil, usage("--scale-from: the accelerator type of this machine is not known; give --accelerator")
	}
	s, err := rescale(f.from, fmt.Sprintf("%dx%s", m.Slices, m.Accelerator), f.batch, f.steps)
	if err != nil {
		return nil, exit{crew.CodeUsage, err}
	}
	return &crew.Scale{Batch: s.GlobalBatch, Own: f.batch, Examples: f.batch * f.steps}, nil
}

// contained reports whether this is a container.
func contained() bool {
	if os.Getpid() == 1 || os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return true
	}
	for _, path := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// rescale moves a training's numbers from one kind of hardware to another; each is a type, or COUNTxTYPE.
func rescale(from, to string, batch, steps int64) (topology.Scaled, error) {
	f, err := hardware(from)
	if err != nil {
		return topology.Scaled{}, err
	}
	t, err := hardware(to)
	if err != nil {
		return topology.Scaled{}, err
	}
	return topology.Rescale(f.devices, t.devices, batch, steps)
}

// slices of one type.
type hardwareOf struct {
	shape   topology.Shape
	slices  int
	devices int
}

func hardware(s string) (h hardwareOf, err error) {
	if h.shape, h.slices, err = topology.ParseSlices(s); err != nil {
		return h, err
	}
	h.devices = h.slices * h.shape.Devices()
	return h, nil
}
