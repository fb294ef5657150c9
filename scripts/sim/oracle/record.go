package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/reason"
)

// ruleRecord compares the record of calls with the calls that the simulated APIs saw: every mutating call of ours is in the
// record before it arrives, and every call recorded as accepted has arrived.
const ruleRecord = "record of calls"

// arrival is one that a simulated API saw.
type arrival struct {
	method, resource, request string
	at                        time.Time
}

// written holds an object of ours beside the checkpoints against the record.
func (c *Checks) written(uri string) {
	dir, name := uri[:strings.LastIndexByte(uri, '/')], uri[strings.LastIndexByte(uri, '/')+1:]
	workload, id := "", ""
	switch name {
	case checkpoint.LeaseName:
		if l, _, err := checkpoint.ReadLease(context.Background(), c.Store, dir); err == nil && l.By == "pitstop" {
			workload, id = l.Workload, l.Incident
		}
	case checkpoint.RequestName:
		if r, err := checkpoint.ReadRequest(context.Background(), c.Store, dir); err == nil {
			workload, id = r.Workload, r.Incident
		}
	}
	if workload != "" {
		c.wrote(workload, id, arrival{method: "storage.objects.create", resource: uri, at: c.Clock.Now()})
	}
}

// wrote finds a call in the record of its incident, and keeps it. Without an ID it is the incident whose record has it.
func (c *Checks) wrote(workload, id string, call arrival) {
	r := c.record(workload)
	r.calls = append(r.calls, call)
	doc, err := c.document(workload)
	if fault.IsBusy(err) {
		return // the newer release has taken the document meanwhile
	}
	if err != nil {
		c.Violated(ruleRecord, workload, "%s of %s for a workload that cannot be read: %v", call.method, call.resource, err)
		return
	}
	told := func(in *seenIncident) bool {
		return in != nil && (id == "" || in.ID == id) && slices.ContainsFunc(in.calls(), call.is)
	}
	if told(doc.Open) || told(doc.Over) {
		return
	}
	for _, past := range r.past { // it was under way for long
		if in, err := c.archived(doc.ID, past.id); err == nil && told(in) {
			return
		}
	}
	c.Violated(ruleRecord, workload, "%s of %s (request %s) stands in no record of %s", call.method, call.resource, call.request, id)
}

// is reports whether the record tells of this call.
func (s arrival) is(c seenCall) bool {
	return c.Method == s.method && c.Resource == s.resource && (s.request == "" || c.RequestID == s.request) && !c.NotMade && !c.At.After(s.at)
}

// told checks, at the end of an incident, that the APIs saw every call recorded as accepted, and no call recorded as not
// made. Folded records stand for calls of which only the number is left.
func (c *Checks) told(workload string, in *seenIncident) {
	came := c.record(workload).calls
	for _, call := range in.calls() {
		what := fmt.Sprintf("%s of %s at %s", call.Method, call.Resource, call.At.UTC().Format(time.DateTime))
		same := func(s arrival) bool {
			return s.method == call.Method && s.resource == call.Resource && (s.request == "" || s.request == call.RequestID)
		}
		switch {
		case call.Answered.IsZero() || call.Folded > 0:
		case call.NotMade:
			if slices.ContainsFunc(came, func(s arrival) bool { return same(s) && s.request != "" }) {
				c.Violated(ruleRecord, workload, "%s is told as not made (%s), and was seen", what, call.Code)
			}
		case call.Code == "" || call.Operation != "":
			// A value that is already in place is not written again, whoever wrote it.
			if !slices.ContainsFunc(came, func(s arrival) bool { return same(s) && !s.at.Before(in.Opened) }) {
				c.Violated(ruleRecord, workload, "%s is told as accepted, and was not seen", what)
			}
		}
		if _, known := meaningOf[call.Code]; call.Code != "" && !known {
			c.Violated(ruleRecord, workload, "%s has the code %q, which means nothing", what, call.Code)
		}
	}
}

// meaningOf is the table of codes.
var meaningOf = func() map[reason.Code]string {
	all := map[reason.Code]string{}
	for _, m := range reason.Codes() {
		all[m.Code] = m.Text
	}
	return all
}()
