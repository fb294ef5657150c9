package events_test

import (
	"bytes"
	"fmt"
	"testing"

	"pitstop.internal/events"
)

// corpus makes entries of the usual size that differ as real ones do, so that nothing is read from a cache of strings.
func corpus(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, `{
  "protoPayload": {
    "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
    "status": {"message": "Instance was preempted."},
    "authenticationInfo": {"principalEmail": "system@google.com"},
    "requestMetadata": {"requestAttributes": {}, "destinationAttributes": {}},
    "serviceName": "compute.googleapis.com",
    "methodName": "compute.instances.preempted",
    "resourceName": "projects/demo/zones/us-west4-a/instances/t1v-n-%08x-w-%d",
    "request": {"@type": "type.googleapis.com/compute.instances.preempted"}
  },
  "insertId": "-usf%08xij2",
  "resource": {
    "type": "gce_instance",
    "labels": {"instance_id": "21622241231%08d", "zone": "us-west4-a", "project_id": "demo"}
  },
  "timestamp": "2026-11-12T02:14:%02d.%06dZ",
  "severity": "INFO",
  "logName": "projects/demo/logs/cloudaudit.googleapis.com%%2Fsystem_event",
  "operation": {
    "id": "systemevent-17629136%05d-5a4fe3c9f15b7-52b60abd-2478beea",
    "producer": "compute.instances.preempted",
    "first": true,
    "last": true
  },
  "receiveTimestamp": "2026-11-12T02:15:%02d.%06dZ"
}`, i*2654435761%(1<<32), i%1536, i*40503%(1<<32), i, i%60, i%1000000, i%100000, i%60, i%1000000)
	}
	return out
}

// BenchmarkRead is the first figure: one log entry of about 1.2 KB to a classified event.
func BenchmarkRead(b *testing.B) {
	entries := corpus(4096)
	b.SetBytes(int64(len(entries[0])))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := events.Read(entries[i%len(entries)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkReadMix is the same over the entries of every source, as a project's own past mixes them: each in many
// places, so that nothing is read from a cache of strings.
func BenchmarkReadMix(b *testing.B) {
	var entries [][]byte
	size := 0
	for i := range 32 {
		for _, s := range sourceEntries(b) {
			raw := bytes.ReplaceAll(s.raw, []byte("3f2a9c01"), fmt.Appendf(nil, "%08x", i*2654435761%(1<<32)))
			raw = bytes.ReplaceAll(raw, []byte("llama-8b"), fmt.Appendf(nil, "llama-%db", i))
			entries = append(entries, raw)
			size += len(raw)
		}
	}
	b.SetBytes(int64(size / len(entries)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := events.Read(entries[i%len(entries)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
