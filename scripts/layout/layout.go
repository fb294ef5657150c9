// Package layout fits the text that the commands here print to the terminal.
package layout

import (
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

const (
	defaultWidth = 100 // where there is no terminal
	leastWidth   = 40  // in fewer columns a hanging line has no room
	mostWidth    = 10_000
)

// Width is how many columns a line has that goes to out: COLUMNS says it, or the terminal. A pipe, as to less, takes the width of
// the terminal that the command has elsewhere. Where there is no terminal, or out is nil, it is 100.
func Width(out *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= leastWidth && n <= mostWidth {
		return n
	}
	if out == nil {
		return defaultWidth
	}
	streams := []*os.File{out}
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		streams = []*os.File{os.Stderr, os.Stdin}
	}
	for _, f := range streams {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return max(n, leastWidth)
		}
	}
	return defaultWidth
}

// colour is what paints the text behind it.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Columns is how many columns a text takes. Colours take none.
func Columns(s string) int {
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = colour.ReplaceAllString(s, "")
	}
	return uniseg.StringWidth(s)
}

// Break breaks a line at spaces and indents what follows the first break. It breaks no word. Spaces at a break are dropped,
// all others stay.
func Break(s string, width, indent int) (lines []string) {
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
		wide := Columns(word)
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
