package oracle

import (
	"net/http"
	"slices"
	"strings"

	"pitstop.internal/scripts/sim/world"
)

// This file holds what must not be asked or shown: more lists of a cluster than a tick needs, and the value of an environment variable.

// The entry points that call clusters and that the judge tells apart.
const (
	patrols     = "HandlePatrol"
	recreates   = "HandleRecreate"
	checkpoints = "HandleCheckpoint"
)

// Asks follows the calls of a cluster: patrol lists what there is once, and changes nothing.
func (c *Checks) Asks(path string, r *http.Request) {
	inst := world.InstanceOf(r.Context())
	labels := r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && inst.Function == checkpoints
	switch {
	case labels:
		return
	case r.Method != http.MethodGet && inst.Function != recreates:
		c.Violated("owner's word", "", "%s: %s %s in cluster %s", inst.Function, r.Method, r.URL.Path, path)
		return
	case inst.Function != patrols || inst.Crashed || r.URL.Query().Has("continue"):
		return
	}
	listed := []string{"jobs", "jobsets", "pods", "nodes", "slices", "provisioningrequests", "workloads", "podtemplates"} // the last three where a Job waits, or in a sweep
	if plural := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; !slices.Contains(listed, plural) {
		c.Violated("four lists", "", "%s reads %s of cluster %s alone", inst.Function, r.URL.Path, path)
	}
	of := listing{inst.Number, path + r.URL.Path}
	if c.jobs.lists[of]++; c.jobs.lists[of] > mostLists {
		c.Violated("four lists", "", "%s lists %s of cluster %s %d times", inst.Function, r.URL.Path, path, c.jobs.lists[of])
	}
}

// mostLists is how often a handling begins each list of a cluster at most: once more where the rest has expired, and Jobs once more where
// a Pod runs whose Job is not listed. A sweep lists the cluster again, for what is left over in it.
const mostLists = 2 * 3

// shows checks that nothing shows the value of an environment variable.
func (c *Checks) shows(where, text string) {
	for _, s := range c.jobs.secrets {
		if strings.Contains(text, s) {
			c.Violated("no secret shown", "", "%s shows the value of an environment variable: %.200s", where, text)
		}
	}
}

// Write implements io.Writer: it reads what the functions log.
func (c *Checks) Write(line []byte) (int, error) {
	c.shows("a log line", string(line))
	return len(line), nil
}
