package recovery_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
)

// cluster is a provider that has one Job, and notes what is restarted.
type cluster struct {
	recovery.Provider
	slice     provider.Slice
	err       error
	restarted []provider.Ref
	before    time.Time
}

func (c *cluster) Read(context.Context, provider.Ref) (provider.Slice, error) { return c.slice, nil }

func (c *cluster) Restart(_ context.Context, of []provider.Ref, before time.Time) error {
	c.restarted, c.before = append(c.restarted, of...), before
	return c.err
}

// TestAGangIsRestartedAsItWasRead: in the life that the request names, while it can be used and restarts are left, and once.
func TestAGangIsRestartedAsItWasRead(t *testing.T) {
	const scope, job = "us-east5/trainers/default", "mixtral"
	for name, c := range map[string]struct {
		change   func(b *bench, c *cluster)
		restarts int
	}{
		"as it was":                 {func(*bench, *cluster) {}, 1},
		"no restart is left by now": {func(_ *bench, c *cluster) { c.slice.Restartable = false }, 0},
		"it cannot be used by now":  {func(_ *bench, c *cluster) { c.slice.Condition = incident.Unhealthy }, 0},
		"it is another life by now": {func(_ *bench, c *cluster) { c.slice.Incarnation.ID = "uid-2" }, 0},
		"everything is paused":      {func(b *bench, _ *cluster) { b.Must(b.Ledger.SetPause(b.T.Context(), &incident.Pause{By: "ada"})) }, 0},
		"its crew has done a step":  {func(b *bench, _ *cluster) { b.Change("demo/"+job, func(w *incident.Workload) { w.Epoch++ }) }, 0},
		"the cluster refuses it": {func(_ *bench, c *cluster) {
			c.err = &provider.Error{Class: incident.NotInState, Message: "no restart is left"}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{Bench: fleettest.New(t)}
			b.Fleet.Provider = provider.Set{provider.CloudTPU: b.Cloud}
			torn := b.Clock.Now()
			fake := &cluster{}
			observe := func() incident.Workload {
				b.Clock.Advance(time.Minute)
				fake.slice = provider.Slice{
					Ref: provider.Ref{Project: fleettest.Project, Zone: scope, Name: job}, At: b.Clock.Now(), Condition: incident.Ready, State: "ready", Healing: incident.HealsAlways,
					Labels: map[string]string{events.LabelPolicy: "spot"}, Directory: fleettest.Directory + "-job", Workers: 2, Chips: 8, Spec: []byte("{}"), SpecHash: "spec",
					Incarnation: events.Incarnation{Zone: scope, ID: "uid-1", Created: torn.Add(-time.Hour)}, Torn: torn, Restartable: true,
				}
				w, err := b.Fleet.Observe(t.Context(), fake.slice)
				b.Must(err)
				return w
			}
			w := observe()
			b.Clock.Advance(incident.ResumeFor)
			b.Give(w, incident.Ticked{})
			b.Clock.Advance(incident.NoGapFor)
			b.Give(w, incident.Ticked{})
			verify, _ := fleettest.One(t, b.Bench, events.DecodeCheckpointRequested)
			b.Give(w, incident.Checked{Request: verify.Request, Stale: true, Text: "the newest is older"})
			b.request = b.next()
			b.Want(b.request.Action, events.ActionRenew)
			observe()
			decided := b.request.Before
			c.change(b, fake)
			h := recovery.New(recovery.Deps{Fleet: b.Fleet, Provider: fake, Store: b.Store, Limits: ledger.DefaultLimits})
			for range 2 {
				b.Deliver(h, fleettest.Request(b.request))
			}
			if len(fake.restarted) != c.restarts {
				t.Fatalf("%v were restarted, want %d", fake.restarted, c.restarts)
			}
			if c.restarts == 1 && (fake.restarted[0].Life != "uid-1" || fake.restarted[0].Name != job || !fake.before.Equal(decided) || decided.Before(torn)) {
				t.Errorf("%+v was restarted, what is older than %v", fake.restarted, fake.before)
			}
			if in := b.Workload("demo/" + job).Incident; in == nil || slices.ContainsFunc(b.Workload("demo/"+job).Effects, func(e incident.Effect) bool { return e.Action == events.ActionRenew && name == "as it was" }) {
				t.Errorf("it is not finished: %+v", in)
			}
		})
	}
}
