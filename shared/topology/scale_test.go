package topology_test

import (
	"testing"

	"pitstop.internal/shared/topology"
)

func TestDevices(t *testing.T) {
	for accelerator, want := range map[string]int{
		"v2-8": 8, "v3-32": 32, "v4-8": 4, "v4-512": 256, "v5p-8": 4, "v5litepod-16": 16, "v6e-8": 8,
	} {
		s, err := topology.Parse(accelerator)
		if err != nil || s.Devices() != want {
			t.Errorf("%s has %d devices (%v), want %d", accelerator, s.Devices(), err, want)
		}
	}
}

func TestRescale(t *testing.T) {
	for _, c := range []struct {
		from, to     int
		batch, steps int64
		want         topology.Scaled
		fails        bool
	}{
		{from: 8, to: 32, batch: 1024, steps: 100, want: topology.Scaled{GlobalBatch: 4096, Steps: 25, Exact: true}},
		{from: 32, to: 8, batch: 4096, steps: 25, want: topology.Scaled{GlobalBatch: 1024, Steps: 100, Exact: true}},
		{from: 8, to: 32, batch: 1024, steps: 101, want: topology.Scaled{GlobalBatch: 4096, Steps: 26}},
		{from: 8, to: 16, batch: 8, steps: 1, want: topology.Scaled{GlobalBatch: 16, Steps: 1}},
		{from: 8, to: 8, batch: 100, steps: 1, fails: true},
		{from: 8, to: 8, batch: 0, steps: 1, fails: true},
		{from: 0, to: 8, batch: 8, steps: 1, fails: true},
		{from: 1, to: 1, batch: 1 << 40, steps: 1 << 40, fails: true},
	} {
		got, err := topology.Rescale(c.from, c.to, c.batch, c.steps)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("Rescale(%d, %d, %d, %d) = %+v, %v; want %+v", c.from, c.to, c.batch, c.steps, got, err, c.want)
		}
	}
}
