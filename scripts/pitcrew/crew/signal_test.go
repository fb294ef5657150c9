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

// TestASignalThatComesTwiceAtOnceIsOne: timeout signals its child and then the group of that; sudo and wrappers pass on what
// everybody got. A training that saves may not be killed by that.
func TestASignalThatComesTwiceAtOnceIsOne(t *testing.T) {
	type sent struct {
		after  time.Duration // since the first
		signal syscall.Signal
	}
	const passed, killed = "passed on to the training", "killing the training (SIGKILL)"
	for _, c := range []struct {
		name   string
		sent   []sent
		says   []string
		told   os.Signal
		killed bool
		left   time.Duration
	}{
		{
			name: "timeout", sent: []sent{{0, syscall.SIGTERM}, {0, syscall.SIGTERM}},
			says: []string{passed}, told: syscall.SIGTERM, left: 20 * time.Second,
		},
		{
			name: "wrappers", sent: []sent{{0, syscall.SIGTERM}, {400 * time.Millisecond, syscall.SIGINT}, {999 * time.Millisecond, syscall.SIGTERM}},
			says: []string{passed}, told: syscall.SIGTERM, left: 19001 * time.Millisecond,
		},
		{
			name: "a person who asks twice", sent: []sent{{0, syscall.SIGINT}, {time.Second, syscall.SIGINT}},
			says: []string{passed, killed}, told: syscall.SIGINT, killed: true,
		},
		{
			name: "after an echo", sent: []sent{{0, syscall.SIGTERM}, {900 * time.Millisecond, syscall.SIGTERM}, {1100 * time.Millisecond, syscall.SIGTERM}},
			says: []string{passed, killed}, told: syscall.SIGTERM, killed: true,
		},
		{
			name: "systemd ends a session", sent: []sent{{0, syscall.SIGTERM}, {0, syscall.SIGHUP}, {5 * time.Second, syscall.SIGHUP}},
			says: []string{passed}, told: syscall.SIGTERM, left: 15 * time.Second,
		},
		{
			name: "a terminal is gone, and a person asks", sent: []sent{{0, syscall.SIGHUP}, {0, syscall.SIGHUP}, {5 * time.Second, syscall.SIGTERM}},
			says: []string{passed, passed}, told: syscall.SIGTERM, left: 15 * time.Second,
		},
		{
			name: "at the same time", sent: []sent{{0, syscall.SIGHUP}, {0, syscall.SIGTERM}, {0, syscall.SIGTERM}},
			says: []string{passed, passed}, told: syscall.SIGTERM, left: 20 * time.Second,
		},
		{
			name: "a person asks twice after that", sent: []sent{{0, syscall.SIGHUP}, {5 * time.Second, syscall.SIGTERM}, {6 * time.Second, syscall.SIGTERM}},
			says: []string{passed, passed, killed}, told: syscall.SIGTERM, killed: true,
		},
	} {
		crew, now, said := atNine(t)
		crew.child = endedBy(t, "SIGKILL") // it gets no signal
		began := *now
		for _, s := range c.sent {
			*now = began.Add(s.after)
			crew.signalled(s.signal)
		}
		if crew.told != c.told || len(*said) != len(c.says) {
			t.Errorf("%s: %v, %q", c.name, crew.told, *said)
			continue
		}
		for i, want := range c.says {
			if !strings.Contains((*said)[i], want) {
				t.Errorf("%s: %q lacks %q", c.name, (*said)[i], want)
			}
		}
		if s := crew.stopping; c.killed != (s.why == "a second signal") || !c.killed && (s.stage != 1 || s.at.Sub(*now) != c.left) {
			t.Errorf("%s: %+v, %v left", c.name, s, s.at.Sub(*now))
		}
	}
}

// TestWithoutATrainingASecondSignalEndsAtOnce, too.
func TestWithoutATrainingASecondSignalEndsAtOnce(t *testing.T) {
	crew, now, said := atNine(t)
	crew.signalled(syscall.SIGTERM)
	crew.signalled(syscall.SIGTERM)
	if len(*said) != 1 || !crew.finish.IsZero() {
		t.Errorf("%q, %v", *said, crew.finish)
	}
	*now = now.Add(time.Second)
	if crew.signalled(syscall.SIGTERM); len(*said) != 2 || !strings.Contains((*said)[1], "ending at once") || !crew.finish.Equal(*now) {
		t.Errorf("%q, %v", *said, crew.finish)
	}
}

// TestWhatCountsAsWork: a step, a hundredth of a processor, or an open TPU.
func TestWhatCountsAsWork(t *testing.T) {
	for name, c := range map[string]struct {
		used time.Duration // in each minute
		tpu  bool
		step int64
		idle bool
	}{
		"nothing":          {idle: true},
		"a mount":          {used: 500 * time.Millisecond, idle: true},
		"a data loader":    {used: time.Second},
		"a TPU that waits": {tpu: true},
		"a step a minute":  {step: 1},
		"a process ended":  {used: -time.Second},
	} {
		w, now := work{}, time.Date(2026, 7, 4, 9, 0, 0, 0, time.UTC)
		idle := w.idle(now, time.Hour, c.tpu, 0)
		for n := int64(1); n <= 15; n++ {
			now = now.Add(time.Minute)
			idle = w.idle(now, time.Hour+time.Duration(n)*c.used, c.tpu, n*c.step)
		}
		if (idle == 15*time.Minute) != c.idle || !c.idle && idle != 0 {
			t.Errorf("%s: idle for %v", name, idle)
		}
	}
}
