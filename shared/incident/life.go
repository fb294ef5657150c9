package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// Slot is a slice by its name, through all its lives.
type Slot struct {
	Name string `json:"name"`
	// Order is the slice as its owner ordered it, once it was created in another shape.
	Order Order `json:"order,omitzero"`
	// Life is the life that the API showed last; Former are earlier ones that still matter, the newest last.
	Life   `json:"life"`
	Former []Life `json:"former,omitempty"`
}

// Order is a slice as its owner ordered it.
type Order struct {
	Accelerator string          `json:"accelerator,omitzero"`
	Workers     int             `json:"workers,omitzero"`
	Chips       int             `json:"chips,omitzero"`
	Capacity    events.Capacity `json:"capacity,omitzero"`
	// Spec is the hash of its stored specification, which was read in SpecZone.
	Spec     string `json:"spec,omitzero"`
	SpecZone string `json:"spec_zone,omitzero"`
}

// Life is one TPU under the name of a slice, from its creation to its end.
type Life struct {
	// Incarnation tells it from every other life. A queued resource that has brought nothing yet has none.
	Incarnation events.Incarnation `json:"incarnation,omitzero"`
	// Zone is where it is, or last was. SpecZone is where its specification was read.
	Zone     string `json:"zone"`
	SpecZone string `json:"spec_zone,omitzero"`
	evidence.Facts
	// Hosts is the common part of its workers' host names. HostsTold says that only a line gave it, which anybody can write; HostsAsked,
	// that the API does not give it.
	Hosts      string `json:"hosts,omitzero"`
	HostsTold  bool   `json:"hosts_told,omitzero"`
	HostsAsked bool   `json:"hosts_asked,omitzero"`

	Condition evidence.Condition `json:"condition"`
	// State is the provider's own word for the condition.
	State string `json:"state,omitzero"`
	// Since is when the condition was first read, Used since when it had been usable before that condition, and Over since when nothing runs
	// there, and nothing brings it back. Read is when a reading last showed something new, or something that somebody waited for: an older
	// reading counts no more.
	Since time.Time `json:"since,omitzero"`
	Used  time.Time `json:"used,omitzero"`
	Over  time.Time `json:"over,omitzero"`
	Read  time.Time `json:"read,omitzero"`
	// Standing is since when its machines stand, as far as readings show; zero while they do not.
	Standing time.Time `json:"standing,omitzero"`
	// Unused says that it was being made when it was first read, by no call of Pitstop's, and that it has not been usable since: its owner
	// handles it. Anew says that its provider made it in the place of the life before, in the same group.
	Unused bool `json:"unused,omitzero"`
	Anew   bool `json:"anew,omitzero"`
	// Spoke is the minute in which a line of its crew was last written: a finer time would be written down with each of its lines.
	Spoke  time.Time `json:"spoke,omitzero"`
	Heard  Heard     `json:"heard,omitzero"`
	Stop   Stop      `json:"stop,omitzero"`
	Notice Notice    `json:"notice,omitzero"`
	// Suspected says that the provider suspects abuse, by the reading or the order at SuspectedAt.
	Suspected   bool      `json:"suspected,omitzero"`
	SuspectedAt time.Time `json:"suspected_at,omitzero"`

	// Maker is the incident whose call made it, until training is admitted. Ordered is when the queued resource was created with which
	// that incident ordered the next life.
	// Granted is when a reading showed that it waits no more.
	Maker   string    `json:"maker,omitzero"`
	Ordered time.Time `json:"ordered,omitzero"`
	Granted time.Time `json:"granted,omitzero"`
	// Unwithdrawn is Ordered of an order that could not be withdrawn: its provider has refused that for good.
	Unwithdrawn time.Time `json:"unwithdrawn,omitzero"`
	// EndedBy is the incident whose call ended it. Released is when its owner deleted it or took it over.
	EndedBy  string    `json:"ended_by,omitzero"`
	Released time.Time `json:"released,omitzero"`
}

// Stop is who stopped a slice, as far as is known.
type Stop struct {
	// By is who did; empty where it was started since. At is when the newest call of either kind was made.
	By string    `json:"by,omitzero"`
	At time.Time `json:"at,omitzero"`
	// Unsaid is when the audit log was found to name nobody.
	Unsaid time.Time `json:"unsaid,omitzero"`
}

// Heard is what a crew's own record on its machine said when it was last read.
type Heard struct {
	At time.Time `json:"at,omitzero"`
	// Seen is when the crew wrote it, and Looked when the crew could last look for a request beside the checkpoints.
	Seen   time.Time `json:"seen,omitzero"`
	Looked time.Time `json:"looked,omitzero"`
	Runs   bool      `json:"runs,omitzero"`
}

// Notice is announced maintenance of a life, or its planned end.
type Notice struct {
	events.Notice
	// LastWord is the time that its newest word gives itself: an older word does not undo it.
	LastWord time.Time `json:"last_word,omitzero"`
	// InAPI says that a reading showed it. Told says that only a line tells of it. End says that it is the planned end of the life, which is
	// never stored.
	InAPI bool `json:"in_api,omitzero"`
	Told  bool `json:"line,omitzero"`
	End   bool `json:"-"`
	// Due is when the save is requested, by the policy of the last decision; zero for never.
	Due time.Time `json:"due,omitzero"`
	// Started is when Pitstop started it before its window, and Declined when a person cancelled the preparations for this window.
	Started  time.Time `json:"started,omitzero"`
	Declined time.Time `json:"declined,omitzero"`
}

// usable is since when a life is usable, or had been before its condition changed; zero for never.
func (l *Life) usable() time.Time {
	switch {
	case l == nil:
		return time.Time{}
	case l.Condition == evidence.Ready:
		return l.Since
	}
	return l.Used
}

// made is when a life was made, or was first read while only its order is there; zero where that is not known.
func (l *Life) made() time.Time {
	if !l.Incarnation.Known() && l.Unused {
		return l.Since
	}
	return l.Incarnation.Created
}

// exists reports whether a reading showed something that is there.
func (l *Life) exists() bool { return l.Condition != evidence.Gone && l.Condition != evidence.Unread }

// isInVain reports whether what its owner had ordered came to nothing, and nothing struck it.
func (s *Slot) isInVain(in *Incident) bool {
	return s.Unused && s.Condition == evidence.Gone && s.EndedBy == "" && !in.lost(s.Name, s.Incarnation, time.Time{})
}

// lives reports whether a reading showed something that exists and is not about to go.
func (l *Life) lives() bool {
	switch l.Condition {
	case evidence.Ready, evidence.Unhealthy, evidence.Stopped, evidence.Unclear:
		return true
	default:
	}
	return false
}

// isOurs reports whether one of Pitstop's calls made or ordered it, and training was never admitted.
func (l *Life) isOurs() bool { return l.Maker != "" && l.exists() || !l.Ordered.IsZero() }

// overBy reports whether a life was over by a time, as far as is known.
func (l *Life) overBy(t time.Time) bool { return !l.Over.IsZero() && !t.Before(l.Over) }

// failedBefore reports whether a life had failed for good before a machine of it was lost: it had left that machine, and another one may
// have been on it. A machine may end what runs on it a while before it is lost, and long before maintenance or a planned end.
func (l *Life) failedBefore(c events.Cause, at time.Time) bool {
	sudden := c == events.CausePreemption || c == events.CauseHostError || c == events.CauseTerminated
	return sudden && l.Condition == evidence.Lost && !l.Failed.IsZero() && at.After(l.Failed.Add(bounds.NoticedFor))
}

// mayRunOn reports whether a life may run on workers with that common part of their names, as far as both are known.
func (l *Life) mayRunOn(workers string) bool {
	known := l.ProvenHosts()
	return known == "" || workers == "" || known == workers
}

// lifeOf is the life that evidence from a time is about: the one that it names, else the newest that had begun by then, in that zone if
// the zone is known. It is nil where that life is not remembered.
func (s *Slot) lifeOf(named events.Incarnation, zone string, at time.Time) *Life {
	if named.Known() {
		return s.find(func(l *Life) bool { return l.Incarnation.Same(named) })
	}
	return s.find(func(l *Life) bool { return !at.Before(l.Incarnation.Created) && (zone == "" || zone == l.Zone) })
}

// find is the newest life that is so, or nil.
func (s *Slot) find(is func(*Life) bool) *Life {
	if is(&s.Life) {
		return &s.Life
	}
	for i := len(s.Former) - 1; i >= 0; i-- {
		if is(&s.Former[i]) {
			return &s.Former[i]
		}
	}
	return nil
}

// ProvenHosts is the common part of the workers' host names, as the API gave it. A lease names no other.
func (l *Life) ProvenHosts() string {
	if l.HostsTold {
		return ""
	}
	return l.Hosts
}
