//go:build heart

package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/heart"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// Under the tag heart this package is the heart's third edition, under the names of the second.

//nolint:revive // the types have their comments where they are declared
type (
	Workload     = heart.Workload
	Effect       = heart.Effect
	Incident     = heart.Incident
	Slot         = heart.Slot
	Life         = heart.Life
	Order        = heart.Order
	Notice       = heart.Notice
	Words        = heart.Words
	RefusedError = heart.RefusedError
	ToRead       = heart.ToRead
	ReadKind     = heart.ReadKind
	Reads        = heart.Reads
	Fitted       = heart.Fitted
)

// The kinds of readings.
const (
	ReadSlices    = heart.ReadSlices
	ReadTraining  = heart.ReadTraining
	ReadHosts     = heart.ReadHosts
	ReadCrew      = heart.ReadCrew
	ReadSaver     = heart.ReadSaver
	ReadDeleter   = heart.ReadDeleter
	ReadStopper   = heart.ReadStopper
	ReadOperation = heart.ReadOperation
)

// Schema is the version of the document.
const Schema = heart.Schema

// ErrRefused is the reason why a request must not be carried out.
var ErrRefused = heart.ErrRefused

// Advance is the whole decision.
func Advance(p policy.Policy, w Workload, e Evidence, now time.Time) (next Workload, send []events.Event, changed bool) {
	return heart.Advance(p, w, e, now)
}

// New is the document of a workload that was never seen before.
func New(project, name, provider string) Workload { return heart.New(project, name, provider) }

// View is what is shown of a workload under its policy.
func View(p policy.Policy, w Workload, now time.Time) view.Workload { return heart.View(p, w, now) }

// Knows is true: a plan goes from any step to any other one.
func Knows(string, string) bool { return true }

// WordsOf are the words of the provider of that name.
func WordsOf(provider string) Words { return heart.WordsOf(provider) }

// Assumed is a workload of one slice that trains, with the slice as a reading describes it.
func Assumed(project, provider string, r Read, saved time.Time) Workload {
	return heart.Assumed(project, provider, r, saved)
}

// SaveDue is when the save before announced maintenance is due for a training that has written so many checkpoints with that time between
// them; zero for never.
func SaveDue(p policy.Policy, r Read, notice events.Notice, from Origin, every time.Duration, checkpoints int) time.Time {
	return heart.SaveDue(p, r, notice, from, every, checkpoints)
}
