//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/scripts/pitcrew/report"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/shared/checkpoint"
)

// closed is a storage in which nothing can be written.
type closed struct {
	checkpoint.Store
	kind error
}

func (s *closed) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	if s.kind != nil {
		return 0, &checkpoint.Error{Op: "put", URI: uri, Kind: s.kind, Text: "injected"}
	}
	return s.Store.Put(ctx, uri, content, generation)
}

// deciding is a crew whose leader decides on the end of attempts, with a clock of its own.
type deciding struct {
	*crew
	t     *testing.T
	now   time.Time
	store *closed
	said  []string
}

func decidingCrew(t *testing.T) *deciding {
	t.Helper()
	d := &deciding{crew: crewOf(t, 1), t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	d.store = &closed{Store: d.Store}
	d.Store, d.board.Store = d.store, d.store
	d.clock = func() time.Time { return d.now }
	d.State = t.TempDir()
	d.Say = func(format string, args ...any) { d.said = append(d.said, fmt.Sprintf(format, args...)) }
	send := func(context.Context, report.Line) error { return nil }
	var err error
	d.spool, err = report.Open(filepath.Join(d.State, "reports.jsonl"), "host", send)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// end has the leader decide that nothing follows attempt n.
func (d *deciding) end(n int, finished bool) {
	d.leader.Memory.Handled = n
	v := agree.Verdict{CrewVerdict: events.CrewVerdict{
		Schema: events.Schema, Attempt: n, Life: d.admission(), Finished: finished, Ended: d.now, Reason: "why",
	}}
	d.happened(d.now, agree.Event{Attempt: n, Ended: &agree.Cause{}, Verdict: &v, Finished: finished, GaveUp: !finished})
	d.remember()
}

// pass goes on for so long, takes what came back, and has the loop look.
func (d *deciding) pass(span time.Duration) {
	d.now = d.now.Add(span)
	d.wake = d.now.Add(time.Hour)
	for len(d.running) > 0 {
		(<-d.do)()
	}
	d.writeVerdict(d.now)
	d.putGuest(d.now)
	for len(d.running) > 0 {
		(<-d.do)()
	}
	d.writeVerdict(d.now)
}

// lines are the reports that are kept, handled the attempt whose end is written down.
func (d *deciding) lines() string {
	raw, err := os.ReadFile(filepath.Join(d.State, "reports.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(raw)
}

func (d *deciding) handled() int {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.State, memoryFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		d.t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscanf(string(raw[strings.Index(string(raw), `"handled":`):]), `"handled":%d`, &n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

func TestTheEndIsReportedAfterItsVerdict(t *testing.T) {
	for _, finished := range []bool{true, false} {
		d := decidingCrew(t)
		d.store.kind = checkpoint.ErrTransient
		d.end(1, finished)
		for range 5 {
			d.pass(time.Second)
			if d.lines() != "" || d.handled() != 0 || d.concluded(d.now) || len(d.said) > 0 {
				t.Fatalf("before the verdict is written: %q, %d handled, %q", d.lines(), d.handled(), d.said)
			}
		}
		d.store.kind = nil
		d.pass(time.Second)
		want := `"report":"finished"`
		if !finished {
			want = `"report":"gave_up"`
		}
		if strings.Count(d.lines(), want) != 1 || d.handled() != 1 || !d.concluded(d.now) {
			t.Errorf("%q, %d handled", d.lines(), d.handled())
		}
		v, err := checkpoint.ReadVerdict(t.Context(), d.Store, d.Directory, 1)
		if err != nil || v.Finished != finished || v.Life != d.admission() {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// TestTheFirstVerdictHolds: a crew that was killed after it had written one decides again, and may decide otherwise.
func TestTheFirstVerdictHolds(t *testing.T) {
	d := decidingCrew(t)
	d.end(1, true)
	d.pass(0)
	d.last = nil
	d.end(1, false)
	d.pass(time.Second)
	v, err := checkpoint.ReadVerdict(t.Context(), d.Store, d.Directory, 1)
	if err != nil || !v.Finished || !d.last.reported || d.said[0] != "finished: attempt 1 ended with exit code 0" {
		t.Errorf("%+v, %v, %q", v, err, d.said)
	}
}

func TestABucketThatIsAwayDoesNotSilenceTheEnd(t *testing.T) {
	for name, kind := range map[string]error{"away": checkpoint.ErrTransient, "forbidden": checkpoint.ErrPermission} {
		d := decidingCrew(t)
		d.store.kind = kind
		d.end(3, true)
		for range 59 {
			d.pass(time.Second)
		}
		if d.lines() != "" || d.wake.After(d.now.Add(time.Second)) {
			t.Errorf("%s: %q, wakes at %v", name, d.lines(), d.wake)
		}
		for range 5 {
			d.pass(time.Second)
		}
		uri := d.Directory + "/pitstop-crew/attempt-000003/verdict.json"
		want := "the verdict on attempt 3 could not be written to " + uri + " within 1m0s"
		if len(d.said) != 2 || !strings.HasPrefix(d.said[1], "finished: ") || !strings.HasPrefix(d.said[0], want) || !strings.Contains(d.said[0], "injected") {
			t.Errorf("%s: %q", name, d.said)
		}
		if strings.Count(d.lines(), `"report":"finished"`) != 1 || d.handled() != 3 || !d.concluded(d.now) {
			t.Errorf("%s: %q, %d handled", name, d.lines(), d.handled())
		}
	}
}

func TestTheGuestAttributeHasTheVerdictUntilAnotherAttemptStarts(t *testing.T) {
	d := decidingCrew(t)
	s := metadatatest.New("demo", "us-west4-a", "t1v-n-bbbbbbbb-w-0", func() time.Time { return d.now })
	host, stop := s.Start()
	defer stop()
	d.Metadata = metadata.New(host)
	d.status.Phase = agree.Ended
	verdict := func() *events.CrewVerdict {
		t.Helper()
		value, refused := s.Guest(events.GuestNamespace, events.GuestKey)
		state, err := events.DecodeCrewState([]byte(value))
		if err != nil || refused > 0 {
			t.Fatalf("%q, %v, %d refused", value, err, refused)
		}
		return state.Verdict
	}
	d.pass(0) // the first beat
	d.pass(10 * time.Second)
	d.end(1, false)
	if d.pass(0); verdict() == nil || !verdict().GaveUp() || verdict().Attempt != 1 || !d.concluded(d.now) {
		t.Fatalf("it waits for the next beat: %+v", verdict())
	}
	d.pass(d.Times.Beat)
	if verdict() == nil {
		t.Fatal("the next beat forgot it")
	}
	d.forgetEnd()
	if d.pass(d.Times.Beat); verdict() != nil {
		t.Errorf("another attempt runs: %+v", verdict())
	}
	// Many verdicts in a row stay within half of what the server takes.
	for n := range 60 {
		d.end(n+2, false)
		d.pass(time.Second)
	}
	verdict()
	d.pass(time.Minute)
	if v := verdict(); v == nil || v.Attempt != 61 {
		t.Errorf("the last one is not shown: %+v", v)
	}
}

// TestAnotherAttemptDoesNotWaitForAVerdict: Pitstop names one while the bucket takes nothing.
func TestAnotherAttemptDoesNotWaitForAVerdict(t *testing.T) {
	d := decidingCrew(t)
	d.store.kind = checkpoint.ErrTransient
	d.end(1, false)
	d.pass(time.Second)
	d.plan = agree.Plan{Attempt: 2, Run: true}
	d.Command = []string{"no-such-command-here"}
	d.start(d.now)
	d.remember()
	if strings.Count(d.lines(), `"report":"gave_up"`) != 1 || d.handled() != 1 || d.last != nil {
		t.Errorf("%q, %d handled", d.lines(), d.handled())
	}
}

func TestASignalCountsForAQuarterOfAnHour(t *testing.T) {
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		want bool
	}{
		{time.Time{}, false},
		{ended, true},
		{ended.Add(-15 * time.Minute), true},
		{ended.Add(-15*time.Minute - time.Second), false},
	} {
		if got := signalled(restart.Exit{Ended: ended, SignalAt: c.at}); got != c.want {
			t.Errorf("%v: %v", c.at, got)
		}
	}
}

func TestTheLastStepIsThePrimarysToReach(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		step, saved int64
		savedAt     time.Time
		slice       int
		exit        restart.Exit
		done, short bool
	}{
		"reached":                               {step: 10, saved: -1, done: true},
		"before it":                             {step: 9, saved: -1, short: true},
		"a checkpoint of this attempt":          {step: 9, saved: 10, savedAt: began.Add(time.Minute), done: true},
		"a checkpoint of another training":      {step: 9, saved: 10, savedAt: began.Add(-time.Minute), short: true},
		"only the step that it resumed from":    {step: -1, saved: 10, savedAt: began.Add(-time.Minute), done: true},
		"where it resumed from is no last step": {step: -1, saved: 9, savedAt: began.Add(-time.Minute)},
		"nothing is known":                      {step: -1, saved: -1},
		"it failed":                             {step: 10, saved: -1, exit: restart.Exit{Code: 1}},
		"another slice":                         {step: 9, saved: -1, slice: 1},
	} {
		d := decidingCrew(t)
		last := int64(10)
		d.DoneAt, d.step.n, d.Machine.Slice = &last, c.step, c.slice
		if c.saved >= 0 {
			d.found = checkpoint.Found{Step: c.saved, URI: "file:///x", At: c.savedAt}
		}
		c.exit.Began = began
		if done, short := d.reached(c.exit); done != c.done || short != c.short {
			t.Errorf("%s: done %v, short %v", name, done, short)
		}
	}
	d := decidingCrew(t)
	if done, short := d.reached(restart.Exit{}); done || short {
		t.Error("without the flag")
	}
}
