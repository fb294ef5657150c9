package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"pitstop.internal/events"
)

// Record is a log entry of the record, as it stands in a file.
type Record struct {
	Raw []byte
	// Where names the file and the line at which it begins, Index its place in the file, from 1.
	Where string
	Index int
}

// ErrEmpty says that there was no entry at all.
var ErrEmpty = errors.New("there is no log entry in it")

// Records reads log entries one after another: an array, one object per line, or objects side by side; what gcloud
// logging read writes. Each is handed on as soon as it is complete, so a large file needs no more memory than its
// largest entry. A faulty one is reported with its place and the rest is read on: from the next value of the array, else
// from the next entry that begins a line. An array without an entry is the answer of a log that has none, and no fault.
func Records(r io.Reader, name string, yield func(Record, error)) {
	s := splitter{r: bufio.NewReaderSize(r, 1<<16), name: name, line: 1, yield: yield}
	s.run()
	if s.index == 0 && s.faults == 0 && !s.answered {
		yield(Record{Where: name}, fmt.Errorf("%s: %w", name, ErrEmpty))
	}
}

// splitter finds where objects begin and end. It knows of JSON what that takes; whether an object is sound its reader
// says.
type splitter struct {
	r     *bufio.Reader
	name  string
	yield func(Record, error)

	line, column  int
	index, faults int
	// blank says that nothing but space stands before this column, indent is where the line begins behind that.
	blank  bool
	indent int
	// arrays counts those that are open around the entries; answered says that one was closed and none is open.
	arrays   int
	answered bool
	// told is the last line of which it is told that there is more than entries on it.
	told int

	buf               bytes.Buffer
	depth             int
	inString, escaped bool
	startLine         int
	// startColumn is the indent of that line.
	startColumn int
	// large says that the present object has outgrown what is read of it: it is passed over.
	large bool
}

func (s *splitter) run() {
	s.blank = true
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			s.end(err)
			return
		}
		space := c == ' ' || c == '\t' || c == '\r' || c == '\n'
		if s.blank && !space {
			s.indent = s.column
		}
		if s.depth == 0 {
			s.outside(c)
		} else {
			s.inside(c)
		}
		s.column++
		if c == '\n' {
			s.line, s.column, s.blank = s.line+1, 0, true
		} else if !space {
			s.blank = false
		}
	}
}

// outside looks for the beginning of an object.
func (s *splitter) outside(c byte) {
	switch c {
	case '{':
		s.begin()
	case '[':
		s.arrays, s.answered = s.arrays+1, false
	case ']':
		s.answered = s.arrays == 1
		s.arrays = max(0, s.arrays-1)
	case ' ', '\t', '\r', '\n', ',', 0xEF, 0xBB, 0xBF:
		// What separates entries, and a byte order mark.
	default:
		listed := s.arrays > 0
		what := s.skip(c, listed)
		if listed || s.told != s.line {
			s.fault(s.line, fmt.Errorf("%.40q is no JSON log entry%s", what, hint(what)))
		}
		s.told = s.line
	}
}

// skip passes over what is no object and returns how it begins: a value of an array, else the rest of the line.
func (s *splitter) skip(c byte, listed bool) string {
	const shown = 200
	var start []byte
	var quoted, escaped bool
	for {
		if len(start) < shown {
			start = append(start, c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		next, err := s.r.Peek(1)
		if err != nil {
			break
		}
		c = next[0]
		if c == '\n' || listed && !quoted && (c == ',' || c == ']' || c == '{') {
			break
		}
		if _, err := s.r.Discard(1); err != nil {
			break
		}
		s.column++
	}
	return strings.TrimRight(string(start), " \t\r")
}

// hint tells those who forgot the format what to do.
func hint(s string) string {
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "insertId:") {
		return ": this looks like YAML, read the log with --format=json"
	}
	return ""
}

func (s *splitter) begin() {
	s.index++
	s.buf.Reset()
	s.buf.WriteByte('{')
	s.depth, s.inString, s.escaped, s.large = 1, false, false, false
	s.startLine, s.startColumn = s.line, s.indent
}

// inside follows an object to its end. No string of JSON goes over a line, and no object of an entry begins a line further
// left than the line on which the entry begins: where one does, an entry is broken off.
func (s *splitter) inside(c byte) {
	if c == '{' && s.blank && s.column <= s.startColumn && !s.inString {
		s.broken("it ends in the middle; the next entry begins on line " + fmt.Sprint(s.line))
		s.begin()
		return
	}
	if c == '\n' {
		s.inString, s.escaped = false, false
	}
	s.keep(c)
	switch {
	case s.escaped:
		s.escaped = false
	case s.inString && c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = !s.inString
	case s.inString:
	case c == '{':
		s.depth++
	case c == '}':
		s.depth--
	}
	if s.depth > 0 {
		return
	}
	if s.large {
		s.broken(fmt.Sprintf("it is larger than the %d bytes that are read", events.MaxBytes))
		return
	}
	s.yield(Record{Raw: bytes.Clone(s.buf.Bytes()), Where: s.where(s.startLine), Index: s.index}, nil)
}

func (s *splitter) keep(c byte) {
	if s.buf.Len() >= events.MaxBytes {
		s.large = true
		return
	}
	s.buf.WriteByte(c)
}

func (s *splitter) broken(why string) {
	s.depth = 0
	s.fault(s.startLine, errors.New("log entry: "+why))
}

func (s *splitter) fault(line int, err error) {
	s.faults++
	where := s.where(line)
	s.yield(Record{Where: where, Index: s.index}, fmt.Errorf("%s: %w", where, err))
}

func (s *splitter) where(line int) string { return fmt.Sprintf("%s:%d", s.name, line) }

func (s *splitter) end(err error) {
	if !errors.Is(err, io.EOF) {
		s.fault(s.line, err)
		return
	}
	if s.depth > 0 {
		s.broken("it is truncated")
	}
}
