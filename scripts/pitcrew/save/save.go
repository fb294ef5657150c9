// Package save decides how a request to save is carried out: whom it is sent to, when it counts as done, and why not. It
// does no I/O.
package save

import (
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
)

// Request asks for a save.
type Request struct {
	// ID names it; Own says that the crew asks of its own accord, so that nobody waits for an answer.
	ID   string
	Own  bool
	Mode events.SaveMode
	// By is when it has to be done; zero is as long as there is.
	By time.Time
	// Why is for people.
	Why string
}

// World is the knowledge for a decision.
type World struct {
	Now time.Time
	// Running says that the training runs, Handled that a process of it handles the signal, Command that the user named a
	// command that saves, Directory that the checkpoint directory is known.
	Running, Handled, Command, Directory bool
	// Young says that the training began lately: who will handle the signal may not do so yet.
	Young bool
	// Coarse is how far the time of a checkpoint may lie before the true one: buckets tell it to the second.
	Coarse time.Duration
	// Signal is the signal's name.
	Signal string
	// Step is the last step, Checkpoint the newest complete checkpoint, and Next until when the rhythm of the training brings another
	// one; zero is not known.
	Step       int64
	Checkpoint Checkpoint
	Next       time.Time
}

// Checkpoint is a complete checkpoint; none has no time.
type Checkpoint struct {
	Step int64
	URI  string
	At   time.Time
}

// Act is the next act for a request.
type Act int

// The acts.
const (
	Nothing Act = iota
	Watch       // look for the next complete checkpoint
	Signal      // send the signal to who handles it
	Command     // run the user's command
)

// Answer tells how a request ended.
type Answer struct {
	Request Request
	Saved   bool
	Checkpoint
	// Reason is why it is refused.
	Reason string
}

// Memory is the state that outlives a crew: without it a request would be carried out twice.
type Memory struct {
	// Request is the open one, Asked is when it was taken. Unsent says that its signal waits for a process that handles it.
	Request *Request  `json:"request,omitzero"`
	Asked   time.Time `json:"asked,omitzero"`
	Unsent  bool      `json:"unsent,omitzero"`
	// Urged says that the training was asked for what it does not do of its own accord in time.
	Urged bool `json:"urged,omitzero"`
	// Marked is when the training was last sent a signal.
	Marked time.Time `json:"marked,omitzero"`
	// Answered are the requests that were answered last.
	Answered []string `json:"answered,omitzero"`
}

// Saver carries out one request at a time.
type Saver struct{ Memory }

// remembered is how many answered requests are known again.
const remembered = 32

// Open reports whether a request waits for its save.
func (s *Saver) Open() bool { return s.Request != nil }

// Told reports whether the training was asked to save since then: an exit 0 is then no end of the job.
func (s *Saver) Told(since time.Time) bool { return s.Request != nil || s.Marked.After(since) }

// Mark says that a signal was passed on.
func (s *Saver) Mark(now time.Time) { s.Marked = now }

// Begin says that another attempt begins: what the last one was asked says nothing about it.
func (s *Saver) Begin() { s.Marked = time.Time{} }

// Take takes a request. One that was answered, or is being carried out, asks for nothing new; a newer one takes the place
// of an older one.
func (s *Saver) Take(r Request, w World) (Act, []Answer) {
	if s.Request != nil && s.Request.ID == r.ID || slices.Contains(s.Answered, r.ID) {
		return Nothing, nil
	}
	var answers []Answer
	no := func(format string, args ...any) (Act, []Answer) {
		return Nothing, []Answer{s.turnDown(r, fmt.Sprintf(format, args...))}
	}
	switch { // what cannot be carried out does not take the place of what is
	case !w.Running:
		return no("no training runs at the moment")
	case !r.By.IsZero() && !r.By.After(w.Now):
		return no("it came too late: it had to be done by %s", r.By.UTC().Format(time.RFC3339))
	case r.Mode == events.SaveNatural && !w.Directory:
		return no("no checkpoint directory is known in which the next checkpoint could be seen")
	}
	if s.Request != nil {
		if r.Own && !s.Request.Own && s.Request.Mode == events.SaveSignal {
			return Nothing, nil // what is asked for is under way
		}
		answers = append(answers, s.refuse("request "+r.ID+" came in its place"))
	}
	s.Request, s.Asked, s.Unsent, s.Urged = &r, w.Now, r.Mode == events.SaveSignal && !w.Command, false
	switch {
	case r.Mode == events.SaveNatural:
		return s.natural(w), answers
	case w.Command:
		s.Marked = w.Now
		return Command, answers
	}
	act, refused := s.signal(w)
	return act, append(answers, refused...)
}

// natural waits for the training's own next checkpoint where its rhythm brings that in time. Otherwise it asks for one, where the
// training takes that.
func (s *Saver) natural(w World) Act {
	by := s.Request.By
	comes := by.IsZero() || !w.Next.Before(w.Now) && !w.Next.After(by)
	if comes || s.Urged || !w.Running || !w.Command && !w.Handled {
		return Watch
	}
	s.Urged, s.Marked = true, w.Now
	if w.Command {
		return Command
	}
	return Signal
}

// signal has the signal sent as soon as a process handles it. A training that began lately may be about to.
func (s *Saver) signal(w World) (Act, []Answer) {
	switch {
	case w.Handled:
		s.Unsent, s.Marked = false, w.Now
		return Signal, nil
	case w.Young && (s.Request.By.IsZero() || s.Request.By.After(w.Now)):
		return Watch, nil
	}
	return Nothing, []Answer{s.refuse(fmt.Sprintf("no process of the training handles %s: it would die of it", w.Signal))}
}

// Failed says that the command failed that was run for the request of that ID. Another one may be open by now.
func (s *Saver) Failed(id, why string) []Answer {
	if s.Request == nil || s.Request.ID != id {
		return nil
	}
	return []Answer{s.refuse(why)}
}

// Look sees whether the open request is done, or cannot be any more, or its signal can be sent now.
func (s *Saver) Look(w World) (Act, []Answer) {
	switch {
	case s.Request == nil:
		return Nothing, nil
	case !w.Checkpoint.At.IsZero() && !w.Checkpoint.At.Before(s.Asked.Add(-w.Coarse)):
		return Nothing, []Answer{s.done(w.Checkpoint)}
	case s.Unsent:
		return s.signal(w)
	case s.Request.By.IsZero() || s.Request.By.After(w.Now):
		if s.Request.Mode == events.SaveNatural {
			return s.natural(w), nil
		}
		return Watch, nil
	case !w.Directory:
		return Nothing, []Answer{s.refuse("it was asked to save, and without a checkpoint directory nobody can see whether it did")}
	}
	return Nothing, []Answer{s.refuse("no checkpoint was complete by " + s.Request.By.UTC().Format(time.RFC3339))}
}

// Ended takes the end of the training; the world has to be looked at after it.
func (s *Saver) Ended(w World, how string, clean bool) []Answer {
	if s.Request == nil {
		return nil
	}
	s.Unsent = false // it has ended, whatever it handled
	if _, answers := s.Look(w); answers != nil {
		return answers
	}
	if clean && !w.Directory {
		return []Answer{s.done(Checkpoint{Step: w.Step, At: w.Now})}
	}
	return []Answer{s.refuse("the training ended before a new checkpoint was complete: " + how)}
}

// Signals reports whether the signal to save was sent for the open request.
func (s *Saver) Signals() bool {
	return s.Request != nil && (s.Urged || s.Request.Mode == events.SaveSignal && !s.Unsent)
}

// Seeks reports whether the open request depends on who handles the signal to save.
func (s *Saver) Seeks() bool {
	return s.Request != nil && (s.Unsent || s.Request.Mode == events.SaveNatural && !s.Urged)
}

// Deadline is when the open request has to be looked at again.
func (s *Saver) Deadline() time.Time {
	if s.Request == nil {
		return time.Time{}
	}
	return s.Request.By
}

func (s *Saver) refuse(why string) Answer { return s.answer(Answer{Reason: why}) }

func (s *Saver) done(c Checkpoint) Answer { return s.answer(Answer{Saved: true, Checkpoint: c}) }

func (s *Saver) answer(a Answer) Answer {
	a.Request = *s.Request
	s.Leave()
	return a
}

// turnDown answers a request that was never taken.
func (s *Saver) turnDown(r Request, why string) Answer {
	s.remember(r.ID)
	return Answer{Request: r, Reason: why}
}

// Leave lets go of the open request without an answer: somebody else gives it.
func (s *Saver) Leave() {
	s.remember(s.Request.ID)
	s.Request, s.Unsent, s.Urged = nil, false, false
}

func (s *Saver) remember(id string) {
	if s.Answered = append(s.Answered, id); len(s.Answered) > remembered {
		s.Answered = s.Answered[1:]
	}
}
