package notify

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"pitstop.internal/events"
	"pitstop.internal/shared/jobterms"
	"pitstop.internal/shared/view"
)

// wording is a message as people read it, before any markup: a title, rows of a label and a text, and a last line. Texts are of
// one line each, and may hold anything else from outside.
type wording struct {
	title  string
	rows   []row
	footer string
}

type row struct{ label, text string }

// wording makes the text of a message.
func (m Message) wording() wording {
	var v wording
	if len(m.Updates) == 1 {
		v = single(m.Updates[0])
	} else {
		v = digest(m.Updates)
	}
	if m.Again {
		v.footer += " · sent again: the first message may not have arrived"
	}
	v.title, v.footer = line(v.title), line(v.footer)
	return v
}

// single is the text of one step of one incident.
func single(u events.IncidentUpdated) wording {
	v := wording{title: fmt.Sprintf("%s of %s: %s", subject(u), u.Workload, state(u))}
	switch {
	case loud(u) && u.Outcome != "":
		v.title = "A person is needed: " + word(u.Cause) + " of " + u.Workload + idle(u)
	case loud(u):
		v.title = "Your approval is needed: " + word(u.Cause) + " of " + u.Workload
	}
	v.row("What happened", strings.Join(append(slices.Clone(u.Happened), where(u)), " · "))
	v.row("Why", u.Why)
	if u.Outcome == "" {
		v.row("What is being done", u.Doing)
	} else {
		v.row("How it ended", u.Doing)
	}
	if u.Job.State != "" {
		v.row("Job", jobterms.Describe(u.Job))
	}
	v.row("Cost so far", cost(u))
	v.row("What you must do", must(u))
	if u.Code != "" {
		v.footer = " · " + u.Code
	}
	v.footer = u.Incident + v.footer + " · policy " + orElse(u.Policy, "watch (no policy label)") +
		" · " + u.At.UTC().Format("Jan 2 15:04:05 UTC")
	return v
}

// maxNamed is how many incidents a digest names.
const maxNamed = 8

// digest is the text of many incidents at once: those that need a person come first.
func digest(updates []events.IncidentUpdated) wording {
	updates = slices.Clone(updates)
	slices.SortStableFunc(updates, func(a, b events.IncidentUpdated) int { return rank(a) - rank(b) })
	states, causes := count{}, count{}
	needed := 0
	var named []string
	for _, u := range updates {
		states.add(state(u))
		causes.add(subject(u))
		if loud(u) {
			needed++
		}
		if len(named) < maxNamed {
			named = append(named, u.Workload+" ("+subject(u)+"): "+state(u))
		}
	}
	v := wording{title: fmt.Sprintf("%d incidents at once", len(updates))}
	switch needed {
	case 0:
	case 1:
		v.title += ", one of them needs a person"
	default:
		v.title += fmt.Sprintf(", %d of them need a person", needed)
	}
	if rest := len(updates) - len(named); rest > 0 {
		named = append(named, fmt.Sprintf("and %d more: run pitstop status", rest))
	}
	v.row("Status", states.String())
	v.row("Causes", causes.String())
	v.row("Workloads", strings.Join(named, " · "))
	v.footer = "one message instead of " + fmt.Sprint(len(updates)) + ": too many updates came at once"
	return v
}

func rank(u events.IncidentUpdated) int {
	switch {
	case loud(u):
		return 0
	case u.Outcome == "":
		return 1
	}
	return 2
}

// row adds a row, unless its text is empty once folded to a line: Chat refuses a card with an empty text.
func (v *wording) row(label, text string) {
	if text = line(text); text != "" {
		v.rows = append(v.rows, row{label, text})
	}
}

// count counts words and keeps the order in which they came.
type count struct {
	words []string
	n     map[string]int
}

func (c *count) add(w string) {
	if c.n == nil {
		c.n = map[string]int{}
	}
	if c.n[w]++; c.n[w] == 1 {
		c.words = append(c.words, w)
	}
}

func (c *count) String() string {
	var parts []string
	for _, w := range c.words {
		parts = append(parts, fmt.Sprintf("%s: %d", w, c.n[w]))
	}
	return strings.Join(parts, " · ")
}

// loud reports whether a person has to act.
func loud(u events.IncidentUpdated) bool {
	return u.Outcome == string(view.Escalated) || u.Outcome == "" && u.Phase == string(view.Approving)
}

// stands reports whether a step is an end or a question: no later message repeats its news.
func stands(step string) bool {
	switch view.Outcome(step) {
	case view.Resumed, view.Withdrawn, view.Released, view.Escalated, view.Observed:
		return true
	}
	phase, _, _ := strings.Cut(step, "/")
	return phase == string(view.Approving)
}

// state is where an incident stands, in words.
func state(u events.IncidentUpdated) string {
	switch view.Outcome(u.Outcome) {
	case view.Resumed:
		return "training resumed, confirmed by " + orElse(u.ConfirmedBy, "nobody")
	case view.Withdrawn:
		return "the maintenance was cancelled"
	case view.Released:
		return "handed back to its owner"
	case view.Escalated:
		return "a person is needed"
	case view.Observed:
		return "Pitstop only watched"
	}
	switch view.Phase(u.Phase) {
	case view.Saving:
		return "saving a checkpoint"
	case view.Window:
		return "waiting for the maintenance"
	case view.PhaseGrace:
		return "it is gone, cause not known yet"
	case view.Healing:
		return "Google is bringing it back"
	case view.Approving:
		return "approval is needed"
	case view.PhaseDeleting:
		return "deleting the lost slices"
	case view.PhaseCreating:
		if !u.Waiting.IsZero() {
			return "waiting for capacity"
		}
		return "creating it again"
	case view.Starting:
		return "starting the stopped slices"
	case view.Resuming:
		return "it is back, waiting for training to progress"
	case view.Watching:
		return "Pitstop only watches"
	case view.Clearing:
		return "cleaning up Pitstop's own orders"
	case view.PhaseWaits:
		return "it has waited for " + events.Span(u.At.Sub(u.Waiting)) + ", since " + u.Waiting.UTC().Format("Jan 2 15:04 UTC")
	}
	return orElse(u.Outcome, u.Phase)
}

// subject is what an update is about, in words: the cause of an incident, or a wait.
func subject(u events.IncidentUpdated) string {
	if u.Phase == string(view.PhaseWaits) {
		return "wait"
	}
	return word(u.Cause)
}

func word(c events.Cause) string { return orElse(strings.ReplaceAll(string(c), "_", " "), "trouble") }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// where names the affected slices.
func where(u events.IncidentUpdated) string {
	const most = 4
	var parts []string
	for _, s := range u.Slices[:min(most, len(u.Slices))] {
		p := strings.TrimSuffix(s.Name+", "+s.Accelerator, ", ")
		if s.Spot {
			p += " Spot"
		}
		if s.Zone != "" {
			p += " in " + s.Zone
		}
		parts = append(parts, p)
	}
	if more := len(u.Slices) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more slices", more))
	}
	if parts == nil {
		return u.Workload
	}
	return strings.Join(parts, ", ")
}

// cost is the cost of an incident until its last update. Of a wait it is not known whether machines are held meanwhile, and of a watched
// incident when the training was back.
func cost(u events.IncidentUpdated) string {
	if u.Phase == string(view.PhaseWaits) || u.Outcome == string(view.Observed) && u.Cost.AtLeast {
		return ""
	}
	if parts := u.Cost.Parts(); parts != nil {
		return strings.Join(parts, " · ")
	}
	return "nothing yet: training still runs"
}

// idle is the cost of idle chips while Pitstop waits for a person.
func idle(u events.IncidentUpdated) string {
	switch {
	case u.IdleChips == 0:
		return ""
	case u.ChipHourPrice > 0:
		return fmt.Sprintf(", and idle chips cost $%.2f an hour", u.ChipHourPrice*float64(u.IdleChips))
	case u.IdleChips == 1:
		return ", and 1 chip stands idle"
	}
	return fmt.Sprintf(", and %d chips stand idle", u.IdleChips)
}

// must says how a person has to act.
func must(u events.IncidentUpdated) string {
	switch {
	case u.Outcome == "" && u.Phase == string(view.Approving):
		return "approve it: pitstop approve " + u.Incident + " (Pitstop waits until then)"
	case u.Outcome == string(view.Escalated):
		text := orElse(u.Advice, "read the incident: pitstop incident "+u.Incident)
		if u.IdleChips > 0 {
			text += ". READY slices stay, and cost money, until you delete them"
		}
		return text
	case u.Advice != "":
		return u.Advice
	}
	return "nothing"
}

// maxLine bounds a text, in characters.
const maxLine = 600

// line folds a text to one line and drops characters that do not print or that change the direction of the text after them.
func line(s string) string {
	var b strings.Builder
	space, n := false, 0
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case r == utf8.RuneError || !unicode.IsPrint(r):
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
		}
		space = false
		if n++; n >= maxLine {
			b.WriteString("…")
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// entities escapes the three characters that begin markup, as Slack and Chat ask. It cuts the text at the given number of
// characters, counted in the strictest way.
func entities(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		part := string(r)
		switch r {
		case '&':
			part = "&amp;"
		case '<':
			part = "&lt;"
		case '>':
			part = "&gt;"
		}
		width := len(part)
		if part == string(r) {
			width = 1 + min(1, int(r)>>16)
		}
		if n += width; n > most-1 {
			b.WriteString("…")
			break
		}
		b.WriteString(part)
	}
	return b.String()
}
