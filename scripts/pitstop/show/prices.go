package show

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/shared/incident"
)

// Prices are dollars for a chip-hour, by accelerator type or generation: what an owner pays, from a file of theirs.
//
//	v5litepod: {spot: 0.48, other: 1.20}
//	v5p-128: {other: 3.90}
type Prices map[string]price

type price struct {
	Spot  float64 `yaml:"spot"`
	Other float64 `yaml:"other"`
}

// ReadPrices reads --prices.
func ReadPrices(name string) (Prices, error) {
	if name == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Usage("--prices: %w", err)
	}
	var p Prices
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

// of is the price of a slice, by its type or its generation; unknown for one that the file does not name.
func (p Prices) of(s incident.Slot) (dollars float64, known bool) {
	generation, _, _ := strings.Cut(s.Accelerator, "-")
	for _, key := range []string{s.Accelerator, generation} {
		if c, ok := p[key]; ok {
			if s.Reclaimable {
				return c.Spot, c.Spot > 0
			}
			return c.Other, c.Other > 0
		}
	}
	return 0, false
}

// Cost is what an incident cost until its end, or until now.
type Cost struct {
	// Away is how long training stood, in seconds; ChipHours what the slices of the workload could have done in that time.
	Away      float64 `json:"away_seconds"`
	ChipHours float64 `json:"chip_hours"`
	// Dollars is what these are worth; Unpriced are the slices that the file has no price for.
	Dollars  float64  `json:"dollars,omitzero"`
	Unpriced []string `json:"unpriced,omitempty"`
	// Charged is the budget that the incident is charged to, Restarts how many of the training budget it spent.
	Charged  string `json:"charged_to"`
	Restarts int    `json:"restarts,omitzero"`
}

// CostOf is what an incident of a workload has cost by now. It counts the chips that the workload had.
func (p Prices) CostOf(w incident.Workload, in incident.Incident, now time.Time) Cost {
	c := Cost{Charged: in.Account(), Restarts: in.Charged}
	if in.Down.IsZero() {
		return c
	}
	end := in.Closed
	if end.IsZero() {
		end = now
	}
	away := end.Sub(in.Down)
	c.Away = away.Seconds()
	for _, s := range w.Slices {
		s = in.Lost(s)
		hours := away.Hours() * float64(s.Chips)
		c.ChipHours += hours
		switch dollars, known := p.of(s); {
		case known:
			c.Dollars += hours * dollars
		case p != nil:
			c.Unpriced = append(c.Unpriced, s.Name)
		}
	}
	return c
}

// String says it in a line.
func (c Cost) String() string {
	line := "training never stood"
	if c.Away > 0 {
		line = "away " + events.Span(time.Duration(c.Away*float64(time.Second))) + fmt.Sprintf(", %.1f chip-hours", c.ChipHours)
		if c.Dollars > 0 {
			line += fmt.Sprintf(" worth $%.2f", c.Dollars)
		}
		if len(c.Unpriced) > 0 {
			line += ", without the price of " + strings.Join(c.Unpriced, ", ")
		}
	}
	line += "; charged to " + c.Charged
	if c.Restarts > 0 {
		line += fmt.Sprintf(", %d of %d restarts", c.Restarts, incident.MaxRestarts)
	}
	return line
}
