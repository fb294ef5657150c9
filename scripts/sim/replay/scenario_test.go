package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/view"
)

// recorded loads every recorded incident.
func recorded(t *testing.T) []replay.Recorded {
	t.Helper()
	dirs, err := filepath.Glob("../../../events/testdata/*/scenario.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recorded incidents: %v", err)
	}
	var all []replay.Recorded
	for _, d := range dirs {
		r, err := replay.Load(filepath.Dir(d))
		must(t, err)
		all = append(all, r)
	}
	return all
}

// longest are the recorded incidents that take as long to play as ten others.
var longest = []string{"night-without-room", "stockout-six-hours"}

// some is every recorded incident but the longest in full, and otherwise the first of every n. A short run has one of ten. Always are in
// each of them.
func some(t *testing.T, n int, always ...string) (chosen []replay.Recorded) {
	t.Helper()
	for i, r := range recorded(t) {
		if i%breadth.Every(breadth.Of(n, 10)) == 0 && !slices.Contains(longest, r.Name) || slices.Contains(always, r.Name) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

func run(t *testing.T, r replay.Recorded, opts world.Options) *world.Story {
	t.Helper()
	if opts.Policy == nil {
		opts.Policy = r.Policy
	}
	s, err := replay.Run(t.Context(), r.Name, r.Scenario, r.Records, replay.Options{Options: opts})
	must(t, err)
	ended(t, s)
	return s
}

// ended holds that nothing went wrong in a story, and that every incident came to its end.
func ended(t *testing.T, s *world.Story) {
	t.Helper()
	for _, f := range s.Faults {
		t.Error(f)
	}
	for _, o := range s.Open {
		t.Errorf("%s did not end: it waits in phase %s\n%s", o.ID, o.Phase, tail(s))
	}
}

// play is a recorded incident, played as it is, and what the functions logged meanwhile.
type play struct {
	story *world.Story
	log   []byte
	err   error
}

// plays has every incident played once, for all tests that look at that run.
var plays sync.Map // name -> func() play

// played plays a recorded incident as it is, or returns how it was played before.
func played(t *testing.T, r replay.Recorded) play {
	t.Helper()
	once, _ := plays.LoadOrStore(r.Name, sync.OnceValue(func() (p play) {
		var log bytes.Buffer
		// It outlives the test that happens to be the first.
		p.story, p.err = replay.Run(context.Background(), r.Name, r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy, Log: &log}})
		p.log = log.Bytes()
		return p
	}))
	f, ok := once.(func() play)
	if !ok {
		t.Fatalf("%T is no play", once)
	}
	p := f()
	if p.err != nil {
		t.Fatal(p.err)
	}
	ended(t, p.story)
	return p
}

// tail is the end of a story, for messages.
func tail(s *world.Story) string {
	var b strings.Builder
	for _, l := range s.Lines[max(0, len(s.Lines)-25):] {
		fmt.Fprintf(&b, "%s %-9s %-11s %-10s %s | %s\n", l.Time.Format("15:04:05"), l.Kind, l.Function, l.Phase, l.Text, l.Reason)
	}
	return b.String()
}

// ends is how the incidents of a story ended.
func ends(s *world.Story) []replay.WantIncident {
	var got []replay.WantIncident
	for _, r := range s.Ended {
		got = append(got, replay.WantIncident{
			Workload: r.Workload, Cause: string(r.Cause), Outcome: string(r.Outcome), ConfirmedBy: string(r.ConfirmedBy), Account: r.Cost.ChargedTo,
		})
	}
	return got
}

// TestRecordedIncidents plays every recorded incident as it is, and holds what came of it to the letter.
func TestRecordedIncidents(t *testing.T) {
	for _, r := range some(t, 1, longest...) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			s := played(t, r).story
			got := replay.Want{Incidents: ends(s), Calls: s.Calls, Requests: s.Requests}
			if d := cmp.Diff(r.Want, got); d != "" {
				t.Errorf("(-want +got):\n%s%s", d, tail(s))
			}
		})
	}
}

// TestEveryEndSurvives plays every recorded incident without the audit entries of our own operations, with every message
// delivered twice, and both: each ends as it does otherwise, and nothing more is asked of the cloud.
func TestEveryEndSurvives(t *testing.T) {
	for name, opts := range map[string]world.Options{
		"without our own audit entries": {NoOwnAudit: true},
		"every message twice":           {Duplicates: true},
		"both":                          {NoOwnAudit: true, Duplicates: true},
	} {
		rarely, always := 6, []string(nil)
		if name == "both" {
			rarely, always = 2, longest
		} else if testing.Short() {
			continue
		}
		for _, r := range some(t, rarely, always...) {
			t.Run(name+"/"+r.Name, func(t *testing.T) {
				t.Parallel()
				s := run(t, r, opts)
				if d := cmp.Diff(r.Want.Incidents, ends(s)); d != "" {
					t.Errorf("ends (-want +got):\n%s%s", d, tail(s))
				}
				// While there is no capacity it asks again and again: how often depends on when it learns of each refusal.
				want, got := maps.Clone(r.Want.Calls), maps.Clone(s.Calls)
				if n := want[create]; n > 50 && 2*got[create] >= n && got[create] <= 2*n {
					want[create], got[create] = 0, 0
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("calls (-want +got):\n%s%s", d, tail(s))
				}
			})
		}
	}
}

const create = "CreateNode"

// TestWatchedIncidents plays every recorded incident under the policy watch: nothing is asked of the cloud or of the
// training, and each incident ends observed with what would have been done.
func TestWatchedIncidents(t *testing.T) {
	for _, r := range some(t, 2) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			s := run(t, watched(r), world.Options{Policy: []byte("policies: {}\n")})
			if len(s.Calls) > 0 || len(s.Requests) > 0 {
				t.Errorf("calls %v, requests %v; want none\n%s", s.Calls, s.Requests, tail(s))
			}
			if len(s.Ended) == 0 && len(r.Want.Incidents) > 0 {
				t.Fatalf("no incident was observed\n%s", tail(s))
			}
			for _, e := range s.Ended {
				if e.Outcome != view.Observed || len(e.WouldHave()) == 0 {
					t.Errorf("%s ended %s, would have %q; want observed, with what would have been done\n%s", e.ID, e.Outcome, e.WouldHave(), tail(s))
				}
			}
		})
	}
}

func watched(r replay.Recorded) replay.Recorded {
	fleet := append([]world.SliceConfig(nil), r.Scenario.Fleet...)
	for i := range fleet {
		fleet[i].Policy = ""
	}
	r.Scenario.Fleet = fleet
	clusters := slices.Clone(r.Scenario.Clusters)
	for i := range clusters {
		clusters[i].Jobs = slices.Clone(clusters[i].Jobs)
		for j := range clusters[i].Jobs {
			clusters[i].Jobs[j].Policy = ""
		}
	}
	r.Scenario.Clusters = clusters
	return r
}

// TestLossInTheMiddle has Google take the slice back, without a word in any log, at every minute of every recorded
// incident: there is one incident, it ends, and on Spot that may be replaced training goes on.
func TestLossInTheMiddle(t *testing.T) {
	breadth.Again(t)
	minute := 0
	for _, r := range some(t, 1) {
		if len(r.Scenario.Fleet) == 0 || !r.Scenario.Fleet[0].Spot || r.Scenario.Fleet[0].Policy != "night" || r.Name == "budget-passed" {
			continue // another loss passes the budget, and waits for a person
		}
		plain := played(t, r).story
		if len(plain.Ended) != 1 {
			continue
		}
		opened, closed := plain.Ended[0].Opened, plain.Ended[0].Closed
		step := max(time.Minute, closed.Sub(opened).Truncate(time.Minute)/12)
		for at := opened.Truncate(time.Minute).Add(30 * time.Second); at.Before(closed); at = at.Add(step) {
			if minute++; minute%breadth.Every(7) != 0 { // 7, so that each incident has other minutes of its dozen
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", r.Name, at.Format("15:04:05")), func(t *testing.T) {
				t.Parallel()
				lossAt(t, r, at, plain.Ended[0].Outcome)
			})
		}
	}
}

func lossAt(t *testing.T, r replay.Recorded, at time.Time, usual view.Outcome) {
	t.Helper()
	r.Scenario.Acts = append(append([]world.Act(nil), r.Scenario.Acts...), world.Act{At: at, Preempt: r.Scenario.Fleet[0].Name})
	r.Scenario.Capacity = map[string]int{"us-west4-a": 2, "us-west4-b": 2}
	s := run(t, r, world.Options{})
	if len(s.Ended) == 0 {
		t.Fatal("no incident ended")
	}
	if n := len(s.Ended); n > 1 && s.Ended[0].Closed.After(s.Ended[1].Opened) {
		t.Errorf("%d incidents at once", n)
	}
	last := s.Ended[len(s.Ended)-1]
	if last.Outcome != view.Resumed && last.Outcome != usual {
		t.Errorf("ended %s (%s), want resumed or %s\n%s", last.Outcome, last.Incident.Reason, usual, tail(s))
	}
}

// TestRecordedEntriesAreSound reads every recorded entry loosely and holds that each has its place and its shape.
func TestRecordedEntriesAreSound(t *testing.T) {
	for _, r := range recorded(t) {
		if r.Scenario.Title == "" || r.Scenario.About == "" {
			t.Errorf("%s: title or about is missing", r.Name)
		}
		for _, rec := range r.Records {
			e, err := events.Read(rec.Raw)
			if err != nil || e.Ignored != "" || len(e.Missing) > 0 {
				t.Errorf("%s: ignored %q, missing %v, error %v", rec.Where(), e.Ignored, e.Missing, err)
			}
			if e.Time.IsZero() || e.Received.Before(e.Time) {
				t.Errorf("%s: happened %v, received %v", rec.Where(), e.Time, e.Received)
			}
			var shape struct {
				InsertID string `json:"insertId"`
				Resource struct {
					Type   string            `json:"type"`
					Labels map[string]string `json:"labels"`
				} `json:"resource"`
			}
			if err := json.Unmarshal(rec.Raw, &shape); err != nil || shape.InsertID == "" || shape.Resource.Type == "" || shape.Resource.Labels["project_id"] == "" {
				t.Errorf("%s: no insertId or resource: %+v, %v", rec.Where(), shape, err)
			}
		}
	}
}

// TestRealEntries plays the real entries that may stand beside the project: under watch what opens an incident ends
// observed, and under a policy that allows everything, resumed.
func TestRealEntries(t *testing.T) {
	breadth.Again(t)
	files, err := filepath.Glob("../../../../shared/samples/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("no real entries stand beside the project")
	}
	var records []logfile.Record
	for _, f := range files {
		in, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		logfile.Records(in, filepath.Base(f), func(r logfile.Record, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			records = append(records, r)
		})
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for label, want := range map[string]view.Outcome{"": view.Observed, "reserved": view.Resumed} {
		s, err := replay.Guess(t.Context(), records, replay.Given{Policy: label})
		if err != nil {
			t.Fatal(err)
		}
		story, err := replay.Run(t.Context(), "real", s, records, replay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(story.Ended) == 0 || len(story.Open) > 0 || len(story.Faults) > 0 {
			t.Errorf("policy %q: %d ended, %d open, faults %v", label, len(story.Ended), len(story.Open), story.Faults)
		}
		for _, e := range story.Ended {
			if e.Outcome != want {
				t.Errorf("policy %q: %s ended %s, want %s", label, e.ID, e.Outcome, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("project: demo\nfleet:\n  - {name: a, zone: us-west4-a, accelerator: v5litepod-16}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := world.Parse(data)
		if err == nil && s.Project == "" {
			t.Error("a scenario without a project was taken")
		}
	})
}
