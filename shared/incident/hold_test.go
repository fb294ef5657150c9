package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// unreadable is a policy that could not be read.
var unreadable = policy.Policy{Unreadable: "503"}

// TestAFlickeringPolicyKeepsNoIncidentOpen: a deadline moves by the time for which the policy could not be read, and by no more.
func TestAFlickeringPolicyKeepsNoIncidentOpen(t *testing.T) {
	r := newTour(t, quiet(false), "everything")
	r.readAs("llama-8b", incident.Unhealthy, nil)
	r.tick(incident.SickFor)
	if r.w.Incident == nil || r.w.Incident.Phase != incident.Healing {
		t.Fatalf("it stands as %s", tale(r.w))
	}
	opened := r.now
	for minute := 0; r.w.Incident != nil && r.w.Incident.Phase == incident.Healing && r.now.Sub(opened) < 6*24*time.Hour; minute++ {
		r.now = r.now.Add(time.Minute)
		p := policies["everything"]
		if minute%5 < 2 {
			p = unreadable
		}
		r.w, _, _ = tick(p, r.w, r.now)
	}
	// Two minutes of five are held: the phase lasts 5/3 of its time.
	if took, want := r.now.Sub(opened), incident.HealFor*5/3; took < want-5*time.Minute || took > want+5*time.Minute {
		t.Errorf("the phase ended after %v, want about %v: %s", took, want, tale(r.w))
	}
}

// TestAHoldIsTold: a hold that does not end is left to a person after its cap, whatever holds.
func TestAHoldIsTold(t *testing.T) {
	pause := incident.Held{Code: incident.CodePaused, Why: "paused by ann"}
	brake := incident.Held{Code: incident.CodeBraked, Why: "30 in this hour"}
	for name, c := range map[string]struct {
		policy policy.Policy
		held   *incident.Held
		until  time.Duration
		code   incident.Code
	}{
		"a policy that stays unreadable":   {unreadable, nil, 0, incident.CodePolicyUnreadable},
		"a pause without an end":           {policies["everything"], &pause, 0, incident.CodePaused},
		"a brake that holds hour by hour":  {policies["everything"], &brake, time.Hour, incident.CodeBraked},
		"a pause that nobody ever renewed": {policies["everything"], &pause, 30 * 24 * time.Hour, incident.CodePaused},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTour(t, quiet(true), "everything")
			r.learn("llama-8b", "preempted", "read lost")
			opened, end := r.now, r.now.Add(c.until)
			for r.w.Incident != nil && r.now.Sub(opened) < 30*24*time.Hour {
				r.now = r.now.Add(time.Minute)
				if c.code == incident.CodeBraked {
					end = r.now.Truncate(time.Hour).Add(time.Hour)
				}
				for _, effect := range r.w.Effects {
					if c.held == nil || !effect.Begun.IsZero() || !effect.Retry.IsZero() {
						continue
					}
					h := *c.held
					h.Request = asked(r.w, r.now)
					if c.until > 0 {
						h.Until = end
					}
					if h.Begun = h.Code == incident.CodePaused; h.Begun { // it is read behind the intent
						r.w, _, _ = advance(c.policy, r.w, incident.Intended{Request: h.Request, RequestID: "1"}, r.now)
					}
					r.w, _, _ = advance(c.policy, r.w, h, r.now)
					r.w, _, _ = advance(c.policy, r.w, h, r.now.Add(time.Second)) // delivered again
				}
				r.w, _, _ = tick(c.policy, r.w, r.now)
			}
			if r.w.Incident != nil {
				t.Fatalf("it is open after %v", r.now.Sub(opened))
			}
			got := r.w.Closed
			if got.Outcome != incident.Escalated || got.Code != c.code || !strings.Contains(got.Advice, "pitstop retry llama-8b") {
				t.Errorf("it ended %s with %q: %s; %s", got.Outcome, got.Code, got.Reason, got.Advice)
			}
			if took, most := got.Closed.Sub(opened), incident.HeldForMost+incident.RemoveFor; took < incident.HeldForMost || took > most+time.Hour {
				t.Errorf("it ended after %v, want between %v and %v", took, incident.HeldForMost, most+time.Hour)
			}
		})
	}
}

// TestAHoldGivesBackItsTime: what is left of a phase when a hold begins is left of it when the hold ends.
func TestAHoldGivesBackItsTime(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "preempted", "read lost")
	left := r.w.Incident.Deadline.Sub(r.now)
	for range 90 {
		r.now = r.now.Add(time.Minute)
		r.w, _, _ = tick(unreadable, r.w, r.now)
	}
	r.tick(time.Minute)
	if now := r.w.Incident.Deadline.Sub(r.now); now < left-2*time.Minute || now > left+time.Minute {
		t.Errorf("%v was left before and %v after: %s", left, now, tale(r.w))
	}
	// The next phase has its own time.
	r.learn("", "intend delete 0")
	r.learn("llama-8b", "read gone")
	if d, want := r.w.Incident.Deadline, r.now.Add(incident.RecreateFor); !d.IsZero() && d.After(want) {
		t.Errorf("the next phase ends at %v, want %v at the latest", d, want)
	}
}

// TestWhatIsHeldIsNotOverdue: a pause that begins when little is left of a phase leaves enough to ask again.
func TestWhatIsHeldIsNotOverdue(t *testing.T) {
	for _, left := range []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute} {
		r := newTour(t, quiet(true), "everything")
		r.learn("llama-8b", "preempted", "read lost")
		r.now = r.w.Incident.Deadline.Add(-left)
		r.w, _, _ = advance(policies["everything"], r.w, incident.Held{Code: incident.CodePaused, Why: "paused by ann", Request: asked(r.w, r.now)}, r.now)
		if asked := r.tick(2*time.Minute - 4*time.Second); asked != "delete llama-8b" { // the last moment at which it is due to be asked again
			t.Errorf("left %v: asked for is %q: %s", left, asked, tale(r.w))
		}
	}
}

// TestAPauseHoldsByEveryClock: an instance whose clock is ahead of that of whoever paused does not begin before the end.
func TestAPauseHoldsByEveryClock(t *testing.T) {
	end := start.Add(2 * time.Hour)
	for after, want := range map[time.Duration]bool{-time.Hour: true, 0: true, 59 * time.Second: true, time.Minute: false} {
		p := &incident.Pause{By: "ann", At: start, Until: end}
		if got := p.Holds(end.Add(after)); got != want {
			t.Errorf("%v after its end it holds: %v", after, got)
		}
	}
	var none *incident.Pause
	if none.Holds(start) || !(&incident.Pause{By: "ann"}).Holds(end.Add(10000*time.Hour)) {
		t.Error("no pause holds, or one without an end does not")
	}
}
