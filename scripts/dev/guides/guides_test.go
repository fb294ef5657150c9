package guides_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/dev/guides"
)

func TestRead(t *testing.T) {
	const head = "# Page\n\n## What the guides ask\n\n### Pods\n\n| the guide says | Pitstop | shown by |\n|---|---|---|\n"
	for name, c := range map[string]struct {
		page string
		want []guides.Row
		err  string
	}{
		"a command and what it prints": {
			head + "| scale | computes | `pitcrew scale --to 'a b'` prints `batch  4` and `steps` |\n\nText.\n\n### Service\n\n| x | y | no command: nobody has such a machine |\n\n## Next\n\n| a | b | c |\n",
			[]guides.Row{
				{Guide: "Pods", Asks: "scale", Does: "computes", Command: "pitcrew scale --to 'a b'", Prints: []string{"batch  4", "steps"}},
				{Guide: "Service", Asks: "x", Does: "y", Reason: "nobody has such a machine"},
			},
			"",
		},
		"no section":       {"# Page\n", nil, "no heading"},
		"too few cells":    {head + "| a | b |\n", nil, "2 cells"},
		"no statement":     {head + "|  | b | `pitstop x` prints `y` |\n", nil, "empty cell"},
		"nothing is shown": {head + "| a | b | `pitstop x` |\n", nil, "a text that it prints"},
		"by hand":          {head + "| a | b | by hand |\n", nil, "needs a command"},
		"no reason":        {head + "| a | b | no command: by hand |\n", nil, "no reason"},
	} {
		got, err := guides.Read(c.page)
		if c.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestTheTableIsWhole: it covers each guide, and every command belongs to a program whose tests run it.
func TestTheTableIsWhole(t *testing.T) {
	page, err := os.ReadFile("../../../functions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := guides.Read(string(page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, r := range rows {
		found[r.Guide]++
		if program, _, _ := strings.Cut(r.Command, " "); r.Reason == "" && program != "pitstop" && program != "pitcrew" {
			t.Errorf("no test runs %q", r.Command)
		}
	}
	named := 0
	for _, r := range rows {
		for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)` in `([a-z/]+)`").FindAllStringSubmatch(r.Reason, -1) {
			named++
			files, err := filepath.Glob(filepath.Join("../../..", m[2], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(files, func(name string) bool {
				raw, err := os.ReadFile(name)
				return err == nil && strings.Contains(string(raw), "func "+m[1]+"(t *testing.T)")
			}) {
				t.Errorf("%s has no test %s", m[2], m[1])
			}
		}
	}
	if named < 2 {
		t.Errorf("only %d tests are named", named)
	}
	for guide, want := range map[string]int{"Maintenance events": 19, "Autocheckpoint": 19, "Training on pods": 12, "The training service": 20, "Flex-start on GKE": 19} {
		if found[guide] != want {
			t.Errorf("%s: %d rows, want %d", guide, found[guide], want)
		}
		delete(found, guide)
	}
	for guide, n := range found {
		t.Errorf("%d rows stand below %q, which is none of the guides", n, guide)
	}
}
