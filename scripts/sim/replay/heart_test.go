//go:build heart

package replay_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
)

// byOtherCalls are the recorded incidents that end as they should by other calls or requests, each with the reason.
var byOtherCalls = map[string]string{
	"multislice-queued":        "it asks at once for a deletion that is under way already",
	"preempted-before-ready":   "it asks at once for a creation that has to wait",
	"preempted-while-creating": "it asks at once for a creation that has to wait",
}

// TestRecorded plays the recorded incidents on the heart's third edition: each ends as its want.json says, by the calls and requests there. With
// HEART_ONLY in the environment, it plays that one alone and shows its story.
func TestRecorded(t *testing.T) {
	t.Parallel()
	only := os.Getenv("HEART_ONLY")
	same := 0
	all := slices.DeleteFunc(recorded(t), func(r replay.Recorded) bool { return only != "" && r.Name != only })
	for _, r := range all {
		line, how := compared(t, r, only != "")
		why, known := byOtherCalls[r.Name]
		if how == 2 {
			same++
		}
		switch {
		case how == 2 && known:
			t.Errorf("%s goes as it should: it is not to be excused any more (%s)", r.Name, why)
		case how == 0, how == 1 && !known:
			t.Error(line)
		}
	}
	t.Logf("%d of %d end as they should, %d of them with the same calls and requests", len(all), len(all), same)
}

// compared plays a recorded incident, and says how it compares: 2 for the same, 1 for the same ends, 0 for other ends.
func compared(t *testing.T, r replay.Recorded, story bool) (line string, how int) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			line, how = fmt.Sprintf("-- %-34s panics: %v", r.Name, p), 0
		}
	}()
	began := time.Now()
	s, err := replay.Run(t.Context(), r.Name, r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy}})
	if err != nil {
		return fmt.Sprintf("-- %-34s %v", r.Name, err), 0
	}
	if story {
		for _, l := range s.Lines {
			if !l.Routine {
				t.Logf("%s %-9s %-11s %-10s %s | %s", l.Time.Format("02 15:04:05"), l.Kind, l.Function, l.Phase, l.Text, l.Reason)
			}
		}
	}
	var not []string
	how = 2
	if d := cmp.Diff(r.Want.Incidents, ends(s)); d != "" {
		not, how = append(not, fmt.Sprintf("ends %v, want %v", ends(s), r.Want.Incidents)), 0
	}
	for _, f := range s.Faults {
		not, how = append(not, f), 0
	}
	for _, o := range s.Open {
		not, how = append(not, fmt.Sprintf("%s waits in phase %s", o.ID, o.Phase)), 0
	}
	for what, pair := range map[string][2]map[string]int{"calls": {r.Want.Calls, s.Calls}, "requests": {r.Want.Requests, s.Requests}} {
		if !maps.Equal(pair[0], pair[1]) {
			not, how = append(not, fmt.Sprintf("%s %v, want %v", what, pair[1], pair[0])), min(how, 1)
		}
	}
	slices.Sort(not)
	return fmt.Sprintf("%s %-34s %4.1f s  %s", []string{"--", "~ ", "ok"}[how], r.Name, time.Since(began).Seconds(), strings.Join(not, "; ")), how
}
