package scenario

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// instance is the handling of one message by one instance of a function.
type instance struct {
	number   int
	function string
	cancel   context.CancelFunc
	// luck is that of this delivery of the message.
	luck Luck
	// read is the life of each slice as this handling last read it, by its place; a listing counts.
	read map[place]reading
	// pauseRead is when the pause of all was last read, pause its value; nil is none.
	pauseRead time.Time
	pause     *incident.Pause
	began     time.Time
	// workload is the document as it was last read or written, and seen is when.
	workload ledger.Record
	seen     time.Time
	// crashed says that the call has no further effect, whichever of its goroutines crashed.
	crashed bool
}

// handling is its number; 0 of none.
func (inst *instance) handling() int {
	if inst == nil {
		return 0
	}
	return inst.number
}

// place is a slice in a zone, where it may be or not.
type place struct{ zone, slice string }

// reading is what a handling has read of a slice.
type reading struct {
	at    time.Time
	state string
	life  string
}

type instanceKey struct{}

// instanceOf is the handling that makes a call; nil of none.
func instanceOf(ctx context.Context) *instance {
	inst, _ := ctx.Value(instanceKey{}).(*instance)
	return inst
}

// refusal is how an API of Google's refuses a call.
type refusal struct {
	code            int
	status, message string
}

// Error implements error.
func (f refusal) Error() string { return f.message }

// answer is the refusal over the wire.
func (f refusal) answer(r *http.Request) *http.Response {
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, f.code, f.message, f.status)
	return &http.Response{
		StatusCode: f.code, Status: http.StatusText(f.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
