package entries

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
)

// describedYAML matches the line of a YAML description that names a TPU. A log entry has no such line: its fields are others.
var describedYAML = regexp.MustCompile(`(?m)^name: ['"]?projects/[^/\s]+/locations/[^/\s]+/[A-Za-z]+/[^/\s]+\s*$`)

// healthYAML matches the lines of the health in a description, without the others: what grep health leaves of it.
var healthYAML = regexp.MustCompile(`^\s*(?:health: +\S[^\n]*\n?)?(?:healthDescription: +\S[^\n]*\n?)?\s*$`)

// yamlBegins matches the first line of YAML.
var yamlBegins = regexp.MustCompile(`^(---|[A-Za-z]+:)(\s|$)`)

// converted is a file that may be YAML. It is read when it is read first: descriptions whole, up to the size of the largest log entry.
type converted struct {
	from io.Reader
	text io.Reader
}

// Read implements io.Reader.
func (c *converted) Read(p []byte) (int, error) {
	if c.text == nil {
		text, err := io.ReadAll(io.LimitReader(c.from, events.MaxBytes+1))
		switch {
		case err != nil:
			c.text = io.MultiReader(bytes.NewReader(text), failing{err})
		case len(text) > events.MaxBytes && describedYAML.Match(text):
			c.text = failing{fmt.Errorf("it describes TPUs in YAML, and has more than %d bytes; split it, or describe them with --format=json", events.MaxBytes)}
		case describedYAML.Match(text), healthYAML.Match(text):
			if c.text, err = yamlAsJSON(text); err != nil {
				c.text = failing{fmt.Errorf("it describes a TPU, but not in gcloud's YAML or JSON: %w", err)}
			}
		default:
			c.text = io.MultiReader(bytes.NewReader(text), c.from)
		}
	}
	return c.text.Read(p)
}

// failing is the end of a file that could not be read any further.
type failing struct{ error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.error }

// yamlAsJSON writes each document of YAML as JSON.
func yamlAsJSON(text []byte) (io.Reader, error) {
	var out bytes.Buffer
	d := yaml.NewDecoder(bytes.NewReader(text))
	for line := 1; ; line++ {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return &out, nil
		} else if err != nil {
			return nil, err
		}
		for ; line < n.Content[0].Line; line++ {
			out.WriteByte('\n')
		}
		raw, err := json.Marshal(valueOf(n.Content[0]))
		if err != nil {
			return nil, err
		}
		out.Write(raw)
		out.WriteByte('\n')
	}
}

// valueOf is a value of YAML as JSON has it. A time stays the text that it is.
func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = valueOf(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, valueOf(item))
		}
		return list
	case yaml.AliasNode:
		return fmt.Sprint("*", n.Value) // gcloud writes none
	case yaml.ScalarNode, yaml.DocumentNode:
	}
	switch n.ShortTag() {
	case "!!bool", "!!int", "!!float", "!!null":
		var v any
		if n.Decode(&v) == nil {
			return v
		}
	}
	return n.Value
}
