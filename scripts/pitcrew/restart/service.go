package restart

import (
	"fmt"
	"maps"
)

// ServiceRules are exactly the rules of Google's training service. An exit code of the training's own is permanent, except for
// those of an abort and a segmentation fault, which restart the whole job. So is a lack of memory. Other ends restart the worker.
// The service does not wait before a restart, and progress refills nothing. The service knows no save that ends an attempt: one that
// brought nothing new waits as it does by default, or it would begin again at once and without end.
//
// The service's rule for a lack of capacity has no number here: pitcrew orders no machines.
func ServiceRules() Policy {
	d := Defaults()
	return Policy{Service: true, Restarts: 5, Tries: 3, Internal: 2, First: d.First, Longest: d.Longest, Jitter: d.Jitter}
}

// codeInternal is the exit code of an attempt that pitcrew itself could not begin.
const codeInternal = 125

// used counts the restarts under the rules of the training service.
type used struct {
	// Workers are the restarts of each worker since the last try of the whole job.
	Workers  map[string]int `json:"workers,omitempty"`
	Tries    int            `json:"tries,omitzero"`
	Internal int            `json:"internal,omitzero"`
}

func (b Budget) used() used {
	if b.Service == nil {
		return used{}
	}
	return *b.Service
}

// service decides about an end that is no success by the rules of the training service.
func (b Budget) service(p Policy, end End) (Budget, Next) {
	e, u := end.Exit, b.used()
	again := func(u used, format string, a ...any) (Budget, Next) {
		b.Service = &u
		return b, Next{Restart: true, Reason: fmt.Sprintf(format, a...)}
	}
	job := func(why string) (Budget, Next) {
		if u.Tries >= p.Tries {
			return b, Next{Reason: fmt.Sprintf("all %d restarts of the whole job are spent, the last exit: %s", p.Tries, e.Describe())}
		}
		u.Tries++
		u.Workers = nil
		return again(u, "%s; try %d of %d of the whole job", why, u.Tries+1, p.Tries+1)
	}
	switch {
	case end.Class == OutOfMemory:
		return b, Next{Reason: "out of memory, which is permanent by --service-rules"}
	case end.Class == Crashed, end.Class == Failed && e.Signal == "" && (e.Code == 6 || e.Code == 11):
		return job(e.Describe() + ", possibly transient")
	case end.Class == Interrupted && e.Unknown && !end.Lost, end.Class == Failed && e.Signal == "" && e.Code == codeInternal:
		if u.Internal >= p.Internal {
			return b, Next{Reason: fmt.Sprintf("%d restarts after internal errors are spent, the last: %s", p.Internal, e.Describe())}
		}
		u.Internal++
		return again(u, "internal error: %s; restart %d of %d", e.Describe(), u.Internal, p.Internal)
	case end.Class == Interrupted:
		if n := u.Workers[end.Worker]; n < p.Restarts {
			u.Workers = maps.Clone(u.Workers)
			if u.Workers == nil {
				u.Workers = map[string]int{}
			}
			u.Workers[end.Worker] = n + 1
			return again(u, "interrupted: %s; restart %d of %d of this worker", e.Describe(), n+1, p.Restarts)
		}
		return job("interrupted: " + e.Describe())
	}
	return b, Next{Reason: e.Describe() + ", which is permanent by --service-rules"}
}
