package policy

import (
	"encoding/json"
	"maps"
)

// Schema is the JSON Schema (draft 2020-12) of a policy file, for editors and for programs that write one. It comes from the same
// rows as the reader, and refuses nothing that Parse accepts. Each of its examples is one that Parse accepts. It cannot bound a
// span of time, so Parse checks that.
func Schema() []byte {
	text, err := json.MarshalIndent(object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Pitstop policy file",
		"type":                 []string{"object", "null"},
		"additionalProperties": false,
		"properties": object{
			"policies": object{
				"description":          "policies by name: the value of the label pitstop-policy; the presets need no file",
				"type":                 []string{"object", "null"},
				"propertyNames":        object{"not": object{"enum": presetNames}},
				"additionalProperties": object{"$ref": "#/$defs/policy"},
			},
		},
		"examples": []any{exampleFile()},
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

// properties are the schemas of a policy's keys.
func properties() object {
	return described(keys())
}

// described are keys with the schema of their values, their meaning and an example.
func described(keys []key) object {
	all := object{}
	for _, k := range keys {
		p := k.kind.schema()
		p["description"] = k.about
		if k.values != nil {
			p["enum"] = append(anyOf(k.values), nil)
		}
		if examples := k.examples(); examples != nil {
			p["examples"] = examples
		}
		all[k.name] = p
	}
	return all
}

// schema is that of the value of a key of this kind. Every key may be left empty.
func (k kind) schema() object {
	switch k {
	case span:
		return object{
			"type": []string{"string", "integer", "null"}, "pattern": `^\+?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`,
			"minimum": 0, "maximum": 0,
		}
	case price:
		return object{"type": []string{"number", "string", "null"}, "minimum": 0, "pattern": `^[0-9.+eE-]+$`}
	case amount:
		return object{"type": []string{"string", "null"}, "pattern": amountForm.String()}
	case count:
		return object{"type": []string{"integer", "string", "null"}, "minimum": 1, "maximum": MaxRestartsPerDay, "pattern": `^[0-9]+$`}
	case zones:
		return object{"type": []string{"array", "null"}, "items": object{"type": "string", "pattern": zoneName.String()}}
	case places:
		each := described(placeKeys())
		for name, more := range map[string]object{
			"accelerator":     {"pattern": acceleratorType.String()},
			"reservation":     {"pattern": reservationName.String()},
			"runtime_version": {"pattern": runtimeVersion.String()},
		} {
			p, _ := each[name].(object)
			maps.Copy(p, more)
		}
		some := []any{}
		for _, k := range placeKeys() {
			if k.begins {
				some = append(some, object{"required": []string{k.name}, "properties": object{k.name: object{"type": "string"}}})
			}
		}
		return object{"type": []string{"array", "null"}, "items": object{
			"type": "object", "additionalProperties": false, "properties": each,
			"anyOf": some,
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

// about says what a switch allows.
func (s Switch) about() string {
	switch s {
	case RequestCheckpoint:
		return "ask the training to save before maintenance"
	case EarlyMaintenance:
		return "start announced maintenance before its window, right after a verified save"
	case Restart:
		return "ask the crew for a new attempt of the training when it has used up its own"
	case Recreate:
		return "delete a lost Spot TPU and create it again"
	case RecreateNonSpot:
		return "delete a lost TPU that is not Spot and create it again, when Google has not brought it back"
	case StartStopped:
		return "start a TPU that Google stopped"
	}
	return ""
}
