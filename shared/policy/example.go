package policy

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// exampleName is the policy of the example.
const exampleName = "llama"

// exampleSubnetworks has both forms of a name.
var exampleSubnetworks = []string{"us-east5: tpus", "europe-west4: projects/host/regions/europe-west4/subnetworks/tpus"}

// exampleWidth is how wide a comment is: the file fits a screen of 80 columns.
const exampleWidth = 80

// Example is a policy file with every key, each with its meaning and a value that Parse accepts.
func Example() []byte {
	var b bytes.Buffer
	line := func(indent int, format string, args ...any) {
		b.WriteString(strings.Repeat(" ", indent) + fmt.Sprintf(format, args...) + "\n")
	}
	comment := func(indent int, text string) {
		row := "#"
		for word := range strings.FieldsSeq(text) {
			if indent+len(row)+1+len(word) > exampleWidth {
				line(indent, "%s", row)
				row = "#"
			}
			row += " " + word
		}
		line(indent, "%s", row)
	}
	comment(0, "A Pitstop policy with every key. You may leave out any of them.")
	line(0, "policies:")
	comment(2, "the name: a TPU with the label pitstop-policy="+exampleName+" has this policy")
	line(2, "%s:", exampleName)
	for _, k := range keys() {
		about := k.about
		if k.values != nil {
			about += " (" + strings.Join(k.values, ", ") + ")"
		}
		comment(4, about)
		switch k.kind {
		case switches:
			line(4, "%s:", k.name)
			for _, s := range All() {
				comment(6, s.about())
				line(6, "%s: %s", s, exampleLevel(s))
			}
		case places:
			line(4, "%s:", k.name)
			for _, s := range placeKeys() {
				comment(8, s.about)
				if s.begins {
					line(6, "- %s: %s", s.name, s.example)
					continue
				}
				line(8, "%s: %s", s.name, s.example)
			}
		case subnetworks:
			line(4, "%s:", k.name)
			for _, s := range exampleSubnetworks {
				line(6, "%s", s)
			}
		case word, span, price, count, amount, zones:
			line(4, "%s: %s", k.name, k.example)
		}
	}
	return b.Bytes()
}

// exampleLevel shows each level once at least, and allows nothing that a first reader may not want.
func exampleLevel(s Switch) Level {
	switch s {
	case RequestCheckpoint, Restart, Recreate:
		return Yes
	case EarlyMaintenance, RecreateNonSpot:
		return Ask
	case StartStopped:
	}
	return No
}

// examples are those of a value for the schema: as YAML, decoded.
func (k key) examples() []any {
	if k.example == "" {
		return nil
	}
	var v any
	if err := yaml.Unmarshal([]byte(k.example), &v); err != nil {
		panic("policy: example of " + k.name + ": " + err.Error()) // it is a constant
	}
	return []any{v}
}

// exampleFile is the example as the schema gives it.
func exampleFile() any {
	var v any
	if err := yaml.Unmarshal(Example(), &v); err != nil {
		panic("policy: example: " + err.Error()) // it is made of constants
	}
	return v
}
