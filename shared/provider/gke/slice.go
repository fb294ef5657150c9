package gke

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // Kueue names its Workloads by it, and nothing is secret there
	"encoding/hex"
	"strings"
)

// Slice is a Slice of accelerator.gke.io/v1beta1, from which GKE forms the machines of a TPU7x slice. It belongs to no namespace.
// https://cloud.google.com/kubernetes-engine/docs/reference/crds/slice
type Slice struct {
	Meta   `json:"metadata"`
	Status struct {
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

const (
	sliceAPI = "accelerator.gke.io/v1beta1"

	// tpu7x is the accelerator whose slices GKE forms so.
	tpu7x = "tpu7x"

	annotationOwnerNamespace = "slice.accelerator.gke.io/owner-workload-namespace"
	annotationOwnerName      = "slice.accelerator.gke.io/owner-workload-name"
)

// The reasons of the condition Ready of a Slice that a reading knows.
const (
	sliceFailed     = "FAILED"
	sliceDegraded   = "ACTIVE_DEGRADED"
	sliceActivating = "ACTIVATING"
)

func (s Slice) reason() string { return s.Status.Conditions.of("Ready").Reason }

// weight orders Slices by how much they say of their owner; 0 is nothing.
func (s Slice) weight() int {
	return map[string]int{sliceFailed: 3, sliceDegraded: 2, sliceActivating: 1}[s.reason()]
}

// worst are the Slices that say most, by namespace and name of their owners.
func worst(all []Slice) map[string]*Slice {
	of := map[string]*Slice{}
	for i, s := range all {
		name := s.Annotations[annotationOwnerName]
		if name == "" || s.weight() == 0 {
			continue
		}
		owner := s.Annotations[annotationOwnerNamespace] + "/" + name
		of[owner] = worse(of[owner], &all[i])
	}
	return of
}

// worse is the one of two Slices that says more, or else the first by name; nil is none.
func worse(a, b *Slice) *Slice {
	if a == nil || b != nil && cmp.Or(cmp.Compare(b.weight(), a.weight()), strings.Compare(a.Name, b.Name)) > 0 {
		return b
	}
	return a
}

// owners are the names by which Slices may name a Job or JobSet as their owner, with its namespace: its own, and those of its Workload
// in Kueue, which makes the Slices.
func (m Meta) owners(kind, group string) []string {
	sum := sha1.Sum([]byte(kind + "\n" + group + "\n" + m.Name + "\n" + m.UID)) //nolint:gosec // likewise
	workload, end := strings.ToLower(kind)+"-"+m.Name, "-"+hex.EncodeToString(sum[:])[:5]
	all := []string{m.Namespace + "/" + m.Name}
	for _, most := range []int{253, 63} { // the longest name, in Kueue's older and newer versions
		all = append(all, m.Namespace+"/"+workload[:min(len(workload), most-len(end))]+end)
	}
	return all
}

// forms finds the Slice that says most about a slot, among the worst of all owners.
func (s *slot) forms(of map[string]*Slice) {
	if len(of) == 0 {
		return
	}
	find := func(owners []string) (found *Slice) {
		for _, name := range owners {
			found = worse(found, of[name])
		}
		return found
	}
	if s.job != nil {
		s.slice = find(s.job.owners(kindJob, "batch"))
	}
	if s.set != nil {
		if x := worse(s.slice, find(s.set.owners(kindJobSet, "jobset.x-k8s.io"))); x != s.slice {
			s.slice, s.shared = x, true
		}
	}
}

// sliceIs says what the Slice of a slot is; empty is none.
func (s slot) sliceIs() string {
	switch {
	case s.slice == nil:
		return ""
	case s.shared:
		return "the Slice " + s.slice.Name + " of its JobSet is " + s.slice.reason()
	}
	return "its Slice " + s.slice.Name + " is " + s.slice.reason()
}

// sliceTrouble says why the TPU of a slot cannot be used as a whole, as its Slice says it; empty is no trouble.
func (s slot) sliceTrouble() string {
	if s.slice == nil || s.slice.reason() == sliceActivating {
		return ""
	}
	return s.sliceIs()
}
