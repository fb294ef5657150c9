package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/trigger"
)

// Target is a place where people, or a program of theirs, are told.
type Target interface {
	// Name names it in the ledger and in logs.
	Name() string
	// Knows reports whether who is told knows a message that comes again by its ID.
	Knows() bool
	// Send tells a message and returns the thread that what follows belongs to, if there is such a thing.
	Send(ctx context.Context, m Message) (thread string, err error)
}

// Message is what is told at once: one step of one incident, or one each of many.
type Message struct {
	Updates []events.IncidentUpdated
	// Thread is that of the incident, if something was told of it before.
	Thread string
	// Again says that it may have arrived before.
	Again bool
}

// ID is the same for every repetition of a message.
func (m Message) ID() string {
	ids := make([]string, 0, len(m.Updates))
	for _, u := range m.Updates {
		ids = append(ids, stepID(u))
	}
	if len(ids) == 1 {
		return ids[0]
	}
	return events.ID(ids...)
}

// stepID is the same for every repetition of a step, though the incident has gone on within it.
func stepID(u events.IncidentUpdated) string {
	return events.ID(u.Workload, u.Incident, events.TypeIncidentUpdated, u.Step())
}

// Loud reports whether a person has to act.
func (m Message) Loud() bool { return slices.ContainsFunc(m.Updates, loud) }

// Deps is what the function works with.
type Deps struct {
	Ledger  *ledger.Ledger
	Targets []Target
	// PerMinute bounds the messages to each target.
	PerMinute int
	Now       func() time.Time
	Log       *slog.Logger
}

// New returns the function over its dependencies.
func New(d Deps) trigger.Handle { return trigger.Chain(decode, newHandler(d).handle) }

func decode(ce cloudevents.Event) (p events.IncidentPointer, err error) {
	if ce.Type() != events.TypeIncidentUpdated {
		return p, fault.Ignored(incident.CodeNotMine, "the event type %s is no update of an incident", ce.Type())
	}
	return events.DecodeUpdatePointer(ce.Data())
}

type handler struct {
	ledger *ledger.Ledger
	now    func() time.Time
	desks  []*desk
}

func newHandler(d Deps) handler {
	h := handler{ledger: d.Ledger, now: d.Now}
	for _, t := range d.Targets {
		h.desks = append(h.desks, &desk{Target: t, ledger: d.Ledger, now: d.Now, log: d.Log, pace: pace{perMinute: d.PerMinute}})
	}
	return h
}

// handle tells every target how the incident stands in the ledger now. If a target cannot be told, the message is
// delivered again, and the other targets know the step by then.
func (h handler) handle(ctx context.Context, p events.IncidentPointer) error {
	if len(h.desks) == 0 {
		return fault.Ignored(incident.CodeNobodyTold, "nobody is to be told: no target is configured")
	}
	u, err := h.update(ctx, p)
	if err != nil {
		return err
	}
	said := make([]error, len(h.desks))
	var wg sync.WaitGroup
	for i, d := range h.desks {
		wg.Go(func() {
			if err := d.tell(ctx, u); err != nil {
				said[i] = fmt.Errorf("%s: %w", d.Name(), err) // what it means for the message is in the chain
			}
		})
	}
	wg.Wait()
	var ignored, busy, failed []error
	for _, err := range said {
		switch {
		case err == nil:
		case fault.IsIgnored(err):
			ignored = append(ignored, err)
		case fault.IsBusy(err):
			busy = append(busy, err)
		default:
			failed = append(failed, err)
		}
	}
	switch {
	case failed != nil:
		return errors.Join(append(failed, busy...)...)
	case busy != nil:
		return fault.Busy(errors.Join(busy...))
	case len(ignored) == len(h.desks):
		return ignored[0]
	}
	return nil
}

// update reads how an incident stands. It is fault.Ignored where there is nothing to tell: of an incident that is not in
// the ledger, in a phase that passes in seconds, and once nobody remembers what was told.
func (h handler) update(ctx context.Context, p events.IncidentPointer) (u events.IncidentUpdated, err error) {
	w, _, err := h.ledger.Workload(ctx, p.Workload)
	var in incident.Incident
	if err == nil {
		in, err = h.ledger.Incident(ctx, w, p.Incident)
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return u, fault.Ignored(incident.CodeNoSuchIncident, "%s has no incident %s", p.Workload, p.Incident)
	case err != nil:
		return u, err
	case !in.Closed.IsZero() && h.now().Sub(in.Closed) >= ledger.KeepTold:
		return u, fault.Ignored(incident.CodeTold, "%s ended at %s, too long ago to be told", p.Incident, in.Closed)
	}
	u, tell := in.Update(w)
	if !tell {
		return u, fault.Ignored(incident.CodePassing, "%s is %s: the next step is told", p.Incident, in.Phase)
	}
	return u, nil
}

// desk tells one target. That each step of an incident is told once rests on a record in the ledger: what is told is saved
// there before the call, and what became of it behind it.
type desk struct {
	Target
	ledger  *ledger.Ledger
	now     func() time.Time
	log     *slog.Logger
	pace    pace
	waiting waiting
}

const (
	// tellFor is how long a step that is being told belongs to who does it; after that, nobody does any more.
	tellFor = time.Minute
	// mostAgain bounds how often that is said again of which nobody knows whether it arrived, while nobody answers.
	mostAgain = 3
	// maxTogether bounds how many incidents one message tells of.
	maxTogether  = 100
	claimsAtOnce = 16
	tries        = 5
)

// claim is a step that is to be told, and the record that says so.
type claim struct {
	update events.IncidentUpdated
	record ledger.Told
	rev    ledger.Revision
	again  bool
}

// tell tells a step, alone or with others that wait. It returns fault.Ignored for what was told, or overtaken, and fault.Busy
// for what has to wait.
func (d *desk) tell(ctx context.Context, u events.IncidentUpdated) error {
	record, rev, err := d.ledger.Told(ctx, d.Name(), u.Workload, u.Incident)
	switch {
	case err != nil:
		return err
	case record.Has(u.Step(), u.Number):
		d.waiting.drop(u)
		return fault.Ignored(incident.CodeTold, "it was told already, or something newer was")
	case d.waiting.overtakes(u):
		return fault.Ignored(incident.CodeTold, "something newer waits to be told")
	}
	if !d.pace.take(d.now(), loud(u)) {
		if !d.waiting.add(u) {
			return fault.Ignored(incident.CodeTold, "something newer waits to be told")
		}
		return fault.Busy(fmt.Errorf("%d messages a minute are told, and there were as many", d.pace.perMinute))
	}
	c, err := d.claim(ctx, u, record, rev)
	if err != nil {
		d.pace.giveBack()
		return err
	}
	d.waiting.drop(u)
	claims := []claim{c}
	if !loud(u) {
		claims = append(claims, d.others(ctx)...)
	}
	return d.send(ctx, claims)
}

// claim saves that a step is being told. Whoever comes second finds that, and waits or leaves it.
func (d *desk) claim(ctx context.Context, u events.IncidentUpdated, record ledger.Told, rev ledger.Revision) (claim, error) {
	for range tries {
		now := d.now()
		if s := record.Sending; s != nil && now.Sub(s.At) < tellFor {
			return claim{}, fault.Busy(errors.New("another step of the incident is being told"))
		}
		record = d.doubted(record, false)
		if record.Has(u.Step(), u.Number) {
			return claim{}, fault.Ignored(incident.CodeTold, "it was told already, or something newer was")
		}
		record.Sending = &ledger.Sending{Step: u.Step(), Number: u.Number, At: now.UTC()}
		saved, err := d.ledger.SaveTold(ctx, d.Name(), u.Workload, u.Incident, record, rev, now)
		if err == nil {
			return claim{u, record, saved, slices.Contains(record.Unsure, u.Step())}, nil
		}
		mine, unheard := record.Sending, !errors.Is(err, ledger.ErrConflict)
		var failed error
		if record, rev, failed = d.ledger.Told(ctx, d.Name(), u.Workload, u.Incident); failed != nil {
			return claim{}, errors.Join(err, failed)
		}
		switch s := record.Sending; {
		case !unheard:
		case s != nil && s.Step == mine.Step && s.At.Equal(mine.At): // it was saved, and the answer was lost
			return claim{u, record, rev, slices.Contains(record.Unsure, u.Step())}, nil
		default:
			return claim{}, err
		}
	}
	return claim{}, fmt.Errorf("told %s: %w, %d times", u.Incident, ledger.ErrConflict, tries)
}

// doubted is a record in which nothing is being told any more. Of a step that was, nobody knows whether it arrived: the
// target did not answer, or the instance ended, or it was answered by what does not say so. A target that knows repetitions is told
// again. Of the others, what ends an incident or asks somebody is said again, and says so; the rest the next step tells. In silence
// that is tried a few times; who answers that something went wrong has it tried for as long as Pub/Sub does.
func (d *desk) doubted(t ledger.Told, answered bool) ledger.Told {
	s := t.Sending
	if s == nil {
		return t
	}
	t.Sending = nil
	t.Steps, t.Unsure = slices.Clip(t.Steps), slices.Clip(t.Unsure)
	switch {
	case d.Knows():
	case stands(s.Step) && answered && repeated(t.Unsure, s.Step) > 0:
	case stands(s.Step) && (answered || repeated(t.Unsure, s.Step) < mostAgain):
		t.Unsure = append(t.Unsure, s.Step)
	default:
		t.Steps, t.Number = append(t.Steps, s.Step), max(t.Number, s.Number)
	}
	return t
}

// repeated is how often nobody knew of a step whether it arrived.
func repeated(unsure []string, step string) (n int) {
	for _, s := range unsure {
		if s == step {
			n++
		}
	}
	return n
}

// others claims what waits, to be told with something that has got a place.
func (d *desk) others(ctx context.Context) []claim {
	updates := d.waiting.take(maxTogether - 1)
	claims := make([]*claim, len(updates))
	var wg sync.WaitGroup
	slots := make(chan struct{}, claimsAtOnce)
	for i, u := range updates {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			record, rev, err := d.ledger.Told(ctx, d.Name(), u.Workload, u.Incident)
			if err != nil || record.Has(u.Step(), u.Number) {
				return // it comes again, and is looked at then
			}
			if c, err := d.claim(ctx, u, record, rev); err == nil {
				claims[i] = &c
			}
		})
	}
	wg.Wait()
	var found []claim
	for _, c := range claims {
		if c != nil {
			found = append(found, *c)
		}
	}
	return found
}

// send tells what was claimed, and saves what became of it.
func (d *desk) send(ctx context.Context, claims []claim) error {
	m := Message{Again: slices.ContainsFunc(claims, func(c claim) bool { return c.again })}
	for _, c := range claims {
		m.Updates = append(m.Updates, c.update)
	}
	if len(claims) == 1 {
		m.Thread = claims[0].record.Thread
	}
	thread, err := d.Send(ctx, m)
	if len(claims) > 1 {
		thread = "" // what follows of each has one of its own
	}
	// What was sent was sent: that is saved even when who delivered it has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	var later laterError
	switch {
	case err == nil:
		d.each(claims, func(c claim) error { return d.told(ctx, c, thread) })
		return nil
	case fault.IsPermanent(err):
		first := claims[0].update
		d.log.ErrorContext(ctx, "notification refused", "target", d.Name(), "workload", first.Workload, "incident", first.Incident,
			"step", first.Step(), "incidents", len(claims), "error", oneLine(err))
		d.each(claims, func(c claim) error { return d.told(ctx, c, "") })
		return nil
	case errors.Is(err, errUnsure) && !d.Knows():
		return err // what is saved says that it was begun
	case errors.Is(err, errPerhaps) && !d.Knows():
		d.each(claims, func(c claim) error { return d.save(ctx, c, d.doubted(c.record, true)) })
		return err
	}
	if errors.As(err, &later) {
		d.pace.hold(d.now().Add(later.after))
		err = fault.Busy(err)
	}
	d.each(claims, func(c claim) error {
		d.waiting.add(c.update)
		c.record.Sending = nil
		return d.save(ctx, c, c.record)
	})
	return err
}

// save saves a record in the place of the one that was claimed.
func (d *desk) save(ctx context.Context, c claim, record ledger.Told) error {
	_, err := d.ledger.SaveTold(ctx, d.Name(), c.update.Workload, c.update.Incident, record, c.rev, d.now())
	return err
}

// told saves that a step was told.
func (d *desk) told(ctx context.Context, c claim, thread string) error {
	record, rev := c.record, c.rev
	for {
		step := c.update.Step()
		record.Sending = nil
		record.Unsure = slices.DeleteFunc(slices.Clone(record.Unsure), func(s string) bool { return s == step })
		if !slices.Contains(record.Steps, step) {
			record.Steps = append(slices.Clip(record.Steps), step)
		}
		record.Number = max(record.Number, c.update.Number)
		record.Thread = orElse(record.Thread, thread)
		_, err := d.ledger.SaveTold(ctx, d.Name(), c.update.Workload, c.update.Incident, record, rev, d.now())
		if !errors.Is(err, ledger.ErrConflict) {
			return err
		}
		if record, rev, err = d.ledger.Told(ctx, d.Name(), c.update.Workload, c.update.Incident); err != nil {
			return err
		}
	}
}

// each saves something of every claim. What cannot be saved stays marked as begun, which whoever comes next settles.
func (d *desk) each(claims []claim, save func(claim) error) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, claimsAtOnce)
	for _, c := range claims {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := save(c); err != nil {
				d.log.Warn("what was told is not saved", "target", d.Name(), "workload", c.update.Workload, "incident", c.update.Incident, "error", oneLine(err)) //nolint:sloglint // no request waits for it
			}
		})
	}
	wg.Wait()
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
