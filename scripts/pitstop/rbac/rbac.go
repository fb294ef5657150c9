// Package rbac makes the manifests by which a cluster lets the accounts of Pitstop read trainings and, where its owner allows it, act on
// them: roles with their bindings, and policies that bound what a role cannot.
package rbac

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/gke"
)

// The functions whose accounts call a cluster.
const (
	Patrol     = "patrol"
	Recreate   = "recreate"
	Checkpoint = "checkpoint"
	Recovery   = "recovery"
)

// switches are those that an acting function needs one of. Without it, a cluster grants its account nothing.
var switches = map[string][]policy.Switch{
	Recreate:   {policy.Recreate, policy.RecreateNonSpot},
	Checkpoint: {policy.EarlyMaintenance},
}

// Right is what some functions may do with one resource of a cluster.
type Right struct {
	Functions []string
	// Group is the API group, empty for the core, and Resource the plural name in it.
	Group, Resource string
	Verbs           []string
	// Everywhere says that the resource belongs to no namespace.
	Everywhere bool
	Why        string
}

// Rights are all rights in a cluster. Each role follows from them.
func Rights() []Right {
	read := []string{"list"}
	all := []string{Patrol, Recreate, Checkpoint, Recovery} // a function that acts reads first
	return []Right{
		{all, "batch", "jobs", read, false, "a Job is a slice"},
		{all, "jobset.x-k8s.io", "jobsets", read, false, "a JobSet is a Multislice, and says which restarts are left"},
		{all, "", "pods", read, false, "to see whether a slice is ready, and on which machines it is"},
		{all, "", "nodes", read, true, "to see announced maintenance, planned ends, and machines that are gone or silent"},
		{all, "accelerator.gke.io", "slices", read, true, "the Slices of TPU7x say why a Job cannot be used"},
		{all, "autoscaling.x-k8s.io", "provisioningrequests", read, false, "to say why the machines of a Job do not come, and which nothing uses"},
		{all, "kueue.x-k8s.io", "workloads", read, false, "to say why Kueue does not let a Job begin"},
		{[]string{Patrol}, "", "podtemplates", read, false, "to say whether a ProvisioningRequest that nothing uses asks for TPUs"},
		{[]string{Recreate}, "batch", "jobs", []string{"create", "delete"}, false, "to bring a failed Job back"},
		{[]string{Recreate}, "jobset.x-k8s.io", "jobsets", []string{"create", "delete"}, false, "to bring a failed JobSet back"},
		{[]string{Checkpoint}, "", "nodes", []string{"patch"}, true, "to start announced maintenance early, by the label " + gke.LabelMaintain},
		{[]string{Recovery}, "", "pods/status", []string{"patch"}, false, "to say that a Pod has failed that hangs on a machine which does not answer"},
		{[]string{Recovery}, "", "pods", []string{"delete"}, false, "to end it"},
	}
}

// Account is a service account: its e-mail address, and its numeric ID. GKE knows a caller by the one or the other.
// https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
type Account struct{ Email, ID string }

// Options say who may do what, and where.
type Options struct {
	// Patrol reads. The others act, where Allow has a switch for them, and have no rights elsewhere.
	Patrol, Recreate, Checkpoint, Recovery Account
	// Allow are switches of a policy, separated by commas. One that needs no right in a cluster adds none.
	Allow string
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
		return errors.New("--all-namespaces takes every namespace, so --namespace does not go with it")
	case !o.All && len(o.Namespaces) == 0:
		return errors.New("--namespace is missing: the namespaces with trainings, as in --namespace train")
	}
	for _, n := range o.Namespaces {
		if !namespace.MatchString(n) {
			return fmt.Errorf("--namespace %.80q is no name of a namespace", n)
		}
	}
	allowed, err := policy.Allow(o.Allow)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	flags := map[string]string{}
	for _, a := range o.accounts() {
		if err := a.check(); err != nil {
			return err
		}
		switch other := flags[a.Email]; {
		case a.Email == "" && len(switches[a.function]) > 0 && a.acts(allowed):
			return fmt.Errorf("--allow=%s lets %s act, so %s and %s are needed; terraform output cluster_rights prints all flags", o.Allow, a.function, a.flag("account"), a.flag("id"))
		case a.Email != "" && other != "":
			return fmt.Errorf("%s and %s name one account; each function has its own", other, a.flag("account"))
		default:
			flags[a.Email] = a.flag("account")
		}
	}
	return nil
}

// user is the account of a function.
type user struct {
	Account
	function string
}

func (o Options) accounts() []user {
	return []user{{o.Patrol, Patrol}, {o.Recreate, Recreate}, {o.Checkpoint, Checkpoint}, {o.Recovery, Recovery}}
}

// flag is the flag of that name for the account.
func (u user) flag(name string) string {
	if u.function == Patrol {
		return "--" + name
	}
	return "--" + u.function + "-" + name
}

// acts reports whether the account has rights under these switches.
func (u user) acts(allowed policy.Switches) bool {
	needs := switches[u.function]
	return len(needs) == 0 || slices.ContainsFunc(needs, func(s policy.Switch) bool { return allowed.Level(s) == policy.Yes })
}

func (u user) check() error {
	email, id := u.flag("account"), u.flag("id")
	switch {
	case (u.Email == "") != (u.ID == ""):
		return fmt.Errorf("%s and %s belong together: GKE knows a caller by the one or the other; gcloud iam service-accounts describe ACCOUNT prints both", email, id)
	case u.Email != "" && !account.MatchString(u.Email):
		return fmt.Errorf("%s %.80q is no e-mail address of a service account", email, u.Email)
	case u.ID != "" && !number.MatchString(u.ID):
		return fmt.Errorf("%s %.80q is no numeric ID of a service account; gcloud iam service-accounts describe ACCOUNT --format='value(uniqueId)' prints it", id, u.ID)
	}
	return nil
}

// names are those by which a cluster knows the account.
func (u user) names() []string { return []string{cmp.Or(u.Email, AnyAccount), cmp.Or(u.ID, AnyID)} }

// Object is one object of a manifest.
type Object struct {
	APIVersion string    `yaml:"apiVersion" json:"apiVersion"`
	Kind       string    `yaml:"kind" json:"kind"`
	Metadata   Metadata  `yaml:"metadata" json:"metadata"`
	Spec       any       `yaml:"spec,omitempty" json:"spec,omitempty"` // of a policy or its binding
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

// Objects are the policies, the roles and their bindings, in the order in which they are applied: an account is bounded before it may act.
// All have the account's name, so that deployments in one cluster do not meet.
func Objects(o Options) (all []Object, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	allowed, _ := policy.Allow(o.Allow) //nolint:errcheck // it was checked
	var roles []Object
	for _, u := range o.accounts() {
		if u.acts(allowed) {
			all = append(all, bounds(u, allowed)...)
			roles = append(roles, o.roles(u)...)
		}
	}
	return append(all, roles...), nil
}

// roles are the roles of an account, each with its binding.
func (o Options) roles(u user) []Object {
	names := u.names()
	who := []Subject{{group, "User", names[0]}, {group, "User", names[1]}}
	pair := func(kind, namespace string, rules []Rule) []Object {
		at := Metadata{Name: "pitstop:" + names[0], Namespace: namespace}
		return []Object{
			{APIVersion: group + "/v1", Kind: kind, Metadata: at, Rules: rules},
			{APIVersion: group + "/v1", Kind: kind + "Binding", Metadata: at, RoleRef: &RoleRef{group, kind, at.Name}, Subjects: who},
		}
	}
	all := pair("ClusterRole", "", u.rules(func(r Right) bool { return r.Everywhere || o.All }))
	for _, n := range slices.Compact(slices.Sorted(slices.Values(o.Namespaces))) {
		all = append(all, pair("Role", n, u.rules(func(r Right) bool { return !r.Everywhere }))...)
	}
	return all
}

func (u user) rules(of func(Right) bool) (rules []Rule) {
	for _, r := range Rights() {
		if slices.Contains(r.Functions, u.function) && of(r) {
			rules = append(rules, Rule{[]string{r.Group}, []string{r.Resource}, r.Verbs})
		}
	}
	return rules
}

// YAML writes objects as documents of one file. Where a policy asks for a ConfigMap, a comment has one to fill in: as an object, it would
// overwrite the owner's.
func YAML(objects []Object) (string, error) {
	var b bytes.Buffer
	if slices.ContainsFunc(objects, func(o Object) bool { p, is := o.Spec.(Policy); return is && p.ParamKind != nil }) {
		b.WriteString("# Each namespace needs such a ConfigMap, which its owner keeps. Without it, Pitstop creates nothing there.\n#\n")
		for line := range strings.Lines(Allowed) {
			b.WriteString("#   " + line)
		}
	}
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
