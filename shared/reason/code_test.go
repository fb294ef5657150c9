package reason_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pitstop.internal/shared/reason"
)

func TestEveryReasonHasOneMeaning(t *testing.T) {
	meanings, meant := map[reason.Code]string{}, map[string]reason.Code{}
	for _, m := range reason.Codes() {
		if other, twice := meant[m.Text]; twice || m.Text == "" || m.Code == "" {
			t.Errorf("%q means %q, as %q does", m.Code, m.Text, other)
		}
		if _, twice := meanings[m.Code]; twice {
			t.Errorf("%q stands in the table twice", m.Code)
		}
		meanings[m.Code], meant[m.Text] = m.Text, m.Code
	}
	for _, c := range constants(t, "code.go", "Code") {
		if meanings[reason.Code(c)] == "" {
			t.Errorf("the code %s has no meaning", c)
		}
	}
	for _, r := range constants(t, "save.go", "SaveResult") {
		switch r := reason.SaveResult(r); {
		case r == reason.SaveVerified, r == reason.SaveLate, r == reason.SaveOvertaken: // nothing is wrong with these
		case meanings[r.Code()] == "":
			t.Errorf("the save that is %s has no meaning", r)
		}
	}
	classes := constants(t, "failure.go", "FailureClass")
	for i, c := range reason.FailureClasses() {
		if i >= len(classes) || string(c) != classes[i] || meanings[c.Code()] == "" {
			t.Errorf("the class %s has no meaning, or stands elsewhere among the constants", c)
		}
	}
	if len(classes) != len(reason.FailureClasses()) {
		t.Errorf("the classes are %v, and the constants %v", reason.FailureClasses(), classes)
	}
}

// TestEveryCodeIsUsed where something is refused, held, ignored or ended, and no code is written out there.
func TestEveryCodeIsUsed(t *testing.T) {
	used, written := map[string]bool{}, 0
	for _, dir := range []string{"..", "../../functions"} {
		if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					used[n.Sel.Name] = true
				case *ast.KeyValueExpr:
					key, named := n.Key.(*ast.Ident)
					if text, is := n.Value.(*ast.BasicLit); is && named && key.Name == "Code" && text.Kind == token.STRING {
						t.Errorf("%s: the code %s is no constant", name, text.Value)
					}
					written++
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); is && spec.Type != nil {
			if n++; !used[spec.Names[0].Name] {
				t.Errorf("%s is used nowhere", spec.Names[0].Name)
			}
		}
		return true
	})
	if n < 40 || written < 1000 {
		t.Errorf("only %d codes and %d fields were found", n, written)
	}
}

// constants are the values of the constants of a type, as a file declares them.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != typ {
			return true
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok {
				value, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s declares no constants of type %s", file, typ)
	}
	return values
}
