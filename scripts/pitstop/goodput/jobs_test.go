package goodput_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
)

const (
	train     = "us-east5/research/train"
	jobSets   = "system:serviceaccount:jobset-system:jobset-controller-manager"
	ttl       = "system:serviceaccount:kube-system:ttl-after-finished-controller"
	batch     = "io.k8s.batch.v1.jobs."
	jobset    = "io.x-k8s.jobset.v1alpha2.jobsets."
	gkeNode   = "gke-research-tpu-2f41c6aa-bq7x"
	elsewhere = "gke-other-tpu-2f41c6aa-bq7x"
)

// inCluster reads an entry about a cluster: minutes since the start, and what happens.
//
//	0 create llama by ann v6e-16    a call on a Job, or with set: before the name on a JobSet; nodes:a,b are its Jobs
//	60 preempted gke-...            a system event of a machine
//	50 scheduled gke-... 90         a node's announced maintenance
//	61 failed llama                 the end of a Job
func inCluster(t *testing.T, s string, n int) events.Entry {
	t.Helper()
	words := strings.Fields(s)
	minutes, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	e := events.Entry{
		ID: fmt.Sprint("entry ", n), Rank: events.RankAudit, Time: start.Add(time.Duration(minutes * float64(time.Minute))),
		Subject: events.Subject{Project: project, Zone: train},
	}
	name, set := strings.CutPrefix(words[2], "set:")
	job := func() {
		e.Subject.Node = name
		if set {
			e.Subject.Node, e.Subject.QueuedResource = "", name
		}
	}
	node := func(event events.ClusterEvent) {
		e.Kind, e.Ignored, e.Cluster = events.KindCluster, "only noted", &events.Cluster{Event: event}
		e.Subject = events.Subject{Project: project, Zone: "us-east5", Cluster: "research", Worker: name}
	}
	machines := map[string]events.Cause{"preempted": events.CausePreemption, "hosterror": events.CauseHostError, "stopped": events.CauseMaintenance}
	switch verb := words[1]; verb {
	case "create", "delete", "patch":
		job()
		e.Kind, e.Call.Method = events.KindCall, batch+verb
		if set {
			e.Call.Method = jobset + verb
		}
		for _, w := range words[3:] {
			nodes, some := strings.CutPrefix(w, "nodes:")
			namespace, other := strings.CutPrefix(w, "in:")
			switch {
			case other:
				e.Subject.Zone = "us-east5/research/" + namespace
			case some:
				e.Call.Order.Nodes = strings.Split(nodes, ",")
			case w == "suspend", w == "resume":
				yes := w == "suspend"
				e.Call.Suspend = &yes
			case w == "refused":
				e.Call.Code = 7
			case strings.Contains(w, "@"), strings.HasPrefix(w, "system:"):
				e.Call.Principal = w
			default:
				e.Call.Order.Accelerator = w
			}
		}
	case "failed", "completed":
		job()
		e.Kind, e.Rank, e.Ignored, e.Cluster = events.KindCluster, events.RankUser, "only noted", &events.Cluster{Event: events.ClusterEvent("job_" + verb)}
	case "scheduled":
		node(events.ClusterScheduled)
		m, _ := strconv.Atoi(words[3]) //nolint:errcheck // the test says it
		e.Cluster.At = start.Add(time.Duration(m) * time.Minute)
	case "interrupted":
		node(events.ClusterPreemption)
	default:
		if machines[verb] == "" {
			t.Fatalf("%q says nothing", s)
		}
		e.Kind, e.Cause = events.KindLoss, machines[verb]
		e.Subject = events.Subject{Project: project, Zone: "us-east5-a", Worker: name}
	}
	return e
}

func ofJobs(t *testing.T, record ...string) (goodput.Report, []string) {
	t.Helper()
	a := goodput.New(goodput.Who{}, 20*time.Minute)
	for n, s := range record {
		a.Add(inCluster(t, s, n))
	}
	r := a.Report()
	var all []string
	for _, l := range r.Losses {
		all = append(all, short(l))
	}
	return r, all
}

func TestLossesOfJobs(t *testing.T) {
	born := []string{"0 create llama " + ann + " v6e-16"}
	set := []string{
		"0 create set:llama " + ann + " v6e-16 nodes:llama-slice-0,llama-slice-1", "0.1 create llama-slice-0 " + jobSets + " v6e-16", "0.1 create llama-slice-1 " + jobSets + " v6e-16",
	}
	const at = "60 preemption " + train + " llama "
	for name, c := range map[string]struct {
		record []string
		want   []string
	}{
		"its machine is preempted, and its owner makes it again": {
			append(born, "60 preempted "+gkeNode, "61.3 failed llama", "89 delete llama "+ann, "90 create llama "+ann+" v6e-16"),
			[]string{at + "back gap 30m by owner who " + ann + " deleted " + ann + " generation v6e hours 8 matched"},
		},
		"by an event of Kubernetes alone": {
			append(born, "60 interrupted "+gkeNode, "61.3 failed llama", "90 create llama "+ann),
			[]string{at + "back gap 30m by owner who " + ann + " generation v6e hours 8 matched"},
		},
		"both entries of a machine are one": {
			append(born, "60 interrupted "+gkeNode, "60.1 preempted "+gkeNode, "61.3 failed llama"),
			[]string{at + "not_back gap 1.3m generation v6e hours 0.35 matched"},
		},
		"announced maintenance": {
			append(born, "10 scheduled "+gkeNode+" 60", "60 stopped "+gkeNode, "61 failed llama", "75 create llama "+ann),
			[]string{"60 maintenance " + train + " llama back gap 15m by owner who " + ann + " generation v6e hours 4 lead 50 intime  matched"},
		},
		"announced too late": {
			append(born, "50 scheduled "+gkeNode+" 60", "60 stopped "+gkeNode, "61 failed llama"),
			[]string{"60 maintenance " + train + " llama not_back gap 1m generation v6e hours 0.27 lead 10 matched"},
		},
		"another machine's notice": {
			append(born, "10 scheduled gke-research-tpu-2f41c6aa-0000 60", "60 stopped "+gkeNode, "61 failed llama"),
			[]string{"60 maintenance " + train + " llama not_back gap 1m generation v6e hours 0.27 matched"},
		},
		"a machine of another cluster": {
			append(born, "60 preempted "+elsewhere, "61 failed llama"),
			[]string{"61 unknown " + train + " llama not_back generation v6e"},
		},
		"a machine that was lost long before": {
			append(born, "40 preempted "+gkeNode, "61 failed llama"),
			[]string{"61 unknown " + train + " llama not_back generation v6e"},
		},
		"a JobSet makes its Jobs again": {
			append(set, "60 preempted "+gkeNode, "61 failed llama-slice-1", "61.1 delete llama-slice-0 "+jobSets, "61.1 delete llama-slice-1 "+jobSets,
				"62 create llama-slice-0 "+jobSets+" v6e-16", "62 create llama-slice-1 "+jobSets+" v6e-16"),
			[]string{"60 preemption " + train + " llama-slice-1 back gap 2m by cluster who " + jobSets + " generation v6e hours 0.53 matched"},
		},
		"an owner makes a JobSet again": {
			append(set, "60 preempted "+gkeNode, "61 failed llama-slice-1", "62 failed set:llama", "80 delete set:llama "+ann, "80.1 delete llama-slice-1 "+ttl,
				"90 create set:llama "+ann+" v6e-16 nodes:llama-slice-0,llama-slice-1", "90 create llama-slice-0 "+jobSets+" v6e-16", "90 create llama-slice-1 "+jobSets+" v6e-16"),
			[]string{"60 preemption " + train + " llama-slice-1 back gap 30m by owner who " + ann + " deleted " + ann + " generation v6e hours 8 matched"},
		},
		"an owner gives a lost Job up": {
			append(born, "60 preempted "+gkeNode, "61 failed llama", "90 delete llama "+ann, "500 create other "+ann+" v6e-4"),
			[]string{at + "given_up gap 30m deleted " + ann + " generation v6e hours 8 matched"},
		},
		"a Job of that name in another namespace is another": {append(born, "60 failed llama", "70 create llama in:other "+ann+" v6e-16"), []string{"60 unknown " + train + " llama not_back gap 10m generation v6e hours 2.67"}},
		"two Jobs, each with a machine of its own": {
			append(born, "0 create gemma "+ann+" v6e-4", "60 preempted "+gkeNode, "60.5 hosterror "+gkeNode+"2", "61 failed llama", "62 failed gemma"),
			[]string{"60 preemption " + train + " gemma not_back gap 2m generation v6e hours 0.13 matched", "60.5 host_error " + train + " llama not_back gap 1.5m generation v6e hours 0.4 matched"},
		},
		"Pitstop takes down what is complete":                    {append(born, "60 completed llama", "90 delete llama "+us, "500 create other "+ann+" v6e-4"), nil},
		"an owner deletes a running Job":                         {append(born, "60 delete llama "+ann, "61 failed llama"), nil},
		"an owner suspends it":                                   {append(born, "60 patch llama suspend "+ann, "61 failed llama", "90 patch llama resume "+ann), nil},
		"Kueue suspends it":                                      {append(born, "60 patch llama suspend system:serviceaccount:kueue-system:kueue", "90 patch llama resume system:serviceaccount:kueue-system:kueue"), nil},
		"a complete Job goes by its time to live, and runs anew": {append(born, "60 completed llama", "160 delete llama "+ttl, "200 create llama "+ann+" v6e-16"), nil},
		"a Job runs anew, and no entry says that it was over":    {append(born, "200 create llama "+ann+" v6e-16"), nil},
		"a Job without TPUs":                                     {[]string{"0 create web " + ann, "60 preempted " + gkeNode, "61 failed web"}, nil},
		"a creation that is refused":                             {[]string{"0 create llama refused v6e-16 " + ann, "61 failed llama"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, all := ofJobs(t, c.record...)
			if d := cmp.Diff(c.want, all); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatTheLogsOfAClusterDoNotSay(t *testing.T) {
	r, _ := ofJobs(t,
		"0 create llama "+ann+" v6e-16", "0 create gemma "+ann+" v6e-4", "60 preempted "+gkeNode, "60 preempted "+elsewhere, "61 failed llama", "90 create llama "+ann+" v6e-16",
		"200 failed gemma", "201 failed web", "202 failed set:web",
	)
	for _, want := range []string{
		"losses of machines of GKE with which no Job is known to have failed: 1. They are not in this report",
		"Jobs that failed within 10 minutes after a machine of their cluster was lost: 1. Their causes and notices are those of the machines, for no entry says where a Job ran",
		"Jobs that failed, and no machine of their clusters was lost shortly before: 1. Their trainings may have ended by themselves",
		"Jobs that count as back from their creation on: 1. No entry says when their Pods ran again",
		"failures of JobSets, or of Jobs whose creation is not in the record, so that they may have no TPU: 2. They are not in this report",
	} {
		if !slices.Contains(r.Unsure, want) {
			t.Errorf("%q is not said: %q", want, r.Unsure)
		}
	}
	for _, said := range r.Unsure {
		if strings.Contains(said, "have no entry of their own") {
			t.Errorf("a Job has an entry of its own: %q", said)
		}
	}
	if r.Elsewhere != 1 || r.Slices != 2 || r.Total.Losses != 2 || r.Total.Back != 1 || len(r.Leaks.Left) != 0 || r.Released != 0 {
		t.Errorf("%+v", r)
	}
}

// TestWhatIsCompleteIsNotReleased: taking it down takes down no TPU that runs.
func TestWhatIsCompleteIsNotReleased(t *testing.T) {
	if r, _ := ofJobs(t, "0 create llama "+ann+" v6e-16", "60 completed llama", "90 delete llama "+ann); r.Released != 0 {
		t.Errorf("%d deletions of running TPUs", r.Released)
	}
}

// TestAJobSetThatIsMadeAgainWholeIsOneInterruption: its controller deletes the Job that did not fail, too.
func TestAJobSetThatIsMadeAgainWholeIsOneInterruption(t *testing.T) {
	record := []string{"0 create set:s " + ann + " nodes:s-a-0,s-b-0 v6e-16", "0.1 create s-a-0 " + jobSets + " v6e-16", "0.1 create s-b-0 " + jobSets + " v6e-16", "60 preempted " + gkeNode, "62 failed s-a-0"}
	record = append(record, "62.1 delete s-a-0 "+jobSets, "62.1 delete s-b-0 "+jobSets, "62.5 create s-a-0 "+jobSets+" v6e-16", "62.6 create s-b-0 "+jobSets+" v6e-16", "100 scheduled "+gkeNode+" 90")
	r, _ := ofJobs(t, record...)
	if len(r.Workloads) != 1 || len(r.Interruptions) != 1 || r.Workloads[0].Stops != 1 {
		t.Errorf("workloads %+v, interruptions %+v", r.Workloads, r.Interruptions)
	}
}
