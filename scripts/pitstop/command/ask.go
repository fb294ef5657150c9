package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// answerFor is the default of --timeout: how long a verb waits for each answer.
	answerFor = 15 * time.Second
	// answerMost is the longest --timeout: the clients of Cloud Logging and Pub/Sub wait no longer for an answer.
	answerMost = 30 * time.Second
	// quietFor is how long a verb says nothing while it waits.
	quietFor = time.Second
)

// verb is one run of a verb that asks Google.
type verb struct {
	// ctx ends when the caller interrupts the verb.
	ctx   context.Context //nolint:containedctx // inquiries that follow each other begin from it
	limit time.Duration
	tell  func(line string)
	// as says with which credentials the verb asks.
	as func() string

	mu sync.Mutex
	// notice fires once the verb has waited for quietFor. It is due when nothing was waited for just then, and told once.
	notice    *time.Timer
	due, told bool
	pending   []*request
	// silent are the services that gave no answer to a question that the verb can do without. They are not asked again.
	silent map[string]bool
}

// inquiry is one question to Google with everything that it takes: tokens, pages, retries. It is cut off when no answer has come
// for the limit, whichever client waits or retries by then. Each answer starts the time anew, so a long listing is read to its end.
type inquiry struct {
	verb  *verb
	limit time.Duration
	cut   context.CancelCauseFunc
	// ctx is that of its calls.
	ctx context.Context //nolint:containedctx // see lifetime
	// outer is the inquiry whose time this one uses, if any.
	outer *inquiry
	// optional says that the verb goes on without this answer.
	optional bool

	mu    sync.Mutex
	open  []*request
	timer *time.Timer
	// armed counts the timers, because one may fire while the next takes its place.
	armed int
	// last is the call that failed last without an answer since, and failure its error.
	last    *request
	failure error
	// owed says that an inquiry which uses this one's time was cut off: what it waited for counts here until an answer comes.
	owed bool
	// doubtful is the first change that was sent and not answered, until one to the same service is answered: it may have been made,
	// whatever its retry comes to.
	doubtful *request
	// refusals are the answers by which Google refused something, and fault says why there is no token.
	refusals []refusal
	fault    error
	gone     *unanswered
}

// request is one call to a service of Google's.
type request struct {
	service service
	// mu guards the names below where the request is already waited for: a stream names them with its first message.
	mu sync.Mutex
	// project, database and permission are those of the request, as far as it names them.
	project, database, permission string
	// waits says that an answer may take as long as it likes once the request has been sent.
	waits, changes bool
	sent, replied  atomic.Bool
}

// unanswered says that a call had no answer within the limit.
type unanswered struct {
	request *request
	limit   time.Duration
	// failure is what the last try came to, if any ended.
	failure error
	as      string
	// doubt says that a change may have been made.
	doubt bool
}

type inquiryKey struct{}

// inquiryOf is the inquiry that a context belongs to. It is nil where nothing is bounded: a token that is renewed early, say.
func inquiryOf(ctx context.Context) *inquiry {
	a, _ := ctx.Value(inquiryKey{}).(*inquiry)
	return a
}

// bounds adds --timeout to a verb, and sees that it never waits longer.
func (d deployment) bounds(c *cobra.Command) {
	var limit time.Duration
	c.Flags().DurationVar(&limit, "timeout", answerFor, "how long to wait for each answer from Google, at most "+answerMost.String())
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if limit <= 0 || limit > answerMost {
			return usage("--timeout %s: it has to be more than 0 and at most %s", limit, answerMost)
		}
		v := &verb{
			ctx: c.Context(), limit: limit, tell: func(line string) { tell(c.ErrOrStderr(), "pitstop: "+line) },
			as: func() string { return "" }, silent: map[string]bool{},
		}
		if d.google != nil {
			v.as = d.google.caller
		}
		defer v.quiet()
		ctx, end := v.ask(v.ctx, nil, limit)
		c.SetContext(ctx)
		return end(run(c, args))
	}
}

// ask begins an inquiry. Its end turns the error that came of it into one line.
func (v *verb) ask(ctx context.Context, outer *inquiry, limit time.Duration) (context.Context, func(error) error) {
	ctx, cut := context.WithCancelCause(ctx)
	a := &inquiry{verb: v, limit: limit, cut: cut, ctx: ctx, outer: outer}
	return context.WithValue(ctx, inquiryKey{}, a), func(err error) error {
		err = a.explain(err)
		a.stop()
		cut(nil)
		return err
	}
}

// again begins an inquiry for a verb that looks again and again: what one look waited for does not count for the next.
func again(ctx context.Context) (context.Context, func(error) error) {
	a := inquiryOf(ctx)
	if a == nil {
		return ctx, func(err error) error { return err }
	}
	ctx, end := a.verb.ask(a.verb.ctx, nil, a.verb.limit)
	return ctx, func(err error) error {
		a.verb.quiet() // from now on the verb prints what it sees
		return end(err)
	}
}

// apart begins an inquiry for something that the verb can do without. If no answer comes, the verb goes on, and asks that service
// no more.
func apart(ctx context.Context) (context.Context, func(error) error) {
	a := inquiryOf(ctx)
	if a == nil {
		return ctx, func(err error) error { return err }
	}
	ctx, end := a.verb.ask(ctx, nil, a.limit)
	inquiryOf(ctx).optional = true
	return ctx, end
}

// within begins an inquiry of at most that long. Its time counts for the one around it too.
func within(ctx context.Context, limit time.Duration) (context.Context, func(error) error) {
	a := inquiryOf(ctx)
	if a == nil {
		ctx, cancel := context.WithTimeout(ctx, limit)
		return ctx, func(err error) error { cancel(); return err }
	}
	return a.verb.ask(ctx, a, min(limit, a.limit/2))
}

// quiet has the verb say no more that it waits: it has ended, or it prints what it sees.
func (v *verb) quiet() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = true
	if v.notice != nil {
		v.notice.Stop()
	}
}

// waits notes that a call waits for its answer. After a second the verb says so, once.
func (v *verb) waits(c *request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending = append(v.pending, c)
	if v.due {
		v.say(c)
	}
	if v.notice == nil && !v.told {
		v.notice = time.AfterFunc(quietFor, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			if n := len(v.pending); n > 0 {
				v.say(v.pending[n-1])
			}
			v.due = true
		})
	}
}

// say tells that a call is waited for, once.
func (v *verb) say(c *request) {
	if v.told {
		return
	}
	v.told = true
	line := "waiting for " + c.where()
	if as := v.as(); as != "" {
		line += ", as " + as
	}
	v.tell(line + fmt.Sprintf("; --timeout is %s", v.limit))
}

// begin notes a call that waits for its answer.
func (a *inquiry) begin(c *request) error {
	if a == nil {
		return nil
	}
	a.verb.mu.Lock()
	silent := a.optional && a.verb.silent[c.service.host]
	a.verb.mu.Unlock()
	if silent {
		return &unanswered{request: c, limit: a.limit, as: a.verb.as()}
	}
	a.verb.waits(c)
	for ; a != nil; a = a.outer {
		a.mu.Lock()
		a.open = append(a.open, c)
		if a.timer == nil {
			a.arm()
		}
		a.mu.Unlock()
	}
	return nil
}

// arm starts the time in which an answer has to come.
func (a *inquiry) arm() {
	a.armed++
	n := a.armed
	a.timer = time.AfterFunc(a.limit, func() { a.expire(n) })
}

// disarm stops that time.
func (a *inquiry) disarm() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// anew has what was waited for so far count no more. The calls that still wait have the whole time again.
func (a *inquiry) anew() {
	a.last, a.failure, a.owed = nil, nil, false
	a.disarm()
	if len(a.open) > 0 {
		a.arm()
	}
}

// progress notes that an answer, or a part of one, has come.
func (a *inquiry) progress() {
	for ; a != nil; a = a.outer {
		a.mu.Lock()
		a.anew()
		a.mu.Unlock()
	}
}

// end notes that a call waits no more. Unless it may be tried again, the time ends with the last call that waits: a verb that waits
// for nothing cannot be late, and its next call has the whole time.
func (a *inquiry) end(c *request) {
	if a == nil {
		return
	}
	a.verb.mu.Lock()
	a.verb.pending = slices.DeleteFunc(a.verb.pending, func(o *request) bool { return o == c })
	a.verb.mu.Unlock()
	for ; a != nil; a = a.outer {
		a.mu.Lock()
		if a.doubtful == nil && c.inDoubt() {
			a.doubtful = c
		}
		if i := slices.Index(a.open, c); i >= 0 {
			a.open = slices.Delete(a.open, i, i+1)
			if len(a.open) == 0 && a.last == nil && !a.owed {
				a.disarm()
			}
		}
		a.mu.Unlock()
	}
}

// inDoubt says that a change was sent and not answered.
func (c *request) inDoubt() bool { return c.changes && c.sent.Load() && !c.replied.Load() }

// replied notes that a call has its answer, or a first part of it.
func (a *inquiry) replied(c *request) {
	c.replied.Store(true)
	for o := a; o != nil && c.changes; o = o.outer {
		o.mu.Lock()
		if o.doubtful != nil && o.doubtful.service == c.service {
			o.doubtful = nil
		}
		o.mu.Unlock()
	}
	a.progress()
}

// answered notes the whole answer to a call.
func (a *inquiry) answered(c *request) {
	a.replied(c)
	a.end(c)
}

// failed notes that a call ended without an answer. Whether it is tried again is for its client, and the time goes on.
func (a *inquiry) failed(c *request, err error) {
	defer a.end(c) // once the failure is noted: without it, the time would end
	var cut *unanswered
	if errors.As(err, &cut) || errors.Is(err, context.Canceled) {
		return // it was given up here
	}
	if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		err = nil // with the longest --timeout, its client may give up first: that is no answer either
	}
	for o := a; o != nil; o = o.outer {
		o.mu.Lock()
		if o.gone == nil {
			o.last, o.failure = c, err
		}
		o.mu.Unlock()
	}
}

// refuse notes an answer by which Google refused a call.
func (a *inquiry) refuse(r refusal) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.refusals, r) {
		a.refusals = append(a.refusals, r)
	}
}

// lacks notes that there is no token to ask with.
func (a *inquiry) lacks(err error) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fault == nil {
		a.fault = err
	}
}

// expire cuts the inquiry off: no answer has come for its limit.
func (a *inquiry) expire(armed int) {
	as := a.verb.as()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil || a.armed != armed || a.gone != nil {
		return // an answer has come
	}
	c := a.last
	if len(a.open) > 0 {
		c = a.open[len(a.open)-1]
	}
	if c == nil { // it waits for nothing
		a.anew()
		return
	}
	a.gone = &unanswered{request: c, limit: a.limit, failure: a.failure, as: as}
	if a.optional {
		a.verb.mu.Lock()
		a.verb.silent[c.service.host] = true
		a.verb.mu.Unlock()
	}
	for o := a.outer; o != nil; o = o.outer {
		o.mu.Lock()
		o.owed = true
		o.mu.Unlock()
	}
	a.cut(a.gone)
}

func (a *inquiry) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disarm()
}

// reported is an error whose text says why Google could not be asked, and the way out.
type reported struct {
	text string
	// of is the error underneath, where the code may look at it.
	of error
}

func (e reported) Error() string { return e.text }
func (e reported) Unwrap() error { return e.of }

// explain turns an error into one that says what could not be reached or was refused, as whom, and the way out.
func (a *inquiry) explain(err error) error {
	a.mu.Lock()
	gone, fault, refusals, last, failure := a.gone, a.fault, a.refusals, a.last, a.failure
	doubt := a.doubtful != nil || slices.ContainsFunc(a.open, (*request).inDoubt)
	a.mu.Unlock()
	var may string
	if doubt {
		may = mayBeMade
	}
	var done reported
	var wrong usageError
	var silent *unanswered
	switch {
	case err == nil, errors.As(err, &done):
		return err
	case a.verb.ctx.Err() != nil:
		return reported{errInterrupted.Error() + may, a.verb.ctx.Err()}
	case gone != nil:
		said := *gone
		said.doubt = doubt
		return reported{text: said.Error()}
	case errors.As(err, &wrong), errors.Is(err, errFailed):
		return err
	case fault != nil:
		return reported{text: fault.Error() + may}
	case len(refusals) > 0:
		return reported{refused(refusals, a.verb.as()), err}
	case errors.As(err, &silent):
		return reported{text: silent.Error()}
	case last != nil:
		return reported{text: (&unanswered{last, a.limit, failure, a.verb.as(), doubt}).Error()}
	}
	return err
}

// settle explains an error as the end of its inquiry would, for a verb that goes on with something else. What failed is not tried again,
// so its time ends.
func settle(ctx context.Context, err error) error {
	a := inquiryOf(ctx)
	if a == nil || err == nil {
		return err
	}
	err = a.explain(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusals = nil
	a.anew()
	return err
}

// together joins errors, each text once.
func together(all []error) error {
	seen := map[string]bool{}
	return errors.Join(slices.DeleteFunc(all, func(err error) bool {
		if err == nil || seen[err.Error()] {
			return true
		}
		seen[err.Error()] = true
		return false
	})...)
}

// lasting reports whether an inquiry may go on: it was not cut off.
func lasting(ctx context.Context) bool {
	a := inquiryOf(ctx)
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone == nil
}

// body tells of each part of an answer that is read.
type body struct {
	io.ReadCloser
	a *inquiry
	c *request
}

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.a.answered(b.c)
	case err != nil:
		b.a.failed(b.c, err)
	case n > 0:
		b.a.progress()
	}
	return n, err
}

// Close implements io.Closer.
func (b body) Close() error {
	b.a.end(b.c)
	return b.ReadCloser.Close()
}
