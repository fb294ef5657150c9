package incident_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// TestNothingIsKeptFromTheFuture: a machine's clock may be fast. What it writes counts as of now, and what happens after it is newer.
func TestNothingIsKeptFromTheFuture(t *testing.T) {
	t.Parallel()
	const fast = 3 * time.Hour
	for name, give := range map[string]func(n *story){
		"a line": func(n *story) {
			n.wrote(n.now.Add(fast), "llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 48300})
		},
		"a reading": func(n *story) {
			n.play("read unhealthy")
			n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) { e.Time = n.now.Add(fast) })
		},
		"a record": func(n *story) {
			s := n.w.Slices[0]
			n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now.Add(fast), Runs: true, Attempt: 1, Step: 48300, StepAt: n.now.Add(fast)})
		},
	} {
		n := newStory(t, true, "llama-8b")
		give(n)
		for _, at := range []time.Time{n.w.Training.StepAt, n.w.Training.Stepped, n.w.Training.ProvenAt, n.w.Slices[0].Since, n.w.Slices[0].Heard.Seen} {
			if at.After(n.now) {
				t.Errorf("%s is kept from %v in the future", name, at.Sub(n.now))
			}
		}
		if n.goes("5m, preempted, read lost"); n.stands(n.sent) != "deleting: delete llama-8b" {
			t.Errorf("%s: lost five minutes later, it stands at %s:\n%s", name, n.stands(n.sent), n.tale())
		}
	}
	n := newStory(t, true, "llama-8b")
	v := n.verdict(1, true)
	v.Ended = n.now.Add(fast)
	if n.beats(v, 0); !n.finished() {
		t.Error("the verdict does not count")
	}
	if n.goes("2m, stopped for"); n.finished() {
		t.Error("its host was stopped at about the time of its exit, and it counts as finished")
	}
}

// TestAnExitZeroInAnnouncedMaintenanceIsASave where a reading showed the notice. A message, and one that was taken back, prove nothing.
func TestAnExitZeroInAnnouncedMaintenanceIsASave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begins time.Duration
		inAPI  bool
		then   string
		save   bool
	}{
		"its window has begun":                          {0, true, "10m", true},
		"its window has begun long ago":                 {-time.Hour, true, "10m", false},
		"only a message says that its window has begun": {0, false, "10m", false},
		"it was taken back":                             {0, true, "shows withdrawn, 10m", false},
		"it is announced for later":                     {time.Hour, true, "10m", false},
	} {
		n := newStory(t, true, "llama-8b").under("watch").notes(c.inAPI, window(events.NoticePending, false, c.begins)).goes(c.then)
		if n.beats(n.verdict(1, true), 0); n.finished() == c.save {
			t.Errorf("%s: ten minutes later the crew calls the training finished, and that counts: %v", name, n.finished())
		}
	}
}

// TestTheEndOfAnEarlierAttemptIsNotTheEnd: the lease names a later one, or its exit 0 was a save.
func TestTheEndOfAnEarlierAttemptIsNotTheEnd(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]bool{2: false, 3: true, 4: true} {
		n := newStory(t, true, "llama-8b").with(led) // by a lease of attempt 3
		if n.beats(n.verdict(attempt, true), 0); n.finished() != want {
			t.Errorf("the verdict of attempt %d ends the training: %v", attempt, n.finished())
		}
		n = newStory(t, true, "llama-8b").with(led).goes("stopped for")
		n.beats(n.verdict(3, true), 0) // a save
		n.goes("read ready, an hour")
		if n.beats(n.verdict(attempt, true), 0); n.finished() != (attempt == 4) {
			t.Errorf("attempt 3 ended by a save, and the verdict of attempt %d ends the training: %v", attempt, n.finished())
		}
	}
}

// TestALineOfUnknownWorkersChangesNothing: it is kept until somebody knows whose they are, and forgotten where nobody does.
func TestALineOfUnknownWorkersChangesNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []events.CrewReport{
		{Report: events.ReportStarted, Attempt: 2, Workers: 4, Step: 50_000},
		{Report: events.ReportProgress, Attempt: 2, Step: 50_000, CheckpointStep: 49_900},
		{Report: events.ReportExited, Attempt: 2, ExitCode: 139},
		{Report: events.ReportGaveUp, Attempt: 2, Reason: "five times"},
		{Report: events.ReportFinished, Attempt: 2, Step: 50_000},
		{Report: events.ReportNotice, Notice: &events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour)}},
		{Report: events.ReportNotice, Preempted: true},
	} {
		n := newStory(t, true, "llama-8b")
		before := n.w
		r.Hostname = "t1v-n-ffffffff-w-0"
		n.wrote(n.now, "llama-8b", r)
		if d := cmp.Diff(before, n.w, cmpopts.IgnoreFields(incident.Workload{}, "Unbound")); d != "" || len(n.sent) > 0 || len(n.w.Unbound) != 1 {
			t.Errorf("%s of unknown workers counts:\n%s", r.Report, d)
		}
		n.passes(bounds.Linger + time.Minute)
		r.Hostname = ""
		if n.wrote(n.now, "llama-8b", r); cmp.Diff(before, n.w) == "" {
			t.Errorf("%s of its own workers is not taken", r.Report)
		}
		if len(n.w.Unbound) > 0 {
			t.Errorf("%s of unknown workers is kept for ever", r.Report)
		}
	}
}

// TestProgressPassesTheLastCheckpointNobodyVerified: what the crew told of as saved had been reached before the trouble.
func TestProgressPassesTheLastCheckpointNobodyVerified(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"exit 139", "host error, read unhealthy, read ready"} {
		for step, resumed := range map[int64]bool{48_050: false, 48_150: false, 48_151: true} {
			n := at(t, "everything", false, path, func(w *incident.Workload) { w.Training.Reported.Step = 48_150 }) // and 48,000 was verified
			n.now = n.now.Add(10 * time.Minute)
			if n.steps(2, step); (n.w.Incident == nil) != resumed {
				t.Errorf("%s: step %d past checkpoint 48150 ends it: %v\n%s", path, step, !resumed, n.tale())
			}
		}
	}
}
