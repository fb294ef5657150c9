package incident_test

import (
	"flag"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// holds checks a law over the same histories each time; -rapid.seed draws others.
func holds(t *testing.T, law func(*rapid.T)) {
	t.Helper()
	seed := flag.Lookup("rapid.seed").Value
	if seed.String() == "0" {
		if err := seed.Set("1"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, law)
}

// history is a workload after a random history, under a policy that can be read. It begins in peace, or in a phase.
func history(t *rapid.T) (p policy.Policy, n node, all map[string]incident.Evidence) {
	p = policies[rapid.SampledFrom([]string{"everything", "ask", "spot", "seldom", "watch"}).Draw(t, "policy")]
	learn := evidence
	n = node{w: quiet(rapid.Bool().Draw(t, "spot")), now: start}
	switch rapid.SampledFrom([]string{"phase", "peace", "multislice"}).Draw(t, "begins in") {
	case "phase":
		r := rapid.SampledFrom(reach).Draw(t, "reach")
		p = policyOf(r.policy)
		n = at(t, p, r.spot, r.path, r.but)
	case "multislice":
		n.w, learn = multi(rapid.Bool().Draw(t, "spot")), evidenceOfBoth
	}
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		n.now = n.now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second)
		all := learn(n.w, n.now)
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "evidence")
		n.w, _, _ = advance(p, n.w, all[name], n.now)
		if rapid.Bool().Draw(t, "ticks") {
			n.w, _, _ = tick(p, n.w, n.now)
		}
	}
	return p, n, learn(n.w, n.now)
}

// TestWhatIsDeliveredTwiceIsLearnedOnce: Pub/Sub may deliver a message again, and a tick read again what an entry told.
// That a function begins is the exception: two deliveries may both call, and that is kept. What would be done under a policy
// that allows nothing is no fact: it is made anew with each reading.
func TestWhatIsDeliveredTwiceIsLearnedOnce(t *testing.T) {
	holds(t, func(t *rapid.T) {
		p, n, all := history(t)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if _, begins := all[name].(incident.Intended); begins {
				continue
			}
			once, _, _ := advance(p, n.w, all[name], n.now)
			twice, sent, _ := advance(p, once, all[name], n.now)
			if d := cmp.Diff(once, twice, cmpopts.IgnoreFields(incident.Incident{}, "PlannedCalls")); d != "" || len(sent) > 0 {
				t.Fatalf("%s: sent %v, and the document is another one (-once +twice):\n%s", name, sent, d)
			}
		}
	})
}

// TestAnAnswerCountsForItsAttemptAlone: an answer to another attempt, under another epoch or for another incident, changes no
// effect and sends nothing.
func TestAnAnswerCountsForItsAttemptAlone(t *testing.T) {
	answers := 0
	holds(t, func(t *rapid.T) {
		p, n, all := history(t)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for what, change := range map[string]func(*events.Request){
				"another attempt":  func(r *events.Request) { r.Attempt++ },
				"an earlier one":   func(r *events.Request) { r.Attempt-- },
				"another epoch":    func(r *events.Request) { r.Epoch-- },
				"another incident": func(r *events.Request) { r.Incident += "x" },
			} {
				e, asked := answering(all[name], change)
				if !asked {
					continue
				}
				answers++
				after, sent, _ := advance(p, n.w, e, n.now)
				if d := cmp.Diff(n.w.Effects, after.Effects); d != "" || len(sent) > 0 || phaseOf(after) != phaseOf(n.w) {
					t.Fatalf("%s of %s: it stands at %s, sent %v, and the effects are others:\n%s", what, name, phaseOf(after), sent, d)
				}
			}
		}
	})
	if answers == 0 {
		t.Error("no history had anything to answer")
	}
}

// answering is evidence that answers a request, with another request in it; asked is false where it answers none.
func answering(e incident.Evidence, change func(*events.Request)) (answer incident.Evidence, asked bool) {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	v.Set(reflect.ValueOf(e))
	f := v.FieldByName("Request")
	if !f.IsValid() {
		return nil, false
	}
	if r, ok := f.Addr().Interface().(*events.Request); ok {
		change(r)
	}
	answer, asked = v.Interface().(incident.Evidence)
	return answer, asked
}

// TestADecisionChangesNothingThatItWasGiven: documents are shared between readers.
func TestADecisionChangesNothingThatItWasGiven(t *testing.T) {
	holds(t, func(t *rapid.T) {
		p, n, all := history(t)
		before := marshal(t, n.w)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			advance(p, n.w, all[name], n.now)
			if d := cmp.Diff(before, marshal(t, n.w)); d != "" {
				t.Fatalf("%s has changed the document that it was given:\n%s", name, d)
			}
		}
	})
}

// TestTrainingMayRunInOneLifeOfASlot, and no slot keeps more than three.
func TestTrainingMayRunInOneLifeOfASlot(t *testing.T) {
	holds(t, func(t *rapid.T) {
		_, n, _ := history(t)
		for _, s := range n.w.Slices {
			admitted := 0
			for _, l := range append(slices.Clone(s.Former), s.Life) {
				if l.Admission == incident.Admitted {
					admitted++
				}
			}
			if admitted > 1 || len(s.Former) > 2 {
				t.Fatalf("training may run in %d of %d lives of %s", admitted, len(s.Former)+1, s.Name)
			}
		}
	})
}
