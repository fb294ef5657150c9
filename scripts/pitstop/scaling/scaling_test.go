package scaling_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/scaling"
	"pitstop.internal/shared/topology"
)

// on is an attempt that was measured for 200 steps.
func on(accelerator string, n int, batch int64, rate float64) scaling.Attempt {
	return scaling.Attempt{
		Of: "llama", ExamplesPerSecond: rate,
		Measured: events.Measured{Accelerator: accelerator, Slices: n, GlobalBatch: batch, Steps: 200, Seconds: 200 * float64(batch) / rate},
	}
}

func brief(a scaling.Attempt, steps int64) scaling.Attempt {
	a.Steps = steps
	return a
}

func TestAdviceNamesWhatLimitsTheLargerShape(t *testing.T) {
	for name, c := range map[string]struct {
		all  []scaling.Attempt
		want string
	}{
		"one size": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-8", 1, 2048, 1100)},
			"train some hundred steps on another size of the same generation: one size alone shows nothing about scaling",
		},
		"one size of each generation": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v3-32", 1, 4096, 9000)},
			"train some hundred steps on another size of the same generation: one size alone shows nothing about scaling",
		},
		"two shapes with as many chips": {
			[]scaling.Attempt{on("v2-32", 1, 4096, 1000), on("v2-8", 4, 4096, 500)},
			"train some hundred steps on another size of the same generation: v2-32 and 4xv2-8 have the same number of chips, which shows nothing about scaling",
		},
		"it scales": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 4,096) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"it scales with a smaller batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 2048, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 2,048) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"the small one had a smaller batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 128, 500), on("v2-32", 1, 4096, 1900)},
			"train some hundred steps on v2-8 with 128 examples a core first, a global batch of 1,024: with 16 a core it does not compare with v2-32 (batch 4,096)",
		},
		"the small one had a tiny batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 8, 50), on("v2-32", 1, 4096, 3800)},
			"train some hundred steps on v2-8 with 128 examples a core first, a global batch of 1,024: with 1 a core it does not compare with v2-32 (batch 4,096)",
		},
		"of several batches on the small one the nearest counts": {
			[]scaling.Attempt{on("v2-8", 1, 128, 500), on("v2-8", 1, 1024, 1000), on("v2-8", 1, 8192, 1200), on("v2-32", 1, 4096, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 4,096) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"slow, though the small one had a smaller batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 128, 1000), on("v2-32", 1, 4096, 2000)},
			"profile a step on v2-32, the input first: a chip of v2-32 (batch 4,096) does 50 % of what one of v2-8 (batch 128) does, " +
				"with at least as large a batch per core",
		},
		"the same global batch on four times the cores": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 1024, 2000)},
			"give each core of v2-32 128 examples a step, a global batch of 4,096: now it gets 32, too small a batch per core, " +
				"and a chip of v2-32 (batch 1,024) does 50 % of what one of v2-8 (batch 1,024) does",
		},
		"no faster with the same batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 1050)},
			"look at the input first: v2-32 (batch 4,096) with 4 times the chips is hardly faster than v2-8 (batch 1,024), " +
				"with at least as large a batch per core, so the training is probably input-bound",
		},
		"slower with the same batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 990)},
			"profile a step on v2-32 for the input and for the exchange between its cores: v2-32 (batch 4,096) with 4 times the chips " +
				"is slower than v2-8 (batch 1,024), with at least as large a batch per core",
		},
		"somewhat faster with the same batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 2000)},
			"profile a step on v2-32, the input first: a chip of v2-32 (batch 4,096) does 50 % of what one of v2-8 (batch 1,024) does, " +
				"with at least as large a batch per core",
		},
		"somewhat faster on several slices": {
			[]scaling.Attempt{on("v4-8", 1, 64, 1000), on("v4-8", 4, 256, 2000)},
			"profile a step on 4xv4-8 for the input and for the network between the slices: a chip of 4xv4-8 (batch 256) does 50 % of what one of v4-8 (batch 64) does, " +
				"with at least as large a batch per core",
		},
		"no faster on several slices": {
			[]scaling.Attempt{on("v4-8", 1, 64, 1000), on("v4-8", 2, 128, 1000)},
			"profile a step on 2xv4-8 for the input and for the network between the slices: a chip of 2xv4-8 (batch 128) does 50 % of what one of v4-8 (batch 64) does, " +
				"with at least as large a batch per core",
		},
		"a batch that nobody told": {
			[]scaling.Attempt{on("v2-8", 1, 0, 1000), on("v2-32", 1, 0, 2000)},
			"tell pitcrew run the batch (--examples-per-step), because a chip of v2-32 does 50 % of what one of v2-8 does, " +
				"and only the batch of a core shows whether it is too small",
		},
		"a batch that nobody told, and it seems to scale": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 0, 3800)},
			"tell pitcrew run the batch (--examples-per-step), because a chip of v2-32 does 95 % of what one of v2-8 (batch 1,024) does, " +
				"and only the batch of a core shows whether these two compare",
		},
		"too few steps on the small one": {
			[]scaling.Attempt{brief(on("v2-8", 1, 1024, 1000), 7), on("v2-32", 1, 4096, 3800)},
			"train longer on v2-8 (batch 1,024) before you compare: 7 steps say little",
		},
		"too few steps on the large one": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), brief(on("v2-32", 1, 4096, 3800), 19)},
			"train longer on v2-32 (batch 4,096) before you compare: 19 steps say little",
		},
		"a short attempt with another batch on the small one": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), brief(on("v2-8", 1, 1000, 5000), 5), on("v2-32", 1, 4096, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 4,096) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"a short attempt with another batch on the large one": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 3800), brief(on("v2-32", 1, 8192, 9000), 5)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 4,096) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"a short attempt on a still larger one": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 3800), brief(on("v2-128", 1, 16384, 100), 5)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 4,096) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"a short attempt on a still smaller one": {
			[]scaling.Attempt{brief(on("v2-8", 1, 1024, 5000), 5), on("v2-32", 1, 4096, 4000), on("v2-128", 1, 16384, 15200)},
			"go on with v2-128: it scales well, because a chip of v2-128 (batch 16,384) does 95 % of what one of v2-32 (batch 4,096) does",
		},
		"a speed that the output told counts without steps": {
			[]scaling.Attempt{brief(on("v2-8", 1, 1024, 1000), 0), on("v2-32", 1, 4096, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 (batch 4,096) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"the better batch of the largest counts": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 1024, 2000), on("v2-32", 1, 4096, 3900), on("v2-128", 1, 4096, 4000), on("v2-128", 1, 16384, 15200)},
			"go on with v2-128: it scales well, because a chip of v2-128 (batch 16,384) does 95 % of what one of v2-8 (batch 1,024) does",
		},
		"the generation with the largest slice": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 4000), on("v3-8", 1, 1024, 2000), on("v3-128", 1, 1024, 8000)},
			"give each core of v3-128 128 examples a step, a global batch of 16,384: now it gets 8, too small a batch per core, " +
				"and a chip of v3-128 (batch 1,024) does 25 % of what one of v3-8 (batch 1,024) does",
		},
		"nothing": {nil, ""},
	} {
		if got := scaling.Compare(c.all).Advice; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestShapesStandSideBySide(t *testing.T) {
	other := on("v2-8", 1, 1024, 500)
	other.Of, other.Seconds = "small", 100 // half the time of the first
	first := on("v2-8", 1, 1024, 1000)
	first.Seconds = 200
	got := scaling.Compare([]scaling.Attempt{on("v2-32", 1, 4096, 3000), first, other, on("v3-8", 1, 512, 900), on("v2-8", 2, 2048, 1600)})
	var shapes []string
	for _, r := range got.Rows {
		shapes = append(shapes, r.Shape)
	}
	if !slices.Equal(shapes, []string{"v2-8", "2xv2-8", "v2-32", "v3-8"}) {
		t.Fatalf("the order is %v", shapes)
	}
	small, two, large, third := got.Rows[0], got.Rows[1], got.Rows[2], got.Rows[3]
	if small.Attempts != 2 || small.Steps != 400 || small.Seconds != 300 || math.Abs(small.ExamplesPerSecond-2500/3.0) > 1e-9 ||
		!slices.Equal(small.Of, []string{"llama", "small"}) || small.Chips != 4 || small.Cores != 8 || small.CoreBatch != 128 || small.Efficiency != 1 {
		t.Errorf("%+v", small)
	}
	if two.Chips != 8 || two.PerChip != 200 || math.Abs(two.Efficiency-0.96) > 1e-9 {
		t.Errorf("%+v", two)
	}
	if large.PerChip != 187.5 || math.Abs(large.Efficiency-0.9) > 1e-9 {
		t.Errorf("%+v", large)
	}
	if third.Efficiency != 1 {
		t.Errorf("another generation is compared with v2: %+v", third)
	}
}

func TestWhatCannotBeComparedIsLeftOut(t *testing.T) {
	backwards := on("v2-8", 1, 8, 10)
	backwards.Seconds = -1
	endless := on("v2-8", 1, 8, 10)
	endless.Seconds = 1e300
	all := []scaling.Attempt{
		on("v2-8", 1<<62, 8, 10), on("v2-8", 10_001, 8, 10), on("v4-9223372036854775806", 1, 8, 10), on("v4-2000002", 1, 8, 10), on("v4-2048", 10_000, 8, 10),
		on("v2-8", 1, 8, 1e300), on("v2-8", 1, 8, 5e-324), on("v2-8", 1, 1<<62, 10), brief(on("v2-8", 1, 8, 10), 1<<62), endless,
		on("", 1, 8, 10), on("v9-8", 1, 8, 10), on("v2-8", 1, 8, -1), on("v2-8", 1, -8, 10), on("v2-8", 1, 8, math.NaN()), on("v2-8", 1, 8, math.Inf(1)),
		brief(on("v2-8", 1, 8, 10), -1), backwards, brief(on("v2-8", 1, 8, 0), 5),
	}
	if got := scaling.Compare(all); len(got.Rows) != 0 || got.LeftOut != len(all) || got.Advice != "" {
		t.Errorf("%+v", got)
	}
	if got := scaling.Compare([]scaling.Attempt{on("v2-8", 0, 8, 10)}); len(got.Rows) != 1 || got.Rows[0].Shape != "v2-8" {
		t.Errorf("no number of slices is one: %+v", got)
	}
}

// TestTheTableIsWrittenWhateverTheFigures: nothing within the bounds makes a number that JSON refuses, or a size below 1.
func TestTheTableIsWrittenWhateverTheFigures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := scaling.Compare(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scaling.Attempt {
			return scaling.Attempt{
				Of: "llama", ExamplesPerSecond: rapid.Float64().Draw(t, "rate"),
				Measured: events.Measured{
					Accelerator: rapid.SampledFrom([]string{"v2-8", "v2-32", "v5p-8960", "v4-9223372036854775806"}).Draw(t, "type"),
					Slices:      rapid.Int().Draw(t, "slices"), GlobalBatch: rapid.Int64().Draw(t, "batch"),
					Steps: rapid.Int64().Draw(t, "steps"), Seconds: rapid.Float64().Draw(t, "seconds"),
				},
			}
		}), 1, 8).Draw(t, "attempts"))
		if _, err := json.Marshal(table); err != nil {
			t.Fatalf("%v: %+v", err, table)
		}
		for _, r := range table.Rows {
			if r.Chips < 1 || r.Cores < 1 || r.Steps < 0 || !(r.Efficiency > 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestOrderDoesNotMatter, the smallest shape of each generation has the efficiency 1, and the advice is one sentence. Shapes with
// enough steps go before those with few.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scaling.Attempt {
			a := on(rapid.SampledFrom([]string{"v2-8", "v2-32", "v3-8", "v4-8", "v5litepod-16"}).Draw(t, "type"), rapid.IntRange(1, 3).Draw(t, "slices"),
				rapid.SampledFrom([]int64{0, 1024, 4096}).Draw(t, "batch"), float64(rapid.IntRange(1, 5000).Draw(t, "rate")))
			a.Steps = rapid.Int64Range(0, 500).Draw(t, "steps")
			return a
		}), 1, 12).Draw(t, "attempts")
		got, again := scaling.Compare(all), scaling.Compare(rapid.Permutation(all).Draw(t, "order"))
		if len(got.Rows) != len(again.Rows) || got.Advice == "" ||
			strings.Contains(got.Advice, ". ") || strings.ContainsAny(got.Advice, "\n;") {
			t.Fatalf("%+v\n%+v", got, again)
		}
		best := map[string]float64{}
		for i, r := range got.Rows {
			if o := again.Rows[i]; o.Shape != r.Shape || o.GlobalBatch != r.GlobalBatch || math.Abs(o.Efficiency-r.Efficiency) > 1e-9 {
				t.Fatalf("%+v\n%+v", r, o)
			}
			shape, _, err := topology.ParseSlices(r.Shape)
			if err != nil {
				t.Fatal(err)
			}
			long := func(r scaling.Row) bool { return r.Steps == 0 || r.Steps >= 20 }
			of := slices.DeleteFunc(slices.Clone(got.Rows), func(o scaling.Row) bool { return !strings.Contains(o.Shape, shape.Generation+"-") })
			first := of[max(slices.IndexFunc(of, long), 0)]
			if r.Shape == first.Shape && long(r) == long(first) {
				best[shape.Generation] = max(best[shape.Generation], r.Efficiency)
			}
		}
		for generation, efficiency := range best {
			if math.Abs(efficiency-1) > 1e-9 {
				t.Errorf("the smallest %s has %v", generation, efficiency)
			}
		}
	})
}
