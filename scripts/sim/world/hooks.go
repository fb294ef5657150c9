package world

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/notify"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Hooks are all that is hung into a world: faults, a judge, and what somebody breaks on purpose or watches. One that is nil changes nothing. Those
// of the options come first, and others join them before the world is founded.
type Hooks struct {
	// Luck is that of a message from its publication on.
	Luck func(m Message) Luck
	// Handler stands before a function: it changes the push request that the function is handed, or its answer.
	Handler func(function string, next http.Handler) http.Handler
	// Provider, Store and Policies stand between a function and its services.
	Provider func(function string, next provider.Provider) provider.Provider
	Store    func(next Buckets) Buckets
	Policies func(function string, next ledger.Policies) ledger.Policies
	// Cloud, Bucket, Audit, Ledger and Publication stand between the functions and what they call. The ledger has several databases. API stands
	// before the Cloud TPU API except for legacy nodes, which takes the calls over the wire.
	Cloud         cloudtputest.Around
	API           func(next http.RoundTripper) http.RoundTripper
	Bucket, Audit func(next http.RoundTripper) http.RoundTripper
	Ledger        func(database string, next ledger.Opener) ledger.Opener
	Publication   func(ctx context.Context, e events.Envelope, next func()) error
	// Decide takes the place of incident.Advance. The judge makes each decision again, so Decide must not remember anything. Reads leaves out
	// what somebody has to go and read, and Limits changes those of the brake that the functions are configured with.
	Decide ledger.Decision
	Reads  func(all incident.Reads) incident.Reads
	Limits func(ledger.Limits) ledger.Limits
	// Intercept answers a delivery in the place of a function; 0 leaves it to the function.
	Intercept func(entry string, m Message) (status int)
	// Logged brings an entry of the simulated world to the pipeline, in the place of the sinks.
	Logged func(raw []byte)
	// Struck is how many faults there were by now.
	Struck func() int

	// Kubernetes stands between the functions and the API server of a cluster, whose path is LOCATION/CLUSTER.
	Kubernetes func(path string, next http.RoundTripper) http.RoundTripper
	// Ours is called after each call of the pipeline about a Job or JobSet that took effect. It gets the body, and what was in the
	// cluster right before.
	Ours func(ctx context.Context, c *Cluster, j JobConfig, what string, sent []byte, before gke.Objects)
	// Marked is called after each such call about a machine.
	Marked func(ctx context.Context, c *Cluster, machine string, sent map[string]any, before gke.Objects)
	// Cluster is called after a change in a cluster, and Taken when Google takes one of its machines away. Acted is called when somebody
	// does something with a Job or JobSet.
	Cluster func(c *Cluster)
	Taken   func(c *Cluster, machine string, why events.Cause)
	Acted   func(c *Cluster, j JobConfig, what, by string)

	// Seen gets each event in the cloud, before it has any effect here. Unlike Observed it leaves the log as it is.
	Seen func(e cloudtputest.Event)

	// Sent gets each request, Delivered each delivery, and Said each word of a person. Saved gets each decision that is stored, with what the
	// document showed before it and shows after it.
	Sent      func(e events.Envelope, topic string)
	Delivered func(sub string, m Message, status int)
	Saved     func(s ledger.Step, was, is view.Workload)
	Said      func(workload string, e evidence.Evidence)
	// Failed gets the class of each failed call, and Observed each event in the cloud. Changed gets each object that is written.
	// Committed gets the checkpoint with which a training begins.
	Failed    func(class reason.FailureClass)
	Observed  func(e cloudtputest.Event)
	Changed   func(bucket, name string)
	Committed func(directory, step string)

	// Called gets each call of an API that a function makes; with it a canary is written every day. Told gets each line of the story as it is
	// written, and Ended each incident that ends, with its lines; without them both wait for the story.
	Called func(Call)
	Told   func(Line)
	Ended  func(Result, []Line)
	// Tell are the targets that the function notify tells, over the ledger and the clock of the scenario; without any it tells nobody.
	Tell func(now func() time.Time) []notify.Target
}

// Join adds the hooks that others are. Before the ledger and before clusters both may stand, and the first ones stay nearer to the caller. In
// any other place a second one would silence the first, so there only one may be.
func (h *Hooks) Join(others Hooks) {
	if first, second := h.Ledger, others.Ledger; first != nil && second != nil {
		others.Ledger = func(database string, next ledger.Opener) ledger.Opener {
			return first(database, second(database, next))
		}
		h.Ledger = nil
	}
	if first, second := h.Kubernetes, others.Kubernetes; first != nil && second != nil {
		others.Kubernetes = func(path string, next http.RoundTripper) http.RoundTripper { return first(path, second(path, next)) }
		h.Kubernetes = nil
	}
	to, from := reflect.ValueOf(h).Elem(), reflect.ValueOf(others)
	for i := range from.NumField() {
		switch {
		case from.Field(i).IsNil():
		case !to.Field(i).IsNil():
			panic("two hooks " + from.Type().Field(i).Name + " in one world")
		default:
			to.Field(i).Set(from.Field(i))
		}
	}
}

// Decision is how the pipeline decides.
func (h Hooks) Decision() ledger.Decision {
	if h.Decide == nil {
		return incident.Advance
	}
	return h.Decide
}

// Buckets is what functions read and write checkpoint directories through.
type Buckets interface {
	checkpoint.Store
	checkpoint.Locator
}

// through is a service behind a hook, if there is one.
func through[T any](hook func(next T) T, next T) T {
	if hook == nil {
		return next
	}
	return hook(next)
}

// throughOf is likewise the service of a function, or in a place that the hook tells apart by name.
func throughOf[T any](hook func(name string, next T) T, name string, next T) T {
	if hook == nil {
		return next
	}
	return hook(name, next)
}

// Luck is what befalls one delivery of a message.
type Luck interface {
	// Latency is the time from publication to delivery.
	Latency(m Message, usual time.Duration) time.Duration
	// Twin is the luck of a second copy, if the message comes twice.
	Twin(m Message) (luck Luck, comes bool)
	// Again is the luck of another delivery after that time, if an acknowledged message comes again.
	Again(m Message) (luck Luck, after time.Duration, comes bool)
	// Next is the luck of the next delivery, Redriven that of the first one after the dead letters, with the time until then.
	Next() Luck
	Redriven() (luck Luck, after time.Duration)
}

type luckKey struct{}

// luckOf is the luck of the delivery that is handled.
func luckOf(ctx context.Context) Luck {
	l, _ := ctx.Value(luckKey{}).(Luck)
	return l
}
