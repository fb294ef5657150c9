package gke

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// large is the lists of a fleet with 2,000 Jobs of two Pods each on 4,000 machines, as JSON.
func large() (jobs, pods, nodes string) {
	var j, p, n []string
	for i := range 2000 {
		j = append(j, fmt.Sprintf(`{"metadata":{"name":"job-%04d","namespace":"teams","uid":"j%d","resourceVersion":"%d","creationTimestamp":"2026-11-12T10:00:00Z","labels":{"pitstop-policy":"spot","team":"a"}},`+
			`"spec":{"parallelism":2,"completions":2,"completionMode":"Indexed","backoffLimit":0,"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"j%d"}},`+
			`"template":{"metadata":{"labels":{"batch.kubernetes.io/job-name":"job"}},"spec":{"nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4"},`+
			`"restartPolicy":"Never","containers":[{"name":"training","image":"training:1","env":[{"name":"A","value":"b"}],"resources":{"limits":{"google.com/tpu":"4"},"requests":{"google.com/tpu":"4"}}}]}}},`+
			`"status":{"active":2,"ready":2,"startTime":"2026-11-12T10:00:00Z"}}`, i, i, i, i))
		for k := range 2 {
			m := 2*i + k
			p = append(p, fmt.Sprintf(`{"metadata":{"name":"job-%04d-%d-x7k2p","namespace":"teams","uid":"p%d","creationTimestamp":"2026-11-12T10:00:00Z","labels":{"batch.kubernetes.io/job-name":"job-%04d"},`+
				`"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"job-%04d","uid":"j%d","controller":true,"blockOwnerDeletion":true}]},"spec":{"nodeName":"n-%04d","restartPolicy":"Never",`+
				`"containers":[{"name":"training","image":"training:1","resources":{"limits":{"google.com/tpu":"4"}}}]},`+
				`"status":{"phase":"Running","startTime":"2026-11-12T10:05:00Z","conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}]}}`, i, k, m, i, i, i, m))
			n = append(n, fmt.Sprintf(`{"metadata":{"name":"n-%04d","uid":"n%d","creationTimestamp":"2026-11-12T09:00:00Z","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-flex-start":"true",`+
				`"kubernetes.io/hostname":"n"},"annotations":{"node.gke.io/machine-termination-datetime":"2026-11-18T09:00:00Z"}},"spec":{"taints":[{"key":"google.com/tpu","effect":"NoSchedule"}]},`+
				`"status":{"allocatable":{"google.com/tpu":"4","cpu":"180"},"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}],"images":[{"names":["training:1"],"sizeBytes":1}]}}`, m, m))
		}
	}
	all := func(l []string) string { return "[" + strings.Join(l, ",") + "]" }
	return all(j), all(p), all(n)
}

func decoded(b *testing.B) (o Objects) {
	b.Helper()
	jobs, pods, nodes := large()
	for _, x := range []struct {
		text string
		into any
	}{{jobs, &o.Jobs}, {pods, &o.Pods}, {nodes, &o.Nodes}} {
		if err := json.Unmarshal([]byte(x.text), x.into); err != nil {
			b.Fatal(err)
		}
	}
	return o
}

// BenchmarkDecode is what every reader of such a fleet has to do.
func BenchmarkDecode(b *testing.B) {
	jobs, pods, nodes := large()
	for b.Loop() {
		var o Objects
		for _, x := range []struct {
			text string
			into any
		}{{jobs, &o.Jobs}, {pods, &o.Pods}, {nodes, &o.Nodes}} {
			if err := json.Unmarshal([]byte(x.text), x.into); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkReadings is what a reading takes beside that.
func BenchmarkReadings(b *testing.B) {
	o := decoded(b)
	for b.Loop() {
		if n := len(Readings(o, "us-east5", "research", now)); n != 2000 {
			b.Fatal(n)
		}
	}
}
