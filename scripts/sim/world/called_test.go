package world

import "testing"

func TestCallsAreNamedAsTheAPIsNameThem(t *testing.T) {
	const parent = "/v2alpha1/projects/demo/locations/us-west4-a"
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/v2alpha1/projects/demo/locations", "locations.list"},
		{"GET", parent + "/nodes", "nodes.list"},
		{"GET", parent + "/nodes/llama", "nodes.get"},
		{"POST", parent + "/nodes", "nodes.create"},
		{"PATCH", parent + "/nodes/llama", "nodes.patch"},
		{"DELETE", parent + "/nodes/llama", "nodes.delete"},
		{"POST", parent + "/nodes/llama:performMaintenance", "nodes.performMaintenance"},
		{"POST", parent + "/queuedResources", "queuedResources.create"},
		{"DELETE", parent + "/queuedResources/q", "queuedResources.delete"},
		{"GET", parent + "/operations", "operations.list"},
		{"POST", "/v2/entries:list", "entries.list"},
		{"GET", "/storage/v1/b/ckpt", "buckets.get"},
		{"GET", "/storage/v1/b/ckpt/o", "objects.list"},
		{"GET", "/storage/v1/b/ckpt/o/run/100/commit", "objects.get"},
		{"POST", "/upload/storage/v1/b/ckpt/o", "objects.insert"},
		{"DELETE", "/storage/v1/b/ckpt/o/run/lease", "objects.delete"},
	} {
		if got := restMethod(c.method, c.path); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.method, c.path, got, c.want)
		}
	}
}
