//go:build unix

// Package crew keeps one training running on one worker: it starts the attempt that the lease names, watches the machine,
// carries out requests to save, ends what may not run any more, and reports. All decisions are taken in one goroutine, the
// loop; slow calls run in others and post their results to it.
package crew

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/report"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/save"
	"pitstop.internal/scripts/pitcrew/state"
	"pitstop.internal/shared/checkpoint"
)

// Options is what a crew works with.
type Options struct {
	// Command is the training's.
	Command []string
	// Scale are its numbers; nil where it has none of the crew.
	Scale *Scale
	// State is the folder for everything that has to outlive the crew; it has the folder alone.
	State   string
	Machine metadata.Machine
	// Metadata is the metadata server, nil where there is none.
	Metadata *metadata.Client
	// Workload names the training for Pitstop, Directory is the checkpoint directory; without one there is no lease.
	Workload, Directory string
	// Named says that the user gave the workload its name.
	Named bool
	Store checkpoint.Store
	// Booted is when the machine started.
	Booted time.Time
	// Send sends reports; nil where nobody reads them.
	Send func(context.Context, report.Line) error
	// Listener is worker 0's ear; Leader is worker 0's address for the others.
	Listener net.Listener
	Leader   string
	// Key signs what the workers say to each other; without one it is the key beside the checkpoints.
	Key peers.Key

	Rules restart.Policy
	Times Times
	// Signal asks the training to save; SaveCommand does so instead where the user named one.
	Signal      syscall.Signal
	SaveCommand []string
	// OnMaintenance is how the crew saves of its own accord when maintenance begins; empty: not at all.
	OnMaintenance events.SaveMode
	// WaitSaved has a training that saved itself wait for a new attempt in the lease, StayAfterGivingUp one that is given up.
	WaitSaved, StayAfterGivingUp bool
	// Read has the output read, for steps by Pattern; ProgressFile is a file with the step.
	Read                  bool
	Pattern, ProgressFile string
	// Batch is how many examples a step has, if the user says so, and Examples reads the examples a second from the output.
	Batch    int64
	Examples string
	// DoneAt is the last step of the training; nil where its owner did not name one.
	DoneAt *int64
	// Terminal says that the training gets the terminal.
	Terminal bool
	// Lock takes the machine's lock of this directory and returns what holds it; nil where there is none.
	Lock func() (*os.File, error)
	// Say tells the user what matters, Note what may.
	Say, Note func(format string, args ...any)
}

// Times are the spans that a crew goes by; each is a flag.
type Times struct {
	// Lease is how often the crew reads the lease and the request beside the checkpoints. After Unread without a reading it
	// ends the training. After TakeOver without a sign of life it takes over the lease of another life.
	Lease, Unread, TakeOver time.Duration
	// Stop is how long a training that is ended has after SIGTERM, Dump after SIGQUIT, Leftovers the processes that it leaves.
	Stop, Dump, Leftovers time.Duration
	// Idle is after how long without any work what an ended command has left counts as helpers.
	Idle time.Duration
	// Finish is how long the others may take after one is done, and the verdict to be written; Silent is after how long a
	// worker counts as lost.
	Finish, Silent time.Duration
	// Save is how long a save before maintenance may take, Recent how long after a signal or maintenance an exit 0 is no end.
	Save, Recent time.Duration
	// Look is how often the checkpoint directory is looked at, Hurry how often while a save is awaited; Step how often the
	// step is read, Board how often slices look at each other.
	Look, Hurry, Step, Board time.Duration
	// Report is how often progress is reported, Beat how often the guest attribute is written and the own lease kept alive.
	Report, Beat time.Duration
}

// Last is for how long a training may write after the last reading of the lease, whatever becomes of its crew.
func (t Times) Last() time.Duration { return t.Unled() + t.Stop + t.Dump + t.Leftovers }

// Unled is after how long without a crew a training ends; a crew that lives ends it a little earlier itself.
func (t Times) Unled() time.Duration { return t.Unread + t.Unread/20 }

// DefaultTimes are the spans of the design.
func DefaultTimes() Times {
	return Times{
		Lease: 10 * time.Second, Unread: 5 * time.Minute, TakeOver: 6 * time.Minute,
		Stop: 20 * time.Second, Dump: 2 * time.Second, Leftovers: 5 * time.Second, Idle: 15 * time.Minute,
		Finish: time.Minute, Silent: 2 * time.Minute,
		Save: 5 * time.Minute, Recent: 10 * time.Minute,
		Look: 30 * time.Second, Hurry: time.Second, Step: 5 * time.Second, Board: 2 * time.Second,
		Report: 5 * time.Minute, Beat: events.GuestEvery,
	}
}

// The codes of a crew's own.
const (
	CodeUsage  = 2
	CodeFailed = 125
)

// crew is one crew; everything in it belongs to the loop.
type crew struct {
	Options
	ctx   context.Context //nolint:containedctx // what runs beside the loop ends with it
	do    chan func()
	wake  time.Time
	clock func() time.Time
	// chance is between 0 and 1: it spreads restarts.
	chance func() float64

	life   string // what the host names of the slice's workers have in common
	lease  leaseView
	leader *agree.Leader
	memory agree.Memory
	server *peers.Server
	client *peers.Client
	// key is the one under which the workers speak, and doubted says that words were not believed under it.
	key     peers.Key
	doubted bool
	plan    agree.Plan
	meeting string // where the hosts of the attempt may meet; chosen as late as possible, because nothing holds the port
	unheard error  // why worker 0 cannot be heard; nil while it answers
	why     string // how the last attempt ended, as this worker said it
	waits   string // what worker 0 waits for before the training starts, as it said it
	board   peers.Board
	out     outside
	scale   scaling
	spool   *report.Spool

	keeper   keeper
	child    *child.Child
	status   agree.Status
	began    bool // a training was started by this crew or an earlier one
	stopping *stopping
	told     os.Signal // the signal that asks the crew itself to end
	toldAt   time.Time

	saver     save.Saver
	commands  sync.WaitGroup      // that save
	early     *events.CrewRequest // came before the first training
	announced announced
	seen      map[string]string
	full      map[string]string // the disk on which something finds no room
	running   map[string]bool   // what is asked beside the loop
	answered  answered
	last      *lastWord              // nil while an attempt may follow
	puts      [putsAMinute]time.Time // when the guest attribute was put last, the latest first

	step  step
	speed speed
	left  work
	// rhythm is the time between the last two checkpoints that nobody asked for, or between the begin of the attempt and its first one.
	rhythm time.Duration
	// resumed says that the attempt was seen at the step of its checkpoint, forgets that it does not go on from there; empty where it
	// does, or nobody knows.
	resumed bool
	forgets string
	reader  chan struct{} // whoever reads the progress file
	found   checkpoint.Found
	looked  looked
	// requestRead is when the request beside the checkpoints was read last, or that there was none.
	requestRead time.Time

	// unsynced says that the last write to the state may not be on the disk yet.
	unsynced bool

	next   map[string]time.Time
	finish time.Time
	code   int
	done   bool
}

// keeper starts trainings; it is a child.Keeper.
type keeper interface {
	Start(s child.Spec, hold func() (*os.File, error)) (*child.Child, error)
	Close()
}

// step is the last finished step, as far as it is known.
type step struct {
	n        int64 // less than 0 is not known
	at       time.Time
	reported int64
}

type looked struct {
	busy bool
	at   time.Time
	// found is when the last look began that found out what there is; fresh is the moment since which nobody has looked.
	found, fresh time.Time
	// instead is what there is in place of a complete checkpoint; empty where nobody has saved anything.
	instead string
}

type answered struct {
	id string
	at time.Time
}

const memoryFile = "memory.json"

// kept is what outlives a crew.
type kept struct {
	Leader agree.Memory `json:"leader"`
	Began  bool         `json:"began"`
	Saves  save.Memory  `json:"saves"`
}

// made is a crew that knows nothing yet.
func made(ctx context.Context, o Options) *crew {
	return &crew{
		Options: o, ctx: ctx, do: make(chan func(), 64), clock: time.Now, chance: rand.Float64, seen: map[string]string{}, full: map[string]string{}, running: map[string]bool{}, next: map[string]time.Time{},
		step: step{n: -1, reported: -1}, board: peers.Board{Store: o.Store, Directory: o.Directory},
		out: outside{claims: map[int]claim{}}, reader: make(chan struct{}, 1), keeper: &child.Keeper{},
	}
}

// Run keeps the training running until it is over, and returns the code to exit with: the training's own.
func Run(ctx context.Context, o Options, signals <-chan os.Signal) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := made(ctx, o)
	c.introduce()
	if err := c.open(); err != nil {
		c.Say("%v", err)
		return CodeFailed
	}
	c.watch()
	slim := time.AfterFunc(10*time.Second, child.Slim)
	defer slim.Stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.spool.Run(ctx)
	}()
	c.loop(signals)
	c.keeper.Close()
	flush, stop := context.WithTimeout(ctx, 3*time.Second)
	if err := c.spool.Flush(flush); err != nil {
		c.Note("some reports are not sent yet; they are kept in %s", c.State)
	}
	stop()
	if c.told != nil && c.client != nil {
		c.client.Part(ctx)
	}
	cancel()
	<-sent
	c.commands.Wait()
	return c.code
}

// loop goes on until the crew is done.
func (c *crew) loop(signals <-chan os.Signal) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !c.done {
		c.wake = c.clock().Add(time.Minute)
		c.advance(c.clock())
		if c.done {
			break
		}
		timer.Reset(max(0, c.wake.Sub(c.clock())))
		select {
		case f := <-c.do:
			f()
		case s := <-signals:
			c.signalled(s)
		case <-timer.C:
		}
	}
}

// open finds out what an earlier crew left.
func (c *crew) open() error {
	k := kept{Leader: agree.Memory{Budget: restart.NewBudget()}}
	err := state.Read(filepath.Join(c.State, memoryFile), &k)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Say("%v; the budget begins anew", err)
	}
	c.memory, c.began, c.saver.Memory = k.Leader, k.Began, k.Saves
	c.life = Life(c.Machine)
	c.status = agree.Status{Worker: c.Machine.Worker, Host: c.Machine.Host, Phase: agree.Idle}
	c.spool, err = report.Open(filepath.Join(c.State, "reports.jsonl"), c.Machine.Host+"/"+c.State, c.Send)
	if err != nil {
		return err
	}
	c.spool.Fail = func(err error) {
		if err != nil {
			c.post(func() { c.Note("reports are kept until they can be sent: %v", err) })
		}
	}
	now := c.clock()
	c.next["waits"] = now.Add(min(c.Times.Silent/4, soon))
	if c.Machine.Worker == 0 {
		c.leader = agree.New(agree.Config{
			Workers: c.Machine.Workers, Slice: c.Machine.Slice, Slices: c.Machine.Slices, Life: c.admission(), Policy: c.Rules,
			Silence: c.Times.Silent, Finish: c.Times.Finish, WaitSaved: c.WaitSaved, StayAfterGivingUp: c.StayAfterGivingUp,
			DoneAt: c.DoneAt, Number: number,
		}, c.memory, fmt.Sprintf("%s-%d-%x", c.Machine.Host, os.Getpid(), now.UnixNano()), now)
	}
	if err := c.adopt(); err != nil {
		c.Say("%v; a training that still runs is not adopted", err)
	}
	c.meet()
	return nil
}

// meet prepares what the workers of a slice say to each other. Before there is a key it neither sends nor hears anything.
func (c *crew) meet() {
	slice := fmt.Sprintf("%s, slice %d", c.Workload, c.Machine.Slice)
	switch {
	case c.leader == nil:
		c.client = peers.NewClient(slice, c.Leader)
		c.client.Say(c.status)
	case c.Listener != nil:
		c.server = peers.NewServer(slice, c.Machine.Peers, func(s agree.Status) {
			c.post(func() { c.leader.Hear(c.clock(), s) })
		})
		c.server.Hold = min(c.server.Hold, c.Times.Silent/4, c.Times.Unread/8)
		c.server.Refused = func(err error) { c.post(func() { c.Say("%v", err) }) }
	default:
		return // it is alone
	}
	if c.Key != nil {
		c.speak(c.Key)
	}
}

// readKey reads the key beside the checkpoints until there is one, and again where words are not believed: a person may
// have deleted it, and another crew made the next.
func (c *crew) readKey(now time.Time) {
	c.doubted = c.doubted || c.server != nil && c.server.Doubted()
	alone := c.client == nil && c.server == nil
	if alone || c.Key != nil || c.key != nil && !c.doubted || !c.every("key", c.Times.Lease, now) {
		return
	}
	c.once("key", func(ctx context.Context) func() {
		k, err := c.board.Key(ctx)
		return func() {
			c.fault("key of the crews", err)
			if err == nil {
				c.speak(k)
			}
		}
	})
}

// speak takes the key with which the crew signs its words, and starts the exchange with the other workers.
func (c *crew) speak(k peers.Key) {
	first := c.key == nil
	c.key = k
	if c.client != nil {
		c.client.SetKey(k)
		if first {
			go c.client.Run(c.ctx, func(p agree.Plan) {
				c.post(func() { c.follow(p) })
			}, func(err error) {
				c.post(func() {
					c.unheard = err
					c.silent(err)
					c.doubted = errors.Is(err, peers.ErrUnsigned)
				})
			})
		}
		return
	}
	c.doubted = false
	c.server.SetKey(k)
	if first {
		go func() {
			if err := c.server.Serve(c.ctx, c.Listener); err != nil {
				c.post(func() { c.Say("the other workers cannot be heard any more: %v", err) })
			}
		}()
	}
}

// adopt takes over the training that the last crew left, or its end, unless that has been dealt with.
func (c *crew) adopt() error {
	t, err := child.Adopt(c.State, c.Lock)
	if err != nil || t == nil {
		return err
	}
	c.began = true
	if c.leader != nil && !t.Running() && t.Attempt <= c.memory.Handled {
		return child.Forget(c.State)
	}
	c.child = t
	c.set(agree.Status{Phase: agree.Running, Attempt: t.Attempt})
	if t.Running() {
		c.Say("adopted attempt %d, process %d, running since %s", t.Attempt, t.Training.PID, moment(t.Began))
	} else {
		c.Say("adopted attempt %d, which has ended already: %s", t.Attempt, t.Exit().Describe())
	}
	c.await(t)
	return nil
}

// Life is what the host names of a slice's workers have in common, and no other slice's. Two machines may have one host name
// where nobody gives them out. In a Job of Kubernetes it is the Job's UID: Pods of a Job that is made again have the old names.
func Life(m metadata.Machine) string {
	if m.Pod.Known() {
		return m.Pod.JobUID
	}
	if group, _, ok := events.WorkerGroup(m.Host); ok {
		return group
	}
	if len(m.Peers) > 1 {
		return m.Peers[0]
	}
	if m.MachineID != "" {
		return m.Host + "-" + m.MachineID
	}
	return m.Host
}

// number is the number of a signal.
func number(name string) int {
	s, _ := child.SignalOf(name)
	return int(s)
}

// post brings what happened beside the loop into it.
func (c *crew) post(f func()) {
	select {
	case c.do <- f:
	case <-c.ctx.Done():
	}
}

// beside runs f in a goroutine of its own, and the function that f returns in the loop.
func (c *crew) beside(limit time.Duration, f func(ctx context.Context) func()) {
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, limit)
		defer cancel()
		c.post(f(ctx))
	}()
}

// once is beside for recurring calls: while the last call has not come back, it makes no other.
func (c *crew) once(what string, f func(ctx context.Context) func()) {
	if c.running[what] {
		return
	}
	c.running[what] = true
	c.beside(limit, func(ctx context.Context) func() {
		then := f(ctx)
		return func() {
			delete(c.running, what)
			then()
		}
	})
}

// at makes the loop look again at that time. A time in the past becomes one soon after now, so that the loop does not race.
func (c *crew) at(t time.Time) {
	if t.IsZero() || !t.Before(c.wake) {
		return
	}
	if now := c.clock(); !t.After(now) {
		t = now.Add(50 * time.Millisecond)
	}
	c.wake = t
}

// every reports whether it is time for something that recurs.
func (c *crew) every(what string, d time.Duration, now time.Time) bool {
	due := !now.Before(c.next[what])
	if due {
		c.next[what] = now.Add(d)
	}
	c.at(c.next[what])
	return due
}

// fault tells of a trouble once, and of its end. The text of one trouble may change each time, as a network's ports do: it is told at most
// every minute. A full disk is one trouble, whatever finds no room on it.
func (c *crew) fault(what string, err error) {
	disk, before := fullDisk(err), c.full[what]
	if before != "" && before != disk {
		if delete(c.full, what); !slices.Contains(slices.Collect(maps.Values(c.full)), before) {
			c.condition(before, "", before+" has room again")
		}
	}
	if disk != "" {
		c.full[what] = disk
		c.condition(disk, disk+" is full: make room there. What pitcrew has to write there is missing until then", "")
		return
	}
	text := ""
	if err != nil {
		if text = err.Error(); !strings.HasPrefix(text, what) {
			text = what + ": " + text
		}
		if before := c.seen[what]; before != "" && before != text && !c.every("fault of "+what, time.Minute, c.clock()) {
			return
		}
	}
	c.condition(what, text, what+": it works again")
}

// fullDisk names the disk on which an error found no room, by the highest folder of it; empty where that is not the error.
func fullDisk(err error) string {
	path := (*fs.PathError)(nil)
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) || !errors.As(err, &path) {
		return ""
	}
	device := func(dir string) (any, error) {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		return s.Dev, nil
	}
	dir := filepath.Dir(path.Path)
	for own, err := device(dir); err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if above, err := device(filepath.Dir(dir)); err != nil || above != own {
			break
		}
	}
	return "the disk of " + dir
}

// condition prints a text once as long as it stays the same, and the last one when it is over, which an empty text says.
func (c *crew) condition(key, text, over string) {
	switch before := c.seen[key]; {
	case text == before:
	case text != "":
		c.Say("%s", text)
		c.seen[key] = text
	default:
		delete(c.seen, key)
		if over != "" {
			c.Say("%s", over)
		}
	}
}

// advance does everything that is to be done now.
func (c *crew) advance(now time.Time) {
	if c.Directory != "" && c.every("lease", c.Times.Lease, now) {
		c.readLease()
		c.readRequest()
	}
	c.readKey(now)
	c.readStep(now)
	c.look(now)
	for range 10 { // the leader and its own worker answer each other
		c.obey(now)
		before := fmt.Sprint(c.plan.Version, c.status.Phase, c.status.Attempt, c.lease.virtual)
		c.lead(now)
		if before == fmt.Sprint(c.plan.Version, c.status.Phase, c.status.Attempt, c.lease.virtual) {
			break
		}
	}
	if c.unheard != nil {
		c.silent(c.unheard) // what follows from it changes when a training begins or ends
	}
	c.saves(now)
	c.stays(now)
	c.helpers(now)
	if c.unsynced && c.every("sync", time.Second, now) {
		c.unsynced = false
		// Beside the loop: a restart does not wait for the disk.
		go state.Sync(filepath.Join(c.State, memoryFile)) //nolint:errcheck // what cannot be written was told when it was
	}
	c.writeVerdict(now)
	c.tell(now)
	c.awaited(now)
	c.over(now)
}

// lead lets the leader advance.
func (c *crew) lead(now time.Time) {
	if c.leader == nil {
		return
	}
	c.leader.Hear(now, c.status)
	if c.server != nil {
		for worker, at := range c.server.Seen() {
			c.leader.Touch(worker, at)
		}
	}
	plan, want, happened := c.leader.Advance(c.view(now))
	for _, e := range happened {
		c.happened(now, e)
	}
	c.remember()
	c.at(want.Wake)
	c.refresh(want.Fresh)
	c.carry(now, want)
	if ended := c.plan.Run && (!plan.Run || plan.Attempt != c.plan.Attempt); ended || !plan.Run && c.leader.Stage != agree.Admitting {
		c.meeting = "" // a training that is about to end may still hold its port, and a wait may be long
	}
	if plan.Run && c.Machine.Slices <= 1 {
		plan.Server = c.server0()
	}
	c.plan = plan
	c.publish()
}

// publish gives the plan to the other workers, with what this one waits for.
func (c *crew) publish() {
	if c.server != nil {
		p := c.plan
		if !p.Run {
			p.Waits = c.waits
		}
		c.server.Publish(p)
	}
}

// remember writes down what the leader has to know again, but the end of the last attempt only when it was reported.
func (c *crew) remember() {
	if m := c.leader.Memory; m != c.memory && (c.last == nil || c.last.reported) {
		c.memory = m
		c.keep()
	}
}

// keep writes down what the next crew has to know.
func (c *crew) keep() {
	err := state.Write(filepath.Join(c.State, memoryFile), kept{Leader: c.memory, Began: c.began, Saves: c.saver.Memory})
	c.unsynced = true
	c.fault("state directory", err)
}

// view is what the leader sees beside its workers.
func (c *crew) view(now time.Time) agree.View {
	return agree.View{
		Now: now, Lease: c.leaseOf(now), Outside: c.out.view, Replaced: c.out.replaced, Step: c.found.Step, Checkpoint: c.found.URI,
		LastStep: c.lastStep(c.status.Exit.Began), Saved: c.savedNew(), Remark: c.forgets, Save: c.urged(),
		Chance: c.chance(),
		Hold:   c.announced.preempted || c.told != nil,
		Looked: c.seenSince(now),
	}
}

// over ends the crew when everything is over.
func (c *crew) over(now time.Time) {
	if c.child != nil || c.running[speedObject] {
		return
	}
	switch {
	case c.told != nil && !c.parted(now):
	case c.told != nil && !c.concluded(now) && now.Before(c.finish):
	case c.told != nil:
		c.done, c.code = true, c.ownCode()
	case c.plan.Over:
		// Worker 0 stays until the others know.
		if c.server != nil && c.server.Known() < c.Machine.Workers-1 {
			if c.finish.IsZero() {
				c.finish = now.Add(c.Times.Finish)
			}
			c.at(c.finish)
			c.at(now.Add(50 * time.Millisecond))
			if now.Before(c.finish) {
				return
			}
		}
		if c.concluded(now) {
			c.done, c.code = true, c.plan.Code
		}
	}
}

// parting is how long worker 0 stays for the others after a signal to end.
const parting = 3 * time.Second

// parted reports whether the others know that an attempt has ended that ran here, or had the time to hear of it: worker 0
// tells them, and nobody else would. The other slices hear of it when nobody of this one trains any more.
func (c *crew) parted(now time.Time) bool {
	if c.leader == nil || c.status.Phase != agree.Ended {
		return true // whoever leads hears of it
	}
	finish, known := now.Add(parting), c.server == nil || c.server.Known() >= c.Machine.Workers-1
	if c.Machine.Slices > 1 {
		finish = c.toldAt.Add(c.Times.Stop + c.Times.Dump + parting)
		known = known && (c.status.Attempt <= c.leader.Handled || c.out.view.Attempt == c.status.Attempt && c.out.view.Ended != nil)
	}
	if c.finish.IsZero() {
		c.finish = finish
	}
	c.at(c.finish)
	c.at(now.Add(20 * time.Millisecond))
	return known || !now.Before(c.finish)
}

// ownCode is the code of a crew that a signal ends: the training's own, but never 0 for a job that is not done.
func (c *crew) ownCode() int {
	s, ok := c.told.(syscall.Signal)
	if !ok {
		return CodeFailed
	}
	if c.last != nil && c.last.verdict.Certain {
		return c.last.verdict.Code
	}
	if c.status.Phase == agree.Ended {
		if code := c.status.Exit.ShellCode(number); code != 0 {
			return code
		}
	}
	return 128 + int(s)
}
