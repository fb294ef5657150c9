//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/shared/topology"
)

// training are the numbers that scale moves to other hardware.
type training struct {
	from, to             string
	batch, steps, epochs int64
	rate                 float64
}

func scaleCommand() *cobra.Command {
	var t training
	c := &cobra.Command{
		Use:                   "scale --from TYPE --to TYPE --global-batch N --steps N|--epochs N",
		DisableFlagsInUseLine: true,
		Short:                 "Print batch and steps for other hardware, and why",
		Long: "Prints the global batch and the number of steps for another accelerator type. Each device keeps its batch, and the training " +
			"sees as many examples as before. A training that counts epochs keeps them: its framework computes the steps. A TYPE is an " +
			"accelerator type, or COUNTxTYPE for several slices.",
		Example: "  pitcrew scale --from v2-8 --to v2-32 --global-batch 1024 --steps 100\n" +
			"  pitcrew scale --from v2-8 --to v2-32 --global-batch 1024 --epochs 90 \\\n    --learning-rate 0.1\n" +
			"  pitcrew scale --from v4-8 --to 2xv5litepod-16 --global-batch 64 --steps 100",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := t.scale()
			if err == nil {
				_, err = io.WriteString(c.OutOrStdout(), text)
			}
			return err
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&t.from, "from", "", "the `TYPE` that the numbers are for")
	c.Flags().StringVar(&t.to, "to", "", "the `TYPE` to run on")
	c.Flags().Int64Var(&t.batch, "global-batch", 0, "the global batch `N`")
	c.Flags().Int64Var(&t.steps, "steps", 0, "the `N` steps")
	c.Flags().Int64Var(&t.epochs, "epochs", 0, "the `N` epochs of a training that does not count in steps")
	c.Flags().Float64Var(&t.rate, "learning-rate", 0, "the learning `RATE`, to print it for the new batch")
	return c
}

func (t training) scale() (string, error) {
	switch {
	case t.from == "" || t.to == "":
		return "", usage("scale takes --from and --to, such as v2-8 or 2xv4-8")
	case (t.steps != 0) == (t.epochs != 0):
		return "", usage("scale takes either --steps or --epochs")
	case t.epochs < 0 || t.rate < 0:
		return "", usage("--epochs %d, --learning-rate %v: they are more than 0", t.epochs, t.rate)
	}
	f, err := hardware(t.from)
	if err != nil {
		return "", exit{crew.CodeUsage, err}
	}
	to, err := hardware(t.to)
	if err != nil {
		return "", exit{crew.CodeUsage, err}
	}
	s, err := topology.Rescale(f.devices, to.devices, t.batch, cmp.Or(t.steps, 1))
	if err != nil {
		return "", exit{crew.CodeUsage, err}
	}
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("global batch  %d", s.GlobalBatch)
	if t.epochs > 0 {
		say("epochs        %d, as before: the framework computes the steps", t.epochs)
	} else {
		say("steps         %d", s.Steps)
	}
	ratio := float64(to.devices) / float64(f.devices)
	if t.rate > 0 {
		say("learning rate %s by the linear rule, %s by the square root", crew.Digits(t.rate*ratio), crew.Digits(t.rate*math.Sqrt(ratio)))
	}
	say("\n%s: %s\n%s: %s", t.from, f.describe(), t.to, to.describe())
	say("Each device keeps its batch of %d.%s", t.batch/int64(f.devices), t.examples(s))
	if ratio > 1 {
		say("With the old global batch each device would have %s. Steps then do not get %s times as fast: a small batch fills a\n"+
			"device less, and exchanging gradients takes the same time.", crew.Digits(float64(t.batch)/float64(to.devices)), crew.Digits(ratio))
	}
	say("\n" + rule(ratio))
	return b.String(), nil
}

// examples says how many examples the training sees, if that is known.
func (t training) examples(s topology.Scaled) string {
	if t.steps == 0 {
		return ""
	}
	total := "exactly as before"
	if !s.Exact {
		total = fmt.Sprintf("%s more, because steps are whole", events.Number(s.GlobalBatch*s.Steps-t.batch*t.steps))
	}
	return fmt.Sprintf(" The examples are %s, %s.", events.Number(s.GlobalBatch*s.Steps), total)
}

// rule says how the learning rate follows the batch, and how far that holds.
// P. Goyal and others, Accurate, large minibatch SGD: training ImageNet in 1 hour, 2017. https://arxiv.org/abs/1706.02677
func rule(ratio float64) string {
	if ratio == 1 {
		return "The global batch is the same, so the learning rate is, too."
	}
	return fmt.Sprintf("Learning rate: multiply it by %s for SGD (linear rule), or by %s for Adam and its kin (square root). For a larger batch,\n"+
		"warm it up over the first epochs. Count warm-up and decay in examples, because there are other steps. The rules have limits:\n"+
		"for ResNet-50 the linear one held up to a batch of about 8,192. Validate the loss on the new hardware before a long run.",
		crew.Digits(ratio), crew.Digits(math.Sqrt(ratio)))
}

// describe says what counts as a device.
func (h hardwareOf) describe() string {
	what := "a JAX device is a chip from v4 on"
	if h.shape.Devices() == h.shape.Cores && h.shape.Cores != h.shape.Chips {
		what = "a JAX device is a core on v2 and v3"
	}
	return fmt.Sprintf("%d devices (%d chips, %d cores; %s)", h.devices, h.slices*h.shape.Chips, h.slices*h.shape.Cores, what)
}
