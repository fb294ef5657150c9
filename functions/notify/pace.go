package notify

import (
	"slices"
	"sync"
	"time"

	"pitstop.internal/events"
)

// pace bounds how many messages a target gets in any minute. A quarter of them is reserved for messages that a person has to
// act on.
type pace struct {
	perMinute int

	mu    sync.Mutex
	sent  []time.Time
	until time.Time
}

// take takes a place in the current minute, if one is free.
func (p *pace) take(now time.Time, loud bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		return false
	}
	for len(p.sent) > 0 && now.Sub(p.sent[0]) >= time.Minute {
		p.sent = p.sent[1:]
	}
	most := p.perMinute
	if !loud {
		most -= p.perMinute / 4
	}
	if len(p.sent) >= most {
		return false
	}
	p.sent = append(p.sent, now)
	return true
}

// giveBack frees the last place, because no message was sent.
func (p *pace) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.sent); n > 0 {
		p.sent = p.sent[:n-1]
	}
}

// hold stops sending until then, because the target asked for it.
func (p *pace) hold(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until) {
		p.until = until
	}
}

// maxWaiting bounds the waiting updates kept in memory; the rest waits in Pub/Sub alone.
const maxWaiting = 20_000

// waiting holds the newest update of each incident that found no free place and was left for redelivery. They go out
// together once a place is free, and are acknowledged when Pub/Sub delivers them again. If an instance forgets them, no
// update is lost: Pub/Sub still has them all.
type waiting struct {
	mu     sync.Mutex
	newest map[string]events.IncidentUpdated
	order  []string
}

func keyOf(u events.IncidentUpdated) string { return u.Workload + "\x00" + u.Incident }

// add keeps an update. It returns false if a newer one of the incident already waits.
func (w *waiting) add(u events.IncidentUpdated) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(u)
	known, ok := w.newest[key]
	switch {
	case ok && known.Number > u.Number:
		return false
	case !ok && len(w.newest) >= maxWaiting:
		return true
	case !ok:
		if w.newest == nil {
			w.newest = map[string]events.IncidentUpdated{}
		}
		if len(w.order) > 2*maxWaiting { // keys of dropped updates
			w.order = slices.DeleteFunc(w.order, func(k string) bool { _, ok := w.newest[k]; return !ok })
		}
		w.order = append(w.order, key)
	}
	w.newest[key] = u
	return true
}

// overtakes reports whether a newer update of the same incident waits.
func (w *waiting) overtakes(u events.IncidentUpdated) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.newest[keyOf(u)]
	return ok && known.Number > u.Number
}

// drop forgets the waiting update of an incident, unless it is newer than the given one.
func (w *waiting) drop(u events.IncidentUpdated) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.newest[keyOf(u)]; ok && known.Number <= u.Number {
		delete(w.newest, keyOf(u))
	}
}

// take removes and returns the updates that have waited longest, at most so many.
func (w *waiting) take(most int) (updates []events.IncidentUpdated) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := 0
	for ; i < len(w.order) && len(updates) < most; i++ {
		if u, ok := w.newest[w.order[i]]; ok {
			updates = append(updates, u)
			delete(w.newest, w.order[i])
		}
	}
	w.order = w.order[i:]
	return updates
}
