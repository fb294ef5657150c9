package functions_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/functions/checkpoint"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/functions/maintenance"
	"pitstop.internal/functions/notify"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/trigger"
)

var update = flag.Bool("update", false, "write testdata/counts.txt again")

const (
	llama   = "llama"
	llamaID = fleettest.Project + "/" + llama
	workers = "t1v-n-0a1b2c3d"
)

// deployment is one instance of each function over one ledger, whose calls are counted.
type deployment struct {
	*fleettest.Bench
	handle map[string]trigger.Handle

	counting             bool
	reads, writes, calls map[string]int
	// standing is the update that says how the incident of a loss stands.
	standing cloudevents.Event
}

// Entries asks the audit log.
func (d *deployment) Entries(ctx context.Context, q cloudlog.Query) ([][]byte, bool, error) {
	if d.counting {
		d.calls["audit log"]++
	}
	return d.AuditLog.Entries(ctx, q)
}

// Name, Knows and Send are those of a target that hears of incidents.
func (*deployment) Name() string { return "target" }

func (*deployment) Knows() bool { return true }

func (d *deployment) Send(context.Context, notify.Message) (string, error) {
	if d.counting {
		d.calls["target"]++
	}
	return "", nil
}

// deployed is a deployment with a slice that trains, after the first tick.
func deployed(t testing.TB, c cloudtputest.NodeConfig) *deployment {
	t.Helper()
	d := &deployment{Bench: fleettest.New(t)}
	tap := d.Tapped()
	tap.Before = func(_ context.Context, c ledgertest.Call) error {
		switch {
		case !d.counting:
		case c.Write:
			d.writes[c.Collection]++
		default:
			d.reads[c.Collection]++
		}
		return nil
	}
	us, projects := []string{fleettest.Us}, []string{fleettest.Project}
	d.handle = map[string]trigger.Handle{
		"patrol": patrol.New(patrol.Deps{
			Fleet: d.Fleet, Provider: d.Cloud, Audit: d, Publisher: d.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: us}, Sleep: d.Sleep,
		}),
		"maintenance": maintenance.New(maintenance.Deps{Fleet: d.Fleet, Projects: projects}),
		"logevent":    logevent.New(logevent.Deps{Fleet: d.Fleet, Projects: projects, Accounts: events.Accounts{Ours: us}}),
		"checkpoint":  checkpoint.New(checkpoint.Deps{Fleet: d.Fleet, Provider: d.Cloud, Store: d.Store, Limits: ledger.DefaultLimits}),
		"recovery":    recovery.New(recovery.Deps{Fleet: d.Fleet, Provider: d.Cloud, Store: d.Store}),
		"notify":      notify.New(notify.Deps{Ledger: d.Ledger, Journal: ledger.NewJournal(tap.On(ledgertest.NewStrictStore().Open)), Targets: []notify.Target{d}, PerMinute: 60, Now: d.Clock.Now, Log: d.Fleet.Log}),
		"recreate":    recreate.New(recreate.Deps{Fleet: d.Fleet, Provider: d.Cloud, Buckets: d.Buckets, Limits: ledger.DefaultLimits}),
	}
	c.Group = workers
	w := d.Slice(c)
	_, err := d.Fleet.MapGroup(t.Context(), w, w.Slices[0], workers)
	d.Must(err)
	d.crew(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 1000, CheckpointStep: 1000})
	d.tick()
	d.Sender.Sent()
	return d
}

func spot(t *testing.T) *deployment {
	t.Helper()
	return deployed(t, cloudtputest.NodeConfig{Spot: true})
}

func reserved(t *testing.T) *deployment {
	t.Helper()
	return deployed(t, cloudtputest.NodeConfig{Labels: fleettest.Label("reserved")})
}

// deliver hands a message to a function, which must acknowledge it.
func (d *deployment) deliver(function string, e cloudevents.Event) {
	d.T.Helper()
	if got := d.Deliver(d.handle[function], e); got != fleettest.Handled && got != fleettest.Ignored {
		d.T.Errorf("%s: the message is %s", function, got)
	}
}

// tick is a minute of patrol.
func (d *deployment) tick() {
	d.T.Helper()
	d.Clock.Advance(time.Minute)
	d.deliver("patrol", fleettest.Message([]byte("{}"), d.Clock.Now()))
}

func (d *deployment) log(entry []byte) {
	d.T.Helper()
	d.deliver("logevent", fleettest.Message(entry, d.Clock.Now()))
}

// crew delivers a line of the crew's worker 0.
func (d *deployment) crew(r events.CrewReport) {
	d.T.Helper()
	r.Schema, r.Project, r.Zone, r.Node, r.Hostname = events.Schema, fleettest.Project, fleettest.Zone, llama, workers+"-w-0"
	d.log(trainingtest.CrewEntry(r, d.Clock.Now(), 1))
}

// preempted delivers Google's entry about a worker of a slice with such host names.
func (d *deployment) preempted(group string, worker int) {
	d.T.Helper()
	resource := fmt.Sprintf("zones/%s/instances/%s-w-%d", fleettest.Zone, group, worker)
	d.log(fleettest.SystemEvent("compute.instances.preempted", resource, d.Clock.Now(), nil))
}

// sent is the only event sent since the last time.
func (d *deployment) sent() cloudevents.Event {
	d.T.Helper()
	sent := d.Sender.Sent()
	if len(sent) != 1 {
		d.T.Fatalf("%d events were sent, want one: %v", len(sent), fleettest.Types(sent))
	}
	return fleettest.Event(sent[0])
}

// takes is the delivery of the event that was just sent.
func (d *deployment) takes(function string) func(*deployment) {
	d.T.Helper()
	e := d.sent()
	return func(d *deployment) { d.deliver(function, e) }
}

// update tells notify how the open incident stands.
func (d *deployment) update() {
	d.T.Helper()
	d.deliver("notify", d.standing)
}

// window is maintenance announced so late that a save is due at once.
var window = events.Notice{
	Status: events.NoticePending, CanReschedule: true,
	WindowStart: fleettest.Start.Add(15 * time.Minute), WindowEnd: fleettest.Start.Add(4 * time.Hour),
}

// announced is a reserved slice with announced maintenance, of which patrol has just sent the notice.
func announced(t *testing.T) *deployment {
	t.Helper()
	d := reserved(t)
	d.Must(d.API.Announce(fleettest.Zone, llama, window))
	d.tick()
	return d
}

// saving is the same after the notice: the request to save was sent.
func saving(t *testing.T) *deployment {
	t.Helper()
	d := announced(t)
	d.deliver("maintenance", d.sent())
	for range 5 {
		if d.Workload(llamaID).Incident == nil {
			d.tick()
		}
	}
	return d
}

// lost is a Spot slice whose loss patrol has just found: the request to delete it was sent.
func lost(t *testing.T) *deployment {
	t.Helper()
	d := spot(t)
	d.Must(d.API.Preempt(fleettest.Zone, llama))
	d.tick()
	w := d.Workload(llamaID)
	v := w.Shown(time.Time{})
	u, _ := v.Update(*v.Incident)
	d.standing = fleettest.Request(u)
	return d
}

// created is the same when it was deleted and created again: the request to admit it was sent.
func created(t *testing.T) *deployment {
	t.Helper()
	d := lost(t)
	d.deliver("recreate", d.sent())
	d.tick() // it follows the deletion to its end
	d.deliver("recreate", d.sent())
	for range 20 {
		d.tick()
		if w := d.Workload(llamaID); w.Slices[0].Condition == evidence.Ready {
			return d
		}
	}
	t.Fatal("the slice is not created")
	return d
}

// ready makes a deployment ready and returns what is counted.
type ready = func(t *testing.T) (*deployment, func(*deployment))

// then counts what happens after this has been done to a deployment.
func then(begin func(*testing.T) *deployment, happens func(*deployment), done ...func(*deployment)) ready {
	return func(t *testing.T) (*deployment, func(*deployment)) {
		t.Helper()
		d := begin(t)
		for _, do := range done {
			do(d)
		}
		return d, happens
	}
}

// taken counts the delivery of what was just sent.
func taken(begin func(*testing.T) *deployment, function string, done ...func(*deployment)) ready {
	return func(t *testing.T) (*deployment, func(*deployment)) {
		t.Helper()
		d, _ := then(begin, nil, done...)(t)
		return d, d.takes(function)
	}
}

func sweepIsDue(d *deployment) { d.Clock.Advance(15 * time.Minute) }

func preempt(d *deployment) { d.Must(d.API.Preempt(fleettest.Zone, llama)) }

// said is a line or an entry that comes.
func said(group string, worker int) func(*deployment) {
	return func(d *deployment) { d.preempted(group, worker) }
}

func trained(d *deployment) {
	d.crew(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 1100, CheckpointStep: 1100})
}

// recreates has recreate carry out what was sent; its deletion takes so long.
func recreates(takes time.Duration) func(*deployment) {
	return func(d *deployment) {
		d.API.Inject(cloudtputest.Fault{Method: "DeleteNode", Slow: takes})
		d.deliver("recreate", d.sent())
	}
}

const stranger = "t1v-n-ffffffff"

// counted are the kinds of events.
var counted = []struct {
	function, event string
	ready           ready
}{
	{"patrol", "a tick, nothing has changed", then(spot, (*deployment).tick)},
	{"patrol", "a tick over two zones, nothing has changed", then(spot, (*deployment).tick, func(d *deployment) {
		d.Slice(cloudtputest.NodeConfig{Zone: fleettest.OtherZone, Name: "other", Spot: true, Group: "t1v-n-11111111"})
	}, sweepIsDue, (*deployment).tick)},
	{"patrol", "a sweep, an order of two slices waits", then(spot, (*deployment).tick, func(d *deployment) {
		d.API.SetCapacity(fleettest.Zone, 0)
		nodes := []cloudtputest.NodeConfig{{Name: "queued-0", Spot: true}, {Name: "queued-1", Spot: true}}
		d.Must(d.API.AddQueuedResource(cloudtputest.QueuedConfig{
			Zone: fleettest.Zone, Name: "order", Spot: true, State: "WAITING_FOR_RESOURCES", Nodes: nodes,
		}))
		// The first sweep that knows the order keeps its values from expiring, once a day.
	}, (*deployment).tick, sweepIsDue, (*deployment).tick, sweepIsDue)},
	{"patrol", "a sweep, nothing has changed", then(spot, (*deployment).tick, sweepIsDue)},
	{"patrol", "a tick that introduces a slice", then(spot, (*deployment).tick, func(d *deployment) {
		_, err := d.API.AddNode(cloudtputest.NodeConfig{
			Zone: fleettest.Zone, Name: "other", Spot: true, Labels: fleettest.Label("spot"), Created: d.Clock.Now(),
		})
		d.Must(err)
	})},
	{"patrol", "a tick that sees a loss", then(spot, (*deployment).tick, preempt)},
	{"patrol", "a tick with one workload due, nothing follows", then(spot, (*deployment).tick, func(d *deployment) {
		d.Must(d.API.HostError(fleettest.Zone, llama, time.Hour))
		for n := 0; d.Workload(llamaID).Incident == nil; n++ {
			if n == 30 {
				d.T.Fatal("no incident was opened")
			}
			d.tick()
		}
	})},
	{"patrol", "a tick with a request that nobody has answered", then(lost, (*deployment).tick)},
	{"patrol", "a tick that follows a deletion for 50 s", then(lost, (*deployment).tick, recreates(time.Hour))},
	{"patrol", "a tick that follows a deletion to its end", then(lost, (*deployment).tick, recreates(72*time.Second-cloudtputest.DefaultTiming.Delete))},
	{"patrol", "a tick that sees announced maintenance", then(reserved, (*deployment).tick, func(d *deployment) {
		d.Must(d.API.Announce(fleettest.Zone, llama, window))
	})},
	{"patrol", "a tick with a parked entry, subject unknown", then(spot, (*deployment).tick, said(stranger, 0))},
	{"patrol", "a tick with a slice gone without a word", then(spot, (*deployment).tick, func(d *deployment) {
		d.Must(d.API.Vanish(fleettest.Zone, llama))
	}, (*deployment).tick)},
	{"maintenance", "a notice of patrol", taken(announced, "maintenance")},
	{"maintenance", "the same notice again", func(t *testing.T) (*deployment, func(*deployment)) {
		d := announced(t)
		again := d.takes("maintenance")
		again(d)
		return d, again
	}},
	{"logevent", "a loss", then(spot, said(workers, 0), preempt)},
	{"logevent", "the same loss, by another worker", then(spot, said(workers, 1), preempt, said(workers, 0))},
	{"logevent", "a loss of an unmapped worker", then(spot, said(stranger, 0))},
	{"logevent", "the same loss, by another unmapped worker", then(spot, said(stranger, 1), said(stranger, 0))},
	{"logevent", "a crew's progress", then(spot, trained)},
	{"logevent", "a crew's progress that changes nothing", then(spot, trained, trained)},
	{"checkpoint", "a request to save", taken(saving, "checkpoint")},
	{"checkpoint", "a request to verify", taken(saving, "checkpoint", func(d *deployment) {
		request := d.sent()
		save, err := events.DecodeCheckpointRequested(request.Data())
		d.Must(err)
		d.deliver("checkpoint", request)
		d.Clock.Advance(time.Minute)
		d.Storage.Put(fleettest.Bucket, "run/1200/data", []byte("weights"))
		d.Storage.Put(fleettest.Bucket, "run/1200/commit_success.txt", []byte("done"))
		d.crew(events.CrewReport{Report: events.ReportSaved, SaveID: save.SaveID, CheckpointStep: 1200})
	})},
	{"recreate", "a request to delete", taken(lost, "recreate")},
	{"recreate", "a request to create", taken(lost, "recreate", func(d *deployment) {
		d.deliver("recreate", d.sent())
		d.tick()
	})},
	{"recovery", "a request to admit", taken(created, "recovery", func(d *deployment) {
		d.Storage.Put(fleettest.Bucket, "run/"+events.LeaseObject, []byte(
			`{"schema":1,"workload":"demo/llama","epoch":0,"attempt":1,"admitted":[],"written":"2026-03-01T00:00:00Z","by":"crew"}`,
		))
	})},
	{"notify", "an update", then(lost, (*deployment).update)},
	{"notify", "the same update again", then(lost, (*deployment).update, (*deployment).update)},
	{"any", "a reading that changes nothing", func(t *testing.T) (*deployment, func(*deployment)) {
		d := spot(t)
		w := d.Workload(llamaID)
		return d, func(d *deployment) {
			_, err := d.Fleet.LookAt(t.Context(), w, fleet.Ref(w, w.Slices[0]))
			d.Must(err)
		}
	}},
}

// TestEachEventCostsWhatIsWritten counts the calls of the ledger, of the APIs and of topics for each kind of event, and holds
// them against testdata/counts.txt. A count that grows is a cost of every deployment; one that falls is written there with
// go test ./functions -run Costs -update.
func TestEachEventCostsWhatIsWritten(t *testing.T) {
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(rows, "function\tevent\treads\twrites\tcalls\tmessages") //nolint:errcheck // Flush tells
	for _, c := range counted {
		t.Run(c.function+", "+c.event, func(t *testing.T) {
			d, happens := c.ready(t)
			d.Calls()
			d.Outside()
			d.Sender.Sent()
			d.counting, d.reads, d.writes, d.calls = true, map[string]int{}, map[string]int{}, map[string]int{}
			happens(d)
			d.counting = false
			messages := tally(fleettest.Types(d.Sender.Sent()))
			row := []string{c.function, c.event, list(d.reads), list(d.writes), list(d.outside()), list(messages)}
			_, _ = fmt.Fprintln(rows, strings.Join(row, "\t")) //nolint:errcheck // likewise
		})
	}
	if err := rows.Flush(); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "counts.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(table.String(), "\n")); d != "" {
		t.Errorf("the events cost (-written +counted):\n%s", d)
	}
}

// outside counts the calls of the TPU API by method, and those of the bucket together.
func (d *deployment) outside() map[string]int {
	calls := tally(d.Calls())
	maps.Copy(calls, d.calls)
	for _, line := range d.Outside() {
		if strings.Contains(line, "storage.googleapis.com") {
			calls["bucket"]++
		}
	}
	return calls
}

// tally counts words by what stands before their first space.
func tally(words []string) map[string]int {
	n := map[string]int{}
	for _, w := range words {
		first, _, _ := strings.Cut(w, " ")
		n[first]++
	}
	return n
}

func list(n map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprint(n[what], " ", what))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
