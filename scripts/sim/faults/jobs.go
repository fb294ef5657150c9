package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
)

// jobHappening is one thing that may happen to a Job of a cluster, in times per Job and day: on Spot machines and on others.
type jobHappening struct {
	happening
	befall func(t *Troubles, d Dice, g *world.Gang)
	// whose says to which Jobs it happens; nil is to all.
	whose func(g *world.Gang) bool
}

var jobHappenings = []jobHappening{
	{happening{name: "machine preempted", spot: 1}, func(_ *Troubles, d Dice, g *world.Gang) {
		g.Cluster.Lose(machineOf(d, g), events.CausePreemption, d.Of("comes").magnitude(2*time.Minute, 3*time.Hour))
	}, nil},
	{happening{name: "machine broken, begins again", spot: 0.2, other: 0.3}, func(t *Troubles, d Dice, g *world.Gang) {
		m := machineOf(d, g)
		g.Cluster.Silence(m, true)
		t.after(d.Of("lasts").magnitude(2*time.Minute, 2*time.Hour), func() { g.Cluster.Hear(m) })
	}, nil},
	{happening{name: "machine broken, replaced", spot: 0.1, other: 0.2}, func(t *Troubles, d Dice, g *world.Gang) {
		m := machineOf(d, g)
		g.Cluster.Silence(m, true)
		t.after(d.Of("lasts").between(5*time.Minute, 30*time.Minute), func() {
			g.Cluster.Lose(m, events.CauseHostError, d.Of("comes").magnitude(2*time.Minute, 2*time.Hour))
		})
	}, nil},
	{happening{name: "machine silent, and its Pods go on", spot: 0.1, other: 0.2}, func(t *Troubles, d Dice, g *world.Gang) {
		m := machineOf(d, g)
		g.Cluster.Silence(m, false)
		t.after(d.Of("lasts").magnitude(time.Minute, 3*time.Hour), func() { g.Cluster.Hear(m) })
	}, nil},
	{happening{name: "machine silent for hours, and its Pods go on", other: 0.7}, func(t *Troubles, d Dice, g *world.Gang) {
		m := machineOf(d, g)
		g.Cluster.Silence(m, false)
		t.after(d.Of("lasts").magnitude(10*time.Minute, 3*time.Hour), func() { g.Cluster.Hear(m) })
	}, func(g *world.Gang) bool { return g.Policy == "returning" }},
	{happening{name: "machine maintenance announced", spot: 0.1, other: 0.4}, (*Troubles).announcedOnMachine, nil},
	{happening{name: "Pod fails", spot: 0.2, other: 0.3}, func(_ *Troubles, d Dice, g *world.Gang) {
		pods := g.Cluster.Pods(g)
		g.Cluster.Exit(g, pods[d.Of("Pod").intN(len(pods))], exitCodes[d.Of("code").intN(len(exitCodes))])
	}, nil},
	{happening{name: "Pod evicted", spot: 0.1, other: 0.1}, func(_ *Troubles, d Dice, g *world.Gang) {
		pods := g.Cluster.Pods(g)
		g.Cluster.Evict(g, pods[d.Of("Pod").intN(len(pods))])
	}, nil},
	{happening{name: "training in a Job crashes", spot: 0.3, other: 0.4}, func(_ *Troubles, d Dice, g *world.Gang) { g.Crash(exitCodes[d.intN(len(exitCodes))]) }, nil},
	{happening{name: "training in a Job hangs", spot: 0.1, other: 0.2}, func(_ *Troubles, _ Dice, g *world.Gang) { g.Hang() }, func(g *world.Gang) bool { return !g.NoCrew }},
	{happening{name: "training hangs that may be begun again", other: 0.4}, func(_ *Troubles, _ Dice, g *world.Gang) { g.Hang() }, func(g *world.Gang) bool { return g.Policy == "returning" }},
	{happening{name: "Job is complete", spot: 0.05, other: 0.05}, func(t *Troubles, _ Dice, g *world.Gang) {
		for _, one := range t.Gangs() {
			if one.Scope != g.Scope || one.Name != g.Name {
				continue
			}
			for _, pod := range one.Cluster.Pods(one) {
				one.Cluster.Exit(one, pod, 0)
			}
		}
	}, nil},
	{happening{name: "Job deleted by its owner", spot: 0.05, other: 0.05}, func(t *Troubles, d Dice, g *world.Gang) {
		g.Cluster.Delete(g.JobConfig, Owner)
		t.after(d.between(2*time.Hour, 10*time.Hour), func() { t.applyAgain(g) })
	}, nil},
	{happening{name: "Job replaced by its owner", spot: 0.05, other: 0.05}, func(t *Troubles, d Dice, g *world.Gang) {
		g.Cluster.Delete(g.JobConfig, Owner)
		t.after(d.between(5*time.Second, 2*time.Minute), func() { t.applyAgain(g) })
	}, nil},
	{happening{name: "Job replaced by its owner, and its machines are gone for hours", spot: 0.2}, (*Troubles).replacedWithoutMachines, nil},
	{happening{name: "Job suspended by its owner", spot: 0.05, other: 0.05}, func(t *Troubles, d Dice, g *world.Gang) {
		g.Cluster.Suspend(g.JobConfig, true, Owner)
		t.after(d.between(time.Hour, 6*time.Hour), func() { g.Cluster.Suspend(g.JobConfig, false, Owner) })
	}, func(g *world.Gang) bool { return g.Queue == "" }},
	{happening{name: "Job suspended by Kueue", spot: 0.2, other: 0.2}, func(t *Troubles, d Dice, g *world.Gang) {
		g.Cluster.Queued(g.JobConfig, true)
		t.after(d.magnitude(time.Minute, 6*time.Hour), func() { g.Cluster.Queued(g.JobConfig, false) })
	}, func(g *world.Gang) bool { return g.Queue != "" }},
}

// befallJob lets something happen to a Job, if all of its Pods run.
func (t *Troubles) befallJob(d Dice, h jobHappening, g *world.Gang) {
	if h.whose != nil && !h.whose(g) || !g.Up() || len(g.Cluster.Machines(g)) == 0 || len(g.Cluster.Pods(g)) == 0 {
		return
	}
	if !t.chaos.strikes("%s: %s in %s", h.name, g.Slice, g.Scope) {
		return
	}
	t.checks.Befell(h.name, g)
	h.befall(t, d, g)
}

// machineOf is one of the machines of a Job.
func machineOf(d Dice, g *world.Gang) string {
	all := g.Cluster.Machines(g)
	return all[d.Of("machine").intN(len(all))]
}

// applyAgain has the owner of a Job make it again, unless it is there.
func (t *Troubles) applyAgain(g *world.Gang) {
	if g.Job() == nil && g.Set() == nil {
		t.Try(g.Cluster.Apply(g.JobConfig, Owner))
	}
}

// replacedWithoutMachines has the owner make a Job anew, while Google takes the machines of its pool on which no other Job is, for hours.
// No incident handles that wait.
func (t *Troubles) replacedWithoutMachines(d Dice, g *world.Gang) {
	g.Cluster.Delete(g.JobConfig, Owner)
	t.after(2*time.Minute, func() { // its Pods have ended
		busy := map[string]bool{}
		for _, one := range g.Cluster.Gangs() {
			for _, m := range one.Cluster.Machines(one) {
				busy[m] = true
			}
		}
		for _, m := range g.Cluster.Names() {
			if strings.Contains(m, "-"+g.JobConfig.Pool+"-") && !busy[m] {
				g.Cluster.Lose(m, events.CausePreemption, d.Of("comes", m).between(3*time.Hour, 9*time.Hour))
			}
		}
		for _, later := range []time.Duration{time.Minute, 10 * time.Minute} { // it may still be on its way out
			t.after(later, func() { t.applyAgain(g) })
		}
	})
}

// announcedOnMachine has maintenance of a machine announced for later, by labels, by an annotation in one of its spellings, or by both.
// It may be moved, withdrawn, or take place.
func (t *Troubles) announcedOnMachine(d Dice, g *world.Gang) {
	m, c := machineOf(d, g), g.Cluster
	now := t.Clock.Now().UTC().Truncate(time.Second)
	start := now.Add(d.Of("begins").between(40*time.Minute, 12*time.Hour)).Truncate(time.Minute)
	how := d.Of("how").intN(4)
	announce := func(at time.Time) {
		labels, annotations := map[string]any{}, map[string]any{}
		if how != 1 {
			labels["cloud.google.com/scheduled-maintenance-time"] = fmt.Sprint(at.Unix())
		}
		if how == 1 || how == 2 {
			annotations["node.gke.io/upcoming-maintenance"] = fmt.Sprintf(`{"type":"SCHEDULED","canReschedule":true,"maintenanceStatus":"PENDING","windowStartTime":%q,"windowEndTime":%q}`,
				at.Format(time.RFC3339), at.Add(4*time.Hour).Format(time.RFC3339))
		}
		if how == 3 {
			annotations["node.gke.io/upcoming-maintenance"] = fmt.Sprintf(`{"type":"SCHEDULED","can_reschedule":true,"maintenance_status":"PENDING","window_start_time":%q,"window_end_time":%q}`,
				at.Format(time.RFC3339), at.Add(4*time.Hour).Format(time.RFC3339))
		}
		c.Announce(m, labels, annotations)
	}
	there := func() bool { return slices.Contains(c.Names(), m) }
	withdrawn := false
	changes := d.Of("changes").between(0, start.Sub(now)-1)
	switch d.Of("what becomes of it").intN(4) {
	case 0: // withdrawn
		t.after(changes, func() {
			if withdrawn = true; there() {
				c.Announce(m, map[string]any{"cloud.google.com/scheduled-maintenance-time": nil}, map[string]any{"node.gke.io/upcoming-maintenance": nil})
			}
		})
	case 1: // moved
		moved := start.Add(3 * time.Hour)
		t.after(changes, func() {
			if there() {
				announce(moved)
			}
		})
		start = moved
	}
	t.after(start.Sub(now)+d.Of("late").between(0, 30*time.Minute), func() {
		if withdrawn || !there() {
			return
		}
		c.Announce(m, map[string]any{"cloud.google.com/active-node-maintenance": "ONGOING"}, nil)
		t.after(d.Of("ends").between(time.Minute, 10*time.Minute), func() {
			c.Lose(m, events.CauseMaintenance, d.Of("comes").between(5*time.Minute, time.Hour))
		})
	})
	announce(start)
}

// mindJob looks at one Job, and reports whether it trains. After some hours without training, the owner creates it again.
func (p *People) mindJob(d Dice, g *world.Gang) bool {
	key := g.Scope + "/" + g.Slice
	_, trains := g.Running()
	now := p.Clock.Now()
	since, seen := p.found[key]
	hangs := trains && g.Hangs()
	switch {
	case trains && !hangs:
		delete(p.found, key)
		return true
	case !seen:
		p.found[key] = now
		return false
	case now.Sub(since) < notice || suspended(g) && !p.over:
		return false
	}
	delete(p.found, key)
	if hangs {
		p.checks.JobMends(g)
		g.Crash(137) // killed, and begun again by its crew
		return false
	}
	for _, other := range p.Gangs() { // its JobSet is made anew as a whole
		if other.Scope == g.Scope && other.Name == g.Name {
			delete(p.found, other.Scope+"/"+other.Slice)
		}
	}
	p.checks.Befell("Job made anew by its owner", g)
	g.Cluster.Delete(g.JobConfig, Owner)
	p.after(d.Of("applies").between(time.Minute, 20*time.Minute), func() { p.applyAgain(g) })
	return false
}

// suspended reports whether somebody has suspended a Job, so that it does not train.
func suspended(g *world.Gang) bool {
	j, s := g.Job(), g.Set()
	return j != nil && j.Spec.Suspend || s != nil && s.Spec.Suspend
}

// statuses are how the API server of a cluster refuses a call.
var statuses = []struct {
	code            int
	reason, message string
}{
	{http.StatusUnauthorized, "Unauthorized", "Unauthorized"},
	{http.StatusForbidden, "Forbidden", `is forbidden: User "pitstop" cannot list resource at the cluster scope`},
	{http.StatusTooManyRequests, "TooManyRequests", "the server has received too many requests and has asked us to try again later"},
	{http.StatusInternalServerError, "InternalError", "Internal error occurred: etcdserver: request timed out"},
	{http.StatusServiceUnavailable, "ServiceUnavailable", "apiserver not ready"},
	{http.StatusGatewayTimeout, "Timeout", "the server was unable to return a response in the time allotted"},
}

// kubernetes makes the API server of a cluster fail for the functions. asks is told of each call.
func (c *Chaos) kubernetes(path string, inner http.RoundTripper, asks func(path string, r *http.Request)) http.RoundTripper {
	return world.RoundTripper(func(r *http.Request) (*http.Response, error) {
		inst := world.InstanceOf(r.Context())
		if inst == nil {
			return inner.RoundTrip(r)
		}
		asks(path, r)
		token := r.URL.Query().Get("continue")
		part := "the first part"
		if token != "" {
			part = "the rest"
		}
		what := fmt.Sprintf("%s %s of cluster %s", r.Method, r.URL.Path, path)
		d := call(inst, "kubernetes", path, r.Method, r.URL.Path, part)
		if err := c.effect(r.Context(), d, what); err != nil {
			return nil, err
		}
		switch {
		case token != "" && c.happens(d.Of("expired"), c.APIUnreachable, "the rest of %s has expired", what):
			return statusAnswer(r, http.StatusGone, "Expired", "The provided continue parameter is too old to display a consistent list result."), nil
		case c.happens(d.Of("refused"), c.APIRefused, "%s is refused", what):
			s := statuses[d.Of("how refused").intN(len(statuses))]
			return statusAnswer(r, s.code, s.reason, s.message), nil
		case c.happens(d.Of("lost"), c.APILost, "%s never arrives", what):
			return nil, errDown
		}
		res, err := inner.RoundTrip(r)
		if err != nil {
			return res, err
		}
		if c.happens(d.Of("answer lost"), c.APIAnswerLost, "the answer to %s is lost", what) {
			return nil, errors.Join(errDown, res.Body.Close())
		}
		if err := c.effect(r.Context(), d.Of("answer"), "the answer to "+what); err != nil {
			return nil, errors.Join(err, res.Body.Close())
		}
		return res, nil
	})
}

// statusAnswer is a refusal of a call by an API server.
func statusAnswer(r *http.Request, code int, reason, message string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(strings.TrimSpace(body)))),
	}
}
