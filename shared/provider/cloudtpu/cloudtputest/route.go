package cloudtputest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// request is a call that is being served.
type request struct {
	path, http string
	query      url.Values
	raw        string // the query, encoded
	body       []byte
	principal  string
	// direct says that the caller takes the value itself and not its JSON.
	direct bool

	// project, zone, collection, id and verb are what the path says, and called is the name of the method.
	version, project, zone, collection, id, verb, called string
	// owner is a call without faults: somebody in the world makes it.
	owner bool
	// fault is what goes wrong with the call once it is carried out.
	fault Fault
}

// method is one method of the API.
type method struct {
	// name is its name in the audit log.
	name string
	// mutating methods start operations and are logged.
	mutating bool
	// body says that a body is sent.
	body  bool
	query []string
	serve func(*API, *request) (any, *status)
}

var (
	listQuery = []string{"pageSize", "pageToken"}
	findQuery = []string{"pageSize", "pageToken", "filter", "orderBy"}
)

// present are all methods of v2alpha1, by HTTP method, collection, star for one of it, and verb.
// https://cloud.google.com/tpu/docs/reference/rest/v2alpha1
var present = map[string]*method{
	"GET locations": {
		name: "ListLocations", query: []string{"pageSize", "pageToken", "filter", "extraLocationTypes"},
		serve: (*API).listLocations,
	},
	"GET locations/*": {name: "GetLocation", serve: (*API).getLocation},
	"POST locations/*:generateServiceIdentity": {
		name: "GenerateServiceIdentity", body: true, serve: (*API).generateServiceIdentity,
	},

	"GET nodes":   {name: "ListNodes", query: listQuery, serve: (*API).listNodes},
	"GET nodes/*": {name: "GetNode", serve: (*API).getNode},
	"POST nodes": {
		name: "CreateNode", mutating: true, body: true, query: []string{"nodeId", "requestId"}, serve: (*API).createNode,
	},
	"PATCH nodes/*": {
		name: "UpdateNode", mutating: true, body: true, query: []string{"updateMask"}, serve: (*API).updateNode,
	},
	"DELETE nodes/*": {
		name: "DeleteNode", mutating: true, query: []string{"requestId"}, serve: (*API).deleteNode,
	},
	"POST nodes/*:stop":               {name: "StopNode", mutating: true, body: true, serve: (*API).stopNode},
	"POST nodes/*:start":              {name: "StartNode", mutating: true, body: true, serve: (*API).startNode},
	"POST nodes/*:getGuestAttributes": {name: "GetGuestAttributes", body: true, serve: (*API).getGuestAttributes},
	"POST nodes/*:performMaintenance": {
		name: "PerformMaintenance", mutating: true, body: true, serve: (*API).performMaintenance,
	},
	"POST nodes/*:simulateMaintenanceEvent": {
		name: "SimulateMaintenanceEvent", mutating: true, body: true, serve: (*API).simulateMaintenanceEvent,
	},

	"GET queuedResources":   {name: "ListQueuedResources", query: listQuery, serve: (*API).listQueuedResources},
	"GET queuedResources/*": {name: "GetQueuedResource", serve: (*API).getQueuedResource},
	"POST queuedResources": {
		name: "CreateQueuedResource", mutating: true, body: true, query: []string{"queuedResourceId", "requestId"},
		serve: (*API).createQueuedResource,
	},
	"DELETE queuedResources/*": {
		name: "DeleteQueuedResource", mutating: true, query: []string{"force", "requestId"},
		serve: (*API).deleteQueuedResource,
	},
	"POST queuedResources/*:reset": {
		name: "ResetQueuedResource", mutating: true, body: true, serve: (*API).resetQueuedResource,
	},
	"GET queuedResources/*:getMaintenanceInfo": {name: "GetMaintenanceInfo", serve: (*API).getMaintenanceInfo},
	"POST queuedResources/*:performMaintenanceQueuedResource": {
		name: "PerformMaintenanceQueuedResource", mutating: true, body: true,
		serve: (*API).performMaintenanceQueuedResource,
	},

	"GET operations": {
		name: "ListOperations", query: []string{"pageSize", "pageToken", "filter", "returnPartialSuccess"},
		serve: (*API).listOperations,
	},
	"GET operations/*":         {name: "GetOperation", serve: (*API).getOperation},
	"POST operations/*:cancel": {name: "CancelOperation", serve: (*API).cancelOperation},
	"DELETE operations/*":      {name: "DeleteOperation", serve: (*API).deleteOperation},

	"GET acceleratorTypes":   {name: "ListAcceleratorTypes", query: findQuery, serve: (*API).listAcceleratorTypes},
	"GET acceleratorTypes/*": {name: "GetAcceleratorType", serve: (*API).getAcceleratorType},
	"GET runtimeVersions":    {name: "ListRuntimeVersions", query: findQuery, serve: (*API).listRuntimeVersions},
	"GET runtimeVersions/*":  {name: "GetRuntimeVersion", serve: (*API).getRuntimeVersion},
	"GET reservations":       {name: "ListReservations", query: listQuery, serve: (*API).listReservations},
}

// methodNamed is the same by name. What both versions have is logged alike.
var methodNamed = func() map[string]*method {
	named := map[string]*method{}
	for _, all := range methods {
		for _, m := range all {
			named[m.name] = m
		}
	}
	return named
}()

// commonQuery are the parameters that every method takes.
var commonQuery = []string{
	"$.xgafv", "access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "uploadType",
	"upload_protocol",
}

// route finds the method and the subject of a call.
func (a *API) route(c *request) (*method, *status) {
	none := refuse(notFound, "The requested URL %.200s was not found on this server.", c.path)
	var path string
	c.version, path, _ = strings.Cut(strings.TrimPrefix(c.path, "/"), "/")
	if methods[c.version] == nil {
		return nil, none
	}
	parts := strings.Split(path, "/")
	if last := len(parts) - 1; last > 1 {
		parts[last], c.verb, _ = strings.Cut(parts[last], ":")
	}
	if len(parts) < 3 || len(parts) > 6 || parts[0] != "projects" || parts[2] != "locations" || slices.Contains(parts, "") {
		return nil, none
	}
	c.project, c.collection = parts[1], "locations"
	if len(parts) > 3 {
		c.zone = parts[3]
	}
	pattern := c.http + " locations"
	switch len(parts) {
	case 4:
		pattern += "/*"
	case 5:
		c.collection = parts[4]
		pattern = c.http + " " + c.collection
	case 6:
		c.collection, c.id = parts[4], parts[5]
		pattern = c.http + " " + c.collection + "/*"
	}
	if c.verb != "" {
		pattern += ":" + c.verb
	}
	m, ok := methods[c.version][pattern]
	if !ok {
		return nil, none
	}
	c.called = m.name
	return m, a.admit(c, m)
}

// admit says why a call of a method is refused before it is read.
func (a *API) admit(c *request, m *method) *status {
	if c.project != a.project {
		return refuse(permissionDenied, "Permission denied on resource project %s.", c.project)
	}
	for name := range c.query {
		if !slices.Contains(commonQuery, name) && !slices.Contains(m.query, name) {
			return refuse(invalidArgument,
				"Invalid JSON payload received. Unknown name %q: Cannot bind query parameter.", name)
		}
	}
	if !m.body && len(bytes.TrimSpace(c.body)) > 0 {
		return refuse(invalidArgument, "Invalid JSON payload received. %s takes no body.", m.name)
	}
	if id := c.query.Get("requestId"); id != "" && !uuid.MatchString(id) {
		return refuse(invalidArgument, "Invalid value at 'request_id': %q is not a UUID.", id)
	}
	return nil
}

var (
	uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	// idWord is what the API's own description allows for an ID.
	idWord = regexp.MustCompile(`^[A-Za-z0-9_.~+%-]+$`)
)

// target is the ID of what the call is about, also when it is yet to be made.
func (c *request) target() string {
	switch {
	case c.id != "" || c.http != "POST":
		return c.id
	case c.collection == "nodes":
		return c.query.Get("nodeId")
	case c.collection == "queuedResources":
		return c.query.Get("queuedResourceId")
	}
	return ""
}

// decode reads the body of a call. A name that the API does not know is refused, as the API does.
func (c *request) decode(into any) *status {
	body := c.body
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if c.version == general {
		var refused *status
		if body, refused = c.strict(into); refused != nil {
			return refused
		}
	}
	return strictly(body, into)
}

// strictly reads a value without fields that its type does not know.
func strictly(body []byte, into any) *status {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return refuse(invalidArgument, "Invalid JSON payload received. %s", err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse(invalidArgument, "Invalid JSON payload received. Unexpected token.")
	}
	var written any
	if bytes.Contains(body, []byte("null")) && json.Unmarshal(body, &written) == nil && listsNull(written) {
		return refuse(invalidArgument, "Invalid JSON payload received. A list holds null.")
	}
	return nil
}

// listsNull reports whether a list in a JSON value holds null, which no list of a protocol buffer can.
func listsNull(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.Contains(v, nil) || slices.ContainsFunc(v, listsNull)
	case map[string]any:
		for _, of := range v {
			if listsNull(of) {
				return true
			}
		}
	}
	return false
}

// page cuts a listing to the page that a call asks for.
func page[T any](a *API, c *request, all []T) (items []T, next string, refused *status) {
	size, from := a.pageSize, 0
	if s := c.query.Get("pageSize"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, "", refuse(invalidArgument, "Invalid value at 'page_size': %q.", s)
		}
		if n > 0 {
			size = min(n, size)
		}
	}
	if s := c.query.Get("pageToken"); s != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "page-"))
		if err != nil || n < 0 {
			return nil, "", refuse(invalidArgument, "Invalid value at 'page_token': %q.", s)
		}
		from = min(n, len(all))
	}
	to := min(from+size, len(all))
	if to < len(all) {
		next = "page-" + strconv.Itoa(to)
	}
	return all[from:to], next, nil
}
