package world

import (
	"context"
	"net/http"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
)

// Hooks are where faults and a judge attach to a world. One that is nil changes nothing.
type Hooks struct {
	// Luck is that of a message from its publication on.
	Luck func(m Message) Luck
	// Provider, Bucket, Audit, Ledger and Publication stand between the functions and what they call.
	Provider      cloudtputest.Around
	Bucket, Audit func(next http.RoundTripper) http.RoundTripper
	Ledger        func(next ledger.Opener) ledger.Opener
	Publication   func(ctx context.Context, e events.Envelope, next func()) error
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

	// Sent is told of each request, Delivered of each delivery, Saved of each decision that is stored, and Said of a person's word.
	Sent      func(e events.Envelope, topic string)
	Delivered func(sub string, m Message, status int)
	Saved     func(s ledger.Step)
	Said      func(workload string, e incident.Evidence)
	// Failed gets the class of each failed call, and Observed each event in the cloud. Changed gets each object that is written.
	// Committed gets the checkpoint with which a training begins.
	Failed    func(class incident.FailureClass)
	Observed  func(e cloudtputest.Event)
	Changed   func(bucket, name string)
	Committed func(directory, step string)
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
