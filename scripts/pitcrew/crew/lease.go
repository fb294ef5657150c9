//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/save"
	"pitstop.internal/shared/checkpoint"
)

// leaseView is the lease as it was read last.
type leaseView struct {
	checkpoint.Lease
	exists bool
	// read is when it was read last, named when it named this machine last.
	read, named          time.Time
	busy, again, writing bool
	// retry is when it may be written again after a failure.
	retry time.Time
	// rival describes a lease that names another life, and since is when it last changed.
	rival string
	since time.Time
	// virtual is the attempt where there is no directory, and so no lease.
	virtual int
}

// limit bounds a call to the storage: it has to fail before the lease is read the next time.
const limit = 8 * time.Second

func (c *crew) admission() events.Admission {
	return events.Admission{Slice: c.Machine.SliceName(), Incarnation: c.Machine.Incarnation(), Workers: c.life}
}

// admits reports whether a lease names this life of the slice. A crew does not know the provider's ID of its own life.
// Where a lease says nothing else, the time counts. Only one life at a time has a name in a zone. So a machine that started
// after the named life was created belongs to that life, or to a later one.
func (c *crew) admits(l checkpoint.Lease) bool {
	if l.Admits(c.Machine.SliceName(), c.Machine.Incarnation(), c.life, 0) {
		return true
	}
	for _, a := range l.Admitted {
		if a.Slice == c.Machine.SliceName() && a.Workers == "" {
			return c.after(a)
		}
	}
	return false
}

func (c *crew) after(a events.Admission) bool {
	if c.Machine.Pod.Known() {
		return false // the machine may have started long before the Job, and the Job's UID tells its lives apart
	}
	return a.Incarnation.Zone == c.Machine.Zone && !a.Incarnation.Created.IsZero() && c.Booted.After(a.Incarnation.Created)
}

// leaseOf is the lease as the leader needs it.
func (c *crew) leaseOf(now time.Time) agree.Lease {
	v := c.lease
	switch {
	case c.Directory == "":
		return agree.Lease{Admitted: true, Attempt: v.virtual, Own: true}
	case v.read.IsZero() || now.Sub(v.read) > c.Times.Unread:
		return agree.Lease{Attempt: v.Attempt}
	case !v.exists:
		return agree.Lease{Admitted: true, Own: true}
	}
	return agree.Lease{Admitted: c.admits(v.Lease), Attempt: v.Attempt, Epoch: v.Epoch, Own: v.By == by}
}

// by is who a crew's lease is written by.
const by = "crew"

// mayRun reports whether a training that runs may go on, and why not.
func (c *crew) mayRun(now time.Time) (bool, string) {
	v := c.lease
	if c.Directory == "" {
		return true, ""
	}
	if v.exists && !c.admits(v.Lease) {
		return false, fmt.Sprintf("the lease names another life of %s (attempt %d, written by %s)", c.Machine.SliceName(), v.Attempt, v.By)
	}
	last := v.named
	if c.child != nil && last.IsZero() {
		last = c.child.Began // adopted, and the lease was not read yet
		if c.child.Adopted && now.Sub(last) > c.Times.Unread {
			c.lease.named = now // the last crew read it; this one gets as long
			last = now
		}
	}
	if !last.IsZero() && now.Sub(last) >= c.Times.Unread {
		return false, fmt.Sprintf("the lease was not read for %v", c.Times.Unread)
	}
	if c.child != nil {
		c.at(last.Add(c.Times.Unread))
	}
	// Worker 0 alone gives the sign of life that keeps another crew from taking over a lease that a crew wrote.
	if c.client != nil && c.child != nil && v.exists && v.Epoch == 0 {
		heard := c.client.Heard()
		if now.Sub(heard) >= c.Times.Unread {
			return false, fmt.Sprintf("worker 0 was not heard for %v", c.Times.Unread)
		}
		c.at(heard.Add(c.Times.Unread))
	}
	return true, ""
}

// mayStart reports whether the lease names the attempt of the plan, by a reading that is not old.
func (c *crew) mayStart(now time.Time) bool {
	if c.Directory == "" {
		return true
	}
	v := c.lease
	if v.exists && c.admits(v.Lease) && v.Attempt == c.plan.Attempt && now.Sub(v.read) <= 3*c.Times.Lease {
		return true
	}
	if c.every("impatience", max(c.Times.Lease/10, 20*time.Millisecond), now) {
		c.readLease()
	}
	return false
}

// readLease reads the lease, once at a time.
func (c *crew) readLease() {
	if c.Directory == "" {
		return
	}
	if c.lease.busy {
		c.lease.again = true
		return
	}
	c.lease.busy, c.lease.again = true, false
	c.beside(limit, func(ctx context.Context) func() {
		l, _, err := checkpoint.ReadLease(ctx, c.Store, c.Directory)
		var pulse int64
		if err == nil && !c.admits(l) {
			if pulse, err = c.board.Pulse(ctx); err != nil {
				err = fmt.Errorf("sign of life: %w", err)
			}
		}
		return func() {
			c.lease.busy = false
			c.leaseRead(l, pulse, err)
			if c.lease.again {
				c.readLease()
			}
		}
	})
}

func (c *crew) leaseRead(l checkpoint.Lease, pulse int64, err error) {
	now := c.clock()
	v := &c.lease
	switch {
	case errors.Is(err, checkpoint.ErrNotExist), errors.Is(err, checkpoint.ErrMalformed):
		v.exists, v.read, v.rival = false, now, ""
		c.fault("lease", nil)
		return
	case err != nil:
		c.fault("lease", err)
		return
	}
	c.fault("lease", nil)
	v.Lease, v.exists, v.read = l, true, now
	if c.admits(l) {
		v.named, v.rival = now, ""
		if c.child != nil {
			c.child.Led()
		}
		c.fault("admission", nil)
		return
	}
	c.fault("admission", fmt.Errorf("the lease in %s names another life of %s; waiting", c.Directory, c.Machine.SliceName()))
	if c.leader != nil && c.Machine.Slices > 1 && l.Epoch == 0 && names(l, c.Machine.SliceName()) != nil {
		c.claim(l.Attempt)
	}
	rival := fmt.Sprint(l.Epoch, l.Attempt, l.Admitted, pulse)
	if rival != v.rival {
		v.rival, v.since = rival, now
	}
	if c.leader != nil && c.succeeds(l) && now.Sub(v.since) >= c.Times.TakeOver {
		c.Say("the owner of the lease gave no sign of life for %v; taking the lease over", c.Times.TakeOver)
		c.name(l.Attempt+1, true)
	}
}

// names is what a lease says of a slice; nil is nothing.
func names(l checkpoint.Lease, slice string) *events.Admission {
	for i, a := range l.Admitted {
		if a.Slice == slice {
			return &l.Admitted[i]
		}
	}
	return nil
}

// claim tells the other slices that this life wants to train in the place of the one that their own lease names: theirs may
// hang without it, and keep the lease alive. It is ready for the attempt that hangs, so that they see it, and for the next. Where
// that one's hosts meet it says when it may begin.
func (c *crew) claim(attempt int) {
	c.once("claim", func(ctx context.Context) func() {
		claim := func(attempt int) error { return c.board.Claim(ctx, attempt, c.Machine.Slice, c.admission()) }
		err := errors.Join(claim(attempt), claim(attempt+1))
		return func() { c.fault("the other slices", err) }
	})
}

// claim is a life of another slice that the crews' own lease does not name.
type claim struct {
	life        string
	since, seen time.Time
	// stood says that the life that the lease names had the time to object, and to end its training.
	stood bool
}

// claims returns which slices are ready, without the new lives of those whose last one may still train: it says again that
// it is ready as long as it can read and write beside the checkpoints, and ends its training where it cannot.
func (c *crew) claims(now time.Time, ready map[int]events.Admission) map[int]events.Admission {
	o := &c.out
	o.replaced, o.claimed = nil, false
	for s, a := range ready {
		named := names(c.lease.Lease, a.Slice)
		if !c.lease.exists || c.lease.Epoch > 0 || named == nil || named.Workers == a.Workers {
			delete(o.claims, s)
			continue
		}
		k := o.claims[s]
		if k.life != a.Workers || !k.stood && now.Sub(k.seen) > 3*c.Times.Lease {
			k = claim{life: a.Workers, since: now}
		}
		k.seen, k.stood = now, k.stood || now.Sub(k.since) >= c.Times.TakeOver
		switch {
		case s == c.Machine.Slice:
			o.claimed = true
			delete(ready, s)
		case k.stood:
			o.replaced = append(o.replaced, s)
		default:
			delete(ready, s)
		}
		o.claims[s] = k
	}
	return ready
}

// succeeds reports whether this crew may put itself in the place of the one that a lease names: where a crew wrote it, or
// where the named life had this one's name and zone before, of which there is only one at a time.
func (c *crew) succeeds(l checkpoint.Lease) bool {
	if l.Epoch == 0 {
		return true
	}
	for _, a := range l.Admitted {
		if a.Slice == c.Machine.SliceName() {
			return c.after(a)
		}
	}
	return false
}

// name has the lease name an attempt.
func (c *crew) name(attempt int, takeOver bool) {
	if c.Directory == "" {
		c.lease.virtual = attempt
		return
	}
	if c.lease.writing {
		return
	}
	c.lease.writing = true
	ready := slices.Collect(maps.Values(c.out.ready))
	if c.Machine.Slices <= 1 {
		ready = []events.Admission{c.admission()}
	}
	c.beside(limit, func(ctx context.Context) func() {
		err := c.write(ctx, attempt, takeOver, ready)
		return func() {
			c.lease.writing = false
			if err != nil {
				c.fault("lease", err)
				c.lease.retry = c.clock().Add(time.Second)
			} else if takeOver {
				c.leader.Attempt = attempt // it is this crew's to begin
			}
			c.readLease()
		}
	})
}

// write writes the lease: an attempt more of the one that is there, or the first.
func (c *crew) write(ctx context.Context, attempt int, takeOver bool, ready []events.Admission) error {
	l, _, err := checkpoint.ReadLease(ctx, c.Store, c.Directory)
	switch {
	case errors.Is(err, checkpoint.ErrNotExist), errors.Is(err, checkpoint.ErrMalformed):
		l = checkpoint.Lease{Workload: c.Workload, Admitted: ready}
	case err != nil:
		return err
	case !takeOver && !c.admits(l):
		return nil // it is read again, and waited for
	case !takeOver && l.Attempt >= attempt:
		return nil
	case takeOver && (!c.succeeds(l) || l.Attempt >= attempt):
		return errors.New("the lease to take over was written again; waiting")
	case takeOver:
		kept := []events.Admission{c.admission()}
		for _, a := range l.Admitted {
			// Whose lease it was may come back: only slices that train together stay.
			if a.Slice != c.Machine.SliceName() && (l.Epoch > 0 || c.Machine.Slices > 1) {
				kept = append(kept, a)
			}
		}
		l.Admitted = kept
	case l.Epoch == 0 && len(ready) > 0:
		l.Admitted = ready
	}
	l.Attempt, l.Written, l.By = attempt, c.clock(), by
	return checkpoint.WriteLease(ctx, c.Store, c.Directory, l)
}

// readRequest reads the request beside the checkpoints.
func (c *crew) readRequest() {
	c.once("request", func(ctx context.Context) func() {
		r, err := checkpoint.ReadRequest(ctx, c.Store, c.Directory)
		return func() {
			if err == nil || errors.Is(err, checkpoint.ErrNotExist) || errors.Is(err, checkpoint.ErrMalformed) {
				c.requestRead = c.clock()
			}
			const where = "request beside the checkpoints"
			switch {
			case err == nil:
				c.fault(where, nil)
				c.asked(r, "the "+where)
			case errors.Is(err, checkpoint.ErrNotExist):
				c.fault(where, nil)
			default:
				c.fault(where, err)
			}
		}
	})
}

// asked takes a request of Pitstop's. One that was already over when this crew first saw it is not for this crew.
func (c *crew) asked(r events.CrewRequest, where string) {
	if c.child == nil && c.status.Phase == agree.Idle {
		c.early = &r
		return
	}
	if !r.By.IsZero() && r.By.Before(c.clock().Add(-c.Times.Save)) {
		return
	}
	if name, known := c.workload(); known && r.Workload != "" && r.Workload != name && r.Workload != c.Workload {
		c.fault("request", fmt.Errorf("request %s asks %s to save, and this is %s", r.SaveID, r.Workload, name))
		return
	}
	c.take(save.Request{ID: r.SaveID, Mode: r.Mode, By: r.By, Why: where})
}

// workload is the name of what trains here, and whether it is certain: Pitstop's lease says it, or the user did. A machine
// does not see the label that may give it another name than the TPU's.
func (c *crew) workload() (name string, known bool) {
	if c.lease.exists && c.lease.Epoch > 0 {
		return c.lease.Workload, true
	}
	return c.Workload, c.Named
}

// outside is what the other slices say.
type outside struct {
	view  agree.Outside
	ready map[int]events.Admission
	busy  bool
	// claims are the new lives of slices, replaced the slices that were lost, and claimed says that somebody wants the place
	// of this one.
	claims   map[int]claim
	replaced []int
	claimed  bool
	// cleared is the last attempt whose traces were removed.
	cleared int
}

// carry does what the leader wants of the world.
func (c *crew) carry(now time.Time, w agree.Want) {
	if w.Lease > 0 {
		if now.Before(c.lease.retry) {
			c.at(c.lease.retry)
		} else {
			c.name(w.Lease, false)
		}
	}
	if w.Look > 0 && c.Machine.Slices > 1 && (c.every("board", c.Times.Board, now) || c.out.view.Attempt != w.Look) {
		c.ask(w)
	}
	if l := c.lease; c.Directory != "" && l.exists && l.Epoch == 0 && (c.child != nil || c.means()) && c.every("beat", min(c.Times.Beat, c.Times.TakeOver/4), now) {
		c.once("sign of life", func(ctx context.Context) func() {
			err := c.board.Beat(ctx, c.Machine.Host, c.clock())
			return func() { c.fault("sign of life", err) }
		})
	}
}

// means reports whether the training is about to begin under the lease that there is, so that nobody else may take it over.
// The slices of a Multislice have to let each other's new lives do so.
func (c *crew) means() bool {
	switch c.leader.Stage {
	case agree.Gathering, agree.Admitting, agree.Training, agree.Ending, agree.Deciding, agree.Pausing:
		return c.Machine.Slices <= 1 && c.admits(c.lease.Lease)
	case agree.Waiting, agree.Asking, agree.Over:
	}
	return false
}

// ask writes what this slice has to say, and reads what the others do.
func (c *crew) ask(w agree.Want) {
	if c.out.busy {
		return
	}
	c.out.busy = true
	if c.out.claimed && c.admits(c.lease.Lease) {
		w.Ready = w.Look // this life is not over
	}
	server, over := "", 0
	if w.Ready > 0 {
		server = c.server0()
	}
	if c.Machine.Slice == 0 && c.out.cleared < w.Look-keptAttempts {
		over = w.Look - keptAttempts
	}
	c.beside(limit, func(ctx context.Context) func() {
		var faults []error
		if w.Ready > 0 {
			faults = append(faults, c.board.Ready(ctx, w.Ready, c.Machine.Slice, c.admission(), server))
		}
		if w.Ended != nil {
			faults = append(faults, c.board.End(ctx, *w.Ended))
		}
		if w.Verdict != nil {
			faults = append(faults, c.board.Judge(ctx, *w.Verdict))
		}
		view, ready, err := c.board.Look(ctx, w.Look)
		var cleared error
		if over > 0 {
			cleared = c.board.Clear(ctx, over)
			faults = append(faults, cleared)
		}
		return func() {
			c.out.busy = false
			if cleared == nil {
				c.out.cleared = max(c.out.cleared, over)
			}
			c.fault("the other slices", errors.Join(append(faults, err)...))
			if err == nil {
				c.out.ready = c.claims(c.clock(), ready)
				c.out.view = view
				c.out.view.Ready = len(c.out.ready)
				if _, ok := c.out.ready[0]; ok && view.Claimed {
					c.out.view.Ready--
				}
			}
		}
	})
}
