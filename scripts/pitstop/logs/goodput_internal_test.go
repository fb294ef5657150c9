package logs

import (
	"testing"
	"time"
)

// TestAnIncidentIsLookedForAcrossMidnight, before the interruption and after it, and on no other day.
func TestAnIncidentIsLookedForAcrossMidnight(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 11, 12, 0, 0, 0, 0, time.UTC)
	for id, want := range map[string][2]bool{
		"llama-8b-20261110-1": {false, false}, "llama-8b-20261111-1": {true, true}, "llama-8b-20261112-1": {true, true}, "llama-8b-20261113-1": {false, false},
	} {
		if got := [2]bool{mayTellOf(id, midnight.Add(-about/2)), mayTellOf(id, midnight.Add(about/2))}; got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if mayTellOf("llama-8b-20261111-1", midnight.Add(12*time.Hour)) {
		t.Error("it opened half a day before")
	}
}
