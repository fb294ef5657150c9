package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/trigger"
)

// The clusters of the measurement: 2,000 Jobs of two Pods, each on a machine of its own.
const (
	clusterCount  = 20
	clusterJobs   = 100 // a cluster
	clusterPods   = 2   // a Job
	clusterTicks  = 5
	clusterReach  = 2.0
	clusterMemory = 64 << 10 // KiB
)

// clustersArgument has this program be the function patrol over clusters at an address, and measure itself: what holds the clusters is
// another process.
const clustersArgument = "patrol-clusters"

// clusterFigures are what the process of patrol measures.
type clusterFigures struct {
	// Lists and Tick are the processor time of decoding all lists, and of a tick at which nothing has changed.
	Lists, Tick time.Duration
	// First is that of the first tick, which stores every Job.
	First time.Duration
	// Reads is how many calls a tick makes.
	Reads int
	// Peak is the most memory of the process, in KiB; it holds the ledger as well. Waiting is what it holds between two ticks.
	Peak, Waiting int64
	Workloads     int
}

// benchClusters measures patrol over 20 clusters with 2,000 Jobs and 4,000 machines.
func benchClusters(ctx context.Context) ([]figure, error) {
	server := httptest.NewServer(http.HandlerFunc(answerList))
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, clustersArgument, server.URL) //nolint:gosec // this very program
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	var f clusterFigures
	if err := json.Unmarshal(out, &f); err != nil {
		return nil, err
	}
	if f.Workloads != clusterCount*clusterJobs {
		return nil, fmt.Errorf("patrol knows %d workloads", f.Workloads)
	}
	ratio := float64(f.Tick) / float64(f.Lists)
	what := fmt.Sprintf("patrol, %d clusters, %d Jobs, %d machines", clusterCount, clusterCount*clusterJobs, clusterCount*clusterJobs*clusterPods)
	return []figure{
		{what + ", reads a tick", fmt.Sprintf("%d", f.Reads), "4 a cluster", f.Reads <= 4*clusterCount},
		{
			what + ", processor time of a quiet tick", fmt.Sprintf("%.2f s, %.2f times the %.2f s of decoding the lists", f.Tick.Seconds(), ratio, f.Lists.Seconds()),
			"at most 2 times", ratio <= clusterReach,
		},
		{what: what + ", processor time of the first tick", value: fmt.Sprintf("%.2f s", f.First.Seconds())},
		{
			what + ", peak memory with a ledger in memory (between ticks)", fmt.Sprintf("%.1f (%.1f) MiB", float64(f.Peak)/1024, float64(f.Waiting)/1024),
			"under 64 MiB", f.Peak < clusterMemory,
		},
	}, nil
}

// answerList is the API server of every cluster: what comes first in the path is its number.
func answerList(w http.ResponseWriter, r *http.Request) {
	cluster, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	kind, n := path[strings.LastIndexByte(path, '/')+1:], clusterJobs
	var item func(i int) string
	switch kind {
	case "jobs":
		item = func(i int) string { return jobObject(cluster, i) }
	case "pods":
		n, item = clusterJobs*clusterPods, func(i int) string { return podObject(cluster, i) }
	case "nodes":
		n, item = clusterJobs*clusterPods, func(i int) string { return nodeObject(cluster, i) }
	default:
		n = 0
	}
	fmt.Fprint(w, `{"kind":"List","metadata":{"resourceVersion":"7"},"items":[`) //nolint:errcheck // the caller notices
	for i := range n {
		if i > 0 {
			fmt.Fprint(w, ",") //nolint:errcheck // likewise
		}
		fmt.Fprint(w, item(i)) //nolint:errcheck // likewise
	}
	fmt.Fprint(w, "]}") //nolint:errcheck // likewise
}

const clusterBorn = "2026-11-12T10:00:00Z"

func jobObject(cluster string, i int) string {
	return fmt.Sprintf(`{"metadata":{"name":"job-%[1]s-%03[2]d","namespace":"teams","uid":"j%[1]s-%[2]d","resourceVersion":"%[2]d","generation":1,"creationTimestamp":%[3]q,"labels":{"pitstop-policy":"spot","team":"a"},`+
		`"annotations":{"pitstop-checkpoint-dir":"gs://ckpt/%[1]s-%[2]d"},"managedFields":[{"manager":"kubectl","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{}},"f:spec":{"f:template":{}}}}]},`+
		`"spec":{"parallelism":2,"completions":2,"completionMode":"Indexed","backoffLimit":0,"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"j"}},"template":{"metadata":{"labels":{"app":"t"}},`+
		`"spec":{"nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4","cloud.google.com/gke-spot":"true"},"restartPolicy":"Never",`+
		`"containers":[{"name":"train","image":"europe-docker.pkg.dev/demo/train:1","command":["python3","train.py"],"env":[{"name":"A","value":"b"},{"name":"TOKEN","value":"x"}],"ports":[{"containerPort":8471},{"containerPort":8431}],`+
		`"resources":{"limits":{"google.com/tpu":"4"},"requests":{"google.com/tpu":"4"}}}]}}},"status":{"active":2,"ready":2,"startTime":%[3]q}}`, cluster, i, clusterBorn)
}

func podObject(cluster string, i int) string {
	job := i / clusterPods
	return fmt.Sprintf(`{"metadata":{"name":"job-%[1]s-%03[2]d-%[3]d-x7k2p","namespace":"teams","uid":"p%[1]s-%[4]d","resourceVersion":"9","creationTimestamp":%[5]q,"labels":{"batch.kubernetes.io/job-name":"job"},`+
		`"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"job-%[1]s-%03[2]d","uid":"j%[1]s-%[2]d","controller":true}],"managedFields":[{"manager":"kube-controller-manager","fieldsV1":{"f:metadata":{},"f:spec":{}}}]},`+
		`"spec":{"nodeName":"n-%[1]s-%[4]d","restartPolicy":"Never","tolerations":[{"key":"google.com/tpu","operator":"Exists"}],"volumes":[{"name":"t","projected":{"sources":[{"serviceAccountToken":{"path":"token"}}]}}],`+
		`"containers":[{"name":"train","image":"europe-docker.pkg.dev/demo/train:1","env":[{"name":"A","value":"b"}],"resources":{"limits":{"google.com/tpu":"4"}},"volumeMounts":[{"name":"t","mountPath":"/t"}]}]},`+
		`"status":{"phase":"Running","startTime":%[5]q,"podIP":"10.0.0.1","conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"PodScheduled","status":"True"}],`+
		`"containerStatuses":[{"name":"train","ready":true,"restartCount":0,"state":{"running":{"startedAt":%[5]q}}}]}}`, cluster, job, i%clusterPods, i, clusterBorn)
}

// nodeObject is a machine with the labels, the conditions and the images that those of GKE have.
func nodeObject(cluster string, i int) string {
	return fmt.Sprintf(nodeText(), cluster, i, clusterBorn)
}

var nodeText = sync.OnceValue(func() string {
	var labels, images []string
	for k := range 30 {
		labels = append(labels, fmt.Sprintf(`"cloud.google.com/label-%d":"value"`, k))
		images = append(images, fmt.Sprintf(`{"names":["gke.gcr.io/image-%d@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","gke.gcr.io/image-%d:v1.35.2"],"sizeBytes":123456789}`, k, k))
	}
	var conditions []string
	for _, c := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "KernelDeadlock", "ReadonlyFilesystem", "FrequentKubeletRestart", "CorruptDockerOverlay2"} {
		conditions = append(conditions, `{"type":"`+c+`","status":"False","lastHeartbeatTime":%[3]q,"lastTransitionTime":%[3]q,"reason":"No`+c+`","message":"it has none"}`)
	}
	return `{"metadata":{"name":"n-%[1]s-%[2]d","uid":"n%[1]s-%[2]d","resourceVersion":"5","creationTimestamp":%[3]q,"labels":{` + strings.Join(labels, ",") +
		`,"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-spot":"true"},"annotations":{"node.gke.io/last-applied-node-labels":"` + strings.Repeat("a=b,", 60) + `"}},` +
		`"spec":{"providerID":"gce://demo/z/n","taints":[{"key":"google.com/tpu","effect":"NoSchedule"}]},"status":{"allocatable":{"google.com/tpu":"4","cpu":"180"},"conditions":[` + strings.Join(conditions, ",") +
		`,{"type":"Ready","status":"True","lastHeartbeatTime":%[3]q,"lastTransitionTime":%[3]q}],"images":[` + strings.Join(images, ",") + `]}}`
})

// unheard is a publisher whose messages nobody takes.
type unheard struct{}

// Publish implements ledger.Publisher.
func (unheard) Publish(context.Context, events.Envelope) error { return nil }

// patrolClusters is the process that is measured.
func patrolClusters(ctx context.Context, url string) error {
	clock := cloudtputest.NewManualClock(time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC))
	log, reads := slog.New(slog.DiscardHandler), &counted{next: http.DefaultTransport, by: map[string]int{}}
	client := func(_ context.Context, c gke.Cluster) (gke.Client, error) {
		return gke.Client{HTTP: &http.Client{Transport: reads}, URL: url + "/" + strings.TrimPrefix(c.Name, "c")}, nil
	}
	var clusters []gke.Cluster
	for i := range clusterCount {
		clusters = append(clusters, gke.Cluster{Project: project, Location: "us-east5", Name: fmt.Sprintf("c%d", i)})
	}
	providers := provider.Set{provider.GKE: gke.New(clusters, client, clock.Now)}
	kept := ledger.New(memory)
	f := &fleet.Fleet{Ledger: kept, Secrets: ledger.NewSecrets(memory), Provider: providers, Now: clock.Now, Log: log, Advancer: &ledger.Advancer{
		Ledger: kept, Policies: policy.NewSource("", nil, policy.Everything(), clock.Now), Publisher: unheard{}, Now: clock.Now, Sleep: ledger.Sleep,
		Source: "//pitstop/functions/patrol", Cause: trigger.MessageID, Log: log,
	}}
	h := &trigger.Adapter{Name: "HandlePatrol", Log: log, Drain: trigger.NewDrain(func() {}), Handle: patrol.New(patrol.Deps{
		Fleet: f, Provider: providers, Audit: silent{}, Publisher: unheard{}, Project: project, Sleep: ledger.Sleep,
	})}
	var figures clusterFigures
	for n := range clusterTicks + 1 {
		began := processorTime()
		if err := deliver(ctx, h, "patrol", world.Message{ID: fmt.Sprint("tick", n), Data: []byte("{}"), Published: clock.Now()}); err != nil {
			return err
		}
		took, calls := processorTime()-began, 0
		for _, k := range reads.take() {
			calls += k
		}
		if figures.Reads = calls; n == 0 {
			figures.First = took
		} else {
			figures.Tick += took / clusterTicks
		}
		clock.Advance(time.Minute)
	}
	peak, err := statusKiB(os.Getpid(), "VmHWM")
	if err != nil {
		return err
	}
	waiting, err := residentKiB(os.Getpid())
	if err != nil {
		return err
	}
	ids, err := kept.All(ctx)
	if err != nil {
		return err
	}
	figures.Peak, figures.Waiting, figures.Workloads = peak, waiting, len(ids)
	runtime.GC()
	for range clusterTicks {
		began := processorTime()
		var faults []error
		for _, c := range clusters {
			one, err := client(ctx, c)
			if err == nil {
				_, err = one.List(ctx)
			}
			faults = append(faults, err)
		}
		if err := errors.Join(faults...); err != nil {
			return err
		}
		figures.Lists += (processorTime() - began) / clusterTicks
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}
