//go:build unix

package crew

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/report"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/state"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// history is a training on machines that come and go, each with a crew, and the truth about its time.
type history struct {
	t      *testing.T
	chance *rand.Rand
	bucket *memory
	truth  map[goodput.Use]time.Duration

	mu      sync.Mutex
	entries []events.Entry

	crew    *crew
	ended   chan struct{} // closed when the loop of the crew has ended
	started chan child.Spec
	lives   int // of the slice, up to now
	attempt int

	step, save, restore time.Duration
	persist             time.Duration // from the end of a save until its checkpoint is complete
	every               int64         // steps between two saves
	tellsFirst          bool          // the progress file has a step before its save
	kept                []stretch
	saves               []*time.Timer // that are not complete yet
}

// stretch is a step that is not lost so far.
type stretch struct {
	step int64
	took time.Duration
}

func (h *history) between(least, most time.Duration) time.Duration {
	return least + time.Duration(h.chance.Int64N(int64(most-least)))
}

// pass lets time pass for a use.
func (h *history) pass(u goodput.Use, d time.Duration) {
	time.Sleep(d)
	h.truth[u] += d
}

func (h *history) entry(e events.Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, e)
}

// audit is an entry of the audit log about the slice.
func (h *history) audit(e events.Entry) {
	e.ID, e.Time, e.Rank = fmt.Sprintf("audit %d", time.Now().UnixNano()), time.Now(), events.RankAudit
	e.Subject = events.Subject{Project: "demo", Zone: "us-west4-a", Node: "llama"}
	h.entry(e)
}

func (h *history) call(c events.Call) {
	c.Method, c.Principal, c.Order = "CreateNode", "pitstop@demo.iam.gserviceaccount.com", events.Order{Accelerator: "v5litepod-8", Spot: true}
	h.audit(events.Entry{Kind: events.KindCall, Call: c})
}

// create brings a machine, and a crew on it.
func (h *history) create() {
	if h.lives > 0 {
		for range h.chance.IntN(4) {
			h.pass(goodput.Capacity, h.between(time.Minute, 10*time.Minute))
			h.call(events.Call{Code: 8, Message: "There is no more capacity in the zone"})
		}
		h.pass(goodput.Capacity, h.between(10*time.Second, 5*time.Minute))
	}
	h.call(events.Call{First: true})
	h.pass(goodput.Provisioning, h.between(2*time.Minute, 8*time.Minute))
	h.call(events.Call{Last: true})
	h.pass(goodput.Boarding, h.between(20*time.Second, 2*time.Minute))
	h.lives++
	h.board()
	if h.lives > 1 {
		h.pass(goodput.Admission, h.between(time.Second, 4*time.Minute))
		h.admit()
	}
}

// board starts a crew.
func (h *history) board() {
	dir, err := os.MkdirTemp(h.t.TempDir(), "")
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	o := Options{
		Command: []string{"train"}, State: dir, Workload: "demo/llama", Directory: livesDirectory, Booted: time.Now().Add(-10 * time.Second),
		Machine: metadata.Machine{Project: "demo", Zone: "us-west4-a", Node: "llama", Host: fmt.Sprintf("t1v-n-%08d-w-0", h.lives), Workers: 1, Slices: 1},
		Store:   h.bucket,
		Times:   DefaultTimes(), Rules: restart.Defaults(), StayAfterGivingUp: true, ProgressFile: filepath.Join(dir, "progress"),
		Say: func(string, ...any) {}, Note: func(string, ...any) {},
		Send: func(_ context.Context, l report.Line) error {
			e, err := events.Read(trainingtest.CrewEntry(l.Report, l.At, 0))
			if err != nil {
				return err
			}
			e.ID = l.ID
			h.entry(e)
			return nil
		},
	}
	o.Times.Lease = 30 * time.Second // the lease is not what this is about
	c := made(ctx, o)
	c.keeper, c.chance = h, rand.New(rand.NewPCG(h.chance.Uint64(), 2)).Float64 //nolint:gosec // a test's
	if err := c.open(); err != nil {
		h.t.Fatal(err)
	}
	c.next["sync"] = time.Now().AddDate(1, 0, 0) // no machine crashes here
	h.crew, h.ended = c, make(chan struct{})
	go c.spool.Run(ctx)
	go func() {
		defer close(h.ended)
		defer cancel()
		c.loop(nil)
	}()
}

// lose takes the machine away, with its crew.
func (h *history) lose() {
	h.crew.post(func() { h.crew.done = true })
	<-h.ended
	h.dies()
}

// admit has Pitstop admit the life that is there, for a new attempt.
func (h *history) admit() {
	l, _, err := checkpoint.ReadLease(h.t.Context(), h.bucket, livesDirectory)
	if err != nil {
		h.t.Fatal(err)
	}
	l.Epoch, l.Attempt, l.Written, l.By = l.Epoch+1, max(l.Attempt, h.attempt)+1, time.Now(), "pitstop"
	l.Admitted = []events.Admission{h.crew.admission()}
	if err := checkpoint.WriteLease(h.t.Context(), h.bucket, livesDirectory, l); err != nil {
		h.t.Fatal(err)
	}
}

// Start implements keeper.
func (h *history) Start(s child.Spec, _ func() (*os.File, error)) (*child.Child, error) {
	h.attempt = s.Attempt
	h.started <- s
	return &child.Child{Record: h.record()}, nil
}

// Close implements keeper.
func (h *history) Close() {}

func (h *history) record() child.Record {
	return child.Record{Attempt: h.attempt, Began: time.Now(), Training: child.Identity{PID: noProcess}, Parent: child.Identity{PID: noProcess}}
}

// exit ends the training as a real one ends: its parent writes down how, and the crew learns of it.
func (h *history) exit(e restart.Exit, began time.Time) {
	h.dies()
	e.Attempt, e.Began, e.Ended = h.attempt, began, time.Now()
	r := h.record()
	r.Began = began
	for name, v := range map[string]any{"training.json": r, "exit.json": e} {
		if err := state.Write(filepath.Join(h.crew.State, name), v); err != nil {
			h.t.Fatal(err)
		}
	}
	t, err := child.Adopt(h.crew.State, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	t.Adopted = false
	h.crew.post(func() { h.crew.await(t) })
}

// dies ends the training without a word: what is not complete of its saves is lost.
func (h *history) dies() {
	for _, s := range h.saves {
		s.Stop()
	}
	h.saves = nil
}

// tell writes the progress file.
func (h *history) tell(n int64, restore time.Duration) {
	text := fmt.Sprintf(`{"step": %d, "restore_seconds": %.3f}`, n, restore.Seconds())
	path := h.crew.ProgressFile
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		h.t.Fatal(err)
	}
}

// keeps puts a complete checkpoint into the bucket, or removes it.
func (h *history) keeps(step int64, content []byte) {
	for _, name := range []string{"data", "commit_success.txt"} {
		h.bucket.put(checkpoint.Join(livesDirectory, fmt.Sprintf("%d/%s", step, name)), content)
	}
}

// resumes is the step from which an attempt goes on. The steps after it are done again.
func (h *history) resumes(s child.Spec) (step int64) {
	for _, v := range s.Env {
		if n, ok := strings.CutPrefix(v, "PITCREW_RESUME_STEP="); ok {
			step, _ = strconv.ParseInt(n, 10, 64) //nolint:errcheck // it is the crew's
		}
	}
	for n := len(h.kept) - 1; n >= 0 && h.kept[n].step > step; n-- {
		h.truth[goodput.Productive] -= h.kept[n].took
		h.truth[goodput.Again] += h.kept[n].took
		h.kept = h.kept[:n]
	}
	return step
}

// train plays an attempt that ends after so long.
func (h *history) train(s child.Spec, lasts time.Duration, last bool) {
	n, end := h.resumes(s), time.Now().Add(lasts)
	spend := func(u goodput.Use, d time.Duration) bool {
		left := time.Until(end)
		h.pass(u, min(d, left))
		return d < left
	}
	restore := h.restore
	if n == 0 {
		restore = 0 // there is nothing to load
	}
	if !spend(goodput.Starting, h.between(20*time.Second, 3*time.Minute)) || !spend(goodput.Restoring, restore) {
		return
	}
	for {
		step := time.Duration(float64(h.step) * (0.98 + 0.04*h.chance.Float64()))
		from, use := time.Now(), goodput.Again
		if last {
			use = goodput.Productive // nobody knows that it never ends
		}
		if !spend(use, step) {
			return
		}
		h.truth[use] -= time.Since(from)
		h.truth[goodput.Productive] += time.Since(from)
		n++
		h.kept = append(h.kept, stretch{n, step})
		if h.tellsFirst {
			h.tell(n, restore)
		}
		if n%h.every == 0 {
			if !spend(goodput.Saving, h.save) {
				return
			}
			saved := n
			h.saves = append(h.saves, time.AfterFunc(h.persist, func() {
				h.keeps(saved, []byte("x"))
				h.keeps(saved-2*h.every, nil) // as most trainings do
			}))
		}
		if !h.tellsFirst {
			h.tell(n, restore)
		}
	}
}

// ends plays how an attempt ends, until another one may begin.
func (h *history) ends(began time.Time) {
	switch h.chance.IntN(5) {
	case 0:
		h.exit(restart.Exit{Code: 1}, began)
	case 1:
		h.pass(goodput.Hang, h.between(15*time.Minute, 40*time.Minute))
		h.exit(restart.Exit{Code: 1}, began)
	case 2: // Pitstop has it begin again, as after a hang
		stands := goodput.Again
		if h.chance.IntN(2) == 0 {
			stands = goodput.Hang
			h.pass(stands, h.between(15*time.Minute, 40*time.Minute))
		}
		h.admit()
		for stopped := make(chan bool); ; {
			h.pass(stands, 100*time.Millisecond)
			h.crew.post(func() { stopped <- h.crew.stopping != nil && !h.crew.stopping.sentAt.IsZero() })
			if <-stopped {
				break
			}
		}
		h.exit(restart.Exit{Signal: "SIGTERM"}, began)
	default:
		h.lose()
		h.audit(events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption})
		h.create()
	}
}

// play plays a history, and returns the shares of the time in truth and by the account, in percent.
func (h *history) play() (truth, got map[goodput.Use]float64, lasted time.Duration) {
	h.step, h.save, h.restore = h.between(2*time.Second, time.Minute), h.between(2*time.Second, 40*time.Second), h.between(5*time.Second, 90*time.Second)
	h.persist = h.between(time.Second, 90*time.Second)
	h.every = int64(h.between(5*time.Minute, 45*time.Minute) / h.step)
	h.tellsFirst = h.chance.IntN(2) == 0
	rate := h.between(2*time.Hour, 10*time.Hour)
	from := time.Now()
	until := from.Add(h.between(6*time.Hour, 12*time.Hour))
	h.create()
	for last := false; !last; {
		waits := time.Now()
		s := <-h.started
		began := time.Now()
		h.truth[goodput.Admission] += began.Sub(waits)
		lasts := time.Duration(h.chance.ExpFloat64()*float64(rate)) + time.Minute
		last = began.Add(lasts).After(until)
		if h.train(s, lasts, last); !last {
			h.ends(began)
		}
	}
	lasted = time.Since(from)
	h.lose()
	synctest.Wait()
	slices.SortStableFunc(h.entries, func(a, b events.Entry) int { return a.Time.Compare(b.Time) })
	account := goodput.New(goodput.Who{}, 20*time.Minute)
	for _, e := range h.entries {
		account.Add(e)
	}
	account.Add(events.Entry{Time: from.Add(lasted)})
	truth, got = map[goodput.Use]float64{}, map[goodput.Use]float64{}
	for u, d := range h.truth {
		truth[u] = 100 * d.Seconds() / lasted.Seconds()
	}
	for _, w := range account.Report().Workloads {
		for k, n := range w.Spent {
			got[k.Use] += 100 * n.Time.Seconds() / lasted.Seconds()
		}
	}
	return truth, got, lasted
}

// TestTheAccountOfWhatCrewsTell plays lives of a training under the real crew, and gives its lines to the account. Each use of the time has to
// be what it was in truth. What nobody can know are the last minutes of a machine that is lost, and of the record.
func TestTheAccountOfWhatCrewsTell(t *testing.T) {
	n := breadth.Of(4, 1)
	if breadth.Full() {
		n = 10
	}
	right, worst := 0, map[goodput.Use]float64{}
	t.Cleanup(func() {
		t.Logf("%d of %d are right; off at worst, in points: %v", right, n, worst)
		if 100*right < 95*n {
			t.Error("want 95 percent of them")
		}
	})
	var mu sync.Mutex
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &history{
					t: t, chance: rand.New(rand.NewPCG(uint64(seed), 61)), bucket: newMemory(), //nolint:gosec // a test's
					truth: map[goodput.Use]time.Duration{}, started: make(chan child.Spec, 1),
				}
				truth, got, lasted := h.play()
				mu.Lock()
				defer mu.Unlock()
				ok := true
				uses := maps.Clone(truth)
				maps.Copy(uses, got)
				for u := range uses {
					within := 0.2
					if u == goodput.Productive {
						within = 0.1
					}
					off := math.Abs(got[u] - truth[u])
					worst[u] = max(worst[u], off)
					if off > within {
						ok = false
						t.Logf("%v: %s is %.2f percent, and was %.2f", lasted.Round(time.Minute), u, got[u], truth[u])
					}
				}
				if ok {
					right++
				}
			})
		})
	}
}
