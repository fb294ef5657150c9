package terraform

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// longestWait is the longest time that Google gives for a propagation: that of a new metric to alerts.
const longestWait = 10 * time.Minute

// wait is a pause of a module, between the changes that Google propagates and the resources that would fail before.
type wait struct {
	changes, before []string
}

// rootWaits, functionWaits and sinkWaits are the pauses that the first apply needs, by their names.
var (
	rootWaits = map[string]wait{
		"apis": {
			changes: []string{"google_project_service.main"},
			before:  []string{"google_storage_bucket.archives", "google_project_service_identity.agent", "google_logging_metric.counter"},
		},
		"agents": {
			changes: []string{"google_project_service_identity.agent"},
			before:  []string{"module.function", "google_kms_crypto_key_iam_member.agent"},
		},
		"key": {
			changes: []string{"google_kms_crypto_key_iam_member.agent"},
			before: []string{
				"google_storage_bucket.archives", "google_pubsub_topic.main", "google_firestore_database.main",
			},
		},
		"build": {
			changes: []string{
				"google_project_iam_member.build", "google_storage_bucket_iam_member.build", "google_artifact_registry_repository_iam_member.build",
			},
			before: []string{"module.function"},
		},
		"grants": {
			changes: []string{
				"google_project_iam_member.tpu", "google_project_iam_member.database", "google_project_iam_member.logs",
				"google_project_iam_member.clusters", "module.log_sink",
			},
			before: []string{"google_cloud_scheduler_job.tick"},
		},
		"metrics": {
			changes: []string{"google_logging_metric.counter", "google_logging_metric.distribution"},
			before:  []string{"google_monitoring_alert_policy.threshold", "google_monitoring_alert_policy.patrol"},
		},
	}
	functionWaits = map[string]wait{
		"secrets": {[]string{"google_secret_manager_secret_iam_member.reader"}, []string{"google_cloudfunctions2_function.main"}},
	}
	sinkWaits = map[string]wait{
		"writers": {[]string{"google_logging_project_sink.main"}, []string{"google_pubsub_topic_iam_binding.publishers"}},
	}
)

// waits checks the waits of the first apply. Each stands between its changes and the resources that need them. It has a bound, and repeats
// only when its trigger changes. No resource of the deployment is made before the APIs answer.
func (d *Deployment) waits() (faults []string) {
	for _, m := range []struct {
		*Module
		waits map[string]wait
	}{{d.Root, rootWaits}, {d.Function, functionWaits}, {d.Sink, sinkWaits}} {
		for name, w := range m.waits {
			faults = append(faults, m.wait("time_sleep."+name, w)...)
		}
		for address := range m.Resources {
			if name, ok := strings.CutPrefix(address, "time_sleep."); ok && len(m.waits[name].before) == 0 {
				faults = append(faults, address+" is a wait without a known purpose")
			}
		}
	}
	for address := range d.Root.Resources {
		if address != "google_project_service.main" && address != "time_sleep.apis" && !d.Root.After(address, "time_sleep.apis") {
			faults = append(faults, address+" is made before the APIs answer")
		}
	}
	slices.Sort(faults)
	return faults
}

// wait checks one wait. Both sides have to be named directly: a resource in between may have no instance.
func (m *Module) wait(address string, w wait) (faults []string) {
	b := m.Resources[address]
	if b == nil {
		return []string{"there is no wait " + address}
	}
	length, err := time.ParseDuration(strings.Trim(m.Written(b, "create_duration"), `"`))
	if err != nil || length <= 0 || length > longestWait {
		faults = append(faults, fmt.Sprintf("%s lasts %s, want some time and %s at most", address, m.Written(b, "create_duration"), longestWait))
	}
	if m.Written(b, "triggers") == "" {
		faults = append(faults, address+" has no trigger: it would not wait for a change that comes later")
	}
	if !m.explained(b) {
		faults = append(faults, address+" has no comment that gives its reason")
	}
	for _, change := range w.changes {
		if !slices.Contains(m.Needed(b.Body), change) {
			faults = append(faults, address+" does not come after "+change)
		}
	}
	for _, later := range w.before {
		if l := m.Resources[later]; l == nil || !slices.Contains(m.Needed(l.Body), address) {
			faults = append(faults, later+" does not wait for "+address)
		}
	}
	return faults
}

// explained reports whether a comment stands right above a block.
func (m *Module) explained(b *hclsyntax.Block) bool {
	r := b.Range()
	lines := strings.Split(string(m.sources[r.Filename]), "\n")
	return r.Start.Line > 1 && strings.HasPrefix(lines[r.Start.Line-2], "#")
}

// After reports whether a resource or module comes after another one, through any number of references and dependencies.
func (m *Module) After(address, other string) bool {
	seen := map[string]bool{}
	var reaches func(name string) bool
	reaches = func(name string) bool {
		b := m.Resources[name]
		if b == nil || seen[name] {
			return false
		}
		seen[name] = true
		for _, needed := range m.Needed(b.Body) {
			if needed == other || reaches(needed) {
				return true
			}
		}
		return false
	}
	return reaches(address)
}

// Needed are the names that the expressions of a block refer to, as root.name, with the names that the locals among them refer to.
func (m *Module) Needed(b *hclsyntax.Body) []string {
	var names []string
	for _, inner := range b.Blocks {
		names = append(names, m.Needed(inner.Body)...)
	}
	var queue []hclsyntax.Expression
	for _, a := range b.Attributes {
		queue = append(queue, a.Expr)
	}
	return append(names, m.NeededBy(queue...)...)
}

// NeededBy are the names that expressions refer to, as root.name, with the names that the locals among them refer to.
func (m *Module) NeededBy(queue ...hclsyntax.Expression) (names []string) {
	for seen := map[string]bool{}; len(queue) > 0; queue = queue[1:] {
		for _, v := range queue[0].Variables() {
			step, ok := v[min(1, len(v)-1)].(hcl.TraverseAttr)
			if !ok {
				continue
			}
			name := v.RootName() + "." + step.Name
			names = append(names, name)
			if local := m.Locals[step.Name]; v.RootName() == "local" && local != nil && !seen[name] {
				seen[name], queue = true, append(queue, local)
			}
		}
	}
	return names
}
