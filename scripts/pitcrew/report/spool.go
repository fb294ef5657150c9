// Package report carries what a crew has to say to Cloud Logging. What cannot be sent is kept on disk, within a bound, and
// sent later with the time at which it was said; to say something never waits for anybody.
package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/state"
)

// Line is one report: ID names it, so that one that was sent twice counts once.
type Line struct {
	ID     string            `json:"id"`
	At     time.Time         `json:"at"`
	Report events.CrewReport `json:"report"`
	// written is the line as it stands in the file.
	written []byte
}

// The bounds of what is kept.
const (
	MaxLines = 1000
	MaxBytes = 1 << 20
)

// ErrRefused says that a line will never be taken, however often it is sent.
var ErrRefused = errors.New("refused for good")

// Spool keeps lines in their order until they are sent. It is safe for concurrent use.
type Spool struct {
	path string
	id   string
	send func(ctx context.Context, l Line) error
	// Retry is the first wait after a failure; it doubles up to sixty times that.
	Retry time.Duration
	// Fail is told of the first failure of a row, and of its end with nil.
	Fail func(error)

	mu    sync.Mutex
	lines []Line
	n     int
	wake  chan struct{}
	empty chan struct{} // closed while there is nothing to send
}

// Open makes a spool in a file, with what an earlier crew left in it. Send may be nil: then nothing is kept.
func Open(path, id string, send func(context.Context, Line) error) (*Spool, error) {
	id += "/" + strconv.FormatInt(time.Now().UnixNano(), 10) // another crew's first line is another line
	s := &Spool{path: path, id: id, send: send, Retry: time.Second, Fail: func(error) {}, wake: make(chan struct{}, 1), empty: make(chan struct{})}
	f, err := state.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer f.Close() //nolint:errcheck // it was only read
		scan := bufio.NewScanner(f)
		scan.Buffer(nil, MaxBytes+1)
		for scan.Scan() {
			var l Line
			if json.Unmarshal(scan.Bytes(), &l) == nil && l.ID != "" {
				l.written = append(bytes.Clone(scan.Bytes()), '\n')
				s.lines = append(s.lines, l)
			}
		}
	}
	if len(s.lines) == 0 {
		close(s.empty)
	}
	return s, nil
}

// Add takes a report.
func (s *Spool) Add(at time.Time, r events.CrewReport) error {
	if s.send == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	r.Schema = events.Schema
	l := Line{ID: events.ID(s.id, strconv.FormatInt(at.UnixNano(), 10), strconv.Itoa(s.n)), At: at.UTC(), Report: r}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	l.written = append(raw, '\n')
	if len(s.lines) == 0 {
		s.empty = make(chan struct{})
	}
	s.lines = append(s.lines, l)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return s.store()
}

// store writes the lines down, as many as may be kept: progress goes first, because the next one says more.
func (s *Spool) store() error {
	var content []byte
	for {
		content = content[:0]
		for _, l := range s.lines {
			content = append(content, l.written...)
		}
		if len(s.lines) <= MaxLines && len(content) <= MaxBytes {
			break
		}
		// A tenth at once, so that a full spool is not rewritten for each line.
		for range len(s.lines)/10 + 1 {
			i := slices.IndexFunc(s.lines[:len(s.lines)-1], func(l Line) bool { return l.Report.Report == events.ReportProgress })
			s.lines = slices.Delete(s.lines, max(i, 0), max(i, 0)+1)
		}
	}
	if len(content) == 0 {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return state.Replace(s.path, content)
}

// Run sends until ctx ends.
func (s *Spool) Run(ctx context.Context) {
	if s.send == nil {
		return
	}
	wait, failed := s.Retry, false
	for {
		s.mu.Lock()
		var next *Line
		if len(s.lines) > 0 {
			next = &s.lines[0]
			l := *next
			next = &l
		}
		s.mu.Unlock()
		if next == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
			continue
		}
		call, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := s.send(call, *next)
		cancel()
		if err == nil {
			if failed {
				failed = false
				s.Fail(nil)
			}
			wait = s.Retry
			s.sent(next.ID)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, ErrRefused) {
			s.Fail(err)
			s.sent(next.ID) // it would keep back all that comes after it
			continue
		}
		if !failed {
			failed = true
			s.Fail(err)
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		wait = min(2*wait, 60*s.Retry)
	}
}

func (s *Spool) sent(id string) {
	s.mu.Lock()
	s.lines = slices.DeleteFunc(s.lines, func(l Line) bool { return l.ID == id })
	err := s.store()
	if len(s.lines) == 0 {
		close(s.empty)
	}
	s.mu.Unlock()
	if err != nil {
		s.Fail(err) // it is sent again by the next crew, under the same ID
	}
}

// Flush waits until everything is sent, or ctx ends.
func (s *Spool) Flush(ctx context.Context) error {
	if s.send == nil {
		return nil
	}
	s.mu.Lock()
	empty := s.empty
	s.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
