package incident_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// meanings are all codes.
var meanings = func() map[incident.Code]string {
	all := map[incident.Code]string{}
	for _, m := range incident.Codes() {
		all[m.Code] = m.Text
	}
	return all
}()

// source is every file that decides or acts.
func source(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	root := filepath.Join("..", "..")
	for _, dir := range []string{"shared", "functions"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			short, _ := filepath.Rel(root, name) //nolint:errcheck // it is under the root
			files[filepath.ToSlash(short)] = f
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// refusing are the functions that refuse, hold or end, by package, with the place of their code among the arguments. What does
// not go through one of them refuses nothing.
var refusing = map[string]map[string]int{
	"shared/incident": {"finish": 2, "escalate": 0, "release": 0, "hold": 0, "enterWindow": 0, "notStarted": 0, "coded": 0, "refuse": 0},
	"shared/ledger":   {"Hold": 2, "refuse": 2},
	"functions":       {"Hold": 2},
}

// coded are the types that say why, each with the fields of which one has to be set.
var coded = map[string][]string{
	"Held": {"Code"}, "Forbidden": {"Code"}, "Refusal": {"Code"}, "RefusedError": {"Code"}, "Failure": {"Class", "Code"}, "Error": {"Class"},
}

// TestNothingIsRefusedWithoutACode holds every place that refuses, holds, ignores or ends against the table: its code is one of
// the constants, or comes from one that is.
func TestNothingIsRefusedWithoutACode(t *testing.T) {
	sites, used, declared := 0, map[string]bool{}, map[string]bool{}
	for name, file := range source(t) {
		if name == "shared/incident/terms.go" { // it uses none: it names them all again
			continue
		}
		in := ""
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				in = n.Name.Name
			case *ast.ValueSpec:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Code" {
					declared[n.Names[0].Name] = true
				}
			case *ast.SelectorExpr:
				used[n.Sel.Name] = true
			case *ast.Ident:
				used[n.Name] = used[n.Name] || !strings.HasPrefix(name, "shared/reason/")
			case *ast.CallExpr:
				at, ok := codeOf(name, n)
				if !ok || in == "resumed" {
					return true
				}
				sites++
				if at >= len(n.Args) || !isCode(n.Args[at]) {
					t.Errorf("%s: %s refuses without a code of the table", name, in)
				}
			case *ast.CompositeLit:
				if fields := coded[typeName(name, n.Type)]; fields != nil && len(n.Elts) > 0 {
					sites++
					if !slices.ContainsFunc(n.Elts, func(e ast.Expr) bool { return sets(e, fields) }) {
						t.Errorf("%s: %s makes a %s without a code", name, in, typeName(name, n.Type))
					}
				}
			}
			return true
		})
	}
	if sites < 100 {
		t.Errorf("only %d places that refuse were found", sites)
	}
	if len(declared) < 40 {
		t.Errorf("only %d codes were found", len(declared))
	}
	for name := range declared {
		if !used[name] {
			t.Errorf("%s is used nowhere", name)
		}
	}
}

// codeOf is the place of the code among the arguments of a call that refuses.
func codeOf(file string, call *ast.CallExpr) (int, bool) {
	name, of := "", ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok {
			of = x.Name
		}
	}
	if of == "fault" && name == "Ignored" {
		return 0, true
	}
	for dir, functions := range refusing {
		if at, ok := functions[name]; ok && strings.HasPrefix(file, dir+"/") {
			return at, true
		}
	}
	return 0, false
}

// isCode reports whether an expression is a code of the table, or a value that holds one: no text of its own.
func isCode(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			id, ok := e.Fun.(*ast.Ident)
			return ok && id.Name == "codeOf"
		}
		return strings.HasSuffix(f.Sel.Name, "Code") && len(e.Args) == 0 || f.Sel.Name == "Reason"
	}
	return false
}

// typeName is the name of a type of package incident or evidence, or of the provider's error.
func typeName(file string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if strings.HasPrefix(file, "shared/incident/") && e.Name != "Error" || strings.HasPrefix(file, "shared/provider/") && e.Name == "Error" {
			return e.Name
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && (x.Name == "incident" || x.Name == "evidence" || x.Name == "provider" && e.Sel.Name == "Error") {
			return e.Sel.Name
		}
	}
	return ""
}

func sets(e ast.Expr, fields []string) bool {
	kv, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := kv.Key.(*ast.Ident)
	if !ok || !slices.Contains(fields, key.Name) {
		return false
	}
	lit, text := kv.Value.(*ast.BasicLit)
	if !text {
		return true
	}
	value, err := strconv.Unquote(lit.Value)
	return err == nil && meanings[incident.Code(value)] != ""
}

// TestWhatIsHeldSaysWhy: the code stays beside the words for as long as it is held, and goes with them.
func TestWhatIsHeldSaysWhy(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read lost", nil)
	held, _, _ := advance(policies["everything"], n.w, incident.Held{Request: asked(n.w, n.now), Code: incident.CodePaused, Why: "paused by ann"}, n.now)
	last := held.Incident.Timeline[len(held.Incident.Timeline)-1]
	if held.Incident.HeldCode != incident.CodePaused || last.Code != incident.CodePaused || last.Reason != "paused by ann" {
		t.Errorf("held as %q, the last line is %+v", held.Incident.HeldCode, last)
	}
	if was := n.w.Incident.Timeline; was[len(was)-1].Code != "" {
		t.Error("Advance changed what it was given")
	}
	later := n.now.Add(incident.HearFor)
	again, _, _ := tick(policies["everything"], held, later)
	begun, _, _ := advance(policies["everything"], again, incident.Intended{Request: asked(again, later), RequestID: "id"}, later)
	if begun.Incident.Held != "" || begun.Incident.HeldCode != "" {
		t.Errorf("still held by %q (%s)", begun.Incident.Held, begun.Incident.HeldCode)
	}
}

// TestAZoneThatRefusesSaysWhy keeps the code of the failure with the zone, with the effect and in the story.
func TestAZoneThatRefusesSaysWhy(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0", nil)
	r := asked(n.w, n.now)
	r.Action = events.ActionCreate
	f := &incident.Failure{Class: incident.WrongZone, Code: incident.CodeTaken, Message: "the name is taken there by demo/other"}
	w, _, _ := advance(policies["everything"], n.w, incident.Answered{Request: r, Text: "create refused", Failure: f}, n.now)
	in := w.Incident
	if in == nil || len(in.Zones) != 1 || in.Zones[0].Code != incident.CodeTaken {
		t.Fatalf("the zones are %+v", in)
	}
	if !slices.ContainsFunc(in.Timeline, func(l incident.Line) bool { return l.Kind == incident.LineCame && l.Code == incident.CodeTaken }) {
		t.Errorf("no line of the story has the code: %+v", in.Timeline)
	}
}
