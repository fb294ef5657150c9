package patrol

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/ledger"
)

// projects patrols every watched project in one tick, all at once: each may wait for its operations.
type projects []*patrol

func newHandler(watched []Deps) (ps projects) {
	for _, d := range watched {
		ps = append(ps, &patrol{Deps: d, zones: map[string]*zone{}, on: map[place]ledger.Machines{}, waits: map[string]string{}, unswept: map[string]string{}})
	}
	return ps
}

func (ps projects) tick(ctx context.Context, at time.Time) error {
	if len(ps) == 1 {
		return ps[0].tick(ctx, at)
	}
	faults := make([]error, len(ps))
	var done sync.WaitGroup
	for i, p := range ps {
		done.Go(func() { faults[i] = p.tick(ctx, at) })
	}
	done.Wait()
	if faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil }); len(faults) == 0 {
		return nil
	}
	if i := slices.IndexFunc(faults, func(err error) bool { return !fault.IsIgnored(err) }); i < 0 {
		return faults[0] // an old tick is old in every project
	}
	return fault.Permanent(errors.Join(faults...))
}

// owns reports whether a workload belongs to this project.
func (p *patrol) owns(id string) bool { return strings.HasPrefix(id, p.Project+"/") }
