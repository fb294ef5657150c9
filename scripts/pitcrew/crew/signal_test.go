//go:build unix

package crew

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/save"
)

// endedBy is a training that a signal ended.
func endedBy(t *testing.T, signal string) *child.Child {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"training.json": `{"attempt":1,"command":["true"],"began":"2026-07-04T09:00:00Z","parent":{"pid":1,"start":"x"},"training":{"pid":1,"start":"x"}}`,
		"exit.json":     fmt.Sprintf(`{"attempt":1,"signal":%q,"began":"2026-07-04T09:00:00Z","ended":"2026-07-04T09:01:00Z"}`, signal),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, err := child.Adopt(dir, nil)
	if err != nil || ended == nil || ended.Running() {
		t.Fatal(ended, err)
	}
	ended.Adopted = false
	return ended
}

// atNine is a crew whose clock the test moves, and what it says.
func atNine(t *testing.T) (c *crew, now *time.Time, said *[]string) {
	t.Helper()
	c = crewOf(t, 1)
	now, said = new(time.Time), new([]string)
	*now = time.Date(2026, 7, 4, 9, 0, 0, 0, time.UTC)
	c.clock = func() time.Time { return *now }
	c.Say = func(format string, args ...any) { *said = append(*said, fmt.Sprintf(format, args...)) }
	return c, now, said
}

// TestASignalOfPitcrewsOwnIsNoPersons: only a key at the terminal ends pitcrew with its training.
func TestASignalOfPitcrewsOwnIsNoPersons(t *testing.T) {
	request := &save.Request{ID: "1", Own: true, Mode: events.SaveSignal, Why: "maintenance"}
	natural := &save.Request{ID: "1", Own: true, Mode: events.SaveNatural, Why: "maintenance"}
	for _, c := range []struct {
		name, signal string
		set          func(c *crew)
		typed        bool
	}{
		{"a person types Ctrl-\\", "SIGQUIT", func(*crew) {}, true},
		{"pitcrew asks for the stacks", "SIGQUIT", func(c *crew) { c.stopping = &stopping{why: "it ended on worker 1", stage: 2} }, false},
		{"pitcrew has it save", "SIGINT", func(c *crew) { c.Signal, c.saver.Request = syscall.SIGINT, request }, false},
		{"pitcrew has it save", "SIGQUIT", func(c *crew) { c.Signal, c.saver.Request = syscall.SIGQUIT, request }, false},
		{"another signal saves", "SIGINT", func(c *crew) { c.Signal, c.saver.Request = syscall.SIGTERM, request }, true},
		{"a save that nobody was sent a signal for", "SIGINT", func(c *crew) { c.Signal, c.saver.Request = syscall.SIGINT, natural }, true},
		{"its signal is not sent yet", "SIGINT", func(c *crew) { c.Signal, c.saver.Request, c.saver.Unsent = syscall.SIGINT, request, true }, true},
		{"a command saves", "SIGINT", func(c *crew) {
			c.Signal, c.saver.Request, c.SaveCommand = syscall.SIGINT, request, []string{"true"}
		}, true},
		{"the save is done", "SIGINT", func(c *crew) { c.Signal, c.saver.Marked = syscall.SIGINT, c.clock() }, true},
		{"worker 0 sees whether the save is done", "SIGINT", func(c *crew) {
			c.leader, c.Signal, c.saver.Marked = nil, syscall.SIGINT, c.clock()
		}, false},
		{"its time is over", "SIGINT", func(c *crew) {
			c.leader, c.Signal, c.saver.Marked = nil, syscall.SIGINT, c.clock().Add(-c.Times.Save)
		}, true},
	} {
		crew, _, said := atNine(t)
		crew.Terminal = true
		c.set(crew)
		crew.ended(endedBy(t, c.signal), progressed{n: -1})
		if got := strings.Contains(strings.Join(*said, "\n"), "pitcrew ends, too"); got != c.typed || (crew.told != nil) != c.typed {
			t.Errorf("%s (%s): %v, %q", c.name, c.signal, crew.told, *said)
		}
	}
}
