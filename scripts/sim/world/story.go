package world

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/view"
)

// Kind is what a line of a story is.
type Kind string

// The kinds of lines.
const (
	Assumed  Kind = "assumed"  // nobody said it, and the scenario takes it to be so
	Entry    Kind = "entry"    // a log entry arrived
	Ignored  Kind = "ignored"  // a log entry from which nothing follows
	Refused  Kind = "refused"  // a malformed entry
	Reading  Kind = "reading"  // the API showed something new
	Decision Kind = "decision" // a decision, with its reason
	Sent     Kind = "message"  // a request to another function
	Called   Kind = "call"     // what the TPU API or the bucket was asked
	Answer   Kind = "answer"   // what came back
	Acted    Kind = "act"      // what a person did
	Spoken   Kind = "said"     // what a person said to Pitstop, in the demo
	End      Kind = "end"      // how an incident ended
	Dead     Kind = "dead"     // a message that nobody could handle
)

// Line is one line of a story. Its fields, but for Text and Scenario, are those that replay --json promises.
type Line struct {
	// Time is when it happened; an entry that is only noted may give none.
	Time      time.Time `json:"time,omitzero"`
	Incident  string    `json:"incident"`
	Workload  string    `json:"workload"`
	Function  string    `json:"function"`
	To        string    `json:"to"`
	Kind      Kind      `json:"kind"`
	EventType string    `json:"event_type"`
	Subject   string    `json:"subject"`
	MessageID string    `json:"message_id"`
	Decision  string    `json:"decision"`
	Reason    string    `json:"reason"`
	// Code is why, in one word, where something was refused, is held or ended without the training going on.
	Code    string `json:"code"`
	Phase   string `json:"phase"`
	Outcome string `json:"outcome"`
	// Calls are, at the end of an incident, its calls, and Plan the calls that it would have made with permission.
	Calls []view.Call    `json:"calls,omitempty"`
	Plan  []view.Planned `json:"plan,omitempty"`
	// Simulated says that the world made it up; recorded entries, and decisions on them, are real.
	Simulated bool   `json:"simulated"`
	Text      string `json:"text"`
	Scenario  string `json:"scenario"`
	// Crew is the report that an entry holds, if it does.
	Crew *events.CrewReport `json:"-"`
	// Request is the ID of the request that a call made, and to which an operation answers.
	Request string `json:"-"`
	// Routine marks lines printed in full only for programs: they happen all the time, or people read them among the faults.
	Routine bool `json:"-"`
	// Shown says that Options.Ended was called with it.
	Shown bool `json:"-"`
}

// Result is how an incident ended, or that it did not.
type Result struct {
	Workload string
	view.Incident
	// Where describes the interrupted slices, as they were at the opening.
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
	// Calls counts Pitstop's own calls of the TPU API that change something; Requests the requests to functions, by action.
	Calls    map[string]int
	Requests map[string]int
	Faults   []string
	// Trail records the actions, if it was asked for.
	Trail *trail.Trail
	// Stopped is the virtual time at which somebody interrupted the run; zero when it came to its end.
	Stopped time.Time
	// Entries is how many entries there are to play, and Played how many were.
	Entries, Played int

	// opened is where the workloads of incidents were when they opened.
	opened map[string]string
}

// open notes where a workload is when its incident opens.
func (s *Story) open(d view.Workload) {
	if s.opened == nil {
		s.opened = map[string]string{}
	}
	s.opened[d.ID+" "+d.Incident.ID] = where(d)
}

// Result is an incident as it stands, with the place at which it opened.
func (s *Story) Result(d view.Workload, in view.Incident) Result {
	return Result{Workload: d.ID, Incident: in, Where: cmp.Or(s.opened[d.ID+" "+in.ID], where(d))}
}

// where describes the slices of a workload.
func where(d view.Workload) string {
	var parts []string
	for _, s := range d.Slices {
		kind := ""
		if s.Capacity == events.Spot {
			kind = " spot"
		}
		parts = append(parts, s.Accelerator+kind+" in "+s.Zone)
	}
	return strings.Join(parts, ", ")
}

// ByTime orders the results by their opening.
func ByTime(r []Result) {
	slices.SortStableFunc(r, func(a, b Result) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.Workload, b.Workload))
	})
}
