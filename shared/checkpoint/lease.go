package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// LeaseName is the object, next to the checkpoints, that says where training may run.
const LeaseName = events.LeaseObject

// CrewName is the folder, next to the checkpoints, in which crews leave messages for each other.
const CrewName = "pitstop-crew"

// CrewKeyName is the object in CrewName with the key that protects the crews' messages. Files lets only its owner read it.
const CrewKeyName = "key.json"

// The reasons why a lease is not read or not written; the error says more.
var (
	// ErrStale says that the stored lease is newer than the one to write, or that another one of the same epoch and attempt
	// came first. Trying again does not help.
	ErrStale = errors.New("a newer lease is in place")
	// ErrOvertaken says that another writer has replaced the lease meanwhile.
	ErrOvertaken = errors.New("another lease was written meanwhile")
	// ErrForeign says that the stored lease belongs to another workload. Either two workloads share the directory, or the other
	// has ended and a person must remove its lease.
	ErrForeign = errors.New("the lease in place belongs to another workload")
	// ErrMalformed says that an object's content does not fit its name.
	ErrMalformed = errors.New("malformed")
	// ErrBeyondBelief says that the stored lease has a number that no release of Pitstop can have reached. Every later lease
	// would be older, so it stays until a person allows its replacement: OverruleLease.
	ErrBeyondBelief = errors.New("beyond belief")
)

// The greatest plausible numbers of a lease. An epoch that rises every second gets there in 31 years. Attempts leave room
// above events.MaxAttempt, because Pitstop names the one after the last that a crew reported.
const (
	MaxSchema       = 1000
	MaxLeaseEpoch   = 1_000_000_000
	MaxLeaseAttempt = 2 * events.MaxAttempt
)

// Lease names, for one workload, the incarnation of each slice in which training may run, and the attempt that may run
// there. A crew that the lease does not name ends its training, so two attempts never write into one checkpoint directory.
type Lease struct {
	Schema   int    `json:"schema"`
	Workload string `json:"workload"`
	// Incident is the incident that wrote the lease; empty for a crew's own lease.
	Incident string `json:"incident,omitzero"`
	// Epoch is the workload's epoch at the time. A crew without Pitstop writes 0.
	Epoch int64 `json:"epoch"`
	// Attempt is the training attempt, from 1.
	Attempt int `json:"attempt"`
	// Admitted are the incarnations, one per slice. A slice that is not listed is not admitted; an empty list ends
	// all training.
	Admitted []events.Admission `json:"admitted"`
	// Written is when the lease was first written, by the writer's clock, and By is the writer.
	Written time.Time `json:"written"`
	By      string    `json:"by"`
}

// Admits reports whether training may run as this attempt on a slice in this incarnation. The provider's ID decides if both
// sides know it, else the creation time, else the common part of the workers' host names. A crew that has not started yet
// takes its attempt from the lease and asks with attempt 0.
func (l Lease) Admits(slice string, inc events.Incarnation, workersPrefix string, attempt int) bool {
	if attempt != 0 && attempt != l.Attempt {
		return false
	}
	for _, a := range l.Admitted {
		if a.Slice == slice {
			return sameLife(a, inc, workersPrefix)
		}
	}
	return false
}

func sameLife(a events.Admission, inc events.Incarnation, workers string) bool {
	if a.Incarnation.Zone != "" && inc.Zone != "" && a.Incarnation.Zone != inc.Zone {
		return false
	}
	switch {
	case a.Incarnation.ID != "" && inc.ID != "":
		return a.Incarnation.ID == inc.ID
	case !a.Incarnation.Created.IsZero() && !inc.Created.IsZero():
		return a.Incarnation.Created.Equal(inc.Created)
	}
	return workers != "" && a.Workers == workers
}

// Validate returns every fault in the lease, in one line.
func (l Lease) Validate() error {
	var faults []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	check(l.Schema >= 1, "schema %d: no release wrote that", l.Schema)
	check(l.Workload != "", "workload is missing")
	check(l.Epoch >= 0, "epoch %d: the first is 0", l.Epoch)
	check(l.Attempt > 0, "attempt %d: the first is 1", l.Attempt)
	check(!l.Written.IsZero(), "written is missing")
	seen := map[string]bool{}
	for _, a := range l.Admitted {
		known := a.Incarnation.Known() || a.Workers != ""
		check(a.Slice != "" && known, "admitted: slice %q has no incarnation", a.Slice)
		check(!seen[a.Slice], "admitted: slice %q is named twice", a.Slice)
		seen[a.Slice] = true
	}
	if len(faults) > 0 {
		return fmt.Errorf("lease: %s", strings.Join(faults, "; "))
	}
	return nil
}

// Foreign reports whether the lease surely belongs to another workload than this one, whose slices are those in ours. Functions
// and crews both ask it before they train by a lease, take it over or replace it: a foreign lease is left alone.
//
// The project always counts, because a TPU of another project may have the same name and zone, and its directory may be a
// copy. The name counts only where both sides are sure of it. Pitstop is, and so is a crew whose user named the workload, which
// is what certain says. Without that, a crew knows only its machine, which does not see its labels. So it names its own
// lease, of epoch 0, after the machine. Such a lease is not foreign if it names one of the slices in ours.
func (l Lease) Foreign(workload string, certain bool, ours ...events.Admission) bool {
	theirs, _, _ := strings.Cut(l.Workload, "/")
	project, _, _ := strings.Cut(workload, "/")
	switch {
	case l.Workload == "", l.Workload == workload:
		return false // without a name it is nobody's: the object is malformed
	case theirs != project:
		return true
	case !certain:
		return false
	}
	return l.Epoch > 0 || !slices.ContainsFunc(l.Admitted, func(a events.Admission) bool {
		return slices.ContainsFunc(ours, func(b events.Admission) bool {
			return a.Slice == b.Slice && a.Incarnation.Zone == b.Incarnation.Zone
		})
	})
}

// same reports whether both leases have the same content, apart from writer and time.
func (l Lease) same(o Lease) bool {
	return l.Workload == o.Workload && l.Incident == o.Incident && l.Epoch == o.Epoch && l.Attempt == o.Attempt &&
		slices.EqualFunc(inOrder(l.Admitted), inOrder(o.Admitted), func(a, b events.Admission) bool {
			return a.Slice == b.Slice && a.Workers == b.Workers && a.Incarnation.Zone == b.Incarnation.Zone &&
				a.Incarnation.ID == b.Incarnation.ID && a.Incarnation.Created.Equal(b.Incarnation.Created)
		})
}

func inOrder(a []events.Admission) []events.Admission {
	return slices.SortedStableFunc(slices.Values(a), func(a, b events.Admission) int {
		return strings.Compare(a.Slice, b.Slice)
	})
}

// DecodeLease reads a lease. A lease of a newer release is events.ErrNewer, and one with impossibly high numbers is
// ErrBeyondBelief. Any other fault is ErrMalformed. With the last two errors comes the readable part of the lease.
func DecodeLease(data []byte) (Lease, error) {
	if err := checkSchema("lease", data); err != nil {
		return Lease{}, err
	}
	var l Lease
	if err := json.Unmarshal(data, &l); err != nil {
		return Lease{}, malformed("lease", err)
	}
	if err := cmp.Or(believe("epoch", l.Epoch, MaxLeaseEpoch), believe("attempt", l.Attempt, MaxLeaseAttempt)); err != nil {
		return l, err
	}
	if err := l.Validate(); err != nil {
		return l, malformed("lease", err)
	}
	return l, nil
}

// believe refuses a number in a lease that no counter can have reached.
func believe[T int | int64](what string, n, most T) error {
	if n <= most {
		return nil
	}
	return fmt.Errorf("%w: the lease names %s %d, and nothing gets above %d", ErrBeyondBelief, what, n, most)
}

func malformed(what string, err error) error {
	return fmt.Errorf("%w %s: %s", ErrMalformed, what, oneLine(strings.TrimPrefix(err.Error(), what+": ")))
}

// checkSchema comes first and refuses the object of a newer release, because it may not fit.
func checkSchema(what string, data []byte) error {
	var v struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return malformed(what, err)
	}
	if v.Schema > MaxSchema {
		return fmt.Errorf("%w: the %s names schema %d, and nothing gets above %d", ErrBeyondBelief, what, v.Schema, MaxSchema)
	}
	if v.Schema > events.Schema {
		return fmt.Errorf("%s has schema %d, but this release reads only up to %d: %w", what, v.Schema, events.Schema, events.ErrNewer)
	}
	return nil
}

// ReadLease reads the lease of a checkpoint directory and its generation. Without a lease the error is ErrNotExist.
func ReadLease(ctx context.Context, s Store, dir string) (Lease, int64, error) {
	uri := Join(dir, LeaseName)
	o, err := s.Get(ctx, uri)
	if err != nil {
		return Lease{}, 0, err
	}
	l, err := DecodeLease(o.Content)
	if err != nil {
		return Lease{}, o.Generation, fmt.Errorf("%s: %w", uri, err)
	}
	return l, o.Generation, nil
}

// WriteLease puts a lease in place. It never goes backwards: a stored lease of a newer epoch, or of a newer attempt in the
// same epoch, stays with ErrStale. Of two different leases of the same epoch and attempt, the first stays, also with
// ErrStale. A lease of another workload stays with ErrForeign, one of a newer release with events.ErrNewer, and an
// implausible one with ErrBeyondBelief. A malformed object is replaced, unless its readable part is newer. Of several
// writers at once exactly one wins.
//
// A crew that wrote its own lease named the workload after its node, because a machine does not see its labels. Pitstop's
// first lease for that slice replaces it, under the right name.
//
// Nil means that the stored lease has the content of l. Writing it again succeeds without a write, even after an answer was
// lost.
func WriteLease(ctx context.Context, s Store, dir string, l Lease) error {
	return writeLease(ctx, s, dir, l, nil, false)
}

// ReplaceLease is WriteLease over one generation of the lease, 0 for none. If another lease was written since, it stays with
// ErrOvertaken.
func ReplaceLease(ctx context.Context, s Store, dir string, l Lease, over int64) error {
	return writeLease(ctx, s, dir, l, &over, false)
}

// OverruleLease is ReplaceLease on a person's order: it also replaces a lease that is ErrBeyondBelief.
func OverruleLease(ctx context.Context, s Store, dir string, l Lease, over int64) error {
	return writeLease(ctx, s, dir, l, &over, true)
}

func writeLease(ctx context.Context, s Store, dir string, l Lease, over *int64, overrule bool) error {
	l.Schema = events.Schema
	l.Written = l.Written.UTC()
	l.Admitted = inOrder(l.Admitted)
	if err := l.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	content, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("lease: %s: %w", oneLine(err.Error()), ErrInvalid)
	}
	return change(ctx, s, Join(dir, LeaseName), func(present Object) ([]byte, error) {
		overtaken := over != nil && *over != present.Generation
		if present.Content == nil && !overtaken {
			return content, nil
		}
		p, err := DecodeLease(present.Content)
		switch {
		case errors.Is(err, events.ErrNewer):
			return nil, err
		case err == nil && p.same(l):
			return nil, nil
		case overtaken:
			return nil, ErrOvertaken
		case p.Workload != "" && p.Workload != l.Workload && (l.Epoch == 0 || p.Foreign(l.Workload, true, l.Admitted...)):
			return nil, fmt.Errorf("%w: %s holds it since %s, this is %s",
				ErrForeign, p.Workload, clock(p.Written), l.Workload)
		case errors.Is(err, ErrBeyondBelief):
			if overrule {
				return content, nil
			}
			return nil, err
		case p.Epoch > l.Epoch, p.Epoch == l.Epoch && p.Attempt > l.Attempt,
			err == nil && p.Epoch == l.Epoch && p.Attempt == l.Attempt:
			return nil, fmt.Errorf("%w: epoch %d attempt %d, this is epoch %d attempt %d",
				ErrStale, p.Epoch, p.Attempt, l.Epoch, l.Attempt)
		}
		return content, nil
	})
}

// maxTries bounds how often a writer that was overtaken decides again.
const maxTries = 8

// change replaces an object by the content that decide returns for the present one; a missing object has nil content. decide
// returns nil to leave the object. change replaces only the version that decide saw, and decides again if another writer was
// faster. After a lost answer it also decides again, so that a write that took effect is seen.
func change(ctx context.Context, s Store, uri string, decide func(present Object) ([]byte, error)) error {
	var failed error
	for range maxTries {
		o, err := s.Get(ctx, uri)
		if errors.Is(err, ErrNotExist) {
			o, err = Object{}, nil
		}
		if err != nil {
			return err
		}
		if o.Generation > 0 && o.Content == nil {
			o.Content = []byte{}
		}
		next, err := decide(o)
		if err != nil {
			return fmt.Errorf("%s: %w", uri, err)
		}
		if next == nil {
			return nil
		}
		if failed != nil && !errors.Is(failed, ErrConflict) {
			return failed
		}
		_, failed = s.Put(ctx, uri, next, o.Generation)
		if failed == nil || !errors.Is(failed, ErrConflict) && !errors.Is(failed, ErrTransient) {
			return failed
		}
	}
	return failed
}
