package lab

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/world"
)

// TestALongNameIsCutInItsMiddle: the row stays one line, and the figures stay whole.
func TestALongNameIsCutInItsMiddle(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var out bytes.Buffer
	s := summary{rows: []summaryRow{
		{workload: "mine/a-name-that-is-far-too-long-for-a-row-of-a-table", cause: "training crash", end: "escalated", outcome: "escalated", still: true, away: 59*time.Minute + 59*time.Second, chips: 12345.6, opened: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)},
		{workload: "mine/b", cause: "preemption", end: "not ended", opened: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)},
	}}
	newStoryPrinter(&out, false).table(&s)
	got := strings.Split(out.String(), "\n")
	for _, line := range got {
		if terminal.Columns(line) > 80 {
			t.Errorf("%d columns: %q", terminal.Columns(line), line)
		}
	}
	if !strings.HasPrefix(got[1], "2025-12-31 23:00  a-na…able  training") || !strings.HasSuffix(got[1], "escalated  >= 59 m 59 s   >= 12,345") || !strings.HasSuffix(got[2], "not ended             -           -") {
		t.Errorf("the rows are\n%s", out.String())
	}
}

// ticking is a clock that goes on by so much each time that somebody reads it, and calls then.
func ticking(by time.Duration, read func(times int)) func() time.Time {
	now, n := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	return func() time.Time {
		n++
		read(n)
		now = now.Add(by)
		return now
	}
}

// TestReplaySaysHowFarItIs: a line now and then, with what is left, where there is no terminal.
func TestReplaySaysHowFarItIs(t *testing.T) {
	var out, errOut bytes.Buffer
	o := replayOptions{policy: "spot", now: ticking(time.Second, func(int) {})}
	if err := replayRecords(t.Context(), []string{entriestest.Write(t, "entries.json", entriestest.Preempted("2"))}, o, nil, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(errOut.String()), "\n")
	if len(said) < 5 {
		t.Fatalf("it said\n%s", errOut.String())
	}
	i := slices.IndexFunc(said, func(line string) bool { return strings.HasSuffix(line, " left") })
	if i < 0 {
		t.Fatalf("no line says how much is left:\n%s", errOut.String())
	}
	for _, want := range []string{"pitstop: 0 of 1 entries · ", " hours · ", "0 incidents"} {
		if !strings.Contains(said[i], want) {
			t.Errorf("%q is not in %q", want, said[i])
		}
	}
}

// TestAnInterruptedReplayPrintsWhatItKnows, and says where it was.
func TestAnInterruptedReplayPrintsWhatItKnows(t *testing.T) {
	later := strings.NewReplacer(entriestest.At, "2026-11-13T02:14:06Z", `"insertId":"i`, `"insertId":"j`).Replace(entriestest.Preempted("2"))
	entries := entriestest.Write(t, "entries.json", entriestest.Preempted("2")+"\n"+later+"\n")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errOut bytes.Buffer
	o := replayOptions{policy: "spot", now: ticking(time.Second, func(int) {
		if strings.Contains(out.String(), "RESUMED") {
			stop() // the first incident has been printed, though the replay goes on
		}
	})}
	err := replayRecords(ctx, []string{entries}, o, nil, &out, &errOut)
	if !errors.Is(err, cli.ErrInterrupted) || !strings.Contains(errOut.String(), "pitstop: interrupted at 2026-11-12 02:") || !strings.Contains(errOut.String(), "after 1 of 2 entries") {
		t.Errorf("%v, stderr %q", err, errOut.String())
	}
	if !strings.Contains(out.String(), "1 incident: 1 resumed") {
		t.Errorf("the table is not there:\n%s", out.String())
	}
	stop()
	for _, what := range []string{"looked through for TPUs", "put in order"} {
		ctx, stop := context.WithCancel(t.Context())
		var out, errOut bytes.Buffer
		o := replayOptions{policy: "spot", now: ticking(time.Minute, func(int) {
			if strings.Contains(errOut.String(), what) {
				stop()
			}
		})}
		err := replayRecords(ctx, []string{entriestest.Write(t, "entries.json", strings.Repeat(entriestest.Preempted("2")+"\n", 5))}, o, nil, &out, &errOut)
		told := strings.Split(strings.TrimSpace(errOut.String()), "\n")
		if last := told[len(told)-1]; !errors.Is(err, cli.ErrInterrupted) || last != "pitstop: interrupted after 5 entries were read; none was played" || out.String() != "" {
			t.Errorf("while entries are %s: %v, stdout %q, stderr %q", what, err, out.String(), errOut.String())
		}
		if n := strings.Count(errOut.String(), what); n > 2 {
			t.Errorf("of 5 entries %d were %s after the interruption", n, what)
		}
		stop()
	}
}

// TestAnInterruptedSimulationPrintsWhatItKnows, and ends with 130.
func TestAnInterruptedSimulationPrintsWhatItKnows(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := SimulateOptions{Seed: 4, Seeds: 2, Days: 40, Slices: 2, Faults: "none", now: ticking(20*time.Millisecond, func(n int) {
		if n == 600 {
			stop()
		}
	})}
	var out, errOut bytes.Buffer
	err := simulate(ctx, o, &out, &errOut)
	if !errors.Is(err, cli.ErrInterrupted) || !strings.Contains(errOut.String(), "pitstop: interrupted: of ") || !strings.Contains(out.String(), "incidents by cause") {
		t.Errorf("%v, stderr %q\n%s", err, errOut.String(), out.String())
	}
	if line, _, _ := strings.Cut(errOut.String(), "\n"); !strings.Contains(line, " of 80 simulated days · ") || !strings.Contains(line, " days/s · ") || !strings.Contains(line, " left") {
		t.Errorf("it said %q", line)
	}
}

// TestAComparedReplaySaysHowFarItIs, in the same words.
func TestAComparedReplaySaysHowFarItIs(t *testing.T) {
	var out, errOut bytes.Buffer
	o := replayOptions{policy: "spot", comparing: comparing{trail: true}, now: ticking(time.Second, func(int) {})}
	if err := replayRecords(t.Context(), []string{entriestest.Write(t, "entries.json", entriestest.Preempted("2"))}, o, nil, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^pitstop: 0 of 1 entries · .* hours · .* left$`).MatchString(errOut.String()) {
		t.Errorf("it said\n%s", errOut.String())
	}
}

// TestAnInterruptedLongerRunLeavesTheCompleteOne before it: the report is of that, and says so.
func TestAnInterruptedLongerRunLeavesTheCompleteOne(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates days")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errOut bytes.Buffer
	o := SimulateOptions{Seed: 4, Seeds: 1, Days: 0.2, Slices: 2, least: 1000, Faults: "none", asJSON: true}
	o.now = ticking(time.Second, func(int) {
		if strings.Contains(errOut.String(), " of 0.6 simulated days") {
			stop()
		}
	})
	err := simulate(ctx, o, &out, &errOut)
	const says = "pitstop: interrupted in a longer run, which --incidents asks for; the report covers the last complete one, of 0.2 days\n"
	if !errors.Is(err, cli.ErrInterrupted) || !strings.Contains(out.String(), `"days":0.2,`) || !strings.HasSuffix(errOut.String(), says) {
		t.Errorf("%v, stderr %q\n%s", err, errOut.String(), out.String())
	}
}

// TestASimulationSaysHowFarItIs: within a day, and in the longer runs that --incidents asks for, whose days come on top.
func TestASimulationSaysHowFarItIs(t *testing.T) {
	o := SimulateOptions{Seed: 4, Seeds: 1, Days: 0.2, Slices: 2, least: 2, Faults: "none", asJSON: true}
	o.now = ticking(time.Second, func(int) {})
	var out, errOut bytes.Buffer
	if err := simulate(t.Context(), o, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pitstop: 0.0", " of 0.2 simulated days · ", " of 0.6 simulated days · ", " left"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q is not said in\n%s", want, errOut.String())
		}
	}
}

// TestRecordedIncidentsStandInTheOrderOfTheirPaths: a comparison plays them side by side with another build, which has that order.
func TestRecordedIncidentsStandInTheOrderOfTheirPaths(t *testing.T) {
	names, err := recordedNames(filepath.Join("..", "..", ".."))
	byPath := func(a, b string) int { return strings.Compare(a+"/", b+"/") }
	if err != nil || len(names) < 40 || !slices.IsSortedFunc(names, byPath) {
		t.Errorf("%v, %v", names, err)
	}
}

func TestSimulateCountsOneAsOne(t *testing.T) {
	for _, c := range []struct {
		days   float64
		slices int
		want   string
	}{{1, 1, "seed 7 · 1 day of 1 slice · faults none\n"}, {0.5, 2, "seed 7 · 0.5 days of 2 slices · faults none\n"}} {
		var out strings.Builder
		one := sim.Simulation{World: world.Scenario{Fleet: make([]world.SliceConfig, c.slices)}}
		simulationPrinter{newStoryPrinter(&out, false)}.result(&oracle.Result{Seed: 7, Seeds: 1, Days: c.days}, one, "faults none", 0)
		if !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%s\ndoes not begin with %s", out.String(), c.want)
		}
	}
}

func TestMain(m *testing.M) {
	// Lines without end: the tests of texts look for sentences.
	if err := os.Setenv("COLUMNS", "10000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestMoreEntriesThanAreHeldAreOneFault: an entry from which nothing follows takes no room.
func TestMoreEntriesThanAreHeldAreOneFault(t *testing.T) {
	h := held{played: maxEntries - 1, ignored: maxIgnored - 1}
	file := entriestest.Write(t, "entries.json", strings.Repeat(entriestest.Preempted("2")+"\n"+`{"logName":"projects/mine/logs/syslog"}`+"\n", 4))
	next, end := entries.Batches(file, nil, nil)
	defer end()
	for b := new(logfile.Batch); next(b); {
		for _, it := range b.Items {
			h.hold(it.Read())
		}
	}
	if len(h.records) != 2 || h.played != maxEntries || h.left != 3 || h.ignored != maxIgnored+3 {
		t.Errorf("%d held, %d played, %d left out, %d ignored", len(h.records), h.played, h.left, h.ignored)
	}
	var errOut bytes.Buffer
	h.ErrOut = &errOut
	h.leftOut()
	const want = "pitstop: more than 1,000,000 entries to play: the last 3 are left out; replay takes fewer at a time, report takes any number\n" +
		"pitstop: nothing follows from 10,003 entries: replay does not list the last 3 of them\n"
	if errOut.String() != want || h.N != 1 {
		t.Errorf("%d faults, stderr = %q, want %q", h.N, errOut.String(), want)
	}
}
