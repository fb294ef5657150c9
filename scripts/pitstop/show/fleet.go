package show

import (
	"cmp"
	"context"
	"io"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/view"
)

// sights say of each project of these workloads whether Pitstop sees it, the ones first that it has not seen for longest.
func (d verbs) sights(ctx context.Context, l *ledger.Ledger, all []deployment.Workload) ([]view.Sight, error) {
	var projects []string
	for _, w := range all {
		projects = append(projects, w.Project)
	}
	return l.Sights(ctx, projects, d.Now())
}

// keepFleet writes the fleet as a page into a file.
func (d verbs) keepFleet(ctx context.Context, l *ledger.Ledger, name string, out io.Writer) error {
	found, err := d.Workloads(ctx, l, nil)
	if err != nil {
		return err
	}
	policies, _, err := d.Policies(ctx, l)
	if err != nil {
		return err
	}
	f := page.Fleet{Frame: page.Frame{At: d.Now()}}
	for _, w := range found {
		f.Workloads = append(f.Workloads, ledger.View(ctx, policies, w.Document, d.Now()))
	}
	if f.Sights, err = d.sights(ctx, l, found); err != nil {
		return err
	}
	pause, err := l.Pause(ctx)
	if err != nil {
		return err
	}
	if pause.Holds(d.Now()) {
		f.Paused = "everything is paused " + PausedText(pause)
	}
	if err := f.ReadDay(ctx, l); err != nil {
		return err
	}
	return cli.Keep(out, name, func(out io.Writer) error { return page.KeepFleet(out, f) })
}

// printSights prints whether Pitstop sees. Where it does not, that is said first and loudly, with what to do.
func printSights(p *terminal.Printer, all []view.Sight, now time.Time) {
	for _, s := range all {
		for _, l := range s.Lines(now) {
			line := l.Text
			if l.Loud != "" {
				line = p.Paint(terminal.Red, l.Loud) + ": " + line
			}
			if len(all) > 1 {
				line = s.Project + ": " + line
			}
			if l.Do != "" {
				line += "; " + l.Do
			}
			terminal.Print(p.Out, line)
		}
	}
}

// printFleet prints a line for each workload, the worst first, and then what those need that wait for a person.
func printFleet(p *terminal.Printer, rows []view.Row, sights []view.Sight, now time.Time) {
	table := [][]string{{"WORKLOAD", "STATE", "SINCE", "NEEDS YOU", "COST SO FAR", "NEXT"}}
	for _, r := range rows {
		since, needs := "-", "-"
		if !r.Since.IsZero() {
			since = events.Span(now.Sub(r.Since))
		}
		if r.Need != nil {
			needs = "yes"
		}
		table = append(table, []string{r.Workload, r.StateText(sights, now), since, needs, r.Cost.Short(), cmp.Or(r.NextText(now), "-")})
	}
	cutLast(table)
	p.Table(terminal.Count(len(rows), "workload"), 0, 5, table)
	for _, r := range rows {
		if r.Need == nil {
			continue
		}
		line := r.Workload + ": " + r.Need.Text
		if r.Need.Command != "" {
			line += "; " + r.Need.Command
		}
		if r.Need.Otherwise != "" {
			line += " (else " + r.Need.Otherwise + ")"
		}
		terminal.Print(p.Out, p.Paint(terminal.Yellow, "you  ")+line)
	}
}

// cutLast cuts the last column of a table to what the screen has left of a line, so that each row is one line; status WORKLOAD has all of it.
func cutLast(table [][]string) {
	last := len(table[0]) - 1
	left := layout.Width()
	for i := range last {
		widest := 0
		for _, row := range table {
			widest = max(widest, terminal.Columns(row[i]))
		}
		left -= widest + 2
	}
	const least = 12
	for _, row := range table {
		if text := []rune(row[last]); len(text) > max(left, least) {
			row[last] = string(text[:max(left, least)-1]) + "…"
		}
	}
}
