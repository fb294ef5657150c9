package show

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

func (d verbs) incidentsCommand() *cobra.Command {
	var where deployment.Place
	var asJSON bool
	var since time.Duration
	c := &cobra.Command{
		Use:   "incidents",
		Short: "List the incidents of a deployment, the newest first",
		Long: "List the incidents of all workloads that opened in the last days, and all that are open: when each opened (UTC), its ID, its\n" +
			"cause, and how it ended. The newest comes first. incident WORKLOAD lists those of one workload, however old; incident ID tells\n" +
			"the story of one. The archive keeps them for 400 days.\n\n" +
			"This needs roles/datastore.viewer. It reads the keys of the archive in one listing, and then the incidents that it lists.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if since <= 0 {
				return cli.Usage("--since %s: it has to be more than 0", since)
			}
			l, err := d.Ledger(where)
			if err != nil {
				return err
			}
			all, err := d.Workloads(c.Context(), l, nil)
			if err != nil {
				return err
			}
			from := d.Now().Add(-since)
			return d.list(c, l, all, from, asJSON, "no incident is open, and none has opened since "+from.UTC().Format(time.RFC3339)+"; --since looks further back")
		},
	}
	where.Flags(c)
	cli.SpanVar(c.Flags(), &since, "since", 7*cli.Day, "how far back incidents are listed, as in 30d or 12h")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per incident: id, workload, cause, opened, closed, phase, outcome")
	return c
}

// list lists the incidents of these workloads that are open or have opened since a time.
func (d verbs) list(c *cobra.Command, l *ledger.Ledger, all []deployment.Workload, from time.Time, asJSON bool, none string) error {
	archived, err := l.Archived(c.Context())
	if err != nil {
		return err
	}
	for of, ids := range archived {
		archived[of] = slices.DeleteFunc(ids, func(id string) bool { return openedBefore(id, from) })
	}
	found, err := incidentsOf(c.Context(), l, all, archived, d.Now())
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(t past) bool { return t.Outcome != "" && t.Opened.Before(from) })
	slices.SortStableFunc(found, func(a, b past) int { return b.Opened.Compare(a.Opened) })
	if asJSON {
		for _, t := range found {
			if err := terminal.PrintJSON(c.OutOrStdout(), struct {
				ID       string       `json:"id"`
				Workload string       `json:"workload"`
				Cause    events.Cause `json:"cause"`
				Opened   time.Time    `json:"opened"`
				Closed   time.Time    `json:"closed,omitzero"`
				Phase    view.Phase   `json:"phase"`
				Outcome  view.Outcome `json:"outcome,omitzero"`
			}{t.ID, t.of.ID, t.Cause, t.Opened, t.Closed, t.Phase, t.Outcome}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		terminal.Print(c.OutOrStdout(), none)
		return nil
	}
	printIncidents(terminal.NewPrinter(c.OutOrStdout(), false), found, d.Now())
	return nil
}

// printIncidents prints one line for each incident. Where they are of several projects, each ID has its own before it, as incident takes it.
func printIncidents(p *terminal.Printer, all []past, now time.Time) {
	widest := 0
	several := slices.ContainsFunc(all, func(t past) bool { return t.of.Project != all[0].of.Project })
	name := func(t past) string {
		if several {
			return t.of.Project + "/" + t.ID
		}
		return t.ID
	}
	for _, t := range all {
		widest = max(widest, terminal.Columns(name(t)))
	}
	for _, t := range all {
		end := string(t.Outcome) + " after " + events.Span(t.Closed.Sub(t.Opened))
		if t.Outcome == "" {
			end = p.Paint(terminal.Yellow, "open: "+string(t.Phase)+" for "+events.Span(now.Sub(t.Since)))
		}
		terminal.Print(p.Out, t.Opened.UTC().Format("2006-01-02 15:04")+"  "+p.Paint(terminal.Bold, name(t))+strings.Repeat(" ", widest-terminal.Columns(name(t)))+"  "+terminal.CauseText(t.Cause)+", "+end)
	}
}

// past is an incident with its workload.
type past struct {
	of deployment.Workload
	view.Incident
}

// readAtOnce is how many incidents are read at the same time.
const readAtOnce = 16

// incidentsOf reads incidents of workloads: those that are shown with them, and those of the archive with these IDs, by the workloads' IDs.
func incidentsOf(
	ctx context.Context, l *ledger.Ledger, all []deployment.Workload, archived map[string][]string, now time.Time,
) (found []past, err error) {
	for _, w := range all {
		ids := slices.Clone(archived[w.ID])
		for _, in := range []*view.Incident{w.Incident, w.Closed} {
			if in != nil && !slices.Contains(ids, in.ID) {
				ids = append(ids, in.ID)
			}
		}
		for _, id := range ids {
			found = append(found, past{w, view.Incident{ID: id}})
		}
	}
	var reading errgroup.Group
	reading.SetLimit(readAtOnce)
	for i := range found {
		reading.Go(func() error {
			in, err := found[i].of.ReadIncident(ctx, l, found[i].ID, now)
			found[i].Incident = in
			if errors.Is(err, ledger.ErrNotFound) {
				return nil // it has expired since the listing
			}
			return err
		})
	}
	err = reading.Wait()
	return slices.DeleteFunc(found, func(t past) bool { return t.ID == "" }), err
}

// openedBefore reports whether the ID of an incident names a day that was over by then: the one on which it opened.
func openedBefore(id string, then time.Time) bool {
	parts := strings.Split(id, "-")
	on, err := time.Parse("20060102", parts[max(0, len(parts)-2)])
	return err == nil && !on.AddDate(0, 0, 1).After(then)
}
