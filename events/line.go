package events

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Line is what a line of a training framework or of the TPU runtime says. Such lines are written where users' code
// runs: they are a reason to look and no more.
type Line string

// The lines that are known.
const (
	// LineCaught is JAX's: a host was told to end, and the training goes on until it ends by itself.
	LineCaught Line = "sigterm_caught"
	// LineStopped is MaxText's: the training saved and stopped because it was told to. It is no crash.
	LineStopped Line = "stopped"
	// LineStacks is what the TPU runtime dumps every ten minutes. It is no crash either.
	LineStacks Line = "stack_dump"
)

var lineText = map[Line]string{
	LineCaught:  ": the training caught a SIGTERM",
	LineStopped: ": the training stopped as it was told to",
	LineStacks:  ": the stacks of the training, dumped as every ten minutes",
}

// What the frameworks and the runtime write, word for word.
// https://github.com/openxla/xla/blob/main/xla/tsl/distributed_runtime/preemption/preemption_notifier.cc
// https://github.com/AI-Hypercomputer/maxtext
const (
	sayCaught  = "SIGTERM caught at"
	sayStopped = "Job received termination signal (SIGTERM)."
	// stackDump is the verb of an entry that holds the stacks of the training.
	stackDump = "stacktraceanalyzer"
)

func lineOf(text string) Line {
	switch {
	case strings.Contains(text, sayStopped):
		return LineStopped
	case strings.Contains(text, sayCaught):
		return LineCaught
	}
	return ""
}

// plainPayload is what is read of a line that somebody's agent or framework wrote.
type plainPayload struct {
	Message  string
	Verb     string
	JobState string
}

// said reads the text of an entry, whichever payload it stands in. A payload of another shape says nothing.
func (l *logEntry) said() plainPayload {
	var p struct {
		Message  jsontext.Value `json:"message"`
		Verb     jsontext.Value `json:"verb"`
		JobState jsontext.Value `json:"jobState"`
	}
	out := plainPayload{Message: l.TextPayload}
	if len(l.JSONPayload) == 0 || !peek(l.JSONPayload, &p) {
		return out
	}
	if out.Message == "" {
		out.Message = text(p.Message)
	}
	out.Verb, out.JobState = text(p.Verb), text(p.JobState)
	return out
}

// loose is a JSON string's value, and the text of anything else but null.
func loose(v jsontext.Value) string {
	if k := v.Kind(); k == '"' || k == 'n' || len(v) == 0 {
		return text(v)
	}
	out := slices.Clone(v)
	if out.Compact() != nil {
		return ""
	}
	return string(out)
}

// text is a JSON string's value, and empty for anything else.
func text(v jsontext.Value) (s string) {
	if v.Kind() == '"' && !peek(v, &s) {
		return ""
	}
	return s
}

// line reads what a framework or the TPU runtime wrote on a worker. Nothing else that is written there is read.
func (l *logEntry) line(e *Entry) {
	p := l.said()
	line := lineOf(p.Message)
	if p.Verb == stackDump { // whatever stands in the stacks
		line = LineStacks
	}
	if line == "" {
		e.Ignored = "the log " + l.logID() + " says nothing that is read"
		return
	}
	e.Kind, e.Line, e.Rank = KindLine, line, RankUser
	e.Subject = l.subject()
	if line == LineStacks {
		e.Ignored = "a periodic dump is no crash"
		return
	}
	if e.Subject.Node == "" {
		l.keptBy(e)
	}
}
