package incident

import (
	_ "embed"
	"strings"
)

//go:embed transitions.txt
var transitions string

// Transitions are the transitions that a test has seen the machine take: from a workload's phase to its next phase, or to the
// outcome of the incident that ends there.
func Transitions() (table [][2]string) {
	for row := range strings.Lines(transitions) {
		f := strings.Fields(row)
		table = append(table, [2]string{f[0], f[1]})
	}
	return table
}
