package show

import (
	"errors"
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/checkpoint"
)

// TestCheckReadsWhoseLeaseLiesThere: of another workload, though the ledger does not know it; or none, though a crew trains.
func TestCheckReadsWhoseLeaseLiesThere(t *testing.T) {
	for name, c := range map[string]struct {
		lease func(l *checkpoint.Lease)
		says  []string
		stops bool
	}{
		"ours":                               {func(*checkpoint.Lease) {}, nil, false},
		"a crew's, named after our node":     {func(l *checkpoint.Lease) { l.Epoch, l.Workload = 0, "demo/node" }, nil, false},
		"a crew's, of a namesake in another": {func(l *checkpoint.Lease) { l.Epoch, l.Workload = 0, "prod/llama-8b" }, []string{"stop      lease: gs://ckpt/llama-8b/pitstop-lease.json is that of prod/llama-8b", "you: give each workload a directory of its own, or delete this object if prod/llama-8b has ended"}, true},
		"Pitstop's, of another workload":     {func(l *checkpoint.Lease) { l.Workload = "demo/other" }, []string{"stop      lease: gs://ckpt/llama-8b/pitstop-lease.json is that of demo/other"}, true},
		"none":                               {nil, []string{"warn      lease: there is no gs://ckpt/llama-8b/pitstop-lease.json, though a crew trains: somebody or a lifecycle rule"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
			if c.lease != nil {
				l := checkpoint.Lease{
					Workload: "demo/llama-8b", Epoch: 1, Attempt: 2, Written: deploymenttest.Noon, By: "pitstop",
					Admitted: []events.Admission{{Slice: "llama-8b", Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: "t1v-n-1"}},
				}
				c.lease(&l)
				if err := checkpoint.WriteLease(t.Context(), b.Checkpoints, "gs://ckpt/llama-8b", l); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.Call("check", "llama-8b")
			if (err != nil) != c.stops || err != nil && !errors.Is(err, cli.ErrFailed) {
				t.Errorf("it ends with %v:\n%s", err, got)
			}
			if deploymenttest.WantText(t, got, c.says...); c.says == nil && strings.Contains(got, " lease: ") {
				t.Errorf("it says:\n%s", got)
			}
		})
	}
}
