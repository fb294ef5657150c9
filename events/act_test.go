package events_test

import (
	"regexp"
	"slices"
	"testing"

	"pitstop.internal/events"
)

func TestActs(t *testing.T) {
	for method, want := range map[string]struct {
		act   events.Act
		whole bool
	}{
		"CreateNode": {events.ActCreated, false}, "CreateQueuedResource": {events.ActCreated, true},
		"DeleteNode": {events.ActDeleted, false}, "DeleteQueuedResource": {events.ActDeleted, true},
		"StartNode": {events.ActStarted, false}, "StopNode": {events.ActStopped, false},
		"ReimageNode": {"", false}, "ResetQueuedResource": {"", true}, "UpdateNode": {"", false},
	} {
		act, whole := events.Call{Method: method}.Act()
		if act != want.act || whole != want.whole {
			t.Errorf("%q: %q, whole %t", method, act, whole)
		}
		sinks := events.Sinks()
		audit := sinks[slices.IndexFunc(sinks, func(s events.Sink) bool { return s.Name == "tpu-audit" })].Filter
		of := regexp.MustCompile(`[(|]` + method + `[|)]`)
		if selected := of.MatchString(audit); selected != (act != "" || method == "ReimageNode" || method == "ResetQueuedResource") {
			t.Errorf("the sink selects %q: %t", method, selected)
		}
	}
}
