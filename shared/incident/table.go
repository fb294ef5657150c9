package incident

import (
	_ "embed"
	"strings"
)

//go:embed doc.go
var documentation string

// Transitions are those of the table in the package documentation, which a test holds against what the machine does: from
// where a workload stands to where it stands then, or to the outcome of the incident that ends there.
func Transitions() (table [][2]string) {
	_, rows, _ := strings.Cut(documentation, "from         to           on\n")
	rows, _, _ = strings.Cut(rows, "\n//\n")
	for row := range strings.SplitSeq(rows, "\n") {
		if f := strings.Fields(strings.TrimPrefix(row, "//")); len(f) > 2 {
			table = append(table, [2]string{f[0], f[1]})
		}
	}
	return table
}
