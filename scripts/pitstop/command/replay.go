package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/scenario"
	"pitstop.internal/scripts/trail"
)

type replayOptions struct {
	asJSON bool
	policy string
	allow  allowing
	fleet  []string
	// babysitters are the principals of older scripts.
	babysitters []string
	speed       float64
	emulator    string
	verbose     bool
	comparing
}

func replayCommand() *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay [FILE...]",
		Short: "Play recorded events through the whole pipeline on this machine",
		Long: "Play recorded log entries through every function, an embedded Pub/Sub and a simulated Cloud TPU API, in virtual time, and\n" +
			"print for each incident what was seen, what was decided and why, what was asked and how it ended.\n\n" +
			"Without a file it plays the recorded incidents of events/testdata under the policies that ship with them. Files hold what\n" +
			"gcloud logging read --format=json writes; - is standard input. Your own entries are only watched unless --policy allows more.\n" +
			"It ends with 0 when every incident ended, with 1 when one did not or an entry could not be read.",
		RunE: func(c *cobra.Command, files []string) error {
			if err := o.excludes(c, "speed", "pubsub-emulator", "verbose"); err != nil {
				return err
			}
			return replay(c.Context(), files, o, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object per line")
	f.StringVar(&o.policy, "policy", "", "for your own files: a preset (watch, spot, reserved), or FILE, or FILE:NAME")
	o.allow.flag(c)
	f.StringArrayVar(&o.fleet, "fleet", nil, "for your own files: the TPUs, as gcloud compute tpus tpu-vm list --format=json lists them, or tpus list of\n"+
		"legacy nodes, or queued-resources list; once for each file")
	f.StringArrayVar(&o.babysitters, "babysitter", nil, "for your own files: the principal of an older script, in whose place Pitstop works; once for each")
	f.Float64Var(&o.speed, "speed", 0, "seconds of virtual time per second of real time; 0 does not wait")
	f.StringVar(&o.emulator, "pubsub-emulator", "", "carry the messages through Google's Pub/Sub emulator at HOST:PORT")
	f.BoolVar(&o.verbose, "verbose", false, "print what the functions log, on standard error")
	o.flags(c)
	return c
}

// play is one story to be told.
type play struct {
	name     string
	scenario scenario.Scenario
	records  []scenario.Record
	policy   []byte
	want     *scenario.Want
}

func replay(ctx context.Context, files []string, o replayOptions, in io.Reader, out, errOut io.Writer) error {
	if o.speed < 0 {
		return usage("--speed %v: it cannot be negative", o.speed)
	}
	if o.against != "" && slices.Contains(files, "-") {
		return usage("--against reads the entries twice; name a file in the place of -")
	}
	if slices.Contains(o.babysitters, "") {
		return usage("--babysitter names a principal, as the log has it: name@PROJECT.iam.gserviceaccount.com")
	}
	plays, faults, err := plays(files, o, in, errOut)
	if err != nil {
		return err
	}
	if len(plays) == 0 {
		if faults > 0 {
			return errFailed // what was wrong is told
		}
		noEntries(errOut)
		return nil
	}
	allow, err := o.allow.switches()
	if err != nil {
		return err
	}
	if o.trail || o.against != "" {
		return o.compared(ctx, plays, files, out, errOut)
	}
	address, err := scenario.Serve(ctx)
	if err != nil {
		return fmt.Errorf("the functions framework: %w", err)
	}
	began := time.Now()
	total := tally{ends: map[string]int{}, faults: faults}
	p := newPrinter(out, o.asJSON)
	for _, play := range plays {
		opts := scenario.Options{Policy: play.policy, Allow: allow, Framework: address, Emulator: o.emulator}
		if o.verbose {
			opts.Log = errOut
		}
		if o.speed > 0 {
			opts.Pace = o.speed
			opts.Told = p.line
		}
		if !o.asJSON && play.want != nil {
			p.heading(play.name, play.scenario.Title)
		}
		story, err := scenario.Run(ctx, play.name, play.scenario, play.records, opts)
		if err != nil {
			return err
		}
		switch {
		case o.speed > 0 && !o.asJSON: // its lines are told
			p.ends(story)
		case !o.asJSON:
			p.story(story, play.want != nil)
		case o.speed == 0:
			for _, l := range story.Lines {
				p.line(l)
			}
		}
		total.add(story)
		for _, f := range story.Faults {
			tell(errOut, "pitstop: "+f)
		}
	}
	if !o.asJSON {
		p.total(total, time.Since(began))
	}
	if total.open > 0 || total.faults > 0 {
		return errFailed
	}
	return nil
}

// compared prints the trails of stories, or compares them with those of another build.
func (o replayOptions) compared(ctx context.Context, plays []play, files []string, out, errOut io.Writer) error {
	allow, err := o.allow.switches()
	if err != nil {
		return err
	}
	run := func(ctx context.Context, add func(*trail.Trail) error) error {
		for _, play := range plays {
			story, err := scenario.Run(ctx, play.name, play.scenario, play.records, scenario.Options{Policy: play.policy, Allow: allow, Trail: true})
			if err != nil {
				return err
			}
			if err := add(story.Trail); err != nil {
				return err
			}
		}
		return nil
	}
	if o.trail {
		return run(ctx, func(t *trail.Trail) error { return trail.Write(out, *t) })
	}
	p := &againstPrinter{newPrinter(out, o.asJSON), "record"}
	return o.compare(ctx, o.args(files), p, &oneAtATime{w: errOut}, run)
}

// args are the arguments with which another build replays the same.
func (o replayOptions) args(files []string) []string {
	args := append([]string{"replay"}, o.allow.args()...)
	if o.policy != "" {
		args = append(args, "--policy="+o.policy)
	}
	for _, name := range o.fleet {
		args = append(args, "--fleet="+name)
	}
	for _, name := range o.babysitters {
		args = append(args, "--babysitter="+name)
	}
	return append(append(args, "--"), files...)
}

// tally counts what came of all stories.
type tally struct {
	ends         map[string]int
	open, faults int
	virtual      time.Duration
}

func (t *tally) add(s *scenario.Story) {
	for _, r := range s.Ended {
		t.ends[string(r.Outcome)]++
	}
	t.open += len(s.Open)
	t.faults += len(s.Faults)
	timeless := func(l scenario.Line) bool { return l.Time.IsZero() } // an entry that is only noted may give none
	if timed := slices.DeleteFunc(slices.Clone(s.Lines), timeless); len(timed) > 0 {
		t.virtual += timed[len(timed)-1].Time.Sub(timed[0].Time)
	}
}

// plays finds what is to be played: files of the user's, or the recorded incidents.
func plays(files []string, o replayOptions, in io.Reader, errOut io.Writer) (found []play, faults int, err error) {
	if len(files) == 0 {
		if o.policy != "" || len(o.fleet) > 0 || len(o.babysitters) > 0 {
			return nil, 0, usage("--policy and --fleet go with files of your own, and so does --babysitter; the recorded incidents have theirs")
		}
		found, err = recorded()
		return found, 0, err
	}
	p, err := readPolicy(o.policy)
	if err != nil {
		return nil, 0, err
	}
	var listings [][]scenario.SliceConfig
	for _, name := range o.fleet {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, 0, usage("--fleet: %w", err)
		}
		known, err := scenario.Fleet(raw)
		if err != nil {
			return nil, 0, usage("--fleet %s: %w", name, err)
		}
		listings = append(listings, known)
	}
	h := readRecords(files, in, errOut)
	if len(h.records) == 0 {
		return nil, h.faults, nil
	}
	s, err := scenario.Guess(h.records, scenario.Fleets(listings...), o.babysitters, p.label)
	if err != nil {
		return nil, 0, usage("%w", err)
	}
	return []play{{name: "your entries", scenario: s, records: h.records, policy: p.file}}, h.faults, nil
}

// recorded loads the recorded incidents of the repository that this is called in.
func recorded() ([]play, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(root, "events", "testdata", "*", "scenario.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(dirs)
	var found []play
	for _, d := range dirs {
		r, err := scenario.Load(filepath.Dir(d))
		if err != nil {
			return nil, err
		}
		found = append(found, play{name: r.Name, scenario: r.Scenario, records: r.Records, policy: r.Policy, want: &r.Want})
	}
	if len(found) == 0 {
		return nil, errors.New("there are no recorded incidents in " + root + "; name files of your own")
	}
	return found, nil
}

// moduleRoot is the folder of the module that the command is called in.
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
			return "", usage("the recorded incidents are in Pitstop's repository; call this there, or name files of your own")
		}
		dir = up
	}
}

// asLine is the JSON form of a line.
func asLine(l scenario.Line) ([]byte, error) { return json.Marshal(l) }
