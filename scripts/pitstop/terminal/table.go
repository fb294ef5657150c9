package terminal

import (
	"fmt"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
)

// LastMaintenance is the date of the last maintenance event, in UTC and to the second.
func LastMaintenance(at time.Time) string {
	return "last maintenance event at " + at.UTC().Format(time.RFC3339)
}

// Table prints a table and an empty line; beyond so many rows it says how many more there are. 0 is no bound. Where the screen is too
// narrow for the table, only the first columns, head of them, stand side by side. The others follow under them, with their names.
func (p *Printer) Table(title string, most, head int, rows [][]string) {
	if p.TakeTable != nil {
		p.TakeTable(title, rows)
		return
	}
	Print(p.Out, p.Paint(Bold, title))
	shown := rows
	if most > 0 && len(rows) > most+1 {
		shown = rows[:most+1]
	}
	widths := make([]int, len(rows[0]))
	whole := 2 * (len(widths) - 1)
	for i := range widths {
		for _, r := range shown {
			widths[i] = max(widths[i], Columns(r[i]))
		}
		whole += widths[i]
	}
	if whole <= layout.Width() {
		head = len(widths)
	}
	for i, r := range shown {
		Print(p.Out, beside(r[:head], widths))
		if i > 0 && head < len(r) {
			Print(p.Out, Labelled(rows[0][head:], r[head:]))
		}
	}
	if more := len(rows) - len(shown); more > 0 {
		Print(p.Out, fmt.Sprintf("and %s more rows (--json has all)", events.Number(int64(more))))
	}
	Print(p.Out, "")
}

// beside puts cells side by side.
func beside(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c + strings.Repeat(" ", widths[i]-Columns(c)+2))
	}
	return strings.TrimRight(b.String(), " ")
}

// Labelled writes cells in a line that hangs under the row they belong to, each with the name of its column. Empty ones are left out.
func Labelled(names, cells []string) string {
	var parts []string
	for i, c := range cells {
		if c != "-" {
			parts = append(parts, names[i]+": "+c)
		}
	}
	return "    " + strings.Join(parts, " · ")
}

// SecondsText writes seconds as the incidents do.
func SecondsText(seconds float64) string {
	return events.Span(time.Duration(seconds * float64(time.Second)))
}

// Numbered counts things; many is their name where it does not end in s.
func Numbered(n int, one string, many ...string) string {
	name := one + "s"
	if len(many) > 0 {
		name = many[0]
	}
	if n == 1 {
		name = one
	}
	return events.Number(int64(n)) + " " + name
}

// CauseText is a cause for people.
func CauseText(c events.Cause) string { return strings.ReplaceAll(string(c), "_", " ") }
