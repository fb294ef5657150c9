package restart_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/restart"
)

// TestTheRulesOfTheTrainingService has each ending that Google's guide names, again and again.
func TestTheRulesOfTheTrainingService(t *testing.T) {
	for _, c := range []struct {
		name   string
		exit   restart.Exit
		when   restart.Circumstances
		starts int
		reason string
	}{
		{name: "an exception of the training's own", exit: restart.Exit{Code: 1}, starts: 1, reason: "exit code 1, which is permanent by --service-rules"},
		{name: "another exit code", exit: restart.Exit{Code: 2}, starts: 1, reason: "permanent"},
		{name: "SIGABRT", exit: restart.Exit{Signal: "SIGABRT"}, starts: 4, reason: "all 3 restarts of the whole job are spent"},
		{name: "134", exit: restart.Exit{Code: 134}, starts: 4, reason: "of the whole job"},
		{name: "6", exit: restart.Exit{Code: 6}, starts: 4, reason: "of the whole job"},
		{name: "SIGSEGV", exit: restart.Exit{Signal: "SIGSEGV"}, starts: 4, reason: "of the whole job"},
		{name: "139", exit: restart.Exit{Code: 139}, starts: 4, reason: "of the whole job"},
		{name: "11", exit: restart.Exit{Code: 11}, starts: 4, reason: "of the whole job"},
		{name: "out of memory", exit: restart.Exit{Signal: "SIGKILL", OOMKilled: true}, starts: 1, reason: "out of memory, which is permanent"},
		{name: "137 without the kernel's word", exit: restart.Exit{Code: 137}, starts: 1, reason: "exit code 137, which is permanent"},
		{name: "killed by somebody", exit: restart.Exit{Signal: "SIGKILL"}, starts: 24, reason: "of the whole job"},
		{name: "a worker was lost", exit: restart.Exit{Unknown: true}, when: restart.Circumstances{Lost: true}, starts: 24, reason: "of the whole job"},
		{name: "maintenance", exit: restart.Exit{Code: 1}, when: restart.Circumstances{Maintenance: true}, starts: 24, reason: "of the whole job"},
		{name: "nobody saw it", exit: restart.Exit{Unknown: true}, starts: 3, reason: "2 restarts after internal errors are spent"},
		{name: "pitcrew could not begin it", exit: restart.Exit{Code: 125}, starts: 3, reason: "internal errors"},
		{name: "no such command", exit: restart.Exit{Code: 127}, when: restart.Circumstances{First: true}, starts: 1, reason: "cannot be run"},
		{name: "a save", when: restart.Circumstances{Maintenance: true}, starts: 1000, reason: "exit code 0 without a new checkpoint"},
		{name: "our own stop", exit: restart.Exit{Code: 1}, when: restart.Circumstances{Stopped: true}, starts: 1000, reason: "the crew had stopped it"},
		{name: "success", starts: 1, reason: "exit code 0"},
	} {
		p, b := restart.ServiceRules(), restart.NewBudget()
		starts, next := 0, restart.Next{Restart: true}
		for next.Restart && starts < 1000 {
			starts++
			b = b.Progress(int64(starts), int64(starts)) // it refills nothing
			b, next = restart.Decide(p, b, restart.End{Class: restart.Classify(c.exit, c.when), Exit: c.exit, Worker: "0/1", Lost: c.when.Lost}, 0.5)
			if next.After != 0 && !strings.HasPrefix(next.Reason, "exit code 0 without a new checkpoint") {
				t.Errorf("%s: it waits %v", c.name, next.After)
			}
		}
		if starts != c.starts || !strings.Contains(next.Reason, c.reason) {
			t.Errorf("%s: %d starts, %q; want %d, %q", c.name, starts, next.Reason, c.starts, c.reason)
		}
	}
}

// TestEachWorkerHasItsRestarts: five, and all of them anew with each try of the job. A budget that was handed out does not change.
func TestEachWorkerHasItsRestarts(t *testing.T) {
	p, b := restart.ServiceRules(), restart.NewBudget()
	killed := restart.Exit{Signal: "SIGKILL"}
	fails := func(worker string) restart.Next {
		before := b
		left := before.Left(p)
		var next restart.Next
		b, next = restart.Decide(p, b, restart.End{Class: restart.Interrupted, Exit: killed, Worker: worker}, 0.5)
		if before.Left(p) != left || before == b && next.Restart {
			t.Error("the budget before has changed, or the one after has not")
		}
		return next
	}
	for round := range 4 {
		if left := b.Left(p); left != 3-round {
			t.Errorf("%d tries left in round %d", left, round)
		}
		for _, worker := range []string{"0/0", "0/3", "1/0"} {
			for n := range 5 {
				if next := fails(worker); !next.Restart || !strings.Contains(next.Reason, "of 5 of this worker") {
					t.Fatalf("round %d, worker %s, restart %d: %+v", round, worker, n, next)
				}
			}
		}
		if next := fails("0/3"); next.Restart != (round < 3) || next.Restart && !strings.Contains(next.Reason, "of 4 of the whole job") {
			t.Fatalf("round %d: %+v", round, next)
		}
	}
	if b = b.Refill(); b.Left(p) != 3 || !fails("0/3").Restart {
		t.Error("a new attempt that somebody asked for has no budget of its own")
	}
}

// TestASaveWithoutNewStepsWaitsUnderTheServiceRules: no budget counts it, so nothing else would slow it down.
func TestASaveWithoutNewStepsWaitsUnderTheServiceRules(t *testing.T) {
	p, b := restart.ServiceRules(), restart.NewBudget().Progress(7, 7)
	last := time.Duration(-1)
	for n := range 5 {
		var next restart.Next
		b, next = restart.Decide(p, b, restart.End{Class: restart.Saved}, 0.5)
		if !next.Restart || next.After <= last || n > 0 && next.After == 0 {
			t.Errorf("end %d: %+v, after a wait of %v", n, next, last)
		}
		last = next.After
		b = b.Progress(7, 7)
	}
	if _, next := restart.Decide(p, b.Progress(8, 8), restart.End{Class: restart.Saved}, 0.5); next.After != 0 {
		t.Errorf("a save of new steps waits %v", next.After)
	}
}

func TestTheServiceRulesAreValid(t *testing.T) {
	if err := restart.ServiceRules().Validate(); err != nil {
		t.Error(err)
	}
}

// TestTheRetriesAreToldByKind, under the service's rules and by default.
func TestTheRetriesAreToldByKind(t *testing.T) {
	fails := func(p restart.Policy, ends ...restart.End) events.JobRetries {
		b := restart.NewBudget()
		for _, e := range ends {
			b, _ = restart.Decide(p, b, e, 0.5)
		}
		return b.Retries(p)
	}
	killed := func(worker string) restart.End {
		return restart.End{Class: restart.Interrupted, Exit: restart.Exit{Signal: "SIGKILL"}, Worker: worker}
	}
	aborted := restart.End{Class: restart.Crashed, Exit: restart.Exit{Signal: "SIGABRT"}}
	failed := restart.End{Class: restart.Failed, Exit: restart.Exit{Code: 1}}
	unseen := restart.End{Class: restart.Interrupted, Exit: restart.Exit{Unknown: true}}
	forMemory := restart.Defaults()
	forMemory.Memory = 2
	for name, c := range map[string]struct{ got, want events.JobRetries }{
		"nothing": {fails(restart.ServiceRules()), events.JobRetries{}},
		"the worker with the most restarts": {
			fails(restart.ServiceRules(), killed("0"), killed("1"), killed("1"), unseen), events.JobRetries{Worker: 2, Internal: 1},
		},
		"the whole job":     {fails(restart.ServiceRules(), killed("0"), aborted, killed("1")), events.JobRetries{Worker: 1, Job: 1}},
		"a permanent error": {fails(restart.ServiceRules(), failed), events.JobRetries{}},
		"by default": {
			fails(forMemory, failed, failed, killed("0"), restart.End{Class: restart.OutOfMemory}), events.JobRetries{Worker: 2, Interruption: 1, Memory: 1},
		},
		"the whole job, by default": {fails(restart.Defaults(), aborted), events.JobRetries{Job: 1}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
}
