package goodput

import (
	"math"
	"slices"
)

// histogram holds spans of time: the first ones exactly. Of many it holds the counts of classes that are 2 % apart, so that its
// size is bounded.
type histogram struct {
	few    []float64
	counts map[int]int
	n      int
}

const (
	classWidth = 0.0198026273 // ln 1.02
	mostExact  = 256
)

func class(seconds float64) int { return int(math.Round(math.Log(max(seconds, 1)) / classWidth)) }

func (h *histogram) add(seconds float64) {
	h.n++
	switch {
	case h.counts == nil && len(h.few) < mostExact:
		h.few = append(h.few, seconds)
		return
	case h.counts == nil:
		h.counts = map[int]int{}
		for _, s := range h.few {
			h.counts[class(s)]++
		}
		h.few = nil
	}
	h.counts[class(seconds)]++
}

// percentile is the least span that p percent do not exceed. It is exact for few; else it is the middle of its class, which is
// off by at most 1 %.
func (h *histogram) percentile(p int) float64 {
	left := (h.n*p + 99) / 100
	switch {
	case h.n == 0:
		return 0
	case h.counts == nil:
		return slices.Sorted(slices.Values(h.few))[max(left-1, 0)]
	}
	for c := 0; ; c++ { // spans of time are bounded, so there are some hundred classes
		if left -= h.counts[c]; left <= 0 {
			return math.Exp(float64(c) * classWidth)
		}
	}
}
