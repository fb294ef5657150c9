// Package view has what is shown of a workload: to people as text, to programs as JSON. The heart makes a view of its document. Whoever
// shows something reads the view and no document, so that the document can change.
package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// Workload is what is shown of a workload at one moment.
type Workload struct {
	// ID is project/name.
	ID      string `json:"id"`
	Project string `json:"project"`
	Name    string `json:"name"`
	// Provider names the API that the slices come from.
	Provider string `json:"provider"`
	// Label is the value of pitstop-policy, Directory that of pitstop-checkpoint-dir; empty without one.
	Label     string `json:"label,omitzero"`
	Directory string `json:"directory,omitzero"`
	// Seen is when Pitstop first saw a slice of it.
	Seen time.Time `json:"seen,omitzero"`

	// State is how it stands, in a word, and Since is since when; zero where that is not known.
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Need is what a person has to do; nil where nobody is needed.
	Need *Need `json:"need,omitempty"`
	// Wait is what the open incident waits for; nil without one.
	Wait *Wait `json:"wait,omitempty"`

	Slices   []Slice  `json:"slices"`
	Training Training `json:"training"`
	// Pause holds all calls; nil where none does.
	Pause *evidence.Pause `json:"pause,omitempty"`
	// Orders are the last commands that people gave, the newest last.
	Orders []Spoken `json:"orders,omitempty"`
	// Requests are the changes that the incident wants outside and that are not known to be done.
	Requests []Request `json:"requests,omitempty"`
	// Incident is the open one. Closed is the one that ended last, for as long as the document keeps it.
	Incident *Incident `json:"incident,omitempty"`
	Closed   *Incident `json:"closed,omitempty"`
	// Ended is when the last one ended.
	Ended time.Time `json:"ended,omitzero"`
	// Due is when Pitstop acts next by itself; zero for never. Unsent is how many events are not published yet.
	Due    time.Time `json:"due,omitzero"`
	Unsent int       `json:"unsent,omitzero"`
	// Epoch rises with each request and incident. BudgetsSince is since when the budgets have been spent; zero where they are full.
	// WaitTold is when people were last told of a long wait in quiet times.
	Epoch        int64     `json:"epoch"`
	BudgetsSince time.Time `json:"budgets_since,omitzero"`
	WaitTold     time.Time `json:"wait_told,omitzero"`

	// Left are the zones that are asked after the others when a slice is created.
	Left []LeftZone `json:"left_zones,omitempty"`
	// Spending is what it has cost of its policy's budget; nil where that names none.
	Spending *Spending `json:"spending,omitempty"`
	// IfLost is what would follow if the first usable slice were lost now, and AtDeadline what follows at the deadline of the open
	// incident. Both are nil where they do not apply, or where the policy is not known.
	IfLost     *Loss `json:"if_lost,omitempty"`
	AtDeadline *Plan `json:"at_deadline,omitempty"`
}

// State is how a workload stands, in a word.
type State string

// The states. The first that holds counts, in this order.
const (
	Finished  State = "finished"  // the training is done
	Left      State = "released"  // every slice is left to its owner
	Watched   State = "watched"   // an incident is open, and Pitstop may only watch
	Prepares  State = "prepares"  // an incident is open, and the training goes on
	Recovers  State = "recovers"  // an incident is open, and the training stands still
	GivenUp   State = "escalated" // the crew has given up, or the last incident left a training that stands still to a person
	Unusable  State = "unusable"  // a slice is not usable, and no incident tells of it yet
	Beginning State = "begins"    // the slices are usable, and the crew has reported no step yet
	Trains    State = "trains"    // the crew spoke, or the slices are usable and no crew is known
)

// Need is what a person has to do.
type Need struct {
	// Text is the question, or what to do. Command answers it; empty where no command of Pitstop's does.
	Text    string `json:"text"`
	Command string `json:"command,omitzero"`
	// Otherwise is what happens without an answer; empty where the training goes on.
	Otherwise string `json:"otherwise,omitzero"`
}

// Wait is what an open incident waits for.
type Wait struct {
	For   Phase     `json:"for"`
	Since time.Time `json:"since"`
	// Until is its deadline; zero for the two waits that have none.
	Until time.Time `json:"until,omitzero"`
	// Reminded is when people were last told that a wait for capacity lasts; zero before.
	Reminded time.Time `json:"reminded,omitzero"`
	// Tries is how often the call that it waits for was made without success.
	Tries int `json:"tries,omitzero"`
	// Places are those that have refused, in the order in which they first did, and Next is the one that is asked now, or next. Later names a
	// place whose turn comes after a time, and Text says all that in words. Only a wait for capacity has them.
	Places []Refusal `json:"places,omitempty"`
	Next   *Ask      `json:"next,omitempty"`
	Later  string    `json:"later,omitzero"`
	Text   string    `json:"text,omitzero"`
	// Held says why a call is held back, and HeldCode that in a word; empty where none is.
	Held     string      `json:"held,omitzero"`
	HeldCode reason.Code `json:"held_code,omitzero"`
}

// Ask is a place that is asked for a slice at a time. Asked says that it was asked then, and has not answered yet.
type Ask struct {
	Place
	At    time.Time `json:"at,omitzero"`
	Asked bool      `json:"asked,omitzero"`
}

// Slice is what is shown of one slice.
type Slice struct {
	Name      string             `json:"name"`
	Zone      string             `json:"zone"`
	Condition evidence.Condition `json:"condition"`
	// State is the provider's own word for the condition.
	State string `json:"state,omitzero"`
	// Since is when the condition was first read. WaitingSince is since when it waits for its machines or for its deletion, by the
	// provider's own objects; zero where it does not.
	Since        time.Time          `json:"since,omitzero"`
	WaitingSince time.Time          `json:"waiting_since,omitzero"`
	Incarnation  events.Incarnation `json:"incarnation,omitzero"`
	// Ordered and OrderedCapacity are the shape and the capacity that its owner ordered, where it was created in others.
	Accelerator     string          `json:"accelerator,omitzero"`
	Ordered         string          `json:"ordered,omitzero"`
	Capacity        events.Capacity `json:"capacity,omitzero"`
	OrderedCapacity events.Capacity `json:"ordered_capacity,omitzero"`
	Workers         int             `json:"workers,omitzero"`
	Chips           int             `json:"chips,omitzero"`
	// Legacy is a TPU Node of the API's former version.
	Legacy bool `json:"legacy,omitzero"`
	// Noun is what its provider calls it, and Look the command with which a person looks at it.
	Noun string `json:"-"`
	Look string `json:"-"`
	// Group is the resource that the provider creates and deletes as a whole with it.
	Group string `json:"group,omitzero"`
	// Spec is the hash of the stored specification.
	Spec string `json:"spec,omitzero"`
	// Used is since when it had been usable before its condition last changed, and Spoke when its crew first wrote a line in this life; zero
	// for never.
	Used  time.Time `json:"used,omitzero"`
	Spoke time.Time `json:"spoke,omitzero"`
	// StoppedBy is who stopped it, as far as is known. Suspected says that Google suspects abuse.
	StoppedBy string `json:"stopped_by,omitzero"`
	Suspected bool   `json:"suspected,omitzero"`
	// Claims is the value of its label pitstop-workload where that names a workload which it does not belong to.
	Claims string `json:"claims,omitzero"`
	// Why says why nothing is done about it, though it cannot be used; empty where something is under way.
	Why string `json:"why,omitzero"`
	// Admitted says that training may run in this life, and Awaits that Pitstop must admit it first. Released says that Pitstop leaves it
	// to its owner.
	Admitted bool `json:"admitted,omitzero"`
	Awaits   bool `json:"awaits_admission,omitzero"`
	Released bool `json:"released,omitzero"`
	// LastNotice is the last word on its announced maintenance or its planned end, though that may be over; nil without one. See Announced.
	LastNotice *Notice `json:"last_notice,omitempty"`
}

// Notice is announced maintenance, or the planned end, of a slice.
type Notice struct {
	events.Notice
	// End says that the life ends then as planned.
	End bool `json:"end,omitzero"`
	// Due is when the save is requested; zero where nothing says when.
	Due time.Time `json:"due,omitzero"`
	// Declined says that a person cancelled the preparations. Deaf says why a request to save may not arrive.
	Declined bool   `json:"declined,omitzero"`
	Deaf     string `json:"deaf,omitzero"`
}

// Training is what is known of the training side.
type Training struct {
	// Seen is when its crew first wrote a line; zero means that there is none. Spoke is when it was last heard.
	Seen  time.Time `json:"seen,omitzero"`
	Spoke time.Time `json:"spoke,omitzero"`
	// Attempt is the newest attempt that started, at Started, Exited the newest one that ended, and GaveUp the one after which the crew last had
	// spent its restarts; 0 for none.
	Attempt int       `json:"attempt,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Exited  int       `json:"exited,omitzero"`
	GaveUp  int       `json:"gave_up,omitzero"`
	// Finished says that the training is done, since FinishedAt. Claimed says that only a line says so.
	Finished   bool      `json:"finished,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Claimed    bool      `json:"claimed,omitzero"`
	// Step is the newest step, reported at StepAt. SteppedAt is the time of the newest word of a step, reported or read on the machine.
	Step      int64     `json:"step,omitzero"`
	StepAt    time.Time `json:"step_at,omitzero"`
	SteppedAt time.Time `json:"stepped_at,omitzero"`
	// HangsAt is when Pitstop takes a silence for a hang that has lasted for longer than two lines of the crew are apart; zero for no such silence.
	HangsAt time.Time `json:"hangs_at,omitzero"`
	// Proven is the highest step that a checkpoint, or the crew's record on its machine, has shown.
	Proven int64 `json:"proven,omitzero"`
	// QuietSeconds is the longest time between two steps in quiet times.
	QuietSeconds int64 `json:"quiet_seconds,omitzero"`
	// StepSeconds is how long a step took in the mean, of the newest run whose first step its crew has told; 0 is not known.
	StepSeconds float64 `json:"step_seconds,omitzero"`
	// Checkpoint is the newest complete checkpoint that the crew reported, first at CheckpointAt. Verified is the newest one that
	// Pitstop inspected, which was complete at VerifiedAt.
	Checkpoint   int64     `json:"checkpoint,omitzero"`
	CheckpointAt time.Time `json:"checkpoint_at,omitzero"`
	Verified     int64     `json:"verified,omitzero"`
	VerifiedAt   time.Time `json:"verified_at,omitzero"`
	VerifiedURI  string    `json:"verified_uri,omitzero"`
	// SaveSeconds is how long the last saves took in the mode SaveMode, and GapSeconds the times between two checkpoints; the newest last.
	SaveSeconds []int64         `json:"save_seconds,omitempty"`
	SaveMode    events.SaveMode `json:"save_mode,omitzero"`
	GapSeconds  []int64         `json:"gap_seconds,omitempty"`
}

// HasGivenUp reports whether the crew has used up its own restarts, and no retry has followed.
func (t Training) HasGivenUp() bool { return t.GaveUp > 0 && t.GaveUp >= max(t.Attempt, t.Exited) }

// Stage says how far a request has come.
type Stage string

// The stages of a request.
const (
	StageWanted   Stage = "wanted"   // requested, and nobody has begun
	StageBegun    Stage = "begun"    // the intent is stored: whether the call was made, and its outcome, are unknown
	StageAccepted Stage = "accepted" // an operation of the provider works on it
	StageDone     Stage = "done"     // the provider reports that the call did it; a reading proves it
	StageRefused  Stage = "refused"  // it failed or was held, and is requested again at Retry
)

// Request is one change that an incident wants outside.
type Request struct {
	// Incident wants it, for Reason.
	Incident string        `json:"incident"`
	Reason   string        `json:"reason,omitzero"`
	Action   events.Action `json:"action"`
	// Slice is empty for a request about the whole workload. With are the others of a queued resource.
	Slice string   `json:"slice,omitzero"`
	With  []string `json:"with,omitempty"`
	Zone  string   `json:"zone,omitzero"`
	// Epoch and Attempt number it, and Sent is when it was first sent.
	Epoch   int64     `json:"epoch"`
	Attempt int       `json:"attempt"`
	Sent    time.Time `json:"sent"`
	Stage   Stage     `json:"stage"`
	// Begun is when the intent was stored, with the ID that the call carries.
	Begun     time.Time `json:"begun,omitzero"`
	RequestID string    `json:"request_id,omitzero"`
	// At is when it came to that stage. Retry is when it is sent again after a failure.
	At    time.Time `json:"at"`
	Retry time.Time `json:"retry,omitzero"`
	// Failures counts the failures in a row; Failure is the latest, and Code that in a word.
	Failures int         `json:"failures,omitzero"`
	Failure  string      `json:"failure,omitzero"`
	Code     reason.Code `json:"code,omitzero"`
	// UnderWay says that an instance has begun a call that creates or deletes, and may still be about to make it.
	UnderWay bool `json:"under_way,omitzero"`
}

// Incident is what is shown of an interruption, open or closed.
type Incident struct {
	ID     string       `json:"id"`
	Cause  events.Cause `json:"cause"`
	Opened time.Time    `json:"opened"`
	Closed time.Time    `json:"closed,omitzero"`
	// Phase is what it waits for since Since, until Deadline; the deadline is zero for the two waits that have none.
	Phase    Phase     `json:"phase"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Policy decided, under the lowest level of each switch since the opening, with who limited each.
	Policy   string          `json:"policy,omitzero"`
	Switches policy.Switches `json:"switches"`
	Limits   policy.Limits   `json:"limits,omitempty"`
	Troubles []Trouble       `json:"troubles"`
	// Calls are oldest first; CallsLeftOut counts older ones that are not stored.
	Calls        []Call    `json:"calls,omitempty"`
	CallsLeftOut int       `json:"calls_left_out,omitzero"`
	Save         Save      `json:"save,omitzero"`
	Zones        []Refusal `json:"zones,omitempty"`
	// Down is since when the training stands still; zero while it runs. Taken is when somebody took over what was left to them.
	Down  time.Time `json:"down,omitzero"`
	Taken time.Time `json:"taken,omitzero"`
	Cost  Cost      `json:"cost"`
	// Asked is the action that waits for approval. Granted says that a person approved it and Pitstop has not gone on with it yet.
	Asked   events.Action `json:"asked,omitzero"`
	Granted bool          `json:"granted,omitzero"`
	// OnlyWatched says that Pitstop may do nothing about it. Retried says that a person opened it to try again.
	OnlyWatched bool `json:"only_watched,omitzero"`
	Retried     bool `json:"retried,omitzero"`
	// Clears is the outcome that follows once what Pitstop's own requests create is cleaned up; empty for no clean-up.
	Clears Outcome `json:"clears,omitzero"`
	// Error is the last attempt that failed in it. Attempt is the training attempt at the time of the trouble.
	Error   Exit `json:"error,omitzero"`
	Attempt int  `json:"attempt"`

	Outcome     Outcome      `json:"outcome,omitzero"`
	ConfirmedBy Confirmation `json:"confirmed_by,omitzero"`
	// Reason and Code say why it ended; Advice tells a person what to do.
	Reason string      `json:"reason,omitzero"`
	Code   reason.Code `json:"code,omitzero"`
	Advice string      `json:"advice,omitzero"`
	// PlannedCalls are the calls that Pitstop would have made with permission, and Would what else would have followed.
	Would        []string  `json:"would,omitempty"`
	PlannedCalls []Planned `json:"plan,omitempty"`
	Timeline     []Line    `json:"timeline"`
	// LeftOut counts the lines that are not stored, from the middle. Revision counts the attributions after the end.
	LeftOut  int `json:"left_out,omitzero"`
	Revision int `json:"revision,omitzero"`
}

// Lines is how many lines the story has, with those that are not stored.
func (in Incident) Lines() int { return len(in.Timeline) + in.LeftOut }

// LinesAfter are the stored lines after the first so many.
func (in Incident) LinesAfter(told int) []Line {
	return in.Timeline[min(max(0, told-in.LeftOut), len(in.Timeline)):]
}

// WouldHave lists for people the steps that Pitstop would have taken under a policy that allowed them: each call, and each consequence
// that is no call.
func (in Incident) WouldHave() []string {
	all := slices.Clone(in.Would)
	for _, c := range in.PlannedCalls {
		all = append(all, c.String())
	}
	return all
}

// WouldText says in a sentence what Pitstop would have done under a policy that allowed it. It is empty where that is nothing.
func (in Incident) WouldText() string {
	var done []string
	for _, c := range in.PlannedCalls {
		if text := c.done(); text != "" && !slices.Contains(done, text) {
			done = append(done, text)
		}
	}
	if len(done) == 0 {
		return ""
	}
	last := len(done) - 1
	return "Pitstop would have " + strings.TrimPrefix(strings.Join(done[:last], ", ")+" and "+done[last], " and ")
}

// Exit is how a training attempt failed.
type Exit struct {
	Attempt int `json:"attempt"`
	events.Exit
}

// Save is the save that an incident asked for.
type Save struct {
	ID        string    `json:"id"`
	Requested time.Time `json:"requested"`
	// Result is how it ended; empty while it runs. Failed says why there is no verified save.
	Verified bool              `json:"verified,omitzero"`
	Result   reason.SaveResult `json:"result,omitzero"`
	Failed   string            `json:"failed,omitzero"`
}

// Cost is what an incident has cost by its end, or by now.
type Cost struct {
	events.Cost
	// Slices are all of the workload's, which stand still together.
	Slices []IdleSlice `json:"slices,omitempty"`
	// ChipHourPrice is the policy's price at the opening, in dollars; 0 where it names none.
	ChipHourPrice float64 `json:"chip_hour_price,omitzero"`
	// ChargedTo is who is charged, and Restarts how many training restarts were spent.
	ChargedTo string `json:"charged_to"`
	Restarts  int    `json:"restarts,omitzero"`
}

// Replaces is the switch for the replacement of the slice: it follows what its owner ordered.
func (s Slice) Replaces() policy.Switch {
	return policy.Replaces(cmp.Or(s.OrderedCapacity, s.Capacity))
}

// IdleSlice is a slice while the training stood still: a lost one as it was at its loss.
type IdleSlice struct {
	Slice       string          `json:"slice"`
	Accelerator string          `json:"accelerator,omitzero"`
	Chips       int             `json:"chips,omitzero"`
	Capacity    events.Capacity `json:"capacity,omitzero"`
}

// Loss is what would follow from the loss of one slice.
type Loss struct {
	Slice string `json:"slice"`
	Plan
}

// Slice is the slice with that name, or nil.
func (w Workload) Slice(name string) *Slice {
	for i := range w.Slices {
		if w.Slices[i].Name == name {
			return &w.Slices[i]
		}
	}
	return nil
}

// Announced is the maintenance of a slice that is announced and not over, or its planned end; nil without one.
func (w Workload) Announced(slice string) *Notice {
	s := w.Slice(slice)
	if s == nil || s.LastNotice == nil || s.LastNotice.Status != events.NoticePending && s.LastNotice.Status != events.NoticeOngoing {
		return nil
	}
	return s.LastNotice
}
