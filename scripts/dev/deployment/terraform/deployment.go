package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Deployment is the module of a deployment, with the modules that make its functions and its log sinks.
type Deployment struct {
	Root, Function, Sink *Module

	table []row
}

// row is a permission of an account, from permissions.json.
type row struct {
	Account    string   `json:"account"`
	Permission string   `json:"permission"`
	On         string   `json:"on"`
	Object     string   `json:"object"`
	Role       string   `json:"role"`
	Switches   []string `json:"switches"`
}

// held reports whether the account has the permission where these switches are allowed.
func (r row) held(allow []string) bool {
	return len(r.Switches) == 0 || slices.ContainsFunc(r.Switches, func(s string) bool { return slices.Contains(allow, s) })
}

// Parse reads a deployment.
func Parse(dir string) (*Deployment, error) {
	root, err := ParseModule(dir)
	if err != nil {
		return nil, err
	}
	function, err := ParseModule(filepath.Join(dir, "modules", "function"))
	if err != nil {
		return nil, err
	}
	sink, err := ParseModule(filepath.Join(dir, "modules", "log-sink"))
	if err != nil {
		return nil, err
	}
	d := &Deployment{Root: root, Function: function, Sink: sink}
	data, err := os.ReadFile(filepath.Join(dir, "permissions.json"))
	if err != nil {
		return nil, err
	}
	return d, json.Unmarshal(data, &d.table)
}

// Faults are the violations of the deployment's rules: on dead letters, grants, roles, builds and waits. The tests of Terraform hold the rest.
func (d *Deployment) Faults() []string {
	return slices.Concat(d.letters(), d.grants(), d.buckets(), d.databases(), d.clusters(), d.builds(), d.waits())
}

// letters checks that every function except patrol keeps its dead letters. Patrol's next tick makes up for a lost one.
func (d *Deployment) letters() (faults []string) {
	instances, b, err := d.under(nil).made("module.function")
	if err != nil {
		return []string{"module.function: " + err.Error()}
	}
	for _, s := range instances {
		name := s.given["each"].GetAttr("key").AsString()
		kept := cty.True // as the module has it
		if a := b.Body.Attributes["dead_letter"]; a != nil {
			if kept, err = s.value(a.Expr); err != nil {
				return []string{"module.function." + name + ": " + err.Error()}
			}
		}
		if kept.True() != (name != "patrol") {
			faults = append(faults, fmt.Sprintf("module.function: the dead letters of %s are kept: %v", name, kept.True()))
		}
	}
	return faults
}

// places are the resources that make the grants, by the thing that a permission is on.
var places = map[string][]string{
	"watched projects":       {"google_project_iam_member.tpu", "google_project_iam_member.logs"},
	"checkpoint_buckets":     {"google_storage_bucket_iam_member.checkpoints"},
	"tpu_service_accounts":   {"google_service_account_iam_member.acts_as"},
	"shared_vpc_subnetworks": {"google_compute_subnetwork_iam_member.shared_vpc"},
}

// covers maps a role to the smaller role that it includes. A role under a condition includes no other.
var covers = map[string]string{"roles/tpu.admin": "roles/tpu.viewer"}

// switches are all that the table names.
func (d *Deployment) switches() (all []string) {
	for _, r := range d.table {
		for _, s := range r.Switches {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// grants compares all grants with the table of permissions: with no switch allowed, with each single one, and with all of them.
func (d *Deployment) grants() (faults []string) {
	allowed := [][]string{nil, d.switches()}
	for _, s := range d.switches() {
		allowed = append(allowed, []string{s})
	}
	for _, allow := range allowed {
		s := d.under(allow)
		for on, addresses := range places {
			want, got := d.wanted(on, allow), []string(nil)
			for _, address := range addresses {
				granted, err := granted(s, address)
				if err != nil {
					return []string{address + ": " + err.Error()}
				}
				got = append(got, granted...)
			}
			slices.Sort(got)
			for _, g := range got {
				if !slices.Contains(want, g) {
					faults = append(faults, fmt.Sprintf("%s on %s, with %q allowed, and no call needs it", g, on, allow))
				}
			}
			for _, w := range want {
				if !slices.Contains(got, w) {
					faults = append(faults, fmt.Sprintf("%s is missing on %s, with %q allowed", w, on, allow))
				}
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// buckets checks that an owner may name a bucket that takes no condition.
func (d *Deployment) buckets() (faults []string) {
	const address = "google_storage_bucket_iam_member.checkpoints"
	s := d.under(d.switches())
	given := s.given["var"].AsValueMap()
	given["fine_grained_buckets"] = given["checkpoint_buckets"]
	got, err := granted(s.with("var", cty.ObjectVal(given)), address)
	if err != nil {
		return []string{address + ": " + err.Error()}
	}
	for _, grant := range got {
		if strings.Contains(grant, under) {
			faults = append(faults, "a bucket without uniform bucket-level access is refused this grant: "+grant)
		}
	}
	slices.Sort(faults)
	return faults
}

// databases are the databases of a deployment, by the word for each in the table.
var databases = map[string]string{"the ledger": "pitstop", "the metadata values": "pitstop-secrets", "what was told": "pitstop-told"}

// granted are the permissions of a role that its members have, each with the condition.
func (d *Deployment) granted(member, role string) (got []string, err error) {
	s := d.under(nil)
	holds := map[string][]string{}
	roles, b, err := s.made(role)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	for _, s := range roles {
		all, err := s.value(b.Body.Attributes["permissions"].Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role, err)
		}
		for it := all.ElementIterator(); it.Next(); {
			_, p := it.Element()
			holds[s.given["each"].GetAttr("key").AsString()] = append(holds[s.given["each"].GetAttr("key").AsString()], p.AsString())
		}
	}
	members, b, err := s.made(member)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", member, err)
	}
	for _, s := range members {
		account, err := s.value(b.Body.Attributes["member"].Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		where, err := s.condition(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		for _, p := range holds[s.given["each"].GetAttr("key").AsString()] {
			got = append(got, grant(account.AsString(), p, where))
		}
	}
	return got, nil
}

// consoles are the accounts of the two consoles.
var consoles = []string{"operators", "viewers"}

// databases checks that each account may do in each database what the table says, and in no other database anything. Nobody may delete a
// document. Only recreate may read the values of metadata, notify writes in its own database alone, and the consoles write nowhere.
func (d *Deployment) databases() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	const member, role = "google_project_iam_member.database", "google_project_iam_custom_role.database"
	for address, b := range d.Root.Resources {
		if granted := d.Root.Written(b, "role"); strings.HasPrefix(address, "google_project_iam_member.") && strings.Contains(granted, "roles/datastore") {
			fault("%s grants %s", address, granted)
		}
	}
	got, err := d.granted(member, role)
	if err != nil {
		return append(faults, err.Error())
	}
	var want []string
	for _, r := range d.table {
		database := databases[r.On]
		if database == "" {
			if strings.HasPrefix(r.Permission, "datastore.") {
				fault("%s has %s on %s, which is no database", r.Account, r.Permission, r.On)
			}
			continue
		}
		want = append(want, grant(r.Account, r.Permission, `resource.name == "projects/pitstop/databases/`+database+`"`))
		switch reads, writes := r.does(); {
		case r.Role != "custom":
			fault("%s has %s on %s, which may delete", r.Account, r.Role, r.On)
		case !writes && !reads:
			fault("%s may do more on %s than read and write: %s", r.Account, r.On, r.Permission)
		case r.strays(database):
			fault("%s has %s on %s", r.Account, r.Permission, r.On)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		fault("in the databases %q, want %q", got, want)
	}
	slices.Sort(faults)
	return faults
}

// does says whether a permission on a database reads or writes.
func (r row) does() (reads, writes bool) {
	verb := strings.TrimPrefix(r.Permission, "datastore.entities.")
	return verb == "get" || verb == "list", verb == "create" || verb == "update"
}

// strays reports whether an account has a permission on a database that is not for it.
func (r row) strays(database string) bool {
	reads, writes := r.does()
	switch {
	case slices.Contains(consoles, r.Account):
		return writes || database != "pitstop"
	case database == "pitstop-secrets":
		return reads && r.Account != "recreate"
	case database == "pitstop-told":
		return r.Account != "notify"
	}
	return writes && r.Account == "notify"
}

// clusters checks what is there for clusters of GKE: nothing without a cluster, and otherwise exactly the permissions of the table, in the
// projects of the clusters alone.
func (d *Deployment) clusters() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, r := range d.table {
		if strings.HasPrefix(r.Permission, "container.") && (r.On != "clusters" || r.Permission != "container.clusters.get" && r.Permission != "container.clusters.connect") {
			fault("%s has %s on %s: more than it takes to reach a cluster", r.Account, r.Permission, r.On)
		}
	}
	for _, c := range []struct{ given, allow []string }{
		{nil, nil},
		{[]string{"us-east5/research"}, nil},
		{[]string{"us-east5/research/train", "watched:us-east5-b/research"}, nil},
		{nil, []string{"recreate"}},
		{[]string{"us-east5/research"}, []string{"restart", "recreate_non_spot"}},
	} {
		given := c.given
		accounts := map[string]bool{}
		var table []string
		for _, r := range d.table {
			if r.On == "clusters" && r.held(c.allow) {
				accounts[r.Account], table = true, append(table, r.Account+" has "+r.Permission)
			}
		}
		s := d.under(c.allow, given...)
		projects := projectsOf(given)
		var got, want []string
		for _, address := range []string{"google_project_iam_member.clusters", "google_project_iam_custom_role.clusters"} {
			instances, b, err := s.made(address)
			if err != nil {
				return append(faults, address+": "+err.Error())
			}
			for _, s := range instances {
				in := s.given["each"].GetAttr("value").GetAttr("project").AsString()
				if a := b.Body.Attributes["permissions"]; a != nil {
					all, err := s.value(a.Expr)
					if err != nil {
						return append(faults, address+": "+err.Error())
					}
					for it := all.ElementIterator(); it.Next(); {
						_, p := it.Element()
						got = append(got, in+": "+s.given["each"].GetAttr("value").GetAttr("function").AsString()+" has "+p.AsString())
					}
				}
			}
			if len(instances) != len(projects)*len(accounts) {
				fault("%s is there %d times for the clusters %q with %q allowed", address, len(instances), given, c.allow)
			}
		}
		for p := range projects {
			for _, t := range table {
				want = append(want, p+": "+t)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			fault("for the clusters %q with %q allowed %q, want %q", given, c.allow, got, want)
		}
	}
	slices.Sort(faults)
	return faults
}

// projectsOf are the projects of clusters as the variable names them; without a name it is that of the deployment.
func projectsOf(clusters []string) map[string]bool {
	projects := map[string]bool{}
	for _, c := range clusters {
		project, _, named := strings.Cut(c, ":")
		if !named {
			project = "pitstop"
		}
		projects[project] = true
	}
	return projects
}

// building are the grants of the account that builds functions, each with the thing that it is on.
var building = map[string][2]string{
	"google_project_iam_member.build":                      {"condition.content.expression", "condition.value"},
	"google_storage_bucket_iam_member.build":               {"bucket", "google_storage_bucket.archives.name"},
	"google_artifact_registry_repository_iam_member.build": {"repository", "local.docker_repository"},
}

// builds checks what the account that builds functions may read. It may read the archives, and Cloud Functions' copies of these
// functions only.
func (d *Deployment) builds() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for address, b := range d.Root.Resources {
		on, known := building[address]
		builder := d.Root.Written(b, "member") == "google_service_account.build.member"
		switch {
		case known != builder:
			fault("%s is a grant of the build account: %v", address, builder)
		case known && d.Root.Written(b, on[0]) != on[1]:
			fault("%s is on %s, want %s", address, d.Root.Written(b, on[0]), on[1])
		}
	}
	s := d.under(nil)
	s = s.with("google_project_service_identity", cty.ObjectVal(map[string]cty.Value{"agent": cty.MapVal(map[string]cty.Value{
		"pubsub.googleapis.com": cty.ObjectVal(map[string]cty.Value{"email": cty.StringVal("service-7@gcp-sa-pubsub.iam.gserviceaccount.com")}),
	})}))
	own, err := s.local("own_sources")
	if err != nil {
		return append(faults, err.Error())
	}
	functions, err := s.local("functions")
	if err != nil {
		return append(faults, err.Error())
	}
	const bucket = "projects/_/buckets/gcf-v2-sources-7-us-west1"
	want := []string{`resource.name == "` + bucket + `"`} // to list it: names, and no content
	for it := functions.ElementIterator(); it.Next(); {
		name, _ := it.Element()
		want = append(want, `resource.name.startsWith("`+bucket+`/objects/`+name.AsString()+`/")`)
	}
	if got := strings.Split(own.AsString(), " || "); !slices.Equal(got, want) {
		fault("the build account reads where %q, want %q", got, want)
	}
	grants, err := s.value(d.Root.Resources["google_project_iam_member.build"].Body.Attributes["for_each"].Expr)
	if err != nil {
		return append(faults, err.Error())
	}
	for it := grants.ElementIterator(); it.Next(); {
		role, where := it.Element()
		if role.AsString() != "roles/logging.logWriter" && (where.IsNull() || where.AsString() != own.AsString()) {
			fault("the build account has %s in the whole project", role.AsString())
		}
	}
	slices.Sort(faults)
	return faults
}

// SetLocal replaces a local value.
func (m *Module) SetLocal(name, expression string) error {
	if m.Locals[name] == nil {
		return fmt.Errorf("there is no local.%s", name)
	}
	e, diags := hclsyntax.ParseExpression([]byte(expression), "local."+name, hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	m.Locals[name] = e
	return nil
}

// condition is the condition of a grant; empty if it has none.
func (s scope) condition(b *hclsyntax.Block) (string, error) {
	for _, inner := range b.Body.Blocks {
		switch {
		case inner.Type == "condition":
			v, err := s.value(inner.Body.Attributes["expression"].Expr)
			if err != nil {
				return "", err
			}
			return v.AsString(), nil
		case inner.Type == "dynamic" && inner.Labels[0] == "condition":
			all, err := s.value(inner.Body.Attributes["for_each"].Expr)
			if err != nil || all.LengthInt() == 0 {
				return "", err
			}
			s = s.with("condition", cty.ObjectVal(map[string]cty.Value{"value": all.AsValueSlice()[0]}))
			return s.condition(&hclsyntax.Block{Body: &hclsyntax.Body{Blocks: hclsyntax.Blocks{{Type: "condition", Body: inner.Body.Blocks[0].Body}}}})
		}
	}
	return "", nil
}

// under stands before the condition of a grant.
const under = " under "

// grant is what an account holds, with the condition, if there is one.
func grant(account, role, condition string) string {
	if condition != "" {
		condition = under + condition
	}
	return account + " has " + role + condition
}

// oneName is the condition under which an account may write the objects of one name, in any directory of a bucket.
func oneName(object string) string {
	if object == "" {
		return ""
	}
	return `resource.type == "storage.googleapis.com/Object" && resource.name.endsWith("/` + object + `")`
}

// wanted are the roles that accounts need on a thing, by the table.
func (d *Deployment) wanted(on string, allow []string) (roles []string) {
	for _, r := range d.table {
		if grant := grant(r.Account, r.Role, oneName(r.Object)); r.held(allow) && r.On == on && !slices.Contains(roles, grant) {
			roles = append(roles, grant)
		}
	}
	for more, less := range covers {
		for _, grant := range slices.Clone(roles) {
			if account, role, _ := strings.Cut(grant, " has "); role == more {
				roles = slices.DeleteFunc(roles, func(g string) bool { return g == account+" has "+less })
			}
		}
	}
	slices.Sort(roles)
	return roles
}

// granted are the roles that a resource grants, as "account has role".
func granted(s scope, address string) (roles []string, err error) {
	instances, b, err := s.made(address)
	if err != nil {
		return nil, err
	}
	for _, s := range instances {
		var said [2]string
		for i, name := range []string{"member", "role"} {
			a := b.Body.Attributes[name]
			if a == nil {
				return nil, fmt.Errorf("it has no %s", name)
			}
			v, err := s.value(a.Expr)
			if err != nil {
				return nil, err
			}
			said[i] = v.AsString()
		}
		where, err := s.condition(b)
		if err != nil {
			return nil, err
		}
		if grant := grant(said[0], said[1], where); !slices.Contains(roles, grant) {
			roles = append(roles, grant)
		}
	}
	return roles, nil
}

// Local evaluates a local value where nothing is allowed.
func (d *Deployment) Local(name string) (cty.Value, error) { return d.under(nil).local(name) }

// under is a scope of a deployment with one of each input but clusters, and with a target in notify.
func (d *Deployment) under(allow []string, clusters ...string) scope {
	set := func(all ...string) cty.Value {
		if len(all) == 0 {
			return cty.SetValEmpty(cty.String)
		}
		var values []cty.Value
		for _, s := range all {
			values = append(values, cty.StringVal(s))
		}
		return cty.SetVal(values)
	}
	empty := cty.StringVal("")
	s := scope{Module: d.Root, known: map[string]cty.Value{}, given: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
		"allow": set(allow...), "project_id": cty.StringVal("pitstop"), "prefix": empty, "policy_uri": empty, "region": cty.StringVal("us-west1"), "tpu_roles": cty.StringVal("predefined"),
		"watched_projects": set("watched"), "clusters": set(clusters...), "checkpoint_buckets": set("bucket"), "fine_grained_buckets": set(), "tpu_service_accounts": set("trainer"), "shared_vpc_subnetworks": set("subnetwork"),
		"console": cty.MapVal(map[string]cty.Value{"viewers": set("group:viewers@example.com"), "operators": set("user:ada@example.com")}),
		"notify": cty.MapVal(map[string]cty.Value{
			"slack_token_secret": cty.StringVal("projects/pitstop/secrets/slack"),
		}),
	}), "google_project_iam_custom_role": cty.DynamicVal}}
	accounts, deployed := map[string]cty.Value{}, map[string]cty.Value{}
	if functions, err := s.local("functions"); err == nil { // otherwise the evaluation that needs them fails
		for _, name := range consoles {
			accounts[name] = cty.ObjectVal(map[string]cty.Value{"member": cty.StringVal(name), "email": cty.StringVal(name)})
		}
		for name := range functions.AsValueMap() {
			accounts[name] = cty.ObjectVal(map[string]cty.Value{"member": cty.StringVal(name), "email": cty.StringVal(name)})
			deployed[name] = cty.ObjectVal(map[string]cty.Value{
				"subscription": cty.StringVal(name), "dead_letter_subscription": cty.StringVal(name + "-dead-letters"),
			})
		}
	}
	return s.with("module", cty.ObjectVal(map[string]cty.Value{"function": cty.ObjectVal(deployed)})).
		with("google_service_account", cty.ObjectVal(map[string]cty.Value{"function": cty.ObjectVal(accounts)}))
}

// Set replaces an attribute of a block, for a mutant of the deployment.
func (m *Module) Set(address, path, expression string) error {
	b := m.Resources[address]
	if b == nil {
		return fmt.Errorf("there is no %s", address)
	}
	body := b.Body
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		i := slices.IndexFunc(body.Blocks, func(b *hclsyntax.Block) bool {
			return b.Type == step || b.Type == "dynamic" && b.Labels[0] == step
		})
		if i < 0 {
			return fmt.Errorf("%s has no block %s", address, step)
		}
		body = body.Blocks[i].Body
	}
	name := steps[len(steps)-1]
	a := body.Attributes[name]
	if a == nil {
		return fmt.Errorf("%s has no %s", address, path)
	}
	file := address + "." + path
	e, diags := hclsyntax.ParseExpression([]byte(expression), file, hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	m.sources[file] = []byte(expression)
	a.Expr = e
	return nil
}

// Remove takes a resource away, or a block inside it.
func (m *Module) Remove(address, block string) error {
	b := m.Resources[address]
	if b == nil {
		return fmt.Errorf("there is no %s", address)
	}
	if block == "" {
		delete(m.Resources, address)
		return nil
	}
	before := len(b.Body.Blocks)
	b.Body.Blocks = slices.DeleteFunc(b.Body.Blocks, func(b *hclsyntax.Block) bool {
		return b.Type == block || b.Type == "dynamic" && b.Labels[0] == block
	})
	if len(b.Body.Blocks) == before {
		return fmt.Errorf("%s has no block %s", address, block)
	}
	return nil
}
