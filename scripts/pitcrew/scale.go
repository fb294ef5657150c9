//go:build unix

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/crew"
)

func scaleCommand() *cobra.Command {
	var from, to string
	var batch, steps int64
	c := &cobra.Command{
		Use:   "scale --from TYPE --to TYPE --global-batch N --steps N",
		Short: "Print batch and steps for other hardware, and why",
		Long: "Prints the global batch and the number of steps for another accelerator type. Each device keeps its batch, and the training " +
			"sees as many examples as before. A TYPE is an accelerator type, or COUNTxTYPE for several slices.",
		Example: "  pitcrew scale --from v2-8 --to v2-32 --global-batch 1024 --steps 100\n" +
			"  pitcrew scale --from v4-8 --to 2xv5litepod-16 --global-batch 64 --steps 100",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return usage("scale takes --from and --to, such as v2-8 or 2xv4-8")
			}
			s, err := rescale(from, to, batch, steps)
			if err != nil {
				return exit{crew.CodeUsage, err}
			}
			f, err := hardware(from)
			if err != nil {
				return err
			}
			t, err := hardware(to)
			if err != nil {
				return err
			}
			total := "exactly as before"
			if !s.Exact {
				total = fmt.Sprintf("%s more, because steps are whole", events.Number(s.GlobalBatch*s.Steps-batch*steps))
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "global batch  %d\nsteps         %d\n\n%s: %s\n%s: %s\n"+
				"Each device keeps its batch of %d; the examples are %s, %s.\nScale a learning rate that depends on steps, too.\n",
				s.GlobalBatch, s.Steps, from, f.describe(), to, t.describe(), batch/int64(f.devices), events.Number(s.GlobalBatch*s.Steps), total)
			return err
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&from, "from", "", "the `TYPE` that the numbers are for")
	c.Flags().StringVar(&to, "to", "", "the `TYPE` to run on")
	c.Flags().Int64Var(&batch, "global-batch", 0, "the global batch `N`")
	c.Flags().Int64Var(&steps, "steps", 0, "the `N` steps")
	return c
}

// describe says what counts as a device.
func (h hardwareOf) describe() string {
	what := "a JAX device is a chip from v4 on"
	if h.shape.Devices() == h.shape.Cores && h.shape.Cores != h.shape.Chips {
		what = "a JAX device is a core on v2 and v3"
	}
	return fmt.Sprintf("%d devices (%d chips, %d cores; %s)", h.devices, h.slices*h.shape.Chips, h.slices*h.shape.Cores, what)
}
