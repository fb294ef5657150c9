package incident_test

import (
	"strings"
	"testing"
)

// planned are the calls that an incident keeps which may only be watched.
func (n *story) planned() string {
	in := n.w.Incident
	if in == nil {
		in = n.w.Closed
	}
	var all []string
	for _, c := range in.Planned {
		all = append(all, string(c.Action))
	}
	return strings.Join(all, " ")
}

// TestAWatchedIncidentKeepsWhatWouldHaveBeenCalled: a save that would have been asked for stays, whatever has happened since. A crew that says that
// it has given up is believed.
func TestAWatchedIncidentKeepsWhatWouldHaveBeenCalled(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"lost":                                   "delete create admit",
		"pending, later, tick":                   "save save maintain",
		"pending, later, tick, later":            "save save maintain",
		"pending, later, tick, unhealthy, ready": "save save maintain",
		"pending, later, tick, lost":             "save save maintain delete create admit",
		"exit 1, gave up":                        "restart",
	} {
		if n := at(t, "watch", true, path); n.planned() != want {
			t.Errorf("%s: planned is %q, want %q\n%s", path, n.planned(), want, n.tale())
		}
	}
}
