// Package faults is what goes wrong in a simulated world: chaos with the machinery, troubles with the fleet, and people's doings. Each
// is drawn from one seed by a hash of its subject, so that leaving one out shifts no other.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Faults are how often what goes wrong with the machinery, each as a probability per occasion.
type Faults struct {
	// Crash ends an instance of a function between two effects, Timeout has an effect hang until the function's time is
	// over; per effect.
	Crash, Timeout float64
	// CrashCall ends one right before a call that changes something, its intent saved; per call.
	CrashCall float64
	// Slow has an effect take up to a minute and a half.
	Slow float64
	// The ledger: a call fails, a write fails because somebody was faster, a write takes effect and its answer is lost.
	LedgerDown, LedgerConflict, LedgerLost float64
	// The TPU API: a call is refused, is lost before or after it takes effect; an operation takes hours or fails late; a
	// listing does not reach its zone.
	APIRefused, APILost, APIAnswerLost, APISlow, APILate, APIUnreachable float64
	// The bucket: a call or its answer is lost.
	BucketLost, BucketAnswerLost float64
	// Pub/Sub: a publication fails or its answer is lost, a message comes late, twice, or again after it was acknowledged.
	PublishFailed, PublishAnswerLost, Delayed, Twice, Again float64
	// Cloud Logging: an entry comes up to 30 minutes late, never, twice, without what need not be there, or with the time
	// of a clock that goes wrong.
	EntryLate, EntryLost, EntryTwice, EntryBare, EntrySkewed float64
	// Forged has somebody publish a request beside one of ours that points to the same effect and asks for something else; per
	// request.
	Forged float64
	// Troubles multiplies how often something happens to the fleet beside its rates.
	Troubles float64
	// Aimed makes something happen in the middle of an incident; per phase that one enters.
	Aimed float64
}

// The degrees of faults.
var faultsNamed = map[string]Faults{
	"none": {Troubles: 1},
	"light": {
		Crash: 0.0005, Timeout: 0.0001, Slow: 0.002, LedgerDown: 0.001, LedgerConflict: 0.001, LedgerLost: 0.0005,
		APIRefused: 0.005, APILost: 0.002, APIAnswerLost: 0.002, APISlow: 0.005, APILate: 0.005, APIUnreachable: 0.005,
		BucketLost: 0.002, BucketAnswerLost: 0.001, PublishFailed: 0.002, PublishAnswerLost: 0.001, Delayed: 0.005, Twice: 0.01, Again: 0.005,
		EntryLate: 0.01, EntryLost: 0.005, EntryTwice: 0.01, EntryBare: 0.005, EntrySkewed: 0.005, Forged: 0.005, Troubles: 1,
	},
	"heavy":   heavy,
	"hostile": hostile(),
}

var heavy = Faults{
	Crash: 0.005, Timeout: 0.001, Slow: 0.01, LedgerDown: 0.01, LedgerConflict: 0.01, LedgerLost: 0.005,
	APIRefused: 0.05, APILost: 0.02, APIAnswerLost: 0.03, APISlow: 0.03, APILate: 0.05, APIUnreachable: 0.05,
	BucketLost: 0.02, BucketAnswerLost: 0.02, PublishFailed: 0.02, PublishAnswerLost: 0.01, Delayed: 0.05, Twice: 0.05, Again: 0.03,
	EntryLate: 0.1, EntryLost: 0.05, EntryTwice: 0.05, EntryBare: 0.03, EntrySkewed: 0.03, Forged: 0.05, Troubles: 5,
}

// hostile has incidents themselves struck as well, and lines forged that tell of numbers nobody has reached.
func hostile() Faults {
	f := heavy
	f.Aimed, f.CrashCall = 0.2, 0.1
	return f
}

// Named returns a degree of faults: none, light, heavy or hostile.
func Named(name string) (Faults, error) {
	f, ok := faultsNamed[name]
	if !ok {
		return Faults{}, fmt.Errorf("%q is no degree of faults; there are none, light, heavy and hostile", name)
	}
	return f, nil
}

// Chaos draws faults from one seed and numbers them. It leaves out every fault from a number on, so that the shortest
// beginning of a run that still fails can be found.
type Chaos struct {
	Faults
	clock *clock.Clock
	dice  Dice
	// Limit is how many faults happen at most, count how many were drawn.
	Limit, Count int
	over         bool
	Told         []string
	// Current is whose call of the TPU API is under way.
	Current *world.Instance
	// heldUp is until when the sinks bring no log entry.
	heldUp time.Time
	// published counts how often a message of the same identity was published.
	published turns
}

// NewChaos draws these faults from a seed, at most as many as the limit.
func NewChaos(clock *clock.Clock, f Faults, seed uint64, limit int) *Chaos {
	return &Chaos{Faults: f, clock: clock, dice: NewDice(seed), Limit: limit, published: turns{}}
}

// struck is how many faults and troubles there were by now.
func (c *Chaos) struck() int { return c.Count }

// happens draws whether a fault happens now.
func (c *Chaos) happens(d Dice, p float64, format string, args ...any) bool {
	if c.over || d.float() >= p {
		return false
	}
	return c.strikes(format, args...)
}

// strikes counts a fault and reports whether it still belongs to the run.
func (c *Chaos) strikes(format string, args ...any) bool {
	if c.Count >= c.Limit {
		return false
	}
	c.Count++
	c.Told = append(c.Told, fmt.Sprintf("%4d  %s  ", c.Count, c.clock.Now().UTC().Format("Jan 2 15:04:05"))+fmt.Sprintf(format, args...))
	return true
}

var errDown = errors.New("simulated: the connection was lost")

// effect stands before and after everything that a function does outside of itself. There its instance may be held up, be
// cut off or crash, and others may act meanwhile.
func (c *Chaos) effect(ctx context.Context, d Dice, what string) error {
	inst := world.InstanceOf(ctx)
	if inst == nil {
		return nil
	}
	c.mayCrash(inst, d.Of("crash"), c.Crash, what)
	if c.happens(d.Of("timeout"), c.Timeout, "%s hangs at %s until its time is over", inst.Function, what) {
		_ = c.clock.Sleep(context.WithoutCancel(ctx), functionTimeout) //nolint:errcheck // nobody cancels it
		inst.Cancel()
		return context.DeadlineExceeded
	}
	if c.happens(d.Of("slow"), c.Slow, "%s is slow at %s", inst.Function, what) {
		return c.clock.Sleep(ctx, d.Of("how slow").between(time.Second, Slowest))
	}
	return ctx.Err()
}

// mayCrash ends an instance for good, if that is drawn or has been.
func (c *Chaos) mayCrash(inst *world.Instance, d Dice, p float64, what string) {
	if inst.Crashed || c.happens(d, p, "%s crashes at %s", inst.Function, what) {
		inst.Crashed = true
		runtime.Goexit()
	}
}

const functionTimeout = 9 * time.Minute

// Slowest is how long one call takes at most that is answered all the same.
const Slowest = 90 * time.Second

// tap makes the functions' ledger fail. observe is called for every answer of the store, unheard for every write whose
// writer never learns that it took effect.
func (c *Chaos) tap(observe func(ctx context.Context, made ledgertest.Call, err error), unheard func(made ledgertest.Call)) *ledgertest.Tap {
	return &ledgertest.Tap{
		Before: func(ctx context.Context, made ledgertest.Call) error {
			inst := world.InstanceOf(ctx)
			if inst == nil {
				return nil
			}
			what, d := "the ledger's "+made.Collection, ledgerCall(inst, made, "call")
			if err := c.effect(ctx, d, what); err != nil {
				return err
			}
			if c.happens(d.Of("down"), c.LedgerDown, "%s cannot be reached", what) {
				return status.Error(codes.Unavailable, "simulated: unavailable")
			}
			if made.Write && c.happens(d.Of("conflict"), c.LedgerConflict, "a write to %s is refused: somebody was faster", what) {
				return status.Error(codes.Aborted, "simulated: the document has changed")
			}
			return nil
		},
		After: func(ctx context.Context, made ledgertest.Call, err error) error {
			inst := world.InstanceOf(ctx)
			if inst == nil {
				return err
			}
			observe(ctx, made, err)
			if err != nil {
				return err
			}
			d := ledgerCall(inst, made, "answer")
			if !made.Write {
				return c.effect(ctx, d, "the ledger's answer")
			}
			heard := false
			defer func() {
				if !heard {
					unheard(made)
				}
			}()
			if c.happens(d.Of("lost"), c.LedgerLost, "a write to the ledger's %s takes effect, and its answer is lost", made.Collection) {
				return errDown
			}
			err = c.effect(ctx, d, "the ledger's answer")
			heard = err == nil
			return err
		},
	}
}

func ledgerCall(inst *world.Instance, made ledgertest.Call, side string) Dice {
	verb := "read"
	if made.Write {
		verb = "write"
	}
	return call(inst, "ledger", made.Collection, made.About, verb, side)
}

// refusal is how an API of Google's refuses a call.
type refusal struct {
	code            int
	status, message string
}

// Error implements Refusal.
func (f refusal) Error() string { return f.message }

// Answer implements Refusal.
func (f refusal) Answer(r *http.Request) *http.Response {
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, f.code, f.message, f.status)
	return &http.Response{
		StatusCode: f.code, Status: http.StatusText(f.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// GRPCStatus implements Refusal.
func (f refusal) GRPCStatus() *status.Status {
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(strconv.Quote(f.status))); err != nil {
		panic("faults: " + err.Error())
	}
	return status.New(c, f.message)
}

// refusals are what the TPU API answers when it does not like a call, whatever the call is.
var refusals = []refusal{
	{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service 'tpu.googleapis.com'."},
	{http.StatusServiceUnavailable, "UNAVAILABLE", "The service is currently unavailable."},
	{http.StatusInternalServerError, "INTERNAL", "Internal error encountered."},
	{http.StatusConflict, "ABORTED", "Operation was aborted due to a conflict; try again."},
	{http.StatusGatewayTimeout, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."},
	{http.StatusForbidden, "PERMISSION_DENIED", "Permission 'tpu.nodes.delete' denied."},
	{http.StatusBadRequest, "FAILED_PRECONDITION", "The operation is not supported while in state CREATING."},
}

// createRefusals are its refusals of creations: the same ones, and those for creations alone.
var createRefusals = append(slices.Clip(refusals), []refusal{
	{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "Quota 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' exhausted. Limit 64 in zone us-west4-a"},
	{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "Quota limit 'TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone us-west4-a."},
	{http.StatusBadRequest, "FAILED_PRECONDITION", "There is insufficient reserved capacity for the request."},
	{http.StatusBadRequest, "INVALID_ARGUMENT", "the accelerator v5litepod-16 was not found in zone us-west4-a"},
	{http.StatusConflict, "ALREADY_EXISTS", "Resource already exists."},
	{http.StatusBadRequest, "INVALID_ARGUMENT", "runtime_version is required"},
}...)

// provider makes the functions' TPU API fail, however it is called. observe is called for each call that arrives, refused for
// each call that is refused before it arrives. The error of such a call is a refusal.
func (c *Chaos) provider(
	api *cloudtputest.API, observe func(ctx context.Context, r cloudtputest.Request), refused func(r cloudtputest.Request, f world.Refusal),
) cloudtputest.Around {
	return func(ctx context.Context, r cloudtputest.Request, next func() error) error {
		inst := world.InstanceOf(ctx)
		if inst == nil {
			return next()
		}
		what, mutates := r.Method+" "+ShortPath(r.Path), r.Method != http.MethodGet
		d := call(inst, "tpu", r.Method, r.Path, r.Query)
		if mutates {
			c.mayCrash(inst, d.Of("crash at once"), c.CrashCall, what)
		}
		if err := c.effect(ctx, d, what); err != nil {
			return err
		}
		if c.happens(d.Of("refused"), c.APIRefused, "the TPU API refuses %s", what) {
			kinds := refusals
			if r.Method == http.MethodPost && (strings.HasSuffix(r.Path, "/nodes") || strings.HasSuffix(r.Path, "/queuedResources")) {
				kinds = createRefusals
			}
			f := kinds[d.Of("how refused").intN(len(kinds))]
			refused(r, f)
			return f
		}
		if c.happens(d.Of("lost"), c.APILost, "%s never reaches the TPU API", what) {
			return errDown
		}
		switch {
		case mutates && c.happens(d.Of("operation slow"), c.APISlow, "the operation of %s takes long", what):
			api.Inject(cloudtputest.Fault{Slow: d.Of("how slow an operation").between(10*time.Minute, 3*time.Hour)})
		case mutates && c.happens(d.Of("operation fails"), c.APILate, "the operation of %s fails late", what):
			late := lateFailures[d.Of("how it fails").intN(len(lateFailures))]
			api.Inject(cloudtputest.Fault{LateCode: late.code, LateMessage: late.message})
		case !mutates && strings.HasSuffix(r.Path, "/nodes") && c.happens(d.Of("unreachable"), c.APIUnreachable, "the TPU API does not reach %s", what):
			api.Inject(cloudtputest.Fault{Method: "ListNodes", Unreachable: true})
		}
		c.Current = inst
		answer := next()
		if answer != nil && !answered(answer) {
			return answer
		}
		observe(ctx, r)
		if c.happens(d.Of("answer lost"), c.APIAnswerLost, "the answer to %s is lost", what) {
			return errDown
		}
		if err := c.effect(ctx, d.Of("answer"), "the answer to "+what); err != nil {
			return err
		}
		return answer
	}
}

// lateFailures are how operations end that were accepted.
var lateFailures = []struct {
	code    int
	message string
}{
	{8, "There is no more capacity in the zone \"us-west4-a\"; you can try in another zone where Cloud TPU Nodes are offered."},
	{13, "an internal error has occurred"},
	{14, "The service is currently unavailable."},
	{10, "The operation was aborted."},
}

// ShortPath is the part of a path behind its project: the zone, and what is there.
func ShortPath(path string) string {
	if _, rest, ok := strings.Cut(path, "/locations/"); ok {
		return rest
	}
	return path
}

// storage has the bucket of the functions go wrong, and tells of each request that is answered.
func (c *Chaos) storage(inner http.RoundTripper, answered func(r *http.Request)) http.RoundTripper {
	return world.RoundTripper(func(r *http.Request) (*http.Response, error) {
		inst := world.InstanceOf(r.Context())
		if inst == nil {
			return inner.RoundTrip(r)
		}
		what := r.Method + " in the bucket"
		// The name of an object that is written is in the body, but no handling writes two.
		d := call(inst, "bucket", r.Method, r.URL.Path, r.URL.Query().Get("prefix"))
		if err := c.effect(r.Context(), d, what); err != nil {
			return nil, err
		}
		if c.happens(d.Of("lost"), c.BucketLost, "%s never arrives", what) {
			return nil, errDown
		}
		resp, err := inner.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		if c.happens(d.Of("answer lost"), c.BucketAnswerLost, "the answer to %s is lost", what) {
			return nil, errors.Join(errDown, resp.Body.Close())
		}
		answered(r)
		return resp, nil
	})
}

// answered reports whether an error is an answer of the API, over HTTP or by gRPC. By gRPC a call without an answer has a status too.
func answered(err error) bool {
	if _, ok := errors.AsType[*googleapi.Error](err); ok {
		return true
	}
	s, ok := status.FromError(err)
	return ok && s.Code() != codes.Canceled && s.Code() != codes.DeadlineExceeded && !cloudtputest.NeverCame(err)
}

// publication makes the functions' publications fail.
func (c *Chaos) publication(ctx context.Context, e events.Envelope, next func()) error {
	inst := world.InstanceOf(ctx)
	var d Dice
	if inst != nil {
		d = call(inst, "publication", e.Type, e.ID)
	}
	if err := c.effect(ctx, d, "the publication of "+e.Type); err != nil {
		return err
	}
	if c.happens(d.Of("failed"), c.PublishFailed, "the publication of %s fails", e.Type) {
		return errDown
	}
	next()
	if c.happens(d.Of("answer lost"), c.PublishAnswerLost, "%s is published, and the answer is lost", e.Type) {
		return errDown
	}
	return c.effect(ctx, d.Of("answer"), "the answer to the publication of "+e.Type)
}

// Listener is told what becomes of the calls that functions make, however they go wrong.
type Listener interface {
	// Read is told of each call of the TPU API that is answered, refusedCall of each that is refused before it arrives.
	Read(ctx context.Context, r cloudtputest.Request)
	RefusedCall(r cloudtputest.Request, f world.Refusal)
	// Asks is told of each call to the API server of a cluster, before it is made or lost. The path is LOCATION/CLUSTER.
	Asks(path string, r *http.Request)
	// Looks is told of each request that the bucket answers.
	Looks(r *http.Request)
	// Stored is told of every answer of the ledger, unheard of every write whose writer never learns that it took effect.
	Stored(ctx context.Context, call ledgertest.Call, err error)
	Unheard(call ledgertest.Call)
	// Skewed is told of an entry whose time is put off.
	Skewed(e events.Entry)
}

// Attach has the faults strike a world. It is called before the world is founded.
func (c *Chaos) Attach(w *world.World, others *Releases, hears Listener) {
	w.Hooks.Join(world.Hooks{
		Luck:   c.luck,
		Cloud:  c.provider(w.API, hears.Read, hears.RefusedCall),
		Bucket: func(next http.RoundTripper) http.RoundTripper { return c.storage(next, hears.Looks) },
		Audit:  c.audit,
		Kubernetes: func(path string, next http.RoundTripper) http.RoundTripper {
			return c.kubernetes(path, next, hears.Asks)
		},
		Ledger:      func(_ string, next ledger.Opener) ledger.Opener { return c.tap(hears.Stored, hears.Unheard).On(next) },
		Publication: c.publication,
		Intercept:   func(entry string, m world.Message) int { return others.intercept(w.Clock.Now(), entry, m) },
		Logged:      func(raw []byte) { c.logged(w, raw, hears.Skewed) },
		Struck:      c.struck,
		Sent:        func(e events.Envelope, topic string) { c.forgesRequest(w, e, topic) },
	})
}
