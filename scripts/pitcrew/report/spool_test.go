package report_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/report"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// line is where reports go: it fails as often as it is told to.
type line struct {
	mu    sync.Mutex
	fails int
	got   []report.Line
}

func (l *line) send(_ context.Context, r report.Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != 0 {
		l.fails--
		return errors.New("injected")
	}
	l.got = append(l.got, r)
	return nil
}

func (l *line) reports() (all []events.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.got {
		all = append(all, r.Report.Report)
	}
	return all
}

func open(t *testing.T, path string, l *line) *report.Spool {
	t.Helper()
	s, err := report.Open(path, "crew", l.send)
	if err != nil {
		t.Fatal(err)
	}
	s.Retry = time.Millisecond
	return s
}

func add(t *testing.T, s *report.Spool, kinds ...events.Report) {
	t.Helper()
	for i, k := range kinds {
		if err := s.Add(start.Add(time.Duration(i)*time.Second), events.CrewReport{Report: k, Step: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func flush(t *testing.T, s *report.Spool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go s.Run(ctx)
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBeSentIsSentLaterInOrderWithItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports")
	l := &line{fails: 5}
	s := open(t, path, l)
	add(t, s, events.ReportStarted, events.ReportExited, events.ReportStarted)
	flush(t, s)
	if got := l.reports(); !slices.Equal(got, []events.Report{events.ReportStarted, events.ReportExited, events.ReportStarted}) {
		t.Errorf("%v", got)
	}
	if l.got[2].At != start.Add(2*time.Second) || l.got[0].ID == l.got[2].ID || l.got[0].Report.Schema != events.Schema {
		t.Errorf("%+v", l.got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("what is sent is kept")
	}
}

// TestALineThatIsRefusedForGoodKeepsNothingBack: a crew that was without Cloud Logging for a month has lines that it does not
// take any more.
func TestALineThatIsRefusedForGoodKeepsNothingBack(t *testing.T) {
	var got []events.Report
	s, err := report.Open(filepath.Join(t.TempDir(), "reports.jsonl"), "crew", func(_ context.Context, l report.Line) error {
		if l.Report.Report == events.ReportStarted {
			return fmt.Errorf("cloud logging: %w: too old", report.ErrRefused)
		}
		got = append(got, l.Report.Report)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var failed []error
	s.Fail = func(err error) { failed = append(failed, err) }
	add(t, s, events.ReportStarted, events.ReportFinished)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	if err := s.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
	if !slices.Equal(got, []events.Report{events.ReportFinished}) || len(failed) != 1 || !errors.Is(failed[0], report.ErrRefused) {
		t.Errorf("%v, %v", got, failed)
	}
}

func TestTheNextCrewSendsWhatTheLastOneCouldNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports")
	add(t, open(t, path, &line{fails: -1}), events.ReportStarted, events.ReportGaveUp)
	l := &line{}
	s := open(t, path, l)
	add(t, s, events.ReportStarted)
	flush(t, s)
	if got := l.reports(); !slices.Equal(got, []events.Report{events.ReportStarted, events.ReportGaveUp, events.ReportStarted}) {
		t.Errorf("%v", got)
	}
}

func TestTheSpoolIsBoundedAndProgressGoesFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports")
	l := &line{fails: -1}
	s := open(t, path, l)
	add(t, s, events.ReportStarted)
	for i := range report.MaxLines + 200 {
		if err := s.Add(start, events.CrewReport{Report: events.ReportProgress, Step: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	add(t, s, events.ReportGaveUp)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := strings.Count(string(raw), "\n")
	if n > report.MaxLines || len(raw) > report.MaxBytes || n < report.MaxLines/2 {
		t.Errorf("%d lines, %d bytes", n, len(raw))
	}
	if !strings.Contains(string(raw), `"started"`) || !strings.Contains(string(raw), `"gave_up"`) {
		t.Error("what matters was dropped")
	}
	huge := strings.Repeat("x", 300_000)
	for range 10 {
		if err := s.Add(start, events.CrewReport{Report: events.ReportExited, Reason: huge}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > report.MaxBytes {
		t.Errorf("%v, %v", info, err)
	}
}

func TestABrokenSpoolIsReadAsFarAsItGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports")
	if err := os.WriteFile(path, []byte("nonsense\n{\"id\":\"a\",\"report\":{\"report\":\"started\"}}\n{\"id\":\"b\",\"rep"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &line{}
	flush(t, open(t, path, l))
	if got := l.reports(); !slices.Equal(got, []events.Report{events.ReportStarted}) {
		t.Errorf("%v", got)
	}
}

func TestWithoutAReaderNothingIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports")
	s, err := report.Open(path, "crew", nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, events.ReportStarted)
	if _, err := os.Stat(path); err == nil || s.Flush(t.Context()) != nil {
		t.Error("something is kept")
	}
}

func TestASpoolThatIsALinkIsNotFollowed(t *testing.T) {
	path, victim := filepath.Join(t.TempDir(), "reports"), filepath.Join(t.TempDir(), "victim")
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Open(path, "crew", (&line{}).send); err == nil || !strings.Contains(err.Error(), path+" is a link") {
		t.Error(err)
	}
}
