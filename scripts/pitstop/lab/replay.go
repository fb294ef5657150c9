package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/policy"
)

type replayOptions struct {
	asJSON bool
	policy string
	allow  cli.AllowFlag
	fleet  []string
	// babysitters are the principals of older scripts.
	babysitters []string
	assume      []string
	speed       float64
	verbose     bool
	wire        bool
	list        bool
	summary     bool
	// now is the clock by which progress is shown.
	now func() time.Time
	comparing
}

func replayCommand() *cobra.Command {
	o := replayOptions{now: time.Now}
	c := &cobra.Command{
		Use:   "replay [FILE... | NAME...]",
		Short: "Play log entries through the whole pipeline on this machine",
		Long: "Play log entries through every function, an embedded Pub/Sub and a simulated Cloud TPU API, in virtual time. Print for each\n" +
			"incident the evidence, each decision and its reason, the calls, and the end. A table of all incidents, their cost and the\n" +
			"assumptions comes last.\n\n" +
			"A FILE holds what gcloud logging read --format=json writes; - is standard input. Pitstop only watches your own entries,\n" +
			"unless --policy allows more. A NAME is one of the recorded incidents that ship with Pitstop, each with its own policy;\n" +
			"--list prints them, and without a file or name all of them are played.\n\n" +
			"Your entries do not describe everything. The simulated crew of a slice does what the crew's recorded lines say. Where the\n" +
			"record is silent, it goes on as the record showed it last: after an exit it fails again in the same way, otherwise it trains.\n" +
			"--assume crew=none takes the crew away, crew=fails lets every later attempt fail, crew=recovers lets every later one train.\n\n" +
			"Ctrl-C ends a replay early: it prints all that is known so far and exits with 130. Exit code 0 means that every incident ended,\n" +
			"1 that one did not or that an entry could not be read.",
		RunE: func(c *cobra.Command, files []string) error {
			if err := o.excludes(c, "speed", "verbose", "list", "summary"); err != nil {
				return err
			}
			if o.list && (len(files) > 0 || c.Flags().NFlag() > 1) {
				return cli.Usage("--list goes alone")
			}
			return replayRecords(c.Context(), files, o, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object per line")
	f.BoolVar(&o.list, "list", false, "print the names of the recorded incidents, one line each")
	f.BoolVar(&o.summary, "summary", false, "print the table alone, without the timelines")
	f.StringVar(&o.policy, "policy", "", "for your own files: a preset (watch, spot, reserved), or FILE, or FILE:NAME")
	o.allow.AddTo(c)
	f.StringArrayVar(&o.fleet, "fleet", nil, "for your own files: your TPUs. Either JSON from gcloud compute tpus tpu-vm list, tpus list or\n"+
		"queued-resources list, once for each file, or one YAML file as simulate takes it")
	f.StringArrayVar(&o.babysitters, "babysitter", nil,
		"for your own files: the principal of an older script that Pitstop replaces; once for each")
	f.StringArrayVar(&o.assume, "assume", nil,
		"for your own files: what crews do where the record is silent: crew=none, crew=fails or crew=recovers")
	f.Float64Var(&o.speed, "speed", 0, "seconds of virtual time per second of real time; 0 does not wait")
	f.BoolVar(&o.wire, "wire", false, wireHelp+". The functions framework serves the functions then")
	f.BoolVar(&o.verbose, "verbose", false, "print the logs of the functions on standard error")
	o.flags(c)
	return c
}

// play is one story to be played.
type play struct {
	name     string
	scenario world.Scenario
	records  []logfile.Record
	policy   []byte
	want     *replay.Want
}

// check refuses options that contradict each other.
func (o replayOptions) check(files []string) error {
	switch {
	case o.speed < 0:
		return cli.Usage("--speed %v: it cannot be negative", o.speed)
	case o.against != "" && slices.Contains(files, "-"):
		return cli.Usage("--against reads the entries twice; name a file instead of -")
	case slices.Contains(o.babysitters, ""):
		return cli.Usage("--babysitter names a principal as it stands in the log: name@PROJECT.iam.gserviceaccount.com")
	case o.summary && o.asJSON:
		return cli.Usage("--summary is for people; --json prints every line")
	case o.summary && o.speed > 0:
		return cli.Usage("--summary prints no lines, and --speed prints each at its time: leave one out")
	}
	return nil
}

func replayRecords(ctx context.Context, files []string, o replayOptions, in io.Reader, out, errOut io.Writer) error {
	if err := o.check(files); err != nil {
		return err
	}
	allow, err := o.allow.Switches()
	if err != nil {
		return err
	}
	if o.list {
		plays, err := recorded()
		slices.SortStableFunc(plays, headline)
		if err == nil {
			listNames(out, plays)
		}
		return err
	}
	m := terminal.NewMeter(errOut, o.now)
	plays, faults, err := plays(ctx, files, o, m, in, errOut)
	m.Clear()
	if err != nil {
		return err
	}
	if len(plays) == 0 {
		if faults > 0 {
			return cli.ErrFailed // each fault is printed already
		}
		entries.PrintNone(errOut)
		return nil
	}
	if o.trail || o.against != "" {
		return o.compared(ctx, plays, files, out, errOut)
	}
	address := "" // calls the functions in process
	if o.wire {
		if address, err = world.Serve(ctx); err != nil {
			return fmt.Errorf("the functions framework: %w", err)
		}
	}
	debug.SetGCPercent(400) // a replay makes much garbage, and needs little memory beside its record
	r := replaying{
		o: o, allow: allow, address: address, m: terminal.NewMeter(errOut, o.now), p: newStoryPrinter(out, o.asJSON), errOut: errOut,
		total: tally{ends: map[string]int{}, faults: faults}, summary: summary{recorded: plays[0].want != nil},
	}
	began := o.now()
	for i, one := range plays {
		if err := r.play(ctx, one, i, len(plays)); err != nil {
			return err
		}
		if r.total.interrupted {
			break
		}
	}
	r.m.Clear()
	if !o.asJSON {
		r.p.table(&r.summary)
		r.p.assumptions(r.summary.assumed)
		r.p.total(r.total, o.now().Sub(began))
	}
	switch {
	case r.total.interrupted:
		terminal.Print(errOut, "pitstop: interrupted "+r.until+"; the result covers the time until then")
		return cli.ErrInterrupted
	case r.total.open > 0 || r.total.faults > 0:
		return cli.ErrFailed
	}
	return nil
}

// replaying is a replay on its way.
type replaying struct {
	o       replayOptions
	allow   *policy.Switches
	address string
	m       *terminal.Meter
	p       *storyPrinter
	errOut  io.Writer
	total   tally
	summary summary
	// until is where it was interrupted.
	until string
}

// play plays one story and prints it.
func (r *replaying) play(ctx context.Context, one play, i, plays int) error {
	shipped, timelines := one.want != nil, !r.o.asJSON && !r.o.summary
	live := timelines && !shipped && r.o.speed == 0
	if shipped && timelines {
		r.m.Clear()
		r.p.Heading(one.name, one.scenario.Title)
	}
	story, err := replay.Run(ctx, one.name, one.scenario, one.records, r.options(one, live, i, plays))
	r.m.Clear()
	switch {
	case story == nil && ctx.Err() == nil:
		return err
	case story == nil && !shipped:
		return unplayed(len(one.records), r.errOut)
	case story == nil: // what was played before has its table
		r.total.interrupted, r.until = true, fmt.Sprintf("before scenario %d of %d, %s", i+1, plays, one.name)
		return nil
	}
	if r.summary.interrupted = err != nil; err != nil {
		r.total.interrupted, r.until = true, until(story, shipped, i, plays)
	}
	switch {
	case r.o.speed > 0 && timelines: // its lines are printed already
		r.p.ends(story)
	case timelines:
		r.p.story(story, shipped, live)
	case r.o.asJSON && r.o.speed == 0:
		for _, l := range story.Lines {
			r.p.line(l)
		}
	}
	r.total.add(story)
	r.summary.add(story)
	f := entries.Faults{ErrOut: r.errOut}
	for _, text := range story.Faults {
		f.Add(errors.New(text))
	}
	f.PrintRest()
	return nil
}

// options are how a story is played. A live one prints incidents as they end.
func (r *replaying) options(one play, live bool, i, plays int) replay.Options {
	opts := replay.Options{Options: world.Options{Policy: one.policy, Allow: r.allow, Framework: r.address, Wire: r.o.wire}}
	if r.o.verbose {
		opts.Log = r.errOut
	}
	switch {
	case r.o.speed > 0:
		opts.Pace, opts.Hooks.Told = r.o.speed, r.p.line
	case live:
		opts.Hooks.Ended = func(res world.Result, lines []world.Line) {
			r.m.Clear()
			r.p.ended(res, lines)
		}
	}
	if r.o.speed == 0 {
		opts.Passed = func(at replay.Passage) { showPassage(r.m, at, one.want != nil, i, plays, len(r.summary.rows)) }
	}
	return opts
}

// showPassage shows how far a replay is: in the story with this number, after so many incidents of the stories before it.
func showPassage(m *terminal.Meter, at replay.Passage, shipped bool, i, plays, before int) {
	if shipped {
		incidents := before + at.Incidents
		m.Show((float64(i)+at.Share())/float64(plays), []string{
			fmt.Sprintf("scenario %d of %d", i+1, plays), terminal.Count(incidents, "incident"),
		}, float64(i), "scenarios")
		return
	}
	if at.Read < at.Entries {
		m.Show(0, []string{progressOf(at.Read, at.Entries) + " put in order"}, 0, "")
		return
	}
	m.Show(at.Share(), []string{
		progressOf(at.Played, at.Entries),
		timeOf(at.Now.Sub(at.From), at.To.Sub(at.From)), terminal.Count(at.Incidents, "incident"),
	}, float64(at.Played), "entries")
}

func progressOf(n, of int) string {
	return events.Number(int64(n)) + " of " + events.Number(int64(of)) + " entries"
}

// timeOf is how much of the time of the record has passed.
func timeOf(passed, of time.Duration) string {
	if of < 48*time.Hour {
		return fmt.Sprintf("%.1f of %.1f hours", passed.Hours(), of.Hours())
	}
	return fmt.Sprintf("%.1f of %.1f days", passed.Hours()/24, of.Hours()/24)
}

// until says where a replay was interrupted.
func until(s *world.Story, shipped bool, i, plays int) string {
	if shipped {
		return fmt.Sprintf("in scenario %d of %d, %s", i+1, plays, s.Name)
	}
	return "at " + s.Stopped.UTC().Format("2006-01-02 15:04") + ", after " + progressOf(s.Played, s.Entries)
}

// compared prints the trails of stories, or compares them with those of another build.
func (o replayOptions) compared(ctx context.Context, plays []play, files []string, out, errOut io.Writer) error {
	allow, err := o.allow.Switches()
	if err != nil {
		return err
	}
	errOut = &oneAtATime{w: errOut}
	run := func(ctx context.Context, add func(*trail.Trail) error) error {
		m := terminal.NewMeter(errOut, o.now)
		defer m.Clear()
		incidents := 0
		for i, play := range plays {
			story, err := replay.Run(ctx, play.name, play.scenario, play.records, replay.Options{
				Options: world.Options{Policy: play.policy, Allow: allow, Trail: true, Wire: o.wire},
				Passed:  func(at replay.Passage) { showPassage(m, at, play.want != nil, i, len(plays), incidents) },
			})
			if err != nil {
				return err
			}
			incidents += len(story.Ended) + len(story.Open)
			if err := add(story.Trail); err != nil {
				return err
			}
		}
		return nil
	}
	if o.trail {
		return run(ctx, func(t *trail.Trail) error { return trail.Write(out, *t) })
	}
	p := &againstPrinter{terminal.NewPrinter(out, o.asJSON), "record"}
	return o.compare(ctx, o.args(files), p, errOut, run)
}

// args are the arguments with which another build replays the same entries.
func (o replayOptions) args(files []string) []string {
	args := append([]string{"replay"}, o.allow.Args()...)
	if o.policy != "" {
		args = append(args, "--policy="+o.policy)
	}
	for _, name := range o.fleet {
		args = append(args, "--fleet="+name)
	}
	for _, name := range o.babysitters {
		args = append(args, "--babysitter="+name)
	}
	for _, what := range o.assume {
		args = append(args, "--assume="+what)
	}
	return append(append(args, "--"), files...)
}

// tally counts the results of all stories.
type tally struct {
	ends         map[string]int
	open, faults int
	virtual      time.Duration
	interrupted  bool
}

func (t *tally) add(s *world.Story) {
	for _, r := range s.Ended {
		t.ends[string(r.Outcome)]++
	}
	t.open += len(s.Open)
	t.faults += len(s.Faults)
	timeless := func(l world.Line) bool { return l.Time.IsZero() } // an entry that is only noted may give none
	if timed := slices.DeleteFunc(slices.Clone(s.Lines), timeless); len(timed) > 0 {
		t.virtual += timed[len(timed)-1].Time.Sub(timed[0].Time)
	}
}

// plays finds the stories to play: the user's files, or recorded incidents.
func plays(
	ctx context.Context, args []string, o replayOptions, m *terminal.Meter, in io.Reader, errOut io.Writer,
) (found []play, faults int, err error) {
	names, files := sorted(args)
	switch {
	case len(names) > 0 && len(files) > 0:
		return nil, 0, cli.Usage("%s is a recorded incident and %s a file: name either recorded incidents or files", names[0], files[0])
	case len(files) == 0:
		if o.policy != "" || len(o.fleet)+len(o.babysitters)+len(o.assume) > 0 {
			return nil, 0, cli.Usage("--policy, --fleet, --babysitter and --assume go with files of your own; the recorded incidents have theirs")
		}
		found, err = recorded(names...)
		if !o.trail && o.against == "" {
			slices.SortStableFunc(found, headline)
		}
		return found, 0, err
	}
	p, err := cli.ReadPolicy(o.policy)
	if err != nil {
		return nil, 0, err
	}
	given := replay.Given{Babysitters: o.babysitters, Policy: p.Label}
	if given.Crew, err = o.crew(); err != nil {
		return nil, 0, err
	}
	if given.World, err = readFleet(o.fleet); err != nil {
		return nil, 0, err
	}
	h, err := readRecords(ctx, files, m, in, errOut)
	if err != nil {
		return nil, 0, err
	}
	if h.Unusable {
		return nil, 0, cli.ErrUnusable
	}
	if len(h.records) == 0 {
		return nil, h.N, nil
	}
	given.Read = func(n int) { m.Show(0, []string{progressOf(n, len(h.records)) + " looked through for TPUs"}, 0, "") }
	s, err := replay.Guess(ctx, h.records, given)
	if ctx.Err() != nil {
		m.Clear()
		return nil, 0, unplayed(len(h.records), errOut)
	}
	if err != nil {
		return nil, 0, cli.Usage("%w", err)
	}
	return []play{{name: "your entries", scenario: s, records: h.records, policy: p.File}}, h.N, nil
}

// crew is what --assume says of crews.
func (o replayOptions) crew() (crew world.Crew, err error) {
	for _, what := range o.assume {
		name, value, _ := strings.Cut(what, "=")
		switch {
		case name != "crew" || !slices.Contains(world.Crews(), value):
			return "", cli.Usage("--assume %.60q: it takes crew=%s", what, strings.Join(world.Crews(), ", crew="))
		case crew != "" && crew != world.Crew(value):
			return "", cli.Usage("--assume crew=%s and crew=%s contradict each other", crew, value)
		}
		crew = world.Crew(value)
	}
	return crew, nil
}

// sorted parts the names of recorded incidents from files. A name has neither a dot nor a slash; a file of that name comes first.
func sorted(args []string) (names, files []string) {
	for _, arg := range args {
		if _, err := os.Stat(arg); err == nil || arg == "-" || strings.ContainsAny(arg, `./\`) {
			files = append(files, arg)
		} else {
			names = append(names, arg)
		}
	}
	return names, files
}

// headline puts the preemption first, for which most people come.
func headline(a, b play) int {
	rank := func(p play) int {
		if p.name == "preemption" {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

// recorded loads recorded incidents from the repository around the present folder: those of these names, or all of them.
func recorded(names ...string) ([]play, error) {
	root, err := moduleRoot()
	if err != nil && len(names) > 0 {
		return nil, cli.Usage("%q: no such file, and %w", names[0], err)
	}
	if err != nil {
		return nil, err
	}
	known, err := recordedNames(root)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, errors.New("there are no recorded incidents in " + root + "; name files of your own")
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			near, ok := strings.CutPrefix(policy.Nearest(name, known), "did you mean ")
			if ok {
				near = "did you mean " + near + " "
			} else {
				near = ""
			}
			return nil, cli.Usage("%q is neither a file nor a recorded incident; %sreplay --list names them", name, near)
		}
	}
	var found []play
	for _, name := range known {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		r, err := replay.Load(filepath.Join(root, "events", "testdata", name))
		if err != nil {
			return nil, err
		}
		found = append(found, play{name: r.Name, scenario: r.Scenario, records: r.Records, policy: r.Policy, want: &r.Want})
	}
	return found, nil
}

// recordedNames are the names of the recorded incidents in the repository, in the order of their paths.
func recordedNames(root string) (known []string, err error) {
	files, err := filepath.Glob(filepath.Join(root, "events", "testdata", "*", "scenario.yaml"))
	slices.Sort(files) // another build plays them in the same order
	for _, name := range files {
		known = append(known, filepath.Base(filepath.Dir(name)))
	}
	return known, err
}

// moduleRoot is the folder of Pitstop's repository, at or above the present folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "events", "testdata")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", cli.Usage("the recorded incidents are in Pitstop's repository: call this there, or name files of your own")
		}
		dir = up
	}
}

// asLine is the JSON form of a line.
func asLine(l world.Line) ([]byte, error) { return json.Marshal(l) }
