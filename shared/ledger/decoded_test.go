package ledger

import (
	"fmt"
	"strings"
	"testing"
)

// TestAWorkloadIsDecodedAnewOnlyWhereItsDocumentChanged: a remembered document never answers for another one, nor for one of
// a later schema.
func TestAWorkloadIsDecodedAnewOnlyWhereItsDocumentChanged(t *testing.T) {
	var l Ledger
	body := func(id int, label string) string {
		return fmt.Sprintf(`{"id":"w%d","label":%q}`, id, label) + strings.Repeat(" ", 1<<10)
	}
	for _, label := range []string{"as it was", "as it was", "changed"} {
		for id := range 3 {
			r := Record{Schema: 1, Body: body(id, label)}
			w, err := l.workloadOf(fmt.Sprint("w", id), r)
			if err != nil || w.ID != fmt.Sprint("w", id) || w.Label != label {
				t.Fatalf("w%d is %s, %q, want %q: %v", id, w.ID, w.Label, label, err)
			}
			if kept, ok := l.read.Get(fmt.Sprint("w", id)); !ok || kept.body != r.Body || kept.workload.Label != label {
				t.Errorf("of w%d is kept %q, %v", id, kept.body, ok)
			}
		}
	}
	if w, err := l.workloadOf("w1", Record{Schema: 1 << 20, Body: body(1, "changed")}); err == nil {
		t.Errorf("a document of a later schema reads as %q", w.Label)
	}
	if _, err := l.workloadOf("w1", Record{Schema: 1, Body: "{"}); err == nil {
		t.Error("a document that is torn reads as it did before")
	}
}
