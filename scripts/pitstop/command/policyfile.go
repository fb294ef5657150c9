package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/shared/policy"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "Check a policy file, or print an example or the schema of one",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(c, args[0])
			}
			return c.Help()
		},
	}
	var asJSON bool
	var allow allowing
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Print the faults of a policy file, or what each policy allows and what limits it",
		Long: "Print every fault of a policy file with its line and column. A file without a fault prints what each of its policies\n" +
			"allows in effect, and what limits each switch that is not yes. - is standard input.\n\n" +
			"Exit codes: 0 when the file is sound, 1 when it has a fault, 2 when it cannot be read.",
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) != 1 {
				return usage("policy check takes one file, not %d", len(files))
			}
			ceiling, err := allow.switches()
			if err != nil {
				return err
			}
			return checkPolicy(files[0], under(ceiling), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), asJSON)
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	allow.flag(check)
	schema := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a policy file", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policy.Schema())
			return err
		},
	}
	example := &cobra.Command{
		Use: "example", Short: "Print a policy file with every key", Args: noArgs,
		Long: "Print a policy file with every key, the meaning of each, and a value that policy check accepts.",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policy.Example())
			return err
		},
	}
	c.AddCommand(check, example, schema)
	return c
}

// checked is the object that policy check --json prints.
type checked struct {
	File     string          `json:"file"`
	Faults   []policy.Fault  `json:"faults"`
	Policies []checkedPolicy `json:"policies"`
}

type checkedPolicy struct {
	Name     string          `json:"name"`
	Switches []checkedSwitch `json:"switches"`
}

// checkedPolicyOf is a policy in effect.
func checkedPolicyOf(name string, p policy.Policy) checkedPolicy {
	return checkedPolicy{Name: name, Switches: inEffect(p)}
}

// checkedSwitch is a switch in effect; LimitedBy is empty for one that is yes.
type checkedSwitch struct {
	Switch    policy.Switch `json:"switch"`
	Level     string        `json:"level"`
	LimitedBy string        `json:"limited_by"`
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
		return wrongUsage(err)
	}
	c := checked{File: name, Faults: []policy.Fault{}, Policies: []checkedPolicy{}}
	f, err := policy.Parse(raw)
	var faults policy.FileError
	switch {
	case errors.As(err, &faults):
		c.Faults = faults
	case err != nil:
		return err
	default:
		for _, n := range f.Names() {
			c.Policies = append(c.Policies, checkedPolicyOf(n, f.For(n, ceiling)))
		}
	}
	if asJSON {
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		tell(out, string(text))
	} else {
		c.tell(out, errOut)
	}
	if len(c.Faults) > 0 {
		return errFailed
	}
	return nil
}

// inEffect are the switches of a policy, in their order.
func inEffect(p policy.Policy) (all []checkedSwitch) {
	for _, s := range policy.All() {
		all = append(all, checkedSwitch{s, p.Switches.Level(s).String(), p.Limits[s]})
	}
	return all
}

func (c checked) tell(out, errOut io.Writer) {
	for _, f := range c.Faults {
		place := c.File
		for _, n := range []int{f.Line, f.Column} {
			if n > 0 {
				place += fmt.Sprintf(":%d", n)
			}
		}
		tell(errOut, place+": "+printable(f.Text))
	}
	if len(c.Faults) > 0 {
		return
	}
	for _, p := range c.Policies {
		tell(out, "policy "+printable(p.Name))
		for _, s := range p.Switches {
			line := fmt.Sprintf("  %-18s  %-3s", s.Switch, s.Level)
			if s.LimitedBy != "" {
				line += "  limited by " + printable(s.LimitedBy)
			}
			tell(out, line)
		}
	}
	tell(out, fmt.Sprintf("%s: no fault; %s", c.File, strings.Replace(count(len(c.Policies), "policy"), "policys", "policies", 1)))
}

// limits lists in one line the switches that are allowed in effect, and the limit of each other one.
func limits(s policy.Switches, by policy.Limits) string {
	groups := []string{"allowed: "}
	at := map[string]int{groups[0]: 0}
	for _, name := range policy.All() {
		head := "allowed: "
		if l := s.Level(name); l != policy.Yes {
			head = l.String()
			if who := by[name]; who != "" {
				head += ", limited by " + who
			}
			head += ": "
		}
		i, ok := at[head]
		if !ok {
			i = len(groups)
			at[head] = i
			groups = append(groups, head)
		}
		if strings.HasSuffix(groups[i], ": ") {
			groups[i] += string(name)
		} else {
			groups[i] += ", " + string(name)
		}
	}
	if groups[0] == "allowed: " {
		groups[0] += "nothing"
	}
	return strings.Join(groups, " · ")
}
