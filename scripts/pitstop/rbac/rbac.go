// Package rbac makes the manifests by which a cluster lets an account of Pitstop read trainings, and nothing else.
package rbac

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Right is what the account may do with one resource of a cluster.
type Right struct {
	// Group is the API group, empty for the core, and Resource the plural name in it.
	Group, Resource string
	Verbs           []string
	// Everywhere says that the resource belongs to no namespace.
	Everywhere bool
}

// Rights are all rights that the account has. Each manifest follows from them.
func Rights() []Right {
	read := []string{"list"}
	return []Right{
		{Group: "batch", Resource: "jobs", Verbs: read},
		{Group: "jobset.x-k8s.io", Resource: "jobsets", Verbs: read},
		{Resource: "pods", Verbs: read},
		{Resource: "nodes", Verbs: read, Everywhere: true},
		{Group: "accelerator.gke.io", Resource: "slices", Verbs: read, Everywhere: true}, // of TPU7x
	}
}

// Options say who reads what.
type Options struct {
	// Account is the e-mail address of a service account, and ID its numeric ID. GKE knows a caller by the one or the other.
	// https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
	Account, ID string
	// Namespaces are those with trainings. All takes every namespace instead, those that are made later too.
	Namespaces []string
	All        bool
}

// The words that stand for an account that is not named.
const (
	AnyAccount = "ACCOUNT"
	AnyID      = "NUMERIC_ID"
)

var (
	account   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*@[a-z0-9.-]+\.gserviceaccount\.com$`)
	number    = regexp.MustCompile(`^[0-9]{1,30}$`)
	namespace = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// check returns the first fault of the options.
func (o Options) check() error {
	switch {
	case o.All && len(o.Namespaces) > 0:
		return errors.New("--all-namespaces reads every namespace, so --namespace does not go with it")
	case !o.All && len(o.Namespaces) == 0:
		return errors.New("--namespace is missing: the namespaces with trainings, as in --namespace train")
	case (o.Account == "") != (o.ID == ""):
		return errors.New("--account and --id belong together: GKE knows a caller by the one or the other; gcloud iam service-accounts describe ACCOUNT prints both")
	case o.Account != "" && !account.MatchString(o.Account):
		return fmt.Errorf("--account %.80q is no e-mail address of a service account", o.Account)
	case o.ID != "" && !number.MatchString(o.ID):
		return fmt.Errorf("--id %.80q is no numeric ID of a service account; gcloud iam service-accounts describe ACCOUNT --format='value(uniqueId)' prints it", o.ID)
	}
	for _, n := range o.Namespaces {
		if !namespace.MatchString(n) {
			return fmt.Errorf("--namespace %.80q is no name of a namespace", n)
		}
	}
	return nil
}

// Object is one object of a manifest.
type Object struct {
	APIVersion string    `yaml:"apiVersion" json:"apiVersion"`
	Kind       string    `yaml:"kind" json:"kind"`
	Metadata   Metadata  `yaml:"metadata" json:"metadata"`
	Rules      []Rule    `yaml:"rules,omitempty" json:"rules,omitempty"`
	RoleRef    *RoleRef  `yaml:"roleRef,omitempty" json:"roleRef,omitempty"`
	Subjects   []Subject `yaml:"subjects,omitempty" json:"subjects,omitempty"`
}

// Metadata names an object.
type Metadata struct {
	Name      string `yaml:"name" json:"name"`
	Namespace string `yaml:"namespace,omitempty" json:"namespace,omitempty"`
}

// Rule allows verbs on resources.
type Rule struct {
	APIGroups []string `yaml:"apiGroups,flow" json:"apiGroups"`
	Resources []string `yaml:"resources,flow" json:"resources"`
	Verbs     []string `yaml:"verbs,flow" json:"verbs"`
}

// RoleRef is the role that a binding grants.
type RoleRef struct {
	APIGroup string `yaml:"apiGroup" json:"apiGroup"`
	Kind     string `yaml:"kind" json:"kind"`
	Name     string `yaml:"name" json:"name"`
}

// Subject is who has a role.
type Subject struct {
	APIGroup string `yaml:"apiGroup" json:"apiGroup"`
	Kind     string `yaml:"kind" json:"kind"`
	Name     string `yaml:"name" json:"name"`
}

const group = "rbac.authorization.k8s.io"

// Objects are the roles and their bindings. All have the account's name, so that deployments in one cluster do not meet.
func Objects(o Options) ([]Object, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	who := []Subject{{group, "User", cmp.Or(o.Account, AnyAccount)}, {group, "User", cmp.Or(o.ID, AnyID)}}
	name := "pitstop:" + who[0].Name
	pair := func(kind, namespace string, rules []Rule) []Object {
		at := Metadata{Name: name, Namespace: namespace}
		return []Object{
			{APIVersion: group + "/v1", Kind: kind, Metadata: at, Rules: rules},
			{APIVersion: group + "/v1", Kind: kind + "Binding", Metadata: at, RoleRef: &RoleRef{group, kind, name}, Subjects: who},
		}
	}
	all := pair("ClusterRole", "", rules(func(r Right) bool { return r.Everywhere || o.All }))
	for _, n := range slices.Compact(slices.Sorted(slices.Values(o.Namespaces))) {
		all = append(all, pair("Role", n, rules(func(r Right) bool { return !r.Everywhere }))...)
	}
	return all, nil
}

func rules(of func(Right) bool) (rules []Rule) {
	for _, r := range Rights() {
		if of(r) {
			rules = append(rules, Rule{[]string{r.Group}, []string{r.Resource}, r.Verbs})
		}
	}
	return rules
}

// YAML writes objects as documents of one file.
func YAML(objects []Object) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, o := range objects {
		if err := e.Encode(o); err != nil {
			return "", fmt.Errorf("the manifest of %s %s: %w", o.Kind, o.Metadata.Name, err)
		}
	}
	if err := e.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}
