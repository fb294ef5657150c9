package operate

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/rbac"
)

func gkeCommand() *cobra.Command {
	return cli.Group("gke", "Print what a cluster of GKE needs so that Pitstop reads its trainings, and acts on them", gkeRBACCommand())
}

// listOf is a manifest as one List in JSON, which kubectl takes as it takes the documents.
func listOf(manifest string) (string, error) {
	items := []map[string]any{}
	d := yaml.NewDecoder(strings.NewReader(manifest))
	for {
		var item map[string]any
		if err := d.Decode(&item); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, json.Deterministic(true))
	return string(text), err
}

func gkeRBACCommand() *cobra.Command {
	var o rbac.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print what lets Pitstop read trainings in a cluster, and act on them",
		Long: "Print the roles and bindings by which the accounts of Pitstop may read the trainings in namespaces of a cluster, for kubectl apply\n" +
			"-f -. It asks nothing and changes nothing. Patrol's account may list Jobs, JobSets and Pods in these namespaces, and the machines of\n" +
			"the cluster; it may change nothing. kubectl delete -f - takes the same objects away.\n\n" +
			"--allow names switches of a policy. With recreate or recreate_non_spot, recreate's account may also create and delete Jobs and\n" +
			"JobSets, and with early_maintenance, checkpoint's account may set one label on machines. Admission policies bound\n" +
			"both. Other switches need no right in a cluster.\n\n" +
			"What recreate's account may create and delete in a namespace, its owner lists in a ConfigMap named " + rbac.AllowedName + ". The manifest\n" +
			"begins with one to fill in, as a comment.\n\n" +
			"GKE knows an account by its e-mail address or by its numeric ID, so the bindings name both. terraform output cluster_rights\n" +
			"prints all flags but the namespaces. Without --account and --id words in capital letters stand there, which are yours to replace.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := rbac.Manifest(o)
			if err != nil {
				return cli.WrongUsage(err)
			}
			if asJSON {
				list, err := listOf(text)
				if err != nil {
					return err
				}
				text = list + "\n"
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Namespaces, "namespace", nil, "the `NAMESPACES` with trainings, separated by commas")
	f.BoolVar(&o.All, "all-namespaces", false, "every namespace, those that are made later too")
	f.StringVar(&o.Allow, "allow", "", "the `SWITCHES` of a policy that may act in the cluster, separated by commas")
	for _, a := range []struct {
		*rbac.Account
		flag, function string
	}{{&o.Patrol, "", rbac.Patrol}, {&o.Recreate, rbac.Recreate + "-", rbac.Recreate}, {&o.Checkpoint, rbac.Checkpoint + "-", rbac.Checkpoint}} {
		f.StringVar(&a.Email, a.flag+"account", "", "the `EMAIL` address of "+a.function+"'s account")
		f.StringVar(&a.ID, a.flag+"id", "", "the `NUMBER` that is that account's ID")
	}
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
