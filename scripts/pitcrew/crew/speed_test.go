//go:build unix

package crew

import (
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/child"
)

func TestSpeedBeginsAfterTheFirstStep(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 11, 12, 2, 0, seconds, 0, time.UTC) }
	for name, c := range map[string]struct {
		see  func(*speed)
		want float64
	}{
		"nothing was seen": {func(*speed) {}, 0},
		"one step":         {func(s *speed) { s.step(7, at(90)) }, 0},
		"the first step includes the compilation": {func(s *speed) { s.step(7, at(90)); s.step(8, at(92)); s.step(27, at(100)) }, 20 * 64 / 10.0},
		"two readings of one moment":              {func(s *speed) { s.step(7, at(90)); s.step(9, at(90)) }, 0},
		"it went back to an older checkpoint":     {func(s *speed) { s.step(70, at(0)); s.step(80, at(1)); s.step(10, at(20)); s.step(15, at(30)) }, 32},
		"what the output says counts": {func(s *speed) {
			s.step(7, at(90))
			s.step(27, at(100))
			s.printed(child.Output{Examples: 100, Lines: 1})
			for range 3 { // each look sees the same
				s.printed(child.Output{Examples: 150, Lines: 2})
			}
			s.printed(child.Output{Examples: 900})
		}, 150},
	} {
		s := speed{first: -1}
		c.see(&s)
		if got := s.examples(64); got != c.want {
			t.Errorf("%s: %v examples a second, want %v", name, got, c.want)
		}
	}
	unknown := speed{first: -1}
	if steps, took := unknown.measured(); steps != 0 || took != 0 {
		t.Errorf("before any step: %d in %v", steps, took)
	}
	unknown.step(1, at(0))
	unknown.step(11, at(1))
	if got := unknown.examples(0); got != 0 {
		t.Errorf("without a batch: %v", got)
	}
}

// TestSavesAreToldApartFromSteps: steps of about 10 s, seen every 5 s; each 20th is saved for 30 s, and found a minute later or at once. Once
// there is a pause of 5 minutes.
func TestSavesAreToldApartFromSteps(t *testing.T) {
	for name, c := range map[string]struct {
		before bool // the step is told before its save
		early  bool // the checkpoint is found before the next step is done
	}{
		"the step is told before its save":                            {true, false},
		"the step is told after its save":                             {false, false},
		"the step is told before its save, and found before the next": {true, true},
		"the step is told after its save, and found before the next":  {false, true},
	} {
		s := speed{first: -1}
		at, looked := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC), time.Time{}
		var steps, saves time.Duration
		found := map[int64]time.Time{}
		for n := int64(1); n <= 215; n++ {
			took := 10*time.Second + time.Duration(n%3-1)*200*time.Millisecond
			at = at.Add(took)
			blocks := time.Duration(0)
			if n%20 == 0 {
				blocks = 30 * time.Second
				found[n] = at.Add(90 * time.Second)
			}
			if !c.before {
				at = at.Add(blocks)
			}
			if n == 131 {
				at = at.Add(5 * time.Minute)
			}
			if at.Sub(looked) >= 5*time.Second {
				looked = at
				s.step(n, at)
			}
			if c.before {
				at = at.Add(blocks)
			}
			if n > 1 {
				steps += took
				saves += blocks
			}
			for step, when := range found {
				if c.early || at.After(when) {
					s.saved(step)
					s.saved(step) // another look finds the same
					delete(found, step)
				}
			}
		}
		if off := (s.inSteps - steps).Abs(); off > 5*time.Second {
			t.Errorf("%s: %v in steps, want %v", name, s.inSteps, steps)
		}
		if off := (s.inSaves - saves).Abs(); off > 5*time.Second {
			t.Errorf("%s: %v in saves, want %v", name, s.inSaves, saves)
		}
	}
}

func TestAProgressFileMayTellTheRestore(t *testing.T) {
	for text, want := range map[string]float64{"3": 0, `{"step": 3}`: 0, "{\"step\":2}\n{\"step\":3,\"restore_seconds\":41.5}\n": 41.5, `{"step":3,"restore_seconds":-1}`: 0} {
		if n, restore := parsed(text); n != 3 || restore != want {
			t.Errorf("%s: step %d after a restore of %v s, want %v", text, n, restore, want)
		}
	}
}
