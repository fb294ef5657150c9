package faults

import (
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/publish"
)

// forged makes somebody who may write to a log write a false line: a copy of Google's own entries, or that the training of a
// slice has ended. Where incidents themselves are struck, the line may also tell of numbers that nobody has reached.
func (t *Troubles) forged(d Dice, c world.SliceConfig, zone string) error {
	state, crew := t.Trainings[c.Name].State()
	line := events.CrewReport{
		Schema: events.Schema, Project: t.Project, Zone: zone, Node: c.Name, Attempt: max(1, state.Attempt), Step: state.Step,
	}
	if crew && t.sim.Faults.Aimed > 0 {
		t.wildLines(d.Of("wild"), line, c)
	}
	seq := d.bits()
	if numbers := d.Of("numbers"); crew && t.sim.Faults.Aimed > 0 && numbers.intN(2) == 0 {
		t.forgedNumbers(numbers, line)
		return nil
	}
	switch kind := seq % 4; {
	case crew && kind == 0:
		line.Report, line.Reason = events.ReportFinished, "exit 0"
		t.Logged(trainingtest.CrewEntry(line, t.Clock.Now(), int(seq>>32)))
	case crew && kind == 1:
		line.Report, line.Reason = events.ReportGaveUp, "no restart is left"
		t.Logged(trainingtest.CrewEntry(line, t.Clock.Now(), int(seq>>32)))
	default:
		for _, raw := range cloudtputest.SystemEntries(cloudtputest.Event{
			Time: t.Clock.Now(), Kind: cloudtputest.Lost, Seq: seq, Project: t.Project, Zone: zone, Node: c.Name, Group: c.Workers, Workers: 1,
			Cause: events.CausePreemption,
		}) {
			t.Logged(edited(raw, func(entry map[string]any) { entry["logName"] = "projects/" + t.Project + "/logs/training" }))
		}
	}
	return nil
}

// forgedNumbers makes somebody write that an attempt has begun or failed which nobody has asked for, or that checkpoints stand which nobody
// has made. The steps are too low to end an incident: the README says that lines can do that.
func (t *Troubles) forgedNumbers(d Dice, line events.CrewReport) {
	const wild = 1 << 60
	times := 1
	line.Step = 0
	switch line.Report = events.ReportStarted; d.Of("kind").intN(5) {
	case 0:
		line.Attempt++
		times = 15
	case 1:
		line.Attempt = events.MaxAttempt
	case 2:
		line.Report, line.ExitCode = events.ReportExited, 1
		line.Attempt += 500
	case 3:
		line.Report, line.CheckpointStep = events.ReportProgress, wild
		line.Attempt += 500
	case 4:
		line.Report, line.CheckpointStep = events.ReportProgress, wild
	}
	for n := range times {
		t.after(time.Duration(n)*time.Minute, func() { t.Logged(trainingtest.CrewEntry(line, t.Clock.Now(), int(d.nth(n).bits()>>32))) })
	}
}

// forgesRequest has somebody who may publish on a topic point to the effect of a request that was just sent, in a body that asks
// for something else. Theirs arrives first as often as not.
func (c *Chaos) forgesRequest(w *world.World, e events.Envelope, topic string) {
	if !events.IsRequest(e.Type) {
		return
	}
	d := c.dice.Of("forged request", e.ID)
	if !c.happens(d, c.Forged, "a forged %s beside the one that was sent", e.Type) {
		return
	}
	zones := w.Zones()
	other := zones[d.Of("zone").intN(len(zones))]
	e.ID = events.ID(e.ID, "forged")
	e.Data = edited(e.Data, func(body map[string]any) {
		replace := func(key string, with any) {
			if _, there := body[key]; there {
				body[key] = with
			}
		}
		replace("zone", other)
		replace("spec", strings.Repeat("0", 64))
		replace("training_attempt", 1000)
		replace("directory", "gs://checkpoints/somebody-else")
		replace("incarnation", map[string]any{"zone": other, "id": "1", "created": w.Clock.Now().UTC().Format(time.RFC3339)})
		body["expires"] = w.Clock.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
		body["reason"] = "forged"
	})
	w.Publish(world.Message{Topic: topic, Data: e.Data, Attributes: publish.Attributes(e)})
}
