package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/gke"
)

// JobAct is what happens to a Job of a cluster beside the record.
type JobAct string

// jobActs are what may happen, each with its words for people.
var jobActs = map[JobAct]struct {
	text string
	do   func(g *Gang, a Act)
}{
	"preempt": {"Google takes a machine of %s back", func(g *Gang, a Act) { g.lose(events.CausePreemption, a) }},
	"break":   {"a machine of %s breaks, and is replaced", func(g *Gang, a Act) { g.lose(events.CauseHostError, a) }},
	"silence": {"a machine of %s says nothing any more, and its Pod goes on", func(g *Gang, _ Act) {
		if m := g.machine(); m != "" {
			g.Cluster.Silence(m, false)
		}
	}},
	"hear": {"the machines of %s speak again", func(g *Gang, _ Act) {
		for _, m := range g.Cluster.Names() {
			g.Cluster.Hear(m)
		}
	}},
	"announce": {"GKE announces maintenance of a machine of %s", func(g *Gang, a Act) {
		if m := g.machine(); m != "" {
			g.Cluster.Announce(m, map[string]any{labelScheduled: fmt.Sprint(a.Starts.Unix())}, a.movable())
		}
	}},
	"maintain": {"the maintenance of a machine of %s begins", func(g *Gang, a Act) {
		if m := g.machine(); m != "" {
			g.Cluster.Announce(m, map[string]any{labelActive: "ONGOING"}, nil)
			g.lose(events.CauseMaintenance, a)
		}
	}},
	"fail": {"a Pod of %s fails", func(g *Gang, a Act) {
		if pods := g.Cluster.Pods(g); len(pods) > 0 {
			g.Cluster.Exit(g, pods[0], cmp.Or(a.Code, 1))
		}
	}},
	"evict": {"a Pod of %s is evicted", func(g *Gang, _ Act) {
		if pods := g.Cluster.Pods(g); len(pods) > 0 {
			g.Cluster.Evict(g, pods[0])
		}
	}},
	"queue":   {"Kueue suspends %s", func(g *Gang, _ Act) { g.Cluster.Queued(g.JobConfig, true) }},
	"unqueue": {"Kueue resumes %s", func(g *Gang, _ Act) { g.Cluster.Queued(g.JobConfig, false) }},
	"suspend": {"the owner suspends %s", func(g *Gang, a Act) { g.Cluster.Suspend(g.JobConfig, true, a.By) }},
	"resume":  {"the owner resumes %s", func(g *Gang, a Act) { g.Cluster.Suspend(g.JobConfig, false, a.By) }},
	"delete":  {"the owner deletes %s", func(g *Gang, a Act) { g.Cluster.Delete(g.JobConfig, a.By) }},
	"apply":   {"the owner applies the manifest of %s", func(g *Gang, a Act) { g.Cluster.world.Try(g.Cluster.Apply(g.JobConfig, a.By)) }},
}

// movable is the annotation of announced maintenance that can be moved; nil where nobody says that it can.
func (a Act) movable() map[string]any {
	if !a.Movable {
		return nil
	}
	return map[string]any{gke.AnnotationMaintenance: fmt.Sprintf(`{"type":"SCHEDULED","canReschedule":true,"maintenanceStatus":"PENDING","windowStartTime":%q,"windowEndTime":%q}`,
		a.Starts.UTC().Format(time.RFC3339), a.Starts.UTC().Add(4*time.Hour).Format(time.RFC3339))}
}

// byOwner are the acts that somebody has to have a name for.
var byOwner = []JobAct{"suspend", "resume", "delete", "apply"}

// lose has Google take the first machine of a Job.
func (g *Gang) lose(why events.Cause, a Act) {
	if m := g.machine(); m != "" {
		g.Cluster.Lose(m, why, cmp.Or(time.Duration(a.Comes), 4*time.Minute))
	}
}

// machine is the first machine of a Job; empty where it has none.
func (g *Gang) machine() string { return slices.Concat(g.Cluster.Machines(g), []string{""})[0] }

// jobFaults are what is wrong with what happens to a Job.
func (a Act) jobFaults(clusters []ClusterConfig) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("scenario: "+format, args...)) }
	there := slices.ContainsFunc(clusters, func(c ClusterConfig) bool {
		return slices.ContainsFunc(c.Jobs, func(j JobConfig) bool { return slices.Contains(j.Names(), a.Job) })
	})
	if !there {
		fault("an act names the Job %.40q, which is in no cluster", a.Job)
	}
	if _, known := jobActs[a.Does]; !known {
		var all []string
		for does := range maps.Keys(jobActs) {
			all = append(all, string(does))
		}
		slices.Sort(all)
		fault("an act does %.40q with a Job; it can be %s", a.Does, strings.Join(all, ", "))
	}
	if slices.Contains(byOwner, a.Does) && a.By == "" {
		fault("an act does %s with the Job %s, and by does not say who", a.Does, a.Job)
	}
	if a.Does == "announce" && a.Starts.IsZero() {
		fault("an act announces maintenance of the Job %s, and starts does not say when", a.Job)
	}
	return faults
}

// ActOnJob lets something happen to a Job.
func (w *World) ActOnJob(a Act) {
	for _, g := range w.Gangs() {
		if g.Slice != a.Job {
			continue
		}
		id := g.Workload()
		w.Tell(Line{Time: w.Clock.Now(), Kind: Acted, Workload: id, Incident: w.IncidentOf(id), Text: fmt.Sprintf(jobActs[a.Does].text, "Job "+a.Job), Simulated: true})
		g.Cluster.silent = a.Silent
		jobActs[a.Does].do(g, a)
		g.Cluster.silent = false
	}
}
