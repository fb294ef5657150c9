// Package demo runs Pitstop against a simulated Google Cloud on this machine, live: the functions, an embedded Pub/Sub, the ledger in
// memory, TPUs, trainings and crews, on one clock that runs faster than the machine's.
package demo

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/sim/cloud"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Config is how a demo begins.
type Config struct {
	// Start is when its clock begins.
	Start time.Time
	// Framework is the address of the functions framework that serves the functions; empty calls them in process.
	Framework string
	// Scenario is a recorded incident to play in the place of the demo's own fleet.
	Scenario *replay.Recorded
	// Dir is a folder that keeps the ledger and the fleet from one demo to the next; empty keeps nothing. A recorded incident keeps none.
	Dir string
	// Token is the password of the cloud's calls that make something happen.
	Token string
	// CalledAs is how people call the command; "pitstop" when empty.
	CalledAs string
	// Sleep takes the place of waiting until the clock has moved on; nil waits.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Demo is a simulated deployment that somebody looks at. It is safe for concurrent use, but for Forward and Close.
type Demo struct {
	*world.World
	Cloud *cloud.Cloud
	// dir keeps the demo, if it is not empty.
	dir string
	// calledAs is how people call the command.
	calledAs string

	sleep func(ctx context.Context, d time.Duration) error
	// recorded says that the entries about what befalls the TPUs come from a record.
	recorded bool
	// acting says that an act of ours is being done. Acts are done one at a time, by whoever moves the clock.
	acting atomic.Bool

	mu sync.Mutex
	// down says of a function until when no instance of it answers.
	down map[string]time.Time
}

//go:embed fleet.yaml
var fleetFile []byte

//go:embed policy.yaml
var policyFile []byte

// prelude is how long the demo has been running when somebody looks at it first: by then patrol has seen each TPU, and each crew has
// reported.
const prelude = 20 * time.Minute

// New founds a demo. Its clock stands at the start until somebody moves it.
func New(ctx context.Context, c Config) (*Demo, error) {
	d := &Demo{dir: c.Dir, calledAs: cmp.Or(c.CalledAs, "pitstop"), sleep: c.Sleep, down: map[string]time.Time{}, recorded: c.Scenario != nil}
	played := replay.Recorded{Name: "demo", Policy: policyFile}
	store, goesOn := ledgertest.NewStore(), false
	if c.Scenario != nil {
		played = *c.Scenario
	} else {
		fleet, err := world.Parse(fleetFile)
		if err != nil {
			return nil, err
		}
		fleet.Start = c.Start.Add(-prelude)
		if goesOn, err = restore(c.Dir, store, &fleet); err != nil {
			return nil, err
		}
		played.Scenario = fleet
	}
	opts := replay.Options{Options: world.Options{Policy: played.Policy, Framework: c.Framework, Settings: true, Store: store}}
	err := replay.Begin(ctx, played.Name, played.Scenario, played.Records, opts, func(w *world.World) {
		d.World = w
		w.Hooks.Join(world.Hooks{Seen: d.seen, Intercept: d.intercept, Logged: d.logged})
	})
	if err != nil {
		return nil, err
	}
	d.Cloud = cloud.Over(cloud.Parts{
		API: d.API, Bucket: d.Bucket, Log: d.Audited, Clock: d.Clock, Token: c.Token, Maintenance: d.Maintenance(), Logged: d.written,
	})
	if c.Scenario != nil {
		return d, nil
	}
	if !goesOn {
		d.Forward(prelude)
	}
	return d, d.measure(ctx)
}

// measure keeps the speeds of two attempts of the first training, as its crew does, for a comparison.
func (d *Demo) measure(ctx context.Context) error {
	first := d.Fleet[0]
	board := peers.Board{Store: d.Store, Directory: first.Directory}
	for i, m := range []events.Measured{
		{Accelerator: "v5litepod-8", Slices: 1, GlobalBatch: 256, Steps: 400, Seconds: 4800},
		{Accelerator: first.Accelerator, Slices: 1, GlobalBatch: 512, Steps: 400, Seconds: 5050},
	} {
		rate := float64(m.GlobalBatch) * float64(m.Steps) / m.Seconds
		if err := board.SetSpeed(ctx, peers.Speed{Attempt: i + 1, ExamplesPerSecond: rate, At: d.Now(), Measured: m}); err != nil {
			return err
		}
	}
	return nil
}

// Now is the time in the demo.
func (d *Demo) Now() time.Time { return d.Clock.Now() }

// Sleep waits by the demo's clock.
func (d *Demo) Sleep(ctx context.Context, long time.Duration) error {
	if d.sleep != nil {
		return d.sleep(ctx, long)
	}
	passed := make(chan struct{})
	d.Clock.At(d.Now().Add(long), func() { close(passed) })
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Forward moves the clock on, and makes happen what is due by then.
func (d *Demo) Forward(by time.Duration) {
	until := d.Now().Add(by)
	d.Clock.Run(func() time.Time { return until }, func() bool { return true })
	d.Clock.Advance(until)
}

// beat is how often the clock of a running demo is moved.
const beat = 20 * time.Millisecond

// Run moves the clock that many times as fast as this machine's, until the context ends. After each beat it calls passed.
func (d *Demo) Run(ctx context.Context, speed float64, passed func()) {
	began, from := time.Now(), d.Now()
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		until := from.Add(time.Duration(float64(time.Since(began)) * speed))
		d.Clock.Run(func() time.Time { return until }, func() bool { return ctx.Err() == nil })
		if ctx.Err() == nil {
			d.Clock.Advance(until)
		}
		passed()
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// longestWait is longer than a function waits in a handling, which is how long patrol follows running operations.
const longestWait = time.Minute

// Close ends the demo, after the functions that are at work.
func (d *Demo) Close() error {
	d.Broker.Hold(d.Now().Add(2 * longestWait))
	d.Forward(longestWait)
	d.Clock.Close()
	var err error
	if d.dir != "" && !d.recorded {
		err = d.keep()
	}
	return errors.Join(err, d.World.Close())
}

// seen follows what befalls the TPUs. Google writes entries about it, unless a record has them.
func (d *Demo) seen(e cloudtputest.Event) {
	d.Cloud.Tell(e)
	if d.recorded && !d.acting.Load() {
		return
	}
	for _, raw := range cloudtputest.SystemEntries(e) {
		d.Audited.Write(raw)
		d.logged(raw)
	}
}

// logged has the sinks bring an entry that somebody in the demo writes. The log has those of the cloud already.
func (d *Demo) logged(raw []byte) {
	e, err := events.Read(raw)
	if e.Crew != nil {
		d.Audited.Write(raw)
	}
	d.Bring(raw, e, err, world.SinksTake)
}

// written has the sinks bring an entry that a client of the cloud has written, if it is one that they bring.
func (d *Demo) written(raw []byte) {
	if e, err := events.Read(raw); err == nil {
		d.Bring(raw, e, nil, world.SinksTake)
	}
}

// intercept answers in the place of a function that is down.
func (d *Demo) intercept(entry string, m world.Message) (status int) {
	for _, f := range world.Functions {
		if f.Entry != entry || !d.isDown(f.Name) {
			continue
		}
		if m.Topic != events.TopicTicks { // there is one each minute, and the next takes up what this one left
			d.tell("", f.Name+" does not answer; Pub/Sub keeps the message, and delivers it again")
		}
		return http.StatusServiceUnavailable
	}
	return 0
}

func (d *Demo) isDown(function string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Now().Before(d.down[function])
}

// tell adds to the story what happens beside the pipeline.
func (d *Demo) tell(slice, text string) {
	workload := ""
	if slice != "" {
		workload = d.WorkloadOf(slice)
	}
	d.Tell(world.Line{Time: d.Now(), Kind: world.Acted, Workload: workload, Incident: d.IncidentOf(workload), Text: text, Simulated: true})
}

// inTurn does something when no function is at work, and waits for it.
func (d *Demo) inTurn(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	d.Clock.At(d.Now(), func() { done <- f() })
	if d.sleep != nil { // nobody else moves the clock
		d.Forward(0)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(errors.New("the demo ends"), context.Cause(ctx))
	}
}
