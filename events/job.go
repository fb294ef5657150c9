package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Job is an event of a job in Google's training service (AI Platform, Vertex AI). The service itself restarts failed jobs,
// so Pitstop notes the event and does not act: only a terminal state ends a job.
// https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
type Job struct {
	Event JobEvent
	// Class is the service's class of the failure; empty if it gives none.
	Class JobClass
	// Replica is the job's machine that wrote the line or that the line names.
	Replica string
	// ExitCode and Signal are how a replica ended.
	ExitCode int
	Signal   string
	// State is the terminal state of JobEnded, JOB_STATE_FAILED and the like.
	State string
}

// JobEvent is the kind of event of a job.
type JobEvent string

// The events of a job.
const (
	JobTold        JobEvent = "told"
	JobSignalled   JobEvent = "signalled"
	JobExited      JobEvent = "replica_exited"
	JobOutOfMemory JobEvent = "out_of_memory"
	JobNoResources JobEvent = "no_resources"
	JobInternal    JobEvent = "internal_error"
	JobEnded       JobEvent = "ended"
)

// JobClass is the training service's reaction to a failure.
type JobClass string

// The classes of a job's failures.
const (
	// JobPermanent ends the job.
	JobPermanent JobClass = "permanent"
	// JobPossiblyTransient is an exit by SIGABRT or SIGSEGV: the service restarts the job up to three times.
	JobPossiblyTransient JobClass = "possibly_transient"
	// JobStockout is a lack of capacity: the service restarts the job up to three times.
	JobStockout JobClass = "stockout"
	// JobInternalError is a fault of Google's: two restarts.
	JobInternalError JobClass = "internal"
)

// Describe sums up the job's event in a few words.
func (j Job) Describe() string {
	switch j.Event {
	case JobExited:
		return fmt.Sprintf("replica %s ended with %s, %s", j.Replica, j.exit(), strings.ReplaceAll(string(j.Class), "_", " "))
	case JobOutOfMemory:
		return "replica " + j.Replica + " ran out of memory, permanent"
	case JobNoResources:
		return "not enough resources, stockout"
	case JobInternal:
		return "an internal error of the training service"
	case JobEnded:
		return "ended as " + j.State
	case JobSignalled:
		return "replica " + j.Replica + " got a signal to end"
	case JobTold:
	}
	return "replica " + j.Replica + " says"
}

func (j Job) exit() string {
	s := "exit code " + strconv.Itoa(j.ExitCode)
	if j.Signal != "" {
		s += " (" + j.Signal + ")"
	}
	return s
}

// trainingService reports whether an entry comes from the training service, by its resource or its log.
func (l *logEntry) trainingService(log string) bool {
	switch t := l.Resource.Type; {
	case t == "ml_job", t == "cloudml_job", strings.HasPrefix(t, "aiplatform.googleapis.com/"):
		return true
	}
	return strings.HasPrefix(log, "ml.googleapis.com/")
}

func (l *logEntry) job(e *Entry, log string) {
	p := l.said()
	labels := &l.Resource.Labels
	e.Kind, e.Rank = KindJob, RankUser
	e.Subject = Subject{Project: l.project(), Zone: labels.Location, Job: labels.JobID}
	if e.Subject.Job == "" {
		e.Subject.Job = strings.TrimPrefix(log, "ml.googleapis.com/")
	}
	e.Job, e.Text = readJob(p.Message)
	task := labels.TaskName
	if task == "" && strings.HasPrefix(log, "workerpool") {
		task = log
	}
	// A replica's output may name any state: only the service's own lines tell how a job ended.
	if task == "service" || task == "" {
		state := cmp.Or(olderStates[p.JobState], terminal(p.JobState))
		if state == "" && e.Job.Event == JobTold {
			if state = terminal(p.Message); state != "" {
				e.Text = ""
			}
		}
		if state != "" {
			e.Job.Event, e.Job.Class, e.Job.State = JobEnded, "", state
		}
	}
	if e.Job.Replica == "" {
		e.Job.Replica = task
	}
	if e.Job.Event == JobEnded {
		e.Ignored = "only noted: Pitstop does not act on jobs of the training service"
		return
	}
	e.Ignored = "only noted: the training service restarts its jobs itself, and only a terminal state is an end"
}

// readJob reads a message of the training service in every known wording, and the text that it adds for people.
func readJob(message string) (*Job, string) {
	if j, why := readExit(message); j != nil {
		return j, why
	}
	switch {
	case strings.Contains(message, "Resources are insufficient in region"):
		return &Job{Event: JobNoResources, Class: JobStockout}, short(message)
	case strings.Contains(message, "Internal error occurred for the current attempt"):
		return &Job{Event: JobInternal, Class: JobInternalError}, ""
	case lineOf(message) != "":
		return &Job{Event: JobSignalled}, short(message)
	}
	return &Job{Event: JobTold}, short(message)
}

// readExit reads "The replica R exited with a non-zero status of N". The line may also have "ran out of memory and", a
// signal's name after the number, a reason or a traceback.
func readExit(message string) (j *Job, why string) {
	i := strings.Index(message, "eplica ")
	if i < 1 || message[i-1]|0x20 != 'r' {
		return nil, ""
	}
	rest := message[i+len("eplica "):]
	who, rest, exited := strings.Cut(rest, "exited with a non-zero status of ")
	j = &Job{Event: JobExited}
	for _, words := range []string{" ran out of memory", " ran out-of-memory"} {
		if before, _, found := strings.Cut(who, words); found {
			who, j.Event, j.Class = before, JobOutOfMemory, JobPermanent
		}
	}
	if !exited && j.Event != JobOutOfMemory {
		return nil, ""
	}
	j.Replica = short(who)
	digits := strings.TrimLeft(strings.TrimPrefix(rest, "-"), "0123456789")
	if n, err := strconv.ParseInt(rest[:len(rest)-len(digits)], 10, 32); err == nil {
		j.ExitCode = int(n)
	}
	if after, ok := strings.CutPrefix(strings.TrimLeft(digits, " "), "("); ok {
		j.Signal, digits, _ = strings.Cut(after, ")")
		j.Signal = short(j.Signal)
	}
	if j.Event == JobExited {
		j.Class = JobPermanent
		switch j.ExitCode {
		case 6, -6, 134, 11, -11, 139: // SIGABRT and SIGSEGV, as a process, Python and a container report them
			j.Class = JobPossiblyTransient
		}
	}
	if _, reason, ok := strings.Cut(digits, "Termination reason:"); ok {
		why = reason
		if i := strings.IndexByte(why, '\n'); i >= 0 {
			why = why[:i]
		}
		why, _, _ = strings.Cut(why, ". ") // the rest is a link to read more
		return j, strings.TrimRight(short(why), " .")
	}
	// Python names the error on the last line.
	last := strings.TrimSpace(digits)
	return j, strings.Trim(short(last[strings.LastIndexByte(last, '\n')+1:]), " .")
}

// states are the terminal states; olderStates are their names in the older API, each in its own field.
var (
	states      = []string{"JOB_STATE_PARTIALLY_SUCCEEDED", "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"}
	olderStates = map[string]string{"SUCCEEDED": "JOB_STATE_SUCCEEDED", "FAILED": "JOB_STATE_FAILED", "CANCELLED": "JOB_STATE_CANCELLED"}
)

// terminal is the terminal state that a text names. A text that names several states describes possibilities, not an end.
func terminal(text string) string {
	const prefix = "JOB_STATE_"
	switch strings.Count(text, prefix) {
	case 0:
		if strings.Contains(text, "Job completed successfully.") {
			return "JOB_STATE_SUCCEEDED"
		}
	case 1:
		for _, s := range states {
			if strings.Contains(text, s) {
				return s
			}
		}
	}
	return ""
}
