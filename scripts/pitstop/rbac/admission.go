package rbac

import (
	"fmt"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/gke"
)

// The right to create Jobs allows any program under any service account of the namespace. The right to patch machines allows closing them, and
// the right to delete Pods allows ending any service. Roles know no smaller rights. So policies bound these accounts in the API server, and the accounts alone:
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/

// AllowedName is the name of the ConfigMap in which the owner of a namespace lists what Pitstop may create there.
const AllowedName = "pitstop-allowed"

// presetWatch is the policy that allows nothing.
const presetWatch = "watch"

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
  # The Secrets that containers get as variables or volumes, and those that pull images.
  secrets: ""
  # Other fields, by their names: privileged, hostNetwork, tolerations, priorityClassName, livenessProbe and so on. Of volumes, the kinds
  # other than emptyDir, configMap, downwardAPI, secret and projected. Of Pods, labels.KEY=VALUE and annotations.KEY=VALUE. A refusal
  # names what is missing.
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
func bounds(u user, allowed policy.Switches) []Object {
	name := strings.ReplaceAll(u.Email, "@", ".") // a name of this kind may have no @
	switch u.function {
	case Recreate:
		return append(u.bound(name, jobs(allowed.Level(policy.Restart) == policy.Yes), nil), u.bound("lists."+name, lists(), &ParamRef{AllowedName, "Deny"})...)
	case Checkpoint:
		return u.bound(name, machines(), nil)
	case Recovery:
		return u.bound(name, pods(), nil)
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

// The parts of a Job or JobSet, as variables. Each is a list.
var (
	partJobs = Named{"jobs", `request.resource.resource == "jobsets" ? variables.manifest.spec.?replicatedJobs.orValue([]).map(r, r.template) : [variables.manifest]`}
	partPods = Named{"pods", `variables.jobs.map(j, j.spec.template)`}
)

// jobs bounds which Jobs and JobSets are created and deleted. Restarts says that a gang may be deleted which has not failed: an API server
// does not see here whether its training stands still.
func jobs(restarts bool) Policy {
	over := Validation{
		Expression: `request.operation == "CREATE" || "` + events.LabelIncident + `" in oldObject.metadata.?labels.orValue({}) ||
oldObject.?status.terminalState.orValue("") == "Failed" ||
oldObject.?status.conditions.orValue([]).exists(c, c.type == "Failed" && c.status == "True")`,
		Message: "Pitstop deletes nothing that has neither failed nor the label " + events.LabelIncident,
	}
	if restarts {
		over.Expression += ` ||
!oldObject.?status.conditions.orValue([]).exists(c, c.type in ["Complete", "Completed"] && c.status == "True") &&
variables.jobs.exists(j, j.spec.?parallelism.orValue(1) > 1)`
		over.Message += ", unless it is a gang of several Pods that is not complete"
	}
	const policyOf = `of.?metadata.labels[?"` + events.LabelPolicy + `"].orValue("")`
	return Policy{
		MatchConstraints: onJobs("CREATE", "DELETE"),
		Variables: []Named{
			{"manifest", `request.operation == "DELETE" ? oldObject : object`},
			partJobs,
			partPods,
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
				// the API server has added the last four
				Expression: `request.operation == "DELETE" ||
([object] + variables.jobs + variables.pods).all(of, of.?metadata.orValue({}).all(f,
  f in ["name", "namespace", "labels", "annotations", "uid", "creationTimestamp", "generation", "managedFields"]))`,
				Message: "Pitstop creates nothing with an owner, a finalizer or a generated name",
			},
			{
				Expression: `request.operation == "CREATE" || request.options.?preconditions.uid.orValue("") != ""`,
				Message:    "Pitstop deletes nothing without the precondition of its uid",
			},
			{
				// without a word, a Job leaves its Pods
				Expression: `request.operation == "CREATE" || request.options.?propagationPolicy.orValue("") in ["Background", "Foreground"]`,
				Message:    "Pitstop deletes nothing without its Pods: propagationPolicy has to be Background or Foreground",
			},
			over,
			{
				Expression: `([variables.manifest] + variables.jobs).exists(of, ` + policyOf + ` != "") &&
([variables.manifest] + variables.jobs).all(of, ` + policyOf + ` != "` + presetWatch + `")`,
				Message: "Pitstop touches nothing without the label " + events.LabelPolicy + ", or with " + presetWatch + " in it",
			},
		},
	}
}

// others is an expression for the names of the fields of an object that are not free. A field that is false asks for nothing.
func others(o string, free ...string) string {
	return fmt.Sprintf("%[1]s.filter(f, !(f in %[2]s) && %[1]s[f] != false)", o, strings.ReplaceAll(fmt.Sprintf("%q", free), " ", ", "))
}

// lists bounds what is in the Jobs and JobSets that are created. An API server looks for the ConfigMap before it asks who calls, and
// where there is none, it denies the call to everybody. So this policy is only about objects with the label that Pitstop alone sets; the
// other policy demands it.
//
// Privileges are all fields but those that are free: a field of a later Kubernetes has to be listed too.
func lists() Policy {
	match := onJobs("CREATE")
	match.ObjectSelector = &Selector{[]LabelExpression{{events.LabelIncident, "Exists"}}}
	p := Policy{
		ParamKind:        &Kind{"v1", "ConfigMap"},
		MatchConstraints: match,
		Variables: []Named{
			{"manifest", "object"},
			partJobs,
			partPods,
			{"containers", `// a list for each Pod
variables.pods.map(p, p.spec.containers + p.spec.?initContainers.orValue([]))`},
			{"volumes", `// a list for each Pod
variables.pods.map(p, p.spec.?volumes.orValue([]))`},
			{"images", `// joined and split, a list of lists becomes one list
(
  variables.containers.map(of, of.map(c, c.image).join("\n")) +
  variables.volumes.map(of, of.map(v, v.?image.reference.orValue("")).filter(image, image != "").join("\n")).filter(images, images != "")
).join("\n").split("\n")`},
			{"serviceAccounts", `// a Pod has an older name for the same field
variables.pods.map(p, [p.spec.?serviceAccountName.orValue(""), p.spec.?serviceAccount.orValue("")])
  .map(of, of.all(name, name == "") ? "default" : of.filter(name, name != "").join("\n"))
  .join("\n").split("\n")`},
			{"secrets", `(
  variables.pods.map(p, p.spec.?imagePullSecrets.orValue([]).map(s, s.?name.orValue("")).join("\n")) +
  variables.containers.map(of, of.map(c, (
    c.?env.orValue([]).map(e, e.?valueFrom.secretKeyRef.name.orValue("")) +
    c.?envFrom.orValue([]).map(e, e.?secretRef.name.orValue(""))
  ).join("\n")).join("\n")) +
  variables.volumes.map(of, of.map(v, (
    [v.?secret.secretName.orValue(""), v.?csi.nodePublishSecretRef.name.orValue("")] +
    v.?projected.sources.orValue([]).map(s, s.?secret.name.orValue(""))
  ).join("\n")).join("\n"))
).join("\n").split("\n").filter(name, name != "")`},
			{"contexts", `// a list for each Pod
variables.pods.map(p, [p.spec.?securityContext.orValue({})]) +
variables.containers.map(of, of.map(c, c.?securityContext.orValue({})))`},
			{"privileges", privileges()},
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

// privileges is an expression for what has to be listed of the fields of a JobSet, of Jobs, Pods, containers and volumes.
func privileges() string {
	each := func(of, o, fields string) string {
		return of + ".map(" + o + ", " + fields + `.join("\n"))`
	}
	inEach := func(of, o, fields string) string {
		return of + ".map(of, " + each("of", o, fields) + `.join("\n"))`
	}
	parts := []string{
		`(request.resource.resource == "jobsets" ? ` + others("object.spec",
			"replicatedJobs", "network", "successPolicy", "failurePolicy", "startupPolicy", "suspend", "coordinator", "ttlSecondsAfterFinished") + " : [])",
		each("variables.jobs", "j", others("j.spec", "parallelism", "completions", "activeDeadlineSeconds", "podFailurePolicy", "successPolicy",
			"backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "selector", "template", "ttlSecondsAfterFinished", "completionMode",
			"suspend", "podReplacementPolicy")),
		`// a Service or a policy may select a Pod by its labels
  ` + each("variables.pods", "p", `p.?metadata.labels.orValue({})
    .filter(k, !(k in ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"]))
    .map(k, "labels." + k + "=" + p.metadata.labels[k])`),
		each("variables.pods", "p", `p.?metadata.annotations.orValue({}).map(k, "annotations." + k + "=" + p.metadata.annotations[k])`),
		each("variables.pods", "p", others("p.spec", "containers", "initContainers", "volumes", "restartPolicy", "terminationGracePeriodSeconds",
			"activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccountName", "serviceAccount", "shareProcessNamespace",
			"securityContext", "imagePullSecrets", "hostname", "subdomain", "setHostnameAsFQDN", "schedulerName", "tolerations",
			"enableServiceLinks")),
		each("variables.pods", "p", `["schedulerName"].filter(f, p.spec[?f].orValue("default-scheduler") != "default-scheduler")`),
		each("variables.pods", "p", `["tolerations"].filter(f, p.spec[?f].orValue([]).exists(t, t.?key.orValue("") != "google.com/tpu"))`),
		inEach("variables.containers", "c", others("c", "name", "image", "command", "args", "workingDir", "ports", "env", "envFrom", "resources",
			"volumeMounts", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce",
			"tty", "restartPolicy")),
		inEach("variables.containers", "c", `c.?ports.orValue([]).map(o, `+others("o", "name", "containerPort", "protocol")+`.join("\n"))`),
		inEach("variables.containers", "c", others("c.?resources.orValue({})", "limits", "requests")),
		inEach("variables.contexts", "s", `s.filter(f, !(f in ["allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsNonRoot"]) &&
    s[f] != false && !(f == "capabilities" && s[f].?add.orValue([]) == []) &&
    !(f in ["seccompProfile", "appArmorProfile"] && s[f].?type.orValue("") == "RuntimeDefault"))`),
		`// what a volume has beside its name is its kind
  ` + inEach("variables.volumes", "v", `v.filter(kind, !(kind in ["name", "emptyDir", "configMap", "downwardAPI", "secret", "projected"]))`),
		inEach("variables.volumes", "v", `v.?projected.sources.orValue([])
    .map(s, s.filter(kind, !(kind in ["configMap", "downwardAPI", "secret"])).join("\n"))`),
	}
	return "(\n  " + strings.Join(parts, " +\n  ") + "\n" + `).join("\n").split("\n").filter(f, f != "")`
}

// machines bounds who starts maintenance: machines with TPUs that announce it get the one label, and nothing else of any machine changes.
func machines() Policy {
	const maintain = `"` + gke.LabelMaintain + `"`
	return Policy{
		MatchConstraints: Match{ResourceRules: []ResourceRule{{[]string{""}, []string{"*"}, []string{"nodes"}, []string{"UPDATE"}}}},
		Variables: []Named{
			{"before", "oldObject.metadata.?labels.orValue({})"},
			{"after", "object.metadata.?labels.orValue({})"},
		},
		Validations: []Validation{
			{
				Expression: `"` + gke.LabelAccelerator + `" in variables.before && "` + gke.AnnotationMaintenance + `" in oldObject.metadata.?annotations.orValue({})`,
				Message:    "Pitstop labels machines with TPUs that announce maintenance, and no others",
			},
			{
				Expression: `variables.after[?` + maintain + `].orValue("") == "true" &&
variables.before.all(k, k in variables.after) &&
variables.after.all(k, k == ` + maintain + ` || k in variables.before && variables.before[k] == variables.after[k])`,
				Message: "Pitstop sets the label " + gke.LabelMaintain + `="true" and no other`,
			},
			{
				// the API server itself writes who has managed which field
				Expression: `oldObject.all(k, k in object) &&
object.all(k, k == "metadata" || k in oldObject && oldObject[k] == object[k]) &&
oldObject.metadata.all(k, k in object.metadata) &&
object.metadata.all(k, k in ["labels", "managedFields"] || k in oldObject.metadata && oldObject.metadata[k] == object.metadata[k])`,
				Message: "Pitstop changes nothing of a machine but a label",
			},
		},
	}
}

// pods bounds which Pods are ended: those of Jobs on TPUs that are being deleted already, each by its UID. Of their status only the phase
// may change. Whether their machine answers, and what labels their Job had, an API server does not see here.
func pods() Policy {
	return Policy{
		MatchConstraints: Match{ResourceRules: []ResourceRule{
			{[]string{""}, []string{"*"}, []string{"pods"}, []string{"DELETE"}},
			{[]string{""}, []string{"*"}, []string{"pods", "pods/status", "pods/ephemeralcontainers", "pods/resize"}, []string{"UPDATE"}},
		}},
		Variables: []Named{
			{"resources", "oldObject.spec.containers.map(c, c.?resources.limits.orValue({}))"},
			{"before", "oldObject.?status.orValue({})"},
			{"after", `request.operation == "DELETE" ? {} : object.?status.orValue({})`},
		},
		Validations: []Validation{
			{
				Expression: `request.operation != "DELETE" || request.options.?preconditions.uid.orValue("") != ""`,
				Message:    "Pitstop deletes nothing without the precondition of its uid",
			},
			{
				Expression: `oldObject.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "Job" && o.?controller.orValue(false)) &&
variables.resources.exists(r, "google.com/tpu" in r)`,
				Message: "Pitstop ends the Pods of Jobs on TPUs, and no others",
			},
			{
				Expression: `has(oldObject.metadata.deletionTimestamp)`,
				Message:    "Pitstop ends Pods that are being deleted, and no others",
			},
			{
				// the API server itself writes who has managed which field, and leaves the deletion as it is
				Expression: `request.operation == "DELETE" || request.subResource == "status" && variables.after.?phase.orValue("") == "Failed" &&
!(variables.before.?phase.orValue("") in ["Succeeded", "Failed"]) &&
variables.before.all(k, k in variables.after) &&
variables.after.all(k, k == "phase" || k in variables.before && variables.before[k] == variables.after[k]) &&
oldObject.metadata.all(k, k == "deletionTimestamp" || k in object.metadata) &&
object.metadata.all(k, k in ["managedFields", "deletionTimestamp"] || k in oldObject.metadata && oldObject.metadata[k] == object.metadata[k])`,
				Message: "Pitstop says of a Pod that it has failed, and changes nothing else",
			},
		},
	}
}
