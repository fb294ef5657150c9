// Package recent remembers values derived from documents that are read again and again and seldom change. A limit in bytes
// bounds the memory.
package recent

import "sync"

// Bound is the limit for the total size of the originals in a Memory, in bytes. The derived values are about as large.
const Bound = 32 << 20

// Memory keeps the latest value under each key, and drops any others if they exceed Bound. The zero value is empty. It is
// safe for concurrent use. The values are shared and must not be changed.
type Memory[K comparable, V any] struct {
	mu    sync.Mutex
	of    map[K]kept[V]
	bytes int
}

type kept[V any] struct {
	value V
	bytes int
}

// Get returns the latest value under a key.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.of[key]
	return k.value, ok
}

// Put keeps a value; bytes is the size of its original.
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
