package lab

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/trail"
)

// comparing are the options of a command that can be compared with another build.
type comparing struct {
	against string
	trail   bool
}

func (o *comparing) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.against, "against", "", "another build, BINARY or the DIR of a checkout: run both and tell where they differ first, for each workload; exit\n"+
		"code 1 when they differ in more than wording")
	c.Flags().BoolVar(&o.trail, "trail", false, "for programs: print what --against compares, one JSON object per run")
}

// excludes refuses flags that make no sense beside a comparison.
func (o comparing) excludes(c *cobra.Command, others ...string) error {
	asked := "against"
	switch {
	case c.Flags().Changed("against") && o.against == "":
		return cli.Usage("--against names another build: a binary or a checkout")
	case o.against != "":
		others = append(others, "trail")
	case o.trail:
		asked, others = "trail", append(others, "json")
	default:
		return nil
	}
	for _, other := range others {
		if c.Flags().Changed(other) {
			return cli.Usage("--%s compares whole runs; leave out --%s", asked, other)
		}
	}
	return nil
}

// CommandPath is the package of the command, in a checkout.
const CommandPath = "scripts/pitstop/command"

// otherBuild returns the other build's binary, which it builds from a checkout, and what removes it when it is no longer needed.
func otherBuild(ctx context.Context, name string, errOut io.Writer) (binary string, remove func(), err error) {
	remove = func() {}
	info, err := os.Stat(name)
	if err != nil {
		return "", remove, cli.Usage("--against: %w", err)
	}
	if name, err = filepath.Abs(name); err != nil {
		return "", remove, cli.Usage("--against: %w", err)
	}
	if !info.IsDir() {
		// The launcher builds the checkout in which it is called, which is this one.
		if b, err := buildinfo.ReadFile(name); err == nil && strings.HasSuffix(b.Path, "/scripts/pitstop") {
			return "", remove, cli.Usage("--against %s: this only builds the command and runs it; name the checkout, or what go build ./%s makes", name, CommandPath)
		}
		if info.Mode()&0o111 == 0 {
			return "", remove, cli.Usage("--against %s: it is not executable", name)
		}
		return name, remove, nil
	}
	mod, err := os.ReadFile(filepath.Join(name, "go.mod"))
	if err != nil || !bytes.HasPrefix(mod, []byte("module pitstop.internal\n")) {
		return "", remove, cli.Usage("--against %s: it is no checkout of Pitstop", name)
	}
	dir, err := os.MkdirTemp("", "pitstop-against-")
	if err != nil {
		return "", remove, err
	}
	remove = func() { _ = os.RemoveAll(dir) } //nolint:errcheck // it is in the folder for temporary files
	terminal.Print(errOut, "pitstop: building "+name)
	binary = filepath.Join(dir, "pitstop")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, "./"+CommandPath) //nolint:gosec // what the user names
	build.Dir, build.Stdout, build.Stderr = name, errOut, errOut
	if err := build.Run(); err != nil {
		remove()
		return "", func() {}, fmt.Errorf("%s cannot be built: %w", name, err)
	}
	return binary, remove, nil
}

// besides is how many of the processors each build gets when two run beside each other.
func besides() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// compare runs another build with these arguments beside this one, whose runs are added as they end.
func (o comparing) compare(ctx context.Context, args []string, p *againstPrinter, errOut io.Writer, run func(ctx context.Context, add func(*trail.Trail) error) error) error {
	binary, remove, err := otherBuild(ctx, o.against, errOut)
	defer remove()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := exec.CommandContext(ctx, binary, slices.Insert(args, 1, "--trail")...) //nolint:gosec // what the user names
	c.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", besides()))
	c.WaitDelay = time.Second // a script may leave a process behind that holds its output open
	said := &relay{out: errOut}
	c.Stderr = said
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return cli.Usage("--against %s: %w", o.against, err)
	}
	comparison := trail.NewComparison(trail.NewReader(bufio.NewReader(out)), p.divergence)
	if p.AsJSON {
		comparison.Differs = func(d trail.Difference) { p.object(d) }
	}
	err = run(ctx, func(t *trail.Trail) error { return comparison.Add(*t) })
	var summary trail.Summary
	if err == nil {
		summary, err = comparison.End()
	}
	if err != nil && !errors.Is(err, trail.ErrEnded) {
		stop() // nobody reads the rest of its trail
	}
	ended := c.Wait()
	switch exit := new(exec.ExitError); {
	case errors.Is(err, trail.ErrUnknown):
		return cli.Usage("--against %s cannot be compared: %w", o.against, err)
	case err != nil && !errors.Is(err, trail.ErrEnded):
		return err
	case errors.As(ended, &exit) && exit.ExitCode() == cli.ExitUsage:
		return cli.Usage("--against %s cannot be compared; it says: %s", o.against, said.line)
	case ended != nil:
		return fmt.Errorf("--against %s: %w; it says: %s", o.against, ended, said.line)
	case err != nil:
		return fmt.Errorf("--against %s: %w", o.against, err)
	}
	p.summary(summary)
	if summary.DifferingWorkloads > 0 {
		return cli.ErrFailed
	}
	return nil
}

// relay passes on what the other build says to people, line by line, and keeps the last line.
type relay struct {
	out  io.Writer
	rest []byte
	line string
}

// oneAtATime takes what two builds say at the same time.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *oneAtATime) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func (r *relay) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	for {
		line, rest, ok := bytes.Cut(r.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		r.rest, r.line = rest, strings.TrimPrefix(terminal.Printable(string(line)), "pitstop: ")
		terminal.Print(r.out, "pitstop: the other build: "+r.line)
	}
}

// againstPrinter tells in what two builds differ.
type againstPrinter struct {
	*terminal.Printer
	// what names a run: a seed or a record.
	what string
}

// divergence tells of one workload.
func (p *againstPrinter) divergence(d trail.Divergence) {
	if p.AsJSON {
		p.object(d)
		return
	}
	where := d.Run
	if d.Days == 1 {
		where += ", 1 day"
	} else if d.Days > 0 {
		where += fmt.Sprintf(", %g days", d.Days)
	}
	if d.Workload != "" {
		where += " · " + d.Workload
	}
	if !d.At.IsZero() {
		where += " · " + d.At.Format("Mon Jan 2 15:04:05, 2006")
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, terminal.Printable(where))+" · "+p.Paint(terminal.Red, string(d.Kind)))
	for _, s := range d.Before {
		p.side("both", p.Paint(terminal.Dim, said(s)))
	}
	switch {
	case d.Kind == trail.Rule:
		p.side("this build", brokenText(d.ThisBroke))
		p.side("other build", brokenText(d.OtherBroke))
	case d.Kind == trail.Document:
		for i, path := range d.Paths {
			if i == mostPaths {
				p.side("", fmt.Sprintf("and %s more; --json has all", terminal.Count(len(d.Paths)-i, "place")))
				break
			}
			p.side("document", path.Path+": this build "+value(path.This)+", other build "+value(path.Other))
		}
	case d.Kind == trail.Time:
		p.side("this build", said(*d.This))
		p.side("other build", said(*d.Other))
	default:
		p.side("this build", stepText(d.This, d.Other))
		p.side("other build", stepText(d.Other, d.This))
	}
	terminal.Print(p.Out, "")
}

// mostPaths is how many places of a document people get.
const mostPaths = 5

func (p *againstPrinter) side(who, text string) {
	terminal.Print(p.Out, fmt.Sprintf("  %-11s  %s", who, shortText(terminal.Printable(text), p.Width())))
}

// shortText cuts a text after that many bytes.
func shortText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}

func (p *againstPrinter) object(v any) {
	if raw, err := json.Marshal(v, json.Deterministic(true)); err == nil {
		terminal.Print(p.Out, string(raw))
	}
}

// stepText says what a build did where the builds parted; one that goes on later did nothing then.
func stepText(s, other *trail.Step) string {
	switch {
	case s == nil:
		return "nothing more"
	case other != nil && s.At.After(other.At):
		return "nothing then; next: " + said(*s)
	}
	return said(*s)
}

// atFormat is a time to the millisecond: builds may differ by less than a second.
const atFormat = "Jan 2 15:04:05.000"

// said is a step in one line.
func said(s trail.Step) string {
	var parts []string
	add := func(label, v string) {
		if v != "" {
			parts = append(parts, strings.TrimSpace(label+" "+v))
		}
	}
	switch s.Kind {
	case trail.Call:
		add("", s.Method)
		add("of", s.Resource)
		add("as", s.Accelerator)
		add("for", s.Action)
	case trail.Request:
		add("", strings.TrimSuffix(strings.TrimPrefix(s.Method, "pitstop."), ".v1"))
		add("to", s.Action)
		add("", s.Slice)
	default: // an end
		add("", s.Outcome)
		add("by", s.ConfirmedBy)
		add("", strings.ReplaceAll(s.Cause, "_", " "))
		add("", s.Incident)
		add("opened", s.Opened.Format(atFormat))
		if !s.Ended.Equal(s.At) {
			add("ended", s.Ended.Format(atFormat))
		}
		if s.Revision > 1 {
			add("revision", fmt.Sprint(s.Revision))
		}
	}
	if s.Epoch > 0 {
		add("epoch", fmt.Sprint(s.Epoch))
	}
	if s.Code != "" {
		add("", "["+s.Code+"]")
	}
	line := s.At.Format(atFormat) + "  " + strings.Join(parts, " ")
	if s.Reason != "" {
		line += ": " + s.Reason
	}
	return line
}

func brokenText(b *trail.Broken) string {
	if b == nil {
		return "does not break the rule"
	}
	return "breaks " + b.Rule + ": " + b.Text
}

func value(v []byte) string {
	if len(v) == 0 {
		return "nothing"
	}
	return shortText(string(v), 50)
}

// summary counts the differences by kind, and says in the last line whether there are any.
func (p *againstPrinter) summary(s trail.Summary) {
	if p.AsJSON {
		p.object(s)
		return
	}
	if len(s.Kinds) > 0 {
		t := tabwriter.NewWriter(p.Out, 0, 0, 3, ' ', 0)
		_, _ = fmt.Fprintf(t, "difference\tworkloads\t%ss\n", p.what) //nolint:errcheck // Flush tells
		for _, k := range trail.Kinds() {
			if n, ok := s.Kinds[k]; ok {
				_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", meaningOf[k], events.Number(int64(n.Workloads)), events.Number(int64(n.Runs))) //nolint:errcheck // Flush tells
			}
		}
		if err := t.Flush(); err == nil {
			terminal.Print(p.Out, "")
		}
	}
	if s.DifferingWorkloads > 0 {
		p.effects(s.Effects)
	}
	text := terminal.Count(s.Runs, p.what) + ", " + terminal.Count(s.Workloads, "workload") + ": "
	if s.DifferingWorkloads == 0 {
		terminal.Print(p.Out, p.Paint(terminal.Green, text+"the same"))
		return
	}
	terminal.Print(p.Out, p.Paint(terminal.Red, fmt.Sprintf("%s%s in %s differ", text, events.Number(int64(s.DifferingWorkloads)), terminal.Count(s.DifferingRuns, p.what))))
}

// effects counts the differences in effect, gives an example of each kind, and says what such a comparison can tell.
func (p *againstPrinter) effects(e trail.Effects) {
	all := countOf(e.Calls, "accepted call") + " and " + countOf(e.Incidents, "ended incident")
	if len(e.Kinds) == 0 {
		terminal.Print(p.Out, fmt.Sprintf("In effect both do the same: %s, within %.0f minutes.\n", all, trail.Near.Minutes()))
		return
	}
	t := tabwriter.NewWriter(p.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(t, "difference in effect\tcount\tworkloads\t%ss\tfirst in\n", p.what) //nolint:errcheck // Flush tells
	for _, k := range trail.EffectKinds() {
		if n, ok := e.Kinds[k]; ok {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", effectOf[k], events.Number(int64(n.Differences)), events.Number(int64(n.Workloads)), events.Number(int64(n.Runs)), events.Number(int64(n.First))) //nolint:errcheck // Flush tells
		}
	}
	if err := t.Flush(); err != nil {
		return
	}
	terminal.Print(p.Out, "")
	for _, k := range trail.EffectKinds() {
		if n, ok := e.Kinds[k]; ok {
			terminal.Print(p.Out, terminal.Printable("The first "+string(k)+": "+n.Example.Run+" · "+n.Example.Workload))
			p.side("this build", alone(n.Example.This))
			p.side("other build", alone(n.Example.Other))
		}
	}
	terminal.Print(p.Out, "")
	terminal.Print(p.Out, fmt.Sprintf("This compares %s with those of the other build, within %.0f minutes and in any order. It leaves out epochs, requests, "+
		"wording and documents, and an incident that is still open.", all, trail.Near.Minutes()))
	terminal.Print(p.Out, "Faults follow what a build asks. So after the first difference of a "+p.what+" the builds may meet other faults, and a later one need not "+
		"be their own.\n")
}

func alone(s *trail.Step) string {
	if s == nil {
		return "nothing of the kind"
	}
	return said(*s)
}

// effectOf says what each kind of difference in effect is.
var effectOf = map[trail.Kind]string{
	trail.Call:     "call: one build alone makes it",
	trail.Incident: "incident: one build alone has it",
	trail.End:      "end: an incident ends in another way",
	trail.Cause:    "cause: an incident has another one",
	trail.Time:     "time: the same, earlier or later",
	trail.Refused:  "refused: a call that one build alone makes in vain",
}

// meaningOf says what each kind of difference is.
var meaningOf = map[trail.Kind]string{
	trail.Rule:     "violation: one build alone breaks a rule",
	trail.Call:     "call: another one, or none",
	trail.Request:  "request: another one, or none",
	trail.End:      "end: an incident ends in another way",
	trail.Cause:    "cause: an incident has another one",
	trail.Time:     "time: the same, earlier or later",
	trail.Document: "document: another one is left",
	trail.Wording:  "wording: other words, not counted as different",
	trail.Schema:   "schema: the documents have another form and are not compared, nor counted as different",
}
