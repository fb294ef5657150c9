package terraform

import "testing"

func TestTheDeploymentIsWithoutFault(t *testing.T) {
	d, err := Parse("../../../terraform")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.Faults() {
		t.Error(fault)
	}
}
