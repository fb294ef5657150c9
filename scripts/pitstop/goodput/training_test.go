package goodput_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
)

// told is an account of lines.
type told struct {
	*goodput.Account
	n int
}

func newTold() *told {
	return &told{Account: goodput.New(goodput.Who{}, 20*time.Minute)}
}

// says adds an entry about the node at a time.
func (a *told) says(at time.Time, e events.Entry) {
	a.n++
	e.ID, e.Time, e.Rank = "i"+strconv.Itoa(a.n), at, events.RankAudit
	e.Subject = events.Subject{Project: project, Zone: zone, Node: "n"}
	if e.Crew != nil {
		e.Kind, e.Crew.Node, e.Crew.Zone = events.KindCrew, "n", zone
	}
	a.Add(e)
}

// shares are the shares of the time of all workloads, in percent.
func shares(r goodput.Report) map[goodput.Use]float64 {
	all, got := 0.0, map[goodput.Use]float64{}
	for _, w := range r.Workloads {
		for k, n := range w.Spent {
			got[k.Use] += n.Time.Seconds()
			all += n.Time.Seconds()
		}
	}
	for u := range got {
		got[u] *= 100 / all
	}
	return got
}

// TestAPerfectSaveHidesNoOutage: 200 steps of 10 s, and after 100 of them an outage of 630 s with a save right before it, so that no step
// is done twice. The outage is not productive.
func TestAPerfectSaveHidesNoOutage(t *testing.T) {
	a := newTold()
	at := start
	step := func(first int64, since time.Time, n int64, attempt int) {
		a.says(at, events.Entry{Crew: &events.CrewReport{
			Report: events.ReportProgress, Attempt: attempt, Step: n, StepAt: at, FirstStep: first, FirstStepAt: since,
		}})
	}
	run := func(first, last int64, attempt int) {
		a.says(at, events.Entry{Crew: &events.CrewReport{Report: events.ReportStarted, Attempt: attempt, Step: first - 1}})
		since := at.Add(10 * time.Second)
		for n := first; n <= last; n++ {
			at = at.Add(10 * time.Second)
			if n%30 == 0 || n == last || n == first {
				step(first, since, n, attempt)
			}
		}
	}
	run(1, 100, 1)
	a.says(at, events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption})
	at = at.Add(630 * time.Second)
	run(101, 200, 2)
	r := a.Report()
	got := shares(r)
	if math.Abs(got[goodput.Productive]-76.05) > 0.01 || got[goodput.Again] > 0 {
		t.Errorf("%.3f percent are productive, and %.3f are done again; want 76.05 and 0", got[goodput.Productive], got[goodput.Again])
	}
	if len(r.Interruptions) != 1 || r.Interruptions[0].Away != 630*time.Second || r.Interruptions[0].Cause != events.CausePreemption {
		t.Errorf("interruptions %+v", r.Interruptions)
	}
}

// TestAJobUnderInjectedFaults plays the events of a real training of 112 machines, where they lie beside the project.
func TestAJobUnderInjectedFaults(t *testing.T) {
	f, err := os.Open("../../../../shared/traces/google-resiliency/event_log_n112_70b_a3m.jsonl")
	if err != nil {
		t.Skipf("no real traces beside the project: %v", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	type event struct {
		Type string  `json:"event_type"`
		At   string  `json:"timestamp"`
		Step float64 `json:"step"`
		at   time.Time
	}
	var all []event
	for s := bufio.NewScanner(f); s.Scan(); {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.at, err = time.Parse("2006-01-02T15:04:05.999999", e.At); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Step, b.Step)) })
	a := newTold()
	var begun, firstAt time.Time
	attempt, loaded := 0, int64(0)
	for _, e := range all {
		line := events.CrewReport{Attempt: attempt}
		switch e.Type {
		case "job_started":
			if e.at.Sub(begun) < time.Minute {
				continue // another machine of the same start
			}
			begun = e.at
			attempt, firstAt = attempt+1, time.Time{}
			line = events.CrewReport{Report: events.ReportStarted, Attempt: attempt}
		case "checkpoint_loaded":
			loaded = int64(e.Step)
			continue
		case "checkpoint_saved":
			if firstAt.IsZero() { // the compilation comes before it; a step takes 8.01 s
				firstAt = e.at.Add(-19 * 8010 * time.Millisecond)
			}
			line.Report, line.Step, line.StepAt, line.FirstStep, line.FirstStepAt = events.ReportProgress, int64(e.Step), e.at, loaded+1, firstAt
		default:
			continue
		}
		a.says(e.at, events.Entry{Crew: &line})
	}
	a.Add(events.Entry{Time: all[len(all)-1].at})
	got := shares(a.Report())
	t.Logf("%d attempts: %v", attempt, got)
	if math.Abs(got[goodput.Productive]-43.5) > 0.1 {
		t.Errorf("%.2f percent are productive; want 43.5", got[goodput.Productive])
	}
}

// TestTheSlowestSliceHoldsUpAll: of two slices of a queued resource one is lost. The workload waits with it, and the lines of the slice
// with the fewest steps count. A line of the attempt before comes late.
func TestTheSlowestSliceHoldsUpAll(t *testing.T) {
	a := goodput.New(goodput.Who{}, 20*time.Minute)
	id := 0
	add := func(minute float64, e events.Entry) {
		id++
		e.ID, e.Time, e.Rank = strconv.Itoa(id), start.Add(time.Duration(minute*float64(time.Minute))), events.RankAudit
		if e.Subject == (events.Subject{}) {
			e.Subject = events.Subject{Project: project, Zone: zone, QueuedResource: "q"}
		}
		a.Add(e)
	}
	crew := func(minute float64, node string, report events.Report, attempt int, step, first int64, firstAt float64) {
		r := &events.CrewReport{Report: report, Node: node, Zone: zone, Hostname: "t1v-" + node + "-w-0", Attempt: attempt, Step: step}
		if first > 0 {
			r.StepAt, r.FirstStep, r.FirstStepAt = start.Add(time.Duration(minute*float64(time.Minute))), first, start.Add(time.Duration(firstAt*float64(time.Minute)))
		}
		add(minute, events.Entry{Kind: events.KindCrew, Crew: r, Subject: events.Subject{Project: project, Zone: zone, Node: node}})
	}
	order := events.Order{Accelerator: "v5litepod-16", Nodes: []string{"n-0", "n-1"}}
	add(0, events.Entry{Kind: events.KindCall, Call: events.Call{Method: "CreateQueuedResource", Principal: ann, Order: order}})
	crew(10, "n-0", events.ReportStarted, 1, 0, 0, 0)
	crew(10, "n-1", events.ReportStarted, 1, 0, 0, 0)
	for m := 15.0; m <= 70; m += 5 { // a step each minute since minute 14; the other slice is a step behind
		crew(m, "n-0", events.ReportProgress, 1, int64(m-14), 1, 15)
		crew(m, "n-1", events.ReportProgress, 1, int64(m-14), 1, 15)
	}
	add(70, events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption, Subject: events.Subject{Project: project, Zone: zone, Node: "n-1"}})
	crew(70.1, "n-0", events.ReportExited, 1, 56, 1, 15)
	add(71, events.Entry{Kind: events.KindCall, Call: events.Call{Method: "ResetQueuedResource", Principal: us}})
	crew(90, "n-1", events.ReportStarted, 2, 40, 0, 0)
	crew(90, "n-0", events.ReportStarted, 2, 40, 0, 0)
	crew(95, "n-0", events.ReportProgress, 2, 41, 41, 95)
	crew(96, "n-0", events.ReportProgress, 1, 57, 1, 15) // of the attempt that is not admitted any more
	crew(114, "n-0", events.ReportProgress, 2, 60, 41, 95)
	r := a.Report()
	if len(r.Workloads) != 1 || r.Workloads[0].Name != "q" {
		t.Fatalf("workloads %+v", r.Workloads)
	}
	minutes := map[goodput.Use]float64{}
	for k, n := range r.Workloads[0].Spent {
		minutes[k.Use] += n.Time.Minutes()
		if n.Chips != 32*n.Time {
			t.Errorf("%+v: %v of all chips in %v", k, n.Chips, n.Time)
		}
	}
	for u, want := range map[goodput.Use]float64{
		goodput.Productive: 60, goodput.Again: 16, goodput.Starting: 8, goodput.Capacity: 30,
	} {
		if math.Abs(minutes[u]-want) > 0.01 {
			t.Errorf("%s: %.2f minutes, want %g", u, minutes[u], want)
		}
	}
	if len(r.Interruptions) != 1 || r.Interruptions[0].Chips != 32 || r.Interruptions[0].Away != 24*time.Minute || r.Interruptions[0].Again != 16*time.Minute {
		t.Errorf("interruptions %+v", r.Interruptions)
	}
}

// TestAQueuedResourceWaitsUntilItIsGranted: Google's creation of the node tells when. Without it the crew's first word ends the wait, and the
// last minutes of it are in doubt. The crew tells since when it waited for its attempt.
func TestAQueuedResourceWaitsUntilItIsGranted(t *testing.T) {
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	for name, c := range map[string]struct {
		granted bool
		want    map[goodput.Use]time.Duration
		doubt   time.Duration
	}{
		"told":     {true, map[goodput.Use]time.Duration{goodput.Capacity: 60 * time.Minute, goodput.Provisioning: 4 * time.Minute, goodput.Boarding: 2 * time.Minute, goodput.Admission: 3 * time.Minute}, 0},
		"not told": {false, map[goodput.Use]time.Duration{goodput.Capacity: 66 * time.Minute, goodput.Admission: 3 * time.Minute}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTold()
			a.Add(events.Entry{Kind: events.KindCall, Time: start, Subject: events.Subject{Project: project, Zone: zone, QueuedResource: "n"}, Call: events.Call{
				Method: "CreateQueuedResource", Principal: ann, Order: events.Order{Accelerator: "v5litepod-16", Nodes: []string{"n"}},
			}})
			if google := "service-1@cloud-tpu.iam.gserviceaccount.com"; c.granted {
				a.says(minute(60), events.Entry{Kind: events.KindCall, Call: events.Call{Method: "CreateNode", Principal: google, First: true}})
				a.says(minute(64), events.Entry{Kind: events.KindCall, Call: events.Call{Method: "CreateNode", Principal: google, Last: true}})
			}
			a.says(minute(69), events.Entry{Crew: &events.CrewReport{Report: events.ReportStarted, Attempt: 1, ReadyAt: minute(66)}})
			got, doubt := map[goodput.Use]time.Duration{}, time.Duration(0)
			for k, n := range a.Report().Workloads[0].Spent {
				got[k.Use] += n.Time
				doubt += n.Doubt
			}
			if maps.DeleteFunc(got, func(_ goodput.Use, d time.Duration) bool { return d == 0 }); !maps.Equal(got, c.want) || doubt != c.doubt {
				t.Errorf("%v, %v in doubt; want %v, %v", got, doubt, c.want, c.doubt)
			}
		})
	}
}

// TestALineMakesNoTime: the clock of a machine is wrong, or a line claims what cannot be. The uses of the time add up to the time all the same, and
// nothing is an interruption that is none.
func TestALineMakesNoTime(t *testing.T) {
	for name, spoil := range map[string]func(*events.CrewReport){
		"nothing": func(*events.CrewReport) {},
		"a minute ahead": func(r *events.CrewReport) {
			r.StepAt, r.FirstStepAt = r.StepAt.Add(time.Minute), r.FirstStepAt.Add(time.Minute)
		},
		"a day ahead": func(r *events.CrewReport) {
			r.StepAt, r.FirstStepAt = r.StepAt.AddDate(0, 0, 1), r.FirstStepAt.AddDate(0, 0, 1)
		},
		"far ahead":         func(r *events.CrewReport) { r.StepAt = r.StepAt.AddDate(7000, 0, 0) },
		"begins afterwards": func(r *events.CrewReport) { r.FirstStepAt = r.FirstStepAt.AddDate(7000, 0, 0) },
		"began long ago":    func(r *events.CrewReport) { r.FirstStepAt = r.FirstStepAt.AddDate(-1000, 0, 0) },
		"negative": func(r *events.CrewReport) {
			r.FirstStep, r.StepsSeconds, r.SavesSeconds, r.RestoreSeconds = -9, -1e300, -5, -1e18
		},
		"endless": func(r *events.CrewReport) {
			r.StepsSeconds, r.SavesSeconds, r.RestoreSeconds = 1e300, 1e18, math.Inf(1)
		},
		"enormous":       func(r *events.CrewReport) { r.Step += math.MaxInt64 / 2 },
		"enormous first": func(r *events.CrewReport) { r.FirstStep = math.MaxInt64 },
		"enormous now and then": func(r *events.CrewReport) {
			if r.Step%2 == 0 {
				r.Step = math.MaxInt64
			}
		},
	} {
		a, at := newTold(), start
		for attempt := 1; attempt <= 2; attempt++ {
			a.says(at, events.Entry{Crew: &events.CrewReport{Report: events.ReportStarted, Attempt: attempt}})
			first := at.Add(time.Minute)
			for i := range int64(6) {
				r := &events.CrewReport{
					Report: events.ReportProgress, Attempt: attempt, Step: 1 + 25*i, StepAt: first.Add(time.Duration(5*i) * time.Minute), FirstStep: 1, FirstStepAt: first,
				}
				at = r.StepAt.Add(2 * time.Second)
				spoil(r)
				a.says(at, events.Entry{Crew: r})
			}
			at = at.Add(10 * time.Minute)
		}
		r := a.Report()
		var sum time.Duration
		for k, n := range r.Workloads[0].Spent {
			if sum += n.Time; n.Time < 0 || n.Doubt < 0 {
				t.Errorf("%s: %+v: %+v", name, k, n)
			}
		}
		if w := r.Workloads[0]; sum != r.To.Sub(w.First) || w.Pace < 0 || w.Stepped < 0 || w.Away < 0 || w.Away > sum {
			t.Errorf("%s: %v in the account of %v: %+v", name, sum, r.To.Sub(w.First), w)
		}
		for _, b := range r.Interruptions {
			if b.From.After(r.To) || b.To.After(r.To) || b.Away < 0 || b.Again < 0 {
				t.Errorf("%s: interrupted %+v", name, b)
			}
		}
		if name == "a minute ahead" && len(r.Interruptions) != 1 {
			t.Errorf("%s: %d interruptions", name, len(r.Interruptions))
		}
	}
}

// diary adds entries about slices at minutes of a record.
type diary struct {
	*goodput.Account
	n int
}

func newDiary() *diary { return &diary{Account: goodput.New(goodput.Who{}, 20*time.Minute)} }

func (d *diary) at(minute float64) time.Time {
	return start.Add(time.Duration(minute * float64(time.Minute)))
}

func (d *diary) add(minute float64, node string, e events.Entry) {
	d.n++
	e.ID, e.Time, e.Rank = strconv.Itoa(d.n), d.at(minute), events.RankAudit
	e.Subject = events.Subject{Project: project, Zone: zone, Node: node}
	d.Add(e)
}

// calls is a call that takes no time.
func (d *diary) calls(minute float64, method, node, principal string) {
	d.add(minute, node, events.Entry{Kind: events.KindCall, Call: events.Call{Method: method, Principal: principal, Order: events.Order{Accelerator: "v5litepod-16", Spot: true}}})
}

// queues is the creation of the queued resource q with nodes.
func (d *diary) queues(minute float64, nodes ...string) {
	d.Add(events.Entry{Kind: events.KindCall, Time: d.at(minute), Subject: events.Subject{Project: project, Zone: zone, QueuedResource: "q"}, Call: events.Call{
		Method: "CreateQueuedResource", Principal: us, Order: events.Order{Accelerator: "v5litepod-16", Nodes: nodes},
	}})
}

func (d *diary) loses(minute float64, node string) {
	d.add(minute, node, events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption})
}

// tells is a line of a crew. An attempt begins with its first step at a minute, and saved is its last checkpoint.
func (d *diary) tells(minute float64, node string, report events.Report, attempt int, step, first int64, firstAt float64, saved int64) {
	r := &events.CrewReport{Report: report, Node: node, Zone: zone, Hostname: "t1v-" + node + "-w-0", Attempt: attempt, Step: step, CheckpointStep: saved}
	if first > 0 {
		r.StepAt, r.FirstStep, r.FirstStepAt = d.at(minute), first, d.at(firstAt)
	}
	d.add(minute, node, events.Entry{Kind: events.KindCrew, Crew: r})
}

// trains are the lines of an attempt which does a step each minute, one line each five minutes and at its end.
func (d *diary) trains(from, to float64, node string, attempt int, saved int64) {
	d.tells(from, node, events.ReportStarted, attempt, saved, 0, 0, 0)
	for m := from + 1; m <= to; m += 5 {
		d.tells(m, node, events.ReportProgress, attempt, saved+int64(m-from), saved+1, from+1, saved)
	}
}

// minutes are those of each use, of all workloads.
func minutes(r goodput.Report) map[goodput.Use]float64 {
	all := map[goodput.Use]float64{}
	for _, w := range r.Workloads {
		for k, n := range w.Spent {
			all[k.Use] += n.Time.Minutes()
		}
	}
	return all
}

// TestAnOwnerWhoMakesALostSliceAgainStopsNothing: he has to delete it first. What he makes again days later was stopped in between, and stood still
// for the rest.
func TestAnOwnerWhoMakesALostSliceAgainStopsNothing(t *testing.T) {
	for waits, stopped := range map[float64]float64{5: 0, 3000: 3000} {
		d := newDiary()
		d.calls(0, "CreateNode", "n", ann)
		d.trains(5, 100, "n", 1, 0)
		d.loses(101, "n")
		d.calls(103, "DeleteNode", "n", ann)
		d.calls(103+waits, "CreateNode", "n", ann)
		d.trains(110+waits, 200+waits, "n", 2, 60)
		r := d.Report()
		if w := r.Workloads[0]; w.Stops != 1 || w.Unsaved != 1 || len(r.Interruptions) != 1 {
			t.Fatalf("made again after %g minutes: %d stops, %d unsaved, interruptions %+v", waits, w.Stops, w.Unsaved, r.Interruptions)
		}
		away, want := r.Interruptions[0].Away.Minutes(), 14+waits-stopped
		if got := minutes(r)[goodput.Stopped]; math.Abs(got-stopped) > 0.01 || math.Abs(away-want) > 0.01 {
			t.Errorf("made again after %g minutes: %.2f minutes stopped, want %g; %.2f away, want %g", waits, got, stopped, away, want)
		}
	}
}

// TestALateLineOfAnotherSliceStartsNoAttempt: one of two slices is lost, and the other one still tells of the last step.
func TestALateLineOfAnotherSliceStartsNoAttempt(t *testing.T) {
	for _, late := range []bool{false, true} {
		d := newDiary()
		d.queues(0, "n0", "n1")
		for _, n := range []string{"n0", "n1"} {
			d.tells(9, n, events.ReportStarted, 1, 0, 0, 0, 0)
		}
		for m := 10.0; m <= 60; m += 5 {
			d.tells(m, "n0", events.ReportProgress, 1, int64(m-9), 1, 10, 0)
			d.tells(m, "n1", events.ReportProgress, 1, int64(m-9), 1, 10.01, 0)
		}
		d.loses(60.2, "n0")
		if late {
			d.tells(60.6, "n1", events.ReportProgress, 1, 52, 1, 10.01, 0)
		}
		d.calls(61, "CreateNode", "n0", us)
		for _, n := range []string{"n0", "n1"} {
			d.tells(70, n, events.ReportStarted, 2, 51, 0, 0, 0)
			d.tells(75, n, events.ReportProgress, 2, 52, 52, 75, 51)
			d.tells(80, n, events.ReportProgress, 2, 57, 52, 75, 51)
		}
		r := d.Report()
		if got := minutes(r); math.Abs(got[goodput.Productive]-57) > 0.2 || len(r.Interruptions) != 1 || r.Interruptions[0].Cause != events.CausePreemption {
			t.Errorf("late line %v: %v, %+v", late, got, r.Interruptions)
		}
	}
}

// TestASilentSliceIsFollowedNoMore: the crew that was followed writes no line any more, and the other one tells that the training goes on.
func TestASilentSliceIsFollowedNoMore(t *testing.T) {
	d := newDiary()
	d.queues(0, "n0", "n1")
	for m := 10.0; m <= 120; m += 5 {
		if m <= 30 {
			d.tells(m, "n0", events.ReportProgress, 1, int64(m-9), 1, 10, 0)
		}
		d.tells(m, "n1", events.ReportProgress, 1, int64(m-9), 1, 10.01, 0)
	}
	r := d.Report()
	if w := r.Workloads[0]; w.Steps != 111 || math.Abs(minutes(r)[goodput.Productive]-110) > 0.1 {
		t.Errorf("step %d, %v", w.Steps, minutes(r))
	}
}

// TestAFinishedTrainingLosesNothing: its machines are lost later, and nobody makes them again. A new creation is a new training.
func TestAFinishedTrainingLosesNothing(t *testing.T) {
	for _, again := range []bool{false, true} {
		d := newDiary()
		d.calls(0, "CreateNode", "n", ann)
		d.trains(5, 101, "n", 1, 0)
		d.tells(101, "n", events.ReportFinished, 1, 96, 1, 6, 0)
		d.loses(160, "n")
		d.calls(500, "CreateNode", "m", ann)
		trained := 96.0
		if again {
			d.calls(500, "CreateNode", "n", ann)
			d.trains(510, 600, "n", 2, 0)
			trained += 90
		}
		d.calls(600, "DeleteNode", "m", ann)
		r := d.Report()
		r.Workloads = slices.DeleteFunc(r.Workloads, func(w goodput.Workload) bool { return w.Name == "m" })
		if got := minutes(r); math.Abs(got[goodput.Productive]-trained) > 1.1 || got[goodput.Stopped] < 390 || got[goodput.Unknown] > 5 || len(r.Interruptions) != 0 {
			t.Errorf("trained again %v: %v, %+v", again, got, r.Interruptions)
		}
	}
}

// TestAResumeTellsHowFarAnAttemptCame: after a perfect save nothing is done again, and nearly nothing is in doubt.
func TestAResumeTellsHowFarAnAttemptCame(t *testing.T) {
	d := newDiary()
	d.calls(0, "CreateNode", "n", ann)
	d.trains(5, 101, "n", 1, 0) // the last line tells of step 96
	d.loses(105.5, "n")
	d.calls(106, "CreateNode", "n", ann)
	d.trains(110, 200, "n", 2, 100)
	r := d.Report()
	for k, n := range r.Workloads[0].Spent {
		if k.Use == goodput.Again && (n.Time > 40*time.Second || n.Doubt > n.Time) || k.Use == goodput.Productive && n.Doubt > time.Minute {
			t.Errorf("%s: %v ± %v", k.Use, n.Time, n.Doubt)
		}
	}
}

// TestASaveOnRequestIsNoHabit: a training that saves each 120 steps saves once in between.
func TestASaveOnRequestIsNoHabit(t *testing.T) {
	d := newDiary()
	d.calls(0, "CreateNode", "n", ann)
	for m := 10; m <= 1000; m += 5 {
		saved := m / 120 * 120
		if m >= 750 && m < 840 {
			saved = 752
		}
		d.tells(float64(m), "n", events.ReportProgress, 1, int64(m), 1, 1, int64(saved))
	}
	if w := d.Report().Workloads[0]; w.SaveSteps != 120 {
		t.Errorf("it saves each %d steps, want 120", w.SaveSteps)
	}
}

// TestTheNodesOfAFormerQueuedResourceAreGone: it is made again with others.
func TestTheNodesOfAFormerQueuedResourceAreGone(t *testing.T) {
	d := newDiary()
	d.queues(0, "n0", "n1")
	d.trains(10, 60, "n0", 1, 0)
	d.trains(10, 60, "n1", 1, 0)
	d.Add(events.Entry{Kind: events.KindCall, Time: d.at(70), Subject: events.Subject{Project: project, Zone: zone, QueuedResource: "q"}, Call: events.Call{Method: "DeleteQueuedResource", Principal: ann}})
	d.queues(80, "m0", "m1")
	d.trains(90, 200, "m0", 2, 50)
	d.trains(90, 200, "m1", 2, 50)
	r := d.Report()
	got := minutes(r)
	if len(r.Workloads) != 1 || math.Abs(got[goodput.Productive]-156) > 1.5 || got[goodput.Stopped] != 10 {
		t.Errorf("%d workloads, %v", len(r.Workloads), got)
	}
	for k, n := range r.Workloads[0].Spent {
		if n.Chips != 32*n.Time {
			t.Errorf("%+v: %v of all chips in %v", k, n.Chips, n.Time)
		}
	}
}

// TestAnInterruptionEndsWhereNothingIsKnown: a loss that one request could not mend, and that nobody asks for again.
func TestAnInterruptionEndsWhereNothingIsKnown(t *testing.T) {
	d := newDiary()
	d.calls(0, "CreateNode", "n", ann)
	d.trains(5, 100, "n", 1, 0)
	d.loses(101, "n")
	d.add(103, "n", events.Entry{Kind: events.KindCall, Call: events.Call{Method: "CreateNode", Principal: ann, Code: 8, Message: "There is no more capacity in the zone"}})
	d.calls(6000, "CreateNode", "m", ann)
	r := d.Report()
	if len(r.Interruptions) != 1 || r.Interruptions[0].Away > 70*time.Minute || !r.Interruptions[0].To.IsZero() {
		t.Errorf("interruptions %+v", r.Interruptions)
	}
}
