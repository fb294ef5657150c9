//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// Slot is a slice of a workload by its name, whichever TPU stands under that name: the newest life, and those before it.
type Slot struct {
	Name string `json:"name"`
	// Order is the slice as its owner ordered it, once it was created in another shape.
	Order Order `json:"order,omitzero"`
	// ToReplace is the wish of the open incident to replace the slice. It holds from the proof of its loss until the next one is there,
	// whether or not a call for it is wanted yet.
	ToReplace bool `json:"replace,omitzero"`
	// Life is the life that the API showed last.
	Life `json:"life"`
	// Former are the earlier lives that still matter, the newest last: two at most, among them the one in which training may run.
	Former []Life `json:"former,omitempty"`
}

// Life is one TPU under the name of a slice, from its creation to its end. The known facts about it belong to it.
type Life struct {
	// Incarnation distinguishes it from every other life. A queued resource that has brought nothing yet has none.
	Incarnation events.Incarnation `json:"incarnation,omitzero"`
	// Zone is where the life is, or last was.
	Zone string `json:"zone"`
	Facts
	// SpecZone is where the specification was read. Pitstop's own call may have created the life in another zone since.
	SpecZone string `json:"spec_zone,omitzero"`
	// Hosts is the common part of its workers' host names. HostsTold says that only a line gave it, which anybody can write: see
	// ProvenHosts. HostsAsked says that the API was asked for them and did not give them: Pitstop asks once.
	Hosts      string `json:"hosts,omitzero"`
	HostsTold  bool   `json:"hosts_told,omitzero"`
	HostsAsked bool   `json:"hosts_asked,omitzero"`

	Condition Condition `json:"condition"`
	// State is the provider's own word for the condition, for people.
	State string `json:"state,omitzero"`
	// Since is when the condition was first read: an older reading does not override it.
	Since time.Time `json:"since,omitzero"`
	// Used is the beginning of the time in which it was usable before its condition last changed; zero where it never was.
	Used time.Time `json:"used,omitzero"`
	// Stop is who stopped it, as far as is known.
	Stop Stop `json:"stop,omitzero"`
	// Spoke is when a line of its crew first came; zero where none has.
	Spoke time.Time `json:"spoke,omitzero"`
	// Heard is the crew's state when Pitstop last listened for it.
	Heard Heard `json:"heard,omitzero"`
	Abuse Abuse `json:"abuse,omitzero"`
	// Notice is its announced maintenance.
	Notice Notice `json:"notice,omitzero"`
	// Alarmed says that a line has opened an incident about it. No line opens another one until the API shows maintenance or a loss.
	Alarmed bool `json:"alarmed,omitzero"`

	// Maker is the incident that created it, for as long as training was never admitted. Ordered is the creation time of the queued
	// resource with which an incident ordered the next life, which does not exist yet. Only that incident wants either of them.
	Maker   string    `json:"maker,omitzero"`
	Ordered time.Time `json:"ordered,omitzero"`
	// NeverUsable says that its owner ordered it and that it has not been usable yet. The owner handles it.
	NeverUsable bool `json:"unused,omitzero"`
	// Admission says whether training may run in it. Leased is the first attempt with which the lease may have named it; 0 where no
	// function has begun to write such a lease.
	Admission Admission `json:"admission,omitzero"`
	Leased    int       `json:"leased,omitzero"`
	End       End       `json:"end,omitzero"`
}

// Abuse is the provider's suspicion of abuse: it ends all automation.
type Abuse struct {
	Suspected bool `json:"suspected,omitzero"`
	// At is the time of the reading, or of the order, that last changed the suspicion: an older reading changes nothing.
	At time.Time `json:"at,omitzero"`
	// Reported says that a person has heard of the suspicion. As long as it lasts, nothing opens another incident.
	Reported bool `json:"told,omitzero"`
}

// Admission says whether training may run in a life.
type Admission string

// The admissions of a life. Without one, no decision exists: an incident may be about to make it.
const (
	Admitted Admission = "admitted"
	// AwaitsAdmission: its owner created this life, and the lease names a life in another zone, or none. Pitstop must admit it.
	AwaitsAdmission Admission = "waiting"
	// LeftToPerson: an incident had to admit this life, and left it to a person. Only their order, or another life, admits it.
	LeftToPerson Admission = "left"
)

// End holds the facts about the end of a life that readings do not show.
type End struct {
	// Since is when a reading first showed that nothing runs there, and that nothing brings it back.
	Since time.Time `json:"since,omitzero"`
	// Released is when its owner deleted it or took it over: Pitstop leaves it alone from then on.
	Released time.Time `json:"released,omitzero"`
	// Reported says that an incident has reported its end already. The end opens no second incident.
	Reported bool `json:"told,omitzero"`
	// SilentBy is when its training has certainly ended, where no reading shows that end.
	SilentBy time.Time `json:"silent_by,omitzero"`
}

// isMissed reports whether somebody waits for a slice that cannot be used.
func (s Slot) isMissed() bool {
	return !s.IsReleased() && s.Condition != Ready && s.Condition != Done
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

// markAdmitted notes that training may run in the slice's current life, and in no other.
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

// maxFormer is how many lives before the newest are kept: entries that concern them come late.
const maxFormer = 2

// begin makes another life the current one under the slice's name. The oldest life goes, except for the one in which training may
// run.
func (s *Slot) begin(next Life) {
	former := append(slices.Clone(s.Former), s.Life)
	if len(former) > maxFormer {
		oldest := slices.IndexFunc(former, func(l Life) bool { return l.Admission != Admitted })
		former = slices.Delete(former, oldest, oldest+1)
	}
	if n := len(former); n > 1 {
		o := former[n-2] // the life before the last only has to show its workers
		former[n-2] = Life{Incarnation: o.Incarnation, Zone: o.Zone, Hosts: o.Hosts, HostsTold: o.HostsTold, Admission: o.Admission, End: o.End}
	}
	s.Former, s.Life = former, next
}

// silentBy notes when the training of the life before has certainly ended.
func (s *Slot) silentBy(t time.Time) {
	if n := len(s.Former); n > 0 {
		s.Former = slices.Clone(s.Former)
		s.Former[n-1].End.SilentBy = t
	}
}

// silent is when the training of all earlier lives has certainly ended; zero where readings showed it.
func (s *Slot) silent() (t time.Time) {
	for i := range s.Former {
		t = later(t, s.Former[i].End.SilentBy)
	}
	return t
}
