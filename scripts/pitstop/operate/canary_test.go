package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func TestACanaryTellsHowLongEachStageTook(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.New(t, open)
		now := deploymenttest.Noon
		s := &deploymenttest.CanarySink{B: b}
		b.Canary = s
		b.Now = func() time.Time { return now }
		b.Sleep = func(ctx context.Context, d time.Duration) error {
			now = now.Add(d)
			if s.Sleeps++; s.Sleeps == 4 {
				way := ledger.Way{Written: s.Written, Received: s.Written.Add(300 * time.Millisecond), Published: s.Written.Add(1500 * time.Millisecond)}
				_, err := b.Ledger.CanaryReturned(ctx, "tpus", s.ID, way, s.Written.Add(3500*time.Millisecond))
				return err
			}
			return nil
		}
		got, err := b.Call("canary", "--watched", "tpus")
		if err != nil {
			t.Fatal(err)
		}
		deploymenttest.WantText(t, got, "0.300 s  from its timestamp until Cloud Logging received it", "1.200 s  from there through the sink to the topic", "2.000 s  from there through the function logevent to the ledger", "0.500 s  from there to this machine",
			"3.500 s  in total")

		s.Sleeps = 10
		got, err = b.Call("canary", "--watched", "tpus", "--json", "--for", "30s")
		var f canaryFlight
		if !errors.Is(err, cli.ErrFailed) || json.Unmarshal([]byte(got), &f) != nil || f.Back || f.ID != s.ID || f.Project != "tpus" {
			t.Errorf("one that does not come back: %v, %s", err, got)
		}
		if got, err = b.Call("canary", "--watched", "tpus", "--for", "30s"); !errors.Is(err, cli.ErrFailed) || !strings.Contains(got, "has not come back within 30s: check the sink") {
			t.Errorf("%v: %s", err, got)
		}
		b.Refused([]string{"canary", "--for", "0s"}, "more than 0")
		s.Err = errors.New("write the canary of demo: HTTP status 403: Permission denied")
		if _, err = b.Call("canary"); err == nil || !strings.Contains(err.Error(), "403") {
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
			b := deploymenttest.New(t, ledgertest.NewStore().Open)
			s := &deploymenttest.CanarySink{B: b, Err: errors.New("as far as this")}
			b.Canary = s
			if c.watched != nil {
				if err := b.Ledger.SaveSettings(t.Context(), ledger.Settings{Watched: c.watched}); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"canary"}, c.args...)
			if c.refused != "" {
				if b.Refused(args, c.refused); s.Project != "" {
					t.Errorf("it was written into %s", s.Project)
				}
				return
			}
			if _, err := b.Call(args...); !errors.Is(err, s.Err) || s.Project != c.flies {
				t.Errorf("it was written into %q, want %q: %v", s.Project, c.flies, err)
			}
		})
	}
}
