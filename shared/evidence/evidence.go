// Package evidence has the words for what Pitstop learns: each kind of evidence, the condition of a slice and the facts about it, and
// the orders of people. It says nothing of what follows from them: functions make evidence, and the heart decides.
package evidence

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
)

// Evidence is one fact that a function learned, or that a person reported. What embeds Origin is evidence.
type Evidence interface {
	origin() Origin
}

// Origin says where evidence comes from.
type Origin struct {
	// ID is the entry or message; it stands in the timeline.
	ID string
	// Time is when the event happened by its own account; zero when it does not say. It orders and attributes evidence, and nothing
	// more.
	Time time.Time
	// Rank is how far Pitstop believes the evidence.
	Rank events.Rank
}

func (o Origin) origin() Origin { return o }

// FromLog reports whether it is an entry of Cloud Logging.
func (o Origin) FromLog() bool {
	return o.ID != "" && (o.Rank == events.RankUser || o.Rank == events.RankAudit)
}

// OriginOf says where evidence comes from.
func OriginOf(e Evidence) Origin { return e.origin() }

// Mapped says which host names a life of a slice has, according to the API or to a line. Without a group it says that the API was asked
// and does not give them.
type Mapped struct {
	Origin
	Slice       string
	Incarnation events.Incarnation
	Group       string
}

// Interrupted says that something ended or broke a machine. It proves nothing: it starts a look.
type Interrupted struct {
	Origin
	Slice string
	// Incarnation is the life that the evidence concerns; unknown where it only names the slice.
	Incarnation events.Incarnation
	Cause       events.Cause
	// Text is the content of the evidence, for people.
	Text string
}

// Back is another reason to look and no more: Google restarted a machine, or the training reports an order to end.
type Back struct {
	Origin
	Slice       string
	Incarnation events.Incarnation
	Text        string
}

// Noticed is announced maintenance, or its end.
type Noticed struct {
	Origin
	Slice       string
	Incarnation events.Incarnation
	Notice      events.Notice
	// InAPI says that a reading showed the maintenance.
	InAPI bool
	Text  string
}

// Beat is a sign of life of a slice's crew, or the fact that none could be read. It asks the crew for nothing.
type Beat struct {
	Origin
	Slice       string
	Incarnation events.Incarnation
	// Seen is when the crew wrote the sign of life; zero where nothing could be read, which proves nothing.
	Seen time.Time
	// Runs says that the crew runs the training. Attempt is the attempt that it reports on, and StepAt is when it saw the last
	// step.
	Runs    bool
	Attempt int
	StepAt  time.Time
	// Step is the last finished step. Verdict is the crew's verdict on that attempt, nil where it gives none.
	Step    int64
	Verdict *events.CrewVerdict
	// Looked is when the crew could last look for a request beside the checkpoints; zero proves nothing.
	Looked time.Time
}

// Called says that somebody other than Pitstop and Google created, deleted, stopped or started a slice.
type Called struct {
	Origin
	Slice string
	// Zone is the zone of the call; empty where that is not known.
	Zone string
	// Act is the kind of the call; empty for a call of another kind. Whole says that the call was on the slice's whole group.
	Act   events.Act
	Whole bool
	// Method is the provider's name for the call, for people.
	Method    string
	Principal string
	// Automatic says that a service account called: a tool that keeps what somebody declared. Orphaned says that a cluster deleted the
	// slice because its owner is gone.
	// Everything says that the call deleted the namespace with all that is in it.
	Automatic, Orphaned, Everything bool
}

// Unsaid says that patrol asked the audit log who stopped or deleted a slice, and that the log names nobody. By then every entry
// had to be in the log.
type Unsaid struct {
	Origin
	Slice       string
	Incarnation events.Incarnation
}

// Reported is a line of the crew.
type Reported struct {
	Origin
	Slice  string
	Report events.CrewReport
}

// Read is a fresh reading of a slice. It decides.
type Read struct {
	Origin
	Slice       string
	Zone        string
	Condition   Condition
	Incarnation events.Incarnation
	// State is the provider's word for the condition.
	State string
	// Notice is the announced maintenance in the reading, if any. NoticeUnread says that the reading could not show it.
	Notice       *events.Notice
	NoticeUnread bool
	// Maintained is the time of the last maintenance event that the provider still shows; zero where it shows none.
	Maintained time.Time
	// Incident is the value of the label pitstop-incident: the incident that created this life, or ordered the queued resource that
	// is to bring one. Ordered is when that queued resource was created.
	Incident string
	Ordered  time.Time
	// Granted says that the queued resource is not known to wait any more: what it asks for is being made, or may be there.
	Granted bool
	// Abuse says that the provider suspects abuse: all automation ends, for as long as this life shows it and after its end.
	Abuse bool
	// Facts describe the slice; they do not change while it lives.
	Facts Facts
	// Directory is the workload's checkpoint directory, as this slice names it.
	Directory string
}

// Failure is an error of an outside call, classified.
type Failure struct {
	Class   reason.FailureClass
	Message string
	// Code is the reason, where the class alone does not give it; see Reason.
	Code reason.Code
	// Hearsay says that the provider was not asked: it has just given this answer to somebody else.
	Hearsay bool
}

// Reason is the code of a failure: its own code, where the failure comes from no call of a provider, else its class.
func (f Failure) Reason() reason.Code {
	if f.Code != "" {
		return f.Code
	}
	return f.Class.Code()
}

// Intended says that a function begins an effect: the call comes after this is stored.
type Intended struct {
	Origin
	Request   events.Request
	RequestID string
	// Lease is what stands beside the checkpoints, for an effect that writes the lease: the next attempt is counted from it.
	Lease Lease
}

// Lease is what a function has read beside the checkpoints before it writes the lease.
type Lease struct {
	// Attempt is the attempt that the lease names; zero where no lease can be read. Left is then the highest attempt of which crews have
	// left files there.
	Attempt, Left int
	// Lives are those that it names. Incident is the incident for which Pitstop has written it; empty where a crew has, at Began. Names
	// says that it names the very lives that it is to name.
	Lives    []events.Admission
	Incident string
	Began    time.Time
	Names    bool
}

// Answered is the answer to the call of an effect.
type Answered struct {
	Origin
	Request events.Request
	// Operation names the provider's operation that carries the call on; empty when the call did everything.
	Operation string
	Failure   *Failure
	// NoCall says that this answers no call. An effect may make several calls, by resource. Failed are those that failed, and where it
	// names any, the others did not fail. LeftOut are those that this delivery did not make: an earlier one may have made them.
	NoCall  NoCall
	Failed  map[string]reason.Code
	LeftOut []string
	// Text describes what the function did, for people. Note is what else they should know of it: they are told once.
	Text string
	Note string
}

// NoCall says how far the function came that answers without a call.
type NoCall string

// No call was made: after the intent was stored, or before it.
const (
	Uncalled NoCall = "uncalled"
	Unbegun  NoCall = "unbegun"
)

// Ended says that one of Pitstop's operations ended.
type Ended struct {
	Origin
	Operation string
	Failure   *Failure
}

// Checked is the result of a look for a complete checkpoint.
type Checked struct {
	Origin
	Request events.Request
	// Found says that there is a complete checkpoint that is new enough.
	Found bool
	Step  int64
	URI   string
	At    time.Time
	// Bytes is the size of its content; More says that it holds more than was counted.
	Bytes int64
	More  bool
	// Stale says that the newest checkpoint is complete but too old. Text describes the finding in place of the expected
	// checkpoint.
	Stale bool
	Text  string
	// None says that nothing at all was ever saved there.
	None bool
	// Saves are the times of the complete checkpoints there, oldest first, where all of them were looked at and none is new enough. Then
	// Step, At, URI and Bytes are of the newest.
	Saves []time.Time
}

// VerdictRead is the crew's record beside the checkpoints: its verdict on the attempt that the lease names, and how far the
// training is saved.
type VerdictRead struct {
	Origin
	Request events.Request
	// Verdict is nil where the crew left no verdict that the lease confirms; Text describes the content found there instead.
	Verdict *events.CrewVerdict
	Text    string
	// Attempt is the attempt that the lease names; zero where there is none.
	Attempt int
	// Saved is the step of the newest complete checkpoint, and SavedURI is its place. It was complete at SavedAt, which is zero if
	// none was found. It holds SavedBytes or more.
	Saved      int64
	SavedAt    time.Time
	SavedURI   string
	SavedBytes int64
	// Failure says why the directory could not be read.
	Failure *Failure
}

// Held says that a function may not act now: a pause, the brake, an unreadable policy.
type Held struct {
	Origin
	Request events.Request
	Code    reason.Code
	Why     string
	Until   time.Time
	// Begun says that the intent was stored before, and no call was made.
	Begun bool
}

// Ticked is the clock.
type Ticked struct {
	Origin
	// Unread says that the slices of the workload could not be read at this tick, so the known facts may be old.
	Unread bool
}
