package reason

// FailureClass is the meaning of a provider's error. shared/provider/cloudtpu has the table for the Cloud TPU API.
type FailureClass string

// The classes of failures.
const (
	Transient       FailureClass = "transient"        // try again
	Busy            FailureClass = "busy"             // another update is in flight: try again soon
	NotInState      FailureClass = "not_in_state"     // not allowed in this state: try again when it has changed
	Stockout        FailureClass = "stockout"         // no capacity in the zone
	Quota           FailureClass = "quota"            // the project's own limit
	NoQuota         FailureClass = "no_quota"         // the project's own limit, and it is zero
	ReservationFull FailureClass = "reservation_full" // no capacity in the reservation
	WrongZone       FailureClass = "wrong_zone"       // the zone does not have this at all
	CannotMove      FailureClass = "cannot_move"      // the order is of another zone, and does not fit this one
	OtherRegion     FailureClass = "other_region"     // the checkpoints are elsewhere, and the policy does not allow that
	Exists          FailureClass = "exists"           // the name is taken
	NotFound        FailureClass = "not_found"        // it is gone
	Permission      FailureClass = "permission"       // Pitstop may not do that
	Invalid         FailureClass = "invalid"          // the request is wrong: never again
)

// FailureClasses are all of them.
func FailureClasses() []FailureClass {
	return []FailureClass{
		Transient, Busy, NotInState, Stockout, Quota, NoQuota, ReservationFull, WrongZone, CannotMove, OtherRegion, Exists, NotFound, Permission,
		Invalid,
	}
}

// Code is the class as a reason.
func (c FailureClass) Code() Code { return Code(c) }
