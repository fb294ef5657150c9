package world

import (
	"context"
	"time"

	"pitstop.internal/events"
)

// Tick is the scheduler: once a minute. A tick is skipped if no work is due, no operation runs and the cloud has not
// changed, except for one in a quarter of an hour. Where people look, each minute has its tick: they read its age.
func (w *World) Tick(at time.Time) {
	w.Clock.At(at, func() {
		w.Tick(at.Add(time.Minute))
		due, err := w.Ledger.Due(context.Background(), at)
		w.mu.Lock()
		// What went wrong at the last tick may have kept it from seeing what there was to see.
		dirty := w.dirty || w.strikes() != w.struck
		w.dirty, w.struck = false, w.strikes()
		w.mu.Unlock()
		if !w.Opts.Settings && err == nil && len(due) == 0 && !dirty && w.API.Running() == 0 && at.Minute()%15 != 0 { // then all is looked at anyway
			return
		}
		w.Publish(Message{Topic: events.TopicTicks, Data: []byte("{}")})
	})
}

// strikes is how many faults there were by now.
func (w *World) strikes() int {
	if w.Hooks.Struck == nil {
		return 0
	}
	return w.Hooks.Struck()
}

// Awaits counts something that is still to come, until played.
func (w *World) Awaits() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left++
}

// Played counts something that has come.
func (w *World) Played() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
}

// KeepGoing keeps a scenario going.
func (w *World) KeepGoing(d time.Duration) {
	w.Awaits()
	w.Clock.At(w.Clock.Now().Add(d), w.Played)
}

// Try notes an act that the cloud refused: the story goes on without it.
func (w *World) Try(err error) {
	if err != nil {
		w.Tell(Line{Time: w.Clock.Now(), Kind: Acted, Text: "refused: " + err.Error(), Simulated: true})
	}
}

// Must notes an act of the world that could not take place: that is a fault of the scenario.
func (w *World) Must(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Story.Faults = append(w.Story.Faults, err.Error())
	}
}

// Settled reports whether no work is left: no message, no operation, no incident, and nothing due except by the passing of
// time.
func (w *World) Settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Broker.Pending() == 0 && w.Clock.Quiet() && len(w.Busy) == 0 && w.API.Running() == 0 && !w.dirty && w.left == 0
}

// IsDue keeps whether something is due at a workload.
func (w *World) IsDue(workload string, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if due {
		w.Busy[workload] = true
	} else {
		delete(w.Busy, workload)
	}
}
