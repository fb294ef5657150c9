package incident_test

import (
	"strings"
	"testing"
)

// TestWhyNothingIsDone: each slice that cannot be used, and for which nothing is under way, says why.
func TestWhyNothingIsDone(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"1m":                        "",
		"read unhealthy":            "an incident opens at 2026-11-12T02:05:01Z, unless it passes by itself",
		"read unhealthy, 6m":        "Google may bring it back until 2026-11-12T06:05:01Z",
		"owner stops, read stopped": "ann@example.com",
		"read lost":                 "", // a deletion is under way
		"seldom, read lost, 2h":     "told",
	} {
		policy := "everything"
		if path != strings.TrimPrefix(path, "seldom, ") {
			policy = "seldom"
		}
		n := at(t, policy, true, strings.TrimPrefix(path, "seldom, "))
		if why := n.w.Shown(n.now).Slices[0].Why; want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s: it says %q, want %q:\n%s", path, why, want, n.tale())
		}
	}
}
