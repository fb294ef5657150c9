package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestAHoldThatDoesNotEndIsTold: it is left to a person after its cap, whatever holds, and however it is told again.
func TestAHoldThatDoesNotEndIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code  reason.Code
		until func(now time.Time) time.Time
	}{
		"a policy that stays unreadable":   {reason.CodePolicyUnreadable, nil},
		"a pause without an end":           {reason.CodePaused, func(time.Time) time.Time { return time.Time{} }},
		"a brake that holds hour by hour":  {reason.CodeBraked, func(now time.Time) time.Time { return now.Truncate(time.Hour).Add(time.Hour) }},
		"a pause that nobody ever renewed": {reason.CodePaused, func(time.Time) time.Time { return start.Add(30 * 24 * time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newStory(t, true, "a").goes("preempted, read lost")
			if c.until == nil {
				n.under("unreadable")
			}
			opened := n.now
			for n.w.Incident != nil && n.now.Sub(opened) < 30*24*time.Hour {
				if n.passes(time.Minute); c.until == nil {
					continue
				}
				if n.now = n.now.Add(4 * time.Minute); !n.isWanted(events.ActionDelete) || n.w.Effects[0].Stage() != view.StageWanted {
					continue
				}
				held := evidence.Held{Origin: n.reading(), Request: n.request(events.ActionDelete, "a"), Code: c.code, Why: "it is held", Until: c.until(n.now)}
				if held.Begun = c.code == reason.CodePaused; held.Begun { // it is read behind the intent
					n.intends(held.Request)
				}
				n.give(held).give(held) // delivered again
			}
			end := n.ended()
			if end.Outcome != view.Escalated || end.Code != c.code || !strings.Contains(end.Advice.String(), "pitstop retry llama-8b") {
				t.Errorf("it ended %+v:\n%s", end, n.tale())
			}
			if took := n.now.Sub(opened); took < bounds.HeldForMost || took > bounds.HeldForMost+bounds.RemoveFor+time.Hour {
				t.Errorf("it ended after %v, want about %v", took, bounds.HeldForMost)
			}
		})
	}
}

// TestAHoldGivesBackItsTime: what is left of a wait when a hold begins is left when it ends, enough to ask again. The next wait has its own.
func TestAHoldGivesBackItsTime(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a").goes("preempted, read lost")
	left := n.w.Incident.Status.Until.Sub(n.now)
	n.under("unreadable").goes("90m")
	n.under("everything").goes("1m")
	if now := n.w.Incident.Status.Until.Sub(n.now); now < left-2*time.Minute || now > left+time.Minute {
		t.Errorf("%v was left before and %v after:\n%s", left, now, n.tale())
	}
	n.history("intend delete", "deleting", "read gone", "creating: create a")
	if until := n.w.Incident.Status.Until; !until.IsZero() && until.After(n.now.Add(bounds.RecreateFor)) {
		t.Errorf("the next wait ends at %v", until)
	}
	for _, left := range []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute} {
		n := newStory(t, true, "a").goes("preempted, read lost")
		n.now = n.w.Incident.Status.Until.Add(-left - time.Second)
		n.goes("held delete")
		if sent := n.passes(2*time.Minute - 4*time.Second); len(sent) != 1 || sent[0] != "delete a" { // the last moment at which it is due again
			t.Errorf("left %v: asked for is %q:\n%s", left, sent, n.tale())
		}
	}
}

// TestWhatAPolicyNamesIsNotJudgedWhileItCannotBeRead: no other zone, no higher bound and no longer lead is known for that minute.
func TestWhatAPolicyNamesIsNotJudgedWhileItCannotBeRead(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ meanwhile, want string }{
		"preempted, read lost, do, read gone, cannot_move create": {"1m", "creating: create llama-8b"},
		"exit 139, gave up": {"its verdict, 1m", "restarting: restart llama-8b=7711"},
	} {
		n := newStory(t, true, "llama-8b").under("everything").with(func(w *incident.Workload) {
			w.Charges = slices.Repeat([]incident.Charge{{Action: events.ActionRestart, At: start, Void: true}}, policy.DefaultRestartsPerDay)
		})
		n.p.RestartsPerDay = 2 * policy.DefaultRestartsPerDay
		known := n.p
		n.goes(path)
		n.p = policy.Policy{Name: known.Name, Unreadable: "503"}
		n.goes(c.meanwhile)
		if n.p = known; n.stands(n.passes(time.Minute)) != c.want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(n.sent), c.want, n.tale())
		}
	}
	n := newStory(t, false, "a")
	n.p = policy.Policy{Name: n.p.Name, Unreadable: "503"}
	if due := n.goes("log pending").w.Slices[0].Notice.Due; due.After(n.now) {
		t.Errorf("nobody looks for the policy's lead before %v", due)
	}
}

// TestAPauseHoldsByEveryClock: an instance whose clock is ahead of that of whoever paused does not begin before the end.
func TestAPauseHoldsByEveryClock(t *testing.T) {
	t.Parallel()
	end := start.Add(2 * time.Hour)
	for after, want := range map[time.Duration]bool{-time.Hour: true, 0: true, 59 * time.Second: true, time.Minute: false} {
		if got := (&evidence.Pause{By: "ann", At: start, Until: end}).Holds(end.Add(after)); got != want {
			t.Errorf("%v after its end it holds: %v", after, got)
		}
	}
	var none *evidence.Pause
	if none.Holds(start) || !(&evidence.Pause{By: "ann"}).Holds(end.Add(10000*time.Hour)) {
		t.Error("no pause holds, or one without an end does not")
	}
}
