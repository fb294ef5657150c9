package clustertest

import (
	"net/http"
)

const tpuSlices = "/apis/accelerator.gke.io/v1beta1/slices"

// slice makes a Slice that is this case's.
func (s scene) slice(name string) string {
	s.t.Helper()
	name = s.ns + "-" + name
	s.do(http.MethodPost, tpuSlices, object{
		"apiVersion": "accelerator.gke.io/v1beta1", "kind": "Slice",
		"metadata": object{"name": name, "annotations": object{
			"slice.accelerator.gke.io/owner-workload-namespace": s.ns, "slice.accelerator.gke.io/owner-workload-name": "llama",
		}},
		"spec": object{"type": "tpu7x", "topology": "4x4x8", "partitionIds": []any{"a", "b"}},
	})
	s.t.Cleanup(func() { s.try(http.MethodDelete, tpuSlices+"/"+name, nil) })
	return name
}

// listed is a Slice as the list of all has it; nil is none.
func (s scene) listed(name string) object {
	s.t.Helper()
	for _, o := range list(s.read(tpuSlices), "items") {
		if m, ok := o.(object); ok && text(m, "metadata", "name") == name {
			return m
		}
	}
	return nil
}

// theSlices are the promises about TPU7x.
func theSlices() map[string]func(scene) {
	return map[string]func(scene){
		"slice: it is listed with its owner": func(s scene) {
			o := s.listed(s.slice("a"))
			if text(o, "metadata", "annotations", "slice.accelerator.gke.io/owner-workload-namespace") != s.ns ||
				text(o, "metadata", "annotations", "slice.accelerator.gke.io/owner-workload-name") != "llama" || text(o, "kind") != "Slice" {
				s.t.Errorf("%v", o)
			}
		},
		"slice: it belongs to no namespace": func(s scene) {
			name := s.slice("a")
			if ns := text(s.read(tpuSlices+"/"+name), "metadata", "namespace"); ns != "" {
				s.t.Errorf("it is in %q", ns)
			}
			s.refused(s.try(http.MethodGet, "/apis/accelerator.gke.io/v1beta1/namespaces/"+s.ns+"/slices", nil), http.StatusNotFound, "NotFound")
		},
		"slice: its condition is a part of its status": func(s scene) {
			name := s.slice("a")
			ready := object{"status": object{"conditions": []any{object{"type": "Ready", "status": "False", "reason": "FAILED", "message": "", "lastTransitionTime": "2026-11-12T02:00:00Z"}}}}
			s.do(http.MethodPatch, tpuSlices+"/"+name, ready)
			if o := s.listed(name); conditionOf(o, "Ready") != nil {
				s.t.Errorf("the object took its status: %v", o)
			}
			s.do(http.MethodPatch, tpuSlices+"/"+name+"/status", ready)
			if o := s.listed(name); text(conditionOf(o, "Ready"), "reason") != "FAILED" || text(o, "spec", "type") != "tpu7x" {
				s.t.Errorf("%v", o)
			}
		},
	}
}
