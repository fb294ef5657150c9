package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Schema is the version of the document that this release writes; it reads that one and the one before.
const Schema = 2

// Workload is the document of one workload: what trains, where, what is known of it, and the open incident if there is
// one. It is the unit of compare-and-swap, so one open incident is a fact and not a hope.
type Workload struct {
	Schema int `json:"schema"`
	// ID is project/name. The name is fixed at first sight and kept through every recreate.
	ID      string `json:"id"`
	Project string `json:"project"`
	Name    string `json:"name"`
	// Provider names the API that the slices come from.
	Provider string `json:"provider"`
	// Label is the value of pitstop-policy, or the values where slices have several: no policy is called so, and the workload is
	// watched. Directory is the value of pitstop-checkpoint-dir.
	Label     string `json:"label,omitzero"`
	Directory string `json:"directory,omitzero"`

	Slices []Slot `json:"slices"`
	// Seen is when the first of them was.
	Seen time.Time `json:"seen,omitzero"`
	// Epoch rises when an incident opens or ends and whenever a new request is sent, and by nothing else.
	Epoch    int64     `json:"epoch"`
	Incident *Incident `json:"incident,omitempty"`
	// Effects are what is wanted of the outside and is not known to be done.
	Effects []Effect `json:"effects,omitempty"`
	// Idle is what the incident that escalated last has left to be deleted.
	Idle *Idle `json:"idle,omitempty"`
	// Closed is the incident that ended last, kept for Linger so that late evidence finds it.
	Closed *Incident `json:"closed,omitempty"`
	// Ended is when that was, kept for good: what happened before then opens no other one, however late it is told.
	Ended time.Time `json:"ended,omitzero"`
	// Creators are the last incidents that are over and had begun to create: what comes of that late is theirs.
	Creators []Creator `json:"creators,omitempty"`
	Budgets  Budgets   `json:"budgets,omitzero"`
	Progress Progress  `json:"progress,omitzero"`
	Crew     Crew      `json:"crew,omitzero"`
	// Unbound are lines of crews whose life is not known yet.
	Unbound []Unbound `json:"unbound,omitempty"`
	// LeaseDoubted is when the lease beside the checkpoints was found to be beyond belief; none once ours is written.
	LeaseDoubted time.Time `json:"lease_doubted,omitzero"`
	Pace         Pace      `json:"pace,omitzero"`
	// PolicyHash names the policy file that was last decided on. Watched says that it allows nothing while a slice waits to be admitted.
	PolicyHash string `json:"policy_hash,omitzero"`
	Watched    bool   `json:"watched,omitzero"`
	Pause      *Pause `json:"pause,omitempty"`
	// Orders are the last words that people gave through the operator's command, the newest last.
	Orders []Spoken `json:"orders,omitempty"`
	// Outbox holds what has to be published before it may be forgotten.
	Outbox []events.Envelope `json:"outbox,omitempty"`
}

// HostsKnown reports whether nothing more is to be had of the host names of the slice's workers.
func (l Life) HostsKnown() bool { return l.Hosts != "" || l.HostsAsked }

// IsFormer reports whether a life is over because another one has come since. One that somebody began elsewhere before what we made,
// which is gone without having been admitted, is not.
func (s Slot) IsFormer(life events.Incarnation) bool {
	unused := s.Condition == Gone && !s.isAdmitted() && s.Zone != life.Zone && s.Admitted().Older(life)
	return life.Older(s.Incarnation) && !unused
}

// IsReleased reports whether the slice is its owner's business alone.
func (l Life) IsReleased() bool { return !l.End.Released.IsZero() }

// lives reports whether a reading showed a slice that is there to stay.
func (l Life) lives() bool {
	switch l.Condition {
	case Ready, Unhealthy, Stopped, Unclear:
		return true
	case Unread, Creating, Lost, Deleting, Gone:
	}
	return false
}

// Condition is what a reading of a slice amounts to, whoever provides it.
type Condition string

// The conditions of a slice.
const (
	Unread    Condition = ""          // never read
	Creating  Condition = "creating"  // it is being made, or waits for capacity
	Ready     Condition = "ready"     // it exists and claims to be usable
	Unhealthy Condition = "unhealthy" // it exists and is not usable now: maintenance, repair, restart
	Stopped   Condition = "stopped"   // somebody stopped it
	Lost      Condition = "lost"      // it exists by name only and will not come back: preempted, terminated
	Deleting  Condition = "deleting"  // it is on its way out
	Gone      Condition = "gone"      // the API does not know it
	Unclear   Condition = "unclear"   // the provider says something that is not known
)

// Notice is announced maintenance of a life. It is no incident by itself.
type Notice struct {
	events.Notice
	// LastWord is the time that the newest word of it gives itself: an older one does not undo it. A notice that is gone
	// stays until Linger is over, so that a straggler does not bring it back. InAPI says that a reading showed it too, so a reading without it means something.
	LastWord time.Time `json:"told"`
	InAPI    bool      `json:"in_api,omitzero"`
	// End says that it is no maintenance, but the planned end of the life: its window is the moment at which it ends.
	End bool `json:"end,omitzero"`
	// Due is when the save has to be requested.
	Due time.Time `json:"due,omitzero"`
	// Started is when it was started by us, before its window.
	Started time.Time `json:"started,omitzero"`
	// Listened is when a sign of life of the crew was looked for last, and Deaf why it would not answer a request, as far as
	// is known: it is told while there is time to mend it.
	Listened time.Time `json:"listened,omitzero"`
	Deaf     string    `json:"deaf,omitzero"`
	// Declined says that a person cancelled what was being done about this window: it is let come.
	Declined bool `json:"declined,omitzero"`
}

// Creator is an incident that is over and had begun to create slices, and when it was open.
type Creator struct {
	Incident string    `json:"incident"`
	Opened   time.Time `json:"opened"`
	Closed   time.Time `json:"closed"`
	// ReportedSlices are those of which something was found that came late.
	ReportedSlices []string `json:"told,omitempty"`
}

// Budgets are spent without verified progress and refilled by it.
type Budgets struct {
	// Restarts counts requests for a training restart; Recreates counts replacements, each of one slice or of several at once.
	Restarts  int `json:"restarts,omitzero"`
	Recreates int `json:"recreates,omitzero"`
	// Since is when the first of them was spent: only progress made after that refills them.
	Since time.Time `json:"since,omitzero"`
}

// Progress is the last progress of the training that was reported.
type Progress struct {
	Step    int64     `json:"step,omitzero"`
	At      time.Time `json:"at,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	// High is the highest step ever reported. Proven is the highest one that a checkpoint or the crew's guest attribute showed:
	// only what passes it refills the budgets.
	High   int64 `json:"high,omitzero"`
	Proven int64 `json:"proven,omitzero"`
	// Stepped is a later step that the crew wrote down on its machine. GapSeconds is the longest time between two reports of
	// steps of one attempt in quiet times. StallReported is when a person was told last that the training stands still.
	Stepped       time.Time `json:"stepped,omitzero"`
	GapSeconds    int64     `json:"gap_seconds,omitzero"`
	StallReported time.Time `json:"told,omitzero"`
	// CheckpointStep is the last complete checkpoint, as the crew reports it; Verified is the last one that was looked
	// at and found complete, and VerifiedAt is when it was written.
	CheckpointStep int64     `json:"checkpoint_step,omitzero"`
	Verified       int64     `json:"verified,omitzero"`
	VerifiedAt     time.Time `json:"verified_at,omitzero"`
	VerifiedURI    string    `json:"verified_uri,omitzero"`
	// VerifiedBytes is what it holds at least.
	VerifiedBytes int64 `json:"verified_bytes,omitzero"`
	// CheckpointAt is when CheckpointStep was first told of.
	CheckpointAt time.Time `json:"checkpoint_at,omitzero"`
}

// Pace is how long the training takes to save, in seconds, the newest last: by it the save before a window is requested in
// time.
type Pace struct {
	// Saves are from requests to the end of the checkpoint, in the mode in which they were made.
	Saves []int64         `json:"saves,omitempty"`
	Mode  events.SaveMode `json:"mode,omitzero"`
	// Gaps are between two checkpoints of one attempt, as the crew tells of them.
	Gaps []int64 `json:"gaps,omitempty"`
}

// Crew is what is known of the training side.
type Crew struct {
	// Seen is when a crew of this workload first spoke; zero means that there is none.
	Seen time.Time `json:"seen,omitzero"`
	// Since is since when attempts count as they do; older lines are of another training. Zero is always.
	Since time.Time `json:"since,omitzero"`
	// Attempt is the newest training attempt that was started, at Started, Exited the newest that ended.
	Attempt int       `json:"attempt,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Exited  int       `json:"exited,omitzero"`
	// LeaseAttempt is the attempt that the lease was asked to name last.
	LeaseAttempt int `json:"named,omitzero"`
	// GaveUp is the attempt after which the crew's own restarts were spent.
	GaveUp int `json:"gave_up,omitzero"`
	// Error is the last error of the training's own, Spent the one on which the crew gave up last.
	Error Error `json:"error,omitzero"`
	Spent Error `json:"spent,omitzero"`
	// Left is when what the training met was left to a person last: what happened before is told.
	Left time.Time `json:"left,omitzero"`
	// Theirs says that a person has taken over what it met: until there is a new step, its lines open nothing.
	Theirs bool `json:"theirs,omitzero"`
	// Claim is what a line last said of the end of the training. A line is a hint: only the crew's verdict counts.
	Claim Claim `json:"claim,omitzero"`
	// Finished says that the crew's verdict calls the training done: nothing is brought back any more. FinishedAt is when the
	// training ended. Certain says that it reached the step that its owner named as the last one.
	Finished   bool      `json:"finished,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Certain    bool      `json:"certain,omitzero"`
	// Done is the attempt that a verdict called the last one. It stays when a later line takes Finished back, until the verdict
	// is read again.
	Done int `json:"done,omitzero"`
	// NotDone is the attempt whose exit 0 proved to be a save: something struck the slice at about that time.
	NotDone int `json:"not_done,omitzero"`
	// Restarted is when restarts were asked for in the last day.
	Restarted []time.Time `json:"restarted,omitempty"`
}

// Claim is what a line of the crew said of the end of an attempt, and no verdict has confirmed.
type Claim struct {
	Attempt int `json:"attempt,omitzero"`
	// Finished says that the line called the training done; otherwise it said that the crew gave up. Unconfirmed says that the
	// crew's verdict was looked for and did not say so.
	Finished    bool `json:"finished,omitzero"`
	Unconfirmed bool `json:"unconfirmed,omitzero"`
	// At is when, by the line's own time.
	At time.Time `json:"at,omitzero"`
	// ProbeUntil is until when patrol reads the crew's guest attribute for a verdict; zero once that is over.
	ProbeUntil time.Time `json:"probe_until,omitzero"`
}

// knownRunning reports whether an attempt is known to have begun, and not to have ended: only of such a one its silence tells that it hangs.
func (c Crew) knownRunning(attempt int) bool {
	return attempt <= c.Attempt && attempt > max(c.Exited, c.GaveUp)
}

// Error is how a training attempt failed.
type Error struct {
	Attempt int `json:"attempt,omitzero"`
	// At is when the first worker failed, by its line's own time.
	At time.Time `json:"at,omitzero"`
	// Sign tells one error from another; see events.CrewReport.
	Sign string `json:"sign,omitzero"`
	// High is the highest step ever reported by then.
	High int64 `json:"high,omitzero"`
	// Exit is how it ended; no decision reads it.
	Exit events.Exit `json:"exit,omitzero"`
}

// repeats reports whether an error is the same as one before, and no new step was done in between.
func (e Error) repeats(o Error) bool { return e.Sign != "" && e.Sign == o.Sign && e.High == o.High }

// Pause holds every mutating call for a workload. Until is when it ends, by the clock of whoever paused.
type Pause struct {
	By    string    `json:"by"`
	Why   string    `json:"why,omitzero"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"`
}

// PauseMargin is how long after its end a pause still holds: by then the clock of every instance has passed that end.
const PauseMargin = time.Minute

// Holds reports whether the pause holds calls at this moment of whichever clock.
func (p *Pause) Holds(now time.Time) bool {
	return p != nil && (p.Until.IsZero() || now.Before(p.Until.Add(PauseMargin)))
}

// Incident is one interruption of a workload.
type Incident struct {
	ID    string       `json:"id"`
	Cause events.Cause `json:"cause"`
	// Opened and Closed are by the clock of the function that decided.
	Opened time.Time `json:"opened"`
	Closed time.Time `json:"closed,omitzero"`

	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// Deadline ends the phase; zero for the two waits that have none.
	Deadline time.Time `json:"deadline,omitzero"`

	// Switches are those at the opening: a tightened policy counts at the next step, a loosened one at the next
	// incident.
	Switches policy.Switches `json:"switches"`
	// Limits says who limited each switch then.
	Limits policy.Limits `json:"limits,omitempty"`
	// Policy is the name under which it was decided, ChipHourPrice the policy's price at the opening.
	Policy        string  `json:"policy,omitzero"`
	ChipHourPrice float64 `json:"chip_hour_price,omitzero"`

	// Troubles are what went wrong, in the order in which it was learned.
	Troubles []Trouble `json:"troubles"`
	// Calls are what was called outside on its behalf, oldest first; CallsLeftOut counts those that the bound cost.
	Calls        []Call    `json:"calls,omitempty"`
	CallsLeftOut int       `json:"calls_left_out,omitzero"`
	Save         Save      `json:"save,omitzero"`
	Zones        []Refusal `json:"zones,omitempty"`
	// Before are slices that come in another shape, as they were.
	Before []Before `json:"before,omitempty"`

	// Baseline is the step that progress has to pass, and BaseAttempt the training attempt at the time of the trouble.
	Baseline    int64 `json:"baseline"`
	BaseAttempt int   `json:"base_attempt"`
	// Down is when the training stopped, as far as is known; zero while it still runs.
	Down time.Time `json:"down,omitzero"`
	// Begun says that the maintenance has been seen under way.
	Begun bool `json:"begun,omitzero"`
	// Look says that somebody has to read the API.
	Look bool `json:"look,omitzero"`
	// Uncharged says that the replacement which was decided last is charged to nobody: what it replaces ended as planned.
	Uncharged bool `json:"uncharged,omitzero"`
	// Created says that a creation was begun.
	Created bool `json:"created,omitzero"`
	// Of is the incident that left idle what this one deletes: the one that people were told of.
	Of string `json:"of,omitzero"`
	// Kept is why no more of it is deleted than what was being deleted when somebody had a word.
	Kept Kept `json:"kept,omitzero"`
	// HearBy is until when a decision waits for the crew's verdict; zero where none waits. HeardAt is when the verdict was read
	// last, or could not be.
	HearBy  time.Time `json:"hear_by,omitzero"`
	HeardAt time.Time `json:"heard_at,omitzero"`
	// Retried says that a person opened it, to have tried again what was given up.
	Retried bool `json:"retried,omitzero"`
	// Charged counts the training restarts that this incident spent, so that they can be refunded.
	Charged int `json:"charged,omitzero"`
	// Asked is the action that waits for approval, Approved the one that was approved last, Held why a mutating call
	// waits.
	Asked    events.Action `json:"asked,omitzero"`
	Approved events.Action `json:"approved,omitzero"`
	Held     string        `json:"held,omitzero"`
	HeldCode Code          `json:"held_code,omitzero"`
	// HeldSeconds is by how much its deadlines have moved because it was held. HeldUntil is until when that is counted in this phase.
	HeldSeconds int64     `json:"held_seconds,omitzero"`
	HeldUntil   time.Time `json:"held_until,omitzero"`
	// Granted says that a person has said yes to what is asked, and nobody has gone on with it yet.
	Granted bool `json:"granted,omitzero"`
	// WaitingSince is when capacity was first refused, and Reminded when the wait was last told.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	Reminded     time.Time `json:"reminded,omitzero"`
	// Error is how the last attempt ended that failed in this incident.
	Error Error `json:"error,omitzero"`
	// Starts is how often what is stopped was started.
	Starts int `json:"starts,omitzero"`
	// Slow is when a creation that was accepted had not ended in its time, and was given as much again.
	Slow time.Time `json:"slow,omitzero"`
	// Clearing is the outcome that stands behind the clean-up of what our own requests still bring.
	Clearing Outcome `json:"clearing,omitzero"`

	Outcome     Outcome      `json:"outcome,omitzero"`
	ConfirmedBy Confirmation `json:"confirmed_by,omitzero"`
	Reason      string       `json:"reason,omitzero"`
	// Code is the reason of an end other than resumed, in one word.
	Code Code `json:"code,omitzero"`
	// Advice is what a person has to do.
	Advice string `json:"advice,omitzero"`
	// Would is what would have been done, had the policy allowed it.
	Would []string `json:"would,omitempty"`
	// Plan are the calls that would have been made, exactly.
	PlannedCalls []Planned `json:"plan,omitempty"`
	// Revision counts the attributions of the closed incident.
	Revision int    `json:"revision,omitzero"`
	Timeline []Line `json:"timeline"`
	// LeftOut counts the lines in the middle that the bound on the timeline cost.
	LeftOut int `json:"left_out,omitzero"`
}

// Trouble is one thing that went wrong within an incident, charged for itself.
type Trouble struct {
	Cause events.Cause `json:"cause"`
	Slice string       `json:"slice,omitzero"`
	At    time.Time    `json:"at"`
	Text  string       `json:"text,omitzero"`
	// Life is the provider's ID of the life of the slice that it happened to.
	Life string `json:"life,omitzero"`
	// Announced says that it has not happened yet.
	Announced bool `json:"announced,omitzero"`
	// Proven says that the API or an audit log showed it, and not the training side alone.
	Proven bool `json:"proven,omitzero"`
}

// Save is the save that the incident asked for.
type Save struct {
	ID        string    `json:"id,omitzero"`
	Requested time.Time `json:"requested,omitzero"`
	// Left is when the request was put where the crew reads it. It is delivered when the crew has acknowledged it.
	Left  time.Time `json:"delivered,omitzero"`
	Acked time.Time `json:"acked,omitzero"`
	// Step is what the crew acknowledged; At and Bytes are when the checkpoint was complete, and what it holds at least.
	Step     int64     `json:"step,omitzero"`
	At       time.Time `json:"at,omitzero"`
	Bytes    int64     `json:"bytes,omitzero"`
	Verified bool      `json:"verified,omitzero"`
	// Nothing says that there is nothing to be saved: no step was ever told of, and no checkpoint was ever written.
	Nothing bool `json:"nothing,omitzero"`
	// Result is how it ended, or how it stands after a look that found nothing; empty while nothing is known. Failed says why
	// there is no verified save.
	Result SaveResult `json:"result,omitzero"`
	Failed string     `json:"failed,omitzero"`
}

// SaveResult is how a save ended.
type SaveResult string

// The ends of a save, best first.
const (
	SaveVerified    SaveResult = "verified"    // complete and verified in time
	SaveLate        SaveResult = "late"        // complete and verified behind its deadline: it counts as progress
	SaveStale       SaveResult = "stale"       // acknowledged, and what is complete is older than the request or the last one
	SaveIncomplete  SaveResult = "incomplete"  // acknowledged, and not complete, or not to be seen, in time
	SaveUnanswered  SaveResult = "unanswered"  // left for the crew, which has not answered in time
	SaveRefused     SaveResult = "refused"     // the crew cannot save, and says why
	SaveUndelivered SaveResult = "undelivered" // it could not be left anywhere
	SaveForbidden   SaveResult = "forbidden"   // the policy does not allow to ask
	SaveUnheard     SaveResult = "unheard"     // nobody is there that could answer
	SaveOvertaken   SaveResult = "overtaken"   // something else happened first
)

// Refusal is a zone that would not give a slice, and until when it is not asked again.
type Refusal struct {
	Zone string `json:"zone"`
	// Accelerator is what it was asked for, where that is not what the owner ordered.
	Accelerator string    `json:"accelerator,omitzero"`
	At          time.Time `json:"at"`
	Until       time.Time `json:"until"`
	// Never says that the zone cannot give this slice at all.
	Never bool   `json:"never,omitzero"`
	Text  string `json:"text"`
	Code  Code   `json:"code,omitzero"`
}

// Outcome is how an incident ended.
type Outcome string

// The five ends.
const (
	Resumed   Outcome = "resumed"   // training goes on, and ConfirmedBy says how that is known
	Withdrawn Outcome = "withdrawn" // the maintenance was cancelled
	Released  Outcome = "released"  // the owner took over or deleted the TPU
	Escalated Outcome = "escalated" // a person must act
	Observed  Outcome = "observed"  // policy said: only watch
)

// Confirmation is what proved that training goes on.
type Confirmation string

// The confirmations, best first.
const (
	ByStep       Confirmation = "step"
	ByCheckpoint Confirmation = "checkpoint"
	ByHealth     Confirmation = "health"
)

// LineKind is what a line of the timeline is.
type LineKind string

// The kinds of lines.
const (
	LineSeen    LineKind = "seen"    // evidence
	LineDecided LineKind = "decided" // what follows, and why
	LineAsked   LineKind = "asked"   // a call to the outside
	LineCame    LineKind = "came"    // what came back
	LineEnded   LineKind = "ended"   // the end
)

// Line is one line of an incident's story. The time is by the clock of the function that wrote it.
type Line struct {
	At   time.Time `json:"at"`
	Kind LineKind  `json:"kind"`
	Text string    `json:"text"`
	// Reason says why; Source is the ID of the entry or message that it rests on.
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	// Code is the reason of a refusal, a hold or an end, in one word.
	Code  Code  `json:"code,omitzero"`
	Phase Phase `json:"phase"`
}

// MaxLines bounds a timeline: the first and the last half stay. It is shorter where lines are long.
const MaxLines = 200

// Due is the time from which patrol has to look at the workload; zero when nothing is due.
func (w Workload) Due() time.Time {
	if w.Incident != nil {
		return w.Incident.Opened
	}
	var due time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for i := range w.Outbox {
		earlier(w.Outbox[i].Time)
	}
	for i := range w.Slices {
		s := &w.Slices[i]
		if n := s.Notice; n.stands() && !w.leftAlone(s) {
			earlier(n.Due)
			listen := n.LastWord
			if !n.Listened.IsZero() {
				listen = n.Listened.Add(ListenEvery)
			}
			if !n.Due.IsZero() && w.unheard(s, listen) {
				earlier(listen)
			}
		}
	}
	for i := range w.Slices {
		switch s := &w.Slices[i]; {
		case w.leftAlone(s):
		case s.Condition == Gone: // somebody may have said in the meantime who deleted it
			earlier(s.Since)
		case s.Condition == Lost && s.Incarnation.Known(): // progress that was reported at the same time may have hidden it
			earlier(s.Since)
		case s.Condition == Unhealthy || s.Condition == Unclear:
			earlier(s.Since.Add(SickFor))
		case s.unaccounted(): // who stopped it may be told as late as anything else
			earlier(s.Since.Add(Grace))
		}
	}
	earlier(w.admissionDue())
	earlier(w.listened())
	earlier(w.probeDue())
	if w.Idle != nil {
		earlier(w.Idle.Due)
	}
	return due
}

// firstAwaitingAdmission names a slice that waits to be admitted, the one that does longest; none while another one is not usable, without which
// there is no training.
func (w Workload) firstAwaitingAdmission() (name string) {
	var since time.Time
	for i := range w.Slices {
		switch s := &w.Slices[i]; {
		case s.IsReleased():
		case s.Condition != Ready:
			return ""
		case s.Admission == AwaitsAdmission && (name == "" || s.Since.Before(since)):
			name, since = s.Name, s.Since
		}
	}
	return name
}

// admissionDue is when what waits to be admitted can be; zero where nothing waits, or the policy is known to allow nothing.
func (w Workload) admissionDue() time.Time {
	s := w.Slice(w.firstAwaitingAdmission())
	if s == nil || w.Watched || w.abuseReported() {
		return time.Time{}
	}
	at := s.Since
	for i := range w.Slices {
		if o := &w.Slices[i]; o.Admission == AwaitsAdmission && !o.IsReleased() {
			at = later(at, o.silent())
		}
	}
	return at
}

// Stranger says why a slice of which nothing is known is none of the workload's, though it carries its name: somebody else may have
// copied the label. While another slice is there, or comes back, what joins it has the same checkpoint directory, policy and service
// account, as far as it names them. What was there before the workload was first seen may have another policy and account, and be the one
// that names the directory. Who brings back what is gone may change all three, and all but the directory while others live.
func (w Workload) Stranger(e Read) (why string) {
	var policies, accounts []string
	alive, returns := false, w.Incident != nil && w.Incident.Phase != Watching
	for i := range w.Slices {
		s := &w.Slices[i]
		over := s.IsReleased() || !s.lives()
		switch own := s.Name == e.Slice; {
		case own && (w.mayMake(e) || over && sameDirectory(e.Directory, w.Directory)):
			return "" // we have ordered it, or its owner has, and it goes on
		case !own && e.Facts.Group != "" && s.Group == e.Facts.Group && s.Zone == e.Zone:
			return "" // both were ordered at once
		case s.IsReleased():
			continue
		case !over, !own && (s.Condition == Creating || returns):
			alive = true
		}
		policies, accounts = append(policies, s.Label), append(accounts, s.Account)
	}
	other := func(value string, known ...string) bool { return value != "" && !slices.Contains(known, value) }
	newcomer := !e.when().Before(w.Seen)
	switch {
	case !alive:
	case e.Directory != "" && !sameDirectory(e.Directory, w.Directory) && (newcomer || w.Directory != ""):
		return "its checkpoint directory is " + e.Directory + ", and that of " + w.Name + " is " + cmp.Or(w.Directory, "not known")
	case other(e.Facts.Label, policies...) && newcomer:
		return "its policy is " + e.Facts.Label + ", and that of " + w.Name + " is " + cmp.Or(w.Label, "none")
	case other(e.Facts.Account, accounts...) && newcomer && !slices.Contains(accounts, ""):
		return "it acts as " + e.Facts.Account + ", and " + w.Name + " as " + strings.Join(slices.Compact(slices.Sorted(slices.Values(accounts))), ", ")
	}
	return ""
}

// sameDirectory reports whether two names are of one checkpoint directory.
func sameDirectory(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// mayMake reports whether a call of ours may have made what a reading shows: of the open incident, or of one that is over.
func (w Workload) mayMake(e Read) bool {
	if in := w.Incident; in != nil && e.Incident == in.ID {
		effect := w.effect(events.ActionCreate, e.Slice)
		return effect != nil && effect.Zone == e.Zone
	}
	return slices.ContainsFunc(w.Creators, func(c Creator) bool { return c.Incident == e.Incident })
}

// labelled is what the slices say of the policy, and none of them differently. What its owner has taken away says nothing, unless all
// of it is.
func (w Workload) labelled() string {
	released := !slices.ContainsFunc(w.Slices, func(s Slot) bool { return !s.IsReleased() })
	var labels []string
	for i := range w.Slices {
		s := &w.Slices[i]
		if s.Label != "" && s.IsReleased() == released && !slices.Contains(labels, s.Label) {
			labels = append(labels, s.Label)
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, ",")
}

// discarded reports whether a slice is gone because it stood idle.
func (l Life) discarded() bool { return l.Condition == Gone && l.End.Discarded }

// Broken returns when the API first showed this life of a slice lost or broken; zero when it did not.
func (w Workload) Broken(slice string) time.Time {
	s := w.Slice(slice)
	switch {
	case s == nil || !s.Incarnation.Known():
		return time.Time{}
	case s.Condition == Lost || s.Condition == Unhealthy || s.Condition == Unclear:
		return s.Since
	case w.Incident != nil:
		for _, t := range w.Incident.Troubles {
			if t.Slice == slice && t.Life == s.Incarnation.ID && t.Proven && !t.Announced && t.Cause.Infrastructure() {
				return t.At
			}
		}
	}
	return time.Time{}
}

// Slice returns the slice of that name, or nil.
func (w Workload) Slice(name string) *Slot {
	for i := range w.Slices {
		if w.Slices[i].Name == name {
			return &w.Slices[i]
		}
	}
	return nil
}

// Holds reports whether the name of a slice is the workload's in a zone: it stands there, or is to stand there again.
func (w Workload) Holds(slice, zone string) bool {
	s := w.Slice(slice)
	if s == nil {
		return false
	}
	if w.Incident != nil {
		if effect := w.effect(events.ActionCreate, slice); effect != nil && effect.Zone == zone {
			return true
		}
	}
	return s.Zone == zone && (s.Condition != Gone || !w.leftAlone(s))
}

// Chips is the number of chips of all slices.
func (w Workload) Chips() int {
	n := 0
	for i := range w.Slices {
		n += w.Slices[i].Chips
	}
	return n
}

// Notice returns the announced maintenance of a slice that is not over, or nil.
func (w Workload) Notice(slice string) *Notice {
	if n := w.lastNotice(slice); n != nil && n.stands() {
		return n
	}
	return nil
}

// MaintainedWith returns the slices whose announced maintenance is started with that of a slice, itself among them: those of
// its queued resource, which is one call.
func (w Workload) MaintainedWith(slice string) []Slot {
	one := w.Slice(slice)
	if one == nil {
		return nil
	}
	var all []Slot
	for i := range w.Slices {
		s := &w.Slices[i]
		held := one.Group != "" && s.Group == one.Group && s.Zone == one.Zone
		if s == one || held && !s.IsReleased() && s.Notice.Status == events.NoticePending {
			all = append(all, *s)
		}
	}
	return all
}

// lastNotice returns the last word on maintenance of a slice, or nil.
func (w Workload) lastNotice(slice string) *Notice {
	if s := w.Slice(slice); s != nil && s.Notice.Status != "" {
		return &s.Notice
	}
	return nil
}

// Concerns reports whether an effect is about a slice, alone or with others.
func (effect Effect) Concerns(slice string) bool {
	return effect.Slice == slice || slices.Contains(effect.With, slice)
}

// sliceList are the slices that an effect is about, for people.
func (effect Effect) sliceList() string {
	return strings.Join(append([]string{effect.Slice}, effect.With...), ", ")
}

// effect returns the effect of that action on a slice, or nil.
func (w Workload) effect(action events.Action, slice string) *Effect {
	for i := range w.Effects {
		if w.Effects[i].Action == action && w.Effects[i].Concerns(slice) {
			return &w.Effects[i]
		}
	}
	return nil
}

// MemberZones are the zones in which the workload's slices are or were.
func (w Workload) MemberZones() []string {
	var zones []string
	for i := range w.Slices {
		if z := w.Slices[i].Zone; z != "" && !slices.Contains(zones, z) {
			zones = append(zones, z)
		}
	}
	return zones
}
