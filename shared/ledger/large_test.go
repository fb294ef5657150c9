package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/reason"
)

// TestAWorkloadOf256SlicesIsSaved loses all of them at once, has them brought back and loses them again, while nothing can be published:
// that is the largest document. Every fact stays in it. What gives way is the middle of the timeline.
func TestAWorkloadOf256SlicesIsSaved(t *testing.T) {
	breadth.Again(t)
	const many, at, project = 256, "us-central2-b", "llama3-405b-pretraining"
	l := newLoop(t, memory)
	l.sent.err = errors.New("away")
	w := incident.New("demo", project, "tpu")
	w.Label, w.Directory = "spot", "gs://a-bucket-with-a-long-name/llama3-405b-pretraining/run-7"
	life := func(i, generation int) events.Incarnation {
		return events.Incarnation{Zone: at, ID: fmt.Sprintf("7982340000%d%09d", generation, i), Created: l.now}
	}
	learn := func(e evidence.Evidence) { w, _, _ = incident.Advance(l.policies.Policy, w, e, l.now) }
	origin := evidence.Origin{Time: l.now, Rank: events.RankReading}
	for i := range many {
		name := fmt.Sprintf("%s-%03d", project, i)
		learn(evidence.Read{
			Origin: origin, Slice: name, Zone: at, Incarnation: life(i, 0), Condition: evidence.Ready, State: "READY HEALTHY", Directory: w.Directory,
			Facts: evidence.Facts{Accelerator: "v4-128", Workers: 16, Chips: 64, Capacity: events.Spot, Spec: strings.Repeat("a", 64), Label: "spot", Account: "train@demo.iam.gserviceaccount.com"},
		})
		learn(evidence.Mapped{Origin: origin, Slice: name, Incarnation: life(i, 0), Group: fmt.Sprintf("t1v-n-3f2a%04x", i)})
	}
	learn(evidence.Reported{
		Origin: evidence.Origin{Time: l.now, Rank: events.RankUser}, Slice: w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportStarted, Attempt: 3, Hostname: "t1v-n-3f2a0000-w-0"},
	})
	l.mustSave(t, w, ledger.Revision{})

	most := 0
	decide := func(e evidence.Evidence) {
		l.now = l.now.Add(time.Second)
		w, _, _ = incident.Advance(l.policies.Policy, w, e, l.now)
	}
	// give stores the last piece of evidence, with all that follows from it in the outbox.
	give := func(all ...evidence.Evidence) {
		t.Helper()
		for _, e := range all[:len(all)-1] {
			decide(e)
		}
		_, rev := l.mustLoad(t, w.ID)
		l.mustSave(t, w, rev)
		var err error
		if w, err = l.Introduce(t.Context(), w, all[len(all)-1]); err != nil {
			t.Fatalf("%s, a %T: %v", stage(w), all[len(all)-1], err)
		}
		stored, _ := l.mustLoad(t, w.ID)
		body, err := json.Marshal(stored)
		must(t, err)
		most = max(most, len(body))
		w.Outbox = nil // it has gone out
	}
	read := func(c evidence.Condition, generation int) {
		t.Helper()
		var all []evidence.Evidence
		for i, s := range w.Slices {
			e := evidence.Read{
				Origin: evidence.Origin{ID: "read", Time: l.now, Rank: events.RankReading}, Slice: s.Name, Zone: at, Condition: c,
				State: strings.ToUpper(string(c)),
			}
			if c != evidence.Gone {
				e.Incarnation = w.Slices[i].Incarnation
			}
			if generation > 0 {
				e.Incarnation = life(i, generation)
				e.Facts = evidence.Facts{
					Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Capacity: events.Spot, Spec: s.Spec, Label: s.Label, Account: s.Account,
				}
				e.Directory = w.Directory
			}
			if generation > 0 && w.Incident != nil {
				e.Incident = w.Incident.ID
			}
			all = append(all, e)
		}
		give(all...)
	}
	do := func(failure *evidence.Failure) {
		t.Helper()
		effects := slices.DeleteFunc(slices.Clone(w.Effects), func(x incident.Effect) bool {
			return x.Action != events.ActionCreate && x.Action != events.ActionDelete // the lease is not written here
		})
		var all []evidence.Evidence
		for _, effect := range effects {
			r := w.Request(effect).(interface{ Header() events.Request }).Header() //nolint:forcetypeassert // it is one
			all = append(all, evidence.Intended{Origin: evidence.Origin{Time: l.now}, Request: r, RequestID: ledger.RequestID(r, at)})
			answer := evidence.Answered{Origin: evidence.Origin{Time: l.now}, Request: r, Failure: failure}
			if failure == nil {
				answer.Operation = "projects/demo/locations/us-central2-b/operations/operation-1763990000000-" + effect.Slice
			}
			all = append(all, answer)
		}
		give(all...)
		if len(effects) != many {
			t.Fatalf("%s: %d effects, want %d", stage(w), len(effects), many)
		}
	}
	busy := &evidence.Failure{Class: reason.Transient, Message: strings.Repeat("the service is unavailable, try again later. ", 12)}

	read(evidence.Lost, 0)
	do(busy)
	l.now = l.now.Add(10 * time.Minute)
	give(evidence.Ticked{})
	do(nil)
	read(evidence.Gone, 0)
	do(busy)
	l.now = l.now.Add(10 * time.Minute)
	give(evidence.Ticked{})
	do(nil)
	read(evidence.Ready, 1)
	give(evidence.Cancelled{Word: evidence.Word{By: "ann@example.com"}, Incident: w.Incident.ID})
	do(nil)
	read(evidence.Gone, 0)
	if w.Incident != nil || w.Closed == nil {
		t.Fatalf("it stands as %s", stage(w))
	}
	read(evidence.Ready, 2)
	read(evidence.Lost, 0)
	var unknown []evidence.Evidence
	for i := range 20 + many { // from workers of each slice that nobody knows
		s := w.Slices[i%many].Name
		unknown = append(unknown, evidence.Reported{
			Origin: evidence.Origin{ID: fmt.Sprintf("line-%d", i), Time: l.now, Rank: events.RankUser}, Slice: s,
			Report: events.CrewReport{
				Report: events.ReportExited, Zone: at, Node: s, Hostname: "t1v-n-ffffffff-w-0", Attempt: i, ExitCode: 1, SaveID: strings.Repeat("s", 230),
				Reason: strings.Repeat("a long reason ", 10_000), Tail: []string{strings.Repeat("an error ", 10_000)},
			},
		})
	}
	give(unknown...)
	if len(w.Unbound) != 32 {
		t.Errorf("%d lines are kept, want 32", len(w.Unbound))
	}
	since := l.now
	do(busy)

	stored, _ := l.mustLoad(t, w.ID)
	in := stored.Shown(l.now).Incident
	if len(stored.Slices) != many || len(stored.Effects) < many || stored.Closed == nil {
		t.Errorf("%d slices and %d effects are stored, and a closed incident: %v", len(stored.Slices), len(stored.Effects), stored.Closed != nil)
	}
	first, last := in.Timeline[0], in.Timeline[len(in.Timeline)-1]
	if in.LeftOut == 0 || !strings.HasSuffix(first.Text, "-000 is LOST") || !last.At.After(since) {
		t.Errorf("%s: it begins with %q at %v and ends with %q at %v", stage(stored), first.Text, first.At, last.Text, last.At)
	}
	t.Logf("the largest document has %d KiB, %s", most>>10, stage(stored))
}

func stage(w incident.Workload) string {
	if w.Incident == nil {
		return "no incident"
	}
	in := w.Shown(w.Incident.Opened).Incident
	return fmt.Sprintf("%s with %d effects, %d lines and %d left out", in.Phase, len(w.Effects), len(in.Timeline), in.LeftOut)
}
