package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestWhatTheProviderMakesAnewIsNobodyElses: a JobSet that begins again makes its Jobs anew, and no owner has taken anything over.
func TestWhatTheProviderMakesAnewIsNobodyElses(t *testing.T) {
	for name, same := range map[string]bool{"the same JobSet makes it anew": true, "somebody makes the JobSet anew": false} {
		w, now := quiet(false), start
		w.Provider = "gke"
		read := func(c incident.Condition, id string) {
			now = now.Add(incident.SickFor)
			e := found(w, c, string(c), now)
			e.Facts.Group, e.Facts.Healing, e.Ordered = "set", incident.HealsAlways, w.Slices[0].Incarnation.Created
			if id != "" {
				if !same {
					e.Ordered = now.Add(-time.Second)
				}
				e.Incarnation = events.Incarnation{Zone: e.Zone, ID: id, Created: now.Add(-time.Second)}
			}
			w, _, _ = advance(policies["everything"], w, e, now)
		}
		read(incident.Ready, "")
		read(incident.Unhealthy, "")
		now = now.Add(incident.SickFor)
		w, _, _ = advance(policies["everything"], w, incident.Ticked{}, now)
		if w.Incident == nil {
			t.Fatalf("%s: no incident is open", name)
		}
		read(incident.Ready, "next")
		if released := w.Closed != nil && w.Closed.Outcome == incident.Released; released == same {
			t.Errorf("%s: released %t, in %+v", name, released, w.Incident)
		}
	}
}

// TestTheCauseOfALossIsKept: the Pod that shows it may be deleted before the Job is. Another life has no cause of it.
func TestTheCauseOfALossIsKept(t *testing.T) {
	w, now := quiet(false), start
	read := func(c incident.Condition, cause events.Cause, id string) {
		now = now.Add(time.Minute)
		e := found(w, c, string(c), now)
		if e.Facts.Cause = cause; id != "" {
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: id, Created: now.Add(-time.Second)}
		}
		w, _, _ = advance(policies["watch"], w, e, now)
	}
	read(incident.Lost, events.CauseCrash, "")
	read(incident.Lost, "", "")
	if got := w.Slices[0].Cause; got != events.CauseCrash || w.Incident == nil || w.Incident.Cause != events.CauseCrash {
		t.Errorf("the cause is %q: %+v", got, w.Incident)
	}
	read(incident.Lost, "", "next")
	if got := w.Slices[0].Cause; got != "" {
		t.Errorf("another life is lost, and its cause is %q", got)
	}
}
