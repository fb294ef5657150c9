package cloudtpu

import (
	"strings"
	"testing"

	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// ordered is a specification with a start-up script.
func ordered(shape, script, more string) string {
	return `{"node":{` + shape + `,"labels":{"team":"a"},"metadata":{"startup-script":"` + script + `"},"runtimeVersion":"r"` + more + `}}`
}

const scales = "pitcrew run --scale-from=v5litepod-16 --global-batch 1024 --steps=100 -- python3 train.py"

// TestAReshapedSpecificationIsAnotherSliceAndNothingElse, or it says why it cannot be.
func TestAReshapedSpecificationIsAnotherSliceAndNothingElse(t *testing.T) {
	const v5e16 = `"acceleratorType":"v5litepod-16"`
	for name, c := range map[string]struct {
		spec   string
		to     policy.Alternative
		slices int
		// want is the specification, or what the refusal says.
		want string
	}{
		"a smaller one": {
			ordered(v5e16, scales, ""), policy.Alternative{Accelerator: "v5litepod-8"}, 1, ordered(`"acceleratorType":"v5litepod-8"`, scales, ""),
		},
		"a larger one, which its range has no room for": {
			ordered(v5e16, scales, `,"cidrBlock":"10.0.0.0/29"`),
			policy.Alternative{Accelerator: "v5litepod-64"},
			1,
			ordered(`"acceleratorType":"v5litepod-64"`, scales, ""),
		},
		"from a topology": {
			ordered(`"acceleratorConfig":{"topology":"2x2x4","type":"V4"}`, scales, ""),
			policy.Alternative{Accelerator: "v4-16"},
			1,
			ordered(`"acceleratorType":"v4-16"`, scales, ""),
		},
		"another generation": {
			ordered(v5e16, scales, ""),
			policy.Alternative{Accelerator: "v6e-8", RuntimeVersion: "v2-alpha-tpuv6e"},
			2,
			strings.Replace(ordered(`"acceleratorType":"v6e-8"`, scales, ""), `"r"`, `"v2-alpha-tpuv6e"`, 1),
		},
		"another generation that boots something else": {
			ordered(v5e16, scales, ""), policy.Alternative{Accelerator: "v6e-8"}, 1, "v6e boots another runtime version than v5litepod",
		},
		"in a queued resource": {
			`{"node":{` + v5e16 + `,"metadata":{"startup-script":"` + scales + `"}},"queued_resource":{"spot":{}}}`,
			policy.Alternative{Accelerator: "v5litepod-8"},
			1,
			`{"node":{"acceleratorType":"v5litepod-8","metadata":{"startup-script":"` + scales + `"}},"queued_resource":{"spot":{}}}`,
		},
		"of a reservation": {
			ordered(v5e16, scales, `,"schedulingConfig":{"reserved":true}`), policy.Alternative{Accelerator: "v5litepod-8"}, 1, "a reservation holds only one shape",
		},
		"a legacy node": {`{"legacy_node":{"acceleratorType":"v3-8"}}`, policy.Alternative{Accelerator: "v2-8"}, 1, "a legacy TPU Node"},
		"a type that nobody knows": {
			ordered(`"acceleratorType":"v9-8"`, scales, ""), policy.Alternative{Accelerator: "v5litepod-8"}, 1, "its shape is unknown",
		},
		"a topology that nobody knows": {
			ordered(`"acceleratorConfig":{"topology":"ring","type":"V4"}`, scales, ""), policy.Alternative{Accelerator: "v4-8"}, 1, "its shape is unknown",
		},
		"to a type that nobody knows": {ordered(v5e16, scales, ""), policy.Alternative{Accelerator: "v9-8"}, 1, "accelerator type v9-8 is unknown"},
		"a training that keeps its numbers": {
			ordered(v5e16, "pitcrew run -- python3 train.py", ""), policy.Alternative{Accelerator: "v5litepod-8"}, 1, "gives pitcrew no --scale-from",
		},
		"a batch that is not whole": {
			ordered(v5e16, "pitcrew run --scale-from v5litepod-16 --global-batch 1000 --steps 100 -- t", ""),
			policy.Alternative{Accelerator: "v5litepod-8"},
			1,
			"a global batch of 1000 cannot be divided evenly among 16 devices",
		},
		"a batch for a device of v3, which is a core": {
			ordered(v5e16, "pitcrew run --scale-from=v3-32 --global-batch=16 --steps=100 -- t", ""),
			policy.Alternative{Accelerator: "v5litepod-8"},
			1,
			"a global batch of 16 cannot be divided evenly among 32 devices",
		},
		"a batch for a device of v4, which is a chip": {
			ordered(v5e16, "pitcrew run --scale-from=v4-32 --global-batch=16 --steps=100 -- t", ""),
			policy.Alternative{Accelerator: "v5litepod-8"},
			1,
			ordered(`"acceleratorType":"v5litepod-8"`, "pitcrew run --scale-from=v4-32 --global-batch=16 --steps=100 -- t", ""),
		},
		"a batch for a type that nobody knows": {
			ordered(v5e16, "pitcrew run --scale-from=v9-32 --global-batch=16 --steps=100 -- t", ""),
			policy.Alternative{Accelerator: "v5litepod-8"},
			1,
			"accelerator type v9-32 is unknown",
		},
		"numbers that the script has in variables": {
			ordered(v5e16, "pitcrew run --scale-from=$TYPE --global-batch=$BATCH --steps=100 -- t", ""),
			policy.Alternative{Accelerator: "v5litepod-8"},
			1,
			ordered(`"acceleratorType":"v5litepod-8"`, "pitcrew run --scale-from=$TYPE --global-batch=$BATCH --steps=100 -- t", ""),
		},
		"an invalid specification": {`{}`, policy.Alternative{Accelerator: "v5litepod-8"}, 1, "it has no node"},
	} {
		got, err := Reshape([]byte(c.spec), c.to, c.slices)
		if err == nil {
			if string(got) != canonicalSpec(t, c.want) {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			continue
		}
		f := provider.Failure(err)
		if f.Class != reason.CannotMove || f.Reason() != reason.CodeOtherShape || !strings.Contains(strings.ReplaceAll(f.Message, `"`, ""), c.want) {
			t.Errorf("%s: %+v, want %s", name, f, c.want)
		}
	}
}

// TestARestoredSpecificationIsInItsOwnShapeAgain, whatever else has changed since.
func TestARestoredSpecificationIsInItsOwnShapeAgain(t *testing.T) {
	own := ordered(`"acceleratorConfig":{"topology":"4x4x4_twisted","type":"V4"}`, scales, "")
	other, err := Reshape([]byte(own), policy.Alternative{Accelerator: "v6e-8", RuntimeVersion: "v2-alpha-tpuv6e"}, 1)
	must(t, err)
	relabelled := strings.Replace(string(other), `"team":"a"`, `"team":"b"`, 1)
	got, err := Restore([]byte(relabelled), []byte(own), false)
	if want := canonicalSpec(t, strings.Replace(own, `"team":"a"`, `"team":"b"`, 1)); err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	for _, bad := range [][2]string{{"{", own}, {own, "{"}, {"{}", own}} {
		if got, err := Restore([]byte(bad[0]), []byte(bad[1]), false); err == nil {
			t.Errorf("%q is restored to %s", bad, got)
		}
	}
}

// TestARestoredSpecificationIsConnectedAsItWasAtHome, and elsewhere as it is now.
func TestARestoredSpecificationIsConnectedAsItWasAtHome(t *testing.T) {
	const (
		v5e16  = `"acceleratorType":"v5litepod-16"`
		west   = `,"networkConfig":{"subnetwork":"tpu-west"}`
		center = `,"networkConfig":{"subnetwork":"tpu-central"}`
		ours   = `,"cidrBlock":"10.0.0.0/29"`
		theirs = `,"cidrBlock":"10.9.0.0/29"`
	)
	is := ordered(`"acceleratorType":"v5litepod-8"`, scales, center+theirs)
	for home, want := range map[bool]string{true: ordered(v5e16, scales, west+ours), false: ordered(v5e16, scales, center)} {
		got, err := Restore([]byte(is), []byte(ordered(v5e16, scales, west+ours)), home)
		if want = canonicalSpec(t, want); err != nil || string(got) != want {
			t.Errorf("home %v: %s, %v; want %s", home, got, err, want)
		}
	}
}

// canonicalSpec has the fields in the order in which specifications are written.
func canonicalSpec(t *testing.T, spec string) string {
	t.Helper()
	got, err := reshaped([]byte(spec), func(map[string]any) {})
	if err != nil {
		return spec // it is what a refusal says
	}
	return string(got)
}
