//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitstop.internal/shared/checkpoint"
)

// TestThePageHasTheTableOfLayouts: row by row.
func TestThePageHasTheTableOfLayouts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	must(t, err)
	for _, l := range checkpoint.Layouts {
		if row := "\n| " + strings.Join([]string{l.Framework, l.Step, l.Complete, l.Source}, " | ") + " |\n"; !strings.Contains(string(page), row) {
			t.Errorf("the page lacks%s", row)
		}
	}
}

// TestWhatIsNotKnownOfCheckpointsIsSaid: by the first line and by doctor, which then does not say ok.
func TestWhatIsNotKnownOfCheckpointsIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files         []string
		began, doctor string
	}{
		"nothing":        {nil, "; no complete checkpoint yet\n", "ok       checkpoint directory"},
		"complete":       {[]string{"step-9485/model/x", "step-9485/metadata.json"}, "; the newest complete checkpoint is step 9485\n", "ok       checkpoint directory"},
		"torn":           {[]string{"step-9485/model/x"}, "; no complete checkpoint yet: step 9485 has no metadata.json, which Levanter writes last\n", "warning  checkpoint directory"},
		"a part":         {[]string{"9/model.part"}, "; no complete checkpoint yet: step 9 has an unfinished file model.part\n", "warning  checkpoint directory"},
		"other names":    {[]string{"weights-9.pt"}, "; no complete checkpoint yet: it holds no step directory, only weights-9.pt\n", "warning  checkpoint directory"},
		"unknown layout": {[]string{"9/model.pt"}, "; the newest checkpoint is step 9, but no file in it tells whether it is complete\n", "warning  checkpoint directory"},
	} {
		dir := t.TempDir()
		for _, file := range c.files {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755)) //nolint:gosec // a test's
			must(t, os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600))
		}
		if _, out := pitcrew(t, nil, "doctor", "--metadata=none", "--state="+t.TempDir(), "--checkpoint-dir=file://"+dir, "--", "true"); !strings.Contains(out, c.doctor) {
			t.Errorf("%s: doctor says\n%s\nwithout %q", name, out, c.doctor)
		}
		p := launch(t, []string{"--checkpoint-dir=file://" + dir}, []string{"true"})
		if code := p.code(); code != 0 || !strings.Contains(p.output(), c.began) {
			t.Errorf("%s: %d\n%s\nwithout %q", name, code, p.output(), c.began)
		}
	}
}
