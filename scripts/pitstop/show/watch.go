package show

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/functions/maintenance"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	// LookEvery is how often watch looks. Patrol does the same.
	LookEvery = time.Minute
	// lookBack is how much of the log before its last look it reads again: entries may be late.
	lookBack = 5 * time.Minute
	// deliveries is how often an entry is delivered at most, the same as by a subscription.
	deliveries = 20
)

func (d verbs) watchCommand() *cobra.Command {
	var project string
	var asJSON, once bool
	var since time.Duration
	c := &cobra.Command{
		Use:   "watch --project P",
		Short: "Watch the TPUs of a project from this machine, before anything is installed",
		Long: "Run the pipeline on this machine with your own credentials, live and read-only. It reads the Cloud TPU API as patrol does,\n" +
			"and the log entries that the sinks would bring, and decides on both under the policy watch. It keeps its ledger in memory\n" +
			"and makes no call that changes anything. First it prints the state of each workload, then each event, until you interrupt\n" +
			"it.\n\n" +
			"This needs roles/tpu.viewer and roles/logging.viewer.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cli.CheckProject("--project", project); err != nil {
				return err
			}
			s, err := d.OpenReadOnly(c.Context())
			if err != nil {
				return err
			}
			w := d.newWatch(s, project, terminal.NewPrinter(c.OutOrStdout(), asJSON))
			return errors.Join(w.run(c.Context(), since, once), w.ledger.Close())
		},
	}
	c.Flags().StringVar(&project, "project", "", "the project with the TPUs to watch")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each workload, line of a story and failed look")
	c.Flags().BoolVar(&once, "once", false, "look once, print the state of each workload, and end")
	cli.SpanVar(c.Flags(), &since, "since", time.Hour, "how far back the first look reads the log, as in 24h or 7d")
	return c
}

// watched is the pipeline on one machine.
type watched struct {
	verbs
	project string
	sight   deployment.ReadOnlyClients
	ledger  *ledger.Ledger
	p       *terminal.Printer

	patrol, notices, entries trigger.Handle
	// read are the IDs of entries that were delivered, and the hashes of those that cannot be read. tries counts the deliveries of an entry that failed. until is the time up to
	// which the log was read.
	read  map[string]bool
	tries map[string]int
	until time.Time
	quiet bool
}

func (d verbs) newWatch(s deployment.ReadOnlyClients, project string, p *terminal.Printer) *watched {
	w := &watched{
		verbs: d, project: project, sight: s, p: p, read: map[string]bool{}, tries: map[string]int{},
		ledger: ledger.New(ledgertest.NewStore().Open),
	}
	quiet := slog.New(slog.DiscardHandler)
	f := &fleet.Fleet{
		Ledger: w.ledger, Secrets: ledger.NewSecrets(ledgertest.NewStore().Open), Provider: s.TPUs, Now: d.Now, Log: quiet,
		Advancer: &ledger.Advancer{
			Ledger: w.ledger, Policies: policy.NewSource("", nil, policy.Switches{}, d.Now), Publisher: w, Now: d.Now, Sleep: d.Sleep,
			Source: "//pitstop/watch", Cause: trigger.MessageID, Log: quiet, Saved: func(_ context.Context, s ledger.Step) { w.tell(s) },
		},
	}
	f.Advancer.Fits = f.Fits
	w.patrol = patrol.New(patrol.Deps{Fleet: f, Provider: s.TPUs, Audit: s.Log, Publisher: w, Project: project, Sleep: d.Sleep})
	w.notices = maintenance.New(maintenance.Deps{Fleet: f, Projects: []string{project}})
	w.entries = logevent.New(logevent.Deps{Fleet: f, Projects: []string{project}})
	return w
}

// Publish implements ledger.Publisher: it delivers notices to their function. The policy watch sends no other event.
func (w *watched) Publish(ctx context.Context, e events.Envelope) error {
	if e.Type != events.TypeMaintenanceNotified {
		return fmt.Errorf("%s is not sent: watch only reads", e.Type)
	}
	return w.deliver(ctx, w.notices, e.Type, e.ID, e.Data)
}

// deliver gives a message to a function.
func (w *watched) deliver(ctx context.Context, to trigger.Handle, typ, id string, data []byte) error {
	ce := cloudevents.NewEvent()
	ce.SetType(typ)
	ce.SetID(id)
	ce.SetSource("//pitstop/watch")
	ce.SetTime(w.Now())
	if err := ce.SetData(cloudevents.ApplicationJSON, data); err != nil {
		return err
	}
	err := to(ctx, ce)
	if fault.IsIgnored(err) {
		return nil
	}
	return err
}

// run looks until the context ends.
func (w *watched) run(ctx context.Context, since time.Duration, once bool) error {
	w.until = w.Now().Add(-since)
	w.quiet = true // stand prints the first state
	for first := true; ; first = false {
		looking, end := google.NextQuestion(ctx)
		if err := end(w.look(looking)); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the caller interrupts
			}
			if all, failed := w.ledger.Workloads(ctx); first && len(all) == 0 {
				return google.JoinDistinct([]error{err, failed}) // no workload could be read
			}
			w.failed(err)
		}
		if first {
			if err := w.stand(ctx); err != nil || once {
				return err
			}
			w.quiet = false
		}
		if w.Sleep(ctx, LookEvery) != nil {
			return nil //nolint:nilerr // likewise
		}
	}
}

// watchedFault is the JSON of a look that failed, wholly or in part.
type watchedFault struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// failed prints what could not be read.
func (w *watched) failed(err error) {
	if !w.p.AsJSON {
		terminal.Print(w.p.Out, w.p.Paint(terminal.Red, w.Now().UTC().Format("15:04:05")+"  "+cli.OneLine(err)))
		return
	}
	_ = terminal.PrintJSON(w.p.Out, watchedFault{w.Now(), cli.OneLine(err)}) //nolint:errcheck // there is nobody else to tell
}

// look is one minute: a tick for patrol, and the log entries that the sinks would have brought.
func (w *watched) look(ctx context.Context) error {
	tick := w.deliver(ctx, w.patrol, trigger.TypeMessage, "tick", []byte(`{}`))
	return errors.Join(tick, w.readLog(ctx))
}

func (w *watched) readLog(ctx context.Context) error {
	var sinks []events.Sink
	for _, s := range events.Sinks(events.Accounts{}) {
		if s.Topic != "" {
			sinks = append(sinks, s)
		}
	}
	at := w.Now()
	entries, err := w.sight.Log.Since(ctx, w.project, events.Whole(sinks), w.until)
	if err != nil && len(entries) == 0 {
		return err
	}
	next, more := at.Add(-lookBack), err != nil
	if more { // one look does not read all: the next goes on after the last entry
		next = w.until
	}
	var failed error
	var since time.Time // the time of the first entry that failed: it is read again
	others := 0
	for _, raw := range entries {
		e, err := events.Read(raw)
		if err != nil {
			w.unreadable(raw, err)
			continue
		}
		if more && e.Time.After(next) {
			next = e.Time
		}
		err = w.take(ctx, e, raw)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return err
		case failed == nil:
			failed, since = err, e.Time
		default:
			others++
		}
	}
	if !since.IsZero() && since.Before(next) {
		next = since
	}
	if others > 0 {
		failed = fmt.Errorf("%w (and %d more)", failed, others)
	}
	w.until = next
	return errors.Join(err, failed)
}

// unreadable tells once of an entry that cannot be read. Each look may find it again.
func (w *watched) unreadable(raw []byte, err error) {
	sum := sha256.Sum256(raw)
	if key := string(sum[:]); !w.read[key] {
		w.read[key] = true
		w.failed(fmt.Errorf("an entry in the log of project %s cannot be read: %w", w.project, err))
	}
}

// take delivers an entry once. It delivers an entry that failed again, as the subscription would.
func (w *watched) take(ctx context.Context, e events.Entry, raw []byte) error {
	if e.ID != "" && w.read[e.ID] {
		return nil
	}
	to := w.entries
	if e.Kind == events.KindNotice {
		to = w.notices
	}
	err := w.deliver(ctx, to, trigger.TypeMessage, e.ID, raw)
	if err != nil && !fault.IsPermanent(err) {
		if w.tries[e.ID]++; w.tries[e.ID] < deliveries {
			return err
		}
		err = fmt.Errorf("entry %s failed %d times, and watch gives it up: %w", e.ID, deliveries, err)
	} else {
		err = nil
	}
	w.read[e.ID] = true
	delete(w.tries, e.ID)
	return err
}

// stand prints the state of each workload.
func (w *watched) stand(ctx context.Context) error {
	all, err := w.Workloads(ctx, w.ledger, nil)
	if err != nil {
		return err
	}
	policies := policy.NewSource("", nil, policy.Everything(), w.Now)
	for _, one := range all {
		st := w.stands(policies.For(ctx, one.Label), one)
		if w.p.AsJSON {
			if err := terminal.PrintJSON(w.p.Out, st); err != nil {
				return err
			}
			continue
		}
		printStanding(w.p, st, w.Now())
		terminal.Print(w.p.Out, "")
	}
	if len(all) == 0 && !w.p.AsJSON {
		terminal.Print(w.p.Out, "project "+w.project+" has no TPU now; watch looks for one in all zones every 15 minutes")
	}
	return nil
}

// watchedLine is the JSON of a line of a story.
type watchedLine struct {
	Workload string `json:"workload"`
	Incident string `json:"incident"`
	view.Line
}

// tell prints the lines that a step added to the story of its workload.
func (w *watched) tell(s ledger.Step) {
	if w.quiet {
		return
	}
	before, after := s.Before.Shown(s.At), s.After.Shown(s.At)
	if len(before.Slices) == 0 && !w.p.AsJSON {
		for _, one := range after.Slices {
			w.p.Row(s.At.UTC().Format("15:04:05"), "seen", "", after.ID+": "+one.Name+" in "+one.Zone+" is "+one.State, "first seen")
		}
	}
	for _, in := range []*view.Incident{after.Closed, after.Incident} {
		if in == nil {
			continue
		}
		told := 0
		for _, old := range []*view.Incident{before.Closed, before.Incident} {
			if old != nil && old.ID == in.ID {
				told = old.Lines()
			}
		}
		for _, l := range in.LinesAfter(told) {
			if w.p.AsJSON {
				_ = terminal.PrintJSON(w.p.Out, watchedLine{after.ID, in.ID, l}) //nolint:errcheck // likewise
				continue
			}
			w.p.Row(l.At.UTC().Format("15:04:05"), string(l.Kind), map[view.LineKind]string{
				view.LineDecided: terminal.Bold,
				view.LineEnded:   terminal.Yellow,
			}[l.Kind], after.ID+": "+l.Text, terminal.WithCode(l.Reason, string(l.Code)))
		}
	}
}
