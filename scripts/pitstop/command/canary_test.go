package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/ledger"
)

// sink brings a canary back to the ledger once it has been slept for so often.
type sink struct {
	b      *bench
	sleeps int
	err    error

	id      string
	written time.Time
}

func (s *sink) WriteCanary(_ context.Context, _, id string, at time.Time) error {
	s.id, s.written = id, at
	return s.err
}

func TestACanaryTellsHowLongEachStageTook(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deployedWith(t, open)
		now := noon
		s := &sink{b: b}
		b.canary = s
		b.now = func() time.Time { return now }
		b.sleep = func(ctx context.Context, d time.Duration) error {
			now = now.Add(d)
			if s.sleeps++; s.sleeps == 4 {
				way := ledger.Way{Written: s.written, Received: s.written.Add(300 * time.Millisecond), Published: s.written.Add(1500 * time.Millisecond)}
				_, err := b.ledger.CanaryReturned(ctx, "tpus", s.id, way, s.written.Add(3500*time.Millisecond))
				return err
			}
			return nil
		}
		got, err := b.call("canary", "--watched", "tpus")
		if err != nil {
			t.Fatal(err)
		}
		wants(t, got, "0.300 s  from its own time to Cloud Logging's", "1.200 s  from there to the topic", "2.000 s  from there to the ledger", "0.500 s  from there to here",
			"3.500 s  in all")

		s.sleeps = 10
		got, err = b.call("canary", "--watched", "tpus", "--json", "--for", "30s")
		var f flown
		if !errors.Is(err, errFailed) || json.Unmarshal([]byte(got), &f) != nil || f.Back || f.ID != s.id || f.Project != "tpus" {
			t.Errorf("one that does not come back: %v, %s", err, got)
		}
		if got, err = b.call("canary", "--watched", "tpus", "--for", "30s"); !errors.Is(err, errFailed) || !strings.Contains(got, "has not come back within 30s: look at the sink") {
			t.Errorf("%v: %s", err, got)
		}
		b.refused([]string{"canary", "--for", "0s"}, "more than nothing")
		s.err = errors.New("write the canary of demo: HTTP status 403: Permission denied")
		if _, err = b.call("canary"); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("one that may not be written: %v", err)
		}
	})
}
