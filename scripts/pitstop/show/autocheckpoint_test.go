package show

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

const (
	isOff  = "it is off for llama-8b: maintenance that nobody announced begins at once, and the training loses what it has not saved"
	ByHand = "make sure that the training saves on SIGTERM, then delete it and create it again with autocheckpoint: " + byVM
	byVM   = "gcloud alpha compute tpus tpu-vm create llama-8b --autocheckpoint-enabled --zone us-west4-a ..."
)

// TestCheckSaysHowAutocheckpointIsTurnedOn for a node, for a queued resource and for a Multislice.
func TestCheckSaysHowAutocheckpointIsTurnedOn(t *testing.T) {
	enabled := strings.Replace(deploymenttest.StartsCrew, `{"runtimeVersion"`, `{"autocheckpointEnabled":true,"runtimeVersion"`, 1)
	read := deploymenttest.Read
	queued := read(func(r *evidence.Read) { r.Facts.Group = "q" })
	second := func(s *deploymenttest.Story) {
		queued(s)
		s.Names = append(s.Names, "llama-8b-1")
	}
	for name, c := range map[string]struct {
		spec   string
		but    func(*deploymenttest.Story)
		policy string
		says   []string
		not    string
	}{
		"a node": {deploymenttest.StartsCrew, nil, "", []string{
			"warn      autocheckpoint: " + isOff, "you: " + ByHand + "; or write autocheckpoint: on into its policy, which turns it on when Pitstop creates it again\n",
		}, "queued-resources"},
		"a queued resource": {deploymenttest.StartsCrew, queued, "", []string{
			isOff, "gcloud alpha compute tpus queued-resources create q --autocheckpoint-enabled --zone us-west4-a --node-id llama-8b ...",
		}, "tpu-vm create"},
		"a Multislice": {deploymenttest.StartsCrew, second, "", []string{
			"it is off for llama-8b, llama-8b-1: ", "queued-resources create q --autocheckpoint-enabled --zone us-west4-a --node-count 2 ... (once for all its slices)",
		}, "--node-id"},
		"a policy that turns it on": {deploymenttest.StartsCrew, nil, ", autocheckpoint: on", []string{
			isOff, "you: the policy turns it on when Pitstop creates the slice again\n",
		}, "gcloud"},
		"a policy that turns it on and asks": {deploymenttest.StartsCrew, nil, ", autocheckpoint: on, switches: {recreate: ask}", []string{
			"you: the policy turns it on when Pitstop creates the slice again, once a person approves (the switch recreate is ask, limited by policy night)\n",
		}, "gcloud"},
		"a policy that turns it on and never creates": {deploymenttest.StartsCrew, nil, ", autocheckpoint: on, switches: {recreate: no}", []string{
			"stop      decision: ", "you: the policy turns it on when Pitstop creates the slice again, but the switch recreate is no, limited by policy night: allow that, or " + ByHand + "\n",
		}, "its policy"},
		"a policy that creates no slice that is not Spot": {deploymenttest.StartsCrew, read(func(r *evidence.Read) { r.Facts.Capacity = events.OnDemand }), "", []string{
			"stop      decision: ", "you: " + ByHand + "; or write autocheckpoint: on into its policy and allow that Pitstop creates it again: " +
				"the switch recreate_non_spot is no, limited by policy night (preset spot) and the deployment\n",
		}, "turns it on"},
		"a preset": {deploymenttest.StartsCrew, read(func(r *evidence.Read) { r.Facts.Label = "spot" }), "", []string{
			"you: " + ByHand + "; or write autocheckpoint: on into a policy of the policy file and attach that policy\n",
		}, "its policy"},
		"a label that names no policy": {deploymenttest.StartsCrew, read(func(r *evidence.Read) { r.Facts.Label = "nigth" }), "", []string{
			"stop      policy: ", "you: " + ByHand + "; or write autocheckpoint: on into a policy of the policy file and attach that policy\n",
		}, "its policy"},
		"where it is on": {enabled, nil, "", []string{
			"good      autocheckpoint: it is on for llama-8b: before maintenance Google sends SIGTERM to the training, and waits until it exits or 5 minutes have passed",
		}, "is off"},
		"a legacy node": {`{"legacy_node":{"acceleratorType":"v3-32","tensorflowVersion":"2.12.0"}}`, read(func(r *evidence.Read) {
			r.Facts.Legacy, r.Facts.Accelerator, r.Directory = true, "v3-32", ""
		}), "", nil, "autocheckpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := deploymenttest.Healthy(t, c.spec, c.but)
			b.ReadFile = func(context.Context, string) ([]byte, error) {
				return []byte("policies:\n  night: {preset: spot, zones: [us-west4-b]" + c.policy + "}\n"), nil
			}
			got, err := b.Call("check", "llama-8b")
			stops := slices.ContainsFunc(c.says, func(s string) bool { return strings.HasPrefix(s, "stop ") })
			if errors.Is(err, cli.ErrFailed) != stops || err != nil && !stops {
				t.Fatalf("%v:\n%s", err, got)
			}
			deploymenttest.WantText(t, got, c.says...)
			if strings.Contains(got, c.not) {
				t.Errorf("it says %q:\n%s", c.not, got)
			}
		})
	}
}

const eventAt = "last maintenance event at 2026-11-20T12:00:00Z, 1 d 0 h ago"

func TestCheckSaysWhenTheLastMaintenanceWas(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	b.Shown = []provider.Slice{deploymenttest.Eventful("llama-8b"), deploymenttest.Eventful("other")}
	got, err := b.Call("check", "llama-8b")
	if err != nil || strings.Contains(got, "other: last") {
		t.Errorf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, "good      maintenance: llama-8b: "+eventAt)
	b.Hidden = errors.New("refused")
	b.Want([]string{"check", "llama-8b"}, "warn      maintenance: check cannot read when the last maintenance event was: refused\n            you: ask for roles/tpu.viewer on demo\n")
}

func TestStatusShowsTheLastMaintenanceAndAutocheckpoint(t *testing.T) {
	on := deploymenttest.Trains("bert")
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b"), on)
	protected := deploymenttest.Eventful("bert")
	protected.Autocheckpoint, protected.Maintained = true, time.Time{}
	b.Shown = []provider.Slice{deploymenttest.Eventful("llama-8b"), protected, deploymenttest.Eventful("stranger")}
	got, err := b.Call("status", "llama-8b")
	if err != nil {
		t.Fatal(err)
	}
	deploymenttest.WantText(t, got, eventAt+"\n", "  advice    autocheckpoint is off for llama-8b: maintenance that nobody announced begins at once",
		"pitstop check llama-8b says how to turn it on")
	if strings.Count(got, "maintenance event") != 1 || strings.Count(got, "advice") != 1 || strings.Contains(got, "stranger") {
		t.Errorf("it says:\n%s", got)
	}
	if !slices.Equal(b.Asked, []string{"demo/us-west4-a"}) {
		t.Errorf("it lists %q", b.Asked)
	}
	b.Want([]string{"status", "--json", "llama-8b"}, `"shown":[{"slice":"llama-8b","last_maintenance":"2026-11-20T12:00:00Z","autocheckpoint":"off"}]`)
	b.Want([]string{"status", "--json", "bert"}, `"shown":[{"slice":"bert","autocheckpoint":"on"}]`)

	b.Shown, b.Hidden = nil, errors.New("refused")
	b.Want([]string{"status", "llama-8b"}, "demo/llama-8b", "the last maintenance events and autocheckpoint are not shown: refused\n")
	b.Want([]string{"status", "--json", "bert"}, `"not_shown":"refused"`)
}

// TestStatusShowsTheLastMaintenanceOfALegacyNode, which only the former version of the API shows.
func TestStatusShowsTheLastMaintenanceOfALegacyNode(t *testing.T) {
	w := deploymenttest.Trains("old", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Legacy, r.Facts.Accelerator = true, "v3-8" }))
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	clock := cloudtputest.NewManualClock(deploymenttest.Noon.Add(-24 * time.Hour))
	api := cloudtputest.New(cloudtputest.Config{Clock: clock, Zones: map[string]int{"us-west4-a": cloudtputest.Unlimited}})
	if _, err := api.AddNode(cloudtputest.NodeConfig{Zone: "us-west4-a", Name: "old", Accelerator: "v3-8", Legacy: &tpupb.Node{}}); err != nil {
		t.Fatal(err)
	}
	if err := api.BeginMaintenance("us-west4-a", "old", time.Minute); err != nil {
		t.Fatal(err)
	}
	clock.Advance(24 * time.Hour)
	b.OpenNodeLister = func(ctx context.Context, legacyZones []string) (deployment.NodeLister, error) {
		conn, err := api.Connect(ctx, nil)
		if err != nil {
			return nil, err
		}
		return cloudtpu.Config{LegacyZones: legacyZones}.OpenWith(ctx, cloudtpu.Clients{
			Present: []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: api.Transport()})}, Former: []option.ClientOption{option.WithGRPCConn(conn)},
		})
	}
	got, err := b.Call("status", "old")
	if err != nil || strings.Contains(got, "autocheckpoint") {
		t.Errorf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, eventAt)
}

// TestAListingThatIsNotWholeIsSaid: a slice that it lacks would look like one without news.
func TestAListingThatIsNotWholeIsSaid(t *testing.T) {
	const says = "are not shown: the API did not reach all of us-west4-a; look again in a minute\n"
	for name, c := range map[string]struct{ unreached, unreachedLegacy, hasLegacy, PausedText bool }{
		"whole":                    {},
		"whole, with legacy nodes": {hasLegacy: true},
		"without some nodes":       {unreached: true, PausedText: true},
		"without legacy nodes":     {unreachedLegacy: true, hasLegacy: true, PausedText: true},
		"without legacy nodes that nobody asks for": {unreachedLegacy: true},
		"without some nodes of either sort":         {unreached: true, unreachedLegacy: true, hasLegacy: true, PausedText: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploymenttest.Trains("llama-8b", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Legacy = c.hasLegacy }))
			b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
			b.Unreached, b.UnreachedLegacy = c.unreached, c.unreachedLegacy
			got, err := b.Call("status", "llama-8b")
			if err != nil || strings.Contains(got, says) != c.PausedText || strings.Contains(got, "are not shown") != c.PausedText {
				t.Errorf("%v:\n%s", err, got)
			}
		})
	}
}
