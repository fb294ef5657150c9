package show_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/ledger/ledgertest"
)

// TestAPageIsKeptWhole: the fleet and an incident are kept as files that fetch nothing, and a file that cannot be written leaves nothing.
func TestAPageIsKeptWhole(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("bert"), deploymenttest.Asking())
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"status", "--html", file}, []string{"demo/llama-8b needs you: recreate llama-8b", "2 workloads, the worst first", "patrol ticked 20 s ago", "<style>:root", "</html>"}},
		{[]string{"incident", "llama-8b-20261121-3", "--html", file}, []string{"<strong>You:</strong> recreate llama-8b", "<style>:root", "</html>"}},
	} {
		b.Want(c.args, "written to "+file)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		deploymenttest.WantText(t, string(raw), c.says...)
		if strings.Contains(string(raw), "href=\"/") || strings.Contains(string(raw), "http") {
			t.Errorf("%v: it leads elsewhere", c.args)
		}
	}
	b.Refused([]string{"status", "--html", filepath.Join(dir, "missing", "page.html")}, "no such file")
	b.Refused([]string{"status", "llama-8b", "--html", file}, "leave out the names")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v: %v are left", err, left)
	}
}
