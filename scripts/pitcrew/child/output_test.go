//go:build unix

package child

import (
	"path/filepath"
	"testing"
)

// TestEachLineWithExamplesCountsOnce: the first one is left out, wherever the pieces of the output are cut.
func TestEachLineWithExamplesCountsOnce(t *testing.T) {
	text := "compiling\n3.5 images/s\n100 images/s\nloss 0.3\n200 images/s\n300 images/s"
	for cut := range len(text) {
		o := newOutput(filepath.Join(t.TempDir(), outputFile), "", "([0-9.]+) images/s")
		rest := o.take(nil, []byte(text[:cut]))
		o.add(o.take(rest, []byte(text[cut:])))
		if o.last.Examples != 200 || o.last.Lines != 3 {
			t.Errorf("cut at %d: %+v", cut, o.last)
		}
	}
	o := newOutput(filepath.Join(t.TempDir(), outputFile), "", "([0-9.]+) images/s")
	o.take(nil, []byte("3.5 images/s\n"))
	if o.last.Lines != 0 || o.last.Examples != 0 {
		t.Errorf("one line: %+v", o.last)
	}
}
