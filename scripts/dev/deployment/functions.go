package main

import (
	"pitstop.internal/scripts/package/process"
	"pitstop.internal/shared/trigger"

	// Each package registers its entry point. The variables that a function reads are looked up by that name.
	_ "pitstop.internal/functions/checkpoint"
	_ "pitstop.internal/functions/console"
	_ "pitstop.internal/functions/logevent"
	_ "pitstop.internal/functions/maintenance"
	_ "pitstop.internal/functions/notify"
	_ "pitstop.internal/functions/order"
	_ "pitstop.internal/functions/patrol"
	_ "pitstop.internal/functions/recovery"
	_ "pitstop.internal/functions/recreate"
)

// reads are the variables that a function reads, in the form of the Terraform tests.
type reads struct {
	EntryPoint string   `json:"entry_point"`
	Required   []string `json:"required"`
	Optional   []string `json:"optional"`
}

// environments makes tests/environment.json, the variables of every function in the folder functions.
func environments(root string) ([]byte, error) {
	all, err := process.Functions(root)
	if err != nil {
		return nil, err
	}
	found := map[string]reads{}
	for _, f := range all {
		variables, err := trigger.Variables(f.Target)
		if err != nil {
			return nil, err
		}
		r := reads{EntryPoint: f.Target}
		for _, v := range variables {
			if v.Required {
				r.Required = append(r.Required, v.Name)
			} else {
				r.Optional = append(r.Optional, v.Name)
			}
		}
		found[f.Name] = r
	}
	return indented(found)
}
