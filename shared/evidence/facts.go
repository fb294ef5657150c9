package evidence

import (
	"time"

	"pitstop.internal/events"
)

// Facts are the facts in a reading of a slice besides its condition.
type Facts struct {
	// Group is the resource that the provider creates and deletes as a whole with it: its queued resource.
	Group string `json:"group,omitzero"`
	// Legacy is a TPU Node of the API's former version, and no TPU VM.
	Legacy      bool   `json:"legacy,omitzero"`
	Accelerator string `json:"accelerator,omitzero"`
	Workers     int    `json:"workers,omitzero"`
	Chips       int    `json:"chips,omitzero"`
	// Capacity is what it is taken from, as far as that is known.
	Capacity events.Capacity `json:"capacity,omitzero"`
	// Healing says whether the provider brings it back by itself once it is lost.
	Healing Heal `json:"healing,omitzero"`
	// Cause is why it was lost, where the provider itself says so: its training ended by itself.
	Cause events.Cause `json:"cause,omitzero"`
	// Failed is since when it is lost for good, where the provider itself says so.
	Failed time.Time `json:"failed,omitzero"`
	// Kept is why only its owner may replace it; empty if Pitstop may.
	Kept string `json:"kept,omitzero"`
	// Controlled says that another object of the cluster makes it, or its group, and makes it anew.
	Controlled bool `json:"controlled,omitzero"`
	// Ends is the planned end of this life: its run duration is over then. Zero means never.
	Ends time.Time `json:"ends,omitzero"`
	// WaitsSince is since when it waits for its machines, or for the end of its deletion, where the provider's own objects say so.
	WaitsSince time.Time `json:"waits_since,omitzero"`
	// Spec is the hash of the stored specification from which it can be created again. Bare says that the specification has no
	// start-up script: a new slice would be an empty machine.
	Spec string `json:"spec,omitzero"`
	Bare bool   `json:"bare,omitzero"`
	// Label is the value of its pitstop-policy, Account the service account that its workers act as. Claims is the value of its
	// pitstop-workload where that names another workload, which it does not belong to.
	Label   string `json:"label,omitzero"`
	Account string `json:"account,omitzero"`
	Claims  string `json:"claims,omitzero"`
}

// Heal says whether a provider brings a lost slice back by itself. A document without a value has the first one.
type Heal string

// The kinds of healing.
const (
	HealsUnlessReclaimable Heal = ""
	HealsAlways            Heal = "always"
	HealsNever             Heal = "never"
)

// Reclaimable reports whether the provider may take the capacity back.
func (f Facts) Reclaimable() bool { return f.Capacity == events.Spot }

// Heals reports whether the provider brings the slice back by itself once it is lost.
func (f Facts) Heals() bool {
	return f.Healing == HealsAlways || f.Healing == HealsUnlessReclaimable && !f.Reclaimable()
}
