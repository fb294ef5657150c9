package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Incident is one interruption of a workload.
type Incident struct {
	ID     string    `json:"id"`
	Opened time.Time `json:"opened"`
	Closed time.Time `json:"closed,omitzero"`
	// Ceiling is the lowest level of each switch since the opening: a policy that is tightened counts at the next step, a loosened one at the
	// next incident. Limits says who limited each.
	Ceiling policy.Switches `json:"ceiling"`
	Limits  policy.Limits   `json:"limits,omitempty"`
	// Policy is the name of the policy at the opening, and ChipHourPrice its price in dollars for the place where the slice stood.
	Policy        string  `json:"policy,omitzero"`
	ChipHourPrice float64 `json:"chip_hour_price,omitzero"`

	// Runs are the stretches in which the training did steps: the one before the first trouble, and those since. After is from when on the
	// incident counts, where the training was not back from the one before. Taken is when somebody took over what was left to them.
	Runs  runs      `json:"runs,omitempty"`
	After time.Time `json:"after,omitzero"`
	Taken time.Time `json:"taken,omitzero"`
	// Troubles are the things that went wrong, in the order in which Pitstop learned of them.
	Troubles []Trouble `json:"troubles"`
	// Baseline is the newest checkpoint at the opening, or the one that the save made: a step past it proves progress. BaseAttempt is the
	// attempt at the opening.
	Baseline    int64 `json:"baseline,omitzero"`
	BaseAttempt int   `json:"base_attempt,omitzero"`
	Save        Save  `json:"save,omitzero"`
	// Refusals are the places that refused to give a slice.
	Refusals []view.Refusal `json:"refusals,omitempty"`
	// TakenBy made one of its slices again in the middle of it.
	TakenBy string `json:"taken_by,omitzero"`
	// Approved are the questions to which a person said yes; see questions in allowed.go.
	Approved []string `json:"approved,omitempty"`
	// Calls are the outside calls, oldest first; CallsLeftOut counts those that the bound dropped.
	Calls        []view.Call `json:"calls,omitempty"`
	CallsLeftOut int         `json:"calls_left_out,omitzero"`
	// Planned are the calls that would have been made under a policy that allowed them, and Would says why there would be none.
	Planned []view.Planned `json:"plan,omitempty"`
	Would   story.Reason   `json:"would,omitzero"`

	// Status is the step that people were told last. Lines are the story; LeftOut counts those that the bound dropped.
	Status  Status `json:"status"`
	Lines   []Line `json:"lines"`
	LeftOut int    `json:"left_out,omitzero"`
	// Ending is how it ends, or has ended: what its own calls made is cleaned up first. Revision counts its causes and costs after the end.
	Ending   *End `json:"ending,omitempty"`
	Revision int  `json:"revision,omitzero"`
}

// Trouble is one thing that went wrong.
type Trouble struct {
	Cause events.Cause `json:"cause"`
	Slice string       `json:"slice,omitzero"`
	// Life is the provider's ID of the life that it struck.
	Life string `json:"life,omitzero"`
	// At is when it happened, by its own account, and Heard when Pitstop learned of it.
	At    time.Time   `json:"at"`
	Heard time.Time   `json:"heard"`
	Rank  events.Rank `json:"rank,omitzero"`
	// Announced says that it has not happened yet.
	Announced bool   `json:"announced,omitzero"`
	Text      string `json:"text,omitzero"`
}

// proven reports whether the API or an audit log that Pitstop itself read shows it.
func (t Trouble) proven() bool { return t.Rank >= events.RankReading }

// Save is the save that the incident asked for.
type Save struct {
	// Asked is when it was first asked for, By its deadline, and Acked when the crew acknowledged it, at Step.
	Asked time.Time `json:"asked,omitzero"`
	By    time.Time `json:"by,omitzero"`
	Acked time.Time `json:"acked,omitzero"`
	Step  int64     `json:"step,omitzero"`
	// Refused says why there is no save, as the crew or the last look for it says. Found is the complete checkpoint that it made.
	Refused string     `json:"refused,omitzero"`
	Found   Checkpoint `json:"found,omitzero"`
}

// SaveID names that save for the training side; empty where none was asked for.
func (in *Incident) SaveID() string {
	if in.Save.Asked.IsZero() {
		return ""
	}
	return events.ID(in.ID, "save", in.Save.Asked.UTC().Format(time.RFC3339))
}

// Status is the step of the plan that people were told last.
type Status struct {
	Rule  string     `json:"rule"`
	Label view.Phase `json:"label"`
	Since time.Time  `json:"since"`
	// Until is when the wait ends; zero for the two waits that have no end. Reminded is when people were last reminded of such a wait.
	Until    time.Time `json:"until,omitzero"`
	Reminded time.Time `json:"reminded,omitzero"`
	// Later names the place of a wait for capacity whose turn comes next, and when.
	Later story.Reason `json:"later,omitzero"`
	// Asks is the action that waits for a person, and Questions what exactly they are asked.
	Asks      events.Action `json:"asks,omitzero"`
	Questions []string      `json:"questions,omitempty"`
}

// Line is one line of the story, as data: package story makes English of it.
type Line struct {
	At   time.Time     `json:"at"`
	Kind view.LineKind `json:"kind"`
	What story.Reason  `json:"what"`
	Why  story.Reason  `json:"why,omitzero"`
	// Source is the ID of the log entry or message behind it. Logged says that it is an entry of Cloud Logging.
	Source string     `json:"source,omitzero"`
	Logged bool       `json:"logged,omitzero"`
	Label  view.Phase `json:"label"`
	// Code is the reason of a refusal, a hold or an end in one word.
	Code reason.Code `json:"code,omitzero"`
}

// End is how an incident ends.
type End struct {
	Outcome view.Outcome      `json:"outcome"`
	By      view.Confirmation `json:"by,omitzero"`
	Code    reason.Code       `json:"code,omitzero"`
	Reason  story.Reason      `json:"reason"`
	// At is when that was decided.
	At time.Time `json:"at,omitzero"`
	// Advice is what a person has to do; empty where nobody has to.
	Advice story.Reason `json:"advice,omitzero"`
}

// Want is a call that a rule wants.
type Want struct {
	Action events.Action `json:"action"`
	// Slice is empty for a call about the whole workload. With are the others of a queued resource.
	Slice string   `json:"slice,omitzero"`
	With  []string `json:"with,omitempty"`
	view.Place
	// Life is the life that it is about; empty for a life that is yet to come.
	Life events.Incarnation `json:"incarnation,omitzero"`
	// By is the deadline of a save, and Mode how the training is asked for it. A verification looks for a checkpoint that is newer than By.
	By   time.Time       `json:"by,omitzero"`
	Mode events.SaveMode `json:"mode,omitzero"`
	// From is when it may be asked for first; zero for at once. An effect has it as Retry.
	From time.Time    `json:"-"`
	Why  story.Reason `json:"why"`
}

// Effect is a call that is wanted or under way, from the first request for it until a reading shows what it does.
type Effect struct {
	Want
	Epoch int64 `json:"epoch"`
	// Attempt counts its requests, and Failures its failures in a row, of which Last is the last.
	Attempt  int     `json:"attempt"`
	Failures int     `json:"failures,omitzero"`
	Last     Failure `json:"last,omitzero"`
	// First is when it was first wanted, Sent when the present request went out, Begun when its intent was stored, and Answered when the
	// call was accepted. Retry is when it is asked for again after a failure.
	First    time.Time `json:"first"`
	Sent     time.Time `json:"sent,omitzero"`
	Begun    time.Time `json:"begun,omitzero"`
	Answered time.Time `json:"answered,omitzero"`
	Retry    time.Time `json:"retry,omitzero"`
	// Barred is since when the state of the slice forbids the call.
	Barred time.Time `json:"barred,omitzero"`
	// RequestID is the ID that the call carries. Operation names the provider's operation that carries it out.
	RequestID string `json:"request_id,omitzero"`
	Operation string `json:"operation,omitzero"`
	// Lease is what a call that writes the lease is to write.
	Lease Write `json:"lease,omitzero"`
	// Lives are the lives of With at the decision to delete, in the order of With. Ordered is when the queued resource was created that is
	// to be deleted before it brings anything.
	Lives   []events.Incarnation `json:"lives,omitempty"`
	Ordered time.Time            `json:"ordered,omitzero"`
	// Digest is the digest of the body that was sent.
	Digest string `json:"digest,omitzero"`
}

// Failure is why a call failed.
type Failure struct {
	Class reason.FailureClass `json:"class,omitzero"`
	Code  reason.Code         `json:"code,omitzero"`
	Text  string              `json:"text,omitzero"`
}

// Concerns reports whether an effect is about a slice, alone or with others.
func (x *Effect) Concerns(slice string) bool {
	return x.Slice == slice || slices.Contains(x.With, slice)
}

// all are the slices that an effect is about.
func (w Want) all() []string { return append([]string{w.Slice}, w.With...) }

// clone copies everything that a step may change.
func (in *Incident) clone() *Incident {
	if in == nil {
		return nil
	}
	next := *in
	next.Troubles, next.Refusals = slices.Clone(in.Troubles), slices.Clone(in.Refusals)
	next.Approved, next.Calls, next.Lines = slices.Clip(in.Approved), slices.Clone(in.Calls), slices.Clip(in.Lines)
	next.Planned = slices.Clone(in.Planned)
	return &next
}

// hasMade reports whether the incident has begun to create.
func (in *Incident) hasMade() bool {
	return slices.ContainsFunc(in.Calls, func(c view.Call) bool { return c.Action == events.ActionCreate })
}

// cause is the best cause among the troubles: evidence that comes late changes it by itself. A line alone does not say that the machines pay.
func (in *Incident) cause() (best events.Cause) {
	for _, t := range in.Troubles {
		counts := t.Rank > events.RankUser || best.Infrastructure()
		if best == "" || counts && explains(t.Cause) > explains(best) {
			best = t.Cause
		}
	}
	return best
}

// lastTrouble is when the last thing went wrong that has happened.
func (in *Incident) lastTrouble() (last time.Time) {
	for _, t := range in.Troubles {
		if !t.Announced {
			last = later(last, t.At)
		}
	}
	if last.IsZero() {
		return in.Opened
	}
	return last
}

// explains is how much a cause explains. Of those that explain as much, the first one stays.
func explains(c events.Cause) int {
	for most, causes := range [][]events.Cause{
		{events.CauseCrash},
		{events.CauseUnknown, events.CauseHang},
		{events.CauseGuest},
		{events.CauseTerminated},
		{events.CausePreemption, events.CauseHostError, events.CauseMaintenance},
		{events.CauseEnd},
	} {
		if slices.Contains(causes, c) {
			return most
		}
	}
	return 1
}

// lost reports whether one of its troubles, which Pitstop itself read, ended that life after a time.
func (in *Incident) lost(slice string, life events.Incarnation, after time.Time) bool {
	return in != nil && slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return t.Slice == slice && t.Life == life.ID && t.proven() && !t.Announced && !t.At.Before(after) && endsLife(t.Cause)
	})
}

// endsLife reports whether what goes wrong for that cause ends the life that it strikes.
func endsLife(c events.Cause) bool {
	return slices.Contains([]events.Cause{events.CausePreemption, events.CauseHostError, events.CauseTerminated, events.CauseEnd}, c)
}

// Cause is the best cause among the troubles.
func (in *Incident) Cause() events.Cause { return in.cause() }
