package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// machineID is one worker in one life of a node.
type machineID struct {
	life   events.Incarnation
	worker int
}

// machine is the metadata server of one worker, and the values of it that the node's metadata gave.
type machine struct {
	*metadatatest.Server
	attributes map[string]string
}

// machinePrefix is before the zone, the node and the worker in the path of a machine's metadata server. All machines share one
// address, so a program is led to its own with GCE_METADATA_HOST=127.0.0.1:8090/machines/ZONE/NODE/WORKER.
const machinePrefix = "/machines/"

// machineToken is the token that a metadata server gives to the programs of its machine.
const machineToken = "simulated"

// serveMachine serves the metadata server of a worker, while its machine exists.
func (c *Cloud) serveMachine(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, machinePrefix), "/", 4)
	if len(parts) < 4 {
		http.Error(w, "a machine is named /machines/ZONE/NODE/WORKER", http.StatusNotFound)
		return
	}
	zone, node := parts[0], parts[1]
	worker, err := strconv.Atoi(parts[2])
	m := c.machine(zone, node, worker)
	if err != nil || m == nil {
		http.Error(w, fmt.Sprintf("there is no machine of worker %s of node %s in %s now", parts[2], node, zone), http.StatusNotFound)
		return
	}
	asked := r.Clone(r.Context())
	asked.URL.Path, asked.URL.RawPath = "/"+parts[3], ""
	if strings.HasSuffix(asked.URL.Path, "/service-accounts/default/token") {
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("Content-Type", "application/json")
		answer(w, map[string]any{"access_token": machineToken, "expires_in": 3599, "token_type": "Bearer"})
		return
	}
	m.ServeHTTP(w, asked)
	path, guest := strings.CutPrefix(asked.URL.Path, "/computeMetadata/v1/instance/guest-attributes/")
	if namespace, key, ok := strings.Cut(path, "/"); guest && ok && r.Method == http.MethodPut {
		if value, _ := m.Guest(namespace, key); value != "" {
			_ = c.API.SetGuestAttribute(zone, node, worker, namespace, key, value) //nolint:errcheck // the node may have gone meanwhile
		}
	}
}

// machine is the metadata server of a worker, made at the first question; nil where there is no such machine.
func (c *Cloud) machine(zone, node string, worker int) *machine {
	// Whoever ends the machine of a node that is gone waits for the lock, so none is made after that.
	c.mu.Lock()
	defer c.mu.Unlock()
	n, life, hosts := c.API.Node(zone, node), c.API.Incarnation(zone, node), c.API.Hosts(zone, node)
	if n == nil || worker < 0 || worker >= len(hosts) || !runs(n.State) {
		return nil
	}
	id := machineID{life, worker}
	m := c.machines[id]
	if m == nil {
		m = &machine{Server: metadatatest.New(c.API.Project(), zone, hosts[worker], c.clock.Now)}
		var peers []string
		for _, e := range n.NetworkEndpoints {
			peers = append(peers, e.IpAddress)
		}
		m.TPU(node, n.AcceleratorType, worker, peers...)
		c.machines[id] = m
		m.show(n)
	}
	return m
}

// runs reports whether the machines of a node run.
func runs(state string) bool { return state == "READY" || state == "RESTARTING" || state == "DELETING" }

// show brings the values to what the API shows.
func (m *machine) show(n *api.Node) {
	for k := range m.attributes {
		if _, still := n.Metadata[k]; !still {
			m.Remove("instance/attributes/" + k)
		}
	}
	for k, v := range n.Metadata {
		if old, had := m.attributes[k]; !had || old != v {
			m.Set("instance/attributes/"+k, v)
		}
	}
	m.attributes = n.Metadata
	if n.Health == "UNHEALTHY_MAINTENANCE" {
		m.Set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE")
	} else {
		m.Set("instance/maintenance-event", "NONE")
	}
	if n.UpcomingMaintenance == nil {
		m.Remove("instance/upcoming-maintenance")
		return
	}
	raw, err := json.Marshal(map[string]any{
		"maintenanceType": n.UpcomingMaintenance.Type, "maintenanceStatus": n.UpcomingMaintenance.MaintenanceStatus,
		"canReschedule": strings.ToUpper(strconv.FormatBool(n.UpcomingMaintenance.CanReschedule)), "windowStartTime": n.UpcomingMaintenance.WindowStartTime,
		"windowEndTime": n.UpcomingMaintenance.WindowEndTime, "latestWindowStartTime": n.UpcomingMaintenance.LatestWindowStartTime,
	})
	if err != nil {
		panic("cloud: " + err.Error()) // they are strings
	}
	m.Set("instance/upcoming-maintenance", string(raw))
}

// Tell brings an event to the machines of its node.
func (c *Cloud) Tell(e cloudtputest.Event) {
	if e.Node == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.API.Node(e.Zone, e.Node)
	for id, m := range c.machines {
		switch {
		case id.life != e.Incarnation:
		case e.Kind == cloudtputest.Gone:
			delete(c.machines, id)
			m.Break(metadatatest.Fault{Gone: true}) // a request that waits would wait for ever
		case e.Kind == cloudtputest.Lost && e.Cause == events.CausePreemption:
			m.Set("instance/preempted", "TRUE")
		case n != nil:
			m.show(n)
		}
	}
}
