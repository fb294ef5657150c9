package trigger

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Drain lets the requests under way end before the process does. The functions framework itself ends at once on
// SIGTERM and loses them.
type Drain struct {
	mu       sync.Mutex
	underway int
	closing  bool
	exit     func()
}

// NewDrain returns a drain that calls exit when it is closed and nothing is under way.
func NewDrain(exit func()) *Drain { return &Drain{exit: exit} }

// processDrain is made at the first request: only then is there anything to drain.
var processDrain = sync.OnceValue(func() *Drain {
	d := NewDrain(func() { os.Exit(0) })
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		<-terms
		d.Close()
	}()
	return d
})

func (d *Drain) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.underway++
	return true
}

func (d *Drain) leave() {
	d.mu.Lock()
	d.underway--
	last := d.closing && d.underway == 0
	d.mu.Unlock()
	if last {
		d.exit()
	}
}

// Close refuses new requests and calls exit when those under way have ended.
func (d *Drain) Close() {
	d.mu.Lock()
	idle := !d.closing && d.underway == 0
	d.closing = true
	d.mu.Unlock()
	if idle {
		d.exit()
	}
}
