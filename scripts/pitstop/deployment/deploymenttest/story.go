package deploymenttest

import (
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// Story is a workload that learns one piece of evidence after the other, under a policy. Its clock stands until it is set.
type Story struct {
	incident.Workload
	Policy policy.Policy
	Now    time.Time
	// Slice is how each of the slices, Names, is read next.
	Slice evidence.Read
	Names []string
	// Asked are the requests that were sent.
	Asked []events.Request
	// Every is how often the training saves, Timed how long the saves took that Pitstop asked for, and Kept how many bytes it found in them.
	// Where they are zero nothing is known of that.
	// Told are how many checkpoints the crew tells of before the last one, and Overdue how long the next one is.
	Every   time.Duration
	Told    int
	Overdue time.Duration
	Timed   []time.Duration
	Kept    int64
	// Done says that the training is finished.
	Done bool
	// End is the time that Before counts back from.
	End    time.Time
	saveID string
}

// born is how long before noon the slices were created, and Pitstop saw them first. Where the times between its checkpoints matter, that is long.
const (
	born     = 48 * time.Hour
	bornLong = 240 * time.Hour
)

// Begin is the story of a Spot slice of which nothing was read yet.
func Begin(name string) *Story {
	s := &Story{Workload: incident.New("demo", name, "tpu"), Policy: (*policy.File)(nil).For("spot", policy.Everything()), Names: []string{name}, Told: 6, End: Noon}
	s.Slice = evidence.Read{
		Zone: "us-west4-a", Condition: evidence.Ready, State: "READY", Directory: "gs://ckpt/" + name,
		Incarnation: events.Incarnation{ID: "7711", Created: Noon.Add(-born)},
		Facts:       evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "spec1", Label: "spot"},
	}
	return s.Before(born)
}

// Before sets the clock to so long before its end, which is noon unless it is set.
func (s *Story) Before(end time.Duration) *Story {
	s.Now = s.End.Add(-end)
	return s
}

// Learns has the workload learn that.
func (s *Story) Learns(e evidence.Evidence) *Story {
	next, sent, _ := incident.Advance(s.Policy, s.Workload, e, s.Now)
	s.Workload = next
	for _, e := range sent {
		if r, is := e.(interface{ Header() events.Request }); is {
			s.Asked = append(s.Asked, r.Header())
		}
		if save, is := e.(events.CheckpointRequested); is && save.SaveID != "" {
			s.saveID = save.SaveID
		}
	}
	return s
}

// Origin is that of what happens now.
func (s *Story) Origin(r events.Rank) evidence.Origin {
	return evidence.Origin{ID: "entry-" + strconv.FormatInt(s.Now.UnixNano(), 36), Time: s.Now, Rank: r}
}

// Reads has all slices read, from now on changed in that way.
func (s *Story) Reads(change ...func(*evidence.Read)) *Story {
	for _, c := range change {
		c(&s.Slice)
	}
	for i, name := range s.Names {
		r := s.Slice
		r.Origin, r.Slice = s.Origin(events.RankReading), name
		if r.Incarnation.Zone = r.Zone; i > 0 {
			r.Incarnation.ID += "-" + strconv.Itoa(i)
		}
		if r.Condition == evidence.Gone {
			r.Incarnation, r.Facts = events.Incarnation{}, evidence.Facts{}
		}
		s.Learns(r)
	}
	return s
}

// Is is a change of a reading: that condition, in the provider's word.
func Is(c evidence.Condition, state string) func(*evidence.Read) {
	return func(r *evidence.Read) { r.Condition, r.State = c, state }
}

// Ticks has the clock tick.
func (s *Story) Ticks() *Story {
	return s.Learns(evidence.Ticked{Origin: s.Origin(events.RankReading)})
}

// Writes has the crew of the first slice write a line.
func (s *Story) Writes(r events.CrewReport) *Story {
	r.Schema, r.Zone, r.Node, r.Hostname, r.Workers = events.Schema, s.Slice.Zone, s.Names[0], "t1v-n-3f2a9c01-w-0", s.Slice.Facts.Workers
	return s.Learns(evidence.Reported{Origin: s.Origin(events.RankUser), Slice: s.Names[0], Report: r})
}

// Begins has a function begin what was asked for last.
func (s *Story) Begins() events.Request {
	r := s.Asked[len(s.Asked)-1]
	s.Learns(evidence.Intended{Origin: s.Origin(events.RankReading), Request: r, RequestID: "id-" + strconv.FormatInt(r.Epoch, 10)})
	return r
}

// Does has a function do what was asked for last, by an operation of the provider if it is named.
func (s *Story) Does(operation string) *Story {
	return s.Learns(evidence.Answered{Request: s.Begins(), Origin: s.Origin(events.RankReading), Operation: operation})
}

// Announces has maintenance of all slices announced.
func (s *Story) Announces(n events.Notice) *Story {
	for _, o := range s.Slices {
		s.Learns(evidence.Noticed{Origin: s.Origin(events.RankAudit), Slice: o.Name, Incarnation: o.Incarnation, Notice: n, InAPI: true, Text: "maintenance is " + string(n.Status)})
	}
	return s
}

// Saves has the training save before announced maintenance, which is then withdrawn. Pitstop asks for the save and inspects the checkpoint.
func (s *Story) Saves(step int64, took time.Duration) *Story {
	window := events.Notice{Status: events.NoticePending, WindowStart: s.Now.Add(max(5*time.Minute, s.Policy.Lead)), WindowEnd: s.Now.Add(12 * time.Hour)}
	s.Announces(window).Ticks().Does("")
	s.Now = s.Now.Add(took)
	s.Writes(events.CrewReport{Report: events.ReportSaved, SaveID: s.saveID, CheckpointStep: step})
	s.Learns(evidence.Checked{
		Request: s.Begins(), Origin: s.Origin(events.RankReading), Found: true, Step: step, At: s.Now, Bytes: s.Kept, URI: s.Directory + "/" + strconv.FormatInt(step, 10),
	})
	return s.Announces(events.Notice{Status: events.NoticeGone})
}

// IsDeleted has a person delete the first slice.
func (s *Story) IsDeleted() *Story {
	s.Learns(evidence.Called{
		Origin: s.Origin(events.RankAudit), Slice: s.Names[0], Zone: s.Slice.Zone, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com",
	})
	first := *s
	first.Names = s.Names[:1]
	s.Workload = first.Reads(Is(evidence.Gone, "")).Workload
	return s
}

// GivesUp has an attempt fail for the last time.
func (s *Story) GivesUp(attempt int) *Story {
	s.Writes(events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 1}).Writes(events.CrewReport{Report: events.ReportGaveUp, Attempt: attempt})
	return s.beats(events.CrewVerdict{Attempt: attempt})
}

// Finishes has an attempt finish the training.
func (s *Story) Finishes(attempt int) *Story {
	s.Writes(events.CrewReport{Report: events.ReportFinished, Attempt: attempt})
	return s.beats(events.CrewVerdict{Attempt: attempt, Finished: true})
}

// beats has the crew's record on its machine read, with its verdict.
func (s *Story) beats(v events.CrewVerdict) *Story {
	first := s.Slices[0]
	v.Schema, v.Ended, v.Life = events.Schema, s.Now, events.Admission{Slice: first.Name, Incarnation: first.Incarnation}
	return s.Learns(evidence.Beat{Origin: s.Origin(events.RankReading), Slice: first.Name, Incarnation: first.Incarnation, Seen: s.Now, Attempt: v.Attempt, Verdict: &v})
}

// IsPaused has a person pause the workload until a time; zero for without end.
func (s *Story) IsPaused(until time.Time) *Story {
	return s.Learns(evidence.Paused{Origin: s.Origin(events.RankReading), Word: evidence.Word{By: "ada", Why: "a look"}, Until: until})
}

// Cancels has a person take the open incident over.
func (s *Story) Cancels() *Story {
	return s.Learns(evidence.Cancelled{Origin: s.Origin(events.RankReading), Word: evidence.Word{By: "ada"}, Incident: s.Incident.ID})
}

// trains has training run on the slices in attempt 2, and its crew report step 48,190 six minutes before noon.
func (s *Story) trains() *Story {
	first := born
	if s.Every > 0 {
		first = bornLong
	}
	s.Slice.Incarnation.Created = s.End.Add(-first)
	s.Before(first).Reads()
	s.Before(first - time.Minute).Writes(events.CrewReport{Report: events.ReportStarted, Attempt: 2})
	for i, took := range s.Timed {
		s.Before(first-time.Duration(i+1)*time.Hour).Saves(40_000+int64(i), took)
	}
	for left := int64(s.Told); left >= 0 && s.Every > 0; left-- {
		s.Before(6*time.Minute + s.Overdue + time.Duration(left)*s.Every).Writes(events.CrewReport{
			Report: events.ReportProgress, Attempt: 2, Step: 48_100 - 100*left, CheckpointStep: 48_000 - 100*left,
		})
	}
	s.Before(6 * time.Minute).Writes(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 48_190, CheckpointStep: 48_000})
	if s.Done {
		s.Before(5 * time.Minute).Finishes(2)
	}
	return s
}

// Trains is a Spot slice that trains, and about which nothing is wrong.
func Trains(name string, but ...func(*Story)) incident.Workload {
	return Training(name, but...).Workload
}

// Training is the story of Trains, at the last line of its crew.
func Training(name string, but ...func(*Story)) *Story {
	s := Begin(name)
	for _, b := range but {
		if b != nil {
			b(s)
		}
	}
	return s.trains()
}

// Tells has the workload of the tests learn what a story tells, which goes on now.
func (b *Bench) Tells(tell func(*Story)) {
	b.T.Helper()
	w, rev, err := b.Ledger.Workload(b.T.Context(), LlamaID)
	if err != nil {
		b.T.Fatal(err)
	}
	s := Begin(w.Name)
	s.Workload, s.Now = w, b.Now()
	known := w.Slices[0]
	s.Slice.Zone, s.Slice.Condition, s.Slice.State, s.Slice.Incarnation, s.Slice.Facts, s.Slice.Directory = known.Zone, known.Condition, known.State, known.Incarnation, known.Facts, w.Directory
	tell(s)
	if _, err := b.Ledger.Save(b.T.Context(), s.Workload, rev); err != nil {
		b.T.Fatal(err)
	}
}

// Read has a slice read with that difference from the beginning.
func Read(but func(*evidence.Read)) func(*Story) { return func(s *Story) { but(&s.Slice) } }

// Llama is a workload with an open incident: its slice was preempted and is being deleted.
func Llama(but ...func(*Story)) incident.Workload {
	s := Preempted("llama-8b", but...)
	s.Before(70 * time.Second).Begins()
	return s.Workload
}

// Preempted is the story of a slice that was preempted, and is to be deleted.
func Preempted(name string, but ...func(*Story)) *Story {
	s := Training(name, but...)
	s.after(2)
	return s.Before(90 * time.Second).Reads(Is(evidence.Lost, "PREEMPTED"))
}

// after says that so many incidents have opened on the same day before.
func (s *Story) after(incidents int) {
	s.Opened = incident.Numbered{Day: s.End.UTC().Format("20060102"), Last: incidents}
}

// Asking is a workload whose policy asks whether its slice may be deleted and created again.
func Asking(but ...func(*Story)) incident.Workload {
	asks := func(s *Story) { s.Policy.Switches.Recreate = policy.Ask }
	return Preempted("llama-8b", append(slices.Clone(but), asks)...).Workload
}
