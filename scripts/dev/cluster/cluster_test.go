package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/shared/provider/gke/clustertest"
)

// programs is the module that the programs are built from.
const programs = "programs"

// mostSilent is how many machines the cases silence at one time, at most.
const mostSilent = 16

// answering registers more machines that answer than the cases silence. They take no Pods. Where more than half of the machines are silent,
// the node controller takes itself for cut off, and evicts nothing:
// https://kubernetes.io/docs/concepts/architecture/nodes/#rate-limits-on-eviction
func answering(t testing.TB, p *Plane) {
	t.Helper()
	for i := range mostSilent {
		err := p.Do(t.Context(), http.MethodPost, "/api/v1/nodes", map[string]any{
			"apiVersion": "v1", "kind": "Node", "spec": map[string]any{"unschedulable": true},
			"metadata": map[string]any{"name": fmt.Sprintf("answers-%d", i), "annotations": map[string]any{annotationSimulated: "fake"}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// plane starts a control plane for a test. PITSTOP_CLUSTER asks for it: "build" builds the programs where they are not there, and "built"
// leaves the test out then.
func plane(t testing.TB) *Plane {
	t.Helper()
	mode := os.Getenv("PITSTOP_CLUSTER")
	if mode == "" {
		t.Skip("PITSTOP_CLUSTER asks for a control plane; scripts/check --cluster runs it")
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		if mode == "built" {
			t.Skip("etcd is not installed; with it, scripts/check --cluster builds the rest and runs this")
		}
		t.Fatalf("etcd is not in PATH; in Debian and Ubuntu it is in the package etcd-server: %v", err)
	}
	folder, err := Folder(programs)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(t.Context()), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	if !Built(folder) {
		if mode == "built" {
			t.Skip("its programs are not built; scripts/check --cluster builds them, which takes ten minutes, and runs this")
		}
		began := time.Now()
		if err := Build(ctx, programs, folder); err != nil {
			t.Fatal(err)
		}
		t.Logf("built in %.0f s", time.Since(began).Seconds())
	}
	began := time.Now()
	p, err := Start(ctx, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %.1f s", time.Since(began).Seconds())
	answering(t, p)
	t.Cleanup(func() {
		select {
		case err := <-p.Fell():
			t.Error(err)
		default:
		}
		interrupted := ctx.Err() != nil
		p.Stop()
		if t.Failed() && !interrupted {
			t.Logf("the logs are in %s", p.Folder)
		} else if err := os.RemoveAll(p.Folder); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestCluster holds what Pitstop takes for granted, and what it reads, against a real control plane.
func TestCluster(t *testing.T) {
	p := plane(t)
	t.Run("beside each other", func(t *testing.T) {
		t.Run("promises", func(t *testing.T) {
			t.Parallel()
			n := clustertest.Run(t, clustertest.Cluster{
				URL: p.URL, Token: p.Token, HTTP: p.HTTP, Name: "promises", Parallel: true,
				Pass: time.Sleep, // time passes by itself there
				Silence: func(t *testing.T, node string) {
					t.Helper()
					if err := p.Silence(t.Context(), node); err != nil {
						t.Fatal(err)
					}
				},
			})
			if n < 60 {
				t.Errorf("only %d promises were checked", n)
			}
		})
		t.Run("losses", func(t *testing.T) {
			t.Parallel()
			losing(t, p)
		})
	})
	// Their policies concern whoever creates something with Pitstop's label, as the promises do.
	t.Run("under policies", func(t *testing.T) {
		t.Run("rights", func(t *testing.T) {
			t.Parallel()
			rights(t, p)
		})
		t.Run("acts", func(t *testing.T) {
			t.Parallel()
			acts(t, p)
		})
	})
}

// TestThePinsAreOfOneVersion: all of Kubernetes is of the version that the programs say they are of.
func TestThePinsAreOfOneVersion(t *testing.T) {
	raw, err := os.ReadFile(programs + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "\tk8s.io/kubernetes "+kubernetes) {
		t.Errorf("programs/go.mod has no k8s.io/kubernetes %s", kubernetes)
	}
	staging := 0
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "=>" {
			staging++
			if want := "v0" + strings.TrimPrefix(kubernetes, "v1"); f[3] != want {
				t.Errorf("%s is %s, want %s", f[0], f[3], want)
			}
		}
	}
	if staging < 30 {
		t.Errorf("only %d modules of Kubernetes are pinned", staging)
	}
}
