package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
)

// TestADeletionThatWasBegunInTimeMayEndAfterIt.
func TestADeletionThatWasBegunInTimeMayEndAfterIt(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"lost, 44m, does delete, 2m, gone": "creating: create llama-8b",
		"lost, 44m, does delete, 17m":      "escalated",
	} {
		n := newStory(t, true, "llama-8b").under("everything")
		if got := n.goes(path).stands(n.sent); got != want {
			t.Errorf("%s: it stands at %q, want %q\n%s", path, got, want, n.tale())
		}
	}
}

// TestAHeldCallMakesNobodyWaitForTheOwnersWord: that word may come all the same.
func TestAHeldCallMakesNobodyWaitForTheOwnersWord(t *testing.T) {
	t.Parallel()
	n := multi(t, true).goes("a lost, 1m, b gone, held delete, 20m, does delete, a gone, does create a, read ours, 13m")
	if n.effect(events.ActionCreate, "b") >= 0 {
		t.Fatalf("b is created after 34 minutes:\n%s", n.tale())
	}
	if n.goes("2m, b unsaid"); n.effect(events.ActionCreate, "b") < 0 {
		t.Errorf("after 36 minutes nobody creates b:\n%s", n.tale())
	}
}

// TestAnUnreadablePolicyHoldsThroughTicksThatAreLate.
func TestAnUnreadablePolicyHoldsThroughTicksThatAreLate(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("everything").goes("lost").under("unreadable")
	for range 120 {
		n.now = n.now.Add(2*time.Minute - time.Second)
		n.tick()
	}
	if got := n.under("everything").goes("10m").stands(nil); got != "deleting" {
		t.Errorf("after four hours it stands at %q:\n%s", got, n.tale())
	}
}

// TestNoTimePassesBetweenTheTicksOfAnUnreadablePolicy: what is learned between them ends no wait that the next tick would take up again.
func TestNoTimePassesBetweenTheTicksOfAnUnreadablePolicy(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("everything").goes("lost")
	n.now = n.awaited().Add(-20 * time.Second)
	n.under("unreadable").tick()
	for range 3 {
		n.now = n.now.Add(2*time.Minute - time.Second)
		if got := n.goes("no crew").stands(nil); got != "deleting" {
			t.Fatalf("between two ticks it stands at %q:\n%s", got, n.tale())
		}
		n.tick()
	}
}

// TestNobodyIsToldAgainOfAPolicyThatStaysUnreadable: nothing is read anew for an attempt that nobody may ask for, before somebody may.
func TestNobodyIsToldAgainOfAPolicyThatStaysUnreadable(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("everything").goes("exit 139, finished, 30m").under("unreadable")
	for range 120 {
		if n.passes(time.Minute); n.isWanted(events.ActionHear) {
			n.goes("no verdict hear")
		}
	}
	if told := strings.Count(n.tale(), "wait for another attempt"); told != 1 {
		t.Errorf("it is told %d times:\n%s", told, n.tale())
	}
	if n.under("everything").passes(time.Minute); !n.isWanted(events.ActionHear) || n.isWanted(events.ActionRestart) {
		t.Errorf("once the policy can be read, nobody asks for the verdict first:\n%s", n.tale())
	}
}

// TestAWatchedSliceWithoutACrewIsBackOnceItIsUsable: nothing tells more.
func TestAWatchedSliceWithoutACrewIsBackOnceItIsUsable(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b").with(crewless).under("watch").goes("a lost, b unhealthy, 5m, b ready, 5m")
	if got := n.stands(nil); got != "watching" {
		t.Fatalf("before both are usable it stands at %q", got)
	}
	if got := n.goes("a ready").stands(nil); got != "observed" {
		t.Errorf("it stands at %q, want observed:\n%s", got, n.tale())
	}
}

// TestACreationThatFailsTakesNoSliceBack: its zone is not asked after the others.
func TestACreationThatFailsTakesNoSliceBack(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"lost, does delete, gone, does create, read ours made, late busy create, gone, 2m": "us-west4-a",
		"lost, does delete, gone, does create, read ours made, lost, does delete, gone":    "us-west4-b",
	} {
		n := newStory(t, true, "llama-8b").under("everything").goes(path)
		if i := n.effect(events.ActionCreate, "llama-8b"); i < 0 || n.w.Effects[i].Zone != want {
			t.Errorf("%s: it is created in another zone than %s: %+v\n%s", path, want, n.w.Effects, n.tale())
		}
	}
}

// TestNothingIsCleanedUpUnderAPolicyThatAllowsNothing: a person hears at once of what is left, for nothing comes of it any more.
func TestNothingIsCleanedUpUnderAPolicyThatAllowsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, then string }{
		"a slice that came, without another one": {"a lost, does delete, a gone, does create, a read ours, b lost", "2m"},
		"an order that waits in its queue":       {"a lost, b lost, does delete, a gone, b gone, does create, done create, a read ordered", "2m"},
		"a creation, once it has brought one":    {"a lost, does delete, a gone, does create", "2m, a read ours made"},
	} {
		n := multi(t, true).goes(c.path).under("watch").goes(c.then)
		if got, e := n.stands(nil), n.ended(); got != "escalated" || e.Code != reason.CodePolicyNo || !strings.Contains(e.Advice.String(), "pitstop-incident=") || len(n.sent) > 0 {
			t.Errorf("%s: it stands at %q, by %s, with %q:\n%s", name, got, e.Code, e.Advice, n.tale())
		}
	}
}
