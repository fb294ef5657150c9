package scaling_test

import (
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
		"it scales": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 does 95 % of what one of v2-8 does",
		},
		"the same global batch on four times the cores": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 1024, 2000)},
			"give each core of v2-32 128 examples a step, a global batch of 4,096: now it gets 32, too small a batch per core, " +
				"and a chip of v2-32 does 50 % of what one of v2-8 does",
		},
		"no faster with the same batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 1050)},
			"look at the input first: v2-32 with 4 times the chips is hardly faster than v2-8, with at least as large a batch per core, " +
				"so the training is probably input-bound",
		},
		"somewhat faster with the same batch on a core": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 2000)},
			"profile a step on v2-32, the input first: a chip of v2-32 does 50 % of what one of v2-8 does, with at least as large a batch " +
				"per core, so the training is probably input-bound",
		},
		"somewhat faster on several slices": {
			[]scaling.Attempt{on("v4-8", 1, 64, 1000), on("v4-8", 4, 256, 2000)},
			"profile a step on 4xv4-8 for the input and for the network between the slices: a chip of 4xv4-8 does 50 % of what one of v4-8 does, " +
				"with at least as large a batch per core, so the training is probably input-bound or waits for other slices",
		},
		"a batch that nobody told": {
			[]scaling.Attempt{on("v2-8", 1, 0, 1000), on("v2-32", 1, 0, 2000)},
			"tell pitcrew run the batch (--examples-per-step), because a chip of v2-32 does 50 % of what one of v2-8 does, " +
				"and only the batch of a core shows whether it is too small",
		},
		"too few steps on the small one": {
			[]scaling.Attempt{brief(on("v2-8", 1, 1024, 1000), 7), on("v2-32", 1, 4096, 3800)}, "train longer on v2-8 before you compare: 7 steps say little",
		},
		"too few steps on the large one": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), brief(on("v2-32", 1, 4096, 3800), 19)}, "train longer on v2-32 before you compare: 19 steps say little",
		},
		"a speed that the output told counts without steps": {
			[]scaling.Attempt{brief(on("v2-8", 1, 1024, 1000), 0), on("v2-32", 1, 4096, 3800)},
			"go on with v2-32: it scales well, because a chip of v2-32 does 95 % of what one of v2-8 does",
		},
		"the better batch of the largest counts": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 1024, 2000), on("v2-32", 1, 4096, 3900), on("v2-128", 1, 4096, 4000), on("v2-128", 1, 16384, 15200)},
			"go on with v2-128: it scales well, because a chip of v2-128 does 95 % of what one of v2-8 does",
		},
		"the generation with the largest slice": {
			[]scaling.Attempt{on("v2-8", 1, 1024, 1000), on("v2-32", 1, 4096, 4000), on("v3-8", 1, 1024, 2000), on("v3-128", 1, 1024, 8000)},
			"give each core of v3-128 128 examples a step, a global batch of 16,384: now it gets 8, too small a batch per core, " +
				"and a chip of v3-128 does 25 % of what one of v3-8 does",
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
	all := []scaling.Attempt{
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

// TestOrderDoesNotMatter, the smallest shape of each generation has the efficiency 1, and the advice is one sentence.
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
			first := got.Rows[slices.IndexFunc(got.Rows, func(o scaling.Row) bool { return strings.Contains(o.Shape, shape.Generation+"-") })]
			if r.Shape == first.Shape {
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
