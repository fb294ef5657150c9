package show

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/view"
)

// isJob reports whether a workload trains in a cluster of GKE.
func isJob(w deployment.Workload) bool { return w.Provider == provider.GKE }

// kubectlDescribe is the command that shows a person a Job.
func kubectlDescribe(w deployment.Workload, s view.Slice) string {
	_, _, namespace := scopeOf(s.Zone)
	return incident.WordsOf(w.Provider).Describe + " " + s.Name + " --namespace " + namespace
}

// checkJob rehearses the death of a Job: what Kubernetes does by itself, what Pitstop says, and what a person has to do. It needs no
// access to the cluster.
func (d verbs) checkJob(ctx context.Context, l *ledger.Ledger, w deployment.Workload, s view.Slice, p policy.Policy, known bool) (*Rehearsal, error) {
	r := &Rehearsal{Workload: w.ID, Slice: s.Name, Findings: []finding{}}
	_, _, namespace := scopeOf(s.Zone)
	what, name := "job", s.Name
	if s.Group != "" {
		what, name = "jobset", s.Group
	}
	again := fmt.Sprintf("once it has failed: kubectl delete %s %s --namespace %s, then apply its manifest again", what, name, namespace)
	if len(p.Zones)+len(p.Places) > 0 {
		r.Add(Good, "places", "the policy's zones and places move no Job: its own selectors choose its machines, so it comes back with the same ones", "")
	}
	p = w.Document.Limited(p)
	switch p.Switches.Level(s.Replaces()) {
	case policy.Yes:
		r.Add(Good, "policy", fmt.Sprintf("once it has failed for good, Pitstop deletes %s %s and creates it again from its stored manifest", what, name), "")
	case policy.Ask:
		r.Add(Warn, "policy", fmt.Sprintf("once it has failed for good, Pitstop asks a person before it replaces %s %s", what, name), "")
	case policy.No:
		r.Add(Stop, "policy", w.Document.Forbids(s.Replaces(), policy.No, p)+": Pitstop says what happens, and what it would do", again)
	}
	if !known {
		r.Add(Warn, "policy", "the ledger does not say yet what the deployment allows", "wait for patrol's next sweep, within 15 minutes")
	}
	r.Would = w.Document.IfLost(p, s.Name, d.Now())
	for _, c := range w.Document.IfRead(p, s.Name, evidence.Lost, d.Now()).Calls {
		r.Calls = append(r.Calls, "would be "+c.String())
	}
	r.spending(w.Document.Spending(p, d.Now()))
	pause, err := l.Pause(ctx)
	if err != nil {
		return nil, err
	}
	r.stands(w, pause, d.Now())
	all, err := d.Workloads(ctx, l, nil)
	if err != nil {
		return nil, err
	}
	r.labels(w, all)
	r.AddSharedDirectories(w, all)
	spec, err := l.Spec(ctx, s.Spec)
	switch {
	case errors.Is(err, ledger.ErrNotFound) || s.Spec == "":
		r.Add(Stop, "manifest", "patrol has not stored the manifest of "+name+" yet", "keep the file that you apply")
	case err != nil:
		return nil, err
	default:
		r.manifest(name, spec, p.Switches.Level(s.Replaces()) == policy.Yes)
	}
	r.maintained(p, w.Document.StaysAway(p, name))
	if w.Directory == "" {
		r.Add(Warn, "directory", "the annotation "+events.MetadataCheckpointDir+" is missing, so Pitstop cannot see what is saved",
			fmt.Sprintf("kubectl annotate %s %s --namespace %s %s=gs://BUCKET/PATH", what, name, namespace, events.MetadataCheckpointDir))
	}
	return r, d.saves(ctx, l, r, w, p.ChipHourPrice)
}

// maintained says when announced maintenance of its machines begins. Away is why it would not come back from one that begins early.
func (r *Rehearsal) maintained(p policy.Policy, away string) {
	const begins = "announced maintenance that can be moved begins right after a verified save, by a label on the machines"
	const window = "announced maintenance comes in its window"
	switch level := min(p.Switches.Level(policy.EarlyMaintenance), p.Switches.Level(policy.RequestCheckpoint)); {
	case level == policy.No:
		r.Add(Good, "maintenance", window, "")
	case away != "":
		r.Add(Good, "maintenance", window+": "+away, "")
	case level == policy.Ask:
		r.Add(Good, "maintenance", begins+", once a person has approved it", "")
	default:
		r.Add(Good, "maintenance", begins, "")
	}
}

// manifest tests what brings the training back by itself, and whether it tells of its progress. Returns says that Pitstop brings a failed
// Job back.
func (r *Rehearsal) manifest(name string, spec []byte, returns bool) {
	once := Stop // what fails with its first failure stays failed
	if returns {
		once = Warn
	}
	m, err := gke.ReadManifest(spec)
	switch {
	case err != nil:
		r.Add(Stop, "manifest", name+": "+cli.OneLine(err), "keep the file that you apply")
		return
	case m.Kind == "JobSet" && m.Restarts > 0:
		r.Add(Good, "restarts", fmt.Sprintf("the JobSet begins again by itself, %d times", m.Restarts), "")
	case m.Kind == "JobSet":
		r.Add(once, "restarts", "the JobSet fails with its first failure", "set failurePolicy.maxRestarts")
	case m.BearsLoss && m.Retries == 0:
		r.Add(Warn, "restarts", "the Job makes only the Pod anew that its machine took along, and the others run on", "use a JobSet with failurePolicy.maxRestarts: it restarts the whole gang")
	case m.Retries > 0:
		r.Add(Warn, "restarts", fmt.Sprintf("the Job bears %d failures, each of one Pod; it restarts no gang", m.Retries), "use a JobSet with failurePolicy.maxRestarts for several Pods")
	default:
		r.Add(once, "restarts", "the Job fails with its first failure", "use a JobSet with failurePolicy.maxRestarts")
	}
	if m.Crew {
		r.Add(Good, "start", name+": its manifest starts pitcrew", "")
		return
	}
	r.Add(Warn, "start", name+" runs without pitcrew: it does not save on request, and Pitstop sees no steps of it", "start training with pitcrew run -- ...")
}

// scopeOf are the parts of LOCATION/CLUSTER/NAMESPACE.
func scopeOf(zone string) (location, cluster, namespace string) {
	location, rest, _ := strings.Cut(zone, "/")
	cluster, namespace, _ = strings.Cut(rest, "/")
	return location, cluster, namespace
}
