package breadth_test

import (
	"testing"

	"pitstop.internal/shared/breadth"
)

func TestFullPlaysEveryCase(t *testing.T) {
	for set, every := range map[string]int{"": 7, "1": 1} {
		t.Setenv(breadth.Variable, set)
		if breadth.Full() != (set != "") || breadth.Every(7) != every {
			t.Errorf("%s=%q: full %v, every %d, want %d", breadth.Variable, set, breadth.Full(), breadth.Every(7), every)
		}
	}
}
