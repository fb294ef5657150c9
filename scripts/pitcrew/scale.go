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
		Args:  cobra.NoArgs,
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
			_, err = fmt.Fprintf(c.OutOrStdout(), "global batch  %d\nsteps         %d\n\n%s: %s\n%s: %s\nEach device keeps its batch of %d; the examples are %s, %s.\nA learning rate that goes by steps has to be scaled with them.\n",
				s.GlobalBatch, s.Steps, from, f.describe(), to, t.describe(), batch/int64(f.devices), events.Number(s.GlobalBatch*s.Steps), total)
			return err
		},
	}
	c.Flags().StringVar(&from, "from", "", "the accelerator type that the numbers are for, or COUNTxTYPE")
	c.Flags().StringVar(&to, "to", "", "the accelerator type to run on, or COUNTxTYPE")
	c.Flags().Int64Var(&batch, "global-batch", 0, "the global batch")
	c.Flags().Int64Var(&steps, "steps", 0, "the steps")
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
