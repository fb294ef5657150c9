package terraform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// scope evaluates the expressions of a module as Terraform would, as far as the checks need it.
type scope struct {
	*Module
	// given are var, each and the other values of a deployment, by their first name.
	given map[string]cty.Value
	// known are the local values that were evaluated. They do not depend on each.
	known map[string]cty.Value
}

// with is the scope with one more value.
func (s scope) with(name string, v cty.Value) scope {
	given := map[string]cty.Value{name: v}
	for other, value := range s.given {
		if other != name {
			given[other] = value
		}
	}
	return scope{s.Module, given, s.known}
}

// local evaluates a local value.
func (s scope) local(name string) (cty.Value, error) {
	if v, ok := s.known[name]; ok {
		return v, nil
	}
	expression, ok := s.Locals[name]
	if !ok {
		return cty.NilVal, fmt.Errorf("there is no local.%s", name)
	}
	v, err := s.value(expression)
	if err != nil {
		return cty.NilVal, fmt.Errorf("local.%s: %w", name, err)
	}
	s.known[name] = v
	return v, nil
}

// value evaluates an expression, with the local values that it refers to.
func (s scope) value(e hclsyntax.Expression) (cty.Value, error) {
	needed := map[string]cty.Value{}
	variables := map[string]cty.Value{}
	for _, t := range e.Variables() {
		root := t.RootName()
		if given, ok := s.given[root]; ok {
			variables[root] = given
			continue
		}
		step, ok := t[min(1, len(t)-1)].(hcl.TraverseAttr)
		switch {
		case root == "local" && ok:
			v, err := s.local(step.Name)
			if err != nil {
				return cty.NilVal, err
			}
			needed[step.Name] = v
		case root == "path":
			variables[root] = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(s.dir)})
		default:
			return cty.NilVal, fmt.Errorf("it depends on %s, which only a deployment knows", root)
		}
	}
	variables["local"] = cty.ObjectVal(needed)
	v, diags := e.Value(&hcl.EvalContext{Variables: variables, Functions: functions})
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	return v, nil
}

// functions are the functions of Terraform that the evaluated expressions call.
var functions = map[string]function.Function{
	"merge": stdlib.MergeFunc, "jsondecode": stdlib.JSONDecodeFunc, "length": stdlib.LengthFunc, "setintersection": stdlib.SetIntersectionFunc,
	"keys": stdlib.KeysFunc, "values": stdlib.ValuesFunc, "sort": stdlib.SortFunc, "distinct": stdlib.DistinctFunc, "contains": stdlib.ContainsFunc,
	"setproduct": stdlib.SetProductFunc, "join": stdlib.JoinFunc, "concat": stdlib.ConcatFunc, "lookup": stdlib.LookupFunc, "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"jsonencode": stdlib.JSONEncodeFunc, "floor": stdlib.FloorFunc, "split": stdlib.SplitFunc, "can": tryfunc.CanFunc,
	"replace": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "what", Type: cty.String}, {Name: "by", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, what, by := args[0].AsString(), args[1].AsString(), args[2].AsString()
			if len(what) < 2 || what[0] != '/' || what[len(what)-1] != '/' {
				return cty.StringVal(strings.ReplaceAll(text, what, by)), nil
			}
			re, err := regexp.Compile(what[1 : len(what)-1])
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(re.ReplaceAllString(text, by)), nil
		},
	}),
	"compact": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.String), AllowNull: true}},
		Type:   function.StaticReturnType(cty.List(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var kept []cty.Value
			for _, v := range args[0].AsValueSlice() {
				if !v.IsNull() && v.AsString() != "" {
					kept = append(kept, v)
				}
			}
			if kept == nil {
				return cty.ListValEmpty(cty.String), nil
			}
			return cty.ListVal(kept), nil
		},
	}),
	"startswith": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "prefix", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(strings.HasPrefix(args[0].AsString(), args[1].AsString())), nil
		},
	}),
	"anytrue": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(slices.ContainsFunc(args[0].AsValueSlice(), cty.Value.True)), nil
		},
	}),
	"file": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			data, err := os.ReadFile(filepath.Clean(args[0].AsString()))
			return cty.StringVal(string(data)), err
		},
	}),
}

// made are the instances of a resource, each as a scope with its each.key and each.value.
func (s scope) made(address string) ([]scope, *hclsyntax.Block, error) {
	b := s.Resources[address]
	if b == nil {
		return nil, nil, errors.New("there is none")
	}
	over := b.Body.Attributes["for_each"]
	if over == nil {
		return []scope{s}, b, nil
	}
	all, err := s.value(over.Expr)
	if err != nil {
		return nil, nil, err
	}
	var instances []scope
	for it := all.ElementIterator(); it.Next(); {
		key, value := it.Element()
		if all.Type().IsSetType() {
			key = value
		}
		instances = append(instances, s.with("each", cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})))
	}
	return instances, b, nil
}
