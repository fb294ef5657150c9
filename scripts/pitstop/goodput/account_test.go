package goodput_test

import (
	"fmt"
	"math"
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
	project = "mine"
	zone    = "us-west4-a"
	workers = "t1v-n-3f2a9c01"
	renewed = "t1v-n-77777777"
	ann     = "ann@example.com"
	script  = "watchdog@mine.iam.gserviceaccount.com"
	us      = "pitstop@mine.iam.gserviceaccount.com"
)

var start = time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)

// line reads an entry as the tests write it: minutes since the start, and what happens.
//
//	5 preempted w2            a system event of one worker; of:GROUP and in:ZONE name others than the usual
//	5 terminate n             one of a node
//	5 pending w0 60-300       a notice with its window, in minutes
//	5 delete n by ann first   a call; first, last or neither; failed; type:v5litepod-16; q:NAME for a queued resource
//	5 progress n              a crew line
func line(t *testing.T, s string, n int) events.Entry {
	t.Helper()
	e := events.Entry{ID: "entry " + strconv.Itoa(n), Rank: events.RankAudit, Subject: events.Subject{Project: project, Zone: zone}}
	words := strings.Fields(s)
	minutes, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	e.Time = start.Add(time.Duration(minutes * float64(time.Minute)))
	at := func(s string) time.Time {
		m, _ := strconv.Atoi(s) //nolint:errcheck // 0 will do
		return start.Add(time.Duration(m) * time.Minute)
	}
	verb, group, worker, ready := words[1], workers, "", time.Time{}
	for _, w := range words[2:] {
		name, value, named := strings.Cut(w, ":")
		switch {
		case named && name == "of":
			group = value
		case named && name == "in":
			e.Subject.Zone = value
		case named && name == "type":
			e.Call.Order.Accelerator = value
		case named && name == "q":
			e.Subject.QueuedResource = value
		case named && name == "nodes":
			e.Call.Order.Nodes = strings.Split(value, ",")
		case named && name == "project":
			e.Subject.Project = value
		case named && name == "ready":
			ready = at(value)
		case named && name == "received":
			e.Received = at(value)
		case named && name == "id":
			e.ID = value
		case w[0] == 'w' && strings.Trim(w[1:], "0123456789") == "":
			worker = w
		case strings.Contains(w, "@"):
			e.Call.Principal = w
		case w == "first":
			e.Call.First = true
		case w == "last":
			e.Call.Last = true
		case w == "overquota":
			e.Call.Code, e.Call.Message = 8, "Quota limit 'TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI' has been exceeded"
		case w == "failed":
			e.Call.Code, e.Call.Message = 8, "There is no more capacity in the zone"
		case w[0] >= '0' && w[0] <= '9':
			from, to, _ := strings.Cut(w, "-")
			e.Notice.WindowStart, e.Notice.WindowEnd = at(from), at(to)
		default:
			e.Subject.Node = w
		}
	}
	if worker != "" {
		e.Subject.Worker = group + "-w-" + worker[1:]
	}
	all := map[string]events.Cause{
		"preempted": events.CausePreemption, "hosterror": events.CauseHostError, "stopped": events.CauseMaintenance,
		"terminate": events.CauseTerminated, "guest": events.CauseGuest,
	}
	calls := map[string]string{"create": "Create", "delete": "Delete", "start": "Start", "stop": "Stop", "reset": "Reset"}
	switch {
	case all[verb] != "":
		e.Kind, e.Cause = events.KindLoss, all[verb]
	case calls[verb] != "":
		e.Kind, e.Call.Method = events.KindCall, calls[verb]+"Node"
		if e.Subject.QueuedResource != "" {
			e.Call.Method = calls[verb] + "QueuedResource"
		}
	case verb == "restart":
		e.Kind = events.KindBack
	case verb == "limit":
		e.Kind, e.Ignored = events.KindLimit, "no failure"
	case verb == "pending", verb == "ongoing", verb == "gone":
		e.Kind, e.Notice.Status = events.KindNotice, events.NoticeStatus(verb)
	case verb == "progress", verb == "started", verb == "exited", verb == "finished":
		e.Kind = events.KindCrew
		e.Crew = &events.CrewReport{Report: events.Report(verb), Hostname: group + "-w-0", Node: e.Subject.Node, Zone: e.Subject.Zone, ReadyAt: ready}
	default:
		t.Fatalf("%q says nothing", s)
	}
	return e
}

// of runs a record through an account.
func of(t *testing.T, record string) (goodput.Report, []goodput.Loss) {
	t.Helper()
	a := goodput.New(goodput.Who{Babysitters: []string{script}}, 20*time.Minute)
	for n, s := range strings.Split(strings.TrimSpace(record), "\n") {
		a.Add(line(t, s, n))
	}
	r := a.Report()
	return r, r.Losses
}

// short is a loss in a few words.
func short(l goodput.Loss) string {
	s := fmt.Sprintf("%s %s %s %s %s", strconv.FormatFloat(l.At.Sub(start).Minutes(), 'g', 4, 64), l.Cause, l.Zone, l.Slice, l.Outcome)
	if l.Gap > 0 {
		s += fmt.Sprintf(" gap %gm", math.Round(l.Gap/6)/10)
	}
	add := func(name string, v any, said bool) {
		if said {
			s += fmt.Sprintf(" %s %v", name, v)
		}
	}
	add("by", l.RecreatedBy, l.RecreatedBy != "")
	add("who", l.Principal, l.Principal != "")
	add("deleted", l.DeletedBy, l.DeletedBy != "")
	add("to", l.BackZone, l.BackZone != "")
	add("generation", l.Generation, l.Generation != "")
	add("hours", math.Round(100*l.ChipHours)/100, l.ChipHours > 0)
	add("least", math.Round(100*l.ChipHoursAtLeast)/100, l.ChipHoursAtLeast > 0)
	add("workers", l.Workers, l.Workers > 0)
	add("failed", fmt.Sprint(l.FailedCreates, l.FailedBy), l.FailedCreates > 0)
	add("again", l.Again, l.Again > 0)
	add("lead", l.Lead/60, l.Announced)
	add("intime", "", l.InTime)
	add("matched", "", l.MatchedByTime)
	return strings.TrimRight(s, " ")
}

// terminations are so many of one node, hours apart.
func terminations(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%d terminate n", 500*i))
	}
	return all
}

func TestLosses(t *testing.T) {
	born := "0 create n " + ann + " first type:v5litepod-16\n4 create n " + ann + " last\n5 progress n\n"
	for name, c := range map[string]struct {
		record string
		want   []string
	}{
		"a script brings back a preempted TPU": {
			born + "60 preempted w0\n60 preempted w1\n60.05 preempted w3\n64 delete n " + script + " first\n66 delete n " + script + " last\n66 create n " + script + " first\n70 create n " + script + " last",
			[]string{"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v5litepod hours 2.67 workers 3"},
		},
		"the ends of calls alone": {
			"4 create n " + ann + " last type:v5litepod-16\n60 terminate n\n66 delete n " + script + " last\n70 create n " + script + " last",
			[]string{"60 terminated us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v5litepod hours 2.67"},
		},
		"calls without a mark": {
			"4 create n " + ann + "\n60 terminate n\n66 delete n " + ann + "\n70 create n " + ann,
			[]string{"60 terminated us-west4-a n back gap 10m by owner who " + ann + " deleted " + ann + " least 0.17"},
		},
		"Pitstop brings it back in another zone": {
			born + "60 preempted w0\n61 delete n " + us + " first\n62 delete n " + us + " last\n63 create n " + us + " first\n63.5 create n " + us + " last failed\n" +
				"64 create n in:us-west4-b " + us + " first\n70 create n in:us-west4-b " + us + " last",
			[]string{"60 preemption us-west4-a n back gap 10m by pitstop who " + us + " deleted " + us + " to us-west4-b generation v5litepod hours 2.67 workers 1 failed 1 map[stockout:1]"},
		},
		"Google mends a host": {
			born + "60 hosterror w0\n60.1 hosterror w1\n75 restart w1\n78 restart w0",
			[]string{"60 host_error us-west4-a n back gap 18m by google generation v5litepod hours 4.8 workers 2"},
		},
		"workers and their node, told apart": {
			"60 preempted w0\n60 preempted w1\n60.5 terminate n\n70 create n " + script + " last",
			[]string{"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " least 1.33 workers 2 matched"},
		},
		"the node first": {
			"60 terminate n\n60.5 preempted w0\n70 create n " + script + " last",
			[]string{"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " least 0.17 workers 1 matched"},
		},
		"workers without further entries": {
			"60 preempted w0\n60 preempted w3\n3000 preempted w0 of:" + renewed,
			[]string{"60 preemption us-west4-a " + workers + " not_told workers 2", "3000 preemption us-west4-a " + renewed + " not_told workers 1"},
		},
		"an owner deletes a lost TPU": {
			born + "60 preempted w0\n70 delete n " + ann + "\n200 progress m",
			[]string{"60 preemption us-west4-a n given_up gap 10m deleted " + ann + " generation v5litepod hours 2.67 workers 1"},
		},
		"an owner's release is no loss": {born + "60 delete n " + ann + " first\n60.5 guest w0\n61 delete n " + ann + " last\n90 create n " + ann + " last", nil},
		"an owner stops it":             {born + "60 stop n " + ann + "\n60.5 guest w0\n90 start n " + ann, nil},
		"a script takes down what no entry says was lost": {
			born + "60 delete n " + script + " first\n62 delete n " + script + " last\n62 create n " + script + " first\n70 create n " + script + " last",
			[]string{"60 unknown us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v5litepod hours 2.67"},
		},
		"it is created again, and no entry says that it was gone": {
			born + "300 create n " + script + " first\n305 create n " + script + " last",
			[]string{"300 unknown us-west4-a n back_unseen by babysitter who " + script + " generation v5litepod"},
		},
		"lost again before it is back": {
			born + "60 preempted w0\n62 delete n " + script + " last\n63 create n " + script + " first\n66 terminate n\n67 delete n " + script + "\n68 create n " + script + " first\n70 create n " + script + " last",
			[]string{"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v5litepod hours 2.67 workers 1 again 1"},
		},
		"creations begin and no entry ends them": {
			born + "60 terminate n\n61 create n " + script + " first\n600 terminate n",
			[]string{"60 terminated us-west4-a n back_unseen by babysitter who " + script + " generation v5litepod", "600 terminated us-west4-a n not_back generation v5litepod"},
		},
		"a second termination proves that it was back": {
			born + "60 terminate n\n1000 terminate n\n1000.5 preempted w0\n2000 preempted w0\n2000.2 preempted w1\n2001 terminate n",
			[]string{
				"60 terminated us-west4-a n back_unseen by not_told generation v5litepod", "1000 preemption us-west4-a n back_unseen by not_told generation v5litepod workers 1",
				"2000 preemption us-west4-a n not_back gap 1m generation v5litepod hours 0.27 workers 2",
			},
		},
		"thirteen terminations of a node": {
			strings.Join(terminations(13), "\n"),
			append(slices.Repeat([]string{""}, 12), "6000 terminated us-west4-a n not_back"),
		},
		"a second preemption of workers alone": {
			"60 preempted w0\n60 preempted w1\n200 preempted w1\n200.1 preempted w0",
			[]string{"60 preemption us-west4-a " + workers + " back_unseen by not_told workers 2", "200 preemption us-west4-a " + workers + " not_told workers 2"},
		},
		"a second termination in spite of a deletion": {
			born + "60 terminate n\n70 delete n " + script + "\n600 terminate n\n605 create n " + script,
			[]string{
				"60 terminated us-west4-a n back_unseen by not_told deleted " + script + " generation v5litepod",
				"600 terminated us-west4-a n back gap 5m by babysitter who " + script + " generation v5litepod hours 1.33",
			},
		},
		"a termination of a host that was not mended": {
			born + "60 hosterror w0\n600 terminate n\n605 create n " + script,
			[]string{"60 host_error us-west4-a n back gap 545m by babysitter who " + script + " generation v5litepod hours 145.33 workers 1"},
		},
		"workers minutes after each other": {
			born + "60 preempted w0\n75 preempted w1\n90 terminate n\n91 create n " + script,
			[]string{"60 preemption us-west4-a n back gap 31m by babysitter who " + script + " generation v5litepod hours 8.27 workers 2"},
		},
		"not back in the end": {
			born + "60 terminate n\n120 progress m of:" + renewed,
			[]string{"60 terminated us-west4-a n not_back gap 60m generation v5litepod hours 16"},
		},
		"a queued resource is back when its crew speaks": {
			"0 create q:q " + ann + " first type:v6e-8 nodes:n\n1 create q:q " + ann + " last type:v6e-8 nodes:n\n9 progress n\n60 preempted w0\n62 delete q:q " + script + " first\n" +
				"64 delete q:q " + script + " last\n65 create q:q2 " + script + " first nodes:n type:v6e-8\n66 create q:q2 " + script + " last nodes:n\n75 started n of:" + renewed,
			[]string{"60 preemption us-west4-a n back gap 15m by babysitter who " + script + " deleted " + script + " generation v6e hours 2 workers 1"},
		},
		"maintenance, announced": {
			born + "10 pending w0 120-360\n10 pending w1 120-360\n121 ongoing w0\n121 ongoing w1\n122 stopped w0\n122 stopped w1\n140 restart w0\n141 restart w1\n150 gone w0\n150 gone w1",
			[]string{"121 maintenance us-west4-a n back gap 20m by google generation v5litepod hours 5.33 workers 2 lead 111 intime"},
		},
		"maintenance, announced too late": {
			born + "110 pending w0 120-360\n121 ongoing w0\n141 gone w0",
			[]string{"121 maintenance us-west4-a n back gap 20m by google generation v5litepod hours 5.33 workers 1 lead 11"},
		},
		"maintenance, not announced": {
			born + "121 stopped w0\n141 restart w0",
			[]string{"121 maintenance us-west4-a n back gap 20m by google generation v5litepod hours 5.33 workers 1"},
		},
		"what an owner deletes, its workers unknown": {
			"0 create n " + ann + "\n60 delete n " + ann + " first\n60.5 guest w0\n60.5 guest w1\n61 guest w2\n62 delete n " + ann + " last", nil,
		},
		"what an owner stops, its workers unknown": {"0 create n " + ann + "\n60 stop n " + ann + " first\n60.5 guest w0\n60.6 guest w1\n61 stop n " + ann + " last\n61.5 guest w3", nil},
		"a preemption beside what an owner deletes": {
			"0 create n " + ann + "\n60 delete n " + ann + "\n60.5 preempted w0",
			[]string{"60.5 preemption us-west4-a " + workers + " not_told workers 1"},
		},
		"workers of another zone than what an owner deletes": {
			"0 create n in:us-west4-b " + ann + "\n60 delete n in:us-west4-b " + ann + "\n60.5 guest w0",
			[]string{"60.5 guest_shutdown us-west4-a " + workers + " not_told workers 1"},
		},
		"the ordered time is over, the node unknown":          {"60 limit w0\n60.1 guest w0\n60.2 guest w1\n60.5 terminate n\n61 guest w2", nil},
		"the ordered time is over, the node known":            {born + "60 limit w0\n60.1 guest w1\n60.5 terminate n\n61 delete n " + script, nil},
		"the ordered time is over, and the crew still speaks": {born + "60 limit w0\n60.1 progress n\n60.2 guest w1", nil},
		"long after the ordered time of another life": {
			born + "60 limit w0\n60.5 terminate n\n90 create n " + ann + "\n91 progress n of:" + renewed + "\n200 preempted w0 of:" + renewed,
			[]string{"200 preemption us-west4-a n not_back generation v5litepod workers 1"},
		},
		"creations that fail for several reasons": {
			"60 terminate n\n62 create n failed " + script + "\n63 create n overquota " + script + "\n64 create n failed " + script + "\n65 delete n overquota " + script + "\n70 create n " + script,
			[]string{"60 terminated us-west4-a n back gap 10m by babysitter who " + script + " least 0.17 failed 3 map[quota:1 stockout:2]"},
		},
		"the node minutes after its workers": {
			"60 preempted w0\n68 terminate n\n70 create n " + script,
			[]string{"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " least 0.17 workers 1 matched"},
		},
		"workers minutes after their node": {
			"60 terminate n\n68 preempted w0\n70 create n " + script,
			[]string{"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " least 0.17 workers 1 matched"},
		},
		"the node minutes after two that may be its workers": {
			"60 preempted w0\n60 preempted w0 of:" + renewed + "\n68 terminate n",
			[]string{
				"60 preemption us-west4-a " + workers + " not_told workers 1", "60 preemption us-west4-a " + renewed + " not_told workers 1",
				"68 terminated us-west4-a n not_back",
			},
		},
		"minutes apart and of causes that do not go together": {
			"60 hosterror w0\n68 preempted n",
			[]string{"60 host_error us-west4-a " + workers + " not_told workers 1", "68 preemption us-west4-a n not_back"},
		},
		"a script is slow to delete a lost TPU": {
			"60 preempted w0\n110 delete n " + script + "\n112 create n " + script,
			[]string{"60 preemption us-west4-a n back gap 52m by babysitter who " + script + " deleted " + script + " least 0.87 workers 1 matched"},
		},
		"others are lost than a node's own workers": {
			born + "60 terminate n\n61 preempted w0 of:" + renewed,
			[]string{"60 terminated us-west4-a n not_back gap 1m generation v5litepod hours 0.27", "61 preemption us-west4-a " + renewed + " not_told workers 1"},
		},
		"a worker that no slice has": {
			"60 preempted w65535\n180 restart w65535",
			[]string{"60 preemption us-west4-a " + workers + " back gap 120m by google least 2 workers 1"},
		},
		"the last worker of the largest slice": {
			"60 preempted w1535\n120 restart w1535",
			[]string{"60 preemption us-west4-a " + workers + " back gap 60m by google least 6144 workers 1"},
		},
		"one entry ID in two projects": {
			"60 preempted w0 id:i\n60 preempted w0 id:i project:other\n60 preempted w0 id:i",
			[]string{"60 preemption us-west4-a " + workers + " not_told workers 1", "60 preemption us-west4-a " + workers + " not_told workers 1"},
		},
		"maintenance with another entry when its window moves": {
			born + "120 ongoing w0 120-360\n121 stopped w0\n130 restart w0\n131 ongoing w0 120-400\n150 gone w0",
			[]string{"120 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1"},
		},
		"maintenance with an entry only when it is done": {
			born + "10 pending w0 120-360\n121 stopped w0\n130 restart w0\n131 ongoing w0 120-400\n150 gone w0",
			[]string{"121 maintenance us-west4-a n back gap 9m by google generation v5litepod hours 2.4 workers 1 lead 111 intime"},
		},
		"maintenance stops a worker twice": {
			born + "120 ongoing w0 120-360\n130 restart w0\n131 ongoing w0\n140 stopped w0\n150 gone w0",
			[]string{
				"120 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1",
				"140 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1 lead 20 intime",
			},
		},
		"maintenance of the next window": {
			born + "10 pending w0 120-360\n121 ongoing w0\n130 restart w0\n9000 pending w0 9010-9100\n9011 ongoing w0\n9020 restart w0",
			[]string{
				"121 maintenance us-west4-a n back gap 9m by google generation v5litepod hours 2.4 workers 1 lead 111 intime",
				"9011 maintenance us-west4-a n back gap 9m by google generation v5litepod hours 2.4 workers 1 lead 11",
			},
		},
		"terminated when the announced maintenance is over": {
			born + "10 pending w0 120-360\n121 ongoing w0\n130 restart w0\n200 terminate n\n210 create n " + script,
			[]string{
				"121 maintenance us-west4-a n back gap 9m by google generation v5litepod hours 2.4 workers 1 lead 111 intime",
				"200 terminated us-west4-a n back gap 10m by babysitter who " + script + " generation v5litepod hours 2.67",
			},
		},
		"a notice is void with its incarnation": {
			born + "10 pending w0 9000-9300\n60 preempted w0\n62 delete n " + script + "\n63 create n " + script + " first\n70 create n " + script + " last\n71 progress n of:" + renewed +
				"\n4000 stopped w0 of:" + renewed + "\n4010 restart w0 of:" + renewed,
			[]string{
				"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v5litepod hours 2.67 workers 1",
				"4000 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1",
			},
		},
		"a notice is void when only the end of the creation has an entry": {
			born + "10 pending w0 9000-9300\n60 preempted w0\n170 create n " + script + " last\n4000 stopped w0\n4010 restart w0",
			[]string{
				"60 preemption us-west4-a n back gap 110m by babysitter who " + script + " generation v5litepod hours 29.33 workers 1",
				"4000 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1",
			},
		},
		"a notice is void in a new queued resource": {
			"0 create q:q " + ann + " first type:v6e-8 nodes:n\n9 progress n\n10 pending w0 9000-9300\n60 preempted w0\n62 delete q:q " + script + "\n" +
				"65 create q:q " + script + " first nodes:n type:v6e-8\n70 progress n of:" + renewed + "\n4000 stopped w0 of:" + renewed + "\n4010 restart w0 of:" + renewed,
			[]string{
				"60 preemption us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v6e hours 1.33 workers 1",
				"4000 maintenance us-west4-a n back gap 10m by google generation v6e hours 1.33 workers 1",
			},
		},
		"a notice is void when other workers speak": {
			born + "10 pending w0 9000-9300\n71 started n of:" + renewed + "\n4000 stopped w0 of:" + renewed + "\n4010 restart w0 of:" + renewed,
			[]string{"4000 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1"},
		},
		"maintenance long after the window": {
			born + "10 pending w0 120-360\n4000 stopped w0\n4010 restart w0",
			[]string{"4000 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1"},
		},
		"maintenance by hand before the window": {
			born + "10 pending w0 120-360\n60 stopped w0\n70 restart w0",
			[]string{"60 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1 lead 50 intime"},
		},
		"maintenance withdrawn for one worker of two": {
			born + "10 pending w0 120-360\n10 pending w1 120-360\n60 gone w0\n140 stopped w1\n150 restart w1\n151 gone w1",
			[]string{"140 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1 lead 130 intime"},
		},
		"maintenance of one worker after the other": {
			born + "10 pending w0 120-360\n10 pending w1 120-360\n121 ongoing w0\n127 gone w0\n140 stopped w1\n150 gone w1",
			[]string{
				"121 maintenance us-west4-a n back gap 6m by google generation v5litepod hours 1.6 workers 1 lead 111 intime",
				"140 maintenance us-west4-a n back gap 10m by google generation v5litepod hours 2.67 workers 1 lead 130 intime",
			},
		},
		"the notice does not announce a preemption": {
			born + "10 pending w0 120-360\n130 preempted w0\n140 create n " + script,
			[]string{"130 preemption us-west4-a n back gap 10m by babysitter who " + script + " generation v5litepod hours 2.67 workers 1"},
		},
		"terminated in the window that was announced": {
			born + "10 pending w0 120-360\n130 terminate n\n140 create n " + script,
			[]string{"130 terminated us-west4-a n back gap 10m by babysitter who " + script + " generation v5litepod hours 2.67 lead 120 intime"},
		},
		"terminated outside of the window": {
			born + "10 pending w0 120-360\n100 terminate n\n110 create n " + script,
			[]string{"100 terminated us-west4-a n back gap 10m by babysitter who " + script + " generation v5litepod hours 2.67"},
		},
		"a crew that still speaks brings nothing back": {
			born + "60 hosterror w1\n60.2 progress n\n70.5 progress n",
			[]string{"60 host_error us-west4-a n back gap 10.5m by google generation v5litepod hours 2.8 workers 1"},
		},
		"a crew that was ready before its slice was asked for": {
			born + "60 terminate n\n63 delete n " + ann + "\n66 create n " + ann + " first\n80 started n ready:61 of:" + renewed,
			[]string{"60 terminated us-west4-a n back gap 6m by owner who " + ann + " deleted " + ann + " generation v5litepod hours 1.6"},
		},
		"a crew that was ready before its slice was taken down": {
			born + "60 terminate n\n63 delete n " + script + "\n80 started n ready:40 of:" + renewed,
			[]string{"60 terminated us-west4-a n back gap 3m by not_told deleted " + script + " generation v5litepod hours 0.8"},
		},
		"a clock that is ahead": {
			born + "60 terminate n\n90 progress m\n1260 progress m received:100",
			[]string{"60 terminated us-west4-a n not_back gap 40m generation v5litepod hours 10.67"},
		},
		"Pitstop takes down what is finished": {born + "60 finished n\n64 delete n " + us + " first\n64.5 guest w0\n66 delete n " + us + " last\n500 progress m", nil},
		"one slice of two is lost, and both are taken down": {
			"0 create q:q " + ann + " first type:v6e-8 nodes:a,b\n9 progress a\n9 progress b of:" + renewed + "\n60 terminate b\n61 delete q:q " + us + " first\n61.5 terminate a\n62 delete q:q " + us + " last\n" +
				"63 create q:q " + us + " first nodes:a,b type:v6e-8\n70 progress a of:t1v-n-0000000a\n70 progress b of:t1v-n-0000000b",
			[]string{"60 terminated us-west4-a b back gap 10m by pitstop who " + us + " deleted " + us + " generation v6e hours 1.33"},
		},
		"a queued resource of two slices comes back in the third zone that is asked": {
			"0 create q:q " + ann + " first type:v6e-8 nodes:a,b\n9 progress a\n9 progress b of:" + renewed + "\n60 terminate a\n60 terminate b\n61 delete q:q " + us + "\n" +
				"62 create q:q nodes:a,b failed " + us + "\n63 create q:q nodes:a,b in:us-west4-b failed " + us + "\n64 create q:q in:us-east5-a " + us + " first type:v6e-8 nodes:a,b\n" +
				"80 started a in:us-east5-a of:t1v-n-0000000a\n81 started b in:us-east5-a of:t1v-n-0000000b\n90 progress a in:us-east5-a of:t1v-n-0000000a",
			[]string{
				"60 terminated us-west4-a a back gap 20m by pitstop who " + us + " deleted " + us + " to us-east5-a generation v6e hours 2.67 failed 2 map[stockout:2]",
				"60 terminated us-west4-a b back gap 21m by pitstop who " + us + " deleted " + us + " to us-east5-a generation v6e hours 2.8 failed 2 map[stockout:2]",
			},
		},
		"two zones are asked at once, and the first has it": {
			born + "60 terminate n\n61 delete n " + us + "\n62 create n in:us-east5-a " + us + " first\n62.5 create n in:us-west4-b " + us + " first\n66 create n in:us-east5-a " + us + " last\n" +
				"67 delete n in:us-west4-b " + us + "\n70 started n in:us-east5-a of:" + renewed + "\n200 progress n in:us-east5-a of:" + renewed,
			[]string{"60 terminated us-west4-a n back gap 6m by pitstop who " + us + " deleted " + us + " to us-east5-a generation v5litepod hours 1.6"},
		},
		"it is lost again in another zone before it is there": {
			born + "60 terminate n\n61 delete n " + us + "\n62 create n in:us-east5-a " + us + " first\n66 terminate n in:us-east5-a\n67 create n in:us-west4-b " + us + " first\n70 create n in:us-west4-b " + us + " last",
			[]string{"60 terminated us-west4-a n back gap 10m by pitstop who " + us + " deleted " + us + " to us-west4-b generation v5litepod hours 2.67 again 1"},
		},
		"two slices of two are taken down, and no entry says why": {
			"0 create q:q " + ann + " first type:v6e-8 nodes:a,b\n9 progress a\n9 progress b of:" + renewed + "\n61 delete q:q " + us,
			[]string{"61 unknown us-west4-a a not_back deleted " + us + " generation v6e", "61 unknown us-west4-a b not_back deleted " + us + " generation v6e"},
		},
		"two slices of one zone": {
			"0 create a " + ann + " type:v5litepod-16\n0 create b " + ann + " type:v4-8\n60 preempted w0 of:" + workers + "\n60 preempted w2 of:" + workers + "\n60 preempted w0 of:" + renewed +
				"\n61 terminate b\n61 terminate a\n70 create a " + script + "\n80 create b " + script,
			[]string{
				"60 preemption us-west4-a a back gap 10m by babysitter who " + script + " generation v5litepod hours 2.67 workers 2 matched",
				"60 preemption us-west4-a b back gap 20m by babysitter who " + script + " generation v4 hours 1.33 workers 1 matched",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, all := of(t, c.record)
			var got []string
			for i, l := range all {
				if got = append(got, short(l)); i < len(c.want) && c.want[i] == "" && l.Outcome == goodput.BackUnseen {
					got[i] = "" // of many alike only the outcome counts
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if r.Total.Losses != len(all) {
				t.Errorf("%d losses in all, %d told", r.Total.Losses, len(all))
			}
		})
	}
}

func TestNotices(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		want   goodput.Notices
	}{
		"told again when the window moves":  {"0 ongoing w0 0-60\n1 stopped w0\n10 restart w0\n11 ongoing w0 0-90\n30 gone w0", goodput.Notices{Announced: 1, Began: 1}},
		"withdrawn for one worker":          {"0 pending w0 90-99\n0 pending w1 90-99\n5 gone w0\n91 stopped w1\n92 restart w1\n93 gone w1", goodput.Notices{Announced: 1}},
		"withdrawn for all":                 {"0 pending w0 90-99\n0 pending w1 90-99\n5 gone w0\n6 gone w1", goodput.Notices{Announced: 1, Withdrawn: 1}},
		"withdrawn for the node":            {"0 pending n 90-99\n5 gone n", goodput.Notices{Announced: 1, Withdrawn: 1}},
		"put off":                           {"0 pending w0 90-99\n5 pending w0 190-199", goodput.Notices{Announced: 1}},
		"one after another":                 {"0 pending w0 90-99\n91 ongoing w0\n95 restart w0\n200 pending w0 290-299\n201 gone w0", goodput.Notices{Announced: 2, Began: 1, Withdrawn: 1}},
		"deleted before it came":            {"0 pending n 90-99\n5 delete n " + ann + "\n6 gone n", goodput.Notices{Announced: 1}},
		"lost and deleted before it came":   {"0 pending n 90-99\n5 preempted n\n6 delete n " + script + "\n7 create n " + script + "\n8 gone n", goodput.Notices{Announced: 1}},
		"at the end of the ordered time":    {"0 pending w0 90-99\n5 limit w0\n6 gone w0", goodput.Notices{Announced: 1}},
		"gone for a worker that had it not": {"0 pending w0 90-99\n5 gone w1\n91 ongoing w0", goodput.Notices{Announced: 1, Began: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if r, _ := of(t, c.record); r.Notices != c.want {
				t.Errorf("%+v, want %+v", r.Notices, c.want)
			}
		})
	}
}

// TestUnsure: the report names entries that it joins by their times alone, or to no loss.
func TestUnsure(t *testing.T) {
	const apart, restart = "of these, more than five minutes apart: 1", "restarts by Google that follow no loss in the record: 1."
	for name, c := range map[string]struct {
		record string
		want   []string
		limits int
	}{
		"minutes apart":                 {"60 preempted w0\n68 terminate n", []string{apart}, 0},
		"at the same time":              {"60 preempted w0\n61 terminate n", nil, 0},
		"a restart alone":               {"60 restart w0\n60.2 restart w1\n61 restart w2", []string{restart}, 0},
		"a restart of a node alone":     {"60 restart n", []string{restart}, 0},
		"a restart of what was lost":    {"60 hosterror w0\n70 restart w0\n71 restart w1", nil, 0},
		"a restart after the crew's":    {"0 progress n\n60 hosterror w0\n75 progress n\n82 restart w0", nil, 0},
		"the ordered time of one slice": {"60 limit w0\n60 limit w1\n60.5 terminate n\n61 guest w1", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := of(t, c.record)
			var got []string
			for _, u := range r.Unsure {
				for _, s := range []string{apart, restart} {
					if strings.HasPrefix(u, s) {
						got = append(got, s)
					}
				}
			}
			if d := cmp.Diff(c.want, got); d != "" || r.RunTimeLimits != c.limits {
				t.Errorf("%d at the end of their time, want %d; not told (-want +got):\n%s", r.RunTimeLimits, c.limits, d)
			}
		})
	}
}

func TestLeakedQueuedResources(t *testing.T) {
	r, _ := of(t, strings.Join([]string{
		"0 create q:kept " + ann + " nodes:a type:v6e-8",
		"0 create q:left " + ann + " nodes:b type:v6e-8",
		"0 create q:late " + ann + " nodes:c type:v6e-8",
		"0 create q:soon " + ann + " nodes:d type:v6e-8",
		"0 create q:mended " + ann + " nodes:e type:v6e-8",
		"0 create q:two " + ann + " nodes:f-0,f-1 type:v4-8",
		"0 create q:unsaid " + ann,
		"60 terminate b", "60 terminate c", "60 terminate d", "60 terminate e", "61 terminate unsaid-0", "62 delete f-1 " + ann,
		"70 restart e",
		"100 delete q:soon " + script + " first", "101 delete q:soon " + script + " last",
		"240 delete q:late " + script,
		"300 create b " + script, // in its place, and the queued resource stays
		"360 progress a",
	}, "\n"))
	var got []string
	for _, l := range r.Leaks.Left {
		got = append(got, fmt.Sprintf("%s since %g held %gh chips %d", l.QueuedResource, l.Since.Sub(start).Minutes(), l.Held, l.Chips))
	}
	want := []string{"left since 60 held 5h chips 8", "unsaid since 61 held 4.983333333333333h chips 0", "two since 62 held 4.966666666666667h chips 8"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if r.Leaks.Late != 1 || r.Leaks.LateHours != 3 {
		t.Errorf("%d late, %g hours; want 1 and 3", r.Leaks.Late, r.Leaks.LateHours)
	}
}

func TestSums(t *testing.T) {
	record := "0 create n " + ann + " type:v5litepod-16\n0 create m in:us-east5-a " + ann + " type:v4-8\n1 pending w0 600-700 of:" + renewed + "\n2 gone w0 of:" + renewed + "\n"
	for i := range 10 {
		at := 100 * (i + 1)
		record += fmt.Sprintf("%d terminate n\n%d create n %s\n", at, at+i+1, []string{script, ann}[i%2])
	}
	record += "2000 hosterror w3\n2001 terminate m in:us-east5-a\n2002 exited m in:us-east5-a\n2010 delete n " + ann
	r, _ := of(t, record)
	type row struct {
		Class              goodput.Class
		N, Back, NotBack   int
		P50, P95, Most, CH float64
	}
	var got []row
	for _, g := range r.Groups {
		got = append(got, row{g.Class, g.Losses, g.Back, g.NotBack, g.GapP50 / 60, g.GapP95 / 60, g.GapMost / 60, math.Round(g.ChipHours*100) / 100})
	}
	want := []row{
		{goodput.Class{Cause: events.CauseTerminated, Zone: zone, Generation: "v5litepod"}, 10, 10, 0, 5, 10, 10, 14.67},
		{goodput.Class{Cause: events.CauseHostError, Zone: zone, Generation: "v5litepod"}, 1, 0, 0, 0, 0, 0, 2.67},
		{goodput.Class{Cause: events.CauseTerminated, Zone: "us-east5-a", Generation: "v4"}, 1, 0, 1, 0, 0, 0, 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var agents []string
	for _, a := range r.Recreated {
		agents = append(agents, fmt.Sprintf("%s %s %d %g", a.By, a.Principal, a.Losses, a.GapSum/60))
	}
	if d := cmp.Diff([]string{"babysitter " + script + " 5 25", "owner " + ann + " 5 30"}, agents); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := (goodput.Notices{Announced: 1, Withdrawn: 1}); r.Notices != n || r.TrainingExits != 1 || r.Total.Losses != 12 || r.Total.NotBackChipHours == 0 {
		t.Errorf("notices %+v, %d exits, %+v", r.Notices, r.TrainingExits, r.Total)
	}
}

func TestPercentiles(t *testing.T) {
	record := "0 create n " + ann + " type:v4-8\n"
	for i := range 1000 {
		record += fmt.Sprintf("%d terminate n\n%d create n %s\n", 3000*(i+1), 3000*(i+1)+i+1, script)
	}
	r, _ := of(t, record)
	for what, v := range map[string][2]float64{"p50": {r.Total.GapP50, 500 * 60}, "p95": {r.Total.GapP95, 950 * 60}, "most": {r.Total.GapMost, 1000 * 60}} {
		if v[0] != v[1] {
			t.Errorf("%s = %g, want %g", what, v[0], v[1])
		}
	}
}

func TestAnEntryTakenTwiceIsNoNews(t *testing.T) {
	a := goodput.New(goodput.Who{}, 0)
	for range 2 {
		a.Add(line(t, "4 create n "+ann+" failed", 1))
		a.Add(line(t, "4 terminate n", 2))
		a.Add(line(t, "4 create n "+ann+" failed", 3))
	}
	if r := a.Report(); r.Used != 3 || r.Entries != 6 {
		t.Errorf("%d of %d entries used, want 3 of 6", r.Used, r.Entries)
	}
}

func TestWhoActs(t *testing.T) {
	record := "0 create n " + ann + "\n1 terminate n\n2 create n %s"
	for principal, want := range map[string]goodput.By{
		ann: goodput.ByOwner, script: goodput.ByBabysitter, us: goodput.ByPitstop, "pitstop-recreate@mine.iam.gserviceaccount.com": goodput.ByPitstop,
		"pitstop@example.com": goodput.ByOwner, "pitstopper@mine.iam.gserviceaccount.com": goodput.ByOwner, "system@google.com": goodput.ByGoogle,
		"service-123@cloud-tpu.iam.gserviceaccount.com": goodput.ByGoogle,
	} {
		_, all := of(t, fmt.Sprintf(record, principal))
		if len(all) != 1 || all[0].RecreatedBy != want || all[0].Principal != principal {
			t.Errorf("%s: %+v, want %s", principal, all, want)
		}
	}
}

// FuzzAccount holds of any entries in any order: the sums are those of the losses, nothing is negative, and the report does
// not depend on chance.
func FuzzAccount(f *testing.F) {
	f.Add([]byte{1, 0, 0, 20, 1, 1, 40, 5, 0, 60, 6, 2, 80, 7, 3})
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	verbs := []string{
		"preempted w0", "preempted w3", "hosterror w1", "stopped w0", "terminate n", "terminate m", "restart w0", "restart n", "pending w0 100-200", "ongoing w0", "gone w0",
		"create n " + ann + " first", "create n " + ann + " last", "create n in:us-east5-a " + script, "create m " + script + " failed", "delete n " + ann, "delete n " + script + " first",
		"delete m " + us, "create q:q " + ann + " nodes:n,m type:v6e-8", "create q:m " + ann, "delete q:q " + script, "delete q:m " + ann, "progress n", "progress n of:" + renewed,
		"started m of:" + renewed, "exited m", "stop n " + ann, "start n " + ann, "reset q:q " + ann, "preempted w0 of:" + renewed, "terminate q-0", "guest w0", "limit w0", "limit n",
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var record []string
		at := 0
		for i := 0; i+2 < len(data) && i < 600; i += 3 {
			at += int(data[i])
			if data[i+2] > 250 {
				at += 24 * 60 * int(data[i])
			}
			record = append(record, fmt.Sprintf("%d %s", at, verbs[int(data[i+1])%len(verbs)]))
		}
		if len(record) == 0 {
			return
		}
		r, all := of(t, strings.Join(record, "\n"))
		again, _ := of(t, strings.Join(record, "\n"))
		if d := cmp.Diff(r, again, cmp.AllowUnexported(goodput.Sum{}), cmp.Comparer(func(a, b goodput.Sum) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) })); d != "" {
			t.Errorf("the same entries give another report:\n%s", d)
		}
		for _, w := range r.Workloads {
			var sum goodput.Amount
			for k, n := range w.Spent {
				if sum.Add(*n); n.Time < 0 || n.Doubt < 0 || n.Chips < 0 {
					t.Errorf("%s %+v: %+v", w.Name, k, n)
				}
			}
			if sum.Time != r.To.Sub(w.First) {
				t.Errorf("%s: %v in the account, and it was seen for %v", w.Name, sum.Time, r.To.Sub(w.First))
			}
		}
		s := r.Total
		if s.Losses != len(all) || s.Losses != s.Back+s.BackUnseen+s.GivenUp+s.NotBack+s.NotTold {
			t.Errorf("%d losses told, sum %+v", len(all), s)
		}
		groups, agents := 0, 0
		for _, g := range r.Groups {
			groups += g.Losses
		}
		for _, a := range r.Recreated {
			agents += a.Losses
		}
		if groups != s.Losses || agents != s.Back+s.BackUnseen {
			t.Errorf("%d losses by cause, %d by agent, sum %+v", groups, agents, s)
		}
		for _, l := range all {
			if l.Gap < 0 || l.Lead < 0 || l.ChipHours < 0 || l.Slice == "" || l.Cause == "" || l.Outcome == "" || l.InTime && !l.Announced || l.At.After(r.To) {
				t.Errorf("%+v", l)
			}
		}
		for _, l := range r.Leaks.Left {
			if l.Held < 0 {
				t.Errorf("%+v", l)
			}
		}
	})
}

// BenchmarkAccount adds entries as they come of a fleet that is lost and brought back by a script.
func BenchmarkAccount(b *testing.B) {
	a := goodput.New(goodput.Who{Babysitters: []string{script}}, 0)
	i := 0
	for b.Loop() {
		at := start.Add(time.Duration(i) * time.Second)
		s := events.Subject{Project: project, Zone: zone, Node: "llama-" + strconv.Itoa(i/8%100)}
		e := events.Entry{Kind: events.KindCrew, Time: at, Subject: s, Crew: &events.CrewReport{Report: events.ReportProgress}}
		switch i % 8 {
		case 0:
			e.Kind, e.Cause = events.KindLoss, events.CausePreemption
		case 1:
			e.Kind, e.Call = events.KindCall, events.Call{Method: "CreateNode", Principal: script, Order: events.Order{Accelerator: "v5litepod-16"}}
		}
		a.Add(e)
		i++
	}
}

// TestNobodyWaits: a slice waits for capacity while somebody asks for it.
func TestNobodyWaits(t *testing.T) {
	born := "0 create n " + ann + " type:v5litepod-16\n5 started n\n60 terminate n\n"
	for name, c := range map[string]struct {
		record        string
		waits, unsaid time.Duration
	}{
		"a slice that never was":       {"0 create n failed " + ann + "\n7200 progress m", time.Hour, 119 * time.Hour},
		"a loss, given up":             {born + "61 create n failed " + ann + "\n7200 progress m", 61 * time.Minute, 0},
		"a loss, asked for each hour":  {born + "61 create n failed " + ann + "\n121 create n failed " + ann + "\n181 create n failed " + ann + "\n190 progress m", 130 * time.Minute, 0},
		"a loss, asked for after days": {born + "61 create n failed " + ann + "\n7201 create n failed " + ann + "\n7210 progress m", 70 * time.Minute, 0},
		"a queued resource stands":     {"0 create q:n failed " + ann + "\n30 create q:n " + ann + "\n7230 progress m", 120*time.Hour + 30*time.Minute, 0},
		"in another zone":              {born + "61 create n in:us-east5-a failed " + ann + "\n7200 progress m", 61 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := of(t, c.record)
			for _, w := range r.Workloads {
				if got := w.Time(goodput.Capacity); w.Name == "n" && got != c.waits {
					t.Errorf("it waits for capacity %v, want %v", got, c.waits)
				}
				if got := w.Time(goodput.Unknown); w.Name == "n" && c.unsaid > 0 && got != c.unsaid {
					t.Errorf("%v are unknown, want %v", got, c.unsaid)
				}
			}
		})
	}
}

// TestAWorkloadMovesToAnotherZone: it stays one workload, whatever zones are asked.
func TestAWorkloadMovesToAnotherZone(t *testing.T) {
	r, _ := of(t, strings.Join([]string{
		"0 create q:q " + ann + " first type:v6e-8 nodes:a,b", "9 started a", "9 started b of:" + renewed, "60 terminate a", "60 terminate b", "61 delete q:q " + us,
		"62 create q:q nodes:a,b failed " + us, "63 create q:q nodes:a,b in:us-west4-b failed " + us, "64 create q:q in:us-east5-a " + us + " type:v6e-8 nodes:a,b",
		"80 started a in:us-east5-a of:t1v-n-0000000a", "80 started b in:us-east5-a of:t1v-n-0000000b", "90 progress m",
	}, "\n"))
	var names []string
	for _, w := range r.Workloads {
		names = append(names, w.Name)
	}
	if d := cmp.Diff([]string{"m", "q"}, names); d != "" {
		t.Fatalf("workloads (-want +got):\n%s", d)
	}
	if got := r.Workloads[1].Time(goodput.Capacity); got != 29*time.Minute {
		t.Errorf("it waits for capacity %v, want 9 minutes at first and 20 after the loss", got)
	}
}

// BenchmarkStorm loses slices of which only workers are told, within the time in which each may have another side.
func BenchmarkStorm(b *testing.B) {
	for _, n := range []int{5000, 20000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				a := goodput.New(goodput.Who{}, 0)
				for i := range n {
					worker := fmt.Sprintf("t1v-n-%08x-w-0", i)
					a.Add(events.Entry{Kind: events.KindLoss, Cause: events.CausePreemption, Time: start.Add(time.Duration(i) * time.Second), Subject: events.Subject{Project: project, Zone: zone, Worker: worker}})
				}
			}
		})
	}
}
