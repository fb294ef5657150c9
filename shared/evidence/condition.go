package evidence

// Condition is the meaning of a slice's reading, the same for every provider.
type Condition string

// The conditions of a slice.
const (
	Unread    Condition = ""          // never read
	Creating  Condition = "creating"  // it is being created, or waits for capacity
	Ready     Condition = "ready"     // it exists and claims to be usable
	Unhealthy Condition = "unhealthy" // it exists and is not usable now: maintenance, repair, restart
	Stopped   Condition = "stopped"   // somebody stopped it
	Lost      Condition = "lost"      // nothing runs there any more: preempted, terminated, failed; see Heals for whether it comes back
	Done      Condition = "done"      // its work is complete, by the provider
	Deleting  Condition = "deleting"  // it is being deleted
	Gone      Condition = "gone"      // the API does not know it
	Unclear   Condition = "unclear"   // the provider reports an unknown state
)
