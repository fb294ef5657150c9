package recent

import "testing"

// TestAsMuchIsKeptAsFits: a changed value replaces itself, and displaces others only if it needs their room.
func TestAsMuchIsKeptAsFits(t *testing.T) {
	const large = 1 << 20
	const many, full = 3000, Bound / large
	for name, c := range map[string]struct {
		known, size int
		key         int
		to          int
		want        int
	}{
		"many small ones":                    {many, 1 << 10, many, 1 << 10, many + 1},
		"one of many has changed":            {many, 1 << 10, 7, 1<<10 + 1, many},
		"where it is full, one has changed":  {full, large, 7, large, full},
		"where it is full, one has shrunk":   {full, large, 7, 1 << 10, full},
		"where it is full, another is put":   {full, large, full, large, full},
		"where it is full, one has grown":    {full + 1, Bound / (full + 1), 7, large, full},
		"one that is larger than all others": {2, 1 << 10, 2, Bound, 1},
		"one that is larger than the bound":  {2, 1 << 10, 2, Bound + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory[int, string]
			if v, ok := m.Get(c.key); ok {
				t.Fatalf("an empty one keeps %q", v)
			}
			for key := range c.known {
				m.Put(key, "as it was", c.size)
			}
			m.Put(c.key, "changed", c.to)
			sum, others := 0, 0
			for key, k := range m.of {
				sum += k.bytes
				if v, ok := m.Get(key); ok && v == "as it was" {
					others++
				}
			}
			if v, ok := m.Get(c.key); !ok || v != "changed" || len(m.of) != c.want || others != c.want-1 || sum != m.bytes || sum > max(Bound, c.to) {
				t.Errorf("%d are kept, want %d; the one that was put: %q, %v; %d bytes, counted as %d", len(m.of), c.want, v, ok, sum, m.bytes)
			}
		})
	}
}

func TestWhatIsLargerThanTheBoundGoesWithTheNext(t *testing.T) {
	var m Memory[string, int]
	m.Put("large", 1, Bound+1)
	m.Put("next", 2, 1)
	if _, ok := m.Get("large"); ok {
		t.Error("a value larger than the bound is kept next to another")
	}
	if v, ok := m.Get("next"); !ok || v != 2 {
		t.Errorf("the latest value is %d, %v", v, ok)
	}
}
