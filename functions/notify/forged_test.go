package notify_test

import (
	"slices"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/functions/notify"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// TestAnUpdateIsAPointer: whatever an update says besides workload and incident, people get the state in the ledger.
func TestAnUpdateIsAPointer(t *testing.T) {
	u := escalated("llama")
	told := func(t *testing.T, body []byte) []string {
		t.Helper()
		r := newReceiver(t)
		d := newDesk(t, 20, slack(r), webhook(r), func(*desk) notify.Target { return notify.NewChat(r.URL + "/chat") })
		d.reach(u)
		message := fleettest.Request(u)
		if err := message.SetData(cloudevents.ApplicationJSON, body); err != nil {
			t.Fatal(err)
		}
		d.bring(message)
		var all []string
		for i, q := range r.got {
			all = append(all, q.URL.Path+" "+q.Header.Get("Webhook-Id")+" "+string(r.bodies[i]))
		}
		slices.Sort(all)
		return all
	}
	want := told(t, fleettest.Request(u).Data())
	if len(want) != 3 {
		t.Fatalf("the update as it was sent tells %q, want each of three targets told", want)
	}
	inPointer := fleettest.Fields[events.IncidentPointer]()
	for _, f := range fleettest.Forgeries(t, u) {
		t.Run(f.Field+" "+f.What, func(t *testing.T) {
			want := want
			if inPointer[f.Field] {
				want = nil
			}
			if d := cmp.Diff(want, told(t, f.Body)); d != "" {
				t.Errorf("%s (-want +got):\n%s", f.Body, d)
			}
		})
	}
}

// TestAnIncidentThatNobodyKnowsIsNotTold, whatever the message says of it.
func TestAnIncidentThatNobodyKnowsIsNotTold(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 20, slack(r))
	u := escalated("llama")
	check := func() {
		t.Helper()
		if got := d.bring(fleettest.Request(u)); got != fleettest.Ignored || len(r.take(t)) != 0 {
			t.Errorf("an update of %s %s is %s", u.Workload, u.Incident, got)
		}
	}
	check()
	d.reach(u)
	u.Incident = "llama-20260301-2"
	check()
	u.Incident = "mixtral-20260301-1"
	check()
}

// TestAnOlderMessageTellsTheNewestStep: the ledger has gone on since, and the message of that finds it told.
func TestAnOlderMessageTellsTheNewestStep(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 20, slack(r))
	steps := course("llama")
	d.reach(steps[2])
	d.want(steps[0], fleettest.Handled)
	d.want(steps[1], fleettest.Ignored)
	d.want(steps[2], fleettest.Ignored)
	const newest = "preemption of demo/llama: it is back, waiting for training to progress"
	if got := r.take(t); len(got) != 1 || got[0]["text"] != newest {
		t.Errorf("told %v, want the newest step alone", got)
	}
	d.want(steps[3], fleettest.Handled)
}

// TestAPhaseThatPassesIsNotTold: a message comes before its step, and that step tells.
func TestAPhaseThatPassesIsNotTold(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 20, slack(r))
	d.save(struck("llama").w, ledger.Revision{})
	steps := course("llama")
	if got := d.bring(fleettest.Request(steps[0])); got != fleettest.Ignored || len(r.take(t)) != 0 {
		t.Errorf("it looks, and that is %s", got)
	}
	d.want(steps[0], fleettest.Handled)
}

// TestAnIncidentIsToldFromWhereItStands: in the outbox while it waits to be archived, and in the archive.
func TestAnIncidentIsToldFromWhereItStands(t *testing.T) {
	p := struck("llama")
	p.comesBack()
	u := p.waits()
	over := p.w.Closed
	p.reads(evidence.Lost, "PREEMPTED") // a later incident of the same workload
	next := p.w
	if next.Incident == nil {
		t.Fatal("no incident is opened")
	}
	next.Closed = nil
	ended := events.IncidentClosed{
		Schema: events.Schema, Workload: u.Workload, Incident: u.Incident, Outcome: u.Outcome, Revision: 1,
	}
	archived, err := events.Wrap(ended, "//test", "", u.Incident, u.At)
	if err != nil {
		t.Fatal(err)
	}
	archived.Data = fleettest.JSON(t, over)
	for name, where := range map[string]func(d *desk){
		"in the outbox":  func(*desk) { next.Outbox = []events.Envelope{archived} },
		"in the archive": func(d *desk) { next.Outbox = nil; archive(d, u.Workload, *over) },
	} {
		r := newReceiver(t)
		d := newDesk(t, 20, slack(r))
		where(d)
		d.save(next, ledger.Revision{})
		if got := d.bring(fleettest.Request(u)); got != fleettest.Handled {
			t.Errorf("%s: it is %s", name, got)
		}
		// What the slices do now is no longer what that incident left.
		if got := r.take(t); len(got) != 1 || got[0]["text"] != "A person is needed: preemption of demo/llama" {
			t.Errorf("%s: told %v", name, got)
		}
	}
}

// TestWhatWasToldLongAgoIsNotToldAgain: a forged update names an incident that nobody remembers having told.
func TestWhatWasToldLongAgoIsNotToldAgain(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 20, slack(r))
	u := escalated("llama")
	d.reach(u)
	d.clock.Advance(ledger.KeepTold)
	d.want(u, fleettest.Ignored)
	if got := r.take(t); got != nil {
		t.Errorf("told %v", got)
	}
}

func archive(d *desk, workload string, in incident.Incident) {
	d.t.Helper()
	if err := d.truth.SaveClosed(d.t.Context(), incident.Workload{ID: workload}, in); err != nil {
		d.t.Fatal(err)
	}
}
