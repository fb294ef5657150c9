package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// story is one workload of which a test says what happens.
type story struct {
	*testing.T
	p   policy.Policy
	w   incident.Workload
	now time.Time
	// sent are the requests of the last step in short, and out are the requests themselves.
	sent []string
	out  []events.Event
	// path are the steps of a script so far.
	path []string
}

// capacity is Spot, or on demand.
func capacity(spot bool) events.Capacity {
	if spot {
		return events.Spot
	}
	return events.OnDemand
}

// newStory is a workload of these slices that trains and has a crew.
func newStory(t *testing.T, spot bool, names ...string) *story {
	n := &story{T: t, now: start, w: incident.New("demo", "llama-8b", "cloud-tpu")}
	n.p = policy.Policy{
		Name: "night", Switches: policy.Everything(), Zones: []string{"us-west4-a", "us-west4-b"}, Lead: 10 * time.Minute,
		Save: events.SaveNatural, Hash: "h", Hang: policy.HangRestart, LeaveZoneFor: policy.DefaultLeaveZoneFor,
	}
	n.w.Directory, n.w.Epoch = "gs://ckpt/llama-8b", 4
	for i, name := range names {
		n.w.Slices = append(n.w.Slices, incident.Slot{Name: name, Life: incident.Life{
			Incarnation: events.Incarnation{Zone: "us-west4-a", ID: fmt.Sprint(7711 + 49*i), Created: start.Add(-200 * time.Hour)},
			Facts:       evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: capacity(spot), Spec: "spec1"},
			Zone:        "us-west4-a", Hosts: "t1v-n-3f2a9c0" + fmt.Sprint(i), Condition: evidence.Ready, State: "READY", Since: start.Add(-time.Hour), Spoke: start.Add(-time.Hour), Standing: start.Add(-200 * time.Hour),
		}})
	}
	n.w.Training = incident.Training{
		Seen: start.Add(-time.Hour), Attempt: 1, Step: 48180, High: 48180, StepAt: start.Add(-2 * time.Minute), StepAttempt: 1,
		Reported: incident.Checkpoint{Step: 48000, At: start.Add(-10 * time.Minute)}, Saved: incident.Checkpoint{Step: 48000, At: start.Add(-10 * time.Minute)},
	}
	return n
}

// give advances the night by a piece of evidence.
func (n *story) give(e evidence.Evidence) *story {
	var out []events.Event
	n.w, out, _ = incident.Advance(n.p, n.w, e, n.now)
	n.sent, n.out = nil, nil
	for _, e := range out {
		if r, ok := e.(interface{ Header() events.Request }); ok {
			n.sent, n.out = append(n.sent, inShort(e, r.Header())), append(n.out, e)
		}
	}
	return n
}

// inShort is a request as its action, its slices, and the lives that it lets in.
func inShort(e events.Event, r events.Request) string {
	s := strings.TrimSpace(string(r.Action) + " " + r.Slice)
	switch e := e.(type) {
	case events.RecreateRequested:
		for _, m := range e.With {
			s += " with " + m.Slice
		}
	case events.RecoveryRequested:
		for _, a := range e.Admit {
			s += " " + a.Slice + "=" + a.Incarnation.ID
		}
	}
	return s
}

// places are where creations are asked for by the last step.
func (n *story) places() string {
	var all []string
	for _, e := range n.out {
		if r, ok := e.(events.RecreateRequested); ok && r.Action == events.ActionCreate {
			all = append(all, r.Slice+" in "+view.Place{Zone: r.Zone, Accelerator: r.Accelerator, Capacity: r.Capacity}.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// down is since when the training stands still, as it is shown.
func (n *story) down() time.Time { return n.w.ShownIncident(*n.w.Incident, n.now).Down }

func (n *story) reading() evidence.Origin {
	return evidence.Origin{ID: "entry", Time: n.now, Rank: events.RankReading}
}

// passes lets time pass with a tick each minute, and returns all that is asked for meanwhile.
func (n *story) passes(d time.Duration) (sent []string) {
	for end := n.now.Add(d); n.now.Before(end); {
		n.now = n.now.Add(min(time.Minute, end.Sub(n.now)))
		n.give(evidence.Ticked{Origin: n.reading()})
		sent = append(sent, n.sent...)
	}
	return sent
}

// reads has a reading show a slice.
func (n *story) reads(slice string, c evidence.Condition, change ...func(*evidence.Read)) *story {
	l := n.w.Slice(slice).Life
	e := evidence.Read{Origin: n.reading(), Slice: slice, Zone: l.Zone, Condition: c, Incarnation: l.Incarnation, State: strings.ToUpper(string(c)), Facts: l.Facts}
	for _, f := range change {
		f(&e)
	}
	return n.give(e)
}

// request is the request for a call that is wanted or under way.
func (n *story) request(a events.Action, slice string) events.Request {
	n.Helper()
	i := n.effect(a, slice)
	if i < 0 {
		n.Fatalf("nobody wants %s of %s:\n%s", a, slice, n.tale())
	}
	x := n.w.Effects[i]
	return events.Request{Schema: 1, Workload: n.w.ID, Incident: n.w.Incident.ID, Epoch: x.Epoch, Action: a, Slice: slice, Attempt: x.Attempt}
}

// isWanted reports whether a call of that kind is wanted or under way.
func (n *story) isWanted(a events.Action) bool {
	return slices.ContainsFunc(n.w.Effects, func(x incident.Effect) bool { return x.Action == a && !x.Dropped() })
}

func (n *story) begins(a events.Action, slice string) events.Request {
	n.Helper()
	r := n.request(a, slice)
	n.intends(r)
	return r
}

func (n *story) fails(r events.Request, c reason.FailureClass) *story {
	return n.give(evidence.Answered{Origin: n.reading(), Request: r, Text: "the call failed", Failure: &evidence.Failure{Class: c, Message: string(c)}})
}

// line is a line of the crew of a slice.
func (n *story) line(slice string, r events.CrewReport) *story {
	s := n.w.Slice(slice)
	r.Schema, r.Zone, r.Node, r.Hostname = 1, s.Zone, slice, s.Hosts+"-w-0"
	return n.give(evidence.Reported{Origin: evidence.Origin{ID: "line " + n.now.String(), Time: n.now, Rank: events.RankUser}, Slice: slice, Report: r})
}

// ended is the end of the incident that ended last while none is open.
func (n *story) ended() incident.End {
	if n.w.Incident != nil || n.w.Closed == nil {
		return incident.End{}
	}
	return *n.w.Closed.Ending
}

// tale is the story so far.
func (n *story) tale() string {
	in := n.about()
	if in == nil {
		return "no incident"
	}
	var all []string
	for _, l := range in.Lines {
		all = append(all, l.At.Format("02 15:04")+" "+string(l.Label)+" "+l.What.String()+" | "+l.Why.String()+" "+string(l.Code))
	}
	return strings.Join(all, "\n")
}

func (n *story) wants(what ...string) {
	n.Helper()
	if !slices.Equal(n.sent, what) {
		n.Fatalf("asked for is %q, want %q:\n%s", n.sent, what, n.tale())
	}
}
