package main

import (
	"pitstop.internal/scripts/process"
	"pitstop.internal/shared/trigger"

	// Each registers its entry point, by which the variables that it reads are found.
	_ "pitstop.internal/functions/checkpoint"
	_ "pitstop.internal/functions/logevent"
	_ "pitstop.internal/functions/maintenance"
	_ "pitstop.internal/functions/notify"
	_ "pitstop.internal/functions/patrol"
	_ "pitstop.internal/functions/recovery"
	_ "pitstop.internal/functions/recreate"
)

// reads is what a function reads from its environment, as the Terraform tests take it.
type reads struct {
	EntryPoint string   `json:"entry_point"`
	Required   []string `json:"required"`
	Optional   []string `json:"optional"`
}

// environments is tests/environment.json: what every function in the folder functions reads.
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
