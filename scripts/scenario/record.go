package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"pitstop.internal/events"
)

// Record is a log entry of the record, as it stands in a file.
type Record struct {
	Raw []byte
	// File and Line say where it begins; without a line File is the whole place. Index is its place in the file, from 1.
	File        string
	Line, Index int
	// Shared says that another begins before it on its line, so that the line alone does not name it.
	Shared bool
}

// Where names the file and the line at which the record begins, and its number where the line does not tell which it is.
func (r Record) Where() string {
	if r.Line == 0 {
		return r.File
	}
	where := r.File + ":" + strconv.Itoa(r.Line)
	if r.Shared {
		where += ", entry " + strconv.Itoa(r.Index)
	}
	return where
}

// Clone has memory of its own.
func (r Record) Clone() Record {
	r.Raw = bytes.Clone(r.Raw)
	return r
}

// ErrEmpty says that there was no entry at all.
var ErrEmpty = errors.New("there is no log entry in it")

// Records hands on the log entries of a file one after another, each with memory of its own. See Splitter.
func Records(r io.Reader, name string, yield func(Record, error)) {
	s := NewSplitter(r, name)
	for {
		var b Batch // a new one each time: who takes a record may keep it
		if !s.Next(&b) {
			return
		}
		for _, it := range b.Items {
			yield(it.Record, it.Err)
		}
	}
}

// Item is a record, or what stands in the place of one and is none.
type Item struct {
	Record
	Err error
}

// Batch is a run of items. The records lie in the batch's memory: they are good until it is filled anew.
type Batch struct {
	Items []Item
	buf   []byte
}

const (
	batchBytes = 256 << 10
	batchItems = 1024
	// maxKept is the largest memory that a batch keeps when it is filled anew.
	maxKept = 1 << 20
)

// Splitter reads log entries one after another: an array, one object per line, or objects side by side; what gcloud
// logging read writes. It needs no more memory than its largest entry. A faulty entry is reported with its place and the
// rest is read on: from the next value of the array, else from the next entry that begins a line. An array without an
// entry is the answer of a log that has none, and no fault.
//
// It finds where objects begin and end, and knows of JSON what that takes; whether an object is sound its reader says.
type Splitter struct {
	r    io.Reader
	name string
	err  error // why nothing more can be read
	done bool  // and all of it is handed on

	batch *Batch
	buf   []byte
	// base is the place of buf[0] in the file, lineStart that of the present line.
	base, lineStart int64
	line            int
	// blank says that nothing but space stands on this line so far, indent is where it begins behind that.
	blank  bool
	indent int

	index, faults int
	// arrays counts those that are open around the entries; answered says that one was closed and none is open.
	arrays   int
	answered bool
	// told is the last line of which it is told that there is more than entries on it.
	told int

	// rest is what is left between two batches: the present object as far as it was read, and what is not gone through.
	rest    []byte
	scanned int // how much of it is

	// What the present object has shown. start is where it begins in buf.
	depth             int
	start             int
	inString, escaped bool
	startLine         int
	shared            bool // another one began on it
	// startColumn is the indent of that line.
	startColumn int
	// large says that the present object has outgrown what is read of it: it is passed over.
	large bool

	// skipped is how that begins which is no object and is passed over; nil when nothing is.
	skipped []byte
	listed  bool // it is a value of an array
	quoted  bool
	mark    int // how much of a byte order mark was read
}

// NewSplitter reads the entries of r, which is called name where places are named.
func NewSplitter(r io.Reader, name string) *Splitter {
	return &Splitter{r: r, name: name, line: 1, blank: true}
}

// Next fills a batch, and reports whether there was anything left to fill it with. It does not wait for more than one
// item to come.
func (s *Splitter) Next(b *Batch) bool {
	b.Items = b.Items[:0]
	if s.done {
		return false
	}
	if cap(b.buf) < batchBytes || cap(b.buf) > maxKept {
		b.buf = make([]byte, 0, batchBytes)
	}
	s.batch, s.buf, s.start = b, append(b.buf[:0], s.rest...), 0
	i := s.scanned
	for {
		if i = s.scan(i); len(b.Items) >= batchItems {
			break
		}
		if s.err != nil {
			s.end()
			s.done = true
			break
		}
		if len(b.Items) > 0 {
			break
		}
		i = s.read()
	}
	keep := i // what is left goes into the next batch
	if s.depth > 0 && !s.large {
		keep = s.start
	}
	if cap(s.rest) > maxKept {
		s.rest = nil
	}
	s.rest = append(s.rest[:0], s.buf[keep:]...)
	s.scanned = i - keep
	s.base += int64(keep)
	b.buf, s.batch, s.buf = s.buf, nil, nil
	return len(b.Items) > 0
}

// read takes what the file gives and returns where that begins. All that is there has been gone through.
func (s *Splitter) read() int {
	if !s.large && s.depth > 0 && len(s.buf)-s.start > events.MaxBytes {
		s.large = true
	}
	switch {
	case s.depth == 0 || s.large: // nothing of it is needed any more
		s.base += int64(len(s.buf))
		s.buf = s.buf[:0]
	case len(s.buf) == cap(s.buf):
		grown := make([]byte, len(s.buf), min(2*cap(s.buf), s.start+events.MaxBytes+batchBytes))
		copy(grown, s.buf)
		s.buf = grown
	}
	from := len(s.buf)
	n, err := s.r.Read(s.buf[from:cap(s.buf)])
	s.buf, s.err = s.buf[:from+n], err
	return from
}

// scan goes through the bytes from i on, until they end or the batch is full, and returns where it stopped.
func (s *Splitter) scan(i int) int {
	for i < len(s.buf) && len(s.batch.Items) < batchItems {
		switch {
		case s.depth > 0:
			i = s.inside(i)
		case s.skipped != nil:
			i = s.skip(i)
		default:
			i = s.outside(i)
		}
	}
	return i
}

func (s *Splitter) column(i int) int { return int(s.base + int64(i) - s.lineStart) }

func (s *Splitter) newline(i int) {
	s.line++
	s.lineStart = s.base + int64(i) + 1
	s.blank = true
}

// outside looks at the byte i for the beginning of an object.
func (s *Splitter) outside(i int) int {
	c := s.buf[i]
	if s.mark > 0 && c != byteOrderMark[s.mark] {
		s.pass(byteOrderMark[:s.mark]...) // it began like one
		return i
	}
	if c == '\n' {
		s.newline(i)
		return i + 1
	}
	if c == ' ' || c == '\t' || c == '\r' {
		return i + 1
	}
	if s.blank {
		s.blank, s.indent = false, s.column(i)
	}
	switch c {
	case '{':
		s.begin(i)
	case '[':
		s.arrays, s.answered = s.arrays+1, false
	case ']':
		s.answered = s.arrays == 1
		s.arrays = max(0, s.arrays-1)
	case ',':
	case byteOrderMark[s.mark]:
		s.mark = (s.mark + 1) % len(byteOrderMark)
	default:
		s.pass(c)
	}
	return i + 1
}

// byteOrderMark is what some editors put before the text; files put one behind the other have it in between.
var byteOrderMark = [...]byte{0xEF, 0xBB, 0xBF}

// pass begins to pass over what is no object, and begins so.
func (s *Splitter) pass(began ...byte) {
	s.listed, s.quoted, s.escaped, s.mark = s.arrays > 0, began[0] == '"', false, 0
	s.skipped = append(make([]byte, 0, shown), began...)
}

// shown is how much is kept of what is no object, to tell how it begins.
const shown = 200

// skip passes over what is no object: a value of an array, else the rest of the line.
func (s *Splitter) skip(i int) int {
	for ; i < len(s.buf); i++ {
		c := s.buf[i]
		if c == '\n' || s.listed && !s.quoted && (c == ',' || c == ']' || c == '{') {
			s.endSkip()
			return i
		}
		if len(s.skipped) < shown {
			s.skipped = append(s.skipped, c)
		}
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted && c == '\\':
			s.escaped = true
		case c == '"':
			s.quoted = !s.quoted
		}
	}
	return i
}

func (s *Splitter) endSkip() {
	what := strings.TrimRight(string(s.skipped), " \t\r")
	s.skipped = nil
	if s.listed || s.told != s.line {
		s.fault(Record{Line: s.line}, fmt.Errorf("%.40q is no JSON log entry%s", what, hint(what)))
	}
	s.told = s.line
}

// hint tells those who forgot the format what to do.
func hint(s string) string {
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "insertId:") {
		return ": this looks like YAML, read the log with --format=json"
	}
	return ""
}

func (s *Splitter) begin(i int) {
	s.index++
	s.start = i
	s.depth, s.inString, s.escaped, s.large = 1, false, false, false
	s.shared = s.startLine == s.line
	s.startLine, s.startColumn = s.line, s.indent
}

// structural are the bytes that mean something to inside.
var structural = [256]bool{'"': true, '\\': true, '{': true, '}': true, '\n': true}

// inside follows an object to its end. No string of JSON goes over a line, and no object of an entry begins a line further
// left than the line on which the entry begins: where one does, an entry is broken off.
func (s *Splitter) inside(i int) int {
	buf := s.buf
	if s.escaped && buf[i] != '\n' {
		s.escaped = false
		s.blank = false
		i++
	}
	for i < len(buf) {
		if s.blank {
			switch c := buf[i]; c {
			case ' ', '\t', '\r':
				i++
				continue
			case '\n':
			default:
				s.blank, s.indent = false, s.column(i)
				if c == '{' && s.indent <= s.startColumn {
					s.broken("it ends in the middle; the next entry begins on line " + strconv.Itoa(s.line))
					s.begin(i)
					return i + 1
				}
			}
		}
		c := buf[i]
		if !structural[c] {
			i++
			continue
		}
		switch {
		case c == '\n':
			s.inString, s.escaped = false, false
			s.newline(i)
		case s.inString && c == '\\':
			if i+1 == len(buf) {
				s.escaped = true
			} else if buf[i+1] != '\n' {
				i++
			}
		case c == '"':
			s.inString = !s.inString
		case s.inString:
		case c == '{':
			s.depth++
		case c == '}':
			s.depth--
			if s.depth == 0 {
				s.complete(i + 1)
				return i + 1
			}
		}
		i++
	}
	return i
}

// complete hands on the present object, which ends before the byte end.
func (s *Splitter) complete(end int) {
	if s.large || end-s.start > events.MaxBytes {
		s.broken(fmt.Sprintf("it is larger than the %d bytes that are read", events.MaxBytes))
		return
	}
	s.batch.Items = append(s.batch.Items, Item{Record: Record{Raw: s.buf[s.start:end:end], File: s.name, Line: s.startLine, Index: s.index, Shared: s.shared}})
}

func (s *Splitter) broken(why string) {
	s.depth = 0
	s.fault(Record{Line: s.startLine, Shared: s.shared}, errors.New("log entry: "+why))
}

func (s *Splitter) fault(r Record, err error) {
	s.faults++
	r.File, r.Index = s.name, s.index
	s.batch.Items = append(s.batch.Items, Item{r, fmt.Errorf("%s: %w", r.Where(), err)})
}

func (s *Splitter) end() {
	if s.mark > 0 {
		s.pass(byteOrderMark[:s.mark]...)
	}
	switch {
	case !errors.Is(s.err, io.EOF):
		s.fault(Record{Line: s.line}, s.err)
	case s.skipped != nil:
		s.endSkip()
	case s.depth > 0:
		s.broken("it is truncated")
	case s.index == 0 && s.faults == 0 && !s.answered:
		s.batch.Items = append(s.batch.Items, Item{Record{File: s.name}, fmt.Errorf("%s: %w", s.name, ErrEmpty)})
	}
}
