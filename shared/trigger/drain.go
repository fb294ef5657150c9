package trigger

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Drain lets running requests end before the process does. The functions framework itself ends at once on SIGTERM and loses
// them.
//
// Shutdown of the framework's http.Server does not help: its listener closes first, the framework returns, and main exits
// while handlers still run. So the listener stays open, new requests are refused, and the process ends after the last answer
// has been written to its connection.
type Drain struct {
	mu       sync.Mutex
	underway int
	closing  bool
	exit     func()
}

// drainsWithin leaves one second of the ten that Cloud Run gives a process between SIGTERM and SIGKILL.
const drainsWithin = 9 * time.Second

// NewDrain returns a drain that calls exit, once, when it is closed and no request is running.
func NewDrain(exit func()) *Drain { return &Drain{exit: sync.OnceFunc(exit)} }

// processDrain is made at the first request, because before that there are no requests to drain.
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

// enter counts a request and reports whether it may be handled. A refused request is counted too, so that its client gets
// the refusal.
func (d *Drain) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.underway++
	return !d.closing
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

// Close refuses new requests and calls exit when the running ones have ended, or shortly before Cloud Run would kill the
// process. Pub/Sub redelivers messages that have no answer by then.
func (d *Drain) Close() {
	d.mu.Lock()
	idle := d.underway == 0
	d.closing = true
	d.mu.Unlock()
	if idle {
		d.exit()
		return
	}
	time.AfterFunc(drainsWithin, func() {
		d.mu.Lock()
		unanswered := d.underway
		d.mu.Unlock()
		if unanswered > 0 {
			Log().WarnContext(context.Background(), "process ends with requests unanswered", "requests", unanswered)
		}
		d.exit()
	})
}

// answer writes a whole answer to the connection. net/http writes its buffer only after the handler has returned, and then
// the process may have ended. The length must be set: without it the answer ends with a chunk that net/http writes even
// later.
func (d *Drain) answer(w http.ResponseWriter, status int, text string) {
	d.mu.Lock()
	closing := d.closing
	d.mu.Unlock()
	h := w.Header()
	if closing {
		h.Set("Connection", "close") // the client's next request needs another instance
	}
	if text != "" {
		text += "\n"
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	// If these fail the client is gone, and Pub/Sub delivers again; a test's w may not support flushing.
	_, _ = io.WriteString(w, text)            //nolint:errcheck,gosec // see above; the text is plain
	_ = http.NewResponseController(w).Flush() //nolint:errcheck // see above
}
