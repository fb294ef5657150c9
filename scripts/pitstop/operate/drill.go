package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/prices"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/view"
)

const (
	// drillFor is how long the verb follows a drill, and drillEvery how often it reads the ledger meanwhile.
	drillFor   = 2 * time.Hour
	drillEvery = 5 * time.Second
	// noticedWithin is how soon Pitstop has to notice a drill. Patrol looks once a minute, and opens an incident once a slice has not
	// been usable for SickFor.
	noticedWithin = bounds.SickFor + 5*time.Minute
	// unreadFor is how many reads of the ledger in a row may fail.
	unreadFor = 12
)

// verdict is the output of drill --json.
type verdict struct {
	Workload string `json:"workload"`
	Slice    string `json:"slice"`
	Incident string `json:"incident,omitzero"`
	Passed   bool   `json:"passed"`
	// Text says why. Noticed is the seconds until the incident was opened.
	Text    string       `json:"text"`
	Noticed float64      `json:"noticed_seconds,omitzero"`
	Outcome view.Outcome `json:"outcome,omitzero"`
	Cost    prices.Cost  `json:"cost,omitzero"`
}

func (d verbs) drillCommand() *cobra.Command {
	var where deployment.Place
	var asJSON, sure bool
	var why, slice, priced string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "drill WORKLOAD --yes",
		Short: "Simulate a maintenance event on a slice, and follow how training comes back",
		Long: "Interrupt training for real: Google's API simulates a maintenance event on worker 0 of a slice (simulateMaintenanceEvent).\n" +
			"The verb prints what Pitstop sees, decides and does until training goes on, then a verdict and the cost. It refuses a\n" +
			"workload that already has a problem, one whose policy allows no restart, and one without a verified checkpoint; check says\n" +
			"more. If you interrupt the verb, it stops printing, and the recovery goes on.\n\n" +
			"This needs roles/tpu.admin, or tpu.nodes.simulateMaintenanceEvent, and roles/datastore.user for the record. Without a\n" +
			"checkpoint that Pitstop has verified, it needs roles/storage.objectViewer too. The exit code is 1 when training did not\n" +
			"come back by itself.",
		Args: cli.OneWorkload(),
		RunE: func(c *cobra.Command, args []string) error {
			if lasts <= 0 {
				return cli.Usage("--for %s: it has to be more than 0", lasts)
			}
			if slice != "" && !cli.NameForm.MatchString(slice) {
				return cli.Usage("--slice %q is no name of a slice", slice)
			}
			list, err := prices.Read(priced)
			if err != nil {
				return err
			}
			l, w, err := d.Workload(c.Context(), where, args[0])
			if err != nil {
				return err
			}
			s, err := d.sliceToDrill(c.Context(), l, w, slice)
			if err != nil {
				return err
			}
			if !sure {
				return cli.Usage("this interrupts the training of %s on %s: add --yes to do it", w.ID, s.Name)
			}
			out := c.OutOrStdout()
			if asJSON {
				out = io.Discard
			}
			v, err := d.drill(c.Context(), where, l, w, s, why, lasts, list, terminal.NewPrinter(out, false))
			if err != nil {
				return err
			}
			if asJSON {
				if err := terminal.PrintJSON(c.OutOrStdout(), v); err != nil {
					return err
				}
			}
			if !v.Passed {
				return cli.ErrFailed
			}
			return nil
		},
	}
	where.Flags(c)
	cli.WhyFlag(c, &why)
	c.Flags().BoolVar(&asJSON, "json", false, "print only the verdict, as one JSON object")
	c.Flags().BoolVar(&sure, "yes", false, "do it: this interrupts training")
	c.Flags().StringVar(&slice, "slice", "", "the slice; the default is the first one that Pitstop handles")
	c.Flags().StringVar(&priced, "prices", "", "a file of prices, in dollars for a chip-hour; see incident")
	cli.NamesFile(c.Flags(), "prices")
	c.Flags().DurationVar(&lasts, "for", drillFor, "how long to follow the drill")
	return c
}

// sliceToDrill is the slice for the drill. Its error says why there must be none.
func (d verbs) sliceToDrill(ctx context.Context, l *ledger.Ledger, w deployment.Workload, name string) (s view.Slice, err error) {
	policies, _, err := d.Policies(ctx, l)
	if err != nil {
		return s, err
	}
	pause, err := l.Pause(ctx)
	if err != nil {
		return s, err
	}
	if name == "" && len(w.Slices) > 0 {
		name = w.Slices[max(0, slices.IndexFunc(w.Slices, func(s view.Slice) bool { return !s.Released }))].Name
	}
	found := w.Slice(name)
	p := policies.For(ctx, w.Label)
	switch {
	case found == nil:
		return s, cli.Usage("%s has no slice %q", w.ID, name)
	case w.Provider == provider.GKE:
		return s, cli.Usage("%s trains in a Job, and a drill interrupts a TPU of the Cloud TPU API: delete a Pod of %s by hand to see what follows", w.ID, name)
	case found.Released:
		return s, cli.Usage("%s of %s is left to its owner: Pitstop would do nothing about it", name, w.ID)
	case w.Incident != nil:
		return s, cli.Usage("incident %s is open on %s: a drill would make it worse", w.Incident.ID, w.ID)
	case pause.Holds(d.Now()) || w.Pause.Holds(d.Now()):
		return s, cli.Usage("%s is paused: Pitstop would do nothing", w.ID)
	case p.Unreadable != "":
		return s, cli.Usage("the policy of %s cannot be read from here: %s", w.ID, p.Unreadable)
	case p.Switches.Level(policy.Restart) == policy.No:
		return s, cli.Usage("Pitstop may not bring the training of %s back: %s", w.ID, w.Document.Forbids(policy.Restart, policy.No, p))
	}
	if err := d.refuseIdle(w); err != nil {
		return s, err
	}
	return *found, d.refuseUnsaved(ctx, w)
}

// refuseIdle refuses a workload of which nobody knows that it trains on all its slices.
func (d verbs) refuseIdle(w deployment.Workload) error {
	switch {
	case w.Training.Seen.IsZero() || w.Training.Finished:
		return cli.Usage("Pitstop knows of no running training of %s: its crew has sent nothing, or training is finished", w.ID)
	case w.Training.HasGivenUp():
		return cli.Usage("the training of %s does not run: its crew gave up after attempt %d; pitstop retry %s starts another attempt", w.ID,
			w.Training.GaveUp, w.Name)
	case w.Training.StepAt.IsZero():
		return cli.Usage("the crew of %s has reported no step, so a drill could not show that training goes on", w.ID)
	case d.Now().Sub(w.Training.SteppedAt) >= longestSilence(w):
		return cli.Usage("the crew of %s is silent: it reported step %s %s ago", w.ID, events.Number(w.Training.Step),
			events.Span(d.Now().Sub(w.Training.SteppedAt)))
	}
	for _, o := range w.Slices {
		if o.Condition != evidence.Ready && !o.Released {
			return cli.Usage("%s of %s is %s already", o.Name, w.ID, o.State)
		}
	}
	return nil
}

// refuseUnsaved refuses a workload without a complete checkpoint. Pitstop verifies checkpoints during an incident, so before the first
// incident the verb looks for one itself.
func (d verbs) refuseUnsaved(ctx context.Context, w deployment.Workload) error {
	if !w.Training.VerifiedAt.IsZero() {
		return nil
	}
	if w.Directory == "" {
		return cli.Usage("%s has no known checkpoint directory, so training would begin at its first step", w.ID)
	}
	looking, end := google.OptionalQuestion(ctx)
	_, err := checkpoint.Verify(looking, d.Checkpoints, w.Directory, checkpoint.Want{})
	if err := end(err); err != nil {
		return cli.Usage("no checkpoint of %s is verified, so training might begin at its first step: %s", w.ID, cli.OneLine(err))
	}
	return nil
}

// longestSilence is how long a running crew may report no step: three times the longest gap so far.
func longestSilence(w deployment.Workload) time.Duration {
	if w.Training.QuietSeconds == 0 {
		return bounds.NoGapFor
	}
	return max(bounds.ResumeFor, 3*time.Duration(w.Training.QuietSeconds)*time.Second)
}

// drill simulates the event on the slice and follows the recovery.
func (d verbs) drill(
	ctx context.Context, where deployment.Place, l *ledger.Ledger, w deployment.Workload, s view.Slice,
	why string, lasts time.Duration, list prices.List, p *terminal.Printer,
) (v verdict, err error) {
	v = verdict{Workload: w.ID, Slice: s.Name}
	api, err := d.OpenNodeEditor(ctx)
	if err != nil {
		return v, err
	}
	begun := d.Now()
	// The record comes first, so that a person who finds the trouble also finds its author.
	word := evidence.Ordered{Word: evidence.Word{By: d.Caller(ctx), Why: why}, Verb: evidence.VerbDrill, Text: "a maintenance event on " + s.Name}
	var left deployment.UnpublishedError
	if err := d.Record(ctx, l, where, w.ID, word); err != nil && !errors.As(err, &left) {
		return v, err
	}
	op, err := api.Simulate(ctx, w.Ref(s.Name))
	if err != nil {
		return v, err
	}
	p.Heading("drill", "workload "+w.ID+" · "+s.Name+" in "+s.Zone+" · step "+events.Number(w.Training.Step))
	row := func(at time.Time, word, colour, text, reason string) {
		p.Row(at.UTC().Format("15:04:05"), word, colour, text, reason)
	}
	row(begun, "asked", terminal.Bold, "simulate a maintenance event on "+s.Name, op)
	told, unread := 0, 0
	for d.Now().Sub(begun) < lasts {
		looking, end := google.NextQuestion(ctx)
		now, _, err := l.Workload(looking, w.ID)
		switch err = end(err); {
		case err == nil:
			w, unread = deployment.ShownAt(now, d.Now()), 0
		case ctx.Err() != nil || unread >= unreadFor:
			return v, fmt.Errorf("the drill goes on, but the ledger cannot be read: %w", err)
		default:
			unread++
			if err := d.Sleep(ctx, drillEvery); err != nil {
				return v, err
			}
			continue
		}
		in := incidentSince(w, begun)
		if in != nil {
			v.Incident, v.Noticed = in.ID, in.Opened.Sub(begun).Seconds()
			for lines := in.Timeline; told < len(lines); told++ {
				row(lines[told].At, string(lines[told].Kind), map[view.LineKind]string{view.LineDecided: terminal.Bold}[lines[told].Kind],
					lines[told].Text, terminal.WithCode(lines[told].Reason, string(lines[told].Code)))
			}
		}
		switch {
		case in == nil && d.Now().Sub(begun) > noticedWithin:
			v.Text = "Pitstop noticed nothing within " + events.Span(noticedWithin) + ": read the log of patrol, and call pitstop canary"
		case in != nil && !in.Closed.IsZero():
			v.Outcome, v.Cost = in.Outcome, list.CostOf(*in)
			v.Passed = in.Outcome == view.Resumed
			v.Text = strings.TrimSuffix(string(in.Outcome)+": "+in.Reason, ": ") + "; " + v.Cost.String()
		}
		if v.Text != "" {
			break
		}
		if err := d.Sleep(ctx, drillEvery); err != nil {
			return v, err
		}
	}
	if v.Text == "" {
		v.Text = "the incident has not ended within " + lasts.String() + "; it goes on, and pitstop status shows it"
	}
	v.print(p)
	return v, nil
}

func (v verdict) print(p *terminal.Printer) {
	head, colour := "PASSED", terminal.Green
	if !v.Passed {
		head, colour = "FAILED", terminal.Red
	}
	terminal.Print(p.Out, "  "+p.Paint(colour, head)+"  "+v.Text)
	if v.Incident != "" {
		terminal.Print(p.Out, fmt.Sprintf("          noticed after %s; pitstop incident %s prints the story",
			events.Span(time.Duration(v.Noticed*float64(time.Second))), v.Incident))
	}
}

// incidentSince is the incident that was opened since a drill began.
func incidentSince(w deployment.Workload, begun time.Time) *view.Incident {
	for _, in := range []*view.Incident{w.Incident, w.Closed} {
		if in != nil && !in.Opened.Before(begun) {
			return in
		}
	}
	return nil
}
