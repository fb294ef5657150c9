package google

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
)

const (
	// answerFor is the default of --timeout: how long a verb waits for each answer.
	answerFor = 15 * time.Second
	// answerMost is the longest --timeout: the clients of Cloud Logging and Pub/Sub wait no longer for an answer.
	answerMost = 30 * time.Second
	// QuietFor is how long a verb says nothing while it waits.
	QuietFor = time.Second
)

// verbRun is one run of a verb that asks Google.
type verbRun struct {
	// ctx ends when the caller interrupts the verb.
	ctx   context.Context //nolint:containedctx // questions that follow each other begin from it
	limit time.Duration
	tell  func(line string)
	// as says with which credentials the verb asks.
	as func() string

	// mu guards what is below, and the questions.
	mu sync.Mutex
	// pending is the last request that waits. The verb says so once, and then it is told.
	pending *request
	told    bool
	// silent are the services that gave no answer to a question that the verb can do without. They are not asked again.
	silent map[string]bool
	// doubt says that a change was sent and not answered: it may have been made.
	doubt bool
}

// question is what a verb asks of Google, with everything that it takes: tokens, pages, retries. Its context ends when no answer has
// come for the limit, whichever client waits or retries by then.
type question struct {
	verb  *verbRun
	cut   context.CancelCauseFunc
	ctx   context.Context //nolint:containedctx // see lifetime
	timer *time.Timer
	// since is when the last answer came, or when the wait for the next one began.
	since time.Time
	// optional says that the verb goes on without an answer.
	optional bool

	open []*request
	// failed is the last call that ended without an answer, until an answer comes.
	failed *request
	// refused says why Google was not asked, or what it refused.
	refused error
}

// request is one call of a service of Google's.
type request struct {
	service service
	changes bool
	sent    atomic.Bool
	failure error
}

var errUnanswered = errors.New("no answer has come")

type questionKey struct{}

// questionOf is the question that a context belongs to. It is nil where nothing is bounded: a token that is renewed early, say.
func questionOf(ctx context.Context) *question {
	q, _ := ctx.Value(questionKey{}).(*question)
	return q
}

// Bound adds --timeout to a verb, and sees that it never waits longer. As says with which credentials the verb asks.
func Bound(c *cobra.Command, as func() string) {
	var limit time.Duration
	c.Flags().DurationVar(&limit, "timeout", answerFor, "how long to wait for each answer from Google, at most "+answerMost.String())
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if limit <= 0 || limit > answerMost {
			return cli.Usage("--timeout %s: it has to be more than 0 and at most %s", limit, answerMost)
		}
		v := &verbRun{
			ctx: c.Context(), limit: limit, tell: func(line string) { terminal.Print(c.ErrOrStderr(), "pitstop: "+line) },
			as: as, silent: map[string]bool{},
		}
		q, end := v.ask(v.ctx)
		notice := time.AfterFunc(QuietFor, v.notice)
		defer notice.Stop()
		c.SetContext(q.ctx)
		return end(run(c, args))
	}
}

// ask begins a question. Its end turns the error that came of it into one line.
func (v *verbRun) ask(ctx context.Context) (*question, func(error) error) {
	q := &question{verb: v}
	ctx, q.cut = context.WithCancelCause(ctx)
	q.ctx = context.WithValue(ctx, questionKey{}, q)
	v.mu.Lock()
	defer v.mu.Unlock()
	q.timer = time.AfterFunc(v.limit, q.expire)
	return q, func(err error) error {
		err = q.explain(err)
		v.mu.Lock()
		defer v.mu.Unlock()
		q.timer.Stop()
		q.cut(nil)
		return err
	}
}

// NextQuestion begins a question for a verb that looks again and again: what one look waited for does not count for the next.
func NextQuestion(ctx context.Context) (context.Context, func(error) error) {
	q := questionOf(ctx)
	if q == nil {
		return ctx, func(err error) error { return err }
	}
	look, end := q.verb.ask(ctx)
	return look.ctx, func(err error) error {
		q.verb.quiet() // from now on the verb prints what it sees
		return end(err)
	}
}

// OptionalQuestion begins a question for something that the verb can do without. If no answer comes, the verb goes on, and asks that service
// no more.
func OptionalQuestion(ctx context.Context) (context.Context, func(error) error) {
	q := questionOf(ctx)
	if q == nil {
		return ctx, func(err error) error { return err }
	}
	look, end := q.verb.ask(ctx)
	look.optional = true
	return look.ctx, end
}

// AtMostHalfOfTimeout is a time, and at most half of that which a verb waits for an answer.
func AtMostHalfOfTimeout(ctx context.Context, d time.Duration) time.Duration {
	if q := questionOf(ctx); q != nil {
		return min(d, q.verb.limit/2)
	}
	return d
}

// quiet has the verb say no more that it waits.
func (v *verbRun) quiet() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = true
}

// notice says what the verb waits for, unless it has said so.
func (v *verbRun) notice() {
	as := v.as()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.told || v.pending == nil {
		return
	}
	v.told = true
	line := "waiting for " + v.pending.service.String()
	if as != "" {
		line += ", as " + as
	}
	v.tell(line + fmt.Sprintf("; --timeout is %s", v.limit))
}

// begin notes a call that waits for its answer.
func (q *question) begin(c *request) error {
	if q == nil {
		return nil
	}
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	if q.optional && q.verb.silent[c.service.host] {
		q.failed = c
		return errUnanswered
	}
	if q.idle() {
		q.since = time.Now()
	}
	q.open, q.verb.pending = append(q.open, c), c
	return nil
}

// hear notes that an answer, or a part of one, has come: the whole time is there again.
func (q *question) hear(c *request) {
	if q == nil {
		return
	}
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	if q.ctx.Err() != nil {
		return // it comes too late
	}
	if c.changes {
		q.verb.doubt = false
	}
	q.failed, q.since = nil, time.Now()
}

// end notes that a call waits no more. Without an answer, failure says what it came to, if that is known. Its client may try again.
func (q *question) end(c *request, answered bool, failure error) {
	if q == nil {
		return
	}
	if answered {
		q.hear(c)
	}
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	if !answered && q.ctx.Err() == nil && !errors.Is(failure, context.Canceled) {
		c.failure = failure
		q.failed = c
	}
	q.verb.doubt = q.verb.doubt || !answered && c.changes && c.sent.Load()
	q.open = slices.DeleteFunc(q.open, func(o *request) bool { return o == c })
	if q.verb.pending == c {
		q.verb.pending = nil
	}
}

// refuse notes why Google was not asked, or what it refused. The first reason counts.
func (q *question) refuse(err error) {
	if q == nil {
		return
	}
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	if q.refused == nil {
		q.refused = err
	}
}

// idle reports whether the question waits for nothing.
func (q *question) idle() bool { return len(q.open) == 0 && q.failed == nil }

// expire cuts the question off if no answer has come for the limit.
func (q *question) expire() {
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	if q.idle() {
		q.since = time.Now()
	}
	if left := q.verb.limit - time.Since(q.since); left > 0 {
		q.timer.Reset(left)
		return
	}
	if len(q.open) > 0 {
		last := q.open[len(q.open)-1]
		if q.failed != nil && last.failure == nil {
			last.failure = q.failed.failure
		}
		q.failed = last
	}
	q.verb.silent[q.failed.service.host] = true
	q.cut(errUnanswered)
}

// mayBeMade says what to do about a change that was sent and not answered.
const mayBeMade = "; the change may have been made: look with pitstop status before you repeat it"

// explain turns an error into one that says what could not be reached or was refused, as whom, and the way out.
func (q *question) explain(err error) error {
	as := q.verb.as()
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	cut := errors.Is(context.Cause(q.ctx), errUnanswered)
	may := ""
	if q.verb.doubt || slices.ContainsFunc(q.open, func(c *request) bool { return c.changes && c.sent.Load() }) {
		may = mayBeMade
	}
	var done cli.ExplainedError
	var wrong cli.UsageError
	switch {
	case err == nil, errors.As(err, &done):
		return err
	case q.verb.ctx.Err() != nil:
		return cli.ExplainedError{Text: cli.ErrInterrupted.Error() + may, Of: q.verb.ctx.Err()}
	case !cut && (errors.As(err, &wrong) || errors.Is(err, cli.ErrFailed)):
		return err
	case !cut && q.refused != nil:
		return cli.ExplainedError{Text: q.refused.Error() + may, Of: err}
	case q.failed != nil:
		return cli.ExplainedError{Text: q.failed.unanswered(as, q.verb.limit, may)}
	}
	return err
}

// unanswered says that a call had no answer, and the way out.
func (c *request) unanswered(as string, limit time.Duration, may string) string {
	line := c.service.String()
	if c.failure != nil {
		line += " cannot be reached"
	} else {
		line += fmt.Sprintf(" did not answer within %s", limit)
	}
	if as != "" {
		line += " as " + as
	}
	if c.failure != nil {
		line += ": " + reason(c.failure)
	}
	switch {
	case may != "":
		line += may
	case c.service == machine:
		line += "; run gcloud auth application-default login, unless this machine is Google's and its metadata server is only slow"
	default:
		line += "; check the network, HTTPS_PROXY and, in a VPC, Private Google Access"
	}
	if c.failure == nil && limit < answerMost {
		line += "; a longer --timeout waits longer"
	}
	return line
}

// reason is the innermost text of a failure: clients put their own around it.
func reason(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if i := strings.LastIndex(text, "desc = "); i >= 0 {
		text = strings.Trim(text[i+len("desc = "):], `"`)
	}
	text = strings.TrimPrefix(text, "transport: ")
	return strings.TrimPrefix(text, "Error while dialing: ")
}

// ExplainError explains an error as the end of its question would, for a verb that goes on with something else.
func ExplainError(ctx context.Context, err error) error {
	q := questionOf(ctx)
	if q == nil || err == nil {
		return err
	}
	err = q.explain(err)
	q.verb.mu.Lock()
	defer q.verb.mu.Unlock()
	q.refused, q.failed = nil, nil
	return err
}

// JoinDistinct joins errors, each text once.
func JoinDistinct(all []error) error {
	seen := map[string]bool{}
	return errors.Join(slices.DeleteFunc(all, func(err error) bool {
		if err == nil || seen[err.Error()] {
			return true
		}
		seen[err.Error()] = true
		return false
	})...)
}

// MayGoOn reports whether a question may go on: it was not cut off.
func MayGoOn(ctx context.Context) bool { return !errors.Is(context.Cause(ctx), errUnanswered) }
