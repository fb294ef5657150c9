// Package recent remembers what was made of something that is read again and again and is seldom another one each time, within a
// bound of bytes.
package recent

import "sync"

// Bound is how many bytes the originals of all that a Memory keeps have together; what was made of them is of that order.
const Bound = 32 << 20

// Memory keeps the value that was put last under each key, and lets go of any others where that would be more than Bound. The
// zero value is empty. It is safe for concurrent use; what it keeps is shared, and must not be changed.
type Memory[K comparable, V any] struct {
	mu    sync.Mutex
	of    map[K]kept[V]
	bytes int
}

type kept[V any] struct {
	value V
	bytes int
}

// Get returns what was put last under a key.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.of[key]
	return k.value, ok
}

// Put keeps a value whose original has that many bytes.
func (m *Memory[K, V]) Put(key K, value V, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[K]kept[V]{}
	}
	m.bytes += bytes - m.of[key].bytes
	m.of[key] = kept[V]{value, bytes}
	for other, o := range m.of { // any will do
		if m.bytes <= Bound {
			return
		}
		if other != key {
			m.bytes -= o.bytes
			delete(m.of, other)
		}
	}
}
