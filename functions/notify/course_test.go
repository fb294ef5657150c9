package notify_test

import (
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// night is the policy of these incidents.
var night = policy.Policy{Name: "spot", Switches: policy.Everything(), Hash: "h", ChipHourPrice: 1.2}

// played is a workload whose incident is played by evidence.
type played struct {
	w   incident.Workload
	p   policy.Policy
	now time.Time
	// asked is the newest request, life what a reading shows, and maker the incident that made it.
	asked events.Request
	life  events.Incarnation
	maker string
}

// begins is a Spot slice that trains, some hours before the desk opens.
func begins(workload string) *played {
	p := &played{w: incident.New("demo", workload, "cloud-tpu"), p: night, now: fleettest.Start.Add(-3 * time.Hour)}
	p.life = events.Incarnation{Zone: "us-west4-a", ID: "1", Created: p.now.Add(-time.Hour)}
	p.reads(evidence.Ready, "READY")
	p.steps(48190)
	return p
}

func (p *played) origin() evidence.Origin {
	return evidence.Origin{ID: p.now.String(), Time: p.now, Rank: events.RankReading}
}

// learns takes in evidence a minute later, and returns the update for people.
func (p *played) learns(e func() evidence.Evidence) (u events.IncidentUpdated) {
	p.now = p.now.Add(time.Minute)
	before := p.w
	var sent []events.Event
	p.w, sent, _ = incident.Advance(p.p, p.w, e(), p.now)
	for _, s := range sent {
		if r, asks := s.(interface{ Header() events.Request }); asks {
			p.asked = r.Header()
		}
	}
	for _, u = range view.Updates(before.Shown(time.Time{}), p.w.Shown(time.Time{})) {
		documents.keep(u, p.w)
	}
	return u
}

func (p *played) passes() (u events.IncidentUpdated) {
	return p.learns(func() evidence.Evidence { return evidence.Ticked{Origin: p.origin()} })
}

// reads has a reading show the slice.
func (p *played) reads(c evidence.Condition, state string) events.IncidentUpdated {
	return p.learns(func() evidence.Evidence {
		return evidence.Read{
			Origin: p.origin(), Slice: p.w.Name, Zone: p.life.Zone, Condition: c, State: state, Incarnation: p.life, Incident: p.maker,
			Facts: evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "spec1", Label: "spot"},
		}
	})
}

// calls carries out what is asked for.
func (p *played) calls() {
	r := p.asked
	p.learns(func() evidence.Evidence {
		return evidence.Intended{Origin: p.origin(), Request: r, RequestID: "a call"}
	})
	p.learns(func() evidence.Evidence { return evidence.Answered{Origin: p.origin(), Request: r} })
	if r.Action == events.ActionCreate {
		p.maker, p.life.ID, p.life.Created = r.Incident, "2", p.now
	}
}

// steps is a line of the crew about its progress.
func (p *played) steps(step int64) events.IncidentUpdated {
	return p.learns(func() evidence.Evidence {
		return evidence.Reported{
			Origin: evidence.Origin{ID: "a line", Time: p.now, Rank: events.RankUser}, Slice: p.w.Name,
			Report: events.CrewReport{
				Schema: 1, Report: events.ReportProgress, Zone: "us-west4-a", Node: p.w.Name, Hostname: "t1v-n-3f2a9c0" + p.life.ID + "-w-0",
				Attempt: 1, Step: step,
			},
		}
	})
}

// struck is an incident that looks at the API first, and is not told yet.
func struck(workload string) *played {
	p := begins(workload)
	p.learns(func() evidence.Evidence {
		return evidence.Interrupted{
			Origin: evidence.Origin{ID: "entry", Time: p.now, Rank: events.RankAudit}, Slice: workload, Incarnation: p.life,
			Cause: events.CausePreemption, Text: "worker 2 was preempted",
		}
	})
	return p
}

// comesBack has the slice lost, deleted and created again, and returns the three updates of that.
func (p *played) comesBack() (steps []events.IncidentUpdated) {
	steps = append(steps, p.reads(evidence.Lost, "PREEMPTED"))
	p.calls()
	steps = append(steps, p.reads(evidence.Gone, "gone"))
	p.calls()
	return append(steps, p.reads(evidence.Ready, "READY"))
}

// course is how an incident of a workload goes, step by step: deleting, creating, resuming, resumed.
func course(workload string) []events.IncidentUpdated {
	p := struck(workload)
	return append(p.comesBack(), p.steps(48213))
}

// waits has minutes pass, for a day at most, until people are told something.
func (p *played) waits() (u events.IncidentUpdated) {
	for range 24 * 60 {
		if u = p.passes(); u.Incident != "" {
			break
		}
	}
	return u
}

// escalated is another end of such an incident: the training does not go on.
func escalated(workload string) events.IncidentUpdated {
	p := struck(workload)
	p.comesBack()
	return p.waits()
}

// approving is an incident whose slice may heal, and is then lost under a policy that asks.
func approving(workload string) (heals, asks events.IncidentUpdated) {
	p := struck(workload)
	p.p.Switches.Recreate = policy.Ask
	return p.reads(evidence.Unhealthy, "UNHEALTHY"), p.reads(evidence.Lost, "PREEMPTED")
}

// kept are the documents that updates were told from.
type kept struct {
	mu  sync.Mutex
	all map[string]incident.Workload
}

var documents = kept{all: map[string]incident.Workload{}}

func (k *kept) keep(u events.IncidentUpdated, w incident.Workload) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[u.Workload+u.Incident+u.Step()] = w
}

// of is the document that an update was told from.
func (k *kept) of(t testing.TB, u events.IncidentUpdated) incident.Workload {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	w, known := k.all[u.Workload+u.Incident+u.Step()]
	if !known {
		t.Fatalf("%s of %s was never told from a document", u.Step(), u.Incident)
	}
	return w
}
