package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"gocloud.dev/docstore/memdocstore"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/trigger"
)

const project = "demo"

// listener is the function logevent over a ledger and a simulated cloud, on the real clock.
type listener struct {
	api      *cloudtputest.API
	ledger   *ledger.Ledger
	fleet    *fleet.Fleet
	function *trigger.Adapter
}

// memory opens collections in this process.
func memory(context.Context, string) (ledger.Collection, error) {
	c, err := memdocstore.OpenCollection("ID", nil)
	return ledger.Docstore(c), err
}

func newListener(ctx context.Context, open ledger.Opener, publisher ledger.Publisher, saved func()) (*listener, error) {
	api := cloudtputest.New(cloudtputest.Config{
		Project: project, Clock: cloudtputest.NewManualClock(time.Now().Add(-time.Hour)), Zones: map[string]int{zone: cloudtputest.Unlimited},
	})
	cloud, err := cloudtpu.New(ctx, option.WithHTTPClient(&http.Client{Transport: api.Transport()}), option.WithoutAuthentication())
	if err != nil {
		return nil, err
	}
	l := ledger.New(open)
	log := slog.New(slog.DiscardHandler)
	f := &fleet.Fleet{Ledger: l, Secrets: ledger.NewSecrets(open), Provider: cloud, Now: time.Now, Log: log, Advancer: &ledger.Advancer{
		Ledger: l, Policies: policy.NewSource("", nil, policy.Everything(), time.Now), Publisher: publisher, Now: time.Now, Sleep: ledger.Sleep,
		Source: "//pitstop/functions/logevent", Cause: trigger.MessageID, Log: log,
		Saved: func(context.Context, ledger.Step) { saved() },
	}}
	return &listener{
		api: api, ledger: l, fleet: f,
		function: &trigger.Adapter{
			Name: "HandleLogEvent", Log: log, Drain: trigger.NewDrain(func() {}),
			Handle: logevent.New(logevent.Deps{Fleet: f, Projects: []string{project}, Accounts: events.Accounts{Ours: []string{"pitstop@demo.iam.gserviceaccount.com"}}}),
		},
	}, nil
}

const zone = "us-west4-a"

// slice puts a Spot slice there and makes it known.
func (w *listener) slice(ctx context.Context, i int, accelerator string) (name string, err error) {
	name = fmt.Sprintf("llama-%d", i)
	_, err = w.api.AddNode(cloudtputest.NodeConfig{
		Zone: zone, Name: name, Accelerator: accelerator, Spot: true, Group: group(i), Labels: map[string]string{events.LabelPolicy: "spot"},
		Metadata: map[string]string{
			events.MetadataCheckpointDir: "gs://demo-checkpoints/" + name, "startup-script": "pitcrew run -- python3 train.py",
		},
	})
	if err != nil {
		return "", err
	}
	s, err := w.fleet.Provider.Read(ctx, provider.Ref{Project: project, Zone: zone, Name: name})
	if err != nil {
		return "", err
	}
	doc, err := w.fleet.Observe(ctx, s)
	if err != nil {
		return "", err
	}
	_, err = w.fleet.MapGroup(ctx, doc, *doc.Slice(name), group(i))
	return name, err
}

func group(i int) string { return fmt.Sprintf("t1v-n-%08x", i+1) }

// preempted is the push body of an entry about one worker.
func preempted(i, worker int) []byte { return preemptedIn(zone, i, worker) }

func preemptedIn(zone string, i, worker int) []byte {
	at := time.Now().UTC().Format(time.RFC3339Nano)
	entry := fmt.Sprintf(`{"protoPayload":{"@type":"type.googleapis.com/google.cloud.audit.AuditLog","status":{},"authenticationInfo":{"principalEmail":"system@google.com"},
"requestMetadata":{"requestAttributes":{},"destinationAttributes":{}},"serviceName":"compute.googleapis.com","methodName":"compute.instances.preempted",
"resourceName":"projects/%s/zones/%s/instances/%s-w-%d","request":{"@type":"type.googleapis.com/compute.instances.preempted"}},"insertId":"i%d-%d",
"resource":{"type":"gce_instance","labels":{"instance_id":"%d","zone":"%s","project_id":"%s"}},"timestamp":"%s","severity":"INFO",
"logName":"projects/%s/logs/cloudaudit.googleapis.com%%2Fsystem_event","operation":{"id":"systemevent-%d","producer":"compute.instances.preempted","first":true,"last":true},
"receiveTimestamp":"%s"}`, project, zone, group(i), worker, i, worker, i*2000+worker, zone, project, at, project, i, at)
	return body(entry, fmt.Sprintf("m%d-%d", i, worker))
}

func body(data, id string) []byte {
	return world.PushBody("projects/demo/subscriptions/logevent", world.Message{ID: id, Data: []byte(data), Published: time.Now()}, 1)
}
