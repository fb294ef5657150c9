package incident

import "pitstop.internal/events"

// Code says in one word why something was refused, is held, was ignored, or ended without the training going on. Texts are
// for people and may change; codes are for programs and stay.
type Code string

// The codes. Codes has what each means.
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

	// What the owner says.
	CodePaused           Code = "paused"
	CodeBraked           Code = "braked"
	CodePolicyUnreadable Code = "policy_unreadable"
	CodePolicyNo         Code = "policy_no"
	CodePolicyAsk        Code = "policy_ask"
	CodeEmptyMachine     Code = "empty_machine"
	CodeWatchOnly        Code = "watch_only"
	CodeOwner            Code = "owner"
	CodeTakenOver        Code = "taken_over"
	CodeWithdrawn        Code = "withdrawn"
	CodeCancelled        Code = "cancelled"
	CodeHangReport       Code = "hang_report"

	// What keeps a slice from being brought back.
	CodeUnread         Code = "unread"
	CodeAuditUnread    Code = "audit_log_unread"
	CodeNotReady       Code = "not_ready"
	CodeTaken          Code = "taken"
	CodeHoldsMore      Code = "holds_more"
	CodeThere          Code = "already_there"
	CodeNoSpec         Code = "no_spec"
	CodeNoLife         Code = "no_life"
	CodeUnverified     Code = "unverified"
	CodeOtherShape     Code = "other_shape"
	CodeNoLease        Code = "no_lease"
	CodeLeaseDoubted   Code = "lease_doubted"
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

	// What becomes of slices that an incident has left idle.
	CodeIdleDeleted Code = "idle_deleted"
	CodeMayTrain    Code = "may_train"

	// What keeps maintenance from being started before its window.
	CodeNotEarly Code = "not_early"
	CodeBegun    Code = "begun"

	// Messages from which nothing follows.
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

// Meaning is what a code says.
type Meaning struct {
	Code Code
	Text string
}

// Codes are all codes with their meanings, in the order of the README's table. The classes of failures and the ends of a save
// are codes too.
func Codes() []Meaning {
	return []Meaning{
		{CodeUnknownWorkload, "the request names a workload that is not in the ledger"},
		{CodeNoIncident, "no incident is open on the workload"},
		{CodeOtherIncident, "another incident is open than the one that asked"},
		{CodeStaleEpoch, "the epoch has risen since it was asked for: something was decided anew"},
		{CodeExpired, "nobody began it in its time; it is asked for again"},
		{CodeNotWanted, "the incident waits for it no longer"},
		{CodeAnswered, "it was carried out before"},
		{CodeNotDue, "it failed, and is tried again later"},
		{CodeNoSlice, "the workload has no such slice"},
		{CodeOtherLife, "the slice, or its queued resource, is another one by now than the one that was meant"},
		{CodeOvertaken, "another delivery, or another decision, was faster"},
		{CodeBodyDiffers, "the request came with another body than was sent; what the ledger says is done"},

		{CodePaused, "somebody has paused the workload, or everything"},
		{CodeBraked, "the bound on destructive calls of this hour is reached"},
		{CodePolicyUnreadable, "the policy file cannot be read, so nothing is allowed for the time being"},
		{CodePolicyNo, "the switch is no"},
		{CodePolicyAsk, "the switch is ask, and nobody has approved"},
		{CodeEmptyMachine, "there is no start-up script, so what is created again would stand empty, and nobody has approved"},
		{CodeWatchOnly, "the policy allows nothing at all"},
		{CodeOwner, "the owner deleted or stopped it"},
		{CodeHangReport, "the training hangs, and the policy's hang is report, or it is not known that it stands still"},
		{CodeTakenOver, "somebody else created or ordered it in the middle of the incident"},
		{CodeCancelled, "a person has cancelled it"},
		{CodeWithdrawn, "Google took the maintenance back before it began"},

		{CodeUnread, "the API, the specification or the place of the checkpoints cannot be read, and not to know is no reason to act"},
		{CodeAuditUnread, "the slice is gone, and the audit log, which would say who deleted it, cannot be read"},
		{CodeNotReady, "the slice is not usable now, or not as the life that was named"},
		{CodeTaken, "the name is another one's in that zone"},
		{CodeHoldsMore, "the queued resource holds another slice than those of the request"},
		{CodeThere, "what was asked for is so already, and no call was made"},
		{CodeNoSpec, "its specification was never read, so it cannot be created again"},
		{CodeNoLife, "it was never seen alive, so no deletion could name its life"},
		{CodeUnverified, "it still lives, and no checkpoint of its training has been verified"},
		{CodeOtherShape, "the order, or the training's batch, does not fit the other shape, or the policy does not name it any more"},
		{CodeNoLease, "there is no checkpoint directory, so there is no lease through which a crew could be asked"},
		{CodeLeaseDoubted, "the lease beside the checkpoints names an epoch, an attempt or a schema that nothing can have reached; retry replaces it"},
		{CodeNoCheckpoint, "there is no checkpoint from which another attempt could go on"},
		{CodeSeveralWorkers, "the API starts no TPU of several workers"},
		{CodeNoZone, "no zone can give the slice"},
		{CodeGaveUp, "the policy's give_up_after has passed"},
		{CodeBudget, "the restarts, or the replacements, without progress are spent"},
		{CodeRestartsADay, "the policy's restarts_per_day are spent"},
		{CodeSameError, "the training met the same error twice without a new step"},
		{CodeRetries, "the call failed as often as it may in a row"},
		{CodeUnanswered, "nobody began or answered the request, as often as it may be asked again"},
		{CodeOverdue, "the phase has reached its deadline"},
		{CodeAbuse, "Google suspects abuse; all automation has ended"},
		{CodeLeftBehind, "an incident that is over had ordered it, and nobody waits for it"},
		{CodeFinished, "the training was done before; whoever begins another finds its slice admitted"},

		{CodeIdleDeleted, "what an incident had left idle was deleted, because the policy's when_escalated is delete; retry brings it back"},
		{CodeMayTrain, "training runs, or nobody can tell that it does not, so what stands idle is kept"},

		{CodeNotEarly, "the maintenance cannot be started before its window"},
		{CodeBegun, "the maintenance has begun"},
		{SaveForbidden.Code(), "the policy does not allow to ask for a save"},
		{SaveUnheard.Code(), "nobody is there who could answer a request for a save"},
		{SaveUndelivered.Code(), "the request for a save could not be left anywhere"},
		{SaveUnanswered.Code(), "the request for a save was left for the crew, which did not answer in time"},
		{SaveRefused.Code(), "the crew cannot save, and says why"},
		{SaveIncomplete.Code(), "the save was acknowledged, and is not complete or not to be seen"},
		{SaveStale.Code(), "the save was acknowledged, and what is complete is older"},

		{Transient.Code(), "an error that may pass: it is tried again"},
		{Busy.Code(), "another change of the same resource is under way"},
		{NotInState.Code(), "the state of the resource does not allow the call"},
		{Stockout.Code(), "the zone has no capacity"},
		{Quota.Code(), "the project's quota is reached"},
		{NoQuota.Code(), "the project has no quota for it at all"},
		{ReservationFull.Code(), "the reservation is full"},
		{WrongZone.Code(), "the zone does not offer it"},
		{CannotMove.Code(), "something that the specification names is of another zone or region"},
		{OtherRegion.Code(), "the checkpoints are in another region, and the policy does not allow that"},
		{Exists.Code(), "the API says that the name is taken"},
		{NotFound.Code(), "the API does not know it"},
		{Permission.Code(), "the function's account may not do that"},
		{Invalid.Code(), "the API, or the bucket, refuses the request as wrong"},

		{CodeNotMine, "the message is of a kind that this function does not handle"},
		{CodeNotWatched, "the project is not watched"},
		{CodeNoSink, "the entry did not come through a log sink"},
		{CodeNothing, "nothing follows from the entry; explain says why"},
		{CodeUnknownNode, "the node is not known"},
		{CodeFormerLife, "the crew is that of a former life of the slice"},
		{CodeOldTick, "the tick is old, and the next one is on its way"},
		{CodeTicking, "another tick is under way"},
		{CodeUnknownCanary, "the canary is not the last one, or was back before"},
		{CodeNobodyTold, "nobody is to be told: no target is configured"},
		{CodeTold, "it was told already, or something newer is"},
		{CodeNoSuchIncident, "the update names an incident that is not in the ledger"},
		{CodePassing, "the incident is in a phase that passes in seconds; the next one is told"},
	}
}

// watchCode is why nothing is done in an incident that is only watched.
func (m *machine) watchCode() Code {
	if m.p.Unreadable != "" {
		return CodePolicyUnreadable
	}
	if m.w.Incident.Troubles[0].Cause == events.CauseHang && !m.watchOnly() {
		return CodeHangReport
	}
	return CodeWatchOnly
}

// Code is the class as a reason.
func (c FailureClass) Code() Code { return Code(c) }

// Code is the end of a save as a reason.
func (r SaveResult) Code() Code { return Code("save_" + r) }

// Reason is the code of a failure: its own, where what failed was no call of a provider, else its class.
func (f Failure) Reason() Code {
	if f.Code != "" {
		return f.Code
	}
	return f.Class.Code()
}

// RefusedError is why a request must not be carried out.
type RefusedError struct {
	Code Code
	Text string
}

func (r *RefusedError) Error() string { return "refused: " + r.Text }

// Is has every refusal be ErrRefused.
func (r *RefusedError) Is(target error) bool { return target == ErrRefused }
