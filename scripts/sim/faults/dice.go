package faults

import (
	"math"
	"math/rand/v2"
	"time"
)

// Dice are a hash of a seed and of the subject of the draw. The same subject draws the same, whatever is drawn before it, so
// leaving out or adding draws shifts no other. One draw uses one value, and each draw has a word of its own.
type Dice uint64

// Of FNV-1a and of SplitMix64.
const (
	prime  = 1099511628211
	golden = 0x9e3779b97f4a7c15
)

// NewDice are those of a seed.
func NewDice(seed uint64) Dice { return Dice(seed).nth(0) }

// Of are the dice of what these words name.
func (d Dice) Of(words ...string) Dice {
	for _, word := range words {
		for i := range len(word) {
			d = (d ^ Dice(word[i])) * prime
		}
		d = (d ^ 0xff) * prime // no byte of UTF-8: "ab", "c" are other words than "a", "bc"
	}
	return d
}

// nth are those of the nth time that the same thing comes up.
func (d Dice) nth(n int) Dice {
	return Dice((d + Dice(n+1)*golden).bits()) //nolint:gosec // any bits will do
}

// bits mixes the hash, so that all of its bits depend on all that went into it.
func (d Dice) bits() uint64 {
	z := uint64(d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float is a number from 0 up to 1.
func (d Dice) float() float64 { return float64(d.bits()>>11) / (1 << 53) }

// intN is a number from 0 up to n.
func (d Dice) intN(n int) int { return int(d.bits() % uint64(n)) } //nolint:gosec // n is positive, and values below it fit

// between is a time from low to high.
func (d Dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.bits()%uint64(high-low+1)) //nolint:gosec // likewise
}

// magnitude is a time from low to high, each magnitude as likely as another.
func (d Dice) magnitude(low, high time.Duration) time.Duration {
	return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), d.float()))
}

// Rand draws more than one number.
func (d Dice) Rand() *rand.Rand { return rand.New(rand.NewPCG(uint64(d), golden)) } //nolint:gosec // a simulation has to repeat itself

// turns count how often the same thing has come up.
type turns map[Dice]int

// next are the dice of the next time.
func (t turns) next(d Dice) Dice {
	t[d]++
	return d.nth(t[d])
}
