package view_test

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const heart = "pitstop.internal/shared/incident"

// TestWhoShowsNamesNoFieldOfTheDocument: the command, the pages, the simulator, its judge and the notifications read what is shown. The packages of
// tests that write documents may name their fields.
func TestWhoShowsNamesNoFieldOfTheDocument(t *testing.T) {
	t.Parallel()
	if named := fieldsNamed(t, "./shared/ledger"); len(named) == 0 {
		t.Fatal("this test finds no field of the document in the ledger, which names many")
	}
	for _, where := range fieldsNamed(t, "./scripts/...", "./functions/notify", "./shared/jobterms", "./shared/page") {
		t.Error(where)
	}
}

// fieldsNamed are the places at which packages name a field of a type that the document holds.
func fieldsNamed(t *testing.T, patterns ...string) (where []string) {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Dir: "../..", Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, append(patterns, heart)...)
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]bool{}
	for _, p := range loaded {
		if p.PkgPath == heart {
			reach(p.Types.Scope().Lookup("Workload").Type(), document)
		}
	}
	if len(document) < 10 {
		t.Fatalf("the document has %d types, which is too few", len(document))
	}
	for _, p := range loaded {
		if p.PkgPath == heart || strings.HasSuffix(p.PkgPath, "test") {
			continue
		}
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if s := p.TypesInfo.Selections[n]; s != nil && s.Kind() == types.FieldVal && document[owner(s)] {
						where = append(where, p.Fset.Position(n.Pos()).String()+": "+owner(s)+"."+n.Sel.Name)
					}
				case *ast.CompositeLit:
					if of := name(p.TypesInfo.TypeOf(n)); len(n.Elts) > 0 && document[of] {
						where = append(where, p.Fset.Position(n.Pos()).String()+": "+of+"{...}")
					}
				}
				return true
			})
		}
	}
	return where
}

// reach adds the structs of the heart that a type holds.
func reach(t types.Type, found map[string]bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		reach(t.Elem(), found)
	case *types.Slice:
		reach(t.Elem(), found)
	case *types.Map:
		reach(t.Elem(), found)
	case *types.Named:
		s, ok := t.Underlying().(*types.Struct)
		if of := name(t); !ok || of == "" || found[of] {
			return
		}
		found[name(t)] = true
		for f := range s.Fields() {
			reach(f.Type(), found)
		}
	}
}

// owner is the struct of the heart whose field a selection names; empty for another one.
func owner(s *types.Selection) string {
	t, path := s.Recv(), s.Index()
	for _, i := range path[:len(path)-1] {
		t = structOf(t).Field(i).Type()
	}
	return name(t)
}

func structOf(t types.Type) *types.Struct {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

// name is the name of a type of the heart; empty for another one.
func name(t types.Type) string {
	if t == nil {
		return ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == heart {
		return n.Obj().Name()
	}
	return ""
}
