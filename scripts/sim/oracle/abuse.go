package oracle

import (
	"time"

	"pitstop.internal/shared/incident"
)

// suspicion is Google's word that it suspects abuse on a life of a slice, as the simulated world has it.
type suspicion struct {
	// Since is when the symptom came, Ended when it went; zero while it lasts. A slice that is gone keeps its symptom.
	Since, Ended time.Time
}

// Suspects takes note of what Google suspects on a life, or does not any more.
func (c *Checks) Suspects(life string, suspected bool) {
	if suspected {
		c.abuse[life] = suspicion{Since: c.Clock.Now()}
		return
	}
	s := c.abuse[life]
	s.Ended = c.Clock.Now()
	c.abuse[life] = s
}

// suspected reports whether Google suspects abuse on a life now, and has for so long.
func (c *Checks) suspected(life string, since time.Time) bool {
	s, ok := c.abuse[life]
	return ok && s.Ended.IsZero() && s.Since.Before(since)
}

// suspectedAny reports whether Google suspects abuse on a life of a workload's slices, or did a while ago.
func (c *Checks) suspectedAny(workload string) bool {
	for _, f := range c.slicesOf(workload) {
		for _, d := range c.past[f.Name] {
			if a, ok := c.abuse[d.life.ID]; ok && (a.Ended.IsZero() || c.Clock.Now().Sub(a.Ended) < c.learned()) {
				return true
			}
		}
		for _, life := range c.livesOf(f.Name) {
			if a, ok := c.abuse[life.ID]; ok && (a.Ended.IsZero() || c.Clock.Now().Sub(a.Ended) < c.learned()) {
				return true
			}
		}
	}
	return false
}

// suspicions checks that a person is notified once of each suspicion of abuse while it lasts, unless they have since said
// that it is settled.
func (c *Checks) suspicions(r *record, w incident.Workload, closes bool) {
	lasts := map[string]bool{}
	for _, s := range w.Slices {
		if c.suspected(s.Incarnation.ID, c.Clock.Now()) && c.takenAway(s.Name).IsZero() {
			lasts[s.Incarnation.ID] = true
		}
	}
	for life, told := range r.suspected {
		settled := c.did(w.ID, told, func(d deed) bool { return d.kind == saidRetry })
		if !lasts[life] || settled {
			delete(r.suspected, life)
		}
	}
	if !closes || w.Closed.Code != incident.CodeAbuse {
		return
	}
	if len(r.suspected) > 0 {
		c.Violated("4 one trouble", w.ID, "%s told again that Google suspects abuse: %s", w.Closed.ID, w.Closed.Reason)
	}
	for _, s := range w.Slices {
		if life := s.Incarnation.ID; s.Abuse.Suspected && lasts[life] { // what the end tells of
			r.suspected[life] = c.Clock.Now()
		}
	}
}

// cleared checks that a suspicion no longer holds anything up once Google lifts it from a usable slice.
func (c *Checks) cleared(doc incident.Workload) {
	for _, s := range doc.Slices {
		state, life := c.API.State(s.Zone, s.Name)
		a, ok := c.abuse[life.ID]
		if s.Abuse.Suspected && state == "READY" && life.Same(s.Incarnation) && ok && !a.Ended.IsZero() && c.Clock.Now().Sub(a.Ended) > time.Hour {
			c.Violated("4 one trouble", doc.ID, "Google has suspected nothing on %s since %s, and all is held up for it", s.Name, a.Ended.UTC().Format(time.DateTime))
		}
	}
}
