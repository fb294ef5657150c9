package show

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/ledger"
)

// sight says whether Pitstop sees a project: what its patrol and its canary tell.
type sight struct {
	Project string `json:"project"`
	ledger.Pulse
	// Never says that patrol has never ticked, and Blind that its last tick is too old.
	Never bool `json:"never,omitzero"`
	Blind bool `json:"blind,omitzero"`
	// CanaryReturned is when the last canary came back; CanaryMissing says that the last one should be back, and is not.
	CanaryReturned time.Time `json:"canary_returned,omitzero"`
	CanaryMissing  bool      `json:"canary_missing,omitzero"`
}

// sights are those of the projects of these workloads, the ones first that Pitstop does not see.
func (d verbs) sights(ctx context.Context, l *ledger.Ledger, all []deployment.Workload) (found []sight, err error) {
	for _, w := range all {
		if slices.ContainsFunc(found, func(s sight) bool { return s.Project == w.Project }) {
			continue
		}
		s := sight{Project: w.Project}
		s.Pulse, err = l.Pulse(ctx, w.Project)
		if s.Never = errors.Is(err, ledger.ErrNotFound); err != nil && !s.Never {
			return nil, err
		}
		c, err := l.Canary(ctx, w.Project)
		if err != nil {
			return nil, err
		}
		s.Blind = s.Quiet(d.Now())
		s.CanaryReturned, s.CanaryMissing = c.Returned, c.Missing(d.Now())
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b sight) int { return a.Ticked.Compare(b.Ticked) })
	return found, nil
}

// printSights prints whether Pitstop sees, in a line for each project. Where it does not, that is said loudly, and what to do.
func printSights(p *terminal.Printer, all []sight, now time.Time) {
	for _, s := range all {
		of := ""
		if len(all) > 1 {
			of = s.Project + ": "
		}
		switch {
		case s.Never:
			terminal.Print(p.Out, p.Paint(terminal.Red, of+"BLIND: patrol has never ticked; Pitstop sees nothing")+", and what follows may be old; see the log of the function patrol, and Cloud Scheduler's job")
		case s.Blind:
			terminal.Print(p.Out, p.Paint(terminal.Red, of+"BLIND for "+events.Span(now.Sub(s.Ticked))+": patrol's last tick was at "+s.Ticked.UTC().Format(time.RFC3339))+
				"; what follows is as of then; see the log of the function patrol, and Cloud Scheduler's job")
		default:
			terminal.Print(p.Out, of+"patrol ticked "+events.Span(now.Sub(s.Ticked))+" ago"+canaryText(s, now))
		}
		if s.Failed > 0 {
			terminal.Print(p.Out, p.Paint(terminal.Yellow, fmt.Sprintf("%sits last tick could not do %s: ", of, terminal.Count(s.Failed, "thing")))+s.Faults[0])
		}
		if s.CanaryMissing {
			terminal.Print(p.Out, p.Paint(terminal.Red, of+"the last canary has not come back: log entries may not reach Pitstop")+"; pitstop canary finds the station at which it is lost")
		}
	}
}

// canaryText says when log entries last came through; empty where no canary ever came back.
func canaryText(s sight, now time.Time) string {
	if s.CanaryReturned.IsZero() || s.CanaryMissing {
		return ""
	}
	return ", and a canary came back " + events.Span(now.Sub(s.CanaryReturned)) + " ago"
}
