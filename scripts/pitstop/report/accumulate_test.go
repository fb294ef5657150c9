package report_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/report"
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
	verb, group, worker := words[1], workers, ""
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
		case w[0] == 'w' && len(w) <= 3:
			worker = w
		case strings.Contains(w, "@"):
			e.Call.Principal = w
		case w == "first":
			e.Call.First = true
		case w == "last":
			e.Call.Last = true
		case w == "failed":
			e.Call.Code, e.Call.Message = 8, "There is no more capacity in the zone"
		case strings.Contains(w, "-") && verb != "progress":
			from, to, _ := strings.Cut(w, "-")
			e.Notice.WindowStart, e.Notice.WindowEnd = at(from), at(to)
		default:
			e.Subject.Node = w
		}
	}
	if worker != "" {
		e.Subject.Worker = group + "-w-" + worker[1:]
	}
	losses := map[string]events.Cause{
		"preempted": events.CausePreemption, "hosterror": events.CauseHostError, "stopped": events.CauseMaintenance,
		"terminate": events.CauseTerminated, "guest": events.CauseGuest,
	}
	calls := map[string]string{"create": "Create", "delete": "Delete", "start": "Start", "stop": "Stop", "reset": "Reset"}
	switch {
	case losses[verb] != "":
		e.Kind, e.Cause = events.KindLoss, losses[verb]
	case calls[verb] != "":
		e.Kind, e.Call.Method = events.KindCall, calls[verb]+"Node"
		if e.Subject.QueuedResource != "" {
			e.Call.Method = calls[verb] + "QueuedResource"
		}
	case verb == "restart":
		e.Kind = events.KindBack
	case verb == "pending", verb == "ongoing", verb == "gone":
		e.Kind, e.Notice.Status = events.KindNotice, events.NoticeStatus(verb)
	case verb == "progress", verb == "started", verb == "exited":
		e.Kind = events.KindCrew
		e.Crew = &events.CrewReport{Report: events.Report(verb), Hostname: group + "-w-0", Node: e.Subject.Node, Zone: e.Subject.Zone}
	default:
		t.Fatalf("%q says nothing", s)
	}
	return e
}

// of runs a record through an accumulator.
func of(t *testing.T, record string) (report.Report, []report.Loss) {
	t.Helper()
	var losses []report.Loss
	a := report.New(report.Who{Babysitters: []string{script}}, 20*time.Minute, func(l report.Loss) { losses = append(losses, l) })
	for n, s := range strings.Split(strings.TrimSpace(record), "\n") {
		a.Add(line(t, s, n))
	}
	return a.Report(), losses
}

// short is a loss in a few words.
func short(l report.Loss) string {
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
	add("failed", l.FailedCreates, l.FailedCreates > 0)
	add("again", l.Again, l.Again > 0)
	add("lead", l.Lead/60, l.Announced)
	add("intime", "", l.InTime)
	add("matched", "", l.MatchedByTime)
	return strings.TrimRight(s, " ")
}

func TestLosses(t *testing.T) {
	born := "0 create n " + ann + " first type:v5litepod-16\n4 create n " + ann + " last\n5 progress n\n"
	for name, c := range map[string]struct {
		record string
		want   []string
	}{
		"a script brings back what was preempted": {
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
			[]string{"60 preemption us-west4-a n back gap 10m by pitstop who " + us + " deleted " + us + " to us-west4-b generation v5litepod hours 2.67 workers 1 failed 1"},
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
		"workers of whom nobody tells more": {
			"60 preempted w0\n60 preempted w3\n3000 preempted w0 of:" + renewed,
			[]string{"60 preemption us-west4-a " + workers + " not_told workers 2", "3000 preemption us-west4-a " + renewed + " not_told workers 1"},
		},
		"an owner takes down what is lost": {
			born + "60 preempted w0\n70 delete n " + ann + "\n200 progress m",
			[]string{"60 preemption us-west4-a n given_up gap 10m deleted " + ann + " generation v5litepod hours 2.67 workers 1"},
		},
		"an owner's release is no loss": {born + "60 delete n " + ann + " first\n60.5 guest w0\n61 delete n " + ann + " last\n90 create n " + ann + " last", nil},
		"an owner stops it":             {born + "60 stop n " + ann + "\n60.5 guest w0\n90 start n " + ann, nil},
		"a script takes down what no entry says was lost": {
			born + "60 delete n " + script + " first\n62 delete n " + script + " last\n62 create n " + script + " first\n70 create n " + script + " last",
			[]string{"60 unknown us-west4-a n back gap 10m by babysitter who " + script + " deleted " + script + " generation v5litepod hours 2.67"},
		},
		"it is made anew, and no entry says that it was gone": {
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
		"a preemption is not what was announced": {
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
			r, losses := of(t, c.record)
			var got []string
			for _, l := range losses {
				got = append(got, short(l))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if r.Total.Losses != len(losses) {
				t.Errorf("%d losses in all, %d told", r.Total.Losses, len(losses))
			}
		})
	}
}
