package checkpoint

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTheLawsOfALease lets Pitstop, crews and strangers write into one directory in any order, while the object is deleted and
// spoiled. A lease that can be read gives way only to a newer one of its own workload. One that is gone, or that cannot be
// parsed, forbids nothing: whom the last one named, writes it again.
func TestTheLawsOfALease(t *testing.T) {
	r := overTransport(t)
	rapid.Check(t, func(t *rapid.T) {
		dir := fmt.Sprintf("%s/%d", r.dir, rapid.Int64().Draw(t, "directory"))
		uri := Join(dir, LeaseName)
		if o, err := r.store.Get(t.Context(), uri); err == nil {
			if err := r.store.Delete(t.Context(), uri, o.Generation); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			before, err := r.store.Get(t.Context(), uri)
			there, unread := DecodeLease(before.Content)
			readable := err == nil && unread == nil
			switch rapid.SampledFrom([]string{"write", "write", "write", "delete", "spoil"}).Draw(t, "step") {
			case "delete":
				if err == nil {
					if err := r.store.Delete(t.Context(), uri, before.Generation); err != nil {
						t.Fatal(err)
					}
				}
				continue
			case "spoil":
				spoilt := rapid.SampledFrom([]string{"", "{", "[]", "\x00"}).Draw(t, "content")
				if _, err := r.store.Put(t.Context(), uri, []byte(spoilt), before.Generation); err != nil {
					t.Fatal(err)
				}
				continue
			}
			l := lease(rapid.Int64Range(0, 3).Draw(t, "epoch"), rapid.IntRange(1, 3).Draw(t, "attempt"), rapid.SampledFrom([]string{"7711", "7712"}).Draw(t, "life"))
			l.Workload = rapid.SampledFrom([]string{"demo/llama-8b", "demo/node", "dev/llama-8b"}).Draw(t, "workload")
			err = WriteLease(t.Context(), r.store, dir, l)
			after, gerr := r.store.Get(t.Context(), uri)
			if gerr != nil {
				t.Fatal(gerr)
			}
			if err != nil {
				if !readable {
					t.Fatalf("%q is there, and %+v is refused: %v", before.Content, l, err)
				}
				if after.Generation != before.Generation || !errors.Is(err, ErrStale) && !errors.Is(err, ErrForeign) {
					t.Fatalf("refused with %v, and generation %d became %d", err, before.Generation, after.Generation)
				}
				continue
			}
			if got, err := DecodeLease(after.Content); err != nil || !got.same(l) {
				t.Fatalf("%+v was written, and %+v is there, %v", l, got, err)
			}
			newer := l.Epoch > there.Epoch || l.Epoch == there.Epoch && l.Attempt > there.Attempt
			project := func(l Lease) string { return strings.Split(l.Workload, "/")[0] }
			switch {
			case !readable || there.same(l):
			case !newer:
				t.Fatalf("%+v gave way to %+v", there, l)
			case project(there) != project(l), there.Workload != l.Workload && (there.Epoch > 0 || l.Epoch == 0):
				t.Fatalf("the lease of %s gave way to that of %s: %+v, %+v", there.Workload, l.Workload, there, l)
			}
		}
	})
}
