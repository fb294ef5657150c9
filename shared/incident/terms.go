package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// The words of the packages evidence, reason and bounds have a second name here, for the callers of this package.

//nolint:revive // the types have their comments where they are declared
type (
	Evidence     = evidence.Evidence
	Origin       = evidence.Origin
	Mapped       = evidence.Mapped
	Interrupted  = evidence.Interrupted
	Back         = evidence.Back
	Noticed      = evidence.Noticed
	Beat         = evidence.Beat
	Called       = evidence.Called
	Unsaid       = evidence.Unsaid
	Reported     = evidence.Reported
	Read         = evidence.Read
	Failure      = evidence.Failure
	Intended     = evidence.Intended
	Lease        = evidence.Lease
	Answered     = evidence.Answered
	NoCall       = evidence.NoCall
	Ended        = evidence.Ended
	Checked      = evidence.Checked
	VerdictRead  = evidence.VerdictRead
	Held         = evidence.Held
	Forbidden    = evidence.Forbidden
	Ticked       = evidence.Ticked
	Condition    = evidence.Condition
	Facts        = evidence.Facts
	Heal         = evidence.Heal
	Word         = evidence.Word
	Verb         = evidence.Verb
	Approved     = evidence.Approved
	Cancelled    = evidence.Cancelled
	Retried      = evidence.Retried
	Paused       = evidence.Paused
	Ordered      = evidence.Ordered
	Pause        = evidence.Pause
	Code         = reason.Code
	Meaning      = reason.Meaning
	FailureClass = reason.FailureClass
	SaveResult   = reason.SaveResult
	Phase        = view.Phase
	Outcome      = view.Outcome
	Confirmation = view.Confirmation
	LineKind     = view.LineKind
	Line         = view.Line
	Trouble      = view.Trouble
	Refusal      = view.Refusal
	Call         = view.Call
	Spoken       = view.Spoken
	Plan         = view.Plan
	Planned      = view.Planned
	ZoneFit      = view.ZoneFit
	Place        = view.Place
	Stage        = view.Stage
)

// How far a function came that made no call.
const (
	Uncalled = evidence.Uncalled
	Unbegun  = evidence.Unbegun
)

// The conditions of a slice.
const (
	Unread    = evidence.Unread
	Creating  = evidence.Creating
	Ready     = evidence.Ready
	Unhealthy = evidence.Unhealthy
	Stopped   = evidence.Stopped
	Lost      = evidence.Lost
	Done      = evidence.Done
	Deleting  = evidence.Deleting
	Gone      = evidence.Gone
	Unclear   = evidence.Unclear
)

// The kinds of healing.
const (
	HealsUnlessReclaimable = evidence.HealsUnlessReclaimable
	HealsAlways            = evidence.HealsAlways
	HealsNever             = evidence.HealsNever
)

// The verbs.
const (
	VerbApprove = evidence.VerbApprove
	VerbCancel  = evidence.VerbCancel
	VerbRetry   = evidence.VerbRetry
	VerbPause   = evidence.VerbPause
	VerbResume  = evidence.VerbResume
	VerbAttach  = evidence.VerbAttach
	VerbDetach  = evidence.VerbDetach
	VerbDrill   = evidence.VerbDrill
)

// The codes.
const (
	CodeUnknownWorkload  = reason.CodeUnknownWorkload
	CodeNoIncident       = reason.CodeNoIncident
	CodeOtherIncident    = reason.CodeOtherIncident
	CodeStaleEpoch       = reason.CodeStaleEpoch
	CodeExpired          = reason.CodeExpired
	CodeNotWanted        = reason.CodeNotWanted
	CodeAnswered         = reason.CodeAnswered
	CodeNotDue           = reason.CodeNotDue
	CodeNoSlice          = reason.CodeNoSlice
	CodeOtherLife        = reason.CodeOtherLife
	CodeOvertaken        = reason.CodeOvertaken
	CodeBodyDiffers      = reason.CodeBodyDiffers
	CodePaused           = reason.CodePaused
	CodeBraked           = reason.CodeBraked
	CodePolicyUnreadable = reason.CodePolicyUnreadable
	CodePolicyNo         = reason.CodePolicyNo
	CodePolicyAsk        = reason.CodePolicyAsk
	CodeEmptyMachine     = reason.CodeEmptyMachine
	CodeWatchOnly        = reason.CodeWatchOnly
	CodeOwner            = reason.CodeOwner
	CodeTakenOver        = reason.CodeTakenOver
	CodeWithdrawn        = reason.CodeWithdrawn
	CodeCancelled        = reason.CodeCancelled
	CodeHangReport       = reason.CodeHangReport
	CodeUnread           = reason.CodeUnread
	CodeAuditUnread      = reason.CodeAuditUnread
	CodeNotReady         = reason.CodeNotReady
	CodeTaken            = reason.CodeTaken
	CodeHoldsMore        = reason.CodeHoldsMore
	CodeThere            = reason.CodeThere
	CodeNoSpec           = reason.CodeNoSpec
	CodeKept             = reason.CodeKept
	CodeNoLife           = reason.CodeNoLife
	CodeUnverified       = reason.CodeUnverified
	CodeOtherShape       = reason.CodeOtherShape
	CodeNoLease          = reason.CodeNoLease
	CodeLeaseDoubted     = reason.CodeLeaseDoubted
	CodeForeign          = reason.CodeForeign
	CodeNoCheckpoint     = reason.CodeNoCheckpoint
	CodeSavesUnknown     = reason.CodeSavesUnknown
	CodeSeveralWorkers   = reason.CodeSeveralWorkers
	CodeNoZone           = reason.CodeNoZone
	CodeGaveUp           = reason.CodeGaveUp
	CodeBudget           = reason.CodeBudget
	CodeRestartsADay     = reason.CodeRestartsADay
	CodeSameError        = reason.CodeSameError
	CodeRetries          = reason.CodeRetries
	CodeUnanswered       = reason.CodeUnanswered
	CodeOverdue          = reason.CodeOverdue
	CodeAbuse            = reason.CodeAbuse
	CodeLeftBehind       = reason.CodeLeftBehind
	CodeFinished         = reason.CodeFinished
	CodeNotEarly         = reason.CodeNotEarly
	CodeBegun            = reason.CodeBegun
	CodeNotMine          = reason.CodeNotMine
	CodeNotWatched       = reason.CodeNotWatched
	CodeNoSink           = reason.CodeNoSink
	CodeNothing          = reason.CodeNothing
	CodeUnknownNode      = reason.CodeUnknownNode
	CodeFormerLife       = reason.CodeFormerLife
	CodeOldTick          = reason.CodeOldTick
	CodeTicking          = reason.CodeTicking
	CodeUnknownCanary    = reason.CodeUnknownCanary
	CodeNobodyTold       = reason.CodeNobodyTold
	CodeTold             = reason.CodeTold
	CodeNoSuchIncident   = reason.CodeNoSuchIncident
	CodePassing          = reason.CodePassing
)

// The classes of failures.
const (
	Transient       = reason.Transient
	Busy            = reason.Busy
	NotInState      = reason.NotInState
	Stockout        = reason.Stockout
	Quota           = reason.Quota
	NoQuota         = reason.NoQuota
	ReservationFull = reason.ReservationFull
	WrongZone       = reason.WrongZone
	CannotMove      = reason.CannotMove
	OtherRegion     = reason.OtherRegion
	Exists          = reason.Exists
	NotFound        = reason.NotFound
	Permission      = reason.Permission
	Invalid         = reason.Invalid
)

// The ends of a save.
const (
	SaveVerified    = reason.SaveVerified
	SaveLate        = reason.SaveLate
	SaveStale       = reason.SaveStale
	SaveIncomplete  = reason.SaveIncomplete
	SaveUnanswered  = reason.SaveUnanswered
	SaveRefused     = reason.SaveRefused
	SaveUndelivered = reason.SaveUndelivered
	SaveForbidden   = reason.SaveForbidden
	SaveUnheard     = reason.SaveUnheard
	SaveOvertaken   = reason.SaveOvertaken
)

// The bounds.
const (
	Linger         = bounds.Linger
	Grace          = bounds.Grace
	AuditFor       = bounds.AuditFor
	UnreleaseAfter = bounds.UnreleaseAfter
	TakeOverFor    = bounds.TakeOverFor
	SickFor        = bounds.SickFor
	LookFor        = bounds.LookFor
	SaveFor        = bounds.SaveFor
	SavedFor       = bounds.SavedFor
	NoticeFor      = bounds.NoticeFor
	HeardFor       = bounds.HeardFor
	ListenEvery    = bounds.ListenEvery
	HangFor        = bounds.HangFor
	NoGapFor       = bounds.NoGapFor
	ListenAgain    = bounds.ListenAgain
	HearFor        = bounds.HearFor
	ProbeFor       = bounds.ProbeFor
	ProveEvery     = bounds.ProveEvery
	StruckWithin   = bounds.StruckWithin
	NoticedFor     = bounds.NoticedFor
	MaintainFor    = bounds.MaintainFor
	HealFor        = bounds.HealFor
	RemoveFor      = bounds.RemoveFor
	AdmitFor       = bounds.AdmitFor
	RestartFor     = bounds.RestartFor
	BarredFor      = bounds.BarredFor
	BarredEvery    = bounds.BarredEvery
	RecreateFor    = bounds.RecreateFor
	ResumeFor      = bounds.ResumeFor
	StartFor       = bounds.StartFor
	CheckFor       = bounds.CheckFor
	WatchFor       = bounds.WatchFor
	ClearFor       = bounds.ClearFor
	RequestFor     = bounds.RequestFor
	AnswerFor      = bounds.AnswerFor
	HeldForMost    = bounds.HeldForMost
	CallWithin     = bounds.CallWithin
	CallFor        = bounds.CallFor
	OperationFor   = bounds.OperationFor
	CapacityEvery  = bounds.CapacityEvery
	QuotaEvery     = bounds.QuotaEvery
	RemindFirst    = bounds.RemindFirst
	RemindEvery    = bounds.RemindEvery
	MaxRestarts    = bounds.MaxRestarts
	MaxRecreates   = bounds.MaxRecreates
	MaxStarts      = bounds.MaxStarts
	MaxFailures    = bounds.MaxFailures
	MaxLines       = bounds.MaxLines
	MaxOrders      = bounds.MaxOrders
	PauseMargin    = evidence.PauseMargin
)

// Codes are all codes with their meanings.
func Codes() []Meaning { return reason.Codes() }

// FailureClasses are all classes of failures.
func FailureClasses() []FailureClass { return reason.FailureClasses() }

// The phases.
const (
	Saving        = view.Saving
	Maintaining   = view.Maintaining
	Window        = view.Window
	Looking       = view.Looking
	PhaseGrace    = view.PhaseGrace
	Healing       = view.Healing
	Approving     = view.Approving
	PhaseDeleting = view.PhaseDeleting
	PhaseCreating = view.PhaseCreating
	Admitting     = view.Admitting
	Resuming      = view.Resuming
	Restarting    = view.Restarting
	Starting      = view.Starting
	Watching      = view.Watching
	Clearing      = view.Clearing
	Closed        = view.Closed
	PhaseWaits    = view.PhaseWaits
)

// The five ends, the proofs that training goes on, the kinds of lines, and the stages of an effect.
const (
	Resumed       = view.Resumed
	Withdrawn     = view.Withdrawn
	Released      = view.Released
	Escalated     = view.Escalated
	Observed      = view.Observed
	ByStep        = view.ByStep
	ByCheckpoint  = view.ByCheckpoint
	ByHealth      = view.ByHealth
	LineSeen      = view.LineSeen
	LineDecided   = view.LineDecided
	LineAsked     = view.LineAsked
	LineCame      = view.LineCame
	LineEnded     = view.LineEnded
	StageWanted   = view.StageWanted
	StageBegun    = view.StageBegun
	StageAccepted = view.StageAccepted
	StageDone     = view.StageDone
	StageRefused  = view.StageRefused
)

// Updates says what people have to hear of one step of a workload.
func Updates(before, after Workload) []events.IncidentUpdated {
	return view.Updates(before.Shown(time.Time{}), after.Shown(time.Time{}))
}
