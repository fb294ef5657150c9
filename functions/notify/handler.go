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
	"pitstop.internal/shared/jobterms"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Target is a place that receives notifications: people, or a program of theirs.
type Target interface {
	// Name is its name in the journal and in logs.
	Name() string
	// Knows reports whether the receiver recognizes a repeated message by its ID.
	Knows() bool
	// Send sends a message. It returns the thread for later messages, if the target has threads.
	Send(ctx context.Context, m Message) (thread string, err error)
}

// Message is one notification: one step of one incident, or one step each of many.
type Message struct {
	Updates []events.IncidentUpdated
	// Thread is the incident's thread, if an earlier step was sent.
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

// stepID is the same for every repetition of a step, even if the incident moved on within it.
func stepID(u events.IncidentUpdated) string {
	return events.ID(u.Workload, u.Incident, events.TypeIncidentUpdated, u.Step())
}

// Loud reports whether a person has to act.
func (m Message) Loud() bool { return slices.ContainsFunc(m.Updates, loud) }

// Deps are the function's dependencies.
type Deps struct {
	// Ledger is only read. Journal keeps which news was sent.
	Ledger  *ledger.Ledger
	Journal *ledger.Journal
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
		return p, fault.Ignored(reason.CodeNotMine, "event type %s is not an incident update", ce.Type())
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
		h.desks = append(h.desks, &desk{Target: t, journal: d.Journal, now: d.Now, log: d.Log, pace: pace{perMinute: d.PerMinute}})
	}
	return h
}

// handle sends every target the state that the ledger has now. If one target fails, Pub/Sub delivers the message again. The
// record in the journal keeps the other targets from getting the step twice.
func (h handler) handle(ctx context.Context, p events.IncidentPointer) error {
	if len(h.desks) == 0 {
		return fault.Ignored(reason.CodeNobodyTold, "no notification target is configured")
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
				said[i] = fmt.Errorf("%s: %w", d.Name(), err) // the chain holds the kind of error
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

// update reads the state of an incident, or of a long wait in quiet times. It returns fault.Ignored if there is nothing to send: the
// incident is not in the ledger, its phase passes in seconds, the record of sent steps has expired, or the wait is over.
func (h handler) update(ctx context.Context, p events.IncidentPointer) (u events.IncidentUpdated, err error) {
	w, _, err := h.ledger.Workload(ctx, p.Workload)
	var in incident.Incident
	if err == nil {
		if u, waits := w.Shown(h.now()).WaitUpdate(p.Incident); waits {
			return u, nil
		}
		in, err = h.ledger.Incident(ctx, w, p.Incident)
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return u, fault.Ignored(reason.CodeNoSuchIncident, "%s has no incident %s", p.Workload, p.Incident)
	case err != nil:
		return u, err
	}
	shown := w.ShownIncident(in, h.now())
	if !shown.Closed.IsZero() && h.now().Sub(shown.Closed) >= ledger.KeepTold {
		return u, fault.Ignored(reason.CodeTold, "%s ended at %s, too long ago for a notification", p.Incident, shown.Closed)
	}
	u, tell := w.Shown(h.now()).Update(shown)
	if !tell {
		return u, fault.Ignored(reason.CodePassing, "%s is %s, which passes in seconds: the next step is sent", p.Incident, shown.Phase)
	}
	u.Job = jobterms.Of(w.Shown(h.now()), shown)
	return u, nil
}

// desk serves one target. A record in the journal makes each step of an incident go out once: the desk saves the step there
// before the call, and the result after it.
type desk struct {
	Target
	journal *ledger.Journal
	now     func() time.Time
	log     *slog.Logger
	pace    pace
	waiting waiting
}

const (
	// tellFor is how long a claimed step belongs to the instance that claimed it. After that, the instance counts as gone.
	tellFor = time.Minute
	// mostAgain bounds how often a step is sent again while the target gives no answer at all.
	mostAgain = 3
	// maxTogether bounds the incidents in one message.
	maxTogether  = 100
	claimsAtOnce = 16
	tries        = 5
)

// claim is a step to be sent, and the saved record that reserves it.
type claim struct {
	update events.IncidentUpdated
	record ledger.Told
	rev    ledger.Revision
	again  bool
}

// tell sends a step, alone or with others that wait. It returns fault.Ignored for a step that was sent or overtaken, and
// fault.Busy for one that has to wait.
func (d *desk) tell(ctx context.Context, u events.IncidentUpdated) error {
	record, rev, err := d.journal.Told(ctx, d.Name(), u.Workload, u.Incident)
	switch {
	case err != nil:
		return err
	case record.Has(u.Step(), u.Number):
		d.waiting.drop(u)
		return fault.Ignored(reason.CodeTold, "this step or a newer one was already sent")
	case d.waiting.overtakes(u):
		return fault.Ignored(reason.CodeTold, "a newer update waits to be sent")
	}
	if !d.pace.take(d.now(), loud(u)) {
		if !d.waiting.add(u) {
			return fault.Ignored(reason.CodeTold, "a newer update waits to be sent")
		}
		return fault.Busy(fmt.Errorf("the limit of %d messages a minute is reached", d.pace.perMinute))
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

// claim saves that a step is being sent. A second instance finds that record, and waits or gives up.
func (d *desk) claim(ctx context.Context, u events.IncidentUpdated, record ledger.Told, rev ledger.Revision) (claim, error) {
	for range tries {
		now := d.now()
		if s := record.Sending; s != nil && now.Sub(s.At) < tellFor {
			return claim{}, fault.Busy(errors.New("another step of the incident is being sent"))
		}
		record = d.doubted(record, false)
		if record.Has(u.Step(), u.Number) {
			return claim{}, fault.Ignored(reason.CodeTold, "this step or a newer one was already sent")
		}
		record.Sending = &ledger.Sending{Step: u.Step(), Number: u.Number, At: now.UTC()}
		saved, err := d.journal.Save(ctx, d.Name(), u.Workload, u.Incident, record, rev, now)
		if err == nil {
			return claim{u, record, saved, slices.Contains(record.Unsure, u.Step())}, nil
		}
		mine, unheard := record.Sending, !errors.Is(err, ledger.ErrConflict)
		var failed error
		if record, rev, failed = d.journal.Told(ctx, d.Name(), u.Workload, u.Incident); failed != nil {
			return claim{}, errors.Join(err, failed)
		}
		switch s := record.Sending; {
		case !unheard:
		case s != nil && s.Step == mine.Step && s.At.Equal(mine.At): // it was saved, but the answer was lost
			return claim{u, record, rev, slices.Contains(record.Unsure, u.Step())}, nil
		default:
			return claim{}, err
		}
	}
	return claim{}, fmt.Errorf("save the notification record of %s: %w, %d times", u.Incident, ledger.ErrConflict, tries)
}

// doubted clears the step that is being sent, when it is unknown whether that step arrived: the target did not answer, the
// instance ended, or the answer leaves it open. A target that recognizes repetitions gets it again. Other targets get a step
// again, marked as a repetition, only if it ends the incident or asks somebody; the next step covers the rest. While the
// target is silent, that is tried a few times. If it answers with an error, it is tried for as long as Pub/Sub delivers.
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

// repeated is how often it was unknown whether a step arrived.
func repeated(unsure []string, step string) (n int) {
	for _, s := range unsure {
		if s == step {
			n++
		}
	}
	return n
}

// others claims the waiting updates, to be sent together with one that has a place.
func (d *desk) others(ctx context.Context) []claim {
	updates := d.waiting.take(maxTogether - 1)
	claims := make([]*claim, len(updates))
	var wg sync.WaitGroup
	slots := make(chan struct{}, claimsAtOnce)
	for i, u := range updates {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			record, rev, err := d.journal.Told(ctx, d.Name(), u.Workload, u.Incident)
			if err != nil || record.Has(u.Step(), u.Number) {
				return // Pub/Sub delivers it again, and it is handled then
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

// send sends the claimed steps and saves the result.
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
		thread = "" // later steps of each incident start their own thread
	}
	// The message is out, so the result is saved even if the caller has gone.
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
		return err // the saved record says that sending was begun
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

// save replaces the claimed record.
func (d *desk) save(ctx context.Context, c claim, record ledger.Told) error {
	_, err := d.journal.Save(ctx, d.Name(), c.update.Workload, c.update.Incident, record, c.rev, d.now())
	return err
}

// told saves that a step was sent.
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
		_, err := d.journal.Save(ctx, d.Name(), c.update.Workload, c.update.Incident, record, rev, d.now())
		if !errors.Is(err, ledger.ErrConflict) {
			return err
		}
		if record, rev, err = d.journal.Told(ctx, d.Name(), c.update.Workload, c.update.Incident); err != nil {
			return err
		}
	}
}

// each saves every claim. A claim that cannot be saved stays marked as begun; the next instance settles it.
func (d *desk) each(claims []claim, save func(claim) error) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, claimsAtOnce)
	for _, c := range claims {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := save(c); err != nil {
				d.log.Warn( //nolint:sloglint // no request waits for it
					"the outcome of a notification was not recorded", "target", d.Name(), "workload", c.update.Workload,
					"incident", c.update.Incident, "error", oneLine(err),
				)
			}
		})
	}
	wg.Wait()
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
