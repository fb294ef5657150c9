package patrol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

// Provider is the part of a provider that patrol reads in addition to slices.
type Provider interface {
	Zones(ctx context.Context, project string) ([]string, error)
	Operations(ctx context.Context, project, zone string, names ...string) ([]provider.Operation, error)
	provider.Janitor
}

// AuditLog answers who ended a slice that is gone. Entries makes one call; whole says that no further entries exist.
type AuditLog interface {
	Entries(ctx context.Context, q cloudlog.Query) (entries [][]byte, whole bool, err error)
}

// Queues tells what waits for Pitstop's functions.
type Queues interface {
	Queues(ctx context.Context, now time.Time) ([]view.Queue, error)
}

// Deps are the function's dependencies.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	Audit    AuditLog
	// Publisher carries notices to the function maintenance.
	Publisher ledger.Publisher
	// Canary writes the entry that must come back; nil writes none.
	Canary Canary
	// Queues tells what waits for the functions; nil reads none.
	Queues  Queues
	Project string
	// Accounts are those that the deployment knows by name.
	Accounts events.Accounts
	// Settings is the deployment's configuration, logged for its operator; nil logs none.
	Settings *ledger.Settings
	// Sleep waits while Pitstop's own operations run.
	Sleep func(ctx context.Context, d time.Duration) error
}

const (
	// staleAfter is the age from which a tick is acknowledged without work, because the next one is on its way.
	staleAfter = 2 * time.Minute
	// sweepEvery is how often all zones are listed and all workloads read. Other ticks list only the zones with known slices.
	sweepEvery = 15 * time.Minute
	// pollEvery and pollFor say how often and how long a tick follows Pitstop's own operations.
	pollEvery = 5 * time.Second
	pollFor   = 50 * time.Second
	// hostReads bounds the guest attribute reads of a tick.
	hostReads = 60
	// machineMaps bounds the machines of GKE that a tick maps to their Jobs. Each costs a read and a write.
	machineMaps = 300
)

// New returns the function, given the dependencies for each watched project.
func New(watched ...Deps) trigger.Handle { return trigger.Chain(decode, newHandler(watched).tick) }

// patrol remembers the last reading between two ticks, so that only changes go to the ledger. The memory only saves work: a
// new instance begins without it, and every sweep refreshes it. One instance runs one tick at a time.
type patrol struct {
	Deps
	ticking sync.Mutex // guards the fields below

	zones map[string]*zone
	swept time.Time
	on    map[place]ledger.Machines // those that the ledger has, as far as they are known; a sweep forgets none
	waits map[string]string         // why it is not known in what the Jobs of a cluster wait, as people were told
	// unswept is why the last sweep could not read what is left over in a cluster.
	unswept map[string]string
}

func decode(ce cloudevents.Event) (time.Time, error) {
	if ce.Type() != trigger.TypeMessage {
		return time.Time{}, fault.Ignored(reason.CodeNotMine, "event type %s is not a tick", ce.Type())
	}
	return ce.Time(), nil
}

// tick reads the true state from the API, once a minute. A reading or a write that fails does not stop the others. The next
// tick does the rest, so a tick is never delivered again.
func (p *patrol) tick(ctx context.Context, at time.Time) error {
	start := p.Fleet.Now()
	if !at.IsZero() && start.Sub(at) > staleAfter {
		return fault.Ignored(reason.CodeOldTick, "the tick of %s is too old", at.UTC().Format(time.RFC3339))
	}
	if !p.ticking.TryLock() {
		return fault.Ignored(reason.CodeTicking, "another tick is still running")
	}
	defer p.ticking.Unlock()
	held := &ledger.Held{}
	t := &round{
		patrol: p, Fleet: p.Fleet.Holding(held), held: held, isDue: map[string]bool{}, hosts: hostReads, machines: machineMaps, again: map[string]map[string]bool{},
		unread: map[string]bool{},
	}
	if start.Sub(p.swept) >= sweepEvery && t.try("sweep", t.sweep(ctx)) {
		p.swept, t.sweeping = start, true
		t.try("canary", t.canary(ctx))
		if t.Settings != nil {
			t.try("settings", t.Fleet.Ledger.SaveSettings(ctx, *t.Settings))
		}
	}
	t.try("due workloads", t.collect(ctx))
	names := t.zoneNames() // a zone without slices is forgotten once it is listed
	t.left = ledger.Sweep{At: start, Found: map[string][]provider.Leftover{}, Zones: names}
	for _, name := range names {
		if t.try("zone "+name, t.list(ctx, name, nil)) {
			t.listed++
		} else {
			t.missed(name)
		}
	}
	for _, name := range t.zoneNames() {
		t.try("audit log of "+name, t.askLog(ctx, name))
	}
	t.lookAgain(ctx)
	for _, id := range t.due {
		_, err := t.Fleet.Advancer.Advance(ctx, id, evidence.Ticked{Origin: evidence.Origin{Rank: events.RankReading}, Unread: t.unread[id]})
		t.try("workload "+id, err)
	}
	t.try("parked entries", t.unpark(ctx))
	t.lookAgain(ctx)
	t.followOperations(ctx, start)
	t.leftovers(ctx)
	t.try("pulse", t.pulse(ctx))
	// Patrol is missed by this line: an answer to Pub/Sub proves nothing, because what is ignored is acknowledged too.
	line := t.Fleet.Log
	if t.counted {
		line = line.With("open", t.open)
	}
	line.InfoContext(ctx, "tick done", "project", t.Project, "zones", t.listed, "workloads", len(t.due), "faults", len(t.faults),
		"seconds", t.Fleet.Now().Sub(start).Seconds())
	// The next tick repeats the failed work; this one is logged and acknowledged.
	return fault.Permanent(errors.Join(t.faults...))
}

// pulse writes down that the tick is done, what it could not do, and what waits for the functions.
func (t *round) pulse(ctx context.Context) error {
	var queues []view.Queue
	if t.Queues != nil {
		var err error
		queues, err = t.Queues.Queues(ctx, t.Fleet.Now())
		t.try("messages", err)
	}
	p := ledger.Pulse{Ticked: t.Fleet.Now(), Swept: t.swept, Queues: queues}
	for _, err := range t.faults {
		p.Faults = append(p.Faults, err.Error())
	}
	return t.Fleet.Ledger.SavePulse(ctx, t.Project, p)
}

// round is one running tick.
type round struct {
	*patrol
	// Fleet reads each document once: readings and ticks come again with the next tick. Evidence that comes only once goes
	// through take.
	Fleet *fleet.Fleet
	held  *ledger.Held
	// due are the workloads with work due, in order.
	due   []string
	isDue map[string]bool
	// again are the workloads with news that requires another look, by zone.
	again map[string]map[string]bool
	hosts int
	// machines is how many more machines of GKE this tick may map.
	machines int
	// silent are the workloads whose training may stand still, found by this tick's sweep.
	silent []string
	// listed is the number of zones that could be read, and unread are the workloads with slices in another one.
	listed int
	unread map[string]bool
	// open are how many incidents were open at the beginning of the tick; counted says that all workloads at which something is due could
	// be read, without which the number would be too low.
	open    int
	counted bool
	faults  []error
	// sweeping says that all zones are listed. Left has what is left over in those that could be read, and clusters are those of GKE.
	sweeping bool
	left     ledger.Sweep
	clusters []string
}

// try records a fault and reports whether there was none.
func (t *round) try(what string, err error) bool {
	if err == nil || fault.IsIgnored(err) {
		return true
	}
	t.faults = append(t.faults, fmt.Errorf("%s: %w", what, err))
	return false
}
