package metadata

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pitstop.internal/events"
)

// inPod are the variables of a Pod's manifest.
func inPod(change ...func(map[string]string)) map[string]string {
	env := map[string]string{
		"PITCREW_CLUSTER": "us-east5/research", "PITCREW_NAMESPACE": "teams", "PITCREW_POD": "llama-slice-0-3-x7k2p",
		"PITCREW_JOB": "llama-slice-0", "PITCREW_JOB_UID": "5d1f", "PITCREW_JOBSET": "llama",
	}
	for _, c := range change {
		c(env)
	}
	return env
}

func of(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func without(names ...string) func(map[string]string) {
	return func(env map[string]string) {
		for _, n := range names {
			delete(env, n)
		}
	}
}

func with(name, value string) func(map[string]string) {
	return func(env map[string]string) { env[name] = value }
}

func TestAPodIsReadWholeOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want Pod
		says string
	}{
		"a JobSet": {inPod(), Pod{"us-east5", "research", "teams", "llama-slice-0-3-x7k2p", "llama-slice-0", "5d1f", "llama"}, ""},
		"a Job":    {inPod(without("PITCREW_JOBSET")), Pod{"us-east5", "research", "teams", "llama-slice-0-3-x7k2p", "llama-slice-0", "5d1f", ""}, ""},
		"no Pod":   {map[string]string{"PITCREW_ATTEMPT": "3", "TPU_WORKER_ID": "2"}, Pod{}, ""},
		"two are missing": {
			inPod(without("PITCREW_JOB_UID", "PITCREW_NAMESPACE")), Pod{}, "does not set PITCREW_NAMESPACE, PITCREW_JOB_UID; pitcrew's examples show how",
		},
		"a bare JobSet":       {map[string]string{"PITCREW_JOBSET": "llama"}, Pod{}, "does not set PITCREW_CLUSTER, "},
		"a cluster alone":     {inPod(with("PITCREW_CLUSTER", "research")), Pod{}, "PITCREW_CLUSTER=research: it is LOCATION/CLUSTER, as in us-east5/research"},
		"a cluster with more": {inPod(with("PITCREW_CLUSTER", "a/b/c")), Pod{}, "PITCREW_CLUSTER=a/b/c: it is LOCATION/CLUSTER"},
		"half a cluster":      {inPod(with("PITCREW_CLUSTER", "/b")), Pod{}, "PITCREW_CLUSTER=/b: it is LOCATION/CLUSTER"},
	} {
		got, err := podIn(of(c.env))
		if got != c.want || err == nil != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || got.Known() != (c.want.JobUID != "") {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, got, err, c.want, c.says)
		}
	}
}

// TestAPodIsAWorkerOfItsJob: the slice is the Job, its life the Job's UID, and the worker what GKE says, else the Job's index.
func TestAPodIsAWorkerOfItsJob(t *testing.T) {
	onNode := Machine{Project: "demo", Zone: "us-east5-a", Node: "", Host: "gke-research-tpu-1", Workers: 1, Slices: 1}
	for name, c := range map[string]struct {
		env    map[string]string
		worker int
	}{
		"by GKE":       {inPod(with("TPU_WORKER_ID", "2"), with("JOB_COMPLETION_INDEX", "3"), with("TPU_WORKER_HOSTNAMES", "a,b,c,d")), 2},
		"by the index": {inPod(with("JOB_COMPLETION_INDEX", "3"), with("TPU_WORKER_HOSTNAMES", "a,b,c,d")), 3},
		"alone":        {inPod(), 0},
	} {
		m := onNode.inContainer(of(c.env))
		if m.Worker != c.worker || m.SliceName() != "llama-slice-0" || m.Host != "llama-slice-0-3-x7k2p" || m.Place() != "us-east5/research/teams" ||
			m.Zone != "us-east5-a" || m.WorkloadName() != "llama" || m.Incarnation() != (events.Incarnation{Zone: "us-east5/research/teams", ID: "5d1f"}) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m := onNode.inContainer(of(inPod(without("PITCREW_JOBSET")))); m.WorkloadName() != "llama-slice-0" {
		t.Errorf("a bare Job is the workload %q", m.WorkloadName())
	}
	m := onNode.inContainer(of(map[string]string{"JOB_COMPLETION_INDEX": "3"}))
	if m.Pod.Known() || m.Place() != "us-east5-a" || m.Worker != 0 || m.Incarnation() != (events.Incarnation{Zone: "us-east5-a"}) || m.WorkloadName() != m.SliceName() {
		t.Errorf("no Pod: %+v", m)
	}
}

// TestGKEsMetadataServerNeedNotListAll: it has single values for Pods, and refuses the list of all.
func TestGKEsMetadataServerNeedNotListAll(t *testing.T) {
	values := map[string]string{"project/project-id": "demo", "instance/zone": "projects/1234/zones/us-east5-a"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		v, ok := values[strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/")]
		if !ok || r.URL.RawQuery != "" {
			http.Error(w, "no such value", http.StatusForbidden)
			return
		}
		if _, err := w.Write([]byte(v)); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	c := New(strings.TrimPrefix(s.URL, "http://"))
	if m, err := c.Machine(t.Context()); err == nil {
		t.Errorf("outside of a Pod it names %+v", m)
	}
	for name, value := range inPod() {
		t.Setenv(name, value)
	}
	m, err := c.Machine(t.Context())
	if err != nil || m.Project != "demo" || m.Zone != "us-east5-a" || !m.ServiceAccounts || m.Pod.Job != "llama-slice-0" || m.Workers != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	delete(values, "project/project-id")
	if m, err := c.Machine(t.Context()); err == nil {
		t.Errorf("without a project it names %+v", m)
	}
}
