package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestALabelIsReadWhateverThePolicy: an owner may change it while the policy cannot be read.
func TestALabelIsReadWhateverThePolicy(t *testing.T) {
	for _, p := range []string{"everything", "unreadable"} {
		w, changed := relabelled(t, p)
		if !changed || w.Label != "watch" {
			t.Errorf("policy %s: the label is %q, changed %v", p, w.Label, changed)
		}
	}
}

// relabelled is a workload in a queued resource whose owner has just named the policy watch.
func relabelled(t *testing.T, p string) (incident.Workload, bool) {
	t.Helper()
	n := at(t, policies["everything"], true, "tick", inQueue)
	e := evidence(n.w, n.now)["read ready"].(incident.Read) //nolint:forcetypeassert // it is one
	e.Facts.Label, e.Facts.Spec, e.Facts.Group, e.Time = "watch", "watched", "qr", n.now.Add(time.Minute)
	w, _, changed := advance(policies[p], n.w, e, e.Time)
	return w, changed
}

// TestAnOrderSaysNothingNewerThanTheNodeThatCameOfIt: the owner has named another policy on the node, which is lost, and its suspended
// queued resource still shows the first one. Another order is news.
func TestAnOrderSaysNothingNewerThanTheNodeThatCameOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		ordered time.Duration
		want    string
	}{
		"the order that brought it": {-time.Minute, "watch watched"},
		"another order":             {time.Minute, "night s"},
	} {
		w, _ := relabelled(t, "everything")
		e := evidence(w, start.Add(time.Hour))["read ready"].(incident.Read) //nolint:forcetypeassert // it is one
		e.Ordered = w.Slices[0].Incarnation.Created.Add(c.ordered)
		e.Incarnation, e.Condition, e.State = events.Incarnation{}, incident.Lost, "SUSPENDED (queued resource)"
		e.Facts.Label, e.Facts.Spec, e.Facts.Group = "night", "s", "qr"
		w, _, _ = advance(policies["watch"], w, e, start.Add(time.Hour))
		if got := w.Label + " " + w.Slices[0].Spec; got != c.want {
			t.Errorf("%s: label and order are %q, want %q", name, got, c.want)
		}
	}
}
