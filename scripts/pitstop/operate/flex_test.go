package operate

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
)

// clusterAnswering is the GKE API with one cluster, whose node pools are these.
func clusterAnswering(t *testing.T, status int, body string) (deployment.Deployment, *[]string) {
	t.Helper()
	var asked []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+"?fields="+r.URL.Query().Get("fields"))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) //nolint:errcheck // the caller sees it
	}))
	t.Cleanup(api.Close)
	return deployment.Deployment{NodePools: deployment.ReadNodePools(option.WithEndpoint(api.URL), option.WithHTTPClient(api.Client()))}, &asked
}

// checkCluster makes the call on a cluster.
func checkCluster(t *testing.T, d deployment.Deployment, args ...string) (string, error) {
	t.Helper()
	c := verbs{d}.flexCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	var out strings.Builder
	c.SetOut(&out)
	c.SetArgs(append([]string{"check", "--cluster", "us-east5/research", "--project", "mine-1"}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFlexCheckReadsACluster(t *testing.T) {
	raw, err := os.ReadFile("../command/testdata/flex/sound.json")
	if err != nil {
		t.Fatal(err)
	}
	sound := string(raw)
	broken := strings.NewReplacer(`"maxNodeCount": 4`, `"maxNodeCount": 1`, `"name": "tpu-flex"`, `"name": "tpu-small"`).Replace(sound)
	other := `{"name": "cpu", "config": {"machineType": "e2-standard-4"}}`
	d, asked := clusterAnswering(t, http.StatusOK, `{"nodePools": [`+sound+`,`+other+`,`+broken+`]}`)
	const isSound = "tpu-flex: no fault; ct6e-standard-4t with topology 4x4, 4 machines of 4 chips each\n"

	out, err := checkCluster(t, d)
	if !errors.Is(err, cli.ErrFailed) || !strings.HasPrefix(out, isSound+"tpu-small: autoscaling.maxNodeCount is 1, and should be 4") || strings.Contains(out, "cpu:") {
		t.Errorf("%v\n%s", err, out)
	}
	if want := "GET /v1/projects/mine-1/locations/us-east5/clusters/research?fields=nodePools"; len(*asked) != 1 || (*asked)[0] != want {
		t.Errorf("it asks %q, want %q once", *asked, want)
	}
	if out, err := checkCluster(t, d, "--pool", "tpu-flex"); err != nil || out != isSound {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := checkCluster(t, d, "--json"); !errors.Is(err, cli.ErrFailed) || strings.Count(out, "\n") != 2 || !strings.HasPrefix(out, `{"pool":"tpu-flex"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := checkCluster(t, d, "--pool", "cpu"); !errors.Is(err, cli.ErrFailed) || !strings.HasPrefix(out, `cpu: config.machineType is e2-standard-4`) {
		t.Errorf("%v\n%s", err, out)
	}
	var wrong cli.UsageError
	_, err = checkCluster(t, d, "--pool", "tpu")
	if !errors.As(err, &wrong) || err.Error() != "cluster us-east5/research has no node pool tpu; it has tpu-flex, cpu, tpu-small" {
		t.Error(err)
	}
	d, _ = clusterAnswering(t, http.StatusOK, `{"nodePools": [`+other+`]}`)
	_, err = checkCluster(t, d)
	if !errors.As(err, &wrong) || err.Error() != "cluster us-east5/research has no node pool with flex-start; it has cpu, and --pool checks one of them all the same" {
		t.Error(err)
	}
	d, _ = clusterAnswering(t, http.StatusNotFound, `{"error": {"code": 404, "message": "Not found: projects/mine-1/locations/us-east5/clusters/research.", "status": "NOT_FOUND"}}`)
	if _, err = checkCluster(t, d); err == nil || err.Error() != "cluster us-east5/research of mine-1: Not found: projects/mine-1/locations/us-east5/clusters/research." {
		t.Error(err)
	}
}
