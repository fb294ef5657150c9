package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Job is what Google's training service (AI Platform, Vertex AI) says of one of its jobs. The service restarts what
// fails by itself, so this is noted and nothing is done: only a terminal state is the end of a job.
// https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
type Job struct {
	Event JobEvent
	// Class is what the service makes of a failure; empty where none is told.
	Class JobClass
	// Replica is which of the job's machines speaks or is spoken of.
	Replica string
	// ExitCode and Signal are how a replica ended.
	ExitCode int
	Signal   string
	// State is the terminal state of JobEnded, JOB_STATE_FAILED and the like.
	State string
}

// JobEvent is what happened to a job.
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

// JobClass is what the training service does about a failure.
type JobClass string

// The classes of a job's failures.
const (
	// JobPermanent ends the job.
	JobPermanent JobClass = "permanent"
	// JobPossiblyTransient is an exit by SIGABRT or SIGSEGV: the job is restarted, three times at the most.
	JobPossiblyTransient JobClass = "possibly_transient"
	// JobStockout has the job restarted, three times at the most.
	JobStockout JobClass = "stockout"
	// JobInternalError is Google's own: two restarts.
	JobInternalError JobClass = "internal"
)

// Describe says in a few words what the job tells.
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
		return "replica " + j.Replica + " was told to end"
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

// trainingService reports whether an entry is the training service's, by its resource or by its log.
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
	// A replica's output may speak of states as it likes: the service alone tells how its job ended.
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

// readJob reads a message of the training service in every wording that it is known to use, and what it adds for people.
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

// readExit reads "The replica R exited with a non-zero status of N", with or without "ran out of memory and", a signal's
// name behind the number, a reason or a traceback.
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
		case 6, -6, 134, 11, -11, 139: // SIGABRT and SIGSEGV, as a process, Python and a container tell them
			j.Class = JobPossiblyTransient
		}
	}
	if _, reason, ok := strings.Cut(digits, "Termination reason:"); ok {
		why = reason
		if i := strings.IndexByte(why, '\n'); i >= 0 {
			why = why[:i]
		}
		why, _, _ = strings.Cut(why, ". ") // what follows is where to read more
		return j, strings.TrimRight(short(why), " .")
	}
	// Python tells what went wrong on the last line.
	last := strings.TrimSpace(digits)
	return j, strings.Trim(short(last[strings.LastIndexByte(last, '\n')+1:]), " .")
}

// states are the terminal ones; olderStates as the older API names them, each in a field of its own.
var (
	states      = []string{"JOB_STATE_PARTIALLY_SUCCEEDED", "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"}
	olderStates = map[string]string{"SUCCEEDED": "JOB_STATE_SUCCEEDED", "FAILED": "JOB_STATE_FAILED", "CANCELLED": "JOB_STATE_CANCELLED"}
)

// terminal is the terminal state that a text names. One that names several states speaks of what may be.
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
