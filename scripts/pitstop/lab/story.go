package lab

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/world"
)

// storyPrinter prints stories.
type storyPrinter struct {
	*terminal.Printer
	// reason is that of the row before. A request and an answer do not repeat it.
	reason string
	// day is the day of the line before.
	day string
}

func newStoryPrinter(out io.Writer, asJSON bool) *storyPrinter {
	return &storyPrinter{Printer: terminal.NewPrinter(out, asJSON)}
}

// line prints one line as it happens.
func (p *storyPrinter) line(l world.Line) {
	if p.AsJSON {
		raw, err := asLine(l)
		if err == nil {
			terminal.Print(p.Out, string(raw))
		}
		return
	}
	if !l.Routine && l.Kind != world.Assumed { // the summary has what is assumed
		p.print(l)
	}
}

// ends prints the limits and the advice of each incident, after the lines of the story.
func (p *storyPrinter) ends(s *world.Story) {
	for _, g := range group(s).incidents {
		terminal.Print(p.Out, p.Paint(terminal.Dim, g.title()))
		p.after(g)
	}
	terminal.Print(p.Out, "")
}

// story prints a story, incident by incident. Of an incident that was printed when it ended it prints what came later.
func (p *storyPrinter) story(s *world.Story, shipped, live bool) {
	groups := group(s)
	for _, g := range groups.incidents {
		if live && !g.open {
			g.lines, g.later = nil, append(g.lines, g.later...)
			if len(g.later) == 0 {
				continue
			}
		}
		if !shipped || len(groups.incidents) > 1 {
			terminal.Print(p.Out, p.Paint(terminal.Bold, g.title()))
		} else {
			terminal.Print(p.Out, p.Paint(terminal.Dim, g.title()))
		}
		if !live || g.open {
			p.lines(g.lines)
			p.after(g)
		}
		if len(g.later) > 0 {
			terminal.Print(p.Out, p.Paint(terminal.Dim, "afterwards"))
			p.lines(g.later)
		}
		terminal.Print(p.Out, "")
	}
	if len(groups.rest) > 0 {
		terminal.Print(p.Out, p.Paint(terminal.Dim, "these opened no incident"))
		p.lines(groups.rest)
		terminal.Print(p.Out, "")
	}
}

// ended prints an incident that has just ended.
func (p *storyPrinter) ended(r world.Result, lines []world.Line) {
	elsewhere := func(l world.Line) bool { return l.Routine || l.Kind == world.Assumed }
	g := incidentGroup{result: r, lines: slices.DeleteFunc(lines, elsewhere)}
	terminal.Print(p.Out, p.Paint(terminal.Bold, g.title()))
	p.lines(g.lines)
	p.after(g)
	terminal.Print(p.Out, "")
}

// lines prints lines, with the day where it changes. It folds lines that several workers report alike into one.
func (p *storyPrinter) lines(lines []world.Line) {
	p.day = ""
	p.further(lines)
	if len(lines) == 0 {
		terminal.Print(p.Out, "")
	}
}

// further prints lines as lines does, after others.
func (p *storyPrinter) further(lines []world.Line) {
	first, end, again := 0, 0, 0 // the repetitions are the lines from first to end
	for i := 0; i < len(lines); i++ {
		if i == first && again > 0 {
			p.Row("", "", "", fmt.Sprintf("the same %s more, until %s", terminal.Count(again, "time"), lines[end-1].Time.Format("Jan 2 15:04:05")), "")
			i, again = end-1, 0
			continue
		}
		if again == 0 {
			k, times := repeated(lines[i:])
			first, end, again = i+k, i+k*times, times-1
		}
		l := lines[i]
		if d := l.Time.Format("Mon Jan 2, 2006"); d != p.day && l.Time.Year() > 1 {
			p.day = d
			terminal.Print(p.Out, "  "+p.Paint(terminal.Dim, d))
		}
		n := 1
		for i+n < len(lines) && sameNews(l, lines[i+n]) {
			n++
		}
		if n > 1 {
			l.Text = foldedText(lines[i : i+n])
		} else if attempts := failedAttempts(lines[i:]); attempts > 2 {
			n = 2 * attempts
			last := lines[i+n-1].Crew
			l.Text = fmt.Sprintf("crew: attempts %d to %d each ended like that, the last one %s", l.Crew.Attempt, last.Attempt, lines[i+n-1].Time.Format("at 15:04:05"))
		}
		i += n - 1
		p.print(l)
	}
}

// mostRepeated is how many lines one try has at most, of an action that is tried again and again.
const mostRepeated = 16

// repeated finds lines at the beginning that repeat at once, alike except for numbers and times. It returns how many lines one
// repetition has, and how many repetitions there are.
func repeated(lines []world.Line) (length, times int) {
	times = 1
	for k := 3; k <= mostRepeated && 2*k <= len(lines); k++ {
		n := 1
		for (n+1)*k <= len(lines) && slices.EqualFunc(lines[:k], lines[n*k:(n+1)*k], alike) {
			n++
		}
		if n > 2 && (length == 0 || n*k > length*times) {
			length, times = k, n
		}
	}
	return length, times
}

// number is a number, a span of time, or the ID of an error.
var number = regexp.MustCompile(`\[EID: \w+\]|\d[\d.,:]*( [hms]\b)?( \d+ [hms]\b)*`)

func alike(a, b world.Line) bool {
	bare := func(s string) string { return number.ReplaceAllString(s, "#") }
	return a.Kind == b.Kind && a.Crew == nil && b.Crew == nil && a.Workload == b.Workload && bare(a.Text) == bare(b.Text) && bare(a.Reason) == bare(b.Reason)
}

// sameNews reports whether two entries say the same of two workers of one slice.
func sameNews(a, b world.Line) bool {
	wa, resta := cutWorker(a.Text)
	wb, restb := cutWorker(b.Text)
	return a.Kind == world.Entry && b.Kind == world.Entry && wa != "" && wb != "" && resta == restb && a.Workload == b.Workload &&
		a.Simulated == b.Simulated && a.Reason == b.Reason && b.Time.Sub(a.Time) < time.Minute
}

// failedAttempts counts how many attempts in a row were started and ended by themselves.
func failedAttempts(lines []world.Line) int {
	n := 0
	for 2*n+1 < len(lines) {
		began, ended := lines[2*n].Crew, lines[2*n+1].Crew
		if began == nil || ended == nil || began.Report != events.ReportStarted || ended.Report != events.ReportExited {
			break
		}
		n++
	}
	return n
}

// cutWorker takes the number of the worker out of a text.
func cutWorker(s string) (worker, rest string) {
	i := strings.Index(s, "worker ")
	if i < 0 {
		return "", s
	}
	digits := s[i+len("worker "):]
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	if n == 0 {
		return "", s
	}
	return digits[:n], s[:i] + "worker *" + digits[n:]
}

func foldedText(lines []world.Line) string {
	var workers []string
	_, rest := cutWorker(lines[0].Text)
	for _, l := range lines {
		if w, _ := cutWorker(l.Text); !slices.Contains(workers, w) {
			workers = append(workers, w)
		}
	}
	name := "worker " + workers[0]
	if len(workers) > 1 {
		name = fmt.Sprintf("workers %s", strings.Join(workers, ", "))
		rest = strings.Replace(rest, "worker * was", "worker * were", 1)
		rest = strings.Replace(rest, "worker * has", "worker * have", 1)
		rest = strings.Replace(rest, "worker * no longer has", "worker * no longer have", 1)
	}
	if len(workers) > 8 {
		name = fmt.Sprintf("%d workers", len(workers))
	}
	return strings.Replace(rest, "worker *", name, 1)
}

func mark(l world.Line) (word, colour string) {
	switch l.Kind {
	case world.Entry:
		if l.Simulated {
			return "SIMULATED", terminal.Dim
		}
		return "RECORDED", terminal.Cyan
	case world.Reading, world.Called, world.Answer, world.Acted:
		return "SIMULATED", terminal.Dim
	case world.Spoken:
		return "said", terminal.Bold
	case world.Decision:
		return "decided", terminal.Bold
	case world.Sent:
		return "sent", ""
	case world.End:
		switch l.Outcome {
		case "resumed":
			return "RESUMED", terminal.Green
		case "escalated":
			return "ESCALATED", terminal.Red
		}
		return strings.ToUpper(l.Outcome), terminal.Yellow
	case world.Assumed:
		return "assumed", terminal.Yellow
	case world.Ignored:
		return "ignored", terminal.Dim
	case world.Refused, world.Dead: // printed with the faults
	}
	return string(l.Kind), ""
}

func (p *storyPrinter) print(l world.Line) {
	word, colour := mark(l)
	at := l.Time.Format("15:04:05")
	if l.Kind == world.Assumed || l.Time.Year() <= 1 {
		at = strings.Repeat(" ", len(at))
	}
	text, reason := l.Text, l.Reason
	if l.Kind == world.End {
		text, reason = ending(l), ""
	}
	before := p.reason
	p.reason = reason
	if (l.Kind == world.Sent || l.Kind == world.Answer) && strings.Contains(before, reason) {
		reason = ""
	}
	if l.Kind == world.End {
		text = terminal.WithCode(text, l.Code)
	} else {
		reason = terminal.WithCode(reason, l.Code)
	}
	p.Row(at, word, colour, text, reason)
}

// ending is how an incident ended, in one line: its reason and its cost.
func ending(l world.Line) string {
	_, came, _ := strings.Cut(l.Text, " · ")
	if l.Reason == "" {
		return came
	}
	return l.Reason + " · " + came
}

// after prints the limits, the advice and the phase of an incident, after its story.
func (p *storyPrinter) after(g incidentGroup) {
	indent := strings.Repeat(" ", 2+8+2+terminal.MarkWidth)
	in := g.result.Incident
	hang := func(text string, paint func(string) string) {
		if text == "" {
			return
		}
		// What follows a break stands further right, and the line has to have room for that too, or the screen breaks it once more.
		for _, line := range layout.Break(indent+text, p.Width(), len(indent)+2) {
			at := terminal.Indentation(line)
			terminal.Print(p.Out, line[:at]+paint(line[at:]))
		}
	}
	plain := func(s string) string { return s }
	hang(cli.LimitsText(in.Switches, in.Limits), func(s string) string { return p.Paint(terminal.Dim, s) })
	for _, w := range in.WouldHave() {
		hang("would have: "+w, plain)
	}
	if in.Advice != "" {
		hang("what to do: "+in.Advice, plain)
	}
	switch {
	case g.open && g.stopped:
		terminal.Print(p.Out, indent+p.Paint(terminal.Yellow, "STILL OPEN when the replay was interrupted, in phase "+string(in.Phase)))
	case g.open:
		terminal.Print(p.Out, indent+p.Paint(terminal.Red, "NOT ENDED: the incident waits in phase "+string(in.Phase)))
	}
}

// incidentGroup is an incident with its lines.
type incidentGroup struct {
	result world.Result
	open   bool
	// stopped says that somebody interrupted the replay before the incident ended.
	stopped bool
	lines   []world.Line
	// later are lines about the workload after the incident.
	later []world.Line
}

func (g incidentGroup) title() string {
	in := g.result.Incident
	name := in.Policy
	if name == "" {
		name = "none (watched)"
	}
	return fmt.Sprintf("%s · workload %s · %s · policy %s · incident %s", strings.ReplaceAll(string(in.Cause), "_", " "), g.result.Workload, g.result.Where, name, in.ID)
}

// grouped is a story by incidents.
type grouped struct {
	incidents []incidentGroup
	rest      []world.Line
}

// group gives every line to its incident. Lines about a workload before an incident go to its next one.
func group(s *world.Story) grouped {
	var g grouped
	index := map[string]int{}
	for _, r := range s.Ended {
		index[r.Workload+" "+r.ID] = len(g.incidents)
		g.incidents = append(g.incidents, incidentGroup{result: r})
	}
	for _, r := range s.Open {
		index[r.Workload+" "+r.ID] = len(g.incidents)
		g.incidents = append(g.incidents, incidentGroup{result: r, open: true, stopped: !s.Stopped.IsZero()})
	}
	waiting := map[string][]world.Line{}
	for _, l := range s.Lines {
		if l.Routine || l.Shown || l.Kind == world.Assumed {
			continue
		}
		i, ok := index[l.Workload+" "+l.Incident]
		if !ok {
			waiting[l.Workload] = append(waiting[l.Workload], l)
			continue
		}
		if w := waiting[l.Workload]; w != nil {
			g.incidents[i].lines = append(g.incidents[i].lines, w...)
			delete(waiting, l.Workload)
		}
		g.incidents[i].lines = append(g.incidents[i].lines, l)
	}
	for _, l := range s.Lines { // in the order of the story
		w := waiting[l.Workload]
		if w == nil || l.Routine {
			continue
		}
		delete(waiting, l.Workload)
		if i := g.last(l.Workload); i >= 0 {
			g.incidents[i].later = w
			continue
		}
		g.rest = append(g.rest, w...)
	}
	return g
}

// last is the last incident of a workload, or -1.
func (g grouped) last(workload string) int {
	for i := len(g.incidents) - 1; i >= 0; i-- {
		if workload != "" && g.incidents[i].result.Workload == workload {
			return i
		}
	}
	return -1
}

// total is the last line: how everything ended.
func (p *storyPrinter) total(t tally, took time.Duration) {
	ended := 0
	var parts []string
	for _, o := range []string{"resumed", "withdrawn", "released", "escalated", "observed"} {
		if n := t.ends[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
			ended += n
		}
	}
	switch {
	case t.open > 0 && t.interrupted:
		parts = append(parts, p.Paint(terminal.Yellow, fmt.Sprintf("%d still open", t.open)))
	case t.open > 0:
		parts = append(parts, p.Paint(terminal.Red, fmt.Sprintf("%d not ended", t.open)))
	}
	text := p.Paint(terminal.Bold, terminal.Count(ended+t.open, "incident"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if t.faults > 0 {
		text += ", " + p.Paint(terminal.Red, terminal.Count(t.faults, "fault"))
	}
	lasted := fmt.Sprintf("(%s of virtual time in %.1f s)", events.Span(t.virtual), took.Seconds())
	gap := "  "
	if terminal.Columns(text)+len(gap)+len(lasted) > p.Width() {
		gap = "\n"
	}
	terminal.Print(p.Out, text+gap+p.Paint(terminal.Dim, lasted))
}
