package interval_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pitstop.internal/shared/interval"
)

// TestBestIsWhatDalyPublished holds the formula against the optima in the captions of Daly's figures: a save takes 5 minutes.
func TestBestIsWhatDalyPublished(t *testing.T) {
	for between, want := range map[time.Duration]float64{24 * time.Hour: 116.69, 6 * time.Hour: 56.71, 15 * time.Minute: 9.14} {
		if got := interval.Best(5*time.Minute, between).Minutes(); math.Abs(got-want) > 0.005 {
			t.Errorf("with a loss every %v: %.2f minutes, want %.2f", between, got, want)
		}
	}
	if got := interval.Best(3*time.Hour, time.Hour); got != time.Hour {
		t.Errorf("a save that takes longer than losses leave: %v, want the time between losses", got)
	}
}

// TestNoIntervalIsMuchBetterThanBest tries a grid of others, for drawn numbers.
func TestNoIntervalIsMuchBetterThanBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible numbers
	for range 2000 {
		save := time.Duration(1+r.IntN(600)) * time.Second
		between := time.Duration(math.Exp(math.Log(4)+r.Float64()*math.Log(5_000)) * float64(save))
		back := time.Duration(r.IntN(3_600)) * time.Second
		best := interval.Best(save, between)
		reached := interval.Goodput(best, save, between, back)
		if reached <= 0 || reached > 1 {
			t.Fatalf("save %v, a loss every %v: a goodput of %v", save, between, reached)
		}
		for factor := 0.05; factor < 20; factor *= 1.05 {
			if other := interval.Goodput(time.Duration(factor*float64(best)), save, between, back); other > reached+0.001 {
				t.Fatalf("save %v, a loss every %v: %.2f times %v reaches %.4f, and it only %.4f", save, between, factor, best, other, reached)
			}
		}
	}
}

// TestGoodputIsThatOfASimulation: with these losses at random, 4e8 seconds of training reached 86.46 and 68.20 percent.
func TestGoodputIsThatOfASimulation(t *testing.T) {
	const restore = 2 * time.Minute
	for _, c := range []struct {
		between, save time.Duration
		want          float64
	}{{3 * time.Hour, time.Minute, 0.8646}, {time.Hour, 2 * time.Minute, 0.6820}} {
		every := time.Duration(math.Sqrt(2 * float64(c.save) * float64(c.between)))
		// A loss may also strike while the training restores, which the formula leaves to the caller.
		got := interval.Goodput(every, c.save, c.between, 5*time.Minute) * math.Exp(-restore.Seconds()/c.between.Seconds())
		if math.Abs(got-c.want) > 0.001 {
			t.Errorf("with a loss every %v: %.4f, want %.4f", c.between, got, c.want)
		}
	}
}

func TestAHistoryOutweighsThePrior(t *testing.T) {
	for _, c := range []struct {
		losses  int
		trained time.Duration
		want    time.Duration
	}{
		{0, 0, 12 * time.Hour},
		{0, -time.Hour, 12 * time.Hour},
		{0, 12 * time.Hour, 24 * time.Hour},
		{1, 12 * time.Hour, 12 * time.Hour},
		{99, 288 * time.Hour, 3 * time.Hour},
	} {
		if got := interval.BetweenLosses(c.losses, c.trained); got != c.want {
			t.Errorf("%d losses in %v: one in %v, want %v", c.losses, c.trained, got, c.want)
		}
	}
}

// TestTheBeliefHoldsTheTruth draws rates of loss from the prior, and histories from each rate: nine in ten gains lie where the advice
// says.
func TestTheBeliefHoldsTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9)) //nolint:gosec // reproducible numbers
	const n = 2000
	held := 0
	for range n {
		between := time.Duration(float64(interval.Prior) / r.ExpFloat64())
		trained := time.Duration(r.Int64N(int64(30 * 24 * time.Hour)))
		losses := 0
		for at := r.ExpFloat64() * float64(between); at < float64(trained); at += r.ExpFloat64() * float64(between) {
			losses++
		}
		record := interval.Record{Losses: losses, Trained: trained, Back: 10 * time.Minute, Save: time.Minute, Every: 3 * time.Hour}
		a := record.Weigh(30 * time.Minute)
		gained := 100 * (interval.Goodput(29*time.Minute, time.Minute, between, record.Back) - interval.Goodput(179*time.Minute, time.Minute, between, record.Back))
		if a.Least-0.01 <= gained && gained <= a.Most+0.01 {
			held++
		}
		if a.Gain < a.Least || a.Gain > a.Most {
			t.Fatalf("%+v", a)
		}
	}
	if share := float64(held) / n; share < 0.88 || share > 0.97 {
		t.Errorf("%.3f of the gains lie in the interval of belief; want about 0.9", share)
	}
}
