package clock

import "time"

// turn is the right to go on to the next due function of a run. Exactly one goroutine has it, and what that calls has it too. A
// handler runs right where its message fell due: to wake another goroutine for it would take longer than most handlers. A handler that
// sleeps passes the turn to a spare goroutine, and takes it back at its time.
type turn struct {
	limit func() time.Time
	each  func() bool
	// ended is closed at the end of the run; nil between two runs.
	ended chan struct{}
	// spares is how many goroutines wait at pass for the turn. Only the one that has the turn counts them.
	spares int
	pass   chan struct{}
	closed bool
}

// Run goes on as Step and Settle would in turn: up to a limit, and as long as each, called after every step, returns true. Handlers
// that still sleep then go on in the next run.
func (c *Clock) Run(limit func() time.Time, each func() bool) {
	ended := make(chan struct{})
	c.mu.Lock()
	c.turn.limit, c.turn.each, c.turn.ended = limit, each, ended
	c.mu.Unlock()
	go c.goOn(true)
	<-ended
}

// Close ends the spare goroutines. There is no run afterwards.
func (c *Clock) Close() {
	c.turn.closed = true
	close(c.turn.pass)
}

// underRun reports whether a run is under way. Who asks has the turn then.
func (c *Clock) underRun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn.ended != nil
}

// goOn has the turn until the run ends. Who takes it over in the middle of a step ends that step first.
func (c *Clock) goOn(begins bool) {
	for more := begins || c.turn.each(); more; more = c.turn.each() {
		limit := c.turn.limit()
		c.mu.Lock()
		if !c.next(limit) {
			break
		}
		if c.turn.closed {
			return // it was a spare
		}
	}
	c.mu.Lock()
	ended := c.turn.ended
	c.turn.ended = nil
	c.mu.Unlock()
	close(ended)
}

// passOn gives the turn to another goroutine.
func (c *Clock) passOn() {
	if c.turn.spares == 0 {
		go c.goOn(false)
		return
	}
	c.turn.spares--
	c.turn.pass <- struct{}{}
}

// inTurn runs a handler. If it crashes, another goroutine goes on.
func (c *Clock) inTurn(f func()) {
	crashed := true
	defer func() {
		if crashed {
			c.passOn()
		}
	}()
	f()
	crashed = false
}

// sleepInTurn passes the turn on and takes it back at its time, from a goroutine that is a spare from then on.
func (c *Clock) sleepInTurn(d time.Duration) {
	woken := make(chan struct{})
	c.At(c.Now().Add(d), func() {
		c.turn.spares++
		close(woken)
		<-c.turn.pass
	})
	c.passOn()
	<-woken
}
