package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestQuotaIsNotAskedForBlindly: what the project's own limit refuses is looked at first, and asked for every ten minutes;
// where the limit is nothing it is never asked for again.
func TestQuotaIsNotAskedForBlindly(t *testing.T) {
	const created = "preempted, read lost, intend delete 0, accepted delete 0, read gone"
	for name, c := range map[string]struct {
		class incident.FailureClass
		zones []string
		// sent is what follows at once, and after is how long it takes until the zone is asked again.
		sent  string
		after time.Duration
	}{
		"the only zone has no quota left":    {incident.Quota, nil, "creating", incident.QuotaEvery},
		"the only zone has no capacity left": {incident.Stockout, nil, "creating", 2 * incident.CapacityEvery},
		"the first of two has no quota left": {incident.Quota, []string{"us-west4-b"}, "creating: create llama-8b", 0},
		"the only zone has no quota at all":  {incident.NoQuota, nil, "escalated", 0},
		"the first of two has no quota":      {incident.NoQuota, []string{"us-west4-b"}, "creating: create llama-8b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies["spot"]
			p.Zones = c.zones
			n := at(t, p, true, created+", intend create 0", nil)
			refused := evidence(n.w, n.now)["stockout create 0"].(incident.Answered) //nolint:forcetypeassert // it is one
			refused.Failure = &incident.Failure{Class: c.class, Message: "Quota limit 'X' has been exceeded."}
			var sent []events.Event
			n.w, sent, _ = advance(p, n.w, refused, n.now)
			if d := cmp.Diff(c.sent, stands(n.w, sent)); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			if n.w.Incident == nil {
				if !strings.Contains(n.w.Closed.Advice, "ask Google for quota for v5litepod-16") {
					t.Errorf("the advice is %q", n.w.Closed.Advice)
				}
				return
			}
			if look := c.class == incident.Quota; readsOf(n.w, n.now).Has(incident.ReadSlices, "") != look {
				t.Errorf("it is looked at: %v, want %v", readsOf(n.w, n.now).Has(incident.ReadSlices, ""), look)
			}
			began := n.now
			for sent = nil; c.after > 0 && len(zonesOf(sent)) == 0; {
				n.now = n.now.Add(time.Second)
				n.w, sent, _ = tick(p, n.w, n.now)
				if n.now.Sub(began) > time.Hour {
					t.Fatalf("it is not asked for again; %s", tale(n.w))
				}
			}
			if took := n.now.Sub(began); took > c.after || took < c.after/2 {
				t.Errorf("it is asked for again after %s, want %s", took, c.after)
			}
		})
	}
}

// TestElsewhereIsWhereASliceMayStillCome: not where it is asked for, and no zone that can never give it.
func TestElsewhereIsWhereASliceMayStillCome(t *testing.T) {
	never := func(zone string) incident.Refusal { return incident.Refusal{Zone: zone, Never: true} }
	for name, c := range map[string]struct {
		zones   []string
		refused []incident.Refusal
		asked   string
		want    bool
	}{
		"its own zone alone":                    {nil, nil, "us-west4-a", false},
		"its own zone alone, named":             {[]string{"us-west4-a"}, nil, "us-west4-a", false},
		"another":                               {[]string{"us-west4-b"}, nil, "us-west4-a", true},
		"its own zone, from another":            {[]string{"us-west4-b"}, nil, "us-west4-b", true},
		"another that has no capacity now":      {[]string{"us-west4-b"}, []incident.Refusal{{Zone: "us-west4-b"}}, "us-west4-a", true},
		"another that never gives it":           {[]string{"us-west4-b"}, []incident.Refusal{never("us-west4-b")}, "us-west4-a", false},
		"a third, where another never gives it": {[]string{"us-west4-b", "us-west4-c"}, []incident.Refusal{never("us-west4-b")}, "us-west4-a", true},
	} {
		p := policies["spot"]
		p.Zones = c.zones
		w := quiet(true)
		w.Incident = &incident.Incident{Zones: c.refused}
		if got := w.OtherPlaceMayHaveIt(p, "llama-8b", incident.Place{Zone: c.asked}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if w := multi(true); w.OtherPlaceMayHaveIt(policies["spot"], "a", incident.Place{Zone: "us-west4-a"}) {
		t.Error("one of two goes where the other is not")
	}
}
