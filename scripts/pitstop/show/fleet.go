package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/view"
)

// printFleet prints a line for each workload, the worst first, and then what those need that wait for a person.
func printFleet(p *terminal.Printer, rows []view.Row, sights []sight, now time.Time) {
	table := [][]string{{"WORKLOAD", "STATE", "SINCE", "NEEDS YOU", "COST SO FAR", "NEXT"}}
	for _, r := range rows {
		since, needs := "-", "-"
		if !r.Since.IsZero() {
			since = events.Span(now.Sub(r.Since))
		}
		if r.Need != nil {
			needs = "yes"
		}
		table = append(table, []string{r.Workload, stateText(r, sights, now), since, needs, costText(r.Cost), nextText(r, now)})
	}
	p.Table(terminal.Count(len(rows), "workload"), 0, 2, table)
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

// stateText is how a workload stands. After an hour without a tick of its project's patrol nobody knows.
func stateText(r view.Row, sights []sight, now time.Time) string {
	silent := func(s sight) bool {
		return strings.HasPrefix(r.Workload, s.Project+"/") && now.Sub(s.Ticked) > time.Hour
	}
	if slices.ContainsFunc(sights, silent) {
		return "unknown, was " + string(r.State)
	}
	return string(r.State)
}

// costText is what an incident has cost so far, in dollars where the policy has a price.
func costText(c view.Cost) string {
	switch {
	case c.AwaySeconds == 0:
		return "-"
	case c.ChipHourPrice > 0:
		return fmt.Sprintf("$%.2f", c.ChipHours*c.ChipHourPrice)
	}
	return fmt.Sprintf("%.1f chip-hours", c.ChipHours)
}

// nextText is what Pitstop does, and until when or when.
func nextText(r view.Row, now time.Time) string {
	switch {
	case r.Next == "" && r.Need != nil:
		return "nothing until you act"
	case r.Next == "":
		return "-"
	case r.Incident != "" && !r.At.IsZero():
		return r.Next + ", until " + clock(r.At, now)
	case !r.At.IsZero():
		return r.Next + " at " + clock(r.At, now)
	}
	return r.Next
}

// clock is a time for people who see the present one: with its day where that is another one.
func clock(at, now time.Time) string {
	if at.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return at.UTC().Format("15:04")
	}
	return at.UTC().Format("Jan 2 15:04")
}
