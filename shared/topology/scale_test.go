package topology_test

import (
	"slices"
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

// TestResumeKeepsTheTotalOfExamples through every change of hardware, and through a return to an older checkpoint.
func TestResumeKeepsTheTotalOfExamples(t *testing.T) {
	type batches = []topology.Batch
	for name, c := range map[string]struct {
		before      batches
		from, batch int64
		steps       int64
		now         batches
	}{
		"at the first step":                     {nil, 0, 1000, 100, batches{{0, 1000}}},
		"at the first step, on other hardware":  {nil, 0, 4000, 25, batches{{0, 4000}}},
		"on the same hardware":                  {batches{{0, 1000}}, 40, 1000, 100, batches{{0, 1000}}},
		"on twice as much":                      {batches{{0, 1000}}, 40, 2000, 70, batches{{0, 1000}, {40, 2000}}},
		"on half as much":                       {batches{{0, 1000}}, 40, 500, 160, batches{{0, 1000}, {40, 500}}},
		"back where it was":                     {batches{{0, 1000}, {40, 500}}, 60, 1000, 110, batches{{0, 1000}, {40, 500}, {60, 1000}}},
		"from before the last change":           {batches{{0, 1000}, {40, 500}}, 30, 500, 170, batches{{0, 1000}, {30, 500}}},
		"from the very step of the last change": {batches{{0, 1000}, {40, 500}}, 40, 500, 160, batches{{0, 1000}, {40, 500}}},
		"from there, on the hardware of before": {batches{{0, 1000}, {40, 500}}, 40, 1000, 100, batches{{0, 1000}}},
		"from the beginning again":              {batches{{0, 1000}, {40, 500}}, 0, 500, 200, batches{{0, 500}}},
		"a rest that is no whole batch":         {batches{{0, 1000}}, 99, 3000, 100, batches{{0, 1000}, {99, 3000}}},
		"nothing is left":                       {batches{{0, 1000}}, 100, 500, 100, batches{{0, 1000}, {100, 500}}},
		"more than all":                         {batches{{0, 1000}}, 1 << 62, 500, 1 << 62, batches{{0, 1000}, {1 << 62, 500}}},
	} {
		steps, now := topology.Resume(c.before, c.from, c.batch, 100_000)
		if steps != c.steps || !slices.Equal(now, c.now) {
			t.Errorf("%s: %d steps, %v; want %d, %v", name, steps, now, c.steps, c.now)
		}
		if again, same := topology.Resume(now, c.from, c.batch, 100_000); again != steps || !slices.Equal(same, now) {
			t.Errorf("%s: begun again it has %d steps, %v", name, again, same)
		}
	}
}

func TestParseSlices(t *testing.T) {
	for s, want := range map[string]int{"v4-8": 4, "2xv4-8": 8, "3xv5litepod-16": 48} {
		if of, n, err := topology.ParseSlices(s); err != nil || n*of.Devices() != want {
			t.Errorf("%s is %d of %+v, %v", s, n, of, err)
		}
	}
	for _, s := range []string{"", "0xv4-8", "-1xv4-8", "xv4-8", "99999xv4-8", "2x"} {
		if of, n, err := topology.ParseSlices(s); err == nil {
			t.Errorf("%q is %d of %+v", s, n, of)
		}
	}
}
