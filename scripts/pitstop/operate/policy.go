package operate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/policy"
)

func policyCommand() *cobra.Command {
	var asJSON bool
	var allow cli.AllowFlag
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Print the faults of a policy file, or what each policy allows and what limits it",
		Long: "Print every fault of a policy file with its line and column. A file without a fault prints what each of its policies\n" +
			"allows in effect, and what limits each switch that is not yes. - is standard input.\n\n" +
			"Exit codes: 0 when the file is sound, 1 when it has a fault, 2 when it cannot be read.",
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) != 1 {
				return cli.Usage("policy check takes one file, not %d", len(files))
			}
			ceiling, err := allow.Switches()
			if err != nil {
				return err
			}
			return checkPolicy(files[0], cli.Ceiling(ceiling), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), asJSON)
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	allow.AddTo(check)
	schema := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a policy file", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policy.Schema())
			return err
		},
	}
	example := &cobra.Command{
		Use: "example", Short: "Print a policy file with every key", Args: cli.NoArgs,
		Long: "Print a policy file with every key, the meaning of each, and a value that policy check accepts.",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policy.Example())
			return err
		},
	}
	return cli.Group("policy", "Check a policy file, or print an example or the schema of one", check, example, schema)
}

// checkedFile is the object that policy check --json prints.
type checkedFile struct {
	File     string               `json:"file"`
	Faults   []policy.Fault       `json:"faults"`
	Policies []cli.PolicyInEffect `json:"policies"`
}

func checkPolicy(name string, ceiling policy.Switches, in io.Reader, out, errOut io.Writer, asJSON bool) error {
	var raw []byte
	var err error
	if name == "-" {
		raw, err = io.ReadAll(io.LimitReader(in, policy.MaxFileBytes+1))
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return cli.WrongUsage(err)
	}
	c := checkedFile{File: name, Faults: []policy.Fault{}, Policies: []cli.PolicyInEffect{}}
	f, err := policy.Parse(raw)
	var faults policy.FileError
	switch {
	case errors.As(err, &faults):
		c.Faults = faults
	case err != nil:
		return err
	default:
		for _, n := range f.Names() {
			c.Policies = append(c.Policies, cli.PolicyInEffectOf(n, f.For(n, ceiling)))
		}
	}
	if asJSON {
		if err := terminal.PrintJSON(out, c); err != nil {
			return err
		}
	} else {
		c.print(out, errOut)
	}
	if len(c.Faults) > 0 {
		return cli.ErrFailed
	}
	return nil
}

func (c checkedFile) print(out, errOut io.Writer) {
	for _, f := range c.Faults {
		place := c.File
		for _, n := range []int{f.Line, f.Column} {
			if n > 0 {
				place += fmt.Sprintf(":%d", n)
			}
		}
		terminal.Print(errOut, place+": "+terminal.Printable(f.Text))
	}
	if len(c.Faults) > 0 {
		return
	}
	for _, p := range c.Policies {
		terminal.Print(out, "policy "+terminal.Printable(p.Name))
		for _, s := range p.Switches {
			line := fmt.Sprintf("  %-18s  %-3s", s.Switch, s.Level)
			if s.LimitedBy != "" {
				line += "  limited by " + terminal.Printable(s.LimitedBy)
			}
			terminal.Print(out, line)
		}
		for i, at := range p.Places {
			terminal.Print(out, fmt.Sprintf("  place %-12d  %s", i+1, terminal.Printable(at.String())))
		}
	}
	terminal.Print(out, fmt.Sprintf("%s: no fault; %s", c.File, strings.Replace(terminal.Count(len(c.Policies), "policy"), "policys", "policies", 1)))
}
