package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/prices"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/jobterms"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/view"
)

func (d verbs) incidentCommand() *cobra.Command {
	var where deployment.Place
	var asJSON, all bool
	var priced, kept string
	c := &cobra.Command{
		Use:   "incident ID|WORKLOAD",
		Short: "Print the whole story of an incident, or list those of a workload",
		Long: "Print the whole story of an incident, open or closed: each observation, each decision with its reason, the switches with\n" +
			"their limits, the calls with their results, the save, the cost and the budget. A wait for capacity is one line: since when, each\n" +
			"place with its last answer, how many tries, and when the next one follows. --all adds each call of a long incident, and what each\n" +
			"place said. The line job has the terms of Google's training service: state, error and retries. If two projects have an incident\n" +
			"of the same ID, write PROJECT/ID.\n\n" +
			"Of a workload it lists every incident, open or in the archive, one line each, the newest first. incidents lists those of all\n" +
			"workloads.\n\n" +
			"--prices names a YAML file with your prices: dollars for a chip-hour, by generation or accelerator type, as in v5litepod:\n" +
			"{spot: 0.48, other: 1.20}. The cost counts the chips of the workload as it is now.",
		Args: cli.OneName("ID or workload", "llama-8b-20261112-2"),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := prices.Read(priced)
			if err != nil {
				return err
			}
			l, err := d.Ledger(where)
			if err != nil {
				return err
			}
			noIncident := cli.CheckIncident(args[0])
			if noIncident != nil && cli.CheckWorkload(args[0]) != nil {
				return noIncident
			}
			known, err := d.Workloads(c.Context(), l, nil)
			if err != nil {
				return err
			}
			named, noWorkload := deployment.WorkloadsNamed(known, args)
			switch {
			case noWorkload == nil && priced != "":
				return cli.Usage("--prices is for one incident, as in llama-8b-20261112-2, and %s is a workload", args[0])
			case noWorkload == nil:
				return d.list(c, l, named, time.Time{}, asJSON, args[0]+" has had no incident")
			case noIncident != nil:
				return noWorkload
			}
			w, in, err := d.FindIncident(c.Context(), l, known, args[0])
			if err != nil {
				return err
			}
			if kept != "" {
				return cli.Keep(c.OutOrStdout(), kept, func(out io.Writer) error {
					return page.WriteIncident(out, page.Incident{Frame: page.Frame{Title: in.ID, At: d.Now(), Alone: true}, Of: w.Workload, In: in})
				})
			}
			spent := list.CostOf(in)
			if asJSON {
				return terminal.PrintJSON(c.OutOrStdout(), struct {
					view.Incident
					Workload string          `json:"workload"`
					Wait     *view.Wait      `json:"wait,omitempty"`
					Cost     prices.Cost     `json:"cost"`
					Job      events.JobTerms `json:"job"`
				}{in, w.ID, waitOf(w, in), spent, jobterms.Of(w.Workload, in)})
			}
			p := terminal.NewPrinter(c.OutOrStdout(), false)
			printIncident(p, w, in, spent, all)
			if !in.Closed.IsZero() {
				return nil
			}
			policies, _, err := d.Policies(c.Context(), l)
			if err != nil {
				return err
			}
			stands := d.stands(w.Document.Limited(policies.For(c.Context(), w.Label)), w).Workload
			printOpen(p, stands, d.Now())
			printNeed(p, stands.Need)
			return nil
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the incident, its cost and its job as one JSON object; of a workload, one short object per incident")
	c.Flags().StringVar(&kept, "html", "", "write the incident as a page into this file, which fetches nothing")
	c.Flags().BoolVar(&all, "all", false, "print each call of a long incident too, and what each place said that refused")
	c.Flags().StringVar(&priced, "prices", "", "a file of prices, in dollars for a chip-hour")
	cli.NamesFile(c.Flags(), "prices")
	cli.NamesFile(c.Flags(), "html")
	return c
}

// waitOf is what an incident waits for; nil for one that has ended.
func waitOf(w deployment.Workload, in view.Incident) *view.Wait {
	if !in.Closed.IsZero() {
		return nil
	}
	return w.Wait
}

func printIncident(p *terminal.Printer, w deployment.Workload, in view.Incident, spent prices.Cost, all bool) {
	p.Heading(in.ID, fmt.Sprintf("%s · workload %s · policy %s", terminal.CauseText(in.Cause), w.ID, cmp.Or(in.Policy, "none")))
	terminal.Print(p.Out, "  "+p.Paint(terminal.Dim, "since it opened: "+cli.LimitsText(in.Switches, in.Limits)))
	day := ""
	for _, l := range in.Timeline {
		if d := l.At.UTC().Format("Mon Jan 2, 2006"); d != day {
			terminal.Print(p.Out, "  "+d)
			day = d
		}
		word, colour := string(l.Kind), ""
		switch l.Kind {
		case view.LineDecided:
			colour = terminal.Bold
		case view.LineEnded:
			word, colour = strings.ToUpper(string(in.Outcome)), terminal.Yellow
		case view.LineSeen, view.LineAsked, view.LineCame:
		}
		why := l.Reason
		if l.Source != "" && l.Kind == view.LineSeen {
			why = strings.TrimPrefix(why+" ["+l.Source+"]", " ")
		}
		p.Row(l.At.UTC().Format("15:04:05"), word, colour, l.Text, terminal.WithCode(why, string(l.Code)))
	}
	if in.LeftOut > 0 {
		terminal.Print(p.Out, fmt.Sprintf("  %d lines in the middle are not stored", in.LeftOut))
	}
	for _, t := range in.Troubles {
		line := "  trouble   " + strings.TrimSpace(terminal.CauseText(t.Cause)+" "+t.Slice) + " at " + t.At.UTC().Format(time.RFC3339) + ": " + t.Text
		if !t.Proven && t.Cause.Infrastructure() {
			line += " (not proven)"
		}
		terminal.Print(p.Out, line)
	}
	if s := in.Save; !s.Requested.IsZero() {
		line := "  save      " + s.ID + " requested at " + s.Requested.UTC().Format(time.RFC3339) + ": " + cmp.Or(string(s.Result), "running")
		if s.Failed != "" {
			line += ", " + s.Failed
		}
		terminal.Print(p.Out, line)
	}
	for _, z := range in.Zones {
		until := "asked again after " + z.Until.UTC().Format(time.RFC3339)
		switch {
		case z.Never:
			until = "not asked again"
		case !all: // the wait for capacity tells of it
			continue
		case z.Tries > 1:
			until = terminal.Count(z.Tries, "time") + " since " + z.Since.UTC().Format(time.RFC3339) + ", " + until
		}
		terminal.Print(p.Out, "  refused   "+z.Place.String()+" at "+z.At.UTC().Format(time.RFC3339)+", "+until+": "+terminal.WithCode(z.Text, string(z.Code)))
	}
	printCalls(p, in, all)
	for _, would := range in.WouldHave() {
		terminal.Print(p.Out, "  would have: "+would)
	}
	terminal.Print(p.Out, "  cost      "+spent.String())
	terminal.Print(p.Out, "  job       "+jobterms.Describe(jobterms.Of(w.Workload, in)))
	if in.Advice != "" {
		terminal.Print(p.Out, "  "+p.Paint(terminal.Red, "you: "+in.Advice))
	}
}

// printCalls prints the calls that an incident caused, with their results; of many, how many there were.
func printCalls(p *terminal.Printer, in view.Incident, all bool) {
	if in.HasManyCalls() && !all {
		terminal.Print(p.Out, "  calls     "+in.CallsText()+"; pitstop incident "+in.ID+" --all prints each")
		return
	}
	if len(in.Calls) > 0 {
		terminal.Print(p.Out, "  "+p.Paint(terminal.Bold, "calls"))
	}
	if in.CallsLeftOut > 0 {
		terminal.Print(p.Out, "  the "+terminal.Count(in.CallsLeftOut, "oldest call")+" not stored")
	}
	for _, c := range in.Calls {
		p.Row(c.At.UTC().Format("15:04:05"), c.Function, "", c.What(), terminal.WithCode(c.Came(), string(c.Code)))
	}
}
