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

// waits checks the waits of the first apply. Each comes after a change and before what needs it, has a bound, and repeats only when its
// trigger changes. No resource of the deployment is made before the APIs answer.
func (d *Deployment) waits() (faults []string) {
	for _, m := range []*Module{d.Root, d.Function, d.Sink} {
		for address, b := range m.Resources {
			if strings.HasPrefix(address, "time_sleep.") {
				faults = append(faults, m.wait(address, b)...)
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

// wait checks one wait.
func (m *Module) wait(address string, b *hclsyntax.Block) (faults []string) {
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
	if m.Written(b, "depends_on") == "" {
		faults = append(faults, address+" comes after no change")
	}
	for other, later := range m.Resources {
		if other != address && slices.Contains(m.Needed(later.Body), address) {
			return faults
		}
	}
	return append(faults, "nothing waits for "+address)
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
