package faults

import (
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// wildLines has the same somebody write much more: a host that the slice does not have, nodes that nobody has, and again and again that
// the crew gave up, or that maintenance is pending which the API does not show.
func (t *Troubles) wildLines(d Dice, line events.CrewReport, c world.SliceConfig) {
	seq := int(d.bits() >> 40)
	write := func(r events.CrewReport) {
		seq++
		t.Logged(trainingtest.CrewEntry(r, t.Clock.Now(), seq))
	}
	host := line
	host.Report, host.Hostname = events.ReportStarted, "t1v-n-ffffffff-w-0"
	write(host)
	for n := range 20 {
		node := line
		node.Report, node.Node = events.ReportStarted, fmt.Sprintf("nobody-%d", n)
		write(node)
	}
	again := line
	again.Report, again.Reason = events.ReportGaveUp, "no restart is left"
	pending := d.Of("pending").intN(2) == 0
	for n := range 4 {
		t.after(time.Duration(n+1)*15*time.Minute, func() {
			r := again
			state, _ := t.Trainings[c.Name].State()
			r.Attempt, r.Step = max(1, state.Attempt), state.Step
			if pending {
				start := t.Clock.Now().Add(20 * time.Minute)
				r.Report, r.Notice = events.ReportNotice, &events.Notice{Status: events.NoticePending, WindowStart: start, WindowEnd: start.Add(time.Hour)}
			}
			write(r)
			t.checks.Happened("forged lines", c.Name)
		})
	}
}
