package cloudtpu

import (
	stdjson "encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/topology"
)

// gone is the reading of a slice that the API does not know.
func gone(r provider.Ref) provider.Slice {
	return provider.Slice{Ref: r, Condition: evidence.Gone, State: "not found"}
}

// sliceOf converts a node, and the queued resource that holds it, to a slice. This version shows too little of a legacy node
// to create it again.
func (k *specs) sliceOf(r provider.Ref, n *api.Node, q *api.QueuedResource) (provider.Slice, error) {
	if last, ok := k.Get(r); ok && last.node == n && last.queued == q {
		return last.slice, nil // both are shared with the last reading, so all of it is the same
	}
	s := seen(r, n, q)
	if strings.HasPrefix(n.ApiVersion, "V1") {
		s.Legacy, s.Incarnation.ID = true, legacyLife(s.Incarnation)
		return s, nil
	}
	o, err := k.specOf(r, n, q)
	s.Spec, s.Values, s.ValuesSum, s.SpecHash, s.Bare = o.spec, o.values, o.sum, o.name, o.bare
	if err == nil {
		k.Put(r, remembered{n, q, o, s}, len(o.spec)+o.size)
	}
	return s, err
}

// seen is the same without the specification.
func seen(r provider.Ref, n *api.Node, q *api.QueuedResource) provider.Slice {
	s := provider.Slice{
		Ref: r, Condition: conditionOf(n.State, n.Health), State: stateText(n), Labels: n.Labels,
		Incarnation: events.Incarnation{Zone: r.Zone, ID: decimal(n.Id), Created: timeOf(n.CreateTime)},
		Directory:   n.Metadata[events.MetadataCheckpointDir], Data: events.DataDirs(n.Metadata[events.MetadataDataDir]),
		Accelerator: acceleratorOf(n), Capacity: capacityOf(n, q), Notice: noticeOf(n.UpcomingMaintenance),
		Maintained: maintained(n.HealthDescription), Autocheckpoint: n.AutocheckpointEnabled,
	}
	if shape, err := topology.Parse(s.Accelerator); err == nil {
		s.Workers, s.Chips = shape.Workers, shape.Chips
	}
	if n.ServiceAccount != nil {
		s.Account = n.ServiceAccount.Email
	}
	if n.State == "READY" && len(n.NetworkEndpoints) > 0 {
		s.Workers = len(n.NetworkEndpoints)
	}
	s.Abuse = slices.ContainsFunc(n.Symptoms, func(y *api.Symptom) bool { return y.SymptomType == "PROJECT_ABUSE" })
	if q != nil {
		heldBy(&s, q)
	}
	s.Ends = ends(s.Incarnation.Created, n, q)
	return s
}

const (
	flexStart = "FLEX_START"
	// longestFlexStart is how long a flex-start node lives at most, and if its order names no shorter time.
	// https://cloud.google.com/tpu/docs/release-notes
	longestFlexStart = 7 * 24 * time.Hour
)

// ends is when a node that was created at a time ends as planned; zero if it has no planned end. The API's own word counts; without
// one it is the run duration after the creation: a node that starts late may live a little longer. No time is finer than a second,
// so that it is stored as it was read.
func ends(created time.Time, n *api.Node, q *api.QueuedResource) (end time.Time) {
	if c := n.SchedulingConfig; c != nil {
		end = timeOf(c.TerminationTimestamp)
	}
	flex := n.SchedulingConfig != nil && n.SchedulingConfig.ProvisioningModel == flexStart
	var most time.Duration
	if q != nil {
		flex = flex || q.ProvisioningModel == flexStart
		if d := q.RunDuration; d != nil {
			if at := timeOf(d.TerminationTime); end.IsZero() || !at.IsZero() && at.Before(end) {
				end = at
			}
			if run, err := time.ParseDuration(d.MaxRunDuration); err == nil && run > 0 {
				most = run
			}
		}
	}
	if flex && (most == 0 || most > longestFlexStart) {
		most = longestFlexStart
	}
	if end.IsZero() && most > 0 && !created.IsZero() {
		end = created.Add(most)
	}
	if !end.After(created) {
		return time.Time{}
	}
	return end.Truncate(time.Second)
}

// queuedSlice is a slice with only a queued resource: its node does not exist yet, or no longer. It has no incarnation.
func (k *specs) queuedSlice(r provider.Ref, n *api.Node, q *api.QueuedResource) (provider.Slice, error) {
	s := provider.Slice{Ref: r}
	if n != nil {
		var err error
		if s, err = k.sliceOf(r, n, q); err != nil {
			return provider.Slice{}, err
		}
	}
	s.Incarnation, s.Notice, s.Abuse, s.Maintained, s.Ends = events.Incarnation{}, nil, false, time.Time{}, time.Time{}
	heldBy(&s, q)
	s.Condition, s.State = queuedCondition(q.State, func() hidden { return hideQueued(r, q) })
	switch s.Condition {
	case evidence.Creating:
		s.Granted = q.State.State == "PROVISIONING"
	case evidence.Unclear, evidence.Stopped: // it may hold what its node does not show yet
		s.Granted = true
	default:
	}
	return s, nil
}

// held notes the queued resource that holds the slice, or will bring it.
func heldBy(s *provider.Slice, q *api.QueuedResource) {
	s.Ordered, s.With = timeOf(q.CreateTime), nil
	for _, n := range queuedNodes(q, path.Base(q.Name)) {
		if n.name != s.Name {
			s.With = append(s.With, n.name)
		}
	}
}

// queuedNode is a node that a queued resource asks for, and the form of the request if it asks for several alike.
type queuedNode struct {
	name  string
	node  *api.Node
	multi *api.MultiNodeParams
}

// multiOf is the form in which a queued resource asks for several nodes alike; nil if it does not.
func multiOf(name string, q *api.QueuedResource) *api.MultiNodeParams {
	for _, n := range queuedNodes(q, path.Base(q.Name)) {
		if n.name == name {
			return n.multi
		}
	}
	return nil
}

// queuedNodes lists the nodes that a queued resource asks for: single ones by name, several alike by prefix and number.
func queuedNodes(q *api.QueuedResource, id string) []queuedNode {
	if q.Tpu == nil {
		return nil
	}
	var nodes []queuedNode
	for _, spec := range q.Tpu.NodeSpec {
		if m := spec.MultiNodeParams; m != nil {
			prefix := m.NodeIdPrefix
			if prefix == "" {
				prefix = id
			}
			for i := range min(m.NodeCount, maxNodes) {
				nodes = append(nodes, queuedNode{prefix + "-" + strconv.FormatInt(i, 10), spec.Node, m})
			}
		} else if spec.NodeId != "" {
			nodes = append(nodes, queuedNode{path.Base(spec.NodeId), spec.Node, nil})
		}
	}
	return nodes
}

// maxNodes bounds the nodes of one queued resource; a higher number is not believed.
const maxNodes = 10_000

// conditionOf converts a node's state and health to a condition. It ignores the description of the health, because healthy
// nodes also mention past maintenance there.
// https://cloud.google.com/tpu/docs/reference/rest/v2alpha1/projects.locations.nodes#State
func conditionOf(state, health string) evidence.Condition {
	switch state {
	case "CREATING":
		return evidence.Creating
	case "READY":
		switch health {
		case "HEALTHY", "HEALTH_UNSPECIFIED", "":
			return evidence.Ready
		}
		return evidence.Unhealthy
	case "RESTARTING", "REIMAGING", "REPAIRING", "STARTING", "HIDING", "HIDDEN", "UNHIDING":
		return evidence.Unhealthy
	case "STOPPED", "STOPPING":
		return evidence.Stopped
	case "PREEMPTED", "TERMINATED":
		return evidence.Lost
	case "DELETING":
		return evidence.Deleting
	}
	return evidence.Unclear
}

// queuedCondition converts the state of a queued resource without its node to a condition and its words. "Suspended by its
// user" means that somebody deleted the nodes: that is the owner's order, not a loss.
// https://cloud.google.com/tpu/docs/queued-resources
func queuedCondition(q *api.QueuedResourceState, h func() hidden) (evidence.Condition, string) {
	if q == nil {
		return evidence.Unclear, "in a queued resource without a state"
	}
	text := q.State + " (queued resource)"
	switch q.State {
	case "CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING":
		return evidence.Creating, text
	case "SUSPENDING", "SUSPENDED":
		if q.StateInitiator == "USER" {
			return evidence.Stopped, q.State + " (queued resource, by its user)"
		}
		return evidence.Lost, text
	case "FAILED":
		if q.FailedData != nil && q.FailedData.Error != nil {
			text = q.State + " (queued resource: " + h().of(statusFailure(q.FailedData.Error, createCall), q.FailedData.Error.Message).Message + ")"
		}
		return evidence.Lost, text
	case "DELETING":
		return evidence.Deleting, text
	case "ACTIVE":
		return evidence.Unclear, q.State + " (queued resource, but the node is not there)"
	case "":
		return evidence.Unclear, "in a queued resource without a state"
	}
	return evidence.Unclear, text
}

// stateText is the API's own words for the condition of a node.
func stateText(n *api.Node) string {
	words := []string{n.State}
	if n.State == "" {
		words[0] = "without a state"
	}
	switch n.Health {
	case "HEALTHY", "HEALTH_UNSPECIFIED", "":
	default:
		words = append(words, n.Health)
	}
	var symptoms []string
	for _, y := range n.Symptoms {
		if y.SymptomType != "" && !slices.Contains(symptoms, y.SymptomType) {
			symptoms = append(symptoms, y.SymptomType)
		}
	}
	slices.Sort(symptoms) // their order must not look like news
	return strings.Join(append(words, symptoms...), ", ")
}

// noticeOf is the maintenance that a node announces, if any.
// https://cloud.google.com/tpu/docs/view-maintenance-notifications
func noticeOf(m *api.UpcomingMaintenance) *events.Notice {
	if m == nil {
		return nil
	}
	n := events.Notice{
		Status: events.NoticePending, Unscheduled: m.Type == "UNSCHEDULED", CanReschedule: m.CanReschedule,
		WindowStart: timeOf(m.WindowStartTime), WindowEnd: timeOf(m.WindowEndTime),
		LatestWindowStart: timeOf(m.LatestWindowStartTime),
	}
	switch m.MaintenanceStatus {
	case "PENDING":
	case "ONGOING":
		n.Status = events.NoticeOngoing
	default:
		if n.WindowStart.IsZero() && n.WindowEnd.IsZero() {
			return nil
		}
	}
	return &n
}

// maintenanceEvent finds the last maintenance event in the description of a node's health: "The TPU had a maintenance event at
// 2022-01-26T03:44:36.265703305Z". Healthy nodes tell of theirs too, long after it.
// https://cloud.google.com/tpu/docs/maintenance-events
var maintenanceEvent = regexp.MustCompile(`maintenance event at ([0-9]{4}-[0-9:.Tt-]+(?:[Zz]|[+-][0-9]{2}:[0-9]{2}))`)

// maintained is when the last maintenance event was; zero if the description names no time.
func maintained(description string) time.Time {
	if found := maintenanceEvent.FindStringSubmatch(description); found != nil {
		return timeOf(found[1])
	}
	return time.Time{}
}

// timeOf reads a time of the API; an invalid one is unknown.
func timeOf(s string) time.Time {
	t, err := events.ParseTime(s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// capacityOf is what a node is taken from.
func capacityOf(n *api.Node, q *api.QueuedResource) events.Capacity {
	const model = "FLEX_START"
	switch c := n.SchedulingConfig; {
	case spot(n, q):
		return events.Spot
	case reserved(n, q):
		return events.Reserved
	case c != nil && c.ProvisioningModel == model, q != nil && q.ProvisioningModel == model:
		return events.FlexStart
	}
	return events.OnDemand
}

// spot reports whether a node runs on capacity that Google may take back.
func spot(n *api.Node, q *api.QueuedResource) bool {
	if c := n.SchedulingConfig; c != nil && (c.Spot || c.Preemptible || c.ProvisioningModel == "SPOT") {
		return true
	}
	return q != nil && (q.Spot != nil || q.ProvisioningModel == "SPOT")
}

// reserved reports whether a node is asked for from a reservation.
func reserved(n *api.Node, q *api.QueuedResource) bool {
	const model = "RESERVATION_BOUND"
	if c := n.SchedulingConfig; c != nil && (c.Reserved || c.ReservationName != "" || c.ProvisioningModel == model) {
		return true
	}
	return q != nil && (q.ReservationName != "" || q.ProvisioningModel == model || q.Guaranteed != nil && q.Guaranteed.Reserved)
}

// operationOf converts an operation of the API. Its metadata names the call, but not the specification.
func operationOf(o *api.Operation, h func() hidden) provider.Operation {
	op := provider.Operation{Name: o.Name, Done: o.Done}
	if o.Error == nil {
		return op
	}
	var m struct {
		Verb string `json:"verb"`
	}
	occasion := otherCall
	if stdjson.Unmarshal(o.Metadata, &m) == nil && strings.Contains(strings.ToLower(m.Verb), "create") {
		occasion = createCall
	}
	f := h().of(statusFailure(o.Error, occasion), o.Error.Message)
	op.Failure = &f
	return op
}
