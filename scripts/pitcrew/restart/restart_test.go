package restart_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/restart"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name string
		exit restart.Exit
		when restart.Circumstances
		want restart.Class
	}{
		{name: "0 is the end of the job", want: restart.Finished},
		{name: "0 with a request open is saved", when: restart.Circumstances{Told: true}, want: restart.Saved},
		{name: "0 near maintenance is saved", when: restart.Circumstances{Maintenance: true}, want: restart.Saved},
		{name: "0 after a received signal is saved", when: restart.Circumstances{Signalled: true}, want: restart.Saved},
		{name: "0 before the last step is saved", when: restart.Circumstances{Short: true}, want: restart.Saved},
		{name: "0 at the last step is the end of the job", when: restart.Circumstances{Done: true}, want: restart.Finished},
		{
			name: "0 at the last step is so whatever was asked for or announced",
			when: restart.Circumstances{Done: true, Told: true, Maintenance: true, Signalled: true}, want: restart.Finished,
		},
		{
			name: "our own stop at the last step is no end",
			when: restart.Circumstances{Done: true, Stopped: true}, want: restart.Stopped,
		},
		{
			name: "1 after a received signal may succeed the next time", exit: restart.Exit{Code: 1},
			when: restart.Circumstances{Signalled: true}, want: restart.Failed,
		},
		{name: "1 may succeed the next time", exit: restart.Exit{Code: 1}, want: restart.Failed},
		{name: "2 may succeed the next time", exit: restart.Exit{Code: 2}, want: restart.Failed},
		{name: "abort by signal", exit: restart.Exit{Signal: "SIGABRT"}, want: restart.Crashed},
		{name: "abort behind a shell", exit: restart.Exit{Code: 134}, want: restart.Crashed},
		{name: "segmentation fault by signal", exit: restart.Exit{Signal: "SIGSEGV"}, want: restart.Crashed},
		{name: "segmentation fault behind a shell", exit: restart.Exit{Code: 139}, want: restart.Crashed},
		{name: "a failure near maintenance is the machine's", exit: restart.Exit{Code: 139}, when: restart.Circumstances{Maintenance: true}, want: restart.Interrupted},
		{name: "killed for memory", exit: restart.Exit{Signal: "SIGKILL", OOMKilled: true}, want: restart.OutOfMemory},
		{name: "killed for memory behind a shell", exit: restart.Exit{Code: 137, OOMKilled: true}, want: restart.OutOfMemory},
		{name: "another process was killed for memory", exit: restart.Exit{Code: 1, OOMKilled: true}, want: restart.Failed},
		{name: "killed behind a shell, where the kernel says nothing, may be a lack of memory", exit: restart.Exit{Code: 137}, want: restart.Failed},
		{name: "killed by somebody", exit: restart.Exit{Signal: "SIGKILL"}, want: restart.Interrupted},
		{name: "terminated by somebody", exit: restart.Exit{Code: 143}, want: restart.Interrupted},
		{name: "nobody saw it", exit: restart.Exit{Unknown: true}, want: restart.Interrupted},
		{name: "no crew was there", exit: restart.Exit{Unled: true}, want: restart.Interrupted},
		{name: "a worker was lost", exit: restart.Exit{Code: 1}, when: restart.Circumstances{Lost: true}, want: restart.Interrupted},
		{name: "our own stop is no failure", exit: restart.Exit{Signal: "SIGKILL"}, when: restart.Circumstances{Stopped: true}, want: restart.Stopped},
		{name: "no such command", exit: restart.Exit{Code: 127}, when: restart.Circumstances{First: true}, want: restart.NotRun},
		{name: "127 of a script that ran before", exit: restart.Exit{Code: 127}, want: restart.Failed},
	} {
		if got := restart.Classify(c.exit, c.when); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func play(p restart.Policy, class restart.Class, progress func(n int, b restart.Budget) restart.Budget) (starts int, last restart.Next) {
	b := restart.NewBudget()
	for starts = 1; starts < 1000; starts++ {
		if progress != nil {
			b = progress(starts, b)
		}
		b, last = restart.Decide(p, b, restart.End{Class: class, Exit: restart.Exit{Code: 1}}, 0.5)
		if !last.Restart {
			return starts, last
		}
	}
	return starts, last
}

func TestTheTrainingServicesNumbers(t *testing.T) {
	p := restart.Defaults()
	for _, c := range []struct {
		name   string
		class  restart.Class
		steps  func(int, restart.Budget) restart.Budget
		starts int
		reason string
	}{
		{name: "five restarts, then the job three times more", class: restart.Failed, starts: 24, reason: "all restarts are spent"},
		{name: "a crash restarts the job, three times", class: restart.Crashed, starts: 4, reason: "all restarts are spent"},
		{name: "out of memory is not mended by a restart", class: restart.OutOfMemory, starts: 1, reason: "would not mend; --memory-restarts allows some"},
		{name: "interruptions have a budget of their own", class: restart.Interrupted, starts: 101, reason: "100 interruptions"},
		{
			name: "no step past the highest one stops earlier", class: restart.Failed, starts: 6, reason: "5 restarts without a step past 1,000",
			steps: func(_ int, b restart.Budget) restart.Budget { return b.Progress(1000, -1) },
		},
		{
			name: "steps that are never saved do not refill", class: restart.Failed, starts: 24, reason: "all restarts are spent",
			steps: func(n int, b restart.Budget) restart.Budget { return b.Progress(int64(n), 0) },
		},
		{
			name: "saved progress refills", class: restart.Failed, starts: 1000,
			steps: func(n int, b restart.Budget) restart.Budget { return b.Progress(int64(n), int64(n)) },
		},
		{
			name: "progress refills where nobody knows the saved step", class: restart.Crashed, starts: 1000,
			steps: func(n int, b restart.Budget) restart.Budget { return b.Progress(int64(n), -1) },
		},
		{name: "a command that cannot be run", class: restart.NotRun, starts: 1, reason: "cannot be run"},
		{name: "saved goes on", class: restart.Saved, starts: 1000},
	} {
		starts, last := play(p, c.class, c.steps)
		if starts != c.starts || !strings.Contains(last.Reason, c.reason) {
			t.Errorf("%s: %d starts, %q; want %d, %q", c.name, starts, last.Reason, c.starts, c.reason)
		}
	}
}

func TestLeftCountsDownToGivingUp(t *testing.T) {
	p := restart.Defaults()
	b := restart.NewBudget()
	for want := b.Left(p); ; want-- {
		if got := b.Left(p); got != want {
			t.Fatalf("%d left, want %d", got, want)
		}
		var next restart.Next
		if b, next = restart.Decide(p, b, restart.End{Class: restart.Failed, Exit: restart.Exit{Code: 1}}, 0.5); !next.Restart {
			if want != 0 {
				t.Fatalf("gave up with %d left", want)
			}
			return
		}
	}
}

func TestBackoffDoublesWithJitter(t *testing.T) {
	p := restart.Defaults()
	b := restart.NewBudget()
	want := p.First
	for range 10 {
		low, high := b, b
		_, l := restart.Decide(p, low, restart.End{Class: restart.Failed, Exit: restart.Exit{Code: 1}}, 0)
		_, h := restart.Decide(p, high, restart.End{Class: restart.Failed, Exit: restart.Exit{Code: 1}}, 1)
		var mid restart.Next
		b, mid = restart.Decide(p, b, restart.End{Class: restart.Failed, Exit: restart.Exit{Code: 1}}, 0.5)
		if mid.After != want || l.After != want*8/10 || h.After != want*12/10 {
			t.Fatalf("waits %v %v %v, want %v and a fifth around it", l.After, mid.After, h.After, want)
		}
		want = min(2*want, p.Longest)
	}
	b = b.Progress(10, 10)
	if _, n := restart.Decide(p, b, restart.End{Class: restart.Failed, Exit: restart.Exit{Code: 1}}, 0.5); n.After != p.First {
		t.Errorf("after progress it waits %v, want %v", n.After, p.First)
	}
	b, n := restart.Decide(p, b, restart.End{Class: restart.Saved, Saved: true}, 0.5)
	if n.After != 0 || !strings.HasPrefix(n.Reason, "it saved itself") {
		t.Errorf("what saved itself waits %v: %s", n.After, n.Reason)
	}
	// One that is done would begin and end at once as long as maintenance is announced.
	for want := 2 * p.First; want < p.Longest; want *= 2 {
		if b, n = restart.Decide(p, b, restart.End{Class: restart.Saved}, 0.5); !n.Restart || n.After != want || strings.Contains(n.Reason, "saved itself") {
			t.Errorf("what saved nothing new waits %v, want %v", n.After, want)
		}
	}
	if _, n = restart.Decide(p, b.Progress(11, 11), restart.End{Class: restart.Saved, Saved: true}, 0.5); n.After != 0 {
		t.Errorf("what saved something new waits %v", n.After)
	}
}

func TestEveryFaultOfThePolicyInOneLine(t *testing.T) {
	p := restart.Policy{Restarts: -1, Tries: -2, First: time.Minute, Longest: time.Second, Jitter: 2}
	err := p.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"restarts -1", "job-tries -2", "backoff 1m0s", "jitter 2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if err := restart.Defaults().Validate(); err != nil {
		t.Error(err)
	}
}
