package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestAMeterOnATerminalIsABar: with the same words, no wider than the line, and gone when other text is printed.
func TestAMeterOnATerminalIsABar(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &Meter{out: &out, now: func() time.Time { now = now.Add(time.Second); return now }, width: 80, bar: newBar(&out)}
	m.began = m.now()
	m.told = m.began
	m.Show(0.25, []string{"1,234,567 of 9,876,543 entries", "100.0 of 400.0 days", "12 incidents"}, 1000, "entries")
	m.Show(0.5, []string{"2 of 4 entries", "1.0 of 2.0 days", "3 incidents"}, 2, "entries")
	m.Clear()
	shown := out.String()
	for _, want := range []string{"25%", "1,234,567 of 9,876,543 entries · 100.0 of 400.0 days · 3 s left", "50%", "2 of 4 entries · 1.0 of 2.0 days · 3 incidents · 2 s left"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %q", want, shown)
		}
	}
	if !strings.HasSuffix(shown, "\x1b[2K\r") {
		t.Errorf("the bar is still there: %q", shown)
	}
}
