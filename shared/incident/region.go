//go:build !heart

package incident

import "fmt"

// Egress describes the cost of training in another region than that of its checkpoints, at a price in dollars for each GiB; 0 means
// an unknown price.
func (w Workload) Egress(price float64) string {
	n := w.Progress.VerifiedBytes
	if n == 0 {
		return "how much a restore reads from there is not known: no checkpoint has been verified"
	}
	text := "a restore reads " + size(n) + " from there, and a save writes as much"
	if price == 0 {
		return text + ", at a price that the policy does not name (egress_price)"
	}
	return text + fmt.Sprintf(": $%.2f each at the policy's price", price*float64(n)/(1<<30))
}
