package ledger

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/go-json-experiment/json"
)

// Memory keeps the values of documents, so that each version of a document is decoded once for all its readers. It is for stores
// in memory, which would otherwise spend their time on decoding.
//
// Values are shared: a reader who wants to change one changes a copy. Now and then a read decodes the document again and compares.
// A difference ends in a panic, there and at every later Check, because nothing that was read since can be trusted.
type Memory struct {
	every int64
	reads atomic.Int64
	wrong atomic.Pointer[string]
}

// NewMemory returns a memory of which every nth read of a kept value is compared with its document.
func NewMemory(nth int64) *Memory { return &Memory{every: nth} }

// Place returns the place for the value of a version of a document.
func (m *Memory) Place() *Decoded { return &Decoded{of: m} }

// Check panics if a value has differed from its document. A store calls it first in every call, because the first panic may
// have been caught.
func (m *Memory) Check() {
	if wrong := m.wrong.Load(); wrong != nil {
		panic(*wrong)
	}
}

// Decoded is the place for the value of one version of a document.
type Decoded struct {
	of    *Memory
	value atomic.Pointer[any]
}

// Value is the value in the body of a document, whatever its schema. It may be shared; see Memory.
func Value[T any](r Record) (T, error) {
	if r.Decoded == nil {
		return unmarshal[T](r)
	}
	kept := r.Decoded.value.Load()
	if kept == nil {
		v, err := unmarshal[T](r)
		if err == nil {
			value := any(v)
			r.Decoded.value.CompareAndSwap(nil, &value)
		}
		return v, err
	}
	if r.Decoded.of.reads.Add(1)%r.Decoded.of.every == 0 {
		r.Decoded.compare(*kept, r)
	}
	if v, ok := (*kept).(T); ok {
		return v, nil
	}
	return unmarshal[T](r) // a reader with a type of its own
}

func unmarshal[T any](r Record) (v T, err error) {
	err = json.Unmarshal([]byte(r.Body), &v)
	return v, err
}

// compare decodes a document again, and panics if its value was changed.
func (d *Decoded) compare(kept any, r Record) {
	again := reflect.New(reflect.TypeOf(kept))
	if json.Unmarshal([]byte(r.Body), again.Interface()) == nil && reflect.DeepEqual(kept, again.Elem().Interface()) {
		return
	}
	changed, _ := json.Marshal(kept, json.Deterministic(true)) //nolint:errcheck // it only explains
	wrong := fmt.Sprintf("ledger: the shared value of document %s was changed in place of a copy\n"+
		"document: %s\n   value: %s", r.ID, r.Body, changed)
	d.of.wrong.CompareAndSwap(nil, &wrong)
	d.of.Check()
}
