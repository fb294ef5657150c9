package incident_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// This file is a little language for stories. A step is one of
//
//	SLICE WORD        what is learned of a slice; without a name, of the first one: "a read lost", "exit 139", "b log pending"
//	VERB CALL [WHICH] what a function or a provider does with a call that is wanted: "intend delete", "accepted create b", "stockout create 0".
//	                  WHICH is a slice or an index of the calls that are wanted; without it, the first of that action
//	do                every call that is wanted is begun and accepted; "does save" is that of one call
//	approved, ...     what a person says
//	tick, 10m, ...    time passes; "later" lets the time come for which the story waits

// at is a workload of one slice of which these steps were told, divided by commas, under a policy by its name.
func at(t *testing.T, policy string, spot bool, path string, change ...func(*incident.Workload)) *story {
	t.Helper()
	return newStory(t, spot, "llama-8b").under(policy).with(change...).goes(path)
}

// multi is a Multislice of two slices, queued one that is in one queued resource.
func multi(t *testing.T, spot bool) *story { return newStory(t, spot, "a", "b") }

func queued(t *testing.T, spot bool) *story { return multi(t, spot).with(inQueue) }

func inQueue(w *incident.Workload) {
	for i := range w.Slices {
		w.Slices[i].Group = "qr"
	}
}

// single has each slice be one worker, which can be stopped and started.
func single(w *incident.Workload) {
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Accelerator, s.Workers, s.Chips = "v5litepod-8", 1, 8
	}
}

// crewless is a workload beside which no crew runs, bare one without a checkpoint directory either.
func crewless(w *incident.Workload) { w.Training = incident.Training{} }
func bare(w *incident.Workload)     { w.Directory = "" }

// unsavedYet has no checkpoint be verified, and onDemand no slice be Spot.
func unsavedYet(w *incident.Workload) { w.Training.Saved = incident.Checkpoint{} }

func onDemand(w *incident.Workload) {
	for i := range w.Slices {
		w.Slices[i].Capacity = events.OnDemand
	}
}

// with changes the workload.
func (n *story) with(change ...func(*incident.Workload)) *story {
	for _, f := range change {
		if f != nil {
			f(&n.w)
		}
	}
	return n
}

// under is the story under a policy by its name.
func (n *story) under(name string) *story {
	n.Helper()
	switches, known := presets[name]
	switch n.p.Switches, n.p.Unreadable = switches, ""; {
	case name == "seldom":
		n.p.Switches = policy.Switches{RequestCheckpoint: policy.Yes, EarlyMaintenance: policy.Yes}
	case name == "unreadable":
		n.p.Unreadable = "gs://b/policy.yaml: 503"
	case !known:
		n.Fatalf("there is no policy %q", name)
	}
	if n.p.Hang = ""; name == "everything" {
		n.p.Hang = policy.HangRestart
	}
	return n
}

// goes plays steps that are divided by commas.
func (n *story) goes(path string) *story {
	n.Helper()
	for step := range strings.SplitSeq(path, ", ") {
		n.play(step)
	}
	return n
}

// history tells a whole story: steps, divided by commas, and where it stands after them. Nothing says that this does not matter.
func (n *story) history(steps ...string) *story {
	n.Helper()
	for i := 0; i+1 < len(steps); i += 2 {
		var sent []string
		for step := range strings.SplitSeq(steps[i], ", ") {
			sent = n.play(step)
		}
		if got, want := n.stands(sent), steps[i+1]; want != "" && got != want {
			n.Fatalf("after %q it stands at %q, want %q:\n%s", n.path, got, want, n.tale())
		}
	}
	return n
}

// stands is where a story stands, and what it has just asked for.
func (n *story) stands(sent []string) string {
	at := "peace"
	switch {
	case n.w.Incident != nil:
		at = string(n.w.Incident.Status.Label)
	case n.w.Closed != nil:
		at = string(n.w.Closed.Ending.Outcome)
	}
	return strings.TrimSuffix(at+": "+strings.Join(slices.Sorted(slices.Values(sent)), ", "), ": ")
}

// play gives one step, and returns what is asked for.
func (n *story) play(step string) (sent []string) {
	n.Helper()
	n.path = append(n.path, step)
	if d, err := time.ParseDuration(step); err == nil {
		return n.passes(d)
	}
	n.now = n.now.Add(time.Second)
	first, rest, _ := strings.Cut(step, " ")
	i := n.slot(first)
	if i < 0 {
		i, rest = 0, step
	}
	n.sent, n.out = nil, nil
	if learn, is := words[rest]; is {
		n.give(learn(n, &n.w.Slices[i]))
	} else if !n.waits(step) && !n.acts(step) {
		n.Fatalf("nobody knows what %q is:\n%s", step, n.tale())
	}
	return n.sent
}

func (n *story) slot(name string) int {
	return slices.IndexFunc(n.w.Slices, func(s incident.Slot) bool { return s.Name == name })
}

// waits lets time pass, if a step says that.
func (n *story) waits(step string) bool {
	passes, is := map[string]time.Duration{
		"a minute": time.Minute, "a while": bounds.Grace, "an hour": time.Hour, "half a day": 12 * time.Hour, "three minutes": 3 * time.Minute,
	}[step]
	n.now = n.now.Add(passes)
	switch step {
	case "later":
		n.now = n.awaited().Add(time.Second)
	case "early maintenance is forbidden":
		n.p.Switches.EarlyMaintenance = policy.No
		n.tick()
	case "policy unreadable":
		n.p.Unreadable = "line 1 is wrong"
	case "three minutes", "tick":
		n.tick()
	default:
		return is
	}
	return true
}

// awaited is until when the story waits.
func (n *story) awaited() time.Time {
	if in := n.w.Incident; in != nil {
		return in.Status.Until
	}
	w := n.w
	w.Slices = slices.Clone(w.Slices)
	for i := range w.Slices { // to listen for a crew opens nothing
		if s := &w.Slices[i]; n.w.Notice(s.Name) != nil {
			s.Heard = incident.Heard{At: n.now, Seen: n.now, Looked: n.now}
		}
	}
	due := w.Due()
	for _, s := range n.w.Slices { // who deleted it is asked from the first moment on
		if s.Condition == evidence.Gone && due.Equal(s.Since) {
			return due.Add(bounds.Grace)
		}
	}
	return due
}

// tick is one minute of patrol, which asks the audit log before it lets time pass. The log names nobody.
func (n *story) tick() {
	var asked []string
	for _, s := range n.w.Slices {
		if s.Condition == evidence.Gone && n.now.Sub(s.Since) >= bounds.Grace && n.w.Reads(n.now).Has(incident.ReadDeleter, s.Name) {
			asked = n.give(evidence.Unsaid{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation}).sent
		}
	}
	if n.give(evidence.Ticked{Origin: n.reading()}); n.sent == nil {
		n.sent = asked
	}
}

// acts has a function do something with a call, or a provider answer it, if a step says that.
func (n *story) acts(step string) bool {
	n.Helper()
	for _, verb := range []string{"intend", "does"} {
		if what, is := strings.CutPrefix(step, verb+" "); is {
			r := n.request(n.call(what))
			sent := n.intends(r).sent
			if verb == "does" {
				n.answers("accepted", r)
				n.sent = append(sent, n.sent...)
			}
			return true
		}
	}
	if step == "do" {
		n.doAll()
		return true
	}
	for i := range n.w.Effects { // the words before the name of a call that is wanted
		x := &n.w.Effects[i]
		if verb, which, is := strings.Cut(step, " "+string(x.Action)); is && !x.Dropped() {
			r := n.request(n.call(string(x.Action) + which))
			return n.answers(verb, r)
		}
	}
	return false
}

// call is the call that is meant by an action, and a slice or an index.
func (n *story) call(what string) (events.Action, string) {
	n.Helper()
	action, which, named := strings.Cut(what, " ")
	live := slices.DeleteFunc(slices.Clone(n.w.Effects), func(x incident.Effect) bool { return x.Dropped() })
	i, err := strconv.Atoi(which)
	if err != nil {
		i = slices.IndexFunc(live, func(x incident.Effect) bool { return string(x.Action) == action && (!named || x.Slice == which) })
	}
	if i < 0 || i >= len(live) || string(live[i].Action) != action {
		n.Fatalf("nobody wants %s:\n%s", what, n.tale())
	}
	return live[i].Action, live[i].Slice
}

// doAll has every call that waits begun and accepted.
func (n *story) doAll() {
	waits := func(x incident.Effect) bool {
		return !x.Dropped() && x.Answered.IsZero() && x.Action != events.ActionVerify && x.Action != events.ActionHear
	}
	for _, verb := range []string{"intend", "accepted"} {
		for _, x := range slices.Clone(n.w.Effects) {
			if i := n.effect(x.Action, x.Slice); i >= 0 && n.w.Incident != nil && waits(n.w.Effects[i]) {
				if r := n.request(x.Action, x.Slice); verb == "intend" {
					n.intends(r)
				} else {
					n.answers(verb, r)
				}
			}
		}
	}
	n.sent = nil
}

// effect is the index of the call that is wanted or under way.
func (n *story) effect(a events.Action, slice string) int {
	return slices.IndexFunc(n.w.Effects, func(x incident.Effect) bool { return x.Action == a && x.Slice == slice && !x.Dropped() })
}

func (n *story) intends(r events.Request) *story {
	return n.give(evidence.Intended{Origin: n.reading(), Request: r, RequestID: fmt.Sprint(r.Epoch, r.Action, r.Slice)})
}

// answers has something come of a call, which has begun by then unless it is held. It reports whether that is a thing that may.
func (n *story) answers(what string, r events.Request) bool {
	x := &n.w.Effects[n.effect(r.Action, r.Slice)]
	operation, o := x.Operation, n.reading()
	switch {
	case what == "" || strings.Contains(strings.TrimPrefix(what, "late "), " ") && r.Action != events.ActionHear:
		return false
	case what == "held":
		n.give(evidence.Held{Origin: o, Request: r, Code: reason.CodePaused, Why: "paused"})
		return true
	case x.Begun.IsZero():
		n.intends(r)
	}
	switch class, late := strings.CutPrefix(what, "late "); {
	case r.Action == events.ActionVerify:
		n.give(n.look(what, r))
	case r.Action == events.ActionHear:
		n.give(n.hear(what, r))
	case late:
		n.give(evidence.Ended{Origin: o, Operation: operation, Failure: &evidence.Failure{Class: reason.FailureClass(class), Message: "text"}})
	case what == "done":
		n.give(evidence.Ended{Origin: o, Operation: operation})
	case what != "accepted":
		n.fails(r, reason.FailureClass(what))
	case slices.Contains([]events.Action{events.ActionCreate, events.ActionDelete, events.ActionStart}, r.Action):
		n.give(evidence.Answered{Origin: o, Request: r, Text: what, Operation: "operation-" + string(r.Action) + "-" + r.Slice})
	default:
		n.give(evidence.Answered{Origin: o, Request: r, Text: what})
	}
	return true
}

// look is what a look for a checkpoint finds.
func (n *story) look(what string, r events.Request) evidence.Evidence {
	e := evidence.Checked{Origin: n.reading(), Request: r, Text: what, None: what == "none", Stale: what == "stale" || what == "silent"}
	switch what {
	case "found":
		e.Found, e.Step, e.URI, e.At, e.Bytes, e.More = true, 48200, "gs://x", n.now.Add(-20*time.Second), 3<<30, true
	case "silent":
		e.Step, e.URI, e.At = 48000, "gs://x", start.Add(-10*time.Minute)
		e.Saves = []time.Time{start.Add(-30 * time.Minute), start.Add(-20 * time.Minute), start.Add(-10 * time.Minute)}
	}
	return e
}

// hear is what a crew has left beside the checkpoints.
func (n *story) hear(what string, r events.Request) evidence.Evidence {
	verdict := n.lastWord()
	e := evidence.VerdictRead{Origin: n.reading(), Request: r, Verdict: &verdict}
	switch what {
	case "spent":
		e.Saved, e.SavedAt = 48200, n.now.Add(-time.Minute)
	case "no verdict":
		e.Verdict, e.Text = nil, "attempt 1 has none"
	case "no lease": // and what is saved is read all the same
		e.Saved, e.SavedAt = 48200, n.now.Add(-time.Minute)
		e.Verdict, e.Failure = nil, &evidence.Failure{Class: reason.Transient, Message: "503"}
	case "unread":
		e.Verdict, e.Failure = nil, &evidence.Failure{Class: reason.Transient, Message: "503"}
	default:
		verdict.Finished, verdict.Certain = true, what == "sure"
	}
	return e
}

// lastWord is what the crew of the first slice says of its newest attempt.
func (n *story) lastWord() events.CrewVerdict {
	t, s := &n.w.Training, &n.w.Slices[0]
	return events.CrewVerdict{
		Schema: 1, Attempt: max(t.Claim.Attempt, t.Attempt, t.Exit.Attempt, n.w.Lease.Attempt), Ended: n.now, Step: t.Step, Reason: "exit code 1, five times",
		Life: events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts},
	}
}
