//go:build unix && !linux

package child

import (
	"context"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Elsewhere than on Linux the crew supervises its own processes, and knows no more about processes than that they live.

func identify(pid int) Identity { return Identity{PID: pid, Start: strconv.Itoa(pid)} }

func (i Identity) alive() bool { return i.PID > 0 && syscall.Kill(i.PID, 0) == nil }

func waitGone(ctx context.Context, i Identity) {
	for i.alive() && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
}

func inherited(int) (status syscall.WaitStatus, ok bool) { return status, false }

func callItself(string) {}

func outlive() {}

func unmapCode() {}

// Reap takes care of orphans on Linux; elsewhere the first process does.
func Reap(ctx context.Context, _ <-chan os.Signal) { <-ctx.Done() }

func children() []int { return nil }

func sweep(string) {}

func signalAll(_, group int, sig syscall.Signal) error { return syscall.Kill(-group, sig) }

func belongs(int, int) bool { return true }

func hides(int) bool { return false }

func names([]int) string { return "the rest of its process group" }

func oomKills() int64 { return 0 }

func reclaim() {}

// Terminal is known on Linux alone.
func Terminal() bool { return false }

// Handlers are known on Linux alone: nothing is sent to a process that might die of it.
func (c *Child) Handlers(syscall.Signal) []int { return nil }

// Work is known on Linux alone.
func (c *Child) Work() (used time.Duration, tpu bool) { return 0, true }

// Send sends a signal to one process.
func Send(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

// HandlersOf are known on Linux alone.
func HandlersOf(int, syscall.Signal) []int { return nil }

// Find finds processes on Linux alone.
func Find([]string) (pid int, found bool) { return 0, false }

// Able says what this system cannot do for a crew.
func Able() string { return "this is not Linux: nothing is adopted, and no signal to save is sent" }
