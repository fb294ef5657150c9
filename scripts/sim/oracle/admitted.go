package oracle

import (
	"context"
	"slices"
	"strings"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Rule 3, one admitted life of each slice: training runs only there, it is not deleted, another one is created when it is gone, and the
// slices of a Multislice are together.

// admittedAlone checks that a deletion hits no slice that trains, and that a creation finds no other life of the slice that may train.
func (c *Checks) admittedAlone(k call) {
	switch k.Method {
	case "DeleteNode", "DeleteQueuedResource":
		if _, running := c.Trainings[k.slice].Running(); running && k.read.State == "READY" && c.trainedIn(k) && c.whole(k.doc.ID) && !c.movesBack(k) {
			c.Violated("3 admitted", k.doc.ID, "%s was deleted while training ran on it, at step %d", k.slice, c.Trainings[k.slice].LastStep())
		}
	case "CreateNode", "CreateQueuedResource":
		c.elsewhere(k)
		c.torn(k.Event, k.doc.ID, k.slice)
	}
}

// elsewhere checks that a slice is created where no life of it is known in another zone.
func (c *Checks) elsewhere(k call) {
	for _, z := range c.Zones() {
		state, life := c.API.State(z, k.slice)
		if z == k.Zone || state != "READY" && state != "CREATING" && state != "DELETING" { // which trains for as long as it takes
			continue
		}
		// What came there since the handler looked it could not see; and where the slice has not lived before, it has to hear of it, which
		// may take as long as entries do.
		read, looked := k.by.Read[world.Place{Zone: z, Slice: k.slice}]
		age := c.Clock.Now().Sub(life.Created)
		unheard := age < unseen || !c.lived(k.slice, z, life.Created) && age < bounds.Grace
		if !looked && !unheard || looked && read.At.After(life.Created) {
			c.Violated("3 admitted", k.doc.ID, "%s was created in %s while it is %s in %s", k.slice, k.Zone, state, z)
		}
	}
}

// leased checks what a lease admits: no other life of a slice can be running then.
func (c *Checks) leased(uri string) {
	dir := strings.TrimSuffix(uri, "/"+checkpoint.LeaseName)
	for _, f := range c.Fleet {
		if f.Directory != dir {
			continue
		}
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, dir)
		if err != nil {
			c.Violated("3 admitted", c.Workload(f.Name), "the lease cannot be read: %v", err)
			return
		}
		if r := c.record(c.Workload(f.Name)); l.By == "pitstop" && l.Attempt > r.attempt {
			r.attempt = l.Attempt
			c.spends(c.Workload(f.Name), "another attempt was named")
		}
		for _, a := range l.Admitted {
			for _, z := range c.Zones() {
				n := c.API.Node(z, a.Slice)
				if n == nil || n.State != "READY" || c.API.Incarnation(z, a.Slice).Same(a.Incarnation) {
					continue
				}
				if other := c.API.Incarnation(z, a.Slice); other.Created.Before(a.Incarnation.Created) && l.By != "crew" {
					c.Violated("3 admitted", c.Workload(f.Name), "the lease admits %s as %s while it lives as %s", a.Slice, a.Incarnation, other)
				}
			}
		}
	}
}

// haunted checks the writes to the checkpoint directories: no zombie writes once another attempt has begun.
func (c *Checks) haunted() {
	for _, f := range c.Fleet {
		t := c.Trainings[f.Name]
		if haunted, began := t.Haunted(); haunted.After(began) && haunted.Equal(c.Clock.Now()) {
			if _, trains := t.Running(); trains {
				c.Violated("3 admitted", c.Workload(f.Name), "a zombie of %s wrote while the next attempt was under way", f.Name)
			}
		}
	}
}

// torn checks that a slice of a Multislice is created where the others are, unless somebody else has put them apart.
func (c *Checks) torn(e cloudtputest.Event, workload, slice string) {
	if c.apart(workload) {
		return
	}
	for _, f := range c.slicesOf(workload) {
		zone, lives := c.livesIn(f.Name)
		_, life := c.API.State(zone, f.Name)
		fresh := c.person(c.lastOf(f.Name, ordered)) && c.Clock.Now().Sub(life.Created) < unseen // whose owner makes it at the same moment
		if f.Name == slice || !lives || zone == e.Zone || fresh || !c.takenAway(f.Name).IsZero() {
			continue
		}
		c.Violated("all or none", workload, "%s was created in %s while %s lives in %s", slice, e.Zone, f.Name, zone)
	}
}

// lived reports whether a slice was usable in a zone before a moment, after it was usable anywhere else but once.
func (c *Checks) lived(slice, zone string, before time.Time) bool {
	var zones []string
	for _, d := range slices.Backward(c.past[slice]) {
		if d.kind == usable && d.at.Before(before) && !slices.Contains(zones, d.zone) {
			zones = append(zones, d.zone)
		}
	}
	return slices.Contains(zones[:min(2, len(zones))], zone)
}
