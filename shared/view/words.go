package view

// Phase says what an open incident waits for.
type Phase string

// The phases. Each has a deadline, except for the two waits that only a person or the cloud can end.
const (
	Saving        Phase = "saving"      // for the save to be acknowledged and verified
	Maintaining   Phase = "maintaining" // for the announced maintenance to be started now
	Window        Phase = "window"      // for the maintenance to pass
	Looking       Phase = "looking"     // for a reading of the API that explains the evidence
	PhaseGrace    Phase = "grace"       // for word of who deleted a slice that is gone without evidence
	Healing       Phase = "healing"     // for the provider to bring the slice back
	Approving     Phase = "approving"   // for a person's approval; no deadline
	PhaseDeleting Phase = "deleting"    // for the lost slice to be deleted and gone
	PhaseCreating Phase = "creating"    // for a new slice; no deadline while Spot capacity is missing
	Admitting     Phase = "admitting"   // for the lease to name the new incarnation
	Resuming      Phase = "resuming"    // for progress
	Restarting    Phase = "restarting"  // for the lease to name a new attempt
	Starting      Phase = "starting"    // for a stopped slice to be usable
	Watching      Phase = "watching"    // for the end of an incident that Pitstop may only watch
	Clearing      Phase = "clearing"    // for the slices of Pitstop's own requests to be gone
	Closed        Phase = "closed"      // for nothing
)

// Outcome is how an incident ended.
type Outcome string

// The five ends.
const (
	Resumed   Outcome = "resumed"   // training goes on, and ConfirmedBy says what proved it
	Withdrawn Outcome = "withdrawn" // the maintenance was cancelled
	Released  Outcome = "released"  // the owner took over or deleted the TPU
	Escalated Outcome = "escalated" // a person must act
	Observed  Outcome = "observed"  // policy said: only watch
)

// Confirmation is the proof that training goes on.
type Confirmation string

// The confirmations, best first.
const (
	ByStep       Confirmation = "step"
	ByCheckpoint Confirmation = "checkpoint"
	ByHealth     Confirmation = "health"
)

// LineKind is the kind of a timeline line.
type LineKind string

// The kinds of lines.
const (
	LineSeen    LineKind = "seen"    // evidence
	LineDecided LineKind = "decided" // the next step, and why
	LineAsked   LineKind = "asked"   // a call to the outside
	LineCame    LineKind = "came"    // the answer
	LineEnded   LineKind = "ended"   // the end
)

// Phases are all phases of an open incident.
func Phases() []Phase {
	return []Phase{
		Admitting, Approving, Clearing, PhaseCreating, PhaseDeleting, PhaseGrace, Healing, Looking, Maintaining, Restarting, Resuming, Saving, Starting,
		Watching, Window,
	}
}

// Outcomes are all ends of an incident.
func Outcomes() []Outcome { return []Outcome{Resumed, Withdrawn, Released, Escalated, Observed} }
