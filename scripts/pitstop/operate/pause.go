package operate

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/show"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/orders"
)

func (d verbs) pauseCommand() *cobra.Command {
	var where deployment.Place
	var all bool
	var lasts time.Duration
	var why string
	c := &cobra.Command{
		Use:   "pause [WORKLOAD...]",
		Short: "Stop Pitstop from changing anything, for some workloads or for all",
		Long: "Stop every call that changes something, for these workloads, or with --all for everything. Pitstop reads the pause right\n" +
			"before each call. It still watches and reports, and a call that has begun runs to its end.\n\n" + needs,
		RunE: func(c *cobra.Command, names []string) error {
			o := orders.Order{Verb: evidence.VerbPause, Word: evidence.Word{Why: why}}
			if lasts > 0 {
				o.Until = d.Now().Add(lasts)
			}
			return d.setPause(c, where, names, all, o)
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&all, "all", false, "pause everything")
	cli.SpanVar(c.Flags(), &lasts, "for", 0, "how long to pause, as in 2h or 3d; without it the pause lasts until resume")
	cli.WhyFlag(c, &why)
	return c
}

func (d verbs) resumeCommand() *cobra.Command {
	var where deployment.Place
	var all bool
	var why string
	c := &cobra.Command{
		Use:   "resume [WORKLOAD...]",
		Short: "Lift the pause of some workloads, or of all",
		Long:  "Lift the pause of these workloads, or with --all the pause of everything.\n\n" + needs,
		RunE: func(c *cobra.Command, names []string) error {
			return d.setPause(c, where, names, all, orders.Order{Verb: evidence.VerbResume, Word: evidence.Word{Why: why}})
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&all, "all", false, "lift the pause of everything; a workload that was paused by its name stays paused")
	cli.WhyFlag(c, &why)
	return c
}

func (d verbs) setPause(c *cobra.Command, where deployment.Place, names []string, all bool, o orders.Order) error {
	if all == (len(names) > 0) {
		return cli.Usage("name the workloads, or add --all")
	}
	if err := cli.CheckWorkloads(names); err != nil {
		return err
	}
	ctx, out := c.Context(), c.OutOrStdout()
	l, err := d.Ledger(where)
	if err != nil {
		return err
	}
	o.By, o.At = d.Caller(ctx), d.Now()
	lift := o.Verb == evidence.VerbResume
	p := &evidence.Pause{By: o.By, Why: o.Why, At: o.At, Until: o.Until}
	what := "paused " + show.PausedText(p)
	if lift {
		p.Until = p.At.Add(-evidence.PauseMargin) // it is over by every clock, and names the person who lifted it
		what = o.By + " lifted the pause"
	}
	if all {
		if err := l.SetPause(ctx, p); err != nil {
			return err
		}
		if d.PausedAll != nil {
			d.PausedAll(o.By, lift)
		}
		terminal.Print(out, "everything: "+what)
		return nil
	}
	found, err := d.Workloads(ctx, l, names)
	if err != nil {
		return err
	}
	var failed []error
	for _, w := range found { // a workload that fails does not stop the others
		if !google.MayGoOn(ctx) {
			break
		}
		if w.Pause == nil && lift {
			terminal.Print(out, w.ID+": it was not paused")
			continue
		}
		o.Workload = w.ID
		_, err := d.Give(ctx, l, where, o)
		if err := d.printRecorded(c, google.ExplainError(ctx, err), w.ID+": "+what); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", w.ID, err))
		}
	}
	return errors.Join(failed...)
}
