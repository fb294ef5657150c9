// Package scaling compares how fast a training runs on accelerator types of different size, and says what limits the larger ones.
// It is pure: measured attempts go in, a table and one sentence of advice come out.
package scaling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// Attempt is one training attempt whose speed was measured.
type Attempt struct {
	// Of names the workload, the TPU or the directory that the attempt belongs to.
	Of string
	events.Measured
	ExamplesPerSecond float64
}

// Row is what all attempts with one shape and one batch have done together.
type Row struct {
	// Shape is an accelerator type, or several slices of it: v2-8, 2xv4-8. Chips and Cores are those of all its slices.
	Shape string `json:"shape"`
	Chips int    `json:"chips"`
	Cores int    `json:"cores"`
	// GlobalBatch is how many examples a step has, and CoreBatch how many of them a core gets; 0 is not known.
	GlobalBatch int64   `json:"global_batch,omitzero"`
	CoreBatch   float64 `json:"core_batch,omitzero"`
	// Of names where the attempts are from.
	Of       []string `json:"of"`
	Attempts int      `json:"attempts"`
	Steps    int64    `json:"steps"`
	Seconds  float64  `json:"seconds"`
	// ExamplesPerSecond is the mean over the time of all attempts, PerChip the same for each chip.
	ExamplesPerSecond float64 `json:"examples_per_second"`
	PerChip           float64 `json:"per_chip"`
	// Efficiency compares PerChip with that of the smallest shape of the generation: 1 is as much.
	Efficiency float64 `json:"efficiency"`

	generation     string
	slices         int
	weight, summed float64
}

// Table compares shapes.
type Table struct {
	// Rows are in the order of their generations, the smallest shape of each first.
	Rows []Row `json:"rows"`
	// LeftOut counts the attempts of which neither speed nor accelerator type can be used.
	LeftOut int `json:"left_out"`
	// Advice is one sentence.
	Advice string `json:"advice"`
}

const (
	// scalesWell is the least efficiency for which nothing is advised. Even a good training loses some percent to the exchange of
	// gradients.
	scalesWell = 0.9
	// fewestSteps is how many steps a comparison needs: fewer vary too much.
	fewestSteps = 20
	// asMuch is the least share of a batch that counts as the same batch.
	asMuch = 0.9
	// noFaster is up to which factor more chips are called no faster at all.
	noFaster = 1.1
)

// Compare makes the table of attempts.
func Compare(all []Attempt) Table {
	type key struct {
		shape string
		batch int64
	}
	var t Table
	rows := map[key]*Row{}
	for _, a := range all {
		shape, err := topology.Parse(a.Accelerator)
		n := max(a.Slices, 1)
		if err != nil || !(a.ExamplesPerSecond > 0) || math.IsInf(a.ExamplesPerSecond, 0) || a.GlobalBatch < 0 || a.Steps < 0 || !(a.Seconds >= 0) {
			t.LeftOut++
			continue
		}
		name := a.Accelerator
		if n > 1 {
			name = strconv.Itoa(n) + "x" + name
		}
		k := key{name, a.GlobalBatch}
		r := rows[k]
		if r == nil {
			r = &Row{
				Shape: name, Chips: n * shape.Chips, Cores: n * shape.Cores, GlobalBatch: a.GlobalBatch, generation: shape.Generation, slices: n,
			}
			r.CoreBatch = float64(a.GlobalBatch) / float64(r.Cores)
			rows[k] = r
		}
		r.add(a)
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, *r)
	}
	slices.SortFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.Chips, b.Chips), cmp.Compare(a.slices, b.slices), cmp.Compare(a.GlobalBatch, b.GlobalBatch))
	})
	base := map[string]Row{}
	for i := range t.Rows {
		r := &t.Rows[i]
		r.ExamplesPerSecond = r.summed / r.weight
		r.PerChip = r.ExamplesPerSecond / float64(r.Chips)
		if b, ok := base[r.generation]; !ok || b.Shape == r.Shape && b.PerChip < r.PerChip {
			base[r.generation] = *r
		}
	}
	for i := range t.Rows {
		t.Rows[i].Efficiency = t.Rows[i].PerChip / base[t.Rows[i].generation].PerChip
	}
	t.Advice = t.advise(base)
	return t
}

// add takes an attempt into the mean. An attempt counts by its time, and by a second where its output told the speed alone.
func (r *Row) add(a Attempt) {
	weight := max(a.Seconds, 1)
	r.Attempts, r.Steps, r.Seconds = r.Attempts+1, r.Steps+a.Steps, r.Seconds+a.Seconds
	r.weight, r.summed = r.weight+weight, r.summed+weight*a.ExamplesPerSecond
	if !slices.Contains(r.Of, a.Of) {
		r.Of = append(r.Of, a.Of)
		slices.Sort(r.Of)
	}
}

// advise says what to do about the largest shape, in one sentence. It compares with the base of the generation.
func (t *Table) advise(base map[string]Row) string {
	if len(t.Rows) == 0 {
		return ""
	}
	small, large := Row{}, Row{}
	for _, generation := range slices.Sorted(maps.Keys(base)) {
		b := base[generation]
		for _, r := range t.Rows {
			better := r.Chips > large.Chips || r.Shape == large.Shape && r.PerChip > large.PerChip
			if r.generation == generation && r.Chips > b.Chips && better {
				small, large = b, r
			}
		}
	}
	if large.Shape == "" {
		return "train some hundred steps on another size of the same generation: one size alone shows nothing about scaling"
	}
	for _, r := range []Row{small, large} {
		if r.Steps > 0 && r.Steps < fewestSteps {
			return fmt.Sprintf("train longer on %s before you compare: %d steps say little", r.Shape, r.Steps)
		}
	}
	times := Figure(float64(large.Chips) / float64(small.Chips))
	does := fmt.Sprintf("a chip of %s does %s of what one of %s does", large.Shape, Percent(large.Efficiency), small.Shape)
	switch {
	case large.Efficiency >= scalesWell:
		return "go on with " + large.Shape + ": it scales well, because " + does
	case small.GlobalBatch == 0 || large.GlobalBatch == 0:
		return "tell pitcrew run the batch (--examples-per-step), because " + does + ", and only the batch of a core shows whether it is too small"
	case large.CoreBatch < asMuch*small.CoreBatch:
		return fmt.Sprintf("give each core of %s %s examples a step, a global batch of %s: now it gets %s, too small a batch per core, and %s",
			large.Shape, Figure(small.CoreBatch), events.Number(int64(math.Ceil(small.CoreBatch*float64(large.Cores)))), Figure(large.CoreBatch), does)
	case large.ExamplesPerSecond < noFaster*small.ExamplesPerSecond:
		return fmt.Sprintf("look at the input first: %s with %s times the chips is hardly faster than %s, with at least as large a batch per core, "+
			"so the training is probably input-bound", large.Shape, times, small.Shape)
	case large.slices > small.slices:
		return fmt.Sprintf("profile a step on %s for the input and for the network between the slices: %s, with at least as large a batch per core, "+
			"so the training is probably input-bound or waits for other slices", large.Shape, does)
	}
	return fmt.Sprintf("profile a step on %s, the input first: %s, with at least as large a batch per core, so the training is probably input-bound",
		large.Shape, does)
}

// Figure writes a number for people: whole from 100 on, else with at most three digits.
func Figure(f float64) string {
	if f >= 100 {
		return events.Number(int64(math.Round(f)))
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// Percent writes a share in whole percent.
func Percent(f float64) string { return strconv.Itoa(int(math.Round(100*f))) + " %" }
