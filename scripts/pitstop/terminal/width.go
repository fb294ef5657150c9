package terminal

import (
	"strings"

	"pitstop.internal/scripts/layout"
)

// Columns is how many columns a text takes. Colours take none.
func Columns(s string) int { return layout.Columns(s) }

// Wrap breaks a text at spaces. A word that is wider than a line stays whole, on a line of its own.
func Wrap(s string, width int) []string {
	if s == "" {
		return nil
	}
	return layout.Break(s, width, 0)
}

// Fit breaks a line that is too wide. What follows hangs under the line's last column of text that begins in the first half, so
// that the text of a row stays apart from the row's head.
func Fit(s string, width int) []string {
	if len(s) <= width || Columns(s) <= width { // a character has no fewer bytes than columns
		return []string{s}
	}
	at := LastColumn(s, width/2)
	if at == 0 {
		at = min(Indentation(s)+2, width/2)
	}
	return layout.Break(s, width, at)
}

// Indentation is how many spaces a line begins with.
func Indentation(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// LastColumn is where the last text begins that stands in a column of its own: two spaces part it from other text before it. It
// begins no further right than most. It is 0 where there is no such text.
func LastColumn(s string, most int) (at int) {
	for i := Indentation(s) + 1; i < len(s); i++ {
		if s[i] != ' ' && s[i-1] == ' ' && s[i-2] == ' ' {
			if n := Columns(s[:i]); n <= most {
				at = n
			}
		}
	}
	return at
}
