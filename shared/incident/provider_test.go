package incident_test

import (
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestWordsAreThoseOfTheProvider, by default those of the Cloud TPU API. Calls are recorded as an audit log names them.
func TestWordsAreThoseOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"cloud-tpu", "", "unknown", "gke"} {
		words := incident.WordsOf(provider)
		if isTPU := words.Slice == "node" && words.Group == "queued resource" && words.Healer == "Google" && strings.HasSuffix(words.DeleteGroup, "queued-resources delete"); isTPU == (provider == "gke") {
			t.Errorf("%q: %+v", provider, words)
		}
		for action, act := range map[events.Action]events.Act{events.ActionCreate: events.ActCreated, events.ActionDelete: events.ActDeleted, events.ActionStart: events.ActStarted} {
			method, known := words.Calls[action]
			if got, whole := (events.Call{Method: method.Slice}).Act(); known && (got != act || whole) {
				t.Errorf("%q: %s is %q, whole %t", provider, method.Slice, got, whole)
			}
			if got, whole := (events.Call{Method: method.Group}).Act(); known && method.Group != "" && (got != act || !whole) {
				t.Errorf("%q: %s is %q, whole %t", provider, method.Group, got, whole)
			}
		}
	}
}
