// Package prices has what an owner pays for a chip-hour, and what incidents have cost at that.
package prices

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/view"
)

// List has dollars for a chip-hour, by accelerator type or generation: what an owner pays, from a file of theirs.
//
//	v5litepod: {spot: 0.48, other: 1.20}
//	v5p-128: {other: 3.90}
type List map[string]price

type price struct {
	Spot  float64 `yaml:"spot"`
	Other float64 `yaml:"other"`
}

// Read reads --prices.
func Read(name string) (List, error) {
	if name == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Usage("--prices: %w", err)
	}
	var p List
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		return nil, cli.Usage("--prices %s: %w: it has to map accelerator types or generations to dollars for a chip-hour, as in v5litepod: {spot: 0.48, other: 1.20}", name, err)
	}
	for of, c := range p {
		if !(c.Spot >= 0 && c.Other >= 0) { // not a number is neither
			return nil, cli.Usage("--prices %s: %s: a price is no less than nothing", name, of)
		}
	}
	return p, nil
}

// Of is the price of a slice, by its type or its generation; unknown for one that the file does not name.
func (p List) Of(accelerator string, spot bool) (dollars float64, known bool) {
	generation, _, _ := strings.Cut(accelerator, "-")
	for _, key := range []string{accelerator, generation} {
		if c, ok := p[key]; ok {
			if spot {
				return c.Spot, c.Spot > 0
			}
			return c.Other, c.Other > 0
		}
	}
	return 0, false
}

// Cost is what an incident cost until its end, or until now. Its dollars are those of the file, where there is one.
type Cost struct {
	view.Cost
	// Unpriced are the slices that the file has no price for.
	Unpriced []string `json:"unpriced,omitempty"`
}

// CostOf is what an incident has cost, at these prices.
func (p List) CostOf(in view.Incident) Cost {
	c := Cost{Cost: in.Cost}
	if p == nil {
		return c
	}
	c.Dollars = 0
	for _, s := range c.Slices {
		if dollars, known := p.Of(s.Accelerator, s.Capacity == events.Spot); known {
			c.Dollars += c.Lost().Hours() * float64(s.Chips) * dollars
		} else {
			c.Unpriced = append(c.Unpriced, s.Slice)
		}
	}
	return c
}

// String says it in a line.
func (c Cost) String() string {
	line := "training never stood"
	if parts := c.Parts(); parts != nil {
		line = strings.Join(parts, " · ")
		if len(c.Unpriced) > 0 {
			line += ", without the price of " + strings.Join(c.Unpriced, ", ")
		}
	}
	line += "; charged to " + c.ChargedTo
	if c.Restarts > 0 {
		line += fmt.Sprintf(", %d of %d restarts", c.Restarts, bounds.MaxRestarts)
	}
	return line
}
