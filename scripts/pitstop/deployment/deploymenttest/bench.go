// Package deploymenttest is a deployment for the tests of the verbs: its ledger in memory, what was published, and TPUs.
package deploymenttest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
)

// Noon is the time on the clock of a bench.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Bench is a deployment in the tests: its ledger, what was published on its topics, and the TPUs' labels.
type Bench struct {
	deployment.Deployment
	T      *testing.T
	Ledger *ledger.Ledger
	// Sent are the events published, told those that tell people; down keeps all others from being so, mute the latter.
	Sent, Told []events.Envelope
	Down, Mute error
	// Labels are set by node; refuses says why one cannot be.
	Labels  map[string]string
	Refuses map[string]error
	// Shown are the slices that the API shows, besides those that it shows as the ledger knows them. Absent names those that it does not show.
	// Hidden is why it shows none, and asked are the zones that were listed.
	Shown  []provider.Slice
	Absent []string
	Hidden error
	Asked  []string
	// Unreached says that a listing has not all nodes, unreachedLegacy that it has not all legacy nodes.
	Unreached, UnreachedLegacy bool
	// Simulated are the nodes that met a maintenance event.
	Simulated []string
}

// Publish implements ledger.Publisher.
func (b *Bench) Publish(_ context.Context, e events.Envelope) error {
	tells := e.Type == events.TypeIncidentUpdated
	switch {
	case b.Down != nil:
		return b.Down
	case tells && b.Mute != nil:
		return b.Mute
	case tells:
		b.Told = append(b.Told, e)
		return nil
	}
	b.Sent = append(b.Sent, e)
	return nil
}

// SetLabel implements cloud.
func (b *Bench) SetLabel(_ context.Context, r provider.Ref, key, value string) error {
	if err := b.Refuses[r.Name]; err != nil {
		return err
	}
	b.Labels[r.String()+" "+key] = value
	return nil
}

// List implements tpus.
func (b *Bench) List(_ context.Context, project, zone string) (l provider.Listing, err error) {
	b.Asked = append(b.Asked, project+"/"+zone)
	l.Partial, l.Legacy = b.Unreached, !b.UnreachedLegacy
	at := func(s provider.Slice) bool { return s.Project == project && s.Zone == zone }
	for _, s := range b.Shown {
		if at(s) {
			l.Slices = append(l.Slices, s)
		}
	}
	all, err := b.Ledger.Workloads(b.T.Context())
	for _, w := range all {
		for _, s := range w.Shown(Noon).Slices {
			is := provider.Slice{Ref: provider.Ref{Project: w.Project, Zone: s.Zone, Name: s.Name}}
			i := slices.IndexFunc(l.Slices, func(o provider.Slice) bool { return o.Name == s.Name })
			switch {
			case !at(is) || slices.Contains(b.Absent, s.Name):
				continue
			case i < 0:
				i, l.Slices = len(l.Slices), append(l.Slices, is)
			case l.Slices[i].State != "":
				continue
			}
			l.Slices[i].Condition, l.Slices[i].State, l.Slices[i].Incarnation = s.Condition, s.State, s.Incarnation
		}
	}
	return l, errors.Join(err, b.Hidden)
}

// Simulate implements cloud.
func (b *Bench) Simulate(_ context.Context, r provider.Ref) (string, error) {
	b.Simulated = append(b.Simulated, r.String())
	return "operation-1", b.Refuses[r.Name]
}

// EachStore runs a test on a ledger in memory, and on one in Firestore's emulator where that is wanted.
func EachStore(t *testing.T, test func(t *testing.T, open ledger.Opener)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, ledgertest.NewStrictStore().Open) })
	t.Run("Firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", publishtest.Emulator(t, publishtest.Firestore))
		test(t, ledger.Firestore("operate-"+uuid.NewString()[:8], ledger.Database))
	})
}

// New is a deployment whose ledger holds these workloads. Its patrol ticked 20 seconds ago.
func New(t *testing.T, open ledger.Opener, all ...incident.Workload) *Bench {
	t.Helper()
	l := ledger.New(open)
	for _, w := range all {
		if _, err := l.Save(t.Context(), w, ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
		if err := l.SavePulse(t.Context(), w.Project, ledger.Pulse{Ticked: Noon.Add(-20 * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &Bench{T: t, Ledger: l, Labels: map[string]string{}, Refuses: map[string]error{}}
	b.Deployment = deployment.Deployment{
		OpenLedger: func(string, string) *ledger.Ledger { return l }, Publisher: func(publish.Topics) ledger.Publisher { return b },
		OpenNodeEditor: func(context.Context) (deployment.NodeEditor, error) { return b, nil },
		OpenNodeLister: func(context.Context, []string) (deployment.NodeLister, error) { return b, nil },
		Checkpoints:    checkpoint.Mux{},
		Caller:         func(context.Context) string { return "ada@example.com" }, Now: func() time.Time { return Noon },
	}
	return b
}

// Allows has the deployment say what it allows.
func (b *Bench) Allows(list string) {
	b.T.Helper()
	if err := b.Ledger.SaveSettings(b.T.Context(), ledger.Settings{Policy: policy.Config{Allow: list}}); err != nil {
		b.T.Fatal(err)
	}
}

// Workload is how the workload of the tests stands in the ledger.
func (b *Bench) Workload() incident.Workload {
	b.T.Helper()
	w, _, err := b.Ledger.Workload(b.T.Context(), LlamaID)
	if err != nil {
		b.T.Fatal(err)
	}
	return w
}

// Change changes the workload of the tests behind everybody's back.
func (b *Bench) Change(f func(*incident.Workload)) {
	b.T.Helper()
	w, rev, err := b.Ledger.Workload(b.T.Context(), LlamaID)
	if err != nil {
		b.T.Fatal(err)
	}
	f(&w)
	if _, err := b.Ledger.Save(b.T.Context(), w, rev); err != nil {
		b.T.Fatal(err)
	}
}

// Want calls a verb, which has to say all of that.
func (b *Bench) Want(args []string, says ...string) {
	b.T.Helper()
	got, err := b.Call(args...)
	if err != nil {
		b.T.Fatalf("%v: %v\n%s", args, err, got)
	}
	WantText(b.T, got, says...)
}

// Refused calls a verb, which has to be refused as wrong usage for that reason.
func (b *Bench) Refused(args []string, why string) {
	b.T.Helper()
	var wrong cli.UsageError
	if got, err := b.Call(args...); !errors.As(err, &wrong) || !strings.Contains(err.Error(), why) {
		b.T.Errorf("%v: %v, want it refused: %s; it says:\n%s", args, err, why, got)
	}
}

// Verbs are the verbs that the tests of a package call on a deployment. Its TestMain sets them.
var Verbs func(deployment.Deployment) []*cobra.Command

// Call calls one of the deployment's verbs.
func (b *Bench) Call(args ...string) (string, error) { return b.CallAt("demo", args...) }

// CallAt is call in a project.
func (b *Bench) CallAt(project string, args ...string) (string, error) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "pitstop", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Verbs(b.Deployment)...)
	root.SetArgs(append(args, "--project", project))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

// WantText fails a test whose output does not say all of that.
func WantText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("it does not say %q:\n%s", w, got)
		}
	}
}

// LlamaID is the ID of Llama in the ledger.
const LlamaID = "demo/llama-8b"
