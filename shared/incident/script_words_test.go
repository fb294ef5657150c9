package incident_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// word is what may be learned of a slice.
type word = func(n *story, s *incident.Slot) evidence.Evidence

// ann is who gives orders.
var ann = evidence.Word{By: "ann@example.com", Why: "it is mended"}

// words are what may be learned. Readings, maintenance and some lines have several names.
var words = func() map[string]word {
	all := map[string]word{
		"preempted":          interrupted(events.CausePreemption, "entry", events.RankReading, 0),
		"host error":         interrupted(events.CauseHostError, "entry", events.RankReading, 0),
		"terminated":         interrupted(events.CauseTerminated, "entry", events.RankReading, 0),
		"guest down":         interrupted(events.CauseGuest, "entry", events.RankReading, 0),
		"stopped for":        interrupted(events.CauseMaintenance, "entry", events.RankReading, 0),
		"preempted, it says": interrupted(events.CausePreemption, "entry", events.RankAudit, 0),
		"host error late":    interrupted(events.CauseHostError, "late", events.RankReading, 25*time.Minute),
		"back": func(n *story, s *incident.Slot) evidence.Evidence {
			return evidence.Back{Origin: n.log(), Slice: s.Name, Text: "restarted"}
		},
		"owner deletes": called(events.ActDeleted), "owner creates": called(events.ActCreated), "owner stops": called(events.ActStopped), "owner starts": called(events.ActStarted),
		"unsaid": func(n *story, s *incident.Slot) evidence.Evidence {
			return evidence.Unsaid{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation}
		},
		"mapped": func(n *story, s *incident.Slot) evidence.Evidence {
			return evidence.Mapped{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Group: fmt.Sprintf("t1v-n-%08d", n.slot(s.Name)+2)}
		},
		"read ours": next(evidence.Ready, true), "read ours made": next(evidence.Creating, true), "read ours stopped": next(evidence.Stopped, true), "read ours sick": next(evidence.Unhealthy, true),
		"read foreign": next(evidence.Ready, false), "read foreign made": next(evidence.Creating, false),
		"read foreign going": func(n *story, s *incident.Slot) evidence.Evidence { // it was made before its owner's last word
			e := n.read(s, evidence.Deleting, n.nextLife(s))
			e.Incarnation.Created = n.now.Add(-2 * time.Second)
			return e
		},
		"read elsewhere": inOtherZone(evidence.Ready), "read elsewhere made": inOtherZone(evidence.Creating),
		"read ordered": ordered(true), "read ordered by others": ordered(false),
		"abuse": suspected(evidence.Ready), "abuse and lost": suspected(evidence.Lost),
		"saved":   line(events.CrewReport{Report: events.ReportSaved, CheckpointStep: 48200, CheckpointURI: "gs://ckpt/llama-8b/48200"}, 0),
		"refused": line(events.CrewReport{Report: events.ReportRefused, Reason: "no handler"}, 0),
		"started": line(events.CrewReport{Report: events.ReportStarted, Workers: 4, Step: 48000}, 1),
		"progress": func(n *story, s *incident.Slot) evidence.Evidence {
			return line(events.CrewReport{Report: events.ReportProgress, Step: n.w.Training.Step + 10, CheckpointStep: 48000}, 0)(n, s)
		},
		"steps": func(n *story, s *incident.Slot) evidence.Evidence {
			return line(events.CrewReport{Report: events.ReportProgress, Step: n.w.Training.Step + 100}, 0)(n, s)
		},
		"old progress": line(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 40000, CheckpointStep: 39000}, 0),
		"exit 139":     line(events.CrewReport{Report: events.ReportExited, ExitCode: 139, Step: 48190, RestartsLeft: 4}, 0),
		"exit 1":       line(events.CrewReport{Report: events.ReportExited, ExitCode: 1, Tail: []string{"ValueError: bad"}, Step: 48190}, 0),
		"killed":       line(events.CrewReport{Report: events.ReportExited, Signal: "SIGTERM", ExitCode: 143, Interrupted: true, Step: 48190}, 0),
		"exit 0":       line(events.CrewReport{Report: events.ReportExited, Step: 48190}, 0),
		"gave up":      line(events.CrewReport{Report: events.ReportGaveUp, Reason: "exit code 1, five times"}, 0),
		"gave up anew": line(events.CrewReport{Report: events.ReportGaveUp, Reason: "exit code 1, five times"}, 1),
		"finished":     line(events.CrewReport{Report: events.ReportFinished, Step: 50000}, 0),
		"crew notice":  line(events.CrewReport{Report: events.ReportNotice, Preempted: true}, 0),
		"its verdict": func(n *story, s *incident.Slot) evidence.Evidence {
			e := beat(n, s, n.now)
			v := n.lastWord()
			v.Finished, v.Life = n.w.Training.Claim.Finished, events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts}
			e.Attempt, e.Verdict = n.w.Training.Claim.Attempt, &v
			return e
		},
		"silence":           func(n *story, s *incident.Slot) evidence.Evidence { return beat(n, s, n.now.Add(-6*time.Hour)) },
		"no crew":           func(n *story, s *incident.Slot) evidence.Evidence { return beat(n, s, time.Time{}) },
		"a crew that waits": func(n *story, s *incident.Slot) evidence.Evidence { return beat(n, s, n.now) },
		"a crew that runs": func(n *story, s *incident.Slot) evidence.Evidence {
			e := beat(n, s, n.now)
			e.Runs, e.Attempt = true, n.w.Training.Attempt
			return e
		},
		"a crew at work": func(n *story, s *incident.Slot) evidence.Evidence {
			e := beat(n, s, n.now)
			e.Runs, e.Attempt, e.StepAt = true, n.w.Training.Attempt, n.now
			return e
		},
		"approved": func(n *story, _ *incident.Slot) evidence.Evidence {
			return evidence.Approved{Origin: n.reading(), Word: ann, Incident: n.w.Incident.ID, Action: n.w.Incident.Status.Asks}
		},
		"cancelled": func(n *story, _ *incident.Slot) evidence.Evidence {
			return evidence.Cancelled{Origin: n.reading(), Word: ann, Incident: n.w.Incident.ID}
		},
		"retried": func(n *story, _ *incident.Slot) evidence.Evidence {
			return evidence.Retried{Origin: n.reading(), Word: ann}
		},
	}
	for _, c := range []evidence.Condition{
		evidence.Ready, evidence.Unhealthy, evidence.Lost, evidence.Gone, evidence.Stopped, evidence.Deleting, evidence.Unclear, evidence.Creating, evidence.Done,
	} {
		read := func(n *story, s *incident.Slot) evidence.Evidence { return n.read(s, c, s.Incarnation) }
		all["read "+string(c)], all[string(c)] = read, read
	}
	for name, w := range notices {
		all["log "+name], all["shows "+name], all["says "+name] = noticed(w, events.RankAudit, false), noticed(w, events.RankReading, true), noticed(w, events.RankUser, false)
	}
	early := notices["pending"]
	early.CanReschedule = true
	all["pending"], all["moved"], all["ongoing"], all["notice gone"] = noticed(early, events.RankAudit, false), all["log moved"], all["log ongoing"], all["log withdrawn"]
	return all
}()

// log is where an entry of the audit log comes from that somebody wrote.
func (n *story) log() evidence.Origin {
	return evidence.Origin{ID: "entry", Time: n.now, Rank: events.RankAudit}
}

func interrupted(c events.Cause, id string, rank events.Rank, ago time.Duration) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		e := evidence.Interrupted{Origin: evidence.Origin{ID: id, Time: n.now.Add(-ago), Rank: rank}, Slice: s.Name, Incarnation: s.Incarnation, Cause: c, Text: string(c)}
		if c == events.CauseTerminated {
			e.Incarnation = events.Incarnation{}
		}
		return e
	}
}

func called(act events.Act) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		return evidence.Called{Origin: n.log(), Slice: s.Name, Act: act, Method: string(act), Principal: ann.By}
	}
}

func noticed(w events.Notice, rank events.Rank, inAPI bool) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		return evidence.Noticed{Origin: evidence.Origin{ID: "entry", Time: n.now, Rank: rank}, Slice: s.Name, Incarnation: s.Incarnation, Notice: w, InAPI: inAPI, Text: "notice"}
	}
}

// line is a line of the crew about its attempt, or one so much after it.
func line(r events.CrewReport, after int) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		r := r
		r.Schema, r.Zone, r.Node, r.Hostname = 1, s.Zone, s.Name, s.Hosts+"-w-0"
		if s.Hosts == "" { // in a Pod
			r.Hostname, r.Life = s.Name+"-0", s.Incarnation.ID
		}
		if r.Attempt == 0 {
			r.Attempt = n.w.Training.Attempt + after
		}
		if n.w.Incident != nil {
			r.SaveID = n.w.Incident.SaveID()
		}
		return evidence.Reported{Origin: evidence.Origin{ID: "line " + n.now.String(), Time: n.now, Rank: events.RankUser}, Slice: s.Name, Report: r}
	}
}

func beat(n *story, s *incident.Slot, seen time.Time) evidence.Beat {
	return evidence.Beat{Origin: evidence.Origin{ID: "line", Time: n.now, Rank: events.RankUser}, Slice: s.Name, Incarnation: s.Incarnation, Seen: seen}
}

// read is a reading of a life of a slice.
func (n *story) read(s *incident.Slot, c evidence.Condition, life events.Incarnation) evidence.Read {
	e := evidence.Read{
		Origin: n.reading(), Slice: s.Name, Zone: s.Zone, Condition: c, Incarnation: life, State: strings.ToUpper(string(c)), Facts: s.Facts, Directory: n.w.Directory,
	}
	if life.Known() {
		e.Zone = life.Zone
	}
	if !life.Same(s.Incarnation) {
		e.Facts.Ends = time.Time{}
	}
	return e
}

// nextLife is the life that comes next of a slice: where it is created.
func (n *story) nextLife(s *incident.Slot) events.Incarnation {
	id, _ := strconv.Atoi(s.Incarnation.ID) //nolint:errcheck // what has no life yet has no number
	next := events.Incarnation{Zone: s.Zone, ID: fmt.Sprint(id + 1), Created: s.Incarnation.Created}
	began := []time.Time{s.Since, s.Stop.At, s.Released}
	if in := n.w.Incident; in != nil {
		began = append(began, in.Opened)
	}
	for _, t := range began { // a name is free for it once the life before is over
		if !t.Before(next.Created) {
			next.Created = t.Add(time.Second)
		}
	}
	next.Zone = n.goesTo(s)
	return next
}

// goesTo is the zone in which a slice is created, or was last.
func (n *story) goesTo(s *incident.Slot) string {
	for _, x := range n.w.Effects {
		if x.Action == events.ActionCreate && x.Concerns(s.Name) && !x.Dropped() {
			return x.Zone
		}
	}
	return s.Zone
}

func next(c evidence.Condition, ours bool) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		e := n.read(s, c, n.nextLife(s))
		if ours {
			e.Incident = n.w.Incident.ID
		}
		return e
	}
}

// inOtherZone is the next life of a slice, which its owner makes in the other zone.
func inOtherZone(c evidence.Condition) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		e := n.read(s, c, n.nextLife(s))
		if e.Zone = "us-west4-a"; s.Zone == e.Zone {
			e.Zone = "us-west4-b"
		}
		e.Incarnation.Zone = e.Zone
		return e
	}
}

// ordered is a queued resource that waits.
func ordered(ours bool) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		e := n.read(s, evidence.Creating, events.Incarnation{})
		e.Zone, e.State, e.Ordered = n.goesTo(s), "WAITING_FOR_RESOURCES", n.nextLife(s).Created
		if ours {
			e.Incident = n.w.Incident.ID
		}
		return e
	}
}

func suspected(c evidence.Condition) word {
	return func(n *story, s *incident.Slot) evidence.Evidence {
		e := n.read(s, c, s.Incarnation)
		e.Abuse = true
		return e
	}
}
