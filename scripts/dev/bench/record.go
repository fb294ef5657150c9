package main

import (
	"bufio"
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// kept is what a made-up record is about: so many slices, and how long each trains until something happens to it. Where workers are
// renamed, each life of a slice has workers of its own, as in a real record. A replay takes those that no entry ties to a slice for
// more slices, so a record of a known fleet has the same names in every life.
type kept struct {
	slices      int
	least, most time.Duration
	renamed     bool
}

// largest is what the record of a million entries is about.
var largest = kept{slices: 120, least: 2 * time.Hour, most: 40 * time.Hour, renamed: true}

// recordStart is when a made-up record begins.
var recordStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// write writes a record of so many entries, or of all before a moment, as gcloud logging read --format=json --order=asc does:
// made-up entries in true shape. They tell of slices that are lost, brought back by an older script, and maintained; most tell of
// other things. The same seed writes the same bytes. It returns how often a slice was lost.
func (k kept) write(w io.Writer, entries int, before time.Time, seed uint64) (lost int, err error) {
	out := bufio.NewWriterSize(w, 1<<20)
	r := &recorder{kept: k, rand: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // made-up entries
	for i := range k.slices {
		s := &recordSlice{n: i, zone: zones[i%len(zones)], accelerator: accelerators[i%len(accelerators)]}
		r.later(recordStart.Add(time.Duration(r.rand.IntN(3600))*time.Second), func(at time.Time) { r.create(s, at, "ann@example.com") })
	}
	_, _ = out.WriteString("[\n") //nolint:errcheck // Flush tells
	for n := 0; n < entries; n++ {
		for len(r.ready) == 0 && r.due[0].at.Before(before) {
			e := heap.Pop(&r.due).(due) //nolint:forcetypeassert // it holds nothing else
			e.happen(e.at)
		}
		if len(r.ready) == 0 {
			break
		}
		if n > 0 {
			_, _ = out.WriteString(",\n") //nolint:errcheck // Flush tells
		}
		_, _ = out.WriteString(r.ready[0]) //nolint:errcheck // Flush tells
		r.ready = r.ready[1:]
	}
	_, _ = out.WriteString("\n]\n") //nolint:errcheck // Flush tells
	return r.lost, out.Flush()
}

// writeRecord writes the first entries of the largest record.
func writeRecord(w io.Writer, entries int, seed uint64) error {
	_, err := largest.write(w, entries, recordStart.AddDate(100, 0, 0), seed)
	return err
}

var (
	zones        = []string{"us-west4-a", "us-central2-b", "us-east5-a", "europe-west4-b"}
	accelerators = []string{"v5litepod-16", "v5p-32", "v6e-64", "v4-8", "v5litepod-8"}
	workersOf    = map[string]int{"v5litepod-16": 4, "v5p-32": 4, "v6e-64": 16, "v4-8": 1, "v5litepod-8": 1}
)

const babysitter = "babysitter@demo.iam.gserviceaccount.com"

// recordSlice is one slice of the record.
type recordSlice struct {
	n                 int
	zone, accelerator string
	life              int
	up                bool
	step              int
}

func (s *recordSlice) name() string { return fmt.Sprintf("llama-%03d", s.n) }

func (r *recorder) group(s *recordSlice) string {
	life := s.life
	if !r.renamed {
		life = 0
	}
	return fmt.Sprintf("t1v-n-%08x", uint32(s.n*2654435761+life*40503+7)) //nolint:gosec // any eight digits do
}

// due is something that happens later.
type due struct {
	at     time.Time
	seq    int
	happen func(time.Time)
}

type dues []due

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].at.Before(d[j].at) || d[i].at.Equal(d[j].at) && d[i].seq < d[j].seq
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(due)) } //nolint:forcetypeassert // it holds nothing else
func (d *dues) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

type recorder struct {
	kept
	rand  *rand.Rand
	lost  int
	due   dues
	seq   int
	ready []string
}

func (r *recorder) later(at time.Time, happen func(time.Time)) {
	r.seq++
	heap.Push(&r.due, due{at, r.seq, happen})
}

func (r *recorder) after(at time.Time, least, most time.Duration, happen func(time.Time)) {
	r.later(at.Add(least+time.Duration(r.rand.Int64N(int64(most-least)))), happen)
}

// create brings a slice up; every second try finds no capacity.
func (r *recorder) create(s *recordSlice, at time.Time, by string) {
	if r.rand.IntN(2) == 0 {
		r.call(s, at, "CreateNode", by, false, true, 8, `There is no more capacity in the zone \"`+s.zone+`\"; you can try in another zone where Cloud TPU Nodes are offered`)
		r.after(at, 5*time.Minute, 40*time.Minute, func(at time.Time) { r.create(s, at, by) })
		return
	}
	r.call(s, at, "CreateNode", by, true, false, 0, "")
	r.after(at, 3*time.Minute, 9*time.Minute, func(at time.Time) {
		r.call(s, at, "CreateNode", by, false, true, 0, "")
		s.up = true
		s.life++
		r.live(s, at)
	})
}

// live is the life of a slice that is up: it trains, other programs log, and in the end something happens to it.
func (r *recorder) live(s *recordSlice, at time.Time) {
	life := s.life
	alive := func(then func(time.Time)) func(time.Time) {
		return func(at time.Time) {
			if s.up && s.life == life {
				then(at)
			}
		}
	}
	var progress, monitor func(time.Time)
	progress = alive(func(at time.Time) {
		s.step += 100
		r.crew(s, at)
		r.after(at, time.Hour, 2*time.Hour, progress) // real ones come every five minutes
	})
	monitor = alive(func(at time.Time) {
		r.monitor(s, at)
		r.after(at, 2*time.Hour, 4*time.Hour, monitor)
	})
	r.later(at.Add(time.Minute), progress)
	r.later(at.Add(time.Minute), monitor)
	r.after(at, r.least, r.most, alive(func(at time.Time) {
		switch r.rand.IntN(10) {
		case 0:
			r.restarted(s, at, "hostError", 6*time.Minute, 30*time.Minute)
		case 1, 2:
			r.announced(s, at)
		default:
			r.preempted(s, at)
		}
	}))
}

// preempted is what happens most: every worker says so, and a script notices and makes another.
func (r *recorder) preempted(s *recordSlice, at time.Time) {
	s.up = false
	r.lost++
	for w := range workersOf[s.accelerator] {
		r.after(at, 0, 3*time.Second, func(at time.Time) { r.system(s, at, "preempted", w, "", "") })
	}
	r.after(at, 30*time.Second, 10*time.Minute, func(at time.Time) {
		r.call(s, at, "DeleteNode", babysitter, true, false, 0, "")
		r.after(at, time.Minute, 3*time.Minute, func(at time.Time) {
			r.call(s, at, "DeleteNode", babysitter, false, true, 0, "")
			r.later(at.Add(time.Second), func(at time.Time) { r.create(s, at, babysitter) })
		})
	})
}

// restarted is what Google mends itself.
func (r *recorder) restarted(s *recordSlice, at time.Time, method string, least, most time.Duration) {
	s.up = false
	r.lost++
	for w := range workersOf[s.accelerator] {
		r.after(at, 0, 3*time.Second, func(at time.Time) { r.system(s, at, method, w, "", "") })
		r.after(at, least, most, func(at time.Time) { r.system(s, at, "automaticRestart", w, "", "") })
	}
	r.after(at, most, most+time.Minute, func(at time.Time) {
		s.up = true // the machines keep their names
		r.live(s, at)
	})
}

// announced is scheduled maintenance, from its notice to its end.
func (r *recorder) announced(s *recordSlice, at time.Time) {
	begin := at.Add(6 * time.Hour).Truncate(time.Hour)
	metadata := func(status string) string {
		return fmt.Sprintf(`,
      "metadata": {
        "type": "SCHEDULED",
        "windowStartTime": "%s",
        "canReschedule": true,
        "latestWindowStartTime": "%s",
        "windowEndTime": "%s",
        "maintenanceStatus": "%s"
      }`, begin.Format(time.RFC3339), begin.Format(time.RFC3339), begin.Add(4*time.Hour).Format(time.RFC3339), status)
	}
	for w := range workersOf[s.accelerator] {
		r.after(at, 0, 20*time.Second, func(at time.Time) {
			r.system(s, at, "upcomingMaintenance", w, "Maintenance is scheduled for this instance.", metadata("PENDING"))
		})
		r.after(begin, 0, 20*time.Second, func(at time.Time) {
			r.system(s, at, "upcomingMaintenance", w, "Maintenance has started for this instance.", metadata("ONGOING"))
		})
		r.after(begin, 41*time.Minute, 42*time.Minute, func(at time.Time) {
			r.system(s, at, "upcomingMaintenance", w, "Maintenance window has completed for this instance. All maintenance notifications on the instance have been removed.", "")
		})
	}
	r.after(begin, 20*time.Second, 21*time.Second, func(at time.Time) {
		r.restarted(s, at, "terminateOnHostMaintenance", 20*time.Minute, 40*time.Minute)
	})
}

func (r *recorder) put(format string, args ...any) {
	r.ready = append(r.ready, fmt.Sprintf(format, args...))
}

func (r *recorder) word(letters string, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(letters[r.rand.IntN(len(letters))])
	}
	return b.String()
}

func stamp(at time.Time) string { return at.Format("2006-01-02T15:04:05.000000000Z") }

// system is a system event of one worker.
func (r *recorder) system(s *recordSlice, at time.Time, method string, worker int, message, metadata string) {
	status := "{}"
	if message != "" {
		status = "{\n        \"message\": \"" + message + "\"\n      }"
	}
	r.put(`  {
    "insertId": "-%s",
    "logName": "projects/demo/logs/cloudaudit.googleapis.com%%2Fsystem_event",
    "operation": {
      "first": true,
      "id": "systemevent-%d-%s-%s-%s",
      "last": true,
      "producer": "compute.instances.%s"
    },
    "protoPayload": {
      "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
      "authenticationInfo": {
        "principalEmail": "system@google.com"
      },
      "methodName": "compute.instances.%s",
      "request": {
        "@type": "type.googleapis.com/compute.instances.%s"
      },
      "requestMetadata": {
        "destinationAttributes": {},
        "requestAttributes": {}
      },
      "resourceName": "projects/demo/zones/%s/instances/%s-w-%d",
      "serviceName": "compute.googleapis.com",
      "status": %s%s
    },
    "receiveTimestamp": "%s",
    "resource": {
      "labels": {
        "instance_id": "%019d",
        "project_id": "demo",
        "zone": "%s"
      },
      "type": "gce_instance"
    },
    "severity": "INFO",
    "timestamp": "%s"
  }`, r.word("abcdefghijklmnopqrstuvwxyz0123456789", 11), at.UnixMilli(), r.word("0123456789abcdef", 13), r.word("0123456789abcdef", 8), r.word("0123456789abcdef", 8),
		method, method, method, s.zone, r.group(s), worker, status, metadata, stamp(at.Add(700*time.Millisecond)), r.rand.Int64(), s.zone, stamp(at))
}

// call is an audit entry of a call of the TPU API.
func (r *recorder) call(s *recordSlice, at time.Time, method, by string, first, last bool, code int, message string) {
	severity, status := "NOTICE", "{}"
	if code != 0 {
		severity, status = "ERROR", fmt.Sprintf("{\n        \"code\": %d,\n        \"message\": \"%s\"\n      }", code, message)
	}
	operation := ""
	if first || last && code == 0 {
		end := "first"
		if last {
			end = "last"
		}
		operation = fmt.Sprintf(`
    "operation": {
      "id": "projects/demo/locations/%s/operations/operation-%d-%s",
      "producer": "tpu.googleapis.com",
      "%s": true
    },`, s.zone, at.UnixMilli(), r.word("0123456789abcdef", 13), end)
	}
	request := fmt.Sprintf(`"@type": "type.googleapis.com/google.cloud.tpu.v2alpha1.%sRequest"`, method)
	if method == "CreateNode" {
		request += fmt.Sprintf(`,
        "node": {
          "acceleratorType": "%s",
          "runtimeVersion": "v2-alpha-tpuv5-lite",
          "schedulingConfig": {
            "spot": true
          }
        },
        "nodeId": "%s"`, s.accelerator, s.name())
	}
	r.put(`  {
    "insertId": "-%s",
    "logName": "projects/demo/logs/cloudaudit.googleapis.com%%2Factivity",%s
    "protoPayload": {
      "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
      "authenticationInfo": {
        "principalEmail": "%s"
      },
      "methodName": "google.cloud.tpu.v2alpha1.Tpu.%s",
      "request": {
        %s
      },
      "requestMetadata": {
        "callerIp": "203.0.113.7",
        "callerSuppliedUserAgent": "google-cloud-sdk gcloud/528.0.0 command/gcloud.compute.tpus.tpu-vm",
        "destinationAttributes": {},
        "requestAttributes": {}
      },
      "resourceName": "projects/demo/locations/%s/nodes/%s",
      "serviceName": "tpu.googleapis.com",
      "status": %s
    },
    "receiveTimestamp": "%s",
    "resource": {
      "labels": {
        "method": "google.cloud.tpu.v2alpha1.Tpu.%s",
        "project_id": "demo",
        "service": "tpu.googleapis.com"
      },
      "type": "audited_resource"
    },
    "severity": "%s",
    "timestamp": "%s"
  }`, r.word("abcdefghijklmnopqrstuvwxyz0123456789", 11), operation, by, method, request, s.zone, s.name(), status, stamp(at.Add(400*time.Millisecond)), method, severity, stamp(at))
}

// crew is a line of the program beside the training.
func (r *recorder) crew(s *recordSlice, at time.Time) {
	r.put(`  {
    "insertId": "%s",
    "jsonPayload": {
      "attempt": %d,
      "checkpoint_step": %d,
      "checkpoint_uri": "gs://demo-checkpoints/%s/checkpoint_%08d/items",
      "hostname": "%s-w-0",
      "node": "%s",
      "report": "progress",
      "schema": 1,
      "step": %d,
      "worker": 0,
      "workers": %d,
      "zone": "%s"
    },
    "labels": {
      "accelerator": "%s",
      "version": "0.4.0"
    },
    "logName": "projects/demo/logs/pitstop-crew",
    "receiveTimestamp": "%s",
    "resource": {
      "labels": {
        "instance_id": "%019d",
        "project_id": "demo",
        "zone": "%s"
      },
      "type": "gce_instance"
    },
    "severity": "INFO",
    "timestamp": "%s"
  }`, r.word("abcdefghijklmnopqrstuvwxyz0123456789", 14), s.life, s.step-s.step%1000, s.name(), s.step-s.step%1000, r.group(s), s.name(), s.step, workersOf[s.accelerator], s.zone,
		s.accelerator, stamp(at.Add(300*time.Millisecond)), r.rand.Int64(), s.zone, stamp(at))
}

// monitor is a line that nobody reads.
func (r *recorder) monitor(s *recordSlice, at time.Time) {
	r.put(`  {
    "insertId": "%s",
    "jsonPayload": {
      "counters": {
        "system_available_memory_GiB": %d.%03d,
        "tensorcore_idle_duration_s": 0
      },
      "message": "%s",
      "verb": "systemmonitor"
    },
    "labels": {
      "agent_version": "1.14.2"
    },
    "logName": "projects/demo/logs/tpu.googleapis.com%%2Fruntime_monitor",
    "receiveTimestamp": "%s",
    "resource": {
      "labels": {
        "node_id": "%s",
        "project_id": "demo",
        "worker_id": "0",
        "zone": "%s"
      },
      "type": "tpu_worker"
    },
    "severity": "DEFAULT",
    "timestamp": "%s"
  }`, r.word("abcdefghijklmnopqrstuvwxyz0123456789", 14), 40+r.rand.IntN(300), r.rand.IntN(1000), r.word("abcdefghijklmnopqrstuvwxyz     ", 820),
		stamp(at.Add(900*time.Millisecond)), s.name(), s.zone, stamp(at))
}
