package events

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Party is who made a call, as far as the call's word counts.
type Party string

// The parties. Whoever is none of the others is an owner, also one whom the log does not name.
const (
	PartyOwner      Party = "owner"
	PartyOurs       Party = "ours"
	PartyGoogle     Party = "google"
	PartyController Party = "controller" // a part of a cluster, which carries out what others ask for
	PartyNobody     Party = "nobody"     // only an operation ends, and the entry does not say whose it was
)

// Accounts are the accounts that a deployment knows by name. No other account counts as one of them, whatever its name.
type Accounts struct {
	// Ours are those that Pitstop itself acts as.
	Ours []string
	// Controllers are service accounts that only carry out in a cluster what an owner declares there, beside those that Pitstop knows.
	Controllers []string
}

// controllerName matches a service account of a cluster, and one of Google Cloud. A person is no controller.
var controllerName = regexp.MustCompile(`^(system:serviceaccount:[a-z0-9][-a-z0-9]*:[a-z0-9][-a-z0-9.]*|[-a-z0-9]+@[-a-z0-9.]+[.]gserviceaccount[.]com)$`)

// Validate returns every fault in the names of controllers.
func (a Accounts) Validate() error {
	var faults []error
	for _, c := range a.Controllers {
		if !controllerName.MatchString(c) {
			faults = append(faults, fmt.Errorf("CONTROLLERS: %.80q is no service account; write system:serviceaccount:NAMESPACE:NAME, or an account's e-mail address", c))
		}
	}
	return errors.Join(faults...)
}

// Party is who made a call. It alone decides whose word counts.
func (a Accounts) Party(c Call) Party {
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.EqualFold(p, c.Principal) })
	}
	switch {
	case c.Principal == "" && !c.Begins():
		return PartyNobody
	case c.Principal == "":
		return PartyOwner
	case named(a.Ours):
		return PartyOurs
	case google(c.Principal):
		return PartyGoogle
	case controller(c.Principal), named(a.Controllers):
		return PartyController
	}
	return PartyOwner
}

// Begins reports whether the entry of the call is its first or its only one.
func (c Call) Begins() bool { return c.First || !c.Last }

// Callers remembers who began operations, by the log's identifier of each. The entry that ends one may name nobody.
type Callers map[string]string

// Attribute gives the end of an operation to whoever began it. The entries come one by one, the oldest first.
func (begun Callers) Attribute(c *Call) {
	switch {
	case c.Operation == "" || c.First && c.Last:
	case !c.Last:
		begun[c.Operation] = c.Principal
	default:
		c.Principal = cmp.Or(c.Principal, begun[c.Operation])
		delete(begun, c.Operation)
	}
}

// By names who called, for people.
func (c Call) By() string { return cmp.Or(c.Principal, "nobody named") }

// Automatic reports whether a service account called: somebody's tool, which keeps what they declared as they declared it.
func (c Call) Automatic() bool {
	return strings.HasPrefix(c.Principal, serviceAccounts) || strings.HasSuffix(c.Principal, ".gserviceaccount.com") ||
		strings.Contains(c.Principal, ".svc.id.goog[") || strings.Contains(c.Principal, "/workloadIdentityPools/")
}

// Orphaned reports whether the garbage collector of a cluster made the call. It deletes an object only if the object's owner is gone, or is
// being deleted.
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/
func (c Call) Orphaned() bool {
	return c.Principal == serviceAccounts+"kube-system:generic-garbage-collector"
}

// serviceAccounts is how the names of service accounts of a cluster begin: NAMESPACE:NAME follows.
const serviceAccounts = "system:serviceaccount:"

// controlling are the namespaces with the controllers that a cluster, or JobSet, or Kueue comes with, as regular expressions.
var controlling = []string{"kube-system", "jobset-system", "kueue-system", "gke-managed-[^:]*"}

// byNamespace is a service account in one of them.
var byNamespace = "^" + serviceAccounts + "(" + strings.Join(controlling, "|") + "):"

var ofControllers = regexp.MustCompile(byNamespace)

// controller reports whether a principal is a part of every cluster: a controller, a machine, the API server itself. Every other service
// account of a cluster is somebody's tool.
func controller(principal string) bool {
	if strings.HasPrefix(principal, serviceAccounts) {
		return ofControllers.MatchString(principal)
	}
	return strings.HasPrefix(principal, "system:")
}

// google reports whether a principal is Google itself: the system, or a service agent.
func google(principal string) bool {
	if principal == "system@google.com" {
		return true
	}
	name, domain, _ := strings.Cut(principal, "@")
	if domain == "cloudservices.gserviceaccount.com" {
		return digits(name)
	}
	n, ok := strings.CutPrefix(name, "service-")
	project, robot := strings.CutSuffix(domain, ".iam.gserviceaccount.com")
	return ok && robot && digits(n) && (strings.HasPrefix(project, "gcp-sa-") || slices.Contains(agents, project))
}

// agents are the projects, besides gcp-sa-*, in which Google keeps the service agents that may handle TPUs. Anybody may give
// an account in their own project the name of an agent. https://cloud.google.com/iam/docs/service-agents
var agents = []string{"cloud-tpu", "compute-system", "container-engine-robot", "cloud-ml.google.com"}

// authentication is who made an audited call, as the log says it.
// https://cloud.google.com/logging/docs/reference/audit/auditlog/rest/Shared.Types/AuditLog#AuthenticationInfo
type authentication struct {
	identity

	// Delegation lists those who called in the name of a service account, one through the other.
	Delegation jsontext.Value `json:"serviceAccountDelegationInfo"`
}

// identity names one of them. A federated identity has no e-mail address, and every identity may have a subject.
type identity struct {
	Email   string `json:"principalEmail"`
	Subject string `json:"principalSubject"`
}

// name is the identity's one name. The subject of an account is its e-mail address with the kind of the account before it.
func (i identity) name() string {
	subject := strings.TrimPrefix(strings.TrimPrefix(i.Subject, "serviceAccount:"), "user:")
	return short(cmp.Or(i.Email, subject))
}

// person reports whether a name is certainly that of a person or of another federated identity, and of no service account.
func person(name string) bool {
	return strings.HasPrefix(name, "principal:") || strings.Contains(name, "@") && name != "system@google.com" && !strings.HasSuffix(name, "gserviceaccount.com")
}

// caller is who called: the person behind a borrowed service account, else the account itself, else whoever borrowed one that the log
// does not name. A function's own account is borrowed by Google's agents, which are nobody.
func (a authentication) caller() string {
	var chain []struct {
		identity

		FirstParty identity `json:"firstPartyPrincipal"`
	}
	if len(a.Delegation) == 0 || !peek(a.Delegation, &chain) {
		chain = nil
	}
	first := ""
	for _, link := range chain {
		name := cmp.Or(link.FirstParty.name(), link.name())
		if person(name) {
			return name
		}
		first = cmp.Or(first, name)
	}
	return cmp.Or(a.name(), first)
}
