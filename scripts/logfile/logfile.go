// Package logfile reads log entries out of files, one after another, whatever lies between them.
package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// ErrUnusable is wrapped by the error of a file of which no entry can be read: it is missing, or it holds something else.
var ErrUnusable = errors.New("the file cannot be used")

// Unusable marks an error as one of a whole file, and leaves its text as it is.
func Unusable(err error) error { return unusable{err} }

type unusable struct{ error }

func (u unusable) Unwrap() []error { return []error{u.error, ErrUnusable} }

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

// Item is a record, or the error of text that is no record.
type Item struct {
	Record
	Err error
}

// Reading is a record and what it says, or why that is not known.
type Reading struct {
	Record
	Entry events.Entry
	Err   error
}

// Read understands an item. What is neither a log entry nor a message beside them is an error, with its place.
func (it Item) Read() Reading {
	r := Reading{Record: it.Record, Err: it.Err}
	if r.Err != nil {
		return r
	}
	switch r.Entry, r.Err = events.Read(r.Raw); {
	case r.Err == nil && r.Entry.Kind == events.KindForeign && !r.Entry.PubSub:
		r.Err = errors.New(r.Entry.Ignored)
		fallthrough
	case r.Err != nil:
		r.Err = fmt.Errorf("%s: %w", r.Where(), r.Err)
	}
	return r
}

// Happened is when an entry says that it happened. It is zero where the entry has nothing but the time at which Cloud Logging got it:
// that may be later than what happened next.
func (r Reading) Happened() time.Time {
	if r.Err != nil || r.Entry.Time.Equal(r.Entry.Received) {
		return time.Time{}
	}
	return r.Entry.Time
}

// Batch is a run of items. The records lie in the batch's memory: they are valid until it is filled again.
type Batch struct {
	Items []Item
	buf   []byte
	place place
}

const (
	batchBytes = 256 << 10
	batchItems = 1024
	// maxKept is the largest memory that a batch keeps when it is filled again.
	maxKept = 1 << 20
)

// Splitter reads log entries one after another: an array, one object per line, objects side by side, or answers of the API's
// entries.list, {"entries": [...], "nextPageToken": "..."}. The first three are what gcloud logging read writes. It needs no more
// memory than its largest entry.
//
// A faulty entry is reported with its place, and reading goes on: from the next value of the array, else from the next entry that
// begins a line. Lines in a row that hold no entry are one fault. An array without an entry is the answer of a log that has none,
// and no fault. A file that begins as YAML or CSV is one fault, and the rest of it is not read.
//
// It finds where objects begin and end, and knows only as much JSON as that needs. The reader of an object checks the rest.
type Splitter struct {
	r    io.Reader
	name string
	err  error // why nothing more can be read
	done bool  // and all of it is handed on

	batch *Batch
	buf   []byte
	// rest is the text left between two batches: the beginning of the present object, and the text that is not scanned yet.
	rest    []byte
	scanned int // how much of it is

	state
}

// state is what a splitter knows of the text before the one that it scans.
type state struct {
	// base is the place of buf[0] in the file, lineStart that of the present line.
	base, lineStart int64
	line            int
	// blank says that this line holds only space so far; indent is the column of its first other character.
	blank  bool
	indent int

	index, faults int
	// arrays counts those that are open around the entries; answered says that one was closed and none is open.
	arrays   int
	answered bool
	// answers holds the depth of each open array that belongs to an answer of entries.list. In the tail of such an answer only its
	// page token and its closing brace are left.
	answers []int
	tail    bool
	// told is the last line with a reported value of an array: the rest of that line is not reported again.
	told int

	// What the present object has shown, and of a string also what stands outside of objects. start is where it begins in buf.
	depth             int
	start             int
	inString, escaped bool
	startLine         int
	shared            bool // another one began on it
	// startColumn is the indent of that line.
	startColumn int
	// undecided says that the object may still be an answer of entries.list; lineBefore is where the object before it began.
	undecided  bool
	lineBefore int
	// large says that the present object is larger than any that is read: it is passed over.
	large bool

	// skipped is the beginning of the text that is passed over because it is no object; nil when nothing is.
	skipped []byte
	listed  bool // it is a value of an array
	mark    int  // how much of a byte order mark was read
	// stray is the first of several lines in a row that hold no entry, strayLine its number, and strayMore counts the others.
	stray                string
	strayLine, strayMore int
	// foreign says that the file is of another format: nothing more is read of it.
	foreign bool
}

// NewSplitter reads the entries of r, which is called name where places are named.
func NewSplitter(r io.Reader, name string) *Splitter {
	return &Splitter{r: r, name: name, state: state{line: 1, blank: true}}
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
		b.place = place{state: s.state, scanned: i}
		if i = s.scan(i); len(b.Items) >= batchItems {
			break
		}
		if s.foreign {
			s.done = true
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
	b.place.size = keep
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
	for i < len(s.buf) && len(s.batch.Items) < batchItems && !s.foreign {
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
	if s.tail && s.inTail(c) {
		return i + 1
	}
	switch c {
	case '{':
		s.endStray(nil)
		s.begin(i)
	case '[':
		s.endStray(nil)
		s.arrays, s.answered = s.arrays+1, false
	case ']':
		if last := len(s.answers) - 1; last >= 0 && s.answers[last] == s.arrays {
			s.answers, s.tail, s.inString, s.escaped = s.answers[:last], true, false, false
		}
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

// inTail takes a byte of what follows the entries of an answer, and reports whether it can stand there.
func (s *Splitter) inTail(c byte) bool {
	switch {
	case s.inText(c), c == ',', c == ':':
		return true
	case c == '}':
		s.tail = false
		return true
	}
	s.tail = false
	return false
}

// inText takes a byte of what stands outside of objects, and reports whether it belongs to a string.
func (s *Splitter) inText(c byte) bool {
	switch within := s.inString; {
	case s.escaped:
		s.escaped = false
		return true
	case within && c == '\\':
		s.escaped = true
		return true
	case c == '"':
		s.inString = !within
		return true
	default:
		return within
	}
}

// byteOrderMark is what some editors put before the text. Files that were joined have it in the middle.
var byteOrderMark = [...]byte{0xEF, 0xBB, 0xBF}

// pass begins to pass over text that is no object and begins with these bytes.
func (s *Splitter) pass(began ...byte) {
	s.listed, s.inString, s.escaped, s.mark = s.arrays > 0, began[0] == '"', false, 0
	s.skipped = append(make([]byte, 0, shown), began...)
}

// shown is how much text that is no object is kept, to print its beginning.
const shown = 200

// skip passes over text that is no object: a value of an array, else the rest of the line.
func (s *Splitter) skip(i int) int {
	for ; i < len(s.buf); i++ {
		c := s.buf[i]
		if c == '\n' || s.listed && !s.inString && (c == ',' || c == ']' || c == '{') {
			s.endSkip()
			return i
		}
		if len(s.skipped) < shown {
			s.skipped = append(s.skipped, c)
		}
		s.inText(c)
	}
	return i
}

func (s *Splitter) endSkip() {
	text := strings.TrimRight(string(s.skipped), " \t\r")
	s.skipped = nil
	switch {
	case s.listed:
		s.told = s.line
		s.fault(Record{Line: s.line}, fmt.Errorf("%.40q is no JSON log entry", text))
	case s.told == s.line:
	case s.strayLine > 0:
		s.strayMore++
	case s.index == 0 && s.faults == 0 && otherFormat(text) != "":
		s.foreign = true
		s.fault(Record{Line: s.line}, Unusable(fmt.Errorf("%.40q is %s: read the log again with gcloud logging read --format=json", text, otherFormat(text))))
	default:
		s.stray, s.strayLine, s.strayMore = text, s.line, 0
	}
}

// The fields of an entry, and the columns of a table of entries, with which a file of another format begins: gcloud logging read wrote a
// document or a field of an entry without --format=json, and the pages of Google's console write tables.
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
const fieldNames = "apphub|errorGroups|httpRequest|insertId|jsonPayload|labels|logName|metadata|operation|protoPayload|" +
	"receiveTimestamp|resource|severity|sourceLocation|spanId|split|textPayload|timestamp|trace|traceSampled"

var (
	yamlStart = regexp.MustCompile("^(---|(- )?(" + fieldNames + "):( |$))")
	csvStart  = regexp.MustCompile(`^"?(` + fieldNames + `|[a-z]+(_[a-z]+)+)"?(\.[\w.]+)?,`)
)

// otherFormat names the format of a file that begins with this line; empty is none that is known.
func otherFormat(line string) string {
	switch {
	case yamlStart.MatchString(line):
		return "YAML"
	case csvStart.MatchString(line):
		return "CSV"
	}
	return ""
}

// endStray reports the lines before this one that hold no entry. It takes what to make of their error; nil leaves it as it is.
func (s *Splitter) endStray(as func(error) error) {
	if s.strayLine == 0 {
		return
	}
	err := fmt.Errorf("%.40q is no JSON log entry%s", s.stray, alike(s.strayMore))
	if as != nil {
		err = as(err)
	}
	line := s.strayLine
	s.stray, s.strayLine, s.strayMore = "", 0, 0
	s.fault(Record{Line: line}, err)
}

// alike says of so many more lines that they are no entries either.
func alike(more int) string {
	switch more {
	case 0:
		return ""
	case 1:
		return ", nor is the line after it"
	}
	return fmt.Sprintf(", nor are the %d lines after it", more)
}

func (s *Splitter) begin(i int) {
	s.index++
	s.start = i
	s.depth, s.inString, s.escaped, s.large = 1, false, false, false
	s.shared = s.startLine == s.line
	s.lineBefore, s.startLine, s.startColumn = s.startLine, s.line, s.indent
	s.undecided = len(s.answers) < mostAnswers
}

const (
	// mostAnswers is how many answers of entries.list may stand in one another: none does in truth.
	mostAnswers = 8
	// longestHead bounds how an answer may begin, which holds the page token.
	longestHead = 4 << 10
)

// answerHead is the length of the beginning of an answer of entries.list: up to its list of entries, which may follow the page token,
// or up to its end where it has a page token alone. It is 0 for everything else; short says that more bytes may still make it one.
func answerHead(b []byte) (length int, short bool) {
	h := head{rest: b}
	h.word("{")
	if h.word(`"nextPageToken"`) {
		switch {
		case !h.word(":") || !h.text():
			return 0, h.short
		case h.word("}"):
			return len(b) - len(h.rest), false
		case !h.word(","):
			return 0, h.short
		}
	}
	if h.word(`"entries"`) && h.word(":") && h.word("[") {
		return len(b) - len(h.rest), false
	}
	return 0, h.short
}

// head is the beginning of an object, read word by word.
type head struct {
	rest  []byte
	short bool // it ended in the middle of a word that was asked for
}

// word takes a word, and the space before it, and reports whether it was there.
func (h *head) word(w string) bool {
	rest := bytes.TrimLeft(h.rest, " \t\r\n")
	if bytes.HasPrefix(rest, []byte(w)) {
		h.rest = rest[len(w):]
		return true
	}
	h.short = h.short || strings.HasPrefix(w, string(rest[:min(len(rest), len(w))]))
	return false
}

// text takes a string.
func (h *head) text() bool {
	if !h.word(`"`) {
		return false
	}
	for i := 0; i < len(h.rest); i++ {
		switch h.rest[i] {
		case '\\':
			i++
		case '\n':
			return false
		case '"':
			h.rest = h.rest[i+1:]
			return true
		}
	}
	h.short = true
	return false
}

// decide finds out whether the present object is an answer of entries.list, and returns where to go on in that case. Otherwise it
// is an entry, or wait says that more has to be read first.
func (s *Splitter) decide() (next int, answer, wait bool) {
	begins := s.buf[s.start:min(len(s.buf), s.start+longestHead)]
	length, short := answerHead(begins)
	if length == 0 {
		s.undecided = short && s.err == nil && len(begins) < longestHead
		return 0, false, s.undecided
	}
	next = s.start + length
	for i := s.start; i < next; i++ {
		switch c := s.buf[i]; {
		case c == '\n':
			s.newline(i)
		case s.blank && c != ' ' && c != '\t' && c != '\r':
			s.blank, s.indent = false, s.column(i)
		}
	}
	s.undecided, s.depth = false, 0
	s.index, s.startLine = s.index-1, s.lineBefore
	if s.buf[next-1] == '}' { // a page on which nothing was found
		s.answered = s.arrays == 0
		return next, true, false
	}
	s.arrays, s.answered = s.arrays+1, false
	s.answers = append(slices.Clip(s.answers), s.arrays) // a place has those of its own
	return next, true, false
}

// mostOfLine is how much of a line is looked at in one go: a line may be as long as the file.
const mostOfLine = 8 << 10

// inside follows an object to its end. No string of JSON goes over a line, and no object of an entry begins a line further
// left than the line on which the entry begins: where one does, an entry is broken off.
func (s *Splitter) inside(i int) int {
	if s.undecided {
		next, answer, wait := s.decide()
		switch {
		case wait:
			return len(s.buf)
		case answer:
			return next
		}
		i = s.start + 1
	}
	for i < len(s.buf) {
		line := s.buf[i:min(len(s.buf), i+mostOfLine)]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
		}
		if end < 0 || bytes.IndexByte(line, '{') >= 0 || bytes.IndexByte(line, '}') >= 0 { // another whole line changes nothing
			if at := len(line) - len(bytes.TrimLeft(line, " \t\r")); s.blank && at < len(line) {
				i, line = i+at, line[at:]
				s.blank, s.indent = false, s.column(i)
				if line[0] == '{' && s.indent <= s.startColumn {
					s.broken("it ends in the middle; the next entry begins on line " + strconv.Itoa(s.line))
					s.begin(i)
					return i + 1
				}
			}
			n := s.braces(line)
			if i += n; s.depth == 0 {
				s.complete(i)
				return i
			}
		} else {
			i += end
		}
		if end >= 0 {
			s.inString, s.escaped = false, false
			s.newline(i)
			i++
		}
	}
	return i
}

// braces counts the depth along a part of a line, up to the end of the present object, and returns how long that is.
func (s *Splitter) braces(line []byte) int {
	for i := 0; i < len(line); i++ {
		if s.inString {
			i += s.toQuote(line[i:])
			continue
		}
		switch line[i] {
		case '"':
			s.inString = true
		case '{':
			s.depth++
		case '}':
			if s.depth--; s.depth == 0 {
				return i + 1
			}
		}
	}
	return len(line)
}

// toQuote goes to the next quote in a string, which ends it unless it is escaped, and returns how far that is.
func (s *Splitter) toQuote(text []byte) int {
	n := bytes.IndexByte(text, '"')
	closed := n >= 0
	if !closed {
		n = len(text)
	}
	slashes := 0
	for slashes < n && text[n-1-slashes] == '\\' {
		slashes++
	}
	s.escaped = (slashes%2 == 1) != (s.escaped && slashes == n)
	if closed {
		s.inString, s.escaped = s.escaped, false
	}
	return n
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
	if s.skipped != nil {
		s.endSkip()
	}
	if s.index == 0 && s.faults == 0 {
		s.endStray(Unusable)
	}
	s.endStray(nil)
	switch {
	case !errors.Is(s.err, io.EOF) && s.index == 0:
		s.fault(Record{Line: s.line}, Unusable(s.err))
	case !errors.Is(s.err, io.EOF):
		s.fault(Record{Line: s.line}, fmt.Errorf("the rest cannot be read: %w", s.err))
	case s.depth > 0:
		s.broken("it is truncated")
	case s.index == 0 && s.faults == 0 && !s.answered:
		s.batch.Items = append(s.batch.Items, Item{Record{File: s.name}, fmt.Errorf("%s: %w", s.name, Unusable(ErrEmpty))})
	}
}
