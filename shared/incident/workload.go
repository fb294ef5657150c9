//go:build !heart

package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Schema is the version of the document that this release writes. It reads this version and the one before.
const Schema = 2

// Workload is the document of one workload: what trains, where, what Pitstop knows of it, and the open incident if there is one. It
// is the unit of compare-and-swap, so the document guarantees that only one incident is open.
type Workload struct {
	Schema int `json:"schema"`
	// ID is project/name. The name is fixed at first sight and kept through every recreate.
	ID      string `json:"id"`
	Project string `json:"project"`
	Name    string `json:"name"`
	// Provider names the API that the slices come from.
	Provider string `json:"provider"`
	// Label is the value of pitstop-policy. Where the slices have several values, it joins them all: no policy has such a name, so
	// Pitstop only watches the workload. Directory is the value of pitstop-checkpoint-dir.
	Label     string `json:"label,omitzero"`
	Directory string `json:"directory,omitzero"`

	Slices []Slot `json:"slices"`
	// Seen is when Pitstop first saw the first slice.
	Seen time.Time `json:"seen,omitzero"`
	// Epoch rises when an incident opens or ends and whenever a new request is sent, and at no other time.
	Epoch    int64     `json:"epoch"`
	Incident *Incident `json:"incident,omitempty"`
	// Effects are the changes that the incident wants outside and that are not known to be done.
	Effects []Effect `json:"effects,omitempty"`
	// Closed is the incident that ended last, kept for Linger so that late evidence finds it.
	Closed *Incident `json:"closed,omitempty"`
	// Ended is when that incident ended. It is kept for good: evidence from before that time opens no other incident, however late
	// it comes.
	Ended time.Time `json:"ended,omitzero"`
	// Creators are the last closed incidents that had begun to create. A slice that one of them creates late belongs to that
	// incident.
	Creators []Creator `json:"creators,omitempty"`
	Budgets  Budgets   `json:"budgets,omitzero"`
	Progress Progress  `json:"progress,omitzero"`
	Crew     Crew      `json:"crew,omitzero"`
	// Unbound are the lines of crews whose life is not known yet.
	Unbound []Unbound `json:"unbound,omitempty"`
	// LeaseDoubted is when the lease beside the checkpoints was found implausible; zero once Pitstop has written its own lease.
	LeaseDoubted time.Time `json:"lease_doubted,omitzero"`
	Pace         Pace      `json:"pace,omitzero"`
	// WaitTold is when people were last told that a slice has waited for long while no incident was open.
	WaitTold time.Time `json:"wait_told,omitzero"`
	// PolicyHash names the policy file of the last decision. Watched says that this policy allows nothing while a slice waits for
	// admission.
	PolicyHash string `json:"policy_hash,omitzero"`
	Watched    bool   `json:"watched,omitzero"`
	Pause      *Pause `json:"pause,omitempty"`
	// Orders are the last commands that people gave through the operator's command, the newest last.
	Orders []Spoken `json:"orders,omitempty"`
	// Outbox holds the events that must be published before the document may forget them.
	Outbox []events.Envelope `json:"outbox,omitempty"`
}

// ProvenHosts is the common part of the workers' host names, as the API gave it. It is empty where only a line gave one. A lease names
// no other, and no other keeps a crew or its verdict from being heard.
func (l Life) ProvenHosts() string {
	if l.HostsTold {
		return ""
	}
	return l.Hosts
}

// HostsKnown reports whether the host names of the slice's workers are known, or no further question can find them.
func (l Life) HostsKnown() bool { return l.ProvenHosts() != "" || l.HostsAsked }

// IsFormer reports whether a life is over because a newer life has come. One exception: somebody ordered this life elsewhere before
// Pitstop created its own, and Pitstop's life is gone without having been admitted. Then the older one is not former.
func (s Slot) IsFormer(life events.Incarnation) bool {
	unused := s.Condition == Gone && !s.isAdmitted() && s.Zone != life.Zone && s.Admitted().Older(life)
	return life.Older(s.Incarnation) && !unused
}

// IsReleased reports whether Pitstop leaves the slice to its owner alone.
func (l Life) IsReleased() bool { return !l.End.Released.IsZero() }

// lives reports whether a reading showed a slice that exists and is not about to go.
func (l Life) lives() bool {
	switch l.Condition {
	case Ready, Unhealthy, Stopped, Unclear:
		return true
	case Unread, Creating, Lost, Done, Deleting, Gone:
	}
	return false
}

// Notice is announced maintenance of a life. It is no incident by itself.
type Notice struct {
	events.Notice
	// LastWord is the time that the newest word of the notice gives itself: an older word does not undo it. A notice that is gone
	// stays until Linger is over, so that a late message does not bring it back. InAPI says that a reading showed the notice too,
	// so a reading without it means something.
	LastWord time.Time `json:"told"`
	InAPI    bool      `json:"in_api,omitzero"`
	// Told says that only a line tells of it, which anybody can write.
	Told bool `json:"line,omitzero"`
	// End says that this is the planned end of the life, and no maintenance. Its window is the moment of that end.
	End bool `json:"end,omitzero"`
	// Due is when the save must be requested.
	Due time.Time `json:"due,omitzero"`
	// Started is when Pitstop started the maintenance, before its window.
	Started time.Time `json:"started,omitzero"`
	// Listened is when Pitstop last looked for a sign of life from the crew. Deaf says why the crew would not answer a request, as
	// far as is known. People hear of it while there is time to fix it.
	Listened time.Time `json:"listened,omitzero"`
	Deaf     string    `json:"deaf,omitzero"`
	// Declined says that a person cancelled the preparations for this window. Pitstop lets the maintenance come.
	Declined bool `json:"declined,omitzero"`
}

// Creator is a closed incident that had begun to create slices, with the time for which it was open.
type Creator struct {
	Incident string    `json:"incident"`
	Opened   time.Time `json:"opened"`
	Closed   time.Time `json:"closed"`
	// ReportedSlices are the slices whose late arrival has been reported.
	ReportedSlices []string `json:"told,omitempty"`
}

// Budgets are spent without verified progress, and verified progress refills them.
type Budgets struct {
	// Restarts counts requests for a training restart; Recreates counts replacements, each of one slice or of several at once.
	Restarts  int `json:"restarts,omitzero"`
	Recreates int `json:"recreates,omitzero"`
	// Since is when the first of them was spent: only progress after that time refills them.
	Since time.Time `json:"since,omitzero"`
}

// Progress is the last progress that the training reported.
type Progress struct {
	Step    int64     `json:"step,omitzero"`
	At      time.Time `json:"at,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	// High is the highest step ever reported. Proven is the highest step that a checkpoint or the crew's guest attribute showed:
	// only progress beyond it refills the budgets.
	High   int64 `json:"high,omitzero"`
	Proven int64 `json:"proven,omitzero"`
	// Stepped is a later step that the crew wrote to its machine. GapSeconds is the longest time between two step reports of one
	// attempt in quiet times. StallReported is when Pitstop last told a person that the training stands still.
	Stepped       time.Time `json:"stepped,omitzero"`
	GapSeconds    int64     `json:"gap_seconds,omitzero"`
	StallReported time.Time `json:"told,omitzero"`
	// CheckpointStep is the last complete checkpoint that the crew reported. Verified is the last checkpoint that Pitstop inspected
	// and found complete, and VerifiedAt is when it was written.
	CheckpointStep int64     `json:"checkpoint_step,omitzero"`
	Verified       int64     `json:"verified,omitzero"`
	VerifiedAt     time.Time `json:"verified_at,omitzero"`
	VerifiedURI    string    `json:"verified_uri,omitzero"`
	// VerifiedBytes is the least size of the verified checkpoint.
	VerifiedBytes int64 `json:"verified_bytes,omitzero"`
	// CheckpointAt is when CheckpointStep was first reported.
	CheckpointAt time.Time `json:"checkpoint_at,omitzero"`
}

// Pace is how long the training takes to save, in seconds, the newest last. It sets how early a save is requested before a window.
type Pace struct {
	// Saves are the times from each request to the end of its checkpoint, in the mode that Mode names.
	Saves []int64         `json:"saves,omitempty"`
	Mode  events.SaveMode `json:"mode,omitzero"`
	// Gaps are the times between two checkpoints of one attempt, as the crew reports them.
	Gaps []int64 `json:"gaps,omitempty"`
}

// Crew is what Pitstop knows of the training side.
type Crew struct {
	// Seen is when a crew of this workload first wrote a line; zero means that there is none.
	Seen time.Time `json:"seen,omitzero"`
	// Since is the start of the present count of attempts: older lines belong to another training. Zero means that the count never
	// began again.
	Since time.Time `json:"since,omitzero"`
	// Attempt is the newest training attempt that started, at Started. Exited is the newest attempt that ended.
	Attempt int       `json:"attempt,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Exited  int       `json:"exited,omitzero"`
	// Confirmed is the attempt that the lease named when it was last read or written, or a later one of which a verdict or a crew's record
	// on its machine tells. Only lines tell of attempts after it.
	Confirmed int `json:"confirmed,omitzero"`
	// FarTold is when lines far above it last had Pitstop read which attempt runs.
	FarTold time.Time `json:"far_told,omitzero"`
	// LeaseAttempt is the attempt that the last lease request names.
	LeaseAttempt int `json:"named,omitzero"`
	// GaveUp is the attempt after which the crew had spent its own restarts.
	GaveUp int `json:"gave_up,omitzero"`
	// Error is the training's own last error. Spent is the error on which the crew last gave up.
	Error Error `json:"error,omitzero"`
	Spent Error `json:"spent,omitzero"`
	// Left is when Pitstop last left a trouble of the training to a person, who has heard of all that happened before.
	Left time.Time `json:"left,omitzero"`
	// Theirs says that a person has taken over that trouble: until there is a new step, or its owner orders a slice anew, the
	// training's lines open nothing.
	Theirs bool `json:"theirs,omitzero"`
	// Claim is the last line about the end of the training. A line is a hint: only the crew's verdict counts. Doubted is when a line has
	// opened an incident for such a claim, if no verdict has confirmed one since: for DoubtFor no line opens another one.
	Claim   Claim     `json:"claim,omitzero"`
	Doubted time.Time `json:"doubted,omitzero"`
	// Finished says that the crew's verdict calls the training done: Pitstop brings nothing back any more. FinishedAt is when the
	// training ended. Certain says that the training reached the step that its owner named as the last one.
	Finished   bool      `json:"finished,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Certain    bool      `json:"certain,omitzero"`
	// Complete says that the provider calls the training done, and not the crew: the next life under the name of a slice trains again.
	Complete bool `json:"complete,omitzero"`
	// Done is the attempt that a verdict called the last one. It stays when a later line clears Finished, until the verdict is read
	// again.
	Done int `json:"done,omitzero"`
	// NotDone is the attempt whose exit 0 proved to be a save: something struck the slice at about that time.
	NotDone int `json:"not_done,omitzero"`
	// Restarted lists the requests for a restart in the last day.
	Restarted []time.Time `json:"restarted,omitempty"`
}

// Claim is a line in which the crew reported the end of an attempt, and which no verdict has confirmed.
type Claim struct {
	Attempt int `json:"attempt,omitzero"`
	// Finished says that the line called the training done; otherwise the line said that the crew gave up. Unconfirmed says that
	// Pitstop looked for the crew's verdict and found none that agrees.
	Finished    bool `json:"finished,omitzero"`
	Unconfirmed bool `json:"unconfirmed,omitzero"`
	// At is the line's own time.
	At time.Time `json:"at,omitzero"`
	// ProbeUntil ends the time in which patrol reads the crew's guest attribute for a verdict; zero once that is over.
	ProbeUntil time.Time `json:"probe_until,omitzero"`
}

// spoke reports whether a crew has written a line in the present life of a slice. One from a life before may have been the last: the
// next image may hold no crew.
func (w Workload) spoke() bool {
	return !w.Crew.Seen.IsZero() && slices.ContainsFunc(w.Slices, func(s Slot) bool { return !s.Spoke.IsZero() && !s.IsReleased() })
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

// repeats reports whether an error equals an earlier one, without a new step in between.
func (e Error) repeats(o Error) bool { return e.Sign != "" && e.Sign == o.Sign && e.High == o.High }

// Incident is one interruption of a workload.
type Incident struct {
	ID    string       `json:"id"`
	Cause events.Cause `json:"cause"`
	// Opened and Closed are by the clock of the function that decided.
	Opened time.Time `json:"opened"`
	Closed time.Time `json:"closed,omitzero"`

	// Phase names for people what the incident waits for since Since. It follows from the other facts, and no decision reads it.
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// Deadline ends that wait; zero for the two waits that have none.
	Deadline time.Time `json:"deadline,omitzero"`

	// Switches are those at the opening: a tightened policy counts at the next step, a loosened one at the next incident.
	Switches policy.Switches `json:"switches"`
	// Limits says who limited each switch at the opening.
	Limits policy.Limits `json:"limits,omitempty"`
	// Policy is the name of the policy that decided. ChipHourPrice is that policy's price at the opening.
	Policy        string  `json:"policy,omitzero"`
	ChipHourPrice float64 `json:"chip_hour_price,omitzero"`

	// Troubles are the things that went wrong, in the order in which Pitstop learned of them.
	Troubles []Trouble `json:"troubles"`
	// Calls are the outside calls for this incident, oldest first. CallsLeftOut counts the calls that the bound dropped.
	Calls        []Call    `json:"calls,omitempty"`
	CallsLeftOut int       `json:"calls_left_out,omitzero"`
	Save         Save      `json:"save,omitzero"`
	Zones        []Refusal `json:"zones,omitempty"`
	// Before are the former shapes of slices that come back in another shape.
	Before []Before `json:"before,omitempty"`

	// Baseline is the step that progress has to pass, and BaseAttempt the training attempt at the time of the trouble.
	Baseline    int64 `json:"baseline"`
	BaseAttempt int   `json:"base_attempt"`
	// Down is when the training stopped, as far as is known; zero while it still runs.
	Down time.Time `json:"down,omitzero"`
	// Begun says that the maintenance was seen under way.
	Begun bool `json:"begun,omitzero"`
	// Announced says that only the announced event has happened, or is to come, that the incident is about.
	Announced bool `json:"announced,omitzero"`
	// Unexplained is since when the incident waits for a reading that explains its evidence; zero where it does not.
	Unexplained time.Time `json:"unexplained,omitzero"`
	// OnlyWatched says that Pitstop may do nothing about the incident.
	OnlyWatched bool `json:"only_watched,omitzero"`
	// Look says that somebody has to read the API.
	Look bool `json:"look,omitzero"`
	// Payer is charged for the last replacement.
	Payer Payer `json:"payer,omitzero"`
	// Created says that a creation was begun.
	Created bool `json:"created,omitzero"`
	// Hearing says that a decision waits for the crew's verdict until the deadline. HeardAt is when the verdict was last read, or could
	// not be.
	Hearing bool      `json:"hearing,omitzero"`
	HeardAt time.Time `json:"heard_at,omitzero"`
	// Retried says that a person opened this incident to retry a recovery that had been given up.
	Retried bool `json:"retried,omitzero"`
	// Charged counts the training restarts that this incident spent, so that they can be refunded.
	Charged int `json:"charged,omitzero"`
	// Asked is the action that waits for approval, Approved the action that was approved last, and Held the reason why a mutating
	// call waits.
	Asked    events.Action `json:"asked,omitzero"`
	Approved events.Action `json:"approved,omitzero"`
	// StoodAt is when a look for a new checkpoint showed that the training stands still. It holds for as long as its crew is asked for another
	// attempt for that.
	StoodAt  time.Time `json:"stood_at,omitzero"`
	Held     string    `json:"held,omitzero"`
	HeldCode Code      `json:"held_code,omitzero"`
	// HeldSeconds is by how much holds have moved the incident's deadlines. HeldUntil is the time up to which this phase's hold has
	// been counted.
	HeldSeconds int64     `json:"held_seconds,omitzero"`
	HeldUntil   time.Time `json:"held_until,omitzero"`
	// Granted says that a person approved the action in Asked, and Pitstop has not gone on with it yet.
	Granted bool `json:"granted,omitzero"`
	// WaitingSince is when capacity was first refused, and Reminded when people were last reminded of the wait.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	Reminded     time.Time `json:"reminded,omitzero"`
	// Error is the end of the last attempt that failed in this incident.
	Error Error `json:"error,omitzero"`
	// Starts counts the starts of stopped slices.
	Starts int `json:"starts,omitzero"`
	// Slow is when an accepted creation outlasted its time and got as much time again.
	Slow time.Time `json:"slow,omitzero"`
	// Clearing is the outcome that follows the clean-up of the resources that Pitstop's own requests still create.
	Clearing Outcome `json:"clearing,omitzero"`

	Outcome     Outcome      `json:"outcome,omitzero"`
	ConfirmedBy Confirmation `json:"confirmed_by,omitzero"`
	Reason      string       `json:"reason,omitzero"`
	// Code is the reason of an end other than resumed, in one word.
	Code Code `json:"code,omitzero"`
	// Advice tells a person what to do.
	Advice string `json:"advice,omitzero"`
	// Would lists the steps that Pitstop would have taken under a policy that allowed them.
	Would []string `json:"would,omitempty"`
	// PlannedCalls are the exact calls that would have been made.
	PlannedCalls []Planned `json:"plan,omitempty"`
	// Revision counts the attributions of the closed incident.
	Revision int    `json:"revision,omitzero"`
	Timeline []Line `json:"timeline"`
	// LeftOut counts the lines that the bound on the timeline dropped from the middle.
	LeftOut int `json:"left_out,omitzero"`
}

// Save is the save that the incident asked for.
type Save struct {
	ID        string    `json:"id,omitzero"`
	Requested time.Time `json:"requested,omitzero"`
	// Pending says that the next step waits for the end of the save.
	Pending bool `json:"pending,omitzero"`
	// Left is when the request was left where the crew reads it. The save is delivered once the crew has acknowledged it.
	Left  time.Time `json:"delivered,omitzero"`
	Acked time.Time `json:"acked,omitzero"`
	// Step is the step that the crew acknowledged. At is when the checkpoint was complete, and Bytes its least size.
	Step     int64     `json:"step,omitzero"`
	At       time.Time `json:"at,omitzero"`
	Bytes    int64     `json:"bytes,omitzero"`
	Verified bool      `json:"verified,omitzero"`
	// Result is how the save ended, or its state after a look that found nothing; empty while nothing is known. Failed says why
	// there is no verified save.
	Result SaveResult `json:"result,omitzero"`
	Failed string     `json:"failed,omitzero"`
}

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
		if s := &w.Slices[i]; !w.leftAlone(s) {
			notice, listen := w.noticeDue(s)
			earlier(notice)
			earlier(listen)
			earlier(s.unexplainedDue())
		}
	}
	earlier(w.admissionDue())
	earlier(w.listened())
	earlier(w.probeDue())
	earlier(w.waitDue())
	return due
}

// HasDue reports whether something is due beside planned ends that are still far away: the next one comes with every life.
func (w Workload) HasDue(now time.Time) bool {
	w.Slices = slices.Clone(w.Slices)
	for i := range w.Slices {
		if n := &w.Slices[i].Notice; n.End && n.Due.After(now) {
			*n = Notice{}
		}
	}
	return !w.Due().IsZero()
}

// WithoutOutbox is the document without the events that are still to be published.
func (w Workload) WithoutOutbox() Workload {
	w.Outbox = nil
	return w
}

// HasOpenIncident reports whether an incident is open.
func (w Workload) HasOpenIncident() bool { return w.Incident != nil }

// noticeDue is when the save before a slice's announced maintenance is due, and when somebody has to listen for its crew; zero for never.
func (w Workload) noticeDue(s *Slot) (save, listen time.Time) {
	n := s.Notice
	if !n.stands() || n.Due.IsZero() {
		return time.Time{}, time.Time{}
	}
	listen = n.LastWord
	if !n.Listened.IsZero() {
		listen = n.Listened.Add(ListenEvery)
	}
	if !w.unheard(s, listen) {
		listen = time.Time{}
	}
	return n.Due, listen
}

// unexplainedDue is when somebody has to look at a slice that cannot be used, and of which no incident tells; zero for never.
func (l *Life) unexplainedDue() time.Time {
	switch {
	case l.Condition == Gone: // somebody may have named its deleter in the meantime
		return l.Since
	case l.Condition == Lost && l.Incarnation.Known(): // progress reported at the same time may have hidden it
		return l.Since
	case l.Condition == Unhealthy || l.Condition == Unclear:
		return l.Since.Add(SickFor)
	case l.unaccounted(): // word of who stopped it may come as late as any other
		return l.Since.Add(Grace)
	}
	return time.Time{}
}

// firstAwaitingAdmission names the slice that has waited longest for admission. It names none while another slice is not usable,
// for training needs every slice.
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

// admissionDue is when the waiting slices can be admitted; zero where none waits, or the policy is known to allow nothing.
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

// Stranger says why a slice that carries the workload's name does not belong to it, where Pitstop knows nothing of the slice:
// somebody else may have copied the label. While another slice exists or is coming back, a joining slice must have the same
// checkpoint directory, policy and service account, as far as it names them. A slice from before the workload was first seen may
// differ in policy and account, and may be the first to name the directory. An owner who brings back a slice that is gone may
// change all three, or, while other slices live, all but the directory.
func (w Workload) Stranger(e Read) (why string) {
	if w.goesOnWith(e) || !w.isThereBeside(e) {
		return ""
	}
	var policies, accounts []string
	for i := range w.Slices {
		if s := &w.Slices[i]; !s.IsReleased() {
			policies, accounts = append(policies, s.Label), append(accounts, s.Account)
		}
	}
	other := func(value string, known []string) bool { return value != "" && !slices.Contains(known, value) }
	newcomer := !orderedAt(e).Before(w.Seen)
	switch {
	case e.Directory != "" && !sameDirectory(e.Directory, w.Directory) && (newcomer || w.Directory != ""):
		return "its checkpoint directory is " + e.Directory + ", and that of " + w.Name + " is " + cmp.Or(w.Directory, "not known")
	case newcomer && other(e.Facts.Label, policies):
		return "its policy is " + e.Facts.Label + ", and that of " + w.Name + " is " + cmp.Or(w.Label, "none")
	case newcomer && other(e.Facts.Account, accounts) && !slices.Contains(accounts, ""):
		return "it acts as " + e.Facts.Account + ", and " + w.Name + " as " + strings.Join(slices.Compact(slices.Sorted(slices.Values(accounts))), ", ")
	}
	return ""
}

// goesOnWith reports whether Pitstop or the owner has ordered the slice in a reading so that it goes on with the training, or together
// with another slice of the workload.
func (w Workload) goesOnWith(e Read) bool {
	return slices.ContainsFunc(w.Slices, func(s Slot) bool {
		if s.Name == e.Slice {
			over := s.IsReleased() || !s.lives()
			return w.mayMake(e) || over && sameDirectory(e.Directory, w.Directory)
		}
		return e.Facts.Group != "" && s.Group == e.Facts.Group && s.Zone == e.Zone
	})
}

// isThereBeside reports whether a slice of the workload exists, or another one than that in a reading is coming back.
func (w Workload) isThereBeside(e Read) bool {
	returns := w.Incident != nil && w.phase() != Watching
	return slices.ContainsFunc(w.Slices, func(s Slot) bool {
		return !s.IsReleased() && (s.lives() || s.Name != e.Slice && (s.Condition == Creating || returns))
	})
}

// sameDirectory reports whether two names mean one checkpoint directory.
func sameDirectory(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// mayMake reports whether one of Pitstop's calls may have created the slice in a reading: a call of the open incident, or of a
// closed one.
func (w Workload) mayMake(e Read) bool {
	if in := w.Incident; in != nil && e.Incident == in.ID {
		effect := w.effect(events.ActionCreate, e.Slice)
		return effect != nil && effect.Zone == e.Zone
	}
	return slices.ContainsFunc(w.Creators, func(c Creator) bool { return c.Incident == e.Incident })
}

// labelled joins the different policy labels of the slices. A slice that its owner has taken over does not count, unless all slices
// are taken over.
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

// Slice returns the slice with that name, or nil.
func (w Workload) Slice(name string) *Slot {
	for i := range w.Slices {
		if w.Slices[i].Name == name {
			return &w.Slices[i]
		}
	}
	return nil
}

// Holds reports whether the workload owns a slice's name in a zone: the slice exists there, or is about to be created there again.
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

// Notice returns a slice's announced maintenance that is not over, or nil.
func (w Workload) Notice(slice string) *Notice {
	if n := w.lastNotice(slice); n != nil && n.stands() {
		return n
	}
	return nil
}

// MaintainedWith returns the slices whose announced maintenance starts together with that of a slice, including the slice itself.
// These are the slices of its queued resource: one call starts the maintenance of all of them.
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

// lastNotice returns the last word on a slice's maintenance, or nil.
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

// sliceList names the slices of an effect, for people.
func (effect Effect) sliceList() string {
	return strings.Join(append([]string{effect.Slice}, effect.With...), ", ")
}

// effect returns the effect with that action on a slice, or nil.
func (w Workload) effect(action events.Action, slice string) *Effect {
	for i := range w.Effects {
		if w.Effects[i].Action == action && w.Effects[i].Concerns(slice) {
			return &w.Effects[i]
		}
	}
	return nil
}

func (w Workload) has(is func(Effect) bool) bool { return slices.ContainsFunc(w.Effects, is) }
