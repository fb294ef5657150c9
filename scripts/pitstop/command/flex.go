package main

import (
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/flex"
)

func flexCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "flex", Short: "Plan TPUs with flex-start on GKE, or check a node pool for them",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(flexPlanCommand(), flexCheckCommand())
	return c
}

func flexPlanCommand() *cobra.Command {
	var o flex.Options
	var nodesOnly, onlyYAML bool
	c := &cobra.Command{
		Use:   "plan [flags] [-- COMMAND...]",
		Short: "Print the node pool, the Job or JobSet, and the clean-up of a training with flex-start",
		Long: "Print what it takes to train on TPUs with flex-start on GKE, as a script to read and run: the command that makes the node pool,\n" +
			"with as many machines as the topology needs; the Job, with a Service if the slice has several machines, or the JobSet; and the\n" +
			"clean-up. It asks nothing and changes nothing. Words in capital letters are yours to replace, or to name by a flag.\n\n" +
			"COMMAND is the training's; it runs under pitcrew, which has to be in the image and resumes it from its checkpoints.",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash != 0 && len(args) > 0 {
				return usage("flex plan takes no %q; the training's command stands after --, as in -- python3 train.py", args[0])
			}
			if nodesOnly && onlyYAML {
				return usage("--nodes-only prints no manifest and --yaml nothing else: name one of the two")
			}
			o.Command = args
			if len(args) == 0 {
				o.Command = []string{"python3", "train.py"}
			}
			plan, err := flex.Make(o)
			if err != nil {
				return usageError{err}
			}
			text := plan.Manifest
			if !onlyYAML {
				text = plan.Text(nodesOnly)
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.Machine, "machine", "", "the machine `TYPE`, as in ct6e-standard-4t")
	f.StringVar(&o.Topology, "topology", "", "the `TOPOLOGY` of a slice, as in 4x4; by default that of one machine")
	f.StringVar(&o.Cluster, "cluster", "CLUSTER", "the `NAME` of the cluster")
	f.StringVar(&o.Location, "location", "LOCATION", "the cluster's `REGION`, or its zone")
	f.StringVar(&o.Zones, "zones", "ZONE", "the `ZONES` in which the machines may be, separated by commas")
	f.StringVar(&o.Pool, "pool", "tpu-flex", "the `NAME` of the node pool")
	f.StringVar(&o.Name, "name", "training", "the `NAME` of the Job or JobSet")
	f.StringVar(&o.Namespace, "namespace", "", "the `NAMESPACE` in which it trains; by default that of kubectl")
	f.IntVar(&o.Slices, "slices", 1, "train on `N` slices together (Multislice), in a JobSet")
	f.BoolVar(&o.JobSet, "jobset", false, "make a JobSet, which begins again when a machine is lost")
	f.StringVar(&o.Image, "image", "IMAGE", "the `IMAGE`, with pitcrew and your training in it")
	f.StringVar(&o.ServiceAccount, "service-account", "", "the Kubernetes service account `NAME` that may use the bucket")
	f.StringVar(&o.Directory, "checkpoint-dir", "gs://BUCKET/run", "the `URI` of the checkpoints, in a bucket")
	f.BoolVar(&nodesOnly, "nodes-only", false, "print the node pool alone")
	f.BoolVar(&onlyYAML, "yaml", false, "print the manifest alone, as for kubectl apply -f -")
	return c
}

// checkedPool is the object that flex check --json prints.
type checkedPool struct {
	Pool     string         `json:"pool"`
	Machine  string         `json:"machine,omitzero"`
	Topology string         `json:"topology,omitzero"`
	Chips    int            `json:"chips,omitzero"`
	Nodes    int            `json:"nodes,omitzero"`
	Findings []flex.Finding `json:"findings"`
	Notes    []string       `json:"notes"`
}

func flexCheckCommand() *cobra.Command {
	var topology string
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a node pool for flex-start",
		Long: "Say what is wrong with a node pool for TPUs with flex-start, and the way out. FILE holds what gcloud container node-pools\n" +
			"describe --format=json prints; - is standard input. --topology is the one that you want; without it the pool's own counts.\n\n" +
			"Exit codes: 0 when the pool is sound, 1 when something is wrong with it, 2 when the file holds no node pool.",
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) != 1 {
				return usage("flex check takes one file, not %d; - is standard input", len(files))
			}
			return checkPool(files[0], topology, c.InOrStdin(), c.OutOrStdout(), asJSON)
		},
	}
	c.Flags().StringVar(&topology, "topology", "", "the `TOPOLOGY` that a slice should have, as in 4x4")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func checkPool(name, topology string, in io.Reader, out io.Writer, asJSON bool) error {
	raw, err := readPool(name, in)
	if err != nil {
		return usageError{err}
	}
	pool, err := flex.ReadPool(raw)
	if err != nil {
		return usage("%s: %w", name, err)
	}
	c, err := flex.Check(pool, topology)
	if err != nil {
		return usage("%s: %w", name, err)
	}
	if asJSON {
		o := checkedPool{c.Pool, c.Slice.Machine.Type, c.Slice.Topology, c.Slice.Chips, c.Slice.Nodes, append([]flex.Finding{}, c.Findings...), append([]string{}, c.Notes...)}
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		tell(out, string(text))
	} else {
		tellPool(c, out)
	}
	if len(c.Findings) > 0 {
		return errFailed
	}
	return nil
}

func readPool(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(in, flex.MaxPoolBytes+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(f, flex.MaxPoolBytes+1))
}

func tellPool(c flex.Checked, out io.Writer) {
	for _, f := range c.Findings {
		tell(out, fmt.Sprintf("%s: %s is %s, and should be %s: %s", printable(c.Pool), f.Field, printable(f.Got), printable(f.Want), printable(f.Why)))
		tell(out, "  the way out: "+printable(f.Fix))
	}
	if s := c.Slice; len(c.Findings) == 0 {
		tell(out, fmt.Sprintf("%s: no fault; %s with topology %s, %s of %s each", printable(c.Pool), s.Machine.Type, s.Topology,
			count(s.Nodes, "machine"), count(s.Machine.Chips, "chip")))
	}
	for _, note := range c.Notes {
		tell(out, printable(c.Pool)+": note: "+printable(note))
	}
}
