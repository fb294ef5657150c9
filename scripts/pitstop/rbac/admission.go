package rbac

import (
	"fmt"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/gke"
)

// Who may create a Job may run any program as any service account of its namespace, and who may patch a machine may also close it. Roles
// know no smaller rights. So policies bound these two accounts in the API server, and the accounts alone:
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/

const (
	// AllowedName is the name of the ConfigMap in which the owner of a namespace lists what Pitstop may create there.
	AllowedName = "pitstop-allowed"
	// labelMaintain lets the maintenance of a machine begin. https://cloud.google.com/kubernetes-engine/docs/how-to/tpus
	labelMaintain = "cloud.google.com/perform-maintenance"
	labelTPU      = "cloud.google.com/gke-tpu-accelerator"
)

// Allowed is such a ConfigMap, to be filled in.
const Allowed = `apiVersion: v1
kind: ConfigMap
metadata:
  name: ` + AllowedName + `
  namespace: NAMESPACE
data:
  # Each list has one item a line. Pitstop creates nothing with what is not listed.
  images: |
    IMAGE
  # A Pod that names no service account uses default.
  serviceAccounts: |
    default
  # The Secrets that containers get as variables or volumes.
  secrets: ""
  # Fields of a Pod: privileged, capabilities, hostNetwork, hostPID, hostIPC, the kinds of volumes other than emptyDir, configMap,
  # downwardAPI, secret and projected, and the sources of projected ones, such as serviceAccountToken.
  privileges: ""
`

// Policy is the specification of a ValidatingAdmissionPolicy.
type Policy struct {
	FailurePolicy    string       `yaml:"failurePolicy" json:"failurePolicy"`
	ParamKind        *Kind        `yaml:"paramKind,omitempty" json:"paramKind,omitempty"`
	MatchConstraints Match        `yaml:"matchConstraints" json:"matchConstraints"`
	MatchConditions  []Named      `yaml:"matchConditions" json:"matchConditions"`
	Variables        []Named      `yaml:"variables" json:"variables"`
	Validations      []Validation `yaml:"validations" json:"validations"`
}

// Kind is a kind of objects.
type Kind struct {
	APIVersion string `yaml:"apiVersion" json:"apiVersion"`
	Kind       string `yaml:"kind" json:"kind"`
}

// Match says which calls a policy is asked about.
type Match struct {
	ResourceRules  []ResourceRule `yaml:"resourceRules" json:"resourceRules"`
	ObjectSelector *Selector      `yaml:"objectSelector,omitempty" json:"objectSelector,omitempty"`
}

// Selector selects objects by their labels.
type Selector struct {
	MatchExpressions []LabelExpression `yaml:"matchExpressions" json:"matchExpressions"`
}

// LabelExpression is what a selector asks of one label.
type LabelExpression struct {
	Key      string `yaml:"key" json:"key"`
	Operator string `yaml:"operator" json:"operator"`
}

// ResourceRule is one sort of calls.
type ResourceRule struct {
	APIGroups   []string `yaml:"apiGroups,flow" json:"apiGroups"`
	APIVersions []string `yaml:"apiVersions,flow" json:"apiVersions"`
	Resources   []string `yaml:"resources,flow" json:"resources"`
	Operations  []string `yaml:"operations,flow" json:"operations"`
}

// Named is an expression in CEL with a name.
type Named struct {
	Name       string `yaml:"name" json:"name"`
	Expression string `yaml:"expression" json:"expression"`
}

// Validation is an expression in CEL that has to be true, and what the caller is told where it is not. How is an expression for that.
type Validation struct {
	Expression string `yaml:"expression" json:"expression"`
	Message    string `yaml:"message,omitempty" json:"message,omitempty"`
	How        string `yaml:"messageExpression,omitempty" json:"messageExpression,omitempty"`
}

// PolicyBinding is the specification of a ValidatingAdmissionPolicyBinding.
type PolicyBinding struct {
	PolicyName        string    `yaml:"policyName" json:"policyName"`
	ParamRef          *ParamRef `yaml:"paramRef,omitempty" json:"paramRef,omitempty"`
	ValidationActions []string  `yaml:"validationActions,flow" json:"validationActions"`
}

// ParamRef is the object that a policy is asked with: of that name, in the namespace of the call.
type ParamRef struct {
	Name                    string `yaml:"name" json:"name"`
	ParameterNotFoundAction string `yaml:"parameterNotFoundAction" json:"parameterNotFoundAction"`
}

// bounds are the policies of an account, each with its binding. An account that only reads has none.
func bounds(u user) []Object {
	name := strings.ReplaceAll(u.Email, "@", ".") // a name of this kind may have no @
	switch u.function {
	case Recreate:
		return append(u.bound(name, jobs(), nil), u.bound("lists."+name, lists(), &ParamRef{AllowedName, "Deny"})...)
	case Checkpoint:
		return u.bound(name, machines(), nil)
	}
	return nil
}

// bound is a policy that binds the account alone.
func (u user) bound(name string, p Policy, with *ParamRef) []Object {
	p.FailurePolicy = "Fail"
	p.MatchConditions = []Named{{"the-account", fmt.Sprintf("request.userInfo.username in [%q, %q]", u.Email, u.ID)}}
	const version = "admissionregistration.k8s.io/v1"
	return []Object{
		{APIVersion: version, Kind: "ValidatingAdmissionPolicy", Metadata: Metadata{Name: name}, Spec: p},
		{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding", Metadata: Metadata{Name: name}, Spec: PolicyBinding{name, with, []string{"Deny"}}},
	}
}

// onJobs are calls about Jobs and JobSets.
func onJobs(operations ...string) Match {
	return Match{ResourceRules: []ResourceRule{
		{[]string{"batch"}, []string{"*"}, []string{"jobs"}, operations},
		{[]string{"jobset.x-k8s.io"}, []string{"*"}, []string{"jobsets"}, operations},
	}}
}

// jobs bounds which Jobs and JobSets are created and deleted.
func jobs() Policy {
	return Policy{
		MatchConstraints: onJobs("CREATE", "DELETE"),
		Variables: []Named{
			{"manifest", `request.operation == "DELETE" ? oldObject : object`},
		},
		Validations: []Validation{
			{
				Expression: `request.operation == "DELETE" || object.metadata.?annotations[?"` + gke.AnnotationRequest + `"].orValue("") != ""`,
				Message:    "Pitstop creates nothing without the annotation " + gke.AnnotationRequest,
			},
			{
				Expression: `request.operation == "DELETE" || "` + events.LabelIncident + `" in object.metadata.?labels.orValue({})`,
				Message:    "Pitstop creates nothing without the label " + events.LabelIncident,
			},
			{
				Expression: `request.operation == "CREATE" || request.options.?preconditions.uid.orValue("") != ""`,
				Message:    "Pitstop deletes nothing without the precondition of its uid",
			},
			{
				Expression: `([variables.manifest] + variables.manifest.spec.?replicatedJobs.orValue([]).map(r, r.template))
  .exists(of, "` + events.LabelPolicy + `" in of.?metadata.labels.orValue({}))`,
				Message: "Pitstop touches nothing without the label " + events.LabelPolicy,
			},
		},
	}
}

// lists bounds what is in the Jobs and JobSets that are created. An API server looks for the ConfigMap before it asks who calls, and
// where there is none, it denies the call to everybody. So this policy is only about objects with the label that Pitstop alone sets; the
// other policy demands it.
func lists() Policy {
	match := onJobs("CREATE")
	match.ObjectSelector = &Selector{[]LabelExpression{{events.LabelIncident, "Exists"}}}
	p := Policy{
		ParamKind:        &Kind{"v1", "ConfigMap"},
		MatchConstraints: match,
		Variables: []Named{
			{"pods", `request.resource.resource == "jobsets"
  ? object.spec.replicatedJobs.map(r, r.template.spec.template.spec)
  : [object.spec.template.spec]`},
			{"containers", `// a list for each Pod
variables.pods.map(p, p.containers + p.?initContainers.orValue([]))`},
			{"volumes", `// a list for each Pod
variables.pods.map(p, p.?volumes.orValue([]))`},
			{"images", `// joined and split, a list of lists becomes one list
variables.containers.map(of, of.map(c, c.image).join("\n")).join("\n").split("\n")`},
			{"serviceAccounts", `// a Pod has an older name for the same field
variables.pods.map(p, [p.?serviceAccountName.orValue(""), p.?serviceAccount.orValue("")])
  .map(of, of.all(name, name == "") ? "default" : of.filter(name, name != "").join("\n"))
  .join("\n").split("\n")`},
			{"secrets", `(
  variables.containers.map(of, of.map(c, (
    c.?env.orValue([]).map(e, e.?valueFrom.secretKeyRef.name.orValue("")) +
    c.?envFrom.orValue([]).map(e, e.?secretRef.name.orValue(""))
  ).join("\n")).join("\n")) +
  variables.volumes.map(of, of.map(v, (
    [v.?secret.secretName.orValue(""), v.?csi.nodePublishSecretRef.name.orValue("")] +
    v.?projected.sources.orValue([]).map(s, s.?secret.name.orValue(""))
  ).join("\n")).join("\n"))
).join("\n").split("\n").filter(name, name != "")`},
			{"privileges", `(
  ["hostNetwork", "hostPID", "hostIPC"].filter(f, variables.pods.exists(p, p[?f].orValue(false))) +
  ["privileged"].filter(f, variables.containers.exists(of, of.exists(c, c.?securityContext[?f].orValue(false)))) +
  ["capabilities"].filter(f, variables.containers.exists(of, of.exists(c, c.?securityContext[?f].add.orValue([]) != []))) +
  // what a volume has beside its name is its kind
  variables.volumes.map(of, of.map(v, v.filter(kind, kind != "name").join("\n")).join("\n")) +
  variables.volumes.map(of, of.map(v, v.?projected.sources.orValue([]).map(s, s.filter(kind, true).join("\n")).join("\n")).join("\n"))
).join("\n").split("\n").filter(f, !(f in ["", "emptyDir", "configMap", "downwardAPI", "secret", "projected"]))`},
		},
	}
	for _, list := range []string{"images", "serviceAccounts", "secrets", "privileges"} {
		allowed := "allowed" + strings.ToUpper(list[:1]) + list[1:]
		p.Variables = append(p.Variables, Named{
			allowed, `params.?data.` + list + `.orValue("").split("\n").map(line, line.trim()).filter(line, line != "")`,
		})
		p.Validations = append(p.Validations, Validation{
			Expression: "variables." + list + ".all(x, x in variables." + allowed + ")",
			How: `"the key ` + list + ` of the ConfigMap ` + AllowedName + ` does not list " +
  variables.` + list + `.filter(x, !(x in variables.` + allowed + `)).join(", ")`,
		})
	}
	return p
}

// machines bounds who starts maintenance: machines with TPUs get the one label, and nothing else of them changes.
func machines() Policy {
	const maintain = `"` + labelMaintain + `"`
	return Policy{
		MatchConstraints: Match{ResourceRules: []ResourceRule{{[]string{""}, []string{"*"}, []string{"nodes"}, []string{"UPDATE"}}}},
		Variables: []Named{
			{"before", "oldObject.metadata.?labels.orValue({})"},
			{"after", "object.metadata.?labels.orValue({})"},
		},
		Validations: []Validation{
			{
				Expression: `"` + labelTPU + `" in variables.before`,
				Message:    "Pitstop labels machines with TPUs alone",
			},
			{
				Expression: `variables.after[?` + maintain + `].orValue("") == "true" &&
variables.before.all(k, k in variables.after) &&
variables.after.all(k, k == ` + maintain + ` || k in variables.before && variables.before[k] == variables.after[k])`,
				Message: "Pitstop sets the label " + labelMaintain + `="true" and no other`,
			},
			{
				Expression: `oldObject.all(k, k in object) &&
object.all(k, k == "metadata" || k in oldObject && oldObject[k] == object[k]) &&
oldObject.metadata.all(k, k in object.metadata) &&
object.metadata.all(k, k in ["labels", "managedFields"] || k in oldObject.metadata && oldObject.metadata[k] == object.metadata[k])`,
				Message: "Pitstop changes nothing of a machine but a label",
			},
		},
	}
}
