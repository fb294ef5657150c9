package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/publish"
)

// Releases is what other releases of Pitstop do beside the simulated one: an upgrade replaces one function after another,
// and meanwhile documents and events of the newer release are there that this one may not touch.
type Releases struct {
	// broken are the entry points whose deployment fails every message, each until a time.
	broken map[string]time.Time
	// Documents are the workloads whose document the newer release has written; events are its events, by their ID, each
	// until the newer function is there to take it.
	Documents map[string]bool
	Events    map[string]time.Time
	// times are when something of this was under way.
	times []Period
}

// Period is a time from one moment to another.
type Period struct{ From, To time.Time }

// Down is for how long since then something kept this release from its work, at most.
func (r *Releases) Down(since time.Time) (d time.Duration) {
	for _, p := range r.times {
		if p.To.After(since) {
			d += p.To.Sub(p.From)
		}
	}
	return d
}

// NewReleases are other releases that have done nothing yet.
func NewReleases() *Releases {
	return &Releases{broken: map[string]time.Time{}, Documents: map[string]bool{}, Events: map[string]time.Time{}}
}

func (t *Troubles) brokenFunction(d Dice) {
	t.breaks(d, d.Of("lasts").between(10*time.Minute, 5*time.Hour))
}

// breaks makes one function fail every message for that long: Pub/Sub delivers the messages again, or they are redriven from
// the dead letters.
func (t *Troubles) breaks(d Dice, lasts time.Duration) {
	f := world.Functions[d.Of("function").intN(len(world.Functions)-1)] // notify, the last, has nothing to do here
	until := t.Clock.Now().Add(lasts)
	t.releases.broken[f.Entry] = until
	t.releases.times = append(t.releases.times, Period{t.Clock.Now(), until})
}

// upgraded has the newer release write a document and an event.
func (t *Troubles) upgraded(d Dice) {
	takes := d.Of("takes").between(2*time.Minute, 40*time.Minute)
	ids, err := t.Ledger.All(context.Background())
	t.Must(err)
	if len(ids) == 0 {
		return
	}
	id := ids[d.Of("workload").intN(len(ids))]
	t.newerEvent(id, takes)
	if t.releases.Documents[id] {
		return
	}
	t.Must(t.rewrite(id, incident.Schema+1))
	t.releases.Documents[id] = true
	t.releases.times = append(t.releases.times, Period{t.Clock.Now(), t.Clock.Now().Add(takes)})
	t.after(takes, func() {
		delete(t.releases.Documents, id)
		t.Must(t.rewrite(id, incident.Schema))
	})
}

// rewrite gives the document of a workload another schema.
func (t *Troubles) rewrite(id string, schema int) error {
	ctx := context.Background()
	c, err := t.Open(ctx, ledger.Workloads)
	if err != nil {
		return err
	}
	if err := c.Update(ctx, &ledger.Record{ID: url.PathEscape(id), Schema: schema}); err != nil {
		return fmt.Errorf("scenario: %s: %w", id, err)
	}
	return c.Close()
}

// newerEvent publishes a request of the newer release: were it carried out by this one, a slice would be deleted.
func (t *Troubles) newerEvent(id string, takes time.Duration) {
	doc, _, err := t.Ledger.Workload(context.Background(), id)
	w := doc.Shown(t.Clock.Now())
	if err != nil || len(w.Slices) == 0 {
		return
	}
	s := w.Slices[0]
	name := "newer"
	if w.Incident != nil {
		name = w.Incident.ID
	}
	e, err := events.Wrap(events.RecreateRequested{
		Request: events.Request{
			Schema: events.Schema, Workload: id, Incident: name, Epoch: max(w.Epoch, 1), Action: events.ActionDelete, Slice: s.Name,
			Incarnation: s.Incarnation, Attempt: 1, Expires: t.Clock.Now().Add(time.Hour),
		},
		Zone: s.Zone, QueuedResource: s.Group,
	}, "//pitstop/functions/newer", "", "", t.Clock.Now())
	if err != nil {
		return // a slice that was never there cannot be deleted
	}
	e.Data = edited(e.Data, func(body map[string]any) { body["schema"] = events.Schema + 1 })
	m := t.Broker.Publish(events.TopicRecreate, e.Data, publish.Attributes(e))
	t.releases.Events[m] = t.Clock.Now().Add(takes)
}

// intercept answers a delivery in the place of this release's function: one that is broken fails everything, and an event of
// the newer release is the newer function's as soon as that is there. 0 leaves the delivery to this release.
func (r *Releases) intercept(now time.Time, entry string, m world.Message) (status int) {
	if until, newer := r.Events[m.ID]; newer && !now.Before(until) {
		return http.StatusOK
	}
	if now.Before(r.broken[entry]) {
		return http.StatusInternalServerError
	}
	return 0
}
