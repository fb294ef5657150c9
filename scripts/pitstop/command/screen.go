package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"pitstop.internal/scripts/layout"
)

// screen is where the command prints every text, from a log entry, the API, the ledger, a file or a flag. A character that is not
// graphic it writes as JSON does, \u202e. So people see the character, no terminal obeys it, and the value of a JSON string stays
// the same. The command's own colours pass on a terminal. It breaks a line that is wider than layout.Width at spaces, unless the
// line is for programs.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	// verbatim leaves every line as wide as it is.
	verbatim bool
	// advised turns what a line advises into what its reader can do; nil leaves it.
	advised func(line string) string
	rest    []byte // the first bytes of a character, until the others come
	line    []byte // the beginning of a line, until its end comes
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, colour: os.Getenv("NO_COLOR") == "" && terminal(out)}
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := p
	if len(s.rest) > 0 {
		text = append(s.rest, p...)
		s.rest = nil
	}
	var b bytes.Buffer
	plain := 0 // the text from here on is not in b yet
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c <= '~' || c == '\n' || c == '\t' {
			i++
			continue
		}
		if !utf8.FullRune(text[i:]) {
			s.rest = slices.Clone(text[i:])
			text = text[:i]
			break
		}
		r, n := utf8.DecodeRune(text[i:])
		if n > 1 && unicode.IsGraphic(r) {
			i += n
			continue
		}
		if n := s.painted(text[i:]); n > 0 {
			i += n
			continue
		}
		b.Write(text[plain:i])
		b.WriteString(escaped(r))
		i += n
		plain = i
	}
	if plain > 0 {
		b.Write(text[plain:])
		text = b.Bytes()
	}
	if err := s.lines(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unbroken writes a line that is not broken, because people copy it.
func (s *screen) unbroken(line string) {
	s.mu.Lock()
	before := s.verbatim
	s.verbatim = true
	s.mu.Unlock()
	tell(s, line)
	s.mu.Lock()
	s.verbatim = before
	s.mu.Unlock()
}

// lines writes escaped text. The last line waits until its end comes.
func (s *screen) lines(text []byte) error {
	if s.verbatim {
		_, err := s.out.Write(text)
		return err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 {
		s.line = append(s.line, text...)
		return nil
	}
	whole := append(s.line, text[:end]...)
	s.line = slices.Clone(text[end:])
	_, err := s.out.Write(s.fit(whole))
	return err
}

// fit breaks lines that are too wide. A line that begins as a JSON object does is for a program.
func (s *screen) fit(text []byte) []byte {
	columns := layout.Width()
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		program := bytes.HasPrefix(line, []byte(`{"`))
		if s.advised != nil && !program {
			line = []byte(s.advised(string(line)))
		}
		if len(line) <= columns || program {
			b.Write(line)
			continue
		}
		bare, ended := bytes.CutSuffix(line, []byte("\n"))
		b.WriteString(strings.Join(fitted(string(bare), columns), "\n"))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// flush writes the last line, which has no end.
func (s *screen) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.fit(s.line)
	s.line = nil
	_, err := s.out.Write(text)
	return err
}

// painted is the length of one of the command's colours at the beginning of a text.
func (s *screen) painted(text []byte) int {
	if s.colour && text[0] == '\x1b' {
		for _, c := range colours {
			if bytes.HasPrefix(text, []byte(c)) {
				return len(c)
			}
		}
	}
	return 0
}

// escaped is a character as JSON writes it. A byte that belongs to no character becomes U+FFFD.
func escaped(r rune) string {
	switch {
	case r == utf8.RuneError:
		return string(r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// clear empties a terminal.
func (s *screen) clear() {
	_, _ = io.WriteString(s.out, "\x1b[H\x1b[2J") //nolint:errcheck // there is nobody else to tell
}

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	f := file(stream)
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// file is the file of a stream, or nil.
func file(stream any) *os.File {
	if s, ok := stream.(*screen); ok {
		stream = s.out
	}
	f, _ := stream.(*os.File)
	return f
}

// printable removes characters that are not graphic, ends of lines too: a name in a file may hold any.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s)
}
