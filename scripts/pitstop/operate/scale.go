package operate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/scaling"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/checkpoint"
)

func (d verbs) scaleCommand() *cobra.Command {
	var where deployment.Place
	var asJSON bool
	var logs []string
	c := &cobra.Command{
		Use:   "scale WORKLOAD...",
		Short: "Compare how fast a training runs on TPUs of different size",
		Long: "Compare how fast a training runs on TPUs of different size: examples a second for each accelerator type and batch, the same\n" +
			"per chip, and the efficiency against the smallest size of the generation. One sentence says what to do next.\n\n" +
			"pitcrew run measures each attempt, with --examples-per-step, --scale-from or --examples-pattern, and keeps the last 50 beside\n" +
			"the checkpoints. scale reads them there. Name several workloads, or directories such as gs://BUCKET/run, where each size\n" +
			"trained in a directory of its own.\n\n" +
			"--logs reads the progress lines of the crews from your own log entries instead, as gcloud logging read --format=json writes\n" +
			"them. TPU names then leave out all other TPUs. - is standard input.\n\n" +
			"A workload needs roles/datastore.viewer, and each directory roles/storage.objectViewer. Directories and --logs need no --project.",
		RunE: func(c *cobra.Command, args []string) error {
			var all []scaling.Attempt
			var err error
			faults := 0
			if len(logs) > 0 {
				all, faults, err = loggedAttempts(c.Context(), logs, args, c.InOrStdin(), c.ErrOrStderr())
			} else {
				all, err = d.attempts(c.Context(), where, args)
			}
			if err != nil {
				return err
			}
			table := scaling.Compare(all)
			if asJSON {
				if err := terminal.PrintJSON(c.OutOrStdout(), table); err != nil {
					return err
				}
			} else {
				printScaling(table, c.OutOrStdout())
			}
			if faults > 0 {
				return cli.ErrFailed
			}
			return nil
		},
	}
	where.Flags(c)
	c.Flags().StringArrayVar(&logs, "logs", nil, "a `FILE` of log entries to read instead; repeat it for each")
	cli.NamesFile(c.Flags(), "logs")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// attempts are those that crews have kept beside the checkpoints of workloads, or in directories.
func (d verbs) attempts(ctx context.Context, where deployment.Place, args []string) (all []scaling.Attempt, err error) {
	isDirectory := func(arg string) bool { return strings.Contains(arg, "://") }
	if len(args) == 0 {
		return nil, cli.Usage("scale takes a workload, as in llama-8b, or a checkpoint directory, as in gs://BUCKET/run; or --logs FILE")
	}
	if err := cli.CheckWorkloads(slices.DeleteFunc(slices.Clone(args), isDirectory)); err != nil {
		return nil, err
	}
	for _, arg := range args {
		of, board := arg, peers.Board{Store: d.Checkpoints, Directory: arg}
		switch {
		case strings.HasPrefix(arg, "file://"):
			board.Store = checkpoint.NewFiles("/", d.Now)
		case !isDirectory(arg):
			_, w, err := d.Workload(ctx, where, arg)
			if err != nil {
				return nil, err
			}
			if w.Directory == "" {
				return nil, cli.Usage("the checkpoint directory of %s is not known: set the metadata key %s on the TPU", w.ID, events.MetadataCheckpointDir)
			}
			of, board.Directory = w.Name, w.Directory
		}
		kept, err := board.Speeds(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range kept {
			all = append(all, scaling.Attempt{Of: of, Measured: k.Measured, ExamplesPerSecond: k.ExamplesPerSecond})
		}
	}
	return all, nil
}

// logged names an attempt on one TPU, which has a progress line every five minutes. In a new directory attempts count from 1 again,
// so the hardware and the batch are part of the name.
type logged struct {
	project, zone, node, accelerator string
	attempt, slices                  int
	batch                            int64
}

// loggedAttempts reads attempts from progress lines in log entries: the last line of each attempt, which has its mean.
func loggedAttempts(ctx context.Context, files, nodes []string, in io.Reader, errOut io.Writer) (all []scaling.Attempt, faults int, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	bar := terminal.NewProgress(files, nil, errOut)
	source := entries.NewPool(ctx, entries.ReadAll).Stream(ctx, entries.FilesOf(files, in, bar), bar, entries.RunsAtOnce(1))
	type told struct {
		at time.Time
		scaling.Attempt
	}
	last := map[logged]told{}
	var order []logged
	f := entries.Faults{ErrOut: errOut}
	read := 0
	for r := source.Next(ctx); r != nil; r = source.Next(ctx) {
		for _, x := range r.All {
			if x.Err != nil {
				f.Add(x.Err)
				continue
			}
			read++
			e := x.Entry
			if e.Kind != events.KindCrew || e.Ignored != "" || e.Crew.Measured == nil || len(nodes) > 0 && !slices.Contains(nodes, e.Crew.Node) {
				continue
			}
			m := *e.Crew.Measured
			k := logged{e.Subject.Project, e.Subject.Zone, e.Subject.Node, m.Accelerator, e.Crew.Attempt, m.Slices, m.GlobalBatch}
			was, ok := last[k]
			if !ok {
				order = append(order, k)
			}
			if !ok || !e.Time.Before(was.at) {
				last[k] = told{e.Time, scaling.Attempt{Of: e.Crew.Node, Measured: m, ExamplesPerSecond: e.Crew.ExamplesPerSecond}}
			}
		}
	}
	bar.Done()
	f.PrintRest()
	switch {
	case ctx.Err() != nil:
		return nil, f.N, ctx.Err()
	case f.Unusable:
		return nil, f.N, cli.ErrUnusable // without that file the comparison would be wrong
	case read == 0 && f.N == 0:
		entries.PrintNone(errOut)
	}
	for _, k := range order {
		all = append(all, last[k].Attempt)
	}
	return all, f.N, nil
}

// printScaling prints the comparison for people.
func printScaling(t scaling.Table, out io.Writer) {
	p := terminal.NewPrinter(out, false)
	if len(t.Rows) == 0 {
		terminal.Print(out, "no attempt with a known speed: pitcrew run measures it with --examples-per-step N, --scale-from TYPE or --examples-pattern EXPRESSION")
	} else {
		several := slices.ContainsFunc(t.Rows, func(r scaling.Row) bool { return !slices.Equal(r.Of, t.Rows[0].Of) || len(r.Of) > 1 })
		rows := [][]string{{"TPU", "chips", "examples/s", "per chip", "efficiency", "global batch", "per core", "attempts", "steps"}}
		if several {
			rows[0] = append(rows[0], "of")
		}
		for _, r := range t.Rows {
			row := []string{
				r.Shape, events.Number(int64(r.Chips)), scaling.Figure(r.ExamplesPerSecond), scaling.Figure(r.PerChip), scaling.Percent(r.Efficiency),
				"-", "-", events.Number(int64(r.Attempts)), "-",
			}
			if r.GlobalBatch > 0 {
				row[5], row[6] = events.Number(r.GlobalBatch), scaling.Figure(r.CoreBatch)
			}
			if r.Steps > 0 {
				row[8] = events.Number(r.Steps)
			}
			if several {
				row = append(row, strings.Join(r.Of, ", "))
			}
			rows = append(rows, row)
		}
		p.Table("examples a second by size", 0, 5, rows)
		terminal.Print(out, "advice: "+t.Advice)
	}
	if t.LeftOut > 0 {
		terminal.Print(out, fmt.Sprintf("%s left out: the accelerator type is not known (--accelerator names it), or its figures cannot be those of a training", terminal.Numbered(t.LeftOut, "attempt")))
	}
}
