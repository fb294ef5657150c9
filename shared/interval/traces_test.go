package interval_test

import (
	"bytes"
	"encoding/csv"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/interval"
)

// The conditions under which the series are played: what one save blocks, and the time from a loss until it trains again.
const (
	saveTakes = time.Minute
	comesBack = 10 * time.Minute
)

// series are the times with capacity of one training. Each ends with a loss, except the last where cut says so.
type series struct {
	ups []time.Duration
	cut bool
}

func (s series) losses() int {
	if s.cut {
		return len(s.ups) - 1
	}
	return len(s.ups)
}

// play is the share of the time with capacity in which steps were made that stayed. Every names the time until the next save,
// from the losses and the time with capacity so far, and from the time since it last came back.
func (s series) play(every func(losses int, trained, age time.Duration) time.Duration) float64 {
	var kept, before, all time.Duration
	for n, up := range s.ups {
		at := comesBack
		for {
			work := every(n, before+min(at, up), at-comesBack)
			if s.cut && n == len(s.ups)-1 && at+work > up {
				kept += max(0, up-at) // the record ends, and nothing is lost
				break
			}
			if at+work+saveTakes > up {
				break
			}
			kept += work
			at += work + saveTakes
		}
		before += up
		all += up
	}
	return kept.Seconds() / all.Seconds()
}

func fixed(every time.Duration) func(int, time.Duration, time.Duration) time.Duration {
	return func(int, time.Duration, time.Duration) time.Duration { return every }
}

// allSeries are the series that lie beside the project: they are not part of it.
func allSeries(t *testing.T) map[string]series {
	t.Helper()
	const beside = "../../../shared/traces"
	if _, err := os.Stat(beside); err != nil {
		t.Skipf("no real traces beside the project: %v", err)
	}
	all := spot(t, beside)
	maps.Copy(all, failures(t, filepath.Join(beside, "lanl", "LA-UR-05-7318-failure-data-1996-2005.csv.xz")))
	maps.Copy(all, removals(t, filepath.Join(beside, "bamboo", "p3-trace.csv"), filepath.Join(beside, "bamboo", "g4dn-trace.csv")))
	all["Spot TPUs"] = lifetimes(t, filepath.Join(beside, "tpu-spot-derived", "tpu_spot_vm_lifetimes.csv"))
	all["a large run, one loss in 3.09 h"] = drawn(419, 3.09*float64(time.Hour))
	return all
}

// TestAdviceAgainstRealLosses plays measured losses. The advice knows only the past of its own series, and the best fixed interval knows
// the whole series.
func TestAdviceAgainstRealLosses(t *testing.T) {
	all := allSeries(t)
	var worst, sum, hourly float64
	played := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.losses() < 100 {
			continue
		}
		played++
		advised := s.play(func(losses int, trained, _ time.Duration) time.Duration {
			return interval.Best(saveTakes, interval.BetweenLosses(losses, trained))
		})
		best := 0.0
		for i := range 60 { // from one minute to a day
			best = max(best, s.play(fixed(time.Duration(float64(time.Minute)*math.Pow(1440, float64(i)/59)))))
		}
		h := s.play(fixed(time.Hour))
		t.Logf("%-50s %5d losses: hourly %.1f, advised %.1f, best fixed %.1f percent", name, s.losses(), 100*h, 100*advised, 100*best)
		worst, sum, hourly = max(worst, 100*(best-advised)), sum+100*(best-advised), hourly+100*(best-h)
	}
	if played < 23 {
		t.Fatalf("only %d series have 100 losses", played)
	}
	mean := sum / float64(played)
	t.Logf("%d series: the advice is %.2f points below the best at most and %.2f in the mean; hourly is %.1f below in the mean",
		played, worst, mean, hourly/float64(played))
	if worst > 2.2 || mean > 0.7 {
		t.Errorf("the advice is %.2f points below the best fixed interval at most and %.2f in the mean; want 2.2 and 0.7", worst, mean)
	}
	if hourly /= float64(played); hourly < 5 {
		t.Errorf("hourly saves are only %.1f points below the best in the mean: these series cannot tell good advice from bad", hourly)
	}
}

// TestAScheduleAgainstRealLosses plays the schedule that stretches beside the fixed advice.
func TestAScheduleAgainstRealLosses(t *testing.T) {
	all := allSeries(t)
	played, sum, least := 0, 0.0, math.Inf(1)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.losses() < 20 {
			continue
		}
		played++
		between := interval.BetweenLosses
		advised := s.play(func(losses int, trained, _ time.Duration) time.Duration {
			return interval.Best(saveTakes, between(losses, trained))
		})
		stretched := s.play(func(losses int, trained, age time.Duration) time.Duration {
			return interval.Next(age, saveTakes, between(losses, trained))
		})
		gain := 100 * (stretched - advised)
		t.Logf("%-50s %5d losses, bursty %v: %+.2f points", name, s.losses(), interval.Bursty(s.ups), gain)
		sum, least = sum+gain, min(least, gain)
	}
	mean := sum / float64(played)
	t.Logf("%d series: the schedule gains %.2f points in the mean, and %.2f at least", played, mean, least)
	if played < 40 || mean < 0.5 || least < -0.7 {
		t.Errorf("%d series: the schedule gains %.2f points in the mean, and %.2f at least; want 0.5 and -0.7", played, mean, least)
	}
}

// spot reads how many spot instances there were at each tick. A training needs all of them.
func spot(t *testing.T, beside string) map[string]series {
	t.Helper()
	all := map[string]series{}
	files := os.DirFS(filepath.Join(beside, "spot-traces"))
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".json" {
			return err
		}
		raw, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		var trace struct {
			Metadata struct {
				Gap float64 `json:"gap_seconds"`
			} `json:"metadata"`
			Data []int `json:"data"`
		}
		if err := json.Unmarshal(raw, &trace); err != nil {
			return err
		}
		gap, needed := time.Duration(trace.Metadata.Gap*float64(time.Second)), slices.Max(trace.Data)
		var s series
		var up time.Duration
		for _, n := range trace.Data {
			switch {
			case n == needed:
				up += gap
			case up > 0:
				s.ups, up = append(s.ups, up), 0
			}
		}
		if s.cut = up > 0; s.cut {
			s.ups = append(s.ups, up)
		}
		all[strings.TrimSuffix(file, ".json")] = s
		return nil
	})
	if err != nil || len(all) < 30 {
		t.Fatalf("%d series of spot instances: %v", len(all), err)
	}
	return all
}

// failures reads when nodes of large systems failed, for the six with the most failures. A training on the whole system loses
// its steps with each of them.
func failures(t *testing.T, file string) map[string]series {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unpack := exec.CommandContext(t.Context(), "xz", "--decompress", "--stdout")
	unpack.Stdin = bytes.NewReader(packed)
	raw, err := unpack.Output()
	if err != nil {
		t.Skipf("the failures of large systems are packed, and xz does not unpack them here: %v", err)
	}
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	started := slices.Index(rows[0], "Prob Started")
	moments := map[string][]time.Time{}
	for _, row := range rows[1:] {
		if at, err := time.Parse("1/2/2006 15:04", row[started]); err == nil {
			moments["system "+row[0]] = append(moments["system "+row[0]], at)
		}
	}
	most := slices.SortedFunc(maps.Keys(moments), func(a, b string) int { return len(moments[b]) - len(moments[a]) })
	all := map[string]series{}
	for _, name := range most[:6] {
		times := moments[name]
		slices.SortFunc(times, time.Time.Compare)
		var s series
		for i := 1; i < len(times); i++ {
			if up := times[i].Sub(times[i-1]); up > 0 {
				s.ups = append(s.ups, up)
			}
		}
		all[name] = s
	}
	return all
}

// removals reads when nodes were taken from groups of Spot instances. A training on the whole group loses its steps with each of them.
func removals(t *testing.T, files ...string) map[string]series {
	t.Helper()
	all := map[string]series{}
	for _, file := range files {
		var s series
		var last time.Duration
		for _, row := range table(t, file) {
			ms, err := strconv.ParseInt(row[0], 10, 64)
			if at := time.Duration(ms) * time.Millisecond; err == nil && row[1] == "remove" && at > last {
				s.ups = append(s.ups, at-last)
				last = at
			}
		}
		all[filepath.Base(file)] = s
	}
	return all
}

// lifetimes reads how long each of the Spot TPUs of one project lived, one after the other.
func lifetimes(t *testing.T, file string) (s series) {
	t.Helper()
	rows := table(t, file)
	lived := slices.Index(rows[0], "lifetime_s")
	for _, row := range rows[1:] {
		if seconds, err := strconv.ParseFloat(row[lived], 64); err == nil {
			s.ups = append(s.ups, time.Duration(seconds*float64(time.Second)))
		}
	}
	return s
}

func table(t *testing.T, file string) [][]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return rows
}

// drawn are losses at random.
func drawn(n int, between float64) (s series) {
	r := rand.New(rand.NewPCG(3, 64)) //nolint:gosec // reproducible numbers
	for range n {
		s.ups = append(s.ups, time.Duration(between*r.ExpFloat64()))
	}
	return s
}
