package events

// JobTerms describes a training in the terms of Google's training service, for people and programs that know those.
// https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
type JobTerms struct {
	State   JobState   `json:"state"`
	Retries JobRetries `json:"retries,omitzero"`
	// Error says why the job failed; it is absent in any other state.
	Error JobError `json:"error,omitzero"`
}

// JobState is the state of a job of the training service.
type JobState string

// The states of a job.
const (
	JobQueued      JobState = "QUEUED"      // it waits for machines
	JobPreparing   JobState = "PREPARING"   // machines are there or being made; the training does not run on all workers yet
	JobRunning     JobState = "RUNNING"     // the training runs on all workers
	JobSucceeded   JobState = "SUCCEEDED"   // the training is finished
	JobFailed      JobState = "FAILED"      // a person has to act before the training goes on
	JobCancelled   JobState = "CANCELLED"   // its owner deleted or stopped the machines
	JobUnspecified JobState = "UNSPECIFIED" // Pitstop left it to its owner, and does not know its state
)

// JobRetries counts restarts by kind. The crew counts the first five of them. New progress sets those to 0, except under
// --service-rules. Worker is also set to 0 by each restart of the whole job.
type JobRetries struct {
	// Worker counts restarts after one worker failed; under --service-rules it is the count of the worker with the most.
	Worker int `json:"worker,omitzero"`
	// Job counts restarts of the whole job.
	Job int `json:"job,omitzero"`
	// Memory and Interruption count restarts after a lack of memory and after an end that lies with the machines; Internal
	// those after an error of pitcrew itself.
	Memory       int `json:"memory,omitzero"`
	Interruption int `json:"interruption,omitzero"`
	Internal     int `json:"internal,omitzero"`
	// Stockout counts creations that were refused for lack of capacity, Recreations those that were accepted, and Requests the
	// attempts that Pitstop requested of the crew. Pitstop counts these three for one incident.
	Stockout    int `json:"stockout,omitzero"`
	Recreations int `json:"recreated,omitzero"`
	Requests    int `json:"requested,omitzero"`
}

// JobError is the error of a failed job.
type JobError struct {
	// Code and Status are a google.rpc.Code as a number and by name.
	Code    int    `json:"code"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Exit is how a training attempt ended on the worker that ended first.
type Exit struct {
	// Slice and Worker name that worker.
	Slice  string `json:"slice,omitzero"`
	Worker int    `json:"worker,omitzero"`
	// Code and Signal say how: one of the two.
	Code   int    `json:"code,omitzero"`
	Signal string `json:"signal,omitzero"`
	// OutOfMemory says that the kernel killed it for lack of memory. Interrupted says that the machines caused the end.
	OutOfMemory bool `json:"out_of_memory,omitzero"`
	Interrupted bool `json:"interrupted,omitzero"`
	// Retries are the crew's restarts used by then.
	Retries JobRetries `json:"retries,omitzero"`
}

// Exit is the end of the training that the report tells of.
func (r CrewReport) Exit() Exit {
	return Exit{
		Slice: r.Node, Worker: r.Worker, Code: r.ExitCode, Signal: r.Signal, OutOfMemory: r.OutOfMemory, Interrupted: r.Interrupted, Retries: r.Retries,
	}
}
