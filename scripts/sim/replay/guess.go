package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	tpuapi "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/topology"
)

// Given is what the user says beside the entries.
type Given struct {
	// World is the fleet, as far as it is listed. A YAML file says more of it: its project, capacity and quota, and what happens there.
	World world.Scenario
	// Babysitters are the principals of older scripts.
	Babysitters []string
	// Policy is the label of every slice.
	Policy string
	// Crew is what a crew does where the entries are silent.
	Crew world.Crew
	// Read is called with how many entries were read; nil is not.
	Read func(int)
}

// Guess infers the world of somebody's own entries: the TPUs that they name, and what no entry says. Each assumption is in the
// scenario that it returns. Of a million entries it takes a while: when the context ends before, it returns that error.
func Guess(ctx context.Context, records []logfile.Record, given Given) (world.Scenario, error) {
	g := guess{
		given: given, slices: map[string]*world.SliceConfig{}, highest: map[string]int{}, guessed: map[string]string{}, crews: map[string]crewLines{}, ended: map[string]bool{},
	}
	if p := given.World.Project; p != "" {
		g.projects = []string{p}
	}
	for _, c := range given.World.Fleet {
		g.add(c.Zone+"/"+c.Name, c)
	}
	// Entries that name a TPU come first: those that name workers alone may be about it.
	var unnamed []logfile.Record
	for i, r := range records {
		if err := ctx.Err(); err != nil {
			return world.Scenario{}, err
		}
		e, err := events.Read(r.Raw)
		switch {
		case err != nil || e.Ignored != "":
		case e.Subject.Node == "":
			unnamed = append(unnamed, r)
		default:
			g.see(e)
		}
		if given.Read != nil {
			given.Read(i + 1)
		}
	}
	for _, r := range unnamed {
		if err := ctx.Err(); err != nil {
			return world.Scenario{}, err
		}
		if e, err := events.Read(r.Raw); err == nil {
			g.see(e)
		}
	}
	return g.scenario()
}

type guess struct {
	given    Given
	projects []string
	slices   map[string]*world.SliceConfig
	order    []string
	highest  map[string]int
	// guessed is how a slice and its workers were brought together, where no entry says it.
	guessed map[string]string
	// ended are the slices whose creation is taken from their loss: their run duration was over then.
	ended map[string]bool
	// crews is what the crew of each slice said, first the time of the first entry.
	crews map[string]crewLines
	first time.Time
	// jobs says that entries are about Jobs of GKE.
	jobs bool
}

func (g *guess) add(key string, c world.SliceConfig) *world.SliceConfig {
	if s, ok := g.slices[key]; ok {
		return s
	}
	g.slices[key] = &c
	g.order = append(g.order, key)
	return &c
}

// see infers a slice, and its properties, from an entry.
func (g *guess) see(e events.Entry) {
	s := e.Subject
	if at := cmp.Or(e.Time, e.Received); !at.IsZero() && (g.first.IsZero() || at.Before(g.first)) {
		g.first = at
	}
	if s.Project != "" && !slices.Contains(g.projects, s.Project) {
		g.projects = append(g.projects, s.Project)
	}
	if _, _, _, job := s.Scope(); job {
		g.jobs = true
		return
	}
	var c *world.SliceConfig
	group, worker, ok := s.Group()
	switch {
	case s.Node != "":
		c = g.add(s.Zone+"/"+s.Node, world.SliceConfig{Name: s.Node, Zone: s.Zone})
		if e.Crew != nil {
			if group, _, ok := events.WorkerGroup(e.Crew.Hostname); ok {
				c.Workers = group
			}
			key := s.Zone + "/" + s.Node
			g.highest[key] = max(g.highest[key], e.Crew.Worker, e.Crew.Workers-1)
			if speaks(e.Crew) {
				g.crews[key] = append(g.crews[key], crewLine{cmp.Or(e.Time, e.Received), *e.Crew})
			}
		}
	case ok:
		key := g.keyOf(s.Zone, group)
		if _, known := g.slices[key]; !known {
			g.guessed[key] = "this name, because only its workers " + group + "-w-* are named"
		}
		c = g.add(key, world.SliceConfig{Name: strings.Replace(group, "t1v-n-", "tpu-", 1), Zone: s.Zone, Workers: group})
		g.highest[key] = max(g.highest[key], worker)
	default:
		return
	}
	switch {
	case c.RunsFor > 0: // a flex-start slice is not Spot, and is lost all the same when it ends as planned
		if e.Kind == events.KindLoss && c.Created.IsZero() && !e.Time.IsZero() {
			c.Created = e.Time.Add(-time.Duration(c.RunsFor))
			g.ended[c.Name] = true
		}
	case e.Kind == events.KindLoss && (e.Cause == events.CausePreemption || e.Cause == events.CauseTerminated):
		c.Spot = true
	case e.Kind == events.KindCall && deletes(e) && events.Accounts{Ours: g.given.Babysitters}.Party(e.Call) == events.PartyOurs:
		c.Spot = true // a script took down what was left of it
	}
	if c.Accelerator == "" {
		if _, err := topology.Parse(e.Call.Order.Accelerator); err == nil {
			c.Accelerator = e.Call.Order.Accelerator
		}
	}
}

// keyOf finds the slice that workers of this common name belong to: the one that names them, or the only one of a listing
// in that zone.
func (g *guess) keyOf(zone, group string) string {
	var nameless []string
	for _, k := range g.order {
		switch c := g.slices[k]; {
		case c.Zone != zone:
		case c.Workers == group:
			return k
		case c.Workers == "":
			nameless = append(nameless, k)
		}
	}
	if len(nameless) == 1 {
		g.slices[nameless[0]].Workers = group
		g.guessed[nameless[0]] = "the workers " + group + "-w-*, because it alone in its zone has none yet"
		return nameless[0]
	}
	return zone + "/" + group
}

// scenario adds assumptions to the slices that were seen.
func (g *guess) scenario() (world.Scenario, error) {
	s := g.given.World
	s.Title, s.Babysitters, s.Crew, s.Fleet = cmp.Or(s.Title, "entries of your own"), g.given.Babysitters, g.given.Crew, nil
	switch len(g.projects) {
	case 0:
		s.Project = "unknown"
	case 1:
		s.Project = g.projects[0]
	default:
		return s, fmt.Errorf("the entries are of %d projects (%s): replay one project at a time", len(g.projects), strings.Join(g.projects, ", "))
	}
	listed := s.Capacity != nil
	if !listed {
		s.Capacity = map[string]int{}
	}
	start := g.first.Add(-quiet).Truncate(time.Minute)
	for _, key := range g.order {
		c := *g.slices[key]
		assumed := g.completed(key, &c, start)
		if slices.ContainsFunc(s.Fleet, func(o world.SliceConfig) bool { return o.Name == c.Name && o.WorkloadName() == c.WorkloadName() }) {
			c.Workload = fleet.LabelValue(c.WorkloadName() + "." + c.Zone)
			assumed = append(assumed, "a workload of its own, "+c.Workload+", because another zone has a "+c.Name+" too")
		}
		if c.Directory == "" && !c.Legacy {
			c.Directory = "gs://assumed-checkpoints/" + cmp.Or(c.Workload, c.Name)
			assumed = append(assumed, "checkpoints in "+c.Directory)
		}
		c.Policy = g.given.Policy
		if len(assumed) > 0 {
			s.Assumed = append(s.Assumed, fmt.Sprintf("%s in %s has %s", c.Name, c.Zone, strings.Join(assumed, "; ")))
		}
		s.Fleet = append(s.Fleet, c)
		if !listed {
			s.Capacity[c.Zone]++
		}
	}
	if g.jobs {
		s.Assumed = append(s.Assumed, "no Job of GKE is played: Pitstop reads Jobs from their cluster, and the entries do not say in what state they are; pitstop report says what became of them")
	}
	if len(s.Fleet) > 0 {
		s.Assumed = append(s.Assumed,
			fmt.Sprintf("maintenance that no entry ends takes %s, a broken host %s", events.Span(s.Maintenance()), events.Span(hostRepairTakes)))
		if !listed {
			s.Assumed = append(s.Assumed, "a zone gives a slice again as soon as one is deleted there")
		}
	}
	return s, nil
}

// completed completes a slice, and returns its assumptions. A slice whose training a YAML file describes is left as it is there.
func (g *guess) completed(key string, c *world.SliceConfig, start time.Time) (assumed []string) {
	if how := g.guessed[key]; how != "" {
		assumed = append(assumed, how)
	}
	if g.ended[c.Name] {
		assumed = append(assumed, fmt.Sprintf("a creation %s before its loss, because it runs for that long", events.Span(time.Duration(c.RunsFor))))
	}
	if c.Accelerator == "" {
		c.Accelerator = acceleratorFor(g.highest[key] + 1)
		assumed = append(assumed, fmt.Sprintf("an accelerator %s, because worker %d is named", c.Accelerator, g.highest[key]))
		if c.Spot {
			assumed = append(assumed, "Spot, because it was lost for good")
		} else {
			assumed = append(assumed, "not Spot")
		}
	}
	lines := g.crews[key]
	switch {
	case c.Trainer != (world.TrainerConfig{}) || c.Crew != (world.CrewConfig{}):
		return assumed
	case c.Legacy:
		c.Crew.Absent = true
		return assumed
	}
	c.Follows, c.Trainer = true, lines.trainer(start)
	c.Quiet = len(lines) > 0 && lines[0].report.Report == events.ReportStarted
	c.Crew.Absent = g.given.Crew == world.CrewNone && len(lines) == 0
	if g.given.Crew == world.CrewFails {
		c.Trainer.Fails = 1
	}
	return append(assumed, lines.assumed(g.given.Crew))
}

// acceleratorFor is a common accelerator with at least that many workers.
func acceleratorFor(workers int) string {
	if workers <= 1 {
		return "v5litepod-8"
	}
	for n := 4; n <= 64; n *= 2 { // the sizes of v5e that have several workers
		if workers <= n {
			return fmt.Sprintf("v5litepod-%d", 4*n)
		}
	}
	return fmt.Sprintf("v5p-%d", 8*workers)
}

// Fleet reads a listing of TPUs, as gcloud writes it with --format=json: of gcloud compute tpus tpu-vm list, of gcloud compute tpus
// list for legacy TPU Nodes, or of gcloud compute tpus queued-resources list. The names tell nodes and queued resources apart. A
// queued resource brings the nodes that it has or had.
func Fleet(data []byte) ([]world.SliceConfig, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("not a JSON list of TPUs: %w", err)
	}
	var out []world.SliceConfig
	for i, raw := range items {
		var named struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(raw, &named); err != nil {
			return nil, fmt.Errorf("TPU %d: %w", i+1, err)
		}
		// projects/P/locations/Z/nodes/N
		parts := strings.Split(named.Name, "/")
		if len(parts) != 6 || parts[3] == "" || parts[5] == "" {
			parts = make([]string, 6)
		}
		var found []world.SliceConfig
		var err error
		switch {
		case parts[4] == "nodes" && bytes.Contains(raw, []byte(`"tensorflowVersion"`)):
			found, err = former(raw, world.SliceConfig{Name: parts[5], Zone: parts[3], Legacy: true})
		case parts[4] == "nodes":
			var n tpuapi.Node
			if err = json.Unmarshal(raw, &n); err == nil {
				found, err = listed(n, world.SliceConfig{Name: parts[5], Zone: parts[3]})
			}
		case parts[4] == "queuedResources":
			found, err = queued(raw, parts[3], parts[5])
		default:
			return nil, fmt.Errorf("TPU %d: the name %.60q is neither that of a node nor that of a queued resource", i+1, named.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("TPU %s: %w", parts[5], err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// former completes a slice from its legacy node.
func former(raw []byte, c world.SliceConfig) ([]world.SliceConfig, error) {
	// Both versions name these fields alike. Others differ: the service account of a legacy node is a string.
	var n struct {
		AcceleratorType  string                   `json:"acceleratorType"`
		CreateTime       string                   `json:"createTime"`
		Labels           map[string]string        `json:"labels"`
		SchedulingConfig *tpuapi.SchedulingConfig `json:"schedulingConfig"`
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return nil, err
	}
	return listed(tpuapi.Node{AcceleratorType: n.AcceleratorType, CreateTime: n.CreateTime, Labels: n.Labels, SchedulingConfig: n.SchedulingConfig}, c)
}

// listed completes a slice from its node.
func listed(n tpuapi.Node, c world.SliceConfig) ([]world.SliceConfig, error) {
	c.Accelerator, c.ID, c.Directory, c.Workload = n.AcceleratorType, n.Id, n.Metadata[events.MetadataCheckpointDir], n.Labels[events.LabelWorkload]
	c.Policy = n.Labels[events.LabelPolicy]
	if n.SchedulingConfig != nil {
		c.Spot = c.Spot || n.SchedulingConfig.Spot || n.SchedulingConfig.Preemptible
	}
	if n.QueuedResource != "" {
		c.QueuedResource = path.Base(n.QueuedResource)
	}
	if at, err := events.ParseTime(n.CreateTime); err == nil {
		c.Created = at
	}
	if s := n.SchedulingConfig; s != nil && !c.Spot && !c.Legacy {
		if s.ProvisioningModel == flexStart && c.RunsFor == 0 {
			c.RunsFor = world.LongestRun
		}
		if end, err := events.ParseTime(s.TerminationTimestamp); err == nil && !c.Created.IsZero() {
			c.RunsFor = runsFor(end.Sub(c.Created))
		}
	}
	if _, err := topology.Parse(c.Accelerator); err != nil {
		return nil, err
	}
	return []world.SliceConfig{c}, nil
}

const flexStart = "FLEX_START"

// runsFor is a run duration that a scenario takes: what is not possible is none.
func runsFor(d time.Duration) world.Duration {
	if d <= 0 || d > time.Duration(world.LongestRun) {
		return 0
	}
	return world.Duration(d)
}

// maxQueued bounds the nodes of one queued resource.
const maxQueued = 1024

// queued reads the nodes of a queued resource. One that still waits, or that failed, never had any.
func queued(raw []byte, zone, name string) ([]world.SliceConfig, error) {
	type many struct {
		NodeCount    int    `json:"nodeCount"`
		NodeIDPrefix string `json:"nodeIdPrefix"`
	}
	var q struct {
		State struct {
			State string `json:"state"`
		} `json:"state"`
		Spot json.RawMessage `json:"spot"`
		// A flex-start queued resource names how long its nodes live.
		ProvisioningModel string              `json:"provisioningModel"`
		RunDuration       *tpuapi.RunDuration `json:"runDuration"`
		TPU               struct {
			NodeSpec []struct {
				NodeID           string      `json:"nodeId"`
				Node             tpuapi.Node `json:"node"`
				MultisliceParams many        `json:"multisliceParams"`
				MultiNodeParams  many        `json:"multiNodeParams"`
			} `json:"nodeSpec"`
		} `json:"tpu"`
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	switch q.State.State {
	case "CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING", "FAILED":
		return nil, nil
	}
	isSpot, runs := len(q.Spot) > 0 && string(q.Spot) != "null", world.Duration(0)
	if q.ProvisioningModel == flexStart {
		runs = world.LongestRun
	}
	if q.RunDuration != nil && !isSpot {
		if d, err := time.ParseDuration(q.RunDuration.MaxRunDuration); err == nil {
			runs = cmp.Or(runsFor(d), runs)
		}
	}
	var out []world.SliceConfig
	for _, spec := range q.TPU.NodeSpec {
		names := []string{spec.NodeID}
		if spec.NodeID == "" {
			m := spec.MultisliceParams
			if m.NodeCount == 0 {
				m = spec.MultiNodeParams
			}
			names = nil
			for i := range min(m.NodeCount, maxQueued-len(out)) {
				names = append(names, fmt.Sprintf("%s-%d", cmp.Or(m.NodeIDPrefix, name), i))
			}
		}
		for _, n := range names {
			found, err := listed(spec.Node, world.SliceConfig{Name: n, Zone: zone, QueuedResource: name, Spot: isSpot, RunsFor: runs})
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// Fleets puts listings together. Where a node and its queued resource are both listed, what the node says counts.
func Fleets(listings ...[]world.SliceConfig) []world.SliceConfig {
	type key struct{ zone, name string }
	place := map[key]int{}
	var out []world.SliceConfig
	for _, l := range listings {
		for _, c := range l {
			k := key{c.Zone, c.Name}
			i, known := place[k]
			switch {
			case !known:
				place[k] = len(out)
				out = append(out, c)
			case out[i].ID == 0 && c.ID != 0: // the earlier one was of the queued resource
				c.Spot = c.Spot || out[i].Spot
				c.QueuedResource = cmp.Or(c.QueuedResource, out[i].QueuedResource)
				c.RunsFor = cmp.Or(c.RunsFor, out[i].RunsFor)
				out[i] = c
			case c.ID == 0:
				out[i].Spot = out[i].Spot || c.Spot
				out[i].QueuedResource = cmp.Or(out[i].QueuedResource, c.QueuedResource)
				out[i].RunsFor = cmp.Or(out[i].RunsFor, c.RunsFor)
			}
		}
	}
	for i := range out {
		if out[i].Spot {
			out[i].RunsFor = 0 // one listing says so, and the other does not: the capacity can be taken back
		}
	}
	return out
}
