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
