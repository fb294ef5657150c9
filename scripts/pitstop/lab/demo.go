package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/console"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	simulated "pitstop.internal/scripts/sim/cloud"
	"pitstop.internal/scripts/sim/demo"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
)

type demoOptions struct {
	listen   string
	speed    float64
	scenario string
	dir      string
}

// fastestDemo is the greatest --speed of the demo: nobody can follow more than an hour a second.
const fastestDemo = 3600

// verbsOf is a command with the verbs for a deployment.
type verbsOf func(deployment.Deployment) *cobra.Command

func demoCommand(verbs verbsOf) *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run Pitstop live on this machine, against a simulated Google Cloud, and break something",
		Long: "Run Pitstop live on this machine, until Ctrl-C: its functions, an embedded Pub/Sub, the ledger in memory, and a simulated Google\n" +
			"Cloud with a small fleet in training. Nothing is real, nothing costs money, and nothing is kept without --dir. It tells what happens as it\n" +
			"happens, and what to try. A minute passes each second; --speed changes that.\n\n" +
			"The commands below break something, from another terminal. Each command for a project works on the demo too, with --demo in the place of --project: status, check, incident, approve, drill and all others.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.NoCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return runDemo(c.Context(), o, verbs, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8090", "where the cloud listens, for gcloud: HOST:PORT on this machine; port 0 takes a free one")
	f.Float64Var(&o.speed, "speed", 60, "how many seconds pass in the demo each second")
	f.StringVar(&o.scenario, "scenario", "", "play this recorded incident, live, in the place of the demo's own fleet; replay --list names them")
	f.StringVar(&o.dir, "dir", "", "a folder that keeps the ledger and the fleet from one demo to the next; without it nothing is kept")
	c.AddCommand(actCommands(nil)...)
	return c
}

// actCommands are the commands that break something in a demo: in this process, or else in that of the demo which runs.
func actCommands(d *demo.Demo) []*cobra.Command {
	about := func(use, short, long string, do func(c *cobra.Command, name string) error) *cobra.Command {
		name, what, _ := strings.Cut(use, " ")
		return &cobra.Command{
			Use: use, Short: short, Long: long,
			Args: func(_ *cobra.Command, args []string) error {
				if len(args) != 1 {
					return cli.Usage("demo %s takes one %s; got %d", name, strings.ToLower(what), len(args))
				}
				return nil
			},
			RunE: func(c *cobra.Command, args []string) error {
				if d == nil {
					return callDemo(c, args)
				}
				at := d.Now()
				if err := do(c, args[0]); err != nil {
					return cli.WrongUsage(err)
				}
				terminal.Print(c.OutOrStdout(), fmt.Sprintf("%s  %s %s: done. The demo's terminal tells what follows; so does %s status --demo",
					at.UTC().Format("15:04:05"), name, args[0], CalledAs()))
				return nil
			},
		}
	}
	span := func(c *cobra.Command, into *time.Duration, name string, value time.Duration, text string) *cobra.Command {
		c.Flags().DurationVar(into, name, value, text)
		check := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			if *into < 0 {
				return cli.Usage("--%s %s: it cannot be negative", name, *into)
			}
			return check(c, args)
		}
		return c
	}
	var in, repaired, full, held, down time.Duration
	var of string
	part := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&of, "of", "", "a part of the zone alone: spot, on_demand, reserved, an accelerator type, or both in quotes")
		return c
	}
	var code, times int
	crash := about("crash SLICE", "End the training of a slice with an exit code",
		"End the training of a slice with an exit code. Its crew starts it again, as often as its budget allows. --times ends the next attempts, too.",
		func(c *cobra.Command, name string) error {
			switch {
			case code < 1 || code > 255:
				return fmt.Errorf("--exit %d: the exit code of a failure is from 1 to 255", code)
			case times < 1 || times > 100:
				return fmt.Errorf("--times %d: it has to be from 1 to 100", times)
			}
			return d.Crash(c.Context(), name, code, times)
		})
	crash.Flags().IntVar(&code, "exit", 1, "the exit code")
	crash.Flags().IntVar(&times, "times", 1, "how many attempts in a row end like that")
	return []*cobra.Command{
		about("preempt SLICE", "Have Google take a Spot slice back", "Have Google take a Spot slice back.",
			func(c *cobra.Command, name string) error { return d.Preempt(c.Context(), name) }),
		span(about("host-error SLICE", "Break a host of a slice", "Break a host of a slice. Google repairs it after --for; with 0 it never does.",
			func(c *cobra.Command, name string) error { return d.HostError(c.Context(), name, repaired) }),
			&repaired, "for", 15*time.Minute, "how long Google needs; 0 is for good"),
		span(about("maintenance SLICE", "Announce maintenance of a slice, or begin it at once",
			"Announce maintenance of a slice that begins after --in. With 0 it begins at once, unannounced. Google maintains the slices of a\n"+
				"Multislice together.",
			func(c *cobra.Command, name string) error { return d.Maintain(c.Context(), name, in) }),
			&in, "in", 2*time.Hour, "when it begins; 0 is at once"),
		about("withdraw SLICE", "Withdraw the announced maintenance of a slice", "Withdraw the announced maintenance of a slice.",
			func(c *cobra.Command, name string) error { return d.Withdraw(c.Context(), name) }),
		about("hang SLICE", "Have the training of a slice make no more steps",
			"Have the training of a slice make no more steps. Its process goes on, and says nothing.",
			func(c *cobra.Command, name string) error { return d.Hang(c.Context(), name) }),
		crash,
		about("delete SLICE", "Delete a slice as its owner does",
			"Delete a slice as its owner does. A queued resource goes with its slice. Pitstop leaves to its owner what its owner deletes.",
			func(c *cobra.Command, name string) error { return d.Delete(c.Context(), name) }),
		about("create SLICE", "Create a slice of the fleet that is not there, as its owner does",
			"Create a slice of the fleet that is not there, as its owner does.",
			func(c *cobra.Command, name string) error { return d.Create(c.Context(), name) }),
		part(span(about("stockout ZONE", "Leave a zone no room for new slices", "Leave a zone no room for new slices. The slices that are there stay.",
			func(c *cobra.Command, name string) error { return d.Stockout(c.Context(), name, of, full) }),
			&full, "for", 0, "for how long; 0 is until demo room")),
		part(about("room ZONE", "Give a zone room again", "Give a zone room for every slice again.",
			func(c *cobra.Command, name string) error { return d.Room(c.Context(), name, of) })),
		span(about("hold SERVICE", "Have Pub/Sub deliver nothing for a while",
			"Have a service hold back all that it is given, for a while. The service is "+strings.Join(demo.Holdable, ", ")+".",
			func(c *cobra.Command, name string) error { return d.Hold(c.Context(), name, held) }),
			&held, "for", 10*time.Minute, "for how long; 0 has it deliver again"),
		span(about("kill FUNCTION", "Kill a function, and let it not start again for a while",
			"Kill a function, and let it not start again for a while. Pub/Sub keeps its messages.\nThe functions are "+strings.Join(demo.Functions(), ", ")+".",
			func(c *cobra.Command, name string) error { return d.Kill(c.Context(), name, down) }),
			&down, "for", 5*time.Minute, "for how long; 0 lets it start again"),
	}
}

// RunningDemo is a demo in this process.
type RunningDemo struct {
	*demo.Demo
	// URL is where its cloud is served, and token the password of the calls to it.
	URL, Token string
	Speed      float64
	// Grants are those of the folder in which the demo began.
	Grants func() ([]deployment.Grant, error)
	Verbs  verbsOf
}

// GrantsFrom are grants that were read.
func GrantsFrom(all []deployment.Grant, err error) func() ([]deployment.Grant, error) {
	return func() ([]deployment.Grant, error) { return all, err }
}

// startDemo founds a demo as the options say.
func startDemo(ctx context.Context, o demoOptions, verbs verbsOf, framework, url string) (*RunningDemo, error) {
	c := demo.Config{Start: time.Now(), Framework: framework, Token: rand.Text(), Dir: o.dir, CalledAs: CalledAs()}
	if o.scenario != "" {
		s, err := scenarioOf(o.scenario)
		if err != nil {
			return nil, err
		}
		c.Scenario = &s
	}
	d, err := demo.New(ctx, c)
	if err != nil {
		return nil, cli.WrongUsage(err)
	}
	return &RunningDemo{d, url, c.Token, o.speed, GrantsFrom(deployment.ReadGrants()), verbs}, nil
}

// scenarioOf loads a recorded incident.
func scenarioOf(name string) (replay.Recorded, error) {
	root, err := moduleRoot()
	if err != nil {
		return replay.Recorded{}, cli.Usage("--scenario %s: the recorded incidents are in Pitstop's repository: call this there", name)
	}
	known, err := recordedNames(root)
	if err != nil {
		return replay.Recorded{}, err
	}
	if !slices.Contains(known, name) {
		near := policy.Nearest(name, known)
		if !strings.HasPrefix(near, "did you mean ") {
			near = CalledAs() + " replay --list names them"
		}
		return replay.Recorded{}, cli.Usage("--scenario %q: there is no recorded incident of that name; %s", name, near)
	}
	return replay.Load(filepath.Join(root, "events", "testdata", name))
}

// runDemo runs a demo until the context ends.
func runDemo(ctx context.Context, o demoOptions, verbs verbsOf, out io.Writer) error {
	if !(o.speed >= slowest && o.speed <= fastestDemo) {
		return cli.Usage("--speed %v is not between %v and %v", o.speed, slowest, fastestDemo)
	}
	if o.scenario != "" && o.dir != "" {
		return cli.Usage("--dir keeps the demo's own fleet; leave out --dir or --scenario")
	}
	only, err := OnlyDemo(ctx)
	if err != nil {
		return err
	}
	defer only.Close() //nolint:errcheck // nothing was written into it
	l, err := simulated.Listen(ctx, o.listen)
	if err != nil {
		return cli.Usage("--listen: %w", err)
	}
	defer l.Close() //nolint:errcheck // the server has closed it, unless it never began
	framework, err := world.Serve(ctx)
	if err != nil {
		return fmt.Errorf("the functions framework: %w", err)
	}
	d, err := startDemo(ctx, o, verbs, framework, "http://"+l.Addr().String())
	if err != nil {
		return err
	}
	ctx, end := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP) // as Ctrl-C does, so that the note of where it runs goes away
	defer end()
	s := simulated.Server(d)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(l)
		end()
	}()
	noted, err := NoteDemo(DemoPlace{URL: d.URL, Token: d.Token, Process: os.Getpid()})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	pages, err := console.Listen(ctx, "127.0.0.1:0", console.Site(d.deployment(), d.Ledger, deployment.Place{Project: demoProject}).Handler())
	if err != nil {
		return errors.Join(err, noted(), s.Close())
	}
	shown := make(chan error, 1)
	go func() { shown <- pages.Serve(ctx) }()
	t := NewTeller(d, out)
	t.Pages = pages.Link
	t.Greet(o.scenario)
	d.Run(ctx, d.Speed, t.Further)
	err = errors.Join(noted(), s.Close())
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve %s: %w", d.URL, failed))
	}
	end() // the pages are served until then
	if err = errors.Join(err, <-shown, d.Close()); err != nil {
		return err
	}
	left := "nothing of it is left"
	if o.dir != "" {
		left = "its ledger and its fleet are in " + o.dir
	}
	terminal.Print(out, "the demo has ended; "+left)
	return nil
}

// CalledAs is how the command was called, for people who call it again.
func CalledAs() string {
	if as := os.Getenv("PITSTOP_CALLED_AS"); as != "" {
		return as
	}
	return "pitstop"
}
