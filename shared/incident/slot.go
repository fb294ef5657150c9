package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// Slot is a slice of a workload by its name, whichever TPU stands under it: the newest life, and those before.
type Slot struct {
	Name string `json:"name"`
	// Order is the slice as its owner ordered it, once it was created in another shape.
	Order Order `json:"order,omitzero"`
	// Replace marks a slice that the open incident has to replace.
	Replace bool `json:"replace,omitzero"`
	// Life is the one that the API showed last.
	Life `json:"life"`
	// Former are the lives before that still matter, the newest last: two at most, among them the one in which training may run.
	Former []Life `json:"former,omitempty"`
}

// Life is one TPU under the name of a slice, from its creation to its end. What is known of it goes with it.
type Life struct {
	// Incarnation tells it from every other life. A queued resource that has brought nothing yet has none.
	Incarnation events.Incarnation `json:"incarnation,omitzero"`
	// Zone is where it is, or where it was last.
	Zone string `json:"zone"`
	Facts
	// SpecZone is where the specification was read: what our own call has made elsewhere since may not have been.
	SpecZone string `json:"spec_zone,omitzero"`
	// Hosts is what the host names of its workers have in common. HostsAsked says that the API was asked for them, and did
	// not tell: it is asked once.
	Hosts      string `json:"hosts,omitzero"`
	HostsAsked bool   `json:"hosts_asked,omitzero"`

	Condition Condition `json:"condition"`
	// State is the provider's own word for the condition, for people.
	State string `json:"state,omitzero"`
	// Since is when the condition was first read: no older reading counts against it.
	Since time.Time `json:"since,omitzero"`
	// Used is since when it was usable before its condition changed last; zero where it never was.
	Used time.Time `json:"used,omitzero"`
	// Stop is who stopped it, as far as is known.
	Stop Stop `json:"stop,omitzero"`
	// Heard is how its crew was when it was listened for.
	Heard Heard `json:"heard,omitzero"`
	Abuse Abuse `json:"abuse,omitzero"`
	// Notice is its announced maintenance.
	Notice Notice `json:"notice,omitzero"`

	// Maker is the incident that made it, for as long as training was never let in. Ordered is when the queued resource was
	// created by which an incident has ordered the next life, which is not there yet. Nobody but that incident wants either.
	Maker   string    `json:"maker,omitzero"`
	Ordered time.Time `json:"ordered,omitzero"`
	// NeverUsable says that its owner ordered it and that it has not been usable yet. What becomes of it is theirs.
	NeverUsable bool `json:"unused,omitzero"`
	// Admission is whether training may run in it. Leased is the first attempt with which the lease may have named it; 0 where
	// nobody has begun to write one that does.
	Admission Admission `json:"admission,omitzero"`
	Leased    int       `json:"leased,omitzero"`
	End       End       `json:"end,omitzero"`
}

// Facts is what a reading says of a slice beside its condition.
type Facts struct {
	// Group is what is created and deleted as a whole with it: its queued resource.
	Group string `json:"group,omitzero"`
	// Legacy is a TPU Node of the API's former version, and no TPU VM.
	Legacy      bool   `json:"legacy,omitzero"`
	Accelerator string `json:"accelerator,omitzero"`
	Workers     int    `json:"workers,omitzero"`
	Chips       int    `json:"chips,omitzero"`
	// Reclaimable says that the provider may take the capacity back, and that deleting it unasked is consented to: Spot.
	Reclaimable bool `json:"reclaimable,omitzero"`
	// Healing says whether the provider brings it back by itself once it is lost.
	Healing Heal `json:"healing,omitzero"`
	// Ends is when this life ends as planned: its run duration is over then. Zero is never.
	Ends time.Time `json:"ends,omitzero"`
	// Spec is the hash of the stored specification from which it can be created again. Bare says that this has no start-up
	// script: a new one would be an empty machine.
	Spec string `json:"spec,omitzero"`
	Bare bool   `json:"bare,omitzero"`
	// Label is the value of its pitstop-policy, Account the service account that its workers act as. Claims is the value
	// of its pitstop-workload where that names another workload, which it does not belong to.
	Label   string `json:"label,omitzero"`
	Account string `json:"account,omitzero"`
	Claims  string `json:"claims,omitzero"`
}

// Heal says whether a provider brings a slice back by itself that it shows lost. A document that does not say has the first.
type Heal string

// The kinds of healing.
const (
	HealsUnlessReclaimable Heal = ""
	HealsAlways            Heal = "always"
	HealsNever             Heal = "never"
)

// Heals reports whether the provider brings the slice back by itself once it is lost.
func (f Facts) Heals() bool {
	return f.Healing == HealsAlways || f.Healing == HealsUnlessReclaimable && !f.Reclaimable
}

// Abuse is what the provider suspects: no automation any more.
type Abuse struct {
	Suspected bool `json:"suspected,omitzero"`
	// At is the time of the reading, or of the word, that changed that last: what was read before changes nothing.
	At time.Time `json:"at,omitzero"`
	// Reported says that a person was told of it. As long as it lasts, nothing opens another incident.
	Reported bool `json:"told,omitzero"`
}

// Admission is whether training may run in a life.
type Admission string

// The admissions of a life. Without one nobody has decided: an incident may be about to.
const (
	Admitted Admission = "admitted"
	// AwaitsAdmission: its owner created this life, and the lease names a life in another zone, or none. Pitstop must admit it.
	AwaitsAdmission Admission = "waiting"
	// LeftToPerson: an incident was to admit this life, and left it to a person. Only their word, or another life, admits it.
	LeftToPerson Admission = "left"
)

// End is what is known of the end of a life beside what readings show.
type End struct {
	// Since is when it was first read that nothing runs there, and that nothing brings it back.
	Since time.Time `json:"since,omitzero"`
	// Released is when its owner deleted it or took it over: it is left alone from then on.
	Released time.Time `json:"released,omitzero"`
	// Reported says that an incident has told its end already. It opens no second one.
	Reported bool `json:"told,omitzero"`
	// Discarded says that it was deleted because it stood idle: nobody misses it, and only a person has it brought back.
	// DiscardBy is when that deletion shows at the latest: what is READY behind it was not deleted.
	Discarded bool      `json:"discarded,omitzero"`
	DiscardBy time.Time `json:"discard_by,omitzero"`
	// SilentBy is when its training has ended for certain, where nobody has read its end.
	SilentBy time.Time `json:"silent_by,omitzero"`
}

// isAdmitted reports whether training may run in the life that the API showed last.
func (s Slot) isAdmitted() bool { return s.Admission == Admitted }

// Admitted is the life in which training may run; none where a lease leaves the slice out.
func (s Slot) Admitted() events.Incarnation {
	if s.isAdmitted() {
		return s.Incarnation
	}
	for i := range s.Former {
		if s.Former[i].Admission == Admitted {
			return s.Former[i].Incarnation
		}
	}
	return events.Incarnation{}
}

// markAdmitted notes that training may run in what the slice is now, and in nothing else.
func (s *Slot) markAdmitted() {
	s.excludeFormer()
	if s.Incarnation.Known() {
		s.Admission = Admitted
	}
}

// exclude notes that training may run in no life of the slice.
func (s *Slot) exclude() {
	s.excludeFormer()
	if s.isAdmitted() {
		s.Admission = ""
	}
}

// excludeFormer notes that training may run in no life before this one.
func (s *Slot) excludeFormer() {
	s.Former = slices.Clone(s.Former)
	for i := range s.Former {
		if s.Former[i].Admission == Admitted {
			s.Former[i].Admission = ""
		}
	}
}

// maxFormer is how many lives before the newest are kept: entries come late, and tell of them.
const maxFormer = 2

// begin has another life stand under the slice's name. The oldest life goes, but for the one in which training may run.
func (s *Slot) begin(next Life) {
	former := append(slices.Clone(s.Former), s.Life)
	if len(former) > maxFormer {
		oldest := slices.IndexFunc(former, func(l Life) bool { return l.Admission != Admitted })
		former = slices.Delete(former, oldest, oldest+1)
	}
	if n := len(former); n > 1 {
		o := former[n-2] // of the one before the last no more is asked than whose workers they were
		former[n-2] = Life{Incarnation: o.Incarnation, Zone: o.Zone, Hosts: o.Hosts, Admission: o.Admission, End: o.End}
	}
	s.Former, s.Life = former, next
}

// silentBy notes when the training of the life before has ended for certain.
func (s *Slot) silentBy(t time.Time) {
	if n := len(s.Former); n > 0 {
		s.Former = slices.Clone(s.Former)
		s.Former[n-1].End.SilentBy = t
	}
}

// silent is when the training of all lives before has ended for certain; zero where that was read.
func (s *Slot) silent() (t time.Time) {
	for i := range s.Former {
		t = later(t, s.Former[i].End.SilentBy)
	}
	return t
}
