package operate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/api/container/v1"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/flex"
	"pitstop.internal/scripts/pitstop/terminal"
)

func (d verbs) flexCommand() *cobra.Command {
	return cli.Group("flex", "Plan TPUs with flex-start on GKE, or check a node pool for them", flexPlanCommand(), d.flexCheckCommand())
}

func flexPlanCommand() *cobra.Command {
	var o flex.Options
	var nodesOnly, onlyYAML bool
	c := &cobra.Command{
		Use:   "plan [flags] [-- COMMAND...]",
		Short: "Print the node pool, the Job or JobSet, and the clean-up of a training with flex-start",
		Long: "Print what it takes to train on TPUs with flex-start on GKE, as a script to read and run: the command that makes the node pool,\n" +
			"with as many machines as the topology needs; the Job, with a Service if the slice has several machines, or the JobSet, with the\n" +
			"label and the annotation by which Pitstop cares for it; and the clean-up. It asks nothing and changes nothing. Words in capital\n" +
			"letters are yours to replace, or to name by a flag.\n\n" +
			"COMMAND is the training's; it runs under pitcrew, which has to be in the image and resumes it from its checkpoints.",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash != 0 && len(args) > 0 {
				return cli.Usage("flex plan takes no %q; the training's command stands after --, as in -- python3 train.py", args[0])
			}
			if nodesOnly && onlyYAML {
				return cli.Usage("--nodes-only prints no manifest and --yaml nothing else: name one of the two")
			}
			o.Command = args
			if len(args) == 0 {
				o.Command = []string{"python3", "train.py"}
			}
			plan, err := flex.Make(o)
			if err != nil {
				return cli.WrongUsage(err)
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
	f.StringVar(&o.Policy, "policy", "POLICY", "the `NAME` of the policy by which Pitstop cares for the training")
	f.Float64Var(&o.ChipHourPrice, "chip-hour-price", 0, "what an hour of one chip costs, in `DOLLARS`: say what the training costs")
	f.BoolVar(&nodesOnly, "nodes-only", false, "print the node pool alone")
	f.BoolVar(&onlyYAML, "yaml", false, "print the manifest alone, as for kubectl apply -f -")
	return c
}

// checkedPool is the object that flex check --json prints for each pool.
type checkedPool struct {
	Pool     string         `json:"pool"`
	Machine  string         `json:"machine,omitzero"`
	Topology string         `json:"topology,omitzero"`
	Chips    int            `json:"chips,omitzero"`
	Nodes    int            `json:"nodes,omitzero"`
	Findings []flex.Finding `json:"findings"`
	Notes    []string       `json:"notes"`
}

// clusterForm is the name of a cluster in its location.
var clusterForm = regexp.MustCompile(`^([a-z]+-[a-z0-9-]+)/([a-z]([a-z0-9-]{0,38}[a-z0-9])?)$`)

// poolChecks says which node pools are checked: that in a file, or those of a cluster.
type poolChecks struct {
	project, cluster, pool, topology string
	asJSON                           bool
}

func (d verbs) flexCheckCommand() *cobra.Command {
	var p poolChecks
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say what is wrong with node pools for flex-start",
		Long: "Say what is wrong with a node pool for TPUs with flex-start, and the way out. FILE holds what gcloud container node-pools\n" +
			"describe --format=json prints; - is standard input. With --cluster the pools with flex-start are read from GKE instead, or that\n" +
			"of --pool alone, which needs container.clusters.get. --topology is the one that you want; without it the pool's own counts.\n\n" +
			"Exit codes: 0 when each pool is sound, 1 when something is wrong with one, 2 when there is no node pool.",
		RunE: func(c *cobra.Command, files []string) error {
			switch {
			case p.cluster != "" && len(files) > 0:
				return cli.Usage("flex check takes a file or --cluster, and not both")
			case p.cluster != "":
				return d.checkCluster(c.Context(), p, c.OutOrStdout())
			case p.pool != "" || p.project != "":
				return cli.Usage("--pool and --project belong to a cluster: name it, as in --cluster us-east5/research")
			case len(files) != 1:
				return cli.Usage("flex check takes one file, not %d; - is standard input, and --cluster reads from GKE", len(files))
			}
			return p.file(files[0], c.InOrStdin(), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&p.cluster, "cluster", "", "read from GKE the pools of this cluster, `LOCATION/CLUSTER`")
	f.StringVar(&p.project, "project", "", "the `PROJECT` of the cluster")
	f.StringVar(&p.pool, "pool", "", "check the pool of this `NAME` alone")
	f.StringVar(&p.topology, "topology", "", "the `TOPOLOGY` that a slice should have, as in 4x4")
	f.BoolVar(&p.asJSON, "json", false, "print one JSON object for each pool")
	d.Bound(c)
	return c
}

// file checks the pool in a file.
func (p poolChecks) file(name string, in io.Reader, out io.Writer) error {
	raw, err := readPool(name, in)
	if err != nil {
		return cli.WrongUsage(err)
	}
	pool, err := flex.ReadPool(raw)
	if err != nil {
		return cli.Usage("%s: %w", name, err)
	}
	return p.check([]*container.NodePool{pool}, name, out)
}

// checkCluster checks pools of a cluster, as GKE describes them.
func (d verbs) checkCluster(ctx context.Context, p poolChecks, out io.Writer) error {
	at := clusterForm.FindStringSubmatch(p.cluster)
	if at == nil {
		return cli.Usage("--cluster %q is not LOCATION/CLUSTER, as in us-east5/research", p.cluster)
	}
	if err := cli.CheckProject("--project", p.project); err != nil {
		return err
	}
	all, err := d.NodePools(ctx, p.project, at[1], at[2])
	if err != nil {
		return fmt.Errorf("cluster %s of %s: %w", p.cluster, p.project, err)
	}
	var names []string
	var chosen []*container.NodePool
	for _, pool := range all {
		if pool == nil || pool.Config == nil {
			continue
		}
		names = append(names, pool.Name)
		if pool.Name == p.pool || p.pool == "" && pool.Config.FlexStart {
			chosen = append(chosen, pool)
		}
	}
	switch {
	case len(chosen) > 0:
		return p.check(chosen, p.cluster, out)
	case p.pool != "":
		return cli.Usage("cluster %s has no node pool %s; it has %s", p.cluster, p.pool, cmp.Or(strings.Join(names, ", "), "none"))
	}
	return cli.Usage("cluster %s has no node pool with flex-start; it has %s, and --pool checks one of them all the same", p.cluster, cmp.Or(strings.Join(names, ", "), "none"))
}

// check tells what is wrong with each pool. Where names the place that they were read from.
func (p poolChecks) check(pools []*container.NodePool, where string, out io.Writer) error {
	failed := false
	for _, pool := range pools {
		c, err := flex.Check(pool, p.topology)
		if err != nil {
			return cli.Usage("%s: %w", where, err)
		}
		failed = failed || len(c.Findings) > 0
		if !p.asJSON {
			printPool(c, out)
			continue
		}
		o := checkedPool{c.Pool, c.Slice.Machine.Type, c.Slice.Topology, c.Slice.Chips, c.Slice.Nodes, append([]flex.Finding{}, c.Findings...), append([]string{}, c.Notes...)}
		if err := terminal.PrintJSON(out, o); err != nil {
			return err
		}
	}
	if failed {
		return cli.ErrFailed
	}
	return nil
}

func readPool(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(entries.InUTF8(in), flex.MaxPoolBytes+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(entries.InUTF8(f), flex.MaxPoolBytes+1))
}

func printPool(c flex.Checked, out io.Writer) {
	for _, f := range c.Findings {
		terminal.Print(out, fmt.Sprintf("%s: %s is %s, and should be %s: %s", terminal.Printable(c.Pool), f.Field, terminal.Printable(f.Got), terminal.Printable(f.Want), terminal.Printable(f.Why)))
		terminal.Print(out, "  the way out: "+terminal.Printable(f.Fix))
	}
	if s := c.Slice; len(c.Findings) == 0 {
		terminal.Print(out, fmt.Sprintf("%s: no fault; %s with topology %s, %s of %s each", terminal.Printable(c.Pool), s.Machine.Type, s.Topology,
			terminal.Count(s.Nodes, "machine"), terminal.Count(s.Machine.Chips, "chip")))
	}
	for _, note := range c.Notes {
		terminal.Print(out, terminal.Printable(c.Pool)+": note: "+terminal.Printable(note))
	}
}
