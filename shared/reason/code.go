// Package reason has the reasons of Pitstop as data: a code for each of them, with its meaning. A class of failure and the end of a save
// are reasons too. Every decision and every function gives its reasons in these terms, so the package knows neither.
package reason

// Code says in one word why something was refused, is held, was ignored, or ended without the training going on. Texts are for
// people and may change; codes are for programs and stay.
type Code string

// The codes. Codes gives the meaning of each.
const (
	// Requests that are not wanted any more.
	CodeUnknownWorkload Code = "unknown_workload"
	CodeNoIncident      Code = "no_incident"
	CodeOtherIncident   Code = "other_incident"
	CodeStaleEpoch      Code = "stale_epoch"
	CodeExpired         Code = "expired"
	CodeNotWanted       Code = "not_wanted"
	CodeAnswered        Code = "answered"
	CodeNotDue          Code = "not_due"
	CodeNoSlice         Code = "no_slice"
	CodeOtherLife       Code = "other_life"
	CodeOvertaken       Code = "overtaken"
	CodeBodyDiffers     Code = "body_differs"

	// Decisions of the owner.
	CodePaused           Code = "paused"
	CodeBraked           Code = "braked"
	CodePolicyUnreadable Code = "policy_unreadable"
	CodePolicyNo         Code = "policy_no"
	CodePolicyAsk        Code = "policy_ask"
	CodeEmptyMachine     Code = "empty_machine"
	CodeSpendAtMost      Code = "spend_at_most"
	CodeWatchOnly        Code = "watch_only"
	CodeOwner            Code = "owner"
	CodeTakenOver        Code = "taken_over"
	CodeWithdrawn        Code = "withdrawn"
	CodeNotMoved         Code = "not_moved"
	CodeCancelled        Code = "cancelled"
	CodeHangReport       Code = "hang_report"

	// Reasons why a slice is not brought back.
	CodeUnread         Code = "unread"
	CodeAuditUnread    Code = "audit_log_unread"
	CodeNotReady       Code = "not_ready"
	CodeTaken          Code = "taken"
	CodeHoldsMore      Code = "holds_more"
	CodeThere          Code = "already_there"
	CodeNoSpec         Code = "no_spec"
	CodeKept           Code = "kept"
	CodeNoLife         Code = "no_life"
	CodeUnverified     Code = "unverified"
	CodeOtherShape     Code = "other_shape"
	CodeOtherCapacity  Code = "other_capacity"
	CodeNoLease        Code = "no_lease"
	CodeLeaseDoubted   Code = "lease_doubted"
	CodeForeign        Code = "foreign"
	CodeNoCheckpoint   Code = "no_checkpoint"
	CodeSeveralWorkers Code = "several_workers"
	CodeNoZone         Code = "no_zone"
	CodeGaveUp         Code = "gave_up"
	CodeBudget         Code = "budget"
	CodeRestartsADay   Code = "restarts_a_day"
	CodeSameError      Code = "same_error"
	CodeRetries        Code = "retries_spent"
	CodeUnanswered     Code = "unanswered"
	CodeOverdue        Code = "overdue"
	CodeAbuse          Code = "abuse"
	CodeLeftBehind     Code = "left_behind"
	CodeFinished       Code = "finished"

	// The reason why maintenance is not started before its window.
	CodeNotEarly Code = "not_early"

	// Messages that lead to nothing.
	CodeNotMine        Code = "not_mine"
	CodeNotWatched     Code = "not_watched"
	CodeNoSink         Code = "no_sink"
	CodeNothing        Code = "nothing_follows"
	CodeUnknownNode    Code = "unknown_node"
	CodeFormerLife     Code = "former_life"
	CodeOldTick        Code = "old_tick"
	CodeTicking        Code = "tick_under_way"
	CodeUnknownCanary  Code = "unknown_canary"
	CodeNobodyTold     Code = "nobody_told"
	CodeTold           Code = "told"
	CodeNoSuchIncident Code = "no_such_incident"
	CodePassing        Code = "passing"
)

// Meaning is the meaning of a code.
type Meaning struct {
	Code Code
	Text string
}

// Codes are all codes with their meanings, in the order of the README's table. The classes of failures and the ends of a save are
// codes too.
func Codes() []Meaning {
	return []Meaning{
		{CodeUnknownWorkload, "the request names a workload that is not in the ledger"},
		{CodeNoIncident, "no incident is open on the workload"},
		{CodeOtherIncident, "the open incident is not the one that asked"},
		{CodeStaleEpoch, "the epoch has risen since the request: a newer decision replaces it"},
		{CodeExpired, "no function began the request in time; Pitstop asks again"},
		{CodeNotWanted, "the incident no longer waits for it"},
		{CodeAnswered, "a function has carried it out already"},
		{CodeNotDue, "it failed, and the next try comes later"},
		{CodeNoSlice, "the workload has no such slice"},
		{CodeOtherLife, "the slice, or its queued resource, has been replaced since the request"},
		{CodeOvertaken, "another delivery or another decision was faster"},
		{CodeBodyDiffers, "the body of the request is not the one that Pitstop sent; Pitstop does what the ledger says"},

		{CodePaused, "somebody has paused the workload, or everything"},
		{CodeBraked, "the bound on destructive calls of this hour is reached"},
		{CodePolicyUnreadable, "the policy file cannot be read, so it allows nothing for now"},
		{CodePolicyNo, "the switch is no"},
		{CodePolicyAsk, "the switch is ask, and nobody has approved"},
		{CodeEmptyMachine, "there is no start-up script, so an empty machine would come back, and nobody has approved that"},
		{CodeSpendAtMost, "with another hour of it the policy's spend_at_most would be passed, and nobody has approved that"},
		{CodeWatchOnly, "the policy allows nothing at all"},
		{CodeOwner, "the owner deleted or stopped it"},
		{CodeHangReport, "the training hangs, and the policy's hang is report, or nobody knows that it stands still"},
		{CodeTakenOver, "somebody else created or ordered it during the incident"},
		{CodeCancelled, "a person has cancelled it"},
		{CodeNotMoved, "the training stays in the place where it stands, because no save was verified or the policy says so"},
		{CodeWithdrawn, "Google cancelled the maintenance before it began"},

		{CodeUnread, "the API, the specification or the place of the checkpoints cannot be read, and Pitstop does not act on a guess"},
		{CodeAuditUnread, "the slice is gone, and the audit log, which would name the caller, cannot be read"},
		{CodeNotReady, "the slice is not usable now, or has been replaced since"},
		{CodeTaken, "the name belongs to another TPU in that zone"},
		{CodeHoldsMore, "the queued resource holds a slice that the request does not name"},
		{CodeThere, "the result was there already, so Pitstop made no call"},
		{CodeKept, "nobody but its owner may replace it"},
		{CodeNoSpec, "Pitstop never read its specification, so it cannot create it again"},
		{CodeNoLife, "Pitstop never saw it alive, so a deletion could not name its life"},
		{CodeUnverified, "it still lives, and no checkpoint of its training has been verified"},
		{CodeOtherCapacity, "the slice cannot be created from the other capacity, or the policy no longer names it"},
		{CodeOtherShape, "the order or the training's batch does not fit the other shape, or the policy no longer names it"},
		{CodeNoLease, "there is no checkpoint directory, so there is no lease through which Pitstop could ask a crew"},
		{CodeLeaseDoubted, "the lease beside the checkpoints names an epoch, an attempt or a schema that nothing can have reached; retry replaces it"},
		{CodeForeign, "the lease or the save request beside the checkpoints belongs to another workload, so Pitstop leaves it"},
		{CodeNoCheckpoint, "there is no checkpoint from which another attempt could resume"},
		{CodeSeveralWorkers, "the API cannot start a TPU of several workers"},
		{CodeNoZone, "no zone can give the slice"},
		{CodeGaveUp, "the policy's give_up_after has passed"},
		{CodeBudget, "the restarts or the replacements without progress are spent"},
		{CodeRestartsADay, "the policy's restarts_per_day are spent"},
		{CodeSameError, "the training met the same error twice without a new step"},
		{CodeRetries, "the call failed as often in a row as it may"},
		{CodeUnanswered, "a call failed too often in a row, and no function began or answered the last request"},
		{CodeOverdue, "the phase has reached its deadline"},
		{CodeAbuse, "Google suspects abuse; all automation has ended"},
		{CodeLeftBehind, "a closed incident had ordered it, and nobody waits for it"},
		{CodeFinished, "the training was finished before; a new training finds its slice admitted"},

		{CodeNotEarly, "the maintenance cannot be started before its window"},
		{SaveForbidden.Code(), "the policy does not allow a request for a save"},
		{SaveUnheard.Code(), "no crew is there to answer a request for a save"},
		{SaveUndelivered.Code(), "the request for a save could not be written anywhere"},
		{SaveUnanswered.Code(), "the crew did not answer the request for a save in time"},
		{SaveRefused.Code(), "the crew cannot save, and says why"},
		{SaveIncomplete.Code(), "the crew acknowledged the save, but the checkpoint is incomplete or cannot be seen"},

		{Transient.Code(), "an error that may pass; Pitstop tries again"},
		{Busy.Code(), "another change of the same resource is under way"},
		{NotInState.Code(), "the state of the resource does not allow the call"},
		{Stockout.Code(), "the zone has no capacity"},
		{Quota.Code(), "the project's quota is reached"},
		{NoQuota.Code(), "the project has no quota for it at all"},
		{ReservationFull.Code(), "the reservation is full"},
		{WrongZone.Code(), "the zone does not offer it"},
		{CannotMove.Code(), "the specification names something of another zone or region"},
		{OtherRegion.Code(), "the checkpoints are in another region, and the policy does not allow that"},
		{Exists.Code(), "the API says that the name is taken"},
		{NotFound.Code(), "the API does not know it"},
		{Permission.Code(), "the function's account may not do that"},
		{Invalid.Code(), "the API, or the bucket, refuses the request as wrong"},

		{CodeNotMine, "this function does not handle messages of this kind"},
		{CodeNotWatched, "Pitstop does not watch the project"},
		{CodeNoSink, "the entry did not come through a log sink"},
		{CodeNothing, "nothing follows from the entry; explain says why"},
		{CodeUnknownNode, "no workload has this node"},
		{CodeFormerLife, "the crew belongs to a former life of the slice"},
		{CodeOldTick, "the tick is old, and the next one is on its way"},
		{CodeTicking, "another tick is under way"},
		{CodeUnknownCanary, "the canary is not the last one, or had come back before"},
		{CodeNobodyTold, "no target for notifications is configured"},
		{CodeTold, "people have this news already, or newer news"},
		{CodeNoSuchIncident, "the update names an incident that is not in the ledger"},
		{CodePassing, "the incident is in a phase that passes in seconds; the next message covers it"},
	}
}
