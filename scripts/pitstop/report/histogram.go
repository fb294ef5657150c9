package report

import "math"

// histogram counts spans of time in classes that are 10 % apart, so that what it holds does not grow with what it counts.
type histogram struct {
	counts map[int]int
	n      int
}

const classWidth = 0.0953101798 // ln 1.1

func (h *histogram) add(seconds float64) {
	if h.counts == nil {
		h.counts = map[int]int{}
	}
	h.counts[int(math.Round(math.Log(max(seconds, 1))/classWidth))]++
	h.n++
}

// percentile is the middle of the class below which p percent lie: it is off by 5 % at the most.
func (h *histogram) percentile(p int) float64 {
	left := (h.n*p + 99) / 100
	if h.n == 0 {
		return 0
	}
	for class := 0; ; class++ { // spans of time are bounded, so there are a few hundred classes
		if left -= h.counts[class]; left <= 0 {
			return math.Exp(float64(class) * classWidth)
		}
	}
}
