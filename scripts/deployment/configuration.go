package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/gocty"
)

// module is a Terraform module as it is written.
type module struct {
	variables, outputs []declared
	locals             map[string]hclsyntax.Expression
	// resources are those that are made, by type.name.
	resources map[string]*hclsyntax.Block
	// sources are the files that they are written in.
	sources map[string][]byte
}

// written is an attribute of a block as it is written, by its path through the blocks inside; nothing where there is none.
func (m *module) written(b *hclsyntax.Block, path string) string {
	block, rest, inside := strings.Cut(path, ".")
	if !inside {
		if a := b.Body.Attributes[path]; a != nil {
			r := a.Expr.Range()
			return string(r.SliceBytes(m.sources[r.Filename]))
		}
		return ""
	}
	for _, inner := range b.Body.Blocks {
		if inner.Type == block {
			return m.written(inner, rest)
		}
	}
	return ""
}

// declared is a variable or an output.
type declared struct {
	name, kind, description string
	// preset is how the default is written; nothing where a value has to be given.
	preset string
}

// parse reads a module.
func parse(dir string) (*module, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s holds no configuration: %w", dir, err)
	}
	m := &module{locals: map[string]hclsyntax.Expression{}, resources: map[string]*hclsyntax.Block{}, sources: map[string][]byte{}}
	p := hclparse.NewParser()
	for _, name := range files {
		f, diags := p.ParseHCLFile(name)
		if diags.HasErrors() {
			return nil, diags
		}
		body, ok := f.Body.(*hclsyntax.Body)
		if !ok {
			return nil, fmt.Errorf("%s is not in HCL's own syntax", name)
		}
		m.sources[name] = f.Bytes
		for _, b := range body.Blocks {
			m.add(b)
		}
	}
	byName := func(a, b declared) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(m.variables, byName)
	slices.SortFunc(m.outputs, byName)
	return m, nil
}

func (m *module) add(b *hclsyntax.Block) {
	d := func() declared {
		return declared{
			name: b.Labels[0], kind: m.written(b, "type"), preset: m.written(b, "default"), description: strings.Trim(m.written(b, "description"), `"`),
		}
	}
	switch b.Type {
	case "variable":
		m.variables = append(m.variables, d())
	case "output":
		m.outputs = append(m.outputs, d())
	case "locals":
		for name, a := range b.Body.Attributes {
			m.locals[name] = a.Expr
		}
	case "resource":
		m.resources[strings.Join(b.Labels, ".")] = b
	}
}

// deployed is one function of the deployment.
type deployed struct {
	EntryPoint  string            `cty:"entry_point"`
	Topic       string            `cty:"topic"`
	PublishesTo map[string]string `cty:"publishes_to"`
	Environment []string          `cty:"environment"`
}

// functions evaluates local.functions, with nothing of what only a deployment knows.
func (m *module) functions() (map[string]deployed, error) {
	v, err := m.local("functions")
	if err != nil {
		return nil, err
	}
	found := map[string]deployed{}
	for name, f := range v.AsValueMap() {
		var d deployed
		kept := map[string]cty.Value{}
		for _, key := range []string{"entry_point", "topic", "publishes_to", "environment"} {
			if !f.Type().HasAttribute(key) {
				return nil, fmt.Errorf("local.functions.%s has no %s", name, key)
			}
			kept[key] = f.GetAttr(key)
		}
		topics := kept["publishes_to"].AsValueMap()
		kept["publishes_to"] = cty.MapValEmpty(cty.String)
		if len(topics) > 0 {
			kept["publishes_to"] = cty.MapVal(topics)
		}
		kept["environment"] = cty.ListVal(kept["environment"].AsValueSlice())
		if err := gocty.FromCtyValue(cty.ObjectVal(kept), &d); err != nil {
			return nil, fmt.Errorf("local.functions.%s: %w", name, err)
		}
		found[name] = d
	}
	return found, nil
}

// local evaluates a local value, and those that it is made of.
func (m *module) local(name string) (cty.Value, error) {
	expression, ok := m.locals[name]
	if !ok {
		return cty.NilVal, fmt.Errorf("there is no local.%s", name)
	}
	needed := map[string]cty.Value{}
	for _, t := range expression.Variables() {
		step, ok := t[1].(hcl.TraverseAttr)
		if t.RootName() != "local" || !ok {
			return cty.NilVal, fmt.Errorf("local.%s depends on %s, which only a deployment knows", name, t.RootName())
		}
		v, err := m.local(step.Name)
		if err != nil {
			return cty.NilVal, err
		}
		needed[step.Name] = v
	}
	v, diags := expression.Value(&hcl.EvalContext{
		Variables: map[string]cty.Value{"local": cty.ObjectVal(needed)},
		Functions: map[string]function.Function{"merge": stdlib.MergeFunc},
	})
	if diags.HasErrors() {
		return cty.NilVal, fmt.Errorf("local.%s: %w", name, diags)
	}
	return v, nil
}
