// Package trail compares the actions of two builds of Pitstop. A trail records one build in one run: its calls, requests and
// ends of incidents in order, and the documents that it left. Both builds run the same seeds, or the same recorded entries,
// and the comparison names the first difference of each workload.
package trail

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Version is the form of a trail. A build reads its own version only.
const Version = 1

// Trail is one run of one build, and one line of what simulate --trail and replay --trail print.
type Trail struct {
	Version int `json:"trail"`
	// Run names the run: a seed, or a recorded incident.
	Run string `json:"run"`
	// Days is how long a simulation lasts. A seed with too few incidents has another run that is longer.
	Days float64 `json:"days,omitzero"`
	// Read is when the documents were read: at the end of the days, or of a replay.
	Read      time.Time  `json:"read"`
	Workloads []Workload `json:"workloads"`
	// Broken are the rules that the run broke.
	Broken []Broken `json:"broken"`
}

// Workload is what a build did for one workload.
type Workload struct {
	ID    string `json:"id"`
	Steps []Step `json:"steps"`
	// Document is the workload's document as it was read; empty where there is none.
	Document jsontext.Value `json:"document,omitzero"`
}

// Broken is a rule that was broken.
type Broken struct {
	Rule     string    `json:"rule"`
	Workload string    `json:"workload"`
	At       time.Time `json:"at,omitzero"`
	Text     string    `json:"text"`
}

// Kind is what a step is, or in what two builds differ.
type Kind string

// The kinds of steps.
const (
	Call    Kind = "call"    // a call that changes something outside
	Request Kind = "request" // a request of one function to another
	End     Kind = "end"     // the end of an incident, or its new attribution
)

// Step is one thing that a build did.
type Step struct {
	Kind Kind `json:"kind"`
	// At is virtual time.
	At time.Time `json:"at"`

	// Method is the method of a call, or the type of a request. Resource is what a call is made on, each by the API's own name.
	Method   string `json:"method,omitzero"`
	Resource string `json:"resource,omitzero"`
	// Action, Slice and Epoch are those of a request, or of the request that a call carries out. Accelerator is what a creation
	// asks for, where that is not what the owner ordered.
	Action      string `json:"action,omitzero"`
	Slice       string `json:"slice,omitzero"`
	Accelerator string `json:"accelerator,omitzero"`
	Epoch       int64  `json:"epoch,omitzero"`
	// Code is why a call was refused, or why an incident ended, in one word.
	Code string `json:"code,omitzero"`

	// Incident and what follows are those of an end.
	Incident    string    `json:"incident,omitzero"`
	Revision    int       `json:"revision,omitzero"`
	Outcome     string    `json:"outcome,omitzero"`
	Cause       string    `json:"cause,omitzero"`
	ConfirmedBy string    `json:"confirmed_by,omitzero"`
	Opened      time.Time `json:"opened,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`

	// Reason says why, for people.
	Reason string `json:"reason,omitzero"`
}

// same reports whether two steps are the same but for their reasons.
func (s Step) same(o Step) bool {
	return s.At.Equal(o.At) && s.Opened.Equal(o.Opened) && s.Ended.Equal(o.Ended) && s.sameButTimes(o)
}

// sameButTimes reports whether two steps are the same but for their times and reasons.
func (s Step) sameButTimes(o Step) bool {
	for _, t := range []*Step{&s, &o} {
		t.At, t.Opened, t.Ended, t.Reason = time.Time{}, time.Time{}, time.Time{}, ""
	}
	return s == o
}

// Write writes a trail as one line.
func Write(w io.Writer, t Trail) error {
	t.Version = Version
	raw, err := json.Marshal(t, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("trail: %w", err)
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// ErrUnknown says that a program writes no trail that this build can read.
var ErrUnknown = errors.New("no trail that this build can read")

// ErrEnded says that a program ended before its trail was whole.
var ErrEnded = errors.New("the trail of the other build ends too early")

// Reader reads the trails of another build.
type Reader struct{ d *jsontext.Decoder }

// NewReader reads trails, one after the other.
func NewReader(r io.Reader) *Reader { return &Reader{jsontext.NewDecoder(r)} }

// Next returns the next trail, io.EOF after the last one, and ErrUnknown for data that is not a trail of this version.
func (r *Reader) Next() (t Trail, err error) {
	raw, err := r.d.ReadValue()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return t, fmt.Errorf("%w: in the middle of a run", ErrEnded)
	case errors.As(err, &syntax):
		return t, fmt.Errorf("%w: it is no JSON", ErrUnknown)
	case err != nil:
		return t, err
	}
	var version struct {
		Trail int `json:"trail"`
	}
	if err := json.Unmarshal(raw, &version); err != nil || version.Trail == 0 {
		return t, fmt.Errorf("%w: it has no version", ErrUnknown)
	}
	if version.Trail != Version {
		return t, fmt.Errorf("%w: it has version %d, and this build reads version %d", ErrUnknown, version.Trail, Version)
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return t, nil
}

// workload returns the actions for a workload; an unknown workload has none.
func (t Trail) workload(id string) Workload {
	for _, w := range t.Workloads {
		if w.ID == id {
			return w
		}
	}
	return Workload{ID: id}
}

// workloads are the workloads of two trails, each once and in order.
func workloads(this, other Trail) (ids []string) {
	for _, t := range []Trail{this, other} {
		for _, w := range t.Workloads {
			ids = append(ids, w.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
