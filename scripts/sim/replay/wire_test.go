package replay_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/breadth"
)

// TestTheWireChangesNothingOfARecord plays recorded incidents over HTTP and by gRPC, and without: the lines, calls, documents and ends are the
// same.
func TestTheWireChangesNothingOfARecord(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	for _, r := range some(t, 3) {
		direct, wire := run(t, r, world.Options{Trail: true}), run(t, r, world.Options{Trail: true, Wire: true})
		if d := cmp.Diff(direct.Lines, wire.Lines); d != "" {
			t.Errorf("%s: the lines differ (-direct +wire):\n%s", r.Name, d)
		}
		if d := cmp.Diff(trails(t, direct), trails(t, wire)); d != "" {
			t.Errorf("%s: the trail differs (-direct +wire):\n%s", r.Name, d)
		}
	}
}

// trails is the trail of a story as another build reads it.
func trails(t *testing.T, s *world.Story) string {
	t.Helper()
	var b bytes.Buffer
	must(t, trail.Write(&b, *s.Trail))
	return b.String()
}

// TestARecordedIncidentIsTheSameTwice compares recorded incidents with themselves: their lines, whether the functions log or not, and their
// trail through the form that another build would write.
func TestARecordedIncidentIsTheSameTwice(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	steps := 0
	for _, r := range some(t, 3) {
		this, again := run(t, r, world.Options{Trail: true}), run(t, r, world.Options{Trail: true})
		if d := cmp.Diff(played(t, r).story.Lines, this.Lines); d != "" {
			t.Errorf("%s: the lines differ (-first +second):\n%s", r.Name, d)
		}
		c := trail.NewComparison(trail.NewReader(strings.NewReader(trails(t, again))), func(d trail.Divergence) { t.Errorf("%s: %+v", r.Name, d) })
		must(t, c.Add(*this.Trail))
		if s, err := c.End(); err != nil || len(s.Kinds) > 0 {
			t.Errorf("%s: %v, %+v", r.Name, err, s)
		}
		for _, w := range this.Trail.Workloads {
			steps += len(w.Steps)
		}
	}
	if steps < 100 {
		t.Errorf("%d steps in all recorded incidents: that is no trail", steps)
	}
}
