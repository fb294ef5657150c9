package tpu

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
)

// shaping are the fields of a node that say what shape it is in, and what boots there.
var shaping = []string{"acceleratorType", "acceleratorConfig", "runtimeVersion"}

// connecting are the fields of a node that say what it is connected to: something of its region.
var connecting = []string{"networkConfig", "networkConfigs", "cidrBlock"}

// Reshape makes a specification that of another shape, for a training on so many slices, and changes nothing else. What cannot be
// had in that shape, or would not train there as it trains now, is incident.CannotMove and says why.
func Reshape(spec []byte, to policy.Shape, of int) ([]byte, error) {
	failed := func(format string, args ...any) error {
		return &Error{Call: "make the specification a " + to.Accelerator, Class: incident.CannotMove, Code: incident.CodeOtherShape, Message: fmt.Sprintf(format, args...)}
	}
	if _, err := readLegacySpec(spec); err == nil {
		return nil, failed("a legacy TPU Node is created in its own shape alone")
	}
	r, err := readSpec(spec)
	if err != nil && !errors.Is(err, errApart) {
		return nil, failed("%v", err)
	}
	if reserved(r.Node, r.QueuedResource) {
		return nil, failed("a reservation holds one shape alone")
	}
	is, err := topology.Parse(acceleratorOf(r.Node))
	if err != nil {
		return nil, failed("what shape it is in is not known: %v", err)
	}
	next, err := topology.Parse(to.Accelerator)
	if err != nil {
		return nil, failed("%v", err)
	}
	if is.Generation != next.Generation && to.RuntimeVersion == "" {
		return nil, failed("%s boots another runtime version than %s, and the policy names none", next.Generation, is.Generation)
	}
	if err := scaled(r.Node.Metadata[scriptKey], next, of); err != nil {
		return nil, failed("%v", err)
	}
	return reshaped(spec, func(node map[string]any) {
		delete(node, "acceleratorConfig")
		node["acceleratorType"] = to.Accelerator
		if to.RuntimeVersion != "" {
			node["runtimeVersion"] = to.RuntimeVersion
		}
		if next.Workers != is.Workers {
			delete(node, "cidrBlock") // the API chooses one that has room for its workers
		}
	})
}

// Restore makes a specification that of the shape that another one asks for, and changes nothing else. At home, in the region in which
// the other was read, it is connected as that one is: it may have been connected elsewhere since, and nothing leads back from there.
func Restore(spec, own []byte, home bool) ([]byte, error) {
	var is struct {
		Node map[string]any `json:"node"`
	}
	if err := json.Unmarshal(own, &is); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	fields := shaping
	if home {
		fields = slices.Concat(shaping, connecting)
	}
	return reshaped(spec, func(node map[string]any) {
		delete(node, "cidrBlock") // it has room for the workers that there were
		for _, name := range fields {
			delete(node, name)
			if v, ok := is.Node[name]; ok {
				node[name] = v
			}
		}
	})
}

func reshaped(spec []byte, change func(node map[string]any)) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	node, ok := whole["node"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("specification: it has no node")
	}
	change(node)
	spec, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return spec, nil
}

// What a start-up script tells pitcrew of the training's numbers, as far as they are written out.
var (
	scaleFrom  = regexp.MustCompile(`--scale-from(?:[= ]["']?([a-z0-9]+-?[a-z0-9]+))?`)
	scaleBatch = regexp.MustCompile(`--global-batch[= ]["']?([0-9]+)`)
	scaleSteps = regexp.MustCompile(`--steps[= ]["']?([0-9]+)`)
)

// scaled says why a training would not see as many examples, as many at a time on each device, on so many slices of another
// shape: pitcrew scales its numbers where it is told what they are for.
func scaled(script string, to topology.Shape, of int) error {
	from := scaleFrom.FindStringSubmatch(script)
	if from == nil {
		return fmt.Errorf("its start-up script gives pitcrew no --scale-from, so batch and steps would stay those of the other shape")
	}
	batch, steps := scaleBatch.FindStringSubmatch(script), scaleSteps.FindStringSubmatch(script)
	if from[1] == "" || batch == nil || steps == nil {
		return nil // they are in variables of the script: pitcrew itself refuses what it cannot scale
	}
	is, n, err := topology.ParseSlices(from[1])
	if err != nil {
		return err
	}
	_, err = topology.Rescale(n*is.Devices(), of*to.Devices(), number(batch[1]), number(steps[1]))
	return err
}

// number reads digits; what is too large cannot be scaled, as 0 cannot.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
