package cloudtpu

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/topology"
)

// apartMark says in a specification that the values of its metadata are stored separately: they may be secrets, and anybody
// who may see Pitstop's state may read the rest. For a start-up script it holds the words that Pitstop itself reads; of
// every other value it holds no part.
const apartMark = "metadata_apart"

// errApart prevents the creation of a node with the placeholders for its metadata.
var errApart = errors.New("specification: the values of its metadata are kept apart and were not put back")

// apart takes the values of the metadata out of a specification and returns them.
func apart(whole map[string]any) (values map[string]string) {
	node, _ := whole["node"].(map[string]any)
	metadata, _ := node["metadata"].(map[string]any)
	if len(metadata) == 0 || whole[apartMark] == true {
		return nil
	}
	values = map[string]string{}
	for key, v := range metadata {
		values[key], _ = v.(string)
		metadata[key] = told(key, values[key])
	}
	whole[apartMark] = true
	return values
}

// told is the placeholder in a specification for a value that is stored separately.
func told(key, value string) string {
	switch {
	case strings.TrimSpace(value) == "":
		return ""
	case key == scriptURLKey:
		return "kept apart" // only its presence
	case key != scriptKey:
		return ""
	}
	words := []string{"#"}
	if strings.Contains(value, crewWord) {
		words = append(words, crewWord)
	}
	if from := scaleFrom.FindStringSubmatch(value); from != nil {
		if _, _, err := topology.ParseSlices(from[1]); from[1] != "" && err != nil {
			from[1] = "unknown" // it may be any text, not a shape
		}
		words = append(words, strings.TrimSuffix("--scale-from="+from[1], "="))
	}
	for name, number := range map[string][]string{"--global-batch=": scaleBatch.FindStringSubmatch(value), "--steps=": scaleSteps.FindStringSubmatch(value)} {
		if number != nil {
			words = append(words, name+number[1])
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// IsApart reports whether the values of a specification's metadata are kept apart from it.
func IsApart(spec []byte) bool {
	r, err := readSpec(spec)
	return errors.Is(err, errApart) && r.Node != nil
}

// Whole puts the values of the metadata back into a specification from which they were taken.
func Whole(spec []byte, values map[string]string) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	if whole[apartMark] != true {
		return spec, nil
	}
	delete(whole, apartMark)
	node, _ := whole["node"].(map[string]any)
	metadata, _ := node["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value, kept := values[key]
		if !kept {
			return nil, fmt.Errorf("specification: the value of its metadata key %s is not kept", key)
		}
		metadata[key] = value
	}
	spec, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return spec, nil
}

// nameOf names a specification by a hash of its content. It names the metadata values by the life of the slice, or the order
// of the queued resource, that they came from. A hash of the values would let every reader test guesses.
func nameOf(r provider.Ref, spec []byte, values map[string]string, n *api.Node, q *api.QueuedResource) string {
	name := events.ID("spec", string(spec))
	if values == nil {
		return name
	}
	life := []string{"values", r.Project, r.Zone, r.Name, decimal(n.Id), n.CreateTime}
	if n.Id == 0 && n.CreateTime == "" && q != nil {
		life = append(life, path.Base(q.Name), q.CreateTime)
	}
	return name + "@" + events.ID(life...)
}
