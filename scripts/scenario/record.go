package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

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
// largest entry. A faulty one is reported with its place and the rest is read on from the next entry that begins a line.
func Records(r io.Reader, name string, yield func(Record, error)) {
	s := splitter{r: bufio.NewReaderSize(r, 1<<16), name: name, line: 1, yield: yield}
	s.run()
	if s.index == 0 && s.faults == 0 {
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
	// blank says that nothing but space stands before this column.
	blank bool

	buf               bytes.Buffer
	depth             int
	inString, escaped bool
	startLine         int
	startColumn       int
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
		if s.depth == 0 {
			s.outside(c)
		} else {
			s.inside(c)
		}
		s.column++
		switch {
		case c == '\n':
			s.line, s.column, s.blank = s.line+1, 0, true
		case c != ' ' && c != '\t' && c != '\r':
			s.blank = false
		}
	}
}

// outside looks for the beginning of an object.
func (s *splitter) outside(c byte) {
	switch c {
	case '{':
		s.begin()
	case ' ', '\t', '\r', '\n', '[', ']', ',', 0xEF, 0xBB, 0xBF:
		// What separates entries, and a byte order mark.
	default:
		s.fault(s.line, s.skip(c))
	}
}

// skip passes over the rest of a line that holds no object.
func (s *splitter) skip(c byte) error {
	var start []byte
	for {
		start = append(start, c)
		next, err := s.r.ReadByte()
		if err != nil {
			break
		}
		if next == '\n' {
			if err := s.r.UnreadByte(); err != nil {
				return err
			}
			break
		}
		if c = next; len(start) > 200 {
			start = start[:200]
		}
	}
	return fmt.Errorf("%.40q is no JSON log entry%s", start, hint(string(start)))
}

// hint tells those who forgot the format what to do.
func hint(s string) string {
	if bytes.HasPrefix([]byte(s), []byte("---")) || bytes.HasPrefix([]byte(s), []byte("insertId:")) {
		return ": this looks like YAML, read the log with --format=json"
	}
	return ""
}

func (s *splitter) begin() {
	s.index++
	s.buf.Reset()
	s.buf.WriteByte('{')
	s.depth, s.inString, s.escaped, s.large = 1, false, false, false
	s.startLine, s.startColumn = s.line, s.column
}

// inside follows an object to its end. No string of JSON goes over a line, and no object of an entry begins further left
// than the entry: where one does, an entry is broken off.
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
