package scenario

import (
	"context"
	"time"
)

// tick is the scheduler: once a minute. A tick is skipped if no work is due, no operation runs and the cloud has not
// changed, except for one in a quarter of an hour.
func (w *world) tick(at time.Time) {
	w.clock.At(at, func() {
		w.tick(at.Add(time.Minute))
		due, err := w.ledger.Due(context.Background(), at)
		w.mu.Lock()
		// What went wrong at the last tick may have kept it from seeing what there was to see.
		dirty := w.dirty || w.strikes() != w.struck
		w.dirty, w.struck = false, w.strikes()
		w.mu.Unlock()
		if err == nil && len(due) == 0 && !dirty && w.api.Running() == 0 && at.Minute()%15 != 0 { // then all is looked at anyway
			return
		}
		w.publish(Message{Topic: topicTicks, Data: []byte("{}")})
	})
}

// strikes is how many faults there were by now.
func (w *world) strikes() int {
	if w.hooks.Struck == nil {
		return 0
	}
	return w.hooks.Struck()
}

// awaits counts something that is still to come, until played.
func (w *world) awaits() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left++
}

// played counts something that has come.
func (w *world) played() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
}

// await keeps a scenario going.
func (w *world) await(d time.Duration) {
	w.awaits()
	w.clock.At(w.clock.Now().Add(d), w.played)
}

// try notes an act that the cloud refused: the story goes on without it.
func (w *world) try(err error) {
	if err != nil {
		w.tell(Line{Time: w.clock.Now(), Kind: Acted, Text: "refused: " + err.Error(), Simulated: true})
	}
}

// must notes an act of the world that could not take place: that is a fault of the scenario.
func (w *world) must(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.story.Faults = append(w.story.Faults, err.Error())
	}
}

// settled reports whether no work is left: no message, no operation, no incident, and nothing due except by the passing of
// time.
func (w *world) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inFlight() == 0 && w.clock.Quiet() && len(w.busy) == 0 && w.api.Running() == 0 && !w.dirty && w.left == 0
}

// isDue keeps whether something is due at a workload.
func (w *world) isDue(workload string, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if due {
		w.busy[workload] = true
	} else {
		delete(w.busy, workload)
	}
}
