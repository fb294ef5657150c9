package main

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/rbac"
)

func gkeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "gke", Short: "Print what a cluster of GKE needs so that Pitstop reads its trainings",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(gkeRBACCommand())
	return c
}

// roleList is the object that gke rbac --json prints. kubectl takes it as it takes the documents.
type roleList struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Items      []rbac.Object `json:"items"`
}

func gkeRBACCommand() *cobra.Command {
	var o rbac.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the roles and bindings by which Pitstop may read trainings in a cluster",
		Long: "Print the roles and bindings by which an account of Pitstop may read the trainings in namespaces of a cluster, for kubectl apply\n" +
			"-f -. It asks nothing and changes nothing. The account may read Jobs, JobSets and Pods in these namespaces, and the machines of\n" +
			"the cluster; it may change nothing. kubectl delete -f - takes the same objects away.\n\n" +
			"GKE knows the account by its e-mail address or by its numeric ID, so the bindings name both. terraform output cluster_reader\n" +
			"prints them as flags. Without --account and --id words in capital letters stand there, which are yours to replace.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			objects, err := rbac.Objects(o)
			if err != nil {
				return usageError{err}
			}
			if asJSON {
				text, err := json.Marshal(roleList{"v1", "List", objects})
				if err != nil {
					return err
				}
				tell(c.OutOrStdout(), string(text))
				return nil
			}
			text, err := rbac.YAML(objects)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Namespaces, "namespace", nil, "the `NAMESPACES` with trainings, separated by commas")
	f.BoolVar(&o.All, "all-namespaces", false, "every namespace, those that are made later too")
	f.StringVar(&o.Account, "account", "", "the `EMAIL` address of the account that reads")
	f.StringVar(&o.ID, "id", "", "the `NUMBER` that is that account's ID")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
