package policy

import "encoding/json"

// Schema is the JSON Schema (draft 2020-12) of a policy file, for editors and for whoever generates one. It comes from the same
// rows as what Parse knows, and refuses nothing that Parse takes; how long a lead may be, no schema can say.
func Schema() []byte {
	text, err := json.MarshalIndent(object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Pitstop policy file",
		"type":                 []string{"object", "null"},
		"additionalProperties": false,
		"properties": object{
			"policies": object{
				"description":          "policies by the name that the label pitstop-policy gives; the presets need no file",
				"type":                 []string{"object", "null"},
				"propertyNames":        object{"not": object{"enum": presetNames}},
				"additionalProperties": object{"$ref": "#/$defs/policy"},
			},
		},
		"$defs": object{"policy": object{
			"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties(),
		}},
	}, "", "  ")
	if err != nil {
		panic(err) // it is made of words alone
	}
	return append(text, '\n')
}

// object is one of JSON.
type object map[string]any

// properties are the keys of a policy.
func properties() object {
	return described(keys())
}

// described are keys with what may stand behind them, and what they are for.
func described(keys []key) object {
	all := object{}
	for _, k := range keys {
		p := k.kind.schema()
		p["description"] = k.about
		if k.values != nil {
			p["enum"] = append(anyOf(k.values), nil)
		}
		all[k.name] = p
	}
	return all
}

// schema is what may stand behind a key of this kind. Every key may be left empty.
func (k kind) schema() object {
	switch k {
	case span:
		return object{
			"type": []string{"string", "integer", "null"}, "pattern": `^\+?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`,
			"minimum": 0, "maximum": 0, "examples": []string{"20m", "48h"},
		}
	case price:
		return object{"type": []string{"number", "string", "null"}, "minimum": 0, "pattern": `^[0-9.+eE-]+$`}
	case count:
		return object{"type": []string{"integer", "string", "null"}, "minimum": 1, "maximum": MaxRestartsPerDay, "pattern": `^[0-9]+$`}
	case zones:
		return object{"type": []string{"array", "null"}, "items": object{"type": "string", "pattern": zoneName.String()}}
	case shapes:
		each := described(shapeKeys())
		each["accelerator"] = object{"description": shapeKeys()[0].about, "type": "string", "pattern": acceleratorType.String()}
		each["runtime_version"] = object{"description": shapeKeys()[1].about, "type": []string{"string", "null"}, "pattern": runtimeVersion.String()}
		return object{"type": []string{"array", "null"}, "items": object{
			"type": "object", "additionalProperties": false, "properties": each, "required": []string{"accelerator"},
		}}
	case switches:
		each := object{}
		for _, s := range All() {
			each[string(s)] = object{"description": s.about(), "enum": anyOf(levelNames[:])}
		}
		return object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": each}
	case subnetworks:
		return object{
			"type": []string{"object", "null"}, "propertyNames": object{"pattern": regionName.String()},
			"additionalProperties": object{"type": "string", "pattern": subnetworkName.String()},
		}
	case word:
	}
	return object{"type": []string{"string", "null"}}
}

func anyOf(words []string) (all []any) {
	for _, w := range words {
		all = append(all, w)
	}
	return all
}

// about is what a switch allows.
func (s Switch) about() string {
	switch s {
	case RequestCheckpoint:
		return "ask the training to save before maintenance"
	case EarlyMaintenance:
		return "start announced maintenance before its window, right after a verified save"
	case Restart:
		return "ask the crew for a new attempt of the training when its own are spent"
	case Recreate:
		return "delete a lost Spot TPU and create it again"
	case RecreateNonSpot:
		return "the same for one that is not Spot, when Google has not brought it back"
	case StartStopped:
		return "start a TPU that Google stopped"
	}
	return ""
}
