package scenario

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// Kind is what a line of a story is.
type Kind string

// The kinds of lines.
const (
	Assumed  Kind = "assumed"  // nobody said it, and the scenario takes it to be so
	Entry    Kind = "entry"    // a log entry arrived
	Ignored  Kind = "ignored"  // a log entry from which nothing follows
	Refused  Kind = "refused"  // what is no sound entry at all
	Reading  Kind = "reading"  // the API showed something new
	Decision Kind = "decision" // what was decided, and why
	Sent     Kind = "message"  // a request to another function
	Called   Kind = "call"     // what the TPU API or the bucket was asked
	Answer   Kind = "answer"   // what came back
	Acted    Kind = "act"      // what a person did
	End      Kind = "end"      // how an incident ended
	Dead     Kind = "dead"     // a message that nobody could handle
)

// Line is one line of a story. Its fields, but for Text and Scenario, are those that replay --json promises.
type Line struct {
	Time      time.Time `json:"time"`
	Incident  string    `json:"incident"`
	Workload  string    `json:"workload"`
	Function  string    `json:"function"`
	Kind      Kind      `json:"kind"`
	EventType string    `json:"event_type"`
	Subject   string    `json:"subject"`
	MessageID string    `json:"message_id"`
	Decision  string    `json:"decision"`
	Reason    string    `json:"reason"`
	Phase     string    `json:"phase"`
	Outcome   string    `json:"outcome"`
	// Simulated says that the world made it up; what was recorded, and what was decided on it, is real.
	Simulated bool   `json:"simulated"`
	Text      string `json:"text"`
	Scenario  string `json:"scenario"`
	// Crew is the report that an entry holds, if it does.
	Crew *events.CrewReport `json:"-"`
	// Routine marks what happens all the time and is told in full only to programs.
	Routine bool `json:"-"`
}

// Result is how an incident ended, or that it did not.
type Result struct {
	Workload string
	incident.Incident
	// Chips and Where describe what was interrupted.
	Where string
}

// Story is everything that happened in a scenario.
type Story struct {
	Name  string
	Title string
	About string
	Lines []Line
	// Ended are the incidents that came to an end, Open those that did not.
	Ended, Open []Result
	// Calls counts the calls of the TPU API that change something and that were ours; Requests what was asked of the
	// functions, by action.
	Calls    map[string]int
	Requests map[string]int
	Faults   []string
}

// ByTime orders the results by their opening.
func byTime(r []Result) {
	slices.SortStableFunc(r, func(a, b Result) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.Workload, b.Workload))
	})
}
