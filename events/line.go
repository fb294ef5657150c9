package events

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Line is the meaning of a line from a training framework or the TPU runtime. Users' code can write such lines too, so they
// are only a reason to look.
type Line string

// The known lines.
const (
	// LineCaught is JAX's: a host got a signal to end, and the training goes on until it ends by itself.
	LineCaught Line = "sigterm_caught"
	// LineStopped is MaxText's: the training got a signal, saved and stopped. It is not a crash.
	LineStopped Line = "stopped"
	// LineStacks is the TPU runtime's dump of every ten minutes. It is not a crash either.
	LineStacks Line = "stack_dump"
)

var lineText = map[Line]string{
	LineCaught:  ": the training caught a SIGTERM",
	LineStopped: ": the training stopped on a signal",
	LineStacks:  ": the stacks of the training, dumped every ten minutes",
}

// The lines of the frameworks and the runtime, word for word.
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

// plainPayload is the part that is read of a line from an agent or framework.
type plainPayload struct {
	Message  string
	Verb     string
	JobState string
}

// said reads the text of an entry from any of its payloads. A payload in another shape has no text.
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

// line reads a line of a framework or the TPU runtime on a worker. Other lines there are not read.
func (l *logEntry) line(e *Entry) {
	p := l.said()
	line := lineOf(p.Message)
	if p.Verb == stackDump { // the stacks may hold any text
		line = LineStacks
	}
	if line == "" {
		e.Ignored = "the log " + l.logID() + " matches no known line"
		return
	}
	e.Kind, e.Line, e.Rank = KindLine, line, RankUser
	e.Subject = l.subject()
	if line == LineStacks {
		e.Ignored = "a periodic dump is not a crash"
		return
	}
	if e.Subject.Node == "" {
		l.keptBy(e)
	}
}
