//go:build !heart

package incident

import (
	"fmt"
	"strconv"
	"strings"
)

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// size writes a number of bytes.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return count(int(n), "byte")
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// clip cuts a text that is too long for a line.
func clip(s string) string { return clipTo(s, longestText) }

func clipTo(s string, longest int) string {
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "..."
}
