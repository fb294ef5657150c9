package breadth_test

import (
	"flag"
	"strconv"
	"testing"

	"pitstop.internal/shared/breadth"
)

func TestLongDoesWhatOthersLeaveOut(t *testing.T) {
	for set, want := range map[string]bool{"": false, "1": true} {
		done := false
		t.Run("with "+set, func(t *testing.T) {
			t.Setenv(breadth.LongVariable, set)
			breadth.Rarely(t)
			done = true
		})
		if done != want {
			t.Errorf("%s=%q: done %v, want %v", breadth.LongVariable, set, done, want)
		}
	}
}

func TestFullPlaysEveryCase(t *testing.T) {
	for set, every := range map[string]int{"": 7, "1": 1} {
		t.Setenv(breadth.Variable, set)
		if breadth.Full() != (set != "") || breadth.Every(7) != every {
			t.Errorf("%s=%q: full %v, every %d, want %d", breadth.Variable, set, breadth.Full(), breadth.Every(7), every)
		}
	}
}

func TestAShortRunDoesLittle(t *testing.T) {
	was := testing.Short()
	t.Cleanup(func() { short(t, was) })
	for is, want := range map[bool]int{false: 2500, true: 100} {
		short(t, is)
		if got := breadth.Of(2500, 100); got != want {
			t.Errorf("-short=%v: %d, want %d", is, got, want)
		}
	}
}

func short(t *testing.T, is bool) {
	t.Helper()
	if err := flag.Set("test.short", strconv.FormatBool(is)); err != nil {
		t.Fatal(err)
	}
}
