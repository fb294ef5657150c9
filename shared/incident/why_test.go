package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// TestWhyNothingIsDone: each slice that cannot be used, and for which nothing is under way, says why.
func TestWhyNothingIsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tell func(n *story)
		want string
	}{
		"it serves":      {func(*story) {}, ""},
		"sick for a bit": {func(n *story) { n.reads("llama-8b", evidence.Unhealthy) }, "an incident opens at 2026-11-12T02:06:00Z, unless it passes by itself"},
		"it may heal": {func(n *story) {
			n.reads("llama-8b", evidence.Unhealthy)
			n.passes(bounds.SickFor + time.Minute)
		}, "Google may bring it back until 2026-11-12T06:06:00Z"},
		"its owner stopped it": {func(n *story) {
			n.give(evidence.Called{Origin: n.reading(), Slice: "llama-8b", Zone: "us-west4-a", Act: events.ActStopped, Principal: "ann@example.com"})
			n.reads("llama-8b", evidence.Stopped)
		}, "ann@example.com"},
		"people know of it": {func(n *story) {
			n.p.Switches.Recreate = 0
			n.reads("llama-8b", evidence.Lost)
			n.passes(2 * time.Hour)
		}, "told"},
		"a deletion is under way": {func(n *story) { n.reads("llama-8b", evidence.Lost) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newStory(t, true, "llama-8b")
			n.now = n.now.Add(time.Minute)
			c.tell(n)
			if why := n.w.Shown(n.now).Slices[0].Why; c.want == "" && why != "" || !strings.Contains(why, c.want) {
				t.Errorf("it says %q, want %q:\n%s", why, c.want, n.tale())
			}
		})
	}
}
