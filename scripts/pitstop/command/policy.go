package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/shared/policy"
)

// chosenPolicy is the policy that --policy names.
type chosenPolicy struct {
	// label is the assumed value of the label pitstop-policy.
	label string
	file  []byte
	// allow is the ceiling of the deployment; nil takes nothing away.
	allow *policy.Switches
	// assumed says that --policy names none.
	assumed bool
}

// allowing is the deployment's list as --allow has it.
type allowing struct {
	list string
	c    *cobra.Command
}

func (a *allowing) flag(c *cobra.Command) {
	a.c = c
	c.Flags().StringVar(&a.list, "allow", "", "the deployment's list of switches, a ceiling over all policies, separated by commas; without it nothing is taken away")
}

// switches are those of the list; nil where there is none.
func (a *allowing) switches() (*policy.Switches, error) {
	if a.c == nil || !a.c.Flags().Changed("allow") {
		return nil, nil
	}
	s, err := policy.Allow(a.list)
	if err != nil {
		return nil, usage("--%w", err)
	}
	return &s, nil
}

// args hand the list on to another build.
func (a *allowing) args() []string {
	if a.c == nil || !a.c.Flags().Changed("allow") {
		return nil
	}
	return []string{"--allow=" + a.list}
}

// under is a ceiling of which nil takes nothing away.
func under(allow *policy.Switches) policy.Switches {
	if allow == nil {
		return policy.Everything()
	}
	return *allow
}

// policy is the chosen policy under the ceiling of the deployment.
func (c chosenPolicy) policy() policy.Policy {
	var f *policy.File
	if c.file != nil {
		f, _ = policy.Parse(c.file) //nolint:errcheck // readPolicy has parsed it
	}
	return f.For(c.label, under(c.allow))
}

// of is the policy of a TPU whose label is shown: the chosen one, and that of the label where none is chosen.
func (c chosenPolicy) of(label string) policy.Policy {
	if !c.assumed {
		return c.policy()
	}
	c.label = label
	p := c.policy()
	if p.Unknown {
		for s := range p.Limits {
			p.Limits[s] = "the policy " + label + ", which --policy FILE:" + label + " shows"
		}
	}
	return p
}

// readPolicy reads --policy: a preset, a file with one policy, or FILE:NAME. Without it Pitstop only watches.
func readPolicy(flag string) (chosenPolicy, error) {
	if flag == "" {
		return chosenPolicy{label: "watch", assumed: true}, nil
	}
	if policy.Preset(flag) {
		return chosenPolicy{label: flag}, nil
	}
	name := ""
	raw, err := os.ReadFile(flag)
	if err != nil {
		file, after, ok := cutLast(flag, ":")
		if !ok {
			return chosenPolicy{}, usage("--policy %s: it is neither a preset (watch, spot, reserved) nor a file that can be read", flag)
		}
		if raw, err = os.ReadFile(file); err != nil {
			return chosenPolicy{}, usage("--policy: %w", err)
		}
		flag, name = file, after
	}
	f, err := policy.Parse(raw)
	if err != nil {
		return chosenPolicy{}, usage("--policy %s: %w", flag, err)
	}
	names := f.Names()
	switch {
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return chosenPolicy{}, usage("--policy %s: it holds %d policies (%s); name one with --policy %s:NAME", flag, len(names), strings.Join(names, ", "), flag)
	case f.For(name, policy.Everything()).Unknown:
		return chosenPolicy{}, usage("--policy %s: it holds no policy %q but %s", flag, name, strings.Join(names, ", "))
	}
	return chosenPolicy{label: name, file: raw}, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
