package cloudtpu

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
)

// shaping are the fields of a node with its shape and its runtime version.
var shaping = []string{"acceleratorType", "acceleratorConfig", "runtimeVersion"}

// connecting are the fields of a node with its connections, which belong to its region.
var connecting = []string{"networkConfig", "networkConfigs", "cidrBlock"}

// Reshape changes a specification to another shape, for a training on so many slices, and changes only that. If the shape is
// not available, or the training would not train there as it does now, the error is incident.CannotMove and says why.
func Reshape(spec []byte, to policy.Alternative, of int) ([]byte, error) {
	failed := func(format string, args ...any) error {
		return &provider.Error{Call: "make the specification a " + to.Accelerator, Class: reason.CannotMove, Code: reason.CodeOtherShape, Message: fmt.Sprintf(format, args...)}
	}
	if _, err := readLegacySpec(spec); err == nil {
		return nil, failed("a legacy TPU Node is created only in its own shape")
	}
	r, err := readSpec(spec)
	if err != nil && !errors.Is(err, errApart) {
		return nil, failed("%v", err)
	}
	if reserved(r.Node, r.QueuedResource) && to.Capacity == "" {
		return nil, failed("a reservation holds only one shape")
	}
	is, err := topology.Parse(acceleratorOf(r.Node))
	if err != nil {
		return nil, failed("its shape is unknown: %v", err)
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

// tiers are the fields of a queued resource that say what it is taken from, and for how long.
var tiers = []string{"spot", "bestEffort", "guaranteed", "reservationName", "provisioningModel", "runDuration"}

// Take changes a specification to other capacity, and changes only that. A reservation is named by Reserve.
func Take(spec []byte, of events.Capacity) ([]byte, error) {
	if _, err := readLegacySpec(spec); err == nil {
		return nil, &provider.Error{
			Call: "take the slice " + of.Words(), Class: reason.CannotMove, Code: reason.CodeOtherCapacity,
			Message: "a legacy TPU Node is created only from the capacity that it was ordered from",
		}
	}
	return changed(spec, func(node, queued map[string]any) {
		delete(node, "schedulingConfig")
		for _, name := range tiers {
			delete(queued, name)
		}
		is := map[events.Capacity]string{events.Spot: "spot", events.Reserved: "reserved"}[of]
		switch {
		case queued == nil && is != "":
			node["schedulingConfig"] = map[string]any{is: true}
		case queued == nil:
		case of == events.Spot:
			queued["spot"] = map[string]any{}
		case of == events.Reserved:
			queued["guaranteed"] = map[string]any{"reserved": true}
		default:
			queued["guaranteed"] = map[string]any{}
		}
	})
}

// Reserve names the reservation from which a specification is taken: a short name, which is that of one in the zone, or a whole one.
func Reserve(spec []byte, project, zone, name string) ([]byte, error) {
	return changed(spec, func(node, queued map[string]any) {
		if queued == nil {
			node["schedulingConfig"] = map[string]any{"reserved": true, "reservationName": name}
			return
		}
		if !strings.Contains(name, "/") {
			name = "projects/" + project + "/locations/" + zone + "/reservations/" + name
		}
		queued["reservationName"] = name
	})
}

// TakeAs changes a specification to the capacity of another one, and changes only that.
func TakeAs(spec, own []byte) ([]byte, error) {
	var is struct {
		Node   map[string]any `json:"node"`
		Queued map[string]any `json:"queued_resource"`
	}
	if err := json.Unmarshal(own, &is); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return changed(spec, func(node, queued map[string]any) {
		take(node, is.Node, "schedulingConfig")
		if queued != nil {
			take(queued, is.Queued, tiers...)
		}
	})
}

// take has some fields be as in another value.
func take(v, own map[string]any, fields ...string) {
	for _, name := range fields {
		delete(v, name)
		if is, ok := own[name]; ok {
			v[name] = is
		}
	}
}

// Restore changes a specification to the shape of another one, and changes only that. At home, in the region in which the
// other was read, it also takes over the other's connections: they may have been changed for another region since, and could
// not be derived back.
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
		delete(node, "cidrBlock") // it has room for the former workers
		take(node, is.Node, fields...)
	})
}

// Autocheckpointed turns autocheckpoint on in a specification. A legacy TPU Node has none, so its specification stays as it is.
func Autocheckpointed(spec []byte) ([]byte, error) {
	if _, err := readLegacySpec(spec); err == nil {
		return spec, nil
	}
	return reshaped(spec, func(node map[string]any) { node["autocheckpointEnabled"] = true })
}

func reshaped(spec []byte, change func(node map[string]any)) ([]byte, error) {
	return changed(spec, func(node, _ map[string]any) { change(node) })
}

// changed changes the node of a specification, and its queued resource, which is nil where it has none.
func changed(spec []byte, change func(node, queued map[string]any)) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	node, ok := whole["node"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("specification: it has no node")
	}
	queued, _ := whole["queued_resource"].(map[string]any)
	change(node, queued)
	spec, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return spec, nil
}

// The training's numbers that a start-up script gives to pitcrew, as far as they are written out.
var (
	scaleFrom  = regexp.MustCompile(`--scale-from(?:[= ]["']?([a-z0-9]+-?[a-z0-9]+))?`)
	scaleBatch = regexp.MustCompile(`--global-batch[= ]["']?([0-9]+)`)
	scaleSteps = regexp.MustCompile(`--steps[= ]["']?([0-9]+)`)
)

// scaled says why a training could not keep its total of examples and its batch per device on so many slices of another
// shape. pitcrew scales these numbers if the script says which shape they are for.
func scaled(script string, to topology.Shape, of int) error {
	from := scaleFrom.FindStringSubmatch(script)
	if from == nil {
		return fmt.Errorf("its start-up script gives pitcrew no --scale-from, so batch and steps would stay those of the other shape")
	}
	batch, steps := scaleBatch.FindStringSubmatch(script), scaleSteps.FindStringSubmatch(script)
	if from[1] == "" || batch == nil || steps == nil {
		return nil // they are in variables of the script: pitcrew itself refuses numbers that it cannot scale
	}
	is, n, err := topology.ParseSlices(from[1])
	if err != nil {
		return err
	}
	_, err = topology.Rescale(n*is.Devices(), of*to.Devices(), number(batch[1]), number(steps[1]))
	return err
}

// number reads digits; a number that is too large cannot be scaled, and neither can 0.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
