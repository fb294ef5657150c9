package main

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// The width of the command's output, in columns.
const (
	defaultWidth = 100 // where there is no terminal
	leastWidth   = 40  // in fewer columns a hanging line has no room
	mostWidth    = 10_000
)

// width is how many columns a line has: COLUMNS says it, or the terminal. A pipe, as to less, takes the width of the terminal that
// the command has elsewhere. Where there is no terminal it is 100.
func width(out io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= leastWidth && n <= mostWidth {
		return n
	}
	f := file(out)
	if f == nil {
		return defaultWidth
	}
	streams := []*os.File{f}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		streams = []*os.File{os.Stderr, os.Stdin}
	}
	for _, f := range streams {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 { //nolint:gosec // a file's number is small
			return max(n, leastWidth)
		}
	}
	return defaultWidth
}

// columns is how many columns a text takes. Colours take none.
func columns(s string) int {
	if strings.IndexByte(s, '\x1b') >= 0 {
		for _, c := range colours {
			s = strings.ReplaceAll(s, c, "")
		}
	}
	return uniseg.StringWidth(s)
}

// wrap breaks a text at spaces. A word that is wider than a line stays whole, on a line of its own.
func wrap(s string, width int) []string {
	if s == "" {
		return nil
	}
	return breakLine(s, width, 0)
}

// breakLine breaks a line at spaces and indents what follows the first break. It breaks no word. Spaces at a break are dropped,
// all others stay.
func breakLine(s string, width, indent int) (lines []string) {
	margin := strings.Repeat(" ", indent)
	var line strings.Builder
	used := 0
	for rest := s; rest != ""; {
		word := strings.TrimLeft(rest, " ")
		gap := len(rest) - len(word)
		if word == "" {
			break
		}
		if end := strings.IndexByte(word, ' '); end >= 0 {
			word = word[:end]
		}
		rest = rest[gap+len(word):]
		wide := columns(word)
		if used+gap+wide > width && used+gap > indent { // else the word would stand no further left on a line of its own
			lines = append(lines, line.String())
			line.Reset()
			line.WriteString(margin)
			used, gap = indent, 0
		}
		line.WriteString(strings.Repeat(" ", gap))
		line.WriteString(word)
		used += gap + wide
	}
	return append(lines, line.String())
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
	return breakLine(s, width, at)
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
