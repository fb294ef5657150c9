package incident_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

func TestReads(t *testing.T) {
	const (
		entry  = "slices: the open incident waits for a reading of its slices"
		silent = "no step has been reported for longer than is usual"
	)
	nameless := func(w *incident.Workload) { w.Slices[0].Hosts = "" }
	for path, c := range map[string]struct {
		but  func(*incident.Workload)
		want []string
	}{
		"tick":                               {nil, nil},
		"tick, read lost":                    {nil, nil},
		"preempted":                          {nil, []string{entry}},
		"tick, tick":                         {nameless, []string{"hosts llama-8b: entries that name its workers are not understood"}},
		"read unhealthy":                     {nameless, []string{"hosts llama-8b: entries that name its workers are not understood"}},
		"read lost":                          {nameless, nil},
		"half a day":                         {nil, []string{"training: " + silent, "crew llama-8b: " + silent}},
		"half a day, a crew that waits":      {nil, []string{"training: " + silent}},
		"finished":                           {nil, []string{"crew llama-8b: a line says that the training is over, and nothing confirms it"}},
		"pending":                            {nil, []string{"saver llama-8b: maintenance is announced, and nothing shows that its crew would save"}},
		"pending, silence":                   {nil, nil},
		"read gone":                          {nil, []string{"deleter llama-8b since 6 h 0 m: it is gone, and nobody has said why"}},
		"read gone, owner deletes":           {nil, nil},
		"read stopped":                       {nil, nil},
		"read stopped, a while":              {nil, []string{"stopper llama-8b since 1 h 35 m: it is stopped, and nobody has said by whom"}},
		"read stopped, owner stops, a while": {nil, nil},
		"read stopped, a while, unsaid":      {nil, nil},
		"preempted, read lost, intend delete 0, accepted delete 0":                {nil, []string{"operation llama-8b: it is not known to have ended"}},
		"preempted, read lost, intend delete 0, accepted delete 0, done delete 0": {nil, nil},
	} {
		t.Run(path, func(t *testing.T) {
			n := at(t, policies["everything"], true, path, c.but)
			if d := cmp.Diff(c.want, reads(n)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// reads are what has to be read, and why.
func reads(n node) (all []string) {
	for _, r := range readsOf(n.w, n.now) {
		what := string(r.Kind)
		if r.Slice != "" {
			what += " " + r.Slice
		}
		if !r.Since.IsZero() {
			what += " since " + events.Span(n.now.Sub(r.Since))
		}
		all = append(all, what+": "+r.Why)
	}
	return all
}

// TestCrewsAreListenedFor while something about the training is in doubt, as often as the doubt is worth.
func TestCrewsAreListenedFor(t *testing.T) {
	p := policies["everything"]
	resuming := at(t, p, true, "exit 139", nil)
	unproven := at(t, p, true, "tick", func(w *incident.Workload) {
		bare(w)
		w.Budgets, w.Progress.Proven = incident.Budgets{Restarts: 1, Since: w.Progress.At.Add(-time.Hour)}, w.Progress.High-1
		w.Slices[0].Heard.At = start
	})
	for name, c := range map[string]struct {
		n    node
		from time.Time
		why  string
	}{
		"progress is nearly overdue":  {resuming, resuming.w.Incident.Deadline.Add(-incident.ListenAgain), "the incident is nearly overdue, and no progress has been reported"},
		"only lines tell of progress": {unproven, start.Add(incident.ProveEvery), "only lines tell of progress"},
	} {
		c.n.w.Progress.GapSeconds = int64(24 * time.Hour / time.Second) // nothing hangs
		for after, want := range map[time.Duration][]string{-time.Second: nil, 0: {c.why}} {
			var got []string
			for _, r := range readsOf(c.n.w, c.from.Add(after)).Of(incident.ReadCrew, "llama-8b") {
				got = append(got, r.Why)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s after: %q, want %q", name, after, got, want)
			}
		}
	}
	unproven.w.Slices[0].Condition = incident.Unhealthy
	if readsOf(unproven.w, start.Add(incident.ProveEvery)).Has(incident.ReadCrew, "") != either(false, true, "sick") {
		t.Error("a machine that is not usable is to prove progress")
	}
}

// TestWhatWasReadIsNotReadAgainAtOnce goes one step on from every phase. An answer settles what it was read for, also one that
// says that nothing can be read. What is gone is asked about until it is decided on.
func TestWhatWasReadIsNotReadAgainAtOnce(t *testing.T) {
	read := map[incident.ReadKind]int{}
	for _, r := range reach {
		p := policyOf(r.policy)
		from := at(t, p, r.spot, r.path, r.but)
		all := evidence(from.w, from.now)
		for _, what := range sorted(all) {
			w, _, _ := advance(p, from.w, all[what], from.now)
			for _, later := range []time.Duration{0, 10 * time.Minute, incident.Grace, 12 * time.Hour} {
				now := from.now.Add(later)
				for _, r := range readsOf(w, now) {
					read[r.Kind]++
					if !settled(p, w, r, now) {
						t.Fatalf("%s, %s, after %s: %s of %s is read again: %s", from.path, what, later, r.Kind, r.Slice, r.Why)
					}
				}
			}
		}
	}
	t.Logf("read: %v", read)
	for _, kind := range readKinds(t) {
		if read[kind] == 0 && !(*third && kind == incident.ReadSaver) { // the third edition listens for none whose save an incident has prepared
			t.Errorf("nothing needs %s to be read", kind)
		}
	}
}

func readKinds(t *testing.T) (kinds []incident.ReadKind) {
	t.Helper()
	for _, kind := range constants(t, "reads.go", "ReadKind") {
		kinds = append(kinds, incident.ReadKind(kind))
	}
	return kinds
}

// settled reports whether an answer settles a reading, if there is one that does.
func settled(p policy.Policy, w incident.Workload, r incident.ToRead, now time.Time) bool {
	origin := incident.Origin{Time: now, Rank: events.RankReading}
	var answer incident.Evidence
	switch r.Kind {
	case incident.ReadHosts:
		answer = incident.Mapped{Origin: origin, Slice: r.Slice, Incarnation: r.Life}
	case incident.ReadCrew, incident.ReadSaver:
		answer = incident.Beat{Origin: origin, Slice: r.Slice, Incarnation: r.Life}
	case incident.ReadStopper:
		answer = incident.Unsaid{Origin: origin, Slice: r.Slice, Incarnation: r.Life}
	case incident.ReadOperation:
		answer = incident.Ended{Origin: origin, Operation: r.Operation}
	case incident.ReadSlices, incident.ReadTraining, incident.ReadDeleter:
		return true
	}
	w, _, _ = advance(p, w, answer, now)
	return !slices.ContainsFunc(readsOf(w, now).Of(r.Kind, r.Slice), func(again incident.ToRead) bool { return again.Operation == r.Operation })
}

// TestTheAnswersOfTheAuditLog: a stop may have happened long before it was seen, an end not, and silence counts only once late
// entries have come.
func TestTheAnswersOfTheAuditLog(t *testing.T) {
	call := func(method string, at time.Time) events.Entry {
		return events.Entry{Kind: events.KindCall, Time: at, Call: events.Call{Method: method}}
	}
	p := policies["everything"]
	gone, stopped := at(t, p, true, "read gone", nil), at(t, p, true, "read stopped, a while", nil)
	turned := gone.w.Slices[0].Since
	for name, c := range map[string]struct {
		n     node
		kind  incident.ReadKind
		entry events.Entry
		want  bool
	}{
		"it was deleted a moment ago":  {gone, incident.ReadDeleter, call("DeleteNode", turned), true},
		"it was deleted six hours ago": {gone, incident.ReadDeleter, call("DeleteNode", turned.Add(-6*time.Hour)), true},
		"another life was deleted":     {gone, incident.ReadDeleter, call("DeleteNode", turned.Add(-6*time.Hour-time.Second)), false},
		"it was preempted":             {gone, incident.ReadDeleter, events.Entry{Kind: events.KindLoss, Time: turned}, true},
		"it was stopped before":        {gone, incident.ReadDeleter, call("StopNode", turned), false},
		"it was stopped":               {stopped, incident.ReadStopper, call("StopNode", turned), true},
		"it was stopped a week ago":    {stopped, incident.ReadStopper, call("StopNode", turned.Add(-7*24*time.Hour)), true},
		"it was started":               {stopped, incident.ReadStopper, call("StartNode", turned), true},
		"it was started a week ago":    {stopped, incident.ReadStopper, call("StartNode", turned.Add(-7*24*time.Hour)), false},
	} {
		asked := readingsOf(c.n.w, c.n.now, c.kind, "llama-8b")
		if len(asked) != 1 {
			t.Fatalf("%s: asked for is %+v", name, asked)
		}
		if got := asked[0].Answers(c.entry); got != c.want {
			t.Errorf("%s: it answers: %v, want %v", name, got, c.want)
		}
	}
	asked := readingsOf(gone.w, gone.now, incident.ReadDeleter, "llama-8b")[0]
	for after, want := range map[time.Duration]bool{0: false, incident.Grace - time.Second: false, incident.Grace: true} {
		if got := asked.Silence(turned.Add(after)); got != want {
			t.Errorf("silence after %s is an answer: %v, want %v", after, got, want)
		}
	}
}

// TestAStopIsSearchedForAMonth, though the slice was usable longer ago.
func TestAStopIsSearchedForAMonth(t *testing.T) {
	n := at(t, policies["everything"], true, "read stopped, a while", nil)
	for used, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 40 * 24 * time.Hour: 30 * 24 * time.Hour} {
		n.w.Slices[0].Used = n.now.Add(-used)
		r := readsOf(n.w, n.now).Of(incident.ReadStopper, "llama-8b")
		if len(r) != 1 || n.now.Sub(r[0].Since) != want {
			t.Errorf("used %s ago: it is searched for in %s", used, fmt.Sprint(r))
		}
	}
}
