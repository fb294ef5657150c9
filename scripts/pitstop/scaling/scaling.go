// Package scaling compares how fast a training runs on accelerator types of different size, and says what limits the larger ones.
// It is pure: measured attempts go in, a table and one sentence of advice come out.
package scaling

import (
	"cmp"
	"fmt"
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
	// Efficiency compares PerChip with that of the smallest shape of the generation: 1 is as much. Shapes with enough steps go
	// before those with few.
	Efficiency float64 `json:"efficiency"`

	generation     string
	slices         int
	weight, summed float64
}

// Table compares shapes.
type Table struct {
	// Rows are in the order of their generations, the smallest shape of each first.
	Rows []Row `json:"rows"`
	// LeftOut counts the attempts whose speed or accelerator type cannot be used.
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
	// The bounds are far beyond any training. Figures outside of them are forged or broken.
	mostSlices, mostChips = 10_000, 1_000_000
	most, least           = 1e12, 1e-12
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
		if err != nil || !a.isSound() || n > mostSlices || shape.Chips > mostChips/n {
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
	for i := range t.Rows {
		r := &t.Rows[i]
		r.ExamplesPerSecond = r.summed / r.weight
		r.PerChip = r.ExamplesPerSecond / float64(r.Chips)
	}
	base := map[string]Row{}
	for _, r := range t.Rows {
		b, ok := base[r.generation]
		if !ok || r.isLong() && !b.isLong() || r.Shape == b.Shape && r.isLong() == b.isLong() && r.PerChip > b.PerChip {
			base[r.generation] = r
		}
	}
	for i := range t.Rows {
		t.Rows[i].Efficiency = t.Rows[i].PerChip / base[t.Rows[i].generation].PerChip
	}
	t.Advice = t.advise()
	return t
}

// isSound reports whether the figures of an attempt can be those of a training.
func (a Attempt) isSound() bool {
	return a.ExamplesPerSecond >= least && a.ExamplesPerSecond <= most && a.Seconds >= 0 && a.Seconds <= most &&
		a.GlobalBatch >= 0 && a.GlobalBatch <= most && a.Steps >= 0 && a.Steps <= most
}

// isLong reports whether a row has enough steps to be compared. A speed that the output told alone has none and counts.
func (r Row) isLong() bool { return r.Steps == 0 || r.Steps >= fewestSteps }

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

// pair finds the largest of some rows, and the row of its generation's smallest shape that has the nearest batch per core. It
// finds none where no generation has two sizes.
func pair(rows []Row) (small, large Row, found bool) {
	smallest := map[string]Row{}
	for _, r := range rows {
		if _, ok := smallest[r.generation]; !ok {
			smallest[r.generation] = r
		}
	}
	for _, r := range rows {
		if r.Chips > smallest[r.generation].Chips && (r.Chips > large.Chips || r.Shape == large.Shape && r.PerChip > large.PerChip) {
			large, found = r, true
		}
	}
	for _, r := range rows {
		if r.Shape != smallest[large.generation].Shape {
			continue
		}
		if order := cmp.Compare(r.distance(large), small.distance(large)); small.Shape == "" || order < 0 || order == 0 && r.PerChip > small.PerChip {
			small = r
		}
	}
	return small, large, found
}

// distance says how much the batches per core of two rows differ. One that is not known is the farthest.
func (r Row) distance(o Row) float64 {
	if r.GlobalBatch == 0 || o.GlobalBatch == 0 {
		return math.Inf(1)
	}
	return math.Abs(math.Log(r.CoreBatch / o.CoreBatch))
}

// named is the shape with its batch.
func (r Row) named() string {
	if r.GlobalBatch == 0 {
		return r.Shape
	}
	return r.Shape + " (batch " + events.Number(r.GlobalBatch) + ")"
}

// another advises to train on another size, where there is only one.
func (t *Table) another() string {
	const advice = "train some hundred steps on another size of the same generation: "
	for i, r := range t.Rows[1:] {
		if o := t.Rows[i]; o.generation == r.generation && o.Shape != r.Shape {
			return advice + o.Shape + " and " + r.Shape + " have the same number of chips, which shows nothing about scaling"
		}
	}
	return advice + "one size alone shows nothing about scaling"
}

// advise says what to do about the largest shape, in one sentence. A row of few steps counts only where there is no other.
func (t *Table) advise() string {
	if len(t.Rows) == 0 {
		return ""
	}
	small, large, found := pair(slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool { return !r.isLong() }))
	if !found {
		small, large, found = pair(t.Rows)
	}
	if !found {
		return t.another()
	}
	for _, r := range []Row{small, large} {
		if !r.isLong() {
			return fmt.Sprintf("train longer on %s before you compare: %d steps say little", r.named(), r.Steps)
		}
	}
	share := large.PerChip / small.PerChip
	does := fmt.Sprintf("a chip of %s does %s of what one of %s does", large.named(), Percent(share), small.named())
	batch := func(of, on Row) string { return events.Number(int64(math.Ceil(of.CoreBatch * float64(on.Cores)))) }
	const enough = ", with at least as large a batch per core"
	speed := func(how string) string {
		return fmt.Sprintf("%s with %s times the chips is %s than %s"+enough, large.named(), Figure(float64(large.Chips)/float64(small.Chips)), how, small.named())
	}
	switch faster := large.ExamplesPerSecond / small.ExamplesPerSecond; {
	case small.GlobalBatch == 0 || large.GlobalBatch == 0:
		shows := "whether it is too small"
		if share >= scalesWell {
			shows = "whether these two compare"
		}
		return "tell pitcrew run the batch (--examples-per-step), because " + does + ", and only the batch of a core shows " + shows
	case share >= scalesWell && small.CoreBatch < asMuch*large.CoreBatch:
		return fmt.Sprintf("train some hundred steps on %s with %s examples a core first, a global batch of %s: with %s a core it does not compare with %s",
			small.Shape, Figure(large.CoreBatch), batch(large, small), Figure(small.CoreBatch), large.named())
	case share >= scalesWell:
		return "go on with " + large.Shape + ": it scales well, because " + does
	case large.CoreBatch < asMuch*small.CoreBatch:
		return fmt.Sprintf("give each core of %s %s examples a step, a global batch of %s: now it gets %s, too small a batch per core, and %s",
			large.Shape, Figure(small.CoreBatch), batch(small, large), Figure(large.CoreBatch), does)
	case large.slices > small.slices:
		return "profile a step on " + large.Shape + " for the input and for the network between the slices: " + does + enough
	case faster < 1:
		return "profile a step on " + large.Shape + " for the input and for the exchange between its cores: " + speed("slower")
	case faster < noFaster:
		return "look at the input first: " + speed("hardly faster") + ", so the training is probably input-bound"
	}
	return "profile a step on " + large.Shape + ", the input first: " + does + enough
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
