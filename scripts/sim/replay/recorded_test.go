package replay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/view"
)

// crewSaid is an entry of the crew of llama, at a clock time of one day.
func crewSaid(clock, report string, attempt, step int, more string) logfile.Record {
	at := "2026-11-12T" + clock + "Z"
	return logfile.Record{File: "own", Raw: fmt.Appendf(nil, `{"logName":"projects/mine/logs/pitstop-crew","insertId":"%[1]s-%[2]s","timestamp":"%[2]s",`+
		`"receiveTimestamp":"%[2]s","resource":{"type":"gce_instance","labels":{"project_id":"mine","zone":"us-west4-a"}},"jsonPayload":{"schema":1,`+
		`"report":"%[1]s","zone":"us-west4-a","node":"llama","worker":0,"workers":4,"attempt":%[3]d,"step":%[4]d%[5]s}}`, report, at, attempt, step, more)}
}

// preempted is an entry that says that llama was lost.
func preempted(clock string) logfile.Record {
	at := "2026-11-12T" + clock + "Z"
	return logfile.Record{File: "own", Raw: fmt.Appendf(nil, `{"logName":"projects/mine/logs/cloudaudit.googleapis.com%%2Fsystem_event","insertId":"p%[1]s",`+
		`"timestamp":"%[1]s","receiveTimestamp":"%[1]s","protoPayload":{"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/llama"}}`, at)}
}

// guessed plays somebody's own entries under the preset spot.
func guessed(t *testing.T, records []logfile.Record, crew world.Crew) *world.Story {
	t.Helper()
	s, err := replay.Guess(t.Context(), records, replay.Given{Policy: "spot", Crew: crew})
	must(t, err)
	story, err := replay.Run(t.Context(), "own", s, records, replay.Options{})
	if err != nil || len(story.Faults) > 0 || len(story.Open) > 0 {
		t.Fatalf("%v, faults %v, %d open", err, story.Faults, len(story.Open))
	}
	return story
}

// outcomes are how the incidents of a story ended.
func outcomes(s *world.Story) (all []string) {
	for _, r := range s.Ended {
		all = append(all, string(r.Cause)+" "+string(r.Outcome)+" "+string(r.Code))
	}
	return all
}

// TestOwnEntriesLookNoRosierThanTheirScenario plays the entries of each recorded crash as somebody's own: nothing but the entries says
// what happened, and the incident may not end better, or sooner, than in the scenario that they were recorded in.
func TestOwnEntriesLookNoRosierThanTheirScenario(t *testing.T) {
	for _, name := range []string{"crash-loop", "crash-loop-changing"} {
		r, err := replay.Load(filepath.Join("..", "..", "..", "events", "testdata", name))
		must(t, err)
		whole, err := replay.Run(t.Context(), name, r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy}})
		must(t, err)
		own := guessed(t, r.Records, world.CrewAsRecorded)
		if own.Ended[0].Outcome != view.Escalated || whole.Ended[0].Outcome != view.Escalated {
			t.Errorf("%s: the entries end %v, their scenario %v", name, outcomes(own), outcomes(whole))
		}
		if name == "crash-loop" && own.Ended[0].Cost.Away() < whole.Ended[0].Cost.Away() {
			t.Errorf("%s: away %v by the entries, %v by their scenario", name, own.Ended[0].Cost.Away(), whole.Ended[0].Cost.Away())
		}
	}
}

// TestWhatACrewDoesWhereTheRecordIsSilent has a crash and a preemption as last words, under each assumption.
func TestWhatACrewDoesWhereTheRecordIsSilent(t *testing.T) {
	crash := []logfile.Record{crewSaid("02:00:00", "progress", 1, 100, ""), crewSaid("02:04:00", "exited", 1, 110, `,"exit_code":1,"restarts_left":4`)}
	loss := []logfile.Record{preempted("02:00:00")}
	for _, c := range []struct {
		records []logfile.Record
		crew    world.Crew
		ends    string
		assumed string
	}{
		{crash, world.CrewAsRecorded, "training_crash escalated same_error", "a crew whose further attempts end like attempt 1, the last one in the logs"},
		{crash, world.CrewFails, "training_crash escalated same_error", "a crew whose further attempts end like attempt 1"},
		{crash, world.CrewRecovers, "training_crash resumed ", "a crew that trains after its last line in the logs"},
		{crash, world.CrewNone, "training_crash escalated budget", "no crew after its last line in the logs"},
		{loss, world.CrewAsRecorded, "preemption resumed ", "a crew that trains after a loss"},
		{loss, world.CrewRecovers, "preemption resumed ", "a crew that trains after a loss"},
		{loss, world.CrewFails, "preemption escalated same_error", "a crew whose attempts after a loss end with exit code 1"},
		{loss, world.CrewNone, "preemption resumed ", "no crew: the training starts with the machine and reports nothing"},
	} {
		story := guessed(t, c.records, c.crew)
		if got := outcomes(story); !slices.Equal(got, []string{c.ends}) {
			t.Errorf("crew %q: %q, want %q", c.crew, got, c.ends)
		}
		if !slices.ContainsFunc(story.Lines, func(l world.Line) bool { return l.Kind == world.Assumed && strings.Contains(l.Text, c.assumed) }) {
			t.Errorf("crew %q: %q is not among the assumptions", c.crew, c.assumed)
		}
	}
}

// TestTheRecordedAttemptsAreThoseOfTheReplay: an attempt that the record shows begins when the record says, and how it went counts.
func TestTheRecordedAttemptsAreThoseOfTheReplay(t *testing.T) {
	record := []logfile.Record{
		crewSaid("02:00:00", "progress", 3, 1000, `,"checkpoint_step":750`), crewSaid("02:05:00", "exited", 3, 1030, `,"exit_code":1,"restarts_left":4`),
		crewSaid("02:20:00", "started", 4, 750, ""), crewSaid("02:30:00", "progress", 4, 860, `,"checkpoint_step":750`),
		crewSaid("02:50:00", "progress", 4, 1080, `,"checkpoint_step":750`),
	}
	story := guessed(t, record, world.CrewAsRecorded)
	if got := outcomes(story); len(got) == 0 || got[0] != "training_crash resumed " {
		t.Fatalf("it ended %q", got)
	}
	// Between its lines at 02:30 and 02:50 the record passes the step at which it failed.
	if at := story.Ended[0].Closed; at.Before(time.Date(2026, 11, 12, 2, 30, 0, 0, time.UTC)) {
		t.Errorf("training goes on at %v", at)
	}
	for _, l := range story.Lines {
		if l.Simulated && l.Kind == world.Entry && strings.Contains(l.Text, "attempt 4 runs") {
			t.Errorf("the simulated crew begins attempt 4 as well: %s", l.Text)
		}
	}
	if first := story.Ended[0]; first.Cost.Away() < 19*time.Minute || first.Cost.ChipHours < first.Cost.Away().Hours()*15.9 {
		t.Errorf("away %v, %.1f chip-hours", first.Cost.Away(), first.Cost.ChipHours)
	}
}

// TestAnInterruptedReplayTellsWhatItKnows: the story is there as far as it came, with what is still open.
func TestAnInterruptedReplayTellsWhatItKnows(t *testing.T) {
	records := []logfile.Record{preempted("02:00:00"), preempted("12:00:00"), preempted("23:00:00")}
	s, err := replay.Guess(t.Context(), records, replay.Given{Policy: "spot"})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var shown []string
	var last replay.Passage
	story, err := replay.Run(ctx, "own", s, records, replay.Options{
		Options: world.Options{Hooks: world.Hooks{Ended: func(r world.Result, lines []world.Line) {
			shown = append(shown, r.ID)
			if end := lines[len(lines)-1]; end.Kind != world.End || end.Incident != r.ID {
				t.Errorf("the last line of %s is %+v", r.ID, end)
			}
		}}},
		Passed: func(p replay.Passage) {
			if p.Now.After(time.Date(2026, 11, 12, 12, 0, 30, 0, time.UTC)) {
				stop()
			}
			last = p
		},
	})
	stop()
	if !errors.Is(err, context.Canceled) || story == nil {
		t.Fatalf("%v, %v", story, err)
	}
	if story.Stopped.IsZero() || story.Played != 2 || story.Entries != 3 || len(story.Ended) != 1 || len(story.Open) != 1 {
		t.Errorf("stopped at %v: %d of %d entries, %d ended, %d open", story.Stopped, story.Played, story.Entries, len(story.Ended), len(story.Open))
	}
	if !slices.Equal(shown, []string{story.Ended[0].ID}) || last.Incidents != 1 || last.Share() < 0.4 || last.Share() > 0.6 {
		t.Errorf("shown %v, at last %+v", shown, last)
	}
}

// TestFleetFilesTakesBothForms: gcloud's lists, together, and one YAML file alone.
func TestFleetFilesTakesBothForms(t *testing.T) {
	const yaml = "project: p\ncapacity: {z: 3}\nfleet:\n  - {name: n, zone: z, accelerator: v5litepod-16, policy: own, crew: {restarts: 2}}\n"
	file := func(name, text string) replay.File { return replay.File{Name: name, Data: []byte(text)} }
	for name, c := range map[string]struct {
		files    []replay.File
		slices   int
		capacity int
		assumed  int
	}{
		"lists":   {[]replay.File{file("a", "["+aNode+"]"), file("b", " \n["+aQueue+","+someNodes+"]")}, 3, -1, 2},
		"YAML":    {[]replay.File{file("a", yaml)}, 1, 3, 0},
		"nothing": {[]replay.File{file("a", "[]")}, 0, 0, 0},
	} {
		s, err := replay.FleetFiles(c.files)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		whole, assumed := s.Provided()
		if len(s.Fleet) != c.slices || whole.Capacity["z"] != c.capacity || len(assumed) != c.assumed || c.slices > 0 && s.Project != "p" {
			t.Errorf("%s: %d slices of %q, capacity %v, assumed %q", name, len(s.Fleet), s.Project, whole.Capacity, assumed)
		}
	}
	for says, files := range map[string][]replay.File{
		"b: it is of project q, and a file before is of project p": {file("a", "["+aNode+"]"), file("b", "["+strings.ReplaceAll(aNode, "projects/p", "projects/q")+"]")},
		"a: it lists TPUs of the projects p and q":                 {file("a", "["+aNode+","+strings.ReplaceAll(aLegacy, "projects/p", "projects/q")+"]")},
		"a YAML fleet stands alone":                                {file("a", "["+aNode+"]"), file("b", yaml)},
		"a: it is neither a JSON list":                             {file("a", `{"name": "n"}`)},
		"a: it names no slice":                                     {file("a", "project: p\n")},
	} {
		if _, err := replay.FleetFiles(files); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
	}
}

// TestOwnEntriesWithTheFleetOfTheirScenario: what a YAML fleet says of the training is what happens, as in the scenario itself.
func TestOwnEntriesWithTheFleetOfTheirScenario(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "events", "testdata", "crash-loop")
	r, err := replay.Load(dir)
	must(t, err)
	raw, err := os.ReadFile(filepath.Join(dir, "scenario.yaml"))
	must(t, err)
	there, err := replay.FleetFiles([]replay.File{{Name: "scenario.yaml", Data: raw}})
	must(t, err)
	s, err := replay.Guess(t.Context(), r.Records, replay.Given{World: there, Policy: "night"})
	must(t, err)
	own, err := replay.Run(t.Context(), "own", s, r.Records, replay.Options{Options: world.Options{Policy: r.Policy}})
	must(t, err)
	whole, err := replay.Run(t.Context(), "own", r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy}})
	must(t, err)
	if !slices.Equal(outcomes(own), outcomes(whole)) || own.Ended[0].Cost.Away() != whole.Ended[0].Cost.Away() {
		t.Errorf("%v in %v, and by the scenario %v in %v", outcomes(own), own.Ended[0].Cost.Away(), outcomes(whole), whole.Ended[0].Cost.Away())
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
