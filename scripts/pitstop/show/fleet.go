package show

import (
	"cmp"
	"context"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// sights say of each project of these workloads whether Pitstop sees it, the ones first that it has not seen for longest.
func (d verbs) sights(ctx context.Context, l *ledger.Ledger, all []deployment.Workload) (found []view.Sight, err error) {
	for _, w := range all {
		if slices.ContainsFunc(found, func(s view.Sight) bool { return s.Project == w.Project }) {
			continue
		}
		s, err := l.Sight(ctx, w.Project, d.Now())
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b view.Sight) int { return a.Ticked.Compare(b.Ticked) })
	return found, nil
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
