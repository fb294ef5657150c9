//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pitstop.internal/scripts/dev/guides"
	"pitstop.internal/scripts/pitcrew/metadata"
)

// TestWhatTheGuidesAskIsShown runs each command of pitcrew in the table of Google's guides, as a shell does, and holds what it prints and
// that it ends well.
func TestWhatTheGuidesAskIsShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../functions/README.md")
	must(t, err)
	rows, err := guides.Read(string(page))
	must(t, err)
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexport %s=1\nexec '%s' \"$@\"\n", asPitcrew, self(t))
	must(t, os.WriteFile(filepath.Join(bin, "pitcrew"), []byte(script), 0o700)) //nolint:gosec // a shell executes it
	held := 0
	for _, r := range rows {
		if !strings.HasPrefix(r.Command, "pitcrew ") {
			continue
		}
		held++
		t.Run(r.Guide+": "+r.Asks, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			c := exec.CommandContext(ctx, "sh", "-c", r.Command)
			c.Dir = t.TempDir()
			c.Env = append(os.Environ(), "PATH="+bin+":/usr/bin:/bin", "COLUMNS=2000", metadata.HostVariable+"=")
			out, err := c.CombinedOutput()
			if ctx.Err() != nil {
				t.Errorf("%s takes longer than %v", r.Command, deadline)
			}
			if err != nil {
				t.Errorf("%s: %v; a command that has to fail says so by echo \"ended with $?\"", r.Command, err)
			}
			for _, want := range r.Prints {
				if !strings.Contains(string(out), want) {
					t.Errorf("%s does not print %q:\n%s", r.Command, want, out)
				}
			}
		})
	}
	if held < 10 {
		t.Errorf("only %d commands were run", held)
	}
}
