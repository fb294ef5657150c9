package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat tells.
type stat struct {
	ppid, group int
	start       string
	zombie      bool
	used        time.Duration // of processors, with that of children that were waited for
}

// tick is the unit of processor time there: 100 a second on each Linux that Go runs on.
const tick = 10 * time.Millisecond

// statOf reads the fields behind the name, which may hold spaces and brackets of its own.
func statOf(pid int) (s stat, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(f) < 20 {
		return s, false
	}
	s.ppid, _ = strconv.Atoi(f[1])  //nolint:errcheck // the kernel writes numbers
	s.group, _ = strconv.Atoi(f[2]) //nolint:errcheck // likewise
	for _, ticks := range f[11:15] {
		n, _ := strconv.ParseInt(ticks, 10, 64) //nolint:errcheck // likewise
		s.used += time.Duration(n) * tick
	}
	s.start, s.zombie = f[19], f[0] == "Z" || f[0] == "X"
	return s, true
}

// boot names this life of the machine: start times count from its beginning.
var boot = func() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}()

func identify(pid int) Identity {
	s, _ := statOf(pid)
	return Identity{PID: pid, Start: boot + "/" + s.start}
}

// alive reports whether a process is the one that it was.
func (i Identity) alive() bool {
	s, ok := statOf(i.PID)
	return ok && !s.zombie && boot+"/"+s.start == i.Start
}

// waitGone waits until a process that may be no child of ours has ended. The kernel says so through its pidfd.
func waitGone(ctx context.Context, i Identity) {
	fd, err := unix.PidfdOpen(i.PID, 0)
	if err != nil || !i.alive() {
		if err == nil {
			unix.Close(fd) //nolint:errcheck // it was only watched
		}
		for errors.Is(err, unix.ENOSYS) && i.alive() && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		return
	}
	defer unix.Close(fd) //nolint:errcheck // it was only watched
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) //nolint:gosec // a descriptor
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// inherited takes the status of a process that became our child when its parent died.
func inherited(pid int) (status syscall.WaitStatus, ok bool) {
	for {
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return status, err == nil && got == pid
		}
	}
}

// callItself names this process for those who look at the list of all. The name is that of the first thread.
func callItself(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0o600) //nolint:errcheck // it is then called as its program is
}

// outlive has the processes that lose their parent handed to this one.
func outlive() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) //nolint:errcheck // without it they go to the first process
}

// unmapCode lets go of the pages of the program that the start has touched: most are never needed again, and the others
// come back from the page cache, where the crew's are. Code is never written to, so nothing is lost.
func unmapCode() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uintptr
		var mode string
		if n, err := fmt.Sscanf(line, "%x-%x %s", &start, &end, &mode); err != nil || n != 3 || mode != "r-xp" || !strings.Contains(line, " /") {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED) //nolint:errcheck // without it they stay
	}
}

// Reap has this process take care of what loses its parent, as the first process of a container must. Children that were
// started from here are left to whoever waits for them.
func Reap(ctx context.Context, orphaned <-chan os.Signal) {
	outlive()
	for {
		select {
		case <-ctx.Done():
			return
		case <-orphaned:
		}
		ours.Lock()
		for _, pid := range children() {
			if s, ok := statOf(pid); ok && s.zombie && !ours.pids[pid] {
				inherited(pid)
			}
		}
		ours.Unlock()
	}
}

// processes are the numbers of all processes.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// children are the processes whose parent this one is. The kernel lists them by the thread that they were left to. Where it lists none, all
// processes are asked: the list may miss one that was left to this process just now.
func children() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") //nolint:errcheck // the pattern is a right one
	for _, path := range lists {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if pids == nil {
		return childrenOf(os.Getpid())
	}
	return pids
}

// signalAll sends a signal to a process group, and to what else a parent of it has to reap, each with a group that it leads.
func signalAll(parent, group int, sig syscall.Signal) error {
	err := syscall.Kill(-group, sig)
	for _, pid := range childrenOf(parent) {
		switch s, _ := statOf(pid); s.group {
		case group:
			continue
		case pid:
			pid = -pid
		}
		if syscall.Kill(pid, sig) == nil {
			err = nil
		}
	}
	return err
}

// belongs reports whether a process is one of the group.
func belongs(pid, group int) bool {
	s, _ := statOf(pid)
	return s.group == group
}

// hides reports whether a process keeps a terminal for others, and to itself how they end.
func hides(pid int) bool {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return err == nil && (bytes.HasPrefix(name, []byte("screen")) || bytes.HasPrefix(name, []byte("tmux")))
}

// names lists processes with the beginning of their commands, as many as fit a line.
func names(pids []int) string {
	const most, width = 8, 60
	var list []string
	for i, pid := range pids {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(pids)-most))
			break
		}
		raw, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") //nolint:errcheck // it may have ended just now
		words := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
		words[0] = path.Base(words[0])
		command := strings.Join(words[:min(2, len(words))], " ") // a secret may come later
		list = append(list, fmt.Sprintf("process %d (%s)", pid, strings.ToValidUTF8(command[:min(width, len(command))], "?")))
	}
	return strings.Join(list, ", ")
}

func childrenOf(pid int) []int {
	return slices.DeleteFunc(processes(), func(p int) bool {
		s, ok := statOf(p)
		return !ok || s.ppid != pid
	})
}

// sweep kills the rest of an attempt whose parent died: every process that carries its mark. The number of its process
// group may be somebody else's by now, after a restart of the machine above all.
func sweep(run string) {
	if run == "" {
		return
	}
	mark := []byte(RunVariable + "=" + run)
	for round := range 50 {
		var left []int
		for _, pid := range processes() {
			env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
			if err == nil && pid != os.Getpid() && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, mark) }) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if round == 0 {
			tell("killing what is left of a training whose parent was killed: %s", names(left))
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended just now
			inherited(pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// oomKills counts the processes of this one's memory cgroup, the training's too, that the kernel has killed for want of
// memory, the group's or the machine's. A process that was killed elsewhere on the machine says nothing about the training.
// https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
func oomKills() int64 { return oomKillsIn(os.DirFS("/")) }

func oomKillsIn(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		var dir, file string
		switch {
		case f[1] == "":
			dir, file = "sys/fs/cgroup", "memory.events"
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			dir, file = "sys/fs/cgroup/memory", "memory.oom_control"
		default:
			continue
		}
		// The nearest group that counts; in a container the path may begin above the visible part.
		for group := path.Clean("/" + f[2]); ; group = path.Dir(group) {
			if n, ok := oomKillsOf(root, path.Join(dir, group, file)); ok {
				return n
			}
			if group == "/" {
				break
			}
		}
	}
	return 0
}

func oomKillsOf(root fs.FS, name string) (n int64, ok bool) {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, err = strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// reclaim takes the terminal back.
func reclaim() {
	// The crew's group is that of the session's job; it is the group of our own parent.
	if group, err := unix.Getpgid(os.Getppid()); err == nil {
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) //nolint:errcheck // the shell takes it anyway
	}
}

// Terminal reports whether the standard input is a terminal whose foreground is our process group.
func Terminal() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// catches reports whether a process handles a signal, by the mask in its status.
func catches(pid int, sig syscall.Signal) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(raw), "\nSigCgt:")
	if !ok {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && mask&(1<<(uint(sig)-1)) != 0
}

// Handlers are the processes of the training that handle a signal.
func (c *Child) Handlers(sig syscall.Signal) (found []int) {
	switch {
	case !c.Running():
	case c.Left():
		for _, pid := range childrenOf(c.Parent.PID) {
			found = append(found, HandlersOf(pid, sig)...)
		}
	default:
		found = HandlersOf(c.Training.PID, sig)
	}
	return found
}

// tpuDevices are how the names of a TPU's devices begin.
var tpuDevices = []string{"/dev/accel", "/dev/vfio/"}

// usesTPU reports whether a process has a TPU open: then it is the training itself, and no wrapper around it.
func usesTPU(pid int) bool {
	links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	return err == nil && slices.ContainsFunc(links, func(link string) bool {
		to, err := os.Readlink(link)
		return err == nil && slices.ContainsFunc(tpuDevices, func(d string) bool { return strings.HasPrefix(to, d) })
	})
}

// HandlersOf are the processes that handle a signal: the one itself if it does, else the nearest ones below it. A wrapper,
// such as a shell, would die of a signal that the training in it handles. What a training has started itself is not asked:
// a loader of data may handle the signal by ending, and the training would end of that.
func HandlersOf(pid int, sig syscall.Signal) []int {
	if catches(pid, sig) {
		return []int{pid}
	}
	if usesTPU(pid) {
		return nil
	}
	below := families()
	var found []int
	var walk func(pid int)
	walk = func(pid int) {
		for _, p := range below[pid] {
			switch {
			case catches(p, sig):
				found = append(found, p)
			case !usesTPU(p):
				walk(p)
			}
		}
	}
	walk(pid)
	return found
}

// families are the processes by their parents.
func families() map[int][]int {
	below := map[int][]int{}
	for _, p := range processes() {
		if s, ok := statOf(p); ok && !s.zombie {
			below[s.ppid] = append(below[s.ppid], p)
		}
	}
	return below
}

// Work is the processor time that what the command has left has used, and whether some of it has a TPU open.
func (c *Child) Work() (used time.Duration, tpu bool) {
	below := families()
	for open := below[c.Parent.PID]; len(open) > 0; open = open[1:] {
		s, _ := statOf(open[0])
		used, tpu = used+s.used, tpu || usesTPU(open[0])
		open = append(open, below[open[0]]...)
	}
	return used, tpu
}

// Find finds a process that runs this very command, other than this one.
func Find(command []string) (pid int, found bool) {
	want := strings.Join(command, "\x00") + "\x00"
	for _, p := range processes() {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(p) + "/cmdline")
		if err == nil && p != os.Getpid() && string(raw) == want {
			return p, true
		}
	}
	return 0, false
}

// Able says what this system cannot do for a crew; empty when it can everything.
func Able() string {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return "this kernel has no pidfd: the end of an adopted training is noticed a little later"
	}
	if err := unix.Close(fd); err != nil {
		return err.Error()
	}
	if _, err := os.ReadFile("/proc/self/status"); err != nil {
		return "there is no /proc: signals to save cannot be sent"
	}
	return ""
}

// Send sends a signal to one process, and to no other that got its number meanwhile.
func Send(pid int, sig syscall.Signal) error {
	return syscall.Kill(pid, sig)
}
