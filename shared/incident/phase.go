package incident

import "time"

// Phase is where an open incident stands: what it waits for.
type Phase string

// The phases. Each has a deadline, but for the two waits that only a person or the cloud can end.
const (
	Saving        Phase = "saving"      // for the save to be acknowledged and verified
	Maintaining   Phase = "maintaining" // for the announced maintenance to be started now
	Window        Phase = "window"      // for the maintenance to pass
	Looking       Phase = "looking"     // for a reading of the API that explains the evidence
	PhaseGrace    Phase = "grace"       // for word of who deleted a slice that is gone without evidence
	Healing       Phase = "healing"     // for Google to bring the slice back
	Approving     Phase = "approving"   // for a person's yes; no deadline
	PhaseDeleting Phase = "deleting"    // for what is lost to be deleted and gone
	PhaseCreating Phase = "creating"    // for a new slice; no deadline while Spot capacity is what is missing
	Admitting     Phase = "admitting"   // for the lease to name the new incarnation
	Resuming      Phase = "resuming"    // for progress
	Restarting    Phase = "restarting"  // for the lease to name a new attempt
	Starting      Phase = "starting"    // for a slice that was stopped to be usable
	Watching      Phase = "watching"    // for the end of what may only be watched
	Clearing      Phase = "clearing"    // for what our own requests still bring to be gone
	Discarding    Phase = "discarding"  // for what an earlier incident left idle to be gone
	Closed        Phase = "closed"      // for nothing
)

// How long things may take. Whatever is faster than a minute depends on events, not on these.
const (
	// Linger is how long a closed incident stays in the document. It is longer than the latest log entry takes, and so
	// is Grace, the time in which a slice that is gone without evidence may turn out to have been deleted by its owner.
	Linger = 35 * time.Minute
	Grace  = 35 * time.Minute
	// AuditFor is how long, after the grace, an audit log that cannot be read is waited for before a person is told.
	AuditFor = 2 * time.Hour
	// UnreleaseAfter is how long a slice that its owner deleted may still show itself usable before the deletion is
	// taken not to have happened.
	UnreleaseAfter = 15 * time.Minute
	// TakeOverFor is how long a training may go on at the longest that the lease does not name any more.
	TakeOverFor = 6 * time.Minute
	// SickFor is how long a slice may be unusable in quiet times before that is an incident.
	SickFor = 5 * time.Minute
	// LookFor bounds the search for a reading that explains the evidence.
	LookFor = 30 * time.Minute
	// SaveFor is the time for a save that cannot wait: what maintenance grants a process that handles SIGTERM.
	SaveFor = 5 * time.Minute
	// SavedFor is how long a verified save needs no other one before maintenance that is started early.
	SavedFor = 10 * time.Minute
	// NoticeFor is how long after the last word of maintenance that of the workload's other slices is waited for, before it
	// is started early.
	NoticeFor = 10 * time.Minute
	// HeardFor is how old a sign of life of a crew may be: it writes one each half minute, and a line each five minutes.
	// ListenEvery is how often a crew that gives none is listened for again while maintenance is announced.
	HeardFor    = 15 * time.Minute
	ListenEvery = time.Hour
	// HangFor is how long a training may do no step at the least before it is taken to hang, and NoGapFor how long where it
	// is not known yet how far steps lie apart. ListenAgain is how often the crew of one that may hang is listened for.
	HangFor     = 15 * time.Minute
	NoGapFor    = 2 * time.Hour
	ListenAgain = 5 * time.Minute
	// HearFor is how long a decision waits for the crew's verdict, and for how long what was read, or could not be, is not read again.
	HearFor = 10 * time.Minute
	// ProbeFor is how long after a line about the end of the training patrol reads the crew's guest attribute for its verdict.
	ProbeFor = 30 * time.Minute
	// ProveEvery is how often patrol reads a crew's guest attribute for steps, where no checkpoint directory could prove them.
	ProveEvery = time.Hour
	// StruckWithin is how near to an exit 0 a loss, a restart or maintenance of the slice proves it a save and no end: Google
	// sends SIGTERM to a training that checkpoints itself up to five minutes before maintenance, and word of it comes late.
	StruckWithin = 15 * time.Minute
	// MaintainFor bounds the call that starts maintenance early.
	MaintainFor = 15 * time.Minute
	// HealFor is the time for Google's own recovery, counted from the end of the window where there is one.
	HealFor = 4 * time.Hour
	// RemoveFor bounds a deletion, AdmitFor and RestartFor the writing of a lease.
	RemoveFor  = 45 * time.Minute
	AdmitFor   = 20 * time.Minute
	RestartFor = 20 * time.Minute
	// BarredFor bounds a deletion that the state forbids, from the first refusal on: a queued resource stays in PROVISIONING
	// for an hour or two, and cannot be deleted there. BarredEvery is how often it is tried.
	BarredFor   = 6 * time.Hour
	BarredEvery = 5 * time.Minute
	// RecreateFor bounds the creation of what is not Spot.
	RecreateFor = 24 * time.Hour
	// ResumeFor is the time from a usable slice to the first progress: start-up, compilation, restore.
	ResumeFor = 30 * time.Minute
	// StartFor bounds the start of a slice that was stopped.
	StartFor = 45 * time.Minute
	// CheckFor is the time for a last look at the checkpoints where no crew can tell of steps.
	CheckFor = 10 * time.Minute
	// WatchFor bounds an incident that may only be watched.
	WatchFor = 4 * time.Hour
	// ClearFor bounds the clean-up behind an incident.
	ClearFor = 2 * time.Hour
	// DiscardFor is the time to learn whether idle slices may be deleted: whether training runs there, and what of it is saved.
	DiscardFor = 30 * time.Minute
	// RequestFor is how long a request may wait to be begun, AnswerFor how long a begun one may stay unanswered.
	RequestFor = 10 * time.Minute
	AnswerFor  = 15 * time.Minute
	// HeldForMost is for how long the deadlines of an incident move because it is held: a weekend's pause. Then a person is told.
	HeldForMost = 72 * time.Hour
	// CallWithin is how soon a call has to be made once it is begun, and CallFor how long nobody else begins it then: what
	// was called at the last moment has reached the provider by that time.
	CallWithin = time.Minute
	CallFor    = 3 * time.Minute
	// OperationFor is how long an operation of the provider may run before the effect is looked at anew.
	OperationFor = 4 * time.Hour
	// CapacityEvery is how often capacity is asked for, plus up to as much again; a long wait is told of after RemindFirst,
	// and each time that it has lasted for RemindEvery more.
	CapacityEvery = time.Minute
	// QuotaEvery is how often a zone is asked again where it is the project's own limit that is in the way.
	QuotaEvery  = 10 * time.Minute
	RemindFirst = time.Hour
	RemindEvery = 6 * time.Hour
)

// How often things may be tried without verified progress.
const (
	// MaxRestarts is the training budget of a workload: requests for a restart.
	MaxRestarts = 3
	// MaxRecreates is the infrastructure budget of a workload: a zone may serve the same bad host again and again.
	MaxRecreates = 10
	// MaxStarts is how often one incident starts what is stopped.
	MaxStarts = 5
	// MaxFailures ends an effect that fails in a row for reasons other than capacity.
	MaxFailures = 8
)

// backoff is the time before try n of an effect that failed, n from 1.
func backoff(n int) time.Duration {
	return min(time.Minute<<min(n-1, 4), 10*time.Minute)
}
