package logs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
)

// writtenFilter is the object that filter --json prints for each sink.
type writtenFilter struct {
	Name   string `json:"name"`
	Topic  string `json:"topic"`
	Filter string `json:"filter"`
	About  string `json:"about"`
}

func filterCommand() *cobra.Command {
	var name, project string
	var asJSON bool
	c := &cobra.Command{
		Use:   "filter",
		Short: "Print the sinks' filter and the line that fetches your own past with it",
		Long: "Print the filter of every log sink, and the gcloud line that fetches your own past with them for replay, explain and report.\n" +
			"The last sinks are not deployed: Pitstop only notes their entries.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			sinks := events.Sinks(events.Accounts{})
			if name != "" {
				var err error
				if sinks, err = named(sinks, name); err != nil {
					return err
				}
			}
			return printFilter(c.OutOrStdout(), sinks, name != "", project, asJSON)
		},
	}
	c.Flags().StringVar(&name, "sink", "", "print the filter of this sink alone, as its text")
	c.Flags().StringVar(&project, "project", "", "the project whose log is read; gcloud's own by default")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per sink: name, topic, filter, about")
	return c
}

func named(sinks []events.Sink, name string) ([]events.Sink, error) {
	var names []string
	for _, s := range sinks {
		if s.Name == name {
			return []events.Sink{s}, nil
		}
		names = append(names, s.Name)
	}
	return nil, cli.Usage("there is no sink %q; there are %s", name, strings.Join(names, ", "))
}

func printFilter(out io.Writer, sinks []events.Sink, alone bool, project string, asJSON bool) error {
	switch {
	case asJSON:
		for _, s := range sinks {
			if err := terminal.PrintJSON(out, writtenFilter(s)); err != nil {
				return err
			}
		}
		return nil
	case alone:
		terminal.Print(out, sinks[0].Filter)
		return nil
	}
	for _, s := range sinks {
		goes := "to the topic " + s.Topic
		if s.Topic == "" {
			goes = "not deployed, only noted"
		}
		terminal.Print(out, fmt.Sprintf("# %s: %s; %s", s.Name, s.About, goes))
	}
	if project != "" {
		project = "--project=" + quoted(project) + " "
	}
	terminal.Print(out, "gcloud logging read "+quoted(events.Whole(sinks))+" "+project+"--format=json --freshness=400d --order=asc > entries.json")
	return nil
}

// quoted is a word as a shell takes it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
