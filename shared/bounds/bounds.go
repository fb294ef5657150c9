// Package bounds says how long things may take, how often they may be tried, and how much is remembered. What an owner may bound is in
// shared/policy.
package bounds

import "time"

// How long things may take. Anything faster than a minute depends on events, not on these.
const (
	// Linger is how long a closed incident stays in the document. It is longer than the latest log entry takes. So is Grace, the
	// time in which a slice that is gone without evidence may turn out to have been deleted by its owner.
	Linger = 35 * time.Minute
	Grace  = 35 * time.Minute
	// AuditFor is the wait, after the grace, for an audit log that cannot be read, before Pitstop tells a person.
	AuditFor = 2 * time.Hour
	// UnreleaseAfter is how long a slice that its owner deleted may still show itself usable. After that, Pitstop assumes that the
	// deletion did not happen.
	UnreleaseAfter = 15 * time.Minute
	// TakeOverFor is the longest time for which a training may go on after the lease stops naming it.
	TakeOverFor = 6 * time.Minute
	// SickFor is how long a slice may be unusable in quiet times before that is an incident.
	SickFor = 5 * time.Minute
	// LookFor bounds the search for a reading that explains the evidence.
	LookFor = 30 * time.Minute
	// SaveFor is the time for a save that cannot wait: the time that maintenance grants a process that handles SIGTERM.
	SaveFor = 5 * time.Minute
	// SavedFor is how long a verified save makes another one unnecessary before maintenance that is started early.
	SavedFor = 10 * time.Minute
	// NoticeFor is the wait for the maintenance notices of the workload's other slices, counted from the last notice, before the
	// maintenance is started early.
	NoticeFor = 10 * time.Minute
	// HeardFor is how old a sign of life of a crew may be: a crew writes one every half minute, and a line every five minutes.
	// ListenEvery is how often Pitstop listens again for a crew that gives none while maintenance is announced.
	HeardFor    = 15 * time.Minute
	ListenEvery = time.Hour
	// QuietFor is from when a silence is shown: a crew writes a line every five minutes, and one may be lost.
	QuietFor = 10 * time.Minute
	// HangFor is the shortest time without a step after which Pitstop considers a training hung. NoGapFor is that time where the
	// distance between steps is not known yet. ListenAgain is how often Pitstop listens for the crew of a training that may hang.
	HangFor     = 15 * time.Minute
	NoGapFor    = 2 * time.Hour
	ListenAgain = 5 * time.Minute
	// HearFor is how long a decision waits for the crew's verdict, and the time before a verdict that was read, or could not be, is
	// read again.
	HearFor = 10 * time.Minute
	// ProbeFor is how long after a line about the end of the training patrol reads the crew's guest attribute for its verdict.
	ProbeFor = 30 * time.Minute
	// ProveEvery is how often patrol reads a crew's guest attribute for steps, where no checkpoint directory could prove them.
	ProveEvery = time.Hour
	// StruckWithin bounds the time between an exit 0 and a loss, a restart or maintenance of the slice that proves the exit to be a
	// save and no end. Google sends SIGTERM to a training that checkpoints itself up to five minutes before maintenance, and word
	// of it comes late.
	StruckWithin = 15 * time.Minute
	// NoticedFor is how long before Google takes a machine back it says so at most, and what runs on the machine ends.
	// https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
	NoticedFor = 2 * time.Minute
	// MaintainFor bounds the call that starts maintenance early.
	MaintainFor = 15 * time.Minute
	// HealFor is how long the provider has to bring a slice back; healedBy says from when.
	HealFor = 4 * time.Hour
	// RemoveFor bounds a deletion; AdmitFor and RestartFor bound the write of a lease.
	RemoveFor  = 45 * time.Minute
	AdmitFor   = 20 * time.Minute
	RestartFor = 20 * time.Minute
	// BarredFor bounds a deletion that the state forbids, from the first refusal on: a queued resource stays in PROVISIONING for an
	// hour or two, and cannot be deleted there. BarredEvery is how often Pitstop tries it.
	BarredFor   = 6 * time.Hour
	BarredEvery = 5 * time.Minute
	// RecreateFor bounds the creation of a slice that is not Spot.
	RecreateFor = 24 * time.Hour
	// ResumeFor is the time from a usable slice to the first progress: start-up, compilation, restore.
	ResumeFor = 30 * time.Minute
	// StartFor bounds the start of a slice that was stopped.
	StartFor = 45 * time.Minute
	// CheckFor is the time for a last look at the checkpoints where no crew can report steps.
	CheckFor = 10 * time.Minute
	// WatchFor bounds an incident in which Pitstop may only watch.
	WatchFor = 4 * time.Hour
	// ClearFor bounds the clean-up after an incident.
	ClearFor = 2 * time.Hour
	// RequestFor is how long a request may wait to be begun, AnswerFor how long a begun one may stay unanswered.
	RequestFor = 10 * time.Minute
	AnswerFor  = 15 * time.Minute
	// HeldForMost bounds the time by which holds move an incident's deadlines: a weekend's pause. After it, Pitstop tells a person.
	HeldForMost = 72 * time.Hour
	// CallWithin is how soon an instance must make a call that it has begun. CallFor is how long no other instance begins that
	// call: by then, a call made at the last moment has reached the provider.
	CallWithin = time.Minute
	CallFor    = 3 * time.Minute
	// OperationFor is how long an operation of the provider may run before Pitstop looks at the effect again.
	OperationFor = 4 * time.Hour
	// CapacityEvery is how often Pitstop asks for capacity, plus up to as much again. It reports a long wait after RemindFirst, and
	// again each time that the wait has lasted for RemindEvery more.
	CapacityEvery = time.Minute
	// QuotaEvery is how often a zone is asked again where the project's own limit is the obstacle.
	QuotaEvery = 10 * time.Minute
	// QueueFor is how long an order waits in a queue at least before it leaves it for another place.
	QueueFor    = 10 * time.Minute
	RemindFirst = time.Hour
	RemindEvery = 6 * time.Hour
)

// How often things may be tried without verified progress.
const (
	// MaxRestarts is the training budget of a workload: requests for a restart.
	MaxRestarts = 3
	// MaxRecreates is the infrastructure budget of a workload: a zone may give the same bad host again and again.
	MaxRecreates = 10
	// MaxStarts is how often one incident starts stopped slices.
	MaxStarts = 5
	// MaxFailures ends an effect that fails so often in a row, for reasons other than capacity. Saves, early maintenance and deletions that a
	// state forbids end with their phase instead.
	MaxFailures = 8
)

// MaxLines bounds a timeline: the first and the last half stay. The bound is lower where lines are long.
const MaxLines = 200

// MaxOrders is how many orders a workload keeps; the orders on an incident stand in its timeline too.
const MaxOrders = 20

// LookEvery is how often Pitstop looks again for a checkpoint that it waits for.
const LookEvery = time.Minute
