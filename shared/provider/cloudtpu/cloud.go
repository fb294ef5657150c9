// Package cloudtpu provides slices by the Cloud TPU API. Client calls its present version (nodes, alone or inside queued
// resources), and Both adds the legacy TPU Nodes of its former one. Every error is classified once, by the table of this package.
package cloudtpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"

	"google.golang.org/api/option"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// callTimeout bounds each call of the API: the generated client has no bound of its own.
const callTimeout = 60 * time.Second

// amendTries is how often a change of a node is tried while other writers change the same node.
const amendTries = 5

// Name is the Cloud TPU API's name in a workload's document.
const Name = provider.CloudTPU

// Client is the client of the Cloud TPU API, v2alpha1: the only version that knows request IDs on nodes, autocheckpoint and early
// maintenance. Apart from SetMetadata and SetLabel it repeats no call by itself. It is safe for concurrent use.
type Client struct {
	methods Methods
	specs   specs
}

var _ provider.Provider = (*Client)(nil)

// New makes a client. Without options it finds its credentials and its endpoint as all of Google's clients do.
func New(ctx context.Context, opts ...option.ClientOption) (*Client, error) {
	methods, err := newREST(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return &Client{methods: methods}, nil
}

// call makes one call and classifies its failure.
func call[T any](ctx context.Context, what string, o occasion, f func(context.Context) (T, error)) (T, error) {
	return callWith(ctx, what, o, hidden{}, f)
}

// callWith is call with values that an error may repeat and that must stay hidden.
func callWith[T any](ctx context.Context, what string, o occasion, h hidden, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v, err := f(ctx)
	if err != nil {
		failure := callFailure(err, o)
		if masked := h.of(failure, said(err)); masked != failure {
			failure, err = masked, nil // the error below says the rest
		}
		return v, &provider.Error{Call: what, Class: failure.Class, Message: failure.Message, Cause: err}
	}
	return v, nil
}

// started returns the name of an operation. If the operation has already failed, that is the failure of its call.
func started(what string, o occasion, h hidden, op *api.Operation) (string, error) {
	if op.Done && op.Error != nil {
		failure := h.of(statusFailure(op.Error, o), op.Error.Message)
		return op.Name, &provider.Error{Call: what, Class: failure.Class, Message: failure.Message}
	}
	return op.Name, nil
}

// word matches the valid names of projects, zones and resources. Names also come from log entries, and a name with a slash
// or a colon would turn the call into another one.
var word = regexp.MustCompile(`^[A-Za-z0-9_~+][A-Za-z0-9_.~+-]*$`)

// projectWord allows for projects that belong to a domain: example.com:tpus.
var projectWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]*$`)

func valid(r provider.Ref) bool {
	return projectWord.MatchString(r.Project) && word.MatchString(r.Zone) && word.MatchString(r.Name) &&
		(r.QueuedResource == "" || word.MatchString(r.QueuedResource))
}

func zoneOf(r provider.Ref) string { return zoneName(r.Project, r.Zone) }

func queueName(r provider.Ref) string { return zoneOf(r) + "/queuedResources/" + r.QueuedResource }

func zoneName(project, zone string) string { return "projects/" + project + "/locations/" + zone }

// about describes a call on a slice, for people.
func about(r provider.Ref, verb string) string {
	if r.QueuedResource != "" {
		return verb + " node " + r.Name + " of queued resource " + r.QueuedResource + " in " + r.Zone
	}
	return verb + " node " + r.Name + " in " + r.Zone
}

// check refuses an empty reference, or one to a slice that this version of the API cannot read or change.
func check(r provider.Ref, what string) error {
	if valid(r) && r.Legacy {
		return &provider.Error{Call: what, Class: reason.Invalid, Message: "it is a legacy TPU Node: it has no metadata and no early maintenance, " +
			"and other calls work only if legacy_node_zones names its zone"}
	}
	if valid(r) {
		return nil
	}
	return &provider.Error{Call: what, Class: reason.Invalid, Message: fmt.Sprintf("%.120q is not a name of a node", r.String())}
}

// Read implements Provider. What cannot be the name of a node is not known to the API either.
func (c *Client) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	if !valid(r) {
		return gone(r), nil
	}
	what := about(provider.Ref{Zone: r.Zone, Name: r.Name}, "read")
	if err := check(r, what); err != nil {
		return provider.Slice{}, err // this version does not show all nodes, so a missing one proves nothing
	}
	n, err := call(ctx, what, otherCall, func(ctx context.Context) (*api.Node, error) {
		return c.methods.Node(ctx, r.String())
	})
	if is(err, reason.NotFound) {
		return c.readQueued(ctx, r)
	}
	if err != nil {
		return provider.Slice{}, err
	}
	var q *api.QueuedResource
	if n.QueuedResource != "" {
		r.QueuedResource = path.Base(n.QueuedResource)
		if q, err = c.queued(ctx, r); err != nil && !is(err, reason.NotFound) {
			return provider.Slice{}, err
		}
	}
	s, err := c.specs.sliceOf(r, n, q)
	if err == nil && s.Notice == nil && q != nil && len(queuedNodes(q, r.QueuedResource)) > 1 {
		c.announced(ctx, []*provider.Slice{&s})
	}
	return s, err
}

// announced asks the queued resource of these slices for announced maintenance: it may announce one that a node does not
// show, or not yet. A node's own notice takes precedence.
func (c *Client) announced(ctx context.Context, held []*provider.Slice) {
	r := held[0].Ref
	info, err := call(ctx, "read maintenance of queued resource "+r.QueuedResource+" in "+r.Zone, otherCall,
		func(ctx context.Context) (*api.GetMaintenanceInfoResponse, error) {
			return c.methods.MaintenanceInfo(ctx, queueName(r))
		})
	notices := map[string]*events.Notice{}
	if err == nil {
		for _, n := range info.NodeUpcomingMaintenances {
			notices[path.Base(n.NodeName)] = noticeOf(n.UpcomingMaintenance)
		}
	}
	for _, s := range held {
		if s.Notice == nil {
			s.Notice, s.NoticeUnread = notices[s.Name], err != nil
		}
	}
}

// listAnnounced asks each queued resource with a node that shows a notice, once.
func (c *Client) listAnnounced(ctx context.Context, list []provider.Slice) {
	held := map[string][]*provider.Slice{}
	var shown []string
	for i := range list {
		q := list[i].QueuedResource
		if q == "" {
			continue
		}
		held[q] = append(held[q], &list[i])
		if list[i].Notice != nil && !slices.Contains(shown, q) {
			shown = append(shown, q)
		}
	}
	for _, q := range shown {
		c.announced(ctx, held[q])
	}
}

// readQueued reads a slice without a node from its queued resource.
func (c *Client) readQueued(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	if r.QueuedResource == "" {
		return gone(r), nil
	}
	q, err := c.queued(ctx, r)
	if is(err, reason.NotFound) {
		return gone(r), nil
	}
	if err != nil {
		return provider.Slice{}, err
	}
	nodes := queuedNodes(q, r.QueuedResource)
	i := slices.IndexFunc(nodes, func(n queuedNode) bool { return n.name == r.Name })
	switch {
	case i >= 0:
		return c.specs.queuedSlice(r, nodes[i].node, q)
	case len(nodes) == 0:
		return c.specs.queuedSlice(r, nil, q)
	}
	return gone(r), nil // the name belongs to a queued resource for another slice
}

func (c *Client) queued(ctx context.Context, r provider.Ref) (*api.QueuedResource, error) {
	return call(ctx, "read queued resource "+r.QueuedResource+" in "+r.Zone, otherCall,
		func(ctx context.Context) (*api.QueuedResource, error) {
			return c.methods.QueuedResource(ctx, queueName(r))
		})
}

// List implements Provider. Slices that wait in a queued resource, or that left nothing but one, are among them.
func (c *Client) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	what := "list nodes in " + zone
	if err := check(provider.Ref{Project: project, Zone: zone, Name: "any"}, what); err != nil {
		return provider.Listing{}, err
	}
	// Queued resources come first: a node that appears in between is then found, and does not count as missing.
	queues, queuesPartial, err := c.listQueued(ctx, project, zone)
	if err != nil {
		return provider.Listing{}, err
	}
	nodes, nodesPartial, err := pages(ctx, what, func(ctx context.Context, token string) ([]*api.Node, string, bool, error) {
		l, err := c.methods.Nodes(ctx, zoneName(project, zone), token)
		if err != nil {
			return nil, "", false, err
		}
		return l.Nodes, l.NextPageToken, len(l.Unreachable) > 0, nil
	})
	if err != nil {
		return provider.Listing{}, err
	}
	list := provider.Listing{Partial: queuesPartial || nodesPartial, Slices: make([]provider.Slice, 0, len(nodes))}
	byName := map[string]*api.QueuedResource{}
	for _, q := range queues {
		byName[path.Base(q.Name)] = q
	}
	there := map[string]bool{}
	for _, n := range nodes {
		r := provider.Ref{Project: project, Zone: zone, Name: path.Base(n.Name)}
		there[r.Name] = true
		var q *api.QueuedResource
		if n.QueuedResource != "" {
			r.QueuedResource = path.Base(n.QueuedResource)
			if q = byName[r.QueuedResource]; q == nil {
				// It came since, was not reached, or is gone. Without it nobody knows whether the node is Spot, or how to order another.
				if q, err = c.queued(ctx, r); err != nil && !is(err, reason.NotFound) {
					list.Partial = true
					continue
				}
			}
		}
		s, err := c.specs.sliceOf(r, n, q)
		if err != nil {
			return provider.Listing{}, err
		}
		list.Slices = append(list.Slices, s)
	}
	c.listAnnounced(ctx, list.Slices)
	if nodesPartial {
		return list, nil // it is unknown which nodes are missing
	}
	for _, q := range queues {
		r := provider.Ref{Project: project, Zone: zone, QueuedResource: path.Base(q.Name)}
		for _, n := range queuedNodes(q, r.QueuedResource) {
			if r.Name = n.name; there[n.name] {
				continue
			}
			s, err := c.specs.queuedSlice(r, n.node, q)
			if err != nil {
				return provider.Listing{}, err
			}
			list.Slices = append(list.Slices, s)
		}
	}
	return list, nil
}

func (c *Client) listQueued(ctx context.Context, project, zone string) ([]*api.QueuedResource, bool, error) {
	return pages(ctx, "list queued resources in "+zone,
		func(ctx context.Context, token string) ([]*api.QueuedResource, string, bool, error) {
			l, err := c.methods.QueuedResources(ctx, zoneName(project, zone), token)
			if err != nil {
				return nil, "", false, err
			}
			return l.QueuedResources, l.NextPageToken, len(l.Unreachable) > 0, nil
		})
}

// pages reads a listing to its end. Each page has the time of one call.
func pages[T any](
	ctx context.Context, what string,
	page func(ctx context.Context, token string) (items []T, next string, partial bool, err error),
) (all []T, partial bool, err error) {
	token := ""
	for {
		next, err := call(ctx, what, otherCall, func(ctx context.Context) (string, error) {
			items, next, unreachable, err := page(ctx, token)
			all, partial = append(all, items...), partial || unreachable
			return next, err
		})
		if err != nil {
			return nil, false, err
		}
		if next == "" {
			return all, partial, nil
		}
		if next == token {
			return nil, false, &provider.Error{Call: what, Class: reason.Transient, Message: "the API repeats the same page"}
		}
		token = next
	}
}

// Zones implements Provider.
func (c *Client) Zones(ctx context.Context, project string) ([]string, error) {
	const what = "list zones"
	if err := check(provider.Ref{Project: project, Zone: "any", Name: "any"}, what); err != nil {
		return nil, err
	}
	zones, _, err := pages(ctx, what, func(ctx context.Context, token string) ([]string, string, bool, error) {
		l, err := c.methods.Locations(ctx, "projects/"+project, token)
		if err != nil {
			return nil, "", false, err
		}
		var ids []string
		for _, z := range l.Locations {
			ids = append(ids, z.LocationId)
		}
		return ids, l.NextPageToken, false, nil
	})
	return zones, err
}

// Leftovers implements Janitor. A listing shows every queued resource that holds a slice.
func (*Client) Leftovers(context.Context, string, string) (all []provider.Leftover, unread []string, err error) {
	return nil, nil, nil
}

// Creatable implements Provider. The Cloud TPU API has no call that tries a creation, so only Create itself finds out.
func (*Client) Creatable(context.Context, provider.Ref, []byte, map[string]string, string) error {
	return nil
}

// Create implements Provider. A specification that was read in another zone has to be fitted to this one: see Fit.
func (c *Client) Create(
	ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string,
) (operation string, err error) {
	what := about(r, "create")
	if err := check(r, what); err != nil {
		return "", err
	}
	orders, err := readSpecs(r.Name, spec)
	if err == nil && r.QueuedResource == "" && len(orders) > 1 {
		err = errors.New("specification: only a queued resource brings several nodes")
	}
	if err != nil {
		return "", &provider.Error{Call: what, Class: reason.Invalid, Message: err.Error(), Cause: err}
	}
	for _, order := range orders {
		n := order.Node
		n.Labels = maps.Clone(n.Labels)
		for k, v := range labels {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[k] = v
		}
	}
	n := orders[0].Node
	o, q := createFree, orders[0].QueuedResource
	isSpot := spot(n, q)
	if reserved(n, q) {
		o = createReserved
	}
	// A Spot slice stays Spot, in whichever field the order and the new request say it: no mistake may lead to the other price.
	switch {
	case r.QueuedResource == "" && isSpot && !spot(n, nil):
		if n.SchedulingConfig == nil {
			n.SchedulingConfig = &api.SchedulingConfig{}
		}
		n.SchedulingConfig.Spot = true
	case r.QueuedResource != "" && q == nil:
		if q = new(api.QueuedResource); isSpot {
			q.Spot = &api.Spot{}
		}
	}
	var nodes []*api.Node
	for _, order := range orders {
		nodes = append(nodes, order.Node)
	}
	h := hide(r, nodes...)
	op, err := callWith(ctx, what, o, h, func(ctx context.Context) (*api.Operation, error) {
		if r.QueuedResource == "" {
			return c.methods.CreateNode(ctx, zoneOf(r), r.Name, requestID, n)
		}
		q.Tpu = &api.Tpu{NodeSpec: nodeSpecs(zoneOf(r), orders)}
		return c.methods.CreateQueuedResource(ctx, zoneOf(r), r.QueuedResource, requestID, q)
	})
	if err != nil {
		return "", err
	}
	return started(what, o, h, op)
}

// Delete implements Provider. A queued resource goes with everything that it holds.
func (c *Client) Delete(ctx context.Context, r provider.Ref, requestID string) (operation string, err error) {
	what := about(r, "delete")
	if err := check(r, what); err != nil {
		return "", err
	}
	h := c.specs.about(r)
	op, err := callWith(ctx, what, otherCall, h, func(ctx context.Context) (*api.Operation, error) {
		if r.QueuedResource == "" {
			return c.methods.DeleteNode(ctx, r.String(), requestID)
		}
		return c.methods.DeleteQueuedResource(ctx, queueName(r), requestID)
	})
	if err != nil {
		return "", err
	}
	return started(what, otherCall, h, op)
}

// Maintain implements Provider.
func (c *Client) Maintain(ctx context.Context, held []provider.Ref) (operation string, err error) {
	if len(held) == 0 {
		return "", &provider.Error{Call: "start maintenance", Class: reason.Invalid, Message: "no slice is named"}
	}
	r := held[0]
	what := about(r, "start maintenance of")
	var names []string
	for _, o := range held {
		if err := check(o, what); err != nil {
			return "", err
		}
		if len(held) > 1 && (r.QueuedResource == "" || queueName(o) != queueName(r)) {
			return "", &provider.Error{Call: what, Class: reason.Invalid, Message: "no queued resource holds both " + r.String() + " and " + o.String()}
		}
		names = append(names, o.String())
	}
	if len(held) > 1 {
		what += fmt.Sprintf(", with %d nodes", len(held))
	}
	h := c.specs.about(r)
	op, err := callWith(ctx, what, otherCall, h, func(ctx context.Context) (*api.Operation, error) {
		if r.QueuedResource == "" {
			return c.methods.PerformMaintenance(ctx, r.String())
		}
		return c.methods.PerformMaintenanceQueuedResource(ctx, queueName(r), names)
	})
	if err != nil {
		return "", err
	}
	return started(what, otherCall, h, op)
}

// Start implements Provider. The API has no request ID for it, and refuses what is not stopped.
func (c *Client) Start(ctx context.Context, r provider.Ref) (operation string, err error) {
	what := about(r, "start")
	if err := check(r, what); err != nil {
		return "", err
	}
	h := c.specs.about(r)
	op, err := callWith(ctx, what, createCall, h, func(ctx context.Context) (*api.Operation, error) {
		return c.methods.StartNode(ctx, r.String())
	})
	if err != nil {
		return "", err
	}
	return started(what, createCall, h, op)
}

// SetMetadata implements Provider. A change replaces the whole map and the API has no etag, so what another writer adds
// between the reading and the change is lost unless the API itself refuses the second of two changes at a time: then the
// map is read again.
func (c *Client) SetMetadata(ctx context.Context, r provider.Ref, key, value string) error {
	return c.amend(ctx, r, about(r, "set metadata "+key+" of"), "metadata", func(n *api.Node) *api.Node {
		if old, ok := n.Metadata[key]; ok && old == value {
			return nil
		}
		return &api.Node{Metadata: with(n.Metadata, key, value)}
	})
}

// SetLabel sets one label of a node and keeps the labels of others, as far as the API allows that: see SetMetadata. An empty
// value removes the label.
func (c *Client) SetLabel(ctx context.Context, r provider.Ref, key, value string) error {
	return c.amend(ctx, r, about(provider.Ref{Zone: r.Zone, Name: r.Name}, "set label "+key+" of"), "labels", func(n *api.Node) *api.Node {
		if n.Labels[key] == value {
			return nil
		}
		all := with(n.Labels, key, value)
		if value == "" {
			delete(all, key)
		}
		return &api.Node{Labels: all, ForceSendFields: []string{"Labels"}}
	})
}

func with(all map[string]string, key, value string) map[string]string {
	changed := map[string]string{}
	maps.Copy(changed, all)
	changed[key] = value
	return changed
}

// amend changes one field of a node, named by the mask, in its present state. change returns nil if no change is needed.
func (c *Client) amend(ctx context.Context, r provider.Ref, what, mask string, change func(now *api.Node) *api.Node) error {
	if err := check(r, what); err != nil {
		return err
	}
	once := func() error {
		n, err := call(ctx, what, otherCall, func(ctx context.Context) (*api.Node, error) {
			return c.methods.Node(ctx, r.String())
		})
		if err != nil {
			return err
		}
		next := change(n)
		if next == nil {
			return nil
		}
		h := hide(r, n, next)
		op, err := callWith(ctx, what, otherCall, h, func(ctx context.Context) (*api.Operation, error) {
			return c.methods.UpdateNode(ctx, r.String(), mask, next)
		})
		if err != nil {
			return err
		}
		_, err = started(what, otherCall, h, op)
		return err
	}
	var err error
	for range amendTries {
		if err = once(); !is(err, reason.Busy) {
			return err
		}
	}
	return err
}

// Simulate sends a worker of a slice through a maintenance event, as a real one would: the machine stops for that time.
func (c *Client) Simulate(ctx context.Context, r provider.Ref) (operation string, err error) {
	what := about(provider.Ref{Zone: r.Zone, Name: r.Name}, "simulate a maintenance event of")
	if err := check(r, what); err != nil {
		return "", err
	}
	h := c.specs.about(r)
	op, err := callWith(ctx, what, otherCall, h, func(ctx context.Context) (*api.Operation, error) {
		return c.methods.SimulateMaintenanceEvent(ctx, r.String(), "0")
	})
	if err != nil {
		return "", err
	}
	return started(what, otherCall, h, op)
}

// Hosts implements Provider. The workers write their names into their guest attributes; a policy of the organization
// (compute.disableGuestAttributesAccess) may forbid to read those.
func (c *Client) Hosts(ctx context.Context, r provider.Ref) ([]string, error) {
	var hosts []string
	err := c.guests(ctx, r, "read host names of", func(item *api.GuestAttributesEntry) bool {
		if item.Key != "hostname" || item.Value == "" {
			return false
		}
		hosts = append(hosts, item.Value)
		return true
	})
	return hosts, err
}

// Crews implements Provider. What a crew wrote that cannot be read is left out: users' code runs beside it.
func (c *Client) Crews(ctx context.Context, r provider.Ref) ([]events.CrewState, error) {
	var crews []events.CrewState
	err := c.guests(ctx, r, "read the crews of", func(item *api.GuestAttributesEntry) bool {
		if item.Namespace != events.GuestNamespace || item.Key != events.GuestKey {
			return false
		}
		if s, err := events.DecodeCrewState([]byte(item.Value)); err == nil {
			crews = append(crews, s)
		}
		return true
	})
	return crews, err
}

// guests shows each worker's guest attributes until take has found its value.
func (c *Client) guests(ctx context.Context, r provider.Ref, verb string, take func(*api.GuestAttributesEntry) bool) error {
	if r.Legacy {
		return nil // nobody can log in to its workers
	}
	what := about(r, verb)
	if err := check(r, what); err != nil {
		return err
	}
	a, err := call(ctx, what, otherCall, func(ctx context.Context) (*api.GetGuestAttributesResponse, error) {
		return c.methods.GuestAttributes(ctx, r.String())
	})
	if is(err, reason.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, worker := range a.GuestAttributes {
		if worker.QueryValue == nil {
			continue
		}
		for _, item := range worker.QueryValue.Items {
			if take(item) {
				break
			}
		}
	}
	return nil
}

// Operations implements Provider.
func (c *Client) Operations(ctx context.Context, project, zone string, names ...string) ([]provider.Operation, error) {
	what := "list operations in " + zone
	if err := check(provider.Ref{Project: project, Zone: zone, Name: "any"}, what); err != nil {
		return nil, err
	}
	ops, _, err := pages(ctx, what, func(ctx context.Context, token string) ([]provider.Operation, string, bool, error) {
		l, err := c.methods.Operations(ctx, zoneName(project, zone), token)
		if err != nil {
			return nil, "", false, err
		}
		var page []provider.Operation
		for _, o := range l.Operations {
			if len(names) > 0 && !slices.Contains(names, o.Name) {
				continue // its failure need not be classified
			}
			page = append(page, operationOf(o, func() hidden { return c.specs.hidden(project, zone, o) }))
		}
		return page, l.NextPageToken, false, nil
	})
	return ops, err
}

// is reports whether an error is one of this package's of that class.
func is(err error, class reason.FailureClass) bool {
	return err != nil && provider.Failure(err).Class == class
}

// decimal is the API's identifier of a life; zero is none.
func decimal(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}
