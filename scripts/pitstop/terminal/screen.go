package terminal

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

// Print writes a line to people. Where that is not possible there is nobody to tell.
func Print(w io.Writer, line string) {
	_, _ = fmt.Fprintln(w, line) //nolint:errcheck // see above
}

// Screen is where the command prints every text, from a log entry, the API, the ledger, a file or a flag. A character that is not
// graphic it writes as JSON does, \u202e. So people see the character, no terminal obeys it, and the value of a JSON string stays
// the same. The command's own colours pass on a terminal. It breaks a line that is wider than layout.Width at spaces, unless the
// line is for programs.
type Screen struct {
	mu     sync.Mutex
	Out    io.Writer
	Colour bool
	// Verbatim leaves every line as wide as it is.
	Verbatim bool
	// Advise turns what a line advises into what its reader can do; nil leaves it.
	Advise func(line string) string
	rest   []byte // the first bytes of a character, until the others come
	line   []byte // the beginning of a line, until its end comes
}

// NewScreen prints in colour on a terminal, unless NO_COLOR is set.
func NewScreen(out io.Writer) *Screen {
	return &Screen{Out: out, Colour: os.Getenv("NO_COLOR") == "" && IsTerminal(out)}
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
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

// PrintUnbroken writes a line that is not broken, because people copy it.
func (s *Screen) PrintUnbroken(line string) {
	s.mu.Lock()
	before := s.Verbatim
	s.Verbatim = true
	s.mu.Unlock()
	Print(s, line)
	s.mu.Lock()
	s.Verbatim = before
	s.mu.Unlock()
}

// lines writes escaped text. The last line waits until its end comes.
func (s *Screen) lines(text []byte) error {
	if s.Verbatim {
		_, err := s.Out.Write(text)
		return err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 {
		s.line = append(s.line, text...)
		return nil
	}
	whole := append(s.line, text[:end]...)
	s.line = slices.Clone(text[end:])
	_, err := s.Out.Write(s.fit(whole))
	return err
}

// fit breaks lines that are too wide. A line that begins as a JSON object does is for a program.
func (s *Screen) fit(text []byte) []byte {
	columns := layout.Width()
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		program := bytes.HasPrefix(line, []byte(`{"`))
		if s.Advise != nil && !program {
			line = []byte(s.Advise(string(line)))
		}
		if len(line) <= columns || program {
			b.Write(line)
			continue
		}
		bare, ended := bytes.CutSuffix(line, []byte("\n"))
		b.WriteString(strings.Join(Fit(string(bare), columns), "\n"))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// Flush writes the last line, which has no end.
func (s *Screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.fit(s.line)
	s.line = nil
	_, err := s.Out.Write(text)
	return err
}

// painted is the length of one of the command's colours at the beginning of a text.
func (s *Screen) painted(text []byte) int {
	if s.Colour && text[0] == '\x1b' {
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

// Clear empties a terminal.
func (s *Screen) Clear() {
	_, _ = io.WriteString(s.Out, "\x1b[H\x1b[2J") //nolint:errcheck // there is nobody else to tell
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f := file(stream)
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// file is the file of a stream, or nil.
func file(stream any) *os.File {
	if s, ok := stream.(*Screen); ok {
		stream = s.Out
	}
	f, _ := stream.(*os.File)
	return f
}

// Printable removes characters that are not graphic, ends of lines too: a name in a file may hold any.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s)
}
