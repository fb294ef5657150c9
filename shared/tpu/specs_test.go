package tpu

import (
	"strconv"
	"strings"
	"testing"
)

// TestOfSpecificationsAsMuchIsKeptAsFits: a slice that has changed takes its own place, and none but what it needs.
func TestOfSpecificationsAsMuchIsKeptAsFits(t *testing.T) {
	const script = 256 << 10
	for name, c := range map[string]struct {
		known, size int
		slice       int
		to          int
		want        int // at least
		all         bool
	}{
		"many small ones":                   {4200, 10, 4200, 10, 4201, true},
		"one of many has changed":           {4200, 10, 7, 11, 4200, true},
		"where it is full, one has changed": {maxRemembered / (script + 1<<10), script, 7, script, maxRemembered / (script + 1<<10), true},
		"where it is full, another is read": {maxRemembered/script + 10, script, 7, script, maxRemembered/script - 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			var k specs
			read := func(slice, size int, fill string) Ref {
				t.Helper()
				r := Ref{Project: "p", Zone: "z", Name: "n" + strconv.Itoa(slice)}
				n := full()
				n.Metadata = map[string]string{"startup-script": strings.Repeat(fill, size)}
				spec, hash, _, err := k.specOf(r, n, nil)
				if err != nil || hash == "" || !strings.Contains(string(spec), strings.Repeat(fill, size)) {
					t.Fatalf("%s: %s, %v", r, hash, err)
				}
				return r
			}
			for slice := range c.known {
				read(slice, c.size, "a")
			}
			r := read(c.slice, c.to, "b")
			sum := 0
			for _, m := range k.of {
				sum += len(m.spec)
			}
			if _, ok := k.of[r]; !ok || len(k.of) < c.want || c.all && len(k.of) != c.want || sum != k.bytes || sum > maxRemembered {
				t.Errorf("%d are kept, want %d; the read one: %v; %d bytes, counted as %d", len(k.of), c.want, ok, sum, k.bytes)
			}
		})
	}
}
