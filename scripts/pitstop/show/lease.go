package show

import (
	"context"
	"errors"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/view"
)

// AddSharedDirectories finds the workloads of the ledger whose checkpoint directory meets that of a workload: the lease and the save request in
// a directory are of one workload alone. A workload that has ended is left out; what it left there is found by reading it.
func (r *Rehearsal) AddSharedDirectories(w deployment.Workload, all []deployment.Workload) {
	const about = "directory"
	for _, o := range all {
		if o.ID == w.ID || isOver(o) || isOver(w) {
			continue
		}
		apart := "name another directory by " + events.MetadataCheckpointDir + " for " + w.Name + " or for " + o.ID
		switch checkpoint.Meet(w.Directory, o.Directory) {
		case checkpoint.Same:
			r.Add(Stop, about, o.ID+" saves in "+w.Directory+" too: one lease and one save request lie there, so Pitstop can serve only one of the two", apart)
		case checkpoint.Maybe:
			r.Add(Warn, about, o.ID+" saves in "+o.Directory+", which may be the same as "+w.Directory+
				": one lease and one save request lie there, so Pitstop could serve only one of the two", apart)
		case checkpoint.Inside:
			r.Add(Warn, about, w.Directory+" is inside "+o.Directory+", where "+o.ID+" saves: what is written here looks like an unfinished save of it, and who cleans up there deletes this", apart)
		case checkpoint.Around:
			r.Add(Warn, about, o.Directory+", where "+o.ID+" saves, is inside "+w.Directory+": what is written there looks like an unfinished save of "+w.Name+", and who cleans up here deletes that", apart)
		case checkpoint.Apart:
		}
	}
}

// isOver reports whether nothing of a workload trains any more.
func isOver(w deployment.Workload) bool {
	return w.Training.Finished || !slices.ContainsFunc(w.Slices, func(s view.Slice) bool { return !s.Released || s.Condition != evidence.Gone })
}

// lease tests whose lease is beside the checkpoints.
func (d verbs) lease(ctx context.Context, r *Rehearsal, w deployment.Workload) {
	const about = "lease"
	uri := checkpoint.Join(w.Directory, checkpoint.LeaseName)
	looking, end := google.OptionalQuestion(ctx)
	l, _, err := checkpoint.ReadLease(looking, d.Checkpoints, w.Directory)
	switch err = end(err); {
	case err == nil && l.Foreign(w.ID, true, fleet.Places(w.Document)...):
		r.Add(Stop, about, uri+" is that of "+l.Workload+": Pitstop and pitcrew leave it alone, so training would not be admitted",
			"give each workload a directory of its own, or delete this object if "+l.Workload+" has ended")
	case errors.Is(err, checkpoint.ErrNotExist) && w.Training.Attempt > 0 && !w.Training.Finished:
		r.Add(Warn, about, "there is no "+uri+", though a crew trains: "+checkpoint.Vanished, "the crew writes it again; look for the rule, or for who deletes it")
	case errors.Is(err, checkpoint.ErrMalformed):
		r.Add(Warn, about, cli.OneLine(err), "the crew that it named writes it again; look for who wrote this")
	}
}

// AddLifecycleRules finds a lifecycle rule of the bucket that deletes the lease: while it is gone, only who has read it knows who may train.
func (r *Rehearsal) AddLifecycleRules(w deployment.Workload, all []deployment.Directory) {
	uri := checkpoint.Join(w.Directory, checkpoint.LeaseName)
	for _, f := range all {
		if when := f.At.Deletes(uri); f.Holds == deployment.HoldsCheckpoints && when != "" {
			r.Add(Warn, "lifecycle", "a lifecycle rule of the bucket deletes "+uri+" "+when+", and a training may run for longer under one lease",
				"give the rule a matchesPrefix or matchesSuffix that leaves out "+checkpoint.LeaseName)
		}
	}
}
