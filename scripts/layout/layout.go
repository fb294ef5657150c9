// Package layout breaks the text that the commands here print.
package layout

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	usualWidth = 100
	leastWidth = 40 // in fewer columns a hanging line has no room
	mostWidth  = 10_000
)

// Width is how many columns a line has at most: 100, or what COLUMNS says.
func Width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= leastWidth && n <= mostWidth {
		return n
	}
	return usualWidth
}

// colour is what paints the text behind it.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Columns is how many columns a text takes. Colours take none.
func Columns(s string) int {
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = colour.ReplaceAllString(s, "")
	}
	return utf8.RuneCountInString(s)
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
