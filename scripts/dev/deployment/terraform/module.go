// Package terraform reads the text of a Terraform module without Terraform. It checks the deployment's grants, waits and dashboard
// against their rules.
package terraform

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Module is the text of a Terraform module.
type Module struct {
	dir                string
	Variables, Outputs []Declared
	Locals             map[string]hclsyntax.Expression
	// Resources are the resources, by type.name, and the module calls, by module.name.
	Resources map[string]*hclsyntax.Block
	// sources are the texts of the files.
	sources map[string][]byte
}

// Written is the text of an attribute, by its path through the blocks inside. It is empty where there is no such attribute.
func (m *Module) Written(b *hclsyntax.Block, path string) string {
	block, rest, inside := strings.Cut(path, ".")
	if !inside {
		if a := b.Body.Attributes[path]; a != nil {
			r := a.Expr.Range()
			return string(r.SliceBytes(m.sources[r.Filename]))
		}
		return ""
	}
	for _, inner := range b.Body.Blocks {
		if inner.Type == block || inner.Type == "dynamic" && inner.Labels[0] == block {
			return m.Written(inner, rest)
		}
	}
	return ""
}

// Declared is a variable or an output.
type Declared struct {
	Name, Kind, Description string
	// Preset is the text of the default. It is empty where a value is required.
	Preset string
	// Conditions are those of a variable's validations.
	Conditions []hclsyntax.Expression
}

// ParseModule reads a module.
func ParseModule(dir string) (*Module, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s holds no configuration: %w", dir, err)
	}
	m := &Module{dir: dir, Locals: map[string]hclsyntax.Expression{}, Resources: map[string]*hclsyntax.Block{}, sources: map[string][]byte{}}
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
	byName := func(a, b Declared) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(m.Variables, byName)
	slices.SortFunc(m.Outputs, byName)
	return m, nil
}

func (m *Module) add(b *hclsyntax.Block) {
	d := func() Declared {
		d := Declared{
			Name: b.Labels[0], Kind: m.Written(b, "type"), Preset: m.Written(b, "default"), Description: strings.Trim(m.Written(b, "description"), `"`),
		}
		for _, inner := range b.Body.Blocks {
			d.Conditions = append(d.Conditions, inner.Body.Attributes["condition"].Expr)
		}
		return d
	}
	switch b.Type {
	case "variable":
		m.Variables = append(m.Variables, d())
	case "output":
		m.Outputs = append(m.Outputs, d())
	case "locals":
		for name, a := range b.Body.Attributes {
			m.Locals[name] = a.Expr
		}
	case "resource":
		m.Resources[strings.Join(b.Labels, ".")] = b
	case "module":
		m.Resources["module."+b.Labels[0]] = b
	}
}

// Local evaluates a local value, with the locals that it refers to, without any input of a deployment.
func (m *Module) Local(name string) (cty.Value, error) {
	return scope{Module: m, known: map[string]cty.Value{}}.local(name)
}
