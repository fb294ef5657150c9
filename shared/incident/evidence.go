package incident

import (
	"time"

	"pitstop.internal/events"
)

// Evidence is one thing that a function learned, or that a person said. It is one of the types of this file and of
// operator.go.
type Evidence interface {
	origin() Origin
	kind() string
}

// Origin is where evidence comes from.
type Origin struct {
	// ID is the entry or message; it stands in the timeline.
	ID string
	// Time is when it happened by its own account; zero when it does not say. It orders and attributes, no more.
	Time time.Time
	// Rank is how far it is believed.
	Rank events.Rank
}

func (o Origin) origin() Origin { return o }

// Mapped says which host names a life of a slice has. Without a group it says that the API was asked and does not tell.
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
	// Incarnation is the life that it speaks of; unknown when only the name is told.
	Incarnation events.Incarnation
	Cause       events.Cause
	// Text is what it says, for people.
	Text string
}

// Back is another reason to look and no more: Google restarted a machine, or the training says that it was told to end.
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
	// InAPI says that a reading showed it.
	InAPI bool
	Text  string
}

// Beat is a sign of life of the crew of a slice, or that there was none to be read. It asks the crew for nothing.
type Beat struct {
	Origin
	Slice       string
	Incarnation events.Incarnation
	// Seen is when the crew wrote it; zero where nothing could be read, which tells nothing.
	Seen time.Time
	// Runs says that the crew runs the training, Attempt which one it is about, StepAt when it saw the last step.
	Runs    bool
	Attempt int
	StepAt  time.Time
	// Step is the last finished step. Verdict is the crew's verdict on that attempt, nil where it gives none. Ended says that the
	// attempt ended, which is all that a crew of the release before tells.
	Step    int64
	Verdict *events.CrewVerdict
	Ended   bool
	// Looked is when it could last look for a request beside the checkpoints; zero tells nothing.
	Looked time.Time
}

// Called says that somebody other than us and Google created, deleted, stopped or started a slice.
type Called struct {
	Origin
	Slice string
	// Zone is where; empty where that is not known.
	Zone string
	// Act is what was done; empty for what is none of these. Whole says that it was done to all of the slice's group.
	Act   events.Act
	Whole bool
	// Method is what the provider calls it, for people.
	Method    string
	Principal string
}

// Unsaid says that patrol asked the audit log who stopped or deleted a slice, when all that happened had to be in it, and
// that the log names nobody.
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
	// State is the provider's word for it.
	State string
	// Notice is the announced maintenance that the reading shows, if any. NoticeUnread says that this could not be read.
	Notice       *events.Notice
	NoticeUnread bool
	// Maintained is when the last maintenance event was that the provider still tells of; zero where it tells of none.
	Maintained time.Time
	// Incident is the value of the label pitstop-incident: who made this life, or ordered the queued resource that is to
	// bring one. Ordered is when that queued resource was created.
	Incident string
	Ordered  time.Time
	// Abuse says that the provider suspects abuse: all automation ends, for as long as this life shows it and after its end.
	Abuse bool
	// Facts describe what was found; they do not change while it lives.
	Facts Facts
	// Directory is the workload's checkpoint directory, as this slice says it.
	Directory string
}

// Failure is an error of an outside call, classified.
type Failure struct {
	Class   FailureClass
	Message string
	// Code is why, where the class alone does not say; see Reason.
	Code Code
	// Hearsay says that the provider was not asked: it has just told somebody else.
	Hearsay bool
}

// FailureClass is what an error of the provider means. shared/provider/cloudtpu has the table for the Cloud TPU API.
type FailureClass string

// The classes of failures.
const (
	Transient       FailureClass = "transient"        // try again
	Busy            FailureClass = "busy"             // another update is in flight: try again soon
	NotInState      FailureClass = "not_in_state"     // not allowed in this state: try again when it has changed
	Stockout        FailureClass = "stockout"         // no capacity in the zone
	Quota           FailureClass = "quota"            // our own limit
	NoQuota         FailureClass = "no_quota"         // our own limit, and it is nothing
	ReservationFull FailureClass = "reservation_full" // no capacity in the reservation
	WrongZone       FailureClass = "wrong_zone"       // the zone does not have this at all
	CannotMove      FailureClass = "cannot_move"      // the order is of another zone, and does not fit this one
	OtherRegion     FailureClass = "other_region"     // the checkpoints are elsewhere, and the policy does not allow that
	Exists          FailureClass = "exists"           // the name is taken
	NotFound        FailureClass = "not_found"        // it is gone
	Permission      FailureClass = "permission"       // we may not
	Invalid         FailureClass = "invalid"          // the request is wrong: never again
)

// FailureClasses are all of them.
func FailureClasses() []FailureClass {
	return []FailureClass{
		Transient, Busy, NotInState, Stockout, Quota, NoQuota, ReservationFull, WrongZone, CannotMove, OtherRegion, Exists, NotFound, Permission,
		Invalid,
	}
}

// Intended says that a function begins an effect: the call comes after this is stored.
type Intended struct {
	Origin
	Request   events.Request
	RequestID string
}

// Answered is what came back from the call of an effect.
type Answered struct {
	Origin
	Request events.Request
	// Operation names what the provider does now; empty when the call is all there was.
	Operation string
	Failure   *Failure
	// NoCall says that it is no answer to a call. Of several calls, by resource, Failed are those that failed, and LeftOut those that
	// an earlier delivery may have made, and this one did not.
	NoCall  NoCall
	Failed  map[string]Code
	LeftOut []string
	// Text is what was done, for people.
	Text string
}

// NoCall says how far came who answers without a call.
type NoCall string

// Nothing was called: behind the intent, or before it.
const (
	Uncalled NoCall = "uncalled"
	Unbegun  NoCall = "unbegun"
)

// Ended says that an operation of ours ended.
type Ended struct {
	Origin
	Operation string
	Failure   *Failure
}

// Checked is the result of looking for a complete checkpoint.
type Checked struct {
	Origin
	Request events.Request
	// Found says that there is a complete one that is new enough.
	Found bool
	Step  int64
	URI   string
	At    time.Time
	// Bytes is what it holds; More says that it holds more than was counted.
	Bytes int64
	More  bool
	// Stale says that the newest checkpoint is complete but too old. Text says what was found instead of the expected one.
	Stale bool
	Text  string
	// None says that nothing at all was ever saved there.
	None bool
}

// VerdictRead is what the crew left beside the checkpoints: its verdict on the attempt that the lease names, and how far the
// training is saved.
type VerdictRead struct {
	Origin
	Request events.Request
	// Verdict is nil where the crew left none that the lease confirms; Text says what was there instead.
	Verdict *events.CrewVerdict
	Text    string
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
	Code    Code
	Why     string
	Until   time.Time
	// Begun says that the intent was stored before, and nothing was called.
	Begun bool
}

// Forbidden says that a function found the switch of its action closed.
type Forbidden struct {
	Origin
	Request events.Request
	Code    Code
	Why     string
}

// Fitted says how the order of a slice fits the zones that would be asked for it. Nothing is decided on it.
type Fitted struct {
	Origin
	Slice string
	Zones []ZoneFit
}

// Ticked is the clock.
type Ticked struct{ Origin }

func (Mapped) kind() string      { return "Mapped" }
func (Interrupted) kind() string { return "Interrupted" }
func (Back) kind() string        { return "Back" }
func (Noticed) kind() string     { return "Noticed" }
func (Beat) kind() string        { return "Beat" }
func (Called) kind() string      { return "Called" }
func (Unsaid) kind() string      { return "Unsaid" }
func (Reported) kind() string    { return "Reported" }
func (Read) kind() string        { return "Read" }
func (Intended) kind() string    { return "Intended" }
func (Answered) kind() string    { return "Answered" }
func (Ended) kind() string       { return "Ended" }
func (Checked) kind() string     { return "Checked" }
func (VerdictRead) kind() string { return "VerdictRead" }
func (Held) kind() string        { return "Held" }
func (Forbidden) kind() string   { return "Forbidden" }
func (Fitted) kind() string      { return "Fitted" }
func (Ticked) kind() string      { return "Ticked" }

// Kind is the name of the evidence's type.
func Kind(e Evidence) string { return e.kind() }
