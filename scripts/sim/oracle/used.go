package oracle

import (
	"time"

	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// used counts the hours until a moment in which the TPUs of the fleet could be used, in chip-hours by the capacity that they were taken from.
func (c *Checks) used(end time.Time) map[string]float64 {
	all := map[string]float64{}
	for _, f := range c.Fleet {
		since, at := c.Start, view.Place{}
		stands := func(until time.Time) {
			if a, err := topology.Parse(at.Accelerator); err == nil {
				all[string(at.Capacity)] += until.Sub(since).Hours() * float64(a.Chips)
			}
			at = view.Place{}
		}
		for _, d := range c.past[f.Name] {
			switch d.kind {
			case usable:
				stands(d.at)
				since, at = d.at, d.place
			case broken, stopped, gone:
				stands(d.at)
			case ordered, removed, halted, labelled, announced, withdrawn, turnedOff, saidCancel, saidRetry:
			}
		}
		stands(end)
	}
	return all
}
