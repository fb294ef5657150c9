package lab

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/world"
)

// summaryRow is one incident of a summary.
type summaryRow struct {
	scenario, workload, cause, end string
	// outcome is the end as the ledger names it; empty while the incident is open.
	outcome string
	opened  time.Time
	away    time.Duration
	chips   float64
	// still says that the training was not back at the end: it was away for longer, and nobody can say how long.
	still bool
}

// summary is what a replay ends with: a line for each incident, the totals, and the assumptions.
type summary struct {
	rows    []summaryRow
	assumed []string
	// recorded says that the rows are of the recorded incidents, whose scenarios have names.
	recorded bool
	// interrupted says that the replay did not come to its end.
	interrupted bool
}

// add takes what came of one story.
func (s *summary) add(story *world.Story) {
	for _, r := range story.Ended {
		s.rows = append(s.rows, rowOf(story.Name, r, strings.ReplaceAll(string(r.Outcome), "_", " ")))
	}
	for _, r := range story.Open {
		end := "not ended"
		if s.interrupted {
			end = "still open"
		}
		s.rows = append(s.rows, rowOf(story.Name, r, end))
	}
	for _, l := range story.Lines {
		if l.Kind == world.Assumed {
			s.assumed = append(s.assumed, l.Text)
		}
	}
	if !s.recorded {
		slices.SortStableFunc(s.rows, func(a, b summaryRow) int {
			return cmp.Or(a.opened.Compare(b.opened), strings.Compare(a.workload, b.workload))
		})
	}
}

func rowOf(name string, r world.Result, end string) summaryRow {
	return summaryRow{
		scenario: name, workload: r.Workload, cause: strings.ReplaceAll(string(r.Cause), "_", " "), end: end, outcome: string(r.Outcome),
		opened: r.Opened.UTC(), away: r.Cost.Away(), chips: r.Cost.ChipHours, still: r.Cost.AtLeast,
	}
}

// summaryColumn is a column of the table. Where the line is too narrow, those with the highest leaves go first, and one that shrinks
// is cut in its middle.
type summaryColumn struct {
	title   string
	right   bool
	leaves  int
	shrinks bool
	cell    func(summaryRow) string
}

// columns are the columns of the table.
func (s *summary) columns() []summaryColumn {
	format, project := s.format(), s.project()
	short := func(r summaryRow) string { return strings.TrimPrefix(r.workload, project) }
	workload := summaryColumn{title: "workload", shrinks: true, cell: short}
	when := summaryColumn{title: "when", cell: func(r summaryRow) string { return r.opened.Format(format) }}
	rest := []summaryColumn{
		{title: "cause", cell: func(r summaryRow) string { return r.cause }},
		{title: "end", cell: func(r summaryRow) string { return r.end }},
		{title: "away", right: true, cell: func(r summaryRow) string { return r.least(awayText(r.away)) }},
		{title: "chip-hours", right: true, cell: func(r summaryRow) string { return r.least(chipText(r.chips)) }},
	}
	if !s.recorded {
		return append([]summaryColumn{when, workload}, rest...)
	}
	when.leaves, workload.leaves, workload.shrinks = 2, 1, false
	name := summaryColumn{title: "scenario", shrinks: true, cell: func(r summaryRow) string { return r.scenario }}
	return append([]summaryColumn{name, when, workload}, rest...)
}

// format is how a time is written: with the year where the incidents are of several years.
func (s *summary) format() string {
	for _, r := range s.rows {
		if r.opened.Year() != s.rows[0].opened.Year() {
			return "2006-01-02 15:04"
		}
	}
	return "Jan _2 15:04"
}

// project is what all workloads have before their names, if it is the same.
func (s *summary) project() string {
	if len(s.rows) == 0 {
		return ""
	}
	project, _, _ := strings.Cut(s.rows[0].workload, "/")
	for _, r := range s.rows {
		if !strings.HasPrefix(r.workload, project+"/") {
			return ""
		}
	}
	return project + "/"
}

// least marks a figure that would be larger if the training had come back.
func (r summaryRow) least(figure string) string {
	if !r.still || figure == "-" {
		return figure
	}
	return ">= " + figure
}

func awayText(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return events.Span(d)
}

func chipText(n float64) string {
	if n <= 0 {
		return "-"
	}
	whole, tenth, _ := strings.Cut(fmt.Sprintf("%.1f", n), ".")
	if len(whole) > 3 {
		return events.Number(int64(n))
	}
	return whole + "." + tenth
}

const columnGap = "  "

// table prints the rows and their sums, no wider than the line.
func (p *storyPrinter) table(s *summary) {
	if len(s.rows) == 0 {
		return
	}
	var sum summaryRow
	for _, r := range s.rows {
		sum.away += r.away
		sum.chips += r.chips
		sum.still = sum.still || r.still
	}
	shown, each := s.fitting(sum, p.Width())
	line := func(cell func(summaryColumn) string, colour func(summaryColumn) string) {
		var b strings.Builder
		for i, c := range shown {
			if i > 0 {
				b.WriteString(columnGap)
			}
			text := shortened(cell(c), each[i])
			pad := strings.Repeat(" ", each[i]-terminal.Columns(text))
			if c.right {
				b.WriteString(pad)
			}
			b.WriteString(p.Paint(colour(c), text))
			if !c.right && i < len(shown)-1 {
				b.WriteString(pad)
			}
		}
		terminal.Print(p.Out, strings.TrimRight(b.String(), " "))
	}
	line(func(c summaryColumn) string { return c.title }, func(summaryColumn) string { return terminal.Bold })
	for _, r := range s.rows {
		line(func(c summaryColumn) string { return c.cell(r) }, func(c summaryColumn) string {
			if c.title == "end" {
				return endColour(r.outcome)
			}
			return ""
		})
	}
	line(func(c summaryColumn) string {
		switch {
		case c.right:
			return c.cell(sum)
		case c.title == shown[0].title:
			return "total"
		}
		return ""
	}, func(summaryColumn) string { return terminal.Bold })
	if sum.still {
		terminal.Print(p.Out, p.Paint(terminal.Dim, ">= counts until the incident ended, when the training was not back yet"))
	}
	terminal.Print(p.Out, "")
}

// fitting are the columns that fit side by side, each with its width.
func (s *summary) fitting(sum summaryRow, width int) (shown []summaryColumn, each []int) {
	shown = s.columns()
	widths := func() (each []int, all int) {
		for _, c := range shown {
			wide := max(terminal.Columns(c.title), terminal.Columns(c.cell(sum)))
			for _, r := range s.rows {
				wide = max(wide, terminal.Columns(c.cell(r)))
			}
			each = append(each, wide)
			all += wide + len(columnGap)
		}
		return each, all - len(columnGap)
	}
	each, all := widths()
	for all > width {
		i := 0
		for j, c := range shown {
			if c.leaves > shown[i].leaves {
				i = j
			}
		}
		if shown[i].leaves == 0 {
			break
		}
		shown = slices.Delete(shown, i, i+1)
		each, all = widths()
	}
	for i, c := range shown {
		if c.shrinks && all > width {
			each[i] = max(leastName, each[i]-(all-width))
		}
	}
	return shown, each
}

// leastName is how many columns of a name are always shown.
const leastName = 8

// shortened cuts the middle out of a text that is too wide.
func shortened(s string, most int) string {
	runes := []rune(s)
	if terminal.Columns(s) <= most || len(runes) <= most {
		return s
	}
	tail := (most - 1) / 2
	return string(runes[:most-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// endColour is the colour of an end.
func endColour(outcome string) string {
	switch outcome {
	case "resumed":
		return terminal.Green
	case "escalated", "":
		return terminal.Red
	case "observed":
		return terminal.Dim
	}
	return terminal.Yellow
}

// mostAssumed is how many assumptions people read; programs get all.
const mostAssumed = 12

// assumptions prints what the entries do not say.
func (p *storyPrinter) assumptions(all []string) {
	if len(all) == 0 {
		return
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, "assumed")+" (not in your logs; Pitstop's assumptions)")
	for i, text := range all {
		if i == mostAssumed {
			terminal.Print(p.Out, fmt.Sprintf("  and %s more; --json prints all", events.Number(int64(len(all)-i))))
			break
		}
		for j, part := range terminal.Wrap(text, p.Width()-4) {
			terminal.Print(p.Out, []string{"  - ", "    "}[min(j, 1)]+part)
		}
	}
	terminal.Print(p.Out, "")
}

// listNames prints the recorded incidents by name.
func listNames(out io.Writer, plays []play) {
	p := terminal.NewPrinter(out, false)
	wide := 0
	for _, one := range plays {
		wide = max(wide, len(one.name))
	}
	for _, one := range plays {
		for i, part := range terminal.Wrap(one.scenario.Title, p.Width()-wide-len(columnGap)) {
			name := one.name
			if i > 0 {
				name = ""
			}
			terminal.Print(out, p.Paint(terminal.Bold, name)+strings.Repeat(" ", wide-len(name))+columnGap+part)
		}
	}
}
