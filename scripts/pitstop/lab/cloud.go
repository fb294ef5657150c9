package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
	simulated "pitstop.internal/scripts/sim/cloud"
)

type cloudOptions struct {
	listen string
	fleet  []string
	speed  float64
	token  string
}

// slowest and fastest bound --speed.
const slowest, fastest = 0.01, 1e6

func cloudCommand() *cobra.Command {
	var o cloudOptions
	c := &cobra.Command{
		Use:   "cloud",
		Short: "Serve a simulated Google Cloud on this machine, for gcloud, for the functions and for pitcrew",
		Long: "Serve a simulated Google Cloud on this machine, until Ctrl-C. It answers the Cloud TPU API (v1, v1alpha1, v2, v2alpha1; v1 by gRPC\n" +
			"too), Cloud Storage, Cloud Logging and the metadata servers of the TPUs' machines as Google does. Nothing in it is real, nothing\n" +
			"is kept, and it asks for no credentials.\n\n" +
			"--speed makes everything faster that takes time in the cloud. Its clock remains the clock of this machine, so that the times of\n" +
			"its clients and its own agree.\n\n" +
			"A POST to /admin/ACT with the printed token makes something happen:\n\n" +
			"  preempt, terminate     a node: zone, node\n" +
			"  host-error             of a node, for a while or for good: for\n" +
			"  maintenance            of a node, now or announced before: in, for\n" +
			"  withdraw               the announced maintenance of a node\n" +
			"  stockout, capacity     of a zone or a part of it, for a while or for good: zone, of, for, slices\n" +
			"  fail, slow             the next calls of a method: method, zone, node, times, code, message, for\n" +
			"  lose-answer            of these calls, after they took effect; or lose-request, before",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return serveCloud(c.Context(), o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8090", "where to listen: HOST:PORT on this machine; port 0 takes a free one")
	f.StringArrayVar(&o.fleet, "fleet", nil, "the TPUs to begin with: one YAML file with project, fleet and capacity, as in the scenarios of\n"+
		"events/testdata, or JSON from gcloud compute tpus tpu-vm list, tpus list or queued-resources list, once for each file;\n"+
		"without it an empty project named demo")
	f.StringVar(&o.token, "token", "", "the token of the calls that make something happen; without it a new one")
	f.Float64Var(&o.speed, "speed", 1, "how many times as fast everything goes that takes time in the cloud")
	return c
}

func serveCloud(ctx context.Context, o cloudOptions, out io.Writer) error {
	if !(o.speed >= slowest && o.speed <= fastest) {
		return cli.Usage("--speed %v is not between %v and %v", o.speed, slowest, fastest)
	}
	config := simulated.Config{Speed: o.speed, Token: o.token}
	if config.Token == "" {
		config.Token = rand.Text()
	}
	if len(o.fleet) > 0 {
		fleet, err := readFleet(o.fleet)
		if err != nil {
			return err
		}
		config.Fleet = fleet
	}
	c, err := simulated.New(config)
	if err != nil {
		return cli.Usage("--fleet: %w", err)
	}
	l, err := simulated.Listen(ctx, o.listen)
	if err != nil {
		return cli.Usage("--listen: %w", err)
	}
	terminal.Print(out, strings.Join(greeting(c, "http://"+l.Addr().String(), config.Token), "\n"))
	if err := c.Serve(ctx, l); err != nil {
		return err
	}
	return cli.ErrInterrupted
}

// greeting says what is served, and how clients are led to it.
func greeting(c *simulated.Cloud, url, token string) []string {
	project, zone, node := c.API.Project(), c.API.Zones()[0], "llama-8b"
	command, first := "tpus tpu-vm", "create "+node+" --zone="+zone+" \\\n    --accelerator-type=v5litepod-16 --version=v2-alpha-tpuv5-lite"
	nodes := c.API.Nodes("-")
	if len(nodes) > 0 {
		parts := strings.Split(nodes[0].Name, "/") // projects, its name, locations, its name, nodes, its name
		zone, node = parts[3], parts[5]
		first = "describe " + node + " --zone=" + zone
		if nodes[0].ApiVersion == "V1" { // a legacy node
			command = "tpus"
		}
	}
	return []string{
		fmt.Sprintf("project %s with %s, at %s; Ctrl-C ends it", project, terminal.Count(len(nodes), "node"), url), "",
		"gcloud, in another terminal:",
		"  export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU=" + url + "/",
		"  export CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING=" + url + "/",
		"  export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=" + project,
		"  gcloud compute " + command + " " + first,
		"  gcloud compute " + command + " list --zone=" + zone, "",
		"To make something happen:",
		"  curl -H 'Authorization: Bearer " + token + "' \\",
		"    -d '{\"zone\": \"" + zone + "\", \"node\": \"" + node + "\"}' \\",
		"    " + url + simulated.AdminPrefix + "preempt",
	}
}
