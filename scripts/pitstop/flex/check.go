package flex

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/container/v1"
)

// MaxPoolBytes bounds the description of a node pool.
const MaxPoolBytes = 4 << 20

// ReadPool reads a node pool as gcloud container node-pools describe --format=json prints it.
func ReadPool(raw []byte) (*container.NodePool, error) {
	if len(raw) > MaxPoolBytes {
		return nil, fmt.Errorf("it has more than the %d MiB that the description of a node pool may have", MaxPoolBytes>>20)
	}
	var pool container.NodePool
	var pointer *json.UnmarshalTypeError
	switch err := json.Unmarshal(raw, &pool); {
	case errors.As(err, &pointer) && pointer.Field == "" && pointer.Value == "array":
		return nil, errors.New("it is a list: name one pool, with gcloud container node-pools describe POOL --format=json")
	case err != nil:
		return nil, fmt.Errorf("it is no node pool in JSON (%w): gcloud container node-pools describe POOL --format=json prints one", err)
	case pool.Name == "" || pool.Config == nil || pool.Config.MachineType == "":
		return nil, errors.New("it is no node pool: it has no name or no config.machineType; gcloud container node-pools describe POOL --format=json prints one")
	}
	return &pool, nil
}

// Finding is one thing that is wrong with a pool.
type Finding struct {
	// Field is where the pool says it, Got what it says, and Want what flex-start needs.
	Field string `json:"field"`
	Got   string `json:"got"`
	Want  string `json:"want"`
	// Why is the consequence, and Fix the way out.
	Why string `json:"why"`
	Fix string `json:"fix"`
}

// Checked is what a check found. The slice is known only if the machine type and the topology are sound.
type Checked struct {
	Pool     string
	Slice    Slice
	Findings []Finding
}

// anew is the way out where GKE cannot change a pool.
const anew = "make the pool anew; pitstop flex plan prints the command"

// Check holds a pool against what flex-start needs. An empty topology is the one that the pool itself names. Its error says that the
// pool does not name one.
func Check(pool *container.NodePool, topology string) (Checked, error) {
	c := Checked{Pool: pool.Name}
	wrong := func(field, got, want, why, fix string) {
		c.Findings = append(c.Findings, Finding{field, got, want, why, fix})
	}
	own, policy := "", ""
	if pool.PlacementPolicy != nil {
		own, policy = pool.PlacementPolicy.TpuTopology, pool.PlacementPolicy.PolicyName
	}
	if topology == "" {
		topology = own
	}
	if topology == "" && policy != "" {
		return c, fmt.Errorf("a workload policy, %s, places the machines of %s, and the pool does not say its topology: name it, as in --topology 4x4x4",
			said(policy), said(pool.Name))
	}
	s, err := SliceOf(pool.Config.MachineType, topology)
	if err != nil {
		wrong("config.machineType", said(pool.Config.MachineType), "a machine type and a topology that fit", err.Error(), anew)
	} else {
		c.Slice = s
	}
	if !pool.Config.FlexStart {
		wrong("config.flexStart", "false", "true", "the pool has no flex-start machines, so Pods that select them wait for ever", anew)
	}
	if pool.Config.Spot || pool.Config.Preemptible {
		wrong("config.spot", "true", "false", "Google may take a Spot machine away at any moment, and a pool is either Spot or flex-start", anew)
	}
	affinity := ""
	if r := pool.Config.ReservationAffinity; r != nil {
		affinity = r.ConsumeReservationType
	}
	if affinity != "NO_RESERVATION" {
		wrong("config.reservationAffinity", said(affinity), "NO_RESERVATION", "flex-start machines come from no reservation", anew)
	}
	if q := pool.QueuedProvisioning; q != nil && q.Enabled {
		wrong("queuedProvisioning.enabled", "true", "false", "a pool with queued provisioning grows for ProvisioningRequests alone, and a plain Job waits for ever",
			"make the pool without --enable-queued-provisioning, or train through Kueue")
	}
	if err == nil {
		c.placed(pool, own, policy, topology, wrong)
		c.scaled(pool, wrong)
	}
	return c, nil
}

// updates is the command that changes a pool. Where the pool does not say its cluster, a person has to.
func updates(pool *container.NodePool, flags string) string {
	cluster, location := "CLUSTER", "LOCATION"
	parts := strings.Split(pool.SelfLink, "/")
	for i, p := range parts[:len(parts)-1] {
		switch next := parts[i+1]; {
		case !nameForm.MatchString(next):
		case p == "clusters":
			cluster = next
		case p == "locations" || p == "zones":
			location = next
		}
	}
	name := pool.Name
	if !nameForm.MatchString(name) {
		name = "POOL"
	}
	return fmt.Sprintf("gcloud container node-pools update %s --cluster=%s --location=%s %s", name, cluster, location, flags)
}

// placed checks what keeps the machines of a slice together.
func (c *Checked) placed(pool *container.NodePool, own, policy, topology string, wrong func(field, got, want, why, fix string)) {
	s := c.Slice
	switch {
	case !s.Several() && own != "":
		wrong("placementPolicy.tpuTopology", own, "none", "the topology is for slices of several machines", anew)
	case s.Several() && s.Machine.workloadPolicy && policy == "":
		wrong("placementPolicy.policyName", "none", "a workload policy with topology "+s.Topology, "without it the machines make no slice", anew)
	case s.Several() && !s.Machine.workloadPolicy && own != topology:
		wrong("placementPolicy.tpuTopology", said(own), topology, "without it the machines make no slice of this topology", anew)
	}
	repairs := pool.Management != nil && pool.Management.AutoRepair
	if s.Several() && repairs {
		wrong("management.autoRepair", "true", "false", "the machines of a slice come and go together, through the autoscaler, and not one by one through repair",
			updates(pool, "--no-enable-autorepair"))
	}
}

// scaled checks from how many machines to how many the pool goes.
func (c *Checked) scaled(pool *container.NodePool, wrong func(field, got, want, why, fix string)) {
	s, a := c.Slice, pool.Autoscaling
	bounds := updates(pool, fmt.Sprintf("--enable-autoscaling --min-nodes=0 --max-nodes=%d", s.Nodes))
	if a == nil || !a.Enabled {
		wrong("autoscaling.enabled", "false", "true", "nothing makes machines when a Pod waits for them", bounds)
		return
	}
	if pool.InitialNodeCount != 0 {
		wrong("initialNodeCount", fmt.Sprint(pool.InitialNodeCount), "0", "the pool asks for machines when it is made, and not when a Pod waits for them", anew)
	}
	if n := max(a.MinNodeCount, a.TotalMinNodeCount); n != 0 {
		wrong("autoscaling.minNodeCount", fmt.Sprint(n), "0", "the pool keeps machines that nobody uses, and you pay for them", bounds)
	}
	most := a.MaxNodeCount
	switch {
	case a.TotalMaxNodeCount != 0 && s.Several():
		wrong("autoscaling.totalMaxNodeCount", fmt.Sprint(a.TotalMaxNodeCount), fmt.Sprintf("maxNodeCount %d", s.Nodes),
			"GKE holds a slice of several machines against the maximum of each zone, and this is one of all zones", bounds)
	case a.TotalMaxNodeCount != 0: // any machine is a slice
	case s.Several() && most != int64(s.Nodes):
		wrong("autoscaling.maxNodeCount", fmt.Sprint(most), fmt.Sprint(s.Nodes),
			fmt.Sprintf("%d chips at %d a machine are %d machines in one zone, and a pool holds one slice", s.Chips, s.Machine.Chips, s.Nodes), bounds)
	case most < 1:
		wrong("autoscaling.maxNodeCount", fmt.Sprint(most), "at least 1", "the pool never has a machine", bounds)
	}
}

func said(value string) string {
	if value == "" {
		return "none"
	}
	return strings.ToValidUTF8(value, "?")
}

// Fields are the fields that are wrong.
func (c Checked) Fields() (fields []string) {
	for _, f := range c.Findings {
		fields = append(fields, f.Field)
	}
	slices.Sort(fields)
	return fields
}
