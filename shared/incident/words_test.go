package incident_test

import (
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestWordsAreThoseOfTheProvider: a stored document names its provider, and one whose provider is not known has slices of the
// Cloud TPU API.
func TestWordsAreThoseOfTheProvider(t *testing.T) {
	for _, provider := range []string{"cloud-tpu", "", "unknown"} {
		words := incident.Workload{Provider: provider}.Words()
		if words.Slice != "node" || words.Group != "queued resource" || words.Healer != "Google" || !strings.HasSuffix(words.DeleteGroup, "queued-resources delete") {
			t.Errorf("%q: %+v", provider, words)
		}
		// The calls that are recorded are those by which an audit log tells of them.
		for action, act := range map[events.Action]events.Act{
			events.ActionCreate: events.ActCreated, events.ActionDelete: events.ActDeleted, events.ActionStart: events.ActStarted,
		} {
			method := words.Calls[action]
			if got, whole := (events.Call{Method: method.Slice}).Act(); got != act || whole {
				t.Errorf("%q: %s is %q, whole %t", provider, method.Slice, got, whole)
			}
			if got, whole := (events.Call{Method: method.Group}).Act(); method.Group != "" && (got != act || !whole) {
				t.Errorf("%q: %s is %q, whole %t", provider, method.Group, got, whole)
			}
		}
		if act, _ := (events.Call{Method: words.Stops}).Act(); act != events.ActStopped {
			t.Errorf("%q: %s is %q", provider, words.Stops, act)
		}
	}
}
