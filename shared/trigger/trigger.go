// Package trigger connects the functions framework with a handler. A Pub/Sub message or a CloudEvent comes in, and the
// handler gets a decoded event. Only this package decides whether the message is acknowledged, and logs the outcome.
//
// Delivery is at least once. A message is acknowledged (200) if its handler returned nil, if the handler ignored it, or if
// redelivery cannot cure the error. It is left for redelivery (500) on any other error. It is left for another instance or
// for later (503) if a newer release must read it or the instance is shutting down.
//
// Functions are registered with functions.HTTP and not with functions.CloudEvent, whose receiver loses requests as soon
// as several arrive at once (cloudevents/sdk-go issues 1224 and 1332).
package trigger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/logging"
)

// Handle reacts to one event. Package fault defines the meaning of its error.
type Handle func(ctx context.Context, e cloudevents.Event) error

// Chain decodes an event and hands it to a handler. A body from a newer release is left for that release; any other fault in
// the body is permanent.
func Chain[E any](decode func(cloudevents.Event) (E, error), handle func(context.Context, E) error) Handle {
	return func(ctx context.Context, ce cloudevents.Event) error {
		e, err := decode(ce)
		if err != nil {
			return decodeFault(err)
		}
		return handle(ctx, e)
	}
}

func decodeFault(err error) error {
	switch {
	case errors.Is(err, events.ErrNewer):
		return fault.Busy(err)
	case fault.IsIgnored(err):
		return err
	}
	return fault.Permanent(err)
}

// Function holds the parts of a function. C is its configuration, a struct with envconfig's tags; E is its event.
type Function[C, E any] struct {
	// Decode reads the event. It returns fault.Ignored for an event that the function must not act on.
	Decode func(cloudevents.Event) (E, error)
	// Build makes the handler with its clients, at the first event for the function: a message of unknown kind needs no
	// clients. A success is kept but a failure is not, so one bad start does not end the instance. The context does not end
	// with the first request.
	Build func(ctx context.Context, cfg C) (func(context.Context, E) error, error)
}

// Register registers an entry point with the functions framework. It is called in init and does only that: the environment
// is read at the first request.
func Register[C, E any](name string, f Function[C, E]) {
	a := &Adapter{Name: name, Handle: f.handle(), reads: reflect.TypeFor[C]()}
	registered.Store(name, a)
	functions.HTTP(name, a.ServeHTTP)
}

// registered holds the adapters by entry point, for Use.
var registered sync.Map

// Use makes a registered entry point serve another handler from now on: the local pipeline uses its own clients with the
// same registration that is deployed.
func Use(name string, h http.Handler) error {
	a, ok := registered.Load(name)
	if !ok {
		return fmt.Errorf("no entry point %q is registered", name)
	}
	adapter, _ := a.(*Adapter) // only adapters are stored
	adapter.mu.Lock()
	defer adapter.mu.Unlock()
	adapter.instead = h
	return nil
}

func (f Function[C, E]) handle() Handle {
	var (
		mu      sync.Mutex
		cfg     *C
		handler func(context.Context, E) error
	)
	configure := func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if cfg != nil {
			return nil
		}
		c, err := configuration[C](ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errConfiguration, err)
		}
		cfg = c
		return nil
	}
	build := func(ctx context.Context) (func(context.Context, E) error, error) {
		mu.Lock()
		defer mu.Unlock()
		if handler != nil {
			return handler, nil
		}
		h, err := f.Build(context.WithoutCancel(ctx), *cfg)
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		handler = h
		return handler, nil
	}
	return func(ctx context.Context, ce cloudevents.Event) error {
		// A wrong configuration shows at the first message, even at one that needs no client.
		if err := configure(ctx); err != nil {
			return err
		}
		e, err := f.Decode(ce)
		if err != nil {
			return decodeFault(err)
		}
		h, err := build(ctx)
		if err != nil {
			return err
		}
		return h(ctx, e)
	}
}

// Adapter serves one entry point: requests in, calls of Handle out.
type Adapter struct {
	Name   string
	Handle Handle
	// Log takes one line per message; nil writes to standard output.
	Log *slog.Logger
	// Drain counts the requests under way; nil is the process's own.
	Drain *Drain

	// reads is the type of the function's configuration.
	reads reflect.Type

	mu      sync.RWMutex
	instead http.Handler
}

// processLog is made at the first message, so that a registered but unused function opens no output.
var processLog = sync.OnceValue(func() *slog.Logger {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(os.Getenv(logLevel))); err != nil {
		level.Set(slog.LevelInfo)
	}
	return logging.New(os.Stdout, level)
})

// Log is the logger of the process: one JSON line per event on standard output, from the level LOG_LEVEL on.
func Log() *slog.Logger { return processLog() }

func (a *Adapter) log() *slog.Logger {
	if a.Log != nil {
		return a.Log
	}
	return processLog()
}

// ServeHTTP implements http.Handler.
func (a *Adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.RLock()
	instead := a.instead
	a.mu.RUnlock()
	if instead != nil {
		instead.ServeHTTP(w, r)
		return
	}
	drain := a.Drain
	if drain == nil {
		drain = processDrain()
	}
	accepted := drain.enter()
	defer drain.leave()
	if !accepted {
		// With its body unread, the end of the process would reset the connection and the client might miss the answer.
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)) //nolint:errcheck // the request is refused in any case
		drain.answer(w, http.StatusServiceUnavailable, "shutting down")
		return
	}
	status, text := a.serve(w, r)
	drain.answer(w, status, text)
}

// serve handles a request and returns its answer.
func (a *Adapter) serve(w http.ResponseWriter, r *http.Request) (status int, text string) {
	if r.Method != http.MethodPost { // a prober, or a person with a browser
		a.log().DebugContext(r.Context(), "request ignored", "function", a.Name, "method", r.Method)
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, r.Method + ": events come only by POST"
	}
	ce, d, err := decode(w, r)
	if err != nil {
		return a.refuse(r.Context(), err)
	}
	start := time.Now()
	err = a.call(withDelivery(r.Context(), d), ce)
	status = a.report(r.Context(), ce, d, time.Since(start), err)
	if status != http.StatusOK {
		text = err.Error()
	}
	return status, text
}

// panicError is a panic of a handler.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// call runs the handler; a panic is an error of the handler and does not end the process.
func (a *Adapter) call(ctx context.Context, ce cloudevents.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return a.Handle(ctx, ce)
}

// report logs the outcome, once, and returns the status for Pub/Sub.
func (a *Adapter) report(ctx context.Context, ce cloudevents.Event, d Delivery, took time.Duration, err error) int {
	log := a.log().With(
		"function", a.Name, "event_type", ce.Type(), "event_id", ce.ID(), "subject", ce.Subject(), "message_id", d.MessageID,
		"delivery_attempt", d.Attempt, "milliseconds", took.Milliseconds())
	if by := d.Attributes[RedrivenBy]; by != "" {
		log = log.With("redriven_by", by, "redriven_why", d.Attributes[RedrivenWhy])
	}
	if d.Trace != "" {
		log = log.With(logging.Trace(os.Getenv("PROJECT_ID"), d.Trace))
	}
	var panicked *panicError
	switch {
	case err == nil:
		log.InfoContext(ctx, "event handled")
	case fault.IsIgnored(err):
		log.DebugContext(ctx, "event ignored", "reason", err.Error(), "code", fault.Code(err))
	case fault.IsPermanent(err):
		log.ErrorContext(ctx, "event rejected", "error", err.Error())
	case fault.IsBusy(err):
		log.WarnContext(ctx, "event left for later", "error", err.Error())
		return http.StatusServiceUnavailable
	case errors.Is(err, errConfiguration):
		// Only a deployment can cure that, so it must show at once, and not when the messages are dead-lettered.
		log.ErrorContext(ctx, "function not configured", "error", err.Error())
		return http.StatusInternalServerError
	case errors.As(err, &panicked):
		// The form in which Error Reporting knows the stack of a Go program: https://cloud.google.com/error-reporting/docs/formatting-error-messages
		log.ErrorContext(ctx, "function panicked", "error", err.Error(), "stack_trace", fmt.Sprintf("%v\n\n%s", err, panicked.stack))
		return http.StatusInternalServerError
	default:
		log.WarnContext(ctx, "event left for redelivery", "error", err.Error())
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// refuse logs a request without a message and returns its answer.
func (a *Adapter) refuse(ctx context.Context, err error) (status int, text string) {
	a.log().ErrorContext(ctx, "request without a message", "function", a.Name, "error", err.Error())
	if errors.Is(err, errTooLarge) {
		return http.StatusOK, "" // Pub/Sub would send it for ever
	}
	return http.StatusBadRequest, err.Error()
}
