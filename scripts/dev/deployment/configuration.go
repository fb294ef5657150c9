package main

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"pitstop.internal/scripts/dev/deployment/terraform"
)

// module is a Terraform module as it is written.
type module struct{ *terraform.Module }

// parse reads a module.
func parse(dir string) (*module, error) {
	m, err := terraform.ParseModule(dir)
	return &module{m}, err
}

// deployed is one function of the deployment.
type deployed struct {
	EntryPoint  string            `cty:"entry_point"`
	Topic       string            `cty:"topic"`
	PublishesTo map[string]string `cty:"publishes_to"`
	Environment []string          `cty:"environment"`
}

// functions evaluates local.functions without any input of a deployment.
func (m *module) functions() (map[string]deployed, error) {
	v, err := m.Local("functions")
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
