//go:build unix

package crew

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"pitstop.internal/shared/checkpoint"
)

// memory is a bucket without a network. A deleted object that is made again has a higher generation, as in Cloud Storage.
type memory struct {
	mu         sync.Mutex
	objects    map[string]checkpoint.Object
	generation int64
}

func newMemory() *memory { return &memory{objects: map[string]checkpoint.Object{}} }

func refusal(op, uri string, kind error) error {
	return &checkpoint.Error{Op: op, URI: uri, Kind: kind, Text: "simulated"}
}

// Get implements checkpoint.Store.
func (m *memory) Get(_ context.Context, uri string) (checkpoint.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[uri]
	if !ok {
		return o, refusal("get", uri, checkpoint.ErrNotExist)
	}
	return o, nil
}

// List implements checkpoint.Store.
func (m *memory) List(_ context.Context, dir string, o checkpoint.ListOptions) (l checkpoint.Listing, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]checkpoint.Entry{}
	for uri, object := range m.objects {
		name, ok := strings.CutPrefix(uri, dir+"/")
		if !ok || !strings.HasPrefix(name, o.Prefix) {
			continue
		}
		e := checkpoint.Entry{Name: name, Size: int64(len(object.Content)), Updated: object.Updated, Generation: object.Generation}
		if first, _, deeper := strings.Cut(name, "/"); deeper && !o.Recursive {
			e = checkpoint.Entry{Name: first, Dir: true}
		}
		found[e.Name] = e
	}
	if len(found) == 0 && o.Prefix == "" {
		return l, refusal("list", dir, checkpoint.ErrNotExist)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		l.Entries = append(l.Entries, found[name])
	}
	return l, nil
}

// Put implements checkpoint.Store.
func (m *memory) Put(_ context.Context, uri string, content []byte, generation int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects[uri].Generation != generation {
		return 0, refusal("put", uri, checkpoint.ErrConflict)
	}
	m.generation++
	m.objects[uri] = checkpoint.Object{Content: content, Generation: m.generation, Updated: time.Now()}
	return m.generation, nil
}

// Delete implements checkpoint.Store.
func (m *memory) Delete(_ context.Context, uri string, generation int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch o, ok := m.objects[uri]; {
	case !ok:
		return refusal("delete", uri, checkpoint.ErrNotExist)
	case o.Generation != generation:
		return refusal("delete", uri, checkpoint.ErrConflict)
	}
	delete(m.objects, uri)
	return nil
}

// put replaces an object as a person does; nil removes it.
func (m *memory) put(uri string, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if content == nil {
		delete(m.objects, uri)
		return
	}
	m.generation++
	m.objects[uri] = checkpoint.Object{Content: content, Generation: m.generation, Updated: time.Now()}
}

// far is a bucket behind a network: each call takes a while before it has its effect, and after it. It can be cut.
type far struct {
	*memory
	mu           sync.Mutex
	chance       *rand.Rand
	cut, noWrite bool
}

func (f *far) travel(ctx context.Context, op, uri string, writes bool) error {
	f.mu.Lock()
	d := time.Duration(5+f.chance.IntN(60)) * time.Millisecond
	if f.chance.IntN(50) == 0 {
		d = time.Duration(f.chance.IntN(4000)) * time.Millisecond
	}
	f.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return refusal(op, uri, checkpoint.ErrTransient)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut {
		return refusal(op, uri, checkpoint.ErrTransient)
	}
	if f.noWrite && writes {
		return refusal(op, uri, checkpoint.ErrPermission)
	}
	return nil
}

func (f *far) set(change func(*far)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// Get implements checkpoint.Store.
func (f *far) Get(ctx context.Context, uri string) (o checkpoint.Object, err error) {
	if err := f.travel(ctx, "get", uri, false); err != nil {
		return o, err
	}
	o, err = f.memory.Get(ctx, uri)
	if back := f.travel(ctx, "get", uri, false); back != nil {
		return checkpoint.Object{}, back
	}
	return o, err
}

// List implements checkpoint.Store.
func (f *far) List(ctx context.Context, dir string, o checkpoint.ListOptions) (l checkpoint.Listing, err error) {
	if err := f.travel(ctx, "list", dir, false); err != nil {
		return l, err
	}
	return f.memory.List(ctx, dir, o)
}

// Put implements checkpoint.Store.
func (f *far) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	if err := f.travel(ctx, "put", uri, true); err != nil {
		return 0, err
	}
	made, err := f.memory.Put(ctx, uri, content, generation)
	if back := f.travel(ctx, "put", uri, true); back != nil {
		return 0, back
	}
	return made, err
}

// Delete implements checkpoint.Store.
func (f *far) Delete(ctx context.Context, uri string, generation int64) error {
	if err := f.travel(ctx, "delete", uri, true); err != nil {
		return err
	}
	return f.memory.Delete(ctx, uri, generation)
}
