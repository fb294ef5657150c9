package story_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"pitstop.internal/shared/incident/story"
)

// TestEachReasonFillsItsSentence: the heart gives each sentence as many words as it has places for them, and each sentence is used.
func TestEachReasonFillsItsSentence(t *testing.T) {
	t.Parallel()
	names := sentences(t)
	used := map[string]bool{}
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && isStory(sel.X) && names[sel.Sel.Name] != "" {
				used[sel.Sel.Name] = true
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			with, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || with.Sel.Name != "With" {
				return true
			}
			sel, ok := with.X.(*ast.SelectorExpr)
			if !ok || !isStory(sel.X) {
				return true
			}
			given := make([]string, len(call.Args))
			for i := range given {
				given[i] = "\x00"
			}
			text := story.Sentence(names[sel.Sel.Name]).With(given...).String()
			places := strings.Count(text, "\x00")
			if unfilled := story.Sentence(names[sel.Sel.Name]).With(append(given, "\x00")...).String(); places != len(given) || strings.Count(unfilled, "\x00") > places {
				t.Errorf("%s: %s gets %d words, and has places for others", fset.Position(call.Pos()), sel.Sel.Name, len(given))
			}
			return true
		})
	}
	for name := range names {
		if !used[name] {
			t.Errorf("no rule says %s", name)
		}
	}
}

func isStory(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "story"
}

// sentences are the constants, each with its text.
func sentences(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "english.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec) //nolint:forcetypeassert // a constant
			value := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
			names[v.Names[0].Name] = value
		}
	}
	return names
}
