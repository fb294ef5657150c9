// Package cloudlogtest is Cloud Logging's entries.list in one process: it finds the written entries, with filters, order and
// pages. It keeps everything in memory, takes the time from its caller, and fails on request. It refuses a question that it does
// not know, so that no test passes here that the real log would fail.
package cloudlogtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/logging/loggingtest"
)

// Log is the log of one project. It is safe for concurrent use.
type Log struct {
	project string
	now     func() time.Time

	mu      sync.Mutex
	entries []*entry
	filters []string
	faults  []Fault
}

// entry is one that was written, read when it is first asked for.
type entry struct {
	raw     []byte
	written time.Time
	fields  map[string]any
	at      time.Time
}

// Fault is an answer that comes instead of the right one. Without a code, the log was not searched to its end.
type Fault struct {
	// Code is the HTTP status, and Status its name.
	Code            int
	Status, Message string
	// After is how many entries were found, the first in the order that was asked for, when the search ended.
	After int
	// Times is how often it happens; once when zero.
	Times int
}

// Lag is how long after its writing an entry is found; real ones take 0.3 to 1.1 s. Keep is how long it stays: nobody asks here
// for older ones.
const (
	Lag  = 600 * time.Millisecond
	Keep = 24 * time.Hour
)

// New returns the log of a project, in which there is nothing yet.
func New(project string, now func() time.Time) *Log { return &Log{project: project, now: now} }

// Write adds an entry to the log, which finds it a moment later.
func (l *Log) Write(raw []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	old := 0
	for old < len(l.entries) && now.Sub(l.entries[old].written) > Keep {
		old++
	}
	l.entries = append(l.entries[old:], &entry{raw: raw, written: now})
}

// Fail makes the next question fail.
func (l *Log) Fail(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.Times = max(f.Times, 1)
	l.faults = append(l.faults, f)
}

// Filters returns the filters of the questions since the last time.
func (l *Log) Filters() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	filters := l.filters
	l.filters = nil
	return filters
}

// question is what entries.list takes.
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/list
type question struct {
	ResourceNames []string `json:"resourceNames"`
	Filter        string   `json:"filter"`
	OrderBy       string   `json:"orderBy"`
	PageSize      int      `json:"pageSize"`
	PageToken     string   `json:"pageToken"`
}

// refusal is an error as the API answers it.
type refusal struct {
	code            int
	status, message string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (l *Log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var out any
	answer, refused := l.serve(r.Method, r.URL.Path, body)
	out, code := answer, http.StatusOK
	if refused != nil {
		code = refused.code
		out = map[string]any{"error": map[string]any{"code": code, "message": refused.message, "status": refused.status}}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic("cloudlogtest: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_, _ = w.Write(raw) //nolint:errcheck // the caller sees that it is short
}

// Transport asks the log without a socket.
func (l *Log) Transport() http.RoundTripper { return transport{l} }

type transport struct{ log *Log }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	t.log.ServeHTTP(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, r.Body.Close()
}

func (l *Log) serve(method, path string, body []byte) (any, *refusal) {
	if method != http.MethodPost || path != "/v2/entries:list" {
		return nil, &refusal{http.StatusNotFound, "NOT_FOUND", "The requested URL " + path + " was not found on this server."}
	}
	var q question
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return nil, invalid("Invalid JSON payload received. %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filters = append(l.filters, q.Filter)
	if len(l.faults) > 0 {
		f := l.faults[0]
		if l.faults[0].Times--; f.Times == 1 {
			l.faults = l.faults[1:]
		}
		if f.Code != 0 {
			return nil, &refusal{f.Code, f.Status, f.Message}
		}
		if f.After == 0 {
			return map[string]any{"nextPageToken": "0"}, nil
		}
		q.PageSize = f.After
		answer, refused := l.list(q)
		if refused == nil {
			answer["nextPageToken"] = strconv.Itoa(f.After)
		}
		return answer, refused
	}
	if !slices.Equal(q.ResourceNames, []string{"projects/" + l.project}) {
		return nil, &refusal{http.StatusForbidden, "PERMISSION_DENIED", "The caller does not have permission"}
	}
	return l.list(q)
}

func (l *Log) list(q question) (map[string]any, *refusal) {
	if len(q.Filter) > events.MaxFilter {
		return nil, invalid("The filter has %d characters, and %d are the most", len(q.Filter), events.MaxFilter)
	}
	filter, err := loggingtest.Parse(q.Filter)
	if err != nil {
		return nil, invalid("Unparseable filter: %v", err)
	}
	if q.PageSize < 0 || q.PageSize > 1000 {
		return nil, invalid("page_size %d", q.PageSize)
	}
	if q.PageSize == 0 {
		q.PageSize = 50
	}
	from := 0
	if q.PageToken != "" {
		if from, err = strconv.Atoi(q.PageToken); err != nil || from < 0 {
			return nil, invalid("page_token %q", q.PageToken)
		}
	}
	var found []*entry
	now := l.now()
	for _, e := range l.entries {
		if now.Sub(e.written) < Lag {
			continue
		}
		if e.fields == nil {
			if err := e.read(); err != nil {
				panic("cloudlogtest: an entry that is none: " + err.Error())
			}
		}
		if !e.at.Before(filter.From) && filter.MatchesFields(e.fields) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *entry) int { return a.at.Compare(b.at) })
	switch q.OrderBy {
	case "", "timestamp asc":
	case "timestamp desc":
		slices.Reverse(found)
	default:
		return nil, invalid("order_by %q", q.OrderBy)
	}
	page := found[min(from, len(found)):min(from+q.PageSize, len(found))]
	answer := map[string]any{}
	if from+len(page) < len(found) {
		answer["nextPageToken"] = strconv.Itoa(from + len(page))
	}
	entries := []json.RawMessage{}
	for _, e := range page {
		entries = append(entries, e.raw)
	}
	answer["entries"] = entries
	return answer, nil
}

func (e *entry) read() error {
	if err := json.Unmarshal(e.raw, &e.fields); err != nil {
		return err
	}
	for _, name := range []string{"timestamp", "receiveTimestamp"} {
		if s, ok := e.fields[name].(string); ok {
			at, err := time.Parse(time.RFC3339Nano, s)
			if err == nil {
				e.at = at
			}
			return err
		}
	}
	e.at = e.written
	return nil
}
