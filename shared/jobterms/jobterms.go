// Package jobterms describes an incident in the terms of Google's training service: the state of the job, its retries, and the
// error that ended it. It derives them from what is shown of the workload and does no I/O.
package jobterms

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// Of describes an incident of a workload. An open incident has the state of the training now, a closed one the state in which it
// left the training.
func Of(w view.Workload, in view.Incident) events.JobTerms {
	t := events.JobTerms{State: stateOf(w, in), Retries: retriesOf(in)}
	if t.State == events.JobFailed {
		t.Error = errorOf(w, in)
	}
	return t
}

// Now describes a workload as it stands: by its open incident, or by the last one where that was given up and nothing has trained since.
func Now(w view.Workload) events.JobTerms {
	kept := func(s view.Slice) bool { return !s.Released }
	c := w.Closed
	switch {
	case w.Incident != nil:
		return Of(w, *w.Incident)
	case w.Training.Finished:
		return events.JobTerms{State: events.JobSucceeded}
	case !slices.ContainsFunc(w.Slices, kept):
		return events.JobTerms{State: events.JobCancelled}
	case c != nil && (c.Outcome == view.Escalated || w.Training.HasGivenUp()) && isLast(w, *c) && !w.Training.StepAt.After(c.Closed):
		return Of(w, *c)
	}
	return events.JobTerms{State: stateNow(w, view.Incident{})}
}

func stateOf(w view.Workload, in view.Incident) events.JobState {
	if in.Outcome == "" {
		switch {
		case w.Training.Finished:
			return events.JobSucceeded
		case in.Down.IsZero():
			return events.JobRunning
		}
		return stateNow(w, in)
	}
	switch {
	case in.Code == reason.CodeFinished, finishedBy(w, in.Closed):
		return events.JobSucceeded
	case in.Code == reason.CodeOwner:
		return events.JobCancelled
	case in.Outcome == view.Resumed, in.Outcome == view.Withdrawn, in.ConfirmedBy != "", in.Down.IsZero():
		return events.JobRunning
	case in.Outcome == view.Escalated, w.Training.HasGivenUp() && isLast(w, in):
		return events.JobFailed
	case isLast(w, in):
		return stateNow(w, in)
	}
	return events.JobUnspecified
}

// finishedBy reports whether the training was finished by then.
func finishedBy(w view.Workload, at time.Time) bool {
	return w.Training.Finished && !w.Training.FinishedAt.After(at)
}

// isLast reports whether no later incident has changed what is known.
func isLast(w view.Workload, in view.Incident) bool {
	return w.Incident == nil && !w.Ended.After(in.Closed)
}

// stateNow is the state of a training that stopped, from what was last seen of its slices and its crew.
func stateNow(w view.Workload, in view.Incident) events.JobState {
	ready := true
	for _, s := range w.Slices {
		if s.Released {
			continue
		}
		switch s.Condition {
		case evidence.Lost, evidence.Gone, evidence.Deleting, evidence.Unread:
			return events.JobQueued
		case evidence.Creating:
			if s.State == "ACCEPTED" || s.State == "WAITING_FOR_RESOURCES" {
				return events.JobQueued // its queued resource has no capacity yet
			}
			ready = false
		case evidence.Unhealthy, evidence.Stopped, evidence.Unclear:
			ready = false
		case evidence.Done: // nothing of it runs, and nobody waits for it
		case evidence.Ready:
			ready = ready && !s.Awaits
		}
	}
	c := w.Training
	began := c.Attempt > max(c.Exited, c.GaveUp)
	if in.Cause != events.CauseHang { // a training that hangs still runs
		began = began && c.Attempt > in.Attempt
	}
	if ready && (began || c.Seen.IsZero()) {
		return events.JobRunning
	}
	return events.JobPreparing
}

func retriesOf(in view.Incident) events.JobRetries {
	r := in.Error.Exit.Retries // a copy
	for _, c := range in.Calls {
		if c.NotMade {
			continue
		}
		full := c.Code == reason.Code(reason.Stockout) || c.Code == reason.Code(reason.ReservationFull)
		accepted := c.Code == "" && !c.Answered.IsZero()
		n := 1 + c.Folded
		switch {
		case c.Action == events.ActionCreate && full:
			r.Stockout += n
		case c.Action == events.ActionCreate && accepted:
			r.Recreations += n
		case c.Action == events.ActionRestart && accepted:
			r.Requests += n
		}
	}
	return r
}

// errorOf is the error of a failed job: the exit of its training, a lack of capacity, or the reason why the incident ended.
func errorOf(w view.Workload, in view.Incident) events.JobError {
	switch e := in.Error.Exit; {
	case in.Code == reason.CodeGaveUp: // no_zone is none: every zone refused for good, and not for lack of capacity
		return events.JobError{Code: 8, Status: "RESOURCE_EXHAUSTED", Message: "Resources are insufficient in region: " + regions(w, in) + "."}
	case in.Error.Attempt > 0 && !e.Interrupted && causedByTraining(w, in):
		return events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: exitMessage(w, in)}
	case in.Cause.Infrastructure():
		return events.JobError{Code: 13, Status: "INTERNAL", Message: "Internal error occurred for the current attempt: " + reasonOf(in)}
	}
	return events.JobError{Code: 2, Status: "UNKNOWN", Message: reasonOf(in)}
}

// causedByTraining reports whether the training itself is why the incident was left to a person. After a loss of machines, some
// codes say so of an incident that met a crash later. Others are those of a replacement, too: then the crew has to have given up
// since, and no loss may have followed the crash.
func causedByTraining(w view.Workload, in view.Incident) bool {
	switch c := in.Code; {
	case in.Cause == events.CauseCrash, c == reason.CodeSameError, c == reason.CodeRestartsADay:
		return true
	case c == reason.CodeBudget, c == reason.CodePolicyNo, c == reason.CodeNoLease:
		return w.Training.GaveUp >= in.Error.Attempt && lastCause(in) == events.CauseCrash
	}
	return false
}

// lastCause is the cause of the last trouble that happened and was not only announced.
func lastCause(in view.Incident) events.Cause {
	var last view.Trouble
	for _, t := range in.Troubles {
		if !t.Announced && !t.At.Before(last.At) {
			last = t
		}
	}
	return last.Cause
}

// exitMessage is the service's message about the replica that exited first. An end by a signal has the signal's number and name.
func exitMessage(w view.Workload, in view.Incident) string {
	e := in.Error.Exit
	replica := fmt.Sprintf("worker %d", e.Worker)
	if len(w.Slices) > 1 {
		replica = e.Slice + " " + replica
	}
	status, why := fmt.Sprint(e.Code), "Error"
	if e.Signal != "" {
		status, why = e.Signal, e.Signal
		if n, ok := signalNumbers[e.Signal]; ok {
			status = fmt.Sprintf("%d(%s)", n, e.Signal)
		}
	}
	if e.OutOfMemory {
		return "The replica " + replica + " ran out of memory and exited with a non-zero status of " + status + ". Termination reason: OOMKilled."
	}
	return "The replica " + replica + " exited with a non-zero status of " + status + ". Termination reason: " + why + "."
}

// signalNumbers are the signals that end a process by default, on Linux.
var signalNumbers = map[string]int{
	"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9, "SIGUSR1": 10,
	"SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15, "SIGXCPU": 24, "SIGXFSZ": 25, "SIGSYS": 31,
}

// regions are those without capacity for a slice. A queued resource that waits is not refused: then they are those of the slices.
func regions(w view.Workload, in view.Incident) string {
	var all []string
	for _, z := range in.Zones {
		if !z.Never {
			all = append(all, topology.Region(z.Zone))
		}
	}
	if len(all) == 0 {
		for _, s := range w.Slices {
			all = append(all, topology.Region(s.Zone))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// reasonOf is why the incident ended; without a reason it is the cause.
func reasonOf(in view.Incident) string {
	if in.Reason == "" {
		return string(in.Cause)
	}
	return in.Reason
}

// Describe puts the terms into one line.
func Describe(t events.JobTerms) string {
	text := string(t.State)
	if e := t.Error; e.Code != 0 {
		text += fmt.Sprintf(", %s (%d): %s", e.Status, e.Code, e.Message)
	}
	if used := RetriesText(t.Retries); used != "" {
		text += " · retries: " + used
	}
	return text
}

// RetriesText names each kind of retry that was used, with its count.
func RetriesText(r events.JobRetries) string {
	var parts []string
	for _, k := range []struct {
		n    int
		name string
	}{
		{r.Worker, "of a worker"},
		{r.Job, "of the whole job"},
		{r.Memory, "after a lack of memory"},
		{r.Interruption, "after an interruption"},
		{r.Internal, "after an internal error"},
		{r.Stockout, "after a stockout"},
		{r.Recreations, "by creating a slice again"},
		{r.Requests, "requested by Pitstop"},
	} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.name))
		}
	}
	return strings.Join(parts, ", ")
}
