package ledger

import (
	"fmt"
	"strings"
	"testing"
)

// TestOfWhatIsDecodedAsMuchIsKeptAsFits: a workload that has changed takes its own place, and none but what it needs.
func TestOfWhatIsDecodedAsMuchIsKeptAsFits(t *testing.T) {
	const many, full = 3000, maxDecoded / MaxBody
	for name, c := range map[string]struct {
		known, size int
		id          int
		to          int
		want        int
	}{
		"many small ones":                    {many, 1 << 10, many, 1 << 10, many + 1},
		"one of many has changed":            {many, 1 << 10, 7, 1<<10 + 1, many},
		"where it is full, one has changed":  {full, MaxBody, 7, MaxBody, full},
		"where it is full, one has shrunk":   {full, MaxBody, 7, 1 << 10, full},
		"where it is full, another is read":  {full, MaxBody, full, MaxBody, full},
		"where it is full, one has grown":    {full + 1, maxDecoded / (full + 1), 7, MaxBody, full},
		"one that is larger than all others": {2, 1 << 10, 2, maxDecoded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var d decoded
			read := func(id, size int, label string) {
				t.Helper()
				body := fmt.Sprintf(`{"id":"w%d","label":%q}`, id, label)
				body += strings.Repeat(" ", size-len(body))
				w, err := d.workload(fmt.Sprint("w", id), record{Schema: 1, Body: body})
				if err != nil || w.Label != label {
					t.Fatalf("w%d is %q, want %q: %v", id, w.Label, label, err)
				}
			}
			for id := range c.known {
				read(id, c.size, "as it was")
			}
			read(c.id, c.to, "changed")
			sum := 0
			for _, r := range d.of {
				sum += len(r.body)
			}
			if kept, ok := d.of[fmt.Sprint("w", c.id)]; !ok || kept.workload.Label != "changed" || len(d.of) != c.want || sum != d.bytes || sum > maxDecoded {
				t.Errorf("%d are kept, want %d; the read one: %v; %d bytes, counted as %d", len(d.of), c.want, ok, sum, d.bytes)
			}
		})
	}
}
