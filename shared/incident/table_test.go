package incident_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"pitstop.internal/shared/incident"
)

// TestTransitionsAreTheTable: TestExplore holds the table itself against the machine.
func TestTransitionsAreTheTable(t *testing.T) {
	known := map[string]bool{"peace": true}
	for _, name := range constants(t, "../view/words.go", "Phase") {
		known[name] = true
	}
	for _, name := range constants(t, "../view/words.go", "Outcome") {
		known[name] = true
	}
	table := incident.Transitions()
	seen := map[string]bool{}
	twice := map[[2]string]bool{}
	for _, row := range table {
		if twice[row] {
			t.Errorf("%v is there twice", row)
		}
		twice[row] = true
		for _, name := range row {
			if !known[name] {
				t.Errorf("%q is neither a phase nor an outcome", name)
			}
			seen[name] = true
		}
	}
	for name := range known {
		if !seen[name] && name != string(incident.Closed) {
			t.Errorf("no transition leads to or from %s", name)
		}
	}
}

// constants are the values of the constants of a type, as a file of the package declares them.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == typ {
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					values = append(values, strings.Trim(lit.Value, `"`))
				}
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s declares no constants of type %s", file, typ)
	}
	return values
}

// TestTheIndexNamesWhatIsThere: each function that the package documentation points to is in the file that it names.
func TestTheIndexNamesWhatIsThere(t *testing.T) {
	_, index, _ := strings.Cut(read(t, "doc.go"), "// # Where to look\n//\n")
	index, _, _ = strings.Cut(index, "\n//\n// #")
	pointer := regexp.MustCompile(`(\w+)(?:, (\w+))?(?: and (\w+))? in (\w+\.go)`)
	pointed := 0
	for _, m := range pointer.FindAllStringSubmatch(index, -1) {
		source := read(t, m[4])
		for _, name := range m[1:4] {
			if name == "" {
				continue
			}
			pointed++
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).MatchString(source) {
				t.Errorf("%s has no function %s", m[4], name)
			}
		}
	}
	if pointed < 12 {
		t.Errorf("the index points to %d functions only", pointed)
	}
}
