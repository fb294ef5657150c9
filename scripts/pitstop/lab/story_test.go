package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/world"
)

// TestWhatComesAgainAndAgainIsFolded: six hours without capacity are a few lines.
func TestWhatComesAgainAndAgainIsFolded(t *testing.T) {
	at := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)
	for rounds, want := range map[int]string{1: "", 2: "", 3: "the same 2 times more, until Nov 12 02:02:40", 300: "the same 299 times more, until Nov 12 06:59:40"} {
		var lines []world.Line
		for i := range rounds {
			when := at.Add(time.Duration(i) * time.Minute)
			lines = append(lines,
				world.Line{Time: when, Kind: world.Sent, Text: "recreate.requested (create a)"},
				world.Line{Time: when.Add(20 * time.Second), Kind: world.Answer, Text: fmt.Sprintf("no capacity [EID: 0x%x]", 1<<i%32)},
				world.Line{Time: when.Add(40 * time.Second), Kind: world.Decision, Text: fmt.Sprintf("ask again in %d s", 10+i)},
			)
		}
		lines = append(lines, world.Line{Time: at.Add(6 * time.Hour), Kind: world.Reading, Text: "node a is READY"})
		var out strings.Builder
		p := storyPrinter{Printer: &terminal.Printer{Out: &out}}
		p.lines(lines)
		told := out.String()
		if sent := strings.Count(told, "recreate.requested"); want == "" && sent != rounds || want != "" && (sent != 1 || !strings.Contains(told, want)) {
			t.Errorf("%d rounds, told %d, want %q:\n%.1500s", rounds, sent, want, told)
		}
		if strings.Count(told, "node a is READY") != 1 || strings.Count(told, "Nov 12, 2026") != 1 {
			t.Errorf("%d rounds:\n%.1500s", rounds, told)
		}
	}
}

// TestWhatSeveralWorkersReportIsSaidOfSeveral: the verb is in the plural where several report it.
func TestWhatSeveralWorkersReportIsSaidOfSeveral(t *testing.T) {
	for _, c := range []struct{ one, two string }{
		{"worker 0 was preempted", "workers 0, 1 were preempted"},
		{"worker 0 has a host error", "workers 0, 1 have a host error"},
		{"worker 0 no longer has announced maintenance", "workers 0, 1 no longer have announced maintenance"},
	} {
		lines := []world.Line{{Text: c.one}, {Text: strings.Replace(c.one, "worker 0", "worker 1", 1)}}
		if got := foldedText(lines[:1]); got != c.one {
			t.Errorf("of one worker: %q, want %q", got, c.one)
		}
		if got := foldedText(lines); got != c.two {
			t.Errorf("of two: %q, want %q", got, c.two)
		}
	}
}
