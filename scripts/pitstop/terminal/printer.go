// Package terminal prints for people: no character obeys, a line fits, a table stands in columns, and a long run shows how far it is.
package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/scripts/layout"
)

// PrintJSON writes a value to programs, as one line.
func PrintJSON(w io.Writer, v any) error {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		Print(w, string(raw))
	}
	return err
}

// Printer prints for people, aligned, and in colour on a terminal, or for programs one JSON object per line.
type Printer struct {
	Out    io.Writer
	AsJSON bool
	Colour bool
	// TakeTable takes the tables that would be printed; nil prints them.
	TakeTable func(title string, rows [][]string)
}

// NewPrinter prints in colour if out is a screen in colour.
func NewPrinter(out io.Writer, asJSON bool) *Printer {
	s, ok := out.(*Screen)
	return &Printer{Out: out, AsJSON: asJSON, Colour: ok && s.Colour}
}

// The widths of a line. A reason that does not fit to the right of the text goes under it. A story is never wider than lineWidth,
// because longer lines are hard to read.
const (
	MarkWidth = 11
	textWidth = 66
	LineWidth = 150
)

// Width is how many columns a line of a story has.
func (p *Printer) Width() int { return min(layout.Width(), LineWidth) }

// ANSI colours.
const (
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Cyan   = "\x1b[36m"
	Reset  = "\x1b[0m"
)

var colours = []string{Bold, Dim, Red, Green, Yellow, Cyan, Reset}

// Paint colours a text, where that is wanted.
func (p *Printer) Paint(colour, s string) string {
	if !p.Colour || s == "" {
		return s
	}
	return colour + s + Reset
}

// Heading begins the story of a recorded incident.
func (p *Printer) Heading(name, title string) { Print(p.Out, p.Paint(Bold, name)+"  "+title) }

// WithCode adds to a reason its code, if it has one.
func WithCode(reason, code string) string {
	if code == "" {
		return reason
	}
	return strings.TrimSpace(reason + " [" + code + "]")
}

// Row prints one line of a story: the time, the kind of line, the text, and the reason to the right of it or under it.
func (p *Printer) Row(at, word, colour, text, reason string) {
	head := "  " + at + "  " + p.Paint(colour, word) + strings.Repeat(" ", max(1, MarkWidth-len(word)))
	indent := 2 + len(at) + 2 + MarkWidth
	if reason != "" && Columns(text) <= textWidth && indent+textWidth+2+Columns(reason) <= p.Width() {
		Print(p.Out, head+text+strings.Repeat(" ", textWidth+2-Columns(text))+p.Paint(Dim, reason))
		return
	}
	for i, part := range Wrap(text, p.Width()-indent) {
		if i == 0 {
			Print(p.Out, head+part)
		} else {
			Print(p.Out, strings.Repeat(" ", indent)+part)
		}
	}
	for _, part := range Wrap(reason, p.Width()-indent-2) {
		Print(p.Out, strings.Repeat(" ", indent+2)+p.Paint(Dim, part))
	}
}

// Count counts things whose name takes an s.
func Count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
