package metadata

import (
	"testing"
	"testing/fstest"
)

func TestMachineIDTellsMachinesApart(t *testing.T) {
	of := func(text string) string { return machineIDIn(fstest.MapFS{"etc/machine-id": {Data: []byte(text)}}) }
	a, b := of("0123456789abcdef0123456789abcdef\n"), of("fedcba9876543210fedcba9876543210\n")
	if len(a) != 8 || len(b) != 8 || a == b {
		t.Errorf("%q, %q", a, b)
	}
	for name, got := range map[string]string{"empty": of(""), "first start": of("uninitialized\n"), "none": machineIDIn(fstest.MapFS{})} {
		if got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
