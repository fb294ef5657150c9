package world

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc/status"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
)

// Instance is the handling of one message by one instance of a function.
type Instance struct {
	Number   int
	Function string
	Cancel   context.CancelFunc
	// Luck is that of this delivery of the message.
	Luck Luck
	// Read is the life of each slice as this handling last read it, by its place; a listing counts.
	Read map[Place]SliceRead
	// PauseRead is when the pause of all was last read, pause its value; nil is none.
	PauseRead time.Time
	Pause     *evidence.Pause
	Began     time.Time
	// Workload is the document as it was last read or written, and seen is when.
	Workload ledger.Record
	Seen     time.Time
	// Crashed says that the call has no further effect, whichever of its goroutines crashed.
	Crashed bool
}

// Handling is its number; 0 of none.
func (inst *Instance) Handling() int {
	if inst == nil {
		return 0
	}
	return inst.Number
}

// Place is a slice in a zone, where it may be or not.
type Place struct{ Zone, Slice string }

// SliceRead is what a handling has read of a slice.
type SliceRead struct {
	At    time.Time
	State string
	Life  string
}

type instanceKey struct{}

// InstanceOf is the handling that makes a call; nil of none.
func InstanceOf(ctx context.Context) *Instance {
	inst, _ := ctx.Value(instanceKey{}).(*Instance)
	return inst
}

// Refusal is the error of a call that an API of Google's refuses.
type Refusal interface {
	error
	// Answer is the refusal over HTTP, and GRPCStatus by gRPC.
	Answer(r *http.Request) *http.Response
	GRPCStatus() *status.Status
}
