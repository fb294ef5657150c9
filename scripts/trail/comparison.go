package trail

import (
	"errors"
	"fmt"
	"io"
)

// Comparison holds the runs of this build against those of another one, which come in the same order.
type Comparison struct {
	// Other are the trails of the other build. Found is called with every divergence except harmless ones.
	Other *Reader
	Found func(Divergence)
	// Differs, if it is set, is called with every difference in effect.
	Differs func(Difference)

	summary Summary
	// next is a trail of the other build that was read and not compared yet.
	next *Trail
	// last is the run that was compared last, and split says that the builds differ in it.
	last  string
	split bool
	// counted and differing are runs and workloads that were counted already, under each kind or under none.
	counted, differing map[string]bool
}

// Summary counts what two builds do differently.
type Summary struct {
	// Runs and Workloads are how many were compared, DifferingRuns and DifferingWorkloads in how many the builds differ,
	// harmless differences apart.
	Runs               int `json:"runs"`
	Workloads          int `json:"workloads"`
	DifferingRuns      int `json:"differing_runs"`
	DifferingWorkloads int `json:"differing_workloads"`
	// Kinds counts by kind.
	Kinds map[Kind]Count `json:"kinds"`
	// Effects counts the differences in effect, which are looked for in the whole of each run.
	Effects Effects `json:"effects"`
}

// Effects counts in what two builds differ in effect.
type Effects struct {
	// Incidents and Calls are how many this build had: incidents that ended, and calls that were accepted.
	Incidents int `json:"incidents"`
	Calls     int `json:"calls"`
	// Kinds counts by kind.
	Kinds map[Kind]EffectCount `json:"kinds"`
}

// EffectCount counts the differences in effect of one kind.
type EffectCount struct {
	Count
	Differences int `json:"differences"`
	// First is in how many runs such a difference is the earliest.
	First int `json:"first"`
	// Example is the first one that was found.
	Example Difference `json:"-"`
}

// Count is in how many workloads and runs there is a difference of one kind.
type Count struct {
	Workloads int `json:"workloads"`
	Runs      int `json:"runs"`
}

// NewComparison compares with the trails of another build. It tells of every divergence but harmless ones.
func NewComparison(other *Reader, found func(Divergence)) *Comparison {
	return &Comparison{
		Other: other, Found: found, summary: Summary{Kinds: map[Kind]Count{}, Effects: Effects{Kinds: map[Kind]EffectCount{}}}, counted: map[string]bool{}, differing: map[string]bool{},
	}
}

// Add compares the next run of this build with that of the other one.
func (c *Comparison) Add(this Trail) error {
	for {
		other, err := c.peek()
		switch {
		case errors.Is(err, io.EOF) && this.Run == c.last:
			return c.alone(this, true)
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: before %s", ErrEnded, this.Run)
		case err != nil:
			return err
		case other.Run == this.Run && other.Days == this.Days:
			c.next = nil
			c.compare(this, other)
			return nil
		case other.Run == c.last:
			c.next = nil
			if err := c.alone(other, false); err != nil {
				return err
			}
		case this.Run == c.last:
			return c.alone(this, true)
		default:
			return fmt.Errorf("the trail of the other build goes on with %s of %g days, and this one with %s of %g days", other.Run, other.Days, this.Run, this.Days)
		}
	}
}

// End returns the summary when this build has no more runs. The other one may have none either.
func (c *Comparison) End() (Summary, error) {
	for {
		other, err := c.peek()
		switch {
		case errors.Is(err, io.EOF):
			return c.summary, nil
		case err != nil:
			return Summary{}, err
		case other.Run != c.last:
			return Summary{}, fmt.Errorf("the trail of the other build goes on with %s, and this one has ended", other.Run)
		}
		c.next = nil
		if err := c.alone(other, false); err != nil {
			return Summary{}, err
		}
	}
}

func (c *Comparison) peek() (Trail, error) {
	if c.next == nil {
		t, err := c.Other.Next()
		if err != nil {
			return Trail{}, err
		}
		c.next = &t
	}
	return *c.next, nil
}

// alone takes a run that one build alone made longer, because its shorter one had too few incidents. Then the shorter ones differ.
func (c *Comparison) alone(t Trail, this bool) error {
	if c.split {
		return nil
	}
	who := "the other build"
	if this {
		who = "this build"
	}
	return fmt.Errorf("%s alone ran %s again for %g days, though both did the same before", who, t.Run, t.Days)
}

func (c *Comparison) compare(this, other Trail) {
	if this.Run != c.last {
		c.last, c.split = this.Run, false
	}
	c.first(&c.summary.Runs, c.counted, this.Run)
	for _, id := range workloads(this, other) {
		c.first(&c.summary.Workloads, c.counted, this.Run, id)
	}
	for _, d := range compare(this, other) {
		n := c.summary.Kinds[d.Kind]
		c.first(&n.Workloads, c.counted, d.Run, d.Workload, string(d.Kind))
		c.first(&n.Runs, c.counted, d.Run, "", string(d.Kind))
		c.summary.Kinds[d.Kind] = n
		if d.Kind.Harmless() {
			continue
		}
		c.split = true
		c.first(&c.summary.DifferingRuns, c.differing, d.Run)
		c.first(&c.summary.DifferingWorkloads, c.differing, d.Run, d.Workload)
		c.Found(d)
	}
	c.effects(this, other)
}

// effects compares a run in effect. A run that is made again is longer, and begins with what was counted already.
func (c *Comparison) effects(this, other Trail) {
	all := &c.summary.Effects
	for _, w := range this.Workloads {
		for _, s := range ends(w) {
			c.first(&all.Incidents, c.counted, "incident", this.Run, w.ID, s.Incident)
		}
		for i, s := range calls(w, true) {
			c.first(&all.Calls, c.counted, "call", this.Run, w.ID, s.At.String(), fmt.Sprint(i))
		}
	}
	for _, d := range effects(this, other) {
		n := all.Kinds[d.Kind]
		was := n.Differences
		c.first(&n.Differences, c.counted, "in effect", d.Run, d.Workload, string(d.Kind), d.This.key(), d.Other.key())
		if n.Differences == was {
			continue
		}
		c.first(&n.Workloads, c.counted, "in effect", d.Run, d.Workload, string(d.Kind))
		c.first(&n.Runs, c.counted, "in effect", d.Run, "", string(d.Kind))
		c.first(&n.First, c.counted, "in effect", d.Run)
		if was == 0 {
			n.Example = d
		}
		all.Kinds[d.Kind] = n
		if c.Differs != nil {
			c.Differs(d)
		}
	}
}

// key tells a step from every other one of its workload.
func (s *Step) key() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%+v", *s)
}

// first counts only items not counted before.
func (*Comparison) first(n *int, counted map[string]bool, what ...string) {
	key := fmt.Sprintf("%q", what)
	if !counted[key] {
		counted[key] = true
		*n++
	}
}
