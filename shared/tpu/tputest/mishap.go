package tputest

import "pitstop.internal/events"

// Crash ends the attempt that runs with an exit code. The crew says so and restarts it.
func (t *Training) Crash(code int) {
	t.lock(func() {
		if !t.running {
			return
		}
		t.high = max(t.high, t.now())
		t.report(events.CrewReport{Report: events.ReportExited, ExitCode: code, Step: t.high, RestartsLeft: t.left})
		t.ended()
	})
}

// Loop has the next attempts end with an exit code, as many as these.
func (t *Training) Loop(code, times int) {
	t.lock(func() { t.Fails, t.FailsTimes, t.failed = code, times, 0 })
}

// State is where a training stands: whether it runs, since which step, and what it has done.
func (t *Training) State() (running, crashed bool, attempt int, step int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running, t.crashed, t.attempt, max(t.high, t.now())
}

// Saved is the last complete checkpoint.
func (t *Training) Saved() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved
}
