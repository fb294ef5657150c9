package incident_test

import "testing"

// TestACleanUpKnowsWhatIsWhose: what failed with its outcome open is cleaned up if it comes all the same; what its owner has made or deleted is theirs.
func TestACleanUpKnowsWhatIsWhose(t *testing.T) {
	t.Parallel()
	multi(t, true).plays([][2]string{
		{"a read lost", "deleting: delete a"},
		{"b read lost", "deleting: delete a, delete b"},
		{"do", "deleting"},
		{"a read gone", "deleting"},
		{"b read gone", "creating: create a, create b"},
		{"intend create a", "creating"},
		{"intend create b", "creating"},
		{"b owner deletes", "clearing"},
		{"transient create a", "clearing"},
		{"a read ours", "clearing: delete a"},
	})
	const made = "preempted, read gone, do, "
	for path, want := range map[string]string{
		made + "read ours made, cancelled, read foreign": "released",
		made + "read ours, owner deletes":                "released",
	} {
		if n := at(t, "everything", true, path); n.stands(nil) != want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}
