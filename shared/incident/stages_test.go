package incident

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/go/packages"

	"pitstop.internal/shared/view"
)

// mostFields bounds the facts that a document can hold.
const mostFields = 307

// TestTheDocumentHasFewFields: a fact that follows from others is computed, and not stored. Each type counts once.
func TestTheDocumentHasFewFields(t *testing.T) {
	seen, n := map[reflect.Type]bool{}, 0
	byType := map[string]int{}
	var count func(reflect.Type)
	count = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			count(of.Elem())
			return
		case reflect.Map:
			count(of.Key())
			count(of.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[of] || of == reflect.TypeFor[time.Time]() {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Tag.Get("json") == "-" {
				continue // it is not stored
			}
			if leaf(f.Type) {
				n++
				byType[of.String()]++
			}
			count(f.Type)
		}
	}
	count(reflect.TypeFor[Workload]())
	t.Logf("the document has %d fields: %s", n, fmt.Sprint(byType))
	if n > mostFields {
		t.Errorf("the document has %d fields, at most %d are allowed", n, mostFields)
	}
}

// leaf reports whether a field of that type is a value by itself, and not another stored type.
func leaf(of reflect.Type) bool {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return leaf(of.Elem())
	case reflect.Struct:
		return of == reflect.TypeFor[time.Time]()
	default:
	}
	return true
}

// TestTheStagesStayApart: each stage does its own, and no other's. Who learns a fact sees no policy and no plan; who decides writes nothing, and
// adds no time to another by hand, for calls that were held back stop every clock.
func TestTheStagesStayApart(t *testing.T) {
	t.Parallel()
	p := loadHeart(t)
	seen := map[string]int{}
	for _, file := range p.Syntax {
		name := filepath.Base(p.Fset.Position(file.Pos()).Filename)
		s := stageOf(name)
		seen[s]++
		for _, where := range p.breaches(file, s) {
			t.Error(where)
		}
	}
	for _, s := range []string{"record", "decide", "write"} {
		if seen[s] == 0 {
			t.Errorf("no file is of the stage %s", s)
		}
	}
}

// TestOnePlaceSaysHowLongTheProviderMayHeal: whoever changes it changes one function, and no rule waits for another time.
func TestOnePlaceSaysHowLongTheProviderMayHeal(t *testing.T) {
	t.Parallel()
	p, by := loadHeart(t), []string{}
	for _, file := range p.Syntax {
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "HealFor" {
					name := "a declaration"
					if f, is := decl.(*ast.FuncDecl); is {
						name = f.Name.Name
					}
					by = append(by, name)
				}
				return true
			})
		}
	}
	if !slices.Equal(by, []string{"healFor"}) {
		t.Errorf("bounds.HealFor is named in %v, want it in healFor alone", by)
	}
}

// TestEveryWaitHasItsWords: people never read an empty line.
func TestEveryWaitHasItsWords(t *testing.T) {
	t.Parallel()
	w, n := Workload{Incident: &Incident{Troubles: []Trouble{{}}}}, 0
	for _, of := range loadHeart(t).Types.Imports() {
		for _, name := range of.Scope().Names() {
			label, ok := of.Scope().Lookup(name).(*types.Const)
			if !ok || label.Type().String() != reflect.TypeFor[view.Phase]().PkgPath()+".Phase" || name == "PhaseWaits" { // no incident's
				continue
			}
			n++
			if w.describeWait(view.Phase(constant.StringVal(label.Val()))).String() == "" {
				t.Errorf("the wait %s has no words", name)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d waits are known, which is too few", n)
	}
}

// stageOf is the stage of a file by its name. What carries the plan out writes, and so does the forecast on its own copy. What functions and
// people ask of a document, and the types, have the stage ask: they write nothing.
func stageOf(file string) string {
	writes := []string{
		"advance.go", "assumed.go", "budget.go", "calls.go", "clock.go", "close.go", "effects.go", "forecast.go", "keep.go", "lease.go", "tell.go", "tell_seen.go", "workload.go", "incident.go",
	}
	asks := []string{"api.go", "doc.go", "fence.go", "life.go", "provider.go", "reads.go", "request.go", "show.go", "stranger.go", "training.go", "update.go"}
	switch {
	case strings.HasPrefix(file, "record"):
		return "record"
	case slices.Contains(writes, file):
		return "write"
	case slices.Contains(asks, file):
		return "ask"
	}
	return "decide" // rules, and whatever file is new
}

// heartSource is the source of the heart, with its types.
type heartSource struct {
	*packages.Package
	stored map[string]bool
}

func loadHeart(t *testing.T) heartSource {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, ".")
	if err != nil || len(loaded) != 1 {
		t.Fatalf("%d packages, %v", len(loaded), err)
	}
	p := heartSource{loaded[0], map[string]bool{}}
	for _, e := range p.Errors {
		t.Fatal(e)
	}
	p.reach(p.Types.Scope().Lookup("Workload").Type())
	if len(p.stored) < 20 {
		t.Fatalf("the document has %d types, which is too few", len(p.stored))
	}
	return p
}

// reach adds the structs that a type of the document holds.
func (p heartSource) reach(of types.Type) {
	switch of := types.Unalias(of).(type) {
	case *types.Pointer:
		p.reach(of.Elem())
	case *types.Slice:
		p.reach(of.Elem())
	case *types.Named:
		s, ok := of.Underlying().(*types.Struct)
		if !ok || p.stored[of.String()] {
			return
		}
		p.stored[of.String()] = true
		for i := range s.NumFields() {
			p.reach(s.Field(i).Type())
		}
	}
}

// breaches are the places at which a file does what another stage does.
func (p heartSource) breaches(file *ast.File, stage string) (where []string) {
	found := func(n ast.Node, format string, args ...any) {
		where = append(where, p.Fset.Position(n.Pos()).String()+": "+fmt.Sprintf(format, args...))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if of := p.forbidden(n); stage == "record" && of != "" {
				found(n, "who learns a fact names %s", of)
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if field := p.writes(to); (stage == "decide" || stage == "ask") && n.Tok != token.DEFINE && field != "" {
					found(n, "who decides writes %s", field)
				}
			}
		case *ast.IncDecStmt:
			if field := p.writes(n.X); (stage == "decide" || stage == "ask") && field != "" {
				found(n, "who decides writes %s", field)
			}
		case *ast.CallExpr:
			if stage == "decide" && p.addsTime(n) {
				found(n, "who decides adds a time by hand, and not with by or before")
			}
		}
		return true
	})
	return where
}

// forbidden is what an identifier means that a record of facts does not see: the plan, the policy, what is wanted, or what is sent.
func (p heartSource) forbidden(id *ast.Ident) string {
	switch of := p.TypesInfo.Uses[id].(type) {
	case *types.PkgName:
		if strings.HasSuffix(of.Imported().Path(), "/policy") {
			return "the policy"
		}
	case *types.TypeName:
		switch of.Name() {
		case "Step", "Want", "diagnosis", "effects", "teller", "turn", "rule":
			if of.Pkg() == p.Types {
				return of.Name()
			}
		case "Event":
			return "events.Event"
		}
	case *types.Var:
		if of.Name() == "rules" && of.Pkg() == p.Types && of.Parent() == p.Types.Scope() {
			return "rules"
		}
	}
	return ""
}

// writes is the field of the document to which an expression leads through a pointer or a slice; empty for one of a copy.
func (p heartSource) writes(to ast.Expr) string {
	switch to := to.(type) {
	case *ast.ParenExpr:
		return p.writes(to.X)
	case *ast.StarExpr:
		return p.isStored(to.X)
	case *ast.IndexExpr:
		if inner, ok := ast.Unparen(to.X).(*ast.SelectorExpr); ok && p.isStored(inner.X) != "" {
			return p.isStored(inner.X) + "." + inner.Sel.Name
		}
		return p.writes(to.X)
	case *ast.SelectorExpr:
		s := p.TypesInfo.Selections[to]
		if s == nil || s.Kind() != types.FieldVal {
			return ""
		}
		if of := p.owner(s); s.Indirect() && p.stored[of] {
			return of + "." + to.Sel.Name
		}
		return p.writes(to.X)
	}
	return ""
}

// isStored is the type of the document to which an expression points; empty for another one.
func (p heartSource) isStored(x ast.Expr) string {
	if pointer, ok := p.TypesInfo.TypeOf(x).(*types.Pointer); ok && p.stored[pointer.Elem().String()] {
		return pointer.Elem().String()
	}
	return ""
}

// owner is the type whose field a selection names, through whatever embeds it.
func (p heartSource) owner(s *types.Selection) string {
	of := s.Recv()
	for i, index := range s.Index() {
		if pointer, ok := of.(*types.Pointer); ok {
			of = pointer.Elem()
		}
		if i == len(s.Index())-1 {
			return of.String()
		}
		of = of.Underlying().(*types.Struct).Field(index).Type() //nolint:forcetypeassert // a selection goes through structs
	}
	return ""
}

// addsTime reports whether a call adds a duration to a time.
func (p heartSource) addsTime(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Add" && s.Sel.Name != "AddDate" {
		return false
	}
	return p.TypesInfo.TypeOf(s.X).String() == "time.Time"
}
