package evidence

import (
	"time"

	"pitstop.internal/events"
)

// Word is a person's order: who, and why.
type Word struct {
	By  string `json:"by"`
	Why string `json:"why,omitzero"`
	// ID tells an order that travels as a message from every other one; empty for one that is stored at once.
	ID string `json:"id,omitzero"`
}

// Said is the word, whatever evidence it comes with.
func (w Word) Said() Word { return w }

// Verb is the kind of a person's order.
type Verb string

// The verbs.
const (
	VerbApprove Verb = "approve"
	VerbCancel  Verb = "cancel"
	VerbRetry   Verb = "retry"
	VerbPause   Verb = "pause"
	VerbResume  Verb = "resume"
	VerbAttach  Verb = "attach"
	VerbDetach  Verb = "detach"
	VerbDrill   Verb = "drill"
	VerbRefused Verb = "refused" // an order that came too late, or about what is no longer so
)

// Approved is a person's approval of one action of one incident. It does not cover a later question.
type Approved struct {
	Origin
	Word
	Incident string
	Action   events.Action
}

// Cancelled is a person's order that they handle an incident themselves from now on.
type Cancelled struct {
	Origin
	Word
	Incident string
}

// Retried is a person's word that the obstacle is removed. It makes no decision of its own: Pitstop repeats the refused requests,
// and reads again where it gave up.
type Retried struct {
	Origin
	Word
}

// Paused holds every mutating call of the workload, until a time if there is one, or lifts the pause.
type Paused struct {
	Origin
	Word
	Until time.Time
	Lift  bool
}

// Ordered records a person's change to the workload that did not go through its document.
type Ordered struct {
	Origin
	Word
	Verb Verb
	Text string
}

// Pause holds every mutating call for a workload. Until is its end by the clock of the person who paused.
type Pause struct {
	By    string    `json:"by"`
	Why   string    `json:"why,omitzero"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"`
}

// PauseMargin is how long a pause still holds after its end: by then the clock of every instance has passed that end.
const PauseMargin = time.Minute

// Holds reports whether the pause holds calls at this moment, by any instance's clock.
func (p *Pause) Holds(now time.Time) bool {
	return p != nil && (p.Until.IsZero() || now.Before(p.Until.Add(PauseMargin)))
}
