package events

import (
	"maps"
	"slices"
	"strings"
)

// Sink is a log sink: it selects the entries that Cloud Logging sends to a topic. Its filter is built from the tables that
// the reader uses, so that both know the same entries.
type Sink struct {
	// Name is the source, in words that a resource name allows.
	Name string
	// Topic is the topic for its entries. A sink without one is not deployed: Pitstop only notes such entries when it reads
	// logs fetched from the past.
	Topic string
	// Filter is in the Logging query language, one clause per line.
	// https://cloud.google.com/logging/docs/view/logging-query-language
	Filter string
	// About describes the entries, for people.
	About string
}

// MaxFilter is the longest filter, in characters, for a sink or a query.
const MaxFilter = 20_000

// Sinks are the sinks of all sources that are read from Cloud Logging. Of the calls that the deployment's own accounts make only the ends
// are sent, and what a cluster's controllers do to Jobs is not. An account that is not known never counts as one of them.
func Sinks(known Accounts) []Sink {
	byControllers := byControllers(known)
	return []Sink{
		{
			Name: "tpu-events", Topic: TopicLogs, About: "system events of the TPU service, one for each TPU",
			Filter: all(
				either(logIs(systemLog), logIs(activityLog)),
				is("resource.type", "audited_resource", "tpu_worker", "tpu.googleapis.com/TpuWorker"),
				is("protoPayload.methodName", names(tpuEvents)...), notOurs,
			),
		},
		{
			Name: "compute-events", Topic: TopicLogs, About: "system events of Compute Engine, one for each worker of a TPU",
			Filter: all(onWorkers, is("protoPayload.methodName", names(computeEvents)...), notOurs),
		},
		{
			Name: "maintenance", Topic: TopicNotices, About: "announced maintenance, begun and over, one for each worker of a TPU",
			Filter: all(onWorkers, is("protoPayload.methodName", names(upcoming)...), notOurs),
		},
		{
			Name: "tpu-audit", Topic: TopicLogs, About: "who created, deleted, started and stopped TPUs; of Pitstop's own calls only the ends",
			Filter: all(append([]string{
				logIs(activityLog), is("resource.type", "audited_resource"), is("protoPayload.serviceName", "tpu.googleapis.com"),
				`protoPayload.methodName=~"^google[.]cloud[.]tpu[.]v[0-9a-z]+[.]Tpu[.](` + strings.Join(slices.Sorted(maps.Keys(calls)), "|") + `)$"`,
			}, append(begunByUs(known.Ours), notOurs)...)...),
		},
		{
			Name: "crew", Topic: TopicLogs, About: "reports of the crews next to the training",
			Filter: all(logIs(CrewLog), is("resource.type", "gce_instance", "tpu_worker", "k8s_container", "generic_node", "generic_task", "global"), notOurs),
		},
		{
			Name: "training-lines", Topic: TopicLogs, About: "lines of training frameworks that got a signal to end",
			Filter: all(
				either(logIs(runtimeLog), logIs("google_metadata_script_runner"), logIs("syslog"), logIs("python")),
				is("resource.type", "tpu_worker", "gce_instance"),
				toldToEnd, `NOT jsonPayload.verb="`+stackDump+`"`, notOurs,
			),
		},
		{
			Name: "canary", Topic: TopicLogs, About: "the entry that shows once a day that entries arrive",
			Filter: all(logIs(CanaryLog), is("resource.type", "global"), notOurs),
		},
		{
			Name: "gke-jobs", Topic: TopicLogs, About: "who created, deleted, suspended and resumed Jobs and JobSets of GKE",
			Filter: all(onJobs(), "NOT "+byControllers, notOurs),
		},
		{
			Name: "gke-machines", Topic: TopicLogs, About: "system events of Compute Engine that say why a machine of GKE is lost",
			Filter: all(logIs(systemLog), is("resource.type", "gce_instance"), onGKE, is("protoPayload.methodName", lossEvents()...), notOurs),
		},
		{
			Name: "gke-controllers", About: "Jobs and JobSets of GKE that controllers of the cluster, or Pitstop, created, deleted, suspended and resumed",
			Filter: all(onJobs(), byControllers, notOurs),
		},
		{
			Name: "training-jobs", About: "jobs of Vertex AI and AI Platform",
			Filter: all(
				`logName=~"/logs/(ml[.]googleapis[.]com%2F|workerpool[0-9]+-[0-9]+$)"`,
				is("resource.type", "ml_job", "cloudml_job", "aiplatform.googleapis.com/CustomJob"),
				either(`severity>=ERROR`, has("textPayload", "JOB_STATE_"), has("jsonPayload.message", "JOB_STATE_"), `jsonPayload.jobState:*`,
					has("textPayload", "Job completed successfully."), has("jsonPayload.message", "Job completed successfully."),
					has("textPayload", sayCaught), has("textPayload", sayStopped), has("jsonPayload.message", sayCaught), has("jsonPayload.message", sayStopped)),
				notOurs,
			),
		},
		{
			Name: "managed-instance-groups", About: "system events on machines of managed instance groups, found by their names",
			Filter: all(
				logIs(systemLog), is("resource.type", "gce_instance"),
				is("protoPayload.methodName", append(names(computeEvents), names(upcoming)...)...),
				either(`protoPayload.resourceName=~"/instances/[a-z][-a-z0-9]*-[a-z0-9]{4}$"`, is("protoPayload.methodName", "compute.instances.repair.recreateInstance")),
				`NOT protoPayload.resourceName=~"/instances/(gke-|gk3-|t1v-n-[0-9a-f]{8}-w-)"`, notOurs,
			),
		},
		{
			Name: "instance-schedules", About: "machines that an instance schedule stops",
			Filter: all(
				logIs(systemLog), is("resource.type", "gce_instance"), is("protoPayload.methodName", names(scheduled)...),
				`protoPayload.response.operationType="stop"`,
				`protoPayload.response.targetLink=~"/instances/(t1v-n-[0-9a-f]{8}-w-[0-9]+$|gke-|gk3-)"`, notOurs,
			),
		},
		{
			Name: "reservations", About: "announced maintenance of whole reservations, in All-Capacity mode",
			Filter: all(logIs(systemLog), is("protoPayload.methodName", names(upcoming)...), `protoPayload.resourceName=~"/reservations/"`, notOurs),
		},
		{Name: "gke", About: "nodes and node pools of GKE, and the ends of Jobs", Filter: gkeFilter()},
		{
			Name: "gke-training-lines", About: "lines of training frameworks in pods of GKE that got a signal to end",
			Filter: all(either(logIs("stdout"), logIs("stderr")), is("resource.type", "k8s_container"), toldToEnd, `NOT jsonPayload.verb="`+stackDump+`"`, notOurs),
		},
	}
}

// onGKE is an entry about a machine of GKE.
const onGKE = `protoPayload.resourceName=~"/instances/(gke|gk3)-"`

// lossEvents are the system events that say why a machine of GKE is lost. One that moves to another host goes on.
func lossEvents() (methods []string) {
	for _, m := range names(computeEvents) {
		if computeEvents[m].kind == KindLoss && m != "compute.instances."+migrated {
			methods = append(methods, m)
		}
	}
	return methods
}

// gkeFilter has one part for each log that GKE writes.
func gkeFilter() string {
	mark := func(where, label string) string { return "protoPayload." + where + `."` + label + `":*` }
	var marks []string
	for _, object := range []string{"request", "response"} {
		for _, label := range []string{markScheduled, markActive} {
			marks = append(marks, mark(object+".metadata.labels", label))
		}
		marks = append(marks, has("protoPayload."+object+".spec.taints.key", markEnding), has("protoPayload."+object+`.metadata.annotations."`+markOperation+`"`, "UPGRADE_NODES"))
	}
	return either(
		all(
			logIs(eventLog), is("resource.type", "k8s_node", "k8s_cluster", "k8s_pod"),
			either(
				is("jsonPayload.reason", "TerminationEvent", "MaintenanceEvent", "PreemptionEvent", refusedReason),
				`(jsonPayload.involvedObject.kind="Node" AND (`+is("jsonPayload.reason", "NodeNotReady", "NodeStatusUnknown", "ScaleDown")+
					" OR "+has("jsonPayload.message", "Kubelet stopped posting node status")+" OR "+has("jsonPayload.message", "status is now: NodeNotReady")+"))",
				is("jsonPayload.involvedObject.kind", "ProvisioningRequest"),
				"("+is("jsonPayload.involvedObject.kind", "Job", "JobSet")+" AND "+is("jsonPayload.reason", jobReasons()...)+")",
				`(jsonPayload.involvedObject.kind="Workload" AND jsonPayload.reason=~"^`+evictedReason+`")`,
			),
		),
		all(logIs(scalerLog), is("resource.type", "k8s_cluster"), `jsonPayload.decision.scaleDown.nodesToBeRemoved.node.name:*`),
		all(logIs(clusterLog), is("resource.type", "gke_cluster", "gke_nodepool"), has(`jsonPayload."@type"`, "google.container.")),
		all(logIs(systemLog), is("resource.type", "gce_instance"), onGKE, "NOT "+is("protoPayload.methodName", lossEvents()...), is("protoPayload.methodName", append(names(computeEvents), names(upcoming)...)...)),
		all(logIs(activityLog), is("resource.type", "gce_instance"), onGKE, `protoPayload.methodName=~"[.]compute[.]instances[.]delete$"`),
		all(logIs(activityLog), is("resource.type", "k8s_cluster"), is("protoPayload.methodName", "io.k8s.core.v1.nodes.update", "io.k8s.core.v1.nodes.patch"), either(marks...)),
	) + "\nAND " + notOurs
}

// jobReasons are the reasons of events about the end of a Job or a JobSet.
func jobReasons() (reasons []string) {
	for _, by := range []map[string][]string{failedReasons, completedReasons} {
		for _, r := range by {
			reasons = append(reasons, r...)
		}
	}
	return slices.Sorted(slices.Values(reasons))
}

// onJobs is a call that creates or deletes a Job or a JobSet, or sets its field suspend.
func onJobs() string {
	var groups, resources []string
	for _, k := range kubernetesKinds {
		groups, resources = append(groups, k.groups...), append(resources, k.resource)
	}
	method := func(verbs string) string {
		return `protoPayload.methodName=~"^(` + strings.ReplaceAll(strings.Join(groups, "|"), ".", "[.]") + `)[.]v[0-9a-z]+[.](` + strings.Join(resources, "|") + `)[.](` + verbs + `)$"`
	}
	var acts, others []string
	for _, verb := range slices.Sorted(maps.Keys(kubernetesVerbs)) {
		if kubernetesVerbs[verb] != "" {
			acts = append(acts, verb)
		} else {
			others = append(others, verb)
		}
	}
	return all(
		logIs(activityLog), is("resource.type", "k8s_cluster"), `protoPayload.resourceName=~"/namespaces/[^/]+/(`+strings.Join(resources, "|")+`)(/|$)"`,
		either(method(strings.Join(acts, "|")), "("+method(strings.Join(others, "|"))+" AND protoPayload.request.spec.suspend:*)"),
	)
}

// byControllers is a call on a Job that is no owner's: a controller makes it, or Pitstop. A call by nobody who is named is not among them.
func byControllers(known Accounts) string {
	const by = "protoPayload.authenticationInfo.principalEmail"
	ways := []string{by + `=~"` + byNamespace + `"`, "(" + by + `=~"^system:" AND NOT ` + by + `=~"^` + serviceAccounts + `")`}
	if accounts := append(slices.Clone(known.Ours), known.Controllers...); len(accounts) > 0 {
		ways = append(ways, oneOf(by, accounts))
	}
	return either(ways...)
}

// oneOf is a field with one of these values, in brackets however many there are: Terraform may put several into the place of one.
func oneOf(field string, values []string) string {
	return field + `=("` + strings.Join(values, `" OR "`) + `")`
}

// Whole is the filter that fetches the entries of all sinks.
func Whole(sinks []Sink) string {
	parts := make([]string, len(sinks))
	for i, s := range sinks {
		parts[i] = s.Filter
	}
	return either(parts...)
}

// notOurs leaves out the functions' own lines, whatever their text.
var notOurs = "NOT " + is("resource.type", "cloud_run_revision", "cloud_run_job", "cloud_function")

// begunByUs leaves out the first entries of operations by these accounts. Without accounts it is empty.
func begunByUs(ours []string) []string {
	if len(ours) == 0 {
		return nil
	}
	return []string{"NOT (operation.first=true AND NOT operation.last=true AND " + oneOf("protoPayload.authenticationInfo.principalEmail", ours) + ")"}
}

// onWorkers is a system event on a worker of the Cloud TPU API.
var onWorkers = all(
	logIs(systemLog), is("resource.type", "gce_instance"),
	`protoPayload.resourceName=~"/instances/t1v-n-[0-9a-f]{8}-w-[0-9]+$"`,
)

// toldToEnd is a line of a training framework that got a signal to end.
var toldToEnd = either(has("textPayload", sayCaught), has("textPayload", sayStopped), has("jsonPayload.message", sayCaught), has("jsonPayload.message", sayStopped))

func logIs(id string) string { return `log_id("` + id + `")` }

func has(field, text string) string { return field + `:"` + text + `"` }

func is(field string, values ...string) string {
	if len(values) == 1 {
		return field + `="` + values[0] + `"`
	}
	return oneOf(field, values)
}

func all(parts ...string) string { return strings.Join(parts, "\nAND ") }

// either joins its parts in brackets, because OR binds closer than AND.
func either(parts ...string) string {
	for i, p := range parts {
		if strings.Contains(p, "\n") {
			parts[i] = "(\n  " + strings.ReplaceAll(p, "\n", "\n  ") + "\n)"
		}
	}
	if strings.Contains(parts[0], "\n") {
		return strings.Join(parts, "\nOR ")
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

func names(m map[string]systemEvent) []string { return slices.Sorted(maps.Keys(m)) }
