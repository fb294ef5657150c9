package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"pitstop.internal/shared/provider/gke"
)

// BenchmarkComesBack measures the time from the node's loss that patrol may read until the next Job's Pods have their machines: what
// the functions need, beside the same deletion, creation and scheduling by hand. PITSTOP_CLUSTER=built go test -run=^$ -bench=ComesBack
// -benchtime=20x ./scripts/dev/cluster gives the medians of 20, in seconds.
func BenchmarkComesBack(b *testing.B) {
	p := plane(b)
	var namespaces []string
	for i := range b.N {
		namespaces = append(namespaces, fmt.Sprintf("reach-%d-%d", b.N, i))
	}
	granted := grants(b, p, namespaces)
	var byFunctions, byHand, more []float64
	for _, namespace := range namespaces {
		one := newBed(b, p, namespace)
		granted(one)
		d := deploy(one)
		d.gang()
		functions := d.scheduledAfter(func(gke.Reading) {
			for changed := d.has(2); !changed(d.workload()); {
				d.ticks()
			}
		})
		d.made("DELETE jobs/llama 200", "POST jobs 201")
		hand := d.scheduledAfter(func(former gke.Reading) {
			d.must(d.Do(b.Context(), http.MethodDelete, d.path("Job", "llama"), map[string]any{
				"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "preconditions": map[string]any{"uid": former.Incarnation.ID},
			}, nil))
			for remains := true; remains; {
				_, remains = d.reading("llama", 0)
			}
			d.create(d.job("llama"))
		})
		byFunctions, byHand, more = append(byFunctions, functions.Seconds()), append(byHand, hand.Seconds()), append(more, (functions-hand).Seconds())
	}
	for unit, all := range map[string][]float64{"s-by-functions": byFunctions, "s-by-hand": byHand, "s-more": more} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit)
	}
	b.ReportMetric(more[len(more)-1], "s-more-at-most")
}

// scheduledAfter evicts a Pod, so that the Job fails, and returns how long it takes from there until all Pods of the next one have a
// machine.
func (d *deployment) scheduledAfter(again func(former gke.Reading)) time.Duration {
	d.t.Helper()
	d.ready("llama")
	d.evict(d.pods("llama")[1])
	former := d.follow("llama", "it is lost", is(gke.Lost), gke.Ready, gke.Unhealthy)
	began := time.Now()
	again(former)
	for {
		waits := func(p gke.Pod) bool {
			return p.Spec.NodeName == "" || p.Labels["batch.kubernetes.io/controller-uid"] == former.Incarnation.ID
		}
		if pods := d.pods("llama"); len(pods) == 2 && !slices.ContainsFunc(pods, waits) {
			return time.Since(began)
		}
	}
}
