package reason_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
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
