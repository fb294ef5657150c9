package lab

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/reason"
)

// Teller tells what happens in a demo, as it happens.
type Teller struct {
	demo *RunningDemo
	p    *storyPrinter
	// Pages is the link to the pages about the demo; empty for none.
	Pages string

	mu sync.Mutex
	// next is the place in the story of the first line that is not told yet.
	next int
	// steps is when it tells next how far the trainings are.
	steps time.Time
	// asked are the incidents that have asked for an approval.
	asked map[string]bool
}

// NewTeller tells what happens in a demo.
func NewTeller(d *RunningDemo, out io.Writer) *Teller {
	t := &Teller{demo: d, p: newStoryPrinter(out, false), asked: map[string]bool{}, steps: d.Now().Add(stepsEvery)}
	if d.Story.Name == demoProject { // what came before is no news
		t.next = len(d.Lines(0))
	}
	return t
}

// stepsEvery is how often the demo tells how far the trainings are, in its own time.
const stepsEvery = 15 * time.Minute

// settled is how old a line is before it is told: by then it is known whom it concerns.
const settled = time.Second

// Further tells what has happened since the last time.
func (t *Teller) Further() {
	t.mu.Lock()
	defer t.mu.Unlock()
	present := t.demo.Now()
	var lines []world.Line
	for _, l := range t.demo.Lines(t.next) {
		if present.Sub(l.Time) < settled {
			break
		}
		t.next++
		if !l.Routine && l.Kind != world.Assumed {
			lines = append(lines, t.whose(l))
		}
	}
	for len(lines) > 0 { // what a person can do then is said right under the line
		n := 1 + slices.IndexFunc(lines, func(l world.Line) bool { return l.Kind == world.End || t.asks(l) })
		if n == 0 {
			n = len(lines)
		}
		t.p.further(lines[:n])
		t.after(lines[n-1])
		lines = lines[n:]
	}
	if !present.Before(t.steps) {
		t.steps = present.Add(stepsEvery)
		t.TellSteps(present)
	}
}

// whose puts the workload before the text of a line that does not name it.
func (t *Teller) whose(l world.Line) world.Line {
	l.Text, l.Reason, l.Decision = ForDemo(l.Text), ForDemo(l.Reason), ForDemo(l.Decision)
	name := strings.TrimPrefix(l.Workload, t.demo.Project+"/")
	switch {
	case l.Workload == "" || strings.Contains(l.Text, name):
	case l.Kind == world.End: // the text is printed after the reason
		l.Reason = name + ": " + l.Reason
	default:
		l.Text = name + ": " + l.Text
	}
	return l
}

// asks reports whether an incident asks for the first time.
func (t *Teller) asks(l world.Line) bool {
	return l.Kind == world.Decision && l.Code == string(reason.CodePolicyAsk) && !t.asked[l.Incident]
}

// after says what a person can do after a line.
func (t *Teller) after(l world.Line) {
	hint := func(text string) { t.p.Row("        ", "", "", t.p.Paint(terminal.Dim, text), "") }
	switch {
	case t.asks(l):
		t.asked[l.Incident] = true
		hint("to say yes: " + CalledAs() + " approve " + l.Incident + " --demo")
	case l.Kind == world.End:
		if l.Decision != "" {
			t.p.Row("        ", "you", terminal.Yellow, l.Decision, "")
		}
		hint("its whole story: " + CalledAs() + " incident " + l.Incident + " --demo")
	}
}

// deployedCall is a call that the functions and the verbs advise, as for a deployment.
var deployedCall = regexp.MustCompile(
	`(^|[\s("])pitstop ((?:incident|pause|resume|approve|cancel|retry|attach|detach|redrive|check|drill) [^\s;,:)"]+(?: --policy [^\s;,:)"]+)?|status|incidents)`)

// ForDemo has the calls in a text be for the demo, as its reader makes them. A text that has --demo is for it already.
func ForDemo(text string) string {
	if strings.Contains(text, " --"+demoFlag) {
		return text
	}
	return deployedCall.ReplaceAllString(text, "${1}"+strings.ReplaceAll(CalledAs(), "$", "$$")+" $2 --"+demoFlag)
}

// TellSteps tells how far the trainings are.
func (t *Teller) TellSteps(at time.Time) {
	var parts []string
	for _, c := range t.demo.Fleet {
		training := t.demo.Trainings[c.Name]
		if training == nil || c.Crew.Absent {
			continue
		}
		at := " "
		if _, runs := training.Running(); !runs || training.Hangs() {
			at = " stands at "
		}
		parts = append(parts, c.WorkloadName()+at+events.Number(training.LastStep()))
	}
	if parts != nil {
		t.p.Row(at.Format("15:04:05"), "steps", terminal.Dim, t.p.Paint(terminal.Dim, strings.Join(parts, " · ")), "")
	}
}

// say tells something that is not part of the story.
func (t *Teller) say(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range lines {
		terminal.Print(t.p.Out, l)
	}
}

// passing says how fast the clock is.
func passing(speed float64) string {
	if speed == time.Minute.Seconds() {
		return "A minute passes"
	}
	return fmt.Sprintf("%g seconds pass", speed)
}

// Greet says what this is, and what to try.
func (t *Teller) Greet(scenario string) {
	d, p, call := t.demo, t.p, CalledAs()
	lines := []string{
		p.Paint(terminal.Bold, "Pitstop on this machine") + ": its functions, and a simulated Google Cloud with TPUs in training. Nothing here is real.",
		passing(d.Speed) + " each second; --speed changes that. Ctrl-C ends the demo.", "",
	}
	for _, c := range d.Fleet {
		kind := c.Accelerator
		switch {
		case c.Spot && c.Legacy:
			kind += " spot legacy node"
		case c.Spot:
			kind += " spot"
		case c.Reservation != "":
			kind += " reserved"
		}
		if c.QueuedResource != "" {
			kind += " in queued resource " + c.QueuedResource
		}
		lines = append(lines, fmt.Sprintf("  %-12s  %s", c.Name, kind+", "+c.Zone))
	}
	if scenario != "" {
		lines = append(lines, "", "The recorded incident "+p.Paint(terminal.Bold, scenario)+" begins in ten minutes of its time: "+d.Title)
	}
	t.say(append(lines, "", p.Paint(terminal.Bold, "Break something")+", in another terminal:")...)
	spot := d.Fleet[0]
	t.command(call+" demo preempt "+spot.Name, "Google takes it back")
	t.command(call+" demo stockout "+spot.Zone, "its zone is full")
	t.command(call+" demo --help", "all that can break")
	t.say(p.Paint(terminal.Bold, "And look") + ", as on call; every command for a project takes --demo:")
	t.command(call+" status --demo", "every workload")
	t.command(call+" check "+spot.WorkloadName()+" --demo", "would it come back?")
	t.command(call+" --help", "the other commands")
	if t.Pages != "" {
		t.say(p.Paint(terminal.Bold, "See it") + " in the browser:")
		t.command(t.Pages, "")
	}
	t.say(p.Paint(terminal.Bold, "gcloud") + " sees this cloud in a terminal with:")
	t.command("export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU="+d.URL+"/", "")
	t.command("export CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING="+d.URL+"/", "")
	t.command("export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT="+d.Project, "")
	t.command("gcloud compute tpus tpu-vm list --zone="+spot.Zone, "")
	t.say("The functions framework serves " + p.Paint(terminal.Bold, "each function") + "; functions/README.md has a log entry to push:")
	t.command(d.URL+"/HandleLogEvent", "")
	t.say("", "Below, "+p.Paint(terminal.Bold, "decided")+" and "+p.Paint(terminal.Bold, "sent")+" are Pitstop's, and "+p.Paint(terminal.Bold, "said")+" is a person's. "+
		p.Paint(terminal.Bold, "SIMULATED")+" is what happens around it: in the cloud, and to the trainings.", "")
}

// command prints a command with its purpose: on one line where both fit, else the purpose first. It never breaks the command, because
// people copy it.
func (t *Teller) command(text, does string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := "  " + text
	if does != "" {
		beside := fmt.Sprintf("  %-*s  %s", len(CalledAs())+27, text, t.p.Paint(terminal.Dim, does))
		if terminal.Columns(beside) <= layout.Width() {
			line = beside
		} else {
			terminal.Print(t.p.Out, "  "+t.p.Paint(terminal.Dim, does+":"))
		}
	}
	if s, ok := t.p.Out.(*terminal.Screen); ok {
		s.PrintUnbroken(line)
		return
	}
	terminal.Print(t.p.Out, line)
}
