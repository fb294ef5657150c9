package oracle

import (
	"encoding/json"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger/ledgertest"
)

// Rule 9, the brake: what destroys takes a slot of the hour first, and there are only so many.

// brakes follows the slots that are taken.
func (c *Checks) brakes(call ledgertest.Call) {
	var s struct {
		Taken []string `json:"taken"`
	}
	if !call.Write || json.Unmarshal([]byte(call.Body()), &s) != nil {
		return
	}
	for _, id := range s.Taken {
		c.taken[id] = true
	}
	if len(s.Taken) > c.Opts.Limits.Project {
		c.Violated("9 brake", "", "%d slots are taken, and there are %d", len(s.Taken), c.Opts.Limits.Project)
	}
}

// brakedDeletion checks that a deletion of a slice that was there has taken a slot.
func (c *Checks) brakedDeletion(k call) {
	if strings.HasPrefix(k.Method, "Delete") && k.looked && k.read.State != "gone" && !c.taken[k.RequestID] {
		c.Violated("9 brake", k.doc.ID, "%s was deleted without a slot of the brake", k.slice)
	}
}

// brakedRequest checks that a call about a slice in a cluster has taken a slot: such a call carries no ID.
func (c *Checks) brakedRequest(doc seen, does events.Action, slice, what string) {
	if !doc.asks(func(r seenRequest) bool {
		return r.Action == does && (slice == "" || r.concerns(slice)) && c.taken[r.ID]
	}) {
		c.Violated("9 brake", doc.ID, "%s without a slot of the brake", what)
	}
}
