package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// bucket holds the policy file, and the clock of its reader.
type bucket struct {
	text  string
	err   error
	reads int
	now   time.Time
}

func (b *bucket) read(ctx context.Context, uri string) ([]byte, error) {
	b.reads++
	if uri != "gs://b/policy.yaml" {
		return nil, errors.New("no such object: " + uri)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return []byte(b.text), b.err
}

func (b *bucket) source(ceiling policy.Switches) *policy.Source {
	b.now = time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)
	return policy.NewSource("gs://b/policy.yaml", b.read, ceiling, func() time.Time { return b.now })
}

const (
	spotNight  = "policies: {night: {preset: spot}}"
	watchNight = "policies: {night: {preset: watch}}"
)

func TestSourceBelievesAFileForHalfAMinute(t *testing.T) {
	b := &bucket{text: spotNight}
	s := b.source(policy.Everything())
	first := s.For(t.Context(), "night")
	if first.Switches.Recreate != yes || first.Hash != events.ID("policy", spotNight) {
		t.Errorf("%+v", first)
	}
	b.text = watchNight
	for _, c := range []struct {
		after time.Duration
		reads int
		hash  string
	}{
		{29*time.Second + 999*time.Millisecond, 1, first.Hash},
		{time.Millisecond, 2, events.ID("policy", watchNight)},
		{29 * time.Second, 2, events.ID("policy", watchNight)},
		{time.Second, 3, events.ID("policy", watchNight)},
	} {
		b.now = b.now.Add(c.after)
		if p := s.For(t.Context(), "night"); p.Hash != c.hash || b.reads != c.reads {
			t.Errorf("%v later: hash %s after %d reads, want %s after %d", c.after, p.Hash, b.reads, c.hash, c.reads)
		}
	}
	if p := s.For(t.Context(), "night"); !p.Switches.WatchOnly() {
		t.Errorf("the file allows nothing any more, and: %+v", p.Switches)
	}
}

func TestSourceHoldsTheDeploymentsCeiling(t *testing.T) {
	b := &bucket{text: spotNight}
	s := b.source(policy.Switches{Restart: yes, StartStopped: yes})
	for _, label := range []string{"night", "spot"} {
		if p := s.For(t.Context(), label); p.Switches != (policy.Switches{Restart: yes}) {
			t.Errorf("%s: %+v", label, p.Switches)
		}
	}
}

func TestNothingIsDoneUnderAFileThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		b    bucket
		says string
	}{
		"the bucket is away":     {bucket{err: errors.New("503 backend error")}, "503 backend error"},
		"the file has faults":    {bucket{text: "policies: {night: {preset: spott}}"}, `preset "spott"`},
		"the file is no YAML":    {bucket{text: "policies: {"}, "policy file: line 1"},
		"it was sound before it": {bucket{text: spotNight}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.b
			s := b.source(policy.Everything())
			if c.b.text == spotNight {
				if p := s.For(t.Context(), "night"); p.Unreadable != "" {
					t.Fatal(p.Unreadable)
				}
				b.err, b.now = errors.New("gone"), b.now.Add(policy.Fresh)
			}
			for _, label := range []string{"night", "spot", ""} {
				p := s.For(t.Context(), label)
				if !strings.HasPrefix(p.Unreadable, "gs://b/policy.yaml: ") || !strings.Contains(p.Unreadable, c.says) {
					t.Errorf("unreadable because %q", p.Unreadable)
				}
				p.Unreadable = ""
				if d := cmp.Diff(policy.Policy{Name: label}, p); d != "" {
					t.Errorf("it still says something (-want +got):\n%s", d)
				}
			}
			reads := b.reads
			b.text, b.err = spotNight, nil
			if p := s.For(t.Context(), "night"); p.Unreadable == "" || b.reads != reads {
				t.Errorf("asked again within half a minute, %d reads", b.reads-reads)
			}
			b.now = b.now.Add(policy.Fresh)
			if p := s.For(t.Context(), "night"); p.Unreadable != "" || p.Switches.Recreate != yes {
				t.Errorf("the file is back, and: %+v", p)
			}
		})
	}
}

// TestWhatIsKeptOfAFaultyFileIsBounded has a file with more faults than a workload's document could hold.
func TestWhatIsKeptOfAFaultyFileIsBounded(t *testing.T) {
	b := &bucket{text: "policies: {a: {zones: [" + strings.Repeat("x,", 100_000) + "]}}"}
	if n := len(b.source(policy.Everything()).For(t.Context(), "a").Unreadable); n < 100 || n > 1100 {
		t.Errorf("%d bytes are kept", n)
	}
}

func TestACallerThatLeavesDoesNotSpoilTheNextOnesAnswer(t *testing.T) {
	b := &bucket{text: spotNight}
	s := b.source(policy.Everything())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if p := s.For(gone, "night"); p.Unreadable == "" {
		t.Errorf("the caller that left gets %+v", p)
	}
	if p := s.For(t.Context(), "night"); p.Unreadable != "" || p.Switches.Recreate != yes {
		t.Errorf("the next caller is told %+v", p)
	}
}

func TestWithoutAFileThereAreThePresetsAndNothingIsRead(t *testing.T) {
	s := policy.NewSource("", nil, policy.Switches{Recreate: yes}, nil)
	if p := s.For(t.Context(), "spot"); p.Switches != (policy.Switches{Recreate: yes}) || p.Unreadable != "" || p.Hash != "" {
		t.Errorf("%+v", p)
	}
	if p := s.For(t.Context(), "night"); !p.Unknown || !p.Switches.WatchOnly() {
		t.Errorf("%+v", p)
	}
}

func TestConfigTellsEveryFault(t *testing.T) {
	for name, c := range map[string]struct {
		config policy.Config
		faults []string
	}{
		"nothing":             {policy.Config{}, nil},
		"a bucket":            {policy.Config{URI: "gs://b/policy.yaml", Allow: "restart"}, nil},
		"a local file":        {policy.Config{URI: "file:///etc/policy.yaml", Allow: " restart , recreate "}, nil},
		"another scheme":      {policy.Config{URI: "https://b/policy.yaml"}, []string{"POLICY_URI is neither gs:// nor file://: https://b/policy.yaml"}},
		"both of them faulty": {policy.Config{URI: "policy.yaml", Allow: "fly"}, []string{`allow: ["fly"] is no switch`, "POLICY_URI is neither"}},
	} {
		err := c.config.Validate()
		if (err == nil) != (c.faults == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, fault := range c.faults {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v does not tell %q", name, err, fault)
			}
		}
	}
}

func TestConfigMakesASourceUnderItsCeiling(t *testing.T) {
	b := &bucket{text: spotNight}
	for allow, want := range map[string]policy.Switches{
		"": {}, "recreate,start_stopped": {Recreate: yes}, "recreate,fly": {},
	} {
		s := policy.Config{URI: "gs://b/policy.yaml", Allow: allow}.Source(b.read)
		if p := s.For(t.Context(), "night"); p.Switches != want || p.Unreadable != "" {
			t.Errorf("allow %q: %+v", allow, p)
		}
	}
}
