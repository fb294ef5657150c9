package jobterms_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/jobterms"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

var noon = time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC)

// crashed is a workload of one slice whose training failed in attempt 1, with its open incident.
func crashed(changes ...func(*view.Workload, *view.Incident)) (view.Workload, view.Incident) {
	w := view.Workload{
		ID: "demo/llama-8b", Training: view.Training{Seen: noon.Add(-time.Hour), Attempt: 1, Exited: 1},
		Slices: []view.Slice{{Name: "llama-8b", Zone: "us-west4-a", Condition: evidence.Ready, Admitted: true}},
	}
	in := view.Incident{ID: "llama-8b-1", Cause: events.CauseCrash, Opened: noon, Down: noon, Attempt: 1, Phase: view.Resuming}
	for _, c := range changes {
		c(&w, &in)
	}
	if in.Outcome == "" {
		w.Incident = &in
	}
	return w, in
}

type change = func(*view.Workload, *view.Incident)

func condition(c evidence.Condition, state string) change {
	return func(w *view.Workload, _ *view.Incident) { w.Slices[0].Condition, w.Slices[0].State = c, state }
}

func nextRuns(w *view.Workload, _ *view.Incident) { w.Training.Attempt = 2 }

func cause(c events.Cause) change {
	return func(_ *view.Workload, in *view.Incident) { in.Cause = c }
}

func ends(o view.Outcome, c reason.Code) change {
	return func(w *view.Workload, in *view.Incident) {
		in.Outcome, in.Code, in.Phase, in.Closed = o, c, view.Closed, noon.Add(time.Hour)
		w.Ended = in.Closed
	}
}

func confirmed(by view.Confirmation) change {
	return func(_ *view.Workload, in *view.Incident) { in.ConfirmedBy = by }
}

func finished(at time.Time) change {
	return func(w *view.Workload, _ *view.Incident) { w.Training.Finished, w.Training.FinishedAt = true, at }
}

func stillRuns(_ *view.Workload, in *view.Incident) { in.Down = time.Time{} }

func later(w *view.Workload, in *view.Incident) { w.Ended = in.Closed.Add(time.Hour) }

func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		changes []change
		want    events.JobState
	}{
		"a failed attempt, the next has not begun":        {nil, events.JobPreparing},
		"the next attempt runs":                           {[]change{nextRuns}, events.JobRunning},
		"it runs, but one slice is not admitted":          {[]change{nextRuns, func(w *view.Workload, _ *view.Incident) { w.Slices[0].Admitted, w.Slices[0].Awaits = false, true }}, events.JobPreparing},
		"it runs, but one slice is still created":         {[]change{nextRuns, condition(evidence.Creating, "CREATING")}, events.JobPreparing},
		"the slice is lost":                               {[]change{cause(events.CausePreemption), condition(evidence.Lost, "PREEMPTED")}, events.JobQueued},
		"the slice is gone":                               {[]change{cause(events.CausePreemption), condition(evidence.Gone, "")}, events.JobQueued},
		"its queued resource waits":                       {[]change{cause(events.CausePreemption), condition(evidence.Creating, "WAITING_FOR_RESOURCES")}, events.JobQueued},
		"its queued resource is provisioned":              {[]change{cause(events.CausePreemption), condition(evidence.Creating, "PROVISIONING")}, events.JobPreparing},
		"Google repairs it":                               {[]change{cause(events.CauseHostError), condition(evidence.Unhealthy, "REPAIRING")}, events.JobPreparing},
		"it is created again; the crew has not begun":     {[]change{cause(events.CausePreemption), func(w *view.Workload, _ *view.Incident) { w.Training.Exited = 0 }}, events.JobPreparing},
		"without a crew, ready slices run":                {[]change{cause(events.CausePreemption), func(w *view.Workload, _ *view.Incident) { w.Training = view.Training{} }}, events.JobRunning},
		"a hang still runs":                               {[]change{cause(events.CauseHang), func(w *view.Workload, _ *view.Incident) { w.Training.Exited = 0 }}, events.JobRunning},
		"maintenance is announced":                        {[]change{cause(events.CauseMaintenance), stillRuns}, events.JobRunning},
		"the owner has released the lost slice":           {[]change{nextRuns, condition(evidence.Gone, ""), func(w *view.Workload, _ *view.Incident) { w.Slices[0].Released = true }}, events.JobRunning},
		"the crew's verdict says finished":                {[]change{finished(noon)}, events.JobSucceeded},
		"resumed":                                         {[]change{ends(view.Resumed, "")}, events.JobRunning},
		"resumed, finished later":                         {[]change{ends(view.Resumed, ""), finished(noon.Add(2 * time.Hour))}, events.JobRunning},
		"resumed by the end of the training":              {[]change{ends(view.Resumed, ""), finished(noon.Add(time.Minute))}, events.JobSucceeded},
		"withdrawn":                                       {[]change{ends(view.Withdrawn, reason.CodeWithdrawn), stillRuns}, events.JobRunning},
		"escalated":                                       {[]change{ends(view.Escalated, reason.CodeSameError)}, events.JobFailed},
		"escalated while it runs":                         {[]change{ends(view.Escalated, reason.CodeUnverified), stillRuns}, events.JobRunning},
		"escalated, though the training goes on":          {[]change{ends(view.Escalated, reason.CodeUnanswered), confirmed(view.ByStep)}, events.JobRunning},
		"released by its owner":                           {[]change{ends(view.Released, reason.CodeOwner)}, events.JobCancelled},
		"released, because it was finished":               {[]change{ends(view.Released, reason.CodeFinished)}, events.JobSucceeded},
		"taken over, and it runs":                         {[]change{ends(view.Released, reason.CodeTakenOver), nextRuns}, events.JobRunning},
		"taken over; nobody knows, a later one has ended": {[]change{ends(view.Released, reason.CodeTakenOver), later}, events.JobUnspecified},
		"observed, confirmed":                             {[]change{ends(view.Observed, reason.CodeWatchOnly), confirmed(view.ByHealth)}, events.JobRunning},
		"observed, and the crew gave up":                  {[]change{ends(view.Observed, reason.CodeWatchOnly), func(w *view.Workload, _ *view.Incident) { w.Training.GaveUp = 1 }}, events.JobFailed},
		"observed, and the slice is gone":                 {[]change{ends(view.Observed, reason.CodeWatchOnly), condition(evidence.Gone, "")}, events.JobQueued},
	} {
		if got := jobterms.Of(crashed(c.changes...)); got.State != c.want {
			t.Errorf("%s: %s, want %s", name, got.State, c.want)
		}
	}
}

func exit(e events.Exit) change {
	return func(_ *view.Workload, in *view.Incident) { in.Error = view.Exit{Attempt: 1, Exit: e} }
}

func because(reason string) change {
	return func(_ *view.Workload, in *view.Incident) { in.Reason = reason }
}

func refused(zones ...string) change {
	return func(_ *view.Workload, in *view.Incident) {
		for _, z := range zones {
			in.Zones = append(in.Zones, view.Refusal{Place: view.Place{Zone: z}})
		}
	}
}

// never adds a zone that refused the slice for good.
func never(zone string) change {
	return func(_ *view.Workload, in *view.Incident) {
		in.Zones = append(in.Zones, view.Refusal{Place: view.Place{Zone: zone}, Never: true})
	}
}

// met adds troubles that happened one after another.
func met(causes ...events.Cause) change {
	return func(_ *view.Workload, in *view.Incident) {
		for i, c := range causes {
			in.Troubles = append(in.Troubles, view.Trouble{Cause: c, At: noon.Add(time.Duration(i) * time.Minute)})
		}
	}
}

func announced(_ *view.Workload, in *view.Incident) {
	in.Troubles = append(in.Troubles, view.Trouble{Cause: events.CauseMaintenance, At: noon.Add(time.Hour), Announced: true})
}

func gaveUp(attempt int) change {
	return func(w *view.Workload, _ *view.Incident) { w.Training.GaveUp = attempt }
}

func multislice(w *view.Workload, _ *view.Incident) {
	w.Slices = append(w.Slices, view.Slice{Name: "llama-8b-1"})
}

func TestErrors(t *testing.T) {
	failed := ends(view.Escalated, reason.CodeSameError)
	lost := cause(events.CausePreemption)
	lostThenCrashed, crashedThenLost := met(events.CausePreemption, events.CauseCrash), met(events.CausePreemption, events.CauseCrash, events.CausePreemption)
	exited := events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica worker 0 exited with a non-zero status of 1. Termination reason: Error."}
	internal := events.JobError{Code: 13, Status: "INTERNAL", Message: "Internal error occurred for the current attempt: why"}
	for name, c := range map[string]struct {
		changes []change
		want    events.JobError
		// reads is how Pitstop reads the message in a log of the training service.
		reads events.JobEvent
	}{
		"an exit code": {
			[]change{failed, exit(events.Exit{Code: 137})},
			events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica worker 0 exited with a non-zero status of 137. Termination reason: Error."},
			events.JobExited,
		},
		"a signal on another worker": {
			[]change{failed, exit(events.Exit{Worker: 3, Signal: "SIGSEGV"})},
			events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica worker 3 exited with a non-zero status of 11(SIGSEGV). Termination reason: SIGSEGV."},
			events.JobExited,
		},
		"a lack of memory": {
			[]change{failed, exit(events.Exit{Signal: "SIGKILL", OutOfMemory: true})},
			events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica worker 0 ran out of memory and exited with a non-zero status of 9(SIGKILL). Termination reason: OOMKilled."},
			events.JobOutOfMemory,
		},
		"a worker of a Multislice": {
			[]change{failed, multislice, exit(events.Exit{Slice: "llama-8b-1", Worker: 2, Code: 1})},
			events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica llama-8b-1 worker 2 exited with a non-zero status of 1. Termination reason: Error."},
			events.JobExited,
		},
		"no capacity": {
			[]change{lost, ends(view.Escalated, reason.CodeGaveUp), refused("us-west4-b", "us-east5-a", "us-west4-a")},
			events.JobError{Code: 8, Status: "RESOURCE_EXHAUSTED", Message: "Resources are insufficient in region: us-east5, us-west4."},
			events.JobNoResources,
		},
		"a queued resource that waits": {
			[]change{lost, ends(view.Escalated, reason.CodeGaveUp)},
			events.JobError{Code: 8, Status: "RESOURCE_EXHAUSTED", Message: "Resources are insufficient in region: us-west4."},
			events.JobNoResources,
		},
		"no capacity in one region, another does not offer it": {
			[]change{lost, ends(view.Escalated, reason.CodeGaveUp), refused("us-west4-a"), never("us-east5-a")},
			events.JobError{Code: 8, Status: "RESOURCE_EXHAUSTED", Message: "Resources are insufficient in region: us-west4."},
			events.JobNoResources,
		},
		"a type that no zone offers": {
			[]change{lost, ends(view.Escalated, reason.CodeNoZone), because("no zone can give llama-8b: accelerator type v9 was not found"), never("us-west4-a")},
			events.JobError{Code: 13, Status: "INTERNAL", Message: "Internal error occurred for the current attempt: no zone can give llama-8b: accelerator type v9 was not found"},
			events.JobInternal,
		},
		"a loss, then crashes until the restarts are spent": {
			[]change{lost, ends(view.Escalated, reason.CodeBudget), lostThenCrashed, gaveUp(1), exit(events.Exit{Code: 1})}, exited, events.JobExited,
		},
		"a loss, then a crash, and the policy allows no restart": {
			[]change{lost, ends(view.Escalated, reason.CodePolicyNo), lostThenCrashed, gaveUp(1), exit(events.Exit{Code: 1})}, exited, events.JobExited,
		},
		"a loss, then a crash without a lease": {
			[]change{lost, ends(view.Escalated, reason.CodeNoLease), lostThenCrashed, gaveUp(2), exit(events.Exit{Code: 1})}, exited, events.JobExited,
		},
		"the replacements are spent": {
			[]change{lost, ends(view.Escalated, reason.CodeBudget), because("why"), crashedThenLost, gaveUp(1), exit(events.Exit{Code: 1})}, internal, events.JobInternal,
		},
		"the replacements are spent, and a crash was their consequence": {
			[]change{lost, ends(view.Escalated, reason.CodeBudget), because("why"), lostThenCrashed, exit(events.Exit{Code: 1})}, internal, events.JobInternal,
		},
		"a maintenance that is only announced follows the crash": {
			[]change{lost, ends(view.Escalated, reason.CodeBudget), lostThenCrashed, gaveUp(1), exit(events.Exit{Code: 1}), announced}, exited, events.JobExited,
		},
		"the machines": {
			[]change{lost, ends(view.Escalated, reason.CodeNoSpec), because("no specification is stored")},
			events.JobError{Code: 13, Status: "INTERNAL", Message: "Internal error occurred for the current attempt: no specification is stored"},
			events.JobInternal,
		},
		"the machines, and exits that they caused": {
			[]change{lost, ends(view.Escalated, reason.CodeNoSpec), because("no specification is stored"), exit(events.Exit{Code: 1})},
			events.JobError{Code: 13, Status: "INTERNAL", Message: "Internal error occurred for the current attempt: no specification is stored"},
			events.JobInternal,
		},
		"a crash after a loss": {
			[]change{lost, failed, exit(events.Exit{Code: 1})},
			events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica worker 0 exited with a non-zero status of 1. Termination reason: Error."},
			events.JobExited,
		},
		"somebody killed it": {
			[]change{failed, exit(events.Exit{Signal: "SIGKILL", Interrupted: true}), because("the crew gave up")},
			events.JobError{Code: 2, Status: "UNKNOWN", Message: "the crew gave up"},
			events.JobTold,
		},
		"a hang": {
			[]change{cause(events.CauseHang), ends(view.Escalated, reason.CodeHangReport), because("no step for 30 m 0 s")},
			events.JobError{Code: 2, Status: "UNKNOWN", Message: "no step for 30 m 0 s"},
			events.JobTold,
		},
		"none while it runs":    {[]change{ends(view.Resumed, ""), exit(events.Exit{Code: 1})}, events.JobError{}, ""},
		"none while it retries": {[]change{exit(events.Exit{Code: 1})}, events.JobError{}, ""},
	} {
		got := jobterms.Of(crashed(c.changes...)).Error
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if c.reads != "" {
			if j := read(t, got.Message); j == nil || j.Event != c.reads {
				t.Errorf("%s: in a log of the training service %q reads as %+v, want %s", name, got.Message, j, c.reads)
			}
		}
	}
}

// read reads a message as the training service would have logged it.
func read(t *testing.T, message string) *events.Job {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.Read([]byte(`{"insertId":"1","timestamp":"2026-11-12T12:00:00Z","logName":"projects/demo/logs/ml.googleapis.com%2Fjob",` +
		`"resource":{"type":"ml_job","labels":{"project_id":"demo","job_id":"job","task_name":"service"}},"jsonPayload":{"message":` + string(text) + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return e.Job
}

func TestRetries(t *testing.T) {
	call := func(c view.Call) change {
		return func(_ *view.Workload, in *view.Incident) { in.Calls = append(in.Calls, c) }
	}
	create := view.Call{Action: events.ActionCreate, Answered: noon}
	stockout, notMade, unanswered, deletion, folded, restart := create, create, create, create, create, create
	stockout.Code, stockout.Folded = reason.Code(reason.Stockout), 2
	notMade.NotMade, unanswered.Answered, deletion.Action = true, time.Time{}, events.ActionDelete
	folded.Folded, restart.Action = 3, events.ActionRestart
	refusedRestart, unansweredRestart, foldedRestart := restart, restart, restart
	refusedRestart.Code, unansweredRestart.Answered, foldedRestart.Folded = reason.Code(reason.Stockout), time.Time{}, 1
	got := jobterms.Of(crashed(
		call(stockout), call(notMade), call(unanswered), call(deletion), call(create), call(folded),
		call(restart), call(refusedRestart), call(unansweredRestart), call(foldedRestart),
		exit(events.Exit{Retries: events.JobRetries{Worker: 5, Job: 3, Memory: 1, Interruption: 2, Internal: 1}}),
		func(_ *view.Workload, in *view.Incident) { in.Cost.Restarts = 0 }, // the machines were to blame: the charge is refunded
	))
	want := events.JobRetries{Worker: 5, Job: 3, Memory: 1, Interruption: 2, Internal: 1, Stockout: 3, Recreations: 5, Requests: 3}
	if d := cmp.Diff(want, got.Retries); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff("PREPARING · retries: 5 of a worker, 3 of the whole job, 1 after a lack of memory, 2 after an interruption, 1 after an internal error, "+
		"3 after a stockout, 5 by creating a slice again, 3 requested by Pitstop", jobterms.Describe(got)); d != "" {
		t.Errorf("in words (-want +got):\n%s", d)
	}
	if got := jobterms.Describe(jobterms.Of(crashed(ends(view.Resumed, "")))); got != "RUNNING" {
		t.Errorf("without retries: %q", got)
	}
}

// TestAWorkloadHasAStateWithoutAnIncident, and keeps that of one that was given up until something trains again.
func TestAWorkloadHasAStateWithoutAnIncident(t *testing.T) {
	closed := func(changes ...change) change {
		return func(w *view.Workload, in *view.Incident) {
			for _, c := range append(changes, ends(view.Escalated, reason.CodeSameError)) {
				c(w, in)
			}
			w.Closed = in
		}
	}
	trainsOn := func(w *view.Workload, _ *view.Incident) { w.Training.StepAt = noon.Add(2 * time.Hour) }
	begun := func(w *view.Workload, _ *view.Incident) { w.Training.Attempt, w.Training.Exited = 2, 1 }
	for name, c := range map[string]struct {
		changes []change
		want    events.JobState
	}{
		"an open incident":                      {[]change{condition(evidence.Lost, "PREEMPTED")}, events.JobQueued},
		"one that was given up":                 {[]change{closed()}, events.JobFailed},
		"given up, and brought back by hand":    {[]change{closed(nextRuns, trainsOn)}, events.JobRunning},
		"nothing has happened":                  {[]change{begun}, events.JobRunning},
		"it waits for its machines":             {[]change{begun, condition(evidence.Creating, "WAITING_FOR_RESOURCES")}, events.JobQueued},
		"its owner has deleted it":              {[]change{begun, func(w *view.Workload, _ *view.Incident) { w.Slices[0].Released = true }}, events.JobCancelled},
		"the crew has not begun":                {[]change{func(w *view.Workload, _ *view.Incident) { w.Training.Attempt = 1 }}, events.JobPreparing},
		"finished, after one that was given up": {[]change{closed(finished(noon.Add(2 * time.Hour)))}, events.JobSucceeded},
	} {
		w, _ := crashed(c.changes...)
		if name != "an open incident" {
			w.Incident = nil
		}
		if got := jobterms.Now(w).State; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
