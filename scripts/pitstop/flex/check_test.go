package flex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/container/v1"
)

// poolOf is the pool that GKE makes of a plan.
func poolOf(t *testing.T, o Options) *container.NodePool {
	t.Helper()
	f := flags(t, made(t, o).Pools[len(made(t, o).Pools)-1])
	has := func(name string) bool { _, ok := f[name]; return ok }
	number := func(name string) (n int64) {
		if _, err := fmt.Sscan(f[name], &n); err != nil {
			t.Fatalf("%s=%s: %v", name, f[name], err)
		}
		return n
	}
	p := &container.NodePool{
		Name: o.Pool, SelfLink: "https://container.googleapis.com/v1/projects/mine/locations/us-east5/clusters/research/nodePools/" + o.Pool,
		Config:           &container.NodeConfig{MachineType: f["--machine-type"], FlexStart: has("--flex-start")},
		InitialNodeCount: number("--num-nodes"),
		Autoscaling: &container.NodePoolAutoscaling{
			Enabled: has("--enable-autoscaling"), MinNodeCount: number("--min-nodes"), MaxNodeCount: number("--max-nodes"),
		},
		Management: &container.NodeManagement{AutoRepair: !has("--no-enable-autorepair"), AutoUpgrade: true},
	}
	if f["--reservation-affinity"] == "none" {
		p.Config.ReservationAffinity = &container.ReservationAffinity{ConsumeReservationType: "NO_RESERVATION"}
	}
	if has("--tpu-topology") || has("--placement-policy") {
		p.PlacementPolicy = &container.PlacementPolicy{Type: "COMPACT", TpuTopology: f["--tpu-topology"], PolicyName: f["--placement-policy"]}
	}
	return p
}

// read is a pool as it comes back from the text that gcloud prints.
func read(t *testing.T, p *container.NodePool) *container.NodePool {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadPool(raw)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestAPlannedPoolIsSound: what plan orders, check accepts.
func TestAPlannedPoolIsSound(t *testing.T) {
	for name, o := range plans() {
		s := made(t, o).Slice
		c, err := Check(read(t, poolOf(t, o)), s.Topology)
		if err != nil || len(c.Findings) > 0 || c.Slice.Nodes != s.Nodes {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestAPoolWithoutATopologyCounts(t *testing.T) {
	if c, err := Check(poolOf(t, plans()["multi-host"]), ""); err != nil || len(c.Findings) > 0 || c.Slice.Nodes != 4 {
		t.Errorf("the topology of the pool itself: %+v, %v", c, err)
	}
	if _, err := Check(poolOf(t, plans()["tpu7x"]), ""); err == nil || !strings.Contains(err.Error(), "name it, as in --topology 4x4x4") {
		t.Errorf("a workload policy: %v", err)
	}
}

// TestEachFaultIsFoundAlone: each change of a sound pool is found at its field, with a consequence and a way out, and no other fault.
func TestEachFaultIsFoundAlone(t *testing.T) {
	const updates = "gcloud container node-pools update tpu-flex --cluster=research --location=us-east5 "
	for _, c := range []struct {
		plan, topology string
		change         func(p *container.NodePool)
		field, got     string
		fix            string
	}{
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.FlexStart = false }, "config.flexStart", "false", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.Spot = true }, "config.spot", "true", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.Preemptible = true }, "config.preemptible", "true", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Version = "1.32.9-gke.2000000" }, "version", "1.32.9-gke.2000000", "gcloud container clusters upgrade research --location=us-east5 --node-pool=tpu-flex"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Version = "1.33.0-gke.999999" }, "version", "1.33.0-gke.999999", "clusters upgrade"},
		{"tpu7x", "4x4x4", func(p *container.NodePool) { p.Version = "1.33.5-gke.1000000" }, "version", "1.33.5-gke.1000000", "clusters upgrade"},
		{"multi-host", "4x4", func(p *container.NodePool) {
			p.Status, p.Conditions = "ERROR", []*container.StatusCondition{{Code: "GCE_STOCKOUT", Message: "no machines"}}
		}, "status", "ERROR", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Status = "RUNNING_WITH_ERROR" }, "status", "RUNNING_WITH_ERROR", "gcloud container operations list"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Status = "STOPPING" }, "status", "STOPPING", anew},
		{"multi-host", "4x4", func(p *container.NodePool) {
			p.Config.Taints = []*container.NodeTaint{{Key: "team", Value: "vision", Effect: "NO_SCHEDULE"}}
		}, "config.taints", "team=vision:NO_SCHEDULE", updates + `--node-taints=""`},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.MaxRunDuration = "864000s" }, "config.maxRunDuration", "240h0m0s", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Autoscaling.TotalMinNodeCount = 4 }, "autoscaling.totalMinNodeCount", "4", updates + "--enable-autoscaling --total-min-nodes=0"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.ReservationAffinity = nil }, "config.reservationAffinity", "none", anew},
		{"single-host", "", func(p *container.NodePool) { p.Config.ReservationAffinity.ConsumeReservationType = "ANY_RESERVATION" }, "config.reservationAffinity", "ANY_RESERVATION", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.QueuedProvisioning = &container.QueuedProvisioning{Enabled: true} }, "queuedProvisioning.enabled", "true", "Kueue"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Autoscaling = nil }, "autoscaling.enabled", "false", updates + "--enable-autoscaling --min-nodes=0 --max-nodes=4"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.InitialNodeCount = 4 }, "initialNodeCount", "4", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Autoscaling.MinNodeCount = 4 }, "autoscaling.minNodeCount", "4", updates},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Autoscaling.MaxNodeCount = 2 }, "autoscaling.maxNodeCount", "2", "--max-nodes=4"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Autoscaling.MaxNodeCount = 8 }, "autoscaling.maxNodeCount", "8", "--max-nodes=4"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Autoscaling.MaxNodeCount, p.Autoscaling.TotalMaxNodeCount = 0, 4 }, "autoscaling.totalMaxNodeCount", "4", "--max-nodes=4"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Management.AutoRepair = true }, "management.autoRepair", "true", updates + "--no-enable-autorepair"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.PlacementPolicy = nil }, "placementPolicy.tpuTopology", "none", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.PlacementPolicy.TpuTopology = "2x4" }, "placementPolicy.tpuTopology", "2x4", anew},
		{"tpu7x", "4x4x4", func(p *container.NodePool) { p.PlacementPolicy = nil }, "placementPolicy.policyName", "none", "pitstop flex plan"},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.MachineType = "ct4p-hightpu-4t" }, "config.machineType", "ct4p-hightpu-4t", anew},
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.MachineType = "ct6e-standard-8t" }, "config.machineType", "ct6e-standard-8t", anew},
		{"single-host", "", func(p *container.NodePool) { p.Autoscaling.MaxNodeCount = 0 }, "autoscaling.maxNodeCount", "0", "--max-nodes=1"},
		{"single-host", "2x4", func(p *container.NodePool) { p.PlacementPolicy = &container.PlacementPolicy{TpuTopology: "2x4"} }, "placementPolicy.tpuTopology", "2x4", anew},
	} {
		p := poolOf(t, plans()[c.plan])
		c.change(p)
		found, err := Check(read(t, p), c.topology)
		if err != nil || !slices.Equal(found.Fields(), []string{c.field}) {
			t.Errorf("%s: found %v, %v", c.field, found.Fields(), err)
			continue
		}
		if f := found.Findings[0]; f.Got != c.got || f.Want == "" || f.Why == "" || !strings.Contains(f.Fix, c.fix) {
			t.Errorf("%+v, want %s and %q", f, c.got, c.fix)
		}
	}
}

// TestWhatIsNoFaultIsNone: each of these may stand in a sound pool.
func TestWhatIsNoFaultIsNone(t *testing.T) {
	for name, change := range map[string]func(p *container.NodePool){
		"the oldest version":            func(p *container.NodePool) { p.Version = "1.33.0-gke.1712000" },
		"a later version":               func(p *container.NodePool) { p.Version = "1.40.1-gke.5" },
		"a version that cannot be read": func(p *container.NodePool) { p.Version = "latest" },
		"it runs":                       func(p *container.NodePool) { p.Status = "RUNNING" },
		"it is being changed":           func(p *container.NodePool) { p.Status = "RECONCILING" },
		"a taint that GKE tolerates": func(p *container.NodePool) {
			p.Config.Taints = []*container.NodeTaint{{Key: "google.com/tpu", Value: "present", Effect: "NO_SCHEDULE"}}
		},
		"a taint that only advises": func(p *container.NodePool) {
			p.Config.Taints = []*container.NodeTaint{{Key: "a", Effect: "PREFER_NO_SCHEDULE"}}
		},
		"a whole life":                   func(p *container.NodePool) { p.Config.MaxRunDuration = "604800s" },
		"a duration that cannot be read": func(p *container.NodePool) { p.Config.MaxRunDuration = "a week" },
	} {
		p := poolOf(t, plans()["multi-host"])
		change(p)
		if c, err := Check(read(t, p), "4x4"); err != nil || len(c.Findings)+len(c.Notes) > 0 {
			t.Errorf("%s: %+v, %q, %v", name, c.Findings, c.Notes, err)
		}
	}
}

// TestWhatIsWorthKnowingIsNoted: a pool may be sound, and a person still has to know.
func TestWhatIsWorthKnowingIsNoted(t *testing.T) {
	for _, c := range []struct {
		plan, topology string
		change         func(p *container.NodePool)
		says           string
	}{
		{"multi-host", "4x4", func(p *container.NodePool) { p.Config.MaxRunDuration = "7200s" }, "config.maxRunDuration is 2h0m0s: Google takes each machine away after that, and not only after 7 days"},
		{"tpu7x", "4x4x4", func(*container.NodePool) {}, "the topology of the workload policy tpu-flex-4x4x4 was not read: gcloud compute resource-policies describe tpu-flex-4x4x4 --region=us-east5 prints it"},
		{"tpu7x", "4x4x4", func(p *container.NodePool) { p.SelfLink = "" }, "--region=REGION prints it"},
	} {
		p := poolOf(t, plans()[c.plan])
		c.change(p)
		found, err := Check(read(t, p), c.topology)
		if err != nil || len(found.Findings) > 0 || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], c.says) {
			t.Errorf("%+v, %q, %v; want %q", found.Findings, found.Notes, err, c.says)
		}
	}
}

// TestSingleMachinesMayBeSeveral: each machine of such a pool is a slice, so its maximum is free, in a zone or in all.
func TestSingleMachinesMayBeSeveral(t *testing.T) {
	for _, a := range []container.NodePoolAutoscaling{{Enabled: true, MaxNodeCount: 7}, {Enabled: true, TotalMaxNodeCount: 7}} {
		p := poolOf(t, plans()["single-host"])
		p.Autoscaling, p.Management.AutoRepair = &a, true
		if c, err := Check(p, "2x4"); err != nil || len(c.Findings) > 0 {
			t.Errorf("%+v: %+v, %v", a, c.Findings, err)
		}
	}
}

func TestWhatIsNoPoolIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                                       "it is no node pool in JSON",
		"name: tpu":                              "it is no node pool in JSON",
		"[]":                                     "it is a list: name one pool",
		"{}":                                     "it has no name or no config.machineType",
		`{"name": "p"}`:                          "it has no name or no config.machineType",
		`{"autoscaling":1}`:                      "it is no node pool in JSON",
		strings.Repeat(" ", MaxPoolBytes) + "{}": "more than the 4 MiB",
	} {
		if _, err := ReadPool([]byte(text)); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %q", text, err, says)
		}
	}
}

// FuzzReadPool: whatever a file holds, it is refused in one line, or it is checked. Each finding says all that a person needs.
func FuzzReadPool(f *testing.F) {
	for _, text := range []string{
		`{"name":"tpu-flex","config":{"machineType":"ct6e-standard-4t","flexStart":true,"reservationAffinity":{"consumeReservationType":"NO_RESERVATION"}},` +
			`"autoscaling":{"enabled":true,"maxNodeCount":4},"placementPolicy":{"type":"COMPACT","tpuTopology":"4x4"},"management":{"autoUpgrade":true},` +
			`"selfLink":"https://container.googleapis.com/v1/projects/mine/zones/us-east5-a/clusters/research/nodePools/tpu-flex"}`,
		`{"name":"p","config":{"machineType":"tpu7x-standard-4t"},"placementPolicy":{"policyName":"w"},"autoscaling":{"totalMaxNodeCount":-1}}`,
		`{"name":"p","version":"1.2","status":"ERROR","conditions":[null],"config":{"machineType":"ct6e-standard-4t","maxRunDuration":"-1s","taints":[null,{}]}}`,
		`{"name":"p","config":{"machineType":"e2-medium"},"selfLink":"clusters/"}`, `[]`, `{`, `{"name":1}`,
	} {
		f.Add([]byte(text), "4x4")
	}
	f.Fuzz(func(t *testing.T, raw []byte, topology string) {
		pool, err := ReadPool(raw)
		if err == nil {
			var c Checked
			c, err = Check(pool, topology)
			for _, note := range c.Notes {
				if note == "" {
					t.Error("an empty note")
				}
			}
			for _, x := range c.Findings {
				if x.Field == "" || x.Got == "" || x.Want == "" || x.Why == "" || x.Fix == "" {
					t.Errorf("%+v", x)
				}
			}
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
