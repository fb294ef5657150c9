package oracle

import (
	"context"
	"maps"
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
)

// Leaked: nothing is left over that nobody wants.

// leaks looks for resources that nobody wants any more.
func (c *Checks) leaks() {
	known := map[string]bool{}
	for _, f := range c.Fleet {
		known[f.Name] = true
		n := 0
		for _, z := range c.Zones() {
			if c.API.Node(z, f.Name) != nil {
				n++
			}
		}
		if n > 1 && !c.record(c.Workload(f.Name)).byHand {
			c.Violated("nothing leaked", c.Workload(f.Name), "%s is there %d times: %s", f.Name, n, c.stateOf(f.Name))
		}
	}
	for _, z := range c.Zones() {
		for _, n := range c.API.Nodes(z) {
			if name := n.Name[strings.LastIndexByte(n.Name, '/')+1:]; !known[name] {
				c.Violated("nothing leaked", "", "node %s in %s is nobody's", name, z)
			}
		}
	}
}

// leftovers looks for queued resources and leases that nobody wants any more.
func (c *Checks) leftovers() {
	known := map[string]string{}
	for _, f := range c.Fleet {
		if f.QueuedResource != "" {
			known[f.QueuedResource] = f.Name
		}
	}
	there := map[string]string{}
	for _, z := range c.Zones() {
		for _, q := range c.API.QueuedResources(z) {
			slice := known[q]
			switch {
			case slice == "":
				c.Violated("nothing leaked", "", "queued resource %s in %s is nobody's", q, z)
			case there[q] != "" && !c.record(c.Workload(slice)).byHand:
				c.Violated("nothing leaked", c.Workload(slice), "queued resource %s is there in %s and in %s", q, there[q], z)
			}
			there[q] = z
			c.waits(q, z)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Trainings)) {
		t := c.Trainings[name]
		life, trains := t.Running()
		if !trains || t.NoCrew || t.Directory == "" {
			continue
		}
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, t.Directory)
		if err != nil {
			c.Violated("nothing leaked", c.Workload(name), "the lease of what trains cannot be read: %v", err)
			continue
		}
		for _, a := range l.Admitted {
			if a.Slice == name && !a.Incarnation.Same(life) {
				c.Violated("nothing leaked", c.Workload(name), "the lease names %s as %s, and it trains as %s", name, a.Incarnation, life)
			}
		}
	}
}

// waits checks that no queued resource waits that an incident has ordered which is over.
func (c *Checks) waits(name, zone string) {
	q := c.API.QueuedResource(zone, name)
	if q == nil || q.State == nil || q.Tpu == nil || len(q.Tpu.NodeSpec) == 0 || q.Tpu.NodeSpec[0].Node == nil {
		return
	}
	of := q.Tpu.NodeSpec[0].Node.Labels[events.LabelIncident]
	id := c.Workload(c.held(name)[0])
	if r := c.record(id); of == "" || r.open == of && r.open != r.done {
		return
	}
	if c.record(id).byHand {
		return // it could not be deleted in its state, and a person has been told
	}
	switch q.State.State {
	case "CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING":
		c.Violated("nothing leaked", id, "queued resource %s in %s, ordered in %s, is still %s", name, zone, of, q.State.State)
	}
}
