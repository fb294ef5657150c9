package flex

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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
	// Notes are what a person should know of a pool that may be sound all the same.
	Notes []string
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
	const taken = "Google may take such a machine away at any moment, and a pool has either these or flex-start machines"
	if pool.Config.Spot {
		wrong("config.spot", "true", "false", taken, anew)
	}
	if pool.Config.Preemptible {
		wrong("config.preemptible", "true", "false", taken, anew)
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
	c.works(pool, wrong)
	c.lives(pool, wrong)
	if err == nil {
		c.placed(pool, own, policy, topology, wrong)
		c.scaled(pool, wrong)
	}
	return c, nil
}

// works checks what keeps Pods from a pool: its state, its version, and its taints.
func (c *Checked) works(pool *container.NodePool, wrong func(field, got, want, why, fix string)) {
	name, cluster, location := placeOf(pool)
	var messages []string
	for _, x := range pool.Conditions {
		if x != nil && x.Message != "" {
			messages = append(messages, said(x.Message))
		}
	}
	why := "GKE says that the pool may not be usable"
	if len(messages) > 0 {
		why += ": " + strings.Join(messages, "; ")
	}
	switch pool.Status {
	case "ERROR":
		wrong("status", pool.Status, "RUNNING", why, anew)
	case "RUNNING_WITH_ERROR":
		wrong("status", pool.Status, "RUNNING", why, fmt.Sprintf("gcloud container operations list --location=%s prints what failed", location))
	case "STOPPING":
		wrong("status", pool.Status, "RUNNING", "the pool is being deleted", anew)
	}
	since := c.Slice.Machine.since
	if has := numbers(pool.Version); since != "" && len(has) > 0 && slices.Compare(has, numbers(since)) < 0 {
		wrong("version", said(pool.Version), since+" or later", "an older version has no flex-start for these TPUs",
			fmt.Sprintf("gcloud container clusters upgrade %s --location=%s --node-pool=%s, after the same without --node-pool", cluster, location, name))
	}
	for _, t := range pool.Config.Taints {
		// GKE gives Pods that ask for TPUs a toleration for its own taint.
		if t != nil && t.Key != tpuResource && t.Effect != "PREFER_NO_SCHEDULE" {
			wrong("config.taints", said(t.Key)+"="+strings.ToValidUTF8(t.Value, "?")+":"+said(t.Effect), "no taint but that of TPUs", "the planned Pods do not tolerate it and wait for ever",
				"write a toleration for it into the manifest, or take all taints of your own away: "+updates(pool, `--node-taints=""`))
		}
	}
}

// lives checks how long the machines live.
func (c *Checked) lives(pool *container.NodePool, wrong func(field, got, want, why, fix string)) {
	switch most, err := time.ParseDuration(pool.Config.MaxRunDuration); {
	case err != nil || most <= 0: // the pool does not say it, or as nobody can read
	case most > flexLife:
		wrong("config.maxRunDuration", most.String(), flexLife.String()+" at most", "flex-start machines live for 7 days at most", anew)
	case most < flexLife:
		c.Notes = append(c.Notes, fmt.Sprintf("config.maxRunDuration is %s: Google takes each machine away after that, and not only after 7 days", most))
	}
}

// numbers are those of a version of GKE, such as 1.33.0-gke.1712000, in the order in which versions are compared.
func numbers(version string) (all []int) {
	for n := range strings.FieldsFuncSeq(version, func(r rune) bool { return !unicode.IsDigit(r) }) {
		i, _ := strconv.Atoi(n) //nolint:errcheck // it is the largest there is, or a zero, where it is no int
		all = append(all, i)
	}
	return all
}

// flexLife is how long a flex-start machine lives at most.
const flexLife = 7 * 24 * time.Hour

// placeOf are the names of a pool, its cluster and where that is. Where the pool does not say them, a person has to.
func placeOf(pool *container.NodePool) (name, cluster, location string) {
	cluster, location = "CLUSTER", "LOCATION"
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
	name = pool.Name
	if !nameForm.MatchString(name) {
		name = "POOL"
	}
	return name, cluster, location
}

// updates is the command that changes a pool.
func updates(pool *container.NodePool, flags string) string {
	name, cluster, location := placeOf(pool)
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
	if s.Several() && s.Machine.workloadPolicy && policy != "" {
		region := "REGION"
		if _, _, location := placeOf(pool); location != "LOCATION" {
			region = Options{Location: location}.region()
		}
		c.Notes = append(c.Notes, fmt.Sprintf("the topology of the workload policy %s was not read: gcloud compute resource-policies describe %s --region=%s prints it",
			said(policy), said(policy), region))
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
	const idle = "the pool keeps machines that nobody uses, and you pay for them"
	if n := a.MinNodeCount; n != 0 {
		wrong("autoscaling.minNodeCount", fmt.Sprint(n), "0", idle, bounds)
	}
	if n := a.TotalMinNodeCount; n != 0 {
		wrong("autoscaling.totalMinNodeCount", fmt.Sprint(n), "0", idle, updates(pool, "--enable-autoscaling --total-min-nodes=0"))
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
