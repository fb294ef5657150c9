package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

const (
	isOff  = "it is off for llama-8b: maintenance that nobody announced begins at once, and the training loses what it has not saved"
	byHand = "make sure that the training saves on SIGTERM, then delete it and create it again with autocheckpoint: " + byVM
	byVM   = "gcloud alpha compute tpus tpu-vm create llama-8b --autocheckpoint-enabled --zone us-west4-a ..."
)

// TestCheckSaysHowAutocheckpointIsTurnedOn for a node, for a queued resource and for a Multislice.
func TestCheckSaysHowAutocheckpointIsTurnedOn(t *testing.T) {
	enabled := strings.Replace(startsCrew, `{"runtimeVersion"`, `{"autocheckpointEnabled":true,"runtimeVersion"`, 1)
	second := func(w *incident.Workload) {
		for i := range w.Slices {
			w.Slices[i].Group = "q"
		}
		s := w.Slices[0]
		s.Name = "llama-8b-1"
		w.Slices = append(w.Slices, s)
	}
	for name, c := range map[string]struct {
		spec   string
		change func(*incident.Workload)
		policy string
		says   []string
		not    string
	}{
		"a node": {startsCrew, func(*incident.Workload) {}, "", []string{
			"warn      autocheckpoint: " + isOff, "you: " + byHand + "; or write autocheckpoint: on into its policy, which turns it on when Pitstop creates it again\n",
		}, "queued-resources"},
		"a queued resource": {startsCrew, func(w *incident.Workload) { w.Slices[0].Group = "q" }, "", []string{
			isOff, "gcloud alpha compute tpus queued-resources create q --autocheckpoint-enabled --zone us-west4-a --node-id llama-8b ...",
		}, "tpu-vm create"},
		"a Multislice": {startsCrew, second, "", []string{
			"it is off for llama-8b, llama-8b-1: ", "queued-resources create q --autocheckpoint-enabled --zone us-west4-a --node-count 2 ... (once for all its slices)",
		}, "--node-id"},
		"a policy that turns it on": {startsCrew, func(*incident.Workload) {}, ", autocheckpoint: on", []string{
			isOff, "you: the policy turns it on when Pitstop creates the slice again\n",
		}, "gcloud"},
		"a policy that turns it on and asks": {startsCrew, func(*incident.Workload) {}, ", autocheckpoint: on, switches: {recreate: ask}", []string{
			"you: the policy turns it on when Pitstop creates the slice again, once a person approves (the switch recreate is ask, limited by policy night)\n",
		}, "gcloud"},
		"a policy that turns it on and never creates": {startsCrew, func(*incident.Workload) {}, ", autocheckpoint: on, switches: {recreate: no}", []string{
			"stop      decision: ", "you: the policy turns it on when Pitstop creates the slice again, but the switch recreate is no, limited by policy night: allow that, or " + byHand + "\n",
		}, "its policy"},
		"a policy that creates no slice that is not Spot": {startsCrew, func(w *incident.Workload) { w.Slices[0].Reclaimable = false }, "", []string{
			"stop      decision: ", "you: " + byHand + "; or write autocheckpoint: on into its policy and allow that Pitstop creates it again: " +
				"the switch recreate_non_spot is no, limited by policy night (preset spot) and the deployment\n",
		}, "turns it on"},
		"a preset": {startsCrew, func(w *incident.Workload) { w.Label = "spot" }, "", []string{
			"you: " + byHand + "; or write autocheckpoint: on into a policy of the policy file and attach that policy\n",
		}, "its policy"},
		"a label that names no policy": {startsCrew, func(w *incident.Workload) { w.Label = "nigth" }, "", []string{
			"stop      policy: ", "you: " + byHand + "; or write autocheckpoint: on into a policy of the policy file and attach that policy\n",
		}, "its policy"},
		"where it is on": {enabled, func(*incident.Workload) {}, "", []string{
			"good      autocheckpoint: it is on for llama-8b: before maintenance Google sends SIGTERM to the training, and waits until it exits or 5 minutes have passed",
		}, "is off"},
		"a legacy node": {`{"legacy_node":{"acceleratorType":"v3-32","tensorflowVersion":"2.12.0"}}`, func(w *incident.Workload) {
			w.Slices[0].Legacy, w.Slices[0].Accelerator, w.Directory = true, "v3-32", ""
		}, "", nil, "autocheckpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := healthy(t, c.spec)
			b.change(c.change)
			b.read = func(context.Context, string) ([]byte, error) {
				return []byte("policies:\n  night: {preset: spot, zones: [us-west4-b]" + c.policy + "}\n"), nil
			}
			got, err := b.call("check", "llama-8b")
			stops := slices.ContainsFunc(c.says, func(s string) bool { return strings.HasPrefix(s, "stop ") })
			if errors.Is(err, errFailed) != stops || err != nil && !stops {
				t.Fatalf("%v:\n%s", err, got)
			}
			wants(t, got, c.says...)
			if strings.Contains(got, c.not) {
				t.Errorf("it says %q:\n%s", c.not, got)
			}
		})
	}
}

// eventful is a slice that had a maintenance event a day before noon.
func eventful(name string) provider.Slice {
	return provider.Slice{
		Ref: provider.Ref{Project: "demo", Zone: "us-west4-a", Name: name}, Condition: incident.Ready, Maintained: noon.Add(-24 * time.Hour),
	}
}

const eventAt = "last maintenance event at 2026-11-20T12:00:00Z, 1 d 0 h ago"

func TestCheckSaysWhenTheLastMaintenanceWas(t *testing.T) {
	b, _, _ := healthy(t, startsCrew)
	b.shown = []provider.Slice{eventful("llama-8b"), eventful("other")}
	got, err := b.call("check", "llama-8b")
	if err != nil || strings.Contains(got, "other: last") {
		t.Errorf("%v:\n%s", err, got)
	}
	wants(t, got, "good      maintenance: llama-8b: "+eventAt)
	b.hidden = errors.New("refused")
	b.want([]string{"check", "llama-8b"}, "warn      maintenance: check cannot read when the last maintenance event was: refused\n            you: ask for roles/tpu.viewer on demo\n")
}

func TestStatusShowsTheLastMaintenanceAndAutocheckpoint(t *testing.T) {
	on := trains("bert")
	b := deployedWith(t, ledgertest.NewStore().Open, trains("llama-8b"), on)
	protected := eventful("bert")
	protected.Autocheckpoint, protected.Maintained = true, time.Time{}
	b.shown = []provider.Slice{eventful("llama-8b"), protected, eventful("stranger")}
	got, err := b.call("status")
	if err != nil {
		t.Fatal(err)
	}
	wants(t, got, eventAt+"\n", "  advice    autocheckpoint is off for llama-8b: maintenance that nobody announced begins at once",
		"pitstop check llama-8b says how to turn it on")
	if strings.Count(got, "maintenance event") != 1 || strings.Count(got, "advice") != 1 || strings.Contains(got, "stranger") {
		t.Errorf("it says:\n%s", got)
	}
	if !slices.Equal(b.asked, []string{"demo/us-west4-a"}) {
		t.Errorf("it lists %q", b.asked)
	}
	b.want([]string{"status", "--json", "llama-8b"}, `"shown":[{"slice":"llama-8b","last_maintenance":"2026-11-20T12:00:00Z","autocheckpoint":"off"}]`)
	b.want([]string{"status", "--json", "bert"}, `"shown":[{"slice":"bert","autocheckpoint":"on"}]`)

	b.shown, b.hidden = nil, errors.New("refused")
	b.want([]string{"status"}, "demo/llama-8b", "the last maintenance events and autocheckpoint are not shown: refused\n")
	b.want([]string{"status", "--json", "bert"}, `"not_shown":"refused"`)
}

// TestStatusShowsTheLastMaintenanceOfALegacyNode, which only the former version of the API shows.
func TestStatusShowsTheLastMaintenanceOfALegacyNode(t *testing.T) {
	w := trains("old")
	w.Slices[0].Legacy, w.Slices[0].Accelerator = true, "v3-8"
	b := deployedWith(t, ledgertest.NewStore().Open, w)
	clock := cloudtputest.NewManualClock(noon.Add(-24 * time.Hour))
	api := cloudtputest.New(cloudtputest.Config{Clock: clock, Zones: map[string]int{"us-west4-a": cloudtputest.Unlimited}})
	if _, err := api.AddNode(cloudtputest.NodeConfig{Zone: "us-west4-a", Name: "old", Accelerator: "v3-8", Legacy: &tpupb.Node{}}); err != nil {
		t.Fatal(err)
	}
	if err := api.BeginMaintenance("us-west4-a", "old", time.Minute); err != nil {
		t.Fatal(err)
	}
	clock.Advance(24 * time.Hour)
	b.tpus = func(ctx context.Context, legacyZones []string) (tpus, error) {
		conn, err := api.Connect(ctx, nil)
		if err != nil {
			return nil, err
		}
		return cloudtpu.Config{LegacyZones: legacyZones}.OpenWith(ctx, cloudtpu.Clients{
			Present: []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: api.Transport()})}, Former: []option.ClientOption{option.WithGRPCConn(conn)},
		})
	}
	got, err := b.call("status")
	if err != nil || strings.Contains(got, "autocheckpoint") {
		t.Errorf("%v:\n%s", err, got)
	}
	wants(t, got, eventAt)
}

// TestAListingThatIsNotWholeIsSaid: a slice that it lacks would look like one without news.
func TestAListingThatIsNotWholeIsSaid(t *testing.T) {
	const says = "are not shown: the API did not reach all of us-west4-a; look again in a minute\n"
	for name, c := range map[string]struct{ unreached, unreachedLegacy, hasLegacy, told bool }{
		"whole":                    {},
		"whole, with legacy nodes": {hasLegacy: true},
		"without some nodes":       {unreached: true, told: true},
		"without legacy nodes":     {unreachedLegacy: true, hasLegacy: true, told: true},
		"without legacy nodes that nobody asks for": {unreachedLegacy: true},
		"without some nodes of either sort":         {unreached: true, unreachedLegacy: true, hasLegacy: true, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := trains("llama-8b")
			w.Slices[0].Legacy = c.hasLegacy
			b := deployedWith(t, ledgertest.NewStore().Open, w)
			b.unreached, b.unreachedLegacy = c.unreached, c.unreachedLegacy
			got, err := b.call("status")
			if err != nil || strings.Contains(got, says) != c.told || strings.Contains(got, "are not shown") != c.told {
				t.Errorf("%v:\n%s", err, got)
			}
		})
	}
}

// asAda is Google behind this wire, for a caller who has a token.
func asAda(base http.RoundTripper) *google {
	return asCaller(base, auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: aToken{}}), "ada")
}

type aToken struct{}

// Token implements auth.TokenProvider.
func (aToken) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: "t", Expiry: time.Now().Add(time.Hour)}, nil
}

// TestOnlyTheWayOutThatHelpsIsNamed where the API does not show the slices: a role where one is missing, the network where nothing
// answers.
func TestOnlyTheWayOutThatHelpsIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		base http.RoundTripper
		says string
	}{
		"a refusal": {forbidden{}, "the Cloud TPU API refuses ada: The caller does not have permission; " +
			"ask for a role that allows it: the verb's --help names one\n"},
		"silence": {silence{}, "the Cloud TPU API (tpu.googleapis.com) did not answer within 300ms as ada; " +
			"check the network, HTTPS_PROXY and, in a VPC, Private Google Access; a longer --timeout waits longer\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _, _ := healthy(t, startsCrew)
				b.google = asAda(c.base)
				b.tpus = connected(b.google).tpus
				b.want([]string{"status", "--timeout", "300ms"}, "the last maintenance events and autocheckpoint are not shown: "+c.says)
				b.want([]string{"check", "llama-8b", "--timeout", "300ms"}, "check cannot read when the last maintenance event was: "+c.says)
			})
		})
	}
}

// TestStatusSaysThatLegacyNodesAreRefused: they are listed over gRPC, unlike all others.
func TestStatusSaysThatLegacyNodesAreRefused(t *testing.T) {
	w := trains("old")
	w.Slices[0].Legacy = true
	b := deployedWith(t, ledgertest.NewStore().Open, w)
	api := cloudtputest.New(cloudtputest.Config{Zones: map[string]int{"us-west4-a": 1}})
	api.Inject(cloudtputest.Fault{Method: "ListNodes", Legacy: true, Code: int(codes.PermissionDenied), Message: "The caller does not have permission"})
	server := httptest.NewUnstartedServer(api)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	b.tpus = func(ctx context.Context, legacyZones []string) (tpus, error) {
		return cloudtpu.Config{Endpoint: server.URL, LegacyZones: legacyZones}.OpenWith(ctx, cloudtpu.Clients{Former: heardRPC()})
	}
	b.want([]string{"status"}, "are not shown: the Cloud TPU API refuses the caller: The caller does not have permission; "+
		"ask for a role that allows it: the verb's --help names one\n")
}

// TestAVerbThatLooksAgainOpensNoOtherClient, however the zones of legacy nodes are ordered.
func TestAVerbThatLooksAgainOpensNoOtherClient(t *testing.T) {
	open := connected(asAda(forbidden{})).tpus
	of := func(zones ...string) tpus {
		t.Helper()
		api, err := open(t.Context(), zones)
		if err != nil {
			t.Fatal(err)
		}
		return api
	}
	none, two := of(), of("us-central1-b", "us-central1-a")
	if none == two || of() != none || of("us-central1-a", "us-central1-b") != two || of("us-central1-a") == two {
		t.Error("the clients are not those of their zones")
	}
}

func TestAttachSaysThatAutocheckpointIsOff(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		args []string
		says string
	}{
		"off":                       {startsCrew, []string{"attach", "llama-8b", "--policy", "spot"}, "autocheckpoint is off for llama-8b: maintenance that nobody announced begins at once"},
		"under a policy that is on": {startsCrew, []string{"attach", "llama-8b", "--policy", "night"}, "you: the policy turns it on when Pitstop creates the slice again"},
		"on":                        {`{"node":{"autocheckpointEnabled":true}}`, []string{"attach", "llama-8b", "--policy", "spot"}, ""},
		"never read":                {"", []string{"attach", "llama-8b", "--policy", "spot"}, ""},
		"detached":                  {startsCrew, []string{"detach", "llama-8b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := healthy(t, startsCrew)
			b.read = func(context.Context, string) ([]byte, error) {
				return []byte("policies: {night: {preset: spot, autocheckpoint: on}}"), nil
			}
			if c.spec != startsCrew {
				b.change(func(w *incident.Workload) { w.Slices[0].Spec = "" })
			}
			if c.spec != "" && c.spec != startsCrew {
				b.change(func(w *incident.Workload) { w.Slices[0].Spec = "spec2" })
				if err := b.ledger.SaveSpec(t.Context(), "spec2", []byte(c.spec)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.call(c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if c.says == "" && strings.Contains(got, "autocheckpoint") {
				t.Errorf("it says:\n%s", got)
			}
			wants(t, got, "llama-8b in us-west4-a: ", c.says)
			if c.args[len(c.args)-1] == "spot" && c.says != "" {
				wants(t, got, "  you: "+byHand+"; or write autocheckpoint: on into a policy of the policy file and attach that policy\n")
			}
		})
	}
	if _, err := policy.Parse([]byte("policies: {night: {autocheckpoint: on}}")); err != nil {
		t.Errorf("the policy that attach names is none: %v", err)
	}
}
