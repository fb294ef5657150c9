package policy

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// Source reads the policy file when it is asked and keeps it for Fresh. It is safe for concurrent use.
type Source struct {
	uri     string
	read    func(ctx context.Context, uri string) ([]byte, error)
	ceiling Switches
	now     func() time.Time

	mu     sync.Mutex
	file   *File
	raw    []byte
	failed string
	until  time.Time
}

// Fresh is how long Pitstop relies on a policy file before it reads it again.
const Fresh = 30 * time.Second

// NewSource makes a source that reads uri; without one there are the presets alone. The ceiling is what the deployment
// allows.
func NewSource(uri string, read func(ctx context.Context, uri string) ([]byte, error), ceiling Switches, now func() time.Time) *Source {
	return &Source{uri: uri, read: read, ceiling: ceiling, now: now}
}

// For is the policy that holds for a workload with this label now. It never fails: a file that cannot be read makes a
// policy that says so, under which nothing is done.
func (s *Source) For(ctx context.Context, label string) Policy {
	if s.uri == "" {
		return (*File)(nil).For(label, s.ceiling)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.now().Before(s.until) {
		s.reload(ctx)
	}
	if s.failed != "" {
		return Policy{Name: label, Unreadable: s.failed}
	}
	return s.file.For(label, s.ceiling)
}

func (s *Source) reload(ctx context.Context) {
	data, err := s.read(ctx, s.uri)
	f := s.file
	if err == nil && (f == nil || !bytes.Equal(data, s.raw)) {
		f, err = Parse(data)
	}
	s.file, s.raw, s.failed, s.until = f, data, "", s.now().Add(Fresh)
	if err == nil {
		return
	}
	// It is kept with every workload that waits for the file, so it may not be as long as the file has faults.
	s.failed = fmt.Sprintf("%s: %.1000s", s.uri, err.Error())
	if ctx.Err() != nil {
		s.until = time.Time{} // the caller left; the next one reads
	}
}
