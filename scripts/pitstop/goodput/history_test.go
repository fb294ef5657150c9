package goodput_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/shared/breadth"
)

// history is a simulated training whose truth is known.
type history struct {
	r *rand.Rand
	// measured says that the crew tells how long steps and saves took.
	measured bool
	at       time.Duration // since start
	truth    map[goodput.Use]time.Duration
	entries  []events.Entry
	ids      int

	step, save, restore time.Duration
	every               int64 // steps between two saves
	resumed, saved      int64 // steps of checkpoints
	done                int64
	attempt             int
	// ready is when the crew was there. Examples are those of the steps that stayed, batch of them in each step of the attempt.
	ready           time.Time
	batch, examples int64
}

func (h *history) between(least, most time.Duration) time.Duration {
	return least + time.Duration(h.r.Int64N(int64(most-least)))
}

func (h *history) pass(u goodput.Use, d time.Duration) {
	h.truth[u] += d
	h.at += d
}

func (h *history) entry(e events.Entry) {
	h.ids++
	e.ID, e.Time, e.Rank = "e"+strconv.Itoa(h.ids), start.Add(h.at), events.RankAudit
	e.Subject = events.Subject{Project: project, Zone: zone, Node: "n"}
	if e.Crew != nil {
		e.Kind, e.Crew.Node, e.Crew.Zone, e.Crew.Hostname, e.Crew.Attempt = events.KindCrew, "n", zone, workers+"-w-0", h.attempt
		if h.r.Float64() < 0.01 {
			return // it is lost
		}
		if h.r.Float64() < 0.02 {
			h.entries = append(h.entries, e)
		}
		if h.r.Float64() < 0.01 && e.Crew.Report == events.ReportProgress {
			e.Time = e.Time.Add(h.between(0, 30*time.Minute)) // it is known by when it came
		}
	}
	h.entries = append(h.entries, e)
}

// call writes the first or the last entry of a creation.
func (h *history) call(first bool) {
	h.entry(events.Entry{Kind: events.KindCall, Call: events.Call{
		Method: "CreateNode", Principal: us, First: first, Last: !first, Order: events.Order{Accelerator: "v5litepod-16", Spot: true},
	}})
}

// creates waits for machines.
func (h *history) creates() {
	for range h.r.IntN(4) { // refused
		h.pass(goodput.Capacity, h.between(time.Minute, 10*time.Minute))
		h.entry(events.Entry{Kind: events.KindCall, Call: events.Call{Method: "CreateNode", Principal: us, Code: 8, Message: "There is no more capacity in the zone"}})
	}
	h.pass(goodput.Capacity, h.between(10*time.Second, 5*time.Minute))
	h.call(true)
	h.pass(goodput.Provisioning, h.between(2*time.Minute, 8*time.Minute))
	h.boards()
}

// boards has the machines, and waits for the crew and for the attempt.
func (h *history) boards() {
	h.call(false)
	h.pass(goodput.Boarding, h.between(20*time.Second, 2*time.Minute))
	if h.ready = (time.Time{}); h.measured {
		h.ready = start.Add(h.at)
		h.pass(goodput.Admission, h.between(0, 10*time.Minute))
	}
}

// trains runs one attempt for so long, and reports as a crew does. The record ends with the last one.
func (h *history) trains(lasts time.Duration, last bool) {
	h.attempt++
	h.resumed, h.done = h.saved, h.saved
	h.batch = 256 << h.r.IntN(2)
	h.entry(events.Entry{Crew: &events.CrewReport{Report: events.ReportStarted, Step: h.saved, ReadyAt: h.ready}})
	h.ready = time.Time{}
	end := h.at + lasts
	starts := h.between(20*time.Second, 3*time.Minute)
	spend := func(u goodput.Use, d time.Duration) bool {
		h.pass(u, min(d, end-h.at))
		return h.at < end
	}
	var steps, saves time.Duration
	var stepped, firstAt, told time.Duration
	line := func(kind events.Report) {
		r := &events.CrewReport{Report: kind, Step: h.done}
		if firstAt > 0 {
			r.StepAt, r.FirstStep, r.FirstStepAt = start.Add(stepped), h.resumed+1, start.Add(firstAt)
			if h.measured {
				r.Measured = &events.Measured{GlobalBatch: h.batch}
				r.StepsSeconds, r.SavesSeconds, r.RestoreSeconds = steps.Seconds(), saves.Seconds(), h.restore.Seconds()
			}
		}
		h.entry(events.Entry{Crew: r})
	}
	told = h.at
	if !spend(goodput.Starting, starts) || !spend(goodput.Restoring, h.restore) {
		if !last {
			h.exits(line)
		}
		return
	}
	var unsaved time.Duration
	for {
		step := time.Duration(float64(h.step) * (0.98 + 0.04*h.r.Float64()))
		from := h.at
		if !spend(goodput.Again, step) { // until it shows that it stays
			break
		}
		h.done++
		h.examples += h.batch
		h.truth[goodput.Again] -= step
		h.truth[goodput.Productive] += step
		unsaved += step
		stepped = h.at
		if firstAt == 0 {
			firstAt = h.at
			line(events.ReportProgress)
			told = h.at
		} else {
			steps += h.at - from
		}
		if h.at-told >= 5*time.Minute {
			line(events.ReportProgress)
			told = h.at
		}
		if h.done%h.every == 0 {
			from := h.at
			if !spend(goodput.Saving, h.save) {
				break
			}
			saves += h.at - from
			h.saved = h.done
			unsaved = 0
		}
	}
	if last {
		return
	}
	// What was not saved is lost.
	h.truth[goodput.Productive] -= unsaved
	h.truth[goodput.Again] += unsaved
	h.examples -= (h.done - h.saved) * h.batch
	h.exits(line)
}

// exits ends an attempt: its machines are preempted, it crashes, or it hangs until somebody ends it.
func (h *history) exits(line func(events.Report)) {
	switch h.r.IntN(4) {
	case 0:
		line(events.ReportExited)
		h.pass(goodput.Admission, h.between(5*time.Second, time.Minute))
	case 1:
		if h.r.IntN(2) == 0 {
			h.pass(goodput.Hang, h.between(15*time.Minute, 40*time.Minute))
		}
		line(events.ReportExited)
		h.pass(goodput.Admission, h.between(5*time.Second, time.Minute))
	default:
		h.entry(events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption})
		h.creates()
	}
}

// play simulates a training.
func play(seed int, measured bool) (truth map[goodput.Use]float64, examples float64, r goodput.Report) {
	h := &history{r: rand.New(rand.NewPCG(uint64(seed), 59)), measured: measured, truth: map[goodput.Use]time.Duration{}} //nolint:gosec // reproducible, and no seed is negative
	h.step, h.save, h.restore = h.between(2*time.Second, 15*time.Second), h.between(2*time.Second, 40*time.Second), h.between(5*time.Second, 90*time.Second)
	h.every = int64(h.between(5*time.Minute, 45*time.Minute) / h.step)
	between := h.between(2*time.Hour, 10*time.Hour)
	all := h.between(24*time.Hour, 14*24*time.Hour)
	h.firstCreates()
	for last := false; !last; {
		lasts := time.Duration(h.r.ExpFloat64()*float64(between)) + time.Minute
		last = h.at+lasts > all
		h.trains(lasts, last)
	}
	slices.SortStableFunc(h.entries, func(a, b events.Entry) int { return a.Time.Compare(b.Time) })
	for i := range h.entries[1:] { // workers speak at the same time
		a, b := &h.entries[i], &h.entries[i+1]
		if b.Time.Sub(a.Time) < time.Second && h.r.IntN(2) == 0 {
			*a, *b = *b, *a
		}
	}
	account := goodput.New(goodput.Who{}, 20*time.Minute)
	for _, e := range h.entries {
		account.Add(e)
	}
	account.Add(events.Entry{Time: start.Add(h.at)})
	truth = map[goodput.Use]float64{}
	for u, d := range h.truth {
		truth[u] = 100 * d.Seconds() / h.at.Seconds()
	}
	return truth, float64(h.examples), account.Report()
}

// firstCreates creates the slice for the first time.
func (h *history) firstCreates() {
	h.call(true)
	h.pass(goodput.Provisioning, h.between(2*time.Minute, 8*time.Minute))
	h.boards()
}

// TestAccountAgainstTheTruth plays 200 trainings whose truth is known.
func TestAccountAgainstTheTruth(t *testing.T) {
	for name, measured := range map[string]bool{"with what the crew measures": true, "with steps alone": false} {
		t.Run(name, func(t *testing.T) {
			n := breadth.Of(200, 40)
			right, sound, worst := 0, 0, 0.0
			off := map[goodput.Use]int{}
			for seed := range n {
				truth, examples, r := play(seed, measured)
				got := shares(r)
				within, each := 0.1, 0.2
				if !measured {
					truth[goodput.Productive] += truth[goodput.Saving]
					truth[goodput.Saving] = 0
					truth[goodput.Starting] += truth[goodput.Restoring]
					truth[goodput.Restoring] = 0
					within, each = 0.3, math.Inf(1)
				}
				miss := math.Abs(got[goodput.Productive] - truth[goodput.Productive])
				worst = max(worst, miss)
				ok := miss <= within
				if !ok {
					off[goodput.Productive]++
				}
				uses := maps.Clone(truth)
				maps.Copy(uses, got)
				for u := range uses {
					if d := math.Abs(got[u] - truth[u]); d > each && u != goodput.Productive {
						ok = false
						off[u]++
					}
				}
				if counted := r.Workloads[0].Examples(); measured && math.Abs(counted/examples-1) > 0.005 || !measured && counted > 0 {
					ok = false
					t.Logf("seed %d: %.0f examples, counted %.0f", seed, examples, counted)
				}
				if ok {
					right++
				}
				var doubt, all float64
				for _, w := range r.Workloads {
					for k, x := range w.Spent {
						all += x.Time.Seconds()
						if k.Use == goodput.Productive {
							doubt += x.Doubt.Seconds()
						}
					}
				}
				if miss <= 100*doubt/all+0.05 { // as it is printed
					sound++
				}
			}
			t.Logf("of %d: %d right, the goodput %.2f points off at worst, the bound holds for %d; off: %v", n, right, worst, sound, off)
			if right < n*95/100 || sound < n*95/100 {
				t.Errorf("of %d: %d are right, and the bound holds for %d; want 95 percent", n, right, sound)
			}
		})
	}
}
