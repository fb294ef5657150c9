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
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/save"
	"pitstop.internal/shared/checkpoint"
)

// leaseView is the lease as it was read last. A lease that is missing, or is no lease, does not change it: its absence counts as
// the last reading, and renews nothing.
type leaseView struct {
	checkpoint.Lease
	exists bool // one was read
	// read is when one was read last, and named when one that names this machine counts as read last. Beaten is when this crew began to
	// write the last of its signs of life.
	read, named, beaten  time.Time
	busy, again, writing bool
	// retry is when it may be written again after a failure.
	retry time.Time
	// rival describes what keeps this crew from the lease: one that names another life, or none. Since is when it last changed.
	rival string
	since time.Time
	// pulse is the last sign of life of another crew's. Marked is the attempt for whose training this crew gave one.
	pulse  int64
	marked int
	// missing says that none stood there at the last look, which was at looked. Gone is when the last one was missed.
	missing      bool
	looked, gone time.Time
	// free says that nobody can train under a lease that is missing, and first that nobody ever has. Over is the last attempt that is over
	// by what crews have left.
	free, first bool
	over        int
	// virtual is the attempt where there is no directory, and so no lease.
	virtual int
}

// limit bounds a call to the storage: it has to fail before the lease is read the next time.
const limit = 8 * time.Second

func (c *crew) admission() events.Admission {
	return events.Admission{Slice: c.Machine.SliceName(), Incarnation: c.Machine.Incarnation(), Workers: c.life}
}

// Foreign reports whether a lease surely belongs to another workload than that of a machine. The workload is the one that the user named, if
// any. A machine without a project cannot compare.
func Foreign(l checkpoint.Lease, workload string, m metadata.Machine) bool {
	named := workload != ""
	if !named {
		workload = m.Project + "/" + m.WorkloadName()
	}
	return (named || m.Project != "") && l.Foreign(workload, named, events.Admission{Slice: m.SliceName(), Incarnation: m.Incarnation()})
}

// foreign reports whether a lease surely belongs to another workload.
func (c *crew) foreign(l checkpoint.Lease) bool {
	named := ""
	if c.Named {
		named = c.Workload
	}
	return Foreign(l, named, c.Machine)
}

// admits reports whether a lease names this life of the slice. A crew does not know the provider's ID of its own life.
// Where a lease says nothing else, the time counts. Only one life at a time has a name in a zone. So a machine that started
// after the named life was created belongs to that life, or to a later one.
func (c *crew) admits(l checkpoint.Lease) bool {
	if c.foreign(l) {
		return false
	}
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
	case v.free && now.Sub(v.looked) <= c.Times.Unread:
		l := c.known()
		return agree.Lease{Admitted: true, Last: max(l.Attempt, v.over), Epoch: l.Epoch, Own: true}
	case v.read.IsZero() || now.Sub(v.read) > c.Times.Unread:
		return agree.Lease{Attempt: v.Attempt}
	}
	return agree.Lease{Admitted: c.admits(v.Lease), Attempt: v.Attempt, Epoch: v.Epoch, Own: v.By == by}
}

// known is the last lease of this workload that was read. Without one it is the empty lease of a first start.
func (c *crew) known() checkpoint.Lease {
	if l := c.lease.Lease; c.lease.exists && !c.foreign(l) {
		return l
	}
	return checkpoint.Lease{Workload: c.Workload}
}

// holds reports whether the last lease that was read names this life, so lately that nobody else can have taken it over.
func (c *crew) holds(now time.Time) bool {
	v := c.lease
	return v.exists && c.admits(v.Lease) && now.Sub(v.named) < c.Times.Unread
}

// by is who a crew's lease is written by.
const by = "crew"

// mayRun reports whether a training that runs may go on, and why not.
func (c *crew) mayRun(now time.Time) (bool, string) {
	v := c.lease
	if c.Directory == "" {
		return true, ""
	}
	if v.exists && c.foreign(v.Lease) {
		return false, fmt.Sprintf("the lease belongs to %s (attempt %d, written by %s)", v.Workload, v.Attempt, v.By)
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
		why := fmt.Sprintf("the lease was not read for %v", c.Times.Unread)
		if now.Sub(v.read) <= 3*c.Times.Lease {
			why = fmt.Sprintf("no sign of life could be written for %v, so another crew may take the lease over", c.Times.Unread)
		}
		return false, why
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
	fresh := !c.lease.missing && c.known().Attempt == 0 // nothing is known of this place
	fresh = fresh || c.Machine.Slices > 1               // and slices have to come to one attempt
	ready := c.offered()
	c.beside(limit, func(ctx context.Context) func() {
		r := c.reading(ctx, fresh, ready)
		return func() {
			c.lease.busy = false
			if c.offered() != ready {
				r.over = 0 // the look may have met what this crew has said meanwhile
			}
			c.leaseRead(r)
			if c.lease.again {
				c.readLease()
			}
		}
	})
}

// offered is the attempt for which this slice says that it is ready; 0 is none.
func (c *crew) offered() int {
	if c.leader == nil || c.leader.Stage != agree.Admitting {
		return 0
	}
	return c.leader.Attempt
}

// reading is one look at the lease.
type reading struct {
	checkpoint.Lease
	generation int64
	// err is why there is no lease to read: none stands there, or the look failed.
	err error
	// pulse is the last sign of life, where another crew may have the place.
	pulse peers.Sign
	// trained says that crews have trained here before, and over is the last attempt that is over by what they have left. It is found out
	// where no lease stands and nothing is known.
	trained bool
	over    int
}

// reading looks at the lease. Ready is the attempt for which this slice is ready.
func (c *crew) reading(ctx context.Context, fresh bool, ready int) (r reading) {
	r.Lease, r.generation, r.err = checkpoint.ReadLease(ctx, c.Store, c.Directory)
	none := missing(r.err)
	if c.leader == nil || !none && (r.err != nil || c.admits(r.Lease)) {
		return r
	}
	var err error
	if r.pulse, err = c.board.Pulse(ctx); err == nil && none && fresh {
		r.trained, r.over, err = c.board.Trained(ctx, c.Machine.Slice, ready)
	}
	if err != nil {
		r.err = fmt.Errorf("sign of life: %w", err)
	}
	return r
}

// missing reports whether no lease stands where it should. What cannot be read as a lease is none.
func missing(err error) bool {
	return errors.Is(err, checkpoint.ErrNotExist) || errors.Is(err, checkpoint.ErrMalformed)
}

func (c *crew) leaseRead(r reading) {
	now := c.clock()
	v := &c.lease
	none := missing(r.err)
	if r.err != nil && !none {
		c.fault("lease", r.err)
		return
	}
	c.fault("lease", nil)
	gap := now.Sub(v.looked) > 3*c.Times.Lease
	v.looked = now
	if r.pulse.Life != c.life {
		v.first = v.first && v.pulse == r.pulse.Generation // another crew has come meanwhile
		v.pulse = r.pulse.Generation
	}
	if none {
		c.unleased(now, r, gap)
		return
	}
	if now.Sub(v.gone) > c.Times.Unread {
		c.condition(noLease, "", "") // one that vanishes again and again is told once
	}
	v.Lease, v.exists, v.read, v.missing, v.free = r.Lease, true, now, false, false
	switch l := r.Lease; {
	case c.foreign(l):
		v.rival = ""
		c.fault("admission", fmt.Errorf("the lease in %s belongs to %s, and this is %s: nothing is trained here, and the lease stays; "+
			"give each workload a checkpoint directory of its own, correct --workload, or remove %s when %s has ended",
			c.Directory, l.Workload, c.Workload, checkpoint.LeaseName, l.Workload))
	case c.admits(l):
		v.rival = ""
		c.renew(now)
		c.fault("admission", nil)
		c.condition("take over", "", "")
	default:
		c.rivalled(now, l)
	}
}

// renew lets the training go on for as long as a lease may go unread. Where a crew wrote the lease, another one counts from the last sign of
// life, so this one does, too.
func (c *crew) renew(now time.Time) {
	v := &c.lease
	until := now
	if c.child != nil && c.leader != nil && v.Epoch == 0 {
		until = v.beaten
	}
	if until.After(v.named) {
		if v.named = until; c.child != nil {
			c.child.Led()
		}
	}
}

// rivalled takes a lease that names another life.
func (c *crew) rivalled(now time.Time, l checkpoint.Lease) {
	c.fault("admission", fmt.Errorf("the lease in %s names another life of %s; waiting", c.Directory, c.Machine.SliceName()))
	if c.leader != nil && c.Machine.Slices > 1 && l.Epoch == 0 && names(l, c.Machine.SliceName()) != nil {
		c.claim(l.Attempt)
	}
	v := &c.lease
	c.waitsFor(now, fmt.Sprint(l.Epoch, l.Attempt, l.Admitted, v.pulse))
	if c.leader == nil || !c.succeeds(l) || now.Sub(v.since) < c.Times.TakeOver {
		c.condition("take over", "", "")
		return
	}
	c.condition("take over", fmt.Sprintf("the owner of the lease gave no sign of life for %v; taking the lease over", c.Times.TakeOver), "")
	if !now.Before(v.retry) {
		c.name(l.Attempt+1, true)
	}
}

// waitsFor notes what keeps this crew from the lease. The wait begins anew with each change.
func (c *crew) waitsFor(now time.Time, rival string) {
	if v := &c.lease; rival != v.rival {
		v.rival, v.since = rival, now
	}
}

// noLease is the key of that condition.
const noLease = "no lease"

// unleased takes it that no lease stands there. The crew that the last one named writes it again. Any other one waits as long as the last
// one's training may still write, unless nobody has ever trained here.
func (c *crew) unleased(now time.Time, r reading, gap bool) {
	if c.leader == nil {
		return
	}
	v := &c.lease
	v.gone = now
	v.over = max(v.over, r.over)
	if !v.missing {
		v.missing, v.first = true, !v.exists && !r.trained
	}
	if gap {
		v.rival = "" // a lease may have come and gone meanwhile
	}
	c.waitsFor(now, fmt.Sprint(noLease, v.pulse))
	holds := c.holds(now)
	l := c.known()
	surplus := l.Epoch > 0 && names(l, c.Machine.SliceName()) == nil // Pitstop's lease did not name its slice, and none that follows does
	v.free = !holds && !surplus && (v.first || now.Sub(v.since) >= c.Times.TakeOver)
	switch {
	case v.first:
	case holds:
		c.condition(noLease, fmt.Sprintf("%v; this crew writes the last lease again (a lifecycle rule of the bucket has to spare %s and %s/)",
			r.err, checkpoint.LeaseName, peers.Folder), "")
		c.restore(now, r.generation)
	case !v.free:
		c.condition(noLease, fmt.Sprintf("%v; waiting for its crew to write it again, and going on without it after %v", r.err, c.Times.TakeOver), "")
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
	d := draft{
		attempt: attempt, takeOver: takeOver, last: c.known(), holds: c.holds(c.clock()), free: c.lease.free, pulse: c.lease.pulse,
		ready: slices.Collect(maps.Values(c.out.ready)),
	}
	if c.Machine.Slices <= 1 {
		d.ready = []events.Admission{c.admission()}
	}
	c.put(func(ctx context.Context) (bool, error) { return c.write(ctx, d) }, func() {
		if takeOver {
			c.leader.Attempt = attempt // it is this crew's to begin
		}
	})
}

// restore writes the last lease again in the place of a generation that is none.
func (c *crew) restore(now time.Time, generation int64) {
	if now.Before(c.lease.retry) {
		return
	}
	l := c.lease.Lease
	c.put(func(ctx context.Context) (bool, error) {
		return true, c.replace(ctx, l, generation, true)
	}, func() {})
}

// put writes the lease, once at a time, and reads it again. The function says whether it wrote.
func (c *crew) put(write func(context.Context) (bool, error), then func()) {
	if c.lease.writing {
		return
	}
	c.lease.writing = true
	c.beside(limit, func(ctx context.Context) func() {
		wrote, err := write(ctx)
		return func() {
			const what = "write of the lease"
			v := &c.lease
			v.writing = false
			switch {
			case errors.Is(err, errStirs):
				v.first, v.free, v.rival = false, false, ""
			case errors.Is(err, checkpoint.ErrOvertaken): // what stands there now is decided on
			case err != nil:
				c.fault(what, err)
				v.retry = c.clock().Add(time.Second)
			case wrote:
				c.fault(what, nil)
				then()
			}
			c.readLease()
		}
	})
}

// draft is what was known when it was decided to write the lease.
type draft struct {
	attempt int
	// takeOver puts this crew in the place of one that the lease names.
	takeOver bool
	// last is the last lease that was read. Where none stands any more it counts, if it names this crew (holds) or if the place is free.
	last        checkpoint.Lease
	holds, free bool
	// pulse is the last sign of life of another crew's that was seen.
	pulse int64
	ready []events.Admission
}

// errStirs says that somebody else has just given a sign of life.
var errStirs = errors.New("another crew gave a sign of life")

// write writes the lease: an attempt more of the one that is there, or of the last one, or the first. It reports whether it did.
func (c *crew) write(ctx context.Context, d draft) (bool, error) {
	l, generation, err := checkpoint.ReadLease(ctx, c.Store, c.Directory)
	none := missing(err)
	takes := d.takeOver && c.succeeds(l)
	switch {
	case err != nil && !none:
		return false, err
	case none && !d.free && !d.holds:
		return false, nil // it is waited for
	case err == nil && c.foreign(l):
		return false, nil // the next look says so
	case none:
		l, takes = d.last, d.free
	case !takes && !c.admits(l):
		return false, nil // it is read again, and waited for
	}
	if l.Attempt >= d.attempt {
		return false, nil
	}
	if takes {
		// Of all who want the place, one gives the sign of life that follows the last.
		err := c.board.Succeed(ctx, c.life, c.clock(), d.pulse)
		if errors.Is(err, checkpoint.ErrConflict) {
			return false, errStirs
		}
		if err != nil {
			return false, err
		}
	}
	switch {
	case takes && (!none || l.Epoch > 0 && c.Machine.Slices <= 1):
		kept := []events.Admission{c.admission()}
		for _, a := range l.Admitted {
			// Whose lease it was may come back: only slices that train together stay.
			if a.Slice != c.Machine.SliceName() && (l.Epoch > 0 || c.Machine.Slices > 1) {
				kept = append(kept, a)
			}
		}
		l.Admitted = kept
	case (takes || l.Epoch == 0) && len(d.ready) > 0:
		l.Admitted = d.ready
	}
	l.Attempt, l.Written, l.By = d.attempt, c.clock(), by
	return true, c.replace(ctx, l, generation, none)
}

// replace writes a lease over one generation. Where that is none (it cannot be read), only a person can say what its numbers mean.
func (c *crew) replace(ctx context.Context, l checkpoint.Lease, generation int64, none bool) error {
	if l.Attempt > events.MaxAttempt {
		return fmt.Errorf("%w: attempt %d, and nothing gets above %d; pitstop retry puts the number right, or remove %s",
			checkpoint.ErrBeyondBelief, l.Attempt, events.MaxAttempt, checkpoint.LeaseName)
	}
	err := checkpoint.ReplaceLease(ctx, c.Store, c.Directory, l, generation)
	if none && (errors.Is(err, checkpoint.ErrStale) || errors.Is(err, checkpoint.ErrForeign)) {
		err = fmt.Errorf("%w; it cannot be read as a whole: remove it", err)
	}
	return err
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
	if l := c.known(); l.Epoch > 0 {
		return l.Workload, true
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
	c.beat(now)
}

// beat gives a sign of life now and then, where another crew waits for that of this one: it may not take a lease over that a crew wrote, nor
// the place of a lease that is missing. Once for each training it says under any lease that somebody trains here.
func (c *crew) beat(now time.Time) {
	v := &c.lease
	attempt := 0
	if c.child != nil {
		attempt = c.child.Attempt
	}
	waited := v.Epoch == 0 || v.missing || attempt != v.marked && c.child != nil
	if c.Directory == "" || !v.exists || !waited || c.child == nil && !c.means() || !c.every("beat", min(c.Times.Beat, c.Times.Unread/4), now) {
		return
	}
	c.once("sign of life", func(ctx context.Context) func() {
		err := c.board.Beat(ctx, c.life, c.clock())
		return func() {
			if errors.Is(err, checkpoint.ErrConflict) {
				err = nil // another slice gave one at the same moment, for the same lease
			}
			c.fault("sign of life", err)
			if err == nil {
				v.beaten, v.marked = now, attempt
			}
		}
	})
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
