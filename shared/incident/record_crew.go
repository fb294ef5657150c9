package incident

import (
	"cmp"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// reported records a line of a crew. A line is a hint: anyone who may write logs can write one. No Pod is told of maintenance or preemption,
// and what is older than the count of attempts belongs to another training.
func (f *facts) reported(e evidence.Reported) bool {
	s, r, at := f.w.Slice(e.Slice), e.Report, f.from.Time
	notice := r.Report == events.ReportNotice
	if s == nil || notice && r.Life != "" || !notice && at.Before(f.w.Training.Since) {
		return false
	}
	switch l := s.speaker(r, at); {
	case l == nil || f.w.isTooFar(r):
		return f.keep(e)
	case l == &s.Life && l.overBy(at) && !notice:
		return r.Life == "" && f.keep(e) // no crew that is known could have written it
	default:
		return f.hearsOf(e, s, l)
	}
}

// hearsOf records what the crew of a life told. What a former one told out of its time, no crew wrote.
func (f *facts) hearsOf(e evidence.Reported, s *Slot, l *Life) bool {
	bound, runs := f.unbind(e), f.takenBy(l, e.Report)
	if l != &s.Life && !f.from.Time.Before(cmp.Or(l.Over, s.succeeded(l))) {
		return bound || runs
	}
	spoke := f.speaks(l)
	return f.tells(e.Report, s, l == &s.Life) || spoke || bound || runs
}

// tells records what a crew tells of the training, whatever became of its life; and its answer to a request, or a notice, if that is the newest.
func (f *facts) tells(r events.CrewReport, s *Slot, newest bool) bool {
	switch r.Report {
	case events.ReportStarted:
		news := f.started(r.Attempt, f.from.Time)
		if news {
			f.endsRun(0, f.from.Time, true)
		}
		return news
	case events.ReportProgress:
		return f.stepped(r)
	case events.ReportExited:
		return (r.ExitCode != 0 || r.Signal != "") && f.exited(r)
	case events.ReportGaveUp, events.ReportFinished:
		return f.claimed(r)
	case events.ReportSaved, events.ReportRefused:
		return newest && f.saved(r)
	case events.ReportNotice:
		return newest && f.crewNotice(s, r)
	}
	return false
}

// speaks records that a crew has spoken in a life.
func (f *facts) speaks(l *Life) (news bool) {
	t := &f.w.Training
	if t.Seen.IsZero() {
		t.Seen, news = f.now, true
	}
	if at := f.from.Time.Truncate(time.Minute); at.After(l.Spoke) {
		l.Spoke, news = at, true
	}
	return news
}

// takenBy takes from a line that training runs in a life that Pitstop made, though nobody let it in: its crew has taken the lease over. No slice of
// a Multislice trains alone. What its owner has deleted goes all the same.
func (f *facts) takenBy(l *Life, r events.CrewReport) bool {
	maker, trains := l.Maker, r.Report == events.ReportStarted || r.Report == events.ReportProgress || r.Report == events.ReportSaved
	if maker == "" || l.Released.After(l.Incarnation.Created) || l.isOver() || !trains || !l.isNamedBy(r) {
		return false
	}
	l.Maker, l.Released = "", time.Time{} // the word on the life before counts until training is let in
	for i := range f.w.Slices {
		if o := &f.w.Slices[i]; o.Maker == maker && o.Condition == evidence.Ready {
			o.Maker, o.Spoke = "", later(o.Spoke, f.from.Time.Truncate(time.Minute)) // it spoke for all of them
		}
	}
	return true
}

// crewNotice records what the metadata server told a crew.
func (f *facts) crewNotice(s *Slot, r events.CrewReport) bool {
	news := false
	if r.Notice != nil {
		news = f.noticed(evidence.Noticed{Origin: f.from, Slice: s.Name, Incarnation: s.Incarnation, Notice: *r.Notice, Text: r.Describe()})
	}
	if r.Preempted {
		news = f.interrupted(evidence.Interrupted{Origin: f.from, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CausePreemption, Text: r.Describe()}) || news
	}
	return news
}

// started records an attempt that runs, or ran, at the time of the evidence, and reports whether that is news.
func (f *facts) started(attempt int, at time.Time) bool {
	t := &f.w.Training
	if attempt < t.Attempt || attempt == t.Attempt && !at.Before(t.Began) {
		return false
	}
	t.Attempt, t.Began = attempt, at
	return true
}

// stepped records the last step of the newest attempt, the highest step ever, and the newest checkpoint that a crew tells of.
func (f *facts) stepped(r events.CrewReport) bool {
	t, at := &f.w.Training, f.from.Time
	was, same := *t, r.Attempt == t.StepAttempt
	if same && belies(t.Step, t.StepAt, r.Step, at) {
		return false
	}
	denied := same && belies(r.Step, at, t.Step, t.StepAt) || r.Attempt < t.StepAttempt && f.isNewer(r) // lines alone told of a later attempt
	if denied {
		t.High, t.Reported = 0, t.Saved
	}
	newer := denied || f.isNewer(r)
	if newer {
		f.steps(r)
	}
	runs := f.tellsRun(r)
	begun := f.started(r.Attempt, at)
	t.High = max(t.High, r.Step)
	saves := f.tellsOfSave(r, same)
	return newer || begun || saves || runs || t.High != was.High
}

// steps takes a line's step for the newest one. It undoes what lines told before it of a later attempt.
func (f *facts) steps(r events.CrewReport) {
	t, at := &f.w.Training, f.from.Time
	last := *t
	if at.After(later(t.Began, later(t.Exit.At, t.Claim.At))) {
		f.belies(max(r.Attempt, f.w.Lease.Attempt))
		f.belieRuns(max(r.Attempt, f.w.Lease.Attempt))
	}
	if r.Attempt == last.StepAttempt && r.Step > last.Step {
		f.pauses(last.StepAt)
	}
	t.Step, t.StepAt, t.StepAttempt = r.Step, at, r.Attempt
}

// pauses records the time since the step before, in quiet times.
func (f *facts) pauses(last time.Time) {
	if t := &f.w.Training; f.w.Incident == nil && !last.IsZero() {
		t.GapSeconds = max(t.GapSeconds, int64(min(f.from.Time.Sub(last), longestStep)/time.Second))
	}
}

// isNewer reports whether a line tells of a later step than is known, or of an earlier time for it.
func (f *facts) isNewer(r events.CrewReport) bool {
	t := &f.w.Training
	if r.Attempt != t.StepAttempt {
		return !f.outdated(r.Attempt, t.StepAttempt, t.StepAt)
	}
	return r.Step > t.Step || r.Step == t.Step && f.from.Time.Before(t.StepAt)
}

// belies reports whether a step at one time shows that another one at another time is none: no attempt goes back that far, or does fewer steps
// for that long.
func belies(step int64, at time.Time, other int64, otherAt time.Time) bool {
	return step < other/2 && at.After(otherAt) || step < other && at.Sub(otherAt) > staleStep
}

// tellsOfSave records the newest complete checkpoint, by a crew's word. Nobody saves a step that nobody has done.
func (f *facts) tellsOfSave(r events.CrewReport, sameAttempt bool) bool {
	t, at, step := &f.w.Training, f.from.Time, r.CheckpointStep
	if step == 0 || step > t.High {
		return false
	}
	was := t.Reported
	if step < was.Step || step == was.Step && !at.Before(was.At) {
		return false
	}
	if sameAttempt && step > was.Step && was.At.After(t.Began) {
		f.measures(at.Sub(was.At))
	}
	t.Reported = Checkpoint{Step: step, At: at, URI: r.CheckpointURI}
	return true
}

// measures records the time between two checkpoints of one attempt.
func (f *facts) measures(gap time.Duration) {
	if t := &f.w.Training; gap > 0 && gap <= longestGap {
		t.GapsBetween = paced(t.GapsBetween, gap)
	}
}

// exited records the end of an attempt that did not end well. The worker that failed first counts, whichever line comes first.
func (f *facts) exited(r events.CrewReport) bool {
	t, at := &f.w.Training, f.from.Time
	again := r.Attempt == t.Exit.Attempt
	if f.outdated(r.Attempt, t.Exit.Attempt, t.Exit.At) || again && !at.Before(t.Exit.At) {
		return false
	}
	high := t.High
	if again {
		high = t.Exit.High
	}
	t.Exit = Exit{Attempt: r.Attempt, At: at, Sign: r.Sign(), High: high, Exit: r.Exit()}
	f.started(r.Attempt, at)
	if !r.FirstStepAt.IsZero() {
		f.tellsRun(r)
	}
	f.endsRun(r.Attempt, at, r.Interrupted)
	return true
}

// claimed records a line about the end of the training. The latest one counts.
func (f *facts) claimed(r events.CrewReport) bool {
	known := f.w.Training.Claim
	c := Claim{Attempt: r.Attempt, Finished: r.Report == events.ReportFinished, At: f.from.Time}
	if f.outdated(c.Attempt, known.Attempt, known.At) || c.Attempt == known.Attempt && !c.At.After(known.At) {
		return false
	}
	f.w.Training.Claim = c
	f.endsRun(c.Attempt, c.At, true)
	return true
}

// saved records the crew's answer to the request for a save.
func (f *facts) saved(r events.CrewReport) bool {
	in := f.w.Incident
	if in == nil || r.SaveID == "" || in.SaveID() != r.SaveID || !in.Save.Acked.IsZero() {
		return false
	}
	if r.Report == events.ReportRefused {
		news := in.Save.Refused != r.Reason
		in.Save.Refused = r.Reason
		return news
	}
	in.Save.Acked, in.Save.Step = f.now, r.CheckpointStep
	return true
}

// beat records what a crew's own record on its machine says, or that it could not be read.
func (f *facts) beat(e evidence.Beat) bool {
	l := f.w.life(e.Slice)
	if l == nil || !e.Incarnation.Same(l.Incarnation) || f.from.Time.Before(l.Heard.At) {
		return false
	}
	was := *l
	l.Heard = Heard{At: f.from.Time, Seen: f.by(e.Seen), Looked: f.by(e.Looked), Runs: e.Runs}
	if !e.Seen.IsZero() {
		f.hears(l, e)
	}
	return *l != was // each look is a later one
}

// hears records what a record that was read tells of the training.
func (f *facts) hears(l *Life, e evidence.Beat) {
	if e.Runs {
		f.confirms(e.Attempt)
		if l.Heard.runs() && l.exists() && l.Condition != evidence.Lost {
			f.w.Lease.leads(e.Slice, l, e.Attempt, f.by(e.Seen)) // a crew begins nothing before the lease names it
			l.Maker = ""
		}
	}
	if !e.StepAt.IsZero() {
		if at := f.by(e.StepAt); at.After(f.w.Training.Stepped) {
			f.w.Training.Stepped = at
			f.showsStep(e)
		}
		f.proves(e.Step, f.by(e.StepAt))
	}
	if e.Verdict != nil {
		f.verdict(*e.Verdict, false)
	}
}

// by is a time that a machine's clock gives: not after now.
func (f *facts) by(t time.Time) time.Time {
	if t.After(f.now) {
		return f.now
	}
	return t
}

// runs reports whether the crew reported a running training just before it was heard.
func (h Heard) runs() bool { return h.Runs && h.At.Sub(h.Seen) < bounds.HeardFor }

// checked records what a look for a complete checkpoint has found.
func (f *facts) checked(e evidence.Checked) bool {
	x, in := f.asked(e.Request), f.w.Incident
	if x == nil {
		return false
	}
	if !e.Found {
		f.foundNone(x, e)
		return true
	}
	found := Checkpoint{Step: e.Step, At: e.At, URI: e.URI, Bytes: e.Bytes}
	f.inspected(found)
	if in != nil && !in.Save.Asked.IsZero() && in.Save.Found.At.IsZero() {
		in.Save.Found, in.Save.Refused, in.Baseline = found, "", max(in.Baseline, e.Step)
		if t := &f.w.Training; t.SaveMode != x.Mode {
			t.SaveSeconds, t.SaveMode = nil, x.Mode
		}
		f.w.Training.SaveSeconds = paced(f.w.Training.SaveSeconds, e.At.Sub(in.Save.Asked))
	}
	f.settle(x)
	return true
}

// foundNone records that no checkpoint is new enough. Of a training that stands still, that tells how often it saves; a save is looked for again.
func (f *facts) foundNone(x *Effect, e evidence.Checked) {
	t, in := &f.w.Training, f.w.Incident
	if in != nil && in.cause() == events.CauseHang && (e.None || e.Stale && e.Saves != nil) {
		t.Looked, t.SavesEvery = f.now, int64(f.w.savesEvery(e.Saves, in.Troubles[0].At)/time.Second)
		f.inspected(Checkpoint{Step: e.Step, At: e.At, URI: e.URI, Bytes: e.Bytes})
		f.settle(x)
		return
	}
	x.again(f.now.Add(bounds.LookEvery))
	if in != nil {
		in.Save.Refused = e.Text
	}
}

// verdictRead records the crew's verdict beside the checkpoints, which attempt the lease names, and how far the training is saved.
func (f *facts) verdictRead(e evidence.VerdictRead) bool {
	x, t := f.asked(e.Request), &f.w.Training
	if x == nil {
		return false
	}
	if e.Attempt > 0 && e.Attempt < events.MaxAttempt {
		f.leaseNames(e.Attempt)
	}
	if e.Verdict != nil {
		f.verdict(*e.Verdict, true)
	}
	f.inspected(Checkpoint{Step: e.Saved, At: e.SavedAt, URI: e.SavedURI, Bytes: e.SavedBytes})
	if e.Failure != nil { // what was read counts, even if the rest could not be
		f.fails(x, *e.Failure)
		return true
	}
	t.HeardAt = f.now
	if t.Saved.Step > e.Saved || e.SavedAt.IsZero() { // it was deleted since
		t.Saved = Checkpoint{Step: e.Saved, At: e.SavedAt, URI: e.SavedURI, Bytes: e.SavedBytes}
	}
	if t.Reported.Step > e.Saved { // a training resumes from no later checkpoint than stands in the directory
		t.Reported = t.Saved
	}
	if in := f.w.Incident; in != nil {
		in.Baseline = min(in.Baseline, e.Saved)
	}
	f.settle(x)
	return true
}

// verdict records the crew's last word on an attempt, unless another life has begun since. Leased says that the lease confirms it. A crew that
// goes on by itself has said no last word.
func (f *facts) verdict(v events.CrewVerdict, leased bool) {
	l, t, at := f.w.life(v.Life.Slice), &f.w.Training, f.by(v.Ended)
	if at.IsZero() {
		at = f.now
	}
	if l == nil || v.Attempt >= events.MaxAttempt || v.Restart || !leased && v.Attempt < f.w.Lease.Sure.Attempt || !l.mayRunOn(v.Life.Workers) {
		return
	}
	f.confirms(v.Attempt)
	f.started(v.Attempt, at)
	next := Verdict{Attempt: v.Attempt, Finished: v.Finished, GaveUp: !v.Finished, Certain: v.Certain, At: at}
	if next.Attempt < t.Verdict.Attempt || next.Attempt == t.Verdict.Attempt && !at.Before(t.Verdict.At) { // it is given once
		return
	}
	t.Verdict = next
	f.endsRun(v.Attempt, at, false)
	if v.Finished {
		f.handsOver(at)
	}
}

// inspected records a complete checkpoint that Pitstop itself found.
func (f *facts) inspected(c Checkpoint) {
	t := &f.w.Training
	if c.At.IsZero() || !c.At.After(t.Saved.At) {
		return
	}
	t.Saved = c
	f.proves(c.Step, c.At)
}

// proves records a step that a checkpoint or a crew's record shows. One beyond all that were proven refills what was charged before it.
func (f *facts) proves(step int64, at time.Time) {
	if t := &f.w.Training; step > t.Proven {
		t.Proven, t.ProvenAt = step, later(t.ProvenAt, at)
	}
}
