package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

// sink brings a canary back to the ledger once it has been slept for so often.
type sink struct {
	b      *bench
	sleeps int
	err    error

	project, id string
	written     time.Time
}

func (s *sink) WriteCanary(_ context.Context, project, id string, at time.Time) error {
	s.project, s.id, s.written = project, id, at
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
		wants(t, got, "0.300 s  from its timestamp until Cloud Logging received it", "1.200 s  from there through the sink to the topic", "2.000 s  from there through the function logevent to the ledger", "0.500 s  from there to this machine",
			"3.500 s  in total")

		s.sleeps = 10
		got, err = b.call("canary", "--watched", "tpus", "--json", "--for", "30s")
		var f flown
		if !errors.Is(err, errFailed) || json.Unmarshal([]byte(got), &f) != nil || f.Back || f.ID != s.id || f.Project != "tpus" {
			t.Errorf("one that does not come back: %v, %s", err, got)
		}
		if got, err = b.call("canary", "--watched", "tpus", "--for", "30s"); !errors.Is(err, errFailed) || !strings.Contains(got, "has not come back within 30s: check the sink") {
			t.Errorf("%v: %s", err, got)
		}
		b.refused([]string{"canary", "--for", "0s"}, "more than 0")
		s.err = errors.New("write the canary of demo: HTTP status 403: Permission denied")
		if _, err = b.call("canary"); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("one that may not be written: %v", err)
		}
	})
}

// TestACanaryGoesToAWatchedProject: into whose log it is written is what the deployment says, unless the caller does.
func TestACanaryGoesToAWatchedProject(t *testing.T) {
	for name, c := range map[string]struct {
		watched []string
		args    []string
		flies   string
		refused string
	}{
		"nobody has said":          {nil, nil, "demo", ""},
		"its own among others":     {[]string{"tpus", "demo"}, nil, "demo", ""},
		"another alone":            {[]string{"tpus"}, nil, "tpus", ""},
		"several others":           {[]string{"tpus", "more"}, nil, "", "--watched is missing: the deployment does not watch demo; it watches tpus, more"},
		"one of several":           {[]string{"tpus", "more"}, []string{"--watched", "more"}, "more", ""},
		"one, and nobody has said": {nil, []string{"--watched", "tpus"}, "tpus", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployedWith(t, ledgertest.NewStore().Open)
			s := &sink{b: b, err: errors.New("as far as this")}
			b.canary = s
			if c.watched != nil {
				if err := b.ledger.SaveSettings(t.Context(), ledger.Settings{Watched: c.watched}); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"canary"}, c.args...)
			if c.refused != "" {
				if b.refused(args, c.refused); s.project != "" {
					t.Errorf("it was written into %s", s.project)
				}
				return
			}
			if _, err := b.call(args...); !errors.Is(err, s.err) || s.project != c.flies {
				t.Errorf("it was written into %q, want %q: %v", s.project, c.flies, err)
			}
		})
	}
}
