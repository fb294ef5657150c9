package cloudtputest

import (
	"time"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
)

const (
	flexStart = "FLEX_START"
	// longestFlexStart is how long a flex-start node lives whose order names no shorter time.
	longestFlexStart = 7 * 24 * time.Hour
)

// runsFor is how long a node lives by its order; zero for one that has no planned end.
func (n *node) runsFor() time.Duration {
	flex := n.api.SchedulingConfig != nil && n.api.SchedulingConfig.ProvisioningModel == flexStart
	if n.queue != nil {
		flex = flex || n.queue.order.ProvisioningModel == flexStart
		if r := n.queue.order.RunDuration; r != nil {
			if d, err := time.ParseDuration(r.MaxRunDuration); err == nil && d > 0 {
				return d
			}
		}
	}
	if flex {
		return longestFlexStart
	}
	return 0
}

// PlannedEnd is when a node ends by its order; zero if it does not, or is not there.
func (a *API) PlannedEnd(zone, name string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil {
		return n.plannedEnd()
	}
	return time.Time{}
}

// plannedEnd is when a node ends by its order; zero if it does not.
func (n *node) plannedEnd() time.Time {
	end := n.created.Add(n.runsFor())
	if c := n.api.SchedulingConfig; c != nil && c.TerminationTimestamp != "" {
		if t, err := time.Parse(time.RFC3339Nano, c.TerminationTimestamp); err == nil {
			end = t
		}
	}
	if !end.After(n.created) {
		return time.Time{}
	}
	return end
}

// planEnd has a node end when its run duration is over. Google does not say what the API shows then. So a node is PREEMPTED,
// TERMINATED or gone, by its number: users of this API have to understand all three.
func (a *API) planEnd(n *node) {
	end := n.plannedEnd()
	if end.IsZero() {
		return
	}
	a.after(end.Sub(a.clock.Now()), func() {
		if n.gone || n.api.State == deleting || kindOf(n.api.State, n.api.Health) == Lost {
			return
		}
		switch n.api.Id % 3 {
		case 0:
			a.set(n, preempted, "", events.CauseEnd)
		case 1:
			a.set(n, terminated, "", events.CauseEnd)
		default:
			a.remove(n, events.CauseEnd)
		}
	})
}

// runFor shows that a node ends so long after its creation.
func (n *node) runFor(d time.Duration) {
	s := api.SchedulingConfig{}
	if n.api.SchedulingConfig != nil {
		s = *n.api.SchedulingConfig
	}
	s.TerminationTimestamp = stamp(n.created.Add(d))
	n.api.SchedulingConfig = &s
}
