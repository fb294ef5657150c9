package incident

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Schema is the version of the document.
const Schema = 1

// Workload is the document of one workload: the known facts, the calls under way, and what people were told. It is the unit of
// compare-and-swap, so only one incident is open.
type Workload struct {
	Schema int `json:"schema"`
	// ID is project/name. The name is fixed at first sight.
	ID      string `json:"id"`
	Project string `json:"project"`
	Name    string `json:"name"`
	// Provider names the API that the slices come from.
	Provider string `json:"provider"`
	// Label is the value of pitstop-policy, or all values, joined, where the slices differ. Directory is that of pitstop-checkpoint-dir.
	Label     string `json:"label,omitzero"`
	Directory string `json:"directory,omitzero"`
	// Seen is when Pitstop first saw a slice of it.
	Seen time.Time `json:"seen,omitzero"`

	Slices   []Slot   `json:"slices"`
	Training Training `json:"training,omitzero"`
	Lease    Lease    `json:"lease,omitzero"`
	// Elsewhere are the leases that Pitstop has left in directories which the workload named before, the newest last.
	Elsewhere []Elsewhere `json:"elsewhere,omitempty"`
	Unbound   []Unbound   `json:"unbound,omitempty"`

	// Pause holds all calls; nil where none does. Orders are the last orders of people, the newest last.
	Pause  *evidence.Pause `json:"pause,omitempty"`
	Orders []view.Spoken   `json:"orders,omitempty"`
	// Holds are the times in which calls were held back, the newest last: no deadline runs in them.
	Holds []Hold `json:"holds,omitempty"`
	// Told is what people were told of, so that nobody is told twice.
	Told []Told `json:"told,omitempty"`
	// Made are closed incidents that had begun to create: what comes late with their label is theirs.
	Made []Making `json:"made,omitempty"`
	// Taken are the zones that have preempted it.
	Taken []Taken `json:"taken,omitempty"`
	// Ran are the times in which chips stood and stand no more, the newest last.
	Ran []Ran `json:"ran,omitempty"`
	// Charges are the calls that count against a budget, the newest last.
	Charges []Charge `json:"charges,omitempty"`

	// Epoch rises when an incident opens or ends and when a request is sent, and at no other time.
	Epoch int64 `json:"epoch"`
	// Opened numbers the incidents of the last day on which one opened.
	Opened Numbered `json:"opened,omitzero"`
	// Effects are the calls that the open incident wants, or has under way.
	Effects  []Effect  `json:"effects,omitempty"`
	Incident *Incident `json:"incident,omitempty"`
	// Closed is the incident that ended last, for as long as late evidence may change its cause, or the training is not back. Ended is when it ended, and stays.
	Closed *Incident `json:"closed,omitempty"`
	Ended  time.Time `json:"ended,omitzero"`
	// Unread says that the slices could not be read at the last tick.
	Unread bool `json:"unread,omitzero"`
	// Watched says that the last policy that could be read allows nothing.
	Watched bool `json:"watched,omitzero"`
	// Outbox holds the events that must be published before the document may forget them.
	Outbox []events.Envelope `json:"outbox,omitempty"`
}

// New is the document of a workload that was never seen before.
func New(project, name, provider string) Workload {
	return Workload{Schema: Schema, ID: project + "/" + name, Project: project, Name: name, Provider: provider}
}

// Numbered is a day in UTC, such as 20261129, with the number of the last incident that opened then.
type Numbered struct {
	Day  string `json:"day"`
	Last int    `json:"last"`
}

// Hold is a time in which calls were held back.
type Hold struct {
	From  time.Time   `json:"from"`
	Until time.Time   `json:"until"`
	Code  reason.Code `json:"code,omitzero"`
	Why   string      `json:"why,omitzero"`
}

// Told says that people were told of something.
type Told struct {
	Of    Topic     `json:"of"`
	Slice string    `json:"slice,omitzero"`
	Life  string    `json:"life,omitzero"`
	At    time.Time `json:"at"`
}

// Topic is what people were told of.
type Topic string

// The topics.
const (
	ToldEnd    Topic = "end"    // the end of a life, or why it cannot be used
	ToldAbuse  Topic = "abuse"  // the suspicion of abuse of a life
	ToldStall  Topic = "stall"  // the training stands still
	ToldWait   Topic = "wait"   // a slice has waited for long
	ToldLate   Topic = "late"   // what came late of a closed incident
	ToldFailed Topic = "failed" // a person has what goes wrong with the training, until it does steps again
	ToldLeft   Topic = "left"   // a life waits to be admitted, and a person has to see to it
	ToldDoubt  Topic = "doubt"  // what a line alone says: that the crew gave up, or that something strikes a life
	ToldNotice Topic = "notice" // maintenance or a planned end of a life, by an incident that prepared for it
)

// Making is a closed incident that had begun to create.
type Making struct {
	Incident string    `json:"incident"`
	Opened   time.Time `json:"opened"`
	Closed   time.Time `json:"closed"`
}

// Slice is the Slice of that name, or nil.
func (w *Workload) Slice(name string) *Slot {
	for i := range w.Slices {
		if w.Slices[i].Name == name {
			return &w.Slices[i]
		}
	}
	return nil
}

// life is the newest life of the slot of that name, or nil.
func (w *Workload) life(name string) *Life {
	if s := w.Slice(name); s != nil {
		return &s.Life
	}
	return nil
}

// effect is the effect with that action on a slice, alone or with others, or nil where none is wanted or under way.
func (w *Workload) effect(a events.Action, slice string) *Effect {
	for i := range w.Effects {
		if x := &w.Effects[i]; x.Action == a && x.Concerns(slice) && !x.Dropped() {
			return x
		}
	}
	return nil
}

// group names the other slices that the provider creates and deletes together with one.
func (w *Workload) group(name string) (others []string) {
	l := w.life(name)
	if l.Group == "" {
		return nil
	}
	for i := range w.Slices {
		if o := &w.Slices[i]; o.Group == l.Group && o.Zone == l.Zone && o.Name != name && o.Released.IsZero() {
			others = append(others, o.Name)
		}
	}
	return others
}

// clone copies everything that a step may change.
func (w *Workload) clone() Workload {
	next := *w
	next.Slices = slices.Clone(w.Slices)
	for i := range next.Slices {
		next.Slices[i].Former = slices.Clone(next.Slices[i].Former)
	}
	t := &next.Training
	t.SaveSeconds, t.GapsBetween, t.Strikes = slices.Clip(t.SaveSeconds), slices.Clip(t.GapsBetween), slices.Clip(t.Strikes)
	next.Lease.Maybe, next.Elsewhere = slices.Clone(w.Lease.Maybe), slices.Clone(w.Elsewhere)
	next.Unbound, next.Orders, next.Holds = slices.Clone(w.Unbound), slices.Clip(w.Orders), slices.Clone(w.Holds)
	next.Told, next.Made, next.Taken, next.Charges = slices.Clone(w.Told), slices.Clone(w.Made), slices.Clone(w.Taken), slices.Clone(w.Charges)
	next.Ran, next.Effects, next.Outbox = slices.Clone(w.Ran), slices.Clone(w.Effects), slices.Clip(w.Outbox)
	next.Incident, next.Closed = w.Incident.clone(), w.Closed.clone()
	return next
}

// earlier is the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// earliest is the earliest of the times that are known; zero where none is.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// labels joins the different policy labels of the slices. A slice that its owner has taken over does not count, unless all slices
// are taken over.
func (w *Workload) labels() string {
	released := !slices.ContainsFunc(w.Slices, func(s Slot) bool { return s.Released.IsZero() })
	var labels []string
	for i := range w.Slices {
		s := &w.Slices[i]
		if s.Label != "" && !s.Released.IsZero() == released && !slices.Contains(labels, s.Label) {
			labels = append(labels, s.Label)
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, ",")
}
