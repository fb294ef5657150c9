package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/ledger"
)

const (
	// canaryFor is how long the verb waits for a canary. Most entries take seconds.
	canaryFor = 5 * time.Minute
	// canaryEvery is how often the verb reads the ledger meanwhile.
	canaryEvery = time.Second
)

// canaryFlight is the output of canary --json: the seconds of each stage. A stage that no clock recorded is missing.
type canaryFlight struct {
	ID      string  `json:"id"`
	Project string  `json:"project"`
	Back    bool    `json:"back"`
	Stages  []stage `json:"stages"`
}

type stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

func (d verbs) canaryCommand() *cobra.Command {
	var where deployment.Place
	var asJSON bool
	var watched string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "canary",
		Short: "Send an entry through the production path, and print how long each stage took",
		Long: "Write an entry into the log of a watched project, and wait until the function logevent has recorded it in the ledger. The\n" +
			"entry takes the same path as every log entry that Pitstop reads: Cloud Logging, the sink, the topic, the function. The\n" +
			"verb prints how long each stage took, by the clock of that stage. The exit code is 1 when the entry does not come back.\n\n" +
			"This needs roles/logging.logWriter on the watched project and roles/datastore.viewer.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if lasts <= 0 {
				return cli.Usage("--for %s: it has to be more than 0", lasts)
			}
			if watched != "" {
				if err := cli.CheckProject("--watched", watched); err != nil {
					return err
				}
			}
			l, err := d.Ledger(where)
			if err != nil {
				return err
			}
			if watched == "" {
				if watched, err = watchedBy(c.Context(), l, where.Project); err != nil {
					return err
				}
			}
			f, err := d.flyCanary(c.Context(), l, watched, lasts)
			if err != nil {
				return err
			}
			if asJSON {
				if err := terminal.PrintJSON(c.OutOrStdout(), f); err != nil {
					return err
				}
			} else {
				for _, s := range f.Stages {
					terminal.Print(c.OutOrStdout(), fmt.Sprintf("  %8.3f s  %s", s.Seconds, s.Name))
				}
				if !f.Back {
					terminal.Print(c.OutOrStdout(), "the canary "+f.ID+" of "+watched+" has not come back within "+lasts.String()+
						": check the sink, its writer's grant on the topic log-events, and the log and dead letters of the function logevent")
				}
			}
			if !f.Back {
				return cli.ErrFailed
			}
			return nil
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&watched, "watched", "",
		"the watched project that gets the entry; the default is the deployment's own project, or the only watched one")
	c.Flags().DurationVar(&lasts, "for", canaryFor, "how long to wait for the entry")
	return c
}

// watchedBy is the default project for a canary: the deployment's own, else the only watched one. No sink brings a canary back from a
// project that the deployment does not watch.
func watchedBy(ctx context.Context, l *ledger.Ledger, own string) (string, error) {
	s, err := l.Settings(ctx)
	switch {
	case errors.Is(err, ledger.ErrNotFound), err == nil && len(s.Watched) == 0: // the deployment has not said which
		return own, nil
	case err != nil:
		return "", err
	case slices.Contains(s.Watched, own):
		return own, nil
	case len(s.Watched) == 1:
		return s.Watched[0], nil
	}
	return "", cli.Usage("--watched is missing: the deployment does not watch %s; it watches %s", own, strings.Join(s.Watched, ", "))
}

// flyCanary writes a canary and waits for it.
func (d verbs) flyCanary(ctx context.Context, l *ledger.Ledger, project string, lasts time.Duration) (canaryFlight, error) {
	f := canaryFlight{ID: "operator-" + uuid.NewString(), Project: project, Stages: []stage{}}
	written := d.Now()
	if err := d.Canary.WriteCanary(ctx, project, f.ID, written); err != nil {
		return f, err
	}
	before := written
	passed := func(name string, at time.Time) {
		if !at.IsZero() {
			f.Stages = append(f.Stages, stage{name, at.Sub(before).Seconds()})
			before = at
		}
	}
	passed("until Cloud Logging's API accepted the entry", d.Now())
	before = written
	for d.Now().Sub(written) < lasts {
		looking, end := google.NextQuestion(ctx)
		c, err := l.Canary(looking, project)
		if err := end(err); err != nil {
			return f, err
		}
		if c.ID == f.ID && !c.Returned.IsZero() {
			seen := d.Now()
			passed("from its timestamp until Cloud Logging received it", c.Way.Received)
			passed("from there through the sink to the topic", c.Way.Published)
			passed("from there through the function logevent to the ledger", c.Returned)
			passed("from there to this machine", seen)
			f.Back = true
			f.Stages = append(f.Stages, stage{"in total, from its timestamp to the ledger", c.Returned.Sub(written).Seconds()})
			return f, nil
		}
		if err := d.Sleep(ctx, canaryEvery); err != nil {
			return f, err
		}
	}
	return f, nil
}
