// Package rbac makes the manifests by which a cluster lets the accounts of Pitstop read trainings and, where its owner allows it, act on
// them: roles with their bindings, and policies that bound what a role cannot.
package rbac

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pitstop.internal/shared/policy"
)

// The functions whose accounts call a cluster.
const (
	Patrol     = "patrol"
	Recreate   = "recreate"
	Checkpoint = "checkpoint"
)

// switches are those that an acting function needs one of. Without it, a cluster grants its account nothing.
var switches = map[string][]policy.Switch{
	Recreate:   {policy.Recreate, policy.RecreateNonSpot},
	Checkpoint: {policy.EarlyMaintenance},
}

// Account is a service account: its e-mail address, and its numeric ID. GKE knows a caller by the one or the other.
// https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
type Account struct{ Email, ID string }

// Options say who may do what, and where.
type Options struct {
	// Patrol reads. The others act, where Allow has a switch for them, and have no rights elsewhere.
	Patrol, Recreate, Checkpoint Account
	// Allow are switches of a policy, separated by commas. One that needs no right in a cluster adds none.
	Allow string
	// Namespaces are those with trainings. All takes every namespace instead, those that are made later too.
	Namespaces []string
	All        bool
}

// AllowedName is the name of the ConfigMap Allowed.
const AllowedName = "pitstop-allowed"

// The words that stand for an account that is not named.
const (
	anyAccount = "ACCOUNT"
	anyID      = "NUMERIC_ID"
)

var (
	account   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*@[a-z0-9.-]+\.gserviceaccount\.com$`)
	number    = regexp.MustCompile(`^[0-9]{1,30}$`)
	namespace = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// check returns what is allowed, or the first fault of the options.
func (o Options) check() (allowed policy.Switches, err error) {
	switch {
	case o.All && len(o.Namespaces) > 0:
		return allowed, errors.New("--all-namespaces takes every namespace, so --namespace does not go with it")
	case !o.All && len(o.Namespaces) == 0:
		return allowed, errors.New("--namespace is missing: the namespaces with trainings, as in --namespace train")
	}
	for _, n := range o.Namespaces {
		if !namespace.MatchString(n) {
			return allowed, fmt.Errorf("--namespace %.80q is no name of a namespace", n)
		}
	}
	if allowed, err = policy.Allow(o.Allow); err != nil {
		return allowed, fmt.Errorf("--%w", err)
	}
	flags := map[string]string{}
	for _, a := range o.accounts() {
		if err := a.check(); err != nil {
			return allowed, err
		}
		switch other := flags[a.Email]; {
		case a.Email == "" && len(switches[a.function]) > 0 && a.acts(allowed):
			return allowed, fmt.Errorf("--allow=%s lets %s act, so %s and %s are needed; terraform output cluster_rights prints all flags", o.Allow, a.function, a.flag("account"), a.flag("id"))
		case a.Email != "" && other != "":
			return allowed, fmt.Errorf("%s and %s name one account; each function has its own", other, a.flag("account"))
		default:
			flags[a.Email] = a.flag("account")
		}
	}
	return allowed, nil
}

// user is the account of a function.
type user struct {
	Account
	function string
}

func (o Options) accounts() []user {
	return []user{{o.Patrol, Patrol}, {o.Recreate, Recreate}, {o.Checkpoint, Checkpoint}}
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

// Allowed is a ConfigMap to be filled in, in which the owner of a namespace lists what Pitstop may create there.
//
//go:embed allowed.yaml
var Allowed string

// manifests has a file for each function. Its policies come first, because an account is bounded before it may act: what a role cannot
// bound, they do. Then come the role for what belongs to no namespace and its binding, and the role for a namespace and its binding. All
// objects have the account's name, so that deployments in one cluster do not meet.
//
//go:embed patrol.yaml recreate.yaml checkpoint.yaml
var manifests embed.FS

// between stands between two documents of a manifest.
const between = "---\n"

// Manifest is what a cluster needs, for kubectl apply. Where a policy asks for a ConfigMap, a comment has one to fill in: as an object, it
// would overwrite the owner's.
func Manifest(o Options) (string, error) {
	allowed, err := o.check()
	if err != nil {
		return "", err
	}
	var text string
	var all []string
	for _, u := range o.accounts() {
		if !u.acts(allowed) {
			continue
		}
		if u.function == Recreate {
			text = "# Each namespace needs such a ConfigMap, which its owner keeps. Without it, Pitstop creates nothing there.\n#\n"
			for line := range strings.Lines(Allowed) {
				text += "#   " + line
			}
		}
		documents, err := o.documents(u)
		if err != nil {
			return "", err
		}
		all = append(all, documents...)
	}
	return text + strings.Join(all, between), nil
}

// documents are those of an account.
func (o Options) documents(u user) ([]string, error) {
	raw, err := manifests.ReadFile(u.function + ".yaml")
	if err != nil {
		return nil, err
	}
	email := cmp.Or(u.Email, anyAccount)
	named := strings.NewReplacer(
		anyAccount, email, anyID, cmp.Or(u.ID, anyID),
		"BOUNDS", strings.ReplaceAll(email, "@", "."), // the name of a policy may have no @
	).Replace(string(raw))
	documents := strings.Split(named, between)
	inNamespace := len(documents) - 2
	role, binding := documents[inNamespace], documents[inNamespace+1]
	documents = documents[:inNamespace]
	if o.All { // the role for the cluster takes in what the one for a namespace allows
		_, rules, _ := strings.Cut(role, "rules:\n")
		documents[inNamespace-2] += rules
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(o.Namespaces))) {
		documents = append(documents, strings.ReplaceAll(role, "NAMESPACE", n), strings.ReplaceAll(binding, "NAMESPACE", n))
	}
	return documents, nil
}
