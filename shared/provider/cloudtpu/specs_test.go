package cloudtpu

import (
	"strings"
	"testing"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/provider"
)

// TestASpecificationIsMadeAnewOnlyWhereItsSliceChanged: a remembered specification never answers for another slice, nor for
// a changed one.
func TestASpecificationIsMadeAnewOnlyWhereItsSliceChanged(t *testing.T) {
	var k specs
	hashes := map[string]string{}
	for _, fill := range []string{"a", "a", "b"} {
		for _, name := range []string{"n1", "n2"} {
			r := provider.Ref{Project: "p", Zone: "z", Name: name}
			n := full()
			n.Metadata = map[string]string{"startup-script": strings.Repeat(fill, 256<<10), "of": name}
			s, err := k.sliceOf(r, n, nil)
			hash := s.SpecHash + s.ValuesSum
			if err != nil || s.Bare || s.Values["startup-script"] != n.Metadata["startup-script"] || s.Values["of"] != name {
				t.Fatalf("%s: %s, %v, %v", r, hash, s.Bare, err)
			}
			if again, err := k.sliceOf(r, n, nil); err != nil || again.SpecHash+again.ValuesSum != hash {
				t.Errorf("read again, %s is %s: %v", r, again.SpecHash, err)
			}
			if last, ok := hashes[name+fill]; ok && last != hash {
				t.Errorf("%s is %s, and was %s", r, hash, last)
			}
			hashes[name+fill] = hash
			if kept, ok := k.Get(r); !ok || kept.order.name+kept.order.sum != hash || kept.node != n {
				t.Errorf("of %s is kept %s, %v", r, kept.order.name, ok)
			}
		}
	}
	if len(hashes) != 4 || hashes["n1a"] == hashes["n1b"] || hashes["n1a"] == hashes["n2a"] {
		t.Errorf("what differs has one hash: %v", hashes)
	}
	r, n := provider.Ref{Project: "p", Zone: "z", Name: "n1"}, full()
	if alone, err := k.specOf(r, n, nil); err != nil {
		t.Error(err)
	} else if queued, err := k.specOf(r, n, &api.QueuedResource{Spot: &api.Spot{}}); err != nil || queued.name == alone.name {
		t.Errorf("ordered as a queued resource, it is still %s: %v", alone.name, err)
	}
}
