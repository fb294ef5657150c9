package report

import (
	"context"
	"fmt"
	"sync"

	"cloud.google.com/go/logging"
	"google.golang.org/api/option"
	mrpb "google.golang.org/genproto/googleapis/api/monitoredres"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
)

// Cloud writes lines to Cloud Logging, under the log that Pitstop's sink reads. It may be used before there are
// credentials: the client is made at the first line, and made again when that fails.
type Cloud struct {
	machine metadata.Machine
	opts    []option.ClientOption

	mu     sync.Mutex
	client *logging.Client
	logger *logging.Logger
}

// NewCloud makes a writer for the entries of this machine.
func NewCloud(m metadata.Machine, opts ...option.ClientOption) *Cloud {
	return &Cloud{machine: m, opts: opts}
}

// Send writes one line and waits until Cloud Logging has it.
func (c *Cloud) Send(ctx context.Context, l Line) error {
	logger, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("cloud logging: %w", err)
	}
	if err := logger.LogSync(ctx, logging.Entry{
		Timestamp: l.At, Severity: severity(l.Report.Report), InsertID: l.ID, Payload: l.Report,
	}); err != nil {
		if status.Code(err) == codes.InvalidArgument { // too old for the log's retention, above all
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return fmt.Errorf("cloud logging: %w", err)
	}
	return nil
}

func (c *Cloud) connect(ctx context.Context) (*logging.Logger, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logger != nil {
		return c.logger, nil
	}
	// The client outlives the call: its tokens must not depend on a context that ends with it.
	client, err := logging.NewClient(context.WithoutCancel(ctx), "projects/"+c.machine.Project, c.opts...)
	if err != nil {
		return nil, err
	}
	client.OnError = func(error) {} // LogSync returns its own
	c.client = client
	c.logger = client.Logger(events.CrewLog, logging.CommonResource(resource(c.machine)))
	return c.logger, nil
}

// resource is the machine, or the Pod, that the lines are about.
func resource(m metadata.Machine) *mrpb.MonitoredResource {
	if p := m.Pod; p.Known() {
		return &mrpb.MonitoredResource{Type: "k8s_container", Labels: map[string]string{
			"project_id": m.Project, "location": p.Location, "cluster_name": p.Cluster, "namespace_name": p.Namespace, "pod_name": p.Name,
			"container_name": metadata.Container,
		}}
	}
	return &mrpb.MonitoredResource{Type: "gce_instance", Labels: map[string]string{
		"project_id": m.Project, "zone": m.Zone, "instance_id": m.InstanceID,
	}}
}

func severity(r events.Report) logging.Severity {
	switch r {
	case events.ReportExited, events.ReportGaveUp, events.ReportRefused:
		return logging.Error
	case events.ReportNotice:
		return logging.Warning
	case events.ReportStarted, events.ReportProgress, events.ReportSaved, events.ReportFinished:
	}
	return logging.Info
}
