package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	simulated "pitstop.internal/scripts/sim/cloud"
)

type cloudOptions struct {
	listen string
	fleet  []string
	speed  float64
}

// slowest and fastest bound --speed.
const slowest, fastest = 0.01, 1e6

func cloudCommand() *cobra.Command {
	var o cloudOptions
	c := &cobra.Command{
		Use:   "cloud",
		Short: "Serve a simulated Google Cloud on this machine, for gcloud, for the functions and for pitcrew",
		Long: "Serve a simulated Google Cloud on this machine, until Ctrl-C. It answers the Cloud TPU API (v1, v1alpha1, v2, v2alpha1; v1 by gRPC\n" +
			"too), Cloud Storage and Cloud Logging as Google does. Nothing in it is real, nothing is kept, and it asks for no credentials.\n\n" +
			"--speed makes everything faster that takes time in the cloud. Its clock remains the clock of this machine, so that the times of\n" +
			"its clients and its own agree.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return serveCloud(c.Context(), o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8090", "where to listen: HOST:PORT on this machine; port 0 takes a free one")
	f.StringArrayVar(&o.fleet, "fleet", nil, "the TPUs to begin with: one YAML file with project, fleet and capacity, as in the scenarios of\n"+
		"events/testdata, or JSON from gcloud compute tpus tpu-vm list, tpus list or queued-resources list, once for each file;\n"+
		"without it an empty project named demo")
	f.Float64Var(&o.speed, "speed", 1, "how many times as fast everything goes that takes time in the cloud")
	return c
}

func serveCloud(ctx context.Context, o cloudOptions, out io.Writer) error {
	if !(o.speed >= slowest && o.speed <= fastest) {
		return usage("--speed %v is not between %v and %v", o.speed, slowest, fastest)
	}
	config := simulated.Config{Speed: o.speed}
	if len(o.fleet) > 0 {
		fleet, err := readFleet(o.fleet)
		if err != nil {
			return err
		}
		config.Fleet = fleet
	}
	c, err := simulated.New(config)
	if err != nil {
		return usage("--fleet: %w", err)
	}
	l, err := simulated.Listen(ctx, o.listen)
	if err != nil {
		return usage("--listen: %w", err)
	}
	tell(out, strings.Join(greeting(c, "http://"+l.Addr().String()), "\n"))
	if err := c.Serve(ctx, l); err != nil {
		return err
	}
	return errInterrupted
}

// greeting says what is served, and how clients are led to it.
func greeting(c *simulated.Cloud, url string) []string {
	project := c.API.Project()
	return []string{
		fmt.Sprintf("project %s with %s, at %s; Ctrl-C ends it", project, count(len(c.API.Nodes("-")), "node"), url), "",
		"gcloud, in another terminal:",
		"  export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU=" + url + "/",
		"  export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=" + project,
		"  gcloud compute tpus tpu-vm list --zone=" + c.API.Zones()[0],
	}
}
