package events

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CrewLog is the log ID under which the crew of a slice reports through Cloud Logging.
const CrewLog = "pitstop-crew"

// Report is the kind of a crew's report.
type Report string

// The reports of a crew. Worker 0 speaks for its slice; the other workers report what their own metadata server announces.
const (
	ReportStarted  Report = "started"  // an attempt runs on all workers of the slice
	ReportProgress Report = "progress" // steps advance; every five minutes while they do
	ReportSaved    Report = "saved"    // a requested save is complete, as far as the crew can see
	ReportRefused  Report = "refused"  // a requested save is not possible, with the reason
	ReportExited   Report = "exited"   // the training ended by itself, with a code or a signal
	ReportGaveUp   Report = "gave_up"  // the crew's own restarts are spent
	ReportFinished Report = "finished" // the training is done: exit 0 on the primary
	ReportNotice   Report = "notice"   // the metadata server announced maintenance or preemption
)

// CrewReport is one line of a crew: the jsonPayload of an entry in CrewLog. It is written on machines that run the
// user's code, so it may start a look, a checkpoint or a budgeted restart, never a deletion.
type CrewReport struct {
	Schema int    `json:"schema"`
	Report Report `json:"report"`
	// Project, Zone and Node name the slice; Hostname is the worker's own. The project of a line that was read is that of
	// the log which it stands in.
	Project string `json:"project,omitzero"`
	Zone    string `json:"zone"`
	Node    string `json:"node"`
	// Life is the provider's ID of the slice's life, where the crew knows it: the UID of its Job in a Pod of GKE.
	Life     string `json:"life,omitzero"`
	Hostname string `json:"hostname,omitzero"`
	Worker   int    `json:"worker"`
	// Workers is how many of the slice's workers the report speaks for.
	Workers int `json:"workers,omitzero"`
	// Attempt is the training attempt that the lease named.
	Attempt int `json:"attempt,omitzero"`
	// ReadyAt is when the crew that tells of a start began to wait for it: for the lease, and for the other workers. Of its first attempt
	// that is when the crew was up. Of a later one it is when the back-off was over, or when it began to wait for the attempt that the
	// lease is to name.
	ReadyAt time.Time `json:"ready_at,omitzero"`
	// Step is the last finished step, and StepAt when that was seen; FirstStep is the first one that was seen of the attempt, at
	// FirstStepAt. CheckpointStep and CheckpointURI are the last complete checkpoint.
	Step           int64     `json:"step,omitzero"`
	StepAt         time.Time `json:"step_at,omitzero"`
	FirstStep      int64     `json:"first_step,omitzero"`
	FirstStepAt    time.Time `json:"first_step_at,omitzero"`
	CheckpointStep int64     `json:"checkpoint_step,omitzero"`
	CheckpointURI  string    `json:"checkpoint_uri,omitzero"`
	// StepsSeconds is the time inside steps from FirstStepAt to StepAt, and SavesSeconds the time in which saves blocked the training
	// meanwhile. RestoreSeconds is how long the attempt loaded its checkpoint. They count from the start of the attempt, so that a lost
	// line loses nothing.
	StepsSeconds   float64 `json:"steps_seconds,omitzero"`
	SavesSeconds   float64 `json:"saves_seconds,omitzero"`
	RestoreSeconds float64 `json:"restore_seconds,omitzero"`
	// ExamplesPerSecond is how fast the attempt has trained so far, if that is known. The crew that leads the whole job adds what
	// that was measured on.
	ExamplesPerSecond float64   `json:"examples_per_second,omitzero"`
	Measured          *Measured `json:"measured,omitzero"`
	// SaveID answers a request by its ID.
	SaveID string `json:"save_id,omitzero"`
	// ExitCode and Signal say how the training ended: one of the two. 128+n codes of a shell are left as they are.
	ExitCode int    `json:"exit_code,omitzero"`
	Signal   string `json:"signal,omitzero"`
	// Interrupted says that an exit is the machines' fault: the crew did not see it, or somebody killed the training.
	Interrupted bool `json:"interrupted,omitzero"`
	// OutOfMemory says that the kernel killed the training for lack of memory.
	OutOfMemory bool `json:"out_of_memory,omitzero"`
	// Tail are the last lines of output before a crash, if the crew reads the output.
	Tail []string `json:"tail,omitzero"`
	// RestartsLeft is the rest of the crew's own budget.
	RestartsLeft int `json:"restarts_left,omitzero"`
	// Retries are the restarts that the crew has used by now.
	Retries JobRetries `json:"retries,omitzero"`
	// Notice is the announcement, for ReportNotice.
	Notice    *Notice `json:"notice,omitzero"`
	Preempted bool    `json:"preempted,omitzero"`
	// Reason is for people, one line.
	Reason string `json:"reason,omitzero"`
}

// Measured says on what a speed was measured, and for how long.
type Measured struct {
	// Accelerator is the type of each of the Slices.
	Accelerator string `json:"accelerator,omitzero"`
	Slices      int    `json:"slices"`
	// GlobalBatch is how many examples a step has, if that is known.
	GlobalBatch int64 `json:"global_batch,omitzero"`
	// Steps were done in Seconds, after the first step that was seen: that one includes the compilation.
	Steps   int64   `json:"steps"`
	Seconds float64 `json:"seconds"`
}

// longestLife bounds the ID of a life, in bytes. A UID of Kubernetes has 36.
const longestLife = 128

// Validate returns every fault in the report, joined.
func (r CrewReport) Validate() error {
	var f faults
	f.require("zone", r.Zone)
	f.require("node", r.Node)
	f.check(len(r.Life) <= longestLife, "life has %d bytes: at most %d", len(r.Life), longestLife)
	f.check(r.Worker >= 0, "worker %d: the first is 0", r.Worker)
	f.check(r.Step >= 0 && r.CheckpointStep >= 0, "step %d, checkpoint_step %d: steps count from 0", r.Step, r.CheckpointStep)
	switch r.Report {
	case ReportStarted, ReportProgress, ReportExited, ReportGaveUp, ReportFinished:
		f.check(r.Attempt > 0 && r.Attempt <= MaxAttempt, "attempt %d: attempts count from 1 to %d", r.Attempt, MaxAttempt)
	case ReportSaved, ReportRefused:
		f.require("save_id", r.SaveID)
	case ReportNotice:
		f.check(r.Notice != nil || r.Preempted, "a notice names neither maintenance nor preemption")
	default:
		// A newer crew may know more reports; the reader ignores those.
	}
	return f.err()
}

// whole reads an integer that is written as 10.0 or 1e3, because a protobuf Struct holds only doubles.
var whole = json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(wholeNumber[int]), json.UnmarshalFromFunc(wholeNumber[int64])))

func wholeNumber[T int | int64](d *jsontext.Decoder, into *T) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	v, err := d.ReadToken()
	if err != nil {
		return err
	}
	s := v.String()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		const exact = 1 << 53 // above this, doubles skip integers
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
			return &json.SemanticError{JSONKind: v.Kind()}
		}
		n = int64(f)
	}
	*into = T(n)
	return nil
}

// Known reports whether this release understands the report.
func (r Report) Known() bool {
	switch r {
	case ReportStarted, ReportProgress, ReportSaved, ReportRefused, ReportExited, ReportGaveUp, ReportFinished, ReportNotice:
		return true
	}
	return false
}

// CrewRequest is a request to a crew: the value of the node's metadata key MetadataRequest and also an object next to the
// checkpoints. No part of it is ever executed.
type CrewRequest struct {
	Schema int `json:"schema"`
	// SaveID names the request; the crew's answer names it too.
	SaveID   string   `json:"save_id"`
	Workload string   `json:"workload"`
	Incident string   `json:"incident"`
	Action   Action   `json:"action"`
	Mode     SaveMode `json:"mode"`
	// By is the deadline of the save; the crew does not start one that cannot meet it.
	By time.Time `json:"by,omitzero"`
}

// MaxAttempt bounds the number of a training attempt. One restart a second would take eleven days to get there.
const MaxAttempt = 1_000_000

// VerdictObject is the name of the object, next to the checkpoints, with the crew's verdict on an attempt.
func VerdictObject(attempt int) string {
	return fmt.Sprintf("pitstop-crew/attempt-%06d/verdict.json", attempt)
}

// LeaseObject and RequestObject lie next to the checkpoints: where training may run, and the request to the crew.
const (
	LeaseObject   = "pitstop-lease.json"
	RequestObject = "pitstop-request.json"
)

// The keys of a slice's metadata: of a CrewRequest, of the checkpoint directory, and of the directories that training reads its data
// from. Those have commas or spaces between them.
const (
	MetadataRequest       = "pitstop-request"
	MetadataCheckpointDir = "pitstop-checkpoint-dir"
	MetadataDataDir       = "pitstop-data-dir"
)

// DataDirs are the directories that the value of MetadataDataDir names, each once.
func DataDirs(value string) (dirs []string) {
	for _, dir := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// A crew writes its state into the guest attribute GuestKey of GuestNamespace, at most every GuestEvery: the metadata server
// takes ten queries a minute from all programs of a machine.
const (
	GuestNamespace = "pitstop"
	GuestKey       = "crew"
	GuestEvery     = 30 * time.Second
)

// CrewState is the state of one worker's crew: the value of its guest attribute.
type CrewState struct {
	Schema int `json:"schema"`
	// Seen is when it was written: the heartbeat.
	Seen   time.Time `json:"seen"`
	Worker int       `json:"worker"`
	// Phase is idle, running or ended; Attempt the attempt that it describes.
	Phase   string `json:"phase"`
	Attempt int    `json:"attempt,omitzero"`
	// Step is the last finished step and StepAt when it was seen; CheckpointStep and CheckpointURI are the last complete
	// checkpoint.
	Step           int64     `json:"step,omitzero"`
	StepAt         time.Time `json:"step_at,omitzero"`
	CheckpointStep int64     `json:"checkpoint_step,omitzero"`
	CheckpointURI  string    `json:"checkpoint_uri,omitzero"`
	// SaveID is the last answered request, and SavedAt the time its checkpoint was complete; zero if it was refused.
	SaveID  string    `json:"save_id,omitzero"`
	SavedAt time.Time `json:"saved_at,omitzero"`
	// RequestReadAt is when it last managed to look for a request next to the checkpoints. Finding none counts.
	RequestReadAt time.Time `json:"request_read_at,omitzero"`
	// Verdict is the crew's verdict on the last attempt that it ended for good; absent while an attempt may follow.
	Verdict *CrewVerdict `json:"verdict,omitzero"`
}

// CrewVerdict is the crew's last word on a training attempt: no other attempt follows unless the lease names one. The crew
// creates it once next to the checkpoints, as VerdictObject of the attempt, and repeats it in its guest attribute. A line in
// the log is only a hint of it.
//
// In a Multislice the crew of slice 0 writes a verdict on every attempt, and Restart says that another one follows.
type CrewVerdict struct {
	Schema int `json:"schema"`
	// Attempt is the training attempt that ended. Life is the life of the slice whose crew decided, as that crew knows it: the
	// slice's name, its zone, and the common part of its workers' host names. Both must match the lease.
	Attempt int       `json:"attempt"`
	Life    Admission `json:"life"`
	// Restart says that the crew itself starts the next attempt. Finished says that the job is done: exit 0 while no trouble
	// was near. If both are false, the crew has given up.
	Restart  bool `json:"restart"`
	Finished bool `json:"finished,omitzero"`
	// Certain says that the training reached the last step that its owner named, so the end is final.
	Certain bool `json:"certain,omitzero"`
	// Ended is when the training process ended, by the worker's clock; Step is the last finished step.
	Ended time.Time `json:"ended,omitzero"`
	Step  int64     `json:"step,omitzero"`
	// Code is the exit code of the crew, Reason why it ended, for people, in one line.
	Code   int    `json:"code,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// GaveUp reports whether the crew's own restarts are spent.
func (v CrewVerdict) GaveUp() bool { return !v.Restart && !v.Finished }

// Validate returns every fault in the verdict, joined.
func (v CrewVerdict) Validate() error {
	var f faults
	f.schema(v.Schema)
	f.check(v.Attempt > 0 && v.Attempt <= MaxAttempt, "attempt %d: attempts count from 1 to %d", v.Attempt, MaxAttempt)
	f.require("life.slice", v.Life.Slice)
	f.check(!v.Restart || !v.Finished, "restart and finished exclude each other")
	f.check(v.Step >= 0, "step %d: steps count from 0", v.Step)
	return f.err()
}

// DecodeCrewVerdict reads the verdict of a crew.
func DecodeCrewVerdict(data []byte) (v CrewVerdict, err error) {
	err = decode(data, "crew verdict", &v)
	clean(&v)
	return v, err
}

// Validate returns every fault in the state, joined.
func (s CrewState) Validate() error {
	var f faults
	f.schema(s.Schema)
	f.check(!s.Seen.IsZero(), "seen is missing")
	f.require("phase", s.Phase)
	f.check(s.Worker >= 0, "worker %d: the first is 0", s.Worker)
	f.check(s.Step >= 0 && s.CheckpointStep >= 0, "step %d, checkpoint_step %d: steps count from 0", s.Step, s.CheckpointStep)
	if s.Verdict != nil {
		if err := s.Verdict.Validate(); err != nil {
			f.check(false, "verdict: %w", err)
		}
	}
	return f.err()
}

// DecodeCrewState reads the guest attribute of a crew.
func DecodeCrewState(data []byte) (s CrewState, err error) {
	err = decode(data, "crew state", &s)
	clean(&s)
	return s, err
}

// The node labels that Pitstop reads or, on nodes that it creates, writes.
const (
	LabelWorkload = "pitstop-workload"
	LabelPolicy   = "pitstop-policy"
	LabelIncident = "pitstop-incident"
)

// Validate returns every fault in the request, joined.
func (r CrewRequest) Validate() error {
	var f faults
	f.schema(r.Schema)
	f.require("save_id", r.SaveID)
	f.check(r.Action == ActionSave, "action %q: a crew takes only save requests", r.Action)
	f.check(r.Mode == SaveNatural || r.Mode == SaveSignal, "mode %q is neither natural nor signal", r.Mode)
	return f.err()
}

// DecodeCrewRequest reads a request to a crew.
func DecodeCrewRequest(data []byte) (r CrewRequest, err error) {
	err = decode(data, "crew request", &r)
	return r, err
}
