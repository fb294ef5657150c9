package extent_test

import (
	"testing"

	"pitstop.internal/shared/extent"
)

func TestFullPlaysEveryCase(t *testing.T) {
	for set, every := range map[string]int{"": 7, "1": 1} {
		t.Setenv(extent.Variable, set)
		if extent.Full() != (set != "") || extent.Every(7) != every {
			t.Errorf("%s=%q: full %v, every %d, want %d", extent.Variable, set, extent.Full(), extent.Every(7), every)
		}
	}
}
