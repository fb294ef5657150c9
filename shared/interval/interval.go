// Package interval says how often a training should save: often enough to lose little with each loss, and seldom enough to
// spend little on saving. It does no I/O.
package interval

import (
	"math"
	"time"
)

// Prior is the belief about a workload without a history: one loss in this time. It counts like an observation, so a short
// history changes it little and a long one makes it vanish.
const Prior = 12 * time.Hour

// BetweenLosses estimates the mean time between losses from the losses during a time of training, and from Prior.
func BetweenLosses(losses int, trained time.Duration) time.Duration {
	return (Prior + max(0, trained)) / time.Duration(1+max(0, losses))
}

// Best is the time of training between two saves that loses least, by Daly's higher-order formula. Save is how long one save
// blocks the training, between the mean time between two losses. The time to come back does not matter for it.
// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006.
// https://doi.org/10.1016/j.future.2004.11.016
func Best(save, between time.Duration) time.Duration {
	c, m := save.Seconds(), between.Seconds()
	if c >= 2*m {
		return between
	}
	half := c / (2 * m)
	return seconds(math.Sqrt(2*c*m)*(1+math.Sqrt(half)/3+half/9) - c)
}

// shape is that of the Weibull distribution of lifetimes after which Next stretches: losses come sooner after a start than later.
const shape = 0.65

// Next is the time of training until the next save for a training that has run for so long since its start, where losses come in
// bursts. It is short after a start, and stretches.
func Next(age, save, between time.Duration) time.Duration {
	scale := between.Seconds() / math.Gamma(1+1/shape)
	next := Best(save, between).Seconds()
	for range 4 { // the hazard is that in the middle of the time until the save
		middle := age.Seconds() + next/2
		hazard := shape / scale * math.Pow(middle/scale, shape-1)
		next = math.Sqrt(2 * save.Seconds() / hazard)
	}
	return min(seconds(next), between)
}

// Bursty reports whether the times between losses differ so much that Next gains something.
func Bursty(lifetimes []time.Duration) bool {
	if len(lifetimes) < 30 {
		return false
	}
	var sum, squares float64
	for _, l := range lifetimes {
		sum += l.Seconds()
		squares += l.Seconds() * l.Seconds()
	}
	mean := sum / float64(len(lifetimes))
	return math.Sqrt(squares/float64(len(lifetimes))-mean*mean) > 1.3*mean
}

// Record is what is known of a training's losses and saves.
type Record struct {
	// Losses without a save right before them fell in Trained. Back is the time from a loss until it trains again.
	Losses        int
	Trained, Back time.Duration
	// Save is how long one save blocks, and Every the time from one save to the next.
	Save, Every time.Duration
}

// Advice is another time between two saves, and what it gains in points of goodput. Of the rates of loss that the record allows, nine
// in ten gain between Least and Most.
type Advice struct {
	Every             time.Duration
	Gain, Least, Most float64
}

// rates is how many rates of loss an advice is weighed against, from the 5th to the 95th percent of the belief.
const rates = 19

// Weigh compares the time between two saves in use with another one.
func (r Record) Weigh(every time.Duration) Advice {
	a := Advice{Every: every, Least: math.Inf(1), Most: math.Inf(-1)}
	for i := range rates {
		gain := 100 * (r.reached(every, i) - r.reached(r.Every, i))
		a.Gain += gain / rates
		a.Least, a.Most = min(a.Least, gain), max(a.Most, gain)
	}
	return a
}

// Reached is the share of the time that a time between two saves makes productive: the likely one, and the bounds in which nine in ten of the
// rates of loss lie that the record allows.
func (r Record) Reached(every time.Duration) (least, likely, most float64) {
	return r.reached(every, rates-1), r.reached(every, rates/2), r.reached(every, 0)
}

// reached is the share at one of the rates, the lowest first.
func (r Record) reached(every time.Duration, rate int) float64 {
	return Goodput(max(every-r.Save, time.Second), r.Save, r.between(float64(rate+1)/(rates+1)), r.Back)
}

// between is the time between losses at a quantile of the belief about their rate. After the record that is a Gamma distribution; its
// quantiles are those of Wilson and Hilferty, 1931.
func (r Record) between(quantile float64) time.Duration {
	n := float64(1 + max(0, r.Losses))
	z := math.Sqrt2 * math.Erfinv(2*quantile-1)
	rate := n * math.Pow(max(0.01, 1-1/(9*n)+z/(3*math.Sqrt(n))), 3)
	return seconds((Prior + max(0, r.Trained)).Seconds() / rate)
}

// Goodput is the share of the time in which a training makes steps that stay, if losses come at random. Every is its time
// between two saves, and back the time from a loss until it trains again.
func Goodput(every, save, between, back time.Duration) float64 {
	t, c, m := every.Seconds(), save.Seconds(), between.Seconds()
	if t <= 0 || m <= 0 {
		return 0
	}
	return t / ((m + back.Seconds()) * math.Expm1((t+c)/m))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
