package main

import (
	"strings"

	"pitstop.internal/scripts/layout"
)

// columns is how many columns a text takes. Colours take none.
func columns(s string) int { return layout.Columns(s) }

// wrap breaks a text at spaces. A word that is wider than a line stays whole, on a line of its own.
func wrap(s string, width int) []string {
	if s == "" {
		return nil
	}
	return layout.Break(s, width, 0)
}

// fitted breaks a line that is too wide. What follows hangs under the line's last column of text that begins in the first half, so
// that the text of a row stays apart from the row's head.
func fitted(s string, width int) []string {
	if len(s) <= width || columns(s) <= width { // a character has no fewer bytes than columns
		return []string{s}
	}
	at := lastColumn(s, width/2)
	if at == 0 {
		at = min(indentation(s)+2, width/2)
	}
	return layout.Break(s, width, at)
}

func indentation(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// lastColumn is where the last text begins that stands in a column of its own: two spaces part it from other text before it. It
// begins no further right than most. It is 0 where there is no such text.
func lastColumn(s string, most int) (at int) {
	for i := indentation(s) + 1; i < len(s); i++ {
		if s[i] != ' ' && s[i-1] == ' ' && s[i-2] == ' ' {
			if n := columns(s[:i]); n <= most {
				at = n
			}
		}
	}
	return at
}
