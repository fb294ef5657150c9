package gke

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/provider"
)

// Orders are the stored manifests of Jobs and JobSets. A Job of a JobSet has the manifest of that.
type Orders struct{}

var _ provider.Orders = Orders{}

// Waits implements provider.Orders: what is created waits for its machines.
func (Orders) Waits([]byte) bool { return true }

// IsApart implements provider.Orders.
func (Orders) IsApart(spec []byte) bool {
	var manifest map[string]any
	if json.Unmarshal(spec, &manifest) != nil {
		return false
	}
	for _, job := range jobsIn(manifest) {
		for _, variable := range job.variables() {
			if variable[valueApart] != nil {
				return true
			}
		}
	}
	return false
}

// Whole implements provider.Orders.
func (Orders) Whole(spec []byte, values map[string]string) ([]byte, error) {
	var manifest map[string]any
	if err := json.Unmarshal(spec, &manifest); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	put := 0
	for _, job := range jobsIn(manifest) {
		for at, variable := range job.variables() {
			if variable[valueApart] == nil {
				continue
			}
			value, kept := values[at]
			if !kept {
				return nil, fmt.Errorf("manifest: the value of the variable %s is not kept", at)
			}
			delete(variable, valueApart)
			variable["value"] = value
			put++
		}
	}
	if put != len(values) {
		return nil, fmt.Errorf("manifest: %d values are kept, and %d belong to it", len(values), put)
	}
	whole, err := json.Marshal(manifest, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return whole, nil
}

// Together implements provider.Orders: slices that come together are of one JobSet.
func (Orders) Together(_ []string, specs [][]byte) ([]byte, error) {
	for _, spec := range specs {
		if !bytes.Equal(spec, specs[0]) {
			return nil, errors.New("manifest: the Jobs of one JobSet were read with different manifests of it")
		}
	}
	if len(specs) == 0 {
		return nil, errors.New("manifest: no slice is named")
	}
	return specs[0], nil
}
